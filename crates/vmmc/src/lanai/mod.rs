//! The LANai processor: an instruction-set simulator with exact cycles. Knows no device.
//!
//! This is the later LANai that LLVM generates code for, not the LANai 4.1 of the papers ("Fast Paths" 6.2), for which
//! no compiler is packaged. Numbers of cycles compare programs with each other, not with the papers' card.
//!
//! Time: an instruction takes one cycle. A jump happens after one more instruction (its shadow), a jump by a load into
//! `pc` after two. An instruction that reads the result of the load before it starts one cycle later. Accesses of the
//! DMA engines to memory do not delay the processor.
//!
//! Where LLVM's description leaves the meaning open, ours is: shifts by more than 31 shift everything out, a branch in
//! a shadow takes effect in turn, and the loaded value wins where a load also updates the register.

mod instruction;
mod text;

pub use instruction::{
    Address, AddressMode, AluOperation, BitCount, Condition, Extension, Flags, Instruction, Register,
};

use crate::processor::{Bus, Fault, FaultCause, Flow, Processor, RETURN_ADDRESS, Stop, Width};

/// The number of decoded instructions that are kept; a power of two.
const DECODED: usize = 4096;

/// An instruction that was decoded, with the word it is of: memory may have changed since.
#[derive(Clone, Copy)]
struct Decoded {
    word: u32,
    reads: u32,
    instruction: Instruction,
}

/// The result of a load that the next instruction waits for: the set of its register.
type Pending = u32;

/// The processor.
#[derive(Clone)]
pub struct Lanai {
    registers: [u32; 32],
    zero: bool,
    negative: bool,
    overflow: bool,
    carry: bool,
    pc: u32,
    /// The address of the instruction after this one, and of the one after that: jumps change what follows them.
    next: u32,
    next_but_one: u32,
    pending: Pending,
    cycle: u64,
    instructions: u64,
    decoded: Vec<Decoded>,
}

impl Default for Lanai {
    fn default() -> Self {
        Lanai::new()
    }
}

/// Where execution goes on after the instruction and the one or two in its shadow.
#[derive(Clone, Copy)]
enum Jump {
    None,
    AfterOne(u32),
    AfterTwo(u32),
}

impl Lanai {
    /// A processor in cycle 0. [`Processor::start`] gives it a program.
    pub fn new() -> Lanai {
        let nop = Decoded { word: 1, reads: 0, instruction: Instruction::Nop(1) };
        let mut lanai = Lanai {
            registers: [0; 32],
            zero: false,
            negative: false,
            overflow: false,
            carry: false,
            pc: RETURN_ADDRESS,
            next: RETURN_ADDRESS,
            next_but_one: RETURN_ADDRESS,
            pending: 0,
            cycle: 0,
            instructions: 0,
            decoded: vec![nop; DECODED],
        };
        lanai.registers[Register::ONES.number()] = u32::MAX;
        lanai
    }

    /// The value of a register.
    pub fn register(&self, register: Register) -> u32 {
        self.registers[register.number()]
    }

    #[inline]
    fn holds(&self, condition: Condition) -> bool {
        let function = match condition.code() >> 1 {
            0 => true,
            1 => self.carry && !self.zero,
            2 => !self.carry,
            3 => !self.zero,
            4 => !self.overflow,
            5 => !self.negative,
            6 => self.negative == self.overflow,
            _ => self.negative == self.overflow && !self.zero,
        };
        function != (condition.code() & 1 == 1)
    }

    #[inline]
    fn combine(&self, operation: AluOperation, a: u32, b: u32) -> Sum {
        match operation {
            AluOperation::Add => Sum::of(a, b, false),
            AluOperation::AddCarry => Sum::of(a, b, self.carry),
            AluOperation::Subtract => Sum::of(a, !b, true),
            AluOperation::SubtractBorrow => Sum::of(a, !b, self.carry),
            AluOperation::And => Sum::without_carry(a & b),
            AluOperation::Or => Sum::without_carry(a | b),
            AluOperation::Xor => Sum::without_carry(a ^ b),
            AluOperation::ShiftLogical | AluOperation::ShiftArithmetic => shift(operation, a, b as i32),
        }
    }

    #[inline]
    fn set_flags(&mut self, sum: Sum) {
        self.zero = sum.result == 0;
        self.negative = sum.result >> 31 == 1;
        self.overflow = sum.overflow;
        self.carry = sum.carry;
    }

    /// Writes a register by an instruction of the arithmetic unit.
    #[inline]
    fn write(&mut self, register: Register, value: u32) -> Jump {
        match register {
            Register::ZERO | Register::ONES => Jump::None,
            Register::PC => Jump::AfterOne(value),
            _ => {
                self.registers[register.number()] = value;
                Jump::None
            }
        }
    }

