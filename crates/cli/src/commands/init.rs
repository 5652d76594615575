//! `qj init`: creates a project from a template.

use crate::arguments::Init;
use crate::project::FILE_NAME;
use crate::terminal::{CliError, Status, print};
use quaject_esp_run::files::write_file;
use quaject_esp_run::{HostCode, HostError};
use std::fs;
use std::path::Path;

const PROJECT: &str = include_str!("../../resources/init/qj.toml");
const PROGRAM: &str = include_str!("../../resources/init/main.esp");
const INPUT: &str = include_str!("../../resources/init/main.in");
const OUTPUT: &str = include_str!("../../resources/init/main.out");

pub(crate) fn init(arguments: Init) -> Result<Status, CliError> {
    let folder = &arguments.folder;
    let absolute = std::path::absolute(folder)
        .map_err(|error| CliError::from(HostError::file("find", folder.display(), &error)))?;
    let name = absolute
        .components()
        .next_back()
        .and_then(|last| last.as_os_str().to_str())
        .map(|name| name.replace(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'), "_"))
        .map(|name| name.trim_start_matches('-').to_string())
        .filter(|name| name.contains(|c: char| c.is_ascii_alphanumeric()))
        .unwrap_or_else(|| "main".to_string());
    let own = |ending: &str| format!("{name}.{ending}");
    let files = [(FILE_NAME.to_string(), PROJECT), (own("esp"), PROGRAM), (own("in"), INPUT), (own("out"), OUTPUT)]
        .map(|(file, text)| (folder.join(file), text.replace("main", &name)));
    // Checked before the first file is written, so that either all files are written or none.
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(CliError::from(
            HostError::usage(HostCode::Overwrite, format!("`{}` exists already", path.display()))
                .help("choose another folder: `qj init DIR`"),
        ));
    }
    fs::create_dir_all(folder).map_err(|error| CliError::from(HostError::file("make", folder.display(), &error)))?;
    for (count, (path, text)) in files.iter().enumerate() {
        if let Err(error) = write_file(path, text.as_bytes()) {
            // An incomplete project would prevent the next attempt.
            files[..count].iter().for_each(|(path, _)| drop(fs::remove_file(path)));
            return Err(CliError::from(error));
        }
    }
    let go = if folder == Path::new(".") { String::new() } else { format!("  cd {}\n", shell_word(folder)) };
    print(
        format!(
            "made {FILE_NAME} and {name}.esp with its test; now\n{go}  qj run < {name}.in\n  qj test\n  qj build\n"
        )
        .as_bytes(),
    )?;
    Ok(Status::Done)
}

/// A path, quoted for a shell where necessary.
fn shell_word(path: &Path) -> String {
    let text = path.display().to_string();
    let text = if text.starts_with('-') { format!("./{text}") } else { text };
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+@%".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', "'\\''")) }
}
