//! The null device: nothing to read, everything can be written, and the position is always the beginning.

use quaject_vcode::system::{RAX, RDX};

use super::{Paths, check, to_slow_path};
use crate::builder::Builder;
use crate::entry::Entry;

/// Emits a read that finds the end.
#[inline(always)]
pub fn read_null(b: &mut Builder<'_>, entry: impl Entry, paths: Paths) {
    let slow = b.label();
    // What the check leaves in rax is the result.
    check(b, slow, paths.user_bits);
    entry.leave(b);
    to_slow_path(b, slow, paths);
}

/// Emits a write that discards the bytes.
#[inline(always)]
pub fn write_null(b: &mut Builder<'_>, entry: impl Entry, paths: Paths) {
    let slow = b.label();
    check(b, slow, paths.user_bits);
    b.mov64(RAX, RDX);
    entry.leave(b);
    to_slow_path(b, slow, paths);
}

/// Emits a seek, which moves nothing. The slow path knows what bases there are beyond the first.
#[inline(always)]
pub fn seek_null(b: &mut Builder<'_>, entry: impl Entry, paths: Paths) {
    let slow = b.label();
    b.test32(RDX, RDX);
    b.j_ne(slow);
    b.xor32(RAX, RAX);
    entry.leave(b);
    to_slow_path(b, slow, paths);
}
