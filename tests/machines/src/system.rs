//! Every emitter of the system layer, with all registers and the edges of its numbers: the decoder reads it, binutils
//! assembles the text to the same bytes, or to other bytes of the same meaning and at most one byte shorter.
#![cfg(target_arch = "x86_64")]
#![allow(unreachable_pub, missing_docs, reason = "modules of one test program")]

#[rustfmt::skip]
#[path = "generated/x86_64_system.rs"]
mod emitters;

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use emitters::EMITTERS;
use quaject_test_support::tool;
use quaject_vcode::system::AnyRegister;
use quaject_vcode::x86_64::{Reg, X86_64};
use quaject_vcode::{Asm, Kind, Label, Param, Register, Workspace, decode};

/// What an emitter takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Parameter {
    Destination,
    Base,
    Index,
    Displacement,
    Value,
    Label,
}

pub struct Emitter {
    pub name: &'static str,
    pub parameters: &'static [Parameter],
    pub emit: fn(&mut Asm<'_, X86_64>, &Operands),
}

pub struct Operands {
    pub d: AnyRegister,
    pub s: AnyRegister,
    pub t: Reg,
    pub i: i32,
    pub value: i64,
    pub label: Label,
}

/// An instruction: its bytes, and how the decoder reads them.
struct Case {
    name: &'static str,
    bytes: Vec<u8>,
    text: String,
}

/// The values of each parameter.
fn values(parameter: Parameter) -> &'static [i64] {
    match parameter {
        Parameter::Destination | Parameter::Base => &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        // Those that can be an index.
        Parameter::Index => &[0, 1, 2, 3, 5, 6, 7, 8, 9, 10, 13, 14, 15],
        Parameter::Displacement => &[0, 1, -1, 127, 128, -128, -129, 0x1234_5678, i32::MIN as i64],
        Parameter::Value => &[
            0,
            1,
            -1,
            7,
            127,
            128,
            -128,
            -129,
            0x1234,
            0x7fff_ffff,
            0x8000_0000,
            -0x8000_0000,
            0xffff_ffff,
            0x1_0000_0000,
            i64::MIN,
        ],
        Parameter::Label => &[0],
    }
}

fn case(emitter: &Emitter, chosen: &[i64]) -> Case {
    let of =
        |wanted| emitter.parameters.iter().zip(chosen).find(|(own, _)| **own == wanted).map_or(0, |(_, value)| *value);
    let mut buffer = [0; 256];
    let mut workspace = Workspace::<X86_64>::new();
    let mut asm = Asm::begin((&mut buffer[..]).into(), &mut workspace, "", &mut [Param::NONE; 0], Kind::Naked)
        .expect("there is room");
    let label = asm.label();
    (emitter.emit)(
        &mut asm,
        &Operands {
            d: AnyRegister::from_number(of(Parameter::Destination) as u8),
            s: AnyRegister::from_number(of(Parameter::Base) as u8),
            t: Reg::from_number(of(Parameter::Index) as u8),
            i: of(Parameter::Displacement) as i32,
            value: of(Parameter::Value),
            label,
        },
    );
    asm.bind(label);
    let code = asm.end().expect("every operand is possible");
    let bytes = buffer[..code.length].to_vec();
    let decoded = decode::X86_64.decode(&bytes).unwrap_or_else(|| panic!("{}: {bytes:02x?}", emitter.name));
    assert_eq!(decoded.length, bytes.len(), "{}: {bytes:02x?} is read as `{decoded}`", emitter.name);
    Case { name: emitter.name, text: decoded.to_string(), bytes }
}

/// All combinations, or so many of them, evenly chosen.
fn cases(emitter: &Emitter, limit: usize) -> Vec<Case> {
    let all: usize = emitter.parameters.iter().map(|parameter| values(*parameter).len()).product();
    // An odd step that is no divisor reaches every value of every parameter.
    let step = (all / limit).max(1) | 1;
    (0..all)
        .step_by(step)
        .map(|mut number| {
            let chosen: Vec<i64> = emitter
                .parameters
                .iter()
                .map(|parameter| {
                    let values = values(*parameter);
                    let value = values[number % values.len()];
                    number /= values.len();
                    value
                })
                .collect();
            case(emitter, &chosen)
        })
        .collect()
}

