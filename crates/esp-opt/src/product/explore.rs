//! The product of a group, found by abstract interpretation of all members at once (Cousot, Cousot 1977). Knows no
//! instructions: those are executed in `symbolic_exec`, `rendezvous` and `environment`.
//!
//! # Abstract states
//!
//! A *location vector* consists of the control locations of all members. An *abstract state* is a location vector with
//! facts (an interval of each live integer, constants, excluded values, tags of unions in memory) and the rendezvous
//! that have been tried and do not match. A *node* of the product is an abstract state; its code is executed
//! symbolically once. The abstract states of one location vector form its *partition*: they are kept apart by what is
//! known of values (dynamic partitioning, Bourdoncle 1992). Keeping them apart is what removes tests, for example the
//! test for an end of stream that another member has just sent.
//!
//! ```text
//!   facts of one value (narrower is lower)         precision of a partition
//!
//!        top: all values of its type               Full           all facts keep nodes apart
//!          /            \                            |  more than MAX_FULL_STATES nodes
//!   [low, high]    [low, high] \ {x, ..}           Flags          `bool`s and tags do; other facts are joined
//!          \            /                            |  more than MAX_FLAG_STATES nodes
//!     ...  c - 1   c   c + 1  ...                  NoFacts        all facts are joined; tags are dropped
//! ```
//!
//! Refuted rendezvous keep nodes apart at every precision.
//!
//! The abstraction moves the ends of intervals outward to thresholds, constants that the members compare with (those of
//! Blanchet et al. 2003, applied at every node; `group::thresholds`). The lattice is therefore finite. A counter would
//! still have a node for each threshold. Widening is a second, separate step (`widening`): when a new node of a
//! partition differs from an older one in wider intervals only, both are widened to the wider ones.
//!
//! # Restart on precision loss
//!
//! A partition changes when its precision falls or its facts are widened. What the round has reached from its
//! older nodes is then stale. The round returns to the state before the partition was first reached and continues from
//! there with the changed partition. Executions are kept: the code of a node depends on its abstract state, and on
//! preferences of partitions that it has read, alone. A transition resolves its target anew when the partition that it
//! leads to has changed. Jumps between nodes are emitted at the end.
//!
//! ```text
//!   explore:
//!     loop
//!       run_to_fixpoint
//!       if members are blocked forever for the first time: forget everything, and merge
//!                                               the states of inert members    (`inert_members`)
//!       else if a member may starve: serve it first at a location vector of that component,           (`fairness`)
//!                                               discard the executions that read the preference
//!       else emit the jumps
//!
//!   run_to_fixpoint:
//!     reach(target of the start)
//!     while the worklist has a node
//!       execute it symbolically, unless it has been executed      -> transitions
//!       for each transition: reach(resolve_target(transition))    -> abstraction; widening may change a partition
//!       if a partition has changed: restart from before it was first reached
//! ```
//!
//! **Invariant.** Each node in [`Round::reached`] is in the worklist, or it has been visited and the targets of all its
//! transitions, resolved under the present partitions, are in [`Round::reached`]; it does not hold while a partition is
//! invalidated. With an empty worklist the reached nodes are closed under transitions, and so they over-approximate
//! every run of the group under the schedule of `rendezvous`.
//!
//! **Termination.** Precision only falls and facts only widen, among finitely many; fuel and limits bound the rest.

mod costliest;
mod fairness;
mod inert_members;
mod widening;

use super::explorer::{
    Explorer, Facts, Node, NodeEffects, Partition, Round, Transition, Visit, limit_exceeded, parameters,
};
use super::group::Group;
use super::residue::Residue;
use super::schedule::PathSchedule;
use super::state::{Control, MemberState, MemberValue, Precision, ProductState, SymbolicState, SymbolicValue};
use crate::facts::Fact;
use crate::limits::{LimitKind, ProductLimits};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{BlockId, Body, Edge, Location, ProcessId, Slot, Terminator, TypeTable, Value};
use quaject_esp_ir::small_map::SmallMap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// The result of an exploration.
pub(crate) struct Product {
    /// The fused body, as it was emitted.
    pub(crate) body: Body,
    /// The number of its nodes.
    pub(crate) nodes: usize,
    /// The process whose removal reduces the nodes most, if the group has several and the product is large.
    pub(crate) costliest: Option<ProcessId>,
    /// Whether members may be blocked forever while others proceed.
    pub(crate) has_blocked_members: bool,
}

