//! Registers for the rows of extension layers that are couched in portable instructions: a few are borrowed from the
//! function around for the length of a row, their values kept on the stack. Knows no row.

use crate::asm::Asm;
use crate::machine::Machine;
use crate::registers::Register;

impl<M: Machine> Asm<'_, M> {
    /// How far the stack pointer is lowered to keep `count` registers, and where the first of them goes.
    const fn lent(count: usize) -> (i64, i32) {
        let bytes = (M::BOTTOM as usize + 8 * count).next_multiple_of(16);
        (bytes as i64, (M::BIAS + M::BOTTOM) as i32)
    }

    /// Borrows registers other than those in `taken`; they are to be given back before anything else is written that
    /// could leave the function.
    pub(crate) fn borrow<const N: usize, const T: usize>(&mut self, taken: [M::Reg; T]) -> [M::Reg; N] {
        let (bytes, first) = Self::lent(N);
        let mut free = M::INT.temp.iter().map(|number| M::Reg::from_number(*number));
        let lent = core::array::from_fn(|_| {
            free.find(|register| !taken.contains(register)).expect("every machine has more temporaries than rows use")
        });
        M::enter(self, bytes);
        for (index, register) in lent.iter().enumerate() {
            M::save(self, *register, first + 8 * index as i32);
        }
        lent
    }

    /// How far the stack pointer is lowered while `count` registers are borrowed, in bytes.
    pub(crate) fn lowered(&self, count: usize) -> i64 {
        Self::lent(count).0
    }

    /// Gives borrowed registers back, with their values.
    pub(crate) fn give_back<const N: usize>(&mut self, lent: [M::Reg; N]) {
        let (bytes, first) = Self::lent(N);
        for (index, register) in lent.iter().enumerate() {
            M::restore(self, *register, first + 8 * index as i32);
        }
        M::leave(self, bytes);
    }
}
