//! `tap:` and `packet:`, at the two sides of one interface in a network of their own.

use super::{engines, text};
use quaject_test_support::tool;
use std::process::Command;

/// Sends every frame back, its two addresses exchanged.
const MIRROR: &str = "
channel inC: bytes[<=1514] external out = \"tap:t0\";
channel outC: bytes[<=1514] external in = \"tap:t0\";
process mirror { while { in(inC, $frame); if (frame.len >= 14) out(outC, frame[6..12] + frame[..6] + frame[12..]); } }
";

/// Sends frames of a protocol that nobody else speaks and expects them back.
const ASKER: &str = "
channel inC: bytes[<=200] external out = \"packet:t0\";
channel outC: bytes[<=200] external in = \"packet:t0\";
channel sayC: bytes[<=40] external in = \"text:-\";
process asker {
  for i in 0..3 {
    out(outC, \"\\x02aaaaa\\x02bbbbb\\x88\\xb5question \" + \"012\"[i..i + 1]);
    var waiting = true;
    while (waiting) {
      in(inC, $frame);
      if (frame.len >= 14 && frame.be16[12] == 0x88b5) { out(sayC, frame[..24]); waiting = false; }
    }
  }
  exit(0);
}
";

#[test]
fn a_frame_crosses_the_interface_both_ways() {
    if tool(&["ip"]).is_none() {
        return;
    }
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::write(folder.path().join("mirror.esp"), MIRROR).expect("the folder is writable");
        std::fs::write(folder.path().join("asker.esp"), ASKER).expect("the folder is writable");
        let script = format!(
            "set -e\n\
             $QJ run mirror.esp --engine {engine} & mirror=$!\n\
             trap 'kill $mirror; wait' EXIT\n\
             for i in $(seq 600); do ip link show t0 >/dev/null 2>&1 && break; sleep 0.05; done\n\
             ip link set t0 up\n\
             timeout 60 $QJ run asker.esp --engine {engine}\n"
        );
        let output = Command::new("unshare")
            .args(["--net", "sh", "-c", &script])
            .current_dir(folder.path())
            .env("QJ", env!("CARGO_BIN_EXE_qj"))
            .output()
            .expect("every Linux has `unshare`");
        let expected: String = (0..3).map(|i| format!("\"\\x02bbbbb\\x02aaaaa\\x88\\xb5question {i}\"\n")).collect();
        assert_eq!(text(&output.stdout), expected, "{engine}: {}", text(&output.stderr));
    }
}
