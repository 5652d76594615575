//! Runs that go on for ever: whether one contradicts a property, or leaves an instance waiting, though everybody who
//! can go on all the time does so in the end (weak fairness). Builds the graph of all states together with the
//! property's automaton and looks at its strongly connected components. Runs that end stay where they are for ever: where
//! nobody has to move in that state itself, where somebody ends the program in one that nothing leaves.

use crate::automaton::{Automaton, AutomatonStep};
use crate::formula::FormulaId;
use crate::moves::{MoveEnd, Mover};
use crate::options::{Compaction, Limit, Limits, Progress};
use crate::reduce::actors;
use crate::retrace::{Chosen, Goes, try_step_to};
use crate::search::BETWEEN_PROGRESS;
use crate::space::{MOST_IN_SETS, Space, bit};
use crate::store::{Added, Bundle, StateRef, Store, hash, signature};
use quaject_esp_exec::step::{Step, TooLarge};
use quaject_esp_ir::ir::Rest;
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
    pub(crate) steps: Vec<Chosen>,
    pub(crate) cycle: usize,
    pub(crate) starved: Option<u32>,
}

/// What a search for runs has come to.
pub(crate) enum Endless {
    None,
    Found(Lasso),
    Unfinished(Limit),
}

/// A state of the program and one of the automaton.
struct Node {
    state: StateRef,
    /// Who can go on here and has to in the end, and who waits though it may not do so for ever.
    able: u128,
    waiting: u128,
    edges: Range<u32>,
}

struct Edge {
    to: u32,
    actors: u128,
    /// What the automaton puts off.
    delay: u32,
}

struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    parents: Vec<u32>,
}

/// The steps that a run has to take: those from `cycle` on again and again, or, if it has none, any after them.
#[derive(Clone, Copy)]
pub(crate) struct Guide<'g> {
    pub(crate) steps: &'g [Step],
    pub(crate) cycle: Option<usize>,
}

impl Guide<'_> {
    /// No step has to be taken.
    pub(crate) const NONE: Guide<'static> = Guide { steps: &[], cycle: None };

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
    space: &Space<'_>,
    mut goal: Goal,
    guide: Guide<'_>,
    limits: &Limits,
    progress: &mut dyn FnMut(Progress),
) -> Result<Endless, TooLarge> {
    let mut mover = Mover::new(space)?;
    let started = Instant::now();
    mover.limit(limits, started);
    let store = Store::new(space.width + BESIDE, Compaction::Off, 1);
    let mut clock = Clock { limits, started, told: started, progress };
    let graph = match Graph::build(&mut mover, &store, &mut goal, guide, &mut clock) {
        Ok(graph) => graph,
        Err(limit) => return Ok(Endless::Unfinished(limit)),
    };
    // What was found is shown however long that takes.
    mover.limit(&Limits::default(), started);
    // Sets would not do for more.
    debug_assert!(space.instances <= MOST_IN_SETS);
    let everybody = if space.instances >= MOST_IN_SETS { u128::MAX } else { bit(space.instances) - 1 };
    let all = |_: &Edge| true;
    match &goal {
        Goal::Accepted(automaton) => {
            let delayed = |edge: &Edge| automaton.delayed(edge.delay);
            for component in graph.components(&all) {
                if graph.is_fair(&component, &all, everybody) && graph.is_accepted(&component, &delayed) {
                    let lasso = graph.lasso(&mut mover, &store, &component, &all, &delayed, everybody);
                    return Ok(Endless::Found(Lasso { starved: None, ..lasso }));
                }
            }
        }
        Goal::Starved(instances) => {
            for instance in instances.clone().map(|instance| instance as usize) {
                if graph.nodes.iter().all(|node| node.waiting & bit(instance) == 0) {
                    continue;
                }
                if let Err(limit) = clock.check(graph.bytes()) {
                    return Ok(Endless::Unfinished(limit));
                }
                let without = |edge: &Edge| edge.actors & bit(instance) == 0;
                for component in graph.components(&without) {
                    let waits = |node: &u32| graph.nodes[*node as usize].waiting & bit(instance) != 0;
                    // A run that stays in one state is one that has ended.
                    let moves = graph.inner(&component, &without).any(|edge| edge.actors != STILL);
                    if component.iter().all(waits) && moves && graph.is_fair(&component, &without, everybody) {
                        let lasso = graph.lasso(&mut mover, &store, &component, &without, &|_| &[], everybody);
                        return Ok(Endless::Found(Lasso { starved: Some(instance as u32), ..lasso }));
                    }
                }
            }
        }
    }
    Ok(Endless::None)
}

