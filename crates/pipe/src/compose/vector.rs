//! The composer for vectors: a loop over blocks of several vectors, then one vector at a time; the tail, which is
//! shorter than a vector, goes through integer registers.
//!
//! ```text
//! |  block: U vectors  |  block  |  ...  |  vector  | vector | eight bytes ... 4 2 1 |
//!    load all U; each step on all U; store all U
//! ```
//!
//! If small data are summed, a block is stored after the next one was loaded and summed (software pipelining):
//!
//! ```text
//! load, sum | swap, store, load, sum | swap, store, load, sum | swap, store
//! ```
//!
//! Stores take longest, and a processor buffers dozens of them; but the folding of the sum, a long dependency chain,
//! can only start when the sum is complete. So the earlier the sum is complete, the more of the chain overlaps with
//! stores.
//!
//! Sums are kept in vectors and added to the accumulators after the loops. A CRC is kept as `U` vectors that are
//! congruent to the data so far: each block multiplies them, without carries, by a constant that advances them by a
//! block, and adds its data ("Fast CRC computation for generic polynomials using PCLMULQDQ", Gopal et al. 2009):
//!
//! ```text
//! |  vector  |  U-1 vectors  |  block  |  ...  |  block  |  vector  | vector | eight bytes ... 4 2 1 |
//!    1 part     U parts         fold by a block    U parts: 1   fold by a vector   CRC instruction
//! ```
//!
//! Data of less than two blocks skip the parts and blocks. After the loops the lanes of the one part left, of sixteen
//! bytes each, are folded to one lane, whose remainder the processor's CRC instruction computes.

use quaject_vcode::{Asm, Core, Error, Extension, VectorMachine, Vectors};

use super::sums::{Sums, Words};
use super::user::{self, UserVectors};
use super::{Processor, Scalar};
use crate::crc32c;
use crate::frame;
use crate::ir::{Checked, REGISTERS};
use crate::plan::{Action, Plan};
use crate::policy::Store;

/// The prefetch distance of source and target, ahead of the loads.
const AHEAD_BYTES: usize = 2048;
/// Bytes of a line of the caches.
const LINE_BYTES: usize = 64;

/// The minimum length for which an unaligned target is aligned to vectors of a cache line, if that aligns the source
/// too: otherwise every store would cross a line. If loads would cross lines instead, alignment gains nothing below
/// many kilobytes.
const ALIGNING_BYTES: u64 = 1024;

/// The minimum length for which a CRC is folded. Below it, a chain of the processor's CRC instructions is as fast as
/// setting up and reducing vectors.
const FOLDED_BYTES: usize = 128;

/// The number of vectors that are transformed before the first of a block is stored, if blocks overlap.
const CHANGED_AHEAD: usize = 3;

/// The shape of the vector code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) bits: u32,
    /// Vectors of a block.
    unroll: usize,
    sums: Sums,
    timing: Timing,
}

/// When a block is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    /// After all steps.
    AtOnce,
    /// After the next block was loaded and summed; so are the steps after the last sum.
    Later,
}

impl Timing {
    /// Overlap helps sums of small data; it does not help long steps or steps that read a stream.
    fn choose(plan: &Plan, store: Store) -> Timing {
        let sums = plan.actions().iter().any(|action| matches!(action, Action::Checksum { .. }));
        let short = plan.actions().iter().all(|action| match action {
            Action::Nothing | Action::Checksum { .. } | Action::Swap { .. } | Action::XorKey { .. } => true,
            Action::Crc32c { .. } | Action::XorStream { .. } | Action::User { .. } => false,
        });
        if sums && short && plan.writes && store == Store::Cached { Timing::Later } else { Timing::AtOnce }
    }
}

impl Shape {
    /// Bytes of a block.
    pub(super) fn block_bytes(self) -> usize {
        self.bits as usize / 8 * self.unroll
    }

