//! The steps from a state given as numbers of parts. What a step does to the instances that take it is worked out once
//! by the flow IR's `step` and remembered, so that most steps of a search are looked up. Programs with pools, where
//! one step can concern all instances, are stepped as a whole.

use crate::parts::PartId;
use crate::space::{Space, Stepping};
use crate::store;
use crate::surroundings::{Resting, Surroundings};
use quaject_esp_ir::coverage::Coverage;
use quaject_esp_ir::explore::{Offered, Standing};
use quaject_esp_ir::ir::{AltOrder, ChannelId, MemoryMode, PoolId};
use quaject_esp_ir::lost::Holders;
use quaject_esp_ir::report::{FaultReport, Outcome};
use quaject_esp_ir::step::{Checks, Control, Effect, Machine, State, Step, TooLarge};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Most IR steps from one operation to the next, before the search calls it endless.
const MOST_FUEL: u64 = 1 << 26;
/// Most remembered meetings of two instances.
const MOST_MEETINGS: usize = 1 << 23;

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

/// A move of the state at hand.
#[derive(Clone, Copy, Debug)]
pub(crate) enum MoveRef {
    /// Of one instance in one part: slot, part, number.
    Single(u32, PartId, u32),
    /// Of two that met.
    Meeting(u32),
    /// Of a program stepped as a whole.
    Fresh(u32),
}

/// What is known of one instance in one part.
#[derive(Debug)]
pub(crate) struct Info {
    pub(crate) running: bool,
    pub(crate) ended: bool,
    /// Open branches that send inside: branch and channel.
    pub(crate) outs: Vec<(u32, ChannelId)>,
    /// Open branches that receive inside.
    pub(crate) ins: Vec<(u32, ChannelId)>,
    /// Whether what it may do depends on what its other branches could.
    pub(crate) choosy: bool,
    priority: bool,
    singles: Vec<Move>,
    /// Where its own code takes it if nobody can tell when it does so.
    settled: PartId,
    /// The instances with which it may have to do from here, without regard to what they do now.
    pub(crate) concerns: u128,
}

/// One thread's view of a space, with all it has worked out so far.
pub(crate) struct Mover<'m> {
    pub(crate) space: &'m Space<'m>,
    machine: Machine<'m>,
    state: State,
    world: Surroundings,
    infos: Vec<Vec<Option<Box<Info>>>>,
    /// How many of them there are.
    learnt: usize,
    meetings: FxHashMap<(u32, PartId, PartId), (u32, u32)>,
    met: Vec<Move>,
    fresh: Vec<Move>,
    /// The moves of the state at hand.
    pub(crate) found: Vec<MoveRef>,
    bytes: Vec<u8>,
    /// Per instance, for those with labels that a property names: which of them it has passed on its way to where it
    /// stands, in the order of [`Space::watched`].
    marks: Vec<u8>,
    /// What leads to objects, if programs have to release them themselves.
    holders: Option<Holders>,
    /// What was executed before the machine's own record was last cleared.
    executed: Option<Coverage>,
}

