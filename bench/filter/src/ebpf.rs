//! rbpf, which runs eBPF in this process.

use crate::limit::Tuple;
use std::fmt::Write as _;

/// Up to so many filters rbpf's machine code fits the page that it has room for.
pub const MAX_RBPF_FILTERS: usize = 10;

/// A program for rbpf: one filter after the other, each complete, as a person would write it for this machine: the
/// packet in r1, its length in r2; the number of the filter, from one on, or zero.
fn program(tuples: &[Tuple]) -> Vec<u8> {
    let mut text = String::from("mov r0, 0\njge r2, 34, +1\nexit\nadd r2, r1\n");
    // What lies in memory, as the machine loads it.
    let word = |bytes: [u8; 4]| i32::from_ne_bytes(bytes);
    let half = |number: u16| u16::from_ne_bytes(number.to_be_bytes());
    for (at, tuple) in tuples.iter().enumerate() {
        let mut ports = [0; 4];
        ports[..2].copy_from_slice(&tuple.source_port.to_be_bytes());
        ports[2..].copy_from_slice(&tuple.destination_port.to_be_bytes());
        // Instructions that follow the one of this number are passed over where a test fails.
        const LENGTH: usize = 26;
        let miss = |own: usize| LENGTH - own - 1;
        let _ = writeln!(text, "ldxh r4, [r1+12]\njne r4, {}, +{}", half(0x0800), miss(1));
        let _ = writeln!(text, "ldxb r4, [r1+23]\njne r4, 6, +{}", miss(3));
        let _ = writeln!(text, "ldxh r4, [r1+20]\nand r4, {}\njne r4, 0, +{}", half(0x1fff), miss(6));
        let source = word(tuple.source.to_be_bytes());
        let _ = writeln!(text, "ldxw r4, [r1+26]\nmov32 r5, {source}\njne r4, r5, +{}", miss(9));
        let destination = word(tuple.destination.to_be_bytes());
        let _ = writeln!(text, "ldxw r4, [r1+30]\nmov32 r5, {destination}\njne r4, r5, +{}", miss(12));
        text.push_str("ldxb r4, [r1+14]\nand r4, 15\nlsh r4, 2\nadd r4, r1\nmov r5, r4\nadd r5, 18\n");
        let _ = writeln!(text, "jgt r5, r2, +{}", miss(19));
        let _ = writeln!(text, "ldxw r4, [r4+14]\nmov32 r5, {}\njne r4, r5, +{}", word(ports), miss(22));
        let _ = writeln!(text, "mov r0, {}\nja +0\nexit", at + 1);
    }
    text.push_str("mov r0, 0\nexit\n");
    rbpf::assembler::assemble(&text).expect("these are instructions")
}

/// rbpf's machine code for filters, one after the other.
pub struct Rbpf {
    machine: rbpf::EbpfVmMbuff<'static>,
    /// It wants memory that it may change.
    bytes: Vec<u8>,
    length: usize,
    stride: usize,
}

impl Rbpf {
    pub fn new(tuples: &[Tuple], bytes: &[u8], length: usize, stride: usize) -> Rbpf {
        // As long as the process: one for each number of filters.
        let program: &'static [u8] = Vec::leak(program(tuples));
        let mut machine = rbpf::EbpfVmMbuff::new(Some(program)).expect("the program is valid");
        machine.jit_compile().expect("it fits");
        Rbpf { machine, bytes: bytes.to_vec(), length, stride }
    }

    pub fn classify(&mut self, found: &mut [u32]) {
        let start = self.bytes.as_mut_ptr();
        for (at, found) in found.iter_mut().enumerate() {
            // SAFETY: 1. Every packet has these bytes. 2. The program reads them, and no more than it was told there
            // are.
            let answer = unsafe {
                let packet = std::slice::from_raw_parts_mut(start.add(at * self.stride), self.length);
                self.machine.execute_program_jit(&mut [], packet)
            };
            *found = answer.expect("it is compiled") as u32;
        }
    }
}
