//! Floating point in steps and handlers: known results, and code of all engines against the reference. Special values,
//! such as NaNs, infinities and denormal numbers, are most of the data.

use quaject_pipe::handler::{Handler, Verdict};
use quaject_pipe::ir::{Element, FloatFormat, MAX_STEP_INSTRUCTIONS, Order, Total};
use quaject_pipe::{Composer, Definitions, Options, Pipe, Report, Step, Store, UserStep, cross, reference};
use quaject_test_support::{Effort, Random};
use quaject_vcode::Features;

use crate::support::{alphabet, describe, engines};

/// Bits of numbers at which something changes: signs, the ends of ranges, rounding, NaNs of all kinds.
pub const SPECIAL_F32: [u32; 47] = [
    0,
    0x8000_0000,
    1,
    0x8000_0001,
    0x007f_ffff,
    0x807f_ffff,
    0x0080_0000,
    0x0080_0001,
    0x8080_0000,
    0x0000_ffff,
    0x3f80_0000,
    0xbf80_0000,
    0x3f7f_ffff,
    0x3f80_0001,
    0x3f00_0000,
    0xbf00_0000,
    0xbf7f_ffff,
    0x3fc0_0000,
    0x4020_0000,
    0x42fe_0000,
    0x42ff_0000,
    0x4300_0000,
    0xc300_0000,
    0xc300_ff00,
    0xc301_0000,
    0x437f_8000,
    0x4380_0000,
    0x46ff_ff00,
    0x477f_ffff,
    0x4780_0000,
    0x4b80_0000,
    0x4eff_ffff,
    0x4f00_0000,
    0xcf00_0000,
    0xcf00_0001,
    0x4f7f_ffff,
    0x4f80_0000,
    0x5eff_ffff,
    0x5f00_0000,
    0xdf00_0000,
    0x5f7f_ffff,
    0x5f80_0000,
    0x7f7f_ffff,
    0x7f80_0000,
    0xff80_0000,
    0x7fc0_0000,
    0xffc1_2345,
];

pub const SPECIAL_F64: [u64; 40] = [
    0,
    0x8000_0000_0000_0000,
    1,
    0x8000_0000_0000_0001,
    0x000f_ffff_ffff_ffff,
    0x0010_0000_0000_0000,
    0x8010_0000_0000_0000,
    0x3ff0_0000_0000_0000,
    0xbff0_0000_0000_0000,
    0x3fef_ffff_ffff_ffff,
    0xbfef_ffff_ffff_ffff,
    0x3ff0_0000_0000_0001,
    0x3fe0_0000_0000_0000,
    0x4008_0000_0000_0000,
    0x406f_f000_0000_0000,
    0xc060_0000_0000_0000,
    0x40ef_fff0_0000_0000,
    0x41df_ffff_ffff_ffff,
    0x41e0_0000_0000_0000,
    0xc1e0_0000_0000_0000,
    0xc1e0_0000_001f_ffff,
    0x41ef_ffff_ffff_ffff,
    0x41f0_0000_0000_0000,
    0x4340_0000_0000_0000,
    0x43df_ffff_ffff_ffff,
    0x43e0_0000_0000_0000,
    0xc3e0_0000_0000_0000,
    0xc3e0_0000_0000_0001,
    0x43ef_ffff_ffff_ffff,
    0x43f0_0000_0000_0000,
    // Around the greatest and the least numbers of 32 bits.
    0x47ef_ffff_e000_0000,
    0x47ef_ffff_f000_0000,
    0x36a0_0000_0000_0000,
    0x3690_0000_0000_0000,
    0x380f_ffff_f000_0000,
    0x7fef_ffff_ffff_ffff,
    0x7ff0_0000_0000_0000,
    0xfff0_0000_0000_0000,
    0x7ff0_0000_0000_0001,
    0xfff8_0000_dead_beef,
];

const INTEGERS: [u64; 12] = [
    0x7f,
    0x80,
    0x7fff,
    0x8000,
    0x0100_0001,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    0x0020_0000_0000_0001,
    0x7fff_ffff_ffff_ffff,
    0x8000_0000_0000_0000,
    0xffff_ffff_ffff_ffff,
];

const OPERATIONS: [&str; 12] = ["add", "sub", "mul", "div", "min", "max", "eq", "ne", "lt", "le", "gt", "ge"];
const FUNCTIONS: [&str; 3] = ["neg", "abs", "sqrt"];
const INTEGER_FORMATS: [&str; 8] = ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64"];
const ELEMENTS: [&str; 7] = ["u8", "u16le", "u16be", "u32le", "u32be", "u64le", "u64be"];

