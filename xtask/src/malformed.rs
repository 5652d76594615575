//! `cargo xtask malformed [PROGRAM] [--packets N]`: malformed packets by the million at the programs of examples/,
//! through their drivers. The tests of `tests/programs/src/malformed` with a number of packets; as `xtask` knows no
//! crate of the product, they do the work.

use crate::run::{Failure, cargo, succeed};

/// What the issue of every release asks for.
pub(crate) const PACKETS: u64 = 10_000_000;

/// Where the tests of the programs are.
const TESTS: [(&str, &str); 8] = [
    ("tftp", "datagrams"),
    ("uds", "datagrams"),
    ("tcpip", "frames"),
    ("nat", "frames"),
    ("mqtt", "streams"),
    ("usb", "streams"),
    ("modbus", "lines"),
    ("hdlc", "lines"),
];

/// Builds a release, and sends so many packets to one program or to each.
pub(crate) fn run(program: Option<&str>, packets: u64) -> Result<(), Failure> {
    let chosen: Vec<String> = TESTS
        .iter()
        .filter(|(name, _)| program.is_none_or(|program| program == *name))
        .map(|(name, file)| format!("malformed::{file}::{name}"))
        .collect();
    if chosen.is_empty() {
        let names: Vec<&str> = TESTS.iter().map(|(name, _)| *name).collect();
        return Err(Failure(format!("there is no such program; there are {}", names.join(", "))));
    }
    let mut command = cargo(&["test", "--release", "--quiet", "--package", "quaject-test-programs", "--"]);
    command.args(["--exact", "--nocapture", "--test-threads", "1"]).args(chosen);
    succeed(command.env("QJ_PACKETS", packets.to_string()))
}
