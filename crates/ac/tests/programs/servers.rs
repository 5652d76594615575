//! The servers of examples/c under clients that behave, clients that do not, random short reads and writes, and random
//! cancellations; built with AddressSanitizer.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::build::{self, Program};
use quaject_test_support::{Effort, HANG_TIMEOUT, quick_run, tool};

/// A server on a port of its own; stopped when dropped.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(program: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Server {
        let mut command = Command::new(program);
        command.arg("0").args(arguments).envs(environment.iter().copied()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the server starts");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("piped above");
        BufReader::new(output).read_line(&mut line).expect("the server says where it listens");
        let port = line.split_whitespace().nth(3).and_then(|word| word.parse().ok()).expect("`listening on port N`");
        Server { child, port }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("the server accepts");
        stream.set_read_timeout(Some(HANG_TIMEOUT)).expect("sockets have timeouts");
        stream
    }

    /// Sends a text, says that no more comes, and reads to the end; what the server closed early is the end too.
    fn ask(&self, request: &[u8]) -> Vec<u8> {
        let mut stream = self.connect();
        let mut answer = Vec::new();
        let sent = stream.write_all(request).and_then(|()| stream.shutdown(Shutdown::Write));
        match sent.and_then(|()| stream.read_to_end(&mut answer)) {
            Ok(_) => answer,
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::NotConnected
                ) =>
            {
                answer
            }
            Err(error) => panic!("{error}"),
        }
    }

    /// How many descriptors it has open.
    fn descriptors(&self) -> usize {
        let folder = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(folder).expect("Linux lists descriptors").count()
    }

    fn still_runs(&mut self) {
        assert!(self.child.try_wait().expect("it is our child").is_none(), "the server has ended");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended, which the tests above say better.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const ASAN: &[&str] = &["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", crate::machines::NO_NULL];
const CONDITIONS: &[&[(&str, &str)]] = &[
    &[("QJ_AC_IO", "io_uring")],
    &[("QJ_AC_IO", "epoll")],
    &[("QJ_AC_IO", "io_uring"), ("QJ_AC_IO_FAULTS", "11")],
    &[("QJ_AC_IO", "epoll"), ("QJ_AC_IO_FAULTS", "12")],
];

#[test]
fn the_echo_server_echoes() {
    if quick_run("servers under AddressSanitizer") {
        return;
    }
    let Some(program) = Program::new("gcc", "echo").flags(ASAN).build() else { return };
    for environment in CONDITIONS {
        let mut server = Server::start(&program, &[], environment);
        let data: Vec<u8> = (0..200_000_u32).map(|i| ((i * 31) >> 3) as u8).collect();
        for _ in 0..3 {
            let mut stream = server.connect();
            let mut writer = stream.try_clone().expect("sockets can be cloned");
            let sent = data.clone();
            let writing = std::thread::spawn(move || {
                writer.write_all(&sent).expect("the server reads");
                writer.shutdown(Shutdown::Write).expect("the connection lives");
            });
            let mut received = Vec::new();
            stream.read_to_end(&mut received).expect("the server answers");
            writing.join().expect("the writer does not panic");
            assert!(received == data, "{environment:?}: {} bytes of {}", received.len(), data.len());
        }
        // Clients that leave in the middle.
        for _ in 0..50 {
            let mut stream = server.connect();
            let _ = stream.write_all(&data[..5000]);
        }
        server.still_runs();
    }
}

#[test]
fn the_file_server_serves_and_refuses() {
    if quick_run("servers under AddressSanitizer") {
        return;
    }
    let Some(program) = Program::new("gcc", "httpd").flags(ASAN).build() else { return };
    let folder = program.parent().expect("programs lie in folders").join("www");
    fs::create_dir_all(folder.join("sub")).expect("the scratch folder can be written");
    let big: Vec<u8> = (0..300_000_u32).map(|i| ((i * 7) >> 2) as u8).collect();
    for (name, bytes) in [("index.html", b"<p>index".as_slice()), ("a b.txt", b"text"), ("sub/big.bin", &big)] {
        fs::write(folder.join(name), bytes).expect("the scratch folder can be written");
    }
    fs::write(folder.join("../secret.txt"), "secret").expect("the scratch folder can be written");
    let folder = folder.to_str().expect("target folders are UTF-8");
    let cases: &[(&str, &str, &str)] = &[
        ("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Type: text/html", "<p>index"),
        ("GET /a%20b.txt?q HTTP/1.0\r\n\r\n", "HTTP/1.1 200 OK", "text"),
        ("HEAD /a%20b.txt HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK", "\r\n\r\n"),
        ("GET /none HTTP/1.1\r\n\r\n", "HTTP/1.1 404 Not Found", "not found\n"),
        ("GET /../secret.txt HTTP/1.1\r\n\r\n", "HTTP/1.1 404", "not found\n"),
        ("GET /%2e%2e/secret.txt HTTP/1.1\r\n\r\n", "HTTP/1.1 404", "not found\n"),
        ("GET //etc/passwd HTTP/1.1\r\n\r\n", "HTTP/1.1 404", "not found\n"),
        ("GET /%0 HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "bad path\n"),
        ("GET /%00 HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "bad path\n"),
        ("GET /%+5 HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "bad path\n"),
        ("GET /%-1 HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "bad path\n"),
        ("GET /%0x HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "bad path\n"),
        ("GET /%\u{b}5 HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "bad path\n"),
        ("GET /%4 HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "bad path\n"),
        ("GET /%4?x HTTP/1.1\r\n\r\n", "HTTP/1.1 400", "bad path\n"),
        ("GET /%61%20%62.%74x%74 HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK", "text"),
        ("GET /%69ndex%2Ehtml HTTP/1.1\r\n\r\n", "HTTP/1.1 200 OK", "<p>index"),
        ("DELETE / HTTP/1.1\r\n\r\n", "HTTP/1.1 405", "only GET and HEAD\n"),
        ("GET / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc", "HTTP/1.1 413", "no body is expected\n"),
        ("nonsense\r\n\r\n", "HTTP/1.1 400", "bad request\n"),
        ("GET / HTTP/1.1\r\n\r\nGET /none HTTP/1.1\r\n\r\n", "HTTP/1.1 200", "not found\n"),
        ("GET / HTTP/1.1\r\nHost:", "", ""),
        ("", "", ""),
    ];
    for environment in CONDITIONS {
        let mut server = Server::start(&program, &[folder], environment);
        for (request, start, end) in cases {
            let answer = server.ask(request.as_bytes());
            let text = String::from_utf8_lossy(&answer);
            assert!(text.starts_with(start) && text.ends_with(end), "{environment:?} {request:?}: {text:?}");
            assert!(!text.contains("secret") && !text.contains("root:"), "{request:?} leads out of the folder");
        }
        let answer = server.ask(b"GET /sub/big.bin HTTP/1.1\r\n\r\n");
        assert!(answer.ends_with(&big), "{environment:?}: {} bytes", answer.len());
        let too_long = [b"GET /".as_slice(), &[b'a'; 9000], b" HTTP/1.1\r\n\r\n"].concat();
        let answer = server.ask(&too_long);
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 431"), "{}", String::from_utf8_lossy(&answer));
        for cut in 0..40 {
            let mut stream = server.connect();
            let request = b"GET /sub/big.bin HTTP/1.1\r\nX: y\r\n\r\n";
            let _ = stream.write_all(&request[..request.len().min(cut)]);
        }
        server.still_runs();
    }
}

/// Clients that leave before they are accepted, and a machine that is short of something for a while, end no server.
#[test]
fn servers_outlive_failed_accepts() {
    let Some(fails) = build::compile_object("gcc", "accept_fails", &["-O1", "-Wall", "-Wextra"]) else { return };
    let fails = fails.to_str().expect("target folders are UTF-8");
    for (name, argument, request, reply) in
        [("echo", None, "hello", "hello"), ("httpd", Some("."), "?\r\n\r\n", "HTTP/1.1 400")]
    {
        let Some(program) = Program::new("gcc", name).flags(&["-O2", fails, "-Wl,--wrap=accept4"]).build() else {
            return;
        };
        let arguments = argument.as_slice();
        let mut server = Server::start(&program, arguments, &[("QJ_AC_IO", "epoll")]);
        assert!(server.ask(request.as_bytes()).starts_with(reply.as_bytes()), "{name}");
        server.still_runs();
    }
}

/// The clients that people use: whole files by curl, connections kept alive by wrk.
#[test]
fn curl_and_wrk_are_served() {
    if quick_run("a server under wrk") || tool(&["curl"]).is_none() || tool(&["wrk"]).is_none() {
        return;
    }
    let Some(program) = Program::new("gcc", "httpd").flags(&["-O2"]).build() else { return };
    let folder = program.parent().expect("programs lie in folders").join("files");
    fs::create_dir_all(&folder).expect("the scratch folder can be written");
    let data: Vec<u8> = (0..500_000_u32).map(|i| ((i * 17) >> 3) as u8).collect();
    fs::write(folder.join("data.bin"), &data).expect("the scratch folder can be written");
    fs::write(folder.join("small.txt"), "small\n").expect("the scratch folder can be written");
    for backend in ["io_uring", "epoll"] {
        let folder = folder.to_str().expect("target folders are UTF-8");
        let mut server = Server::start(&program, &[folder], &[("QJ_AC_IO", backend)]);
        let address = |file: &str| format!("http://127.0.0.1:{}/{file}", server.port);
        // Two files over one connection.
        let (big, small) = (address("data.bin"), address("small.txt"));
        let output = Command::new("curl").args(["-sSf", &big, &small]).output().expect("curl starts");
        assert!(output.status.success(), "{backend}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(output.stdout == [&data[..], b"small\n"].concat(), "{backend}: {} bytes", output.stdout.len());
        let output =
            Command::new("wrk").args(["-t1", "-c50", "-d1s", "--latency", &small]).output().expect("wrk starts");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("requests in"), "{backend}: {text}");
        assert!(!text.contains("Socket errors") && !text.contains("Non-2xx"), "{backend}: {text}");
        server.still_runs();
    }
}

/// Cancelled before, during and after a read or a write, a connection ends; what it has sent is right, the server
/// lives, and nothing leaks.
#[test]
fn servers_bear_random_cancellation() {
    if quick_run("servers under AddressSanitizer") {
        return;
    }
    let Some(echo) = Program::new("gcc", "echo").flags(ASAN).build() else { return };
    let Some(httpd) = Program::new("gcc", "httpd").flags(ASAN).build() else { return };
    let folder = httpd.parent().expect("programs lie in folders").join("cancelled");
    fs::create_dir_all(&folder).expect("the scratch folder can be written");
    let data: Vec<u8> = (0..100_000_u32).map(|i| ((i * 13) >> 2) as u8).collect();
    fs::write(folder.join("data.bin"), &data).expect("the scratch folder can be written");
    let folder = folder.to_str().expect("target folders are UTF-8");
    let connections = Effort::wanted().pick(40, 100, 2000);
    for (backend, seed) in [("io_uring", "5"), ("epoll", "6"), ("io_uring", "7"), ("epoll", "8")] {
        let environment = [("QJ_AC_IO", backend), ("QJ_AC_IO_FAULTS", seed), ("QJ_AC_IO_CANCELS", seed)];
        let mut server = Server::start(&echo, &[], &environment);
        let mut whole = 0;
        cut_short(&mut server, connections, &mut |server| {
            let answer = server.ask(&data[..20_000]);
            assert!(data.starts_with(&answer), "{environment:?}: the echo is another");
            whole += usize::from(answer.len() == 20_000);
        });
        assert!(whole < connections, "{environment:?}: nothing was cancelled");
        let mut server = Server::start(&httpd, &[folder], &environment);
        let mut whole = 0;
        cut_short(&mut server, connections, &mut |server| {
            let answer = server.ask(b"GET /data.bin HTTP/1.1\r\n\r\n");
            let body = answer.windows(4).position(|window| window == b"\r\n\r\n").map_or(answer.len(), |end| end + 4);
            assert!(data.starts_with(&answer[body..]), "{environment:?}: the file is another");
            whole += usize::from(answer[body..].len() == data.len());
        });
        assert!(whole < connections, "{environment:?}: nothing was cancelled");
    }
}

/// Asks again and again; afterwards every connection is closed.
fn cut_short(server: &mut Server, connections: usize, ask: &mut dyn FnMut(&Server)) {
    drop(server.connect());
    ask(server);
    let before = server.descriptors();
    for _ in 0..connections {
        ask(server);
    }
    server.still_runs();
    let patience = Instant::now() + HANG_TIMEOUT;
    while server.descriptors() > before {
        assert!(Instant::now() < patience, "{} descriptors, {before} before", server.descriptors());
        std::thread::sleep(Duration::from_millis(10));
    }
}
