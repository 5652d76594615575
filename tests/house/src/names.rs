//! The names of the house: identifiers use the field's terms (docs/glossary.md), and one noun names one type in a
//! crate.

use std::collections::{BTreeMap, BTreeSet};

use crate::repository::{Package, SourceFile};
use crate::tokens::{Token, production_code};

/// Words that no identifier of Rust, C or ESP has as a part, because they say nothing a reader could look up.
const FORBIDDEN: &[&str] = &[
    "anybody",
    "beside",
    "everybody",
    "fewest",
    "gone",
    "meets",
    "most",
    "nobody",
    "settle",
    "settled",
    "settles",
    "somebody",
    "stands",
    "tell",
    "tells",
    "told",
    "vain",
    "who",
    "whoever",
    "whom",
    "whose",
];

/// Words that are not the whole name of a function: they say nothing at a call site.
const FORBIDDEN_ALONE: &[&str] = &["fits", "given", "go", "look", "one", "two", "way", "whole"];

/// Identifiers that others have fixed, and where they come from.
pub const FOREIGN: &[(&str, &str)] = &[
    ("QJV_MOST_CONSTANTS", "the name in version 0.1 of `QJV_MAX_CONSTANTS`"),
    ("QJV_MOST_FIXUPS", "the name in version 0.1 of `QJV_MAX_FIXUPS`"),
    ("QJV_MOST_LABELS", "the name in version 0.1 of `QJV_MAX_LABELS`"),
    ("QJ_PIPE_MOST_STEPS", "the name in version 0.1 of `QJ_PIPE_MAX_STEPS`"),
    ("QJ_PIPE_MOST_STREAMS", "the name in version 0.1 of `QJ_PIPE_TOO_MANY_STREAMS`"),
    ("stacks_at_most", "the name in version 0.1 of `max_stacks` of `struct qj_ac_options`"),
];

/// Type names that a crate defines twice for a reason: the crate's folder, the name, the reason.
pub const REPEATED: &[(&str, &str, &str)] = &[
    ("crates/cli", "InterfaceCapture", "one for Linux, one for other systems"),
    ("crates/filter", "Batch", "one for x86-64, one for machines without code"),
    ("crates/filter", "ChunkCode", "one for x86-64, one for machines without code"),
    ("crates/filter", "Vectors", "one for x86-64, one for machines without code"),
    ("crates/vcode", "Views", "one for Linux, one for systems without code memory"),
    ("crates/esp-run", "Bidirectional", "one for Unix, one for other systems"),
    ("crates/esp-run", "ByteInput", "one for Unix, one for other systems"),
    ("crates/esp-run", "ByteOutput", "one for Unix, one for other systems"),
    ("crates/esp-run", "CanInterface", "one for Linux, one for other systems"),
    ("crates/esp-run", "DescriptorSet", "one for Linux, one for other systems"),
    ("crates/esp-run", "FileIdentity", "one for Unix, one for other systems"),
    ("crates/esp-run", "Library", "one for Unix, one for other systems"),
    ("crates/esp-run", "SignalBell", "one for Unix, one for other systems"),
];

/// Parts of a crate with types of their own. The tree as written and the checked program have one noun for each
/// construct; no back end imports another.
const SCOPES: &[&str] = &[
    "crates/esp-gen/src/c/",
    "crates/esp-gen/src/jit/",
    "crates/esp-gen/src/promela/",
    "crates/esp-syntax/src/ast.rs",
    "crates/esp-syntax/src/hir.rs",
];

/// Identifiers of Rust files, and of C and ESP files but for their comments and strings, that contain a forbidden word,
/// and entries of `foreign` that no file has.
pub fn private_words(files: &[SourceFile], foreign: &[(&str, &str)]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut used = BTreeSet::new();
    for file in files.iter().filter(|file| !file.path.contains("/generated/")) {
        for (name, line) in identifiers(file) {
            let Some(word) = words(&name).into_iter().find(|word| FORBIDDEN.contains(&word.as_str())) else { continue };
            match foreign.iter().find(|(known, _)| *known == name) {
                Some((known, _)) => drop(used.insert(*known)),
                None => {
                    complaints.push(format!("{}:{line}: `{name}` contains `{word}`; use the field's term", file.path))
                }
            }
        }
    }
    let unused = foreign.iter().filter(|(name, _)| !used.contains(name));
    complaints.extend(unused.map(|(name, _)| format!("`{name}` is in no file any more; remove it from FOREIGN")));
    complaints
}

