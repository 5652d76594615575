//! `cargo xtask bench pipe`: composed pipes, loops in C, integrated and one per step, and memcpy; the paper's
//! Table 4; and what composing costs. Everything is compared byte for byte before it is timed.
//! `pipe STEPS BYTES ROUNDS` runs one pipe, for counting instructions; `pipe packets` compares small packets only.

mod contenders;
#[cfg(isal)]
mod packets;

use std::hint::black_box;
use std::time::Instant;

use contenders::{Buffers, Contender, Work, contenders};
use quaject_bench_harness::median;
use quaject_pipe::{Composer, Step, Temperature};

/// Alternating runs of which the median counts.
const RUNS: usize = 11;

/// Where data are before each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Caches {
    /// Where the call before left them.
    Hot,
    /// Source and target are in memory only.
    Cold,
}

/// Nanoseconds of one call: the median of short measurements, which a busy machine interrupts only some of.
fn time(contender: &mut Contender, buffers: &mut Buffers, caches: Caches) -> f64 {
    let (measurements, calls) = match caches {
        Caches::Hot => (15, ((1 << 20) / buffers.bytes).max(1)),
        Caches::Cold => (((2 << 20) / buffers.bytes).clamp(1, 25), 1),
    };
    let mut times = Vec::with_capacity(measurements);
    for _ in 0..measurements {
        if caches == Caches::Cold {
            buffers.flush();
        }
        let start = Instant::now();
        for _ in 0..calls {
            black_box((contender.run)(buffers));
        }
        times.push(start.elapsed().as_secs_f64() * 1e9 / calls as f64);
    }
    median(&times)
}

/// Medians of alternating runs, one for each contender.
//
// Every run has other buffers, and others of the 64 places in a page relative to each other: loads that are
// a little more than a page before a store may wait for it, and lines of both may drive each other out of a cache that
// reads some bits of addresses only. What is compared at one place is chance.
fn compare(contenders: &mut [Contender], bytes: usize, caches: Caches) -> Vec<f64> {
    let mut times = vec![Vec::new(); contenders.len()];
    // Small ones are kept, so that the allocator gives others. Large ones take too much memory and have no such luck.
    let mut all = Vec::new();
    for run in 0..=RUNS {
        if bytes <= 1 << 20 || all.is_empty() {
            all.push(Buffers::new(bytes, 23 * run % 64));
        }
        let buffers = all.last_mut().expect("one has just been made, or kept");
        for (contender, times) in contenders.iter_mut().zip(&mut times) {
            let nanoseconds = time(contender, buffers, caches);
            // The first run warms up.
            if run > 0 {
                times.push(nanoseconds);
            }
        }
    }
    times.iter().map(|times| median(times)).collect()
}

/// The rows of sizes; the last column says what each is held to.
const SIZES: [(usize, Caches); 9] = [
    (1536, Caches::Hot),
    (4 << 10, Caches::Hot),
    (64 << 10, Caches::Hot),
    (256 << 10, Caches::Hot),
    (1 << 20, Caches::Hot),
    (4 << 10, Caches::Cold),
    (64 << 10, Caches::Cold),
    (1 << 20, Caches::Cold),
    (64 << 20, Caches::Cold),
];

fn throughput(work: Work) {
    println!("\n{}: GB/s of data, medians of {RUNS} alternating runs; ratios are ours to theirs", work.name());
    let names: Vec<&str> = contenders(work, Temperature::Unknown).iter().map(|contender| contender.name).collect();
    print!("{:>9} {:>5}", "bytes", "");
    names.iter().for_each(|name| print!(" {name:>14}"));
    println!("  {:>9} {:>9} {:>9} {:>9} {:>9}", "/int. -O3", "/int. -O2", "/sep. -O3", "/memcpy", "/by hand");
    for (bytes, caches) in SIZES {
        let temperature = if caches == Caches::Cold { Temperature::Cold } else { Temperature::Hot };
        let mut contenders = contenders(work, temperature);
        let mut buffers = Buffers::new(bytes, 0);
        contenders::check(&mut contenders, &mut buffers);
        drop(buffers);
        let times = compare(&mut contenders, bytes, caches);
        print!("{bytes:>9} {:>5}", format!("{caches:?}").to_lowercase());
        times.iter().for_each(|time| print!(" {:>14.2}", bytes as f64 / time));
        let best = |word: &str| {
            let of = times.iter().zip(&names).filter(|(_, name)| name.contains(word));
            of.map(|(time, _)| *time).fold(f64::INFINITY, f64::min)
        };
        let ratio = |word: &str| best(word) / best("pipe");
        println!(
            "  {:>9.2} {:>9.2} {:>9.2} {:>9.2} {:>9.2}",
            ratio("int. O3"),
            ratio("int. O2"),
            ratio("sep. O3"),
            ratio("memcpy"),
            ratio("by hand")
        );
    }
}

