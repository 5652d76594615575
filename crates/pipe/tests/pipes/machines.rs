//! Pipes for all machines, run under emulators, against the reference.

use std::path::PathBuf;
use std::process::Command;

use crate::floats::{Width, fill_special, longest_steps, random_steps, single_operations, special_data};
use crate::support::{alphabet, describe, fill, mixed_steps};
use quaject_pipe::cross::{self, Addresses, FRAME_BYTES, Layout, MAX_BYTES};
use quaject_pipe::{Error, Step, Store, reference};
use quaject_test_support::{Effort, Random, tool};
use quaject_vcode::{Asm, Code, Core, Extension, Features, Machine, VectorMachine, Vectors};

// Where the runner maps what a pipe works on.
const CODE: u64 = 0x4800_0000;
const TABLES: u64 = 0x4c00_0000;
const SOURCE: u64 = 0x5800_0000;
const TARGET: u64 = 0x6000_0000;
const KEYS: u64 = 0x6800_0000;
/// The size of pages in the runner, which is at least that of the emulated machines.
const PAGE: u64 = 65536;
const MAX_DATA: usize = 640;
const RECORD: usize = 64 + FRAME_BYTES + 2 * MAX_DATA;

struct Tools {
    compilers: &'static [&'static str],
    /// None for the machine the tests run on.
    qemu: Option<&'static str>,
    /// Where the emulator finds the C library, for machines that cannot be linked statically.
    sysroot: Option<&'static str>,
}

struct Batch {
    layout: Layout,
    code: Vec<u8>,
    records: Vec<u8>,
    cases: Vec<Case>,
}

/// What a record tests: steps, data, key stream, and what to call it.
type Case = (Vec<Step>, Vec<u8>, Vec<u8>, String);

impl Batch {
    /// Adds code, with runs on random data.
    fn add(&mut self, steps: &[Step], name: &str, compose: impl FnOnce(&mut [u8]) -> Code, random: &mut Random) {
        let entry = self.install(compose);
        for _ in 0..Effort::wanted().pick(4, 8, 300) {
            let length = match random.index(3) {
                0 => random.index(20),
                1 => random.index(301),
                _ => random.index(MAX_DATA + 1),
            };
            let mut data = vec![0; length];
            fill(random, &mut data);
            self.add_run(entry, steps, name, data, random);
        }
    }

    /// The address at which the runner has a function.
    fn install(&mut self, compose: impl FnOnce(&mut [u8]) -> Code) -> u64 {
        let mut buffer = vec![0; MAX_BYTES];
        let code = compose(&mut buffer);
        self.code.resize(self.code.len().next_multiple_of(64) + code.offset % 64, 0);
        let entry = CODE + self.code.len() as u64;
        self.code.extend(&buffer[code.offset..code.offset + code.length]);
        entry
    }

    /// Adds a run of a function on data, which lie at random places.
    fn add_run(&mut self, entry: u64, steps: &[Step], name: &str, data: Vec<u8>, random: &mut Random) {
        let length = data.len();
        let mut place = |page: u64, multiple: usize| match random.index(3) {
            0 => page + PAGE - (length.next_multiple_of(multiple)) as u64,
            1 => page + (random.index(64) / multiple * multiple) as u64,
            // As words want it, so that code for aligned words runs.
            _ => page + 8 * random.index(8) as u64,
        };
        let multiple = if name.contains("Streaming") { 8 } else { 1 };
        let (source, target, keys) = (place(SOURCE, 1), place(TARGET, multiple), place(KEYS, 1));
        let mut key = vec![0; length];
        fill(random, &mut key);
        let addresses = Addresses { streams: keys, tables: TABLES };
        let frame = cross::frame(steps, self.layout, addresses).expect("the steps are a pipe");
        let start = self.records.len();
        for word in [entry, source, target, keys, length as u64, 0, 0] {
            self.records.extend(if self.layout.little { word.to_le_bytes() } else { word.to_be_bytes() });
        }
        self.records.resize(start + 64, 0);
        self.records.extend(frame);
        self.records.extend(&data);
        self.records.resize(start + 64 + FRAME_BYTES + MAX_DATA, 0);
        self.records.extend(&key);
        self.records.resize(start + RECORD, 0);
        let case = format!("{} {name} {length} bytes from {source:x} to {target:x}, keys {keys:x}", describe(steps));
        self.cases.push((steps.to_vec(), data, key, case));
    }

