//! Machine code made and run on the machines that are not this one: the tests of random programs are built for them and
//! run under qemu-user. Machine code decides nothing by itself, so that what these tests compare is all there is to
//! know.

use std::process::{Command, Stdio};

use super::programs::{Program, tests_of};
use crate::run::{Failure, cargo};

/// A foreign machine for which the JIT generates code.
pub(crate) struct Machine {
    /// As rustup and cargo name it.
    pub(crate) target: &'static str,
    linker: &'static str,
    emulator: &'static str,
    /// Where its C library is.
    libraries: &'static str,
}

pub(crate) const MACHINES: [Machine; 2] = [
    Machine {
        target: "aarch64-unknown-linux-gnu",
        linker: "aarch64-linux-gnu-gcc-12",
        emulator: "qemu-aarch64",
        libraries: "/usr/aarch64-linux-gnu",
    },
    Machine {
        target: "riscv64gc-unknown-linux-gnu",
        linker: "riscv64-linux-gnu-gcc-12",
        emulator: "qemu-riscv64",
        libraries: "/usr/riscv64-linux-gnu",
    },
];

/// Programs of `tests/differential` that need no compiler of the machine they run on.
const TESTS: [&str; 2] = ["machine_code", "changing_forms"];

/// Builds the tests for all machines, as programs to be run here.
pub(crate) fn build() -> Result<Vec<Program>, Failure> {
    let mut build = cargo(&["test", "--package", "quaject-differential", "--no-run"]);
    build.args(TESTS.iter().flat_map(|test| ["--test", test])).arg("--message-format=json-render-diagnostics");
    // Debug information would only cost time.
    build.env("CARGO_PROFILE_DEV_DEBUG", "0");
    for machine in &MACHINES {
        let linker = format!("CARGO_TARGET_{}_LINKER", machine.target.to_uppercase().replace('-', "_"));
        build.args(["--target", machine.target]).env(linker, machine.linker);
    }
    Ok(tests_of(build.stderr(Stdio::inherit()))?.into_iter().filter_map(emulated).collect())
}

/// The program as its machine's emulator runs it.
fn emulated(program: Program) -> Option<Program> {
    let machine = MACHINES.iter().find(|machine| program.is_below(machine.target))?;
    let mut emulator = Command::new(machine.emulator);
    emulator.args(["-L", machine.libraries]);
    Some(program.by(machine.target, emulator))
}
