//! The C generated from the examples, as an audit sees it: compilers have no warnings, the static analyzer of gcc finds
//! nothing, and the violations of MISRA C:2012 are those that the book lists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use quaject_test_support::qj::qj_binary;
use quaject_test_support::{Effort, tool};

use super::repository;

/// The options of `qj build`, one line per form of the C.
const FORMS: [&[&str]; 8] = [
    &["--mode", "auto", "--style", "sans-io"],
    &["--mode", "process", "--style", "poll"],
    &["--mode", "fastpath", "--style", "sans-io"],
    &["--mode", "automata", "--style", "poll"],
    &["--mode", "process", "--style", "post"],
    &["--mode", "automata", "--style", "sans-io", "--checked"],
    &["--mode", "process", "--style", "sans-io", "--checked"],
    &["--mode", "auto", "--style", "post", "--prefix", "own"],
];

/// Parts of unions that their tag excludes are not written: gcc's analyses of initialisation do not see the tag.
const WARNINGS: [&str; 9] = [
    "-std=c99",
    "-Wall",
    "-Wextra",
    "-Wpedantic",
    "-Wconversion",
    "-Wsign-conversion",
    "-Wshadow",
    "-Wno-uninitialized",
    "-Werror",
];

/// Figure 2 has the text of its paper, which declares no functions.
const NOT_COMPLETE: &str = "vmmc-send/figure2.esp";

/// Every program of `examples/`, in order, without the parts of programs.
pub(crate) fn programs() -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![repository("examples")]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("examples are readable") {
            let path = entry.expect("examples are readable").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "esp") && !path.ends_with(NOT_COMPLETE) {
                let text = fs::read_to_string(&path).expect("examples are readable");
                found.extend((!text.lines().any(|line| line.starts_with("part of "))).then_some(path));
            }
        }
    }
    assert!(found.len() > 50, "the examples have moved");
    found.sort();
    found
}

/// Writes the C of a program into a folder, and gives the source.
pub(crate) fn generate(program: &Path, form: &[&str], folder: &Path) -> PathBuf {
    let mut command = Command::new(qj_binary());
    command.arg("build").arg(program).args(["--emit", "c"]).args(form).arg("-o").arg(folder);
    let output = command.output().expect("cargo built qj");
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    let source = program.file_name().expect("programs are files");
    folder.join(source).with_extension("c")
}

/// Asks a question about each item on all processors; the answers are complaints.
pub(crate) fn complaints<T: Sync>(items: &[T], ask: impl Fn(&T) -> Option<String> + Sync) -> Vec<String> {
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                // Each item is taken once; what it holds was there before the threads.
                while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let complaint = ask(item);
                    found.lock().expect("no thread has failed").extend(complaint);
                }
            });
        }
    });
    found.into_inner().expect("no thread has failed")
}

/// Compiles the C of a program without linking it; what the compiler says, if it refuses it or warns.
fn compile(compiler: &str, flags: &[&str], program: &Path, form: &[&str]) -> Option<String> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let source = generate(program, form, folder.path());
    let mut command = Command::new(compiler);
    command.current_dir(folder.path()).args(WARNINGS).args(flags).args(["-I.", "-c", "-o", "program.o"]).arg(source);
    let output = command.output().expect("the compiler starts");
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().take(20).collect();
    (!output.status.success() || !said.is_empty()).then(|| {
        format!("{compiler} {} on {} {}:\n{}", flags.join(" "), program.display(), form.join(" "), lines.join("\n"))
    })
}

/// The programs, each in so many forms; the forms of neighbours differ.
fn sample(programs: Vec<PathBuf>, forms: usize) -> Vec<(PathBuf, &'static [&'static str])> {
    let of = |(number, program): (usize, PathBuf)| {
        (0..forms).map(move |turn| (program.clone(), FORMS[(number + turn) % FORMS.len()]))
    };
    programs.into_iter().enumerate().flat_map(of).collect()
}

/// Every third program in two forms; in a long run, every program in all. Code generation of gcc also finds functions
/// that are never called.
#[test]
fn compilers_have_no_warnings() {
    let stride = Effort::wanted().pick(8, 3, 1);
    let some = programs().into_iter().step_by(stride).collect();
    let wanted = sample(some, Effort::wanted().pick(1, 2, FORMS.len()));
    for (compiler, flags) in [("gcc", ["-O1"]), ("clang", ["-fsyntax-only"])] {
        let Some(compiler) = tool(&[compiler]) else { continue };
        let found = complaints(&wanted, |(program, form)| compile(compiler, &flags, program, form));
        assert!(found.is_empty(), "{} of {}:\n{}", found.len(), wanted.len(), found.join("\n\n"));
    }
}

