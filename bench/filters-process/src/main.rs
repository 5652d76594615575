//! Compiles the filter programs, runs them beside their peers in turn, and prints what a byte costs.
//! Arguments: the programs to measure, 1 to 4, `chains` for random chains, `aborting` for input that keeps aborting,
//! `in-band` for an end of stream that is a byte, `messages` for Figure 2's requests; without any, all programs.

mod others;

use quaject_bench_filters_process::{LENGTH, expected};
use quaject_bench_harness::{instructions, median};
use quaject_bench_peers::{CLANG, COROUTINES, GO, left_out};
use quaject_esp::{Emit, Emitted, File, Loader, Mode, Optimiser, Options, Source, Unrolling, compile};
use quaject_esp_gen::c;
use quaject_esp_syntax::span::FileId;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;

const RUNS: usize = 11;

const MODES: [(&str, Mode, Unrolling); 4] = [
    ("process", Mode::Process, Unrolling::Off),
    ("fastpath", Mode::FastPath, Unrolling::Off),
    ("automata", Mode::Automata, Unrolling::Off),
    ("unrolled", Mode::Automata, Unrolling::On),
];

/// One way to run the filters.
struct Contender {
    name: &'static str,
    /// By program: the command, without the number of times.
    command: Box<dyn Fn(u32) -> Command>,
    /// How often it reads the array in a timed run: enough for some milliseconds.
    times: u32,
    seconds: Vec<f64>,
}

impl Contender {
    fn new(name: &'static str, command: Box<dyn Fn(u32) -> Command>, times: u32) -> Contender {
        Contender { name, command, times, seconds: Vec::new() }
    }
}

/// The compilers of what is written by hand, and of fused programs.
const BUILDS: [(&str, &str); 4] = [("gcc", "-O2"), ("gcc", "-O3"), ("clang", "-O2"), ("clang", "-O3")];

/// Whether a compiler can be compared: gcc always, the others where they are installed.
fn is_there(compiler: &str) -> bool {
    match compiler {
        "clang" | "clang++" => CLANG.is_installed(),
        "g++" => COROUTINES.is_installed(),
        compiler => compiler == "gcc",
    }
}

struct Files(PathBuf);

impl Loader for Files {
    fn load(&mut self, path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        let bytes = std::fs::read(self.0.join(path)).map_err(|error| error.to_string())?;
        Ok((path.to_string(), bytes))
    }
}

/// Translates a program to C: each process on its own, with a fast path, or all fused to one.
fn translate(source: &Path, directory: &Path, mode: Mode) -> Result<(), Box<dyn Error>> {
    translate_with(source, directory, mode, Unrolling::Off)
}

/// Likewise; whether loops of what is fused do several turns at once.
fn translate_with(source: &Path, directory: &Path, mode: Mode, unrolling: Unrolling) -> Result<(), Box<dyn Error>> {
    match translate_as_far(source, directory, mode, unrolling)?.first() {
        Some(refused) => Err(refused.as_str().into()),
        None => Ok(()),
    }
}

/// The same as far as it goes: what was not fused, and which fast paths were not made.
fn translate_as_far(
    source: &Path,
    directory: &Path,
    mode: Mode,
    unrolling: Unrolling,
) -> Result<Vec<String>, Box<dyn Error>> {
    let file = |path: &Path| -> Result<File, Box<dyn Error>> {
        Ok(File { name: path.display().to_string(), bytes: std::fs::read(path)? })
    };
    let folder = source.parent().ok_or("a source lies in a folder")?.to_path_buf();
    let specification = source.with_extension("fp");
    let fast_paths = if specification.is_file() { vec![file(&specification)?] } else { Vec::new() };
    let options = c::Options { style: c::Style::SansIo, lines: c::LineMarks::None, ..c::Options::default() };
    // As `qj build` does.
    let optimiser = Optimiser::On;
    let options = Options { mode, unrolling, optimiser, ..Options::new(Emit::C(options)) };
    let compiled = compile(Source { root: file(source)?, fast_paths }, &mut Files(folder), &options);
    let outputs = compiled.outputs.map_err(|_| format!("{}: {:?}", source.display(), compiled.diagnostics))?;
    let attempts = outputs.fusion_attempts.iter().filter(|attempt| !attempt.is_fused());
    let path_attempts = outputs.path_attempts.iter().filter(|attempt| attempt.result.is_err());
    let refused = attempts.map(|attempt| attempt.text(&outputs.ir));
    let refused = refused.chain(path_attempts.map(|attempt| attempt.text(&outputs.ir))).collect();
    let Emitted::C(output) = outputs.emitted else { return Err("C was asked for".into()) };
    std::fs::create_dir_all(directory.join("quaject"))?;
    std::fs::write(directory.join("program.c"), output.source)?;
    std::fs::write(directory.join("program.h"), output.header)?;
    std::fs::write(directory.join("quaject/esp.h"), quaject_esp_gen::RUNTIME_HEADER)?;
    Ok(refused)
}

