//! Calling conventions of the client's on every machine: interrupt handlers, registers of other classes, arguments in
//! other places.

use quaject_vcode::{
    Argument, Asm, Class, Convention, Core, Counters, Error, Kind, Machine, Place, Region, Register, RegisterFile,
    Scratch, Target, Type, Workspace,
};

use crate::harness::Batch;
use crate::odd_conventions;

/// Changes what instructions change besides registers: condition codes, halves of products, carries.
fn change_all<M: Machine>(asm: &mut Asm<'_, M>, float: M::Float)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let register = asm.getreg(Class::Temporary).expect("one is free");
    let next = asm.label();
    asm.setl(register, i64::from(0x1234_5678) << (M::LONG_BITS - 32));
    asm.modl(register, register, register);
    asm.seti(register, -5);
    asm.rshii(register, register, 1);
    asm.modii(register, register, 3);
    asm.bltii(register, 1, next);
    asm.bind(next);
    let next = asm.label();
    asm.bltd(float, float, next);
    asm.bind(next);
}

/// Sets what is in no register of the lists, calls a function, and says what has changed.
pub const OUTLIVES: &str = include_str!("../../../crates/vcode/tests/c/outlives.c");

/// Conventions of the client's. `symbol` gives the address of a C function.
pub fn add<M: Machine>(batch: &mut Batch<'_>, symbol: &impl Fn(&str) -> u64)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    add_handler::<M>(batch, symbol("outlives"), symbol("callee_0") as usize);
    add_full_handlers::<M>(batch, symbol("callee_0") as usize);
    add_substituted::<M>(batch);
    odd_conventions::add::<M>(batch, symbol("callee_0") as usize);
}

/// A function that preserves every register it uses, as an interrupt handler must, called where all are in use.
fn add_handler<M: Machine>(batch: &mut Batch, outlives: u64, callee: usize)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let convention = const {
        &Convention {
            int: RegisterFile::new(&[], M::INT.temp, &[]),
            float: RegisterFile::new(&[], M::FLOAT.temp, &[]),
            place: M::CONVENTION.place,
            scratch: Scratch::Preserved,
        }
    };
    let handler = batch.add_handler::<M>("an interrupt handler", convention, |asm| {
        for value in 0..3 {
            let register = asm.getreg(Class::Temporary).expect("there are that many");
            asm.setl(register, -1 - value);
            asm.divl(register, register, register);
        }
        let float = asm.getfloat(Class::Temporary).expect("there is one");
        asm.setd(float, 99.0);
        change_all(asm, float);
        let refused = asm.tail_call(&[][..], Target::Address(0), &[]);
        assert_eq!(refused, Err(Error::RegisterTaken), "no register is left for the target");
    });
    batch.add_called::<M>("what is in no register outlives a handler", outlives, |region| {
        let mut workspace = Workspace::<M>::new();
        let mut asm = Asm::<M>::begin_with(region, &mut workspace, &[][..], &mut [], Kind::Leaf, convention)
            .expect("the region is large enough");
        let float = asm.getfloat(Class::Temporary).expect("there is one");
        asm.setd(float, 99.0);
        change_all(&mut asm, float);
        asm.retv();
        asm.end().expect("the handler is right")
    });
    batch.add_called::<M>("what is in no register outlives a handler that calls", outlives, |region| {
        let mut workspace = Workspace::<M>::new();
        let mut asm = Asm::<M>::begin_with(region, &mut workspace, &[][..], &mut [], Kind::Calls, convention)
            .expect("the region is large enough");
        let arguments: Vec<Argument<M>> = (0..12).map(Argument::Constant).collect();
        asm.call(&[Type::I; 12], Target::Address(callee), &arguments).expect("twelve ints are twelve ints");
        asm.retv();
        asm.end().expect("the handler is right")
    });
    let count = M::INT.temp.len() as i64;
    let sum = (1..=count).sum::<i64>() + 5;
    batch.add_function::<M>("every register outlives an interrupt handler", Kind::Calls, sum, |asm, argument| {
        asm.putreg(argument);
        let float = M::Float::from_number(M::FLOAT.temp[0]);
        asm.setd(float, 5.0);
        let registers: Vec<M::Reg> = M::INT.temp.iter().map(|number| M::Reg::from_number(*number)).collect();
        for (index, register) in registers.iter().enumerate() {
            asm.setl(*register, index as i64 + 1);
        }
        asm.call(&[][..], Target::Address(handler), &[]).expect("it takes nothing");
        let (first, rest) = registers.split_first().expect("there are many");
        for register in rest {
            asm.addl(*first, *first, *register);
        }
        asm.cvd2l(rest[0], float);
        asm.addl(*first, *first, rest[0]);
        asm.retl(*first);
    });
}

