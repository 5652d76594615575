//! `qj filter --emit xdp`: rules as C for the kernel, or as the object file that clang makes of it.

use super::Wanted;
use crate::terminal::{CliError, Status, print};
use quaject_esp_run::HostError;
use quaject_esp_run::files::{NewFile, write_file};
use quaject_filter::xdp;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The kernel's frames begin with Ethernet's header.
const ETHERNET: i32 = 1;

pub(super) fn xdp(wanted: &mut Wanted<'_>, output: Option<&Path>) -> Result<Status, CliError> {
    let file = wanted.file.display().to_string();
    let set = wanted.set(ETHERNET)?;
    let rules: Vec<_> = set.compiled.iter().map(|own| (own.rule.name.as_str(), &own.filter)).collect();
    let source = xdp::source(&rules).map_err(|refused| {
        let rule = &set.compiled[refused.filter].rule;
        CliError::from(HostError::new(format!("{file}:{}: `{}`: {refused}", rule.line, rule.name)).help(refused.help()))
    })?;
    match output {
        None => print(source.as_bytes())?,
        Some(path) if path.extension().is_some_and(|ending| ending == "o") => compile(&source, path)?,
        Some(path) => write_file(path, source.as_bytes())?,
    }
    Ok(Status::Done)
}

/// Has clang make an object file, which has its name once it is whole.
fn compile(source: &str, path: &Path) -> Result<(), HostError> {
    let failed = |error: std::io::Error| {
        HostError::new(format!("cannot run `clang`, which makes programs for the kernel: {error}"))
            .help("install it, or write C with `-o FILE.c` and compile that elsewhere")
    };
    let folder = tempfile::tempdir().map_err(|error| HostError::new(format!("no temporary folder: {error}")))?;
    let object = folder.path().join("rules.o");
    let mut clang = Command::new("clang");
    clang.args(["-O2", "-g", "-target", "bpfel", "-x", "c", "-", "-c", "-o"]).arg(&object);
    // Where Debian keeps <asm/types.h>, which is the same for all machines.
    clang.arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH));
    let mut child = clang.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    // If it does not read all, it says why below.
    let _ = child.stdin.take().expect("it is a pipe").write_all(source.as_bytes());
    let report = child.wait_with_output().map_err(failed)?;
    if !report.status.success() {
        let said = String::from_utf8_lossy(&report.stderr).into_owned();
        let first = said.lines().find(|line| line.contains("error")).unwrap_or("it does not say why").to_owned();
        let help = "more rules than the kernel has room for, or no headers: `apt install linux-libc-dev`; `-o FILE.c` writes what \
                    it was given";
        return Err(HostError::new(format!("clang makes no program of the rules: {first}")).help(help));
    }
    let bytes = std::fs::read(&object).map_err(|error| HostError::file("read", object.display(), &error))?;
    let mut file = NewFile::create(path)?;
    file.write_all(&bytes).map_err(|error| HostError::file("write", path.display(), &error))?;
    file.finish()
}
