//! `qj run` and `qj build`: engines, drivers, ends, faults, recordings, and failures of their surroundings.

mod support;

use quaject_test_support::processor::await_idle;
use quaject_test_support::{HANG_TIMEOUT, tool};
use snapbox::cmd::cargo_bin;
use snapbox::str;
use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use support::Folder;

const ADD: &str = "channel pairC(int, int) external out;\nchannel sumC(int) external in;\n\
                   process adder { while { in(pairC, $a, $b); out(sumC, a + b); } }\n";
const COPY: &str = "channel inC: int external out = \"bytes:-\";\nchannel outC: int external in = \"bytes:-\";\n\
                    process copy { while { in(inC, $c); out(outC, c); } }\n";
const ENGINES: [&str; 3] = ["interp", "c", "jit"];

/// Runs a program on both engines and as a built executable; all must have the same behaviour.
fn everywhere(program: &str, arguments: &str, input: &[u8], status: i32, output: &[u8]) {
    let folder = Folder::with(&[("a.esp", program)]);
    for engine in ENGINES {
        let run = folder.qj(&format!("run --engine {engine} a.esp {arguments}")).stdin(input);
        let produced = run.output().expect("qj runs");
        let error = String::from_utf8_lossy(&produced.stderr).into_owned();
        assert_eq!((produced.status.code(), produced.stdout.as_slice()), (Some(status), output), "{engine}: {error}");
    }
    folder.qj("build --emit exe a.esp -o ./a.out").assert().success();
    let mut command = snapbox::cmd::Command::new(folder.path("a.out")).current_dir(folder.path(""));
    command = command.args(arguments.split_whitespace()).stdin(input);
    let produced = command.output().expect("the executable runs");
    let error = String::from_utf8_lossy(&produced.stderr).into_owned();
    assert_eq!((produced.status.code(), produced.stdout.as_slice()), (Some(status), output), "executable: {error}");
}

/// A program that is running.
fn start(folder: &Folder, arguments: &str) -> Child {
    let mut command = Command::new(cargo_bin!("qj"));
    command.current_dir(folder.path("")).args(arguments.split_whitespace());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("qj runs")
}

fn signal(child: &Child, name: &str) {
    let status = Command::new("kill").arg(name).arg(child.id().to_string()).status().expect("kill runs");
    assert!(status.success());
}

#[test]
fn text_is_one_message_per_line() {
    everywhere(ADD, "", b"3 4\n-7 0x10\n\n// no message\n 'a'\t1 ", 0, b"7\n9\n98\n");
}

#[test]
fn hex_is_bytes_in_digits() {
    let bytes = "channel i: bytes[<=4] external out = \"hex:-\";\nchannel o: bytes[<=4] external in = \"hex:-\";\n\
                 process p { while { in(i, $m); out(o, m); } }\n";
    let byte = "channel i: u8 external out = \"hex:-\";\nchannel o: bytes[<=3] external in = \"hex:-\";\n\
                process p { var m: #bytes[<=3] = #\"\";\n\
                while { idle in(i, $b); m += \"x\"; m[m.len - 1] = b; if (m.len == 3) { out(o, freeze(m)); m.len = 0; } } }\n";
    let ended = "channel i: union { data: bytes[<=4], eos } external out = \"hex:-\";\n\
                 channel o: int external in = \"hex:-\";\nprocess p { var more = true; while (more) { in(i, $m);\n\
                 match m { data |> $d => out(o, d.len); eos |> {} => more = false; } } out(o, -1); }\n";
    for (program, input, status, output, error) in [
        (bytes, "7e 01 0A\n\n// none\n00:ff // two\n 12345678 \r\nc0", 0, "7e 01 0a\n00 ff\n12 34 56 78\nc0\n", ""),
        (byte, "01 02\n03\n\n040506 07\n", 0, "01 02 03\n04 05 06\n", ""),
        (ended, "01 02\n01\n", 0, "02\n01\n", ""),
        (bytes, "01\n1 2\n", 3, "01\n", "error[H0406]: standard input:2:1: a byte has two hexadecimal digits\nhelp: "),
        (bytes, "0g\n", 3, "", "error[H0406]: standard input:1:1: a byte has two hexadecimal digits\nhelp: "),
        (
            bytes,
            "01 -\n",
            3,
            "",
            "error[H0406]: standard input:1:4: expected two hexadecimal digits, found `-`\nhelp: ",
        ),
        (
            bytes,
            "0102030405\n",
            3,
            "",
            "error[H0406]: standard input:1:1: the line has 5 bytes, a message at most 4\nhelp: ",
        ),
        (
            ADD,
            "",
            2,
            "",
            "error[H0403]: driver `hex` cannot serve channel `pairC`: its messages, `(int, int)`, are not bytes\nhelp: ",
        ),
    ] {
        let folder = Folder::with(&[("a.esp", program)]);
        for engine in ENGINES {
            let bind = if program == ADD { "--bind pairC=hex:-" } else { "" };
            let run = folder.qj(&format!("run --engine {engine} a.esp {bind}")).stdin(input).output().expect("qj runs");
            let said = String::from_utf8_lossy(&run.stderr);
            let produced = (run.status.code(), String::from_utf8_lossy(&run.stdout));
            assert_eq!(produced, (Some(status), output.into()), "{engine}, {input:?}: {said}");
            assert!(said.starts_with(error) && said.is_empty() == error.is_empty(), "{engine}, {input:?}: {said}");
        }
    }
}

