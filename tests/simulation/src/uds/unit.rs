//! The specification of the control unit of examples/uds, from ISO 14229-1, its README and constants: a
//! nondeterministic transition function from state and request to next state and answer. A tester that has lost answers
//! tracks the set of possible states (subset construction); an answer that none of them gives is an error.

use crate::SECOND_NS;
use std::collections::BTreeSet;

/// Timeouts of the unit.
const SESSION_NS: i64 = 5 * SECOND_NS;
const LOCKED_NS: i64 = 10 * SECOND_NS;
const TEST_NS: i64 = 2 * SECOND_NS;
const ATTEMPTS: u8 = 3;
/// The maximal length of a message.
pub(super) const MAX_MESSAGE: usize = 256;

/// The earliest and the latest time at which something can have happened.
type Span = (i64, i64);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Test {
    Idle,
    Running(Span),
    Passed,
}

/// A possible state of the unit.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct Unit {
    /// The time of the last request of the extended session, if the unit is in it.
    extended: Option<Span>,
    open: bool,
    /// Whether it expects a key.
    expects_key: bool,
    /// The seed that it has sent, if the tester has received it.
    seed: Option<[u8; 4]>,
    attempts: u8,
    locked: Option<Span>,
    test: Test,
}

/// An answer.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Answer {
    Nothing,
    Bytes(Vec<u8>),
    /// A random seed.
    Seed,
}

/// A request in transit.
#[derive(Clone, Copy)]
pub(super) struct Request<'q> {
    pub(super) bytes: &'q [u8],
    pub(super) functional: bool,
    /// When it can have been processed.
    pub(super) span: Span,
    /// Whether it or its answer may be lost.
    pub(super) may_be_lost: bool,
    /// Whether it may be duplicated.
    pub(super) may_be_duplicated: bool,
}

/// The key of a seed, by the unit's secret.
pub(super) fn key(seed: [u8; 4]) -> [u8; 4] {
    (u32::from_be_bytes(seed) ^ 0x5eed_c0de).wrapping_mul(0x0101_0101).rotate_left(7).to_be_bytes()
}

/// The possible states after an answer, or after none.
pub(super) fn after(states: &BTreeSet<Unit>, request: &Request<'_>, answer: Option<&[u8]>) -> BTreeSet<Unit> {
    let mut next = BTreeSet::new();
    for state in states.iter().flat_map(|state| state.after_timeouts(request.span)) {
        if request.may_be_lost && answer.is_none() {
            next.insert(state.clone());
        }
        for (once, first) in state.handle(request) {
            let seen = once.if_observed(&first, answer, request.may_be_lost);
            if request.may_be_duplicated {
                for (twice, second) in once.handle(request) {
                    next.extend(seen.as_ref().and_then(|_| twice.with_seed(&first, answer)));
                    // The first answer may be lost, and the second received.
                    next.extend(request.may_be_lost.then(|| twice.if_observed(&second, answer, true)).flatten());
                }
            }
            next.extend(seen);
        }
    }
    next
}

impl Unit {
    pub(super) fn new() -> Unit {
        Unit {
            extended: None,
            open: false,
            expects_key: false,
            seed: None,
            attempts: 0,
            locked: None,
            test: Test::Idle,
        }
    }

    /// Whether it would accept a key.
    pub(super) fn expects_a_key(&self) -> bool {
        self.expects_key
    }

    /// This state, if the answer is the one that the tester has received.
    fn if_observed(&self, answer: &Answer, received: Option<&[u8]>, may_be_lost: bool) -> Option<Unit> {
        match (answer, received) {
            (Answer::Nothing, None) => Some(self.clone()),
            (Answer::Bytes(_) | Answer::Seed, None) => may_be_lost.then(|| self.clone()),
            (Answer::Bytes(answer), Some(received)) => (answer == received).then(|| self.clone()),
            (Answer::Seed, Some([0x67, 1, _, _, _, _])) => self.with_seed(answer, received),
            (Answer::Nothing | Answer::Seed, Some(_)) => None,
        }
    }

