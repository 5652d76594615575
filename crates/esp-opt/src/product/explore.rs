//! Nodes of the product and the search over them, and when it is given up.
//! Knows no instructions.
//!
//! **Going back.** That a place gets too many versions, or that a counter makes them, is seen only on the way; what was
//! found since the search first came to the place was in vain, and it goes back there with what has been learned. What a
//! node does is no matter of that: it is walked once, and who comes to it again only asks which nodes its ways lead to
//! now. The jumps between nodes are emitted when all is known. When somebody could starve, a new round begins.

mod costly;
mod fair;
mod gone;
mod versions;

use super::course::{Course, Followed, Leaving, NodeEnd, Progress};
use super::group::Group;
use super::path::Path;
use super::residue::Residue;
use super::state::{At, Detail, Key, Known, MemberState, Origin, Standing, State};
use super::tell::{Left, Rest, Told};
use crate::facts::Fact;
use crate::limits::{LimitKind, ProductLimits};
use crate::path_exit::{IterationCountPlacement, PathExit};
use crate::path_spec::ProgramPoint;
use crate::refusal::Refusal;
use quaject_esp_ir::intervals::intervals;
use quaject_esp_ir::ir::{
    BlockId, Body, ChannelId, Direction, Edge, Location, Op, ProcessId, Slot, Terminator, TypeTable, Value,
};
use quaject_esp_ir::small_map::SmallMap;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// What is known of live values of members.
type Facts = BTreeMap<Origin, Fact>;

/// What an exploration gave.
pub(crate) struct Product {
    /// The fused body, as it was emitted.
    pub(crate) body: Body,
    /// Nodes it was made of.
    pub(crate) nodes: usize,
    /// The process without which there would be fewest nodes, if the group has several.
    pub(crate) costliest: Option<ProcessId>,
    /// Whether members may wait for ever while others go on.
    pub(crate) has_lost: bool,
}

/// The search.
pub(super) struct Explorer<'g, 'p> {
    pub(super) group: &'g Group<'p>,
    pub(super) out: Residue,
    limits: ProductLimits,
    /// What is left of the work that may be done; `left` takes what has been done since.
    fuel: usize,
    /// Places, numbered as they are found.
    places: FxHashMap<Rc<Standing>, usize>,
    /// Per place: how its versions are told apart.
    versions: Vec<Versions>,
    /// The nodes of all rounds.
    nodes: Vec<Node>,
    numbers: FxHashMap<Rc<Key>, usize>,
    /// What values have been widened to, wherever that was.
    widest: Facts,
    round: Round,
    /// What the walk at hand has come upon.
    pub(super) seen: Seen,
    /// The fast path that is followed; none for a whole product.
    pub(super) course: Option<&'g Course>,
    /// Per member: where it may be gone, and the numbers of those of these places that the last round came to.
    pub(super) rests: Vec<Vec<Rest>>,
    pub(super) reached: Vec<BTreeSet<i128>>,
    /// Where nobody waits but those who are gone: the wait that tells of them.
    pub(super) vain: BTreeMap<Vec<Left>, (BlockId, Told)>,
    /// What members that are gone may hope for; of the first, nothing.
    pub(super) hopes: Vec<Vec<(ChannelId, Direction)>>,
    /// Per member: whether a report may tell of it.
    can_be_told: Vec<bool>,
    /// Whether members that have ended are gone, too, and whether the search begins anew for that.
    merges_ends: bool,
    begins_anew: bool,
    /// How many more places a path goes on from before it is left for no reason, if it is.
    pub(super) until_forced: Option<u32>,
}

/// A place, and what earlier rounds have learned of it.
struct Versions {
    place: Rc<Standing>,
    /// Whom it serves first, so that others do not pass them by for ever.
    preferred: BTreeSet<usize>,
    /// What tells its versions apart.
    detail: Detail,
    /// What they are at least widened to, so that counters do not make versions; of what does not tell them apart, what
    /// they have in common.
    floor: Facts,
    /// How often what tells them apart has changed.
    changes: usize,
    /// Its nodes of the round at hand.
    here: Vec<usize>,
}

