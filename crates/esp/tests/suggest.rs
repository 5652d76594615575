//! Suggested fast paths save as many steps of the flow IR as those written by hand, for the filter programs of the
//! paper "Fast Paths in Concurrent Programs" and its Figure 2, and preserve the behaviour of the program.

use quaject_esp::{Emit, File, Loader, Mode, Operation, Options, Profile, Source, SuggestError, compile, suggest};
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::Program;
use quaject_esp_syntax::span::FileId;
use quaject_test_environment::{Script, act};
use quaject_test_support::quick_run;
use std::path::{Path, PathBuf};

const BUDGET: u64 = 1_000_000_000;

struct Folder(PathBuf);

impl Loader for Folder {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        let bytes = std::fs::read(self.0.join(path)).map_err(|error| error.to_string())?;
        Ok((path.to_string(), bytes))
    }
}

fn file(path: &Path) -> File {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    File { name: path.display().to_string(), bytes }
}

/// The program with these fast paths, all of which can be formed.
fn with(root: &File, paths: Option<File>, folder: &Path) -> Program {
    let mode = if paths.is_some() { Mode::FastPath } else { Mode::Process };
    let source = Source { root: root.clone(), fast_paths: paths.into_iter().collect() };
    let options = Options { mode, ..Options::new(Emit::Ir) };
    let compiled = compile(source, &mut Folder(folder.to_path_buf()), &options);
    let outputs = compiled.outputs.unwrap_or_else(|_| panic!("{:?}", compiled.diagnostics));
    for attempt in &outputs.path_attempts {
        assert!(attempt.result.is_ok(), "{}", attempt.text(&outputs.ir));
    }
    outputs.ir
}

/// The visible actions of a run, its number of steps, and its profile.
fn run(program: &Program, script: &str) -> (Vec<String>, u64, Profile) {
    let mut environment = Script::new(program, script);
    let mut interpreter = Interpreter::new(program, Checks::Off).expect("the programs are small");
    interpreter.profile();
    loop {
        let outcome = interpreter.run(&mut environment, BUDGET);
        assert_ne!(outcome, Outcome::Budget, "the programs end");
        if !act(&mut environment, &outcome) {
            break;
        }
    }
    let run = interpreter.take_profile().expect("it was asked for");
    (environment.log, interpreter.executed(), Profile::new(program, &run))
}

/// Suggests a path by a profile of one input and compares it on another input with the path written by hand: it has at
/// most ten lines, preserves the behaviour, and takes at most 1.1 times the steps.
fn check(program: &str, by_hand: &str, profiled: &str, script: &str) {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let path = here.join(program);
    let folder = path.parent().expect("a program lies in a folder");
    let root = file(&path);
    let plain = with(&root, None, folder);
    let (_, _, profile) = run(&plain, profiled);
    assert_eq!(Profile::parse(&profile.text()).as_ref(), Ok(&profile), "the text says everything");
    let source = Source { root: root.clone(), fast_paths: Vec::new() };
    let suggestion = suggest(&source, &mut Folder(folder.to_path_buf()), &profile).expect("a path can be made");
    assert!(suggestion.text.lines().count() <= 10, "{}", suggestion.text);
    let suggested = File { name: "suggested.fp".into(), bytes: suggestion.text.clone().into_bytes() };
    let (shown, in_processes, _) = run(&plain, script);
    let (shown_by_hand, steps_by_hand, _) = run(&with(&root, Some(file(&here.join(by_hand))), folder), script);
    let (shown_suggested, steps, _) = run(&with(&root, Some(suggested), folder), script);
    assert_eq!(shown_by_hand, shown);
    assert_eq!(shown_suggested, shown, "{}", suggestion.text);
    println!("{program}: {in_processes} steps, by hand {steps_by_hand}, suggested {steps}");
    assert!(steps * 10 <= steps_by_hand * 11, "{steps}, by hand {steps_by_hand}:\n{}", suggestion.text);
    assert!(steps < in_processes, "{steps}, in processes {in_processes}:\n{}", suggestion.text);
}

