//! The decoder against LLVM's disassembler: the same words are instructions, and they have the same text.

use std::fs;
use std::process::Command;

use fastrand::Rng;
use quaject_test_support::{Effort, tool};
use quaject_vmmc::lanai::Instruction;

/// Words of every format: random ones, and such whose fields that must be zero are likely so.
fn words(count: usize) -> Vec<u32> {
    let mut rng = Rng::with_seed(37);
    let mut words: Vec<u32> = (0..64).chain([0x8116_fffc, u32::MAX]).collect();
    // Register formats with pc and r0, which have names of their own.
    for code in 0..8 {
        for rd in [0, 2, 3] {
            for rs1 in [0, 1, 2, 9] {
                for rs2 in [0, 2, 7] {
                    for rest in [0, 1, 0x1_0000, 0x2_0000, 0x80, 0xc0] {
                        words.push(12 << 28 | rd << 23 | rs1 << 18 | rs2 << 11 | code << 8 | rest);
                    }
                }
            }
        }
    }
    while words.len() < count {
        let format = rng.u32(0..16);
        let mut word = format << 28 | rng.u32(0..1 << 28);
        match format {
            0..=7 if rng.bool() => word &= !0x0f80_0000,
            0..=7 if rng.bool() => word &= !0x0078_0000,
            8 | 9 if rng.bool() => word = word & !0xffff | u32::from(rng.i16(-5..5) as u16),
            10..=12 => word = word & !0xf8 | [0, 0, 0b10000 << 3, 0b11000 << 3, rng.u32(0..32) << 3][rng.usize(0..5)],
            13 => word = word & !0x1ffff | rng.u32(0..5),
            14 if rng.bool() => word = word & 0x0e7c_0003 | 0xe000_0002,
            14 if rng.bool() => word = word & 0x0e7c_ffff | 0xe100_0002,
            14 if rng.bool() => word = word & 0x0e00_fffd | 0xe100_0002,
            15 if rng.bool() => word = word & !0x3ff | u32::from(rng.i16(-3..3) as u16 & 0x3ff),
            _ => {}
        }
        words.push(word);
    }
    words
}

/// Loads and stores at a shifted address crash LLVM 14's disassembler if the kind of shift is reserved. Where they are
/// of less than a word, LLVM's description says that a word is accessed, and LLVM's disassembler that a part is: no
/// compiler emits them, and we take them for no instructions.
fn is_disputed(word: u32) -> bool {
    matches!(word >> 28, 10 | 11)
        && word >> 8 & 7 == 7
        && (!matches!(word >> 3 & 31, 0b10000 | 0b11000) || word >> 1 & 3 != 1)
}

/// The instruction that LLVM prints for each word; none where it has none.
fn disassemble(tool: &str, words: &[u32]) -> Vec<Option<String>> {
    let folder = tempfile::tempdir().expect("a folder for one file");
    let file = folder.path().join("words");
    let bytes = |word: &u32| word.to_be_bytes().map(|byte| format!("{byte:#04x}")).join(" ");
    fs::write(&file, words.iter().map(bytes).collect::<Vec<_>>().join("\n")).expect("the folder is writable");
    let run = Command::new(tool).args(["--disassemble", "--triple=lanai"]).arg(&file).output().expect("it starts");
    let errors = String::from_utf8_lossy(&run.stderr);
    let invalid: Vec<usize> = errors
        .lines()
        .filter(|line| line.contains("invalid instruction encoding"))
        .map(|line| line.split(':').nth(1).and_then(|number| number.parse().ok()).expect("FILE:LINE:COLUMN"))
        .collect();
    let text = String::from_utf8_lossy(&run.stdout);
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && *line != ".text");
    let texts = (1..=words.len()).map(|line| {
        let is_valid = invalid.binary_search(&line).is_err();
        // A return is a load of `pc` with a comment.
        is_valid
            .then(|| lines.next().expect("one line for each instruction").replace('\t', " ").replace(" ! return", ""))
    });
    let texts = texts.collect();
    assert!(lines.next().is_none(), "{errors}");
    texts
}

fn text(word: u32) -> Option<String> {
    Instruction::decode(word).map(|instruction| instruction.to_string())
}

#[test]
fn words_are_the_instructions_that_llvm_prints() {
    let Some(tool) = tool(&["llvm-mc-14", "llvm-mc"]) else { return };
    let words: Vec<u32> = words(Effort::wanted().pick(20_000, 60_000, 2_000_000))
        .into_iter()
        .filter(|word| !is_disputed(*word))
        .collect();
    let expected = disassemble(tool, &words);
    let differences: Vec<String> = words
        .iter()
        .zip(&expected)
        .filter(|(word, expected)| text(**word) != **expected)
        .map(|(word, expected)| format!("{word:08x}: {:?}, LLVM {expected:?}", text(*word)))
        .collect();
    assert!(
        differences.is_empty(),
        "{} of {}\n{}",
        differences.len(),
        words.len(),
        differences[..differences.len().min(60)].join("\n")
    );
    let valid = expected.iter().flatten().count();
    assert!(valid > words.len() / 2, "only {valid} of {} words were instructions", words.len());
}

#[test]
fn words_that_llvm_disputes_are_no_instructions() {
    // ld.b [%r3 sh %r6], %r9, and a word at an address of a reserved kind of shift.
    assert_eq!(Instruction::decode(0xa48e_3784), None);
    assert_eq!(Instruction::decode(0xa48e_3702 | 1 << 3), None);
    assert_eq!(text(0xa48e_3782).as_deref(), Some("ld [%r3 sh %r6], %r9"));
}
