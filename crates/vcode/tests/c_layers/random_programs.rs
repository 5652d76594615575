//! Random programs for [`same_bytes`](super): as text for the C program, and written through the Rust layers.

use std::fmt::Write as _;

use quaject_test_support::Random;
use quaject_vcode::layers::peephole::Peephole;
use quaject_vcode::layers::strength::{self, Integer};
use quaject_vcode::layers::table::{TableDefault, jump_table};
use quaject_vcode::layers::temporary_allocator::TemporaryAllocator;
use quaject_vcode::layers::virtual_registers::{Virtual, VirtualArgument, VirtualTarget};
use quaject_vcode::{
    Argument, Asm, Class, Code, Core, Error, Extension, Family, Features, Instruction, Kind, Label, Local, Machine,
    OperandKind, Param, Region, Target, Type, Value, Workspace,
};

/// The length of the regions in both languages.
const BYTES: usize = 1 << 16;

/// The layer that a program is written through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    Virtual,
    Window,
}

/// An operand; objects by their number, in the order in which they are made.
#[derive(Debug, Clone, Copy)]
enum Operand {
    Register(usize),
    Constant(i64),
    Variable(usize, i32),
    Label(usize),
    Address(u64),
    Itself,
}

/// A step of a program.
#[derive(Debug, Clone)]
enum Step {
    Int(Class),
    Float(Class),
    GiveBack(usize),
    Label,
    Bind(usize),
    Procedure(usize, usize),
    Variable(u32, u32),
    Address(usize, usize),
    Emit(u16, Vec<Operand>),
    Call(&'static str, Operand, Vec<Operand>),
    TailCall(&'static str, Operand, Vec<Operand>),
    Result(usize),
    Strength(u32, Integer, usize, usize, i64),
    Table(usize),
}

/// A function with parameters `%l%d`, which are registers 0 and 1.
#[derive(Debug)]
pub(crate) struct Program {
    features: Features,
    steps: Vec<Step>,
}

/// The label that is a procedure; those before it are bound anywhere.
const PROCEDURE: usize = 3;

const SIGNATURES: [&str; 6] = ["", "%l", "%l%d%i", "%uc%s%f%p", "%d%d%l%l%l%l%l%l%l%l%d", "%p...%i%d"];

impl Program {
    /// A program with every instruction whose number is `part` modulo `parts`, in random order, among other steps.
    pub(crate) fn random<M: Machine>(random: &mut Random, layer: Layer, part: usize, parts: usize) -> Program {
        let mut program = Program { features: M::FEATURES, steps: Vec::new() };
        if random.index(2) == 0 {
            program.features = Features::NONE;
        }
        let count = if layer == Layer::Virtual { 24 } else { 3 };
        let (mut ints, mut floats) = (vec![0], vec![1]);
        for _ in 0..count {
            let class = random.pick(&[Class::Temporary, Class::Persistent]);
            ints.push(1 + ints.len() + floats.len() - 1);
            program.steps.push(Step::Int(class));
            floats.push(1 + ints.len() + floats.len() - 1);
            program.steps.push(Step::Float(class));
        }
        program.steps.extend([Step::Label, Step::Label, Step::Label, Step::Label]);
        program.steps.extend([Step::Variable(64, 16), Step::Variable(40, 8)]);
        let mut numbers: Vec<&Instruction> = Instruction::all()
            .iter()
            .filter(|own| usize::from(own.number) % parts == part && own.op != "jtab")
            .collect();
        let mut unbound = vec![0, 1, 2];
        while !numbers.is_empty() {
            let instruction = numbers.swap_remove(random.index(numbers.len()));
            let operands = instruction
                .operands
                .iter()
                .map(|kind| operand::<M>(random, instruction, *kind, &ints, &floats))
                .collect();
            program.steps.push(Step::Emit(instruction.number, operands));
            match random.index(12) {
                0 => {
                    let signature = random.pick(&SIGNATURES);
                    let arguments = arguments(random, signature, &ints, &floats);
                    let target = random.pick(&[
                        Operand::Address(0x1234_5678),
                        Operand::Register(ints[random.clone().index(ints.len())]),
                        Operand::Itself,
                    ]);
                    program.steps.push(Step::Call(signature, target, arguments));
                    program.steps.push(Step::Result(random.pick(&ints)));
                    program.steps.push(Step::Result(random.pick(&floats)));
                }
                1 => {
                    let constant = i64::from(random.next() as i32 >> random.index(32));
                    let ty = random.pick(&[Integer::I, Integer::U, Integer::L, Integer::Ul]);
                    let constant = match ty {
                        Integer::I | Integer::L => constant,
                        Integer::U | Integer::Ul => i64::from(constant as u32),
                    };
                    let (d, s) = (random.pick(&ints), random.pick(&ints));
                    program.steps.push(Step::Strength(random.index(3) as u32, ty, d, s, constant));
                }
                2 => program.steps.push(Step::Address(random.pick(&ints), random.index(2))),
                3 if !unbound.is_empty() => {
                    program.steps.push(Step::Bind(unbound.swap_remove(random.index(unbound.len()))));
                }
                4 if ints.len() > 3 => {
                    program.steps.push(Step::GiveBack(ints.swap_remove(random.index(ints.len()))));
                }
                5 if floats.len() > 3 => {
                    program.steps.push(Step::GiveBack(floats.swap_remove(random.index(floats.len()))));
                }
                6 => program.steps.push(Step::Table(random.pick(&ints))),
                _ => {}
            }
        }
        program.steps.extend(unbound.into_iter().map(Step::Bind));
        let list = arguments(random, "%l%d", &ints, &floats);
        program.steps.push(Step::TailCall("%l%d", Operand::Address(0x1234_5678), list));
        program.steps.push(Step::Procedure(PROCEDURE, ints[0]));
        let back = Instruction::named("jr").expect("every machine has it").number;
        program.steps.push(Step::Emit(back, vec![Operand::Register(ints[0])]));
        program
    }

    /// The script for the C program. The number of the machine is that of `enum qjl_machine`.
    pub(crate) fn script(&self, machine: u32, layer: Layer) -> String {
        let layer = match layer {
            Layer::Virtual => 0,
            Layer::Window => 1,
        };
        let mut text = format!("B {machine} {layer} 0 {BYTES} {} 2 %l%d\n", self.features.bits());
        for step in &self.steps {
            let _ = match step {
                Step::Int(class) => writeln!(text, "I {}", class_number(*class)),
                Step::Float(class) => writeln!(text, "F {}", class_number(*class)),
                Step::GiveBack(register) => writeln!(text, "P {register}"),
                Step::Label => writeln!(text, "L"),
                Step::Bind(label) => writeln!(text, "b {label}"),
                Step::Procedure(label, register) => writeln!(text, "p {label} {register}"),
                Step::Variable(bytes, align) => writeln!(text, "V {bytes} {align}"),
                Step::Address(register, variable) => writeln!(text, "A {register} {variable}"),
                Step::Emit(number, operands) => writeln!(text, "e {number} {}", list(operands)),
                Step::Call(types, target, arguments) => {
                    writeln!(text, "c {} {} {}", spelt(types), operand_text(*target), list(arguments))
                }
                Step::TailCall(types, target, arguments) => {
                    writeln!(text, "t {} {} {}", spelt(types), operand_text(*target), list(arguments))
                }
                Step::Result(register) => writeln!(text, "r {register}"),
                Step::Strength(operation, ty, d, s, constant) => {
                    let ty = match ty {
                        Integer::I => 4,
                        Integer::U => 5,
                        Integer::L => 6,
                        Integer::Ul => 7,
                    };
                    writeln!(text, "s {operation} {ty} {d} {s} {constant}")
                }
                Step::Table(register) => writeln!(text, "j {register}"),
            };
        }
        text + "E\n"
    }

    /// The bytes that the Rust layers write.
    pub(crate) fn write<M: Machine>(&self, layer: Layer) -> Vec<u8>
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        let mut bytes = vec![0_u8; BYTES];
        let mut workspace = Workspace::<M, 128, 512, 32>::with_room();
        let (mut params, mut slots) = ([Param::NONE; 2], [0; 1024]);
        let region = Region::from(&mut bytes[..]).executed_at(0);
        let mut asm = Asm::<M>::begin(region, &mut workspace, "%l%d", &mut params, Kind::Calls).expect("there is room");
        if self.features != Features::NONE {
            asm.use_features(self.features);
        }
        let code = match layer {
            Layer::Virtual => {
                let asm = Virtual::new(asm, &mut slots);
                let (x, y) = (asm.param(params[0]), asm.float_param(params[1]));
                self.write_through(asm, x, y)
            }
            Layer::Window => self.write_through(Peephole::new(asm), params[0].reg(), params[1].float()),
        };
        let code = code.unwrap_or_else(|error| panic!("{}, {layer:?}: {error}\n{self:?}", M::NAME));
        bytes[code.offset..code.offset + code.length].to_vec()
    }

    fn write_through<A: Subject>(&self, mut asm: A, x: A::Reg, y: A::Float) -> Result<Code, Error> {
        let mut registers = vec![Any::Int(x), Any::Float(y)];
        let (mut labels, mut variables): (Vec<Label>, Vec<Local>) = (Vec::new(), Vec::new());
        for step in &self.steps {
            let passed = |list: &[Operand]| -> Vec<Passed<A::Reg, A::Float>> {
                let convert = |operand: &Operand| match operand {
                    Operand::Register(register) => Passed::Register(registers[*register]),
                    Operand::Constant(value) => Passed::Constant(*value),
                    Operand::Variable(..) | Operand::Label(_) | Operand::Address(_) | Operand::Itself => {
                        unreachable!("the generator passes registers and constants")
                    }
                };
                list.iter().map(convert).collect()
            };
            let called = |target: Operand| match target {
                Operand::Register(register) => Called::Register(registers[register].int()),
                Operand::Address(address) => Called::Address(address as usize),
                Operand::Itself => Called::Itself,
                Operand::Constant(_) | Operand::Variable(..) | Operand::Label(_) => {
                    unreachable!("the generator calls addresses and registers")
                }
            };
            match step {
                Step::Int(class) => registers.push(Any::Int(asm.make_int(*class)?)),
                Step::Float(class) => registers.push(Any::Float(asm.make_float(*class)?)),
                Step::GiveBack(register) => asm.give_back(registers[*register]),
                Step::Label => labels.push(asm.make_label()),
                Step::Bind(label) => asm.bind_label(labels[*label]),
                Step::Procedure(label, register) => asm.begin_procedure(labels[*label], registers[*register].int()),
                Step::Variable(bytes, align) => variables.push(asm.make_local(*bytes, *align)),
                Step::Address(register, variable) => {
                    asm.address_of(registers[*register].int(), variables[*variable]);
                }
                Step::Emit(number, operands) => {
                    let values: Vec<Value<A::Reg, A::Float>> = operands
                        .iter()
                        .map(|operand| match operand {
                            Operand::Register(register) => match registers[*register] {
                                Any::Int(register) => Value::Reg(register),
                                Any::Float(register) => Value::Float(register),
                            },
                            Operand::Constant(value) => Value::Immediate(*value),
                            Operand::Variable(variable, offset) => Value::Local(variables[*variable].plus(*offset)),
                            Operand::Label(label) => Value::Label(labels[*label]),
                            Operand::Address(_) | Operand::Itself => unreachable!("no instruction takes one"),
                        })
                        .collect();
                    let instruction = Instruction::numbered(*number).expect("it comes from the table");
                    assert!(instruction.emit(&mut asm, &values), "{}: {values:?}", instruction.name);
                }
                Step::Call(types, target, arguments) => {
                    asm.transfer(types, called(*target), &passed(arguments), false)?
                }
                Step::TailCall(types, target, arguments) => {
                    asm.transfer(types, called(*target), &passed(arguments), true)?;
                }
                Step::Result(register) => asm.move_result(registers[*register]),
                Step::Strength(operation, ty, d, s, constant) => {
                    let (d, s) = (registers[*d].int(), registers[*s].int());
                    match operation {
                        0 => strength::multiply(&mut asm, *ty, d, s, *constant),
                        1 => strength::divide(&mut asm, *ty, d, s, *constant),
                        _ => strength::modulo(&mut asm, *ty, d, s, *constant),
                    }
                }
                Step::Table(register) => {
                    jump_table(&mut asm, registers[*register].int(), &labels, TableDefault::Label(labels[0]));
                }
            }
        }
        asm.finish()
    }
}

fn class_number(class: Class) -> u32 {
    match class {
        Class::Temporary => 0,
        Class::Persistent => 1,
    }
}

/// A type string as one word.
fn spelt(types: &str) -> &str {
    if types.is_empty() { "-" } else { types }
}

fn operand_text(operand: Operand) -> String {
    match operand {
        Operand::Register(register) => format!("r {register}"),
        Operand::Constant(value) => format!("c {value}"),
        Operand::Variable(variable, offset) => format!("v {variable} {offset}"),
        Operand::Label(label) => format!("l {label}"),
        Operand::Address(address) => format!("a {address}"),
        Operand::Itself => "i".into(),
    }
}

fn list(operands: &[Operand]) -> String {
    operands.iter().fold(operands.len().to_string(), |text, operand| text + " " + &operand_text(*operand))
}

/// A random operand of an instruction.
fn operand<M: Machine>(
    random: &mut Random,
    instruction: &Instruction,
    kind: OperandKind,
    ints: &[usize],
    floats: &[usize],
) -> Operand {
    match kind {
        OperandKind::Reg(_) => Operand::Register(random.pick(ints)),
        OperandKind::Float(_) => Operand::Register(random.pick(floats)),
        OperandKind::Offset => Operand::Constant(random.pick(&[0, 8, -16, 2047, 5000])),
        OperandKind::Local => Operand::Variable(random.index(2), random.pick(&[0, 8, 32])),
        OperandKind::Label if instruction.op == "jal" => Operand::Label(PROCEDURE),
        OperandKind::Label => Operand::Label(random.index(PROCEDURE)),
        OperandKind::Immediate(_) if instruction.family == Family::Shift => Operand::Constant(random.index(32) as i64),
        OperandKind::Immediate(ty) => {
            let small = i64::from(random.next() as i32 >> random.index(32));
            Operand::Constant(match ty {
                Type::F => i64::from(random.pick(&[0.0_f32, 1.5, -2.0]).to_bits()),
                Type::D => random.pick(&[0.0_f64, 1.5, -1e300]).to_bits() as i64,
                Type::L | Type::Ul | Type::P if M::LONG_BITS == 64 && random.index(2) == 0 => random.next() as i64,
                Type::U | Type::Ul | Type::P => i64::from(small as u32),
                Type::C | Type::Uc | Type::S | Type::Us | Type::I | Type::L => small,
            })
        }
    }
}

/// Random arguments for a type string.
fn arguments(random: &mut Random, types: &str, ints: &[usize], floats: &[usize]) -> Vec<Operand> {
    let types = quaject_vcode::Signature::from(types).types().map(|ty| ty.expect("they are well-formed"));
    types
        .map(|ty| match ty {
            Type::F | Type::D => Operand::Register(random.pick(floats)),
            _ if random.index(3) == 0 => Operand::Constant(random.index(100) as i64),
            _ => Operand::Register(random.pick(ints)),
        })
        .collect()
}

/// A register of either file.
#[derive(Debug, Clone, Copy)]
enum Any<R, F> {
    Int(R),
    Float(F),
}

impl<R: Copy, F> Any<R, F> {
    fn int(&self) -> R {
        match self {
            Any::Int(register) => *register,
            Any::Float(_) => unreachable!("the generator knows the files"),
        }
    }
}

/// An argument of a call.
#[derive(Debug, Clone, Copy)]
enum Passed<R, F> {
    Register(Any<R, F>),
    Constant(i64),
}

/// A target of a call.
#[derive(Debug, Clone, Copy)]
enum Called<R> {
    Address(usize),
    Register(R),
    Itself,
}

/// What both layers of Rust offer.
trait Subject: Extension + TemporaryAllocator + Core<Reg: std::fmt::Debug, Float: std::fmt::Debug> {
    fn make_int(&mut self, class: Class) -> Result<Self::Reg, Error>;
    fn make_float(&mut self, class: Class) -> Result<Self::Float, Error>;
    fn give_back(&mut self, register: Any<Self::Reg, Self::Float>);
    fn make_label(&mut self) -> Label;
    fn bind_label(&mut self, label: Label);
    fn begin_procedure(&mut self, label: Label, link: Self::Reg);
    fn make_local(&mut self, bytes: u32, align: u32) -> Local;
    fn address_of(&mut self, d: Self::Reg, local: Local);
    fn transfer(
        &mut self,
        types: &str,
        target: Called<Self::Reg>,
        arguments: &[Passed<Self::Reg, Self::Float>],
        is_tail: bool,
    ) -> Result<(), Error>;
    fn move_result(&mut self, d: Any<Self::Reg, Self::Float>);
    fn finish(self) -> Result<Code, Error>;
}

impl<M: Machine> Subject for Virtual<'_, '_, M>
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    fn make_int(&mut self, class: Class) -> Result<Self::Reg, Error> {
        Ok(self.reg(class))
    }

