//! A program that computes on and on is asked to stop: it ends at once, and what it has sent is kept, on every engine, as
//! an executable of its own, in every mode.

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Folder;

/// Sends 1, and 2 when something has come, and then nothing more, for ever.
const BUSY: &str = "channel i(int) external out;\nchannel o(int) external in;\n\
                    process p { out(o, 1); in(i, $n); out(o, 2); var k: u32 = 0; while { k += 1; } }\n";

/// Likewise, of processes that could end but do not: an odd number is never 0.
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

/// How long a program may take to end; the machine may be busy.
const SOON: Duration = Duration::from_secs(10);

fn start(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().expect("it starts")
}

/// Has a program compute on and on, asks it to stop, and expects that it does.
fn interrupt(what: &str, mut child: Child) {
    let mut stdout = BufReader::new(child.stdout.take().expect("it is piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("it can be read");
    assert_eq!(line, "1\n", "{what}");
    let mut stdin = child.stdin.take().expect("it is piped");
    stdin.write_all(b"5\n").expect("it can be written");
    // Until it computes; earlier, it would end by itself.
    std::thread::sleep(Duration::from_millis(300));
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill runs");
    assert!(sent.success(), "{what}");
    let asked = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("it can be waited for") {
            break status;
        }
        if asked.elapsed() > SOON {
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
fn a_program_that_computes_on_and_on_is_stopped_and_keeps_what_it_sent() {
    let folder =
        Folder::with(&[("busy.esp", BUSY), ("meeting.esp", MEETING), ("calling.esp", CALLING), ("same.c", SAME)]);
    for (file, functions) in [("busy", ""), ("meeting", ""), ("calling", "--extern same.c")] {
        for mode in ["process", "auto"] {
            for engine in ["interp", "c", "jit"] {
                let arguments = format!("run {file}.esp --mode {mode} --engine {engine} {functions}");
                let mut qj = Command::new(snapbox::cmd::cargo_bin!("qj"));
                interrupt(&arguments, start(qj.current_dir(folder.path("")).args(arguments.split_whitespace())));
            }
            let arguments = format!("build {file}.esp --mode {mode} --emit exe -o {file}.out --report {functions}");
            // What is not optimised stores all it does at once.
            let build = folder.qj(&arguments).env("CC", "cc").output().expect("qj runs");
            let said = String::from_utf8_lossy(&build.stdout);
            assert_eq!(said.contains("fused: a, b: "), mode == "auto" && file != "busy", "{said}");
            interrupt(&arguments, start(&mut Command::new(folder.path(&format!("{file}.out")))));
        }
    }
}
