//! Small packets: `copy | crc32c` composed, and `memcpy` with the CRC of ISA-L, which is written for the processor by
//! hand. The results are compared before they are timed.

use std::hint::black_box;
use std::time::Instant;

use quaject_bench_harness::median;
use quaject_pipe::{Composer, Step};

/// Alternating runs of which the median counts.
const RUNS: usize = 21;
/// Calls of a measurement.
const CALLS: usize = 20_000;
/// Bytes of a packet.
const SIZES: [usize; 14] = [16, 20, 32, 48, 63, 64, 96, 127, 128, 192, 255, 256, 512, 1536];

// SAFETY: the declarations of <isa-l/crc.h>.
unsafe extern "C" {
    fn crc32_iscsi(bytes: *const u8, length: i32, remainder: u32) -> u32;
}

/// `memcpy`, and the CRC of the copy by ISA-L.
fn copy_and_isal(target: &mut [u8], source: &[u8]) -> u32 {
    target.copy_from_slice(source);
    // SAFETY: so many bytes can be read.
    !unsafe { crc32_iscsi(target.as_ptr(), target.len() as i32, u32::MAX) }
}

/// Median nanoseconds of a call of each.
fn compare(contenders: &mut [&mut dyn FnMut(&mut [u8], &[u8]) -> u32], bytes: usize) -> Vec<f64> {
    let source: Vec<u8> = (0..bytes).map(|at| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0]).collect();
    let mut targets = vec![vec![0; bytes]; contenders.len()];
    let mut times = vec![Vec::new(); contenders.len()];
    let mut results = Vec::new();
    for run in 0..=RUNS {
        for ((contender, target), times) in contenders.iter_mut().zip(&mut targets).zip(&mut times) {
            let start = Instant::now();
            for _ in 0..CALLS {
                black_box(contender(black_box(target), black_box(&source)));
            }
            // The first run warms up.
            if run == 0 {
                results.push(contender(target, &source));
                assert!(*target == source, "{bytes} bytes are copied");
            } else {
                times.push(start.elapsed().as_secs_f64() * 1e9 / CALLS as f64);
            }
        }
    }
    assert!(results.iter().all(|result| *result == results[0]), "{bytes} bytes: {results:x?}");
    times.iter().map(|times| median(times)).collect()
}

/// Prints the table.
pub fn packets() {
    let composer = Composer::global().expect("the system gives code memory");
    let pipe = composer.compose(&[Step::Copy, Step::Crc32c]).expect("the steps are a pipe");
    let mut runner = pipe.runner();
    let mut composed = |target: &mut [u8], source: &[u8]| {
        runner.run(source, target).expect("the lengths are equal").crc32c().unwrap_or(0)
    };
    let mut by_isal = copy_and_isal;
    println!("\ncopy | crc32c of small packets, hot: ns of a call, medians of {RUNS} alternating runs");
    println!("{:>6} {:>8} {:>14} {:>8}", "bytes", "pipe", "memcpy+ISA-L", "ratio");
    for bytes in SIZES {
        let times = compare(&mut [&mut composed, &mut by_isal], bytes);
        println!("{bytes:>6} {:>8.2} {:>14.2} {:>8.2}", times[0], times[1], times[0] / times[1]);
    }
}
