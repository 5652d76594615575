//! Functions on every machine: loops, far branches, frames, registers across calls, and calls both ways between
//! generated code and the C compiler's, with random signatures.

use std::fmt::Write as _;

use quaject_test_support::Random;
use quaject_vcode::layers::table::{TableDefault, jump_table};
use quaject_vcode::{
    Argument, Asm, Class, Core, Counters, Extension, Kind, Local, Machine, Param, Place, Register, Target, Type,
};

use crate::conventions;
use crate::harness::Batch;

/// Loops, branches and frames.
pub fn add_control<M: Machine>(batch: &mut Batch)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    add_branches::<M>(batch);
    add_jump_tables::<M>(batch);
    add_register_allocation::<M>(batch);
    add_locals::<M>(batch);
    add_swapped_locals::<M>(batch);
    add_returns::<M>(batch);
}

fn add_branches<M: Machine>(batch: &mut Batch)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    batch.add_function::<M>("sum by a backward branch", Kind::Leaf, 5050, |asm, _| {
        let (sum, count) = (asm.getreg(Class::Temporary).unwrap(), asm.getreg(Class::Temporary).unwrap());
        asm.setl(sum, 0);
        asm.setl(count, 100);
        let again = asm.label();
        asm.bind(again);
        asm.addl(sum, sum, count);
        asm.subli(count, count, 1);
        asm.bgtli(count, 0, again);
        asm.retl(sum);
    });
    for filler in [10, 1000, 1030, 2000] {
        batch.add_function::<M>("branches over much code, both ways", Kind::Leaf, 3, |asm, _| {
            let (result, turn) = (asm.getreg(Class::Temporary).unwrap(), asm.getreg(Class::Temporary).unwrap());
            let (start, end) = (asm.label(), asm.label());
            asm.setl(result, 0);
            asm.setl(turn, 0);
            asm.bind(start);
            asm.addli(result, result, 1);
            asm.beqli(turn, 2, end);
            for _ in 0..filler {
                asm.addl(turn, turn, result);
                asm.subl(turn, turn, result);
            }
            asm.addli(turn, turn, 1);
            asm.bltli(turn, 10, start);
            asm.setl(result, 99);
            asm.bind(end);
            asm.retl(result);
        });
    }
}

fn add_jump_tables<M: Machine>(batch: &mut Batch)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    // Indices 0 to 5 of a table of four labels, one of them twice.
    for outside in [true, false] {
        batch.add_function::<M>("a jump table", Kind::Leaf, if outside { 2121 } else { 121 }, |asm, _| {
            let (index, sum) = (asm.getreg(Class::Temporary).unwrap(), asm.getreg(Class::Temporary).unwrap());
            let [again, one, ten, hundred, elsewhere, next] = [(); 6].map(|()| asm.label());
            asm.setl(sum, 0);
            asm.setul(index, 0);
            // One label is bound before the table, the others after it.
            asm.j(again);
            asm.bind(ten);
            asm.addli(sum, sum, 10);
            asm.j(next);
            asm.bind(again);
            let labels = [one, ten, hundred, ten];
            jump_table(
                asm,
                index,
                &labels,
                if outside { TableDefault::Label(elsewhere) } else { TableDefault::Unreachable },
            );
            asm.bind(one);
            asm.addli(sum, sum, 1);
            asm.j(next);
            asm.bind(hundred);
            asm.addli(sum, sum, 100);
            asm.j(next);
            asm.bind(elsewhere);
            asm.addli(sum, sum, 1000);
            asm.bind(next);
            asm.adduli(index, index, 1);
            asm.bltuli(index, if outside { 6 } else { 4 }, again);
            asm.retl(sum);
        });
    }
}