/// Functions of Rust files whose name says nothing at a call site.
pub fn empty_function_names(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs") && !file.path.contains("/generated/")) {
        let identifiers = all_rust_identifiers(&file.text);
        for pair in identifiers.windows(2).filter(|pair| pair[0].0 == "fn") {
            let (name, line) = &pair[1];
            if FORBIDDEN_ALONE.contains(&name.as_str()) {
                complaints.push(format!("{}:{line}: a function named `{name}`; say what it computes", file.path));
            }
        }
    }
    complaints
}

/// The identifiers of a source file, each once with its first line; none of a file in another language.
fn identifiers(file: &SourceFile) -> BTreeMap<String, usize> {
    let identifiers = if file.path.ends_with(".rs") {
        all_rust_identifiers(&file.text)
    } else if [".c", ".h", ".S", ".esp", ".fp"].iter().any(|ending| file.path.ends_with(ending)) {
        c_identifiers(&file.text)
    } else {
        Vec::new()
    };
    let mut first_lines = BTreeMap::new();
    for (name, line) in identifiers {
        first_lines.entry(name).or_insert(line);
    }
    first_lines
}

/// The parts of an identifier in lower case: `MemberFate::has_told` gives them for each of its names.
fn words(identifier: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    let mut after_lower = false;
    for sign in identifier.chars() {
        if sign == '_' || (sign.is_uppercase() && after_lower) {
            found.push(String::new());
        }
        if sign != '_' {
            found.last_mut().expect("starts with one").extend(sign.to_lowercase());
        }
        after_lower = sign.is_lowercase() || sign.is_numeric();
    }
    found
}

fn all_rust_identifiers(text: &str) -> Vec<(String, usize)> {
    // Doc comments arrive as attributes whose text is a literal.
    let stream: proc_macro2::TokenStream = text.parse().expect("the compiler has read this file");
    let mut found = Vec::new();
    identifiers_of(stream, &mut found);
    found
}

fn identifiers_of(stream: proc_macro2::TokenStream, found: &mut Vec<(String, usize)>) {
    for tree in stream {
        match tree {
            proc_macro2::TokenTree::Group(group) => identifiers_of(group.stream(), found),
            proc_macro2::TokenTree::Ident(ident) => found.push((ident.to_string(), ident.span().start().line)),
            proc_macro2::TokenTree::Punct(_) | proc_macro2::TokenTree::Literal(_) => {}
        }
    }
}

