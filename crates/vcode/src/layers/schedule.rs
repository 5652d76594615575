//! Portable scheduling of branch and load delay slots by the client ("VCODE" 5.3, `v_schedule_delay` and `v_raw_load`).
//! The emitters are not involved, so code without it has no cost.

use crate::asm::{Asm, Fixup};
use crate::cursor::Cursor;
use crate::machine::Machine;

/// Writes a branch or jump with an instruction that is executed whether it is taken or not: in the delay slot, instead
/// of a `nop`, on machines that have one; in front of the branch elsewhere, or if the instruction is not one word
/// without a label. Either closure may be called twice.
///
/// The instruction must not change what the branch reads: some machines execute the instruction before the branch,
/// others after it.
///
/// ```
/// # use quaject_vcode::{Asm, Class, Core, Error, Kind, Param, Region, Workspace, layers::schedule};
/// # use quaject_vcode::mips::Mips;
/// # let (mut bytes, mut workspace, mut params) = ([0_u8; 512], Workspace::<Mips>::new(), [Param::NONE]);
/// # let mut asm = Asm::begin(Region::from(&mut bytes[..]), &mut workspace, "%i", &mut params, Kind::Leaf)?;
/// # let (n, sum) = (params[0].reg(), asm.getreg(Class::Temporary)?);
/// let again = asm.label();
/// asm.seti(sum, 0);
/// asm.bind(again);
/// asm.subii(n, n, 1);
/// schedule::delay(&mut asm, |asm| asm.bgtii(n, 0, again), |asm| asm.addii(sum, sum, 3));
/// asm.reti(sum);
/// # asm.end()?;
/// # Ok::<(), Error>(())
/// ```
pub fn delay<M: Machine>(
    asm: &mut Asm<'_, M>,
    branch: impl Fn(&mut Asm<'_, M>),
    instruction: impl Fn(&mut Asm<'_, M>),
) {
    if M::DELAY_SLOTS {
        let before = Checkpoint::of(asm);
        instruction(asm);
        if let Some(word) = before.lone_word(asm) {
            before.restore(asm);
            branch(asm);
            if before.fill_slot(asm, word) {
                return;
            }
        }
        before.restore(asm);
    }
    instruction(asm);
    branch(asm);
}

/// Writes a load whose result is first used after `distance` further instructions, and pads with as many `nop`s as the
/// machine requires. All present machines have interlocks, so that none are needed.
pub fn load<M: Machine>(asm: &mut Asm<'_, M>, distance: u32, load: impl FnOnce(&mut Asm<'_, M>)) {
    load(asm);
    for _ in 0..missing(M::LOAD_DELAY, distance) {
        M::nop(asm);
    }
}

/// A checkpoint of the assembler, which can be restored.
#[derive(Debug, Clone, Copy)]
struct Checkpoint {
    cursor: Cursor,
    left: usize,
    last_return: Fixup,
    forward: Fixup,
    fixups: u32,
    constants: u32,
}

impl Checkpoint {
    fn of<M: Machine>(asm: &Asm<'_, M>) -> Checkpoint {
        Checkpoint {
            cursor: asm.cursor,
            left: asm.left,
            last_return: asm.last_return,
            forward: asm.forward,
            fixups: asm.f.fixups.len(),
            constants: asm.f.constants.len(),
        }
    }

    /// Discards the instructions written since.
    fn restore<M: Machine>(self, asm: &mut Asm<'_, M>) {
        (asm.cursor, asm.left) = (self.cursor, self.left);
        (asm.last_return, asm.forward) = (self.last_return, self.forward);
        asm.f.fixups.truncate(self.fixups);
        asm.f.constants.truncate(self.constants);
    }

    /// The instruction written since, if it is one word without a reference.
    fn lone_word<M: Machine>(self, asm: &Asm<'_, M>) -> Option<[u8; 4]> {
        let refers = (asm.last_return, asm.forward) != (self.last_return, self.forward)
            || (asm.f.fixups.len(), asm.f.constants.len()) != (self.fixups, self.constants);
        if refers || asm.cursor.ip != self.cursor.ip.wrapping_add(4) {
            return None;
        }
        // SAFETY: these four bytes are in the region, where they were just stored.
        Some(unsafe { self.cursor.ip.cast::<[u8; 4]>().read() })
    }

    /// Replaces the last instruction, if it is a `nop` and not the only one written since.
    fn fill_slot<M: Machine>(self, asm: &mut Asm<'_, M>, word: [u8; 4]) -> bool {
        let after = Checkpoint::of(asm);
        let slot = asm.cursor.back(4).cast::<[u8; 4]>();
        M::nop(asm);
        if asm.cursor.ip != after.cursor.ip.wrapping_add(4) || asm.at(slot.cast()) <= asm.at(self.cursor.ip) {
            return false;
        }
        // SAFETY: the eight bytes before the cursor are in the region: the last word of the branch, and the nop.
        let is_free = unsafe { slot.read() == slot.add(1).read() };
        after.restore(asm);
        if is_free {
            // SAFETY: as above.
            unsafe { slot.write(word) };
        }
        is_free
    }
}

/// The number of instructions missing between a load and the use of its result.
fn missing(needed: u32, distance: u32) -> u32 {
    needed.saturating_sub(distance)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_is_followed_by_what_is_missing() {
        assert_eq!([0, 1, 2, 3].map(|distance| missing(2, distance)), [2, 1, 0, 0]);
        assert_eq!(missing(0, 0), 0);
    }
}
