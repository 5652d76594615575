//! Everything that is computed of a program before the search: the layout of states, the dependency of an instance in
//! its present component state on the code of the others, and how successors are generated.
//!
//! ```text
//!   state vector:   one component per instance | shared part, if there are pools | answers of pure functions, if
//!                   operations depend on them | one counter per bounded channel
//! ```

use crate::collapse::{ComponentTables, table_of_instances};
use crate::deadlines::Deadline;
use crate::domain::Unbounded;
use crate::environment::EnvironmentValues;
use crate::instance_set::{MAX_SET_INSTANCES, instance_bit};
use crate::kept_answers::{AnswerScope, KeptAnswers, functions_in_operations};
use crate::options::Symmetry;
use crate::static_matching::may_receive;
use crate::waits::waits;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::explore::{InstanceView, OpenBranch};
use quaject_esp_exec::step::{Control, State};
use quaject_esp_ir::ir::{
    AltOrder, Body, Boundary, ChannelId, Direction, ExternId, LabelId, MemoryMode, Op, ProcessId, Program, Terminator,
    Type, Wait,
};
use quaject_esp_ir::ltl::{Proposition, Term};
use quaject_esp_ir::model::{ModelProgram, Role};
use smol_str::SmolStr;
use std::sync::Arc;

/// How successors are generated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum SuccessorMode {
    /// Each step of the flow IR is a transition; its effect on component states is cached.
    SingleStep,
    /// As `SingleStep`; after a transition its participants also take their local step at once if it commutes with all
    /// steps of the other instances (a tau-confluent step).
    EagerLocal,
    /// Each step is a transition, recomputed on the complete state: it can change other instances than its
    /// participants.
    Monolithic,
}

/// A program with its state layout and static analyses.
pub(crate) struct ExplorationPlan<'m> {
    pub(crate) model: &'m ModelProgram,
    pub(crate) environment_values: Arc<EnvironmentValues>,
    pub(crate) components: ComponentTables,
    /// Per component index with a component state: its table.
    pub(crate) table_of_component: Vec<usize>,
    pub(crate) instances: usize,
    /// The component index of what all instances share.
    pub(crate) shared: Option<u32>,
    /// The component index of the answers of pure functions that hold in a state.
    pub(crate) answers: Option<u32>,
    /// The answers that every state keeps, by question.
    kept_answers: KeptAnswers,
    /// Bounded channels, each with the component index that counts its messages, and the bound.
    counters: Vec<(ChannelId, u32, u64)>,
    /// Length of a state vector.
    pub(crate) width: usize,
    pub(crate) successor_mode: SuccessorMode,
    /// Per instance: the instances that read an internal channel that it writes.
    pub(crate) receivers: Vec<Vec<u32>>,
    /// Groups of interchangeable components: their order in a state is irrelevant.
    pub(crate) groups: Vec<std::ops::Range<usize>>,
    /// The atomic propositions of the property.
    pub(crate) atoms: Vec<Proposition>,
    /// Per instance: the propositions about its labels, at most 8, each with the label's position in the code.
    pub(crate) label_atoms: Vec<Vec<(usize, usize)>>,
    /// Whether the inputs of a state depend on the code that each local step executes.
    pub(crate) records_coverage: bool,
    /// Per instance: its variables that the property names.
    pub(crate) tracked_variables: Vec<Vec<SmolStr>>,
    /// Per process: its deadlines, if they are tracked.
    deadlines: Vec<Vec<Deadline>>,
    /// Per instance with tracked deadlines: the number of the first of them.
    first_deadlines: Vec<Option<u32>>,
    summaries: Vec<ProcessSummary>,
    processes: Vec<ProcessId>,
    /// Per channel: the set of its readers, and the set of its writers.
    users: Vec<(u128, u128)>,
}

/// The maximum number of deadlines of all instances: their set is one word. Further ones may be passed over forever.
const MAX_TRACKED_DEADLINES: u32 = 128;

/// Static facts of a process.
struct ProcessSummary {
    /// Whether it can end the program.
    exits: bool,
    /// Whether a choice of another instance can depend on when this one arrives at an operation.
    arrival_is_observable: bool,
    /// The instances with which its steps interact at any location.
    always_dependent: u128,
    /// Whether its local code accesses pools only to use and to release objects that it holds.
    is_pool_independent: bool,
}

