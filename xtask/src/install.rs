//! `cargo xtask install --prefix DIR`: the release build and what belongs to it, in the folders a Unix user expects.
//!
//! ```text
//! DIR/bin/qj
//! DIR/include/quaject/*.h                                  from crates/*/include
//! DIR/lib/libquaject-ac.a, DIR/lib/pkgconfig/quaject-ac.pc
//! DIR/lib/libquaject-{filter,pipe}.{a,so}, DIR/lib/pkgconfig/quaject-{filter,pipe}.pc
//! DIR/share/man/man1/*.1                                   written by `qj` itself
//! DIR/share/bash-completion/completions/qj                 likewise, and for fish and zsh
//! DIR/share/quaject/examples, DIR/share/quaject/editors
//! DIR/share/quaject/gdb/quaject-ac.py                      lists tasks in the debugger
//! DIR/share/doc/quaject/{README.md,CHANGELOG.md,LICENSE-*}
//! ```

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::run::{Failure, cargo, output_of, root, succeed};

/// Shells `qj completions SHELL` knows, and where each looks.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "share/bash-completion/completions/qj"),
    ("fish", "share/fish/vendor_completions.d/qj.fish"),
    ("zsh", "share/zsh/site-functions/_qj"),
];

/// Folders of the repository that are installed whole.
const FOLDERS: &[(&str, &str)] = &[
    ("examples", "share/quaject/examples"),
    ("editors", "share/quaject/editors"),
    ("crates/ac/examples/c", "share/quaject/examples/ac"),
    ("crates/ac/gdb", "share/quaject/gdb"),
];

/// A library written in Rust that C programs link with.
struct RustLibrary {
    /// That of its crate without `quaject-`.
    name: &'static str,
    description: &'static str,
}

const RUST_LIBRARIES: &[RustLibrary] = &[
    RustLibrary { name: "filter", description: "Packet filters by the thousand, merged into one classifier" },
    RustLibrary { name: "pipe", description: "Copy, checksum and other steps, composed into one pass over memory" },
];

const DOCUMENTS: &[&str] = &["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Builds and installs; says what went where.
pub(crate) fn run(prefix: &Path) -> Result<(), Failure> {
    succeed(&mut cargo(&["build", "--release", "--package", "quaject-cli"]))?;
    let built = target_folder().join("release/qj");
    let command = prefix.join("bin/qj");
    copy(&built, &command)?;

    write(&prefix.join("share/man/man1/qj.1"), &output_of(Command::new(&command).arg("man"))?)?;
    for (shell, place) in COMPLETIONS {
        write(&prefix.join(place), &output_of(Command::new(&command).args(["completions", shell]))?)?;
    }
    install_headers(prefix)?;
    install_library(prefix)?;
    for library in RUST_LIBRARIES {
        install_rust_library(prefix, library)?;
    }
    for (folder, place) in FOLDERS {
        if root().join(folder).is_dir() {
            copy_folder(&root().join(folder), &prefix.join(place))?;
        }
    }
    for document in DOCUMENTS {
        copy(&root().join(document), &prefix.join("share/doc/quaject").join(document))?;
    }
    println!("installed qj below {}", prefix.display());
    Ok(())
}

/// The C headers of every crate.
fn install_headers(prefix: &Path) -> Result<(), Failure> {
    for headers in entries(&root().join("crates"))?.iter().map(|folder| folder.join("include")) {
        if headers.is_dir() {
            copy_folder(&headers, &prefix.join("include"))?;
        }
    }
    Ok(())
}

/// The C library of Asynchronous C.
fn install_library(prefix: &Path) -> Result<(), Failure> {
    let arguments = ["build", "--release", "--package", "quaject-ac", "--message-format", "json-render-diagnostics"];
    let messages = String::from_utf8_lossy(&output_of(&mut cargo(&arguments))?).into_owned();
    // Cargo says where a build script wrote; the paths it prints need no unescaping on Unix.
    let folder = messages
        .lines()
        .filter(|line| line.contains("\"reason\":\"build-script-executed\"") && line.contains("quaject-ac"))
        .find_map(|line| line.split_once("\"out_dir\":\"")?.1.split_once('"'))
        .map(|(folder, _)| PathBuf::from(folder))
        .ok_or_else(|| Failure("cargo does not say where it built libquaject-ac.a".into()))?;
    copy(&folder.join("libquaject-ac.a"), &prefix.join("lib/libquaject-ac.a"))?;
    let libraries = "-lquaject-ac -pthread -ldl";
    describe(prefix, "quaject-ac", "Asynchronous C: blocks of tasks with lazily owned stacks", libraries, "")
}

/// A static and a shared library with the functions of a crate's feature `c`.
fn install_rust_library(prefix: &Path, library: &RustLibrary) -> Result<(), Failure> {
    let RustLibrary { name, description } = library;
    let package = format!("quaject-{name}");
    let kinds = ["--lib", "--crate-type", "staticlib,cdylib", "--features", "c"];
    let mut build = cargo(&["rustc", "--release", "--package", &package, "--message-format"]);
    build.arg("json-render-diagnostics").args(kinds);
    // The name by which programs ask for it: that of the file they were linked with.
    build.args(["--", "-C", &format!("link-arg=-Wl,-soname,lib{package}.so")]);
    let messages = String::from_utf8_lossy(&output_of(&mut build)?).into_owned();
    for ending in ["a", "so"] {
        let file = format!("libquaject_{name}.{ending}");
        let built = messages.split('"').find(|word| word.ends_with(&file));
        let built = built.ok_or_else(|| Failure(format!("cargo does not say where it built {file}")))?;
        copy(Path::new(built), &prefix.join("lib").join(format!("lib{package}.{ending}")))?;
    }
    describe(prefix, &package, description, &format!("-l{package}"), "-lgcc_s -lpthread -lm -ldl")
}

/// The file by which pkg-config finds a library, and what else to link with where it is linked statically.
fn describe(prefix: &Path, name: &str, description: &str, libraries: &str, private: &str) -> Result<(), Failure> {
    let prefix_path = std::path::absolute(prefix).map_err(|error| failure("find", prefix, &error))?;
    let private = if private.is_empty() { String::new() } else { format!("Libs.private: {private}\n") };
    let text = format!(
        "prefix={}\n\
         includedir=${{prefix}}/include\n\
         libdir=${{prefix}}/lib\n\n\
         Name: {name}\n\
         Description: {description}\n\
         Version: {}\n\
         Cflags: -I\"${{includedir}}\"\n\
         Libs: -L\"${{libdir}}\" {libraries}\n\
         {private}",
        prefix_path.display(),
        env!("CARGO_PKG_VERSION"),
    );
    write(&prefix.join(format!("lib/pkgconfig/{name}.pc")), text.as_bytes())
}

fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = fs::read_dir(folder).map_err(|error| failure("read", folder, &error))?;
    let paths: Result<Vec<PathBuf>, _> = entries.map(|entry| entry.map(|entry| entry.path())).collect();
    let mut paths = paths.map_err(|error| failure("read", folder, &error))?;
    paths.sort();
    Ok(paths)
}

