//! The prose of the house: a program, a process or a packet is a thing, and no text treats it as a person. Measures the
//! sentences of the book, as a figure to look at; sentences are not shortened for a limit.

use std::collections::BTreeSet;

use crate::repository::SourceFile;

/// Words for persons and idioms that say nothing a reader could look up. Each stands in two parts, because this file is
/// searched too.
const FORBIDDEN: [[&str; 2]; 6] =
    [["any", "body"], ["every", "body"], ["no", "body"], ["some", "body"], ["who", "ever"], ["in ", "vain"]];

/// Texts in which such a word is right, and why.
pub const ACCEPTED: &[(&str, &str)] =
    &[("CONTRIBUTING.md", "quotes a sentence as an example to avoid"), ("tests/house/src/names.rs", "lists the words")];

/// Lines of sources and documents, comments and messages included, that use a forbidden word, and entries of `accepted`
/// that name no file with such a line.
pub fn personal_words(files: &[SourceFile], accepted: &[(&str, &str)]) -> Vec<String> {
    const ENDINGS: [&str; 10] = [".rs", ".md", ".esp", ".fp", ".c", ".h", ".S", ".py", ".toml", ".spec"];
    let mut complaints = Vec::new();
    let mut used = BTreeSet::new();
    for file in files.iter().filter(|file| ENDINGS.iter().any(|ending| file.path.ends_with(ending))) {
        let is_accepted = accepted.iter().any(|(path, _)| *path == file.path);
        for (number, line) in file.text.lines().enumerate() {
            let line = line.to_lowercase();
            for word in FORBIDDEN.map(|parts| parts.concat()) {
                if has_word(&line, &word) && is_accepted {
                    used.insert(file.path.as_str());
                } else if has_word(&line, &word) {
                    complaints.push(format!(
                        "{}:{}: `{word}`; say which process, packet or pass",
                        file.path,
                        number + 1
                    ));
                }
            }
        }
    }
    let unused = accepted.iter().filter(|(path, _)| !used.contains(path));
    complaints.extend(unused.map(|(path, _)| format!("{path} has no such word any more; remove it from ACCEPTED")));
    complaints
}

fn has_word(line: &str, word: &str) -> bool {
    let is_inside = |sign: char| sign.is_alphanumeric() || sign == '_';
    line.match_indices(word)
        .any(|(at, _)| !line[..at].ends_with(is_inside) && !line[at + word.len()..].starts_with(is_inside))
}

/// The number of sentences of a Markdown page and their mean length in words. Code blocks, tables, headings and list
/// items without a full stop do not count.
pub fn sentence_length(page: &str) -> (u32, f64) {
    let mut text = String::new();
    let mut in_code = false;
    for line in page.lines() {
        if line.starts_with("```") {
            in_code = !in_code;
        }
        let is_prose = !in_code && !line.starts_with(['`', '|', '#']);
        if is_prose {
            text.push_str(line.trim_start_matches(['-', '*', ' ']));
            text.push(' ');
        }
        if !is_prose || line.trim().is_empty() {
            text.push('\n');
        }
    }
    let mut sentences: u32 = 0;
    let mut words: u32 = 0;
    for paragraph in text.lines() {
        let mut length = 0;
        for word in paragraph.split_whitespace() {
            length += 1;
            if word.trim_end_matches([')', '*', '_', '"']).ends_with(['.', '?', '!']) {
                sentences += 1;
                words += length;
                length = 0;
            }
        }
    }
    (sentences, f64::from(words) / f64::from(sentences.max(1)))
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
    fn no_text_speaks_of_a_process_as_a_person() {
        assert_none(&personal_words(&text_files(), ACCEPTED));
    }

    #[test]
    fn a_personal_word_is_seen() {
        let text =
            format!("{}\n{}_x\nvein {}\n", ["Who", "ever"].concat(), ["no", "body"].concat(), ["in ", "vain"].concat());
        assert_eq!(personal_words(&[file("a.md", &text), file("b.png", &text)], &[]).len(), 2);
        let complaints = personal_words(&[file("a.md", &text)], &[("a.md", "a reason"), ("b.md", "a reason")]);
        assert_eq!(complaints, ["b.md has no such word any more; remove it from ACCEPTED"]);
    }

    #[test]
    fn sentences_are_measured() {
        let page = "# Not this one.\n\nOne (two) 0.5. Four\nfive: six seven!\n\n```text\nnot. this.\n```\n| nor. | this. |\n- a list item\n\n- a full sentence.\n";
        assert_eq!(sentence_length(page), (3, 10.0 / 3.0));
    }

    /// Prints the figures: `cargo test -p quaject-house -- --nocapture pages_are`. Fails when it finds no page to
    /// measure.
    #[test]
    fn pages_are_measured() {
        let pages: Vec<SourceFile> = text_files().into_iter().filter(|file| file.path.ends_with(".md")).collect();
        assert!(pages.len() > 20, "the book has pages");
        for page in pages {
            let (sentences, words) = sentence_length(&page.text);
            println!("{words:5.1} words a sentence, {sentences:4} sentences: {}", page.path);
        }
    }
}
