//! The layers of ARCHITECTURE.md: arrows point down only, and the ESP compiler stays a function without effects.

use crate::repository::{Package, SourceFile};
use crate::tokens::{Token, production_code, strip};

/// Every crate under `crates/` and its layer. A crate may need only crates of lower layers.
const LAYERS: &[(&str, u8)] = &[
    ("quaject-cli", 7),
    ("quaject-build", 6),
    ("quaject-esp-run", 6),
    ("quaject-esp", 5),
    ("quaject-esp-debug", 5),
    ("quaject-esp-opt", 4),
    ("quaject-esp-gen", 4),
    ("quaject-esp-check", 4),
    ("quaject-vmmc", 4),
    ("quaject-esp-lower", 3),
    ("quaject-esp-exec", 3),
    ("quaject-esp-ide", 3),
    ("quaject-esp-ir", 2),
    ("quaject-filter", 2),
    ("quaject-pipe", 2),
    ("quaject-ac", 2),
    ("quaject-synth", 2),
    ("quaject-tickc", 2),
    ("quaject-esp-syntax", 1),
    ("quaject-vcode", 1),
    ("quaject-diagnostic", 0),
    ("quaject-pages", 0),
    ("quaject-queue", 0),
    ("quaject-vcode-spec", 0),
];

fn layer_of(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(known, _)| *known == name).map(|(_, layer)| *layer)
}

/// Arrows that do not point down, and crates without a layer. Dev-dependencies are free: a test may compare a crate
/// with one above it, and no user of the crate ever builds it.
pub fn upward_arrows(packages: &[Package]) -> Vec<String> {
    let mut complaints = Vec::new();
    for package in packages.iter().filter(|package| package.folder.starts_with("crates/")) {
        let name = &package.name;
        if package.folder.strip_prefix("crates/") != name.strip_prefix("quaject-") {
            complaints.push(format!("`{name}` lives in {}, not in the folder of its name", package.folder));
        }
        let Some(layer) = layer_of(name) else {
            complaints.push(format!("`{name}` has no layer; add it to LAYERS and to ARCHITECTURE.md"));
            continue;
        };
        for dependency in dependencies(&package.manifest).iter().filter(|other| other.starts_with("quaject-")) {
            match layer_of(dependency) {
                Some(below) if below < layer => {}
                Some(other) => {
                    complaints.push(format!("`{name}` (layer {layer}) needs `{dependency}` (layer {other})"))
                }
                None => complaints.push(format!("`{name}` needs `{dependency}`, which has no layer")),
            }
        }
    }
    complaints
}

/// The packages that a manifest's production and build code needs, of every target, under their own names.
fn dependencies(manifest: &toml::Table) -> Vec<String> {
    let mut tables = vec![manifest];
    if let Some(targets) = manifest.get("target").and_then(toml::Value::as_table) {
        tables.extend(targets.values().filter_map(toml::Value::as_table));
    }
    let mut names = Vec::new();
    for table in tables {
        for section in ["dependencies", "build-dependencies"] {
            let entries = table.get(section).and_then(toml::Value::as_table);
            for (key, value) in entries.into_iter().flatten() {
                names.push(value.get("package").and_then(toml::Value::as_str).unwrap_or(key).to_owned());
            }
        }
    }
    names
}

/// Whether a file belongs to the part of the ESP compiler that may neither do I/O nor hold `unsafe`.
fn is_pure_compiler(path: &str) -> bool {
    let Some((folder, rest)) = path.strip_prefix("crates/").and_then(|path| path.split_once('/')) else {
        return false;
    };
    (folder == "esp" || folder.starts_with("esp-"))
        && folder != "esp-run"
        && rest.starts_with("src/")
        && path.ends_with(".rs")
}

/// The compiler's crates that do not forbid `unsafe`.
pub fn crates_that_allow_unsafe(files: &[SourceFile]) -> Vec<String> {
    let roots = files.iter().filter(|file| is_pure_compiler(&file.path) && file.path.ends_with("/src/lib.rs"));
    roots
        .filter(|root| !root.text.lines().any(|line| line == "#![forbid(unsafe_code)]"))
        .map(|root| format!("{}: the line `#![forbid(unsafe_code)]` is missing", root.path))
        .collect()
}

/// Where the compiler's production code touches files, sockets, processes, the environment or a terminal.
pub fn uses_of_the_outside(files: &[SourceFile]) -> Vec<String> {
    let compiler: Vec<_> = files.iter().filter(|file| is_pure_compiler(&file.path)).collect();
    let codes: Vec<_> = compiler.iter().map(|file| (*file, production_code(&file.text))).collect();
    let test_files: Vec<String> = codes
        .iter()
        .flat_map(|(file, code)| code.test_modules.iter().map(|module| module_path(&file.path, module)))
        .collect();
    let production = codes.iter().filter(|(file, _)| {
        let stem = file.path.strip_suffix(".rs").expect("filtered by is_pure_compiler");
        !test_files.iter().any(|test| stem == test || stem.starts_with(&format!("{test}/")))
    });
    production.flat_map(|(file, code)| outside_names(&file.path, &code.tokens)).collect()
}

/// Where `mod NAME;` in the file `path` leads, without `.rs`.
fn module_path(path: &str, module: &str) -> String {
    let (folder, file) = path.rsplit_once('/').expect("sources lie in folders");
    match file {
        "lib.rs" | "main.rs" | "mod.rs" => format!("{folder}/{module}"),
        other => format!("{folder}/{}/{module}", other.strip_suffix(".rs").expect("filtered by is_pure_compiler")),
    }
}

