//! Places in a preprocessed or translated text as places in the files that it was made of.

use quaject_diagnostic::Diagnostic;
use quaject_diagnostic::span::{FileId, SourceFile, SourceMap, Span};
use quaject_tickc::{Code, CompilerMessage, Lines, Translation, source_range};
use std::collections::HashMap;
use std::ops::Range;

/// The files that messages are about.
#[derive(Default)]
pub(super) struct Sources {
    map: SourceMap,
    files: HashMap<String, FileId>,
}

impl Sources {
    pub(super) fn map(&self) -> &SourceMap {
        &self.map
    }

    /// The diagnostics of a translation, at places of the files.
    pub(super) fn diagnostics(&mut self, text: &str, translation: &Translation) -> Vec<Diagnostic<Code>> {
        let mut moved = translation.diagnostics.clone();
        for own in &mut moved {
            let (start, end) = (own.span.start as usize, own.span.end as usize);
            let place = translation.lines.locate(own.span.start);
            let from = text[..start].rfind('\n').map_or(0, |before| before + 1);
            let line = text[from..].lines().next().unwrap_or_default();
            own.span = self.span(place.file, place.line, line, start - from..end.max(start) - from);
        }
        moved
    }

    /// The messages of the C compiler about a text, at places of the files.
    pub(super) fn compiler_diagnostics(&mut self, text: &str, messages: &[CompilerMessage]) -> Vec<Diagnostic<Code>> {
        if messages.is_empty() {
            return Vec::new();
        }
        let lines = LinesByPlace::of(text);
        let mut diagnostics = Vec::new();
        for CompilerMessage { file, line, column, code, text } in messages {
            let compiled = lines.find(file, *line);
            let span = match (compiled, column) {
                (Some(compiled), Some(column)) => {
                    let at = (*column as usize).saturating_sub(1).min(compiled.len());
                    self.span(file, *line, compiled, at..at + 1)
                }
                _ => self.span(file, *line, "", 0..0),
            };
            diagnostics.push(Diagnostic::new(*code, span, text.as_str()));
        }
        diagnostics
    }

    /// The place in a file of a range of one of its lines, which is `line` after the preprocessor.
    fn span(&mut self, name: &str, number: u32, line: &str, range: Range<usize>) -> Span {
        let file = self.file(name);
        let text = &self.map.file(file).text;
        let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1));
        let start = starts.take(number.max(1) as usize).last().unwrap_or_default();
        let own = text[start..].lines().next().unwrap_or_default();
        let found = source_range(line, range, own);
        Span::new(file, (start + found.start) as u32, (start + found.end) as u32)
    }

    /// The file of this name; empty if it cannot be read, as `<command-line>`.
    fn file(&mut self, name: &str) -> FileId {
        if let Some(file) = self.files.get(name) {
            return *file;
        }
        let bytes = std::fs::read(name).unwrap_or_default();
        let file = self.map.add(SourceFile::new(name, String::from_utf8_lossy(&bytes)));
        self.files.insert(name.to_owned(), file);
        file
    }
}

/// The lines of a text by file and line.
struct LinesByPlace<'t> {
    lines: HashMap<(String, u32), Option<&'t str>>,
}

impl<'t> LinesByPlace<'t> {
    fn of(text: &'t str) -> LinesByPlace<'t> {
        let places = Lines::of(text);
        let (mut lines, mut start) = (HashMap::new(), 0);
        for line in text.lines() {
            let place = places.locate(start as u32);
            if !line.starts_with('#') {
                // The text of a tick is on several lines, none of which is like that of the file.
                lines.entry((place.file.to_owned(), place.line)).and_modify(|own| *own = None).or_insert(Some(line));
            }
            start += line.len() + 1;
        }
        LinesByPlace { lines }
    }

    /// The line of a place that was copied from its file.
    fn find(&self, file: &str, line: u32) -> Option<&'t str> {
        self.lines.get(&(file.to_owned(), line)).copied().flatten().filter(|text| !text.contains("qjt_"))
    }
}
