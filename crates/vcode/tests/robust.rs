//! Bad input and too little space: the decoder reads anything, and nothing is written outside a region.
#![allow(missing_docs, reason = "a test program")]

use quaject_test_support::Random;
use quaject_vcode::{Asm, Class, Core, Error, Kind, Machine, Param, Region, Type, Workspace, decode};

#[test]
fn the_decoder_reads_any_bytes() {
    let tables = [
        &decode::X86_64,
        &decode::AARCH64,
        &decode::RISCV64,
        &decode::MIPS,
        &decode::SPARC64,
        &decode::ALPHA,
        &decode::PPC64LE,
    ];
    let mut random = Random(88_172_645_463_325_252);
    let mut bytes = [0_u8; 16];
    let mut decoded = 0;
    for round in 0..60_000 {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&random.next().to_le_bytes());
        }
        // Random bytes rarely begin with a prefix that x86 instructions have here: REX, VEX, EVEX.
        bytes[0] = match round % 4 {
            0 => 0xc4,
            1 => 0x62,
            _ => 0x40 | (bytes[0] & 0x0f),
        };
        for table in tables {
            let length = round % (bytes.len() + 1);
            if let Some(insn) = table.decode(&bytes[..length]) {
                assert!(insn.length <= length, "`{insn}` is longer than its bytes");
                assert!(!insn.to_string().is_empty());
                decoded += 1;
            }
        }
    }
    assert!(decoded > 1000, "some random words are instructions");
}

/// Writes `count` of every kind of thing into `length` bytes in the middle of a larger array.
fn fill<M: Machine>(length: usize, count: usize) -> Result<(), Error>
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    const CANARY: u8 = 0xa5;
    const MARGIN: usize = 256;
    let mut bytes = vec![CANARY; length + 2 * MARGIN];
    let region = Region::from(&mut bytes[MARGIN..MARGIN + length]);
    let mut workspace = Workspace::<M>::new();
    let mut params = [Param::NONE];
    let result = Asm::<M>::begin(region, &mut workspace, "%l", &mut params, Kind::Leaf).and_then(|mut asm| {
        let x = params[0].reg();
        let saved = asm.getreg(Class::Persistent)?;
        let float = asm.getfloat(Class::Temporary)?;
        let local = asm.local(Type::L);
        let out = asm.label();
        for index in 0..count {
            asm.addli(x, x, if M::LONG_BITS == 32 { 0x1234_5678 } else { 0x1234_5678_9abc });
            asm.divl(saved, x, x);
            asm.stl_local(saved, local);
            asm.setd(float, index as f64);
            asm.beqli(x, 0, out);
        }
        asm.bind(out);
        asm.retl(x);
        asm.end().map(|_| ())
    });
    let intact = |bytes: &[u8]| bytes.iter().all(|byte| *byte == CANARY);
    assert!(intact(&bytes[..MARGIN]), "{}: wrote in front of {length} bytes", M::NAME);
    assert!(intact(&bytes[MARGIN + length..]), "{}: wrote behind {length} bytes", M::NAME);
    result
}

fn every_length<M: Machine>()
where
    for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
{
    for length in 0..1500 {
        let result = fill::<M>(length, 10);
        assert!(matches!(result, Ok(()) | Err(Error::Overflow)), "{} in {length} bytes: {result:?}", M::NAME);
        assert!(length > 400 || result.is_err(), "{} in {length} bytes: {result:?}", M::NAME);
    }
    assert_eq!(fill::<M>(16_384, 10), Ok(()), "{}", M::NAME);
    assert_eq!(fill::<M>(1 << 20, 17), Err(Error::Constants).or_else(no_constants::<M>), "{}", M::NAME);
}

/// Some machines put floating constants together, so they cannot run out of room for them.
fn no_constants<M: Machine>(error: Error) -> Result<(), Error> {
    if ["mips", "ppc64le"].contains(&M::NAME) { Ok(()) } else { Err(error) }
}

#[test]
fn nothing_is_written_outside_a_region_of_any_length() {
    every_length::<quaject_vcode::x86_64::X86_64>();
    every_length::<quaject_vcode::aarch64::Aarch64>();
    every_length::<quaject_vcode::riscv64::Riscv64>();
    every_length::<quaject_vcode::mips::Mips>();
    every_length::<quaject_vcode::sparc64::Sparc64>();
    every_length::<quaject_vcode::alpha::Alpha>();
    every_length::<quaject_vcode::ppc64le::Ppc64le>();
}
