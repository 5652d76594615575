//! Every instruction with every pattern of equal registers and edge operands, each as a function of the batch with what
//! the reference interpreter says that it computes.

use super::*;

/// What the bystanders hold, in order from here: registers that no instruction of a test may change.
const BYSTANDER: i32 = 0x5a00;

/// An instruction, which of three registers its operands are, and their values.
#[derive(Clone, Copy)]
struct Trial {
    instruction: &'static Instruction,
    /// Destination, first and second operand.
    pattern: [usize; 3],
    left: u64,
    right: u64,
    immediate: i64,
    /// The destination before a selection.
    previous: u64,
    result: u64,
    /// Whether a checked instruction overflows.
    overflow: bool,
    /// Bytes from an aligned address.
    misaligned: usize,
}

impl Trial {
    /// The type of the first operand. A remainder is an unsigned, whatever the data; what is returned is any int.
    fn source(&self) -> Type {
        match self.instruction.family {
            _ if self.instruction.op == "crc32c" => Type::U,
            Family::Return => self.instruction.source.held(),
            _ => self.instruction.source,
        }
    }

    /// Whether the second operand is a register.
    fn reads_second(&self) -> bool {
        let two = matches!(
            self.instruction.family,
            Family::Binary | Family::Shift | Family::Branch | Family::Select | Family::Checked
        );
        two && !self.instruction.immediate
    }

    /// Computes the result by the reference interpreter. Returns whether it is defined.
    fn evaluate(&mut self, long: u32) -> bool {
        let Trial { instruction, left, right, previous, immediate, .. } = *self;
        let (op, ty, bits, source) = (instruction.op, instruction.ty, instruction.ty.bits(long), self.source());
        let second = if instruction.immediate { immediate as u64 } else { right };
        let result = match instruction.family {
            Family::Binary | Family::Shift if ty.is_float() => interpreter::extended_float(op, ty, left, right),
            Family::Binary if op == "crc32c" => Some(interpreter::crc32c(left, second, bits)),
            Family::Select => Some(if (left == 0) == (op == "movz") { right } else { previous }),
            Family::Checked => {
                let (value, overflows) = interpreter::checked(op, ty, bits, left, second);
                self.overflow = overflows;
                Some(value)
            }
            Family::Hint => Some(0),
            Family::Exchange => None,
            Family::Binary | Family::Shift => interpreter::binary(op, ty, bits, left, second),
            Family::Unary => Some(interpreter::unary(op, ty, bits, left)),
            Family::Convert => interpreter::convert(source, source.bits(long), ty, bits, left),
            Family::Branch => Some(u64::from(interpreter::branch(op, ty, bits, left, second))),
            Family::Set if ty.is_float() => {
                self.immediate = left as i64;
                Some(left)
            }
            Family::Set => Some((immediate as u64) << (64 - bits) >> (64 - bits)),
            Family::Load | Family::Store | Family::IndexedLoad | Family::IndexedStore | Family::Nullary => Some(left),
            Family::Return if ty != ty.held() => Some(interpreter::load(ty, bits, left)),
            Family::Return => Some(left),
            Family::Label | Family::Register => None,
        };
        self.result = result.unwrap_or(0);
        result.is_some()
    }
}

/// A value that a slot of the memory must hold afterwards.
fn word(slot: usize, bits: u32, value: u64, ty: Type, what: &'static str) -> Expected {
    Expected { offset: HEADER_BYTES + 8 * slot, bits, value, ty, what }
}

/// Registers that are no operands.
fn bystanders<M: Machine>(operands: &Operands<M::Reg, M::Float>) -> Vec<M::Reg> {
    M::INT
        .temp
        .iter()
        .map(|number| M::Reg::from_number(*number))
        .filter(|register| *register != operands.d && *register != operands.s && *register != operands.t)
        .take(MAX_BYSTANDERS)
        .collect()
}

