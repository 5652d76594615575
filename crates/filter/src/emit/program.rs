//! The code of a program that could not be lifted: instruction by instruction. A load checks the packet's length only
//! where a data-flow analysis does not show that it suffices on every path.

use super::{Emitter, Reg};
use crate::bpf::{Arithmetic, Condition, MAX_BACKWARD_JUMPS, Operand, Operation, Program, Size};
use quaject_vcode::{Core, Error, Extension, Label, Local, Type};

/// Where a program keeps its state.
struct State {
    a: Reg,
    x: Reg,
    t: Reg,
    memory: Local,
    /// The remaining number of backward jumps, if the program has any.
    fuel: Option<Local>,
    reject: Label,
    accept: Label,
    labels: Vec<Label>,
}

/// Writes a program: control continues behind it if it accepts, else at `miss`.
pub(super) fn write(emitter: &mut Emitter<'_>, program: &Program, miss: Label) -> Result<(), Error> {
    let operations = program.operations();
    let (a, x, t) = (emitter.temporary()?, emitter.temporary()?, emitter.temporary()?);
    let memory = emitter.asm.local_bytes(4 * crate::bpf::MEMORY_WORDS as u32, 8);
    let fuel = (!program.is_acyclic()).then(|| emitter.asm.local(Type::U));
    let accept = emitter.asm.label();
    let labels = operations.iter().map(|_| emitter.asm.label()).collect();
    let state = State { a, x, t, memory, fuel, reject: miss, accept, labels };
    let asm = &mut emitter.asm;
    asm.setu(a, 0);
    asm.setu(x, 0);
    let uses = |wanted: u32| {
        operations.iter().any(|operation| {
            matches!(operation, Operation::LoadMemory(word) | Operation::IndexMemory(word) if *word == wanted)
        })
    };
    for word in (0..crate::bpf::MEMORY_WORDS as u32).filter(|word| uses(*word)) {
        asm.stu_local(a, memory.plus(4 * word as i32));
    }
    if let Some(fuel) = fuel {
        asm.setu(t, MAX_BACKWARD_JUMPS);
        asm.stu_local(t, fuel);
    }
    let known = known_lengths(operations);
    for (at, operation) in operations.iter().enumerate() {
        emitter.asm.bind(state.labels[at]);
        state.operation(emitter, at, *operation, known[at]);
    }
    emitter.asm.bind(accept);
    for register in [a, x, t] {
        emitter.asm.putreg(register);
    }
    Ok(())
}

/// For each instruction, the minimum length of the packet when it begins. In a program with backward jumps: zero.
fn known_lengths(operations: &[Operation]) -> Vec<u64> {
    let backward = operations.iter().any(|operation| matches!(operation, Operation::Jump(by) if *by < 0));
    let mut known = vec![u64::MAX; operations.len() + 1];
    known[0] = 0;
    for (at, operation) in operations.iter().enumerate() {
        let mut own = if backward || known[at] == u64::MAX { 0 } else { known[at] };
        known[at] = own;
        let mut lower = |target: usize, own: u64| known[target] = known[target].min(own);
        match operation {
            Operation::LoadAbsolute(size, k) => own = own.max(u64::from(*k) + u64::from(size.bytes())),
            Operation::IndexHeader(k) => own = own.max(u64::from(*k) + 1),
            Operation::Jump(by) => {
                if *by >= 0 {
                    lower(at + 1 + *by as usize, own);
                }
                continue;
            }
            Operation::Branch(_, _, jt, jf) => {
                lower(at + 1 + usize::from(*jt), own);
                lower(at + 1 + usize::from(*jf), own);
                continue;
            }
            Operation::Return(_) | Operation::ReturnAccumulator => continue,
            Operation::LoadConstant(_)
            | Operation::LoadIndirect(..)
            | Operation::LoadLength
            | Operation::LoadMemory(_)
            | Operation::IndexConstant(_)
            | Operation::IndexLength
            | Operation::IndexMemory(_)
            | Operation::Store(_)
            | Operation::StoreIndex(_)
            | Operation::Arithmetic(..)
            | Operation::Negate
            | Operation::Tax
            | Operation::Txa => {}
        }
        lower(at + 1, own);
    }
    known
}

impl State {
    fn word(&self, k: u32) -> Local {
        self.memory.plus(4 * k as i32)
    }

