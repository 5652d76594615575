//! What the peephole window makes of a few instructions: the same bytes as other instructions without a window.

use quaject_vcode::layers::peephole::Peephole;
use quaject_vcode::layers::strength::{self, Integer};
use quaject_vcode::riscv64::{FT0, FT1, Float, Reg, Riscv64, S0, S1, T0, T1, T2, T3};
use quaject_vcode::{Asm, Class, Core, Error, Extension, Kind, Label, Local, Region, Workspace};

type Window<'a> = Peephole<'a, Riscv64>;

/// What a function under construction has for its body: a variable, and a label that is yet to come.
#[derive(Clone, Copy)]
struct Given {
    local: Local,
    ahead: Label,
}

fn begin<'a>(bytes: &'a mut [u8], workspace: &'a mut Workspace<Riscv64>) -> (Asm<'a, Riscv64>, Given) {
    let mut asm = Asm::begin(Region::from(bytes), workspace, &[][..], &mut [], Kind::Leaf).expect("there is room");
    let given = Given { local: asm.local_bytes(16, 8), ahead: asm.label() };
    (asm, given)
}

fn through(write: impl Fn(&mut Window<'_>, Given)) -> Vec<u8> {
    let (mut bytes, mut workspace) = (vec![0; 4096], Workspace::new());
    let (asm, given) = begin(&mut bytes, &mut workspace);
    let mut asm = Window::new(asm);
    write(&mut asm, given);
    asm.bind(given.ahead);
    let code = asm.end().expect("the function is right");
    bytes[code.offset..code.offset + code.length].to_vec()
}

fn without(write: impl Fn(&mut Asm<'_, Riscv64>, Given)) -> Vec<u8> {
    let (mut bytes, mut workspace) = (vec![0; 4096], Workspace::new());
    let (mut asm, given) = begin(&mut bytes, &mut workspace);
    write(&mut asm, given);
    asm.bind(given.ahead);
    let code = asm.end().expect("the function is right");
    bytes[code.offset..code.offset + code.length].to_vec()
}

/// Whether the window makes of the first what the second writes.
macro_rules! becomes {
    ($(|$asm:ident, $given:tt| { $($first:tt)* } => { $($second:tt)* })*) => {
        $(
            let written = through(|$asm: &mut Window<'_>, $given: Given| { let _ = ($given, &$asm); $($first)* });
            let expected = without(|$asm: &mut Asm<'_, Riscv64>, $given: Given| { let _ = ($given, &$asm); $($second)* });
            assert_eq!(written, expected, "{}", stringify!($($first)* => $($second)*));
        )*
    };
}

#[test]
fn copies() {
    becomes! {
        |a, g| { a.movl(T0, T0) } => {}
        |a, g| { a.movl(T0, T1); a.movl(T1, T0) } => { a.movl(T0, T1) }
        |a, g| { a.movl(T0, T1); a.movl(T0, T1) } => { a.movl(T0, T1) }
        |a, g| { a.movl(T0, T1); a.addl(T0, T0, T2) } => { a.addl(T0, T1, T2) }
        |a, g| { a.movl(T0, T1); a.addl(T2, T0, T3); a.putreg(T0) } => { a.addl(T2, T1, T3) }
        |a, g| { a.addl(T0, T1, T2); a.movl(T3, T0); a.putreg(T0) } => { a.addl(T3, T1, T2) }
        |a, g| { a.ldli(T0, T1, 8); a.movl(T3, T0); a.putreg(T0) } => { a.ldli(T3, T1, 8) }
        |a, g| { a.movd(FT0, FT1); a.addd(FT0, FT0, FT1) } => { a.addd(FT0, FT1, FT1) }
        |a, g| { a.comi(T0, T1); a.movi(T2, T0); a.putreg(T0) } => { a.comi(T2, T1) }
    }
}

#[test]
fn what_a_copy_does_not_allow() {
    becomes! {
        |a, g| { a.movl(T0, T1); a.addl(T1, T1, T2); a.addl(T3, T0, T2) } => { a.movl(T0, T1); a.addl(T1, T1, T2); a.addl(T3, T0, T2) }
        |a, g| { a.movl(T0, T1); a.asm().nop(); a.addl(T2, T0, T3) } => { a.movl(T0, T1); a.nop(); a.addl(T2, T0, T3) }
        |a, g| { a.movi(T0, T1); a.addl(T2, T0, T3) } => { a.movi(T0, T1); a.addl(T2, T0, T3) }
        |a, g| { a.movl(T0, T1); a.putreg(T1); a.setl(T1, 5); a.addl(T2, T0, T1) } => { a.movl(T0, T1); a.setl(T1, 5); a.addl(T2, T0, T1) }
        |a, g| { a.addl(T0, T1, T2); a.movl(T3, T0); a.retl(T0) } => { a.addl(T0, T1, T2); a.movl(T3, T0); a.retl(T0) }
        |a, g| { a.addl(T0, T1, T2); a.addl(S0, T3, T3); a.movl(T3, T0); a.putreg(T0) }
            => { a.addl(T0, T1, T2); a.addl(S0, T3, T3); a.movl(T3, T0) }
        |a, g| { a.lshl(T0, T0, T2); a.movl(T1, T0); a.putreg(T0) } => { a.lshl(T0, T0, T2); a.movl(T1, T0) }
    }
}

#[test]
fn constants() {
    becomes! {
        |a, g| { a.setl(T0, 5); a.addl(T1, T2, T0); a.putreg(T0) } => { a.addli(T1, T2, 5) }
        |a, g| { a.setl(T0, 5); a.addl(T1, T0, T2); a.putreg(T0) } => { a.addli(T1, T2, 5) }
        |a, g| { a.setl(T0, 5); a.addl(T0, T2, T0) } => { a.addli(T0, T2, 5) }
        |a, g| { a.setl(T0, 5); a.subl(T1, T2, T0); a.putreg(T0) } => { a.subli(T1, T2, 5) }
        |a, g| { a.setl(T0, 5); a.subl(T1, T0, T2); a.putreg(T0) } => { a.setl(T0, 5); a.subl(T1, T0, T2) }
        |a, g| { a.seti(T0, 3); a.lshi(T1, T2, T0); a.putreg(T0) } => { a.lshii(T1, T2, 3) }
        |a, g| { a.seti(T0, 32); a.lshi(T1, T2, T0); a.putreg(T0) } => { a.seti(T0, 32); a.lshi(T1, T2, T0) }
        |a, g| { a.seti(T0, 3); a.seti(T1, 4); a.muli(T2, T0, T1); a.putreg(T0); a.putreg(T1) } => { a.seti(T2, 12) }
        |a, g| { a.setu(T0, 0); a.subui(T0, T0, 1) } => { a.setu(T0, 0); a.subui(T0, T0, 1) }
        |a, g| { a.seti(T0, -7); a.rshii(T0, T0, 1) } => { a.seti(T0, -4) }
        |a, g| { a.seti(T0, 7); a.cvi2l(T1, T0); a.negl(T1, T1); a.putreg(T0) } => { a.setl(T1, -7) }
        |a, g| { a.seti(T0, 7); a.noti(T0, T0) } => { a.seti(T0, 0) }
        |a, g| { a.setl(T0, 7); a.setl(T0, 7) } => { a.setl(T0, 7) }
        |a, g| { a.setl(T0, 7); a.setl(T0, 8) } => { a.setl(T0, 8) }
        |a, g| { a.setl(T0, 0); a.addli(T1, T0, 1 << 40) } => { a.setl(T0, 0); a.addli(T1, T0, 1 << 40) }
        |a, g| { a.setl(T0, 1 << 40); a.movl(T1, T0) } => { a.setl(T0, 1 << 40); a.movl(T1, T0) }
        |a, g| { a.setl(T0, 1 << 40); a.movl(T1, T0); a.putreg(T0) } => { a.setl(T1, 1 << 40) }
        |a, g| { a.setd(FT0, 2.5); a.setd(FT0, 2.5) } => { a.setd(FT0, 2.5) }
        |a, g| { a.setd(FT0, 2.5); a.setd(FT0, -2.5) } => { a.setd(FT0, -2.5) }
    }
}

#[test]
fn identities() {
    becomes! {
        |a, g| { a.addli(T0, T0, 0) } => {}
        |a, g| { a.addli(T0, T1, 0) } => { a.movl(T0, T1) }
        |a, g| { a.mulli(T0, T1, 1) } => { a.movl(T0, T1) }
        |a, g| { a.mulli(T0, T1, 0) } => { a.setl(T0, 0) }
        |a, g| { a.divui(T0, T0, 1) } => {}
        |a, g| { a.divui(T0, T1, 0) } => { a.divui(T0, T1, 0) }
        |a, g| { a.andui(T0, T0, u32::MAX) } => {}
        |a, g| { a.andii(T0, T1, 0) } => { a.seti(T0, 0) }
        |a, g| { a.xorl(T0, T1, T1) } => { a.setl(T0, 0) }
        |a, g| { a.orl(T0, T1, T1) } => { a.movl(T0, T1) }
        |a, g| { a.subd(FT0, FT1, FT1) } => { a.subd(FT0, FT1, FT1) }
        |a, g| { a.setl(T0, 0); a.addl(T1, T0, T2); a.putreg(T0) } => { a.movl(T1, T2) }
    }
}

#[test]
fn sums() {
    becomes! {
        |a, g| { a.addli(T0, T0, 4); a.addli(T0, T0, 8) } => { a.addli(T0, T0, 12) }
        |a, g| { a.addli(T0, T0, 4); a.subli(T0, T0, 4) } => {}
        |a, g| { a.addui(T0, T1, 4); a.subui(T0, T0, 9) } => { a.subui(T0, T1, 5) }
        |a, g| { a.addli(T0, T1, 200); a.addli(T0, T0, 200) } => { a.addli(T0, T1, 200); a.addli(T0, T0, 200) }
        |a, g| { a.addli(T0, T0, 4); a.movl(T1, T0); a.addli(T0, T0, 4) } => { a.addli(T0, T0, 4); a.movl(T1, T0); a.addli(T0, T0, 4) }
    }
}

#[test]
fn memory() {
    becomes! {
        |a, g| { a.stli(T0, S0, 8); a.ldli(T1, S0, 8) } => { a.stli(T0, S0, 8); a.movl(T1, T0) }
        |a, g| { a.stli(T0, S0, 8); a.ldli(T0, S0, 8) } => { a.stli(T0, S0, 8) }
        |a, g| { a.ldli(T0, S0, 8); a.stli(T0, S0, 8) } => { a.ldli(T0, S0, 8) }
        |a, g| { a.ldli(T0, S0, 8); a.ldli(T1, S0, 8) } => { a.ldli(T0, S0, 8); a.movl(T1, T0) }
        |a, g| { a.stli(T0, S0, 8); a.stli(T1, S0, 8) } => { a.stli(T1, S0, 8) }
        |a, g| { a.sti_local(T0, g.local); a.ldi_local(T1, g.local) } => { a.sti_local(T0, g.local); a.movi(T1, T0) }
        |a, g| { a.stdi(FT0, S0, 8); a.lddi(FT1, S0, 8) } => { a.stdi(FT0, S0, 8); a.movd(FT1, FT0) }
        |a, g| { a.addpi(T0, S0, 16); a.ldli(T1, T0, 8); a.putreg(T0) } => { a.ldli(T1, S0, 24) }
        |a, g| { a.setl(T0, 16); a.stl(T1, S0, T0); a.putreg(T0) } => { a.stli(T1, S0, 16) }
        |a, g| { a.setl(T0, 16); a.ldl(T0, S0, T0) } => { a.ldli(T0, S0, 16) }
        |a, g| { a.stli(T0, S0, 8); a.stli(T1, S0, 16); a.ldli(T2, S0, 8) } => { a.stli(T0, S0, 8); a.stli(T1, S0, 16); a.movl(T2, T0) }
    }
}

#[test]
fn what_memory_does_not_allow() {
    becomes! {
        |a, g| { a.stli(T0, S0, 8); a.stli(T1, S1, 8); a.ldli(T2, S0, 8) } => { a.stli(T0, S0, 8); a.stli(T1, S1, 8); a.ldli(T2, S0, 8) }
        |a, g| { a.stli(T0, S0, 8); a.stii(T1, S0, 12); a.ldli(T2, S0, 8) } => { a.stli(T0, S0, 8); a.stii(T1, S0, 12); a.ldli(T2, S0, 8) }
        |a, g| { a.stci(T0, S0, 8); a.ldci(T2, S0, 8) } => { a.stci(T0, S0, 8); a.ldci(T2, S0, 8) }
        |a, g| { a.stli(T0, S0, 8); a.stii(T1, S0, 8) } => { a.stli(T0, S0, 8); a.stii(T1, S0, 8) }
        |a, g| { a.stli(T0, S0, 8); a.ldli(T2, S1, 8); a.stli(T1, S0, 8) } => { a.stli(T0, S0, 8); a.ldli(T2, S1, 8); a.stli(T1, S0, 8) }
        |a, g| { a.stli(T0, S0, 8); a.addl(S0, S0, T1); a.ldli(T2, S0, 8) } => { a.stli(T0, S0, 8); a.addl(S0, S0, T1); a.ldli(T2, S0, 8) }
        |a, g| { a.ldli(S0, S0, 8); a.ldli(T0, S0, 8) } => { a.ldli(S0, S0, 8); a.ldli(T0, S0, 8) }
        |a, g| { a.stli(T0, S0, 8); a.flush(); a.ldli(T1, S0, 8) } => { a.stli(T0, S0, 8); a.ldli(T1, S0, 8) }
        |a, g| { a.ldli(T0, S0, 8); a.putreg(T0) } => { a.ldli(T0, S0, 8) }
        |a, g| { a.sti_local(T0, g.local); a.stii(T1, S0, 0); a.ldi_local(T2, g.local) } => { a.sti_local(T0, g.local); a.stii(T1, S0, 0); a.ldi_local(T2, g.local) }
        |a, g| { a.stli(T0, S0, 8); a.movl(T1, T1); a.casl(T1, S0, T2); a.ldli(T1, S0, 8) }
            => { a.stli(T0, S0, 8); a.casl(T1, S0, T2); a.ldli(T1, S0, 8) }
    }
}

#[test]
fn branches() {
    becomes! {
        |a, g| { a.setl(T0, 0); a.bltl(T1, T0, g.ahead); a.putreg(T0) } => { a.bltli(T1, 0, g.ahead) }
        |a, g| { a.setl(T0, 9); a.beql(T1, T0, g.ahead); a.putreg(T0) } => { a.beqli(T1, 9, g.ahead) }
        |a, g| { a.setl(T0, 9); a.bltl(T0, T1, g.ahead); a.putreg(T0) } => { a.bgtli(T1, 9, g.ahead) }
        |a, g| { a.setl(T0, 9); a.bltl(T0, T1, g.ahead); a.movl(T2, T2); a.putreg(T0) } => { a.setl(T0, 9); a.bltl(T0, T1, g.ahead) }
        |a, g| { a.setl(T0, 9); a.bltli(T0, 10, g.ahead); a.putreg(T0) } => { a.setl(T0, 9); a.j(g.ahead) }
        |a, g| { a.setl(T0, 9); a.bltli(T0, 9, g.ahead); a.putreg(T0) } => {}
        |a, g| { a.bgel(T0, T0, g.ahead) } => { a.j(g.ahead) }
        |a, g| { a.bltl(T0, T0, g.ahead) } => {}
        |a, g| { a.setul(T0, 0); a.bltul(T1, T0, g.ahead) } => { a.setul(T0, 0); a.bltul(T1, T0, g.ahead) }
    }
}

#[test]
fn a_register_read_behind_a_branch_that_goes_back_keeps_its_value() {
    becomes! {
        |a, g| { let again = a.label(); a.bind(again); a.addl(T1, T1, T0); a.setl(T0, 9); a.bltl(T1, T0, again); a.putreg(T0) }
            => { let again = a.label(); a.bind(again); a.addl(T1, T1, T0); a.setl(T0, 9); a.bltl(T1, T0, again) }
    }
}

#[test]
fn what_would_be_an_error_stays_one() {
    use quaject_vcode::mips::{Mips, T0, T1};
    let (mut bytes, mut workspace) = (vec![0; 4096], Workspace::<Mips>::new());
    let asm = Asm::begin(Region::from(&mut bytes[..]), &mut workspace, &[][..], &mut [], Kind::Leaf).expect("room");
    let mut asm = Peephole::new(asm);
    asm.setl(T0, 1 << 40);
    asm.setl(T0, 1);
    asm.addl(T1, T1, T0);
    assert_eq!(asm.end(), Err(Error::Immediate));
    let (mut bytes, mut workspace) = (vec![0; 4096], Workspace::<Mips>::new());
    let asm = Asm::begin(Region::from(&mut bytes[..]), &mut workspace, &[][..], &mut [], Kind::Leaf).expect("room");
    let mut asm = Peephole::new(asm);
    asm.lshii(T0, T1, 32);
    asm.seti(T0, 1);
    assert_eq!(asm.end(), Err(Error::Immediate));
}

#[test]
fn other_layers_write_through_it() {
    let written = through(|asm, _| {
        asm.setl(T1, 3);
        strength::multiply(asm, Integer::L, T0, T1, 8);
    });
    assert_eq!(written, without(|asm, _| [(T1, 3), (T0, 24)].into_iter().for_each(|(d, i)| asm.setl(d, i))));
    let mut bytes = vec![0; 4096];
    let mut workspace = Workspace::new();
    let mut asm = Window::new(begin(&mut bytes, &mut workspace).0);
    let register: Reg = asm.getreg(Class::Temporary).expect("all are free");
    let float: Float = asm.getfloat(Class::Temporary).expect("all are free");
    assert_eq!(asm.claim(register), Err(Error::RegisterTaken));
    asm.putfloat(float);
    asm.putreg(register);
    assert_eq!(asm.claim(register), Ok(()));
    assert_eq!(asm.error(), None);
}

#[test]
fn the_oldest_is_written_when_the_window_is_full() {
    becomes! {
        |a, g| { a.addl(T0, T1, T2); a.addl(T1, T2, T3); a.addl(T2, T3, T0); a.addl(T3, T0, T1); a.addl(T0, T1, T2); a.minl(T0, T1, T2) }
            => { a.addl(T0, T1, T2); a.addl(T1, T2, T3); a.addl(T2, T3, T0); a.addl(T3, T0, T1); a.minl(T0, T1, T2) }
        |a, g| { a.setl(T0, 7); a.addl(T1, T1, T1); a.addl(T2, T2, T2); a.addl(T3, T3, T3); a.addl(S0, S0, S0); a.addl(S1, S1, T0); a.putreg(T0) }
            => { a.setl(T0, 7); a.addl(T1, T1, T1); a.addl(T2, T2, T2); a.addl(T3, T3, T3); a.addl(S0, S0, S0); a.addl(S1, S1, T0) }
    }
}