fn add_register_allocation<M: Machine>(batch: &mut Batch)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    batch.add_function::<M>("registers: all there are, in a leaf", Kind::Leaf, (1..=M_REGISTERS).sum(), |asm, _| {
        let registers: Vec<M::Reg> =
            (0..M_REGISTERS).map(|_| asm.getreg(Class::Persistent).expect("there are that many")).collect();
        for (index, register) in registers.iter().enumerate() {
            asm.setl(*register, index as i64 + 1);
        }
        let (first, rest) = registers.split_first().expect("there are many");
        for register in rest {
            asm.addl(*first, *first, *register);
        }
        asm.retl(*first);
    });
    batch.add_function::<M>("registers run out, and come back", Kind::Leaf, 7, |asm, argument| {
        let mut registers = Vec::new();
        while let Ok(register) = asm.getreg(Class::Temporary) {
            registers.push(register);
        }
        assert!(asm.getreg(Class::Persistent).is_err(), "none are left");
        asm.putreg(argument);
        assert_eq!(asm.getreg(Class::Persistent), Ok(argument));
        asm.setl(argument, 7);
        asm.retl(argument);
    });
}

fn add_locals<M: Machine>(batch: &mut Batch)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    for size in [8, 104, 3000, 40_000] {
        batch.add_function::<M>("locals do not overlap", Kind::Leaf, 6, |asm, _| {
            let saved = asm.getreg(Class::Persistent).unwrap();
            let (one, two) = (asm.local(Type::L), asm.local_bytes(size, 8));
            let three = asm.local(Type::I);
            let value = asm.getreg(Class::Temporary).unwrap();
            let last = two.plus(size as i32 - 8);
            asm.setl(value, 1);
            asm.stl_local(value, one);
            asm.setl(value, 2);
            asm.stl_local(value, last);
            asm.seti(value, 3);
            asm.sti_local(value, three);
            asm.ldl_local(saved, one);
            asm.ldl_local(value, last);
            asm.addl(saved, saved, value);
            asm.ldi_local(value, three);
            asm.cvi2l(value, value);
            asm.addl(saved, saved, value);
            asm.retl(saved);
        });
    }
}

fn add_swapped_locals<M: Machine>(batch: &mut Batch)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    batch.add_function::<M>("unaligned and byte-swapped locals", Kind::Leaf, 1, |asm, _| {
        let (value, other) = (asm.getreg(Class::Persistent).unwrap(), asm.getreg(Class::Temporary).unwrap());
        let (wrong, done) = (asm.label(), asm.label());
        let at = asm.local_bytes(48, 8);
        asm.setu(value, 0x8765_4321);
        asm.bstu_local(value, at.plus(4));
        asm.ldu_local(other, at.plus(4));
        asm.bneui(other, 0x2143_6587, wrong);
        asm.bldu_local(other, at.plus(4));
        asm.bneu(other, value, wrong);
        asm.bstus_local(value, at.plus(2));
        asm.bldus_local(other, at.plus(2));
        asm.bneui(other, 0x4321, wrong);
        asm.setul(value, 0x7654_3210);
        asm.bstul_local(value, at.plus(8));
        asm.bldul_local(other, at.plus(8));
        asm.bneul(other, value, wrong);
        asm.ustul_local(value, at.plus(19));
        asm.uldul_local(other, at.plus(19));
        asm.bneul(other, value, wrong);
        asm.ustl_local(value, at.plus(29));
        asm.uldl_local(other, at.plus(29));
        asm.bnel(other, value, wrong);
        asm.ustp_local(value, at.plus(39));
        asm.uldp_local(other, at.plus(39));
        asm.bnep(other, value, wrong);
        asm.seti(value, -2_023_406_815);
        asm.usti_local(value, at.plus(21));
        asm.uldi_local(other, at.plus(21));
        asm.bnei(other, value, wrong);
        asm.usts_local(value, at.plus(17));
        asm.ulds_local(other, at.plus(17));
        asm.bneii(other, 0x4321, wrong);
        asm.seti(value, -3);
        asm.ustus_local(value, at.plus(1));
        asm.ulds_local(other, at.plus(1));
        asm.bneii(other, -3, wrong);
        asm.uldus_local(other, at.plus(1));
        asm.bneui(other, 0xfffd, wrong);
        asm.setl(value, 1);
        asm.j(done);
        asm.bind(wrong);
        asm.setl(value, 0);
        asm.bind(done);
        asm.retl(value);
    });
}

