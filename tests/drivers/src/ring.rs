//! `ring:`, between programs, and between programs and C with `quaject/ring_stream.h`, including peers that violate the
//! protocol.

use super::{Running, engines, eventually, qj, text};
use quaject_test_support::processor::await_idle;
use quaject_test_support::{Effort, tool};
use std::fs;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

/// Converts numbers and lengths of messages to messages of distinct bytes, as `peer.c` writes them.
const WRITER: &str = "
channel lengthC: u32 external out = \"text:-\";
channel ringC: bytes[<=70000] external in = \"ring:ring\";
process writer {
  var number: u32 = 0;
  while {
    idle in(lengthC, $length);
    var data: #bytes[<=70000] = #\"\";
    data.len = int(length);
    for i in 0..int(length) { data[i] = u8(number * 31 + u32(i)); }
    out(ringC, freeze(data));
    number += 1;
  }
}
";

/// Counts and sums messages, as `peer.c` does.
const READER: &str = "
channel ringC: union { data: bytes[<=70000], eos } external out = \"ring:ring\";
channel sayC(u32, u32, u64) external in = \"text:-\";
process reader {
  var count: u32 = 0;
  var all: u32 = 0;
  var sum: u64 = 0;
  var more = true;
  while (more) {
    in(ringC, $event);
    match event {
      data |> $content => {
        count += 1;
        all += u32(content.len);
        for i in 0..content.len { sum = sum * 31 + u64(content[i]); }
      }
      eos |> {} => more = false;
    }
  }
  out(sayC, count, all, sum);
}
";

/// The output of a reader of such messages.
fn summary(lengths: &[usize]) -> (usize, usize, u64) {
    let mut sum = 0_u64;
    for (number, length) in lengths.iter().enumerate() {
        for at in 0..*length {
            sum = sum.wrapping_mul(31).wrapping_add(u64::from((number * 31 + at) as u8));
        }
    }
    (lengths.len(), lengths.iter().sum(), sum)
}

fn expected(lengths: &[usize]) -> String {
    let (count, all, sum) = summary(lengths);
    format!("{count} {all} {sum}\n")
}

/// A writer of messages of such lengths, in a folder.
fn writer(folder: &Path, engine: &str, lengths: &[usize], arguments: &[&str]) -> Running {
    let lines: String = lengths.iter().map(|length| format!("{length}\n")).collect();
    fs::write(folder.join("lengths"), lines).expect("the folder is writable");
    let mut command = qj(folder, engine, WRITER, arguments);
    command.args(["--bind", "lengthC=text:lengths"]);
    Running::start(&mut command)
}

/// A folder for each program, and a name both can reach.
fn folders() -> (tempfile::TempDir, tempfile::TempDir, String) {
    let folder = || tempfile::tempdir().expect("a temporary folder");
    let (one, other) = (folder(), folder());
    let path = one.path().join("ring").display().to_string();
    (one, other, path)
}

