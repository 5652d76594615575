//! The codes of diagnostics: each one that a library defines is explained there and reported by some line of the
//! product, and each one that a text mentions is defined.

use crate::repository::SourceFile;
use crate::tokens::{Token, production_code};
use std::collections::{BTreeMap, BTreeSet};

/// A code, and the variant of an enum that stands for it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct DefinedCode {
    code: String,
    type_name: String,
    variant: String,
    /// The folder of the crate that defines it.
    folder: String,
    place: String,
}

/// The production code of a crate's file.
struct CrateFile<'f> {
    folder: &'f str,
    path: &'f str,
    tokens: Vec<Token>,
}

/// Codes that are defined and not explained, explained and not defined, or reported by no line.
pub fn unmatched_codes(files: &[SourceFile]) -> Vec<String> {
    let explained = explained_codes(files);
    let sources = crate_files(files);
    let defined: Vec<DefinedCode> = sources.iter().flat_map(|file| defined_codes(file, &explained)).collect();
    let reported = reported_variants(&sources, &defined);
    let enums: BTreeSet<(&str, &str)> = sources.iter().flat_map(enums).collect();
    // The type's name means the defined type in its crate, and in crates without such a type of their own.
    let is_reported = |own: &DefinedCode| {
        reported.iter().any(|(folder, type_name, variant)| {
            (*type_name, *variant) == (own.type_name.as_str(), own.variant.as_str())
                && (*folder == own.folder || !enums.contains(&(*folder, *type_name)))
        })
    };
    let mut complaints = Vec::new();
    for own in &defined {
        if !explained.get(&own.code).is_some_and(|path| path.starts_with(&format!("{}/src/", own.folder))) {
            complaints.push(format!("{}: `{}` has no explanation in its crate", own.place, own.code));
        }
        if !is_reported(own) {
            complaints.push(format!("{}: no line reports `{}`", own.place, own.code));
        }
    }
    let known: BTreeSet<&str> = defined.iter().map(|own| own.code.as_str()).collect();
    for (code, path) in explained.iter().filter(|(code, _)| !known.contains(code.as_str())) {
        complaints.push(format!("{path}: `{code}` is explained, and no crate defines it"));
    }
    complaints
}

/// Codes in the book, in headers and in string literals of crates that are explained nowhere; and codes of programs
/// that the reference omits.
pub fn unknown_codes(files: &[SourceFile], reference: &str) -> Vec<String> {
    let explained = explained_codes(files);
    let mut complaints = Vec::new();
    let documents =
        files.iter().filter(|file| file.path.starts_with("docs/book/src/") || file.path.contains("/include/"));
    for file in documents {
        for (number, line) in file.text.lines().enumerate() {
            let words = line.split(|sign: char| !sign.is_ascii_alphanumeric() && sign != '_');
            let unknown = words.filter(|word| is_code(word) && !explained.contains_key(*word));
            complaints.extend(unknown.map(|code| format!("{}:{}: there is no code `{code}`", file.path, number + 1)));
        }
    }
    for file in crate_files(files) {
        let literals = file.tokens.iter().map(|token| (token.text.trim_matches('"'), token));
        let unknown = literals
            .filter(|(text, token)| token.text.starts_with('"') && is_code(text) && !explained.contains_key(*text));
        complaints
            .extend(unknown.map(|(code, token)| format!("{}:{}: there is no code `{code}`", file.path, token.line)));
    }
    let of_programs = explained.keys().filter(|code| is_code(code) && code.starts_with(['E', 'W']));
    let omitted = of_programs.filter(|code| !reference.contains(code.as_str()));
    complaints.extend(omitted.map(|code| format!("the reference omits `{code}`")));
    complaints
}

/// A family's letter and four digits.
fn is_code(word: &str) -> bool {
    word.len() == 5
        && word.starts_with(['E', 'F', 'H', 'P', 'T', 'V', 'W'])
        && word[1..].bytes().all(|b| b.is_ascii_digit())
}

