//! Identifiers of the parts of a body, source locations, and numbers of instances.

use std::num::NonZeroU32;

/// A location in the source.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Location {
    /// Index into `Program::files`.
    pub file: u16,
    /// Line, from 1; 0 for generated code.
    pub line: u32,
    /// Column in characters, from 1.
    pub column: u32,
    /// In a fused process: the member whose code it is. A fault there is reported as the member's.
    pub member: Option<InstanceId>,
}

impl Location {
    /// The location without the member.
    pub fn in_text(self) -> Location {
        Location { member: None, ..self }
    }
}

/// An instance, by its number among all of the program.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct InstanceId(NonZeroU32);

impl InstanceId {
    /// # Panics
    /// For the last number of `u32`, which no instance has.
    pub fn new(number: u32) -> InstanceId {
        InstanceId(NonZeroU32::MIN.checked_add(number).expect("a program has fewer instances than numbers"))
    }

    /// The number.
    pub fn number(self) -> u32 {
        self.0.get() - 1
    }
}

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])* #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)] pub struct $name(pub u32);)*
    };
}

ids! {
    /// An SSA value of one body: an integer, `bool`, `pid`, or reference to a boxed object.
    Value;
    /// Memory of one body that holds a flat record, union, `bytes` or array.
    SlotId;
    /// A block of one body.
    BlockId;
    /// A fast path of the program.
    PathId;
}
