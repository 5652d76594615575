//! Routines: code in a block of the arena, its name, and the instructions that may fault.
//!
//! ```text
//! block    |code . . . . . . . . . . . . . . . . .|    |fault|fix-up|fault|fix-up|count|
//!           execution begins at the first byte          offsets, at the end of the block
//! ```
//!
//! An access to memory of a user may fault. The synthesiser announces each with the label where execution goes on in
//! that case ([`Builder::may_fault`](crate::Builder::may_fault)); the handler of faults asks [`Arena::fix_up`] with the
//! address of the instruction.

use quaject_vcode::decode::{self, Disassembly};

use crate::arena::{Arena, Block};

/// The bytes of a pair of offsets, and of the count.
pub(crate) const PAIR: usize = 8;
pub(crate) const COUNT: usize = 4;

/// Finished code.
#[derive(Debug, PartialEq, Eq)]
#[must_use = "a routine that is dropped keeps its memory; free it"]
pub struct Routine {
    pub(crate) block: Block,
    pub(crate) name: &'static str,
    pub(crate) entry: usize,
    pub(crate) length: usize,
}

impl Routine {
    /// The address of its first instruction.
    pub fn entry(&self) -> usize {
        self.entry
    }

    /// What it was called when it was begun.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The bytes of its code.
    pub fn length(&self) -> usize {
        self.length
    }

    /// The bytes of memory that it takes.
    pub fn memory(&self) -> usize {
        self.block.length()
    }

    /// Whether an address is inside of its memory.
    pub fn contains(&self, address: usize) -> bool {
        address.wrapping_sub(self.entry) < self.memory()
    }

    /// Its code as text, a line per instruction.
    pub fn listing<'c, const N: usize>(&self, arena: &'c Arena<'_, N>) -> Disassembly<'c> {
        let bytes = arena.around(self.entry).map_or(&[][..], |(_, bytes)| &bytes[..self.length]);
        Disassembly::new(&decode::X86_64, bytes, self.entry)
    }
}

impl<const N: usize> Arena<'_, N> {
    /// Frees a routine. Threads may still be inside of it, but none enters it any more: what referred to it refers to
    /// something else.
    pub fn free_routine(&mut self, routine: Routine) {
        self.free(routine.block);
    }

    /// Where execution goes on after the instruction at `address` has faulted; none if this is no instruction of a
    /// routine that may fault.
    pub fn fix_up(&self, address: usize) -> Option<usize> {
        let (start, bytes) = self.around(address)?;
        let (rest, count) = bytes.split_last_chunk::<COUNT>()?;
        let count = u32::from_le_bytes(*count) as usize;
        let table = rest.get(rest.len().checked_sub(count.checked_mul(PAIR)?)?..)?;
        let wanted = (address - start) as u32;
        let (pairs, _) = table.as_chunks::<PAIR>();
        pairs.iter().find_map(|pair| {
            let pair = u64::from_le_bytes(*pair);
            (pair as u32 == wanted).then(|| start + (pair >> u32::BITS) as usize)
        })
    }

    /// The writable address of a routine.
    pub(crate) fn writable_routine(&self, routine: &Routine) -> *mut u8 {
        self.writable(&routine.block)
    }
}
