//! The assignment of accumulators, keys and streams to the steps of a pipe. No machine is known here.

use crate::crc32c;
use crate::error::Error;
use crate::ir::{Checked, MAX_PIPE_INSTRUCTIONS, Total, mask};
use crate::report::{OutcomeKind, Report};
use crate::step::{Key, MAX_STEPS, MAX_STREAMS, Step};

/// The maximum number of bytes of sums of means (`compose/sums.rs`): 2^48 times their error has to fit a word.
pub(crate) const MAX_MEAN_SUM_BYTES: usize = 1 << 17;

/// The action of generated code for a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Nothing for each byte.
    Nothing,
    /// Two accumulators from `first` on, see [`Sum`].
    Checksum { first: usize },
    /// The remainder in accumulator `at`.
    Crc32c { at: usize },
    /// Reverses elements of so many bytes.
    Swap { bytes: usize },
    /// The repeated key with this number.
    XorKey { key: usize },
    /// The key stream with this number.
    XorStream { stream: usize },
    /// A user's step, the one at this place in the pipe, with its total in this accumulator if it has one.
    User { step: usize, total: Option<usize> },
}

/// A checked list of steps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Plan {
    steps: Vec<Step>,
    actions: [Action; MAX_STEPS],
    pub(crate) accumulators: usize,
    pub(crate) streams: usize,
    pub(crate) writes: bool,
    keys: [[u8; 8]; MAX_STEPS],
    /// The readouts of accumulators after a run.
    readouts: [Readout; MAX_STEPS],
    readout_count: usize,
    /// Whether accumulators hold sums only, so that none has to be initialised before a run.
    sums_only: bool,
    in_register: Option<InRegister>,
    /// Whether any step counts bytes.
    counts: bool,
    /// The report of a run without results.
    blank: Report,
}

/// The result of the only step that has one, if 64-bit code keeps it in registers and not in the frame: so that a run
/// of a few bytes does not wait for stores and loads. With key streams there may be no registers for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum InRegister {
    /// The code returns the sum of this step, see [`WordSum`].
    Sum { step: usize },
    /// The code takes the remainder as its fifth argument, and returns it. In the frame, between pieces, it is the
    /// first accumulator.
    Remainder { step: usize },
}

/// The location of the result of one step after a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Readout {
    kind: OutcomeKind,
    step: usize,
    accumulator: usize,
}

/// Two accumulators of words of `2 * half` bits whose sum they are: the first is the sum of the words, modulo its
/// width, the second that of their higher halves, exactly. So adding a word takes an addition, a shift and an addition
/// on every machine and in every vector, without a carry: the carries that the first has lost can be computed, as long
/// as the sum of the lower halves fits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sum {
    pub(crate) words: u64,
    pub(crate) high: u64,
}

impl Sum {
    /// Both as one.
    #[inline]
    fn combine(self, half: u32) -> WordSum {
        let mask = if half == 32 { u64::MAX } else { (1 << (2 * half)) - 1 };
        let low = self.words.wrapping_sub(self.high << half) & mask;
        WordSum(low + self.high)
    }
}

/// A sum of words of 16, 32 or 64 bits: with end-around carry it is the same for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WordSum(pub(crate) u64);

impl WordSum {
    /// The 16-bit sum with end-around carry, of words in the machine's byte order, in the higher half.
    //
    // Adding a number and its rotation by half gives the sum of the halves in both halves; the higher one receives the
    // carry of the lower: the end-around carry. The latency of a small checksum is this chain of operations.
    #[inline(always)]
    fn fold(self) -> u32 {
        let WordSum(sum) = self;
        let half = (sum.wrapping_add(sum.rotate_right(32)) >> 32) as u32;
        half.wrapping_add(half.rotate_right(16))
    }

    /// The number whose network-order bytes are those of the sum.
    #[inline(always)]
    pub(crate) fn in_network_order(self, little: bool) -> u64 {
        let sum = self.fold();
        if little { (sum.swap_bytes() as u16).into() } else { (sum >> 16).into() }
    }
}

