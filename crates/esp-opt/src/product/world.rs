//! What is left of waits when no members can meet: one wait for everything that members want of the world, and what
//! becomes of the members when there is nothing to wait for (reference, section 8, rest).

use super::explore::Explorer;
use super::meet::{Open, WORLD};
use super::path::Path;
use super::state::{At, Hope, Known, Since};
use crate::refusal::Refusal;
use quaject_esp_ir::cfg::{Regions, edges_mut, successors};
use quaject_esp_ir::ir::{
    AltOrder, Base, BinaryOp, Bind, BlockId, Blocking, Branch, ChannelId, Direction, Fault, Guard, Location, Op,
    Operand, Operation, Passed, Pattern, Payload, SiteId, SlotId, Terminator, TypeTable, Value, Wait,
};
use quaject_esp_ir::visit::{bound_slots, op_slots_mut, op_values_mut, pattern_operands_mut, terminator_values_mut};
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
        let (stuck, gone): (Vec<usize>, Vec<usize>) =
            self.stuck(&path).into_iter().partition(|member| self.standing(&path, *member).is_some());
        if !stuck.is_empty() || !gone.is_empty() {
            path.state.is_lost = Some(true);
        }
        let has_gone = path.state.members.iter().any(|member| matches!(member.at, At::Gone(_)));
        if has_gone && path.state.is_lost.is_none() {
            return self.ask_whether_lost(path, &mut |explorer, path| explorer.ask_world(path, preferred));
        }
        let is_stuck = path.state.is_lost == Some(true);
        if branches.is_empty() {
            if !is_stuck {
                self.out.finish(path.block, Terminator::End, Location::default());
            } else {
                self.wait_in_vain(&path, &stuck, &gone);
            }
            return Ok(());
        }
        if is_stuck && !self.group.has_others {
            // The world may still take a branch; once it does not, the deadlock is there.
            return self.poll(path, branches, &mut |explorer, path| {
                explorer.wait_in_vain(&path, &stuck, &gone);
                Ok(())
            });
        }
        path.state.has_rested = true;
        self.wait(path, branches, None)
    }

    /// Whether any of the members that are gone without hope waits for ever; else all of them have ended.
    fn ask_whether_lost(&mut self, mut path: Path, then: GoOn<'_, 'g, 'p>) -> Result<(), Refusal> {
        let lost = path.state.members.iter().filter(|member| member.at == At::Gone(Hope::NONE));
        let places: Vec<Known> = lost.filter_map(|member| member.rests_at).collect();
        if places.iter().any(|place| matches!(place, Known::Constant(place) if *place != 0)) {
            path.state.is_lost = Some(true);
            return then(self, path);
        }
        let unknown = places.into_iter().filter_map(|place| match place {
            Known::Value(place) => Some(place),
            Known::Constant(_) => None,
        });
        let all = unknown.reduce(|a, b| {
            let both = self.out.value(TypeTable::U32, None);
            self.out.emit(path.block, Some(both), Op::Binary(BinaryOp::BitOr, a, b), Location::default());
            both
        });
        let Some(all) = all else {
            path.state.is_lost = Some(false);
            return then(self, path);
        };
        let none = self.materialize(&mut path, Known::Constant(0), TypeTable::U32);
        let is_any = self.out.value(TypeTable::BOOL, None);
        self.out.emit(path.block, Some(is_any), Op::Binary(BinaryOp::NotEqual, all, none), Location::default());
        self.fork_at(path, is_any, Location::default(), &mut |explorer, mut path, holds| {
            path.state.is_lost = Some(holds);
            then(explorer, path)
        })
    }

    /// The members that nothing can wake, even if the world writes and reads for ever, and that are not at idle points. Of
    /// those who are gone, the ones that had hopes.
    fn stuck(&self, path: &Path) -> Vec<usize> {
        let count = self.group.members.len();
        let mut wakeable: Vec<bool> = (0..count).map(|member| !self.outside(path, member).is_empty()).collect();
        let uses = |member: usize, channel, direction: Direction| {
            path.state.members[member].at != At::Ended && self.has_site(member, channel, direction)
        };
        let meets = |member: usize, wakeable: &[bool], (channel, direction): (ChannelId, Direction)| {
            let mut others = (0..count).filter(|partner| *partner != member && wakeable[*partner]);
            self.group.is_internal(channel) && others.any(|partner| uses(partner, channel, direction.other()))
        };
        let wakes = |member: usize, wakeable: &[bool]| match path.state.members[member].at {
            At::Waiting(block) => {
                let branches = self.group.wait(member, block).branches.iter();
                let mut open = branches.filter(|branch| self.open(path, member, branch.guard) != Open::No);
                open.any(|branch| match branch.operation.channel_end() {
                    Some(operation) => meets(member, wakeable, operation),
                    None => true,
                })
            }
            At::Gone(hope) => self.hopes[hope.0].iter().any(|operation| meets(member, wakeable, *operation)),
            At::Running(_) | At::Yielding(..) | At::Ended => false,
        };
        while let Some(member) = (0..count).find(|member| !wakeable[*member] && wakes(*member, &wakeable)) {
            wakeable[member] = true;
        }
        let may_not_rest = |member: &usize| match path.state.members[*member].at {
            At::Waiting(block) => self.group.wait(*member, block).blocking == Blocking::Deadlock,
            At::Gone(hope) => hope != Hope::NONE,
            At::Running(_) | At::Yielding(..) | At::Ended => false,
        };
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
        let all_idle = members.enumerate().all(|(member, (state, _))| match self.standing(&path, member) {
            Some((_, wait)) => wait.blocking == Blocking::MayBlockForever,
            None => !matches!(state.at, At::Gone(hope) if hope != Hope::NONE),
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
        let blocking =
            if all_idle && path.state.is_lost != Some(true) { Blocking::MayBlockForever } else { Blocking::Deadlock };
        let waiting: Vec<usize> = (0..self.group.members.len())
            .filter(|member| self.standing(&path, *member).is_some_and(|(_, wait)| wait.blocking == Blocking::Deadlock))
            .collect();
        // Who polls does not rest here, and a path is left before a deadlock.
        let can_end = otherwise.is_none() && self.course.is_none();
        let wait = Wait { order, blocking, branches: asked, otherwise, observed: Vec::new(), members: Vec::new() };
        if can_end {
            self.tell_later(&path, wait, (&waiting, &[]), location);
        } else {
            self.out.finish(path.block, Terminator::Wait(wait), location);
        }
        for (member, number, then, parameters) in ways {
            let mut way = path.clone();
            way.block = then;
            let (_, wait) = self.standing(&way, member).expect("who asks the world waits");
            let branch = &wait.branches[number as usize];
            if let Operation::In { patterns, .. } = &branch.operation {
                let mut slots = Vec::new();
                patterns.iter().for_each(|pattern| bound_slots(pattern, &mut |slot| slots.push(slot)));
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
        pattern_operands_mut(&mut renamed, &mut |operand| {
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
            work.extend(successors(&source.terminator, Regions::Include));
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
                op_values_mut(&mut op, &mut |value| rename(self, value));
                op_slots_mut(&mut op, &mut |slot| *slot = SlotId(slot.0 + first_slot));
                let result = instruction.result.map(|result| values[&result]);
                self.out.emit(copy, result, op, instruction.location);
            }
            let mut terminator = source.terminator.clone();
            terminator_values_mut(&mut terminator, &mut |value| rename(self, value));
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
