//! Conventions that are possible but odd: arguments in registers that functions preserve, no registers at all, handlers
//! that keep values across calls; and places for arguments that there are not.

use quaject_vcode::{
    Argument, Asm, Class, Convention, Core, Counters, Error, Kind, Machine, Param, Place, Region, Register,
    RegisterFile, Scratch, Target, Type, Workspace,
};

use crate::harness::Batch;

/// Adds functions with such conventions. `callee` is a function of C with twelve ints.
pub fn add<M: Machine>(batch: &mut Batch<'_>, callee: usize)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    add_preserved_arguments::<M>(batch);
    add_all_temporary::<M>(batch);
    add_keeping_handler::<M>(batch, callee);
    add_without_registers::<M>(batch);
}

/// Arguments travel in registers that functions preserve: the callee may change them, and the caller keeps values
/// there.
fn add_preserved_arguments<M: Machine>(batch: &mut Batch<'_>)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let convention = const {
        let (args, _) = M::INT.saved.split_at(2);
        &Convention { int: RegisterFile::new(M::INT.temp, M::INT.saved, args), ..M::CONVENTION }
    };
    let types = [Type::L; 2];
    let callee =
        batch.add_convention::<M>("arguments that it preserves", convention, &types, Kind::Leaf, |asm, params| {
            let [first, second] = [0, 1].map(|index: usize| params[index].reg());
            asm.mulli(first, first, 10);
            asm.addl(first, first, second);
            asm.setl(second, -1);
            let refused = asm.tail_call(&types, Target::Address(0), &[Argument::Constant(0), Argument::Constant(0)]);
            assert_eq!(refused, Err(Error::Arguments), "{}: the epilogue would destroy them", M::NAME);
            asm.retl(first);
        });
    let count = M::INT.saved.len();
    let caller = batch.add_convention::<M>("a caller that keeps all", convention, &[], Kind::Calls, |asm, _| {
        let kept: Vec<M::Reg> =
            (0..count).map(|_| asm.getreg(Class::Persistent).expect("there are that many")).collect();
        for (index, register) in kept.iter().enumerate() {
            asm.setl(*register, 100 << index);
        }
        let arguments = [Argument::Reg(kept[0]), Argument::Constant(7)];
        asm.call(&types, Target::Address(callee), &arguments).expect("two longs are two longs");
        let result = asm.result();
        for register in kept {
            asm.addl(result, result, register);
        }
        asm.retl(result);
    });
    let kept = (0..count).map(|index| 100_i64 << index).sum::<i64>();
    batch.add_function::<M>("arguments in preserved registers", Kind::Calls, 1007 + kept + 5, |asm, argument| {
        asm.putreg(argument);
        let five = asm.getreg(Class::Persistent).expect("one is free");
        asm.setl(five, 5);
        asm.call(&[][..], Target::Address(caller), &[]).expect("it takes nothing");
        let result = asm.result();
        asm.addl(result, result, five);
        asm.retl(result);
    });
}

/// Functions preserve nothing, and get their arguments in what functions of C preserve.
fn add_all_temporary<M: Machine>(batch: &mut Batch<'_>)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let callees = const {
        let (args, _) = M::INT.saved.split_at(2);
        &Convention { int: RegisterFile::new(M::INT.saved, &[], args), ..M::CONVENTION }
    };
    let bridging = const {
        let (args, _) = M::INT.saved.split_at(2);
        &Convention { int: RegisterFile::new(M::INT.temp, M::INT.saved, args), ..M::CONVENTION }
    };
    let types = [Type::L; 2];
    let callee = batch.add_convention::<M>("nothing is preserved", callees, &types, Kind::Leaf, |asm, params| {
        let [first, second] = [0, 1].map(|index: usize| params[index].reg());
        while let Ok(register) = asm.getreg(Class::Persistent) {
            asm.setl(register, -1);
        }
        asm.subl(first, first, second);
        asm.retl(first);
    });
    batch.is_called_by_others();
    let bridge = batch.add_convention::<M>("a bridge to it", bridging, &[], Kind::Calls, |asm, _| {
        for number in M::INT.saved {
            asm.claim(M::Reg::from_number(*number)).expect("all are free");
        }
        let arguments = [Argument::Constant(50), Argument::Constant(8)];
        asm.call(&types, Target::Address(callee), &arguments).expect("two longs are two longs");
        asm.retl(M::RESULT);
    });
    let saved = M::INT.saved.len();
    let kept = (0..saved).map(|index| 1_i64 << index).sum::<i64>();
    batch.add_function::<M>("temporaries that C preserves", Kind::Calls, 42 + kept, |asm, _| {
        let kept: Vec<M::Reg> = M::INT.saved.iter().map(|number| M::Reg::from_number(*number)).collect();
        for (index, register) in kept.iter().enumerate() {
            _ = asm.claim(*register);
            asm.setl(*register, 1 << index);
        }
        asm.call(&[][..], Target::Address(bridge), &[]).expect("it takes nothing");
        let result = asm.result();
        for register in kept {
            asm.addl(result, result, register);
        }
        asm.retl(result);
    });
}

