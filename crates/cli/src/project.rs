//! The project file `qj.toml`: the programs of a folder and the options that commands have for them. Relative paths in
//! it are relative to its folder. Knows no command.

use crate::arguments::{EmitForm, ImportFolders, ModeChoice, ProjectChoice, StyleChoice};
use crate::terminal::{CliError, Status, Terminal};
use clap::ValueEnum;
use quaject_diagnostic::span::{FileId, SourceFile, SourceMap, Span};
use quaject_diagnostic::{Diagnostic, nearest};
use quaject_esp_run::files::read_text;
use quaject_esp_run::{Binding, HostCode, HostError};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use toml::Spanned;

/// The name of the file.
pub(crate) const FILE_NAME: &str = "qj.toml";

/// The programs of a project and their options. Without a project file there are none.
#[derive(Default)]
pub(crate) struct Project {
    /// The project file, as messages name it.
    pub(crate) file: Option<PathBuf>,
    /// The root files of the programs.
    pub(crate) roots: Vec<PathBuf>,
    pub(crate) import_folders: Vec<PathBuf>,
    pub(crate) externs: Vec<PathBuf>,
    pub(crate) bindings: Vec<Binding>,
    pub(crate) build: BuildTable,
    /// The channels of the bindings in the text, for messages.
    channels: Vec<(String, Range<usize>)>,
    text: String,
}

/// The file as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct ProjectFile {
    roots: Spanned<Vec<PathBuf>>,
    #[serde(default)]
    import_folders: Vec<PathBuf>,
    #[serde(default)]
    r#extern: Vec<PathBuf>,
    #[serde(default)]
    bind: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    build: BuildTable,
}

/// The options of `qj build`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub(crate) struct BuildTable {
    #[serde(deserialize_with = "choice")]
    pub(crate) emit: Option<EmitForm>,
    #[serde(deserialize_with = "choice")]
    pub(crate) mode: Option<ModeChoice>,
    #[serde(deserialize_with = "choice")]
    pub(crate) style: Option<StyleChoice>,
    pub(crate) checked: bool,
    /// The folder of the outputs.
    pub(crate) output: Option<PathBuf>,
    pub(crate) cflags: Vec<String>,
}

/// Reads a value of a set as the command line does.
fn choice<'de, D: Deserializer<'de>, T: ValueEnum>(deserializer: D) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(deserializer)?;
    T::from_str(&text, false).map(Some).map_err(|_| {
        let values = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
        let names: Vec<String> = values.map(|value| format!("`{}`", value.get_name())).collect();
        D::Error::custom(format!("`{text}` is none of {}", names.join(", ")))
    })
}

impl Project {
    /// The project that the command line names; else, for a command without files, the one of the nearest folder
    /// upwards that has a project file; else none.
    pub(crate) fn find(terminal: &Terminal, choice: &ProjectChoice, files: &[PathBuf]) -> Result<Project, CliError> {
        match (&choice.project, nearest_folder()) {
            (Some(folder), _) => Project::read(terminal, &folder.join(FILE_NAME)),
            (None, Some(folder)) if files.is_empty() => Project::read(terminal, &folder.join(FILE_NAME)),
            (None, Some(_) | None) => Ok(Project::default()),
        }
    }

    /// The files that the command line names, else the roots of the project.
    pub(crate) fn programs(&self, files: &[PathBuf]) -> Result<Vec<PathBuf>, HostError> {
        if !files.is_empty() {
            return Ok(files.to_vec());
        }
        if self.file.is_none() {
            let error =
                HostError::usage(HostCode::NoProject, format!("no program, and no `{FILE_NAME}` upwards of here"));
            return Err(error.help("name a FILE, or start a project: `qj init DIR`"));
        }
        Ok(self.roots.clone())
    }

    /// The file that the command line names, else the only root of the project.
    pub(crate) fn program(&self, file: Option<&PathBuf>) -> Result<PathBuf, HostError> {
        match &self.programs(file.map_or(&[], std::slice::from_ref))?[..] {
            [program] => Ok(program.clone()),
            programs => {
                let error = HostError::usage(HostCode::Choice, "the project has several programs");
                let names: Vec<String> = programs.iter().map(|program| program.display().to_string()).collect();
                let folder = self.folder().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
                Err(error.help(format!(
                    "name one, and the project, whose options then hold for it: `--project {}` with `{}`",
                    folder.display(),
                    names.join("`, `")
                )))
            }
        }
    }

    /// The folders of imports: those of the command line are searched first.
    pub(crate) fn import_folders(&self, imports: &ImportFolders) -> Vec<PathBuf> {
        imports.import_folders.iter().chain(&self.import_folders).cloned().collect()
    }

    /// The folder of the project file.
    pub(crate) fn folder(&self) -> Option<&Path> {
        self.file.as_deref().and_then(Path::parent)
    }

