//! C programs for the card, compiled by clang. Knows no processor.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use quaject_test_support::tool;
use quaject_vmmc::{Image, ObjectFile, RUNTIME_SOURCE, link};

/// Where programs start, and where memory ends.
pub(crate) const BASE: u32 = 0x1000;
/// The bytes of a card's memory.
pub(crate) const MEMORY_BYTES: u32 = 1 << 20;

/// A clang with the LANai back end.
pub(crate) fn clang() -> Option<&'static str> {
    static HAS_LANAI: OnceLock<Option<&'static str>> = OnceLock::new();
    *HAS_LANAI.get_or_init(|| {
        let name = tool(&["clang-14"])?;
        let targets = Command::new(name).arg("--print-targets").output().expect("it ran for its version");
        assert!(String::from_utf8_lossy(&targets.stdout).contains("lanai"), "`{name}` has no target lanai");
        Some(name)
    })
}

/// The object of a C source for LANai.
pub(crate) fn compile(clang: &str, source: &str, level: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder for one object");
    let (input, output) = (folder.path().join("program.c"), folder.path().join("program.o"));
    fs::write(&input, source).expect("the folder is writable");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let run = Command::new(clang)
        .args(["--target=lanai", "-ffreestanding", "-std=c11", "-Wall", "-Wextra", "-Werror", level, "-c", "-I"])
        .arg(include)
        .arg("-o")
        .args([&output, &input])
        .output()
        .expect("the compiler starts");
    assert!(run.status.success(), "{}\n{source}", String::from_utf8_lossy(&run.stderr));
    fs::read(output).expect("the compiler wrote it")
}

/// The object of the run-time routines.
pub(crate) fn runtime(clang: &str) -> &'static [u8] {
    static OBJECT: OnceLock<Vec<u8>> = OnceLock::new();
    OBJECT.get_or_init(|| compile(clang, RUNTIME_SOURCE, "-O2"))
}

/// A program of one source and the run-time routines.
pub(crate) fn build(clang: &str, source: &str, level: &str) -> Image {
    let object = compile(clang, source, level);
    let objects =
        [ObjectFile { name: "program.o", bytes: &object }, ObjectFile { name: "runtime.o", bytes: runtime(clang) }];
    link(&objects, BASE, MEMORY_BYTES).unwrap_or_else(|errors| panic!("{errors:#?}\n{source}"))
}
