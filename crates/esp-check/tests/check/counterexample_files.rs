//! Counterexamples as files and as charts: the run of a file is replayed to the same violation.

use crate::support::{explore, model, slice_of};
use expect_test::expect;
use quaject_esp_check::counterexample_file::{CounterexampleFile, write};
use quaject_esp_check::{Counterexample, Limits, Options, Spuriousness, Verdict, chart, concretize};
use quaject_esp_ir::model::ModelProgram;

fn counterexample_of(model: &ModelProgram) -> Counterexample {
    match explore(model, &Options::default()).verdict {
        Verdict::Violated(found) => found,
        other => panic!("{other:?}"),
    }
}

const PROGRAM: &str = "channel c(u8) external out; channel d(int); extern fn f(int) -> bool;
    process p { while { in(c, $x); if (f(1)) out(d, int(x)); } }
    process q { in(d, $a); in(d, $b); assert(a >= b); }";

#[test]
fn a_counterexample_file_is_written_and_replayed() {
    let model = model(PROGRAM, None);
    let found = counterexample_of(&model);
    let text = write(&model, &[("p.esp".into(), PROGRAM.into())], &found);
    let run = text.split_once("run\n").expect("the program is before the run").1;
    expect![[r#"
        r 0
        r 1
        i 0 0
        message 0
        r 0
        call f true
        c 0 0 1 0
        r 0
        r 1
        i 0 0
        message 1
        r 0
        call f true
        c 0 0 1 0
        r 1
        end assert
    "#]]
    .assert_eq(run);
    let file = CounterexampleFile::parse(&text).expect("it has just been written");
    assert_eq!(file.files[0].1, PROGRAM);
    assert_eq!(file.replay(&model).expect("a small program"), Ok(found));
}

#[test]
fn a_mismatching_file_reports_the_line() {
    let model = model(PROGRAM, None);
    let text = write(&model, &[("p.esp".into(), PROGRAM.into())], &counterexample_of(&model));
    for (from, to) in
        [("r 1\n", "c 0 0 0 7\n"), ("message 1\n", "message true\n"), ("call f true\n", ""), ("end", "ned")]
    {
        let file = CounterexampleFile::parse(&text.replace(from, to));
        let bad = match file {
            Err(bad) => bad,
            Ok(file) => file.replay(&model).expect("a small program").expect_err(to),
        };
        assert!(bad.line > 1 && !bad.message.is_empty(), "{bad:?}");
    }
}

#[test]
fn a_run_is_drawn_as_a_chart() {
    let model = model(PROGRAM, None);
    let picture = chart(&model, &counterexample_of(&model));
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n"));
    for word in [">environment<", ">p<", ">q<", "c(0)", "d(0)", "d(1)", "fault `assert` in `q`", "f()"] {
        assert!(picture.contains(word), "{word}: {picture}");
    }
}

/// The spuriousness of a slice's counterexample.
fn spuriousness_of(text: &str, slice: &str) -> Spuriousness {
    let part = slice_of(text, slice);
    let Verdict::Violated(found) = explore(&part, &Options::default()).verdict else { panic!("the slice goes wrong") };
    concretize(&model(text, None), &part, &found, &Limits::default()).expect("the program can be explored").spuriousness
}

#[test]
fn a_run_of_a_slice_only_is_spurious() {
    let server = "channel c(u8); process server { while { idle in(c, $x); assert(x < 3); } } process client";
    assert_eq!(spuriousness_of(&format!("{server} {{ out(c, 1); out(c, 2); }}"), "server"), Spuriousness::Spurious);
    assert_eq!(spuriousness_of(&format!("{server} {{ out(c, 1); out(c, 3); }}"), "server"), Spuriousness::Real);
}

#[test]
fn another_violation_of_the_program_does_not_make_a_run_real() {
    let text = "channel c(u8); channel d(); process server { while { idle in(c, $x); assert(x < 3); } }
        process client { out(c, 1); in(d); }  process other { var n = 1; assert(n == 2); out(d); }";
    assert_eq!(spuriousness_of(text, "server"), Spuriousness::Spurious);
}
