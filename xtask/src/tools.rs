//! The programs that the tests need in addition to Rust, as one table, and the installation of packages.

use std::path::Path;
use std::process::{Command, Stdio};

use quaject_bench_peers as bench;

use crate::run::{Failure, output_of, succeed};
use crate::test::machines::MACHINES;

/// One Debian package that tests need.
pub(crate) struct Tool {
    pub(crate) package: Package,
    /// A shell command that succeeds exactly when the tool is there and works. Never writes to `/dev/null` as a
    /// compiler's output: tcc, run by root, replaces the device by a file.
    pub(crate) probe: &'static str,
    /// Which tests need it.
    pub(crate) needed_by: &'static str,
}

/// Whether packages may be installed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Installation {
    /// The user is root.
    Allowed,
    /// The message names them.
    Denied,
}

impl Installation {
    /// Of the current user.
    fn of_user() -> Result<Installation, Failure> {
        let is_root = output_of(Command::new("id").arg("-u"))? == b"0\n";
        Ok(if is_root { Installation::Allowed } else { Installation::Denied })
    }
}

pub(crate) enum Package {
    Named(&'static str),
    /// The sanitizer libraries carry clang's version in their name.
    ClangRuntime,
}

/// A package that can be installed where it is missing.
trait Provided {
    fn name(&self) -> String;
    fn needed_by(&self) -> &str;
    fn is_there(&self) -> bool;
    /// What is wrong where it is installed, and is not there.
    fn fault(&self) -> String;
}

impl Provided for Tool {
    fn name(&self) -> String {
        self.package.name()
    }
    fn needed_by(&self) -> &str {
        self.needed_by
    }
    fn is_there(&self) -> bool {
        works(self.probe)
    }
    fn fault(&self) -> String {
        format!("`{}` fails", self.probe)
    }
}

impl Provided for bench::Package {
    fn name(&self) -> String {
        self.name.to_owned()
    }
    fn needed_by(&self) -> &str {
        self.holds
    }
    fn is_there(&self) -> bool {
        self.is_installed()
    }
    fn fault(&self) -> String {
        format!("{} is missing", self.missing().unwrap_or_default())
    }
}

const TOOLS: &[Tool] = &[
    Tool {
        package: Package::Named("gcc"),
        probe: "echo 'int main(void) { return 0; }' | (out=$(mktemp) && gcc -x c -o \"$out\" - && rm \"$out\")",
        needed_by: "qj run --engine c, extern functions, every test of generated C",
    },
    Tool {
        package: Package::Named("g++"),
        probe: "echo 'int main() { return 0; }' | (out=$(mktemp) && g++ -x c++ -o \"$out\" - && rm \"$out\")",
        needed_by: "tasks in C++",
    },
    Tool {
        package: Package::Named("gdb"),
        probe: "gdb --version",
        needed_by: "the script that lists tasks in the debugger",
    },
    Tool {
        package: Package::Named("pkg-config"),
        probe: "pkg-config --version",
        needed_by: "programs built against the installed C library",
    },
    Tool {
        package: Package::Named("libpcap0.8"),
        probe: "find /lib /usr/lib /usr/local/lib -name 'libpcap.so.0.8*' | grep -q .",
        needed_by: "packet filters in tcpdump's syntax, `bpf_filter` as the oracle",
    },
    Tool {
        package: Package::Named("tcpdump"),
        probe: "tcpdump --version",
        needed_by: "captures are read, and filters applied, as tcpdump does",
    },
    Tool {
        package: Package::Named("curl"),
        probe: "curl --version",
        needed_by: "the file server of Asynchronous C serves real clients",
    },
    Tool {
        package: Package::Named("atftp"),
        probe: "atftp --version",
        needed_by: "the TFTP server sends and receives windows of blocks",
    },
    Tool { package: Package::Named("tftp-hpa"), probe: "tftp -V", needed_by: "the TFTP server serves real clients" },
    Tool {
        package: Package::Named("tftpd-hpa"),
        probe: "in.tftpd -V || /usr/sbin/in.tftpd -V",
        needed_by: "the TFTP client is served by a real server",
    },
    Tool {
        package: Package::Named("gcc-arm-none-eabi"),
        probe: "arm-none-eabi-gcc --version",
        needed_by: "programs on a Cortex-M3 without a C library",
    },
    Tool {
        package: Package::Named("gcc-riscv64-unknown-elf"),
        probe: "riscv64-unknown-elf-gcc --version",
        needed_by: "programs on a 32-bit RISC-V without a C library",
    },
    Tool {
        package: Package::Named("qemu-system-arm"),
        probe: "qemu-system-arm --version",
        needed_by: "programs on a Cortex-M3 serve real clients",
    },
    Tool {
        package: Package::Named("qemu-system-misc"),
        probe: "qemu-system-riscv32 --version",
        needed_by: "programs on a 32-bit RISC-V serve real clients",
    },
    Tool {
        package: Package::Named("gcc-avr"),
        probe: "avr-gcc --version",
        needed_by: "generated C where an `int` has 16 bits and nothing is aligned",
    },
    Tool {
        package: Package::Named("avr-libc"),
        probe: "echo '#include <avr/io.h>' | avr-gcc -mmcu=atmega2560 -E -o - -",
        needed_by: "generated C on AVR",
    },
    Tool {
        package: Package::Named("simavr"),
        // It lists its cores, and ends with status 1.
        probe: "simavr --list-cores | grep -q atmega2560",
        needed_by: "generated C on AVR",
    },
    Tool {
        package: Package::Named("libsimavr-dev"),
        probe: "echo '#include <sim_avr.h>' | gcc -I/usr/include/simavr -E -o - -",
        needed_by: "a simulated AVR with external memory",
    },
    Tool {
        package: Package::Named("arduino-core-avr"),
        probe: "test -f /usr/share/arduino/hardware/arduino/avr/cores/arduino/Arduino.h",
        needed_by: "libraries for Arduino are built and run",
    },
    Tool {
        package: Package::Named("mosquitto-clients"),
        // They say how they are used, and end with status 1.
        probe: "mosquitto_pub --help | grep -q mosquitto && mosquitto_sub --help | grep -q mosquitto",
        needed_by: "the MQTT broker serves real clients",
    },
    Tool {
        package: Package::Named("python3-can"),
        probe: "/usr/bin/python3 -c 'import can'",
        needed_by: "the CAN bus of this machine is joined by python-can",
    },
    Tool {
        package: Package::Named("python3-msgpack"),
        probe: "/usr/bin/python3 -c 'import msgpack'",
        needed_by: "the form of frames on that bus",
    },
    Tool {
        package: Package::Named("python3-scapy"),
        probe: "/usr/bin/python3 -c 'import scapy.contrib.isotp'",
        needed_by: "the UDS server answers scapy's ISO-TP",
    },
    Tool {
        package: Package::Named("netcat-openbsd"),
        probe: "nc -h",
        needed_by: "half-closed connections to the TCP that is an example",
    },
    Tool { package: Package::Named("iputils-ping"), probe: "ping -V", needed_by: "the kernel pings a program" },
    Tool {
        package: Package::Named("iproute2"),
        probe: "ip -V",
        needed_by: "the drivers of network interfaces, in a network of their own",
    },
    Tool {
        package: Package::Named("wrk"),
        // It says its version, and ends with status 1.
        probe: "wrk --version | grep -q wrk",
        needed_by: "the file server of Asynchronous C serves real clients",
    },
    Tool {
        package: Package::Named("g++-12-aarch64-linux-gnu"),
        probe: "aarch64-linux-gnu-g++-12 --version",
        needed_by: "C++ exceptions through tasks and generated code on AArch64",
    },
    Tool {
        package: Package::Named("g++-12-riscv64-linux-gnu"),
        probe: "riscv64-linux-gnu-g++-12 --version",
        needed_by: "C++ exceptions through tasks and generated code on RISC-V",
    },
    Tool { package: Package::Named("neovim"), probe: "nvim --version", needed_by: "an editor that speaks with qj lsp" },
    Tool { package: Package::Named("bsdutils"), probe: "script --version", needed_by: "qj replay in a terminal" },
    Tool {
        package: Package::Named("binutils"),
        probe: "readelf --version",
        needed_by: "no object of Asynchronous C asks for an executable stack",
    },
    Tool {
        package: Package::Named("clang"),
        probe: "echo 'int main(void) { return 0; }' | (out=$(mktemp) && clang -x c -o \"$out\" - && rm \"$out\")",
        needed_by: "generated C compiles without warnings on both compilers",
    },
    Tool {
        package: Package::Named("clang-14"),
        probe: "clang-14 --print-targets | grep -q lanai",
        needed_by: "vmmc: programs for the simulated card; later versions may lack the target",
    },
    Tool {
        package: Package::Named("llvm-14"),
        probe: "llvm-mc-14 --version",
        needed_by: "vmmc: the decoder of LANai against a disassembler",
    },
    Tool {
        package: Package::Named("cppcheck"),
        probe: "cppcheck --version",
        needed_by: "the violations of MISRA C:2012 in generated C",
    },
    Tool {
        package: Package::ClangRuntime,
        probe: "echo 'int main(void) { return 0; }' \
                | (out=$(mktemp) && clang -fsanitize=address,undefined -x c -o \"$out\" - && rm \"$out\")",
        needed_by: "generated C runs clean under ASan and UBSan of clang",
    },
    Tool {
        package: Package::Named("tcc"),
        probe: "echo 'int main(void) { return 0; }' | tcc -run -",
        needed_by: "random programs: the quickest compiler runs the most of them",
    },
    Tool {
        package: Package::Named("spin"),
        probe: "spin -V",
        needed_by: "qj verify --engine spin: the second opinion on every verdict",
    },
    Tool {
        package: Package::Named("make"),
        probe: "make --version",
        needed_by: "the example that builds generated C into a make project",
    },
    Tool {
        package: Package::Named("ninja-build"),
        probe: "ninja --version",
        needed_by: "qj build is a step of builds by Ninja",
    },
    Tool {
        package: Package::Named("cmake"),
        probe: "cmake --version",
        needed_by: "the example that builds generated C into a CMake project",
    },
    Tool {
        package: Package::Named("valgrind"),
        probe: "valgrind --version",
        needed_by: "instruction counts of generated code",
    },
    Tool {
        package: Package::Named("gdb"),
        probe: "gdb --version",
        needed_by: "gdb breaks, steps and looks at the stack in generated code",
    },
    Tool {
        package: Package::Named("gcc-12-aarch64-linux-gnu"),
        probe: "aarch64-linux-gnu-gcc-12 --version",
        needed_by: "vcode writes code for this machine as its assembler and compiler do",
    },
    Tool {
        package: Package::Named("libc6-dev-arm64-cross"),
        probe: "test -e /usr/aarch64-linux-gnu/lib/libc.a",
        needed_by: "vcode's functions run under qemu-user",
    },
    Tool {
        package: Package::Named("gcc-12-riscv64-linux-gnu"),
        probe: "riscv64-linux-gnu-gcc-12 --version",
        needed_by: "vcode writes code for this machine as its assembler and compiler do",
    },
    Tool {
        package: Package::Named("libc6-dev-riscv64-cross"),
        probe: "test -e /usr/riscv64-linux-gnu/lib/libc.a",
        needed_by: "vcode's functions run under qemu-user",
    },
    Tool {
        package: Package::Named("gcc-12-mips-linux-gnu"),
        probe: "mips-linux-gnu-gcc-12 --version",
        needed_by: "vcode writes code for this machine as its assembler and compiler do",
    },
    Tool {
        package: Package::Named("libc6-dev-mips-cross"),
        probe: "test -e /usr/mips-linux-gnu/lib/libc.a",
        needed_by: "vcode's functions run under qemu-user",
    },
    Tool {
        package: Package::Named("gcc-12-sparc64-linux-gnu"),
        probe: "sparc64-linux-gnu-gcc-12 --version",
        needed_by: "vcode writes code for this machine as its assembler and compiler do",
    },
    Tool {
        package: Package::Named("libc6-dev-sparc64-cross"),
        probe: "test -e /usr/sparc64-linux-gnu/lib/libc.a",
        needed_by: "vcode's functions run under qemu-user",
    },
    Tool {
        package: Package::Named("gcc-12-alpha-linux-gnu"),
        probe: "alpha-linux-gnu-gcc-12 --version",
        needed_by: "vcode writes code for this machine as its assembler and compiler do",
    },
    Tool {
        package: Package::Named("libc6.1-dev-alpha-cross"),
        probe: "test -e /usr/alpha-linux-gnu/lib/libc.a",
        needed_by: "vcode's functions run under qemu-user",
    },
    Tool {
        package: Package::Named("gcc-12-powerpc64le-linux-gnu"),
        probe: "powerpc64le-linux-gnu-gcc-12 --version",
        needed_by: "vcode writes code for this machine as its assembler and compiler do",
    },
    Tool {
        package: Package::Named("libc6-dev-ppc64el-cross"),
        probe: "test -e /usr/powerpc64le-linux-gnu/lib/libc.a",
        needed_by: "vcode's functions run under qemu-user",
    },
    Tool {
        package: Package::Named("qemu-system-x86"),
        probe: "qemu-system-x86_64 --version",
        needed_by: "the kernel runs programs",
    },
    Tool {
        package: Package::Named("seabios"),
        probe: "test -e /usr/share/seabios/bios-256k.bin",
        needed_by: "the kernel's machine starts",
    },
    Tool {
        package: Package::Named("musl-tools"),
        probe: "musl-gcc --version",
        needed_by: "programs that the kernel runs, with a second C library",
    },
    Tool {
        package: Package::Named("qemu-user"),
        probe: "qemu-riscv64 --version",
        needed_by: "vcode's functions run on machines that are not this one",
    },
];

/// Installs what is missing when that is possible, and otherwise says how the user can.
pub(crate) fn provide() -> Result<(), Failure> {
    // A user of the product needs only the targets in `rust-toolchain.toml`.
    let of_machines = MACHINES.iter().map(|machine| machine.target);
    provide_targets(of_machines.chain(["wasm32-unknown-unknown", "x86_64-unknown-none"]))?;
    provide_packages(TOOLS.iter(), "the tests need", Installation::of_user()?)
}

/// Installs the missing ones of these packages of benchmarks, as the current user.
pub(crate) fn provide_of_bench(packages: &[&bench::Package], purpose: &str) -> Result<(), Failure> {
    provide_packages(packages.iter().copied(), purpose, Installation::of_user()?)
}

/// Installs the missing ones of these packages. If that is not possible, the failure names them, what each is for, and
/// the command that installs them. The purpose ends in a verb: `the tests need`.
fn provide_packages<'t, T: Provided + 't>(
    tools: impl Iterator<Item = &'t T>,
    purpose: &str,
    installation: Installation,
) -> Result<(), Failure> {
    let missing: Vec<&T> = tools.filter(|tool| !tool.is_there()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let for_user = |cause: &str| {
        let names: Vec<String> = missing.iter().map(|tool| tool.name()).collect();
        let each = missing.iter().map(|tool| format!("missing: {} ({})\n", tool.name(), tool.needed_by()));
        Failure(format!(
            "{purpose} packages this machine lacks{cause}\n{}install them and try again:\n\
             sudo apt-get update && sudo apt-get install --no-install-recommends {}",
            each.collect::<String>(),
            names.join(" ")
        ))
    };
    if !works("apt-get --version") {
        return Err(for_user("; this is no Debian system: install what they hold by its own means"));
    }
    if installation == Installation::Denied {
        return Err(for_user(""));
    }
    let install = || {
        succeed(apt(&["update", "-qq"]).stdout(Stdio::null()))?;
        // Names are asked for after the update: the runtime's depends on the version of clang on offer.
        let names: Vec<String> = missing.iter().map(|tool| tool.name()).collect();
        eprintln!("installing {}", names.join(" "));
        let mut install = apt(&["install", "-y", "-qq", "--no-install-recommends"]);
        succeed(install.args(&names).stdout(Stdio::null()))
    };
    install().map_err(|Failure(cause)| for_user(&format!("; {cause}")))?;
    match missing.iter().find(|tool| !tool.is_there()) {
        None => Ok(()),
        Some(tool) => Err(Failure(format!("{} is installed, yet {}", tool.name(), tool.fault()))),
    }
}

/// Installs the standard libraries of these targets. A toolchain without rustup must already have them.
pub(crate) fn provide_targets(targets: impl IntoIterator<Item = &'static str>) -> Result<(), Failure> {
    let sysroot = output_of(Command::new("rustc").current_dir(crate::run::root()).args(["--print", "sysroot"]))?;
    let sysroot = String::from_utf8(sysroot).map_err(|_| Failure("rustc's sysroot is not UTF-8".into()))?;
    let libraries = Path::new(sysroot.trim()).join("lib/rustlib");
    for target in targets.into_iter().filter(|target| !libraries.join(target).exists()) {
        let mut rustup = Command::new("rustup");
        succeed(rustup.current_dir(crate::run::root()).args(["target", "add", target]))
            .map_err(|Failure(reason)| Failure(format!("the target {target} is missing: {reason}")))?;
    }
    Ok(())
}

impl Package {
    fn name(&self) -> String {
        match self {
            Package::Named(name) => (*name).to_owned(),
            Package::ClangRuntime => format!("libclang-rt-{}-dev", clang_version().unwrap_or_else(|| "14".into())),
        }
    }
}

/// The version the package `clang` stands for: it depends on `clang-14`, say.
fn clang_version() -> Option<String> {
    let depends = output_of(Command::new("apt-cache").args(["depends", "clang"])).ok()?;
    version_in(&String::from_utf8(depends).ok()?)
}

fn version_in(depends: &str) -> Option<String> {
    depends.lines().find_map(|line| line.trim().strip_prefix("Depends: clang-")).map(str::to_owned)
}

fn works(probe: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", probe]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    shell.status().is_ok_and(|status| status.success())
}

fn apt(arguments: &[&str]) -> Command {
    let mut command = Command::new("apt-get");
    command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_runtime_follows_the_version_of_clang() {
        let depends = "clang\n  Depends: clang-14\n  Breaks: <clang-3.2>\n";
        assert_eq!(version_in(depends).as_deref(), Some("14"));
        assert_eq!(version_in("clang\n"), None);
    }

    #[test]
    fn missing_packages_are_named_with_their_use_and_the_command_that_installs_them() {
        let tool = |package, probe, needed_by| Tool { package: Package::Named(package), probe, needed_by };
        let tools = [
            tool("there", "true", "everything"),
            tool("made-up-dev", "no-such-tool-anywhere --version", "the peer of that name"),
            tool("other-dev", "false", "another peer"),
        ];
        let Failure(message) = provide_packages(tools.iter(), "the peers of `crc` need", Installation::Denied)
            .expect_err("two of them are missing");
        let lines: Vec<&str> = message.lines().collect();
        assert!(lines[0].starts_with("the peers of `crc` need packages this machine lacks"), "{message}");
        let expected = [
            "missing: made-up-dev (the peer of that name)",
            "missing: other-dev (another peer)",
            "install them and try again:",
            "sudo apt-get update && sudo apt-get install --no-install-recommends made-up-dev other-dev",
        ];
        assert_eq!(lines[1..], expected);
        assert!(provide_packages(tools[..1].iter(), "the tests need", Installation::Denied).is_ok());
    }

    #[test]
    fn a_probe_distinguishes_present_from_missing_tools() {
        assert!(works("true"));
        assert!(!works("no-such-tool-anywhere --version"));
    }
}