fn add_returns<M: Machine>(batch: &mut Batch)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    batch.add_function::<M>("several returns, with and without a frame", Kind::Leaf, 2, |asm, _| {
        let value = asm.getreg(Class::Temporary).unwrap();
        let (second, third) = (asm.label(), asm.label());
        asm.setl(value, 5);
        asm.beqli(value, 5, second);
        asm.setl(value, 1);
        asm.retl(value);
        asm.bind(second);
        asm.bneli(value, 5, third);
        asm.setl(value, 2);
        asm.retl(value);
        asm.bind(third);
        asm.setl(value, 3);
        asm.retl(value);
    });
    batch.add_function::<M>("jumps through registers", Kind::Leaf, 21, |asm, _| {
        let (value, address) = (asm.getreg(Class::Temporary).unwrap(), asm.getreg(Class::Temporary).unwrap());
        let (over, back) = (asm.label(), asm.label());
        asm.setl(value, 20);
        asm.j(over);
        asm.bind(back);
        asm.addli(value, value, 1);
        asm.retl(value);
        asm.bind(over);
        let target = asm.address(back).expect("it is bound");
        asm.setp(address, target as u64);
        asm.jr(address);
    });
}

/// Fewer than any machine has.
const M_REGISTERS: i64 = 12;

/// A type of C, as the generator of signatures sees it.
#[derive(Debug, Clone, Copy)]
pub struct CType {
    /// The type in a signature.
    pub ty: Type,
    /// Its name in C.
    pub name: &'static str,
}

const TYPES: [CType; 7] = [
    CType { ty: Type::I, name: "int" },
    CType { ty: Type::U, name: "unsigned" },
    CType { ty: Type::L, name: "long" },
    CType { ty: Type::Ul, name: "unsigned long" },
    CType { ty: Type::P, name: "void *" },
    CType { ty: Type::F, name: "float" },
    CType { ty: Type::D, name: "double" },
];

/// A random signature with the arguments it is called with.
pub struct Example {
    types: Vec<CType>,
    values: Vec<i64>,
}

impl Example {
    /// The types of the arguments.
    pub fn types(&self) -> Vec<Type> {
        self.types.iter().map(|ty| ty.ty).collect()
    }

    /// The arguments it is called with.
    pub fn values(&self) -> &[i64] {
        &self.values
    }

    fn name(&self, stem: &str, index: usize) -> String {
        format!("{stem}_{index}")
    }

    /// Sum of argument times position, as both sides compute it.
    pub fn result(&self, long_bits: u32) -> i64 {
        let sum = self
            .values
            .iter()
            .enumerate()
            .fold(0_i64, |sum, (index, value)| sum.wrapping_add(value.wrapping_mul(index as i64 + 1)));
        if long_bits == 32 { i64::from(sum as i32) } else { sum }
    }

    /// The types of the arguments, as C sees them.
    pub fn parameters_in_c(&self) -> &[CType] {
        &self.types
    }

    /// The list of parameters in C.
    pub fn parameters(&self) -> String {
        let list: Vec<String> =
            self.types.iter().enumerate().map(|(index, ty)| format!("{} a{index}", ty.name)).collect();
        if list.is_empty() { "void".into() } else { list.join(", ") }
    }
}

