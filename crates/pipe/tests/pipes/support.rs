//! Memory between guard pages, and the checks that all tests of a pipe share.

use quaject_test_support::Random;
use std::ptr::null_mut;

use quaject_pipe::ir::{Element, Instruction, Operand, Operation, Order, Program, Register, Total};
use quaject_pipe::{Composer, Key, Options, Pipe, Report, Step, Store, UserStep, cross, reference};
use quaject_vcode::Features;

/// Pages that can be read and written between two that cannot.
pub struct Guarded {
    start: *mut u8,
    length: usize,
}

const PAGE: usize = 4096;

impl Guarded {
    pub fn new(pages: usize) -> Guarded {
        let length = pages * PAGE;
        // SAFETY: a mapping of its own, whose result is checked; its inner pages are then made accessible.
        let start = unsafe {
            let all = libc::mmap(
                null_mut(),
                length + 2 * PAGE,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
                -1,
                0,
            );
            assert!(all != libc::MAP_FAILED, "the system gives pages");
            let start = all.cast::<u8>().add(PAGE);
            assert_eq!(libc::mprotect(start.cast(), length, libc::PROT_READ | libc::PROT_WRITE), 0);
            start
        };
        Guarded { start, length }
    }

    pub fn all(&mut self) -> &mut [u8] {
        // SAFETY: the inner pages are accessible, and borrowed as this value is.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.length) }
    }

    /// The bytes at a place.
    pub fn at(&mut self, place: Place, length: usize) -> &mut [u8] {
        let first = place.first(self.length, length);
        &mut self.all()[first..first + length]
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, guards included.
        unsafe { libc::munmap(self.start.sub(PAGE).cast(), self.length + 2 * PAGE) };
    }
}

/// Where in guarded memory data are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// So many bytes behind the first guard page.
    Start(usize),
    /// Right before the second one.
    End,
    /// Ending so many bytes before the second one.
    Before(usize),
}

impl Place {
    /// Where data of so many bytes begin, in memory of `all` bytes.
    pub fn first(self, all: usize, length: usize) -> usize {
        match self {
            Place::Start(offset) => offset,
            Place::End => all - length,
            Place::Before(bytes) => all - length - bytes,
        }
    }
}

/// Composers for this processor and for lesser ones.
pub fn composers() -> Vec<(&'static str, Composer)> {
    let all = Features::detect();
    #[cfg(target_arch = "x86_64")]
    let levels = {
        use quaject_vcode::x86_64::{AVX2, AVX512, PCLMUL, SSE42, VNNI, VPCLMUL};
        let narrow = all.without(AVX512 | VNNI);
        vec![
            ("all", all),
            ("no VNNI", all.without(VNNI)),
            ("AVX2", narrow),
            ("SSE4.2", narrow.without(AVX2 | VPCLMUL)),
            ("no carry-less multiplication", narrow.without(PCLMUL | VPCLMUL)),
            ("SSE2", narrow.without(AVX2 | VPCLMUL | PCLMUL | SSE42)),
        ]
    };
    #[cfg(not(target_arch = "x86_64"))]
    let levels = vec![("all", all), ("none", Features::NONE)];
    let composer = |features| Composer::with_features(features).expect("the system gives code memory");
    levels.into_iter().map(|(name, features)| (name, composer(features))).collect()
}

/// Those, and the one whose pipes run by the reference implementation.
pub fn engines() -> Vec<(&'static str, Composer)> {
    composers().into_iter().chain([("reference", cross::reference_composer())]).collect()
}

/// Every kind of step.
pub fn alphabet() -> Vec<Step> {
    let key = [0xa5, 0x01, 0xff, 0x3c, 0x80, 0x7e, 0x00, 0x99];
    vec![
        Step::Copy,
        Step::Checksum,
        Step::Crc32c,
        Step::Swap16,
        Step::Swap32,
        Step::Swap64,
        Step::Xor(Key::repeat(&key).expect("eight bytes are a key")),
        Step::Xor(Key::Stream),
        Step::Count,
    ]
}

/// What tests run in.
pub struct Bench {
    pub source: Guarded,
    pub target: Guarded,
    pub keys: Guarded,
    pub random: Random,
}

const PAGES: usize = 3;
const CANARY: u8 = 0x5c;

impl Bench {
    pub fn new() -> Bench {
        let mut bench = Bench {
            source: Guarded::new(PAGES),
            target: Guarded::new(PAGES),
            keys: Guarded::new(PAGES),
            random: Random(0x9e37_79b9_7f4a_7c15),
        };
        bench.target.all().fill(CANARY);
        fill(&mut bench.random, bench.keys.all());
        bench
    }

