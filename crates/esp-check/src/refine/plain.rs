//! The states of the program without fast paths, and the steps between them, worked out as they are asked for: which of
//! them it can be in after doing what others have seen.

use super::seen::Sights;
use crate::moves::{MoveEnd, Mover};
use crate::options::Limit;
use crate::reduce::actors;
use crate::retrace::Chosen;
use crate::space::bit;
use crate::store::hash;
use quaject_esp_exec::adopt::Matters;
use quaject_esp_exec::report::Outcome;
use quaject_esp_exec::step::Step;
use rustc_hash::{FxHashMap, FxHashSet};

/// Most steps of own code after which states are compared.
const MOST_SETTLING: usize = 1000;

/// How many more states are looked at when one is found that is only as good as the one that is looked for.
const MOST_BEHIND: usize = 256;

/// A state of the program without paths, by number.
pub(super) type PlainId = u32;

/// A step.
struct Edge {
    actors: u128,
    is_local: bool,
    /// What is seen of it.
    seen: Box<[u32]>,
    /// Where it leads; nothing if the program is over then.
    to: Option<PlainId>,
}

/// What is seen of a step, and where it leads.
pub(super) type Sighted = (Box<[u32]>, Option<PlainId>);

/// What the program without paths can have come to.
pub(super) struct Reached {
    /// The states, in order.
    pub(super) states: Vec<PlainId>,
    /// Those that are as good as the one that is looked for.
    pub(super) found: Vec<PlainId>,
    /// Whether it can be over.
    pub(super) is_over: bool,
}

/// The program without paths.
pub(super) struct Plain<'m> {
    pub(super) mover: Mover<'m>,
    pub(super) matters: Matters,
    numbers: FxHashMap<Box<[u32]>, PlainId>,
    states: Vec<Box<[u32]>>,
    edges: Vec<Option<Box<[Edge]>>>,
    settled: Vec<Option<PlainId>>,
    /// Those who may be behind.
    members: u128,
    /// Whether others can tell who is behind.
    is_noticed: bool,
    bytes: usize,
}