/// Executes an instruction and stores its result; for a branch or a check, whether it was taken, by way of `flag`.
fn emit_and_store_result<M: Machine>(
    asm: &mut Asm<'_, M>,
    base: M::Reg,
    index: usize,
    trial: &Trial,
    operands: &Operands<M::Reg, M::Float>,
    flag: M::Reg,
) where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let Trial { instruction, .. } = *trial;
    let held = instruction.ty.held();
    let taken = asm.label();
    let done = asm.label();
    emit_any(asm, index, operands, taken);
    match instruction.family {
        Family::Branch | Family::Checked => {
            let is_branch = instruction.family == Family::Branch;
            asm.seti(flag, 0);
            asm.j(done);
            asm.bind(taken);
            asm.seti(flag, 1);
            asm.bind(done);
            // Of a check, where the first operand of a branch would be.
            asm.stii(flag, base, slot(if is_branch { SLOT_RESULT } else { SLOT_DATA }));
            asm.seti(flag, BYSTANDER);
            if !is_branch {
                store(asm, held, operands.d, operands.fd, base, SLOT_RESULT);
            }
        }
        Family::Store | Family::IndexedStore | Family::Return | Family::Nullary | Family::Hint => {}
        Family::Binary if instruction.op == "crc32c" => {
            store(asm, Type::U, operands.d, operands.fd, base, SLOT_RESULT);
        }
        _ => store(asm, held, operands.d, operands.fd, base, SLOT_RESULT),
    }
}

