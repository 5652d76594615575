//! Runs each program of `programs/` (text form of the IR, or ESP) and compares the result with the `.out` file of its
//! name: the steps of the reference schedule, the messages, and the outcome. Comments in the program define its
//! environment:
//!
//! ```text
//!   ; offer c 1      a message on channel c            ; extern f 1     the result of a call
//!   ; later c 1      a message at quiescence           ; checked        with checks of arithmetic
//!   ; close c        after the messages of c           ; confluent      same messages and outcome in every schedule
//!   ; accept c 2     at most this many messages
//! ```
//!
//! Each program is also verified, printed and read back; each trace is replayed; each is run under random schedules.
//! `UPDATE_EXPECT=1` writes the expected files.

use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::replay::{RandomScheduler, replay};
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Step};
use quaject_esp_ir::ir::{ChannelId, Program};
use quaject_esp_ir::{read::read, text::print, verify::verify};
use quaject_test_environment::{Script, act, by_channel, compile};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

/// The maximum number of IR steps of a run, in one piece or in many.
const BUDGET: u64 = 100_000;

fn outcome_text(program: &Program, outcome: &Outcome) -> String {
    let names = |channels: &[ChannelId]| {
        channels.iter().map(|id| format!(" {}", program.channels[id.0 as usize].name)).collect::<String>()
    };
    match outcome {
        Outcome::Budget => "budget used up".to_string(),
        Outcome::Ended(status) => format!("ended with {status}"),
        Outcome::Faulted(report) => report.text(program),
        Outcome::Quiescent(resting) => {
            let time = resting.deadline_ns.map(|time| format!(" until {time}")).unwrap_or_default();
            format!("resting{time}; reading{}; writing{}", names(&resting.readable), names(&resting.writable))
        }
    }
}

/// Runs to the end. The environment acts at quiescence. The trace includes visible actions.
fn run_reference<'p>(program: &'p Program, text: &str) -> (Vec<Step>, Script<'p>, Outcome, String) {
    let mut environment = Script::new(program, text);
    let mut interpreter = Interpreter::new(program, environment.checks).expect("test programs are small");
    interpreter.record();
    let (mut trace, mut transcript, mut logged) = (Vec::new(), String::new(), 0);
    loop {
        let outcome = interpreter.run(&mut environment, 1);
        for step in interpreter.take_trace() {
            writeln!(transcript, "{step}").unwrap();
            trace.push(step);
        }
        let acted = act(&mut environment, &outcome);
        for line in &environment.log[logged..] {
            writeln!(transcript, "{line}").unwrap();
        }
        logged = environment.log.len();
        let over = interpreter.executed() > BUDGET || trace.len() > 2000;
        if !acted && (outcome != Outcome::Budget || over) {
            return (trace, environment, outcome, transcript);
        }
    }
}

fn check_file(path: &Path) {
    let text = std::fs::read_to_string(path).expect("a readable program");
    let name = path.display();
    let program = match path.extension() {
        Some(extension) if extension == "esp" => compile(path, &text),
        Some(_) | None => read(&text).unwrap_or_else(|error| panic!("{name}:{error}")),
    };
    let printed = print(&program);
    let again = read(&printed).unwrap_or_else(|error| panic!("{name}: printed: {error}\n{printed}"));
    assert_eq!(print(&again), printed, "{name}: printing and reading changes the program");
    let errors: Vec<String> = verify(&program).iter().map(|error| error.text(&program)).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");

    let (trace, after, outcome, transcript) = run_reference(&program, &text);
    let log = after.log;
    let expected = format!("{transcript}{}\n", outcome_text(&program, &outcome));
    expect_test::expect_file![path.with_extension("out")].assert_eq(&expected);

    // A run in one piece makes the same choices as one in the smallest pieces.
    let mut environment = Script::new(&program, &text);
    let checks = environment.checks;
    let mut interpreter = Interpreter::new(&program, checks).expect("test programs are small");
    interpreter.record();
    let whole = loop {
        let outcome = interpreter.run(&mut environment, BUDGET);
        if !act(&mut environment, &outcome) {
            break outcome;
        }
    };
    if whole != Outcome::Budget && outcome != Outcome::Budget {
        assert_eq!((interpreter.take_trace(), &whole), (trace.clone(), &outcome), "{name}: in one piece");
        // The run of the reference schedule is one of the semantics.
        let mut environment = Script::new(&program, &text);
        let (offered, unused) = (environment.later.len() - after.later.len(), after.later);
        for (channel, message) in environment.later.drain(..offered) {
            environment.offers[channel.0 as usize].push_back(message);
        }
        assert_eq!(environment.later, unused);
        let replayed = replay(&program, checks, &trace, &mut environment).expect("test programs are small");
        let replayed = replayed.unwrap_or_else(|error| panic!("{name}: {error}"));
        environment.log.retain(|line| !line.starts_with("time"));
        let visible: Vec<_> = log.iter().filter(|line| !line.starts_with("time")).cloned().collect();
        assert_eq!(environment.log, visible, "{name}: replay");
        assert_eq!(outcome_text(&program, &replayed), outcome_text(&program, &outcome), "{name}: replay");
    }
    for seed in 0..30 {
        let mut environment = Script::new(&program, &text);
        let mut random = RandomScheduler::new(&program, checks, seed).expect("test programs are small");
        let by_chance = loop {
            let outcome = random.run(&mut environment, 3000);
            if !act(&mut environment, &outcome) {
                break outcome;
            }
        };
        if environment.confluent {
            assert_eq!(outcome_text(&program, &by_chance), outcome_text(&program, &outcome), "{name}: seed {seed}");
            assert_eq!(by_channel(&environment.log), by_channel(&log), "{name}: seed {seed}");
        }
    }
}

