//! Counts host instructions per instruction written, of our emitters and of peers, and times them in turn; then
//! compares the `dot` that each writes with what gcc makes of it. `bench-codegen run VARIANT TIMES` is what callgrind
//! counts.

use std::hint::black_box;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::time::Instant;

use quaject_bench_harness::{instructions, median};
use quaject_vcode::Workspace;

#[macro_use]
mod workload;

mod c;
mod ours;
mod peers;

#[cfg(asmjit)]
use peers::asmjit;
#[cfg(tcc)]
use peers::tcc;
use peers::{cranelift, dynasm};
use workload::{Kind, OPERATIONS, Shape};

/// Something that writes the workload.
struct Variant {
    name: &'static str,
    shape: Shape,
    /// Whether it is code for this machine, and a whole function.
    runs: bool,
}

const fn ours(name: &'static str, shape: Shape) -> Variant {
    Variant { name, shape, runs: true }
}

const fn foreign(name: &'static str, shape: Shape) -> Variant {
    Variant { name, shape, runs: false }
}

/// The first of each shape is what the others are compared with.
const VARIANTS: &[Variant] = &[
    ours("x86_64 constant", Shape::Line),
    ours("c constant", Shape::Line),
    foreign("aarch64 constant", Shape::Line),
    foreign("riscv64 constant", Shape::Line),
    foreign("mips constant", Shape::Line),
    foreign("sparc64 constant", Shape::Line),
    foreign("alpha constant", Shape::Line),
    foreign("ppc64le constant", Shape::Line),
    ours("dynasm constant", Shape::Line),
    #[cfg(asmjit)]
    ours("asmjit constant", Shape::Line),
    ours("x86_64 run_time", Shape::Line),
    ours("c run_time", Shape::Line),
    foreign("aarch64 run_time", Shape::Line),
    foreign("riscv64 run_time", Shape::Line),
    foreign("mips run_time", Shape::Line),
    foreign("sparc64 run_time", Shape::Line),
    foreign("alpha run_time", Shape::Line),
    foreign("ppc64le run_time", Shape::Line),
    foreign("null table", Shape::Line),
    ours("x86_64 table", Shape::Line),
    foreign("aarch64 table", Shape::Line),
    foreign("riscv64 table", Shape::Line),
    foreign("mips table", Shape::Line),
    foreign("sparc64 table", Shape::Line),
    foreign("alpha table", Shape::Line),
    foreign("ppc64le table", Shape::Line),
    ours("dynasm table", Shape::Line),
    #[cfg(asmjit)]
    ours("asmjit table", Shape::Line),
    #[cfg(tcc)]
    ours("tcc text", Shape::Line),
    ours("cranelift single_pass", Shape::Line),
    ours("cranelift speed", Shape::Line),
    ours("x86_64 plus1", Shape::Plus1),
    foreign("aarch64 plus1", Shape::Plus1),
    foreign("riscv64 plus1", Shape::Plus1),
    foreign("mips plus1", Shape::Plus1),
    foreign("sparc64 plus1", Shape::Plus1),
    foreign("alpha plus1", Shape::Plus1),
    foreign("ppc64le plus1", Shape::Plus1),
    ours("c plus1", Shape::Plus1),
    ours("c paper_plus1", Shape::Plus1),
    ours("dynasm plus1", Shape::Plus1),
    #[cfg(asmjit)]
    ours("asmjit plus1", Shape::Plus1),
    #[cfg(tcc)]
    ours("tcc plus1", Shape::Plus1),
    ours("cranelift single_pass plus1", Shape::Plus1),
    ours("cranelift speed plus1", Shape::Plus1),
    ours("x86_64 dot", Shape::Dot),
    foreign("aarch64 dot", Shape::Dot),
    foreign("riscv64 dot", Shape::Dot),
    foreign("mips dot", Shape::Dot),
    foreign("sparc64 dot", Shape::Dot),
    foreign("alpha dot", Shape::Dot),
    foreign("ppc64le dot", Shape::Dot),
    ours("c dot", Shape::Dot),
    ours("c paper_dot", Shape::Dot),
    ours("dynasm dot", Shape::Dot),
    #[cfg(asmjit)]
    ours("asmjit dot", Shape::Dot),
    #[cfg(tcc)]
    ours("tcc dot", Shape::Dot),
    ours("cranelift single_pass dot", Shape::Dot),
    ours("cranelift speed dot", Shape::Dot),
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

/// Has a variant write `times` times; the address of what it wrote last.
fn run(variant: &str, times: u64, bytes: &mut [u8]) -> Option<usize> {
    let mut function = c::Function::new();
    macro_rules! variants {
        ($($module:ident),*) => {
            match variant {
                $(
                    concat!(stringify!($module), " constant") => repeat(times, || ours::$module::constant(bytes)),
                    concat!(stringify!($module), " run_time") => repeat(times, || ours::$module::run_time(bytes)),
                    concat!(stringify!($module), " table") => repeat(times, || ours::$module::table(bytes)),
                    concat!(stringify!($module), " plus1") => {
                        let mut workspace = Workspace::new();
                        repeat(times, || ours::$module::plus1(bytes, &mut workspace))
                    }
                    concat!(stringify!($module), " dot") => {
                        let mut workspace = Workspace::new();
                        repeat(times, || ours::$module::dot(bytes, &mut workspace))
                    }
                )*
                "c constant" => repeat(times, || c::constant(bytes, &mut function)),
                "c run_time" => repeat(times, || c::run_time(bytes, &mut function)),
                "c plus1" => repeat(times, || c::plus1(bytes, &mut function)),
                "c paper_plus1" => repeat(times, || c::paper_plus1(bytes)),
                "c dot" => repeat(times, || c::dot(bytes, &mut function)),
                "c paper_dot" => repeat(times, || c::paper_dot(bytes)),
                "null table" => repeat(times, || null_table(bytes)),
                _ => return run_peer(variant, times, bytes),
            }
        };
    }
    Some(variants!(x86_64, aarch64, riscv64, mips, sparc64, alpha, ppc64le))
}

/// What a peer offers: it writes into memory and says where the function begins.
type Writer = Box<dyn FnMut(&mut [u8]) -> usize>;

fn run_peer(variant: &str, times: u64, bytes: &mut [u8]) -> Option<usize> {
    let mut repeat_with = |mut write: Writer| Some(repeat(times, || write(bytes)));
    if let Some(rest) = variant.strip_prefix("cranelift ") {
        let (effort, shape) = rest.split_once(' ').unwrap_or((rest, "table"));
        let effort = match effort {
            "single_pass" => cranelift::Effort::SinglePass,
            "speed" => cranelift::Effort::Speed,
            _ => return None,
        };
        let mut compiler = cranelift::Compiler::new(effort);
        return match shape {
            "table" => repeat_with(Box::new(move |bytes| compiler.table(bytes))),
            "plus1" => repeat_with(Box::new(move |bytes| compiler.plus1(bytes))),
            "dot" => repeat_with(Box::new(move |bytes| compiler.dot(bytes))),
            _ => None,
        };
    }
    match variant {
        "dynasm constant" => repeat_with(Box::new(dynasm::constant)),
        "dynasm table" => repeat_with(Box::new(dynasm::table)),
        "dynasm plus1" => repeat_with(Box::new(dynasm::plus1)),
        "dynasm dot" => repeat_with(Box::new(dynasm::dot)),
        #[cfg(asmjit)]
        "asmjit constant" => repeat_with(Box::new(asmjit::constant)),
        #[cfg(asmjit)]
        "asmjit table" => repeat_with(Box::new(asmjit::table())),
        #[cfg(asmjit)]
        "asmjit plus1" => repeat_with(Box::new(asmjit::plus1)),
        #[cfg(asmjit)]
        "asmjit dot" => repeat_with(Box::new(asmjit::dot)),
        #[cfg(tcc)]
        "tcc text" => repeat_with(Box::new(tcc::table())),
        #[cfg(tcc)]
        "tcc plus1" => repeat_with(Box::new(tcc::plus1())),
        #[cfg(tcc)]
        "tcc dot" => repeat_with(Box::new(tcc::dot())),
        _ => None,
    }
}

fn repeat(times: u64, mut write: impl FnMut() -> usize) -> usize {
    let mut last = 0;
    for _ in 0..times {
        last = black_box(write());
    }
    last
}

/// Memory for code, executable where it is written: the peers do not say where theirs will run.
fn code_memory() -> &'static mut [u8] {
    const LENGTH: usize = 1 << 16;
    let rights = libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC;
    // SAFETY: a new mapping, which is used here only and which is never unmapped.
    unsafe {
        let at = libc::mmap(std::ptr::null_mut(), LENGTH, rights, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0);
        assert!(at != libc::MAP_FAILED, "the system gives memory");
        std::slice::from_raw_parts_mut(at.cast(), LENGTH)
    }
}

