//! Translates, compiles and runs programs in 'C.

use quaject_test_support::HANG_TIMEOUT;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// The folder of the package.
pub(crate) const FOLDER: &str = env!("CARGO_MANIFEST_DIR");

pub(crate) fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("tickc-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("the folder for test files can be made");
    folder
}

pub(crate) fn succeed(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// The translation of a program in a scratch folder.
pub(crate) fn translated(compiler: &str, source: &Path, folder: &Path) -> PathBuf {
    let mut preprocessor = Command::new(compiler);
    preprocessor.args(["-E", "-x", "c", "-fno-dollars-in-identifiers"]).arg(source);
    let text = String::from_utf8(succeed(&mut preprocessor).stdout).expect("the programs are ASCII");
    let translation = quaject_tickc::translate(&text);
    let messages: Vec<String> = translation.diagnostics.iter().map(|own| own.located_message(&text)).collect();
    assert!(messages.is_empty(), "{messages:#?}");
    let name = source.file_stem().expect("it is a file").to_string_lossy();
    let path = folder.join(format!("{name}-{compiler}.c"));
    std::fs::write(&path, format!("#include <quaject/tickc.h>\n{}", translation.text)).expect("files can be written");
    path
}

/// A compiler with the folders of headers.
pub(crate) fn with_headers(compiler: &str) -> Command {
    let mut command = Command::new(compiler);
    command.args(["-std=gnu11", "-I"]).arg(format!("{FOLDER}/include"));
    command.arg("-I").arg(format!("{FOLDER}/../vcode/include"));
    command
}

/// A machine that programs run on.
#[derive(Clone, Copy)]
pub(crate) struct Machine {
    pub(crate) compiler: &'static str,
    /// Empty for the machine of the test.
    pub(crate) emulator: &'static str,
    pub(crate) linkage: &'static [&'static str],
}

impl Machine {
    /// Runs a program.
    pub(crate) fn command(&self, program: &Path) -> Command {
        if self.emulator.is_empty() {
            return Command::new(program);
        }
        let mut command = Command::new(self.emulator);
        command.env("QEMU_LD_PREFIX", "/usr/alpha-linux-gnu").arg(program);
        command
    }
}

const fn emulated(compiler: &'static str, emulator: &'static str) -> Machine {
    Machine { compiler, emulator, linkage: &["-static"] }
}

/// The other machines of vcode.
pub(crate) const MACHINES: &[Machine] = &[
    // Threads need the shared library there.
    Machine { linkage: &[], ..emulated("alpha-linux-gnu-gcc-12", "qemu-alpha") },
    emulated("aarch64-linux-gnu-gcc-12", "qemu-aarch64"),
    emulated("riscv64-linux-gnu-gcc-12", "qemu-riscv64"),
    emulated("mips-linux-gnu-gcc-12", "qemu-mips"),
    emulated("sparc64-linux-gnu-gcc-12", "qemu-sparc64"),
    emulated("powerpc64le-linux-gnu-gcc-12", "qemu-ppc64le"),
];

/// The run-time library as objects.
pub(crate) fn library(compiler: &str, folder: &Path) -> Vec<PathBuf> {
    library_with(compiler, &[], folder)
}

/// The same, compiled with more options.
pub(crate) fn library_with(compiler: &str, options: &[&str], folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(format!("{FOLDER}/src/runtime")).expect("the folder is readable");
    let files = files.map(|entry| entry.expect("the folder is readable").path());
    let sources = files.filter(|path| path.extension().is_some_and(|ending| ending == "c"));
    let objects = sources.map(|source| {
        let name = source.file_stem().expect("it is a file").to_string_lossy().into_owned();
        let object = folder.join(format!("{name}-{compiler}.o"));
        let mut command = with_headers(compiler);
        command.args(["-O1", "-Wall", "-Wextra", "-Werror", "-c"]).args(options).arg(source);
        succeed(command.arg("-o").arg(&object));
        object
    });
    objects.collect()
}

/// What a program prints. One that does not end is stopped: generated code may loop.
pub(crate) fn run(command: &mut Command) -> String {
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
    let start = Instant::now();
    while child.try_wait().expect("it is our child").is_none() {
        if start.elapsed() > HANG_TIMEOUT {
            _ = child.kill();
            panic!("{command:?} does not end");
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let output = child.wait_with_output().expect("it has ended");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {}: {text}", output.status);
    text
}
