//! Runs the contenders in turn and prints cycles per message, medians and ratios of one run. `README.md` has the
//! question and the answers.

mod contenders;

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use contenders::{CAPACITY, Contender, Kind, SPINS, calls, dedicated, optimistic};
use quaject_bench_harness::{instructions, median};

const MESSAGES: u64 = 20_000;
const TRIPS: u64 = 2_000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["alone", kind, operation, count] => alone(kind, operation, count.parse().expect("a number of messages")),
        ["crowd-once", kind, producers, consumers, repetition] => {
            let number = |text: &str| text.parse().expect("a number");
            crowd_once(kind, number(producers), number(consumers), number(repetition));
        }
        questions => {
            print!("{LEFT_OUT}");
            let repetitions = questions.get(1).map_or(61, |text| text.parse().expect("a number of repetitions"));
            let all = ["single", "batch", "insert", "trip", "crowd", "count"];
            questions.first().map_or(&all[..], std::slice::from_ref).iter().for_each(|own| ask(own, repetitions));
        }
    }
}

/// The lines about peers that are not installed.
const LEFT_OUT: &str = include_str!(concat!(env!("OUT_DIR"), "/left_out.txt"));

fn ask(question: &str, repetitions: usize) {
    match question {
        "single" => throughput("SP-SC, one at a time", &dedicated(), repetitions, Loop::Single, 1),
        "batch" => throughput("SP-SC, eight at a time", &batching(dedicated()), repetitions, Loop::Eight, 1),
        "insert" => {
            throughput(
                "MP-SC, eight at a time, one producer",
                &batching(optimistic(1, 1)),
                repetitions,
                Loop::Eight,
                1,
            );
            throughput(
                "MP-SC, eight at a time, two producers",
                &batching(optimistic(2, 1)),
                repetitions,
                Loop::Eight,
                2,
            );
        }
        "trip" => round_trip(repetitions),
        "crowd" => {
            for (producers, consumers) in [(2, 1), (4, 1), (8, 1), (2, 2), (4, 4)] {
                crowd(producers, consumers, repetitions.div_ceil(5));
            }
        }
        "count" => count(),
        other => {
            eprintln!("no question `{other}`; there are: single, batch, insert, trip, crowd, count");
            std::process::exit(2);
        }
    }
}

fn batching(kinds: Vec<Kind>) -> Vec<Kind> {
    kinds.into_iter().filter(|kind| kind.batches).collect()
}

#[derive(Clone, Copy)]
enum Loop {
    Single,
    Eight,
}

impl Loop {
    fn produce(self, queue: &dyn Contender, count: u64) {
        match self {
            Loop::Single => queue.produce(count),
            Loop::Eight => queue.produce8(count),
        }
    }
    fn consume(self, queue: &dyn Contender, count: u64) -> u64 {
        match self {
            Loop::Single => queue.consume(count),
            Loop::Eight => queue.consume8(count),
        }
    }
}

/// Every kind in turn, over and over, each time at another place in memory; the first processor produces, the second
/// consumes.
fn throughput(title: &str, kinds: &[Kind], repetitions: usize, what: Loop, producers: u64) {
    SPINS.store(if producers > 1 { 64 } else { 2000 }, Ordering::Relaxed);
    let mut cycles = vec![Vec::new(); kinds.len()];
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for repetition in 0..=repetitions {
        for (kind, cycles) in kinds.iter().zip(&mut cycles) {
            let _elsewhere = Vec::<u8>::with_capacity(random.below(1024) * 64 + 1);
            let queue = (kind.make)();
            let started = Start::new(producers as u32 + 1);
            let mut elapsed = 0;
            std::thread::scope(|scope| {
                for producer in 0..producers {
                    let (queue, started) = (&*queue, &started);
                    scope.spawn(move || {
                        // The second producer shares the consumer's processor.
                        pin(producer as usize % 2);
                        started.wait();
                        what.produce(queue, MESSAGES);
                    });
                }
                let taker = scope.spawn(|| {
                    pin(1);
                    started.wait();
                    let begin = now();
                    let sum = what.consume(&*queue, MESSAGES * producers);
                    assert_eq!(sum, producers * (MESSAGES * (MESSAGES - 1) / 2), "{} lost items", kind.name);
                    now() - begin
                });
                elapsed = taker.join().expect("the sum is right");
            });
            if repetition > 0 {
                cycles.push(elapsed as f64 / (MESSAGES * producers) as f64);
            }
        }
    }
    print(title, "cycles per message", kinds, &cycles);
}

