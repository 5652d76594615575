//! `udp:`.

use super::{Running, engines, eventually, qj, socket_and_port, text};
use quaject_test_support::processor::await_idle;
use quaject_test_support::{HANG_TIMEOUT, free_ports, is_udp_port_taken};
use std::net::UdpSocket;
use std::time::{Duration, Instant};

const ECHO: &str = "
type peerT = record { host: u32, port: u16 };
channel inC(peerT, bytes[<=1472]) external out;
channel outC(peerT, bytes[<=1472]) external in;
process echo { while { in(inC, $peer, $content); out(outC, peer, content); } }
";

fn exchange(socket: &UdpSocket, to: u16, content: &[u8]) -> Option<Vec<u8>> {
    socket.send_to(content, ("127.0.0.1", to)).expect("loopback takes it");
    let mut answer = vec![0; 65_536];
    let (length, from) = socket.recv_from(&mut answer).ok()?;
    assert_eq!(from.port(), to);
    answer.truncate(length);
    Some(answer)
}

#[test]
fn one_socket_serves_both_directions() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (socket, port) = socket_and_port();
        let (input, output) = (format!("inC=udp:{port}"), format!("outC=udp:127.0.0.1:{port}"));
        let running = Running::start(&mut qj(folder.path(), engine, ECHO, &["--bind", &input, "--bind", &output]));
        eventually("an answer", || exchange(&socket, port, b"hello"));
        while socket.recv_from(&mut [0; 16]).is_ok() {}
        for length in [0, 1, 2, 1471, 1472] {
            let content: Vec<u8> = (0..length).map(|at| at as u8).collect();
            assert_eq!(
                exchange(&socket, port, &content).as_deref(),
                Some(content.as_slice()),
                "{engine}, {length} bytes"
            );
        }
        assert_eq!(exchange(&socket, port, &[0; 1473]), None, "{engine}: nothing comes back cut");
        let said = text(&running.stop().stderr);
        assert_eq!(said, "note: 1 message lost at the driver of channel `inC`: longer than the channel's type holds\n");
    }
}

#[test]
fn each_instance_has_a_socket_of_its_own() {
    let program = "
type peerT = record { host: u32, port: u16 };
channel inC(pid(echo), peerT, bytes[<=64]) external out;
channel outC(pid(echo), peerT, bytes[<=64]) external in;
process echo[3] { while { in(inC, @, $peer, _); out(outC, @, peer, \"replica \" + \"012\"[int(@)..int(@) + 1]); } }
";
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (socket, _) = socket_and_port();
        let port = free_ports(3);
        let (input, output) = (format!("inC=udp:{port}"), format!("outC=udp:{port}"));
        let running = Running::start(&mut qj(folder.path(), engine, program, &["--bind", &input, "--bind", &output]));
        eventually("an answer", || exchange(&socket, port, b""));
        while socket.recv_from(&mut [0; 16]).is_ok() {}
        for replica in [2, 0, 1, 1, 2] {
            let answer = exchange(&socket, port + replica, b"who?").expect("an answer");
            assert_eq!(text(&answer), format!("replica {replica}"), "{engine}");
        }
        running.stop();
    }
}

#[test]
fn a_port_in_use_is_an_error_that_names_it() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (socket, _) = socket_and_port();
    let port = socket.local_addr().expect("it is bound").port();
    let (input, output) = (format!("inC=udp:{port}"), format!("outC=udp:{port}"));
    let output = Running::start(&mut qj(folder.path(), "interp", ECHO, &["--bind", &input, "--bind", &output])).end();
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(
        said.starts_with(&format!("error[H0405]: cannot open UDP port {port} of 127.0.0.1: address already in use")),
        "{said}"
    );
}

/// Answers each datagram with its content until an empty one arrives: what the machine needs to wake a process.
fn serve_blocking(socket: &UdpSocket) {
    let mut content = [0; 64];
    loop {
        let (length, from) = socket.recv_from(&mut content).expect("loopback does not fail");
        if length == 0 {
            return;
        }
        socket.send_to(&content[..length], from).expect("loopback takes it");
    }
}

/// The median time of 21 exchanges.
fn median_delay(socket: &UdpSocket, port: u16) -> Duration {
    let mut delays: Vec<Duration> = (0..21)
        .map(|_| {
            let started = Instant::now();
            exchange(socket, port, b"x").expect("an answer");
            started.elapsed()
        })
        .collect();
    delays.sort();
    delays[10]
}

#[test]
fn an_idle_program_uses_no_processor_and_wakes_at_once() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (socket, port) = socket_and_port();
        let (input, output) = (format!("inC=udp:{port}"), format!("outC=udp:{port}"));
        let running = Running::start(&mut qj(folder.path(), engine, ECHO, &["--bind", &input, "--bind", &output]));
        eventually("an answer", || exchange(&socket, port, b"hello"));
        await_idle(&[running.id()], 1, engine);
        socket.set_read_timeout(Some(HANG_TIMEOUT)).expect("the time is not zero");
        let reference = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
        let reference_port = reference.local_addr().expect("it is bound").port();
        std::thread::scope(|scope| {
            scope.spawn(|| serve_blocking(&reference));
            // A busy machine delays either of them at times; a program that polls is late every time.
            eventually("an answer about as soon as that of a blocking server", || {
                let (own, blocking) = (median_delay(&socket, port), median_delay(&socket, reference_port));
                (own < Duration::from_millis(20).max(20 * blocking)).then_some(())
            });
            socket.send_to(b"", ("127.0.0.1", reference_port)).expect("loopback takes it");
        });
        running.stop();
    }
}

