//! Visits every state that a program can reach, level by level, so that what it finds is found on a shortest way. Ends
//! early at its limits, and says so.
//!
//! Each thread has a shard of the store: it adds the states that belong there, and hands over those that do not. So
//! each works in memory of its own, and what passes between them is written and read from front to back. It looks at
//! the states that it has added, then at those of others that nobody has taken yet. Where the reduction wants to know at
//! once what is new, and in small levels, which one thread does alone, states are added to whatever shard.

use crate::level::Level;
use crate::meeting::Meeting;
use crate::moves::{Move, MoveEnd, MoveRef, Mover};
use crate::options::{Limit, Limits, Options, Progress, Reduction};
use crate::space::Space;
use crate::store::{Added, Bundle, StateRef, Store, WINDOW, hash, signature};
use quaject_esp_exec::coverage::Coverage;
use quaject_esp_exec::report::{FaultReport, Outcome};
use quaject_esp_exec::step::TooLarge;
use quaject_esp_ir::ir::PoolId;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

/// States that a thread takes at once; fewer in small levels, at whose end it would be waited for.
const BATCH: Range<usize> = 8..64;
/// Levels with fewer states are not divided.
const WORTH_DIVIDING: usize = 256;
/// States that are handed to another thread at once.
const PARCEL: usize = 512;
/// Parcels that wait for a thread, after which others add such states themselves.
const MOST_PARCELS: usize = 32;
/// How often progress is told.
pub(crate) const BETWEEN_PROGRESS: Duration = Duration::from_millis(200);

/// What a search has found wrong.
#[derive(Clone, Debug)]
pub(crate) struct Finding {
    /// The state in which it happens.
    pub(crate) state: StateRef,
    pub(crate) what: Wrong,
}

/// What can be wrong.
#[derive(Clone, Debug)]
pub(crate) enum Wrong {
    /// Nobody can move but by the world or the clock, and some wait in vain.
    Deadlock(Box<FaultReport>),
    /// This move is a fault, or does not end.
    Move(Move),
    /// An object of this pool is lost.
    Leak(PoolId),
}

/// What a search has come to.
pub(crate) struct Searched {
    pub(crate) finding: Option<Finding>,
    pub(crate) limit: Option<Limit>,
    pub(crate) transitions: u64,
    pub(crate) depth: u32,
    pub(crate) bytes: usize,
    pub(crate) coverage: Coverage,
}

struct Shared<'s> {
    store: &'s Store,
    limits: Limits,
    reduction: Reduction,
    started: Instant,
    desks: Vec<Desk>,
    stop: AtomicBool,
    /// What is looked for.
    wanted: &'s (dyn Fn(&Wrong) -> bool + Sync),
    /// The first finding or limit.
    found: Mutex<(Option<Finding>, Option<Limit>)>,
    transitions: AtomicU64,
    /// What threads remember besides the states, in bytes.
    remembered: AtomicUsize,
}

/// What others find of one thread, in memory apart from that of the rest.
#[derive(Default)]
#[repr(align(128))]
struct Desk {
    /// Its states of the level under way, and how many of them have been taken.
    level: RwLock<Level>,
    taken: AtomicUsize,
    /// How many there were at its start, and whether the search had been stopped: written between the two meetings at
    /// the end of a level, so that all read the same after them.
    waiting: AtomicUsize,
    stopped: AtomicBool,
    /// Parcels of states that belong into its shard.
    inbox: Mutex<Vec<Bundle>>,
}

impl Shared<'_> {
    /// How many states the level has that all are about to take; none if the search is over.
    fn waiting(&self) -> usize {
        if self.desks.iter().any(|desk| desk.stopped.load(Ordering::Relaxed)) {
            return 0;
        }
        self.desks.iter().map(|desk| desk.waiting.load(Ordering::Relaxed)).sum()
    }

    /// Whether a level of so many states is divided among threads.
    fn divides(&self, waiting: usize) -> bool {
        waiting >= WORTH_DIVIDING && self.desks.len() > 1
    }

    /// Ends the search if this is looked for.
    fn find(&self, finding: Finding) -> bool {
        if !(self.wanted)(&finding.what) {
            return false;
        }
        let mut found = self.found.lock().expect("no thread panics with it");
        if found.0.is_none() {
            found.0 = Some(finding);
        }
        self.stop.store(true, Ordering::Relaxed);
        true
    }

    fn reach(&self, limit: Limit) {
        let mut found = self.found.lock().expect("no thread panics with it");
        if found.1.is_none() {
            found.1 = Some(limit);
        }
        self.stop.store(true, Ordering::Relaxed);
    }
}

