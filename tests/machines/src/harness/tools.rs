//! The compiler, assembler and disassembler of a machine.

use quaject_test_support::HANG_TIMEOUT;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Tools;

/// Whether the tools are there. Missing tools fail the test where they are promised (`CI=true`), and skip it elsewhere.
pub fn available(tools: &Tools) -> bool {
    let compiler = compiler(tools);
    let missing: Vec<&str> = [Some(compiler.as_str()), tools.qemu]
        .into_iter()
        .flatten()
        .filter(|tool| Command::new(tool).arg("--version").output().is_err())
        .collect();
    if missing.is_empty() {
        return true;
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "missing: {}", missing.join(", "));
    eprintln!("skipped: missing {}", missing.join(", "));
    false
}

/// The C compiler for a machine. Debian's unversioned cross compilers cannot be installed beside `gcc-multilib`, the
/// versioned ones can.
pub fn compiler(tools: &Tools) -> String {
    let plain = format!("{}gcc", tools.prefix);
    let versions = (12..=16).map(|version| format!("{plain}-{version}"));
    let present = |name: &String| Command::new(name).arg("--version").output().is_ok();
    std::iter::once(plain.clone()).chain(versions).find(present).unwrap_or(plain)
}

/// The command that runs a program of a machine.
pub fn emulated(tools: &Tools, program: &Path) -> Command {
    let Some(qemu) = tools.qemu else { return Command::new(program) };
    let mut command = Command::new(qemu);
    if let Some(sysroot) = tools.sysroot {
        command.env("QEMU_LD_PREFIX", sysroot);
    }
    command.arg(program);
    command
}

/// What a program prints. One that does not end is stopped: generated code that loops must fail its test, not hang it.
pub fn output_in_time(command: &mut Command) -> Output {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
    let (stdout, stderr) = (child.stdout.take().expect("it is piped"), child.stderr.take().expect("it is piped"));
    let read = |mut from: Box<dyn Read + Send>| {
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            _ = from.read_to_end(&mut bytes);
            bytes
        })
    };
    let (stdout, stderr) = (read(Box::new(stdout)), read(Box::new(stderr)));
    let start = Instant::now();
    let status = loop {
        match child.try_wait().expect("it is our child") {
            Some(status) => break status,
            None if start.elapsed() > HANG_TIMEOUT => {
                _ = child.kill();
                _ = child.wait();
                panic!("{command:?} has not ended after {HANG_TIMEOUT:?}");
            }
            None => std::thread::sleep(Duration::from_millis(5)),
        }
    };
    let bytes = |thread: std::thread::JoinHandle<Vec<u8>>| thread.join().expect("reading does not fail");
    Output { status, stdout: bytes(stdout), stderr: bytes(stderr) }
}

pub fn scratch_folder(prefix: &str, purpose: &str) -> PathBuf {
    // Tests of one machine run at once: each folder has a number of its own.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let machine = if prefix.is_empty() { "native-" } else { prefix };
    let name = format!("machines-{machine}{purpose}-{}-{number}", std::process::id());
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).expect("the folder for test files can be made");
    folder
}

pub fn write(path: &Path, bytes: &[u8]) {
    std::fs::write(path, bytes).expect("test files can be written");
}

pub fn build_runner(tools: &Tools, folder: &Path, c: &str) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/runner.c");
    let runner = folder.join("runner");
    let extra = folder.join("extra.c");
    write(&extra, c.as_bytes());
    let mut command = Command::new(compiler(tools));
    command.args(["-O1", "-no-pie", "-o"]).arg(&runner).arg(&source).arg(&extra);
    if tools.sysroot.is_none() {
        command.arg("-static");
    }
    let output = command.output().expect("the compiler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

pub fn assemble(tools: &Tools, folder: &Path, text: &str) -> Vec<u8> {
    let (source, object, binary) = (folder.join("text.s"), folder.join("text.o"), folder.join("text.bin"));
    write(&source, text.as_bytes());
    let output = Command::new(format!("{}as", tools.prefix))
        .args(tools.assembler)
        .arg("-o")
        .arg(&object)
        .arg(&source)
        .output()
        .expect("the assembler starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let status = Command::new(format!("{}objcopy", tools.prefix))
        .args(["-O", "binary", "-j", ".text"])
        .arg(&object)
        .arg(&binary)
        .status()
        .expect("objcopy starts");
    assert!(status.success(), "objcopy: {status}");
    std::fs::read(&binary).expect("objcopy wrote its output")
}

/// The instructions of a file as binutils prints them, without REX prefixes that change nothing, each with its distance
/// instead of its target.
pub fn disassemble(tools: &Tools, path: &Path) -> Vec<String> {
    let output = Command::new(format!("{}objdump", tools.prefix))
        .args(["-D", "-b", "binary", "-m", "i386:x86-64", "--no-show-raw-insn", "-w"])
        .arg(path)
        .output()
        .expect("objdump starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<(i64, String)> = Vec::new();
    for line in text.lines() {
        let Some((address, insn)) = line.trim().split_once(":\t") else { continue };
        let Ok(address) = i64::from_str_radix(address.trim(), 16) else { continue };
        let insn = insn
            .trim()
            .trim_start_matches("rex.W ")
            .trim_start_matches("rex ")
            .replace("lock rex ", "lock ")
            .replace(" 0x0(", " (")
            .replace(",0x0(", ",(");
        lines.push((address, insn.to_string()));
    }
    let mut out = Vec::new();
    for (address, insn) in &lines {
        let words: Vec<&str> = insn.split_whitespace().collect();
        let relative = words.last().and_then(|target| target.strip_prefix("0x")).and_then(|target| {
            let jump = words.len() == 2 && (words[0].starts_with('j') || words[0].starts_with("call"));
            jump.then(|| u64::from_str_radix(target, 16).ok()).flatten().map(|target| target as i64)
        });
        match relative {
            Some(target) => out.push(format!("{} .{:+}", words[0], target.wrapping_sub(*address))),
            // Shifts by one have an encoding, and a spelling, of their own.
            None if words.len() == 2
                && ["shl", "shr", "sar", "rol", "ror"].contains(&words[0])
                && !words[1].contains(',') =>
            {
                out.push(format!("{} $0x1,{}", words[0], words[1]));
            }
            // Distances count from the end of an instruction, whose length may differ.
            None if insn.contains("(%rip)") => {
                let target = insn.split(" # 0x").nth(1).and_then(|target| i64::from_str_radix(target, 16).ok());
                let rest = insn.split("(%rip)").nth(1).and_then(|rest| rest.split_whitespace().next());
                let distance = target.map(|target| target.wrapping_sub(*address));
                out.push(format!("{} .{distance:?}{rest:?}", words[0]));
            }
            // Which of two exchanged registers comes first is a matter of taste.
            None if words[0] == "xchg" => {
                let mut registers: Vec<&str> = words[1].split(',').collect();
                registers.sort_unstable();
                out.push(format!("xchg {}", registers.join(",")));
            }
            None => out.push(words.join(" ").split(" # ").next().unwrap_or_default().to_string()),
        }
    }
    out
}