impl<'m> Plain<'m> {
    /// The program without paths, of which so many can be members.
    pub(super) fn new(mut mover: Mover<'m>, members: u128) -> Plain<'m> {
        let instances = 0..mover.space.instances as u32;
        let mut all = instances.filter(|instance| members & bit(*instance as usize) != 0);
        let is_noticed = all.any(|instance| !mover.space.is_alone(instance));
        let matters = mover.scene().0.matters();
        mover.world.listen();
        let (numbers, states) = (FxHashMap::default(), Vec::new());
        let (edges, settled) = (Vec::new(), Vec::new());
        Plain { mover, matters, numbers, states, edges, settled, members, is_noticed, bytes: 0 }
    }

    /// How many states are known.
    pub(super) fn count(&self) -> usize {
        self.states.len()
    }

    /// About how much memory they take.
    pub(super) fn bytes(&self) -> usize {
        self.bytes + self.mover.bytes() + self.mover.space.parts.bytes()
    }

    /// The number of a state.
    pub(super) fn number(&mut self, state: &[u32]) -> PlainId {
        if let Some(known) = self.numbers.get(state) {
            return *known;
        }
        let number = self.states.len() as PlainId;
        self.numbers.insert(state.into(), number);
        self.states.push(state.into());
        self.edges.push(None);
        self.settled.push(None);
        // The numbers twice, and what holds them.
        self.bytes += 2 * size_of_val(state) + 64;
        number
    }

    /// A state's numbers.
    pub(super) fn state(&self, state: PlainId) -> &[u32] {
        &self.states[state as usize]
    }

    /// What the program is in a state in which it cannot go on by itself; nothing if it can.
    pub(super) fn rest(&mut self, state: PlainId) -> Option<Outcome> {
        let numbers = self.states[state as usize].clone();
        self.mover.find(&numbers);
        self.mover.rests().then(|| self.mover.rest(&numbers))
    }

    /// The state to which a state comes when the members of paths run their own code, as far as nothing is seen of it
    /// and it can go one way only: a path gives back to everybody their own code at some place of it, where without paths
    /// they may have gone on already. Its objects are numbered as `renumber` does: the two may have taken and freed objects
    /// in other orders, which nobody can tell.
    pub(super) fn settled(&mut self, state: PlainId, sights: &mut Sights) -> Result<PlainId, Limit> {
        let mut at = state;
        let mut way = Vec::new();
        // Own code can also go in a circle, by `yield`s.
        while way.len() < MOST_SETTLING {
            if let Some(known) = self.settled[at as usize] {
                at = known;
                break;
            }
            self.learn(at, sights)?;
            let edges = self.edges[at as usize].as_deref().expect("it has just been learnt");
            let is_only = |edge: &&Edge| {
                let ways = edges.iter().filter(|other| other.is_local && other.actors == edge.actors).count();
                edge.is_local && edge.actors & self.members != 0 && edge.seen.is_empty() && ways == 1
            };
            let Some(next) = edges.iter().filter(is_only).find_map(|edge| edge.to) else { break };
            way.push(at);
            at = next;
        }
        way.push(at);
        let same = self.renumbered(at);
        way.push(same);
        for passed in way {
            self.settled[passed as usize] = Some(same);
        }
        Ok(same)
    }

    /// The state that is the same but for the numbers of objects.
    fn renumbered(&mut self, state: PlainId) -> PlainId {
        let Some(shared) = self.mover.space.shared else { return state };
        let mut numbers = self.states[state as usize].clone();
        self.mover.load_all(&numbers);
        let (machine, at_hand, _) = self.mover.scene();
        machine.renumber(at_hand);
        for slot in 0..=shared {
            numbers[slot as usize] = self.mover.save(slot);
        }
        self.number(&numbers)
    }

    /// All states to which steps of `among` alone lead, and of which just this is seen; and which of them settle as
    /// `wanted` does. If nobody can tell these from each other, it ends as soon as `wanted` itself is found, or soon
    /// after another one.
    pub(super) fn after(
        &mut self,
        from: &[PlainId],
        among: u128,
        seen: &[u32],
        wanted: Option<PlainId>,
        sights: &mut Sights,
        may_go_on: &mut dyn FnMut(&Plain<'m>) -> Result<(), Limit>,
    ) -> Result<Reached, Limit> {
        let settled = wanted.map(|wanted| self.settled(wanted, sights)).transpose()?;
        let mut known: FxHashSet<(PlainId, u32)> = from.iter().map(|state| (*state, 0)).collect();
        let mut level: Vec<(PlainId, u32)> = from.iter().map(|state| (*state, 0)).collect();
        let all = seen.len() as u32;
        let mut reached = Reached { states: Vec::new(), found: Vec::new(), is_over: false };
        let mut more = MOST_BEHIND;
        while !level.is_empty() && more > 0 {
            let mut next = Vec::new();
            for (state, count) in level {
                may_go_on(self)?;
                if settled.is_some() && count == all && Some(self.settled(state, sights)?) == settled {
                    if wanted == Some(state) && !self.is_noticed {
                        reached.found = vec![state];
                        return Ok(reached);
                    }
                    reached.found.push(state);
                }
                self.learn(state, sights)?;
                let edges = self.edges[state as usize].as_deref().expect("it has just been learnt");
                for edge in edges.iter().filter(|edge| edge.actors & !among == 0) {
                    if !seen[count as usize..].starts_with(&edge.seen) {
                        continue;
                    }
                    let count = count + edge.seen.len() as u32;
                    match edge.to {
                        Some(to) if known.insert((to, count)) => next.push((to, count)),
                        Some(_) => {}
                        None => reached.is_over |= count == all,
                    }
                }
            }
            if !self.is_noticed && !reached.found.is_empty() {
                more = more.saturating_sub(next.len().max(1));
            }
            level = next;
        }
        if !self.is_noticed {
            reached.found.truncate(1);
        }
        reached.found.sort_unstable();
        reached.states = known.into_iter().filter(|(_, count)| *count == all).map(|(state, _)| state).collect();
        reached.states.sort_unstable();
        Ok(reached)
    }

    /// Whether it can come back to where a state settles by steps of which nothing is seen.
    pub(super) fn turns(
        &mut self,
        state: PlainId,
        sights: &mut Sights,
        may_go_on: &mut dyn FnMut(&Plain<'m>) -> Result<(), Limit>,
    ) -> Result<bool, Limit> {
        let state = self.settled(state, sights)?;
        self.learn(state, sights)?;
        let edges = self.edges[state as usize].as_deref().expect("it has just been learnt");
        let next: Vec<PlainId> = edges.iter().filter(|edge| edge.seen.is_empty()).filter_map(|edge| edge.to).collect();
        for reached in self.after(&next, u128::MAX, &[], None, sights, may_go_on)?.states {
            if self.settled(reached, sights)? == state {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The steps of a state: what is seen of each, and where it leads, unless the program is over then.
    pub(super) fn steps(&mut self, state: PlainId, sights: &mut Sights) -> Result<Vec<Sighted>, Limit> {
        self.learn(state, sights)?;
        let edges = self.edges[state as usize].as_deref().expect("it has just been learnt");
        Ok(edges.iter().map(|edge| (edge.seen.clone(), edge.to)).collect())
    }

    /// Works out the steps of a state.
    fn learn(&mut self, state: PlainId, sights: &mut Sights) -> Result<(), Limit> {
        if self.edges[state as usize].is_some() {
            return Ok(());
        }
        let numbers = self.states[state as usize].clone();
        self.mover.trim();
        self.mover.find(&numbers);
        if let Some(limit) = self.mover.cut {
            return Err(limit);
        }
        let base = hash(&numbers);
        let mut to = vec![0; numbers.len()];
        let mut edges = Vec::new();
        for index in 0..self.mover.found.len() {
            let found = self.mover.found[index];
            let (chosen, goes) = {
                let found = self.mover.get(found);
                (Chosen::of(found), matches!(found.end, MoveEnd::Goes))
            };
            let leads = goes.then(|| {
                self.mover.apply(found, &numbers, base, &mut to);
                self.number(&to)
            });
            let seen = sights.of_step(&mut self.mover, &numbers, &chosen);
            self.bytes += size_of::<Edge>() + size_of_val(&seen[..]);
            let is_local = matches!(chosen.step, Step::Local { .. });
            edges.push(Edge { actors: actors(chosen.step), is_local, seen: seen.into(), to: leads });
        }
        self.edges[state as usize] = Some(edges.into());
        Ok(())
    }
}