/// Modules of `std` that reach outside of the process.
const OUTSIDE_MODULES: &[&str] = &["env", "fs", "net", "os", "process"];
/// Functions and macros that reach the terminal.
const OUTSIDE_NAMES: &[&str] =
    &["stdin", "stdout", "stderr", "Stdin", "Stdout", "Stderr", "print", "println", "eprint", "eprintln"];

fn outside_names(path: &str, tokens: &[Token]) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut complain = |token: &Token| complaints.push(format!("{path}:{}: uses `{}`", token.line, token.text));
    for start in 0..tokens.len() {
        let rest = &tokens[start..];
        if let Some(after) = strip(rest, &["std", ":", ":"]) {
            for name in first_segments(after) {
                if OUTSIDE_MODULES.contains(&name.text.as_str()) {
                    complain(name);
                }
            }
        }
        let is_macro = rest.get(1).is_some_and(|next| next.text == "!");
        let of_io = start >= 3 && strip(&tokens[start - 3..], &["io", ":", ":"]).is_some();
        let in_group = start >= 4 && tokens[..start].iter().rev().take_while(|t| t.text != ";").any(|t| t.text == "io");
        if OUTSIDE_NAMES.contains(&rest[0].text.as_str()) && (is_macro || of_io || in_group) {
            complain(&rest[0]);
        }
    }
    complaints
}

/// After `std::`, the next name; in `std::{fs, io::{self, Read}}` each name that stands directly in the braces.
fn first_segments(tokens: &[Token]) -> Vec<&Token> {
    if tokens.first().is_none_or(|token| token.text != "{") {
        return tokens.first().into_iter().collect();
    }
    let mut depth = 0;
    let mut names = Vec::new();
    let mut expects_name = false;
    for token in tokens {
        match token.text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ if expects_name && depth == 1 => names.push(token),
            _ => {}
        }
        expects_name = depth == 1 && (token.text == "{" || token.text == ",");
        if depth == 0 {
            break;
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assert_none;
    use crate::repository::{packages, text_files};

    fn package(name: &str, folder: &str, manifest: &str) -> Package {
        Package { name: name.into(), folder: folder.into(), manifest: manifest.parse().expect("a manifest") }
    }

    fn file(path: &str, text: &str) -> SourceFile {
        SourceFile { path: path.into(), text: text.into() }
    }

    #[test]
    fn arrows_point_down() {
        assert_none(&upward_arrows(&packages()));
    }

    #[test]
    fn an_arrow_up_is_seen() {
        let complaints = upward_arrows(&[
            package("quaject-esp-ir", "crates/esp-ir", "[target.'cfg(unix)'.dependencies]\nquaject-esp-gen = '1'"),
            package("quaject-esp", "crates/esp", "[build-dependencies]\nesp = { package = 'quaject-esp' }"),
            package("quaject-news", "crates/old", ""),
            package("quaject-cli", "crates/cli", "[dependencies]\nquaject-esp = '1'\nclap = '4'"),
            package("quaject-queue", "crates/queue", "[dev-dependencies]\nquaject-cli = '1'"),
        ]);
        assert_eq!(
            complaints,
            [
                "`quaject-esp-ir` (layer 2) needs `quaject-esp-gen` (layer 4)",
                "`quaject-esp` (layer 5) needs `quaject-esp` (layer 5)",
                "`quaject-news` lives in crates/old, not in the folder of its name",
                "`quaject-news` has no layer; add it to LAYERS and to ARCHITECTURE.md",
            ]
        );
    }

    #[test]
    fn the_compiler_forbids_unsafe() {
        assert_none(&crates_that_allow_unsafe(&text_files()));
    }

    #[test]
    fn a_compiler_crate_that_allows_unsafe_is_seen() {
        let files = [
            file("crates/esp-ir/src/lib.rs", "//! x\n// #![forbid(unsafe_code)]\n"),
            file("crates/esp-gen/src/lib.rs", "//! x\n#![forbid(unsafe_code)]\n"),
            file("crates/esp-run/src/lib.rs", "//! x\n"),
        ];
        assert_eq!(crates_that_allow_unsafe(&files).len(), 1);
    }

    #[test]
    fn the_compiler_does_no_io() {
        assert_none(&uses_of_the_outside(&text_files()));
    }

    #[test]
    fn io_in_the_compiler_is_seen() {
        let files = [
            file("crates/esp/src/lib.rs", "use std::{fmt, io::{self, Read}, fs};\nfn f() {\n  println!(\"x\") }"),
            file("crates/esp/src/a.rs", "fn f() { vec![std::env::args()]; }\nfn g() { io::stdout(); }"),
            file("crates/esp/src/b.rs", "use std::io::{Write, stderr};\nfn env() { \"std::fs\"; } // std::fs"),
            file(
                "crates/esp/src/c.rs",
                "#[cfg(test)]\nmod tests { use std::fs; }\n#[cfg(test)]\nmod more;\nfn f(out: stdout) {}",
            ),
            file("crates/esp/src/c/more.rs", "use std::fs;"),
            file("crates/esp-run/src/lib.rs", "use std::fs;"),
        ];
        assert_eq!(
            uses_of_the_outside(&files),
            [
                "crates/esp/src/lib.rs:1: uses `fs`",
                "crates/esp/src/lib.rs:3: uses `println`",
                "crates/esp/src/a.rs:1: uses `env`",
                "crates/esp/src/a.rs:2: uses `stdout`",
                "crates/esp/src/b.rs:1: uses `stderr`",
            ]
        );
    }
}
