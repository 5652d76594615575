//! Malformed packets for each program with a network or a line, through its real drivers: packets of real peers that
//! are damaged, truncated, joined or reordered, and noise. Afterwards the program must serve a complete transaction,
//! must not have reported an error, and must use no more memory than after half of the packets.
//!
//! `cargo xtask malformed [PROGRAM] --packets 10000000` is the long run; a test run sends a sample.

mod datagrams;
mod frames;
mod lines;
mod streams;
mod tcp;

use super::repository;
use quaject_test_support::qj::qj_binary;
use quaject_test_support::random::Random;
use quaject_test_support::{Effort, HANG_TIMEOUT, quick_compiler, wanted_number};
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The maximal growth of a program's memory in the second half of the packets.
const GROWTH_KIB: u64 = 512;

/// A program under test, by its process.
struct Watch {
    name: &'static str,
    pid: u32,
    begun: Instant,
    wanted: u64,
    sent: u64,
    /// Its memory after half of the packets.
    half_kib: Option<u64>,
}

impl Watch {
    fn over(name: &'static str, process: &Child) -> Watch {
        let wanted = wanted_number("QJ_PACKETS").unwrap_or_else(|| Effort::wanted().pick(2_000, 20_000, 10_000_000));
        Watch { name, pid: process.id(), begun: Instant::now(), wanted, sent: 0, half_kib: None }
    }

    /// Records that packets were sent; whether more are wanted.
    fn goes_on(&mut self, packets: u64) -> bool {
        self.sent += packets;
        if self.half_kib.is_none() && self.sent >= self.wanted / 2 {
            self.half_kib = Some(self.memory_kib());
        }
        self.sent < self.wanted
    }

    /// The anonymous memory of the process (proc(5)).
    fn memory_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.pid)).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
        let kib = line.and_then(|line| line.split_whitespace().next()).and_then(|kib| kib.parse().ok());
        kib.unwrap_or_else(|| panic!("{}: the program has ended after {} packets", self.name, self.sent))
    }

    /// Whether the process waits for something.
    fn sleeps(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).unwrap_or_default();
        stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('S'))
    }

    /// Waits until a condition holds, with a timeout.
    fn wait_until(&self, what: &str, mut is_so: impl FnMut() -> bool) {
        let begun = Instant::now();
        let mut turns = 0_u32;
        while !is_so() {
            assert!(
                begun.elapsed() < HANG_TIMEOUT,
                "{}: after {} packets, {what} takes too long",
                self.name,
                self.sent
            );
            std::thread::sleep(Duration::from_micros(20));
            turns += 1;
            if turns.is_multiple_of(1_000) {
                self.memory_kib(); // fails if the program has ended
            }
        }
    }

    /// All packets are sent, and the program has served since. `more` is further information on the run.
    fn end(&self, more: &str) {
        let (half_kib, end_kib) = (self.half_kib.expect("it was half way once"), self.memory_kib());
        println!(
            "{}: {} packets in {:.1} s, memory {half_kib} KiB half way, {end_kib} KiB at the end; {more}",
            self.name,
            self.sent,
            self.begun.elapsed().as_secs_f64()
        );
        assert!(end_kib <= half_kib + GROWTH_KIB, "{}: from {half_kib} to {end_kib} KiB", self.name);
    }
}

/// A `qj run` that these tests start.
struct Run {
    process: Child,
    complaints: File,
}

impl Run {
    fn start(folder: &Path, program: &str, arguments: &[&str], stdin: Stdio, stdout: Stdio) -> Run {
        let complaints = tempfile::tempfile().expect("a temporary file");
        let mut command = Command::new(qj_binary());
        command.env("CC", quick_compiler()).current_dir(folder).arg("run").arg(repository(program)).args(arguments);
        let stderr = complaints.try_clone().expect("it is open");
        let process = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn().expect("cargo built qj");
        Run { process, complaints }
    }

    fn said(&mut self) -> String {
        let mut text = String::new();
        self.complaints.rewind().and_then(|()| self.complaints.read_to_string(&mut text)).expect("it is readable");
        text
    }

    /// Waits until it accepts connections.
    fn wait_until(&mut self, mut is_there: impl FnMut() -> bool) {
        let begun = Instant::now();
        while !is_there() {
            let ended = self.process.try_wait().expect("it is our child");
            assert!(ended.is_none() && begun.elapsed() < HANG_TIMEOUT, "it does not begin: {ended:?} {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Stops it. It may have counted messages that were lost on their way to it, or were none of its drivers', and
    /// nothing else; returns how many were lost.
    fn stop(mut self) -> u64 {
        let ended = self.process.try_wait().expect("it is our child");
        assert!(ended.is_none(), "it has ended already: {ended:?} {}", self.said());
        let signalled = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        assert!(signalled.is_ok_and(|status| status.success()));
        self.process.wait().expect("it is our child");
        let said = self.said();
        let mut lost = 0;
        for line in said.lines() {
            let note = line.strip_prefix("note: ").filter(|note| note.contains(" lost at the driver of "));
            let note = note.unwrap_or_else(|| panic!("the program has complained:\n{said}"));
            if note.contains("faster than the program received") {
                lost += note.split(' ').next().and_then(|count| count.parse::<u64>().ok()).expect("a number");
            }
        }
        lost
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        // If it has ended, its output says why.
        if std::thread::panicking() {
            eprintln!("{}", self.said());
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Moves this thread, and processes that it starts, to a network namespace with a loopback interface only.
fn in_own_network() {
    nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).expect("the tests of programs may make networks");
    // No other process can send packets there.
    fs::write("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1").expect("the network is ours");
    let routes = "ip link set lo up && ip route add 224.0.0.0/4 dev lo";
    assert!(Command::new("sh").args(["-c", routes]).status().is_ok_and(|status| status.success()));
}

/// A copy that is damaged once in this many times.
fn maybe_damaged(random: &mut Random, packet: Vec<u8>, one_in: u64) -> Vec<u8> {
    if random.below(one_in) == 0 { damaged(random, packet) } else { packet }
}

/// Replaces, inserts or removes bits, bytes, numbers or parts of a packet.
fn damaged(random: &mut Random, mut packet: Vec<u8>) -> Vec<u8> {
    for _ in 0..=random.below(3) {
        let at = random.below(packet.len() as u64 + 1) as usize;
        let end = (at + 1 + random.below(16) as usize).min(packet.len());
        match random.below(8) {
            0 if at < end => packet[at] ^= 1 << random.below(8),
            1 if at < end => packet[at] = random.byte(),
            2 if at < end => packet[at] = [0, 1, 0x7f, 0x80, 0xff][random.below(5) as usize],
            3 if at + 2 <= packet.len() => {
                let edge: u16 = [0, 1, 0x7fff, 0x8000, 0xffff][random.below(5) as usize];
                packet[at..at + 2].copy_from_slice(&edge.to_be_bytes());
            }
            4 => packet.truncate(at),
            5 => drop(packet.drain(at..end)),
            6 => {
                let piece = packet[at..end].to_vec();
                packet.splice(at..at, piece);
            }
            _ => {
                let noise: Vec<u8> = (0..=random.below(8)).map(|_| random.byte()).collect();
                packet.splice(at..at, noise);
            }
        }
    }
    packet
}
