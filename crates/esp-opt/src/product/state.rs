//! The states of the product. A [`SymbolicState`] is the state of one path of the symbolic execution; an
//! [`AbstractState`] is what remains of it at a node: control locations and coarsened facts. Defines how facts
//! are coarsened, assumed and forgotten; executes nothing.

use super::group::Group;
use super::schedule::PathProgress;
use crate::facts::{Fact, MAX_EXCLUDED, refine};
use quaject_esp_ir::ir::{BinaryOp, BlockId, Place, SlotId, TypeId, TypeTable, Value};
use quaject_esp_ir::small_map::SmallMap;
use std::collections::BTreeSet;
use std::rc::Rc;

/// The state of the symbolic execution on one of its paths: the block that is being emitted, and the state of the
/// members there.
#[derive(Clone)]
pub(super) struct SymbolicState {
    pub(super) block: BlockId,
    pub(super) product: ProductState,
}

/// The state of all members at a point of a path, with what is known of their values.
#[derive(Clone, Debug)]
pub(super) struct ProductState {
    pub(super) members: Vec<MemberState>,
    /// The live values of the members.
    pub(super) values: SmallMap<MemberValue, SymbolicValue>,
    /// Facts about values of the residue, beyond their types: those of the node's abstract state, and those learned on
    /// the path since, which take precedence.
    pub(super) node_facts: Rc<SmallMap<Value, Fact>>,
    pub(super) facts: SmallMap<Value, Fact>,
    /// Facts about tags of unions in memory of the residue.
    pub(super) tags: SmallMap<TagPlace, Fact>,
    /// Lengths of `bytes` in slots of the residue, as far as this path knows them.
    pub(super) lengths: SmallMap<SlotId, i128>,
    /// Values that were read as the tag of a union which has not been written since.
    pub(super) tag_reads: SmallMap<Value, TagPlace>,
    /// How `bool`s of the residue were computed, so that a branch on one refines the facts about its operands.
    pub(super) conditions: SmallMap<Value, Condition>,
    /// Constants that are materialized on this path.
    pub(super) constants: SmallMap<(TypeId, i128), Value>,
    /// Rendezvous that were tried and do not match.
    pub(super) refuted: BTreeSet<Rendezvous>,
    /// Since the last node: members that have proceeded, and members for which the environment was polled.
    pub(super) progressed_members: BTreeSet<usize>,
    pub(super) polled: BTreeSet<usize>,
    /// Whether the group has waited for the environment since the last node.
    pub(super) has_waited: bool,
    /// Whether any inert member is blocked rather than terminated; none: not tested on this path.
    pub(super) any_blocked: Option<bool>,
    /// On a fast path: the progress of the schedule and of the members' automata, and the iteration count.
    pub(super) path_progress: PathProgress,
    pub(super) iteration_count: Option<Value>,
}

/// The control locations of all members, and on a fast path its progress.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct LocationVector {
    pub(super) members: Vec<(Control, SmallMap<BlockId, BranchChoice>)>,
    pub(super) path_progress: PathProgress,
}

/// The state of one member, except for its values.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct MemberState {
    pub(super) control: Control,
    /// Per fair wait with several branches or partners: the last choice, after which the next one begins.
    pub(super) last_choice: SmallMap<BlockId, BranchChoice>,
    /// Of an inert member: the number ([`BlockedWaitId`](super::pending_report::BlockedWaitId)) of the wait at which it
    /// is blocked.
    pub(super) blocked_wait: Option<SymbolicValue>,
}

/// The control location of a member.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum Control {
    /// Before a block.
    Running(BlockId),
    /// At the wait that a block ends in.
    Waiting(BlockId),
    /// Before a block, after a `yield`.
    Yielded(BlockId, YieldTurn),
    /// At its end.
    Terminated,
    /// Terminated, or blocked forever: no active member can reach a partner of it, so it never proceeds
    /// ([`MemberState::blocked_wait`] distinguishes the two). The set is [`AwaitedSetId::NOT_WAKEABLE`] unless
    /// it is wakeable.
    Inert(AwaitedSetId),
}

/// The number of the set of operations that an inert member waits for, if it is wakeable (`explore::inert_members`). A
/// wakeable member is not reported as deadlocked.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct AwaitedSetId(pub(super) usize);

impl AwaitedSetId {
    pub(super) const NOT_WAKEABLE: AwaitedSetId = AwaitedSetId(0);
}

