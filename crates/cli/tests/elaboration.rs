//! `qj` and programs that are elaborated before they are checked: standard modules, procedures, instances of templates.
//! The same program has the same output on every engine.

mod support;

use quaject_test_support::Random;
use std::fmt::Write;
use support::Folder;

/// Runs a program on these lines on every engine; the output must be as given.
fn answers_everywhere(program: &str, lines: &str, expected: &str) {
    let folder = Folder::with(&[("a.esp", program)]);
    for engine in ["interp", "c", "jit"] {
        let produced =
            folder.qj(&format!("run --engine {engine} --checked a.esp")).stdin(lines).output().expect("qj runs");
        assert!(produced.status.success(), "{engine}: {}", String::from_utf8_lossy(&produced.stderr));
        let output = String::from_utf8_lossy(&produced.stdout);
        for ((line, found), expected) in lines.lines().zip(output.lines()).zip(expected.lines()) {
            assert_eq!(found, expected, "{engine}: {line}");
        }
        assert_eq!(output.lines().count(), expected.lines().count(), "{engine}");
    }
}

/// Runs a program on every engine; the output and the status must be as given.
fn everywhere(files: &[(&str, &str)], status: i32, output: &str) {
    let folder = Folder::with(files);
    for engine in ["interp", "c", "jit"] {
        for mode in ["process", "auto"] {
            let run = folder.qj(&format!("run --engine {engine} --mode {mode} {}", files[0].0));
            let produced = run.output().expect("qj runs");
            let error = String::from_utf8_lossy(&produced.stderr).into_owned();
            let found = (produced.status.code(), String::from_utf8_lossy(&produced.stdout).into_owned());
            assert_eq!(found, (Some(status), output.to_string()), "{engine} {mode}: {error}");
        }
    }
}

/// The check values of the catalogue: the results for the bytes `123456789`.
#[test]
fn standard_checksums_have_their_check_values() {
    let program = "import \"std:checksum\";
        channel o(u32, u16, u16, u16, u16) external in = \"text:-\";
        process p {
          var data: bytes[<=9] = \"123456789\";
          var a: u32 = 0xffff_ffff, b: u16 = 0xffff, c: u16 = 0, d: u16 = 0xffff, e: u16 = 0xffff;
          for i in 0..9 {
            a = crc32(a, data[i]);
            b = crc16_modbus(b, data[i]);
            c = crc16_xmodem(c, data[i]);
            d = crc16_xmodem(d, data[i]);
            e = crc16_hdlc(e, data[i]);
          }
          out(o, ~a, b, c, d, ~e);
        }";
    let expected = format!("{} {} {} {} {}\n", 0xcbf4_3926u32, 0x4b37, 0x31c3, 0x29b1, 0x906e);
    everywhere(&[("a.esp", program)], 0, &expected);
}

