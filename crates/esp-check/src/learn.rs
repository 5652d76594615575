//! What instances in certain parts are and can do, worked out once by the flow IR's `step` and remembered, so that most
//! steps of a search are looked up.

use crate::moves::{Hop, Move, MoveEnd, Mover, UNKNOWN};
use crate::options::Limit;
use crate::parts::PartId;
use crate::surroundings::Outside;
use quaject_esp_exec::datum::Datum;
use quaject_esp_exec::explore::{Offered, Standing};
use quaject_esp_exec::step::{Control, Effect, Step};
use quaject_esp_ir::ir::{AltOrder, ChannelId};
use std::ops::Range;
use std::time::Instant;

/// Most IR steps from one operation to the next, before the search calls it endless.
pub(crate) const MOST_FUEL: u64 = 1 << 26;
/// So many are taken before the clock is looked at.
const FIRST_FUEL: u64 = 1 << 20;
/// Most calls of functions outside within [`FIRST_FUEL`], before the search calls it endless: each could come out in
/// another way.
const MOST_CHOICES: usize = 1 << 14;

/// What is known of one instance in one part.
#[derive(Debug)]
pub(crate) struct Info {
    pub(crate) running: bool,
    pub(crate) ended: bool,
    /// Whether what it may do depends on what its other branches could.
    pub(crate) choosy: bool,
    pub(crate) priority: bool,
    /// The channels inside at which it sends and receives, each as the bit of its number modulo 64.
    pub(crate) out_channels: u64,
    pub(crate) in_channels: u64,
    /// What it can do alone: a range of the mover's moves.
    pub(crate) first: u32,
    pub(crate) end: u32,
    /// Who may receive what it sends: a range of the mover's partners.
    pub(crate) partners: Range<u32>,
    /// Where its own code takes it if nobody can tell when it does so.
    pub(crate) settled: PartId,
    /// The instances with which it may have to do from here, without regard to what they do now.
    pub(crate) concerns: u128,
}

/// What may have come to no end for want of IR steps.
pub(crate) trait MayBeShort {
    fn is_short(&self) -> bool;
}

impl MayBeShort for Effect {
    fn is_short(&self) -> bool {
        *self == Effect::Unfinished
    }
}

impl MayBeShort for bool {
    fn is_short(&self) -> bool {
        false
    }
}

/// Open branches inside, each with its channel.
type Offers = Vec<(u32, ChannelId)>;

fn channel_bit(channel: ChannelId) -> u64 {
    1 << (channel.0 % 64)
}

impl<'m> Mover<'m> {
    #[cold]
    pub(crate) fn learn_slowly(&mut self, slot: u32, part: PartId) -> u32 {
        self.load(slot, part);
        let standing = self.machine.standing(&self.state, slot);
        let mut info = Info {
            running: matches!(standing.control, Control::Running { .. }),
            ended: standing.control == Control::Ended,
            choosy: standing.otherwise || standing.order == AltOrder::Priority,
            priority: standing.order == AltOrder::Priority,
            out_channels: 0,
            in_channels: 0,
            first: 0,
            end: 0,
            partners: 0..0,
            settled: part,
            concerns: 0,
        };
        let mut receivers = 0;
        for (branch, offered) in standing.branches.iter().enumerate() {
            match offered {
                Some(Offered::Out(channel)) => {
                    info.out_channels |= channel_bit(*channel);
                    let message = self.message(slot, branch as u32);
                    receivers |= self.space.possible_receivers(slot, *channel, message.as_deref());
                }
                Some(Offered::In(channel)) => info.in_channels |= channel_bit(*channel),
                Some(Offered::FromWorld(_) | Offered::ToWorld(_) | Offered::After) | None => {}
            }
        }
        info.concerns = self.space.concerns(slot, &standing, receivers);
        info.partners.start = self.partners.len() as u32;
        let space = self.space;
        let partners = space.receivers[slot as usize].iter().copied();
        self.partners.extend(partners.filter(|partner| space.is_among(*partner, receivers)));
        info.partners.end = self.partners.len() as u32;
        let mut singles = Vec::new();
        for (step, messages) in alone(slot, &standing, self.world.outside()) {
            for message in messages {
                if self.is_cut(singles.len()) {
                    break;
                }
                if let (Some(_), Step::FromWorld { instance, branch }) = (message, step) {
                    let served = self.patiently(|mover, _| {
                        mover.load(slot, part);
                        mover.world.offer(message);
                        mover.machine.is_served(&mut mover.state, &mut mover.world, instance, branch)
                    });
                    if served != Some(true) {
                        continue;
                    }
                }
                let restore = |mover: &mut Mover<'m>| mover.load(slot, part);
                self.try_all(step, message, &[slot], &restore, &mut singles);
            }
        }
        info.settled = self.settled(slot, part, &info, &singles);
        (info.first, info.end) = self.remember(singles);
        let known = &mut self.known[slot as usize];
        if known.len() <= part as usize {
            known.resize(part as usize + 1, UNKNOWN);
        }
        let number = self.infos.len() as u32;
        known[part as usize] = number;
        self.infos.push(info);
        number
    }