fn copy_folder(from: &Path, to: &Path) -> Result<(), Failure> {
    for entry in entries(from)? {
        let name = entry.file_name().expect("entries of a folder have names");
        if entry.is_dir() {
            copy_folder(&entry, &to.join(name))?;
        } else {
            copy(&entry, &to.join(name))?;
        }
    }
    Ok(())
}

/// Copies beside the target first and renames: a running `qj` keeps its file, and nobody sees half of one.
fn copy(from: &Path, to: &Path) -> Result<(), Failure> {
    make_room(to)?;
    let beside = beside(to);
    fs::copy(from, &beside).map_err(|error| failure("copy", from, &error))?;
    fs::rename(&beside, to).map_err(|error| failure("write", to, &error))
}

fn write(to: &Path, bytes: &[u8]) -> Result<(), Failure> {
    make_room(to)?;
    let beside = beside(to);
    fs::write(&beside, bytes).map_err(|error| failure("write", &beside, &error))?;
    fs::rename(&beside, to).map_err(|error| failure("write", to, &error))
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.file_name().expect("installed files have names").to_owned();
    name.push(".new");
    path.with_file_name(name)
}

fn make_room(path: &Path) -> Result<(), Failure> {
    let folder = path.parent().expect("installed files lie in folders");
    fs::create_dir_all(folder).map_err(|error| failure("create", folder, &error))
}

