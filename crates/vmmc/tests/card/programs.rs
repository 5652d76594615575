//! Programs on the processor against the same programs compiled by the host's C compiler, at every level of
//! optimisation: written ones and random ones.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use crate::common::{MEMORY_BYTES, build, clang};
use fastrand::Rng;
use quaject_test_support::{Effort, tool};
use quaject_vmmc::lanai::Lanai;
use quaject_vmmc::{Fault, Image, Memory, Processor, Stop};

const LEVELS: [&str; 4] = ["-O0", "-O1", "-O2", "-Os"];

/// What `unsigned test(void)` of an image returns.
fn run(image: &Image, limit_cycles: u64) -> (Result<Stop, Fault>, Lanai) {
    let mut memory = Memory::new(MEMORY_BYTES as usize);
    memory.bytes_mut()[image.base as usize..image.end() as usize].copy_from_slice(&image.bytes);
    let mut lanai = Lanai::new();
    lanai.start(&mut memory, image.symbols["test"], MEMORY_BYTES).expect("the stack is in memory");
    let stop = lanai.run(&mut memory, limit_cycles);
    (stop, lanai)
}

/// What the host's compiler makes of it.
fn run_native(compiler: &str, source: &str) -> u32 {
    let folder = tempfile::tempdir().expect("a folder for one program");
    let (input, output) = (folder.path().join("program.c"), folder.path().join("program"));
    let main = "\nextern int printf(const char *, ...);\nint main(void) { printf(\"%u\\n\", test()); return 0; }\n";
    fs::write(&input, format!("{source}{main}")).expect("the folder is writable");
    let build = Command::new(compiler)
        .args(["-std=gnu11", "-O1", "-w", "-o"])
        .args([&output, &input])
        .output()
        .expect("it starts");
    assert!(build.status.success(), "{}\n{source}", String::from_utf8_lossy(&build.stderr));
    let run = Command::new(&output).output().expect("the program starts");
    String::from_utf8_lossy(&run.stdout).trim().parse().expect("one number")
}

fn check(clang: &str, compiler: &str, name: &str, source: &str) {
    let expected = run_native(compiler, source);
    for level in LEVELS {
        let image = build(clang, source, level);
        let (stop, _) = run(&image, 50_000_000);
        assert_eq!(stop, Ok(Stop::Returned(expected)), "{name} {level}\n{source}");
    }
}

#[test]
fn programs_compute_what_they_compute_natively() {
    let (Some(clang), Some(compiler)) = (clang(), tool(&["cc", "gcc"])) else { return };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/lanai");
    let mut files: Vec<_> =
        fs::read_dir(folder).expect("it is there").map(|entry| entry.expect("readable").path()).collect();
    files.sort();
    assert!(files.len() >= 4, "{files:?}");
    for file in files {
        let source = fs::read_to_string(&file).expect("readable");
        check(clang, compiler, &file.display().to_string(), &source);
    }
}

/// Random programs without undefined behaviour: unsigned arithmetic, narrow types, arrays, loops, calls, selection.
struct Generator {
    rng: Rng,
    text: String,
}

const TYPES: [&str; 6] = ["unsigned", "int", "unsigned char", "signed char", "unsigned short", "short"];

