//! The documents that a newcomer opens first: present, and about things that exist.

use crate::repository::SourceFile;

/// The documents every reader may rely on.
const DOCUMENTS: &[&str] = &[
    "README.md",
    "docs/STATUS.md",
    "docs/glossary.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
];

/// Documents that are missing.
pub fn missing(files: &[SourceFile]) -> Vec<String> {
    let absent = DOCUMENTS.iter().filter(|path| !files.iter().any(|file| file.path == **path));
    absent.map(|path| format!("{path} is missing")).collect()
}

/// Relative links of Markdown files that lead nowhere.
pub fn dangling_links(files: &[SourceFile], exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in files.iter().filter(|file| file.path.ends_with(".md")) {
        let folder = file.path.rsplit_once('/').map_or("", |(folder, _)| folder);
        for (number, line) in file.text.lines().enumerate() {
            for target in link_targets(line) {
                let path = target.split('#').next().expect("split gives at least one part");
                if !path.is_empty() && !path.contains("://") && !exists(&normal_path(folder, path)) {
                    complaints.push(format!("{}:{}: `{target}` leads nowhere", file.path, number + 1));
                }
            }
        }
    }
    complaints
}

/// Terms of the glossary whose definition, source or place is missing, or whose place does not exist.
pub fn incomplete_terms(glossary: &str, exists: impl Fn(&str) -> bool) -> Vec<String> {
    let mut complaints = Vec::new();
    for row in glossary.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| term ")) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let [term, definition, source, places] = cells.as_slice() else {
            complaints.push(format!("not a term, a definition, a source and a place: {row}"));
            continue;
        };
        if [term, definition, source, places].iter().any(|cell| cell.is_empty()) {
            complaints.push(format!("`{term}` has an empty cell"));
        }
        let lost = places.split(", ").map(|place| place.trim_matches('`')).filter(|place| !exists(place));
        complaints.extend(lost.map(|place| format!("`{term}` lives in `{place}`, which does not exist")));
    }
    complaints
}

/// What stands in the parentheses of `[text](target)`, code spans left out.
fn link_targets(line: &str) -> Vec<&str> {
    let mut targets = Vec::new();
    for (index, text) in line.split('`').enumerate() {
        // Odd parts are code; only a link whose text holds code continues over it, and then starts with `](`.
        if index % 2 == 0 {
            let ends = text.match_indices("](").map(|(at, _)| &text[at + 2..]);
            targets.extend(ends.filter_map(|rest| rest.split_once(')')).map(|(target, _)| target));
        }
    }
    targets
}

fn normal_path(folder: &str, path: &str) -> String {
    let mut parts: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()),
            name => parts.push(name),
        }
    }
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_none;
    use crate::repository::{packages, root, text_files};

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    fn text_of(path: &str) -> String {
        std::fs::read_to_string(root().join(path)).expect("the document exists")
    }

    #[test]
    fn documents_are_present() {
        assert_none(&missing(&text_files()));
    }

    #[test]
    fn a_missing_document_is_seen() {
        assert_eq!(missing(&[file("README.md", "")]).len(), DOCUMENTS.len() - 1);
    }

    #[test]
    fn links_lead_somewhere() {
        assert_none(&dangling_links(&text_files(), |path| root().join(path).exists()));
    }

    #[test]
    fn a_dangling_link_is_seen() {
        let text = "[a](b.md), [`a`](c.md#x), `[a](d)`, [a](https://a.example/), [a](#here), [a](../e/f.md)";
        let seen = dangling_links(&[file("docs/a.md", text)], |path| path == "docs/b.md");
        assert_eq!(seen, ["docs/a.md:1: `c.md#x` leads nowhere", "docs/a.md:1: `../e/f.md` leads nowhere"]);
    }

    #[test]
    fn terms_of_the_glossary_are_complete() {
        let glossary = text_of("docs/glossary.md");
        assert!(glossary.lines().filter(|line| line.starts_with("| ")).count() > 80, "the glossary has its terms");
        assert_none(&incomplete_terms(&glossary, |path| root().join(path).exists()));
    }

    #[test]
    fn an_incomplete_term_is_seen() {
        let rows = "| term | definition | source | where |\n|---|---|---|---|\n| a | b | c | `d`, `e` |\n| f | | g | `d` |\n| h | i |\n";
        assert_eq!(incomplete_terms(rows, |path| path == "d").len(), 3);
    }

    #[test]
    fn the_map_names_every_crate() {
        let architecture = text_of("ARCHITECTURE.md");
        for package in packages().iter().filter(|package| package.folder.starts_with("crates/")) {
            let name = package.name.strip_prefix("quaject-").expect("checked by the layers");
            assert!(architecture.contains(&format!("`{name}`")), "ARCHITECTURE.md does not name `{name}`");
        }
    }
}
