//! `qj filter`: rules and captures, right and wrong.

mod support;

use quaject_test_support::Random;
use serde_json::{Value, json};
use snapbox::str;
use support::Folder;

const RULES: &str = "# rules\nweb: tcp port 80\ndns: udp port 53\nip\n";

/// An Ethernet packet with IPv4 and the ports of a protocol.
fn packet(protocol: u8, from: u16, to: u16) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[12] = 8;
    bytes[14] = 0x45;
    bytes[23] = protocol;
    bytes[34..36].copy_from_slice(&from.to_be_bytes());
    bytes[36..38].copy_from_slice(&to.to_be_bytes());
    bytes
}

fn packets() -> Vec<Vec<u8>> {
    let mut arp = packet(0, 0, 0);
    arp[13] = 6;
    vec![
        packet(6, 1000, 80),
        packet(6, 80, 1000),
        packet(17, 53, 9),
        packet(1, 0, 0),
        arp,
        packet(6, 80, 1)[..35].to_vec(),
    ]
}

/// A pcap file.
fn pcap(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        [0xa1b2_c3d4_u32, 4 << 16 | 2, 0, 0, 65_535, 0x3000_0001].iter().flat_map(|word| word.to_le_bytes()).collect();
    for (at, packet) in packets.iter().enumerate() {
        for word in [at as u32, 5, packet.len() as u32, 60] {
            bytes.extend(word.to_le_bytes());
        }
        bytes.extend(packet);
    }
    bytes
}

