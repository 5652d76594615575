//! The programs of the Synthesis paper and system calls one by one, in QEMU that counts instructions: in the kernel of
//! this repository, in the stock kernel of Debian, and as the paper has them. `--check` fails when a goal is missed
//! that was reached before; `--linux FILE` names the peer's image, `--without-linux` leaves it out.

mod archive;
mod machine;
mod paper;

use machine::{Failure, Machine, Rows};
use std::path::PathBuf;
use std::process::ExitCode;

struct Options {
    check: bool,
    linux: Peer,
}

/// The image of the peer.
enum Peer {
    /// From Debian's archive.
    Download,
    Given(PathBuf),
    LeftOut,
}

fn options() -> Result<Options, Failure> {
    let mut options = Options { check: false, linux: Peer::Download };
    let mut arguments = std::env::args_os().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.to_str() {
            Some("--check") => options.check = true,
            Some("--without-linux") => options.linux = Peer::LeftOut,
            Some("--linux") => {
                let image = arguments.next().ok_or("`--linux` needs the path of an image")?;
                options.linux = Peer::Given(image.into());
            }
            _ => return Err(format!("`{}` is no option of this bench", argument.display()).into()),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    match options().and_then(|options| run(&options)) {
        Ok(code) => code,
        Err(Failure(message)) => {
            eprintln!("bench kernel: {message}");
            ExitCode::from(2)
        }
    }
}

fn run(options: &Options) -> Result<ExitCode, Failure> {
    let machine = Machine::prepare()?;
    let ours = machine.run_ours()?;
    let again = machine.run_ours()?;
    if ours != again {
        return Err("two runs differ: a machine that counts instructions does not depend on the host".into());
    }
    let linux = peer(&machine, &options.linux);
    let missed = print_calls(&ours, linux.as_ref());
    paper::print_tables(&ours, linux.as_ref());
    print_synthesis(&machine)?;
    println!("\nimage: {} bytes of code and data, {} in memory", machine.image_bytes()?.0, machine.image_bytes()?.1);
    println!("two runs gave the same rows, to the instruction");
    Ok(if options.check && missed > 0 { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The rows of the peer; nothing, with the reason, if it cannot be had.
fn peer(machine: &Machine, peer: &Peer) -> Option<Rows> {
    let image = match peer {
        Peer::LeftOut => return None,
        Peer::Given(image) => Ok(image.clone()),
        Peer::Download => machine.debian_image(),
    };
    let rows = image.and_then(|image| machine.run_linux(&image));
    rows.inspect_err(|Failure(reason)| println!("the peer is left out: {reason}\n")).ok()
}

/// A row of the table, with its goal in instructions.
struct Goal {
    name: &'static str,
    title: &'static str,
    limit: f64,
    /// Whether the goal has been reached.
    state: State,
}

/// Whether `--check` holds a goal.
#[derive(PartialEq, Eq)]
enum State {
    Reached,
    Missed,
}

const fn goal(name: &'static str, title: &'static str, limit: f64, state: State) -> Goal {
    Goal { name, title, limit, state }
}

const GOALS: &[Goal] = &[
    goal("getpid", "getpid", 32.0, State::Reached),
    goal("lseek", "lseek", 32.0, State::Reached),
    goal("read-null", "read /dev/null", 32.0, State::Reached),
    goal("pipe-1", "pipe, write and read 1 byte", 95.0, State::Reached),
    goal("pipe-1024", "pipe, 1 KB", 420.0, State::Reached),
    goal("pipe-4096", "pipe, 4 KB", 1210.0, State::Reached),
    goal("file-10x1024", "file, 10 x 1 KB written and read, 2 lseek", 4200.0, State::Reached),
    goal("open-close-null", "open and close /dev/null", 550.0, State::Missed),
    goal("open-close-tty", "open and close a terminal", 600.0, State::Missed),
    goal("open-close-file", "open and close a file", 900.0, State::Missed),
    goal("pipe-close-close", "pipe and two closes", 3000.0, State::Reached),
    goal("bad-pointer", "read to a bad address", 250.0, State::Reached),
    goal("bad-pointer-file", "read of a file to a hole", 250.0, State::Missed),
    goal("pipe-ping-pong", "pipe, round trip of two threads", 800.0, State::Missed),
    goal("futex-ping-pong", "futex, round trip of two threads", 450.0, State::Missed),
    goal("pthread-create-join", "pthread_create and pthread_join", 2200.0, State::Missed),
];

/// Prints the table of calls; returns how many goals are missed that have been reached.
fn print_calls(ours: &Rows, linux: Option<&Rows>) -> usize {
    println!("| instructions per operation, the program's own included | ours | goal | | Linux | ratio |");
    println!("|---|---|---|---|---|---|");
    let mut missed = 0;
    for Goal { name, title, limit, state } in GOALS {
        let Some(own) = ours.get(name) else { continue };
        let holds = own <= *limit;
        missed += usize::from(!holds && *state == State::Reached);
        let verdict = if holds { "met" } else { "missed" };
        let (other, ratio) = peer_columns(own, linux.and_then(|rows| rows.get(name)));
        println!("| {title} | {own:.1} | {limit:.0} | {verdict} | {other} | {ratio} |");
    }
    for (name, own) in ours.others(GOALS.iter().map(|goal| goal.name)) {
        let (other, ratio) = peer_columns(own, linux.and_then(|rows| rows.get(name)));
        println!("| {name} | {own:.1} | | | {other} | {ratio} |");
    }
    missed
}

/// The peer's number and how many times ours it is.
fn peer_columns(own: f64, other: Option<f64>) -> (String, String) {
    other.map_or_else(Default::default, |other| (format!("{other:.1}"), format!("{:.1}x", other / own)))
}

fn print_synthesis(machine: &Machine) -> Result<(), Failure> {
    println!("\n| routine | instructions | bytes of the code area | executed to make and free it, per instruction |");
    println!("|---|---|---|---|");
    for line in machine.measure_synthesis()? {
        let words: Vec<&str> = line.split(' ').collect();
        let [name, instructions, bytes, ticks] = words[..] else { continue };
        let each = ticks.parse::<f64>().unwrap_or(0.0) / instructions.parse::<f64>().unwrap_or(1.0);
        println!("| {name} | {instructions} | {bytes} | {ticks} ({each:.1}) |");
    }
    Ok(())
}
