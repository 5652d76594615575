//! How diagnostics look: for people, with the source text and carets as rustc draws them; and as JSON lines for
//! programs. Knows nothing of what they are about.

use super::{Diagnostic, Severity};
use crate::span::{FileId, SourceFile, SourceMap, Span};
use annotate_snippets::{AnnotationKind, Element, Level, Origin, Renderer, Snippet};
use serde_json::{Value, json};
use std::fmt::Write;
use std::ops::Range;

/// Whether the text for people is coloured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Color {
    /// Plain text.
    Never,
    /// With ANSI escape sequences.
    Always,
}

/// The diagnostics for people, in the order given, an empty line behind each.
///
/// ```
/// use quaject_esp_syntax::diagnostics::render::{Color, human};
/// use quaject_esp_syntax::span::{SourceFile, SourceMap};
/// let text = "const a = 010;";
/// let mut sources = SourceMap::default();
/// let file = sources.add(SourceFile::new("a.esp", text));
/// let parse = quaject_esp_syntax::parser::parse(file, text);
/// assert!(human(&sources, parse.diagnostics(), Color::Never).starts_with("error[E0102]: number `010` starts with 0"));
/// ```
pub fn human(sources: &SourceMap, diagnostics: &[Diagnostic], color: Color) -> String {
    let renderer = match color {
        Color::Never => Renderer::plain(),
        Color::Always => Renderer::styled(),
    };
    let mut text = String::new();
    for diagnostic in diagnostics {
        render(&mut text, sources, diagnostic, &renderer);
    }
    text
}

fn render(text: &mut String, sources: &SourceMap, diagnostic: &Diagnostic, renderer: &Renderer) {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let own_file = diagnostic.span.file;
    let mut places: Vec<Place> = vec![Place { span: diagnostic.span, label: None, kind: AnnotationKind::Primary }];
    places.extend(diagnostic.labels.iter().map(|(span, label)| Place {
        span: *span,
        label: Some(label),
        kind: AnnotationKind::Context,
    }));
    let mut files: Vec<FileId> = places.iter().map(|place| place.span.file).filter(|file| *file != own_file).collect();
    files.sort_unstable();
    files.dedup();
    files.insert(0, own_file);
    let mut group =
        level.primary_title(&diagnostic.message).id(diagnostic.code.name()).elements(files.iter().flat_map(|file| {
            let here: Vec<&Place> = places.iter().filter(|place| place.span.file == *file).collect();
            shown(sources.file(*file), &here)
        }));
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help));
    }
    let report = [group];
    writeln!(text, "{}\n", renderer.render(&report)).expect("a string takes any text");
}

struct Place<'a> {
    span: Span,
    label: Option<&'a String>,
    kind: AnnotationKind,
}

/// A line longer than this is shown in part: nobody reads it, and drawing it takes time.
const LONGEST_LINE: usize = 2_000;

/// The piece of one file that holds the places: whole lines, unless they are very long.
fn shown<'a>(file: &'a SourceFile, places: &[&Place<'a>]) -> Vec<Element<'a>> {
    let range = |span: Span| {
        let end = (span.end as usize).min(file.text.len());
        (span.start as usize).min(end)..end
    };
    let first = places.iter().map(|place| range(place.span).start).min().unwrap_or(0);
    let last = places.iter().map(|place| range(place.span).end).max().unwrap_or(0);
    let lines = whole_lines(&file.text, first..last);
    let longest = file.text[lines.clone()].lines().map(str::len).max().unwrap_or(0);
    let shown = if longest <= LONGEST_LINE {
        lines
    } else {
        // Around the primary place only; it comes first.
        let around = range(places[0].span);
        let start = around.start.saturating_sub(60).max(whole_lines(&file.text, around.clone()).start);
        let line_end = whole_lines(&file.text, around.start..around.start).end;
        let end = (around.start + 120).min(line_end);
        floor_boundary(&file.text, start)..floor_boundary(&file.text, end)
    };
    let line = file.line_column(shown.start as u32).line;
    let annotations = places.iter().filter_map(|place| {
        let Range { start, end } = range(place.span);
        if start < shown.start || start > shown.end {
            return None;
        }
        let span = start - shown.start..end.clamp(start, shown.end) - shown.start;
        Some(place.kind.span(span).label(place.label.map(String::as_str)))
    });
    let snippet = Snippet::source(&file.text[shown.clone()]).line_start(line as usize).annotations(annotations);
    if longest <= LONGEST_LINE {
        return vec![snippet.path(file.name.as_str()).into()];
    }
    // The column within the part would mislead.
    let at = file.line_column(places[0].span.start);
    let origin = Origin::path(file.name.as_str()).line(at.line as usize).char_column(at.column as usize);
    vec![origin.into(), snippet.into()]
}

fn whole_lines(text: &str, range: Range<usize>) -> Range<usize> {
    let (from, to) = (floor_boundary(text, range.start), floor_boundary(text, range.end));
    let start = text[..from].rfind('\n').map_or(0, |newline| newline + 1);
    let end = text[to..].find('\n').map_or(text.len(), |newline| to + newline);
    start..end
}

fn floor_boundary(text: &str, mut index: usize) -> usize {
    while !text.is_char_boundary(index) {
        index -= 1;
    }
    index
}

/// The diagnostics for programs: one JSON object per line.
///
/// | key | value |
/// |---|---|
/// | `code` | such as `"E0405"`, stable |
/// | `severity` | `"error"` or `"warning"` |
/// | `message` | one line |
/// | `file` | the file's name as given |
/// | `line`, `column` | where it starts, from 1; columns count characters |
/// | `end` | `{"line", "column"}`, one past the last character |
/// | `labels` | further places: `{"file", "line", "column", "end", "message"}` |
/// | `help` | the way out, or `null` |
pub fn json(sources: &SourceMap, diagnostics: &[Diagnostic]) -> String {
    let mut text = String::new();
    for diagnostic in diagnostics {
        let mut object = place(sources, diagnostic.span);
        object["code"] = diagnostic.code.name().into();
        object["severity"] = match diagnostic.severity() {
            Severity::Error => "error".into(),
            Severity::Warning => "warning".into(),
        };
        object["message"] = diagnostic.message.as_str().into();
        object["help"] = diagnostic.help.as_deref().into();
        let labels = diagnostic.labels.iter().map(|(span, message)| {
            let mut label = place(sources, *span);
            label["message"] = message.as_str().into();
            label
        });
        object["labels"] = labels.collect::<Vec<_>>().into();
        writeln!(text, "{object}").expect("a string takes any text");
    }
    text
}

fn place(sources: &SourceMap, span: Span) -> Value {
    let file = sources.file(span.file);
    let (start, end) = (file.line_column(span.start), file.line_column(span.end));
    json!({
        "file": file.name,
        "line": start.line,
        "column": start.column,
        "end": { "line": end.line, "column": end.column },
    })
}
