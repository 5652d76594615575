//! Functions that call themselves, and local procedures, also through the layers.
#![allow(missing_docs, reason = "a test program")]
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "riscv64")))]

use quaject_vcode::layers::peephole::Peephole;
use quaject_vcode::layers::virtual_registers::{Virtual, VirtualArgument, VirtualTarget};
use quaject_vcode::{Argument, Asm, Class, Code, Core, Kind, Memory, Native, Param, Target, Workspace};

/// Calls a function of one long.
fn run(build: impl FnOnce(Asm<'_, Native>, Param<Native>) -> Code, argument: i64) -> i64 {
    let memory = Memory::new(1 << 14).expect("the system gives memory");
    let mut workspace = Workspace::<Native>::new();
    let mut params = [Param::NONE];
    let region = memory.region(1 << 13).expect("there is room");
    let asm = Asm::begin(region, &mut workspace, "%l", &mut params, Kind::Calls).expect("there is room");
    let code = build(asm, params[0]);
    // SAFETY: the code takes and returns a long, and the memory outlives the call.
    let function: extern "C" fn(i64) -> i64 = unsafe { std::mem::transmute(code.entry) };
    function(argument)
}

#[test]
fn a_function_calls_itself() {
    let fib = |mut asm: Asm<'_, Native>, param: Param<Native>| {
        let n = param.reg();
        let sum = asm.getreg(Class::Persistent).expect("one is free");
        let more = asm.label();
        asm.bgeli(n, 2, more);
        asm.retl(n);
        asm.bind(more);
        asm.subli(sum, n, 1);
        asm.call("%l", Target::Itself, &[Argument::Reg(sum)]).expect("it matches");
        asm.movl(sum, asm.result());
        asm.subli(n, n, 2);
        asm.call("%l", Target::Itself, &[Argument::Reg(n)]).expect("it matches");
        asm.addl(sum, sum, asm.result());
        asm.retl(sum);
        asm.end().expect("the function is right")
    };
    assert_eq!(run(fib, 20), 6765);
}

#[test]
fn a_function_on_virtual_registers_calls_itself_and_procedures() {
    // With so many values that some of them, and the return address, are on the stack.
    let function = |asm: Asm<'_, Native>, param: Param<Native>| {
        let mut slots = [0; 64];
        let mut asm = Virtual::new(asm, &mut slots);
        let n = asm.param(param);
        let values: Vec<_> = (0..30).map(|_| asm.reg(Class::Persistent)).collect();
        let (link, sum) = (asm.reg(Class::Persistent), asm.reg(Class::Persistent));
        let (procedure, more) = (asm.label(), asm.label());
        for (value, at) in values.iter().zip(0..) {
            asm.setl(*value, at);
        }
        asm.setl(sum, 0);
        asm.bgtli(n, 0, more);
        asm.retl(sum);
        asm.bind(more);
        asm.subli(n, n, 1);
        asm.call("%l", VirtualTarget::Itself, &[VirtualArgument::Reg(n)]).expect("it matches");
        asm.take_result(sum);
        asm.jal(procedure);
        asm.jal(procedure);
        asm.retl(sum);
        asm.procedure(procedure, link);
        for value in &values {
            asm.addl(sum, sum, *value);
        }
        asm.jr(link);
        asm.end().expect("the function is right")
    };
    assert_eq!(run(function, 10), 10 * 2 * (0..30).sum::<i64>());
}

#[test]
fn a_procedure_changes_what_the_peephole_window_knows() {
    let function = |asm: Asm<'_, Native>, param: Param<Native>| {
        let mut asm = Peephole::new(asm);
        let n = param.reg();
        let link = asm.getreg(Class::Persistent).expect("one is free");
        let (procedure, body) = (asm.label(), asm.label());
        asm.j(body);
        asm.procedure(procedure, link);
        asm.addli(n, n, 5);
        asm.jr(link);
        asm.bind(body);
        asm.setl(n, 1);
        asm.jal(procedure);
        asm.addli(n, n, 1);
        asm.jal(procedure);
        asm.retl(n);
        asm.end().expect("the function is right")
    };
    assert_eq!(run(function, 0), 12);
}
