//! Scatter-gather: data in several buffers pass through the code of a pipe without being copied to one buffer first.
//!
//! Code runs on pieces that are contiguous on both sides, in multiples of eight bytes, so that elements, keys and sums
//! continue across pieces. Eight bytes that a border divides go through a small buffer.
//!
//! ```text
//! sources   |---------------|------|-------------------------|
//! targets   |-------|-------------------------|--------------|
//! pieces    [======][][====][][===][][========][][==========]      [] a buffer of eight bytes
//! ```

use std::ops::{Deref, DerefMut};

use crate::error::Error;
use crate::pipe::Options;
use crate::report::RunReport;
use crate::runner::Runner;

/// Units never cross a multiple of this number of bytes.
const UNIT: usize = 8;

/// A piece of memory. Sources are not written to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawPart {
    pub(crate) data: *mut u8,
    pub(crate) bytes: usize,
}

/// The bytes of all parts together.
pub(crate) fn total(parts: &[RawPart]) -> usize {
    parts.iter().fold(0, |sum: usize, part| sum.saturating_add(part.bytes))
}

/// The unread rest of a list of parts.
struct RemainingParts<'p> {
    first: RawPart,
    others: std::slice::Iter<'p, RawPart>,
}

impl<'p> RemainingParts<'p> {
    fn new(parts: &'p [RawPart]) -> Self {
        RemainingParts { first: RawPart { data: std::ptr::null_mut(), bytes: 0 }, others: parts.iter() }
    }

    /// The address of the next bytes, which are contiguous; they are taken.
    fn take(&mut self, bytes: usize) -> *mut u8 {
        let at = self.first.data;
        self.first = RawPart { data: at.wrapping_add(bytes), bytes: self.first.bytes - bytes };
        at
    }

    /// The number of contiguous bytes here; 0 only at the end.
    fn together(&mut self) -> usize {
        while self.first.bytes == 0
            && let Some(next) = self.others.next()
        {
            self.first = *next;
        }
        self.first.bytes
    }
}

/// Checks that targets share no byte with each other, and none with sources except at the same position of both
/// lists, as a run in place has.
#[cfg(feature = "c")]
pub(crate) fn check_overlap(sources: &[RawPart], targets: &[RawPart]) -> Result<(), Error> {
    /// A part by address: its end, and its address minus the position of its first byte in its list.
    struct Placed {
        start: usize,
        end: usize,
        displacement: usize,
        is_target: bool,
    }
    let place = |parts: &[RawPart], is_target: bool| -> Vec<Placed> {
        let mut position = 0_usize;
        let placed = parts.iter().map(|part| {
            let start = part.data as usize;
            let displacement = start.wrapping_sub(position);
            position = position.wrapping_add(part.bytes);
            Placed { start, end: start.saturating_add(part.bytes), displacement, is_target }
        });
        placed.filter(|part| part.start < part.end).collect()
    };
    let mut all = place(sources, false);
    all.extend(place(targets, true));
    all.sort_unstable_by_key(|part| part.start);
    let mut reached: Vec<&Placed> = Vec::new();
    for part in &all {
        reached.retain(|before| before.end > part.start);
        let collides = |before: &&Placed| match (before.is_target, part.is_target) {
            (false, false) => false,
            (true, true) => true,
            (true, false) | (false, true) => before.displacement != part.displacement,
        };
        if reached.iter().any(collides) {
            return Err(Error::Overlap);
        }
        reached.push(part);
    }
    Ok(())
}