/// Every text is the one that Rust writes, and is read back.
#[test]
fn numbers_become_text_and_text_numbers() {
    let program = "import \"std:format\" as format;
        channel i(int, i64, u64) external out = \"text:-\";
        channel o(bytes[<=11], bytes[<=10], bytes[<=20], bytes[<=20], bytes[<=16], bytes[<=32]) external in = \"text:-\";
        proc same(text: bytes[<=32], n: i64) {
          match format.read_decimal(text) { number |> $read => assert(read == n); invalid |> {} => assert(false); }
        }
        process p {
          while {
            idle in(i, $a, $b, $c);
            same(format.decimal(a), a);
            same(format.decimal64(b), b);
            if (c < 0x8000_0000_0000_0000) same(\"+\" + format.unsigned64(c), i64(c));
            match format.read_hexadecimal(format.hexadecimal(c, 1)) {
              number |> $read => assert(u64(read) == c);
              invalid |> {} => assert(false);
            }
            out(o, format.decimal(a), format.unsigned(u32(a)), format.decimal64(b), format.unsigned64(c),
                format.hexadecimal(c, 4), format.right(format.decimal(a), 12, '.'));
          }
        }";
    let (mut random, mut lines, mut expected) = (Random(3), String::new(), String::new());
    for turn in 0..300 {
        // Every number of bits, the extremes first.
        let bits = [0, 64, 63, 32, 31].get(turn).copied().unwrap_or_else(|| random.below(65));
        let value = u64::MAX.checked_shr(64 - bits as u32).unwrap_or(0)
            ^ if turn > 4 { random.next() >> random.below(64) } else { 0 };
        let (a, b, c) = (value as i32, value as i64, value);
        writeln!(lines, "{a} {b} {c}").expect("a string takes any text");
        writeln!(expected, "\"{a}\" \"{}\" \"{b}\" \"{c}\" \"{c:04x}\" \"{a:.>12}\"", a as u32).expect("likewise");
    }
    answers_everywhere(program, &lines, &expected);
}

#[test]
fn what_is_no_number_is_invalid() {
    let program = "import \"std:format\" as format;
        channel i(bytes[<=32]) external out = \"text:-\";
        channel o(format.numberT, format.numberT) external in = \"text:-\";
        process p { while { idle in(i, $text); out(o, format.read_decimal(text), format.read_hexadecimal(text)); } }";
    let cases = [
        ("", "invalid", "invalid"),
        ("-", "invalid", "invalid"),
        ("+-1", "invalid", "invalid"),
        (" 1", "invalid", "invalid"),
        ("1 ", "invalid", "invalid"),
        ("12a", "invalid", "number |> 298"),
        ("007", "number |> 7", "number |> 7"),
        ("9223372036854775807", "number |> 9223372036854775807", "invalid"),
        ("9223372036854775808", "invalid", "invalid"),
        ("-9223372036854775808", "number |> -9223372036854775808", "invalid"),
        ("-9223372036854775809", "invalid", "invalid"),
        ("99999999999999999999999999999999", "invalid", "invalid"),
        ("ffffffffffffffff", "invalid", "number |> -1"),
        ("G", "invalid", "invalid"),
    ];
    let lines: String = cases.iter().map(|(text, _, _)| format!("{text:?}\n")).collect();
    let expected: String = cases.iter().map(|(_, first, second)| format!("{first} {second}\n")).collect();
    answers_everywhere(program, &lines, &expected);
}

/// The nearest number with this many bits behind the point, the upper one of two.
fn nearest(value: f64, fraction: i32) -> i32 {
    // A conversion saturates.
    (value * 2f64.powi(fraction) + 0.5).floor() as i32
}

/// The oracle is exact: sums and integers in f64, products and quotients in integers of 128 bits.
#[test]
fn fixed_point_numbers_are_rounded_and_saturate() {
    for fraction in [1, 8, 16, 30] {
        let program = format!(
            "import \"std:fixed\"(FRACTION = {fraction}) as fixed;
             channel i(int, int) external out = \"text:-\";
             channel o(int, int, int, int, int, int) external in = \"text:-\";
             process p {{
               while {{
                 idle in(i, $x, $y);
                 out(o, fixed.add(x, y), fixed.subtract(x, y), fixed.multiply(x, y), fixed.divide(x, y), fixed.round(x), fixed.floor(y));
               }}
             }}"
        );
        let (mut random, mut lines, mut expected) = (Random(5), String::new(), String::new());
        let unit = 2f64.powi(fraction);
        let edges = [i32::MIN, i32::MIN + 1, -3, -2, -1, 1, 2, 3, i32::MAX - 1, i32::MAX];
        let pairs = edges.iter().flat_map(|x| edges.iter().map(|y| (*x, *y))).collect::<Vec<_>>();
        let others =
            (0..200).map(|_| ((random.next() >> random.below(64)) as i32, (random.next() >> random.below(64)) as i32));
        for (x, y) in pairs.into_iter().chain(others).filter(|(_, y)| *y != 0) {
            let half = 1i128 << fraction >> 1;
            let clamp = |value: i128| value.clamp(i128::from(i32::MIN), i128::from(i32::MAX)) as i32;
            let product = clamp((i128::from(x) * i128::from(y) + half) >> fraction);
            let (n, d) = (i128::from(x) << (fraction + 1), i128::from(y));
            let quotient = clamp((n * d.signum() + d.abs()).div_euclid(2 * d.abs()));
            writeln!(lines, "{x} {y}").expect("a string takes any text");
            let (a, b) = (f64::from(x) / unit, f64::from(y) / unit);
            let (sum, difference) = (nearest(a + b, fraction), nearest(a - b, fraction));
            writeln!(
                expected,
                "{sum} {difference} {product} {quotient} {} {}",
                (a + 0.5).floor() as i64 as i32,
                b.floor() as i64
            )
            .expect("a string takes any text");
        }
        answers_everywhere(&program, &lines, &expected);
    }
}

#[test]
fn fixed_point_numbers_are_those_of_ieee_754() {
    let program = "import \"std:fixed\" as fixed;
        channel i(u32, int) external out = \"text:-\";
        channel o(int, bool, u32, bytes[<=16]) external in = \"text:-\";
        process p {
          while {
            idle in(i, $bits, $x);
            out(o, fixed.from_float32(bits), fixed.is_nan32(bits), fixed.to_float32(x), fixed.text(x, 4));
          }
        }";
    let (mut random, mut lines, mut expected) = (Random(9), String::new(), String::new());
    let edges = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.5 / 65536.0,
        -0.5 / 65536.0,
        1.5 / 65536.0,
        -1.5 / 65536.0,
        32767.998,
        32768.0,
        -32768.0,
    ];
    let others = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MIN_POSITIVE, f32::from_bits(1), f32::MAX, f32::MIN];
    let edges: Vec<f32> = edges.into_iter().chain(others).collect();
    for turn in 0..400 {
        let number = match edges.get(turn) {
            Some(edge) => *edge,
            None if turn % 2 == 0 => f32::from_bits(random.next() as u32),
            None => (random.next() as i32 as f32) / 65536.0 * 2f32.powi(-(random.below(20) as i32)),
        };
        let x = [0, 1, -1, i32::MAX, i32::MIN].get(turn).copied().unwrap_or((random.next() >> random.below(64)) as i32);
        writeln!(lines, "{} {x}", number.to_bits()).expect("a string takes any text");
        let wanted = if number.is_nan() { 0 } else { nearest(f64::from(number), 16) };
        let value = f64::from(x) / 65536.0;
        let scaled = (u64::from(x.unsigned_abs()) * 10_000 + 0x8000) >> 16;
        let sign = if x < 0 && scaled > 0 { "-" } else { "" };
        let text = format!("{sign}{}.{:04}", scaled / 10_000, scaled % 10_000);
        writeln!(expected, "{wanted} {} {} \"{text}\"", number.is_nan(), (value as f32).to_bits()).expect("likewise");
    }
    answers_everywhere(program, &lines, &expected);
}

