//! What reads foreign bytes meets almost valid input: written code with bits changed, cut short, or spliced, and type
//! strings with letters changed.
#![allow(missing_docs, reason = "a test program")]

use quaject_test_support::Random;
use quaject_vcode::decode::{self, Table};
use quaject_vcode::{Asm, Class, Core, Error, Extension, Kind, Machine, Param, Region, Signature, Type, Workspace};

/// A function of instructions of every family, in bytes.
fn corpus<M: Machine>() -> Vec<u8>
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut bytes = vec![0; 1 << 16];
    let mut workspace = Workspace::<M>::new();
    let mut params = [Param::NONE; 2];
    let mut asm = Asm::<M>::begin(Region::from(&mut bytes[..]), &mut workspace, "%l%d", &mut params, Kind::Calls)
        .expect("there is room");
    let (x, f) = (params[0].reg(), params[1].float());
    let y = asm.getreg(Class::Temporary).expect("a register is free");
    let g = asm.getfloat(Class::Temporary).expect("a register is free");
    let local = asm.local(Type::L);
    let (first, last) = (asm.label(), asm.label());
    asm.bind(first);
    for constant in [0, 1, -1, 127, 128, -129, 4096, 0x1234_5678, i64::from(i32::MIN)] {
        asm.setl(y, constant);
        asm.addli(x, y, constant);
        asm.andli(y, x, constant);
        asm.xorl(x, x, y);
        asm.mull(x, x, y);
        asm.divl(y, x, y);
        asm.modii(y, x, 7);
        asm.lshli(x, x, 5);
        asm.rshl(x, x, y);
        asm.bltli(x, constant, last);
        asm.bneul(x, y, first);
    }
    for offset in [0, 8, -8, 2040, 32_768] {
        asm.ldci(y, x, offset);
        asm.ldusi(y, x, offset);
        asm.ldli(y, x, offset);
        asm.lddi(g, x, offset);
        asm.stsi(y, x, offset);
        asm.stli(y, x, offset);
        asm.uldui(y, x, offset);
    }
    asm.stl_local(x, local);
    asm.addd(g, f, g);
    asm.setd(f, 1.5);
    asm.cvd2l(y, g);
    asm.cvl2d(f, y);
    asm.bltd(f, g, last);
    asm.sqrtd(f, g);
    asm.mulhiul(x, x, y);
    asm.rotlui(x, y, 9);
    asm.casl(x, y, x);
    asm.nop();
    asm.bind(last);
    asm.jalr(x);
    asm.retl(x);
    let code = asm.end().expect("the function is valid");
    let code = bytes[code.offset..code.offset + code.instructions].to_vec();
    assert!(code.len() > 400, "{}", M::NAME);
    code
}

/// Decodes what is there; it must stay within its bytes, be the same whatever follows, and have a text.
fn decode_one(table: &'static Table, bytes: &[u8]) -> Option<usize> {
    let insn = table.decode(bytes)?;
    let text = insn.to_string();
    assert!((1..=bytes.len()).contains(&insn.length), "`{text}` is longer than {bytes:02x?}");
    assert!(!text.trim().is_empty(), "{bytes:02x?}");
    let alone = table.decode(&bytes[..insn.length]).map(|insn| insn.to_string());
    assert_eq!(alone.as_deref(), Some(text.as_str()), "{bytes:02x?} depends on what follows");
    for short in 0..insn.length {
        if let Some(other) = table.decode(&bytes[..short]) {
            assert!(other.length <= short, "`{other}` reads beyond {short} bytes of {bytes:02x?}");
        }
    }
    Some(insn.length)
}