    /// The widest vectors that the processor has and the plan can use, with as many in a block as there are registers
    /// for.
    pub(super) fn choose<M: VectorMachine>(
        asm: &mut Asm<'_, M>,
        plan: &Plan,
        processor: &Processor,
        store: Store,
    ) -> Option<Shape>
    where
        for<'a> Asm<'a, M>: Vectors<Vector = M::Vector>,
    {
        let bits = [512, 256, 128]
            .into_iter()
            .find(|bits| usable(plan, processor, *bits) && asm.vector_width(*bits).is_ok())?;
        let sums = if store == Store::Cached { Sums::Means } else { Sums::Halves };
        let timing = Timing::choose(plan, store);
        let shapes = [8, 4, 2, 1].into_iter().map(|unroll| Shape { bits, unroll, sums, timing });
        let max_unroll = if timing == Timing::Later { 8 } else { 4 };
        shapes.into_iter().find(|shape| shape.unroll <= max_unroll && shape.registers(plan) <= M::FLOAT.temp.len())
    }

    /// The number of additional vectors of a checksum: one, if it is the first and its words are added fast enough to
    /// need a second accumulator.
    fn others(&self, accumulator: usize) -> usize {
        usize::from(accumulator == 0 && self.timing == Timing::Later)
    }

    /// The number of vector registers of the code.
    fn registers(&self, plan: &Plan) -> usize {
        let mut temporaries = 0;
        let mut count = self.unroll;
        let mut folds = false;
        for action in plan.actions() {
            let (kept, borrowed) = match action {
                Action::Nothing => (0, 0),
                Action::Checksum { first } => (2 + self.others(*first), self.sums.temporaries(self.unroll)),
                Action::Crc32c { .. } => {
                    folds = true;
                    (self.unroll, 2)
                }
                Action::XorKey { .. } => (1, 0),
                Action::Swap { .. } => (1, 0),
                Action::XorStream { .. } => (0, 1),
                Action::User { step, total } => {
                    let user = plan.user(*step);
                    let kept = user.registers.len() + user.constants.len() + usize::from(total.is_some());
                    (kept, 0)
                }
            };
            count += kept;
            temporaries = temporaries.max(borrowed);
        }
        count + temporaries + usize::from(folds)
    }
}

/// Whether the steps have code for vectors of this width.
fn usable(plan: &Plan, processor: &Processor, bits: u32) -> bool {
    plan.actions().iter().all(|action| match action {
        Action::Crc32c { .. } => processor.crc && bits <= processor.multiplies_bits,
        Action::Nothing
        | Action::Checksum { .. }
        | Action::Swap { .. }
        | Action::XorKey { .. }
        | Action::XorStream { .. } => true,
        Action::User { step, .. } => {
            let user = plan.user(*step);
            user::has_vectors(user) && user.constants.len() <= user::MAX_CONSTANTS
        }
    })
}

/// The vectors that a step keeps during the loops.
#[derive(Debug, Clone, Copy)]
enum Kept<V> {
    Nothing,
    Words(Words<V>),
    /// The shuffle of the bytes of each sixteen.
    Swap(V),
    Key(V),
    Stream(usize),
    /// The user's step at this place, and the accumulator of its total.
    User {
        step: usize,
        total: Option<usize>,
        vectors: UserVectors<V>,
    },
    /// The vectors congruent to the data so far, with the remainder before them.
    Fold {
        at: usize,
        parts: [V; 4],
    },
}

/// What a step that folds does with vectors of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Folding {
    /// One vector is this part. The first part has the remainder so far.
    Begin { part: usize },
    /// They are added to the parts, advanced by the distance in `Shared`.
    Advance,
}

/// Registers that steps share.
#[derive(Debug, Clone, Copy)]
struct Shared<V> {
    temporaries: [Option<V>; 3],
    /// The constants that advance a CRC by a block, or by a vector.
    distance: Option<V>,
}

/// The state from which the loops are written.
struct Loops<'s, 'p, M: VectorMachine> {
    scalar: &'s Scalar<'p, M>,
    store: Store,
    shape: Shape,
    data: [M::Vector; 8],
    kept: [Kept<M::Vector>; crate::MAX_STEPS],
    shared: Shared<M::Vector>,
}