/// Instructions that writing once more takes, by callgrind.
fn count(variant: &Variant) -> Option<f64> {
    let (few, many) = if variant.name.starts_with("cranelift") { (2, 12) } else { (10, 110) };
    let counted = |times: u32| {
        let mut command = Command::new(std::env::current_exe().ok()?);
        command.args(["run", variant.name, &times.to_string()]);
        instructions(&command, None, Path::new("/tmp"))
    };
    Some((counted(many)? - counted(few)?) as f64 / f64::from(many - few))
}

/// Nanoseconds of one round of each, in turn, seven times.
fn time(variants: &[&Variant], bytes: &mut [u8]) -> Vec<Vec<f64>> {
    let mut times = vec![Vec::new(); variants.len()];
    let rounds: Vec<u64> = variants
        .iter()
        .map(|variant| {
            let start = Instant::now();
            run(variant.name, 3, bytes);
            (60_000_000 / start.elapsed().as_nanos().max(1)).clamp(3, 200_000) as u64
        })
        .collect();
    for _ in 0..7 {
        for ((variant, rounds), times) in variants.iter().zip(&rounds).zip(&mut times) {
            let start = Instant::now();
            run(variant.name, *rounds, bytes);
            times.push(start.elapsed().as_nanos() as f64 / *rounds as f64);
        }
    }
    times
}