impl Runner<'_> {
    /// Runs over the bytes of all `sources`, one after the other, and writes to all `targets`, which have as many
    /// together; or none, if the pipe writes nothing. The result is that of [`Runner::run`] on contiguous bytes.
    ///
    /// # Errors
    /// [`Error::Target`], [`Error::Streams`], [`Error::StreamLength`]: nothing has been read or written then.
    pub fn run_lists<S, T>(
        &mut self,
        sources: &[S],
        targets: &mut [T],
        options: Options<'_>,
    ) -> Result<RunReport<'_>, Error>
    where
        S: Deref<Target = [u8]>,
        T: DerefMut<Target = [u8]>,
    {
        // Each is converted to bytes once: a second conversion might return other bytes.
        let sources = sources.iter().map(|source| {
            let source: &[u8] = source;
            RawPart { data: source.as_ptr().cast_mut(), bytes: source.len() }
        });
        let targets = targets.iter_mut().map(|target| {
            let target: &mut [u8] = target;
            RawPart { data: target.as_mut_ptr(), bytes: target.len() }
        });
        let (sources, targets): (Vec<RawPart>, Vec<RawPart>) = (sources.collect(), targets.collect());
        // SAFETY: the borrows last as long as the run, and shared and exclusive ones do not overlap.
        unsafe { self.run_raw_lists(&sources, &targets, options) }
    }

    /// [`Runner::run_lists`] on memory that the caller vouches for.
    ///
    /// # Safety
    /// Sources are valid for reads, targets for writes if the pipe writes, and [`check_overlap`] allows the two.
    pub(crate) unsafe fn run_raw_lists(
        &mut self,
        sources: &[RawPart],
        targets: &[RawPart],
        options: Options<'_>,
    ) -> Result<RunReport<'_>, Error> {
        let bytes = total(sources);
        self.pipe().check_target(bytes, total(targets))?;
        self.pipe().check_streams(bytes, options.streams)?;

        let writes = self.pipe().writes();
        let (mut from, mut to) = (RemainingParts::new(sources), RemainingParts::new(targets));
        self.begin();
        let mut done = 0;
        while done < bytes {
            let here = from.together().min(if writes { to.together() } else { usize::MAX });
            let streams: Vec<&[u8]> = options.streams.iter().map(|stream| &stream[done..]).collect();
            let options = Options { streams: &streams, ..options };
            let length = if done + here == bytes { here } else { here / UNIT * UNIT };
            if length > 0 {
                let source = from.take(length);
                let target = if writes { to.take(length) } else { std::ptr::dangling_mut() };
                // SAFETY: 1. The source has so many bytes, and the target too if the pipe writes. 2. Streams were
                // checked. 3. If the two share bytes they are the same.
                unsafe { self.piece(source, target, length, bytes, options)? };
                done += length;
                continue;
            }
            let mut buffer = [0; UNIT];
            let unit = &mut buffer[..UNIT.min(bytes - done)];
            // SAFETY: the rest of the sources has so many bytes.
            unsafe { fill(unit, &mut from) };
            let at = unit.as_mut_ptr();
            // SAFETY: the buffer is this function's, and as long as the unit; streams were checked.
            unsafe { self.piece(at, at, unit.len(), unit.len(), options)? };
            done += unit.len();
            if writes {
                // SAFETY: the rest of the targets has so many bytes.
                unsafe { spread(unit, &mut to) };
            }
        }
        Ok(RunReport::from(self.end(bytes as u64)))
    }
}

/// # Safety
/// The rest of the parts is valid for reads, and has as many bytes.
unsafe fn fill(mut unit: &mut [u8], from: &mut RemainingParts<'_>) {
    while !unit.is_empty() {
        let here = from.together().min(unit.len());
        let (now, later) = unit.split_at_mut(here);
        // SAFETY: the caller's promise; the unit is a buffer of its own.
        unsafe { now.as_mut_ptr().copy_from_nonoverlapping(from.take(here), here) };
        unit = later;
    }
}

/// # Safety
/// The rest of the parts is valid for writes, and has as many bytes.
unsafe fn spread(mut unit: &[u8], to: &mut RemainingParts<'_>) {
    while !unit.is_empty() {
        let here = to.together().min(unit.len());
        let (now, later) = unit.split_at(here);
        // SAFETY: the caller's promise; the unit is a buffer of its own.
        unsafe { to.take(here).copy_from_nonoverlapping(now.as_ptr(), here) };
        unit = later;
    }
}
