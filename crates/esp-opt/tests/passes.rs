//! What each pass makes of bodies: a file for each case, the IR before and after. `UPDATE_EXPECT=1` writes what is made.
//!
//! ```text
//!   tests/passes/PASS_WHAT.ir:   the program, a line "== after", the program after the pass
//! ```

use quaject_esp_ir::ir::{Body, Program};
use quaject_esp_ir::read::read;
use quaject_esp_ir::text::print;
use quaject_esp_ir::verify::verify;
use quaject_esp_opt::batch::batch_body;
use quaject_esp_opt::passes::{self, Context, Found};
use std::path::Path;

const AFTER: &str = "== after\n";

type Pass = fn(&mut Body, Context<'_>) -> bool;

const PASSES: [(&str, Pass); 11] = [
    ("join", passes::join),
    ("copies", passes::copies),
    ("constants", passes::constants),
    ("numbering", passes::numbering),
    ("ranges", passes::ranges),
    ("strength", passes::strength),
    ("counts", passes::counts),
    ("stores", passes::stores),
    ("dead", passes::dead),
    ("bounds", passes::bounds),
    ("batch", |body, context| batch_body(body, context.types).is_ok()),
];

fn well_formed(path: &Path, text: &str) -> Program {
    let program = read(text).unwrap_or_else(|error| panic!("{}: {error:?}", path.display()));
    let errors: Vec<String> = verify(&program).iter().map(|error| error.text(&program)).collect();
    assert!(errors.is_empty(), "{}: {errors:?}", path.display());
    program
}

/// The program after the pass, checked for overflow if the file's name says so.
fn after(path: &Path, pass: Pass, before: &str) -> String {
    let mut program = well_formed(path, before);
    let Program { types, memory, functions, processes, .. } = &mut program;
    let checked = path.to_string_lossy().contains("_checked");
    let found = Found::default();
    let context = Context { types, memory: *memory, checked, found: &found };
    let functions = functions.iter_mut().map(|function| &mut function.body);
    let bodies: Vec<&mut Body> = functions.chain(processes.iter_mut().map(|process| &mut process.body)).collect();
    let mut has_changed = false;
    for body in bodies {
        has_changed |= pass(body, context);
    }
    let text = print(&program);
    well_formed(path, &text);
    assert_eq!(has_changed, text != print(&well_formed(path, before)), "{}: it says otherwise", path.display());
    text
}

#[test]
fn each_pass_does_what_its_files_say() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/passes");
    let mut files: Vec<_> = std::fs::read_dir(&folder)
        .expect("the folder is there")
        .map(|entry| entry.expect("it can be read").path())
        .collect();
    files.sort();
    for (name, pass) in PASSES {
        let stem = |path: &Path| path.file_stem().expect("files have names").to_string_lossy().into_owned();
        let own: Vec<_> = files.iter().filter(|path| stem(path).split('_').next() == Some(name)).collect();
        assert!(!own.is_empty(), "no file shows what `{name}` does");
        for path in own {
            let text = std::fs::read_to_string(path).expect("it can be read");
            let (before, wanted) = text.split_once(AFTER).unwrap_or((&text, ""));
            let made = after(path, pass, before);
            if std::env::var_os("UPDATE_EXPECT").is_some() {
                std::fs::write(path, format!("{before}{AFTER}{made}")).expect("it can be written");
            } else {
                assert_eq!(made, wanted, "{}", path.display());
            }
        }
    }
}