/// "VCODE", Table 4: microseconds on the two DECstations for separate passes with flushed and with warm caches, the
/// integrated loop in C, and ASH.
const TABLE_4: [(&str, [[u32; 2]; 4]); 2] = [
    ("DEC3100", [[1630, 3190], [1290, 2230], [1120, 1750], [1060, 1600]]),
    ("DEC5000", [[812, 1640], [656, 1280], [597, 976], [455, 836]]),
];

/// The paper does not say how long its messages are; these are four kilobytes.
const TABLE_4_BYTES: usize = 4096;

fn table_4() {
    println!("\nThe paper's Table 4, as ratios to ASH (ours: {TABLE_4_BYTES} bytes, -O2 as in the paper)");
    println!("{:<22} {:>12} {:>24}", "", "copy+checksum", "copy+checksum+byte swap");
    for (machine, rows) in TABLE_4 {
        for (name, row) in ["separate, uncached", "separate", "C integrated", "ASH"].iter().zip(rows) {
            let ratios = [0, 1].map(|column| f64::from(row[column]) / f64::from(rows[3][column]));
            println!("{machine:<8} {name:<18} {:>8.2} {:>20.2}   ({} us, {} us)", ratios[0], ratios[1], row[0], row[1]);
        }
    }
    let mut columns = Vec::new();
    for work in [Work::Checksum, Work::ChecksumSwap] {
        let mut contenders = contenders(work, Temperature::Unknown);
        let hot = compare(&mut contenders, TABLE_4_BYTES, Caches::Hot);
        let cold = compare(&mut contenders, TABLE_4_BYTES, Caches::Cold);
        let best = |times: &[f64], word: &str| {
            let of = times.iter().zip(&contenders).filter(|(_, contender)| contender.name.contains(word));
            of.map(|(time, _)| *time).fold(f64::INFINITY, f64::min)
        };
        columns.push([best(&cold, "sep. O2"), best(&hot, "sep. O2"), best(&hot, "int. O2"), best(&hot, "pipe")]);
    }
    for (index, name) in ["separate, uncached", "separate", "C integrated", "pipe"].iter().enumerate() {
        let ratios = [0, 1].map(|column| columns[column][index] / columns[column][3]);
        let (one, two) = (columns[0][index], columns[1][index]);
        println!("{:<8} {name:<18} {:>8.2} {:>20.2}   ({one:.0} ns, {two:.0} ns)", "here", ratios[0], ratios[1]);
    }
}

fn composing() {
    let composer = Composer::new().expect("the system gives code memory");
    println!("\nComposing, microseconds (medians of {} times 10)", 100 * RUNS);
    for text in [
        vec![Step::Copy],
        vec![Step::Copy, Step::Checksum],
        vec![Step::Copy, Step::Checksum, Step::Swap32],
        vec![Step::Copy, Step::Checksum, Step::Swap32, Step::Crc32c],
        vec![Step::Checksum, Step::Swap16, Step::Checksum, Step::Crc32c],
    ] {
        let times: Vec<f64> = (0..100 * RUNS)
            .map(|_| {
                let start = Instant::now();
                for _ in 0..10 {
                    black_box(composer.compose(&text).expect("the steps are a pipe"));
                }
                start.elapsed().as_secs_f64() * 1e5
            })
            .collect();
        let names: Vec<String> = text.iter().map(ToString::to_string).collect();
        println!("{:>8.2}  {}", median(&times), names.join(" | "));
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [name, bytes, rounds] = &arguments[..] {
        let work = [Work::Checksum, Work::ChecksumSwap].into_iter().find(|work| work.name() == name);
        let mut contenders = contenders(work.expect("`copy+checksum` or `copy+checksum+swap`"), Temperature::Unknown);
        let mut buffers = Buffers::new(bytes.parse().expect("a number of bytes"), 0);
        let pipe = contenders.iter_mut().find(|contender| contender.name == "pipe").expect("it is one of them");
        for _ in 0..rounds.parse().expect("a number of rounds") {
            black_box((pipe.run)(&mut buffers));
        }
        return;
    }
    print!("{}", include_str!(concat!(env!("OUT_DIR"), "/left_out.txt")));
    #[cfg(isal)]
    packets::packets();
    if arguments.iter().any(|word| word == "packets") {
        return;
    }
    composing();
    throughput(Work::Checksum);
    throughput(Work::ChecksumSwap);
    table_4();
}