fn compare(variants: &[&Variant], bytes: &mut [u8]) {
    println!("per instruction of the straight line, per function for plus1 and dot; ratios to the first of each kind");
    println!("{:<30} {:>12} {:>8} {:>10} {:>8}", "variant", "instructions", "ratio", "ns", "ratio");
    let times = time(variants, bytes);
    let mut first: Option<(Shape, Option<f64>, f64)> = None;
    for (variant, times) in variants.iter().zip(&times) {
        let unit = variant.shape.unit() as f64;
        let (count, time) = (count(variant).map(|count| count / unit), median(times) / unit);
        let (_, first_count, first_time) = match first {
            Some(first) if first.0 == variant.shape => first,
            Some(_) | None => *first.insert((variant.shape, count, time)),
        };
        let ratio = |mine: Option<f64>, first: Option<f64>| match (mine, first) {
            (Some(mine), Some(first)) => (format!("{mine:.2}"), format!("{:.1}", mine / first)),
            (_, _) => ("-".to_owned(), "-".to_owned()),
        };
        let (count, count_ratio) = ratio(count, first_count);
        let (time, time_ratio) = ratio(Some(time), Some(first_time));
        println!("{:<30} {count:>12} {count_ratio:>8} {time:>10} {time_ratio:>8}", variant.name);
    }
}

/// Where code is placed to see how fast it is: a loop that straddles a line that the processor fetches takes up to
/// twice as long, in every generator.
const PLACES: [usize; 4] = [0, 16, 32, 48];

/// The addresses of copies of what a contender wrote; of one alone where it decides the place.
fn copies(name: &str) -> Option<Vec<usize>> {
    const GCC: &str = "gcc -O2";
    if name.starts_with("tcc") {
        return Some(vec![run(name, 1, code_memory())?]);
    }
    PLACES
        .iter()
        .map(|place| {
            let memory = &mut code_memory()[*place..];
            if name != GCC {
                return run(name, 1, memory);
            }
            let code = c::gcc_dot();
            // SAFETY: the function is shorter than that, is followed by others, and refers to nothing outside of
            // itself.
            memory[..128].copy_from_slice(unsafe { std::slice::from_raw_parts(code as *const u8, 128) });
            Some(memory.as_ptr() as usize)
        })
        .collect()
}

/// Compares how fast what was written is: `dot` of a thousand elements, in turn with what gcc makes of it.
fn compare_code() {
    let written = VARIANTS.iter().filter(|variant| variant.shape == Shape::Dot && variant.runs);
    let names = ["gcc -O2"].into_iter().chain(written.map(|variant| variant.name));
    let functions: Vec<(&str, Vec<usize>)> = names.filter_map(|name| Some((name, copies(name)?))).collect();
    let a: Vec<i32> = (0..1000).collect();
    let mut times: Vec<Vec<Vec<f64>>> = functions.iter().map(|(_, copies)| vec![Vec::new(); copies.len()]).collect();
    for _ in 0..51 {
        for ((_, copies), times) in functions.iter().zip(&mut times) {
            for (entry, times) in copies.iter().zip(times) {
                let start = Instant::now();
                for _ in 0..50 {
                    // SAFETY: all of them are this function.
                    black_box(unsafe { workload::dot(*entry, black_box(&a), black_box(&a)) });
                }
                times.push(start.elapsed().as_nanos() as f64 / 5e4);
            }
        }
    }
    println!("\nthe code of dot, ns per element: medians at its best and at its worst place, ratio of the best");
    println!("{:<30} {:>10} {:>10} {:>8}", "variant", "best", "worst", "ratio");
    let range = |times: &[Vec<f64>]| {
        let medians = times.iter().map(|times| median(times));
        medians.fold((f64::INFINITY, 0.0_f64), |(best, worst), time| (best.min(time), worst.max(time)))
    };
    let (first, _) = range(&times[0]);
    for ((name, _), times) in functions.iter().zip(&times) {
        let (best, worst) = range(times);
        println!("{name:<30} {best:>10.3} {worst:>10.3} {:>8.2}", best / first);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let bytes = code_memory();
    if let [word, variant, times] = &arguments[..]
        && word == "run"
    {
        let done = times.parse().ok().and_then(|times| run(variant, times, bytes));
        return if done.is_some() { ExitCode::SUCCESS } else { ExitCode::from(2) };
    }
    print!("{}", include_str!(concat!(env!("OUT_DIR"), "/left_out.txt")));
    let wanted = arguments.first().map_or("", String::as_str);
    let variants: Vec<&Variant> = VARIANTS.iter().filter(|variant| variant.name.contains(wanted)).collect();
    for variant in &variants {
        let entry = run(variant.name, 1, bytes);
        // SAFETY: the variant is a function of this shape for this machine.
        if variant.runs && !entry.is_some_and(|entry| unsafe { workload::is_right(variant.shape, entry) }) {
            eprintln!("{}: what it wrote is wrong", variant.name);
            return ExitCode::FAILURE;
        }
    }
    compare(&variants, bytes);
    if "the code of dot".contains(wanted) {
        compare_code();
    }
    ExitCode::SUCCESS
}