fn round_trip(repetitions: usize) {
    SPINS.store(20_000, Ordering::Relaxed);
    let mut kinds = dedicated();
    kinds.insert(0, calls());
    let mut cycles = vec![Vec::new(); kinds.len()];
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    for repetition in 0..=repetitions {
        for (kind, cycles) in kinds.iter().zip(&mut cycles) {
            let _elsewhere = Vec::<u8>::with_capacity(random.below(1024) * 64 + 1);
            let there = (kind.make)();
            let _between = Vec::<u8>::with_capacity(random.below(1024) * 64 + 1);
            let back = (kind.make)();
            let started = Start::new(2);
            let mut elapsed = 0;
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    pin(1);
                    started.wait();
                    there.pong(&*back, TRIPS);
                });
                let caller = scope.spawn(|| {
                    pin(0);
                    started.wait();
                    let begin = now();
                    there.ping(&*back, TRIPS);
                    now() - begin
                });
                elapsed = caller.join().expect("the loop ends");
            });
            if repetition > 0 {
                cycles.push(elapsed as f64 / TRIPS as f64);
            }
        }
    }
    print("round trip between two processors", "cycles per trip", &kinds, &cycles);
}

/// Seconds after which a repetition of the crowd is given up; it then counts as having taken that long.
const PATIENCE_S: f64 = 2.0;

