//! Runs of a pipe: passes data through its code, or through the reference implementation where there is none, piece by
//! piece and collects the results of the steps.

use crate::error::Error;
use crate::frame::{self, Frame};
use crate::pipe::{Call, Engine, Options, Pipe};
use crate::plan::{InRegister, MAX_MEAN_SUM_BYTES, Plan, WordSum};
use crate::policy::{Store, Temperature};
use crate::reference;
use crate::report::{Report, RunReport};
use crate::step::MAX_STREAMS;

/// The maximum number of bytes of one call of the code: the capacity of its sums, and a multiple of all block sizes.
/// Code with plain stores uses another summation method than the rest.
const fn max_piece_bytes(store: Store) -> usize {
    match store {
        Store::Cached => MAX_MEAN_SUM_BYTES,
        Store::Prefetching | Store::Streaming => 64 << 20,
    }
}

/// Half of the bits of the words that code adds up.
const HALF: u32 = usize::BITS / 2;

const LITTLE: bool = cfg!(target_endian = "little");

impl Pipe {
    /// A runner, which runs the pipe again and again in one thread.
    pub fn runner(&self) -> Runner<'_> {
        Runner::new(self)
    }

    /// Runs over `source` and writes to `target`, which is as long; or empty, if the pipe writes nothing.
    ///
    /// # Errors
    /// [`Error::Target`], [`Error::Streams`], [`Error::StreamLength`]: nothing has been read or written then.
    pub fn run(&self, source: &[u8], target: &mut [u8]) -> Result<Report, Error> {
        self.run_with(source, target, Options::default())
    }

    /// Like [`Pipe::run`], with options.
    ///
    /// # Errors
    /// Those of [`Pipe::run`].
    pub fn run_with(&self, source: &[u8], target: &mut [u8], options: Options<'_>) -> Result<Report, Error> {
        self.runner().run_with(source, target, options).map(|found| *found)
    }

    /// Runs in place.
    ///
    /// # Errors
    /// [`Error::Streams`], [`Error::StreamLength`]: nothing has been read or written then.
    pub fn run_in_place(&self, data: &mut [u8], options: Options<'_>) -> Result<Report, Error> {
        self.runner().run_in_place(data, options).map(|found| *found)
    }
}

/// Runs a pipe again and again. It keeps the frame and the report, so that a run of a few bytes has little overhead.
//
// The report stays here too, and is borrowed: copying it right after a run would stall until the run's stores are in
// the cache, because no processor forwards several small stores to one large load.
#[derive(Debug)]
pub struct Runner<'p> {
    pipe: &'p Pipe,
    frame: Frame,
    /// With the reference implementation: of the pieces so far.
    report: Report,
    engine: Engine,
}

impl<'p> Runner<'p> {
    pub(crate) fn new(pipe: &'p Pipe) -> Runner<'p> {
        let mut frame = Frame::new();
        frame.slots[frame::TABLES] = Plan::tables() as u64;
        frame.keys = *pipe.plan().keys();
        Runner { pipe, frame, report: pipe.plan().blank(), engine: pipe.engine() }
    }

    /// Runs over `source` and writes to `target`, which is as long; or empty, if the pipe writes nothing.
    ///
    /// # Errors
    /// [`Error::Target`], [`Error::Streams`], [`Error::StreamLength`]: nothing has been read or written then.
    #[inline]
    pub fn run(&mut self, source: &[u8], target: &mut [u8]) -> Result<RunReport<'_>, Error> {
        self.run_with(source, target, Options::default())
    }

