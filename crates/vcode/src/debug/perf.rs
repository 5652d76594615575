//! The two interfaces of `perf` for generated code: the map of symbols, and jitdump files with bytes and lines. `perf`
//! uses the map for anonymous memory only, which [`Memory`](crate::Memory) is not: its code needs a jitdump file.
//!
//! ```text
//! perf record -k mono ./program; perf inject --jit -i perf.data -o perf.jit; perf annotate -i perf.jit
//! ```

use std::ffi::{c_int, c_long, c_void};
use std::format;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::ptr::null_mut;
use std::vec::Vec;

use super::elf::machine;
use super::{FunctionInfo, Line};
use crate::memory::PAGE;
use crate::memory::linux::{MAP_PRIVATE, PROT_EXEC, PROT_READ, mmap, munmap};

/// The file of symbols that `perf` looks for: address, length and name of each function.
#[derive(Debug)]
pub struct Map {
    file: File,
}

impl Map {
    /// Opens the file of this process in `/tmp`, where `perf` looks for it.
    ///
    /// # Errors
    /// Those of opening a file.
    pub fn open() -> io::Result<Map> {
        Map::open_in(Path::new("/tmp"))
    }

    /// Opens it in another folder.
    ///
    /// # Errors
    /// Those of opening a file.
    pub fn open_in(folder: &Path) -> io::Result<Map> {
        let path = folder.join(format!("perf-{}.map", std::process::id()));
        Ok(Map { file: OpenOptions::new().create(true).append(true).open(path)? })
    }

    /// Adds a function.
    ///
    /// # Errors
    /// Those of writing a file.
    pub fn add(&mut self, described: &FunctionInfo<'_>) -> io::Result<()> {
        // One write per line: other threads may append too.
        let line = format!("{:x} {:x} {}\n", described.entry, described.code.len(), described.name);
        self.file.write_all(line.as_bytes())
    }
}

const MAGIC: u32 = 0x4a69_5444;
const HEADER_BYTES: u32 = 40;
const LOAD: u32 = 0;
const LINES: u32 = 2;

/// A jitdump file. `perf record` finds it by its mapping, so keep this value until the program ends.
#[derive(Debug)]
pub struct Dump {
    file: File,
    path: PathBuf,
    marker: *mut c_void,
    count: u64,
}

// SAFETY: the mapping is only ever unmapped, once, when the value is dropped.
unsafe impl Send for Dump {}

impl Dump {
    /// Creates `jit-PID.dump` in a folder.
    ///
    /// # Errors
    /// Those of creating and mapping a file.
    pub fn create(folder: &Path) -> io::Result<Dump> {
        let path = folder.join(format!("jit-{}.dump", std::process::id()));
        let mut file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path)?;
        let mut header = Vec::new();
        for word in [MAGIC, 1, HEADER_BYTES, u32::from(machine()), 0, std::process::id()] {
            put_native(&mut header, word);
        }
        header.extend(now().to_ne_bytes());
        header.extend(0_u64.to_ne_bytes());
        file.write_all(&header)?;
        // SAFETY: a system call that creates a new mapping; its result is checked.
        let marker = unsafe {
            mmap(null_mut(), PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, std::os::fd::AsRawFd::as_raw_fd(&file), 0)
        };
        if marker as isize == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Dump { file, path, marker, count: 0 })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a function with its bytes and lines.
    ///
    /// # Errors
    /// Those of writing a file.
    pub fn add(&mut self, described: &FunctionInfo<'_>) -> io::Result<()> {
        let entry = described.entry as u64;
        let mut lines = Vec::new();
        lines.extend(entry.to_ne_bytes());
        lines.extend((described.lines.len() as u64).to_ne_bytes());
        for Line { offset, source, line } in described.lines {
            lines.extend((entry + *offset as u64).to_ne_bytes());
            put_native(&mut lines, *line as u32);
            put_native(&mut lines, 0);
            lines.extend(described.source(*source).bytes().filter(|byte| *byte != 0));
            lines.push(0);
        }
        let mut load = Vec::new();
        put_native(&mut load, std::process::id());
        put_native(&mut load, std::process::id());
        for value in [entry, entry, described.code.len() as u64, self.count] {
            load.extend(value.to_ne_bytes());
        }
        load.extend(described.name.bytes().filter(|byte| *byte != 0));
        load.push(0);
        load.extend(described.code);
        self.count += 1;
        let mut records = Vec::new();
        for (kind, body) in [(LINES, lines), (LOAD, load)] {
            put_native(&mut records, kind);
            put_native(&mut records, 16 + body.len() as u32);
            records.extend(now().to_ne_bytes());
            records.extend(body);
        }
        self.file.write_all(&records)
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        // SAFETY: mapped by `create` with this length, and accessed by this value only.
        unsafe { munmap(self.marker, PAGE) };
    }
}

fn put_native(out: &mut Vec<u8>, value: u32) {
    out.extend(value.to_ne_bytes());
}

/// Nanoseconds of the monotonic clock, as `perf record -k mono` counts them.
fn now() -> u64 {
    #[repr(C)]
    struct Time {
        seconds: c_long,
        nanoseconds: c_long,
    }
    // SAFETY: the declaration of the C library's manual.
    unsafe extern "C" {
        fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    }
    const MONOTONIC: c_int = 1;
    let mut time = Time { seconds: 0, nanoseconds: 0 };
    // SAFETY: the time is ours to write.
    unsafe { clock_gettime(MONOTONIC, &raw mut time) };
    time.seconds as u64 * 1_000_000_000 + time.nanoseconds as u64
}
