//! `qj verify` as a command: interruption, models that Promela cannot express, JSON, and refinement of fast paths.

mod support;

use quaject_test_support::processor::await_computing;
use quaject_test_support::{HANG_TIMEOUT, tool};
use snapbox::cmd::cargo_bin;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use support::Folder;

/// More states than a test can explore.
const MANY: &str = "channel c(u8) external in;
process p[6] { var n: u8 = 0; while { out(c, n); n = (n + 1) % 200; } }
";

fn start(folder: &Folder, arguments: &str) -> Child {
    let mut command = Command::new(cargo_bin!("qj"));
    command.current_dir(folder.path("")).env("CC", quaject_test_support::quick_compiler());
    command.args(arguments.split_whitespace());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("qj runs")
}

fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let started = Instant::now();
    while !holds() {
        assert!(started.elapsed() < HANG_TIMEOUT, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether a process has a handler for SIGINT.
fn listens(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).is_some_and(|mask| mask & 2 != 0)
}

/// The child of a process that runs this program.
fn child_of(process: u32, name: &str) -> bool {
    let children = std::fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
    let is_it = |child: &str| {
        let of = std::fs::read_to_string(format!("/proc/{child}/comm")).unwrap_or_default();
        of.trim() == name
    };
    children.split_whitespace().any(is_it)
}

fn interrupt(child: Child, name: &str) -> Output {
    let sent = Command::new("kill").arg(name).arg(child.id().to_string()).status().expect("kill runs");
    assert!(sent.success());
    let started = Instant::now();
    let output = child.wait_with_output().expect("qj ends");
    assert!(started.elapsed() < HANG_TIMEOUT, "{:?}", started.elapsed());
    output
}

/// The number of states in a verdict.
fn states(said: &str) -> u64 {
    let line = said
        .lines()
        .find(|line| line.contains(" states (") || line.contains("1 state ("))
        .unwrap_or_else(|| panic!("{said}"));
    line.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

#[test]
fn an_interrupted_check_reports_its_coverage_and_no_verdict() {
    let property = "model m { ltl \"[] (p[0]:n < 200)\"; }\nmodel n { ltl \"<> (p[0]:n == 1)\"; }\n";
    let small = "channel c(u32) external in;\nprocess p { var n: u32 = 0; while { out(c, n); n = n + 1; } }\n";
    let folder = Folder::with(&[("many.esp", MANY), ("both.esp", &format!("{MANY}{property}")), ("line.esp", small)]);
    for (arguments, name, number) in [
        ("verify many.esp", "-INT", 2),
        ("verify many.esp --threads 2 --no-reduction", "-TERM", 15),
        ("verify both.esp", "-INT", 2),
        ("verify line.esp --max-memory 100000", "-INT", 2),
    ] {
        let child = start(&folder, arguments);
        wait_until("qj listens to signals", || listens(child.id()));
        await_computing(child.id(), 30, arguments);
        let output = interrupt(child, name);
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.signal(), Some(number), "{arguments}: {said}");
        assert!(said.starts_with("NOT VERIFIED: interrupted before all states of "), "{arguments}: {said}");
        assert!(!said.contains("no errors") && states(&said) > 0, "{arguments}: {said}");
    }
    let child = start(&folder, "verify both.esp --json --starvation");
    wait_until("qj listens to signals", || listens(child.id()));
    let output = interrupt(child, "-INT");
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one line of JSON for the first model");
    assert_eq!((&json["verdict"], &json["limit"]), (&"unfinished".into(), &"interrupted".into()));
    assert_eq!(json["properties"][0]["verdict"], "open");
    assert_eq!(json["starvation_freedom"], "open");
}

#[test]
fn an_interrupt_ends_spin_too() {
    if quaject_test_support::tool(&["spin"]).is_none() {
        return;
    }
    let folder = Folder::with(&[("many.esp", MANY)]);
    let child = start(&folder, "verify many.esp --engine spin --max-memory 500");
    wait_until("Spin's verifier runs", || child_of(child.id(), "pan"));
    std::thread::sleep(Duration::from_secs(1));
    let output = interrupt(child, "-INT");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.signal(), Some(2), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.starts_with("NOT VERIFIED: interrupted before all states of "), "{said}");
    assert!(!said.contains("no errors") && states(&said) > 0, "{said}");
}

