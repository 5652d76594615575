//! Calls on the address space.

use super::call::{Call, CallResult};
use crate::memory::layout::{PAGE_BYTES, USER_END, USER_START, page_ceiling, page_floor};
use crate::memory::region::Protection;
use crate::memory::space::MapError;
use crate::memory::tables::Permission;
use alloc::vec;
use linux_raw_sys::general::{
    MADV_DODUMP, MADV_DONTDUMP, MADV_DONTNEED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE, MADV_NORMAL, MADV_RANDOM,
    MADV_SEQUENTIAL, MADV_WILLNEED, MAP_ANONYMOUS, MAP_FIXED, MAP_FIXED_NOREPLACE, MAP_PRIVATE, MAP_SHARED, PROT_EXEC,
    PROT_READ, PROT_WRITE,
};
use syscalls::Errno;

fn map_error(error: MapError) -> Errno {
    match error {
        MapError::NoRoom | MapError::NotMapped => Errno::ENOMEM,
        MapError::OutOfRange => Errno::EINVAL,
    }
}

/// The protection of `mmap` and `mprotect`. Memory that is writable and executable is refused, as systems do that
/// enforce W^X.
fn protection(word: u32) -> Result<Protection, Errno> {
    if word & !(PROT_READ | PROT_WRITE | PROT_EXEC) != 0 {
        return Err(Errno::EINVAL);
    }
    match (word & PROT_WRITE != 0, word & PROT_EXEC != 0) {
        (true, true) => Err(Errno::EACCES),
        (true, false) => Ok(Protection::Only(Permission::ReadWrite)),
        (false, true) => Ok(Protection::Only(Permission::ReadExecute)),
        (false, false) if word & PROT_READ != 0 => Ok(Protection::Only(Permission::Read)),
        (false, false) => Ok(Protection::Nothing),
    }
}

pub(super) fn brk(call: &mut Call<'_>) -> CallResult {
    Ok(call.process().space.borrow_mut().set_break(call.argument(0)))
}

/// The range of a call: it starts at a page and has at least one.
fn range(start: u64, length: u64) -> Result<(u64, u64), Errno> {
    if !start.is_multiple_of(PAGE_BYTES) {
        return Err(Errno::EINVAL);
    }
    let end = start.checked_add(length).and_then(page_ceiling).ok_or(Errno::EINVAL)?;
    if end > USER_END { Err(Errno::EINVAL) } else { Ok((start, end)) }
}

pub(super) fn mmap(call: &mut Call<'_>) -> CallResult {
    let (address, length, flags) = (call.argument(0), call.argument(1), call.word(3));
    let protection = protection(call.word(2))?;
    if length == 0 || !matches!(flags & (MAP_SHARED | MAP_PRIVATE), MAP_SHARED | MAP_PRIVATE) {
        return Err(Errno::EINVAL);
    }
    let length = page_ceiling(length).filter(|length| *length <= USER_END).ok_or(Errno::ENOMEM)?;
    let contents = if flags & MAP_ANONYMOUS == 0 { Some(mapped_contents(call, flags, length)?) } else { None };
    let mut space = call.process().space.borrow_mut();
    let start = if flags & (MAP_FIXED | MAP_FIXED_NOREPLACE) != 0 {
        let (start, end) = range(address, length)?;
        if start < USER_START {
            return Err(Errno::EPERM);
        }
        if flags & MAP_FIXED_NOREPLACE != 0 && !space.is_free(start, end) {
            return Err(Errno::EEXIST);
        }
        start
    } else {
        let hint = page_floor(address);
        let fits = hint >= USER_START
            && hint.checked_add(length).is_some_and(|end| end <= USER_END && space.is_free(hint, end));
        if fits { hint } else { space.find_free(length).ok_or(Errno::ENOMEM)? }
    };
    space.map(start, start + length, protection).map_err(map_error)?;
    if let Some(contents) = contents
        && protection != Protection::Nothing
    {
        space.write_initial(start, &contents).map_err(map_error)?;
    }
    Ok(start)
}

/// The contents of a private mapping of a file. Shared ones would need pages that a file and a program have in common;
/// they are refused.
fn mapped_contents(call: &Call<'_>, flags: u32, length: u64) -> Result<vec::Vec<u8>, Errno> {
    use crate::fs::node::NodeKind;
    let file = call.process().files.borrow().file(call.argument(4))?;
    let offset = call.argument(5);
    if !offset.is_multiple_of(PAGE_BYTES) {
        return Err(Errno::EINVAL);
    }
    let location = file.location().ok_or(Errno::EACCES)?;
    let NodeKind::Regular(contents) = &location.node().kind else { return Err(Errno::ENODEV) };
    if flags & MAP_PRIVATE == 0 {
        return Err(Errno::ENODEV);
    }
    contents.with(|contents| {
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(contents.len());
        let part = &contents[start..];
        let part = &part[..part.len().min(length as usize)];
        let mut copy = vec::Vec::new();
        copy.try_reserve_exact(part.len()).map_err(|_| Errno::ENOMEM)?;
        copy.extend_from_slice(part);
        Ok(copy)
    })
}

pub(super) fn munmap(call: &mut Call<'_>) -> CallResult {
    if call.argument(1) == 0 {
        return Err(Errno::EINVAL);
    }
    let (start, end) = range(call.argument(0), call.argument(1))?;
    call.process().space.borrow_mut().unmap(start, end).map_err(map_error)?;
    Ok(0)
}

pub(super) fn mprotect(call: &mut Call<'_>) -> CallResult {
    let (start, end) = range(call.argument(0), call.argument(1)).map_err(|_| {
        // A range that ends beyond the addresses is not mapped there.
        if call.argument(0).is_multiple_of(PAGE_BYTES) { Errno::ENOMEM } else { Errno::EINVAL }
    })?;
    let protection = protection(call.word(2))?;
    call.process().space.borrow_mut().protect(start, end, protection).map_err(map_error)?;
    Ok(0)
}

/// Advice is taken where the program can see it: pages that it does not need are zero at the next use.
pub(super) fn madvise(call: &mut Call<'_>) -> CallResult {
    let (start, end) = range(call.argument(0), call.argument(1))?;
    let mut space = call.process().space.borrow_mut();
    match call.word(2) {
        MADV_DONTNEED => {
            space.discard(start, end).map_err(map_error)?;
            Ok(0)
        }
        MADV_NORMAL | MADV_RANDOM | MADV_SEQUENTIAL | MADV_WILLNEED | MADV_FREE | MADV_HUGEPAGE | MADV_NOHUGEPAGE
        | MADV_DONTDUMP | MADV_DODUMP => Ok(0),
        _ => Err(Errno::EINVAL),
    }
}
