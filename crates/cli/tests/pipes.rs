//! `qj pipe`: files, standard streams, and what is said when something is wrong.

mod support;

use snapbox::str;
use support::Folder;

#[test]
fn data_go_from_file_to_file_and_findings_to_standard_output() {
    let folder = Folder::with(&[("in", "123456789")]);
    let pipe = |steps: &str, rest: &str| folder.qj("pipe").arg(steps).args(rest.split_whitespace());
    pipe("copy | crc32c | swap16 | count", "-r in -w out").assert().success().stdout_eq("crc32c e3069283\ncount 9\n");
    assert_eq!(std::fs::read(folder.path("out")).expect("it was written"), b"214365879");
    pipe("checksum", "").stdin("").assert().success().stdout_eq("checksum ffff\n");
    pipe("copy | count", "-r -").stdin("abc").assert().success().stdout_eq("abc").stderr_eq("count 3\n");
}

/// More than is read at once, and no multiple of anything.
#[test]
fn large_files_are_led_through_in_pieces() {
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
fn mistakes_are_shown_where_they_are() {
    let folder = Folder::with(&[("in", "abc"), ("bad.pipe", "step a u8\n  add r0, r9, 1\nend\n"), ("key", "k")]);
    let pipe = |steps: &str, rest: &str| folder.qj("pipe").arg(steps).args(rest.split_whitespace()).assert();
    pipe("copy | swop16", "-r in").code(1).stdout_eq("").stderr_eq(str![[r#"
error: PIPE:1:8: no step `swop16`
  copy | swop16
         ^^^^^^
help: did you mean `swap16`?

"#]]);
    pipe("a", "-s bad.pipe -r in").code(1).stderr_eq(str![[r#"
error: bad.pipe:2:11: `r9` is no register
    add r0, r9, 1
            ^^
help: a register is r0 to r7
...
"#]]);
    std::fs::write(folder.path("a.pipe"), "step a u8\nend\n").expect("a file can be written");
    pipe("a", "-s a.pipe -s a.pipe -r in")
        .code(1)
        .stderr_eq("error: `a.pipe` has a step `a`, as a file before\nhelp: give it another name\n");
    pipe("xor stream", "-r in").code(2).stderr_eq("error: P0203: 0 key files for 1 step `xor stream`\n...");
    pipe("xor stream", "-r in -k key -w out")
        .code(1)
        .stderr_eq("error: P0204: a key file has fewer bytes than `in`\n...");
    pipe("count", "-r in -w out")
        .code(2)
        .stderr_eq("error: this pipe writes nothing: all of its steps only look at the data\n...");
    pipe("count", "-r missing").code(1).stderr_eq("error: cannot open `missing`: [..]\n...");
    pipe("copy", "-r in -w none/out").code(1).stderr_eq("error: cannot write `none/out`: [..]\n...");
    let many = "copy |".repeat(8) + "copy";
    pipe(&many, "-r in").code(2).stderr_eq("error: P0101: a pipe of 9 steps; the maximum is 8\n...");
    assert!(!folder.path("out").exists(), "what goes wrong leaves no file");
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
