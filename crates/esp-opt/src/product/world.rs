//! What is left of waits when no members can meet: one wait for everything that members want of the world, and what
//! becomes of the members when there is nothing to wait for (reference, section 8, rest).

use super::explore::Explorer;
use super::meet::{Open, WORLD};
use super::path::Path;
use super::state::{At, Known, Since};
use crate::fuse::Refusal;
use quaject_esp_ir::ir::{
    AltOrder, Base, Bind, BlockId, Branch, ChannelId, Direction, Fault, Guard, Location, Op, Operand, Operation,
    Passed, Pattern, Payload, Rest, SiteId, SlotId, Terminator, Value, Wait,
};
use quaject_esp_ir::report::WaitsFor;
use quaject_esp_ir::visit::{edges_mut, op_slots, op_values, pattern_operands, terminator_values};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;

/// What goes on after a wait, by the state it is in.
type GoOn<'c, 'g, 'p> = &'c mut dyn FnMut(&mut Explorer<'g, 'p>, Path) -> Result<(), Refusal>;

impl<'g, 'p> Explorer<'g, 'p> {
    /// The branches of a waiting member that the world can take, unless their guards are false.
    pub(super) fn outside(&self, path: &Path, member: usize) -> Vec<(usize, u32)> {
        let Some((_, wait)) = self.standing(path, member) else { return Vec::new() };
        let branches = wait.branches.iter().enumerate();
        branches
            .filter(|(_, branch)| match &branch.operation {
                Operation::In { channel, .. } | Operation::Out { channel, .. } => !self.group.is_internal(*channel),
                // Who follows a path does not wait for a time on it.
                Operation::After { .. } => self.course.is_none(),
            })
            .filter(|(_, branch)| self.open(path, member, branch.guard) != Open::No)
            .map(|(index, _)| (member, index as u32))
            .collect()
    }

    /// No members can meet: the world is asked, an `else` is taken, who has yielded goes on, or nothing will ever happen
    /// again.
    pub(super) fn ask_world(&mut self, mut path: Path, preferred: &BTreeSet<usize>) -> Result<(), Refusal> {
        let members = 0..self.group.members.len();
        let branches: Vec<(usize, u32)> = members.clone().flat_map(|member| self.outside(&path, member)).collect();
        let alternatives = members.clone().filter_map(|member| {
            let (_, wait) = self.standing(&path, member)?;
            wait.otherwise.map(|block| (member, block))
        });
        let alternatives: Vec<(usize, BlockId)> = alternatives.collect();
        self.note_enabled(alternatives.iter().map(|(member, _)| *member));
        let alternative = alternatives.iter().max_by_key(|(member, _)| (preferred.contains(member), *member));
        if let Some((member, block)) = alternative.copied() {
            return self.poll(path, branches, &mut |explorer, mut path| {
                path.state.moved.insert(member);
                path.state.refuted.retain(|(writer, _, reader, _)| *writer != member && *reader != member);
                path.state.members[member].at = At::Running(block);
                path.state.prune(explorer.group, member);
                explorer.others_have_gone_on(&mut path);
                explorer.go_on(path)
            });
        }
        if let Some(member) = self.next_after_yield(&path, Since::Nothing) {
            return self.poll(path, branches, &mut |explorer, path| explorer.go_on_after_yield(path, member));
        }
        for member in members.clone() {
            let Some((block, wait)) = self.standing(&path, member) else { continue };
            let is_open = wait.branches.iter().any(|branch| self.open(&path, member, branch.guard) == Open::Yes);
            let unknown = wait.branches.iter().find(|branch| self.open(&path, member, branch.guard) == Open::Perhaps);
            // If it may be that none is open, that is found out one by one.
            if let (false, Some(Branch { guard: Guard::Value(guard), location, .. })) = (is_open, unknown) {
                let again = &mut |explorer: &mut Explorer<'g, 'p>, path: Path, _| explorer.ask_world(path, preferred);
                return self.fork(path, member, *guard, *location, again);
            }
            if !is_open {
                let location = self.group.members[member].body.blocks[block.0 as usize].location;
                self.out.finish(path.block, Terminator::Fault(Fault::Alt), location);
                return Ok(());
            }
        }
        let stuck = self.stuck(&path);
        if branches.is_empty() {
            if stuck.is_empty() {
                self.out.finish(path.block, Terminator::End, Location::default());
            } else {
                self.wait_in_vain(&path, &stuck);
            }
            return Ok(());
        }
        if !stuck.is_empty() && !self.group.has_others {
            // The world may still take a branch; once it does not, the deadlock is there.
            return self.poll(path, branches, &mut |explorer, path| {
                explorer.wait_in_vain(&path, &stuck);
                Ok(())
            });
        }
        path.state.has_rested = true;
        self.wait(path, branches, None)
    }

