//! Calls on paths.

use super::call::{Call, CallResult, fault};
use super::file::on_exec;
use super::listing;
use crate::fs::directory::{self, Removal};
use crate::fs::location::Location;
use crate::fs::node::{Node, NodeKind};
use crate::fs::open_file::{Object, OpenFile};
use crate::fs::path::{LastLink, Target, find, resolve};
use crate::fs::status;
use crate::memory::user::{self, StringBuffer};
use alloc::vec::Vec;
use linux_raw_sys::general::{
    AT_EMPTY_PATH, AT_FDCWD, AT_REMOVEDIR, AT_SYMLINK_NOFOLLOW, O_ACCMODE, O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW,
    O_RDONLY, O_TRUNC,
};
use syscalls::Errno;

/// The descriptor that stands for the working directory.
const WORKING_DIRECTORY: u32 = AT_FDCWD as u32;
/// The bits of a mode that a program may choose.
const MODE_BITS: u32 = 0o7777;

/// The path that an argument points to.
fn path_at<'b>(call: &Call<'_>, number: usize, buffer: &'b mut StringBuffer) -> Result<&'b [u8], Errno> {
    user::read_string(call.argument(number), buffer).map_err(fault)?.ok_or(Errno::ENAMETOOLONG)
}

/// Where relative paths start, by a descriptor.
fn start_at(call: &Call<'_>, descriptor: u32, path: &[u8]) -> Result<Location, Errno> {
    if descriptor == WORKING_DIRECTORY || path.starts_with(b"/") {
        return Ok(call.process().directory.borrow().clone());
    }
    let file = call.process().files.borrow().file(u64::from(descriptor))?;
    let location = file.location().ok_or(Errno::ENOTDIR)?;
    location.node().names()?;
    Ok(location.clone())
}

pub(super) fn open(call: &mut Call<'_>) -> CallResult {
    open_from(call, WORKING_DIRECTORY, 0)
}

pub(super) fn openat(call: &mut Call<'_>) -> CallResult {
    open_from(call, call.word(0), 1)
}

/// Opens the path in argument `at`; flags and mode follow.
fn open_from(call: &Call<'_>, descriptor: u32, at: usize) -> CallResult {
    let mut buffer = StringBuffer::new();
    let path = path_at(call, at, &mut buffer)?;
    let (flags, mode) = (call.word(at + 1), call.word(at + 2));
    if path.starts_with(b"/proc/")
        && let Some(contents) = listing::contents_at(call, path)
    {
        return open_listing(call, contents, flags);
    }
    let start = start_at(call, descriptor, path)?;
    let last_link = if flags & O_NOFOLLOW != 0 || flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL {
        LastLink::Keep
    } else {
        LastLink::Follow
    };
    let location = match resolve(&start, path, last_link)? {
        Target::Found(_) if flags & (O_CREAT | O_EXCL) == O_CREAT | O_EXCL => return Err(Errno::EEXIST),
        Target::Found(location) => location,
        Target::Missing { parent, name } if flags & O_CREAT != 0 => {
            if path.ends_with(b"/") {
                return Err(Errno::EISDIR);
            }
            let permissions = mode & MODE_BITS & !call.process().mask.get();
            directory::insert(parent.node(), &name, Node::regular(Vec::new(), permissions))?;
            find(&parent, &name, LastLink::Keep)?
        }
        Target::Missing { .. } => return Err(Errno::ENOENT),
    };
    check_open(&location, flags)?;
    let file = OpenFile::new(Object::Located(location), flags);
    call.process().files.borrow_mut().add(file, on_exec(flags), 0)
}

/// Opens what has no place in the tree.
fn open_listing(call: &Call<'_>, contents: Vec<u8>, flags: u32) -> CallResult {
    if flags & O_ACCMODE != O_RDONLY {
        return Err(Errno::EACCES);
    }
    let location = Location::root(Node::regular(contents, 0o444));
    let file = OpenFile::new(Object::Located(location), flags);
    call.process().files.borrow_mut().add(file, on_exec(flags), 0)
}

