//! Rings whose memory holds anything at all, between pages that must not be accessed: every operation terminates,
//! nothing outside of the ring is accessed, and each result is one that the operation documents. In Rust here;
//! `tests/c/hostile.c` does the same in C.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use quaject_queue::shared::{AttachError, Bytes, HEADER_BYTES, RawBytes, Ring, bytes_needed};
use quaject_queue::{Mapping, Multi, Side, Single};
use quaject_test_support::{Effort, Random, tool};

const CAPACITY_LOG2: u32 = 3;
const WORDS: usize = bytes_needed(CAPACITY_LOG2) / 8;
const PAGE: usize = 4096;

/// A page whose end is the ring's end, between two that may not be touched. Lives as long as the test's process.
fn between_walls() -> *mut u8 {
    // SAFETY: new mappings at addresses of the kernel's choice.
    unsafe {
        let anonymous = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let walls = libc::mmap(std::ptr::null_mut(), 3 * PAGE, libc::PROT_NONE, anonymous, -1, 0);
        assert_ne!(walls, libc::MAP_FAILED);
        let page = walls.cast::<u8>().add(PAGE);
        assert_eq!(libc::mprotect(page.cast(), PAGE, libc::PROT_READ | libc::PROT_WRITE), 0);
        page.add(PAGE - bytes_needed(CAPACITY_LOG2))
    }
}

/// A word that is likely to break an invariant: small, close to a valid one, or any.
fn hostile_word(random: &mut Random) -> u64 {
    let (lap, low) = (random.below(4), random.next());
    match random.below(4) {
        0 => random.next(),
        1 => (lap << 16) | (low & 0xffff),
        2 => (lap << 16) | (low % 8),
        3.. => random.below(3).wrapping_neg().wrapping_add(random.below(40)),
    }
}

fn words(start: *mut u8) -> &'static [AtomicU64] {
    // SAFETY: the page is never unmapped, and every access is atomic.
    unsafe { std::slice::from_raw_parts(start.cast::<AtomicU64>(), WORDS) }
}

/// Every operation, after every kind of garbage.
fn torture<P: Side, C: Side>(rounds: u64, seed: u64) {
    let start = between_walls();
    let memory = words(start);
    // SAFETY: the page stays, and only this test's rings use it.
    let bytes = || unsafe { RawBytes::new(start, bytes_needed(CAPACITY_LOG2)) };
    let ring = Arc::new(Ring::<P, C, _>::create(bytes(), CAPACITY_LOG2, 1).expect("the memory is large enough"));
    let mut producer = Ring::producer(ring.clone()).expect("the ring is new");
    let mut consumer = Ring::consumer(ring.clone()).expect("the ring is new");
    let mut random = Random(seed);
    let mut answers = [0_u64; 2];
    for _ in 0..rounds {
        // Hints, bells, states, words: all but the identity, which was checked and is never read again.
        for _ in 0..random.next() % 4 {
            let at = 16 + random.next() as usize % (WORDS - 16);
            memory[at].store(hostile_word(&mut random), Ordering::Relaxed);
        }
        let worked = match random.next() % 8 {
            0 => producer.push([1; 7]).is_ok(),
            1 => producer.push_slice(&[[2; 7]; 3]).is_ok(),
            2 => consumer.pop().is_ok(),
            3 => consumer.pop_each(5, drop).is_ok(),
            4 => {
                ring.recover(random.next() as u8, drop);
                true
            }
            5 => Ring::producer(ring.clone()).map(|end| producer = end).is_ok(),
            6 => Ring::consumer(ring.clone()).map(|end| consumer = end).is_ok(),
            7.. => {
                // Sometimes the ring is reset to a valid state, so that not every operation fails.
                memory[16..].iter().for_each(|word| word.store(0, Ordering::Relaxed));
                producer = Ring::producer(ring.clone()).expect("zeros are an empty ring");
                consumer = Ring::consumer(ring.clone()).expect("zeros are an empty ring");
                true
            }
        };
        answers[usize::from(worked)] += 1;
    }
    assert!(answers[0] > rounds / 100 && answers[1] > rounds / 100, "{answers:?}");
}

fn rounds() -> u64 {
    Effort::wanted().pick(20_000, 500_000, 100_000_000)
}

#[test]
fn garbage_on_a_ring_of_one_and_one() {
    torture::<Single, Single>(rounds(), 1);
}

#[test]
fn garbage_on_a_ring_of_many_producers() {
    torture::<Multi, Single>(rounds(), 2);
}

#[test]
fn garbage_on_a_ring_of_many_consumers() {
    torture::<Single, Multi>(rounds(), 3);
}

#[test]
fn garbage_on_a_ring_of_many_and_many() {
    torture::<Multi, Multi>(rounds(), 4);
}