    /// Waits where these members wait, for what never happens: a deadlock, once everybody else rests, too.
    fn wait_in_vain(&mut self, path: &Path, stuck: &[usize]) {
        let waits = self.waits_of(path, stuck);
        let branch = waits.first().and_then(|first| {
            let (channel, _) = first.operation?;
            // The other members who could use this channel are stuck like this one.
            let site = self
                .group
                .sites()
                .iter()
                .position(|site| site.channel == channel && site.direction == Direction::In)?;
            let patterns = self.group.program.channels[channel.0 as usize].payload.iter().map(|_| Pattern::Any);
            let operation =
                Operation::In { site: SiteId(site as u32), channel, patterns: patterns.collect(), condition: None };
            Some((operation, first.location))
        });
        let Some((operation, location)) = branch else {
            let location = waits.first().map(|first| first.location).unwrap_or_default();
            return self.out.finish(path.block, Terminator::Fault(Fault::Deadlock), location);
        };
        let then = self.out.block(Vec::new());
        let wait = Wait {
            order: AltOrder::Fair,
            rest: Rest::Stuck,
            branches: vec![Branch { guard: Guard::Open, operation, then, location }],
            otherwise: None,
            observed: Vec::new(),
            members: waits,
        };
        self.out.finish(path.block, Terminator::Wait(wait), location);
    }

    /// What these members wait for, as a deadlock is told.
    fn waits_of(&self, path: &Path, members: &[usize]) -> Vec<WaitsFor> {
        let mut waits = Vec::new();
        for member in members {
            let Some((block, wait)) = self.standing(path, *member) else { continue };
            let instance = self.group.members[*member].instance;
            let first = waits.len();
            for branch in &wait.branches {
                let (channel, direction) = match &branch.operation {
                    Operation::In { channel, .. } => (*channel, Direction::In),
                    Operation::Out { channel, .. } => (*channel, Direction::Out),
                    Operation::After { .. } => continue,
                };
                if self.open(path, *member, branch.guard) != Open::No {
                    let partners = self.partners_of(path, *member, channel, direction);
                    let (operation, location) = (Some((channel, direction)), branch.location);
                    waits.push(WaitsFor { instance, location, operation, partners });
                }
            }
            if waits.len() == first {
                let location = self.group.members[*member].body.blocks[block.0 as usize].location;
                waits.push(WaitsFor { instance, location, operation: None, partners: Vec::new() });
            }
        }
        waits.sort_by_key(|wait| wait.instance);
        waits
    }

    /// The instances that could meet a member on a channel: other members that have not ended, and all outside.
    fn partners_of(&self, path: &Path, member: usize, channel: ChannelId, direction: Direction) -> Vec<u32> {
        let program = self.group.program;
        let users = self.group.users.get(&channel).into_iter().flatten();
        let instances = users.filter(|(_, other)| *other != direction).flat_map(|(process, _)| {
            let first = program.first_instance(*process);
            first..first + program.processes[process.0 as usize].replicas
        });
        let is_left = |instance: &u32| {
            let number = self.group.members.iter().position(|other| other.instance == *instance);
            number.is_none_or(|other| other != member && path.state.members[other].at != At::Ended)
        };
        instances.filter(is_left).collect()
    }

