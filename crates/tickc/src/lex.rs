//! Splits preprocessed C with ticks into tokens, and knows from which line of which file each comes. Does not know
//! what
//! tokens mean.

/// What a token is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TokenKind {
    /// An identifier or keyword.
    Name,
    /// A preprocessing number.
    Number,
    /// A character constant.
    Character,
    /// A string literal, with its prefix.
    Text,
    /// Punctuation.
    Sign,
}

/// A token: a range of bytes of the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// A line marker of the preprocessor: `# 12 "file.c" 3`.
#[derive(Clone, Debug)]
struct Marker {
    /// The first byte of the line that it describes.
    start: u32,
    file: String,
    line: u32,
    is_system: bool,
}

/// The lines of the files that a preprocessed text was made of.
#[derive(Clone, Debug, Default)]
pub struct Lines {
    markers: Vec<Marker>,
    newlines: Vec<u32>,
}

/// A line of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Location<'l> {
    /// The name of the file; empty for a text without line markers.
    pub file: &'l str,
    /// The line, from one.
    pub line: u32,
    /// Whether the file is a header of the system.
    pub is_system: bool,
}

impl Lines {
    /// The lines of a preprocessed text.
    pub fn of(text: &str) -> Lines {
        lex(text).1
    }

    /// The files that the text was made of, except headers of the system, each once, in the order of the text.
    pub fn files(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for marker in self.markers.iter().filter(|marker| !marker.is_system) {
            if !found.contains(&marker.file.as_str()) {
                found.push(&marker.file);
            }
        }
        found
    }

    /// The line from which the byte at `offset` comes.
    pub fn locate(&self, offset: u32) -> Location<'_> {
        let passed = |from: u32| {
            let count = |at: u32| self.newlines.partition_point(|newline| *newline < at);
            (count(offset) - count(from)) as u32
        };
        match self.markers.partition_point(|marker| marker.start <= offset).checked_sub(1) {
            Some(index) => {
                let marker = &self.markers[index];
                let line = marker.line + passed(marker.start);
                Location { file: &marker.file, line, is_system: marker.is_system }
            }
            None => Location { file: "", line: 1 + passed(0), is_system: false },
        }
    }
}

/// Punctuation of more than one byte, longest first.
const LONG_SIGNS: &[&str] = &[
    "...", "<<=", ">>=", "->", "++", "--", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "*=", "/=", "%=", "+=",
    "-=", "&=", "^=", "|=", "::",
];

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

/// The end of a literal whose opening quote is at `at`. A line that ends first ends it, too.
fn literal_end(bytes: &[u8], at: usize) -> usize {
    let quote = bytes[at];
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != b'\n' {
        match bytes[end] {
            b'\\' => end += 2,
            byte if byte == quote => return end + 1,
            _ => end += 1,
        }
    }
    end.min(bytes.len())
}

/// The tokens of a text, without white space, comments and directives, and its lines.
pub(crate) fn lex(text: &str) -> (Vec<Token>, Lines) {
    let bytes = text.as_bytes();
    let mut tokens = Vec::with_capacity(text.len() / 4);
    let newlines = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at as u32).collect();
    let mut lines = Lines { markers: Vec::new(), newlines };
    let mut at = 0;
    let mut is_line_start = true;
    while at < bytes.len() {
        let start = at;
        let kind = match bytes[at] {
            b'\n' => {
                is_line_start = true;
                at += 1;
                continue;
            }
            b' ' | b'\t' | b'\r' | 0x0b | 0x0c => {
                at += 1;
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'*') => {
                at = text[at + 2..].find("*/").map_or(bytes.len(), |length| at + length + 4);
                continue;
            }
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = text[at..].find('\n').map_or(bytes.len(), |length| at + length);
                continue;
            }
            b'#' if is_line_start => {
                at = text[at..].find('\n').map_or(bytes.len(), |length| at + length);
                lines.markers.extend(read_marker(&text[start..at], at as u32 + 1));
                continue;
            }
            b'"' | b'\'' => {
                at = literal_end(bytes, at);
                if bytes[start] == b'"' { TokenKind::Text } else { TokenKind::Character }
            }
            byte if byte.is_ascii_digit()
                || byte == b'.' && bytes.get(at + 1).is_some_and(|next| next.is_ascii_digit()) =>
            {
                at = number_end(bytes, at);
                TokenKind::Number
            }
            byte if is_name_byte(byte) => {
                while at < bytes.len() && is_name_byte(bytes[at]) {
                    at += 1;
                }
                match (bytes.get(at), &text[start..at]) {
                    (Some(quote @ (b'"' | b'\'')), "L" | "u" | "U" | "u8") => {
                        at = literal_end(bytes, at);
                        if *quote == b'"' { TokenKind::Text } else { TokenKind::Character }
                    }
                    _ => TokenKind::Name,
                }
            }
            _ => {
                let long = LONG_SIGNS.iter().find(|sign| bytes[at..].starts_with(sign.as_bytes()));
                at += long.map_or(1, |sign| sign.len());
                TokenKind::Sign
            }
        };
        is_line_start = false;
        tokens.push(Token { kind, start: start as u32, end: at as u32 });
    }
    (tokens, lines)
}