/// One round of the search.
#[derive(Default)]
struct Round {
    number: usize,
    /// Its nodes, as they were found, and those of which the ways have not been looked at.
    list: Vec<usize>,
    work: Vec<usize>,
    /// Instructions of the nodes it has come to, but for the walk at hand, and what there was before that walk.
    size: usize,
    before: usize,
    /// Nodes that all rounds have come to.
    visits: usize,
    /// The visits, in their order.
    visited: Vec<Visit>,
    /// A place of which something has been learned, so that what followed from it was in vain.
    outdated: Option<usize>,
}

/// A visit of a node in a round.
struct Visit {
    node: usize,
    /// Nodes that the round had come to before, and their size.
    came: usize,
    size: usize,
}

/// What a walk comes upon, beside instructions.
#[derive(Default)]
pub(super) struct Seen {
    ends: Vec<End>,
    /// Members that could go on, and members that wait for the world.
    enabled: BTreeSet<usize>,
    outside: BTreeSet<usize>,
    /// The places at which it was asked who is served first.
    settled: Vec<usize>,
    /// The waits that tell of members that are gone.
    pub(super) told: Vec<Told>,
    /// Of a fast path: where it is left, where members stood, whether it made a choice.
    pub(super) exits: BTreeSet<PathExit>,
    pub(super) leaves: Vec<Leaving>,
    pub(super) states: BTreeSet<Vec<Location>>,
    pub(super) has_choice: bool,
    /// Of a fast path: the statements that words went on with, by member, and those that they ended at.
    pub(super) spelled: BTreeSet<(usize, ProgramPoint)>,
    pub(super) ended: BTreeSet<(usize, ProgramPoint)>,
}

/// A way that leads to a node.
struct End {
    path: Path,
    place: usize,
    /// The node, by what told the place's versions apart after so many changes.
    to: Option<(usize, usize)>,
    /// Instructions of the jump there.
    size: usize,
}

struct Node {
    key: Rc<Key>,
    block: BlockId,
    /// The members' live values: parameters of the block, in their order, and constants.
    values: SmallMap<Origin, Known>,
    /// What the key says of the parameters.
    given: Rc<SmallMap<Value, Fact>>,
    /// The members that are gone, and the parameters that say where they are.
    gone: Vec<(usize, Value)>,
    /// On a fast path: the parameter that counts iterations.
    count: Option<Value>,
    /// What its walk came upon, and the instructions of it.
    walked: Option<(Seen, usize)>,
    /// The last round that came to it, and its place in that round's list.
    round: usize,
    position: usize,
    /// Older versions of its place beside which it teaches nothing.
    beside: Vec<usize>,
}

impl Node {
    fn seen(&self) -> &Seen {
        &self.walked.as_ref().expect("every node of a round has been walked").0
    }
}

/// Explores the product of a group. `fuel` is what is left of it.
pub(crate) fn explore(group: &Group<'_>, limits: ProductLimits, fuel: &mut usize) -> Result<Product, Refusal> {
    let mut explorer = Explorer::new(group, None, limits, *fuel);
    let explored = explorer.explore().and_then(|start| explorer.check_told(&start).map(|()| start));
    *fuel = explorer.left();
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
    let yields = if group.has_others { explorer.yields() } else { explorer.yields_for_ever() };
    // Less is left of what is emitted.
    let is_large = explorer.round.size > limits.instructions;
    let costliest = if is_large { explorer.costliest() } else { None };
    explorer.link(start, &yields);
    let has_lost = explorer.merges_ends;
    Ok(Product { nodes: explorer.round.list.len(), body: explorer.out.body, costliest, has_lost })
}

/// Explores the product of a group along a fast path. Ends within the limits' fuel.
pub(crate) fn follow(
    group: &Group<'_>,
    course: &Course,
    limits: ProductLimits,
    placement: IterationCountPlacement,
) -> Result<Followed, Refusal> {
    let mut explorer = Explorer::new(group, Some(course), limits, limits.fuel);
    explorer.until_forced = match placement {
        IterationCountPlacement::LoopHeads | IterationCountPlacement::EveryNode => None,
        IterationCountPlacement::Forced(place) => Some(place),
    };
    explorer.check_size()?;
    let (mut start, first_count, given) = explorer.start(course)?;
    explorer.learn(&mut start)?;
    let nodes = explorer.round.list.clone();
    let ends = nodes.iter().map(|node| explorer.node_end(*node, first_count)).collect();
    let mut all = Seen::default();
    for node in &nodes {
        let seen = explorer.nodes[*node].seen();
        all.exits.extend(seen.exits.iter().cloned());
        all.leaves.extend(seen.leaves.iter().cloned());
        all.states.extend(seen.states.iter().cloned());
        all.has_choice |= seen.has_choice;
        all.spelled.extend(&seen.spelled);
        all.ended.extend(&seen.ended);
    }
    let unreached = course.unreached(&all.spelled, &all.ended);
    explorer.link(start, &BTreeSet::new());
    Ok(Followed {
        unreached,
        nodes: nodes.len(),
        body: explorer.out.body,
        given,
        ends,
        exits: all.exits.into_iter().collect(),
        leaves: all.leaves,
        states: all.states.into_iter().collect(),
        has_choice: all.has_choice,
    })
}