impl Plan {
    pub(crate) fn new(steps: &[Step]) -> Result<Plan, Error> {
        if steps.len() > MAX_STEPS {
            return Err(Error::TooManySteps(steps.len()));
        }
        let mut plan = Plan {
            steps: steps.to_vec(),
            actions: [Action::Nothing; MAX_STEPS],
            accumulators: 0,
            streams: 0,
            writes: steps.iter().any(Step::writes),
            keys: [[0; 8]; MAX_STEPS],
            readouts: [Readout { kind: OutcomeKind::Nothing, step: 0, accumulator: 0 }; MAX_STEPS],
            readout_count: 0,
            sums_only: true,
            in_register: None,
            counts: steps.contains(&Step::Count),
            blank: Report::new(),
        };
        let mut keys = 0;
        for (index, step) in steps.iter().enumerate() {
            plan.add(index, step, &mut keys);
        }
        plan.in_register = plan.find_in_register();
        let length = |step: &Step| match step {
            Step::User(step) => step.program().instructions.len(),
            _ => 0,
        };
        let instructions = steps.iter().map(length).sum();
        if instructions > MAX_PIPE_INSTRUCTIONS {
            return Err(Error::TooManyInstructions(instructions));
        }
        if plan.streams > MAX_STREAMS {
            return Err(Error::TooManyStreams(plan.streams));
        }
        Ok(plan)
    }

    fn find_in_register(&self) -> Option<InRegister> {
        let readouts = &self.readouts[..self.readout_count];
        let mut results = readouts.iter().filter(|readout| readout.kind != OutcomeKind::Count);
        let (Some(only), None, 0) = (results.next(), results.next(), self.streams) else { return None };
        match only.kind {
            OutcomeKind::Checksum => Some(InRegister::Sum { step: only.step }),
            OutcomeKind::Crc32c => Some(InRegister::Remainder { step: only.step }),
            OutcomeKind::Total | OutcomeKind::Nothing | OutcomeKind::Count => None,
        }
    }

    /// Assigns accumulators, a key or a stream to the step at `index`.
    fn add(&mut self, index: usize, step: &Step, keys: &mut usize) {
        let first = self.accumulators;
        let action = match step {
            Step::Copy | Step::Count => Action::Nothing,
            Step::Checksum => Action::Checksum { first },
            Step::Crc32c => Action::Crc32c { at: first },
            Step::Swap16 => Action::Swap { bytes: 2 },
            Step::Swap32 => Action::Swap { bytes: 4 },
            Step::Swap64 => Action::Swap { bytes: 8 },
            Step::Xor(Key::Repeat(bytes)) => {
                self.keys[*keys] = *bytes;
                *keys += 1;
                Action::XorKey { key: *keys - 1 }
            }
            Step::User(step) => Action::User { step: index, total: step.inner.total.map(|_| first) },
            Step::Xor(Key::Stream) => {
                self.streams += 1;
                Action::XorStream { stream: self.streams - 1 }
            }
        };
        self.actions[index] = action;
        let kind = match step {
            Step::Checksum => OutcomeKind::Checksum,
            Step::Crc32c => OutcomeKind::Crc32c,
            Step::Count => OutcomeKind::Count,
            Step::User(step) if step.inner.total.is_some() => OutcomeKind::Total,
            Step::Copy | Step::Swap16 | Step::Swap32 | Step::Swap64 | Step::Xor(_) | Step::User(_) => {
                OutcomeKind::Nothing
            }
        };
        self.blank.add(kind, 0);
        if kind != OutcomeKind::Nothing {
            self.readouts[self.readout_count] = Readout { kind, step: index, accumulator: first };
            self.readout_count += 1;
            self.sums_only &= !matches!(kind, OutcomeKind::Crc32c | OutcomeKind::Total);
        }
        self.accumulators += match action {
            Action::Checksum { .. } => 2,
            Action::Crc32c { .. } | Action::User { total: Some(_), .. } => 1,
            Action::Nothing
            | Action::Swap { .. }
            | Action::XorKey { .. }
            | Action::XorStream { .. }
            | Action::User { total: None, .. } => 0,
        };
    }

    /// Checks that a machine with registers of `bits` bits can run it.
    pub(crate) fn check_register_bits(&self, bits: u32) -> Result<(), Error> {
        let wide = |step: &Step| matches!(step, Step::User(step) if step.inner.register_bytes * 8 > bits as usize);
        if self.steps.iter().any(wide) { Err(Error::WideElement) } else { Ok(()) }
    }

    pub(crate) fn steps(&self) -> &[Step] {
        &self.steps
    }

    pub(crate) fn actions(&self) -> &[Action] {
        &self.actions[..self.steps.len()]
    }

    /// The user's step at a place where there is one.
    pub(crate) fn user(&self, step: usize) -> &Checked {
        match &self.steps[step] {
            Step::User(step) => &step.inner,
            _ => unreachable!("`new` makes such an action for a user's step only"),
        }
    }

    /// The reduction of a user-defined step, and the bytes of its registers.
    fn total(&self, step: usize) -> (Total, usize) {
        let user = self.user(step);
        (user.total.expect("it was found to have one"), user.register_bytes)
    }

