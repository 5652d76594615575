//! Semantic analysis, message by message: the smallest program for each, and all of its diagnostics.

mod accepted;
mod alternatives;
mod channels;
mod clock;
mod enumerations;
mod fast_paths;
mod limits;
mod modules;
mod names;
mod procedures;
mod senseless;
mod statements;
mod types;
mod warnings;

use expect_test::Expect;
use quaject_esp_syntax::check::{Analysis, Loader, analyze_with_fast_paths};
use quaject_esp_syntax::diagnostics::{Diagnostic, Severity};
use quaject_esp_syntax::hir::Program;
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap, Span};
use std::fmt::Write;

/// Files by name, in memory.
struct Files<'f>(&'f [(&'f str, &'f str)]);

impl Loader for Files<'_> {
    fn load(&mut self, path: &str, _: FileId) -> Result<(String, Vec<u8>), String> {
        let file = self.0.iter().find(|(name, _)| *name == path);
        file.map(|(name, text)| (name.to_string(), text.as_bytes().to_vec())).ok_or("no such file".to_string())
    }
}

/// Analyses a program with further files it can import and separate fast-path files.
fn analyze(source: &str, files: &[(&str, &str)], fast_paths: &[&str]) -> (Analysis, SourceMap) {
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("main.esp", source));
    let paths: Vec<FileId> = fast_paths
        .iter()
        .enumerate()
        .map(|(index, text)| sources.add(SourceFile::new(format!("{index}.fp"), *text)))
        .collect();
    let analysis = analyze_with_fast_paths(&mut sources, root, &paths, &mut Files(files));
    let failed = analysis.diagnostics.iter().any(|diagnostic| diagnostic.severity() == Severity::Error);
    assert_eq!(failed, analysis.program.is_none(), "there is a program exactly if there is no error");
    (analysis, sources)
}

fn place(span: Span, sources: &SourceMap) -> String {
    let file = sources.file(span.file);
    let at = sources.start(span);
    let text = file.text.get(span.start as usize..span.end as usize).expect("spans lie within their file");
    let text = text.lines().next().unwrap_or("");
    let name = if file.name == "main.esp" { String::new() } else { format!("{}:", file.name) };
    format!("{name}{}:{} `{text}`", at.line, at.column)
}

fn describe(diagnostic: &Diagnostic, sources: &SourceMap) -> String {
    let severity = diagnostic.severity().name();
    let (code, message) = (diagnostic.code.name(), &diagnostic.message);
    let mut text = format!("{severity}[{code}]: {message}\n  at {}\n", place(diagnostic.span, sources));
    for (span, label) in &diagnostic.labels {
        writeln!(text, "  at {}: {label}", place(*span, sources)).expect("a string takes any text");
    }
    if let Some(help) = &diagnostic.help {
        writeln!(text, "  help: {help}").expect("a string takes any text");
    }
    text
}

fn everything(analysis: &Analysis, sources: &SourceMap) -> String {
    analysis.diagnostics.iter().map(|diagnostic| describe(diagnostic, sources)).collect()
}

/// All diagnostics of a program.
fn check(source: &str, expected: Expect) {
    let (analysis, sources) = analyze(source, &[], &[]);
    expected.assert_eq(&everything(&analysis, &sources));
}

/// The checked program; its diagnostics must be as expected.
fn accept(source: &str, expected: Expect) -> Program {
    let (analysis, sources) = analyze(source, &[], &[]);
    expected.assert_eq(&everything(&analysis, &sources));
    analysis.program.expect("the program is accepted")
}

/// A program that can import some files.
fn check_imports(source: &str, expected: Expect) {
    let files = [
        ("main.esp", source),
        ("a.esp", "import \"main.esp\"; const A = 1;"),
        ("b.esp", "import \"a.esp\"; const B = A; channel c(int); process InB { in(c, _); }"),
    ];
    let (analysis, sources) = analyze(source, &files, &[]);
    let mut said = everything(&analysis, &sources);
    if let Some(program) = &analysis.program {
        let order: Vec<&str> = program.processes.iter().map(|process| process.name.as_str()).collect();
        writeln!(said, "processes: {}", order.join(" ")).expect("a string takes any text");
    }
    expected.assert_eq(&said);
}

/// A separate fast-path file for Figure 2 with two more processes. Diagnostics of the program itself are omitted.
fn check_fast_path(source: &str, expected: Expect) {
    let figure = concat!(include_str!("../data/figure2.esp"), include_str!("../data/functions.esp"));
    let more = "channel c(int); channel d(int) shared;
        process many[4] { out(c, 1); out(d, 1); }
        process twice { in(c, _); in(c, _); in(d, _); }";
    let (mut analysis, sources) = analyze(&format!("{figure}{more}"), &[], &[source]);
    analysis.diagnostics.retain(|diagnostic| diagnostic.severity() == Severity::Error);
    expected.assert_eq(&everything(&analysis, &sources));
}
