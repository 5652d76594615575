//! Source files, and locations in them as byte ranges and as lines and columns.

/// A source file, by its position in the [`SourceMap`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct FileId(pub u16);

/// A half-open range of bytes in one file.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Span {
    /// The file the range lies in.
    pub file: FileId,
    /// First byte of the range.
    pub start: u32,
    /// One past the last byte of the range.
    pub end: u32,
}

impl Span {
    /// The range from `start` to `end`, in bytes of `file`.
    pub fn new(file: FileId, start: u32, end: u32) -> Span {
        Span { file, start, end }
    }

    /// The range of `part` in `text`, of which it is a slice, in the first file of a source map. A part of another text
    /// has an empty range at the start.
    pub fn of_slice(text: &str, part: &str) -> Span {
        let offset = (part.as_ptr() as usize).wrapping_sub(text.as_ptr() as usize);
        let is_inside = offset.checked_add(part.len()).is_some_and(|end| end <= text.len());
        let range = if is_inside { offset..offset + part.len() } else { 0..0 };
        Span::new(FileId(0), range.start as u32, range.end as u32)
    }

    /// The smallest range that holds both; `other` is ignored if it lies in another file.
    pub fn to(self, other: Span) -> Span {
        if self.file != other.file {
            return self;
        }
        Span { file: self.file, start: self.start.min(other.start), end: self.end.max(other.end) }
    }
}

/// A line and column, both counted from 1; the column counts characters.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct LineColumn {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
}

/// One source file: its name as messages print it, and its text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// The name as the user would write it.
    pub name: String,
    /// The whole text.
    pub text: String,
    line_starts: Vec<u32>,
    /// The number of characters before each multiple of [`STRIDE`], so that a column in a line of a megabyte is found
    /// without counting all of its characters.
    characters: Vec<u32>,
}

/// Bytes between two counts of characters.
const STRIDE: usize = 1024;

impl SourceFile {
    /// A file from its name and text.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> SourceFile {
        let text = text.into();
        let line_starts =
            std::iter::once(0).chain(text.bytes().enumerate().filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1));
        let mut before = 0;
        let characters = text.as_bytes().chunks(STRIDE).map(|chunk| {
            let here = before;
            before += first_bytes(chunk);
            here
        });
        let (line_starts, characters) = (line_starts.collect(), characters.collect());
        SourceFile { name: name.into(), line_starts, characters, text }
    }

    /// Line and column of a byte offset; an offset past the end counts as the end.
    pub fn line_column(&self, offset: u32) -> LineColumn {
        let offset = offset.min(self.text.len() as u32);
        let line = self.line_starts.partition_point(|start| *start <= offset) - 1;
        let start = self.line_starts[line];
        let column = match self.text.as_bytes().get(start as usize..offset as usize) {
            Some(before) if before.len() < STRIDE => first_bytes(before),
            _ => self.characters_before(offset) - self.characters_before(start),
        };
        LineColumn { line: line as u32 + 1, column: column + 1 }
    }

    /// The name, number or sign that begins at a line and column, in bytes; empty past the end.
    fn word_at(&self, place: LineColumn) -> (u32, u32) {
        let line = self.line_starts.get((place.line as usize).wrapping_sub(1)).copied().unwrap_or(u32::MAX) as usize;
        let Some(rest) = self.text.get(line..) else { return (self.text.len() as u32, self.text.len() as u32) };
        let column = (place.column as usize).saturating_sub(1);
        let before = rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at);
        let word = &rest[before..];
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = word.find(|c| !is_name(c)).unwrap_or(word.len());
        let length = if name > 0 { name } else { word.chars().next().map_or(0, char::len_utf8) };
        ((line + before) as u32, (line + before + length) as u32)
    }

    /// The number of characters that begin before a byte offset.
    fn characters_before(&self, offset: u32) -> u32 {
        let offset = offset as usize;
        // A text whose length is a multiple of the stride has no count for its end; the last one is used.
        let stride = (offset / STRIDE).min(self.characters.len().saturating_sub(1));
        let counted = self.characters.get(stride).copied().unwrap_or(0);
        counted + first_bytes(&self.text.as_bytes()[stride * STRIDE..offset])
    }
}

/// The number of characters that begin in these bytes of a text: all bytes except continuation bytes.
fn first_bytes(bytes: &[u8]) -> u32 {
    bytes.iter().filter(|byte| **byte & 0xc0 != 0x80).count() as u32
}

/// The expansion of a call: the text of the callee once more, at the place of the call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Expansion {
    /// The text of the callee, in a file or in an earlier expansion.
    pub text: Span,
    /// The name of the callee.
    pub callee: String,
    /// The call, which may be in another expansion.
    pub call: Span,
}

