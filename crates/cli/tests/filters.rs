//! Filter programs 1 to 4 of "Fast Paths in Concurrent Programs", section 6, against straightforward functions on whole
//! arrays and zlib's `crc32`.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Seek, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use quaject_test_support::{quick_run, tool};

const KEY: [u8; 8] = [0x1f, 0x2e, 0x3d, 0x4c, 0x5b, 0x6a, 0x79, 0x88];

fn evener(mut data: Vec<u8>) -> Vec<u8> {
    data.resize(data.len().next_multiple_of(2), 0);
    data
}

fn swap(mut data: Vec<u8>) -> Vec<u8> {
    data.chunks_exact_mut(2).for_each(|pair| pair.reverse());
    data
}

fn encipher(mut data: Vec<u8>) -> Vec<u8> {
    data.iter_mut().zip(KEY.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
    data
}

fn run_length_encode(data: Vec<u8>) -> Vec<u8> {
    let runs = data.chunk_by(|a, b| a == b).flat_map(|run| run.chunks(255));
    runs.flat_map(|run| [u8::try_from(run.len()).expect("chunks of 255"), run[0]]).collect()
}

fn run_length_decode(data: Vec<u8>) -> Vec<u8> {
    data.chunks_exact(2).flat_map(|pair| std::iter::repeat_n(pair[1], usize::from(pair[0]))).collect()
}

/// zlib's `crc32` of the standard input, as decimal number.
const ZLIB_PROGRAM: &str = r#"
#include <stdio.h>
#include <zlib.h>
int main(void) {
    unsigned char data[1 << 16];
    printf("%lu\n", crc32(0, data, (uInt)fread(data, 1, sizeof data, stdin)));
    return 0;
}
"#;

/// The program above, compiled under a name of the caller's own.
fn zlib_program(name: &str) -> Option<PathBuf> {
    let compiler = tool(&["cc"])?;
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, program) = (folder.join(format!("{name}.c")), folder.join(name));
    std::fs::write(&source, ZLIB_PROGRAM).expect("the scratch folder is ours");
    let status = Command::new(compiler).arg(&source).arg("-o").arg(&program).arg("-lz").status();
    assert!(status.expect("the compiler starts").success(), "zlib1g-dev is missing: run `cargo xtask tools`");
    Some(program)
}

/// The data with its checksum behind it, least significant byte first.
fn with_checksum(mut data: Vec<u8>, program: &Path) -> Vec<u8> {
    let output = Command::new(program).stdin(file_of(&data)).output().expect("it has been compiled");
    let text = String::from_utf8(output.stdout).expect("a decimal number");
    let crc: u32 = text.trim().parse().expect("a decimal number");
    data.extend(crc.to_le_bytes());
    data
}

fn file_of(data: &[u8]) -> File {
    let mut file = tempfile::tempfile().expect("the machine has room for a file");
    file.write_all(data).expect("the machine has room for a file");
    file.rewind().expect("files can be rewound");
    file
}

/// What runs the program: the interpreter, and an executable made of generated C where there is a compiler.
fn runners(program: &str) -> Vec<Vec<OsString>> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../examples/filters/{program}.esp"));
    let interpreter = [env!("CARGO_BIN_EXE_qj").into(), "run".into(), source.clone().into_os_string()];
    let mut runners = vec![interpreter.to_vec()];
    if tool(&["cc"]).is_some() {
        let executable = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(program);
        let mut build = Command::new(env!("CARGO_BIN_EXE_qj"));
        let status = build.arg("build").arg(source).args(["--emit", "exe", "-o"]).arg(&executable).status();
        assert!(status.expect("cargo built qj").success(), "{program} is not built");
        runners.push(vec![executable.into_os_string()]);
    }
    runners
}

/// What the program makes of the data.
fn run(runner: &[OsString], data: &[u8]) -> Vec<u8> {
    let output = Command::new(&runner[0]).args(&runner[1..]).stdin(file_of(data)).output().expect("it was built");
    assert!(output.status.success(), "{runner:?}: {}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

/// Bytes of no pattern (xorshift64*).
struct Random(u64);

impl Random {
    fn byte(&mut self) -> u8 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 56) as u8
    }
}

/// Small sizes first, then the paper's: bytes that never repeat, and runs.
fn samples() -> Vec<Vec<u8>> {
    let mut random = Random(7);
    let mut samples =
        vec![vec![], vec![0], vec![255], vec![1, 2], vec![3, 3], vec![0; 255], vec![9; 256], vec![9; 600]];
    for length in [3, 4, 5, 8, 17, 1001] {
        samples.push((0..length).map(|_| random.byte()).collect());
        samples.push(
            (0..length)
                .scan(0, |last, _| {
                    if random.byte() < 64 {
                        *last = random.byte();
                    }
                    Some(*last)
                })
                .collect(),
        );
    }
    if !quick_run("filters on 10,000 bytes") {
        samples.push((0..10_000).map(|at| 1 + (at * 7 % 15) as u8).collect());
    }
    samples
}

fn agree(program: &str, expected: impl Fn(Vec<u8>) -> Vec<u8>) {
    for runner in runners(program) {
        for sample in samples() {
            let actual = run(&runner, &sample);
            let length = sample.len();
            assert!(actual == expected(sample), "{runner:?} differs for {length} bytes");
        }
    }
}

#[test]
fn program_1_pads_swaps_and_appends_zlibs_checksum() {
    let Some(zlib) = zlib_program("zlib_of_program1") else { return };
    agree("program1", |data| with_checksum(swap(evener(data)), &zlib));
}

#[test]
fn program_2_encodes_runs_swaps_and_enciphers() {
    agree("program2", |data| encipher(swap(run_length_encode(data))));
}

#[test]
fn program_3_is_the_identity() {
    agree("program3", |data| data);
}

#[test]
fn program_4_reads_data_with_checksum_as_runs() {
    let Some(zlib) = zlib_program("zlib_of_program4") else { return };
    agree("program4", |data| run_length_decode(with_checksum(data, &zlib)));
}
