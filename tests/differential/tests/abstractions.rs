//! Random programs with a random abstraction: every violation of the program is one of the model, and Spin agrees with
//! the built-in checker on the model.

use fastrand::Rng;
use quaject_differential::talkative;
use quaject_esp_check::{Limits, Options, Reduction, Spuriousness, Verdict, check, concretize};
use quaject_esp_exec::step::Checks;
use quaject_esp_gen::promela;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::verify::verify;
use quaject_esp_lower::{lower_concrete, lower_model};
use quaject_esp_run::spin::{Spin, SpinOutcome, SpinProperty};
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::hir::ModelScope;
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use quaject_test_support::{Effort, HANG_TIMEOUT, tool};
use std::ffi::OsString;

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, _path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err("samples import nothing".into())
    }
}

/// A program and a model with one or two abstractions, both lowered; none if they are not well-typed.
fn sample(seed: u64) -> Option<(String, ModelProgram, ModelProgram)> {
    let mut rng = Rng::with_seed(seed ^ 0x5eed);
    // Programs that can wait at any operation have fewer violations.
    let mut text = if seed.is_multiple_of(2) { talkative::program(seed) } else { talkative::lively(seed).0 };
    let mut clauses = String::new();
    for _ in 0..rng.usize(1..3) {
        let part = match rng.u32(0..4) {
            0 => format!("P{}.n", rng.u32(0..3)),
            1 => format!("P{}.k", rng.u32(0..3)),
            _ => format!("c{}.{}", rng.u32(0..3), rng.u32(0..2)),
        };
        let end = rng.u32(1..6);
        clauses += &match rng.u32(0..4) {
            0 => format!(" abstract forget {part};"),
            1 => format!(" abstract range {part} 0..{end};"),
            2 => format!(" abstract drop {part}; abstract range {part} -1..{end};"),
            _ => format!(" abstract hash {part};"),
        };
    }
    text += &format!("model m {{{clauses} }}\n");
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("sample.esp", text.clone()));
    let program = analyze(&mut sources, root, &mut NoImports).program?;
    let abstracted = lower_model(&program, program.models.first(), None, &sources);
    let concrete = lower_concrete(&program, program.models.first(), Some(ModelScope::All), &sources);
    let errors: Vec<String> = verify(&abstracted.program).iter().map(|error| error.text(&abstracted.program)).collect();
    assert!(errors.is_empty(), "seed {seed}: {errors:?}\n{text}");
    Some((text, abstracted, concrete))
}

fn options(reduction: Reduction) -> Options {
    let limits = Limits { states: Some(30_000), ..Limits::default() };
    Options { reduction, limits, ..Options::default() }
}

#[test]
fn abstractions_keep_every_violation() {
    let wanted = Effort::wanted().pick(300, 1_500, 60_000usize);
    let (mut compared, mut spurious, mut real) = (0, 0, 0);
    for seed in 0..wanted as u64 {
        let Some((text, abstracted, concrete)) = sample(seed) else { continue };
        let Ok(itself) = check(&concrete, &options(Reduction::On), &mut |_| {}) else { continue };
        let Ok(report) = check(&abstracted, &options(Reduction::On), &mut |_| {}) else { continue };
        let unreduced = check(&abstracted, &options(Reduction::Off), &mut |_| {}).expect("it was explored before");
        let is_wrong = |verdict: &Verdict| matches!(verdict, Verdict::Violated(_));
        match (&report.verdict, &unreduced.verdict) {
            (Verdict::Unfinished(_), _) | (_, Verdict::Unfinished(_)) => continue,
            (one, other) => assert_eq!(is_wrong(one), is_wrong(other), "seed {seed}, reduced or not\n{text}"),
        }
        if is_wrong(&itself.verdict) {
            assert!(is_wrong(&report.verdict), "seed {seed}: an error is lost\n{text}");
        }
        compared += 1;
        let Verdict::Violated(found) = &report.verdict else { continue };
        let label = concretize(&concrete, &abstracted, found, &options(Reduction::On).limits).expect("it was explored");
        match label.spuriousness {
            Spuriousness::Real => {
                assert!(!matches!(itself.verdict, Verdict::Holds), "seed {seed}: not real\n{text}");
                real += 1;
            }
            Spuriousness::Spurious | Spuriousness::SpuriousRun(_) => {
                assert!(!label.causes.is_empty(), "seed {seed}: spurious without a cause\n{text}");
                spurious += 1;
            }
            Spuriousness::Unknown(_) | Spuriousness::NotChecked => {}
        }
    }
    println!("{compared} compared, {real} real, {spurious} spurious");
    assert!(compared > wanted / 8 && real > wanted / 50 && spurious > wanted / 100, "{compared} {real} {spurious}");
}

#[test]
fn spin_agrees_on_abstracted_models() {
    let Some(_) = tool(&["tcc"]) else { return };
    let spin = Spin {
        compiler: Some(vec![OsString::from("tcc")]),
        memory_mib: 1024,
        time: HANG_TIMEOUT,
        depth: 200_000,
        reduction: promela::Reduction::Off,
        interrupt: None,
    };
    let wanted = Effort::wanted().pick(4, 25, 400usize);
    let (mut compared, mut wrong) = (0, 0);
    for seed in 0.. {
        if compared == wanted {
            break;
        }
        let Some((text, abstracted, _)) = sample(seed) else { continue };
        if abstracted.abstractions.is_empty() {
            continue;
        }
        let Ok(report) = check(&abstracted, &options(Reduction::Off), &mut |_| {}) else { continue };
        let ours = match report.verdict {
            Verdict::Holds => false,
            Verdict::Violated(_) => true,
            Verdict::Unfinished(_) => continue,
        };
        let Ok(model) = promela::generate(&abstracted, Checks::On, None) else { continue };
        if !model.approximations.is_empty() {
            continue;
        }
        let instances = abstracted.program.instance_count();
        let search =
            spin.search(&model, instances, SpinProperty::Safety).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let theirs = match search.outcome {
            SpinOutcome::NoViolation => false,
            SpinOutcome::Deadlock(_) | SpinOutcome::Fault(_) => true,
            SpinOutcome::Unfinished(_) | SpinOutcome::Property(_) => continue,
        };
        assert_eq!(ours, theirs, "seed {seed}\n{text}\n{}", model.text);
        compared += 1;
        wrong += usize::from(ours);
    }
    assert!(wrong > 0 && wrong < compared, "{wrong} of {compared} go wrong");
}
