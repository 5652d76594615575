//! The area of synthesised code: each of its pages is mapped twice, for execution at one address and for writing at
//! another, so that no page is both.

use super::frames::{self, OutOfMemory};
use super::kernel_space::with_tables;
use super::layout::{CODE_BYTES, CODE_EXECUTE, CODE_WRITE, PAGE_BYTES};
use super::tables::{Owner, Permission};

/// Maps the area.
pub(crate) fn initialize() -> Result<(), OutOfMemory> {
    with_tables(|tables| {
        for offset in (0..CODE_BYTES).step_by(PAGE_BYTES as usize) {
            let page = frames::allocate()?;
            tables.map(CODE_EXECUTE + offset, page, Permission::ReadExecute, Owner::Kernel)?;
            tables.map(CODE_WRITE + offset, page, Permission::ReadWrite, Owner::Kernel)?;
        }
        Ok(())
    })
}
