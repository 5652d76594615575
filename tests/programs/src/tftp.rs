//! TFTP (examples/tftp) against curl and tftp-hpa, in both roles, over good and bad networks.

use super::{engines, repository};
use quaject_test_support::qj::qj_binary;
use quaject_test_support::random::Random;
use quaject_test_support::{Effort, HANG_TIMEOUT, free_ports, is_udp_port_taken, quick_compiler, tool};
use std::fs;
use std::io::Write;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The faults of real networks, frequent enough to occur in every transfer.
const BAD: &str = "udp:loss=5%,dup=5%,reorder=5%,seed=7";

/// The maximum number of transfers that a client may begin until one has no doubled OACK.
const MAX_TRIES: usize = 50;

/// Sizes around the edges of a block of 512 and of 1,428 bytes.
const SIZES: &[usize] = &[0, 1, 511, 512, 513, 1_428, 2_856, 100_000];

/// A server and the folders of both sides.
struct Bench {
    folder: tempfile::TempDir,
    port: u16,
    server: Option<Child>,
}

impl Bench {
    fn new() -> Bench {
        let folder = tempfile::tempdir().expect("a temporary folder");
        fs::create_dir(folder.path().join("here")).expect("the folder is writable");
        fs::create_dir(folder.path().join("there")).expect("the folder is writable");
        Bench { folder, port: free_ports(1), server: None }
    }

    fn here(&self, name: &str) -> PathBuf {
        self.folder.path().join("here").join(name)
    }

    fn there(&self, name: &str) -> PathBuf {
        self.folder.path().join("there").join(name)
    }

