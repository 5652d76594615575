//! Parallel breadth-first search of the reachable states. A violation is found at minimal depth of the graph that
//! is searched, which a reduction makes smaller. The search ends early at its limits and reports the limit.
//!
//! Each thread owns a shard of the store (hash-partitioned states: Stern and Dill, "Parallelizing the Murφ Verifier",
//! 1997): it inserts the states of its shard and hands the others over to their owners in batches. So each thread works
//! in memory of its own. A thread expands the states that it has inserted, then unclaimed states of other threads.
//! States are inserted into any shard where partial-order reduction needs to know at once whether a state is new (the
//! cycle proviso for breadth-first search: Bošnački and Holzmann, "Improving Spin's Partial-Order Reduction for
//! Breadth-First Search", 2005), and in small levels, which one thread processes alone.

use crate::exploration_plan::ExplorationPlan;
use crate::frontier::Frontier;
use crate::options::{Limit, Limits, Options, Progress, Reduction};
use crate::spin_barrier::SpinBarrier;
use crate::store::{Insertion, PackedStates, StateRef, Store, WINDOW, hash, signature};
use crate::successors::{SuccessorGenerator, Transition, TransitionId, TransitionOutcome};
use crate::timer::Stopwatch;
use quaject_esp_exec::coverage::Coverage;
use quaject_esp_exec::report::{FaultReport, Outcome};
use quaject_esp_exec::step::TooLarge;
use quaject_esp_ir::ir::PoolId;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::Duration;

/// States that a thread claims at once; fewer in small levels, so that no thread is waited for at their end.
const CLAIM_SIZE: Range<usize> = 8..64;
/// Levels with fewer states are processed by one thread.
const MIN_PARALLEL_STATES: usize = 256;
/// States that are handed over to another thread at once.
const HANDOVER_STATES: usize = 512;
/// Batches in an inbox, above which other threads insert such states themselves.
const MAX_INBOX_BATCHES: usize = 32;
/// Time between two progress reports.
pub(crate) const BETWEEN_PROGRESS: Duration = Duration::from_millis(200);

/// A violation and the state in which it occurs.
#[derive(Clone, Debug)]
pub(crate) struct LocatedViolation {
    /// The state in which it occurs.
    pub(crate) state: StateRef,
    pub(crate) violation: SafetyViolation,
}

/// A violation of safety.
#[derive(Clone, Debug)]
pub(crate) enum SafetyViolation {
    /// The state is quiescent, and some instances wait forever.
    Deadlock(Box<FaultReport>),
    /// This transition is a fault, or does not terminate.
    Transition(Transition),
    /// An object of this pool is no longer reachable.
    Leak(PoolId),
}

/// The result of a search.
pub(crate) struct SearchOutcome {
    pub(crate) violation: Option<LocatedViolation>,
    pub(crate) limit: Option<Limit>,
    pub(crate) transitions: u64,
    pub(crate) depth: u32,
    pub(crate) memory_bytes: usize,
    pub(crate) coverage: Coverage,
}

struct Shared<'s> {
    store: &'s Store,
    limits: Limits,
    reduction: Reduction,
    started: Stopwatch,
    queues: Vec<WorkerQueue>,
    stop: AtomicBool,
    /// Whether a violation ends the search.
    is_sought: &'s (dyn Fn(&SafetyViolation) -> bool + Sync),
    /// The first violation and the first limit.
    stop_reasons: Mutex<(Option<LocatedViolation>, Option<Limit>)>,
    transitions: AtomicU64,
    /// Memory of the threads' caches in bytes.
    cached_bytes: AtomicUsize,
}

/// The state of one thread that other threads access, on cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct WorkerQueue {
    /// The thread's states of the current level, and how many of them have been claimed.
    frontier: RwLock<Frontier>,
    claimed: AtomicUsize,
    /// The number of states at the start of the level, and whether the search had been stopped: written between the two
    /// barriers at the end of a level, so that all threads read the same values after them.
    pending: AtomicUsize,
    stopped: AtomicBool,
    /// Batches of states of this thread's shard.
    inbox: Mutex<Vec<PackedStates>>,
}