/// The codes with a heading `# CODE: title` in a Markdown file of a crate's sources, and that file.
fn explained_codes(files: &[SourceFile]) -> BTreeMap<String, String> {
    let mut explained = BTreeMap::new();
    let pages = files.iter().filter(|file| file.path.starts_with("crates/") && file.path.ends_with(".md"));
    for page in pages.filter(|file| file.path.contains("/src/")) {
        let mut is_in_block = false;
        for line in page.text.lines() {
            is_in_block ^= line.starts_with("```");
            let heading = line.strip_prefix("# ").filter(|_| !is_in_block).and_then(|heading| heading.split_once(": "));
            if let Some((code, _)) = heading {
                explained.insert(code.to_owned(), page.path.clone());
            }
        }
    }
    explained
}

fn crate_files(files: &[SourceFile]) -> Vec<CrateFile<'_>> {
    let parts = files.iter().filter_map(|file| {
        let (folder, rest) = file.path.split_once("/src/").filter(|(folder, _)| folder.starts_with("crates/"))?;
        let is_test = rest.ends_with("tests.rs") || rest.contains("tests/");
        (rest.ends_with(".rs") && !is_test && !rest.starts_with("generated/")).then_some((folder, file))
    });
    parts
        .map(|(folder, file)| CrateFile { folder, path: &file.path, tokens: production_code(&file.text).tokens })
        .collect()
}

/// `Type::Variant(..) => "CODE"`, and in a table of codes `CODE "title"`, which is `Code::CODE`. Codes that are words,
/// such as those of faults, are known by their explanations.
fn defined_codes(file: &CrateFile<'_>, explained: &BTreeMap<String, String>) -> Vec<DefinedCode> {
    let mut found = Vec::new();
    let text = |at: usize| file.tokens.get(at).map_or("", |token| token.text.as_str());
    let of = |code: &str, type_name: &str, variant: &str, line: usize| DefinedCode {
        code: code.to_owned(),
        type_name: type_name.to_owned(),
        variant: variant.to_owned(),
        folder: file.folder.to_owned(),
        place: format!("{}:{line}", file.path),
    };
    for at in 0..file.tokens.len() {
        let line = file.tokens[at].line;
        if is_code(text(at)) && text(at + 1).starts_with('"') {
            found.push(of(text(at), "Code", text(at), line));
        }
        if text(at + 1) != ":" || text(at + 2) != ":" {
            continue;
        }
        let end = after_group(&file.tokens, at + 4);
        if text(end) == "=" && text(end + 1) == ">" {
            let literal = text(end + 2);
            let code = literal.trim_matches('"');
            let is_explained_here = explained.get(code).is_some_and(|path| path.starts_with(file.folder));
            if literal.starts_with('"') && (is_code(code) || is_explained_here) {
                found.push(of(code, text(at), text(at + 3), line));
            }
        }
    }
    found
}

/// The enums that a file defines, with the folder of the crate.
fn enums<'f>(file: &'f CrateFile<'f>) -> impl Iterator<Item = (&'f str, &'f str)> {
    let pairs = file.tokens.windows(2).filter(|pair| pair[0].text == "enum");
    pairs.map(|pair| (file.folder, pair[1].text.as_str()))
}

/// The variants for codes that a crate names outside of patterns: the crate's folder, the type and the variant.
fn reported_variants<'f>(
    sources: &'f [CrateFile<'f>],
    defined: &[DefinedCode],
) -> BTreeSet<(&'f str, &'f str, &'f str)> {
    let wanted: BTreeSet<(&str, &str)> =
        defined.iter().map(|own| (own.type_name.as_str(), own.variant.as_str())).collect();
    let mut reported = BTreeSet::new();
    for file in sources {
        for (at, path) in file.tokens.windows(4).enumerate() {
            let (type_name, variant) = (path[0].text.as_str(), path[3].text.as_str());
            let is_path = path[1].text == ":" && path[2].text == ":";
            if is_path && wanted.contains(&(type_name, variant)) && !is_pattern(&file.tokens, at) {
                reported.insert((file.folder, type_name, variant));
            }
        }
    }
    reported
}

/// Whether a path is part of a pattern: of an arm, of `let` or of `matches!`, also inside of tuples.
fn is_pattern(tokens: &[Token], at: usize) -> bool {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text.as_str());
    let mut end = after_group(tokens, at + 4);
    loop {
        if matches!(text(end), "=" | "|") || text(end) == "if" {
            return true;
        }
        // Outwards, past the other parts of the tuple.
        let mut depth = 0;
        while depth >= 0 {
            match text(end) {
                "(" | "[" | "{" => depth += 1,
                ")" => depth -= 1,
                "]" | "}" if depth > 0 => depth -= 1,
                // A statement or an arm ends: no pattern encloses the path.
                "" | ";" | "]" | "}" | ">" => return false,
                _ => {}
            }
            end += 1;
        }
        if is_argument_of_matches(tokens, end - 1) {
            return true;
        }
    }
}

