//! Generates C from a program's text, builds it with a `main` and runs it.

use quaject_esp_gen::RUNTIME_HEADER;
use quaject_esp_gen::c::{Options, Output, generate};
use quaject_esp_lower::lower;
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use quaject_test_support::{Effort, tool};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err(format!("nothing to import: {path}"))
    }
}

/// Options under which generated C has no warning.
pub(crate) const STRICT: [&str; 6] = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-g"];
const SANITIZERS: [&str; 2] = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

/// The generated C of a program.
pub(crate) fn output(name: &str, source: &str, options: &Options) -> Output {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new(name, source.to_string()));
    let analysis = analyze(&mut sources, root, &mut NoImports);
    let program = analysis.program.unwrap_or_else(|| panic!("{name} is wrong: {:?}", analysis.diagnostics));
    generate(&lower(&program, &sources), options)
}

/// Writes the generated C of a program and the run-time header into a folder.
pub(crate) fn write(folder: &Path, name: &str, source: &str, options: &Options) {
    let output = output(name, source, options);
    std::fs::create_dir_all(folder.join("quaject")).expect("the folder is ours");
    std::fs::write(folder.join("quaject/esp.h"), RUNTIME_HEADER).expect("the folder is ours");
    std::fs::write(folder.join(&options.header_name), output.header).expect("the folder is ours");
    std::fs::write(folder.join("program.c"), output.source).expect("the folder is ours");
}

/// Runs a command that must succeed in silence.
pub(crate) fn succeed(command: &mut Command) -> String {
    let output = command.output().expect("the tool starts");
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && complaint.is_empty(), "{command:?}: {} {complaint}", output.status);
    String::from_utf8(output.stdout).expect("it prints text")
}

/// Whether a compiler links programs with sanitizers. Each compiler is probed once.
fn has_sanitizers(compiler: &'static str, folder: &Path) -> bool {
    static ANSWERS: Mutex<BTreeMap<&str, bool>> = Mutex::new(BTreeMap::new());
    let mut answers = ANSWERS.lock().unwrap_or_else(PoisonError::into_inner);
    *answers.entry(compiler).or_insert_with(|| {
        let probe = folder.join("probe.c");
        std::fs::write(&probe, "int main(void) { return 0; }\n").expect("the folder is ours");
        let built = Command::new(compiler).args(SANITIZERS).arg("-o").arg(folder.join("probe")).arg(&probe).output();
        built.is_ok_and(|built| built.status.success())
    })
}

/// Compiles a program with its `main` and compares what that prints.
pub(crate) fn check(source: &str, options: &Options, main: &str, expected: &str) {
    for candidate in Effort::wanted().pick(&["gcc"][..], &["clang", "gcc"], &["clang", "gcc"]) {
        let Some(compiler) = tool(&[candidate]) else { continue };
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        write(folder.path(), "program.esp", source, options);
        std::fs::write(folder.path().join("main.c"), main).expect("the folder is ours");
        let mut build = Command::new(compiler);
        build.current_dir(folder.path()).args(STRICT).args(["-I.", "-o", "main", "main.c", "program.c"]);
        if has_sanitizers(compiler, folder.path()) {
            build.args(SANITIZERS);
        }
        succeed(&mut build);
        let printed = succeed(&mut Command::new(folder.path().join("main")));
        assert_eq!(printed, expected, "{compiler}");
    }
}