struct Worker<'s, 'm> {
    shared: &'s Shared<'s>,
    /// Its desk and its shard.
    number: usize,
    /// Whether the others rest.
    is_alone: bool,
    mover: Mover<'m>,
    next: Level,
    numbers: Vec<u32>,
    successor: Vec<u32>,
    /// By shard: states to which moves lead, and that are still to be added.
    bundles: Vec<Bundle>,
    /// Parcels of others, emptied: the next ones for them.
    spares: Vec<Bundle>,
    transitions: u64,
    remembered: usize,
}

impl<'s, 'm> Worker<'s, 'm> {
    fn new(shared: &'s Shared<'s>, number: usize, space: &'m Space<'m>, mover: Mover<'m>) -> Worker<'s, 'm> {
        let mut bundles = Vec::new();
        bundles.resize_with(shared.desks.len(), Bundle::default);
        Worker {
            shared,
            number,
            is_alone: false,
            mover,
            next: Level::default(),
            numbers: vec![0; space.width],
            successor: vec![0; space.width],
            bundles,
            spares: Vec::new(),
            transitions: 0,
            remembered: 0,
        }
    }

    /// Takes its share of the level under way.
    fn work(&mut self, progress: &mut dyn FnMut()) {
        let desks = &self.shared.desks;
        for desk in desks[self.number..].iter().chain(&desks[..self.number]) {
            if self.work_at(desk, progress) {
                return;
            }
        }
        for shard in 0..self.bundles.len() {
            self.pass_on(shard);
        }
    }

    /// Takes states of one desk until there are none; true if the search is over.
    fn work_at(&mut self, desk: &Desk, progress: &mut dyn FnMut()) -> bool {
        let shared = self.shared;
        let level = desk.level.read().expect("no thread panics with a level");
        let batch = (level.len() / 16).clamp(BATCH.start, BATCH.end);
        loop {
            let first = desk.taken.fetch_add(batch, Ordering::Relaxed);
            if shared.stop.load(Ordering::Relaxed) {
                return true;
            }
            if first >= level.len() {
                return false;
            }
            self.mover.trim();
            for index in first..level.len().min(first + batch) {
                let mut numbers = std::mem::take(&mut self.numbers);
                let state = level.read(shared.store, index, &mut numbers);
                let over = self.take_moves(state, &numbers);
                self.numbers = numbers;
                if over {
                    return true;
                }
            }
            self.receive();
            shared.transitions.fetch_add(std::mem::take(&mut self.transitions), Ordering::Relaxed);
            self.check_limits();
            progress();
        }
    }

    fn check_limits(&mut self) {
        let shared = self.shared;
        let limits = &shared.limits;
        let remembered = self.mover.bytes();
        shared.remembered.fetch_add(remembered, Ordering::Relaxed);
        shared.remembered.fetch_sub(std::mem::replace(&mut self.remembered, remembered), Ordering::Relaxed);
        if limits.states.is_some_and(|most| shared.store.count() as u64 > most) {
            shared.reach(Limit::States);
        }
        if limits.time.is_some_and(|most| shared.started.elapsed() > most) {
            shared.reach(Limit::Time);
        }
        if limits.bytes.is_some_and(|most| self.bytes() as u64 > most) {
            shared.reach(Limit::Memory);
        }
        if limits.is_interrupted() {
            shared.reach(Limit::Interrupted);
        }
    }

    fn bytes(&self) -> usize {
        let parts = self.mover.space.parts.bytes() + self.shared.remembered.load(Ordering::Relaxed);
        self.shared.store.bytes() + parts + self.next.bytes()
    }

    /// Takes the moves of a state; true if the search is over.
    fn take_moves(&mut self, state: StateRef, numbers: &[u32]) -> bool {
        self.mover.find(numbers);
        if let Some(limit) = self.mover.cut {
            self.shared.reach(limit);
            return true;
        }
        if let Some(pool) = self.mover.leak(numbers)
            && self.shared.find(Finding { state, what: Wrong::Leak(pool) })
        {
            return true;
        }
        if self.mover.rests() {
            if let Outcome::Faulted(report) = self.mover.rest(numbers)
                && self.shared.find(Finding { state, what: Wrong::Deadlock(report) })
            {
                return true;
            }
            if self.mover.found.is_empty() {
                return false;
            }
        }
        let enough = match self.shared.reduction {
            Reduction::On => self.mover.reduce(numbers),
            Reduction::Communications | Reduction::Off => self.mover.found.len(),
        };
        let all = self.mover.found.len();
        match self.take(state, numbers, 0..enough) {
            Taken::Over => true,
            Taken::Progress => false,
            // Everything that is enough leads back to where the search has been.
            Taken::Nothing => enough < all && self.take(state, numbers, enough..all) == Taken::Over,
        }
    }

