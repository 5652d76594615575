//! Programs built against an installation, as its users build theirs.

use std::fs;
use std::path::Path;
use std::process::Command;

use quaject_test_support::qj::qj_binary;
use quaject_test_support::{quick_run, tool};

use super::Layout;
use super::libraries::{self, LIBRARIES, Library};
use crate::run::root;

/// Compiler, language, arguments in addition to those of pkg-config, program, expected output.
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
    let layout = Layout::new(&prefix, None, None).expect("the prefix is absolute");
    libraries::install_headers(&layout).unwrap_or_else(|error| panic!("{}", error.0));
    libraries::install_library(&layout, library("ac")).unwrap_or_else(|error| panic!("{}", error.0));
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

fn library(name: &str) -> &'static Library {
    LIBRARIES.iter().find(|library| library.name == name).expect("the tests name libraries that exist")
}

/// The libraries of Rust and a program in C that uses each and prints `ok`.
const RUST_LIBRARIES: [(&str, &str); 3] = [
    ("filter", "crates/filter/tests/c/filter.c"),
    ("pipe", "crates/pipe/tests/c/pipe.c"),
    ("vcode-layers", "crates/vcode/tests/c/layers/use.c"),
];

/// Every library from a package that was staged with DESTDIR, in a library folder as Debian's: by pkg-config, shared
/// and `-static`, and by CMake.
#[test]
fn staged_libraries_are_found_by_pkg_config_and_cmake() {
    if quick_run("programs in C against installed libraries") || tool(&["pkg-config"]).is_none() {
        return;
    }
    let (Some(compiler), Some(cmake)) = (tool(&["gcc"]), tool(&["cmake"])) else { return };
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    // The package is staged below DESTDIR and used at its prefix, which is a link to where it was staged.
    let (prefix, destdir) = (folder.path().join("prefix"), folder.path().join("stage"));
    let libdir = Path::new("lib/machine");
    let layout = Layout::new(&prefix, Some(libdir), Some(&destdir)).expect("the prefix is absolute");
    libraries::install(&layout).unwrap_or_else(|error| panic!("{}", error.0));
    assert!(!prefix.exists(), "nothing is written outside of DESTDIR");
    std::os::unix::fs::symlink(layout.staged(""), &prefix).expect("the folder is ours");

    let libraries = prefix.join(libdir);
    let shell = |command: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-c", command]).current_dir(folder.path());
        shell.env("PKG_CONFIG_PATH", libraries.join("pkgconfig")).env("LD_LIBRARY_PATH", &libraries);
        let result = shell.output().expect("sh starts");
        assert!(result.status.success(), "{command}\n{}", String::from_utf8_lossy(&result.stderr));
        String::from_utf8_lossy(&result.stdout).into_owned()
    };
    for (name, source) in RUST_LIBRARIES {
        let source = root().join(source);
        for (form, link) in [("shared", "--libs"), ("static", "-static --libs --static")] {
            let (static_link, options) = link.strip_prefix("-static ").map_or(("", link), |rest| ("-static", rest));
            let output = shell(&format!(
                "{compiler} {static_link} -D_GNU_SOURCE '{}' $(pkg-config --cflags {options} quaject-{name}) -pthread \
                 -o {name}-{form} && ./{name}-{form}",
                source.display()
            ));
            assert_eq!(output, "ok\n", "{name}, {form}");
        }
        let version = env!("CARGO_PKG_VERSION").rsplit_once('.').expect("a version has three parts").0;
        let needed = shell(&format!("objdump -p {name}-shared | grep NEEDED"));
        assert!(needed.contains(&format!("libquaject-{name}.so.{version}\n")), "{needed}");
    }
    for name in LIBRARIES.iter().map(|library| library.name) {
        shell(&format!("pkg-config --exists --print-errors 'quaject-{name} = {}'", env!("CARGO_PKG_VERSION")));
    }
    // The prefix is not there: CMake finds the files where they are, as in a package that was unpacked elsewhere.
    fs::remove_file(&prefix).expect("the folder is ours");
    builds_with_cmake(folder.path(), cmake, &layout.staged_library("cmake/quaject"), &shell);
}

