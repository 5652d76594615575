//! The generated code of a chunk: how it is called, described and freed. Only x86-64 has a code generator; a value of
//! the type does not exist on other machines, so that every chunk is interpreted there. Knows no stage.

#[cfg(not(target_arch = "x86_64"))]
mod unsupported;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(not(target_arch = "x86_64"))]
pub(crate) use unsupported::ChunkCode;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::ChunkCode;
