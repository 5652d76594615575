//! Runs that go on for ever: whether one contradicts a property, or leaves an instance waiting, though everybody who
//! can go on all the time does so in the end (weak fairness). Builds the graph of all states together with the
//! property's automaton and looks at its strongly connected components. Runs that end stay where they are for ever: where
//! nobody has to move in that state itself, where somebody ends the program in one that nothing leaves.

use crate::automaton::{Automaton, AutomatonStep};
use crate::exploration_plan::ExplorationPlan;
use crate::formula::FormulaId;
use crate::instance_set::{MAX_SET_INSTANCES, first_instances, instance_bit, participant_set};
use crate::options::{Compaction, Limit, Limits, Progress};
use crate::reconstruct::{Continuation, ResolvedStep, try_step_to};
use crate::search::BETWEEN_PROGRESS;
use crate::store::{Insertion, PackedStates, StateRef, Store, hash, signature};
use crate::successors::{SuccessorGenerator, TransitionOutcome};
use quaject_esp_exec::step::{Step, TooLarge};
use quaject_esp_ir::ir::Blocking;
use quaject_esp_ir::model::Role;
use rustc_hash::FxHashMap;
use std::ops::Range;
use std::rc::Rc;
use std::time::Instant;

/// What is looked for.
pub(crate) enum Goal {
    /// A run that the automaton accepts.
    Accepted(Automaton),
    /// A run on which one of these instances waits for ever where it may not.
    Starved(Range<u32>),
}

/// A run that was found: its steps, the first that is repeated, and who is left waiting.
pub(crate) struct Lasso {
    pub(crate) steps: Vec<ResolvedStep>,
    pub(crate) cycle: usize,
    pub(crate) starved: Option<u32>,
}

/// What a search for runs has come to.
pub(crate) enum LassoOutcome {
    None,
    Found(Lasso),
    Unfinished(Limit),
}

/// A state of the program and one of the automaton.
struct Node {
    state: StateRef,
    /// Who can go on here and has to in the end, and who waits though it may not do so for ever.
    must_move: u128,
    waiting: u128,
    edges: Range<u32>,
}

struct Edge {
    to: u32,
    participants: u128,
    /// What the automaton puts off.
    postponed_set: u32,
}

struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    parents: Vec<u32>,
}

/// The steps that a run has to take: those from `cycle` on again and again, or, if it has none, any after them.
#[derive(Clone, Copy)]
pub(crate) struct ForcedPrefix<'g> {
    pub(crate) steps: &'g [Step],
    pub(crate) cycle: Option<usize>,
}

impl ForcedPrefix<'_> {
    /// No step has to be taken.
    pub(crate) const NONE: ForcedPrefix<'static> = ForcedPrefix { steps: &[], cycle: None };

    /// Where a run is that has taken all steps before this one and now this.
    fn after(self, at: u32) -> u32 {
        match self.cycle {
            _ if at as usize >= self.steps.len() => at,
            Some(cycle) if at as usize + 1 == self.steps.len() => cycle as u32,
            Some(_) | None => at + 1,
        }
    }

    fn allows(self, at: u32, step: Step) -> bool {
        match self.steps.get(at as usize) {
            Some(wanted) => *wanted == step,
            None => self.cycle.is_none(),
        }
    }

    /// Whether the run may rest here for ever.
    fn may_rest(self, at: u32) -> bool {
        at as usize >= self.steps.len()
    }
}

