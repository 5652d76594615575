//! `tap:` and `packet:`, at the two sides of one interface in a network namespace of their own.

use super::{engines, text};
use quaject_test_support::qj::qj_binary;
use quaject_test_support::tool;
use std::process::{Command, Output};

/// Sends every frame back with its two addresses exchanged.
const MIRROR: &str = "
channel inC: bytes[<=1514] external out = \"tap:t0\";
channel outC: bytes[<=1514] external in = \"tap:t0\";
process mirror { while { in(inC, $frame); if (frame.len >= 14) out(outC, frame[6..12] + frame[..6] + frame[12..]); } }
";

/// Sends frames of a protocol that no other program uses and expects them back.
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
        let output = between(MIRROR, ASKER, &[], engine);
        let expected: String = (0..3).map(|i| format!("\"\\x02bbbbb\\x02aaaaa\\x88\\xb5question {i}\"\n")).collect();
        assert_eq!(text(&output.stdout), expected, "{engine}: {}", text(&output.stderr));
    }
}

/// Sends numbered frames on request: every seventh has a VLAN tag, every hundredth is long.
const SENDER: &str = "
channel askC: bytes[<=64] external out = \"tap:t0\";
channel frameC: bytes[<=4000] external in = \"tap:t0\";
process sender {
  for burst in 0..15 {
    var waiting = true;
    while (waiting) { in(askC, $f); if (f.len >= 14 && f.be16[12] == 0x88b5) waiting = false; }
    for i in 0..200 {
      var n = 200 * burst + i, p: #bytes[<=4000] = #\"\\x02bbbbb\\x02aaaaa\";
      if (n % 7 == 0) p += \"\\x81\\0\\x20\\x05\";
      p += \"\\x88\\xb5\";
      var at = p.len;
      p.len += n % 100 == 0 ? 3000 : 60;
      p.be32[at] = u32(n);
      p[p.len - 1] = u8(n & 255);
      out(frameC, freeze(p));
    }
  }
}
";

