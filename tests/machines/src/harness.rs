//! Builds batches of small functions for a machine, runs them (natively or under qemu-user) and compares what they
//! leave in memory with what the reference interpreter says.

mod corpus;
mod tools;

pub use crate::types::Type;
pub use tools::{available, compiler, emulated, output_in_time, scratch_folder};

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;

use quaject_test_support::Random;
use quaject_vcode::{Asm, Core, Extension, Features, Kind, Label, Machine, Param, Region, Register, Workspace};

use crate::instructions::{EXTENSIONS, INSTRUCTIONS, emit, emit_extension};
use crate::interpreter;
use tools::{assemble, build_runner, disassemble, write};

/// The operands of an instruction, as in the specifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Family {
    Binary,
    Shift,
    Unary,
    Set,
    Convert,
    Load,
    Store,
    Return,
    Branch,
    Label,
    Register,
    Nullary,
    Select,
    Checked,
    Exchange,
    IndexedLoad,
    IndexedStore,
    Hint,
}

impl Family {
    pub fn accesses_memory(self) -> bool {
        matches!(self, Family::Load | Family::IndexedLoad) || self.stores()
    }

    pub fn stores(self) -> bool {
        matches!(self, Family::Store | Family::IndexedStore)
    }
}

/// An instruction of the generated list.
#[derive(Debug)]
pub struct Instruction {
    pub name: &'static str,
    pub op: &'static str,
    pub family: Family,
    pub ty: Type,
    pub source: Type,
    pub immediate: bool,
}

/// Registers and immediate to call an emitter with.
pub struct Operands<R, F> {
    pub d: R,
    pub s: R,
    pub t: R,
    pub fd: F,
    pub fs: F,
    pub ft: F,
    pub immediate: i64,
}

/// How a machine is assembled for and run.
pub struct Tools {
    pub prefix: &'static str,
    pub qemu: Option<&'static str>,
    pub sysroot: Option<&'static str>,
    pub assembler: &'static [&'static str],
    pub prelude: &'static str,
    pub little: bool,
    pub table: &'static quaject_vcode::decode::Table,
}

/// Where batches are mapped when they run: as in `runner.c`.
const CODE_ADDRESS: usize = 0x6000_0000;
/// Memory of a test, in bytes; the function gets the address of its ninth word.
const TEST_BYTES: usize = 256;
const HEADER_BYTES: usize = 64;
/// What of it the function works on.
pub const MEMORY_BYTES: usize = TEST_BYTES - HEADER_BYTES;

const SLOT_S: usize = 0;
const SLOT_T: usize = 1;
const SLOT_RESULT: usize = 3;
const SLOT_S_AFTER: usize = 4;
const SLOT_T_AFTER: usize = 5;
const SLOT_BYSTANDERS: usize = 6;
const MAX_BYSTANDERS: usize = 8;
const SLOT_DATA: usize = 16;
/// In the header: what the function returns.
const RETURN_OFFSET: usize = 16;

struct Expected {
    offset: usize,
    bits: u32,
    value: u64,
    ty: Type,
    what: &'static str,
}

struct Case {
    name: String,
    entry: u64,
    returns: u64,
    memory: [u8; TEST_BYTES],
    expected: Vec<Expected>,
}

/// A batch under construction.
pub struct Batch<'t> {
    tools: &'t Tools,
    long: u32,
    code: Vec<u8>,
    cases: Vec<Case>,
    spans: Vec<(usize, usize)>,
    random: Random,
    folder: Option<PathBuf>,
    features: Features,
}

fn slot(index: usize) -> i32 {
    (8 * index) as i32
}

impl<'t> Batch<'t> {
    pub fn new<M: Machine>(tools: &'t Tools) -> Self {
        Batch {
            tools,
            long: M::LONG_BITS,
            code: Vec::new(),
            cases: Vec::new(),
            spans: Vec::new(),
            folder: None,
            features: Features::NONE,
            random: Random(0x9e37_79b9_7f4a_7c15),
        }
    }

