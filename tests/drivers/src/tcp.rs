//! `tcp:`.

use super::{Running, engines, eventually, qj, socket_and_port, text};
use quaject_test_support::processor::await_idle;
use quaject_test_support::{HANG_TIMEOUT, tool};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

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

/// Prints all events, and closes what its peer closes.
const LOG: &str = "
type eventT = union { opened, data: bytes[<=4], closed };
channel eventC(u8, eventT) external out;
channel requestC(u8, union { data: bytes[<=4], close }) external in;
channel sayC(u8, eventT) external in = \"text:-\";
process log {
  while {
    in(eventC, $id, $event);
    out(sayC, id, event);
    match event {
      opened |> {} => out(requestC, id, data |> \"hi\");
      closed |> {} => { out(requestC, id, close |> {}); if (id == 0) exit(0); }
      _ => { }
    }
  }
}
";

fn signal(process: u32, name: &str) {
    let sent = Command::new("kill").args([name, &process.to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()), "the program has ended");
}

#[test]
fn what_came_on_an_older_connection_is_read_before_what_came_on_a_newer_one() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (_, port) = socket_and_port();
        let (input, output) = (format!("eventC=tcp:{port}"), format!("requestC=tcp:{port}"));
        let running = Running::start(&mut qj(folder.path(), engine, LOG, &["--bind", &input, "--bind", &output]));
        let mut greeting = [0; 2];
        let mut streams: Vec<TcpStream> = (0..3)
            .map(|_| {
                let mut stream = connection(port);
                stream.read_exact(&mut greeting).expect("the program greets");
                stream
            })
            .collect();
        // Number 1 is free again: the newest connection has a lower number than an older one.
        let older = streams.remove(2);
        streams.remove(1).shutdown(Shutdown::Write).expect("it is open");
        let mut newer = eventually("number 1 is free", || {
            let mut probe = connection(port);
            probe.read_exact(&mut greeting).expect("the program greets");
            Some(probe)
        });
        signal(running.id(), "-STOP");
        for word in ["a", "b"] {
            (&older).write_all(format!("{word}-one{word}-two{word}-end").as_bytes()).expect("it is open");
        }
        newer.write_all(b"new1").expect("it is open");
        // This connection is accepted after the program continues; what the others have sent comes before it.
        let last = connection(port);
        (&last).write_all(b"last").expect("it is open");
        signal(running.id(), "-CONT");
        last.shutdown(Shutdown::Write).expect("it is open");
        (&last).read_to_end(&mut Vec::new()).expect("the program closes it");
        streams.remove(0).shutdown(Shutdown::Write).expect("it is open");
        let said = text(&running.end().stdout);
        let at = |what: &str| said.find(what).unwrap_or_else(|| panic!("{engine}: no `{what}` in\n{said}"));
        let order = [at("a-on"), at("ea-t"), at("woa-"), at("endb"), at("-one"), at("b-tw"), at("ob-e"), at("\"nd\"")];
        assert!(order.is_sorted(), "{engine}:\n{said}");
        let openings: Vec<usize> = said.match_indices("opened").map(|(at, _)| at).collect();
        let newest = *openings.last().expect("there are several");
        assert!(at("\"nd\"") < newest && at("new1") < newest && newest < at("last"), "{engine}:\n{said}");
    }
}

