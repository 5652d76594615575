//! Nodes of the product and the search over them: how many versions of a place are kept apart, when it is given up,
//! and whether everybody who can go on does. Knows no instructions.

mod components;

use super::course::{Course, Followed, NodeEnd, Progress};
use super::group::Group;
use super::path::Path;
use super::residue::Residue;
use super::state::{At, Detail, Key, Known, MemberState, Standing, State};
use crate::facts::Fact;
use crate::fuse::{Limits, Measure, Refusal};
use crate::path::{Exit, Point};
use crate::ranges::ranges;
use components::components;
use quaject_esp_ir::ir::{BlockId, Body, Edge, Location, Op, ProcessId, Slot, SlotId, Terminator, TypeTable, Value};
use rustc_hash::{FxHashMap, FxHashSet, FxHasher};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{Hash, Hasher};

/// How many versions of one place are kept apart in full, and by flags.
const FULL_VERSIONS: usize = 8;
const FLAG_VERSIONS: usize = 32;

/// What is known of live values of members.
type Facts = BTreeMap<(usize, Value), Fact>;

/// What an exploration gave.
pub(crate) struct Product {
    /// The fused body, as it was emitted.
    pub(crate) body: Body,
    /// Nodes it was made of.
    pub(crate) nodes: usize,
    /// The process without which there would be fewest nodes, if the group has several.
    pub(crate) costliest: Option<ProcessId>,
}

/// The search.
pub(super) struct Explorer<'g, 'p> {
    pub(super) group: &'g Group<'p>,
    pub(super) out: Residue,
    limits: Limits,
    /// What is left of the work that may be done.
    effort: usize,
    nodes: FxHashMap<Key, usize>,
    list: Vec<Node>,
    work: Vec<usize>,
    /// The node whose paths are walked; none before the first.
    current: Option<usize>,
    versions: FxHashMap<Standing, usize>,
    pub(super) learned: Learned,
    /// Per place: its nodes.
    at: FxHashMap<Standing, Vec<usize>>,
    /// Whether a place got less detail in this round, so that the next one starts anew.
    is_outdated: bool,
    /// The fast path that is followed; none for a whole product.
    pub(super) course: Option<&'g Course>,
    /// Of a fast path: where it is left, where members stood, whether it made a choice.
    pub(super) exits: BTreeSet<Exit>,
    pub(super) states: BTreeSet<Vec<Location>>,
    pub(super) has_choice: bool,
    /// Of a fast path: the statements that words went on with, by member, and those that they ended at.
    pub(super) spelled: BTreeSet<(usize, Point)>,
    pub(super) ended: BTreeSet<(usize, Point)>,
}

/// What a round has found out for the next.
#[derive(Default)]
pub(super) struct Learned {
    details: FxHashMap<Standing, Detail>,
    /// Per place: what its versions are at least widened to, so that counters do not make versions.
    floors: FxHashMap<Standing, Facts>,
    /// Per place: whom it serves first, so that others do not pass them by for ever.
    pub(super) preferred: FxHashMap<Standing, BTreeSet<usize>>,
}

struct Node {
    key: Key,
    block: BlockId,
    parameters: Vec<Value>,
    /// Which live value of which member each parameter is.
    origins: Vec<(usize, Value)>,
    /// The values that are no parameters.
    constants: Vec<(usize, Value, i128)>,
    /// Members that could go on here.
    enabled: BTreeSet<usize>,
    /// Members that wait for the world here.
    outside: BTreeSet<usize>,
    edges: Vec<Passage>,
    /// On a fast path: the parameter that counts iterations.
    count: Option<Value>,
}

impl Node {
    fn is_settled(&self) -> bool {
        self.key.place.members.iter().all(|(at, _)| !matches!(at, At::Running(_)))
    }
}

/// A way from one node to another.
struct Passage {
    to: usize,
    /// Whether everybody waits for the world on it.
    has_rested: bool,
    moved: BTreeSet<usize>,
    polled: BTreeSet<usize>,
}