/// Explores the product of a group. `fuel` is the remaining work, and is reduced by what the exploration takes.
pub(crate) fn explore(group: &Group<'_>, limits: ProductLimits, fuel: &mut usize) -> Result<Product, Refusal> {
    let mut explorer = Explorer::new(group, None, limits, *fuel);
    let explored = explorer.explore().and_then(|start| explorer.check_report_size(&start).map(|()| start));
    *fuel = explorer.remaining_fuel();
    let start = explored.map_err(|refusal| match refusal {
        Refusal::LimitExceeded { kind, limit, costliest: _ } => {
            Refusal::LimitExceeded { kind, limit, costliest: explorer.costliest() }
        }
        Refusal::SharedChannel { .. }
        | Refusal::Unsupported { .. }
        | Refusal::ScheduleDependent { .. }
        | Refusal::AlreadyFused { .. }
        | Refusal::ManualPath { .. }
        | Refusal::ObservesAbsence { .. }
        | Refusal::MayStarve { .. } => refusal,
    })?;
    let yield_points = if group.has_others { explorer.yield_points() } else { explorer.divergence_yield_points() };
    // Clean-up reduces what is emitted; only a product that may remain too large needs the costliest process.
    let is_large = explorer.round.size > limits.instructions;
    let costliest = if is_large { explorer.costliest() } else { None };
    explorer.link_nodes(start, &yield_points);
    let has_blocked_members = explorer.merges_inert_states;
    Ok(Product { nodes: explorer.round.reached.len(), body: explorer.out.body, costliest, has_blocked_members })
}

fn slots(group: &Group<'_>) -> Vec<Slot> {
    group.members.iter().flat_map(|member| member.body.slots.iter().cloned()).collect()
}

impl<'g, 'p> Explorer<'g, 'p> {
    pub(super) fn new(
        group: &'g Group<'p>,
        schedule: Option<&'g PathSchedule>,
        limits: ProductLimits,
        fuel: usize,
    ) -> Explorer<'g, 'p> {
        Explorer {
            group,
            out: Residue::new(slots(group), limits.wait_cost),
            limits,
            fuel,
            partition_numbers: FxHashMap::default(),
            partitions: Vec::new(),
            nodes: Vec::new(),
            node_numbers: FxHashMap::default(),
            widest_facts: Facts::new(),
            round: Round::default(),
            effects: NodeEffects::default(),
            schedule,
            blocked_waits: vec![Vec::new(); group.members.len()],
            reached_blocked_waits: vec![BTreeSet::new(); group.members.len()],
            deadlock_blocks: BTreeMap::new(),
            awaited_sets: vec![Vec::new()],
            is_reportable: (0..group.members.len()).map(|member| inert_members::is_reportable(group, member)).collect(),
            merges_inert_states: false,
            needs_restart: false,
            decisions_until_forced_exit: None,
        }
    }

    /// Explores until no member starves; the transition from the entry to the first node.
    fn explore(&mut self) -> Result<Transition, Refusal> {
        loop {
            if let Some(start) = self.explore_once()? {
                return Ok(start);
            }
            self.reset();
        }
    }

    /// As [`Explorer::explore`]; none if the search has to restart.
    fn explore_once(&mut self) -> Result<Option<Transition>, Refusal> {
        let entry = self.out.create_block(Vec::new());
        let member =
            MemberState { control: Control::Running(BlockId(0)), last_choice: SmallMap::new(), blocked_wait: None };
        let product = ProductState::new(vec![member; self.group.members.len()]);
        let mut start = self.transition(SymbolicState { block: entry, product });
        loop {
            self.run_to_fixpoint(&mut start)?;
            if self.needs_restart {
                return Ok(None);
            }
            let starving = self.starving_members();
            if starving.is_empty() {
                return Ok(Some(start));
            }
            for (partition, member) in starving {
                if !self.partitions[partition].preferred.insert(member) {
                    return Err(Refusal::MayStarve { process: self.group.members[member].process });
                }
                self.discard_executions(partition);
            }
        }
    }

    /// Discards the executions that depend on which members a partition prefers.
    fn discard_executions(&mut self, partition: usize) {
        for node in &mut self.nodes {
            if node.executed.as_ref().is_some_and(|(effects, _)| effects.preference_reads.contains(&partition)) {
                node.executed = None;
                self.out.body.blocks[node.block.0 as usize].instructions.clear();
            }
        }
    }

