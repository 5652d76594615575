//! The switch routine of a thread, in its life.

use super::code::with_arena;
use super::switch_shape::VectorUse;
use quaject_synth::Routine;
use quaject_synth::ready::Member;
use quaject_vcode::patch::PatchJump;

/// The switch routine of a thread.
#[derive(Debug)]
pub(crate) struct Switch {
    routine: Option<Routine>,
    jump: PatchJump,
    exit: usize,
}

impl Switch {
    /// Synthesises the routine of a thread; nothing if the code area is full.
    pub(crate) fn new(block: u64, vectors: VectorUse) -> Option<Switch> {
        with_arena(|code| {
            let shape = match vectors {
                VectorUse::Forbidden => &code.shapes.switch,
                VectorUse::Allowed => &code.shapes.switch_with_vectors,
            };
            let routine = shape.template.instantiate(&mut code.arena, &[block as usize]).ok()?;
            let exit = routine.entry() + shape.exit;
            Some(Switch { routine: Some(routine), jump: shape.jump, exit })
        })
    }

    fn routine(&self) -> &Routine {
        self.routine.as_ref().expect("it is taken when the switch is dropped")
    }

    /// Where the thread is entered.
    pub(crate) fn enter(&self) -> usize {
        self.routine().entry()
    }

    /// The function that leaves the thread, and returns when it runs again.
    pub(crate) fn exit(&self) -> usize {
        self.exit
    }

    /// The member of the ready queue.
    ///
    /// # Safety
    /// The switch is not dropped while the member is in the queue.
    pub(crate) unsafe fn member(&self) -> Member {
        // SAFETY: the jump belongs to the routine; by the contract.
        with_arena(|code| unsafe { Member::new(&code.arena, self.routine(), self.jump) })
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        if let Some(routine) = self.routine.take() {
            with_arena(|code| code.arena.free_routine(routine));
        }
    }
}