fn mutate<M: Machine>(table: &'static Table, rounds: usize)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let code = corpus::<M>();
    let (mut at, mut starts) = (0, Vec::new());
    while at < code.len() {
        starts.push(at);
        at += decode_one(table, &code[at..]).unwrap_or_else(|| panic!("{}: {:02x?}", M::NAME, &code[at..at + 4]));
    }
    // Each bit of each instruction on its own.
    let mut known = 0;
    for start in &starts {
        let mut bytes = code[*start..code.len().min(start + 16)].to_vec();
        for bit in 0..8 * bytes.len().min(12) {
            bytes[bit / 8] ^= 1 << (bit % 8);
            known += usize::from(decode_one(table, &bytes).is_some());
            bytes[bit / 8] ^= 1 << (bit % 8);
        }
    }
    assert!(known > 100, "{}: some changes make other instructions", M::NAME);
    // Several bits, bytes of other instructions, and ends cut off.
    let mut random = Random(0x9e37_79b9_7f4a_7c15 ^ code.len() as u64);
    for _ in 0..rounds {
        let start = starts[random.index(starts.len())];
        let mut bytes = code[start..code.len().min(start + 16)].to_vec();
        for _ in 0..=random.index(4) {
            let (at, from) = (random.index(bytes.len()), random.index(code.len()));
            match random.index(3) {
                0 => bytes[at] ^= 1 << random.index(8),
                1 => bytes[at] = code[from],
                _ => bytes.insert(at, code[from]),
            }
        }
        bytes.truncate(1 + random.index(bytes.len()));
        let _ = decode_one(table, &bytes);
    }
}

#[test]
fn the_decoder_reads_changed_code() {
    let rounds = if std::env::var("QJ_TEST").as_deref() == Ok("quick") { 5_000 } else { 100_000 };
    mutate::<quaject_vcode::x86_64::X86_64>(&decode::X86_64, rounds);
    mutate::<quaject_vcode::aarch64::Aarch64>(&decode::AARCH64, rounds);
    mutate::<quaject_vcode::riscv64::Riscv64>(&decode::RISCV64, rounds);
    mutate::<quaject_vcode::mips::Mips>(&decode::MIPS, rounds);
    mutate::<quaject_vcode::sparc64::Sparc64>(&decode::SPARC64, rounds);
    mutate::<quaject_vcode::alpha::Alpha>(&decode::ALPHA, rounds);
    mutate::<quaject_vcode::ppc64le::Ppc64le>(&decode::PPC64LE, rounds);
}

/// What a type string means, by the longest name of a type that fits, without the parser.
fn expected(text: &str) -> Result<Vec<Type>, Error> {
    const NAMES: [(&str, Type); 11] = [
        ("%uc", Type::Uc),
        ("%us", Type::Us),
        ("%ul", Type::Ul),
        ("%u", Type::U),
        ("%c", Type::C),
        ("%s", Type::S),
        ("%i", Type::I),
        ("%l", Type::L),
        ("%p", Type::P),
        ("%f", Type::F),
        ("%d", Type::D),
    ];
    let mut types = Vec::new();
    let mut rest = text.trim_start_matches(' ');
    while !rest.is_empty() {
        let (name, ty) = NAMES.iter().find(|(name, _)| rest.starts_with(name)).ok_or(Error::Signature)?;
        types.push(*ty);
        rest = rest[name.len()..].trim_start_matches(' ');
    }
    Ok(types)
}

#[test]
fn type_strings_mean_what_they_say_or_are_refused() {
    let letters: Vec<char> = "%%%%%%uuilpfdcs c s x\u{e9}\0".chars().collect();
    let rounds = if std::env::var("QJ_TEST").as_deref() == Ok("quick") { 20_000 } else { 400_000 };
    let mut random = Random(88_172_645_463_325_252);
    let mut valid = 0;
    for round in 0..rounds {
        let length = random.index(4 + round % 12);
        let text: String = (0..length)
            .map(|at| {
                // Every other character a percent sign, mostly: many are valid.
                if at % 2 == 0 && random.index(8) != 0 { '%' } else { letters[random.index(letters.len())] }
            })
            .collect();
        let types: Result<Vec<Type>, Error> = Signature::from(text.as_str()).types().collect();
        assert_eq!(types, expected(&text), "{text:?}");
        valid += usize::from(types.is_ok());
        // Beginning a function with it is an error or works; there is one parameter too few if any.
        let mut bytes = [0_u8; 4096];
        let mut workspace = Workspace::<quaject_vcode::alpha::Alpha>::new();
        let mut params = vec![Param::NONE; types.as_ref().map_or(3, Vec::len)];
        let begun = Asm::begin(Region::from(&mut bytes[..]), &mut workspace, text.as_str(), &mut params, Kind::Calls);
        match (begun.map(|_| ()), types) {
            (Ok(()) | Err(Error::Registers), Ok(_)) | (Err(Error::Signature | Error::Arguments), Err(_)) => {}
            (begun, types) => panic!("{text:?}: {begun:?} of {types:?}"),
        }
    }
    assert!(valid > rounds / 20, "{valid} of {rounds} are valid");
}