    /// Runs a pipe and its reference on fresh data and compares everything: what is written, what is found out, and
    /// that nothing else changed.
    pub fn check(&mut self, name: &str, pipe: &Pipe, store: Store, length: usize, from: Place, to: Place) {
        let source = self.source.at(from, length);
        fill(&mut self.random, source);
        let keys = self.keys.at(Place::End, length);
        let streams: Vec<&[u8]> = vec![keys; pipe.streams()];
        let mut expected = source.to_vec();
        let report = reference::run(pipe.steps(), &mut expected, &streams);
        let before = source.to_vec();
        let target = self.target.at(to, if pipe.writes() { length } else { 0 });
        let options = Options { store: Some(store), streams: &streams, ..Options::default() };
        let found = pipe.run_with(source, target, options).expect("the lengths are right");
        let case = || format!("{} {name} {store:?} {length} bytes {from:?} {to:?}", describe(pipe.steps()));
        same(&case, &report, &found);
        assert!(source == before, "{}: the source has changed", case());
        if pipe.writes() {
            assert!(target == expected, "{}: {target:02x?}\nand not {expected:02x?}", case());
            target.fill(CANARY);
        }
        assert!(self.target.all().iter().all(|byte| *byte == CANARY), "{}: written outside", case());
    }

    /// The same where the data are.
    pub fn check_in_place(&mut self, name: &str, pipe: &Pipe, store: Store, length: usize, place: Place) {
        let data = self.target.at(place, length);
        fill(&mut self.random, data);
        let streams: Vec<&[u8]> = vec![self.keys.at(Place::End, length); pipe.streams()];
        let mut expected = data.to_vec();
        let report = reference::run(pipe.steps(), &mut expected, &streams);
        let before = data.to_vec();
        let options = Options { store: Some(store), streams: &streams, ..Options::default() };
        let found = pipe.run_in_place(data, options).expect("the lengths are right");
        let case = || format!("{} {name} {store:?} {length} bytes in place at {place:?}", describe(pipe.steps()));
        same(&case, &report, &found);
        assert!(data == if pipe.writes() { expected } else { before }, "{}", case());
        data.fill(CANARY);
        assert!(self.target.all().iter().all(|byte| *byte == CANARY), "{}: written outside", case());
    }
}

fn same(case: &dyn Fn() -> String, report: &Report, found: &Report) {
    assert!(report == found, "{}: {:x?} and not {:x?}", case(), found, report);
}

/// A step as a user may write it, valid: random instructions on random elements.
pub fn random_step(random: &mut Random) -> UserStep {
    let bytes = [1, 2, 4, 8][random.index(4)];
    let order = if random.index(2) == 0 || bytes == 1 { Order::Little } else { Order::Big };
    let mask = u64::MAX >> (64 - 8 * bytes);
    let mut written = vec![Register(0)];
    let mut has_total = false;
    let mut instructions = Vec::new();
    let constants = [random.next() & mask, random.next() & mask, 1];
    for _ in 0..random.index(7) {
        let source = written[random.index(written.len())];
        let operand = match random.index(2) {
            0 => Operand::Register(written[random.index(written.len())]),
            _ => Operand::Constant(constants[random.index(3)]),
        };
        let d = Register(random.index(4) as u8);
        let shift = Operand::Constant(random.index(8 * bytes) as u64);
        let operations = [
            Operation::Add,
            Operation::Sub,
            Operation::Mul,
            Operation::And,
            Operation::Or,
            Operation::Xor,
            Operation::Min,
            Operation::Max,
        ];
        let totals = [Total::Add, Total::Xor, Total::And, Total::Or, Total::Min, Total::Max];
        let instruction = match random.index(8) {
            0 => Instruction::Set { d, value: operand },
            1 => Instruction::Compute { operation: Operation::Shl, d, s: source, t: shift },
            2 => Instruction::Compute { operation: Operation::Shr, d, s: source, t: shift },
            3 if !has_total => {
                has_total = true;
                Instruction::Total { total: totals[random.index(6)], s: source }
            }
            _ => Instruction::Compute { operation: operations[random.index(8)], d, s: source, t: operand },
        };
        if let Instruction::Set { d, .. } | Instruction::Compute { d, .. } = instruction
            && !written.contains(&d)
        {
            written.push(d);
        }
        instructions.push(instruction);
    }
    let program = Program { name: "random".into(), instructions };
    UserStep::new(program.clone(), Element { bytes, order }).unwrap_or_else(|flaw| panic!("{program:?}: {flaw}"))
}

/// Built-in and random steps.
pub fn mixed_steps(random: &mut Random) -> Vec<Step> {
    let steps = alphabet();
    let count = 1 + random.index(4);
    let mut list: Vec<Step> = (0..count)
        .map(|_| match random.index(2) {
            0 => Step::User(random_step(random)),
            _ => steps[random.index(steps.len())].clone(),
        })
        .collect();
    if random.index(2) == 0 {
        list.push(Step::Copy);
    }
    list
}

/// What a user's step is made of, for messages.
pub fn describe(steps: &[Step]) -> String {
    let texts = steps.iter().map(|step| match step {
        Step::User(step) => format!("{:?} of {:?}", step.program(), step.element()),
        other => other.to_string(),
    });
    texts.collect::<Vec<_>>().join(" | ")
}

/// Fills with random bytes, or with many ones, because carries of checksums propagate through those.
pub fn fill(random: &mut Random, bytes: &mut [u8]) {
    let ones = random.index(4) == 0;
    for chunk in bytes.chunks_mut(8) {
        let value = if ones && random.index(4) > 0 { u64::MAX } else { random.next() };
        chunk.copy_from_slice(&value.to_le_bytes()[..chunk.len()]);
    }
}
