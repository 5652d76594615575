//! Switches, yields, tasks and blocks of Asynchronous C beside other coroutines, fibers and executors, all in one run:
//! the contenders take turns, so that a machine that changes its speed changes it for all. Judges only by the bars
//! printed beside each number. `--check` fails when a bar is missed.

mod peers;

use std::process::{Command, ExitCode};

use quaject_bench_harness::median;

/// Does `n` operations and returns the cycles they took.
type Measured = unsafe extern "C" fn(n: i64) -> u64;

// SAFETY: defined in c/ours.c, once per compiler, and in c/peers.cpp; any `n` of at least 1000 will do.
unsafe extern "C" {
    fn gcc_call(n: i64) -> u64;
    fn gcc_empty_async(n: i64) -> u64;
    fn gcc_finish_empty(n: i64) -> u64;
    fn gcc_finish_yield(n: i64) -> u64;
    fn gcc_yield(n: i64) -> u64;
    fn gcc_yield_direct(n: i64) -> u64;
    fn gcc_yield_id(n: i64) -> u64;
    fn gcc_yield_ring(n: i64) -> u64;
    fn clang_call(n: i64) -> u64;
    fn clang_empty_async(n: i64) -> u64;
    fn clang_finish_empty(n: i64) -> u64;
    fn clang_finish_yield(n: i64) -> u64;
    fn clang_yield(n: i64) -> u64;
    fn clang_yield_direct(n: i64) -> u64;
    fn clang_yield_id(n: i64) -> u64;
    fn clang_yield_ring(n: i64) -> u64;
    fn boost_context_switch(n: i64) -> u64;
    fn boost_context_create(n: i64) -> u64;
    fn boost_fiber_yield(n: i64) -> u64;
    fn boost_fiber_create(n: i64) -> u64;
    fn cpp20_symmetric(n: i64) -> u64;
    fn cpp20_create(n: i64) -> u64;
}

/// What is measured, under which name; the operations of one round.
const CONTENDERS: &[(&str, Measured, i64)] = &[
    ("a call, gcc", gcc_call, 20_000),
    ("a call, clang", clang_call, 20_000),
    ("empty ASYNC, gcc", gcc_empty_async, 20_000),
    ("empty ASYNC, clang", clang_empty_async, 20_000),
    ("block with an empty task, gcc", gcc_finish_empty, 20_000),
    ("block with an empty task, clang", clang_finish_empty, 20_000),
    ("block with a task that yields, gcc", gcc_finish_yield, 20_000),
    ("block with a task that yields, clang", clang_finish_yield, 20_000),
    ("yield, gcc", gcc_yield, 20_000),
    ("yield, clang", clang_yield, 20_000),
    ("yield to a task, gcc", gcc_yield_direct, 20_000),
    ("yield to a task, clang", clang_yield_direct, 20_000),
    ("yield to a number and save, gcc", gcc_yield_id, 20_000),
    ("yield to a number and save, clang", clang_yield_id, 20_000),
    ("the same, three in a ring, gcc", gcc_yield_ring, 20_001),
    ("the same, three in a ring, clang", clang_yield_ring, 20_001),
    ("scope with a task that yields, Rust", peers::scope_create, 20_000),
    ("corosensei, resume or suspend", peers::corosensei_switch, 20_000),
    ("corosensei, pooled task that yields", peers::corosensei_create, 20_000),
    ("Boost.Context, switch", boost_context_switch, 20_000),
    ("Boost.Context, pooled task that yields", boost_context_create, 20_000),
    ("Boost.Fiber, yield", boost_fiber_yield, 20_000),
    ("Boost.Fiber, task that yields, joined", boost_fiber_create, 5_000),
    ("C++20, symmetric transfer", cpp20_symmetric, 20_000),
    ("C++20, coroutine that yields", cpp20_create, 20_000),
    ("async-task, yield", peers::async_task_yield, 20_000),
    ("async-task, task that yields", peers::async_task_create, 20_000),
    ("tokio current_thread, yield", peers::tokio_yield, 20_000),
    ("tokio current_thread, task that yields, joined", peers::tokio_create, 5_000),
];