    /// Like [`Runner::run`], with options.
    ///
    /// # Errors
    /// Those of [`Runner::run`].
    #[inline]
    pub fn run_with(&mut self, source: &[u8], target: &mut [u8], options: Options<'_>) -> Result<RunReport<'_>, Error> {
        self.pipe.check_target(source.len(), target.len())?;
        self.pipe.check_streams(source.len(), options.streams)?;
        // SAFETY: 1. Both are as long as the data; a pipe that does not write is given no target. 2. The streams are
        // at least as long. 3. A shared and an exclusive borrow do not overlap.
        unsafe { self.run_at_once(source.as_ptr(), target.as_mut_ptr(), source.len(), options) }
    }

    /// Runs in place.
    ///
    /// # Errors
    /// [`Error::Streams`], [`Error::StreamLength`]: nothing has been read or written then.
    #[inline]
    pub fn run_in_place(&mut self, data: &mut [u8], options: Options<'_>) -> Result<RunReport<'_>, Error> {
        self.pipe.check_streams(data.len(), options.streams)?;
        let at = data.as_mut_ptr();
        // SAFETY: the borrow is exclusive, and code loads a block before it stores it; streams are checked.
        unsafe { self.run_at_once(at, at, data.len(), options) }
    }

    /// Begins a run over data that arrive piece by piece.
    pub fn start(&mut self) -> Pass<'_, 'p> {
        self.begin();
        Pass { runner: self, bytes: 0 }
    }

    /// Begins a run over data that arrive piece by piece.
    pub(crate) fn begin(&mut self) {
        match self.engine {
            Engine::Code => {
                self.pipe.plan().open(&mut self.frame.slots[frame::ACCUMULATORS..]);
                self.pipe.plan().clear_carried_sums(&mut self.report);
            }
            Engine::Reference => self.report = reference::begin(self.pipe.steps()),
        }
    }

    pub(crate) fn pipe(&self) -> &'p Pipe {
        self.pipe
    }

    /// A run over all data at once.
    ///
    /// # Safety
    /// What [`Runner::piece`] demands.
    //
    // Its stores share the store buffer with those of the code, and a run of a few kilobytes takes as long as that
    // buffer needs to drain. So the common case stores little: it calls nothing but the code, and so saves few
    // registers.
    #[inline(always)]
    pub(crate) unsafe fn run_at_once(
        &mut self,
        source: *const u8,
        target: *mut u8,
        bytes: usize,
        options: Options<'_>,
    ) -> Result<RunReport<'_>, Error> {
        let Options { temperature, store, streams } = options;
        if Store::is_plain(bytes, temperature, store)
            && self.pipe.plan().starts_blank(HALF)
            && let Some(code) = self.pipe.composed_call(Store::Cached)
        {
            self.pipe.plan().complete_counts(&mut self.report, bytes as u64);
            // SAFETY: the caller's promise.
            let returned = unsafe { self.call_code(code, source, target, bytes, streams, u32::MAX) };
            let plan = self.pipe.plan();
            return Ok(match plan.in_register(HALF) {
                Some(InRegister::Sum { step }) => {
                    let sum = WordSum(returned).in_network_order(LITTLE);
                    *self.report.number(step) = sum;
                    RunReport::with_checksum(&self.report, sum)
                }
                Some(InRegister::Remainder { step }) => {
                    let crc = !(returned as u32);
                    *self.report.number(step) = crc.into();
                    RunReport::with_crc32c(&self.report, crc)
                }
                None => {
                    plan.complete_sums(&self.frame.slots[frame::ACCUMULATORS..], &mut self.report, HALF, LITTLE);
                    RunReport::from(&self.report)
                }
            });
        }
        // SAFETY: the caller's promise.
        unsafe { self.run_in_pieces(source, target, bytes, temperature, store, streams)? };
        Ok(RunReport::from(&self.report))
    }

    /// The general case of [`Runner::run_at_once`]. Options are passed one by one, so they stay in registers until
    /// then.
    ///
    /// # Safety
    /// What [`Runner::piece`] demands.
    #[inline(never)]
    unsafe fn run_in_pieces(
        &mut self,
        source: *const u8,
        target: *mut u8,
        bytes: usize,
        temperature: Temperature,
        store: Option<Store>,
        streams: &[&[u8]],
    ) -> Result<(), Error> {
        let options = Options { temperature, store, streams };
        self.begin();
        // SAFETY: the caller's promise.
        unsafe { self.piece(source, target, bytes, bytes, options)? };
        self.end(bytes as u64);
        Ok(())
    }

    /// Processes the next `bytes` bytes, of `all` bytes altogether. All pieces but the last are multiples of eight
    /// bytes; streams begin where this piece does.
    ///
    /// # Safety
    /// `source` is valid for reads, and `target` for writes if the pipe writes, of `bytes` bytes; if they share bytes
    /// they are the same. Streams are as many as the pipe wants and at least as long.
    #[inline(never)]
    pub(crate) unsafe fn piece(
        &mut self,
        source: *const u8,
        target: *mut u8,
        bytes: usize,
        all: usize,
        options: Options<'_>,
    ) -> Result<(), Error> {
        let store = self.store(target, all, options);
        let code = match self.engine {
            Engine::Code => Some(self.pipe.call(store)?),
            Engine::Reference => None,
        };
        let mut done = 0;
        while done < bytes {
            let length = (bytes - done).min(max_piece_bytes(store));
            let mut streams: [&[u8]; MAX_STREAMS] = [&[]; MAX_STREAMS];
            for (rest, stream) in streams.iter_mut().zip(options.streams) {
                *rest = &stream[done..];
            }
            let (from, to) = (source.wrapping_add(done), target.wrapping_add(done));
            if let Some(code) = code {
                // Of code that keeps the remainder in a register; otherwise it is any accumulator, and not used.
                let remainder = self.frame.slots[frame::ACCUMULATORS] as u32;
                // SAFETY: the caller's promise.
                let returned = unsafe { self.call_code(code, from, to, length, &streams, remainder) };
                let accumulators = &mut self.frame.slots[frame::ACCUMULATORS..];
                self.pipe.plan().accumulate_piece(accumulators, returned, &mut self.report, HALF);
            } else {
                // SAFETY: the caller's promise.
                unsafe { self.interpret(from, to, length, &streams) };
            }
            done += length;
        }
        Ok(())
    }