/// Each instruction is assembled to a slot of so many bytes, filled up with `nop`s.
const SLOT: usize = 16;

fn assemble(cases: &[Case], folder: &Path) -> Vec<u8> {
    let mut source = String::from(".text\n");
    for (index, case) in cases.iter().enumerate() {
        let _ = writeln!(source, ".org {}, 0x90\n{}", index * SLOT, case.text);
    }
    let _ = writeln!(source, ".org {}, 0x90", cases.len() * SLOT);
    let file = |name: &str| folder.join(name);
    std::fs::write(file("text.s"), source).expect("the folder is ours");
    let run = |program: &str, arguments: &[&str]| {
        let output = Command::new(program).current_dir(folder).args(arguments).output().expect("binutils starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    run("as", &["--64", "-o", "text.o", "text.s"]);
    run("objcopy", &["-O", "binary", "-j", ".text", "text.o", "text.bin"]);
    std::fs::read(file("text.bin")).expect("objcopy wrote its output")
}

/// The first instruction of each slot, as binutils prints it.
fn disassemble(bytes: &[u8], folder: &Path) -> Vec<String> {
    std::fs::write(folder.join("slots.bin"), bytes).expect("the folder is ours");
    let output = Command::new("objdump")
        .current_dir(folder)
        .args(["-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", "-w", "slots.bin"])
        .output()
        .expect("objdump starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines().filter_map(|line| {
        let (address, insn) = line.trim().split_once(":\t")?;
        let address = usize::from_str_radix(address, 16).ok()?;
        // Without what differs in form only: the blanks of columns, a REX prefix that changes nothing, a zero, a count
        // of one.
        let insn = insn.trim().trim_start_matches("rex ").split_whitespace().collect::<Vec<_>>().join(" ");
        let insn = insn.replace(" 0x0(", " (").replace("*0x0(", "*(");
        let insn = if insn.starts_with("sh") || insn.starts_with("sar") { insn.replace("$0x1,", "") } else { insn };
        (address % SLOT == 0).then_some(insn)
    });
    lines.collect()
}

#[test]
fn every_emitter_writes_what_binutils_writes() {
    let Some(_) = tool(&["as"]) else { return };
    let limit = quaject_test_support::Effort::wanted().pick(20, 150, 3000);
    let cases: Vec<Case> = EMITTERS.iter().flat_map(|emitter| cases(emitter, limit)).collect();
    assert!(EMITTERS.len() > 150 && cases.len() > 1000, "the list is generated, and long");
    let folder = tempfile::tempdir().expect("there is a folder for scratch files");
    let theirs = assemble(&cases, folder.path());
    let mut ours = Vec::new();
    for case in &cases {
        ours.extend_from_slice(&case.bytes);
        ours.resize(ours.len().next_multiple_of(SLOT), 0x90);
    }
    assert_eq!(ours.len(), theirs.len());
    let read = (disassemble(&ours, folder.path()), disassemble(&theirs, folder.path()));
    assert_eq!((read.0.len(), read.1.len()), (cases.len(), cases.len()));
    let mut different = 0;
    for (index, case) in cases.iter().enumerate() {
        let (ours, theirs) = (&ours[index * SLOT..][..SLOT], &theirs[index * SLOT..][..SLOT]);
        if ours == theirs {
            continue;
        }
        let Case { name, text, .. } = case;
        assert_eq!(read.0[index], read.1[index], "{name}: `{text}` is {ours:02x?}, binutils has {theirs:02x?}");
        let length = |slot: &[u8]| SLOT - slot.iter().rev().take_while(|byte| **byte == 0x90).count();
        // A branch of short range, which needs a label that is bound already, is three or four bytes shorter.
        let allowed = if name.starts_with("j_") { 4 } else { 1 };
        assert!(length(ours) <= length(theirs) + allowed, "{name}: `{text}` is longer than {theirs:02x?}");
        different += 1;
    }
    assert!(different * 5 < cases.len(), "{different} of {} differ from binutils", cases.len());
}