/// Which machines a step is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// Those with registers of 32 bits too.
    Any,
    /// Those with registers of 64 bits.
    Wide,
}

pub fn step(text: &str) -> UserStep {
    let (mut found, diagnostics) = Definitions::read(text);
    assert!(diagnostics.is_empty(), "{text}: {diagnostics:?}");
    found.steps.remove(0)
}

/// Every operation with every special value as its second operand, every function and every conversion.
pub fn single_operations(width: Width) -> Vec<UserStep> {
    let mut lines = Vec::new();
    for operation in OPERATIONS {
        lines.extend(SPECIAL_F32.map(|bits| (4, format!("{operation}.f32 r0, r0, {bits:#x}"))));
        lines.extend(SPECIAL_F64.map(|bits| (8, format!("{operation}.f64 r0, r0, {bits:#x}"))));
    }
    for (format, bytes) in [("f32", 4), ("f64", 8)] {
        lines.extend(FUNCTIONS.map(|function| (bytes, format!("{function}.{format} r0, r0"))));
        for integer in INTEGER_FORMATS {
            let bytes = if integer.ends_with("64") { 8 } else { bytes };
            lines.push((bytes, format!("cvt.{format}.{integer} r0, r0")));
            lines.push((bytes, format!("cvt.{integer}.{format} r0, r0")));
        }
    }
    lines.push((8, "cvt.f64.f32 r0, r0".into()));
    lines.push((8, "cvt.f32.f64 r0, r0".into()));
    let fits = |(bytes, _): &(usize, String)| width == Width::Wide || *bytes == 4;
    let steps = lines.into_iter().filter(fits).enumerate().map(|(number, (bytes, line))| {
        let order = if number % 2 == 0 { "le" } else { "be" };
        step(&format!("step single u{}{order}\n  {line}\nend\n", 8 * bytes))
    });
    steps.collect()
}

/// All special values as elements.
pub fn special_data(element: Element) -> Vec<u8> {
    let floats = SPECIAL_F32.into_iter().map(u64::from).chain(SPECIAL_F64);
    let write = |value: u64| {
        let mut bytes = value.to_le_bytes()[..element.bytes].to_vec();
        if element.order == Order::Big {
            bytes.reverse();
        }
        bytes
    };
    floats.chain(INTEGERS).flat_map(write).collect()
}

/// Fills with special values of random sizes and orders, and with random bytes.
pub fn fill_special(random: &mut Random, bytes: &mut [u8]) {
    for chunk in bytes.chunks_mut(8) {
        let single = |random: &mut Random| u64::from(SPECIAL_F32[random.index(SPECIAL_F32.len())]);
        let value = match random.index(6) {
            0 | 1 => single(random) | single(random) << 32,
            2 | 3 => SPECIAL_F64[random.index(SPECIAL_F64.len())],
            4 => INTEGERS[random.index(INTEGERS.len())],
            _ => random.next(),
        };
        let bytes = match random.index(3) {
            0 | 1 => value.to_le_bytes(),
            _ => value.to_be_bytes(),
        };
        chunk.copy_from_slice(&bytes[..chunk.len()]);
    }
}

/// The lines of a random step on floating-point numbers and integers.
fn random_lines(random: &mut Random, width: Width, element_bits: usize) -> Vec<String> {
    let mut written = vec!["r0"];
    let mut lines = Vec::new();
    for _ in 0..=random.index(6) {
        let s = written[random.index(written.len())];
        let d = ["r0", "r1", "r2", "r3"][random.index(4)];
        let (format, bits) = match (width, random.index(2)) {
            (Width::Wide, 0) => ("f64", SPECIAL_F64[random.index(SPECIAL_F64.len())]),
            (Width::Wide | Width::Any, _) => ("f32", SPECIAL_F32[random.index(SPECIAL_F32.len())].into()),
        };
        let integer = INTEGER_FORMATS[random.index(if width == Width::Wide { 8 } else { 6 })];
        let operation = OPERATIONS[random.index(OPERATIONS.len())];
        lines.push(match random.index(9) {
            0 | 1 => format!("{operation}.{format} {d}, {s}, {bits:#x}"),
            2 | 3 => format!("{operation}.{format} {d}, {s}, {}", written[random.index(written.len())]),
            4 => format!("{}.{format} {d}, {s}", FUNCTIONS[random.index(FUNCTIONS.len())]),
            5 => format!("cvt.{integer}.{format} {d}, {s}"),
            6 => format!("cvt.{format}.{integer} {d}, {s}"),
            7 if width == Width::Wide => format!("cvt.{} {d}, {s}", ["f32.f64", "f64.f32"][random.index(2)]),
            7 => format!("shr {d}, {s}, {}", random.index(element_bits)),
            _ => format!("{} {d}, {s}, {}", ["add", "xor", "mul", "max"][random.index(4)], random.index(256)),
        });
        if !written.contains(&d) {
            written.push(d);
        }
    }
    lines
}

