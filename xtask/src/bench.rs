//! `cargo xtask bench NAME`: runs one question of `bench/`, a workspace of its own, so that tests never build the peers
//! it compares with. Knows no question; each is a package `bench/NAME` with a `README.md` and a binary; a package
//! without a binary is what several questions share.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use quaject_bench_peers::{self as peers, Package};

use crate::run::{Failure, cargo, root, succeed};
use crate::tools::provide_of_bench;

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

/// The packages of the peers of a benchmark, each once.
fn packages_of_peers(name: &str) -> Vec<&'static Package> {
    let mut packages: Vec<&Package> = Vec::new();
    for package in peers::of_bench(name).iter().flat_map(|peer| peer.packages) {
        if packages.iter().all(|own| own.name != package.name) {
            packages.push(package);
        }
    }
    packages
}

/// Installs the packages of a benchmark, or names them. Those of peers are no failure: it runs with the other peers.
fn provide(name: &str) -> Result<(), Failure> {
    provide_of_bench(peers::required(name), &format!("bench {name} needs"))?;
    let of_peers = provide_of_bench(&packages_of_peers(name), &format!("some peers of bench {name} need"));
    if let Err(Failure(message)) = of_peers {
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
    fn what_a_benchmark_needs_is_one_of_a_benchmark() {
        let names = names().unwrap_or_else(|Failure(message)| panic!("{message}"));
        let of_peers = peers::PEERS.iter().map(|(bench, _)| bench);
        let unknown: Vec<_> = of_peers
            .chain(peers::REQUIRED.iter().map(|(bench, _)| bench))
            .filter(|bench| !names.iter().any(|own| own == *bench))
            .collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    /// A peer that xtask says is left out is one that the benchmark itself asks for before it compiles or runs it.
    #[test]
    fn every_peer_is_detected_by_its_benchmark() {
        for (bench, own) in peers::PEERS {
            let folder = root().join("bench").join(bench);
            let files =
                ["build.rs", "src/main.rs"].map(|file| fs::read_to_string(folder.join(file)).unwrap_or_default());
            for peer in *own {
                let symbol = peer.key.to_uppercase();
                let is_asked = |text: &String| {
                    text.contains(&format!("{symbol}.is_installed()"))
                        || text.contains("peer.is_installed()") && text.contains(&format!("(&{symbol},"))
                };
                assert!(files.iter().any(is_asked), "bench/{bench} does not ask for {}", peer.name);
                let lists = ["configure(&[", "left_out(&["];
                let listed = |text: &String| {
                    let mut calls = lists.iter().flat_map(|call| text.split(call).skip(1));
                    calls.any(|rest| rest.split(']').next().is_some_and(|list| list.contains(&format!("&{symbol}"))))
                };
                assert!(files.iter().any(listed), "bench/{bench} does not print that {} is left out", peer.name);
            }
        }
    }

    #[test]
    fn a_package_is_recognised_where_dpkg_has_it_installed() {
        let packages: Vec<_> = peers::PEERS.iter().flat_map(|(bench, _)| packages_of_peers(bench)).collect();
        let mut query = std::process::Command::new("dpkg-query");
        query.args(["--show", "--showformat=${binary:Package} ${db:Status-Status}\n"]);
        // It fails where it does not know one of them, and lists the others.
        let Ok(output) = query.args(packages.iter().map(|package| package.name)).output() else { return };
        let text = String::from_utf8_lossy(&output.stdout);
        for (name, _) in text.lines().filter_map(|line| line.split_once(' ')).filter(|(_, state)| *state == "installed")
        {
            let name = name.split(':').next();
            let package = packages.iter().find(|package| Some(package.name) == name).expect("it was asked for");
            assert_eq!(package.missing(), None, "{}", package.name);
        }
    }

    #[test]
    fn a_peer_without_one_of_its_packages_is_left_out_by_name() {
        use peers::{Peer, Sign};
        static SHELL: Package = Package { name: "dash", holds: "a shell", signs: &[Sign::Program("sh")] };
        static ABSENT: Package =
            Package { name: "made-up-dev", holds: "nothing", signs: &[Sign::Program("sh"), Sign::Header("made_up.h")] };
        static PRESENT_PEER: Peer = Peer { name: "the shell", key: "shell", packages: &[&SHELL] };
        static ABSENT_PEER: Peer = Peer { name: "made up", key: "made_up", packages: &[&SHELL, &ABSENT] };
        assert!(PRESENT_PEER.is_installed() && !ABSENT_PEER.is_installed());
        let lines = peers::left_out(&[&PRESENT_PEER, &ABSENT_PEER]);
        assert_eq!(lines, "left out: made up (apt-get install made-up-dev)\n");
    }
}
