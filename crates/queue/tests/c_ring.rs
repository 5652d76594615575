//! `quaject/ring.h` and `quaject_queue::shared` are the same ring: equal layouts, and ends of both languages in
//! separate processes on every kind of ring.
#![cfg(target_os = "linux")]

use std::fmt::Write as _;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};

use quaject_queue::shared::{Message, Ring, bytes_needed, layout};
use quaject_queue::{Consumer, Mapping, Multi, Producer, Queue, Side, Single, Until, WaitError, Yield};
use quaject_test_support::{Effort, HANG_TIMEOUT, quick_run, tool};

/// Compiler, language and the name of what it makes.
const COMPILERS: &[(&str, &[&str])] = &[
    ("gcc", &["-std=c11"]),
    ("clang", &["-std=c11"]),
    ("g++", &["-x", "c++", "-std=c++17"]),
    ("clang++", &["-x", "c++", "-std=c++17"]),
];

fn compiled(compiler: &'static str, language: &[&str], source: &str) -> Option<PathBuf> {
    tool(&[compiler])?;
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{source}-{compiler}-{}", std::process::id()));
    let output = Command::new(compiler)
        .args(language)
        .args(["-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/include"))
        .arg("-o")
        .arg(&program)
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source))
        .output()
        .expect("`tool` has started it");
    assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    Some(program)
}

#[test]
fn both_languages_have_one_layout() {
    let mut ours = String::new();
    for (name, value) in layout::OFFSETS {
        writeln!(ours, "{name} {value}").expect("strings can be written");
    }
    for (compiler, language) in COMPILERS {
        let Some(program) = compiled(compiler, language, "layout.c") else { continue };
        let theirs = Command::new(&program).output().expect("the program was just made").stdout;
        assert_eq!(String::from_utf8_lossy(&theirs), ours, "{compiler}");
    }
}

