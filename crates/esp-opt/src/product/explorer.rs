//! The data of the search for a product: nodes, partitions, the current round, and the effects of the symbolic
//! execution of a node. The algorithm over them is in `explore`; `symbolic_exec`, `rendezvous`, `environment`,
//! `trace_path`, `fault_checks` and `deadlock_report` extend [`Explorer`] by the parts of the symbolic execution.

use super::group::Group;
use super::pending_report::{BlockedWait, BlockedWaitId, MemberFate, PendingReport};
use super::residue::Residue;
use super::schedule::{ExitBlock, PathSchedule};
use super::state::{AbstractState, LocationVector, MemberValue, Precision, SymbolicState, SymbolicValue};
use crate::facts::Fact;
use crate::limits::{LimitKind, ProductLimits};
use crate::path_exit::PathExit;
use crate::path_spec::PathStatement;
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{BlockId, ChannelId, Direction, Location, Value};
use quaject_esp_ir::small_map::SmallMap;
use rustc_hash::FxHashMap;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Facts about live values of members.
pub(super) type Facts = BTreeMap<MemberValue, Fact>;

/// The search.
pub(super) struct Explorer<'g, 'p> {
    pub(super) group: &'g Group<'p>,
    pub(super) out: Residue,
    pub(super) limits: ProductLimits,
    /// The remaining work when the search started, or restarted. [`Explorer::remaining_fuel`] subtracts what has been
    /// done since.
    pub(super) fuel: usize,
    /// One partition for each location vector, numbered in the order in which the vectors are found.
    pub(super) partition_numbers: FxHashMap<Rc<LocationVector>, usize>,
    pub(super) partitions: Vec<Partition>,
    /// The nodes of all rounds.
    pub(super) nodes: Vec<Node>,
    pub(super) node_numbers: FxHashMap<Rc<AbstractState>, usize>,
    /// Per value: the widest of the widened facts of all partitions.
    pub(super) widest_facts: Facts,
    pub(super) round: Round,
    /// The effects of the current symbolic execution.
    pub(super) effects: NodeEffects,
    /// The schedule of the fast path that is traced; none for the product of complete processes.
    pub(super) schedule: Option<&'g PathSchedule>,
    /// Per member: the waits at which it may be blocked forever, and the numbers of those that the last round reached.
    pub(super) blocked_waits: Vec<Vec<BlockedWait>>,
    pub(super) reached_blocked_waits: Vec<BTreeSet<BlockedWaitId>>,
    /// By the fates of all members in a state in which no reported member waits: the block that these states share, and
    /// its report.
    pub(super) deadlock_blocks: BTreeMap<Vec<MemberFate>, (BlockId, PendingReport)>,
    /// The sets of operations that [`super::state::AwaitedSetId`] numbers; the first is empty.
    pub(super) awaited_sets: Vec<Vec<(ChannelId, Direction)>>,
    /// Per member: whether a deadlock report can list it.
    pub(super) is_reportable: Vec<bool>,
    /// Whether terminated members count as inert, so that states that differ only in which members are blocked forever
    /// and which have terminated are merged; and whether the search must restart because this has just been set.
    pub(super) merges_inert_states: bool,
    pub(super) needs_restart: bool,
    /// Test only, on a fast path: the number of decisions to continue that precede a forced exit, if there is one.
    pub(super) decisions_until_forced_exit: Option<u32>,
}

/// The abstract states of one location vector, and what is known of them from earlier rounds.
pub(super) struct Partition {
    pub(super) vector: Rc<LocationVector>,
    /// Members that are served first, so that they do not starve.
    pub(super) preferred: BTreeSet<usize>,
    /// Which facts keep the abstract states apart.
    pub(super) precision: Precision,
    /// The facts to which narrower ones are widened: of a value that does not keep the abstract states apart, the join
    /// over all of them; of any other, the result of widening.
    pub(super) widened_facts: Facts,
    /// How often `precision` and `widened_facts` have changed.
    pub(super) revision: usize,
    /// Its nodes of the current round, in the order in which they were reached.
    pub(super) nodes: Vec<usize>,
}

/// One round: the traversal from the start under the present partitions.
#[derive(Default)]
pub(super) struct Round {
    pub(super) number: usize,
    /// Its nodes, in the order in which they were reached, and those of them that have not been visited.
    pub(super) reached: Vec<usize>,
    pub(super) worklist: Vec<usize>,
    /// The instructions of its nodes without the current execution, and the size of the residue when that began.
    pub(super) size: usize,
    pub(super) emitted_before: usize,
    /// Nodes reached, over all rounds.
    pub(super) total_reached: usize,
    /// Its visits, in order.
    pub(super) visits: Vec<Visit>,
    /// A partition that has changed, so that what was derived from its earlier nodes is stale.
    pub(super) invalidated: Option<usize>,
}

