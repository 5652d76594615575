//! The TFTP server of `examples/tftp` beside Debian's tftpd-hpa and the state machine in C of `examples/tftp/plain`:
//! curl gets one file from each in turn. Prints throughput, and the server's processor time per block, which holds on a
//! busy machine too. Arguments: rounds, MiB. `--check` fails when the bar is missed, or cannot be judged.

use quaject_bench_harness::median;
use quaject_bench_peers::{TFTPD_HPA, left_out};
use std::error::Error;
use std::fs;
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

/// What the bar of issue 8 asks: the share of tftpd-hpa's throughput.
const BAR: f64 = 0.9;
/// Of the contenders, those that the bar is about.
const BARRED: [&str; 2] = ["ours, machine code", "ours, C"];
const BLOCK: u64 = 1428;
const PORT: u16 = 16_969;

/// A server, and what was measured of it.
struct Contender {
    name: &'static str,
    command: Box<dyn Fn(&Path) -> Command>,
    seconds: Vec<f64>,
    server_us: Vec<f64>,
}

impl Contender {
    fn new(name: &'static str, command: impl Fn(&Path) -> Command + 'static) -> Contender {
        Contender { name, command: Box::new(command), seconds: Vec::new(), server_us: Vec::new() }
    }
}

/// A running server; stopped when dropped.
struct Server(Child);