    /// Writes a register by a load.
    #[inline]
    fn write_loaded(&mut self, register: Register, value: u32) -> Jump {
        match self.write(register, value) {
            Jump::AfterOne(target) => Jump::AfterTwo(target),
            other => other,
        }
    }

    /// The address of an access, and the new value of the base register if there is one.
    #[inline]
    fn address_of(&self, address: Address) -> (u32, Option<(Register, u32)>) {
        let (base, sum, mode) = match address {
            Address::Offset { base, offset, mode } => {
                (base, self.register(base).wrapping_add(i32::from(offset) as u32), mode)
            }
            Address::Index { base, index, operation, mode } => {
                (base, self.combine(operation, self.register(base), self.register(index)).result, mode)
            }
            // "The two low-order bits of the 21-bit address are ignored."
            Address::Absolute(address) => return (address & !3, None),
        };
        let effective = match mode {
            AddressMode::Base | AddressMode::PostUpdate => self.register(base),
            AddressMode::Sum | AddressMode::PreUpdate => sum,
        };
        (effective, mode.updates_base().then_some((base, sum)))
    }

    #[cold]
    fn fault(&self, cause: FaultCause) -> Fault {
        Fault { pc: self.pc, cycle: self.cycle, cause }
    }

    #[inline]
    fn decode(&mut self, word: u32) -> Result<Decoded, Fault> {
        let slot = (self.pc >> 2) as usize % DECODED;
        if self.decoded[slot].word != word {
            let Some(instruction) = Instruction::decode(word) else {
                return Err(self.fault(FaultCause::Instruction(word)));
            };
            // `pc` is not loaded into a register from which the next instruction could read it.
            let reads = instruction.registers_read() & !Register::PC.mask();
            self.decoded[slot] = Decoded { word, reads, instruction };
        }
        Ok(self.decoded[slot])
    }

    /// Executes an instruction whose time has come.
    #[inline]
    fn execute(&mut self, instruction: Instruction, bus: &mut impl Bus) -> Result<(Jump, Flow), Fault> {
        let mut flow = Flow::Continue;
        let jump = match instruction {
            Instruction::Nop(_) => Jump::None,
            Instruction::AluImmediate { operation, flags, rd, rs1, immediate } => {
                let sum = self.combine(operation, self.register(rs1), immediate);
                if flags == Flags::Set {
                    self.set_flags(sum);
                }
                self.write(rd, sum.result)
            }
            Instruction::AluRegister { operation, flags, condition, rd, rs1, rs2 } => {
                if !self.holds(condition) {
                    Jump::None
                } else {
                    let sum = self.combine(operation, self.register(rs1), self.register(rs2));
                    if flags == Flags::Set {
                        // Of this format, "only arithmetic instructions and shifts modify C".
                        let carry = self.carry;
                        self.set_flags(sum);
                        if matches!(operation, AluOperation::And | AluOperation::Or | AluOperation::Xor) {
                            self.carry = carry;
                        }
                    }
                    self.write(rd, sum.result)
                }
            }
            Instruction::Select { condition, rd, rs1, rs2 } => {
                let source = if self.holds(condition) { rs1 } else { rs2 };
                self.write(rd, self.register(source))
            }
            Instruction::Count { count, rd, rs1 } => {
                let value = self.register(rs1);
                let count = match count {
                    BitCount::Ones => value.count_ones(),
                    BitCount::LeadingZeros => value.leading_zeros(),
                    BitCount::TrailingZeros => value.trailing_zeros(),
                };
                self.write(rd, count)
            }
            Instruction::Load { rd, address, width, extension } => {
                let (effective, update) = self.address_of(address);
                let value = match bus.load(effective, width, self.cycle) {
                    Ok(value) => value,
                    Err(error) => return Err(self.fault(FaultCause::Load(effective, error))),
                };
                let value = match (width, extension) {
                    (Width::Byte, Extension::Sign) => value as u8 as i8 as u32,
                    (Width::Half, Extension::Sign) => value as u16 as i16 as u32,
                    (Width::Word, _) | (_, Extension::Zero) => value,
                };
                let base_jump = update.map_or(Jump::None, |(base, sum)| self.write(base, sum));
                self.pending = rd.mask();
                match self.write_loaded(rd, value) {
                    Jump::None => base_jump,
                    jump => jump,
                }
            }
            Instruction::Store { rd, address, width } => {
                let (effective, update) = self.address_of(address);
                flow = match bus.store(effective, width, self.register(rd), self.cycle) {
                    Ok(flow) => flow,
                    Err(error) => return Err(self.fault(FaultCause::Store(effective, error))),
                };
                update.map_or(Jump::None, |(base, sum)| self.write(base, sum))
            }
            Instruction::LoadImmediate { rd, value } => {
                // "The timing is the same as the RM instruction."
                self.pending = rd.mask();
                self.write_loaded(rd, value)
            }
            Instruction::Branch { condition, target } => self.jump_if(condition, target),
            Instruction::BranchOffset { condition, target } => self.jump_if(condition, i32::from(target) as u32),
            Instruction::SetCondition { condition, rd } => self.write(rd, u32::from(self.holds(condition))),
        };
        Ok((jump, flow))
    }