/// The visit of a node in a round, with what [`Round::reached`] and [`Round::size`] were before it.
pub(super) struct Visit {
    pub(super) node: usize,
    pub(super) reached_before: usize,
    pub(super) size_before: usize,
}

/// The effects of the symbolic execution of a node, besides its instructions.
#[derive(Default)]
pub(super) struct NodeEffects {
    pub(super) transitions: Vec<Transition>,
    /// Members that can proceed, and members that wait for the environment.
    pub(super) enabled: BTreeSet<usize>,
    pub(super) environment_waiters: BTreeSet<usize>,
    /// The partitions of which [`Partition::preferred`] was read.
    pub(super) preference_reads: Vec<usize>,
    /// The waits that report inert members.
    pub(super) reports: Vec<PendingReport>,
    /// On a fast path: its exits, the locations of the members, and whether it makes a choice.
    pub(super) exits: BTreeSet<PathExit>,
    pub(super) exit_blocks: Vec<ExitBlock>,
    pub(super) locations: BTreeSet<Vec<Location>>,
    pub(super) has_choice: bool,
    /// On a fast path, by member: the statements that its automaton accepted, and those at which it ended.
    pub(super) accepted: BTreeSet<(usize, PathStatement)>,
    pub(super) ended: BTreeSet<(usize, PathStatement)>,
}

/// An edge of the product. Its target depends on the partition that it leads to, and is resolved anew when that
/// changes.
pub(super) struct Transition {
    /// The block that ends in the jump, and the state there.
    pub(super) state: SymbolicState,
    pub(super) partition: usize,
    /// The target, and the revision of the partition for which it was resolved.
    pub(super) target: Option<(usize, usize)>,
    /// Instructions of the jump.
    pub(super) size: usize,
}

/// A node of the product: an abstract state, and the block of the residue that it begins with.
pub(super) struct Node {
    pub(super) state: Rc<AbstractState>,
    pub(super) block: BlockId,
    /// The live values of the members: parameters of the block, in their order, and constants.
    pub(super) values: SmallMap<MemberValue, SymbolicValue>,
    /// The facts of the abstract state, by parameter.
    pub(super) facts: Rc<SmallMap<Value, Fact>>,
    /// The inert members, and the parameters that hold the numbers of the waits at which they are blocked.
    pub(super) inert: Vec<(usize, Value)>,
    /// On a fast path: the parameter that counts iterations.
    pub(super) iteration_count: Option<Value>,
    /// The effects of its execution, and its instructions.
    pub(super) executed: Option<(NodeEffects, usize)>,
    /// The last round that reached it, and its position in [`Round::reached`].
    pub(super) round: usize,
    pub(super) position: usize,
    /// Older nodes of its partition that have been compared with it and that it does not widen.
    pub(super) widening_checked: Vec<usize>,
}

impl Node {
    pub(super) fn effects(&self) -> &NodeEffects {
        &self.executed.as_ref().expect("every node of a round has been executed").0
    }
}

impl Explorer<'_, '_> {
    /// Refuses a product that exceeds its size limit, and a search that has no fuel left.
    pub(super) fn check_size(&self) -> Result<(), Refusal> {
        if self.round.size + self.out.size - self.round.emitted_before > self.limits.emitted_before_cleanup {
            return Err(limit_exceeded(self.limits.size_kind, self.limits.instructions));
        }
        if self.remaining_fuel() == 0 {
            return Err(limit_exceeded(LimitKind::Fuel, self.limits.fuel));
        }
        Ok(())
    }

    /// The remaining work: an emitted instruction is one unit, a wait `wait_cost`, the location of a member in a
    /// reached node one.
    pub(super) fn remaining_fuel(&self) -> usize {
        self.fuel.saturating_sub(self.out.size + self.round.total_reached * self.group.members.len())
    }
}

/// The live values of a node that are parameters of its block, each with its parameter.
pub(super) fn parameters(values: &SmallMap<MemberValue, SymbolicValue>) -> impl Iterator<Item = (MemberValue, Value)> {
    values.iter().filter_map(|(origin, value)| match value {
        SymbolicValue::Residual(parameter) => Some((*origin, *parameter)),
        SymbolicValue::Constant(_) => None,
    })
}

pub(super) fn limit_exceeded(kind: LimitKind, limit: usize) -> Refusal {
    Refusal::LimitExceeded { kind, limit, costliest: None }
}
