//! Nodes: what a name in the tree of files stands for (the inodes of UNIX).

use super::contents::Contents;
use super::device::Device;
use crate::arch::time;
use crate::memory::user;
use alloc::collections::BTreeMap;
use alloc::rc::Rc;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use syscalls::Errno;

/// The names in a directory.
pub(crate) type Names = BTreeMap<Vec<u8>, Rc<Node>>;

/// What a node is.
pub(crate) enum NodeKind {
    Directory(RefCell<Names>),
    Regular(Contents),
    /// Holds the path that replaces it.
    SymbolicLink(Vec<u8>),
    Device(Device),
}

/// A node.
pub(crate) struct Node {
    pub(crate) number: u64,
    pub(crate) kind: NodeKind,
    /// The permission bits of `st_mode`.
    pub(crate) permissions: Cell<u32>,
    /// When it was made: nanoseconds since 1970.
    made_ns: u64,
}

/// The largest file, so that a program cannot use up the kernel's memory by one call.
const MAX_FILE_BYTES: u64 = 1 << 30;

impl Node {
    pub(crate) fn new(kind: NodeKind, permissions: u32) -> Rc<Node> {
        // One processor: the counter needs no order.
        static NEXT: crate::cell::Global<u64> = crate::cell::Global::new(1);
        let number = NEXT.with(|next| {
            *next += 1;
            *next
        });
        Rc::new(Node { number, kind, permissions: Cell::new(permissions), made_ns: time::coarse_ns() })
    }

    pub(crate) fn directory(permissions: u32) -> Rc<Node> {
        Node::new(NodeKind::Directory(RefCell::new(Names::new())), permissions)
    }

    pub(crate) fn regular(contents: Vec<u8>, permissions: u32) -> Rc<Node> {
        Node::new(NodeKind::Regular(Contents::new(contents)), permissions)
    }

    /// The names of a directory.
    pub(crate) fn names(&self) -> Result<&RefCell<Names>, Errno> {
        match &self.kind {
            NodeKind::Directory(names) => Ok(names),
            NodeKind::Regular(_) | NodeKind::SymbolicLink(_) | NodeKind::Device(_) => Err(Errno::ENOTDIR),
        }
    }

    pub(crate) fn size(&self) -> u64 {
        match &self.kind {
            NodeKind::Directory(names) => names.borrow().len() as u64,
            NodeKind::Regular(contents) => contents.size(),
            NodeKind::SymbolicLink(target) => target.len() as u64,
            NodeKind::Device(_) => 0,
        }
    }

    /// When it was changed: nanoseconds since 1970.
    pub(crate) fn modified_ns(&self) -> u64 {
        match &self.kind {
            NodeKind::Regular(contents) => contents.modified_ns(),
            NodeKind::Directory(_) | NodeKind::SymbolicLink(_) | NodeKind::Device(_) => self.made_ns,
        }
    }

    /// Reads from a place of the file to the program.
    pub(crate) fn read_at(&self, position: u64, address: u64, length: usize) -> Result<usize, Errno> {
        match &self.kind {
            NodeKind::Directory(_) => Err(Errno::EISDIR),
            NodeKind::SymbolicLink(_) => Err(Errno::EINVAL),
            NodeKind::Device(device) => device.read(address, length),
            NodeKind::Regular(contents) => contents.with(|contents| {
                let start = usize::try_from(position).unwrap_or(usize::MAX).min(contents.len());
                let part = &contents[start..];
                let part = &part[..part.len().min(length)];
                let copied = user::copy_out(address, part);
                if copied == 0 && !part.is_empty() { Err(Errno::EFAULT) } else { Ok(copied) }
            }),
        }
    }

    /// Writes from the program to a place of the file, which grows where needed.
    pub(crate) fn write_at(&self, position: u64, address: u64, length: usize) -> Result<usize, Errno> {
        match &self.kind {
            NodeKind::Directory(_) => Err(Errno::EISDIR),
            NodeKind::SymbolicLink(_) => Err(Errno::EINVAL),
            NodeKind::Device(device) => device.write(address, length),
            NodeKind::Regular(contents) => {
                let copied = contents.change(|bytes| write_contents(bytes, position, address, length))?;
                contents.touch();
                Ok(copied)
            }
        }
    }

    /// Gives a regular file a size.
    pub(crate) fn set_size(&self, size: u64) -> Result<(), Errno> {
        match &self.kind {
            NodeKind::Directory(_) => Err(Errno::EISDIR),
            NodeKind::SymbolicLink(_) | NodeKind::Device(_) => Err(Errno::EINVAL),
            NodeKind::Regular(contents) => {
                contents.change(|bytes| {
                    grow(bytes, size)?;
                    bytes.truncate(size as usize);
                    Ok(())
                })?;
                contents.touch();
                Ok(())
            }
        }
    }
}

/// Makes a file at least `size` bytes long.
fn grow(contents: &mut Vec<u8>, size: u64) -> Result<(), Errno> {
    if size > MAX_FILE_BYTES {
        return Err(Errno::EFBIG);
    }
    let size = size as usize;
    if size > contents.len() {
        contents.try_reserve(size - contents.len()).map_err(|_| Errno::ENOSPC)?;
        contents.resize(size, 0);
    }
    Ok(())
}

/// Writes part after part, so that a length that the program does not have costs nothing. An error after the first part
/// is not reported.
fn write_contents(contents: &mut Vec<u8>, position: u64, address: u64, length: usize) -> Result<usize, Errno> {
    const PART_BYTES: usize = 256 << 10;
    position.checked_add(length as u64).ok_or(Errno::EFBIG)?;
    let mut written = 0;
    while written < length {
        let part = (length - written).min(PART_BYTES);
        match write_part(contents, position + written as u64, address + written as u64, part) {
            Ok(copied) => {
                written += copied;
                if copied < part {
                    break;
                }
            }
            Err(error) if written == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(written)
}

fn write_part(contents: &mut Vec<u8>, position: u64, address: u64, length: usize) -> Result<usize, Errno> {
    let old_length = contents.len();
    grow(contents, position + length as u64)?;
    let start = position as usize;
    let copied = user::copy_in(address, &mut contents[start..start + length]);
    if copied < length {
        // What could not be copied is not part of the file.
        let end = if copied == 0 { old_length } else { old_length.max(start + copied) };
        contents.truncate(end);
    }
    if copied == 0 { Err(Errno::EFAULT) } else { Ok(copied) }
}