fn slots(group: &Group<'_>) -> Vec<Slot> {
    group.members.iter().flat_map(|member| member.body.slots.iter().cloned()).collect()
}

impl<'g, 'p> Explorer<'g, 'p> {
    fn new(group: &'g Group<'p>, course: Option<&'g Course>, limits: ProductLimits, fuel: usize) -> Explorer<'g, 'p> {
        Explorer {
            group,
            out: Residue::new(slots(group), limits.wait_cost),
            limits,
            fuel,
            places: FxHashMap::default(),
            versions: Vec::new(),
            nodes: Vec::new(),
            numbers: FxHashMap::default(),
            widest: Facts::new(),
            round: Round::default(),
            seen: Seen::default(),
            course,
            rests: vec![Vec::new(); group.members.len()],
            reached: vec![BTreeSet::new(); group.members.len()],
            vain: BTreeMap::new(),
            hopes: vec![Vec::new()],
            can_be_told: (0..group.members.len()).map(|member| gone::can_be_told(group, member)).collect(),
            merges_ends: false,
            begins_anew: false,
            until_forced: None,
        }
    }

    /// Where a fast path begins. The entry block takes the members' values in order; the constant in it that the count
    /// of iterations begins with, and what is always so of those values.
    fn start(&mut self, course: &Course) -> Result<(End, Value, Vec<Option<Fact>>), Refusal> {
        let (mut members, mut parameters) = (Vec::new(), Vec::new());
        let (mut values, mut facts) = (SmallMap::new(), SmallMap::new());
        for (number, member) in self.group.members.iter().enumerate() {
            let (block, _) = course.start(number);
            let at = if number == 0 { At::Running(block) } else { At::Waiting(block) };
            let ranges = intervals(member.body, self.group.types(), self.group.checked, &[]);
            for value in &member.live[block.0 as usize].values {
                let data = &member.body.values[value.0 as usize];
                let parameter = self.out.value(data.ty, data.name.clone());
                parameters.push(parameter);
                // What it is not besides would keep states apart.
                let interval = ranges[value.0 as usize].as_ref().map(|fact| Fact::between(fact.low, fact.high));
                facts.extend(interval.map(|fact| (parameter, fact)));
                values.insert((number, *value), Known::Value(parameter));
            }
            members.push(MemberState { at, last: SmallMap::new(), rests_at: None });
        }
        let given = parameters.iter().map(|parameter| facts.get(parameter).cloned()).collect();
        let entry = self.out.block(parameters);
        let count = self.out.value(TypeTable::U32, None);
        self.out.emit(entry, Some(count), Op::Constant(0), Location::default());
        let progress = Progress::new(members.len());
        let state = State { progress, values, facts, count: Some(count), ..State::new(members) };
        Ok((self.end(Path { block: entry, state }), count, given))
    }

    /// How a node is left if it was reached too often.
    fn node_end(&mut self, node: usize, first_count: Value) -> NodeEnd {
        let mut path = self.enter(node);
        path.block = self.out.block(Vec::new());
        let order: Vec<usize> = path.state.progress.order(self.group.members.len());
        let at = self.places(&path);
        let away = self.away(&path);
        let terminator = self.leaving(&mut path, &order);
        self.out.finish(path.block, terminator, Location::default());
        let Node { block, count, .. } = &self.nodes[node];
        let count = count.expect("nodes of a path count");
        NodeEnd { block: *block, count, stub: path.block, first_count, at, away }
    }

    /// Explores until nobody starves; where the product begins.
    fn explore(&mut self) -> Result<End, Refusal> {
        loop {
            if let Some(start) = self.explore_once()? {
                return Ok(start);
            }
            self.forget_all();
        }
    }