/// One executable per library and form, by `find_package`.
fn builds_with_cmake(folder: &Path, cmake: &str, config: &Path, shell: &dyn Fn(&str) -> String) {
    let mut project =
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(quaject 0.1 REQUIRED)\n".to_owned();
    let headers = [("ac", "ac.h"), ("esp", "esp.h"), ("filter", "filter.h"), ("pipe", "pipe.h")];
    let more = [("queue", "ring.h"), ("tickc", "tickc.h"), ("vcode", "vcode.h"), ("vcode-layers", "vcode-layers.h")];
    for (name, header) in headers.into_iter().chain(more) {
        let text = format!("#define _GNU_SOURCE\n#include <quaject/{header}>\nint main(void) {{ return 0; }}\n");
        fs::write(folder.join(format!("use-{name}.c")), text).expect("the folder is ours");
        project +=
            &format!("add_executable(use-{name} use-{name}.c)\ntarget_link_libraries(use-{name} quaject::{name})\n");
    }
    for (name, source) in RUST_LIBRARIES {
        let source = root().join(source);
        project += &format!(
            "add_executable(use-{name}-static \"{}\")\ntarget_compile_definitions(use-{name}-static PRIVATE _GNU_SOURCE)\n\
             target_link_libraries(use-{name}-static quaject::{name}-static)\n",
            source.display()
        );
    }
    fs::write(folder.join("CMakeLists.txt"), project).expect("the folder is ours");
    shell(&format!("'{cmake}' -S . -B build -Dquaject_DIR='{}'", config.display()));
    shell(&format!("'{cmake}' --build build && for program in build/use-*; do ./$program || exit; done"));
    let other =
        fs::read_to_string(folder.join("CMakeLists.txt")).expect("just written").replace("quaject 0.1", "quaject 0.2");
    fs::create_dir_all(folder.join("other")).expect("the folder is ours");
    fs::write(folder.join("other/CMakeLists.txt"), other).expect("the folder is ours");
    shell(&format!("! '{cmake}' -S other -B other-build -Dquaject_DIR='{}'", config.display()));
}

/// A program in ESP with an import, in a project of C.
const ESP_FILES: [(&str, &str); 5] = [
    ("count.esp", "import \"part.esp\";\nchannel c: int external in;\nprocess p { out(c, N); } // one\n"),
    ("part.esp", "const N = 1;\n"),
    ("main.c", "#include \"count.h\"\nint main(void) { return 0; }\n"),
    (
        "CMakeLists.txt",
        "cmake_minimum_required(VERSION 3.16)\nproject(user C)\nfind_package(Quaject 0.1 REQUIRED)\n\
         add_executable(main main.c)\nquaject_esp_add(main count.esp MODE process PREFIX count OPTIONS --checked)\n",
    ),
    (
        "Makefile",
        "include $(MAKEFILE)\nQJ_FLAGS_count = --mode process\nmain: main.o count.o\n\t$(CC) -o $@ $^\n\
         main.o: main.c generated/count.h\n\t$(CC) -Igenerated -c -o $@ $<\n\
         count.o: generated/count.c\n\t$(CC) -Igenerated -c -o $@ $<\n",
    ),
];

/// Builds in every order of edits: `build` returns what the tool prints. Counts the runs of `qj` and those of the
/// compiler on the generated C, by words of their lines.
fn rebuilds(folder: &Path, words: [&str; 2], build: &dyn Fn() -> String) {
    let runs = || {
        // Times of files are those of a coarse clock.
        std::thread::sleep(std::time::Duration::from_millis(20));
        let text = build();
        words.map(|word| text.lines().filter(|line| line.contains(word)).count())
    };
    let edit = |file: &str, from: &str, to: &str| {
        let text = fs::read_to_string(folder.join(file)).expect("it was written");
        assert!(text.contains(from), "{file}: {text}");
        fs::write(folder.join(file), text.replace(from, to)).expect("the folder is ours");
    };
    assert_eq!([runs(), runs()], [[1, 1], [0, 0]], "built once");
    edit("count.esp", "// one", "// a comment");
    assert_eq!([runs(), runs()], [[1, 0], [0, 0]], "a comment");
    edit("part.esp", "N = 1", "N = 2");
    assert_eq!([runs(), runs()], [[1, 1], [0, 0]], "an import");
    fs::remove_file(folder.join("part.esp")).expect("it was written");
    edit("count.esp", "import \"part.esp\";", "const N = 1;");
    assert_eq!(runs(), [1, 1], "an import was removed");
    // Makefiles that CMake has generated keep the removed file as a prerequisite, and run `qj` in each build.
    assert_eq!(runs()[1], 0, "an import was removed, once");
}