/// An offer of this many bytes, of which no two neighbours are equal, so that run-length encoding does not shorten
/// them.
fn array(length: u32) -> String {
    let bytes: String = (0..length).map(|index| format!("\\x{:02x}", 1 + index * 7 % 15)).collect();
    format!("// offer inputC \"{bytes}\" 3\n")
}

#[test]
fn filters() {
    for number in 1..=4 {
        let folder = "bench/filters-process/esp";
        let program = format!("{folder}/program{number}.esp");
        let by_hand = format!("{folder}/program{number}.fp");
        check(&program, &by_hand, &array(500), &array(2_000));
    }
}

#[test]
fn figure_2() {
    let requests = |count: u32| -> String {
        let one = |index: u32| format!("// offer hostSendRequestC {} {}\n", index % 8 * 4096, index % 4 * 4096);
        let externs = "// extern translationUnavailable 0\n// extern translate 7\n// extern preparePacket 1\n";
        (0..count).map(one).collect::<String>() + externs
    };
    check("examples/vmmc-send/send.esp", "examples/vmmc-send/figure5.fp", &requests(20), &requests(200));
}

/// The path of the complete chain exceeds the limits.
#[test]
fn members_that_make_a_path_too_large_are_excluded() {
    if quick_run("a path that must become smaller many times") {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let root = file(&folder.join("sieve.esp"));
    let plain = with(&root, None, &folder);
    let (shown, _, profile) = run(&plain, "");
    let source = Source { root: root.clone(), fast_paths: Vec::new() };
    let suggestion = suggest(&source, &mut Folder(folder.clone()), &profile).expect("a path can be made");
    let members: Vec<&str> = suggestion.members.iter().map(String::as_str).collect();
    assert_eq!(members[..3], ["numbers", "sieve[0]", "sieve[1]"]);
    assert_eq!(suggestion.excluded.last().map(String::as_str), Some("sieve[6]"), "at most eight take part");
    let suggested = File { name: "suggested.fp".into(), bytes: suggestion.text.into_bytes() };
    let (mut primes, mut primes_suggested) = (shown, run(&with(&root, Some(suggested), &folder), "").0);
    // The order in which two processes output their primes depends on the schedule.
    primes.sort();
    primes_suggested.sort();
    assert_eq!(primes_suggested, primes);
}

/// The error for a profile of one run of this program, after a change.
fn refused(text: &str, change: impl Fn(&mut Profile)) -> SuggestError {
    let root = File { name: "p.esp".into(), bytes: text.into() };
    let plain = with(&root, None, Path::new("."));
    let (_, _, mut profile) = run(&plain, text);
    change(&mut profile);
    let source = Source { root, fast_paths: Vec::new() };
    suggest(&source, &mut Folder(PathBuf::from(".")), &profile).expect_err("there is nothing to suggest")
}

#[test]
fn nothing_to_suggest() {
    let echo = "// offer i 1\nchannel i(int) external out;\nchannel o(int) external in;\n\
                process P { while { in(i, $x); out(o, x); } }\n";
    assert_eq!(refused(&echo.replace("// offer", "// not"), |_| {}), SuggestError::NoCommunication);
    assert_eq!(refused(echo, |_| {}), SuggestError::NoPartner("P".into()));
    let other = Operation { process: "P".into(), statement: "o/in@7".into() };
    let foreign = refused(echo, |profile| profile.operations.push((other.clone(), 1)));
    assert_eq!(foreign, SuggestError::UnknownOperation(other));
    assert_eq!(refused("process P { }", |_| {}), SuggestError::NoCommunication);
}

#[test]
fn malformed_profiles_are_rejected() {
    let root = File {
        name: "p.esp".into(),
        bytes: b"channel c(int); process P { out(c, 1); } process Q { in(c, _); }".into(),
    };
    let (_, _, profile) = run(&with(&root, None, Path::new(".")), "");
    let text = profile.text();
    for end in 0..text.trim_end().len() {
        assert!(Profile::parse(&text[..end]).is_err(), "{}", &text[..end]);
    }
    for (old, new) in
        [("profile 1", "profile 2"), ("\"count\": 1", "\"count\": -1"), ("\"steps\"", "\"step\""), ("operations", "x")]
    {
        assert!(Profile::parse(&text.replace(old, new)).is_err(), "{new}");
    }
}