    fn run(self, machine: &str, tools: &Tools) {
        let Some(compiler) = tool(tools.compilers) else { return };
        let emulator = match tools.qemu {
            None => None,
            Some(name) => match tool(&[name]) {
                None => return,
                found => found,
            },
        };
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("pipe-{machine}-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder for test files can be made");
        let write = |name: &str, bytes: &[u8]| {
            let path = folder.join(name);
            std::fs::write(&path, bytes).expect("test files can be written");
            path
        };
        let (code, tables) = (write("code", &self.code), write("tables", &cross::tables(self.layout)));
        let tests = write("tests", &self.records);
        let (runner, out) = (folder.join("runner"), folder.join("out"));
        let mut build = Command::new(compiler);
        build.args(["-O1", "-no-pie", "-o"]).arg(&runner);
        build.arg(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/pipes/runner.c"));
        if tools.sysroot.is_none() {
            build.arg("-static");
        }
        let built = build.output().expect("the compiler starts");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let mut command = match emulator {
            Some(emulator) => {
                let mut command = Command::new(emulator);
                if let Some(sysroot) = tools.sysroot {
                    command.args(["-L", sysroot]);
                }
                command.arg(&runner);
                command
            }
            None => Command::new(&runner),
        };
        let ran = command.args([&code, &tables, &tests, &out]).output().expect("the runner starts");
        assert!(ran.status.success(), "{machine}: {} {}", ran.status, String::from_utf8_lossy(&ran.stderr));
        let records = std::fs::read(&out).expect("the runner wrote it");
        let _ = std::fs::remove_dir_all(&folder);
        for (record, (steps, mut data, key, case)) in records.chunks(RECORD).zip(self.cases) {
            let length = data.len();
            let streams = vec![&key[..]; 4];
            let expected = reference::run(&steps, &mut data, &streams);
            let word = record[48..56].try_into().expect("a word is eight bytes");
            let returned = if self.layout.little { u64::from_le_bytes(word) } else { u64::from_be_bytes(word) };
            let found = cross::report(&steps, self.layout, &record[64..64 + FRAME_BYTES], returned, length as u64);
            let found = found.expect("the steps are a pipe");
            assert!(found == expected, "{machine} {case}: {found:x?} and not {expected:x?}");
            if steps.iter().any(Step::writes) {
                let written = &record[64 + FRAME_BYTES..64 + FRAME_BYTES + length];
                assert!(written == data, "{machine} {case}: {written:02x?} and not {data:02x?}");
            }
            assert!(record[40..48] == [0; 8], "{machine} {case}: written outside");
        }
    }
}

/// Every step alone, every pair of steps, and random lists of up to eight.
fn compositions(random: &mut Random) -> Vec<Vec<Step>> {
    let steps = alphabet();
    let singles = steps.iter().map(|step| vec![step.clone()]);
    let pairs = steps.iter().flat_map(|one| steps.iter().map(|two| vec![one.clone(), two.clone()]));
    let mut all: Vec<Vec<Step>> = singles.chain(pairs).collect();
    for _ in 0..Effort::wanted().pick(20, 120, 5000) {
        let count = 3 + random.index(6);
        let mut list: Vec<Step> = (0..count).map(|_| steps[random.index(steps.len())].clone()).collect();
        let mut streams = 0;
        list.retain(|step| {
            streams += usize::from(*step == steps[7]);
            *step != steps[7] || streams <= 4
        });
        all.push(list);
    }
    for _ in 0..Effort::wanted().pick(20, 150, 5000) {
        all.push(mixed_steps(random));
    }
    all
}

fn batch<M: Machine>() -> Batch {
    Batch { layout: Layout::of::<M>(), code: Vec::new(), records: Vec::new(), cases: Vec::new() }
}

fn scalar<M: Machine>(tools: &Tools, levels: &[Features])
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut random = Random(0x1234_5678_9abc_def1);
    let mut batch = batch::<M>();
    for (number, steps) in compositions(&mut random).into_iter().enumerate() {
        // Registers of 32 bits hold no element of 64.
        if M::LONG_BITS == 32
            && let Err(error) = cross::compose::<M>(&steps, Features::NONE, &mut vec![0; MAX_BYTES])
        {
            assert_eq!(error, Error::WideElement);
            continue;
        }
        let features = levels[number % levels.len()];
        let compose = |buffer: &mut [u8]| {
            cross::compose::<M>(&steps, features, buffer).unwrap_or_else(|error| panic!("{steps:?}: {error}"))
        };
        batch.add(&steps, "integers", compose, &mut random);
    }
    add_floats::<M>(&mut batch, &mut random);
    batch.run(M::NAME, tools);
}

/// Steps on floating-point numbers: every operation on special values, then random ones, shortest data first.
fn add_floats<M: Machine>(batch: &mut Batch, random: &mut Random)
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let width = if M::LONG_BITS == 32 { Width::Any } else { Width::Wide };
    let install = |batch: &mut Batch, steps: &[Step]| {
        batch.install(|buffer| {
            let code = cross::compose::<M>(steps, Features::NONE, buffer);
            code.unwrap_or_else(|error| panic!("{}: {error}", describe(steps)))
        })
    };
    for step in single_operations(width) {
        let data = special_data(step.element());
        let steps = [Step::User(step)];
        let entry = install(batch, &steps);
        for part in data.chunks(MAX_DATA) {
            batch.add_run(entry, &steps, "floats", part.to_vec(), random);
        }
    }
    let longest = longest_steps(width);
    for round in 0..longest.len() + Effort::wanted().pick(50, 400, 10_000) {
        let steps = longest.get(round).cloned().unwrap_or_else(|| random_steps(random, width));
        let entry = install(batch, &steps);
        let (short, long) = (random.index(20), random.index(301));
        for length in [short, long] {
            let mut data = vec![0; length];
            fill_special(random, &mut data);
            batch.add_run(entry, &steps, "floats", data, random);
        }
    }
}

