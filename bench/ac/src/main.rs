//! Switches, yields, tasks and blocks of Asynchronous C beside other coroutines, fibers and executors, all in one run:
//! the contenders take turns, so that a machine that changes its speed changes it for all. Judges only by the bars
//! printed beside each number. `--check` fails when a bar is missed.

mod peers;

use std::process::{Command, ExitCode};

use quaject_bench_harness::median;
use quaject_bench_peers::{GO, left_out};

/// Does `n` operations and returns the cycles they took.
type Measured = unsafe extern "C" fn(n: i64) -> u64;

// SAFETY: defined in c/ours.c, once per compiler, and in the files of the peers; any `n` of at least 1000 will do.
unsafe extern "C" {
    fn gcc_call(n: i64) -> u64;
    fn gcc_empty_async(n: i64) -> u64;
    fn gcc_finish_empty(n: i64) -> u64;
    fn gcc_finish_yield(n: i64) -> u64;
    fn gcc_yield(n: i64) -> u64;
    fn gcc_yield_direct(n: i64) -> u64;
    fn gcc_yield_id(n: i64) -> u64;
    fn gcc_yield_ring(n: i64) -> u64;
    #[cfg(clang)]
    fn clang_call(n: i64) -> u64;
    #[cfg(clang)]
    fn clang_empty_async(n: i64) -> u64;
    #[cfg(clang)]
    fn clang_finish_empty(n: i64) -> u64;
    #[cfg(clang)]
    fn clang_finish_yield(n: i64) -> u64;
    #[cfg(clang)]
    fn clang_yield(n: i64) -> u64;
    #[cfg(clang)]
    fn clang_yield_direct(n: i64) -> u64;
    #[cfg(clang)]
    fn clang_yield_id(n: i64) -> u64;
    #[cfg(clang)]
    fn clang_yield_ring(n: i64) -> u64;
    #[cfg(boost_context)]
    fn boost_context_switch(n: i64) -> u64;
    #[cfg(boost_context)]
    fn boost_context_create(n: i64) -> u64;
    #[cfg(boost_fiber)]
    fn boost_fiber_yield(n: i64) -> u64;
    #[cfg(boost_fiber)]
    fn boost_fiber_create(n: i64) -> u64;
    #[cfg(coroutines)]
    fn cpp20_symmetric(n: i64) -> u64;
    #[cfg(coroutines)]
    fn cpp20_create(n: i64) -> u64;
}

/// What is measured, under which name; the operations of one round.
const CONTENDERS: &[(&str, Measured, i64)] = &[
    ("a call, gcc", gcc_call, 20_000),
    #[cfg(clang)]
    ("a call, clang", clang_call, 20_000),
    ("empty ASYNC, gcc", gcc_empty_async, 20_000),
    #[cfg(clang)]
    ("empty ASYNC, clang", clang_empty_async, 20_000),
    ("block with an empty task, gcc", gcc_finish_empty, 20_000),
    #[cfg(clang)]
    ("block with an empty task, clang", clang_finish_empty, 20_000),
    ("block with a task that yields, gcc", gcc_finish_yield, 20_000),
    #[cfg(clang)]
    ("block with a task that yields, clang", clang_finish_yield, 20_000),
    ("yield, gcc", gcc_yield, 20_000),
    #[cfg(clang)]
    ("yield, clang", clang_yield, 20_000),
    ("yield to a task, gcc", gcc_yield_direct, 20_000),
    #[cfg(clang)]
    ("yield to a task, clang", clang_yield_direct, 20_000),
    ("yield to a number and save, gcc", gcc_yield_id, 20_000),
    #[cfg(clang)]
    ("yield to a number and save, clang", clang_yield_id, 20_000),
    ("the same, three in a ring, gcc", gcc_yield_ring, 20_001),
    #[cfg(clang)]
    ("the same, three in a ring, clang", clang_yield_ring, 20_001),
    ("scope with a task that yields, Rust", peers::scope_create, 20_000),
    ("corosensei, resume or suspend", peers::corosensei_switch, 20_000),
    ("corosensei, pooled task that yields", peers::corosensei_create, 20_000),
    #[cfg(boost_context)]
    ("Boost.Context, switch", boost_context_switch, 20_000),
    #[cfg(boost_context)]
    ("Boost.Context, pooled task that yields", boost_context_create, 20_000),
    #[cfg(boost_fiber)]
    ("Boost.Fiber, yield", boost_fiber_yield, 20_000),
    #[cfg(boost_fiber)]
    ("Boost.Fiber, task that yields, joined", boost_fiber_create, 5_000),
    #[cfg(coroutines)]
    ("C++20, symmetric transfer", cpp20_symmetric, 20_000),
    #[cfg(coroutines)]
    ("C++20, coroutine that yields", cpp20_create, 20_000),
    ("async-task, yield", peers::async_task_yield, 20_000),
    ("async-task, task that yields", peers::async_task_create, 20_000),
    ("tokio current_thread, yield", peers::tokio_yield, 20_000),
    ("tokio current_thread, task that yields, joined", peers::tokio_create, 5_000),
];

/// Unless an argument says how many.
const ROUNDS: usize = 101;

