//! Builds the library for `wasm32-unknown-unknown`, runs it in an interpreter of WebAssembly, and compares what it
//! computes there with what it computes here. A build alone would not find a call of the system: the standard library
//! of this target compiles them, and panics.

use quaject_test_support::quick_run;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use wasmi::{Engine, Linker, Module, Store};

/// The library as a WebAssembly module, built in a folder of its own: the run of the tests can hold the lock of the
/// usual one.
fn build_module() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("wasm");
    let mut cargo = Command::new(env!("CARGO"));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).env("CARGO_TARGET_DIR", &target);
    cargo.args(["rustc", "--quiet", "--lib", "--crate-type=cdylib", "--target=wasm32-unknown-unknown"]);
    // The module runs for seconds; optimising it would take minutes.
    cargo.args(["--config", "profile.dev.debug=false", "--config", "profile.dev.opt-level=0"]);
    let status = cargo.status().expect("Cargo has built this test");
    assert!(status.success(), "the library does not build (`cargo xtask tools` installs the target)");
    target.join("wasm32-unknown-unknown/debug/quaject_test_wasm.wasm")
}

/// The report that the module computes.
fn run_module(file: &Path) -> String {
    let engine = Engine::default();
    let code = fs::read(file).expect("Cargo has written the module");
    let module = Module::new(&engine, &code).expect("rustc writes valid modules");
    let imports: Vec<String> =
        module.imports().map(|import| format!("{}.{}", import.module(), import.name())).collect();
    assert_eq!(imports, Vec::<String>::new(), "the library needs nothing from its host");
    let mut store = Store::new(&engine, ());
    let instance = Linker::new(&engine).instantiate_and_start(&mut store, &module).expect("it imports nothing");
    let report = instance.get_typed_func::<(), u64>(&store, "wasm_report").expect("the library exports it");
    let text = report.call(&mut store, ()).expect("nothing panics");
    let memory = instance.get_memory(&store, "memory").expect("rustc exports the memory");
    let (start, length) = ((text >> 32) as usize, text as u32 as usize);
    String::from_utf8(memory.data(&store)[start..start + length].to_vec()).expect("the report is a string")
}

#[test]
fn web_assembly_computes_what_this_machine_computes() {
    // The run takes seconds, but the build of all crates for another target takes minutes.
    if quick_run("the compiler in WebAssembly") {
        return;
    }
    let here = quaject_test_wasm::report();
    for part in ["error[E0208]", "#include \"quaject/esp.h\"", "<svg", "> sumC", "no errors", "proctype", "refinement"]
    {
        assert!(here.contains(part), "the report has no `{part}`");
    }
    let there = run_module(&build_module());
    let mut lines = here.lines().zip(there.lines()).enumerate();
    if let Some((number, (here, there))) = lines.find(|(_, (here, there))| here != there) {
        panic!("line {} of the report:\n  here:           {here}\n  in WebAssembly: {there}", number + 1);
    }
    assert_eq!(here.len(), there.len(), "one report is longer");
}
