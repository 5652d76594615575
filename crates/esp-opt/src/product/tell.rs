//! What is told of members that wait in vain: each by its own name, where it waits and for whom. Where a member is that is
//! gone is data: the wait that tells of it has a branch for each place, which nobody ever takes and which is open where the
//! member is there. So it is finished when all places are known. Knows no nodes.

use super::explore::Explorer;
use super::meet::Open;
use super::path::Path;
use super::state::{At, Hope, Known, MemberState, State};
use quaject_esp_ir::ir::WaitForEdge;
use quaject_esp_ir::ir::{
    AltOrder, BinaryOp, BlockId, Blocking, Branch, ChannelId, Direction, Edge, Fault, Guard, Location, Op, Operation,
    Pattern, SiteId, Terminator, TypeTable, Value, Wait,
};

/// The place of a member that has ended.
pub(super) const ENDED: u32 = 0;

/// A place where a member is gone: a wait, and which of its branches are open.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct Rest {
    pub(super) block: BlockId,
    pub(super) open: Vec<bool>,
}

/// What has become of a member when nothing happens any more.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Left {
    There,
    Ended,
    Gone,
    /// It is gone, but somebody who may go on has in its text what it waits for: then it is not told.
    Hoping,
}

/// A wait that is to tell of members.
pub(super) struct Told {
    path: Path,
    wait: Wait,
    waiting: Vec<usize>,
    /// Members that are gone of which it does not tell.
    hoping: Vec<usize>,
    location: Location,
}

/// One thing a member waits for, and what has to be so.
struct Telling {
    wait: WaitForEdge,
    /// Where it is, of one that is gone: told if it is at the place of this number.
    at: Option<(Known, u32)>,
    /// The partners that are gone, and where: those of them that have not ended are told, too.
    gone: Vec<(u32, Known)>,
    /// Its operation, of one that waits here.
    site: Option<SiteId>,
}

impl Telling {
    /// About as many instructions and branches as it takes.
    fn size(&self) -> usize {
        (1 + 2 * (self.gone.len() + usize::from(self.at.is_some()))) << self.gone.len()
    }
}

impl<'g, 'p> Explorer<'g, 'p> {
    /// Waits where these members wait and those who are gone, for what never happens: a deadlock, once everybody else
    /// rests, too. Of those who are gone with hopes, only `hopeless` are told. One wait tells of all who are gone alike.
    pub(super) fn wait_in_vain(&mut self, path: &Path, stuck: &[usize], hopeless: &[usize]) {
        let first = stuck.first().and_then(|member| self.standing(path, *member));
        let location = first.and_then(|(_, wait)| Some(wait.branches.first()?.location)).unwrap_or_default();
        let (order, blocking, observed) = (AltOrder::Fair, Blocking::Deadlock, Vec::new());
        let wait = Wait { order, blocking, branches: Vec::new(), otherwise: None, observed, members: Vec::new() };
        let has_hope = |(number, member): &(usize, &MemberState)| {
            matches!(member.at, At::Gone(hope) if hope != Hope::NONE) && !hopeless.contains(number)
        };
        let members = path.state.members.iter().enumerate();
        let hoping: Vec<usize> = members.filter(has_hope).map(|(number, _)| number).collect();
        if !stuck.is_empty() {
            return self.tell_later(path, wait, (stuck, &hoping), location);
        }
        let left = path.state.members.iter().enumerate().map(|(number, member)| match member.at {
            At::Gone(_) if hoping.contains(&number) => Left::Hoping,
            At::Gone(_) => Left::Gone,
            At::Ended => Left::Ended,
            At::Running(_) | At::Waiting(_) | At::Yielding(..) => Left::There,
        });
        let left: Vec<Left> = left.collect();
        let to = match self.vain.get(&left) {
            Some((block, _)) => *block,
            None => {
                let mut members = path.state.members.clone();
                let gone = members.iter_mut().filter_map(|member| member.rests_at.as_mut());
                let mut parameters = Vec::new();
                for place in gone {
                    let parameter = self.out.value(TypeTable::U32, None);
                    parameters.push(parameter);
                    *place = Known::Value(parameter);
                }
                for member in &mut members {
                    if let At::Gone(hope) = &mut member.at {
                        *hope = Hope::NONE;
                    }
                }
                let block = self.out.block(parameters);
                let path = Path { block, state: State::new(members) };
                self.vain.insert(left, (block, Told { path, wait, waiting: Vec::new(), hoping, location }));
                block
            }
        };
        let mut path = path.clone();
        let places: Vec<Known> = path.state.members.iter().filter_map(|member| member.rests_at).collect();
        let arguments = places.into_iter().map(|place| self.materialize(&mut path, place, TypeTable::U32)).collect();
        self.out.finish(path.block, Terminator::Jump(Edge { to, arguments }), location);
    }

