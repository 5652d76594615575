//! Counts host instructions per instruction written. `bench-codegen run VARIANT TIMES` is what is counted.

use std::hint::black_box;
use std::process::{Command, ExitCode};

use quaject_vcode::Workspace;

/// An operation of the workload.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Add,
    Sub,
    Xor,
    Load,
    Store,
}

/// An entry of the table.
#[derive(Debug, Clone, Copy)]
pub struct Operation {
    pub kind: Kind,
    pub d: u8,
    pub s: u8,
    pub displacement: i32,
}

include!(concat!(env!("OUT_DIR"), "/operations.rs"));

mod c;
mod ours;

/// Operations of a variant that writes the thousand; one for those that write a whole function.
const VARIANTS: &[(&str, u64)] = &[
    ("x86_64 constant", 1000),
    ("x86_64 run_time", 1000),
    ("x86_64 table", 1000),
    ("null table", 1000),
    ("aarch64 constant", 1000),
    ("aarch64 run_time", 1000),
    ("aarch64 table", 1000),
    ("riscv64 constant", 1000),
    ("riscv64 run_time", 1000),
    ("riscv64 table", 1000),
    ("x86_64 plus1", 1),
    ("aarch64 plus1", 1),
    ("riscv64 plus1", 1),
    ("x86_64 dot", 1),
    ("aarch64 dot", 1),
    ("riscv64 dot", 1),
    ("c constant", 1000),
    ("c run_time", 1000),
    ("c plus1", 1),
    ("c paper_plus1", 1),
    ("c dot", 1),
    ("c paper_dot", 1),
];

/// The client of the table without an emitter: it looks the registers up and takes the same branches.
#[inline(never)]
fn null_table(bytes: &mut [u8]) -> usize {
    let registers: [[u32; 2]; 8] = black_box([[1, 2]; 8]);
    let mut sum = 0_u32;
    for (index, operation) in black_box(&OPERATIONS).iter().enumerate() {
        let (d, s) = (registers[operation.d as usize & 7], registers[operation.s as usize & 7]);
        sum = match operation.kind {
            Kind::Add => sum + d[0] + s[1],
            Kind::Sub => sum ^ d[0] ^ s[1],
            Kind::Xor => sum - d[1],
            Kind::Load => sum + d[0] + operation.displacement as u32,
            Kind::Store => sum * 3 + d[0] + operation.displacement as u32,
        };
        bytes[index & 1023] = sum as u8;
    }
    sum as usize
}

fn run(variant: &str, times: u64) -> Option<()> {
    let mut bytes = vec![0_u8; 65536];
    let mut function = c::Function::new();
    macro_rules! variants {
        ($($module:ident),*) => {
            match variant {
                $(
                    concat!(stringify!($module), " constant") => repeat(times, || ours::$module::constant(&mut bytes)),
                    concat!(stringify!($module), " run_time") => repeat(times, || ours::$module::run_time(&mut bytes)),
                    concat!(stringify!($module), " table") => repeat(times, || ours::$module::table(&mut bytes)),
                    concat!(stringify!($module), " plus1") => {
                        let mut workspace = Workspace::new();
                        repeat(times, || ours::$module::plus1(&mut bytes, &mut workspace));
                    }
                    concat!(stringify!($module), " dot") => {
                        let mut workspace = Workspace::new();
                        repeat(times, || ours::$module::dot(&mut bytes, &mut workspace));
                    }
                )*
                "c constant" => repeat(times, || c::constant(&mut bytes, &mut function)),
                "c run_time" => repeat(times, || c::run_time(&mut bytes, &mut function)),
                "c plus1" => repeat(times, || c::plus1(&mut bytes, &mut function)),
                "c paper_plus1" => repeat(times, || c::paper_plus1(&mut bytes)),
                "c dot" => repeat(times, || c::dot(&mut bytes, &mut function)),
                "c paper_dot" => repeat(times, || c::paper_dot(&mut bytes)),
                "null table" => repeat(times, || null_table(&mut bytes)),
                _ => return None,
            }
        };
    }
    variants!(x86_64, aarch64, riscv64);
    Some(())
}

fn repeat(times: u64, mut write: impl FnMut() -> usize) {
    for _ in 0..times {
        black_box(write());
    }
}

/// Instructions of this program with some arguments, by callgrind.
fn count(variant: &str, times: u64) -> Option<u64> {
    let program = std::env::current_exe().ok()?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(["run", variant, &times.to_string()])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let line = text.lines().find(|line| line.contains("Collected :"))?;
    line.split_whitespace().last()?.parse().ok()
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [word, variant, times] = &arguments[..]
        && word == "run"
    {
        let done = times.parse().ok().and_then(|times| run(variant, times));
        return if done.is_some() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    println!("{:<24} {:>12} {:>10}", "variant", "instructions", "ns");
    let wanted = arguments.first().map_or("", String::as_str);
    for (variant, operations) in VARIANTS.iter().filter(|(variant, _)| variant.contains(wanted)) {
        let (few, many) = (10, 110);
        let instructions = match (count(variant, few), count(variant, many)) {
            (Some(few_count), Some(many_count)) => {
                format!("{:.2}", (many_count - few_count) as f64 / (many - few) as f64 / *operations as f64)
            }
            _ => "-".to_string(),
        };
        let mut times: Vec<f64> = (0..7)
            .map(|_| {
                let rounds = 2_000_000 / operations.max(&20);
                let start = std::time::Instant::now();
                run(variant, rounds);
                start.elapsed().as_nanos() as f64 / rounds as f64 / *operations as f64
            })
            .collect();
        times.sort_by(f64::total_cmp);
        println!("{variant:<24} {instructions:>12} {:>10.2}", times[3]);
    }
    ExitCode::SUCCESS
}
