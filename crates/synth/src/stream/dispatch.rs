//! From a call to the routine of its descriptor.

use quaject_vcode::system::{RAX, RDI};

use super::{Paths, to_slow_path};
use crate::builder::Builder;
use crate::template::Address;

/// Emits a jump to the routine of the descriptor in rdi: the address is that of `count` addresses of routines. The slow
/// path gets what is no descriptor.
#[inline(always)]
pub fn dispatch_by_descriptor(b: &mut Builder<'_>, paths: Paths, routines: Address, count: i32) {
    let slow = b.label();
    b.cmp64_i(RDI, count);
    b.j_ae(slow);
    b.load_address(RAX, routines);
    b.jmp_x8(RAX, RDI, 0);
    to_slow_path(b, slow, paths);
}