/// Whether the group that ends here is that of `matches!`.
fn is_argument_of_matches(tokens: &[Token], end: usize) -> bool {
    let mut depth = 0;
    for at in (0..=end).rev() {
        match tokens[at].text.as_str() {
            ")" => depth += 1,
            "(" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at >= 2 && tokens[at - 1].text == "!" && tokens[at - 2].text == "matches";
        }
    }
    false
}

/// The token after the group that starts here; here if none does.
fn after_group(tokens: &[Token], start: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.text.as_str() {
            "(" | "{" => depth += 1,
            ")" | "}" => depth -= 1,
            _ if depth == 0 => return at,
            _ => continue,
        }
        if depth <= 0 {
            return if depth == 0 { at + 1 } else { at };
        }
    }
    tokens.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_none;
    use crate::repository::text_files;

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn every_code_is_explained_and_reported() {
        let files = text_files();
        assert!(explained_codes(&files).len() > 100, "the libraries explain their codes");
        assert_none(&unmatched_codes(&files));
    }

    #[test]
    fn every_mentioned_code_exists() {
        let files = text_files();
        let reference = files.iter().find(|file| file.path == "docs/book/src/reference.md").expect("it exists");
        assert_none(&unknown_codes(&files, &reference.text));
    }

    #[test]
    fn an_unmatched_code_is_seen() {
        let table = "enum E { A, B(u8), C, D } impl E { fn code(&self) -> &str { match self {
            E::A => \"P0001\", E::B(_) => \"P0002\", E::C => \"P0003\", E::D => \"P0004\" } } }";
        let uses = "fn f(e: E) -> E { match (e, 1) { (E::A, _) => {} E::B(_) | E::C => {} }
            if matches!(e, E::A) {} if let E::A = e {} g(E::B(1)); h(x, &[E::D]) }";
        let pages = "# P0002: two\n\n```\n# P0003: in an example\n```\n\n# P0004: four\n# P0005: five\n";
        let seen = unmatched_codes(&[
            file("crates/a/src/e.rs", table),
            file("crates/a/src/f.rs", uses),
            file("crates/a/src/e.md", pages),
            // Another type of this name.
            file("crates/b/src/lib.rs", "enum E { C } fn f() -> E { E::C }"),
        ]);
        assert_eq!(
            seen,
            [
                "crates/a/src/e.rs:2: `P0001` has no explanation in its crate",
                "crates/a/src/e.rs:2: no line reports `P0001`",
                "crates/a/src/e.rs:2: `P0003` has no explanation in its crate",
                "crates/a/src/e.rs:2: no line reports `P0003`",
                "crates/a/src/e.md: `P0005` is explained, and no crate defines it",
            ]
        );
        let words = "codes! { E0101 \"title\", } fn f() { g(Fault::Div); } match f { Fault::Div => \"div\" }";
        let pages = "# E0101: title\n# div: division\n";
        let seen = unmatched_codes(&[file("crates/a/src/e.rs", words), file("crates/a/src/e.md", pages)]);
        assert_eq!(seen, ["crates/a/src/e.rs:1: no line reports `E0101`"]);
    }

    #[test]
    fn an_unknown_code_is_seen() {
        let files = [
            file(
                "crates/a/src/lib.rs",
                "fn f() { g(\"P0009\"); g(\"P0001\"); } #[cfg(test)] mod t { const C: &str = \"P0008\"; }",
            ),
            file("crates/a/src/e.md", "# P0001: one\n# E0101: two\n"),
            file("crates/a/include/a.h", "A = 1, /* P0002: two */\n"),
            file("docs/book/src/b.md", "error[P0003]: `P0001`, P00010\n"),
        ];
        assert_eq!(
            unknown_codes(&files, "no table"),
            [
                "crates/a/include/a.h:1: there is no code `P0002`",
                "docs/book/src/b.md:1: there is no code `P0003`",
                "crates/a/src/lib.rs:1: there is no code `P0009`",
                "the reference omits `E0101`",
            ]
        );
    }
}
