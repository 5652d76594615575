//! Open files: what a descriptor leads to (the open file descriptions of POSIX).

use super::device::Device;
use super::location::Location;
use super::node::NodeKind;
use super::pipe::{Blocking, ReadEnd, WriteEnd};
use crate::synthesis::stream::{Direction, StreamEntries, StreamRoutines, Writes};
use alloc::rc::Rc;
use core::cell::{Cell, RefCell, UnsafeCell};
use linux_raw_sys::general::{
    O_ACCMODE, O_APPEND, O_NONBLOCK, O_RDONLY, O_WRONLY, SEEK_CUR, SEEK_END, SEEK_HOLE, SEEK_SET,
};
use quaject_synth::stream::Open;
use syscalls::Errno;

/// What an open file reads and writes.
pub(crate) enum Object {
    Located(Location),
    ReadEnd(ReadEnd),
    WriteEnd(WriteEnd),
}

/// An open file, which descriptors share.
pub(crate) struct OpenFile {
    pub(crate) object: Object,
    /// Where routines find the position.
    open: UnsafeCell<Open>,
    /// The flags of `open`.
    flags: Cell<u32>,
    /// The routines of files that have a node. Pipes have their own.
    routines: RefCell<StreamRoutines>,
}

impl OpenFile {
    /// Opens an object, and synthesises its routines.
    pub(crate) fn new(object: Object, flags: u32) -> Rc<OpenFile> {
        let file = Rc::new(OpenFile {
            object,
            open: UnsafeCell::new(Open { position: 0 }),
            flags: Cell::new(flags),
            routines: RefCell::new(StreamRoutines::none()),
        });
        // Only now it is where it stays.
        file.specialise();
        file
    }

    /// Synthesises the routines for the flags that it has now.
    fn specialise(&self) {
        let Object::Located(location) = &self.object else { return };
        let flags = self.flags.get();
        let may = match flags & O_ACCMODE {
            O_RDONLY => Direction::Read,
            O_WRONLY => Direction::Write,
            _ => Direction::Both,
        };
        let mut routines = self.routines.borrow_mut();
        match &location.node().kind {
            NodeKind::Device(Device::Null) => routines.become_null(may),
            NodeKind::Device(device) if device.is_terminal() => routines.become_terminal(may),
            NodeKind::Regular(contents) => {
                let writes = if flags & O_APPEND == 0 { Writes::AtPosition } else { Writes::AtEnd };
                routines.become_file(may, self.open.get() as usize, contents.address(), writes);
            }
            NodeKind::Device(_) | NodeKind::Directory(_) | NodeKind::SymbolicLink(_) => {}
        }
    }

    /// Where the calls of its descriptors lead.
    pub(crate) fn entries(&self) -> StreamEntries {
        match &self.object {
            Object::Located(_) => self.routines.borrow().entries(),
            Object::ReadEnd(end) => end.entries(),
            Object::WriteEnd(end) => end.entries(),
        }
    }

    /// The flags of `open`.
    pub(crate) fn flags(&self) -> u32 {
        self.flags.get()
    }

    /// Changes the flags. Its descriptors have to be refreshed then.
    pub(crate) fn set_flags(&self, flags: u32) {
        let changed = self.flags.replace(flags) ^ flags;
        if changed & O_APPEND != 0 {
            *self.routines.borrow_mut() = StreamRoutines::none();
            self.specialise();
        }
    }

    /// Where the next read or write happens.
    pub(crate) fn position(&self) -> u64 {
        // SAFETY: no routine runs while the kernel's code does, and no reference to the value exists.
        unsafe { (*self.open.get()).position }
    }

    fn set_position(&self, position: u64) {
        // SAFETY: as above.
        unsafe { (*self.open.get()).position = position }
    }

    fn blocking(&self) -> Blocking {
        if self.flags.get() & O_NONBLOCK == 0 { Blocking::Allowed } else { Blocking::Never }
    }

    fn check_readable(&self) -> Result<(), Errno> {
        if self.flags.get() & O_ACCMODE == O_WRONLY { Err(Errno::EBADF) } else { Ok(()) }
    }

