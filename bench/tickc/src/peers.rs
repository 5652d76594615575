//! Makes the dot product with the peers that are installed, in turn with ours.

#[cfg(any(tcc, libgccjit))]
use std::ffi::c_long;

use quaject_bench_harness::median;

use crate::{Program, cycles};

// SAFETY: these are the declarations of `c/peers.c`.
#[cfg(any(tcc, libgccjit))]
unsafe extern "C" {
    #[cfg(tcc)]
    fn libtcc_dot(uses: c_long) -> c_long;
    #[cfg(libgccjit)]
    fn libgccjit_dot(uses: c_long) -> c_long;
}

/// Times of libgccjit are long: fewer rounds.
const ROUNDS: usize = 5;

#[cfg(any(tcc, libgccjit))]
struct Peer {
    name: &'static str,
    make_and_use: unsafe extern "C" fn(c_long) -> c_long,
}

/// Prints cycles to make and free a dot product, and ratios to ours.
pub(crate) fn print(make: &dyn Fn(), made: f64, program: &Program) {
    println!("\nmaking and freeing the dot product: cycles");
    let ours: Vec<f64> = (0..ROUNDS).map(|_| cycles(make) / made).collect();
    let ours = median(&ours);
    println!("{:<12} {ours:>14.0}", "tickc");
    print!("{}", include_str!(concat!(env!("OUT_DIR"), "/left_out.txt")));
    #[cfg(any(tcc, libgccjit))]
    print_peers(ours, program);
    #[cfg(not(any(tcc, libgccjit)))]
    let _ = program;
}

#[cfg(any(tcc, libgccjit))]
fn print_peers(ours: f64, program: &Program) {
    let peers = [
        #[cfg(tcc)]
        Peer { name: "libtcc", make_and_use: libtcc_dot },
        #[cfg(libgccjit)]
        Peer { name: "libgccjit", make_and_use: libgccjit_dot },
    ];
    for peer in peers {
        // SAFETY: the functions of `peers.c` take any number.
        let call = |uses: c_long| unsafe { (peer.make_and_use)(uses) };
        assert_eq!(call(1), (program.general)(1), "{} has another result", peer.name);
        let rounds: Vec<f64> = (0..ROUNDS).map(|_| cycles(|| _ = call(0))).collect();
        let making = median(&rounds);
        println!("{:<12} {making:>14.0}   {:>9.0} times ours", peer.name, making / ours);
    }
}