/// A model that Promela cannot express gets a diagnostic with code, location and help, as text and as JSON.
#[test]
fn models_beyond_promela_get_a_diagnostic() {
    let wide = "channel c(u64) external in;\nprocess p {\n  var n: u64 = 0;\n  while { out(c, n); n = n + 1; }\n}\n";
    let many = "channel c();\nprocess p { out(c); }\nprocess q[300] { yield; }\nprocess r { in(c); }\n";
    let long = "channel c(bytes[<=80]);\nprocess p { out(c, \"ab\"); }\nprocess q { in(c, _); }\n";
    let doubled: String =
        (1..14).map(|number| format!("type t{number} = record {{ a: t{0}, b: t{0} }};\n", number - 1)).collect();
    let large = format!("type t0 = u8;\n{doubled}process p {{ }}\nchannel c(t13);\nprocess q {{ in(c, _); }}\n");
    let label = "channel c();\nprocess p { out(c); #at }\nprocess q { in(c); }\n\
                 model m { ltl \"<> p@Lat\"; }\n";
    // Passed in every iteration but the first, where the loop begins as well.
    let round = "channel c();\nprocess p { while { out(c); #at } }\nprocess q { while { in(c); } }\n\
                 model m { ltl \"<> p@Lat\"; }\n";
    let duration = "const TURNS: array[2] of duration = [(1 s), (5 s)];\n\
                    process p { for i in 0..2 { assert(TURNS[i] >=\n(3 s)); } }\n";
    let undecided = "fn later(a: time, b: time) -> time {\n  return a < b ? b : a; }\n\
                     process p { assert(later(now, now) == now); }\n";
    let missing = label.replace("p@Lat", "p@Lto");
    let property = label.replace("p@Lat", "(p:count == 1)");
    for (name, program, code, place) in [
        ("wide", wide, "E0804", "wide.esp:4:"),
        ("many", many, "E0804", "many.esp:3:"),
        ("long", long, "E0804", "long.esp:1:"),
        ("large", &large, "E0804", "large.esp:16:"),
        ("label", label, "E0804", "label.esp:4:"),
        ("round", round, "E0804", "round.esp:4:"),
        ("duration", duration, "E0804", "duration.esp:3:"),
        ("undecided", undecided, "E0805", "undecided.esp:2:"),
        ("missing", &missing, "E0802", "missing.esp:4:"),
        ("property", &property, "E0802", "property.esp:4:"),
    ] {
        let file = format!("{name}.esp");
        let folder = Folder::with(&[(file.as_str(), program)]);
        for (command, status) in [("build --emit promela", 1), ("verify --engine spin", 2)] {
            let assert = folder.qj(&format!("{command} {file}")).assert().code(status);
            let said = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
            let wanted =
                [format!("error[{code}]: "), place.to_string(), "help: ".into(), format!("`qj explain {code}`")];
            assert!(wanted.iter().all(|wanted| said.contains(wanted)), "{command} {name}: {wanted:?}\n{said}");
        }
        let assert = folder.qj(&format!("--messages json build --emit promela {file}")).assert().code(1);
        let lines = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        let codes: Vec<serde_json::Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect();
        assert!(codes.iter().any(|line| line["code"] == code), "{name}: {lines}");
    }
}