    /// The same; nothing if the search has to begin anew.
    fn explore_once(&mut self) -> Result<Option<End>, Refusal> {
        let entry = self.out.block(Vec::new());
        let member = MemberState { at: At::Running(BlockId(0)), last: SmallMap::new(), rests_at: None };
        let state = State::new(vec![member; self.group.members.len()]);
        let mut start = self.end(Path { block: entry, state });
        loop {
            self.learn(&mut start)?;
            if self.begins_anew {
                return Ok(None);
            }
            let starving = self.starving();
            if starving.is_empty() {
                return Ok(Some(start));
            }
            for (place, member) in starving {
                if !self.versions[place].preferred.insert(member) {
                    return Err(Refusal::MayStarve { process: self.group.members[member].process });
                }
                self.forget_walks(place);
            }
        }
    }

    /// Forgets the walks that depend on whom a place serves first.
    fn forget_walks(&mut self, place: usize) {
        for node in &mut self.nodes {
            if node.walked.as_ref().is_some_and(|(seen, _)| seen.settled.contains(&place)) {
                node.walked = None;
                self.out.body.blocks[node.block.0 as usize].instructions.clear();
            }
        }
    }

    /// Forgets all that was found, but for what it has cost.
    fn forget_all(&mut self) {
        self.fuel = self.left();
        self.out = Residue::new(slots(self.group), self.limits.wait_cost);
        self.places.clear();
        self.versions.clear();
        self.nodes.clear();
        self.numbers.clear();
        self.widest.clear();
        self.round = Round::default();
        self.vain.clear();
        self.begins_anew = false;
    }

    /// Goes through the nodes that are reached from here, until nothing is learned any more.
    fn learn(&mut self, start: &mut End) -> Result<(), Refusal> {
        loop {
            self.round = Round { number: self.round.number + 1, visits: self.round.visits, ..Round::default() };
            for versions in &mut self.versions {
                versions.here.clear();
            }
            let first = self.target(start);
            self.round.size += start.size;
            self.come_to(first)?;
            loop {
                if let Some(place) = self.round.outdated.take() {
                    if !self.go_back(place) {
                        break;
                    }
                } else if self.begins_anew {
                    return Ok(());
                } else if let Some(node) = self.round.work.pop() {
                    self.visit(node)?;
                } else {
                    return Ok(());
                }
            }
        }
    }

    /// Goes back to before the round first came to a place, as its versions are told apart differently now; whether
    /// anything was done before.
    fn go_back(&mut self, place: usize) -> bool {
        let first = self.versions[place].here.first().map_or(0, |node| self.nodes[*node].position);
        let Some(last) = self.round.visited.iter().rposition(|visit| visit.came <= first) else { return false };
        let Visit { node: _, came, size } = self.round.visited[last];
        self.round.size = size;
        self.round.visited.truncate(last);
        for node in self.round.list.drain(came..).rev() {
            self.nodes[node].round = 0;
            self.versions[self.nodes[node].key.place].here.pop();
        }
        let visited: FxHashSet<usize> = self.round.visited.iter().map(|visit| visit.node).collect();
        self.round.work = self.round.list.iter().copied().filter(|node| !visited.contains(node)).collect();
        true
    }

    /// Walks a node that has not been walked, and comes to the nodes that its ways lead to.
    fn visit(&mut self, node: usize) -> Result<(), Refusal> {
        let (came, size) = (self.round.list.len(), self.round.size);
        self.round.visited.push(Visit { node, came, size });
        let (mut seen, size) = match self.nodes[node].walked.take() {
            Some(walked) => walked,
            None => {
                self.round.before = self.out.size;
                self.seen = Seen::default();
                let path = self.enter(node);
                self.resume(path)?;
                (std::mem::take(&mut self.seen), self.out.size - self.round.before)
            }
        };
        self.round.before = self.out.size;
        self.round.size += size;
        let mut come = Ok(());
        for end in &mut seen.ends {
            let to = self.target(end);
            self.round.size += end.size;
            if self.round.outdated.is_none() {
                come = self.come_to(to);
            }
            if come.is_err() || self.round.outdated.is_some() {
                break;
            }
        }
        self.nodes[node].walked = Some((seen, size));
        come?;
        self.check_size()
    }