    /// The store policy for data of `all` bytes.
    #[inline(always)]
    fn store(&self, target: *mut u8, all: usize, options: Options<'_>) -> Store {
        match options.store {
            Some(Store::Streaming) if !(target as usize).is_multiple_of(8) => Store::Prefetching,
            Some(store) => store,
            None => Store::choose(all, options.temperature, if self.pipe.writes() { target as usize } else { 1 }),
        }
    }

    /// Passes over at most [`max_piece_bytes`]; what the code returns.
    ///
    /// # Safety
    /// What [`Runner::piece`] demands; the code is that of the pipe.
    #[inline(always)]
    unsafe fn call_code(
        &mut self,
        code: Call,
        source: *const u8,
        target: *mut u8,
        bytes: usize,
        streams: &[&[u8]],
        remainder: u32,
    ) -> u64 {
        let slots = &mut self.frame.slots[frame::STREAMS..frame::ACCUMULATORS];
        for (slot, stream) in slots.iter_mut().zip(streams) {
            *slot = stream.as_ptr() as u64;
        }
        // SAFETY: the caller's promise; the frame is that of the plan which the function was composed for.
        unsafe { code(&mut self.frame, source, target, bytes, remainder) }
    }

    /// Passes over data by the reference implementation.
    ///
    /// # Safety
    /// What [`Runner::piece`] demands; there is at least one byte.
    #[cold]
    unsafe fn interpret(&mut self, source: *const u8, target: *mut u8, bytes: usize, streams: &[&[u8]]) {
        let steps = self.pipe.steps();
        if self.pipe.writes() {
            // SAFETY: the caller's promise; if they share bytes they are the same.
            let data = unsafe {
                target.copy_from(source, bytes);
                std::slice::from_raw_parts_mut(target, bytes)
            };
            reference::run_piece(steps, data, streams, &mut self.report);
        } else {
            // SAFETY: the caller's promise.
            let mut copy = unsafe { std::slice::from_raw_parts(source, bytes) }.to_vec();
            reference::run_piece(steps, &mut copy, streams, &mut self.report);
        }
    }

    /// The report of the last run that ended.
    #[cfg(feature = "c")]
    pub(crate) fn report(&self) -> &Report {
        &self.report
    }

    /// Completes the report of a run over so many bytes in pieces.
    pub(crate) fn end(&mut self, bytes: u64) -> &Report {
        match self.engine {
            Engine::Code => {
                let accumulators = &self.frame.slots[frame::ACCUMULATORS..];
                self.pipe.plan().complete(accumulators, &mut self.report, bytes, LITTLE);
            }
            // It is complete after each piece.
            Engine::Reference => {}
        }
        &self.report
    }
}

/// A run over data that arrive piece by piece, as from a file.
#[derive(Debug)]
pub struct Pass<'r, 'p> {
    runner: &'r mut Runner<'p>,
    bytes: u64,
}

impl<'r> Pass<'r, '_> {
    /// Continues with `source`, and writes to `target`, which is as long; or empty, if the pipe writes nothing. Every
    /// piece but the last is a multiple of eight bytes. Key streams begin where this piece does.
    ///
    /// # Errors
    /// [`Error::Piece`], [`Error::Target`], [`Error::Streams`], [`Error::StreamLength`]: nothing of this piece has been
    /// read or written then.
    pub fn piece(&mut self, source: &[u8], target: &mut [u8], options: Options<'_>) -> Result<(), Error> {
        if !self.bytes.is_multiple_of(8) {
            return Err(Error::Piece { before: self.bytes });
        }
        self.runner.pipe.check_target(source.len(), target.len())?;
        self.runner.pipe.check_streams(source.len(), options.streams)?;
        let bytes = source.len();
        // SAFETY: 1. Both are as long as the piece; a pipe that does not write is given no target. 2. The streams are
        // at least as long. 3. A shared and an exclusive borrow do not overlap.
        unsafe { self.runner.piece(source.as_ptr(), target.as_mut_ptr(), bytes, bytes, options)? };
        self.bytes += bytes as u64;
        Ok(())
    }

    /// The results of the steps.
    pub fn end(self) -> &'r Report {
        self.runner.end(self.bytes)
    }
}
