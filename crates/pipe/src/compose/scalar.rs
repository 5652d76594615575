//! The composer for integer registers: a loop over eight bytes at a time, then the tail, in the portable instructions
//! of every machine. It also processes the tail of vector code.
//!
//! Data pass in *units* of 8, 4, 2 and 1 bytes, never more than one of the last three kinds; so a complete element of a
//! swap always lies within a unit, and an incomplete one is never changed.

use quaject_vcode::{Asm, Class, Core, Error, Extension, Label, Machine, Param};

use super::Processor;
use crate::frame;
use crate::plan::{Action, InRegister, Plan};

/// The maximum number of registers for accumulators and streams; the others stay in the frame.
const MAX_STORAGE_REGISTERS: usize = 6;

/// The storage class of a value between units.
#[derive(Debug, Clone, Copy)]
pub(super) enum StorageClass<R> {
    Register(R),
    /// In the frame.
    Frame,
}

/// The floating registers of operations on floating-point numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct FloatRegisters<F> {
    pub(super) x: F,
    pub(super) y: F,
}

/// How memory is read and written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    /// Every address is a multiple of the unit.
    Aligned,
    /// Any address.
    Any,
}

/// The register assignment of the generated function.
pub(super) struct Scalar<'p, M: Machine> {
    pub(super) plan: &'p Plan,
    processor: Processor,
    pub(super) frame: M::Reg,
    pub(super) source: M::Reg,
    pub(super) target: M::Reg,
    /// The remaining bytes.
    pub(super) left: M::Reg,
    /// The current unit: two registers where eight bytes do not fit one.
    pub(super) x: [M::Reg; 2],
    pub(super) a: M::Reg,
    pub(super) b: M::Reg,
    /// For steps that compute with floating-point numbers.
    pub(super) float_registers: Option<FloatRegisters<M::Float>>,
    /// For repeated keys: the frame pointer, advanced by the bytes since the last complete unit of eight.
    keys: M::Reg,
    /// For CRCs by tables, on processors that have no instruction for them.
    lookup: [M::Reg; 3],
    pub(super) accumulators: [Option<StorageClass<M::Reg>>; frame::MAX_ACCUMULATORS],
    streams: [Option<StorageClass<M::Reg>>; crate::MAX_STREAMS],
}

/// A unit: its size, location and flags.
#[derive(Debug, Clone, Copy)]
struct Unit {
    bytes: usize,
    /// Its offset from the pointers.
    displacement: i32,
    access: Access,
}

