//! The drivers of `qj run`, on every engine, against sockets, files, commands, terminals and interfaces of the system.

mod can;
mod endpoints;
mod fault_injection;
mod files;
mod frames;
mod ring;
mod tcp;
mod types;
mod udp;

use quaject_test_support::qj::qj_binary;
use quaject_test_support::{HANG_TIMEOUT, free_ports, quick_compiler, tool};
use std::io::Read;
use std::net::UdpSocket;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The engines of `qj run` that this machine can use.
fn engines() -> Vec<&'static str> {
    let mut engines = vec!["interp", "jit"];
    engines.extend(tool(&["cc"]).map(|_| "c"));
    engines
}

/// `qj run` on a program, in a folder.
fn qj(folder: &Path, engine: &str, program: &str, arguments: &[&str]) -> Command {
    std::fs::write(folder.join("program.esp"), program).expect("the folder is writable");
    let mut command = Command::new(qj_binary());
    command
        .current_dir(folder)
        .env("NO_COLOR", "1")
        .env("CC", quick_compiler())
        .args(["run", "program.esp", "--engine", engine])
        .args(arguments);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).to_string()
}

/// A program that runs until it is stopped.
struct Running(Option<Child>);

impl Running {
    fn start(command: &mut Command) -> Running {
        Running(Some(command.spawn().expect("cargo built qj")))
    }

    fn id(&self) -> u32 {
        self.0.as_ref().expect("it runs until it is stopped").id()
    }

    /// Stops it by a signal, and returns its output.
    fn stop(mut self) -> Output {
        let child = self.0.take().expect("it is stopped once");
        let signalled = Command::new("kill").args(["-TERM", &child.id().to_string()]).status();
        assert!(signalled.is_ok_and(|status| status.success()), "the program has ended already");
        child.wait_with_output().expect("it is our child")
    }

    /// Its output after it has ended by itself.
    fn end(mut self) -> Output {
        let child = self.0.take().expect("it is waited for once");
        wait_for(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            // A test has failed and reports it.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn wait_for(mut child: Child) -> Output {
    let started = Instant::now();
    while child.try_wait().expect("it is our child").is_none() {
        if started.elapsed() > HANG_TIMEOUT {
            let _ = child.kill();
            let mut said = String::new();
            let _ = child.stderr.take().expect("it is a pipe").read_to_string(&mut said);
            panic!("the program still runs after {HANG_TIMEOUT:?}:\n{said}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("it is our child")
}

/// A socket of the test, and a port that is free.
fn socket_and_port() -> (UdpSocket, u16) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("loopback has ports");
    socket.set_read_timeout(Some(Duration::from_millis(200))).expect("the time is not zero");
    (socket, free_ports(1))
}

/// Repeats an attempt until it succeeds, because the program needs time to start.
fn eventually<T>(what: &str, mut attempt: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(outcome) = attempt() {
            return outcome;
        }
        assert!(started.elapsed() < HANG_TIMEOUT, "{what} does not happen");
        std::thread::sleep(Duration::from_millis(10));
    }
}
