//! Following a fast path: who runs, which statements it goes on with, where it is left. What is asked for is in `course`,
//! what members' code does in `path`, how they meet in `meet`.

use super::course::{Course, Leaving, PartCourse, Stage, site};
use super::explore::Explorer;
use super::meet::Open;
use super::path::Path;
use super::state::{At, Meeting};
use crate::path_exit::{ExitReason, PathExit};
use crate::path_spec::{PathElement, ProgramPoint};
use crate::refusal::Refusal;
use quaject_esp_ir::ir::{
    AltOrder, BlockId, Direction, Guard, Leave, Location, Op, Operation, PathId, Resume, SiteId, Terminator, Value,
    Wait,
};

/// What happens when a predicate is known: the path goes on, or is left for this reason.
type Decided<'c, 'g, 'p> = &'c mut dyn FnMut(&mut Explorer<'g, 'p>, Path, Option<ExitReason>) -> Result<(), Refusal>;

/// What an interesting statement means for the word of a member.
enum Step {
    /// It goes on.
    On,
    /// It ends here.
    Exit,
    /// The path does not go on with it.
    Off,
}

impl<'g, 'p> Explorer<'g, 'p> {
    fn part_of(&self, member: usize) -> &'g PartCourse {
        let course: &'g Course = self.course.expect("only a path has a course");
        &course.parts[member]
    }

    /// Goes on along the path: whoever runs, or the next in the queue; without any the path ends.
    pub(super) fn proceed(&mut self, mut path: Path) -> Result<(), Refusal> {
        self.check_size()?;
        self.seen.states.insert(self.places(&path));
        let rank = &self.course.expect("only a path has a course").rank;
        let Some(member) = path.state.progress.next(rank) else {
            let is_done = |(number, stage): (usize, &Stage)| {
                let at = path.state.members[number].at;
                stage.is_parked || !stage.has_started || at == At::Ended
            };
            let all = path.state.progress.members.iter().enumerate().all(is_done);
            return self.leave_course(path, if all { ExitReason::Normal } else { ExitReason::NoneRunnable });
        };
        match path.state.members[member].at {
            At::Running(block) => self.run(path, member, block),
            At::Waiting(block) => self.arrive(path, member, block),
            At::Yielding(..) => unreachable!("a path is left before a `yield`"),
            At::Ended | At::Gone(_) => {
                path.state.progress.running = None;
                self.proceed(path)
            }
        }
    }

    /// Before a block of a member that runs: whether the path goes on into it. None if the path has been dealt with.
    pub(super) fn before_block(
        &mut self,
        mut path: Path,
        member: usize,
        block: BlockId,
    ) -> Result<Option<Path>, Refusal> {
        path.state.members[member].at = At::Running(block);
        if self.is_forced() {
            return self.leave_course(path, ExitReason::Forced(member)).map(|()| None);
        }
        let source = &self.group.members[member].body.blocks[block.0 as usize];
        if let Some(first) = source.instructions.first() {
            if let Op::Mark(label) = first.op {
                let point = ProgramPoint::Label(label);
                match self.step(&mut path, member, point) {
                    Step::On => {}
                    Step::Off => return self.leave_course(path, ExitReason::Deviation(member)).map(|()| None),
                    Step::Exit if member > 0 && self.part_of(member).near_start[block.0 as usize] => {
                        path.state.progress.members[member] = Stage::default();
                    }
                    Step::Exit => {
                        path.state.progress.members[member].is_parked = true;
                        path.state.progress.running = None;
                        return self.proceed(path).map(|()| None);
                    }
                }
            }
            return self.guarded(path, member, first);
        }
        match &source.terminator {
            Terminator::Yield(_) | Terminator::Exit(_) | Terminator::End | Terminator::Fault(_) => {
                self.leave_course(path, ExitReason::Stops(member)).map(|()| None)
            }
            Terminator::Jump(_)
            | Terminator::Branch { .. }
            | Terminator::Switch { .. }
            | Terminator::Wait(_)
            | Terminator::Return(_)
            | Terminator::Result(_)
            | Terminator::Enter(_)
            | Terminator::Leave(_) => Ok(Some(path)),
        }
    }

    /// Whether this is the place where the path is left for no reason.
    fn is_forced(&mut self) -> bool {
        let Some(places) = &mut self.until_forced else { return false };
        match places.checked_sub(1) {
            Some(left) => *places = left,
            None => self.until_forced = None,
        }
        self.until_forced.is_none()
    }

    /// What a statement means for a member's word, which goes on with it if it can.
    fn step(&mut self, path: &mut Path, member: usize, point: ProgramPoint) -> Step {
        let part = self.part_of(member);
        let stage = &mut path.state.progress.members[member];
        let tested = std::mem::take(&mut stage.tested);
        if !part.is_interesting(point) {
            stage.tested = tested;
            return Step::On;
        }
        let holds = |test: Option<u32>| test.is_none_or(|test| tested.contains(&(test, true)));
        if part.exit.iter().any(|exit| exit.point == point && holds(exit.test)) {
            self.seen.ended.insert((member, point));
            return Step::Exit;
        }
        let next = part.words.next(&stage.word, point);
        stage.word = next.into_iter().filter(|number| holds(part.words.elements[*number as usize].test)).collect();
        if stage.word.is_empty() {
            return Step::Off;
        }
        self.seen.spelled.insert((member, point));
        Step::On
    }

    /// Whether a member's path can go on with an operation, with this partner if it has one.
    fn is_allowed(&self, path: &Path, member: usize, site: SiteId, partner: Option<(usize, SiteId)>) -> bool {
        let part = self.part_of(member);
        let stage = &path.state.progress.members[member];
        let suits = |element: &PathElement| {
            let peer = match (element.peer, partner) {
                (Some(wanted), Some(partner)) => wanted == partner,
                (Some(_), None) | (None, _) => true,
            };
            element.point == ProgramPoint::Site(site)
                && peer
                && element.test.is_none_or(|test| !stage.tested.contains(&(test, false)))
        };
        if !stage.has_started {
            return suits(&part.start);
        }
        if !part.is_interesting(ProgramPoint::Site(site)) {
            return true;
        }
        let next = part.words.next(&stage.word, ProgramPoint::Site(site));
        next.iter().any(|number| suits(&part.words.elements[*number as usize]))
    }

    /// A member goes on from an operation: its word does, too. Who it wants to run next.
    pub(super) fn advance(&mut self, path: &mut Path, member: usize, site: SiteId) -> Option<usize> {
        let part = self.part_of(member);
        let stage = &mut path.state.progress.members[member];
        let tested = std::mem::take(&mut stage.tested);
        if !stage.has_started {
            stage.has_started = true;
            stage.word.clear();
            stage.is_start_pending = part.start.test.is_some_and(|test| !tested.contains(&(test, true)));
            return part.start.yield_to;
        }
        if !part.is_interesting(ProgramPoint::Site(site)) {
            return None;
        }
        let mut yield_to = None;
        let mut word = Vec::new();
        for number in part.words.next(&stage.word, ProgramPoint::Site(site)) {
            let element = &part.words.elements[number as usize];
            match element.test {
                Some(test) if tested.contains(&(test, false)) => continue,
                Some(test) if !tested.contains(&(test, true)) => stage.pending.push(number),
                Some(_) | None => word.push(number),
            }
            yield_to = yield_to.or(element.yield_to);
        }
        if !word.is_empty() || !stage.pending.is_empty() {
            self.seen.spelled.insert((member, ProgramPoint::Site(site)));
        }
        stage.word = word;
        yield_to
    }

    /// A predicate of a member has been computed: the path forks on it if it has to know.
    pub(super) fn predicate(
        &mut self,
        path: Path,
        member: usize,
        test: u32,
        holds: Value,
        location: Location,
        then: Decided<'_, 'g, 'p>,
    ) -> Result<(), Refusal> {
        let part = self.part_of(member);
        let own = part.start.test == Some(test) && member > 0
            || part.exit.iter().chain(&part.words.elements).any(|element| element.test == Some(test));
        if !own {
            return then(self, path, None);
        }
        self.fork(path, member, holds, location, &mut |explorer, mut path, holds| {
            let part = explorer.part_of(member);
            let stage = &mut path.state.progress.members[member];
            if part.start.test == Some(test) && stage.is_start_pending {
                stage.is_start_pending = false;
                return then(explorer, path, (!holds).then_some(ExitReason::PredicateFalse(member)));
            }
            let of = |number: &u32| part.words.elements[*number as usize].test == Some(test);
            if stage.pending.iter().any(of) {
                let (known, unknown): (Vec<u32>, Vec<u32>) = stage.pending.iter().partition(|number| of(number));
                stage.pending = unknown;
                if holds {
                    stage.word.extend(known);
                    stage.word.sort_unstable();
                }
                let is_off = stage.word.is_empty() && stage.pending.is_empty();
                return then(explorer, path, is_off.then_some(ExitReason::PredicateFalse(member)));
            }
            stage.tested.push((test, holds));
            then(explorer, path, None)
        })
    }

    /// A member is at an operation: it ends there, meets somebody, asks the world, or waits.
    pub(super) fn arrive(&mut self, mut path: Path, member: usize, block: BlockId) -> Result<(), Refusal> {
        path.state.members[member].at = At::Waiting(block);
        path.state.prune(self.group, member);
        if self.is_forced() {
            return self.leave_course(path, ExitReason::Forced(member));
        }
        let wait = self.group.wait(member, block);
        let part = self.part_of(member);
        if path.state.progress.members[member].has_started {
            let sites = || wait.branches.iter().filter_map(|branch| site(&branch.operation));
            let tested = &path.state.progress.members[member].tested;
            let ends = |exit: &PathElement| {
                exit.test.is_none_or(|test| tested.contains(&(test, true)))
                    && sites().any(|site| exit.point == ProgramPoint::Site(site))
            };
            let ended: Vec<ProgramPoint> = part.exit.iter().filter(|exit| ends(exit)).map(|exit| exit.point).collect();
            if !ended.is_empty() {
                self.seen.ended.extend(ended.into_iter().map(|point| (member, point)));
                if member > 0 && block == part.first {
                    path.state.progress.members[member] = Stage::default();
                } else {
                    path.state.progress.members[member].is_parked = true;
                    path.state.progress.running = None;
                    return self.proceed(path);
                }
            }
        }
        if wait.order == AltOrder::Priority && wait.branches.len() > 1 || wait.otherwise.is_some() {
            return self.leave_course(path, ExitReason::Stops(member));
        }
        let branches: Vec<u32> =
            (0..wait.branches.len() as u32).filter(|branch| self.is_open(&path, member, *branch)).collect();
        self.seen.has_choice |= branches.len() > 1;
        if branches.is_empty() {
            return self.leave_course(path, ExitReason::Deviation(member));
        }
        self.look(path, member, wait, branches)
    }

    /// Whether the path can go on with a branch: its guard may hold, and the word goes on.
    fn is_open(&self, path: &Path, member: usize, branch: u32) -> bool {
        let Some((_, wait)) = self.standing(path, member) else { return false };
        let Some(site) = site(&wait.branches[branch as usize].operation) else { return false };
        let guard = wait.branches[branch as usize].guard;
        !matches!(guard, Guard::Region(_))
            && self.open(path, member, guard) != Open::No
            && self.is_allowed(path, member, site, None)
    }

    /// Tries the branches of a member's wait, in order of text.
    fn look(&mut self, mut path: Path, member: usize, wait: &'p Wait, branches: Vec<u32>) -> Result<(), Refusal> {
        self.check_size()?;
        let mut waits_for_members = false;
        for (position, number) in branches.iter().enumerate() {
            let branch = &wait.branches[*number as usize];
            if let (Open::Perhaps, Guard::Value(guard)) = (self.open(&path, member, branch.guard), branch.guard) {
                let rest = branches[position..].to_vec();
                return self.fork(path, member, guard, branch.location, &mut |explorer, path, holds| {
                    let rest = if holds { rest.clone() } else { rest[1..].to_vec() };
                    explorer.look(path, member, wait, rest)
                });
            }
            let (channel, direction) = match &branch.operation {
                Operation::In { channel, .. } => (*channel, Direction::In),
                Operation::Out { channel, .. } => (*channel, Direction::Out),
                Operation::After { .. } => continue,
            };
            if !self.group.is_internal(channel) {
                let rest = branches[position + 1..].to_vec();
                let is_last = rest.is_empty() && !waits_for_members;
                return self.poll(path, vec![(member, *number)], &mut |explorer, path| {
                    if is_last {
                        return explorer.leave_course(path, ExitReason::EnvironmentNotReady(member));
                    }
                    explorer.look(path, member, wait, rest.clone())
                });
            }
            waits_for_members = true;
            if let Some(meeting) = self.partner(&path, member, *number, direction) {
                return self.attempt(path, meeting);
            }
        }
        path.state.progress.running = None;
        self.proceed(path)
    }

    /// A rendezvous of a branch with a member that waits and goes on with it.
    fn partner(&mut self, path: &Path, member: usize, number: u32, direction: Direction) -> Option<Meeting> {
        let (_, wait) = self.standing(path, member)?;
        let own = site(&wait.branches[number as usize].operation)?;
        let mut found = Vec::new();
        for other in (0..self.group.members.len()).filter(|other| *other != member) {
            if path.state.progress.members[other].is_parked || path.state.progress.queue.contains(&other) {
                continue;
            }
            let Some((_, wait)) = self.standing(path, other) else { continue };
            for branch in 0..wait.branches.len() as u32 {
                let Some(theirs) = site(&wait.branches[branch as usize].operation) else { continue };
                let meeting = match direction {
                    Direction::In => (other, branch, member, number),
                    Direction::Out => (member, number, other, branch),
                };
                let is_start = !path.state.progress.members[other].has_started;
                if self.can_be(path, meeting)
                    && (is_start || self.is_open(path, other, branch))
                    && self.is_allowed(path, other, theirs, Some((member, own)))
                    && self.is_allowed(path, member, own, Some((other, theirs)))
                {
                    found.push(meeting);
                }
            }
        }
        self.seen.has_choice |= found.len() > 1;
        found.first().copied()
    }

    /// After a communication: the receiver goes on, the sender is appended, unless somebody yields to another.
    pub(super) fn after_meeting(
        &mut self,
        mut path: Path,
        (writer, _, reader, _): Meeting,
        sites: (Option<SiteId>, Option<SiteId>),
    ) -> Result<(), Refusal> {
        let mut yield_to = None;
        for (member, site) in [(writer, sites.0), (reader, sites.1)] {
            if let Some(site) = site {
                yield_to = self.advance(&mut path, member, site).map(|to| (member, to)).or(yield_to);
            }
        }
        let progress = &mut path.state.progress;
        progress.wait_in_queue(writer);
        progress.running = Some(reader);
        if let Some((_, to)) = yield_to.filter(|(_, to)| *to != reader) {
            match progress.queue.iter().position(|member| *member == to) {
                Some(position) => {
                    progress.queue.remove(position);
                    progress.wait_in_queue(reader);
                    progress.running = Some(to);
                }
                None => return self.leave_course(path, ExitReason::NoneRunnable),
            }
        }
        self.proceed(path)
    }

    /// The path is left: everybody gets its values back.
    pub(super) fn leave_course(&mut self, mut path: Path, reason: ExitReason) -> Result<(), Refusal> {
        let order = path.state.progress.order(self.group.members.len());
        let at = self.places(&path);
        self.seen.states.insert(at.clone());
        let exit = PathExit { reason, at };
        self.seen.exits.insert(exit.clone());
        let count = path.state.count.expect("a path counts iterations");
        self.seen.leaves.push(Leaving { block: path.block, count, exit });
        let terminator = self.leaving(&mut path, &order);
        self.out.finish(path.block, terminator, Location::default());
        Ok(())
    }

    /// The terminator that gives everybody its values back.
    pub(super) fn leaving(&mut self, path: &mut Path, order: &[usize]) -> Terminator {
        let mut trigger = None;
        let mut members = Vec::new();
        for member in order {
            let block = match path.state.members[*member].at {
                At::Running(block) | At::Waiting(block) => block,
                At::Yielding(..) | At::Ended | At::Gone(_) => {
                    unreachable!("a path is left before a `yield` and an end")
                }
            };
            let live: Vec<Value> = self.group.members[*member].live[block.0 as usize].values.iter().copied().collect();
            let values = live.into_iter().map(|value| (value, self.value(path, *member, value))).collect();
            let resume = Resume { to: block, values };
            match member.checked_sub(1) {
                None => trigger = Some(resume),
                Some(number) => members.push((number as u32, resume)),
            }
        }
        // The path's number in the program is set where it is inserted, that of the way out when all are known.
        let trigger = trigger.expect("the trigger is a member");
        Terminator::Leave(Leave { path: PathId(0), exit: 0, trigger, members })
    }

    /// How far members are from their starts: first by how many do not come there next, then by how many have to run.
    pub(super) fn away(&self, path: &Path) -> usize {
        let count = self.group.members.len();
        let away = |member: usize| match path.state.members[member].at {
            At::Waiting(block) | At::Running(block) if block == self.part_of(member).first => 0,
            At::Waiting(block) | At::Running(block) if self.part_of(member).before_start[block.0 as usize] => 1,
            At::Waiting(_) | At::Running(_) | At::Yielding(..) | At::Ended | At::Gone(_) => count,
        };
        (0..count).map(away).sum()
    }

    /// Where in the text everybody is.
    pub(super) fn places(&self, path: &Path) -> Vec<Location> {
        (0..self.group.members.len()).map(|member| self.place_of(path, member)).collect()
    }

    /// Where in the text a member is.
    fn place_of(&self, path: &Path, member: usize) -> Location {
        let body = self.group.members[member].body;
        let mut block = match path.state.members[member].at {
            At::Running(block) | At::Waiting(block) => block,
            At::Yielding(..) | At::Ended | At::Gone(_) => return Location::default(),
        };
        // Labels and jumps stand for what is behind them.
        for _ in 0..body.blocks.len() {
            let source = &body.blocks[block.0 as usize];
            if let Some(first) = source.instructions.iter().find(|instruction| instruction.location.line != 0) {
                return first.location;
            }
            match &source.terminator {
                Terminator::Jump(edge) if source.instructions.is_empty() => block = edge.to,
                _ => return source.location,
            }
        }
        Location::default()
    }
}
