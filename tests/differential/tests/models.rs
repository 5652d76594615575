//! Programs as Promela models: Spin, an exhaustive search and the built-in checker agree, with and without reduction.

use expect_test::expect_file;
use quaject_differential::environment::Script;
use quaject_differential::explore::{Silent, Verdict, explore};
use quaject_differential::generate::{Outcome as Determination, Sample};
use quaject_differential::interpret::compile;
use quaject_differential::talkative;
use quaject_esp_check::{Limits, Options, ViolationKind, check};
use quaject_esp_exec::replay::replay as replay_steps;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela::{self, Reduction};
use quaject_esp_ir::ir::{Fault, Program};
use quaject_esp_ir::ltl::{Formula, Proposition, parse};
use quaject_esp_run::spin::{Search, Spin, SpinOutcome, SpinProperty};
use quaject_test_support::{Effort, HANG_TIMEOUT, tool};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A fast compiler for hundreds of programs, and no reduction, so that states can be counted.
fn spin() -> Spin {
    Spin {
        compiler: Some(vec![OsString::from("tcc")]),
        memory_mib: 1024,
        time: HANG_TIMEOUT,
        depth: 200_000,
        reduction: Reduction::Off,
        interrupt: None,
    }
}

/// Spin's result, and whether its model is exact.
fn ask(program: &Program) -> Result<(Search, bool), String> {
    let model = promela::generate(&promela::open_model(program), Checks::On, None)
        .map_err(|refusals| refusals.iter().map(|refusal| format!("{}\n", refusal.message)).collect::<String>())?;
    let search = spin()
        .search(&model, program.instance_count(), SpinProperty::Safety)
        .map_err(|trouble| format!("{trouble}\n{}", model.text))?;
    Ok((search, model.approximations.is_empty()))
}

fn verdict(found: &SpinOutcome) -> Verdict {
    match found {
        SpinOutcome::NoViolation => Verdict::Fine,
        SpinOutcome::Unfinished(_) => Verdict::TooLarge,
        SpinOutcome::Deadlock(_) => Verdict::Faults(Fault::Deadlock),
        SpinOutcome::Fault(trail) => Verdict::Faults(trail.fault.expect("a fault's trail names it").0),
        SpinOutcome::Property(_) => panic!("no property was asked for"),
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(name)
}

fn programs(name: &str) -> Vec<(String, String)> {
    let mut programs: Vec<(String, String)> = std::fs::read_dir(folder(name))
        .expect("the folder is in the tree")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "esp"))
        .map(|path| {
            let name = path.file_name().expect("it is a file").to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).expect("the file can be read"))
        })
        .collect();
    programs.sort();
    programs
}

fn sample(source: String) -> Sample {
    Sample { seed: 0, source, files: Vec::new(), script: Script::default(), outcome: Determination::Open }
}

/// Replays a run of Spin on the interpreter: the outcome, if the steps are possible.
fn replay(program: &Program, found: &SpinOutcome) -> Option<Verdict> {
    let (SpinOutcome::Deadlock(trail) | SpinOutcome::Fault(trail)) = found else { return Some(Verdict::Fine) };
    let outcome = replay_steps(program, Checks::On, &trail.steps, &mut Silent).expect("the samples are small");
    match outcome {
        Ok(Outcome::Faulted(report)) => Some(Verdict::Faults(report.fault)),
        Ok(Outcome::Ended(_) | Outcome::Quiescent(_) | Outcome::Budget) => Some(Verdict::Fine),
        Err(_) => None,
    }
}

