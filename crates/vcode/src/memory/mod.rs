//! Code memory: functions are packed into memory that is mapped twice, once writable and once executable (W^X by dual
//! mapping). No mapping is both, and no page changes its protection. On RISC-V the instruction cache is synchronised by
//! a system call.
//!
//! ```text
//! memory        |######............|
//! write view    rw-                     where functions are written
//! execute view  r-x                     where they run
//! ```
//!
//! A forked child has code memory of its own: [`fork`](crate::fork).
//!
//! The views are the system's: [`linux`], and [`unsupported`] for the systems on which there are none yet.

#[cfg(target_os = "linux")]
pub(crate) mod linux;
#[cfg(not(target_os = "linux"))]
mod unsupported;

#[cfg(target_os = "linux")]
use linux::Views;
#[cfg(not(target_os = "linux"))]
use unsupported::Views;

use crate::asm::{Code, Region};
use crate::epilogue::synchronise;
use crate::error::Error;
use crate::fork::ForkLock;
use crate::patch::Placed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};

/// The unit of mappings, in bytes.
pub(crate) const PAGE: usize = 4096;
/// The alignment of functions, except in memory for a debugger.
const ALIGN: usize = 16;

/// Whether writes of a debugger to the execute view reach the write view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sharing {
    /// They do: both views are of the same pages.
    Shared,
    /// They do not: a page that the debugger writes is its own copy from then on.
    Private,
}

/// Code memory: functions are packed one after the other and freed individually.
///
/// Functions must not be called after their region was freed or the memory dropped. Pages that were never written take
/// no memory, so it may be as large as the client can ever need. A forked child has a copy of its own: see
/// [`fork`](crate::fork).
///
/// Only Linux has code memory. On other systems the constructors return [`Error::NoCodeMemory`], and the client keeps
/// to its general path.
#[derive(Debug)]
pub struct Memory {
    views: Arc<Views>,
    length: usize,
    /// Functions start at multiples of this.
    unit: usize,
    extents: Mutex<Extents>,
}

/// A function in [`Memory`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Installed {
    /// The address to call.
    pub entry: usize,
    /// Bytes it takes: with `entry` what [`Memory::free`] wants.
    pub length: usize,
}

impl Memory {
    /// Maps at least `bytes`.
    ///
    /// # Errors
    /// [`Error::Memory`] if the operating system refuses; [`Error::NoCodeMemory`] on systems other than Linux.
    pub fn new(bytes: usize) -> Result<Memory, Error> {
        Memory::map(bytes, ALIGN, Sharing::Shared)
    }

    /// Maps at least `bytes` for functions that a debugger may set breakpoints in. It writes them to its own copy of
    /// the page, which no longer changes with the rest; so every function has pages of its own here. Neither view is
    /// writable and executable for the process. [Patch points](crate::patch) in a page with a breakpoint do not change.
    ///
    /// # Errors
    /// Those of [`Memory::new`].
    pub fn debuggable(bytes: usize) -> Result<Memory, Error> {
        Memory::map(bytes, PAGE, Sharing::Private)
    }

    fn map(bytes: usize, unit: usize, sharing: Sharing) -> Result<Memory, Error> {
        let length = bytes.max(1).checked_next_multiple_of(PAGE).ok_or(Error::Memory)?;
        let extents = Mutex::new(Extents::new(length));
        Views::map(length, sharing).map(|views| Memory { views, length, unit, extents })
    }