    fn make_float(&mut self, class: Class) -> Result<Self::Float, Error> {
        Ok(self.float(class))
    }

    fn give_back(&mut self, register: Any<Self::Reg, Self::Float>) {
        match register {
            Any::Int(register) => self.release(register),
            Any::Float(register) => self.release_float(register),
        }
    }

    fn make_label(&mut self) -> Label {
        self.label()
    }

    fn bind_label(&mut self, label: Label) {
        self.bind(label);
    }

    fn begin_procedure(&mut self, label: Label, link: Self::Reg) {
        self.procedure(label, link);
    }

    fn make_local(&mut self, bytes: u32, align: u32) -> Local {
        self.local_bytes(bytes, align)
    }

    fn address_of(&mut self, d: Self::Reg, local: Local) {
        self.local_address(d, local);
    }

    fn transfer(
        &mut self,
        types: &str,
        target: Called<Self::Reg>,
        arguments: &[Passed<Self::Reg, Self::Float>],
        is_tail: bool,
    ) -> Result<(), Error> {
        let list: Vec<VirtualArgument<M>> = arguments
            .iter()
            .map(|argument| match argument {
                Passed::Register(Any::Int(register)) => VirtualArgument::Reg(*register),
                Passed::Register(Any::Float(register)) => VirtualArgument::Float(*register),
                Passed::Constant(value) => VirtualArgument::Constant(*value),
            })
            .collect();
        let target = match target {
            Called::Address(address) => VirtualTarget::Address(address),
            Called::Register(register) => VirtualTarget::Reg(register),
            Called::Itself => VirtualTarget::Itself,
        };
        if is_tail { self.tail_call(types, target, &list) } else { self.call(types, target, &list) }
    }

