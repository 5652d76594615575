//! The control unit (examples/uds) and a tester on a CAN bus that loses, duplicates and delays frames, or delivers none
//! for seconds. Every request is answered as ISO 14229-1 requires in one of the unit's possible states, or the tester
//! knows that it was not answered.
//!
//! A real bus does not reorder frames: those of each direction arrive in the order of their transmission. One test
//! reorders them: sequence numbers detect it within a message, and the tester separates messages by the maximal delay,
//! as the standard requires.

mod transport;
mod unit;

use crate::node::{Node, compile};
use crate::{MILLISECOND_NS, SECOND_NS, Trace, wanted_ns};
use quaject_esp_exec::datum::Datum;
use quaject_esp_run::{FaultInjector, FaultPlan};
use quaject_test_support::random::Random;
use std::collections::{BTreeSet, VecDeque};
use transport::{Event, Transport};
use unit::{MAX_MESSAGE, Request, Unit, after, key};

const UNIT: i128 = 0x7e0;
const FUNCTIONAL: i128 = 0x7df;
const TESTER: i128 = 0x7e8;
/// The timeouts for an answer, and after a response-pending message.
const P2_NS: i64 = 2 * SECOND_NS;
const P2_STAR_NS: i64 = 5 * SECOND_NS;
/// How long a request without an answer may have waited before the unit processed it.
const MAX_PROCESSING_DELAY_NS: i64 = 10 * SECOND_NS;
/// An upper bound on the time of the routine.
const ERASE_NS: i64 = 7 * SECOND_NS;
/// The time after which all timers of the unit have expired.
const TIMERS_EXPIRED_NS: i64 = 25 * SECOND_NS;

/// One direction of the bus.
struct Bus {
    medium: FaultInjector,
    /// The maximal delay of a frame.
    late_ns: i64,
    reorders: bool,
    /// Frames with their times of arrival.
    frames: VecDeque<(i64, Vec<Datum>)>,
    random: Random,
}

impl Bus {
    fn new(plan: &Plan, direction: &str, seed: u64) -> Bus {
        let faults: FaultPlan = plan.faults.parse().expect("they are faults");
        let (medium, random) = (FaultInjector::new(&faults, direction), Random(seed));
        Bus { medium, late_ns: plan.late_ns, reorders: plan.reorders, frames: VecDeque::new(), random }
    }

    fn enter(&mut self, id: i128, frame: &[u8], now_ns: i64) {
        self.medium.enter(vec![Datum::Int(id), Datum::Bytes(frame.to_vec())], now_ns);
        if self.reorders {
            return;
        }
        while let Some(frame) = self.medium.leave(now_ns) {
            let due_ns = now_ns + 1 + self.random.below(self.late_ns as u64) as i64;
            let due_ns = self.frames.back().map_or(due_ns, |(last_ns, _)| due_ns.max(*last_ns));
            self.frames.push_back((due_ns, frame));
        }
    }

    fn leave(&mut self, now_ns: i64) -> Option<Vec<Datum>> {
        if self.reorders {
            return self.medium.leave(now_ns);
        }
        self.frames.pop_front_if(|(due_ns, _)| *due_ns <= now_ns).map(|(_, frame)| frame)
    }

    fn due_ns(&self) -> Option<i64> {
        if self.reorders { self.medium.due_ns() } else { self.frames.front().map(|(due_ns, _)| *due_ns) }
    }
}

/// What the bus does to frames.
struct Plan {
    faults: &'static str,
    late_ns: i64,
    reorders: bool,
    /// Whether frames are lost, or duplicated.
    loses: bool,
    duplicates: bool,
}

const GOOD: Plan =
    Plan { faults: "can:seed=1", late_ns: 5 * MILLISECOND_NS, reorders: false, loses: false, duplicates: false };

