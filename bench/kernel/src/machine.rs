//! Builds the kernel and the program, and runs machines that count instructions.

use crate::archive;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Why the bench cannot be run.
pub(crate) struct Failure(pub(crate) String);

impl<T: Into<String>> From<T> for Failure {
    fn from(message: T) -> Failure {
        Failure(message.into())
    }
}

/// What the program has measured, in instructions.
#[derive(PartialEq, Debug)]
pub(crate) struct Rows(BTreeMap<String, u64>);

impl Rows {
    fn read(output: &str) -> Result<Rows, Failure> {
        let numbers = output.lines().filter_map(|line| {
            let (name, tenths) = line.trim().strip_prefix("row ")?.split_once(' ')?;
            Some((name.to_owned(), tenths.parse().ok()?))
        });
        let rows = Rows(numbers.collect());
        if !output.contains("wrong 0") {
            return Err(format!("the program did not end well: {output}").into());
        }
        Ok(rows)
    }

    pub(crate) fn get(&self, name: &str) -> Option<f64> {
        self.0.get(name).map(|tenths| *tenths as f64 / 10.0)
    }

    /// The rows with other names.
    pub(crate) fn others<'r>(&'r self, names: impl Iterator<Item = &'r str>) -> Vec<(&'r str, f64)> {
        let names: Vec<&str> = names.collect();
        let others = self.0.iter().filter(|(name, _)| !names.contains(&name.as_str()));
        others.map(|(name, tenths)| (name.as_str(), *tenths as f64 / 10.0)).collect()
    }
}

/// What is run.
pub(crate) struct Machine {
    folder: PathBuf,
    image: PathBuf,
    program: PathBuf,
}

