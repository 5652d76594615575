//! The type of the area of synthesised code.

use quaject_synth::arena::Arena;

/// The processor is in no routine while the kernel's own code runs, so that nothing has to be registered: what is freed
/// may be used again at once.
pub(super) type CodeArena = Arena<'static, 1>;