/// One line of the table of bars.
struct Bar {
    what: String,
    ours: f64,
    /// The bar in cycles, and in ratios to peers: the peer's name, its number, how many times ours it must be.
    cycles: f64,
    ratios: Vec<(&'static str, f64, f64)>,
    /// How the cycles and the ratios go together.
    rule: Rule,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// The cycles, and every ratio.
    All,
    /// The cycles or the first ratio, and every other ratio.
    CyclesOrFirst,
}

impl Bar {
    fn holds(&self) -> bool {
        let cycles = self.ours <= self.cycles;
        let mut ratios = self.ratios.iter().map(|(_, peer, wanted)| peer / self.ours >= *wanted);
        match self.rule {
            Rule::All => cycles && ratios.all(|holds| holds),
            Rule::CyclesOrFirst => (cycles | ratios.next().unwrap_or(false)) && ratios.all(|holds| holds),
        }
    }
}

fn main() -> ExitCode {
    let check = std::env::args().any(|argument| argument == "--check");
    print!("{}{}", include_str!(concat!(env!("OUT_DIR"), "/left_out.txt")), left_out(&[&GO]));
    let rounds = std::env::args().find_map(|argument| argument.parse().ok()).unwrap_or(ROUNDS);
    let mut cycles: Vec<Vec<f64>> = vec![Vec::new(); CONTENDERS.len()];
    for round in 0..=rounds {
        for ((_, function, count), all) in CONTENDERS.iter().zip(&mut cycles) {
            // SAFETY: the functions accept any count of at least 1000.
            let spent = unsafe { function(*count) };
            if round > 0 {
                all.push(spent as f64 / *count as f64);
            }
        }
    }
    println!("{:<48} {:>9} {:>9}   cycles of the time stamp, {rounds} rounds in turn", "", "median", "least");
    for ((name, _, _), all) in CONTENDERS.iter().zip(&cycles) {
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{name:<48} {:>9.2} {least:>9.2}", median(all));
    }
    let go = measure_go();
    let of = |name: &str| {
        let index = CONTENDERS.iter().position(|(known, _, _)| *known == name)?;
        Some(median(&cycles[index]))
    };
    let bars = bars(of, go);
    println!();
    let mut missed = 0;
    for bar in &bars {
        let ratios: Vec<String> = bar
            .ratios
            .iter()
            .map(|(peer, cycles, wanted)| format!("{peer} {:.1}x (bar {wanted:.2}x)", cycles / bar.ours))
            .collect();
        let verdict = if bar.holds() { "holds " } else { "MISSED" };
        missed += usize::from(!bar.holds());
        println!("{verdict} {:<44} {:>6.2} (bar {:.1})  {}", bar.what, bar.ours, bar.cycles, ratios.join(", "));
    }
    if check && missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// The bars of each compiler that is installed, with the peers that are.
fn bars(of: impl Fn(&str) -> Option<f64>, go: Option<(f64, f64)>) -> Vec<Bar> {
    let mut bars = Vec::new();
    let compilers: &[_] = if cfg!(clang) { &["gcc", "clang"] } else { &["gcc"] };
    for compiler in compilers {
        let ours = |what: &str| of(&format!("{what}, {compiler}")).expect("ours is in the table");
        let named = |what: &str| format!("{what}, {compiler}");
        let ratio = |name, contender: &str, wanted| of(contender).map(|cycles| (name, cycles, wanted));
        bars.push(Bar {
            what: named("yield to a task, inline"),
            ours: ours("yield to a task"),
            cycles: 3.5,
            ratios: [
                ratio("corosensei", "corosensei, resume or suspend", 1.0 / 1.5),
                ratio("C++20 symmetric", "C++20, symmetric transfer", 2.0),
            ]
            .into_iter()
            .flatten()
            .collect(),
            rule: Rule::CyclesOrFirst,
        });
        for what in ["yield to a number and save", "the same, three in a ring"] {
            bars.push(Bar {
                what: named(what),
                ours: ours(what),
                cycles: 10.0,
                ratios: vec![("the paper's 71", 71.0, 5.0)],
                rule: Rule::All,
            });
        }
        let peers = [
            ratio("async-task", "async-task, yield", 6.0),
            ratio("tokio", "tokio current_thread, yield", 8.0),
            go.map(|(yields, _)| ("Go", yields, 15.0)),
        ];
        bars.push(Bar {
            what: named("yield through the queue"),
            ours: ours("yield"),
            cycles: 15.0,
            ratios: peers.into_iter().flatten().collect(),
            rule: Rule::All,
        });
        bars.push(Bar {
            what: named("empty ASYNC beyond the call"),
            ours: ours("empty ASYNC") - ours("a call"),
            cycles: 4.0,
            ratios: Vec::new(),
            rule: Rule::All,
        });
        let peers = [
            ratio("tokio", "tokio current_thread, task that yields, joined", 12.0),
            go.map(|(_, create)| ("Go", create, 20.0)),
        ];
        bars.push(Bar {
            what: named("block with one task that yields"),
            ours: ours("block with a task that yields"),
            cycles: 60.0,
            ratios: peers.into_iter().flatten().collect(),
            rule: Rule::All,
        });
    }
    bars
}

/// Go's numbers in cycles: it cannot read the time stamp, so its nanoseconds are converted.
fn measure_go() -> Option<(f64, f64)> {
    if !GO.is_installed() {
        return None;
    }
    let output = Command::new("go").args(["run", "."]).current_dir("go").output().ok()?;
    if !output.status.success() {
        eprintln!("go: {}", String::from_utf8_lossy(&output.stderr));
        return None;
    }
    let text = String::from_utf8(output.stdout).ok()?;
    let mut numbers = text.split_whitespace().map(|word| word.parse::<f64>());
    let (yields, create) = (numbers.next()?.ok()?, numbers.next()?.ok()?);
    let rate = peers::cycles_per_nanosecond();
    println!("{:<48} {:>9.2}", "Go, Gosched", yields * rate);
    println!("{:<48} {:>9.2}", "Go, goroutine that yields, joined", create * rate);
    Some((yields * rate, create * rate))
}