    fn bytes_of(&self, value: u64, bits: u32) -> Vec<u8> {
        let count = (bits / 8) as usize;
        if self.tools.little {
            value.to_le_bytes()[..count].to_vec()
        } else {
            value.to_be_bytes()[8 - count..].to_vec()
        }
    }

    fn value_at(&self, memory: &[u8], offset: usize, bits: u32) -> u64 {
        let bytes = &memory[offset..offset + (bits / 8) as usize];
        let fold = |value: u64, byte: &u8| value << 8 | u64::from(*byte);
        if self.tools.little { bytes.iter().rev().fold(0, fold) } else { bytes.iter().fold(0, fold) }
    }

    fn put(&self, memory: &mut [u8], offset: usize, bits: u32, value: u64) {
        let bytes = self.bytes_of(value, bits);
        memory[offset..offset + bytes.len()].copy_from_slice(&bytes);
    }

    fn finish(
        &mut self,
        name: String,
        region: &[u8],
        code: quaject_vcode::Code,
        returns: u64,
        memory: [u8; TEST_BYTES],
        expected: Vec<Expected>,
    ) {
        let start = self.code.len();
        // Keep the region's layout: its code may hold addresses.
        self.code.extend_from_slice(&region[..code.offset + code.length]);
        self.code.resize(self.code.len().next_multiple_of(16), 0);
        self.spans.push((start + code.offset, code.instructions));
        self.cases.push(Case { name, entry: code.entry as u64, returns, memory, expected });
    }