/// Limits of Spin's verifier: a loop that only reads the environment, and many processes under fairness.
#[test]
fn spin_and_the_built_in_engine_agree() {
    if quaject_test_support::tool(&["spin"]).is_none() {
        return;
    }
    let environment = "channel c(u8) external out;\nchannel d() external out;\nchannel e() external out;\n\
                 process p { while { in(c, _); } }\n\
                 process q { while { alt { in(d) { } after (1 ms) { } } } }\n\
                 process r { while { #1 in(e); } }\nprocess s { while { yield; } }\n";
    let asked = format!("{environment}model m {{ ltl \"[] <> r@L1\"; }}\n");
    let crowd = |count: u32| {
        format!(
            "channel c();\nprocess p[{count}] {{ while {{ #1 out(c); }} }}\nprocess q {{ while {{ in(c); }} }}\n\
             model m {{ ltl \"[] <> p[0]@L1\"; }}\n"
        )
    };
    // The code between a label and its operation is unobservable.
    let before = "channel c();\nprocess p { var n = 0; while { #at n = 1 - n; assert(n >= 0); out(c); } }\n\
                  process q { while { in(c); } }\nmodel m { ltl \"[] <> p@Lat\"; }\n";
    let (five, six, seven, nine) = (crowd(4), crowd(5), crowd(6), crowd(8));
    for (name, program) in [
        ("environment", environment),
        ("asked", &asked),
        ("five", &five),
        ("six", &six),
        ("seven", &seven),
        ("nine", &nine),
        ("before", before),
    ] {
        let file = format!("{name}.esp");
        let folder = Folder::with(&[(file.as_str(), program)]);
        let assert = folder.qj(&format!("verify --engine spin {file}")).assert();
        let said = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
        let errors = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        let built_in = folder.qj(&format!("verify {file}")).assert();
        assert_eq!(assert.get_output().status.code(), built_in.get_output().status.code(), "{name}: {said}{errors}");
        assert!(said.starts_with("no errors in "), "{name}: {said}{errors}");
        let partial =
            said.contains("deadlock (not of some processes while others wait for the environment or the clock)");
        assert_eq!(partial, program.contains("external"), "{name}: {said}");
    }
}

/// A run of Spin is replayed on the program: with any messages of the environment, repeated, with any end; and where
/// the model over-approximates the program, if the program has the run.
#[test]
fn violations_of_spin_are_replayed_on_the_program() {
    let sent = "channel w(u8) external out;\nchannel c();\n\
                process p { var n = 0; while { in(w, $x); n = int(x); out(c); } }\nprocess q { while { idle in(c); } }\n";
    let one = "channel w() external out;\nchannel c();\nprocess p { in(w); #a out(c); }\nprocess q { idle in(c); }\n";
    let exits = "channel c();\nprocess p { var v = 0; out(c); v = 1; exit(0); }\nprocess q { in(c); }\n";
    let chooses = "channel c(u8) shared;\nprocess p { var x: u8 = 0; idle in(c, $y if y < 2); x = 1; }\n\
                   process q { idle out(c, 0); }\nprocess r { idle out(c, 3); }\n";
    for (name, program, model) in [
        ("sent", sent, "abstract range w.0 0..2; ltl \"[] (p:n < 1)\";"),
        ("bound", sent, "bound w 2; abstract range w.0 0..2; ltl \"[] (p:n < 1)\";"),
        ("often", sent, "bound w 2; ltl \"[] <> (p:n == 1)\";"),
        ("one", one, "ltl \"[] !p@La\";"),
        ("exits", exits, "ltl \"<> (p:v == 1)\";"),
        ("chooses", chooses, "ltl \"[] (p:x == 5)\";"),
    ] {
        let folder = Folder::with(&[("p.esp", &format!("{program}model m {{ {model} }}\n"))]);
        for engine in ["builtin", "spin"] {
            let assert = folder.qj(&format!("verify --engine {engine} p.esp")).assert().code(1);
            let said = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
            assert!(said.starts_with("error `property` in model `m`"), "{name}, {engine}: {said}");
        }
    }
}

