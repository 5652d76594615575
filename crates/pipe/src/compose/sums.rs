//! Internet checksums in vectors: two methods to add up words of 64 bits and to recover the carries that are lost.
//!
//! Both keep the sum of the words modulo 2^64, and the sum of the words' bits above some bit. The second gives the
//! number of carries that the first has lost, and words and carries form one sum, because 2^16, 2^48 and 2^64 are
//! congruent to 1 modulo 2^16 - 1 (end-around carry).
//!
//! - **Halves** add up the higher half of every word, exactly: for each vector an addition, a shift, and an addition.
//! - **Means** add up the highest sixteen bits of the mean of a block, which is a tree of averages of two: for each
//!   vector an addition and less than one average, and a shift and an addition for the block. That is fewer
//!   instructions, and few of those that only some execution ports can do, which swaps need too. But averages are
//!   rounded up, so that the sum exceeds the exact one by a bounded excess for each block, which limits the number of
//!   blocks; before it is used, the maximum excess is subtracted, with saturation at zero.

use quaject_vcode::{Asm, Core, VectorMachine, Vectors};

use crate::plan::MAX_MEAN_SUM_BYTES;

/// How checksums are added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sums {
    Halves,
    Means,
}

/// The vector registers of one checksum during the loops.
#[derive(Debug, Clone, Copy)]
pub(super) struct Words<V> {
    /// Of two accumulators in integer registers, see [`crate::plan::Sum`].
    pub(super) first: usize,
    pub(super) words: V,
    /// A second accumulator for every other vector, if there is a register for it: two independent dependency chains.
    pub(super) others: Option<V>,
    pub(super) high: V,
}

impl Sums {
    /// The number of temporary vectors to add up blocks of `unroll` vectors.
    pub(super) fn temporaries(self, unroll: usize) -> usize {
        match self {
            Sums::Halves => 1,
            Sums::Means if unroll > 1 => (unroll.ilog2() as usize).max(2),
            Sums::Means => 1,
        }
    }

    /// The lowest bit of a word that is added up.
    fn bit(self) -> u32 {
        match self {
            Sums::Halves => 32,
            Sums::Means => 48,
        }
    }

    /// Adds one vector to the words, the one with this number in its block.
    pub(super) fn add_words<M: VectorMachine>(
        self,
        asm: &mut Asm<'_, M>,
        to: &Words<M::Vector>,
        x: M::Vector,
        index: usize,
    ) where
        for<'a> Asm<'a, M>: Vectors<Vector = M::Vector>,
    {
        let words = if index % 2 == 1 { to.others.unwrap_or(to.words) } else { to.words };
        asm.vaddul(words, words, x);
    }

    /// Adds the high parts of vectors, a power of two of them.
    pub(super) fn add_high<M: VectorMachine>(
        self,
        asm: &mut Asm<'_, M>,
        to: &Words<M::Vector>,
        data: &[M::Vector],
        temporaries: &[Option<M::Vector>],
    ) where
        for<'a> Asm<'a, M>: Vectors<Vector = M::Vector>,
    {
        let temporary = |which: usize| temporaries[which].expect("`temporaries` says how many there are");
        let mut add = |x: M::Vector, bit: u32| {
            asm.vrshuli(temporary(0), x, bit);
            asm.vaddul(to.high, to.high, temporary(0));
        };
        match (self, data) {
            (Sums::Halves, _) => data.iter().for_each(|x| add(*x, self.bit())),
            (Sums::Means, [x]) => add(*x, self.bit()),
            (Sums::Means, _) => {
                let mean = average(asm, data, &temporary, 0);
                // A block has as much as all of its vectors.
                asm.vrshuli(mean, mean, self.bit() - data.len().ilog2());
                asm.vaddul(to.high, to.high, mean);
            }
        }
    }

    /// Combines all sums in the elements of `words`, after blocks of `unroll` vectors.
    pub(super) fn close<M: VectorMachine>(
        self,
        asm: &mut Asm<'_, M>,
        Words { words, others, high, .. }: &Words<M::Vector>,
        temporaries: &[Option<M::Vector>],
        a: M::Reg,
        unroll: usize,
    ) where
        for<'a> Asm<'a, M>: Vectors<Vector = M::Vector> + Core<Reg = M::Reg, Float = M::Float>,
    {
        let temporary = |which: usize| temporaries[which].expect("`temporaries` says how many there are");
        let excess = self.max_excess(unroll, asm.vector_bytes() as usize);
        if excess > 0 {
            // The sum is less than 2^32, so the higher halves are zero.
            asm.setul(a, excess);
            asm.vdupul(temporary(1), a);
            asm.vminu(temporary(0), *high, temporary(1));
            asm.vsubul(*high, *high, temporary(0));
        }
        asm.vlshuli(temporary(0), *high, self.bit());
        if let Some(others) = *others {
            asm.vaddul(*words, *words, others);
        }
        asm.vaddul(*words, *words, *high);
        asm.vsubul(*words, *words, temporary(0));
    }

    /// The maximum excess of the sum of high parts in an element.
    //
    // Each level of the tree rounds up by a half at most, and levels add up; what lower bits contribute is less than
    // one.
    fn max_excess(self, unroll: usize, width: usize) -> u64 {
        match self {
            Sums::Means if unroll > 1 => {
                let of_block = unroll * unroll.ilog2() as usize / 2 + 1;
                (of_block * MAX_MEAN_SUM_BYTES / (unroll * width)) as u64
            }
            Sums::Halves | Sums::Means => 0,
        }
    }
}

/// The mean of two and more vectors, word by word of sixteen bits, in the temporary `at`; those after it are changed.
fn average<M: VectorMachine>(
    asm: &mut Asm<'_, M>,
    data: &[M::Vector],
    temporary: &impl Fn(usize) -> M::Vector,
    at: usize,
) -> M::Vector
where
    for<'a> Asm<'a, M>: Vectors<Vector = M::Vector>,
{
    let mean = temporary(at);
    if let [one, other] = data {
        asm.vavgus(mean, *one, *other);
    } else {
        let (low, high) = data.split_at(data.len() / 2);
        average(asm, low, temporary, at);
        let other = average(asm, high, temporary, at + 1);
        asm.vavgus(mean, mean, other);
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_means_may_be_wrong_by_fits_a_word() {
        for width in [16, 32, 64] {
            for unroll in [1, 2, 4, 8] {
                let blocks = MAX_MEAN_SUM_BYTES / (unroll * width);
                // Too high by the excess, which is taken away from all; too low by less than one for each block and for
                // each vector outside of blocks, of which pipes with a CRC have up to twice a block.
                let wrong = Sums::Means.max_excess(unroll, width) + blocks as u64 + 2 * unroll as u64;
                assert!(width as u64 / 8 * wrong < 1 << 15, "{unroll} vectors of {width} bytes");
                assert!(blocks * unroll < 1 << 16, "the sum of sixteen bits each fits half a word");
            }
        }
    }
}