/// The operations whose choice depends on what other instances offer: those of a `pri alt`, or with an `else`.
fn prioritized_operations(process: &quaject_esp_ir::ir::Process) -> Vec<(ChannelId, Direction)> {
    let is_prioritized =
        |wait: &&Wait| wait.otherwise.is_some() || (wait.order == AltOrder::Priority && wait.branches.len() > 1);
    waits(process)
        .filter(is_prioritized)
        .flat_map(|wait| &wait.branches)
        .filter_map(|branch| branch.operation.channel_end())
        .collect()
}

impl<'m> ExplorationPlan<'m> {
    pub(crate) fn new(
        model: &'m ModelProgram,
        successor_mode: SuccessorMode,
        symmetry: Symmetry,
        answer_scope: AnswerScope<'_>,
    ) -> Result<ExplorationPlan<'m>, Vec<Unbounded>> {
        let table = match answer_scope {
            AnswerScope::Table(table) => Some(Arc::clone(table)),
            AnswerScope::Run(_) => None,
        };
        let environment_values = Arc::new(EnvironmentValues::new(model, table)?);
        let program = &model.program;
        let replicas = program.processes.iter().enumerate();
        let processes: Vec<ProcessId> =
            replicas.flat_map(|(index, process)| (0..process.replicas).map(move |_| ProcessId(index as u32))).collect();
        let instances = processes.len();
        let mut table_of_component = table_of_instances(processes.iter().copied());
        let pools = !program.types.pools().is_empty();
        let shared = pools.then_some(instances as u32);
        if pools {
            table_of_component.push(table_of_component.last().map_or(0, |last| last + 1));
        }
        let has_choice = |function: &ExternId| environment_values.results[function.0 as usize].len() > 1;
        let kept_answers = match answer_scope {
            AnswerScope::Table(_) => None,
            AnswerScope::Run(kept) => {
                let is_needed = || functions_in_operations(model).iter().any(has_choice);
                (!kept.is_empty() || is_needed()).then(|| kept.clone())
            }
        };
        let answers = kept_answers.is_some().then(|| (instances + usize::from(pools)) as u32);
        if answers.is_some() {
            table_of_component.push(table_of_component.last().map_or(0, |last| last + 1));
        }
        let first = instances + usize::from(pools) + usize::from(answers.is_some());
        let bounds = model.bounds.iter().enumerate().filter_map(|(channel, bound)| Some((channel, (*bound)?)));
        let is_open = |channel: &usize| program.channels[*channel].boundary == Boundary::FromEnvironment;
        let counters: Vec<_> = bounds
            .filter(|(channel, _)| is_open(channel))
            .enumerate()
            .map(|(number, (channel, bound))| (ChannelId(channel as u32), (first + number) as u32, bound))
            .collect();
        let wide = program.processes.iter().flat_map(waits).any(|wait| wait.branches.len() > 63);
        let mut plan = ExplorationPlan {
            model,
            environment_values,
            components: ComponentTables::new(table_of_component.last().map_or(0, |last| last + 1)),
            table_of_component,
            instances,
            shared,
            answers,
            kept_answers: kept_answers.unwrap_or_default(),
            width: first + counters.len(),
            counters,
            successor_mode: if pools || wide || answers.is_some() { SuccessorMode::Monolithic } else { successor_mode },
            receivers: Vec::new(),
            groups: match symmetry {
                Symmetry::On => interchangeable(model, &processes),
                Symmetry::Off => Vec::new(),
            },
            atoms: Vec::new(),
            label_atoms: vec![Vec::new(); instances],
            records_coverage: false,
            tracked_variables: vec![Vec::new(); instances],
            deadlines: Vec::new(),
            first_deadlines: vec![None; instances],
            summaries: Vec::new(),
            users: users(model, &processes),
            processes,
        };
        plan.receivers = (0..instances as u32).map(|instance| plan.receivers_of(instance)).collect();
        plan.summaries = program.processes.iter().enumerate().map(|(index, _)| plan.summarize(index)).collect();
        Ok(plan)
    }

    fn receivers_of(&self, instance: u32) -> Vec<u32> {
        let process = &self.model.program.processes[self.processes[instance as usize].0 as usize];
        let sends = |channel: ChannelId| {
            process.sites.iter().any(|site| site.channel == channel && site.direction == Direction::Out)
        };
        let reads = |receiver: &u32| {
            let process = &self.model.program.processes[self.processes[*receiver as usize].0 as usize];
            process.sites.iter().any(|site| site.direction == Direction::In && sends(site.channel))
        };
        (0..self.instances as u32).filter(|receiver| *receiver != instance && reads(receiver)).collect()
    }

    fn summarize(&self, index: usize) -> ProcessSummary {
        let program = &self.model.program;
        let process = &program.processes[index];
        let exits = process.body.blocks.iter().any(|block| matches!(block.terminator, Terminator::Exit(_)));
        let mut always_dependent = 0;
        let mut arrival_is_observable = false;
        for (other, process_id) in self.processes.iter().enumerate() {
            let prioritized = prioritized_operations(&program.processes[process_id.0 as usize]);
            let can_be_chosen = |site: &quaject_esp_ir::ir::Site| {
                prioritized.iter().any(|(channel, direction)| *channel == site.channel && *direction != site.direction)
            };
            if process.sites.iter().any(can_be_chosen) {
                arrival_is_observable = true;
                always_dependent |= instance_bit(other);
            }
        }
        for (channel, _, _) in &self.counters {
            if process.sites.iter().any(|site| site.channel == *channel) {
                always_dependent |= self.users[channel.0 as usize].0;
            }
        }
        ProcessSummary {
            exits,
            arrival_is_observable,
            always_dependent,
            is_pool_independent: uses_only_held_objects(program, process),
        }
    }

    /// Stores the inputs of these propositions in every state; false if there are too many.
    pub(crate) fn track_atoms(&mut self, atoms: Vec<Proposition>) -> bool {
        for (number, atom) in atoms.iter().enumerate() {
            let is_tracked = number < 64
                && match atom {
                    Proposition::Passed { instance, label, .. } => self.track_label(number, *instance, *label),
                    Proposition::Compares(left, _, right) => {
                        self.track_variable(left);
                        self.track_variable(right);
                        true
                    }
                };
            if !is_tracked {
                return false;
            }
        }
        self.atoms = atoms;
        self.separate_tables();
        true
    }

    /// Stores in every state which deadlines may have moved, so that a search finds the runs that pass one over
    /// forever. Those of the environment may be.
    pub(crate) fn track_deadlines(mut self) -> Self {
        let program = &self.model.program;
        self.deadlines = program.processes.iter().map(Deadline::of_process).collect();
        let mut count = 0;
        for instance in 0..self.instances {
            let own = self.deadlines[self.processes[instance].0 as usize].len() as u32;
            let is_explored = self.model.role(instance as u32) == Role::Explored;
            if own > 0 && is_explored && count + own <= MAX_TRACKED_DEADLINES {
                self.first_deadlines[instance] = Some(count);
                count += own;
            }
        }
        if count == 0 {
            self.deadlines.clear();
        } else {
            self.records_coverage = true;
            self.separate_tables();
        }
        self
    }

    /// Replicas with different inputs of propositions cannot share a table.
    fn separate_tables(&mut self) {
        self.table_of_component = (0..self.table_of_component.len()).collect();
        self.components = ComponentTables::new(self.table_of_component.len());
    }

    /// Whether any deadline is tracked.
    pub(crate) fn tracks_deadlines(&self) -> bool {
        !self.deadlines.is_empty()
    }

    /// The tracked deadlines of an instance, and the number of the first of them.
    pub(crate) fn deadlines(&self, instance: u32) -> Option<(u32, &[Deadline])> {
        let first = (*self.first_deadlines.get(instance as usize)?)?;
        Some((first, &self.deadlines[self.processes[instance as usize].0 as usize]))
    }

    fn track_label(&mut self, number: usize, instance: u32, label: LabelId) -> bool {
        let process = &self.model.program.processes[self.process(instance).0 as usize];
        let mut position = 0;
        let mut found = None;
        for block in &process.body.blocks {
            for instruction in &block.instructions {
                if matches!(instruction.op, Op::Mark(other) if other == label) {
                    found = Some(position);
                }
                position += 1;
            }
            position += 1;
        }
        // An unreachable label is never passed.
        let Some(position) = found else { return true };
        let label_atoms = &mut self.label_atoms[instance as usize];
        label_atoms.push((number, position));
        self.records_coverage = true;
        label_atoms.len() <= 8
    }

    fn track_variable(&mut self, term: &Term) {
        if let Term::Variable { instance, name, .. } = term
            && !self.tracked_variables[*instance as usize].contains(name)
        {
            self.tracked_variables[*instance as usize].push(name.clone());
        }
    }

    /// The indices of components that have a table.
    pub(crate) fn component_indices(&self) -> impl Iterator<Item = u32> + use<> {
        (0..self.instances as u32).chain(self.shared).chain(self.answers)
    }

    /// Whether a state keeps the answer to a question on which no operation depends.
    pub(crate) fn keeps_answer(&self, question: u32, state: &State) -> bool {
        !self.kept_answers.is_empty()
            && self.kept_answers.keeps(&self.environment_values.questions.get(question), state)
    }

    /// Per instance: its tracked variables as they are before it runs.
    pub(crate) fn initial_values(&self) -> Vec<Vec<i128>> {
        let initial = |instance: usize, name: &SmolStr| {
            let mut known = self.model.initial_values.iter();
            let known = known.find(|(process, variable, _)| *process == self.processes[instance] && variable == name);
            known.map_or(0, |(_, _, value)| *value)
        };
        let tracked = self.tracked_variables.iter().enumerate();
        tracked.map(|(instance, names)| names.iter().map(|name| initial(instance, name)).collect()).collect()
    }

    pub(crate) fn process(&self, instance: u32) -> ProcessId {
        self.processes[instance as usize]
    }

    pub(crate) fn is_omitted(&self, instance: u32) -> bool {
        self.model.role(instance) == Role::Omitted
    }

    /// The component index that counts a channel's messages.
    pub(crate) fn counter(&self, channel: ChannelId) -> Option<u32> {
        self.counters.iter().find(|(counted, _, _)| *counted == channel).map(|(_, component_index, _)| *component_index)
    }

    /// Whether the bound allows one more message after this many.
    pub(crate) fn may_count(&self, component_index: u32, count: u32) -> bool {
        self.counters.iter().any(|(_, counter, bound)| *counter == component_index && u64::from(count) < *bound)
    }

    /// Whether an instance's local steps commute with all steps of the other instances and the property does not
    /// observe them.
    pub(crate) fn has_independent_local_steps(&self, instance: u32) -> bool {
        self.successor_mode == SuccessorMode::EagerLocal
            && !self.summaries[self.processes[instance as usize].0 as usize].arrival_is_observable
            && !self.is_observed(instance)
    }

    /// Whether the property names a label or variable of an instance, or fairness depends on its deadlines.
    fn is_observed(&self, instance: u32) -> bool {
        !self.label_atoms[instance as usize].is_empty()
            || !self.tracked_variables[instance as usize].is_empty()
            || self.first_deadlines[instance as usize].is_some()
    }

    /// The instances whose local steps commute with all steps of the others and are invisible to the property, so that
    /// they are eager wherever they are deterministic.
    pub(crate) fn eager_instances(&self) -> u128 {
        let eager = (0..self.instances as u32).filter(|instance| self.has_independent_local_steps(*instance));
        eager.fold(0, |all, instance| all | instance_bit(instance as usize))
    }

    /// The instances that the property does not observe.
    pub(crate) fn unobserved_instances(&self) -> u128 {
        let unobserved = (0..self.instances as u32).filter(|instance| !self.is_observed(*instance));
        unobserved.fold(0, |all, instance| all | instance_bit(instance as usize))
    }

    /// Whether an instance's local steps commute with all steps of the other instances, provided that they change no
    /// pool.
    ///
    /// Such a process neither allocates, which can fail because of other instances, nor reads the number of free
    /// objects or a reference count. The content of the objects that it holds is stable: in automatic memory only the
    /// single holder writes.
    pub(crate) fn is_independent(&self, instance: u32) -> bool {
        let summary = &self.summaries[self.processes[instance as usize].0 as usize];
        !summary.arrival_is_observable && summary.is_pool_independent
    }

    /// The instances that can receive this message by their static patterns; any instance if the message is not known.
    pub(crate) fn possible_receivers(&self, instance: u32, channel: ChannelId, message: Option<&[Datum]>) -> u128 {
        let Some(message) = message else { return u128::MAX };
        let takes = |receiver: &&u32| {
            let process = &self.model.program.processes[self.processes[**receiver as usize].0 as usize];
            may_receive(process, **receiver, channel, message)
        };
        self.receivers[instance as usize]
            .iter()
            .filter(takes)
            .fold(0, |all, receiver| all | instance_bit(*receiver as usize))
    }

    /// Whether an instance is in a set; true for instances beyond the size of sets.
    pub(crate) fn is_among(&self, instance: u32, set: u128) -> bool {
        instance as usize >= MAX_SET_INSTANCES || set & instance_bit(instance as usize) != 0
    }

    /// The instances with which an instance in this control state can interact, if its messages have these receivers
    /// only.
    pub(crate) fn dependents(&self, instance: u32, view: &InstanceView, receivers: u128) -> u128 {
        let summary = &self.summaries[self.processes[instance as usize].0 as usize];
        let mut dependents = summary.always_dependent;
        match view.control {
            Control::Running { .. } if summary.exits => return u128::MAX,
            Control::Running { .. } | Control::Waiting { .. } | Control::CapturedByPath { .. } | Control::Ended => {}
        }
        for open_branch in view.branches.iter().flatten() {
            dependents |= match open_branch {
                OpenBranch::In(channel) => self.users[channel.0 as usize].1,
                OpenBranch::Out(channel) => self.users[channel.0 as usize].0 & receivers,
                OpenBranch::FromEnvironment(_) | OpenBranch::ToEnvironment(_) | OpenBranch::After => 0,
            };
        }
        dependents & !instance_bit(instance as usize)
    }
}

