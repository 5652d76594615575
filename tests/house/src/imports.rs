//! The import graph among the source files of each package, and the circles in it. A circle is a strongly connected
//! component of more than one file. An arrow between a module and a module inside it does not count: a parent declares
//! its children, and a child may use what its parent holds.

use std::collections::{BTreeMap, BTreeSet};

use petgraph::algo::tarjan_scc;
use petgraph::graphmap::DiGraphMap;

use crate::repository::{Package, SourceFile};
use crate::tokens::{Token, production_code, strip};

/// Circles that stay, each by one of its files, and the reason.
pub const ACCEPTED: &[(&str, &str)] = &[
    ("crates/esp-syntax/src/parser/expressions.rs", "the grammar of types and of expressions is mutually recursive"),
    ("crates/esp-syntax/src/parser/items.rs", "the grammar of items, statements and models is mutually recursive"),
    ("crates/esp-syntax/src/lower/expressions.rs", "as the grammar: a type has constants, an expression names types"),
    (
        "crates/esp-syntax/src/check/expressions.rs",
        "checking is mutually recursive: a type has constant expressions, which have types",
    ),
];

/// The path of a module below its crate's root: `["c", "plan"]`; empty for the root itself.
type ModulePath = Vec<String>;

/// One source file as a module of its crate.
struct Module<'f> {
    file: &'f str,
    /// Every path in the file that starts at a module of the crate, absolute.
    paths: Vec<ModulePath>,
    /// The names that its `use` items bring in, and the absolute path of each.
    names: BTreeMap<String, ModulePath>,
}

type Crate<'f> = BTreeMap<ModulePath, Module<'f>>;

/// The circles of every package, each as the sorted files in it.
pub fn circles<'f>(packages: &[Package], files: &'f [SourceFile]) -> Vec<Vec<&'f str>> {
    packages.iter().flat_map(|package| circles_of_crate(&read_crate(&package.folder, files))).collect()
}

/// Circles that [`ACCEPTED`] does not name, and entries of it that name no circle.
pub fn unaccepted_circles(packages: &[Package], files: &[SourceFile], accepted: &[(&str, &str)]) -> Vec<String> {
    let found = circles(packages, files);
    let is_accepted = |circle: &[&str]| accepted.iter().any(|(file, _)| circle.contains(file));
    let unknown = found.iter().filter(|circle| !is_accepted(circle));
    let mut complaints: Vec<String> = unknown
        .map(|circle| format!("{} files import each other in a circle: {}", circle.len(), circle.join(" ")))
        .collect();
    let stale = accepted.iter().filter(|(file, _)| !found.iter().any(|circle| circle.contains(file)));
    complaints.extend(stale.map(|(file, _)| format!("{file} is in no circle any more; remove it from ACCEPTED")));
    complaints
}

fn circles_of_crate<'f>(modules: &Crate<'f>) -> Vec<Vec<&'f str>> {
    let mut graph = DiGraphMap::<&str, ()>::new();
    for (path, module) in modules {
        for target in module.paths.iter().filter_map(|target| resolve(modules, target)) {
            let is_family = target.starts_with(path) || path.starts_with(target);
            if !is_family {
                graph.add_edge(module.file, modules[target].file, ());
            }
        }
    }
    let mut circles: Vec<Vec<&str>> = tarjan_scc(&graph).into_iter().filter(|circle| circle.len() > 1).collect();
    circles.iter_mut().for_each(|circle| circle.sort_unstable());
    circles.sort_unstable();
    circles
}

/// The module in whose file the item at the end of `path` is defined. Names that a module imports and hands on are
/// followed to where they come from.
fn resolve<'m>(modules: &'m Crate, path: &[String]) -> Option<&'m ModulePath> {
    let mut path = path.to_vec();
    // A chain of imports is as long as the crate has modules, at most.
    for _ in 0..=modules.len() {
        let depth = (0..=path.len()).rev().find(|depth| modules.contains_key(&path[..*depth]))?;
        let (found, module) = modules.get_key_value(&path[..depth]).expect("found above");
        match path.get(depth).and_then(|name| module.names.get(name)) {
            Some(origin) => path = origin.iter().chain(&path[depth + 1..]).cloned().collect(),
            None => return Some(found),
        }
    }
    None
}

fn read_crate<'f>(folder: &str, files: &'f [SourceFile]) -> Crate<'f> {
    let sources = format!("{folder}/src/");
    let mut modules = Crate::new();
    let mut test_modules = BTreeSet::new();
    // Generated code implements what the crate around it declares, and is used by it.
    let written = files.iter().filter(|file| file.path.ends_with(".rs") && !file.path.contains("/generated/"));
    for file in written {
        let Some(below) = file.path.strip_prefix(&sources) else { continue };
        let path = module_path(below);
        let code = production_code(&file.text);
        test_modules
            .extend(code.test_modules.iter().map(|name| [path.as_slice(), std::slice::from_ref(name)].concat()));
        modules.insert(path.clone(), read_module(&file.path, &path, &code.tokens));
    }
    modules.retain(|path, _| !test_modules.iter().any(|test| path.starts_with(test)));
    modules
}

/// `c/plan.rs` and `c/plan/mod.rs` are the module `c::plan`.
fn module_path(below_sources: &str) -> ModulePath {
    let stem = below_sources.strip_suffix(".rs").expect("only Rust files are read");
    let mut path: ModulePath = stem.split('/').map(str::to_owned).collect();
    if matches!(path.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        path.pop();
    }
    path
}