#[derive(Default, Debug, Clone, PartialEq, Eq)]
struct Counts {
    positive: u64,
    negative: u64,
    /// Requests without an answer that may have none.
    silent: u64,
    long_requests: u64,
    long_answers: u64,
    keys: u64,
    erased: u64,
    pending: u64,
    /// Requests that the unit rejected because they are too long.
    too_long: u64,
    /// Requests without an answer.
    failed: u64,
    /// The maximal number of possible states.
    states: usize,
}

/// The stage of the tester's request.
#[derive(PartialEq, Eq)]
enum Stage {
    /// No request; the next starts when its time has come and the bus has been quiet.
    Idle,
    Sending,
    /// The end of the wait, unless a message is being received.
    Waiting(i64),
}

struct Simulation<'p> {
    now_ns: i64,
    node: Node<'p>,
    plan: Plan,
    up: Bus,
    down: Bus,
    transport: Transport,
    stage: Stage,
    bytes: Vec<u8>,
    functional: bool,
    /// When the first and the last frame of the request were sent.
    begun_ns: i64,
    sent_ns: i64,
    next_ns: i64,
    heard_ns: i64,
    states: BTreeSet<Unit>,
    seed: [u8; 4],
    random: Random,
    counts: Counts,
    trace: Trace,
}

