//! The models of small programs: which processes are explored, which channels stay open, what the environment may do
//! there. Every result is well-formed.

use expect_test::{Expect, expect};
use quaject_esp_ir::ir::Boundary;
use quaject_esp_ir::model::ModelProgram;
use quaject_esp_ir::verify::verify;
use quaject_esp_lower::lower_model;
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::hir::{ModelScope, ProcessId};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use std::fmt::Write as _;

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, _path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err("these programs import nothing".into())
    }
}

fn model(text: &str, scope: Option<ModelScope>) -> ModelProgram {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("p.esp", text));
    let analysis = analyze(&mut sources, root, &mut NoImports);
    let program = analysis.program.unwrap_or_else(|| panic!("{:#?}", analysis.diagnostics));
    let model = lower_model(&program, program.models.first(), scope, &sources);
    let errors: Vec<String> = verify(&model.program).iter().map(|error| error.text(&model.program)).collect();
    assert!(errors.is_empty(), "{errors:#?}");
    model
}

fn check(text: &str, scope: Option<ModelScope>, expected: Expect) {
    let model = model(text, scope);
    let mut text = String::new();
    for (process, role) in model.program.processes.iter().zip(&model.roles) {
        writeln!(text, "{} {role:?}", process.name).expect("writing to a string does not fail");
    }
    for (index, channel) in model.program.channels.iter().enumerate() {
        let end = match channel.boundary {
            Boundary::Internal => "inside".to_string(),
            Boundary::ToEnvironment => "to the environment".to_string(),
            Boundary::FromEnvironment => format!("{:?}, bound {:?}", model.messages[index], model.bounds[index]),
        };
        writeln!(text, "{}: {end}", channel.name).expect("writing to a string does not fail");
    }
    for (function, values) in model.program.externs.iter().zip(&model.results) {
        writeln!(text, "{}() {values:?}", function.name).expect("writing to a string does not fail");
    }
    expected.assert_eq(&text);
}

const RELAY: &str = "
    channel inC(int, int) external out;
    channel midC(int);
    channel outC(int) external in;
    process relay { while { in(inC, $n, _); out(midC, n); } }
    process show { while { in(midC, $n); out(outC, n); } }
";

#[test]
fn without_a_model_all_processes_are_explored_in_any_environment() {
    check(
        RELAY,
        None,
        expect![[r#"
            relay Explored
            show Explored
            inC: [One, One], bound None
            midC: inside
            outC: to the environment
        "#]],
    );
}

#[test]
fn an_environment_closes_its_channels() {
    let text =
        format!("{RELAY} model m {{ bound inC 3; env host {{ out(inC, 1, 2); }} env sink {{ in(outC, $x); }} }}");
    check(
        &text,
        None,
        expect![[r#"
            relay Explored
            show Explored
            host Environment
            sink Environment
            inC: inside
            midC: inside
            outC: inside
        "#]],
    );
}

#[test]
fn a_range_restricts_messages_and_results() {
    let text = format!(
        "extern fn f() -> int; {RELAY} process p {{ if (f() > 0) exit(1); }}
         model m {{ bound inC 3; abstract range inC.0 0..4; abstract range f 1..2; }}"
    );
    check(
        &text,
        None,
        expect![[r#"
            relay Explored
            show Explored
            p Explored
            inC: [Range(0, 4), One], bound Some(3)
            midC: inside
            outC: to the environment
            f() Range(1, 2)
        "#]],
    );
}

#[test]
fn stand_ins_use_the_ports_of_a_single_process() {
    check(
        RELAY,
        Some(ModelScope::Process(ProcessId(1))),
        expect![[r#"
            relay Omitted
            show Explored
            inC: [One, One], bound None
            midC: [One], bound None
            outC: to the environment
        "#]],
    );
}

#[test]
fn processes_that_share_a_channel_with_a_slice_get_stand_ins() {
    check(
        "channel c(pid(a, b), bool); channel d(bool);
         process a { in(c, @, $x); out(d, x); }
         process b { in(c, @, $x); out(d, x); }
         process s { in(d, $x); out(c, @a, x); in(d, $y); out(c, @b, y); }",
        Some(ModelScope::Slice(vec![ProcessId(0), ProcessId(2)])),
        expect![[r#"
            a Explored
            b Omitted
            s Explored
            outside OpenStub
            outside OpenStub
            c: inside
            d: inside
            d.0() All
        "#]],
    );
}