    /// The state at the beginning of a node.
    fn enter(&self, node: usize) -> Path {
        let Node { key, block, values, given, gone, count, .. } = &self.nodes[node];
        let place = &self.versions[key.place].place;
        let members = place.members.iter();
        let mut members: Vec<MemberState> =
            members.map(|(at, last)| MemberState { at: *at, last: last.clone(), rests_at: None }).collect();
        for (member, place) in gone {
            members[*member].rests_at = Some(Known::Value(*place));
        }
        let (values, given) = (values.clone(), given.clone());
        let (tags, refuted, progress) = (key.tags.clone(), key.refuted.clone(), place.progress.clone());
        let state = State { values, given, tags, refuted, progress, count: *count, ..State::new(members) };
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
                for member in 0..self.group.members.len() {
                    if !self.outside(&path, member).is_empty() {
                        self.seen.outside.insert(member);
                    }
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
    pub(super) fn go_to_node(&mut self, path: Path) -> Result<(), Refusal> {
        let end = self.end(path);
        self.seen.ends.push(end);
        Ok(())
    }

    fn end(&mut self, mut path: Path) -> End {
        self.retire(&mut path.state);
        let place = self.place_of_all(&path.state);
        End { path, place, to: None, size: 0 }
    }

    /// The number of the place where everybody is.
    fn place_of_all(&mut self, state: &State) -> usize {
        let standing = state.standing();
        if let Some(place) = self.places.get(&standing) {
            return *place;
        }
        let place = Rc::new(standing);
        self.places.insert(place.clone(), self.versions.len());
        let (preferred, detail, floor, changes, here) = (BTreeSet::new(), Detail::Full, Facts::new(), 0, Vec::new());
        self.versions.push(Versions { place, preferred, detail, floor, changes, here });
        self.versions.len() - 1
    }

    /// Whom the place where everybody is serves first.
    pub(super) fn preferred(&mut self, state: &State) -> BTreeSet<usize> {
        let place = self.place_of_all(state);
        self.seen.settled.push(place);
        self.versions[place].preferred.clone()
    }

    /// The node that a way leads to, by what is known of its place now.
    fn target(&mut self, end: &mut End) -> usize {
        let Versions { detail, changes, .. } = &self.versions[end.place];
        if let Some((node, then)) = end.to
            && then == *changes
        {
            return node;
        }
        let mut key = end.path.state.key(self.group, end.place, *detail);
        match detail {
            Detail::Full => self.widened(&mut key),
            Detail::Flags | Detail::None => {
                let origins = end.path.state.values.keys().copied();
                let origins = origins.filter(|origin| self.is_joined(end.place, *origin)).collect();
                self.joined(&mut key, origins);
            }
        }
        let node = match self.numbers.get(&key) {
            Some(node) => *node,
            None => self.new_node(&end.path.state, key),
        };
        end.to = Some((node, self.versions[end.place].changes));
        let state = &end.path.state;
        let arguments = self.nodes[node].values.iter().zip(state.values.iter());
        let is_constant = |((_, at_node), (_, known)): &((&Origin, &Known), (&Origin, &Known))| {
            matches!((at_node, state.settled(**known)), (Known::Value(_), Known::Constant(_)))
        };
        end.size = 1 + arguments.filter(is_constant).count();
        node
    }

    fn new_node(&mut self, state: &State, key: Key) -> usize {
        // What the key says, it says of some of these values, in the same order.
        let mut facts = key.facts.iter().peekable();
        let mut given = SmallMap::with_capacity(key.facts.len());
        let values = state.values.keys().map(|origin| {
            let fact = facts.next_if(|(other, _)| *other == origin).map(|(_, fact)| fact);
            if let Some(constant) = fact.and_then(Fact::as_constant) {
                return (*origin, Known::Constant(constant));
            }
            let data = &self.group.members[origin.0].body.values[origin.1.0 as usize];
            let parameter = self.out.value(data.ty, data.name.clone());
            if let Some(fact) = fact {
                given.insert(parameter, fact.clone());
            }
            (*origin, Known::Value(parameter))
        });
        let values: SmallMap<Origin, Known> = values.collect();
        drop(facts);
        let gone = state.members.iter().enumerate().filter(|(_, member)| matches!(member.at, At::Gone(_)));
        let gone: Vec<(usize, Value)> =
            gone.map(|(member, _)| (member, self.out.value(TypeTable::U32, None))).collect();
        let count = self.course.map(|_| self.out.value(TypeTable::U32, None));
        let parameters = parameters(&values).map(|(_, parameter)| parameter);
        let block = self.out.block(parameters.chain(gone.iter().map(|(_, place)| *place)).chain(count).collect());
        let (key, given) = (Rc::new(key), Rc::new(given));
        self.numbers.insert(key.clone(), self.nodes.len());
        let (walked, round, position, beside) = (None, 0, 0, Vec::new());
        self.nodes.push(Node { key, block, values, given, gone, count, walked, round, position, beside });
        self.nodes.len() - 1
    }

    /// Adds a node to the round, unless it is one of its nodes already, and learns from it.
    fn come_to(&mut self, node: usize) -> Result<(), Refusal> {
        if self.nodes[node].round == self.round.number {
            return Ok(());
        }
        self.add_version(node);
        if self.round.list.len() >= self.limits.nodes {
            return Err(too_large(LimitKind::States, self.limits.nodes));
        }
        self.nodes[node].round = self.round.number;
        self.nodes[node].position = self.round.list.len();
        self.round.visits += 1;
        self.round.list.push(node);
        self.round.work.push(node);
        Ok(())
    }

    /// Emits the jumps between the nodes of the last round, some of which give others their turn.
    fn link(&mut self, start: End, yields: &BTreeSet<usize>) {
        let (mut ends, mut told) = (vec![start], Vec::new());
        for node in &self.round.list {
            if let Some((seen, _)) = self.nodes[*node].walked.take() {
                ends.extend(seen.ends);
                told.extend(seen.told);
            }
        }
        for End { mut path, to, .. } in ends {
            let (node, _) = to.expect("every way of the last round leads to a node");
            let block = self.nodes[node].block;
            let origins: Vec<Origin> = parameters(&self.nodes[node].values).map(|(origin, _)| origin).collect();
            let mut arguments: Vec<Value> =
                origins.into_iter().map(|(member, value)| self.value(&mut path, member, value)).collect();
            for member in 0..path.state.members.len() {
                if let Some(place) = path.state.members[member].rests_at {
                    arguments.push(self.materialize(&mut path, place, TypeTable::U32));
                }
            }
            arguments.extend(path.state.count);
            let edge = Edge { to: block, arguments };
            let jump = if yields.contains(&node) { Terminator::Yield(edge) } else { Terminator::Jump(edge) };
            self.out.finish(path.block, jump, Location::default());
        }
        told.extend(std::mem::take(&mut self.vain).into_values().map(|(_, told)| told));
        for told in told {
            self.tell(told);
        }
    }

    /// Notes who could go on at the node at hand.
    pub(super) fn note_enabled(&mut self, members: impl IntoIterator<Item = usize>) {
        self.seen.enabled.extend(members);
    }

    /// Refuses what has become too large, or takes too long.
    pub(super) fn check_size(&self) -> Result<(), Refusal> {
        if self.round.size + self.out.size - self.round.before > self.limits.emitted {
            return Err(too_large(self.limits.size_kind, self.limits.instructions));
        }
        if self.left() == 0 {
            return Err(too_large(LimitKind::Fuel, self.limits.fuel));
        }
        Ok(())
    }

    /// What is left of the work: an instruction is one piece of it, and so is a member's place in a node.
    fn left(&self) -> usize {
        self.fuel.saturating_sub(self.out.size + self.round.visits * self.group.members.len())
    }
}

/// Of the live values at a node those that are parameters, and which.
fn parameters(values: &SmallMap<Origin, Known>) -> impl Iterator<Item = (Origin, Value)> {
    values.iter().filter_map(|(origin, known)| match known {
        Known::Value(parameter) => Some((*origin, *parameter)),
        Known::Constant(_) => None,
    })
}

fn runner(state: &State) -> Option<(usize, BlockId)> {
    state.members.iter().enumerate().rev().find_map(|(index, member)| match member.at {
        At::Running(block) => Some((index, block)),
        At::Waiting(_) | At::Yielding(..) | At::Ended | At::Gone(_) => None,
    })
}

fn too_large(kind: LimitKind, limit: usize) -> Refusal {
    Refusal::LimitExceeded { kind, limit, costliest: None }
}
