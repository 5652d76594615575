//! Copies between the kernel and the active program. Addresses are a program's: they may be anything. Only the upper
//! bound is checked before; holes and missing permissions are found by the access itself (`entry.s`, `copy_across`).

use super::layout::USER_END;
use crate::arch::entry::{copy_across, fill_across, read_word_across};
use core::mem::MaybeUninit;

/// An address of a program that cannot be used so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct BadAddress;

/// A type whose values are any bytes, without padding that would give kernel memory away.
///
/// # Safety
/// Every pattern of bytes is a value, and values have no padding.
pub(crate) unsafe trait Plain: Copy {}

// SAFETY: integers and arrays of them have neither invalid values nor padding.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for u64 {}
// SAFETY: as above.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] {}

/// Whether `length` bytes at `address` are below the end of a program's addresses.
pub(crate) fn is_in_range(address: u64, length: usize) -> bool {
    address.checked_add(length as u64).is_some_and(|end| end <= USER_END)
}

/// Copies to the kernel and returns how many bytes at the start are copied.
pub(crate) fn copy_in(address: u64, to: &mut [u8]) -> usize {
    if !is_in_range(address, to.len()) {
        return 0;
    }
    // SAFETY: the target is a slice, and the source is below the kernel's addresses.
    to.len() - unsafe { copy_across(to.as_mut_ptr(), address as *const u8, to.len()) }
}

/// Copies to the program and returns how many bytes at the start are copied.
pub(crate) fn copy_out(address: u64, from: &[u8]) -> usize {
    if !is_in_range(address, from.len()) {
        return 0;
    }
    // SAFETY: the source is a slice, and the target is below the kernel's addresses.
    from.len() - unsafe { copy_across(address as *mut u8, from.as_ptr(), from.len()) }
}

/// Writes zeros to the program and returns how many bytes at the start are written.
pub(crate) fn clear(address: u64, length: usize) -> usize {
    if !is_in_range(address, length) {
        return 0;
    }
    // SAFETY: the target is below the kernel's addresses.
    length - unsafe { fill_across(address as *mut u8, length) }
}

/// Reads a value.
pub(crate) fn read<T: Plain>(address: u64) -> Result<T, BadAddress> {
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: 1. The bytes are those of `value`. 2. Zeros and any other bytes are a value.
    unsafe {
        let bytes = core::slice::from_raw_parts_mut(value.as_mut_ptr().cast::<u8>(), size_of::<T>());
        if copy_in(address, bytes) < bytes.len() { Err(BadAddress) } else { Ok(value.assume_init()) }
    }
}

/// Writes a value.
pub(crate) fn write<T: Plain>(address: u64, value: &T) -> Result<(), BadAddress> {
    // SAFETY: a value has no padding: all its bytes are initialised.
    let bytes = unsafe { core::slice::from_raw_parts((&raw const *value).cast::<u8>(), size_of::<T>()) };
    if copy_out(address, bytes) < bytes.len() { Err(BadAddress) } else { Ok(()) }
}

/// Reads an aligned word at once.
pub(crate) fn read_word(address: u64) -> Result<u32, BadAddress> {
    let mut word = 0;
    if !is_in_range(address, size_of::<u32>()) {
        return Err(BadAddress);
    }
    // SAFETY: the source is below the kernel's addresses, and the target is a word.
    if unsafe { read_word_across(address as *const u32, &raw mut word) } == 0 { Ok(word) } else { Err(BadAddress) }
}

/// Room for a string of a program, with its zero byte.
pub(crate) struct StringBuffer([MaybeUninit<u8>; MAX_STRING_BYTES]);

/// The longest string, with its zero byte: the longest path of Linux.
pub(crate) const MAX_STRING_BYTES: usize = 4096;

impl StringBuffer {
    pub(crate) const fn new() -> StringBuffer {
        StringBuffer([MaybeUninit::uninit(); MAX_STRING_BYTES])
    }

    /// The bytes that have been copied.
    ///
    /// # Safety
    /// So many have been.
    unsafe fn bytes(&self, length: usize) -> &[u8] {
        // SAFETY: by the contract.
        unsafe { core::slice::from_raw_parts(self.0.as_ptr().cast(), length) }
    }
}

/// Where the first zero byte is, a word at a time (Mycroft 1987).
fn position_of_zero(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let (words, _) = bytes.as_chunks();
    let zero_in = |word: u64| word.wrapping_sub(ONES) & !word & HIGHS;
    for (index, word) in words.iter().enumerate() {
        let zeros = zero_in(u64::from_le_bytes(*word));
        if zeros != 0 {
            return Some(index * size_of::<u64>() + zeros.trailing_zeros() as usize / 8);
        }
    }
    let looked_at = words.len() * size_of::<u64>();
    bytes[looked_at..].iter().position(|byte| *byte == 0).map(|at| looked_at + at)
}

/// Reads bytes up to a zero byte, which is not part of the result. Nothing if the buffer is too short.
pub(crate) fn read_string(address: u64, buffer: &mut StringBuffer) -> Result<Option<&[u8]>, BadAddress> {
    const PART: usize = 64;
    let mut length = 0;
    while length < MAX_STRING_BYTES {
        let start = address.checked_add(length as u64).ok_or(BadAddress)?;
        // Parts end at multiples of their size, so that none reaches into a page that the string does not need.
        let part = (PART - start as usize % PART).min(MAX_STRING_BYTES - length);
        if !is_in_range(start, part) {
            return Err(BadAddress);
        }
        let to = buffer.0[length..length + part].as_mut_ptr().cast();
        // SAFETY: the target has room, and the source is below the kernel's addresses.
        let copied = part - unsafe { copy_across(to, start as *const u8, part) };
        // SAFETY: so many have been copied.
        let found = unsafe { &buffer.bytes(length + copied)[length..] };
        if let Some(end) = position_of_zero(found) {
            // SAFETY: as above.
            return Ok(Some(unsafe { buffer.bytes(length + end) }));
        }
        if copied < part {
            return Err(BadAddress);
        }
        length += part;
    }
    Ok(None)
}
