//! The stack of a new program (System V ABI for x86-64, 3.4.1).
//!
//! ```text
//! rsp -> argc | argv[0] .. argv[argc - 1] 0 | environment .. 0 | auxiliary vector .. 0 0 | padding | strings
//! ```

use alloc::vec::Vec;

/// An entry of the auxiliary vector.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Auxiliary {
    /// A number.
    Value(u64),
    /// The address of these bytes.
    Bytes(&'static [u8]),
    /// The address of the program's name.
    ProgramName,
    /// The address of 16 random bytes.
    Random([u8; 16]),
}

/// What a new program finds on its stack.
pub(crate) struct StackContents<'c> {
    pub(crate) arguments: &'c [Vec<u8>],
    pub(crate) environment: &'c [Vec<u8>],
    /// Keys and entries, without the last one.
    pub(crate) auxiliary: &'c [(u64, Auxiliary)],
}

/// Writes the contents so that they end at the address `end`; returns the bytes, whose first is at the stack pointer.
pub(crate) fn build(contents: &StackContents<'_>, end: u64) -> Vec<u8> {
    let mut strings = Vec::new();
    let mut add = |bytes: &[u8]| {
        strings.extend_from_slice(bytes);
        strings.push(0);
        strings.len() as u64 - bytes.len() as u64 - 1
    };
    let arguments: Vec<u64> = contents.arguments.iter().map(|argument| add(argument)).collect();
    let environment: Vec<u64> = contents.environment.iter().map(|variable| add(variable)).collect();
    let auxiliary: Vec<Auxiliary> = contents.auxiliary.iter().map(|(_, entry)| *entry).collect();
    // Offsets in the strings first: where these begin depends on their length.
    let offsets: Vec<u64> = auxiliary
        .iter()
        .map(|entry| match entry {
            Auxiliary::Value(_) => 0,
            Auxiliary::Bytes(bytes) => add(bytes),
            Auxiliary::Random(bytes) => add(bytes),
            Auxiliary::ProgramName => arguments.first().copied().unwrap_or(0),
        })
        .collect();
    let words = 1 + arguments.len() + 1 + environment.len() + 1 + 2 * (auxiliary.len() + 1);
    let start = (end - strings.len() as u64 - words as u64 * 8) & !15;
    let base = end - strings.len() as u64;
    let mut bytes = Vec::with_capacity((end - start) as usize);
    let mut push = |word: u64| bytes.extend_from_slice(&word.to_le_bytes());
    push(arguments.len() as u64);
    arguments.iter().for_each(|offset| push(base + offset));
    push(0);
    environment.iter().for_each(|offset| push(base + offset));
    push(0);
    for ((key, entry), offset) in contents.auxiliary.iter().zip(offsets) {
        push(*key);
        push(match entry {
            Auxiliary::Value(value) => *value,
            Auxiliary::Bytes(_) | Auxiliary::Random(_) | Auxiliary::ProgramName => base + offset,
        });
    }
    push(0);
    push(0);
    bytes.resize((base - start) as usize, 0);
    bytes.extend_from_slice(&strings);
    bytes
}