    fn check_writable(&self) -> Result<(), Errno> {
        if self.flags.get() & O_ACCMODE == O_RDONLY { Err(Errno::EBADF) } else { Ok(()) }
    }

    /// Reads on. `blocking` is what the call allows in addition to the flags.
    pub(crate) fn read(&self, address: u64, length: usize, blocking: Blocking) -> Result<usize, Errno> {
        self.check_readable()?;
        match &self.object {
            Object::Located(location) => {
                let count = location.node().read_at(self.position(), address, length)?;
                self.advance(location, count);
                Ok(count)
            }
            Object::ReadEnd(end) => end.read(address, length, self.least(blocking)),
            Object::WriteEnd(_) => Err(Errno::EBADF),
        }
    }

    /// Writes on.
    pub(crate) fn write(&self, address: u64, length: usize) -> Result<usize, Errno> {
        self.check_writable()?;
        match &self.object {
            Object::Located(location) => {
                if self.flags.get() & O_APPEND != 0 {
                    self.set_position(location.node().size());
                }
                let count = location.node().write_at(self.position(), address, length)?;
                self.advance(location, count);
                Ok(count)
            }
            Object::ReadEnd(_) => Err(Errno::EBADF),
            Object::WriteEnd(end) => end.write(address, length, self.blocking()),
        }
    }

    fn least(&self, blocking: Blocking) -> Blocking {
        if blocking == Blocking::Never { Blocking::Never } else { self.blocking() }
    }

    fn advance(&self, location: &Location, count: usize) {
        match location.node().kind {
            NodeKind::Regular(_) => self.set_position(self.position() + count as u64),
            NodeKind::Directory(_) | NodeKind::SymbolicLink(_) | NodeKind::Device(_) => {}
        }
    }

    /// Reads from a place, without moving.
    pub(crate) fn read_at(&self, position: u64, address: u64, length: usize) -> Result<usize, Errno> {
        self.check_readable()?;
        match &self.object {
            Object::Located(location) => location.node().read_at(position, address, length),
            Object::ReadEnd(_) | Object::WriteEnd(_) => Err(Errno::ESPIPE),
        }
    }

    /// Writes to a place, without moving; at the end if the file is open for appending (as Linux does).
    pub(crate) fn write_at(&self, position: u64, address: u64, length: usize) -> Result<usize, Errno> {
        self.check_writable()?;
        match &self.object {
            Object::Located(location) => {
                let appends = self.flags.get() & O_APPEND != 0;
                let position = if appends { location.node().size() } else { position };
                location.node().write_at(position, address, length)
            }
            Object::ReadEnd(_) | Object::WriteEnd(_) => Err(Errno::ESPIPE),
        }
    }

    /// Moves to a place.
    pub(crate) fn seek(&self, offset: i64, whence: u32) -> Result<u64, Errno> {
        let Object::Located(location) = &self.object else { return Err(Errno::ESPIPE) };
        if let NodeKind::Device(device) = location.node().kind {
            // The others read the same everywhere; Linux answers so.
            return match whence {
                _ if device.is_terminal() => Err(Errno::ESPIPE),
                SEEK_SET..=SEEK_HOLE => Ok(0),
                _ => Err(Errno::EINVAL),
            };
        }
        let base = match whence {
            SEEK_SET => 0,
            SEEK_CUR => self.position(),
            SEEK_END => location.node().size(),
            _ => return Err(Errno::EINVAL),
        };
        let position = i64::try_from(base).ok().and_then(|base| base.checked_add(offset)).ok_or(Errno::EOVERFLOW)?;
        let position = u64::try_from(position).map_err(|_| Errno::EINVAL)?;
        self.set_position(position);
        Ok(position)
    }

    /// The location, of files that have one.
    pub(crate) fn location(&self) -> Option<&Location> {
        match &self.object {
            Object::Located(location) => Some(location),
            Object::ReadEnd(_) | Object::WriteEnd(_) => None,
        }
    }
}
