//! Random filters: programs such as libpcap makes, programs of any instructions, expressions of tests. `style`
//! determines what a filter reads, `random` the expected values: filters of one style have one shape.

use super::packets::{VALUES, value};
use super::random::Random;
use crate::bpf::{Arithmetic, Condition, MEMORY_WORDS, Operand, Operation, Program, Size};
use crate::ir::{Base, Expression, Field, Filter, Scope, Sense, Subject, Term, Test};

/// A filter, and the program it was made of.
pub(super) fn filter(style: &mut Random, random: &mut Random) -> (Filter, Option<Program>) {
    match style.below(8) {
        0 => (expression(style, random, 0).filter().unwrap_or(Filter::Any(Vec::new())), None),
        1 => wild(random),
        _ => usual(style, random),
    }
}

/// A rule as firewalls have them: prefixes of addresses, protocol, ranges of ports, each of which may be missing.
pub(super) fn rule(random: &mut Random) -> Filter {
    let ethernet = Scope::packet();
    let ip = ethernet.skip(14);
    let transport = ip.after_ipv4();
    let mut tests = Vec::new();
    if random.chance(9, 10) {
        tests.push(ethernet.equals(12, 2, 0x0800));
    }
    for offset in [12, 16] {
        let bits = *random.pick(&[0, 0, 1, 8, 16, 24, 30, 31, 32, 32]);
        if bits > 0 {
            let prefix = Expression::prefix(ip.field(offset, 4), value(random, 4), bits);
            tests.push(if random.chance(1, 10) { !prefix } else { prefix });
        }
    }
    if random.chance(2, 3) {
        tests.push(ip.equals(9, 1, *random.pick(&[6, 6, 17, 1])));
    }
    for offset in [0, 2] {
        let (one, other) = (value(random, 2), value(random, 2));
        match random.below(5) {
            0 => tests.push(transport.equals(offset, 2, one)),
            1 => tests.push(transport.within(offset, 2, one.min(other)..=one.max(other))),
            2 => tests.push(transport.within(offset, 2, 1024..=65_535)),
            3 if random.chance(1, 4) => tests.push(!transport.within(offset, 2, one.min(other)..=one.max(other))),
            _ => {}
        }
    }
    if random.chance(1, 20) {
        tests.push(Test::length(random.below(90) as u32, random.below(2000) as u32).into());
    }
    Expression::All(tests).filter().unwrap_or(Filter::Any(Vec::new()))
}

fn made_of(operations: &[Operation]) -> (Filter, Option<Program>) {
    let instructions: Vec<_> = operations.iter().map(|operation| operation.instruction()).collect();
    let program = Program::new(&instructions).expect("only valid programs are made here");
    (Filter::of_program(&program), Some(program))
}

/// Fields that filters ask about: offset, width, and whether behind an IPv4 header.
const FIELDS: [(u32, Size, bool); 14] = [
    (12, Size::Half, false),
    (14, Size::Byte, false),
    (23, Size::Byte, false),
    (20, Size::Half, false),
    (26, Size::Word, false),
    (30, Size::Word, false),
    (14, Size::Half, true),
    (16, Size::Half, true),
    (14, Size::Word, true),
    (27, Size::Byte, true),
    (20, Size::Byte, false),
    (38, Size::Word, false),
    (54, Size::Half, false),
    (16, Size::Half, false),
];

/// A chain of tests, each of which continues or rejects, as libpcap generates them.
fn usual(style: &mut Random, random: &mut Random) -> (Filter, Option<Program>) {
    let mut operations: Vec<Operation> = Vec::new();
    // Branches are written with both targets at the next instruction, and patched when the address of the rejection is
    // known.
    let mut open = Vec::new();
    let tests = 1 + style.below(6);
    for _ in 0..tests {
        let (offset, size, indirect) = *style.pick(&FIELDS);
        if style.chance(1, 12) {
            operations.push(Operation::LoadLength);
        } else if indirect {
            operations.push(Operation::IndexHeader(14));
            operations.push(Operation::LoadIndirect(size, offset));
        } else {
            operations.push(Operation::LoadAbsolute(size, offset));
        }
        let mut shifted = 0;
        match style.below(10) {
            0 => operations
                .push(Operation::Arithmetic(Arithmetic::And, Operand::Constant(0xffff_ff00 >> style.below(9)))),
            1 => operations.push(Operation::Arithmetic(Arithmetic::And, Operand::Constant(style.next() as u32))),
            2 => {
                shifted = 1 + style.below(7) as u32;
                operations.push(Operation::Arithmetic(Arithmetic::Rsh, Operand::Constant(shifted)));
            }
            3 => operations.push(Operation::Arithmetic(Arithmetic::Add, Operand::Constant(style.below(9) as u32))),
            4 => operations.push(Operation::Arithmetic(Arithmetic::Lsh, Operand::Constant(style.below(5) as u32))),
            _ => {}
        }
        let condition = *style.pick(&[
            Condition::Equal,
            Condition::Equal,
            Condition::Equal,
            Condition::Set,
            Condition::Greater,
            Condition::GreaterEqual,
        ]);
        let wanted = match condition {
            Condition::Set => *style.pick(&[1, 2, 0x1fff, 0xff00, 0x10, u32::MAX]),
            _ => value(random, size.bytes()) >> shifted,
        };
        open.push((operations.len(), style.chance(3, 4)));
        operations.push(Operation::Branch(condition, Operand::Constant(wanted), 0, 0));
    }
    let accept = operations.len();
    operations.push(Operation::Return(1 + random.below(100) as u32));
    operations.push(Operation::Return(0));
    for (at, wants) in open {
        let out = (accept + 1 - (at + 1)) as u8;
        // Some tests accept at once.
        let other = if style.chance(1, 6) { (accept - (at + 1)) as u8 } else { 0 };
        if let Operation::Branch(_, _, jt, jf) = &mut operations[at] {
            (*jt, *jf) = if wants { (other, out) } else { (out, other) };
        }
    }
    made_of(&operations)
}

