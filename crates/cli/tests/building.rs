//! `qj build` as a step of another build: files that stay the same keep their times, dependency files say what was
//! read, stamps say when.

mod support;

use quaject_test_support::tool;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, SystemTime};
use support::Folder;

const PROGRAM: &str = "channel c: int external in;\nprocess p { out(c, 1); } // one\n";

/// A time long ago, which no file gets by being written.
fn long_ago() -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000)
}

fn age(path: &Path) {
    File::options().append(true).open(path).and_then(|file| file.set_modified(long_ago())).expect("the folder is ours");
}

/// Whether a file has been written since it was aged.
fn is_written(path: &Path) -> bool {
    path.metadata().and_then(|data| data.modified()).expect("the file exists") != long_ago()
}

/// Output forms, the options that select them, and the files that each writes.
const FORMS: &[(&str, &[&str])] = &[
    ("--emit c -o gen", &["gen/a.c", "gen/a.h", "gen/quaject/esp.h"]),
    ("--emit arduino -o lib", &["lib/src/a.c", "lib/src/a.h", "lib/src/quaject/esp.h", "lib/library.properties"]),
    ("--emit ir -o a.ir", &["a.ir"]),
    ("--emit promela -o a.pml", &["a.pml"]),
    ("--emit exe -o a", &["a"]),
];

#[test]
fn a_file_that_would_be_the_same_is_not_touched() {
    for (form, outputs) in FORMS {
        let folder = Folder::with(&[("a.esp", PROGRAM)]);
        let build = || folder.qj(&format!("build a.esp {form}")).assert().success();
        build();
        outputs.iter().for_each(|output| age(&folder.path(output)));
        build();
        fs::write(folder.path("a.esp"), PROGRAM.replace("// one", "// a comment")).expect("the folder is ours");
        build();
        let written: Vec<&&str> = outputs.iter().filter(|output| is_written(&folder.path(output))).collect();
        assert!(written.is_empty(), "{form}: {written:?}");
        fs::write(folder.path("a.esp"), PROGRAM.replace("out(c, 1);", "out(c, 2); out(c, 3);"))
            .expect("the folder is ours");
        build();
        let written: Vec<&&str> = outputs.iter().filter(|output| is_written(&folder.path(output))).collect();
        assert_eq!(written, [&outputs[0]], "{form}: another program");
    }
}

/// Content that is only as long, a file that cannot be compared, permissions that differ.
#[cfg(unix)]
#[test]
fn a_file_that_is_not_the_same_is_replaced() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = Folder::with(&[("a.esp", PROGRAM)]);
    folder.qj("build a.esp --emit ir -o a.ir").assert().success();
    let text = fs::read(folder.path("a.ir")).expect("it was written");
    fs::write(folder.path("a.ir"), vec![b' '; text.len()]).expect("the folder is ours");
    folder.qj("build a.esp --emit ir -o a.ir").assert().success();
    assert_eq!(fs::read(folder.path("a.ir")).expect("it was written"), text);

    fs::create_dir(folder.path("d")).expect("the folder is ours");
    symlink("none/x", folder.path("dangling")).expect("the folder is ours");
    for (output, cause) in [("d", "it is a directory"), ("none/x", "no such file or directory")] {
        let error = format!("error[H0201]: cannot write `{output}`: {cause}\n");
        folder.qj(&format!("build a.esp --emit ir -o {output}")).assert().code(1).stderr_eq(error);
    }
    folder.qj("build a.esp --emit ir -o dangling").assert().success();
    assert_eq!(fs::read(folder.path("dangling")).expect("it was written"), text);

    folder.qj("build a.esp --emit exe -o a").assert().success();
    let mode = || folder.path("a").metadata().expect("it was built").permissions().mode() & 0o777;
    let built = mode();
    assert_eq!(built & 0o100, 0o100, "an executable can be executed");
    fs::set_permissions(folder.path("a"), fs::Permissions::from_mode(0o644)).expect("the file is ours");
    folder.qj("build a.esp --emit exe -o a").assert().success();
    assert_eq!(mode(), built, "an executable that was none");
}

/// A program whose files have names that Make could misread; the last of them is imported by the one before.
const NAMES: [&str; 6] = ["a.esp", "with blank.esp", "hash#.esp", "dollar$(x).esp", "part/colon:.esp", "part/end.esp"];

