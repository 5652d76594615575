//! The first process: from the initial ramdisk, which is an archive with the program or the program itself.

use crate::arch::processor::VectorRegisters;
use crate::fs::descriptors::{Descriptors, OnExec};
use crate::fs::location::Location;
use crate::fs::node::{Node, NodeKind};
use crate::fs::open_file::{Object, OpenFile};
use crate::fs::path::{LastLink, find};
use crate::fs::populate;
use crate::options::Options;
use crate::process::exec::{LoadedProgram, load};
use crate::process::futex::Futexes;
use crate::process::process_state::Process;
use crate::process::signal::{Actions, SIGALRM};
use crate::process::signal_queue::send_to_program;
use crate::process::task::{Task, new_id};
use crate::schedule::alarm::Alarm;
use crate::schedule::scheduler;
use crate::schedule::thread::{Thread, ThreadStart};
use crate::synthesis::ProcessEntries;
use alloc::boxed::Box;
use alloc::format;
use alloc::rc::Rc;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use linux_raw_sys::general::O_RDWR;
use quaject_image_formats::cpio;
use quaject_image_formats::elf::Program;

/// The program of an archive when the command line names none, as Linux has it.
const DEFAULT_PROGRAM: &[u8] = b"/init";
const INITIAL_MASK: u32 = 0o022;

/// Makes the first process ready to run.
pub(crate) fn start(ramdisk: &[u8], options: &Options) -> Result<(), String> {
    if ramdisk.is_empty() {
        return Err("there is no initial ramdisk: give QEMU a program or a cpio archive with `-initrd`".into());
    }
    let root = populate::initial_tree();
    let mut arguments = options.arguments.clone();
    if arguments.is_empty() {
        arguments.push(DEFAULT_PROGRAM.to_vec());
    }
    let name = arguments[0].clone();
    if cpio::is_archive(ramdisk) {
        populate::unpack(&root, ramdisk)?;
    } else {
        populate::place(&root, &name, Node::regular(ramdisk.to_vec(), 0o755))?;
    }
    let bytes = read_program(&root, &name)?;
    let shown = String::from_utf8_lossy(&name).into_owned();
    let program = Program::parse(&bytes).map_err(|error| format!("`{shown}` {error}"))?;
    let loaded = load(&program, &arguments, &options.environment)
        .map_err(|error| format!("`{shown}` has no place in memory ({error:?})"))?;
    scheduler::add(make_thread(loaded, root, name)?);
    Ok(())
}

/// The first thread of a process with the console as its three descriptors.
fn make_thread(loaded: LoadedProgram, root: Location, name: Vec<u8>) -> Result<Rc<Thread>, String> {
    let console = find(&root, b"/dev/console", LastLink::Follow).map_err(|error| format!("no console: {error}"))?;
    let console = OpenFile::new(Object::Located(console), O_RDWR);
    let mut files = Descriptors::new();
    for _ in 0..3 {
        files.add(console.clone(), OnExec::Keep, 0).map_err(|error| format!("no descriptor: {error}"))?;
    }
    let id = new_id();
    let entries = ProcessEntries::new(id, files.vectors());
    let page_root = loaded.space.root();
    let process = Rc::new(Process {
        id,
        space: RefCell::new(loaded.space),
        files: RefCell::new(files),
        directory: RefCell::new(root),
        futexes: Futexes::default(),
        actions: RefCell::new(Actions::new()),
        alarm: Alarm::new(Box::new(|| send_to_program(SIGALRM))),
        mask: Cell::new(INITIAL_MASK),
        program: name,
        entries,
    });
    let start = ThreadStart {
        id,
        task: Rc::new(Task::new(id, process.clone())),
        entries: &process.entries.entries,
        page_root,
        registers: loaded.registers,
        vectors: VectorRegisters::new(),
        user_fs: 0,
        user_gs: 0,
    };
    Thread::new(start).map_err(|_| "there is no memory for its first thread".into())
}

fn read_program(root: &Location, name: &[u8]) -> Result<Vec<u8>, String> {
    let shown = String::from_utf8_lossy(name);
    let location = find(root, name, LastLink::Follow).map_err(|error| format!("`{shown}`: {error}"))?;
    match &location.node().kind {
        NodeKind::Regular(contents) => Ok(contents.with(<[u8]>::to_vec)),
        NodeKind::Directory(_) | NodeKind::SymbolicLink(_) | NodeKind::Device(_) => {
            Err(format!("`{shown}` is not a regular file"))
        }
    }
}
