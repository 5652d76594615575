//! The steps from a state given as numbers of parts, looked up among those that `learn` has worked out. Programs with
//! pools, where one step can concern all instances, are stepped as a whole.

use crate::learn::{Info, MOST_FUEL};
use crate::options::{Limit, Limits};
use crate::parts::PartId;
use crate::space::{Space, Stepping};
use crate::store;
use crate::surroundings::{Resting, Surroundings};
use quaject_esp_exec::coverage::Coverage;
use quaject_esp_exec::lost::Holders;
use quaject_esp_exec::priority;
use quaject_esp_exec::report::{FaultReport, Outcome};
use quaject_esp_exec::step::{Checks, Machine, State, Step, TooLarge};
use quaject_esp_ir::ir::{MemoryMode, PoolId};
use rustc_hash::FxHashMap;
use std::sync::Arc;
use std::time::Instant;

/// Most remembered meetings of two instances.
const MOST_MEETINGS: usize = 1 << 23;
/// No information yet.
pub(crate) const UNKNOWN: u32 = u32::MAX;

/// One step and what it leads to.
#[derive(Clone, Debug)]
pub(crate) struct Move {
    pub(crate) step: Step,
    /// The message that the world sends, by its number among all of the channel.
    pub(crate) message: Option<u32>,
    /// What extern functions return, in order of calls, by number.
    pub(crate) choices: Box<[u32]>,
    /// The slots that change, and to what.
    pub(crate) changes: Box<[(u32, PartId)]>,
    /// The slot that counts messages, if the channel is bounded.
    pub(crate) counter: Option<u32>,
    pub(crate) end: MoveEnd,
}

impl Move {
    /// Whether it ends in this fault, or in the same one of another replica.
    pub(crate) fn is_like(&self, report: &FaultReport) -> bool {
        let what = |report: &FaultReport| (report.fault, report.location, report.name.clone());
        matches!(&self.end, MoveEnd::Fails(own) if what(own) == what(report))
    }
}

/// How a step ends.
#[derive(Clone, Debug)]
pub(crate) enum MoveEnd {
    /// The program goes on.
    Goes,
    /// It has ended.
    Exits,
    /// It has been stopped.
    Fails(Box<FaultReport>),
    /// The step itself does not end.
    Endless(u32),
}

/// A move that has been worked out, by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MoveRef(pub(crate) u32);

/// What a move does to the numbers of a state and to its hash: short for those that are taken again and again.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Hop {
    /// It has not been taken yet.
    Unknown,
    /// Two slots change, or the same one twice.
    Short { slots: [u32; 2], parts: [PartId; 2], change: u64 },
    /// More than that.
    Long,
}

/// One thread's view of a space, with all it has worked out so far.
pub(crate) struct Mover<'m> {
    pub(crate) space: &'m Space<'m>,
    pub(crate) machine: Machine<'m>,
    pub(crate) state: State,
    pub(crate) world: Surroundings,
    /// Per slot and part: the number of what is known of it.
    pub(crate) known: Vec<Vec<u32>>,
    pub(crate) infos: Vec<Info>,
    /// All moves that are remembered, and what they do.
    pub(crate) moves: Vec<Move>,
    pub(crate) hops: Vec<Hop>,
    /// Who can receive what is on offer, for all infos.
    pub(crate) partners: Vec<u32>,
    /// What happens when two in certain parts meet: a range of `moves`.
    pub(crate) meetings: FxHashMap<(u32, PartId, PartId), (u32, u32)>,
    /// The moves of the state at hand.
    pub(crate) found: Vec<MoveRef>,
    /// Per instance: which of its branches can meet somebody's in the state at hand.
    pub(crate) can: Vec<u64>,
    /// Per move of the state at hand: who takes part, while moves are chosen.
    pub(crate) movers: Vec<u128>,
    pub(crate) bytes: Vec<u8>,
    /// Per instance, for those with labels that a property names: which of them it has passed on its way to where it
    /// stands, in the order of [`Space::watched`].
    pub(crate) marks: Vec<u8>,
    /// Per instance: the variables that a property asks for, as they were where it last waited.
    pub(crate) values: Vec<Vec<i128>>,
    /// What leads to objects, if programs have to release them themselves.
    pub(crate) holders: Option<Holders>,
    /// What was executed before the machine's own record was last cleared.
    pub(crate) executed: Option<Coverage>,
    /// When no more moves are to be worked out, and how much memory those of one state may take.
    pub(crate) deadline: Option<Instant>,
    limits: Limits,
    /// The limit at which moves were left out; those at hand are not all then.
    pub(crate) cut: Option<Limit>,
}

