//! Naked routines, and branches to absolute addresses: what is emitted is what is executed, and nothing else.
#![cfg(feature = "std")]

use quaject_vcode::{
    Architecture, Asm, Code, Core, Error, Kind, Machine, Param, Region, Type, Workspace, decode::Table,
};

/// Where the code is to be executed.
const HERE: usize = 0x4000_0000;

/// The bytes and the result of a naked routine.
fn naked<M: Machine>(emit: impl FnOnce(&mut Asm<'_, M>)) -> (Vec<u8>, Result<Code, Error>)
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    let mut buffer = vec![0_u8; 512];
    let mut workspace = Workspace::<M>::new();
    let region = Region::from(&mut buffer[..]).executed_at(HERE);
    let mut asm = Asm::begin(region, &mut workspace, "", &mut [Param::NONE; 0], Kind::Naked).expect("there is room");
    emit(&mut asm);
    let code = asm.end();
    let length = code.map_or(0, |code| code.length);
    buffer.truncate(length);
    (buffer, code)
}

fn listing(table: &'static Table, mut bytes: &[u8]) -> Vec<String> {
    let mut lines = Vec::new();
    while !bytes.is_empty() {
        let decoded = table.decode(bytes).expect("it was emitted");
        lines.push(decoded.to_string());
        bytes = &bytes[decoded.length..];
    }
    lines
}

/// Runs a check on every machine.
macro_rules! on_every_machine {
    ($check:ident) => {{
        use quaject_vcode::decode;
        $check::<quaject_vcode::x86_64::X86_64>(&decode::X86_64);
        $check::<quaject_vcode::aarch64::Aarch64>(&decode::AARCH64);
        $check::<quaject_vcode::riscv64::Riscv64>(&decode::RISCV64);
        $check::<quaject_vcode::mips::Mips>(&decode::MIPS);
        $check::<quaject_vcode::sparc64::Sparc64>(&decode::SPARC64);
        $check::<quaject_vcode::alpha::Alpha>(&decode::ALPHA);
        $check::<quaject_vcode::ppc64le::Ppc64le>(&decode::PPC64LE);
    }};
}

#[test]
fn a_naked_routine_is_what_was_emitted() {
    fn check<M: Machine>(_: &'static Table)
    where
        for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
    {
        let (bytes, code) = naked::<M>(|_| {});
        assert!(bytes.is_empty(), "{}: not even a return", M::NAME);
        assert_eq!(code.map(|code| (code.entry, code.offset)), Ok((HERE, 0)), "{}", M::NAME);
        // A register that functions preserve is not saved.
        let saved = <M::Reg as quaject_vcode::Register>::from_number(M::INT.saved[0]);
        let (bytes, code) = naked::<M>(|asm| {
            asm.setl(saved, 5);
            asm.nop();
        });
        let mut alone = vec![0_u8; 512];
        let mut workspace = Workspace::<M>::new();
        let mut asm =
            Asm::<M>::begin((&mut alone[..]).into(), &mut workspace, "", &mut [Param::NONE; 0], Kind::Leaf).unwrap();
        asm.setl(saved, 5);
        asm.nop();
        let body = asm.position() - M::PROLOGUE;
        assert_eq!(bytes, &alone[M::PROLOGUE..M::PROLOGUE + body], "{}", M::NAME);
        assert_eq!(code.map(|code| code.instructions), Ok(body), "{}", M::NAME);
    }
    on_every_machine!(check);
}

#[test]
fn the_returns_of_a_naked_routine_return_at_once() {
    fn check<M: Machine>(table: &'static Table)
    where
        for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
    {
        let once = listing(table, &naked::<M>(|asm| asm.retv()).0);
        let twice = listing(
            table,
            &naked::<M>(|asm| {
                asm.retv();
                asm.retv();
            })
            .0,
        );
        assert_eq!((twice.first(), twice.last()), (once.first(), once.last()), "{}", M::NAME);
        let (bytes, code) = naked::<M>(|asm| {
            asm.retv();
            asm.nop();
        });
        let lines = listing(table, &bytes);
        assert!(code.is_ok());
        assert_eq!(lines.first(), once.first(), "{}: {lines:?}", M::NAME);
        assert_eq!(lines.iter().filter(|line| Some(*line) == once.first()).count(), 1, "{}: {lines:?}", M::NAME);
    }
    on_every_machine!(check);
}

#[test]
fn a_naked_routine_has_no_frame() {
    fn check<M: Machine>(_: &'static Table)
    where
        for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
    {
        let with_variable = naked::<M>(|asm| {
            asm.local(Type::L);
        });
        assert_eq!(with_variable.1, Err(Error::Naked), "{}", M::NAME);
        let with_call = naked::<M>(|asm| asm.jalr(<M::Reg as quaject_vcode::Register>::from_number(M::INT.temp[0])));
        assert_eq!(with_call.1, Err(Error::CallInLeaf), "{}", M::NAME);
    }
    on_every_machine!(check);
}

#[test]
fn absolute_addresses_are_reached_from_where_the_code_executes() {
    fn check<M: Machine>(table: &'static Table)
    where
        for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
    {
        let register = <M::Reg as quaject_vcode::Register>::from_number(M::INT.temp[0]);
        for address in [HERE + 0x2000, HERE - 0x2000] {
            let (bytes, code) = naked::<M>(|asm| {
                asm.nop();
                asm.jump_to(address);
                asm.branch_to(address, |asm, label| asm.beqli(register, 0, label));
            });
            assert!(code.is_ok(), "{} {address:x}: {code:?}", M::NAME);
            let mut targets = Vec::new();
            let mut at = 0;
            while at < bytes.len() {
                let decoded = table.decode(&bytes[at..]).expect("it was emitted");
                let text = decoded.to_string();
                if let Some((_, distance)) = text.rsplit_once('.')
                    && let Ok(distance) = distance.parse::<isize>()
                    && distance.unsigned_abs() > 0x1000
                {
                    targets.push((HERE + at).wrapping_add_signed(distance));
                }
                at += decoded.length;
            }
            assert_eq!(targets, [address; 2], "{}: {:?}", M::NAME, listing(table, &bytes));
        }
        for address in [HERE.wrapping_add(1 << 40), HERE.wrapping_sub(3 << 30), HERE - 1] {
            let (_, code) = naked::<M>(|asm| asm.jump_to(address));
            assert_eq!(code, Err(Error::BranchRange), "{} {address:x}", M::NAME);
        }
    }
    on_every_machine!(check);
}

#[test]
fn many_absolute_addresses_need_no_room_for_labels() {
    let (_, code) = naked::<quaject_vcode::x86_64::X86_64>(|asm| {
        for _ in 0..40 {
            asm.jump_to(HERE + 0x1000);
        }
        for _ in 0..40 {
            asm.call_to(HERE + 0x1000);
        }
    });
    assert_eq!(code.map(|code| code.length), Ok(80 * 5));
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod executed {
    use super::*;
    use quaject_vcode::{Memory, Native};

    #[test]
    fn routines_jump_to_and_call_each_other() {
        let memory = Memory::new(1 << 16).expect("the system gives pages");
        let mut workspace = Workspace::<Native>::new();
        let mut params = [Param::NONE];
        let mut begin = |kind, emit: &dyn Fn(&mut Asm<'_, Native>, <Native as Architecture>::Reg)| {
            let region = memory.region(1024).expect("there is room");
            let mut asm = Asm::begin(region, &mut workspace, "%l", &mut params, kind).expect("there is room");
            emit(&mut asm, params[0].reg());
            asm.end().expect("the routine is right").entry
        };
        let twice = begin(Kind::Naked, &|asm, x| {
            asm.addl(x, x, x);
            asm.retl(x);
        });
        let twice_and_one = begin(Kind::Calls, &|asm, x| {
            // The parameter may have been moved; the callee expects it where functions do.
            asm.movl(quaject_vcode::x86_64::T7, x);
            asm.call_to(twice);
            let result = asm.result();
            asm.addli(result, result, 1);
            asm.retl(result);
        });
        let either = begin(Kind::Naked, &|asm, x| {
            asm.branch_to(twice, |asm, label| asm.bgtli(x, 10, label));
            asm.jump_to(twice_and_one);
        });
        // SAFETY: the code takes a long and returns a long, and its memory is alive.
        let either: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(either) };
        assert_eq!([either(3), either(10), either(11)], [7, 21, 22]);
    }
}

#[test]
fn the_text_form_has_naked_routines() {
    use quaject_vcode::text;
    let (functions, diagnostics) = text::read("function successor %l naked\n  addli a0, a0, 1\n  retl a0\n");
    assert!(diagnostics.is_empty(), "{diagnostics:?}");
    for machine in text::MACHINES {
        let listing = (machine.assemble)(&functions[0]).expect("it needs no frame");
        let first = listing.entries.first().map(|entry| (entry.part, entry.start));
        assert_eq!(first, Some((text::Part::Statement(0), 0)), "{}", machine.name);
    }
}
