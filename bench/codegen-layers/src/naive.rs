//! Code as a compiler without an optimiser writes it: assignments to variables in memory, every operand in a register
//! of its own, which is given back after use.

use std::hint::black_box;

use quaject_vcode::layers::peephole::Peephole;
use quaject_vcode::layers::temporary_allocator::TemporaryAllocator;
use quaject_vcode::{Asm, Core, Extension, Kind, Machine, Param, Region, Workspace, decode};

/// The most operands of an expression, so that registers suffice on every machine.
const MAX_OPERANDS: u32 = 5;

/// An expression in prefix form.
#[derive(Debug, Clone, Copy)]
enum Token {
    Add,
    Sub,
    And,
    Shift(u32),
    Variable(i32),
    Constant(i64),
    /// Another name of a parameter.
    Parameter,
    /// The element of an array with this constant index.
    Element(i64),
    /// To the variable, the expression that follows.
    Assign(i32),
}

fn random(state: &mut u64, below: u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    (*state >> 11) % below
}

fn expression(tokens: &mut Vec<Token>, state: &mut u64, operands: u32) {
    if operands > 1 {
        let left = 1 + random(state, u64::from(operands - 1)) as u32;
        tokens.push(match random(state, 3) {
            0 => Token::Sub,
            1 => Token::And,
            _ => Token::Add,
        });
        expression(tokens, state, left);
        return expression(tokens, state, operands - left);
    }
    tokens.push(match random(state, 8) {
        0..=2 => Token::Variable(8 * random(state, 8) as i32),
        3 | 4 => Token::Constant([0, 1, 4, 8, 255, 1000, 70_000][random(state, 7) as usize]),
        5 => Token::Parameter,
        6 => Token::Element(8 * random(state, 8) as i64),
        _ => Token::Shift(random(state, 8) as u32),
    });
    if let Some(Token::Shift(_)) = tokens.last() {
        tokens.push(Token::Variable(8 * random(state, 8) as i32));
    }
}

/// A program of so many assignments.
pub struct Program {
    tokens: Vec<Token>,
    /// Portable instructions that its compiler writes, the return too.
    pub instructions: u64,
}

impl Program {
    pub fn new(assignments: u64) -> Program {
        let (mut tokens, mut state) = (Vec::new(), 0x1234_5678_9abc_def1);
        for _ in 0..assignments {
            tokens.push(Token::Assign(8 * random(&mut state, 8) as i32));
            let operands = 1 + random(&mut state, u64::from(MAX_OPERANDS)) as u32;
            expression(&mut tokens, &mut state, operands);
        }
        let written = |token: &Token| match token {
            Token::Add | Token::Sub | Token::And | Token::Variable(_) | Token::Constant(_) | Token::Parameter => 1,
            Token::Element(_) => 2,
            Token::Shift(_) | Token::Assign(_) => 1,
        };
        let instructions = 1 + tokens.iter().map(written).sum::<u64>();
        Program { tokens, instructions }
    }

    fn write<A: TemporaryAllocator>(&self, asm: &mut A, base: A::Reg, parameter: A::Reg) {
        let mut rest = &self.tokens[..];
        while let [Token::Assign(variable), tail @ ..] = rest {
            rest = tail;
            let value = operand(asm, &mut rest, base, parameter);
            asm.stli(value, base, *variable);
            asm.put_temporary(value);
        }
        asm.retv();
    }
}

fn operand<A: TemporaryAllocator>(asm: &mut A, rest: &mut &[Token], base: A::Reg, parameter: A::Reg) -> A::Reg {
    let [token, tail @ ..] = *rest else { unreachable!("expressions are whole") };
    *rest = tail;
    match token {
        Token::Add | Token::Sub | Token::And => {
            let left = operand(asm, rest, base, parameter);
            let right = operand(asm, rest, base, parameter);
            match token {
                Token::Add => asm.addl(left, left, right),
                Token::Sub => asm.subl(left, left, right),
                _ => asm.andl(left, left, right),
            }
            asm.put_temporary(right);
            left
        }
        Token::Shift(count) => {
            let value = operand(asm, rest, base, parameter);
            asm.lshli(value, value, i64::from(*count));
            value
        }
        leaf => {
            let value = asm.get_temporary().expect("expressions are small");
            match leaf {
                Token::Variable(offset) => asm.ldli(value, base, *offset),
                Token::Constant(constant) => asm.setl(value, *constant),
                Token::Element(index) => {
                    asm.setl(value, *index);
                    asm.ldl(value, base, value);
                }
                _ => asm.movl(value, parameter),
            }
            value
        }
    }
}

fn begin<'a, M: Machine>(bytes: &'a mut [u8], workspace: &'a mut Workspace<M>) -> (Asm<'a, M>, [M::Reg; 2])
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut params = [Param::NONE; 2];
    let asm = Asm::begin(Region::from(bytes), workspace, "%p%l", &mut params, Kind::Leaf).expect("there is room");
    (asm, params.map(Param::reg))
}

/// Writes the program with the core alone.
#[inline(never)]
pub fn plain<M: Machine>(program: &Program, bytes: &mut [u8]) -> (usize, usize)
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut workspace = Workspace::<M>::new();
    let (mut asm, [base, parameter]) = begin(bytes, &mut workspace);
    black_box(program).write(&mut asm, base, parameter);
    let code = asm.end().expect("the program is valid");
    (code.offset, code.length)
}

/// Writes the program through the peephole window.
#[inline(never)]
pub fn windowed<M: Machine>(program: &Program, bytes: &mut [u8]) -> (usize, usize)
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut workspace = Workspace::<M>::new();
    let (asm, [base, parameter]) = begin(bytes, &mut workspace);
    let mut asm = Peephole::new(asm);
    black_box(program).write(&mut asm, base, parameter);
    let code = asm.end().expect("the program is valid");
    (code.offset, code.length)
}

/// Instructions and bytes of a machine, without a window and with one.
fn sizes<M: Machine>(program: &Program, table: &'static decode::Table) -> [(usize, usize); 2]
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut bytes = vec![0_u8; 1 << 20];
    [plain::<M>, windowed::<M>].map(|write| {
        let (offset, length) = write(program, &mut bytes);
        let mut code = &bytes[offset..offset + length];
        let mut count = 0;
        while !code.is_empty() {
            let decoded = table.decode(code).expect("the decoder knows what the emitters write");
            code = &code[decoded.length..];
            count += 1;
        }
        (count, length)
    })
}

/// Prints what the window saves on every machine.
pub fn compare(program: &Program) {
    println!("\nmachine instructions and bytes of {} naive portable instructions", program.instructions);
    println!("{:<10} {:>16} {:>16} {:>8}", "machine", "without a window", "with one", "saved");
    macro_rules! machines {
        ($($module:ident $machine:ident $table:ident),*) => {
            $(
                let found = sizes::<quaject_vcode::$module::$machine>(program, &decode::$table);
                let [(count, length), (fewer, shorter)] = found;
                println!(
                    "{:<10} {:>16} {:>16} {:>7.1}%",
                    stringify!($module),
                    format!("{count} {length}"),
                    format!("{fewer} {shorter}"),
                    100.0 - 100.0 * fewer as f64 / count as f64
                );
            )*
        };
    }
    machines!(
        x86_64 X86_64 X86_64, aarch64 Aarch64 AARCH64, riscv64 Riscv64 RISCV64, mips Mips MIPS,
        sparc64 Sparc64 SPARC64, alpha Alpha ALPHA
    );
}
