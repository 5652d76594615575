//! Text-IR file tests of the passes, as Cranelift's: a file for each case, the IR before and after. `UPDATE_EXPECT=1`
//! writes the results.
//!
//! ```text
//!   tests/filetests/PASS/CASE.ir
//!     ; what the case shows
//!     ; pass: PASS
//!     ; checked            overflow is a fault
//!     the program
//!     == after
//!     the program after the pass
//! ```

use quaject_esp_ir::ir::{Body, Program};
use quaject_esp_ir::read::read;
use quaject_esp_ir::text::print;
use quaject_esp_ir::verify::verify;
use quaject_esp_opt::loop_versioning::unroll_body;
use quaject_esp_opt::passes::{self, AnalysisCache, Context};
use std::path::{Path, PathBuf};

const AFTER: &str = "== after\n";

type Pass = fn(&mut Body, Context<'_>) -> bool;

const PASSES: [(&str, Pass); 11] = [
    ("simplify-cfg", passes::simplify_cfg),
    ("copy-prop", passes::copy_prop),
    ("const-fold", passes::const_fold),
    ("gvn", passes::gvn),
    ("vrp", passes::vrp),
    ("strength-reduce", passes::strength_reduce),
    ("rc-elim", passes::rc_elim),
    ("dse", passes::dse),
    ("dce", passes::dce),
    ("bounds-check-elim", passes::bounds_check_elim),
    ("unroll", |body, context| unroll_body(body, context.types).is_ok()),
];

fn parse(path: &Path, text: &str) -> Program {
    let program = read(text).unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
    let errors: Vec<String> = verify(&program).iter().map(|error| error.text(&program)).collect();
    assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    program
}

/// The program after the pass, as text. The pass has to report whether it has changed anything.
fn transform(path: &Path, pass: Pass, before: &str, checked: bool) -> String {
    let mut program = parse(path, before);
    let Program { types, memory, functions, processes, .. } = &mut program;
    let cache = AnalysisCache::default();
    let context = Context { types, memory: *memory, checked, cache: &cache };
    let functions = functions.iter_mut().map(|function| &mut function.body);
    let bodies: Vec<&mut Body> = functions.chain(processes.iter_mut().map(|process| &mut process.body)).collect();
    let mut has_changed = false;
    for body in bodies {
        has_changed |= pass(body, context);
    }
    let text = print(&program);
    parse(path, &text);
    assert_eq!(has_changed, text != print(&parse(path, before)), "{}: the pass reports otherwise", path.display());
    text
}

/// The `.ir` files of a folder, sorted.
fn cases(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    files.sort();
    files
}

#[test]
fn each_pass_produces_the_text_of_its_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    for (name, pass) in PASSES {
        let files = cases(&root.join(name));
        assert!(!files.is_empty(), "no file tests `{name}`");
        for path in files {
            let text = std::fs::read_to_string(&path).expect("a readable file");
            let (before, expected) = text.split_once(AFTER).unwrap_or((&text, ""));
            let program: String =
                before.lines().skip_while(|line| line.starts_with("; ")).map(|line| format!("{line}\n")).collect();
            let directives: Vec<&str> = before.lines().map_while(|line| line.strip_prefix("; ")).collect();
            assert!(directives.contains(&format!("pass: {name}").as_str()), "{}: not of `{name}`", path.display());
            let after = transform(&path, pass, &program, directives.contains(&"checked"));
            if std::env::var_os("UPDATE_EXPECT").is_some() {
                std::fs::write(&path, format!("{before}{AFTER}{after}")).expect("a writable file");
            } else {
                assert_eq!(after, expected, "{}", path.display());
            }
        }
    }
}