fn read_module<'f>(file: &'f str, path: &[String], tokens: &[Token]) -> Module<'f> {
    let mut module = Module { file, paths: Vec::new(), names: BTreeMap::new() };
    for at in 0..tokens.len() {
        let is_macro_root = at > 0 && tokens[at - 1].text == "$";
        let in_use = at > 0 && tokens[at - 1].text == "use";
        if is_macro_root {
            continue;
        }
        if let Some((start, rest)) = path_start(path, &tokens[at..]) {
            let mut leaves = Vec::new();
            read_tree(start, rest, &mut leaves);
            for (name, target) in leaves {
                if in_use {
                    module.names.insert(name, target.clone());
                }
                module.paths.push(target);
            }
        }
    }
    module
}

/// Where a path that begins here with `crate`, `self` or `super` starts, and what follows.
fn path_start<'t>(path: &[String], tokens: &'t [Token]) -> Option<(ModulePath, &'t [Token])> {
    if let Some(rest) = strip(tokens, &["crate", ":", ":"]) {
        return Some((Vec::new(), rest));
    }
    if let Some(rest) = strip(tokens, &["self", ":", ":"]) {
        return Some((path.to_vec(), rest));
    }
    let mut rest = strip(tokens, &["super", ":", ":"])?;
    let mut start = path.split_last()?.1;
    while let Some(further) = strip(rest, &["super", ":", ":"]) {
        (start, rest) = (start.split_last()?.1, further);
    }
    Some((start.to_vec(), rest))
}

/// Reads one `use` tree, or the rest of a path in an expression: every leaf with its name. Returns what follows.
fn read_tree<'t>(mut path: ModulePath, tokens: &'t [Token], leaves: &mut Vec<(String, ModulePath)>) -> &'t [Token] {
    let Some((first, mut rest)) = tokens.split_first() else { return tokens };
    if first.text == "{" {
        while rest.first().is_some_and(|token| token.text != "}") {
            rest = read_tree(path.clone(), rest, leaves);
            rest = strip(rest, &[","]).unwrap_or(rest);
        }
        return rest.get(1..).unwrap_or(&[]);
    }
    if first.text != "self" {
        path.push(first.text.clone());
    }
    if let Some(further) = strip(rest, &[":", ":"]) {
        return read_tree(path, further, leaves);
    }
    let mut name = path.last().cloned().unwrap_or_default();
    if let Some(renamed) = strip(rest, &["as"]) {
        name = renamed[0].text.clone();
        rest = &renamed[1..];
    }
    leaves.push((name, path));
    rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_none;
    use crate::repository::{kernel_packages, packages, text_files};

    fn package(files: &[(&str, &str)]) -> (Vec<Package>, Vec<SourceFile>) {
        let package = Package { name: "a".into(), folder: "crates/a".into(), manifest: toml::Table::new() };
        let file =
            |(path, text): &(&str, &str)| SourceFile { path: format!("crates/a/src/{path}"), text: (*text).into() };
        (vec![package], files.iter().map(file).collect())
    }

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let (packages, files) = package(files);
        circles(&packages, &files).iter().map(|circle| circle.join(" ").replace("crates/a/src/", "")).collect()
    }

    #[test]
    fn files_import_each_other_in_no_circle() {
        assert_none(&unaccepted_circles(&packages(), &text_files(), ACCEPTED));
    }

    #[test]
    fn files_of_the_kernel_import_each_other_in_no_circle() {
        let packages = kernel_packages();
        assert!(packages.len() > 1, "the kernel has packages");
        assert_none(&unaccepted_circles(&packages, &text_files(), &[]));
    }

    #[test]
    fn a_circle_is_found() {
        let files = [("lib.rs", "mod b; mod c;"), ("b.rs", "use crate::c::C;"), ("c.rs", "fn c() { super::b::f() }")];
        assert_eq!(found(&files), ["b.rs c.rs"]);
    }

    #[test]
    fn a_circle_through_imports_of_the_root_and_groups_is_found() {
        let files = [
            ("lib.rs", "mod b; mod c; mod d; pub use c::x; pub use self::d::{D as E};"),
            ("b.rs", "use crate::{E, c::{self, C}};"),
            ("c.rs", "struct C;"),
            ("d/mod.rs", "use crate::b::B;"),
        ];
        assert_eq!(found(&files), ["b.rs d/mod.rs"]);
    }

    #[test]
    fn parents_children_and_tests_make_no_circle() {
        let files = [
            ("lib.rs", "mod b; use b::B; fn f() { crate::b::inner::g(); }"),
            ("b.rs", "mod inner; use self::inner::I; use crate::F; #[cfg(test)] mod tests;"),
            ("b/inner.rs", "use super::B; use crate::b::C; fn h() { $crate::x() }"),
            ("b/tests.rs", "use crate::c::C;"),
            ("c.rs", "use crate::b::B;"),
        ];
        assert_none(&found(&files));
    }

    #[test]
    fn an_accepted_circle_has_to_exist() {
        let (packages, files) = package(&[("lib.rs", ""), ("b.rs", "use crate::c::C;"), ("c.rs", "use crate::b::B;")]);
        assert_none(&unaccepted_circles(&packages, &files, &[("crates/a/src/b.rs", "a reason")]));
        assert_eq!(unaccepted_circles(&packages, &files, &[]).len(), 1);
        assert_eq!(unaccepted_circles(&packages, &files[..2], &[("crates/a/src/b.rs", "a reason")]).len(), 1);
    }
}
