//! The moves of a program that is stepped as a whole, because one step can change other instances than its own.

use crate::moves::{Hop, MoveEnd, MoveRef, Mover};
use crate::parts::PartId;
use quaject_esp_exec::explore::Offered;
use quaject_esp_exec::step::{Control, Step};
use quaject_esp_ir::ir::ChannelId;

impl<'m> Mover<'m> {
    pub(crate) fn find_whole(&mut self, numbers: &[u32]) {
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
                if self.is_cut(moves.len()) {
                    break;
                }
                if let (Some(_), Step::FromWorld { instance, branch }) = (message, step) {
                    let served = self.patiently(|mover, _| {
                        mover.load_all(numbers);
                        mover.world.offer(message);
                        mover.machine.is_served(&mut mover.state, &mut mover.world, instance, branch)
                    });
                    if served != Some(true) {
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
        self.found.extend((0..moves.len() as u32).map(MoveRef));
        self.hops.clear();
        self.hops.resize(moves.len(), Hop::Long);
        self.moves = moves;
    }

    /// Puts own code that is enough to the front of the moves found, and returns how many are enough: the one step of
    /// somebody who comes to rest without touching a pool when nobody can tell (see [`Space::is_alone`]).
    ///
    /// [`Space::is_alone`]: crate::space::Space::is_alone
    pub(crate) fn reduce_whole(&mut self) -> usize {
        for index in 0..self.found.len() {
            let found = self.get(self.found[index]);
            let (Step::Local { instance }, MoveEnd::Goes, []) = (found.step, &found.end, &found.choices[..]) else {
                continue;
            };
            let [(slot, part)] = found.changes[..] else { continue };
            if slot != instance || !self.space.is_alone(instance) {
                continue;
            }
            if self.comes_to_rest(slot, part) {
                self.found.swap(0, index);
                return 1;
            }
        }
        self.found.len()
    }

    /// Whether an instance in this part does not run its own code.
    pub(crate) fn comes_to_rest(&mut self, slot: u32, part: PartId) -> bool {
        self.load(slot, part);
        match self.state.control(slot) {
            Control::Waiting { .. } | Control::Lent { .. } | Control::Ended => true,
            Control::Running { .. } => false,
        }
    }

    fn channel_from_world(&self, step: Step) -> Option<ChannelId> {
        let Step::FromWorld { instance, branch } = step else { return None };
        match self.machine.standing(&self.state, instance).branches.get(branch as usize) {
            Some(Some(Offered::FromWorld(channel))) => Some(*channel),
            Some(_) | None => None,
        }
    }
}
