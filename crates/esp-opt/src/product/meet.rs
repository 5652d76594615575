//! Rendezvous between members that all wait: which one happens, whether the message matches, what is bound.
//! Knows how members run only by name; what is left for the world is in `world`.

use super::course::site;
use super::explore::Explorer;
use super::group::{has_effects, holds_boxed};
use super::path::{Given, Path};
use super::state::{At, Known, Meeting, Since, State, Way};
use crate::path_exit::ExitReason;
use crate::refusal::Refusal;
use quaject_esp_exec::priority::{is_allowed, participants};
use quaject_esp_exec::trace;
use quaject_esp_ir::ir::{
    AltOrder, Base, BinaryOp, Bind, BlockId, Branch, ChannelId, Guard, Location, Op, Operand, Operation, Passed,
    Pattern, Payload, Place, Projection, SlotId, Terminator, Transfer, Type, TypeId, TypeTable, Wait,
};
use quaject_esp_ir::visit::bound_slots;
use std::collections::BTreeSet;

/// Partner of a way that leads to the world.
pub(super) const WORLD: u32 = u32::MAX;

/// What can be said of a guard without running it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Open {
    Yes,
    No,
    Perhaps,
}

impl<'g, 'p> Explorer<'g, 'p> {
    /// Goes on from a state in which all members wait.
    pub(super) fn settle(&mut self, path: Path) -> Result<(), Refusal> {
        if self.course.is_some() {
            return self.proceed(path);
        }
        let preferred = self.preferred(&path.state);
        let asking = preferred.iter().filter(|member| !path.state.polled.contains(member));
        let first: Vec<(usize, u32)> = asking.flat_map(|member| self.outside(&path, *member)).collect();
        self.poll(path, first, &mut |explorer, path| explorer.meet(path, &preferred))
    }

    fn meet(&mut self, path: Path, preferred: &BTreeSet<usize>) -> Result<(), Refusal> {
        self.check_size()?;
        let meetings = self.meetings(&path);
        self.note_enabled(meetings.iter().flat_map(|(writer, _, reader, _)| [*writer, *reader]));
        self.note_enabled(path.state.yielding().map(|(member, _)| member));
        if let Some(member) = self.next_after_yield(&path, Since::Others) {
            return self.go_on_after_yield(path, member);
        }
        match self.first(&path, &meetings, preferred) {
            Some(meeting) => self.attempt(path, meeting),
            None => self.ask_world(path, preferred),
        }
    }

    /// The block a waiting member waits in, and its wait.
    pub(super) fn standing(&self, path: &Path, member: usize) -> Option<(BlockId, &'p Wait)> {
        match path.state.members[member].at {
            At::Waiting(block) => Some((block, self.group.wait(member, block))),
            At::Running(_) | At::Yielding(..) | At::Ended | At::Gone(_) => None,
        }
    }

    pub(super) fn open(&self, path: &Path, member: usize, guard: Guard) -> Open {
        self.open_in(&path.state, member, guard)
    }

    pub(super) fn open_in(&self, state: &State, member: usize, guard: Guard) -> Open {
        match guard {
            Guard::Open => Open::Yes,
            Guard::Value(value) => match state.known(member, value) {
                Known::Constant(0) => Open::No,
                Known::Constant(_) => Open::Yes,
                Known::Value(_) => Open::Perhaps,
            },
            Guard::Region(_) => unreachable!("groups have no guards that ask `free`"),
        }
    }

    /// Every rendezvous that is not known to be impossible.
    fn meetings(&mut self, path: &Path) -> Vec<Meeting> {
        let members = 0..self.group.members.len();
        let writes: Vec<_> = members.clone().flat_map(|writer| self.writes(path, writer)).collect();
        let mut found = Vec::new();
        for reader in members {
            let Some((_, wait)) = self.standing(path, reader) else { continue };
            for (read, branch) in wait.branches.iter().enumerate() {
                let Operation::In { channel, patterns, .. } = &branch.operation else { continue };
                if !self.group.is_internal(*channel) || self.open(path, reader, branch.guard) == Open::No {
                    continue;
                }
                for (writer, written, on, branch) in &writes {
                    let meeting = (*writer, *written, reader, read as u32);
                    if on == channel
                        && *writer != reader
                        && !path.state.refuted.contains(&meeting)
                        && !self.is_excluded(path, *writer, branch, reader, patterns)
                    {
                        found.push(meeting);
                    }
                }
            }
        }
        found
    }

