//! How values lie in C memory: size, alignment and offsets of every type under natural alignment, as the C back end
//! declares them and as a loader marshals them. Knows no C text; the generated header asserts that C agrees.
//!
//! ```text
//!   u8..u64, i8..i64     that many bytes, aligned to their size
//!   bool                 1 byte, 0 or 1
//!   pid                  4 bytes, the instance number
//!   bytes[<=N]           { u16 length (u32 if N > 65535); u8 data[N] }
//!   array[N] of T        { T at[N] }
//!   record               its fields in order; one unused byte if there is none
//!   union                { u8 tag (u16 if there are more than 256, u32 if more than 65536); union { payloads } as }
//!   boxed T              for the environment: its content, in place; inside: an index into the pool
//!   message of c(A, B)   { A v0; B v1 }; one unused byte if there is none
//! ```
//!
//! The environment's view of a type (messages of external channels, arguments of extern functions) has boxed parts in
//! place; the program's own view holds references. Both views of a type without boxed parts are the same.

use quaject_esp_ir::ir::{
    BlockId, Boundary, Branch, Channel, ChannelId, IntType, Process, Program, Terminator, Type, TypeId, TypeTable,
};
use smol_str::SmolStr;

/// The side from which a value is seen.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum View {
    /// Generated code: a boxed part is a reference into its pool.
    Program,
    /// C code and drivers: a boxed part is its content.
    Environment,
}

/// Size and alignment in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent {
    /// Bytes, a multiple of the alignment.
    pub size: u64,
    /// A power of two.
    pub align: u64,
}

/// Bytes of the tag of a union with this many tags.
pub fn tag_bytes(tags: usize) -> u64 {
    match tags {
        0..=0x100 => 1,
        0x101..=0x1_0000 => 2,
        _ => 4,
    }
}

/// Bytes of the length of `bytes` with this bound.
pub fn length_bytes(bound: u32) -> u64 {
    if bound <= 65535 { 2 } else { 4 }
}

/// Bytes of a reference into a pool with this many objects.
pub fn reference_bytes(capacity: u32) -> u64 {
    if capacity <= 65535 { 2 } else { 4 }
}

fn round_up(value: u64, align: u64) -> u64 {
    value.div_ceil(align).saturating_mul(align)
}

/// Extent of a C structure with these members, and the offset of each.
pub fn structure(members: &[Extent]) -> (Extent, Vec<u64>) {
    let mut end: u64 = 0;
    let mut align = 1;
    let mut offsets = Vec::with_capacity(members.len());
    for member in members {
        let offset = round_up(end, member.align);
        offsets.push(offset);
        end = offset.saturating_add(member.size);
        align = align.max(member.align);
    }
    let size = round_up(end, align).max(1);
    (Extent { size, align }, offsets)
}

/// Extent of a C union with these members.
pub fn union(members: &[Extent]) -> Extent {
    let align = members.iter().map(|member| member.align).max().unwrap_or(1);
    let size = members.iter().map(|member| member.size).max().unwrap_or(0);
    Extent { size: round_up(size, align), align }
}

/// Natural alignment, for integers of up to 8 bytes.
const NATURAL: u64 = 8;

fn scalar(bytes: u64, max_align: u64) -> Extent {
    Extent { size: bytes, align: bytes.min(max_align) }
}

/// How the values of every type of a program lie, computed once: types are shared by many others, so that walking into
/// the parts of each again would take time exponential in the depth.
#[derive(Clone, Debug)]
pub struct Layouts {
    facts: Vec<Facts>,
}

#[derive(Clone, Debug)]
struct Facts {
    program: Shape,
    environment: Shape,
    has_boxes: bool,
    has_gaps: bool,
}

/// Extent, and the offsets of a record's fields or of a union's tag and payload.
#[derive(Clone, Debug)]
struct Shape {
    extent: Extent,
    offsets: Vec<u64>,
}

impl Layouts {
    /// Of all types of a table.
    pub fn of(types: &TypeTable) -> Layouts {
        Layouts::on_machine(types, NATURAL)
    }

    /// Likewise, on a machine that aligns integers to their size, but to at most this many bytes: 1, 2, 4 or 8.
    pub fn on_machine(types: &TypeTable, max_align: u64) -> Layouts {
        let count = types.types().len();
        let mut known: Vec<Option<Facts>> = vec![None; count];
        let mut work: Vec<TypeId> = (0..count as u32).rev().map(TypeId).collect();
        while let Some(&ty) = work.last() {
            if known[ty.0 as usize].is_some() {
                work.pop();
                continue;
            }
            let before = work.len();
            work.extend(parts(types, ty).filter(|part| known[part.0 as usize].is_none()));
            if work.len() == before {
                known[ty.0 as usize] = Some(facts(types, &known, ty, max_align));
            }
        }
        Layouts { facts: known.into_iter().map(|facts| facts.expect("each type was on the list")).collect() }
    }

    /// Size and alignment of a type.
    pub fn extent(&self, ty: TypeId, view: View) -> Extent {
        self.facts[ty.0 as usize].shape(view).extent
    }