/// Every file of one compilation, in the order they were first read.
///
/// An expansion has the id of a file, too: a location in it is a location in the text of the callee that also knows the
/// call. [`SourceMap::origin`] leaves only the text, [`SourceMap::expansion`] names the call.
#[derive(Clone, Debug, Default)]
pub struct SourceMap {
    files: Vec<SourceFile>,
    expansions: Vec<Expansion>,
    expanded_bytes: usize,
}

impl SourceMap {
    /// Adds a file and returns its id.
    ///
    /// # Panics
    /// With more than 65,536 files; the import loader reports that before it happens. After the first expansion.
    pub fn add(&mut self, file: SourceFile) -> FileId {
        assert!(self.expansions.is_empty(), "all files are read before a call is expanded");
        let id = FileId(u16::try_from(self.files.len()).expect("the import loader limits the number of files"));
        self.files.push(file);
        id
    }

    /// Adds an expansion and returns its id, by which its locations name it; none if there are no more ids.
    pub fn expand(&mut self, expansion: Expansion) -> Option<FileId> {
        let id = u16::try_from(self.files.len() + self.expansions.len()).ok()?;
        self.expanded_bytes += (expansion.text.end - expansion.text.start) as usize;
        self.expansions.push(expansion);
        Some(FileId(id))
    }

    /// The expansion with this id; none for a file.
    pub fn expansion(&self, id: FileId) -> Option<&Expansion> {
        self.expansions.get((id.0 as usize).checked_sub(self.files.len())?)
    }

    /// All expansions, in order of their ids, which follow those of the files.
    pub fn expansions(&self) -> &[Expansion] {
        &self.expansions
    }

    /// The bytes of text that expansions repeat.
    pub fn expanded_bytes(&self) -> usize {
        self.expanded_bytes
    }

    /// The location in the text, without the calls that lead there.
    pub fn origin(&self, span: Span) -> Span {
        Span { file: self.text_of(span.file), ..span }
    }

    /// The file whose text an expansion repeats, or the file itself.
    fn text_of(&self, mut id: FileId) -> FileId {
        while let Some(expansion) = self.expansion(id) {
            id = expansion.text.file;
        }
        id
    }

    /// The file with this id, or that of the callee's text if it is the id of an expansion.
    ///
    /// # Panics
    /// Without such a file or expansion.
    pub fn file(&self, id: FileId) -> &SourceFile {
        self.get(id).expect("the id is of this source map")
    }

    /// As [`SourceMap::file`], or none.
    pub fn get(&self, id: FileId) -> Option<&SourceFile> {
        self.files.get(self.text_of(id).0 as usize)
    }

    /// All files, in order of their ids, without expansions.
    pub fn files(&self) -> &[SourceFile] {
        &self.files
    }

    /// The name, number or sign that begins at a line and column; empty where there is none.
    pub fn word_at(&self, file: FileId, place: LineColumn) -> Span {
        let (start, end) = self.file(file).word_at(place);
        Span::new(file, start, end)
    }

    /// Line and column at which a span starts.
    pub fn start(&self, span: Span) -> LineColumn {
        self.file(span.file).line_column(span.start)
    }
}

#[cfg(test)]
mod tests {
    use super::{FileId, LineColumn, STRIDE, SourceFile, SourceMap, Span};

    #[test]
    fn words_are_found_where_they_begin() {
        let mut sources = SourceMap::default();
        let file = sources.add(SourceFile::new("a.esp", "é in(c1, x);\n\nout"));
        let at = |line, column| sources.word_at(file, LineColumn { line, column });
        let span = |start, end| Span::new(FileId(0), start, end);
        assert_eq!((at(1, 1), at(1, 3), at(1, 5), at(1, 6)), (span(0, 2), span(3, 5), span(5, 6), span(6, 8)));
        assert_eq!((at(3, 1), at(3, 4), at(4, 1), at(0, 0)), (span(15, 18), span(18, 18), span(18, 18), span(18, 18)));
    }

    #[test]
    fn slices_have_ranges() {
        let text = String::from("copy | count");
        assert_eq!(Span::of_slice(&text, &text[7..]), Span::new(FileId(0), 7, 12));
        assert_eq!(Span::of_slice(&text, "count"), Span::default());
    }

    #[test]
    fn columns_count_characters_also_far_into_a_line() {
        for length in [0, 1, STRIDE - 1, STRIDE, STRIDE + 1, 3 * STRIDE] {
            let line: String = "aé∀".chars().cycle().take(length).collect();
            let text = format!("{line}\n{line}");
            let file = SourceFile::new("a.esp", text.as_str());
            let second = line.len() as u32 + 1;
            for (place, (at, _)) in line.char_indices().chain([(line.len(), ' ')]).enumerate() {
                let column = place as u32 + 1;
                assert_eq!(file.line_column(at as u32), LineColumn { line: 1, column });
                assert_eq!(file.line_column(second + at as u32), LineColumn { line: 2, column });
            }
        }
    }
}
