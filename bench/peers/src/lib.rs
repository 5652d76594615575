//! The peers of the benchmarks that come in packages of the distribution, as one table: build scripts compile the peers
//! that are installed, benchmarks print the others, and `cargo xtask bench` installs their packages. Knows no question.
//! Peers from the package registry of Rust are dependencies of the benchmarks.

mod table;

use std::path::{Path, PathBuf};

pub use table::*;

/// What a package installs, by which it is recognised.
pub enum Sign {
    /// A header, from a folder of headers.
    Header(&'static str),
    /// A file from a folder of libraries.
    Library(&'static str),
    /// A program in the search path, or where the system has its servers.
    Program(&'static str),
}

/// A package of the distribution.
pub struct Package {
    pub name: &'static str,
    /// What benchmarks use of it.
    pub holds: &'static str,
    /// All of them are there where it is installed.
    pub signs: &'static [Sign],
}

/// What a benchmark compares with, if the packages for it are installed.
pub struct Peer {
    /// What the output calls it.
    pub name: &'static str,
    /// The `cfg` that a build script sets where it is installed.
    pub key: &'static str,
    pub packages: &'static [&'static Package],
}

impl Sign {
    /// The places where it may be, the usual one first.
    fn places(&self) -> Vec<PathBuf> {
        let multiarch = format!("{}-linux-gnu", std::env::consts::ARCH);
        match self {
            Sign::Header(name) => {
                let own = Path::new("/usr/include").join(multiarch).join(name);
                vec![Path::new("/usr/include").join(name), own, Path::new("/usr/local/include").join(name)]
            }
            Sign::Library(name) => {
                let own = Path::new("/usr/lib").join(multiarch).join(name);
                let others = ["/usr/lib64", "/usr/lib", "/usr/local/lib"];
                [own].into_iter().chain(others.map(|folder| Path::new(folder).join(name))).collect()
            }
            Sign::Program(name) => {
                let path = std::env::var_os("PATH").unwrap_or_default();
                let usual = ["/usr/bin", "/usr/sbin"].map(PathBuf::from).into_iter();
                usual.chain(std::env::split_paths(&path)).map(|folder| folder.join(name)).collect()
            }
        }
    }

    /// Where it is.
    pub fn find(&self) -> Option<PathBuf> {
        self.places().into_iter().find(|place| place.is_file())
    }

    /// What changes when it appears or disappears. A file that appears is as old as its package, which Cargo takes for
    /// no change; the folder in which it appears is new.
    fn watched(&self) -> PathBuf {
        let places = self.places();
        let usual = places.first().expect("every sign has a usual place");
        let folder = || usual.ancestors().find(|folder| folder.is_dir()).expect("there is a root").to_owned();
        self.find().unwrap_or_else(folder)
    }
}

impl Package {
    /// Whether all that it is recognised by is there.
    pub fn is_installed(&self) -> bool {
        self.missing().is_none()
    }

    /// The first file by which it is recognised that is not there.
    pub fn missing(&self) -> Option<&'static str> {
        let missing = self.signs.iter().find(|sign| sign.find().is_none());
        missing.map(|(Sign::Header(name) | Sign::Library(name) | Sign::Program(name))| *name)
    }
}

impl Peer {
    /// Whether all its packages are installed.
    pub fn is_installed(&self) -> bool {
        self.packages.iter().all(|package| package.is_installed())
    }

    /// The line about it where it is left out: the packages that are missing.
    fn left_out(&self) -> Option<String> {
        let missing = self.packages.iter().filter(|package| !package.is_installed());
        let missing: Vec<&str> = missing.map(|package| package.name).collect();
        let line = || format!("left out: {} (apt-get install {})\n", self.name, missing.join(" "));
        (!missing.is_empty()).then(line)
    }
}

/// The lines about those of these peers that are left out; empty if none is.
pub fn left_out(peers: &[&Peer]) -> String {
    peers.iter().filter_map(|peer| peer.left_out()).collect()
}

/// The peers of a benchmark.
pub fn of_bench(name: &str) -> &'static [&'static Peer] {
    PEERS.iter().find(|(bench, _)| *bench == name).map_or(&[], |(_, peers)| peers)
}

/// The packages that a benchmark needs whatever it compares with.
pub fn required(name: &str) -> &'static [&'static Package] {
    REQUIRED.iter().find(|(bench, _)| *bench == name).map_or(&[], |(_, packages)| packages)
}

/// For a build script: sets the `cfg` of each of these peers that is installed, and writes the lines about the others
/// to `OUT_DIR/left_out.txt`. Cargo runs the script again when a package is removed, or installed at its usual place.
pub fn configure(peers: &[&Peer]) {
    for peer in peers {
        println!("cargo::rustc-check-cfg=cfg({})", peer.key);
        if peer.is_installed() {
            println!("cargo::rustc-cfg={}", peer.key);
        }
        for sign in peer.packages.iter().flat_map(|package| package.signs) {
            println!("cargo::rerun-if-changed={}", sign.watched().display());
        }
    }
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::write(folder.join("left_out.txt"), left_out(peers)).expect("OUT_DIR can be written");
}
