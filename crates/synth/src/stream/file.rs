//! Files in memory: a routine per open file, which has the addresses of the position and of the content in it.

use core::mem::offset_of;

use quaject_vcode::system::{R11, RAX, RCX, RDI, RDX, RSI};
use quaject_vcode::{Core, Label};

use super::{EFAULT, Paths, check, to_slow_path};
use crate::builder::Builder;
use crate::copy::Copy;
use crate::entry::Entry;
use crate::template::Address;

/// The content of a file. Routines read and change it; the kernel may while no routine runs.
#[derive(Debug)]
#[repr(C)]
pub struct Content {
    /// The address of the bytes.
    pub data: usize,
    /// How many there are.
    pub size: u64,
    /// How many there is room for.
    pub capacity: u64,
    /// When they were changed, by the clock that [`write_file`] is given.
    pub modified: u64,
}

/// An open file.
#[derive(Debug)]
#[repr(C)]
pub struct Open {
    /// Where the next read or write begins.
    pub position: u64,
}

const DATA: i32 = offset_of!(Content, data) as i32;
const SIZE: i32 = offset_of!(Content, size) as i32;
const CAPACITY: i32 = offset_of!(Content, capacity) as i32;
const MODIFIED: i32 = offset_of!(Content, modified) as i32;
const POSITION: i32 = offset_of!(Open, position) as i32;

/// Emits a read: of what lies between the position and the end, as much as is asked for.
///
/// The objects at `open` ([`Open`]) and `content` ([`Content`]) must exist as long as the routine.
#[inline(always)]
pub fn read_file(b: &mut Builder<'_>, entry: impl Entry, paths: Paths, open: Address, content: Address) {
    let (slow, fault, done, end, leave) = (b.label(), b.label(), b.label(), b.label(), b.label());
    check(b, slow, paths.user_bits);
    entry.save(b);
    b.load_address(R11, open);
    b.load_address(RCX, content);
    b.mov64(RDI, RSI);
    b.mov64_m(RSI, R11, POSITION);
    b.mov64_m(RAX, RCX, SIZE);
    b.sub64(RAX, RSI);
    b.j_be(end);
    b.cmp64(RAX, RDX);
    b.cmov64_a(RAX, RDX);
    b.add64_m(RSI, RCX, DATA);
    b.mov64(R11, RAX);
    let copy = Copy::emit(b, fault);
    b.bind(done);
    b.load_address(R11, open);
    b.add64_to(RAX, R11, POSITION);
    b.bind(leave);
    entry.restore(b);
    entry.leave(b);
    copy.fix_up(b);
    b.bind(fault);
    b.mov64(RAX, RDI);
    fault_result(b, entry, done, leave);
    // At the end, or after it.
    b.bind(end);
    b.xor32(RAX, RAX);
    b.j(leave);
    to_slow_path(b, slow, paths);
}

/// Emits a write at the position, which makes the file longer up to its capacity. The slow path makes room for more,
/// and fills the gap if the position is after the end.
///
/// The objects at `open` ([`Open`]) and `content` ([`Content`]), and the clock at `clock`, a number of 64 bits, must
/// exist as long as the routine.
#[inline(always)]
pub fn write_file(b: &mut Builder<'_>, entry: impl Entry, paths: Paths, [open, content, clock]: [Address; 3]) {
    let (slow, back, fault) = (b.label(), b.label(), b.label());
    let (done, time, leave) = (b.label(), b.label(), b.label());
    check(b, slow, paths.user_bits);
    entry.save(b);
    b.load_address(R11, open);
    b.load_address(RCX, content);
    b.mov64_m(RDI, R11, POSITION);
    b.cmp64_m(RDI, RCX, SIZE);
    b.j_a(back);
    b.lea64_x1(RAX, RDI, RDX, 0);
    b.cmp64_m(RAX, RCX, CAPACITY);
    b.j_a(back);
    b.add64_m(RDI, RCX, DATA);
    b.mov64(RAX, RDX);
    b.mov64(R11, RDX);
    let copy = Copy::emit(b, fault);
    b.bind(done);
    b.load_address(R11, open);
    b.load_address(RCX, content);
    b.mov64_m(RDI, R11, POSITION);
    b.add64(RDI, RAX);
    b.mov64_to(RDI, R11, POSITION);
    b.cmp64_m(RDI, RCX, SIZE);
    b.j_be(time);
    b.mov64_to(RDI, RCX, SIZE);
    b.bind(time);
    b.load_address(R11, clock);
    b.mov64_m(RDI, R11, 0);
    b.mov64_to(RDI, RCX, MODIFIED);
    b.bind(leave);
    entry.restore(b);
    entry.leave(b);
    copy.fix_up(b);
    b.bind(fault);
    b.mov64(RAX, RSI);
    fault_result(b, entry, done, leave);
    b.bind(back);
    entry.restore(b);
    to_slow_path(b, slow, paths);
}

/// Emits a seek to a position that is counted from the beginning. The slow path counts from elsewhere.
///
/// The object at `open` ([`Open`]) must exist as long as the routine.
#[inline(always)]
pub fn seek_file(b: &mut Builder<'_>, entry: impl Entry, paths: Paths, open: Address) {
    let slow = b.label();
    b.test32(RDX, RDX);
    b.j_ne(slow);
    // No position is below the beginning.
    b.test64(RSI, RSI);
    b.j_s(slow);
    b.load_address(RAX, open);
    b.mov64_to(RSI, RAX, POSITION);
    b.mov64(RAX, RSI);
    entry.leave(b);
    to_slow_path(b, slow, paths);
}

/// From the address of the user at which a copy faulted, in rax, makes the number of bytes that were copied, and goes
/// on at `done`; if none were, at `leave` with the error.
#[inline(always)]
fn fault_result(b: &mut Builder<'_>, entry: impl Entry, done: Label, leave: Label) {
    entry.subtract_source(b, RAX);
    b.j_ne(done);
    b.mov64_i(RAX, i64::from(-EFAULT));
    b.j(leave);
}
