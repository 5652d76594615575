//! `cargo xtask bench NAME`: runs one question of `bench/`, a workspace of its own, so that tests never build the peers
//! it compares with. Knows no question; each is a package `bench/NAME` with a `README.md` and a binary; a package
//! without a binary is what several questions share.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use crate::run::{Failure, cargo, root, succeed};
use crate::tools::{Package, Tool, provide_as_user};

/// The names of the benchmarks, sorted.
fn names() -> Result<Vec<String>, Failure> {
    let folder = root().join("bench");
    let entries = fs::read_dir(&folder).map_err(|error| Failure(format!("cannot read bench/: {error}")))?;
    let folders = entries.filter_map(Result::ok).filter(|entry| entry.path().join("src/main.rs").is_file());
    let mut names: Vec<String> = folders.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// Prints the names, each with the first line of its manifest's description.
pub(crate) fn list() -> Result<(), Failure> {
    let names = names()?;
    if names.is_empty() {
        println!("there are no benchmarks yet");
    }
    for name in names {
        let manifest = fs::read_to_string(root().join("bench").join(&name).join("Cargo.toml"));
        let manifest = manifest.map_err(|error| Failure(format!("cannot read the manifest of {name}: {error}")))?;
        let description = manifest.lines().find_map(|line| line.strip_prefix("description = "));
        println!("{name:<16} {}", description.unwrap_or_default().trim_matches('"'));
    }
    Ok(())
}

/// What becomes of a benchmark on a machine that lacks a package.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Without {
    /// It does not build, or its question cannot be asked.
    Refused,
    /// It runs with the other peers.
    LeftOut,
}

/// A package that benchmarks need in addition to what tests need.
struct Need {
    benches: &'static [&'static str],
    without: Without,
    tool: Tool,
}

const fn need(
    benches: &'static [&'static str],
    without: Without,
    package: &'static str,
    probe: &'static str,
    needed_by: &'static str,
) -> Need {
    Need { benches, without, tool: Tool { package: Package::Named(package), probe, needed_by } }
}

const NEEDS: &[Need] = &[
    need(
        &["ac", "codegen", "filter", "filters-process", "pipe", "queue"],
        Without::Refused,
        "g++",
        "gcc --version && g++ --version",
        "contenders in C and C++",
    ),
    need(&["ac", "filter", "filters-process"], Without::Refused, "clang", "clang --version", "contenders in C"),
    need(&["filter", "queue"], Without::Refused, "pkg-config", "pkg-config --version", "the flags of DPDK"),
    need(&["filter", "queue"], Without::Refused, "libdpdk-dev", "pkg-config --exists libdpdk", "DPDK's libraries"),
    need(&["filter"], Without::Refused, "libpcap-dev", "test -e /usr/include/pcap/pcap.h", "filters of libpcap"),
    need(&["filter"], Without::Refused, "libbpf-dev", "test -e /usr/include/bpf/libbpf.h", "XDP in the kernel"),
    need(&["queue"], Without::Refused, "libck-dev", "test -e /usr/include/ck_ring.h", "Concurrency Kit's ck_ring"),
    need(
        &["queue"],
        Without::Refused,
        "libboost-dev",
        "test -e /usr/include/boost/lockfree/queue.hpp",
        "the queues of Boost",
    ),
    need(
        &["ac"],
        Without::Refused,
        "libboost-context-dev",
        "test -e /usr/include/boost/context/fiber.hpp",
        "the coroutines of Boost",
    ),
    need(
        &["ac"],
        Without::Refused,
        "libboost-fiber-dev",
        "test -e /usr/include/boost/fiber/all.hpp",
        "the fibers of Boost",
    ),
    need(&["codegen"], Without::Refused, "libasmjit-dev", "test -e /usr/include/asmjit/asmjit.h", "AsmJit"),
    need(&["codegen"], Without::Refused, "libtcc-dev", "test -e /usr/include/libtcc.h", "libtcc"),
    need(&["tftp"], Without::Refused, "tftpd-hpa", "test -x /usr/sbin/in.tftpd", "the server tftpd-hpa"),
    need(&["tftp"], Without::Refused, "curl", "curl --version", "the client of the servers"),
    need(&["verify"], Without::Refused, "spin", "spin -V", "Spin"),
    need(&["ac", "filters-process"], Without::LeftOut, "golang-go", "go version", "goroutines and channels of Go"),
    need(&["pipe"], Without::LeftOut, "libisal-dev", "test -e /usr/include/isa-l.h", "the CRC of ISA-L"),
];

