//! Lines that a build script prints for Cargo: what the output depends on, and the diagnostics of a program.

use quaject_esp_syntax::diagnostics::{Diagnostic, Severity};
use quaject_esp_syntax::span::SourceMap;
use std::path::PathBuf;

/// The lines that make Cargo run the script again when one of these files changes.
pub(crate) fn rerun_lines(files: &[PathBuf]) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for path in files {
        // Cargo runs the script always if it does not find a file, so that a missing one is watched by its folder.
        let watched = match path.exists() {
            true => Some(path.as_path()),
            false => path.parent().filter(|folder| folder.is_dir()),
        };
        let line = watched.map(|path| format!("cargo::rerun-if-changed={}", path.display()));
        lines.extend(line.filter(|line| !lines.contains(line)));
    }
    lines
}

/// A diagnostic as one line for Cargo: kind, place, code, cause, help.
pub(crate) fn diagnostic_line(sources: &SourceMap, diagnostic: &Diagnostic) -> String {
    let kind = match diagnostic.severity() {
        Severity::Error => "error",
        Severity::Warning | Severity::Fault | Severity::Note => "warning",
    };
    // Of an expanded call, the place in the text that was written.
    let span = sources.origin(diagnostic.span);
    let (file, start) = (sources.file(span.file), sources.start(span));
    let mut line = format!(
        "cargo::{kind}={}:{}:{}: {}[{}]: {}",
        file.name,
        start.line,
        start.column,
        diagnostic.severity().name(),
        diagnostic.code.name(),
        diagnostic.message
    );
    if let Some(help) = &diagnostic.help {
        line += &format!(" / help: {help}");
    }
    // A line feed would end the directive.
    line.replace('\n', " ")
}

/// Prints lines to standard output, where Cargo reads them.
pub(crate) fn print(lines: &[String]) {
    lines.iter().for_each(|line| println!("{line}"));
}

/// Text as the end of an identifier of C.
pub(crate) fn identifier(text: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    text.chars().map(letter).collect()
}