    /// Adds a function built by `build`, which returns `long` and must return `value`.
    pub fn add_function<M: Machine>(
        &mut self,
        name: &str,
        kind: Kind,
        value: i64,
        build: impl FnOnce(&mut Asm<'_, M>, M::Reg),
    ) {
        let mut region = vec![0_u8; 16384];
        let mut workspace = Workspace::<M>::new();
        let mut params = [Param::NONE];
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm = Asm::<M>::begin(region_ref, &mut workspace, "%p", &mut params, kind).expect("there is room");
        build(&mut asm, params[0].reg());
        let code = asm.end().unwrap_or_else(|error| panic!("{name}: {error}"));
        let expected = vec![Expected {
            offset: RETURN_OFFSET,
            bits: self.long,
            value: value as u64,
            ty: Type::L,
            what: "returned value",
        }];
        self.finish(format!("{} {name}", M::NAME), &region, code, 0, [0; TEST_BYTES], expected);
    }

    /// Adds a function that `build` writes, of the address of some memory: what is there afterwards, and perhaps the
    /// low bits of what it returns.
    pub fn add_memory<M: Machine>(
        &mut self,
        name: String,
        before: &[u8; MEMORY_BYTES],
        after: &[u8; MEMORY_BYTES],
        returns: Option<(u32, u64)>,
        build: impl FnOnce(&mut Asm<'_, M>, M::Reg),
    ) {
        let mut region = vec![0_u8; 4096];
        let mut workspace = Workspace::<M>::new();
        let mut params = [Param::NONE];
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm =
            Asm::<M>::begin(region_ref, &mut workspace, "%p", &mut params, Kind::Leaf).expect("there is room");
        build(&mut asm, params[0].reg());
        let code = asm.end().unwrap_or_else(|error| panic!("{name}: {error}"));
        let mut memory = [0; TEST_BYTES];
        memory[HEADER_BYTES..].copy_from_slice(before);
        let words = after.chunks(8).enumerate().map(|(index, word)| Expected {
            offset: HEADER_BYTES + 8 * index,
            bits: 64,
            value: self.value_at(word, 0, 64),
            ty: Type::Ul,
            what: ["d", "s", "t"][index / 8],
        });
        let mut expected: Vec<Expected> = words.collect();
        if let Some((bits, value)) = returns {
            expected.push(Expected { offset: RETURN_OFFSET, bits, value, ty: Type::Ul, what: "returned value" });
        }
        self.finish(name, &region, code, 0, memory, expected);
    }

    /// Adds a function that `build` writes, ends and perhaps changes; it returns `long` and must return `value`.
    pub fn add_built<M: Machine>(
        &mut self,
        name: &str,
        value: i64,
        build: impl FnOnce(Region<'_>, *mut u8) -> quaject_vcode::Code,
    ) {
        let mut region = vec![0_u8; 16384];
        let write = region.as_mut_ptr();
        let at = CODE_ADDRESS + self.code.len();
        let code = build(Region::from(&mut region[..]).executed_at(at), write);
        let expected = vec![Expected {
            offset: RETURN_OFFSET,
            bits: self.long,
            value: value as u64,
            ty: Type::L,
            what: "returned value",
        }];
        self.finish(format!("{} {name}", M::NAME), &region, code, 0, [0; TEST_BYTES], expected);
    }

    /// Adds a function that `caller`, a C function that gets the address in the first word of memory, calls; what the
    /// caller returns must be zero.
    pub fn add_called<M: Machine>(
        &mut self,
        name: &str,
        caller: u64,
        build: impl FnOnce(Region<'_>) -> quaject_vcode::Code,
    ) {
        self.add_built::<M>(name, 0, |region, _| build(region));
        let entry = self.cases.last().expect("one was just added").entry;
        let mut memory = [0; TEST_BYTES];
        self.put(&mut memory, HEADER_BYTES, 64, entry);
        let case = self.cases.last_mut().expect("one was just added");
        (case.entry, case.memory) = (caller, memory);
    }

    /// Adds a function with a convention of its own, which is called by the others; returns its address.
    pub fn add_handler<M: Machine>(
        &mut self,
        name: &str,
        convention: &'static quaject_vcode::Convention,
        build: impl FnOnce(&mut Asm<'_, M>),
    ) -> usize
    where
        for<'a> Asm<'a, M>: Core<Reg = M::Reg, Float = M::Float>,
    {
        self.add_convention::<M>(name, convention, &[], Kind::Leaf, |asm, _| {
            build(asm);
            asm.retv();
        })
    }

    /// Adds a function of up to four parameters and with a convention of its own, which is called by the others;
    /// returns its address.
    pub fn add_convention<M: Machine>(
        &mut self,
        name: &str,
        convention: &'static quaject_vcode::Convention,
        types: &[quaject_vcode::Type],
        kind: Kind,
        build: impl FnOnce(&mut Asm<'_, M>, &[Param<M>]),
    ) -> usize {
        let mut region = vec![0_u8; 4096];
        let mut workspace = Workspace::<M>::new();
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut room = [Param::NONE; 4];
        let params = &mut room[..types.len()];
        let mut asm = Asm::<M>::begin_with(region_ref, &mut workspace, types, params, kind, convention)
            .expect("the region is large enough");
        build(&mut asm, params);
        let code = asm.end().unwrap_or_else(|error| panic!("{} {name}: {error}", M::NAME));
        self.finish(format!("{} {name}", M::NAME), &region, code, 0, [0; TEST_BYTES], Vec::new());
        code.entry
    }

    /// The function added last is called by others alone: it destroys what functions of C preserve.
    pub fn is_called_by_others(&mut self) {
        self.cases.pop();
    }

    /// Adds a function of any signature, which `caller`, a C function that gets the address in the first word of
    /// memory, calls; the sum that comes back must be `value`.
    #[allow(clippy::too_many_arguments, reason = "one call site")]
    pub fn add_callee<M: Machine>(
        &mut self,
        name: &str,
        types: &[quaject_vcode::Type],
        params: &mut [Param<M>],
        kind: Kind,
        caller: u64,
        value: i64,
        build: impl FnOnce(&mut Asm<'_, M>, &[Param<M>]),
    ) {
        let mut region = vec![0_u8; 8192];
        let mut workspace = Workspace::<M>::new();
        let at = CODE_ADDRESS + self.code.len();
        let region_ref = Region::from(&mut region[..]).executed_at(at);
        let mut asm = Asm::<M>::begin(region_ref, &mut workspace, types, params, kind)
            .unwrap_or_else(|error| panic!("{} {name}: {error}", M::NAME));
        build(&mut asm, params);
        let code = asm.end().unwrap_or_else(|error| panic!("{} {name}: {error}", M::NAME));
        let expected =
            vec![Expected { offset: RETURN_OFFSET, bits: self.long, value: value as u64, ty: Type::L, what: "sum" }];
        let mut memory = [0; TEST_BYTES];
        self.put(&mut memory, HEADER_BYTES, 64, code.entry as u64);
        self.finish(format!("{} {name}", M::NAME), &region, code, 0, memory, expected);
        self.cases.last_mut().expect("one was just added").entry = caller;
    }

    /// Compiles the program that runs the batch together with `c`, and returns its folder.
    pub fn compile(&mut self, c: &str) {
        let folder = scratch_folder(self.tools.prefix, "run");
        build_runner(self.tools, &folder, c);
        self.folder = Some(folder);
    }

    /// The addresses of the C functions in the program.
    pub fn symbols(&self) -> std::collections::HashMap<String, u64> {
        let folder = self.folder.as_ref().expect("compile() was called");
        let output =
            Command::new(format!("{}nm", self.tools.prefix)).arg(folder.join("runner")).output().expect("nm starts");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines()
            .filter_map(|line| {
                let mut words = line.split_whitespace();
                let address = u64::from_str_radix(words.next()?, 16).ok()?;
                Some((words.nth(1)?.to_string(), address))
            })
            .collect()
    }

    /// Runs the batch and compares.
    pub fn run(&self) {
        let folder = self.folder.clone().expect("compile() was called");
        let runner = folder.join("runner");
        let (code, tests, out) = (folder.join("code"), folder.join("tests"), folder.join("out"));
        let mut words = Vec::new();
        for case in &self.cases {
            let mut memory = case.memory;
            self.put(&mut memory, 0, 64, case.entry);
            self.put(&mut memory, 8, 64, case.returns);
            words.extend_from_slice(&memory);
        }
        write(&code, &self.code);
        write(&tests, &words);
        let output = output_in_time(emulated(self.tools, &runner).arg(&code).arg(&tests).arg(&out));
        if !output.status.success() {
            // The runner says which test it was in, and what happened.
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            let number =
                stderr.lines().find_map(|line| line.strip_prefix("test ")?.split(':').next()?.parse::<usize>().ok());
            let case = number.and_then(|number| self.cases.get(number)).map_or("no test", |case| &case.name);
            panic!("{case}: {}: {stderr}; files in {}", output.status, folder.display());
        }
        let after = std::fs::read(&out).expect("the runner wrote its output");
        let mut wrong = Vec::new();
        for (case, after) in self.cases.iter().zip(after.chunks(TEST_BYTES)) {
            for expected in &case.expected {
                let found = self.value_at(after, expected.offset, expected.bits);
                let nan = match expected.ty {
                    Type::F => f32::from_bits(expected.value as u32).is_nan() && f32::from_bits(found as u32).is_nan(),
                    Type::D => f64::from_bits(expected.value).is_nan() && f64::from_bits(found).is_nan(),
                    _ => false,
                };
                let mask = if expected.bits == 64 { u64::MAX } else { (1 << expected.bits) - 1 };
                if found != expected.value & mask && !nan {
                    wrong.push(format!(
                        "{}: {} is {found:#x}, expected {:#x}",
                        case.name,
                        expected.what,
                        expected.value & mask
                    ));
                }
            }
        }
        let count = wrong.len();
        wrong.truncate(20);
        assert!(count == 0, "{count} of {} cases differ:\n{}", self.cases.len(), wrong.join("\n"));
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
    }

    /// Decodes every different instruction of the batch, assembles the text with binutils, and compares: bytes where
    /// the machine has one encoding for a text, otherwise how binutils' disassembler reads both.
    pub fn check_encodings(&self) {
        let mut distinct: BTreeSet<Vec<u8>> = BTreeSet::new();
        for (start, length) in &self.spans {
            let mut at = *start;
            let end = start + length;
            while at < end {
                let Some(decoded) = self.tools.table.decode(&self.code[at..end]) else {
                    panic!("undecodable at {at:#x}: {:02x?}", &self.code[at..end.min(at + 16)]);
                };
                distinct.insert(self.code[at..at + decoded.length].to_vec());
                at += decoded.length;
            }
        }
        let mut text = String::from(self.tools.prelude);
        let mut bytes = Vec::new();
        let mut lines = Vec::new();
        for insn in &distinct {
            let decoded = self.tools.table.decode(insn).expect("it was decoded above");
            lines.push(decoded.to_string());
            text.push_str(&decoded.to_string());
            text.push('\n');
            bytes.extend_from_slice(insn);
        }
        let folder = scratch_folder(self.tools.prefix, "as");
        let mut assembled = assemble(self.tools, &folder, &text);
        // Some assemblers fill the last sixteen bytes of a section.
        if assembled.len().saturating_sub(bytes.len()) < 16 {
            assembled.truncate(bytes.len());
        }
        let ours = folder.join("ours.bin");
        write(&ours, &bytes);
        if self.tools.table.is_words() {
            // Some assemblers pad a section.
            let lengths = [bytes.len(), bytes.len().next_multiple_of(16)];
            assert!(
                lengths.contains(&assembled.len()),
                "{}: binutils makes another number of words",
                self.tools.prefix
            );
            for (line, (ours, theirs)) in lines.iter().zip(bytes.chunks(4).zip(assembled.chunks(4))) {
                assert_eq!(ours, theirs, "{}: `{line}`", self.tools.prefix);
            }
        } else {
            let theirs = folder.join("theirs.bin");
            write(&theirs, &assembled);
            let (ours, theirs) = (disassemble(self.tools, &ours), disassemble(self.tools, &theirs));
            assert_eq!(ours.len(), theirs.len(), "{}: another number of instructions", self.tools.prefix);
            assert_eq!(ours.len(), lines.len(), "{}: binutils sees other instructions", self.tools.prefix);
            for (line, (ours, theirs)) in lines.iter().zip(ours.iter().zip(&theirs)) {
                assert_eq!(ours, theirs, "{}: `{line}`", self.tools.prefix);
            }
        }
        std::fs::remove_dir_all(&folder).expect("the folder is ours");
    }

    /// How many functions the batch has.
    pub fn len(&self) -> usize {
        self.cases.len()
    }
}

/// Emits the instruction with this index in the list of the core, or after it in that of the extensions.
pub fn emit_any<A: Extension>(asm: &mut A, index: usize, operands: &Operands<A::Reg, A::Float>, label: Label) {
    match index.checked_sub(INSTRUCTIONS.len()) {
        None => emit(asm, index, operands, label),
        Some(index) => emit_extension(asm, index, operands, label),
    }
}

fn load<A: Core>(asm: &mut A, ty: Type, r: A::Reg, f: A::Float, base: A::Reg, index: usize) {
    match ty {
        Type::F => asm.ldfi(f, base, slot(index)),
        Type::D => asm.lddi(f, base, slot(index)),
        Type::I | Type::C | Type::Uc | Type::S | Type::Us => asm.ldii(r, base, slot(index)),
        Type::U => asm.ldui(r, base, slot(index)),
        Type::L | Type::Ul | Type::P => asm.ldli(r, base, slot(index)),
        Type::V => {}
    }
}

fn store<A: Core>(asm: &mut A, ty: Type, r: A::Reg, f: A::Float, base: A::Reg, index: usize) {
    match ty {
        Type::F => asm.stfi(f, base, slot(index)),
        Type::D => asm.stdi(f, base, slot(index)),
        Type::I | Type::U | Type::C | Type::Uc | Type::S | Type::Us => asm.stii(r, base, slot(index)),
        Type::L | Type::Ul | Type::P => asm.stli(r, base, slot(index)),
        Type::V => {}
    }
}
