//! One pass over memory, composed at run time: copy, Internet checksum, byte swap, exclusive or, CRC-32C. Written once
//! for vectors of any width; knows no processor but what its features say.

use quaject_vcode::{
    Asm, Class, Core, Error, Extension, Features, Kind, Memory, Native, Param, Vectors, Workspace, x86_64,
};

/// What a pass does besides copying and adding up.
#[derive(Clone, Copy)]
pub struct Pass {
    pub name: &'static str,
    pub swap: bool,
    pub xor: bool,
    pub crc: bool,
}

/// The passes that are measured, in the order of those in C.
pub const PASSES: [Pass; 4] = [
    Pass { name: "copy+checksum", swap: false, xor: false, crc: false },
    Pass { name: "copy+checksum+swap", swap: true, xor: false, crc: false },
    Pass { name: "copy+checksum+swap+xor", swap: true, xor: true, crc: false },
    Pass { name: "copy+checksum+swap+xor+crc", swap: true, xor: true, crc: true },
];

/// What a pass leaves behind.
#[derive(Default)]
#[repr(C)]
pub struct Sums {
    pub checksum: u64,
    pub crc: u64,
}

/// Bytes that one turn of the loop takes.
const TURN: i32 = 256;

/// Writes a pass with vectors of so many bits; none if the processor has not got them.
pub fn install(memory: &mut Memory, pass: Pass, bits: u32, features: Features) -> Option<super::Function> {
    let mut buffer = [0_u8; 4096];
    let code = write(&mut buffer, pass, bits, features).ok()?;
    let installed = memory.install(&buffer, &code).ok()?;
    // SAFETY: the code has this signature, and the memory stays until the program ends.
    Some(unsafe { std::mem::transmute::<usize, super::Function>(installed.entry) })
}

fn write(buffer: &mut [u8], pass: Pass, bits: u32, features: Features) -> Result<quaject_vcode::Code, Error> {
    let mut workspace = Workspace::<Native>::new();
    let mut params = [Param::NONE; 4];
    let mut asm = Asm::begin(buffer.into(), &mut workspace, "%p%p%ul%p", &mut params, Kind::Leaf)?;
    let [to, from, bytes, sums] = params.map(|param| param.reg());
    asm.use_features(features);
    asm.vector_width(bits)?;
    let step = asm.vector_bytes() as i32;
    let (end, sum) = (asm.getreg(Class::Temporary)?, asm.getreg(Class::Temporary)?);
    let (crc, word) = (asm.getreg(Class::Temporary)?, asm.getreg(Class::Temporary)?);

    // Sums of low and of high bytes, if the processor has a dot product; otherwise of 16-bit words.
    let dot = features.contains(x86_64::VNNI);
    let (low, high) = (asm.getvector()?, asm.getvector()?);
    let (low_ones, high_ones, key) = (asm.getvector()?, asm.getvector()?, asm.getvector()?);
    asm.vzero(low);
    asm.vzero(high);
    asm.setu(word, 0x0001);
    asm.vdupus(low_ones, word);
    asm.setu(word, 0x0100);
    asm.vdupus(high_ones, word);
    asm.setu(word, 0x5a17_c3e9);
    asm.vdupu(key, word);
    asm.setul(crc, 0xffff_ffff);
    asm.addp(end, from, bytes);

    let (again, done) = (asm.label(), asm.label());
    asm.bind(again);
    asm.bgep(from, end, done);
    for (number, at) in (0..TURN).step_by(step as usize).enumerate() {
        let x = asm.getvector()?;
        asm.vld(x, from, at);
        // Before the store: a load right after one to an address with the same low bits waits for it.
        if pass.crc {
            for at in (at..at + step).step_by(8) {
                asm.lduli(word, from, at);
                asm.crc32cul(crc, crc, word);
            }
        }
        if dot {
            asm.vdotuc(low, x, low_ones);
            asm.vdotuc(high, x, high_ones);
        } else {
            asm.vpadalus(if number % 2 == 0 { low } else { high }, x);
        }
        if pass.swap {
            asm.vbswapu(x, x);
        }
        if pass.xor {
            asm.vxor(x, x, key);
        }
        asm.vst(x, to, at);
        asm.putvector(x);
    }
    asm.addpi(from, from, TURN as u64);
    asm.addpi(to, to, TURN as u64);
    asm.j(again);
    asm.bind(done);

    asm.vsumu(sum, low);
    asm.vsumu(word, high);
    asm.cvu2ul(sum, sum);
    asm.cvu2ul(word, word);
    if dot {
        asm.lshuli(word, word, 8);
    }
    asm.addul(sum, sum, word);
    asm.stuli(sum, sums, 0);
    asm.stuli(crc, sums, 8);
    asm.vend();
    asm.retv();
    asm.end()
}