/// Looks for a run. `progress` is told from time to time how far it is.
pub(crate) fn search(
    plan: &ExplorationPlan<'_>,
    mut goal: Goal,
    prefix: ForcedPrefix<'_>,
    limits: &Limits,
    progress: &mut dyn FnMut(Progress),
) -> Result<LassoOutcome, TooLarge> {
    let mut generator = SuccessorGenerator::new(plan)?;
    let started = Instant::now();
    generator.set_limits(limits, started);
    let store = Store::new(plan.width + PRODUCT_SLOTS, Compaction::Off, 1);
    let mut budget = SearchBudget { limits, started, last_report: started, progress };
    let graph = match Graph::build(&mut generator, &store, &mut goal, prefix, &mut budget) {
        Ok(graph) => graph,
        Err(limit) => return Ok(LassoOutcome::Unfinished(limit)),
    };
    // What was found is shown however long that takes.
    generator.set_limits(&Limits::default(), started);
    // Sets would not do for more.
    debug_assert!(plan.instances <= MAX_SET_INSTANCES);
    let all_instances = first_instances(plan.instances);
    let all = |_: &Edge| true;
    match &goal {
        Goal::Accepted(automaton) => {
            let postponed = |edge: &Edge| automaton.postponed(edge.postponed_set);
            for component in graph.strongly_connected_components(&all) {
                if graph.is_fair(&component, &all, all_instances) && graph.is_accepted(&component, &postponed) {
                    let lasso = graph.lasso(&mut generator, &store, &component, &all, &postponed, all_instances);
                    return Ok(LassoOutcome::Found(Lasso { starved: None, ..lasso }));
                }
            }
        }
        Goal::Starved(instances) => {
            for instance in instances.clone().map(|instance| instance as usize) {
                if graph.nodes.iter().all(|node| node.waiting & instance_bit(instance) == 0) {
                    continue;
                }
                if let Err(limit) = budget.check(graph.bytes()) {
                    return Ok(LassoOutcome::Unfinished(limit));
                }
                let without = |edge: &Edge| edge.participants & instance_bit(instance) == 0;
                for component in graph.strongly_connected_components(&without) {
                    let waits = |node: &u32| graph.nodes[*node as usize].waiting & instance_bit(instance) != 0;
                    // A run that stays in one state is one that has ended.
                    let moves = graph.inner(&component, &without).any(|edge| edge.participants != STUTTER);
                    if component.iter().all(waits) && moves && graph.is_fair(&component, &without, all_instances) {
                        let lasso = graph.lasso(&mut generator, &store, &component, &without, &|_| &[], all_instances);
                        return Ok(LassoOutcome::Found(Lasso { starved: Some(instance as u32), ..lasso }));
                    }
                }
            }
        }
    }
    Ok(LassoOutcome::None)
}

/// InstanceView still counts as a step of everybody.
const STUTTER: u128 = u128::MAX;

/// How many numbers of a node are not the program's state.
const PRODUCT_SLOTS: usize = 2;

/// What a node is besides the program's state, as the last numbers of it in the store.
#[derive(Clone, Copy)]
struct ProductLocation {
    /// The automaton's state.
    automaton: u32,
    /// Whether the program has ended in this state.
    has_ended: bool,
    /// How many of the guide's steps have been taken.
    at: u32,
}

impl ProductLocation {
    fn write(self, numbers: &mut [u32]) {
        numbers.copy_from_slice(&[self.automaton << 1 | u32::from(self.has_ended), self.at]);
    }

    fn of(numbers: &[u32]) -> ProductLocation {
        ProductLocation { automaton: numbers[0] >> 1, has_ended: numbers[0] & 1 == 1, at: numbers[1] }
    }
}

