//! A peer is killed after every single instruction of an insert of three or of a pop, in Rust and in C, on every kind
//! of ring in shared memory. The survivors lose nothing that was published, see inserts completely or not at all, and
//! go on.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, OnceLock};

use quaject_queue::shared::{Message, Ring, bytes_needed};
use quaject_queue::{Consumer, Mapping, Multi, Producer, Side, Single, TryError};
use quaject_test_support::{Effort, tool};

const CAPACITY_LOG2: u32 = 3;
/// The number of the peer that dies.
const VICTIM: u8 = 7;

type SharedRing<P, C> = Arc<Ring<P, C, Mapping>>;

fn message(number: u64) -> Message {
    [number, 0, 0, 0, 0, 0, 0]
}

/// What the victim does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    PushesThree,
    Pops,
}

/// In which language.
#[derive(Clone, Copy)]
enum Language {
    Rust,
    C,
}

/// A ring that has wrapped around more than once, with the messages 1, 2 and 3 in it.
fn used_ring<P: Side, C: Side>() -> SharedRing<P, C> {
    let memory = Mapping::new(bytes_needed(CAPACITY_LOG2)).expect("Linux has memfd");
    let ring = Arc::new(Ring::create(memory, CAPACITY_LOG2, 1).expect("the memory is large enough"));
    let mut producer = Ring::producer(ring.clone()).expect("the ring is new");
    let mut consumer = Ring::consumer(ring.clone()).expect("the ring is new");
    for number in 0..14 {
        producer.push(message(number)).expect("it is taken at once");
        assert_eq!(consumer.pop(), Ok(message(number)));
    }
    producer.push_slice(&[1, 2, 3].map(message)).expect("there is room");
    ring
}

fn victim_program() -> Option<&'static Path> {
    static PROGRAM: OnceLock<Option<PathBuf>> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let compiler = tool(&["gcc", "clang"])?;
        let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("victim-{}", std::process::id()));
        let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
        let output = Command::new(compiler)
            .args(["-std=c11", "-O1", "-static", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-I"])
            .args([&sources.join("include"), Path::new("-o"), &program, &sources.join("tests/c/victim.c")])
            .output()
            .expect("`tool` has started it");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(program)
    });
    program.as_deref()
}

/// A child that is stopped right before its operation.
fn start<P: Side, C: Side>(ring: &SharedRing<P, C>, kind: u32, role: Role, language: Language) -> libc::pid_t {
    let child = match language {
        Language::Rust => {
            let memory = ring.memory().as_fd().try_clone_to_owned().expect("descriptors can be copied");
            let theirs = Mapping::of(memory).expect("it is sealed");
            let theirs = Arc::new(Ring::<P, C, _>::attach(theirs, CAPACITY_LOG2, VICTIM).expect("it is this ring"));
            let mut producer: Producer<SharedRing<P, C>> = Ring::producer(theirs.clone()).expect("an honest ring");
            let mut consumer: Consumer<SharedRing<P, C>> = Ring::consumer(theirs).expect("an honest ring");
            // SAFETY: the child allocates nothing and calls only what may be called after a fork.
            let child = unsafe { libc::fork() };
            if child == 0 {
                // SAFETY: plain system calls; `_exit` runs no destructor of what belongs to the parent.
                unsafe {
                    libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0);
                    libc::raise(libc::SIGSTOP);
                    match role {
                        Role::PushesThree => drop(producer.push_all([71, 72, 73].map(message))),
                        Role::Pops => drop(consumer.pop()),
                    }
                    libc::_exit(0);
                }
            }
            child
        }
        Language::C => {
            let fd = ring.memory().as_fd().as_raw_fd();
            let mut command = Command::new(victim_program().expect("asked before"));
            let role = match role {
                Role::PushesThree => "push",
                Role::Pops => "pop",
            };
            command.args([&fd.to_string(), &CAPACITY_LOG2.to_string(), &kind.to_string(), &VICTIM.to_string(), role]);
            // SAFETY: between fork and exec only `fcntl` is called; the number is this process's own in the child too.
            unsafe {
                command.pre_exec(move || {
                    if libc::fcntl(fd, libc::F_SETFD, 0) < 0 { Err(std::io::Error::last_os_error()) } else { Ok(()) }
                });
            }
            command.spawn().expect("the program was just made").id() as libc::pid_t
        }
    };
    assert!(child > 0, "a child starts");
    assert!(libc::WIFSTOPPED(wait_for(child)), "the victim stops before its operation");
    child
}

fn wait_for(child: libc::pid_t) -> libc::c_int {
    let mut status = 0;
    // SAFETY: the child is ours; the status is a live variable.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    status
}

/// How the victim ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Killed,
    /// It was done before.
    Exited,
}

/// Lets the child run that many instructions, then kills it.
fn kill_after(child: libc::pid_t, instructions: u32) -> End {
    for _ in 0..instructions {
        // SAFETY: the child is stopped and traced by us.
        assert_eq!(unsafe { libc::ptrace(libc::PTRACE_SINGLESTEP, child, 0, 0) }, 0, "the child can be stepped");
        if libc::WIFEXITED(wait_for(child)) {
            return End::Exited;
        }
    }
    // SAFETY: the child is ours and not yet waited for.
    assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
    assert!(libc::WIFSIGNALED(wait_for(child)));
    End::Killed
}