/// A random step on floating-point numbers and integers; half of them have a total.
pub fn random_step(random: &mut Random, width: Width) -> UserStep {
    let element = ELEMENTS[random.index(if width == Width::Wide { 7 } else { 5 })];
    let bits = element[1..].trim_end_matches(['l', 'b', 'e']).parse().expect("the name has the number of bits");
    let mut lines = random_lines(random, width, bits);
    if random.index(2) == 0 {
        let totals = ["add.f32", "add", "max", "add.f64"];
        let total = totals[random.index(if width == Width::Wide { 4 } else { 3 })];
        lines.insert(random.index(lines.len() + 1), format!("total {total} r0"));
    }
    step(&format!("step random {element}\n  {}\nend\n", lines.join("\n  ")))
}

/// One or two such steps among others.
pub fn random_steps(random: &mut Random, width: Width) -> Vec<Step> {
    let others = alphabet();
    let mut steps: Vec<Step> = Vec::new();
    for _ in 0..random.index(3) {
        steps.push(others[random.index(others.len())].clone());
    }
    for _ in 0..=random.index(2) {
        let at = random.index(steps.len() + 1);
        steps.insert(at, Step::User(random_step(random, width)));
    }
    steps
}

/// As many instructions as a pipe may have, of those with the longest code, for each size of elements.
pub fn longest_steps(width: Width) -> Vec<Vec<Step>> {
    let elements = &ELEMENTS[..if width == Width::Wide { 7 } else { 5 }];
    let steps = elements.iter().flat_map(|element| {
        let (float, integer) = if width == Width::Wide { ("f64", "u64") } else { ("f32", "u32") };
        let lines = [format!("cvt.{integer}.{float} r0, r0"), format!("cvt.{float}.{integer} r0, r0")];
        let lines = lines.map(|line| format!("  {line}\n").repeat(MAX_STEP_INSTRUCTIONS));
        lines.map(|lines| vec![Step::User(step(&format!("step long {element}\n{lines}end\n"))); 2])
    });
    steps.collect()
}

fn compose(composer: &Composer, steps: &[Step]) -> Pipe {
    composer.compose(steps).unwrap_or_else(|error| panic!("{}: {error}", describe(steps)))
}

/// All engines of this machine.
fn all_engines() -> Vec<(&'static str, Composer)> {
    let integer = cross::integer_composer(Features::detect()).expect("the system gives code memory");
    engines().into_iter().chain([("integer registers", integer)]).collect()
}

/// Runs a pipe and its reference.
fn check(name: &str, pipe: &Pipe, data: &[u8], store: Store) {
    let key: Vec<u8> = data.iter().map(|byte| byte ^ 0x55).collect();
    let streams = vec![&key[..]; pipe.streams()];
    let mut expected = data.to_vec();
    let report = reference::run(pipe.steps(), &mut expected, &streams);
    let mut target = vec![0; if pipe.writes() { data.len() } else { 0 }];
    let options = Options { store: Some(store), streams: &streams, ..Options::default() };
    let found = pipe.run_with(data, &mut target, options).expect("the lengths are right");
    let case = || format!("{} on {name}, {} bytes {data:02x?}", describe(pipe.steps()), data.len());
    assert!(found == report, "{}: {found:x?} and not {report:x?}", case());
    assert!(!pipe.writes() || target == expected, "{}: {target:02x?} and not {expected:02x?}", case());
}

#[test]
fn every_operation_on_special_values() {
    let engines = all_engines();
    for (number, step) in single_operations(Width::Wide).into_iter().enumerate() {
        let data = special_data(step.element());
        let (name, composer) = &engines[number % engines.len()];
        check(name, &compose(composer, &[Step::User(step)]), &data, Store::ALL[number % 3]);
    }
}

