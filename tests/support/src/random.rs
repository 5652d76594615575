//! Numbers for tests that make up their input: the same ones in every run and on every machine.

/// A small deterministic source of test data (xorshift64*, Vigna 2016); the seed is not 0.
#[derive(Clone, Debug)]
pub struct Random(pub u64);

impl Random {
    /// The next 64 bits, of which the upper ones are the better ones.
    #[expect(clippy::should_implement_trait, reason = "it never ends, and is not iterated over")]
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }

    /// An index below `bound`.
    pub fn index(&mut self, bound: usize) -> usize {
        self.below(bound as u64) as usize
    }

    /// One of these.
    pub fn pick<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.index(all.len())]
    }

    /// Any byte.
    pub fn byte(&mut self) -> u8 {
        (self.next() >> 56) as u8
    }
}