    /// Whether a step computes with floating-point numbers.
    pub(crate) fn has_floats(&self) -> bool {
        self.steps.iter().any(|step| matches!(step, Step::User(step) if step.inner.has_floats()))
    }

    pub(crate) fn keys(&self) -> &[[u8; 8]; MAX_STEPS] {
        &self.keys
    }

    /// Initialises the accumulators, except sums, which code starts at zero.
    pub(crate) fn open(&self, accumulators: &mut [u64]) {
        for readout in &self.readouts[..self.readout_count] {
            match readout.kind {
                OutcomeKind::Crc32c => accumulators[readout.accumulator] = u64::from(u32::MAX),
                OutcomeKind::Total => {
                    let (total, bytes) = self.total(readout.step);
                    accumulators[readout.accumulator] = total.initial(bytes);
                }
                OutcomeKind::Nothing | OutcomeKind::Count | OutcomeKind::Checksum => {}
            }
        }
    }

    /// The report to begin a run with.
    #[inline]
    pub(crate) fn blank(&self) -> Report {
        self.blank
    }

    /// Clears the sums that are carried from piece to piece, in the report.
    pub(crate) fn clear_carried_sums(&self, report: &mut Report) {
        for readout in &self.readouts[..self.readout_count] {
            *report.number(readout.step) = 0;
        }
    }

    /// The result that is not in the accumulators, on a machine whose words have two times `half` bits.
    #[inline(always)]
    pub(crate) fn in_register(&self, half: u32) -> Option<InRegister> {
        self.in_register.filter(|_| half == 32)
    }

    /// Whether a run at once starts without an initialised accumulator in the frame, on a machine whose words have two
    /// times `half` bits.
    #[inline(always)]
    pub(crate) fn starts_blank(&self, half: u32) -> bool {
        self.sums_only || matches!(self.in_register(half), Some(InRegister::Remainder { .. }))
    }

    /// Adds sums from the accumulators, or the one that the code has returned, to those carried, after a piece of data
    /// of a machine whose words have two times `half` bits; stores a returned remainder. The code starts sums at zero
    /// in each piece.
    pub(crate) fn accumulate_piece(&self, accumulators: &mut [u64], returned: u64, report: &mut Report, half: u32) {
        match self.in_register(half) {
            Some(InRegister::Sum { step }) => {
                *report.number(step) += u64::from(WordSum(returned).fold() >> 16);
                return;
            }
            Some(InRegister::Remainder { .. }) => {
                accumulators[0] = u64::from(returned as u32);
                return;
            }
            None => {}
        }
        for readout in &self.readouts[..self.readout_count] {
            if readout.kind == OutcomeKind::Checksum {
                let [words, high, ..] = accumulators[readout.accumulator..] else { continue };
                *report.number(readout.step) += u64::from(Sum { words, high }.combine(half).fold() >> 16);
            }
        }
    }

    /// Completes the report on `bytes` bytes, after [`Plan::accumulate_piece`]. Sums are of words in the machine's
    /// order.
    pub(crate) fn complete(&self, accumulators: &[u64], report: &mut Report, bytes: u64, little: bool) {
        for readout in &self.readouts[..self.readout_count] {
            let number = report.number(readout.step);
            *number = match readout.kind {
                OutcomeKind::Checksum => WordSum(*number).in_network_order(little),
                OutcomeKind::Crc32c => (!(accumulators[readout.accumulator] as u32)).into(),
                OutcomeKind::Count => bytes,
                OutcomeKind::Total => accumulators[readout.accumulator] & mask(self.total(readout.step).1),
                OutcomeKind::Nothing => 0,
            };
        }
    }

    /// Completes sums from the accumulators, of a single piece.
    #[inline(always)]
    pub(crate) fn complete_sums(&self, accumulators: &[u64], report: &mut Report, half: u32, little: bool) {
        for readout in &self.readouts[..self.readout_count] {
            if readout.kind == OutcomeKind::Checksum {
                let [words, high, ..] = accumulators[readout.accumulator..] else { continue };
                *report.number(readout.step) = Sum { words, high }.combine(half).in_network_order(little);
            }
        }
    }

    /// Completes what is known of a single piece before the code has run: bytes.
    #[inline(always)]
    pub(crate) fn complete_counts(&self, report: &mut Report, bytes: u64) {
        if !self.counts {
            return;
        }
        let counts = self.readouts[..self.readout_count].iter().filter(|readout| readout.kind == OutcomeKind::Count);
        counts.for_each(|readout| *report.number(readout.step) = bytes);
    }

    /// Where the tables of CRC-32C are.
    pub(crate) fn tables() -> *const u32 {
        crc32c::TABLES.as_ptr().cast()
    }
}
