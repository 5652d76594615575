//! Runs that go on for ever: whether one contradicts a property, or leaves an instance waiting, though everybody who
//! can go on all the time does so in the end (weak fairness). Builds the graph of all states together with the
//! property's automaton and looks at its strongly connected components. Runs that end stay where they are for ever.

use crate::automaton::Automaton;
use crate::moves::{MoveEnd, Mover};
use crate::options::{Compaction, Limit, Limits};
use crate::reduce::actors;
use crate::retrace::Chosen;
use crate::space::{MOST_IN_SETS, Space, bit};
use crate::store::{Added, Pen, StateRef, Store, hash, hash_of};
use quaject_esp_ir::ir::Rest;
use quaject_esp_ir::step::TooLarge;
use rustc_hash::FxHashMap;
use std::time::Instant;

/// What is looked for.
pub(crate) enum Goal<'a> {
    /// A run that the automaton accepts.
    Accepted(&'a Automaton),
    /// A run on which an instance waits for ever where it may not.
    Starved,
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
    /// Who can go on here, and who waits though it may not do so for ever.
    able: u128,
    waiting: u128,
    accepts: u64,
    edges: std::ops::Range<u32>,
}

struct Edge {
    to: u32,
    actors: u128,
}

struct Graph {
    nodes: Vec<Node>,
    edges: Vec<Edge>,
    parents: Vec<u32>,
}