    /// Forgets all results; the fuel that they took stays used.
    fn reset(&mut self) {
        self.fuel = self.remaining_fuel();
        self.out = Residue::new(slots(self.group), self.limits.wait_cost);
        self.partition_numbers.clear();
        self.partitions.clear();
        self.nodes.clear();
        self.node_numbers.clear();
        self.widest_facts.clear();
        self.round = Round::default();
        self.deadlock_blocks.clear();
        self.needs_restart = false;
    }

    /// Visits the nodes that are reachable from a transition, until no partition changes any more.
    pub(super) fn run_to_fixpoint(&mut self, start: &mut Transition) -> Result<(), Refusal> {
        loop {
            self.round =
                Round { number: self.round.number + 1, total_reached: self.round.total_reached, ..Round::default() };
            for partition in &mut self.partitions {
                partition.nodes.clear();
            }
            let first = self.resolve_target(start);
            self.round.size += start.size;
            self.reach(first)?;
            loop {
                if let Some(partition) = self.round.invalidated.take() {
                    if !self.restart_from(partition) {
                        break;
                    }
                } else if self.needs_restart {
                    return Ok(());
                } else if let Some(node) = self.round.worklist.pop() {
                    self.visit(node)?;
                } else {
                    return Ok(());
                }
            }
        }
    }

    /// Returns the round to the state before it first reached a node of a partition, because that has changed. Whether
    /// anything was visited before; if not, a new round begins.
    fn restart_from(&mut self, partition: usize) -> bool {
        let first = self.partitions[partition].nodes.first().map_or(0, |node| self.nodes[*node].position);
        let last = self.round.visits.iter().rposition(|visit| visit.reached_before <= first);
        let Some(last) = last else { return false };
        let Visit { node: _, reached_before, size_before } = self.round.visits[last];
        self.round.size = size_before;
        self.round.visits.truncate(last);
        for node in self.round.reached.drain(reached_before..).rev() {
            self.nodes[node].round = 0;
            self.partitions[self.nodes[node].state.partition].nodes.pop();
        }
        let visited: FxHashSet<usize> = self.round.visits.iter().map(|visit| visit.node).collect();
        self.round.worklist = self.round.reached.iter().copied().filter(|node| !visited.contains(node)).collect();
        true
    }

    /// Executes a node that has not been executed, and reaches the targets of its transitions.
    fn visit(&mut self, node: usize) -> Result<(), Refusal> {
        let (reached_before, size_before) = (self.round.reached.len(), self.round.size);
        self.round.visits.push(Visit { node, reached_before, size_before });
        let (mut effects, size) = match self.nodes[node].executed.take() {
            Some(executed) => executed,
            None => {
                self.round.emitted_before = self.out.size;
                self.effects = NodeEffects::default();
                let state = self.entry_state(node);
                self.execute_node(state)?;
                (std::mem::take(&mut self.effects), self.out.size - self.round.emitted_before)
            }
        };
        self.round.emitted_before = self.out.size;
        self.round.size += size;
        let mut reached = Ok(());
        for transition in &mut effects.transitions {
            let target = self.resolve_target(transition);
            self.round.size += transition.size;
            if self.round.invalidated.is_none() {
                reached = self.reach(target);
            }
            if reached.is_err() || self.round.invalidated.is_some() {
                break;
            }
        }
        self.nodes[node].executed = Some((effects, size));
        reached?;
        self.check_size()
    }

    /// The state at the beginning of a node.
    pub(super) fn entry_state(&self, node: usize) -> SymbolicState {
        let node = &self.nodes[node];
        let vector = &self.partitions[node.state.partition].vector;
        let members = vector.members.iter().map(|(control, last)| MemberState {
            control: *control,
            last_choice: last.clone(),
            blocked_wait: None,
        });
        let mut members: Vec<MemberState> = members.collect();
        for (member, blocked_wait) in &node.inert {
            members[*member].blocked_wait = Some(SymbolicValue::Residual(*blocked_wait));
        }
        let product = ProductState {
            values: node.values.clone(),
            node_facts: node.facts.clone(),
            tags: node.state.tags.clone(),
            refuted: node.state.refuted.clone(),
            path_progress: vector.path_progress.clone(),
            iteration_count: node.iteration_count,
            ..ProductState::new(members)
        };
        SymbolicState { block: node.block, product }
    }