#[test]
fn json_lists_every_question_with_its_answer() {
    let starving = "channel c();\nchannel d();\nprocess loud { while { out(c); } }\nprocess quiet { out(d); }\n\
                    process server { while { pri alt { in(c) { } in(d) { } } } }\n";
    let fair = "channel c();\nprocess p { while { out(c); } }\nprocess q { while { in(c); } }\n";
    let forgetful = "channel c();\nprocess p { var on = true; while { if (on) out(c); else yield; } }\n\
                     process q { while { in(c); } }\nmodel m { abstract forget p.on; }\n";
    let two = "channel c();\nprocess p { while { #1 out(c); } }\nprocess q { while { #1 in(c); } }\n\
               model m { ltl \"[] <> p@L1\"; ltl \"<> [] p@L1\"; ltl \"[] <> q@L1\"; }\n";
    let folder =
        Folder::with(&[("starving.esp", starving), ("fair.esp", fair), ("forgetful.esp", forgetful), ("two.esp", two)]);
    let json = |arguments: &str, code: i32| -> serde_json::Value {
        let assert = folder.qj(arguments).assert().code(code);
        serde_json::from_slice(&assert.get_output().stdout).expect("it is JSON")
    };
    assert_eq!(json("verify starving.esp --json", 0)["starvation_freedom"], "not asked");
    assert_eq!(json("verify fair.esp --json --starvation", 0)["progress"], "holds");
    let starves = json("verify starving.esp --json --starvation", 1);
    assert_eq!((&starves["starvation_freedom"], &starves["problem"]), (&"violated".into(), &"starvation".into()));
    // The model can wait forever, the program cannot.
    let spurious = json("verify forgetful.esp --json --progress", 5);
    assert_eq!((&spurious["starvation_freedom"], &spurious["spuriousness"]), (&"violated".into(), &"spurious".into()));
    let answers = json("verify two.esp --json", 1);
    let answer = |number: usize| answers["properties"][number]["verdict"].clone();
    assert_eq!((answer(0), answer(1), answer(2)), ("holds".into(), "violated".into(), "open".into()));
}

/// Spin's model of `pri alt` takes any branch, so it has violations that the program does not have. That is no verdict;
/// its JSON has the same keys.
#[test]
fn a_violation_of_an_over_approximation_is_no_verdict() {
    if quaject_test_support::tool(&["spin"]).is_none() {
        return;
    }
    let program = "channel c();\nchannel d();\nprocess p { pri alt { in(c) { } in(d) { assert(false); } } }\n\
                   process q { alt { out(c) { } out(d) { } } }\n";
    let folder = Folder::with(&[("p.esp", program)]);
    let said = |arguments: &str, code: i32| {
        let assert = folder.qj(&format!("verify p.esp {arguments}")).assert().code(code);
        String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
    };
    let json = |text: &str| serde_json::from_str::<serde_json::Value>(text).expect("it is JSON");
    let (exact, doubtful) = (json(&said("--json", 0)), json(&said("--json --engine spin", 4)));
    assert!(said("--engine spin", 4).starts_with("NOT VERIFIED: Spin's counterexample is spurious"));
    assert_eq!((&doubtful["verdict"], &doubtful["spuriousness"]), (&"unfinished".into(), &"spurious".into()));
    assert_eq!(doubtful["causes"][0], "p.esp:3:13: `pri alt` takes any branch");
    let keys = |json: &serde_json::Value| json.as_object().expect("an object").keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&exact), keys(&doubtful));
}

/// Runs of Spin's model may pass an `until` over forever, those of the program only if its time moves.
#[test]
fn a_deadline_that_spin_passes_over_forever_is_no_verdict() {
    if quaject_test_support::tool(&["spin"]).is_none() {
        return;
    }
    let program = |statement: &str| {
        format!(
            "channel c();\nprocess s {{ while {{ out(c); }} }}\nprocess p {{ var n = 0, due = now;\n  while {{ alt {{ \
             in(c) {{ {statement} }} until (due) {{ n = 1; }} }} }} }}\nmodel m {{ ltl \"<> (p:n == 1)\"; }}\n"
        )
    };
    let folder = Folder::with(&[("stays.esp", &program("")), ("moves.esp", &program("due = now;"))]);
    let json = |arguments: &str, code: i32| {
        let assert = folder.qj(&format!("verify --json {arguments}")).assert().code(code);
        serde_json::from_slice::<serde_json::Value>(&assert.get_output().stdout).expect("it is JSON")
    };
    assert_eq!(json("stays.esp", 0)["properties"][0]["verdict"], "holds");
    let doubtful = json("stays.esp --engine spin", 4);
    assert_eq!((&doubtful["verdict"], &doubtful["spuriousness"]), (&"unfinished".into(), &"spurious".into()));
    assert_eq!(doubtful["properties"][0]["verdict"], "unfinished");
    assert_eq!(doubtful["causes"][0], "stays.esp:4:11: an `until` may be passed over forever");
    for engine in ["", " --engine spin"] {
        assert_eq!(json(&format!("moves.esp{engine}"), 1)["properties"][0]["verdict"], "violated", "{engine}");
    }
}