/// When a member that has yielded continues.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct YieldTurn {
    pub(super) since: SinceYield,
    /// How many members have yielded before it and have not continued yet.
    pub(super) queue_position: usize,
}

/// What has happened since a member yielded.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum SinceYield {
    /// Only members that had yielded have continued: waiting members take precedence, if any can proceed.
    NothingRan,
    /// A waiting member has proceeded: it is this member's turn.
    OthersRan,
}

/// The choice of a wait: the branch and the partner. Ordered as a fair wait tries them.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct BranchChoice {
    pub(super) branch: u32,
    pub(super) partner: u32,
}

impl BranchChoice {
    /// The choice of a branch with another member.
    pub(super) fn with_member(branch: u32, member: usize) -> BranchChoice {
        BranchChoice { branch, partner: member as u32 }
    }

    /// The choice of a branch with the environment, after all members.
    pub(super) fn with_environment(branch: u32) -> BranchChoice {
        BranchChoice { branch, partner: u32::MAX }
    }
}

/// A rendezvous: a branch of the sender's wait and one of the receiver's.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct Rendezvous {
    pub(super) sender: usize,
    pub(super) sender_branch: u32,
    pub(super) receiver: usize,
    pub(super) receiver_branch: u32,
}

impl Rendezvous {
    pub(super) fn involves(&self, member: usize) -> bool {
        self.sender == member || self.receiver == member
    }

    /// The choice that the sender makes.
    pub(super) fn sender_choice(&self) -> BranchChoice {
        BranchChoice::with_member(self.sender_branch, self.receiver)
    }

    /// The choice that the receiver makes.
    pub(super) fn receiver_choice(&self) -> BranchChoice {
        BranchChoice::with_member(self.receiver_branch, self.sender)
    }
}

/// A union: its slot in the residue and the path into it, fields as even and payloads as odd numbers.
pub(super) type TagPlace = (SlotId, Vec<u32>);

/// A value of a member, by the member's number.
pub(super) type MemberValue = (usize, Value);

/// A symbolic value: a constant, or a value that the residue computes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) enum SymbolicValue {
    Constant(i128),
    Residual(Value),
}

/// A symbolic operand: a scalar or reference, or a place in memory of the residue.
#[derive(Clone, Debug)]
pub(super) enum SymbolicOperand {
    Value(SymbolicValue, TypeId),
    Place(Place, TypeId),
}

impl SymbolicOperand {
    pub(super) fn ty(&self) -> TypeId {
        match self {
            SymbolicOperand::Value(_, ty) | SymbolicOperand::Place(_, ty) => *ty,
        }
    }
}

/// What a `bool` of the residue was computed from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Condition {
    /// A comparison of two numbers.
    Compare(BinaryOp, SymbolicValue, SymbolicValue, TypeId),
    /// The negation of another `bool`.
    Not(Value),
}

/// The abstract state of a node: what distinguishes it from other nodes.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(super) struct AbstractState {
    /// The number of the partition, which determines the location vector.
    pub(super) partition: usize,
    pub(super) refuted: BTreeSet<Rendezvous>,
    /// Facts about live values; a value without one may be any of its type.
    pub(super) facts: SmallMap<MemberValue, Fact>,
    pub(super) tags: SmallMap<TagPlace, Fact>,
}

/// Which facts keep the abstract states of a partition apart. All other facts are joined over the partition.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Precision {
    /// All: constants that are compared with, intervals, excluded values, tags.
    Full,
    /// Those about `bool`s and tags.
    Flags,
    /// None; nothing is known of tags. Refuted rendezvous still do, as at every precision.
    NoFacts,
}

impl ProductState {
    /// A state with these members and no facts.
    pub(super) fn new(members: Vec<MemberState>) -> ProductState {
        ProductState {
            members,
            values: SmallMap::new(),
            node_facts: Rc::default(),
            facts: SmallMap::new(),
            tags: SmallMap::new(),
            lengths: SmallMap::new(),
            tag_reads: SmallMap::new(),
            conditions: SmallMap::new(),
            constants: SmallMap::new(),
            refuted: BTreeSet::new(),
            progressed_members: BTreeSet::new(),
            polled: BTreeSet::new(),
            has_waited: false,
            any_blocked: None,
            path_progress: PathProgress::default(),
            iteration_count: None,
        }
    }