#[test]
fn sines_and_roots_are_within_a_unit_in_the_last_place() {
    let program = "import \"std:fixed\" as fixed;
        channel i(u32, int) external out = \"text:-\";
        channel o(int, int, int) external in = \"text:-\";
        process p {
          while { idle in(i, $angle, $x); out(o, fixed.sine(angle), fixed.cosine(angle), fixed.square_root(x)); }
        }";
    let (mut random, mut lines) = (Random(11), String::new());
    let mut values: Vec<(u32, i32)> = (0..=8).map(|eighth| ((eighth << 29) as u32, 1 << eighth)).collect();
    values.extend([(1, 0), (0x3fff_ffff, -5), (0xffff_ffff, i32::MAX)]);
    values.extend((0..300).map(|_| (random.next() as u32, (random.next() >> (33 + random.below(31))) as i32)));
    values.iter().for_each(|(angle, x)| writeln!(lines, "{angle} {x}").expect("a string takes any text"));
    let folder = Folder::with(&[("a.esp", program)]);
    let produced = folder.qj("run --checked a.esp").stdin(&lines).output().expect("qj runs");
    let output = String::from_utf8_lossy(&produced.stdout).into_owned();
    for ((angle, x), line) in values.iter().zip(output.lines()) {
        let found: Vec<f64> = line.split(' ').map(|word| word.parse().expect("a number")).collect();
        let turn = f64::from(*angle) / 2f64.powi(32) * std::f64::consts::TAU;
        let root = (f64::from(*x).max(0.0) / 65536.0).sqrt();
        for (found, wanted) in found.iter().zip([turn.sin(), turn.cos(), root]) {
            assert!((found - wanted * 65536.0).abs() <= 1.0, "{angle} {x}: {found}, {}", wanted * 65536.0);
        }
    }
    assert_eq!(output.lines().count(), values.len());
    answers_everywhere(program, &lines, &output);
}

/// A standard module between the imports does not change which folder a path is relative to.
#[test]
fn paths_are_relative_to_their_file_behind_a_standard_module() {
    let folder = Folder::with(&[("a.esp", "import \"std:checksum\"; import \"sub/b.esp\"; process P { out(o, C); }")]);
    std::fs::create_dir(folder.path("sub")).expect("a folder can be made");
    for (name, text) in [("b.esp", "import \"c.esp\";"), ("c.esp", "const C = 7; channel o(int) external in;")] {
        std::fs::write(folder.path("sub").join(name), text).expect("a file can be written");
    }
    folder.qj("check a.esp").assert().success();
}
