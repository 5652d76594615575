//! The results of the steps of a run.

use std::fmt;
use std::ops::Deref;

use crate::step::MAX_STEPS;

/// The result of one step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The step changes bytes and has no result.
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

/// The kind of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum OutcomeKind {
    Nothing,
    Checksum,
    Crc32c,
    Count,
    Total,
}

/// The results of all steps of a run, in order.
//
// Numbers and kinds in separate arrays: a report is made for every run, also of a few bytes, and is compact this way.
// In C it is `struct qj_pipe_report`.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Report {
    numbers: [u64; MAX_STEPS],
    kinds: [OutcomeKind; MAX_STEPS],
    steps: u8,
    /// The first checksum step; [`NO_STEP`] if there is none.
    first_checksum: u8,
}

/// The number of no step.
const NO_STEP: u8 = u8::MAX;

impl Report {
    /// A report of no step.
    #[inline]
    pub(crate) fn new() -> Report {
        Report { numbers: [0; MAX_STEPS], kinds: [OutcomeKind::Nothing; MAX_STEPS], steps: 0, first_checksum: NO_STEP }
    }

    /// Adds the result of the next step; there are at most [`MAX_STEPS`].
    #[inline]
    pub(crate) fn add(&mut self, kind: OutcomeKind, number: u64) {
        let at = usize::from(self.steps) % MAX_STEPS;
        (self.kinds[at], self.numbers[at]) = (kind, number);
        if kind == OutcomeKind::Checksum && self.first_checksum == NO_STEP {
            self.first_checksum = at as u8;
        }
        self.steps += 1;
    }

    /// The number of a step, below [`MAX_STEPS`].
    #[inline]
    pub(crate) fn number(&mut self, step: usize) -> &mut u64 {
        &mut self.numbers[step % MAX_STEPS]
    }

    /// The result of each step.
    pub fn outcomes(&self) -> impl Iterator<Item = Outcome> + '_ {
        let all = self.kinds.iter().zip(&self.numbers).take(usize::from(self.steps));
        all.map(|(kind, number)| match kind {
            OutcomeKind::Nothing => Outcome::Nothing,
            OutcomeKind::Checksum => Outcome::Checksum(*number as u16),
            OutcomeKind::Crc32c => Outcome::Crc32c(*number as u32),
            OutcomeKind::Count => Outcome::Count(*number),
            OutcomeKind::Total => Outcome::Total(*number),
        })
    }

    #[inline]
    fn first(&self, kind: OutcomeKind) -> Option<u64> {
        self.kinds.iter().position(|own| *own == kind).map(|at| self.numbers[at])
    }

    /// The Internet checksum as a header holds it, complemented, of the first step that makes one.
    #[inline]
    pub fn checksum(&self) -> Option<u16> {
        self.numbers.get(usize::from(self.first_checksum)).map(|sum| !(*sum as u16))
    }

    /// The CRC-32C of the first step that makes one.
    #[inline]
    pub fn crc32c(&self) -> Option<u32> {
        self.first(OutcomeKind::Crc32c).map(|crc| crc as u32)
    }

    /// The total of the first step of the user's that has one.
    #[inline]
    pub fn total(&self) -> Option<u64> {
        self.first(OutcomeKind::Total)
    }

    /// The number of bytes counted by the first `count` step.
    #[inline]
    pub fn count(&self) -> Option<u64> {
        self.first(OutcomeKind::Count)
    }
}

/// The result of a run: the report, which its runner keeps, and the first checksum or CRC in a register.
//
// A run of a few kilobytes takes as long as its stores need to leave the store buffer, in order. A caller that uses the
// checksum right after it would wait for the report's store and load.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RunReport<'r> {
    report: &'r Report,
    /// Not complemented; 0 if there is none.
    checksum: u16,
    /// If it is known without the report.
    crc32c: Option<u32>,
}

impl<'r> RunReport<'r> {
    /// Of a report whose first checksum is known, not complemented.
    #[inline(always)]
    pub(crate) fn with_checksum(report: &'r Report, sum: u64) -> RunReport<'r> {
        RunReport { report, checksum: sum as u16, crc32c: None }
    }

    /// Of a report whose first CRC is known, and that has no checksum.
    #[inline(always)]
    pub(crate) fn with_crc32c(report: &'r Report, crc: u32) -> RunReport<'r> {
        RunReport { report, checksum: 0, crc32c: Some(crc) }
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

    /// The CRC-32C of the first step that makes one.
    #[inline(always)]
    pub fn crc32c(&self) -> Option<u32> {
        self.crc32c.or_else(|| self.report.crc32c())
    }
}

impl<'r> From<&'r Report> for RunReport<'r> {
    #[inline(always)]
    fn from(report: &'r Report) -> RunReport<'r> {
        RunReport { report, checksum: report.checksum().map_or(0, |complement| !complement), crc32c: None }
    }
}

impl Deref for RunReport<'_> {
    type Target = Report;

    #[inline]
    fn deref(&self) -> &Report {
        self.report
    }
}

impl fmt::Debug for RunReport<'_> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report.fmt(out)
    }
}

impl fmt::Debug for Report {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.outcomes()).finish()
    }
}
