//! Liveness properties: the built-in checker and Spin, both under weak fairness, agree on Spin's examples and on random
//! programs that never deadlock.

use fastrand::Rng;
use quaject_differential::talkative;
use quaject_esp_check::{Limits, Options, Reduction, Verdict, ViolationKind, check};
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_lower::lower_model;
use quaject_esp_run::spin::{Spin, SpinOutcome, SpinProperty};
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use quaject_test_support::{Effort, HANG_TIMEOUT, tool};
use std::ffi::OsString;
use std::path::Path;

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, _path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err("samples import nothing".into())
    }
}

fn model(text: &str) -> Option<ModelProgram> {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("sample.esp", text));
    let program = analyze(&mut sources, root, &mut NoImports).program?;
    Some(lower_model(&program, program.models.first(), None, &sources))
}

/// Whether the model's property holds; none if it has another violation, or there are too many states. The same with
/// and without reduction.
fn built_in(model: &ModelProgram) -> Option<bool> {
    let verdict = |reduction: Reduction| {
        let limits = Limits { states: Some(20_000), ..Limits::default() };
        let options = Options { reduction, limits, ..Options::default() };
        match check(model, &options, &mut |_| {}).ok()?.verdict {
            Verdict::Holds => Some(true),
            Verdict::Violated(found) => matches!(found.violation, ViolationKind::Property { .. }).then_some(false),
            Verdict::Unfinished(_) => None,
        }
    };
    let (all, reduced) = (verdict(Reduction::Off)?, verdict(Reduction::On));
    assert_eq!(Some(all), reduced, "without and with reduction: {:?}", model.properties);
    Some(all)
}

/// As `built_in`, by Spin; none if its model is not exact.
fn of_spin(model: &ModelProgram, text: &str) -> Option<bool> {
    let generated = promela::generate(model, Checks::On, None).ok().filter(|model| model.approximations.is_empty())?;
    let spin = Spin {
        compiler: Some(vec![OsString::from("tcc")]),
        memory_mib: 1024,
        time: HANG_TIMEOUT,
        depth: 400_000,
        reduction: promela::Reduction::Off,
        interrupt: None,
    };
    let wanted = SpinProperty::Ltl(&generated.properties[0]);
    let search = spin.search(&generated, model.program.instance_count(), wanted);
    match search.unwrap_or_else(|trouble| panic!("{trouble}\n{text}\n{}", generated.text)).outcome {
        SpinOutcome::NoViolation => Some(true),
        SpinOutcome::Property(_) => Some(false),
        SpinOutcome::Unfinished(_) | SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) => None,
    }
}

/// Whether the property holds, if both engines decide it; they agree.
fn agree(name: &str, text: &str) -> Option<bool> {
    let model = model(text)?;
    let ours = built_in(&model)?;
    let theirs = of_spin(&model, text)?;
    let spoken = promela::generate(&model, Checks::On, None).map(|model| model.text).unwrap_or_default();
    assert_eq!(ours, theirs, "{name}: the built-in checker first, then Spin\n{text}\n{spoken}");
    Some(ours)
}

