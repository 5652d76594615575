//! Events between the last poll and the sleep: each ends the sleep.

use super::Ports;
use crate::clock::Time;
use crate::externs::Externs;
use crate::outcome::WakeReason;
use crate::signals::Signals;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness};
use quaject_esp_ir::ir::{ChannelId, Program};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

const READER: &str = r#"esp-ir 1
memory auto
file "a.esp"
channel a(int) from_environment @0:1:9
process p @0:2:9 {
  site0 in a @0:2:21
block0:
  jump block1 @0:2:13
block1:
  wait fair idle @0:2:21
    in site0 a(_) -> block0 @0:2:21
}
"#;

/// What sleeps are compared with: far longer than a sleep that ends at once, and the end of one that does not.
const LONG: Duration = Duration::from_secs(20);

const WRITER: &str = r#"esp-ir 1
memory auto
file "a.esp"
channel a(int) to_environment @0:1:9
process p @0:2:9 {
  site0 out a @0:2:21
block0:
  jump block1 @0:2:13
block1:
  v0: int = constant 1 @0:2:21
  wait fair @0:2:21
    out site0 a ready(keep v0) -> block0 @0:2:21
}
"#;

/// A program that reads or writes bytes at a named pipe, and the pipe's other end, where nothing waits.
fn at_pipe<'p>(program: &'p Program, folder: &Path) -> (Ports<'p>, File) {
    let pipe = folder.join("pipe");
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .expect("a named pipe can be made");
    // Both ends: opening the writing end alone waits for a reader.
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(rustix::fs::OFlags::NONBLOCK.bits() as i32);
    let other = options.open(&pipe).expect("the pipe can be opened");
    let binding = format!("a=bytes:{}", pipe.display()).parse().expect("the binding is right");
    let ports = Ports::open(program, &[binding], &[], Externs::none(), Time::Real, None).expect("the pipe is there");
    (ports, other)
}

/// Asserts that a sleep ends at once.
fn does_not_sleep(ports: &mut Ports<'_>) {
    let signals = Signals::listen().expect("signals can be listened to");
    let started = Instant::now();
    let deadline_ns = ports.now_ns() + i64::try_from(LONG.as_nanos()).expect("seconds are few");
    assert_eq!(ports.sleep(Some(deadline_ns), &signals), WakeReason::Event);
    assert!(started.elapsed() < LONG / 2, "it slept for {:?}", started.elapsed());
}

#[test]
fn a_message_read_by_a_later_poll_ends_the_sleep() {
    let program = quaject_esp_ir::read::read(READER).expect("the program is right");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (mut ports, mut writer) = at_pipe(&program, folder.path());
    let a = ChannelId(0);
    assert_eq!(ports.peek(a), Offer::Pending);
    writer.write_all(b"x").expect("the pipe takes a byte");
    // Another poll reads the byte from the pipe, which is not ready any more.
    assert!(matches!(ports.peek(a), Offer::Message(_)));
    does_not_sleep(&mut ports);
    assert!(matches!(ports.peek(a), Offer::Message(_)));
}

#[test]
fn room_that_was_made_before_the_sleep_ends_it() {
    let program = quaject_esp_ir::read::read(WRITER).expect("the program is right");
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let (mut ports, mut reader) = at_pipe(&program, folder.path());
    let a = ChannelId(0);
    let mut sent = 0;
    while ports.readiness(a) == Readiness::Ready {
        ports.put(a, &[Datum::Int(1)]);
        sent += 1;
        assert!(sent < 100_000_000, "no end of what is held");
    }
    // The output that was held is written, as a poll of an input may do: no descriptor reports the room.
    let (mut read, mut bytes) = (0, [0; 65536]);
    while read < sent {
        read += reader.read(&mut bytes).expect("there is more to read");
        ports.flush();
    }
    does_not_sleep(&mut ports);
    assert_eq!(ports.readiness(a), Readiness::Ready);
}
