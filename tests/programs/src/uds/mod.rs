//! The control unit (examples/uds) on a bus of this machine, asked by python-can and by scapy's ISO-TP and UDS.

use super::{engines, repository};
use quaject_test_support::qj::qj_binary;
use quaject_test_support::{quick_compiler, tool};
use std::process::Command;

/// The Python that Debian's packages are for.
const PYTHON: &str = "/usr/bin/python3";

fn modules_are_there() -> bool {
    let mut python = Command::new(PYTHON);
    python.args(["-c", "import can, msgpack, scapy.contrib.isotp"]);
    let found = tool(&[PYTHON]).is_some() && python.output().is_ok_and(|output| output.status.success());
    // Says so, and fails where tools are promised.
    found || tool(&["the Python modules python3-can, python3-msgpack and python3-scapy"]).is_some()
}

#[test]
fn a_tester_asks_and_is_answered() {
    if tool(&["ip"]).is_none() || !modules_are_there() {
        return;
    }
    // Most of the time is spent waiting for clocks.
    std::thread::scope(|scope| {
        for engine in engines() {
            scope.spawn(move || ask(engine));
        }
    });
}

fn ask(engine: &str) {
    let script = format!(
        "ip link set lo up && ip route add 224.0.0.0/4 dev lo || exit 1\n\
         $QJ run $SERVER --engine {engine} & server=$!\n\
         $PYTHON $TESTER 43113; said=$?\n\
         kill -TERM $server; wait $server; test $? = 143 && exit $said\n"
    );
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", &script])
        .env("QJ", qj_binary())
        .env("CC", quick_compiler())
        .env("PYTHON", PYTHON)
        .env("SERVER", repository("examples/uds/server.esp"))
        .env("TESTER", repository("tests/programs/src/uds/tester.py"))
        .output()
        .expect("every Linux has `unshare`");
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && said.is_empty(), "{engine}: {said}{complaint}");
}
