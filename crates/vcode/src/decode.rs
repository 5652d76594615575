//! The decoder: decodes machine code, by tables that are generated from the same specification as the emitters.

mod disassembly;
pub(crate) mod table;

pub use crate::generated::aarch64_table::TABLE as AARCH64;
pub use crate::generated::alpha_table::TABLE as ALPHA;
pub use crate::generated::mips_table::TABLE as MIPS;
pub use crate::generated::ppc64le_table::TABLE as PPC64LE;
pub use crate::generated::riscv64_table::TABLE as RISCV64;
pub use crate::generated::sparc64_table::TABLE as SPARC64;
pub use crate::generated::x86_64_table::TABLE as X86_64;

pub use disassembly::{Disassembly, DisassemblyRow};
pub use table::{Decoded, Table};