#[test]
fn random_steps_do_what_the_reference_does() {
    let mut random = Random(0x243f_6a88_85a3_08d3);
    let engines = all_engines();
    for round in 0..Effort::wanted().pick(500, 5_000, 1_000_000) {
        let width = if round % 3 == 0 { Width::Any } else { Width::Wide };
        let steps = random_steps(&mut random, width);
        let (name, composer) = &engines[round % engines.len()];
        let pipe = compose(composer, &steps);
        for length in (0..=24).chain([64, 100 + random.index(200)]) {
            let mut data = vec![0; length];
            fill_special(&mut random, &mut data);
            check(name, &pipe, &data, Store::ALL[(round + length) % 3]);
        }
    }
}

/// The code of the longest steps fits too, and their branches reach.
#[test]
fn the_longest_steps_do_what_the_reference_does() {
    let mut random = Random(3);
    for steps in longest_steps(Width::Wide) {
        for (name, composer) in &all_engines() {
            let mut data = [0; 47];
            fill_special(&mut random, &mut data);
            check(name, &compose(composer, &steps), &data, Store::Cached);
        }
    }
}

/// What is in three lists of parts, or arrives in pieces, has the same sum: it is added in the same order.
#[test]
fn sums_do_not_depend_on_borders() {
    let step = step("step sum u32le\n  total add.f32 r0\nend\n");
    assert_eq!(step.total(), Some(Total::AddFloat(FloatFormat::F32)));
    let mut random = Random(7);
    let numbers: Vec<f32> = (0..100).map(|_| (random.next() as i32) as f32 * 1e-3).collect();
    let data: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    let sum = numbers.iter().fold(0.0, |sum, number| sum + number);
    let reversed = numbers.iter().rev().fold(0.0, |sum, number| sum + number);
    assert_ne!(sum, reversed, "the order matters for these numbers");
    for (name, composer) in &all_engines() {
        let pipe = compose(composer, &[Step::Copy, Step::User(step.clone())]);
        let (mut target, mut runner) = (vec![0; data.len()], pipe.runner());
        let total = |report: &Report| f32::from_bits(report.total().expect("the step has one") as u32);
        for cut in [0, 4, 5, 8, 200, 203, 396, 399, 400] {
            let (one, other) = data.split_at(cut);
            let report = runner.run_lists(&[one, other], &mut [&mut target[..]], Options::default());
            assert_eq!(total(&report.expect("the lengths are right")), sum, "{name}, cut at {cut}");
        }
        let mut pass = runner.start();
        for (source, target) in data.chunks(24).zip(target.chunks_mut(24)) {
            pass.piece(source, target, Options::default()).expect("pieces are multiples of eight bytes");
        }
        assert_eq!(total(pass.end()), sum, "{name}, in pieces");
    }
}

/// A handler computes what a step computes.
#[test]
fn handlers_compute_as_steps_do() {
    let mut random = Random(0x1319_8a2e_0370_7344);
    for _ in 0..Effort::wanted().pick(200, 3_000, 300_000) {
        let lines = random_lines(&mut random, Width::Wide, 64).join("\n  ");
        let step = step(&format!("step random u64le\n  {lines}\nend\n"));
        let text = format!("handler random\n  load u64le r0, 0\n  {lines}\n  send u64le r0\n  accept\nend\n");
        let program = Definitions::read(&text).0.handlers.remove(0);
        let handler = Handler::new(program, Vec::new(), 0).expect("it is right");
        for _ in 0..8 {
            let (mut data, mut reply) = ([0; 8], Vec::new());
            fill_special(&mut random, &mut data);
            let verdict = handler.run(&data, &mut [], &mut reply, 100);
            assert_eq!(verdict, Ok(Verdict::Accepted));
            let mut expected = data;
            reference::run(&[Step::User(step.clone())], &mut expected, &[]);
            assert_eq!(reply, expected, "{text} {data:02x?}");
        }
    }
}