    /// The members that nothing can wake, even if the world writes and reads for ever, and that are not at idle points.
    fn stuck(&self, path: &Path) -> Vec<usize> {
        let count = self.group.members.len();
        let mut wakeable: Vec<bool> = (0..count).map(|member| !self.outside(path, member).is_empty()).collect();
        let uses = |member: usize, channel, direction: Direction| {
            let process = self.group.members[member].process;
            let sites = &self.group.program.processes[process.0 as usize].sites;
            path.state.members[member].at != At::Ended
                && sites.iter().any(|site| site.channel == channel && site.direction == direction)
        };
        loop {
            let mut grown = false;
            for member in 0..count {
                let Some((_, wait)) = self.standing(path, member) else { continue };
                let wakes = |branch: &Branch| {
                    let (channel, other) = match &branch.operation {
                        Operation::In { channel, .. } => (*channel, Direction::Out),
                        Operation::Out { channel, .. } => (*channel, Direction::In),
                        Operation::After { .. } => return self.open(path, member, branch.guard) != Open::No,
                    };
                    self.open(path, member, branch.guard) != Open::No
                        && self.group.is_internal(channel)
                        && (0..count)
                            .any(|partner| partner != member && wakeable[partner] && uses(partner, channel, other))
                };
                if !wakeable[member] && wait.branches.iter().any(wakes) {
                    wakeable[member] = true;
                    grown = true;
                }
            }
            if !grown {
                break;
            }
        }
        let may_not_rest =
            |member: &usize| self.standing(path, *member).is_some_and(|(_, wait)| wait.rest == Rest::Stuck);
        (0..count).filter(|member| !wakeable[*member]).filter(may_not_rest).collect()
    }

    /// Takes one of these branches if the world is ready for it, else goes on.
    pub(super) fn poll(
        &mut self,
        mut path: Path,
        branches: Vec<(usize, u32)>,
        otherwise: GoOn<'_, 'g, 'p>,
    ) -> Result<(), Refusal> {
        if branches.is_empty() {
            return otherwise(self, path);
        }
        let waiting = path.clone();
        path.block = self.out.block(Vec::new());
        self.wait(waiting, branches.clone(), Some(path.block))?;
        path.state.polled.extend(branches.iter().map(|(member, _)| *member));
        // Constants made for the wait do not reach the other block by this path.
        otherwise(self, path)
    }