fn vectors<M: VectorMachine>(tools: &Tools, levels: &[Features])
where
    for<'a> Asm<'a, M>: Extension + Vectors<Vector = M::Vector> + Core<Reg = M::Reg, Float = M::Float>,
{
    let mut random = Random(0x0fed_cba9_8765_4321);
    let mut batch = batch::<M>();
    for (number, steps) in compositions(&mut random).into_iter().enumerate() {
        for (level, features) in levels.iter().enumerate().filter(|(level, _)| (number + level) % 2 == 0) {
            let store = Store::ALL[(number + level) % 3];
            let compose = |buffer: &mut [u8]| {
                let code = cross::compose_vectors::<M>(&steps, *features, store, buffer);
                code.unwrap_or_else(|error| panic!("{steps:?}: {error}"))
            };
            batch.add(&steps, &format!("{store:?} {features:?}"), compose, &mut random);
        }
    }
    batch.run(&format!("{}-vectors", M::NAME), tools);
}

const AARCH64: Tools = Tools {
    compilers: &[
        "aarch64-linux-gnu-gcc",
        "aarch64-linux-gnu-gcc-12",
        "aarch64-linux-gnu-gcc-13",
        "aarch64-linux-gnu-gcc-14",
    ],
    qemu: Some("qemu-aarch64"),
    sysroot: None,
};

#[test]
fn aarch64() {
    use quaject_vcode::aarch64::{Aarch64, CRC, DOTPROD, PMULL};
    scalar::<Aarch64>(&AARCH64, &[CRC, Features::NONE]);
    vectors::<Aarch64>(&AARCH64, &[CRC | DOTPROD | PMULL, CRC | PMULL, CRC, Features::NONE]);
}

#[test]
fn riscv64() {
    let compilers =
        &["riscv64-linux-gnu-gcc", "riscv64-linux-gnu-gcc-12", "riscv64-linux-gnu-gcc-13", "riscv64-linux-gnu-gcc-14"];
    let tools = Tools { compilers, qemu: Some("qemu-riscv64"), sysroot: None };
    scalar::<quaject_vcode::riscv64::Riscv64>(&tools, &[Features::NONE]);
}

#[test]
fn mips() {
    let compilers = &["mips-linux-gnu-gcc", "mips-linux-gnu-gcc-12", "mips-linux-gnu-gcc-13", "mips-linux-gnu-gcc-14"];
    let tools = Tools { compilers, qemu: Some("qemu-mips"), sysroot: None };
    scalar::<quaject_vcode::mips::Mips>(&tools, &[Features::NONE]);
}

#[test]
fn sparc64() {
    let compilers =
        &["sparc64-linux-gnu-gcc", "sparc64-linux-gnu-gcc-12", "sparc64-linux-gnu-gcc-13", "sparc64-linux-gnu-gcc-14"];
    let tools = Tools { compilers, qemu: Some("qemu-sparc64"), sysroot: None };
    scalar::<quaject_vcode::sparc64::Sparc64>(&tools, &[Features::NONE]);
}

#[test]
fn alpha() {
    let compilers =
        &["alpha-linux-gnu-gcc", "alpha-linux-gnu-gcc-12", "alpha-linux-gnu-gcc-13", "alpha-linux-gnu-gcc-14"];
    let tools = Tools { compilers, qemu: Some("qemu-alpha"), sysroot: Some("/usr/alpha-linux-gnu") };
    scalar::<quaject_vcode::alpha::Alpha>(&tools, &[Features::NONE]);
}

#[test]
fn ppc64le() {
    let compilers = &[
        "powerpc64le-linux-gnu-gcc",
        "powerpc64le-linux-gnu-gcc-12",
        "powerpc64le-linux-gnu-gcc-13",
        "powerpc64le-linux-gnu-gcc-14",
    ];
    let tools = Tools { compilers, qemu: Some("qemu-ppc64le"), sysroot: None };
    scalar::<quaject_vcode::ppc64le::Ppc64le>(&tools, &[Features::NONE]);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn x86_64() {
    use quaject_vcode::x86_64::{SSE42, X86_64};
    let native = Features::detect().contains(SSE42);
    let levels = if native { vec![SSE42, Features::NONE] } else { vec![Features::NONE] };
    scalar::<X86_64>(&Tools { compilers: &["gcc"], qemu: None, sysroot: None }, &levels);
}
