//! The memory of a function under construction: its code and tables, of the sizes that the caller has chosen. Does not
//! know machines.

use std::boxed::Box;
use std::vec::Vec;

use core::mem::MaybeUninit;
use core::ptr::NonNull;

use super::failure::{Failure, Status};
use crate::asm::{Constant, Fixup, FunctionState, Region, Tables};

/// How much of what a function may have.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) bytes: usize,
    pub(super) labels: usize,
    pub(super) references: usize,
    pub(super) constants: usize,
}

/// The number of released stack slots that are remembered.
const SLOTS: usize = 1024;

/// The longest table: labels have 24 bits.
const MAX_ENTRIES: usize = 0xff_fff0;

/// The longest code: distances have 32 bits.
const MAX_BYTES: usize = 1 << 30;

/// Memory that is lent to an assembler and freed when this is dropped.
pub(super) struct Storage {
    code: NonNull<[u8]>,
    function: NonNull<MaybeUninit<FunctionState>>,
    labels: NonNull<[MaybeUninit<u32>]>,
    fixups: NonNull<[MaybeUninit<Fixup>]>,
    constants: NonNull<[MaybeUninit<Constant>]>,
    slots: NonNull<[u32]>,
}

/// What is lent.
pub(super) struct Lent {
    pub(super) region: Region<'static>,
    pub(super) tables: Tables<'static>,
    pub(super) slots: &'static mut [u32],
}

/// A list on the heap that does not move, or an error instead of an abort.
fn list<T: Clone>(length: usize, fill: T) -> Result<NonNull<[T]>, Failure> {
    let mut list = Vec::new();
    list.try_reserve_exact(length).map_err(|_| Failure::from(Status::Memory))?;
    list.resize(length, fill);
    Ok(NonNull::from(Box::leak(list.into_boxed_slice())))
}

impl Storage {
    pub(super) fn new(room: Room) -> Result<Storage, Failure> {
        let Room { bytes, labels, references, constants } = room;
        for (name, asked, limit) in [
            ("bytes", bytes, MAX_BYTES),
            ("labels", labels, MAX_ENTRIES),
            ("references", references, MAX_ENTRIES),
            ("constants", constants, MAX_ENTRIES),
        ] {
            if asked > limit {
                return Err(Failure::new(Status::Option, std::format!("`{name}` is {asked}, the limit is {limit}")));
            }
        }
        let mut storage = Storage {
            code: list(0, 0)?,
            function: NonNull::from(Box::leak(Box::new(MaybeUninit::uninit()))),
            labels: list(0, MaybeUninit::uninit())?,
            fixups: list(0, MaybeUninit::uninit())?,
            constants: list(0, MaybeUninit::uninit())?,
            slots: list(0, 0)?,
        };
        // What was allocated is in the value already if one of these is refused; an empty list owns nothing.
        storage.code = list(bytes, 0)?;
        storage.labels = list(labels, MaybeUninit::uninit())?;
        storage.fixups = list(references, MaybeUninit::uninit())?;
        storage.constants = list(constants, MaybeUninit::uninit())?;
        storage.slots = list(SLOTS, 0)?;
        Ok(storage)
    }

    /// Lends everything.
    ///
    /// # Safety
    /// It must be called once, and what is lent must not be used after this value is dropped.
    pub(super) unsafe fn lend(&mut self) -> Lent {
        // SAFETY: 1. The lists are on the heap and belong to this value, which has no references to them. 2. They live
        // as long as it does, and the caller uses them no longer.
        unsafe {
            let code = self.code.as_mut();
            Lent {
                // Written as if the region began at address 0: code does not contain its own address, and its alignment
                // is then that of its offset.
                region: Region::from_raw(code.as_mut_ptr(), code.len(), 0),
                tables: Tables {
                    function: self.function.as_mut(),
                    labels: self.labels.as_mut(),
                    fixups: self.fixups.as_mut(),
                    constants: self.constants.as_mut(),
                },
                slots: self.slots.as_mut(),
            }
        }
    }

    /// The bytes of the region.
    ///
    /// # Safety
    /// Nothing that was lent may be used any more.
    pub(super) unsafe fn code(&self) -> &[u8] {
        // SAFETY: the list belongs to this value, and nothing else refers to it any more.
        unsafe { self.code.as_ref() }
    }
}

impl Drop for Storage {
    fn drop(&mut self) {
        // SAFETY: 1. All of them come from boxes that were leaked in `new`. 2. No borrower uses them any longer.
        unsafe {
            drop(Box::from_raw(self.code.as_ptr()));
            drop(Box::from_raw(self.function.as_ptr()));
            drop(Box::from_raw(self.labels.as_ptr()));
            drop(Box::from_raw(self.fixups.as_ptr()));
            drop(Box::from_raw(self.constants.as_ptr()));
            drop(Box::from_raw(self.slots.as_ptr()));
        }
    }
}