/// Installs the packages of a benchmark, or names them; those of peers that can be left out are no failure.
fn provide(name: &str) -> Result<(), Failure> {
    let tools = |without| {
        let own = move |need: &&Need| need.without == without && need.benches.contains(&name);
        NEEDS.iter().filter(own).map(|need| &need.tool)
    };
    provide_as_user(tools(Without::Refused), &format!("bench {name} needs"))?;
    if let Err(Failure(message)) = provide_as_user(tools(Without::LeftOut), &format!("some peers of bench {name} need"))
    {
        eprintln!("{message}\nbench {name} runs without these peers");
    }
    Ok(())
}

/// The packages of crates that Cargo could not build, as its output says.
fn unbuilt(output: &str) -> Vec<&str> {
    let before = ["error: could not compile `", "error: failed to run custom build command for `"];
    let named = output.lines().filter_map(|line| before.iter().find_map(|start| line.strip_prefix(*start)));
    named.filter_map(|rest| rest.split(['`', ' ']).next()).collect()
}

/// The failure to build a benchmark: which crate, and where the output of the compiler is.
fn build_failure(name: &str, output: &str, log: &Path) -> Failure {
    let of_bench = format!("quaject-bench-{name}");
    let crates = unbuilt(output);
    let cause = match crates.iter().find(|own| !own.starts_with("quaject-")) {
        Some(peer) => format!("`{peer}`, which it needs from the package registry, does not build"),
        None if crates.contains(&of_bench.as_str()) => "its own sources do not compile".to_owned(),
        None => output.lines().find(|line| line.starts_with("error")).unwrap_or("Cargo failed").to_owned(),
    };
    Failure(format!(
        "bench {name} cannot be built: {cause}\nthe output of Cargo is in {}; what the bench needs is in bench/{name}/README.md",
        log.display()
    ))
}

/// Builds and runs one benchmark in release mode.
pub(crate) fn run(name: &str, arguments: &[OsString]) -> Result<(), Failure> {
    let names = names()?;
    if !names.iter().any(|known| known == name) {
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        return Err(Failure(format!("there is no benchmark `{name}`; there are: {known}")));
    }
    provide(name)?;
    let manifest = root().join("bench").join(name).join("Cargo.toml");
    eprintln!("building bench {name} and its peers");
    let build = cargo(&["build", "--release", "--manifest-path"]).arg(&manifest).output();
    let build = build.map_err(|error| Failure(format!("cannot start Cargo: {error}")))?;
    if !build.status.success() {
        let log = std::env::temp_dir().join(format!("quaject-bench-{name}.log"));
        fs::write(&log, &build.stderr).map_err(|error| Failure(format!("cannot write {}: {error}", log.display())))?;
        return Err(build_failure(name, &String::from_utf8_lossy(&build.stderr), &log));
    }
    let mut command = cargo(&["run", "--release", "--quiet", "--manifest-path"]);
    command.arg(manifest).arg("--").args(arguments);
    // The binary starts in its own folder, where its data lies.
    succeed(command.current_dir(root().join("bench").join(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_that_does_not_build_is_named_without_the_output_of_the_compiler() {
        let log = Path::new("bench.log");
        for (output, cause) in [
            (
                "   Compiling peer v1.0.0\nerror[E0425]: cannot find value `x` in this scope\n\
                 error: could not compile `peer` (lib) due to 1 previous error\n",
                "`peer`, which it needs from the package registry, does not build",
            ),
            (
                "error: failed to run custom build command for `peer-sys v0.1.0`\n  cc1: fatal error: no header\n",
                "`peer-sys`, which it needs from the package registry, does not build",
            ),
            ("error: could not compile `quaject-bench-crc` (bin)\n", "its own sources do not compile"),
            ("error: failed to get `peer` as a dependency\n", "error: failed to get `peer` as a dependency"),
        ] {
            let Failure(message) = build_failure("crc", output, log);
            let lines: Vec<&str> = message.lines().collect();
            assert_eq!(lines[0], format!("bench crc cannot be built: {cause}"));
            assert!(lines.len() == 2 && lines[1].contains("bench.log"), "{message}");
        }
    }

    #[test]
    fn every_need_is_one_of_a_benchmark() {
        let names = names().unwrap_or_else(|Failure(message)| panic!("{message}"));
        for need in NEEDS {
            let unknown: Vec<_> = need.benches.iter().filter(|bench| !names.iter().any(|own| own == *bench)).collect();
            assert!(!need.benches.is_empty() && unknown.is_empty(), "{unknown:?}");
        }
    }
}
