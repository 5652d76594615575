//! The questions a test may ask of its surroundings: how much work is wanted, is this tool on the machine, is a port
//! taken. Every crate's tests ask them here, so that one environment variable means one thing. And the shapes of
//! hostile files, which several crates must bear, and random numbers. Knows no crate of the product.
//!
//! `QJ_TEST` says how much: `quick` (small samples), `full` (everything that guards a commit) or `soak`
//! (hours; the proof before a release). Unset means `full`, except that a missing tool is then skipped, loudly, so that
//! `cargo test -p CRATE` works on a bare machine. `cargo xtask test` always sets the variable.
#![forbid(unsafe_code)]

pub mod hostile;
pub mod processor;
pub mod qj;
pub mod random;

pub use random::Random;

use std::env;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// The time after which a test counts as hanging. No verdict depends on the speed of the machine, so that it is longer
/// than any operation of a test takes on a busy one.
pub const HANG_TIMEOUT: Duration = Duration::from_secs(1_200);

/// How much work the tests are asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effort {
    /// Small samples, nothing that compiles many files.
    Quick,
    /// What guards a commit: everything, with samples that fit into CI.
    Full,
    /// The long proof: samples limited by patience only.
    Soak,
}

impl Effort {
    /// The effort `QJ_TEST` asks for.
    ///
    /// # Panics
    /// When the variable holds another word: a misspelt `QJ_TEST=quik` must not run the wrong suite.
    pub fn wanted() -> Effort {
        Effort::parse(env::var("QJ_TEST").ok().as_deref())
    }

    /// The same for a given value of the variable.
    fn parse(value: Option<&str>) -> Effort {
        match value {
            Some("quick") => Effort::Quick,
            None | Some("full") => Effort::Full,
            Some("soak") => Effort::Soak,
            Some(other) => panic!("QJ_TEST is `{other}`; it may be `quick`, `full` or `soak`"),
        }
    }

    /// Picks the size of a sample: `let programs = Effort::wanted().pick(100, 10_000, 1_000_000);`
    pub fn pick<T>(self, quick: T, full: T, soak: T) -> T {
        match self {
            Effort::Quick => quick,
            Effort::Full => full,
            Effort::Soak => soak,
        }
    }
}

/// The number in an environment variable by which a task of `xtask` says how long a long run shall be; none: as
/// [`Effort`] has it.
///
/// # Panics
/// When the variable holds no number.
pub fn wanted_number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable} is `{text}`; it may be a number")))
}

/// Skips the rest of a long test in a quick run: `if quick_run("a million programs") { return; }`
pub fn quick_run(what: &str) -> bool {
    match Effort::wanted() {
        Effort::Quick => {
            announce(&format!("skipped in a quick run: {what}"));
            true
        }
        Effort::Full | Effort::Soak => false,
    }
}

/// The first of `candidates` that runs on this machine, to be started with [`Command::new`].
///
/// Without any, the test says which are missing and should return; it fails instead where the tools are promised:
/// when `CI` is `true`, or when `cargo xtask test` has set `QJ_TEST` after checking its table of tools.
///
/// # Panics
/// When no candidate runs although the tools are promised.
pub fn tool(candidates: &[&'static str]) -> Option<&'static str> {
    let found = candidates.iter().copied().find(|candidate| runs(candidate));
    if found.is_none() {
        let missing = candidates.join("` or `");
        let promised =
            env::var("CI").as_deref() == Ok("true") || matches!(env::var("QJ_TEST").as_deref(), Ok("full" | "soak"));
        assert!(!promised, "this test needs `{missing}`; see xtask/src/tools.rs for the package that has it");
        announce(&format!("SKIPPED a test: the machine has no `{missing}` (`cargo xtask test` installs it)"));
    }
    found
}

/// The C compiler for programs that a test compiles to run them once: in a quick run the quickest, else `cc`, which is
/// what users have.
pub fn quick_compiler() -> &'static str {
    if Effort::wanted() == Effort::Quick && runs("tcc") { "tcc" } else { "cc" }
}

/// Whether `name --version` can be started at all; what it answers does not matter.
fn runs(name: &str) -> bool {
    Command::new(name)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok()
}

/// Writes past the test harness's capture, which swallows `eprintln!` of a test that passes.
fn announce(text: &str) {
    // A closed standard error is no reason to fail a test that has been skipped.
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// The first of `count` ports in a row for a server that a test starts: free, for TCP and UDP. The system gives
/// them to no process that asks for any port, as connections do all the time, and no two tests get the same.
///
/// # Panics
///
/// If all are taken.
pub fn free_ports(count: u16) -> u16 {
    /// Below what Linux gives away by itself.
    const RANGE: std::ops::Range<u32> = 10_000..32_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let is_free = |port: u16| {
        UdpSocket::bind((Ipv4Addr::LOCALHOST, port)).is_ok() && TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()
    };
    let places = RANGE.end - RANGE.start - u32::from(count);
    // Tests of several processes run at once.
    let start = std::process::id().wrapping_mul(97);
    for _ in 0..1000 {
        let taken = NEXT.fetch_add(u32::from(count), Ordering::Relaxed);
        let first = (RANGE.start + start.wrapping_add(taken) % places) as u16;
        if (first..first + count).all(is_free) {
            return first;
        }
    }
    panic!("a thousand ports are taken");
}

/// Whether a UDP socket is bound to this port. An attempt to bind it would disturb a process that wants it.
pub fn is_udp_port_taken(port: u16) -> bool {
    let ending = format!(":{port:04X}");
    ["/proc/net/udp", "/proc/net/udp6"].iter().filter_map(|table| std::fs::read_to_string(table).ok()).any(|table| {
        table.lines().any(|line| line.split_whitespace().nth(1).is_some_and(|address| address.ends_with(&ending)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_free_and_different() {
        let ports: Vec<u16> = (0..100).map(|_| free_ports(2)).collect();
        let all: std::collections::BTreeSet<u16> = ports.iter().flat_map(|first| [*first, first + 1]).collect();
        assert_eq!(all.len(), 200);
        let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, ports[99] + 2));
        assert_ne!(free_ports(1), ports[99] + 2);
        drop(taken);
    }

    #[test]
    fn the_variable_has_three_words_and_a_default() {
        assert_eq!(Effort::parse(None), Effort::Full);
        assert_eq!(Effort::parse(Some("quick")), Effort::Quick);
        assert_eq!(Effort::parse(Some("full")), Effort::Full);
        assert_eq!(Effort::parse(Some("soak")), Effort::Soak);
    }

    #[test]
    #[should_panic(expected = "QJ_TEST is `quik`")]
    fn a_misspelt_word_is_refused() {
        Effort::parse(Some("quik"));
    }

    #[test]
    fn a_tool_is_one_that_starts() {
        assert!(runs("cargo"));
        assert!(!runs("no-such-tool-anywhere"));
    }
}