/// Bytes of code and constants of a program as gcc -O2 makes it.
fn text_bytes(folder: &Path) -> Option<u64> {
    let object = Command::new("gcc").args(["-std=c99", "-O2", "-I.", "-c", "program.c"]).current_dir(folder).status();
    object.ok().filter(|status| status.success())?;
    let output = Command::new("size").arg("program.o").current_dir(folder).output().ok()?;
    String::from_utf8(output.stdout).ok()?.lines().nth(1)?.split_whitespace().next()?.parse().ok()
}

fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?} failed").into()) }
}

/// Runs a contender once: nanoseconds per byte, and its result.
fn run(mut command: Command, times: u32) -> Result<(f64, String), Box<dyn Error>> {
    command.arg(times.to_string());
    let output = command.output().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?}: {}", output.status).into());
    }
    let text = String::from_utf8(output.stdout)?;
    let (nanoseconds, result) = text.split_once('\n').ok_or("a contender prints two lines")?;
    Ok((nanoseconds.parse()?, result.trim().to_string()))
}

/// Instructions per byte, from two runs of different length.
fn instructions_per_byte(contender: &Contender, program: u32, directory: &Path) -> Option<f64> {
    let count = |times: u32| {
        let mut command = (contender.command)(program);
        command.arg(times.to_string());
        instructions(&command, None, directory)
    };
    Some((count(6)? as f64 - count(1)? as f64) / (5.0 * LENGTH as f64))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut programs: Vec<u32> = std::env::args().skip(1).filter_map(|text| text.parse().ok()).collect();
    programs.retain(|program| (1..=4).contains(program));
    if programs.is_empty() {
        programs = vec![1, 2, 3, 4];
    }
    print!("{}", left_out(&[&CLANG, &COROUTINES, &GO]));
    let directory = tempfile::tempdir()?;
    let place = directory.path().to_path_buf();
    let questions: Vec<String> = std::env::args().skip(1).filter(|text| text.parse::<u32>().is_err()).collect();
    for name in &questions {
        match name.as_str() {
            "chains" => others::random_chains(&place)?,
            "aborting" => others::aborting(&place)?,
            "in-band" => others::in_band(&place)?,
            "messages" => others::messages(&place)?,
            _ => return Err(format!("no question `{name}`: 1 to 4, chains, aborting, in-band or messages").into()),
        }
    }
    if !questions.is_empty() && questions.len() + 1 == std::env::args().count() {
        return Ok(());
    }
    build(&programs, &place)?;
    let mut contenders = contenders(&place)?;
    let mut ratios = Vec::new();
    println!("nanoseconds per input byte: median of {RUNS} runs in turn (min .. max); x: ratio to the first row");
    for program in programs {
        measure(&mut contenders, program)?;
        println!("program {program}");
        print_times(&contenders, program, &place);
        ratios.push(print_ratios(&contenders));
        let sizes: Vec<String> = MODES
            .iter()
            .map(|(name, _, _)| match text_bytes(&place.join(format!("{name}{program}"))) {
                Some(bytes) => format!("{name} {bytes}"),
                None => format!("{name} -"),
            })
            .collect();
        println!("  bytes of code, gcc -O2: {}", sizes.join(", "));
    }
    let mean = |index: usize| {
        let product: f64 = ratios.iter().map(|of_program| of_program[index]).product();
        product.powf(1.0 / ratios.len() as f64)
    };
    println!("to the best by hand, geometric means: best automaton in C {:.2}, jit {:.2}", mean(0), mean(1));
    println!("to the best by hand, geometric mean of the best fast path: {:.2}", mean(2));
    Ok(())
}