/// A program of any instructions.
fn wild(random: &mut Random) -> (Filter, Option<Program>) {
    let length = 1 + random.below(24);
    let mut operations: Vec<Operation> = (0..length).map(|at| any(random, length - at)).collect();
    operations.push(if random.chance(1, 3) { Operation::ReturnAccumulator } else { Operation::Return(1) });
    // What scratch memory holds before it is written to is undefined in old versions of `bpf_filter`; here it is zero.
    let read = |operation: &Operation| match operation {
        Operation::LoadMemory(word) | Operation::IndexMemory(word) => Some(*word),
        _ => None,
    };
    let cleared: Vec<Operation> = operations.iter().filter_map(read).map(Operation::Store).collect();
    made_of(&[cleared, operations].concat())
}

/// Any instruction; `left` follow it.
fn any(random: &mut Random, left: usize) -> Operation {
    let size = *random.pick(&[Size::Byte, Size::Half, Size::Word]);
    let constant = match random.below(5) {
        0 => random.next() as u32,
        1 => u32::MAX - random.below(20) as u32,
        _ => random.below(64) as u32,
    };
    let operand = if random.chance(1, 3) { Operand::Index } else { Operand::Constant(constant) };
    let near = random.below(70) as u32;
    let word = random.below(MEMORY_WORDS) as u32;
    let skip = |random: &mut Random| random.below(left.min(8)) as u8;
    match random.below(20) {
        0 => Operation::LoadConstant(constant),
        1 | 2 => Operation::LoadAbsolute(size, near),
        // Offsets just below are those of the kernel's own data, which are refused.
        3 if !(1 << 31..=u32::MAX - 20).contains(&constant) => Operation::LoadAbsolute(size, constant),
        3 => Operation::LoadAbsolute(size, constant >> 1),
        4 | 5 => Operation::LoadIndirect(size, near),
        6 => Operation::LoadLength,
        7 => Operation::LoadMemory(word),
        8 => Operation::IndexConstant(constant),
        9 => *random.pick(&[Operation::IndexLength, Operation::IndexMemory(word), Operation::Negate]),
        10 => Operation::IndexHeader(near),
        11 => Operation::Store(word),
        12 => Operation::StoreIndex(word),
        13 => Operation::Tax,
        14 => Operation::Txa,
        15 => Operation::Jump(skip(random).into()),
        16 | 17 => {
            let condition =
                *random.pick(&[Condition::Equal, Condition::Greater, Condition::GreaterEqual, Condition::Set]);
            let operand = if random.chance(1, 2) { Operand::Constant(*random.pick(&VALUES)) } else { operand };
            Operation::Branch(condition, operand, skip(random), skip(random))
        }
        _ => {
            let all = [
                Arithmetic::Add,
                Arithmetic::Sub,
                Arithmetic::Mul,
                Arithmetic::Div,
                Arithmetic::Mod,
                Arithmetic::And,
                Arithmetic::Or,
                Arithmetic::Xor,
                Arithmetic::Lsh,
                Arithmetic::Rsh,
            ];
            let arithmetic = *random.pick(&all);
            let operand = match (arithmetic, operand) {
                (Arithmetic::Lsh | Arithmetic::Rsh, Operand::Constant(k)) => Operand::Constant(k % 32),
                (Arithmetic::Div | Arithmetic::Mod, Operand::Constant(k)) => Operand::Constant(k.max(1)),
                (_, operand) => operand,
            };
            Operation::Arithmetic(arithmetic, operand)
        }
    }
}

/// An expression of tests.
fn expression(style: &mut Random, random: &mut Random, depth: usize) -> Expression {
    if depth < 3 && style.chance(2, 3) {
        let parts = (0..1 + style.below(3)).map(|_| expression(style, random, depth + 1)).collect();
        return match style.below(5) {
            0 => !Expression::All(parts),
            1 => Expression::Any(parts),
            _ => Expression::All(parts),
        };
    }
    Expression::Test(test(style, random))
}

fn test(style: &mut Random, random: &mut Random) -> Test {
    let field = field(style, 0);
    let full = field.full();
    let own = value(random, u32::from(field.width));
    let sense = if style.chance(1, 4) { Sense::Outside } else { Sense::Inside };
    let mask = if style.chance(1, 3) { style.next() as u32 } else { u32::MAX };
    match style.below(6) {
        0 => {
            let high = own.saturating_add(random.below(1000) as u32) & full;
            Test { subject: Subject::Field(field), mask, low: own.min(high), high: own.max(high), sense }
        }
        1 if style.chance(1, 2) => {
            Test { subject: Subject::Length, mask, low: random.below(60) as u32, high: 60, sense }
        }
        2 => Test::there(field),
        _ => Test { subject: Subject::Field(field), mask, low: own & mask, high: own & mask, sense },
    }
}

fn field(style: &mut Random, depth: usize) -> Field {
    let (offset, size, indirect) = *style.pick(&FIELDS);
    let width = if style.chance(1, 12) { 3 } else { size.bytes() as u8 };
    if !indirect || depth > 2 {
        return Field::new(offset, width);
    }
    let mut terms = vec![Term { field: Field::new(14, 1), mask: 0x0f, shift: 2 }];
    while style.chance(1, 3) {
        let field = field(style, depth + 1);
        let shift = style.below(7) as i8 - 3;
        terms.push(Term { field, mask: style.next() as u32 & 0x1f, shift });
    }
    Field { base: Base::sum(terms), offset, width }
}