    /// Takes some of the moves found. What they have come to is known at once only if the reduction asks.
    fn take(&mut self, state: StateRef, numbers: &[u32], moves: Range<usize>) -> Taken {
        let base = hash(numbers);
        let mut taken = Taken::Nothing;
        for index in moves {
            let found = self.mover.found[index];
            self.transitions += 1;
            match &self.mover.get(found).end {
                MoveEnd::Goes => taken = taken.max(self.lead(state, found, numbers, base)),
                MoveEnd::Exits => taken = taken.max(Taken::Progress),
                MoveEnd::Fails(_) | MoveEnd::Endless(_) => {
                    let what = Wrong::Move(self.mover.get(found).clone());
                    if self.shared.find(Finding { state, what }) {
                        return Taken::Over;
                    }
                    taken = taken.max(Taken::Progress);
                }
            }
        }
        if let Some(limit) = self.mover.cut {
            self.shared.reach(limit);
            return Taken::Over;
        }
        if self.shared.reduction == Reduction::On {
            for shard in 0..self.bundles.len() {
                taken = taken.max(self.add(shard));
            }
        }
        taken
    }

    /// Puts a state to which a move leads into its bundle.
    fn lead(&mut self, from: StateRef, found: MoveRef, numbers: &[u32], base: u64) -> Taken {
        let successor = &mut self.successor[..];
        let mut hashed = self.mover.apply(found, numbers, base, successor);
        if !self.mover.space.groups.is_empty() {
            for group in &self.mover.space.groups {
                successor[group.clone()].sort_unstable();
            }
            hashed = hash(successor);
        }
        let signature = signature(hashed);
        let shard = self.shared.store.shard(signature);
        self.bundles[shard].push(Some(from), successor, signature);
        let enough = if shard == self.number || self.adds_itself() { WINDOW } else { PARCEL };
        if self.bundles[shard].len() == enough { self.pass_on(shard) } else { Taken::Nothing }
    }

    /// Whether it adds states to shards that are not its own.
    fn adds_itself(&self) -> bool {
        self.is_alone || self.shared.reduction == Reduction::On
    }

    /// Adds the states of a bundle, or hands them to the thread whose they are.
    fn pass_on(&mut self, shard: usize) -> Taken {
        if shard != self.number && !self.adds_itself() {
            let mut inbox = self.shared.desks[shard].inbox.lock().expect("no thread panics with an inbox");
            if inbox.len() < MOST_PARCELS {
                let spare = self.spares.pop().unwrap_or_default();
                inbox.push(std::mem::replace(&mut self.bundles[shard], spare));
                return Taken::Nothing;
            }
        }
        self.add(shard)
    }

    /// Adds the states of a bundle.
    fn add(&mut self, shard: usize) -> Taken {
        let mut bundle = std::mem::take(&mut self.bundles[shard]);
        let taken = self.add_all(shard, &bundle);
        bundle.clear();
        self.bundles[shard] = bundle;
        taken
    }

    /// Adds what others have found in its shard.
    fn receive(&mut self) {
        let parcels =
            std::mem::take(&mut *self.shared.desks[self.number].inbox.lock().expect("no thread panics with an inbox"));
        for mut parcel in parcels {
            self.add_all(self.number, &parcel);
            parcel.clear();
            self.spares.push(parcel);
        }
    }

    /// Adds states to a shard, and to the next level those that are new.
    fn add_all(&mut self, shard: usize, bundle: &Bundle) -> Taken {
        let (store, next, mut taken) = (self.shared.store, &mut self.next, Taken::Nothing);
        store.add_all(shard, bundle, &mut |index, added| match added {
            Added::New(new) => {
                taken = taken.max(Taken::Progress);
                next.push(store, new, bundle.words(index));
            }
            Added::Known(_) => {}
            Added::Full => taken = Taken::Over,
        });
        if taken == Taken::Over {
            self.shared.reach(Limit::Memory);
        }
        taken
    }

