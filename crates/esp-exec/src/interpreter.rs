//! The reference interpreter: the schedule of the reference, section 9, over the steps of `step`. It never blocks, but
//! returns what it waits for. Knows no drivers.
//!
//! ```text
//!   ready list (FIFO) --turn--> local code, then its operation
//!        ^                        | a partner waits: the receiver continues, the sender is appended
//!        |                        | the environment is ready: appended, the turn ends
//!        +---- polling <----------+ no branch is enabled: it waits, in order of arrival
//! ```
//!
//! A turn also ends at a `yield`, after 64 operations, and before a `pri alt` with a guard that has just opened: an
//! instance that could communicate with it is appended to the list, behind it. The environment and the clock are polled
//! when an instance would wait for them, when the ready list is empty, and every 64 turns.

mod osr;

pub use osr::{OsrDirection, OsrMap};

use crate::code::{BranchCode, GuardCode, OperationCode, WaitCode};
use crate::coverage::Coverage;
use crate::environment::Environment;
use crate::message_log::MessageLog;
use crate::native::Native;
use crate::path_counters::PathCounters;
use crate::profile::Profile;
use crate::quiescence::direction;
use crate::report::Outcome;
use crate::state::{Control, State};
use crate::step::Checks;
use crate::step::{Effect, EnvironmentMode, Machine, Step, StepContext, TooLarge, channel_of};
use quaject_esp_ir::ir::{AltOrder, Direction, Policy, Program};
use std::collections::VecDeque;

/// The maximum number of communications, `after`s and `else`s of one turn.
pub const OPERATIONS_PER_TURN: u32 = 64;
/// The number of turns between two polls of the environment.
pub const TURNS_PER_POLL: u32 = 64;

/// A program running under the reference schedule.
pub struct Interpreter<'p> {
    machine: Machine<'p>,
    state: State,
    schedule: Schedule,
}

/// The state of the schedule: the current turn, the ready list and the queues. It is a function of the steps so far.
struct Schedule {
    ready: VecDeque<u32>,
    queued: Vec<bool>,
    /// Per instance: whether a guard of it has opened while it waits, and it has had no turn since. It is on the list.
    reopened: Vec<bool>,
    /// The instance whose turn it is, and the number of its operations in this turn.
    turn: Option<(u32, u32)>,
    /// Per instance: whether it is in the queues below.
    waiting: Vec<bool>,
    /// Instances waiting for the environment or a time, in order of arrival.
    awaiting_environment: VecDeque<u32>,
    /// Per internal channel: instances waiting to read, and to write, in order of arrival.
    readers: Vec<VecDeque<u32>>,
    writers: Vec<VecDeque<u32>>,
    /// Per instance, per wait: the branch with which the search starts.
    first: Vec<Vec<u32>>,
    turns: u32,
    /// The number of instances rechecked at quiescence since the last turn from the list (see `pool_recheck`).
    rechecked: u32,
    trace: Option<Vec<Step>>,
    profile: Option<Box<Profile>>,
    log: Option<Box<MessageLog>>,
    /// The number of communications outside fast paths.
    communications: u64,
    over: Option<Outcome>,
}

/// What an instance at an operation can do next.
enum SearchResult {
    Nothing,
    /// It takes this step.
    Own(Step),
    /// Another instance has to take this step first: an earlier branch of its `pri alt` can commit with the
    /// environment.
    Partner(Step),
    /// Reopened instances have a turn first: a partner's `pri alt` may prefer one of them.
    Later,
}

/// Whether a search skips partners whose `pri alt` prefers another branch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PriorityPass {
    SkipPreferring,
    TakeAny,
}

