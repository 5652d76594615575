//! Borrowed registers, for extension instructions that are expressed in portable instructions: registers of the
//! enclosing function are spilled for the length of the instruction and reloaded after it.

use crate::asm::Asm;
use crate::machine::Machine;
use crate::registers::Register;

impl<M: Machine> Asm<'_, M> {
    /// The size of the spill area of `count` registers, and the offset of the first.
    const fn borrow_layout(count: usize) -> (i64, i32) {
        let bytes = (M::BOTTOM as usize + 8 * count).next_multiple_of(16);
        (bytes as i64, (M::BIAS + M::BOTTOM) as i32)
    }

    /// Spills registers other than those in `taken` and returns them. They must be returned before any instruction that
    /// can leave the function.
    pub(crate) fn borrow_registers<const N: usize, const T: usize>(&mut self, taken: [M::Reg; T]) -> [M::Reg; N] {
        let (bytes, first) = Self::borrow_layout(N);
        let mut free = M::INT.temp.iter().map(|number| M::Reg::from_number(*number));
        let borrowed = core::array::from_fn(|_| {
            free.find(|register| !taken.contains(register)).expect("every machine has more temporaries than rows use")
        });
        M::enter(self, bytes);
        for (index, register) in borrowed.iter().enumerate() {
            M::save(self, *register, first + 8 * index as i32);
        }
        borrowed
    }

    /// The bytes by which the stack pointer is lowered while `count` registers are borrowed.
    pub(crate) fn borrowed_bytes(&self, count: usize) -> i64 {
        Self::borrow_layout(count).0
    }

    /// Reloads borrowed registers.
    pub(crate) fn return_registers<const N: usize>(&mut self, borrowed: [M::Reg; N]) {
        let (bytes, first) = Self::borrow_layout(N);
        for (index, register) in borrowed.iter().enumerate() {
            M::restore(self, *register, first + 8 * index as i32);
        }
        M::leave(self, bytes);
    }
}