/// The target directory of the peers that are written in Rust.
fn peers() -> Result<PathBuf, Box<dyn Error>> {
    Ok(std::env::current_exe()?.with_file_name("peers"))
}

/// Compiles the programs in all modes, and the peers.
fn build(programs: &[u32], place: &Path) -> Result<(), Box<dyn Error>> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let builds = BUILDS.iter().filter(|(compiler, _)| is_there(compiler));
    for program in programs {
        for (name, mode, unrolling) in MODES {
            let folder = place.join(format!("{name}{program}"));
            translate_with(&here.join(format!("esp/program{program}.esp")), &folder, mode, unrolling)?;
            let is_built = |level: &str| level == "-O2" || mode == Mode::Automata;
            for (compiler, level) in builds.clone().filter(|(_, level)| is_built(level)) {
                let mut command = Command::new(compiler);
                command.args(["-std=c99", level, "-I.", "-o"]).arg(format!("{compiler}{level}")).arg("program.c");
                succeed(command.arg(here.join("main.c")).current_dir(&folder))?;
            }
        }
    }
    for (compiler, level) in builds {
        let mut command = Command::new(compiler);
        command
            .args(["-std=c99", level, "-o"])
            .arg(place.join(format!("hand{compiler}{level}")))
            .arg(here.join("hand.c"));
        succeed(&mut command)?;
    }
    if GO.is_installed() {
        succeed(Command::new("go").args(["build", "-o"]).arg(place.join("go")).current_dir(here.join("go")))?;
    }
    // The peer at its best: link-time optimisation makes it about 1.5 times faster.
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--release", "--quiet", "--bin", "embassy", "--bin", "tokio", "--target-dir"]).arg(peers()?);
    cargo.env("CARGO_PROFILE_RELEASE_LTO", "fat").env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "1");
    succeed(cargo.env("CARGO_PROFILE_RELEASE_PANIC", "abort").current_dir(here))?;
    for compiler in ["g++", "clang++"].into_iter().filter(|compiler| is_there(compiler)) {
        let mut command = Command::new(compiler);
        command.args(["-std=c++20", "-O2", "-o"]).arg(place.join(format!("coroutines{compiler}")));
        succeed(command.arg(here.join("coroutines.cpp")))?;
    }
    succeed(Command::new("cargo").args(["build", "--release", "--quiet", "--bin", "jit"]).current_dir(here))
}

/// All contenders, the processes first.
fn contenders(place: &Path) -> Result<Vec<Contender>, Box<dyn Error>> {
    let generated = |mode: &'static str, build: &'static str| {
        let place = place.to_path_buf();
        Box::new(move |program: u32| Command::new(place.join(format!("{mode}{program}/{build}"))))
    };
    let peers = peers()?;
    let jit = std::env::current_exe()?.with_file_name("jit");
    let peer = |path: PathBuf| {
        Box::new(move |program: u32| {
            let mut command = Command::new(&path);
            command.arg(program.to_string());
            command
        })
    };
    let embassy = peers.join("release/embassy");
    let async_peer = |style: &'static str| {
        let path = embassy.clone();
        Box::new(move |program: u32| {
            let mut command = Command::new(&path);
            command.args([&program.to_string(), style]);
            command
        })
    };
    let mut contenders = vec![
        Contender::new("processes, gcc -O2", generated("process", "gcc-O2"), 300),
        Contender::new("processes, clang -O2", generated("process", "clang-O2"), 300),
        Contender::new("fast path, gcc -O2", generated("fastpath", "gcc-O2"), 1000),
        Contender::new("fast path, clang -O2", generated("fastpath", "clang-O2"), 1000),
        Contender::new("automata, gcc -O2", generated("automata", "gcc-O2"), 1000),
        Contender::new("automata, gcc -O3", generated("automata", "gcc-O3"), 1000),
        Contender::new("automata, clang -O2", generated("automata", "clang-O2"), 1000),
        Contender::new("automata, clang -O3", generated("automata", "clang-O3"), 1000),
        Contender::new("unrolled, gcc -O2", generated("unrolled", "gcc-O2"), 1000),
        Contender::new("unrolled, gcc -O3", generated("unrolled", "gcc-O3"), 1000),
        Contender::new("unrolled, clang -O2", generated("unrolled", "clang-O2"), 1000),
        Contender::new("unrolled, clang -O3", generated("unrolled", "clang-O3"), 1000),
        Contender::new("automata, jit", peer(jit), 1000),
        Contender::new("by hand, gcc -O2", peer(place.join("handgcc-O2")), 1000),
        Contender::new("by hand, gcc -O3", peer(place.join("handgcc-O3")), 1000),
        Contender::new("by hand, clang -O2", peer(place.join("handclang-O2")), 1000),
        Contender::new("by hand, clang -O3", peer(place.join("handclang-O3")), 1000),
        Contender::new("embassy-sync, one task", async_peer("joined"), 100),
        Contender::new("embassy-sync, a task each", async_peer("tasks"), 100),
        Contender::new("C++20 coroutines, g++ -O2", peer(place.join("coroutinesg++")), 300),
        Contender::new("C++20 coroutines, clang++ -O2", peer(place.join("coroutinesclang++")), 300),
        Contender::new("tokio, capacity 1", peer(peers.join("release/tokio")), 3),
    ];
    if GO.is_installed() {
        contenders.push(Contender::new("Go, unbuffered", peer(place.join("go")), 3));
    }
    contenders.retain(|contender| compiler_of(contender.name).is_none_or(is_there));
    Ok(contenders)
}