    /// Whether a rendezvous is not known to be impossible.
    pub(super) fn can_be(&mut self, path: &Path, meeting: Meeting) -> bool {
        let (writer, written, reader, read) = meeting;
        let (out, branch) = (self.branch(path, writer, written), self.branch(path, reader, read));
        let (Operation::Out { channel: from, .. }, Operation::In { channel: to, patterns, .. }) =
            (&out.operation, &branch.operation)
        else {
            return false;
        };
        from == to && !path.state.refuted.contains(&meeting) && !self.is_excluded(path, writer, out, reader, patterns)
    }

    /// The branches by which a member that waits may write, and where, with the member.
    fn writes(&self, path: &Path, writer: usize) -> impl Iterator<Item = (usize, u32, ChannelId, &'p Branch)> {
        let branches = self.standing(path, writer).into_iter().flat_map(|(_, wait)| wait.branches.iter().enumerate());
        branches.filter_map(move |(index, branch)| match &branch.operation {
            Operation::Out { channel, .. } if self.open(path, writer, branch.guard) != Open::No => {
                Some((writer, index as u32, *channel, branch))
            }
            Operation::Out { .. } | Operation::In { .. } | Operation::After { .. } => None,
        })
    }

    /// Whether a message is known not to match.
    fn is_excluded(&mut self, path: &Path, writer: usize, out: &Branch, reader: usize, patterns: &[Pattern]) -> bool {
        let Operation::Out { payload: Payload::Ready(passed), .. } = &out.operation else { return false };
        let group = self.group;
        let instance = i128::from(group.members[reader].instance);
        passed.iter().zip(patterns).any(|(passed, pattern)| {
            let wanted = match pattern {
                Pattern::Constant(value) => *value,
                Pattern::OwnId => instance,
                Pattern::Tag(tag, _) => {
                    let Operand::Place(place) = &passed.operand else { return false };
                    let Some((slot, steps)) = super::path::tag_steps(place) else { return false };
                    let place = (SlotId(slot.0 + group.members[writer].first_slot), steps);
                    return path.state.tags.get(&place).is_some_and(|fact| !fact.admits(i128::from(*tag)));
                }
                Pattern::Any
                | Pattern::Bind(_)
                | Pattern::Bytes(_)
                | Pattern::Equal(_)
                | Pattern::Record(_)
                | Pattern::Array(_) => return false,
            };
            match &passed.operand {
                Operand::Value(value) => {
                    let ty = group.members[writer].body.values[value.0 as usize].ty;
                    !path.state.fact(group, self.known(path, writer, *value), ty).admits(wanted)
                }
                Operand::Place(_) => false,
            }
        })
    }

    /// The rendezvous that comes first: furthest downstream, then by the rotation or priority of both waits.
    fn first(&self, path: &Path, meetings: &[Meeting], preferred: &BTreeSet<usize>) -> Option<Meeting> {
        let [_, _, ..] = meetings else { return meetings.first().copied() };
        let step = |(writer, written, reader, read): &Meeting| trace::Step::Communicate {
            sender: *writer as u32,
            sender_branch: *written,
            receiver: *reader as u32,
            receiver_branch: *read,
        };
        let steps: Vec<trace::Step> = meetings.iter().map(step).collect();
        let is_priority = |member: u32| {
            let (_, wait) = self.standing(path, member as usize).expect("who meets waits");
            wait.order == AltOrder::Priority
        };
        let has_priority = steps.iter().flat_map(|step| participants(*step)).any(|(member, _)| is_priority(member));
        let allowed = |meeting: &&Meeting| !has_priority || is_allowed(step(meeting), &steps, &is_priority);
        let rank = |(writer, written, reader, read): &&Meeting| {
            (
                !preferred.contains(reader) && !preferred.contains(writer),
                std::cmp::Reverse(*reader),
                self.rank(path, *reader, (*read, *writer as u32)),
                self.rank(path, *writer, (*written, *reader as u32)),
            )
        };
        meetings.iter().filter(allowed).min_by_key(rank).copied()
    }

