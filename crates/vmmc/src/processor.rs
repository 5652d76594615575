//! What a processor of a card and the memory around it expect of each other. Knows no instruction set and no device.

use std::error::Error;
use std::fmt;

/// The address to which the function that a processor starts with returns: no memory is there.
pub const RETURN_ADDRESS: u32 = 0xffff_fffc;

/// The size of an access to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// One byte.
    Byte,
    /// Two bytes, at an even address.
    Half,
    /// Four bytes, at a multiple of four.
    Word,
}

impl Width {
    /// The number of bytes.
    pub const fn bytes(self) -> u32 {
        match self {
            Width::Byte => 1,
            Width::Half => 2,
            Width::Word => 4,
        }
    }
}

/// What a processor does after a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next instruction.
    Continue,
    /// Nothing: it ends [`Processor::run`] after this instruction, as the store asked to wait.
    Pause,
}

/// Memory and registers of devices as a processor sees them. `now` is the cycle of the access.
pub trait Bus {
    /// The instruction word at `address`.
    ///
    /// # Errors
    /// Where no code can be.
    fn fetch(&self, address: u32) -> Result<u32, AccessError>;

    /// The value at `address`, zero-extended.
    ///
    /// # Errors
    /// Where nothing can be loaded with this width.
    fn load(&mut self, address: u32, width: Width, now: u64) -> Result<u32, AccessError>;

    /// Stores the low bytes of `value`.
    ///
    /// # Errors
    /// Where nothing can be stored with this width, and where a device refuses the value.
    fn store(&mut self, address: u32, width: Width, value: u32, now: u64) -> Result<Flow, AccessError>;
}

/// Why [`Processor::run`] ended without a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// The cycle that was the limit is reached.
    Limit,
    /// A store asked to wait.
    Paused,
    /// The function that it started with has returned this value.
    Returned(u32),
}

/// A processor with exact cycle counts.
pub trait Processor {
    /// Sets the processor to the first instruction of the function at `entry`, with a stack that grows down from
    /// `stack_top`. The function has no parameters and returns to [`RETURN_ADDRESS`].
    ///
    /// # Errors
    /// When the stack is not in memory.
    fn start(&mut self, bus: &mut impl Bus, entry: u32, stack_top: u32) -> Result<(), Fault>;

    /// Executes instructions that start before cycle `until`. The last may end [`MAX_OVERRUN_CYCLES`] later.
    ///
    /// # Errors
    /// At the first instruction that has no meaning. The processor is then of no use any more.
    fn run(&mut self, bus: &mut impl Bus, until: u64) -> Result<Stop, Fault>;

    /// The cycle at which the next instruction starts.
    fn cycle(&self) -> u64;

    /// The address of the next instruction.
    fn pc(&self) -> u32;

    /// Lets cycles pass without instructions.
    fn skip_to(&mut self, cycle: u64);

    /// The number of instructions that were executed.
    fn instructions(&self) -> u64;
}

/// The longest time of one instruction after its first cycle.
pub const MAX_OVERRUN_CYCLES: u64 = 4;

/// Why memory or a device refuses an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccessError {
    /// The address is no multiple of the width.
    Unaligned,
    /// No memory and no register is there.
    OutOfRange,
    /// Registers of devices are words.
    PartOfRegister,
    /// The register cannot be read.
    WriteOnly,
    /// The register cannot be written.
    ReadOnly,
    /// The engine has no such command.
    Command(u32),
    /// The engine works on an earlier command.
    EngineBusy,
    /// The bytes that the engine should transfer are not all in the memory that is named.
    Transfer {
        /// Which memory.
        memory: &'static str,
        /// The address in that memory.
        address: u32,
        /// The length in bytes.
        length: u32,
    },
    /// A packet has more bytes than the network allows.
    PacketLength(u64),
}

impl fmt::Display for AccessError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AccessError::Unaligned => write!(f, "the address is not aligned"),
            AccessError::OutOfRange => write!(f, "nothing is at the address"),
            AccessError::PartOfRegister => write!(f, "a register of a device is accessed as a word only"),
            AccessError::WriteOnly => write!(f, "the register cannot be read"),
            AccessError::ReadOnly => write!(f, "the register cannot be written"),
            AccessError::Command(command) => write!(f, "the engine has no command {command}"),
            AccessError::EngineBusy => write!(f, "the engine works on an earlier command"),
            AccessError::Transfer { memory, address, length } => {
                write!(f, "{length} bytes at {address:#x} are not in {memory}")
            }
            AccessError::PacketLength(length) => write!(f, "a packet of {length} bytes is too long"),
        }
    }
}

impl Error for AccessError {}

/// A program did what has no meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The address of the instruction.
    pub pc: u32,
    /// When it was executed.
    pub cycle: u64,
    /// What it did.
    pub cause: FaultCause,
}

/// What an instruction did that has no meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultCause {
    /// The word is no instruction.
    Instruction(u32),
    /// No instruction can be at the address.
    Fetch(AccessError),
    /// A load.
    Load(u32, AccessError),
    /// A store.
    Store(u32, AccessError),
    /// The bytes that the send engine reads were written before it had sent them: on a real card either the old or
    /// the new bytes reach the network.
    SendBufferChanged {
        /// The address of the buffer.
        address: u32,
        /// Its length in bytes.
        length: u32,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "at {:#x} in cycle {}: ", self.pc, self.cycle)?;
        match &self.cause {
            FaultCause::Instruction(word) => write!(f, "the word {word:#010x} is no instruction"),
            FaultCause::Fetch(error) => write!(f, "no instruction can be there: {error}"),
            FaultCause::Load(address, error) => write!(f, "load from {address:#x}: {error}"),
            FaultCause::Store(address, error) => write!(f, "store to {address:#x}: {error}"),
            FaultCause::SendBufferChanged { address, length } => {
                write!(f, "the {length} bytes at {address:#x} were written before they were sent")
            }
        }
    }
}

impl Error for Fault {}
