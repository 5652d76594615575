//! The kernel as a peer: XDP with a hash map, see c/xdp.c.

use crate::limit::Tuple;
use crate::{Clocked, LENGTH};
use std::ffi::c_void;

/// How often the kernel runs a program for a packet at once: it tells whole nanoseconds, for all together.
const TIMES: u32 = 50_000;
/// For how many packets: each run waits for all processors to have seen the program.
const SAMPLES: usize = 8;

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

/// The kernel's programs, which measure themselves.
pub fn contenders<'p>(xdp: &'p Xdp, pointers: &'p [*const u8], expected: &'p [u32]) -> [(String, Clocked<'p>); 2] {
    [("XDP with a hash map", Run::LookUp), ("XDP, a program that does nothing", Run::Nothing)].map(|(name, run)| {
        let own = move || xdp.nanoseconds(run, pointers, LENGTH as u32, expected);
        (name.to_owned(), Box::new(own) as Clocked<'p>)
    })
}
