//! Routines that read, write and seek: one for each open file or end of a pipe, with its addresses in it.
//!
//! A routine does what is common, and leaves the rest to the slow path, which is entered exactly as the routine was:
//! an empty or full pipe, a length or an address that no user can mean. Positions and indices are stored after the
//! bytes have been copied, so that a fault neither loses nor invents data.

mod dispatch;
mod file;
mod null;
mod pipe;

pub use dispatch::dispatch_by_descriptor;
pub use file::{Content, Open, read_file, seek_file, write_file};
pub use null::{read_null, seek_null, write_null};
pub use pipe::{Pipe, Ring, read_pipe, write_pipe};

use quaject_vcode::Label;
use quaject_vcode::system::{RAX, RDX, RSI};

use crate::builder::Builder;

/// The longest read or write, as in Linux; a longer one is shortened by the slow path.
pub const MAX_LENGTH: i32 = 0x7fff_f000;

/// The error number of a bad address.
pub const EFAULT: i32 = 14;

/// What routines know of the world around them.
#[derive(Debug, Clone, Copy)]
pub struct Paths {
    /// The address of the slow path, within 2 GiB of the arena.
    pub slow: usize,
    /// Users own the addresses below two to this power, except for the last page.
    pub user_bits: u8,
}

/// The last page of the user's addresses is always empty.
const LAST_PAGE: i32 = 4096;

/// Goes to the slow path with a length that is too long, and with a buffer that does not end below the last page.
/// Changes rax, which is 0 afterwards.
#[inline(always)]
fn check(b: &mut Builder<'_>, slow: Label, user_bits: u8) {
    b.cmp64_i(RDX, MAX_LENGTH);
    b.j_a(slow);
    b.lea64_x1(RAX, RSI, RDX, LAST_PAGE - 1);
    // The sum may have wrapped around.
    b.or64(RAX, RSI);
    b.shr64_i(RAX, user_bits);
    b.j_ne(slow);
}

/// Emits the way to the slow path.
#[inline(always)]
fn to_slow_path(b: &mut Builder<'_>, slow: Label, paths: Paths) {
    b.bind(slow);
    b.jump_outside(paths.slow);
}
