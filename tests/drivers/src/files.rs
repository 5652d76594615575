//! `file:`.

use super::{Running, engines, qj, text};
use std::fs;
use std::path::Path;

/// Passes requests from text to the files, and the answers back.
const SCRIPT: &str = "
type requestT = union { open: bytes[<=64], edit: bytes[<=64], create: bytes[<=64], replace: bytes[<=64],
  read: record { at: u32, count: u16 }, write: record { at: u32, content: bytes[<=16] }, size, close, discard };
type answerT = union { done, data: bytes[<=16], size: u16, failed: record { code: u8, reason: bytes[<=40] } };
channel sayC(u8, requestT) external out = \"text:-\";
channel heardC(u8, answerT) external in = \"text:-\";
channel askC(u8, requestT) external in = \"file:files\";
channel answerC(u8, answerT) external out = \"file:files\";
process script {
  while {
    idle in(sayC, $id, $request);
    out(askC, id, request);
    in(answerC, $from, $answer);
    out(heardC, from, answer);
  }
}
";

/// The answers to requests, one per line, in a folder whose `files` are the program's.
fn answers(folder: &Path, engine: &str, requests: &[&str]) -> Vec<String> {
    let mut command = qj(folder, engine, SCRIPT, &["--bind", "sayC=text:requests"]);
    fs::write(folder.join("requests"), requests.join("\n") + "\n").expect("the folder is writable");
    let output = Running::start(&mut command).end();
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout).lines().map(str::to_string).collect()
}

fn folder_of_files() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    fs::create_dir(folder.path().join("files")).expect("the folder is writable");
    folder
}

#[test]
fn files_are_read_and_written_at_offsets() {
    for engine in engines() {
        let folder = folder_of_files();
        let files = folder.path().join("files");
        fs::write(files.join("poem"), "The quick brown fox").expect("the folder is writable");
        fs::write(files.join("empty"), "").expect("the folder is writable");
        let heard = answers(
            folder.path(),
            engine,
            &[
                "1 open |> \"poem\"",
                "1 size",
                "1 read |> {4, 5}",
                "1 read |> {0, 999}",
                "1 read |> {16, 16}",
                "1 read |> {19, 1}",
                "1 read |> {4294967295, 1}",
                "2 open |> \"empty\"",
                "2 size",
                "2 read |> {0, 1}",
                "1 write |> {0, \"x\"}",
                "1 close",
                "1 size",
                "2 close",
                "3 edit |> \"poem\"",
                "3 write |> {4, \"slow!\"}",
                "3 close",
            ],
        );
        assert_eq!(
            heard,
            [
                "1 done",
                "1 size |> 19",
                "1 data |> \"quick\"",
                "1 data |> \"The quick brown \"",
                "1 data |> \"fox\"",
                "1 data |> \"\"",
                "1 data |> \"\"",
                "2 done",
                "2 size |> 0",
                "2 data |> \"\"",
                "1 failed |> {0, \"bad file descriptor\"}",
                "1 done",
                "1 failed |> {5, \"it is not open\"}",
                "2 done",
                "3 done",
                "3 done",
                "3 done",
            ],
            "{engine}"
        );
        assert_eq!(fs::read_to_string(files.join("poem")).expect("it is there"), "The slow! brown fox");
    }
}

#[test]
fn a_new_file_appears_atomically() {
    for engine in engines() {
        let folder = folder_of_files();
        let files = folder.path().join("files");
        fs::write(files.join("old"), "old").expect("the folder is writable");
        let heard = answers(
            folder.path(),
            engine,
            &[
                "1 create |> \"new\"",
                "1 write |> {0, \"all of it\"}",
                "2 open |> \"new\"",
                "1 close",
                "2 open |> \"new\"",
                "3 create |> \"gone\"",
                "3 write |> {0, \"x\"}",
                "3 discard",
                "4 create |> \"old\"",
                "5 replace |> \"old\"",
                "5 write |> {0, \"young\"}",
                "5 close",
                "6 create |> \"unfinished\"",
            ],
        );
        assert_eq!(heard[2], "2 failed |> {1, \"no such file or directory\"}", "{engine}");
        assert_eq!(heard[4], "2 done", "{engine}");
        assert_eq!(heard[8], "4 failed |> {6, \"file exists\"}", "{engine}");
        let mut there: Vec<String> = fs::read_dir(&files)
            .expect("it is there")
            .map(|entry| entry.expect("readable").file_name().to_string_lossy().to_string())
            .collect();
        there.sort();
        assert_eq!(there, ["new", "old"], "{engine}: nothing unfinished is left");
        assert_eq!(fs::read_to_string(files.join("old")).expect("it is there"), "young");
    }
}

#[test]
fn no_name_leads_out_of_the_folder() {
    let folder = folder_of_files();
    let files = folder.path().join("files");
    fs::write(folder.path().join("secret"), "secret").expect("the folder is writable");
    std::os::unix::fs::symlink("../secret", files.join("link")).expect("the folder is writable");
    std::os::unix::fs::symlink("..", files.join("up")).expect("the folder is writable");
    fs::create_dir(files.join("sub")).expect("the folder is writable");
    assert!(std::process::Command::new("mkfifo").arg(files.join("fifo")).status().is_ok_and(|status| status.success()));
    let heard = answers(
        folder.path(),
        "interp",
        &[
            "1 open |> \"../secret\"",
            "1 open |> \"link\"",
            "1 open |> \"up/secret\"",
            "1 open |> \"/etc/passwd\"",
            "1 create |> \"../new\"",
            "1 create |> \"up/new\"",
            "1 open |> \"sub\"",
            "1 open |> \"\"",
            "1 open |> \"a\\0b\"",
            "1 open |> \"fifo\"",
            "1 create |> \"sub/..\"",
            "1 create |> \"sub/inner\"",
        ],
    );
    let codes: Vec<&str> = heard.iter().map(|line| line.split([' ', '{', ',']).nth(4).unwrap_or("-")).collect();
    assert_eq!(codes, ["2", "2", "2", "2", "2", "2", "4", "1", "4", "4", "4", "-"], "{heard:#?}");
    assert!(!folder.path().join("new").exists());
}

#[test]
fn without_a_case_for_it_a_failure_ends_the_program() {
    let program = "
channel askC(u8, union { open: bytes[<=64] }) external in = \"file:.\";
channel answerC(u8, union { done }) external out = \"file:.\";
process p { out(askC, 1, open |> \"missing\"); in(answerC, _, _); }
";
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = qj(folder.path(), engine, program, &[]).output().expect("cargo built qj");
        assert_eq!(output.status.code(), Some(3), "{engine}");
        assert_eq!(
            text(&output.stderr),
            "error[H0201]: cannot open `missing` in `.`: no such file or directory\n\
             help: give the answers a case `failed: u8` to go on without it\n"
        );
    }
}