#[test]
fn a_capture_needs_frames_of_one_kind() {
    let mixed = "channel a: bytes[<=64] external out = \"tap:none0\";\nchannel b(u32, bytes[<=8]) external out = \"can:none0\";\n\
                 process p { while { alt { in(a, _) { } in(b, _, _) { } } } }\n";
    let folder = Folder::with(&[("a.esp", ADD), ("b.esp", mixed)]);
    folder.qj("run a.esp --pcap a.pcap").assert().code(2).stderr_eq(str![[r#"
error[H0103]: `--pcap` has no effect: no channel carries frames
help: it is for the drivers `tap`, `packet` and `can`; `tcpdump` captures what sockets carry

"#]]);
    folder.qj("run b.esp --pcap b.pcap").assert().code(2).stderr_eq(str![[r#"
error[H0103]: `--pcap` has one file for frames of two kinds, Ethernet and CAN
help: a capture has one link type: bind the channels of one kind to another driver

"#]]);
    assert!(!folder.path("a.pcap").exists() && !folder.path("b.pcap").exists());
}

#[test]
fn text_holds_values_of_every_type() {
    let program = "type r = record { a: u8, b: bytes[<=6] };\ntype u = union { some: r, none };\n\
                   channel i(u, array[2] of bool, pid(p, q), i64) external out;\n\
                   channel o(u, array[2] of bool, pid(p, q), i64) external in;\n\
                   process p { while { in(i, $a, $b, $c, $d); out(o, a, b, c, d); } }\nprocess q[3] { }\n";
    everywhere(
        program,
        "",
        b"some |> {1, \"a\\xff\\n\"} [true, false] @p -9223372036854775808\n\
          some |> {b: \"\", a: 255} [false; 2] @q[2] 1_000\nnone [true,true,] @q 0b11\n",
        0,
        b"some |> {1, \"a\\xff\\n\"} [true, false] @p -9223372036854775808\n\
          some |> {255, \"\"} [false, false] @q[2] 1000\nnone [true, true] @q[0] 3\n",
    );
}

#[test]
fn bytes_end_with_minus_one_which_ends_the_output_too() {
    everywhere(COPY, "", b"", 0, b"");
    everywhere(COPY, "", b"\0\xff\n", 0, b"\0\xff\n");
    let many: Vec<u8> = (0..300_000u32).map(|i| (i.wrapping_mul(i) >> 7) as u8).collect();
    everywhere(COPY, "", &many, 0, &many);
}

#[test]
fn bytes_fit_unions_and_chunks() {
    let union = "type t = union { byte: u8, eos };\nchannel i: t external out = \"bytes:-\";\n\
                 channel o(t) external in;\nprocess p { while { in(i, $v); out(o, v); } }\n";
    everywhere(union, "", b"a\n", 0, b"byte |> 97\nbyte |> 10\neos\n");
    let chunk = "channel i: bytes[<=4] external out = \"bytes:-\";\nchannel o(bytes[<=4]) external in;\n\
                 process p { while { in(i, $v); out(o, v); } }\n";
    everywhere(chunk, "", b"abcdefghij", 0, b"\"abcd\"\n\"efgh\"\n\"ij\"\n");
}

#[test]
fn a_timer_counts_its_ticks() {
    let program = "channel tickC(int) external out = \"timer:10ms,3\";\nchannel o(int) external in;\n\
                   process p { while { in(tickC, $n); out(o, n); } }\n";
    everywhere(program, "--clock virtual", b"", 0, b"1\n2\n3\n");
    let folder = Folder::with(&[("a.esp", program)]);
    for engine in ENGINES {
        let started = Instant::now();
        let produced = folder.qj(&format!("run a.esp --engine {engine}")).output().expect("qj runs");
        assert!(started.elapsed() >= Duration::from_millis(30), "three ticks of 10 ms");
        // On a busy machine one tick can represent several.
        assert!(produced.stdout.ends_with(b"3\n"), "{engine}");
    }
}

#[test]
fn virtual_time_passes_at_once() {
    let program =
        "channel o(int) external in;\nprocess p {\n  for i in 0..3 { alt { after (1000 s) { } } out(o, i); }\n}\n";
    everywhere(program, "--clock virtual", b"", 0, b"0\n1\n2\n");
}

#[test]
fn exit_decides_the_status() {
    everywhere("channel o(int) external in;\nprocess p { out(o, 1); exit(300); }\n", "", b"", 44, b"1\n");
}

#[test]
fn channels_are_bound_to_files_that_others_may_share() {
    let program = "channel a(int) external in;\nchannel b(int) external in;\n\
                   process p { out(a, 1); out(b, 2); out(a, 3); }\n";
    everywhere(program, "", b"", 0, b"1\n2\n3\n");
    let folder = Folder::with(&[("a.esp", program)]);
    for engine in ENGINES {
        let run = format!("run a.esp --engine {engine} --bind a=text:x.txt --bind b=text:./x.txt");
        folder.qj(&run).assert().success().stdout_eq("");
        assert_eq!(std::fs::read_to_string(folder.path("x.txt")).expect("it is there"), "1\n2\n3\n");
    }
}

#[test]
fn faults_name_process_place_and_cause() {
    let folder = Folder::with(&[
        ("assert.esp", "process p[2] {\n  assert(int(@) == 0);\n}\n"),
        ("div.esp", "channel c: int external out;\nprocess p { while { in(c, $n);\n  assert(1 / n > 0); } }\n"),
        ("extern.esp", "extern fn nowhere(int) -> int;\nprocess p { var x = nowhere(1); assert(x == 1); }\n"),
    ]);
    for engine in ENGINES {
        folder.qj(&format!("run --engine {engine} assert.esp")).assert().code(3).stderr_eq(str![[r#"
fault[assert]: the assertion is false, in process `p[1]`
 --> assert.esp:2:3
  |
2 |   assert(int(@) == 0);
  |   ^

"#]]);
        folder.qj(&format!("run --engine {engine} div.esp")).stdin("1\n0\n").assert().code(3).stderr_eq(str![[r#"
fault[div]: division by zero, in process `p`
 --> div.esp:3:[..]
...
"#]]);
        folder.qj(&format!("run --engine {engine} extern.esp")).env_remove("CC").assert().code(3).stderr_eq(str![[
            r#"
fault[extern]: nothing supplies the extern function `nowhere`, in process `p`
...
help: give its C source or library: `--extern FILE.c`

"#
        ]]);
    }
}

#[test]
fn a_deadlock_report_lists_what_each_process_waits_for() {
    let program = "channel a(int);\nchannel b(int);\n\
                   process P { in(a, $x); out(b, x); }\nprocess Q { in(b, $x); out(a, x); }\n";
    let folder = Folder::with(&[("a.esp", program)]);
    for engine in ENGINES {
        folder.qj(&format!("run --engine {engine} a.esp")).assert().code(3).stderr_eq(str![[r#"
fault[deadlock]: `P`, `Q` are blocked forever, channel `a`
 --> a.esp:3:13
  |
3 | process P { in(a, $x); out(b, x); }
  |             ^
  `P` waits at a.esp:3:13
      for `Q` to write `a`
  `Q` waits at a.esp:4:13
      for `P` to write `b`
help: where a process may rest forever, write `idle in(..)` or `idle alt { .. }`

"#]]);
    }
}

#[test]
fn output_before_a_fault_is_written() {
    let program = "channel o(int) external in;\nprocess p { out(o, 1); out(o, 2); assert(false); }\n";
    everywhere(program, "", b"", 3, b"1\n2\n");
}

#[test]
fn a_malformed_message_says_where_and_what_is_expected() {
    let folder = Folder::with(&[("a.esp", ADD), ("in.txt", "1 2\n3 x\n")]);
    for engine in ENGINES {
        let run = format!("run --engine {engine} a.esp --bind pairC=text:in.txt");
        folder.qj(&run).assert().code(3).stdout_eq("3\n").stderr_eq(str![[r#"
error[H0406]: in.txt:2:3: expected `int`, found `x`
help: a line is one message of channel `pairC`: `int` `int`; values are written as in ESP, separated by blanks

"#]]);
    }
    folder
        .qj("run a.esp")
        .stdin(&b"1 2\n\xff"[..])
        .assert()
        .code(3)
        .stderr_eq("error[H0406]: standard input:2:1: the text is not UTF-8\n...\n");
    everywhere(ADD, "", b"1 2\n3 99999999999\n", 3, b"3\n");
    everywhere(ADD, "", b"1 2\n3 4 5\n", 3, b"3\n");
    everywhere(ADD, "", b"1 2\n3\n", 3, b"3\n");
}

#[test]
fn impossible_bindings_are_refused_with_a_correction() {
    let two = "channel a(int) external out;\nchannel b(int) external out;\nchannel c(int);\n\
               process p { while { alt { in(a, _) { } in(b, _) { } } } }\n\
               process q { out(c, 1); }\nprocess r { in(c, _); }\n";
    let drum = "channel a(int) external out = \"drum:d0\";\nprocess p { while { in(a, _); } }\n";
    let folder = Folder::with(&[("two.esp", two), ("drum.esp", drum), ("add.esp", ADD)]);
    let refused_with = |status: i32, arguments: &str, cause: &str| {
        let output = folder.qj(arguments).stdin("").output().expect("qj runs");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments}: {error}");
        assert!(error.contains(cause) && error.contains("help: "), "{arguments}: {error}");
    };
    let refused = |arguments: &str, cause: &str| refused_with(2, arguments, cause);
    refused("run two.esp", "channels `a` and `b` would both read standard input");
    refused("run two.esp --bind c=text:-", "channel `c` is not external");
    refused("run two.esp --bind d=text:-", "the program has no channel `d`");
    refused_with(1, "run two.esp --bind a=text:none.txt", "cannot read `none.txt`: no such file or directory");
    refused_with(1, "run two.esp --bind a=text:.", "cannot read `.`: it is a directory");
    refused_with(1, "run drum.esp", "channel `a`: there is no driver `drum`");
    refused("run add.esp --bind pairC=bytes:-", "driver `bytes` cannot serve channel `pairC`");
    refused("run add.esp --bind sumC=timer:1s", "a timer cannot take messages");
    refused("run add.esp --bind pairC=timer:1s", "driver `timer` cannot serve channel `pairC`");
    refused("run add.esp --engine c --seed 1", "engine `c` has one order of execution only");
    refused("run add.esp --engine c --record x", "`--record` needs the interpreter");
    refused_with(1, "run add.esp --extern none.c", "cannot read `none.c`: no such file");
    folder.qj("run drum.esp --bind a=text:-").stdin("1\n").assert().success();
    folder.qj("run none.esp").assert().code(1);
}

#[test]
fn extern_functions_work_with_every_engine() {
    let program = "type thing = record { a: u8, b: bytes[<=8] };\n\
                   extern pure fn twice(int) -> int;\nextern fn next() -> u64;\nextern fn shout(#bytes[<=8]);\n\
                   extern pure fn make(int, bool) -> thing;\nextern pure fn size(thing) -> int;\n\
                   channel o(int, u64, bytes[<=8], thing, int) external in;\n\
                   process p {\n  for i in 0..2 {\n    var b: #bytes[<=8] = #\"abc\";\n    shout(b);\n    \
                   var t = make(i, true);\n    out(o, twice(21), next(), freeze(b), t, size(t));\n  }\n}\n";
    let c = "#include \"program.h\"\n#include <string.h>\n\
             int32_t twice(int32_t x) { return 2 * x; }\nuint64_t next(void) { static uint64_t n; return ++n; }\n\
             void shout(bytes_8 *b) { b->data[0] = 'A'; b->data[b->length++] = '!'; }\n\
             void make(int32_t a, bool b, thing *r) { r->a = (uint8_t)a; r->b.length = b; r->b.data[0] = 'x'; }\n\
             int32_t size(const thing *v) { return v->b.length; }\n";
    let folder = Folder::with(&[("a.esp", program), ("a.c", c)]);
    let expected = "42 1 \"Abc!\" {0, \"x\"} 1\n42 2 \"Abc!\" {1, \"x\"} 1\n";
    folder.qj("run a.esp --extern a.c").assert().success().stdout_eq(expected);
    folder.qj("run a.esp --extern a.c --engine c").assert().success().stdout_eq(expected);
    folder.qj("build a.esp --extern a.c --emit exe -o a.out").assert().success();
    snapbox::cmd::Command::new(folder.path("a.out")).assert().success().stdout_eq(expected);
    std::fs::write(folder.path("wrong.c"), "int twice(").expect("a file can be written");
    folder
        .qj("run a.esp --extern wrong.c")
        .env("CC", "cc")
        .assert()
        .code(1)
        .stderr_eq("error[H0502]: the C compiler `cc` failed:\n...\n");
}

#[test]
fn what_c_prints_comes_in_order() {
    let program = "extern fn hello(int);\nchannel o(int) external in;\n\
                   process p { for i in 0..3 { hello(i); out(o, i); } }\n";
    let c = "#include <stdint.h>\n#include <stdio.h>\nvoid hello(int32_t i) { printf(\"hello %d\\n\", i); }\n";
    let folder = Folder::with(&[("a.esp", program), ("a.c", c)]);
    for engine in ENGINES {
        let run = format!("run a.esp --extern a.c --engine {engine}");
        folder.qj(&run).assert().success().stdout_eq("hello 0\n0\nhello 1\n1\nhello 2\n2\n");
    }
}

#[test]
fn an_idle_program_uses_no_processor_time() {
    let folder = Folder::with(&[("a.esp", ADD)]);
    for engine in ENGINES {
        let mut child = start(&folder, &format!("run a.esp --engine {engine}"));
        let mut input = child.stdin.take().expect("it is piped");
        let mut output = child.stdout.take().expect("it is piped");
        // After the first answer, the program has started and sleeps.
        input.write_all(b"1 2\n").expect("qj reads");
        let mut answer = [0; 2];
        output.read_exact(&mut answer).expect("qj answers");
        assert_eq!(&answer, b"3\n");
        await_idle(&[child.id()], 0, engine);
        drop(input);
        assert!(child.wait().expect("qj ends").success());
    }
}

#[test]
fn a_signal_ends_the_program_with_its_output_written() {
    let program = "channel i(int) external out;\nchannel o(int) external in;\n\
                   process p { while { in(i, $n); out(o, n); } }\n";
    let busy = "channel o(int) external in;\nprocess p { out(o, 7); while { yield; } }\n";
    let talk = "channel o(int) external in;\nchannel c(int);\n\
                process p { out(o, 7); while { out(c, 1); } }\nprocess q { while { in(c, _); } }\n";
    let folder = Folder::with(&[("a.esp", program), ("busy.esp", busy), ("talk.esp", talk)]);
    for (name, number) in [("-INT", 2), ("-TERM", 15)] {
        for arguments in ["run a.esp", "run a.esp --engine c"] {
            let mut child = start(&folder, arguments);
            child.stdin.as_mut().expect("it is piped").write_all(b"1\n").expect("qj reads");
            let mut answer = [0; 2];
            child.stdout.as_mut().expect("it is piped").read_exact(&mut answer).expect("qj answers");
            signal(&child, name);
            let status = child.wait().expect("qj ends");
            assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(number), "{arguments}");
        }
        for file in ["busy", "talk"] {
            folder.qj(&format!("build --emit exe {file}.esp -o {file}")).assert().success();
            let mut executable = Command::new(folder.path(file));
            executable.stdin(Stdio::null()).stdout(Stdio::piped());
            let children = [
                start(&folder, &format!("run {file}.esp")),
                start(&folder, &format!("run --engine c {file}.esp")),
                executable.spawn().expect("the executable runs"),
            ];
            for (mut child, what) in children.into_iter().zip(["interp", "c", "executable"]) {
                let mut answer = [0; 2];
                let output = child.stdout.as_mut().expect("it is piped");
                output.read_exact(&mut answer).expect("output is not kept forever");
                signal(&child, name);
                let status = child.wait().expect("it ends");
                assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(number), "{what} {file}");
                assert_eq!(&answer, b"7\n");
            }
        }
    }
}

#[test]
fn a_closed_pipe_ends_the_program_without_an_error() {
    let program = "channel o(int) external in;\nprocess p { var n = 0; while { out(o, n); n += 1; } }\n";
    let folder = Folder::with(&[("a.esp", program)]);
    for engine in ENGINES {
        let mut child = start(&folder, &format!("run a.esp --engine {engine}"));
        let mut some = [0; 4];
        child.stdout.as_mut().expect("it is piped").read_exact(&mut some).expect("qj writes");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("qj ends");
        let error = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!((output.status.code(), error.as_str()), (Some(0), ""), "{engine}");
    }
}

#[test]
fn a_program_continues_after_its_output_is_written() {
    let program = "channel o(int) external in;\nprocess p { for n in 0..20000 { out(o, n); } }\n";
    let folder = Folder::with(&[("a.esp", program)]);
    let all: String = (0..20_000).map(|number| format!("{number}\n")).collect();
    for engine in ENGINES {
        let run = folder.qj(&format!("run a.esp --engine {engine}")).timeout(HANG_TIMEOUT);
        run.assert().success().stdout_eq(all.as_str());
    }
}

#[test]
fn a_recorded_run_is_replayed_without_its_environment() {
    let program = "extern fn roll(#bytes[<=4]) -> int;\nchannel i(int) external out;\nchannel o(int, int) external in;\n\
                   process p {\n  while {\n    alt {\n      in(i, $n) { var b: #bytes[<=4] = #\"\"; out(o, n, roll(b)); \
                   assert(b.len == 1); }\n      after (1 ms) { out(o, -1, 0); exit(5); }\n    }\n  }\n}\n";
    let c = "#include <stdint.h>\n#include <stdlib.h>\n\
             int32_t roll(void *b) { *(uint16_t *)b = 1; return (int32_t)random(); }\n";
    let folder = Folder::with(&[("a.esp", program), ("a.c", c)]);
    let mut child = start(&folder, "run a.esp --extern a.c --record run.qjr");
    child.stdin.as_mut().expect("it is piped").write_all(b"1\n2\n").expect("qj reads");
    let recorded = child.wait_with_output().expect("qj ends");
    assert_eq!(recorded.status.code(), Some(5), "{}", String::from_utf8_lossy(&recorded.stderr));
    for name in ["a.esp", "a.c"] {
        std::fs::remove_file(folder.path(name)).expect("it was there");
    }
    let replayed = folder.qj("replay run.qjr").output().expect("qj runs");
    assert_eq!(replayed.status.code(), Some(5), "{}", String::from_utf8_lossy(&replayed.stderr));
    let said: String = String::from_utf8_lossy(&recorded.stdout).lines().map(|line| format!("o {line}\n")).collect();
    assert_eq!(String::from_utf8_lossy(&replayed.stdout), said);
    assert!(said.contains("o -1 0\n"), "{said}");

    let path = folder.path("run.qjr");
    let text = std::fs::read_to_string(&path).expect("the recording is text");
    std::fs::write(&path, text.replace(" out o -1 0", " out o -1 9")).expect("a file can be written");
    folder.qj("replay run.qjr").assert().code(1).stderr_eq(str![[r#"
error[H0205]: the replay differs at line [..] of the recording: `o` sends `-1 0`, recorded was `-1 9`
...
"#]]);
    std::fs::write(&path, &text[..text.len() - 10]).expect("a file can be written");
    folder.qj("replay run.qjr").assert().code(1).stderr_eq("error[H0202]: run.qjr:[..]\n...\n");
    folder.qj("replay none.qjr").assert().code(1);
}

#[test]
fn a_seed_chooses_an_order_and_keeps_it() {
    let program = "channel o(int) external in;\nprocess p[6] { out(o, int(@)); }\n";
    let folder = Folder::with(&[("a.esp", program)]);
    let run = |seed: u32| folder.qj(&format!("run a.esp --seed {seed}")).output().expect("qj runs").stdout;
    let orders: Vec<_> = (0..8).map(run).collect();
    assert_eq!(orders[3], run(3));
    assert!(orders.iter().any(|order| *order != orders[0]), "eight seeds and one order");
    folder.qj("run a.esp --seed 3 --record x.qjr").assert().success();
    folder.qj("replay x.qjr").assert().success();
}

#[test]
fn checked_arithmetic_faults() {
    let program = "channel i(int) external out;\nchannel o(int) external in;\n\
                   process p { while { in(i, $n); out(o, n + 1); } }\n";
    everywhere(program, "", b"2147483647\n", 0, b"-2147483648\n");
    let folder = Folder::with(&[("a.esp", program)]);
    for engine in ENGINES {
        let run = folder.qj(&format!("run a.esp --checked --engine {engine}")).stdin("2147483647\n");
        run.assert().code(3).stderr_eq("fault[overflow]: arithmetic overflow, in process `p`\n...\n");
    }
}

#[test]
fn build_does_not_make_a_folder_called_like_a_c_file() {
    let folder = Folder::with(&[("add.esp", ADD)]);
    folder.qj("build add.esp --emit c -o out/x.c").assert().code(2).stderr_eq(
        "error[H0102]: `out/x.c` names a file, and `--emit c` writes several into a folder\n\
         help: `-o out` writes `add.c`, `add.h` and `quaject/esp.h` there\n...\n",
    );
    assert!(!folder.path("out").exists(), "nothing is written");
    folder.qj("build add.esp --emit c -o x.c").assert().code(2).stderr_eq("...\nhelp: `-o .` writes [..]\n...\n");
    std::fs::create_dir(folder.path("x.c")).expect("a folder can be made");
    folder.qj("build add.esp --emit c -o x.c").assert().success();
    assert!(folder.path("x.c/add.c").is_file(), "a folder that is there is a folder");
}

#[test]
fn build_writes_c_that_compiles_by_itself_and_ir_that_reads() {
    let folder = Folder::with(&[("add.esp", ADD)]);
    folder
        .qj("build add.esp --emit c -o out --style poll --report")
        .assert()
        .success()
        .stdout_eq("...\n[..]adder[..]\n...\n");
    let compiled = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-c", "add.c", "-o", "add.o", "-I."])
        .current_dir(folder.path("out"))
        .status()
        .expect("cc runs");
    assert!(compiled.success());
    folder.qj("build add.esp --emit ir").assert().success().stdout_eq("...\nprocess adder[..]\n...\n");
    folder.qj("build add.esp").assert().code(2);
}

#[test]
fn a_new_project_runs_and_passes_its_test_at_once() {
    let folder = Folder::with(&[]);
    folder.qj("init first").assert().success().stdout_eq(str![[r#"
made qj.toml and first.esp with its test; now
  cd first
  qj run < first.in
  qj test
  qj build

"#]]);
    let project = folder.path("first");
    let qj = |arguments: &[&str]| {
        let mut command = Command::new(cargo_bin!("qj"));
        command
            .current_dir(&project)
            .args(arguments)
            .stdin(std::fs::File::open(project.join("first.in")).expect("made"));
        command.output().expect("qj runs")
    };
    assert_eq!(qj(&["run", "first.esp"]).stdout, b"\"sum\" 3\n\"sum\" 7\n\"sum\" 5\n");
    assert_eq!(qj(&["check", "first.esp"]).stderr, b"");
    assert_eq!(qj(&["fmt", "--check", "first.esp"]).status.code(), Some(0));
    assert_eq!(qj(&["test", "--engine", "interp", "--engine", "c"]).status.code(), Some(0));
    folder.qj("init first").assert().code(2).stderr_eq("error[H0105]: `first/qj.toml` exists already\n...\n");
}

/// A program of which one test executes one branch, and another one the other.
const SIGN: &str = "import \"twice.esp\";\nchannel numberC: int external out;\nchannel signC: int external in;\n\
                    process sign {\n  while {\n    in(numberC, $n);\n    if (n < 0) {\n      out(signC, -1);\n    } else {\n      \
                    out(signC, twice(n));\n    }\n    if (n == 7)\n      exit(7);\n  }\n}\n";

#[test]
fn tests_are_selected_and_reported_to_tools() {
    let folder = Folder::with(&[
        ("twice.esp", "fn twice(n: int) -> int {\n  return 2 * n;\n}\n"),
        ("plus.esp", SIGN),
        ("plus.in", "1\n"),
        ("plus.out", "2\n"),
        ("plus & minus.esp", SIGN),
        ("plus & minus.in", "1\n-3\n"),
        ("plus & minus.out", "2\n<-3>\n"),
        ("third.esp", "process p { }\n"),
        ("third.out", ""),
    ]);
    folder.qj("test --filter third --filter s.esp").assert().code(1).stdout_eq(str![[r#"
FAILED  ./plus & minus.esp
        standard output differs (- expected, + produced):
        @@ -1,2 +1,2 @@
         2
        -<-3>
        +-1
ok      ./plus.esp
ok      ./third.esp
2 passed, 1 failed

"#]]);
    folder.qj("test --filter none").assert().code(2).stderr_eq(str![[r#"
error[H0204]: none of 3 tests has `none` in its path
help: `qj test` without `--filter` lists all

"#]]);
    folder.qj("test --times --filter third").assert().success().stdout_eq(str![[r#"
ok      [..] s  ./third.esp
1 passed, 0 failed

"#]]);

    let output = folder.qj("test --json --junit report.xml --engine interp --engine jit").output().expect("qj runs");
    assert_eq!(output.status.code(), Some(1));
    let lines: Vec<serde_json::Value> = String::from_utf8_lossy(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("each line is JSON"))
        .collect();
    assert_eq!(lines.len(), 7);
    assert_eq!((&lines[6]["passed"], &lines[6]["failed"]), (&4.into(), &2.into()));
    assert_eq!((&lines[1]["test"], &lines[1]["engine"]), (&"./plus & minus.esp".into(), &"jit".into()));
    assert_eq!((&lines[0]["passed"], &lines[2]["passed"]), (&false.into(), &true.into()));
    assert!(lines[0]["report"][3] == "-<-3>" && lines[0]["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
    let xml = std::fs::read_to_string(folder.path("report.xml")).expect("it was written");
    let case = "<testcase classname=\".\" name=\"plus &amp; minus.esp (interp)\" time=\"";
    for part in ["<testsuites tests=\"6\" failures=\"2\" errors=\"0\" time=\"", case, "\n-&lt;-3&gt;\n+-1</failure>"] {
        assert!(xml.contains(part), "{part}: {xml}");
    }

    folder.qj("test --coverage lines.info --filter plus").assert().code(1).stdout_eq(str![[r#"
...
6 of 7 lines  plus & minus.esp, never executed: 13
5 of 7 lines  plus.esp, never executed: 8, 13
1 of 1 lines  twice.esp
coverage: 80.0 % of 15 lines with code

"#]]);
    let lines = std::fs::read_to_string(folder.path("lines.info")).expect("it was written");
    assert!(lines.contains("twice.esp\nDA:2,2\nLF:1\nLH:1\nend_of_record\n"), "{lines}");
    folder.qj("test --coverage lines.info --engine jit").assert().code(2).stderr_eq(str![[r#"
error[H0103]: `--coverage` needs the interpreter
help: leave out `--engine`: all engines have the same semantics

"#]]);
}

#[test]
fn lines_of_procedures_templates_and_modules_are_covered() {
    let main = "import \"std:format\" as format;\nimport \"step.esp\"(STEP = 2) as two;\n\
        channel oC: bytes[<=11] external in;\nproc show(out c: bytes[<=11], n: int) {\n  if (n > 9) {\n    \
        out(c, \"many\");\n  } else {\n    out(c, format.decimal(n));\n  }\n}\n\
        process counter(n: int) {\n  show(oC, two.next(n));\n}\nprocess a = counter(1);\n";
    let step = "pub param const STEP = 1;\npub fn next(n: int) -> int {\n  return n + STEP;\n}\n";
    let folder = Folder::with(&[("main.esp", main), ("step.esp", step)]);
    folder.qj("run main.esp --coverage lines.info").assert().success().stdout_eq("\"3\"\n");
    let lines = std::fs::read_to_string(folder.path("lines.info")).expect("it was written");
    let of_main = "SF:main.esp\nDA:5,1\nDA:6,0\nDA:8,1\nDA:12,1\nLF:4\nLH:3\nend_of_record\n";
    let of_step = "SF:step.esp\nDA:3,1\nLF:1\nLH:1\nend_of_record\n";
    assert_eq!(lines, format!("TN:\n{of_main}{of_step}"));
}

#[test]
fn test_shows_what_differs() {
    let folder = Folder::with(&[("a.esp", ADD), ("a.in", "1 2\n3 4\n"), ("a.out", "3\n8\n"), ("none.esp", ADD)]);
    folder.qj("test").assert().code(1).stdout_eq(str![[r#"
FAILED  ./a.esp
        standard output differs (- expected, + produced):
        @@ -1,2 +1,2 @@
         3
        -8
        +7
0 passed, 1 failed

"#]]);
    folder.qj("test --bless").assert().success();
    folder.qj("test").assert().success().stdout_eq("ok      ./a.esp\n1 passed, 0 failed\n");
    std::fs::write(folder.path("a.in"), "x\n").expect("a file can be written");
    folder.qj("test a.esp").assert().code(1).stdout_eq(str![[r#"
FAILED  a.esp
        exit status: expected 0, got 3
        standard output differs (- expected, + produced):
...
        | error[H0406]: standard input:1:1: expected `int`, found `x`
...
"#]]);
    folder
        .qj("test none.esp")
        .assert()
        .code(2)
        .stderr_eq("error[H0204]: `none.esp` is no test: there is no `none.out`\n...\n");
}

/// The remainder of the least number by -1 is 0 and needs no overflow; a union may have more cases than 16 bits count.
#[test]
fn engines_agree_at_the_ends_of_types() {
    let cases: Vec<String> = (0..65_537).map(|case| format!("t{case}")).collect();
    let wide = format!(
        "type u = union {{ {} }};\nchannel i: u external out;\nchannel o: u external in;\n\
         process p {{ while {{ in(i, $m); out(o, m); }} }}\n",
        cases.join(", ")
    );
    const REMAINDER: &str = "channel o(int) external in;\n\
                             process p { var x = -2147483648; var k = -1; out(o, x % k); }\n";
    let folder = Folder::with(&[("wide.esp", &wide), ("remainder.esp", REMAINDER), ("in.txt", "t65536\nt3\n")]);
    for engine in ["interp", "c", "jit"] {
        let wide = folder.qj(&format!("run wide.esp --bind i=text:in.txt --engine {engine}"));
        wide.assert().success().stdout_eq("t65536\nt3\n");
        folder.qj(&format!("run remainder.esp --checked --engine {engine}")).assert().success().stdout_eq("0\n");
    }
}

/// XML has no way to write most control characters.
#[test]
fn a_picture_is_xml_whatever_a_driver_is_called() {
    const ODD: &str = "channel c: bytes[<=8] external out = \"text:\\x00<\\x01\";\nprocess p { while { in(c, _); } }\n";
    let folder = Folder::with(&[("a.esp", ODD)]);
    folder.qj("graph a.esp -o a.svg").assert().success();
    let picture = std::fs::read_to_string(folder.path("a.svg")).expect("it was made");
    assert!(picture.contains("text:\u{fffd}&lt;\u{fffd}"), "{picture}");
    assert!(!picture.contains(|c: char| c.is_control() && c != '\n'), "{picture}");
}

/// The interpreter runs code that would take too long to compile.
#[test]
fn every_engine_runs_a_large_process() {
    let many = "if (x > 0) out(o, x); x += 1;\n".repeat(2000);
    let text = format!("channel o(int) external in;\nprocess p {{ var x = -1990;\n{many}}}\n");
    let folder = Folder::with(&[("a.esp", &text)]);
    for engine in ["interp", "jit"] {
        folder.qj(&format!("run a.esp --engine {engine}")).assert().success().stdout_eq("1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    }
}

/// A recorded run may have any number of spurious wakeups.
#[test]
fn replay_does_not_count_to_a_damaged_number() {
    const MERGE: &str = "channel i: int external out;\nchannel t(int) external out;\nchannel o: int external in;\n\
                         process p { while { alt { in(i, $v) { out(o, v); } in(t, _) { } } } }\n";
    let folder = Folder::with(&[("a.esp", MERGE), ("in.txt", "1\n2\n3\n")]);
    folder.qj("run a.esp --bind i=text:in.txt --bind t=timer:5ms,3 --record a.qjr").assert().success();
    let recording = std::fs::read_to_string(folder.path("a.qjr")).expect("it is there");
    let line = recording.lines().find(|line| line.contains(" in t ")).expect("the timer ticked");
    let event = line.split_once(' ').expect("it has a number").1;
    for number in [1 << 40, 1 << 62, u64::MAX] {
        let damaged = recording.replace(line, &format!("{number} {event}"));
        std::fs::write(folder.path("a.qjr"), damaged).expect("a file can be written");
        folder.qj("replay a.qjr").timeout(HANG_TIMEOUT).assert().code(1);
    }
}

#[test]
fn test_ignores_files_that_are_no_tests() {
    const ENDLESS: &str = "channel o: int external in;\nprocess p { out(o, 1); while (true) { yield; } }\n";
    let folder = Folder::with(&[("a.esp", ENDLESS), ("a.out", "old\n")]);
    let stopped = "FAILED  ./a.esp\n        stopped after 1 seconds\n        help: [..]\n0 passed, 1 failed\n";
    folder.qj("test --timeout 1").assert().code(1).stdout_eq(stopped);
    folder.qj("test --timeout 1 --bless").assert().code(1).stdout_eq(stopped);
    assert_eq!(std::fs::read_to_string(folder.path("a.out")).expect("it is there"), "old\n");
    assert!(!folder.path("a.status").exists());

    let folder = Folder::with(&[("a.esp", ADD), ("a.in", "1 2\n"), ("a.out", "3\n"), ("a.x.out", "")]);
    folder.qj("test --bless").assert().code(1).stdout_eq(
        "FAILED  ./a.esp\n        `qj run` rejects the files of the test:\n        error[H0104]: the program has no \
         channel `x`\n...\n",
    );
    assert_eq!(std::fs::read_to_string(folder.path("a.out")).expect("it is there"), "3\n");

    let folder = Folder::with(&[("a.esp", ADD), ("a.in", "1 2\n"), ("a.out", "3\r\n"), ("a.args", "--checked\n")]);
    folder.qj("test").assert().code(1).stdout_eq("...\n        -3/r\n        +3\n...\n");
    std::fs::write(folder.path("a.out"), "3\n").expect("a file can be written");
    folder.qj("test").assert().success();
    std::fs::remove_file(folder.path("a.in")).expect("it is there");
    std::fs::create_dir(folder.path("a.in")).expect("a folder can be made");
    folder.qj("test").assert().code(1).stdout_eq("...\n        `./a.in` is not a file\n...\n");
}

#[test]
fn a_terminated_command_leaves_no_child() {
    let sleep = format!("sleep 98{:05}", std::process::id());
    let program = format!(
        "channel o: u8 external in = \"exec:{sleep}; true\";\nprocess p {{ out(o, 1); while (true) {{ yield; }} }}\n"
    );
    let folder = Folder::with(&[("a.esp", &program), ("a.out", "")]);
    folder.qj("test --timeout 1").assert().code(1);
    let running = std::process::Command::new("pgrep").args(["-f", &sleep]).output().expect("pgrep runs");
    assert_eq!(String::from_utf8_lossy(&running.stdout), "");
}

#[test]
fn every_example_does_what_it_should_on_every_engine() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let folder = Folder::with(&[]);
    let report = folder.qj(&format!("test --engine interp --engine c {root}")).output().expect("qj runs");
    let text = String::from_utf8_lossy(&report.stdout).into_owned();
    assert_eq!(report.status.code(), Some(0), "{text}");
    assert!(text.lines().count() > 16, "{text}");
}

/// Linkers omit a library of which only weak symbols are referenced.
#[test]
fn extern_functions_come_from_a_shared_library() {
    if tool(&["cc"]).is_none() {
        return;
    }
    let program = "extern fn twice(int) -> int;\nchannel o(int) external in;\nprocess p { out(o, twice(21)); }\n";
    let folder = Folder::with(&[("a.esp", program), ("a.c", "int twice(int x) { return 2 * x; }\n")]);
    let compile = ["-shared", "-fPIC", "-Wl,-soname,libtwice.so.1", "-o", "libtwice.so.1", "a.c"];
    let status = Command::new("cc").current_dir(folder.path("")).args(compile).status().expect("cc runs");
    assert!(status.success());
    for engine in ENGINES {
        let run = format!("run a.esp --engine {engine} --extern libtwice.so.1");
        folder.qj(&run).env_remove("CC").assert().success().stdout_eq("42\n");
    }
    folder.qj("build a.esp --emit exe -o a.out --extern libtwice.so.1").env_remove("CC").assert().success();
    snapbox::cmd::Command::new(folder.path("a.out")).assert().success().stdout_eq("42\n");
    for engine in ENGINES {
        let run = format!("run a.esp --engine {engine} --extern none.so");
        folder
            .qj(&run)
            .assert()
            .code(1)
            .stderr_eq("error[H0503]: cannot read `none.so`: no such file or directory\n...\n");
    }
}

/// A program that is late for a tick gets the latest, however it runs.
#[test]
fn a_late_program_gets_the_latest_tick() {
    let program = "channel t(int) external out = \"timer:10ms,6\";\nchannel o(int) external in;\n\
                   process p { while { in(t, $k); out(o, k); alt { after (25 ms) { } } } }\n";
    let folder = Folder::with(&[("a.esp", program)]);
    for engine in ENGINES {
        let run = format!("run a.esp --clock virtual --engine {engine}");
        folder.qj(&run).assert().success().stdout_eq("1\n3\n6\n");
    }
    folder.qj("build a.esp --emit exe -o a.out").assert().success();
    let run = snapbox::cmd::Command::new(folder.path("a.out")).args(["--clock", "virtual"]);
    run.assert().success().stdout_eq("1\n3\n6\n");
}

#[test]
fn closed_streams_are_empty_and_take_everything() {
    let folder = Folder::with(&[("a.esp", ADD)]);
    folder.qj("build a.esp --emit exe -o a.out").assert().success();
    for line in ["./a.out <&-", "echo 1 2 | ./a.out >&-"] {
        let shell = snapbox::cmd::Command::new("sh").current_dir(folder.path("")).args(["-c", line]);
        shell.assert().success().stdout_eq("").stderr_eq("");
    }
}
