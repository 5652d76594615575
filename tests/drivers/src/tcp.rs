//! `tcp:`.

use super::{Running, engines, eventually, qj, socket_and_port, text};
use quaject_test_support::HANG_TIMEOUT;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};

const ECHO: &str = "
channel eventC(pid(echo), union { opened, data: bytes[<=100], closed }) external out;
channel requestC(pid(echo), union { data: bytes[<=100], close }) external in;
process echo[2] {
  while {
    in(eventC, @, $event);
    match event {
      data |> $content => out(requestC, @, data |> content);
      closed |> {} => out(requestC, @, close |> {});
      opened |> {} => { }
    }
  }
}
";

fn connection(port: u16) -> TcpStream {
    let stream = eventually("a connection", || TcpStream::connect(("127.0.0.1", port)).ok());
    stream.set_read_timeout(Some(HANG_TIMEOUT)).expect("the time is not zero");
    stream
}

#[test]
fn connections_are_served_side_by_side_and_one_after_the_other() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (_, port) = socket_and_port();
        let (input, output) = (format!("eventC=tcp:{port}"), format!("requestC=tcp:{port}"));
        let running = Running::start(&mut qj(folder.path(), engine, ECHO, &["--bind", &input, "--bind", &output]));
        let content: Vec<u8> = (0..100_000_u32).map(|at| (at * 7) as u8).collect();
        let mut first = connection(port);
        let mut second = connection(port);
        // There are two instances: this one waits in the queue until one of them is free.
        let mut third = connection(port);
        let mut byte = [0; 1];
        for stream in [&mut second, &mut first] {
            stream.write_all(b"x").expect("it is open");
            stream.read_exact(&mut byte).expect("an answer");
        }
        third.write_all(b"3").expect("it is open");
        drop(second);
        third.read_exact(&mut byte).expect("an answer, now that there is an instance for it");
        assert_eq!(&byte, b"3", "{engine}");
        let mut sender = first.try_clone().expect("descriptors are left");
        let sent = content.clone();
        let writer = std::thread::spawn(move || {
            sender.write_all(&sent).expect("it is open");
            sender.shutdown(Shutdown::Write).expect("it is open");
        });
        let mut received = Vec::new();
        first.read_to_end(&mut received).expect("the other side closes");
        writer.join().expect("all was written");
        assert!(received == content, "{engine}: {} of {} bytes came back", received.len(), content.len());
        running.stop();
    }
}

const CALLER: &str = "
type addressT = record { host: u32, port: u16 };
type eventT = union { opened: addressT, data: bytes[<=16], sent, closed, failed: record { code: u8, reason: bytes[<=32] } };
channel eventC(u8, eventT) external out = \"tcp:-\";
channel requestC(u8, union { connect: addressT, data: bytes[<=16], close }) external in = \"tcp:-\";
channel portC(u16) external out = \"text:-\";
channel sayC(u8, eventT) external in = \"text:-\";
process caller {
  while {
    in(portC, $port);
    out(requestC, 9, connect |> { 0x7f000001, port });
    var open = true;
    while (open) {
      in(eventC, $id, $event);
      match event {
        opened |> $peer => { assert(peer.port == port); out(requestC, id, data |> \"ping\"); }
        failed |> _ => { out(sayC, id, event); open = false; }
        closed |> {} => { out(sayC, id, event); open = false; }
        _ => out(sayC, id, event);
      }
    }
    out(requestC, 9, close |> {});
    if (port == 1) exit(0);
  }
}
";

#[test]
fn a_program_connects_and_receives_the_result() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has ports");
        let port = listener.local_addr().expect("it is bound").port();
        std::fs::write(folder.path().join("ports"), format!("{port}\n1\n")).expect("the folder is writable");
        let running = Running::start(&mut qj(folder.path(), engine, CALLER, &["--bind", "portC=text:ports"]));
        let (mut stream, _) = listener.accept().expect("the program connects");
        let mut asked = [0; 4];
        stream.read_exact(&mut asked).expect("it says something");
        assert_eq!(&asked, b"ping");
        stream.write_all(b"pong").expect("it listens");
        drop(stream);
        let output = running.end();
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        assert_eq!(
            text(&output.stdout),
            "9 sent\n9 data |> \"pong\"\n9 closed\n9 failed |> {8, \"connection refused\"}\n",
            "{engine}"
        );
    }
}

/// Sends without end to a peer that sends `flood`, but at most 50,000 bytes before the event `sent`.
const FLOOD: &str = "
channel eventC(pid(talker), union { opened, data: bytes[<=100], sent, closed }) external out;
channel requestC(pid(talker), union { data: bytes[<=1000], close }) external in;
process talker[2] {
  var floods = false, unsent = 0, piece: #bytes[<=1000] = #\"\";
  piece.len = 1000;
  while {
    alt {
      in(eventC, @, $event) {
        match event {
          data |> $d => if (d == \"flood\") floods = true; else out(requestC, @, data |> d);
          sent |> {} => unsent = 0;
          closed |> {} => out(requestC, @, close |> {});
          opened |> {} => { }
        }
      }
      when (floods && unsent < 50_000) out(requestC, @, data |> freeze(piece)) { unsent += 1000; }
    }
  }
}
";

#[test]
fn a_peer_that_does_not_read_does_not_block_a_program_that_waits_for_sent() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (_, port) = socket_and_port();
        let (input, output) = (format!("eventC=tcp:{port}"), format!("requestC=tcp:{port}"));
        let running = Running::start(&mut qj(folder.path(), engine, FLOOD, &["--bind", &input, "--bind", &output]));
        let mut deaf = connection(port);
        deaf.write_all(b"flood").expect("it is open");
        let mut other = connection(port);
        let mut byte = [0; 1];
        for _ in 0..200 {
            other.write_all(b"x").expect("it is open");
            other.read_exact(&mut byte).expect("an answer");
        }
        running.stop();
    }
}
