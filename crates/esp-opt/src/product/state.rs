//! Where every member stands and what is known of its values. A path carries a state along; its abstraction is the key
//! of a node. Knows how facts are coarsened, not how states change.

use super::course::Progress;
use super::group::Group;
use crate::facts::{Fact, MAX_EXCLUDED, refine};
use quaject_esp_ir::ir::{BinaryOp, BlockId, SlotId, TypeId, TypeTable, Value};
use quaject_esp_ir::small_map::SmallMap;
use std::collections::BTreeSet;
use std::rc::Rc;

/// A state on a path through the product.
#[derive(Clone, Debug)]
pub(super) struct State {
    pub(super) members: Vec<MemberState>,
    /// What the members' live values are.
    pub(super) values: SmallMap<Origin, Known>,
    /// What is known of values of the residue, beyond their types: what was at the node, as its key says it, and what has
    /// been learned since.
    pub(super) given: Rc<SmallMap<Value, Fact>>,
    pub(super) facts: SmallMap<Value, Fact>,
    /// What is known of the tags of unions in memory of the residue.
    pub(super) tags: SmallMap<TagPlace, Fact>,
    /// Lengths of `bytes` in slots of the residue, as far as they are known on this path.
    pub(super) lengths: SmallMap<SlotId, i128>,
    /// Values that were read as the tag of a union which has not changed since.
    pub(super) reads: SmallMap<Value, TagPlace>,
    /// Comparisons of which the result is a value of the residue.
    pub(super) tests: SmallMap<Value, Test>,
    /// Constants that have a value on this path.
    pub(super) constants: SmallMap<(TypeId, i128), Value>,
    /// Rendezvous that were tried and do not match.
    pub(super) refuted: BTreeSet<Meeting>,
    /// Members that have gone on since the last node, and members that the world was asked for.
    pub(super) moved: BTreeSet<usize>,
    pub(super) polled: BTreeSet<usize>,
    /// Whether everybody has waited for the world since the last node.
    pub(super) has_rested: bool,
    /// Of members that are gone: whether any of them waits for ever, once that has been asked.
    pub(super) is_lost: Option<bool>,
    /// On a fast path: who runs, and where the words are; and the count of iterations that are left.
    pub(super) progress: Progress,
    pub(super) count: Option<Value>,
}

/// Where all members stand, and on a fast path how far it has come.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Standing {
    pub(super) members: Vec<(At, SmallMap<BlockId, Way>)>,
    pub(super) progress: Progress,
}

/// One member on a path.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct MemberState {
    pub(super) at: At,
    /// Per fair wait with several ways: the way taken last.
    pub(super) last: SmallMap<BlockId, Way>,
    /// Of a member that is gone: the number of the place, 0 where it has ended.
    pub(super) rests_at: Option<Known>,
}

/// Where a member stands.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum At {
    /// Before a block.
    Running(BlockId),
    /// At the wait a block ends in.
    Waiting(BlockId),
    /// Before a block, behind a `yield`.
    Yielding(BlockId, Turn),
    /// At the end of its text.
    Ended,
    /// At an end, or at a wait that nothing can end any more: [`MemberState::rests_at`] says which.
    Gone(Hope),
}

/// The operations for which a member waits that is gone, by number, as long as somebody is left who has such a one in its
/// text: then it is no deadlock yet. 0 if there is nobody.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Hope(pub(super) usize);

impl Hope {
    pub(super) const NONE: Hope = Hope(0);
}

/// When a member that has yielded goes on.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Turn {
    pub(super) since: Since,
    /// How many yielded before it and have not gone on yet.
    pub(super) behind: usize,
}

/// What has happened since a member yielded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Since {
    /// Nothing, but that others went on who had yielded: those who wait come first, if any can go on.
    Nothing,
    /// Somebody who waited has gone on: now it is this member's turn.
    Others,
}

/// A way to leave a wait: the branch, and who is met there, `u32::MAX` for the world.
pub(super) type Way = (u32, u32);

/// A writer, its branch, a reader, its branch.
pub(super) type Meeting = (usize, u32, usize, u32);

/// A union: its slot in the residue and the path into it, fields as even and payloads as odd numbers.
pub(super) type TagPlace = (SlotId, Vec<u32>);

/// A value of a member.
pub(super) type Origin = (usize, Value);

/// What a value of a member is in the residue.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Known {
    Constant(i128),
    Value(Value),
}

/// What a `bool` of the residue says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Test {
    /// A comparison of two numbers.
    Compare(BinaryOp, Known, Known, TypeId),
    /// That another `bool` is false.
    Not(Value),
}