/// A handler keeps values across the call of a function of C, which destroys what the handler preserves.
fn add_keeping_handler<M: Machine>(batch: &mut Batch<'_>, callee: usize)
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
    let handler =
        batch.add_convention::<M>("a handler that keeps values", convention, &[Type::P], Kind::Calls, |asm, params| {
            let memory = params[0].reg();
            let (kept, float) = (
                asm.getreg(Class::Persistent).expect("one is free"),
                asm.getfloat(Class::Persistent).expect("one is free"),
            );
            asm.setl(kept, 30);
            asm.setd(float, 12.0);
            let arguments: Vec<Argument<M>> = (0..12).map(Argument::Constant).collect();
            asm.call(&[Type::I; 12], Target::Address(callee), &arguments).expect("twelve ints are twelve ints");
            let other = asm.getreg(Class::Temporary).expect("one is free");
            asm.cvd2l(other, float);
            asm.addl(kept, kept, other);
            asm.stli(kept, memory, 0);
            asm.retv();
        });
    batch.add_function::<M>("values of a handler outlive its calls", Kind::Calls, 42, |asm, argument| {
        let at = asm.getreg(Class::Persistent).expect("one is free");
        asm.movp(at, argument);
        asm.call(&[Type::P], Target::Address(handler), &[Argument::Reg(argument)]).expect("it takes an address");
        let result = asm.result();
        asm.ldli(result, at, 0);
        asm.retl(result);
    });
}

/// Functions have no registers, though arguments arrive in some.
fn add_without_registers<M: Machine>(batch: &mut Batch<'_>)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let convention = const {
        &Convention {
            int: RegisterFile::new(&[], &[], M::INT.args),
            float: RegisterFile::new(&[], &[], M::FLOAT.args),
            ..M::CONVENTION
        }
    };
    let types = [Type::L; 2];
    let callee = batch.add_convention::<M>("no registers", convention, &types, Kind::Leaf, |asm, params| {
        assert_eq!(asm.getreg(Class::Temporary), Err(Error::Registers), "{}", M::NAME);
        assert_eq!(asm.getfloat(Class::Persistent), Err(Error::Registers), "{}", M::NAME);
        let (first, second) = (params[0].reg(), params[1].reg());
        asm.subl(first, first, second);
        asm.retl(first);
    });
    batch.add_function::<M>("a function without registers", Kind::Calls, 42, |asm, _| {
        let arguments = [Argument::Constant(50), Argument::Constant(8)];
        asm.call(&types, Target::Address(callee), &arguments).expect("two longs are two longs");
        let result = asm.result();
        asm.retl(result);
    });
}

/// Says where every argument travels: the first in the first register, say.
type Rule = fn(&RegisterFile, &RegisterFile, &mut Counters, Type) -> Place;

/// Conventions whose arguments travel where they cannot are refused, in parameters and in calls, and nothing is
/// written.
pub fn refuse<M: Machine>()
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let mut region = vec![0_u8; 4096];
    let mut workspace = Workspace::<M>::new();
    let rules: [(&str, Rule); 11] = [
        ("no register", |_, _, _, _| Place::Int(200)),
        ("the stack pointer", |_, _, _, _| Place::Int(M::STACK.number())),
        ("not one of the arguments", |_, _, _, _| Place::Int(M::INT.saved[0])),
        ("one register for all", |int, _, _, _| Place::Int(int.args[0])),
        ("a float for an int", |_, float, _, _| Place::Float(float.args[0])),
        ("half a pair", |int, _, _, _| Place::Pair(int.args[0], int.args[1])),
        ("a pair of one", |int, _, _, _| Place::Pair(int.args[0], int.args[0])),
        ("stack that is not counted", |_, _, _, _| Place::Stack(0)),
        ("stack far away", |_, _, counters, _| {
            counters.stack += 8;
            Place::Stack(1 << 30)
        }),
        ("crooked stack", |_, _, counters, _| {
            counters.stack += 32;
            Place::Stack(counters.stack - 30)
        }),
        ("all of the stack", |_, _, counters, _| {
            counters.stack = u32::MAX;
            Place::Stack(0)
        }),
    ];
    for (name, place) in rules {
        let convention: &'static Convention = Box::leak(Box::new(Convention { place, ..M::CONVENTION }));
        let mut params = [Param::NONE; 2];
        for kind in [Kind::Leaf, Kind::Calls] {
            let place = Region::from(&mut region[..]);
            let begun = Asm::<M>::begin_with(place, &mut workspace, &[Type::L; 2], &mut params, kind, convention);
            assert_eq!(begun.map(|_| ()), Err(Error::Place), "{}: {name}", M::NAME);
        }
        let place = Region::from(&mut region[..]);
        let mut asm = Asm::<M>::begin_with(place, &mut workspace, &[][..], &mut [], Kind::Calls, convention)
            .expect("there are no arguments");
        let start = asm.position();
        let two = [Argument::Constant(1), Argument::Constant(2)];
        assert_eq!(asm.call(&[Type::L; 2], Target::Address(0), &two), Err(Error::Place), "{}: {name}", M::NAME);
        assert_eq!(asm.tail_call(&[Type::L; 2], Target::Address(0), &two), Err(Error::Place), "{}: {name}", M::NAME);
        assert_eq!((asm.position(), asm.error()), (start, None), "{}: {name}: nothing is written", M::NAME);
        asm.retv();
        asm.end().expect("refused calls leave no trace");
    }
    // More parameters than registers are an error, not a lost value.
    let mut params = [Param::NONE; 60];
    for kind in [Kind::Leaf, Kind::Calls] {
        for ty in [Type::L, Type::D] {
            let place = Region::from(&mut region[..]);
            let begun = Asm::<M>::begin(place, &mut workspace, &[ty; 60], &mut params, kind);
            assert_eq!(begun.map(|_| ()), Err(Error::Registers), "{}: sixty parameters", M::NAME);
        }
    }
}
