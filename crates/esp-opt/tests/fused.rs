//! Fused programs do what the programs do: every program of the flow IR's own tests, all its processes fused to one, is
//! run in the same world. Programs that do the same under every schedule must send and end alike.

use quaject_esp_ir::interpreter::Interpreter;
use quaject_esp_ir::ir::{ProcessId, Program};
use quaject_esp_ir::read::read;
use quaject_esp_ir::report::Outcome;
use quaject_esp_ir::{text::print, verify::verify};
use quaject_esp_opt::fuse::{Limits, Refusal, fuse};
use quaject_test_world::{Script, act, by_channel, compile};
use std::path::{Path, PathBuf};

const BUDGET: u64 = 100_000;

fn run(program: &Program, text: &str) -> (Vec<String>, String) {
    let mut world = Script::new(program, text);
    let mut interpreter = Interpreter::new(program, world.checks).expect("test programs are small");
    let outcome = loop {
        let outcome = interpreter.run(&mut world, BUDGET);
        if !act(&mut world, &outcome) {
            break outcome;
        }
    };
    let outcome = match outcome {
        Outcome::Budget => "goes on".to_string(),
        Outcome::Ended(status) => format!("ended with {status}"),
        Outcome::Faulted(report) => format!("fault {:?} at {:?}", report.fault, report.location),
        Outcome::Resting(_) => "resting".to_string(),
    };
    (world.log, outcome)
}

fn fused(program: &Program, text: &str) -> Result<Program, Refusal> {
    let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
    let checked = Script::new(program, text).checks == quaject_esp_ir::step::Checks::On;
    let fused = fuse(program, &all, checked, Limits::default())?.program;
    let errors: Vec<String> = verify(&fused).iter().map(|error| error.text(&fused)).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{}", print(&fused));
    Ok(fused)
}

fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder of programs").map(|e| e.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "esp" || extension == "ir"));
    files.sort();
    files
}

#[test]
fn programs_of_the_flow_ir() {
    let mut table = String::new();
    let mut failures = Vec::new();
    for path in programs("../esp-ir/tests/programs") {
        let text = std::fs::read_to_string(&path).expect("a readable program");
        let name = path.file_stem().expect("a file").to_string_lossy().to_string();
        let program = match path.extension() {
            Some(extension) if extension == "esp" => compile(&path, &text),
            Some(_) | None => read(&text).expect("well-formed"),
        };
        match fused(&program, &text) {
            Err(refusal) => table.push_str(&format!("{name}: {refusal:?}\n")),
            Ok(fused) => {
                table.push_str(&format!("{name}: fused\n"));
                let ((log, outcome), (fused_log, fused_outcome)) = (run(&program, &text), run(&fused, &text));
                let same = by_channel(&log) == by_channel(&fused_log) && outcome == fused_outcome;
                let confluent = Script::new(&program, &text).confluent;
                if !same && (confluent || std::env::var("ALL").is_ok()) {
                    failures.push(format!("{name}:\n{log:?}\n{outcome}\nfused:\n{fused_log:?}\n{fused_outcome}"));
                }
            }
        }
    }
    if std::env::var("SHOW").is_ok() {
        println!("{table}");
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Nodes of the product of all processes.
fn nodes(text: &str) -> usize {
    let program = compile(Path::new("test.esp"), text);
    let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
    let fused = fuse(&program, &all, false, Limits::default()).expect("it can be fused");
    assert_eq!(verify(&fused.program).len(), 0, "{}", print(&fused.program));
    fused.nodes
}

/// A source of integers, `stages` processes that exchange neighbours, and a sink.
fn swaps(stages: usize) -> String {
    let mut text = "channel in0(int) external out; channel last(int) external in;\n".to_string();
    for stage in 0..=stages {
        text.push_str(&format!("channel c{stage}(int);\n"));
    }
    text.push_str("process source { while { in(in0, $x); out(c0, x); if (x == -1) break; } }\n");
    for stage in 0..stages {
        let next = stage + 1;
        text.push_str(&format!(
            "process swap{stage} {{ while {{ in(c{stage}, $a); if (a == -1) break; in(c{stage}, $b);\n\
             if (b == -1) {{ out(c{next}, a); break; }} out(c{next}, b); out(c{next}, a); }} out(c{next}, -1); }}\n"
        ));
    }
    text.push_str(&format!(
        "process sink {{ var sum = 0; while {{ in(c{stages}, $x); if (x == -1) break; sum += x; }} out(last, sum); }}\n"
    ));
    text
}

#[test]
fn a_chain_grows_by_the_stage() {
    let counts: Vec<usize> = [1, 2, 3, 4, 8, 12].iter().map(|stages| nodes(&swaps(*stages))).collect();
    expect_test::expect!["[22, 31, 40, 49, 85, 121]"].assert_eq(&format!("{counts:?}"));
}

#[test]
fn what_cannot_be_fused_says_why() {
    let refusal = |text: &str, limits: Limits| {
        let program = compile(Path::new("test.esp"), text);
        let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
        fuse(&program, &all, false, limits).expect_err("it cannot be fused")
    };
    let none = Limits { nodes: 0, ..Limits::default() };
    assert_eq!(refusal(&swaps(1), none), Refusal::TooLarge { nodes: 0 });
    let few = Limits { instructions: 10, ..Limits::default() };
    assert!(matches!(refusal(&swaps(1), few), Refusal::TooLarge { .. }));
    let text = "channel c(int); process a { alt { after (1 ms) { } out(c, 1) { } } } process b { in(c, _); }";
    assert!(matches!(refusal(text, Limits::default()), Refusal::Unsupported { what: "`after`", .. }));
}
