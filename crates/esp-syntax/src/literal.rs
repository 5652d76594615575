//! The values of number, character and string literals, and the errors inside them.
//! Knows nothing of tokens, and of locations only those inside the literal.

use std::ops::Range;

/// An error in a literal, and its correction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LiteralFault {
    /// The cause.
    pub message: String,
    /// The correction.
    pub help: String,
}

impl std::fmt::Display for LiteralFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.message)
    }
}

impl std::error::Error for LiteralFault {}

impl LiteralFault {
    fn new(message: impl Into<String>, help: impl Into<String>) -> LiteralFault {
        LiteralFault { message: message.into(), help: help.into() }
    }
}

/// The value of a number such as `42`, `1_000`, `0x5DC`, `0b1010` or `0o17`.
///
/// ```
/// use quaject_esp_syntax::literal::integer;
/// assert_eq!(integer("0x5DC"), Ok(1500));
/// assert!(integer("010").is_err());
/// ```
pub fn integer(text: &str) -> Result<u64, LiteralFault> {
    let (radix, digits, radix_name) = match text.get(..2) {
        Some("0x") => (16, &text[2..], "hexadecimal"),
        Some("0b") => (2, &text[2..], "binary"),
        Some("0o") => (8, &text[2..], "octal"),
        Some(_) | None => (10, text, "decimal"),
    };
    if radix == 10 && text.len() > 1 && text.starts_with('0') {
        return Err(leading_zero(text));
    }
    let mut value = Some(0u64);
    let mut any_digit = false;
    for (index, c) in digits.char_indices() {
        if c == '_' {
            continue;
        }
        let Some(digit) = c.to_digit(radix) else {
            return Err(not_a_digit(text, radix_name, c, &digits[index..]));
        };
        any_digit = true;
        value = value.and_then(|v| v.checked_mul(u64::from(radix))?.checked_add(u64::from(digit)));
    }
    if !any_digit {
        let shown = shorten(text);
        return Err(LiteralFault::new(
            format!("number `{shown}` has no digits"),
            format!("write {radix_name} digits behind `{shown}`"),
        ));
    }
    value.ok_or_else(|| {
        LiteralFault::new(
            format!("number `{}` is above 2^64 - 1", shorten(text)),
            "the largest number is 18446744073709551615, `0xffff_ffff_ffff_ffff`",
        )
    })
}

fn leading_zero(text: &str) -> LiteralFault {
    let shown = shorten(text);
    if let Some(rest) = text.strip_prefix("0X").or_else(|| text.strip_prefix("0B")).or_else(|| text.strip_prefix("0O"))
    {
        let prefix = text[..2].to_ascii_lowercase();
        return LiteralFault::new(
            format!("number `{shown}` begins with a capital letter"),
            format!("write `{prefix}{}`", shorten(rest)),
        );
    }
    if let Some(letter) = text.find(|c: char| !c.is_ascii_digit() && c != '_') {
        return letters_behind(&text[..letter], &text[letter..]);
    }
    let digits = text.trim_start_matches(['0', '_']);
    let message = format!("number `{shown}` starts with 0");
    if digits.is_empty() {
        return LiteralFault::new(message, "write `0`");
    }
    let plain = shorten(digits);
    let help = if digits.chars().all(|c| matches!(c, '0'..='7' | '_')) {
        format!("write `{plain}`, or `0o{plain}` for an octal number")
    } else {
        format!("write `{plain}`")
    };
    LiteralFault::new(message, help)
}

fn not_a_digit(text: &str, radix_name: &str, c: char, rest: &str) -> LiteralFault {
    if radix_name == "decimal" {
        return letters_behind(&text[..text.len() - rest.len()], rest);
    }
    let shown = shorten(text);
    LiteralFault::new(
        format!("`{c}` is not a {radix_name} digit, in `{shown}`"),
        format!("leave out `{c}`, or write the number in another base"),
    )
}

fn letters_behind(number: &str, letters: &str) -> LiteralFault {
    let exponent = letters.strip_prefix(['e', 'E']).is_some_and(|digits| digits.parse::<u32>().is_ok());
    let (number, letters) = (shorten(number), shorten(letters));
    let help = match letters.as_str() {
        "ns" | "us" | "ms" | "s" => format!("a duration is written `({number} {letters})`"),
        _ if exponent => "write all digits, as in `1_000_000`; there are no floating-point numbers".to_string(),
        _ => format!("write a blank between them, `{number} {letters}`, or leave out `{letters}`"),
    };
    LiteralFault::new(format!("number `{number}` is followed by `{letters}`"), help)
}

/// The beginning of a text that may be long enough to fill a screen.
pub(crate) fn shorten(text: &str) -> String {
    const MAX_SHOWN_CHARACTERS: usize = 40;
    match text.char_indices().nth(MAX_SHOWN_CHARACTERS) {
        Some((end, _)) => format!("{}..", &text[..end]),
        None => text.to_string(),
    }
}

/// The bytes of a string or character, given the text between its quotes. `report` gets each error with its range in
/// `content`; the range yields no byte.
pub fn unescape(content: &str, mut report: impl FnMut(Range<usize>, LiteralFault)) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some(backslash) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..backslash]);
        let escape = &rest[backslash..];
        let (length, value) = read_escape(escape);
        match value {
            Ok(byte) => bytes.push(byte),
            Err(fault) => {
                let start = content.len() - escape.len();
                report(start..start + length, fault);
            }
        }
        rest = &escape[length..];
    }
    bytes.extend_from_slice(rest.as_bytes());
    bytes
}

/// Length and value of the escape that `text` begins with.
fn read_escape(text: &str) -> (usize, Result<u8, LiteralFault>) {
    let Some(letter) = text[1..].chars().next() else {
        return (1, Err(LiteralFault::new("an escape is cut off", ESCAPES)));
    };
    let value = match letter {
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        '0' => 0,
        '\\' | '\'' | '"' => letter as u8,
        'x' => {
            let digits = text[2..].bytes().take(2).take_while(u8::is_ascii_hexdigit).count();
            let value = match digits {
                2 => u8::from_str_radix(&text[2..4], 16).ok(),
                _ => None,
            };
            return (
                2 + digits,
                value.ok_or_else(|| {
                    LiteralFault::new("`\\x` needs two hexadecimal digits", "write them both, as in `\\x0a`")
                }),
            );
        }
        _ => {
            let shown = letter.escape_debug();
            let fault = LiteralFault::new(format!("there is no escape `\\{shown}`"), ESCAPES);
            return (1 + letter.len_utf8(), Err(fault));
        }
    };
    (2, Ok(value))
}

const ESCAPES: &str = "the escapes are `\\n \\r \\t \\0 \\\\ \\' \\\" \\xHH`";

/// Length in bytes of the first character or escape of `text`.
pub(crate) fn first_character(text: &str) -> usize {
    match text.chars().next() {
        None => 0,
        Some('\\') => read_escape(text).0,
        Some(first) => first.len_utf8(),
    }
}

/// What is between the quotes of a string or character token; the closing quote may be missing.
pub(crate) fn between_quotes(token: &str) -> &str {
    let mut characters = token.chars();
    let quote = characters.next();
    let inner = characters.as_str();
    match quote {
        Some(quote) if inner.ends_with(quote) => &inner[..inner.len() - 1],
        Some(_) | None => inner,
    }
}