    fn wait(&mut self, mut path: Path, branches: Vec<(usize, u32)>, otherwise: Option<BlockId>) -> Result<(), Refusal> {
        let order = self.order(&path, &branches)?;
        let members = path.state.members.iter().zip(&self.group.members);
        let all_idle = members.enumerate().all(|(member, _)| match self.standing(&path, member) {
            Some((_, wait)) => wait.rest == Rest::Idle,
            None => true,
        });
        let mut asked = Vec::new();
        let mut ways = Vec::new();
        let mut location = Location::default();
        for (member, number) in branches {
            let (_, wait) = self.standing(&path, member).expect("who asks the world waits");
            let branch = &wait.branches[number as usize];
            location = branch.location;
            path.state.polled.insert(member);
            let guard = match branch.guard {
                Guard::Open => Guard::Open,
                Guard::Value(value) => match self.known(&path, member, value) {
                    Known::Constant(_) => Guard::Open,
                    Known::Value(value) => Guard::Value(value),
                },
                Guard::Region(_) => unreachable!("groups have no guards that ask `free`"),
            };
            let operation = self.operation(&mut path, member, &branch.operation);
            let parameters: Vec<Value> = self.group.members[member].body.blocks[branch.then.0 as usize]
                .parameters
                .iter()
                .map(|parameter| {
                    let data = &self.group.members[member].body.values[parameter.0 as usize];
                    self.out.value(data.ty, data.name.clone())
                })
                .collect();
            let then = self.out.block(parameters.clone());
            asked.push(Branch { guard, operation, then, location: branch.location });
            ways.push((member, number, then, parameters));
        }
        let rest = if all_idle { Rest::Idle } else { Rest::Stuck };
        let waiting: Vec<usize> = (0..self.group.members.len())
            .filter(|member| self.standing(&path, *member).is_some_and(|(_, wait)| wait.rest == Rest::Stuck))
            .collect();
        // Who polls does not rest here, and a path is left before a deadlock.
        let can_end = otherwise.is_none() && self.course.is_none();
        let members = if can_end { self.waits_of(&path, &waiting) } else { Vec::new() };
        let wait = Wait { order, rest, branches: asked, otherwise, observed: Vec::new(), members };
        self.out.finish(path.block, Terminator::Wait(wait), location);
        for (member, number, then, parameters) in ways {
            let mut way = path.clone();
            way.block = then;
            let (_, wait) = self.standing(&way, member).expect("who asks the world waits");
            let branch = &wait.branches[number as usize];
            if let Operation::In { patterns, .. } = &branch.operation {
                let mut slots = Vec::new();
                patterns.iter().for_each(|pattern| super::group::bound_slots(pattern, &mut slots));
                for slot in slots {
                    way.state.forget_tags(SlotId(slot.0 + self.group.members[member].first_slot), &[]);
                }
            }
            let known: Vec<_> = parameters
                .iter()
                .map(|value| (Known::Value(*value), self.out.body.values[value.0 as usize].ty))
                .collect();
            if let Guard::Value(value) = branch.guard
                && let Known::Value(guard) = self.known(&way, member, value)
            {
                way.state.assume(self.group, guard, true);
            }
            self.set_parameters(&mut way, member, branch.then, &known);
            if let (Some(_), Some(site)) = (self.course, super::course::site(&branch.operation)) {
                self.advance(&mut way, member, site);
            }
            self.leave(&mut way, member, (number, WORLD));
            self.go_on(way)?;
        }
        Ok(())
    }

    /// How the world chooses: a `pri alt` keeps its order when it waits alone.
    fn order(&self, path: &Path, branches: &[(usize, u32)]) -> Result<AltOrder, Refusal> {
        let mut order = AltOrder::Fair;
        for (member, _) in branches {
            let (block, wait) = self.standing(path, *member).expect("who asks the world waits");
            let own = branches.iter().filter(|(other, _)| other == member).count();
            if wait.order == AltOrder::Priority && own > 1 {
                if own < branches.len() {
                    let known = &self.group.members[*member];
                    return Err(Refusal::Unsupported {
                        process: known.process,
                        what: "a `pri alt` beside others that wait for the world",
                        location: known.body.blocks[block.0 as usize].location,
                    });
                }
                order = AltOrder::Priority;
            }
        }
        Ok(order)
    }

    fn operation(&mut self, path: &mut Path, member: usize, operation: &Operation) -> Operation {
        let first_site = self.group.members[member].first_site;
        match operation {
            Operation::In { site, channel, patterns, condition } => Operation::In {
                site: SiteId(site.0 + first_site),
                channel: *channel,
                patterns: patterns.iter().map(|pattern| self.pattern(path, member, pattern)).collect(),
                condition: condition.map(|entry| self.copy_region(path, member, entry)),
            },
            Operation::Out { site, channel, payload } => Operation::Out {
                site: SiteId(site.0 + first_site),
                channel: *channel,
                payload: match payload {
                    Payload::Ready(passed) => Payload::Ready(self.passed(path, member, passed)),
                    Payload::Region(entry) => Payload::Region(self.copy_region(path, member, *entry)),
                },
            },
            Operation::After { amount, unit } => {
                Operation::After { amount: self.value(path, member, *amount), unit: *unit }
            }
        }
    }

    fn passed(&mut self, path: &mut Path, member: usize, passed: &[Passed]) -> Vec<Passed> {
        let renamed = passed.iter().map(|one| {
            let given = self.given(path, member, &one.operand);
            Passed { operand: self.operand(path, &given), transfer: one.transfer }
        });
        renamed.collect()
    }