impl Simulation<'_> {
    fn run_to_quiescence(&mut self) {
        loop {
            let mut moved = false;
            while self.node.pending(self.node.channel("seedC")) == 0 {
                let seed = (0..4).map(|_| self.random.byte()).collect();
                self.node.offer(self.node.channel("seedC"), vec![Datum::Bytes(seed)]);
            }
            self.node.run(self.now_ns);
            while let Some((channel, message)) = self.node.next_output() {
                moved = true;
                self.trace.note(self.now_ns, channel, &message);
                let [Datum::Int(TESTER), Datum::Bytes(frame)] = &message[..] else { panic!("{message:?}") };
                assert_eq!(frame.len(), 8, "frames are filled");
                self.down.enter(TESTER, frame, self.now_ns);
            }
            while let Some(frame) = self.up.leave(self.now_ns) {
                moved = true;
                self.node.offer(self.node.channel("rxC"), frame);
            }
            while let Some(frame) = self.down.leave(self.now_ns) {
                moved = true;
                self.heard_ns = self.now_ns;
                let Datum::Bytes(frame) = &frame[1] else { panic!("{frame:?}") };
                let event = self.transport.receive(frame, &mut self.random, self.now_ns);
                self.take(event);
            }
            if self.transport.next_ns().is_some_and(|next_ns| next_ns <= self.now_ns) {
                moved = true;
                let event = self.transport.fire_timers(self.now_ns);
                self.take(event);
            }
            if let Stage::Waiting(until_ns) = self.stage
                && until_ns <= self.now_ns
                && !self.transport.receives()
            {
                moved = true;
                self.end(None);
            }
            if self.stage == Stage::Idle && self.begins_ns() <= self.now_ns && !self.transport.receives() {
                moved = true;
                self.begin();
            }
            let id = if self.functional { FUNCTIONAL } else { UNIT };
            for frame in std::mem::take(&mut self.transport.out) {
                moved = true;
                // Flow control frames are physically addressed.
                let id = if frame[0] >> 4 == 3 { UNIT } else { id };
                self.up.enter(id, &frame, self.now_ns);
                self.sent_ns = self.now_ns;
            }
            if !moved {
                return;
            }
        }
    }

    /// When the next request may start: no delayed frame can arrive.
    fn begins_ns(&self) -> i64 {
        let quiet_ns = 2 * self.plan.late_ns + 50 * MILLISECOND_NS;
        self.next_ns.max(self.heard_ns + quiet_ns).max(self.sent_ns + quiet_ns)
    }

    /// Handles an event of the transport layer.
    fn take(&mut self, event: Option<Event>) {
        match (event, &self.stage) {
            (Some(Event::Sent), Stage::Sending) => self.stage = Stage::Waiting(self.now_ns + P2_NS),
            (Some(Event::TooLong), Stage::Sending) => {
                assert!(self.bytes.len() > MAX_MESSAGE, "there is room for {}", self.bytes.len());
                self.counts.too_long += 1;
                self.stage = Stage::Idle;
                self.next_ns = self.now_ns;
            }
            (Some(Event::NotSent), Stage::Sending) => {
                assert!(self.plan.loses || self.plan.reorders, "a message of {} bytes is stuck", self.bytes.len());
                self.fail(false);
            }
            (Some(Event::Came(answer)), Stage::Waiting(_)) => {
                if answer.len() == 3 && answer[0] == 0x7f && answer[1] == self.bytes[0] && answer[2] == 0x78 {
                    self.counts.pending += 1;
                    self.stage = Stage::Waiting(self.now_ns + P2_STAR_NS);
                } else {
                    self.end(Some(answer));
                }
            }
            // An unexpected answer belongs to a duplicated or an earlier request.
            (Some(Event::Came(_)), Stage::Idle) => assert!(self.plan.duplicates, "an answer arrives without a request"),
            (Some(Event::Lost), Stage::Waiting(_)) => self.end(None),
            (Some(Event::Sent | Event::TooLong | Event::NotSent | Event::Came(_) | Event::Lost), _) | (None, _) => {}
        }
    }

    /// An answer has arrived, or will not arrive.
    fn end(&mut self, answer: Option<Vec<u8>>) {
        let many = self.bytes.len() > 7;
        // The unit processes a long request when all of it has arrived, and possibly after the tester's timeout.
        let erases = self.bytes[0] == 0x31 && answer.as_ref().is_some_and(|answer| answer.ends_with(&[1, 0xff, 0]));
        let twice_ns = if self.plan.duplicates && erases { ERASE_NS } else { 0 };
        let last_ns = if answer.is_some() { self.now_ns + twice_ns } else { self.begun_ns + MAX_PROCESSING_DELAY_NS };
        let request = Request {
            bytes: &self.bytes,
            functional: self.functional,
            span: (self.begun_ns, last_ns),
            may_be_lost: self.plan.loses || self.plan.reorders,
            may_be_duplicated: self.plan.duplicates,
        };
        let next = after(&self.states, &request, answer.as_deref());
        let nothing_lost = Request { may_be_lost: false, ..request };
        // The routine may be running if its response-pending message was lost.
        let may_work = self.plan.loses && self.bytes[0] == 0x31;
        let is_silent = answer.is_none() && !may_work && !after(&self.states, &nothing_lost, None).is_empty();
        assert!(
            !next.is_empty(),
            "after {} s: {:02x?} is answered with {answer:02x?}, as in none of {:?}",
            self.now_ns / SECOND_NS,
            self.bytes,
            self.states
        );
        let Counts { positive, negative, silent, long_requests, long_answers, keys, erased, .. } = &mut self.counts;
        match &answer {
            Some(answer) if answer[0] == 0x7f => *negative += 1,
            Some(answer) => {
                *positive += 1;
                *keys += u64::from(answer[..] == [0x67, 2]);
                *erased += u64::from(answer[..] == [0x71, 1, 0xff, 0]);
            }
            None => *silent += u64::from(is_silent),
        }
        if let Some(answer) = &answer {
            *long_requests += u64::from(many);
            *long_answers += u64::from(answer.len() > 7);
            if let [0x67, 1, a, b, c, d] = answer[..] {
                self.seed = [a, b, c, d];
            }
        }
        self.states = next;
        self.counts.states = self.counts.states.max(self.states.len());
        assert!(self.states.len() < 10_000, "too many states are possible");
        if answer.is_none() && !is_silent {
            self.fail(may_work);
        } else {
            self.stage = Stage::Idle;
            let pauses_ms = [0, 0, 0, 0, 10, 100, 500, 1_000, 2_100, 5_500];
            // A duplicate may have started it again; its answer follows at its end.
            self.next_ns = self.now_ns + 2 * twice_ns + pauses_ms[self.random.below(10) as usize] * MILLISECOND_NS;
        }
    }

    /// The result of the request is unknown: the tester waits until no answer can arrive.
    fn fail(&mut self, may_work: bool) {
        self.counts.failed += 1;
        self.stage = Stage::Idle;
        // An answer may continue until its timeout without flow control; a routine takes longer.
        let tail_ns = if self.transport.slow { 6 * SECOND_NS } else { 1_500 * MILLISECOND_NS };
        let rests = may_work || self.states.len() > 100 || self.random.below(8) == 0;
        self.next_ns = self.now_ns + if rests { TIMERS_EXPIRED_NS } else { tail_ns };
    }

    fn begin(&mut self) {
        (self.bytes, self.functional) = self.any_request();
        self.transport.pads = self.random.below(2) == 0;
        self.transport.slow = self.random.below(20) == 0;
        self.begun_ns = self.now_ns;
        self.stage = Stage::Sending;
        let event = self.transport.send(&self.bytes.clone(), self.now_ns);
        self.take(event);
    }

    /// A request, and whether it is functionally addressed.
    fn any_request(&mut self) -> (Vec<u8>, bool) {
        let random = &mut self.random;
        // Sizes around the limits of frames and of sequence numbers.
        let frames = random.below(37) as usize;
        let edge = 6 + 7 * frames + random.below(3) as usize;
        let any = 1 + random.below(4_095) as usize;
        let sizes =
            [edge, edge, edge.min(MAX_MESSAGE), 1 + random.below(8) as usize, MAX_MESSAGE, MAX_MESSAGE + 1, 4_095, any];
        let size = sizes[random.below(8) as usize];
        // Related requests follow one another more often than by chance.
        let kind = match (&self.bytes[..], random.below(2)) {
            ([0x10, 3], 0) => 8,
            ([0x27, 1], 0) => 9,
            ([0x27, 2, ..], 0) => 13,
            _ => random.below(16),
        };
        let bytes = match kind {
            0 => vec![0x3e, [0, 0, 0x80, 1][random.below(4) as usize]],
            1..=3 => vec![0x10, [1, 3, 3, 3, 3, 3, 0x83, 2][random.below(8) as usize]],
            4..=6 => {
                let ids: [&[u8; 2]; 5] = [b"\xf1\x90", b"\xf1\x8c", b"\xf1\x86", b"\xff\xff", b"\xff\xff"];
                let count = [1, 1, 1 + random.below(20), size as u64 / 2][random.below(4) as usize];
                let few = 1 + random.below(5);
                let ids = (0..count).flat_map(|_| ids[random.below(few) as usize]);
                [0x22].into_iter().chain(ids.copied()).collect()
            }
            7 => {
                let noise = (1..size).map(|_| random.byte());
                [0x85].into_iter().chain(noise).collect()
            }
            8 => vec![0x27, 1],
            9 | 10 if self.states.iter().any(Unit::expects_a_key) => {
                let right = if random.below(4) > 0 { key(self.seed) } else { [random.byte(); 4] };
                [&[0x27, 2][..], &right].concat()
            }
            9 | 10 => vec![0x27, 1],
            11 => vec![0x31, [1, 1, 2, 3, 0x81][random.below(5) as usize], 2, 3],
            12 => vec![0x31, 3, 2, 3],
            13 => vec![0x31, [1, 1, 0x81, 2][random.below(4) as usize], 0xff, 0],
            14 => vec![[0x10, 0x3e, 0x27, 0x31, 0x22][random.below(5) as usize]; 1 + random.below(5) as usize],
            _ => vec![0x31, [0, 1, 4][random.below(3) as usize], random.byte(), random.byte()],
        };
        let functional = bytes.len() <= 7 && random.below(8) == 0;
        (bytes, functional)
    }

    fn run_until(&mut self, end_ns: i64) {
        while self.now_ns < end_ns {
            self.run_to_quiescence();
            let stage_ns = match self.stage {
                Stage::Idle => Some(self.begins_ns()),
                Stage::Sending => None,
                Stage::Waiting(until_ns) => Some(until_ns),
            };
            // A tester that receives an answer waits for its end.
            let stage_ns = stage_ns.filter(|_| !self.transport.receives());
            let times =
                [stage_ns, self.transport.next_ns(), self.up.due_ns(), self.down.due_ns(), self.node.deadline_ns];
            let next_ns = times.into_iter().flatten().min().expect("there is always something to do");
            assert!(next_ns > self.now_ns, "the clock does not advance");
            self.now_ns = next_ns.min(end_ns);
        }
    }
}

