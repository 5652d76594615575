//! The bytes of an x86-64 instruction of the system layer, packed in a register and stored at once. With registers
//! and immediates that are known when the client is compiled, an instruction is a constant and its store.
//!
//! Unlike the functions of `cursor.rs`, these write a REX prefix only where it is needed, the shortest displacement,
//! and addresses with any base.

use crate::cursor::{Cursor, fits_signed};
use crate::generated::x86_64::Reg;
use crate::registers::Register;

/// Any of the sixteen registers. Portable instructions do not take rsp, r11 and r12, so that those are of this type
/// only; where this type is expected every [`Reg`] can be passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AnyRegister {
    /// Held as it is needed, like [`Reg`].
    pub(crate) r: u32,
    pub(crate) b: u32,
}

impl AnyRegister {
    pub(crate) const fn new(number: u32) -> AnyRegister {
        let Reg { r, b } = Reg::new(number);
        AnyRegister { r, b }
    }

    /// The register with this number, from 0 to 15.
    #[must_use]
    pub fn from_number(number: u8) -> AnyRegister {
        Reg::from_number(number & 15).into()
    }
}

impl From<Reg> for AnyRegister {
    #[inline(always)]
    fn from(register: Reg) -> AnyRegister {
        AnyRegister { r: register.r, b: register.b }
    }
}

/// The ModRM and SIB field that stands for a SIB byte, for no index, and, without a mode, for no base.
const SIB: u32 = 4;
const NO_INDEX: u32 = 4 << 3;
const NO_BASE: u32 = 5;

/// An instruction so far.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pack {
    bytes: u128,
    length: u32,
}

impl Pack {
    #[inline(always)]
    pub(crate) fn new() -> Pack {
        Pack { bytes: 0, length: 0 }
    }

    #[inline(always)]
    pub(crate) fn byte(self, byte: u32) -> Pack {
        self.immediate(u64::from(byte), 1)
    }

    #[inline(always)]
    pub(crate) fn immediate(self, value: u64, bytes: u32) -> Pack {
        let value = if bytes < 8 { value & ((1 << (8 * bytes)) - 1) } else { value };
        Pack { bytes: self.bytes | u128::from(value) << (8 * self.length), length: self.length + bytes }
    }

    /// A REX prefix with the high bits of register numbers.
    #[inline(always)]
    pub(crate) fn rex(self, prefix: u32, bits: u32) -> Pack {
        self.byte(prefix | bits & 7)
    }

    /// The same, if there are such bits.
    #[inline(always)]
    pub(crate) fn short_rex(self, bits: u32) -> Pack {
        if bits & 7 == 0 { self } else { self.rex(0x40, bits) }
    }

    /// An opcode with a register.
    #[inline(always)]
    pub(crate) fn plus(self, opcode: u32, base: u32) -> Pack {
        self.byte(opcode | base >> 16)
    }

    /// Two registers.
    #[inline(always)]
    pub(crate) fn registers(self, reg: u32, base: u32) -> Pack {
        self.byte(0xc0 | reg >> 16 | base >> 16)
    }

    /// A base and a displacement.
    #[inline(always)]
    pub(crate) fn any_base(self, reg: u32, base: u32, offset: i32) -> Pack {
        let (reg, low) = (reg >> 16, base >> 16);
        // The mode without displacement has another meaning for rbp and r13.
        let (mode, bytes) = match fits_signed(i64::from(offset), 8, 0) {
            _ if offset == 0 && low != NO_BASE => (0x00, 0),
            true => (0x40, 1),
            false => (0x80, 4),
        };
        let address = self.byte(mode | reg | low);
        // rsp and r12 are written in a SIB byte.
        let address = if low == SIB { address.byte(NO_INDEX | SIB) } else { address };
        address.immediate(u64::from(offset as u32), bytes)
    }

    /// A displacement alone.
    #[inline(always)]
    pub(crate) fn absolute(self, reg: u32, offset: i32) -> Pack {
        self.byte(reg >> 16 | SIB).byte(NO_INDEX | NO_BASE).immediate(u64::from(offset as u32), 4)
    }

    /// An index times eight and a displacement.
    #[inline(always)]
    pub(crate) fn scaled(self, reg: u32, index: u32, offset: i32) -> Pack {
        let sib = 3 << 6 | index >> 16 | NO_BASE;
        self.byte(reg >> 16 | SIB).byte(sib).immediate(u64::from(offset as u32), 4)
    }

    /// A base, an index that is shifted left by `scale`, and a displacement.
    #[inline(always)]
    pub(crate) fn indexed(self, reg: u32, base: u32, index: u32, scale: u32, offset: i32) -> Pack {
        let (mode, bytes) = if fits_signed(i64::from(offset), 8, 0) { (0x40, 1) } else { (0x80, 4) };
        let sib = scale << 6 | index >> 16 | base >> 16;
        self.byte(mode | reg >> 16 | SIB).byte(sib).immediate(u64::from(offset as u32), bytes)
    }

    /// A distance to a label, which is patched later.
    #[inline(always)]
    pub(crate) fn label(self, reg: u32) -> Pack {
        self.byte(reg >> 16 | 5).immediate(0, 4)
    }
}

impl Cursor {
    /// Stores an instruction, and perhaps zeros after it.
    #[inline(always)]
    pub(crate) fn pack(&mut self, instruction: Pack) {
        let Pack { bytes, length } = instruction;
        if length <= 8 {
            return self.bytes(bytes as u64, length as usize);
        }
        // SAFETY: the invariant of the type: space was reserved, and as many bytes follow it as are stored.
        unsafe { self.ip.cast::<[u64; 2]>().write_unaligned([(bytes as u64).to_le(), ((bytes >> 64) as u64).to_le()]) };
        self.ip = self.ip.wrapping_add(length as usize);
    }
}