impl<'m> Mover<'m> {
    pub(crate) fn new(space: &'m Space<'m>) -> Result<Mover<'m>, TooLarge> {
        let mut machine = Machine::new(&space.model.program, Checks::On)?;
        machine.watch();
        machine.be_patient(MOST_FUEL);
        let mut state = machine.start();
        for instance in 0..space.instances as u32 {
            if space.is_left_out(instance) {
                state.leave_out(instance);
            }
        }
        let holders = match space.model.program.memory {
            MemoryMode::Manual => Some(machine.holders()),
            MemoryMode::Automatic => None,
        };
        Ok(Mover {
            space,
            holders,
            machine,
            state,
            world: Surroundings::new(Arc::clone(&space.outside)),
            known: (0..space.instances).map(|_| Vec::new()).collect(),
            infos: Vec::new(),
            moves: Vec::new(),
            hops: Vec::new(),
            partners: Vec::new(),
            meetings: FxHashMap::default(),
            found: Vec::new(),
            can: vec![0; space.instances],
            movers: Vec::new(),
            bytes: Vec::new(),
            marks: vec![0; space.instances],
            values: space.observed.iter().map(|names| vec![0; names.len()]).collect(),
            executed: None,
            deadline: None,
            limits: Limits::default(),
            cut: None,
        })
    }

    /// Moves are left out from now on where they would take longer, or more memory, than this from `started` on, or once
    /// somebody wishes the search to end.
    pub(crate) fn limit(&mut self, limits: &Limits, started: Instant) {
        self.deadline = limits.time.and_then(|time| started.checked_add(time));
        self.limits = limits.clone();
    }

    /// Whether a limit is reached while the moves of one state are worked out, so many so far.
    pub(crate) fn is_cut(&mut self, moves: usize) -> bool {
        if self.cut.is_some() {
            return true;
        }
        if self.deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            self.cut = Some(Limit::Time);
        }
        if self.limits.bytes.is_some_and(|most| (moves * size_of::<Move>()) as u64 > most) {
            self.cut = Some(Limit::Memory);
        }
        if self.limits.is_interrupted() {
            self.cut = Some(Limit::Interrupted);
        }
        self.cut.is_some()
    }

    /// The numbers of the first state. To be asked of a new mover.
    pub(crate) fn start(&mut self) -> Vec<u32> {
        let mut numbers = vec![0; self.space.width];
        for slot in 0..self.space.instances as u32 + u32::from(self.space.shared.is_some()) {
            numbers[slot as usize] = self.save(slot);
        }
        numbers
    }

    /// What its machine has executed.
    pub(crate) fn coverage(&mut self) -> Option<Coverage> {
        let mut coverage = self.machine.coverage()?.clone();
        self.executed.iter().for_each(|executed| coverage.add(executed));
        Some(coverage)
    }

    /// Makes the state at hand this one.
    pub(crate) fn load_all(&mut self, numbers: &[u32]) {
        for slot in 0..self.space.instances as u32 + u32::from(self.space.shared.is_some()) {
            self.load(slot, numbers[slot as usize]);
        }
    }

    pub(crate) fn load(&mut self, slot: u32, part: PartId) {
        self.bytes.clear();
        self.space.parts.read(self.space.kinds[slot as usize], part, &mut self.bytes);
        if self.space.shared == Some(slot) {
            self.machine.load_shared(&mut self.state, &self.bytes);
        } else {
            let rest = self.read_watched(slot);
            self.machine.load_instance(&mut self.state, slot, &self.bytes[rest..]);
        }
    }

    pub(crate) fn save(&mut self, slot: u32) -> PartId {
        self.bytes.clear();
        if self.space.shared == Some(slot) {
            self.state.save_shared(&mut self.bytes);
        } else {
            self.write_watched(slot);
            self.state.save_instance(slot, &mut self.bytes);
        }
        self.space.parts.number(self.space.kinds[slot as usize], &self.bytes)
    }

    /// The machine, the state loaded last and the world, for those who tell of a run.
    pub(crate) fn scene(&mut self) -> (&mut Machine<'m>, &mut State, &mut Surroundings) {
        (&mut self.machine, &mut self.state, &mut self.world)
    }

    /// What a state is in which only the world and the clock could go on.
    pub(crate) fn rest(&mut self, numbers: &[u32]) -> Outcome {
        self.load_all(numbers);
        self.rest_at_hand()
    }

    /// Likewise of the state that was loaded or stepped to last.
    pub(crate) fn rest_at_hand(&mut self) -> Outcome {
        self.world.offer(None);
        self.world.rest(Resting::Yes);
        let outcome = self.machine.rest(&mut self.state, &mut self.world);
        self.world.rest(Resting::No);
        outcome
    }

    /// An object that nobody can release any more.
    pub(crate) fn leak(&mut self, numbers: &[u32]) -> Option<PoolId> {
        if self.holders.is_none() || self.space.shared.is_none() {
            return None;
        }
        self.load_all(numbers);
        self.leak_at_hand()
    }

    /// Likewise in the state that was loaded or stepped to last.
    pub(crate) fn leak_at_hand(&self) -> Option<PoolId> {
        self.machine.lost_object(&self.state, self.holders.as_ref()?)
    }

    pub(crate) fn get(&self, found: MoveRef) -> &Move {
        &self.moves[found.0 as usize]
    }

    /// What is known of an instance whose moves have been looked for.
    #[inline]
    pub(crate) fn info(&self, slot: u32, part: PartId) -> &Info {
        &self.infos[self.known[slot as usize][part as usize] as usize]
    }

    /// Works out what an instance in this part is and can do alone.
    #[inline]
    pub(crate) fn learn(&mut self, slot: u32, part: PartId) -> u32 {
        match self.known[slot as usize].get(part as usize) {
            Some(info) if *info != UNKNOWN => *info,
            Some(_) | None => self.learn_slowly(slot, part),
        }
    }

    /// Where a move of the state at hand leads, and the hash of that, given the hash of the state. With
    /// [`Stepping::Settled`] those who moved then run their own code.
    #[inline]
    pub(crate) fn apply(&mut self, found: MoveRef, from: &[u32], hash: u64, to: &mut [u32]) -> u64 {
        loop {
            match self.hops[found.0 as usize] {
                Hop::Short { slots: [first, second], parts, change } => {
                    to.copy_from_slice(from);
                    to[first as usize] = parts[0];
                    to[second as usize] = parts[1];
                    return hash.wrapping_add(change);
                }
                Hop::Long => return self.apply_slowly(found, from, hash, to),
                Hop::Unknown => self.hops[found.0 as usize] = self.hop(found, from),
            }
        }
    }

    /// What a move of one part, or of two that meet, does: the same in every state with these parts.
    #[cold]
    fn hop(&mut self, found: MoveRef, from: &[u32]) -> Hop {
        let found = self.get(found);
        let (slots, raw) = match (&found.changes[..], found.counter) {
            ([(slot, part)], None) => ([*slot; 2], [*part; 2]),
            ([first, second], None) => ([first.0, second.0], [first.1, second.1]),
            (_, _) => return Hop::Long,
        };
        if self.space.stepping == Stepping::Whole {
            return Hop::Long;
        }
        let parts = [self.settled_part(slots[0], raw[0]), self.settled_part(slots[1], raw[1])];
        let change_of = |slot: u32, part| {
            let before = store::hash_of(slot as usize, from[slot as usize]);
            store::hash_of(slot as usize, part).wrapping_sub(before)
        };
        let first = change_of(slots[0], parts[0]);
        let change = if slots[0] == slots[1] { first } else { first.wrapping_add(change_of(slots[1], parts[1])) };
        Hop::Short { slots, parts, change }
    }

    fn apply_slowly(&mut self, found: MoveRef, from: &[u32], hash: u64, to: &mut [u32]) -> u64 {
        to.copy_from_slice(from);
        let mut hash = hash;
        let (count, counter) = {
            let found = self.get(found);
            (found.changes.len(), found.counter)
        };
        for index in 0..count {
            let (slot, part) = self.get(found).changes[index];
            let part = self.settled_part(slot, part);
            hash = hash
                .wrapping_sub(store::hash_of(slot as usize, to[slot as usize]))
                .wrapping_add(store::hash_of(slot as usize, part));
            to[slot as usize] = part;
        }
        if let Some(slot) = counter {
            let slot = slot as usize;
            hash = hash.wrapping_sub(store::hash_of(slot, to[slot])).wrapping_add(store::hash_of(slot, to[slot] + 1));
            to[slot] += 1;
        }
        hash
    }

    /// Where an instance's own code takes it if nobody can tell when it does so.
    pub(crate) fn settled_part(&mut self, slot: u32, part: PartId) -> PartId {
        if self.space.stepping != Stepping::Settled || slot as usize >= self.space.instances {
            return part;
        }
        let info = self.learn(slot, part);
        self.infos[info as usize].settled
    }

    /// Lets everybody run their own code, as far as nobody can tell when they do so.
    pub(crate) fn settle(&mut self, numbers: &mut [u32]) {
        for slot in 0..self.space.instances as u32 {
            numbers[slot as usize] = self.settled_part(slot, numbers[slot as usize]);
        }
    }

    /// Finds all moves of a state.
    pub(crate) fn find(&mut self, numbers: &[u32]) {
        self.found.clear();
        match self.space.stepping {
            Stepping::Whole => self.find_whole(numbers),
            Stepping::Plain | Stepping::Settled => self.find_remembered(numbers),
        }
    }

    fn find_remembered(&mut self, numbers: &[u32]) {
        let (mut choosy, mut receives) = (false, 0);
        for slot in 0..self.space.instances as u32 {
            let info = self.learn(slot, numbers[slot as usize]);
            let info = &self.infos[info as usize];
            choosy |= info.choosy;
            receives |= info.in_channels;
            for number in info.first..info.end {
                let counter = self.moves[number as usize].counter;
                if counter.is_none_or(|counter| self.space.may_count(counter, numbers[counter as usize])) {
                    self.found.push(MoveRef(number));
                }
            }
        }
        for sender in 0..self.space.instances as u32 {
            let from = numbers[sender as usize];
            let info = self.info(sender, from);
            if info.out_channels & receives == 0 {
                continue;
            }
            let (sends, partners) = (info.out_channels, info.partners.clone());
            for index in partners {
                let receiver = self.partners[index as usize];
                let to = numbers[receiver as usize];
                if self.info(receiver, to).in_channels & sends != 0 {
                    let (first, end) = self.meeting((sender, from), (receiver, to));
                    self.found.extend((first..end).map(MoveRef));
                }
            }
        }
        if choosy {
            self.let_choose(numbers);
        }
    }

    /// Drops what a `pri alt` with a better branch, or an `else` beside an open one, does not allow.
    fn let_choose(&mut self, numbers: &[u32]) {
        let (mut can, mut found) = (std::mem::take(&mut self.can), std::mem::take(&mut self.found));
        can.fill(0);
        for found in &found {
            if let Step::Communicate { sender, sender_branch, receiver, receiver_branch } = self.get(*found).step {
                can[sender as usize] |= 1 << sender_branch;
                can[receiver as usize] |= 1 << receiver_branch;
            }
        }
        let is_first = |instance: u32, branch: u32| {
            let info = self.info(instance, numbers[instance as usize]);
            !info.priority || can[instance as usize] & ((1u64 << branch) - 1) == 0
        };
        let is_priority = |instance: u32| self.info(instance, numbers[instance as usize]).priority;
        // Only two orders can contradict each other.
        let contradict = (0..self.space.instances as u32).filter(|slot| is_priority(*slot)).count() > 1;
        let mut meetings: Vec<Step> = Vec::new();
        if contradict {
            let steps = found.iter().map(|found| self.get(*found).step);
            meetings.extend(steps.filter(|step| matches!(step, Step::Communicate { .. })));
        }
        let is_in_circle = |step: Step| {
            let world = (!meetings.contains(&step)).then_some(step);
            let steps: Vec<Step> = meetings.iter().copied().chain(world).collect();
            priority::is_allowed(step, &steps, &is_priority)
        };
        let allowed = |found: &MoveRef| match self.get(*found).step {
            Step::Local { .. } => true,
            Step::Else { instance } => can[instance as usize] == 0,
            step @ (Step::Communicate { .. } | Step::FromWorld { .. } | Step::ToWorld { .. } | Step::After { .. }) => {
                priority::participants(step).all(|(instance, branch)| is_first(instance, branch))
                    || contradict && is_in_circle(step)
            }
        };
        found.retain(allowed);
        self.found = found;
        self.can = can;
    }

    /// What can happen when a sender and a receiver in these parts meet: a range of `moves`.
    #[inline]
    fn meeting(&mut self, sender: (u32, PartId), receiver: (u32, PartId)) -> (u32, u32) {
        let pair = sender.0 * self.space.instances as u32 + receiver.0;
        match self.meetings.get(&(pair, sender.1, receiver.1)) {
            Some(range) => *range,
            None => self.meet(sender, receiver),
        }
    }

    /// Forgets what is cheap to work out again when there is too much of it. Moves found before are gone then.
    pub(crate) fn trim(&mut self) {
        if self.meetings.len() > MOST_MEETINGS {
            self.known.iter_mut().for_each(Vec::clear);
            self.infos.clear();
            self.moves.clear();
            self.hops.clear();
            self.partners.clear();
            self.meetings.clear();
            self.found.clear();
        }
    }

    /// About how much memory is remembered.
    pub(crate) fn bytes(&self) -> usize {
        let known: usize = self.known.iter().map(Vec::len).sum();
        let infos = 4 * (known + self.partners.len()) + self.infos.len() * size_of::<Info>();
        // A move's changes are a small allocation beside it.
        let moves = self.moves.len() * (size_of::<Move>() + size_of::<Hop>() + 32);
        infos + moves + self.meetings.capacity() * 21
    }
}