/// Bits that IEEE 754, or the documentation, gives for an instruction on the bits of `r0`.
#[test]
fn results_are_those_of_ieee_754() {
    const NAN: u64 = 0x7fc0_0000;
    const WIDE_NAN: u64 = 0x7ff8_0000_0000_0000;
    let inf = 0x7f80_0000;
    for (line, r0, wanted) in [
        ("add.f32 r0, r0, 2.5", 0x3f80_0000, 0x4060_0000),
        ("add.f32 r0, r0, 1", 0x4b80_0000, 0x4b80_0000), // 2^24, a tie, to even
        ("add.f32 r0, r0, 3", 0x4b80_0000, 0x4b80_0002),
        ("add.f32 r0, r0, 0x80000000", 0x8000_0000, 0x8000_0000),
        ("add.f32 r0, r0, 0", 0x8000_0000, 0),
        ("add.f32 r0, r0, -inf", inf, NAN),
        ("add.f32 r0, r0, 1", 0xffc1_2345, NAN),
        ("add.f32 r0, r0, 0xffffffff", 0x3f80_0000, NAN),
        ("sub.f32 r0, r0, 0x00800000", 0x0080_0001, 1), // a denormal number
        ("sub.f32 r0, r0, inf", inf, NAN),
        ("mul.f32 r0, r0, 0.5", 0x0080_0000, 0x0040_0000),
        ("mul.f32 r0, r0, 0.5", 1, 0),
        ("mul.f32 r0, r0, 0.5", 3, 2),
        ("mul.f32 r0, r0, 2", 0x7f7f_ffff, inf),
        ("mul.f32 r0, r0, 0", inf, NAN),
        ("mul.f32 r0, r0, -0", 0x3f80_0000, 0x8000_0000),
        ("div.f32 r0, r0, 0", 0xbf80_0000, 0xff80_0000),
        ("div.f32 r0, r0, 0", 0, NAN),
        ("div.f32 r0, r0, 3", 0x3f80_0000, 0x3eaa_aaab),
        ("sqrt.f32 r0, r0", 0x4080_0000, 0x4000_0000),
        ("sqrt.f32 r0, r0", 0x8000_0000, 0x8000_0000),
        ("sqrt.f32 r0, r0", 0xbf80_0000, NAN),
        ("sqrt.f32 r0, r0", 1, 0x1a35_04f3),
        // What does not round moves bits.
        ("neg.f32 r0, r0", 0x7f80_0001, 0xff80_0001),
        ("neg.f32 r0, r0", 0, 0x8000_0000),
        ("abs.f32 r0, r0", 0xffc1_2345, 0x7fc1_2345),
        ("abs.f64 r0, r0", 0xfff0_0000_0000_0000, 0x7ff0_0000_0000_0000),
        ("min.f32 r0, r0, 1", 0xffc1_2345, 0x3f80_0000),
        ("min.f32 r0, r0, 0x7f800001", 0, 0x7f80_0001),
        ("min.f32 r0, r0, 0", 0x8000_0000, 0),
        ("min.f32 r0, r0, -0", 0, 0x8000_0000),
        ("max.f32 r0, r0, -1000", 0x7fc0_0000, 0xc47a_0000),
        ("max.f32 r0, r0, 0", 0x8000_0000, 0),
        ("max.f64 r0, r0, 1e300", 0x7ff0_0000_0000_0000, 0x7ff0_0000_0000_0000),
        // Comparisons.
        ("eq.f32 r0, r0, 0", 0x8000_0000, 1),
        ("eq.f32 r0, r0, 0x7fc00000", NAN, 0),
        ("ne.f32 r0, r0, 0x7fc00000", NAN, 1),
        ("lt.f32 r0, r0, 0x7fc00000", 0, 0),
        ("ge.f32 r0, r0, 0x7fc00000", 0, 0),
        ("lt.f32 r0, r0, 0", 0x8000_0001, 1),
        ("gt.f64 r0, r0, -1", 0xbff0_0000_0000_0000, 0),
        ("ge.f64 r0, r0, -1", 0xbff0_0000_0000_0000, 1),
        ("le.f64 r0, r0, 0", 1, 0),
        // Conversions.
        ("cvt.f32.i16 r0, r0", 0xffff, 0xbf80_0000),
        ("cvt.f32.u16 r0, r0", 0xffff, 0x477f_ff00),
        ("cvt.f32.i8 r0, r0", 0x1280, 0xc300_0000),
        ("cvt.f32.u32 r0, r0", 0xffff_ffff, 0x4f80_0000),
        ("cvt.f32.i64 r0, r0", 0x8000_0000_0000_0000, 0xdf00_0000),
        ("cvt.f32.u64 r0, r0", 0x8000_0080_0000_0001, 0x5f00_0001), // above a tie, rounded once
        ("cvt.f64.u64 r0, r0", u64::MAX, 0x43f0_0000_0000_0000),
        ("cvt.f64.i32 r0, r0", 0x8000_0000, 0xc1e0_0000_0000_0000),
        ("cvt.i16.f32 r0, r0", 0xc700_0100, 0x8000),
        ("cvt.i16.f32 r0, r0", 0x4700_0000, 0x7fff),
        ("cvt.i16.f32 r0, r0", 0xbfff_ffff, 0xffff), // towards zero
        ("cvt.u16.f32 r0, r0", 0xbf7f_ffff, 0),
        ("cvt.u16.f32 r0, r0", 0xff80_0000, 0),
        ("cvt.u8.f32 r0, r0", inf, 0xff),
        ("cvt.i8.f32 r0, r0", NAN, 0),
        ("cvt.u64.f32 r0, r0", 0x5f7f_ffff, 0xffff_ff00_0000_0000),
        ("cvt.u64.f64 r0, r0", 0x43f0_0000_0000_0000, u64::MAX),
        ("cvt.i64.f64 r0, r0", 0xc3e0_0000_0000_0001, 0x8000_0000_0000_0000),
        ("cvt.i32.f64 r0, r0", 0x41df_ffff_ffff_ffff, 0x7fff_ffff),
        ("cvt.f64.f32 r0, r0", 1, 0x36a0_0000_0000_0000),
        ("cvt.f64.f32 r0, r0", 0xffc1_2345, WIDE_NAN),
        ("cvt.f32.f64 r0, r0", 0x3690_0000_0000_0000, 0),
        ("cvt.f32.f64 r0, r0", 0x3690_0000_0000_0001, 1),
        ("cvt.f32.f64 r0, r0", 0x47ef_ffff_f000_0000, inf),
        ("cvt.f32.f64 r0, r0", 0x7ff0_0000_0000_0001, NAN),
        // Constants.
        ("set.f32 r0, 0.1", 0, 0x3dcc_cccd),
        ("set.f64 r0, 0.1", 0, 0x3fb9_9999_9999_999a),
        ("set.f32 r0, 1e-45", 0, 1),
        ("set.f32 r0, -inf", 0, 0xff80_0000),
        // What is above an f32 in its register does not matter.
        ("add.f32 r0, r0, 1", 0xdead_beef_3f80_0000, 0x4000_0000),
        ("neg.f32 r0, r0", 0xdead_beef_3f80_0000, 0xbf80_0000),
        ("max.f32 r0, r0, 0", 0xdead_beef_3f80_0000, 0x3f80_0000),
        ("cvt.i32.f32 r0, r0", 0xdead_beef_3f80_0000, 1),
    ] {
        // The second instruction makes registers of 64 bits.
        let step = step(&format!("step one u64le\n  {line}\n  cvt.f64.i8 r7, r0\nend\n"));
        for (name, composer) in &all_engines() {
            let mut target = [0; 8];
            let pipe = compose(composer, &[Step::User(step.clone())]);
            pipe.run(&u64::to_le_bytes(r0), &mut target).expect("the lengths are equal");
            let found = u64::from_le_bytes(target);
            assert!(found == wanted, "{name}: {line} of {r0:#x} is {found:#x} and not {wanted:#x}");
        }
    }
}

