//! Random functions in two ways: written by us, and as C text that the machine's gcc compiles. Up to twelve mixed
//! parameters, straight lines, branches, a loop, calls back into C with up to twelve arguments. C calls both with the
//! same random arguments and counts how often their results differ.

use std::fmt::Write as _;

use quaject_test_support::Random;
use quaject_vcode::layers::virtual_registers::{Virtual, VirtualArgument, VirtualReg, VirtualTarget};
use quaject_vcode::{Asm, Class, Code, Core, Extension, Kind, Label, Local, Machine, Param, Region, Workspace};

use crate::functions::{CType, Example};
use crate::harness::{Batch, Family, Instruction, Operands, Type};
use crate::instructions::{INSTRUCTIONS, emit};

/// Types of variables and what they are in C; those of one type are numbered.
const TYPES: [(Type, &str, char); 7] = [
    (Type::I, "int", 'i'),
    (Type::U, "unsigned", 'u'),
    (Type::L, "long", 'l'),
    (Type::Ul, "unsigned long", 'w'),
    (Type::P, "unsigned long", 'p'),
    (Type::F, "float", 'f'),
    (Type::D, "double", 'd'),
];
const FLOATS: usize = 5;
const PER_TYPE: usize = 3;
/// How often the body runs.
const TURNS: i64 = 2;
/// How often each function is called with other arguments.
const ROUNDS: usize = 12;

/// A variable: its type's place in [`TYPES`], and its number.
#[derive(Debug, Clone, Copy)]
struct Variable {
    ty: usize,
    number: usize,
}

impl Variable {
    fn name(self) -> String {
        format!("{}{}", TYPES[self.ty].2, self.number)
    }

    /// Its place among the integers or among the floats.
    fn place(self) -> usize {
        (if self.ty >= FLOATS { self.ty - FLOATS } else { self.ty }) * PER_TYPE + self.number
    }
}

enum Step {
    /// An instruction by index; a branch goes over so many of the steps that follow.
    Instruction { index: usize, d: Variable, s: Variable, t: Variable, immediate: i64, over: usize },
    /// A call of the C function for the signature with this index.
    Call { hook: usize, arguments: Vec<Variable>, d: Variable },
}

/// A random function.
pub struct Function {
    number: usize,
    parameters: Vec<CType>,
    steps: Vec<Step>,
}

fn variable(random: &mut Random, ty: Type) -> Variable {
    let ty = TYPES.iter().position(|own| own.0 == ty).expect("narrow types are only in memory");
    Variable { ty, number: random.index(PER_TYPE) }
}

/// Makes `count` functions with the signatures of `examples`, for a machine whose long has `long` bits.
pub fn functions(count: usize, examples: &[Example], long: u32) -> Vec<Function> {
    (0..count)
        .map(|number| {
            let mut random = Random(number as u64 * 7919 + 5);
            let parameters = examples[number % examples.len()].parameters_in_c().to_vec();
            let length = 4 + number % 40;
            let mut steps = Vec::new();
            while steps.len() < length {
                steps.extend(step(&mut random, examples, long));
            }
            Function { number, parameters, steps }
        })
        .collect()
}

/// A step, unless what was drawn is not defined for all operands.
fn step(random: &mut Random, examples: &[Example], long: u32) -> Option<Step> {
    if random.index(12) == 0 {
        let hook = random.index(examples.len());
        let arguments = examples[hook].types().iter().map(|ty| variable(random, of_core(*ty))).collect();
        return Some(Step::Call { hook, arguments, d: variable(random, Type::L) });
    }
    let index = random.index(INSTRUCTIONS.len());
    let Instruction { op, family, ty, source, immediate: has_immediate, .. } = INSTRUCTIONS[index];
    let bits = ty.bits(long);
    let mut immediate = random.index(1 << 16) as i64 - (1 << 15);
    match family {
        // Division is defined where the divisor is a small constant; floats must stay small.
        Family::Binary if ["div", "mod"].contains(&op) && has_immediate && !ty.is_float() => {
            immediate = [3, 7, 10, 641][random.index(4)];
        }
        Family::Binary if ["div", "mod"].contains(&op) || ty.is_float() && op == "mul" => return None,
        Family::Shift if !has_immediate => return None,
        Family::Shift => immediate = random.index(bits as usize) as i64,
        Family::Convert if source.is_float() => return None,
        Family::Set if ty == Type::F => immediate = i64::from((immediate as f32).to_bits()),
        Family::Set if ty == Type::D => immediate = (immediate as f64).to_bits() as i64,
        Family::Binary | Family::Unary | Family::Set | Family::Convert | Family::Branch => {
            if matches!(ty, Type::U | Type::Ul | Type::P) && (ty == Type::U || long == 32) {
                immediate = i64::from(immediate as u32);
            }
        }
        Family::Load
        | Family::Store
        | Family::Return
        | Family::Label
        | Family::Register
        | Family::Nullary
        | Family::Select
        | Family::Checked
        | Family::Exchange
        | Family::IndexedLoad
        | Family::IndexedStore
        | Family::Hint => return None,
    }
    let (d, s, t) = (variable(random, ty.held()), variable(random, source), variable(random, ty.held()));
    Some(Step::Instruction { index, d, s, t, immediate, over: 1 + random.index(5) })
}