    /// This state, with the received seed.
    fn with_seed(&self, answer: &Answer, received: Option<&[u8]>) -> Option<Unit> {
        match (answer, received) {
            (Answer::Seed, Some(&[_, _, a, b, c, d])) => {
                let seed = [a, b, c, d];
                let matches = self.seed.is_none_or(|known| known == seed) && seed != [0; 4];
                matches.then(|| Unit { seed: Some(seed), ..self.clone() })
            }
            _ => Some(self.clone()),
        }
    }

    /// The states that it may reach by timeouts until some time in this span.
    fn after_timeouts(&self, (earliest, latest): Span) -> Vec<Unit> {
        let mut states = vec![self.clone()];
        let mut fork = |since: Option<Span>, length: i64, change: &dyn Fn(&mut Unit)| {
            let Some((first, last)) = since else { return };
            let may = latest >= first + length;
            let must = earliest > last + length;
            let mut changed = states.clone();
            changed.iter_mut().for_each(change);
            match (may, must) {
                (_, true) => states = changed,
                (true, false) => states.extend(changed),
                (false, false) => {}
            }
        };
        fork(self.extended, SESSION_NS, &|unit| unit.enter(None));
        fork(self.locked, LOCKED_NS, &|unit| {
            unit.locked = None;
            unit.attempts = 0;
        });
        let runs = if let Test::Running(since) = self.test { Some(since) } else { None };
        fork(runs, TEST_NS, &|unit| unit.test = Test::Passed);
        states
    }

    fn enter(&mut self, extended: Option<Span>) {
        self.extended = extended;
        self.open = false;
        self.expects_key = false;
        self.seed = None;
    }

    /// The states that it may reach by a request, each with its answer.
    fn handle(&self, request: &Request<'_>) -> Vec<(Unit, Answer)> {
        let mut unit = self.clone();
        if unit.extended.is_some() {
            unit.extended = Some(request.span);
        }
        let bytes = request.bytes;
        let service = bytes[0];
        // A key for a seed that was not received may be right.
        if let ([0x27, 2, ..], 6, None, true, true) =
            (bytes, bytes.len(), unit.seed, unit.expects_key, unit.extended.is_some())
        {
            return [true, false].map(|right| unit.clone().try_key(right)).to_vec();
        }
        let answer = unit.serve(bytes, request.span);
        // After a response-pending message the final answer is always sent.
        let waits = service == 0x31 && bytes.get(2..4) == Some(&[0xff, 0]);
        let silent = service != 0x22 && !waits && bytes.get(1).is_some_and(|sub| sub & 0x80 != 0);
        let answer = match answer {
            // A functional request gets no negative response of these kinds (ISO 14229-1, 7.5.6).
            Err(0x11 | 0x12 | 0x31 | 0x7f) if request.functional => Answer::Nothing,
            Err(why) => Answer::Bytes(vec![0x7f, service, why]),
            Ok(_) if silent => Answer::Nothing,
            Ok(Answer::Bytes(bytes)) => Answer::Bytes([&[service | 0x40][..], &bytes].concat()),
            Ok(other) => other,
        };
        vec![(unit, answer)]
    }

    fn try_key(mut self, right: bool) -> (Unit, Answer) {
        self.expects_key = false;
        self.seed = None;
        self.open = right;
        if right {
            self.attempts = 0;
            return (self, Answer::Bytes(vec![0x67, 2]));
        }
        self.attempts += 1;
        if self.attempts == ATTEMPTS {
            self.locked = self.extended;
        }
        let why = if self.attempts == ATTEMPTS { 0x36 } else { 0x35 };
        (self, Answer::Bytes(vec![0x7f, 0x27, why]))
    }

