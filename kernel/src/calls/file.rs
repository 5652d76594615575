//! Calls on descriptors.

use super::call::{Call, CallResult, fault};
use crate::fs::descriptors::OnExec;
use crate::fs::limits::MAX_DESCRIPTORS;
use crate::fs::node::NodeKind;
use crate::fs::open_file::{Object, OpenFile};
use crate::fs::pipe::{Blocking, new_pipe};
use crate::fs::{directory, status};
use crate::memory::user::{self, Plain, is_in_range};
use crate::process::signal::SIGPIPE;
use crate::process::signal_queue::send;
use alloc::rc::Rc;
use alloc::vec::Vec;
use linux_raw_sys::general as linux;
use linux_raw_sys::general::{
    F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_GETFL, F_SETFD, F_SETFL, FD_CLOEXEC, O_ACCMODE, O_APPEND, O_CLOEXEC,
    O_NONBLOCK, O_RDONLY, O_WRONLY,
};
use syscalls::Errno;

/// What one call transfers at most, as on Linux.
const MAX_TRANSFER: usize = 0x7fff_f000;
const MAX_VECTORS: usize = 1024;

fn file(call: &Call<'_>, number: usize) -> Result<Rc<OpenFile>, Errno> {
    call.process().files.borrow().file(call.argument(number))
}

/// The memory of a transfer: its length, cut to the most that one call transfers. Addresses beyond the program's are an
/// error before anything else happens.
fn transfer(address: u64, length: usize) -> Result<usize, Errno> {
    if is_in_range(address, length) { Ok(length.min(MAX_TRANSFER)) } else { Err(Errno::EFAULT) }
}

/// `EPIPE` comes with a signal.
fn with_signal<T>(call: &Call<'_>, result: Result<T, Errno>) -> Result<T, Errno> {
    if matches!(result, Err(Errno::EPIPE)) {
        send(&call.task, SIGPIPE);
    }
    result
}

pub(super) fn read(call: &mut Call<'_>) -> CallResult {
    let file = file(call, 0)?;
    let length = transfer(call.argument(1), call.length(2))?;
    file.read(call.argument(1), length, Blocking::Allowed).map(|count| count as u64)
}

pub(super) fn write(call: &mut Call<'_>) -> CallResult {
    let file = file(call, 0)?;
    let length = transfer(call.argument(1), call.length(2))?;
    let result = file.write(call.argument(1), length).map(|count| count as u64);
    with_signal(call, result)
}

pub(super) fn pread64(call: &mut Call<'_>) -> CallResult {
    let file = file(call, 0)?;
    let position = position(call)?;
    let length = transfer(call.argument(1), call.length(2))?;
    file.read_at(position, call.argument(1), length).map(|count| count as u64)
}

pub(super) fn pwrite64(call: &mut Call<'_>) -> CallResult {
    let file = file(call, 0)?;
    let position = position(call)?;
    let length = transfer(call.argument(1), call.length(2))?;
    file.write_at(position, call.argument(1), length).map(|count| count as u64)
}

/// The place of `pread64` and `pwrite64`.
fn position(call: &Call<'_>) -> Result<u64, Errno> {
    let position = call.argument(3);
    if (position as i64) < 0 { Err(Errno::EINVAL) } else { Ok(position) }
}

/// The parts of `readv` and `writev`: addresses and lengths.
fn vectors(call: &Call<'_>) -> Result<Vec<(u64, usize)>, Errno> {
    let count = call.length(2);
    if count > MAX_VECTORS {
        return Err(Errno::EINVAL);
    }
    let mut total = 0;
    let mut parts = Vec::new();
    for index in 0..count as u64 {
        let [address, length]: [u64; 2] = user::read(call.argument(1).wrapping_add(index * 16)).map_err(fault)?;
        if (length as i64) < 0 {
            return Err(Errno::EINVAL);
        }
        let length = transfer(address, length as usize)?.min(MAX_TRANSFER - total);
        total += length;
        parts.push((address, length));
    }
    Ok(parts)
}

/// Transfers part after part, up to the first that is not complete. An error after the first byte is not reported.
fn transfer_parts(
    parts: &[(u64, usize)],
    mut work: impl FnMut(u64, usize, Blocking) -> Result<usize, Errno>,
) -> Result<u64, Errno> {
    let mut total = 0;
    for (address, length) in parts.iter().filter(|(_, length)| *length > 0) {
        let blocking = if total == 0 { Blocking::Allowed } else { Blocking::Never };
        match work(*address, *length, blocking) {
            Ok(count) => {
                total += count as u64;
                if count < *length {
                    break;
                }
            }
            Err(error) if total == 0 => return Err(error),
            Err(_) => break,
        }
    }
    Ok(total)
}

