//! Cycles, shadows of jumps and flags, instruction by instruction, on code that LLVM's assembler has made.

use std::fs;
use std::process::Command;

use crate::common::{BASE, MEMORY_BYTES};
use quaject_test_support::tool;
use quaject_vmmc::lanai::Lanai;
use quaject_vmmc::{Memory, ObjectFile, Processor, Stop, link};

/// The result, the instructions and the cycles of a piece of code that ends with a return.
fn run(assembler: &str, code: &str) -> (u32, u64, u64) {
    let folder = tempfile::tempdir().expect("a folder for one object");
    let (input, output) = (folder.path().join("code.s"), folder.path().join("code.o"));
    fs::write(&input, format!(".globl main\nmain:\n{code}\nld 0[%sp], %pc\nnop\nnop\n"))
        .expect("the folder is writable");
    let run = Command::new(assembler)
        .args(["--triple=lanai", "--filetype=obj", "-o"])
        .args([&output, &input])
        .output()
        .expect("the assembler starts");
    assert!(run.status.success(), "{}\n{code}", String::from_utf8_lossy(&run.stderr));
    let bytes = fs::read(output).expect("the assembler wrote it");
    let image = link(&[ObjectFile { name: "code.o", bytes: &bytes }], BASE, MEMORY_BYTES).expect("no symbols");
    let mut memory = Memory::new(MEMORY_BYTES as usize);
    memory.bytes_mut()[image.base as usize..image.end() as usize].copy_from_slice(&image.bytes);
    let mut lanai = Lanai::new();
    lanai.start(&mut memory, image.symbols["main"], MEMORY_BYTES).expect("the stack is in memory");
    match lanai.run(&mut memory, 10_000) {
        Ok(Stop::Returned(value)) => (value, lanai.instructions(), lanai.cycle()),
        other => panic!("{other:?}\n{code}"),
    }
}

#[test]
fn each_instruction_takes_its_cycles() {
    let Some(assembler) = tool(&["llvm-mc-14", "llvm-mc"]) else { return };
    // The code, its result, its instructions and the cycles in which it waits for a load; the return is 3 instructions.
    let cases: &[(&str, u32, u64, u64)] = &[
        ("mov 0x7, %rv", 7, 1, 0),
        ("nop\n nop\n mov 0x7, %rv", 7, 3, 0),
        // A load and a use of its result: the next instruction waits, the one after it does not.
        ("mov 0x2000, %r6\n ld 0[%r6], %rv\n add %rv, 0x1, %rv", 1, 3, 1),
        ("mov 0x2000, %r6\n nop\n ld 0[%r6], %rv\n nop\n add %rv, 0x1, %rv", 1, 5, 0),
        ("mov 0x2000, %r6\n nop\n ld 0[%r6], %r7\n add %rv, 0x1, %rv", 1, 4, 0),
        ("mov 0x2000, %r6\n nop\n ld 0[%r6], %r7\n st %r7, 0[%r6]\n mov 0x3, %rv", 3, 5, 1),
        ("mov 0x2000, %r6\n nop\n ld 0[%r6], %r7\n ld 0[%r7], %rv\n mov 0x3, %rv", 3, 5, 1),
        ("mov 0x2000, %r6\n nop\n uld.b 1[%r6], %r7\n add %r6, %r7, %rv", 0x2000, 4, 1),
        ("ld [0x2000], %r7\n xor %r7, 0x5, %rv", 5, 2, 1),
        // `mov` of 21 bits has the timing of a load; `mov` of a high half has not.
        ("mov 0x10001, %r6\n add %r6, 0x1, %rv", 0x10002, 2, 1),
        ("mov 0x10000, %r6\n add %r6, 0x1, %rv", 0x10001, 2, 0),
        // The instruction after a jump is executed, and two after a load of `pc`.
        ("mov 0x1, %rv\n bt .L1\n add %rv, 0x2, %rv\n add %rv, 0x4, %rv\n .L1: add %rv, 0x8, %rv", 11, 4, 0),
        (
            "add %pc, 0x18, %r6\n st %r6, [0x2000]\n ld [0x2000], %pc\n add %rv, 0x1, %rv\n add %rv, 0x2, %rv\n \
             add %rv, 0x4, %rv\n add %rv, 0x8, %rv",
            11,
            6,
            0,
        ),
        // Not taken: only the time of the jump.
        ("mov 0x1, %rv\n sub.f %rv, 0x1, %r0\n bne .L1\n nop\n add %rv, 0x4, %rv\n .L1: nop", 5, 6, 0),
        // An address that is updated before and after the access.
        ("mov 0x2000, %r6\n nop\n st %r6, [%r6++]\n st %r6, 8[*%r6]\n or %r6, 0x0, %rv", 0x200c, 5, 0),
        ("mov 0x2000, %r6\n nop\n st %r6, [--%r6]\n ld [%r6++], %r7\n add %r6, %r7, %rv", 0x4000, 5, 1),
    ];
    let computed: Vec<_> = cases.iter().map(|(code, ..)| (*code, run(assembler, code))).collect();
    let expected: Vec<_> = cases
        .iter()
        .map(|(code, result, instructions, waits)| (*code, (*result, instructions + 3, instructions + waits + 3)))
        .collect();
    assert_eq!(computed, expected);
}

