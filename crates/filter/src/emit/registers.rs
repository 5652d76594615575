//! The registers between the two halves of a lookup: filled by `group` (or `template`), read by `lookup`.

use super::{Emitter, Reg};
use quaject_vcode::Error;

/// The registers that a load plan fills.
#[derive(Clone, Debug)]
pub(super) struct Registers {
    /// The words of the key.
    pub(super) key: Vec<Reg>,
    /// The numbers of checks that filters differ in.
    pub(super) numbers: Vec<Reg>,
    /// For temporaries.
    pub(super) scratch: Reg,
}

impl Registers {
    /// Allocates registers for so many words of a key and so many numbers.
    pub(super) fn allocate(
        emitter: &mut Emitter<'_>,
        key_words: usize,
        numbers: usize,
        scratch: Reg,
    ) -> Result<Registers, Error> {
        let mut some = |count: usize| (0..count).map(|_| emitter.temporary()).collect::<Result<Vec<Reg>, Error>>();
        let key = some(key_words)?;
        let numbers = some(numbers)?;
        Ok(Registers { key, numbers, scratch })
    }

    pub(super) fn free(self, emitter: &mut Emitter<'_>) {
        for register in self.key.into_iter().chain(self.numbers) {
            emitter.asm.putreg(register);
        }
    }
}