pub(super) fn readv(call: &mut Call<'_>) -> CallResult {
    let file = file(call, 0)?;
    transfer_parts(&vectors(call)?, |address, length, blocking| file.read(address, length, blocking))
}

pub(super) fn writev(call: &mut Call<'_>) -> CallResult {
    let file = file(call, 0)?;
    let result = transfer_parts(&vectors(call)?, |address, length, _| file.write(address, length));
    with_signal(call, result)
}

pub(super) fn lseek(call: &mut Call<'_>) -> CallResult {
    file(call, 0)?.seek(call.argument(1) as i64, call.word(2))
}

pub(super) fn close(call: &mut Call<'_>) -> CallResult {
    let removed = call.process().files.borrow_mut().remove(call.argument(0))?;
    // Its end may wake threads, which the table of descriptors must not be borrowed for.
    drop(removed);
    Ok(0)
}

pub(super) fn dup(call: &mut Call<'_>) -> CallResult {
    let file = file(call, 0)?;
    call.process().files.borrow_mut().add(file, OnExec::Keep, 0)
}

pub(super) fn dup2(call: &mut Call<'_>) -> CallResult {
    let file = file(call, 0)?;
    if call.word(0) == call.word(1) {
        return Ok(u64::from(call.word(1)));
    }
    replace(call, file, OnExec::Keep)
}

pub(super) fn dup3(call: &mut Call<'_>) -> CallResult {
    if call.word(2) & !O_CLOEXEC != 0 || call.word(0) == call.word(1) {
        return Err(Errno::EINVAL);
    }
    let file = file(call, 0)?;
    replace(call, file, on_exec(call.word(2)))
}

fn replace(call: &Call<'_>, file: Rc<OpenFile>, on_exec: OnExec) -> CallResult {
    let number = call.argument(1);
    let old = call.process().files.borrow_mut().remove(number);
    let replaced = call.process().files.borrow_mut().replace(number, file, on_exec);
    drop(old);
    replaced.map(|()| u64::from(number as u32))
}

/// What the flags of an open say of `execve`.
pub(super) fn on_exec(flags: u32) -> OnExec {
    if flags & O_CLOEXEC == 0 { OnExec::Keep } else { OnExec::Close }
}