impl<'m> Mover<'m> {
    pub(crate) fn new(space: &'m Space<'m>) -> Result<Mover<'m>, TooLarge> {
        let mut machine = Machine::new(&space.model.program, Checks::On)?;
        machine.watch();
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
            infos: (0..space.instances).map(|_| Vec::new()).collect(),
            learnt: 0,
            meetings: FxHashMap::default(),
            met: Vec::new(),
            fresh: Vec::new(),
            found: Vec::new(),
            bytes: Vec::new(),
            marks: vec![0; space.instances],
            executed: None,
        })
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

    fn load(&mut self, slot: u32, part: PartId) {
        self.bytes.clear();
        self.space.parts.read(self.space.kinds[slot as usize], part, &mut self.bytes);
        if self.space.shared == Some(slot) {
            self.machine.load_shared(&mut self.state, &self.bytes);
        } else if self.space.watched[slot as usize].is_empty() {
            self.machine.load_instance(&mut self.state, slot, &self.bytes);
        } else {
            self.marks[slot as usize] = self.bytes[0];
            self.machine.load_instance(&mut self.state, slot, &self.bytes[1..]);
        }
    }

    fn save(&mut self, slot: u32) -> PartId {
        self.bytes.clear();
        if self.space.shared == Some(slot) {
            self.state.save_shared(&mut self.bytes);
        } else {
            if !self.space.watched[slot as usize].is_empty() {
                self.bytes.push(self.marks[slot as usize]);
            }
            self.state.save_instance(slot, &mut self.bytes);
        }
        self.space.parts.number(self.space.kinds[slot as usize], &self.bytes)
    }

    /// The machine, the state loaded last and the world, for those who tell of a run.
    pub(crate) fn scene(&mut self) -> (&mut Machine<'m>, &mut State, &mut Surroundings) {
        (&mut self.machine, &mut self.state, &mut self.world)
    }

    /// What a state without moves is.
    pub(crate) fn rest(&mut self, numbers: &[u32]) -> Outcome {
        self.load_all(numbers);
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
        self.machine.lost_object(&self.state, self.holders.as_ref()?)
    }

    pub(crate) fn get(&self, found: MoveRef) -> &Move {
        match found {
            MoveRef::Single(slot, part, number) => &self.info(slot, part).singles[number as usize],
            MoveRef::Meeting(number) => &self.met[number as usize],
            MoveRef::Fresh(number) => &self.fresh[number as usize],
        }
    }

    /// What is known of an instance whose moves have been looked for.
    #[inline]
    pub(crate) fn info(&self, slot: u32, part: PartId) -> &Info {
        self.infos[slot as usize][part as usize].as_ref().expect("`find` has looked at every part of the state")
    }

    /// Where a move leads, and the hash of that, given the hash of the state. With [`Stepping::Settled`] those who
    /// moved then run their own code.
    #[inline]
    pub(crate) fn apply(&mut self, found: MoveRef, from: &[u32], hash: u64, to: &mut [u32]) -> u64 {
        to.copy_from_slice(from);
        let mut hash = hash;
        let (count, counter) = {
            let found = self.get(found);
            (found.changes.len(), found.counter)
        };
        for index in 0..count {
            let (slot, mut part) = self.get(found).changes[index];
            if self.space.stepping == Stepping::Settled && (slot as usize) < self.space.instances {
                self.learn(slot, part);
                part = self.info(slot, part).settled;
            }
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
        self.learn(slot, part);
        self.info(slot, part).settled
    }

    /// Lets everybody run their own code, as far as nobody can tell when they do so.
    pub(crate) fn settle(&mut self, numbers: &mut [u32]) {
        if self.space.stepping != Stepping::Settled {
            return;
        }
        for slot in 0..self.space.instances as u32 {
            self.learn(slot, numbers[slot as usize]);
            numbers[slot as usize] = self.info(slot, numbers[slot as usize]).settled;
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
        let mut choosy = false;
        for slot in 0..self.space.instances as u32 {
            let part = numbers[slot as usize];
            self.learn(slot, part);
            let info = self.infos[slot as usize][part as usize].as_ref().expect("it has just been learnt");
            choosy |= info.choosy;
            for (number, single) in info.singles.iter().enumerate() {
                if single.counter.is_none_or(|counter| self.space.may_count(counter, numbers[counter as usize])) {
                    self.found.push(MoveRef::Single(slot, part, number as u32));
                }
            }
        }
        for sender in 0..self.space.instances as u32 {
            if self.info(sender, numbers[sender as usize]).outs.is_empty() {
                continue;
            }
            let space = self.space;
            for receiver in &space.receivers[sender as usize] {
                let (from, to) = (numbers[sender as usize], numbers[*receiver as usize]);
                let (outs, ins) = (&self.info(sender, from).outs, &self.info(*receiver, to).ins);
                if outs.iter().any(|(_, out)| ins.iter().any(|(_, channel)| channel == out)) {
                    let (first, end) = self.meeting((sender, from), (*receiver, to));
                    self.found.extend((first..end).map(MoveRef::Meeting));
                }
            }
        }
        if choosy {
            self.let_choose(numbers);
        }
    }

    /// Drops what a `pri alt` with a better branch, or an `else` beside an open one, does not allow.
    fn let_choose(&mut self, numbers: &[u32]) {
        let mut can = vec![0u64; self.space.instances];
        for found in &self.found {
            if let Step::Communicate { sender, sender_branch, receiver, receiver_branch } = self.get(*found).step {
                can[sender as usize] |= 1 << sender_branch;
                can[receiver as usize] |= 1 << receiver_branch;
            }
        }
        let is_first = |instance: u32, branch: u32| {
            let info = self.info(instance, numbers[instance as usize]);
            !info.priority || can[instance as usize] & ((1u64 << branch) - 1) == 0
        };
        let allowed = |found: &MoveRef| match self.get(*found).step {
            Step::Local { .. } => true,
            Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                is_first(sender, sender_branch) && is_first(receiver, receiver_branch)
            }
            Step::FromWorld { instance, branch }
            | Step::ToWorld { instance, branch }
            | Step::After { instance, branch } => is_first(instance, branch),
            Step::Else { instance } => can[instance as usize] == 0,
        };
        let kept = self.found.iter().copied().filter(allowed).collect();
        self.found = kept;
    }

    /// Works out what an instance in this part is and can do alone.
    #[inline]
    fn learn(&mut self, slot: u32, part: PartId) {
        let known = &self.infos[slot as usize];
        if known.get(part as usize).is_none_or(|info| info.is_none()) {
            self.learn_slowly(slot, part);
        }
    }

    #[cold]
    fn learn_slowly(&mut self, slot: u32, part: PartId) {
        self.load(slot, part);
        let standing = self.machine.standing(&self.state, slot);
        let mut info = Info {
            running: matches!(standing.control, Control::Running { .. }),
            ended: standing.control == Control::Ended,
            outs: Vec::new(),
            ins: Vec::new(),
            choosy: standing.otherwise || standing.order == AltOrder::Priority,
            priority: standing.order == AltOrder::Priority,
            singles: Vec::new(),
            settled: part,
            concerns: self.space.concerns(slot, &standing),
        };
        for (branch, offered) in standing.branches.iter().enumerate() {
            match offered {
                Some(Offered::Out(channel)) => info.outs.push((branch as u32, *channel)),
                Some(Offered::In(channel)) => info.ins.push((branch as u32, *channel)),
                Some(Offered::FromWorld(_) | Offered::ToWorld(_) | Offered::After) | None => {}
            }
        }
        for (step, messages) in alone(slot, &standing, self.world.outside()) {
            for message in messages {
                self.load(slot, part);
                self.world.offer(message);
                if let (Some(_), Step::FromWorld { instance, branch }) = (message, step)
                    && !self.machine.is_served(&mut self.state, &mut self.world, instance, branch)
                {
                    continue;
                }
                let restore = |mover: &mut Mover<'m>| mover.load(slot, part);
                self.try_all(step, message, &[slot], &restore, &mut info.singles);
            }
        }
        info.settled = self.settled(slot, part, &info);
        let known = &mut self.infos[slot as usize];
        if known.len() <= part as usize {
            known.resize_with(part as usize + 1, || None);
        }
        known[part as usize] = Some(Box::new(info));
        self.learnt += 1;
    }

    fn settled(&mut self, slot: u32, part: PartId, info: &Info) -> PartId {
        let [only] = &info.singles[..] else { return part };
        let quiet = info.running && only.choices.is_empty() && self.space.is_quiet(slot);
        match (&only.end, &only.changes[..]) {
            (MoveEnd::Goes, [(_, to)]) if quiet => {
                self.load(slot, *to);
                match self.state.control(slot) {
                    Control::Waiting { .. } | Control::Ended => *to,
                    Control::Running { .. } => part,
                }
            }
            (MoveEnd::Goes | MoveEnd::Exits | MoveEnd::Fails(_) | MoveEnd::Endless(_), _) => part,
        }
    }

    /// Takes a step with every choice of what extern functions return. `restore` makes the state before it.
    fn try_all(
        &mut self,
        step: Step,
        message: Option<(ChannelId, usize)>,
        slots: &[u32],
        restore: &dyn Fn(&mut Mover<'m>),
        moves: &mut Vec<Move>,
    ) {
        let counter = match message {
            Some((channel, _)) => self.space.counter(channel),
            None => None,
        };
        self.world.offer(message);
        self.world.choose(&[]);
        loop {
            restore(self);
            let mut fuel = MOST_FUEL;
            self.begin_marks();
            let effect = self.machine.step(step, &mut self.state, &mut self.world, &mut fuel);
            self.end_marks(step);
            let end = match effect {
                Effect::Done => MoveEnd::Goes,
                Effect::Exited(_) => MoveEnd::Exits,
                Effect::Faulted(report) => MoveEnd::Fails(report),
                Effect::Unfinished => MoveEnd::Endless(slots[0]),
            };
            let changes = match &end {
                MoveEnd::Goes => slots.iter().map(|slot| (*slot, self.save(*slot))).collect(),
                MoveEnd::Exits | MoveEnd::Fails(_) | MoveEnd::Endless(_) => Box::default(),
            };
            let message = message.map(|(_, number)| number as u32);
            moves.push(Move { step, message, choices: self.world.choices().into(), changes, counter, end });
            if !self.world.advance() {
                break;
            }
        }
        self.world.offer(None);
    }

    /// Which atoms of the property hold.
    pub(crate) fn atoms(&mut self, numbers: &[u32]) -> u64 {
        let mut atoms = 0;
        for (slot, part) in numbers.iter().enumerate().take(self.space.instances) {
            if self.space.watched[slot].is_empty() {
                continue;
            }
            self.bytes.clear();
            self.space.parts.read(self.space.kinds[slot], *part, &mut self.bytes);
            for (bit, (atom, _)) in self.space.watched[slot].iter().enumerate() {
                atoms |= u64::from(self.bytes[0] >> bit & 1) << atom;
            }
        }
        atoms
    }

    fn begin_marks(&mut self) {
        if self.space.watches
            && let Some(coverage) = self.machine.coverage()
        {
            match &mut self.executed {
                Some(executed) => executed.add(coverage),
                None => self.executed = Some(coverage.clone()),
            }
            coverage.clear();
        }
    }

    /// Notes the labels passed by whoever ran its own code; whoever leaves an operation has passed none.
    fn end_marks(&mut self, step: Step) {
        if !self.space.watches {
            return;
        }
        match step {
            Step::Local { instance } => {
                let process = self.space.process(instance);
                let Some(coverage) = self.machine.coverage() else { return };
                for (bit, (_, position)) in self.space.watched[instance as usize].iter().enumerate() {
                    self.marks[instance as usize] |= u8::from(coverage.has(process, *position)) << bit;
                }
            }
            Step::Communicate { sender, receiver, .. } => {
                self.marks[sender as usize] = 0;
                self.marks[receiver as usize] = 0;
            }
            Step::FromWorld { instance, .. }
            | Step::ToWorld { instance, .. }
            | Step::After { instance, .. }
            | Step::Else { instance } => self.marks[instance as usize] = 0,
        }
    }

    /// What can happen when a sender and a receiver in these parts meet: a range of `met`.
    #[inline]
    fn meeting(&mut self, sender: (u32, PartId), receiver: (u32, PartId)) -> (u32, u32) {
        let pair = sender.0 * self.space.instances as u32 + receiver.0;
        match self.meetings.get(&(pair, sender.1, receiver.1)) {
            Some(range) => *range,
            None => self.meet(sender, receiver),
        }
    }

    #[cold]
    fn meet(&mut self, sender: (u32, PartId), receiver: (u32, PartId)) -> (u32, u32) {
        let restore = |mover: &mut Mover<'m>| {
            mover.load(sender.0, sender.1);
            mover.load(receiver.0, receiver.1);
        };
        let mut moves = Vec::new();
        let outs = self.info(sender.0, sender.1).outs.clone();
        let ins = self.info(receiver.0, receiver.1).ins.clone();
        for (sender_branch, out) in &outs {
            for (receiver_branch, _) in ins.iter().filter(|(_, channel)| channel == out) {
                restore(self);
                self.world.choose(&[]);
                let (from, to) = ((sender.0, *sender_branch), (receiver.0, *receiver_branch));
                if self.machine.can_meet(&mut self.state, &mut self.world, from, to) {
                    let (sender_branch, receiver_branch) = (from.1, to.1);
                    let step =
                        Step::Communicate { sender: sender.0, sender_branch, receiver: receiver.0, receiver_branch };
                    self.try_all(step, None, &[sender.0, receiver.0], &restore, &mut moves);
                }
            }
        }
        let first = self.met.len() as u32;
        self.met.append(&mut moves);
        let range = (first, self.met.len() as u32);
        let pair = sender.0 * self.space.instances as u32 + receiver.0;
        self.meetings.insert((pair, sender.1, receiver.1), range);
        range
    }

    /// Forgets what is cheap to work out again when there is too much of it. Moves found before are gone then.
    pub(crate) fn trim(&mut self) {
        if self.meetings.len() > MOST_MEETINGS {
            self.meetings.clear();
            self.met.clear();
            self.found.clear();
        }
    }

    /// About how much memory is remembered.
    pub(crate) fn bytes(&self) -> usize {
        let met = self.met.capacity() * (std::mem::size_of::<Move>() + 16) + self.meetings.capacity() * 24;
        self.learnt * (std::mem::size_of::<Info>() + 128) + met
    }

    fn find_whole(&mut self, numbers: &[u32]) {
        self.load_all(numbers);
        self.world.offer(None);
        self.world.choose(&[]);
        let steps = self.machine.conceivable(&mut self.state, &mut self.world);
        let slots: Vec<u32> = (0..self.space.instances as u32).chain(self.space.shared).collect();
        let mut moves = Vec::new();
        for step in steps {
            let messages = match self.channel_from_world(step) {
                Some(channel) => {
                    let counter = self.space.counter(channel);
                    if counter.is_some_and(|slot| !self.space.may_count(slot, numbers[slot as usize])) {
                        continue;
                    }
                    let count = self.world.outside().messages[channel.0 as usize].len();
                    (0..count).map(|number| Some((channel, number))).collect()
                }
                None => vec![None],
            };
            for message in messages {
                if let (Some(_), Step::FromWorld { instance, branch }) = (message, step) {
                    self.load_all(numbers);
                    self.world.offer(message);
                    if !self.machine.is_served(&mut self.state, &mut self.world, instance, branch) {
                        continue;
                    }
                }
                let restore = |mover: &mut Mover<'m>| mover.load_all(numbers);
                self.try_all(step, message, &slots, &restore, &mut moves);
            }
            self.load_all(numbers);
        }
        for found in &mut moves {
            let changed = found.changes.iter().filter(|(slot, part)| numbers[*slot as usize] != *part);
            found.changes = changed.copied().collect();
        }
        self.found.extend((0..moves.len() as u32).map(MoveRef::Fresh));
        self.fresh = moves;
    }

    fn channel_from_world(&self, step: Step) -> Option<ChannelId> {
        let Step::FromWorld { instance, branch } = step else { return None };
        match self.machine.standing(&self.state, instance).branches.get(branch as usize) {
            Some(Some(Offered::FromWorld(channel))) => Some(*channel),
            Some(_) | None => None,
        }
    }
}

/// A message of the world, by channel and number, or none.
type Offer = Option<(ChannelId, usize)>;

/// What an instance can do without another one, and the messages of the world that can be tried with it.
fn alone(instance: u32, standing: &Standing, outside: &crate::surroundings::Outside) -> Vec<(Step, Vec<Offer>)> {
    let mut steps = Vec::new();
    if let Control::Running { .. } = standing.control {
        steps.push((Step::Local { instance }, vec![None]));
    }
    for (branch, offered) in standing.branches.iter().enumerate() {
        let branch = branch as u32;
        match offered {
            Some(Offered::FromWorld(channel)) => {
                let count = outside.messages[channel.0 as usize].len();
                let messages = (0..count).map(|number| Some((*channel, number))).collect();
                steps.push((Step::FromWorld { instance, branch }, messages));
            }
            Some(Offered::ToWorld(_)) => steps.push((Step::ToWorld { instance, branch }, vec![None])),
            Some(Offered::After) => steps.push((Step::After { instance, branch }, vec![None])),
            Some(Offered::In(_) | Offered::Out(_)) | None => {}
        }
    }
    if standing.otherwise {
        steps.push((Step::Else { instance }, vec![None]));
    }
    steps
}