impl Shared<'_> {
    /// The number of states in the next level; 0 if the search is over.
    fn pending(&self) -> usize {
        if self.queues.iter().any(|queue| queue.stopped.load(Ordering::Relaxed)) {
            return 0;
        }
        self.queues.iter().map(|queue| queue.pending.load(Ordering::Relaxed)).sum()
    }

    /// Whether a level of this size is divided among threads.
    fn is_parallel(&self, pending: usize) -> bool {
        pending >= MIN_PARALLEL_STATES && self.queues.len() > 1
    }

    /// Ends the search if this violation is sought.
    fn report_violation(&self, located: LocatedViolation) -> bool {
        if !(self.is_sought)(&located.violation) {
            return false;
        }
        let mut reasons = self.stop_reasons.lock().expect("no thread panics with it");
        if reasons.0.is_none() {
            reasons.0 = Some(located);
        }
        self.stop.store(true, Ordering::Relaxed);
        true
    }

    fn stop_at(&self, limit: Limit) {
        let mut reasons = self.stop_reasons.lock().expect("no thread panics with it");
        if reasons.1.is_none() {
            reasons.1 = Some(limit);
        }
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Worker<'s, 'm> {
    shared: &'s Shared<'s>,
    /// Its queue and its shard.
    number: usize,
    /// Whether the other threads are idle.
    runs_alone: bool,
    generator: SuccessorGenerator<'m>,
    next: Frontier,
    state_vector: Vec<u32>,
    successor: Vec<u32>,
    /// By shard: successors that are still to be inserted.
    outgoing: Vec<PackedStates>,
    /// Emptied batches of other threads, for reuse.
    spare_batches: Vec<PackedStates>,
    transitions: u64,
    cached_bytes: usize,
}

impl<'s, 'm> Worker<'s, 'm> {
    fn new(
        shared: &'s Shared<'s>,
        number: usize,
        plan: &'m ExplorationPlan<'m>,
        generator: SuccessorGenerator<'m>,
    ) -> Worker<'s, 'm> {
        let mut outgoing = Vec::new();
        outgoing.resize_with(shared.queues.len(), PackedStates::default);
        Worker {
            shared,
            number,
            runs_alone: false,
            generator,
            next: Frontier::default(),
            state_vector: vec![0; plan.width],
            successor: vec![0; plan.width],
            outgoing,
            spare_batches: Vec::new(),
            transitions: 0,
            cached_bytes: 0,
        }
    }

    /// Expands its share of the current level.
    fn process_level(&mut self, progress: &mut dyn FnMut()) {
        let queues = &self.shared.queues;
        for queue in queues[self.number..].iter().chain(&queues[..self.number]) {
            if self.process_queue(queue, progress) {
                return;
            }
        }
        for shard in 0..self.outgoing.len() {
            self.hand_over(shard);
        }
    }

    /// Expands states of one queue until there are none; true if the search is over.
    fn process_queue(&mut self, queue: &WorkerQueue, progress: &mut dyn FnMut()) -> bool {
        let shared = self.shared;
        let level = queue.frontier.read().expect("no thread panics with a level");
        let batch = (level.len() / 16).clamp(CLAIM_SIZE.start, CLAIM_SIZE.end);
        loop {
            let first = queue.claimed.fetch_add(batch, Ordering::Relaxed);
            if shared.stop.load(Ordering::Relaxed) {
                return true;
            }
            if first >= level.len() {
                return false;
            }
            self.generator.evict_if_large();
            for index in first..level.len().min(first + batch) {
                let mut state_vector = std::mem::take(&mut self.state_vector);
                let state = level.read(shared.store, index, &mut state_vector);
                let over = self.expand(state, &state_vector);
                self.state_vector = state_vector;
                if over {
                    return true;
                }
            }
            self.drain_inbox();
            shared.transitions.fetch_add(std::mem::take(&mut self.transitions), Ordering::Relaxed);
            self.check_limits();
            progress();
        }
    }

    fn check_limits(&mut self) {
        let shared = self.shared;
        let limits = &shared.limits;
        let cached_bytes = self.generator.memory_bytes();
        shared.cached_bytes.fetch_add(cached_bytes, Ordering::Relaxed);
        shared.cached_bytes.fetch_sub(std::mem::replace(&mut self.cached_bytes, cached_bytes), Ordering::Relaxed);
        if limits.states.is_some_and(|max| shared.store.count() as u64 > max) {
            shared.stop_at(Limit::States);
        }
        if limits.time().is_some_and(|max| shared.started.elapsed() > max) {
            shared.stop_at(Limit::Time);
        }
        if limits.bytes.is_some_and(|max| self.memory_bytes() as u64 > max) {
            shared.stop_at(Limit::Memory);
        }
        if limits.is_interrupted() {
            shared.stop_at(Limit::Interrupted);
        }
    }

    fn memory_bytes(&self) -> usize {
        let components =
            self.generator.plan.components.memory_bytes() + self.shared.cached_bytes.load(Ordering::Relaxed);
        self.shared.store.memory_bytes() + components + self.next.memory_bytes()
    }

    /// Expands a state; true if the search is over.
    fn expand(&mut self, state: StateRef, state_vector: &[u32]) -> bool {
        self.generator.find_enabled(state_vector);
        if let Some(limit) = self.generator.limit_reached {
            self.shared.stop_at(limit);
            return true;
        }
        if let Some(pool) = self.generator.leak(state_vector)
            && self.shared.report_violation(LocatedViolation { state, violation: SafetyViolation::Leak(pool) })
        {
            return true;
        }
        if self.generator.is_quiescent() {
            if let Outcome::Faulted(report) = self.generator.quiescence(state_vector)
                && self
                    .shared
                    .report_violation(LocatedViolation { state, violation: SafetyViolation::Deadlock(report) })
            {
                return true;
            }
            if self.generator.enabled.is_empty() {
                return false;
            }
        }
        let persistent = match self.shared.reduction {
            Reduction::On => self.generator.persistent_subset(state_vector),
            Reduction::Communications | Reduction::Off => self.generator.enabled.len(),
        };
        let all = self.generator.enabled.len();
        match self.fire_range(state, state_vector, 0..persistent) {
            Expansion::Stop => true,
            Expansion::NewSuccessor => false,
            // The cycle proviso: all reduced successors are known, so none may be ignored.
            Expansion::NothingNew => {
                persistent < all && self.fire_range(state, state_vector, persistent..all) == Expansion::Stop
            }
        }
    }

    /// Fires a range of the enabled transitions. Whether a successor is new is known at once only with partial-order
    /// reduction.
    fn fire_range(&mut self, state: StateRef, state_vector: &[u32], range: Range<usize>) -> Expansion {
        let from_hash = hash(state_vector);
        let mut expansion = Expansion::NothingNew;
        for index in range {
            let transition = self.generator.enabled[index];
            self.transitions += 1;
            match &self.generator.get(transition).outcome {
                TransitionOutcome::Continues => {
                    expansion = expansion.max(self.batch_successor(state, transition, state_vector, from_hash))
                }
                TransitionOutcome::Terminates => expansion = expansion.max(Expansion::NewSuccessor),
                TransitionOutcome::Faults(_) | TransitionOutcome::NonTerminating(_) => {
                    let violation = SafetyViolation::Transition(self.generator.get(transition).clone());
                    if self.shared.report_violation(LocatedViolation { state, violation }) {
                        return Expansion::Stop;
                    }
                    expansion = expansion.max(Expansion::NewSuccessor);
                }
            }
        }
        if let Some(limit) = self.generator.limit_reached {
            self.shared.stop_at(limit);
            return Expansion::Stop;
        }
        if self.shared.reduction == Reduction::On {
            for shard in 0..self.outgoing.len() {
                expansion = expansion.max(self.flush(shard));
            }
        }
        expansion
    }

    /// Puts a successor into the batch of its shard.
    fn batch_successor(
        &mut self,
        from: StateRef,
        transition: TransitionId,
        state_vector: &[u32],
        from_hash: u64,
    ) -> Expansion {
        let successor = &mut self.successor[..];
        let mut hashed = self.generator.apply(transition, state_vector, from_hash, successor);
        if !self.generator.plan.groups.is_empty() {
            for group in &self.generator.plan.groups {
                successor[group.clone()].sort_unstable();
            }
            hashed = hash(successor);
        }
        let signature = signature(hashed);
        let shard = self.shared.store.shard(signature);
        self.outgoing[shard].push(Some(from), successor, signature);
        let batch_size = if shard == self.number || self.inserts_into_any_shard() { WINDOW } else { HANDOVER_STATES };
        if self.outgoing[shard].len() == batch_size { self.hand_over(shard) } else { Expansion::NothingNew }
    }

    /// Whether it inserts states into shards that are not its own.
    fn inserts_into_any_shard(&self) -> bool {
        self.runs_alone || self.shared.reduction == Reduction::On
    }

    /// Inserts the states of a batch, or hands them over to the owner of the shard.
    fn hand_over(&mut self, shard: usize) -> Expansion {
        if shard != self.number && !self.inserts_into_any_shard() {
            let mut inbox = self.shared.queues[shard].inbox.lock().expect("no thread panics with an inbox");
            if inbox.len() < MAX_INBOX_BATCHES {
                let spare = self.spare_batches.pop().unwrap_or_default();
                inbox.push(std::mem::replace(&mut self.outgoing[shard], spare));
                return Expansion::NothingNew;
            }
        }
        self.flush(shard)
    }

    /// Inserts the states of a batch.
    fn flush(&mut self, shard: usize) -> Expansion {
        let mut batch = std::mem::take(&mut self.outgoing[shard]);
        let expansion = self.insert_all(shard, &batch);
        batch.clear();
        self.outgoing[shard] = batch;
        expansion
    }

    /// Inserts the states that other threads have found in its shard.
    fn drain_inbox(&mut self) {
        let batches =
            std::mem::take(&mut *self.shared.queues[self.number].inbox.lock().expect("no thread panics with an inbox"));
        for mut batch in batches {
            self.insert_all(self.number, &batch);
            batch.clear();
            self.spare_batches.push(batch);
        }
    }

    /// Inserts states into a shard, and new ones into the next frontier.
    fn insert_all(&mut self, shard: usize, batch: &PackedStates) -> Expansion {
        let (store, next, mut expansion) = (self.shared.store, &mut self.next, Expansion::NothingNew);
        store.insert_all(shard, batch, &mut |index, added| match added {
            Insertion::New(new) => {
                expansion = expansion.max(Expansion::NewSuccessor);
                next.push(store, new, batch.words(index));
            }
            Insertion::Known(_) => {}
            Insertion::Full => expansion = Expansion::Stop,
        });
        if expansion == Expansion::Stop {
            self.shared.stop_at(Limit::Memory);
        }
        expansion
    }

    /// Ends its share of a level, after all threads have handed over their states.
    fn finish_level(&mut self) {
        self.drain_inbox();
        let queue = &self.shared.queues[self.number];
        let mut level = queue.frontier.write().expect("no thread panics with a level");
        // The memory of the finished level is reused by the next one.
        std::mem::swap(&mut *level, &mut self.next);
        self.next.clear();
        queue.claimed.store(0, Ordering::Relaxed);
        queue.pending.store(level.len(), Ordering::Relaxed);
        queue.stopped.store(self.shared.stop.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Processes levels together with the other threads until there is none or the search is over. Returns their
    /// number.
    fn run_in_parallel(&mut self, barrier: &SpinBarrier, progress: &mut dyn FnMut(u32)) -> u32 {
        let mut depth = 0;
        loop {
            let pending = self.shared.pending();
            if pending == 0 {
                return depth;
            }
            if !self.shared.is_parallel(pending) {
                // No thread writes what is read above before all have read it.
                barrier.wait();
                if self.number == 0 {
                    depth += self.run_sequentially(&mut |more| progress(depth + more));
                }
            } else {
                self.process_level(&mut || progress(depth));
                barrier.wait();
                self.finish_level();
                depth += 1;
            }
            barrier.wait();
        }
    }

    /// Processes levels alone as long as they are small. Returns their number.
    fn run_sequentially(&mut self, progress: &mut dyn FnMut(u32)) -> u32 {
        let mut depth = 0;
        let shared = self.shared;
        self.runs_alone = true;
        while shared.pending() > 0 && !shared.is_parallel(shared.pending()) {
            self.process_level(&mut || progress(depth));
            // This thread has inserted all states itself.
            for queue in &shared.queues {
                queue.pending.store(0, Ordering::Relaxed);
                queue.frontier.write().expect("no thread panics with a level").clear();
            }
            self.finish_level();
            depth += 1;
        }
        self.runs_alone = false;
        depth
    }
}

/// The result of firing transitions; of several, the greatest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Expansion {
    /// All successors were known, as far as this thread knows.
    NothingNew,
    /// A successor is new, or ends the run.
    NewSuccessor,
    /// The search is over.
    Stop,
}

/// Searches for a sought violation, with one thread for each shard of the store. A violation that is not sought ends
/// its run.
pub(crate) fn search<'m>(
    plan: &'m ExplorationPlan<'m>,
    store: &Store,
    options: &Options,
    is_sought: &(dyn Fn(&SafetyViolation) -> bool + Sync),
    progress: &mut dyn FnMut(Progress),
) -> Result<SearchOutcome, TooLarge> {
    let mut queues = Vec::new();
    queues.resize_with(store.shards(), WorkerQueue::default);
    let shared = Shared {
        store,
        limits: options.limits.clone(),
        reduction: options.reduction,
        started: Stopwatch::start(options.limits.timer),
        queues,
        stop: AtomicBool::new(false),
        is_sought,
        stop_reasons: Mutex::new((None, None)),
        transitions: AtomicU64::new(0),
        cached_bytes: AtomicUsize::new(0),
    };
    let mut generator = SuccessorGenerator::new(plan)?;
    generator.set_limits(&options.limits, shared.started);
    let mut start = generator.start();
    generator.run_eager_steps(&mut start);
    if let Some(limit) = generator.limit_reached {
        shared.stop_at(limit);
    }
    let mut main = Worker::new(&shared, 0, plan, generator);
    let first = signature(hash(&start));
    let shard = store.shard(first);
    main.outgoing[shard].push(None, &start, first);
    main.flush(shard);
    let barrier = SpinBarrier::new(shared.queues.len());
    let coverages: Mutex<Vec<Coverage>> = Mutex::new(Vec::new());
    main.finish_level();
    let mut last_report = shared.started;
    let mut report_progress = |depth| {
        if last_report.elapsed() > BETWEEN_PROGRESS {
            last_report.restart();
            let states = shared.store.count() as u64;
            let bytes = shared.store.memory_bytes() + shared.cached_bytes.load(Ordering::Relaxed);
            progress(Progress { states, depth, bytes: bytes as u64, elapsed: shared.started.elapsed() });
        }
    };
    // Many searches end before a second thread would save time.
    let mut depth = main.run_sequentially(&mut report_progress);
    if shared.pending() > 0 {
        let sequential = depth;
        depth += std::thread::scope(|scope| {
            for number in 1..shared.queues.len() {
                let (shared, barrier, coverages) = (&shared, &barrier, &coverages);
                scope.spawn(move || {
                    // Allocated by the thread itself, so that its memory shares no cache line with that of another
                    // thread.
                    let mut generator =
                        SuccessorGenerator::new(plan).expect("all generators of a plan have the same size");
                    generator.set_limits(&shared.limits, shared.started);
                    generator.start();
                    let mut worker = Worker::new(shared, number, plan, generator);
                    worker.run_in_parallel(barrier, &mut |_| {});
                    let coverage = worker.generator.coverage();
                    coverages.lock().expect("no thread panics with it").extend(coverage);
                });
            }
            main.run_in_parallel(&barrier, &mut |more| report_progress(sequential + more))
        });
    }
    let mut coverage = main.generator.coverage().unwrap_or_else(|| Coverage::new(&plan.model.program));
    coverages.into_inner().expect("no thread panics with it").iter().for_each(|other| coverage.add(other));
    let memory_bytes = main.memory_bytes();
    let (violation, limit) = std::mem::take(&mut *shared.stop_reasons.lock().expect("no thread panics with it"));
    let transitions = shared.transitions.load(Ordering::Relaxed) + main.transitions;
    Ok(SearchOutcome { violation, limit, transitions, depth, memory_bytes, coverage })
}