/// Handlers that use every register there is, and that call a function of C, which does.
fn add_full_handlers<M: Machine>(batch: &mut Batch<'_>, callee: usize)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let convention = const {
        &Convention {
            int: RegisterFile::new(&[], M::INT.temp, M::INT.args),
            float: RegisterFile::new(&[], M::FLOAT.temp, M::FLOAT.args),
            place: M::CONVENTION.place,
            scratch: Scratch::Preserved,
        }
    };
    let busy = batch.add_handler::<M>("a handler that uses all registers", convention, |asm| {
        let large = asm.local_bytes(1000, 8);
        while let Ok(register) = asm.getreg(Class::Temporary) {
            asm.setl(register, -7);
            asm.stl_local(register, large);
        }
        let first = asm.getfloat(Class::Persistent).expect("there are many");
        asm.setd(first, -7.0);
        while let Ok(float) = asm.getfloat(Class::Persistent) {
            asm.movd(float, first);
        }
    });
    let calling = batch.add_convention::<M>("a handler that calls C", convention, &[], Kind::Calls, |asm, _| {
        let types = [Type::I; 12];
        let arguments: Vec<Argument<M>> = (0..12).map(Argument::Constant).collect();
        asm.call(&types, Target::Address(callee), &arguments).expect("twelve ints are twelve ints");
        asm.retv();
    });
    for (name, handler) in [("uses them", busy), ("calls C", calling)] {
        let (ints, floats) = (M::INT.temp, M::FLOAT.temp);
        let sum = (1..=(ints.len() + floats.len()) as i64).sum();
        batch.add_function::<M>(&format!("all registers outlive a handler that {name}"), Kind::Calls, sum, |asm, _| {
            // There is not room for so many floating constants.
            let value = M::Reg::from_number(ints[0]);
            for (index, number) in floats.iter().enumerate() {
                asm.setl(value, (ints.len() + index) as i64 + 1);
                asm.cvl2d(M::Float::from_number(*number), value);
            }
            for (index, number) in ints.iter().enumerate() {
                asm.setl(M::Reg::from_number(*number), index as i64 + 1);
            }
            asm.call(&[][..], Target::Address(handler), &[]).expect("it takes nothing");
            let (first, second) = (M::Reg::from_number(ints[0]), M::Reg::from_number(ints[1]));
            for number in &ints[1..] {
                asm.addl(first, first, M::Reg::from_number(*number));
            }
            for number in floats {
                asm.cvd2l(second, M::Float::from_number(*number));
                asm.addl(first, first, second);
            }
            asm.retl(first);
        });
    }
}

/// The first parameter is in the second register, the second in the first, the third on the stack.
fn crossed(int: &RegisterFile, _: &RegisterFile, counters: &mut Counters, _: Type) -> Place {
    let count = counters.int;
    counters.int += 1;
    match count {
        0 | 1 => Place::Int(int.args[1 - count as usize]),
        _ => {
            counters.stack += 8;
            Place::Stack(counters.stack - 8)
        }
    }
}

/// A private convention: arguments cross, and the first temporary is preserved by what is called.
fn add_substituted<M: Machine>(batch: &mut Batch<'_>)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let convention = const {
        let ((saved, temp), (args, _)) = (M::INT.temp.split_at(1), M::INT.args.split_at(2));
        &Convention {
            int: RegisterFile::new(temp, saved, args),
            float: M::FLOAT,
            place: crossed,
            scratch: Scratch::Free,
        }
    };
    let types = [Type::L; 3];
    let callee = batch.add_convention::<M>("a private callee", convention, &types, Kind::Leaf, |asm, params| {
        let numbers = [params[0].reg().number(), params[1].reg().number()];
        assert_eq!(numbers, [M::INT.args[1], M::INT.args[0]], "{}: arguments cross", M::NAME);
        // All registers, those that it must preserve too.
        while let Ok(register) = asm.getreg(Class::Temporary) {
            asm.setl(register, -1);
        }
        let [first, second, third] = [0, 1, 2].map(|index: usize| params[index].reg());
        asm.mulli(second, second, 10);
        asm.mulli(third, third, 100);
        asm.addl(first, first, second);
        asm.addl(first, first, third);
        asm.retl(first);
    });
    let caller = batch.add_convention::<M>("a private caller", convention, &[], Kind::Calls, |asm, _| {
        let kept = asm.getreg(Class::Persistent).expect("one is preserved");
        assert_eq!(kept.number(), M::INT.temp[0], "{}: a temporary is preserved", M::NAME);
        asm.setl(kept, 4000);
        let arguments = [1, 2, 3].map(Argument::Constant);
        asm.call(&types, Target::Address(callee), &arguments).expect("three longs are three longs");
        let result = asm.result();
        asm.addl(result, result, kept);
        asm.retl(result);
    });
    // C's convention destroys what the private one preserves, not the reverse.
    batch.add_function::<M>("a private convention", Kind::Calls, 4321, |asm, _| {
        asm.call(&[][..], Target::Address(caller), &[]).expect("it takes nothing");
        let result = asm.result();
        asm.retl(result);
    });
}

