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

/// The unread rest of a list of slices.
struct RemainingParts<I: Iterator> {
    first: I::Item,
    others: I,
}

impl<'a, I: Iterator<Item = &'a [u8]>> RemainingParts<I> {
    fn take(&mut self, bytes: usize) -> &'a [u8] {
        let (taken, rest) = self.first.split_at(bytes);
        self.first = rest;
        taken
    }

    /// The number of contiguous bytes here; 0 only at the end.
    fn together(&mut self) -> usize {
        while self.first.is_empty()
            && let Some(next) = self.others.next()
        {
            self.first = next;
        }
        self.first.len()
    }
}

impl<'a, I: Iterator<Item = &'a mut [u8]>> RemainingParts<I> {
    fn take_mut(&mut self, bytes: usize) -> &'a mut [u8] {
        let (taken, rest) = std::mem::take(&mut self.first).split_at_mut(bytes);
        self.first = rest;
        taken
    }

    fn together_mut(&mut self) -> usize {
        while self.first.is_empty()
            && let Some(next) = self.others.next()
        {
            self.first = next;
        }
        self.first.len()
    }
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
        let sources: Vec<&[u8]> = sources.iter().map(Deref::deref).collect();
        let targets: Vec<&mut [u8]> = targets.iter_mut().map(DerefMut::deref_mut).collect();
        let sum = |lengths: &mut dyn Iterator<Item = usize>| lengths.fold(0_usize, usize::saturating_add);
        let bytes = sum(&mut sources.iter().map(|source| source.len()));
        let target_bytes = sum(&mut targets.iter().map(|target| target.len()));
        self.pipe().check_target(bytes, target_bytes)?;
        self.pipe().check_streams(bytes, options.streams)?;

        let writes = self.pipe().writes();
        let mut from = RemainingParts { first: &[][..], others: sources.into_iter() };
        let mut to = RemainingParts { first: &mut [][..], others: targets.into_iter() };
        self.begin();
        let mut done = 0;
        while done < bytes {
            let here = from.together().min(if writes { to.together_mut() } else { usize::MAX });
            let streams: Vec<&[u8]> = options.streams.iter().map(|stream| &stream[done..]).collect();
            let options = Options { streams: &streams, ..options };
            let length = if done + here == bytes { here } else { here / UNIT * UNIT };
            if length > 0 {
                let source = from.take(length);
                let target = if writes { to.take_mut(length) } else { &mut [] };
                // SAFETY: 1. The source has so many bytes, and the target too if the pipe writes. 2. Streams were
                // checked. 3. A shared and an exclusive borrow do not overlap.
                unsafe { self.piece(source.as_ptr(), target.as_mut_ptr(), length, bytes, options)? };
                done += length;
                continue;
            }
            let mut buffer = [0; UNIT];
            let unit = &mut buffer[..UNIT.min(bytes - done)];
            fill(unit, &mut from);
            let at = unit.as_mut_ptr();
            // SAFETY: the buffer is this function's, and as long as the unit; streams were checked.
            unsafe { self.piece(at, at, unit.len(), unit.len(), options)? };
            done += unit.len();
            if writes {
                spread(unit, &mut to);
            }
        }
        Ok(RunReport::from(self.end(bytes as u64)))
    }
}

fn fill<'a>(mut unit: &mut [u8], from: &mut RemainingParts<impl Iterator<Item = &'a [u8]>>) {
    while !unit.is_empty() {
        let here = from.together().min(unit.len());
        let (now, later) = unit.split_at_mut(here);
        now.copy_from_slice(from.take(here));
        unit = later;
    }
}

fn spread<'a>(mut unit: &[u8], to: &mut RemainingParts<impl Iterator<Item = &'a mut [u8]>>) {
    while !unit.is_empty() {
        let here = to.together_mut().min(unit.len());
        let (now, later) = unit.split_at(here);
        to.take_mut(here).copy_from_slice(now);
        unit = later;
    }
}