fn c_identifiers(text: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first == '"' {
            let closing = rest.char_indices().skip(1).find(|(at, sign)| *sign == '"' && !rest[..*at].ends_with('\\'));
            closing.map_or(rest.len(), |(at, _)| at + 1)
        } else if first.is_alphabetic() || first == '_' {
            let length = rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(rest.len());
            found.push((rest[..length].to_owned(), line));
            length
        } else {
            first.len_utf8()
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// Types of one name that a crate defines in several files, and entries of `accepted` that name no such type.
pub fn repeated_types(packages: &[Package], files: &[SourceFile], accepted: &[(&str, &str, &str)]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut used = BTreeSet::new();
    // A package of tests has a module for each program under test, which may name its parts alike.
    for package in packages.iter().filter(|package| package.folder.starts_with("crates/")) {
        let sources = format!("{}/src/", package.folder);
        let mut places: BTreeMap<(&str, String), Vec<String>> = BTreeMap::new();
        let own = files.iter().filter(|file| file.path.starts_with(&sources) && file.path.ends_with(".rs"));
        // A generated file defines the same types for each machine.
        for file in own.filter(|file| !file.path.contains("/generated/") && !is_test(&file.path)) {
            let scope = SCOPES.iter().find(|scope| file.path.starts_with(**scope)).copied().unwrap_or_default();
            for (name, line) in defined_types(&production_code(&file.text).tokens) {
                places.entry((scope, name)).or_default().push(format!("{}:{line}", file.path));
            }
        }
        for ((_, name), places) in places.into_iter().filter(|(_, places)| places.len() > 1) {
            match accepted.iter().find(|(folder, known, _)| *folder == package.folder && *known == name) {
                Some((folder, known, _)) => drop(used.insert((*folder, *known))),
                None => complaints.push(format!(
                    "{}: one of {} types named `{name}`: {}",
                    places[0],
                    places.len(),
                    places[1..].join(" ")
                )),
            }
        }
    }
    let unused = accepted.iter().filter(|(folder, name, _)| !used.contains(&(*folder, *name)));
    complaints
        .extend(unused.map(|(folder, name, _)| format!("{folder} has one type `{name}`; remove it from REPEATED")));
    complaints
}

fn is_test(path: &str) -> bool {
    path.ends_with("/tests.rs") || path.contains("/tests/")
}

/// The names after `struct`, `enum`, `union`, `trait` and `type` outside of functions and implementations.
fn defined_types(tokens: &[Token]) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate() {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            "struct" | "enum" | "union" | "trait" | "type" if depth == 0 => {
                if let Some(name) = tokens.get(at + 1).filter(|name| name.text.starts_with(char::is_uppercase)) {
                    found.push((name.text.clone(), name.line));
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_none;
    use crate::repository::{packages, text_files};

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn identifiers_use_the_terms_of_the_field() {
        assert_none(&private_words(&text_files(), FOREIGN));
    }

    #[test]
    fn functions_have_names_that_say_something() {
        assert_none(&empty_function_names(&text_files()));
    }

    #[test]
    fn a_function_name_that_says_nothing_is_seen() {
        let rust = "fn fits() {}\nimpl A { pub fn whole(self) { self.given() } fn fits_a_word() {} }";
        assert_eq!(
            empty_function_names(&[file("a.rs", rust)]),
            [
                "a.rs:1: a function named `fits`; say what it computes",
                "a.rs:2: a function named `whole`; say what it computes",
            ]
        );
    }

    #[test]
    fn a_private_word_is_seen() {
        let rust =
            "/// Nobody.\nfn is_gone() {}\nconst MOST_BYTES: u8 = 0;\nstruct AlmostThere; // told\nmac!(toldThem);";
        let files = [
            file("a.rs", rust),
            file("b.c", "/* told */ int told_them; char *s = \"\\\"nobody\"; // gone\nint almost;"),
            file("src/generated/c.rs", "fn gone() {}"),
            file("d.md", "nobody"),
            file("e.esp", "channel tellC(int); // told"),
        ];
        let complaints = private_words(&files, &[("tellC", "a reason"), ("whoAmI", "a reason")]);
        assert_eq!(
            complaints,
            [
                "a.rs:3: `MOST_BYTES` contains `most`; use the field's term",
                "a.rs:2: `is_gone` contains `gone`; use the field's term",
                "a.rs:5: `toldThem` contains `told`; use the field's term",
                "b.c:1: `told_them` contains `told`; use the field's term",
                "`whoAmI` is in no file any more; remove it from FOREIGN",
            ]
        );
    }

    #[test]
    fn one_noun_names_one_type_in_a_crate() {
        assert_none(&repeated_types(&packages(), &text_files(), REPEATED));
    }

    #[test]
    fn a_repeated_type_is_seen() {
        let package = Package { name: "a".into(), folder: "crates/a".into(), manifest: toml::Table::new() };
        let files = [
            file("crates/a/src/b.rs", "struct Place; fn f() { enum Local {} }"),
            file(
                "crates/a/src/c.rs",
                "pub enum Place {} #[cfg(test)] mod tests { struct B; } impl T for U { type Item = u8; }",
            ),
            file("crates/a/src/d.rs", "struct Local; struct B; type Item = u8;"),
        ];
        let complaints = repeated_types(&[package], &files, &[]);
        assert_eq!(complaints, ["crates/a/src/b.rs:1: one of 2 types named `Place`: crates/a/src/c.rs:1"]);
        let package = Package { name: "a".into(), folder: "crates/a".into(), manifest: toml::Table::new() };
        let accepted = [("crates/a", "Place", "a reason"), ("crates/a", "Local", "a reason")];
        let complaints = repeated_types(&[package], &files, &accepted);
        assert_eq!(complaints, ["crates/a has one type `Local`; remove it from REPEATED"]);
    }
}
