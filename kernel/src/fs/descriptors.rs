//! Descriptors: the numbers by which a process names its open files.

use super::limits::MAX_DESCRIPTORS;
use super::open_file::OpenFile;
use crate::synthesis::Vectors;
use alloc::rc::Rc;
use alloc::vec::Vec;
use syscalls::Errno;

/// What `execve` does with a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum OnExec {
    Keep,
    Close,
}

struct Descriptor {
    file: Rc<OpenFile>,
    on_exec: OnExec,
}

/// The descriptors of a process.
pub(crate) struct Descriptors {
    slots: Vec<Option<Descriptor>>,
    first_free: usize,
    vectors: Vectors,
}

impl Descriptors {
    /// None.
    pub(crate) fn new() -> Descriptors {
        Descriptors { slots: Vec::new(), first_free: 0, vectors: Vectors::new() }
    }

    /// Where the routines of the calls find those of descriptors.
    pub(crate) fn vectors(&self) -> &Vectors {
        &self.vectors
    }

    /// Lets the descriptors of a file lead to its routines, which have changed.
    pub(crate) fn refresh(&self, file: &Rc<OpenFile>) {
        for (number, slot) in self.slots.iter().enumerate() {
            if slot.as_ref().is_some_and(|descriptor| Rc::ptr_eq(&descriptor.file, file)) {
                self.vectors.set(number, file.entries());
            }
        }
    }

    /// The open file behind a number.
    pub(crate) fn file(&self, number: u64) -> Result<Rc<OpenFile>, Errno> {
        self.descriptor(number).map(|descriptor| descriptor.file.clone())
    }

    /// What `execve` does with a number.
    pub(crate) fn on_exec(&self, number: u64) -> Result<OnExec, Errno> {
        self.descriptor(number).map(|descriptor| descriptor.on_exec)
    }

    // A descriptor is an `int`: Linux looks at the lower half of the register only.
    fn descriptor(&self, number: u64) -> Result<&Descriptor, Errno> {
        self.slots.get(number as u32 as usize).and_then(Option::as_ref).ok_or(Errno::EBADF)
    }

    /// Says what `execve` does with a number.
    pub(crate) fn set_on_exec(&mut self, number: u64, on_exec: OnExec) -> Result<(), Errno> {
        let slot = self.slots.get_mut(number as u32 as usize).and_then(Option::as_mut).ok_or(Errno::EBADF)?;
        slot.on_exec = on_exec;
        Ok(())
    }

    /// Gives a file the least number from `least` on that is free.
    pub(crate) fn add(&mut self, file: Rc<OpenFile>, on_exec: OnExec, least: usize) -> Result<u64, Errno> {
        // Below `first_free` every number is taken.
        let start = least.max(self.first_free);
        let is_free = |number: &usize| self.slots.get(*number).is_none_or(Option::is_none);
        let number = (start..MAX_DESCRIPTORS).find(is_free).ok_or(Errno::EMFILE)?;
        if least <= self.first_free {
            self.first_free = number + 1;
        }
        self.put(number, file, on_exec)?;
        Ok(number as u64)
    }

    /// Gives a file a number, in place of the file that has it.
    pub(crate) fn replace(&mut self, number: u64, file: Rc<OpenFile>, on_exec: OnExec) -> Result<(), Errno> {
        let number = number as u32 as usize;
        if number >= MAX_DESCRIPTORS {
            return Err(Errno::EBADF);
        }
        self.put(number, file, on_exec)
    }

    fn put(&mut self, number: usize, file: Rc<OpenFile>, on_exec: OnExec) -> Result<(), Errno> {
        if number >= self.slots.len() {
            self.slots.try_reserve(number + 1 - self.slots.len()).map_err(|_| Errno::ENOMEM)?;
            self.slots.resize_with(number + 1, || None);
        }
        self.vectors.set(number, file.entries());
        self.slots[number] = Some(Descriptor { file, on_exec });
        Ok(())
    }

    /// Frees a number. The caller drops the file, which may wake threads.
    pub(crate) fn remove(&mut self, number: u64) -> Result<Rc<OpenFile>, Errno> {
        let number = number as u32 as usize;
        let slot = self.slots.get_mut(number).ok_or(Errno::EBADF)?;
        let file = slot.take().map(|descriptor| descriptor.file).ok_or(Errno::EBADF)?;
        self.first_free = self.first_free.min(number);
        self.vectors.clear(number);
        Ok(file)
    }
}
