//! Lowers each program of `lowering/` and compares the IR with the `.ir` file of its name; the IR is printed and read
//! back. Each is then run: the first line says how, `// ends STATUS` or `// faults NAME`, and when every instance has
//! ended, every object is free again. `UPDATE_EXPECT=1` writes the expected files.

use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::replay::RandomScheduler;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::{Checks, Control, State};
use quaject_esp_ir::ir::{ChannelId, ExternId, PoolId, Program};
use quaject_esp_ir::text::fault_name;
use quaject_esp_ir::{read::read, text::print, verify::verify};
use quaject_esp_lower::lower;
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use std::path::Path;

/// An environment without partners: it offers and accepts nothing.
struct NoPartners;

impl Environment for NoPartners {
    fn peek(&mut self, _channel: ChannelId) -> Offer<'_> {
        Offer::Closed
    }

    fn take(&mut self, _channel: ChannelId) {}

    fn readiness(&mut self, _channel: ChannelId) -> Readiness {
        Readiness::Closed
    }

    fn put(&mut self, _channel: ChannelId, _message: &[Datum]) {}

    fn now_ns(&mut self) -> i64 {
        0
    }

    fn call(&mut self, _function: ExternId, _arguments: &mut [Datum]) -> Reply {
        Reply::Unresolved
    }
}

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, _path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err("these programs import nothing".into())
    }
}

fn lowered(name: &str, text: &str) -> Program {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new(name, text));
    let analysis = analyze(&mut sources, root, &mut NoImports);
    let program = analysis.program.unwrap_or_else(|| panic!("{name}: {:#?}", analysis.diagnostics));
    let program = lower(&program, &sources);
    let errors: Vec<String> = verify(&program).iter().map(|error| error.text(&program)).collect();
    assert!(errors.is_empty(), "{name}: {errors:#?}");
    program
}

fn ending(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Ended(status) => format!("ends {status}"),
        Outcome::Faulted(report) => format!("faults {}", fault_name(report.fault)),
        Outcome::Quiescent(_) => "rests".into(),
        Outcome::Budget => "goes on".into(),
    }
}

fn check_pools(name: &str, program: &Program, state: &State) {
    if !(0..state.instances()).all(|instance| state.control(instance) == Control::Ended) {
        return;
    }
    for (index, pool) in program.types.pools().iter().enumerate() {
        let free = state.free_objects(PoolId(index as u32));
        assert_eq!(free, pool.capacity, "{name}: objects of `{}` that are never released", pool.name);
    }
}

fn check(path: &Path) {
    let name = path.file_name().and_then(|name| name.to_str()).expect("test files have plain names");
    let text = std::fs::read_to_string(path).expect("the program can be read");
    let wanted = text.lines().next().and_then(|line| line.strip_prefix("// ")).expect("the first line says the end");
    let program = lowered(name, &text);
    let ir = print(&program);
    expect_test::expect_file![path.with_extension("ir")].assert_eq(&ir);
    let again = read(&ir).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(print(&again), ir, "{name}: the text reads back as another program");

    let mut interpreter = Interpreter::new(&program, Checks::Off).expect("the program is small");
    let outcome = interpreter.run(&mut NoPartners, 1_000_000);
    assert_eq!(ending(&outcome), wanted, "{name}: {outcome:?}");
    if outcome == Outcome::Ended(0) {
        check_pools(name, &program, interpreter.state());
        for seed in 0..20 {
            let mut scheduler = RandomScheduler::new(&program, Checks::Off, seed).expect("the program is small");
            let outcome = scheduler.run(&mut NoPartners, 1_000_000);
            assert_eq!(ending(&outcome), wanted, "{name}, random schedule {seed}: {outcome:?}");
            check_pools(name, &program, scheduler.state());
        }
    }
}

#[test]
fn programs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lowering");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("the folder can be read").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "esp"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let failed: Vec<_> = paths.iter().filter(|path| std::panic::catch_unwind(|| check(path)).is_err()).collect();
    assert!(failed.is_empty(), "these failed, see above: {failed:#?}");
}
