//! How large a product may become, and how much work its construction may take. Data and arithmetic only: the product
//! explorer and the passes that keep to these limits are elsewhere.

use quaject_esp_ir::ir::{Body, ProcessId, Program, Terminator};

/// Instructions and terminators that are emitted for each that remains after clean-up.
const EMITTED_PER_KEPT: usize = 10;

/// As [`EMITTED_PER_KEPT`], for a large product under [`CodeGrowth::Conservative`]. Measured over all products within
/// the limits: 1.5.
const EMITTED_PER_KEPT_CONSERVATIVE: usize = 2;

/// The size that a product may reach although it exceeds 1.5 times its processes, and the factor over its processes up
/// to which that holds: 6 to 12 KB of code. An in-band end of stream, tested by every stage of a pipeline, takes as
/// much: four filter programs have 601, 1907, 2038 and 1939, which is 0.9, 3.0, 1.9 and 1.7 times their processes.
const SMALL_PRODUCT_MAX: usize = 2500;
const SMALL_PRODUCT_FACTOR: usize = 3;

/// The cost of a wait in instructions: it stores what is live, is re-entered, and polls a channel. `gcc -Os` emits
/// about 3 bytes an instruction of a state machine and 90 a wait; with this cost the sizes of 36 pipelines are
/// estimated to 10 %.
const WAIT_COST: usize = 30;

/// Fuel for each instruction of the processes, waits at their cost. Products within the limits take up to 200.
const FUEL_PER_INSTRUCTION: usize = 256;

/// Processes with fewer instructions may grow as if they had this many.
const MIN_GROWTH_BASE: usize = 125;

/// By how much fusion may enlarge the code.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum CodeGrowth {
    /// A factor over the instructions of the separate processes, doubled where members can be blocked forever. The
    /// costliest process is excluded until the product is within the limit.
    Factor(usize),
    /// A factor that is acceptable without a request for speed: 1.5, or three if the product is small. Waits count at
    /// their cost in code. A group that exceeds it is not fused, and fuel is limited by the size of the group.
    Conservative,
}

/// How large a product may become, and how much work its construction may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Instances in a group.
    pub members: usize,
    /// Nodes of the product: abstract states.
    pub nodes: usize,
    /// Instructions and terminators of the result.
    pub instructions: usize,
    /// The ratio of the instructions of the fused process to those of its members' processes.
    pub growth: CodeGrowth,
    /// Work for all products of a program: instructions emitted, waits at their cost, and member locations of reached
    /// nodes, over all rounds.
    pub fuel: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { members: 32, nodes: 4096, instructions: 20_000, growth: CodeGrowth::Factor(8), fuel: 8_000_000 }
    }
}

impl Limits {
    /// The maximal size of a product after clean-up. Where members can be blocked forever it doubles: the continuation
    /// without them is a second program.
    pub(crate) fn max_product_size(&self, limits: &ProductLimits, has_blocked_members: bool) -> usize {
        match self.growth {
            CodeGrowth::Factor(_) => limits.instructions.saturating_mul(1 + usize::from(has_blocked_members)),
            CodeGrowth::Conservative => limits.instructions,
        }
    }

    /// The size of a body as these limits count it.
    pub(crate) fn measured_size(&self, body: &Body) -> usize {
        match self.growth {
            CodeGrowth::Factor(_) => code_size(body),
            CodeGrowth::Conservative => code_size_with_waits(body),
        }
    }

    /// The limits of a product of these processes.
    pub(crate) fn of_product(&self, program: &Program, processes: &[ProcessId]) -> ProductLimits {
        let all: usize =
            processes.iter().map(|process| self.measured_size(&program.processes[process.0 as usize].body)).sum();
        match self.growth {
            CodeGrowth::Factor(factor) => ProductLimits::new(self, all.max(MIN_GROWTH_BASE).saturating_mul(factor)),
            CodeGrowth::Conservative => {
                let half_again = all + all / 2;
                let small = SMALL_PRODUCT_MAX.min(all.saturating_mul(SMALL_PRODUCT_FACTOR));
                let limits = ProductLimits::new(self, half_again.max(small));
                let emitted_before_cleanup = limits
                    .emitted_before_cleanup
                    .min(SMALL_PRODUCT_MAX * EMITTED_PER_KEPT)
                    .max(half_again * EMITTED_PER_KEPT_CONSERVATIVE);
                // The allowance of a small product does not extend to waits, none of which is cleaned up: a product
                // that polls the environment in many states emits many more of them.
                let wait_cost = WAIT_COST * emitted_before_cleanup / half_again.max(1);
                ProductLimits { emitted_before_cleanup, wait_cost, size_kind: LimitKind::CodeSize, ..limits }
            }
        }
    }

    /// The part of the remaining fuel that the fusion of these processes may use; later groups keep the rest.
    pub(crate) fn fuel_share(&self, program: &Program, processes: &[ProcessId], remaining: usize) -> usize {
        match self.growth {
            CodeGrowth::Factor(_) => remaining / 4,
            CodeGrowth::Conservative => {
                let size = |process: &ProcessId| code_size_with_waits(&program.processes[process.0 as usize].body);
                let all: usize = processes.iter().map(size).sum();
                remaining.min(all.saturating_mul(FUEL_PER_INSTRUCTION))
            }
        }
    }
}

/// The limits of one product.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProductLimits {
    /// As [`Limits::nodes`].
    pub(crate) nodes: usize,
    /// Instructions and terminators after clean-up.
    pub(crate) instructions: usize,
    /// Instructions and terminators as emitted, before clean-up.
    pub(crate) emitted_before_cleanup: usize,
    /// The units that an emitted wait counts, for size and fuel: 1, or a multiple of [`WAIT_COST`] under
    /// [`CodeGrowth::Conservative`].
    pub(crate) wait_cost: usize,
    /// The kind of limit that is reported when there are more instructions.
    pub(crate) size_kind: LimitKind,
    /// As [`Limits::fuel`].
    pub(crate) fuel: usize,
}

impl ProductLimits {
    /// Those of `limits`, with at most `max_instructions`.
    pub(crate) fn new(limits: &Limits, max_instructions: usize) -> ProductLimits {
        let instructions = limits.instructions.min(max_instructions);
        ProductLimits {
            nodes: limits.nodes,
            instructions,
            emitted_before_cleanup: instructions.saturating_mul(EMITTED_PER_KEPT),
            wait_cost: 1,
            size_kind: LimitKind::Instructions,
            fuel: limits.fuel,
        }
    }
}

/// Instructions and terminators of a body, each wait at its cost.
fn code_size_with_waits(body: &Body) -> usize {
    let waits = body.blocks.iter().filter(|block| matches!(block.terminator, Terminator::Wait(_))).count();
    code_size(body) + WAIT_COST * waits
}

/// Instructions and terminators of a body.
pub fn code_size(body: &Body) -> usize {
    body.blocks.iter().map(|block| block.instructions.len() + 1).sum()
}

/// The limit that a product exceeds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LimitKind {
    /// Members.
    Instances,
    /// Nodes.
    States,
    /// Instructions of the fused process.
    Instructions,
    /// Instructions under [`CodeGrowth::Conservative`], waits at their cost.
    CodeSize,
    /// Work of the compiler.
    Fuel,
    /// Fast paths of the program.
    Paths,
}
