//! The text form of the IR is complete: for each program of the repository, after each pass of the modes that fuse
//! processes or form fast paths, `read` of the printed program is the same program.

use quaject_esp::{Compiled, Dump, Emit, File, Loader, Mode, Optimiser, Options, Outputs, Source, compile};
use quaject_esp_ir::ir::{Location, Program, Terminator};
use quaject_esp_ir::{read::read, text::print, verify::verify};
use quaject_esp_syntax::span::FileId;
use quaject_test_support::Effort;
use std::path::{Path, PathBuf};

/// The programs of the repository, in files named `.esp`, in order.
fn program_files() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    let mut folders: Vec<PathBuf> =
        ["examples", "bench", "crates", "tests"].iter().map(|folder| root.join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder of the repository") {
            let path = entry.expect("an entry of a folder").path();
            if path.is_dir() && path.file_name() != Some("target".as_ref()) {
                folders.push(path);
            } else if path.extension() == Some("esp".as_ref()) {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

/// The specifications of fast paths in a folder.
fn path_files(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder of the repository");
    let files = entries.map(|entry| entry.expect("an entry of a folder").path());
    files.filter(|path| path.extension() == Some("fp".as_ref())).collect()
}

fn file(path: &Path) -> File {
    File { name: path.display().to_string(), bytes: std::fs::read(path).expect("a file of the repository") }
}

struct Folder<'a>(&'a Path);

impl Loader for Folder<'_> {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        let bytes = std::fs::read(self.0.join(path)).map_err(|error| error.to_string())?;
        Ok((path.to_string(), bytes))
    }
}

fn compile_file(path: &Path, fast_paths: Option<&Path>, mode: Mode) -> Compiled {
    let source = Source { root: file(path), fast_paths: fast_paths.into_iter().map(file).collect() };
    let dump = Dump { passes: vec!["all".into()] };
    let options = Options { mode, dump, optimiser: Optimiser::On, ..Options::new(Emit::Ir) };
    compile(source, &mut Folder(path.parent().expect("a file lies in a folder")), &options)
}

/// Panics unless the program is read back from its text after each pass; whether it has fused processes.
fn check_round_trip(outputs: &Outputs, at: &str) -> bool {
    for dumped in &outputs.dumped {
        let again = read(&dumped.text).unwrap_or_else(|error| panic!("{at}, after `{}`: {error}", dumped.pass));
        assert_eq!(print(&again), dumped.text, "{at}, after `{}`", dumped.pass);
    }
    let again = read(&print(&outputs.ir)).unwrap_or_else(|error| panic!("{at}: {error}"));
    assert_eq!(facts_of_members(&again), facts_of_members(&outputs.ir), "{at}");
    assert!(verify(&again).is_empty(), "{at}");
    outputs.ir.processes.iter().any(|process| !process.members.is_empty())
}

/// Data of fused processes, which the test compares directly: if the printer omitted them, texts would be equal all the
/// same.
fn facts_of_members(program: &Program) -> Vec<String> {
    let member = |location: Location| format!("{:?}", location.member);
    let mut facts = Vec::new();
    for process in &program.processes {
        facts.push(format!("{:?} {:?}", process.members, process.operations));
        for block in &process.body.blocks {
            facts.push(member(block.location));
            facts.extend(block.instructions.iter().map(|instruction| member(instruction.location)));
            if let Terminator::Wait(wait) = &block.terminator {
                facts.push(format!("{:?} {:?}", wait.observed, wait.members));
                facts.extend(wait.branches.iter().map(|branch| member(branch.location)));
            }
        }
    }
    facts
}

#[test]
fn every_program_is_read_back_from_its_text_after_every_pass() {
    let (mut fused, mut paths) = (0, 0);
    // A quick run reads a third of the programs.
    let step = Effort::wanted().pick(3, 1, 1);
    for path in program_files().into_iter().step_by(step) {
        let at = path.display().to_string();
        if let Ok(outputs) = compile_file(&path, None, Mode::Automata).outputs {
            fused += usize::from(check_round_trip(&outputs, &at));
        }
        for specification in path_files(path.parent().expect("a file lies in a folder")) {
            if let Ok(outputs) = compile_file(&path, Some(&specification), Mode::FastPath).outputs {
                check_round_trip(&outputs, &format!("{at} with {}", specification.display()));
                paths += outputs.ir.paths.len();
            }
        }
    }
    assert!(fused > 10 / step && paths > 5 / step, "{fused} programs with fused processes, {paths} fast paths");
}