impl Batch<'_> {
    /// Adds tests of every instruction of the generated list: every pattern of equal and different registers, `rounds`
    /// choices of operands each; those of the extensions again as processors with these features have them.
    pub fn add_instructions<M: Machine>(&mut self, rounds: usize, features: Features)
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        self.add_from::<M>(0, rounds);
        self.features = features;
        self.add_from::<M>(INSTRUCTIONS.len(), rounds);
        self.features = Features::NONE;
    }

    /// Adds tests of the instructions from this one on.
    fn add_from<M: Machine>(&mut self, first: usize, rounds: usize)
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        // Destination, first, second: which of three registers.
        const PATTERNS: [[usize; 3]; 5] = [[0, 1, 2], [0, 0, 1], [0, 1, 0], [0, 1, 1], [0, 0, 0]];
        for (index, instruction) in INSTRUCTIONS.iter().chain(EXTENSIONS).enumerate().skip(first) {
            for pattern in PATTERNS {
                // Base and index differ, and so do remainder and data, which are of different types.
                let apart = instruction.family.accesses_memory() || instruction.op == "crc32c";
                if apart && pattern[1] == pattern[2] {
                    continue;
                }
                // The three of an exchange are different registers.
                if instruction.family == Family::Exchange && pattern != [0, 1, 2] {
                    continue;
                }
                let value_is_base = pattern[0] == pattern[1] || pattern[0] == pattern[2];
                if instruction.family.stores() && value_is_base && !instruction.ty.is_float() {
                    continue;
                }
                // Most operands of a conversion have a case of their own.
                let rounds = if instruction.family == Family::Convert { 4 * rounds } else { rounds };
                for _ in 0..rounds {
                    self.add_instruction::<M>(index, instruction, pattern);
                }
            }
        }
    }

    fn value(&mut self, ty: Type) -> u64 {
        const INTEGERS: [i64; 26] = [
            0,
            1,
            -1,
            2,
            7,
            -8,
            127,
            128,
            255,
            -129,
            32767,
            32768,
            65535,
            -32769,
            0x7fff_ffff,
            -0x8000_0000,
            0x8000_0000,
            0xffff_ffff,
            0x1234_5678,
            0x1_0000_0000,
            i64::MAX,
            i64::MIN,
            0x0123_4567_89ab_cdef,
            -0x0123_4567_89ab_cdef,
            // More than half of the last place of a float and of a double, by the lowest bit.
            0x8000_0080_0000_0001_u64 as i64,
            0x8000_0000_0000_0401_u64 as i64,
        ];
        const DOUBLES: [f64; 20] = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            0.5,
            1.5,
            -2.5,
            3.25e9,
            -1e10,
            1e-5,
            123_456.789,
            f64::INFINITY,
            -7.0,
            f64::NAN,
            // Limits of unsigned conversions: 2^31, 2^63, the largest floats below 2^32 and 2^64, what truncates to 0.
            2_147_483_648.0,
            9_223_372_036_854_775_808.0,
            4_294_967_040.0,
            18_446_742_974_197_923_840.0,
            1.5e19,
            -0.75,
        ];
        match ty {
            Type::F => u64::from((self.random.pick(&DOUBLES) as f32).to_bits()),
            Type::D => self.random.pick(&DOUBLES).to_bits(),
            _ => {
                let value = if self.random.next().is_multiple_of(4) {
                    self.random.next()
                } else {
                    self.random.pick(&INTEGERS) as u64
                };
                let bits = ty.bits(self.long);
                if bits == 0 { 0 } else { value << (64 - bits) >> (64 - bits) }
            }
        }
    }

    fn immediate(&mut self, ty: Type) -> i64 {
        const EDGES: [i64; 26] = [
            0,
            1,
            -1,
            7,
            8,
            127,
            128,
            -128,
            -129,
            255,
            256,
            2047,
            2048,
            -2048,
            -2049,
            4095,
            4096,
            -4095,
            -4096,
            32767,
            32768,
            -32768,
            -32769,
            65535,
            65536,
            0x7fff_f7ff,
        ];
        let value = match self.random.next() % 3 {
            0 => self.value(ty) as i64,
            _ => self.random.pick(&EDGES),
        };
        let bits = ty.bits(self.long);
        if bits == 0 { 0 } else { value << (64 - bits) >> (64 - bits) }
    }

    fn add_instruction<M: Machine>(&mut self, index: usize, instruction: &'static Instruction, pattern: [usize; 3])
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        match instruction.family {
            // Tested with functions: they need a place to go to.
            Family::Label | Family::Register => return,
            Family::Exchange => return self.add_exchange::<M>(index, instruction),
            Family::Hint
            | Family::Binary
            | Family::Shift
            | Family::Unary
            | Family::Set
            | Family::Convert
            | Family::Load
            | Family::Store
            | Family::IndexedLoad
            | Family::IndexedStore
            | Family::Return
            | Family::Branch
            | Family::Nullary
            | Family::Select
            | Family::Checked => {}
        }
        let Some(trial) = self.choose_values(instruction, pattern) else { return };
        let operands = self.choose_operands::<M>(&trial);
        let bystanders = bystanders::<M>(&operands);
        let mut region = vec![0_u8; 4096];
        let mut workspace = Workspace::<M>::new();
        let mut params = [Param::NONE];
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm = Asm::<M>::begin(region_ref, &mut workspace, "%p", &mut params, Kind::Leaf)
            .expect("the region is large enough");
        asm.use_features(self.features);
        let base = M::Reg::from_number(M::INT.saved[0]);
        asm.claim(base).expect("the first callee-saved register is free");
        asm.movp(base, params[0].reg());
        for (index, register) in bystanders.iter().enumerate() {
            asm.seti(*register, BYSTANDER + index as i32);
        }
        self.load_operands(&mut asm, base, &trial, &operands);
        emit_and_store_result(&mut asm, base, index, &trial, &operands, bystanders[0]);
        let mut expected = Vec::new();
        let returns = self.expect_result(&trial, &mut expected);
        if instruction.family != Family::Return {
            self.store_other_registers(&mut asm, base, &trial, &operands, &mut expected);
            for (index, register) in bystanders.iter().enumerate() {
                asm.stii(*register, base, slot(SLOT_BYSTANDERS + index));
                let value = BYSTANDER as u64 + index as u64;
                expected.push(word(SLOT_BYSTANDERS + index, 32, value, Type::I, "bystander"));
            }
            asm.retv();
        }
        let memory = self.memory_before(&trial);
        let name = format!(
            "{} {}: d={:?} s={:?} t={:?} left={:#x} right={:#x} immediate={:#x}",
            M::NAME,
            instruction.name,
            operands.d,
            operands.s,
            operands.t,
            trial.left,
            trial.right,
            operands.immediate
        );
        let code = asm.end().unwrap_or_else(|error| panic!("{name}: {error}"));
        self.finish(name, &region, code, returns, memory, expected);
    }

    /// Chooses operands until the instruction is defined on them.
    fn choose_values(&mut self, instruction: &'static Instruction, pattern: [usize; 3]) -> Option<Trial> {
        let (ty, bits) = (instruction.ty, instruction.ty.bits(self.long));
        let mut trial = Trial {
            instruction,
            pattern,
            left: 0,
            right: 0,
            immediate: 0,
            previous: 0,
            result: 0,
            overflow: false,
            misaligned: 0,
        };
        let is_defined = (0..100).any(|_| {
            trial.left = self.value(trial.source());
            trial.right = self.value(ty);
            if instruction.family == Family::Select && self.random.next().is_multiple_of(3) {
                trial.left = 0;
            }
            if pattern[1] == pattern[2] {
                trial.right = trial.left;
            }
            trial.previous = match pattern {
                [d, s, _] if d == s => trial.left,
                [d, _, t] if d == t => trial.right,
                _ => self.value(ty),
            };
            trial.immediate = self.immediate(ty.held());
            if instruction.family == Family::Shift {
                trial.immediate = self.random.below(u64::from(bits)) as i64;
                if pattern[1] != pattern[2] {
                    trial.right = self.random.below(u64::from(bits));
                }
            }
            if self.long == 32 && matches!(ty, Type::Ul | Type::P) {
                trial.immediate &= 0xffff_ffff;
            }
            trial.evaluate(self.long)
        });
        if is_defined && matches!(instruction.op, "uld" | "ust") {
            trial.misaligned = self.random.index(8);
        }
        is_defined.then_some(trial)
    }

    /// Chooses registers. The base of the test's memory is in the first callee-saved one.
    fn choose_operands<M: Machine>(&mut self, trial: &Trial) -> Operands<M::Reg, M::Float> {
        let (pool, float_pool, pattern) = (M::INT.temp, M::FLOAT.temp, trial.pattern);
        let first = self.random.index(1 << 16);
        let step = 1 + self.random.index((pool.len() - 1) / 2);
        let int = |which: usize| M::Reg::from_number(pool[(first + which * step) % pool.len()]);
        let float = |which: usize| M::Float::from_number(float_pool[(first + which) % float_pool.len()]);
        let accesses_memory = trial.instruction.family.accesses_memory();
        Operands {
            d: int(pattern[0]),
            s: int(pattern[1]),
            t: int(pattern[2]),
            fd: float(pattern[0]),
            fs: float(pattern[1]),
            ft: float(pattern[2]),
            immediate: if accesses_memory { self.offset() } else { trial.immediate },
        }
    }

    fn load_operands<M: Machine>(
        &mut self,
        asm: &mut Asm<'_, M>,
        base: M::Reg,
        trial: &Trial,
        operands: &Operands<M::Reg, M::Float>,
    ) where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        let Trial { instruction, pattern, immediate, .. } = *trial;
        let (ty, held) = (instruction.ty, trial.source().held());
        if instruction.family.accesses_memory() {
            let data = i64::from(slot(SLOT_DATA)) + trial.misaligned as i64;
            let indexed = matches!(instruction.family, Family::IndexedLoad | Family::IndexedStore);
            let index = self.random.next() as i64 >> 50;
            let displacement = match instruction.immediate {
                true if indexed => operands.immediate + index * i64::from(ty.bits(self.long) / 8),
                true => operands.immediate,
                false => immediate >> 40,
            };
            asm.addpi(operands.s, base, (data - displacement) as u64 & self.pointer_mask());
            if indexed {
                asm.setl(operands.t, index);
            } else if !instruction.immediate {
                asm.setl(operands.t, displacement);
            }
            if instruction.family.stores() {
                load(asm, held, operands.d, operands.fd, base, SLOT_S);
            }
            return;
        }
        load(asm, held, operands.s, operands.fs, base, SLOT_S);
        if instruction.family == Family::Hint {
            asm.movp(operands.s, base);
        }
        if instruction.family == Family::Select && pattern[0] != pattern[1] && pattern[0] != pattern[2] {
            load(asm, ty, operands.d, operands.fd, base, SLOT_DATA);
        }
        if trial.reads_second() && pattern[1] != pattern[2] {
            load(asm, ty, operands.t, operands.ft, base, SLOT_T);
        }
    }

    /// What the instruction leaves in memory or returns; the result is the file of the returned register.
    fn expect_result(&self, trial: &Trial, expected: &mut Vec<Expected>) -> u64 {
        let Trial { instruction, result, .. } = *trial;
        let (ty, bits) = (instruction.ty, instruction.ty.bits(self.long));
        let held_bits = ty.held().bits(self.long);
        let memory = |value: u64| Expected {
            offset: HEADER_BYTES + 8 * SLOT_DATA + trial.misaligned,
            ..word(SLOT_DATA, bits, value, ty, "memory")
        };
        match instruction.family {
            Family::Branch => expected.push(word(SLOT_RESULT, 32, result, Type::I, "taken")),
            Family::Store if instruction.op == "bst" => {
                expected.push(memory(result.swap_bytes() >> (64 - bits)));
            }
            Family::Store | Family::IndexedStore => expected.push(memory(result << (64 - bits) >> (64 - bits))),
            Family::Load if instruction.op == "bld" => {
                expected.push(word(SLOT_RESULT, held_bits, result.swap_bytes() >> (64 - bits), ty, "result"));
            }
            Family::Load | Family::IndexedLoad => {
                expected.push(word(SLOT_RESULT, held_bits, interpreter::load(ty, bits, result), ty, "result"));
            }
            Family::Return if ty == Type::V => {}
            Family::Return => {
                // An int is returned in a long; only its own bits are defined.
                let bits = held_bits;
                let skip = if self.tools.little || ty.is_float() { 0 } else { (self.long - bits) as usize / 8 };
                let offset = RETURN_OFFSET + skip;
                expected.push(Expected { offset, bits, value: result, ty, what: "returned value" });
                return match ty {
                    Type::F => 1,
                    Type::D => 2,
                    _ => 0,
                };
            }
            Family::Nullary | Family::Hint => {}
            Family::Checked => {
                expected.push(word(SLOT_DATA, 32, u64::from(trial.overflow), Type::I, "overflow"));
                expected.push(word(SLOT_RESULT, held_bits, result, ty, "result"));
            }
            Family::Binary if instruction.op == "crc32c" => {
                expected.push(word(SLOT_RESULT, 32, result, Type::I, "result"));
            }
            _ => expected.push(word(SLOT_RESULT, held_bits, result, ty, "result")),
        }
        0
    }

    /// Stores the operands that the instruction must not change.
    fn store_other_registers<M: Machine>(
        &self,
        asm: &mut Asm<'_, M>,
        base: M::Reg,
        trial: &Trial,
        operands: &Operands<M::Reg, M::Float>,
        expected: &mut Vec<Expected>,
    ) where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        let Trial { instruction, pattern, .. } = *trial;
        let (ty, source) = (instruction.ty, trial.source());
        let held = source.held();
        let reads_source = matches!(
            instruction.family,
            Family::Binary
                | Family::Shift
                | Family::Unary
                | Family::Convert
                | Family::Branch
                | Family::Select
                | Family::Checked
        );
        let writes = instruction.family != Family::Branch;
        let same_file = source.is_float() == ty.is_float();
        if reads_source && !(writes && same_file && pattern[0] == pattern[1]) {
            store(asm, held, operands.s, operands.fs, base, SLOT_S_AFTER);
            let bits = held.bits(self.long);
            expected.push(word(SLOT_S_AFTER, bits, trial.left, source, "first operand afterwards"));
        }
        if trial.reads_second() && !(writes && pattern[0] == pattern[2]) {
            store(asm, ty, operands.t, operands.ft, base, SLOT_T_AFTER);
            let bits = ty.held().bits(self.long);
            expected.push(word(SLOT_T_AFTER, bits, trial.right, ty, "second operand afterwards"));
        }
    }

    /// The memory of a test, with its operands.
    fn memory_before(&self, trial: &Trial) -> [u8; TEST_BYTES] {
        let Trial { instruction, .. } = *trial;
        let (ty, bits) = (instruction.ty, instruction.ty.bits(self.long));
        let mut memory = [0_u8; TEST_BYTES];
        let is_load = instruction.family.accesses_memory() && !instruction.family.stores();
        let held_bits = trial.source().held().bits(self.long);
        let (offset, source_bits) = match is_load {
            true => (8 * SLOT_DATA + trial.misaligned, bits),
            false => (8 * SLOT_S, held_bits),
        };
        if source_bits > 0 {
            self.put(&mut memory, HEADER_BYTES + offset, source_bits, trial.left);
        }
        if bits > 0 && !is_load {
            self.put(&mut memory, HEADER_BYTES + 8 * SLOT_T, ty.held().bits(self.long), trial.right);
        }
        if instruction.family == Family::Select {
            self.put(&mut memory, HEADER_BYTES + 8 * SLOT_DATA, bits, trial.previous);
        }
        memory
    }

    /// A compare-and-exchange that succeeds or fails.
    fn add_exchange<M: Machine>(&mut self, index: usize, instruction: &'static Instruction)
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        let (ty, bits) = (instruction.ty, instruction.ty.bits(self.long));
        let (there, new) = (self.value(ty), self.value(ty));
        let expected = if self.random.next().is_multiple_of(2) { there } else { self.value(ty) };
        let pool = M::INT.temp;
        let first = self.random.next() as usize;
        let int = |which: usize| M::Reg::from_number(pool[(first + which) % pool.len()]);
        let operands = Operands {
            d: int(0),
            s: int(1),
            t: int(2),
            fd: M::FLOAT_RESULT,
            fs: M::FLOAT_RESULT,
            ft: M::FLOAT_RESULT,
            immediate: 0,
        };
        let mut region = vec![0_u8; 4096];
        let mut workspace = Workspace::<M>::new();
        let mut params = [Param::NONE];
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm = Asm::<M>::begin(region_ref, &mut workspace, "%p", &mut params, Kind::Leaf)
            .expect("the region is large enough");
        asm.use_features(self.features);
        let base = M::Reg::from_number(M::INT.saved[0]);
        asm.claim(base).expect("the first callee-saved register is free");
        asm.movp(base, params[0].reg());
        load(&mut asm, ty, operands.d, operands.fd, base, SLOT_S);
        load(&mut asm, ty, operands.t, operands.ft, base, SLOT_T);
        asm.addpi(operands.s, base, 8 * SLOT_DATA as u64);
        let label = asm.label();
        asm.bind(label);
        emit_any(&mut asm, index, &operands, label);
        store(&mut asm, ty, operands.d, operands.fd, base, SLOT_RESULT);
        store(&mut asm, ty, operands.t, operands.ft, base, SLOT_T_AFTER);
        asm.retv();
        let mut memory = [0_u8; TEST_BYTES];
        let mut wanted = Vec::new();
        for (slot, value) in [(SLOT_S, expected), (SLOT_T, new), (SLOT_DATA, there)] {
            self.put(&mut memory, HEADER_BYTES + 8 * slot, bits, value);
        }
        let left = if expected == there { new } else { there };
        for (slot, value, what) in [
            (SLOT_RESULT, there, "what was there"),
            (SLOT_DATA, left, "what is there"),
            (SLOT_T_AFTER, new, "the new value afterwards"),
        ] {
            wanted.push(Expected { offset: HEADER_BYTES + 8 * slot, bits, value, ty, what });
        }
        let name = format!("{} {}: {:?} {:?} {:?}", M::NAME, instruction.name, operands.d, operands.s, operands.t);
        let code = asm.end().unwrap_or_else(|error| panic!("{name}: {error}"));
        self.finish(name, &region, code, 0, memory, wanted);
    }

    fn pointer_mask(&self) -> u64 {
        if self.long == 32 { 0xffff_ffff } else { u64::MAX }
    }

    fn offset(&mut self) -> i64 {
        const OFFSETS: [i64; 20] = [
            0, 8, 16, -8, -16, 120, 128, -128, -136, 248, 256, 2040, 2048, -2048, 4088, 4096, 32760, 32768, 65536,
            0x12_3450,
        ];
        self.random.pick(&OFFSETS)
    }
}