/// Options without effect for Spin are refused; its runs are written like those of the built-in engine.
#[test]
fn spin_refuses_options_without_effect_and_writes_runs() {
    let wrong =
        "channel c(u8);\nprocess p { out(c, 1); out(c, 2); }\nprocess q { in(c, $a); in(c, $b); assert(a > b); }\n";
    let folder = Folder::with(&[("a.esp", wrong)]);
    for option in ["--starvation", "--compact", "--symmetry", "--max-states 5", "--threads 2"] {
        folder.qj(&format!("verify --engine spin a.esp {option}")).assert().code(2);
    }
    if quaject_test_support::tool(&["spin"]).is_none() {
        return;
    }
    folder.qj("verify --engine spin a.esp --trace a.qjt --chart a.svg --max-time 1e300").assert().code(1);
    folder.qj("replay a.qjt").assert().code(3);
    assert!(std::fs::read_to_string(folder.path("a.svg")).expect("it is drawn").starts_with("<svg"));
}

/// Refinement checks of models with and without fast paths.
#[test]
fn fast_paths_are_compared_with_the_original() {
    let example = |name: &str| {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/vmmc-send/").to_string() + name;
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    let (model, figure2, figure5) = (example("figure2-model.esp"), example("figure2.esp"), example("figure5.fp"));
    let (send, functions) = (example("send.esp"), example("functions.esp"));
    let part = "import \"send.esp\";\nmodel part { slice hostRequest, networkSend; }\n";
    let never = format!("import \"send.esp\";\nmodel quiet {{ bound hostSendRequestC 0; {} }}\n", {
        "abstract range hostSendRequestC.0 0..1; abstract range hostSendRequestC.1 0..1;\
         abstract range hostFetchRequestC.0 0..1; abstract range translationUnavailable 0..1;\
         abstract range translate 0..1; abstract range preparePacket 0..1;"
    });
    let folder = Folder::with(&[
        ("model.esp", &model),
        ("figure2.esp", &figure2),
        ("send.esp", &send),
        ("functions.esp", &functions),
        ("figure5.fp", &figure5),
        ("part.esp", part),
        ("never.esp", &never),
        ("alone.esp", "process p { }\n"),
    ]);
    let path = "verify --fastpath --fast-paths figure5.fp";
    for (arguments, status, said) in [
        (format!("{path} model.esp"), 0, "refinement holds: model `send` (3 processes) with fast paths"),
        (format!("{path} model.esp --json"), 0, "\"verdict\":\"holds\""),
        (
            format!("{path} model.esp --max-states 20"),
            4,
            "NOT VERIFIED: model `send` (3 processes) exceeds the state limit",
        ),
        (format!("{path} never.esp"), 4, "fast path `demo`: NEVER ENTERED"),
        (format!("{path} part.esp"), 2, "no fast path demo: the model omits `translateAddress`"),
        (format!("{path} send.esp"), 2, "error[E0801]"),
        ("verify --fastpath alone.esp".to_string(), 2, "`alone.esp` has no fast paths to compare"),
        (format!("{path} model.esp --threads 2"), 2, "`--threads` has no effect with `--fastpath`"),
        (format!("{path} model.esp --engine spin --max-states 9"), 2, "`--max-states` has no effect with Spin"),
        (format!("{path} model.esp --slice hostRequest"), 2, "cannot be used with"),
        ("verify model.esp --fast-paths figure5.fp".to_string(), 2, "--fastpath"),
    ] {
        let output = start(&folder, &arguments).wait_with_output().expect("qj ends");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert_eq!(output.status.code(), Some(status), "{arguments}: {text}");
        assert!(text.contains(said), "{arguments}: {text}");
    }
}

#[test]
fn spin_checks_refinement_too() {
    let pairs = r#"
        channel sumC(int) external in;
        channel numberC(int) external out;
        channel pairC(int);
        process odd { while { in(numberC, $n); out(pairC, n); } }
        process even { var sum = 0; while { in(pairC, $n); sum += n; if (sum > 2) sum = 0; out(sumC, sum); } }
        fastpath sums {
          process odd { statement numberC as N, pairC; start N; exit N; }
          process even { statement pairC as P, sumC; start P; exit P; }
        }
    "#;
    let folder = Folder::with(&[
        ("pairs.esp", pairs),
        ("small.esp", "import \"pairs.esp\";\nmodel small { abstract range numberC.0 0..1; }\n"),
        ("never.esp", "import \"pairs.esp\";\nmodel never { abstract range numberC.0 0..1; bound numberC 0; }\n"),
    ]);
    for (arguments, status, said) in [
        (
            "small.esp",
            0,
            "refinement holds: model `small` (2 processes) with fast paths has no trace that the original has not (Spin)",
        ),
        ("small.esp", 0, "fast path `sums`: entered"),
        ("small.esp --json", 0, "\"entered\":true"),
        ("never.esp", 4, "fast path `sums`: NEVER ENTERED"),
    ] {
        let child = start(&folder, &format!("verify --fastpath --engine spin {arguments}"));
        let output = child.wait_with_output().expect("qj ends");
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        assert_eq!(output.status.code(), Some(status), "{arguments}: {text}");
        assert!(text.contains(said), "{arguments}: {text}");
    }
}

#[test]
fn a_spurious_violation_does_not_end_the_search() {
    let program = "channel c(u8);
process p { var on = true; while { if (on) out(c, 1); else out(c, 3); } }
process q { while { in(c, $x); assert(x < 3); } }
channel d(u8);
process r { var n: u8 = 0; while (n < 2) { n += 1; out(d, n); } assert(n < 2); }
process s { while { idle in(d, _); } }
model m { abstract forget p.on; }
";
    let folder = Folder::with(&[("p.esp", program)]);
    let said = |engine: &str, code: i32| {
        let assert = folder.qj(&format!("verify p.esp --engine {engine}")).assert().code(code);
        String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
    };
    for engine in engines() {
        std::fs::write(folder.path("p.esp"), program).expect("it is writable");
        let text = said(engine, 1);
        assert!(text.contains("fault `assert` in `r` at p.esp:5"), "{engine}: {text}");
        let corrected = program.replace("assert(n < 2)", "assert(n < 3)");
        std::fs::write(folder.path("p.esp"), corrected).expect("it is writable");
        let text = said(engine, 5);
        assert!(text.contains("fault `assert` in `q` at p.esp:3"), "{engine}: {text}");
        assert!(text.contains("\nbeyond: no errors in model `m` (4 processes)\nSPURIOUS: "), "{engine}: {text}");
    }
}

/// The engines of verification that this machine has.
fn engines() -> Vec<&'static str> {
    let spin = tool(&["spin"]).map(|_| "spin");
    ["builtin"].into_iter().chain(spin).collect()
}