/// The type of the tests that a type of signatures is.
fn of_core(ty: quaject_vcode::Type) -> Type {
    match ty {
        quaject_vcode::Type::I => Type::I,
        quaject_vcode::Type::U => Type::U,
        quaject_vcode::Type::L => Type::L,
        quaject_vcode::Type::Ul => Type::Ul,
        quaject_vcode::Type::P => Type::P,
        quaject_vcode::Type::F => Type::F,
        quaject_vcode::Type::D => Type::D,
        narrow => unreachable!("no signature has a {narrow:?}"),
    }
}

/// The C side: hooks that are called, and of each function what gcc makes of it and what compares the two.
pub fn c_side(functions: &[Function], examples: &[Example]) -> String {
    let mut text = String::from(
        "#include <stdint.h>\n#include <string.h>\n\
         static uint64_t next(uint64_t *state) { *state ^= *state << 13; *state ^= *state >> 7; \
         *state ^= *state << 17; return *state * UINT64_C(0x2545f4914f6cdd1d) >> 20; }\n",
    );
    for (index, example) in examples.iter().enumerate() {
        let terms = example.parameters_in_c().iter().enumerate().map(|(position, ty)| {
            let value = match ty.ty {
                quaject_vcode::Type::F | quaject_vcode::Type::D => {
                    format!("((a{position} > 10) + 2 * (a{position} < -3))")
                }
                _ => format!("(unsigned long)a{position}"),
            };
            format!(" + {}ul * {value}", 2 * position + 3)
        });
        let sum: String = terms.collect();
        let _ = writeln!(text, "long hook_{index}({}) {{ return (long)(0ul{sum}); }}", example.parameters());
    }
    for function in functions {
        function.write_c(&mut text);
    }
    text
}

