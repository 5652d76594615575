//! Pipes for machines other than the running one: code and frames as bytes, for tests under an emulator. Also
//! properties of native code, for tests.

use quaject_vcode::{Asm, Code, Core, Extension, Features, Machine, VectorMachine, Vectors};

use crate::compose::{self, Space};
use crate::crc32c;
use crate::error::Error;
use crate::frame;
use crate::pipe::{Composer, Pipe, Registers};
use crate::plan::Plan;
use crate::policy::Store;
use crate::report::Report;
use crate::step::Step;

/// The maximum length of a function in bytes.
pub const MAX_BYTES: usize = compose::MAX_BYTES;
/// Bytes of a frame.
pub const FRAME_BYTES: usize = frame::BYTES;

/// The order of bytes and the width of registers of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Whether the lowest byte comes first.
    pub little: bool,
    /// Bits of an integer register.
    pub bits: u32,
}

impl Layout {
    /// That of a machine.
    pub fn of<M: Machine>() -> Layout {
        Layout { little: M::LITTLE_ENDIAN, bits: M::LONG_BITS }
    }

    fn bytes(self, value: u64) -> [u8; 8] {
        if self.little { value.to_le_bytes() } else { value.to_be_bytes() }
    }
}

/// The addresses that the frame points to.
#[derive(Debug, Clone, Copy)]
pub struct Addresses {
    /// Every key stream.
    pub streams: u64,
    /// The tables that [`tables`] returned.
    pub tables: u64,
}

/// Composes for this machine in integer registers, as for those without vectors.
///
/// # Errors
/// Those of [`Composer::with_features`].
pub fn integer_composer(features: Features) -> Result<Composer, Error> {
    Composer::with(features, Registers::Integer)
}

/// A composer whose pipes run by the reference implementation, as on systems without code memory.
pub fn reference_composer() -> Composer {
    Composer::reference()
}

/// The machine code of a pipe, by which equal pipes can be distinguished from different ones, and the bits of its
/// vectors, or 0.
///
/// # Errors
/// Those of [`Pipe::explain`].
pub fn code(pipe: &Pipe, store: Store) -> Result<(&[u8], u32), Error> {
    Ok((pipe.code_bytes(store)?, pipe.vector_bits(store)?))
}

/// Composes in integer registers.
///
/// # Errors
/// Those of [`Composer::compose`](crate::Composer::compose).
pub fn compose<M: Machine>(steps: &[Step], features: Features, buffer: &mut [u8]) -> Result<Code, Error>
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let plan = Plan::new(steps)?;
    plan.check_register_bits(Layout::of::<M>().bits)?;
    Ok(compose::compose::<M>(buffer.into(), &mut Space::with_room(), &plan, features)?)
}

/// Composes with vectors.
///
/// # Errors
/// Those of [`Composer::compose`](crate::Composer::compose).
pub fn compose_vectors<M: VectorMachine>(
    steps: &[Step],
    features: Features,
    store: Store,
    buffer: &mut [u8],
) -> Result<Code, Error>
where
    for<'a> Asm<'a, M>: Extension + Vectors<Vector = M::Vector> + Core<Reg = M::Reg, Float = M::Float>,
{
    let plan = Plan::new(steps)?;
    Ok(compose::compose_vectors::<M>(buffer.into(), &mut Space::with_room(), &plan, features, store)?.code)
}

/// The tables that code for processors without an instruction for CRC-32C reads.
pub fn tables(layout: Layout) -> Vec<u8> {
    let words = crc32c::TABLES.iter().flatten();
    words.flat_map(|word| if layout.little { word.to_le_bytes() } else { word.to_be_bytes() }).collect()
}

/// The frame, which the first argument of a composed function points to, aligned to 64 bytes. The other arguments are
/// source, target and length, and `u32::MAX`, which code with a CRC as its only result takes.
///
/// # Errors
/// Those of [`Composer::compose`](crate::Composer::compose).
pub fn frame(steps: &[Step], layout: Layout, addresses: Addresses) -> Result<Vec<u8>, Error> {
    let plan = Plan::new(steps)?;
    let mut slots = [0; frame::KEYS];
    slots[frame::TABLES] = addresses.tables;
    slots[frame::STREAMS..frame::ACCUMULATORS].fill(addresses.streams);
    plan.open(&mut slots[frame::ACCUMULATORS..]);
    let mut bytes: Vec<u8> = slots.into_iter().flat_map(|slot| layout.bytes(slot)).collect();
    bytes.extend(plan.keys().iter().flatten());
    bytes.extend(frame::first_word());
    bytes.extend(frame::lanes());
    bytes.resize(frame::shuffle_offset(2), 0);
    bytes.extend(frame::shuffle_masks().iter().flatten());
    Ok(bytes)
}

/// The results of the steps, from the frame after the run and the return value of the code.
///
/// # Errors
/// Those of [`Composer::compose`](crate::Composer::compose).
pub fn report(steps: &[Step], layout: Layout, frame: &[u8], returned: u64, length: u64) -> Result<Report, Error> {
    let plan = Plan::new(steps)?;
    let slots = frame.as_chunks::<8>().0;
    let value = |slot: &[u8; 8]| if layout.little { u64::from_le_bytes(*slot) } else { u64::from_be_bytes(*slot) };
    let mut slots: Vec<u64> = slots.iter().take(frame::KEYS).map(value).collect();
    let accumulators = &mut slots[frame::ACCUMULATORS..];
    let mut report = plan.blank();
    plan.accumulate_piece(accumulators, returned, &mut report, layout.bits / 2);
    plan.complete(accumulators, &mut report, length, layout.little);
    Ok(report)
}
