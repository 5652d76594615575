//! The documents a newcomer opens first: short, present, and speaking of what exists.

use crate::repository::SourceFile;

/// The documents every reader may rely on, and how many lines each may have.
const DOCUMENTS: &[(&str, usize)] = &[
    ("README.md", 120),
    ("docs/STATUS.md", 60),
    ("ARCHITECTURE.md", 400),
    ("CONTRIBUTING.md", 400),
    ("CHANGELOG.md", usize::MAX),
    ("LICENSE-MIT", usize::MAX),
    ("LICENSE-APACHE", usize::MAX),
];

/// Documents that are missing or too long.
pub fn missing_or_long(files: &[SourceFile]) -> Vec<String> {
    let mut complaints = Vec::new();
    for (path, limit) in DOCUMENTS {
        match files.iter().find(|file| file.path == *path) {
            None => complaints.push(format!("{path} is missing")),
            Some(file) if file.text.lines().count() > *limit => {
                complaints.push(format!("{path} has {} lines; {limit} are allowed", file.text.lines().count()));
            }
            Some(_) => {}
        }
    }
    complaints
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
    fn documents_are_present_and_short() {
        assert_none(&missing_or_long(&text_files()));
    }

    #[test]
    fn a_long_document_is_seen() {
        let complaints = missing_or_long(&[file("README.md", &"line\n".repeat(121))]);
        assert_eq!(complaints.len(), DOCUMENTS.len());
        assert_eq!(complaints[0], "README.md has 121 lines; 120 are allowed");
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
    fn the_map_names_every_crate() {
        let architecture = text_of("ARCHITECTURE.md");
        for package in packages().iter().filter(|package| package.folder.starts_with("crates/")) {
            let name = package.name.strip_prefix("quaject-").expect("checked by the layers");
            assert!(architecture.contains(&format!("`{name}`")), "ARCHITECTURE.md does not name `{name}`");
        }
    }

    #[test]
    fn the_readme_gives_the_two_commands() {
        let readme = text_of("README.md");
        assert!(readme.contains("cargo xtask test"));
        assert!(readme.contains("cargo run --release -- run examples/"));
    }
}
