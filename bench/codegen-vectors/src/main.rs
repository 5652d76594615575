//! `cargo xtask bench codegen-vectors`: passes over memory written by vcode for this processor, beside the same passes
//! in C by gcc -O3 -march=native. Every output, checksum and CRC is compared before anything is timed.
//! `codegen-vectors PASS WIDTH|gcc BYTES ROUNDS` runs one of them for callgrind.

mod pass;

use std::hint::black_box;
use std::time::Instant;

use quaject_bench_harness::median;
use quaject_vcode::{Features, Memory};

use pass::{PASSES, Pass, Sums};

/// A pass: destination, source, bytes (a multiple of 256), where the sums go.
type Function = unsafe extern "C" fn(*mut u8, *const u8, u64, *mut Sums);

// SAFETY: the declarations of c/passes.c.
unsafe extern "C" {
    fn copy_checksum(to: *mut u8, from: *const u8, bytes: u64, sums: *mut Sums);
    fn copy_checksum_swap(to: *mut u8, from: *const u8, bytes: u64, sums: *mut Sums);
    fn copy_checksum_swap_xor(to: *mut u8, from: *const u8, bytes: u64, sums: *mut Sums);
    fn copy_checksum_swap_xor_crc(to: *mut u8, from: *const u8, bytes: u64, sums: *mut Sums);
}

const IN_C: [Function; 4] = [copy_checksum, copy_checksum_swap, copy_checksum_swap_xor, copy_checksum_swap_xor_crc];

/// The checksum of RFC 1071 from a sum of words of any width.
fn fold(mut sum: u64) -> u16 {
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// What a function leaves: destination, folded checksum, CRC.
fn outcome(function: Function, from: &[u8], pass: Pass) -> (Vec<u8>, u16, u32) {
    let mut to = vec![0_u8; from.len()];
    let mut sums = Sums::default();
    // SAFETY: both slices have that many bytes, a multiple of 256.
    unsafe { function(to.as_mut_ptr(), from.as_ptr(), from.len() as u64, &mut sums) };
    (to, fold(sums.checksum), if pass.crc { sums.crc as u32 } else { 0 })
}

/// Nanoseconds of one call, over enough calls to see them.
fn time(function: Function, to: &mut [u8], from: &[u8]) -> f64 {
    let calls = (1 << 24) / from.len();
    let mut sums = Sums::default();
    let start = Instant::now();
    for _ in 0..calls {
        // SAFETY: both slices have that many bytes, a multiple of 256.
        unsafe { function(to.as_mut_ptr(), black_box(from.as_ptr()), from.len() as u64, &mut sums) };
    }
    black_box(sums.checksum);
    start.elapsed().as_secs_f64() * 1e9 / calls as f64
}

fn main() {
    let features = Features::detect();
    let mut memory = Memory::new(1 << 16).expect("there is memory");
    let arguments: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [name, width, bytes, rounds] = &arguments[..] {
        let index = PASSES.iter().position(|pass| pass.name == name).expect("a pass by name");
        let function = match width.parse() {
            Ok(bits) => pass::install(&mut memory, PASSES[index], bits, features).expect("the processor has it"),
            Err(_) => IN_C[index],
        };
        let from = vec![7_u8; bytes.parse().expect("a number of bytes")];
        let (mut to, mut sums) = (from.clone(), Sums::default());
        for _ in 0..rounds.parse().expect("a number of rounds") {
            // SAFETY: both have that many bytes; the user gives a multiple of 256.
            unsafe { function(to.as_mut_ptr(), from.as_ptr(), from.len() as u64, &mut sums) };
        }
        return;
    }
    let data: Vec<u8> = (0..1_u32 << 20).map(|at| (at.wrapping_mul(2_654_435_761) >> 13) as u8).collect();
    println!(
        "{:<26} {:>8} {:>10} {:>9} {:>9} {:>9} {:>11}",
        "pass, GB/s (medians)", "bytes", "gcc -O3", "128", "256", "512", "best / gcc"
    );
    for (index, pass) in PASSES.into_iter().enumerate() {
        let mut functions = vec![Some(IN_C[index])];
        for bits in [128, 256, 512] {
            let function = pass::install(&mut memory, pass, bits, features);
            if let Some(function) = function {
                let wanted = outcome(IN_C[index], &data, pass);
                assert!(outcome(function, &data, pass) == wanted, "{} at {bits} bits is wrong", pass.name);
            }
            functions.push(function);
        }
        for bytes in [4 << 10, 64 << 10, 1 << 20] {
            let from = &data[..bytes];
            let mut to = vec![0_u8; bytes];
            let mut times = vec![Vec::new(); functions.len()];
            for _ in 0..15 {
                for (function, times) in functions.iter().zip(&mut times) {
                    if let Some(function) = function {
                        times.push(time(*function, &mut to, from));
                    }
                }
            }
            let rates: Vec<Option<f64>> =
                times.iter().map(|times| (!times.is_empty()).then(|| bytes as f64 / median(times))).collect();
            let shown: Vec<String> =
                rates.iter().map(|rate| rate.map_or("-".into(), |rate| format!("{rate:.1}"))).collect();
            let best = rates[1..].iter().flatten().copied().fold(0.0, f64::max);
            println!(
                "{:<26} {bytes:>8} {:>10} {:>9} {:>9} {:>9} {:>11.2}",
                pass.name,
                shown[0],
                shown[1],
                shown[2],
                shown[3],
                best / rates[0].expect("gcc's was timed")
            );
        }
    }
}