impl Function {
    fn write_c(&self, text: &mut String) {
        let number = self.number;
        let list = |item: &dyn Fn(usize, &CType) -> String| {
            let items: Vec<String> = self.parameters.iter().enumerate().map(|(at, ty)| item(at, ty)).collect();
            items.join(", ")
        };
        let parameters = list(&|at, ty| format!("{} a{at}", ty.name));
        let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters };
        let _ = writeln!(text, "long gcc_{number}({parameters}) {{\n    long turn = {TURNS}; unsigned long sum = 0;");
        for (ty, name, letter) in TYPES {
            for variable in 0..PER_TYPE {
                let _ = writeln!(text, "    {name} {letter}{variable} = {};", initial(ty, variable));
            }
        }
        for (at, variable) in self.arrivals().into_iter().enumerate() {
            let _ = writeln!(text, "    {} = ({})a{at};", variable.name(), TYPES[variable.ty].1);
        }
        text.push_str("again:;\n");
        for (position, step) in self.steps.iter().enumerate() {
            let _ = writeln!(text, "    l_{position}: __attribute__((unused));");
            match step {
                Step::Call { hook, arguments, d } => {
                    let arguments: Vec<String> = arguments
                        .iter()
                        .map(|variable| match TYPES[variable.ty].0 {
                            Type::P => format!("(void *){}", variable.name()),
                            _ => variable.name(),
                        })
                        .collect();
                    let _ = writeln!(text, "    {} = hook_{hook}({});", d.name(), arguments.join(", "));
                }
                Step::Instruction { index, d, s, t, immediate, over } => {
                    let end = (position + 1 + over).min(self.steps.len());
                    let _ = writeln!(text, "    {}", statement(*index, *d, *s, *t, *immediate, end));
                }
            }
        }
        let _ = writeln!(text, "    l_{}: __attribute__((unused));", self.steps.len());
        text.push_str("    if (--turn > 0) goto again;\n");
        for (ty, _, letter) in TYPES {
            for variable in 0..PER_TYPE {
                let name = format!("{letter}{variable}");
                let _ = match ty {
                    Type::F => writeln!(text, "    {{ int w; memcpy(&w, &{name}, 4); sum = sum * 31 + w; }}"),
                    Type::D => {
                        writeln!(text, "    {{ int w[2]; memcpy(w, &{name}, 8); sum = sum * 31 + w[0] + w[1]; }}")
                    }
                    _ => writeln!(text, "    sum = sum * 31 + (unsigned long){name};"),
                };
            }
        }
        text.push_str("    return (long)sum;\n}\n");
        let values = list(&|_, ty| match ty.ty {
            quaject_vcode::Type::P => "(void *)(uintptr_t)next(&s)".into(),
            quaject_vcode::Type::F | quaject_vcode::Type::D => {
                format!("({})((int)(next(&s) & 0xffff) - 32768) / 8", ty.name)
            }
            _ => format!("({})next(&s)", ty.name),
        });
        let names = list(&|at, _| format!("a{at}"));
        let _ = writeln!(
            text,
            "long compare_{number}(uint64_t *m) {{\n    uint64_t s = {}; long different = 0;\n\
             \x20   long (*ours)({parameters}) = (long (*)({parameters}))(uintptr_t)m[0];\n\
             \x20   for (int round = 0; round < {ROUNDS}; round++) {{",
            number * 77 + 1
        );
        for (at, value) in values.split(", ").enumerate().filter(|(_, value)| !value.is_empty()) {
            let _ = writeln!(text, "        {} a{at} = {value};", self.parameters[at].name);
        }
        let _ = writeln!(
            text,
            "        different += ours({names}) != gcc_{number}({names});\n    }}\n    return different;\n}}"
        );
    }

    /// The variables that the parameters are copied to.
    fn arrivals(&self) -> Vec<Variable> {
        let mut random = Random(self.number as u64 + 99);
        self.parameters.iter().map(|ty| variable(&mut random, of_core(ty.ty))).collect()
    }

    /// Writes the function on virtual registers, of which some are machine registers.
    fn write<M: Machine>(&self, region: Region<'_>, symbol: &impl Fn(&str) -> u64) -> Code
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        let mut workspace = Workspace::<M, 512, 1024, 128>::with_room();
        let types: Vec<quaject_vcode::Type> = self.parameters.iter().map(|ty| ty.ty).collect();
        let mut params = vec![Param::NONE; types.len()];
        let calls = self.steps.iter().any(|step| matches!(step, Step::Call { .. }));
        let kind = if calls { Kind::Calls } else { Kind::Leaf };
        let mut asm = Asm::<M>::begin(region, &mut workspace, &types[..], &mut params, kind).expect("there is room");
        // Twelve parameters may take all registers, and virtual ones need some to work with.
        let arrived: Vec<Local> =
            types.iter().zip(&params).map(|(ty, param)| park(&mut asm, of_core(*ty), *param)).collect();
        let mut slots = [0; 64];
        let mut asm = Virtual::new(asm, &mut slots);
        let variables = Variables::<M> {
            ints: (0..FLOATS * PER_TYPE).map(|_| asm.reg(Class::Persistent)).collect(),
            floats: (0..(TYPES.len() - FLOATS) * PER_TYPE).map(|_| asm.float(Class::Persistent)).collect(),
            turn: asm.reg(Class::Persistent),
            scratch: asm.local_bytes(8, 8),
        };
        variables.begin(&mut asm);
        for (local, variable) in arrived.into_iter().zip(self.arrivals()) {
            match TYPES[variable.ty].0 {
                Type::F => asm.ldf_local(variables.floats[variable.place()], local),
                Type::D => asm.ldd_local(variables.floats[variable.place()], local),
                _ => asm.ldl_local(variables.ints[variable.place()], local),
            }
        }
        self.write_body(&mut asm, &variables, symbol);
        asm.end().unwrap_or_else(|error| panic!("{} function {}: {error}", M::NAME, self.number))
    }

    fn write_body<M: Machine>(&self, asm: &mut Virtual<'_, '_, M>, v: &Variables<M>, symbol: &impl Fn(&str) -> u64)
    where
        for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
    {
        asm.setl(v.turn, TURNS);
        let again = asm.label();
        asm.bind(again);
        let mut open: Vec<(usize, Label)> = Vec::new();
        for (position, step) in self.steps.iter().enumerate() {
            for (_, label) in open.extract_if(.., |(end, _)| *end == position) {
                asm.bind(label);
            }
            match step {
                Step::Instruction { index, d, s, t, immediate, over } => {
                    let label = asm.label();
                    open.push((position + 1 + over, label));
                    emit(asm, *index, &v.operands(*d, *s, *t, *immediate), label);
                }
                Step::Call { hook, arguments, d } => {
                    let types: Vec<quaject_vcode::Type> =
                        arguments.iter().map(|variable| of_signature(TYPES[variable.ty].0)).collect();
                    let values: Vec<VirtualArgument<M>> =
                        arguments.iter().map(|variable| v.argument(*variable)).collect();
                    let target = VirtualTarget::Address(symbol(&format!("hook_{hook}")) as usize);
                    asm.call(&types[..], target, &values).expect("the arguments match");
                    asm.take_result(v.ints[d.place()]);
                }
            }
        }
        for (_, label) in open {
            asm.bind(label);
        }
        asm.subli(v.turn, v.turn, 1);
        asm.bgtli(v.turn, 0, again);
        v.hash(asm);
    }
}

