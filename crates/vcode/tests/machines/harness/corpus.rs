//! Every instruction with every pattern of equal registers and edge operands, each as a function of the batch with what
//! the reference interpreter says that it computes.

use super::*;

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
                for _ in 0..rounds {
                    self.add_instruction::<M>(index, instruction, pattern);
                }
            }
        }
    }

    fn value(&mut self, ty: Type) -> u64 {
        const INTEGERS: [i64; 24] = [
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
        ];
        const DOUBLES: [f64; 14] =
            [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, -2.5, 3.25e9, -1e10, 1e-5, 123_456.789, f64::INFINITY, -7.0, f64::NAN];
        match ty {
            Type::F => u64::from((self.pick(&DOUBLES) as f32).to_bits()),
            Type::D => self.pick(&DOUBLES).to_bits(),
            _ => {
                let value = if self.random().is_multiple_of(4) { self.random() } else { self.pick(&INTEGERS) as u64 };
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
        let value = match self.random() % 3 {
            0 => self.value(ty) as i64,
            _ => self.pick(&EDGES),
        };
        let bits = ty.bits(self.long);
        if bits == 0 { 0 } else { value << (64 - bits) >> (64 - bits) }
    }

    fn add_instruction<M: Machine>(&mut self, index: usize, instruction: &'static Instruction, pattern: [usize; 3])
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        let ty = instruction.ty;
        // A remainder is an unsigned, whatever the data.
        let source = if instruction.op == "crc32c" { Type::U } else { instruction.source };
        let bits = ty.bits(self.long);
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
        // Choose operands until the instruction is defined on them.
        let (mut left, mut right, mut immediate) = (0, 0, 0);
        let mut defined = None;
        // What is in the destination before a selection; whether a checked instruction overflows.
        let (mut previous, mut overflow) = (0, false);
        for _ in 0..100 {
            left = self.value(source);
            right = self.value(ty);
            if instruction.family == Family::Select && self.random().is_multiple_of(3) {
                left = 0;
            }
            if pattern[1] == pattern[2] {
                right = left;
            }
            previous = match pattern {
                [d, s, _] if d == s => left,
                [d, _, t] if d == t => right,
                _ => self.value(ty),
            };
            immediate = self.immediate(ty.held());
            if instruction.family == Family::Shift {
                immediate = (self.random() % u64::from(bits)) as i64;
                if pattern[1] != pattern[2] {
                    right = self.random() % u64::from(bits);
                }
            }
            if self.long == 32 && matches!(ty, Type::Ul | Type::P) {
                immediate &= 0xffff_ffff;
            }
            let second = if instruction.immediate { immediate as u64 } else { right };
            defined = match instruction.family {
                Family::Binary | Family::Shift if ty.is_float() => {
                    interpreter::extended_float(instruction.op, ty, left, right)
                }
                Family::Binary if instruction.op == "crc32c" => Some(interpreter::crc32c(left, second, bits)),
                Family::Select => Some(if (left == 0) == (instruction.op == "movz") { right } else { previous }),
                Family::Checked => {
                    let (value, overflows) = interpreter::checked(instruction.op, ty, bits, left, second);
                    overflow = overflows;
                    Some(value)
                }
                Family::Hint => Some(0),
                Family::Exchange => None,
                Family::Binary | Family::Shift => interpreter::binary(instruction.op, ty, bits, left, second),
                Family::Unary => Some(interpreter::unary(instruction.op, ty, bits, left)),
                Family::Convert => interpreter::convert(source, source.bits(self.long), ty, bits, left),
                Family::Branch => Some(u64::from(interpreter::branch(instruction.op, ty, bits, left, second))),
                Family::Set if ty.is_float() => {
                    immediate = left as i64;
                    Some(left)
                }
                Family::Set => Some((immediate as u64) << (64 - bits) >> (64 - bits)),
                Family::Load
                | Family::Store
                | Family::IndexedLoad
                | Family::IndexedStore
                | Family::Return
                | Family::Nullary => Some(left),
                Family::Label | Family::Register => None,
            };
            if defined.is_some() {
                break;
            }
        }
        let Some(result) = defined else { return };
        let unaligned = matches!(instruction.op, "uld" | "ust");
        let misaligned = if unaligned { self.random() as usize % 8 } else { 0 };

        // Choose registers. The base of the test's memory is in the first callee-saved one.
        let pool: Vec<u8> = M::INT.temp.to_vec();
        let float_pool: Vec<u8> = M::FLOAT.temp.to_vec();
        let first = self.random() as usize;
        let step = 1 + self.random() as usize % ((pool.len() - 1) / 2);
        let int = |which: usize| M::Reg::from_number(pool[(first + which * step) % pool.len()]);
        let float = |which: usize| M::Float::from_number(float_pool[(first + which) % float_pool.len()]);
        let memory_access = instruction.family.accesses_memory();
        let operands = Operands {
            d: int(pattern[0]),
            s: int(pattern[1]),
            t: int(pattern[2]),
            fd: float(pattern[0]),
            fs: float(pattern[1]),
            ft: float(pattern[2]),
            immediate: if memory_access { self.offset() } else { immediate },
        };
        let bystanders: Vec<M::Reg> = pool
            .iter()
            .map(|number| M::Reg::from_number(*number))
            .filter(|register| *register != operands.d && *register != operands.s && *register != operands.t)
            .take(MAX_BYSTANDERS)
            .collect();

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
            asm.seti(*register, 0x5a00 + index as i32);
        }
        let held = source.held();
        if memory_access {
            let data = i64::from(slot(SLOT_DATA)) + misaligned as i64;
            let indexed = matches!(instruction.family, Family::IndexedLoad | Family::IndexedStore);
            let index = self.random() as i64 >> 50;
            let displacement = match instruction.immediate {
                true if indexed => operands.immediate + index * i64::from(bits / 8),
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
                load(&mut asm, held, operands.d, operands.fd, base, SLOT_S);
            }
        } else {
            load(&mut asm, held, operands.s, operands.fs, base, SLOT_S);
            if instruction.family == Family::Hint {
                asm.movp(operands.s, base);
            }
            if instruction.family == Family::Select && pattern[0] != pattern[1] && pattern[0] != pattern[2] {
                load(&mut asm, ty, operands.d, operands.fd, base, SLOT_DATA);
            }
            let two = matches!(
                instruction.family,
                Family::Binary | Family::Shift | Family::Branch | Family::Select | Family::Checked
            );
            if two && !instruction.immediate && pattern[1] != pattern[2] {
                load(&mut asm, ty, operands.t, operands.ft, base, SLOT_T);
            }
        }
        let taken = asm.label();
        let done = asm.label();
        emit_any(&mut asm, index, &operands, taken);
        match instruction.family {
            Family::Branch => {
                let flag = bystanders[0];
                asm.seti(flag, 0);
                asm.j(done);
                asm.bind(taken);
                asm.seti(flag, 1);
                asm.bind(done);
                asm.stii(flag, base, slot(SLOT_RESULT));
                asm.seti(flag, 0x5a00);
            }
            Family::Checked => {
                // Whether it overflowed goes where the first operand would be looked at afterwards.
                let flag = bystanders[0];
                asm.seti(flag, 0);
                asm.j(done);
                asm.bind(taken);
                asm.seti(flag, 1);
                asm.bind(done);
                asm.stii(flag, base, slot(SLOT_DATA));
                asm.seti(flag, 0x5a00);
                store(&mut asm, ty.held(), operands.d, operands.fd, base, SLOT_RESULT);
            }
            Family::Store | Family::IndexedStore | Family::Return | Family::Nullary | Family::Hint => {}
            Family::Binary if instruction.op == "crc32c" => {
                store(&mut asm, Type::U, operands.d, operands.fd, base, SLOT_RESULT);
            }
            _ => store(&mut asm, ty.held(), operands.d, operands.fd, base, SLOT_RESULT),
        }
        let mut expected = Vec::new();
        let mut expect = |slot: usize, bits: u32, value: u64, ty: Type, what: &'static str| {
            let misaligned = if slot == SLOT_DATA { misaligned } else { 0 };
            expected.push(Expected { offset: HEADER_BYTES + 8 * slot + misaligned, bits, value, ty, what });
        };
        let mut returns = 0;
        let held_bits = ty.held().bits(self.long);
        match instruction.family {
            Family::Branch => expect(SLOT_RESULT, 32, result, Type::I, "taken"),
            Family::Store if instruction.op == "bst" => {
                expect(SLOT_DATA, bits, result.swap_bytes() >> (64 - bits), ty, "memory");
            }
            Family::Store | Family::IndexedStore => {
                expect(SLOT_DATA, bits, result << (64 - bits) >> (64 - bits), ty, "memory");
            }
            Family::Load if instruction.op == "bld" => {
                expect(SLOT_RESULT, held_bits, result.swap_bytes() >> (64 - bits), ty, "result");
            }
            Family::Load | Family::IndexedLoad => {
                expect(SLOT_RESULT, held_bits, interpreter::load(ty, bits, result), ty, "result");
            }
            Family::Return if ty == Type::V => {}
            Family::Return => {
                returns = match ty {
                    Type::F => 1,
                    Type::D => 2,
                    _ => 0,
                };
                // An int is returned in a long; only its own bits are defined.
                let skip = if self.tools.little || ty.is_float() { 0 } else { (self.long - bits) as usize / 8 };
                expected.push(Expected {
                    offset: RETURN_OFFSET + skip,
                    bits,
                    value: result,
                    ty,
                    what: "returned value",
                });
            }
            Family::Nullary | Family::Hint => {}
            Family::Checked => {
                expect(SLOT_DATA, 32, u64::from(overflow), Type::I, "overflow");
                expect(SLOT_RESULT, held_bits, result, ty, "result");
            }
            Family::Binary if instruction.op == "crc32c" => expect(SLOT_RESULT, 32, result, Type::I, "result"),
            _ => expect(SLOT_RESULT, held_bits, result, ty, "result"),
        }
        if instruction.family != Family::Return {
            for (index, register) in bystanders.iter().enumerate() {
                asm.stii(*register, base, slot(SLOT_BYSTANDERS + index));
                expected.push(Expected {
                    offset: HEADER_BYTES + 8 * (SLOT_BYSTANDERS + index),
                    bits: 32,
                    value: 0x5a00 + index as u64,
                    ty: Type::I,
                    what: "bystander",
                });
            }
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
                store(&mut asm, held, operands.s, operands.fs, base, SLOT_S_AFTER);
                expected.push(Expected {
                    offset: HEADER_BYTES + 8 * SLOT_S_AFTER,
                    bits: held.bits(self.long),
                    value: left,
                    ty: source,
                    what: "first operand afterwards",
                });
            }
            let reads_second = matches!(
                instruction.family,
                Family::Binary | Family::Shift | Family::Branch | Family::Select | Family::Checked
            );
            if reads_second && !instruction.immediate && !(writes && pattern[0] == pattern[2]) {
                store(&mut asm, ty, operands.t, operands.ft, base, SLOT_T_AFTER);
                expected.push(Expected {
                    offset: HEADER_BYTES + 8 * SLOT_T_AFTER,
                    bits: ty.held().bits(self.long),
                    value: right,
                    ty,
                    what: "second operand afterwards",
                });
            }
            asm.retv();
        }
        let mut memory = [0_u8; TEST_BYTES];
        let data_bits = if memory_access { bits } else { held.bits(self.long) };
        let is_load = memory_access && !instruction.family.stores();
        let source_slot = if is_load { SLOT_DATA } else { SLOT_S };
        let source_bits = if instruction.family.stores() { held.bits(self.long) } else { data_bits };
        if source_bits > 0 {
            let misaligned = if source_slot == SLOT_DATA { misaligned } else { 0 };
            self.put(&mut memory, HEADER_BYTES + 8 * source_slot + misaligned, source_bits, left);
        }
        if bits > 0 && source_slot != SLOT_DATA {
            self.put(&mut memory, HEADER_BYTES + 8 * SLOT_T, ty.held().bits(self.long), right);
        }
        if instruction.family == Family::Select {
            self.put(&mut memory, HEADER_BYTES + 8 * SLOT_DATA, bits, previous);
        }
        let name = format!(
            "{} {}: d={:?} s={:?} t={:?} left={left:#x} right={right:#x} immediate={:#x}",
            M::NAME,
            instruction.name,
            operands.d,
            operands.s,
            operands.t,
            operands.immediate
        );
        let code = asm.end().unwrap_or_else(|error| panic!("{name}: {error}"));
        self.finish(name, &region, code, returns, memory, expected);
    }

    /// A compare-and-exchange that succeeds or fails.
    fn add_exchange<M: Machine>(&mut self, index: usize, instruction: &'static Instruction)
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        let (ty, bits) = (instruction.ty, instruction.ty.bits(self.long));
        let (there, new) = (self.value(ty), self.value(ty));
        let expected = if self.random().is_multiple_of(2) { there } else { self.value(ty) };
        let pool = M::INT.temp;
        let first = self.random() as usize;
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
        self.pick(&OFFSETS)
    }
}