    fn move_result(&mut self, d: Any<Self::Reg, Self::Float>) {
        match d {
            Any::Int(register) => self.take_result(register),
            Any::Float(register) => self.take_float_result(register),
        }
    }

    fn finish(self) -> Result<Code, Error> {
        self.end()
    }
}

impl<M: Machine> Subject for Peephole<'_, M>
where
    for<'x> Asm<'x, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    fn make_int(&mut self, class: Class) -> Result<Self::Reg, Error> {
        self.getreg(class)
    }

    fn make_float(&mut self, class: Class) -> Result<Self::Float, Error> {
        self.getfloat(class)
    }

    fn give_back(&mut self, register: Any<Self::Reg, Self::Float>) {
        match register {
            Any::Int(register) => self.putreg(register),
            Any::Float(register) => self.putfloat(register),
        }
    }

    fn make_label(&mut self) -> Label {
        self.label()
    }

    fn bind_label(&mut self, label: Label) {
        self.bind(label);
    }

    fn begin_procedure(&mut self, label: Label, link: Self::Reg) {
        self.procedure(label, link);
    }

    fn make_local(&mut self, bytes: u32, align: u32) -> Local {
        self.local_bytes(bytes, align)
    }

    fn address_of(&mut self, d: Self::Reg, local: Local) {
        self.asm().local_address(d, local);
    }

    fn transfer(
        &mut self,
        types: &str,
        target: Called<Self::Reg>,
        arguments: &[Passed<Self::Reg, Self::Float>],
        is_tail: bool,
    ) -> Result<(), Error> {
        let list: Vec<Argument<M>> = arguments
            .iter()
            .map(|argument| match argument {
                Passed::Register(Any::Int(register)) => Argument::Reg(*register),
                Passed::Register(Any::Float(register)) => Argument::Float(*register),
                Passed::Constant(value) => Argument::Constant(*value),
            })
            .collect();
        let target = match target {
            Called::Address(address) => Target::Address(address),
            Called::Register(register) => Target::Reg(register),
            Called::Itself => Target::Itself,
        };
        if is_tail { self.asm().tail_call(types, target, &list) } else { self.asm().call(types, target, &list) }
    }

    fn move_result(&mut self, d: Any<Self::Reg, Self::Float>) {
        match d {
            Any::Int(register) => M::copy(self.asm(), register, M::RESULT),
            Any::Float(register) => M::copy_float(self.asm(), register, M::FLOAT_RESULT),
        }
    }

    fn finish(self) -> Result<Code, Error> {
        self.end()
    }
}