/// What the survivors take, after they recover from the victim where it holds a slot; ends when nothing is left.
fn take_rest<P: Side, C: Side>(consumer: &mut Consumer<SharedRing<P, C>>, survivor: &SharedRing<P, C>) -> Vec<u64> {
    let mut taken = Vec::new();
    for _ in 0..100 {
        match consumer.pop() {
            Ok(message) => taken.push(message[0]),
            Err(TryError::NotReady) => {
                // A consumer that died with a message blocks no other end before the ring is full, so recover at once.
                let before = taken.len();
                survivor.recover(VICTIM, |message| taken.push(message[0]));
                if taken.len() == before {
                    return taken;
                }
            }
            Err(TryError::Held { owner }) => {
                assert_eq!(owner, VICTIM);
                survivor.recover(owner, |message| taken.push(message[0]));
            }
            Err(TryError::Broken) => panic!("an honest peer that dies leaves an honest ring"),
        }
    }
    panic!("the ring has 8 slots and gave more than 100 messages");
}

/// Kills the victim after 0, 1, 2 ... instructions until it completes, and checks the ring each time.
fn at_every_instruction<P: Side, C: Side>(kind: u32, role: Role, language: Language) {
    if matches!(language, Language::C) && victim_program().is_none() {
        return;
    }
    let stride = Effort::wanted().pick(11, 1, 1);
    let (mut whole, mut not_at_all) = (0, 0);
    for instructions in (0..).step_by(stride) {
        let ring = used_ring::<P, C>();
        let child = start(&ring, kind, role, language);
        let end = kill_after(child, instructions);
        let at = format!("kind {kind}, killed after {instructions} instructions");

        let mut producer = Ring::producer(ring.clone()).expect("an honest ring");
        let mut consumer = Ring::consumer(ring.clone()).expect("an honest ring");
        producer.push(message(4)).expect("there is room");
        let mut taken = take_rest(&mut consumer, &ring);
        match role {
            Role::PushesThree => {
                // In order: a survivor's message comes behind an insert that was claimed before it.
                let expected: [&[u64]; 2] = [&[1, 2, 3, 71, 72, 73, 4], &[1, 2, 3, 4]];
                let which = expected.iter().position(|expected| taken == *expected);
                match which.unwrap_or_else(|| panic!("{at}: {taken:?}")) {
                    0 => whole += 1,
                    _ => not_at_all += 1,
                }
            }
            Role::Pops => {
                // Message 1 is lost with the victim only once its slot was given back.
                taken.sort();
                let expected: [&[u64]; 2] = [&[2, 3, 4], &[1, 2, 3, 4]];
                let which = expected.iter().position(|expected| taken == *expected);
                match which.unwrap_or_else(|| panic!("{at}: {taken:?}")) {
                    0 => whole += 1,
                    _ => not_at_all += 1,
                }
            }
        }
        // The ring works as before.
        for number in 100..120 {
            producer.push(message(number)).unwrap_or_else(|refused| panic!("{at}: {:?}", refused.error));
            assert_eq!(consumer.pop(), Ok(message(number)), "{at}");
        }
        if end == End::Exited {
            assert!(whole > 0 && not_at_all > 0, "both outcomes are seen: {whole} and {not_at_all}");
            return;
        }
        assert!(instructions < 20_000, "the operation takes a few hundred instructions");
    }
}

#[test]
fn the_only_producer_in_rust() {
    at_every_instruction::<Single, Single>(0, Role::PushesThree, Language::Rust);
}

#[test]
fn the_only_producer_in_c() {
    at_every_instruction::<Single, Single>(0, Role::PushesThree, Language::C);
}

#[test]
fn the_only_consumer_in_rust() {
    at_every_instruction::<Single, Single>(0, Role::Pops, Language::Rust);
}

#[test]
fn the_only_consumer_in_c() {
    at_every_instruction::<Single, Single>(0, Role::Pops, Language::C);
}

#[test]
fn one_of_many_producers_in_rust() {
    at_every_instruction::<Multi, Single>(1, Role::PushesThree, Language::Rust);
}

#[test]
fn one_of_many_producers_in_c() {
    at_every_instruction::<Multi, Single>(1, Role::PushesThree, Language::C);
}

#[test]
fn one_of_many_consumers_in_rust() {
    at_every_instruction::<Single, Multi>(2, Role::Pops, Language::Rust);
}

#[test]
fn one_of_many_consumers_in_c() {
    at_every_instruction::<Single, Multi>(2, Role::Pops, Language::C);
}

#[test]
fn a_producer_among_many_of_both() {
    at_every_instruction::<Multi, Multi>(3, Role::PushesThree, Language::Rust);
}

#[test]
fn a_consumer_among_many_of_both() {
    at_every_instruction::<Multi, Multi>(3, Role::Pops, Language::C);
}