/// Writes the loops over vectors.
pub(super) fn write<M: VectorMachine>(
    asm: &mut Asm<'_, M>,
    scalar: &Scalar<'_, M>,
    shape: Shape,
    store: Store,
) -> Result<(), Error>
where
    for<'a> Asm<'a, M>: Extension + Vectors<Vector = M::Vector> + Core<Reg = M::Reg, Float = M::Float>,
{
    // Without a target there are no streaming stores.
    let store = if scalar.plan.writes || store == Store::Cached { store } else { Store::Prefetching };
    asm.vector_width(shape.bits)?;
    let width = asm.vector_bytes() as usize;
    let folds = scalar.plan.actions().iter().any(|action| matches!(action, Action::Crc32c { .. }));
    let least = if folds { width.max(FOLDED_BYTES) } else { width };
    let rest = asm.label();
    match store {
        Store::Cached | Store::Prefetching => {
            asm.bltuli(scalar.left, least as u64, rest);
            if scalar.plan.writes && width == LINE_BYTES {
                let any = asm.label();
                asm.bltuli(scalar.left, ALIGNING_BYTES, any);
                asm.anduli(scalar.a, scalar.target, LINE_BYTES as u64 - 1);
                asm.bequli(scalar.a, 0, any);
                asm.anduli(scalar.a, scalar.a, 7);
                asm.bneuli(scalar.a, 0, any);
                asm.xorul(scalar.a, scalar.source, scalar.target);
                asm.anduli(scalar.a, scalar.a, LINE_BYTES as u64 - 1);
                asm.bneuli(scalar.a, 0, any);
                scalar.align(asm, width);
                asm.bind(any);
            }
        }
        Store::Streaming => {
            // Enough for the head that aligns the target, too.
            asm.bltuli(scalar.left, (least + width) as u64, rest);
            scalar.align(asm, width);
        }
    }
    let loops = Loops::open(asm, scalar, shape, store)?;
    if shape.timing == Timing::Later && shape.unroll > 1 {
        loops.overlap(asm, width);
    } else if folds {
        loops.fold(asm, width);
        loops.close(asm, width);
    } else {
        if shape.unroll > 1 {
            loops.repeat(asm, shape.unroll, width);
        }
        loops.repeat(asm, 1, width);
        loops.close(asm, width);
    }
    if store == Store::Streaming {
        asm.vfence();
    }
    asm.vend();
    asm.bind(rest);
    Ok(())
}