/// Explores the product of a group. `effort` is what is left of it.
pub(crate) fn explore(group: &Group<'_>, limits: Limits, effort: &mut usize) -> Result<Product, Refusal> {
    let mut learned = Learned::default();
    loop {
        let mut explorer = Explorer::new(group, None, limits, learned);
        explorer.effort = *effort;
        let explored = explorer.explore();
        *effort = explorer.left();
        explored.map_err(|refusal| match refusal {
            Refusal::TooLarge { measure, limit, costliest: _ } => {
                Refusal::TooLarge { measure, limit, costliest: explorer.costliest() }
            }
            Refusal::Shared { .. }
            | Refusal::Unsupported { .. }
            | Refusal::Fused { .. }
            | Refusal::Manual { .. }
            | Refusal::PassedBy { .. }
            | Refusal::Starves { .. } => refusal,
        })?;
        if explorer.is_outdated {
            learned = explorer.learned;
            continue;
        }
        let starving = explorer.starving();
        if !starving.is_empty() {
            learned = explorer.learned;
            for (place, member) in starving {
                if !learned.preferred.entry(place).or_default().insert(member) {
                    return Err(Refusal::Starves { process: group.members[member].process });
                }
            }
            continue;
        }
        if group.has_others {
            explorer.let_others_run();
        }
        let costliest = explorer.costliest();
        return Ok(Product { nodes: explorer.list.len(), body: explorer.out.body, costliest });
    }
}

/// Explores the product of a group along a fast path. Ends within the limits' effort.
pub(crate) fn follow(group: &Group<'_>, course: &Course, limits: Limits) -> Result<Followed, Refusal> {
    let (mut learned, mut effort) = (Learned::default(), limits.effort);
    loop {
        let mut explorer = Explorer::new(group, Some(course), limits, learned);
        explorer.effort = effort;
        explorer.check_size()?;
        let (first_count, given) = explorer.start(course)?;
        effort = explorer.left();
        if explorer.is_outdated {
            learned = explorer.learned;
            continue;
        }
        let ends = (0..explorer.list.len()).map(|node| explorer.node_end(node, first_count)).collect();
        let unreached = course.unreached(&explorer.spelled, &explorer.ended);
        return Ok(Followed {
            unreached,
            nodes: explorer.list.len(),
            body: explorer.out.body,
            given,
            ends,
            exits: explorer.exits.into_iter().collect(),
            states: explorer.states.into_iter().collect(),
            has_choice: explorer.has_choice,
        });
    }
}

fn slots(group: &Group<'_>) -> Vec<Slot> {
    group.members.iter().flat_map(|member| member.body.slots.iter().cloned()).collect()
}

impl<'g, 'p> Explorer<'g, 'p> {
    fn new(group: &'g Group<'p>, course: Option<&'g Course>, limits: Limits, learned: Learned) -> Explorer<'g, 'p> {
        Explorer {
            group,
            out: Residue::new(slots(group)),
            limits,
            effort: usize::MAX,
            nodes: FxHashMap::default(),
            list: Vec::new(),
            work: Vec::new(),
            current: None,
            versions: FxHashMap::default(),
            learned,
            at: FxHashMap::default(),
            is_outdated: false,
            course,
            exits: BTreeSet::new(),
            states: BTreeSet::new(),
            has_choice: false,
            spelled: BTreeSet::new(),
            ended: BTreeSet::new(),
        }
    }

    /// Explores along a fast path. The entry block takes the members' values in order; the constant in it that the
    /// count of iterations begins with, and what is always so of those values.
    fn start(&mut self, course: &Course) -> Result<(Value, Vec<Option<Fact>>), Refusal> {
        let (mut members, mut parameters, mut facts) = (Vec::new(), Vec::new(), BTreeMap::new());
        for (number, member) in self.group.members.iter().enumerate() {
            let (block, _) = course.start(number);
            let at = if number == 0 { At::Running(block) } else { At::Waiting(block) };
            let mut values = BTreeMap::new();
            let ranges = ranges(member.body, self.group.types(), self.group.checked, &[]);
            for value in &member.live[block.0 as usize].values {
                let data = &member.body.values[value.0 as usize];
                let parameter = self.out.value(data.ty, data.name.clone());
                parameters.push(parameter);
                facts.extend(ranges[value.0 as usize].clone().map(|fact| (parameter, fact)));
                values.insert(*value, Known::Value(parameter));
            }
            members.push(MemberState { at, values, last: BTreeMap::new() });
        }
        let given = parameters.iter().map(|parameter| facts.get(parameter).cloned()).collect();
        let entry = self.out.block(parameters);
        let count = self.out.value(TypeTable::U32, None);
        self.out.emit(entry, Some(count), Op::Constant(0), Location::default());
        let progress = Progress::new(members.len());
        self.go_to_node(Path {
            block: entry,
            state: State { progress, facts, count: Some(count), ..State::new(members) },
        })?;
        self.walk()?;
        Ok((count, given))
    }

