//! The example servers beside the same servers on tokio's current-thread runtime: requests per second, the tail of the
//! latency, and the server's processor time per request, which holds on a busy machine too. Each server is a process on
//! one processor; the client has the other. They take turns. `--check` fails when a bar is missed.

mod tokio_servers;

use std::ffi::{CString, c_char};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use quaject_ac as _;
use quaject_bench_harness::median;

// SAFETY: defined in c/client.c and, with `main` renamed, in the examples of crates/ac. `latencies` has room for
// `room`.
unsafe extern "C" {
    fn client_pin(processor: i32);
    fn client_raise_limit();
    fn client_run(
        port: i32,
        connections: i32,
        request: *const c_char,
        bytes: usize,
        answer: usize,
        seconds: f64,
        latencies: *mut u64,
        room: u64,
        elapsed_ns: *mut u64,
        started: extern "C" fn(),
    ) -> u64;
    fn echo_main(count: i32, arguments: *const *const c_char) -> i32;
    fn httpd_main(count: i32, arguments: *const *const c_char) -> i32;
}

/// A server: its name, the word by which this program becomes it, the I/O it is told to use.
struct Kind {
    name: &'static str,
    word: &'static str,
    io: &'static str,
}

const ECHO: &[Kind] = &[
    Kind { name: "ours, io_uring", word: "echo", io: "io_uring" },
    Kind { name: "ours, epoll", word: "echo", io: "epoll" },
    Kind { name: "tokio current_thread", word: "tokio-echo", io: "epoll" },
];
const HTTP: &[Kind] = &[
    Kind { name: "ours, io_uring", word: "httpd", io: "io_uring" },
    Kind { name: "ours, epoll", word: "httpd", io: "epoll" },
    Kind { name: "tokio current_thread", word: "tokio-httpd", io: "epoll" },
];

/// What is asked of them.
struct Question {
    title: &'static str,
    kinds: &'static [Kind],
    request: &'static [u8],
    /// Bytes of the answer of ours, and of tokio's, whose head may be another.
    body: usize,
}

const FILE_BYTES: usize = 1000;
const CONNECTIONS: &[i32] = &[100, 10_000];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["serve", word, folder] => serve(word, folder),
        [] | ["--check"] => compare(&["echo", "HTTP"], CONNECTIONS, 5, 2.0, words.len() == 1),
        [question, connections, rounds, seconds] => compare(
            &[question],
            &[connections.parse().expect("a number of connections")],
            rounds.parse().expect("a number of rounds"),
            seconds.parse().expect("seconds"),
            false,
        ),
        _ => {
            eprintln!("usage: [--check | echo|HTTP CONNECTIONS ROUNDS SECONDS]");
            ExitCode::from(2)
        }
    }
}

fn serve(word: &str, folder: &str) -> ExitCode {
    // SAFETY: plain system calls.
    unsafe {
        client_pin(1);
        client_raise_limit();
    }
    let strings = ["server", "0", folder].map(|text| CString::new(text).expect("no zeros in it"));
    let pointers: Vec<*const c_char> = strings.iter().map(|text| text.as_ptr()).collect();
    match word {
        // SAFETY: the arguments are those of a `main`, and live as long as this function.
        "echo" => unsafe { eprintln!("the server ends: {}", echo_main(2, pointers.as_ptr())) },
        // SAFETY: as above.
        "httpd" => unsafe { eprintln!("the server ends: {}", httpd_main(3, pointers.as_ptr())) },
        "tokio-echo" => tokio_servers::echo(),
        "tokio-httpd" => tokio_servers::httpd(folder),
        _ => eprintln!("no server `{word}`"),
    }
    ExitCode::FAILURE
}

/// A running server; stopped when dropped.
struct Server {
    child: Child,
    port: i32,
}

