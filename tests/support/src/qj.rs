//! The command `qj` for tests of packages that are not its own, to which Cargo gives no path of it.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// The variable with which `cargo xtask test` names the `qj` that it has built together with the tests.
const BINARY_VARIABLE: &str = "QJ_BINARY";

/// The path of a `qj` built from the sources as they are, in the profile of the running test.
///
/// Where `cargo xtask test` has not named one, the first call of a process builds it. Cargo's lock on its build folder
/// orders the builds of several test programs; all but the first find it up to date.
///
/// # Panics
///
/// If it does not build.
pub fn qj_binary() -> &'static str {
    static PATH: OnceLock<String> = OnceLock::new();
    PATH.get_or_init(|| env::var(BINARY_VARIABLE).unwrap_or_else(|_| build()))
}

fn build() -> String {
    let mut cargo = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    cargo.args(["build", "--quiet", "--package", "quaject-cli", "--bin", "qj"]);
    cargo.args(["--profile", &profile(), "--message-format", "json-render-diagnostics"]);
    let output = cargo.stdin(Stdio::null()).stderr(Stdio::inherit()).output().expect("Cargo runs this test");
    assert!(output.status.success(), "`qj` does not build");
    let messages = String::from_utf8_lossy(&output.stdout);
    let path = messages.lines().find_map(executable).expect("Cargo names what it has built");
    path.to_owned()
}

/// The profile of the running test, by the folder of its program: `target/PROFILE/deps/test-0123456789abcdef`.
fn profile() -> String {
    let program = env::current_exe().expect("the system knows the path of a running program");
    let folder = program.parent().and_then(Path::parent).and_then(Path::file_name);
    let name = folder.expect("Cargo puts test programs into two folders").to_string_lossy();
    if name == "debug" { "dev".to_owned() } else { name.into_owned() }
}

/// The executable in one of Cargo's messages in JSON; those of libraries have `null` there.
fn executable(message: &str) -> Option<&str> {
    message.split_once("\"executable\":\"")?.1.split('"').next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_found_in_the_messages() {
        assert_eq!(executable("{\"filenames\":[\"/t/qj\"],\"executable\":\"/t/qj\",\"fresh\":true}"), Some("/t/qj"));
        assert_eq!(executable("{\"executable\":null,\"fresh\":true}"), None);
    }

    #[test]
    fn the_profile_is_one_that_cargo_knows() {
        assert!(["dev", "release"].contains(&profile().as_str()), "{}", profile());
    }
}