/// Runs the simulation on this bus, then on an unimpaired one; the counts of both.
fn simulate(plan: Plan, seed: u64, length_ns: i64) -> (Counts, Counts, u64) {
    let program = compile("examples/uds/server.esp");
    let mut simulation = Simulation {
        now_ns: 0,
        node: Node::new(&program),
        up: Bus::new(&plan, "up", seed + 100),
        down: Bus::new(&plan, "down", seed + 200),
        plan,
        transport: Transport::default(),
        stage: Stage::Idle,
        bytes: Vec::new(),
        functional: false,
        begun_ns: 0,
        sent_ns: 0,
        next_ns: 0,
        heard_ns: 0,
        states: BTreeSet::from([Unit::new()]),
        seed: [0; 4],
        random: Random(seed),
        counts: Counts::default(),
        trace: Trace::default(),
    };
    simulation.run_until(length_ns);
    for (direction, bus) in [("to the unit", &simulation.up), ("to the tester", &simulation.down)] {
        println!("  {}", bus.medium.note(direction).unwrap_or_default());
    }
    let counts = std::mem::take(&mut simulation.counts);
    // The request in progress may fail; every later one is answered.
    simulation.up = Bus::new(&GOOD, "up", seed + 300);
    simulation.down = Bus::new(&GOOD, "down", seed + 400);
    simulation.stage = Stage::Idle;
    simulation.transport = Transport::default();
    simulation.next_ns = simulation.now_ns + TIMERS_EXPIRED_NS;
    let lost = Request {
        bytes: &simulation.bytes,
        functional: simulation.functional,
        span: (simulation.begun_ns, simulation.now_ns + MAX_PROCESSING_DELAY_NS),
        may_be_lost: true,
        may_be_duplicated: true,
    };
    simulation.states = after(&simulation.states, &lost, None);
    simulation.plan = GOOD;
    simulation.run_until(length_ns + TIMERS_EXPIRED_NS + 600 * SECOND_NS);
    (counts, simulation.counts, simulation.trace.digest())
}