impl Generator {
    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.rng.usize(0..choices.len())]
    }

    /// An expression of type `unsigned` or `unsigned long long` over the names of a function.
    fn expression(&mut self, depth: u32) -> String {
        if depth == 0 || self.rng.u8(0..8) == 0 {
            return match self.rng.u8(0..6) {
                0 => format!("{}u", self.rng.u32(..)),
                1 => format!("{}u", self.rng.u32(0..70)),
                2 => format!("(unsigned)v{}", self.rng.u8(0..6)),
                3 => format!("w[(v0 + {}u) & 15u]", self.rng.u8(0..16)),
                4 => format!("b[(unsigned)v{} & 31u]", self.rng.u8(0..6)),
                _ => "i".to_owned(),
            };
        }
        let (a, b) = (self.expression(depth - 1), self.expression(depth - 1));
        match self.rng.u8(0..18) {
            0..=4 => format!("({a} {} {b})", self.pick(&["+", "-", "^", "&", "|"])),
            5 => format!("({a} * {b})"),
            6 => format!("({a} {} ({b} | 1u))", self.pick(&["/", "%"])),
            7 => format!("((unsigned)((int)({a}) {} ((int)({b} & 255u) + 3)))", self.pick(&["/", "%"])),
            8 => format!("({a} {} ({b} & 31u))", self.pick(&["<<", ">>"])),
            9 => format!("(unsigned)((int)({a}) >> ({b} & 31u))"),
            10 => format!("(unsigned)({a} {} {b})", self.pick(&["<", ">", "<=", ">=", "==", "!="])),
            11 => format!("(unsigned)((int)({a}) {} (int)({b}))", self.pick(&["<", ">", "<=", ">="])),
            12 => {
                let c = self.expression(depth - 1);
                format!("({a} & 1u ? {b} : {c})")
            }
            13 => format!("(unsigned)({}){a}", self.pick(&TYPES)),
            14 => {
                let operation = self.pick(&["+", "-", "*", "^", "/", "%"]);
                let shift = self.rng.u8(0..33);
                format!(
                    "(unsigned)((((unsigned long long){a} << 20) {operation} ((unsigned long long){b} | 1u)) >> {shift})"
                )
            }
            15 => {
                let wide = self
                    .pick(&["(long long)(%) >>", "(%) >>", "(%) <<"])
                    .replace('%', &format!("((unsigned long long){a} << 32 | {b})"));
                format!("(unsigned)(({wide} ({a} & 31u)) >> 7)")
            }
            16 => format!(
                "(unsigned)({}(({a}) | 1u))",
                self.pick(&["__builtin_popcount", "__builtin_clz", "__builtin_ctz"])
            ),
            _ => format!("f({a}, {b})"),
        }
    }

    fn statement(&mut self, depth: u32) -> String {
        let value = self.expression(3);
        match self.rng.u8(0..8) {
            0 | 1 => format!("v{} = {value};", self.rng.u8(0..6)),
            2 => format!("w[{value} & 15u] {}= i;", self.pick(&["+", "^", "-"])),
            3 => format!("b[{value} & 31u] {}= (unsigned char)v1;", self.pick(&["+", "^", ""])),
            4 => format!("h[{value} & 7u] -= (short)v2;"),
            5 if depth > 0 => format!(
                "if ({value} & 4u) {{ {} }} else {{ {} }}",
                self.statement(depth - 1),
                self.statement(depth - 1)
            ),
            6 if depth > 0 => {
                let arms: String =
                    (0..6).map(|arm| format!("case {arm}: {} break; ", self.statement(depth - 1))).collect();
                format!("switch ({value} % 7u) {{ {arms} default: s ^= i; }}")
            }
            _ => format!("s = (s << 1 | s >> 31) ^ {value};"),
        }
    }

    fn program(seed: u64) -> String {
        let mut generator = Generator { rng: Rng::with_seed(seed), text: String::new() };
        let callee = generator.rng.u32(1..1 << 16);
        let types: Vec<&str> = (0..6).map(|_| generator.pick(&TYPES)).collect();
        let variables: String = types
            .iter()
            .enumerate()
            .map(|(index, name)| format!("{name} v{index} = ({name}){};", index * 77))
            .collect();
        let _ = write!(
            generator.text,
            "#pragma clang diagnostic ignored \"-Weverything\"\n\
             static unsigned w[16]; static unsigned char b[32]; static short h[8];\n\
             static __attribute__((noinline)) unsigned f(unsigned x, unsigned y) {{ return (x << 3 | x >> 29) - y * {callee}u; }}\n\
             unsigned test(void);\n\
             unsigned test(void) {{ unsigned s = {seed}u; {variables}\n for (unsigned i = 0; i < 40u; i++) {{\n"
        );
        for _ in 0..generator.rng.u8(4..10) {
            let statement = generator.statement(2);
            let _ = writeln!(generator.text, "  {statement}");
        }
        generator.text.push_str(" }\n for (unsigned i = 0; i < 16u; i++) s = f(s, w[i]);\n");
        generator.text.push_str(" for (unsigned i = 0; i < 32u; i++) s = f(s, b[i]);\n");
        generator.text.push_str(" for (unsigned i = 0; i < 8u; i++) s = f(s, (unsigned)h[i]);\n");
        generator.text.push_str(
            " return s ^ (unsigned)v0 ^ (unsigned)v1 ^ (unsigned)v2 ^ (unsigned)v3 ^ (unsigned)v4 ^ (unsigned)v5; }\n",
        );
        generator.text
    }
}

#[test]
fn random_programs_compute_what_they_compute_natively() {
    let (Some(clang), Some(compiler)) = (clang(), tool(&["cc", "gcc"])) else { return };
    for seed in 0..Effort::wanted().pick(3, 10, 2000) {
        check(clang, compiler, &format!("seed {seed}"), &Generator::program(seed));
    }
}
