//! Compares the code that programs in 'C generate with gcc's, of general functions and of functions with the constants
//! written in; counts what making it costs, and after how many uses it pays. `bench-tickc run PROGRAM FORM TIMES` is
//! what callgrind counts; `bench-tickc --times` counts nothing.

use std::ffi::{CStr, c_char, c_int, c_long, c_ulong, c_void};
use std::process::{Command, ExitCode};

use quaject_bench_harness::{instructions, median};
use quaject_vcode::decode::{Disassembly, X86_64};

mod host;
mod peers;

/// A program of `c/programs.tc`; as `struct program` of `c/programs.h`.
#[repr(C)]
struct Program {
    name: *const c_char,
    usage: *const c_char,
    uses: c_long,
    general: extern "C" fn(c_long) -> c_long,
    with: unsafe extern "C" fn(*mut c_void, c_long) -> c_long,
    make: extern "C" fn() -> *mut c_void,
    constant: *mut c_void,
}

/// As `qjt_statistics` of `quaject/tickc.h`.
#[repr(C)]
struct Statistics {
    bytes: c_ulong,
    instructions: c_ulong,
    nodes: c_ulong,
}

/// As `qjt_mark` of `quaject/tickc.h`.
#[repr(C)]
struct Mark {
    chunk: *mut c_void,
    used: c_ulong,
}

// SAFETY: these are the declarations of `c/programs.tc` and `quaject/tickc.h`.
unsafe extern "C" {
    fn bench_programs(count: *mut usize) -> *const Program;
    fn bench_free(function: *mut c_void);
    fn bench_make_line(length: c_int) -> *mut c_void;
    fn qjt_last() -> Statistics;
    fn qjt_set_mark() -> Mark;
    fn qjt_release(mark: Mark);
}

/// How often everything is measured; medians are reported.
const ROUNDS: usize = 15;
/// Functions that are made between two looks at the clock.
const MADE_AT_ONCE: u32 = 64;

fn programs() -> &'static [Program] {
    let mut count = 0;
    // SAFETY: the function stores the length of the static array that it returns.
    unsafe { std::slice::from_raw_parts(bench_programs(&mut count), count) }
}

fn text(own: *const c_char) -> &'static str {
    // SAFETY: the table has literals.
    unsafe { CStr::from_ptr(own) }.to_str().expect("the names are ASCII")
}

/// The cycles of a call, by the counter of the processor, which runs at a constant rate.
pub(crate) fn cycles(call: impl FnOnce()) -> f64 {
    // SAFETY: the counter can be read by every program.
    let start = unsafe { std::arch::x86_64::_rdtsc() };
    call();
    // SAFETY: as above.
    (unsafe { std::arch::x86_64::_rdtsc() } - start) as f64
}

impl Program {
    fn with(&self, function: *mut c_void, uses: c_long) -> c_long {
        // SAFETY: the function is this program's own, and was not freed.
        unsafe { (self.with)(function, uses) }
    }

    /// Makes the function so many times, and frees it, trees included.
    fn make_and_free(&self, times: u32) {
        make_and_free(times, || (self.make)());
    }
}

fn make_and_free(times: u32, make: impl Fn() -> *mut c_void) {
    for _ in 0..times {
        // SAFETY: nothing that was made since the mark is used after its release, and functions are freed once.
        unsafe {
            let mark = qjt_set_mark();
            bench_free(make());
            qjt_release(mark);
        }
    }
}

/// The machine instructions of the function that was compiled last.
fn generated_instructions(function: *mut c_void) -> usize {
    // SAFETY: the function has so many bytes, and stays until it is freed.
    let code = unsafe { std::slice::from_raw_parts(function as *const u8, qjt_last().bytes as usize) };
    let rows = Disassembly::new(&X86_64, code, function as usize);
    // Bytes that are no instruction are constants behind the code.
    rows.take_while(|row| row.decoded.is_some()).count()
}

/// Whether instructions are counted, which takes minutes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Counting {
    Callgrind,
    Off,
}

/// What was measured of one program.
struct Result {
    general: f64,
    constant: f64,
    generated: f64,
    making: f64,
    length: usize,
    counts: [Option<f64>; 4],
}

fn measure(program: &Program, counting: Counting, binary: &std::path::Path) -> Result {
    let function = (program.make)();
    let length = generated_instructions(function);
    let wanted = (program.general)(1);
    for (form, own) in [("generated", function), ("constant", program.constant)] {
        assert_eq!(program.with(own, 1), wanted, "{}: the {form} code has another result", text(program.name));
    }
    let mut rounds: [Vec<f64>; 4] = Default::default();
    let per_use = program.uses as f64;
    for _ in 0..ROUNDS {
        rounds[0].push(cycles(|| _ = std::hint::black_box((program.general)(program.uses))) / per_use);
        rounds[1].push(cycles(|| _ = std::hint::black_box(program.with(program.constant, program.uses))) / per_use);
        rounds[2].push(cycles(|| _ = std::hint::black_box(program.with(function, program.uses))) / per_use);
        rounds[3].push(cycles(|| program.make_and_free(MADE_AT_ONCE)) / f64::from(MADE_AT_ONCE));
    }
    let counts = ["general", "constant", "generated", "making"].map(|form| match counting {
        Counting::Callgrind => count(program, form, binary),
        Counting::Off => None,
    });
    let [general, constant, generated, making] = rounds.map(|own| median(&own));
    Result { general, constant, generated, making, length, counts }
}

