//! The arguments of `qj pipe`.

use clap::{Args, ValueEnum, ValueHint};
use std::path::PathBuf;

/// Process data by steps that are composed into one pass over memory
///
/// PIPE is a list of steps, separated by bars and applied in order:
///
///   copy                      writes the data unchanged
///   checksum                  the Internet checksum (RFC 1071)
///   crc32c                    CRC-32C (RFC 3720)
///   swap16, swap32, swap64    reverses the bytes of every 2, 4 or 8
///   xor 0xa5                  exclusive or with 1, 2, 4 or 8 bytes, repeated
///   xor stream                exclusive or with the bytes of a key file (`--key`)
///   count                     counts bytes
///   NAME                      a user's step, from a file (`-s`)
///
/// The results of steps are printed, a line for each. Data that steps write go to
/// FILE or to standard output; in the latter case the results go to standard error.
/// A file of steps holds, for example:
///
///   step bump u32be           elements: u8, u16le, u16be, u32le, u32be, u64le, u64be
///     add r0, r0, 1           r0 is the element; add sub mul and or xor min max
///     total max r0            shl shr set; total add xor and or min max
///   end
///
/// Floating-point numbers: add sub mul div min max eq ne lt le gt ge neg abs sqrt set
/// and total add with .f32 or .f64 (`mul.f32 r0, r0, 0.5`); cvt.NEW.OLD converts.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    after_help = "Examples:\n  \
    qj pipe 'checksum | crc32c | count' -r message\n  \
    qj pipe 'copy | checksum | swap32' -r message -w swapped\n  \
    qj pipe 'xor 0x37fa213d' < frame > payload\n  \
    qj pipe 'copy | checksum | swap32' --explain    the machine code\n  \
    qj pipe 'copy | checksum | swap32' --bench      compared with separate steps\n  \
    qj pipe 'bump | crc32c' -s steps.pipe -r message -w bumped"
)]
pub(crate) struct Pipe {
    /// The steps
    #[arg(value_name = "PIPE")]
    pub(crate) pipe: String,
    /// The input file; `-` is standard input, which is also the default
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) read: Option<PathBuf>,
    /// The output file, if steps change or copy data; `-` is standard output, which is also the default
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) write: Option<PathBuf>,
    /// The key stream of a step `xor stream`; one for each such step, in order
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) key: Vec<PathBuf>,
    /// A file with definitions of steps; may be repeated
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) steps: Vec<PathBuf>,
    /// The kind of stores [default: by the size of the data]
    #[arg(long, value_name = "HOW")]
    pub(crate) store: Option<StoreChoice>,
    /// Show the machine code of the pipe
    #[arg(long, conflicts_with_all = ["read", "write", "bench"])]
    pub(crate) explain: bool,
    /// Measure the pipe, compared with its steps applied separately
    #[arg(long, conflicts_with_all = ["read", "write"])]
    pub(crate) bench: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum StoreChoice {
    /// Through the caches
    Cached,
    /// Through the caches, with source and target prefetched
    Prefetching,
    /// Non-temporal, which bypass the caches, with the source prefetched
    Streaming,
}
