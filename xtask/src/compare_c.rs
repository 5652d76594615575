//! `cargo xtask compare-c OLD_QJ [NEW_QJ]`: compares the C that two builds of `qj` generate for every program of the
//! repository, in every mode. Two texts are equal when a one-to-one renaming of identifiers makes the tokens the same:
//! comments, white space and `#line` do not count. Used to show that a restructuring of the compiler changes no
//! generated code.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::run::{Failure, cargo, output_of, root, succeed};

/// What is appended to `qj build FILE --emit c`, one line per form of the output.
const FORMS: &[&[&str]] = &[
    &["--mode", "process"],
    &["--mode", "process", "--checked"],
    &["--mode", "process", "--style", "poll"],
    &["--mode", "process", "--style", "post"],
    &["--mode", "direct"],
    &["--mode", "fastpath"],
    &["--mode", "automata"],
    &["--mode", "automata", "--batch", "off"],
    &["--mode", "automata", "--checked"],
    &["--mode", "auto"],
    &["--mode", "auto", "--batch", "auto"],
];

/// Compares the executable `old` with `new`, or with the `qj` of this tree, built for it.
pub(crate) fn run(old: &Path, new: Option<&Path>) -> Result<(), Failure> {
    let target = target_folder()?;
    let new = match new {
        Some(new) => new.to_owned(),
        None => {
            succeed(&mut cargo(&["build", "--release", "--package", "quaject-cli"]))?;
            target.join("release/qj")
        }
    };
    let scratch = target.join("compare-c");

    let mut tally = Tally::default();
    for program in programs(&root()) {
        for form in FORMS {
            let before = emit(old, &program, form, &scratch.join("old"))?;
            let after = emit(&new, &program, form, &scratch.join("new"))?;
            tally.count(&program, form, before.as_deref(), after.as_deref());
        }
    }
    println!("{} texts equal but for names and comments, {} builds refused by both", tally.equal, tally.refused);
    if tally.differences == 0 { Ok(()) } else { Err(Failure(format!("{} texts differ", tally.differences))) }
}

/// Where Cargo puts what it builds.
fn target_folder() -> Result<PathBuf, Failure> {
    let metadata = output_of(&mut cargo(&["metadata", "--format-version", "1", "--no-deps"]))?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&metadata).map_err(|error| Failure(format!("cargo metadata: {error}")))?;
    let folder = metadata["target_directory"].as_str();
    folder.map(PathBuf::from).ok_or_else(|| Failure("cargo metadata names no target folder".into()))
}

#[derive(Default)]
struct Tally {
    equal: usize,
    refused: usize,
    differences: usize,
}

impl Tally {
    fn count(&mut self, program: &Path, form: &[&str], before: Option<&str>, after: Option<&str>) {
        let place = || format!("{} {}", program.display(), form.join(" "));
        match (before, after) {
            (None, None) => self.refused += 1,
            (Some(before), Some(after)) => match first_difference(&tokens(before), &tokens(after)) {
                None => self.equal += 1,
                Some((old, new)) => {
                    self.differences += 1;
                    println!("{}: `{old}` has become `{new}`", place());
                }
            },
            (Some(_), None) | (None, Some(_)) => {
                self.differences += 1;
                println!("{}: one of the two builds refuses the program", place());
            }
        }
    }
}

/// Every `.esp` file of the repository, in order, without the parts of programs. Others that are no program of their
/// own are refused by both builds.
fn programs(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
        for path in entries.map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.is_dir() && !matches!(name, "target" | ".git" | "node_modules") {
                folders.push(path);
            } else if name.ends_with(".esp") && !is_part(&path) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

fn is_part(file: &Path) -> bool {
    fs::read_to_string(file).is_ok_and(|text| text.lines().any(|line| line.starts_with("part of ")))
}

/// The C source and header of a program, one after the other; none if `qj` refuses it.
fn emit(qj: &Path, program: &Path, form: &[&str], folder: &Path) -> Result<Option<String>, Failure> {
    let failure = |error: std::io::Error| Failure(format!("{}: {error}", folder.display()));
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(failure)?;
    }
    fs::create_dir_all(folder).map_err(failure)?;
    let mut command = Command::new(qj);
    command.arg("build").arg(program).args(["--emit", "c"]).args(form).arg("-o").arg(folder);
    let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().map_err(failure)?;
    if !status.success() {
        return Ok(None);
    }
    let mut files: Vec<PathBuf> = fs::read_dir(folder).map_err(failure)?.flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.extension().is_some_and(|ending| ending == "c" || ending == "h"));
    files.sort();
    let texts: Result<Vec<String>, _> = files.iter().map(fs::read_to_string).collect();
    Ok(Some(texts.map_err(failure)?.concat()))
}

