//! What every source file owes its reader: a first line that says what it is for, a reason above every `unsafe`,
//! comments no wider than code, no unfinished work, no path of the machine it was written on.

use crate::repository::SourceFile;
use crate::tokens::production_code;

/// The width of code, as in `rustfmt.toml`.
const MAX_COLUMNS: usize = 120;

fn is_rust(file: &SourceFile) -> bool {
    file.path.ends_with(".rs")
}

fn is_c(file: &SourceFile) -> bool {
    file.path.ends_with(".c") || file.path.ends_with(".h") || file.path.ends_with(".S")
}

/// Rust files that do not start with `//!`, C files that do not start with a comment.
pub fn files_without_purpose(files: &[SourceFile]) -> Vec<String> {
    files
        .iter()
        .filter(|file| {
            (is_rust(file) && !file.text.starts_with("//! "))
                || (is_c(file) && !file.text.starts_with("/*") && !file.text.starts_with("//"))
        })
        .map(|file| format!("{}: the first line does not say what the file is for", file.path))
        .collect()
}

/// Comment lines that are wider than code. rustfmt does not wrap them.
pub fn wide_comment_lines(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    let is_written = |file: &&SourceFile| (is_rust(file) || is_c(file)) && !file.path.contains("/generated/");
    for file in files.iter().filter(is_written) {
        let is_comment = |line: &str| {
            let text = line.trim_start();
            text.starts_with("//") || is_c(file) && (text.starts_with("/*") || text.starts_with("* "))
        };
        let is_wide = |line: &str| line.chars().count() > MAX_COLUMNS;
        for (number, _) in file.text.lines().enumerate().filter(|(_, line)| is_wide(line) && is_comment(line)) {
            complaints.push(format!("{}:{}: a comment line of more than {MAX_COLUMNS} columns", file.path, number + 1));
        }
    }
    complaints
}

/// Uses of `unsafe` that nothing above them justifies. Clippy's `undocumented_unsafe_blocks` looks at blocks and
/// implementations; this looks at foreign blocks, traits, functions and attributes too.
pub fn unsafe_without_reason(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| is_rust(file)) {
        let tokens = production_code(&file.text).tokens;
        let lines: Vec<&str> = file.text.lines().collect();
        for (index, token) in tokens.iter().enumerate().filter(|(_, token)| token.text == "unsafe") {
            let next: Vec<&str> = tokens[index + 1..].iter().take(4).map(|token| token.text.as_str()).collect();
            let owes_reason = match next.as_slice() {
                ["impl" | "trait" | "(", ..] => true,
                ["fn", name, ..] => *name != "(",
                ["extern", "{", ..] | ["extern", _, "{", ..] => true,
                ["extern", "fn", name, ..] | ["extern", _, "fn", name, ..] => *name != "(",
                _ => false,
            };
            if owes_reason && !has_reason_above(&lines[..token.line - 1]) {
                complaints.push(format!("{}:{}: `unsafe` without a SAFETY comment above it", file.path, token.line));
            }
        }
    }
    complaints
}

/// Whether the comments and attributes that end `lines` hold a reason.
fn has_reason_above(lines: &[&str]) -> bool {
    let heading = lines.iter().rev().map(|line| line.trim()).take_while(|line| {
        line.starts_with("//") || line.starts_with("#[") || line.starts_with("unsafe ") || line.starts_with(")]")
    });
    heading.into_iter().any(|line| line.contains("SAFETY:") || line.contains("# Safety"))
}

/// Marks of unfinished work and of the machine the file was written on. The words are put together here, because this
/// file is searched too.
fn unwanted_words() -> Vec<(String, &'static str)> {
    let mut words = vec![
        (["TO", "DO"].concat(), "finish it, or say in an issue what is missing"),
        (["FIX", "ME"].concat(), "finish it, or say in an issue what is missing"),
        (["todo", "!("].concat(), "finish it"),
        (["unimplemented", "!("].concat(), "finish it"),
        (["allow(dead", "_code"].concat(), "delete the dead code"),
        (["#[ig", "nore"].concat(), "make a long test ask `quaject_test_support::quick_run` instead"),
        (["..", "/shared"].concat(), "the repository is complete in itself"),
    ];
    for folder in ["work", "tmp", "home", "root"] {
        words.push((format!("/{folder}/"), "ask the machine for the path"));
    }
    words
}

/// Files that contain one of the unwanted words.
pub fn files_with_unwanted_words(files: &[SourceFile]) -> Vec<String> {
    let words = unwanted_words();
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| !file.path.ends_with(".lock")) {
        for (number, line) in file.text.lines().enumerate() {
            for (word, advice) in &words {
                if finds_word(line, word) {
                    complaints.push(format!("{}:{}: contains `{word}`; {advice}", file.path, number + 1));
                }
            }
        }
    }
    complaints
}

/// Whether `word` stands in the line and does not continue an earlier name: a path that starts at the machine's root is
/// unwanted, the same folder name inside the repository is not.
fn finds_word(line: &str, word: &str) -> bool {
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-'))
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
    fn every_file_says_what_it_is_for() {
        assert_none(&files_without_purpose(&text_files()));
    }

    #[test]
    fn a_file_that_starts_with_code_is_seen() {
        let files = [
            file("a.rs", "use std::fmt;"),
            file("b.rs", "//! Holds b."),
            file("c.h", "#pragma once"),
            file("d.c", "/* Holds d. */"),
        ];
        assert_eq!(files_without_purpose(&files).len(), 2);
    }

    #[test]
    fn comments_are_no_wider_than_code() {
        assert_none(&wide_comment_lines(&text_files()));
    }

    #[test]
    fn a_wide_comment_line_is_seen() {
        let (fits, wide) = ("x".repeat(MAX_COLUMNS - 3), "x".repeat(MAX_COLUMNS - 2));
        let rust = format!("// {fits}\n    // {fits}\n// {wide}\nlet a = \"{wide}\";\n");
        let c = format!("/* {wide}\n * {fits}\n */\n");
        assert_eq!(wide_comment_lines(&[file("a.rs", &rust), file("b.h", &c), file("c.md", &wide)]).len(), 3);
    }

    #[test]
    fn every_unsafe_has_a_reason() {
        assert_none(&unsafe_without_reason(&text_files()));
    }

    #[test]
    fn an_unsafe_without_reason_is_seen() {
        let bad = "unsafe impl Send for A {}\nunsafe extern \"C\" { fn f(); }\npub unsafe fn g() {}\n";
        assert_eq!(unsafe_without_reason(&[file("a.rs", bad)]).len(), 3);
        let good = "// SAFETY: A owns nothing.\nunsafe impl Send for A {}\n\
                    // SAFETY: as declared in the C library.\n#[link(name = \"z\")]\nunsafe extern \"C\" { fn f(); }\n\
                    /// Gives g.\n/// # Safety\n/// Never call it.\npub unsafe fn g() {}\n\
                    type F = unsafe extern \"C\" fn(u32);\nconst TEXT: &str = \"unsafe impl\";\n";
        assert_none(&unsafe_without_reason(&[file("a.rs", good)]));
    }

    #[test]
    fn nothing_is_unfinished_or_tied_to_one_machine() {
        assert_none(&files_with_unwanted_words(&text_files()));
    }

    #[test]
    fn unwanted_words_are_seen() {
        let text = ["// TO", "DO\nlet a = \"/tm", "p/a\";\nlet b = \"docs/tm", "p/a\";\n"].concat();
        assert_eq!(files_with_unwanted_words(&[file("a.rs", &text)]).len(), 2);
    }
}
