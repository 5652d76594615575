//! The check function: a program in, the verdict and the counterexample out.

use expect_test::Expect;
use quaject_esp_check::counterexample_file::{CounterexampleFile, write};
use quaject_esp_check::{Compaction, Options, Reduction, Report, Symmetry, Verdict, check};
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_lower::{lower_concrete, lower_model};
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::hir::ModelScope;
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, _path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err("these programs import nothing".into())
    }
}

/// The program's first model, or all of it, or the process of this name.
pub(crate) fn model(text: &str, process: Option<&str>) -> ModelProgram {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("p.esp", text));
    let analysis = analyze(&mut sources, root, &mut NoImports);
    let program = analysis.program.unwrap_or_else(|| panic!("{:#?}", analysis.diagnostics));
    let named = |name: &str| program.processes.iter().position(|process| process.name == name);
    let scope = process.map(|name| {
        let index = named(name).expect("the program has this process");
        ModelScope::Process(quaject_esp_syntax::hir::ProcessId(index as u32))
    });
    lower_model(&program, program.models.first(), scope, &sources)
}

/// The first model of a random program; none if it is not right.
pub(crate) fn random_model(text: &str) -> Option<ModelProgram> {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("p.esp", text));
    let program = analyze(&mut sources, root, &mut NoImports).program?;
    Some(lower_model(&program, program.models.first(), None, &sources))
}

/// The program's first model without its abstractions.
pub(crate) fn concrete(text: &str) -> ModelProgram {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("p.esp", text));
    let program = analyze(&mut sources, root, &mut NoImports).program.expect("the program is right");
    lower_concrete(&program, program.models.first(), Some(ModelScope::All), &sources)
}

/// A slice of one process; its environment is arbitrary.
pub(crate) fn slice_of(text: &str, process: &str) -> ModelProgram {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("p.esp", text));
    let program = analyze(&mut sources, root, &mut NoImports).program.expect("the program is right");
    let index = program.processes.iter().position(|known| known.name == process).expect("it has this process");
    let scope = ModelScope::Slice(vec![quaject_esp_syntax::hir::ProcessId(index as u32)]);
    lower_model(&program, None, Some(scope), &sources)
}

pub(crate) fn explore(model: &ModelProgram, options: &Options) -> Report {
    check(model, options, &mut |_| {}).unwrap_or_else(|refusal| panic!("{refusal:?}"))
}

pub(crate) const UNREDUCED: Options = Options {
    reduction: Reduction::Off,
    symmetry: Symmetry::Off,
    compaction: Compaction::Off,
    liveness: quaject_esp_check::Liveness::Ignored,
    threads: 1,
    limits: quaject_esp_check::Limits { states: None, bytes: None, timer: None, interrupt: None },
};

/// The verdict, the counterexample if there is one, and lines that are never executed. Checks that the verdict does not
/// depend on reduction, symmetry, compaction and threads, and the number of states not on threads and compaction.
pub(crate) fn verdict_text(model: &ModelProgram) -> String {
    let all = explore(model, &UNREDUCED);
    let two = explore(model, &Options { threads: 2, ..UNREDUCED });
    let reduced = explore(model, &Options::default());
    let kind = |report: &Report| match &report.verdict {
        Verdict::Holds => "holds".to_string(),
        Verdict::Violated(found) => format!("error {}", found.violation.name()),
        Verdict::Unfinished(limit) => format!("unfinished {limit:?}"),
    };
    assert_eq!(kind(&all), kind(&two));
    assert_eq!(kind(&all), kind(&reduced));
    let symmetric = explore(model, &Options { symmetry: Symmetry::On, ..Options::default() });
    assert_eq!(kind(&all), kind(&symmetric));
    // Every counterexample replays to the same violation.
    for found in [&all, &reduced, &symmetric] {
        if let Verdict::Violated(found) = &found.verdict {
            let file = CounterexampleFile::parse(&write(model, &[("p.esp".into(), String::new())], found));
            let followed = file.expect("it has just been written").replay(model).expect("the program is small");
            let followed = followed.expect("the run can be taken");
            assert_eq!(found.text(model), followed.text(model));
        }
    }
    let hashed = Options { compaction: Compaction::On, ..UNREDUCED };
    let by_hash = explore(model, &hashed);
    assert_eq!(kind(&all), kind(&by_hash));
    if by_hash.verdict == Verdict::Holds {
        assert_eq!(all.states, by_hash.states);
        let hashed_text = by_hash.text(model, &hashed);
        assert!(!hashed_text.contains("no errors in") && hashed_text.contains("omission probability"), "{hashed_text}");
    }
    let mut text = kind(&all);
    match &all.verdict {
        Verdict::Holds => {
            assert_eq!(all.states, two.states, "the number of states does not depend on the number of threads");
            assert!(reduced.states <= all.states);
            assert_eq!(all.unreached, reduced.unreached);
            text += &format!(", {} states, {} reduced\n", all.states, reduced.states);
        }
        Verdict::Violated(_) | Verdict::Unfinished(_) => text.push('\n'),
    }
    if let Verdict::Violated(found) = &reduced.verdict {
        text += &found.text(model);
    }
    for location in &all.unreached {
        text += &format!("never: line {}\n", location.line);
    }
    text
}

pub(crate) fn check_verdict(text: &str, expected: Expect) {
    expected.assert_eq(&verdict_text(&model(text, None)));
}

pub(crate) fn check_process(text: &str, process: &str, expected: Expect) {
    expected.assert_eq(&verdict_text(&model(text, Some(process))));
}
