//! Commands without files work on the programs of `qj.toml`, with its options.

mod support;

use std::fs;
use support::Folder;

/// Two programs, a shared module in a folder of imports, C, and options.
const PROJECT: &str = "roots = [\"one.esp\", \"tools/two.esp\"]\nimport-folders = [\"lib\"]\nextern = [\"c/twice.c\"]\n\
                       [bind]\noneC = \"text:one.txt\"\ntwoC = \"text:two.txt\"\n\
                       [build]\nemit = \"c\"\nmode = \"process\"\noutput = \"gen\"\n";
const ONE: &str = "import \"shared.esp\";\nchannel oneC: int external in;\n\nprocess p { out(oneC, twice(N)); }\n";
const TWO: &str = "import \"shared.esp\";\nchannel twoC: int external in;\n\nprocess p { out(twoC, 2 * N + 1); }\n";
const SHARED: &str = "extern fn twice(v: int) -> int;\nconst N = 3;\n";
const TWICE: &str = "#include <stdint.h>\nint32_t twice(int32_t v) { return 2 * v; }\n";

fn project() -> Folder {
    let folder = Folder::with(&[("qj.toml", PROJECT), ("one.esp", ONE), ("one.oneC.out", "6\n")]);
    for (name, text) in [("lib/shared.esp", SHARED), ("tools/two.esp", TWO), ("c/twice.c", TWICE), ("sub/none", "")] {
        let path = folder.path(name);
        fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder is ours");
        fs::write(path, text).expect("the folder is ours");
    }
    folder
}