    fn serve(&mut self, request: &[u8], span: Span) -> Result<Answer, u8> {
        let sub = request.get(1).map(|sub| sub & 0x7f);
        match request[0] {
            0x10 => match (request.len(), sub) {
                (2, Some(sub @ (1 | 3))) => {
                    self.enter((sub == 3).then_some(span));
                    Ok(Answer::Bytes(vec![sub, 0, 0x32, 1, 0xf4]))
                }
                (2, _) => Err(0x12),
                _ => Err(0x13),
            },
            0x3e => match (request.len(), sub) {
                (2, Some(0)) => Ok(Answer::Bytes(vec![0])),
                (2, _) => Err(0x12),
                _ => Err(0x13),
            },
            0x22 => self.read(&request[1..]),
            0x27 | 0x31 if self.extended.is_none() => Err(0x7f),
            0x27 => self.unlock(request, sub.ok_or(0x13)?),
            0x31 => self.run(request, span),
            _ => Err(0x11),
        }
    }

    fn read(&self, ids: &[u8]) -> Result<Answer, u8> {
        if ids.is_empty() || ids.len() % 2 == 1 {
            return Err(0x13);
        }
        let session = [if self.extended.is_some() { 3 } else { 1 }];
        let mut said = Vec::new();
        for id in ids.chunks(2) {
            let what: &[u8] = match id {
                [0xf1, 0x86] => &session,
                [0xf1, 0x8c] => b"QJ-000042",
                [0xf1, 0x90] => b"WQJUDS00000000042",
                _ => continue,
            };
            said.extend(id);
            said.extend(what);
        }
        match said.len() {
            0 => Err(0x31),
            length if length < MAX_MESSAGE => Ok(Answer::Bytes(said)),
            _ => Err(0x14),
        }
    }

    fn unlock(&mut self, request: &[u8], sub: u8) -> Result<Answer, u8> {
        match (sub, request.len()) {
            (1, 2) if self.attempts == ATTEMPTS => Err(0x37),
            (1, 2) if self.open => Ok(Answer::Bytes(vec![1, 0, 0, 0, 0])),
            (1, 2) => {
                if !self.expects_key {
                    self.seed = None;
                }
                self.expects_key = true;
                Ok(Answer::Seed)
            }
            (1, _) | (2, 0..=5 | 7..) => Err(0x13),
            (2, _) if !self.expects_key => Err(0x24),
            (2, _) => {
                let right = self.seed.is_some_and(|seed| request[2..] == key(seed));
                let (unit, answer) = self.clone().try_key(right);
                *self = unit;
                match answer {
                    Answer::Bytes(bytes) if bytes[0] == 0x7f => Err(bytes[2]),
                    _ => Ok(Answer::Bytes(vec![2])),
                }
            }
            _ => Err(0x12),
        }
    }

    fn run(&mut self, request: &[u8], span: Span) -> Result<Answer, u8> {
        let [_, sub, high, low, ..] = *request else { return Err(0x13) };
        let sub = sub & 0x7f;
        let mut said = vec![sub, high, low];
        match (u16::from_be_bytes([high, low]), sub) {
            (_, 0 | 4..) => Err(0x12),
            (0x0203, 1) => {
                self.test = Test::Running(span);
                Ok(Answer::Bytes(said))
            }
            (0x0203, 2) => match self.test {
                Test::Running(_) => {
                    self.test = Test::Idle;
                    Ok(Answer::Bytes(said))
                }
                Test::Idle | Test::Passed => Err(0x24),
            },
            (0x0203, _) => {
                said.push(match self.test {
                    Test::Idle => return Err(0x24),
                    Test::Running(_) => 1,
                    Test::Passed => 2,
                });
                Ok(Answer::Bytes(said))
            }
            (0xff00, 1) if !self.open => Err(0x33),
            (0xff00, 1) if matches!(self.test, Test::Running(_)) => Err(0x22),
            (0xff00, 1) => Ok(Answer::Bytes(said)),
            (0xff00, _) => Err(0x12),
            _ => Err(0x31),
        }
    }
}
