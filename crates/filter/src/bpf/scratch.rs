//! Reads of scratch memory that was never written. What such a program means is not defined: the memory of `bpf_filter`
//! is what happens to be on its stack.

use super::{MEMORY_WORDS, Operation, Program};

/// A set of words.
type Words = u16;
const _: () = assert!(MEMORY_WORDS <= Words::BITS as usize);

impl Program {
    /// The first operation, if there is one, that reads a word of scratch memory which some way to it has not written:
    /// its number, from zero. A data-flow analysis of words that are written on all paths.
    pub fn unwritten_read(&self) -> Option<usize> {
        let operations = self.operations();
        // Written on all paths to an operation; all words where no path is known yet.
        let mut written = vec![Words::MAX; operations.len()];
        let mut reached = vec![false; operations.len()];
        let mut pending = vec![(0, 0)];
        while let Some((at, words)) = pending.pop() {
            let met = written[at] & words;
            if reached[at] && met == written[at] {
                continue;
            }
            (written[at], reached[at]) = (met, true);
            let next = |by: i64| (at as i64 + 1 + by) as usize;
            match operations[at] {
                Operation::Store(k) | Operation::StoreIndex(k) => pending.push((next(0), met | 1 << k)),
                Operation::Jump(by) => pending.push((next(by.into()), met)),
                Operation::Branch(_, _, jt, jf) => {
                    pending.extend([(next(jf.into()), met), (next(jt.into()), met)]);
                }
                Operation::Return(_) | Operation::ReturnAccumulator => {}
                _ => pending.push((next(0), met)),
            }
        }
        (0..operations.len()).find(|at| match operations[*at] {
            Operation::LoadMemory(k) | Operation::IndexMemory(k) => reached[*at] && written[*at] & 1 << k == 0,
            _ => false,
        })
    }
}
