//! Machine code of `qj run` as debuggers and profilers see it: GDB breaks in processes by name and by line, also in
//! those that are fused of several files; the file for `perf` has their names, bytes and lines.

mod support;

use quaject_test_support::tool;
use snapbox::cmd::cargo_bin;
use snapbox::str;
use std::process::Command;
use support::Folder;

const HALF: &str = "process half {
  for i in 1..4 {
    out(numberC, i);
  }
  out(numberC, 0);
}
";

const PAIRS: &str = "channel numberC(int);
channel sumC(int) external in;
import \"half.esp\";
process total {
  var sum = 0;
  while {
    in(numberC, $n);
    if (n == 0) break;
    sum += n;
    sum *= 2;
  }
  out(sumC, sum);
}
";

fn folder() -> Folder {
    Folder::with(&[("half.esp", HALF), ("pairs.esp", PAIRS)])
}

/// The output of GDB for these commands.
fn gdb(folder: &Folder, options: &str, commands: &[&str]) -> Option<String> {
    tool(&["gdb"])?;
    let mut gdb = Command::new("gdb");
    gdb.current_dir(folder.path("")).args(["--batch", "-nx", "-ex", "set debuginfod enabled off"]);
    for command in ["set breakpoint pending on"].iter().chain(commands) {
        gdb.args(["-ex", command]);
    }
    gdb.arg("--args").arg(cargo_bin!("qj")).args(["run", "pairs.esp", "--bind", "sumC=text:sum.txt"]);
    let output = gdb.args(["--debug-info", "gdb"]).args(options.split_whitespace()).output().expect("gdb starts");
    Some(String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr))
}

/// These, in this order.
fn expect(text: &str, wanted: &[&str]) {
    let mut rest = text;
    for wanted in wanted {
        let Some(at) = rest.find(wanted) else { panic!("no `{wanted}`, or not there, in:\n{text}") };
        rest = &rest[at + wanted.len()..];
    }
}

#[test]
fn gdb_breaks_at_lines_of_a_process_and_steps() {
    let folder = folder();
    let commands = ["break pairs.esp:9", "run", "backtrace 2", "next", "continue", "delete", "break half", "continue"];
    let Some(text) = gdb(&folder, "--mode process", &commands) else { return };
    let stack = ["#0  total () at ", "pairs.esp:9", "#1 "];
    expect(&text, &["total () at ", "pairs.esp:9", "9\t    sum += n;"]);
    expect(&text, &stack);
    expect(&text, &["#1 ", "10\t    sum *= 2;", "total () at ", "pairs.esp:9", "half () at ", "half.esp:1"]);
}

#[test]
fn gdb_sees_the_files_of_a_fused_process() {
    let folder = folder();
    let commands = ["break half.esp:2", "run", "delete", "break pairs.esp:9", "continue", "delete", "continue"];
    let Some(text) = gdb(&folder, "--mode automata", &commands) else { return };
    expect(&text, &["half_total () at ", "half.esp:2", "2\t  for i in 1..4 {", "half_total () at ", "pairs.esp:9"]);
    expect(&text, &["exited normally"]);
    let sum = std::fs::read_to_string(folder.path("sum.txt")).expect("it was written");
    assert_eq!(sum, "22\n");
}

#[test]
fn perf_receives_names_bytes_and_lines() {
    let folder = folder();
    let run = folder.qj("run pairs.esp --mode process --debug-info perf").env("TMPDIR", folder.path(""));
    run.assert().success().stdout_eq("22\n");
    let dumps = std::fs::read_dir(folder.path("")).expect("the folder is there").flatten();
    let is_dump = |path: &std::path::PathBuf| path.extension().is_some_and(|extension| extension == "dump");
    let dump = dumps.map(|entry| entry.path()).find(is_dump).expect("a jitdump file");
    let bytes = std::fs::read(&dump).expect("it can be read");
    let at = |wanted: &[u8]| bytes.windows(wanted.len()).position(|bytes| bytes == wanted);
    for name in ["total", "half"] {
        // An entry of a line is its number, no discriminator and the file; a function is its name and then its bytes.
        let of_code = [&b"\0"[..], name.as_bytes(), b"\0"].concat();
        assert!(at(&of_code).is_some_and(|at| bytes.len() > at + of_code.len() + 16), "{name}");
    }
    for (file, line) in [("pairs.esp", 9_u32), ("half.esp", 2)] {
        let path = folder.path(file);
        let entry = [&line.to_ne_bytes()[..], &[0; 4], path.as_os_str().as_encoded_bytes(), b"\0"].concat();
        assert!(at(&entry).is_some(), "{file}:{line}");
    }
}

#[test]
fn debug_info_without_machine_code_is_an_error() {
    let folder = folder();
    for engine in ["interp", "c"] {
        folder.qj(&format!("run pairs.esp --debug-info gdb --engine {engine}")).assert().code(2).stderr_eq(str![[r#"
error[H0103]: `--debug-info` has no meaning here
help: it is for machine code in memory: leave out `--engine`; generated C names lines by itself

"#]]);
    }
    let run = folder.qj("run pairs.esp --debug-info perf").env("TMPDIR", "/nowhere");
    run.assert().code(3).stderr_eq(str![[r#"
error[H0201]: cannot write what `perf` reads: No such file or directory (os error 2)
help: it is written to `/nowhere`; `TMPDIR` says where else

"#]]);
}
