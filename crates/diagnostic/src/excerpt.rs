//! A source line with a caret, for reports that are not diagnostics of a text: the fault of a running program, whose
//! source may be a line and no more.

/// A line of a source and a caret below one of its columns, as the renderings of diagnostics draw them. `number` is the
/// line's number; `column` counts characters from 1. A tabulator before the caret is kept, so that the caret is
/// aligned.
///
/// ```
/// assert_eq!(quaject_diagnostic::excerpt(12, "copy | sum", 8), "   |\n12 | copy | sum\n   |        ^\n");
/// ```
pub fn excerpt(number: u32, line: &str, column: u32) -> String {
    let number = number.to_string();
    let margin = " ".repeat(number.len());
    let before = line.chars().take((column as usize).saturating_sub(1));
    let indent: String = before.map(|character| if character == '\t' { '\t' } else { ' ' }).collect();
    format!("{margin} |\n{number} | {}\n{margin} | {indent}^\n", line.trim_end())
}