impl<'s, 'p, M: VectorMachine> Loops<'s, 'p, M>
where
    for<'a> Asm<'a, M>: Extension + Vectors<Vector = M::Vector> + Core<Reg = M::Reg, Float = M::Float>,
{
    /// Allocates registers and initialises them.
    fn open(asm: &mut Asm<'_, M>, scalar: &'s Scalar<'p, M>, shape: Shape, store: Store) -> Result<Self, Error> {
        let first = asm.getvector()?;
        let mut data = [first; 8];
        for vector in data.iter_mut().take(shape.unroll).skip(1) {
            *vector = asm.getvector()?;
        }
        let mut shared = Shared { temporaries: [None; 3], distance: None };
        let mut kept = [Kept::Nothing; crate::MAX_STEPS];
        for (kept, action) in kept.iter_mut().zip(scalar.plan.actions()) {
            *kept = match *action {
                Action::Nothing => Kept::Nothing,
                Action::Checksum { first } => {
                    for which in 0..shape.sums.temporaries(shape.unroll) {
                        shared.temporary(asm, which)?;
                    }
                    let others = (0..shape.others(first)).map(|_| zero(asm)).next().transpose()?;
                    Kept::Words(Words { first, words: zero(asm)?, others, high: zero(asm)? })
                }
                Action::Swap { bytes } => {
                    let vector = asm.getvector()?;
                    asm.vlda(vector, scalar.frame, frame::shuffle_offset(bytes) as i32);
                    Kept::Swap(vector)
                }
                Action::XorKey { key } => {
                    let vector = asm.getvector()?;
                    asm.lduli(scalar.a, scalar.frame, (8 * (frame::KEYS + key)) as i32);
                    asm.vdupul(vector, scalar.a);
                    Kept::Key(vector)
                }
                Action::XorStream { stream } => {
                    shared.temporary(asm, 0)?;
                    Kept::Stream(stream)
                }
                Action::User { step, total } => {
                    let vectors = open_user(asm, scalar, scalar.plan.user(step))?;
                    Kept::User { step, total, vectors }
                }
                Action::Crc32c { at } => {
                    shared.temporary(asm, 0)?;
                    shared.temporary(asm, 1)?;
                    if shared.distance.is_none() {
                        shared.distance = Some(asm.getvector()?);
                    }
                    let mut parts = [asm.getvector()?; 4];
                    for part in parts.iter_mut().take(shape.unroll).skip(1) {
                        *part = asm.getvector()?;
                    }
                    Kept::Fold { at, parts }
                }
            };
        }
        Ok(Loops { scalar, store, shape, data, kept, shared })
    }

    /// A loop over blocks of `unroll` vectors, while enough bytes are left.
    fn repeat(&self, asm: &mut Asm<'_, M>, unroll: usize, width: usize) {
        let bytes = (unroll * width) as u64;
        let (again, done) = (asm.label(), asm.label());
        asm.bltuli(self.scalar.left, bytes, done);
        asm.bind(again);
        self.block(asm, unroll, width, Folding::Advance);
        asm.bgeuli(self.scalar.left, bytes, again);
        asm.bind(done);
    }

    /// A block of `unroll` vectors.
    fn block(&self, asm: &mut Asm<'_, M>, unroll: usize, width: usize, folding: Folding) {
        let data = &self.data[..unroll];
        self.prefetch(asm, unroll * width);
        for (index, x) in data.iter().enumerate() {
            asm.vld(*x, self.scalar.source, (index * width) as i32);
        }
        for kept in &self.kept {
            self.step(asm, kept, data, width as i32, folding);
        }
        self.store(asm, data, 0, width as i32);
        self.scalar.advance(asm, unroll * width);
        asm.subuli(self.scalar.left, self.scalar.left, (unroll * width) as u64);
    }

    /// The loops of a pipe with a CRC; there is at least one vector. Leaves the CRC in its first part.
    fn fold(&self, asm: &mut Asm<'_, M>, width: usize) {
        let unroll = self.shape.unroll;
        let single = asm.label();
        self.block(asm, 1, width, Folding::Begin { part: 0 });
        if unroll > 1 {
            let (short, again) = (asm.label(), asm.label());
            asm.bltuli(self.scalar.left, ((2 * unroll - 1) * width) as u64, short);
            // One by one: sums add up blocks of a power of two.
            (1..unroll).for_each(|part| self.block(asm, 1, width, Folding::Begin { part }));
            self.set_distance(asm, unroll * width);
            asm.bind(again);
            self.block(asm, unroll, width, Folding::Advance);
            asm.bgeuli(self.scalar.left, (unroll * width) as u64, again);
            self.set_distance(asm, width);
            for kept in &self.kept {
                if let Kept::Fold { parts, .. } = kept {
                    parts[1..unroll].iter().for_each(|next| self.advance_part(asm, parts[0], *next));
                }
            }
            asm.j(single);
            asm.bind(short);
        }
        self.set_distance(asm, width);
        asm.bind(single);
        self.repeat(asm, 1, width);
    }

    /// Sets the distance by which parts are advanced.
    fn set_distance(&self, asm: &mut Asm<'_, M>, bytes: usize) {
        let (low, high) = crc32c::fold(bytes as u32);
        let (a, distance, temporary) = (self.scalar.a, self.distance(), self.temporary(0));
        asm.setul(a, low);
        asm.vdupul(distance, a);
        asm.setul(a, high);
        asm.vdupul(temporary, a);
        asm.vziplul(distance, distance, temporary);
    }

    /// Advances a part by the distance, and adds `next`.
    fn advance_part(&self, asm: &mut Asm<'_, M>, part: M::Vector, next: M::Vector) {
        let (low, high, distance) = (self.temporary(0), self.temporary(1), self.distance());
        asm.vclmlul(low, part, distance);
        asm.vclmhul(high, part, distance);
        asm.vxor(low, low, high);
        asm.vxor(part, low, next);
    }

    /// Single vectors, so that blocks remain; then blocks, each of which is stored after the next one was loaded and
    /// summed up; and the sums are closed before the last block is stored.
    //
    // A register is stored and loaded again at once, vector by vector, and what changes vectors after the sum is done a
    // few ahead of the stores: so those units of a processor that only some instructions can use have work all the
    // time, and no store waits for them. Adding up, which every unit can do, comes last.
    fn overlap(&self, asm: &mut Asm<'_, M>, width: usize) {
        let (scalar, unroll) = (self.scalar, self.shape.unroll);
        let is_sum = |kept: &Kept<M::Vector>| matches!(kept, Kept::Words(_));
        let first_sum = self.kept.iter().position(is_sum).expect("such a timing is chosen for sums");
        let last_sum = self.kept.iter().rposition(is_sum).expect("there is a first one");
        let (before, after) = (&self.kept[..first_sum], &self.kept[last_sum + 1..]);
        let bytes = (unroll * width) as u64;
        let load = |asm: &mut Asm<'_, M>, index: usize| {
            let x = self.data[index];
            asm.vld(x, scalar.source, (index * width) as i32);
            before.iter().for_each(|kept| self.step(asm, kept, &[x], width as i32, Folding::Advance));
        };
        let loaded = |asm: &mut Asm<'_, M>, unroll: usize| {
            let data = &self.data[..unroll];
            let rest = &self.kept[first_sum..=last_sum];
            rest.iter().for_each(|kept| self.step(asm, kept, data, width as i32, Folding::Advance));
            scalar.advance(asm, unroll * width);
            asm.subuli(scalar.left, scalar.left, (unroll * width) as u64);
        };
        let change = |asm: &mut Asm<'_, M>, index: usize| {
            after.iter().for_each(|kept| self.step(asm, kept, &[self.data[index]], width as i32, Folding::Advance));
        };
        let store = |asm: &mut Asm<'_, M>, index: usize, unroll: usize| {
            self.store(asm, &[self.data[index]], (index as i32 - unroll as i32) * width as i32, width as i32);
        };
        let (single, singles, blocks) = (asm.label(), asm.label(), asm.label());
        let (again, last, done) = (asm.label(), asm.label(), asm.label());
        asm.bind(single);
        asm.anduli(scalar.a, scalar.left, bytes - 1);
        asm.bltuli(scalar.a, width as u64, singles);
        load(asm, 0);
        loaded(asm, 1);
        change(asm, 0);
        store(asm, 0, 1);
        asm.j(single);
        asm.bind(singles);
        asm.bgeuli(scalar.left, bytes, blocks);
        self.close(asm, width);
        asm.j(done);
        asm.bind(blocks);
        (0..unroll).for_each(|index| load(asm, index));
        loaded(asm, unroll);
        asm.bltuli(scalar.left, bytes, last);
        asm.bind(again);
        let ahead = CHANGED_AHEAD.min(unroll);
        (0..ahead).for_each(|index| change(asm, index));
        for index in 0..unroll {
            store(asm, index, unroll);
            load(asm, index);
            if index + ahead < unroll {
                change(asm, index + ahead);
            }
        }
        loaded(asm, unroll);
        asm.bgeuli(scalar.left, bytes, again);
        asm.bind(last);
        self.close(asm, width);
        for index in 0..unroll {
            change(asm, index);
            store(asm, index, unroll);
        }
        asm.bind(done);
    }

    /// Prefetches later lines.
    fn prefetch(&self, asm: &mut Asm<'_, M>, bytes: usize) {
        match self.store {
            Store::Cached => {}
            Store::Prefetching | Store::Streaming => {
                for at in (0..bytes).step_by(LINE_BYTES) {
                    asm.prefetch(self.scalar.source, (AHEAD_BYTES + at) as i32);
                    if self.store == Store::Prefetching && self.scalar.plan.writes {
                        asm.prefetch(self.scalar.target, (AHEAD_BYTES + at) as i32);
                    }
                }
            }
        }
    }

    /// Stores vectors from `first` bytes behind the pointer on.
    fn store(&self, asm: &mut Asm<'_, M>, data: &[M::Vector], first: i32, width: i32) {
        if self.scalar.plan.writes {
            for (index, x) in data.iter().enumerate() {
                let at = first + index as i32 * width;
                match self.store {
                    Store::Cached | Store::Prefetching => asm.vst(*x, self.scalar.target, at),
                    Store::Streaming => asm.vstnt(*x, self.scalar.target, at),
                }
            }
        }
    }

    /// One step on vectors of a block, the first of which is at the pointers.
    fn step(&self, asm: &mut Asm<'_, M>, kept: &Kept<M::Vector>, data: &[M::Vector], width: i32, folding: Folding) {
        match *kept {
            Kept::Nothing => {}
            Kept::Words(words) => {
                // The high parts take longer, and are needed at the end.
                self.shape.sums.add_high(asm, &words, data, &self.shared.temporaries);
                (0..data.len()).for_each(|index| self.shape.sums.add_words(asm, &words, data[index], index));
            }
            Kept::Swap(mask) => data.iter().for_each(|x| asm.vshufuc(*x, *x, mask)),
            Kept::Key(key) => data.iter().for_each(|x| asm.vxor(*x, *x, key)),
            Kept::Stream(stream) => {
                let base = self.scalar.stream(asm, stream, self.scalar.a);
                for (index, x) in data.iter().enumerate() {
                    asm.vld(self.temporary(0), base, index as i32 * width);
                    asm.vxor(*x, *x, self.temporary(0));
                }
            }
            Kept::User { step, vectors, .. } => {
                data.iter().for_each(|x| user::write(asm, self.scalar.plan.user(step), &vectors, *x));
            }
            Kept::Fold { at, parts } => match folding {
                Folding::Begin { part } => {
                    data.iter().for_each(|x| asm.vmov(parts[part], *x));
                    if part == 0 {
                        // The remainder so far is combined with the first four bytes.
                        let (remainder, first_word) = (self.temporary(0), self.temporary(1));
                        self.scalar.copy_remainder(asm, at, self.scalar.a);
                        asm.vdupul(remainder, self.scalar.a);
                        asm.vlda(first_word, self.scalar.frame, frame::FIRST_WORD as i32);
                        asm.vand(remainder, remainder, first_word);
                        asm.vxor(parts[0], parts[0], remainder);
                    }
                }
                Folding::Advance => data.iter().zip(parts).for_each(|(x, part)| self.advance_part(asm, part, *x)),
            },
        }
    }

    /// Adds the totals in the elements of a vector to the one in an accumulator.
    fn close_total(&self, asm: &mut Asm<'_, M>, step: usize, at: usize, vector: M::Vector) {
        let scalar = self.scalar;
        let user = scalar.plan.user(step);
        let Some(total) = user.total else { return };
        let (bytes, width) = (user.element.bytes, asm.vector_bytes());
        asm.vsta(vector, scalar.frame, frame::SPILL as i32);
        // The frame is aligned, and the place in it too: the pointer has passed all when it is a multiple of the width.
        let pointer = scalar.x[0];
        asm.addpi(pointer, scalar.frame, frame::SPILL as u64);
        let again = asm.label();
        asm.bind(again);
        match bytes {
            1 => asm.lduci(scalar.a, pointer, 0),
            2 => asm.ldusi(scalar.a, pointer, 0),
            4 => {
                asm.ldui(scalar.a, pointer, 0);
                asm.cvu2ul(scalar.a, scalar.a);
            }
            _ => asm.lduli(scalar.a, pointer, 0),
        }
        scalar.total(asm, total.operation(), at);
        asm.addpi(pointer, pointer, bytes as u64);
        asm.anduli(scalar.a, pointer, u64::from(width) - 1);
        asm.bneuli(scalar.a, 0, again);
    }

    fn distance(&self) -> M::Vector {
        self.shared.distance.expect("`open` took it for steps that fold")
    }

    fn temporary(&self, which: usize) -> M::Vector {
        self.shared.temporaries[which].expect("`open` took it for this step")
    }

    /// Adds the sums in vectors of `width` bytes to the accumulators. The data registers are not changed.
    fn close(&self, asm: &mut Asm<'_, M>, width: usize) {
        let scalar = self.scalar;
        for kept in self.kept {
            match kept {
                Kept::Nothing | Kept::Swap(_) | Kept::Key(_) | Kept::Stream(_) => {}
                Kept::User { step, total, vectors } => {
                    if let (Some(at), Some(vector)) = (total, vectors.total) {
                        self.close_total(asm, step, at, vector);
                    }
                }
                Kept::Words(words) => {
                    self.shape.sums.close(asm, &words, &self.shared.temporaries, scalar.a, self.shape.unroll);
                    asm.vsumul(scalar.a, words.words);
                    scalar.add_to(asm, words.first, scalar.a);
                }
                Kept::Fold { at, parts } => {
                    let (part, products) = (frame::SPILL, frame::SPILL + width);
                    let others = width - 16;
                    asm.vsta(parts[0], scalar.frame, part as i32);
                    if others > 0 {
                        let (low, high) = (self.temporary(0), self.temporary(1));
                        let lanes = self.distance();
                        asm.vlda(lanes, scalar.frame, frame::lanes_offset(width) as i32);
                        asm.vclmlul(low, parts[0], lanes);
                        asm.vclmhul(high, parts[0], lanes);
                        asm.vxor(low, low, high);
                        asm.vsta(low, scalar.frame, products as i32);
                    }
                    scalar.remainder_is_zero(asm, at);
                    for half in [0, 8] {
                        asm.lduli(scalar.a, scalar.frame, (part + others + half) as i32);
                        for lane in (0..others).step_by(16) {
                            asm.lduli(scalar.b, scalar.frame, (products + lane + half) as i32);
                            asm.xorul(scalar.a, scalar.a, scalar.b);
                        }
                        scalar.crc32c(asm, at, scalar.a, 8);
                    }
                }
            }
        }
    }
}