pub(super) fn fcntl(call: &mut Call<'_>) -> CallResult {
    const SETTABLE: u32 = O_APPEND | O_NONBLOCK;
    let file = file(call, 0)?;
    let number = call.argument(0);
    match call.word(1) {
        command @ (F_DUPFD | F_DUPFD_CLOEXEC) => {
            let least = call.word(2) as usize;
            if least >= MAX_DESCRIPTORS {
                return Err(Errno::EINVAL);
            }
            let on_exec = if command == F_DUPFD { OnExec::Keep } else { OnExec::Close };
            call.process().files.borrow_mut().add(file, on_exec, least)
        }
        F_GETFD => {
            let on_exec = call.process().files.borrow().on_exec(number)?;
            Ok(if on_exec == OnExec::Close { u64::from(FD_CLOEXEC) } else { 0 })
        }
        F_SETFD => {
            let on_exec = if call.word(2) & FD_CLOEXEC == 0 { OnExec::Keep } else { OnExec::Close };
            call.process().files.borrow_mut().set_on_exec(number, on_exec)?;
            Ok(0)
        }
        F_GETFL => Ok(u64::from(file.flags() & (O_ACCMODE | SETTABLE))),
        F_SETFL => {
            file.set_flags(file.flags() & !SETTABLE | call.word(2) & SETTABLE);
            call.process().files.borrow().refresh(&file);
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

pub(super) fn fstat(call: &mut Call<'_>) -> CallResult {
    let status = status::of_file(&*file(call, 0)?);
    user::write(call.argument(1), &status).map_err(fault)?;
    Ok(0)
}

/// Files are in memory: there is nothing to wait for.
pub(super) fn fsync(call: &mut Call<'_>) -> CallResult {
    match file(call, 0)?.object {
        Object::Located(_) => Ok(0),
        Object::ReadEnd(_) | Object::WriteEnd(_) => Err(Errno::EINVAL),
    }
}

pub(super) fn ftruncate(call: &mut Call<'_>) -> CallResult {
    let size = call.argument(1);
    if (size as i64) < 0 {
        return Err(Errno::EINVAL);
    }
    let file = file(call, 0)?;
    let location = file.location().ok_or(Errno::EINVAL)?;
    if file.flags() & O_ACCMODE == O_RDONLY {
        return Err(Errno::EINVAL);
    }
    location.node().set_size(size)?;
    Ok(0)
}

pub(super) fn pipe(call: &mut Call<'_>) -> CallResult {
    make_pipe(call, 0)
}

pub(super) fn pipe2(call: &mut Call<'_>) -> CallResult {
    let flags = call.word(1);
    if flags & !(O_CLOEXEC | O_NONBLOCK) != 0 {
        return Err(Errno::EINVAL);
    }
    make_pipe(call, flags)
}

fn make_pipe(call: &Call<'_>, flags: u32) -> CallResult {
    let (read_end, write_end) = new_pipe()?;
    let kept = flags & O_NONBLOCK;
    let reader = OpenFile::new(Object::ReadEnd(read_end), O_RDONLY | kept);
    let writer = OpenFile::new(Object::WriteEnd(write_end), O_WRONLY | kept);
    let files = &call.process().files;
    let first = files.borrow_mut().add(reader, on_exec(flags), 0)?;
    let second = files.borrow_mut().add(writer, on_exec(flags), 0);
    let written = second.and_then(|second| {
        user::write(call.argument(0), &[first as i32, second as i32]).map_err(fault).inspect_err(|_| {
            let removed = files.borrow_mut().remove(second);
            drop(removed);
        })
    });
    if written.is_err() {
        let removed = files.borrow_mut().remove(first);
        drop(removed);
    }
    written.map(|()| 0)
}

/// The structure of `TIOCGWINSZ`.
#[repr(C)]
#[derive(Clone, Copy)]
struct WindowSize([u16; 4]);

// SAFETY: integers without padding.
unsafe impl Plain for WindowSize {}

/// Terminals answer two requests: that they are some, and how large.
pub(super) fn ioctl(call: &mut Call<'_>) -> CallResult {
    const TERMINAL_ATTRIBUTES: u32 = 0x5401;
    const WINDOW_SIZE: u32 = 0x5413;
    const ATTRIBUTES_BYTES: usize = 36;
    let file = file(call, 0)?;
    let is_terminal = file.location().is_some_and(|location| match location.node().kind {
        NodeKind::Device(device) => device.is_terminal(),
        NodeKind::Directory(_) | NodeKind::Regular(_) | NodeKind::SymbolicLink(_) => false,
    });
    match call.word(1) {
        TERMINAL_ATTRIBUTES if is_terminal => {
            let done = user::clear(call.argument(2), ATTRIBUTES_BYTES) == ATTRIBUTES_BYTES;
            if done { Ok(0) } else { Err(Errno::EFAULT) }
        }
        WINDOW_SIZE if is_terminal => {
            user::write(call.argument(2), &WindowSize([25, 80, 0, 0])).map_err(fault)?;
            Ok(0)
        }
        _ => Err(Errno::ENOTTY),
    }
}

pub(super) fn getdents64(call: &mut Call<'_>) -> CallResult {
    const HEADER_BYTES: usize = 19;
    let file = file(call, 0)?;
    let location = file.location().ok_or(Errno::ENOTDIR)?;
    let first = file.position();
    let mut bytes = Vec::new();
    let mut count = 0;
    let listed = directory::list(location, first)?;
    for entry in &listed {
        let size = (HEADER_BYTES + entry.name.len() + 1).next_multiple_of(8);
        if bytes.len() + size > call.length(2) {
            break;
        }
        let end = bytes.len() + size;
        count += 1;
        bytes.extend_from_slice(&entry.node.number.to_le_bytes());
        bytes.extend_from_slice(&(first + count).to_le_bytes());
        bytes.extend_from_slice(&(size as u16).to_le_bytes());
        bytes.push(status::entry_kind(&entry.node));
        bytes.extend_from_slice(&entry.name);
        bytes.resize(end, 0);
    }
    if count == 0 && !listed.is_empty() {
        return Err(Errno::EINVAL);
    }
    if user::copy_out(call.argument(1), &bytes) < bytes.len() {
        return Err(Errno::EFAULT);
    }
    file.seek((first + count) as i64, linux::SEEK_SET)?;
    Ok(bytes.len() as u64)
}