/// Whether a node may be opened so; cuts files that are to be cut.
fn check_open(location: &Location, flags: u32) -> Result<(), Errno> {
    match &location.node().kind {
        NodeKind::Directory(_) if flags & O_ACCMODE != O_RDONLY || flags & O_CREAT != 0 => Err(Errno::EISDIR),
        NodeKind::SymbolicLink(_) => Err(Errno::ELOOP),
        NodeKind::Regular(_) | NodeKind::Device(_) if flags & O_DIRECTORY != 0 => Err(Errno::ENOTDIR),
        NodeKind::Regular(_) if flags & O_TRUNC != 0 => location.node().set_size(0),
        NodeKind::Directory(_) | NodeKind::Regular(_) | NodeKind::Device(_) => Ok(()),
    }
}

pub(super) fn stat(call: &mut Call<'_>) -> CallResult {
    let mut buffer = StringBuffer::new();
    let path = path_at(call, 0, &mut buffer)?;
    report_status(call, WORKING_DIRECTORY, path, LastLink::Follow, 1)
}

pub(super) fn lstat(call: &mut Call<'_>) -> CallResult {
    let mut buffer = StringBuffer::new();
    let path = path_at(call, 0, &mut buffer)?;
    report_status(call, WORKING_DIRECTORY, path, LastLink::Keep, 1)
}

pub(super) fn newfstatat(call: &mut Call<'_>) -> CallResult {
    let flags = call.word(3);
    let mut buffer = StringBuffer::new();
    let path = path_at(call, 1, &mut buffer)?;
    if path.is_empty() && flags & AT_EMPTY_PATH != 0 && call.word(0) != WORKING_DIRECTORY {
        let file = call.process().files.borrow().file(call.argument(0))?;
        user::write(call.argument(2), &status::of_file(&file)).map_err(fault)?;
        return Ok(0);
    }
    let last_link = if flags & AT_SYMLINK_NOFOLLOW == 0 { LastLink::Follow } else { LastLink::Keep };
    report_status(call, call.word(0), path, last_link, 2)
}

fn report_status(call: &Call<'_>, descriptor: u32, path: &[u8], last_link: LastLink, to: usize) -> CallResult {
    let start = start_at(call, descriptor, path)?;
    let location = find(&start, path, last_link)?;
    user::write(call.argument(to), &status::of_node(location.node())).map_err(fault)?;
    Ok(0)
}

pub(super) fn access(call: &mut Call<'_>) -> CallResult {
    check_access(call, WORKING_DIRECTORY, 0)
}

pub(super) fn faccessat(call: &mut Call<'_>) -> CallResult {
    check_access(call, call.word(0), 1)
}

/// The program is root: it may read and write everything, and execute what is executable for some user.
fn check_access(call: &Call<'_>, descriptor: u32, at: usize) -> CallResult {
    const EXECUTE: u32 = 1;
    const ALL: u32 = 7;
    let mut buffer = StringBuffer::new();
    let path = path_at(call, at, &mut buffer)?;
    let wanted = call.word(at + 1);
    if wanted & !ALL != 0 {
        return Err(Errno::EINVAL);
    }
    let start = start_at(call, descriptor, path)?;
    let location = find(&start, path, LastLink::Follow)?;
    let is_executable = location.node().permissions.get() & 0o111 != 0;
    if wanted & EXECUTE != 0 && !is_executable { Err(Errno::EACCES) } else { Ok(0) }
}

pub(super) fn mkdir(call: &mut Call<'_>) -> CallResult {
    make_directory(call, WORKING_DIRECTORY, 0)
}

pub(super) fn mkdirat(call: &mut Call<'_>) -> CallResult {
    make_directory(call, call.word(0), 1)
}