/// The same packets as pcapng, most significant byte first.
fn pcapng(packets: &[Vec<u8>]) -> Vec<u8> {
    fn block(kind: u32, content: &[u8]) -> Vec<u8> {
        let padding = content.len().next_multiple_of(4) - content.len();
        let length = (12 + content.len() + padding) as u32;
        [&kind.to_be_bytes(), &length.to_be_bytes(), content, &vec![0; padding], &length.to_be_bytes()[..]].concat()
    }
    let mut bytes = block(0x0a0d_0d0a, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    bytes.extend(block(1, &[0, 1, 0, 0, 0, 0, 255, 255]));
    for packet in packets {
        let mut content: Vec<u8> =
            [0, 0, 7, packet.len() as u32, 60].iter().flat_map(|word: &u32| word.to_be_bytes()).collect();
        content.extend(packet);
        bytes.extend(block(6, &content));
    }
    bytes
}

/// A folder with rules and captures; none where the machine has no libpcap, and is not expected to.
fn folder() -> Option<Folder> {
    if let Err(absent) = quaject_filter::pcap::Pcap::load() {
        let promised = std::env::var("CI").as_deref() == Ok("true")
            || matches!(std::env::var("QJ_TEST").as_deref(), Ok("full" | "soak"));
        assert!(!promised, "{absent}; {}", absent.help());
        eprintln!("SKIPPED a test: {absent}; {}", absent.help());
        return None;
    }
    let folder = Folder::with(&[("rules.txt", RULES)]);
    std::fs::write(folder.path("a.pcap"), pcap(&packets())).expect("a file can be written");
    std::fs::write(folder.path("a.pcapng"), pcapng(&packets())).expect("a file can be written");
    Some(folder)
}

#[test]
fn packets_are_counted_per_rule() {
    let Some(folder) = folder() else { return };
    for capture in ["a.pcap", "a.pcapng"] {
        folder
            .qj(&format!("filter -f rules.txt -r {capture} --count"))
            .assert()
            .success()
            .stdout_eq("2  web\n1  dns\n5  line-4\n")
            .stderr_eq("6 packets, 1 that no filter matches\n");
        folder
            .qj(&format!("filter -f rules.txt -r {capture} --check"))
            .assert()
            .success()
            .stdout_eq("6 packets, 18 evaluations, 8 matches, 0 differences\n");
    }
}

#[test]
fn packets_go_to_the_file_of_the_first_rule() {
    let Some(folder) = folder() else { return };
    folder
        .qj("filter -f rules.txt -r a.pcap --split out")
        .assert()
        .success()
        .stdout_eq("2  web.pcap\n1  dns.pcap\n2  line-4.pcap\n");
    folder
        .qj("filter -f rules.txt -r out/line-4.pcap --count")
        .assert()
        .success()
        .stdout_eq("0  web\n0  dns\n2  line-4\n");
}

#[test]
fn packets_before_the_end_of_a_capture_that_is_cut_short_are_kept() {
    let Some(folder) = folder() else { return };
    let whole = pcap(&packets());
    let splits =
        [(1, "2  web.pcap\n1  dns.pcap\n1  line-4.pcap\n"), (40, "2  web.pcap\n1  dns.pcap\n1  line-4.pcap\n")];
    for (missing, listed) in splits.into_iter().chain([(whole.len() - 30, "")]) {
        std::fs::write(folder.path("cut.pcap"), &whole[..whole.len() - missing]).expect("a file can be written");
        let out = format!("out-{missing}");
        let split = folder.qj(&format!("filter -f rules.txt -r cut.pcap --split {out}")).assert().code(1);
        split.stdout_eq(listed).stderr_eq(
            "error[H0202]: `cut.pcap` is cut short after packet [..]\nhelp: the packets before were read; [..]\n",
        );
        let left = std::fs::read_dir(folder.path(&out)).expect("the folder was made").count();
        assert_eq!(left, listed.lines().count(), "finished files only");
    }
    std::fs::write(folder.path("none.pcap"), b"no capture at all, but text").expect("a file can be written");
    folder
        .qj("filter -f rules.txt -r none.pcap --count")
        .assert()
        .code(1)
        .stderr_eq("error[H0202]: `none.pcap` is no capture: [..]\nhelp: [..]\n...\n");
    folder.qj("filter -f rules.txt -r nowhere.pcap --count").assert().code(1);
}

#[test]
fn captures_of_random_bytes_do_not_panic() {
    let Some(folder) = folder() else { return };
    let mut random = Random(7);
    for whole in [pcap(&packets()), pcapng(&packets())] {
        for _ in 0..20 {
            let mut bytes = whole.clone();
            for _ in 0..3 {
                let at = random.index(bytes.len());
                bytes[at] = [0, 1, 0x7f, 0xff, 0x80][random.index(5)];
            }
            std::fs::write(folder.path("random.pcap"), &bytes).expect("a file can be written");
            let output = folder.qj("filter -f rules.txt -r random.pcap --count").output().expect("qj runs");
            assert!(matches!(output.status.code(), Some(0 | 1)), "{bytes:?}\n{output:?}");
        }
    }
}

#[test]
fn errors_in_rules_are_located() {
    let Some(folder) = folder() else { return };
    std::fs::write(folder.path("w.txt"), "a: tcp prot 80\n  port 80 and and ip\nip\nb: (tcp or udp\nx:\n")
        .expect("written");
    folder.qj("filter -f w.txt").assert().code(1).stderr_eq(str![[r#"
error[F0101]: a name without an expression
 --> w.txt:5:1
  |
5 | x:
  | ^^
  |
  = help: write an expression after the name, as in `web: tcp port 80`

1 error; see `qj explain F0101`

"#]]);
    std::fs::write(folder.path("w.txt"), "a: tcp prot 80\n  port 80 and and ip\nip\nb: (tcp or udp\n")
        .expect("written");
    folder.qj("filter -f w.txt").assert().code(1).stderr_eq(str![[r#"
error[F0103]: [..]
 --> w.txt:1:8
  |
1 | a: tcp prot 80
  |        ^^^^
  |
  = help: the syntax is described in `man pcap-filter`

error[F0103]: [..]
 --> w.txt:2:15
  |
2 |   port 80 and and ip
  |               ^^^
  |
  = help: the syntax is described in `man pcap-filter`

error[F0103]: [..]
 --> w.txt:4:15
  |
4 | b: (tcp or udp
  |               ^
  |
  = help: the syntax is described in `man pcap-filter`

3 errors; see `qj explain F0103`

"#]]);
}

/// However many signals come, what was read is kept: of a pipe that stays open, and of a file.
#[cfg(target_os = "linux")]
#[test]
fn signals_keep_the_packets_before_them() {
    use std::io::Write as _;
    use std::process::{Command, Stdio};
    let Some(folder) = folder() else { return };
    let mut child = Command::new(env!("CARGO_BIN_EXE_qj"))
        .args(["filter", "-f", "rules.txt", "-r", "-", "--split", "out"])
        .current_dir(folder.path(""))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("qj starts");
    let mut input = child.stdin.take().expect("it is a pipe");
    let whole = pcap(&packets());
    // The last packet is not complete yet.
    input.write_all(&whole[..whole.len() - 1]).expect("qj reads");
    let out = folder.path("out");
    let files = |out: &std::path::Path| std::fs::read_dir(out).map_or(0, Iterator::count);
    // The temporary files of three rules.
    while files(&out) < 3 && child.try_wait().expect("it is a child").is_none() {
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let signal = |name: &str| {
        let kill = format!("kill -{name} {}", child.id());
        // A signal after its end finds no process.
        let _ = Command::new("sh").args(["-c", &kill]).stderr(Stdio::null()).status().expect("sh runs");
    };
    signal("INT");
    signal("INT");
    signal("TERM");
    let output = child.wait_with_output().expect("it ends");
    drop(input);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("`standard input` was read up to packet 5: a signal arrived"), "{said}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "2  web.pcap\n1  dns.pcap\n1  line-4.pcap\n");
    assert_eq!(files(&out), 3);
    let again = folder.qj("filter -f rules.txt -r out/web.pcap --count").assert().success();
    again.stdout_eq("2  web\n0  dns\n2  line-4\n");
}

/// The standard error of a command that fails: JSON values, one per line.
fn json_lines(folder: &Folder, arguments: &str) -> Vec<Value> {
    let output = folder.qj(arguments).output().expect("qj runs");
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).expect("messages are text");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

#[test]
fn diagnostics_about_rules_are_json_and_sarif_too() {
    let Some(folder) = folder() else { return };
    std::fs::write(folder.path("w.txt"), "a: ip\na: tcp prot 80\n").expect("a file can be written");
    let lines = json_lines(&folder, "--messages json filter -f w.txt");
    let [duplicate] = &lines[..] else { panic!("{lines:?}") };
    assert_eq!(
        (&duplicate["code"], &duplicate["file"], &duplicate["line"]),
        (&json!("F0102"), &json!("w.txt"), &json!(2))
    );
    assert_eq!(duplicate["labels"][0]["line"], 1);
    std::fs::write(folder.path("w.txt"), "a: tcp prot 80\n").expect("a file can be written");
    let logs = json_lines(&folder, "--messages sarif filter -f w.txt");
    let result = &logs[0]["runs"][0]["results"][0];
    assert_eq!((&result["ruleId"], &result["level"]), (&json!("F0103"), &json!("error")));
    let region = json!({ "startLine": 1, "startColumn": 8, "endLine": 1, "endColumn": 12 });
    assert_eq!(result["locations"][0]["physicalLocation"]["region"], region);
    // Warnings of the compilation and errors of the export are results of one log.
    std::fs::write(folder.path("w.txt"), "a: ip and ip6\nb: ip6 protochain 6\n").expect("a file can be written");
    let logs = json_lines(&folder, "--messages sarif filter -f w.txt --emit xdp");
    let [log] = &logs[..] else { panic!("{logs:?}") };
    let results = log["runs"][0]["results"].as_array().expect("there are results");
    let codes: Vec<&str> = results.iter().filter_map(|result| result["ruleId"].as_str()).collect();
    assert_eq!(codes, ["F0104", "F0105"]);
}

/// Files of old versions of Wireshark have packets in blocks of another type; they were once ignored.
#[test]
fn packets_of_old_pcapng_files_are_read() {
    let Some(folder) = folder() else { return };
    for big_endian in [true, false] {
        let word = |word: u32| if big_endian { word.to_be_bytes() } else { word.to_le_bytes() };
        let half = |half: u16| if big_endian { half.to_be_bytes() } else { half.to_le_bytes() };
        let block = |kind: u32, content: &[u8]| {
            let padding = content.len().next_multiple_of(4) - content.len();
            let length = word((12 + content.len() + padding) as u32);
            [&word(kind), &length, content, &vec![0; padding], &length[..]].concat()
        };
        let mut file = block(0x0a0d_0d0a, &[&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[255; 8]].concat());
        // The packets are those of the second interface.
        file.extend(block(1, &[&half(147)[..], &half(0), &word(0)].concat()));
        file.extend(block(1, &[&half(1)[..], &half(0), &word(0)].concat()));
        for packet in packets() {
            let head = [&half(1)[..], &half(0), &word(0), &word(7), &word(packet.len() as u32), &word(60)].concat();
            file.extend(block(2, &[head, packet].concat()));
        }
        std::fs::write(folder.path("old.pcapng"), &file).expect("written");
        let counted = folder.qj("filter -f rules.txt -r old.pcapng --count").assert().success();
        counted.stdout_eq("2  web\n1  dns\n5  line-4\n");
        let damaged =
            [&file[..], &block(2, &[&half(1)[..], &half(0), &word(0), &word(7), &word(4), &word(4)].concat())];
        std::fs::write(folder.path("old.pcapng"), damaged.concat()).expect("written");
        let output = folder.qj("filter -f rules.txt -r old.pcapng --count").output().expect("qj runs");
        assert!(String::from_utf8_lossy(&output.stderr).contains("is damaged after packet 6"), "{output:?}");
    }
}

/// A file for each of many rules: more than a process can have open without raising its limit.
#[cfg(target_os = "linux")]
#[test]
fn more_rules_than_files_may_be_open_can_be_split() {
    let Some(folder) = folder() else { return };
    let rules: String = (1..100).map(|port| format!("p{port}: dst port {port}\n")).collect();
    let packets: Vec<_> = (1..100).map(|port| packet(6, 1000, port)).collect();
    std::fs::write(folder.path("many.txt"), rules).expect("written");
    std::fs::write(folder.path("many.pcap"), pcap(&packets)).expect("written");
    let command = "ulimit -Sn 32 && exec \"$0\" filter -f many.txt -r many.pcap --split out";
    let output = std::process::Command::new("sh")
        .current_dir(folder.path(""))
        .args(["-c", command])
        .arg(env!("CARGO_BIN_EXE_qj"))
        .output()
        .expect("sh runs");
    assert!(output.status.success(), "{output:?}");
    assert_eq!(std::fs::read_dir(folder.path("out")).expect("it was made").count(), 99);
    let output = std::process::Command::new("sh")
        .current_dir(folder.path(""))
        .args(["-c", &command.replace("-Sn 32", "-n 64").replace("out", "fewer")])
        .arg(env!("CARGO_BIN_EXE_qj"))
        .output()
        .expect("sh runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("help: each rule with packets has an open file, and the limit is 64"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path("fewer")).expect("it was made").count(), 0, "nothing is left half");
}

/// An error in writing appears after all of the capture is read: the earlier files are not published either.
#[cfg(target_os = "linux")]
#[test]
fn a_file_that_cannot_be_written_leaves_no_file() {
    let Some(folder) = folder() else { return };
    let packets: Vec<_> = (0..100).map(|at| packet(6, 1000, if at == 0 { 80 } else { 9 })).collect();
    std::fs::write(folder.path("large.pcap"), pcap(&packets)).expect("written");
    // Files of at most 4 KiB: a write beyond the limit is an error, not a signal.
    let command = "ulimit -f 8 && trap '' XFSZ && exec \"$0\" filter -f rules.txt -r large.pcap --split out";
    let output = std::process::Command::new("sh")
        .current_dir(folder.path(""))
        .args(["-c", command])
        .arg(env!("CARGO_BIN_EXE_qj"))
        .output()
        .expect("sh runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("cannot write `") && said.contains("line-4.pcap`"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path("out")).expect("it was made").count(), 0, "nothing has a name");
}

#[test]
fn errors_after_brackets_and_in_long_rules_are_located() {
    let Some(folder) = folder() else { return };
    for (rule, column) in [
        ("tcp[tcpflags] & tcp-syn != 0 and tcp prot 80", 38),
        ("ip[2:2] + 3 > 4 and and", 21),
        ("(tcp[13] = 2 or udp) andd ip", 22),
        ("tcp[13 + 1 = 2", 12),
        ("ip[0:3] = 5", 4),
        ("ip[ip[0] & 0xf] << 33 = 1", 20),
        ("tcp dst port 80 && src or dst net 10.0.0.0 mask 255.0.0.0 and dst and", 67),
        ("ip proto 6 or prot 5", 15),
    ] {
        std::fs::write(folder.path("w.txt"), format!("{rule}\n")).expect("written");
        let output = folder.qj("filter -f w.txt").output().expect("qj runs");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(said.contains(&format!(" --> w.txt:1:{column}\n")), "{rule}: column {column}\n{said}");
    }
    // libpcap's optimizer takes minutes for this one, over and over.
    let hosts: Vec<String> = (0..400).map(|host| format!("host 10.0.{}.{}", host / 250, host % 250)).collect();
    std::fs::write(folder.path("w.txt"), format!("{} or tcp prot 80\n", hosts.join(" or "))).expect("written");
    let output = folder.qj("filter -f w.txt").output().expect("qj runs");
    let said = String::from_utf8_lossy(&output.stderr);
    let column = hosts.join(" or ").len() + " or tcp ".len() + 1;
    assert!(said.contains(&format!(" --> w.txt:1:{column}\n")), "{}", &said[..200]);
}

#[test]
fn a_rule_that_matches_nothing_gets_a_warning() {
    let Some(folder) = folder() else { return };
    std::fs::write(folder.path("n.txt"), "n: tcp and udp\nip\n").expect("written");
    folder.qj("filter -f n.txt -r a.pcap --count").assert().success().stdout_eq("0  n\n5  line-2\n").stderr_eq(str![[
        r#"
warning[F0104]: no packet can match this expression
 --> n.txt:1:4
  |
1 | n: tcp and udp
  |    ^^^^^^^^^^^
  |
  = help: look for contradictory tests, or use another link type

6 packets, 1 that no filter matches

"#
    ]]);
}

#[test]
fn explain_shows_tests_tables_and_code() {
    let Some(folder) = folder() else { return };
    let text = folder.qj("filter -f rules.txt --explain").output().expect("qj runs").stdout;
    let text = String::from_utf8(text).expect("it is text");
    for part in ["web: tcp port 80", "[12:2] == 0x800", "stage 0", "3 filters in "] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn fuzz_compares_engines() {
    Folder::with(&[])
        .qj("filter fuzz --rounds 20 --seed 5")
        .assert()
        .success()
        .stdout_eq(
            "20 rounds, [..] filters ([..] distinct), [..] packets, [..] evaluations, [..] matches, 0 differences\n",
        )
        .stderr_eq("...\n[..] verdicts of the kernel\n");
}

#[test]
fn incompatible_options_are_refused() {
    let Some(folder) = folder() else { return };
    folder.qj("filter").assert().code(2);
    folder.qj("filter -f rules.txt --count").assert().code(2);
    folder.qj("filter -f rules.txt -r a.pcap --count --check").assert().code(2);
    folder.qj("filter -f rules.txt -r a.pcap").assert().code(2);
}

/// What `qj filter RULES -i lo ARGUMENTS` prints, with its status, while `meanwhile` runs, in a network namespace of
/// its own.
fn during(folder: &Folder, interface: &str, arguments: &str, meanwhile: &str) -> Option<(String, String)> {
    for needed in ["ip", "ping"] {
        quaject_test_support::tool(&[needed])?;
    }
    let script = format!(
        "ip link set lo up; ip tuntap add qjtap mode tap && ip link set qjtap up || exit 1\n\
         ip link add qjveth type veth peer name qjpeer && ip link set qjpeer up && ip link set qjveth up || exit 1\n\
         rm -f said\n\
         $QJ filter -f rules.txt -i {interface} {arguments} 2> said & listener=$!\n\
         for i in $(seq 600); do grep -qs listening said && break; sleep 0.05; done\n\
         {meanwhile}\n\
         wait $listener; echo status $?"
    );
    let output = std::process::Command::new("unshare")
        .args(["--net", "bash", "-c", &script])
        .env("QJ", env!("CARGO_BIN_EXE_qj"))
        .current_dir(folder.path(""))
        .output()
        .expect("every Linux has `unshare`");
    let said = std::fs::read_to_string(folder.path("said")).expect("the script makes it");
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), said))
}

const PING: &str = "ping -q -c 2 -i 0.1 127.0.0.1 | grep -o '2 received'";

#[test]
fn packets_of_an_interface_are_filtered() {
    let Some(folder) = folder() else { return };
    std::fs::write(folder.path("rules.txt"), "ask: icmp[0] == 8\nanswer: icmp[0] == 0\nall: ip\nport 9\n")
        .expect("a file can be written");
    let Some((printed, said)) = during(&folder, "lo", "--count --packets 4", PING) else { return };
    assert_eq!(printed, "2 received\n2  ask\n2  answer\n4  all\n0  line-4\nstatus 0\n", "{said}");
    assert_eq!(said, "listening to lo\n4 packets, 0 that no filter matches\n");
    // Ctrl-C keeps the results so far.
    let stopped = format!("{PING}; sleep 0.5; kill -INT $listener");
    let Some((printed, said)) = during(&folder, "lo", "--split by-rule", &stopped) else { return };
    assert_eq!(printed, "2 received\n2  ask.pcap\n2  answer.pcap\nstatus 0\n", "{said}");
    let again = folder.qj("filter -f rules.txt -r by-rule/ask.pcap --count");
    again.assert().success().stdout_eq("2  ask\n0  answer\n2  all\n0  line-4\n");
    let Some((printed, said)) = during(&folder, "lo", "--check --packets 4", PING) else { return };
    assert_eq!(printed, "2 received\n4 packets, 16 evaluations, 8 matches, 0 differences\nstatus 0\n", "{said}");
}

#[test]
fn missing_and_removed_interfaces_are_errors() {
    let Some(folder) = folder() else { return };
    let vanishes = "ip link del qjtap";
    let Some((printed, said)) = during(&folder, "qjtap", "--count", vanishes) else { return };
    assert!(printed.ends_with("status 1\n"), "{printed}{said}");
    assert!(
        said.contains("error[H0405]: `qjtap` after packet ") && said.contains("\nhelp: the packets before"),
        "{said}"
    );
    // libpcap waits for an interface that is down, and is not notified when it is removed meanwhile. A second interface
    // that comes and goes is another one.
    let vanishes = "ip link set qjveth down; ip link del qjtap; sleep 0.5; ip link del qjveth";
    let Some((printed, said)) = during(&folder, "qjveth", "--split all", vanishes) else { return };
    assert!(printed.ends_with("status 1\n"), "{printed}{said}");
    assert!(said.contains("error[H0405]: `qjveth` after packet "), "{said}");
    let absent = folder.qj("filter -f rules.txt -i nosuch0 --count");
    absent.assert().code(1).stderr_eq(str![[r#"
error[H0405]: cannot listen to `nosuch0`: [..]
help: `ip link` lists the interfaces; listening requires root, or `setcap cap_net_raw+ep` on `qj`

"#]]);
}

/// The output and errors of `qj filter RULES -i right ARGUMENTS` while three queries are sent into `left`, the peer of
/// `right`, and `meanwhile` runs.
fn across(folder: &Folder, arguments: &str, meanwhile: &str) -> Option<(String, String)> {
    for needed in ["ip", "ping"] {
        quaject_test_support::tool(&[needed])?;
    }
    // The file of an earlier listener is removed: its text would start the queries before this one listens.
    let script = format!(
        "echo 1 > /proc/sys/net/ipv6/conf/default/disable_ipv6\n\
         ip link add left type veth peer name right && ip link set left up && ip link set right up || exit 1\n\
         ip addr add 10.9.0.1/24 dev left\n\
         ip neigh add 10.9.0.2 lladdr 02:00:00:00:00:09 dev left\n\
         rm -f said\n\
         $QJ filter -f rules.txt -i right {arguments} 2> said & listener=$!\n\
         for i in $(seq 600); do grep -qsE 'listening|taking' said && break; sleep 0.05; done\n\
         ping -q -c 3 -i 0.05 -W 0.1 -s 1000 10.9.0.2 > /dev/null\n\
         {meanwhile}\n\
         wait $listener; echo status $?\n\
         ip link show right 2>&1 | grep -c prog/xdp"
    );
    let output = std::process::Command::new("unshare")
        .args(["--net", "bash", "-c", &script])
        .env("QJ", env!("CARGO_BIN_EXE_qj"))
        .current_dir(folder.path(""))
        .output()
        .expect("every Linux has `unshare`");
    let said = std::fs::read_to_string(folder.path("said")).expect("the script makes it");
    if said.contains("AF_XDP socket: Address family not supported") || said.contains("for XDP: Operation not permitted")
    {
        eprintln!("SKIPPED a test: {said}");
        return None;
    }
    Some((String::from_utf8_lossy(&output.stdout).into_owned(), said))
}

#[test]
fn af_xdp_and_packet_sockets_count_the_same_packets() {
    let Some(folder) = folder() else { return };
    std::fs::write(folder.path("rules.txt"), "ask: icmp[0] == 8\nanswer: icmp[0] == 0\nall: ip\nlong: greater 1000\n")
        .expect("a file can be written");
    let counted = "3  ask\n0  answer\n3  all\n3  long\nstatus 0\n0\n";
    let Some((printed, said)) = across(&folder, "--count --packets 3", "") else { return };
    assert_eq!(printed, counted, "{said}");
    let Some((printed, said)) = across(&folder, "--xdp --count --packets 3", "") else { return };
    assert_eq!(printed, counted, "{said}");
    assert!(said.starts_with("taking") && said.ends_with("right\n3 packets, 0 that no filter matches\n"), "{said}");
    // All packets taken before Ctrl-C are written; the kernel program is detached when the process ends.
    let Some((printed, said)) = across(&folder, "--xdp --split by-rule", "kill -INT $listener") else { return };
    assert_eq!(printed, "3  ask.pcap\nstatus 0\n0\n", "{said}");
    let again = folder.qj("filter -f rules.txt -r by-rule/ask.pcap --check");
    again.assert().success().stdout_eq("3 packets, 12 evaluations, 9 matches, 0 differences\n");
    let Some((printed, said)) = across(&folder, "--xdp --check --packets 3", "") else { return };
    assert_eq!(printed, "3 packets, 12 evaluations, 9 matches, 0 differences\nstatus 0\n0\n", "{said}");
}

#[test]
fn an_interface_is_released_after_every_kind_of_end() {
    let Some(folder) = folder() else { return };
    let killed = "ip link show right | grep -c prog/xdp; kill -KILL $listener";
    let Some((printed, said)) = across(&folder, "--xdp --count", killed) else { return };
    assert_eq!(printed, "1\nstatus 137\n0\n", "{said}");
    let Some((printed, said)) = across(&folder, "--xdp --count", "ip link del left") else { return };
    assert!(printed.contains("status 1\n"), "{printed}{said}");
    assert!(
        said.contains("error[H0405]: `right` after packet 3: the interface was removed\nhelp: the packets before"),
        "{said}"
    );
    let absent = folder.qj("filter -f rules.txt -i nosuch0 --xdp --count");
    absent.assert().code(1).stderr_eq(str![[r#"
error[H0405]: cannot receive the packets of `nosuch0`: cannot find the interface: No such device (os error 19)
help: `ip link` lists the interfaces; AF_XDP listens to one at a time

"#]]);
}

#[test]
fn rules_become_a_program_for_the_kernel() {
    use quaject_test_support::tool;
    let Some(folder) = folder() else { return };
    std::fs::write(folder.path("loop.txt"), "a: ip\nb: ip6 protochain 6\n").expect("a file can be written");
    let source = folder.qj("filter -f rules.txt --emit xdp").assert().success();
    let source = String::from_utf8_lossy(&source.get_output().stdout).into_owned();
    assert!(source.contains("#define QJ_RULES 3") && source.contains("/* dns */"), "{source}");
    folder.qj("filter -f loop.txt --emit xdp -o loop.c").assert().failure().stderr_eq(str![[r#"
error[F0105]: XDP programs are generated without loops, and this filter has one
 --> loop.txt:2:4
  |
2 | b: ip6 protochain 6
  |    ^^^^^^^^^^^^^^^^
  |
  = help: leave out `protochain`, or name the headers that may come

1 error; see `qj explain F0105`

"#]]);
    assert!(!folder.path("loop.c").exists());
    if tool(&["clang"]).is_none() || tool(&["ip"]).is_none() {
        return;
    }
    folder.qj("filter -f rules.txt --emit xdp -o rules.o").assert().success();
    // The kernel's verifier accepts it, maps and all.
    let script =
        "ip link add v0 type veth peer name v1 && ip link set dev v1 xdpgeneric obj rules.o sec xdp && ip link show v1";
    let mut attach = std::process::Command::new("unshare");
    let output = attach.args(["--net", "sh", "-c", script]).current_dir(folder.path(".")).output().expect("it starts");
    let (said, complaint) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if ["not supported", "not permitted", "without libbpf"].iter().any(|why| complaint.contains(why)) {
        eprintln!("SKIPPED the kernel's part of a test: {complaint}");
        return;
    }
    assert!(output.status.success() && said.contains("xdpgeneric"), "{said}{complaint}");
}