impl Graph {
    fn build(
        generator: &mut SuccessorGenerator<'_>,
        store: &Store,
        goal: &mut Goal,
        prefix: ForcedPrefix<'_>,
        budget: &mut SearchBudget<'_>,
    ) -> Result<Graph, Limit> {
        let stays: Rc<[AutomatonStep]> = Rc::new([AutomatonStep { to: 0, postponed_set: 0 }]);
        let width = generator.plan.width;
        let mut graph = Graph { nodes: Vec::new(), edges: Vec::new(), parents: Vec::new() };
        let mut numbers_of: FxHashMap<StateRef, u32> = FxHashMap::default();
        let mut bundle = PackedStates::default();
        let fairness = match goal {
            Goal::Accepted(_) => FairnessScope::except_environment(generator.plan),
            Goal::Starved(_) => FairnessScope::AllInstances,
        };
        let mut waiting = WaitCache::default();
        let mut add = |graph: &mut Graph, numbers: &[u32], from: Option<u32>| -> Result<u32, Limit> {
            let parent = from.map(|from| graph.nodes[from as usize].state);
            match store.insert(&mut bundle, parent, numbers, signature(hash(numbers))) {
                Insertion::New(state) => {
                    let node = graph.nodes.len() as u32;
                    numbers_of.insert(state, node);
                    graph.nodes.push(Node { state, must_move: 0, waiting: 0, edges: 0..0 });
                    graph.parents.push(from.unwrap_or(node));
                    Ok(node)
                }
                Insertion::Known(state) => Ok(numbers_of[&state]),
                Insertion::Full => Err(Limit::Memory),
            }
        };
        let mut start = generator.start();
        start.resize(width + PRODUCT_SLOTS, 0);
        add(&mut graph, &start, None)?;
        let (mut numbers, mut reached) = (vec![0; width + PRODUCT_SLOTS], vec![0; width + PRODUCT_SLOTS]);
        let mut at = 0;
        while at < graph.nodes.len() {
            store.read(graph.nodes[at].state, &mut numbers);
            let here = ProductLocation::of(&numbers[width..]);
            let steps = match goal {
                Goal::Accepted(automaton) => {
                    budget.check_node(&graph, at as u32, automaton.bytes())?;
                    let atoms = generator.valuation(&numbers[..width]);
                    let bytes = graph.bytes();
                    automaton.steps(here.automaton, atoms, &mut |own| budget.check(bytes + own))?
                }
                Goal::Starved(_) => {
                    budget.check_node(&graph, at as u32, 0)?;
                    Rc::clone(&stays)
                }
            };
            if !here.has_ended {
                generator.find_enabled(&numbers[..width]);
            }
            let must_move = if here.has_ended { 0 } else { fairness.must_move(generator) };
            if let Some(limit) = generator.limit_reached {
                return Err(limit);
            }
            let base = hash(&numbers[..width]);
            let first = graph.edges.len() as u32;
            let found = if here.has_ended { 0 } else { generator.enabled.len() };
            for index in 0..found {
                let found = generator.enabled[index];
                if !prefix.allows(here.at, generator.get(found).step) {
                    continue;
                }
                // A run that goes on from here must not be taken for one that ends: the end is a node of its own.
                let has_ended = !matches!(generator.get(found).outcome, TransitionOutcome::Continues);
                let participants = participant_set(generator.get(found).step);
                generator.apply(found, &numbers[..width], base, &mut reached[..width]);
                for step in steps.iter() {
                    let product_location = ProductLocation { automaton: step.to, has_ended, at: prefix.after(here.at) };
                    product_location.write(&mut reached[width..]);
                    let to = add(&mut graph, &reached, Some(at as u32))?;
                    graph.edges.push(Edge { to, participants, postponed_set: step.postponed_set });
                }
            }
            // Where nobody has to go on, everything may rest for ever.
            if must_move == 0 && (here.has_ended || prefix.may_rest(here.at)) {
                reached.copy_from_slice(&numbers);
                for step in steps.iter() {
                    ProductLocation { automaton: step.to, ..here }.write(&mut reached[width..]);
                    let to = add(&mut graph, &reached, Some(at as u32))?;
                    graph.edges.push(Edge { to, participants: STUTTER, postponed_set: step.postponed_set });
                }
            }
            let waiting = match goal {
                Goal::Starved(instances) if !here.has_ended => waiting.among(generator, instances.clone(), &numbers),
                Goal::Starved(_) | Goal::Accepted(_) => 0,
            };
            let node = &mut graph.nodes[at];
            node.must_move = must_move;
            node.waiting = waiting;
            node.edges = first..graph.edges.len() as u32;
            at += 1;
        }
        Ok(graph)
    }

    /// About how much memory it takes, the states it is made of included.
    fn bytes(&self) -> u64 {
        (self.nodes.len() * 100 + self.edges.len() * size_of::<Edge>()) as u64
    }