/// More threads than processors, none pinned, a waiter yields after 16 turns. Every repetition is a process, because
/// a queue whose waiters spin for a preempted one can take minutes.
fn crowd(producers: usize, consumers: usize, repetitions: usize) {
    let kinds = optimistic(producers, consumers);
    let mut cycles = vec![Vec::new(); kinds.len()];
    let mut given_up = vec![0; kinds.len()];
    let program = std::env::current_exe().expect("this program is a file");
    for repetition in 0..repetitions {
        for (index, kind) in kinds.iter().enumerate() {
            let begin = (std::time::Instant::now(), now());
            let numbers = [producers, consumers, repetition].map(|number| number.to_string());
            let mut command = Command::new(&program);
            command.arg("crowd-once").arg(&kind.name).args(numbers).stdout(std::process::Stdio::piped());
            let mut child = command.spawn().expect("this program starts");
            while child.try_wait().expect("the child is ours").is_none() {
                if begin.0.elapsed().as_secs_f64() > PATIENCE_S {
                    child.kill().expect("the child is ours");
                }
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            let output = child.wait_with_output().expect("the child has ended");
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            cycles[index].push(text.trim().parse().unwrap_or_else(|_| {
                given_up[index] += 1;
                (now() - begin.1) as f64 / CROWD_MESSAGES as f64
            }));
        }
    }
    let title = format!("more threads than processors: {producers} producers, {consumers} consumers");
    print(&title, "cycles per message", &kinds, &cycles);
    for (kind, times) in kinds.iter().zip(given_up).filter(|(_, times)| *times > 0) {
        println!("{}: {times} runs given up after {PATIENCE_S} s", kind.name);
    }
}

const CROWD_MESSAGES: u64 = 60_000;

/// One repetition of [`crowd`]: prints cycles per message.
fn crowd_once(name: &str, producers: usize, consumers: usize, repetition: usize) {
    SPINS.store(16, Ordering::Relaxed);
    let each = CROWD_MESSAGES / producers as u64;
    let mut random = Random(0xda94_2042_e4dd_58b5 ^ (repetition as u64) << 7);
    let _elsewhere = Vec::<u8>::with_capacity(random.below(1024) * 64 + 1);
    let kind = optimistic(producers, consumers).into_iter().find(|kind| kind.name == name);
    let queue = (kind.expect("named by `crowd`").make)();
    let started = Start::new((producers + consumers) as u32);
    let begin = now();
    let sum: u64 = std::thread::scope(|scope| {
        for _ in 0..producers {
            scope.spawn(|| {
                started.wait();
                queue.produce(each);
            });
        }
        let consume = || {
            started.wait();
            queue.consume(each * producers as u64 / consumers as u64)
        };
        let takers: Vec<_> = (0..consumers).map(|_| scope.spawn(consume)).collect();
        takers.into_iter().map(|taker| taker.join().expect("the loop ends")).sum()
    });
    let elapsed = now() - begin;
    assert_eq!(sum, producers as u64 * (each * (each - 1) / 2), "{name} lost items");
    println!("{}", elapsed as f64 / CROWD_MESSAGES as f64);
}

/// Instructions per push and pop, one thread, by callgrind: what remains of a run of N + 10,000 after one of N.
fn count() {
    println!("\ninstructions of a push and a pop, one thread (callgrind)");
    println!("{:<40} {:>10} {:>14}", "", "one", "eight, per item");
    let directory = tempfile::tempdir().expect("there is room for a temporary folder");
    for kind in dedicated().into_iter().chain(optimistic(1, 1)) {
        let per_message = |operation: &str| {
            let run = |count: u64| {
                let mut command = Command::new(std::env::current_exe().expect("this program is a file"));
                command.args(["alone", &kind.name, operation, &count.to_string()]);
                instructions(&command, None, directory.path())
            };
            Some((run(20_480)? as f64 - run(10_240)? as f64) / 10_240.0)
        };
        let show = |count: Option<f64>| count.map_or("-".to_owned(), |count| format!("{count:.1}"));
        let eight = if kind.batches { per_message("eight") } else { None };
        println!("{:<40} {:>10} {:>14}", kind.name, show(per_message("one")), show(eight));
    }
}

/// What `count` runs under callgrind: fills and empties half a queue, over and over.
fn alone(name: &str, operation: &str, count: u64) {
    let kind = dedicated().into_iter().chain(optimistic(1, 1)).find(|kind| kind.name == name);
    let queue = (kind.expect("named by `count`").make)();
    let chunk = CAPACITY as u64 / 2;
    let what = if operation == "eight" { Loop::Eight } else { Loop::Single };
    for _ in 0..count / chunk {
        what.produce(&*queue, chunk);
        what.consume(&*queue, chunk);
    }
}

fn print(title: &str, unit: &str, kinds: &[Kind], cycles: &[Vec<f64>]) {
    let ours = |kind: &Kind| kind.name.starts_with("ours");
    let medians: Vec<f64> = cycles.iter().map(|cycles| median(cycles)).collect();
    let best = |mine: bool| {
        let of_side = kinds.iter().zip(&medians).filter(|(kind, _)| ours(kind) == mine);
        of_side.map(|(_, median)| *median).fold(f64::INFINITY, f64::min)
    };
    let best_peer = best(false);
    let ratio = |median: f64| if best_peer.is_finite() { format!("{:.2}", median / best_peer) } else { "-".to_owned() };
    println!("\n{title}: {unit}, {} runs in turn", cycles[0].len());
    println!("{:<40} {:>9} {:>9} {:>9} {:>9} {:>14}", "", "min", "p25", "median", "max", "x best peer");
    for ((kind, cycles), median) in kinds.iter().zip(cycles).zip(&medians) {
        let mut sorted = cycles.clone();
        sorted.sort_by(f64::total_cmp);
        println!(
            "{:<40} {:>9.1} {:>9.1} {:>9.1} {:>9.1} {:>14}",
            kind.name,
            sorted[0],
            sorted[sorted.len() / 4],
            median,
            sorted[sorted.len() - 1],
            ratio(*median)
        );
    }
}

/// Where all threads of a repetition begin.
struct Start {
    missing: AtomicU32,
}

impl Start {
    fn new(threads: u32) -> Start {
        Start { missing: AtomicU32::new(threads) }
    }

    fn wait(&self) {
        self.missing.fetch_sub(1, Ordering::AcqRel);
        while self.missing.load(Ordering::Acquire) > 0 {
            std::thread::yield_now();
        }
    }
}

/// Time-stamp counter, after everything before it.
fn now() -> u64 {
    // SAFETY: every x86-64 processor has both instructions.
    unsafe {
        std::arch::x86_64::_mm_lfence();
        std::arch::x86_64::_rdtsc()
    }
}

fn pin(processor: usize) {
    // SAFETY: `cpu_set_t` is plain data for which all zeros is a value; the call reads it.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(processor, &mut set);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &set);
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % limit as u64) as usize
    }
}