impl<'p> Interpreter<'p> {
    /// A verified program in its initial state.
    pub fn new(program: &'p Program, checks: Checks) -> Result<Interpreter<'p>, TooLarge> {
        let machine = Machine::new(program, checks)?;
        let state = machine.start();
        let count = state.instances();
        let waits = |instance: u32| {
            let process = machine.code.instances[instance as usize].0;
            vec![0; machine.code.processes[process.0 as usize].waits.len()]
        };
        let schedule = Schedule {
            ready: (0..count).collect(),
            queued: vec![true; count as usize],
            reopened: vec![false; count as usize],
            turn: None,
            waiting: vec![false; count as usize],
            awaiting_environment: VecDeque::new(),
            readers: vec![VecDeque::new(); program.channels.len()],
            writers: vec![VecDeque::new(); program.channels.len()],
            first: (0..count).map(waits).collect(),
            turns: 0,
            rechecked: 0,
            trace: None,
            profile: None,
            log: None,
            communications: 0,
            over: None,
        };
        Ok(Interpreter { machine, state, schedule })
    }

    /// Executes local code by machine code. The program is in its initial state.
    pub fn use_native(&mut self, native: Box<dyn Native>) {
        self.machine.use_native(&mut self.state, native);
    }

    /// Records every step from now on.
    pub fn record(&mut self) {
        self.schedule.trace.get_or_insert_default();
    }

    /// The steps recorded since the last call.
    pub fn take_trace(&mut self) -> Vec<Step> {
        self.schedule.trace.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records a profile of communications from now on.
    pub fn profile(&mut self) {
        self.schedule.profile = Some(Box::new(Profile::new(self.machine.program())));
    }

    /// The profile since [`Interpreter::profile`]; none if none is recorded.
    pub fn take_profile(&mut self) -> Option<Profile> {
        self.schedule.profile.take().map(|profile| *profile)
    }

    /// Logs the next `max` steps that communicate.
    pub fn log_messages(&mut self, max: usize) {
        self.schedule.log = Some(Box::new(MessageLog::new(max)));
    }

    /// The log since [`Interpreter::log_messages`]; none if none is kept.
    pub fn take_message_log(&mut self) -> Option<MessageLog> {
        self.schedule.log.take().map(|log| *log)
    }

    /// Records coverage from now on. Processes then run without machine code.
    pub fn record_coverage(&mut self) {
        self.machine.record_coverage();
    }

    /// The coverage since [`Interpreter::record_coverage`]; none if none is recorded.
    pub fn coverage(&mut self) -> Option<&mut Coverage> {
        self.machine.coverage()
    }

    /// The counters of each fast path.
    pub fn path_runs(&self) -> &[PathCounters] {
        &self.machine.work.path_runs
    }

    /// The current state.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// IR steps executed so far.
    pub fn executed(&self) -> u64 {
        self.machine.executed()
    }

    /// Runs until the program is quiescent or over, or about `budget` IR steps are done. Never blocks.
    pub fn run(&mut self, environment: &mut dyn Environment, budget: u64) -> Outcome {
        let mut context = self.machine.context(&mut self.state, environment);
        self.schedule.run(&mut context, budget)
    }
}

impl Schedule {
    fn run(&mut self, context: &mut StepContext<'_>, budget: u64) -> Outcome {
        let mut fuel = budget;
        loop {
            if let Some(outcome) = &self.over {
                return outcome.clone();
            }
            if fuel == 0 {
                return Outcome::Budget;
            }
            if self.turn.is_none() {
                if self.turns == TURNS_PER_POLL || self.ready.is_empty() {
                    self.turns = 0;
                    self.poll(context);
                }
                let Some(instance) = self.ready.pop_front() else {
                    if self.over.is_some() {
                        continue;
                    }
                    if let Some(instance) = self.next_recheck(context) {
                        self.turn = Some((instance, 0));
                        continue;
                    }
                    match context.classify_quiescence() {
                        Outcome::Quiescent(awaited) => return Outcome::Quiescent(awaited),
                        outcome @ (Outcome::Budget | Outcome::Ended(_) | Outcome::Faulted(_)) => {
                            self.over = Some(outcome);
                            continue;
                        }
                    }
                };
                self.queued[instance as usize] = false;
                self.reopened[instance as usize] = false;
                self.rechecked = 0;
                self.turns += 1;
                self.turn = Some((instance, 0));
            }
            self.continue_turn(context, &mut fuel);
            // Each turn costs fuel, so that a program that only communicates stops too.
            fuel = fuel.saturating_sub(1);
        }
    }

    /// The next instance whose branches are tried again at quiescence.
    fn next_recheck(&mut self, context: &StepContext<'_>) -> Option<u32> {
        let count = context.state.instances();
        let next = (self.rechecked..count)
            .find(|instance| context.wait(*instance).is_some_and(|wait| wait.retries_at_quiescence));
        self.rechecked = next.map_or(count, |instance| instance + 1);
        next
    }

    fn append(&mut self, instance: u32) {
        if !std::mem::replace(&mut self.queued[instance as usize], true) {
            self.ready.push_back(instance);
        }
    }

    /// Removes an instance from the ready list.
    fn unqueue(&mut self, instance: u32) {
        if std::mem::replace(&mut self.queued[instance as usize], false) {
            self.ready.retain(|other| *other != instance);
        }
    }

    /// Takes a step. Returns whether the program continues.
    fn take(&mut self, step: Step, context: &mut StepContext<'_>, fuel: &mut u64) -> bool {
        if let (Some(trace), None) = (&mut self.trace, context.state.unfinished) {
            trace.push(step);
        }
        if let Some(profile) = &mut self.profile {
            profile.note(step, context);
        }
        if let (Some(log), None) = (&mut self.log, context.state.unfinished) {
            log.note(step, context);
        }
        self.communications += u64::from(is_communication(step, context));
        match step {
            Step::Local { .. } => {}
            Step::Communicate { sender, sender_branch, receiver, receiver_branch } => {
                self.leave(context, sender, Some(sender_branch));
                self.leave(context, receiver, Some(receiver_branch));
            }
            Step::FromEnvironment { instance, branch }
            | Step::ToEnvironment { instance, branch }
            | Step::After { instance, branch } => self.leave(context, instance, Some(branch)),
            Step::Else { instance } => self.leave(context, instance, None),
        }
        match context.step(step, fuel) {
            Effect::Done => {
                while let Some(instance) = context.work.reopened.pop_front() {
                    if is_waiting(context, instance) {
                        self.append(instance);
                        self.reopened[instance as usize] = true;
                    }
                }
                self.follow_path(context);
                true
            }
            Effect::Unfinished => {
                self.follow_path(context);
                false
            }
            Effect::Exited(status) => {
                self.over = Some(Outcome::Ended(status));
                false
            }
            Effect::Faulted(report) => {
                self.over = Some(Outcome::Faulted(report));
                false
            }
        }
    }

    /// After a step that entered or left a fast path: captured members leave the queues, resumed ones join the list.
    fn follow_path(&mut self, context: &mut StepContext<'_>) {
        for (instance, wait) in std::mem::take(&mut context.work.captured) {
            if context.state.control(instance) != (Control::Waiting { wait }) {
                let process = context.code.instances[instance as usize].0;
                self.unregister(context, instance, &context.code.processes[process.0 as usize].waits[wait as usize]);
                self.unqueue(instance);
            }
        }
        for instance in std::mem::take(&mut context.work.resumed) {
            self.append(instance);
        }
    }

    fn continue_turn(&mut self, context: &mut StepContext<'_>, fuel: &mut u64) {
        while let Some((instance, operations)) = self.turn {
            if let Control::Running { .. } = context.state.control(instance) {
                if !self.take(Step::Local { instance }, context, fuel) {
                    if self.over.is_some() {
                        self.turn = None;
                    }
                    return;
                }
                if let Control::Running { .. } = context.state.control(instance) {
                    // It has yielded.
                    self.append(instance);
                    self.turn = None;
                    return;
                }
            }
            if !is_waiting(context, instance) {
                self.turn = None;
                return;
            }
            match self.find(instance, context) {
                SearchResult::Nothing => {
                    self.wait(instance, context);
                    self.turn = None;
                }
                SearchResult::Later => {
                    self.wait(instance, context);
                    self.append(instance);
                    self.turn = None;
                }
                SearchResult::Own(step) => {
                    let policy = policy(step, context);
                    self.turn = None;
                    if self.take(step, context, fuel) {
                        self.turn = self.continue_with(step, policy, operations + 1);
                    }
                }
                SearchResult::Partner(step) => {
                    let partner = actor(step);
                    if self.take(step, context, fuel) {
                        self.append(partner);
                    } else {
                        self.turn = None;
                    }
                }
            }
            if *fuel == 0 {
                return;
            }
        }
    }

    /// Appends the instances that a step of this turn has made ready. Returns the one that continues the turn.
    fn continue_with(&mut self, step: Step, policy: Policy, operations: u32) -> Option<(u32, u32)> {
        let next = match (step, policy) {
            (Step::Communicate { sender, receiver, .. }, Policy::Receiver) => {
                self.append(sender);
                receiver
            }
            (Step::Communicate { sender, receiver, .. }, Policy::Sender) => {
                self.append(receiver);
                sender
            }
            (Step::Communicate { sender, receiver, .. }, Policy::Queue) => {
                self.append(sender);
                self.append(receiver);
                return None;
            }
            (Step::FromEnvironment { instance, .. } | Step::ToEnvironment { instance, .. }, _) => {
                self.append(instance);
                return None;
            }
            (Step::After { instance, .. } | Step::Else { instance } | Step::Local { instance }, _) => instance,
        };
        if operations >= OPERATIONS_PER_TURN {
            self.append(next);
            return None;
        }
        // It may be on the list because one of its guards has opened.
        self.unqueue(next);
        Some((next, operations))
    }

    /// The branches of a wait in the order in which the instance tries them.
    fn search_order(
        &self,
        context: &StepContext<'_>,
        instance: u32,
        wait: &WaitCode,
    ) -> impl Iterator<Item = u32> + use<> {
        let count = wait.branches.len() as u32;
        let first = match (wait.order, context.state.control(instance)) {
            (AltOrder::Fair, Control::Waiting { wait }) => self.first[instance as usize][wait as usize],
            (AltOrder::Fair, Control::Running { .. } | Control::CapturedByPath { .. } | Control::Ended)
            | (AltOrder::Priority, _) => 0,
        };
        (first..count).chain(0..first)
    }

    /// Searches the branches of an instance at an operation, and for each the waiting partners.
    fn find(&mut self, instance: u32, context: &mut StepContext<'_>) -> SearchResult {
        let wait = context.wait(instance).expect("it is at an operation");
        for branch in self.search_order(context, instance, wait) {
            if !context.state.instances[instance as usize].branches[branch as usize].open {
                continue;
            }
            let (channel, sends) = match &wait.branches[branch as usize].operation {
                OperationCode::In { channel, .. } if context.is_internal(*channel) => (*channel, false),
                OperationCode::Out { channel, .. } if context.is_internal(*channel) => (*channel, true),
                OperationCode::In { .. } | OperationCode::Out { .. } | OperationCode::After { .. } => {
                    if context.environment_ready(EnvironmentMode::Polled, instance, branch) {
                        return SearchResult::Own(context.environment_step(instance, branch));
                    }
                    continue;
                }
            };
            let partners = if sends { &self.readers } else { &self.writers };
            for pass in [PriorityPass::SkipPreferring, PriorityPass::TakeAny] {
                let mut skipped = false;
                for partner in partners[channel.0 as usize].iter().copied().filter(|partner| *partner != instance) {
                    let partner_wait = context.wait(partner).expect("queues hold waiting instances");
                    for partner_branch in self.search_order(context, partner, partner_wait) {
                        let (own, other) = ((instance, branch), (partner, partner_branch));
                        let (from, to) = if sends { (own, other) } else { (other, own) };
                        if !context.can_rendezvous(from, to) {
                            continue;
                        }
                        if pass == PriorityPass::SkipPreferring && prefers(context, partner, partner_branch, instance) {
                            skipped = true;
                            break;
                        }
                        return self.rendezvous(context, from, to, (partner, partner_branch));
                    }
                }
                // Only a `pri alt` prefers this branch to a later one that its partner prefers.
                if !skipped || wait.order == AltOrder::Fair {
                    break;
                }
            }
        }
        if wait.otherwise.is_some() { SearchResult::Own(Step::Else { instance }) } else { SearchResult::Nothing }
    }

    /// A rendezvous with a partner, or what has to precede it.
    fn rendezvous(
        &self,
        context: &mut StepContext<'_>,
        from: (u32, u32),
        to: (u32, u32),
        (partner, branch): (u32, u32),
    ) -> SearchResult {
        if self.reopened_goes_first(context, partner, branch) {
            return SearchResult::Later;
        }
        match earlier_environment_step(context, partner, branch) {
            Some(earlier) => SearchResult::Partner(earlier),
            None => SearchResult::Own(Step::Communicate {
                sender: from.0,
                sender_branch: from.1,
                receiver: to.0,
                receiver_branch: to.1,
            }),
        }
    }

    /// Whether a branch of a waiting `pri alt` cannot be taken yet, because a guard that has opened may enable an
    /// earlier branch: a guard of its own, or of a partner. The instance of that guard has its turn first.
    fn reopened_goes_first(&self, context: &StepContext<'_>, instance: u32, branch: u32) -> bool {
        if branch == 0 || !context.code.has_pool_guards() {
            return false;
        }
        let wait = context.wait(instance).expect("queues hold waiting instances");
        let earlier = match wait.order {
            AltOrder::Fair => return false,
            AltOrder::Priority => &wait.branches[..branch as usize],
        };
        earlier.iter().any(|earlier| {
            let Some(channel) = channel_of(earlier).filter(|channel| context.is_internal(*channel)) else {
                return false;
            };
            let partners = match direction(earlier) {
                Direction::In => &self.writers,
                Direction::Out => &self.readers,
            };
            self.reopened[instance as usize] && has_pool_guard(earlier)
                || partners[channel.0 as usize].iter().any(|partner| {
                    let wait = context.wait(*partner).expect("queues hold waiting instances");
                    let has_partner = |branch: &BranchCode| {
                        has_pool_guard(branch)
                            && channel_of(branch) == Some(channel)
                            && direction(branch) != direction(earlier)
                    };
                    *partner != instance && self.reopened[*partner as usize] && wait.branches.iter().any(has_partner)
                })
        })
    }

    /// Adds an instance to the queues of its wait.
    fn wait(&mut self, instance: u32, context: &StepContext<'_>) {
        if std::mem::replace(&mut self.waiting[instance as usize], true) {
            return;
        }
        let wait = context.wait(instance).expect("it is at an operation");
        if wait.awaits_environment {
            self.awaiting_environment.push_back(instance);
        }
        for branch in &wait.branches {
            if let Some(queue) = self.queue(context, branch).filter(|queue| !queue.contains(&instance)) {
                queue.push_back(instance);
            }
        }
    }

    /// The queue in which an instance waits for partners of a branch.
    fn queue(&mut self, context: &StepContext<'_>, branch: &BranchCode) -> Option<&mut VecDeque<u32>> {
        match &branch.operation {
            OperationCode::In { channel, .. } if context.is_internal(*channel) => {
                Some(&mut self.readers[channel.0 as usize])
            }
            OperationCode::Out { channel, .. } if context.is_internal(*channel) => {
                Some(&mut self.writers[channel.0 as usize])
            }
            OperationCode::In { .. } | OperationCode::Out { .. } | OperationCode::After { .. } => None,
        }
    }

    /// An instance leaves its operation by this branch or its `else`.
    fn leave(&mut self, context: &StepContext<'_>, instance: u32, branch: Option<u32>) {
        let wait = context.wait(instance).expect("it is at an operation");
        if let (Some(branch), Control::Waiting { wait: number }) = (branch, context.state.control(instance)) {
            let next = if branch + 1 == wait.branches.len() as u32 { 0 } else { branch + 1 };
            self.first[instance as usize][number as usize] = next;
        }
        self.reopened[instance as usize] = false;
        self.unregister(context, instance, wait);
    }

    /// Removes an instance from the queues of its wait.
    fn unregister(&mut self, context: &StepContext<'_>, instance: u32, wait: &WaitCode) {
        if !std::mem::replace(&mut self.waiting[instance as usize], false) {
            return;
        }
        if wait.awaits_environment {
            remove(&mut self.awaiting_environment, instance);
        }
        for branch in &wait.branches {
            if let Some(queue) = self.queue(context, branch) {
                remove(queue, instance);
            }
        }
    }

    /// Polls the environment and the clock for the instances that wait for them, in order of arrival.
    fn poll(&mut self, context: &mut StepContext<'_>) {
        for instance in Vec::from(self.awaiting_environment.clone()) {
            let Some(wait) = context.wait(instance) else { continue };
            let order = self.search_order(context, instance, wait);
            let found =
                order.into_iter().find(|branch| context.environment_ready(EnvironmentMode::Polled, instance, *branch));
            if let Some(branch) = found.filter(|branch| !self.reopened_goes_first(context, instance, *branch)) {
                let step = context.environment_step(instance, branch);
                if !self.take(step, context, &mut 0) {
                    return;
                }
                self.append(instance);
            }
        }
    }
}

/// Which instance continues after a rendezvous.
fn policy(step: Step, context: &StepContext<'_>) -> Policy {
    let (instance, branch) = match step {
        Step::Communicate { sender, sender_branch, .. } => (sender, sender_branch),
        Step::FromEnvironment { .. }
        | Step::ToEnvironment { .. }
        | Step::After { .. }
        | Step::Else { .. }
        | Step::Local { .. } => {
            return Policy::Receiver;
        }
    };
    let wait = context.wait(instance).expect("a sender waits");
    let channel = channel_of(&wait.branches[branch as usize]).expect("an `out` has a channel");
    context.program.channels[channel.0 as usize].policy
}

/// Whether a waiting `pri alt` could rendezvous with another instance at a branch before this one.
fn prefers(context: &mut StepContext<'_>, instance: u32, branch: u32, other: u32) -> bool {
    let (Some(wait), Some(theirs)) = (context.wait(instance), context.wait(other)) else { return false };
    if wait.order == AltOrder::Fair {
        return false;
    }
    for earlier in 0..branch {
        for their in 0..theirs.branches.len() as u32 {
            let (own, their) = ((instance, earlier), (other, their));
            if context.can_rendezvous(own, their) || context.can_rendezvous(their, own) {
                return true;
            }
        }
    }
    false
}

/// The step of a branch of a waiting `pri alt` before this one that can commit with the environment.
fn earlier_environment_step(context: &mut StepContext<'_>, instance: u32, branch: u32) -> Option<Step> {
    let wait = context.wait(instance)?;
    let earlier = match wait.order {
        AltOrder::Fair => 0..0,
        AltOrder::Priority => 0..branch,
    };
    earlier
        .into_iter()
        .find(|branch| context.environment_ready(EnvironmentMode::Polled, instance, *branch))
        .map(|branch| context.environment_step(instance, branch))
}

/// Whether its guard reads the number of free objects, so that it may open while the instance waits.
fn has_pool_guard(branch: &BranchCode) -> bool {
    match branch.guard {
        GuardCode::Region(_) => true,
        GuardCode::Open | GuardCode::Register(_) => false,
    }
}

/// Whether a step is a communication outside fast paths. Steps of a fast path communicate only with the environment.
fn is_communication(step: Step, context: &StepContext<'_>) -> bool {
    match step {
        Step::Communicate { .. } => true,
        Step::FromEnvironment { instance, .. } | Step::ToEnvironment { instance, .. } => !context.is_on_path(instance),
        Step::Local { .. } | Step::After { .. } | Step::Else { .. } => false,
    }
}

fn is_waiting(context: &StepContext<'_>, instance: u32) -> bool {
    match context.state.control(instance) {
        Control::Waiting { .. } => true,
        Control::Running { .. } | Control::CapturedByPath { .. } | Control::Ended => false,
    }
}

fn remove(queue: &mut VecDeque<u32>, instance: u32) {
    if let Some(position) = queue.iter().position(|other| *other == instance) {
        queue.remove(position);
    }
}

/// The instance that takes a step.
fn actor(step: Step) -> u32 {
    match step {
        Step::FromEnvironment { instance, .. }
        | Step::ToEnvironment { instance, .. }
        | Step::After { instance, .. }
        | Step::Else { instance }
        | Step::Local { instance } => instance,
        Step::Communicate { receiver, .. } => receiver,
    }
}