/// The streams of `quaject/ring_stream.h`; the driver `ring:` of `qj run` is tested against them in `quaject-cli`.
#[test]
fn streams_end_as_their_writers_do() {
    if quick_run("ends of streams in C") {
        return;
    }
    for (compiler, language) in COMPILERS {
        let Some(program) = compiled(compiler, language, "stream.c") else { continue };
        // A name of a socket is short.
        let name = format!("stream-{compiler}-{}", std::process::id());
        let output = Command::new(&program).arg(name).current_dir(env!("CARGO_TARGET_TMPDIR")).output();
        let output = output.expect("the program was just made");
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn an_unfinished_insert_of_several_holds_its_inner_slots() {
    for (compiler, language) in COMPILERS {
        let Some(program) = compiled(compiler, language, "inner.c") else { continue };
        let output = Command::new(&program).output().expect("the program was just made");
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn laps_wrap_around_in_c() {
    for (compiler, language) in COMPILERS {
        let Some(program) = compiled(compiler, language, "laps.c") else { continue };
        let output = Command::new(&program).output().expect("the program was just made");
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn errors_of_the_caller_are_refused_in_c() {
    for (compiler, language) in COMPILERS {
        let Some(program) = compiled(compiler, language, "refused.c") else { continue };
        let output = Command::new(&program).output().expect("the program was just made");
        assert!(output.status.success(), "{compiler}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

type SharedRing<P, C> = Arc<Ring<P, C, Mapping>>;

/// Small, so that it is full and empty all the time.
const CAPACITY_LOG2: u32 = 3;

fn ring<P: Side, C: Side>(owner: u8) -> SharedRing<P, C> {
    let memory = Mapping::new(bytes_needed(CAPACITY_LOG2)).expect("Linux has memfd");
    Arc::new(Ring::create(memory, CAPACITY_LOG2, owner).expect("the memory is large enough"))
}

fn peer<P: Side, C: Side>(
    program: &Path,
    ring: &SharedRing<P, C>,
    kind: u32,
    owner: u8,
    role: &str,
    count: u64,
) -> Child {
    let fd = ring.memory().as_fd().try_clone_to_owned().expect("descriptors can be copied");
    let mut command = Command::new(program);
    // The copy for the child is inherited under its own number.
    // SAFETY: between fork and exec only `fcntl` is called.
    unsafe {
        use std::os::unix::process::CommandExt;
        let number = fd.as_raw_fd();
        command.pre_exec(move || {
            if libc::fcntl(number, libc::F_SETFD, 0) < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
        });
    }
    let arguments = [
        fd.as_raw_fd().to_string(),
        CAPACITY_LOG2.to_string(),
        kind.to_string(),
        owner.to_string(),
        role.into(),
        count.to_string(),
    ];
    command.args(arguments).stdout(Stdio::piped()).spawn().expect("the program was just made")
}

fn message(owner: u64, number: u64) -> Message {
    [owner, number, number * 3, !number, owner ^ number, 7, owner + number]
}

fn patience() -> Until<Yield> {
    Until::passed(HANG_TIMEOUT, Yield)
}

fn push_all<R>(mut producer: Producer<R>, owner: u64, count: u64)
where
    R: std::ops::Deref<Target: Queue<Item = Message>>,
{
    let (mut number, mut together) = (0, 1);
    while number < count {
        let batch: Vec<Message> = (number..count.min(number + together)).map(|n| message(owner, n)).collect();
        producer.push_slice_wait(&batch, patience()).expect("the peer takes");
        number += batch.len() as u64;
        together = together % 3 + 1;
    }
}

fn pop_all<R>(mut consumer: Consumer<R>, producers: &[u64], count: u64)
where
    R: std::ops::Deref<Target: Queue<Item = Message>>,
{
    let mut next = [0; 256];
    for _ in 0..count {
        let taken = consumer.pop_wait(patience()).expect("the peer pushes");
        let owner = taken[0];
        assert!(producers.contains(&owner));
        let number = next[owner as usize];
        assert_eq!(taken, message(owner, number));
        next[owner as usize] += 1;
    }
    let rest = consumer.pop_wait(|_| std::ops::ControlFlow::Break(()));
    assert!(matches!(rest, Err(WaitError::GaveUp(_))), "{rest:?}");
}

fn messages() -> u64 {
    Effort::wanted().pick(2_000, 50_000, 5_000_000)
}

/// The C programs, one of each compiler.
fn programs() -> &'static [PathBuf] {
    static PROGRAMS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    PROGRAMS.get_or_init(|| {
        COMPILERS.iter().filter_map(|(compiler, language)| compiled(compiler, language, "peer.c")).collect()
    })
}

fn finish(child: Child, count: Option<u64>) {
    let output = child.wait_with_output().expect("the child is ours");
    assert!(output.status.success(), "{:?}", output.status);
    if let Some(count) = count {
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), count.to_string());
    }
}

#[test]
fn one_c_producer_and_one_rust_consumer() {
    for program in programs() {
        let ring = ring::<Single, Single>(1);
        let child = peer(program, &ring, 0, 2, "push", messages());
        pop_all(Ring::consumer(ring).expect("the ring is new"), &[2], messages());
        finish(child, None);
    }
}

#[test]
fn one_rust_producer_and_one_c_consumer() {
    for program in programs() {
        let ring = ring::<Single, Single>(1);
        let child = peer(program, &ring, 0, 2, "pop", messages());
        push_all(Ring::producer(ring).expect("the ring is new"), 1, messages());
        finish(child, Some(messages()));
    }
}

#[test]
fn producers_of_both_languages_share_a_side() {
    for program in programs() {
        let ring = ring::<Multi, Single>(1);
        let children = [2, 3].map(|owner| peer(program, &ring, 1, owner, "push", messages()));
        let consumer = Ring::consumer(ring.clone()).expect("the ring is new");
        std::thread::scope(|scope| {
            scope.spawn(|| push_all(Ring::producer(ring.clone()).expect("the ring is new"), 1, messages()));
            pop_all(consumer, &[1, 2, 3], 3 * messages());
        });
        children.into_iter().for_each(|child| finish(child, None));
    }
}

#[test]
fn consumers_in_c_share_a_side() {
    for program in programs() {
        let ring = ring::<Single, Multi>(1);
        let children = [2, 3].map(|owner| peer(program, &ring, 2, owner, "pop", messages() / 2));
        push_all(Ring::producer(ring).expect("the ring is new"), 1, messages() / 2 * 2);
        children.into_iter().for_each(|child| finish(child, Some(messages() / 2)));
    }
}

#[test]
fn many_meet_many() {
    for program in programs() {
        let ring = ring::<Multi, Multi>(1);
        let pops = [2, 3].map(|owner| peer(program, &ring, 3, owner, "pop", messages()));
        let push = peer(program, &ring, 3, 4, "push", messages());
        push_all(Ring::producer(ring).expect("the ring is new"), 1, messages());
        finish(push, None);
        pops.into_iter().for_each(|child| finish(child, Some(messages())));
    }
}