    /// Where each field of a record begins.
    pub fn field_offsets(&self, ty: TypeId, view: View) -> &[u64] {
        &self.facts[ty.0 as usize].shape(view).offsets
    }

    /// Where a union's payload begins; nowhere if no tag has one.
    pub fn payload_offset(&self, ty: TypeId, view: View) -> Option<u64> {
        self.facts[ty.0 as usize].shape(view).offsets.get(1).copied()
    }

    /// Whether a value of the type holds boxed parts anywhere.
    pub fn has_boxes(&self, ty: TypeId) -> bool {
        self.facts[ty.0 as usize].has_boxes
    }

    /// Whether the memory of a value in the environment's view has invalid representations: a length above the bound, a
    /// tag or an instance that does not exist.
    pub fn has_gaps(&self, ty: TypeId) -> bool {
        self.facts[ty.0 as usize].has_gaps
    }

    /// Extent of a channel's message as C sees it, and the offset of each value.
    pub fn message(&self, channel: &Channel) -> (Extent, Vec<u64>) {
        let members: Vec<Extent> = channel.payload.iter().map(|ty| self.extent(*ty, View::Environment)).collect();
        structure(&members)
    }
}

impl Facts {
    fn shape(&self, view: View) -> &Shape {
        match view {
            View::Program => &self.program,
            View::Environment => &self.environment,
        }
    }
}

/// What a type's layout is made of.
fn parts(types: &TypeTable, ty: TypeId) -> impl Iterator<Item = TypeId> {
    let (one, many): (Option<TypeId>, &[_]) = match types.get(ty) {
        Type::Error | Type::Int(_) | Type::Bool | Type::Bytes { .. } | Type::Pid(_) => (None, &[]),
        Type::Array { element, .. } => (Some(*element), &[]),
        Type::Record(id) | Type::Union(id) => (None, &types.aggregate(*id).parts),
        Type::Boxed(pool) => (Some(types.pool(*pool).content), &[]),
    };
    one.into_iter().chain(many.iter().filter_map(|(_, part)| *part))
}

/// The facts of a type, from those of its parts.
fn facts(types: &TypeTable, known: &[Option<Facts>], ty: TypeId, max_align: u64) -> Facts {
    let of = |part: TypeId| known[part.0 as usize].as_ref().expect("parts are computed first");
    let has_own_gap = match types.get(ty) {
        Type::Error | Type::Bool | Type::Int(_) | Type::Array { .. } | Type::Record(_) | Type::Boxed(_) => false,
        Type::Pid(_) => true,
        Type::Bytes { bound } => has_spare(length_bytes(*bound), u64::from(*bound)),
        Type::Union(id) => {
            let tags = types.aggregate(*id).parts.len();
            has_spare(tag_bytes(tags), tags as u64 - 1)
        }
    };
    Facts {
        program: shape(types, ty, View::Program, &|part| of(part).program.extent, max_align),
        environment: shape(types, ty, View::Environment, &|part| of(part).environment.extent, max_align),
        has_boxes: matches!(types.get(ty), Type::Boxed(_)) || parts(types, ty).any(|part| of(part).has_boxes),
        has_gaps: has_own_gap || parts(types, ty).any(|part| of(part).has_gaps),
    }
}

/// Whether an unsigned integer of this many bytes holds numbers above `highest`.
pub(crate) fn has_spare(bytes: u64, highest: u64) -> bool {
    highest < u64::MAX >> (64 - 8 * bytes)
}

fn shape(types: &TypeTable, ty: TypeId, view: View, of: &dyn Fn(TypeId) -> Extent, max_align: u64) -> Shape {
    let scalar = |bytes| scalar(bytes, max_align);
    let extent = match types.get(ty) {
        Type::Error | Type::Bool => scalar(1),
        Type::Int(int) => scalar(u64::from(int.bits() / 8)),
        Type::Pid(_) => scalar(4),
        Type::Bytes { bound } => {
            structure(&[scalar(length_bytes(*bound)), Extent { size: u64::from((*bound).max(1)), align: 1 }]).0
        }
        Type::Array { length, element } => {
            let element = of(*element);
            Extent { size: element.size.saturating_mul(u64::from(*length)), align: element.align }
        }
        Type::Record(id) => {
            let members: Vec<Extent> = types.aggregate(*id).parts.iter().filter_map(|(_, part)| part.map(of)).collect();
            let (extent, offsets) = structure(&members);
            return Shape { extent, offsets };
        }
        Type::Union(id) => {
            let (extent, offsets) = structure(&union_members(&types.aggregate(*id).parts, of, max_align));
            return Shape { extent, offsets };
        }
        Type::Boxed(pool) => match view {
            View::Program => scalar(reference_bytes(types.pool(*pool).capacity)),
            View::Environment => of(types.pool(*pool).content),
        },
    };
    Shape { extent, offsets: Vec::new() }
}

/// The tag, and the union of the payloads if any tag has one.
fn union_members(parts: &[(SmolStr, Option<TypeId>)], of: &dyn Fn(TypeId) -> Extent, max_align: u64) -> Vec<Extent> {
    let mut members = vec![scalar(tag_bytes(parts.len()), max_align)];
    let payloads: Vec<Extent> = parts.iter().filter_map(|(_, part)| part.map(of)).collect();
    if !payloads.is_empty() {
        members.push(union(&payloads));
    }
    members
}

