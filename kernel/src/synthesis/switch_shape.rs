//! The shape of the switch routine of a thread. The routine is entered when the thread begins to run, and ends, when
//! that stops, with a jump to the routine of the next thread of the ready queue (`quaject_synth::ready`). What it does
//! is what the thread needs: the vector registers are part of it only after the thread has used them.
//!
//! ```text
//! enter:  gs, stack of the task state, fs and gs of the program; vector registers loaded, or forbidden; stack; return
//! exit:   stack, fs and gs of the program; vector registers saved, if the thread uses them; jump to the next thread
//! ```

use super::area::CodeArena;
use crate::arch::block::ThreadBlock;
use crate::arch::segments;
use core::mem::offset_of;
use quaject_synth::{Address, Builder, Error, Template};
use quaject_vcode::patch::PatchJump;
use quaject_vcode::system::{R12, R13, R14, R15, RAX, RBP, RBX, RCX, RDX, RSP};
use quaject_vcode::x86_64::X86_64;
use quaject_vcode::{Core, Workspace};

/// Whether a thread uses the vector registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum VectorUse {
    /// Not yet: the first use is an exception.
    Forbidden,
    Allowed,
}

/// The shape of switch routines.
pub(super) struct SwitchShape {
    pub(super) template: Template,
    pub(super) jump: PatchJump,
    /// Where the routine is left, from its beginning on.
    pub(super) exit: usize,
}

impl SwitchShape {
    /// What the routines are copied from.
    pub(super) fn template(&self) -> &Template {
        &self.template
    }
}

const BLOCK_STACK: i32 = offset_of!(ThreadBlock, saved_stack) as i32;
const BLOCK_KERNEL_STACK: i32 = offset_of!(ThreadBlock, kernel_stack) as i32;
const BLOCK_FS: i32 = offset_of!(ThreadBlock, user_fs) as i32;
const BLOCK_GS: i32 = offset_of!(ThreadBlock, user_gs) as i32;
const BLOCK_ADDRESS: i32 = offset_of!(ThreadBlock, address) as i32;
const BLOCK_VECTORS: i32 = offset_of!(ThreadBlock, vectors) as i32;

/// The bit of CR0 that makes every use of the vector registers an exception.
const TASK_SWITCHED: i32 = 1 << 3;
const MAX_BYTES: usize = 512;
/// The patch point begins at a multiple of this.
const PATCH_UNIT: usize = 8;

fn emit_enter(b: &mut Builder<'_>, vectors: VectorUse) {
    b.load_address(RAX, Address::Hole(0));
    b.wrgsbase(RAX);
    b.mov64_gs(RDX, BLOCK_KERNEL_STACK);
    b.mov64_i(RCX, segments::kernel_stack_address() as i64);
    b.mov64_to(RDX, RCX, 0);
    b.mov64_gs(RDX, BLOCK_FS);
    b.wrfsbase(RDX);
    b.mov64_gs(RDX, BLOCK_GS);
    b.swapgs();
    b.wrgsbase(RDX);
    b.swapgs();
    b.mov_from_cr0(RDX);
    match vectors {
        VectorUse::Forbidden => {
            b.or64_i(RDX, TASK_SWITCHED);
            b.mov_to_cr0(RDX);
        }
        VectorUse::Allowed => {
            b.and64_i(RDX, !TASK_SWITCHED);
            b.mov_to_cr0(RDX);
            b.fxrstor64(RAX, BLOCK_VECTORS);
        }
    }
    b.mov64_gs(RSP, BLOCK_STACK);
    b.pop64(R15);
    b.pop64(R14);
    b.pop64(R13);
    b.pop64(R12);
    b.pop64(RBP);
    b.pop64(RBX);
    b.retq();
}

fn emit_exit(b: &mut Builder<'_>, vectors: VectorUse) {
    b.push64(RBX);
    b.push64(RBP);
    b.push64(R12);
    b.push64(R13);
    b.push64(R14);
    b.push64(R15);
    b.mov64_to_gs(RSP, BLOCK_STACK);
    b.rdfsbase(RAX);
    b.mov64_to_gs(RAX, BLOCK_FS);
    b.swapgs();
    b.rdgsbase(RAX);
    b.swapgs();
    b.mov64_to_gs(RAX, BLOCK_GS);
    match vectors {
        VectorUse::Forbidden => {}
        VectorUse::Allowed => {
            b.mov64_gs(RAX, BLOCK_ADDRESS);
            b.fxsave64(RAX, BLOCK_VECTORS);
        }
    }
}

/// Makes the shape of switch routines.
pub(super) fn make_switch(arena: &mut CodeArena, vectors: VectorUse) -> Result<SwitchShape, Error> {
    let name = match vectors {
        VectorUse::Forbidden => "switch",
        VectorUse::Allowed => "switch_vectors",
    };
    let mut workspace = Workspace::<X86_64>::new();
    let mut b = Builder::begin(arena, &mut workspace, name, MAX_BYTES)?;
    emit_exit(&mut b, vectors);
    let exit_bytes = b.position();
    b.abandon(arena);
    let mut b = Builder::begin(arena, &mut workspace, name, MAX_BYTES)?;
    emit_enter(&mut b, vectors);
    // So that the jump, which is aligned, follows without any `nop` that is executed.
    while !(b.position() + exit_bytes).is_multiple_of(PATCH_UNIT) {
        b.nop();
    }
    let exit = b.position();
    emit_exit(&mut b, vectors);
    let jump = b.patch_point();
    Ok(SwitchShape { template: b.end_template(arena)?, jump, exit })
}
