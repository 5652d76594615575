//! Reads cpio archives of the format newc, which the kernel's initial files come in (`cpio -H newc`; Linux,
//! Documentation/driver-api/early-userspace/buffer-format.rst).
//!
//! ```text
//! 070701 ino mode uid gid nlink mtime filesize devmajor devminor rdevmajor rdevminor namesize check
//!        each of the 13 fields is 8 hexadecimal digits
//! name, zero byte, padding to 4 bytes | contents, padding to 4 bytes
//! ```

use core::fmt;

const MAGIC: &[u8] = b"070701";
const MAGIC_WITH_SUM: &[u8] = b"070702";
const FIELD_DIGITS: usize = 8;
const HEADER_BYTES: usize = 6 + 13 * FIELD_DIGITS;
const LAST_NAME: &[u8] = b"TRAILER!!!";

/// Why an archive cannot be read on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CpioError {
    /// No header begins where one should.
    NoHeader,
    /// A field is not a hexadecimal number.
    BadNumber,
    /// The archive ends within an entry.
    Truncated,
    /// A name is empty, or is not ended by a zero byte, or has one within.
    BadName,
}

impl fmt::Display for CpioError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            CpioError::NoHeader => "has no header of a newc archive where one should be",
            CpioError::BadNumber => "has a field that is not a number",
            CpioError::Truncated => "ends within an entry",
            CpioError::BadName => "has a malformed name",
        })
    }
}

/// A file of an archive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry<'b> {
    /// The path, without the zero byte.
    pub name: &'b [u8],
    /// Kind and permissions, as `st_mode`.
    pub mode: u32,
    /// Seconds since 1970.
    pub modified: u32,
    /// What the file holds; of a symbolic link, the target.
    pub contents: &'b [u8],
}

/// Whether bytes begin as an archive does.
pub fn is_archive(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC) || bytes.starts_with(MAGIC_WITH_SUM)
}

/// The entries of an archive up to its last one. After an error it ends.
pub fn entries(bytes: &[u8]) -> Entries<'_> {
    Entries { bytes, at: 0, is_finished: false }
}

/// An iterator over the entries of an archive.
#[derive(Clone, Debug)]
pub struct Entries<'b> {
    bytes: &'b [u8],
    at: usize,
    is_finished: bool,
}

impl<'b> Iterator for Entries<'b> {
    type Item = Result<Entry<'b>, CpioError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_finished {
            return None;
        }
        let entry = self.read_entry();
        let is_last = entry.is_ok_and(|entry| entry.name == LAST_NAME);
        self.is_finished = is_last || entry.is_err();
        if is_last { None } else { Some(entry) }
    }
}

impl<'b> Entries<'b> {
    fn read_entry(&mut self) -> Result<Entry<'b>, CpioError> {
        let header = self.take(HEADER_BYTES)?;
        if !is_archive(header) {
            return Err(CpioError::NoHeader);
        }
        let name_bytes = field(header, 11)? as usize;
        let name = self.take(name_bytes)?;
        self.skip_padding()?;
        let contents = self.take(field(header, 6)? as usize)?;
        let (last, name) = name.split_last().ok_or(CpioError::BadName)?;
        if *last != 0 || name.is_empty() || name.contains(&0) {
            return Err(CpioError::BadName);
        }
        // The last entry may lack its padding.
        if name != LAST_NAME {
            self.skip_padding()?;
        }
        Ok(Entry { name, mode: field(header, 1)?, modified: field(header, 5)?, contents })
    }

    fn take(&mut self, length: usize) -> Result<&'b [u8], CpioError> {
        let end = self.at.checked_add(length).ok_or(CpioError::Truncated)?;
        let part = self.bytes.get(self.at..end).ok_or(CpioError::Truncated)?;
        self.at = end;
        Ok(part)
    }

    fn skip_padding(&mut self) -> Result<(), CpioError> {
        let padding = self.at.next_multiple_of(4) - self.at;
        self.take(padding).map(drop)
    }
}

/// The field with the given number.
fn field(header: &[u8], number: usize) -> Result<u32, CpioError> {
    let start = MAGIC.len() + number * FIELD_DIGITS;
    header[start..start + FIELD_DIGITS].iter().try_fold(0_u32, |value, digit| {
        let digit = char::from(*digit).to_digit(16).ok_or(CpioError::BadNumber)?;
        Ok(value << 4 | digit)
    })
}
