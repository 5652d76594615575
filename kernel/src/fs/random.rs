//! Random bytes from the processor (RDRAND).

use crate::memory::user;
use core::arch::x86_64::_rdrand64_step;

/// A random word.
pub(crate) fn random_word() -> u64 {
    let mut word = 0;
    // SAFETY: the processor has the instruction: it is one of the required features. It may have no number yet.
    while unsafe { random_step(&mut word) } == 0 {
        core::hint::spin_loop();
    }
    word
}

/// # Safety
/// The processor has RDRAND.
#[target_feature(enable = "rdrand")]
unsafe fn random_step(word: &mut u64) -> i32 {
    _rdrand64_step(word)
}

/// Writes random bytes to the program and returns how many.
pub(crate) fn fill(address: u64, length: usize) -> usize {
    let mut written = 0;
    while written < length {
        let bytes = random_word().to_ne_bytes();
        let part = &bytes[..bytes.len().min(length - written)];
        let copied = user::copy_out(address + written as u64, part);
        written += copied;
        if copied < part.len() {
            break;
        }
    }
    written
}