fn uses_only_held_objects(program: &Program, process: &quaject_esp_ir::ir::Process) -> bool {
    let all = |body: &'_ Body, holds: &dyn Fn(&Op) -> bool| {
        body.blocks.iter().flat_map(|block| &block.instructions).all(|instruction| holds(&instruction.op))
    };
    let depends_on_pools = |op: &Op| matches!(op, Op::Allocate(_) | Op::IsUnique(_) | Op::FreeObjects(_));
    let harmless = program.functions.iter().all(|function| all(&function.body, &|op| !depends_on_pools(op)));
    let calls = |op: &Op| matches!(op, Op::CallFunction { .. });
    program.memory == MemoryMode::Automatic
        && all(&process.body, &|op| !depends_on_pools(op) && (harmless || !calls(op)))
}

fn users(model: &ModelProgram, processes: &[ProcessId]) -> Vec<(u128, u128)> {
    let mut users = vec![(0, 0); model.program.channels.len()];
    for (instance, process) in processes.iter().enumerate() {
        for site in &model.program.processes[process.0 as usize].sites {
            let (readers, writers) = &mut users[site.channel.0 as usize];
            match site.direction {
                Direction::In => *readers |= instance_bit(instance),
                Direction::Out => *writers |= instance_bit(instance),
            }
        }
    }
    users
}

/// Groups of replicas that are interchangeable because no value names one (scalarset symmetry: Ip and Dill, "Better
/// Verification Through Symmetry", 1996).
fn interchangeable(model: &ModelProgram, processes: &[ProcessId]) -> Vec<std::ops::Range<usize>> {
    let named = |process: ProcessId| {
        model.program.types.types().iter().any(|ty| match ty {
            Type::Pid(list) => list.contains(&process),
            Type::Error
            | Type::Int(_)
            | Type::Bool
            | Type::Bytes { .. }
            | Type::Array { .. }
            | Type::Record(_)
            | Type::Union(_)
            | Type::Boxed(_) => false,
        })
    };
    let mut groups = Vec::new();
    let mut start = 0;
    while start < processes.len() {
        let end = start + processes[start..].iter().take_while(|process| **process == processes[start]).count();
        if end - start > 1 && !named(processes[start]) {
            groups.push(start..end);
        }
        start = end;
    }
    groups
}