/// What tells a node from others.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Key {
    /// The number of the place.
    pub(super) place: usize,
    pub(super) refuted: BTreeSet<Meeting>,
    /// Per member and live value: what is known of it; absent: no more than its type.
    pub(super) facts: SmallMap<Origin, Fact>,
    pub(super) tags: SmallMap<TagPlace, Fact>,
}

/// How much of what is known tells nodes apart.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Detail {
    /// Constants that are compared with, ranges, excluded values, tags.
    Full,
    /// `bool`s and tags; of what else is known that which all versions have in common.
    Flags,
    /// What all versions have in common, of tags nothing.
    None,
}

impl State {
    /// Members somewhere, and nothing known.
    pub(super) fn new(members: Vec<MemberState>) -> State {
        State {
            members,
            values: SmallMap::new(),
            given: Rc::default(),
            facts: SmallMap::new(),
            tags: SmallMap::new(),
            lengths: SmallMap::new(),
            reads: SmallMap::new(),
            tests: SmallMap::new(),
            constants: SmallMap::new(),
            refuted: BTreeSet::new(),
            moved: BTreeSet::new(),
            polled: BTreeSet::new(),
            has_rested: false,
            is_lost: None,
            progress: Progress::default(),
            count: None,
        }
    }

    /// What is known of a value of the residue, if it is more than its type says.
    fn learned(&self, value: Value) -> Option<&Fact> {
        self.facts.get(&value).or_else(|| self.given.get(&value))
    }

    /// What is known of a value of the residue, or of a constant.
    pub(super) fn fact(&self, group: &Group<'_>, known: Known, ty: TypeId) -> Fact {
        match known {
            Known::Constant(value) => Fact::constant(value),
            Known::Value(value) => self.learned(value).cloned().unwrap_or_else(|| Fact::of_type(group.types(), ty)),
        }
    }

    /// What a value of a member is known as.
    pub(super) fn known(&self, member: usize, value: Value) -> Known {
        self.settled(*self.values.get(&(member, value)).expect("a live value is known"))
    }

    /// The same or, if only one number can be meant, that one.
    pub(super) fn settled(&self, known: Known) -> Known {
        match known {
            Known::Constant(_) => known,
            Known::Value(value) => match self.learned(value).and_then(Fact::as_constant) {
                Some(constant) => Known::Constant(constant),
                None => known,
            },
        }
    }

    /// Members that have yielded, and when they go on.
    pub(super) fn yielding(&self) -> impl Iterator<Item = (usize, Turn)> {
        self.members.iter().enumerate().filter_map(|(member, state)| match state.at {
            At::Yielding(_, turn) => Some((member, turn)),
            At::Running(_) | At::Waiting(_) | At::Ended | At::Gone(_) => None,
        })
    }

    /// Where everybody stands.
    pub(super) fn standing(&self) -> Standing {
        let members = self.members.iter().map(|member| (member.at, member.last.clone())).collect();
        Standing { members, progress: self.progress.clone() }
    }

    /// The key of the node this state is at: at the place of this number, told apart by so much.
    pub(super) fn key(&self, group: &Group<'_>, place: usize, detail: Detail) -> Key {
        let facts = self.values.iter().filter_map(|(origin, known)| {
            let fact = match known {
                Known::Constant(value) => &Fact::constant(*value),
                Known::Value(value) => match self.facts.get(value) {
                    Some(fact) => fact,
                    None => return self.given.get(value).map(|fact| (*origin, fact.clone())),
                },
            };
            group.coarsen(*origin, fact).map(|fact| (*origin, fact))
        });
        let facts = facts.collect();
        let live = |place: &TagPlace| detail != Detail::None && self.is_live(group, place.0);
        let tags = self.tags.iter().filter(|(place, _)| live(place)).map(|(place, fact)| (place.clone(), fact.clone()));
        Key { place, refuted: self.refuted.clone(), facts, tags: tags.collect() }
    }

    /// Whether a member may still read a slot.
    fn is_live(&self, group: &Group<'_>, slot: SlotId) -> bool {
        self.members.iter().zip(&group.members).any(|(state, member)| {
            let Some(own) = slot.0.checked_sub(member.first_slot) else { return false };
            let live = match state.at {
                At::Running(block) | At::Yielding(block, _) => &member.live[block.0 as usize],
                At::Waiting(block) => match &member.at_rest[block.0 as usize] {
                    Some(live) => live,
                    None => return false,
                },
                At::Ended | At::Gone(_) => return false,
            };
            live.slots.contains(&SlotId(own))
        })
    }

    /// Forgets values of a member that it will not use again.
    pub(super) fn prune(&mut self, group: &Group<'_>, member: usize) {
        let known = &group.members[member];
        let live = match self.members[member].at {
            At::Running(block) | At::Yielding(block, _) => Some(&known.live[block.0 as usize]),
            At::Waiting(block) => known.at_rest[block.0 as usize].as_ref(),
            At::Ended | At::Gone(_) => None,
        };
        let is_live = |value: &Value| live.is_some_and(|live| live.values.contains(value));
        self.values.retain(|(other, value), _| *other != member || is_live(value));
    }