    fn operation(&self, emitter: &mut Emitter<'_>, at: usize, operation: Operation, known: u64) {
        let (a, x, t) = (self.a, self.x, self.t);
        let (data, length, wire) = (emitter.data, emitter.length, emitter.wire);
        let asm = &mut emitter.asm;
        match operation {
            Operation::LoadConstant(k) => asm.setu(a, k),
            Operation::IndexConstant(k) => asm.setu(x, k),
            Operation::LoadAbsolute(size, k) => self.load(emitter, a, size, k, known),
            Operation::IndexHeader(k) => {
                self.load(emitter, x, Size::Byte, k, known);
                emitter.asm.andui(x, x, 15);
                emitter.asm.lshui(x, x, 2);
            }
            Operation::LoadIndirect(size, k) => {
                asm.adduli(t, x, u64::from(k) + u64::from(size.bytes()));
                asm.bgtul(t, length, self.reject);
                asm.addul(t, t, data);
                load(asm, a, t, size, -(size.bytes() as i32));
            }
            Operation::LoadLength => asm.movu(a, wire.expect("a stage with a program asks for the length")),
            Operation::IndexLength => asm.movu(x, wire.expect("a stage with a program asks for the length")),
            Operation::LoadMemory(k) => asm.ldu_local(a, self.word(k)),
            Operation::IndexMemory(k) => asm.ldu_local(x, self.word(k)),
            Operation::Store(k) => asm.stu_local(a, self.word(k)),
            Operation::StoreIndex(k) => asm.stu_local(x, self.word(k)),
            Operation::Arithmetic(arithmetic, operand) => self.arithmetic(emitter, arithmetic, operand),
            Operation::Negate => asm.negu(a, a),
            Operation::Jump(by) => {
                if let (Some(fuel), true) = (self.fuel, by < 0) {
                    asm.ldu_local(t, fuel);
                    asm.bequi(t, 0, self.reject);
                    asm.subui(t, t, 1);
                    asm.stu_local(t, fuel);
                }
                asm.j(self.labels[(at + 1).wrapping_add_signed(by as isize)]);
            }
            Operation::Branch(condition, operand, jt, jf) => {
                let (yes, no) = (at + 1 + usize::from(jt), at + 1 + usize::from(jf));
                self.branch(emitter, condition, operand, yes, no, at + 1);
            }
            Operation::Return(0) => asm.j(self.reject),
            Operation::Return(_) => asm.j(self.accept),
            Operation::ReturnAccumulator => {
                asm.bequi(a, 0, self.reject);
                asm.j(self.accept);
            }
            Operation::Tax => asm.movu(x, a),
            Operation::Txa => asm.movu(a, x),
        }
    }

    /// Loads from a constant offset.
    fn load(&self, emitter: &mut Emitter<'_>, d: Reg, size: Size, k: u32, known: u64) {
        let end = u64::from(k) + u64::from(size.bytes());
        let (data, length) = (emitter.data, emitter.length);
        let asm = &mut emitter.asm;
        if known < end {
            asm.bltuli(length, end, self.reject);
        }
        match i32::try_from(k) {
            Ok(offset) => load(asm, d, data, size, offset),
            Err(_) => {
                asm.adduli(self.t, data, u64::from(k));
                load(asm, d, self.t, size, 0);
            }
        }
    }

