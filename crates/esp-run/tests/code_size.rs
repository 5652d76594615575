//! Code bytes of a report: every byte has one owner, and code added to a process is that process's.

use quaject_esp_gen::c::{Options, Owner, Style};
use quaject_esp_ir::ir::Program;
use quaject_esp_lower::lower;
use quaject_esp_run::{CodeSizes, SIZE_FLAGS, measure};
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err(format!("nothing to import: {path}"))
    }
}

fn program(source: &str) -> Program {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("program.esp", source.to_string()));
    let analysis = analyze(&mut sources, root, &mut NoImports);
    let program = analysis.program.unwrap_or_else(|| panic!("the program is wrong: {:?}", analysis.diagnostics));
    lower(&program, &sources)
}

fn sizes(source: &str, style: Style, flags: &[&str]) -> CodeSizes {
    measure(&program(source), &Options { style, ..Options::default() }, flags).expect("the C is compiled and measured")
}

const STYLES: [Style; 3] = [Style::Poll, Style::Post { ring: 4 }, Style::SansIo];

/// Two processes, several writers and a function, with more code in the second process.
fn pair(more: &str) -> String {
    format!(
        "channel i(int) external out;\nchannel o(int) external in;\nchannel c(int);\n\
         fn twice(n: int) -> int {{ return n * 2; }}\n\
         process first {{ while {{ in(i, $n); out(c, twice(n)); }} }}\n\
         process second {{ var sum = 0; while {{ in(c, $n); sum += n; {more} out(o, sum); }} }}\n\
         process third[3] {{ out(c, twice(int(@))); }}\n"
    )
}

#[test]
fn every_byte_of_code_has_an_owner() {
    for style in STYLES {
        for source in ["", "process p { }\n", "process p { while { yield; } }\n", &pair("")] {
            let sizes = sizes(source, style, SIZE_FLAGS);
            assert_eq!(sizes.bytes.values().sum::<u64>(), sizes.text_bytes, "{style:?}: {source}");
            assert!(sizes.text_bytes > 0);
        }
    }
    let sizes = sizes(&pair(""), Style::SansIo, SIZE_FLAGS);
    assert!(sizes.compiler.ends_with("`-std=gnu99 -Os`"), "{}", sizes.compiler);
    for process in 0..3 {
        assert!(sizes.of(Owner::Process(process)) > 20, "{sizes:?}");
    }
}

#[test]
fn code_added_to_a_process_is_its_own() {
    // Without optimisation: a compiler that puts values elsewhere because of it changes other code as well.
    let flags = ["-std=gnu99", "-O0"];
    let more = "for k in 0..3 { if (sum > k) sum = sum * 3 + k; }".repeat(4);
    let more = more.as_str();
    // Jumps across the added code take some bytes more.
    const JUMPS: u64 = 16;
    for style in STYLES {
        let (before, after) = (sizes(&pair(""), style, &flags), sizes(&pair(more), style, &flags));
        let grown = after.of(Owner::Process(1)) - before.of(Owner::Process(1));
        assert!(grown > 20 * JUMPS, "{style:?}: {before:?} {after:?}");
        for owner in [Owner::Process(0), Owner::Process(2), Owner::Function(0), Owner::Scheduler] {
            let others = after.of(owner).abs_diff(before.of(owner));
            assert!(others <= JUMPS, "{style:?}: {owner:?} {before:?} {after:?}");
        }
    }
    let (before, after) = (sizes(&pair(""), Style::Poll, SIZE_FLAGS), sizes(&pair(more), Style::Poll, SIZE_FLAGS));
    assert!(after.of(Owner::Process(1)) > before.of(Owner::Process(1)) + 10, "{before:?} {after:?}");
}
