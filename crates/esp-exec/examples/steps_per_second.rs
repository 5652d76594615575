//! Measures the reference interpreter: IR steps per second of local code, and communications per second.
//! `cargo run --release -p quaject-esp-exec --example steps_per_second [STEPS [local|communication]]`; under callgrind
//! with a small number.

use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::environment::{Environment, Offer, Readiness, Reply};
use quaject_esp_exec::interpreter::Interpreter;
use quaject_esp_exec::step::Checks;
use quaject_esp_ir::ir::{ChannelId, ExternId};
use quaject_esp_ir::read::read;
use std::time::Instant;

struct Nowhere;

impl Environment for Nowhere {
    fn peek(&mut self, _: ChannelId) -> Offer<'_> {
        Offer::Closed
    }
    fn take(&mut self, _: ChannelId) {}
    fn readiness(&mut self, _: ChannelId) -> Readiness {
        Readiness::Closed
    }
    fn put(&mut self, _: ChannelId, _: &[Datum]) {}
    fn now_ns(&mut self) -> i64 {
        0
    }
    fn call(&mut self, _: ExternId, _: &mut [Datum]) -> Reply {
        Reply::Unresolved
    }
}

/// Arithmetic, an array in memory and a loop, forever.
const LOCAL: &str = "esp-ir 1
process p {
  slot s0: array[64] of u32
block0:
  v0: int = constant 0
  jump block1(v0)
block1(v1 i: int):
  v2: int = constant 63
  v3: int = and v1, v2
  v4: u32 = load s0[v3]
  v5: u32 = convert v1
  v6: u32 = multiply v4, v5
  store s0[v3], v6
  v7: int = constant 1
  v8: int = add v1, v7
  v9: int = constant 1000
  v10: bool = less v8, v9
  branch v10, block1(v8), block2
block2:
  yield block0
}
";

/// Two processes that do nothing but communicate.
const COMMUNICATION: &str = "esp-ir 1
channel c(int)
process a {
  site0 out c
block0:
  v0: int = constant 1
  jump block1
block1:
  wait fair
    out site0 c ready(keep v0) -> block2
block2:
  jump block1
}
process b {
  site0 in c
block0:
  jump block1
block1:
  wait fair
    in site0 c(p0) -> block2
block2(v0: int):
  jump block1
}
";

fn main() {
    let steps: u64 = std::env::args().nth(1).and_then(|steps| steps.parse().ok()).unwrap_or(200_000_000);
    let only = std::env::args().nth(2);
    let programs = [("local", LOCAL, 1), ("communication", COMMUNICATION, 20)];
    for (name, text, share) in programs.into_iter().filter(|(name, ..)| only.as_ref().is_none_or(|only| only == name)) {
        let program = read(text).expect("the program above is well-formed");
        let mut interpreter = Interpreter::new(&program, Checks::Off).expect("the program is small");
        let start = Instant::now();
        interpreter.run(&mut Nowhere, steps / share);
        let seconds = start.elapsed().as_secs_f64();
        let executed = interpreter.executed();
        println!("{name}: {executed} IR steps, {:.1} million per second", executed as f64 / seconds / 1e6);
    }
}
