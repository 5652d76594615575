//! `qj pipe`: files, standard streams and error messages.

mod support;

use serde_json::{Value, json};
use snapbox::str;
use support::Folder;

#[test]
fn data_go_to_a_file_and_results_to_standard_output() {
    let folder = Folder::with(&[("in", "123456789")]);
    let pipe = |steps: &str, rest: &str| folder.qj("pipe").arg(steps).args(rest.split_whitespace());
    pipe("copy | crc32c | swap16 | count", "-r in -w out").assert().success().stdout_eq("crc32c e3069283\ncount 9\n");
    assert_eq!(std::fs::read(folder.path("out")).expect("it was written"), b"214365879");
    pipe("checksum", "").stdin("").assert().success().stdout_eq("checksum ffff\n");
    pipe("copy | count", "-r -").stdin("abc").assert().success().stdout_eq("abc").stderr_eq("count 3\n");
}

/// A file of several pieces whose length is no multiple of a word.
#[test]
fn large_files_are_processed_in_pieces() {
    let folder = Folder::with(&[]);
    let data: Vec<u8> = (0..900_001_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    std::fs::write(folder.path("in"), &data).expect("a file can be written");
    std::fs::write(folder.path("key"), &data).expect("a file can be written");
    let run = |steps: &str, rest: &str| folder.qj("pipe").arg(steps).args(rest.split_whitespace()).assert().success();
    run("swap64 | xor 0x0102030405060708 | count", "-r in -w there").stdout_eq("count 900001\n");
    run("xor 0x0102030405060708 | swap64", "-r there -w back --store streaming").stdout_eq("");
    assert!(std::fs::read(folder.path("back")).expect("it was written") == data);
    run("xor stream", "-r in -k key -w zeros");
    assert!(std::fs::read(folder.path("zeros")).expect("it was written") == vec![0; data.len()]);
}

#[test]
fn errors_are_located() {
    let folder = Folder::with(&[("in", "abc"), ("bad.pipe", "step a u8\n  add r0, r9, 1\nend\n"), ("key", "k")]);
    let pipe = |steps: &str, rest: &str| folder.qj("pipe").arg(steps).args(rest.split_whitespace()).assert();
    pipe("copy | swop16", "-r in").code(1).stdout_eq("").stderr_eq(str![[r#"
error[P0001]: no step `swop16`
 --> PIPE:1:8
  |
1 | copy | swop16
  |        ^^^^^^
  |
  = help: did you mean `swap16`?

1 error; see `qj explain P0001`

"#]]);
    pipe("a", "-s bad.pipe -r in").code(1).stderr_eq(str![[r#"
error[P0002]: `r9` is not a register
 --> bad.pipe:2:11
  |
2 |   add r0, r9, 1
  |           ^^
  |
  = help: a register is r0 to r7
...
"#]]);
    std::fs::write(folder.path("a.pipe"), "step a u8\nend\n").expect("a file can be written");
    pipe("a", "-s a.pipe -s a.pipe -r in")
        .code(1)
        .stderr_eq("error[H0202]: `a.pipe` defines the step `a` of an earlier file\nhelp: give it another name\n");
    pipe("xor stream", "-r in").code(2).stderr_eq("error[P0203]: 0 key files for 1 step `xor stream`\n...");
    pipe("xor stream", "-r in -k key -w out")
        .code(1)
        .stderr_eq("error[P0204]: a key file has fewer bytes than `in`\n...");
    pipe("count", "-r in -w out")
        .code(2)
        .stderr_eq("error[H0103]: this pipe writes nothing: none of its steps changes or copies data\n...");
    pipe("count", "-r missing").code(1).stderr_eq("error[H0201]: cannot open `missing`: [..]\n...");
    pipe("copy", "-r in -w none/out").code(1).stderr_eq("error[H0201]: cannot write `none/out`: [..]\n...");
    let many = "copy |".repeat(8) + "copy";
    pipe(&many, "-r in").code(2).stderr_eq("error[P0101]: a pipe of 9 steps; the maximum is 8\n...");
    assert!(!folder.path("out").exists(), "an error leaves no output file");
}

#[test]
fn errors_are_json_and_sarif_too() {
    let folder = Folder::with(&[("in", "abc"), ("bad.pipe", "step a u8\n  add r0, r9, 1\nend\n")]);
    let errors = |form: &str, steps: &str, rest: &str| -> Vec<Value> {
        let command = folder.qj(&format!("--messages {form} pipe"));
        let output = command.arg(steps).args(rest.split_whitespace()).output().expect("qj runs");
        assert!(!output.status.success());
        let text = String::from_utf8(output.stderr).expect("messages are text");
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    };
    let lines = errors("json", "copy | swop16", "-s bad.pipe -r in");
    let found: Vec<_> =
        lines.iter().map(|line| (&line["code"], &line["file"], &line["line"], &line["column"])).collect();
    let expected = [
        (&json!("P0002"), &json!("bad.pipe"), &json!(2), &json!(11)),
        (&json!("P0001"), &json!("PIPE"), &json!(1), &json!(8)),
    ];
    assert_eq!(found, expected);
    let logs = errors("sarif", "copy | swop16", "-s bad.pipe -r in");
    let [log] = &logs[..] else { panic!("one log for all texts: {logs:?}") };
    assert_eq!(log["runs"][0]["results"].as_array().map(Vec::len), Some(2));
    // Without a location.
    let lines = errors("json", "xor stream", "-r in");
    assert_eq!((&lines[0]["code"], &lines[0]["severity"]), (&json!("P0203"), &json!("error")));
}

#[test]
fn the_code_is_shown_and_measured() {
    let folder = Folder::with(&[]);
    let explain = folder.qj("pipe --explain").arg("copy | checksum").assert().success();
    let text = String::from_utf8_lossy(&explain.get_output().stdout).into_owned();
    assert!(text.starts_with("copy | checksum\n") && text.contains("cached; ") && text.lines().count() > 30, "{text}");
    let bench = folder.qj("pipe --bench").arg("copy | checksum | swap32").assert().success();
    let text = String::from_utf8_lossy(&bench.get_output().stdout).into_owned();
    assert_eq!(text.lines().count(), 7, "{text}");
}