impl Server {
    fn start(kind: &Kind, folder: &str) -> Server {
        let program = std::env::current_exe().expect("we run");
        let mut command = Command::new(program);
        command.args(["serve", kind.word, folder]).env("QJ_AC_IO", kind.io).stdout(Stdio::piped());
        let mut child = command.spawn().expect("we can be started again");
        let mut line = String::new();
        let output = child.stdout.as_mut().expect("piped above");
        BufReader::new(output).read_line(&mut line).expect("the server says where it listens");
        let port = line.split_whitespace().nth(3).and_then(|word| word.parse().ok()).expect("`listening on port N`");
        Server { child, port }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself, which the client has then said.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server that is measured, and its processor time when the measurement began.
static MEASURED: AtomicU32 = AtomicU32::new(0);
static BEGAN_AT: AtomicU64 = AtomicU64::new(0);

/// Clock ticks of a process in user and system.
fn ticks(process: u32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{process}/stat")).expect("the server runs");
    // The name, in parentheses, may hold blanks; user and system time are the 12th and 13th word behind it.
    let rest = text.rsplit(')').next().expect("a name in parentheses");
    rest.split_whitespace().skip(11).take(2).map(|word| word.parse::<u64>().expect("a number")).sum()
}

extern "C" fn began() {
    BEGAN_AT.store(ticks(MEASURED.load(Ordering::Relaxed)), Ordering::Relaxed);
}

/// Of one kind, one number per round.
#[derive(Default)]
struct Numbers {
    per_second: Vec<f64>,
    median_us: Vec<f64>,
    tail_us: Vec<f64>,
    server_us: Vec<f64>,
}

fn measure(kind: &Kind, question: &Question, folder: &str, connections: i32, seconds: f64, to: Option<&mut Numbers>) {
    let server = Server::start(kind, folder);
    MEASURED.store(server.child.id(), Ordering::Relaxed);
    let answer = if question.body == 0 { question.request.len() } else { question.body + head_of(&server, question) };
    let mut latencies = vec![0_u64; 8_000_000];
    let mut elapsed = 0;
    // SAFETY: there is room for as many latencies as we say.
    let count = unsafe {
        client_run(
            server.port,
            connections,
            question.request.as_ptr().cast(),
            question.request.len(),
            answer,
            seconds,
            latencies.as_mut_ptr(),
            latencies.len() as u64,
            &raw mut elapsed,
            began,
        )
    };
    let spent = ticks(server.child.id()) - BEGAN_AT.load(Ordering::Relaxed);
    latencies.truncate(count as usize);
    latencies.sort_unstable();
    let Some(to) = to else { return };
    let at = |share: usize| latencies[(latencies.len() - 1) * share / 1000] as f64 / 1000.0;
    to.per_second.push(count as f64 * 1e9 / elapsed as f64);
    to.median_us.push(at(500));
    to.tail_us.push(at(990));
    // A tick is 10 ms.
    to.server_us.push(spent as f64 * 10_000.0 / count as f64);
}

/// How long the head of this server's answers is.
fn head_of(server: &Server, question: &Question) -> usize {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", server.port as u16)).expect("the server accepts");
    stream.write_all(question.request).expect("the server reads");
    let mut answer = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).expect("the server answers");
        answer.extend_from_slice(&buffer[..count]);
        if let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") {
            return end + 4;
        }
        assert!(count > 0, "the server has closed the connection");
    }
}

fn compare(wanted: &[&str], connections: &[i32], rounds: usize, seconds: f64, check: bool) -> ExitCode {
    let folder = std::env::temp_dir().join(format!("quaject-bench-www-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the temporary folder can be written");
    std::fs::write(folder.join("file.txt"), vec![b'x'; FILE_BYTES]).expect("the temporary folder can be written");
    let www = folder.to_str().expect("temporary folders are UTF-8");
    // SAFETY: plain system calls.
    unsafe {
        client_pin(0);
        client_raise_limit();
    }
    let questions = [
        Question { title: "echo, 64 bytes", kinds: ECHO, request: &[b'q'; 64], body: 0 },
        Question {
            title: "HTTP/1.1, a file of 1000 bytes",
            kinds: HTTP,
            request: b"GET /file.txt HTTP/1.1\r\nHost: localhost\r\n\r\n",
            body: FILE_BYTES,
        },
    ];
    let mut held = true;
    for question in questions.iter().filter(|question| wanted.iter().any(|word| question.title.starts_with(word))) {
        for &connections in connections {
            let mut numbers: Vec<Numbers> = question.kinds.iter().map(|_| Numbers::default()).collect();
            for round in 0..=rounds {
                for (kind, numbers) in question.kinds.iter().zip(&mut numbers) {
                    let seconds = if round == 0 { 0.2 } else { seconds };
                    measure(kind, question, www, connections, seconds, (round > 0).then_some(numbers));
                }
            }
            held &= report(question, connections, &numbers);
        }
    }
    std::fs::remove_dir_all(&folder).expect("it is ours");
    if check && !held { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Prints one table and says whether the bars hold: as many requests as tokio, a tail no longer, by the better of ours.
fn report(question: &Question, connections: i32, numbers: &[Numbers]) -> bool {
    println!("\n{}, {connections} connections: medians of the rounds", question.title);
    println!("  {:<24} {:>12} {:>12} {:>12} {:>20}", "", "requests/s", "median us", "99 % us", "server us / request");
    for (kind, numbers) in question.kinds.iter().zip(numbers) {
        println!(
            "  {:<24} {:>12.0} {:>12.0} {:>12.0} {:>20.2}",
            kind.name,
            median(&numbers.per_second),
            median(&numbers.median_us),
            median(&numbers.tail_us),
            median(&numbers.server_us)
        );
    }
    let (tokio, ours) = numbers.split_last().expect("tokio is the last");
    let mut held = true;
    for (kind, ours) in question.kinds.iter().zip(ours) {
        let rate = median(&ours.per_second) / median(&tokio.per_second);
        let tail = median(&ours.tail_us) / median(&tokio.tail_us);
        let time = median(&tokio.server_us) / median(&ours.server_us);
        let holds = rate >= 1.0 && tail <= 1.0;
        // What the library chooses by itself is what counts.
        held &= holds || kind.io != "io_uring";
        let verdict = if holds { "holds " } else { "MISSED" };
        println!(
            "  {verdict} {}: {rate:.2}x the requests (bar 1.0), {tail:.2}x the tail (bar 1.0), {time:.2}x less processor time",
            kind.name
        );
    }
    held
}