    /// Finishes a block with this wait, which tells of members that wait and of those who are gone, but for some.
    pub(super) fn tell_later(
        &mut self,
        path: &Path,
        wait: Wait,
        (waiting, hoping): (&[usize], &[usize]),
        location: Location,
    ) {
        let mut path = path.clone();
        if path.state.is_lost == Some(false) {
            for member in path.state.members.iter_mut().filter(|member| member.at == At::Gone(Hope::NONE)) {
                member.rests_at = Some(Known::Constant(i128::from(ENDED)));
            }
        }
        let has_gone = path.state.members.iter().any(|member| matches!(member.at, At::Gone(_)));
        let told = Told { path, wait, waiting: waiting.to_vec(), hoping: hoping.to_vec(), location };
        if has_gone {
            self.seen.told.push(told);
        } else {
            self.tell(told);
        }
    }

    /// About as many instructions and branches as it takes to tell.
    pub(super) fn size_of(&self, told: &Told) -> usize {
        self.tellings(told).iter().map(Telling::size).sum()
    }

    /// Finishes a wait that tells of members, as it is known now where they may be.
    pub(super) fn tell(&mut self, told: Told) {
        let tellings = self.tellings(&told);
        let Told { mut path, mut wait, location, .. } = told;
        let asked = wait.branches.len();
        // Where the world is asked under guards alone, what is known to be open lies between members.
        if asked > 0
            && wait.branches.iter().all(|branch| branch.guard != Guard::Open)
            && let Some(operation) = self.in_vain(None)
        {
            let then = self.out.block(Vec::new());
            wait.branches.push(Branch { guard: Guard::Open, operation, then, location });
        }
        for Telling { wait: waits, at, gone, site } in tellings {
            let is_own = |branch: &Branch| site.is_some() && super::course::site(&branch.operation) == site;
            let own = wait.branches[..asked].iter().position(is_own);
            if let Some(own) = own.filter(|own| wait.branches[*own].guard != Guard::Open) {
                wait.members.push((own as u32, waits));
                continue;
            }
            for ended in 0..1u32 << gone.len() {
                let mut waits = waits.clone();
                let mut so: Vec<(Known, u32, bool)> =
                    at.iter().map(|(place, number)| (*place, *number, true)).collect();
                for (number, (instance, place)) in gone.iter().enumerate() {
                    let has_ended = ended >> number & 1 == 1;
                    so.push((*place, ENDED, has_ended));
                    waits.partners.extend((!has_ended).then_some(*instance));
                }
                waits.partners.sort_unstable();
                let Some(guard) = self.all_so(&mut path, &so) else { continue };
                let open = wait.branches.iter().position(|branch| branch.guard == Guard::Open);
                let open = open.or((asked > 0).then_some(0));
                let branch = match (guard, open) {
                    (Guard::Open, Some(open)) => open,
                    (Guard::Open | Guard::Value(_) | Guard::Region(_), _) => {
                        let Some(operation) = self.in_vain(waits.operation.map(|(channel, _)| channel)) else {
                            return self.out.finish(path.block, Terminator::Fault(Fault::Deadlock), waits.location);
                        };
                        let then = self.out.block(Vec::new());
                        wait.branches.push(Branch { guard, operation, then, location: waits.location });
                        wait.branches.len() - 1
                    }
                };
                wait.members.push((branch as u32, waits));
            }
        }
        // Without any place where somebody could be, nobody comes here.
        let end = if wait.branches.is_empty() { Terminator::Fault(Fault::Deadlock) } else { Terminator::Wait(wait) };
        self.out.finish(path.block, end, location);
    }

    /// The guard that is true where each of these places is, or is not, the one of a number; none if that cannot be.
    fn all_so(&mut self, path: &mut Path, so: &[(Known, u32, bool)]) -> Option<Guard> {
        let mut guard: Option<Value> = None;
        for (place, number, holds) in so {
            let place = match place {
                Known::Constant(place) if (*place == i128::from(*number)) == *holds => continue,
                Known::Constant(_) => return None,
                Known::Value(place) => *place,
            };
            let number = self.materialize(path, Known::Constant(i128::from(*number)), TypeTable::U32);
            let op = if *holds { BinaryOp::Equal } else { BinaryOp::NotEqual };
            let one = self.truth(path, Op::Binary(op, place, number));
            guard = Some(match guard {
                Some(others) => self.truth(path, Op::Binary(BinaryOp::BitAnd, others, one)),
                None => one,
            });
        }
        Some(guard.map_or(Guard::Open, Guard::Value))
    }