#[test]
fn properties_of_examples() {
    let Some(_) = tool(&["tcc"]) else { return };
    let (mut hold, mut fail) = (0, 0);
    for (name, property) in [
        ("peterson", "[] (critical:n <= 1)"),
        ("peterson", "[] <> (critical:n == 1)"),
        ("peterson", "<> (critical:n == 1) && [] (critical:n == 1 -> <> (critical:n == 0))"),
        ("peterson", "<> [] (critical:n == 0)"),
        ("peterson", "(critical:n == 0) U (critical:n == 1)"),
        ("mobile2", "[] <> (sink:next == 2)"),
        ("mobile2", "[] (sink:next < 3)"),
        ("mobile2", "<> [] (sink:next == 0)"),
        ("mobile2", "[] <> (controller:active == 1)"),
        ("train", "[] (gate:n <= 2)"),
        ("train", "[] <> (gate:n == 0)"),
        ("train", "<> (gate:n == 2)"),
        ("abp", "[] (sender:bit == 1 -> <> (sender:bit == 0))"),
        ("abp", "<> [] (sender:bit == 1)"),
        ("calculator", "[] (stack:n <= 4)"),
        ("calculator", "<> (stack:n == 2)"),
        ("calculator", "<> [] (stack:n == 0)"),
        ("p117-idle", "[] (count:inside <= 1)"),
        ("p117-idle", "<> (count:inside == 1)"),
        ("p117-idle", "<> [] (count:inside == 0)"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../spin-examples/{name}.esp"));
        let program = std::fs::read_to_string(path).expect("the example is in the tree");
        let text = format!("{program} model m {{ ltl \"{property}\"; }}");
        match agree(&format!("{name}: {property}"), &text) {
            Some(true) => hold += 1,
            Some(false) => fail += 1,
            None => println!("{name}: {property}: not both can say"),
        }
    }
    println!("{hold} hold, {fail} do not");
    assert!(hold >= 5 && fail >= 4, "{hold} hold, {fail} do not");
}

/// Programs on whose property the engines once disagreed; the first word of each says whether it holds.
#[test]
fn properties_of_known_programs() {
    let Some(_) = tool(&["tcc"]) else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/properties");
    let files = std::fs::read_dir(&folder).expect("the programs are in the tree");
    let mut count = 0;
    for file in files {
        let path = file.expect("the folder can be read").path();
        let text = std::fs::read_to_string(&path).expect("the program is in the tree");
        let holds = text.starts_with("// holds: ");
        assert!(holds || text.starts_with("// violated: "), "{}", path.display());
        let model = model(&text).expect("the program is right");
        assert_eq!(built_in(&model), Some(holds), "{}", path.display());
        // If a program can end, Spin finds only some of its runs.
        let of_spin = of_spin(&model, &text);
        assert!(of_spin.is_none_or(|found| found == holds), "{}: {of_spin:?}", path.display());
        count += 1;
    }
    assert!(count >= 3);
}

/// A property of it.
fn property(rng: &mut Rng, labels: &[u32]) -> String {
    let mut atom = || {
        let process = rng.usize(0..labels.len());
        match rng.bool() {
            true => format!("P{process}@L{}", rng.u32(1..labels[process].max(1) + 1)),
            false => {
                let variable = if rng.bool() { "n" } else { "k" };
                let comparison = rng.choice(["==", "!=", "<", ">="]).expect("there are some");
                format!("(P{process}:{variable} {comparison} {})", rng.i32(-1..4))
            }
        }
    };
    let (a, b) = (atom(), atom());
    match rng.u32(0..10) {
        0 => format!("<> {a}"),
        1 => format!("[] <> {a}"),
        2 => format!("[] !{a}"),
        3 => format!("<> [] !{a}"),
        4 => format!("[] ({a} -> <> {b})"),
        5 => format!("!{a} U {b}"),
        6 => format!("[] ({a} -> <> !{a})"),
        7 => format!("<> {a} -> <> {b}"),
        8 => format!("([] <> {a}) -> ([] <> {b})"),
        _ => format!("[] ({a} -> ({a} U {b}))"),
    }
}

/// A random program that never deadlocks, with a property of it.
fn sample(seed: u64) -> String {
    let (program, labels) = talkative::lively(seed);
    let mut rng = Rng::with_seed(seed);
    format!("{program}model m {{ ltl \"{}\"; }}\n", property(&mut rng, &labels))
}

#[test]
fn properties_of_random_programs() {
    let Some(_) = tool(&["tcc"]) else { return };
    let wanted = Effort::wanted().pick(4, 40, 1_000);
    let (mut hold, mut fail) = (0, 0);
    for seed in 0u64.. {
        if hold + fail == wanted {
            break;
        }
        match agree(&format!("seed {seed}"), &sample(seed)) {
            Some(true) => hold += 1,
            Some(false) => fail += 1,
            None => {}
        }
    }
    println!("{hold} hold, {fail} do not");
    assert!(hold * 8 > wanted && fail * 8 > wanted, "the samples are too much alike: {hold} hold, {fail} do not");
}

/// Reduction changes no answer.
#[test]
fn reduced_properties_of_random_programs() {
    let count = Effort::wanted().pick(50, 1_000, 50_000);
    // After the programs that are compared with Spin.
    let answers = (1_000_000..1_000_000 + count).filter_map(|seed| built_in(&model(&sample(seed))?));
    let (hold, fail): (Vec<bool>, Vec<bool>) = answers.partition(|holds| *holds);
    let (hold, fail) = (hold.len() as u64, fail.len() as u64);
    println!("{hold} hold, {fail} do not");
    assert!(hold * 8 > count && fail * 8 > count, "the samples are too much alike: {hold} hold, {fail} do not");
}