/// Looks for a run.
pub(crate) fn search(space: &Space<'_>, goal: &Goal<'_>, limits: &Limits) -> Result<Endless, TooLarge> {
    let mut mover = Mover::new(space)?;
    let started = Instant::now();
    mover.limit(limits, started);
    let store = Store::new(space.width + 1, Compaction::Off);
    let graph = match Graph::build(&mut mover, &store, goal, limits, started) {
        Ok(graph) => graph,
        Err(limit) => return Ok(Endless::Unfinished(limit)),
    };
    // What was found is shown however long that takes.
    mover.limit(&Limits::default(), started);
    let everybody = if space.instances >= MOST_IN_SETS { u128::MAX } else { bit(space.instances) - 1 };
    let all = |_: &Edge| true;
    match goal {
        Goal::Accepted(automaton) => {
            let sets = if automaton.sets == 64 { u64::MAX } else { (1 << automaton.sets) - 1 };
            for component in graph.components(&all) {
                if graph.is_fair(&component, &all, everybody) && graph.accepts(&component) & sets == sets {
                    let lasso = graph.lasso(&mut mover, &store, &component, &all, sets, everybody);
                    return Ok(Endless::Found(Lasso { starved: None, ..lasso }));
                }
            }
        }
        Goal::Starved => {
            for instance in 0..space.instances.min(MOST_IN_SETS) {
                if graph.nodes.iter().all(|node| node.waiting & bit(instance) == 0) {
                    continue;
                }
                let without = |edge: &Edge| edge.actors & bit(instance) == 0;
                for component in graph.components(&without) {
                    let waits = |node: &u32| graph.nodes[*node as usize].waiting & bit(instance) != 0;
                    // A run that stays in one state is one that has ended.
                    let moves = graph.inner(&component, &without).any(|edge| edge.actors != STILL);
                    if component.iter().all(waits) && moves && graph.is_fair(&component, &without, everybody) {
                        let lasso = graph.lasso(&mut mover, &store, &component, &without, 0, everybody);
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

impl Graph {
    fn build(
        mover: &mut Mover<'_>,
        store: &Store,
        goal: &Goal<'_>,
        limits: &Limits,
        started: Instant,
    ) -> Result<Graph, Limit> {
        let single = [0u32];
        let next = |state: u32| match goal {
            Goal::Accepted(automaton) => &automaton.states[state as usize].next[..],
            Goal::Starved => &single[..],
        };
        let allows = |mover: &mut Mover<'_>, state: u32, numbers: &[u32]| match goal {
            Goal::Accepted(automaton) => automaton.states[state as usize].allows(mover.atoms(numbers)),
            Goal::Starved => true,
        };
        let accepts = |state: u32| match goal {
            Goal::Accepted(automaton) => automaton.states[state as usize].accepts,
            Goal::Starved => 0,
        };
        let width = mover.space.width;
        let mut graph = Graph { nodes: Vec::new(), edges: Vec::new(), parents: Vec::new() };
        let mut numbers_of: FxHashMap<StateRef, u32> = FxHashMap::default();
        let mut pen = Pen::default();
        let mut book = store.open();
        let mut add = |graph: &mut Graph, numbers: &[u32], from: Option<u32>| -> Result<u32, Limit> {
            let parent = from.map(|from| graph.nodes[from as usize].state);
            match book.add(&mut pen, parent, numbers, hash(numbers)) {
                Added::New(state) => {
                    let node = graph.nodes.len() as u32;
                    numbers_of.insert(state, node);
                    let accepts = accepts(numbers[width]);
                    graph.nodes.push(Node { state, able: 0, waiting: 0, accepts, edges: 0..0 });
                    graph.parents.push(from.unwrap_or(node));
                    Ok(node)
                }
                Added::Known(state) => Ok(numbers_of[&state]),
                Added::Full => Err(Limit::Memory),
            }
        };
        let mut start = mover.start();
        start.push(0);
        for state in next(0) {
            if allows(mover, *state, &start[..width]) {
                start[width] = *state;
                add(&mut graph, &start, None)?;
            }
        }
        let (mut numbers, mut reached) = (vec![0; width + 1], vec![0; width + 1]);
        let mut at = 0;
        while at < graph.nodes.len() {
            check_limits(limits, &graph, started)?;
            store.read(graph.nodes[at].state, &mut numbers);
            let (able, waiting) = mover.look(&numbers[..width]);
            if let Some(limit) = mover.cut {
                return Err(limit);
            }
            let base = hash(&numbers[..width]);
            let first = graph.edges.len() as u32;
            let mut still = mover.found.is_empty();
            for index in 0..mover.found.len() {
                let found = mover.found[index];
                match &mover.get(found).end {
                    MoveEnd::Goes => {}
                    // The run ends here, and stays.
                    MoveEnd::Exits | MoveEnd::Fails(_) | MoveEnd::Endless(_) => {
                        still = true;
                        continue;
                    }
                }
                let actors = actors(mover.get(found).step);
                mover.apply(found, &numbers[..width], base, &mut reached[..width]);
                for state in next(numbers[width]) {
                    if allows(mover, *state, &reached[..width]) {
                        reached[width] = *state;
                        let to = add(&mut graph, &reached, Some(at as u32))?;
                        graph.edges.push(Edge { to, actors });
                    }
                }
            }
            if still {
                reached.copy_from_slice(&numbers);
                for state in next(numbers[width]) {
                    if allows(mover, *state, &reached[..width]) {
                        reached[width] = *state;
                        let to = add(&mut graph, &reached, Some(at as u32))?;
                        graph.edges.push(Edge { to, actors: STILL });
                    }
                }
            }
            let node = &mut graph.nodes[at];
            node.able = able;
            node.waiting = waiting;
            node.edges = first..graph.edges.len() as u32;
            at += 1;
        }
        debug_assert_eq!(hash(&numbers[..width]).wrapping_add(hash_of(width, numbers[width])), hash(&numbers));
        Ok(graph)
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

    fn accepts(&self, component: &[u32]) -> u64 {
        component.iter().fold(0, |all, node| all | self.nodes[*node as usize].accepts)
    }

    /// A run into a component and round in it, past everything that makes it fair and accepted.
    fn lasso(
        &self,
        mover: &mut Mover<'_>,
        store: &Store,
        component: &[u32],
        keep: &dyn Fn(&Edge) -> bool,
        sets: u64,
        everybody: u128,
    ) -> Lasso {
        let entry = component.iter().min().copied().expect("a component has a node");
        let mut way = vec![entry];
        while let Some(last) = way.last().copied().filter(|last| self.parents[*last as usize] != *last) {
            way.push(self.parents[last as usize]);
        }
        way.reverse();
        let cycle = way.len() - 1;
        let (mut sets, mut fair) = (sets, everybody);
        loop {
            let at = way[way.len() - 1];
            sets &= !self.nodes[at as usize].accepts;
            fair &= self.nodes[at as usize].able;
            let first = way.len() == cycle + 1;
            if sets == 0 && fair == 0 && at == entry && !first {
                break;
            }
            let wanted = |edge: &Edge| {
                if sets == 0 && fair == 0 {
                    return edge.to == entry;
                }
                let target = &self.nodes[edge.to as usize];
                edge.actors & fair != 0 || target.accepts & sets != 0 || !target.able & fair != 0
            };
            let part = self.path(at, component, keep, &wanted);
            for (node, actors) in part {
                fair &= !actors & self.nodes[node as usize].able;
                sets &= !self.nodes[node as usize].accepts;
                way.push(node);
            }
        }
        self.steps(mover, store, &way, cycle)
    }

    /// The shortest way within a component over an edge that is wanted: nodes, and who acts on the way to each.
    fn path(
        &self,
        from: u32,
        component: &[u32],
        keep: &dyn Fn(&Edge) -> bool,
        wanted: &dyn Fn(&Edge) -> bool,
    ) -> Vec<(u32, u128)> {
        let members: rustc_hash::FxHashSet<u32> = component.iter().copied().collect();
        let mut reached: FxHashMap<u32, (u32, u128)> = FxHashMap::default();
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for edge in self.edges_of(node).iter().filter(|edge| keep(edge) && members.contains(&edge.to)) {
                if wanted(edge) {
                    let mut back = vec![(edge.to, edge.actors)];
                    let mut at = node;
                    while at != from {
                        let (before, actors) = reached[&at];
                        back.push((at, actors));
                        at = before;
                    }
                    back.reverse();
                    return back;
                }
                if edge.to != from && !reached.contains_key(&edge.to) {
                    reached.insert(edge.to, (node, edge.actors));
                    queue.push_back(edge.to);
                }
            }
        }
        unreachable!("a component is strongly connected and holds what makes it fair")
    }

    /// The steps along nodes.
    fn steps(&self, mover: &mut Mover<'_>, store: &Store, way: &[u32], cycle: usize) -> Lasso {
        let width = mover.space.width;
        let mut numbers = vec![0; width + 1];
        let mut wanted = vec![0; width + 1];
        let mut steps = Vec::new();
        let mut start = 0;
        for (position, pair) in way.windows(2).enumerate() {
            if position == cycle {
                start = steps.len();
            }
            store.read(self.nodes[pair[0] as usize].state, &mut numbers);
            store.read(self.nodes[pair[1] as usize].state, &mut wanted);
            let mut from = numbers[..width].to_vec();
            crate::retrace::try_step_to(mover, &mut from, &mut steps, &|reached| reached == &wanted[..width]);
        }
        Lasso { cycle: start.min(steps.len()), steps, starved: None }
    }
}

fn check_limits(limits: &Limits, graph: &Graph, started: Instant) -> Result<(), Limit> {
    let bytes = graph.nodes.len() * 100 + graph.edges.len() * std::mem::size_of::<Edge>();
    if limits.states.is_some_and(|most| graph.nodes.len() as u64 > most) {
        return Err(Limit::States);
    }
    if limits.bytes.is_some_and(|most| bytes as u64 > most) {
        return Err(Limit::Memory);
    }
    if graph.nodes.len().is_multiple_of(256) && limits.time.is_some_and(|most| started.elapsed() > most) {
        return Err(Limit::Time);
    }
    Ok(())
}

impl Mover<'_> {
    /// Finds the moves of a state; who can take one, and who waits though it may not do so for ever.
    pub(crate) fn look(&mut self, numbers: &[u32]) -> (u128, u128) {
        self.find(numbers);
        let able = self.found.iter().fold(0, |able, found| able | actors(self.get(*found).step));
        let mut waiting = 0;
        self.load_all(numbers);
        for instance in 0..self.space.instances as u32 {
            let (machine, state, _) = self.scene();
            let standing = machine.standing(state, instance);
            if !standing.branches.is_empty() && standing.rest == Rest::Stuck {
                waiting |= bit(instance as usize);
            }
        }
        (able, waiting)
    }
}