    #[inline]
    fn jump_if(&self, condition: Condition, target: u32) -> Jump {
        if self.holds(condition) { Jump::AfterOne(target) } else { Jump::None }
    }

    /// Goes on to the next instruction.
    #[inline]
    fn advance(&mut self, jump: Jump) {
        let following = self.next_but_one.wrapping_add(4);
        self.pc = self.next;
        (self.next, self.next_but_one) = match jump {
            Jump::None => (self.next_but_one, following),
            Jump::AfterOne(target) => (target, target.wrapping_add(4)),
            Jump::AfterTwo(target) => (self.next_but_one, target),
        };
    }
}

/// A result and the flags of the addition it is of.
#[derive(Clone, Copy)]
struct Sum {
    result: u32,
    carry: bool,
    overflow: bool,
}

impl Sum {
    #[inline]
    fn of(a: u32, b: u32, carry: bool) -> Sum {
        let wide = u64::from(a) + u64::from(b) + u64::from(carry);
        let result = wide as u32;
        Sum { result, carry: wide >> 32 != 0, overflow: (a ^ result) & (b ^ result) & 0x8000_0000 != 0 }
    }

    #[inline]
    fn without_carry(result: u32) -> Sum {
        Sum { result, carry: false, overflow: false }
    }
}

#[inline]
fn shift(operation: AluOperation, value: u32, amount: i32) -> Sum {
    if amount >= 0 {
        // "`C' is set to the least significant bit discarded."
        let carry = (1..=32).contains(&amount) && value >> (32 - amount as u32) & 1 == 1;
        return Sum { result: value.checked_shl(amount as u32).unwrap_or(0), carry, overflow: false };
    }
    let right = amount.unsigned_abs();
    Sum::without_carry(match operation {
        AluOperation::ShiftArithmetic => (value as i32 >> right.min(31)) as u32,
        _ => value.checked_shr(right).unwrap_or(0),
    })
}

impl Processor for Lanai {
    fn start(&mut self, bus: &mut impl Bus, entry: u32, stack_top: u32) -> Result<(), Fault> {
        // A call pushes the return address; the function finds it below its frame pointer, which is `sp + 4` then.
        let stack = (stack_top & !3).wrapping_sub(4);
        (self.pc, self.next, self.next_but_one) = (entry, entry.wrapping_add(4), entry.wrapping_add(8));
        self.pending = 0;
        if let Err(error) = bus.store(stack, Width::Word, RETURN_ADDRESS, self.cycle) {
            return Err(self.fault(FaultCause::Store(stack, error)));
        }
        self.registers[Register::SP.number()] = stack;
        self.registers[Register::FP.number()] = stack;
        Ok(())
    }

    fn run(&mut self, bus: &mut impl Bus, until: u64) -> Result<Stop, Fault> {
        while self.cycle < until {
            if self.pc == RETURN_ADDRESS {
                return Ok(Stop::Returned(self.register(Register::RV)));
            }
            let word = match bus.fetch(self.pc) {
                Ok(word) => word,
                Err(error) => return Err(self.fault(FaultCause::Fetch(error))),
            };
            let decoded = self.decode(word)?;
            self.cycle += u64::from(decoded.reads & self.pending != 0);
            self.pending = 0;
            self.registers[Register::PC.number()] = self.pc;
            let (jump, flow) = self.execute(decoded.instruction, bus)?;
            self.instructions += 1;
            self.cycle += 1;
            self.advance(jump);
            if flow == Flow::Pause {
                return Ok(Stop::Paused);
            }
        }
        Ok(Stop::Limit)
    }

    fn cycle(&self) -> u64 {
        self.cycle
    }

    fn pc(&self) -> u32 {
        self.pc
    }

    fn skip_to(&mut self, cycle: u64) {
        self.cycle = self.cycle.max(cycle);
    }

    fn instructions(&self) -> u64 {
        self.instructions
    }
}
