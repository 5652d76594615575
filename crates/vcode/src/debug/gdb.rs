//! GDB's interface for code made at run time: GDB has a breakpoint in `__jit_debug_register_code` and reads the list of
//! ELF objects whenever it is called ("JIT Compilation Interface" in its manual).
//!
//! GDB writes breakpoints into the code, which it can in [`Memory::debuggable`](crate::Memory::debuggable); in other
//! memory `hbreak` works. A breakpoint by name can be set once the function is registered.
//!
//! The two symbols are global. A program that links another code generator which defines them leaves out this crate's
//! feature `gdb`.

use std::boxed::Box;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};
use std::vec::Vec;

use super::FunctionInfo;
use super::elf::object;

#[repr(C)]
#[derive(Debug)]
struct CodeEntry {
    next: *mut CodeEntry,
    previous: *mut CodeEntry,
    object: *const u8,
    size: u64,
}

/// The head of the list, in the layout that GDB reads.
#[repr(C)]
#[derive(Debug)]
#[doc(hidden)]
pub struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut CodeEntry,
    first: *mut CodeEntry,
}

const NOTHING: u32 = 0;
const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

#[doc(hidden)]
// SAFETY: GDB looks for this name; one crate of a program defines it, by its feature.
#[unsafe(no_mangle)]
pub static mut __jit_debug_descriptor: Descriptor =
    Descriptor { version: 1, action: NOTHING, relevant: null_mut(), first: null_mut() };

#[doc(hidden)]
#[inline(never)]
// SAFETY: GDB looks for this name; one crate of a program defines it, by its feature.
#[unsafe(no_mangle)]
pub extern "C" fn __jit_debug_register_code() {
    // GDB stops here; the call must not be optimised away.
    std::hint::black_box(());
}

/// Guards the list of functions that GDB reads.
static LIST: Mutex<()> = Mutex::new(());

/// A function that GDB knows. Dropping this makes GDB forget it: before its code is freed.
#[derive(Debug)]
pub struct Registered {
    entry: *mut CodeEntry,
    object: Vec<u8>,
}

// SAFETY: the entry belongs to this value, and the list it is in is behind a lock.
unsafe impl Send for Registered {}
// SAFETY: nothing is changed through a shared reference.
unsafe impl Sync for Registered {}

/// Registers a function with GDB.
pub fn register(described: &FunctionInfo<'_>) -> Registered {
    let object = object(described);
    let entry = Box::into_raw(Box::new(CodeEntry {
        next: null_mut(),
        previous: null_mut(),
        object: object.as_ptr(),
        size: object.len() as u64,
    }));
    let held = LIST.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: 1. The lock is held, so no other thread accesses the list. 2. Entries are alive while they are in it.
    unsafe {
        let list = &raw mut __jit_debug_descriptor;
        (*entry).next = (*list).first;
        if !(*list).first.is_null() {
            (*(*list).first).previous = entry;
        }
        (*list).first = entry;
        notify(list, entry, REGISTER);
    }
    drop(held);
    Registered { entry, object }
}

/// # Safety
/// The lock must be held, and `list` be the descriptor.
unsafe fn notify(list: *mut Descriptor, entry: *mut CodeEntry, action: u32) {
    // SAFETY: the caller holds the lock.
    unsafe {
        (*list).relevant = entry;
        (*list).action = action;
        __jit_debug_register_code();
        (*list).relevant = null_mut();
        (*list).action = NOTHING;
    }
}

impl Registered {
    /// The ELF object that describes the function.
    pub fn object(&self) -> &[u8] {
        &self.object
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let held = LIST.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: 1. The lock is held. 2. The entry was inserted by `register`, and only this function removes or frees
        // it.
        unsafe {
            let list = &raw mut __jit_debug_descriptor;
            let (next, previous) = ((*self.entry).next, (*self.entry).previous);
            if !next.is_null() {
                (*next).previous = previous;
            }
            if previous.is_null() {
                (*list).first = next;
            } else {
                (*previous).next = next;
            }
            notify(list, self.entry, UNREGISTER);
            drop(Box::from_raw(self.entry));
        }
        drop(held);
    }
}
