//! The entries of a process: where its threads' calls lead. Calls whose answer never changes are routines that return
//! it.

use super::code::{free, instantiate, with_code};
use super::shapes::make_constant;
use super::vectors::Vectors;
use crate::arch::block::ENTRY_COUNT;
use crate::arch::entry::general_entry;
use alloc::boxed::Box;
use alloc::vec::Vec;
use quaject_synth::Routine;
use syscalls::Sysno;

/// Where the calls of a process's threads lead, and the routines of its own among that.
pub(crate) struct ProcessEntries {
    pub(crate) entries: Box<[u64; ENTRY_COUNT]>,
    own: Vec<Routine>,
}

impl ProcessEntries {
    /// The entries of a process with this number and these descriptors.
    pub(crate) fn new(id: u32, vectors: &Vectors) -> ProcessEntries {
        let entries = Box::new([general_entry as *const () as u64; ENTRY_COUNT]);
        let mut process = ProcessEntries { entries, own: Vec::new() };
        for (index, (call, address)) in
            [Sysno::read, Sysno::write, Sysno::lseek].into_iter().zip(vectors.addresses()).enumerate()
        {
            process.set(call, instantiate(|shapes| &shapes.dispatch[index], &[address]));
        }
        let thread_id = with_code(|code| code.shapes.thread_id.entry() as u64);
        if let Some(address) = thread_id {
            process.entries[Sysno::gettid as usize] = address;
        }
        process.set(Sysno::getpid, constant("getpid", i64::from(id)));
        // The kernel starts the first program itself, and every program is root.
        process.set(Sysno::getppid, constant("getppid", 1));
        for call in [Sysno::getuid, Sysno::geteuid, Sysno::getgid, Sysno::getegid] {
            process.set(call, constant(call.name(), 0));
        }
        process
    }

    fn set(&mut self, call: Sysno, routine: Option<Routine>) {
        if let Some(routine) = routine {
            self.entries[call as usize] = routine.entry() as u64;
            self.own.push(routine);
        }
    }
}

impl Drop for ProcessEntries {
    fn drop(&mut self) {
        self.own.drain(..).for_each(free);
    }
}

fn constant(name: &'static str, value: i64) -> Option<Routine> {
    with_code(|code| make_constant(&mut code.arena, name, value).ok())?
}