impl Server {
    fn start(mut command: Command) -> Result<Server, Box<dyn Error>> {
        let server = Server(command.stdin(Stdio::null()).stdout(Stdio::null()).spawn()?);
        let started = Instant::now();
        while UdpSocket::bind(("127.0.0.1", PORT)).is_ok() {
            if started.elapsed() > Duration::from_secs(60) {
                return Err("the server takes a minute to begin".into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }

    /// Its processor time and its children's so far, those that run among them: tftpd-hpa has one for each client.
    fn ticks(&self) -> u64 {
        let of = |process: &str| {
            let text = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
            // The name, in parentheses, may hold blanks; the four times are words 12 to 15 behind it.
            let rest = text.rsplit(')').next().unwrap_or_default().to_string();
            rest.split_whitespace().skip(11).take(4).filter_map(|word| word.parse::<u64>().ok()).sum::<u64>()
        };
        let process = self.0.id();
        let children = fs::read_to_string(format!("/proc/{process}/task/{process}/children")).unwrap_or_default();
        of(&process.to_string()) + children.split_whitespace().map(of).sum::<u64>()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended by itself; then curl has said so.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn succeed(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let status = command.status().map_err(|error| format!("cannot run {command:?}: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("{command:?}: {status}").into()) }
}

/// Ours, built from this tree, and what is compiled here.
fn contenders(root: &Path, work: &Path) -> Result<Vec<Contender>, Box<dyn Error>> {
    let cargo = std::env::var_os("CARGO").ok_or("run it by `cargo xtask bench tftp`")?;
    succeed(Command::new(cargo).args(["build", "--release", "--quiet", "--package", "quaject-cli"]).current_dir(root))?;
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    let qj = target.join("release/qj");
    let plain = work.join("tftp");
    let source = root.join("examples/tftp/plain/tftp.c");
    succeed(Command::new("cc").arg("-O2").arg("-o").arg(&plain).arg(source))?;
    let program = root.join("examples/tftp/server.esp");
    let ours = |engine: &'static str| {
        let (qj, program) = (qj.clone(), program.clone());
        move |folder: &Path| {
            let mut command = Command::new(&qj);
            command.args(["run", "--engine", engine]).arg(&program).current_dir(folder);
            for channel in ["requestC", "refusalC"] {
                command.arg("--bind").arg(format!("{channel}=udp:{PORT}"));
            }
            command
        }
    };
    let peer = TFTPD_HPA.is_installed().then(|| {
        Contender::new("tftpd-hpa", |folder: &Path| {
            let mut command = Command::new("/usr/sbin/in.tftpd");
            let address = format!("127.0.0.1:{PORT}");
            command.args(["-L", "--user", "root", "--address", &address, "-s"]).arg(folder);
            command
        })
    });
    let others = [
        Contender::new("ours, machine code", ours("jit")),
        Contender::new("ours, C", ours("c")),
        Contender::new("ours, interpreter", ours("interp")),
        Contender::new("by hand, C", move |folder: &Path| {
            let mut command = Command::new(&plain);
            command.args(["serve", &PORT.to_string()]).current_dir(folder);
            command
        }),
    ];
    Ok(peer.into_iter().chain(others).collect())
}

fn measure(contender: &mut Contender, folder: &Path, bytes: u64, counts: bool) -> Result<(), Box<dyn Error>> {
    let server = Server::start((contender.command)(folder))?;
    let before = server.ticks();
    let started = Instant::now();
    let url = format!("tftp://127.0.0.1:{PORT}/file");
    let block = BLOCK.to_string();
    succeed(Command::new("curl").args(["-s", "--tftp-blksize", &block, &url, "-o"]).arg(folder.join("got")))
        .map_err(|error| format!("{}: {error}", contender.name))?;
    let seconds = started.elapsed().as_secs_f64();
    // A tick is 10 ms. The child of tftpd-hpa ends when it has the last acknowledgement, and is counted either way.
    std::thread::sleep(Duration::from_millis(50));
    let ticks = server.ticks() - before;
    if fs::metadata(folder.join("got"))?.len() != bytes {
        return Err(format!("{}: not all of the file came", contender.name).into());
    }
    if counts {
        contender.seconds.push(seconds);
        contender.server_us.push(ticks as f64 * 10_000.0 / (bytes / BLOCK + 1) as f64);
    }
    Ok(())
}

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = arguments.iter().any(|argument| argument == "--check");
    let numbers: Vec<u64> = arguments.iter().filter_map(|argument| argument.parse().ok()).collect();
    let rounds = numbers.first().copied().unwrap_or(7);
    let bytes = numbers.get(1).copied().unwrap_or(64) << 20;
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    print!("{}", left_out(&[&TFTPD_HPA]));
    let work = tempfile::tempdir()?;
    let folder = work.path().join("pub");
    fs::create_dir(&folder)?;
    let mut contenders = contenders(&root, work.path())?;
    fs::write(folder.join("file"), (0..bytes).map(|at| (at * 0x9e37_79b9 >> 13) as u8).collect::<Vec<u8>>())?;
    for round in 0..=rounds {
        for contender in &mut contenders {
            // The first round only warms up, with the same file: the others are its measure.
            measure(contender, &folder, bytes, round > 0)?;
        }
    }
    let mib = bytes as f64 / f64::from(1 << 20);
    let reference = TFTPD_HPA.is_installed().then(|| median(&contenders[0].seconds));
    println!("{mib} MiB in blocks of {BLOCK} to curl, medians of {rounds} rounds in turn");
    println!("{:<20} {:>8} {:>18} {:>11} {:>18}", "", "MiB/s", "least .. most", "throughput", "server us/block");
    let mut best: Option<f64> = None;
    for contender in &contenders {
        let seconds = median(&contender.seconds);
        let (min, max) = contender.seconds.iter().fold((f64::MAX, 0.0_f64), |(a, b), s| (a.min(*s), b.max(*s)));
        let range = format!("{:.1} .. {:.1}", mib / max, mib / min);
        let ratio = reference.map(|reference| reference / seconds);
        if BARRED.contains(&contender.name) {
            best = ratio.map(|ratio| best.map_or(ratio, |best| best.max(ratio)));
        }
        let ratio = ratio.map_or("-".to_string(), |ratio| format!("{ratio:.2}x"));
        // tftpd-hpa has a child for each client, which is not waited for: its time is lost.
        let spent = median(&contender.server_us);
        let spent = if spent > 0.0 { format!("{spent:.2}") } else { "-".to_string() };
        println!("{:<20} {:>8.1} {range:>18} {ratio:>11} {spent:>18}", contender.name, mib / seconds);
    }
    let holds = best.is_some_and(|best| best >= BAR);
    match best {
        Some(best) => println!("bar: {BAR}x of tftpd-hpa; ours {best:.2}x"),
        None => println!("bar: {BAR}x of tftpd-hpa; not judged without it"),
    }
    Ok(if check && !holds { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