impl<'p, M: Machine> Scalar<'p, M>
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    /// Bytes of an integer register.
    pub(super) const WORD: usize = M::LONG_BITS as usize / 8;

    /// Allocates registers in addition to those of the parameters, and sets them: from the frame, or to zero where sums
    /// begin.
    pub(super) fn open(
        asm: &mut Asm<'_, M>,
        plan: &'p Plan,
        processor: Processor,
        params: &[Param<M>],
    ) -> Result<Self, Error> {
        let [frame, source, target, left] = std::array::from_fn(|index| params[index].reg());
        let remainder = params.get(4).map(|param| param.reg());
        let mut take = || asm.getreg(Class::Temporary);
        let (x, a) = (take()?, take()?);
        // Without a second temporary, one register less has to be saved.
        let frugal = |action: &Action| {
            matches!(action, Action::Nothing | Action::Checksum { .. } | Action::Swap { bytes: 4 | 8 })
        };
        let frugal = plan.accumulators <= 2 && plan.actions().iter().all(frugal);
        let b = if frugal { x } else { take()? };
        let second = if Self::WORD == 4 { take()? } else { x };
        let has_keys = plan.actions().iter().any(|action| matches!(action, Action::XorKey { .. }));
        let keys = if has_keys { take()? } else { frame };
        let has_crc = plan.actions().iter().any(|action| matches!(action, Action::Crc32c { .. }));
        let by_tables = has_crc && !processor.crc;
        let lookup = if by_tables { [take()?, take()?, take()?] } else { [a; 3] };
        let mut take_float = || asm.getfloat(Class::Temporary);
        let float_registers =
            if plan.has_floats() { Some(FloatRegisters { x: take_float()?, y: take_float()? }) } else { None };
        let mut assigned = 0;
        let mut storage_class = |asm: &mut Asm<'_, M>| {
            assigned += 1;
            match asm.getreg(Class::Temporary) {
                Ok(register) if assigned <= MAX_STORAGE_REGISTERS => StorageClass::Register(register),
                Ok(register) => {
                    asm.putreg(register);
                    StorageClass::Frame
                }
                Err(_) => StorageClass::Frame,
            }
        };
        let streams = std::array::from_fn(|index| (index < plan.streams).then(|| storage_class(asm)));
        let accumulators = std::array::from_fn(|index| {
            let in_frame = || storage_class(asm);
            (index < plan.accumulators).then(|| remainder.map_or_else(in_frame, StorageClass::Register))
        });
        debug_assert!(
            !frugal || accumulators.iter().flatten().all(|class| matches!(class, StorageClass::Register(_))),
            "no machine has so few registers"
        );
        let this = Scalar {
            plan,
            processor,
            frame,
            source,
            target,
            left,
            x: [x, second],
            a,
            b,
            float_registers,
            keys,
            lookup,
            accumulators,
            streams,
        };
        for (index, stream) in this.streams.into_iter().flatten().enumerate() {
            if let StorageClass::Register(register) = stream {
                asm.ldpi(register, frame, this.slot(frame::STREAMS + index));
            }
        }
        for (index, accumulator) in this.accumulators.into_iter().flatten().enumerate() {
            match accumulator {
                StorageClass::Register(register) if remainder == Some(register) => {}
                StorageClass::Register(register) if this.is_sum(index) => asm.setul(register, 0),
                StorageClass::Register(register) => this.load_accumulator(asm, index, register),
                StorageClass::Frame if this.is_sum(index) => {
                    asm.setul(a, 0);
                    asm.stuli(a, frame, this.slot(frame::ACCUMULATORS + index));
                }
                StorageClass::Frame => {}
            }
        }
        Ok(this)
    }

    /// Writes the loop, the tail, and the stores of accumulators to the frame; or returns the only sum in a register,
    /// so that the caller does not wait for a store and a load.
    pub(super) fn finish(&self, asm: &mut Asm<'_, M>) {
        // User-defined steps are long, element by element, and do not benefit from unrolling.
        let users = self.plan.actions().iter().any(|action| matches!(action, Action::User { .. }));
        let unroll = if self.processor.vectors || users { 1 } else { 4 };
        let (tail, end) = (asm.label(), asm.label());
        asm.bequli(self.left, 0, end);
        if self.processor.aligned_only {
            let unaligned = asm.label();
            asm.movp(self.a, self.source);
            if self.plan.writes {
                asm.orul(self.a, self.a, self.target);
            }
            for index in 0..self.plan.streams {
                let stream = self.stream(asm, index, self.b);
                asm.orul(self.a, self.a, stream);
            }
            asm.anduli(self.a, self.a, Self::WORD as u64 - 1);
            asm.bneuli(self.a, 0, unaligned);
            self.eights(asm, unroll, Access::Aligned, tail);
            asm.j(tail);
            asm.bind(unaligned);
        }
        self.eights(asm, unroll, Access::Any, tail);
        asm.bind(tail);
        self.tail(asm, end);
        asm.bind(end);
        match (self.plan.in_register(4 * Self::WORD as u32), self.accumulators) {
            (
                Some(InRegister::Sum { .. }),
                [Some(StorageClass::Register(words)), Some(StorageClass::Register(high)), ..],
            ) => {
                // The sum of the vectors comes last, so that nothing else waits for it.
                asm.lshuli(self.a, high, 32);
                asm.subul(high, high, self.a);
                asm.addul(words, words, high);
                return asm.retul(words);
            }
            (Some(InRegister::Remainder { .. }), [Some(StorageClass::Register(remainder)), ..]) => {
                return asm.retu(remainder);
            }
            (Some(_), _) => unreachable!("every machine has registers for two accumulators without key streams"),
            (None, _) => {}
        }
        for (index, accumulator) in self.accumulators.into_iter().flatten().enumerate() {
            if let StorageClass::Register(register) = accumulator {
                self.store_accumulator(asm, index, register);
            }
        }
        asm.retv();
    }

    /// Eight bytes at a time, while at least eight are left.
    fn eights(&self, asm: &mut Asm<'_, M>, unroll: usize, access: Access, tail: Label) {
        for count in if unroll == 1 { &[1][..] } else { &[4, 1] } {
            let (again, done) = (asm.label(), asm.label());
            let bytes = 8 * count;
            asm.bltuli(self.left, bytes as u64, if *count == 1 { tail } else { done });
            asm.bind(again);
            for index in 0..*count {
                self.unit(asm, Unit { bytes: 8, displacement: 8 * index as i32, access });
            }
            self.advance(asm, bytes);
            asm.subuli(self.left, self.left, bytes as u64);
            asm.bgeuli(self.left, bytes as u64, again);
            asm.bind(done);
        }
    }

    /// Eight bytes at a time until the target is a multiple of `alignment`; there are enough bytes, and the target is a
    /// multiple of eight.
    pub(super) fn align(&self, asm: &mut Asm<'_, M>, alignment: usize) {
        let (again, done) = (asm.label(), asm.label());
        asm.bind(again);
        asm.movp(self.a, self.target);
        asm.anduli(self.a, self.a, alignment as u64 - 1);
        asm.bequli(self.a, 0, done);
        self.unit(asm, Unit { bytes: 8, displacement: 0, access: Access::Any });
        self.advance(asm, 8);
        asm.subuli(self.left, self.left, 8);
        asm.j(again);
        asm.bind(done);
    }

    /// At most seven bytes.
    fn tail(&self, asm: &mut Asm<'_, M>, end: Label) {
        asm.bequli(self.left, 0, end);
        let moves_keys = self.keys != self.frame;
        if moves_keys {
            asm.movp(self.keys, self.frame);
        }
        for bytes in [4, 2, 1] {
            let skip = asm.label();
            asm.anduli(self.a, self.left, bytes as u64);
            asm.bequli(self.a, 0, skip);
            self.unit(asm, Unit { bytes, displacement: 0, access: Access::Any });
            if bytes > 1 {
                self.advance(asm, bytes);
                if moves_keys {
                    asm.addpi(self.keys, self.keys, bytes as u64);
                }
            }
            asm.bind(skip);
        }
    }

    pub(super) fn word_mask() -> u64 {
        if Self::WORD == 4 { u64::from(u32::MAX) } else { u64::MAX }
    }

    /// Advances all pointers.
    pub(super) fn advance(&self, asm: &mut Asm<'_, M>, bytes: usize) {
        asm.addpi(self.source, self.source, bytes as u64);
        if self.plan.writes {
            asm.addpi(self.target, self.target, bytes as u64);
        }
        for (index, stream) in self.streams.into_iter().flatten().enumerate() {
            match stream {
                StorageClass::Register(register) => asm.addpi(register, register, bytes as u64),
                StorageClass::Frame => {
                    let slot = self.slot(frame::STREAMS + index);
                    asm.ldpi(self.a, self.frame, slot);
                    asm.addpi(self.a, self.a, bytes as u64);
                    asm.stpi(self.a, self.frame, slot);
                }
            }
        }
    }

    /// The address a stream is at, in its register or in `temporary`.
    pub(super) fn stream(&self, asm: &mut Asm<'_, M>, index: usize, temporary: M::Reg) -> M::Reg {
        match self.streams[index] {
            Some(StorageClass::Register(register)) => register,
            Some(StorageClass::Frame) | None => {
                asm.ldpi(temporary, self.frame, self.slot(frame::STREAMS + index));
                temporary
            }
        }
    }

    /// One unit through all steps.
    fn unit(&self, asm: &mut Asm<'_, M>, unit: Unit) {
        let mut parts = self.x;
        let count = unit.bytes.div_ceil(Self::WORD);
        let bytes = unit.bytes / count;
        for (index, part) in parts.iter().take(count).enumerate() {
            let displacement = unit.displacement + (index * bytes) as i32;
            self.load(asm, bytes, unit.access, *part, self.source, displacement);
        }
        for action in self.plan.actions() {
            match *action {
                Action::Nothing => {}
                Action::Checksum { first } => {
                    parts.iter().take(count).for_each(|part| self.checksum(asm, first, *part, bytes));
                }
                Action::Crc32c { at } => parts.iter().take(count).for_each(|part| self.crc32c(asm, at, *part, bytes)),
                Action::Swap { bytes: size } if size > unit.bytes => {}
                Action::Swap { bytes: size } => {
                    if size > bytes {
                        parts.swap(0, 1);
                    }
                    parts.iter().take(count).for_each(|part| self.swap(asm, size.min(bytes), *part, bytes));
                }
                Action::XorKey { key } => {
                    for (index, part) in parts.iter().take(count).enumerate() {
                        let at = (8 * (frame::KEYS + key) + index * bytes) as i32;
                        let whole = unit.bytes == 8;
                        let (base, access) =
                            if whole { (self.frame, Access::Aligned) } else { (self.keys, Access::Any) };
                        self.load(asm, bytes, access, self.a, base, at);
                        asm.xorul(*part, *part, self.a);
                    }
                }
                Action::User { step, total } => {
                    let user = self.plan.user(step);
                    if user.element.bytes <= unit.bytes {
                        parts.iter().take(count).for_each(|part| self.user(asm, user, total, *part, bytes));
                    }
                }
                Action::XorStream { stream } => {
                    for (index, part) in parts.iter().take(count).enumerate() {
                        let base = self.stream(asm, stream, self.a);
                        let displacement = unit.displacement + (index * bytes) as i32;
                        self.load(asm, bytes, unit.access, self.a, base, displacement);
                        asm.xorul(*part, *part, self.a);
                    }
                }
            }
        }
        if self.plan.writes {
            for (index, part) in parts.iter().take(count).enumerate() {
                let displacement = unit.displacement + (index * bytes) as i32;
                self.store(asm, bytes, unit.access, *part, displacement);
            }
        }
    }

    /// Loads bytes in memory order, without a sign.
    fn load(&self, asm: &mut Asm<'_, M>, bytes: usize, access: Access, d: M::Reg, base: M::Reg, at: i32) {
        match (bytes, access) {
            (8, Access::Aligned) => asm.lduli(d, base, at),
            (8, Access::Any) => asm.ulduli(d, base, at),
            (4, Access::Aligned) => asm.ldui(d, base, at),
            (4, Access::Any) => asm.uldui(d, base, at),
            (2, _) => asm.uldusi(d, base, at),
            (_, _) => asm.lduci(d, base, at),
        }
        if bytes == 4 && Self::WORD == 8 {
            asm.cvu2ul(d, d);
        }
    }

    fn store(&self, asm: &mut Asm<'_, M>, bytes: usize, access: Access, x: M::Reg, at: i32) {
        match (bytes, access) {
            (8, Access::Aligned) => asm.stuli(x, self.target, at),
            (8, Access::Any) => asm.ustuli(x, self.target, at),
            (4, Access::Aligned) => asm.stui(x, self.target, at),
            (4, Access::Any) => asm.ustui(x, self.target, at),
            (2, _) => asm.ustusi(x, self.target, at),
            (_, _) => asm.stuci(x, self.target, at),
        }
    }

    fn checksum(&self, asm: &mut Asm<'_, M>, first: usize, x: M::Reg, bytes: usize) {
        let mut word = x;
        if bytes == 1 && !M::LITTLE_ENDIAN {
            asm.lshuli(self.a, x, 8);
            word = self.a;
        }
        self.accumulate(asm, first, word);
        if bytes == Self::WORD {
            asm.rshuli(self.a, x, 4 * Self::WORD as u64);
            self.accumulate(asm, first + 1, self.a);
        }
    }

    fn accumulate(&self, asm: &mut Asm<'_, M>, index: usize, value: M::Reg) {
        match self.accumulators[index] {
            Some(StorageClass::Register(register)) => asm.addul(register, register, value),
            Some(StorageClass::Frame) | None => {
                let slot = self.slot(frame::ACCUMULATORS + index);
                asm.lduli(self.b, self.frame, slot);
                asm.addul(self.b, self.b, value);
                asm.stuli(self.b, self.frame, slot);
            }
        }
    }

    /// Adds the sum of vectors to an accumulator of a checksum.
    pub(super) fn add_to(&self, asm: &mut Asm<'_, M>, index: usize, value: M::Reg) {
        self.accumulate(asm, index, value);
    }

    pub(super) fn crc32c(&self, asm: &mut Asm<'_, M>, at: usize, x: M::Reg, bytes: usize) {
        let (register, stays) = match self.accumulators[at] {
            Some(StorageClass::Register(register)) => (register, true),
            Some(StorageClass::Frame) | None => {
                asm.ldui(self.b, self.frame, self.crc_slot(at));
                (self.b, false)
            }
        };
        if self.processor.crc {
            match bytes {
                8 => asm.crc32cul(register, register, x),
                4 => asm.crc32cu(register, register, x),
                2 => asm.crc32cus(register, register, x),
                _ => asm.crc32cuc(register, register, x),
            }
        } else {
            self.crc32c_by_tables(asm, register, x, bytes);
        }
        if !stays {
            asm.stui(register, self.frame, self.crc_slot(at));
        }
    }

    /// One look-up per byte, each in a table of its own, so that the look-ups are independent (slicing: Kounavis,
    /// Berry, "A Systematic Approach to Building High Performance Software-Based CRC Generators", 2005).
    fn crc32c_by_tables(&self, asm: &mut Asm<'_, M>, crc: M::Reg, x: M::Reg, bytes: usize) {
        let [word, index, table] = self.lookup;
        let result = self.a;
        asm.movul(word, x);
        if !M::LITTLE_ENDIAN {
            match bytes {
                8 => asm.bswapul(word, word),
                4 => {
                    asm.cvul2u(word, word);
                    asm.bswapu(word, word);
                    asm.cvu2ul(word, word);
                }
                2 => asm.bswapus(word, word),
                _ => {}
            }
        }
        asm.ldpi(table, self.frame, self.slot(frame::TABLES));
        // The remainder is xor-ed with the first four bytes; if there are fewer, the rest of it is shifted.
        asm.cvu2ul(crc, crc);
        asm.xorul(word, word, crc);
        if bytes < 4 {
            asm.rshuli(result, crc, 8 * bytes as u64);
        } else {
            asm.setul(result, 0);
        }
        for byte in 0..bytes {
            asm.anduli(index, word, 0xff);
            asm.lshuli(index, index, 2);
            asm.addp(index, index, table);
            asm.ldui(index, index, 1024 * (bytes - 1 - byte) as i32);
            asm.cvu2ul(index, index);
            asm.xorul(result, result, index);
            if byte + 1 < bytes {
                asm.rshuli(word, word, 8);
            }
        }
        asm.cvul2u(crc, result);
    }

    /// Reverses elements of `size` bytes in a register that holds `bytes`, of which `size` is no more.
    fn swap(&self, asm: &mut Asm<'_, M>, size: usize, x: M::Reg, bytes: usize) {
        match (size, bytes) {
            (8, _) => asm.bswapul(x, x),
            (4, 8) => {
                asm.bswapul(x, x);
                asm.rotruli(x, x, 32);
            }
            (4, _) => {
                asm.cvul2u(x, x);
                asm.bswapu(x, x);
                asm.cvu2ul(x, x);
            }
            (_, _) => {
                asm.setul(self.a, 0x00ff_00ff_00ff_00ff & Self::word_mask());
                asm.andul(self.b, x, self.a);
                asm.lshuli(self.b, self.b, 8);
                asm.rshuli(x, x, 8);
                asm.andul(x, x, self.a);
                asm.orul(x, x, self.b);
            }
        }
    }

    /// The offset of the part of a slot that a register of this machine holds.
    pub(super) fn slot(&self, slot: usize) -> i32 {
        let low = if M::LITTLE_ENDIAN { 0 } else { 8 - Self::WORD };
        (8 * slot + low) as i32
    }

    /// Where the 32 bits of a remainder are.
    fn crc_slot(&self, accumulator: usize) -> i32 {
        let low = if M::LITTLE_ENDIAN { 0 } else { 4 };
        (8 * (frame::ACCUMULATORS + accumulator) + low) as i32
    }

    fn is_remainder(&self, accumulator: usize) -> bool {
        self.plan.actions().contains(&Action::Crc32c { at: accumulator })
    }

    /// Whether it is one of the two of a checksum.
    fn is_sum(&self, accumulator: usize) -> bool {
        let holds = |action: &Action| matches!(action, Action::Checksum { first } if (*first..first + 2).contains(&accumulator));
        self.plan.actions().iter().any(holds)
    }

    fn load_accumulator(&self, asm: &mut Asm<'_, M>, index: usize, register: M::Reg) {
        if self.is_remainder(index) {
            asm.ldui(register, self.frame, self.crc_slot(index));
        } else {
            asm.lduli(register, self.frame, self.slot(frame::ACCUMULATORS + index));
        }
    }

    /// Stores an accumulator that lives in a register to the frame.
    fn store_accumulator(&self, asm: &mut Asm<'_, M>, index: usize, register: M::Reg) {
        if self.is_remainder(index) {
            asm.stui(register, self.frame, self.crc_slot(index));
        } else {
            asm.stuli(register, self.frame, self.slot(frame::ACCUMULATORS + index));
        }
    }

    /// Copies a remainder to the low half of `to`, whose high half is then zero.
    pub(super) fn copy_remainder(&self, asm: &mut Asm<'_, M>, at: usize, to: M::Reg) {
        match self.accumulators[at] {
            Some(StorageClass::Register(register)) => asm.cvu2ul(to, register),
            Some(StorageClass::Frame) | None => {
                asm.ldui(to, self.frame, self.crc_slot(at));
                asm.cvu2ul(to, to);
            }
        }
    }

    /// Sets a remainder to zero.
    pub(super) fn remainder_is_zero(&self, asm: &mut Asm<'_, M>, at: usize) {
        match self.accumulators[at] {
            Some(StorageClass::Register(register)) => asm.setu(register, 0),
            Some(StorageClass::Frame) | None => {
                asm.setu(self.b, 0);
                asm.stui(self.b, self.frame, self.crc_slot(at));
            }
        }
    }
}