    /// The fact about a value of the residue, if there is more than its type.
    fn known_fact(&self, value: Value) -> Option<&Fact> {
        self.facts.get(&value).or_else(|| self.node_facts.get(&value))
    }

    /// The fact about a value.
    pub(super) fn fact(&self, group: &Group<'_>, known: SymbolicValue, ty: TypeId) -> Fact {
        match known {
            SymbolicValue::Constant(value) => Fact::constant(value),
            SymbolicValue::Residual(value) => {
                self.known_fact(value).cloned().unwrap_or_else(|| Fact::of_type(group.types(), ty))
            }
        }
    }

    /// The symbolic value of a value of a member.
    pub(super) fn symbolic_value(&self, member: usize, value: Value) -> SymbolicValue {
        self.fold_constant(*self.values.get(&(member, value)).expect("a live value is known"))
    }

    /// The value, or the constant if its fact admits only one.
    pub(super) fn fold_constant(&self, known: SymbolicValue) -> SymbolicValue {
        match known {
            SymbolicValue::Constant(_) => known,
            SymbolicValue::Residual(value) => match self.known_fact(value).and_then(Fact::as_constant) {
                Some(constant) => SymbolicValue::Constant(constant),
                None => known,
            },
        }
    }

    /// Members that have yielded, and when they continue.
    pub(super) fn yielding(&self) -> impl Iterator<Item = (usize, YieldTurn)> {
        self.members.iter().enumerate().filter_map(|(member, state)| match state.control {
            Control::Yielded(_, turn) => Some((member, turn)),
            Control::Running(_) | Control::Waiting(_) | Control::Terminated | Control::Inert(_) => None,
        })
    }

    /// The control locations of all members.
    pub(super) fn location_vector(&self) -> LocationVector {
        let members = self.members.iter().map(|member| (member.control, member.last_choice.clone())).collect();
        LocationVector { members, path_progress: self.path_progress.clone() }
    }

    /// Abstracts this state, for the partition of its location vector.
    pub(super) fn abstraction(&self, group: &Group<'_>, partition: usize, precision: Precision) -> AbstractState {
        let facts = self.values.iter().filter_map(|(origin, known)| {
            let fact = match known {
                SymbolicValue::Constant(value) => &Fact::constant(*value),
                SymbolicValue::Residual(value) => match self.facts.get(value) {
                    Some(fact) => fact,
                    None => return self.node_facts.get(value).map(|fact| (*origin, fact.clone())),
                },
            };
            group.coarsen(*origin, fact).map(|fact| (*origin, fact))
        });
        let facts = facts.collect();
        let is_live = |place: &TagPlace| precision != Precision::NoFacts && self.is_live(group, place.0);
        let tags =
            self.tags.iter().filter(|(place, _)| is_live(place)).map(|(place, fact)| (place.clone(), fact.clone()));
        AbstractState { partition, refuted: self.refuted.clone(), facts, tags: tags.collect() }
    }

    /// Whether a member may still read a slot.
    fn is_live(&self, group: &Group<'_>, slot: SlotId) -> bool {
        self.members.iter().zip(&group.members).any(|(state, member)| {
            let Some(own) = slot.0.checked_sub(member.first_slot) else { return false };
            let live = match state.control {
                Control::Running(block) | Control::Yielded(block, _) => &member.live[block.0 as usize],
                Control::Waiting(block) => match &member.live_at_wait[block.0 as usize] {
                    Some(live) => live,
                    None => return false,
                },
                Control::Terminated | Control::Inert(_) => return false,
            };
            live.slots.contains(&SlotId(own))
        })
    }

    /// Removes the values of a member that are dead.
    pub(super) fn prune(&mut self, group: &Group<'_>, member: usize) {
        let known = &group.members[member];
        let live = match self.members[member].control {
            Control::Running(block) | Control::Yielded(block, _) => Some(&known.live[block.0 as usize]),
            Control::Waiting(block) => known.live_at_wait[block.0 as usize].as_ref(),
            Control::Terminated | Control::Inert(_) => None,
        };
        let is_live = |value: &Value| live.is_some_and(|live| live.values.contains(value));
        self.values.retain(|(other, value), _| *other != member || is_live(value));
    }

    /// Removes the facts about memory that may have been written.
    pub(super) fn forget_tags(&mut self, slot: SlotId, path: &[u32]) {
        self.lengths.remove(&slot);
        self.tags.retain(|(other, known), _| {
            let common = known.len().min(path.len());
            *other != slot || known[..common] != path[..common]
        });
        self.tag_reads.retain(|_, (other, known)| {
            let common = known.len().min(path.len());
            *other != slot || known[..common] != path[..common]
        });
    }