    /// Starts a server and waits until its port is taken.
    fn serve(&mut self, command: &mut Command) {
        command.current_dir(self.there("")).stdin(Stdio::null()).stderr(Stdio::piped());
        self.server = Some(command.spawn().expect("the server starts"));
        let started = Instant::now();
        while !is_udp_port_taken(self.port) {
            assert!(started.elapsed() < HANG_TIMEOUT, "the server does not begin");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Starts ours.
    fn serve_esp(&mut self, engine: &str, faults: Option<&str>) {
        let mut command = Command::new(qj_binary());
        command
            .env("CC", quick_compiler())
            .args(["run", "--engine", engine])
            .arg(repository("examples/tftp/server.esp"));
        for channel in ["requestC", "refusalC"] {
            command.arg("--bind").arg(format!("{channel}=udp:{}", self.port));
        }
        command.args(faults.iter().flat_map(|faults| ["--fault", faults]));
        self.serve(&mut command);
    }

    /// Stops our program, which must still run. Returns its output.
    fn stop(&mut self) -> String {
        let server = self.server.take().expect("it was started");
        let signalled = Command::new("kill").args(["-TERM", &server.id().to_string()]).status();
        assert!(signalled.is_ok_and(|status| status.success()), "the server has ended already");
        let output = server.wait_with_output().expect("it is our child");
        String::from_utf8_lossy(&output.stderr).to_string()
    }

    fn client(&self, name: &str, arguments: &[&str]) -> Output {
        let port = self.port.to_string();
        let arguments = arguments.iter().map(|argument| argument.replace("PORT", &port));
        Command::new("timeout")
            .arg(HANG_TIMEOUT.as_secs().to_string())
            .arg(name)
            .args(arguments)
            .current_dir(self.here(""))
            .stdin(Stdio::null())
            .output()
            .expect("`timeout` is everywhere")
    }

    /// Runs atftp until it has not given up: at an OACK that arrived twice, as any does that is repeated or doubled,
    /// which it takes as an error of the server (0.8); or because it sent a block beyond the last one of a file, which
    /// it may do if packets are lost, and which the server does not answer.
    fn atftp(&self, arguments: &[&str]) -> Output {
        let mut outputs = (0..MAX_TRIES).map(|_| {
            let _ = fs::remove_file(self.there("yours"));
            self.client("atftp", arguments)
        });
        let gave_up = |output: &Output| {
            let said = [&output.stdout[..], &output.stderr].concat();
            let said = String::from_utf8_lossy(&said);
            said.contains("unexpected OACK") || said.contains("tftp: aborting")
        };
        outputs.find(|output| !gave_up(output)).expect("an OACK that arrives once in so many tries")
    }

    /// Runs our client on commands.
    fn client_esp(&self, engine: &str, commands: &str, faults: Option<&str>) -> String {
        let mut client = Command::new("timeout")
            .arg(HANG_TIMEOUT.as_secs().to_string())
            .args([qj_binary(), "run", "--engine", engine])
            .arg(repository("examples/tftp/client.esp"))
            .env("CC", quick_compiler())
            .args(faults.iter().flat_map(|faults| ["--fault", faults]))
            .current_dir(self.here(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("`timeout` is everywhere");
        let commands = commands.replace("PORT", &self.port.to_string()) + "quit\n";
        client.stdin.take().expect("it is a pipe").write_all(commands.as_bytes()).expect("it listens");
        let output = client.wait_with_output().expect("it is our child");
        assert!(output.status.success(), "engine {engine}: {}", output.status);
        String::from_utf8_lossy(&output.stdout).to_string()
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.kill();
            let _ = server.wait();
        }
    }
}

fn write(path: &Path, size: usize) -> Vec<u8> {
    let mut random = Random(size as u64 + 1);
    let content: Vec<u8> = (0..size).map(|_| random.byte()).collect();
    fs::write(path, &content).expect("the folder is writable");
    content
}

fn assert_same(path: &Path, expected: &[u8], what: &str) {
    let found = fs::read(path).unwrap_or_else(|error| panic!("{what}: {error}"));
    assert!(found == expected, "{what}: {} bytes of {} are there, or others", found.len(), expected.len());
}

#[test]
fn curl_gets_and_puts_files_of_every_size() {
    if tool(&["curl"]).is_none() {
        return;
    }
    for engine in engines() {
        let mut bench = Bench::new();
        bench.serve_esp(engine, None);
        for size in SIZES {
            for block in ["8", "512", "1024", "1428", "9000"] {
                if block == "8" && *size > 3_000 {
                    continue;
                }
                let what = format!("engine {engine}, {size} bytes in blocks of {block}");
                let content = write(&bench.there("file"), *size);
                let url = "tftp://127.0.0.1:PORT/file";
                let got = bench.client("curl", &["-s", "--tftp-blksize", block, url, "-o", "got"]);
                assert!(got.status.success(), "{what}: {got:?}");
                assert_same(&bench.here("got"), &content, &what);
            }
            // curl puts no empty files by TFTP.
            if *size > 0 {
                let what = format!("engine {engine}, {size} bytes put");
                let content = write(&bench.here("mine"), *size);
                let put = bench.client("curl", &["-s", "-T", "mine", "tftp://127.0.0.1:PORT/yours"]);
                assert!(put.status.success(), "{what}: {put:?}");
                assert_same(&bench.there("yours"), &content, &what);
                fs::remove_file(bench.there("yours")).expect("it is there");
            }
        }
        let missing = bench.client("curl", &["-s", "tftp://127.0.0.1:PORT/missing", "-o", "got"]);
        assert_eq!(missing.status.code(), Some(68), "curl calls it file not found");
        assert_eq!(bench.stop(), "");
    }
}

fn signal(process: &Child, name: &str) {
    let status = Command::new("kill").args([name, &process.id().to_string()]).status();
    assert!(status.is_ok_and(|status| status.success()), "kill {name}");
}

/// Has curl upload a file through a relay that suspends curl after its request for this time and then forwards in both
/// directions. Returns the number of answers that were pending for curl, and the time from its request to its first
/// block.
fn put_by_stopped_curl(bench: &Bench, pause: Duration) -> (usize, Duration) {
    let socket = || UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    let (front, back) = (socket(), socket());
    let url = format!("tftp://{}/yours", front.local_addr().expect("it is bound"));
    let mut curl = Command::new("curl").args(["-s", "-T", "mine", &url]).current_dir(bench.here("")).spawn();
    let curl = curl.as_mut().expect("curl was found");
    front.set_read_timeout(Some(HANG_TIMEOUT)).expect("the time is not zero");
    let mut packet = [0; 2_000];
    let (length, client) = front.recv_from(&mut packet).expect("curl asks");
    signal(curl, "-STOP");
    let asked = Instant::now();
    back.send_to(&packet[..length], ("127.0.0.1", bench.port)).expect("loopback takes it");
    for socket in [&front, &back] {
        socket.set_nonblocking(true).expect("sockets can be");
    }
    let (mut transfer, mut answers, mut stopped, mut begun) = (None, 0, true, None);
    loop {
        if stopped && asked.elapsed() >= pause {
            signal(curl, "-CONT");
            stopped = false;
        }
        if let Ok((length, from)) = back.recv_from(&mut packet) {
            transfer = Some(from);
            answers += usize::from(stopped);
            front.send_to(&packet[..length], client).expect("loopback takes it");
        } else if let (Ok((length, _)), Some(transfer)) = (front.recv_from(&mut packet), transfer) {
            begun.get_or_insert(asked.elapsed());
            back.send_to(&packet[..length], transfer).expect("loopback takes it");
        } else if let Some(status) = curl.try_wait().expect("it is our child") {
            assert!(status.success(), "curl: {status}");
            return (answers, begun.expect("a file that is put has a block"));
        } else if asked.elapsed() > HANG_TIMEOUT {
            let _ = curl.kill();
            panic!("curl does not come to its end");
        } else {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

/// curl (7.88) treats a second answer to its request as the acknowledgement of a block, and omits the next one.
#[test]
fn a_slow_client_receives_one_answer_to_its_request() {
    if tool(&["curl"]).is_none() {
        return;
    }
    for engine in engines() {
        let mut bench = Bench::new();
        bench.serve_esp(engine, None);
        let content = write(&bench.here("mine"), 3_000);
        // On a busy machine curl may be slower than intended: then a second answer is correct.
        let mut attempts = (0..20).map(|_| {
            let _ = fs::remove_file(bench.there("yours"));
            put_by_stopped_curl(&bench, Duration::from_millis(400))
        });
        let in_time = attempts.find(|(_, begun)| *begun < Duration::from_millis(900));
        let (answers, _) = in_time.expect("curl is stopped for 0.4 s, not for 0.9 s");
        assert_same(&bench.there("yours"), &content, engine);
        assert_eq!(answers, 1, "{engine}: answers");
    }
}

#[test]
fn eight_clients_are_served_at_once() {
    if tool(&["curl"]).is_none() {
        return;
    }
    for engine in engines() {
        let mut bench = Bench::new();
        let content = write(&bench.there("file"), 300_000);
        bench.serve_esp(engine, None);
        let bench = &bench;
        std::thread::scope(|scope| {
            for client in 0..8 {
                let content = &content;
                scope.spawn(move || {
                    let name = format!("got{client}");
                    let got = bench.client("curl", &["-s", "tftp://127.0.0.1:PORT/file", "-o", &name]);
                    assert!(got.status.success(), "engine {engine}, client {client}: {got:?}");
                    assert_same(&bench.here(&name), content, &format!("engine {engine}, client {client}"));
                });
            }
        });
    }
}

#[test]
fn curl_and_tftp_hpa_complete_on_a_bad_network() {
    if tool(&["curl"]).is_none() || tool(&["tftp"]).is_none() {
        return;
    }
    for engine in engines() {
        let mut bench = Bench::new();
        bench.serve_esp(engine, Some(BAD));
        let content = write(&bench.there("file"), Effort::wanted().pick(10_000, 40_000, 150_000));
        let got = bench.client("curl", &["-s", "tftp://127.0.0.1:PORT/file", "-o", "got"]);
        assert!(got.status.success(), "{engine}: {got:?}");
        assert_same(&bench.here("got"), &content, "curl get");
        let got = bench.client("tftp", &["-m", "binary", "127.0.0.1", "PORT", "-c", "get", "file", "again"]);
        assert!(got.status.success(), "{engine}: {got:?}");
        assert_same(&bench.here("again"), &content, "tftp-hpa get");
        let said = bench.stop();
        assert!(said.contains("lost") && said.contains("doubled"), "{said}");
    }
}

#[test]
fn tftp_hpa_gets_and_puts() {
    if tool(&["tftp"]).is_none() {
        return;
    }
    for engine in engines() {
        let mut bench = Bench::new();
        bench.serve_esp(engine, None);
        for size in SIZES {
            let what = format!("engine {engine}, {size} bytes");
            let content = write(&bench.there("file"), *size);
            bench.client("tftp", &["-m", "binary", "127.0.0.1", "PORT", "-c", "get", "file", "got"]);
            assert_same(&bench.here("got"), &content, &what);
            bench.client("tftp", &["-m", "binary", "127.0.0.1", "PORT", "-c", "put", "got", "yours"]);
            assert_same(&bench.there("yours"), &content, &what);
            fs::remove_file(bench.there("yours")).expect("it is there");
        }
    }
}

/// Several blocks at a time (RFC 7440), on good and bad networks. The server accepts windows of up to 16 blocks.
#[test]
fn atftp_gets_and_puts_in_windows() {
    if tool(&["atftp"]).is_none() {
        return;
    }
    for engine in engines() {
        for (faults, sizes) in [(None, SIZES), (Some(BAD), &[Effort::wanted().pick(20_000, 60_000, 300_000)][..])] {
            let mut bench = Bench::new();
            bench.serve_esp(engine, faults);
            for size in sizes {
                let content = write(&bench.there("file"), *size);
                for window in ["1", "3", "16", "64"] {
                    let what = format!("engine {engine}, {size} bytes, windows of {window}, faults {faults:?}");
                    let option = format!("windowsize {window}");
                    let options = ["--option", &option, "--option", "blksize 512", "-l", "got"];
                    let ends = ["-r", "file", "127.0.0.1", "PORT"];
                    let got = bench.atftp(&[&options[..], &["-g"], &ends].concat());
                    assert!(got.status.success(), "{what}: {got:?}");
                    assert_same(&bench.here("got"), &content, &what);
                    let ends = ["-r", "yours", "127.0.0.1", "PORT"];
                    let put = bench.atftp(&[&options[..], &["-p"], &ends].concat());
                    assert!(put.status.success(), "{what}: {put:?}");
                    assert_same(&bench.there("yours"), &content, &what);
                    fs::remove_file(bench.here("got"))
                        .and_then(|()| fs::remove_file(bench.there("yours")))
                        .expect("both are there");
                }
            }
            bench.stop();
        }
    }
}

#[test]
fn our_client_downloads_from_and_uploads_to_tftpd_hpa() {
    // Debian installs it outside of the users' PATH.
    let Some(daemon) = tool(&["in.tftpd", "/usr/sbin/in.tftpd"]) else { return };
    for engine in engines() {
        let mut bench = Bench::new();
        let mut command = Command::new(daemon);
        command.args([
            "-L",
            "-c",
            "--permissive",
            "--user",
            "root",
            "--address",
            &format!("127.0.0.1:{}", bench.port),
            "-s",
        ]);
        let folder = bench.there("");
        bench.serve(command.arg(folder));
        let (mut commands, mut expected) = (String::new(), String::new());
        for size in SIZES {
            write(&bench.there(&format!("got{size}")), *size);
            write(&bench.here(&format!("put{size}")), *size);
            for order in ["get", "put"] {
                commands +=
                    &format!("{order} |> {{{{0x7f000001, PORT}}, \"{order}{size}\"}}\n").replace("\"get", "\"got");
                expected += &format!("\"{order}{size}\" done |> {size}\n").replace("\"get", "\"got");
            }
        }
        assert_eq!(bench.client_esp(engine, &commands, None), expected, "{engine}");
        for size in SIZES {
            let what = format!("engine {engine}, {size} bytes");
            let got = fs::read(bench.there(&format!("got{size}"))).expect("it is there");
            assert_same(&bench.here(&format!("got{size}")), &got, &what);
            let put = fs::read(bench.here(&format!("put{size}"))).expect("it is there");
            assert_same(&bench.there(&format!("put{size}")), &put, &what);
        }
        let said = bench.client_esp(engine, "get |> {{0x7f000001, PORT}, \"missing\"}\n", None);
        assert_eq!(said, "\"missing\" failed |> {1, \"File not found\"}\n", "{engine}");
    }
}

#[test]
fn our_server_and_client_complete_with_faults_on_either_side() {
    for engine in engines() {
        let mut bench = Bench::new();
        bench.serve_esp(engine, Some(BAD));
        let size = Effort::wanted().pick(10_000, 50_000, 200_000);
        let there = write(&bench.there("file"), size);
        let here = write(&bench.here("mine"), size + 1);
        let commands = "get |> {{0x7f000001, PORT}, \"file\"}\nput |> {{0x7f000001, PORT}, \"mine\"}\n";
        let said = bench.client_esp(engine, commands, Some("udp:loss=3%,dup=10%,delay=0ms..3ms,seed=11"));
        assert_eq!(said, format!("\"file\" done |> {size}\n\"mine\" done |> {}\n", size + 1), "{engine}");
        assert_same(&bench.here("file"), &there, "got");
        assert_same(&bench.there("mine"), &here, "put");
    }
}

#[test]
fn the_server_survives_random_packets() {
    for engine in engines() {
        let mut bench = Bench::new();
        let content = write(&bench.there("file"), 5_000);
        bench.serve_esp(engine, None);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
        socket.set_nonblocking(true).expect("sockets can be");
        let mut random = Random(3);
        for _ in 0..Effort::wanted().pick(2_000, 20_000, 3_000_000) {
            let mut packet = match random.below(4) {
                0 => (0..random.below(40)).map(|_| random.byte()).collect(),
                1 => b"\0\x01file\0octet\0blksize\x001024\0".to_vec(),
                2 => b"\0\x02new\0octet\0".to_vec(),
                _ => [&[0, random.below(8) as u8][..], &vec![random.byte(); random.below(700) as usize]].concat(),
            };
            if !packet.is_empty() && random.below(2) == 0 {
                let at = random.below(packet.len() as u64) as usize;
                packet[at] = random.byte();
            }
            packet.truncate(packet.len().min(random.below(1_500) as usize + 1));
            let _ = socket.send_to(&packet, ("127.0.0.1", bench.port));
            // Transfers answer from ports of their own: the source ports of their packets.
            if let Ok((_, from)) = socket.recv_from(&mut [0; 2_000]) {
                let _ = socket.send_to(&packet, from);
            }
        }
        // Unanswered transfers occupy instances until their timeout.
        let started = Instant::now();
        loop {
            let said = bench.client_esp(engine, "get |> {{0x7f000001, PORT}, \"file\"}\n", None);
            if said == "\"file\" done |> 5000\n" {
                break;
            }
            assert!(started.elapsed() < HANG_TIMEOUT, "engine {engine}: {said}");
        }
        assert_same(&bench.here("file"), &content, engine);
        bench.stop();
    }
}

/// A socket that is listened to for a moment.
fn listener() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    socket.set_read_timeout(Some(Duration::from_millis(40))).expect("the time is not zero");
    socket
}

/// A client that has a block and says again and again that it has the one before, and another host that writes to the
/// port: neither keeps the server from sending again forever.
#[test]
fn packets_that_are_no_answer_do_not_put_the_next_try_off_for_ever() {
    for engine in engines() {
        let mut bench = Bench::new();
        fs::write(bench.there("file"), [7; 2_000]).expect("the folder is writable");
        bench.serve_esp(engine, None);
        let (client, stranger) = (listener(), listener());
        let beginning = Instant::now();
        let mut seen = Vec::new();
        let mut packet = [0; 600];
        let mut from = loop {
            client.send_to(b"\0\x01file\0octet\0", ("127.0.0.1", bench.port)).expect("loopback takes it");
            if let Ok((_, from)) = client.recv_from(&mut packet) {
                break from;
            }
            assert!(beginning.elapsed() < HANG_TIMEOUT, "{engine}: the server does not answer");
        };
        // More often than the shortest wait of a second, until three more of the first block have come.
        while seen.len() < 3 {
            let _ = client.send_to(&[0, 4, 0, 0], from);
            let _ = stranger.send_to(&[0, 4, 0, 1], from);
            if let Ok((length, sender)) = client.recv_from(&mut packet) {
                assert_eq!((length, &packet[..4]), (516, &[0, 3, 0, 1][..]), "{engine}: the first block again");
                seen.push(beginning.elapsed());
                from = sender;
            }
            assert!(beginning.elapsed() < HANG_TIMEOUT, "{engine}: sent again {} times", seen.len());
        }
        bench.stop();
    }
}

/// Sends a request until something answers: the answer, and where it comes from.
fn request(bench: &Bench, socket: &UdpSocket, request: &[u8]) -> (Vec<u8>, SocketAddr) {
    let started = Instant::now();
    loop {
        socket.send_to(request, ("127.0.0.1", bench.port)).expect("loopback takes it");
        let mut packet = [0; 2_000];
        if let Ok((length, from)) = socket.recv_from(&mut packet) {
            return (packet[..length].to_vec(), from);
        }
        assert!(started.elapsed() < HANG_TIMEOUT, "the server does not answer");
    }
}

/// Sends a packet until one of this beginning comes.
fn exchange(socket: &UdpSocket, to: SocketAddr, sent: &[u8], wanted: &[u8]) -> Vec<u8> {
    let started = Instant::now();
    loop {
        socket.send_to(sent, to).expect("loopback takes it");
        let mut packet = [0; 2_000];
        while let Ok((length, _)) = socket.recv_from(&mut packet) {
            if packet[..length].starts_with(wanted) {
                return packet[..length].to_vec();
            }
        }
        assert!(started.elapsed() < HANG_TIMEOUT, "no {wanted:?} comes");
    }
}

#[test]
fn options_of_rfc_2349_are_acknowledged() {
    for engine in engines() {
        let mut bench = Bench::new();
        let content = write(&bench.there("file"), 70_000);
        bench.serve_esp(engine, None);
        for (asked, answer) in [
            (&b"octet\0tsize\x000\0"[..], &b"tsize\x0070000\0"[..]),
            (b"octet\0TSIZE\x000\0timeout\x003\0blksize\x00512\0", b"blksize\x00512\0timeout\x003\0tsize\x0070000\0"),
            (b"octet\0timeout\x005\0", b"timeout\x005\0"),
            // A lost packet would cost more than the server waits, and is no number.
            (b"octet\0timeout\x006\0tsize\x000\0", b"tsize\x0070000\0"),
            (b"octet\0timeout\x00x\0tsize\x000\0", b"tsize\x0070000\0"),
        ] {
            let socket = listener();
            let (oack, from) = request(&bench, &socket, &[b"\0\x01file\0", asked].concat());
            assert_eq!(oack, [b"\0\x06", answer].concat(), "{engine}");
            let block = exchange(&socket, from, &[0, 4, 0, 0], &[0, 3, 0, 1]);
            assert_eq!(block[4..], content[..512], "{engine}");
            socket.send_to(b"\0\x05\0\0enough\0", from).expect("loopback takes it");
        }
        // A put says its own size; in netascii a file has no size before it is sent.
        let socket = listener();
        let (oack, from) = request(&bench, &socket, b"\0\x02new\0octet\0tsize\x0012345\0");
        assert_eq!(oack, b"\0\x06tsize\x0012345\0", "{engine}");
        socket.send_to(b"\0\x05\0\0enough\0", from).expect("loopback takes it");
        let socket = listener();
        let (block, from) = request(&bench, &socket, b"\0\x01file\0netascii\0tsize\x000\0");
        assert_eq!(block[..4], [0, 3, 0, 1], "{engine}");
        socket.send_to(b"\0\x05\0\0enough\0", from).expect("loopback takes it");
        bench.stop();
    }
}

/// Text in netascii.
fn netascii(text: &[u8]) -> Vec<u8> {
    text.iter()
        .flat_map(|byte| match byte {
            b'\n' => b"\r\n".to_vec(),
            b'\r' => b"\r\0".to_vec(),
            _ => vec![*byte],
        })
        .collect()
}

#[test]
fn netascii_converts_line_ends_in_both_directions() {
    for engine in engines() {
        let mut bench = Bench::new();
        bench.serve_esp(engine, None);
        // Pairs before, across and after the ends of blocks of 512 bytes.
        for (number, first) in [509, 510, 511, 512, 1_023].into_iter().enumerate() {
            let mut text = vec![b'x'; 1_100];
            for at in [0, first, first + 1, 1_099] {
                text[at] = b'\n';
            }
            text[first + 2] = b'\r';
            let sent = netascii(&text);
            fs::write(bench.there("text"), &text).expect("the folder is writable");
            let socket = listener();
            let (mut block, from) = request(&bench, &socket, b"\0\x01text\0netascii\0");
            let mut got = block[4..].to_vec();
            while block.len() == 516 {
                let ack = [0, 4, block[2], block[3]];
                block = exchange(&socket, from, &ack, &[0, 3, block[2], block[3] + 1]);
                got.extend_from_slice(&block[4..]);
            }
            socket.send_to(&[0, 4, block[2], block[3]], from).expect("loopback takes it");
            assert!(got == sent, "{engine}, {first}: {} bytes of {}", got.len(), sent.len());

            let name = format!("put{number}");
            let socket = listener();
            let (ack, from) = request(&bench, &socket, format!("\0\x02{name}\0NetASCII\0").as_bytes());
            assert_eq!(ack, [0, 4, 0, 0], "{engine}");
            let blocks = sent.chunks(512).chain((sent.len().is_multiple_of(512)).then_some(&[][..]));
            for (block, piece) in blocks.enumerate() {
                let number = block as u8 + 1;
                exchange(&socket, from, &[&[0, 3, 0, number][..], piece].concat(), &[0, 4, 0, number]);
            }
            assert_same(&bench.there(&name), &text, engine);
        }
        // A CR that is followed by neither LF nor NUL.
        let socket = listener();
        let (_, from) = request(&bench, &socket, b"\0\x02bad\0netascii\0");
        exchange(&socket, from, b"\0\x03\0\x01a\rb", b"\0\x05\0\x04not netascii");
        bench.stop();
    }
}

#[test]
fn transfers_with_silent_peers_give_way_to_new_ones() {
    for engine in engines() {
        // Without a replacement, the first transfer ends after 63 s: a run that takes as long shows nothing.
        let in_time = (0..5).any(|_| gives_way_to_a_new_transfer(engine) < Duration::from_secs(50));
        assert!(in_time, "{engine}: the machine is too busy to tell");
    }
}

/// Begins a ninth transfer while eight have silent peers; the time from its request to its end.
fn gives_way_to_a_new_transfer(engine: &str) -> Duration {
    let mut bench = Bench::new();
    let content = write(&bench.there("file"), 700);
    bench.serve_esp(engine, None);
    let silent: Vec<UdpSocket> = (0..8).map(|_| listener()).collect();
    let begun: Vec<SocketAddr> =
        silent.iter().map(|socket| request(&bench, socket, b"\0\x01file\0octet\0").1).collect();
    let started = Instant::now();
    let socket = listener();
    let (block, from) = request(&bench, &socket, b"\0\x01file\0octet\0");
    assert_eq!(block[4..], content[..512], "{engine}");
    let block = exchange(&socket, from, &[0, 4, 0, 1], &[0, 3, 0, 2]);
    assert_eq!(block[4..], content[512..], "{engine}");
    socket.send_to(&[0, 4, 0, 2], from).expect("loopback takes it");
    let elapsed = started.elapsed();
    assert!(begun.contains(&from), "{engine}");
    bench.stop();
    elapsed
}

/// The state machine in C that the README compares the length with.
const PLAIN: &str = "examples/tftp/plain/tftp.c";

#[test]
fn the_plain_state_machine_serves_the_same_clients() {
    if tool(&["cc"]).is_none() || tool(&["curl"]).is_none() {
        return;
    }
    let mut bench = Bench::new();
    let program = bench.folder.path().join("tftp");
    let compiled = Command::new("cc")
        .args(["-O2", "-Wall", "-Wextra", "-Werror", "-o"])
        .arg(&program)
        .arg(repository(PLAIN))
        .status();
    assert!(compiled.is_ok_and(|status| status.success()));
    let port = bench.port.to_string();
    bench.serve(Command::new(&program).args(["serve", &port]));
    for size in SIZES {
        let what = format!("{size} bytes");
        let content = write(&bench.there("file"), *size);
        let got = bench.client("curl", &["-s", "--tftp-blksize", "1024", "tftp://127.0.0.1:PORT/file", "-o", "got"]);
        assert!(got.status.success(), "{what}: {got:?}");
        assert_same(&bench.here("got"), &content, &what);
        let program = program.display().to_string();
        let _ = fs::remove_file(bench.here("file"));
        let got = bench.client(&program, &["get", "127.0.0.1", "PORT", "file"]);
        assert!(got.status.success(), "{what}: {got:?}");
        assert_same(&bench.here("file"), &content, &what);
        fs::rename(bench.here("file"), bench.here("mine")).expect("it is there");
        let put = bench.client(&program, &["put", "127.0.0.1", "PORT", "mine"]);
        assert!(put.status.success(), "{what}: {put:?}");
        assert_same(&bench.there("mine"), &content, &what);
        fs::remove_file(bench.there("mine")).expect("it is there");
    }
}

#[test]
fn the_readme_states_the_lengths_of_both() {
    let text = |path: &str| fs::read_to_string(repository(path)).expect("it is there");
    // Lines that are neither empty nor a comment.
    let lines = |path: &str| {
        let is_code = |line: &&str| {
            let line = line.trim();
            !(line.is_empty() || line.starts_with("//") || line.starts_with("/*") || line.starts_with("* "))
        };
        text(path).lines().filter(is_code).count()
    };
    let parts = ["packet", "transfer", "listener", "server", "commands", "client"];
    let esp: usize = parts.iter().map(|part| lines(&format!("examples/tftp/{part}.esp"))).sum();
    let row = format!("| lines without comments | {esp} | {} |", lines(PLAIN));
    assert!(text("examples/tftp/README.md").contains(&row), "the README lacks the row `{row}`");
}
