//! What the threads of a program share.

use super::futex::Futexes;
use super::signal::Actions;
use crate::fs::descriptors::Descriptors;
use crate::fs::location::Location;
use crate::memory::space::AddressSpace;
use crate::schedule::alarm::Alarm;
use crate::synthesis::ProcessEntries;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};

/// A process.
pub(crate) struct Process {
    pub(crate) id: u32,
    pub(crate) space: RefCell<AddressSpace>,
    pub(crate) files: RefCell<Descriptors>,
    /// Where relative paths start.
    pub(crate) directory: RefCell<Location>,
    pub(crate) futexes: Futexes,
    pub(crate) actions: RefCell<Actions>,
    /// The timer of `setitimer` and `alarm`.
    pub(crate) alarm: Rc<Alarm>,
    /// Permission bits that new files do not get.
    pub(crate) mask: Cell<u32>,
    /// The path of the program.
    pub(crate) program: Vec<u8>,
    /// Where the calls of new threads lead.
    pub(crate) entries: ProcessEntries,
}
