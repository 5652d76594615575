//! `qj filter --emit xdp`: writes rules as a C program for XDP, or as the object file that clang compiles it to.

use super::RuleSets;
use crate::terminal::{CliError, Status, print};
use quaject_esp_run::files::{NewFile, write_file};
use quaject_esp_run::{HostCode, HostError};
use quaject_filter::link::LinkLayer;
use quaject_filter::xdp;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// The link layer of frames in XDP.
const ETHERNET: LinkLayer = LinkLayer::native(1);

pub(super) fn xdp(rule_sets: &mut RuleSets<'_>, output: Option<&Path>) -> Result<Status, CliError> {
    let (terminal, sources) = (rule_sets.terminal, rule_sets.sources);
    let set = rule_sets.set(ETHERNET)?;
    let rules: Vec<_> = set.compiled.iter().map(|own| (own.rule.name.as_str(), &own.filter)).collect();
    let source = match xdp::source(&rules) {
        Ok(source) => source,
        Err(error) => {
            terminal.print_diagnostics(sources, &[error.diagnostic(&set.compiled[error.filter].rule)]);
            return Ok(Status::Failed);
        }
    };
    match output {
        None => print(source.as_bytes())?,
        Some(path) if path.extension().is_some_and(|ending| ending == "o") => compile(&source, path)?,
        Some(path) => write_file(path, source.as_bytes())?,
    }
    Ok(Status::Done)
}

/// Compiles with clang to an object file, which is renamed to `path` once it is complete.
fn compile(source: &str, path: &Path) -> Result<(), HostError> {
    let failed = |error: std::io::Error| {
        HostError::new(HostCode::Tool, format!("cannot run `clang`, which compiles programs for XDP: {error}"))
            .help("install it, or write C with `-o FILE.c` and compile that elsewhere")
    };
    let folder = tempfile::tempdir()
        .map_err(|error| HostError::new(HostCode::System, format!("no temporary folder: {error}")))?;
    let object = folder.path().join("rules.o");
    let mut clang = Command::new("clang");
    clang.args(["-O2", "-g", "-target", "bpfel", "-x", "c", "-", "-c", "-o"]).arg(&object);
    // The location of <asm/types.h> on Debian.
    clang.arg(format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH));
    let mut child = clang.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().map_err(failed)?;
    // If clang does not read all of it, its output below has the reason.
    let _ = child.stdin.take().expect("it is a pipe").write_all(source.as_bytes());
    let output = child.wait_with_output().map_err(failed)?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr).into_owned();
        let first = messages.lines().find(|line| line.contains("error")).unwrap_or("it prints no error").to_owned();
        let help = "more rules than the kernel allows, or no headers: `apt install linux-libc-dev`; `-o FILE.c` writes \
                    the program";
        return Err(
            HostError::new(HostCode::ToolFailure, format!("clang cannot compile the rules: {first}")).help(help)
        );
    }
    let bytes = std::fs::read(&object).map_err(|error| HostError::file("read", object.display(), &error))?;
    let mut file = NewFile::create(path)?;
    file.write_all(&bytes).map_err(|error| HostError::file("write", path.display(), &error))?;
    file.finish()
}