/// Programs whose analysis takes longer than that of all others together.
const LARGE: [&str; 8] = [
    "mqtt/broker.esp",
    "mqtt/model.esp",
    "nat/nat.esp",
    "ports/ports.esp",
    "tcpip/host.esp",
    "tcpip/model.esp",
    "tftp/client.esp",
    "usb/server.esp",
];

/// Every fifth program in one form; in a long run, every program in all.
#[test]
fn the_analyzer_of_gcc_finds_nothing() {
    let Some(compiler) = tool(&["gcc"]) else { return };
    let mut some = programs();
    let is_large = |program: &Path| LARGE.iter().any(|large| program.ends_with(large));
    some.retain(|program| Effort::wanted() == Effort::Soak || !is_large(program));
    let some = some.into_iter().step_by(Effort::wanted().pick(12, 5, 1)).collect();
    let wanted = sample(some, Effort::wanted().pick(1, 1, FORMS.len()));
    let found = complaints(&wanted, |(program, form)| {
        compile(compiler, &["-O1", "-fanalyzer", "-Wno-analyzer-use-of-uninitialized-value"], program, form)
    });
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), wanted.len(), found.join("\n\n"));
}

/// Programs that together have every construct of generated C, in forms that differ; the first is the smallest.
const CHECKED_FOR_MISRA: [(&str, &[&str]); 7] = [
    ("examples/patterns/ring.esp", &["--mode", "process", "--style", "post"]),
    ("examples/words.esp", &["--mode", "auto", "--style", "poll"]),
    ("examples/commstime.esp", &["--mode", "process", "--style", "sans-io"]),
    ("examples/stop-and-wait.esp", &["--mode", "automata", "--style", "sans-io"]),
    ("examples/patterns/watchdog.esp", &["--mode", "auto", "--style", "poll", "--checked"]),
    ("examples/pages.esp", &["--mode", "process", "--style", "sans-io"]),
    ("examples/filters/program1.esp", &["--mode", "process", "--style", "sans-io", "--prefix", "own"]),
];

/// The rules of MISRA C:2012 that the chapter lists as deviations: `| 15.1 | advisory | ...`.
fn listed_deviations() -> BTreeSet<String> {
    let chapter = fs::read_to_string(repository("docs/book/src/auditing.md")).expect("the chapter is in the book");
    let rows = chapter.lines().filter_map(|line| line.strip_prefix("| "));
    let numbers =
        rows.filter_map(|row| row.split(' ').next()).filter(|cell| cell.starts_with(|c: char| c.is_ascii_digit()));
    numbers.map(str::to_owned).collect()
}

/// The rules that the C of a program violates, or what else cppcheck says.
fn violated_rules(cppcheck: &str, program: &str, form: &[&str]) -> Result<BTreeSet<String>, String> {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let source = generate(&repository(program), form, folder.path());
    // Locations then are those of the C.
    let text = fs::read_to_string(&source).expect("the source has been written");
    let unmarked = text.lines().filter(|line| !line.starts_with("#line ")).flat_map(|line| [line, "\n"]);
    fs::write(&source, unmarked.collect::<String>()).expect("the folder is ours");
    let mut command = Command::new(cppcheck);
    command.current_dir(folder.path()).args(["--addon=misra", "--std=c99", "--quiet", "-I.", "--template={id}"]);
    let output = command.arg(source.file_name().expect("it is a file")).output().expect("cppcheck starts");
    let report = String::from_utf8_lossy(&output.stderr);
    let rule = |line: &str| {
        let rule = line.strip_prefix("misra-c2012-").map(str::to_owned);
        rule.ok_or_else(|| format!("{program} {}: {line}", form.join(" ")))
    };
    report.lines().map(rule).collect()
}

/// The table of the book is complete, and has no rule that generated C keeps.
#[test]
fn violations_of_misra_are_those_listed_in_the_book() {
    let Some(cppcheck) = tool(&["cppcheck"]) else { return };
    let count = Effort::wanted().pick(1, CHECKED_FOR_MISRA.len(), CHECKED_FOR_MISRA.len());
    let violated = Mutex::new(BTreeSet::new());
    let complaints = complaints(&CHECKED_FOR_MISRA[..count], |(program, form)| {
        match violated_rules(cppcheck, program, form) {
            Ok(rules) => violated.lock().expect("no thread has failed").extend(rules),
            Err(complaint) => return Some(complaint),
        }
        None
    });
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    let (violated, listed) = (violated.into_inner().expect("no thread has failed"), listed_deviations());
    let missing: Vec<&String> = violated.difference(&listed).collect();
    assert!(missing.is_empty(), "docs/book/src/auditing.md lacks {missing:?}");
    if count == CHECKED_FOR_MISRA.len() {
        let outdated: Vec<&String> = listed.difference(&violated).collect();
        assert!(outdated.is_empty(), "docs/book/src/auditing.md lists {outdated:?}, which generated C keeps");
    }
}