    /// How a node is left if it was reached too often.
    fn node_end(&mut self, node: usize, first_count: Value) -> NodeEnd {
        let mut path = self.enter(node);
        path.block = self.out.block(Vec::new());
        let order: Vec<usize> = path.state.progress.order(self.group.members.len());
        let at = self.places(&path);
        let terminator = self.leaving(&mut path, &order);
        self.out.finish(path.block, terminator, Location::default());
        let Node { block, count, .. } = &self.list[node];
        let count = count.expect("nodes of a path count");
        NodeEnd { block: *block, count, stub: path.block, first_count, at }
    }

    fn explore(&mut self) -> Result<(), Refusal> {
        let entry = self.out.block(Vec::new());
        let member = MemberState { at: At::Running(BlockId(0)), values: BTreeMap::new(), last: BTreeMap::new() };
        let state = State::new(vec![member; self.group.members.len()]);
        self.go_to_node(Path { block: entry, state })?;
        self.walk()
    }

    /// Walks the paths of every node that has not been walked.
    fn walk(&mut self) -> Result<(), Refusal> {
        while let Some(node) = self.work.pop() {
            self.current = Some(node);
            let path = self.enter(node);
            self.resume(path)?;
            if self.is_outdated {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The state at the beginning of a node.
    fn enter(&self, node: usize) -> Path {
        let Node { key, block, parameters, origins, constants, count, .. } = &self.list[node];
        let mut facts = BTreeMap::new();
        let mut members: Vec<MemberState> = key
            .place
            .members
            .iter()
            .map(|(at, last)| MemberState { at: *at, values: BTreeMap::new(), last: last.clone() })
            .collect();
        for (parameter, origin) in parameters.iter().zip(origins) {
            members[origin.0].values.insert(origin.1, Known::Value(*parameter));
            if let Some(fact) = key.facts.get(origin) {
                facts.insert(*parameter, fact.clone());
            }
        }
        for (member, value, constant) in constants {
            members[*member].values.insert(*value, Known::Constant(*constant));
        }
        let (tags, refuted, progress) = (key.tags.clone(), key.refuted.clone(), key.place.progress.clone());
        let state = State { facts, tags, refuted, progress, count: *count, ..State::new(members) };
        Path { block: *block, state }
    }

    /// Runs the member that is furthest downstream; when all wait, they meet.
    fn resume(&mut self, path: Path) -> Result<(), Refusal> {
        if self.course.is_some() {
            return self.proceed(path);
        }
        match runner(&path.state) {
            Some((member, block)) => self.run(path, member, block),
            None => {
                let outside: Vec<usize> =
                    (0..self.group.members.len()).filter(|member| !self.outside(&path, *member).is_empty()).collect();
                if let Some(current) = self.current {
                    self.list[current].outside.extend(outside);
                }
                self.settle(path)
            }
        }
    }

    /// Goes on after a member came to rest.
    pub(super) fn go_on(&mut self, path: Path) -> Result<(), Refusal> {
        if self.course.is_some() {
            return self.proceed(path);
        }
        match runner(&path.state) {
            Some((member, block)) => self.run(path, member, block),
            None => self.go_to_node(path),
        }
    }

    /// Ends a path at the node of its state.
    pub(super) fn go_to_node(&mut self, mut path: Path) -> Result<(), Refusal> {
        if self.is_outdated {
            return Ok(());
        }
        let mut key =
            path.state.key(self.group, |place| self.learned.details.get(place).copied().unwrap_or(Detail::Full));
        if let Some(floor) = self.learned.floors.get(&key.place) {
            for (origin, wide) in floor {
                if let Some(fact) = key.facts.get(origin)
                    && fact.implies(wide)
                    && !self.group.is_kept(*origin, fact)
                {
                    key.facts.insert(*origin, wide.clone());
                    if *wide == self.whole(*origin) {
                        key.facts.remove(origin);
                    }
                }
            }
        }
        let node = match self.nodes.get(&key) {
            Some(node) => *node,
            None => self.new_node(&path.state, key)?,
        };
        let (block, origins) = (self.list[node].block, self.list[node].origins.clone());
        let mut arguments: Vec<Value> =
            origins.into_iter().map(|(member, value)| self.value(&mut path, member, value)).collect();
        arguments.extend(path.state.count);
        self.out.finish(path.block, Terminator::Jump(Edge { to: block, arguments }), Location::default());
        let State { moved, polled, has_rested, .. } = path.state;
        let passage = Passage { to: node, has_rested, moved, polled };
        if let Some(current) = self.current {
            self.list[current].edges.push(passage);
        }
        Ok(())
    }

    fn new_node(&mut self, state: &State, key: Key) -> Result<usize, Refusal> {
        self.widen(&key);
        let versions = self.versions.entry(key.place.clone()).or_insert(0);
        *versions += 1;
        let detail = self.learned.details.get(&key.place).copied().unwrap_or(Detail::Full);
        let coarser = match detail {
            Detail::Full if *versions > FULL_VERSIONS => Some(Detail::Flags),
            Detail::Flags if *versions > FLAG_VERSIONS => Some(Detail::None),
            Detail::Full | Detail::Flags | Detail::None => None,
        };
        if let Some(coarser) = coarser {
            self.learned.details.insert(key.place.clone(), coarser);
            self.is_outdated = true;
        }
        if self.list.len() >= self.limits.nodes {
            return Err(too_large(Measure::States, self.limits.nodes));
        }
        let mut parameters = Vec::new();
        let mut origins = Vec::new();
        let mut constants = Vec::new();
        for (index, member) in state.members.iter().enumerate() {
            for value in member.values.keys() {
                match key.facts.get(&(index, *value)).and_then(Fact::as_constant) {
                    Some(constant) => constants.push((index, *value, constant)),
                    None => {
                        let data = &self.group.members[index].body.values[value.0 as usize];
                        parameters.push(self.out.value(data.ty, data.name.clone()));
                        origins.push((index, *value));
                    }
                }
            }
        }
        let count = self.course.map(|_| self.out.value(TypeTable::U32, None));
        let block = self.out.block(parameters.iter().copied().chain(count).collect());
        let node = self.list.len();
        self.at.entry(key.place.clone()).or_default().push(node);
        self.nodes.insert(key.clone(), node);
        self.list.push(Node {
            key,
            block,
            parameters,
            origins,
            constants,
            enabled: BTreeSet::new(),
            outside: BTreeSet::new(),
            edges: Vec::new(),
            count,
        });
        self.work.push(node);
        Ok(node)
    }

    /// Where a new version says no more than an older one, but for wider ranges, the older one was in vain: both are
    /// widened to the new one from the next round on.
    fn widen(&mut self, key: &Key) {
        let Some(nodes) = self.at.get(&key.place) else { return };
        let mut floor = Facts::new();
        for node in nodes {
            let old = &self.list[*node].key;
            let same = old.tags == key.tags && old.refuted == key.refuted;
            let wider = |(origin, fact): (&(usize, Value), &Fact)| {
                let new = key.facts.get(origin).cloned().unwrap_or_else(|| self.whole(*origin));
                (*fact == new || fact.implies(&new) && !self.group.is_kept(*origin, fact)).then_some((*origin, new))
            };
            if same && key.facts.keys().all(|origin| old.facts.contains_key(origin)) {
                let wider: Option<Vec<_>> = old.facts.iter().map(wider).collect();
                floor.extend(wider.into_iter().flatten().filter(|(origin, fact)| old.facts[origin] != *fact));
            }
        }
        if floor.is_empty() {
            return;
        }
        self.is_outdated = true;
        let known = self.learned.floors.entry(key.place.clone()).or_default();
        for (origin, fact) in floor {
            let widest = known.entry(origin).or_insert_with(|| fact.clone());
            if widest.implies(&fact) {
                *widest = fact;
            } else if !fact.implies(widest) {
                // Without a common bound both would ask for a next round for ever.
                *widest = Fact::between(widest.low.min(fact.low), widest.high.max(fact.high));
            }
        }
    }

    /// What the type of a member's value says.
    fn whole(&self, origin: (usize, Value)) -> Fact {
        Fact::of_type(self.group.types(), self.group.members[origin.0].body.values[origin.1.0 as usize].ty)
    }

    /// Notes who could go on at the node at hand.
    pub(super) fn note_enabled(&mut self, members: impl IntoIterator<Item = usize>) {
        if let Some(current) = self.current {
            self.list[current].enabled.extend(members);
        }
    }

    /// Refuses what has become too large, or takes too long.
    pub(super) fn check_size(&self) -> Result<(), Refusal> {
        if self.out.size > self.limits.emitted() {
            return Err(too_large(Measure::Instructions, self.limits.instructions));
        }
        if self.left() == 0 {
            return Err(too_large(Measure::Effort, self.limits.effort));
        }
        Ok(())
    }

    /// What is left of the work: an instruction is one piece of it, and so is a member's place in a node.
    fn left(&self) -> usize {
        self.effort.saturating_sub(self.out.size + self.list.len() * self.group.members.len())
    }

    /// The process without which fewest of the nodes would differ, if there are several.
    fn costliest(&self) -> Option<ProcessId> {
        let members = &self.group.members;
        let processes: BTreeSet<ProcessId> = members.iter().map(|member| member.process).collect();
        let left = |process: &ProcessId| {
            let is_other = |member: usize| members[member].process != *process;
            let owner = |slot: SlotId| members.partition_point(|member| member.first_slot <= slot.0).checked_sub(1);
            let parts = |node: &Node| {
                let mut hasher = FxHasher::default();
                let places = node.key.place.members.iter().enumerate().filter(|(member, _)| is_other(*member));
                places.for_each(|place| place.hash(&mut hasher));
                let facts = node.key.facts.iter().filter(|((member, _), _)| is_other(*member));
                facts.for_each(|fact| fact.hash(&mut hasher));
                let tags = node.key.tags.iter().filter(|((slot, _), _)| owner(*slot).is_some_and(is_other));
                tags.for_each(|tag| tag.hash(&mut hasher));
                let refuted = node.key.refuted.iter();
                let refuted = refuted.filter(|(writer, _, reader, _)| is_other(*writer) && is_other(*reader));
                refuted.for_each(|meeting| meeting.hash(&mut hasher));
                hasher.finish()
            };
            self.list.iter().map(parts).collect::<FxHashSet<u64>>().len()
        };
        let costliest = processes.iter().min_by_key(|process| left(process)).copied();
        costliest.filter(|_| processes.len() > 1)
    }

    /// Other processes get their turn, too: a cycle that never waits for the world has a place where it yields, as
    /// members did whenever they met.
    fn let_others_run(&mut self) {
        let mut yields: BTreeSet<usize> = BTreeSet::new();
        loop {
            let goes_on = |passage: &Passage| !passage.has_rested && !yields.contains(&passage.to);
            let mut found: Vec<usize> = Vec::new();
            for component in components(&self.list, &goes_on) {
                let inside = |passage: &Passage| goes_on(passage) && component.contains(&passage.to);
                let is_cycle = component.iter().any(|node| self.list[*node].edges.iter().any(inside));
                // Within one quantum everybody else waits, as in the program.
                let first = component.iter().find(|node| self.list[**node].is_settled());
                found.extend(first.filter(|_| is_cycle));
            }
            if found.is_empty() {
                break;
            }
            yields.extend(found);
        }
        let blocks: BTreeSet<BlockId> = yields.iter().map(|node| self.list[*node].block).collect();
        for block in &mut self.out.body.blocks {
            if let Terminator::Jump(edge) = &block.terminator
                && blocks.contains(&edge.to)
            {
                block.terminator = Terminator::Yield(edge.clone());
            }
        }
    }

    /// Who could go on but never does: the order of rendezvous is fixed, so a cycle of others could pass by for ever.
    /// With each, a place on that cycle.
    fn starving(&self) -> Vec<(Standing, usize)> {
        let mut starving = Vec::new();
        for component in components(&self.list, &|_| true) {
            // Within one quantum everybody else waits, as in the program.
            if component.iter().all(|node| !self.list[*node].is_settled()) {
                continue;
            }
            let inside = |passage: &&Passage| component.contains(&passage.to);
            let edges: Vec<&Passage> =
                component.iter().flat_map(|node| self.list[*node].edges.iter().filter(inside)).collect();
            if edges.is_empty() {
                continue;
            }
            for member in 0..self.group.members.len() {
                let waits = |node: &&usize| {
                    let node = &self.list[**node];
                    node.enabled.contains(&member) || node.outside.contains(&member)
                };
                let served = edges.iter().any(|edge| edge.moved.contains(&member) || edge.polled.contains(&member));
                if let (Some(node), false) = (component.iter().find(waits), served) {
                    starving.push((self.list[*node].key.place.clone(), member));
                }
            }
        }
        starving
    }
}

fn runner(state: &State) -> Option<(usize, BlockId)> {
    state.members.iter().enumerate().rev().find_map(|(index, member)| match member.at {
        At::Running(block) => Some((index, block)),
        At::Waiting(_) | At::Ended => None,
    })
}

fn too_large(measure: Measure, limit: usize) -> Refusal {
    Refusal::TooLarge { measure, limit, costliest: None }
}
