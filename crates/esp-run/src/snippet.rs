//! The caret below a column of a source line, in errors and faults.

/// The white space before a caret below a column, which counts characters from 1. Tabulators are kept, so that the caret is aligned.
pub(crate) fn caret_indent(line: &str, column: usize) -> String {
    let before = line.chars().take(column.saturating_sub(1));
    before.map(|character| if character == '\t' { '\t' } else { ' ' }).collect()
}
