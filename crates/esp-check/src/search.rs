//! Visits every state that a program can reach, level by level, so that what it finds is found on a shortest way; with
//! several threads, each level is divided among them. Ends early at its limits, and says so.

use crate::level::Level;
use crate::meeting::Meeting;
use crate::moves::{Move, MoveEnd, MoveRef, Mover};
use crate::options::{Limit, Limits, Options, Progress, Reduction};
use crate::space::Space;
use crate::store::{Added, BUNDLE, Book, Pen, StateRef, Store, hash};
use quaject_esp_ir::coverage::Coverage;
use quaject_esp_ir::ir::PoolId;
use quaject_esp_ir::report::{FaultReport, Outcome};
use quaject_esp_ir::step::TooLarge;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};
use std::time::{Duration, Instant};

/// States that a thread takes at once.
const BATCH: usize = 64;
/// Levels with fewer states are not divided.
const WORTH_DIVIDING: usize = 4 * BATCH;
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
    /// The states of the level under way, and how many of them have been taken.
    level: RwLock<Level>,
    taken: AtomicUsize,
    stop: AtomicBool,
    over: AtomicBool,
    /// What is looked for.
    wanted: &'s (dyn Fn(&Wrong) -> bool + Sync),
    /// The first finding or limit.
    found: Mutex<(Option<Finding>, Option<Limit>)>,
    transitions: AtomicU64,
    /// What threads remember besides the states, in bytes.
    remembered: AtomicUsize,
}

impl Shared<'_> {
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
    mover: Mover<'m>,
    pen: Pen,
    next: Level,
    numbers: Vec<u32>,
    /// Where the moves under way lead: a bundle of states, one after the other, and their hashes.
    successors: Vec<u32>,
    hashes: Vec<u64>,
    transitions: u64,
    remembered: usize,
}

impl<'s, 'm> Worker<'s, 'm> {
    fn new(shared: &'s Shared<'s>, space: &'m Space<'m>, mover: Mover<'m>) -> Worker<'s, 'm> {
        let (numbers, successors) = (vec![0; space.width], vec![0; BUNDLE * space.width]);
        Worker {
            shared,
            mover,
            pen: Pen::default(),
            next: Level::default(),
            numbers,
            successors,
            hashes: Vec::with_capacity(BUNDLE),
            transitions: 0,
            remembered: 0,
        }
    }

    /// Takes its share of the level under way.
    fn work(&mut self, progress: &mut dyn FnMut()) {
        let shared = self.shared;
        let level = shared.level.read().expect("no thread panics with the level");
        loop {
            let first = shared.taken.fetch_add(BATCH, Ordering::Relaxed);
            if first >= level.len() || shared.stop.load(Ordering::Relaxed) {
                break;
            }
            self.mover.trim();
            let mut book = shared.store.open();
            for index in first..level.len().min(first + BATCH) {
                let state = level.read(shared.store, index, &mut self.numbers);
                if self.expand(state, &mut book) {
                    return;
                }
            }
            drop(book);
            self.pen.count(shared.store);
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

    /// Visits one state; true if the search is over.
    fn expand<'b>(&mut self, state: StateRef, book: &mut Book<'b>) -> bool
    where
        's: 'b,
    {
        let numbers = std::mem::take(&mut self.numbers);
        let over = self.take_moves(state, &numbers, book);
        self.numbers = numbers;
        over
    }

    fn take_moves<'b>(&mut self, state: StateRef, numbers: &[u32], book: &mut Book<'b>) -> bool
    where
        's: 'b,
    {
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
        match self.take(state, numbers, 0..enough, book) {
            Taken::Over => true,
            Taken::Progress => false,
            // Everything that is enough leads back to where the search has been.
            Taken::Nothing => enough < all && self.take(state, numbers, enough..all, book) == Taken::Over,
        }
    }

    /// Takes some of the moves found, in bundles.
    fn take<'b>(&mut self, state: StateRef, numbers: &[u32], moves: Range<usize>, book: &mut Book<'b>) -> Taken
    where
        's: 'b,
    {
        let base = hash(numbers);
        let mut taken = Taken::Nothing;
        for start in moves.clone().step_by(BUNDLE) {
            self.hashes.clear();
            for index in start..moves.end.min(start + BUNDLE) {
                let found = self.mover.found[index];
                self.transitions += 1;
                match &self.mover.get(found).end {
                    MoveEnd::Goes => self.lead(found, numbers, base),
                    MoveEnd::Exits => taken = Taken::Progress,
                    MoveEnd::Fails(_) | MoveEnd::Endless(_) => {
                        let what = Wrong::Move(self.mover.get(found).clone());
                        if self.shared.find(Finding { state, what }) {
                            return Taken::Over;
                        }
                        taken = Taken::Progress;
                    }
                }
            }
            if let Some(limit) = self.mover.cut {
                self.shared.reach(limit);
                return Taken::Over;
            }
            let (width, next, store) = (numbers.len(), &mut self.next, self.shared.store);
            let successors = &self.successors;
            book.add_all(&mut self.pen, Some(state), successors, &self.hashes, &mut |index, added| match added {
                Added::New(new) => {
                    if taken == Taken::Nothing {
                        taken = Taken::Progress;
                    }
                    next.push(store, new, &successors[index * width..(index + 1) * width]);
                }
                Added::Known(_) => {}
                Added::Full => taken = Taken::Over,
            });
            if taken == Taken::Over {
                self.shared.reach(Limit::Memory);
                return taken;
            }
        }
        taken
    }

    /// Adds where a move leads to the bundle.
    fn lead(&mut self, found: MoveRef, numbers: &[u32], base: u64) {
        let start = self.hashes.len() * numbers.len();
        let successor = &mut self.successors[start..start + numbers.len()];
        let mut hashed = self.mover.apply(found, numbers, base, successor);
        if !self.mover.space.groups.is_empty() {
            for group in &self.mover.space.groups {
                successor[group.clone()].sort_unstable();
            }
            hashed = hash(successor);
        }
        self.hashes.push(hashed);
    }
}