    /// Executes a node: the runnable member furthest downstream proceeds; if all wait, a rendezvous happens.
    fn execute_node(&mut self, state: SymbolicState) -> Result<(), Refusal> {
        if self.schedule.is_some() {
            return self.run_scheduled(state);
        }
        match next_runnable(&state.product) {
            Some((member, block)) => self.run_member(state, member, block),
            None => {
                for member in 0..self.group.members.len() {
                    if !self.environment_branches(&state, member).is_empty() {
                        self.effects.environment_waiters.insert(member);
                    }
                }
                self.step_all_waiting(state)
            }
        }
    }

    /// Continues after a member has reached a wait, a `yield` or its end. A new node begins where all members wait.
    pub(super) fn run_next_member(&mut self, state: SymbolicState) -> Result<(), Refusal> {
        if self.schedule.is_some() {
            return self.run_scheduled(state);
        }
        match next_runnable(&state.product) {
            Some((member, block)) => self.run_member(state, member, block),
            None => self.end_at_node(state),
        }
    }

    /// Ends a path of the symbolic execution at the node of its state.
    pub(super) fn end_at_node(&mut self, state: SymbolicState) -> Result<(), Refusal> {
        let transition = self.transition(state);
        self.effects.transitions.push(transition);
        Ok(())
    }

    pub(super) fn transition(&mut self, mut state: SymbolicState) -> Transition {
        self.drop_inert_members(&mut state.product);
        let partition = self.partition_of(&state.product);
        Transition { state, partition, target: None, size: 0 }
    }

    /// The number of the partition of a state's location vector.
    fn partition_of(&mut self, state: &ProductState) -> usize {
        let vector = state.location_vector();
        if let Some(partition) = self.partition_numbers.get(&vector) {
            return *partition;
        }
        let vector = Rc::new(vector);
        self.partition_numbers.insert(vector.clone(), self.partitions.len());
        self.partitions.push(Partition {
            vector,
            preferred: BTreeSet::new(),
            precision: Precision::Full,
            widened_facts: Facts::new(),
            revision: 0,
            nodes: Vec::new(),
        });
        self.partitions.len() - 1
    }

    /// The members that are served first at the location vector of a state.
    pub(super) fn preferred(&mut self, state: &ProductState) -> BTreeSet<usize> {
        let partition = self.partition_of(state);
        self.effects.preference_reads.push(partition);
        self.partitions[partition].preferred.clone()
    }

    /// The node that a transition leads to, under the present precision and widened facts of its partition.
    fn resolve_target(&mut self, transition: &mut Transition) -> usize {
        let Partition { precision, revision, .. } = &self.partitions[transition.partition];
        if let Some((node, resolved)) = transition.target
            && resolved == *revision
        {
            return node;
        }
        let mut abstraction = transition.state.product.abstraction(self.group, transition.partition, *precision);
        match precision {
            Precision::Full => self.apply_widening(&mut abstraction),
            Precision::Flags | Precision::NoFacts => {
                let origins = transition.state.product.values.keys().copied();
                let origins = origins.filter(|origin| self.is_joined(transition.partition, *origin)).collect();
                self.join_into_widened(&mut abstraction, origins);
            }
        }
        let node = match self.node_numbers.get(&abstraction) {
            Some(node) => *node,
            None => self.new_node(&transition.state.product, abstraction),
        };
        transition.target = Some((node, self.partitions[transition.partition].revision));
        let product = &transition.state.product;
        let arguments = self.nodes[node].values.iter().zip(product.values.iter());
        let is_constant =
            |((_, at_node), (_, value)): &((&MemberValue, &SymbolicValue), (&MemberValue, &SymbolicValue))| {
                matches!(
                    (at_node, product.fold_constant(**value)),
                    (SymbolicValue::Residual(_), SymbolicValue::Constant(_))
                )
            };
        transition.size = 1 + arguments.filter(is_constant).count();
        node
    }