/// Registers of such steps are wider than the elements, if numbers are.
#[test]
fn samples_are_scaled_and_limited_in_wider_registers() {
    let step = step(
        "step calibrate u16be\n  cvt.f32.i16 r0, r0\n  mul.f32 r0, r0, 1.25\n  max.f32 r0, r0, -1000\n  \
         min.f32 r0, r0, 1000\n  total add.f32 r0\n  cvt.i16.f32 r0, r0\nend\n",
    );
    let samples = [3_i16, -7, 900, -900, i16::MIN, 0, 799];
    let source: Vec<u8> = samples.iter().flat_map(|sample| sample.to_be_bytes()).chain([0xee]).collect();
    let scaled = samples.map(|sample| (f32::from(sample) * 1.25).clamp(-1000.0, 1000.0));
    let expected: Vec<u8> = scaled.iter().flat_map(|number| (*number as i16).to_be_bytes()).chain([0xee]).collect();
    for (name, composer) in &all_engines() {
        let mut target = vec![0; source.len()];
        let pipe = compose(composer, &[Step::User(step.clone())]);
        let report = pipe.run(&source, &mut target).expect("the lengths are equal");
        assert_eq!(target, expected, "{name}");
        let sum = scaled.iter().fold(0.0, |sum: f32, number| sum + number);
        assert_eq!(report.total(), Some(sum.to_bits().into()), "{name}");
    }
}
