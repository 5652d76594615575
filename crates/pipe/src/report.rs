//! What the steps of a run found out.

use std::fmt;

use crate::step::MOST_STEPS;

/// What one step found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The step changes bytes and finds out nothing.
    Nothing,
    /// The sum of RFC 1071, not complemented, as the number whose bytes are in network order. 0 only for data that are
    /// all zero.
    Checksum(u16),
    /// The CRC as protocols send it, that is complemented.
    Crc32c(u32),
    /// Bytes.
    Count(u64),
    /// The total of a user's step.
    Total(u64),
}

/// Which outcome a number is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Finding {
    Nothing,
    Checksum,
    Crc32c,
    Count,
    Total,
}

/// What all steps of a run found out, in order.
//
// Numbers and their kinds apart: a report is made for every run, also of a few bytes, and this way fits few registers.
// The sum of the first checksum is there twice: whoever asks for it right after a run, and waits for it, does not look for its
// step first. C has it as `struct qj_pipe_report`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Report {
    numbers: [u64; MOST_STEPS],
    findings: [Finding; MOST_STEPS],
    steps: u8,
    has_checksum: bool,
    /// That of the first step that makes one, not complemented; 0 if none does.
    checksum: u16,
}

impl Report {
    /// A report of no step.
    #[inline]
    pub(crate) fn new() -> Report {
        Report {
            numbers: [0; MOST_STEPS],
            findings: [Finding::Nothing; MOST_STEPS],
            steps: 0,
            has_checksum: false,
            checksum: 0,
        }
    }

    /// Adds what the next step found; there are at most [`MOST_STEPS`].
    #[inline]
    pub(crate) fn add(&mut self, finding: Finding, number: u64) {
        let at = usize::from(self.steps) % MOST_STEPS;
        (self.findings[at], self.numbers[at]) = (finding, number);
        self.steps += 1;
        self.has_checksum |= finding == Finding::Checksum;
        self.know_checksum();
    }

    /// Has the first checksum from the numbers, after they have changed.
    #[inline]
    pub(crate) fn know_checksum(&mut self) {
        self.checksum = self.first(Finding::Checksum).map_or(0, |sum| sum as u16);
    }

    /// The number of a step that makes the only checksum.
    #[inline(always)]
    pub(crate) fn set_only_checksum(&mut self, step: usize, sum: u64) {
        self.numbers[step % MOST_STEPS] = sum;
        self.checksum = sum as u16;
    }

    /// The number of a step, below [`MOST_STEPS`].
    #[inline]
    pub(crate) fn number(&mut self, step: usize) -> &mut u64 {
        &mut self.numbers[step % MOST_STEPS]
    }

    /// What each step found out.
    pub fn outcomes(&self) -> impl Iterator<Item = Outcome> + '_ {
        let all = self.findings.iter().zip(&self.numbers).take(usize::from(self.steps));
        all.map(|(finding, number)| match finding {
            Finding::Nothing => Outcome::Nothing,
            Finding::Checksum => Outcome::Checksum(*number as u16),
            Finding::Crc32c => Outcome::Crc32c(*number as u32),
            Finding::Count => Outcome::Count(*number),
            Finding::Total => Outcome::Total(*number),
        })
    }

    #[inline]
    fn first(&self, finding: Finding) -> Option<u64> {
        self.findings.iter().position(|own| *own == finding).map(|at| self.numbers[at])
    }

    /// The Internet checksum as a header holds it, complemented, of the first step that makes one.
    #[inline]
    pub fn checksum(&self) -> Option<u16> {
        let sum = self.checksum;
        if self.has_checksum { Some(!sum) } else { None }
    }

    /// The CRC-32C of the first step that makes one.
    #[inline]
    pub fn crc32c(&self) -> Option<u32> {
        self.first(Finding::Crc32c).map(|crc| crc as u32)
    }

    /// The total of the first step of the user's that has one.
    #[inline]
    pub fn total(&self) -> Option<u64> {
        self.first(Finding::Total)
    }

    /// The bytes that the first step that counts has counted.
    #[inline]
    pub fn count(&self) -> Option<u64> {
        self.first(Finding::Count)
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.outcomes()).finish()
    }
}
