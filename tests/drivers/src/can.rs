//! `can:` as a bus of this machine, among programs; python-can joins it in the tests of examples/uds.

use super::{Running, engines, qj, socket_and_port, text};

/// Sends every frame back, with the next identifier.
const ECHO: &str = "
channel inC(u32, bytes[<=8]) external out;
channel outC(u32, bytes[<=8]) external in;
process echo { while { in(inC, $id, $data); out(outC, id + 1, data); } }
";

/// Sends a frame with an identifier of each size until answers arrive, which must be the first frames received: not its
/// own.
const ASKER: &str = "
channel inC(u32, bytes[<=8]) external out;
channel outC(u32, bytes[<=8]) external in;
channel sayC(u32, bytes[<=8]) external in = \"text:-\";
const IDS: array[3] of u32 = [0x7fe, 0x9fff_fffe, 0x4000_0100];
const DATA: array[3] of bytes[<=8] = [\"\", \"12345678\", \"\\0\\0\\0\"];
process asker {
  out(outC, 0x800, \"no such identifier\"[..8]);
  for i in 0..3 {
    var waiting = true;
    while (waiting) {
      out(outC, IDS[i], DATA[i]);
      alt {
        in(inC, $id, $data) {
          out(sayC, id, data);
          waiting = false;
          alt { after (300 ms) { } }
        }
        after (2 s) { }
      }
      var more = true;
      while (more) { pri alt { in(inC, _, _) { } else { more = false; } } }
    }
  }
  exit(0);
}
";

#[test]
fn frames_cross_a_bus_of_this_machine() {
    for engine in engines() {
        let (echo, asker) = (tempfile::tempdir(), tempfile::tempdir());
        let (echo, asker) = (echo.expect("a temporary folder"), asker.expect("a temporary folder"));
        let (socket, port) = socket_and_port();
        let binds = ["--bind", &format!("inC=can:{port}"), "--bind", &format!("outC=can:{port}")];
        let running = Running::start(&mut qj(echo.path(), engine, ECHO, &binds));
        let capture = asker.path().join("bus.pcap").display().to_string();
        let arguments = [&binds[..], &["--pcap", &capture]].concat();
        let output = qj(asker.path(), engine, ASKER, &arguments).output().expect("cargo built qj");
        let expected = format!("{} \"\"\n{} \"12345678\"\n{} \"\\0\\0\\0\"\n", 0x7ff, 0x9fff_ffff_u32, 0x4000_0101);
        assert_eq!(text(&output.stdout), expected, "{engine}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains("1 message"), "{engine}: {}", text(&output.stderr));
        // The capture has the frames in both directions: SocketCAN's, with the identifier in network byte order.
        let captured = std::fs::read(&capture).expect("it was written");
        assert_eq!(captured[20..24], 227_u32.to_ne_bytes(), "{engine}: link type");
        let frames: Vec<&[u8]> = captured[24..].chunks(16 + 16).map(|record| &record[16..]).collect();
        for frame in [b"\x9f\xff\xff\xfe\x08\x00\x00\x0012345678", b"\x9f\xff\xff\xff\x08\x00\x00\x0012345678"] {
            assert!(frames.contains(&&frame[..]), "{engine}: {frames:x?}");
        }
        // Invalid datagrams are counted.
        let group = ("239.74.163.2", port);
        for garbage in [&b""[..], b"\x80", b"\x81\xaearbitration_id\x01", b"\xdf\xff\xff\xff\xff\x01"] {
            socket.send_to(garbage, group).expect("loopback takes it");
        }
        // They have been read when later frames are answered.
        let output = qj(asker.path(), engine, ASKER, &binds).output().expect("cargo built qj");
        assert_eq!(text(&output.stdout), expected, "{engine}: {}", text(&output.stderr));
        let complaint = text(&running.stop().stderr);
        assert!(complaint.contains("4 messages") && complaint.contains("no classic frames"), "{engine}: {complaint}");
    }
}

#[test]
fn a_missing_interface_is_named() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let output = qj(folder.path(), "interp", ECHO, &["--bind", "inC=can:nocan0", "--bind", "outC=can:nocan0"]);
    let output = { output }.output().expect("cargo built qj");
    let complaint = text(&output.stderr);
    assert!(complaint.contains("`nocan0`") && complaint.contains("help: "), "{complaint}");
}