    fn arithmetic(&self, emitter: &mut Emitter<'_>, arithmetic: Arithmetic, operand: Operand) {
        let (a, x, t) = (self.a, self.x, self.t);
        let asm = &mut emitter.asm;
        match (arithmetic, operand) {
            (Arithmetic::Add, Operand::Constant(k)) => asm.addui(a, a, k),
            (Arithmetic::Sub, Operand::Constant(k)) => asm.subui(a, a, k),
            (Arithmetic::Mul, Operand::Constant(k)) => asm.mului(a, a, k),
            (Arithmetic::Div, Operand::Constant(k)) => match k.is_power_of_two() {
                true => asm.rshui(a, a, k.trailing_zeros()),
                false => {
                    asm.setu(t, k);
                    asm.divu(a, a, t);
                }
            },
            (Arithmetic::Mod, Operand::Constant(k)) => match k.is_power_of_two() {
                true => asm.andui(a, a, k - 1),
                false => {
                    asm.setu(t, k);
                    asm.modu(a, a, t);
                }
            },
            (Arithmetic::And, Operand::Constant(k)) => asm.andui(a, a, k),
            (Arithmetic::Or, Operand::Constant(k)) => asm.orui(a, a, k),
            (Arithmetic::Xor, Operand::Constant(k)) => asm.xorui(a, a, k),
            (Arithmetic::Lsh, Operand::Constant(k)) => asm.lshui(a, a, k),
            (Arithmetic::Rsh, Operand::Constant(k)) => asm.rshui(a, a, k),
            (Arithmetic::Add, Operand::Index) => asm.addu(a, a, x),
            (Arithmetic::Sub, Operand::Index) => asm.subu(a, a, x),
            (Arithmetic::Mul, Operand::Index) => asm.mulu(a, a, x),
            (Arithmetic::Div, Operand::Index) => {
                asm.bequi(x, 0, self.reject);
                asm.divu(a, a, x);
            }
            (Arithmetic::Mod, Operand::Index) => {
                asm.bequi(x, 0, self.reject);
                asm.modu(a, a, x);
            }
            (Arithmetic::And, Operand::Index) => asm.andu(a, a, x),
            (Arithmetic::Or, Operand::Index) => asm.oru(a, a, x),
            (Arithmetic::Xor, Operand::Index) => asm.xoru(a, a, x),
            (Arithmetic::Lsh | Arithmetic::Rsh, Operand::Index) => {
                let (wide, done) = (asm.label(), asm.label());
                asm.bgtui(x, 31, wide);
                match arithmetic {
                    Arithmetic::Lsh => asm.lshu(a, a, x),
                    _ => asm.rshu(a, a, x),
                }
                asm.j(done);
                asm.bind(wide);
                asm.setu(a, 0);
                asm.bind(done);
            }
        }
    }

    /// Branches to one of two instructions; falls through to the following one.
    fn branch(
        &self,
        emitter: &mut Emitter<'_>,
        condition: Condition,
        operand: Operand,
        yes: usize,
        no: usize,
        next: usize,
    ) {
        let (a, x, t) = (self.a, self.x, self.t);
        let asm = &mut emitter.asm;
        let (to, negated) = if yes == next { (self.labels[no], true) } else { (self.labels[yes], false) };
        match (condition, operand, negated) {
            (Condition::Equal, Operand::Constant(k), false) => asm.bequi(a, k, to),
            (Condition::Equal, Operand::Constant(k), true) => asm.bneui(a, k, to),
            (Condition::Greater, Operand::Constant(k), false) => asm.bgtui(a, k, to),
            (Condition::Greater, Operand::Constant(k), true) => asm.bleui(a, k, to),
            (Condition::GreaterEqual, Operand::Constant(k), false) => asm.bgeui(a, k, to),
            (Condition::GreaterEqual, Operand::Constant(k), true) => asm.bltui(a, k, to),
            (Condition::Equal, Operand::Index, false) => asm.bequ(a, x, to),
            (Condition::Equal, Operand::Index, true) => asm.bneu(a, x, to),
            (Condition::Greater, Operand::Index, false) => asm.bgtu(a, x, to),
            (Condition::Greater, Operand::Index, true) => asm.bleu(a, x, to),
            (Condition::GreaterEqual, Operand::Index, false) => asm.bgeu(a, x, to),
            (Condition::GreaterEqual, Operand::Index, true) => asm.bltu(a, x, to),
            (Condition::Set, operand, negated) => {
                match operand {
                    Operand::Constant(k) => asm.andui(t, a, k),
                    Operand::Index => asm.andu(t, a, x),
                }
                if negated { asm.bequi(t, 0, to) } else { asm.bneui(t, 0, to) }
            }
        }
        if !negated && no != next {
            asm.j(self.labels[no]);
        }
    }
}

/// Loads a number, most significant byte first.
fn load(asm: &mut quaject_vcode::Asm<'_, quaject_vcode::Native>, d: Reg, base: Reg, size: Size, offset: i32) {
    match size {
        Size::Byte => asm.lduci(d, base, offset),
        Size::Half => {
            asm.uldusi(d, base, offset);
            asm.bswapus(d, d);
        }
        Size::Word => {
            asm.uldui(d, base, offset);
            asm.bswapu(d, d);
        }
    }
}
