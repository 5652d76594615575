//! Starting other programs: in the repository, seen by the user, with the command line named when they fail.

use std::path::PathBuf;
use std::process::Command;

/// Why a task could not be done, for the user to read.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies directly below the root").to_owned()
}

/// The Cargo that runs this task, started in the repository.
pub(crate) fn cargo(arguments: &[&str]) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root()).args(arguments);
    command
}

/// Runs to the end; anything but status 0 is a failure.
pub(crate) fn succeed(command: &mut Command) -> Result<(), Failure> {
    let shown = shown(command);
    let status = command.status().map_err(|error| Failure(format!("cannot start `{shown}`: {error}")))?;
    if status.success() { Ok(()) } else { Err(Failure(format!("`{shown}` failed: {status}"))) }
}

/// Runs to the end and returns what the program wrote to standard output.
pub(crate) fn output_of(command: &mut Command) -> Result<Vec<u8>, Failure> {
    let shown = shown(command);
    let output = command.output().map_err(|error| Failure(format!("cannot start `{shown}`: {error}")))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        let complaint = String::from_utf8_lossy(&output.stderr);
        Err(Failure(format!("`{shown}` failed: {}\n{complaint}", output.status)))
    }
}

/// The command as a user would type it.
fn shown(command: &Command) -> String {
    let program = PathBuf::from(command.get_program());
    let name = program.file_name().unwrap_or(command.get_program()).to_string_lossy().into_owned();
    let arguments = command.get_args().map(|argument| argument.to_string_lossy().into_owned());
    std::iter::once(name).chain(arguments).collect::<Vec<_>>().join(" ")
}
