//! Mistakes of newcomers: each program in `tests/newcomers` has one mistake, and one message that names it and the way
//! out. The text next to the program is the message.

use crate::support::NoFiles;
use expect_test::expect_file;
use quaject_diagnostic::{Color, human};
use quaject_esp_syntax::check::analyze;
use quaject_esp_syntax::diagnostics::Severity;
use quaject_esp_syntax::span::{SourceFile, SourceMap};
use std::path::Path;

#[test]
fn one_message_names_the_mistake_and_the_way_out() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/newcomers");
    let entries = std::fs::read_dir(&folder).expect("the folder is there");
    let paths = entries.map(|entry| entry.expect("the folder can be read").path());
    let mut programs: Vec<_> = paths.filter(|path| path.extension().is_some_and(|end| end == "esp")).collect();
    programs.sort();
    assert!(programs.len() >= 50, "{} mistakes", programs.len());
    let mut unhelpful = Vec::new();
    for path in programs {
        let text = std::fs::read_to_string(&path).expect("the program can be read");
        let name = path.file_name().expect("a file has a name").to_string_lossy().into_owned();
        let mut sources = SourceMap::default();
        let root = sources.add(SourceFile::new(&name, &text));
        let diagnostics = analyze(&mut sources, root, &mut NoFiles).diagnostics;
        expect_file![path.with_extension("txt")].assert_eq(&human(&sources, &diagnostics, Color::Never));
        let errors = diagnostics.iter().filter(|found| found.severity() == Severity::Error).count();
        if errors != 1 || diagnostics.len() != 1 || diagnostics.iter().any(|found| found.help.is_none()) {
            unhelpful.push(format!("{name}: {errors} errors, {} messages", diagnostics.len()));
        }
    }
    assert!(unhelpful.is_empty(), "{unhelpful:#?}");
}