/// Lets a child work for a while, then kills it wherever it is. `work` allocates nothing.
fn killed_at_random(nap_us: u64, work: impl FnOnce()) {
    // SAFETY: the child allocates nothing and calls only what may be called after a fork.
    let child = unsafe { libc::fork() };
    if child == 0 {
        work();
        // SAFETY: runs no destructor of what belongs to the parent.
        unsafe { libc::_exit(0) };
    }
    std::thread::sleep(std::time::Duration::from_micros(nap_us));
    // SAFETY: the child is ours and not yet waited for.
    assert_eq!(unsafe { libc::kill(child, libc::SIGKILL) }, 0);
    wait_for(child);
}

fn pause() {
    // SAFETY: takes nothing.
    unsafe { libc::sched_yield() };
}

/// Producers die one after the other while the consumer goes on: of each it sees a prefix, in complete inserts.
#[test]
fn producers_succeed_each_other_under_a_living_consumer() {
    let memory = Mapping::new(bytes_needed(CAPACITY_LOG2)).expect("Linux has memfd");
    let ring = Arc::new(Ring::<Single, Single, _>::create(memory, CAPACITY_LOG2, 1).expect("large enough"));
    let generations = Effort::wanted().pick(50, 1_000, 50_000);
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut consumer = Ring::consumer(ring.clone()).expect("the ring is new");
    let counts = std::thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let mut counts = vec![0; generations];
            loop {
                let last = done.load(std::sync::atomic::Ordering::Acquire);
                match consumer.pop() {
                    Ok(message) => {
                        let generation = message[0] as usize;
                        assert_eq!(message[1], counts[generation], "of generation {generation}");
                        counts[generation] += 1;
                    }
                    Err(why) if last => {
                        assert_eq!(why, TryError::NotReady);
                        return counts;
                    }
                    Err(why) => {
                        assert_eq!(why, TryError::NotReady);
                        pause();
                    }
                }
            }
        });
        for generation in 0..generations {
            let mut producer = Ring::producer(ring.clone()).expect("an honest ring");
            killed_at_random(50 + generation as u64 % 97, || {
                let mut number = 0;
                loop {
                    let insert = [0, 1, 2].map(|offset| [generation as u64, number + offset, 0, 0, 0, 0, 0]);
                    while producer.push_slice(&insert).is_err() {
                        pause();
                    }
                    number += 3;
                }
            });
        }
        done.store(true, std::sync::atomic::Ordering::Release);
        taking.join().expect("the consumer reports")
    });
    assert!(counts.iter().all(|count| count % 3 == 0), "an insert was torn apart: {counts:?}");
    assert!(counts.iter().any(|count| *count > 0), "no victim lived long enough");
}

/// Consumers die one after the other while the producer goes on: each message is seen, and twice only when its consumer
/// died before giving it back.
#[test]
fn consumers_succeed_each_other_under_a_living_producer() {
    let memory = Mapping::new(bytes_needed(CAPACITY_LOG2)).expect("Linux has memfd");
    let ring = Arc::new(Ring::<Single, Single, _>::create(memory, CAPACITY_LOG2, 1).expect("large enough"));
    let generations = Effort::wanted().pick(50, 1_000, 20_000);
    let book = Mapping::new(1 << 22).expect("Linux has memfd");
    // SAFETY: the mapping lives as long as the test and is reached through atomics only, here and in the children.
    let seen = unsafe {
        let bytes = quaject_queue::shared::Bytes::start(&book).cast::<std::sync::atomic::AtomicU8>();
        std::slice::from_raw_parts(bytes, 1 << 22)
    };
    let done = std::sync::atomic::AtomicBool::new(false);
    let mut producer = Ring::producer(ring.clone()).expect("the ring is new");
    let pushed = std::thread::scope(|scope| {
        let pushing = scope.spawn(|| {
            let mut number = 0;
            while !done.load(std::sync::atomic::Ordering::Relaxed) && number < 1 << 22 {
                match producer.push(message(number)) {
                    Ok(()) => number += 1,
                    Err(refused) => {
                        assert_eq!(refused.error, TryError::NotReady);
                        pause();
                    }
                }
            }
            number
        });
        for generation in 0..generations {
            let mut consumer = Ring::consumer(ring.clone()).expect("an honest ring");
            killed_at_random(50 + generation % 97, || {
                loop {
                    let taken = consumer.pop_each(1, |message| {
                        seen[message[0] as usize].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                    });
                    if taken.is_err() {
                        pause();
                    }
                }
            });
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
        pushing.join().expect("the producer reports")
    });
    let mut last = Ring::consumer(ring).expect("an honest ring");
    while let Ok(message) = last.pop() {
        seen[message[0] as usize].fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    let times: Vec<u8> = seen[..pushed as usize].iter().map(|n| n.load(std::sync::atomic::Ordering::Relaxed)).collect();
    assert!(times.iter().all(|times| *times >= 1), "a message was lost");
    let again = times.iter().map(|times| u64::from(*times) - 1).sum::<u64>();
    assert!(again <= generations, "{again} messages were seen twice, of {generations} deaths");
    assert!(pushed > 8, "the consumers were of some use");
}