/// Puts a parameter on the stack and gives its register back.
fn park<M: Machine>(asm: &mut Asm<'_, M>, ty: Type, param: Param<M>) -> Local
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let local = asm.local_bytes(8, 8);
    match (param, ty) {
        (Param::Reg(register), _) => {
            asm.stl_local(register, local);
            asm.putreg(register);
        }
        (Param::Float(float), Type::F) => {
            asm.stf_local(float, local);
            asm.putfloat(float);
        }
        (Param::Float(float), _) => {
            asm.std_local(float, local);
            asm.putfloat(float);
        }
        (Param::None, _) => unreachable!("begin() finds a place for every parameter"),
    }
    local
}

/// What a variable starts as.
fn initial(ty: Type, number: usize) -> i64 {
    match ty {
        Type::U | Type::Ul | Type::P => 40 + 3 * number as i64,
        _ => 10 * number as i64 - 7,
    }
}

fn of_signature(ty: Type) -> quaject_vcode::Type {
    match ty {
        Type::I => quaject_vcode::Type::I,
        Type::U => quaject_vcode::Type::U,
        Type::L => quaject_vcode::Type::L,
        Type::Ul => quaject_vcode::Type::Ul,
        Type::P => quaject_vcode::Type::P,
        Type::F => quaject_vcode::Type::F,
        Type::D => quaject_vcode::Type::D,
        Type::V | Type::C | Type::Uc | Type::S | Type::Us => unreachable!("no variable has this type"),
    }
}

/// An instruction as a statement of C; a branch goes to the step `end`.
fn statement(index: usize, d: Variable, s: Variable, t: Variable, immediate: i64, end: usize) -> String {
    let Instruction { op, family, ty, immediate: has_immediate, .. } = INSTRUCTIONS[index];
    let own = |ty: Type| match ty {
        Type::C => "signed char",
        Type::Uc => "unsigned char",
        Type::S => "short",
        Type::Us => "unsigned short",
        _ => TYPES.iter().find(|own| own.0 == ty).expect("a type of variables").1,
    };
    let (c, unsigned) = (own(ty), if matches!(ty, Type::I | Type::U) { "unsigned" } else { "unsigned long" });
    let (d, s) = (d.name(), s.name());
    let t = if has_immediate { format!("(({c})INT64_C({immediate}))") } else { t.name() };
    let sign = match op {
        "add" => "+",
        "sub" => "-",
        "mul" => "*",
        "div" => "/",
        "mod" => "%",
        "and" => "&",
        "or" => "|",
        "xor" => "^",
        "lsh" => "<<",
        "rsh" => ">>",
        "blt" => "<",
        "ble" => "<=",
        "bgt" => ">",
        "bge" => ">=",
        "beq" => "==",
        "bne" => "!=",
        _ => "",
    };
    match (family, op) {
        (Family::Branch, _) => format!("if ({s} {sign} {t}) goto l_{end};"),
        (Family::Binary, "div" | "mod") | (Family::Shift, "rsh") => format!("{d} = {s} {sign} {t};"),
        (Family::Shift, _) => format!("{d} = ({c})(({unsigned}){s} << {immediate});"),
        (Family::Binary, _) if ty.is_float() => format!("{d} = {s} {sign} {t};"),
        (Family::Binary, _) => format!("{d} = ({c})(({unsigned}){s} {sign} ({unsigned}){t});"),
        (Family::Set, _) => match ty {
            Type::F => format!("{d} = {:?}f;", f32::from_bits(immediate as u32)),
            Type::D => format!("{d} = {:?};", f64::from_bits(immediate as u64)),
            _ => format!("{d} = ({c})INT64_C({immediate});"),
        },
        (Family::Unary, "com") => format!("{d} = ({c})~({unsigned}){s};"),
        (Family::Unary, "not") => format!("{d} = ({c})!{s};"),
        (Family::Unary, "neg") if !ty.is_float() => format!("{d} = ({c})(0 - ({unsigned}){s});"),
        (Family::Unary, "neg") => format!("{d} = -{s};"),
        (_, _) => format!("{d} = ({c}){s};"),
    }
}

