//! Counts host instructions per instruction written, with machine registers, with virtual ones and through the peephole
//! window, what the window saves, and times what makes a function executable. `bench-codegen-layers run VARIANT TIMES`
//! is what is counted.

use std::hint::black_box;
use std::process::{Command, ExitCode};

use quaject_vcode::layers::peephole::Peephole;
use quaject_vcode::layers::virtual_registers::{Virtual, VirtualReg};
use quaject_vcode::x86_64::{Reg, S0, T0, T1, T2, T3, T4, T5, T6, T7, X86_64};
use quaject_vcode::{Asm, Code, Core, Kind as FunctionKind, Memory, Region, Workspace};

mod naive;

use naive::Program;

/// Assignments of the naive program.
const ASSIGNMENTS: u64 = 200;

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

const REGISTERS: [Reg; 8] = [T0, T1, T2, T3, T4, T5, T6, T7];

fn begin<'a>(bytes: &'a mut [u8], workspace: &'a mut Workspace<X86_64>) -> Asm<'a, X86_64> {
    Asm::begin(Region::from(bytes), workspace, &[][..0], &mut [], FunctionKind::Leaf).expect("there is room")
}

macro_rules! write_sites {
    ($asm:ident, $registers:ident, $base:ident) => {{
        macro_rules! read_register {
            ($n:expr) => {
                // SAFETY: a reference to an element of an array is valid for reads.
                unsafe { std::ptr::read_volatile(&$registers[$n]) }
            };
        }
        sites!($asm, read_register, {
            // SAFETY: a reference to an element of an array is valid for reads.
            unsafe { std::ptr::read_volatile(&$base[0]) }
        });
        $asm.retv();
        $asm.end().expect("the workload is valid").length
    }};
}

macro_rules! write_table {
    ($asm:ident, $registers:ident, $base:ident) => {{
        for operation in black_box(&OPERATIONS) {
            let (d, s) = ($registers[operation.d as usize & 7], $registers[operation.s as usize & 7]);
            match operation.kind {
                Kind::Add => $asm.addi(d, d, s),
                Kind::Sub => $asm.subi(d, d, s),
                Kind::Xor => $asm.xori(d, d, s),
                Kind::Load => $asm.ldii(d, $base[0], operation.displacement),
                Kind::Store => $asm.stii(d, $base[0], operation.displacement),
            }
        }
        $asm.retv();
        $asm.end().expect("the workload is valid").length
    }};
}

#[inline(never)]
fn core_sites(bytes: &mut [u8]) -> usize {
    let (registers, base) = (black_box(REGISTERS), black_box([S0]));
    let mut workspace = Workspace::new();
    let mut asm = begin(bytes, &mut workspace);
    asm.reserve(20_000).expect("there is room");
    write_sites!(asm, registers, base)
}

#[inline(never)]
fn windowed_sites(bytes: &mut [u8]) -> usize {
    let (registers, base) = (black_box(REGISTERS), black_box([S0]));
    let mut workspace = Workspace::new();
    let mut asm = Peephole::new(begin(bytes, &mut workspace));
    asm.asm().reserve(20_000).expect("there is room");
    write_sites!(asm, registers, base)
}

#[inline(never)]
fn windowed_table(bytes: &mut [u8]) -> usize {
    let (registers, base) = (black_box(REGISTERS), black_box([S0]));
    let mut workspace = Workspace::new();
    let mut asm = Peephole::new(begin(bytes, &mut workspace));
    write_table!(asm, registers, base)
}

#[inline(never)]
fn core_table(bytes: &mut [u8]) -> usize {
    let (registers, base) = (black_box(REGISTERS), black_box([S0]));
    let mut workspace = Workspace::new();
    let mut asm = begin(bytes, &mut workspace);
    write_table!(asm, registers, base)
}

fn virtual_registers() -> ([VirtualReg<Reg>; 8], [VirtualReg<Reg>; 1]) {
    (black_box(REGISTERS.map(VirtualReg::fixed)), black_box([VirtualReg::fixed(S0)]))
}

#[inline(never)]
fn virtual_sites(bytes: &mut [u8]) -> usize {
    let mut workspace = Workspace::new();
    let asm = begin(bytes, &mut workspace);
    let mut asm = Virtual::new(asm, &mut []);
    let (registers, base) = virtual_registers();
    asm.reserve(20_000).expect("there is room");
    write_sites!(asm, registers, base)
}

