//! Every instruction on every machine: encodings against binutils, execution against the reference interpreter.
#![allow(unreachable_pub, missing_docs, reason = "modules of one test program")]

mod against_gcc;
mod c_conventions;
mod c_header;
mod conventions;
mod endings;
mod functions;
mod harness;
#[rustfmt::skip]
#[path = "generated/instructions.rs"]
mod instructions;
mod interpreter;
mod layers;
mod odd_conventions;
mod peephole;
mod programs;
mod types;
mod vectors;

use harness::{Batch, Tools, available};
use quaject_vcode::{Asm, Core, Extension, Features, Machine, VectorMachine, Vectors, decode};

#[cfg(target_arch = "x86_64")]
const X86_64: Tools = Tools {
    prefix: "",
    qemu: None,
    sysroot: None,
    assembler: &["--64"],
    prelude: ".text\n",
    little: true,
    table: &decode::X86_64,
};

const AARCH64: Tools = Tools {
    prefix: "aarch64-linux-gnu-",
    qemu: Some("qemu-aarch64"),
    sysroot: None,
    assembler: &["-march=armv8.2-a+crc+dotprod+aes"],
    prelude: ".text\n",
    little: true,
    table: &decode::AARCH64,
};

const RISCV64: Tools = Tools {
    prefix: "riscv64-linux-gnu-",
    qemu: Some("qemu-riscv64"),
    sysroot: None,
    assembler: &["-march=rv64g_zbb", "-mno-relax"],
    prelude: ".option norvc\n.text\n",
    little: true,
    table: &decode::RISCV64,
};

const MIPS: Tools = Tools {
    prefix: "mips-linux-gnu-",
    qemu: Some("qemu-mips"),
    sysroot: None,
    assembler: &["-mips32r2", "-mabi=32"],
    prelude: ".set noreorder\n.set noat\n.set nomacro\n.text\n",
    little: false,
    table: &decode::MIPS,
};

const SPARC64: Tools = Tools {
    prefix: "sparc64-linux-gnu-",
    qemu: Some("qemu-sparc64"),
    sysroot: None,
    assembler: &["-64", "-Av9"],
    prelude: ".register %g2,#scratch\n.register %g3,#scratch\n.text\n",
    little: false,
    table: &decode::SPARC64,
};

const ALPHA: Tools = Tools {
    prefix: "alpha-linux-gnu-",
    qemu: Some("qemu-alpha"),
    sysroot: Some("/usr/alpha-linux-gnu"),
    assembler: &["-mev67"],
    prelude: ".set noat\n.set nomacro\n.text\n",
    little: true,
    table: &decode::ALPHA,
};

const PPC64LE: Tools = Tools {
    prefix: "powerpc64le-linux-gnu-",
    qemu: Some("qemu-ppc64le"),
    sysroot: None,
    assembler: &["-a64", "-mlittle", "-mpower8"],
    prelude: ".text\n",
    little: true,
    table: &decode::PPC64LE,
};

/// `QJ_TEST=quick` tries fewer operands and compilers.
fn is_quick() -> bool {
    std::env::var("QJ_TEST").as_deref() == Ok("quick")
}

fn rounds() -> usize {
    if is_quick() { 2 } else { 10 }
}

/// Whether a quick run leaves out the machine: it tests those that need no emulator.
fn is_left_out(tools: &Tools) -> bool {
    is_quick() && tools.qemu.is_some()
}

/// What the processor has that the tests run on: the emulators have everything.
fn features<M: Machine>(tools: &Tools) -> Features {
    if tools.qemu.is_some() { M::FEATURES } else { Features::detect() }
}

fn matrix<M: Machine>(tools: &Tools)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    conventions::refuse::<M>();
    odd_conventions::refuse::<M>();
    if !available(tools) || is_left_out(tools) {
        return;
    }
    let mut batch = Batch::new::<M>(tools);
    batch.add_instructions::<M>(rounds(), features::<M>(tools));
    assert!(batch.len() > 1000, "the list of instructions is generated, and long");
    let examples = functions::examples(if is_quick() { 12 } else { 150 });
    let against = against_gcc::functions(if is_quick() { 8 } else { 120 }, &examples, M::LONG_BITS);
    batch.compile(&(functions::c_side(&examples) + &against_gcc::c_side(&against, &examples)));
    let symbols = batch.symbols();
    functions::add_control::<M>(&mut batch);
    endings::add::<M>(&mut batch, tools);
    against_gcc::add::<M>(&mut batch, &against, |name| symbols[name]);
    layers::add_patches::<M>(&mut batch);
    layers::add_virtual::<M>(&mut batch, if is_quick() { 20 } else { 400 }, &examples, |name| symbols[name]);
    layers::add_scheduled::<M>(&mut batch);
    layers::add_strength::<M>(&mut batch, if is_quick() { 20 } else { 500 });
    peephole::add::<M>(&mut batch, if is_quick() { 60 } else { 1500 });
    functions::add_calls::<M>(&mut batch, &examples, |name| symbols[name]);
    c_header::compare::<M>(tools);
    c_header::run_programs(tools);
    c_conventions::compare::<M>(tools);
    batch.check_encodings();
    batch.run();
}

/// Every vector instruction, as processors with all features and those with some have it; `lacking` are the latter, and
/// what they have not.
fn vector_matrix<M: VectorMachine>(tools: &Tools, lacking: &[(Features, &[&str])])
where
    for<'a> Asm<'a, M>: Vectors<Reg = M::Reg, Float = M::Float, Vector = M::Vector>,
{
    vectors::check_lacking::<M>();
    if !available(tools) {
        return;
    }
    let all = features::<M>(tools);
    let mut batch = Batch::new::<M>(tools);
    vectors::add::<M>(&mut batch, all, &[], rounds());
    for (missing, lacks) in lacking {
        vectors::add::<M>(&mut batch, all.without(*missing), lacks, rounds());
    }
    assert!(batch.len() > 500, "the list of instructions is generated, and long");
    batch.compile("");
    vectors::compare::<M>(tools);
    batch.check_encodings();
    batch.run();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn x86_64_vectors() {
    use quaject_vcode::x86_64::{PCLMUL, VNNI, VPCLMUL, X86_64 as Machine};
    vector_matrix::<Machine>(&X86_64, &[(VNNI, &[]), (PCLMUL | VPCLMUL, &["vclml", "vclmh"])]);
}

#[test]
fn aarch64_vectors() {
    use quaject_vcode::aarch64::{Aarch64, DOTPROD, PMULL};
    vector_matrix::<Aarch64>(&AARCH64, &[(DOTPROD, &["vdot"]), (PMULL, &["vclml", "vclmh"])]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn x86_64_instructions() {
    matrix::<quaject_vcode::x86_64::X86_64>(&X86_64);
}

#[test]
fn aarch64_instructions() {
    matrix::<quaject_vcode::aarch64::Aarch64>(&AARCH64);
}

#[test]
fn riscv64_instructions() {
    matrix::<quaject_vcode::riscv64::Riscv64>(&RISCV64);
}

#[test]
fn mips_instructions() {
    matrix::<quaject_vcode::mips::Mips>(&MIPS);
}

#[test]
fn sparc64_instructions() {
    matrix::<quaject_vcode::sparc64::Sparc64>(&SPARC64);
}

#[test]
fn alpha_instructions() {
    matrix::<quaject_vcode::alpha::Alpha>(&ALPHA);
}

#[test]
fn ppc64le_instructions() {
    matrix::<quaject_vcode::ppc64le::Ppc64le>(&PPC64LE);
}
