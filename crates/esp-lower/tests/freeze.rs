//! The warning W0904 is reported for exactly those `freeze` that allocate an object in the lowered code: the warning
//! predicts from the syntax what lowering decides on the control-flow graph.

use quaject_esp_ir::ir::Op;
use quaject_esp_lower::lower;
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::diagnostics::Code;
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, _path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err("these programs import nothing".into())
    }
}

/// Bodies of a process with the variables `b: #t` and `n`, and whether some `freeze` in it copies.
const BODIES: [(&str, bool); 18] = [
    ("out(c, freeze(b));", false),
    ("out(c, freeze(b)); n = b.len;", true),
    ("out(c, freeze(b)); b[0] = 1;", true),
    ("out(c, freeze(b)); out(c, freeze(b));", true),
    ("if (n == 1) { out(c, freeze(b)); } else { out(c, freeze(b)); }", false),
    ("if (n == 1) { out(c, freeze(b)); } n = b.len;", true),
    ("if (n == 1) { out(c, freeze(b)); exit(n); } n = b.len;", false),
    ("for i in 0..2 { out(c, freeze(b)); }", true),
    ("for i in 0..2 { if (i == n) { out(c, freeze(b)); break; } }", false),
    ("for i in 0..2 { if (i == n) { out(c, freeze(b)); continue; } }", true),
    ("for i in 0..2 { for k in 0..2 { n += 1; } if (n == 2) { out(c, freeze(b)); break; } n += b.len; }", false),
    ("while { while { n += 1; if (n > 3) break; } if (n == 9) { out(c, freeze(b)); } n += b.len; }", true),
    ("alt { out(c, freeze(b)) { } in(d, _) { } }", false),
    ("alt { out(c, freeze(b)) { } in(d, _) { n = b.len; } }", false),
    ("alt { out(c, freeze(b)) { n = b.len; } in(d, _) { } }", true),
    ("alt { out(e, { freeze(b), 1 }) { } in(d, _) { } }", true),
    ("out(e, { freeze(b), b.len });", true),
    ("match n { 0 => { out(c, freeze(b)); } _ => { n = b.len; } }", false),
];

#[test]
fn a_warned_freeze_copies_and_no_other() {
    for (body, copies) in BODIES {
        let text = format!(
            "type t = bytes[<=4]; pool t 9; type both = record {{ first: t, second: int }};
             channel c(t) shared; channel d(int) shared; channel e(both) shared;
             process p {{ in(d, $v); var n = v, b: #t = #\"ab\"; {body} out(d, n); }}
             process q {{ while {{ alt {{ in(c, _) {{ }} in(e, _) {{ }} out(d, 1) {{ }} }} }} }}
             process r {{ while {{ in(d, _); }} }}"
        );
        let mut sources = SourceMap::default();
        let root = sources.add(SourceFile::new("p.esp", text));
        let analysis = analyze(&mut sources, root, &mut NoImports);
        let warned = analysis.diagnostics.iter().filter(|diagnostic| diagnostic.code == Code::W0904).count();
        let program = analysis.program.unwrap_or_else(|| panic!("{body}: {:#?}", analysis.diagnostics));
        let program = lower(&program, &sources);
        let blocks = program.processes.iter().flat_map(|process| &process.body.blocks);
        let allocate = |op: &Op| matches!(op, Op::Allocate(_));
        let taken =
            blocks.flat_map(|block| &block.instructions).filter(|instruction| allocate(&instruction.op)).count();
        assert_eq!(taken > 1, copies, "{body}: lowering");
        assert_eq!(warned > 1, copies, "{body}: warning");
    }
}