#[inline(never)]
fn virtual_table(bytes: &mut [u8]) -> usize {
    let mut workspace = Workspace::new();
    let asm = begin(bytes, &mut workspace);
    let mut asm = Virtual::new(asm, &mut []);
    let (registers, base) = virtual_registers();
    write_table!(asm, registers, base)
}

/// Every register is on the stack: each instruction loads and stores. Counted per portable instruction.
#[inline(never)]
fn spilled_table(bytes: &mut [u8]) -> usize {
    let mut workspace = Workspace::new();
    let asm = begin(bytes, &mut workspace);
    let mut asm = Virtual::new(asm, &mut []);
    let registers: [VirtualReg<Reg>; 8] = std::array::from_fn(|_| asm.cold_reg());
    let (_, base) = virtual_registers();
    write_table!(asm, registers, base)
}

/// Stands for the number of instructions of the naive program.
const NAIVE: u64 = 0;

/// What is measured, and the portable instructions that each writes.
const VARIANTS: &[(&str, u64)] = &[
    ("core, run-time registers", 1000),
    ("virtual, run-time registers", 1000),
    ("core, table", 1000),
    ("virtual, table", 1000),
    ("virtual, table, all on the stack", 1000),
    ("peephole, run-time registers", 1000),
    ("peephole, table", 1000),
    ("core, naive", NAIVE),
    ("peephole, naive", NAIVE),
    ("install and free", 1),
    ("region, end and free", 1),
];

fn run(variant: &str, times: u64) -> Option<()> {
    let mut bytes = vec![0_u8; 65536];
    let memory = Memory::new(1 << 20).expect("the system gives a megabyte");
    match variant {
        "core, run-time registers" => repeat(times, || core_sites(&mut bytes)),
        "virtual, run-time registers" => repeat(times, || virtual_sites(&mut bytes)),
        "core, table" => repeat(times, || core_table(&mut bytes)),
        "virtual, table" => repeat(times, || virtual_table(&mut bytes)),
        "virtual, table, all on the stack" => repeat(times, || spilled_table(&mut bytes)),
        "peephole, run-time registers" => repeat(times, || windowed_sites(&mut bytes)),
        "peephole, table" => repeat(times, || windowed_table(&mut bytes)),
        "core, naive" => {
            let program = Program::new(ASSIGNMENTS);
            repeat(times, || naive::plain::<X86_64>(&program, &mut bytes).1);
        }
        "peephole, naive" => {
            let program = Program::new(ASSIGNMENTS);
            repeat(times, || naive::windowed::<X86_64>(&program, &mut bytes).1);
        }
        "install and free" => {
            let code = plus1(Region::from(&mut bytes[..]));
            // A few functions are alive, so that places are found among others.
            let mut live = std::collections::VecDeque::new();
            repeat(times, || {
                let installed = memory.install(&bytes, &code).expect("a megabyte is enough");
                live.push_back(installed);
                if live.len() > 100
                    && let Some(old) = live.pop_front()
                {
                    memory.free(old.entry, old.length);
                }
                installed.entry
            });
        }
        "region, end and free" => repeat(times, || {
            let code = plus1(memory.region(256).expect("a megabyte is enough"));
            let start = code.entry - code.offset;
            memory.keep(start, 256, code.offset + code.length);
            memory.free(start, code.offset + code.length);
            code.entry
        }),
        _ => return None,
    }
    Some(())
}

fn plus1(region: Region<'_>) -> Code {
    let mut workspace = Workspace::<X86_64>::new();
    let mut params = [quaject_vcode::Param::NONE];
    let mut asm =
        Asm::<X86_64>::begin(region, &mut workspace, "%i", &mut params, FunctionKind::Leaf).expect("there is room");
    let x = params[0].reg();
    asm.addii(x, x, 1);
    asm.reti(x);
    asm.end().expect("plus1 is valid")
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
    println!("{:<34} {:>12} {:>10}", "variant", "instructions", "ns");
    let wanted = arguments.first().map_or("", String::as_str);
    let program = Program::new(ASSIGNMENTS);
    for (variant, operations) in VARIANTS.iter().filter(|(variant, _)| variant.contains(wanted)) {
        let operations = if *operations == NAIVE { &program.instructions } else { operations };
        let (few, many) = (210, 410);
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
        println!("{variant:<34} {instructions:>12} {:>10.2}", times[3]);
    }
    if "peephole, naive".contains(wanted) {
        naive::compare(&program);
    }
    ExitCode::SUCCESS
}