/// The first two tokens that no one-to-one renaming of identifiers makes equal.
fn first_difference<'t>(before: &[&'t str], after: &[&'t str]) -> Option<(&'t str, &'t str)> {
    let mut forth: HashMap<&str, &str> = HashMap::new();
    let mut back: HashMap<&str, &str> = HashMap::new();
    for (&old, &new) in before.iter().zip(after) {
        let same = if is_identifier(old) && is_identifier(new) {
            *forth.entry(old).or_insert(new) == new && *back.entry(new).or_insert(old) == old
        } else {
            old == new
        };
        if !same {
            return Some((old, new));
        }
    }
    let end = before.len().min(after.len());
    let token = |tokens: &[&'t str]| tokens.get(end).copied();
    match (token(before), token(after)) {
        (None, None) => None,
        (old, new) => Some((old.unwrap_or("end of text"), new.unwrap_or("end of text"))),
    }
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') && !KEYWORDS.contains(&token)
}

/// Words that no renaming may touch.
const KEYWORDS: &[&str] = &[
    "auto",
    "bool",
    "break",
    "case",
    "char",
    "const",
    "continue",
    "default",
    "define",
    "do",
    "double",
    "else",
    "endif",
    "enum",
    "extern",
    "float",
    "for",
    "goto",
    "if",
    "ifdef",
    "ifndef",
    "include",
    "inline",
    "int",
    "int16_t",
    "int32_t",
    "int64_t",
    "int8_t",
    "long",
    "register",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "typedef",
    "uint16_t",
    "uint32_t",
    "uint64_t",
    "uint8_t",
    "uintptr_t",
    "union",
    "unsigned",
    "void",
    "volatile",
    "while",
];

/// The tokens of a C text: identifiers, numbers, literals and single signs. `#line` directives are left out.
fn tokens(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if rest.starts_with("//") || rest.starts_with("#line") {
            rest.find('\n').unwrap_or(rest.len())
        } else if first.is_alphanumeric() || first == '_' {
            rest.find(|sign: char| !sign.is_alphanumeric() && sign != '_').unwrap_or(rest.len())
        } else if first == '"' || first == '\'' {
            literal_length(rest, first)
        } else {
            first.len_utf8()
        };
        let (token, after) = rest.split_at(length);
        let is_comment = token.starts_with("/*") || token.starts_with("//") || token.starts_with("#line");
        if !is_comment && !first.is_whitespace() {
            found.push(token);
        }
        rest = after;
    }
    found
}

/// The bytes of the string or character literal at the head of `text`, quotes included.
fn literal_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, sign) in text.char_indices().skip(1) {
        if sign == quote && !escaped {
            return at + 1;
        }
        escaped = sign == '\\' && !escaped;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn difference<'t>(before: &'t str, after: &'t str) -> Option<(&'t str, &'t str)> {
        first_difference(&tokens(before), &tokens(after))
    }

    #[test]
    fn names_and_comments_do_not_count() {
        let before = "#line 3 \"a.esp\"\nint a = b + 1; /* why */ char *t = \"a\\\"b\";";
        assert_eq!(difference(before, "int left = right + 1; // because\nchar *u = \"a\\\"b\";"), None);
    }

    #[test]
    fn code_counts() {
        assert_eq!(difference("a = b + c;", "a = b - c;"), Some(("+", "-")));
        assert_eq!(difference("a = b + c;", "a = b + b;"), Some(("c", "b")), "two names have become one");
        assert_eq!(difference("a = b + b;", "a = b + c;"), Some(("b", "c")), "one name has become two");
        assert_eq!(difference("int a;", "long a;"), Some(("int", "long")));
        assert_eq!(difference("a;", "a; b;"), Some(("end of text", "b")));
        assert_eq!(difference("f(\"x\");", "f(\"y\");"), Some(("\"x\"", "\"y\"")));
    }
}