    fn truth(&mut self, path: &Path, op: Op) -> Value {
        let result = self.out.value(TypeTable::BOOL, None);
        self.out.emit(path.block, Some(result), op, Location::default());
        result
    }

    /// Reading a channel to which nobody will write any more: this one, or another between members. Whoever could use it
    /// waits in vain.
    fn in_vain(&self, channel: Option<ChannelId>) -> Option<Operation> {
        let sites = self.group.sites();
        let reads = |wanted: &dyn Fn(ChannelId) -> bool| {
            sites.iter().position(|site| site.direction == Direction::In && wanted(site.channel))
        };
        let site = reads(&|read| Some(read) == channel && self.group.is_internal(read))
            .or_else(|| reads(&|read| self.group.is_internal(read)))?;
        let channel = sites[site].channel;
        let patterns = self.group.program.channels[channel.0 as usize].payload.iter().map(|_| Pattern::Any).collect();
        Some(Operation::In { site: SiteId(site as u32), channel, patterns, condition: None })
    }

    /// What members that wait and those who are gone wait for, in the order in which it is told.
    fn tellings(&self, Told { path, waiting, hoping, .. }: &Told) -> Vec<Telling> {
        let mut tellings = Vec::new();
        for member in waiting {
            let Some((block, wait)) = self.standing(path, *member) else { continue };
            let open = wait.branches.iter().map(|branch| self.open(path, *member, branch.guard) != Open::No).collect();
            self.tell_of(path, *member, &Rest { block, open }, None, &mut tellings);
        }
        for (member, state) in path.state.members.iter().enumerate() {
            let (Some(place), At::Gone(hope)) = (state.rests_at, state.at) else { continue };
            if hoping.contains(&member) {
                continue;
            }
            for (index, rest) in self.rests[member].iter().enumerate() {
                if !self.reached[member].contains(&(index as i128 + 1)) {
                    continue;
                }
                if hope != Hope::NONE && self.hopes[hope.0] != self.wanted_at(member, rest) {
                    continue;
                }
                self.tell_of(path, member, rest, Some((place, index as u32 + 1)), &mut tellings);
            }
        }
        tellings.sort_by_key(|telling| telling.wait.instance);
        tellings
    }

    fn tell_of(
        &self,
        path: &Path,
        member: usize,
        Rest { block, open }: &Rest,
        at: Option<(Known, u32)>,
        tellings: &mut Vec<Telling>,
    ) {
        let instance = self.group.members[member].instance;
        let first = tellings.len();
        for (branch, _) in self.group.wait(member, *block).branches.iter().zip(open).filter(|(_, open)| **open) {
            let Some((channel, direction)) = branch.operation.channel_end() else { continue };
            let (partners, gone) = self.partners_of(path, member, channel, direction);
            let (operation, location) = (Some((channel, direction)), branch.location);
            let wait = WaitForEdge { instance, location, operation, partners };
            let first_site = self.group.members[member].first_site;
            let site = super::course::site(&branch.operation).filter(|_| at.is_none());
            let site = site.map(|site| SiteId(site.0 + first_site));
            tellings.push(Telling { wait, at, gone, site });
        }
        if tellings.len() == first {
            let location = self.group.members[member].body.blocks[block.0 as usize].location;
            let wait = WaitForEdge { instance, location, operation: None, partners: Vec::new() };
            tellings.push(Telling { wait, at, gone: Vec::new(), site: None });
        }
    }

    /// The instances that could meet a member on a channel: other members that have not ended, and all outside; and those
    /// that are gone, with where they are.
    fn partners_of(
        &self,
        path: &Path,
        member: usize,
        channel: ChannelId,
        direction: Direction,
    ) -> (Vec<u32>, Vec<(u32, Known)>) {
        let program = self.group.program;
        let users = self.group.users.get(&channel).into_iter().flatten();
        let instances = users.filter(|(_, end)| *end == direction.other()).flat_map(|(process, _)| {
            let first = program.first_instance(*process);
            first..first + program.processes[process.0 as usize].replicas
        });
        let (mut left, mut gone) = (Vec::new(), Vec::new());
        for instance in instances {
            let number = self.group.members.iter().position(|other| other.instance == instance);
            let state = number.map(|other| &path.state.members[other]);
            match state.and_then(|state| state.rests_at) {
                _ if number == Some(member) => {}
                Some(place) if number.is_some_and(|other| !self.rests[other].is_empty()) => {
                    gone.push((instance, place))
                }
                Some(_) => {}
                None => left.extend(state.is_none_or(|state| state.at != At::Ended).then_some(instance)),
            }
        }
        (left, gone)
    }
}