/// What taking moves has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Taken {
    /// They all lead to states that were known.
    Nothing,
    /// One is new, or ends the run.
    Progress,
    /// The search is over.
    Over,
}

/// Searches a space for what is wrong and wanted; what is not wanted ends a run.
pub(crate) fn search<'m>(
    space: &'m Space<'m>,
    store: &Store,
    options: &Options,
    wanted: &(dyn Fn(&Wrong) -> bool + Sync),
    progress: &mut dyn FnMut(Progress),
) -> Result<Searched, TooLarge> {
    let shared = Shared {
        store,
        limits: options.limits.clone(),
        reduction: options.reduction,
        started: Instant::now(),
        level: RwLock::new(Level::default()),
        taken: AtomicUsize::new(0),
        stop: AtomicBool::new(false),
        over: AtomicBool::new(false),
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
    let mut main = Worker::new(&shared, space, mover);
    if let Added::New(first) = store.open().add(&mut main.pen, None, &start, hash(&start)) {
        main.next.push(store, first, &start);
    }
    let mut others = Vec::new();
    for _ in 1..options.threads.max(1) {
        let mut mover = Mover::new(space)?;
        mover.limit(&options.limits, shared.started);
        mover.start();
        others.push(Worker::new(&shared, space, mover));
    }
    let meeting = Meeting::new(others.len() + 1);
    let collected: Mutex<Level> = Mutex::new(Level::default());
    let coverages: Mutex<Vec<Coverage>> = Mutex::new(Vec::new());
    let mut depth = 0;
    std::thread::scope(|scope| {
        for mut worker in others {
            let (shared, meeting, collected, coverages) = (&shared, &meeting, &collected, &coverages);
            scope.spawn(move || {
                loop {
                    meeting.wait();
                    if shared.over.load(Ordering::Relaxed) {
                        break;
                    }
                    worker.work(&mut || {});
                    collected.lock().expect("no thread panics with it").append(&mut worker.next);
                    meeting.wait();
                }
                let coverage = worker.mover.coverage();
                coverages.lock().expect("no thread panics with it").extend(coverage);
            });
        }
        depth = run_levels(&shared, &mut main, &meeting, &collected, options.threads > 1, progress);
        shared.over.store(true, Ordering::Relaxed);
        meeting.wait();
    });
    let mut coverage = main.mover.coverage().unwrap_or_else(|| Coverage::new(&space.model.program));
    coverages.into_inner().expect("no thread panics with it").iter().for_each(|other| coverage.add(other));
    let bytes = main.bytes();
    let (finding, limit) = std::mem::take(&mut *shared.found.lock().expect("no thread panics with it"));
    let transitions = shared.transitions.load(Ordering::Relaxed) + main.transitions;
    Ok(Searched { finding, limit, transitions, depth, bytes, coverage })
}

/// Level after level, until there is none or the search is over. Returns how many there were.
fn run_levels(
    shared: &Shared<'_>,
    main: &mut Worker<'_, '_>,
    meeting: &Meeting,
    collected: &Mutex<Level>,
    divides: bool,
    progress: &mut dyn FnMut(Progress),
) -> u32 {
    let mut depth = 0;
    let mut told = shared.started;
    loop {
        {
            let mut level = shared.level.write().expect("no thread panics with the level");
            level.clear();
            level.append(&mut main.next);
            level.append(&mut collected.lock().expect("no thread panics with it"));
            if level.len() == 0 || shared.stop.load(Ordering::Relaxed) {
                return depth;
            }
            shared.taken.store(0, Ordering::Relaxed);
        }
        let waiting = shared.level.read().expect("no thread panics with the level").len();
        let mut tell = || {
            if told.elapsed() > BETWEEN_PROGRESS {
                told = Instant::now();
                let states = shared.store.count() as u64;
                let bytes = shared.store.bytes() + shared.remembered.load(Ordering::Relaxed);
                progress(Progress { states, depth, bytes: bytes as u64, elapsed: shared.started.elapsed() });
            }
        };
        if divides && waiting >= WORTH_DIVIDING {
            meeting.wait();
            main.work(&mut tell);
            meeting.wait();
        } else {
            main.work(&mut tell);
        }
        depth += 1;
    }
}
