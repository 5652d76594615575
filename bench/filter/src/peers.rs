//! The peers in C, see c/peers.c.

use crate::limit::Tuple;
use crate::{LENGTH, Pass};
use quaject_filter::bpf::{Instruction, Program};
use std::ffi::c_void;

/// A rule as c/peers.c has it.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    source: u32,
    destination: u32,
    source_bits: u32,
    destination_bits: u32,
    source_low: u16,
    source_high: u16,
    destination_low: u16,
    destination_high: u16,
    protocol: u32,
    any_protocol: u32,
}

impl Rule {
    /// The rule of a tuple.
    pub fn exact(tuple: &Tuple) -> Rule {
        Rule {
            source: tuple.source,
            destination: tuple.destination,
            source_bits: 32,
            destination_bits: 32,
            source_low: tuple.source_port,
            source_high: tuple.source_port,
            destination_low: tuple.destination_port,
            destination_high: tuple.destination_port,
            protocol: 6,
            any_protocol: 0,
        }
    }
}

impl Rule {
    /// A rule of prefixes and ranges.
    pub fn of(rule: &crate::rules::Rule) -> Rule {
        let [(source, source_bits), (destination, destination_bits)] = rule.addresses;
        let [(source_low, source_high), (destination_low, destination_high)] = rule.ports;
        Rule {
            source,
            destination,
            source_bits,
            destination_bits,
            source_low,
            source_high,
            destination_low,
            destination_high,
            protocol: rule.protocol.unwrap_or(0).into(),
            any_protocol: rule.protocol.is_none().into(),
        }
    }
}

/// `struct bpf_program`.
#[repr(C)]
struct RawProgram {
    length: u32,
    instructions: *const Instruction,
}

// SAFETY: defined in c/peers.c with these types.
unsafe extern "C" {
    fn peers_start() -> i32;
    fn peer_acl_new(rules: *const Rule, count: u32) -> *mut c_void;
    fn peer_acl_choose(context: *mut c_void, wide: i32) -> i32;
    fn peer_acl_free(context: *mut c_void);
    fn peer_acl_classify(context: *mut c_void, packets: *const *const u8, found: *mut u32, count: u32, batch: u32);
    fn peer_bpf_new(programs: *const RawProgram, count: u32) -> *mut c_void;
    fn peer_bpf_free(context: *mut c_void);
    fn peer_bpf_classify(context: *mut c_void, packets: *const *const u8, length: u32, found: *mut u32, count: u32);
}

/// Starts DPDK, once.
pub fn start() {
    // SAFETY: called once, before the others.
    assert_eq!(unsafe { peers_start() }, 0, "DPDK starts");
}

/// DPDK's classifier for rules.
pub struct Acl(*mut c_void);

/// The vectors that it computes with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Vectors {
    /// 256 bits: its own choice.
    Default,
    /// 512 bits, which it uses only if told twice.
    Wide,
}

impl Acl {
    /// Classifies with vectors of 256 bits until told otherwise.
    pub fn new(rules: &[Rule]) -> Acl {
        // SAFETY: the pointer and count are those of a slice.
        let context = unsafe { peer_acl_new(rules.as_ptr(), rules.len() as u32) };
        assert!(!context.is_null(), "the rules build");
        let acl = Acl(context);
        acl.choose(Vectors::Default);
        acl
    }

    /// Chooses the vectors; whether the processor has them.
    pub fn choose(&self, vectors: Vectors) -> bool {
        // SAFETY: the context is live, and no classification runs meanwhile: this is one thread.
        unsafe { peer_acl_choose(self.0, i32::from(vectors == Vectors::Wide)) == 0 }
    }

    pub fn classify(&self, packets: &[*const u8], found: &mut [u32], batch: u32) {
        // SAFETY: there are as many answers as packets, which have the bytes that the fields are in.
        unsafe { peer_acl_classify(self.0, packets.as_ptr(), found.as_mut_ptr(), packets.len() as u32, batch) }
    }
}

impl Drop for Acl {
    fn drop(&mut self) {
        // SAFETY: made by `peer_acl_new`, freed once.
        unsafe { peer_acl_free(self.0) }
    }
}

/// DPDK's compiler of programs.
pub struct Bpf(*mut c_void);

impl Bpf {
    pub fn new(programs: &[Program]) -> Bpf {
        let instructions: Vec<Vec<Instruction>> = programs.iter().map(Program::instructions).collect();
        let raw: Vec<RawProgram> = instructions
            .iter()
            .map(|own| RawProgram { length: own.len() as u32, instructions: own.as_ptr() })
            .collect();
        // SAFETY: the programs are valid and live through the call.
        let context = unsafe { peer_bpf_new(raw.as_ptr(), raw.len() as u32) };
        assert!(!context.is_null(), "the programs compile");
        Bpf(context)
    }

    pub fn classify(&self, packets: &[*const u8], length: u32, found: &mut [u32]) {
        // SAFETY: there are as many answers as packets, each of which has this length.
        unsafe { peer_bpf_classify(self.0, packets.as_ptr(), length, found.as_mut_ptr(), packets.len() as u32) }
    }
}

impl Drop for Bpf {
    fn drop(&mut self) {
        // SAFETY: made by `peer_bpf_new`, freed once.
        unsafe { peer_bpf_free(self.0) }
    }
}

/// `rte_bpf` as a contender, where it has programs.
pub fn add_bpf<'p>(contenders: &mut Vec<(String, Pass<'p>)>, pointers: &'p [*const u8], bpf: Option<&'p Bpf>) {
    if let Some(bpf) = bpf {
        let pass = move |found: &mut [u32]| bpf.classify(pointers, LENGTH as u32, found);
        contenders.push(("rte_bpf, one after the other".to_owned(), Box::new(pass)));
    }
}

/// `rte_acl` as contenders, one for each size of batches.
pub fn add_acl<'p>(contenders: &mut Vec<(String, Pass<'p>)>, pointers: &'p [*const u8], acl: &'p Acl) {
    for batch in [1, 32, 128] {
        let pass = move |found: &mut [u32]| acl.classify(pointers, found, batch);
        contenders.push((format!("rte_acl, batches of {batch}"), Box::new(pass)));
    }
}
