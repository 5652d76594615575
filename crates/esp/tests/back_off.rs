//! Back-off of fast paths: a path that takes a side exit before its entry has paid is bypassed, and entered again when
//! it pays. The back-off is code of the program, so that it is the same in every engine. Its cost in generated C is
//! counted by callgrind.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]

use quaject_esp::{Emit, Emitted, File, Loader, Mode, Options, Source, compile};
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::path_counters::Tally;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::{RUNTIME_HEADER, c};
use quaject_esp_ir::ir::Program;
use quaject_esp_syntax::span::FileId;
use quaject_test_environment::Script;
use quaject_test_support::{quick_run, tool};
use std::path::{Path, PathBuf};
use std::process::Command;

const BENCH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/filters-process");

/// Files of the benchmark.
struct Files;

impl Loader for Files {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        let bytes = std::fs::read(format!("{BENCH}/esp/{path}")).map_err(|error| error.to_string())?;
        Ok((path.to_string(), bytes))
    }
}

fn compiled(program: &str, path: &str, mode: Mode, emit: Emit) -> (Program, Emitted) {
    let file = |name: &str, text: &str| File { name: name.into(), bytes: text.as_bytes().to_vec() };
    let source = Source { root: file("p.esp", program), fast_paths: vec![file("p.fp", path)] };
    let compiled = compile(source, &mut Files, &Options { mode, ..Options::new(emit) });
    let messages: Vec<String> = compiled.diagnostics.iter().map(|diagnostic| diagnostic.message.clone()).collect();
    let outputs = compiled.outputs.unwrap_or_else(|reason| panic!("{reason:?}: {messages:#?}"));
    assert!(outputs.path_attempts.iter().all(|attempt| attempt.result.is_ok()));
    (outputs.ir, outputs.emitted)
}

/// The counters of a run that sends numbers through two processes, with a path for numbers of at least 16.
fn tally(numbers: &str, path: &str) -> Tally {
    let program = format!(
        "channel readC(int); channel writeC(int); channel sumC(int) external in;
         process read {{ for i in 0..2000 {{ out(readC, {numbers}); }} out(readC, -1); }}
         process flip {{ while {{ in(readC, $n); if (n < 16) out(writeC, n ^ 0x40); else out(writeC, n); if (n < 0) break; }} }}
         process write {{
           var sum: int = 0;
           while {{ in(writeC, $n); if (n < 0) break; sum = (sum + n) & 0xffff; }}
           out(sumC, sum);
         }}"
    );
    let (program, _) = compiled(&program, path, Mode::FastPath, Emit::Ir);
    let mut environment = Script::new(&program, "");
    let mut interpreter = Interpreter::new(&program, Checks::On).expect("the program is small");
    match interpreter.run(&mut environment, 10_000_000) {
        Outcome::Ended(0) => interpreter.tally(),
        outcome => panic!("{outcome:?}"),
    }
}

const PATH: &str = "fastpath large {
  process read  { statement readC/out@1 as R, readC/out@2; start R; follows R*; }
  process flip  { statement readC, writeC/out@1; start readC; exit readC; }
  process write { statement writeC, sumC; start writeC; exit writeC; }
}";

#[test]
fn entries_become_rarer_while_the_path_does_not_pay() {
    // Intervals of 2, 4, 8, 16, 32 and then 64 tests: the path is entered at the 1st, 4th, 9th, 18th, 35th, 68th, 133rd
    // test.
    let always = tally("1", PATH);
    assert_eq!(always.entries, 6 + (2000 - 68) / 65, "{always:?}");
    // From the 1001st test on it pays: it is entered at the 1043rd, and that run continues to the end.
    let later = tally("i < 1000 ? 1 : 20", PATH);
    assert_eq!(later.entries, 6 + (1043 - 68) / 65, "{later:?}");
    let slow = tally("1", "").communications;
    assert!(later.communications < slow / 2 + 200, "{later:?} of {slow}");
    // Two iterations pay, fewer do not: three consecutive large numbers, or one.
    let often = tally("i % 4 == 0 ? 1 : 20", PATH);
    assert!(often.entries > 450, "{often:?}");
    let seldom = tally("i % 2 == 0 ? 1 : 20", PATH);
    assert!(seldom.entries < 60, "{seldom:?}");
    // A run that pays resets the interval.
    let mixed = tally("i % 200 < 100 ? 1 : 20", PATH);
    assert!(mixed.communications < slow * 3 / 4, "{mixed:?} of {slow}");
}

/// Instructions per byte of a program of the benchmark, compiled by `gcc -O2`.
fn instructions(program: &str, mode: Mode) -> f64 {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{program}-{mode:?}-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("quaject")).expect("the folder is ours");
    let text = |ending: &str| {
        std::fs::read_to_string(format!("{BENCH}/esp/{program}.{ending}")).expect("the benchmark has this program")
    };
    let options = c::Options { style: c::Style::SansIo, lines: c::LineMarks::None, ..c::Options::default() };
    let (_, emitted) = compiled(&text("esp"), &text("fp"), mode, Emit::C(options));
    let Emitted::C(output) = emitted else { unreachable!("asked for C") };
    std::fs::write(folder.join("program.c"), output.source).expect("the folder is ours");
    std::fs::write(folder.join("program.h"), output.header).expect("the folder is ours");
    std::fs::write(folder.join("quaject/esp.h"), RUNTIME_HEADER).expect("the folder is ours");
    let built = Command::new("gcc")
        .args(["-std=c99", "-O2", "-I.", "-o", "program", "program.c", &format!("{BENCH}/main.c")])
        .current_dir(&folder)
        .status();
    assert!(built.expect("`tool` has started it").success());
    let count = |times: &str| {
        let log = folder.join("count");
        let ran = Command::new("valgrind")
            .args(["--tool=callgrind", "--quiet", &format!("--callgrind-out-file={}", log.display())])
            .arg(folder.join("program"))
            .arg(times)
            .output();
        assert!(ran.expect("`tool` has started it").status.success());
        let text = std::fs::read_to_string(&log).expect("callgrind writes its counts");
        let line = text.lines().find_map(|line| line.strip_prefix("summary:").or_else(|| line.strip_prefix("totals:")));
        line.expect("callgrind sums up").trim().parse::<f64>().expect("one number")
    };
    let each = (count("3") - count("1")) / 20_000.0;
    std::fs::remove_dir_all(Path::new(&folder)).expect("the folder is ours");
    each
}

#[test]
fn repeated_side_exits_cost_little_and_back_off_costs_nothing_without_them() {
    if quick_run("the cost of side exits") {
        return;
    }
    if tool(&["valgrind"]).is_none() || tool(&["gcc"]).is_none() {
        return;
    }
    let [slow, fast] = [Mode::Process, Mode::FastPath].map(|mode| instructions("aborting", mode));
    assert!(fast <= 1.3 * slow, "{fast:.1} : {slow:.1}");
    // Instructions of the paths of the four programs; 16.3, 35.5, 42.7 and 58.0 before back-off was introduced.
    for (program, budget) in [("program1", 15.8), ("program2", 32.6), ("program3", 32.8), ("program4", 59.2)] {
        let each = instructions(program, Mode::FastPath);
        assert!(each <= 1.01 * budget, "{program}: {each:.1}, the budget is {budget}");
    }
}
