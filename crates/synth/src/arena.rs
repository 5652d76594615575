//! Executable memory for routines. It is mapped twice, writable at one address and executable at another, so that no
//! mapping is both. A freed block is used again only after a grace period.
//!
//! ```text
//! memory   |block . . . . . . .|block . .|block . . . . . . . . . . .|       units of 64 bytes
//! units    |first|   |   | last|fir| last|first|                 |last|       one entry each, kept elsewhere
//! ```
//!
//! The entry of the first and of the last unit of a block hold its length, so that a freed block finds its neighbours
//! and merges with those that are free (boundary tags, Knuth, "The Art of Computer Programming", 2.5). Free blocks are
//! in lists by length; blocks that wait are in a queue in order of their eras. No data is written within the code: a
//! store next to code that is executed is expensive, on processors and in emulators.

use quaject_vcode::decode::{self, Disassembly};

use crate::error::Error;
use crate::grace::Grace;

/// The unit of allocation, and the alignment of blocks: a line of the cache.
pub const UNIT: usize = 64;

/// The end of a list.
const NONE: u32 = u32::MAX;

/// Blocks of fewer units are used again as they are when their grace period is over; they merge with others only when
/// memory runs out (quick fit, Weinstock and Wulf 1988).
const QUICK: usize = 16;

/// Lists of free blocks: by units up to this many; the last has all that are longer.
const LISTS: usize = 33;

/// What the arena keeps about a unit of its memory.
#[derive(Debug, Clone, Copy)]
pub struct Unit {
    /// Units of the block, at its first and its last; the distance from the first at the others.
    length: u32,
    state: State,
    next: u32,
    previous: u32,
    /// The bytes of code at the beginning of the block, and what the routine is called.
    code: u32,
    name: &'static str,
    /// The era in which the block was freed.
    era: u64,
}

/// The state of the block that begins or ends at a unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Free,
    Used,
    /// Waits for its grace period.
    Waiting,
    /// In a quick list.
    Quick,
    /// In the middle of a block.
    Inside,
}

impl Unit {
    /// A value to fill the array with that [`Arena::new`] borrows.
    pub const NEW: Unit =
        Unit { length: 0, state: State::Inside, next: NONE, previous: NONE, code: 0, name: "", era: 0 };
}

/// A block of executable memory.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a block that is dropped is lost; free it"]
pub struct Block {
    first: u32,
    units: u32,
}

impl Block {
    /// Its bytes.
    pub fn length(&self) -> usize {
        self.units as usize * UNIT
    }
}

/// A routine as it lies in the arena.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found<'c> {
    /// What it was called when it was begun.
    pub name: &'static str,
    /// The address of its first instruction.
    pub entry: usize,
    /// Its code.
    pub code: &'c [u8],
}

impl<'c> Found<'c> {
    /// Its code as text, a line per instruction.
    pub fn listing(&self) -> Disassembly<'c> {
        Disassembly::new(&decode::X86_64, self.code, self.entry)
    }
}

/// Executable memory, with a grace period for up to `N` participants.
#[derive(Debug)]
pub struct Arena<'a, const N: usize> {
    write: *mut u8,
    execute: usize,
    units: &'a mut [Unit],
    free: [u32; LISTS],
    /// Blocks in use by none, by units, whose entries are as those of blocks in use.
    quick: [u32; QUICK],
    /// The queue of blocks that wait.
    oldest: u32,
    youngest: u32,
    grace: &'a Grace<N>,
    used: usize,
}

// SAFETY: the memory behind `write` belongs to the arena alone, by the promise of `new`.
unsafe impl<const N: usize> Send for Arena<'_, N> {}

/// The list of blocks of so many units.
fn list_of(units: u32) -> usize {
    (units as usize - 1).min(LISTS - 1)
}

impl<'a, const N: usize> Arena<'a, N> {
    /// An arena of `length` bytes that are written at `write` and executed at `execute`; `units` has an entry for each
    /// [`UNIT`] bytes, and what has none is not used.
    ///
    /// # Safety
    /// 1. `write` is valid for reads and writes of `length` bytes for `'a`, and nothing else accesses them except
    ///    through `execute`. 2. At `execute` the same memory is executable and readable. 3. Both addresses are
    ///    multiples of [`UNIT`].
    pub unsafe fn new(
        write: *mut u8,
        execute: usize,
        length: usize,
        units: &'a mut [Unit],
        grace: &'a Grace<N>,
    ) -> Self {
        let count = (length / UNIT).min(units.len()).min(i32::MAX as usize / UNIT) as u32;
        let units = &mut units[..count as usize];
        units.fill(Unit::NEW);
        let free = [NONE; LISTS];
        let quick = [NONE; QUICK];
        let mut arena = Arena { write, execute, units, free, quick, oldest: NONE, youngest: NONE, grace, used: 0 };
        if count != 0 {
            arena.insert(0, count);
        }
        arena
    }