/// Instructions of one use, or of making the function, as the difference of two counts.
fn count(program: &Program, form: &str, binary: &std::path::Path) -> Option<f64> {
    let folder = std::env::temp_dir();
    let total = |times: c_long| {
        let mut command = Command::new(binary);
        command.args(["run", text(program.name), form, &times.to_string()]);
        instructions(&command, None, &folder)
    };
    let few = (1000 / program.uses.max(1)).clamp(1, 4);
    let more = 5 * few;
    Some((total(more)? as f64 - total(few)? as f64) / (more - few) as f64)
}

/// One form of a program so many times: for callgrind.
fn run(name: &str, form: &str, times: c_long) {
    let program = programs().iter().find(|own| text(own.name) == name).expect("the parent process has named it");
    let result = match form {
        "general" => (program.general)(times),
        "constant" => program.with(program.constant, times),
        "generated" => program.with((program.make)(), times),
        "making" => {
            program.make_and_free(times as u32);
            0
        }
        other => unreachable!("the parent process has no form `{other}`"),
    };
    std::hint::black_box(result);
}

/// The uses after which generated code has paid for itself.
fn break_even(own: &Result) -> Option<f64> {
    (own.general > own.generated).then(|| own.making / (own.general - own.generated))
}

fn print_speed(results: &[(&Program, Result)]) {
    println!(
        "one use: cycles (instructions) of gcc -O2's general code, with constants written in, and of generated code"
    );
    println!(
        "{:<10} {:<14} {:>20} {:>20} {:>20} {:>9} {:>9}",
        "", "use", "general", "constants", "generated", "x general", "x const."
    );
    let show = |cycles: f64, count: Option<f64>| match count {
        Some(count) => format!("{cycles:.1} ({count:.0})"),
        None => format!("{cycles:.1} (-)"),
    };
    for (program, own) in results {
        println!(
            "{:<10} {:<14} {:>20} {:>20} {:>20} {:>9.2} {:>9.2}",
            text(program.name),
            text(program.usage),
            show(own.general, own.counts[0]),
            show(own.constant, own.counts[1]),
            show(own.generated, own.counts[2]),
            own.general / own.generated,
            own.generated / own.constant,
        );
    }
}

fn print_making(results: &[(&Program, Result)]) {
    println!("\nmaking a function: ticks, compile() and free_code()");
    println!(
        "{:<10} {:>10} {:>12} {:>12} {:>14} {:>12}",
        "", "generated", "cycles", "cycles per", "host instr. per", "break-even"
    );
    println!("{:<10} {:>10} {:>12} {:>12} {:>14} {:>12}", "", "instr.", "", "instr.", "instr.", "uses");
    for (program, own) in results {
        let length = own.length as f64;
        println!(
            "{:<10} {:>10} {:>12.0} {:>12.1} {:>14} {:>12}",
            text(program.name),
            own.length,
            own.making,
            own.making / length,
            own.counts[3].map_or("-".to_owned(), |count| format!("{:.0}", count / length)),
            break_even(own).map_or("never".to_owned(), |uses| format!("{uses:.1}")),
        );
    }
}

fn print_lines() {
    println!("\nstraight lines of additions, loads, exclusive or and subtractions in one tick");
    for length in [10, 100, 300] {
        // SAFETY: the function is used before it is freed.
        let count = unsafe {
            let function = bench_make_line(length);
            let count = generated_instructions(function);
            bench_free(function);
            count
        };
        // SAFETY: the length is any number.
        let make = || unsafe { bench_make_line(length) };
        let times = 3000 / length as u32;
        let rounds: Vec<f64> = (0..ROUNDS).map(|_| cycles(|| make_and_free(times, make)) / f64::from(times)).collect();
        println!("{count:>6} instructions: {:.1} cycles per instruction", median(&rounds) / count as f64);
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["run", name, form, times] => {
            run(name, form, times.parse().expect("the parent process passes a number"));
            return ExitCode::SUCCESS;
        }
        // Writes the code of a program, for a disassembler.
        ["code", name] => {
            let program = programs().iter().find(|own| text(own.name) == *name).expect("it is a program");
            let function = (program.make)();
            // SAFETY: the function has so many bytes.
            let code = unsafe { std::slice::from_raw_parts(function as *const u8, qjt_last().bytes as usize) };
            for row in Disassembly::new(&X86_64, code, 0) {
                println!("{row}");
            }
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let binary = std::env::current_exe().expect("the program has a path");
    let counting = if arguments.contains(&"--times") { Counting::Off } else { Counting::Callgrind };
    let names: Vec<&str> = arguments.into_iter().filter(|own| *own != "--times").collect();
    let chosen = |own: &&Program| names.is_empty() || names.contains(&text(own.name));
    let results: Vec<(&Program, Result)> =
        programs().iter().filter(chosen).map(|program| (program, measure(program, counting, &binary))).collect();
    print_speed(&results);
    print_making(&results);
    if names.is_empty() {
        print_lines();
        let product = programs().iter().find(|own| text(own.name) == "dp").expect("it is in the table");
        peers::print(&|| product.make_and_free(MADE_AT_ONCE), f64::from(MADE_AT_ONCE), product);
        host::print();
    }
    ExitCode::SUCCESS
}