/// Makes `count` signatures of up to twelve arguments; the first ones are systematic: one type only.
pub fn examples(count: usize) -> Vec<Example> {
    let mut random = Random(12345);
    (0..count)
        .map(|index| {
            let length = if index < TYPES.len() { 12 } else { random.index(13) };
            let types: Vec<CType> =
                (0..length).map(|_| if index < TYPES.len() { TYPES[index] } else { random.pick(&TYPES) }).collect();
            let values = types
                .iter()
                .map(|ty| match ty.ty {
                    Type::I | Type::L => random.below(2000) as i64 - 1000,
                    Type::U | Type::Ul | Type::P => 0x7fff_ff00 + random.below(200) as i64,
                    Type::F | Type::D | Type::C | Type::Uc | Type::S | Type::Us => random.below(1000) as i64 - 500,
                })
                .collect();
            Example { types, values }
        })
        .collect()
}

/// The C side: a callee per signature that generated code calls, and a caller that calls generated code.
pub fn c_side(examples: &[Example]) -> String {
    let mut text = conventions::OUTLIVES.to_owned();
    for (index, example) in examples.iter().enumerate() {
        let parameters = example.parameters();
        let terms: Vec<String> = example
            .types
            .iter()
            .enumerate()
            .map(|(position, ty)| {
                let value = match ty.ty {
                    Type::P => format!("(long)(uintptr_t)a{position}"),
                    _ => format!("(long)a{position}"),
                };
                format!("{} * (unsigned long){value}", position + 1)
            })
            .collect();
        let sum = if terms.is_empty() { "0".into() } else { terms.join(" + ") };
        let _ = writeln!(text, "long {}({parameters}) {{ return (long)({sum}); }}", example.name("callee", index));
        let arguments: Vec<String> = example
            .types
            .iter()
            .zip(&example.values)
            .map(|(ty, value)| match ty.ty {
                Type::P => format!("(void *)(intptr_t){value}L"),
                _ => format!("({}){value}L", ty.name),
            })
            .collect();
        let _ = writeln!(
            text,
            "long {}(uint64_t *m) {{ return ((long (*)({parameters}))(uintptr_t)m[0])({}); }}",
            example.name("caller", index),
            arguments.join(", ")
        );
    }
    text
}

/// Adds calls both ways. `symbol` gives the address of a C function.
pub fn add_calls<M: Machine>(batch: &mut Batch, examples: &[Example], symbol: impl Fn(&str) -> u64)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    for (index, example) in examples.iter().enumerate() {
        let types: Vec<Type> = example.types.iter().map(|ty| ty.ty).collect();
        let result = example.result(M::LONG_BITS);
        // Large frames are entered another way; a few are enough of them.
        let frames = if index < 10 {
            &[(Kind::Leaf, 0), (Kind::Calls, 0), (Kind::Leaf, 100_000)][..]
        } else {
            &[(Kind::Leaf, 0), (Kind::Calls, 0)]
        };
        for &(kind, frame_bytes) in frames {
            // C calls generated code, which computes the sum.
            let name = format!("callee of signature {index} {types:?} with {frame_bytes} bytes");
            let mut params = vec![Param::NONE; types.len()];
            let caller = symbol(&example.name("caller", index));
            batch.add_callee::<M>(&name, &types, &mut params, kind, caller, result, |asm, params| {
                if frame_bytes != 0 {
                    asm.local_bytes(frame_bytes, 8);
                }
                sum_parameters::<M>(asm, &types, params);
            });
        }
        // Generated code calls C.
        let callee = symbol(&example.name("callee", index)) as usize;
        for through_register in [false, true] {
            batch.add_function::<M>(&format!("call of signature {index} {types:?}"), Kind::Calls, result, |asm, _| {
                call_with_values::<M>(asm, example, &types, callee, through_register);
            });
        }
    }
    for (index, example) in examples.iter().enumerate() {
        add_tail_calls::<M>(batch, example, index, symbol(&example.name("callee", index)) as usize);
    }
    add_tail_calls_of_addresses::<M>(batch);
    conventions::add::<M>(batch, &symbol);
    let callee = symbol("callee_0") as usize;
    batch.add_function::<M>("persistent registers survive calls", Kind::Calls, (1..=12).sum(), |asm, argument| {
        asm.putreg(argument);
        let registers: Vec<M::Reg> =
            (0..12).map(|_| asm.getreg(Class::Persistent).expect("there are that many")).collect();
        let floats: Vec<M::Float> =
            (0..4).map(|_| asm.getfloat(Class::Persistent).expect("there are that many")).collect();
        for (index, register) in registers.iter().enumerate() {
            asm.setl(*register, index as i64);
        }
        for float in &floats {
            asm.setd(*float, 3.0);
        }
        let types = [Type::I; 12];
        let arguments: Vec<Argument<M>> = registers.iter().map(|register| Argument::Reg(*register)).collect();
        asm.call(&types, Target::Address(callee), &arguments).expect("twelve ints are twelve ints");
        asm.call(&types, Target::Address(callee), &arguments).expect("twelve ints are twelve ints");
        let (first, rest) = registers.split_first().expect("there are twelve");
        for register in rest {
            asm.addl(*first, *first, *register);
        }
        for float in &floats {
            asm.cvd2l(rest[0], *float);
            asm.addl(*first, *first, rest[0]);
        }
        asm.retl(*first);
    });
}