/// The result of the built-in checker; its three reductions agree.
fn built_in(name: &str, program: &Program, faults: &[Fault]) -> Verdict {
    use quaject_esp_check::{Reduction, Verdict as Checked};
    let model = promela::open_model(program);
    let say = |reduction| {
        let limits = Limits { states: Some(Effort::wanted().pick(20_000, 400_000, 400_000)), ..Limits::default() };
        let options = Options { reduction, limits, ..Options::default() };
        let report = check(&model, &options, &mut |_| {}).unwrap_or_else(|refusal| panic!("{name}: {refusal:?}"));
        match report.verdict {
            Checked::Holds => Verdict::Fine,
            Checked::Violated(found) => match found.violation {
                ViolationKind::Fault(report) => Verdict::Faults(report.fault),
                ViolationKind::NonTermination { .. }
                | ViolationKind::Property { .. }
                | ViolationKind::Starvation { .. }
                | ViolationKind::Leak { .. } => {
                    panic!("{name}: {:?}", found.violation)
                }
            },
            Checked::Unfinished(_) => Verdict::TooLarge,
        }
    };
    let mut verdict = say(Reduction::Off);
    for reduction in [Reduction::On, Reduction::Communications] {
        // Of several faults, each search may find another one first.
        let other = say(reduction);
        let agree = match (verdict, other) {
            (Verdict::Faults(_), Verdict::Faults(fault)) => faults.contains(&fault),
            (verdict, other) => verdict == other || verdict == Verdict::TooLarge,
        };
        assert!(agree, "{name}: {verdict} without reduction, {other} with {reduction:?}");
        if verdict == Verdict::TooLarge {
            verdict = other;
        }
    }
    verdict
}

/// The common result of Spin, the built-in checker and the exhaustive search, with Spin's run replayed. None for a
/// model that over-approximates its program.
fn agree(name: &str, source: &str) -> Option<Verdict> {
    let program = compile(&sample(source.to_string())).unwrap_or_else(|error| panic!("{name}: {error}"));
    let explored = explore(&program, Checks::On, 400_000);
    let (search, exact) = ask(&program).unwrap_or_else(|error| panic!("{name}: {error}\n{source}"));
    let found = verdict(&search.outcome);
    // Of several violations, Spin may find one that is not the nearest.
    let agree = match found {
        Verdict::Faults(fault) => explored.faults.contains(&fault) || !exact,
        Verdict::Fine | Verdict::TooLarge => found == explored.verdict,
    };
    assert!(agree, "{name}: Spin says {:?}, the steps {:?}\n{source}", search.outcome, explored.faults);
    let checked = built_in(name, &program, &explored.faults);
    let agree = match (checked, found) {
        (Verdict::Faults(fault), Verdict::Faults(_)) => explored.faults.contains(&fault),
        (checked, found) => checked == found || !exact,
    };
    assert!(agree, "{name}: the checker says {checked}, Spin {:?}\n{source}", search.outcome);
    let same = replay(&program, &search.outcome).is_some_and(|replayed| replayed == found);
    assert!(same || !exact, "{name}: Spin's run does not lead to {found}\n{source}");
    exact.then_some(found)
}

#[test]
fn bugs_of_go_programs() {
    let Some(_) = tool(&["tcc"]) else { return };
    let programs = programs("goker");
    assert!(programs.len() >= 30, "every bug comes with its fix");
    for (name, source) in programs.into_iter().step_by(Effort::wanted().pick(3, 1, 1)) {
        let expected = match name.ends_with(".fixed.esp") {
            true => Verdict::Fine,
            false => Verdict::Faults(Fault::Deadlock),
        };
        if let Some(verdict) = agree(&name, &source) {
            assert_eq!(verdict, expected, "{name}");
        }
    }
}

/// The second line of a program is Spin's result for its original.
#[test]
fn examples_of_spin() {
    let Some(_) = tool(&["tcc"]) else { return };
    let programs = programs("spin-examples");
    assert!(programs.len() >= 12);
    for (name, source) in programs {
        let expected =
            source.lines().find_map(|line| line.strip_prefix("// verdict: ")).expect("every program says it");
        let program = compile(&sample(source.clone())).unwrap_or_else(|error| panic!("{name}: {error}"));
        let explored = explore(&program, Checks::On, 20_000);
        if explored.verdict != Verdict::TooLarge {
            assert_eq!(explored.verdict.to_string(), expected, "{name}");
        }
        let checked = built_in(&name, &program, &explored.faults);
        assert_eq!(checked.to_string(), expected, "{name}");
        let (search, exact) = ask(&program).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!exact || verdict(&search.outcome).to_string() == expected, "{name}: {:?}", search.outcome);
    }
}