    /// What an instance that was just loaded sends; nothing if that is not certain.
    fn message(&mut self, slot: u32, branch: u32) -> Option<Vec<Datum>> {
        self.world.offer(None);
        self.world.choose(&[]);
        self.machine.be_patient(FIRST_FUEL);
        // Looking at a message is not sending it.
        let executed = self.machine.coverage().cloned();
        let message = self.machine.message(&mut self.state, &mut self.world, slot, branch);
        if let (Some(coverage), Some(executed)) = (self.machine.coverage(), executed) {
            *coverage = executed;
        }
        message.filter(|_| self.world.calls().is_empty()).map(|(_, message)| message)
    }

    /// Keeps moves, and returns where.
    fn remember(&mut self, moves: Vec<Move>) -> (u32, u32) {
        let first = self.moves.len() as u32;
        self.moves.extend(moves);
        self.hops.resize(self.moves.len(), Hop::Unknown);
        (first, self.moves.len() as u32)
    }

    fn settled(&mut self, slot: u32, part: PartId, info: &Info, singles: &[Move]) -> PartId {
        let [only] = singles else { return part };
        let quiet = info.running && only.choices.is_empty() && self.space.is_quiet(slot);
        match (&only.end, &only.changes[..]) {
            (MoveEnd::Goes, [(_, to)]) if quiet => {
                self.load(slot, *to);
                match self.state.control(slot) {
                    Control::Waiting { .. } | Control::Lent { .. } | Control::Ended => *to,
                    Control::Running { .. } => part,
                }
            }
            (MoveEnd::Goes | MoveEnd::Exits | MoveEnd::Fails(_) | MoveEnd::Endless(_), _) => part,
        }
    }

    /// Takes a step with every choice of what extern functions return. `restore` makes the state before it.
    pub(crate) fn try_all(
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
        while !self.is_cut(moves.len()) {
            let Some(effect) = self.take(step, restore) else { break };
            self.end_marks(step, slots);
            let end = match effect {
                Effect::Done => MoveEnd::Goes,
                Effect::Exited(_) => MoveEnd::Exits,
                Effect::Faulted(report) => MoveEnd::Fails(report),
                Effect::Unfinished => MoveEnd::Endless(slots[0]),
            };
            let changes = match &end {
                MoveEnd::Goes | MoveEnd::Exits => slots.iter().map(|slot| (*slot, self.save(*slot))).collect(),
                MoveEnd::Fails(_) | MoveEnd::Endless(_) => Box::default(),
            };
            let message = message.map(|(_, number)| number as u32);
            moves.push(Move { step, message, choices: self.world.choices().into(), changes, counter, end });
            // Other choices can go on for ever in as many ways.
            let is_endless = moves.last().is_some_and(|last| matches!(last.end, MoveEnd::Endless(_)));
            if is_endless || !self.world.advance() {
                break;
            }
        }
        self.world.offer(None);
    }