    /// Forgets the tags of what may have been written.
    pub(super) fn forget_tags(&mut self, slot: SlotId, path: &[u32]) {
        self.lengths.remove(&slot);
        self.tags.retain(|(other, known), _| {
            let common = known.len().min(path.len());
            *other != slot || known[..common] != path[..common]
        });
        self.reads.retain(|_, (other, known)| {
            let common = known.len().min(path.len());
            *other != slot || known[..common] != path[..common]
        });
    }

    /// Takes a `bool` of the residue to be true or false; whether that can be.
    pub(super) fn assume(&mut self, group: &Group<'_>, value: Value, holds: bool) -> bool {
        if !self.learn(value, Fact::constant(i128::from(holds))) {
            return false;
        }
        match self.tests.get(&value).cloned() {
            Some(Test::Not(other)) => self.assume(group, other, !holds),
            Some(Test::Compare(op, a, b, ty)) => {
                match refine(op, holds, &self.fact(group, a, ty), &self.fact(group, b, ty)) {
                    Some((fact_a, fact_b)) => {
                        let mut learn = |known: Known, fact: Fact| match known {
                            Known::Value(value) => self.learn(value, fact),
                            Known::Constant(_) => true,
                        };
                        learn(a, fact_a) && learn(b, fact_b)
                    }
                    None => false,
                }
            }
            None => true,
        }
    }

    /// Takes a value of the residue to be as the fact says; whether that can be.
    pub(super) fn learn(&mut self, value: Value, fact: Fact) -> bool {
        if let Some(known) = self.learned(value)
            && known.as_constant().is_some_and(|known| !fact.admits(known))
        {
            return false;
        }
        if let Some(place) = self.reads.get(&value) {
            self.tags.insert(place.clone(), fact.clone());
        }
        self.facts.insert(value, fact);
        true
    }
}

impl Group<'_> {
    /// Whether a fact is a constant that keeps versions apart.
    pub(super) fn is_kept(&self, origin: Origin, fact: &Fact) -> bool {
        fact.as_constant().is_some_and(|value| self.is_flag(origin) || self.compared.contains(&value))
    }

    /// Whether a member's value is a `bool`.
    pub(super) fn is_flag(&self, origin: Origin) -> bool {
        self.type_of(origin) == TypeTable::BOOL
    }

    /// What the type of a member's value says.
    pub(super) fn whole(&self, origin: Origin) -> Fact {
        Fact::of_type(self.types(), self.type_of(origin))
    }

    fn type_of(&self, origin: Origin) -> TypeId {
        self.members[origin.0].body.values[origin.1.0 as usize].ty
    }

    /// What is so of every value that one fact or the other admits.
    pub(super) fn join(&self, a: &Fact, b: &Fact) -> Fact {
        let (low, high) = (a.low.min(b.low), a.high.max(b.high));
        let is_out = |value: &i128| !a.admits(*value) && !b.admits(*value);
        let excluded = a.not.iter().chain(&b.not).chain(&self.compared).copied();
        let mut not: Vec<i128> = excluded.filter(|value| low < *value && *value < high).filter(is_out).collect();
        not.sort_unstable();
        not.dedup();
        not.truncate(MAX_EXCLUDED);
        Fact { low, high, not }
    }

    /// What a key says of what is known of a value: few enough values that there are not too many nodes. None if it is no
    /// more than its type says.
    fn coarsen(&self, origin: Origin, fact: &Fact) -> Option<Fact> {
        let is_compared = |value: &i128| self.compared.contains(value);
        if self.is_kept(origin, fact) {
            return Some(fact.clone());
        }
        let whole = self.whole(origin);
        let below = self.lows.partition_point(|low| *low <= fact.low);
        let low = below.checked_sub(1).map_or(i128::MIN, |last| self.lows[last]);
        let above = self.highs.partition_point(|high| *high < fact.high);
        let high = self.highs.get(above).copied().unwrap_or(i128::MAX);
        let (mut low, mut high) = (low.max(whole.low), high.min(whole.high));
        // What is compared with is one of these ends: between them and the fact's there is no other.
        let is_out = |value: i128| is_compared(&value) && !fact.admits(value);
        if low < high && is_out(low) {
            low += 1;
        }
        if low < high && is_out(high) {
            high -= 1;
        }
        let coarse = Fact { low, high, not: fact.not.iter().copied().filter(is_compared).collect() };
        (coarse != whole).then_some(coarse)
    }
}
