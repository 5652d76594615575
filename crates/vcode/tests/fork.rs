//! Code memory across `fork`: parent and children change their functions independently.
#![cfg(target_os = "linux")]

use quaject_vcode::{Asm, Core, Kind, Memory, Native, Param, Workspace};
use std::ffi::c_int;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};

// SAFETY: the declarations of the C library's manual.
unsafe extern "C" {
    fn fork() -> c_int;
    fn waitpid(process: c_int, status: *mut c_int, options: c_int) -> c_int;
    fn _exit(status: c_int) -> !;
    fn setrlimit(resource: c_int, limits: *const [u64; 2]) -> c_int;
}

const RLIMIT_NOFILE: c_int = 7;

/// A generated function and its place.
struct Adder {
    entry: usize,
    length: usize,
}

impl Adder {
    /// A function that adds `term`.
    fn new(memory: &Memory, term: i32) -> Adder {
        let mut buffer = [0; 512];
        let mut workspace = Workspace::<Native>::new();
        let mut params = [Param::NONE];
        let mut asm = Asm::<Native>::begin((&mut buffer[..]).into(), &mut workspace, "%i", &mut params, Kind::Leaf)
            .expect("it is a signature");
        let x = params[0].reg();
        asm.addii(x, x, term);
        asm.reti(x);
        let code = asm.end().expect("it fits");
        let installed = memory.install(&buffer, &code).expect("there is room");
        Adder { entry: installed.entry, length: installed.length }
    }

    fn call(&self, value: i32) -> i32 {
        // SAFETY: the function takes and returns an `int`, and is installed.
        unsafe { std::mem::transmute::<usize, extern "C" fn(i32) -> i32>(self.entry)(value) }
    }
}

/// Runs `body` in a child, which exits with its result.
fn child(body: impl FnOnce() -> u8) -> c_int {
    // SAFETY: the child only runs `body` and exits; it has one thread.
    match unsafe { fork() } {
        0 => {
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body)).unwrap_or(101);
            // SAFETY: it ends the child.
            unsafe { _exit(result.into()) }
        }
        process => process,
    }
}

/// The status with which a child exited; negative if a signal ended it.
fn exit_status(process: c_int) -> i32 {
    let mut status = 0;
    // SAFETY: the status is written to a variable.
    assert_eq!(unsafe { waitpid(process, &mut status, 0) }, process);
    if status & 0x7f == 0 { status >> 8 } else { -(status & 0x7f) }
}

#[test]
fn a_child_does_not_change_its_parent() {
    for memory in [Memory::new(1 << 16), Memory::debuggable(1 << 16)] {
        let memory = memory.expect("the system gives pages");
        let before = Adder::new(&memory, 1);
        let changed = child(|| {
            memory.free(before.entry, before.length);
            let own = Adder::new(&memory, 1000);
            u8::from(own.entry != before.entry || own.call(1) != 1001)
        });
        assert_eq!(exit_status(changed), 0);
        assert_eq!(before.call(1), 2);
    }
}

#[test]
fn a_parent_does_not_change_its_child() {
    let memory = Memory::new(1 << 16).expect("the system gives pages");
    let before = Adder::new(&memory, 1);
    let (mut reader, writer) = std::io::pipe().expect("the system gives a pipe");
    let waiting = child(|| {
        let mut byte = [0];
        std::io::Read::read_exact(&mut reader, &mut byte).expect("the parent writes a byte");
        // A child of the child has the same functions.
        let status = exit_status(child(|| u8::from(before.call(1) != 2)));
        u8::from(status != 0 || before.call(1) != 2)
    });
    memory.free(before.entry, before.length);
    let after = Adder::new(&memory, 1000);
    assert_eq!(after.entry, before.entry);
    std::io::Write::write_all(&mut &writer, &[1]).expect("the child reads");
    assert_eq!(exit_status(waiting), 0);
    assert_eq!(after.call(1), 1001);
}

#[test]
fn no_mapping_of_code_is_shared_with_the_parent() {
    let memory = Memory::new(1 << 16).expect("the system gives pages");
    let before = Adder::new(&memory, 1);
    let inodes = || -> Vec<String> {
        let maps = fs::read_to_string("/proc/self/maps").expect("Linux lists the mappings");
        let ours = maps.lines().filter(|line| line.contains("quaject-code"));
        ours.filter_map(|line| line.split_whitespace().nth(4).map(str::to_string)).collect()
    };
    let parent = inodes();
    assert!(!parent.is_empty());
    let status = child(|| u8::from(inodes().iter().any(|inode| parent.contains(inode)) || before.call(1) != 2));
    assert_eq!(exit_status(status), 0);
}

#[test]
fn four_workers_install_run_and_free_concurrently() {
    let memory = Memory::new(1 << 16).expect("the system gives pages");
    let inherited = Adder::new(&memory, 7);
    let work = |worker: i32| {
        let mut kept: Vec<(Adder, i32)> = Vec::new();
        for turn in 0..2000 {
            let term = worker * 10_000 + turn;
            kept.push((Adder::new(&memory, term), term));
            if kept.len() > 20 {
                let (old, _) = kept.swap_remove((turn % 20) as usize);
                memory.free(old.entry, old.length);
            }
            if kept.iter().any(|(adder, term)| adder.call(1) != term + 1) || inherited.call(1) != 8 {
                return 1;
            }
        }
        0
    };
    let workers: Vec<c_int> = (1..=4).map(|worker| child(|| work(worker))).collect();
    assert_eq!(work(5), 0);
    for worker in workers {
        assert_eq!(exit_status(worker), 0);
    }
}

/// Whatever other threads do at the moment of the fork, the child can install functions, and those that were finished
/// before are whole.
#[test]
fn children_of_a_program_with_threads_have_code_memory() {
    let memory = Memory::new(1 << 20).expect("the system gives pages");
    let inherited = Adder::new(&memory, 7);
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..2 {
            let (memory, is_done) = (&memory, &is_done);
            scope.spawn(move || {
                while !is_done.load(Ordering::Relaxed) {
                    let own = Adder::new(memory, thread);
                    assert_eq!(own.call(1), thread + 1);
                    memory.free(own.entry, own.length);
                }
            });
        }
        for turn in 0..200 {
            let last = Adder::new(&memory, turn);
            let status = exit_status(child(|| {
                let own = Adder::new(&memory, 1000);
                u8::from(inherited.call(1) != 8 || last.call(1) != turn + 1 || own.call(1) != 1001)
            }));
            assert_eq!(status, 0);
            memory.free(last.entry, last.length);
        }
        is_done.store(true, Ordering::Relaxed);
    });
}

/// A process that cannot open another file can fork and execute; its child has no code memory.
#[test]
fn without_files_a_child_has_no_code_memory() {
    let memory = Memory::new(1 << 16).expect("the system gives pages");
    let before = Adder::new(&memory, 1);
    let outer = child(|| {
        // SAFETY: the limits are read.
        assert_eq!(unsafe { setrlimit(RLIMIT_NOFILE, &[64, 64]) }, 0);
        let mut files = Vec::new();
        while let Ok(file) = fs::File::open("/dev/null") {
            files.push(file);
        }
        let lost = child(|| {
            let is_refused = memory.region(64).is_err();
            u8::from(!is_refused)
        });
        let calling = child(|| before.call(1) as u8);
        u8::from(exit_status(lost) != 0 || exit_status(calling) >= 0 || before.call(1) != 2)
    });
    assert_eq!(exit_status(outer), 0);
}