/// The number of states that `qj verify` visits, with reduction or with `--no-reduction`.
fn visited(name: &str, reduction: quaject_esp_check::Reduction) -> u64 {
    let path = folder(name).with_extension("esp");
    let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let program = compile(&sample(source)).unwrap_or_else(|error| panic!("{name}: {error}"));
    let options = Options { reduction, ..Options::default() };
    check(&promela::open_model(&program), &options, &mut |_| {}).expect("it has no environment").states
}

/// The tables of the folders' READMEs have the numbers that the command prints.
#[test]
fn tables_of_states_are_current() {
    use quaject_esp_check::Reduction::{Communications, On};
    let with_counts = |text: &str, first: usize, counts: &dyn Fn(&str) -> [u64; 2]| {
        let rows = text.split_inclusive('\n').map(|line| {
            let mut cells: Vec<String> = line.split('|').map(str::to_string).collect();
            let name = cells.get(1).map_or("", |name| name.trim()).to_string();
            let is_row = cells.len() > first + 2 && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-');
            if is_row && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name != "bug" && name != "program" {
                for (cell, count) in cells[first..].iter_mut().zip(counts(&name)) {
                    *cell = format!(" {count} ");
                }
            }
            cells.join("|")
        });
        rows.collect::<String>()
    };
    let bugs = folder("goker").join("README.md");
    let text = std::fs::read_to_string(&bugs).expect("the file is in the tree");
    let counts = |name: &str| ["buggy", "fixed"].map(|kind| visited(&format!("goker/{name}.{kind}.esp"), On));
    expect_file![bugs].assert_eq(&with_counts(&text, 3, &counts));
    let examples = folder("spin-examples").join("README.md");
    let text = std::fs::read_to_string(&examples).expect("the file is in the tree");
    let (table, rest) = text.split_once("Three more").expect("the second table is made by hand");
    let counts =
        |name: &str| [Communications, On].map(|reduction| visited(&format!("spin-examples/{name}"), reduction));
    expect_file![examples].assert_eq(&format!("{}Three more{rest}", with_counts(table, 5, &counts)));
}