const ROUNDS: usize = 101;

/// One line of the table of bars.
struct Bar {
    what: &'static str,
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
    let mut cycles: Vec<Vec<f64>> = vec![Vec::new(); CONTENDERS.len()];
    for round in 0..=ROUNDS {
        for ((_, function, count), all) in CONTENDERS.iter().zip(&mut cycles) {
            // SAFETY: the functions accept any count of at least 1000.
            let spent = unsafe { function(*count) };
            if round > 0 {
                all.push(spent as f64 / *count as f64);
            }
        }
    }
    println!("{:<48} {:>9} {:>9}   cycles of the time stamp, {ROUNDS} rounds in turn", "", "median", "least");
    for ((name, _, _), all) in CONTENDERS.iter().zip(&cycles) {
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        println!("{name:<48} {:>9.2} {least:>9.2}", median(all));
    }
    let go = measure_go();
    let of = |name: &str| {
        let index = CONTENDERS.iter().position(|(known, _, _)| *known == name).expect("the name stands in the table");
        median(&cycles[index])
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

fn bars(of: impl Fn(&str) -> f64, go: Option<(f64, f64)>) -> Vec<Bar> {
    let mut bars = Vec::new();
    for compiler in ["gcc", "clang"] {
        let ours = |what: &str| of(&format!("{what}, {compiler}"));
        let named = |gcc: &'static str, clang: &'static str| if compiler == "gcc" { gcc } else { clang };
        bars.push(Bar {
            what: named("yield to a task, inline, gcc", "yield to a task, inline, clang"),
            ours: ours("yield to a task"),
            cycles: 3.5,
            ratios: vec![
                ("corosensei", of("corosensei, resume or suspend"), 1.0 / 1.5),
                ("C++20 symmetric", of("C++20, symmetric transfer"), 2.0),
            ],
            rule: Rule::CyclesOrFirst,
        });
        bars.push(Bar {
            what: named("yield to a number and save, gcc", "yield to a number and save, clang"),
            ours: ours("yield to a number and save"),
            cycles: 10.0,
            ratios: vec![("the paper's 71", 71.0, 5.0)],
            rule: Rule::All,
        });
        bars.push(Bar {
            what: named("the same, three in a ring, gcc", "the same, three in a ring, clang"),
            ours: ours("the same, three in a ring"),
            cycles: 10.0,
            ratios: vec![("the paper's 71", 71.0, 5.0)],
            rule: Rule::All,
        });
        let mut peers =
            vec![("async-task", of("async-task, yield"), 6.0), ("tokio", of("tokio current_thread, yield"), 8.0)];
        peers.extend(go.map(|(yields, _)| ("Go", yields, 15.0)));
        bars.push(Bar {
            what: named("yield through the queue, gcc", "yield through the queue, clang"),
            ours: ours("yield"),
            cycles: 15.0,
            ratios: peers,
            rule: Rule::All,
        });
        bars.push(Bar {
            what: named("empty ASYNC beyond the call, gcc", "empty ASYNC beyond the call, clang"),
            ours: ours("empty ASYNC") - ours("a call"),
            cycles: 4.0,
            ratios: Vec::new(),
            rule: Rule::All,
        });
        let mut peers = vec![("tokio", of("tokio current_thread, task that yields, joined"), 12.0)];
        peers.extend(go.map(|(_, create)| ("Go", create, 20.0)));
        bars.push(Bar {
            what: named("block with one task that yields, gcc", "block with one task that yields, clang"),
            ours: ours("block with a task that yields"),
            cycles: 60.0,
            ratios: peers,
            rule: Rule::All,
        });
    }
    bars
}

/// Go's numbers in cycles: it cannot read the time stamp, so its nanoseconds are converted.
fn measure_go() -> Option<(f64, f64)> {
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