fn peer(folder: &Path) -> Option<PathBuf> {
    let compiler = tool(&["cc"])?;
    let program = folder.join("peer");
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let output = Command::new(compiler)
        .args(["-std=c11", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(here.join("../../crates/queue/include"))
        .arg(here.join("src/peer.c"))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("the compiler was found");
    assert!(output.status.success(), "{}", text(&output.stderr));
    Some(program)
}

fn started(program: &Path, arguments: &[&str]) -> Running {
    let mut command = Command::new(program);
    Running::start(command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()))
}

fn kill(running: &Running) {
    let status = Command::new("kill").args(["-KILL", &running.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()));
}

/// Waits for the name, which exists while one side waits for the other.
fn await_first_side(path: &str) {
    eventually("a name", || fs::symlink_metadata(path).ok());
}

/// Waits until the name is removed, and the first messages have been sent.
fn await_connection(path: &str) {
    eventually("a meeting", || fs::symlink_metadata(path).err());
    std::thread::sleep(Duration::from_millis(300));
}

fn assert_output(output: &Output, stdout: &str, what: &str) {
    assert_eq!(text(&output.stdout), stdout, "{what}: {}", text(&output.stderr));
    assert_eq!(output.status.code(), Some(0), "{what}: {}", text(&output.stderr));
}

fn assert_stopped(output: &Output, cause: &str, what: &str) {
    let complaint = text(&output.stderr);
    assert!(complaint.contains(cause) && complaint.contains("\nhelp: "), "{what}: {complaint}");
    assert_ne!(output.status.code(), Some(0), "{what}");
}

#[test]
fn messages_of_any_length_arrive_complete_in_any_order_of_connection() {
    let lengths = [0, 1, 2, 47, 48, 49, 103, 104, 105, 0, 1_472, 1_784, 1_785, 70_000];
    for engine in engines() {
        for (first, size) in [("writer", "64"), ("reader", "128"), ("writer", "1K"), ("reader", "64K")] {
            let (one, other, path) = folders();
            let bind = ["--bind", &format!("ringC=ring:{path},size={size}")];
            let what = format!("{engine}, {first} first, {size}");
            let read = || Running::start(&mut qj(other.path(), engine, READER, &bind));
            let (written, reading) = if first == "writer" {
                let written = writer(one.path(), engine, &lengths, &bind);
                await_first_side(&path);
                (written, read())
            } else {
                let reading = read();
                await_first_side(&path);
                (writer(one.path(), engine, &lengths, &bind), reading)
            };
            assert_output(&reading.end(), &expected(&lengths), &what);
            assert_output(&written.end(), "", &what);
            assert!(fs::symlink_metadata(&path).is_err(), "{what}: the name is left");
        }
    }
}

#[test]
fn a_stream_without_messages_ends() {
    for (engine, lengths) in engines().into_iter().flat_map(|engine| [(engine, &[][..]), (engine, &[0][..])]) {
        let (one, other, path) = folders();
        let bind = ["--bind", &format!("ringC=ring:{path}")];
        let written = writer(one.path(), engine, lengths, &bind);
        let reading = Running::start(&mut qj(other.path(), engine, READER, &bind));
        assert_output(&reading.end(), &expected(lengths), engine);
        assert_output(&written.end(), "", engine);
    }
}

#[test]
fn a_long_stream_has_equal_bytes() {
    let count = Effort::wanted().pick(20_000, 100_000, 1_000_000);
    let lengths: Vec<usize> = (0..count).map(|number| number % 61).collect();
    for engine in engines() {
        // A ring that is nearly always full, and one that is not.
        for size in ["1K", "64K"] {
            let (one, other, path) = folders();
            let bind = ["--bind", &format!("ringC=ring:{path},size={size}")];
            let written = writer(one.path(), engine, &lengths, &bind);
            let reading = Running::start(&mut qj(other.path(), engine, READER, &bind));
            assert_output(&reading.end(), &expected(&lengths), &format!("{engine}, {size}"));
            assert_output(&written.end(), "", engine);
        }
    }
}

#[test]
fn c_reads_and_writes_the_same_streams() {
    for engine in engines() {
        let (one, other, path) = folders();
        let Some(peer) = peer(one.path()) else { return };
        let bind = ["--bind", &format!("ringC=ring:{path}")];
        for length in [0, 1, 2, 48, 49, 104, 105, 1_784, 1_785, 70_000] {
            let count = if length > 2_000 { 20 } else { 3_000 };
            let what = format!("{engine}, {count} messages of {length} bytes");
            let lengths = vec![length; count];
            let writing = started(&peer, &["write", &path, &count.to_string(), &length.to_string()]);
            let reading = Running::start(&mut qj(other.path(), engine, READER, &bind));
            assert_output(&reading.end(), &expected(&lengths), &what);
            assert_output(&writing.end(), "", &what);
            let written = writer(other.path(), engine, &lengths, &bind);
            let reading = started(&peer, &["read", &path]);
            let (count, all, sum) = summary(&lengths);
            assert_output(&reading.end(), &format!("{count} {all} {sum:x}\n"), &what);
            assert_output(&written.end(), "", &what);
        }
    }
}

/// Receives one message, then none until a timer expires.
const SLOW: &str = "
channel ringC: bytes[<=70000] external out = \"ring:ring\";
channel sayC: u32 external in = \"text:-\";
process slow {
  var count: u32 = 0;
  in(ringC, _);
  out(sayC, 1);
  alt { after (5 s) { } }
  while { in(ringC, _); count += 1; out(sayC, count); }
}
";

#[test]
fn a_full_ring_is_waited_for_without_the_processor() {
    for engine in engines() {
        let (one, other, path) = folders();
        let bind = ["--bind", &format!("ringC=ring:{path},size=256")];
        let written = writer(one.path(), engine, &[1; 40], &bind);
        await_first_side(&path);
        let reading = Running::start(&mut qj(other.path(), engine, SLOW, &bind));
        // Both sleep: one for room, one for the timer.
        await_connection(&path);
        await_idle(&[written.id(), reading.id()], 1, engine);
        let said: String = [1].into_iter().chain(1..40).map(|number| format!("{number}\n")).collect();
        assert_output(&reading.end(), &said, engine);
        assert_output(&written.end(), "", engine);
    }
}

#[test]
fn an_idle_reader_uses_no_processor() {
    for engine in engines() {
        let (one, other, path) = folders();
        let Some(peer) = peer(one.path()) else { return };
        let bind = ["--bind", &format!("ringC=ring:{path}")];
        // Without a writer, then with one that sends nothing.
        let reading = Running::start(&mut qj(other.path(), engine, READER, &bind));
        await_first_side(&path);
        for peers in ["no writer", "a silent writer"] {
            let _writer = (peers == "a silent writer").then(|| started(&peer, &["silent", &path]));
            await_idle(&[reading.id()], 1, &format!("{engine}: an idle program with {peers}"));
        }
        // The writer was killed, which ends the stream.
        assert_output(&reading.end(), &expected(&[]), engine);
    }
}

#[test]
fn a_killed_writer_ends_the_stream_and_a_killed_reader_is_an_error() {
    for engine in engines() {
        let (one, other, path) = folders();
        let Some(peer) = peer(one.path()) else { return };
        let bind = ["--bind", &format!("ringC=ring:{path}")];
        let reading = Running::start(&mut qj(other.path(), engine, READER, &bind));
        await_first_side(&path);
        let writing = started(&peer, &["stuck", &path]);
        await_connection(&path);
        kill(&writing);
        let output = reading.end();
        let said = text(&output.stdout);
        let numbers: Vec<usize> = said.split_whitespace().filter_map(|number| number.parse().ok()).collect();
        assert!(numbers[0] > 0 && numbers[1] == numbers[0] * 100, "{engine}: {said} {}", text(&output.stderr));
        // The other direction: a reader that has received a message is killed.
        let writing = writer(one.path(), engine, &vec![60_000; 20_000], &bind);
        await_first_side(&path);
        let reading = Running::start(&mut qj(other.path(), engine, SLOW, &bind));
        await_connection(&path);
        kill(&reading);
        let output = writing.end();
        assert_stopped(&output, &format!("the reader of ring `{path}` has disconnected"), engine);
    }
}

/// Sends a message, and more until the reader has disconnected, however late that is.
const PAUSING: &str = "channel ringC: bytes[<=8] external in = \"ring:r\";
process pausing { out(ringC, \"a\"); while { alt { after (10 ms) { } } out(ringC, \"b\"); } }";
const TAKING_ONE: &str = "channel ringC: bytes[<=8] external out = \"ring:r\";
process taking { in(ringC, $m); assert(m == \"a\"); exit(0); }";

#[test]
fn writing_to_a_disconnected_reader_is_an_error() {
    for engine in engines() {
        let (one, other, path) = folders();
        let bind = ["--bind", &format!("ringC=ring:{path}")];
        let writing = Running::start(&mut qj(one.path(), engine, PAUSING, &bind));
        await_first_side(&path);
        assert_output(&Running::start(&mut qj(other.path(), engine, TAKING_ONE, &bind)).end(), "", engine);
        assert_stopped(&writing.end(), &format!("the reader of ring `{path}` has disconnected"), engine);
    }
}

#[test]
fn the_socket_of_a_killed_process_is_replaced() {
    let (one, other, path) = folders();
    let bind = ["--bind", &format!("ringC=ring:{path}")];
    let first = Running::start(&mut qj(other.path(), "interp", READER, &bind));
    await_first_side(&path);
    kill(&first);
    drop(first);
    assert!(fs::symlink_metadata(&path).is_ok(), "the name remains");
    let written = writer(one.path(), "interp", &[3, 2, 1], &bind);
    let reading = Running::start(&mut qj(other.path(), "interp", READER, &bind));
    assert_output(&reading.end(), &expected(&[3, 2, 1]), "after a dead reader");
    assert_output(&written.end(), "", "after a dead reader");
}

#[test]
fn a_file_that_is_no_ring_is_refused_and_kept() {
    let (_one, other, path) = folders();
    let bind = ["--bind", &format!("ringC=ring:{path}")];
    let refused = |what: &str| {
        let output = Running::start(&mut qj(other.path(), "interp", READER, &bind)).end();
        assert_stopped(&output, &format!("`{path}` is no ring"), what);
    };
    for content in [&b""[..], b"QJRING1\0", &[0xff; 8192]] {
        fs::write(&path, content).expect("the folder is writable");
        refused("a file");
        assert_eq!(fs::read(&path).expect("it is still there"), content);
        fs::remove_file(&path).expect("it is ours");
    }
    let listener = UnixListener::bind(&path).expect("the folder is writable");
    refused("a socket of another kind");
    drop(listener);
    let Some(peer) = peer(other.path()) else { return };
    let _ = fs::remove_file(&path);
    for what in ["small", "unsealed", "empty", "huge", "none", "noise"] {
        let liar = started(&peer, &[what, &path]);
        await_first_side(&path);
        refused(what);
        kill(&liar);
        let _ = fs::remove_file(&path);
    }
}

#[test]
fn a_peer_that_violates_the_protocol_is_refused() {
    for engine in engines() {
        let (one, other, path) = folders();
        let Some(peer) = peer(one.path()) else { return };
        let bind = ["--bind", &format!("ringC=ring:{path}")];
        for (what, cause) in [
            ("long", "holds a message of 4294967295 bytes, and channel `ringC` takes at most 70000"),
            ("kind", "holds what no peer writes"),
            ("state", "holds what no peer writes"),
            ("half", "has disconnected in the middle of a message"),
        ] {
            let liar = started(&peer, &[what, &path]);
            let output = Running::start(&mut qj(other.path(), engine, READER, &bind)).end();
            assert_stopped(&output, cause, &format!("{engine}, {what}"));
            drop(liar);
        }
    }
}

#[test]
fn a_ring_has_one_writer_and_one_reader() {
    let (one, other, path) = folders();
    let bind = ["--bind", &format!("ringC=ring:{path}")];
    let first = Running::start(&mut qj(other.path(), "interp", READER, &bind));
    await_first_side(&path);
    let second = Running::start(&mut qj(one.path(), "interp", READER, &bind)).end();
    assert_stopped(&second, &format!("ring `{path}` has a reader already"), "two readers");
    // The first one still waits, and is served.
    let written = writer(one.path(), "interp", &[5], &bind);
    assert_output(&first.end(), &expected(&[5]), "the first reader");
    assert_output(&written.end(), "", "its writer");
    let both = "
        channel inC: bytes[<=8] external out; channel outC: bytes[<=8] external in;
        process p { while { in(inC, $m); out(outC, m); } }";
    let binds = ["--bind", "inC=ring:r", "--bind", "outC=ring:r"];
    let output = Running::start(&mut qj(one.path(), "interp", both, &binds)).end();
    assert_stopped(&output, "channels `inC` and `outC` share one ring, which has one direction", "both ends");
}

/// Single bytes, and an end that is sent while the writer runs on.
#[test]
fn bytes_and_an_end_may_be_messages() {
    let sender = "
        channel outC: union { byte: u8, eos } external in;
        channel doneC: u8 external in = \"text:-\";
        process p {
          for i in 0..3 { out(outC, byte |> u8(100 * i)); }
          out(outC, eos |> {});
          alt { after (1 s) { } }
          out(doneC, 1);
        }";
    let receiver = "
        channel inC: int external out;
        channel sayC: int external in = \"text:-\";
        process p { var more = true; while (more) { in(inC, $n); out(sayC, n); more = n >= 0; } exit(0); }";
    for engine in engines() {
        let (one, other, path) = folders();
        let sending =
            Running::start(&mut qj(one.path(), engine, sender, &["--bind", &format!("outC=ring:{path},size=64")]));
        let bind = ["--bind", &format!("inC=ring:{path}")];
        assert_output(
            &Running::start(&mut qj(other.path(), engine, receiver, &bind)).end(),
            "0\n100\n200\n-1\n",
            engine,
        );
        assert_output(&sending.end(), "1\n", engine);
        let Some(peer) = peer(one.path()) else { return };
        for (length, cause) in [("0", "0 bytes, and those of channel `inC` are one byte each"), ("2", "2 bytes, and")] {
            let _writing = started(&peer, &["write", &path, "1", length]);
            let output = Running::start(&mut qj(other.path(), engine, receiver, &bind)).end();
            assert_stopped(&output, &format!("holds a message of {cause}"), engine);
        }
    }
}

#[test]
fn invalid_rings_are_refused_by_name() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let long = "x".repeat(120);
    for (driver, cause) in [
        ("ring:missing/ring".to_string(), "cannot connect at `missing/ring`: no such file or directory"),
        (format!("ring:{long}"), "the name is too long"),
        ("ring:ring,size=17M".to_string(), "that is no size of a ring"),
    ] {
        let bind = ["--bind", &format!("ringC={driver}")];
        let output = Running::start(&mut qj(folder.path(), "interp", READER, &bind)).end();
        assert!(text(&output.stderr).contains(cause), "{driver}: {}", text(&output.stderr));
    }
    let program = "channel c: record { a: u8, b: u8 } external out; process p { in(c, _); }";
    let output = Running::start(&mut qj(folder.path(), "interp", program, &["--bind", "c=ring:r"])).end();
    assert_stopped(&output, "driver `ring` cannot serve channel `c`", "a record");
}

#[test]
fn faults_are_injected_as_for_any_driver() {
    let (one, other, path) = folders();
    let bind = ["--bind", &format!("ringC=ring:{path}"), "--fault", "ring:loss=100%"];
    let written = writer(one.path(), "interp", &[1, 2, 3], &bind);
    let reading = Running::start(&mut qj(other.path(), "interp", READER, &bind[..2]));
    assert_output(&reading.end(), &expected(&[]), "all are lost");
    assert!(text(&written.end().stderr).contains("faults on channel `ringC`: 3 lost messages"));
}