/// Registers, constants and the total of a user's step.
fn open_user<M: VectorMachine>(
    asm: &mut Asm<'_, M>,
    scalar: &Scalar<'_, M>,
    user: &Checked,
) -> Result<UserVectors<M::Vector>, Error>
where
    for<'a> Asm<'a, M>: Extension + Vectors<Vector = M::Vector> + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut vectors = UserVectors { registers: [None; REGISTERS], constants: [None; user::MAX_CONSTANTS], total: None };
    for register in &user.registers {
        vectors.registers[usize::from(register.0)] = Some(asm.getvector()?);
    }
    let mut splat = |value: u64| -> Result<M::Vector, Error> {
        let vector = asm.getvector()?;
        asm.setul(scalar.a, value);
        match user.element.bytes {
            1 => asm.vdupuc(vector, scalar.a),
            2 => asm.vdupus(vector, scalar.a),
            4 => asm.vdupu(vector, scalar.a),
            _ => asm.vdupul(vector, scalar.a),
        }
        Ok(vector)
    };
    for (place, value) in vectors.constants.iter_mut().zip(&user.constants) {
        *place = Some((*value, splat(*value)?));
    }
    if let Some(total) = user.total {
        vectors.total = Some(splat(total.initial(user.element.bytes))?);
    }
    Ok(vectors)
}

fn zero<M: VectorMachine>(asm: &mut Asm<'_, M>) -> Result<M::Vector, Error>
where
    for<'a> Asm<'a, M>: Vectors<Vector = M::Vector>,
{
    let vector = asm.getvector()?;
    asm.vzero(vector);
    Ok(vector)
}

impl<V: Copy> Shared<V> {
    fn temporary<A: Vectors<Vector = V>>(&mut self, asm: &mut A, which: usize) -> Result<(), Error> {
        if self.temporaries[which].is_none() {
            self.temporaries[which] = Some(asm.getvector()?);
        }
        Ok(())
    }
}
