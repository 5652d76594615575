//! Reads static ELF programs for x86-64: what has to be in memory, where, and where the program starts (System V ABI,
//! chapters 4 and 5). Every number of the file is checked; nothing is allocated.

use core::fmt;

/// The size of a page: segments of different permissions do not share one.
pub const PAGE_BYTES: u64 = 4096;

/// The end of the addresses that a program may use.
pub const USER_END: u64 = 0x7fff_ffff_f000;

const MAGIC: &[u8] = b"\x7fELF";
const CLASS_64: u8 = 2;
const LITTLE_ENDIAN: u8 = 1;
const MACHINE_X86_64: u16 = 62;
const TYPE_EXECUTABLE: u16 = 2;
const TYPE_SHARED: u16 = 3;
const SEGMENT_LOAD: u32 = 1;
const SEGMENT_INTERPRETER: u32 = 3;
const SEGMENT_HEADERS: u32 = 6;
const FLAG_EXECUTE: u32 = 1;
const FLAG_WRITE: u32 = 2;
const HEADER_BYTES: usize = 64;
/// The size of an entry of the program header table.
pub const PROGRAM_HEADER_BYTES: usize = 56;
/// No program has more segments.
const MAX_PROGRAM_HEADERS: usize = 256;

/// Why a file is not a program that can be run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElfError {
    /// It does not begin as an ELF file does, or ends within the header.
    NotElf,
    /// It is for another machine, or for 32 bits.
    OtherMachine,
    /// It is an object file or a core dump.
    NotProgram,
    /// It is linked with shared libraries, which need an interpreter.
    Dynamic,
    /// A number leads outside of the file or of the addresses of a program.
    OutOfRange,
    /// Nothing is to be loaded.
    Empty,
    /// Two segments share a page, or they are not in the order of their addresses.
    Overlap,
    /// A segment is writable and executable.
    WritableCode,
}

impl fmt::Display for ElfError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            ElfError::NotElf => "is not an ELF file",
            ElfError::OtherMachine => "is not for x86-64",
            ElfError::NotProgram => "is not a program",
            ElfError::Dynamic => "is linked dynamically; link it with `-static`",
            ElfError::OutOfRange => "is malformed: a header leads outside of the file or of the address space",
            ElfError::Empty => "has nothing to load",
            ElfError::Overlap => "has segments that share a page",
            ElfError::WritableCode => "has a segment that is writable and executable",
        })
    }
}

/// What may be done with a segment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SegmentAccess {
    /// Constants.
    Read,
    /// Data.
    ReadWrite,
    /// Code.
    ReadExecute,
}

/// A part of the program in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Segment<'b> {
    /// The first address, before relocation.
    pub address: u64,
    /// The bytes at its start; zeros follow.
    pub contents: &'b [u8],
    /// Its size in memory, at least that of `contents`.
    pub memory_bytes: u64,
    /// What may be done with it.
    pub access: SegmentAccess,
}

impl Segment<'_> {
    /// The address of the first page.
    pub fn first_page(&self) -> u64 {
        self.address - self.address % PAGE_BYTES
    }

    /// The address behind the last page.
    pub fn end_of_pages(&self) -> u64 {
        (self.address + self.memory_bytes).next_multiple_of(PAGE_BYTES)
    }
}

/// Where a program may lie.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Placement {
    /// At the addresses in the file.
    Fixed,
    /// Anywhere: a static position-independent program, which relocates itself.
    Relocatable,
}

/// A program whose headers are checked.
#[derive(Clone, Copy, Debug)]
pub struct Program<'b> {
    bytes: &'b [u8],
    headers: &'b [u8],
    /// Where the program may lie.
    pub placement: Placement,
    /// The address of the first instruction, before relocation.
    pub entry: u64,
    /// The address of the program header table in memory, before relocation, if a segment contains it.
    pub header_address: Option<u64>,
}