/// Where the data of `bytes` begins.
pub fn data_offset(bound: u32) -> u64 {
    length_bytes(bound)
}

/// The integer type of a type that is one.
pub fn int_type(types: &TypeTable, ty: TypeId) -> Option<IntType> {
    match types.get(ty) {
        Type::Int(int) => Some(*int),
        Type::Error
        | Type::Bool
        | Type::Pid(_)
        | Type::Bytes { .. }
        | Type::Array { .. }
        | Type::Record(_)
        | Type::Union(_)
        | Type::Boxed(_) => None,
    }
}

/// The binary interface of a program generated in the sans-IO style and loaded as a shared library.
///
/// The library exports one symbol, [`Abi::symbol`], of the C type `esp_library` (see `quaject/esp.h`), which holds
/// the size of the state, the functions `init`, `step`, `fault`, `place`, `stuck` and `open`, and sizes to check. The
/// loader:
///
/// 1. allocates `state_size` bytes aligned to 16 and calls `init(state)`;
/// 2. fills an array of `esp_source`, one for each channel of [`Abi::sources`] in order: messages of
///    [`ExternalChannel::extent`] bytes one after the other, their count, whether the channel is closed after them;
/// 3. fills an `esp_output` head followed by an array of `esp_sink`, one for each of [`Abi::sinks`]: room and capacity,
///    `count` 0; `limit` 1 if the order of messages on different channels and of extern calls matters;
/// 4. calls `step(state, sources, output, now_ns)`, and takes `taken[i]` messages off source i, `count` from sink i.
///
/// Values lie in messages as the module's head says, in [`View::Environment`].
#[derive(Clone, Debug)]
pub struct Abi {
    /// The exported symbol.
    pub symbol: String,
    /// Channels that the environment writes, in the order of `esp_input`.
    pub sources: Vec<ExternalChannel>,
    /// Channels that the environment reads, in the order of the sinks of `esp_output`.
    pub sinks: Vec<ExternalChannel>,
    /// Of the program's types.
    pub layouts: Layouts,
}

/// All branches of a process's waits, with the block of each, as `open` of `esp_library` numbers them.
pub fn branches(process: &Process) -> Vec<(BlockId, &Branch)> {
    let mut branches = Vec::new();
    for (index, block) in process.body.blocks.iter().enumerate() {
        if let Terminator::Wait(wait) = &block.terminator {
            branches.extend(wait.branches.iter().map(|branch| (BlockId(index as u32), branch)));
        }
    }
    branches
}

/// One external channel.
#[derive(Clone, Debug)]
pub struct ExternalChannel {
    /// Which.
    pub channel: ChannelId,
    /// Of one message.
    pub extent: Extent,
    /// Offset of each value of a message.
    pub offsets: Vec<u64>,
}

impl Abi {
    /// The interface of a program generated with this prefix (`esp` by default).
    pub fn of(program: &Program, prefix: &str) -> Abi {
        Abi::on_machine(program, prefix, NATURAL)
    }

    /// Likewise, on a machine that aligns integers to at most this many bytes.
    pub fn on_machine(program: &Program, prefix: &str, max_align: u64) -> Abi {
        let layouts = Layouts::on_machine(&program.types, max_align);
        let external = |wanted: Boundary| {
            let channels = program.channels.iter().enumerate().filter(move |(_, channel)| channel.boundary == wanted);
            channels
                .map(|(index, channel)| {
                    let (extent, offsets) = layouts.message(channel);
                    ExternalChannel { channel: ChannelId(index as u32), extent, offsets }
                })
                .collect()
        };
        Abi {
            symbol: format!("{prefix}_program"),
            sources: external(Boundary::FromEnvironment),
            sinks: external(Boundary::ToEnvironment),
            layouts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quaject_esp_ir::ir::TypeTable;
    use quaject_esp_syntax::types::Aggregate;

    #[test]
    fn natural_alignment() {
        let mut types = TypeTable::new();
        let id = types.add_aggregate(aggregate(&[("a", TypeTable::U8), ("b", TypeTable::U32), ("c", TypeTable::U16)]));
        let record = types.intern(Type::Record(id));
        let bytes = types.intern(Type::Bytes { bound: 3 });
        let array = types.intern(Type::Array { length: 3, element: record });
        let layouts = Layouts::of(&types);
        assert_eq!(layouts.extent(record, View::Environment), Extent { size: 12, align: 4 });
        assert_eq!(layouts.field_offsets(record, View::Environment), [0, 4, 8]);
        assert_eq!(layouts.extent(bytes, View::Environment), Extent { size: 6, align: 2 });
        assert_eq!(layouts.extent(array, View::Environment), Extent { size: 36, align: 4 });
    }

    fn aggregate(parts: &[(&str, TypeId)]) -> Aggregate {
        Aggregate { name: None, parts: parts.iter().map(|(name, ty)| ((*name).into(), Some(*ty))).collect() }
    }
}