/// Requests them, and compares each with what was sent.
const RECEIVER: &str = "
channel inC: bytes[<=4000] external out = \"packet:t0\";
channel outC: bytes[<=64] external in = \"packet:t0\";
channel sayC(int, int) external in = \"text:-\";
process receiver {
  var n = 0, asked = -1, tagged = 0;
  while (n < 3000) {
    if (n % 200 == 0 && asked != n) { asked = n; out(outC, \"\\x02aaaaa\\x02bbbbb\\x88\\xb5............\"); }
    in(inC, $f);
    var at = f.len > 18 && f.be16[12] == 0x8100 ? 16 : 12;
    if (f.len > at + 6 && f.be16[at] == 0x88b5) {
      assert(f.be32[at + 2] == u32(n) && (at == 16) == (n % 7 == 0) && f[f.len - 1] == u8(n & 255));
      assert(f.len == at + 2 + (n % 100 == 0 ? 3000 : 60));
      if (at == 16) { assert(f.be16[14] == 0x2005); tagged += 1; }
      n += 1;
    }
  }
  out(sayC, n, tagged);
  exit(0);
}
";

/// Wraps around the ring of 1024 slots three times.
#[test]
fn frames_of_any_length_arrive_complete_and_in_order() {
    if tool(&["ip"]).is_none() {
        return;
    }
    for engine in engines() {
        let output = between(SENDER, RECEIVER, &[], engine);
        assert_eq!(text(&output.stdout), "3000 429\n", "{engine}: {}", text(&output.stderr));
    }
}

/// Sends long frames at once, then a short one repeatedly.
const FLOOD: &str = "
channel outC: bytes[<=4000] external in = \"tap:t0\";
channel upC: bytes[<=64] external out = \"tap:t0\";
process flood {
  var p: #bytes[<=4000] = #\"\\x02bbbbb\\x02aaaaa\\x88\\xb5\", waiting = true;
  while (waiting) { in(upC, $f); if (f.len >= 14 && f.be16[12] == 0x88b5) waiting = false; }
  p.len = 3000;
  for i in 0..900 { out(outC, freeze(p)); }
  p.len = 60;
  while { alt { after (20 ms) { out(outC, freeze(p)); } } }
}
";

/// Receives nothing for a while: each frame must arrive complete or be lost.
const LATE: &str = "
channel inC: bytes[<=4000] external out = \"packet:t0\";
channel outC: bytes[<=64] external in = \"packet:t0\";
channel sayC(int, bool) external in = \"text:-\";
process late {
  var long = 0, over = false;
  out(outC, \"\\x02aaaaa\\x02bbbbb\\x88\\xb5............\");
  alt { after (1500 ms) { } }
  while (!over) {
    in(inC, $f);
    if (f.len >= 14 && f.be16[12] == 0x88b5) {
      assert(f.len == 3000 || f.len == 60);
      if (f.len == 3000) long += 1;
      else over = true;
    }
  }
  out(sayC, 1, long < 900);
  exit(0);
}
";

#[test]
fn frames_without_room_are_lost_and_counted_and_never_truncated() {
    if tool(&["ip"]).is_none() {
        return;
    }
    for engine in engines() {
        let output = between(FLOOD, LATE, &[], engine);
        let said = text(&output.stderr);
        assert_eq!(text(&output.stdout), "1 true\n", "{engine}: {said}");
        assert!(said.contains("faster than the program received them"), "{engine}: {said}");
    }
}

/// Runs a program that makes the interface, and another one at its other side to its end, in a folder with some files.
fn between(maker: &str, user: &str, files: &[(&str, &str)], engine: &str) -> Output {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (name, content) in files.iter().chain(&[("maker.esp", maker), ("user.esp", user)]) {
        std::fs::write(folder.path().join(name), content).expect("the folder is writable");
    }
    let script = format!(
        "set -e\n\
         $QJ run maker.esp --engine {engine} & maker=$!\n\
         trap 'kill $maker 2>/dev/null; wait' EXIT\n\
         for i in $(seq 600); do ip link show t0 >/dev/null 2>&1 && break; sleep 0.05; done\n\
         ip link set t0 up\n\
         timeout 1200 $QJ run user.esp --engine {engine}\n"
    );
    Command::new("unshare")
        .args(["--net", "sh", "-c", &script])
        .current_dir(folder.path())
        .env("QJ", qj_binary())
        .output()
        .expect("every Linux has `unshare`")
}

/// Waits for frames forever.
const WAITER: &str = "
channel inC: bytes[<=1514] external out = \"DRIVER:t0\";
channel sayC(int) external in = \"text:-\";
process waiter { out(sayC, 1); while { in(inC, $_f); } }
";

/// Sends frames forever.
const TALKER: &str = "
channel outC: bytes[<=1514] external in = \"DRIVER:t0\";
channel sayC(int) external in = \"text:-\";
process talker {
  out(sayC, 1);
  while { alt { after (10 ms) { out(outC, \"\\x02aaaaa\\x02bbbbb\\x88\\xb5............\"); } } }
}
";

/// The output and exit status of a program whose interface goes down, comes up again, and is removed.
fn removed(program: &str, engine: &str) -> String {
    let folder = tempfile::tempdir().expect("a temporary folder");
    std::fs::write(folder.path().join("p.esp"), program).expect("the folder is writable");
    let script = format!(
        "ip tuntap add t0 mode tap && ip link set t0 up || exit 1\n\
         timeout 1200 $QJ run p.esp --engine {engine} > said 2>&1 & running=$!\n\
         for i in $(seq 600); do grep -q 1 said && break; sleep 0.05; done\n\
         ip link set t0 down; sleep 0.2; ip link set t0 up; sleep 0.2\n\
         kill -0 $running && echo goes on\n\
         ip link set t0 down; sleep 0.1; ip link del t0\n\
         wait $running; echo status $?; cat said"
    );
    let output = Command::new("unshare")
        .args(["--net", "sh", "-c", &script])
        .current_dir(folder.path())
        .env("QJ", qj_binary())
        .output()
        .expect("every Linux has `unshare`");
    text(&output.stdout)
}

#[test]
fn an_interface_that_is_removed_ends_the_program_with_an_error() {
    if tool(&["ip"]).is_none() {
        return;
    }
    for engine in engines() {
        for driver in ["packet", "tap"] {
            for program in [WAITER, TALKER] {
                let said = removed(&program.replace("DRIVER", driver), engine);
                assert!(said.starts_with("goes on\nstatus 3\n1\n"), "{engine}, {driver}: {said}");
                let cause = "error[H0405]: the interface `t0` was removed\nhelp: it was deleted";
                assert!(said.contains(cause), "{engine}, {driver}: {said}");
            }
        }
    }
}

/// Prints the case of each frame.
const SORTER: &str = "
channel inC: union { low: bytes[<=64], high: bytes[<=20], other: bytes[<=64] } external out = \"packet:t0,rules=sort.rules\";
channel outC: bytes[<=64] external in = \"packet:t0\";
channel sayC(int, bytes[<=64]) external in = \"text:-\";
process low { while { in(inC, low |> $frame); out(sayC, 1, frame[14..]); } }
process high { while { in(inC, high |> $frame); out(sayC, 2, frame[14..]); } }
process other {
  for i in 0..12 { out(outC, \"\\x02aaaaa\\x02bbbbb\\x88\\xb5\" + \"0123456789ab\"[i..i + 1] + \"....................\"[..i]); }
  while { in(inC, other |> $frame); if (frame.be16[12] == 0x88b5) { out(sayC, 3, frame[14..]); if (frame[14] == 'b') exit(0); } }
}
";

/// `low` matches the frames that `high` would match, too; a frame of `high` exceeds its type; the other frames are
/// `other`.
const SORTED: &str = "1 \"0\"\n1 \"1.\"\n1 \"2..\"\n2 \"3...\"\n2 \"4....\"\n2 \"5.....\"\n\
                      3 \"8........\"\n3 \"9.........\"\n3 \"a..........\"\n3 \"b...........\"\n";

/// The file of rules, the type of the channel that reads, and the output of `qj run`.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "low: ether proto\n",
        "union { low: bytes[<=64] }",
        "error[H0202]: sort.rules:1:17: can't parse filter expression: syntax error\n  |\n1 | low: ether proto\n  |                 ^\n",
    ),
    (
        "\nlow: ip and ip6\n",
        "union { low: bytes[<=64] }",
        "error[H0202]: sort.rules:2:6: no packet can match this expression\n  |\n2 | low: ip and ip6\n  |      ^\n",
    ),
    ("# none\n", "union { low: bytes[<=64] }", "error[H0202]: `sort.rules` has no rule\n"),
    ("other: ip\n", "union { low: bytes[<=64] }", "error[H0202]: `sort.rules`, line 1: a rule called `other`\n"),
    (
        "low: ip\nhigh: ip6\n",
        "union { low: bytes[<=64] }",
        "error[H0403]: channel `inC` has no case for rule `high`, sort.rules:2\n",
    ),
    (
        "low: ip\n",
        "union { low: bytes[<=64], lwo: bytes[<=64] }",
        "error[H0403]: driver `packet` cannot serve channel `inC`, whose messages are `(union { low: bytes[<=64], lwo: bytes[<=64] })`: it has no case `lwo`, only `low`, `other`\n",
    ),
    (
        "low: ip\n",
        "int",
        "error[H0403]: driver `packet` cannot serve channel `inC`, whose messages are `(int)`: `int` is not `bytes`\n",
    ),
];

#[test]
fn frames_arrive_sorted_by_rules() {
    if tool(&["ip"]).is_none() {
        return;
    }
    for engine in engines() {
        let rules = "low: ether proto 0x88b5 and ether[14] < 0x33\nhigh: ether proto 0x88b5 and ether[14] < 0x38\n";
        let output = between(MIRROR, SORTER, &[("sort.rules", rules)], engine);
        let said = text(&output.stderr);
        let mut lines: Vec<String> = text(&output.stdout).lines().map(str::to_owned).collect();
        // Each process prints its frames in order; the order of processes is not defined.
        lines.sort();
        assert_eq!(lines.join("\n") + "\n", SORTED, "{engine}: {said}");
        assert!(said.contains("longer than the channel's type holds"), "{engine}: {said}");
    }
}

#[test]
fn invalid_rules_are_shown() {
    if quaject_filter::pcap::Pcap::load().is_err() {
        assert!(tool(&["tcpdump"]).is_none(), "tcpdump comes with libpcap");
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    for (rules, ty, expected) in REFUSED {
        let program = format!(
            "channel inC: {ty} external out = \"packet:lo,rules=sort.rules\"; process p {{ while {{ in(inC, $_m); }} }}"
        );
        std::fs::write(folder.path().join("p.esp"), program).expect("the folder is writable");
        std::fs::write(folder.path().join("sort.rules"), rules).expect("the folder is writable");
        let mut command = Command::new(qj_binary());
        let output = command.args(["run", "p.esp"]).current_dir(folder.path()).output().expect("cargo built qj");
        let said = text(&output.stderr);
        assert!(said.starts_with(expected) && said.contains("\nhelp: "), "{said}");
    }
}