struct Variables<M: Machine> {
    ints: Vec<VirtualReg<M::Reg>>,
    floats: Vec<VirtualReg<M::Float>>,
    turn: VirtualReg<M::Reg>,
    scratch: Local,
}

impl<M: Machine> Variables<M>
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    fn begin(&self, asm: &mut Virtual<'_, '_, M>) {
        for (place, (ty, _, _)) in TYPES.into_iter().enumerate() {
            for number in 0..PER_TYPE {
                let (at, value) = (Variable { ty: place, number }.place(), initial(ty, number));
                match ty {
                    Type::F => asm.setf(self.floats[at], value as f32),
                    Type::D => asm.setd(self.floats[at], value as f64),
                    _ => asm.setl(self.ints[at], value),
                }
            }
        }
    }

    fn operands(
        &self,
        d: Variable,
        s: Variable,
        t: Variable,
        immediate: i64,
    ) -> Operands<VirtualReg<M::Reg>, VirtualReg<M::Float>> {
        let int = |variable: Variable| self.ints[if variable.ty >= FLOATS { 0 } else { variable.place() }];
        let float = |variable: Variable| self.floats[if variable.ty >= FLOATS { variable.place() } else { 0 }];
        Operands { d: int(d), s: int(s), t: int(t), fd: float(d), fs: float(s), ft: float(t), immediate }
    }

    fn argument(&self, variable: Variable) -> VirtualArgument<M> {
        if variable.ty >= FLOATS {
            VirtualArgument::Float(self.floats[variable.place()])
        } else {
            VirtualArgument::Reg(self.ints[variable.place()])
        }
    }

    /// Returns a hash of all variables; the counter of turns is not needed any more.
    fn hash(&self, asm: &mut Virtual<'_, '_, M>) {
        let (sum, term) = (asm.reg(Class::Temporary), self.turn);
        asm.setl(sum, 0);
        for (place, (ty, _, _)) in TYPES.into_iter().enumerate() {
            for number in 0..PER_TYPE {
                let at = Variable { ty: place, number }.place();
                asm.mulli(sum, sum, 31);
                match ty {
                    Type::F => {
                        asm.stf_local(self.floats[at], self.scratch);
                        asm.ldi_local(term, self.scratch);
                        asm.cvi2l(term, term);
                    }
                    Type::D => {
                        asm.std_local(self.floats[at], self.scratch);
                        asm.ldi_local(term, self.scratch.plus(4));
                        asm.cvi2l(term, term);
                        asm.addl(sum, sum, term);
                        asm.ldi_local(term, self.scratch);
                        asm.cvi2l(term, term);
                    }
                    Type::I => asm.cvi2l(term, self.ints[at]),
                    Type::U => asm.cvu2l(term, self.ints[at]),
                    _ => asm.movl(term, self.ints[at]),
                }
                asm.addl(sum, sum, term);
            }
        }
        asm.retl(sum);
    }
}

/// Adds the functions to a batch whose program has their C side.
pub fn add<M: Machine>(batch: &mut Batch<'_>, functions: &[Function], symbol: impl Fn(&str) -> u64)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    for function in functions {
        let compare = symbol(&format!("compare_{}", function.number));
        let name = format!("function {} against gcc's, calls that differ", function.number);
        batch.add_called::<M>(&name, compare, |region| function.write::<M>(region, &symbol));
    }
}
