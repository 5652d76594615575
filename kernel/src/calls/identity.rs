//! Calls that return the identity of the process, the thread, the user and the system.

use super::call::{Call, CallResult, fault};
use crate::memory::user::{self, Plain};

/// Every program is root.
pub(super) fn zero(_: &mut Call<'_>) -> CallResult {
    Ok(0)
}

pub(super) fn getpid(call: &mut Call<'_>) -> CallResult {
    Ok(u64::from(call.process().id))
}

/// The kernel starts the first program itself.
pub(super) fn getppid(_: &mut Call<'_>) -> CallResult {
    Ok(1)
}

pub(super) fn gettid(call: &mut Call<'_>) -> CallResult {
    Ok(u64::from(call.task.id))
}

const NAME_BYTES: usize = 65;

/// The structure of `uname`: system, node, release, version, machine, domain.
#[repr(C)]
#[derive(Clone, Copy)]
struct SystemName([[u8; NAME_BYTES]; 6]);

// SAFETY: bytes.
unsafe impl Plain for SystemName {}

/// The release is that of the Linux whose calls these are: libraries refuse older ones.
pub(super) fn uname(call: &mut Call<'_>) -> CallResult {
    let texts = ["Linux", "quaject", "6.1.0", concat!("quaject ", env!("CARGO_PKG_VERSION")), "x86_64", "(none)"];
    let mut name = SystemName([[0; NAME_BYTES]; 6]);
    for (field, text) in name.0.iter_mut().zip(texts) {
        field[..text.len()].copy_from_slice(text.as_bytes());
    }
    user::write(call.argument(0), &name).map_err(fault)?;
    Ok(0)
}