fn number_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        let is_exponent = matches!(bytes[at], b'e' | b'E' | b'p' | b'P');
        at += match bytes.get(at + 1) {
            Some(b'+' | b'-') if is_exponent => 2,
            // A separator of digits.
            Some(next) if bytes[at] == b'\'' && is_name_byte(*next) => 2,
            _ if is_name_byte(bytes[at]) || bytes[at] == b'.' => 1,
            _ => break,
        };
    }
    at
}

/// `# 12 "file.c" 1 3` or `#line 12 "file.c"`; none for other directives.
fn read_marker(directive: &str, next_line: u32) -> Option<Marker> {
    let rest = directive[1..].trim_start();
    let rest = rest.strip_prefix("line").unwrap_or(rest).trim_start();
    let (number, rest) = rest.split_at(rest.find(|sign: char| !sign.is_ascii_digit()).unwrap_or(rest.len()));
    let line = number.parse().ok()?;
    let (file, flags) = rest.trim_start().strip_prefix('"')?.rsplit_once('"')?;
    let is_system = flags.split_whitespace().any(|flag| flag == "3");
    Some(Marker { start: next_line, file: unescaped(file), line, is_system })
}

/// The name in a string literal of a line marker.
fn unescaped(literal: &str) -> String {
    let mut name = String::with_capacity(literal.len());
    let mut characters = literal.chars();
    while let Some(character) = characters.next() {
        name.push(if character == '\\' { characters.next().unwrap_or('\\') } else { character });
    }
    name
}

/// A line marker between two line ends.
pub(crate) fn line_marker(location: Location<'_>) -> String {
    let name = location.file.replace('\\', "\\\\").replace('"', "\\\"");
    format!("\n# {} \"{name}\"\n", location.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        lex(text).0.iter().map(|token| &text[token.start as usize..token.end as usize]).collect()
    }

    #[test]
    fn tokens_keep_their_bytes() {
        assert_eq!(texts("a+++b->c...`$x@y"), ["a", "++", "+", "b", "->", "c", "...", "`", "$", "x", "@", "y"]);
        assert_eq!(
            texts("L\"a\\\"b\" 'x' 1.5e+3f 0x1p-2 .5 /* no */ // no\n z"),
            ["L\"a\\\"b\"", "'x'", "1.5e+3f", "0x1p-2", ".5", "z"]
        );
    }

    #[test]
    fn lines_come_from_markers() {
        let text = "a\n# 7 \"x.c\"\nb\nc\n# 1 \"/usr/include/y.h\" 1 3 4\nd #e\n";
        let (tokens, lines) = lex(text);
        let places: Vec<_> = tokens.iter().map(|token| lines.locate(token.start)).collect();
        let shown: Vec<_> = places.iter().map(|place| (place.file, place.line, place.is_system)).collect();
        let y = "/usr/include/y.h";
        assert_eq!(
            shown,
            [("", 1, false), ("x.c", 7, false), ("x.c", 8, false), (y, 1, true), (y, 1, true), (y, 1, true)]
        );
    }

    #[test]
    fn unfinished_literals_and_comments_end_with_the_text() {
        assert_eq!(texts("\"ab"), ["\"ab"]);
        assert_eq!(texts("'\\"), ["'\\"]);
        assert_eq!(texts("x /* y"), ["x"]);
    }
}
