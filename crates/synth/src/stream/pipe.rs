//! Pipes: a ring of bytes with a writer and a reader, each with routines that have the ring's address and size in them.
//!
//! ```text
//! |head|tail| |. . . . .|x x x x x x x x|. . . . . . .|        size, a power of two
//!  64 bytes              tail            head                   both count all bytes ever, modulo 2^64
//! ```
//!
//! The writer alone changes `head`, the reader alone `tail`. Several writers, or readers, exclude each other: in a
//! kernel with one processor routines run with interrupts off. The slow path transfers what reaches the end of the
//! ring, and all that faults, from the state before the call.

use core::mem::offset_of;

use quaject_vcode::system::{R11, RAX, RCX, RDI, RDX, RSI};
use quaject_vcode::x86_64::Reg;
use quaject_vcode::{Core, Label};

use super::{Paths, check, to_slow_path};
use crate::builder::Builder;
use crate::entry::Entry;
use crate::template::Address;

/// The indices of a pipe, where routines access them. Its bytes follow.
#[derive(Debug, Default)]
#[repr(C, align(64))]
pub struct Pipe {
    /// Bytes that were written.
    pub head: u64,
    /// Bytes that were read.
    pub tail: u64,
}

const HEAD: i32 = offset_of!(Pipe, head) as i32;
const TAIL: i32 = offset_of!(Pipe, tail) as i32;
const DATA: i32 = size_of::<Pipe>() as i32;

/// The ring of a pipe.
#[derive(Debug, Clone, Copy)]
pub struct Ring {
    /// The address of the [`Pipe`], which the bytes follow.
    pub pipe: Address,
    /// Two to this power bytes; at most 30.
    pub size_bits: u8,
}

/// One of the two directions.
struct Direction {
    /// The index that advances.
    index: i32,
    /// The register with the address in the ring.
    ring: Reg,
}

/// Emits a read of what is in the pipe, as much as is asked for. An empty pipe is for the slow path.
///
/// The pipe must exist as long as the routine.
#[inline(always)]
pub fn read_pipe(b: &mut Builder<'_>, entry: impl Entry, paths: Paths, ring: Ring) {
    let (slow, back, many) = (b.label(), b.label(), b.label());
    begin(b, ring, slow, many);
    read_byte(b, entry, ring, slow);
    b.bind(many);
    check(b, slow, paths.user_bits);
    entry.save(b);
    b.load_address(R11, ring.pipe);
    b.mov64(RDI, RSI);
    b.mov64_m(RSI, R11, TAIL);
    b.mov64_m(RAX, R11, HEAD);
    b.sub64(RAX, RSI);
    b.j_e(back);
    b.cmp64(RAX, RDX);
    b.cmov64_a(RAX, RDX);
    transfer(b, entry, ring, &Direction { index: TAIL, ring: RSI }, back);
    b.bind(back);
    entry.restore(b);
    to_slow_path(b, slow, paths);
}

/// Emits a write of all bytes. If there is no room for all, the slow path decides.
///
/// The pipe must exist as long as the routine.
#[inline(always)]
pub fn write_pipe(b: &mut Builder<'_>, entry: impl Entry, paths: Paths, ring: Ring) {
    let (slow, back, many) = (b.label(), b.label(), b.label());
    begin(b, ring, slow, many);
    write_byte(b, entry, ring, slow);
    b.bind(many);
    check(b, slow, paths.user_bits);
    entry.save(b);
    b.load_address(R11, ring.pipe);
    b.mov64_m(RDI, R11, HEAD);
    b.mov64(RAX, RDI);
    b.sub64_m(RAX, R11, TAIL);
    b.add64(RAX, RDX);
    b.cmp64_i(RAX, 1 << ring.size_bits);
    b.j_a(back);
    b.mov64(RAX, RDX);
    transfer(b, entry, ring, &Direction { index: HEAD, ring: RDI }, back);
    b.bind(back);
    entry.restore(b);
    to_slow_path(b, slow, paths);
}

/// Loads the address of the pipe into rax, by an instruction that a [`Gate`](crate::gate::Gate) can replace, and goes
/// to `many` unless one byte is asked for.
#[inline(always)]
fn begin(b: &mut Builder<'_>, ring: Ring, slow: Label, many: Label) {
    b.load_address(RAX, ring.pipe);
    b.cmp64_i(RDX, 1);
    b.j_ne(many);
    // The upper half is the kernel's; between the halves every access faults.
    b.test64(RSI, RSI);
    b.j_s(slow);
}

/// Reads one byte, and leaves: with fewer registers, and no loop.
#[inline(always)]
fn read_byte(b: &mut Builder<'_>, entry: impl Entry, ring: Ring, slow: Label) {
    let back = b.label();
    entry.save_one(b);
    b.mov64_m(RCX, RAX, TAIL);
    b.cmp64_m(RCX, RAX, HEAD);
    b.j_e(back);
    b.and32_i(RCX, (1 << ring.size_bits) - 1);
    b.lea64_x1(RCX, RAX, RCX, DATA);
    b.movz8_m(RCX, RCX, 0);
    b.may_fault(back);
    b.mov8_to(RCX, RSI, 0);
    b.inc64_to(RAX, TAIL);
    b.mov32(RAX, RDX);
    entry.restore_one(b);
    entry.leave(b);
    b.bind(back);
    entry.restore_one(b);
    b.j(slow);
}

/// Writes one byte, and leaves.
#[inline(always)]
fn write_byte(b: &mut Builder<'_>, entry: impl Entry, ring: Ring, slow: Label) {
    let back = b.label();
    entry.save_one(b);
    b.mov64_m(RCX, RAX, HEAD);
    b.sub64_m(RCX, RAX, TAIL);
    b.cmp64_i(RCX, 1 << ring.size_bits);
    b.j_e(back);
    b.mov64_m(RCX, RAX, HEAD);
    b.and32_i(RCX, (1 << ring.size_bits) - 1);
    b.lea64_x1(RCX, RAX, RCX, DATA);
    // The length is known, so that its register is free.
    b.may_fault(back);
    b.movz8_m(RDX, RSI, 0);
    b.mov8_to(RDX, RCX, 0);
    b.mov32_i(RDX, 1);
    b.inc64_to(RAX, HEAD);
    b.mov32(RAX, RDX);
    entry.restore_one(b);
    entry.leave(b);
    b.bind(back);
    entry.restore_one(b);
    b.j(slow);
}

/// Copies rax bytes from or to the ring, whose pipe r11 points to, at the index in the direction's register, and
/// leaves; goes to `back` if the bytes reach beyond the end of the ring, and on a fault.
#[inline(always)]
fn transfer(b: &mut Builder<'_>, entry: impl Entry, ring: Ring, direction: &Direction, back: Label) {
    let size = 1 << ring.size_bits;
    b.and32_i(direction.ring, size - 1);
    b.lea64_x1(RCX, RAX, direction.ring, 0);
    b.cmp64_i(RCX, size);
    b.j_a(back);
    b.lea64_x1(direction.ring, R11, direction.ring, DATA);
    b.mov64(RCX, RAX);
    b.shr64_i(RCX, 3);
    b.may_fault(back);
    b.rep_movsq();
    b.mov32(RCX, RAX);
    b.and32_i(RCX, 7);
    b.may_fault(back);
    b.rep_movsb();
    b.add64_to(RAX, R11, direction.index);
    entry.restore(b);
    entry.leave(b);
}
