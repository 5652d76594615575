//! Peers that run eBPF: rbpf in this process, and the kernel's XDP with a hash map, see c/xdp.c.

use crate::limit::Tuple;
use std::ffi::c_void;
use std::fmt::Write as _;

/// Up to so many filters rbpf's machine code fits the page that it has room for.
pub const MAX_RBPF_FILTERS: usize = 10;
/// How often the kernel runs a program for a packet at once: it tells whole nanoseconds, for all together.
const TIMES: u32 = 50_000;
/// For how many packets: each run waits for all processors to have seen the program.
const SAMPLES: usize = 8;

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

// SAFETY: defined in c/xdp.c with these types.
unsafe extern "C" {
    fn peer_xdp_new(object: *const u8, length: usize, keys: *const [u32; 3], count: u32) -> *mut c_void;
    fn peer_xdp_free(context: *mut c_void);
    fn peer_xdp_run(
        context: *mut c_void,
        nothing: i32,
        packet: *const u8,
        length: u32,
        times: u32,
        result: *mut u32,
        nanoseconds: *mut u32,
    ) -> i32;
}

/// Which program the kernel runs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Run {
    LookUp,
    Nothing,
}

/// The kernel with a map of tuples.
pub struct Xdp(*mut c_void);

impl Xdp {
    /// None where the kernel does not permit it.
    pub fn new(tuples: &[Tuple]) -> Option<Xdp> {
        static OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/xdp.o"));
        let keys: Vec<[u32; 3]> = tuples
            .iter()
            .map(|tuple| {
                let ports = u32::from(tuple.source_port) << 16 | u32::from(tuple.destination_port);
                [tuple.source, tuple.destination, ports].map(u32::to_be)
            })
            .collect();
        // SAFETY: pointers and counts are those of slices.
        let context = unsafe { peer_xdp_new(OBJECT.as_ptr(), OBJECT.len(), keys.as_ptr(), keys.len() as u32) };
        if context.is_null() { None } else { Some(Xdp(context)) }
    }

    /// Nanoseconds of a run, over packets of this length.
    ///
    /// # Panics
    /// If the program is wrong about one.
    pub fn nanoseconds(&self, run: Run, packets: &[*const u8], length: u32, expected: &[u32]) -> f64 {
        let mut sum = 0.0;
        for (packet, expected) in packets.iter().zip(expected).take(SAMPLES) {
            let (mut result, mut nanoseconds) = (0, 0);
            let nothing = i32::from(run == Run::Nothing);
            // SAFETY: the packet has this length, and the context is live.
            let status =
                unsafe { peer_xdp_run(self.0, nothing, *packet, length, TIMES, &mut result, &mut nanoseconds) };
            assert_eq!(status, 0, "the kernel runs what it has loaded");
            assert_eq!(result, if run == Run::Nothing { 0 } else { *expected }, "the kernel's answer");
            sum += f64::from(nanoseconds);
        }
        sum / SAMPLES.min(packets.len()) as f64
    }
}

impl Drop for Xdp {
    fn drop(&mut self) {
        // SAFETY: made by `peer_xdp_new`, freed once.
        unsafe { peer_xdp_free(self.0) }
    }
}