/// Standing still counts as a step of everybody.
const STILL: u128 = u128::MAX;

/// How many numbers of a node are not the program's state.
const BESIDE: usize = 2;

/// What a node is besides the program's state, as the last numbers of it in the store.
#[derive(Clone, Copy)]
struct Beside {
    /// The automaton's state.
    automaton: u32,
    /// Whether the program has ended in this state.
    over: bool,
    /// How many of the guide's steps have been taken.
    at: u32,
}

impl Beside {
    fn write(self, numbers: &mut [u32]) {
        numbers.copy_from_slice(&[self.automaton << 1 | u32::from(self.over), self.at]);
    }

    fn of(numbers: &[u32]) -> Beside {
        Beside { automaton: numbers[0] >> 1, over: numbers[0] & 1 == 1, at: numbers[1] }
    }
}

impl Graph {
    fn build(
        mover: &mut Mover<'_>,
        store: &Store,
        goal: &mut Goal,
        guide: Guide<'_>,
        clock: &mut Clock<'_>,
    ) -> Result<Graph, Limit> {
        let stays: Rc<[AutomatonStep]> = Rc::new([AutomatonStep { to: 0, delay: 0 }]);
        let width = mover.space.width;
        let mut graph = Graph { nodes: Vec::new(), edges: Vec::new(), parents: Vec::new() };
        let mut numbers_of: FxHashMap<StateRef, u32> = FxHashMap::default();
        let mut bundle = Bundle::default();
        let bound = match goal {
            Goal::Accepted(_) => Bound::but_outside(mover.space),
            Goal::Starved(_) => Bound::All,
        };
        let mut waiting = Waiting::default();
        let mut add = |graph: &mut Graph, numbers: &[u32], from: Option<u32>| -> Result<u32, Limit> {
            let parent = from.map(|from| graph.nodes[from as usize].state);
            match store.add(&mut bundle, parent, numbers, signature(hash(numbers))) {
                Added::New(state) => {
                    let node = graph.nodes.len() as u32;
                    numbers_of.insert(state, node);
                    graph.nodes.push(Node { state, able: 0, waiting: 0, edges: 0..0 });
                    graph.parents.push(from.unwrap_or(node));
                    Ok(node)
                }
                Added::Known(state) => Ok(numbers_of[&state]),
                Added::Full => Err(Limit::Memory),
            }
        };
        let mut start = mover.start();
        start.resize(width + BESIDE, 0);
        add(&mut graph, &start, None)?;
        let (mut numbers, mut reached) = (vec![0; width + BESIDE], vec![0; width + BESIDE]);
        let mut at = 0;
        while at < graph.nodes.len() {
            store.read(graph.nodes[at].state, &mut numbers);
            let here = Beside::of(&numbers[width..]);
            let steps = match goal {
                Goal::Accepted(automaton) => {
                    clock.tick(&graph, at as u32, automaton.bytes())?;
                    let atoms = mover.atoms(&numbers[..width]);
                    let bytes = graph.bytes();
                    automaton.steps(here.automaton, atoms, &mut |own| clock.check(bytes + own))?
                }
                Goal::Starved(_) => {
                    clock.tick(&graph, at as u32, 0)?;
                    Rc::clone(&stays)
                }
            };
            if !here.over {
                mover.find(&numbers[..width]);
            }
            let able = if here.over { 0 } else { bound.able(mover) };
            if let Some(limit) = mover.cut {
                return Err(limit);
            }
            let base = hash(&numbers[..width]);
            let first = graph.edges.len() as u32;
            let found = if here.over { 0 } else { mover.found.len() };
            for index in 0..found {
                let found = mover.found[index];
                if !guide.allows(here.at, mover.get(found).step) {
                    continue;
                }
                // A run that goes on from here must not be taken for one that ends: the end is a node of its own.
                let over = !matches!(mover.get(found).end, MoveEnd::Goes);
                let actors = actors(mover.get(found).step);
                mover.apply(found, &numbers[..width], base, &mut reached[..width]);
                for step in steps.iter() {
                    let beside = Beside { automaton: step.to, over, at: guide.after(here.at) };
                    beside.write(&mut reached[width..]);
                    let to = add(&mut graph, &reached, Some(at as u32))?;
                    graph.edges.push(Edge { to, actors, delay: step.delay });
                }
            }
            // Where nobody has to go on, everything may rest for ever.
            if able == 0 && (here.over || guide.may_rest(here.at)) {
                reached.copy_from_slice(&numbers);
                for step in steps.iter() {
                    Beside { automaton: step.to, ..here }.write(&mut reached[width..]);
                    let to = add(&mut graph, &reached, Some(at as u32))?;
                    graph.edges.push(Edge { to, actors: STILL, delay: step.delay });
                }
            }
            let waiting = match goal {
                Goal::Starved(instances) if !here.over => waiting.among(mover, instances.clone(), &numbers),
                Goal::Starved(_) | Goal::Accepted(_) => 0,
            };
            let node = &mut graph.nodes[at];
            node.able = able;
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
    fn components(&self, keep: &dyn Fn(&Edge) -> bool) -> Vec<Vec<u32>> {
        let count = self.nodes.len();
        let mut index = vec![u32::MAX; count];
        let mut low = vec![0u32; count];
        let mut on_stack = vec![false; count];
        let (mut stack, mut path, mut found) = (Vec::new(), Vec::<(u32, usize)>::new(), Vec::new());
        let mut next = 0;
        for root in 0..count as u32 {
            if index[root as usize] != u32::MAX {
                continue;
            }
            path.push((root, 0));
            while let Some((node, position)) = path.last_mut() {
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
                            path.push((edge.to, 0));
                        } else if on_stack[to] {
                            low[at] = low[at].min(index[to]);
                        }
                    }
                    None => {
                        path.pop();
                        if let Some((above, _)) = path.last() {
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
    fn is_fair(&self, component: &[u32], keep: &dyn Fn(&Edge) -> bool, everybody: u128) -> bool {
        let acting = self.inner(component, keep).fold(0, |all, edge| all | edge.actors);
        let unable = component.iter().fold(0, |all, node| all | !self.nodes[*node as usize].able);
        (acting | unable) & everybody == everybody
    }

    /// Whether none of the automaton's goals is put off by every edge in it.
    fn is_accepted<'a>(&self, component: &[u32], delayed: &dyn Fn(&Edge) -> &'a [FormulaId]) -> bool {
        let mut edges = self.inner(component, &|_| true);
        let Some(first) = edges.next() else { return false };
        let mut open = delayed(first).to_vec();
        edges.all(|edge| {
            open.retain(|goal| delayed(edge).contains(goal));
            !open.is_empty()
        });
        open.is_empty()
    }

    /// A run into a component and round in it, past everything that makes it fair and accepted.
    fn lasso<'a>(
        &self,
        mover: &mut Mover<'_>,
        store: &Store,
        component: &[u32],
        keep: &dyn Fn(&Edge) -> bool,
        delayed: &dyn Fn(&Edge) -> &'a [FormulaId],
        everybody: u128,
    ) -> Lasso {
        let entry = component.iter().min().copied().expect("a component has a node");
        let mut way = vec![entry];
        while let Some(last) = way.last().copied().filter(|last| self.parents[*last as usize] != *last) {
            way.push(self.parents[last as usize]);
        }
        way.reverse();
        let cycle = way.len() - 1;
        // The goals that every edge so far has put off.
        let mut open: Vec<FormulaId> = self.inner(component, keep).flat_map(delayed).copied().collect();
        open.sort_unstable();
        open.dedup();
        let mut fair = everybody;
        loop {
            let at = way[way.len() - 1];
            fair &= self.nodes[at as usize].able;
            let first = way.len() == cycle + 1;
            if open.is_empty() && fair == 0 && at == entry && !first {
                break;
            }
            let wanted = |edge: &Edge| {
                if open.is_empty() && fair == 0 {
                    return edge.to == entry;
                }
                edge.actors & fair != 0
                    || !self.nodes[edge.to as usize].able & fair != 0
                    || open.iter().any(|goal| !delayed(edge).contains(goal))
            };
            for edge in self.path(at, component, keep, &wanted) {
                fair &= !edge.actors & self.nodes[edge.to as usize].able;
                open.retain(|goal| delayed(edge).contains(goal));
                way.push(edge.to);
            }
        }
        self.steps(mover, store, &way, cycle)
    }

    /// The shortest way within a component to and over an edge that is wanted.
    fn path(
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
    fn steps(&self, mover: &mut Mover<'_>, store: &Store, way: &[u32], cycle: usize) -> Lasso {
        let width = mover.space.width;
        let mut numbers = vec![0; width + BESIDE];
        let mut wanted = vec![0; width + BESIDE];
        let mut steps = Vec::new();
        let mut start = 0;
        for (position, pair) in way.windows(2).enumerate() {
            if position == cycle {
                start = steps.len();
            }
            store.read(self.nodes[pair[0] as usize].state, &mut numbers);
            store.read(self.nodes[pair[1] as usize].state, &mut wanted);
            let mut from = numbers[..width].to_vec();
            if Beside::of(&numbers[width..]).over {
                // Nothing happens any more.
                continue;
            }
            let goes = if Beside::of(&wanted[width..]).over { Goes::Over } else { Goes::On };
            try_step_to(mover, &mut from, &mut steps, goes, &|reached| reached == &wanted[..width]);
        }
        Lasso { cycle: start.min(steps.len()), steps, starved: None }
    }
}

/// Where a search ends even if there is more, and whom to tell how far it is.
struct Clock<'c> {
    limits: &'c Limits,
    started: Instant,
    told: Instant,
    progress: &'c mut dyn FnMut(Progress),
}

impl Clock<'_> {
    /// Before a node is looked at.
    fn tick(&mut self, graph: &Graph, at: u32, automaton: u64) -> Result<(), Limit> {
        let bytes = graph.bytes() + automaton;
        if self.limits.states.is_some_and(|most| graph.nodes.len() as u64 > most) {
            return Err(Limit::States);
        }
        if !at.is_multiple_of(64) {
            return if self.limits.bytes.is_some_and(|most| bytes > most) { Err(Limit::Memory) } else { Ok(()) };
        }
        if self.told.elapsed() > BETWEEN_PROGRESS {
            self.told = Instant::now();
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
enum Bound {
    /// All: whoever waits for what is outside is kept waiting by nobody inside.
    All,
    /// What depends on what is outside need never happen: the world may send nothing more, and so may these instances,
    /// who stand for processes left out, and take nothing more. The world takes what it is sent.
    ButOutside(u128),
}

impl Bound {
    fn but_outside(space: &Space<'_>) -> Bound {
        let is_outside = |slot: &usize| space.model.roles[space.process(*slot as u32).0 as usize] == Role::Outside;
        Bound::ButOutside((0..space.instances).filter(is_outside).fold(0, |all, slot| all | bit(slot)))
    }

    /// Who can take a move of those found that has to be taken.
    fn able(self, mover: &Mover<'_>) -> u128 {
        let bound = |step: Step| match (self, step) {
            (Bound::ButOutside(_), Step::FromWorld { .. }) => 0,
            (Bound::ButOutside(outside), step) if actors(step) & outside != 0 => 0,
            (Bound::All | Bound::ButOutside(_), step) => actors(step),
        };
        mover.found.iter().fold(0, |able, found| able | bound(mover.get(*found).step))
    }
}

/// Which instances wait, in which of their parts of a state, though they may not do so for ever.
#[derive(Default)]
struct Waiting(FxHashMap<(u32, u32), bool>);

impl Waiting {
    fn among(&mut self, mover: &mut Mover<'_>, instances: Range<u32>, numbers: &[u32]) -> u128 {
        let mut waits = |slot: u32| {
            let part = numbers[slot as usize];
            *self.0.entry((slot, part)).or_insert_with(|| {
                mover.load(slot, part);
                let (machine, state, _) = mover.scene();
                let standing = machine.standing(state, slot);
                !standing.branches.is_empty() && standing.rest == Rest::Stuck
            })
        };
        instances.fold(0, |all, slot| if waits(slot) { all | bit(slot as usize) } else { all })
    }
}