fn program_of_parts() -> Folder {
    let imports: String = NAMES[1..5].iter().map(|name| format!("import \"{name}\";\n")).collect();
    let folder = Folder::with(&[("a.esp", &format!("{imports}{PROGRAM}"))]);
    fs::create_dir(folder.path("part")).expect("the folder is ours");
    for name in &NAMES[1..] {
        let import = if *name == "part/colon:.esp" { "import \"../part/end.esp\";\n" } else { "" };
        fs::write(folder.path(name), import).expect("the folder is ours");
    }
    folder
}

#[test]
fn a_dependency_file_names_what_was_read_by_its_first_output_stamp_or_given_target() {
    let folder = program_of_parts();
    let parts = " \\\n  a.esp \\\n  with\\ blank.esp \\\n  hash\\#.esp \\\n  dollar$$(x).esp \\\n  part/colon\\:.esp \\\n  part/end.esp\n\n\
                 with\\ blank.esp:\n\nhash\\#.esp:\n\ndollar$$(x).esp:\n\npart/colon\\:.esp:\n\npart/end.esp:\n";
    for (options, target) in [
        ("--emit c -o gen", "gen/a.c"),
        ("--emit c", "./a.c"),
        ("--emit exe", "a"),
        ("--emit ir -o a.ir", "a.ir"),
        ("--emit promela -o a.pml", "a.pml"),
        ("--emit ir -o a.ir --stamp stamp", "stamp"),
        ("--emit ir --depfile-target x:y", "x\\:y"),
        ("--emit ir --stamp stamp --depfile-target x --depfile-target y", "x y"),
    ] {
        folder.qj(&format!("build a.esp {options} --depfile a.d")).assert().success();
        let rule = fs::read_to_string(folder.path("a.d")).expect("it was written");
        assert_eq!(rule, format!("{target}:{parts}"), "{options}");
    }
    let program = "import \"std:checksum\";\nchannel c: int external in;\nprocess p { out(c, 1); }\n";
    fs::write(folder.path("a.esp"), program).expect("the folder is ours");
    folder.qj("build a.esp --emit ir -o a.ir --depfile a.d").assert().success();
    let rule = fs::read_to_string(folder.path("a.d")).expect("it was written");
    assert_eq!(rule, "a.ir: \\\n  a.esp\n", "a standard module is no file");
}

#[test]
fn a_part_depends_on_its_program_and_an_executable_on_its_c() {
    let folder = Folder::with(&[
        ("a.esp", "import \"b.esp\";\nchannel c: int external in;\nprocess p { out(c, f(1)); }\n"),
        ("b.esp", "part of \"a.esp\";\nextern fn f(v: int) -> int;\n"),
        ("f.c", "#include \"f.h\"\n#include <stdint.h>\nint32_t f(int32_t v) { return v + F; }\n"),
        ("f.h", "#define F 2\n"),
    ]);
    folder.qj("build b.esp --emit exe -o a --extern f.c --depfile a.d").assert().success();
    let rule = fs::read_to_string(folder.path("a.d")).expect("it was written");
    let files = rule.lines().take_while(|line| !line.is_empty()).skip(1);
    let mut files: Vec<&str> = files.map(|line| line.trim().trim_end_matches(" \\")).collect();
    files.sort_unstable();
    assert_eq!(files, ["a.esp", "b.esp", "f.c", "f.h"], "{rule}");
}

#[test]
fn a_dependency_file_or_stamp_is_refused_where_it_destroys_or_says_nothing() {
    let folder = program_of_parts();
    for (options, code, error) in [
        (
            "--emit ir --depfile a.d",
            2,
            "error[H0106]: `--depfile` needs a target: the output has no name\nhelp: [..]\n",
        ),
        ("--emit ir -o x --depfile a.esp", 2, "error[H0105]: `a.esp` is the program[..]\n..."),
        ("--emit ir -o x --stamp ./part/end.esp", 2, "error[H0105]: `./part/end.esp` is part of the program[..]\n..."),
        ("--emit ir --depfile-target x", 2, "error[H0101]: [..]\n..."),
        ("--emit ir -o x --stamp none/s", 1, "error[H0201]: cannot write `none/s`: no such file or directory\n"),
    ] {
        folder.qj(&format!("build a.esp {options}")).assert().code(code).stderr_eq(error);
    }
    assert_eq!(fs::read_to_string(folder.path("part/end.esp")).expect("it is there"), "");
    // After an error there is no stamp.
    fs::write(folder.path("part/end.esp"), "process {").expect("the folder is ours");
    folder.qj("build a.esp --emit ir -o x --stamp stamp").assert().code(1);
    assert!(!folder.path("stamp").exists());
}