    /// Assumes that a `bool` of the residue has a value; false if the facts contradict it.
    pub(super) fn assume_condition(&mut self, group: &Group<'_>, value: Value, holds: bool) -> bool {
        if !self.assume_fact(value, Fact::constant(i128::from(holds))) {
            return false;
        }
        match self.conditions.get(&value).cloned() {
            Some(Condition::Not(other)) => self.assume_condition(group, other, !holds),
            Some(Condition::Compare(op, a, b, ty)) => {
                match refine(op, holds, &self.fact(group, a, ty), &self.fact(group, b, ty)) {
                    Some((fact_a, fact_b)) => {
                        let mut assume = |known: SymbolicValue, fact: Fact| match known {
                            SymbolicValue::Residual(value) => self.assume_fact(value, fact),
                            SymbolicValue::Constant(_) => true,
                        };
                        assume(a, fact_a) && assume(b, fact_b)
                    }
                    None => false,
                }
            }
            None => true,
        }
    }

    /// Assumes a fact about a value of the residue; false if the value is a constant that contradicts it.
    pub(super) fn assume_fact(&mut self, value: Value, fact: Fact) -> bool {
        if let Some(known) = self.known_fact(value)
            && known.as_constant().is_some_and(|known| !fact.admits(known))
        {
            return false;
        }
        if let Some(place) = self.tag_reads.get(&value) {
            self.tags.insert(place.clone(), fact.clone());
        }
        self.facts.insert(value, fact);
        true
    }
}

impl Group<'_> {
    /// Whether a fact keeps abstract states apart even where intervals are widened: a `bool` or a compared constant.
    pub(super) fn separates_states(&self, origin: MemberValue, fact: &Fact) -> bool {
        fact.as_constant().is_some_and(|value| self.is_flag(origin) || self.thresholds.compared.contains(&value))
    }

    /// Whether a member's value is a `bool`.
    pub(super) fn is_flag(&self, origin: MemberValue) -> bool {
        self.type_of(origin) == TypeTable::BOOL
    }

    /// The top element for a member's value: any value of its type.
    pub(super) fn top(&self, origin: MemberValue) -> Fact {
        Fact::of_type(self.types(), self.type_of(origin))
    }

    fn type_of(&self, origin: MemberValue) -> TypeId {
        self.members[origin.0].body.values[origin.1.0 as usize].ty
    }

    /// The join of two facts.
    pub(super) fn join(&self, a: &Fact, b: &Fact) -> Fact {
        let (low, high) = (a.low.min(b.low), a.high.max(b.high));
        let is_out = |value: &i128| !a.admits(*value) && !b.admits(*value);
        let excluded = a.not.iter().chain(&b.not).chain(&self.thresholds.compared).copied();
        let mut not: Vec<i128> = excluded.filter(|value| low < *value && *value < high).filter(is_out).collect();
        not.sort_unstable();
        not.dedup();
        not.truncate(MAX_EXCLUDED);
        Fact { low, high, not }
    }

    /// Coarsens a fact for an abstract state: the ends of its interval are moved outward to thresholds. None for the
    /// top element.
    fn coarsen(&self, origin: MemberValue, fact: &Fact) -> Option<Fact> {
        let is_compared = |value: &i128| self.thresholds.compared.contains(value);
        if self.separates_states(origin, fact) {
            return Some(fact.clone());
        }
        let top = self.top(origin);
        let below = self.thresholds.lower.partition_point(|low| *low <= fact.low);
        let low = below.checked_sub(1).map_or(i128::MIN, |last| self.thresholds.lower[last]);
        let above = self.thresholds.upper.partition_point(|high| *high < fact.high);
        let high = self.thresholds.upper.get(above).copied().unwrap_or(i128::MAX);
        let (mut low, mut high) = (low.max(top.low), high.min(top.high));
        // Every compared constant is a threshold, so none lies between these ends and those of the fact.
        let is_out = |value: i128| is_compared(&value) && !fact.admits(value);
        if low < high && is_out(low) {
            low += 1;
        }
        if low < high && is_out(high) {
            high -= 1;
        }
        let coarse = Fact { low, high, not: fact.not.iter().copied().filter(is_compared).collect() };
        (coarse != top).then_some(coarse)
    }
}
