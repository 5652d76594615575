//! HTTP/1.0 requests per second, a connection for each: the HTTP server of `examples/tcpip` on the TCP of ours, behind
//! a TAP interface, and on the kernel's, both as C; and a C server over epoll that always sends the same 200 bytes.
//! Everything happens in a network of its own, so it needs root. Arguments: rounds, seconds. `--check` fails when the
//! bar is missed.

use quaject_bench_harness::median;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// What the bar of issue 8 asks: the share of the epoll server's requests.
const BAR: f64 = 0.5;
/// As many as the server has processes.
const CONNECTIONS: &str = "8";

struct Contender {
    name: &'static str,
    address: &'static str,
    port: &'static str,
    server: Server,
    per_second: Vec<f64>,
    server_us: Vec<f64>,
}

/// A running server; stopped when dropped. An idle one uses no time.
struct Server(Child);

impl Server {
    fn start(command: &mut Command) -> Result<Server, Box<dyn Error>> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::null());
        Ok(Server(command.spawn().map_err(|error| format!("cannot run {command:?}: {error}"))?))
    }

    fn ticks(&self) -> u64 {
        let text = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        // The name, in parentheses, may hold blanks; user and system time are words 12 and 13 behind it.
        let rest = text.rsplit(')').next().unwrap_or_default();
        rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<u64>().ok()).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then the client has said so.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Requests per second; none when the server does not answer as it should.
fn ask(client: &Path, contender: &Contender, seconds: &str) -> Result<f64, Box<dyn Error>> {
    let output = Command::new(client).args([contender.address, contender.port, CONNECTIONS, seconds]).output()?;
    if !output.status.success() {
        return Err(format!("{}: {}", contender.name, String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.first().map(String::as_str) != Some("inside") {
        // The same again, in a network of its own.
        let program = std::env::current_exe()?;
        let status = Command::new("unshare").arg("--net").arg(program).arg("inside").args(arguments).status()?;
        return Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE });
    }
    let check = arguments.iter().any(|argument| argument == "--check");
    let mut numbers = arguments.iter().filter(|argument| argument.parse::<f64>().is_ok());
    let rounds: usize = numbers.next().map_or(Ok(7), |number| number.parse())?;
    let seconds = numbers.next().map_or("2", String::as_str);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let work = tempfile::tempdir()?;
    let cargo = std::env::var_os("CARGO").ok_or("run it by `cargo xtask bench tcp-responder`")?;
    succeed(
        Command::new(cargo).args(["build", "--release", "--quiet", "--package", "quaject-cli"]).current_dir(&root),
    )?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    for name in ["server", "client"] {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("c/{name}.c"));
        succeed(Command::new("cc").arg("-O2").arg("-o").arg(work.path().join(name)).arg(source))?;
    }
    let set_up = "ip link set lo up && ip tuntap add mode tap name tap0 && ip address add 10.77.0.1/24 dev tap0 && ip link set tap0 up";
    succeed(Command::new("sh").args(["-c", set_up]))?;
    // With its head, 200 bytes.
    fs::write(work.path().join("200"), [b'x'; 160])?;
    let ours = |program: &str| {
        let mut command = Command::new(target.join("release/qj"));
        command.args(["run", "--engine", "c"]).arg(root.join("examples/tcpip").join(program)).current_dir(work.path());
        Server::start(&mut command)
    };
    let contender = |name, address, port, server| Contender {
        name,
        address,
        port,
        server,
        per_second: Vec::new(),
        server_us: Vec::new(),
    };
    let peer = Server::start(Command::new(work.path().join("server")).arg("8081"))?;
    let mut contenders = [
        contender("C over epoll, kernel's TCP", "127.0.0.1", "8081", peer),
        contender("ESP as C, its own TCP", "10.77.0.2", "80", ours("host.esp")?),
        contender("ESP as C, kernel's TCP", "127.0.0.1", "8080", ours("kernel.esp")?),
    ];
    let client = work.path().join("client");
    for contender in &contenders {
        let started = Instant::now();
        while let Err(error) = ask(&client, contender, "0.1") {
            if started.elapsed() > Duration::from_secs(100) {
                return Err(error);
            }
            std::thread::sleep(Duration::from_millis(200));
        }
    }
    for _ in 0..rounds {
        for contender in &mut contenders {
            let before = contender.server.ticks();
            let per_second = ask(&client, contender, seconds)?;
            // A tick is 10 ms.
            let spent = (contender.server.ticks() - before) as f64 * 10_000.0;
            contender.per_second.push(per_second);
            contender.server_us.push(spent / (per_second * seconds.parse::<f64>()?));
        }
    }
    println!(
        "200 bytes by HTTP/1.0, {CONNECTIONS} connections at once, medians of {rounds} rounds of {seconds} s in turn"
    );
    println!("{:<28} {:>11} {:>9} {:>20}", "", "requests/s", "", "server us / request");
    let reference = median(&contenders[0].per_second);
    for contender in &contenders {
        let per_second = median(&contender.per_second);
        let ratio = per_second / reference;
        println!("{:<28} {per_second:>11.0} {ratio:>8.2}x {:>20.1}", contender.name, median(&contender.server_us));
    }
    let ours = median(&contenders[1].per_second) / reference;
    println!("bar: {BAR}x of the C server; ours {ours:.2}x");
    Ok(if check && ours < BAR { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