#[test]
fn datagrams_beyond_the_buffer_are_counted() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (socket, port) = socket_and_port();
    // Receives one message and then none for two seconds.
    let program = "
channel inC(u32, u16, bytes[<=1472]) external out;
process slow { while { in(inC, _, _, _); alt { after (2 s) { } } } }
";
    let input = format!("inC=udp:{port}");
    let running = Running::start(&mut qj(folder.path(), "interp", program, &["--bind", &input]));
    // The program listens when its port is in use.
    eventually("the port is open", || is_udp_port_taken(port).then_some(()));
    for _ in 0..5_000 {
        socket.send_to(&[0; 1400], ("127.0.0.1", port)).expect("loopback takes it");
    }
    std::thread::sleep(Duration::from_millis(200));
    let said = text(&running.stop().stderr);
    assert!(said.contains("lost at the driver of channel `inC`: faster than the program received them"), "{said}");
}

const ECHO6: &str = "
type peerT = record { host: bytes[<=16], port: u16 };
channel inC(peerT, bytes[<=64]) external out;
channel outC(peerT, bytes[<=64]) external in;
process echo { while { in(inC, $peer, $content); out(outC, peer, peer.host + content); } }
";

#[test]
fn ipv6_addresses_are_sixteen_bytes_and_ipv4_ones_four() {
    for engine in engines() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let port = free_ports(1);
        let (input, output) = (format!("inC=udp:[::]:{port}"), format!("outC=udp:[::]:{port}"));
        let running = Running::start(&mut qj(folder.path(), engine, ECHO6, &["--bind", &input, "--bind", &output]));
        let ask = |socket: &UdpSocket, to: &str| {
            eventually("an answer", || {
                let mut answer = [0; 64];
                socket.send_to(b"!", (to, port)).expect("loopback takes it");
                let length = socket.recv(&mut answer).ok()?;
                Some(answer[..length].to_vec())
            })
        };
        let long = std::net::Ipv6Addr::LOCALHOST.octets();
        for (own, to, address) in [("[::1]:0", "::1", long.as_slice()), ("127.0.0.1:0", "127.0.0.1", &[127, 0, 0, 1])] {
            let socket = UdpSocket::bind(own).expect("loopback has both families");
            socket.set_read_timeout(Some(Duration::from_millis(200))).expect("the time is not zero");
            assert_eq!(ask(&socket, to), [address, b"!"].concat(), "{engine}, {to}");
        }
        running.stop();
    }
}

#[test]
fn an_ipv6_endpoint_needs_addresses_of_sixteen_bytes() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let arguments = ["--bind", "inC=udp:[::1]:7", "--bind", "outC=udp:[::1]:7"];
    let output = qj(folder.path(), "interp", ECHO, &arguments).output().expect("cargo built qj");
    let said = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.starts_with("error[H0403]: driver `udp:[::1]:7` cannot serve channel `inC`: an integer holds no"),
        "{said}"
    );
    assert!(said.contains("help: declare the address as `bytes[<=16]`"), "{said}");
}
