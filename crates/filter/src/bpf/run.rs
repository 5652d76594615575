//! The interpreter that defines the semantics of programs: that of `bpf_filter` of libpcap. A load that is not inside
//! the packet rejects it, as does division by zero; arithmetic wraps at 32 bits; scratch memory starts as zeros.

use super::{Arithmetic, Condition, MAX_BACKWARD_JUMPS, MEMORY_WORDS, Operand, Operation, Program};
use crate::packet::Packet;

impl Program {
    /// The verdict on a packet: how many bytes of it are wanted; zero rejects it.
    pub fn run(&self, packet: Packet<'_>) -> u32 {
        self.end(packet).unwrap_or(0)
    }

    /// The verdict; `None` if the packet was rejected before the program returned.
    fn end(&self, packet: Packet<'_>) -> Option<u32> {
        let (mut a, mut x) = (0_u32, 0_u32);
        let mut memory = [0_u32; MEMORY_WORDS];
        let mut at = 0_usize;
        let mut backward = 0;
        loop {
            let operation = *self.operations.get(at)?;
            at += 1;
            let value = |operand| match operand {
                Operand::Constant(k) => k,
                Operand::Index => x,
            };
            match operation {
                Operation::LoadConstant(k) => a = k,
                Operation::LoadAbsolute(size, k) => a = packet.load(u64::from(k), size.bytes())?,
                Operation::LoadIndirect(size, k) => a = packet.load(u64::from(k) + u64::from(x), size.bytes())?,
                Operation::LoadLength => a = packet.wire_length(),
                Operation::LoadMemory(k) => a = memory[k as usize],
                Operation::IndexConstant(k) => x = k,
                Operation::IndexLength => x = packet.wire_length(),
                Operation::IndexMemory(k) => x = memory[k as usize],
                Operation::IndexHeader(k) => x = (packet.load(u64::from(k), 1)? & 15) << 2,
                Operation::Store(k) => memory[k as usize] = a,
                Operation::StoreIndex(k) => memory[k as usize] = x,
                Operation::Arithmetic(arithmetic, operand) => a = arithmetic.apply(a, value(operand))?,
                Operation::Negate => a = a.wrapping_neg(),
                Operation::Jump(by) => {
                    if by < 0 {
                        backward += 1;
                        if backward > MAX_BACKWARD_JUMPS {
                            return None;
                        }
                    }
                    at = at.wrapping_add_signed(by as isize);
                }
                Operation::Branch(condition, operand, jt, jf) => {
                    at += usize::from(if condition.holds(a, value(operand)) { jt } else { jf });
                }
                Operation::Return(k) => return Some(k),
                Operation::ReturnAccumulator => return Some(a),
                Operation::Tax => x = a,
                Operation::Txa => a = x,
            }
        }
    }
}

impl Arithmetic {
    /// The result; `None` for a division by zero.
    pub fn apply(self, a: u32, b: u32) -> Option<u32> {
        match self {
            Arithmetic::Add => Some(a.wrapping_add(b)),
            Arithmetic::Sub => Some(a.wrapping_sub(b)),
            Arithmetic::Mul => Some(a.wrapping_mul(b)),
            Arithmetic::Div => a.checked_div(b),
            Arithmetic::Mod => a.checked_rem(b),
            Arithmetic::And => Some(a & b),
            Arithmetic::Or => Some(a | b),
            Arithmetic::Xor => Some(a ^ b),
            Arithmetic::Lsh => Some(a.checked_shl(b).unwrap_or(0)),
            Arithmetic::Rsh => Some(a.checked_shr(b).unwrap_or(0)),
        }
    }
}

impl Condition {
    /// Whether it holds.
    pub fn holds(self, a: u32, b: u32) -> bool {
        match self {
            Condition::Equal => a == b,
            Condition::Greater => a > b,
            Condition::GreaterEqual => a >= b,
            Condition::Set => a & b != 0,
        }
    }
}
