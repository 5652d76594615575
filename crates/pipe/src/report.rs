//! What the steps of a run found out.

use std::fmt;
use std::ops::Deref;

use crate::step::MAX_STEPS;

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
// C has it as `struct qj_pipe_report`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Report {
    numbers: [u64; MAX_STEPS],
    findings: [Finding; MAX_STEPS],
    steps: u8,
    /// The first step that makes a checksum; [`NO_STEP`] if none does.
    first_checksum: u8,
}

/// No step has this number.
const NO_STEP: u8 = u8::MAX;

impl Report {
    /// A report of no step.
    #[inline]
    pub(crate) fn new() -> Report {
        Report { numbers: [0; MAX_STEPS], findings: [Finding::Nothing; MAX_STEPS], steps: 0, first_checksum: NO_STEP }
    }

    /// Adds what the next step found; there are at most [`MAX_STEPS`].
    #[inline]
    pub(crate) fn add(&mut self, finding: Finding, number: u64) {
        let at = usize::from(self.steps) % MAX_STEPS;
        (self.findings[at], self.numbers[at]) = (finding, number);
        if finding == Finding::Checksum && self.first_checksum == NO_STEP {
            self.first_checksum = at as u8;
        }
        self.steps += 1;
    }

    /// The number of a step, below [`MAX_STEPS`].
    #[inline]
    pub(crate) fn number(&mut self, step: usize) -> &mut u64 {
        &mut self.numbers[step % MAX_STEPS]
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
        self.numbers.get(usize::from(self.first_checksum)).map(|sum| !(*sum as u16))
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

/// What a run has found out: the report, which its runner keeps and lends, and the first checksum at hand.
//
// A run of a few kilobytes is over when its stores have left their queue, in order. Whoever passes on the checksum right after
// it would have that wait for the report's way into memory and back.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Found<'r> {
    report: &'r Report,
    /// Not complemented; 0 if there is none.
    checksum: u16,
}

impl<'r> Found<'r> {
    /// Of a report whose first checksum is known, not complemented.
    #[inline(always)]
    pub(crate) fn with_checksum(report: &'r Report, sum: u64) -> Found<'r> {
        Found { report, checksum: sum as u16 }
    }

    /// The report, as long as the runner is not used again.
    #[inline]
    pub fn report(self) -> &'r Report {
        self.report
    }

    /// The Internet checksum as a header holds it, complemented, of the first step that makes one.
    #[inline(always)]
    pub fn checksum(&self) -> Option<u16> {
        let sum = self.checksum;
        if self.report.first_checksum == NO_STEP { None } else { Some(!sum) }
    }
}

impl<'r> From<&'r Report> for Found<'r> {
    #[inline(always)]
    fn from(report: &'r Report) -> Found<'r> {
        Found { report, checksum: report.checksum().map_or(0, |complement| !complement) }
    }
}

impl Deref for Found<'_> {
    type Target = Report;

    #[inline]
    fn deref(&self) -> &Report {
        self.report
    }
}

impl fmt::Debug for Found<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report.fmt(out)
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.outcomes()).finish()
    }
}
