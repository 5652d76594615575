//! Diagnostics as JSON lines, for programs.

use crate::span::{SourceMap, Span};
use crate::{Code, Diagnostic, Message};
use serde_json::{Value, json as value};

/// The diagnostics as text, one [`json_object`] a line.
pub fn json<C: Code>(sources: &SourceMap, diagnostics: &[Diagnostic<C>]) -> String {
    diagnostics.iter().map(|diagnostic| format!("{}\n", json_object(sources, diagnostic))).collect()
}

/// One diagnostic as an object.
///
/// | key | value |
/// |---|---|
/// | `code` | such as `"E0405"`, stable |
/// | `severity` | `"error"`, `"warning"`, `"fault"` or `"note"` |
/// | `message` | one line |
/// | `file` | the file's name as the user wrote it |
/// | `line`, `column` | where it starts, from 1; columns count characters |
/// | `end` | `{"line", "column"}`, one past the last character |
/// | `labels` | further locations: `{"file", "line", "column", "end", "message"}` |
/// | `help` | the help text, or `null` |
pub fn json_object<C: Code>(sources: &SourceMap, diagnostic: &Diagnostic<C>) -> Value {
    let mut object = location(sources, diagnostic.span);
    object["code"] = diagnostic.code.name().into();
    object["severity"] = diagnostic.severity().name().into();
    object["message"] = diagnostic.message.as_str().into();
    object["help"] = diagnostic.help.as_deref().into();
    let labels = diagnostic.labels.iter().map(|(span, message)| {
        let mut label = location(sources, *span);
        label["message"] = message.as_str().into();
        label
    });
    object["labels"] = labels.collect::<Vec<_>>().into();
    object
}

/// A message without a location as an object: the keys of a diagnostic, without those of a location. `code` may be
/// `null`.
pub fn json_message(message: &Message) -> Value {
    value!({
        "code": message.code,
        "severity": message.severity.name(),
        "message": message.text,
        "help": message.help,
        "labels": [],
    })
}

fn location(sources: &SourceMap, span: Span) -> Value {
    let file = sources.file(span.file);
    let (start, end) = (file.line_column(span.start), file.line_column(span.end));
    value!({
        "file": file.name,
        "line": start.line,
        "column": start.column,
        "end": { "line": end.line, "column": end.column },
    })
}