    /// Bytes that are allocated, or wait for their grace period.
    pub fn used(&self) -> usize {
        self.used
    }

    /// Allocates a block of at least `bytes`.
    ///
    /// # Errors
    /// [`Error::NoMemory`].
    pub fn allocate(&mut self, bytes: usize) -> Result<Block, Error> {
        self.reclaim();
        if let Some(block) = self.take_quick(bytes) {
            return Ok(block);
        }
        let block = self.allocate_to_shrink(bytes)?;
        self.mark(block.first, block.units, State::Used);
        Ok(block)
    }

    /// The same of a block that is then shrunk or discarded: until then no address inside of it leads to it.
    pub(crate) fn allocate_to_shrink(&mut self, bytes: usize) -> Result<Block, Error> {
        self.reclaim();
        let units = u32::try_from(bytes.div_ceil(UNIT).max(1)).map_err(|_| Error::NoMemory)?;
        let first = match self.find(units) {
            Some(first) => first,
            None => {
                self.merge_quick();
                self.find(units).ok_or(Error::NoMemory)?
            }
        };
        let whole = self.units[first as usize].length;
        self.unlink(first, whole);
        if whole > units {
            self.insert(first + units, whole - units);
        }
        self.mark(first, 1, State::Used);
        self.units[first as usize].length = units;
        // What is free begins after it.
        self.units[(first + units - 1) as usize].state = if units == 1 { State::Used } else { State::Inside };
        self.used += units as usize * UNIT;
        Ok(Block { first, units })
    }

    /// The first free block that is long enough.
    fn find(&self, units: u32) -> Option<u32> {
        (list_of(units)..LISTS).find_map(|list| self.fitting(list, units))
    }

    /// A block of this length that was freed before.
    fn take_quick(&mut self, bytes: usize) -> Option<Block> {
        let units = bytes.div_ceil(UNIT);
        let list = self.quick.get_mut(units)?;
        let first = *list;
        let unit = self.units.get_mut(first as usize)?;
        *list = unit.next;
        unit.state = State::Used;
        self.used += units * UNIT;
        Some(Block { first, units: units as u32 })
    }

    /// Merges the blocks of the quick lists.
    fn merge_quick(&mut self) {
        for list in 0..QUICK {
            while let Some(unit) = self.units.get(self.quick[list] as usize).copied() {
                let first = self.quick[list];
                self.quick[list] = unit.next;
                self.merge(first, unit.length);
            }
        }
    }

    /// The first block of a list that is long enough.
    fn fitting(&self, list: usize, units: u32) -> Option<u32> {
        let mut at = self.free[list];
        while at != NONE && self.units[at as usize].length < units {
            at = self.units[at as usize].next;
        }
        (at != NONE).then_some(at)
    }

    /// Gives back what a block has beyond `bytes`. Nothing has been executed there, so that it is free at once.
    pub fn shrink(&mut self, block: &mut Block, bytes: usize) {
        let units = (bytes.div_ceil(UNIT).max(1) as u32).min(block.units);
        let rest = block.units - units;
        self.mark(block.first, units, State::Used);
        if rest == 0 {
            return;
        }
        self.used -= rest as usize * UNIT;
        self.merge(block.first + units, rest);
        block.units = units;
    }

    /// Frees a block that was never executed, at once.
    pub fn discard(&mut self, block: Block) {
        self.used -= block.length();
        self.merge(block.first, block.units);
    }

    /// Frees a block. Threads may still be inside of it, but none enters it any more.
    pub fn free(&mut self, block: Block) {
        self.mark(block.first, block.units, State::Waiting);
        let unit = &mut self.units[block.first as usize];
        (unit.next, unit.era) = (NONE, self.grace.advance());
        match self.youngest {
            NONE => self.oldest = block.first,
            last => self.units[last as usize].next = block.first,
        }
        self.youngest = block.first;
    }