    fn read(terminal: &Terminal, path: &Path) -> Result<Project, CliError> {
        let text = read_text(path)?;
        match Project::parse(path, &text) {
            Ok(project) => Ok(project),
            Err(diagnostic) => {
                print(terminal, path, &text, diagnostic);
                Err(CliError::reported(Status::Failed))
            }
        }
    }

    /// The project of a text. An error has its place in the text.
    pub(crate) fn parse(path: &Path, text: &str) -> Result<Project, Diagnostic<HostCode>> {
        let file: ProjectFile = toml::from_str(text).map_err(|error| diagnostic(&error))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let in_folder = |paths: Vec<PathBuf>| paths.into_iter().map(|path| joined(folder, &path)).collect();
        if file.roots.get_ref().is_empty() {
            let cause = "`roots` names no program";
            let empty = Diagnostic::new(HostCode::ProjectFile, span(file.roots.span()), cause);
            return Err(empty.help("name the file of each program, as in `roots = [\"main.esp\"]`"));
        }
        let (mut bindings, mut channels) = (Vec::new(), Vec::new());
        for (channel, driver) in file.bind {
            let binding: Result<Binding, HostError> = format!("{}={}", channel.get_ref(), driver.get_ref()).parse();
            let binding = binding.map_err(|error| {
                let wrong = Diagnostic::new(HostCode::ProjectFile, span(driver.span()), error.cause);
                error.help.into_iter().fold(wrong, |wrong, help| wrong.help(help))
            })?;
            bindings.push(binding.in_folder(folder));
            channels.push((channel.get_ref().clone(), channel.span()));
        }
        let output = file.build.output.as_deref().map(|path| joined(folder, path));
        Ok(Project {
            file: Some(path.to_path_buf()),
            roots: in_folder(file.roots.into_inner()),
            import_folders: in_folder(file.import_folders),
            externs: in_folder(file.r#extern),
            bindings,
            build: BuildTable { output, ..file.build },
            channels,
            text: text.to_string(),
        })
    }

    /// Reports the bindings of channels that no program has, by the external channels of all programs; the number of
    /// them.
    pub(crate) fn report_unknown_channels(&self, terminal: &Terminal, known: &[String]) -> usize {
        let unknown: Vec<_> = self.channels.iter().filter(|(name, _)| !known.contains(name)).collect();
        let file = self.file.as_deref().unwrap_or(Path::new(FILE_NAME));
        for (name, range) in &unknown {
            let cause = format!("no program has an external channel `{name}`");
            let wrong = Diagnostic::new(HostCode::ProjectFile, span(range.clone()), cause);
            let help = match nearest(name, known.iter().map(String::as_str)) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "remove the line, or declare the channel".to_string(),
            };
            print(terminal, file, &self.text, wrong.help(help));
        }
        unknown.len()
    }
}

/// The nearest folder upwards that has a project file, relative to the current one.
fn nearest_folder() -> Option<PathBuf> {
    let current = std::env::current_dir().ok()?;
    let steps = current.ancestors().position(|folder| folder.join(FILE_NAME).is_file())?;
    Some(std::iter::repeat_n("..", steps).collect())
}

/// A path of a project file, without `.`.
fn joined(folder: &Path, path: &Path) -> PathBuf {
    folder.join(path).components().filter(|component| *component != Component::CurDir).collect()
}

fn span(range: Range<usize>) -> Span {
    Span::new(FileId(0), range.start as u32, range.end as u32)
}

fn print(terminal: &Terminal, path: &Path, text: &str, diagnostic: Diagnostic<HostCode>) {
    let mut sources = SourceMap::default();
    sources.add(SourceFile::new(path.display().to_string(), text));
    terminal.print_diagnostics(&sources, &[diagnostic]);
}

/// An error of the reader of TOML. Serde's texts for unknown and missing keys become ours.
fn diagnostic(error: &toml::de::Error) -> Diagnostic<HostCode> {
    let span = span(error.span().unwrap_or(0..0));
    let message = error.message().lines().collect::<Vec<_>>().join(", ");
    if let Some((key, expected)) =
        message.strip_prefix("unknown field `").and_then(|rest| rest.split_once("`, expected "))
    {
        let known: Vec<&str> = expected.split('`').skip(1).step_by(2).collect();
        let help = match nearest(key, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("the keys here are `{}`", known.join("`, `")),
        };
        return Diagnostic::new(HostCode::ProjectKey, span, format!("unknown key `{key}`")).help(help);
    }
    if message == "missing field `roots`" {
        let help = "name the file of each program, as in `roots = [\"main.esp\"]`";
        return Diagnostic::new(HostCode::ProjectFile, span, "`roots` is missing").help(help);
    }
    Diagnostic::new(HostCode::ProjectFile, span, message)
        .help("`qj explain H0601` shows a project file; the book's chapter on projects lists all keys")
}
