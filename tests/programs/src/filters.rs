//! Filter programs 1 to 4 of "Fast Paths in Concurrent Programs" against the same filters as plain functions from
//! bytes to bytes, with zlib's checksum. Smallest inputs first: they show errors at the end of a stream.

use super::{engines, run_well};
use flate2::Crc;
use quaject_test_support::Effort;
use quaject_test_support::random::Random;

const KEY: [u8; 8] = [0x1f, 0x2e, 0x3d, 0x4c, 0x5b, 0x6a, 0x79, 0x88];

fn even(mut bytes: Vec<u8>) -> Vec<u8> {
    if bytes.len() % 2 == 1 {
        bytes.push(0);
    }
    bytes
}

fn swap(bytes: Vec<u8>) -> Vec<u8> {
    bytes.chunks(2).flat_map(|pair| pair.iter().rev().copied()).collect()
}

fn append_crc32(mut bytes: Vec<u8>) -> Vec<u8> {
    let mut crc = Crc::new();
    crc.update(&bytes);
    bytes.extend(crc.sum().to_le_bytes());
    bytes
}

fn encode_runs(bytes: Vec<u8>) -> Vec<u8> {
    let runs = bytes.chunk_by(|a, b| a == b).flat_map(|run| run.chunks(255));
    runs.flat_map(|run| [run.len() as u8, run[0]]).collect()
}

fn decode_runs(bytes: Vec<u8>) -> Vec<u8> {
    bytes.chunks_exact(2).flat_map(|pair| std::iter::repeat_n(pair[1], pair[0].into())).collect()
}

fn encipher(bytes: Vec<u8>) -> Vec<u8> {
    bytes.iter().zip(KEY.iter().cycle()).map(|(byte, key)| byte ^ key).collect()
}

/// The four programs as compositions of functions.
const ORACLES: [fn(Vec<u8>) -> Vec<u8>; 4] = [
    |bytes| append_crc32(swap(even(bytes))),
    |bytes| encipher(swap(encode_runs(bytes))),
    |bytes| decode_runs(swap(encipher(encipher(swap(encode_runs(bytes)))))),
    |bytes| decode_runs(swap(encipher(encipher(swap(append_crc32(bytes)))))),
];

fn inputs() -> Vec<Vec<u8>> {
    let mut random = Random(7);
    let mut inputs: Vec<Vec<u8>> = (0..6).map(|size| (0..size).map(|_| random.byte()).collect()).collect();
    inputs.push(vec![9; 600]);
    inputs.push([vec![1; 255], vec![2; 256], vec![3; 1]].concat());
    for size in Effort::wanted().pick(vec![300], vec![17, 1001, 10_000], vec![100_000; 10]) {
        // Short runs of small values, then anything.
        inputs.push((0..size).flat_map(|_| vec![random.below(16) as u8; random.below(4) as usize]).collect());
        inputs.push((0..size).map(|_| random.byte()).collect());
    }
    inputs
}

#[test]
fn filters_equal_their_specification() {
    for engine in engines() {
        for input in inputs() {
            for (number, oracle) in (1..).zip(ORACLES) {
                let output = run_well(engine, &format!("examples/filters/program{number}.esp"), &[], &input);
                assert!(
                    output == oracle(input.clone()),
                    "program {number} on engine {engine} differs for {} bytes, {:02x?}...",
                    input.len(),
                    &input[..input.len().min(16)]
                );
            }
        }
    }
}
