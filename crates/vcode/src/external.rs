//! Jumps, branches and calls to absolute addresses outside of the region, such as another routine or a function of the
//! program: relative to where the code will execute, and through no register.
//!
//! Such a target is a label that is bound already, at a signed distance from the region. Any branch can refer to it.

use crate::asm::{Asm, Fixup, Label};
use crate::error::Error;
use crate::generated::core::Core;
use crate::kind::Kind;
use crate::machine::Machine;

impl<M: Machine> Asm<'_, M>
where
    for<'b> Asm<'b, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    /// A label at an absolute address. A branch that does not reach it is [`Error::BranchRange`], and so is an address
    /// that is 2 GiB away from the region or directly before it.
    #[inline]
    pub fn label_at(&mut self, address: usize) -> Label {
        let distance = address.wrapping_sub(self.f.execute) as isize;
        // That the region is small says nothing about this label.
        self.small = false;
        let label = self.label();
        match i32::try_from(distance) {
            // The offset directly before the region stands for an unbound label.
            Ok(distance) if distance != -1 => {
                if let Some(target) = self.f.labels.get_mut(label.0) {
                    *target = distance as u32;
                }
            }
            Ok(_) | Err(_) => self.fail(Error::BranchRange),
        }
        label
    }

    /// Jumps to an absolute address.
    #[inline]
    pub fn jump_to(&mut self, address: usize) {
        self.branch_to(address, |asm, label| asm.j(label));
    }

    /// A branch to an absolute address: `branch` emits one instruction, or a few, that refer to the label.
    ///
    /// ```
    /// # use quaject_vcode::{Asm, Core, Error, Kind, Native, Param, Region, Workspace};
    /// # let mut bytes = [0; 256];
    /// # let mut workspace = Workspace::<Native>::new();
    /// # let mut params = [Param::NONE];
    /// # let region = Region::from(&mut bytes[..]).executed_at(0x1000_0000);
    /// # let mut asm = Asm::begin(region, &mut workspace, "%l", &mut params, Kind::Naked)?;
    /// # let (count, slow_path) = (params[0].reg(), 0x1000_4000);
    /// asm.branch_to(slow_path, |asm, label| asm.beqli(count, 0, label));
    /// # asm.retv();
    /// # asm.end()?;
    /// # Ok::<(), Error>(())
    /// ```
    #[inline]
    pub fn branch_to(&mut self, address: usize, branch: impl FnOnce(&mut Self, Label)) {
        let label = self.label_at(address);
        branch(self, label);
        // References to a bound label are resolved at once, so that its entry can be used again.
        self.f.labels.pop();
    }

    /// Calls the function at an absolute address, without arguments: the client has put them where the function expects
    /// them. In a naked routine it also keeps what the function may destroy, and aligns the stack, if need be.
    pub fn call_to(&mut self, address: usize) {
        let label = self.label_at(address);
        if self.f.kind == Kind::Naked {
            if M::HAS_LINK_REGISTER {
                // The return address of the routine itself would be lost.
                return self.fail(Error::CallInLeaf);
            }
        } else {
            self.note_call();
        }
        if M::HAS_LINK_REGISTER {
            // There the row of calls is `jal`, which calls procedures only.
            self.f.note_label(Fixup::PROCEDURE, label);
        }
        M::call_label(self, label);
        if !M::HAS_LINK_REGISTER {
            self.f.labels.pop();
        }
    }
}