/// What a user of `find_package(Quaject)` and of `quaject.mk` sees, in folders and a prefix with blanks in their names.
#[test]
fn cmake_and_make_compile_esp_and_only_what_has_changed() {
    if quick_run("builds of ESP by CMake and Make") {
        return;
    }
    let (Some(cmake), Some(_), Some(make)) = (tool(&["cmake"]), tool(&["ninja"]), tool(&["make"])) else { return };
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let layout = Layout::new(&folder.path().join("a prefix"), None, None).expect("the prefix is absolute");
    libraries::install_library(&layout, library("esp")).unwrap_or_else(|error| panic!("{}", error.0));
    libraries::install_build_files(&layout).unwrap_or_else(|error| panic!("{}", error.0));
    let config = layout.staged_library("cmake/quaject");
    let run = |command: &mut Command| {
        let output = command.output().expect("the tool starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    let project = |name: &str| {
        let project = folder.path().join(name);
        fs::create_dir(&project).expect("the folder is ours");
        ESP_FILES.iter().for_each(|(file, text)| fs::write(project.join(file), text).expect("the folder is ours"));
        project
    };
    for (name, generator) in [("with ninja", "Ninja"), ("with make", "Unix Makefiles")] {
        let project = project(name);
        let mut configure = Command::new(cmake);
        configure.current_dir(&project).args(["-S", ".", "-B", "a build", "-G", generator]);
        configure.arg(format!("-DQuaject_DIR={}", config.display())).arg(format!("-DQUAJECT_QJ={}", qj_binary()));
        run(&mut configure);
        rebuilds(&project, ["Compiling count.esp to C", "count.c.o"], &|| {
            run(Command::new(cmake).current_dir(&project).args(["--build", "a build"]))
        });
    }
    // Make itself has no names with blanks in them.
    let project = project("make");
    fs::copy(layout.staged("share/quaject/quaject.mk"), project.join("quaject.mk")).expect("the folder is ours");
    rebuilds(&project, ["--emit c", "-o count.o"], &|| {
        let mut command = Command::new(make);
        run(command.current_dir(&project).args(["main", "MAKEFILE=quaject.mk", &format!("QJ={}", qj_binary())]))
    });
}

/// The query compiler in 'C, in a folder with a blank in its name, by its Makefile and by CMake.
#[test]
fn ticks_are_built_with_make_and_cmake() {
    if quick_run("builds of 'C by CMake and Make") || tool(&["pkg-config"]).is_none() {
        return;
    }
    let (Some(cmake), Some(make), Some(_)) = (tool(&["cmake"]), tool(&["make"]), tool(&["gcc"])) else { return };
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let layout = Layout::new(&folder.path().join("prefix"), None, None).expect("the prefix is absolute");
    libraries::install_headers(&layout).unwrap_or_else(|error| panic!("{}", error.0));
    libraries::install_library(&layout, library("tickc")).unwrap_or_else(|error| panic!("{}", error.0));
    libraries::install_build_files(&layout).unwrap_or_else(|error| panic!("{}", error.0));
    let project = folder.path().join("a project");
    super::files::copy_folder(&root().join("crates/tickc/examples/c"), &project)
        .unwrap_or_else(|error| panic!("{}", error.0));
    let run = |name: &str, arguments: &[&str]| {
        let mut command = Command::new(name);
        command.current_dir(&project).args(arguments).env("CC", "gcc");
        let output = command.env("PKG_CONFIG_PATH", layout.staged_library("pkgconfig")).output().expect("it starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name}: {text}{}", String::from_utf8_lossy(&output.stderr));
        text
    };
    let qj = format!("QJ={}", qj_binary());
    run(make, &[&qj]);
    assert_eq!(run("./query", &["city == 1 && age < 30"]), "25 900 1\n");
    assert!(run(make, &[&qj]).contains("up to date"));
    let (config, qj) = (layout.staged_library("cmake/quaject"), format!("-DQUAJECT_QJ={}", qj_binary()));
    run(cmake, &["-S", ".", "-B", "build", &qj, &format!("-DQuaject_DIR={}", config.display())]);
    run(cmake, &["--build", "build"]);
    assert_eq!(run("build/query", &["salary > 1000 || city == 1"]), "25 900 1\n31 2000 2\n52 3000 1\n");
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
