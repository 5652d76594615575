//! Fast paths are small: a program with its paths takes little more code than its processes alone.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use quaject_esp::{Emit, Emitted, File, Loader, Mode, Optimiser, Options, Source, compile};
use quaject_esp_gen::{RUNTIME_HEADER, c};
use quaject_esp_syntax::span::FileId;
use quaject_test_support::tool;
use std::path::{Path, PathBuf};
use std::process::Command;

const BENCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/filters-process/esp");

/// Files of the benchmark.
struct Files;

impl Loader for Files {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        let bytes = std::fs::read(format!("{BENCH}/{path}")).map_err(|error| error.to_string())?;
        Ok((path.to_string(), bytes))
    }
}

/// Bytes of machine code of a program of the benchmark, compiled by `qj build` and `gcc -O2`.
fn code_bytes(program: u32, mode: Mode) -> u64 {
    let folder =
        PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("size{program}-{mode:?}-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("quaject")).expect("the folder is ours");
    let file = |ending: &str| {
        let name = format!("{BENCH}/program{program}.{ending}");
        File { bytes: std::fs::read(&name).expect("the benchmark has this program"), name }
    };
    let options = c::Options { style: c::Style::SansIo, lines: c::LineMarks::None, ..c::Options::default() };
    let options = Options { mode, optimiser: Optimiser::On, ..Options::new(Emit::C(options)) };
    let outputs = compile(Source { root: file("esp"), fast_paths: vec![file("fp")] }, &mut Files, &options);
    let outputs = outputs.outputs.unwrap_or_else(|reason| panic!("program {program}: {reason:?}"));
    assert!(outputs.path_attempts.iter().all(|attempt| attempt.result.is_ok()));
    let Emitted::C(output) = outputs.emitted else { unreachable!("asked for C") };
    std::fs::write(folder.join("program.c"), output.source).expect("the folder is ours");
    std::fs::write(folder.join("program.h"), output.header).expect("the folder is ours");
    std::fs::write(folder.join("quaject/esp.h"), RUNTIME_HEADER).expect("the folder is ours");
    let gcc = Command::new("gcc").args(["-std=c99", "-O2", "-I.", "-c", "program.c"]).current_dir(&folder).status();
    assert!(gcc.expect("`tool` has started it").success());
    let size = Command::new("size").args(["-A", "program.o"]).current_dir(&folder).output();
    let text = String::from_utf8(size.expect("binutils come with gcc").stdout).expect("a table");
    let section = |line: &str| {
        let mut words = line.split_whitespace();
        let is_code = words.next().is_some_and(|name| name == ".text" || name == ".text.unlikely");
        words.next().filter(|_| is_code).and_then(|bytes| bytes.parse::<u64>().ok())
    };
    let bytes = text.lines().filter_map(section).sum();
    std::fs::remove_dir_all(Path::new(&folder)).expect("the folder is ours");
    bytes
}

#[test]
fn programs_with_paths_are_little_larger_than_their_processes() {
    if tool(&["gcc"]).is_none() {
        return;
    }
    for program in 1..=4 {
        let [alone, with] = [Mode::Process, Mode::FastPath].map(|mode| code_bytes(program, mode));
        assert!(with * 10 <= alone * 13, "program {program}: {with} bytes, without its path {alone}");
    }
}