    /// Takes a step from the state that `restore` makes; nothing if there is no time for it.
    fn take(&mut self, step: Step, restore: &dyn Fn(&mut Mover<'m>)) -> Option<Effect> {
        self.patiently(|mover, mut fuel| {
            restore(mover);
            mover.world.rewind();
            mover.begin_marks();
            let effect = mover.machine.step(step, &mut mover.state, &mut mover.world, &mut fuel);
            if mover.machine.is_impatient() { Effect::Unfinished } else { effect }
        })
    }

    /// Tries something with so many IR steps, and what takes longer again with twice as many, up to the most there are.
    /// Nothing if there is no time for that.
    pub(crate) fn patiently<T>(&mut self, mut attempt: impl FnMut(&mut Mover<'m>, u64) -> T) -> Option<T>
    where
        T: MayBeShort,
    {
        let mut most = FIRST_FUEL;
        loop {
            self.machine.be_patient(most);
            let started = self.deadline.map(|_| Instant::now());
            let result = attempt(self, most);
            let asks_for_ever = self.world.choices().len() > MOST_CHOICES;
            if !result.is_short() && !self.machine.is_impatient() || most == MOST_FUEL || asks_for_ever {
                return Some(result);
            }
            let is_late = |started: Instant| Some(Instant::now() + 2 * started.elapsed()) > self.deadline;
            if started.is_some_and(is_late) {
                self.cut = Some(Limit::Time);
                return None;
            }
            if self.is_cut(0) {
                return None;
            }
            most *= 2;
        }
    }

    #[cold]
    pub(crate) fn meet(&mut self, sender: (u32, PartId), receiver: (u32, PartId)) -> (u32, u32) {
        let restore = |mover: &mut Mover<'m>| {
            mover.load(sender.0, sender.1);
            mover.load(receiver.0, receiver.1);
        };
        let mut moves = Vec::new();
        restore(self);
        let outs = self.offers(sender.0).0;
        let ins = self.offers(receiver.0).1;
        for (sender_branch, out) in &outs {
            for (receiver_branch, _) in ins.iter().filter(|(_, channel)| channel == out) {
                let (from, to) = ((sender.0, *sender_branch), (receiver.0, *receiver_branch));
                let met = self.patiently(|mover, _| {
                    restore(mover);
                    mover.world.choose(&[]);
                    mover.machine.can_meet(&mut mover.state, &mut mover.world, from, to)
                });
                if met == Some(true) {
                    let (sender_branch, receiver_branch) = (from.1, to.1);
                    let step =
                        Step::Communicate { sender: sender.0, sender_branch, receiver: receiver.0, receiver_branch };
                    self.try_all(step, None, &[sender.0, receiver.0], &restore, &mut moves);
                }
            }
        }
        let range = self.remember(moves);
        let pair = sender.0 * self.space.instances as u32 + receiver.0;
        self.meetings.insert((pair, sender.1, receiver.1), range);
        range
    }

    /// The open branches inside of an instance that was just loaded: those that send, those that receive.
    fn offers(&self, slot: u32) -> (Offers, Offers) {
        let (mut outs, mut ins) = (Vec::new(), Vec::new());
        for (branch, offered) in self.machine.standing(&self.state, slot).branches.iter().enumerate() {
            match offered {
                Some(Offered::Out(channel)) => outs.push((branch as u32, *channel)),
                Some(Offered::In(channel)) => ins.push((branch as u32, *channel)),
                Some(Offered::FromWorld(_) | Offered::ToWorld(_) | Offered::After) | None => {}
            }
        }
        (outs, ins)
    }
}

/// A message of the world, by channel and number, or none.
type Offer = Option<(ChannelId, usize)>;

/// What an instance can do without another one, and the messages of the world that can be tried with it.
fn alone(instance: u32, standing: &Standing, outside: &Outside) -> Vec<(Step, Vec<Offer>)> {
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