#[test]
fn programs() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/programs");
    let entries = std::fs::read_dir(&directory).expect("the programs are there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable directory").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ir" || extension == "esp"));
    paths.sort();
    paths.iter().for_each(|path| check_file(path));
    assert!(paths.len() >= 60, "{} programs", paths.len());
}

/// While others are always ready, an external event is seen within 64 turns.
#[test]
fn the_environment_is_polled_every_64_turns() {
    let text = "channel c(int) external out; process a { while { yield; } } process b { in(c, $x); exit(x); }";
    let program = compile(Path::new("poll.esp"), text);
    for turns_before in [0, 1, 2, 63, 64, 65, 200] {
        let mut environment = Script::new(&program, "");
        let mut interpreter = Interpreter::new(&program, Checks::Off).expect("test programs are small");
        interpreter.record();
        let mut turns = 0;
        while turns < turns_before + 2 {
            assert_eq!(interpreter.run(&mut environment, 1), Outcome::Budget);
            turns += interpreter.take_trace().len();
        }
        environment.offers[0].push_back(vec![Datum::Int(7)]);
        assert_eq!(interpreter.run(&mut environment, 10_000), Outcome::Ended(7));
        let waited =
            interpreter.take_trace().iter().position(|step| *step == Step::FromEnvironment { instance: 1, branch: 0 });
        assert!(waited.is_some_and(|turns| turns <= 64), "{turns_before}: {waited:?}");
    }
}

/// Whether the program is in the same quiescent state after both environments.
fn is_same_state(text: &str, scripts: [&str; 2]) -> bool {
    let program = compile(Path::new("state.esp"), text);
    let [first, second] = scripts.map(|script| {
        let mut environment = Script::new(&program, script);
        let mut interpreter = Interpreter::new(&program, Checks::Off).expect("test programs are small");
        assert!(matches!(interpreter.run(&mut environment, BUDGET), Outcome::Quiescent(_)), "{script}");
        interpreter.state().clone()
    });
    first == second
}

/// States do not differ by dead registers and slots.
#[test]
fn dead_storage_is_cleared() {
    let declarations = "channel c(int) external out; channel d(int) external in; channel b(bytes[<=4]) external out;";
    let check = |process: &str, scripts, same| {
        assert_eq!(is_same_state(&format!("{declarations} {process}"), scripts), same, "{process}");
    };
    let ints = ["// offer c 1\n// offer c 2", "// offer c 7"];
    check("process p { while { in(c, $x); out(d, x * 3 + 1); } }", ints, true);
    check("process p { while { in(c, $x); if (x > 1) { yield; out(d, x); } } }", ints, true);
    check("process p { while { in(b, $s); out(d, s.len); } }", ["// offer b \"ab\"", "// offer b \"cd\""], true);
    check("process p { var last = 0; while { in(c, $x); out(d, last); last = x; } }", ints, false);
    check("process p { var sum = 0; while { in(c, $x); sum = sum + 1; out(d, sum); } }", ints, false);
}