/// What compiled a contender: its name ends with that, and with a level of optimisation.
fn compiler_of(name: &str) -> Option<&str> {
    let (_, build) = name.split_once(", ")?;
    build.split_once(" -O").map(|(compiler, _)| compiler)
}

/// Checks the results of a program, and runs the contenders in turn.
fn measure(contenders: &mut [Contender], program: u32) -> Result<(), Box<dyn Error>> {
    for contender in &mut *contenders {
        contender.seconds.clear();
        for times in [1, 7] {
            let (_, result) = run((contender.command)(program), times)?;
            if result != expected(program, times) {
                return Err(format!("{}: program {program} gives {result}", contender.name).into());
            }
        }
    }
    for _ in 0..RUNS {
        for contender in &mut *contenders {
            let (nanoseconds, _) = run((contender.command)(program), contender.times)?;
            contender.seconds.push(nanoseconds);
        }
    }
    Ok(())
}

/// One row per contender.
fn print_times(contenders: &[Contender], program: u32, place: &Path) {
    let first = median(&contenders[0].seconds);
    for contender in contenders {
        let min = contender.seconds.iter().copied().fold(f64::INFINITY, f64::min);
        let max = contender.seconds.iter().copied().fold(0.0, f64::max);
        let middle = median(&contender.seconds);
        let counted = match instructions_per_byte(contender, program, place) {
            Some(count) => format!("{count:.0} instructions"),
            None => "-".to_string(),
        };
        println!("  {:<26} {middle:>9.2} ({min:.2} .. {max:.2}) x {:>7.2}   {counted}", contender.name, middle / first);
    }
}

/// Prints how the kinds of contenders compare; returns the ratios of automaton, machine code and fast path to the best
/// by hand.
fn print_ratios(contenders: &[Contender]) -> [f64; 3] {
    let best = |kind: &str| {
        let of_kind = contenders.iter().filter(|contender| {
            contender.name.starts_with(kind) && (contender.name.ends_with("jit") == kind.ends_with("jit"))
        });
        of_kind.map(|contender| median(&contender.seconds)).fold(f64::INFINITY, f64::min)
    };
    let beyond = |kind: &str| {
        let ratio = best(kind) / best("automata");
        if ratio.is_finite() { format!("{ratio:.1}") } else { "-".to_owned() }
    };
    let by_hand = best("by hand");
    let ratios = [best("automata") / by_hand, best("automata, jit") / by_hand, best("fast path") / by_hand];
    println!("  best automaton in C : best by hand {:.2}, jit : best by hand {:.2}", ratios[0], ratios[1]);
    println!(
        "  best fast path : best by hand {:.2}, processes : fast path {:.2}",
        ratios[2],
        best("processes") / best("fast path")
    );
    println!("  best by hand : best unrolled automaton {:.2}", by_hand / best("unrolled"));
    println!("  by automaton: C++20 coroutines {}, tokio {}, Go {}", beyond("C++20"), beyond("tokio"), beyond("Go"));
    ratios
}