/// The number of states that Spin visits without reduction.
fn states_of(model: &str) -> u64 {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    std::fs::write(folder.path().join("model.pml"), model).expect("the folder can be written");
    let run = |program: &str, arguments: &[&str]| {
        let output = std::process::Command::new(program).args(arguments).current_dir(&folder).output();
        let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    run("spin", &["-a", "model.pml"]);
    run("tcc", &["-DSAFETY", "-DNOREDUCE", "-w", "-o", "pan", "pan.c"]);
    let text = run("./pan", &["-m1000000"]);
    assert!(!text.contains("too small"), "{text}");
    assert!(text.contains("errors: 0"), "{text}");
    let line = text.lines().find(|line| line.contains("states, stored")).expect("pan counts states");
    line.split_whitespace().next().and_then(|count| count.parse().ok()).expect("the count comes first")
}

/// Equivalent models in ESP and in Promela have the same number of states, except the one in which Spin starts its
/// processes.
#[test]
fn equivalent_models_have_the_same_number_of_states() {
    let (Some(_), Some(_)) = (tool(&["tcc"]), tool(&["spin"])) else { return };
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/verify/programs");
    let read = |name: &str| std::fs::read_to_string(programs.join(name)).expect("the program is in the tree");
    for (name, of_esp, of_promela, sizes) in [
        ("philosophers", "const N = ", "#define N ", [2, 3, 6]),
        ("leader", "const N = ", "#define N ", [2, 4, 8]),
        ("alternating-bit", "const LAST: u8 = ", "#define LAST ", [1, 2, 3]),
    ] {
        for size in sizes {
            let sized = |text: String, before: &str| {
                let (start, rest) = text.split_once(before).expect("the program has this size");
                format!("{start}{before}{size}{}", rest.trim_start_matches(|c: char| c.is_ascii_digit()))
            };
            let source = sized(read(&format!("{name}.esp")), of_esp);
            let program = compile(&sample(source)).unwrap_or_else(|error| panic!("{name}: {error}"));
            let reduction = quaject_esp_check::Reduction::Communications;
            let options = Options { reduction, ..Options::default() };
            let report = check(&promela::open_model(&program), &options, &mut |_| {}).expect("it has no environment");
            assert_eq!(report.verdict, quaject_esp_check::Verdict::Holds, "{name} {size}");
            let theirs = states_of(&sized(read(&format!("{name}.pml")), of_promela));
            assert_eq!(report.states + 1, theirs, "{name} {size}");
        }
    }
}

/// Small processes that communicate at random: most deadlock, some fault.
#[test]
fn random_processes() {
    let Some(_) = tool(&["tcc"]) else { return };
    let count = Effort::wanted().pick(12, 300, 3000usize);
    let mut seen = BTreeMap::new();
    // Some random texts are no programs: messages lack a reader, guards are constant.
    let sources = (0..).map(|seed| (seed, talkative::program(seed)));
    let programs = sources.filter(|(_, source)| compile(&sample(source.clone())).is_ok());
    let verdicts = programs.filter_map(|(seed, source)| agree(&format!("seed {seed}"), &source));
    for verdict in verdicts.take(count) {
        *seen.entry(verdict.to_string()).or_insert(0) += 1;
    }
    println!("{seen:?}");
    assert!(seen.len() >= 3, "the samples are too much alike: {seen:?}");
}

/// A formula with parentheses around each operator; its propositions are the labels of one process.
fn grouped(formula: &Formula) -> String {
    match formula {
        Formula::Constant(value) => value.to_string(),
        Formula::Proposition(Proposition::Passed { label, .. }) => format!("p@L{}", label.0),
        Formula::Proposition(Proposition::Compares(..)) => unreachable!("the formulas name labels only"),
        Formula::Prefix(operator, inner) => format!("({} {})", operator.sign(), grouped(inner)),
        Formula::Binary(operator, left, right) => {
            format!("({} {} {})", grouped(left), operator.sign(), grouped(right))
        }
        Formula::Junction(junction, parts) => {
            let joined = parts.iter().map(grouped).reduce(|all, part| format!("({all} {} {part})", junction.sign()));
            joined.expect("a junction has parts")
        }
    }
}

/// A formula of a few operators without parentheses.
fn flat(rng: &mut fastrand::Rng) -> String {
    let mut text = String::new();
    for operand in 0..rng.usize(2..=4) {
        if operand > 0 {
            text += ["U", "V", "W", "&&", "||", "->", "<->"][rng.usize(0..7)];
        }
        text += [" ", " ", " ! ", " [] ", " <> "][rng.usize(0..5)];
        text += ["p@L0 ", "p@L1 ", "p@L2 "][rng.usize(0..3)];
    }
    text
}

#[test]
fn operators_of_properties_group_as_in_spin() {
    if tool(&["spin"]).is_none() {
        return;
    }
    let labels = "channel c(); process p { while { #0 out(c); #1 out(c); #2 out(c); } } process q { while { in(c); } }";
    let program = compile(&sample(labels.into())).expect("the program is correct");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    for seed in 0..Effort::wanted().pick(10, 50, 1_000) {
        let text = flat(&mut fastrand::Rng::with_seed(seed));
        let grouped = grouped(&parse(&program, &text).expect("it is a formula"));
        let model = format!(
            "active proctype p() {{ L0: skip; L1: skip; L2: skip }}\nltl flat {{ {text} }}\nltl grouped {{ {grouped} }}\n"
        );
        std::fs::write(folder.path().join("model.pml"), &model).expect("the folder is writable");
        // Spin prints each formula as it has grouped it.
        let output = Command::new("spin").args(["-a", "model.pml"]).current_dir(folder.path()).output();
        let output = String::from_utf8(output.expect("Spin runs").stdout).expect("Spin prints ASCII");
        let read = |name: &str| output.lines().find_map(|line| line.strip_prefix(name)).map(str::to_string);
        assert!(read("ltl flat: ").is_some(), "{model}{output}");
        assert_eq!(read("ltl flat: "), read("ltl grouped: "), "{model}{output}");
    }
}

/// A random condition on `a`, `b` and `k`, whose code has branches.
fn nested_condition(rng: &mut fastrand::Rng, depth: u32) -> String {
    if depth == 0 {
        return ["a", "b", "!a", "k == 0", "true", "false"][rng.usize(0..6)].to_string();
    }
    let mut part = || nested_condition(rng, depth - 1);
    let (first, second, third) = (part(), part(), part());
    match rng.u32(0..3) {
        0 => format!("({first} && {second})"),
        1 => format!("({first} || {second})"),
        _ => format!("({first} ? {second} : {third})"),
    }
}

/// A message of an `alt` with guards is computed before it has a reader. Its reader compares it with the same condition
/// as computed by itself, or with the opposite.
#[test]
fn messages_that_are_computed_ahead_have_their_values() {
    if tool(&["spin"]).is_none() {
        return;
    }
    for seed in 0..Effort::wanted().pick(10, 30, 3_000) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let depth = rng.u32(1..=3);
        let condition = nested_condition(&mut rng, depth);
        for (sign, is_fine) in [("==", true), ("!=", false)] {
            let program = format!(
                "channel c(pid(q), bool, bool, int, bool);\n\
                 process p {{ var a = false, b = false, k = 0; while {{ alt {{\n\
                 when (k < 2) out(c, @q[k], a, b, k, {condition}) {{ b = a != b; a = !a; k = 1 - k; }}\n\
                 when (k == 2) after (1 ms) {{ }} }} }} }}\n\
                 process q[2] {{ while {{ idle in(c, @, $a, $b, $k, $x); assert(x {sign} ({condition})); }} }}\n"
            );
            let program = compile(&sample(program.clone())).unwrap_or_else(|error| panic!("{program}{error}"));
            let (search, _) = ask(&program).unwrap_or_else(|refusal| panic!("{condition}: {refusal}"));
            let is_found = matches!(search.outcome, SpinOutcome::Fault(_));
            assert_eq!((search.outcome == SpinOutcome::NoViolation, is_found), (is_fine, !is_fine), "{condition}");
        }
    }
}

