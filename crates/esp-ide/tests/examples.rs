//! The service over all programs of `examples/`.

use quaject_esp_ide::{Edit, Files, Location, Problem, Roots, Workspace};
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::diagnostics::Severity;
use quaject_esp_syntax::parser::parse;
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};
use quaject_esp_syntax::tree::SyntaxKind;
use quaject_test_support::{Effort, Random};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

struct Disk;

impl Files for Disk {
    fn read(&self, path: &str) -> Result<Vec<u8>, String> {
        std::fs::read(path).map_err(|error| error.to_string())
    }
}

fn collect(folder: &Path, files: &mut Vec<String>) {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path()).collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "esp") {
            files.push(path.display().to_string());
        }
    }
}

fn examples() -> (Workspace, Vec<String>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples").canonicalize().expect("the examples");
    let mut files = Vec::new();
    collect(&folder, &mut files);
    let mut workspace = Workspace::new(Box::new(Disk), Roots { named: Vec::new(), found: files.clone() });
    workspace.refresh();
    (workspace, files)
}

/// Names that the language declares.
const PREDECLARED: [&str; 16] = [
    "time", "duration", "now", "len", "be16", "be32", "be64", "le16", "le32", "le64", "freeze", "thaw", "free", "link",
    "unlink", "sizeof",
];

#[test]
fn every_name_has_a_declaration() {
    let (workspace, files) = examples();
    let (mut unresolved, mut count) = (Vec::new(), 0);
    for path in &files {
        let text = workspace.text(path).expect("the file");
        for (start, name) in names_of(&text) {
            count += 1;
            if workspace.declaration(path, start).is_none() && !PREDECLARED.contains(&name.as_str()) {
                let line = text[..start as usize].matches('\n').count() + 1;
                unresolved.push(format!("{path}:{line}: {name}"));
            }
        }
    }
    println!("{count} names, unresolved {}:\n{}", unresolved.len(), unresolved.join("\n"));
    assert!(unresolved.is_empty());
}

/// The offsets of all names of a file.
fn names_of(text: &str) -> Vec<(u32, String)> {
    let tree = parse(FileId(0), text).tree();
    let tokens = tree.descendants_with_tokens().filter_map(|part| part.into_token());
    let names = tokens.filter(|token| token.kind() == SyntaxKind::Ident);
    names.map(|token| (token.text_range().start().into(), token.text().to_string())).collect()
}

#[test]
fn examples_have_no_errors() {
    let (workspace, files) = examples();
    for path in &files {
        let errors = workspace.problems(path).iter().filter(|problem| problem.severity == Severity::Error);
        assert_eq!(errors.collect::<Vec<_>>(), [] as [&Problem; 0], "{path}");
    }
}

#[test]
fn references_are_all_names_with_the_declaration() {
    let (workspace, files) = examples();
    // The slow search: each name of each file is asked for its declaration.
    let mut slow: BTreeMap<Location, BTreeSet<Location>> = BTreeMap::new();
    let mut asked: BTreeMap<Location, (&str, u32)> = BTreeMap::new();
    for path in &files {
        for (offset, name) in names_of(&workspace.text(path).expect("the file")) {
            if let Some(declared) = workspace.declaration(path, offset) {
                let place = Location { path: path.clone(), range: (offset, offset + name.len() as u32) };
                asked.insert(declared.clone(), (path, offset));
                slow.entry(declared).or_default().insert(place);
            }
        }
    }
    assert!(slow.len() > 3_000, "{}", slow.len());
    let step = Effort::wanted().pick(23, 3, 1);
    for (declared, (path, offset)) in asked.iter().step_by(step) {
        let mut expected = slow[declared].clone();
        expected.insert(declared.clone());
        let found: BTreeSet<Location> = workspace.references(path, *offset, true).into_iter().collect();
        assert!(expected.is_subset(&found), "{declared:?}: {:?}", expected.difference(&found));
        // In a file of several programs a name can mean another declaration in each.
        let word = |place: &Location| {
            workspace.text(&place.path).map(|text| text[place.range.0 as usize..place.range.1 as usize].to_string())
        };
        let others = found.difference(&expected).filter(|place| word(place) != word(declared));
        assert_eq!(others.collect::<Vec<_>>(), [] as [&Location; 0], "{declared:?}");
    }
}

