//! The listing of machine code: a row per instruction, with address, bytes and assembler text. Needs neither an
//! operating system nor memory.

use core::fmt;

use super::table::{Decoded, Table};

/// Machine code as rows. Displays as a line per row.
///
/// ```
/// use quaject_vcode::decode::{Disassembly, X86_64};
///
/// let code = [0x90, 0xe9, 0x0a, 0, 0, 0, 0x06, 0xc3];
/// let text = Disassembly::new(&X86_64, &code, 0x1000).to_string();
/// assert_eq!(
///     text,
///     "    1000  90                       nop
///     1001  e9 0a 00 00 00           jmp .+15  # 0x1010
///     1006  06                       ?
///     1007  c3                       ret
/// "
/// );
/// ```
#[derive(Debug, Clone, Copy)]
pub struct Disassembly<'c> {
    table: &'static Table,
    code: &'c [u8],
    address: usize,
}

/// An instruction of a [`Disassembly`].
#[derive(Debug, Clone, Copy)]
pub struct DisassemblyRow<'c> {
    /// Its address.
    pub address: usize,
    /// Its bytes.
    pub bytes: &'c [u8],
    /// What the bytes are; none if they are no instruction that this crate emits.
    pub decoded: Option<Decoded>,
}

impl<'c> Disassembly<'c> {
    /// Code of a machine that is executed at `address`.
    pub fn new(table: &'static Table, code: &'c [u8], address: usize) -> Self {
        Disassembly { table, code, address }
    }
}

impl<'c> Iterator for Disassembly<'c> {
    type Item = DisassemblyRow<'c>;

    fn next(&mut self) -> Option<DisassemblyRow<'c>> {
        if self.code.is_empty() {
            return None;
        }
        let decoded = self.table.decode(self.code);
        let unit = if self.table.is_words() { 4 } else { 1 };
        let length = decoded.map_or(unit, |decoded| decoded.length).min(self.code.len());
        let (bytes, rest) = self.code.split_at(length);
        let row = DisassemblyRow { address: self.address, bytes, decoded };
        (self.code, self.address) = (rest, self.address.wrapping_add(length));
        Some(row)
    }
}

impl DisassemblyRow<'_> {
    /// The address that a relative branch refers to.
    pub fn target(&self) -> Option<usize> {
        Some(self.address.wrapping_add_signed(self.decoded?.distance()? as isize))
    }
}

/// The width of the column of bytes: those of most instructions.
const BYTES: usize = 8;

impl fmt::Display for DisassemblyRow<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:8x}  ", self.address)?;
        for byte in self.bytes {
            write!(f, "{byte:02x} ")?;
        }
        for _ in self.bytes.len()..BYTES {
            f.write_str("   ")?;
        }
        match self.decoded {
            Some(decoded) => write!(f, " {decoded}")?,
            None => f.write_str(" ?")?,
        }
        match self.target() {
            Some(target) => write!(f, "  # {target:#x}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Disassembly<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in *self {
            writeln!(f, "{row}")?;
        }
        Ok(())
    }
}
