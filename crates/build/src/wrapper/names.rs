//! Identifiers of Rust, made of those of ESP in Rust's style: never a word of the language or of the wrapper, unique in
//! their scope.

use std::collections::BTreeSet;

/// Words that are no identifiers.
const KEYWORDS: &[&str] = &[
    "Self", "_", "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do",
    "dyn", "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop", "macro",
    "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static", "struct", "super",
    "trait", "true", "try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "while", "yield",
];

/// Types and constants of the wrapper, and what it uses of the prelude.
pub(super) const WRAPPER_NAMES: &[&str] = &[
    "ABI",
    "ASSERTIONS",
    "AsMut",
    "AsRef",
    "Block",
    "BlockedProcess",
    "Box",
    "Bytes",
    "CHANNELS",
    "Clone",
    "Copy",
    "Debug",
    "Default",
    "Drop",
    "Duration",
    "Environment",
    "Eq",
    "Err",
    "FILES",
    "Fault",
    "FaultCode",
    "Fn",
    "FnMut",
    "FnOnce",
    "From",
    "INSTANCES",
    "Input",
    "Into",
    "Iterator",
    "LIBRARY",
    "LIMIT",
    "Library",
    "Location",
    "LongBytes",
    "MaybeUninit",
    "NEVER",
    "NoBytes",
    "None",
    "Ok",
    "Option",
    "Ord",
    "Output",
    "OutputHead",
    "PartialEq",
    "PartialOrd",
    "Program",
    "RawFault",
    "RawLocation",
    "Result",
    "Room",
    "Send",
    "Sink",
    "Sized",
    "Some",
    "Source",
    "State",
    "Status",
    "String",
    "Sync",
    "ToOwned",
    "ToString",
    "TooLong",
    "TryFrom",
    "TryInto",
    "Unpin",
    "Vec",
    "VecDeque",
];

/// The names of one scope.
#[derive(Default)]
pub(super) struct Scope {
    taken: BTreeSet<String>,
}

impl Scope {
    /// A scope in which these names are taken.
    pub(super) fn with(names: &[&str]) -> Scope {
        Scope { taken: names.iter().map(|name| (*name).to_string()).collect() }
    }

    /// A name that is not taken: the wanted one, or one with a number behind it.
    pub(super) fn claim(&mut self, wanted: &str) -> String {
        let wanted = if KEYWORDS.contains(&wanted) { format!("{wanted}_") } else { wanted.to_string() };
        let mut name = wanted.clone();
        let mut number = 2;
        while !self.taken.insert(name.clone()) {
            name = format!("{wanted}_{number}");
            number += 1;
        }
        name
    }
}

/// The words of a name: `byteC` and `byte_c` have `byte` and `c`, `HTTPServer` has `http` and `server`.
fn words(name: &str) -> Vec<String> {
    let characters: Vec<char> = name.chars().collect();
    let mut words: Vec<String> = Vec::new();
    let mut begins = true;
    for (index, character) in characters.iter().enumerate() {
        if *character == '_' {
            begins = true;
            continue;
        }
        let before = index.checked_sub(1).map(|before| characters[before]);
        let after_lower = before.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        let before_lower = characters.get(index + 1).is_some_and(char::is_ascii_lowercase);
        let after_upper = before.is_some_and(|c| c.is_ascii_uppercase());
        if character.is_ascii_uppercase() && (after_lower || after_upper && before_lower) {
            begins = true;
        }
        if std::mem::take(&mut begins) || words.is_empty() {
            words.push(String::new());
        }
        words.last_mut().expect("the first character begins a word").push(character.to_ascii_lowercase());
    }
    words
}

/// `byteC` as `byte_c`.
pub(super) fn snake_case(name: &str) -> String {
    begin_with_letter(words(name).join("_"))
}

/// `byteC` as `BYTE_C`.
pub(super) fn constant_case(name: &str) -> String {
    snake_case(name).to_ascii_uppercase()
}

/// `byteC` as `ByteC`.
pub(super) fn camel_case(name: &str) -> String {
    let capitalised = words(name).into_iter().map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    begin_with_letter(capitalised.collect())
}

/// Names of ESP may consist of `_` and digits.
fn begin_with_letter(name: String) -> String {
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) { name } else { format!("X{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_the_style_of_rust() {
        for (name, snake, camel) in [
            ("byteC", "byte_c", "ByteC"),
            ("byte_c", "byte_c", "ByteC"),
            ("HTTPServer", "http_server", "HttpServer"),
            ("v0", "v0", "V0"),
            ("x2T", "x2_t", "X2T"),
            ("__1", "X1", "X1"),
            ("READ", "read", "Read"),
        ] {
            assert_eq!((snake_case(name).as_str(), camel_case(name).as_str()), (snake, camel), "{name}");
        }
    }

    #[test]
    fn names_are_unique_and_no_words_of_the_language() {
        let mut scope = Scope::with(&["Option"]);
        let names = ["type", "type", "Option", "a"].map(|name| scope.claim(name));
        assert_eq!(names, ["type_", "type__2", "Option_2", "a"]);
    }
}