/// Functions that end in a call, with and without a frame; those with arguments on the stack are refused.
fn add_tail_calls<M: Machine>(batch: &mut Batch, example: &Example, index: usize, callee: usize)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let types: Vec<Type> = example.types.iter().map(|ty| ty.ty).collect();
    let convention = M::CONVENTION;
    let mut counters = Counters::default();
    let on_stack = types.iter().any(|ty| {
        matches!((convention.place)(&convention.int, &convention.float, &mut counters, *ty), Place::Stack(_))
    });
    let result = if on_stack { -1 } else { example.result(M::LONG_BITS) };
    for (kind, framed, frame_bytes) in
        [(Kind::Leaf, false, 0), (Kind::Leaf, true, 0), (Kind::Calls, true, 0), (Kind::Calls, true, 100_000)]
    {
        batch.add_function::<M>(&format!("tail call of signature {index} {types:?}"), kind, result, |asm, argument| {
            asm.putreg(argument);
            if framed {
                let saved = M::Reg::from_number(M::INT.saved[1]);
                if asm.claim(saved).is_ok() {
                    asm.setl(saved, 77);
                }
            }
            if frame_bytes != 0 {
                let large = asm.local_bytes(frame_bytes, 8);
                asm.stl_local(argument, large);
            }
            let (target, arguments) = values_in_registers::<M>(asm, example, &types, callee);
            match asm.tail_call(&types[..], target, &arguments) {
                Ok(()) => assert!(!on_stack, "arguments on the stack are the caller's"),
                Err(error) => {
                    assert!(on_stack, "{error}");
                    asm.setl(argument, -1);
                    asm.retl(argument);
                }
            }
        });
    }
}

/// Functions find their own address in the first scratch register when a tail call begins them, as MIPS and Alpha ask.
fn add_tail_calls_of_addresses<M: Machine>(batch: &mut Batch)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let callee = batch.add_handler::<M>("a function that returns its address", const { &M::CONVENTION }, |asm| {
        let result = asm.result();
        asm.movl(result, M::SCRATCH);
    });
    for frame_bytes in [0, 8, 100_000] {
        let name = format!("tail call of an address out of {frame_bytes} bytes");
        batch.add_function::<M>(&name, Kind::Leaf, callee as i64, |asm, argument| {
            if frame_bytes != 0 {
                let local = asm.local_bytes(frame_bytes, 8);
                asm.stl_local(argument, local);
            }
            asm.tail_call(&[][..], Target::Address(callee), &[]).expect("it takes nothing");
        });
        batch.add_function::<M>(&name, Kind::Leaf, callee as i64, |asm, argument| {
            if frame_bytes != 0 {
                let local = asm.local_bytes(frame_bytes, 8);
                asm.stl_local(argument, local);
            }
            asm.setp(argument, callee as u64);
            asm.tail_call(&[][..], Target::Reg(argument), &[]).expect("it takes nothing");
        });
    }
}