/// Spin's model of `pri alt` takes any branch, and so fails the first assertion; the program fails the second.
#[test]
fn spin_searches_beyond_a_fault_that_the_program_does_not_have() {
    if tool(&["spin"]).is_none() {
        return;
    }
    let program = "channel c();
channel d();
process p { pri alt { in(c) { } in(d) { assert(false); } } }
process q { alt { out(c) { } out(d) { } } }
channel e(u8);
process r { var n: u8 = 0; while (n < 2) { n += 1; out(e, n); } assert(n < 2); }
process s { while { idle in(e, _); } }
";
    let folder = Folder::with(&[("p.esp", program), ("q.esp", &program.replace("assert(n < 2)", "assert(n < 3)"))]);
    let said = |file: &str, code: i32| {
        let assert = folder.qj(&format!("verify {file} --engine spin")).assert().code(code);
        String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
    };
    let text = said("p.esp", 1);
    assert!(text.contains("fault `assert` in `r` at p.esp:6"), "{text}");
    assert!(said("q.esp", 4).starts_with("NOT VERIFIED: Spin's counterexample is spurious"));
}

/// Beyond a deadlock of the model alone, or of Spin's, another one is found: that of `r`, if `s` reads once.
#[test]
fn a_spurious_deadlock_does_not_end_the_search() {
    let once = "channel f(u8);
process r { out(f, 1); out(f, 2); }
process s { in(f, _); }
";
    let twice = once.replace("in(f, _);", "in(f, _); in(f, _);");
    let forgotten = "channel c();
channel k();
process p { var on = true; if (on) { out(c); } else { out(k); } }
process q { alt { in(c) { } in(k) { in(c); } } }
model m { abstract forget p.on; }
";
    // Spin's model of `pri alt` takes any branch.
    let chosen = "channel c();
channel d();
channel e();
process p { pri alt { in(c) { in(e); } in(d) { } } }
process q { alt { out(c) { out(e); } out(d) { out(e); } } }
";
    let folder = Folder::with(&[
        ("forgotten.esp", &format!("{once}{forgotten}")),
        ("forgotten_twice.esp", &format!("{twice}{forgotten}")),
        ("chosen.esp", &format!("{once}{chosen}")),
        ("chosen_twice.esp", &format!("{twice}{chosen}")),
    ]);
    let said = |arguments: &str, code: i32| {
        let assert = folder.qj(&format!("verify {arguments}")).assert().code(code);
        String::from_utf8_lossy(&assert.get_output().stdout).into_owned()
    };
    for engine in engines() {
        let text = said(&format!("forgotten.esp --engine {engine}"), 1);
        assert!(text.contains("`r` waits at forgotten.esp:2:24 for no instance to read `f`"), "{engine}: {text}");
        let text = said(&format!("forgotten_twice.esp --engine {engine}"), 5);
        assert!(text.contains("\nbeyond: no errors in model `m` (4 processes)\nSPURIOUS: "), "{engine}: {text}");
    }
    if engines().contains(&"spin") {
        let text = said("chosen.esp --engine spin", 1);
        assert!(text.contains("`r` waits at chosen.esp:2:24 for no instance to read `f`"), "{text}");
        let text = said("chosen_twice.esp --engine spin", 4);
        assert!(text.starts_with("NOT VERIFIED: Spin's counterexample is spurious"), "{text}");
    }
}