    /// Steps from the start to a node, on the way it was found.
    fn depth(&self, node: u32) -> u32 {
        let (mut at, mut depth) = (node, 0);
        while self.parents[at as usize] != at {
            at = self.parents[at as usize];
            depth += 1;
        }
        depth
    }

    fn edges_of(&self, node: u32) -> &[Edge] {
        let range = &self.nodes[node as usize].edges;
        &self.edges[range.start as usize..range.end as usize]
    }

    /// Strongly connected components that hold an edge, of the graph with the edges that are kept (Tarjan).
    fn strongly_connected_components(&self, keep: &dyn Fn(&Edge) -> bool) -> Vec<Vec<u32>> {
        let count = self.nodes.len();
        let mut index = vec![u32::MAX; count];
        let mut low = vec![0u32; count];
        let mut on_stack = vec![false; count];
        let (mut stack, mut shortest_path, mut found) = (Vec::new(), Vec::<(u32, usize)>::new(), Vec::new());
        let mut next = 0;
        for root in 0..count as u32 {
            if index[root as usize] != u32::MAX {
                continue;
            }
            shortest_path.push((root, 0));
            while let Some((node, position)) = shortest_path.last_mut() {
                let at = *node as usize;
                if *position == 0 {
                    index[at] = next;
                    low[at] = next;
                    next += 1;
                    stack.push(*node);
                    on_stack[at] = true;
                }
                let edge = self.edges_of(*node).get(*position);
                *position += 1;
                match edge {
                    Some(edge) if !keep(edge) => {}
                    Some(edge) => {
                        let to = edge.to as usize;
                        if index[to] == u32::MAX {
                            shortest_path.push((edge.to, 0));
                        } else if on_stack[to] {
                            low[at] = low[at].min(index[to]);
                        }
                    }
                    None => {
                        shortest_path.pop();
                        if let Some((above, _)) = shortest_path.last() {
                            low[*above as usize] = low[*above as usize].min(low[at]);
                        }
                        if low[at] == index[at] {
                            let start = stack.iter().rposition(|other| *other as usize == at);
                            let component = stack.split_off(start.expect("a root is on the stack"));
                            component.iter().for_each(|member| on_stack[*member as usize] = false);
                            let loops = |node: &u32| self.edges_of(*node).iter().any(|e| e.to == *node && keep(e));
                            if component.len() > 1 || component.iter().any(loops) {
                                found.push(component);
                            }
                        }
                    }
                }
            }
        }
        // The nearest first.
        found.sort_by_key(|component| component.iter().min().copied());
        found
    }