fn sum_parameters<M: Machine>(asm: &mut Asm<'_, M>, types: &[Type], params: &[Param<M>])
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    // Everything goes to memory first: with twelve parameters there may be no other register.
    let locals: Vec<Local> = types.iter().map(|ty| asm.local(*ty)).collect();
    for (ty, (param, at)) in types.iter().zip(params.iter().zip(&locals)) {
        match (ty, *param) {
            (Type::F, Param::Float(float)) => asm.stf_local(float, *at),
            (Type::D, Param::Float(float)) => asm.std_local(float, *at),
            (Type::I | Type::U, Param::Reg(register)) => asm.sti_local(register, *at),
            (_, Param::Reg(register)) => asm.stl_local(register, *at),
            (_, Param::Float(_) | Param::None) => panic!("{ty:?} is in the wrong place"),
        }
        match *param {
            Param::Reg(register) => asm.putreg(register),
            Param::Float(float) => asm.putfloat(float),
            Param::None => {}
        }
    }
    let (sum, term) = (asm.getreg(Class::Temporary).unwrap(), asm.getreg(Class::Temporary).unwrap());
    let float = asm.getfloat(Class::Temporary).unwrap();
    asm.setl(sum, 0);
    for (index, (ty, at)) in types.iter().zip(&locals).enumerate() {
        match ty {
            Type::F => {
                asm.ldf_local(float, *at);
                asm.cvf2l(term, float);
            }
            Type::D => {
                asm.ldd_local(float, *at);
                asm.cvd2l(term, float);
            }
            Type::I => {
                asm.ldi_local(term, *at);
                asm.cvi2l(term, term);
            }
            Type::U => {
                asm.ldu_local(term, *at);
                asm.cvu2l(term, term);
            }
            _ => asm.ldl_local(term, *at),
        }
        asm.mulli(term, term, index as i64 + 1);
        asm.addl(sum, sum, term);
    }
    asm.retl(sum);
}

fn call_with_values<M: Machine>(
    asm: &mut Asm<'_, M>,
    example: &Example,
    types: &[Type],
    callee: usize,
    through_register: bool,
) where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let (target, arguments) = values_in_registers::<M>(asm, example, types, callee);
    let target = if through_register { target } else { Target::Address(callee) };
    asm.call(types, target, &arguments).expect("the arguments match");
    asm.retl(asm.result());
}

/// The arguments of a call, and its target in a register.
fn values_in_registers<M: Machine>(
    asm: &mut Asm<'_, M>,
    example: &Example,
    types: &[Type],
    callee: usize,
) -> (Target<M>, Vec<Argument<M>>)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    // As many arguments as possible come from registers, so that they have to be moved around each other.
    let target = asm.getreg(Class::Temporary).expect("one register is free");
    let mut arguments = Vec::new();
    for (position, (ty, value)) in types.iter().zip(&example.values).enumerate() {
        if ty.is_float() {
            let float = asm.getfloat(Class::Temporary).expect("there are more floating registers than arguments");
            if *ty == Type::F {
                asm.setf(float, *value as f32)
            } else {
                asm.setd(float, *value as f64)
            }
            arguments.push(Argument::Float(float));
        } else {
            match asm.getreg(Class::Temporary) {
                Ok(register) if position % 3 != 2 => {
                    match ty {
                        Type::I => asm.seti(register, *value as i32),
                        Type::U => asm.setu(register, *value as u32),
                        Type::L => asm.setl(register, *value),
                        _ => asm.setul(register, *value as u64),
                    }
                    arguments.push(Argument::Reg(register));
                }
                _ => arguments.push(Argument::Constant(*value)),
            }
        }
    }
    asm.setp(target, callee as u64);
    (Target::Reg(target), arguments)
}