/// A build of a program of parts by Make or Ninja, with the rules in the file `name`. `qj` and what stands for the
/// compiler of C print a line each.
fn rebuilds(tool: &str, name: &str, rules: &str) {
    let folder = program_of_parts();
    fs::write(folder.path(name), rules).expect("the folder is ours");
    let build = || {
        // Times of files are those of a coarse clock.
        std::thread::sleep(Duration::from_millis(20));
        let mut command = Command::new(tool);
        command.current_dir(folder.path("")).env("QJ", snapbox::cmd::cargo_bin!("qj"));
        let output = command.output().expect("the tool starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{tool}: {text}{}", String::from_utf8_lossy(&output.stderr));
        let runs = |command: &str| text.lines().filter(|line| *line == format!("{command} has run")).count();
        (runs("qj"), runs("cc"))
    };
    assert_eq!([build(), build()], [(1, 1), (0, 0)], "{tool}: built once");
    for name in NAMES {
        let text = fs::read_to_string(folder.path(name)).expect("it is there");
        fs::write(folder.path(name), text + "// a comment").expect("the folder is ours");
        assert_eq!([build(), build()], [(1, 0), (0, 0)], "{tool}: a comment in {name}");
    }
    let program = fs::read_to_string(folder.path("a.esp")).expect("it is there").replace("c, 1", "c, 2");
    fs::write(folder.path("a.esp"), program).expect("the folder is ours");
    assert_eq!([build(), build()], [(1, 1), (0, 0)], "{tool}: another program");
    // The last import disappears with its file. The C lists the files.
    fs::remove_file(folder.path("part/end.esp")).expect("it is there");
    fs::write(folder.path("part/colon:.esp"), "").expect("the folder is ours");
    assert_eq!([build(), build()], [(1, 1), (0, 0)], "{tool}: an import was removed");
}

#[test]
fn make_and_ninja_build_again_what_has_changed() {
    if let Some(make) = tool(&["make"]) {
        let rules = "a.o: gen/a.c\n\t@touch $@ && echo cc has run\n\
                     gen/a.stamp: a.esp\n\t@$(QJ) build a.esp --emit c -o gen --depfile gen/a.d --stamp $@\n\
                     \t@echo qj has run\ngen/a.c: gen/a.stamp ;\n-include gen/a.d\n";
        rebuilds(make, "Makefile", rules);
    }
    if let Some(ninja) = tool(&["ninja"]) {
        let rules = "rule qj\n  command = $$QJ build $in --emit c -o gen --depfile $out.d && echo qj has run\n  \
                     depfile = $out.d\n  restat = 1\n\
                     rule cc\n  command = touch $out && echo cc has run\n\
                     build gen/a.c: qj a.esp\nbuild a.o: cc gen/a.c\n";
        rebuilds(ninja, "build.ninja", rules);
    }
}

/// What the author of a library for Arduino has changed stays; the C does not.
#[test]
fn the_sketch_of_a_library_is_written_once() {
    let folder = Folder::with(&[("a.esp", PROGRAM)]);
    let build = || folder.qj("build a.esp --emit arduino --prefix own -o lib").assert().success();
    build();
    let (sketch, source) = (folder.path("lib/examples/a/a.ino"), folder.path("lib/src/a.c"));
    let text = fs::read_to_string(&sketch).expect("it was written");
    assert!(text.contains("own_step(&program, &in, &out, now())"), "{text}");
    for path in [&sketch, &source, &folder.path("lib/library.properties")] {
        fs::write(path, "mine").expect("the folder is ours");
    }
    build();
    assert_eq!(fs::read_to_string(&sketch).expect("it was written"), "mine");
    assert_eq!(fs::read_to_string(folder.path("lib/library.properties")).expect("it was written"), "mine");
    assert_ne!(fs::read_to_string(&source).expect("it was written"), "mine");
    let error = "error[H0103]: a library for Arduino has no style `sans-io`[..]\n...";
    folder.qj("build a.esp --emit arduino --style sans-io -o lib").assert().code(2).stderr_eq(error);
}