    /// A free region of at least `bytes`. After the function is ended, give back what it did not use with
    /// [`Memory::keep`], or all of it with [`Memory::free`].
    ///
    /// # Errors
    /// [`Error::Memory`] when no free extent is that long.
    pub fn region(&self, bytes: usize) -> Result<Region<'_>, Error> {
        let bytes = bytes.max(1).checked_next_multiple_of(self.unit).ok_or(Error::Memory)?;
        let offset = self.allocate(bytes)?;
        // SAFETY: the extent was free, so nothing else uses it; it is inside the mappings, which live as long as
        // `self`.
        Ok(unsafe { Region::from_raw(self.views.writable().add(offset), bytes, self.execute() + offset) })
    }

    /// Installs a finished function: copies it from `buffer`, in which it was written. This packs best, because the
    /// room for the longest prologue stays in the buffer, which can be used again at once.
    ///
    /// The code must not contain its own address: it must not have used [`Asm::address`](crate::Asm::address).
    ///
    /// # Errors
    /// [`Error::Memory`] when no free extent is that long; [`Error::Overflow`] if `code` is not in `buffer`.
    pub fn install(&self, buffer: &[u8], code: &Code) -> Result<Installed, Error> {
        // Alignment stays what it was: constants and patch points rely on it.
        let pad = (code.entry % ALIGN).min(code.offset);
        let bytes = buffer.get(code.offset - pad..code.offset + code.length).ok_or(Error::Overflow)?;
        let length = bytes.len().max(1).checked_next_multiple_of(self.unit).ok_or(Error::Memory)?;
        let offset = self.allocate(length)?;
        let start = self.execute() + offset;
        // SAFETY: the extent was free, so nothing else uses it, and it is inside the mapping.
        unsafe {
            let at = self.views.writable().add(offset);
            at.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            synchronise(at as usize, length);
        }
        synchronise(start, length);
        Ok(Installed { entry: start + pad, length })
    }

    /// Frees the unused rest of a region, so that functions are packed. `execute` and `length` are those of what
    /// [`Memory::region`] returned; `used` counts from its start.
    pub fn keep(&self, execute: usize, length: usize, used: usize) {
        let used = used.next_multiple_of(self.unit).min(length);
        if let Some(offset) = execute.checked_sub(self.execute())
            && used < length
        {
            self.change(|extents| extents.free(offset + used, length - used));
        }
    }

    /// Frees a region or an installed function, which must not be called any more.
    pub fn free(&self, execute: usize, length: usize) {
        let start = execute - execute % self.unit;
        if let Some(offset) = start.checked_sub(self.execute())
            && length > 0
        {
            self.change(|extents| extents.free(offset, length.next_multiple_of(self.unit)));
        }
    }

    /// The writable address of the byte that is executed at `address`, if it is in this memory.
    pub fn writable(&self, address: usize) -> Option<*mut u8> {
        let offset = address.checked_sub(self.execute())?;
        (offset < self.length).then(|| self.views.writable().wrapping_add(offset))
    }

    /// The addresses of a function that was written to a region of this memory, or installed at `entry`.
    pub fn placed(&self, code: &Code, entry: usize) -> Option<Placed> {
        let write = self.writable(entry)?;
        // SAFETY: the address is in the write view, which lives as long as the function is in this memory.
        Some(unsafe { Placed::from_raw(code, entry, write) })
    }

    /// Bytes that are free, in all extents together.
    pub fn available(&self) -> usize {
        self.change(|extents| extents.available())
    }

    /// The address of the execute view.
    fn execute(&self) -> usize {
        self.views.execute()
    }

    fn allocate(&self, bytes: usize) -> Result<usize, Error> {
        let offset = self.change(|extents| extents.allocate(bytes)).ok_or(Error::Memory)?;
        if !self.views.use_until(offset + bytes) {
            return Err(Error::Memory);
        }
        if self.unit == PAGE {
            self.views.discard_copies(offset, bytes);
        }
        Ok(offset)
    }

    /// Accesses the free space. A fork waits meanwhile, so that the child finds the lock free.
    fn change<R>(&self, change: impl FnOnce(&mut Extents) -> R) -> R {
        let _fork = ForkLock::hold();
        change(&mut self.extents.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The free space (best fit): everything from `fresh` on, and the holes before it, coalesced with each other and with
/// `fresh`.
///
/// ```text
/// 0                    fresh          length
/// |used|hole|used|used|..................|
/// ```
#[derive(Debug)]
struct Extents {
    length: usize,
    fresh: usize,
    /// Holes: length by offset.
    holes: BTreeMap<usize, usize>,
    /// The same as (length, offset), for best fit.
    by_length: BTreeSet<(usize, usize)>,
}

impl Extents {
    fn new(length: usize) -> Extents {
        Extents { length, fresh: 0, holes: BTreeMap::new(), by_length: BTreeSet::new() }
    }

    fn allocate(&mut self, bytes: usize) -> Option<usize> {
        if let Some(&(length, offset)) = self.by_length.range((bytes, 0)..).next() {
            self.remove_hole(offset, length);
            if length > bytes {
                self.insert_hole(offset + bytes, length - bytes);
            }
            return Some(offset);
        }
        let offset = self.fresh;
        self.fresh = offset.checked_add(bytes).filter(|end| *end <= self.length)?;
        Some(offset)
    }

    /// Frees an extent; has no effect unless all of it is in use.
    fn free(&mut self, offset: usize, length: usize) {
        let Some(end) = offset.checked_add(length).filter(|end| *end <= self.fresh) else { return };
        let before = self.holes.range(..=offset).next_back().map(|(own, length)| (*own, *length));
        let after = self.holes.range(offset..).next().map(|(own, length)| (*own, *length));
        if before.is_some_and(|(own, length)| own + length > offset) || after.is_some_and(|(own, _)| own < end) {
            return;
        }
        let (mut start, mut stop) = (offset, end);
        if let Some((own, length)) = before.filter(|(own, length)| own + length == offset) {
            self.remove_hole(own, length);
            start = own;
        }
        if let Some((own, length)) = after.filter(|(own, _)| *own == end) {
            self.remove_hole(own, length);
            stop = own + length;
        }
        if stop == self.fresh {
            self.fresh = start;
        } else {
            self.insert_hole(start, stop - start);
        }
    }

    fn insert_hole(&mut self, offset: usize, length: usize) {
        self.holes.insert(offset, length);
        self.by_length.insert((length, offset));
    }

    fn remove_hole(&mut self, offset: usize, length: usize) {
        self.holes.remove(&offset);
        self.by_length.remove(&(length, offset));
    }

    fn available(&self) -> usize {
        self.length - self.fresh + self.holes.values().sum::<usize>()
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use quaject_test_support::Random;
    use std::vec;
    use std::vec::Vec;

    use super::*;

    /// A function that is all of `bytes`.
    fn code_of(bytes: &[u8]) -> Code {
        Code { entry: 0, offset: 0, length: bytes.len(), instructions: bytes.len() }
    }

    #[test]
    fn freed_extents_are_joined_and_used_again() {
        let memory = Memory::new(PAGE).expect("the system gives a page");
        let regions: Vec<(usize, usize)> = (0..4)
            .map(|_| memory.region(1000).map(|region| (region.execute, region.length)).expect("a page holds four"))
            .collect();
        assert!(memory.region(1000).is_err());
        for (execute, length) in [regions[1], regions[3], regions[2], regions[0]] {
            memory.free(execute, length);
        }
        assert_eq!(memory.available(), PAGE);
        assert!(memory.region(PAGE).is_ok());
    }

    #[test]
    fn functions_are_near_the_program() {
        let program = functions_are_near_the_program as *const () as usize;
        if program < 1 << 32 {
            // Where programs are at the bottom there is no room below.
            return;
        }
        let memories = [1, 1 << 28, 1 << 28, PAGE].map(|bytes| Memory::new(bytes).expect("the system gives pages"));
        for memory in &memories {
            let distance = program.abs_diff(memory.execute());
            assert!(distance < 1 << 32, "{distance:#x} between the program and its functions");
        }
    }

    #[test]
    fn freeing_twice_or_elsewhere_changes_nothing() {
        let memory = Memory::new(PAGE).expect("the system gives a page");
        let region = memory.region(64).expect("a page holds it");
        let (execute, length) = (region.execute, region.length);
        memory.free(execute, length);
        memory.free(execute, length);
        memory.free(execute + PAGE, 64);
        memory.free(0, 64);
        assert_eq!(memory.available(), PAGE);
    }

    #[test]
    fn installed_functions_are_packed_and_their_places_used_again() {
        let memory = Memory::new(PAGE).expect("the system gives a page");
        let install = |bytes: &[u8]| memory.install(bytes, &code_of(bytes)).expect("a page holds them");
        let all: Vec<Installed> = (1..=5).map(|length| install(&vec![length; 16 * usize::from(length)])).collect();
        assert!(all.windows(2).all(|pair| pair[0].entry + pair[0].length == pair[1].entry));
        memory.free(all[1].entry, all[1].length);
        memory.free(all[3].entry, all[3].length);
        assert_eq!(install(&[9; 20]).entry, all[1].entry, "the smallest hole that is long enough");
        assert_eq!(install(&[9; 33]).entry, all[3].entry);
        assert_eq!(install(&[9; 16]).entry, all[3].entry + 48);
        assert_eq!(install(&[9; 16]).entry, all[4].entry + all[4].length, "no hole is left");
        assert!(memory.install(&[0; PAGE], &code_of(&[0; PAGE])).is_err(), "nothing is written when there is no room");
    }

    #[test]
    fn random_functions_never_overlap_and_all_comes_back() {
        let memory = Memory::new(16 * PAGE).expect("the system gives pages");
        let mut random = Random(7);
        let install = |bytes: &[u8]| memory.install(bytes, &code_of(bytes));
        let mut live: Vec<(Installed, u8)> = Vec::new();
        for turn in 0..3000_usize {
            if random.index(3) == 0 && !live.is_empty() {
                let (freed, _) = live.swap_remove(random.index(live.len()));
                memory.free(freed.entry, freed.length);
            } else if let Ok(installed) = install(&vec![turn as u8; 1 + random.index(700)]) {
                live.push((installed, turn as u8));
            }
        }
        for (installed, fill) in &live {
            // SAFETY: the function is still installed, and the execute view is readable.
            assert_eq!(unsafe { *(installed.entry as *const u8) }, *fill);
        }
        for (freed, _) in live {
            memory.free(freed.entry, freed.length);
        }
        assert_eq!(memory.available(), 16 * PAGE);
    }

    #[test]
    fn functions_for_a_debugger_have_pages_of_their_own() {
        let memory = Memory::debuggable(4 * PAGE).expect("the system gives pages");
        let first = memory.install(&[7], &code_of(&[7])).expect("there is a page");
        let second = memory.install(&[8], &code_of(&[8])).expect("there is a page");
        assert_eq!(second.entry - first.entry, PAGE);
        memory.free(first.entry, first.length);
        let third = memory.install(&[9], &code_of(&[9])).expect("there is a page");
        assert_eq!(third.entry, first.entry);
        // SAFETY: the function is installed, and the execute view is readable.
        assert_eq!(unsafe { *(third.entry as *const u8) }, 9);
    }

    #[test]
    fn no_page_is_writable_and_executable() {
        let memory = Memory::new(PAGE).expect("the system gives a page");
        memory.install(&[0], &code_of(&[0])).expect("a page holds a byte");
        let maps = std::fs::read_to_string("/proc/self/maps").expect("Linux tells the mappings");
        let ours: Vec<&str> = maps.lines().filter(|line| line.contains("quaject-code")).collect();
        assert!(ours.iter().any(|line| line.contains(" rw-s ")) && ours.iter().any(|line| line.contains(" r-xs ")));
        let both = |line: &str| line.split(' ').nth(1).is_some_and(|rights| rights.contains("wx"));
        assert!(!maps.lines().any(both), "{maps}");
    }
}