fn make_directory(call: &Call<'_>, descriptor: u32, at: usize) -> CallResult {
    let mut buffer = StringBuffer::new();
    let path = path_at(call, at, &mut buffer)?;
    let start = start_at(call, descriptor, path)?;
    let trimmed = trim_slashes(path);
    match resolve(&start, trimmed, LastLink::Keep)? {
        Target::Found(_) => Err(Errno::EEXIST),
        Target::Missing { parent, name } => {
            let permissions = call.word(at + 1) & 0o1777 & !call.process().mask.get();
            directory::insert(parent.node(), &name, Node::directory(permissions))?;
            Ok(0)
        }
    }
}

/// A path without the slashes at its end; the root stays.
fn trim_slashes(path: &[u8]) -> &[u8] {
    let end = path.iter().rposition(|byte| *byte != b'/').map_or(path.len().min(1), |last| last + 1);
    &path[..end]
}

pub(super) fn unlink(call: &mut Call<'_>) -> CallResult {
    remove(call, WORKING_DIRECTORY, 0, Removal::File)
}

pub(super) fn rmdir(call: &mut Call<'_>) -> CallResult {
    remove(call, WORKING_DIRECTORY, 0, Removal::Directory)
}

pub(super) fn unlinkat(call: &mut Call<'_>) -> CallResult {
    let flags = call.word(2);
    if flags & !AT_REMOVEDIR != 0 {
        return Err(Errno::EINVAL);
    }
    let removal = if flags & AT_REMOVEDIR == 0 { Removal::File } else { Removal::Directory };
    remove(call, call.word(0), 1, removal)
}

fn remove(call: &Call<'_>, descriptor: u32, at: usize, removal: Removal) -> CallResult {
    let mut buffer = StringBuffer::new();
    let path = path_at(call, at, &mut buffer)?;
    let start = start_at(call, descriptor, path)?;
    let location = find(&start, path, LastLink::Keep)?;
    directory::remove(&location, removal)?;
    Ok(0)
}

pub(super) fn readlink(call: &mut Call<'_>) -> CallResult {
    read_link(call, WORKING_DIRECTORY, 0)
}

pub(super) fn readlinkat(call: &mut Call<'_>) -> CallResult {
    read_link(call, call.word(0), 1)
}

fn read_link(call: &Call<'_>, descriptor: u32, at: usize) -> CallResult {
    let mut buffer = StringBuffer::new();
    let path = path_at(call, at, &mut buffer)?;
    let size = call.length(at + 2);
    if size as i32 <= 0 {
        return Err(Errno::EINVAL);
    }
    let start = start_at(call, descriptor, path)?;
    let location = find(&start, path, LastLink::Keep)?;
    let NodeKind::SymbolicLink(target) = &location.node().kind else { return Err(Errno::EINVAL) };
    let part = &target[..target.len().min(size)];
    if user::copy_out(call.argument(at + 1), part) < part.len() {
        return Err(Errno::EFAULT);
    }
    Ok(part.len() as u64)
}

pub(super) fn chdir(call: &mut Call<'_>) -> CallResult {
    let mut buffer = StringBuffer::new();
    let path = path_at(call, 0, &mut buffer)?;
    let start = call.process().directory.borrow().clone();
    let location = find(&start, path, LastLink::Follow)?;
    location.node().names()?;
    *call.process().directory.borrow_mut() = location;
    Ok(0)
}

pub(super) fn getcwd(call: &mut Call<'_>) -> CallResult {
    let mut path = call.process().directory.borrow().path();
    path.push(0);
    if path.len() > call.length(1) {
        return Err(Errno::ERANGE);
    }
    if user::copy_out(call.argument(0), &path) < path.len() {
        return Err(Errno::EFAULT);
    }
    Ok(path.len() as u64)
}

pub(super) fn umask(call: &mut Call<'_>) -> CallResult {
    Ok(u64::from(call.process().mask.replace(call.word(0) & 0o777)))
}
