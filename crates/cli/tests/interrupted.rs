//! A signal ends a non-terminating program at once and keeps its output, on every engine, as a built executable, in
//! every mode.

mod support;

use quaject_test_support::{Effort, HANG_TIMEOUT};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Folder;

/// Sends 1, then 2 after an input, and then computes forever without output.
const BUSY: &str = "channel i(int) external out;\nchannel o(int) external in;\n\
                    process p { out(o, 1); in(i, $n); out(o, 2); var k: u32 = 0; while { k += 1; } }\n";

/// Likewise, with processes whose end is reachable in the graph but never taken: an odd number is never 0.
const MEETING: &str = "channel i(int) external out;\nchannel o(int) external in;\nchannel c(int);\n\
                       process a { in(i, $n); while (n != 0) { out(c, n); n += 2; } out(c, 0); }\n\
                       process b { out(o, 1); in(c, $s); out(o, 2); while { in(c, $x); if (x == 0) break; s += x; } \
                       out(o, s); }\n";

/// Likewise, most of the time in a function that holds a lock.
const CALLING: &str = "channel i(int) external out;\nchannel o(int) external in;\nchannel c(int);\n\
                       extern pure fn same(int) -> int;\n\
                       process a { in(i, $n); while (n != 0) { n += 2; out(c, n); } }\n\
                       process b { out(o, 1); in(c, $s); out(o, 2); while { in(c, $x); s = same(x); if (s == 0) break; } \
                       out(o, s); }\n";
const SAME: &str = "#include <stdint.h>\n#include <stdlib.h>\n#include <string.h>\n\
                    int32_t same(int32_t n) { char *all = malloc(9999), *one = malloc(1); memset(all, n, 9999);\n\
                    n -= all[7] - all[8]; free(one); free(all); return n; }\n";

fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("it starts")
}

/// Interrupts a non-terminating program and checks that it ends.
fn interrupt(what: &str, mut child: Child) {
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("it can be read");
    assert_eq!(line, "1\n", "{what}");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(b"5\n").expect("it can be written");
    // Wait until it computes; earlier, the signal would end it anyway.
    std::thread::sleep(Duration::from_millis(300));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success(), "{what}");
    let asked = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        if asked.elapsed() > HANG_TIMEOUT {
            let _ = child.kill();
            panic!("{what}: SIGINT does not end it");
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).expect("it can be read");
    assert_eq!((rest.as_str(), status.signal()), ("2\n", Some(2)), "{what}");
}

#[test]
fn a_signal_ends_a_non_terminating_program_and_keeps_its_output() {
    let folder =
        Folder::with(&[("busy.esp", BUSY), ("meeting.esp", MEETING), ("calling.esp", CALLING), ("same.c", SAME)]);
    let programs = [("meeting", ""), ("busy", ""), ("calling", "--extern same.c")];
    for (file, functions) in Effort::wanted().pick(&programs[..1], &programs, &programs) {
        for mode in ["process", "auto"] {
            for engine in ["interp", "c", "jit"] {
                let arguments = format!("run {file}.esp --mode {mode} --engine {engine} {functions}");
                let mut qj = Command::new(snapbox::cmd::cargo_bin!("qj"));
                interrupt(&arguments, start(qj.current_dir(folder.path("")).args(arguments.split_whitespace())));
            }
            let arguments = format!("build {file}.esp --mode {mode} --emit exe -o {file}.out --report {functions}");
            // Unoptimised code stores every result immediately.
            let build = folder.qj(&arguments).env("CC", "cc").output().expect("qj runs");
            let said = String::from_utf8_lossy(&build.stdout);
            assert_eq!(said.contains("fused: a, b: "), mode == "auto" && *file != "busy", "{said}");
            interrupt(&arguments, start(&mut Command::new(folder.path(&format!("{file}.out")))));
        }
    }
}
