//! Every crate can be published as it stands, and those that promise `no_std` keep the promise.

use crate::repository::{Package, SourceFile};

/// The crates that run without an operating system. They are built for `x86_64-unknown-none`, which has no `std`.
pub const NO_STD: &[&str] = &["quaject-queue", "quaject-synth", "quaject-vcode"];

/// What every manifest says.
const REQUIRED: &[&str] =
    &["categories", "description", "edition", "keywords", "license", "readme", "repository", "rust-version", "version"];
/// The fields of the manifest of a tool, which is not published.
const REQUIRED_OF_TOOLS: &[&str] = &["description", "edition", "license", "rust-version", "version"];
/// Files that each package contains in addition to its sources; the licences are links to those of the repository.
pub const PACKAGED: &[&str] = &["Cargo.toml", "LICENSE-APACHE", "LICENSE-MIT", "README.md"];
/// The libraries that programs use by themselves, which have examples to start from.
pub const WITH_EXAMPLES: &[&str] = &["quaject-filter", "quaject-pipe", "quaject-queue", "quaject-vcode"];

/// Manifests that miss a field, or the workspace's lints.
pub fn incomplete_manifests(packages: &[Package]) -> Vec<String> {
    let mut complaints = Vec::new();
    for Package { name, folder, manifest } in packages {
        let package = manifest.get("package").and_then(toml::Value::as_table);
        let is_published = folder.starts_with("crates/");
        for field in if is_published { REQUIRED } else { REQUIRED_OF_TOOLS } {
            if !package.is_some_and(|package| package.contains_key(*field)) {
                complaints.push(format!("{folder}/Cargo.toml: `{name}` has no `{field}`"));
            }
        }
        let lints = manifest.get("lints").and_then(|lints| lints.get("workspace"));
        if lints.and_then(toml::Value::as_bool) != Some(true) {
            complaints.push(format!("{folder}/Cargo.toml: `{name}` lacks `[lints] workspace = true`"));
        }
        if is_published && package.and_then(|package| package.get("metadata")?.get("docs")?.get("rs")).is_none() {
            complaints.push(format!("{folder}/Cargo.toml: `{name}` lacks `[package.metadata.docs.rs]`"));
        }
        if package.is_some_and(|package| package.contains_key("publish")) == is_published {
            complaints.push(format!("{folder}/Cargo.toml: crates are published, tools are not"));
        }
    }
    complaints
}