/// Spin refuses hidden variables of one bit, which constants with a `bool` would be.
#[test]
fn constants_with_truth_values_are_read() {
    if tool(&["spin"]).is_none() {
        return;
    }
    for values in ["true, false, true", "true, true, true"] {
        let source = format!(
            "channel c(int);\nconst VALUES: array[3] of bool = [{values}];\n\
             process p {{ out(c, 0); out(c, 2); }}\n\
             process q {{ for i in 0..2 {{ in(c, $n); assert(VALUES[n]); }} }}\n"
        );
        assert_eq!(agree(values, &source), Some(Verdict::Fine), "{values}");
    }
}

/// Spin's breadth-first search, which shortens a counterexample, refuses the variables that hold constants.
#[test]
fn programs_with_constants_have_violations() {
    if tool(&["spin"]).is_none() {
        return;
    }
    let source = "channel c(int);\nconst VALUES: array[3] of int = [4, 0, 5];\n\
                  process p { out(c, 0); out(c, 1); }\n\
                  process q { for i in 0..2 { in(c, $n); assert(VALUES[n] > 0); } }\n";
    assert_eq!(agree("constants", source), Some(Verdict::Faults(Fault::Assert)));
}

/// Spin refuses arrays without elements.
#[test]
fn bytes_without_room_are_values() {
    if tool(&["spin"]).is_none() {
        return;
    }
    for (name, ty, value, condition) in [
        ("bytes", "bytes[<=0]", "\"\"", "x.len == 0 && x == \"\""),
        ("array", "array[2] of bytes[<=0]", "[\"\", \"\"]", "x[0].len == 0 && x == [\"\", \"\"]"),
        ("object", "record { a: bytes[<=0] }; pool t 2", "{ \"\" }", "x.a.len == 0"),
    ] {
        let source = format!(
            "type t = {ty};\nchannel c(t);\nprocess p {{ var x: t = {value}; out(c, x); }}\n\
             process q {{ in(c, $x); assert({condition}); }}\n"
        );
        assert_eq!(agree(name, &source), Some(Verdict::Fine), "{name}");
    }
    let constant = "channel c(int);\nconst NONE: array[2] of bytes[<=0] = [\"\", \"\"];\n\
                    process p { out(c, 0); }\nprocess q { in(c, $n); assert(NONE[1 - n][n] == 1); }\n";
    assert_eq!(agree("constant", constant), Some(Verdict::Faults(Fault::Bounds)));
}
