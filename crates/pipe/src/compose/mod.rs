//! The composer: compiles a plan to a function of frame, source, target and length that makes one pass over memory.
//! Holds the begin and end of functions; the loops are written by [`scalar`] and [`vector`].

mod float;
mod scalar;
mod sums;
mod user;
mod vector;

use quaject_vcode::{
    Asm, Code, Core, Error, Extension, Features, Kind, Machine, Native, Param, Region, Type, VectorMachine, Vectors,
    Workspace, aarch64, signature, x86_64,
};

use crate::plan::{InRegister, Plan};
use crate::policy::Store;
use scalar::Scalar;

/// The maximum length of a function in bytes.
pub(crate) const MAX_BYTES: usize = 256 * 1024;

/// Memory for labels and references of a function; it can be used again.
pub(crate) type Space<M> = Workspace<M, 2048, 2048, 16>;

/// A finished function and its properties.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Composed {
    pub(crate) code: Code,
    /// Bits of its vectors; 0 if it has none.
    pub(crate) vector_bits: u32,
    /// Bytes per iteration of its longest loop.
    pub(crate) block_bytes: usize,
}

/// The properties of a processor that the composer itself depends on; `vcode` knows the others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Processor {
    /// There is vector code before the scalar code.
    vectors: bool,
    /// Loads and stores of a word require its alignment.
    aligned_only: bool,
    /// There is an instruction for CRC-32C.
    crc: bool,
    /// The widest vectors in bits with carry-less multiplication; 0 if there are none.
    multiplies_bits: u32,
}

impl Processor {
    fn of<M: Machine>(features: Features) -> Processor {
        // Sets of features are those of one machine.
        let has = |name, feature| M::NAME == name && features.contains(feature);
        let multiplies_bits = match () {
            () if has("x86_64", x86_64::VPCLMUL) => 512,
            () if has("x86_64", x86_64::PCLMUL) || has("aarch64", aarch64::PMULL) => 128,
            () => 0,
        };
        Processor {
            vectors: false,
            aligned_only: !matches!(M::NAME, "x86_64" | "aarch64"),
            crc: has("x86_64", x86_64::SSE42) || has("aarch64", aarch64::CRC),
            multiplies_bits,
        }
    }
}

/// The parameters of a pipe's function: frame, source, target and length, and perhaps the remainder.
fn parameters<M: Machine>(plan: &Plan) -> &'static [Type] {
    match plan.in_register(M::LONG_BITS / 2) {
        Some(InRegister::Remainder { .. }) => signature!("%p%p%p%ul%u"),
        Some(InRegister::Sum { .. }) | None => signature!("%p%p%p%ul"),
    }
}

/// Writes a pipe in integer registers: for every machine.
pub(crate) fn compose<M: Machine>(
    region: Region<'_>,
    space: &mut Space<M>,
    plan: &Plan,
    features: Features,
) -> Result<Code, Error>
where
    for<'a> Asm<'a, M>: Extension + Core<Reg = M::Reg, Float = M::Float>,
{
    let types = parameters::<M>(plan);
    let mut params = [Param::NONE; 5];
    let params = &mut params[..types.len()];
    let mut asm = Asm::begin(region, space, types, params, Kind::Leaf)?;
    asm.use_features(features);
    let scalar = Scalar::open(&mut asm, plan, Processor::of::<M>(features), params)?;
    scalar.finish(&mut asm);
    asm.end()
}

/// Writes a pipe with the widest vectors that the features have and it can use; the remaining bytes go through integer
/// registers.
pub(crate) fn compose_vectors<M: VectorMachine>(
    region: Region<'_>,
    space: &mut Space<M>,
    plan: &Plan,
    features: Features,
    store: Store,
) -> Result<Composed, Error>
where
    for<'a> Asm<'a, M>: Extension + Vectors<Vector = M::Vector> + Core<Reg = M::Reg, Float = M::Float>,
{
    let types = parameters::<M>(plan);
    let mut params = [Param::NONE; 5];
    let params = &mut params[..types.len()];
    let mut asm = Asm::begin(region, space, types, params, Kind::Leaf)?;
    asm.use_features(features);
    let mut processor = Processor::of::<M>(features);
    let shape = vector::Shape::choose(&mut asm, plan, &processor, store);
    processor.vectors = shape.is_some();
    let scalar = Scalar::open(&mut asm, plan, processor, params)?;
    if let Some(shape) = shape {
        vector::write(&mut asm, &scalar, shape, store)?;
    }
    scalar.finish(&mut asm);
    let (vector_bits, block_bytes) = shape.map_or((0, 8), |shape| (shape.bits, shape.block_bytes()));
    Ok(Composed { code: asm.end()?, vector_bits, block_bytes })
}

/// Writes a pipe for the machine this program runs on.
#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
pub(crate) fn compose_native(
    region: Region<'_>,
    space: &mut Space<Native>,
    plan: &Plan,
    features: Features,
    store: Store,
) -> Result<Composed, Error> {
    compose_vectors(region, space, plan, features, store)
}

/// Writes a pipe for the machine this program runs on.
#[cfg(target_arch = "riscv64")]
pub(crate) fn compose_native(
    region: Region<'_>,
    space: &mut Space<Native>,
    plan: &Plan,
    features: Features,
    _: Store,
) -> Result<Composed, Error> {
    compose_integer(region, space, plan, features)
}

/// Writes a pipe in integer registers, for the machine this program runs on.
pub(crate) fn compose_integer(
    region: Region<'_>,
    space: &mut Space<Native>,
    plan: &Plan,
    features: Features,
) -> Result<Composed, Error> {
    Ok(Composed { code: compose(region, space, plan, features)?, vector_bits: 0, block_bytes: 8 })
}