/// Conventions with registers that are not to be had, and calls with arguments of the wrong kind, are refused before
/// anything is written.
pub fn refuse<M: Machine>()
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let mut region = vec![0_u8; 4096];
    let mut workspace = Workspace::<M>::new();
    let own = M::CONVENTION;
    let mut begin_with = |convention: Convention| {
        let convention: &'static Convention = Box::leak(Box::new(convention));
        let region = Region::from(&mut region[..]);
        Asm::<M>::begin_with(region, &mut workspace, &[][..], &mut [], Kind::Leaf, convention).map(|_| ())
    };
    let all = Convention { int: RegisterFile::new(M::INT.saved, M::INT.temp, M::INT.args), ..own };
    assert_eq!(begin_with(all), Err(Error::ResultPreserved), "{}", M::NAME);
    assert_eq!(begin_with(Convention { scratch: Scratch::Preserved, ..all }), Ok(()), "{}", M::NAME);
    let floats = Convention { float: RegisterFile::new(&[], M::FLOAT.temp, M::FLOAT.args), ..own };
    assert_eq!(begin_with(floats), Err(Error::ResultPreserved), "{}", M::NAME);
    let taken = Err(Error::RegisterTaken);
    let mut begin = |int: RegisterFile| begin_with(Convention { int, ..own });
    assert_eq!(begin(RegisterFile::new(&[], &[], &[])), Ok(()), "{}: no registers", M::NAME);
    let twice: &'static [u8] = Box::leak(Box::new([M::INT.args[0], M::INT.args[0]]));
    assert_eq!(begin(RegisterFile::new(M::INT.temp, M::INT.saved, twice)), taken, "{}: one register for two", M::NAME);
    let mut bad: Vec<&'static [u8]> = vec![Box::leak(Box::new([M::INT.temp[0], M::INT.temp[0]]))];
    for register in [M::STACK, M::SCRATCH, M::SECOND_SCRATCH] {
        bad.push(Box::leak(Box::new([register.number()])));
    }
    for list in bad {
        assert_eq!(begin(RegisterFile::new(list, &[], &[])), taken, "{}: temporaries {list:?}", M::NAME);
        assert_eq!(begin(RegisterFile::new(&[], list, &[])), taken, "{}: saved {list:?}", M::NAME);
        assert_eq!(begin(RegisterFile::new(&[], &[], list)), taken, "{}: arguments {list:?}", M::NAME);
    }
    assert_eq!(
        begin(RegisterFile::new(&M::INT.temp[..1], &M::INT.temp[..1], &[])),
        taken,
        "{}: of two classes",
        M::NAME
    );

    let mut asm = Asm::<M>::begin(Region::from(&mut region[..]), &mut workspace, &[][..], &mut [], Kind::Calls)
        .expect("there is room");
    let (register, float) = (asm.getreg(Class::Temporary).unwrap(), asm.getfloat(Class::Temporary).unwrap());
    let start = asm.position();
    let many = [Argument::Constant(0); 13];
    for (types, arguments) in [
        ("%l%d", &[Argument::Reg(register), Argument::Reg(register)][..]),
        ("%f%l", &[Argument::Float(float), Argument::Float(float)]),
        ("%d", &[Argument::Constant(1)]),
        ("%l", &[]),
        ("", &[Argument::Constant(1)]),
        ("%l%l%l%l%l%l%l%l%l%l%l%l%d", &many),
    ] {
        assert_eq!(asm.call(types, Target::Address(0), arguments), Err(Error::Arguments), "{} {types}", M::NAME);
        assert_eq!(asm.tail_call(types, Target::Address(0), arguments), Err(Error::Arguments), "{} {types}", M::NAME);
    }
    assert_eq!(asm.call("%q", Target::Address(0), &[]), Err(Error::Signature));
    assert_eq!((asm.position(), asm.error()), (start, None), "{}: nothing is written", M::NAME);
    asm.retv();
    asm.end().expect("refused calls leave no trace");
}