    fn pattern(&mut self, path: &mut Path, member: usize, pattern: &Pattern) -> Pattern {
        let mut renamed = pattern.clone();
        pattern_operands(&mut renamed, &mut |operand| {
            let given = self.given(path, member, operand);
            *operand = self.operand(path, &given);
        });
        let first_slot = self.group.members[member].first_slot;
        rename_binds(&mut renamed, first_slot, i128::from(self.group.members[member].instance));
        renamed
    }

    /// Copies a region into the residue; what it reads of the member is what is known now.
    fn copy_region(&mut self, path: &mut Path, member: usize, entry: BlockId) -> BlockId {
        let body = self.group.members[member].body;
        let first_slot = self.group.members[member].first_slot;
        let mut blocks: FxHashMap<BlockId, BlockId> = FxHashMap::default();
        let mut values: FxHashMap<Value, Value> = FxHashMap::default();
        let mut work = vec![entry];
        while let Some(block) = work.pop() {
            if blocks.contains_key(&block) {
                continue;
            }
            let copy = self.out.block(Vec::new());
            blocks.insert(block, copy);
            let source = &body.blocks[block.0 as usize];
            let results = source.instructions.iter().filter_map(|instruction| instruction.result);
            for value in source.parameters.iter().copied().chain(results) {
                let data = &body.values[value.0 as usize];
                values.insert(value, self.out.value(data.ty, data.name.clone()));
            }
            work.extend(quaject_esp_ir::graph::successors(&source.terminator));
        }
        let mut order: Vec<BlockId> = blocks.keys().copied().collect();
        order.sort_unstable();
        for block in order {
            let source = &body.blocks[block.0 as usize];
            let copy = blocks[&block];
            self.out.body.blocks[copy.0 as usize].parameters =
                source.parameters.iter().map(|parameter| values[parameter]).collect();
            let mut rename = |explorer: &mut Self, value: &mut Value| {
                *value = match values.get(value) {
                    Some(copy) => *copy,
                    None => explorer.value(path, member, *value),
                };
            };
            for instruction in &source.instructions {
                let mut op = instruction.op.clone();
                if let Op::OwnId = op {
                    op = Op::Constant(i128::from(self.group.members[member].instance));
                }
                op_values(&mut op, &mut |value| rename(self, value));
                op_slots(&mut op, &mut |slot| *slot = SlotId(slot.0 + first_slot));
                let result = instruction.result.map(|result| values[&result]);
                self.out.emit(copy, result, op, instruction.location);
            }
            let mut terminator = source.terminator.clone();
            terminator_values(&mut terminator, &mut |value| rename(self, value));
            if let Terminator::Result(passed) = &mut terminator {
                for one in passed {
                    rename_slot(&mut one.operand, first_slot);
                }
            }
            edges_mut(&mut terminator).into_iter().for_each(|edge| edge.to = blocks[&edge.to]);
            self.out.finish(copy, terminator, source.location);
        }
        blocks[&entry]
    }
}

fn rename_slot(operand: &mut Operand, first_slot: u32) {
    if let Operand::Place(place) = operand
        && let Base::Slot(slot) = &mut place.base
    {
        slot.0 += first_slot;
    }
}

fn rename_binds(pattern: &mut Pattern, first_slot: u32, instance: i128) {
    match pattern {
        Pattern::Bind(Bind::Slot(slot)) => slot.0 += first_slot,
        Pattern::OwnId => *pattern = Pattern::Constant(instance),
        Pattern::Tag(_, Some(part)) => rename_binds(part, first_slot, instance),
        Pattern::Record(parts) | Pattern::Array(parts) => {
            parts.iter_mut().for_each(|part| rename_binds(part, first_slot, instance));
        }
        Pattern::Any
        | Pattern::Bind(Bind::Parameter(_))
        | Pattern::Constant(_)
        | Pattern::Bytes(_)
        | Pattern::Equal(_)
        | Pattern::Tag(_, None) => {}
    }
}