/// A malicious peer that never stops, while a correct end works.
#[test]
fn a_peer_that_writes_all_the_time() {
    let start = between_walls();
    // SAFETY: the page stays, and only this test's ring uses it.
    let bytes = unsafe { RawBytes::new(start, bytes_needed(CAPACITY_LOG2)) };
    let ring = Arc::new(Ring::<Multi, Multi, _>::create(bytes, CAPACITY_LOG2, 1).expect("the memory is large enough"));
    let (done, memory) = (AtomicBool::new(false), words(start));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random(9);
            while !done.load(Ordering::Relaxed) {
                memory[16 + random.next() as usize % (WORDS - 16)].store(hostile_word(&mut random), Ordering::Relaxed);
            }
        });
        let mut producer = Ring::producer(ring.clone()).expect("many producers have no position");
        let mut consumer = Ring::consumer(ring.clone()).expect("many consumers have no position");
        for _ in 0..rounds() {
            let _ = producer.push_all([[1; 7]; 2]);
            let _ = consumer.pop();
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn the_c_header_withstands_garbage() {
    let Some(compiler) = tool(&["gcc", "clang"]) else { return };
    let sources = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{}", std::process::id()));
    let output = Command::new(compiler)
        .args(["-std=c11", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"])
        .args(["-fno-sanitize-recover=all", "-g", "-I"])
        .args([&sources.join("include"), Path::new("-o"), &program, &sources.join("tests/c/hostile.c")])
        .output()
        .expect("`tool` has started it");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let output = Command::new(&program).arg(rounds().to_string()).output().expect("the program was just made");
    assert!(output.status.success(), "{:?}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

#[test]
fn memory_that_is_no_such_ring_is_refused() {
    let start = between_walls();
    // SAFETY: the page stays, and only this test's rings use it.
    let bytes = |size| unsafe { RawBytes::new(start, size) };
    let whole = bytes_needed(CAPACITY_LOG2);
    let attach = |size, log2, owner| Ring::<Single, Single, _>::attach(bytes(size), log2, owner).map(drop);
    assert_eq!(attach(whole, CAPACITY_LOG2, 1), Err(AttachError::Header), "no ring was created there");
    assert!(Ring::<Single, Single, _>::create(bytes(whole), CAPACITY_LOG2, 1).is_ok());
    assert_eq!(attach(whole, CAPACITY_LOG2, 1), Ok(()));
    assert_eq!(attach(whole, CAPACITY_LOG2, 0), Err(AttachError::Owner));
    assert_eq!(attach(whole, CAPACITY_LOG2 - 1, 1), Err(AttachError::Header));
    assert_eq!(attach(whole, CAPACITY_LOG2 + 1, 1), Err(AttachError::Size));
    assert_eq!(attach(whole - 1, CAPACITY_LOG2, 1), Err(AttachError::Size));
    assert_eq!(attach(HEADER_BYTES, 40, 1), Err(AttachError::Size));
    // SAFETY: still inside the page.
    let crooked = unsafe { RawBytes::new(start.sub(8), whole) };
    assert_eq!(Ring::<Single, Single, _>::attach(crooked, CAPACITY_LOG2, 1).map(drop), Err(AttachError::Size));
    let other = Ring::<Multi, Single, _>::attach(bytes(whole), CAPACITY_LOG2, 1);
    assert_eq!(other.map(drop), Err(AttachError::Header));
}

/// Laps wrap around after 2^48: ends continue across the wrap, and their successors resume at the right position.
#[test]
fn laps_wrap_around() {
    let start = between_walls();
    let (memory, slots) = (words(start), 1 << CAPACITY_LOG2);
    // SAFETY: the page stays, and only this test's rings use it.
    let bytes = || unsafe { RawBytes::new(start, bytes_needed(CAPACITY_LOG2)) };
    for left in 0..=slots {
        memory.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        let ring = Ring::<Single, Single, _>::create(bytes(), CAPACITY_LOG2, 1).expect("the memory is large enough");
        let ring = Arc::new(ring);
        for slot in 0..slots {
            memory[HEADER_BYTES / 8 + slot * 8].store(((1 << 48) - 1) << 16, Ordering::Relaxed);
        }
        let mut taken = 0;
        for pushed in 0..3 * slots as u64 {
            let mut producer = Ring::producer(ring.clone()).expect("the ring is in order");
            let mut consumer = Ring::consumer(ring.clone()).expect("the ring is in order");
            if pushed - taken == left as u64 {
                if left == 0 {
                    producer.push([pushed; 7]).expect("there is room");
                }
                assert_eq!(consumer.pop(), Ok([taken; 7]));
                taken += 1;
            }
            if left != 0 {
                producer.push([pushed; 7]).expect("there is room");
            }
        }
    }
}

#[test]
fn rings_follow_each_other() {
    for capacity_log2 in 0..8 {
        assert_eq!(bytes_needed(capacity_log2) % 128, 0, "2 to the {capacity_log2} slots");
    }
}

#[test]
fn memory_that_can_vanish_is_refused() {
    // SAFETY: a C string and a flag.
    let file = unsafe { libc::memfd_create(c"loose".as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the descriptor is new and ours.
    let file = unsafe { <std::os::fd::OwnedFd as std::os::fd::FromRawFd>::from_raw_fd(file) };
    let error = Mapping::of(file).expect_err("a peer could shrink it");
    assert_eq!(error.to_string(), "the file is not sealed against shrinking, so its memory could vanish");
    assert_eq!(Mapping::new(PAGE).expect("Linux has memfd").size(), PAGE);
}
