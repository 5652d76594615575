//! Readers of the files that the kernel is started with: static ELF programs and cpio archives. Functions of bytes,
//! without kernel types, so that the host can test them with malformed files.
#![no_std]
#![forbid(unsafe_code)]

pub mod cpio;
pub mod elf;