impl<'b> Program<'b> {
    /// Reads and checks the headers.
    pub fn parse(bytes: &'b [u8]) -> Result<Program<'b>, ElfError> {
        let header = bytes.get(..HEADER_BYTES).filter(|header| header.starts_with(MAGIC)).ok_or(ElfError::NotElf)?;
        if header[4] != CLASS_64 || header[5] != LITTLE_ENDIAN || read_u16(header, 18) != MACHINE_X86_64 {
            return Err(ElfError::OtherMachine);
        }
        let placement = match read_u16(header, 16) {
            TYPE_EXECUTABLE => Placement::Fixed,
            TYPE_SHARED => Placement::Relocatable,
            _ => return Err(ElfError::NotProgram),
        };
        let count = usize::from(read_u16(header, 56));
        if usize::from(read_u16(header, 54)) != PROGRAM_HEADER_BYTES || count > MAX_PROGRAM_HEADERS {
            return Err(ElfError::OutOfRange);
        }
        let table = read_u64(header, 32);
        let headers = part(bytes, table, (count * PROGRAM_HEADER_BYTES) as u64).ok_or(ElfError::OutOfRange)?;
        let mut program = Program { bytes, headers, placement, entry: read_u64(header, 24), header_address: None };
        program.check_segments()?;
        program.header_address = program.find_headers(table);
        Ok(program)
    }

    /// The number of entries of the program header table.
    pub fn header_count(&self) -> usize {
        self.headers.len() / PROGRAM_HEADER_BYTES
    }

    fn entries(&self) -> impl Iterator<Item = &'b [u8]> + use<'b> {
        self.headers.chunks_exact(PROGRAM_HEADER_BYTES)
    }

    fn check_segments(&self) -> Result<(), ElfError> {
        if self.entries().any(|entry| read_u32(entry, 0) == SEGMENT_INTERPRETER) {
            return Err(ElfError::Dynamic);
        }
        let mut end = 0;
        for entry in self.entries().filter(|entry| read_u32(entry, 0) == SEGMENT_LOAD) {
            let segment = self.read_segment(entry)?;
            if segment.first_page() < end {
                return Err(ElfError::Overlap);
            }
            end = segment.end_of_pages();
        }
        if end == 0 { Err(ElfError::Empty) } else { Ok(()) }
    }

    fn read_segment(&self, entry: &[u8]) -> Result<Segment<'b>, ElfError> {
        let (offset, address) = (read_u64(entry, 8), read_u64(entry, 16));
        let (file_bytes, memory_bytes) = (read_u64(entry, 32), read_u64(entry, 40));
        let end = address.checked_add(memory_bytes).ok_or(ElfError::OutOfRange)?;
        if file_bytes > memory_bytes || end > USER_END {
            return Err(ElfError::OutOfRange);
        }
        let contents = part(self.bytes, offset, file_bytes).ok_or(ElfError::OutOfRange)?;
        let flags = read_u32(entry, 4);
        let access = match (flags & FLAG_WRITE != 0, flags & FLAG_EXECUTE != 0) {
            (false, false) => SegmentAccess::Read,
            (true, false) => SegmentAccess::ReadWrite,
            (false, true) => SegmentAccess::ReadExecute,
            (true, true) => return Err(ElfError::WritableCode),
        };
        Ok(Segment { address, contents, memory_bytes, access })
    }

    /// What is to be loaded, in the order of addresses. No two segments share a page.
    pub fn segments(&self) -> impl Iterator<Item = Segment<'b>> + use<'b> {
        let program = *self;
        self.entries()
            .filter(|entry| read_u32(entry, 0) == SEGMENT_LOAD)
            .map(move |entry| program.read_segment(entry).expect("`parse` has read every segment"))
            .filter(|segment| segment.memory_bytes > 0)
    }

    /// Where the program header table, which is at `table` in the file, lies in memory.
    fn find_headers(&self, table: u64) -> Option<u64> {
        let named = self.entries().find(|entry| read_u32(entry, 0) == SEGMENT_HEADERS);
        if let Some(entry) = named {
            return Some(read_u64(entry, 16));
        }
        let loaded = self.entries().filter(|entry| read_u32(entry, 0) == SEGMENT_LOAD);
        let mut places = loaded.filter_map(|entry| {
            let distance = table.checked_sub(read_u64(entry, 8)).filter(|distance| *distance < read_u64(entry, 32))?;
            Some(read_u64(entry, 16) + distance)
        });
        places.next()
    }
}

/// `length` bytes at `offset`.
fn part(bytes: &[u8], offset: u64, length: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    let end = start.checked_add(usize::try_from(length).ok()?)?;
    bytes.get(start..end)
}

fn read<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes[at..at + N].try_into().expect("the slice has the length of the array")
}

fn read_u16(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(read(bytes, at))
}

fn read_u32(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(read(bytes, at))
}

fn read_u64(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(read(bytes, at))
}