    /// The kept edges within a component.
    fn inner<'g>(
        &'g self,
        component: &'g [u32],
        keep: &'g dyn Fn(&Edge) -> bool,
    ) -> impl Iterator<Item = &'g Edge> + 'g {
        let members: rustc_hash::FxHashSet<u32> = component.iter().copied().collect();
        let edges = component.iter().flat_map(|node| self.edges_of(*node));
        edges.filter(move |edge| members.contains(&edge.to) && keep(edge))
    }

    /// Whether everybody takes a step in it, or cannot somewhere in it.
    fn is_fair(&self, component: &[u32], keep: &dyn Fn(&Edge) -> bool, all_instances: u128) -> bool {
        let acting = self.inner(component, keep).fold(0, |all, edge| all | edge.participants);
        let unable = component.iter().fold(0, |all, node| all | !self.nodes[*node as usize].must_move);
        (acting | unable) & all_instances == all_instances
    }

    /// Whether none of the automaton's goals is put off by every edge in it.
    fn is_accepted<'a>(&self, component: &[u32], postponed: &dyn Fn(&Edge) -> &'a [FormulaId]) -> bool {
        let mut edges = self.inner(component, &|_| true);
        let Some(first) = edges.next() else { return false };
        let mut open = postponed(first).to_vec();
        edges.all(|edge| {
            open.retain(|goal| postponed(edge).contains(goal));
            !open.is_empty()
        });
        open.is_empty()
    }

    /// A run into a component and round in it, past everything that makes it fair and accepted.
    fn lasso<'a>(
        &self,
        generator: &mut SuccessorGenerator<'_>,
        store: &Store,
        component: &[u32],
        keep: &dyn Fn(&Edge) -> bool,
        postponed: &dyn Fn(&Edge) -> &'a [FormulaId],
        all_instances: u128,
    ) -> Lasso {
        let entry = component.iter().min().copied().expect("a component has a node");
        let mut run = vec![entry];
        while let Some(last) = run.last().copied().filter(|last| self.parents[*last as usize] != *last) {
            run.push(self.parents[last as usize]);
        }
        run.reverse();
        let cycle = run.len() - 1;
        // The goals that every edge so far has put off.
        let mut open: Vec<FormulaId> = self.inner(component, keep).flat_map(postponed).copied().collect();
        open.sort_unstable();
        open.dedup();
        let mut fair = all_instances;
        loop {
            let at = run[run.len() - 1];
            fair &= self.nodes[at as usize].must_move;
            let first = run.len() == cycle + 1;
            if open.is_empty() && fair == 0 && at == entry && !first {
                break;
            }
            let wanted = |edge: &Edge| {
                if open.is_empty() && fair == 0 {
                    return edge.to == entry;
                }
                edge.participants & fair != 0
                    || !self.nodes[edge.to as usize].must_move & fair != 0
                    || open.iter().any(|goal| !postponed(edge).contains(goal))
            };
            for edge in self.shortest_path(at, component, keep, &wanted) {
                fair &= !edge.participants & self.nodes[edge.to as usize].must_move;
                open.retain(|goal| postponed(edge).contains(goal));
                run.push(edge.to);
            }
        }
        self.steps(generator, store, &run, cycle)
    }

    /// The shortest way within a component to and over an edge that is wanted.
    fn shortest_path(
        &self,
        from: u32,
        component: &[u32],
        keep: &dyn Fn(&Edge) -> bool,
        wanted: &dyn Fn(&Edge) -> bool,
    ) -> Vec<&Edge> {
        let members: rustc_hash::FxHashSet<u32> = component.iter().copied().collect();
        let mut reached: FxHashMap<u32, (u32, &Edge)> = FxHashMap::default();
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for edge in self.edges_of(node).iter().filter(|edge| keep(edge) && members.contains(&edge.to)) {
                if wanted(edge) {
                    let mut back = vec![edge];
                    let mut at = node;
                    while at != from {
                        let (before, edge) = reached[&at];
                        back.push(edge);
                        at = before;
                    }
                    back.reverse();
                    return back;
                }
                if edge.to != from && !reached.contains_key(&edge.to) {
                    reached.insert(edge.to, (node, edge));
                    queue.push_back(edge.to);
                }
            }
        }
        unreachable!("a component is strongly connected and holds what makes it fair")
    }

    /// The steps along nodes.
    fn steps(&self, generator: &mut SuccessorGenerator<'_>, store: &Store, run: &[u32], cycle: usize) -> Lasso {
        let width = generator.plan.width;
        let mut numbers = vec![0; width + PRODUCT_SLOTS];
        let mut wanted = vec![0; width + PRODUCT_SLOTS];
        let mut steps = Vec::new();
        let mut start = 0;
        for (position, pair) in run.windows(2).enumerate() {
            if position == cycle {
                start = steps.len();
            }
            store.read(self.nodes[pair[0] as usize].state, &mut numbers);
            store.read(self.nodes[pair[1] as usize].state, &mut wanted);
            let mut from = numbers[..width].to_vec();
            if ProductLocation::of(&numbers[width..]).has_ended {
                // Nothing happens any more.
                continue;
            }
            let goes = if ProductLocation::of(&wanted[width..]).has_ended {
                Continuation::Ends
            } else {
                Continuation::Continues
            };
            try_step_to(generator, &mut from, &mut steps, goes, &|reached| reached == &wanted[..width]);
        }
        Lasso { cycle: start.min(steps.len()), steps, starved: None }
    }
}