fn read(folder: &Folder, name: &str) -> String {
    fs::read_to_string(folder.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn every_command_works_on_every_program() {
    let folder = project();
    folder.qj("check").assert().success().stderr_eq("");
    folder.qj("verify").assert().success().stdout_eq("one.esp\n...\ntools/two.esp\n...\n");
    folder.qj("fmt --check").assert().success();
    folder.qj("test").assert().success().stdout_eq("ok      ./one.esp\n1 passed, 0 failed\n");
    folder.qj("build").assert().success();
    assert!(folder.path("gen/one.c").is_file() && folder.path("gen/two.h").is_file());
    folder.qj("run").assert().code(2).stderr_eq("error[H0106]: the project has several programs\nhelp: [..]\n");
    folder.qj("run --project . tools/two.esp").assert().success().stdout_eq("");
    assert_eq!(read(&folder, "two.txt"), "7\n");
    fs::write(folder.path("tools/two.esp"), format!("{TWO}process q {{ in(none, $x); }}\n")).expect("ours");
    for command in ["check", "build"] {
        folder.qj(command).assert().code(1).stderr_eq("error[E0208][..]\n --> tools/two.esp:5:16\n...\n");
    }
    folder.qj("verify").assert().code(2);
}

#[test]
fn a_project_is_found_upwards_and_through_a_link_and_its_paths_are_relative_to_it() {
    let folder = project();
    std::os::unix::fs::symlink("sub", folder.path("link")).expect("the folder is ours");
    for current in ["sub", "link"] {
        let qj = |arguments: &str| folder.qj(arguments).current_dir(folder.path(current));
        qj("check").assert().success();
        qj("test").assert().success().stdout_eq("ok      ../one.esp\n1 passed, 0 failed\n");
        qj("build --emit ir").assert().success();
        assert!(read(&folder, "gen/one.ir").contains("process"), "{current}");
        fs::remove_dir_all(folder.path("gen")).expect("it was built");
        qj("run --project .. ../one.esp").assert().success();
        assert_eq!(read(&folder, "one.txt"), "6\n");
    }
    let elsewhere = tempfile::tempdir().expect("a folder can be made");
    let blank = elsewhere.path().join("a folder");
    std::os::unix::fs::symlink(folder.path(""), &blank).expect("the folder is ours");
    folder.qj("check --project").arg(&blank).current_dir(elsewhere.path()).assert().success();
    folder
        .qj("check")
        .current_dir(elsewhere.path())
        .assert()
        .code(2)
        .stderr_eq("error[H0603]: no program[..]\nhelp: [..]\n");
    // A file that is named is not one of the project.
    folder.qj("check one.esp").assert().code(1).stderr_eq("error[E0209]: cannot read `shared.esp`[..]\n...\n");
    folder.qj("check -I lib one.esp").assert().success();
}

#[test]
fn the_command_line_replaces_options_of_the_project() {
    let folder = project();
    folder.qj("build --emit ir -o out").assert().success();
    assert!(folder.path("out/one.ir").is_file() && !folder.path("gen").exists());
    folder.qj("build --mode auto --report").assert().success().stdout_eq("...\nfairness\n...\n");
    folder.qj("build --project . one.esp --emit exe -o one --depfile one.d").assert().success();
    let rule = read(&folder, "one.d");
    for file in ["one.esp", "lib/shared.esp", "c/twice.c", "./qj.toml"] {
        assert!(rule.contains(&format!("  {file}")), "{file}: {rule}");
    }
    folder
        .qj("build --depfile all.d")
        .assert()
        .code(2)
        .stderr_eq("error[H0106]: `--depfile` is of one program[..]\n...");
    let text = PROJECT.replace("tools/two.esp", "tools/one.esp");
    fs::rename(folder.path("tools/two.esp"), folder.path("tools/one.esp")).expect("it is there");
    fs::write(folder.path("qj.toml"), text).expect("the folder is ours");
    folder
        .qj("build")
        .assert()
        .code(2)
        .stderr_eq("error[H0105]: the outputs of `one.esp` and `tools/one.esp`[..]\n...");
}

#[test]
fn fmt_formats_own_files_or_what_is_piped_to_it() {
    let folder = project();
    fs::write(folder.path("lib/shared.esp"), SHARED.replace("N = 3", "N=3")).expect("the folder is ours");
    folder.qj("fmt").stdin("const A=1;").assert().success().stdout_eq("const A = 1;\n");
    folder.qj("fmt --check").assert().code(1).stderr_eq("error[H0203]: `lib/shared.esp` is not formatted\n...\n");
    folder.qj("fmt").assert().success().stdout_eq("");
    assert_eq!(read(&folder, "lib/shared.esp"), SHARED);
}

#[test]
fn an_error_in_a_project_file_has_a_place_a_cause_and_a_way_out() {
    let cases = [
        (
            "rots = []\n",
            "error[H0602]: unknown key `rots`\n --> qj.toml:1:1\n...\n  = help: did you mean `roots`?\n...",
        ),
        (
            "roots = [\"a\"]\n[build]\nx = 1\n",
            "error[H0602]: unknown key `x`\n --> qj.toml:3:1\n...\n  = help: the keys here are `emit`[..]\n...",
        ),
        ("roots = []\n", "error[H0601]: `roots` names no program\n --> qj.toml:1:9\n..."),
        ("[build]\n", "error[H0601]: `roots` is missing\n..."),
        ("roots = \"a\"\n", "error[H0601]: invalid type: string \"a\", expected a sequence\n --> qj.toml:1:9\n..."),
        ("roots = [\"a\n", "error[H0601]: [..]\n --> qj.toml:1:[..]\n..."),
        (
            "roots = [\"a\"]\n[build]\nemit = \"d\"\n",
            "error[H0601]: `d` is none of `c`, `arduino`, `ir`, `exe`, `promela`\n --> qj.toml:3:8\n...",
        ),
        ("roots = [\"a\"]\n[bind]\nc = \"lin:0\"\n", "error[H0601]: there is no driver `lin`\n --> qj.toml:3:5\n..."),
    ];
    for (text, expected) in cases {
        let folder = Folder::with(&[("qj.toml", text)]);
        folder.qj("check").assert().code(1).stderr_eq(expected);
    }
    let folder = project();
    fs::write(folder.path("qj.toml"), PROJECT.replace("twoC =", "twoc =")).expect("the folder is ours");
    let expected = "error[H0601]: no program has an external channel `twoc`\n --> qj.toml:6:1\n...\n  = help: did you mean `twoC`?\n...";
    folder.qj("check").assert().code(1).stderr_eq(expected);
    folder.qj("explain H0602").assert().success().stdout_eq("# H0602: unknown key in a project file\n...\n");
}

#[test]
fn every_command_succeeds_on_a_new_project() {
    let folder = Folder::with(&[]);
    folder.qj("init new").assert().success();
    for command in ["check", "test", "verify", "fmt --check", "build", "build --emit exe"] {
        let output = folder.qj(command).current_dir(folder.path("new")).output().expect("qj runs");
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
    }
    assert!(folder.path("new/generated/new.c").is_file());
    folder.qj("run").current_dir(folder.path("new")).stdin("3\n").assert().success().stdout_eq("\"sum\" 3\n");
    fs::remove_file(folder.path("new/new.esp")).expect("it was made");
    folder.qj("init new").assert().code(2).stderr_eq("error[H0105]: `new/qj.toml` exists already\n...\n");
}
