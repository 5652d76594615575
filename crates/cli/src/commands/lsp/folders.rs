//! The folders of an editor: their programs, from project files or by their imports, and the files in them. Reads only.

use crate::project::{FILE_NAME, Project};
use quaject_diagnostic::Diagnostic;
use quaject_esp_ide::{Files, Roots};
use quaject_esp_run::HostCode;
use quaject_esp_run::files::{read_bytes, read_text};
use std::path::{Path, PathBuf};

/// The maximum number of files of a folder without a project file, and of folders inside of each other.
const MAX_FILES: usize = 10_000;
const MAX_DEPTH: usize = 24;

/// The files of the disk.
pub(super) struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        let path = Path::new(path);
        if path.metadata().is_ok_and(|data| !data.is_file() && !data.is_dir()) {
            return Err("it is not a regular file".to_string());
        }
        read_bytes(path).map_err(|error| match error.cause.split_once("`: ") {
            Some((_, reason)) => reason.to_string(),
            None => error.cause,
        })
    }
}

/// A project file with an error: its path, its text, and the error.
pub(super) type ProjectError = (PathBuf, String, Diagnostic<HostCode>);

/// The programs of folders, the folders of imports, and what is wrong with project files.
pub(super) fn programs(folders: &[PathBuf]) -> (Roots, Vec<String>, Vec<ProjectError>) {
    let (mut roots, mut import_folders, mut errors) = (Roots::default(), Vec::new(), Vec::new());
    for folder in folders {
        let file = folder.join(FILE_NAME);
        let text = read_text(&file);
        match text.map(|text| (Project::parse(&file, &text), text)) {
            Ok((Ok(project), _)) => {
                roots.named.extend(project.roots.iter().map(|root| name(root)));
                import_folders.extend(project.import_folders.iter().map(|folder| name(folder)));
            }
            Ok((Err(diagnostic), text)) => errors.push((file, text, diagnostic)),
            Err(_) => collect(folder, 0, &mut roots.found),
        }
    }
    (roots, import_folders, errors)
}

/// A path as texts name it.
pub(super) fn name(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    for path in paths {
        if files.len() >= MAX_FILES {
            return;
        }
        let is_hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
        // Links are not followed: they can lead in a circle.
        let Ok(kind) = path.symlink_metadata().map(|data| data.file_type()) else { continue };
        if kind.is_dir()
            && !is_hidden
            && depth < MAX_DEPTH
            && !path.ends_with("target")
            && !path.ends_with("node_modules")
        {
            collect(&path, depth + 1, files);
        } else if kind.is_file() && path.extension().is_some_and(|ending| ending == "esp") {
            files.push(name(&path));
        }
    }
}
