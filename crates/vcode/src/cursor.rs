//! The write cursor: the address of the next instruction. It stores words and the byte sequences of x86. It is passed
//! by value, so that the compiler keeps it in a register.

/// Where the next byte of code goes.
///
/// Invariant: `Asm::space` was called for at least as many bytes as are stored before it is called again, and at least
/// [`SLACK`] writable bytes follow those.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cursor {
    pub(crate) ip: *mut u8,
}

/// The number of bytes past the last instruction that may be overwritten: stores are eight bytes wide where that is
/// fastest.
pub(crate) const SLACK: usize = 16;

impl Cursor {
    /// The address `bytes` before the cursor.
    #[inline(always)]
    pub(crate) fn back(self, bytes: usize) -> *mut u8 {
        self.ip.wrapping_sub(bytes)
    }

    /// Stores a little-endian word.
    #[inline(always)]
    pub(crate) fn word(&mut self, word: u32) {
        // SAFETY: the invariant of the type: space for this word was reserved.
        unsafe { self.ip.cast::<u32>().write_unaligned(word.to_le()) };
        self.ip = self.ip.wrapping_add(4);
    }

    /// Stores a big-endian word.
    #[inline(always)]
    pub(crate) fn word_big(&mut self, word: u32) {
        // SAFETY: the invariant of the type: space for this word was reserved.
        unsafe { self.ip.cast::<u32>().write_unaligned(word.to_be()) };
        self.ip = self.ip.wrapping_add(4);
    }

    /// Stores the low `length` bytes of `value`, and perhaps garbage after them.
    #[inline(always)]
    pub(crate) fn bytes(&mut self, value: u64, length: usize) {
        if length <= 4 {
            // SAFETY: the invariant of the type: space was reserved, and SLACK bytes follow it.
            unsafe { self.ip.cast::<u32>().write_unaligned((value as u32).to_le()) };
        } else {
            // SAFETY: the invariant of the type: space was reserved, and SLACK bytes follow it.
            unsafe { self.ip.cast::<u64>().write_unaligned(value.to_le()) };
        }
        self.ip = self.ip.wrapping_add(length);
    }

    /// Stores an x86 instruction with base and displacement. `constant` holds its `length` bytes up to the ModRM byte,
    /// which is at index `length`; the REX prefix is at index `rex`. The base is never rsp or r12, which would need
    /// another byte: neither is handed out.
    #[inline(always)]
    pub(crate) fn offset(&mut self, constant: u64, rex: u32, length: u32, reg: u32, base: u32, offset: i64) {
        self.displaced(constant | place(reg | base, rex, length), length, length + 1, offset);
    }

    /// Like [`Cursor::offset`], from the stack pointer, which is spelt with a SIB byte.
    #[inline(always)]
    pub(crate) fn stack_offset(&mut self, constant: u64, rex: u32, length: u32, reg: u32, base: u32, offset: i64) {
        let value = constant | place(reg | base, rex, length) | 0x24 << (8 * length + 8);
        self.displaced(value, length, length + 2, offset);
    }

    /// Stores `value`, of `after` bytes, with the mode of its ModRM byte at `modrm`, and the displacement.
    #[inline(always)]
    fn displaced(&mut self, value: u64, modrm: u32, after: u32, offset: i64) {
        let short = fits_signed(offset, 8, 0);
        let value = value | (if short { 0x40 } else { 0x80 }) << (8 * modrm);
        let size = if short { 1 } else { 4 };
        if after <= 4 {
            // After one byte of displacement, its other three are garbage that the next instruction overwrites.
            self.bytes(value | (offset as u32 as u64) << (8 * after), (after + size) as usize);
        } else {
            self.bytes(value, after as usize);
            self.bytes(offset as u32 as u64, size as usize);
        }
    }

    /// Stores an x86 instruction with a VEX or EVEX prefix, base and displacement. Short displacements count in units
    /// of two to the `scale`.
    #[inline(always)]
    pub(crate) fn vex_offset(&mut self, constant: u64, modrm: u32, bits: u32, second: u32, offset: i64, scale: u32) {
        let short = fits_signed(offset, 8 + scale, scale);
        let mode = (if short { 0x40 } else { 0x80 }) << (8 * modrm);
        self.bytes(constant | vex(bits, second, modrm) | mode, modrm as usize + 1);
        let displacement = if short { offset >> scale } else { offset };
        self.bytes(displacement as u32 as u64, if short { 1 } else { 4 });
    }

    /// Stores an x86 instruction with base and index, which is shifted left by `scale`, like [`Cursor::offset`]. The
    /// displacement is a zero byte, because without one a base of rbp or r13 means something else.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the parts of an addressing mode")]
    pub(crate) fn index(&mut self, constant: u64, rex: u32, length: u32, reg: u32, base: u32, index: u32, scale: u32) {
        let value = constant | place(reg | (index & 4) >> 1 | base & 1, rex, length);
        let sib = (base >> 16 & 7) | (index >> 16 & 0x38) | scale << 6;
        let value = value & !(7 << (8 * length)) | 0x44 << (8 * length) | u64::from(sib) << (8 * length + 8);
        self.bytes(value, (length + 3) as usize);
    }

    /// Like [`Cursor::index`], with a displacement.
    #[inline(always)]
    #[expect(clippy::too_many_arguments, reason = "the parts of an addressing mode")]
    pub(crate) fn index_offset(
        &mut self,
        constant: u64,
        rex: u32,
        length: u32,
        reg: u32,
        base: u32,
        index: u32,
        scale: u32,
        offset: i64,
    ) {
        let value = constant | place(reg | (index & 4) >> 1 | base & 1, rex, length);
        let sib = (base >> 16 & 7) | (index >> 16 & 0x38) | scale << 6;
        let value = value & !(7 << (8 * length)) | 4 << (8 * length) | u64::from(sib) << (8 * length + 8);
        self.displaced(value, length, length + 2, offset);
    }
}

#[inline(always)]
fn place(bits: u32, rex: u32, modrm: u32) -> u64 {
    if rex == 0 && modrm == 2 { u64::from(bits) } else { spread(bits, rex, modrm) }
}

/// Puts the REX bits of a register at byte `rex` and its ModRM bits at byte `modrm`.
#[inline(always)]
pub(crate) fn spread(bits: u32, rex: u32, modrm: u32) -> u64 {
    u64::from(bits & 0xff) << (8 * rex) | u64::from(bits >> 16) << (8 * modrm)
}

/// Puts the register bits of an instruction, inverted, into the VEX or EVEX prefix at byte 0, with the second source,
/// and the rest into its ModRM byte.
#[inline(always)]
pub(crate) fn vex(bits: u32, second: u32, modrm: u32) -> u64 {
    let number = (second & 1) << 3 | second >> 16;
    u64::from(!bits & 7) << 13 | u64::from(!number & 15) << 19 | u64::from(bits >> 16) << (8 * modrm)
}

/// Whether `value` is a multiple of two to the `scale` in `bits` signed bits.
#[inline(always)]
pub(crate) fn fits_signed(value: i64, bits: u32, scale: u32) -> bool {
    let shift = 64 - bits;
    (value << shift) >> shift == value && value & ((1 << scale) - 1) == 0
}

/// Whether `value` is a multiple of two to the `scale` in `bits` unsigned bits.
#[inline(always)]
pub(crate) fn fits_unsigned(value: i64, bits: u32, scale: u32) -> bool {
    (value as u64) >> bits == 0 && value & ((1 << scale) - 1) == 0
}