fn run(name: &str, plan: Plan, seed: u64) -> Counts {
    let begun = std::time::Instant::now();
    // At least an hour, in which the routine ends; it takes less than a second.
    let length_ns = wanted_ns().max(3_600 * SECOND_NS);
    let (counts, after, trace) = simulate(plan, seed, length_ns);
    let hours = length_ns as f64 / 3_600e9;
    println!("uds, {name}: {hours:.2} h in {:.1} s: {counts:?}, trace {trace:x}", begun.elapsed().as_secs_f64());
    println!("  and on a good bus: {after:?}");
    let Counts { positive, negative, long_requests, long_answers, pending, too_long, .. } = counts;
    let least = [positive, negative, long_requests, long_answers, pending, too_long].into_iter().min();
    assert!(least.is_some_and(|least| least > 0), "{name}: {counts:?}");
    assert!(after.positive > 10 && after.long_answers > 0 && after.failed == 0, "{name}: {after:?}");
    counts
}

#[test]
fn a_good_bus() {
    let counts = run("a good bus", GOOD, 1);
    assert!(counts.failed == 0 && counts.silent > 0 && counts.keys > 0 && counts.erased > 0, "{counts:?}");
}

#[test]
fn a_bad_bus() {
    let faults = "can:loss=1%,dup=1%,seed=7";
    let plan = Plan { faults, late_ns: 30 * MILLISECOND_NS, loses: true, duplicates: true, ..GOOD };
    let counts = run("a bad bus", plan, 2);
    assert!(counts.failed > 0 && counts.failed < counts.positive, "{counts:?}");
}

