//! Fused processes keep their timers and fairness: waits with `after`, `yield` and `else` of several members, all
//! processes fused, produce the same messages in the same order, and the result round-trips through its text.

use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::report::Outcome;
use quaject_esp_ir::ir::{ProcessId, Program};
use quaject_esp_ir::read::read;
use quaject_esp_ir::{text::print, verify::verify};
use quaject_esp_opt::fuse::fuse;
use quaject_esp_opt::limits::Limits;
use quaject_esp_opt::refusal::Refusal;
use quaject_test_environment::{Script, act, compile};
use std::path::Path;

/// The output, and the exit status; none if the program does not end.
fn run(program: &Program, text: &str) -> (Vec<String>, Option<u8>) {
    let mut environment = Script::new(program, text);
    let mut interpreter = Interpreter::new(program, environment.checks).expect("test programs are small");
    loop {
        match interpreter.run(&mut environment, 100_000) {
            Outcome::Ended(status) => return (environment.log, Some(status)),
            Outcome::Budget => return (environment.log, None),
            outcome => assert!(act(&mut environment, &outcome), "{:?}: {outcome:?}", environment.log),
        }
    }
}

fn all_fused(program: &Program) -> Result<Program, Refusal> {
    let all: Vec<ProcessId> = (0..program.processes.len() as u32).map(ProcessId).collect();
    let fused = fuse(program, &all, false, Limits::default())?.program;
    let errors: Vec<String> = verify(&fused).iter().map(|error| error.text(&fused)).collect();
    assert!(errors.is_empty(), "{errors:#?}\n{}", print(&fused));
    let again = read(&print(&fused)).expect("what is printed can be read");
    assert_eq!(print(&again), print(&fused));
    Ok(fused)
}

/// The output of the program, which its fused form has as well.
fn check(text: &str, offers: &str) -> (Vec<String>, Option<u8>) {
    let program = compile(Path::new("test.esp"), text);
    let fused = all_fused(&program).unwrap_or_else(|refusal| panic!("{refusal:?}: {text}"));
    let (mut expected, mut found) = (run(&program, offers), run(&fused, offers));
    // The times of inputs are not part of the output.
    [&mut expected, &mut found].into_iter().for_each(|(log, _)| log.retain(|line| !line.starts_with("< ")));
    assert_eq!(found, expected, "{}", print(&fused));
    expected.0.retain(|line| !line.starts_with("time "));
    expected
}

fn sent(numbers: &[i32]) -> Vec<String> {
    numbers.iter().map(|number| format!("> o {number}")).collect()
}

/// A reader that stops after two timeouts, for streams of 0, 1 and 2 numbers.
#[test]
fn timeouts_occur() {
    let text = "channel i(int) external out; channel c(int); channel o(int) external in;\n\
        process s { while { in(i, $x); if (x == 0) break; out(c, x); } }\n\
        process t { var timeouts = 0; while { alt { in(c, $x) { out(o, x); }\n\
        after (5 ms) { timeouts += 1; out(o, 100 + timeouts); if (timeouts == 2) break; } } } }\n";
    for count in 0..3 {
        let offers: String = (1..=count).chain([0]).map(|number| format!("; offer i {number}\n")).collect();
        let (log, ended) = check(text, &offers);
        assert_eq!((log.len(), ended), (count + 2, Some(0)), "{log:?}");
    }
}

/// A timer starts when its process starts to wait, independently of other processes and their timers.
#[test]
fn each_member_keeps_its_timer() {
    let text = "channel c(int); channel d(int); channel o(int) external in;\n\
        process a { for k in 0..5 { alt { after (2 ms) { } } out(c, k); } }\n\
        process b { alt { after (5 ms) { } } out(d, 50); alt { after (4 ms) { } } out(d, 90); }\n\
        process t { for k in 0..7 { alt { in(c, $x) { out(o, x); } in(d, $x) { out(o, x); } } } }\n";
    assert_eq!(check(text, ""), (sent(&[0, 1, 50, 2, 3, 90, 4]), Some(0)));
}

/// A timeout of zero, a very long unsigned one, one with a false guard, and a computed one.
#[test]
fn timeouts_have_their_duration() {
    let text = "channel c(int); channel o(int) external in;\n\
        process a { alt { after (-1 s) { out(c, 1); } } var n = 3; alt { after (n ms) { out(c, 2); } }\n\
        var long: u64 = 0xffff_ffff_ffff_ffff; alt { after (long s) { out(c, 0); } when (n > 5) after (0 s) { out(c, 0); }\n\
        after (9 ms) { out(c, 3); } } }\n\
        process t { in(c, $x); out(o, x); alt { in(c, x) { } after (1 ms) { out(o, 10); in(c, x); } } out(o, x);\n\
        in(c, x); out(o, x); }\n";
    assert_eq!(check(text, ""), (sent(&[1, 10, 2, 3]), Some(0)));
}

/// A process that yields lets others run, and runs after them, however many yield.
#[test]
fn every_yielding_process_runs() {
    let text = "channel c(int); channel o(int) external in;\n\
        process a { while { yield; } }\nprocess b { var n = 0; while { yield; n += 1; if (n == 9) out(c, n); } }\n\
        process s { yield; out(c, 1); yield; out(c, 2); }\n\
        process t { var sum = 0; for k in 0..3 { in(c, $x); sum += x; } out(o, sum); exit(3); }\n";
    assert_eq!(check(text, ""), (sent(&[12]), Some(3)));
}

/// Two processes that poll forever, with and without `yield`, are both served.
#[test]
fn no_process_starves_next_to_one_that_polls() {
    for pause in ["", "yield;"] {
        let text = format!(
            "channel c(int); channel d(int); channel o(int) external in;\n\
             process A {{ var n = 0; while {{ alt {{ in(c, _) {{ }} else {{ n += 1; {pause} if (n == 9) exit(7); }} }} }} }}\n\
             process B {{ while {{ alt {{ in(d, _) {{ }} else {{ {pause} }} }} }} }}\n\
             process D {{ out(c, 1); out(d, 1); }}\n"
        );
        let program = compile(Path::new("test.esp"), &text);
        match all_fused(&program) {
            Ok(fused) => assert_eq!(run(&fused, ""), (Vec::new(), Some(7)), "{}", print(&fused)),
            Err(refusal) => assert!(matches!(refusal, Refusal::MayStarve { .. }), "{refusal:?}"),
        }
    }
}