fn failure(verb: &str, path: &Path, error: &std::io::Error) -> Failure {
    Failure(format!("cannot {verb} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quaject_test_support::{quick_run, tool};

    /// Compiler, its language, what it is given beside what pkg-config says, the program, what the program prints.
    const PROGRAMS: &[(&str, &str, &[&str], &str, &str)] = &[
        ("gcc", "c", &["-std=c11"], STRAIGHT, "12 both\n"),
        ("clang", "c", &["-std=c11"], STRAIGHT, "12 both\n"),
        ("g++", "cpp", &["-std=c++17"], LAMBDAS, "45\n"),
        ("clang++", "cpp", &["-std=c++17"], LAMBDAS, "45\n"),
        ("gcc", "c", &["-std=gnu11"], PAPER, "Got here.\nGot here too.\n"),
        ("clang", "c", &["-std=gnu11", "-fblocks"], PAPER, "Got here.\nGot here too.\n"),
    ];

    const STRAIGHT: &str = r#"
        #include <quaject/ac/io.h>
        #include <quaject/ac/ipc.h>
        #include <stdio.h>
        static void count(int value) { qj_ac_yield(), printf("%d", value), fflush(stdout); }
        int main(void) {
            DO_FINISH({ ASYNC_CALL(count, 1); ASYNC_CALL(count, 2); });
            printf(" both\n");
            return 0;
        }"#;

    const LAMBDAS: &str = r#"
        #include <quaject/ac.h>
        #include <cstdio>
        int main() {
            int sum = 0, *to = &sum;
            DO_FINISH({
                for (int i = 0; i < 10; i++) ASYNC({ qj_ac_yield(); *to += i; });
            });
            std::printf("%d\n", sum);
        }"#;

    /// Figure 1 of the paper.
    const PAPER: &str = r#"
        #include <quaject/thc.h>
        #include <stdio.h>
        static void do_something(void) { THCYield(); printf("Got here too.\n"); }
        static void do_something_else(void) { printf("Got here.\n"); }
        int main(void) {
            thc_init();
            DO_FINISH({ ASYNC(do_something();); ASYNC(do_something_else();); });
            thc_done();
            return 0;
        }"#;

    /// What a user does after `cargo xtask install`: asks pkg-config, compiles, runs; with every compiler and language.
    #[test]
    fn pkg_config_finds_the_library() {
        if quick_run("a program built against an installed library") || tool(&["pkg-config"]).is_none() {
            return;
        }
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        // A prefix with a blank in it: pkg-config quotes it, and the shell below must understand.
        let prefix = folder.path().join("a prefix");
        install_headers(&prefix).and_then(|()| install_library(&prefix)).unwrap_or_else(|error| panic!("{}", error.0));
        for (index, (compiler, ending, flags, program, expected)) in PROGRAMS.iter().enumerate() {
            if tool(&[compiler]).is_none() {
                continue;
            }
            let source = folder.path().join(format!("{index}.{ending}"));
            fs::write(&source, program).expect("the folder is ours");
            let output = built(&prefix, folder.path(), compiler, flags, &source, &index.to_string());
            assert_eq!(output, *expected, "{compiler} {flags:?}");
        }
        // The servers, by the line at their top.
        for server in ["echo", "httpd"] {
            let source = root().join("crates/ac/examples/c").join(server).with_extension("c");
            built(&prefix, folder.path(), "cc", &["-O2"], &source, server);
        }
    }

    /// The same for libraries written in Rust, found when the program starts, and inside the program.
    #[test]
    fn pkg_config_finds_the_libraries_written_in_rust() {
        if quick_run("filters and pipes in C against installed libraries") || tool(&["pkg-config"]).is_none() {
            return;
        }
        let Some(compiler) = tool(&["gcc"]) else { return };
        let folder = tempfile::tempdir().expect("there is room for temporary files");
        let prefix = folder.path().join("prefix");
        install_headers(&prefix).unwrap_or_else(|error| panic!("{}", error.0));
        for library in RUST_LIBRARIES {
            install_rust_library(&prefix, library).unwrap_or_else(|error| panic!("{}", error.0));
            let RustLibrary { name, .. } = library;
            let source = root().join(format!("crates/{name}/tests/c/{name}.c"));
            let found = format!("$(pkg-config --libs quaject-{name})");
            for (kind, libraries) in [
                ("shared", found.clone()),
                ("static", format!("-Wl,-Bstatic {found} -Wl,-Bdynamic -lgcc_s -lpthread -lm -ldl")),
            ] {
                let command = format!(
                    "{compiler} -D_GNU_SOURCE $(pkg-config --cflags quaject-{name}) \"$SOURCE\" {libraries} -pthread \
                     -o {kind} && ./{kind}"
                );
                let result = Command::new("sh")
                    .args(["-c", &command])
                    .current_dir(folder.path())
                    .env("SOURCE", &source)
                    .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
                    .env("LD_LIBRARY_PATH", prefix.join("lib"))
                    .output()
                    .expect("sh starts");
                let said = String::from_utf8_lossy(&result.stderr);
                assert_eq!(String::from_utf8_lossy(&result.stdout), "ok\n", "{name}, {kind}: {said}");
            }
        }
    }

    /// Compiles as a user would, runs it without arguments when it is ours, and returns what it prints.
    fn built(prefix: &Path, folder: &Path, compiler: &str, flags: &[&str], source: &Path, name: &str) -> String {
        let command = format!(
            "eval {compiler} {} -Wall -Wextra -Werror '\"$SOURCE\"' \"$(pkg-config --cflags --libs quaject-ac)\" -o {name}",
            flags.join(" ")
        );
        let result = Command::new("sh")
            .args(["-c", &command])
            .current_dir(folder)
            .env("SOURCE", source)
            .env("PKG_CONFIG_PATH", prefix.join("lib/pkgconfig"))
            .output()
            .expect("sh starts");
        assert!(result.status.success(), "{command}\n{}", String::from_utf8_lossy(&result.stderr));
        if source.starts_with(root()) {
            return String::new();
        }
        let output = Command::new(folder.join(name)).output().expect("what was linked starts");
        assert!(output.status.success(), "{command}: {}", output.status);
        String::from_utf8(output.stdout).expect("the programs print ASCII")
    }
}