#[test]
fn a_bus_that_is_cut() {
    let faults = "can:loss=0.2%,dup=0.2%,cut=8s/60s,seed=9";
    let plan = Plan { faults, late_ns: 20 * MILLISECOND_NS, loses: true, duplicates: true, ..GOOD };
    let counts = run("a bus that is cut", plan, 3);
    assert!(counts.failed > 0 && counts.failed < counts.positive, "{counts:?}");
}

#[test]
fn a_bus_that_reorders_frames() {
    let faults = "can:delay=2ms,reorder=1%,dup=0.5%,seed=11";
    let plan = Plan { faults, late_ns: 40 * MILLISECOND_NS, reorders: true, loses: true, duplicates: true };
    let counts = run("frames that overtake one another", plan, 4);
    assert!(counts.failed > 0 && counts.failed < counts.positive, "{counts:?}");
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let plan = || Plan {
        faults: "can:loss=1%,dup=1%,seed=7",
        late_ns: 30 * MILLISECOND_NS,
        reorders: false,
        loses: true,
        duplicates: true,
    };
    let trace = |seed| simulate(plan(), seed, 60 * SECOND_NS).2;
    assert_eq!(trace(4), trace(4));
    assert_ne!(trace(4), trace(5));
}

/// A message of two frames, the second one late. Unrelated frames in between do not restart the timeout (N_Cr).
#[test]
fn an_unrelated_frame_does_not_restart_the_timeout_of_a_message() {
    let program = compile("examples/uds/server.esp");
    let strays: [(i128, &[u8]); 9] = [
        (UNIT, &[0x4f, 1, 2, 3, 4, 5, 6, 7]),
        (UNIT, &[0x00, 1]),
        (UNIT, &[0x07, 1]),
        (UNIT, &[0x10, 5, 1, 2, 3, 4, 5, 6]),
        (UNIT, &[0x10, 20, 1, 2]),
        (UNIT, &[0x30, 0, 0]),
        (FUNCTIONAL, &[0x10, 20, 1, 2, 3, 4, 5, 6]),
        (FUNCTIONAL, &[0x21, 1, 2, 3, 4, 5, 6, 7]),
        (UNIT + 1, &[0x21, 1, 2, 3, 4, 5, 6, 7]),
    ];
    let answers = |stray: Option<(i128, &[u8])>, second_ms: i64| {
        let mut node = Node::new(&program);
        let (received, sent) = (node.channel("rxC"), node.channel("txC"));
        let frames = [(0, Some((UNIT, &b"\x10\x09\x22\xf1\x86\xf1\x86\xf1"[..]))), (500, stray)];
        for (at_ms, frame) in frames.into_iter().chain([(second_ms, Some((UNIT, &b"\x21\x86\xf1\x86"[..])))]) {
            // Earlier events come first.
            let now_ns = at_ms * MILLISECOND_NS;
            while let Some(due_ns) = node.deadline_ns.filter(|due_ns| *due_ns < now_ns) {
                node.run(due_ns);
            }
            if let Some((id, bytes)) = frame {
                node.offer(received, vec![Datum::Int(id), Datum::Bytes(bytes.to_vec())]);
            }
            node.run(now_ns);
        }
        let heard = std::iter::from_fn(|| node.next_output());
        heard.filter(|(channel, _)| *channel == sent).count()
    };
    // The flow control, and the answer's first frame.
    assert_eq!((answers(None, 900), answers(None, 1_200)), (2, 1));
    for stray in strays {
        assert_eq!((answers(Some(stray), 900), answers(Some(stray), 1_200)), (2, 1), "{stray:02x?}");
    }
}