    fn new_node(&mut self, state: &ProductState, abstraction: super::state::AbstractState) -> usize {
        // The facts of the abstract state are about some of these values, in the same order.
        let mut facts = abstraction.facts.iter().peekable();
        let mut parameter_facts = SmallMap::with_capacity(abstraction.facts.len());
        let values = state.values.keys().map(|origin| {
            let fact = facts.next_if(|(other, _)| *other == origin).map(|(_, fact)| fact);
            if let Some(constant) = fact.and_then(Fact::as_constant) {
                return (*origin, SymbolicValue::Constant(constant));
            }
            let data = &self.group.members[origin.0].body.values[origin.1.0 as usize];
            let parameter = self.out.create_value(data.ty, data.name.clone());
            if let Some(fact) = fact {
                parameter_facts.insert(parameter, fact.clone());
            }
            (*origin, SymbolicValue::Residual(parameter))
        });
        let values: SmallMap<MemberValue, SymbolicValue> = values.collect();
        drop(facts);
        let inert = state.members.iter().enumerate().filter(|(_, member)| matches!(member.control, Control::Inert(_)));
        let inert: Vec<(usize, Value)> =
            inert.map(|(member, _)| (member, self.out.create_value(TypeTable::U32, None))).collect();
        let iteration_count = self.schedule.map(|_| self.out.create_value(TypeTable::U32, None));
        let live = parameters(&values).map(|(_, parameter)| parameter);
        let block = self.out.create_block(
            live.chain(inert.iter().map(|(_, blocked_wait)| *blocked_wait)).chain(iteration_count).collect(),
        );
        let abstraction = Rc::new(abstraction);
        self.node_numbers.insert(abstraction.clone(), self.nodes.len());
        self.nodes.push(Node {
            state: abstraction,
            block,
            values,
            facts: Rc::new(parameter_facts),
            inert,
            iteration_count,
            executed: None,
            round: 0,
            position: 0,
            widening_checked: Vec::new(),
        });
        self.nodes.len() - 1
    }

    /// Adds a node to the round and to its partition, unless the round has it.
    fn reach(&mut self, node: usize) -> Result<(), Refusal> {
        if self.nodes[node].round == self.round.number {
            return Ok(());
        }
        self.add_to_partition(node);
        if self.round.reached.len() >= self.limits.nodes {
            return Err(limit_exceeded(LimitKind::States, self.limits.nodes));
        }
        self.nodes[node].round = self.round.number;
        self.nodes[node].position = self.round.reached.len();
        self.round.total_reached += 1;
        self.round.reached.push(node);
        self.round.worklist.push(node);
        Ok(())
    }

    /// Emits the jumps between the nodes of the last round, those to yield points as yields, and the pending reports.
    pub(super) fn link_nodes(&mut self, start: Transition, yield_points: &BTreeSet<usize>) {
        let (mut transitions, mut reports) = (vec![start], Vec::new());
        for node in &self.round.reached {
            if let Some((effects, _)) = self.nodes[*node].executed.take() {
                transitions.extend(effects.transitions);
                reports.extend(effects.reports);
            }
        }
        for Transition { mut state, target, .. } in transitions {
            let (node, _) = target.expect("every transition of the last round has been resolved");
            let block = self.nodes[node].block;
            let origins: Vec<MemberValue> = parameters(&self.nodes[node].values).map(|(origin, _)| origin).collect();
            let mut arguments: Vec<Value> =
                origins.into_iter().map(|(member, value)| self.residual_value(&mut state, member, value)).collect();
            for member in 0..state.product.members.len() {
                if let Some(blocked_wait) = state.product.members[member].blocked_wait {
                    arguments.push(self.materialize(&mut state, blocked_wait, TypeTable::U32));
                }
            }
            arguments.extend(state.product.iteration_count);
            let edge = Edge { to: block, arguments };
            let jump = if yield_points.contains(&node) { Terminator::Yield(edge) } else { Terminator::Jump(edge) };
            self.out.finish(state.block, jump, Location::default());
        }
        reports.extend(std::mem::take(&mut self.deadlock_blocks).into_values().map(|(_, report)| report));
        for report in reports {
            self.emit_deadlock_report(report);
        }
    }

    /// Records members that can proceed at the current node.
    pub(super) fn note_enabled(&mut self, members: impl IntoIterator<Item = usize>) {
        self.effects.enabled.extend(members);
    }
}

/// The runnable member furthest downstream.
fn next_runnable(state: &ProductState) -> Option<(usize, BlockId)> {
    state.members.iter().enumerate().rev().find_map(|(index, member)| match member.control {
        Control::Running(block) => Some((index, block)),
        Control::Waiting(_) | Control::Yielded(..) | Control::Terminated | Control::Inert(_) => None,
    })
}
