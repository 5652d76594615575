//! Builds the kernel's image and the test programs, and starts machines. Judges nothing.

use quaject_test_support::{HANG_TIMEOUT, tool};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The emulator.
const EMULATOR: &str = "qemu-system-x86_64";

/// What the command of a machine needs; nothing, after a loud message, on a computer without the emulator.
pub(crate) fn emulator() -> Option<&'static str> {
    tool(&[EMULATOR])
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the package lies in tests/kernel")
}

/// The image, built once for all tests, with checks of overflow and of the kernel's own assertions.
pub(crate) fn image() -> &'static Path {
    static IMAGE: OnceLock<PathBuf> = OnceLock::new();
    IMAGE.get_or_init(|| {
        let target = root().join("target/kernel");
        let mut build = Command::new(env!("CARGO"));
        build.current_dir(root().join("kernel")).args(["build", "--quiet", "--target-dir"]).arg(&target);
        // The kernel's workspace has flags of its own.
        build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("CARGO_BUILD_TARGET");
        let output = build.output().expect("Cargo has built this test, so it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        target.join("x86_64-unknown-none/debug/quaject-kernel")
    })
}

/// How a C program is linked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Linking {
    /// With glibc, at fixed addresses.
    Glibc,
    /// With glibc, at any address.
    GlibcRelocatable,
    /// With musl.
    Musl,
}

impl Linking {
    /// The compiler that links so; nothing, after a loud message, on a computer without it.
    pub(crate) fn compiler(self) -> Option<&'static str> {
        match self {
            Linking::Glibc | Linking::GlibcRelocatable => tool(&["gcc"]),
            Linking::Musl => tool(&["musl-gcc"]),
        }
    }
}

/// Compiles `programs/NAME.c` into the folder.
pub(crate) fn compile(folder: &Path, name: &str, compiler: &str, linking: Linking) -> PathBuf {
    let program = folder.join(name);
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name).with_extension("c");
    let form = match linking {
        Linking::Glibc | Linking::Musl => "-static",
        Linking::GlibcRelocatable => "-static-pie",
    };
    let mut command = Command::new(compiler);
    command.args([form, "-pthread", "-O1", "-Wno-unused-result", "-o"]).arg(&program).arg(&source);
    let output = command.output().expect("the compiler has been started before");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

/// What a machine has left.
#[derive(Debug)]
pub(crate) struct Machine {
    /// What the program wrote.
    pub(crate) console: String,
    /// What the kernel reported, without its last line.
    pub(crate) log: String,
    /// The last line of the log, behind `outcome: `.
    pub(crate) outcome: String,
    /// The status of QEMU.
    pub(crate) status: Option<i32>,
}

/// A word of the kernel's command line.
pub(crate) fn word(name: &str, value: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'/' | b'-' => char::from(byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    format!("{name}={}", value.bytes().map(encode).collect::<String>())
}

/// Starts the kernel with a command line and an initial ramdisk, and waits for its end.
pub(crate) fn boot(emulator: &str, command_line: &str, ramdisk: Option<&Path>) -> Machine {
    let folder = TempDir::new().expect("the temporary folder can be written");
    let (console, log) = (folder.path().join("console"), folder.path().join("log"));
    let mut command = Command::new(emulator);
    command.args(["-accel", "tcg", "-cpu", "max,-erms,-fsrm", "-m", "512", "-display", "none", "-nodefaults"]);
    command.args(["-no-reboot", "-device", "isa-debug-exit,iobase=0xf4,iosize=0x04", "-append", command_line]);
    for port in [&console, &log] {
        command.arg("-serial").arg(format!("file:{}", port.display()));
    }
    command.arg("-kernel").arg(image());
    if let Some(ramdisk) = ramdisk {
        command.arg("-initrd").arg(ramdisk);
    }
    let mut machine = command.stdin(Stdio::null()).spawn().expect("the emulator has been started before");
    let start = Instant::now();
    let status = loop {
        if let Some(status) = machine.try_wait().expect("the machine is a child") {
            break status;
        }
        if start.elapsed() > HANG_TIMEOUT {
            machine.kill().expect("the machine is a child");
            panic!("the machine hangs; its log: {}", read(&log));
        }
        thread::sleep(Duration::from_millis(5));
    };
    let log = read(&log);
    let (log, outcome) = log.rsplit_once("outcome: ").unwrap_or((&log, ""));
    Machine {
        console: read(&console),
        log: log.to_owned(),
        outcome: outcome.trim_end().to_owned(),
        status: status.code(),
    }
}

fn read(path: &Path) -> String {
    String::from_utf8_lossy(&fs::read(path).unwrap_or_default()).into_owned()
}
