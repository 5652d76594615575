//! What `stat` reports of a file.

use super::node::{Node, NodeKind};
use super::open_file::{Object, OpenFile};
use crate::arch::time::NANOSECONDS;
use crate::memory::user::Plain;
use linux_raw_sys::general::{DT_CHR, DT_DIR, DT_LNK, DT_REG, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, stat};

// SAFETY: on x86-64 the structure has integers only, and what would be padding is a field.
unsafe impl Plain for stat {}

const BLOCK_BYTES: i64 = 4096;

/// A status of zeros.
fn empty() -> stat {
    // SAFETY: zeros are a status.
    unsafe { core::mem::zeroed() }
}

/// The status of a node.
pub(crate) fn of_node(node: &Node) -> stat {
    let mut status = empty();
    let kind = match &node.kind {
        NodeKind::Directory(_) => S_IFDIR,
        NodeKind::Regular(_) => S_IFREG,
        NodeKind::SymbolicLink(_) => S_IFLNK,
        NodeKind::Device(device) => {
            status.st_rdev = device.number();
            S_IFCHR
        }
    };
    let size = node.size() as i64;
    status.st_dev = 1;
    status.st_ino = node.number;
    status.st_nlink = 1;
    status.st_mode = kind | node.permissions.get();
    status.st_size = size;
    status.st_blksize = BLOCK_BYTES;
    status.st_blocks = (size + 511) / 512;
    let modified = node.modified_ns();
    (status.st_mtime, status.st_mtime_nsec) = (modified / NANOSECONDS, modified % NANOSECONDS);
    (status.st_atime, status.st_atime_nsec) = (status.st_mtime, status.st_mtime_nsec);
    (status.st_ctime, status.st_ctime_nsec) = (status.st_mtime, status.st_mtime_nsec);
    status
}

/// The status of an open file.
pub(crate) fn of_file(file: &OpenFile) -> stat {
    match &file.object {
        Object::Located(location) => of_node(location.node()),
        Object::ReadEnd(_) | Object::WriteEnd(_) => {
            let mut status = empty();
            status.st_mode = S_IFIFO | 0o600;
            status.st_nlink = 1;
            status.st_blksize = BLOCK_BYTES;
            status
        }
    }
}

/// The kind of a node as `getdents64` reports it.
pub(crate) fn entry_kind(node: &Node) -> u8 {
    let kind = match &node.kind {
        NodeKind::Directory(_) => DT_DIR,
        NodeKind::Regular(_) => DT_REG,
        NodeKind::SymbolicLink(_) => DT_LNK,
        NodeKind::Device(_) => DT_CHR,
    };
    kind as u8
}