/// Crates whose README is missing, or has an example that no test runs: as documentation, with the book, or by itself.
pub fn untested_readmes(packages: &[Package], files: &[SourceFile]) -> Vec<String> {
    let text = |path: String| files.iter().find(|file| file.path == path).map(|file| file.text.as_str());
    let mut complaints = Vec::new();
    for Package { folder, .. } in packages.iter().filter(|package| package.folder.starts_with("crates/")) {
        let readme = format!("{folder}/README.md");
        let Some(content) = text(readme.clone()) else {
            complaints.push(format!("{readme} is missing"));
            continue;
        };
        let has_example = content.lines().any(|line| line == "```" || line == "```rust");
        let library = text(format!("{folder}/src/lib.rs")).unwrap_or_default();
        // Commands are run with the book's.
        let is_run_with_the_book =
            text("tests/book/src/main.rs".to_owned()).is_some_and(|book| book.contains(&format!("\"{readme}\"")));
        let tests = format!("{folder}/tests/");
        let own_tests = files.iter().filter(|file| file.path.starts_with(&tests)).map(|file| file.text.as_str());
        let is_read = own_tests.chain([library]).any(|text| text.contains("include_str!(\"../README.md\")"));
        if has_example && !is_read && !is_run_with_the_book {
            complaints.push(format!("{readme}: no test runs its example"));
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::PathBuf;
    use std::process::{Command, Output};

    use quaject_test_support::quick_run;

    use super::*;
    use crate::assert_none;
    use crate::repository::{packages, root, text_files};

    #[test]
    fn manifests_are_complete() {
        assert_none(&incomplete_manifests(&packages()));
    }

    #[test]
    fn an_incomplete_manifest_is_seen() {
        let manifest =
            "[package]\nname = 'a'\nedition = '2024'\nversion = '1'\nrust-version = '1.95'\npublish = false\n";
        let package =
            Package { name: "a".into(), folder: "crates/a".into(), manifest: manifest.parse().expect("a manifest") };
        assert_eq!(incomplete_manifests(&[package]).len(), 9);
    }

    #[test]
    fn examples_of_readmes_run() {
        assert_none(&untested_readmes(&packages(), &text_files()));
    }

    #[test]
    fn an_example_that_is_not_run_is_seen() {
        let package = Package { name: "a".into(), folder: "crates/a".into(), manifest: toml::Table::new() };
        let file = |path: &str, text: &str| SourceFile { path: path.into(), text: text.into() };
        assert_eq!(untested_readmes(std::slice::from_ref(&package), &[]).len(), 1);
        for (test, wanted) in [("fn test() {}", 1), ("const README: &str = include_str!(\"../README.md\");", 0)] {
            let files = [file("crates/a/README.md", "```rust\n```\n"), file("crates/a/tests/b.rs", test)];
            assert_eq!(untested_readmes(std::slice::from_ref(&package), &files).len(), wanted, "{test}");
        }
    }

    #[test]
    fn libraries_have_examples() {
        let all = packages();
        for name in WITH_EXAMPLES {
            let package = all.iter().find(|package| package.name == *name).expect("the list names packages");
            let folder = root().join(&package.folder).join("examples");
            let examples = fs::read_dir(&folder).map_or(0, Iterator::count);
            assert!(examples > 0, "{} has no example", folder.display());
        }
    }

    /// Links to the licences of the repository are followed: the package contains their text.
    #[test]
    fn every_package_contains_its_licences_and_its_readme() {
        for package in packages().iter().filter(|package| package.folder.starts_with("crates/")) {
            let list = ["package", "--list", "--allow-dirty", "--offline", "--quiet", "-p", &package.name];
            let output = run(&mut cargo(&list));
            assert_success(&output);
            let listed = String::from_utf8_lossy(&output.stdout).into_owned();
            let listed: BTreeSet<&str> = listed.lines().collect();
            for file in PACKAGED {
                assert!(listed.contains(file), "the package of {} lacks {file}", package.name);
                if file.starts_with("LICENSE") {
                    let own = fs::read_to_string(root().join(&package.folder).join(file)).expect("it is listed");
                    let wanted = fs::read_to_string(root().join(file)).expect("the repository has its licences");
                    assert!(own == wanted, "{}/{file} differs from {file}", package.folder);
                }
            }
        }
    }

    /// Cargo in the repository, with build results of its own: the test run holds the lock of the usual ones.
    fn cargo(arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(root()).args(arguments).env("CARGO_TARGET_DIR", target_folder());
        command
    }

    fn target_folder() -> PathBuf {
        root().join("target/house")
    }

    fn run(command: &mut Command) -> Output {
        command.output().expect("Cargo has built this test, so it and its compiler start")
    }

    fn assert_success(output: &Output) {
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Without network: whatever the packages need, this test's own build has needed too. A file or a feature that a
    /// package lacks is an error of the compiler, so nothing is linked or optimised.
    #[test]
    fn every_crate_packages_and_compiles_from_its_package() {
        let mut arguments = vec!["package", "--workspace", "--allow-dirty", "--offline", "--quiet", "--no-verify"];
        let (crates, tools): (Vec<Package>, Vec<Package>) =
            packages().into_iter().partition(|package| package.folder.starts_with("crates/"));
        arguments.extend(tools.iter().flat_map(|tool| ["--exclude", tool.name.as_str()]));
        assert_success(&run(&mut cargo(&arguments)));
        // It takes a minute: for `cargo xtask test`, which sets the variable, not for `cargo test` in between.
        let is_wanted = std::env::var_os("QJ_TEST").is_some();
        if quick_run("compiling every crate from its package") || !is_wanted {
            return;
        }
        let workspace = unpack(&crates);
        for package in &crates {
            // One at a time: together, a crate could use a feature that only another one requests.
            let mut check = cargo(&["check", "--quiet", "--offline", "-p", &package.name]);
            assert_success(&run(check.current_dir(&workspace)));
        }
    }

    /// Unpacks the packages into a workspace in which they stand in for those of the registry.
    fn unpack(crates: &[Package]) -> PathBuf {
        let workspace = target_folder().join("unpacked");
        if workspace.exists() {
            fs::remove_dir_all(&workspace).expect("the target folder can be written");
        }
        fs::create_dir_all(&workspace).expect("the target folder can be written");
        let (mut members, mut patches) = (Vec::new(), String::new());
        for Package { name, .. } in crates {
            let folder = format!("{name}-{}", env!("CARGO_PKG_VERSION"));
            let archive = target_folder().join("package").join(&folder).with_added_extension("crate");
            let mut tar = Command::new("tar");
            assert_success(&run(tar.arg("-xzf").arg(&archive).current_dir(&workspace)));
            patches += &format!("{name} = {{ path = \"{folder}\" }}\n");
            members.push(folder);
        }
        let manifest = format!("[workspace]\nresolver = \"3\"\nmembers = {members:?}\n[patch.crates-io]\n{patches}");
        fs::write(workspace.join("Cargo.toml"), manifest).expect("the target folder can be written");
        // The versions of this build, which are on this machine.
        fs::copy(root().join("Cargo.lock"), workspace.join("Cargo.lock")).expect("the repository has its lock file");
        workspace
    }

    /// In a build of all features, one can use what only another provides.
    #[test]
    fn each_feature_compiles_without_the_others() {
        for package in packages().iter().filter(|package| package.folder.starts_with("crates/")) {
            let Some(features) = package.manifest.get("features").and_then(toml::Value::as_table) else { continue };
            for feature in features.keys().filter(|feature| *feature != "default") {
                let alone = ["--no-default-features", "--features", feature];
                let output = run(cargo(&["check", "--quiet", "--offline", "-p", &package.name]).args(alone));
                let errors = String::from_utf8_lossy(&output.stderr);
                assert!(output.status.success(), "{} with `{feature}` alone:\n{errors}", package.name);
            }
        }
    }

    #[test]
    fn no_std_crates_need_no_std() {
        for name in NO_STD {
            let bare = ["--lib", "--target", "x86_64-unknown-none"];
            assert_success(&run(cargo(&["build", "--quiet", "-p", name]).args(bare)));
        }
    }

    /// The check above fails when a crate names `std`, and does not when the target is merely missing.
    #[test]
    fn the_bare_target_is_installed_and_has_no_std() {
        let folder = target_folder();
        fs::create_dir_all(&folder).expect("the target folder can be written");
        let compile = |name: &str, text: &str| {
            let source = folder.join(name).with_extension("rs");
            fs::write(&source, text).expect("the target folder can be written");
            let target = ["--crate-type=rlib", "--edition=2024", "--target=x86_64-unknown-none", "--out-dir"];
            // In the repository, so that rustup picks the pinned toolchain.
            let mut rustc = Command::new("rustc");
            run(rustc.current_dir(root()).args(target).arg(&folder).arg(&source))
        };
        assert_success(&compile("bare", "#![no_std]\npub fn f() -> u32 { 1 }"));
        let hosted = compile("hosted", "pub fn f() -> std::string::String { std::string::String::new() }");
        assert!(!hosted.status.success());
    }
}
