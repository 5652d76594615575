//! Machines that run generated C: how values lie in their memory, and what runs an executable of each. Knows no ESP.

use quaject_test_support::tool;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The order of the bytes of an integer in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ByteOrder {
    /// The least significant byte first.
    Little,
    /// The most significant byte first.
    Big,
}

impl ByteOrder {
    /// Brings bytes from little-endian order to this one, or back.
    pub fn arrange(self, bytes: &mut [u8]) {
        match self {
            ByteOrder::Little => {}
            ByteOrder::Big => bytes.reverse(),
        }
    }
}

/// What runs an executable.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Runner {
    /// This machine.
    Native,
    /// An emulator of another one, whose first argument is the executable.
    Emulator(PathBuf),
}

/// A machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Machine {
    /// The order of the bytes of an integer.
    pub order: ByteOrder,
    /// The maximum alignment of an integer, in bytes.
    pub max_align: u64,
    runner: Runner,
}

impl Machine {
    /// This one.
    pub fn native() -> Machine {
        Machine { order: ByteOrder::Little, max_align: 8, runner: Runner::Native }
    }

    /// A command that runs an executable.
    pub fn command(&self, executable: &Path) -> Command {
        match &self.runner {
            Runner::Native => Command::new(executable),
            Runner::Emulator(emulator) => {
                let mut command = Command::new(emulator);
                command.arg(executable);
                command
            }
        }
    }
}

/// A C compiler, and the machine that runs what it makes.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// Its command.
    pub command: String,
    /// Its options.
    pub options: Vec<String>,
    /// The machine.
    pub machine: Machine,
}

impl Compiler {
    /// A compiler for this machine.
    pub fn native(command: &str, options: &[&str]) -> Compiler {
        Compiler::on(Machine::native(), command, options)
    }

    fn on(machine: Machine, command: &str, options: &[&str]) -> Compiler {
        let options = options.iter().map(|option| (*option).to_string()).collect();
        Compiler { command: command.to_string(), options, machine }
    }

    /// MIPS: big-endian, 32 bits; emulated by qemu. None if the machine lacks the tools.
    pub fn mips(options: &[&str]) -> Option<Compiler> {
        let emulator = tool(&["qemu-mips"])?;
        let command = tool(&["mips-linux-gnu-gcc-12"])?;
        let machine = Machine { order: ByteOrder::Big, max_align: 8, runner: Runner::Emulator(emulator.into()) };
        Some(Compiler::on(machine, command, &[&["-static"], options].concat()))
    }

    /// An ATmega2560 with external memory in all of its data space: `int` has 16 bits, integers are aligned to one
    /// byte. Its simulator is built in `folder`. None if the machine lacks the tools.
    ///
    /// # Panics
    /// When the simulator does not compile.
    pub fn avr(folder: &Path, options: &[&str]) -> Option<Compiler> {
        let command = tool(&["avr-gcc"])?;
        // The package of the simulator's library has this program, too.
        let (native, _) = (tool(&["gcc"])?, tool(&["simavr"])?);
        let (source, simulator) = (folder.join("avr.c"), folder.join("avr"));
        std::fs::write(&source, include_str!("avr.c")).expect("the folder is writable");
        let built = Command::new(native)
            .args(["-std=gnu99", "-O2", "-I/usr/include/simavr", "-o"])
            .arg(&simulator)
            .arg(&source)
            .arg("-lsimavr")
            .output()
            .expect("gcc was found");
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let machine = Machine { order: ByteOrder::Little, max_align: 1, runner: Runner::Emulator(simulator) };
        // 64 KiB of memory behind the registers; the stack begins at its end.
        let memory = ["-mmcu=atmega2560", "-Wl,--defsym=__DATA_REGION_LENGTH__=0xfe00", "-Wl,--defsym=__stack=0xffff"];
        Some(Compiler::on(machine, command, &[&memory, options].concat()))
    }
}
