//! The commands that read programs and do not run them; and their errors on other files.

mod support;

use snapbox::str;
use support::Folder;

const RIGHT: &str = "channel c: int external in;\nprocess p { out(c, 1); }\n";
const WRONG: &str = "channel c: int external in;\nprocess p { out(c, 1); out(d, 1); }\n";

#[test]
fn check_is_silent_about_a_right_program() {
    let folder = Folder::with(&[("a.esp", RIGHT)]);
    folder.qj("check a.esp").assert().success().stdout_eq("").stderr_eq("");
}

#[test]
fn check_reports_and_ends_with_1() {
    let folder = Folder::with(&[("a.esp", WRONG)]);
    folder.qj("check a.esp").assert().code(1).stdout_eq("").stderr_eq(str![[r#"
error[E0208]: no channel named `d`
 --> a.esp:2:28
  |
2 | process p { out(c, 1); out(d, 1); }
  |                            ^
...
1 error[..]; see `qj explain E0208`

"#]]);
}

#[test]
fn check_writes_one_json_object_per_message() {
    let folder = Folder::with(&[("a.esp", WRONG)]);
    let output = folder.qj("check --messages json a.esp").output().expect("qj runs");
    let text = String::from_utf8(output.stderr).expect("JSON is UTF-8");
    let first: serde_json::Value =
        serde_json::from_str(text.lines().next().expect("there is a message")).expect("each line is JSON");
    assert_eq!((&first["code"], &first["line"], &first["column"]), (&"E0208".into(), &2.into(), &28.into()));
}

#[test]
fn check_reads_several_programs_and_standard_input() {
    let folder = Folder::with(&[("a.esp", RIGHT), ("b.esp", WRONG)]);
    folder.qj("check a.esp b.esp").assert().code(1);
    folder.qj("check -").stdin(RIGHT).assert().success();
    folder.qj("check -").stdin(WRONG).assert().code(1).stderr_eq("...\n --> <stdin>:2:28\n...\n");
}

#[test]
fn imports_are_relative_to_their_file_and_read_once() {
    let folder = Folder::with(&[
        ("a.esp", "import \"part/b.esp\";\nimport \"c.esp\";\nprocess p { out(c, N); }\n"),
        ("c.esp", "channel c: int external in;\n"),
    ]);
    std::fs::create_dir(folder.path("part")).expect("a folder can be made");
    std::fs::write(folder.path("part/b.esp"), "import \"../c.esp\";\nconst N = 3;\n").expect("a file can be written");
    folder.qj("check a.esp").assert().success().stderr_eq("");
    folder.qj("check ./part/../a.esp").assert().success().stderr_eq("");
}

#[test]
fn other_files_are_refused_with_a_correction() {
    let folder = Folder::with(&[("a.esp", "import \"none.esp\";\n")]);
    std::fs::write(folder.path("latin1.esp"), b"// caf\xe9\n").expect("a file can be written");
    std::fs::create_dir(folder.path("folder.esp")).expect("a folder can be made");
    folder.qj("check none.esp").assert().code(1).stderr_eq(str![[r#"
error[H0201]: cannot read `none.esp`: no such file or directory
help: check the name and the folder you are in

"#]]);
    folder.qj("check folder.esp").assert().code(1).stderr_eq(str![[r#"
error[H0201]: cannot read `folder.esp`: it is a directory
help: name a file in it

"#]]);
    folder.qj("check latin1.esp").assert().code(1).stderr_eq("error[E0101]: byte 0xe9 is not UTF-8\n...\n");
    folder
        .qj("check a.esp")
        .assert()
        .code(1)
        .stderr_eq("error[E0209]: cannot read `none.esp`: no such file or directory\n...\n");
}

#[test]
fn wrong_usage_ends_with_2() {
    let folder = Folder::with(&[]);
    folder.qj("check").assert().code(2);
    folder.qj("chekc a.esp").assert().code(2).stderr_eq("...\n[..]'check'[..]\n...\n");
    folder.qj("explain E9999").assert().code(2).stderr_eq(str![[r#"
error[H0104]: there is no code `E9999`
help: `qj explain` lists all codes

"#]]);
}

/// Status 1 if a file is missing, a folder, or not writable, in every command; 2 where the command line is wrong.
#[test]
fn an_inaccessible_file_ends_every_command_with_1() {
    let folder =
        Folder::with(&[("a.esp", RIGHT), ("in.esp", "channel c: int external out;\nprocess p { in(c, _); }\n")]);
    std::fs::create_dir(folder.path("d")).expect("a folder can be made");
    for command in ["check", "run", "fmt", "graph", "replay", "build --emit ir", "build --emit c", "test"] {
        folder.qj(&format!("{command} none")).assert().code(1).stderr_eq(str![[r#"
error[H0201]: cannot read `none`: no such file or directory
...
"#]]);
    }
    for command in ["check", "run", "fmt", "graph", "replay", "build --emit ir"] {
        folder
            .qj(&format!("{command} d"))
            .assert()
            .code(1)
            .stderr_eq("error[H0201]: cannot read `d`: it is a directory\n...\n");
    }
    for (arguments, complaint) in [
        ("check a.esp --fast-paths none", "cannot read `none`: no such file or directory"),
        ("run a.esp --extern none", "cannot read `none`: no such file or directory"),
        ("run a.esp --extern d", "cannot read `d`: it is a directory"),
        ("run in.esp --bind c=text:none", "cannot read `none`: no such file or directory"),
        ("run in.esp --bind c=bytes:d", "cannot read `d`: it is a directory"),
        ("run in.esp --bind c=text:none --engine c", "cannot read `none`: no such file or directory"),
        ("run a.esp --bind c=text:none/out", "cannot write `none/out`: no such file or directory"),
        ("run a.esp --bind c=text:d", "cannot write `d`: it is a directory"),
        ("run a.esp --record none/x", "cannot write `none/x`: no such file or directory"),
        ("graph a.esp -o d", "cannot write `d`: it is a directory"),
        ("build a.esp --emit ir -o none/x", "cannot write `none/x`: no such file or directory"),
    ] {
        folder.qj(arguments).assert().code(1).stderr_eq(format!("error[H0[..]]: {complaint}\n...\n"));
    }
    for arguments in [
        "run a.esp --bind c",
        "run a.esp --bind none=text:-",
        "run a.esp --bind c=tap:0",
        "run a.esp --memory much",
        "run a.esp --engine c --seed 1",
        "run a.esp --engine none",
        "build a.esp --emit none",
        "test a.esp",
        "test d",
    ] {
        folder.qj(arguments).assert().code(2).stdout_eq("").stderr_eq("error[H0[..]]: [..]\n...\n");
    }
}

#[test]
fn no_output_overwrites_what_the_run_reads() {
    const COPY: &str = "channel i: int external out;\nchannel o: int external in;\n\
                        process p { while (true) { in(i, $v); out(o, v); } }\n";
    let folder = Folder::with(&[("copy.esp", COPY), ("in.txt", "1\n")]);
    std::fs::hard_link(folder.path("in.txt"), folder.path("same.txt")).expect("a name can be given");
    for (binding, complaint) in [
        ("o=text:copy.esp", "channel `o` would overwrite `copy.esp`, which is the program"),
        ("o=text:in.txt", "channel `o` would overwrite `in.txt`, which channel `i` reads"),
        ("o=bytes:./same.txt", "channel `o` would overwrite `./same.txt`, which channel `i` reads"),
    ] {
        folder
            .qj(&format!("run copy.esp --bind i=text:in.txt --bind {binding}"))
            .assert()
            .code(2)
            .stderr_eq(format!("error[H0402]: {complaint}\nhelp: bind it to another file with `--bind o=DRIVER`\n"));
    }
    assert_eq!(std::fs::read_to_string(folder.path("copy.esp")).expect("it is there"), COPY);
    assert_eq!(std::fs::read_to_string(folder.path("in.txt")).expect("it is there"), "1\n");
    folder.qj("run copy.esp --bind i=text:in.txt --bind o=text:/dev/null").assert().success().stdout_eq("");
}

#[test]
fn byte_order_marks_are_accepted_and_very_long_lines_are_shown_in_part() {
    const FIRST: &str = "channel i: int external out;\nprocess p { in(i, $v); in(i, $w); assert(v == w); }\n";
    let folder = Folder::with(&[("first.esp", FIRST), ("marked.txt", "\u{feff}7\n7\n")]);
    folder.qj("run first.esp --bind i=text:marked.txt").assert().success();
    std::fs::write(folder.path("endless.txt"), format!("7\n{}", " ".repeat(17 << 20))).expect("a file can be written");
    folder.qj("run first.esp --bind i=text:endless.txt").assert().code(3).stderr_eq(str![[r#"
error[H0406]: endless.txt:2:1: the line is longer than 16777216 bytes
help: end each message with a line end, or read the data with `bytes:`

"#]]);
}

#[test]
fn an_unknown_driver_is_an_error() {
    let folder = Folder::with(&[("a.esp", "channel c: int external in = \"x\";\nprocess p { out(c, 1); }\n")]);
    folder.qj("run a.esp").assert().code(1).stderr_eq("error[H0401]: channel `c`: there is no driver `x`\n...\n");
    folder.qj("run a.esp --bind c=text:-").assert().success().stdout_eq("1\n");
}

#[test]
fn explain_has_a_text_on_each_code_that_it_lists() {
    let folder = Folder::with(&[]);
    let list = folder.qj("explain").output().expect("qj runs");
    let list = String::from_utf8(list.stdout).expect("the list is text");
    assert!(list.lines().count() > 50, "{list}");
    folder.qj("explain e0405").assert().success().stdout_eq("...\n[..]channel[..]\n...\n");
}

#[test]
fn fmt_rewrites_in_place_or_through_a_pipe_and_only_complete_files() {
    let untidy = "channel c:int external in;process p{out(c,1);}";
    let tidy = "channel c: int external in;\nprocess p { out(c, 1); }\n";
    let folder = Folder::with(&[("a.esp", untidy), ("wrong.esp", "process {")]);
    folder.qj("fmt").stdin(untidy).assert().success().stdout_eq(tidy);
    let untidy = "error[H0203]: `a.esp` is not formatted\nhelp: run `qj fmt a.esp`\n";
    folder.qj("fmt --check a.esp").assert().code(1).stderr_eq(untidy);
    folder.qj("fmt a.esp").assert().success().stdout_eq("");
    assert_eq!(std::fs::read_to_string(folder.path("a.esp")).expect("the file is there"), tidy);
    folder.qj("fmt --check a.esp").assert().success();
    folder.qj("fmt wrong.esp").assert().code(1).stdout_eq("");
    assert_eq!(std::fs::read_to_string(folder.path("wrong.esp")).expect("the file is there"), "process {");
    let left = std::fs::read_dir(folder.path("")).expect("the folder is there").count();
    assert_eq!(left, 2, "no temporary file is left");
}

#[test]
fn a_chart_of_a_run_shows_its_messages_and_its_fault() {
    let program = "channel c(u8); channel totalC(u8) external in;
process p { out(c, 3); out(c, 4); }
process q { in(c, $x); out(totalC, x); in(c, $y); assert(y < 4); }
";
    let folder = Folder::with(&[("a.esp", program)]);
    folder.qj("run a.esp --chart a.svg").assert().code(3).stdout_eq("3\n");
    let picture = std::fs::read_to_string(folder.path("a.svg")).expect("the picture is there");
    for part in ["fill=\"#ffffff\"", ">c(3)<", ">totalC(3)<", ">c(4)<", ">environment<", "fault `assert` in `q`"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
    assert!(picture.find("c(3)") < picture.find("totalC(3)") && picture.find("totalC(3)") < picture.find("c(4)"));
    folder.qj("run a.esp --chart a.svg --engine c").assert().code(2).stderr_eq(str![[r#"
error[H0103]: `--chart` needs the interpreter
help: leave out `--engine c`: all engines have the same semantics

"#]]);
    folder.qj("run a.esp --chart a.esp").assert().code(2);
}

#[test]
fn pictures_of_large_programs_are_as_wide_as_a_page() {
    let stages = 12;
    let channels: String = (0..=stages).map(|at| format!("channel channel_number_{at}(u8);\n")).collect();
    let stage = |at| {
        format!(
            "process stage_{at} {{ while {{ in(channel_number_{at}, $x); out(channel_number_{}, x); }} }}\n",
            at + 1
        )
    };
    let stages: String = (0..stages).map(stage).collect();
    let ends = "process first { out(channel_number_0, 1); }\nprocess last { in(channel_number_12, _); }\n";
    let folder = Folder::with(&[("a.esp", &format!("{channels}{stages}{ends}"))]);
    folder.qj("graph a.esp -o a.svg").assert().success();
    let picture = std::fs::read_to_string(folder.path("a.svg")).expect("the picture is there");
    let width = picture.split("width=\"").nth(1).and_then(|rest| rest.split('"').next()?.parse::<u32>().ok());
    assert!(width.is_some_and(|width| width <= 1122), "{width:?}");
    // Each process once; a channel between two bands twice.
    assert_eq!(picture.matches("<title>process ").count(), 14);
    assert!(picture.contains(", drawn below<") || picture.contains(", drawn above<"), "{picture}");
}

#[test]
fn graph_draws_every_process_and_channel() {
    let folder = Folder::with(&[("a.esp", RIGHT)]);
    folder.qj("graph a.esp -o a.svg").assert().success().stdout_eq("");
    let picture = std::fs::read_to_string(folder.path("a.svg")).expect("the picture is there");
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"), "{picture}");
    for word in ["<title>process p</title>", "<title>channel c(int) external in</title>", "class=\"arrow\""] {
        assert!(picture.contains(word), "{word} is missing in {picture}");
    }
    folder.qj("graph a.esp").assert().success().stdout_eq(picture);
    folder.qj("graph a.esp -o none/a.svg").assert().code(1).stderr_eq(str![[r#"
error[H0201]: cannot write `none/a.svg`: no such file or directory

"#]]);
}

#[test]
fn a_closed_pipe_ends_qj_without_an_error() {
    let folder = Folder::with(&[]);
    let (reader, writer) = std::io::pipe().expect("a pipe can be made");
    drop(reader);
    let mut command = std::process::Command::new(snapbox::cmd::cargo_bin!("qj"));
    let child = command.current_dir(folder.path("")).arg("man").stdout(writer).stderr(std::process::Stdio::piped());
    let output = child.spawn().expect("qj runs").wait_with_output().expect("qj ends");
    assert_eq!((output.status.code(), output.stderr), (Some(0), Vec::new()));
}

#[test]
fn documents_name_every_command() {
    let folder = Folder::with(&[]);
    let help = String::from_utf8(folder.qj("--help").output().expect("qj runs").stdout).expect("help is text");
    let man = String::from_utf8(folder.qj("man").output().expect("qj runs").stdout).expect("the page is text");
    let bash = String::from_utf8(folder.qj("completions bash").output().expect("qj runs").stdout).expect("text");
    let commands: Vec<&str> = help
        .lines()
        .skip_while(|line| *line != "Commands:")
        .skip(1)
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.split_whitespace().next())
        .filter(|command| *command != "help")
        .chain(["filter fuzz", "filter corpus", "fastpath suggest"])
        .collect();
    assert!(commands.contains(&"check"), "{help}");
    for command in commands {
        assert!(man.contains(&format!(".SH \"QJ {}\"", command.to_uppercase())), "{command} is not in the page");
        assert!(bash.contains(&command.replace(' ', "__subcmd__")), "{command} is not completed");
        if !command.contains(' ') {
            folder.qj(&format!("{command} --help")).assert().success().stdout_eq("...\nExamples:\n...\n");
            folder.qj(&format!("help {command}")).assert().success().stdout_eq("...\nExamples:\n...\n");
        }
    }
}

#[test]
fn options_of_another_form_are_refused() {
    let folder = Folder::with(&[("a.esp", "process p { }\n")]);
    for (line, said) in [
        ("build a.esp --emit c --extern a.c", "`--extern` has no meaning here\nhelp: it is for `--emit exe`"),
        ("build a.esp --emit ir --style poll", "`--style` has no meaning here\nhelp: it is for `--emit c`"),
        ("build a.esp --emit exe --prefix x", "`--prefix` has no meaning here\nhelp: it is for `--emit c`"),
        ("build a.esp --emit c --model m", "`--model` has no meaning here\nhelp: it is for `--emit promela`"),
    ] {
        folder.qj(line).assert().code(2).stderr_eq(format!("error[H0103]: {said}\n"));
    }
    for prefix in ["1a", "a-b", "x;"] {
        let line = format!("build a.esp --emit c --prefix {prefix}");
        folder
            .qj(&line)
            .assert()
            .code(2)
            .stderr_eq("error[H0101]: invalid value[..]letters, digits and `_`, no digit first\n...\n");
    }
    folder.qj("graph a.esp -o -").assert().success().stdout_eq("<svg[..]\n...\n");
    std::fs::write(folder.path("b.esp"), "import \"/dev/zero\";\n").expect("the folder is ours");
    folder.qj("check b.esp").assert().code(1).stderr_eq("error[E0209][..]it is not a regular file\n...\n");
}

#[test]
fn an_executable_goes_where_a_link_leads() {
    let folder = Folder::with(&[("a.esp", RIGHT)]);
    let link = folder.path("link");
    std::os::unix::fs::symlink("real", &link).expect("the folder is ours");
    std::fs::write(folder.path("real"), "").expect("the folder is ours");
    folder.qj("build --emit exe a.esp -o link").assert().success();
    assert!(link.is_symlink(), "the link was replaced");
    let printed = std::process::Command::new(&link).output().expect("what was built can be run");
    assert_eq!(printed.stdout, b"1\n");
}

#[test]
fn nothing_is_written_over_the_program() {
    let folder = Folder::with(&[("a.esp", RIGHT)]);
    std::fs::hard_link(folder.path("a.esp"), folder.path("b.svg")).expect("the folder is ours");
    for command in [
        "graph a.esp -o a.esp",
        "graph a.esp -o b.svg",
        "build a.esp --emit ir -o ./a.esp",
        "build a.esp --emit exe -o a.esp",
        "build a.esp --emit promela -o a.esp",
        "run a.esp --record a.esp",
    ] {
        let complaint =
            "error[H0105]: `[..]` is the program: it would be overwritten\nhelp: give the output another name\n";
        folder.qj(command).assert().code(2).stderr_eq(complaint);
        assert_eq!(std::fs::read_to_string(folder.path("a.esp")).expect("it is there"), RIGHT, "{command}");
    }
}

#[test]
fn a_file_with_two_names_is_read_once() {
    let root = "import \"x.esp\";\nimport \"y.esp\";\nimport \"./link.esp\";\nchannel c(int) external in;\n\
                process p { out(c, X); }\n";
    let folder = Folder::with(&[("a.esp", root), ("x.esp", "import \"a.esp\";\nconst X = 1;\n")]);
    std::fs::hard_link(folder.path("x.esp"), folder.path("y.esp")).expect("the folder is ours");
    std::os::unix::fs::symlink("x.esp", folder.path("link.esp")).expect("the folder is ours");
    folder.qj("run a.esp").assert().success().stdout_eq("1\n");
    let folder = Folder::with(&[("a.esp", "import \"-\";\nprocess p { assert(X == 1); }\n"), ("-", "const X = 1;\n")]);
    folder.qj("run a.esp").stdin("const X = 2;").assert().success();
}