/// Where a search ends even if there is more, and whom to tell how far it is.
struct SearchBudget<'c> {
    limits: &'c Limits,
    started: Instant,
    last_report: Instant,
    progress: &'c mut dyn FnMut(Progress),
}

impl SearchBudget<'_> {
    /// Before a node is looked at.
    fn check_node(&mut self, graph: &Graph, at: u32, automaton: u64) -> Result<(), Limit> {
        let bytes = graph.bytes() + automaton;
        if self.limits.states.is_some_and(|most| graph.nodes.len() as u64 > most) {
            return Err(Limit::States);
        }
        if !at.is_multiple_of(64) {
            return if self.limits.bytes.is_some_and(|most| bytes > most) { Err(Limit::Memory) } else { Ok(()) };
        }
        if self.last_report.elapsed() > BETWEEN_PROGRESS {
            self.last_report = Instant::now();
            let (states, depth) = (graph.nodes.len() as u64, graph.depth(at));
            (self.progress)(Progress { states, depth, bytes, elapsed: self.started.elapsed() });
        }
        self.check(bytes)
    }

    /// Whether there is time left, and memory beside so many bytes.
    fn check(&self, bytes: u64) -> Result<(), Limit> {
        if self.limits.bytes.is_some_and(|most| bytes > most) {
            return Err(Limit::Memory);
        }
        if self.limits.is_interrupted() {
            return Err(Limit::Interrupted);
        }
        match self.limits.time {
            Some(most) if self.started.elapsed() > most => Err(Limit::Time),
            Some(_) | None => Ok(()),
        }
    }
}

/// Which moves have to be taken in the end by those who can take them all the time.
#[derive(Clone, Copy)]
enum FairnessScope {
    /// All: whoever waits for what is outside is kept waiting by nobody inside.
    AllInstances,
    /// What depends on what is outside need never happen: the world may send nothing more, and so may these instances,
    /// who stand for processes left out, and take nothing more. The world takes what it is sent.
    ExceptEnvironment(u128),
}

impl FairnessScope {
    fn except_environment(plan: &ExplorationPlan<'_>) -> FairnessScope {
        let is_outside = |slot: &usize| plan.model.roles[plan.process(*slot as u32).0 as usize] == Role::Outside;
        FairnessScope::ExceptEnvironment(
            (0..plan.instances).filter(is_outside).fold(0, |all, slot| all | instance_bit(slot)),
        )
    }

    /// Who can take a move of those found that has to be taken.
    fn must_move(self, generator: &SuccessorGenerator<'_>) -> u128 {
        let fairness = |step: Step| match (self, step) {
            (FairnessScope::ExceptEnvironment(_), Step::FromEnvironment { .. }) => 0,
            (FairnessScope::ExceptEnvironment(outside), step) if participant_set(step) & outside != 0 => 0,
            (FairnessScope::AllInstances | FairnessScope::ExceptEnvironment(_), step) => participant_set(step),
        };
        generator.enabled.iter().fold(0, |must_move, found| must_move | fairness(generator.get(*found).step))
    }
}

/// Which instances wait, in which of their parts of a state, though they may not do so for ever.
#[derive(Default)]
struct WaitCache(FxHashMap<(u32, u32), bool>);

impl WaitCache {
    fn among(&mut self, generator: &mut SuccessorGenerator<'_>, instances: Range<u32>, numbers: &[u32]) -> u128 {
        let mut waits = |slot: u32| {
            let component = numbers[slot as usize];
            *self.0.entry((slot, component)).or_insert_with(|| {
                generator.load(slot, component);
                let (machine, state, _) = generator.execution();
                let standing = machine.instance_view(state, slot);
                !standing.branches.is_empty() && standing.blocking == Blocking::Deadlock
            })
        };
        instances.fold(0, |all, slot| if waits(slot) { all | instance_bit(slot as usize) } else { all })
    }
}
