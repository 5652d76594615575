//! The one way in which routines copy bytes between memory of the user and of the kernel: by eight, then the rest.
//! After a fault the bytes up to the one that faulted have been copied, and no more is claimed.

use quaject_vcode::system::{R11, RCX};
use quaject_vcode::{Core, Label};

use crate::builder::Builder;

/// Emits the copy of as many bytes as r11 says, from rsi to rdi, which both end behind the last byte that was copied.
/// Changes rcx, and r11 on a fault; a fault goes on at `fault`. The direction flag is clear.
///
/// The code after [`Copy::fix_up`] is out of line, so that the client emits it after its own.
#[derive(Debug)]
#[must_use = "a copy that may fault needs its fix-up"]
pub struct Copy {
    /// Where the rest is copied byte by byte.
    bytes: Label,
    /// Where a fault among the eights goes on.
    eights: Label,
}

impl Copy {
    /// The copy itself.
    #[inline(always)]
    pub fn emit(b: &mut Builder<'_>, fault: Label) -> Copy {
        let copy = Copy { bytes: b.label(), eights: b.label() };
        b.mov64(RCX, R11);
        b.shr64_i(RCX, 3);
        b.may_fault(copy.eights);
        b.rep_movsq();
        b.mov32(RCX, R11);
        b.and32_i(RCX, 7);
        b.bind(copy.bytes);
        b.may_fault(fault);
        b.rep_movsb();
        copy
    }

    /// What happens when one of the eights faults: its first bytes may still be copied, so that all that are left are
    /// copied one by one, until that faults.
    #[inline(always)]
    pub fn fix_up(self, b: &mut Builder<'_>) {
        b.bind(self.eights);
        b.and32_i(R11, 7);
        b.lea64_x8(RCX, R11, RCX, 0);
        b.j(self.bytes);
    }
}