    /// Frees the blocks whose grace period is over.
    fn reclaim(&mut self) {
        let elapsed = if self.oldest == NONE { 0 } else { self.grace.elapsed() };
        while let Some(unit) = self.units.get(self.oldest as usize).copied().filter(|unit| unit.era <= elapsed) {
            let first = self.oldest;
            self.oldest = unit.next;
            if unit.next == NONE {
                self.youngest = NONE;
            }
            self.used -= unit.length as usize * UNIT;
            match self.quick.get_mut(unit.length as usize) {
                Some(list) => {
                    let entry = &mut self.units[first as usize];
                    (entry.next, entry.state) = (*list, State::Quick);
                    *list = first;
                }
                None => self.merge(first, unit.length),
            }
        }
    }

    /// Makes a block free, together with free neighbours.
    fn merge(&mut self, mut first: u32, mut units: u32) {
        if let Some(after) = self.units.get((first + units) as usize).copied().filter(|unit| unit.state == State::Free)
        {
            self.unlink(first + units, after.length);
            units += after.length;
        }
        if let Some(before) = first.checked_sub(1).map(|last| self.units[last as usize])
            && before.state == State::Free
        {
            first -= before.length;
            self.unlink(first, before.length);
            units += before.length;
        }
        self.insert(first, units);
    }

    /// Writes the tags of a block.
    fn mark(&mut self, first: u32, units: u32, state: State) {
        // What is inside of a free block is never looked at.
        if state == State::Used {
            for distance in 1..units {
                let unit = &mut self.units[(first + distance) as usize];
                (unit.length, unit.state) = (distance, State::Inside);
            }
        }
        for (end, unit) in [(false, first), (true, first + units - 1)] {
            // The last unit of a block in use says how far it is from the first, as those inside do.
            if end && state != State::Free {
                continue;
            }
            let unit = &mut self.units[unit as usize];
            (unit.length, unit.state) = (units, state);
        }
    }

    fn insert(&mut self, first: u32, units: u32) {
        self.mark(first, units, State::Free);
        let list = list_of(units);
        let next = self.free[list];
        if next != NONE {
            self.units[next as usize].previous = first;
        }
        let unit = &mut self.units[first as usize];
        (unit.next, unit.previous) = (next, NONE);
        self.free[list] = first;
    }

    fn unlink(&mut self, first: u32, units: u32) {
        let Unit { next, previous, .. } = self.units[first as usize];
        match previous {
            NONE => self.free[list_of(units)] = next,
            previous => self.units[previous as usize].next = next,
        }
        if next != NONE {
            self.units[next as usize].previous = previous;
        }
    }

    /// Where a block is written.
    pub(crate) fn writable(&self, block: &Block) -> *mut u8 {
        self.write.wrapping_add(block.first as usize * UNIT)
    }

    /// Where a block is executed.
    pub(crate) fn executable(&self, block: &Block) -> usize {
        self.execute + block.first as usize * UNIT
    }

    /// Notes which routine a block holds.
    pub(crate) fn note_routine(&mut self, block: &Block, name: &'static str, code: usize) {
        let unit = &mut self.units[block.first as usize];
        (unit.name, unit.code) = (name, code as u32);
    }