#[test]
fn a_server_without_free_descriptors_waits_until_one_is_closed() {
    if tool(&["sh"]).is_none() {
        return;
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (_, port) = socket_and_port();
    let (input, output) = (format!("eventC=tcp:{port}"), format!("requestC=tcp:{port}"));
    let program = ECHO.replace("echo[2]", "echo[64]");
    let direct = qj(folder.path(), "interp", &program, &["--bind", &input, "--bind", &output]);
    let mut command = Command::new("sh");
    command.current_dir(folder.path()).env("NO_COLOR", "1").args(["-c", "ulimit -n 24; exec \"$0\" \"$@\""]);
    command.arg(direct.get_program()).args(direct.get_args());
    let running = Running::start(command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut byte = [0; 1];
    let mut waiting: Vec<TcpStream> = (0..40).map(|_| connection(port)).collect();
    for stream in &mut waiting {
        stream.write_all(b"x").expect("the queue has room");
    }
    // The first ones are served; the others wait, and the program does not poll for them all the time.
    waiting[0].read_exact(&mut byte).expect("an answer");
    waiting[0].write_all(b"x").expect("it is open");
    await_idle(&[running.id()], 4, "the program computes while it waits for a descriptor");
    while !waiting.is_empty() {
        let mut first = waiting.remove(0);
        first.read_exact(&mut byte).expect("an answer");
    }
    running.stop();
}

const NUMBERED: &str = "
type eventT = union { opened, data: bytes[<=64], closed };
channel eventC(u8, eventT) external out;
channel requestC(u8, union { data: bytes[<=64], close }) external in;
channel sayC(u8, eventT) external in = \"text:-\";
process p {
  while {
    in(eventC, $id, $event);
    out(sayC, id, event);
    match event {
      data |> $d => out(requestC, id, data |> d);
      closed |> {} => { out(requestC, id, close |> {}); if (id == 1) exit(0); }
      opened |> {} => { }
    }
  }
}
";

#[test]
fn faults_keep_the_order_within_a_connection() {
    for engine in engines() {
        for fault in ["delay=1ms..20ms,seed=1", "stall=20ms/50ms,delay=0ms..9ms,seed=2"] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let (_, port) = socket_and_port();
            let (input, output) = (format!("eventC=tcp:{port}"), format!("requestC=tcp:{port}"));
            let fault = format!("tcp:{fault}");
            let arguments = ["--bind", &input, "--bind", &output, "--fault", &fault];
            let running = Running::start(&mut qj(folder.path(), engine, NUMBERED, &arguments));
            let mut stream = connection(port);
            let mut sent = Vec::new();
            for number in 0..30 {
                let word = format!("{number},");
                stream.write_all(word.as_bytes()).expect("it is open");
                sent.extend_from_slice(word.as_bytes());
                std::thread::sleep(Duration::from_millis(1));
            }
            stream.shutdown(Shutdown::Write).expect("it is open");
            let mut received = Vec::new();
            stream.read_to_end(&mut received).expect("the other side ends");
            assert_eq!(text(&received), text(&sent), "{engine}, {fault}");
            let said = text(&running.stop().stdout);
            assert!(said.starts_with("0 opened\n") && said.ends_with("0 closed\n"), "{engine}, {fault}: {said}");
        }
    }
}

#[test]
fn a_cut_breaks_connections_with_messages() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (_, port) = socket_and_port();
        let (input, output) = (format!("eventC=tcp:{port}"), format!("requestC=tcp:{port}"));
        let arguments = ["--bind", &input, "--bind", &output, "--fault", "tcp:cut=1s/1s"];
        let running = Running::start(&mut qj(folder.path(), engine, NUMBERED, &arguments));
        let mut stream = connection(port);
        stream.write_all(b"x").expect("it is open");
        let end = stream.read(&mut [0; 8]);
        assert!(end.is_err() || matches!(end, Ok(0)), "{engine}: {end:?}");
        let output = running.stop();
        assert_eq!(text(&output.stdout), "0 opened\n0 closed\n", "{engine}");
        assert!(text(&output.stderr).contains("faults on channel `eventC`: 1 cut connection"), "{engine}");
    }
}

#[test]
fn tcp_neither_loses_nor_repeats_nor_reorders() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    for fault in ["loss", "dup", "reorder"] {
        let rate = format!("requestC:{fault}=5%");
        let arguments = ["--bind", "eventC=tcp:1", "--bind", "requestC=tcp:1", "--fault", &rate];
        let output = qj(folder.path(), "interp", NUMBERED, &arguments).output().expect("cargo built qj");
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(
            said.starts_with(&format!("error[H0103]: driver `tcp` cannot have the fault `{fault}`: TCP ")),
            "{said}"
        );
    }
}

const CALLER6: &str = "
type addressT = record { host: bytes[<=16], port: u16 };
type eventT = union { opened: addressT, data: bytes[<=16], closed, failed: record { code: u8, reason: bytes[<=32] } };
channel eventC(u8, eventT) external out;
channel requestC(u8, union { connect: addressT, data: bytes[<=16], close }) external in;
channel portC(u16) external out = \"text:port\";
channel sayC(u8, eventT) external in = \"text:-\";
process caller {
  in(portC, $port);
  out(requestC, 9, connect |> { \"\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\x01\", port });
  var left = 2;
  while (left > 0) {
    in(eventC, $id, $event);
    match event {
      opened |> $peer => {
        assert(peer.host.len == 16 && peer.host[15] == 1);
        if (id == 9) out(requestC, id, data |> \"hello\");
      }
      data |> $d => { if (id != 9) { out(sayC, id, event); out(requestC, id, close |> {}); left -= 1; } }
      closed |> {} => { out(requestC, id, close |> {}); left -= 1; }
      _ => { }
    }
  }
  out(requestC, 8, connect |> { \"\\x01\\x02\\x03\", port });
  in(eventC, $id, $event);
  out(sayC, id, event);
}
";

#[test]
fn a_program_listens_and_connects_by_ipv6() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (_, port) = socket_and_port();
        std::fs::write(folder.path().join("port"), port.to_string()).expect("the folder is writable");
        let (input, output) = (format!("eventC=tcp:[::1]:{port}"), format!("requestC=tcp:[::1]:{port}"));
        let output =
            Running::start(&mut qj(folder.path(), engine, CALLER6, &["--bind", &input, "--bind", &output])).end();
        assert!(output.status.success(), "{engine}: {}", text(&output.stderr));
        let expected = "0 data |> \"hello\"\n8 failed |> {4, \"an address has 4 or 16 bytes\"}\n";
        assert_eq!(text(&output.stdout), expected, "{engine}");
    }
}