#[test]
fn a_search_with_many_spurious_violations_is_undecided() {
    let arms: String =
        (0..33).map(|number| format!("if (k == {number}) {{ assert(x < 3); }}\n")).collect::<Vec<_>>().join("else ");
    let program = format!(
        "channel c(u8);
process p {{ var on = true; while {{ if (on) out(c, 1); else out(c, 3); }} }}
process q {{ var k: u8 = 0; while {{ in(c, $x);
{arms} k = (k + 1) % 40; }} }}
model m {{ abstract forget p.on; }}
"
    );
    let folder = Folder::with(&[("p.esp", &program)]);
    let assert = folder.qj("verify p.esp").assert().code(4);
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    assert!(text.contains("beyond: NOT VERIFIED: the search ended after 32 violations of model `m`"), "{text}");
}

/// A property that only the abstraction violates, and one that the program violates.
const ABSTRACTED: &str =
    "channel c(bool); process p { var on = true; while { if (on) { #yes out(c, true); } else { #no out(c, true); } } }
process q { var n = 0; while { in(c, _); n = (n + 1) % 3; } }
model m { abstract forget p.on; ltl \"[] !(p@Lno)\"; ltl \"[] !(q:n == 2)\"; }
";

#[test]
fn a_property_that_only_spurious_runs_violate_is_not_violated() {
    let folder = Folder::with(&[("p.esp", ABSTRACTED), ("one.esp", &ABSTRACTED.replace("q:n == 2", "q:n == 3"))]);
    for (engine, file, code, second) in [
        ("builtin", "p.esp", 1, "violated"),
        ("builtin", "one.esp", 5, "holds"),
        ("spin", "p.esp", 1, "violated"),
        ("spin", "one.esp", 5, "holds"),
    ] {
        if engine == "spin" && tool(&["spin"]).is_none() {
            continue;
        }
        let assert = folder.qj(&format!("verify {file} --engine {engine} --json")).assert().code(code);
        let line = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
        let verdict: serde_json::Value = serde_json::from_str(&line).expect("one object");
        let answers: Vec<&str> = (0..2).filter_map(|at| verdict["properties"][at]["verdict"].as_str()).collect();
        assert_eq!(answers, ["spurious", second], "{engine}: {line}");
    }
}

#[test]
fn statuses_distinguish_verdicts_and_errors() {
    let endless = "channel c(u64); process p { var n: u64 = 0; while { n = n + 1; out(c, n); } } process q { while { in(c, _); } }";
    let files = [
        ("holds.esp", "channel c(); process p { out(c); } process q { in(c); }"),
        ("violated.esp", "channel c(u8); process p { out(c, 3); } process q { in(c, $x); assert(x < 3); }"),
        ("wrong.esp", "process p { x = 1; }"),
        ("property.esp", "channel c(); process p { out(c); } process q { in(c); } model m { ltl \"[] p:x == 1\"; }"),
        ("endless.esp", endless),
    ];
    let folder = Folder::with(&files);
    for (file, code) in
        [("holds.esp", 0), ("violated.esp", 1), ("wrong.esp", 2), ("property.esp", 2), ("missing.esp", 2)]
    {
        folder.qj(&format!("verify {file}")).assert().code(code);
    }
    folder.qj("verify endless.esp --max-states 1000").assert().code(4);
    folder.qj("verify --nonsense").assert().code(2);
}

#[test]
fn an_earlier_counterexample_is_removed() {
    let violated = "channel c(u8); process p { out(c, 3); } process q { in(c, $x); assert(x < 3); }";
    let files = [("violated.esp", violated), ("holds.esp", &violated.replace("x < 3", "x < 4")), ("wrong.esp", "x")];
    let folder = Folder::with(&files);
    let exists = |name: &str| folder.path(name).exists();
    for (file, code) in [("holds.esp", 0), ("wrong.esp", 2)] {
        folder.qj("verify violated.esp --trace run.qjt --chart run.svg").assert().code(1);
        assert!(exists("run.qjt") && exists("run.svg"));
        folder.qj(&format!("verify {file} --trace run.qjt --chart run.svg")).assert().code(code);
        assert!(!exists("run.qjt") && !exists("run.svg"), "{file}");
    }
    folder.qj("verify holds.esp --trace violated.esp").assert().code(2);
    assert!(exists("violated.esp"), "another file is not removed");
}

#[test]
fn a_run_that_violates_a_safety_property_ends_at_the_step_that_breaks_it() {
    let program = "channel c(u8);
process p { var n: u8 = 0; while (n < 5) { n = n + 1; out(c, n); } }
process q { while { idle in(c, _); } }
model m { ltl \"[] (p:n < 3)\"; }
";
    let folder = Folder::with(&[("p.esp", program)]);
    let assert = folder.qj("verify p.esp --trace p.qjt").assert().code(1);
    let text = String::from_utf8_lossy(&assert.get_output().stdout).into_owned();
    let run = "   1  p -> q: c(1)  (p.esp:2:55)
   2  p -> q: c(2)  (p.esp:2:55)
   3  p  (p.esp:2:55)   <- violates the property
property `[] (p:n < 3)` is violated here, whatever follows: p:n = 3
";
    assert!(text.contains(run), "{text}");
    assert!(text.contains("with properties: 6 product states, 5 transitions"), "{text}");
    let assert = folder.qj("replay p.qjt").assert().code(3);
    assert_eq!(String::from_utf8_lossy(&assert.get_output().stdout), run);
}
