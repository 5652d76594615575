//! Diagnostics as text, with the source lines and carets as rustc draws them.

use crate::span::{FileId, SourceFile, SourceMap, Span};
use crate::{Code, Diagnostic, Severity};
use annotate_snippets::{AnnotationKind, Element, Level, Origin, Renderer, Snippet};
use std::fmt::Write;
use std::ops::Range;

/// Whether the text has colors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Color {
    /// Plain text.
    Never,
    /// With ANSI escape sequences.
    Always,
}

/// The columns of a text that no terminal shows.
const DEFAULT_COLUMNS: usize = 140;
/// Fewer columns leave no room for line numbers and a piece of the line.
const MIN_COLUMNS: usize = 40;

/// The diagnostics as text, in the order of the slice, an empty line after each.
pub fn human<C: Code>(sources: &SourceMap, diagnostics: &[Diagnostic<C>], color: Color) -> String {
    human_within(sources, diagnostics, color, DEFAULT_COLUMNS)
}

/// As [`human`], for a terminal of so many columns: source lines are cut so that they fit, around the location, because
/// carets below a line that the terminal wraps are below the wrong text. Messages are not cut.
pub fn human_within<C: Code>(
    sources: &SourceMap,
    diagnostics: &[Diagnostic<C>],
    color: Color,
    columns: usize,
) -> String {
    let renderer = match color {
        Color::Never => Renderer::plain(),
        Color::Always => Renderer::styled(),
    };
    let renderer = renderer.term_width(columns.max(MIN_COLUMNS));
    let mut text = String::new();
    for diagnostic in diagnostics {
        render(&mut text, sources, diagnostic, &renderer);
    }
    text
}

fn render<C: Code>(text: &mut String, sources: &SourceMap, diagnostic: &Diagnostic<C>, renderer: &Renderer) {
    let level = match diagnostic.severity() {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Fault => Level::ERROR.with_name(Severity::Fault.name()),
        Severity::Note => Level::NOTE,
    };
    let own_file = diagnostic.span.file;
    let mut locations: Vec<Location> =
        vec![Location { span: diagnostic.span, label: None, kind: AnnotationKind::Primary }];
    locations.extend(diagnostic.labels.iter().map(|(span, label)| Location {
        span: *span,
        label: Some(label),
        kind: AnnotationKind::Context,
    }));
    let mut files: Vec<FileId> =
        locations.iter().map(|location| location.span.file).filter(|file| *file != own_file).collect();
    files.sort_unstable();
    files.dedup();
    files.insert(0, own_file);
    let mut group =
        level.primary_title(&diagnostic.message).id(diagnostic.code.name()).elements(files.iter().flat_map(|file| {
            let here: Vec<&Location> = locations.iter().filter(|location| location.span.file == *file).collect();
            shown(sources.file(*file), &here)
        }));
    if let Some(help) = &diagnostic.help {
        group = group.element(Level::HELP.message(help));
    }
    let report = [group];
    writeln!(text, "{}\n", renderer.render(&report)).expect("a string takes any text");
}

struct Location<'a> {
    span: Span,
    label: Option<&'a String>,
    kind: AnnotationKind,
}

/// The limit above which a line is shown in part only: rendering takes time, and the text would not be legible.
const MAX_LINE_BYTES: usize = 2_000;

/// The piece of one file that holds the locations: whole lines, unless they are very long.
fn shown<'a>(file: &'a SourceFile, locations: &[&Location<'a>]) -> Vec<Element<'a>> {
    let range = |span: Span| {
        let end = (span.end as usize).min(file.text.len());
        (span.start as usize).min(end)..end
    };
    let first = locations.iter().map(|location| range(location.span).start).min().unwrap_or(0);
    let last = locations.iter().map(|location| range(location.span).end).max().unwrap_or(0);
    let lines = whole_lines(&file.text, first..last);
    let longest = file.text[lines.clone()].lines().map(str::len).max().unwrap_or(0);
    let shown = if longest <= MAX_LINE_BYTES {
        lines
    } else {
        // Around the primary location, which is the first.
        let around = range(locations[0].span);
        let start = around.start.saturating_sub(60).max(whole_lines(&file.text, around.clone()).start);
        let line_end = whole_lines(&file.text, around.start..around.start).end;
        let end = (around.start + 120).min(line_end);
        floor_boundary(&file.text, start)..floor_boundary(&file.text, end)
    };
    let line = file.line_column(shown.start as u32).line;
    let annotations = locations.iter().filter_map(|location| {
        let Range { start, end } = range(location.span);
        if start < shown.start || start > shown.end {
            return None;
        }
        let span = start - shown.start..end.clamp(start, shown.end) - shown.start;
        Some(location.kind.span(span).label(location.label.map(String::as_str)))
    });
    let snippet = Snippet::source(&file.text[shown.clone()]).line_start(line as usize).annotations(annotations);
    if longest <= MAX_LINE_BYTES {
        return vec![snippet.path(file.name.as_str()).into()];
    }
    // The renderer would count columns from the start of the part.
    let at = file.line_column(locations[0].span.start);
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