    /// Where a way stands in the order in which a waiting member looks at them.
    fn rank(&self, path: &Path, member: usize, way: Way) -> (bool, Way) {
        let Some((block, wait)) = self.standing(path, member) else { return (false, way) };
        match (wait.order, path.state.members[member].last.get(&block)) {
            (AltOrder::Fair, Some(last)) => (way <= *last, way),
            (AltOrder::Fair, None) | (AltOrder::Priority, _) => (false, way),
        }
    }

    /// Whether a wait's last way matters: it has several.
    fn is_rotated(&self, wait: &Wait) -> bool {
        let writers = |channel: ChannelId| {
            let member_writes = |member: &&super::group::Member<'_>| {
                self.group.program.processes[member.process.0 as usize]
                    .sites
                    .iter()
                    .any(|site| site.channel == channel && site.direction == quaject_esp_ir::ir::Direction::Out)
            };
            self.group.members.iter().filter(member_writes).count()
        };
        wait.order == AltOrder::Fair
            && (wait.branches.len() > 1
                || wait.branches.iter().any(|branch| match &branch.operation {
                    Operation::In { channel, .. } => self.group.is_internal(*channel) && writers(*channel) > 1,
                    Operation::Out { .. } | Operation::After { .. } => false,
                }))
    }

    /// Who goes on next of those that have yielded since when this has happened.
    pub(super) fn next_after_yield(&self, path: &Path, wanted: Since) -> Option<usize> {
        let members = path.state.yielding().filter(|(_, turn)| turn.since == wanted);
        members.min_by_key(|(_, turn)| turn.behind).map(|(member, _)| member)
    }

    /// A member that has yielded goes on, as soon as others of the program have had their turn.
    pub(super) fn go_on_after_yield(&mut self, mut path: Path, member: usize) -> Result<(), Refusal> {
        let At::Yielding(block, own) = path.state.members[member].at else { unreachable!("it has yielded") };
        let next = self.out.block(Vec::new());
        let location = self.group.members[member].body.blocks[block.0 as usize].location;
        self.out.finish(path.block, Terminator::Yield(super::residue::to(next)), location);
        path.block = next;
        path.state.has_rested = true;
        path.state.moved.insert(member);
        path.state.members[member].at = At::Running(block);
        for member in &mut path.state.members {
            if let At::Yielding(_, turn) = &mut member.at {
                turn.behind -= usize::from(turn.behind > own.behind);
            }
        }
        self.go_on(path)
    }

    /// Somebody who waited has gone on, as those let them who have yielded.
    pub(super) fn others_have_gone_on(&self, path: &mut Path) {
        for member in &mut path.state.members {
            if let At::Yielding(_, turn) = &mut member.at {
                turn.since = Since::Others;
            }
        }
    }

    /// A member leaves its wait.
    pub(super) fn leave(&self, path: &mut Path, member: usize, way: Way) {
        let (block, wait) = self.standing(path, member).expect("who leaves a wait is at one");
        if self.course.is_none() && self.is_rotated(wait) {
            path.state.members[member].last.insert(block, way);
        }
        path.state.moved.insert(member);
        path.state.refuted.retain(|(writer, _, reader, _)| *writer != member && *reader != member);
        let then = wait.branches[way.0 as usize].then;
        path.state.members[member].at = At::Running(then);
        path.state.prune(self.group, member);
        self.others_have_gone_on(path);
    }

    fn branch(&self, path: &Path, member: usize, branch: u32) -> &'p Branch {
        let (_, wait) = self.standing(path, member).expect("who meets waits");
        &wait.branches[branch as usize]
    }

    /// Tries a rendezvous: what is not known about it is asked on the way.
    pub(super) fn attempt(&mut self, path: Path, meeting: Meeting) -> Result<(), Refusal> {
        let (writer, written, reader, read) = meeting;
        for (member, branch) in [(writer, written), (reader, read)] {
            let branch = self.branch(&path, member, branch);
            if let (Open::Perhaps, Guard::Value(guard)) = (self.open(&path, member, branch.guard), branch.guard) {
                let settle = &mut |explorer: &mut Explorer<'g, 'p>, path: Path, _| explorer.settle(path);
                return self.fork(path, member, guard, branch.location, settle);
            }
        }
        if self.course.is_some() {
            return self.exchange(path, meeting);
        }
        let before = [(writer, (written, reader as u32)), (reader, (read, writer as u32))]
            .into_iter()
            .flat_map(|(member, way)| self.outside_before(&path, member, way))
            .collect();
        self.poll(path, before, &mut |explorer, path| explorer.exchange(path, meeting))
    }

    /// The branches to the world that a member looks at before it takes a way.
    fn outside_before(&self, path: &Path, member: usize, way: Way) -> Vec<(usize, u32)> {
        let (_, wait) = self.standing(path, member).expect("who meets waits");
        let rank = self.rank(path, member, way);
        self.outside(path, member)
            .into_iter()
            .filter(|(_, branch)| match wait.order {
                AltOrder::Priority => *branch < way.0,
                // A time that is after arrival for sure need not be asked for whenever the member arrives.
                AltOrder::Fair => {
                    self.rank(path, member, (*branch, WORLD)) < rank && !self.group.is_later(member, wait, *branch)
                }
            })
            .collect()
    }

    /// The message is made and matched.
    fn exchange(&mut self, path: Path, meeting: Meeting) -> Result<(), Refusal> {
        let (writer, written, _, _) = meeting;
        let out = self.branch(&path, writer, written);
        let Operation::Out { payload, .. } = &out.operation else { unreachable!("a writer writes") };
        match payload {
            Payload::Ready(passed) => {
                let given = passed.iter().map(|one| (self.given(&path, writer, &one.operand), one.clone())).collect();
                self.deliver(path, meeting, given)
            }
            Payload::Region(entry) => {
                let (_, _, reader, read) = meeting;
                let Operation::In { patterns, condition, .. } = &self.branch(&path, reader, read).operation else {
                    unreachable!("a reader reads")
                };
                let takes_all =
                    condition.is_none() && patterns.iter().all(|p| matches!(p, Pattern::Any | Pattern::Bind(_)));
                if self.course.is_some() && has_effects(self.group.members[writer].body, *entry) {
                    return self.leave_course(path, ExitReason::Stops(writer));
                }
                if !takes_all && has_effects(self.group.members[writer].body, *entry) {
                    return Err(Refusal::Unsupported {
                        process: self.group.members[writer].process,
                        what: "an object made for a message that may not match",
                        location: out.location,
                    });
                }
                self.region(path, writer, *entry, &mut |explorer, path, given| explorer.deliver(path, meeting, given))
            }
        }
    }

    fn deliver(&mut self, path: Path, meeting: Meeting, given: Vec<(Given, Passed)>) -> Result<(), Refusal> {
        let (_, _, reader, read) = meeting;
        let branch = self.branch(&path, reader, read);
        let Operation::In { patterns, condition, .. } = &branch.operation else { unreachable!("a reader reads") };
        let todo = patterns.iter().zip(&given).rev().map(|(pattern, (given, _))| (pattern, given.clone())).collect();
        self.matching(path, reader, branch.location, todo, &mut |explorer, mut path, matches| {
            if !matches {
                return explorer.refute(path, meeting);
            }
            let bound = explorer.bind(&mut path, reader, patterns, &given, branch.location);
            let Some(entry) = condition else { return explorer.commit(path, meeting, &bound, &given) };
            explorer.set_parameters(&mut path, reader, *entry, &bound);
            explorer.region(path, reader, *entry, &mut |explorer, path, result| {
                let Some((Given::Value(holds, _), _)) = result.first() else {
                    unreachable!("a condition's result is a `bool`")
                };
                let settle = &mut |explorer: &mut Explorer<'g, 'p>, path: Path, holds: bool| {
                    if holds {
                        return explorer.commit(path, meeting, &bound, &given);
                    }
                    explorer.refute(path, meeting)
                };
                match holds {
                    Known::Constant(holds) => settle(explorer, path, *holds != 0),
                    Known::Value(holds) => explorer.fork_at(path, *holds, branch.location, settle),
                }
            })
        })
    }

    /// The message does not match: what was computed for it is forgotten, and others meet.
    fn refute(&mut self, mut path: Path, meeting: Meeting) -> Result<(), Refusal> {
        path.state.refuted.insert(meeting);
        (0..self.group.members.len()).for_each(|member| path.state.prune(self.group, member));
        self.settle(path)
    }

    /// Matches what is left to match, last first.
    fn matching(
        &mut self,
        mut path: Path,
        reader: usize,
        location: Location,
        mut todo: Vec<(&'p Pattern, Given)>,
        then: &mut dyn FnMut(&mut Explorer<'g, 'p>, Path, bool) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        while let Some((pattern, given)) = todo.pop() {
            let test = match pattern {
                Pattern::Any | Pattern::Bind(_) => continue,
                Pattern::Constant(value) => self.equals(&mut path, &given, *value, location),
                Pattern::OwnId => {
                    let instance = i128::from(self.group.members[reader].instance);
                    self.equals(&mut path, &given, instance, location)
                }
                Pattern::Bytes(bytes) => {
                    let place = self.content(&mut path, &given, location);
                    let slot = self.out.slot(place.1);
                    let literal = Place { base: Base::Slot(slot), path: Vec::new() };
                    self.out.emit(path.block, None, Op::SetBytes(literal.clone(), bytes.clone()), location);
                    let op = Op::Equal(Operand::Place(place.0), Operand::Place(literal));
                    self.test(&mut path, op, location)
                }
                Pattern::Equal(operand) => {
                    let own = self.given(&path, reader, operand);
                    match (&given, &own) {
                        (Given::Value(_, ty), Given::Value(own, _)) if !holds_boxed(self.group.types(), *ty) => {
                            let (a, b) = (self.scalar(&mut path, &given, location), *own);
                            self.compare(&mut path, a, b, *ty, location)
                        }
                        (Given::Value(..) | Given::Place(..), Given::Value(..) | Given::Place(..)) => {
                            let a = self.operand(&mut path, &given);
                            let b = self.operand(&mut path, &own);
                            self.test(&mut path, Op::Equal(a, b), location)
                        }
                    }
                }
                Pattern::Tag(tag, part) => {
                    let (place, ty) = self.content(&mut path, &given, location);
                    let test = self.tag_is(&mut path, &place, *tag, location);
                    if let Some(part) = part {
                        let part_given = self.part(place, ty, Projection::Payload(*tag));
                        todo.push((part, part_given));
                    }
                    test
                }
                Pattern::Record(parts) => {
                    let (place, ty) = self.content(&mut path, &given, location);
                    for (field, part) in parts.iter().enumerate().rev() {
                        let given = self.part(place.clone(), ty, Projection::Field(field as u32));
                        todo.push((part, given));
                    }
                    continue;
                }
                Pattern::Array(parts) => {
                    let (place, ty) = self.content(&mut path, &given, location);
                    for (index, part) in parts.iter().enumerate().rev() {
                        let index = self.materialize(&mut path, Known::Constant(index as i128), TypeTable::I32);
                        let given = self.part(place.clone(), ty, Projection::Element(index));
                        todo.push((part, given));
                    }
                    continue;
                }
            };
            match test {
                Known::Constant(0) => return then(self, path, false),
                Known::Constant(_) => {}
                Known::Value(test) => {
                    return self.fork_at(path, test, location, &mut |explorer, path, holds| {
                        if holds {
                            explorer.matching(path, reader, location, todo.clone(), then)
                        } else {
                            then(explorer, path, false)
                        }
                    });
                }
            }
        }
        then(self, path, true)
    }

    fn equals(&mut self, path: &mut Path, given: &Given, value: i128, location: Location) -> Known {
        let (Given::Value(_, ty) | Given::Place(_, ty)) = given;
        let scalar = self.scalar(path, given, location);
        self.compare(path, scalar, Known::Constant(value), *ty, location)
    }

    fn compare(&mut self, path: &mut Path, a: Known, b: Known, ty: TypeId, location: Location) -> Known {
        let (fact_a, fact_b) = (path.state.fact(self.group, a, ty), path.state.fact(self.group, b, ty));
        let fact = crate::facts::binary(self.group.types(), TypeTable::BOOL, BinaryOp::Equal, ty, &fact_a, &fact_b);
        if let Some(truth) = fact.as_constant() {
            return Known::Constant(truth);
        }
        let left = self.materialize(path, a, ty);
        let right = self.materialize(path, b, ty);
        let result = self.test(path, Op::Binary(BinaryOp::Equal, left, right), location);
        if let Known::Value(value) = result {
            path.state.tests.insert(value, super::state::Test::Compare(BinaryOp::Equal, a, b, ty));
        }
        result
    }

    fn tag_is(&mut self, path: &mut Path, place: &Place, tag: u32, location: Location) -> Known {
        let steps = super::path::tag_steps(place);
        if let Some(fact) = steps.as_ref().and_then(|steps| path.state.tags.get(steps)) {
            if !fact.admits(i128::from(tag)) {
                return Known::Constant(0);
            }
            if fact.as_constant().is_some() {
                return Known::Constant(1);
            }
        }
        let read = self.out.value(TypeTable::U32, None);
        self.out.emit(path.block, Some(read), Op::Tag(place.clone()), location);
        if let Some(steps) = steps {
            if let Some(fact) = path.state.tags.get(&steps) {
                path.state.facts.insert(read, fact.clone());
            }
            path.state.reads.insert(read, steps);
        }
        self.compare(path, Known::Value(read), Known::Constant(i128::from(tag)), TypeTable::U32, location)
    }

    fn test(&mut self, path: &mut Path, op: Op, location: Location) -> Known {
        let value = self.out.value(TypeTable::BOOL, None);
        self.out.emit(path.block, Some(value), op, location);
        Known::Value(value)
    }

    /// The scalar or reference that was given.
    fn scalar(&mut self, path: &mut Path, given: &Given, location: Location) -> Known {
        match given {
            Given::Value(known, _) => *known,
            Given::Place(place, ty) => {
                let value = self.out.value(*ty, None);
                self.out.emit(path.block, Some(value), Op::Load(place.clone()), location);
                Known::Value(value)
            }
        }
    }

    /// The memory that a pattern looks into: the given one, or the content of the object referred to.
    fn content(&mut self, path: &mut Path, given: &Given, location: Location) -> (Place, TypeId) {
        let (Given::Value(_, ty) | Given::Place(_, ty)) = given;
        match self.group.types().get(*ty) {
            Type::Boxed(pool) => {
                let reference = self.scalar(path, given, location);
                let reference = self.materialize(path, reference, *ty);
                let content = self.group.types().pool(*pool).content;
                (Place { base: Base::Object(reference), path: Vec::new() }, content)
            }
            _ => match given {
                Given::Place(place, ty) => (place.clone(), *ty),
                Given::Value(..) => unreachable!("patterns look into memory only"),
            },
        }
    }

    fn part(&self, mut place: Place, ty: TypeId, step: Projection) -> Given {
        let types = self.group.types();
        let part = match (step, types.get(ty)) {
            (Projection::Field(part) | Projection::Payload(part), Type::Record(id) | Type::Union(id)) => {
                types.aggregate(*id).parts[part as usize].1.expect("only parts that have a type are reached")
            }
            (Projection::Element(_) | Projection::Inside(_), Type::Array { length: _, element }) => *element,
            (step, other) => unreachable!("{step:?} does not lead into {other:?}"),
        };
        place.path.push(step);
        Given::Place(place, part)
    }

    /// An operand of the residue for what was given.
    pub(super) fn operand(&mut self, path: &mut Path, given: &Given) -> Operand {
        match given {
            Given::Value(known, ty) => Operand::Value(self.materialize(path, *known, *ty)),
            Given::Place(place, _) => Operand::Place(place.clone()),
        }
    }

    /// Binds what patterns keep: slots are written, the values of parameters are returned in order.
    fn bind(
        &mut self,
        path: &mut Path,
        reader: usize,
        patterns: &'p [Pattern],
        given: &[(Given, Passed)],
        location: Location,
    ) -> Vec<(Known, TypeId)> {
        let mut bound = Vec::new();
        let mut todo: Vec<(&Pattern, Given)> =
            patterns.iter().zip(given).rev().map(|(pattern, (given, _))| (pattern, given.clone())).collect();
        while let Some((pattern, given)) = todo.pop() {
            match pattern {
                Pattern::Any
                | Pattern::Constant(_)
                | Pattern::Bytes(_)
                | Pattern::OwnId
                | Pattern::Equal(_)
                | Pattern::Tag(_, None) => {}
                Pattern::Bind(Bind::Parameter(number)) => {
                    let (Given::Value(_, ty) | Given::Place(_, ty)) = given;
                    let known = self.scalar(path, &given, location);
                    bound.push((*number, known, ty));
                }
                Pattern::Bind(Bind::Slot(slot)) => {
                    let Given::Place(from, _) = given else { unreachable!("slots hold what lies in memory") };
                    let slot = SlotId(slot.0 + self.group.members[reader].first_slot);
                    let op = Op::Copy { to: Place { base: Base::Slot(slot), path: Vec::new() }, from };
                    self.note_writes(path, &op);
                    self.out.emit(path.block, None, op, location);
                }
                Pattern::Tag(tag, Some(part)) => {
                    let (place, ty) = self.content(path, &given, location);
                    let given = self.part(place, ty, Projection::Payload(*tag));
                    todo.push((part, given));
                }
                Pattern::Record(parts) => {
                    let (place, ty) = self.content(path, &given, location);
                    for (field, part) in parts.iter().enumerate() {
                        let given = self.part(place.clone(), ty, Projection::Field(field as u32));
                        todo.push((part, given));
                    }
                }
                Pattern::Array(parts) => {
                    let (place, ty) = self.content(path, &given, location);
                    for (index, part) in parts.iter().enumerate() {
                        let index = self.materialize(path, Known::Constant(index as i128), TypeTable::I32);
                        let given = self.part(place.clone(), ty, Projection::Element(index));
                        todo.push((part, given));
                    }
                }
            }
        }
        bound.sort_by_key(|(number, _, _)| *number);
        bound.into_iter().map(|(_, known, ty)| (known, ty)).collect()
    }

    pub(super) fn set_parameters(&self, path: &mut Path, member: usize, block: BlockId, bound: &[(Known, TypeId)]) {
        let parameters = &self.group.members[member].body.blocks[block.0 as usize].parameters;
        for (parameter, (known, _)) in parameters.iter().zip(bound) {
            path.state.values.insert((member, *parameter), *known);
        }
    }

    /// The message is taken: counts move, both go on.
    fn commit(
        &mut self,
        mut path: Path,
        meeting: Meeting,
        bound: &[(Known, TypeId)],
        given: &[(Given, Passed)],
    ) -> Result<(), Refusal> {
        let (writer, written, reader, read) = meeting;
        let branch = self.branch(&path, reader, read);
        let location = self.branch(&path, writer, written).location;
        let Operation::In { patterns, .. } = &branch.operation else { unreachable!("a reader reads") };
        let types = self.group.types();
        let mut retained: Vec<Operand> = Vec::new();
        for (known, ty) in bound {
            if holds_boxed(types, *ty) {
                retained.push(Operand::Value(self.materialize(&mut path, *known, *ty)));
            }
        }
        let mut slots = Vec::new();
        patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot)));
        for slot in slots {
            if holds_boxed(types, self.group.members[reader].body.slots[slot.0 as usize].ty) {
                let slot = SlotId(slot.0 + self.group.members[reader].first_slot);
                retained.push(Operand::Place(Place { base: Base::Slot(slot), path: Vec::new() }));
            }
        }
        let mut released = Vec::new();
        for (given, passed) in given {
            let (Given::Value(_, ty) | Given::Place(_, ty)) = given;
            if passed.transfer == Transfer::Move && holds_boxed(types, *ty) {
                let operand = self.operand(&mut path, given);
                // A count that is added and removed again need not be touched.
                match retained.iter().position(|retained| *retained == operand) {
                    Some(position) => drop(retained.remove(position)),
                    None => released.push(operand),
                }
            }
        }
        for operand in retained {
            self.out.emit(path.block, None, Op::Retain(operand), location);
        }
        for operand in released {
            self.out.emit(path.block, None, Op::Release(operand), location);
        }
        let sites = (site(&self.branch(&path, writer, written).operation), site(&branch.operation));
        self.set_parameters(&mut path, reader, branch.then, bound);
        self.leave(&mut path, reader, (read, writer as u32));
        self.leave(&mut path, writer, (written, reader as u32));
        if self.course.is_some() {
            return self.after_meeting(path, meeting, sites);
        }
        self.go_on(path)
    }
}