    /// Ends its share of a level, when all others have handed over what they have found.
    fn end_level(&mut self) {
        self.receive();
        let desk = &self.shared.desks[self.number];
        let mut level = desk.level.write().expect("no thread panics with a level");
        // What the level takes in memory serves the next one.
        std::mem::swap(&mut *level, &mut self.next);
        self.next.clear();
        desk.taken.store(0, Ordering::Relaxed);
        desk.waiting.store(level.len(), Ordering::Relaxed);
        desk.stopped.store(self.shared.stop.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// Level after level with the others, until there is none or the search is over. Returns how many there were.
    fn work_with_others(&mut self, meeting: &Meeting, progress: &mut dyn FnMut(u32)) -> u32 {
        let mut depth = 0;
        loop {
            let waiting = self.shared.waiting();
            if waiting == 0 {
                return depth;
            }
            if !self.shared.divides(waiting) {
                // Nobody writes what is read above before all have read it.
                meeting.wait();
                if self.number == 0 {
                    depth += self.work_alone(&mut |more| progress(depth + more));
                }
            } else {
                self.work(&mut || progress(depth));
                meeting.wait();
                self.end_level();
                depth += 1;
            }
            meeting.wait();
        }
    }

    /// The same while nobody else works, as long as it is not worth while to divide levels.
    fn work_alone(&mut self, progress: &mut dyn FnMut(u32)) -> u32 {
        let mut depth = 0;
        let shared = self.shared;
        self.is_alone = true;
        while shared.waiting() > 0 && !shared.divides(shared.waiting()) {
            self.work(&mut || progress(depth));
            // All that it has found is in its own hands.
            for desk in &shared.desks {
                desk.waiting.store(0, Ordering::Relaxed);
                desk.level.write().expect("no thread panics with a level").clear();
            }
            self.end_level();
            depth += 1;
        }
        self.is_alone = false;
        depth
    }
}

/// What taking moves has come to, in rising order: of several, the greatest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Taken {
    /// They all lead to states that were known, as far as is known.
    Nothing,
    /// One is new, or ends the run.
    Progress,
    /// The search is over.
    Over,
}

/// Searches a space for what is wrong and wanted, with a thread for each shard of the store; what is not wanted ends a
/// run.
pub(crate) fn search<'m>(
    space: &'m Space<'m>,
    store: &Store,
    options: &Options,
    wanted: &(dyn Fn(&Wrong) -> bool + Sync),
    progress: &mut dyn FnMut(Progress),
) -> Result<Searched, TooLarge> {
    let mut desks = Vec::new();
    desks.resize_with(store.shards(), Desk::default);
    let shared = Shared {
        store,
        limits: options.limits.clone(),
        reduction: options.reduction,
        started: Instant::now(),
        desks,
        stop: AtomicBool::new(false),
        wanted,
        found: Mutex::new((None, None)),
        transitions: AtomicU64::new(0),
        remembered: AtomicUsize::new(0),
    };
    let mut mover = Mover::new(space)?;
    mover.limit(&options.limits, shared.started);
    let mut start = mover.start();
    mover.settle(&mut start);
    if let Some(limit) = mover.cut {
        shared.reach(limit);
    }
    let mut main = Worker::new(&shared, 0, space, mover);
    let first = signature(hash(&start));
    let shard = store.shard(first);
    main.bundles[shard].push(None, &start, first);
    main.add(shard);
    let meeting = Meeting::new(shared.desks.len());
    let coverages: Mutex<Vec<Coverage>> = Mutex::new(Vec::new());
    main.end_level();
    let mut told = shared.started;
    let mut tell = |depth| {
        if told.elapsed() > BETWEEN_PROGRESS {
            told = Instant::now();
            let states = shared.store.count() as u64;
            let bytes = shared.store.bytes() + shared.remembered.load(Ordering::Relaxed);
            progress(Progress { states, depth, bytes: bytes as u64, elapsed: shared.started.elapsed() });
        }
    };
    // Many searches end before it is worth while to begin a thread.
    let mut depth = main.work_alone(&mut tell);
    if shared.waiting() > 0 {
        let alone = depth;
        depth += std::thread::scope(|scope| {
            for number in 1..shared.desks.len() {
                let (shared, meeting, coverages) = (&shared, &meeting, &coverages);
                scope.spawn(move || {
                    // Here, so that what it writes all the time is in memory that its thread has asked for, and not
                    // beside what another one writes.
                    let mut mover = Mover::new(space).expect("no mover is too large where another is not");
                    mover.limit(&shared.limits, shared.started);
                    mover.start();
                    let mut worker = Worker::new(shared, number, space, mover);
                    worker.work_with_others(meeting, &mut |_| {});
                    let coverage = worker.mover.coverage();
                    coverages.lock().expect("no thread panics with it").extend(coverage);
                });
            }
            main.work_with_others(&meeting, &mut |more| tell(alone + more))
        });
    }
    let mut coverage = main.mover.coverage().unwrap_or_else(|| Coverage::new(&space.model.program));
    coverages.into_inner().expect("no thread panics with it").iter().for_each(|other| coverage.add(other));
    let bytes = main.bytes();
    let (finding, limit) = std::mem::take(&mut *shared.found.lock().expect("no thread panics with it"));
    let transitions = shared.transitions.load(Ordering::Relaxed) + main.transitions;
    Ok(Searched { finding, limit, transitions, depth, bytes, coverage })
}
