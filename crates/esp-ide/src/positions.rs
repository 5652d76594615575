//! Positions as editors count them: lines and columns from 0, a column in code units of UTF-16 or in bytes.

use std::ops::Range;

/// What a column counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[allow(missing_docs)]
pub enum Encoding {
    Utf8,
    #[default]
    Utf16,
}

/// A line and a column, both from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
#[allow(missing_docs)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

/// The lines of a text. A line ends with LF, CR LF or CR, as the Language Server Protocol has it.
pub struct Lines<'t> {
    text: &'t str,
    /// The offset of the first byte of each line.
    starts: Vec<u32>,
    encoding: Encoding,
}

impl<'t> Lines<'t> {
    /// The lines of a text.
    pub fn new(text: &'t str, encoding: Encoding) -> Lines<'t> {
        let bytes = text.as_bytes();
        let ends = (0..bytes.len())
            .filter(|at| bytes[*at] == b'\n' || (bytes[*at] == b'\r' && bytes.get(at + 1) != Some(&b'\n')));
        let starts = std::iter::once(0).chain(ends.map(|at| at as u32 + 1)).collect();
        Lines { text, starts, encoding }
    }

    /// The position of an offset in bytes; one past the end counts as the end.
    pub fn position(&self, offset: u32) -> Position {
        let mut offset = (offset as usize).min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start as usize <= offset) - 1;
        let before = &self.text[self.starts[line] as usize..offset];
        let column = match self.encoding {
            Encoding::Utf8 => before.len(),
            Encoding::Utf16 => before.encode_utf16().count(),
        };
        Position { line: line as u32, column: column as u32 }
    }

    /// The offset of a position; a column past the end of its line counts as the end, without the line break.
    pub fn offset(&self, position: Position) -> u32 {
        let Some(start) = self.starts.get(position.line as usize).map(|start| *start as usize) else {
            return self.text.len() as u32;
        };
        let end = self.starts.get(position.line as usize + 1).map_or(self.text.len(), |end| *end as usize);
        let line = self.text[start..end].trim_end_matches(['\n', '\r']);
        let mut column = 0;
        for (at, letter) in line.char_indices() {
            let width = match self.encoding {
                Encoding::Utf8 => letter.len_utf8(),
                Encoding::Utf16 => letter.len_utf16(),
            };
            if column + width > position.column as usize {
                return (start + at) as u32;
            }
            column += width;
        }
        (start + line.len()) as u32
    }

    /// The positions of both ends of a range.
    pub fn range(&self, range: Range<u32>) -> (Position, Position) {
        (self.position(range.start), self.position(range.end))
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoding, Lines, Position};

    #[test]
    fn columns_count_code_units() {
        let text = "// \u{1f600}e\u{301}x\r\nin\rout\n";
        let lines = Lines::new(text, Encoding::Utf16);
        let place = |line, column| Position { line, column };
        for (at, position) in
            [(0, place(0, 0)), (7, place(0, 5)), (10, place(0, 7)), (13, place(1, 0)), (16, place(2, 0))]
        {
            assert_eq!((lines.position(at), lines.offset(position)), (position, at));
        }
        // Inside of a pair of surrogates, past the end of a line, past the end of the text.
        let past = [(0, 4), (0, 99), (9, 0)].map(|(line, column)| lines.offset(place(line, column)));
        assert_eq!(past, [3, 11, 20]);
        assert_eq!(Lines::new(text, Encoding::Utf8).position(7), place(0, 7));
    }

    #[test]
    fn every_offset_returns() {
        let text = "a\u{e9}\u{4e2d}\u{1f600}\n\n\u{1f600}b";
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            let lines = Lines::new(text, encoding);
            for (at, _) in text.char_indices() {
                assert_eq!(lines.offset(lines.position(at as u32)), at as u32);
            }
        }
    }
}
