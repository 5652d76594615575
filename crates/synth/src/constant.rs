//! Routines that return a number whatever they are asked: the identity of a process, or an error that a descriptor
//! always has.

use quaject_vcode::system::RAX;

use crate::builder::Builder;
use crate::entry::{Entry, Sysret};

/// Emits a routine that returns `value`.
#[inline(always)]
pub fn constant(b: &mut Builder<'_>, entry: impl Entry, value: i64) {
    b.mov64_i(RAX, value);
    entry.leave(b);
}

/// Emits a routine that returns a word at an offset from the gs base.
#[inline(always)]
pub fn word_of_thread(b: &mut Builder<'_>, entry: Sysret, offset: i32) {
    b.mov64_gs(RAX, offset);
    entry.leave(b);
}