/// Runs a command; its output.
fn output(command: &mut Command) -> Result<String, Failure> {
    let name = command.get_program().display().to_string();
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("cannot start `{name}`: {error}"))?;
    if !output.status.success() {
        return Err(format!("`{name}` fails: {}", String::from_utf8_lossy(&output.stderr)).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn at<T>(path: &Path, result: std::io::Result<T>) -> Result<T, Failure> {
    result.map_err(|error| format!("{}: {error}", path.display()).into())
}

impl Machine {
    /// Builds the kernel and the program.
    pub(crate) fn prepare() -> Result<Machine, Failure> {
        let bench = Path::new(env!("CARGO_MANIFEST_DIR"));
        let root = bench.join("../..");
        let (target, folder) = (root.join("target/kernel"), root.join("target/bench-kernel"));
        let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        build.current_dir(root.join("kernel")).args(["build", "--quiet", "--release", "--target-dir"]);
        build.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
        // Cargo's path is relative to the kernel's folder.
        output(build.arg("../target/kernel"))?;
        at(&folder, fs::create_dir_all(&folder))?;
        let program = folder.join("operations");
        let mut compiler = Command::new("gcc");
        compiler.args(["-static", "-pthread", "-O2", "-o"]).arg(&program).arg(bench.join("programs/operations.c"));
        output(&mut compiler)?;
        Ok(Machine { folder, image: target.join("x86_64-unknown-none/release/quaject-kernel"), program })
    }

    /// Runs a machine to its end; what it writes to its serial ports.
    fn run(&self, image: &Path, ramdisk: Option<&Path>, command_line: &str) -> Result<[String; 2], Failure> {
        let ports = [self.folder.join("console"), self.folder.join("log")];
        // Copies by string instructions would be counted as one, or as one per byte, depending on the features.
        let mut machine = Command::new("qemu-system-x86_64");
        machine.args(["-accel", "tcg", "-icount", "shift=0,sleep=off", "-cpu", "max,-erms,-fsrm", "-m", "512"]);
        machine.args(["-display", "none", "-nodefaults", "-no-reboot"]);
        machine.args(["-device", "isa-debug-exit,iobase=0xf4,iosize=0x04", "-append", command_line]);
        for port in &ports {
            machine.arg("-serial").arg(format!("file:{}", port.display()));
        }
        machine.arg("-kernel").arg(image);
        if let Some(ramdisk) = ramdisk {
            machine.arg("-initrd").arg(ramdisk);
        }
        let status = machine.stdin(Stdio::null()).status();
        status.map_err(|error| format!("cannot start QEMU: {error}"))?;
        let read = |path: &PathBuf| Ok::<_, Failure>(String::from_utf8_lossy(&at(path, fs::read(path))?).into_owned());
        Ok([read(&ports[0])?, read(&ports[1])?])
    }

    /// The rows of the kernel of this repository.
    pub(crate) fn run_ours(&self) -> Result<Rows, Failure> {
        let [console, log] = self.run(&self.image, Some(&self.program), "arg=operations")?;
        Rows::read(&console).map_err(|Failure(message)| format!("{message}; the kernel's log: {log}").into())
    }

    /// The rows of a Linux kernel.
    pub(crate) fn run_linux(&self, image: &Path) -> Result<Rows, Failure> {
        let ramdisk = self.folder.join("ramdisk");
        let program = at(&self.program, fs::read(&self.program))?;
        at(&ramdisk, fs::write(&ramdisk, archive::with_init(&program)))?;
        let [console, _] = self.run(image, Some(&ramdisk), "console=ttyS0 quiet panic=-1 mitigations=off")?;
        Rows::read(&console)
    }

    /// The image of Debian's kernel for virtual machines, from its archive.
    pub(crate) fn debian_image(&self) -> Result<PathBuf, Failure> {
        let dependencies = output(Command::new("apt-cache").args(["depends", "linux-image-cloud-amd64"]))?;
        let package = dependencies.lines().find_map(|line| line.trim().strip_prefix("Depends: "));
        let package = package.ok_or("Debian's archive has no linux-image-cloud-amd64")?;
        let unpacked = self.folder.join(package);
        if !unpacked.is_dir() {
            output(Command::new("apt-get").args(["download", package]).current_dir(&self.folder))?;
            let archive = self.find(&self.folder, &format!("{package}_"))?;
            output(Command::new("dpkg-deb").arg("-x").arg(archive).arg(&unpacked))?;
        }
        self.find(&unpacked.join("boot"), "vmlinuz-")
    }

    /// The file of a folder whose name begins so.
    fn find(&self, folder: &Path, start: &str) -> Result<PathBuf, Failure> {
        let entries = at(folder, fs::read_dir(folder))?.filter_map(Result::ok);
        let mut found = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(start));
        let entry = found.next().ok_or_else(|| format!("{} has no `{start}...`", folder.display()))?;
        Ok(entry.path())
    }

    /// What synthesis costs: a line for each kind of routine.
    pub(crate) fn measure_synthesis(&self) -> Result<Vec<String>, Failure> {
        let [_, log] = self.run(&self.image, None, "measure")?;
        Ok(log.lines().filter_map(|line| line.strip_prefix("synthesis: ")).map(str::to_owned).collect())
    }

    /// The bytes of the image's segments: in the file, and in memory.
    pub(crate) fn image_bytes(&self) -> Result<(u64, u64), Failure> {
        const LOADED: u32 = 1;
        const HEADER_BYTES: usize = 56;
        let image = at(&self.image, fs::read(&self.image))?;
        let word = |at: usize| u64::from_le_bytes(image[at..at + 8].try_into().expect("eight bytes"));
        let start = word(32) as usize;
        let count = usize::from(u16::from_le_bytes([image[56], image[57]]));
        let headers = (0..count).map(|number| start + number * HEADER_BYTES);
        let loaded = headers.filter(|header| image[*header..*header + 4] == LOADED.to_le_bytes());
        Ok(loaded.fold((0, 0), |(file, memory), header| (file + word(header + 32), memory + word(header + 40))))
    }
}
