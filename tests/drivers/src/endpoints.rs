//! `exec:`, `pty:` and `serial:`.

use super::{Running, engines, eventually, qj, text};
use quaject_test_support::HANG_TIMEOUT;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::time::Instant;

const THROUGH: &str = "
channel inC(int) external out = \"bytes:-\";
channel toC(int) external in;
channel fromC(int) external out;
channel outC(int) external in = \"bytes:-\";
process there { var c = 0; while (c >= 0) { in(inC, c); out(toC, c); } }
process back { var c = 0; while (c >= 0) { in(fromC, c); out(outC, c); } }
";

#[test]
fn a_command_reads_one_channel_and_writes_another() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("data"), "hello\n".repeat(5_000)).expect("the folder is writable");
        let bind = ["--bind", "inC=bytes:data", "--bind", "toC=exec:cat", "--bind", "fromC=exec:cat"];
        let mut command = qj(folder.path(), engine, THROUGH, &bind);
        let running = Running::start(&mut command);
        // `cat` ends when its input does, which is when the program does.
        let output = running.stop_after_output(30_000);
        assert!(output == "hello\n".repeat(5_000), "{engine}: {} bytes", output.len());
    }
}

#[test]
fn a_command_that_ends_closes_its_channel_and_its_failure_is_reported() {
    let program = "channel c(int) external out; channel d(int) external in = \"bytes:-\";\n\
                   process p { var x = 0; while (x >= 0) { in(c, x); out(d, x); } }";
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let output = qj(folder.path(), engine, program, &["--bind", "c=exec:echo said; exit 3"]).output().expect("qj");
        assert_eq!(text(&output.stdout), "said\n", "{engine}");
        assert_eq!(text(&output.stderr), "note: command `echo said; exit 3` ended with exit status: 3\n", "{engine}");
        assert_eq!(output.status.code(), Some(0), "{engine}");
    }
}

/// A command that was only read is not waited for.
#[test]
fn a_program_that_exits_ends_its_commands() {
    let program = "channel c: bytes[<=8] external out; channel t() external out;\n\
                   process p { while { alt { in(c, _) { } in(t) { exit(5); } } } }";
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let started = Instant::now();
        let bind = ["--bind", "c=exec:sleep 60", "--bind", "t=timer:10ms"];
        let output = qj(folder.path(), engine, program, &bind).output().expect("qj");
        assert_eq!(output.status.code(), Some(5), "{engine}: {}", text(&output.stderr));
        assert!(started.elapsed() < HANG_TIMEOUT, "{engine}");
    }
}

#[test]
fn a_pseudo_terminal_is_a_line_without_echo() {
    let program = "channel c(u8) external out; channel d(u8) external in;\n\
                   process p { while { in(c, $x); out(d, x + 1); } }";
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let line = folder.path().join("line");
        let running =
            Running::start(&mut qj(folder.path(), engine, program, &["--bind", "c=pty:line", "--bind", "d=pty:line"]));
        const NOCTTY: i32 = 0o400;
        let mut terminal = eventually("the terminal", || {
            OpenOptions::new().read(true).write(true).custom_flags(NOCTTY).open(&line).ok()
        });
        // Bytes that a terminal with line editing would drop, echo or change.
        let sent = [b'\r', b'\n', 3, 4, 17, 19, 127, 0, 255];
        terminal.write_all(&sent).expect("it is open");
        let mut answer = [0; 9];
        terminal.read_exact(&mut answer).expect("an answer");
        assert_eq!(answer.map(|byte| byte.wrapping_sub(1)), sent, "{engine}");
        running.stop();
        assert!(line.symlink_metadata().is_err(), "{engine}: the name goes with the program");
    }
}

#[test]
fn a_serial_line_is_opened_raw() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    // One program opens the terminal, another one opens its other end as a serial line.
    let echo = "channel c(u8) external out; channel d(u8) external in; process p { while { in(c, $x); out(d, x); } }";
    let far = Running::start(&mut qj(folder.path(), "interp", echo, &["--bind", "c=pty:line", "--bind", "d=pty:line"]));
    eventually("the terminal", || folder.path().join("line").symlink_metadata().ok());
    let near = tempfile::tempdir().expect("a temporary folder");
    let line = folder.path().join("line").display().to_string();
    let ask = "channel c(u8) external out; channel d(u8) external in; channel outC(u8) external in = \"text:-\";\n\
               process p { for i in 0..256 { out(d, u8(i)); in(c, $x); assert(x == u8(i)); } out(outC, 1); }";
    let (input, output) = (format!("c=serial:{line},115200"), format!("d=serial:{line},115200"));
    let output = qj(near.path(), "interp", ask, &["--bind", &input, "--bind", &output]).output().expect("qj");
    assert_eq!(text(&output.stdout), "1\n", "{}", text(&output.stderr));
    far.stop();
}

impl Running {
    /// Stops it after this much output, and returns the output.
    fn stop_after_output(mut self, length: usize) -> String {
        let mut child = self.0.take().expect("it is stopped once");
        let mut output = vec![0; length];
        child.stdout.as_mut().expect("it is a pipe").read_exact(&mut output).expect("it writes all that");
        Running(Some(child)).stop();
        text(&output)
    }
}