    /// The routine around an executable address.
    pub fn routine_at(&self, address: usize) -> Option<Found<'_>> {
        let (entry, bytes) = self.around(address)?;
        let unit = &self.units[(entry - self.execute) / UNIT];
        bytes.get(..unit.code as usize).map(|code| Found { name: unit.name, entry, code })
    }

    /// All routines, by address. Blocks that wait for their grace period are not among them.
    pub fn routines(&self) -> impl Iterator<Item = Found<'_>> {
        let mut at = 0;
        core::iter::from_fn(move || {
            loop {
                let unit = self.units.get(at)?;
                let first = at;
                at += unit.length.max(1) as usize;
                if unit.state == State::Used && !unit.name.is_empty() {
                    return self.routine_at(self.execute + first * UNIT);
                }
            }
        })
    }

    /// The allocated block around an executable address; with the block's first address, and the bytes that it has.
    pub(crate) fn around(&self, address: usize) -> Option<(usize, &[u8])> {
        let index = address.checked_sub(self.execute)? / UNIT;
        let unit = self.units.get(index)?;
        let first = match unit.state {
            State::Inside => index.checked_sub(unit.length as usize)?,
            State::Used | State::Waiting => index,
            State::Free | State::Quick => return None,
        };
        let block = self.units[first];
        let length = match block.state {
            State::Used | State::Waiting => block.length as usize * UNIT,
            State::Free | State::Quick | State::Inside => return None,
        };
        // SAFETY: the block is inside the memory, which is readable by the promise of `new`. While it is allocated or
        // waits, only patches of single instructions change it.
        let bytes = unsafe { core::slice::from_raw_parts(self.write.add(first * UNIT), length) };
        Some((self.execute + first * UNIT, bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    extern crate std;
    use std::vec;
    use std::vec::Vec;

    const BYTES: usize = 64 * UNIT;

    /// Runs a test on an arena of 64 units. Nothing is executed.
    fn with_arena(check: impl FnOnce(&mut Arena<'_, 2>, &Grace<2>)) {
        let mut memory = vec![0_u64; BYTES / 8];
        let mut units = [Unit::NEW; 64];
        let grace = Grace::new();
        let write = memory.as_mut_ptr().cast::<u8>();
        // SAFETY: the memory lives as long as the arena, and nothing is executed.
        let mut arena = unsafe { Arena::new(write, 0x1000, BYTES, &mut units, &grace) };
        check(&mut arena, &grace);
        let whole = arena.allocate(BYTES);
        assert!(whole.is_ok(), "after everything was freed there is one free block");
        let _ = whole.map(|block| arena.discard(block));
    }

    #[test]
    fn blocks_do_not_overlap_and_merge_again() {
        with_arena(|arena, _| {
            let mut random = 1_u64;
            let mut blocks: Vec<Block> = Vec::new();
            for _ in 0..20_000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let dice = (random >> 33) as usize;
                if dice.is_multiple_of(3) && !blocks.is_empty() {
                    arena.discard(blocks.swap_remove(dice / 3 % blocks.len()));
                } else if let Ok(mut block) = arena.allocate(1 + dice / 3 % (7 * UNIT)) {
                    if dice.is_multiple_of(5) {
                        arena.shrink(&mut block, UNIT);
                    }
                    blocks.push(block);
                }
                let mut ends: Vec<_> = blocks.iter().map(|block| (block.first, block.first + block.units)).collect();
                ends.sort_unstable();
                assert!(ends.windows(2).all(|pair| pair[0].1 <= pair[1].0), "{ends:?}");
                assert_eq!(arena.used(), blocks.iter().map(Block::length).sum::<usize>());
                for block in &blocks {
                    let (start, bytes) =
                        arena.around(arena.executable(block) + block.length() - 1).expect("it is used");
                    assert_eq!((start, bytes.len()), (arena.executable(block), block.length()));
                }
            }
            blocks.into_iter().for_each(|block| arena.discard(block));
        });
    }

    #[test]
    fn a_million_allocations_need_no_more_memory_than_one() {
        with_arena(|arena, grace| {
            let thread = grace.register().expect("there is room for two");
            for turn in 0..1_000_000_usize {
                let block = arena.allocate(1 + turn % (20 * UNIT)).expect("it is free again");
                arena.free(block);
                grace.quiescent(&thread);
            }
            assert!(arena.used() <= 20 * UNIT);
            grace.leave(thread);
            let _ = arena.allocate(1).map(|block| arena.discard(block));
        });
    }

    #[test]
    fn a_freed_block_waits_for_every_participant() {
        with_arena(|arena, grace| {
            let (first, second) = (grace.register().unwrap(), grace.register().unwrap());
            assert!(grace.register().is_none(), "there are two places");
            let block = arena.allocate(BYTES).unwrap();
            arena.free(block);
            assert_eq!(arena.allocate(1), Err(Error::NoMemory));
            grace.quiescent(&first);
            assert_eq!(arena.allocate(1), Err(Error::NoMemory), "the second may be inside");
            grace.quiescent(&second);
            let block = arena.allocate(BYTES).expect("both have left it");
            arena.free(block);
            grace.leave(first);
            assert_eq!(arena.allocate(1), Err(Error::NoMemory));
            grace.leave(second);
            let block = arena.allocate(1).expect("no participant can be inside");
            arena.discard(block);
        });
    }

    #[test]
    fn blocks_that_are_too_long_are_an_error() {
        with_arena(|arena, _| {
            assert_eq!(arena.allocate(BYTES + 1), Err(Error::NoMemory));
            assert_eq!(arena.allocate(usize::MAX), Err(Error::NoMemory));
        });
    }
}