/// The IR of a program without its locations.
fn ir(root: &str, texts: &BTreeMap<String, String>) -> String {
    struct Texts<'t>(&'t BTreeMap<String, String>, Vec<String>);
    impl Loader for Texts<'_> {
        fn load(&mut self, path: &str, importer: FileId) -> Result<(String, Vec<u8>), String> {
            let importer = &self.1[usize::from(importer.0)];
            let near = Path::new(importer).parent().expect("a folder").join(path);
            let near = near.canonicalize().expect("the import").display().to_string();
            if !self.1.contains(&near) {
                self.1.push(near.clone());
            }
            let text = self.0.get(&near).cloned().unwrap_or_else(|| std::fs::read_to_string(&near).expect("the file"));
            Ok((near, text.into_bytes()))
        }
    }
    let mut sources = SourceMap::default();
    let text = texts.get(root).cloned().unwrap_or_else(|| std::fs::read_to_string(root).expect("the file"));
    let file = sources.add(SourceFile::new(root, text));
    let program = analyze(&mut sources, file, &mut Texts(texts, vec![root.to_string()])).program;
    let program = program.unwrap_or_else(|| panic!("{root} has errors"));
    let printed = quaject_esp_ir::text::print(&quaject_esp_lower::lower(&program, &sources));
    let words = printed.split_inclusive(|c: char| c.is_whitespace());
    words.filter(|word| !word.starts_with('@')).collect()
}

#[test]
fn a_renamed_program_means_the_same() {
    let (workspace, files) = examples();
    let (mut changed, mut refused) = (0, Vec::new());
    let step = Effort::wanted().pick(311, 29, 3);
    let mut roots: Vec<&String> = files.iter().filter(|path| workspace.is_root(path)).collect();
    roots.sort();
    for (number, root) in roots.into_iter().enumerate() {
        let text = workspace.text(root).expect("the file");
        let before = ir(root, &BTreeMap::new());
        for (offset, name) in names_of(&text).into_iter().skip(number % step).step_by(step) {
            let new = "zqxw";
            match workspace.rename(root, offset, new) {
                Ok(edits) => {
                    let apply = |(path, edits): (&String, &Vec<Edit>)| {
                        let mut text = workspace.text(path).expect("the file");
                        for edit in edits.iter().rev() {
                            text.replace_range(edit.range.0 as usize..edit.range.1 as usize, &edit.text);
                        }
                        (path.clone(), text)
                    };
                    let texts: BTreeMap<String, String> = edits.iter().map(apply).collect();
                    let after = ir(root, &texts).replace(new, &name);
                    assert_eq!(after, before, "{root}: {name} at {offset}");
                    changed += 1;
                }
                Err(error) => refused.push(format!("{root}:{offset} {name}: {}", error.cause)),
            }
        }
    }
    println!("{changed} renamed, {} refused:\n{}", refused.len(), refused.join("\n"));
    assert!(changed > 2 * refused.len(), "{changed} renamed, {} refused", refused.len());
}

#[test]
fn names_are_known_in_texts_with_a_hole() {
    let (mut workspace, files) = examples();
    let mut random = Random(40);
    let (mut known, mut count) = (0, 0);
    for _ in 0..Effort::wanted().pick(100, 1_000, 10_000) {
        let path = &files[random.index(files.len())];
        let text = workspace.text(path).expect("the file");
        let names: Vec<(u32, String)> =
            names_of(&text).into_iter().filter(|(at, _)| workspace.hover(path, *at).is_some()).collect();
        if names.is_empty() {
            continue;
        }
        let mut start = random.index(text.len());
        let mut end = (start + 1 + random.index(40)).min(text.len());
        while !text.is_char_boundary(start) {
            start -= 1;
        }
        while !text.is_char_boundary(end) {
            end += 1;
        }
        let (at, name) = names[random.index(names.len())].clone();
        let inside = (at as usize) < end && start < at as usize + name.len();
        if inside || text[start..end].contains(&name) {
            continue;
        }
        let cut = format!("{}{}", &text[..start], &text[end..]);
        let moved = if at as usize >= end { at - (end - start) as u32 } else { at };
        workspace.set_text(path, cut);
        workspace.refresh();
        count += 1;
        known += usize::from(workspace.hover(path, moved).is_some());
        workspace.close(path);
        workspace.refresh();
    }
    println!("{known} of {count}");
    assert!(known * 100 >= count * 95, "{known} of {count}");
}
