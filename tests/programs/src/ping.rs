//! ARP and ping (examples/ping) against the kernel, in a network namespace.

use super::{engines, repository};
use quaject_test_support::qj::qj_binary;
use quaject_test_support::{quick_compiler, tool};
use std::process::Command;

#[test]
fn the_kernel_resolves_and_pings_it() {
    if tool(&["ip"]).is_none() || tool(&["ping"]).is_none() {
        return;
    }
    for engine in engines() {
        let script = format!(
            "$QJ run $PROGRAM --engine {engine} & responder=$!\n\
             trap 'kill $responder; wait' EXIT\n\
             for i in $(seq 600); do ip link show tap0 >/dev/null 2>&1 && break; sleep 0.05; done\n\
             ip address add 10.77.0.1/24 dev tap0 && ip link set tap0 up || exit 1\n\
             for size in 0 1 56 1471 1472; do ping -q -c 2 -i 0.1 -W 600 -s $size 10.77.0.2 || exit 1; done\n\
             if ping -q -c 1 -W 1 10.77.0.3; then exit 1; fi\n"
        );
        let output = Command::new("unshare")
            .args(["--net", "sh", "-c", &script])
            .env("QJ", qj_binary())
            .env("CC", quick_compiler())
            .env("PROGRAM", repository("examples/ping/responder.esp"))
            .output()
            .expect("every Linux has `unshare`");
        let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{engine}: {said}{complaint}");
        assert_eq!(said.matches("2 packets transmitted, 2 received").count(), 5, "{engine}: {said}");
    }
}