#[test]
fn flags_follow_the_description() {
    let Some(assembler) = tool(&["llvm-mc-14", "llvm-mc"]) else { return };
    // 1: zero, 2: negative, 4: overflow, 8: carry.
    let flags = "seq %r6\n smi %r7\n svs %r12\n suge %r13\n sh %r7, 0x1, %r7\n sh %r12, 0x2, %r12\n sh %r13, 0x3, %r13\n \
                 or %r6, %r7, %r6\n or %r6, %r12, %r6\n or %r6, %r13, %rv";
    let cases: &[(&str, u32)] = &[
        ("sub.f %r0, 0x0, %r9", 1 | 8),
        ("sub.f %r0, 0x1, %r9", 2),
        ("add.f %r1, 0x1, %r9", 1 | 8),
        ("mov 0x80000000, %r9\n sub.f %r9, 0x1, %r9", 4 | 8),
        ("mov 0x80000000, %r9\n add.f %r9, %r9, %r9", 1 | 4 | 8),
        ("sub.f %r0, 0x0, %r9\n subb.f %r0, 0x0, %r9", 1 | 8),
        ("sub.f %r0, 0x1, %r9\n subb.f %r0, 0x0, %r9", 2),
        ("add.f %r1, 0x1, %r9\n addc.f %r0, 0x0, %r9", 0),
        // A left shift keeps the last bit it discards; a right shift clears the carry.
        ("mov 0x80000000, %r9\n sh.f %r9, 0x1, %r9", 1 | 8),
        ("sub.f %r0, 0x0, %r9\n sh.f %r1, -0x4, %r9", 0),
        ("sub.f %r0, 0x0, %r9\n sha.f %r1, -0x4, %r9", 2),
        // Logic clears the carry if its operand is a constant and keeps it if it is a register.
        ("sub.f %r0, 0x0, %r9\n or.f %r1, 0x0, %r9", 2),
        ("sub.f %r0, 0x0, %r9\n or.f %r1, %r0, %r9", 2 | 8),
        // A condition that does not hold changes neither register nor flags.
        ("sub.f %r0, 0x0, %r9\n sub.f.ne %r0, %r1, %r9", 1 | 8),
        ("sub.f %r0, 0x0, %r9\n sub.f.eq %r0, %r1, %r9", 0),
    ];
    for (code, expected) in cases {
        assert_eq!(run(assembler, &format!("{code}\n{flags}")).0, *expected, "{code}");
    }
}
