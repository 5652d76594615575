//! Lifts BPF programs to tests of fields by symbolic execution (King 1976): every accepting path is a conjunction, and
//! the paths together are the filter. Each contains the tests that its loads are inside the packet, so the filter
//! matches exactly the packets that the program accepts. A program that cannot be lifted stays a program.
//!
//! Where a branch accepts at once if a test holds, the path on which it fails need not say so: what passes both is
//! accepted in any case. Neither need it say so where every accepting path from there comes to the place to which the
//! branch leads otherwise, and nothing computed before is used from that place on: what passes both passes what follows
//! in any case. Alternatives that are joined by `or`, also below an `and`, are then lifted in linear time, to tests
//! without negations.

use crate::bpf::{Arithmetic, Condition, MEMORY_WORDS, Operand, Operation, Program};
use crate::ir::{Base, Conjunction, Field, Filter, Sense, Subject, Term, Test};
use crate::shape::Shape;
use std::collections::{HashMap, HashSet};

/// The maximum number of accepting paths of a lifted program; more for long programs.
const MAX_PATHS: usize = 1024;
/// The maximum number of operations that are executed, and how many more for each operation of the program.
const MAX_STEPS: usize = 1 << 17;
const STEPS_PER_OPERATION: usize = 256;
/// The number of accepting paths for each operation of a long program.
const PATHS_PER_OPERATION: usize = 4;
/// The maximum number of comparisons of tests.
const MAX_COMPARISONS: usize = 1 << 25;
/// The maximum number of shapes: each shape has code of its own, and beyond this number the program itself is shorter.
/// It is as short if each shape has as many filters.
const MAX_SHAPES: usize = 8;

impl Filter {
    /// The filter that matches the packets that the program does not reject: tests of fields if the program can be
    /// lifted.
    pub fn of_program(program: &Program) -> Filter {
        let Some(conjunctions) = lift(program) else { return Filter::Program(program.clone()) };
        let mut shapes = HashSet::new();
        let max_shapes = MAX_SHAPES.max(conjunctions.len() / MAX_SHAPES);
        let mut possible = Vec::new();
        for conjunction in conjunctions {
            let (shape, values) = Shape::of(&conjunction);
            if values.impossible {
                continue;
            }
            shapes.insert(shape);
            if shapes.len() > max_shapes {
                return Filter::Program(program.clone());
            }
            possible.push(conjunction);
        }
        Filter::Any(possible)
    }
}

/// The accepting paths; `None` if there are too many, or a branch depends on a value that tests cannot express.
pub(crate) fn lift(program: &Program) -> Option<Vec<Conjunction>> {
    if !program.is_acyclic() {
        return None;
    }
    let start = Path {
        at: 0,
        a: Value::CONSTANT_ZERO,
        x: Value::CONSTANT_ZERO,
        memory: [const { Value::CONSTANT_ZERO }; MEMORY_WORDS],
        tests: Tests::default(),
        assumed: HashSet::new(),
    };
    let flow = Flow::of(program.operations());
    let mut lifter = Lifter { program, flow, paths: vec![start], accepted: Vec::new(), steps: 0, comparisons: 0 };
    while let Some(path) = lifter.paths.pop() {
        lifter.execute(path)?;
    }
    // The first path of the program first.
    Some(lifter.accepted)
}

/// A symbolic value.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Value {
    /// A sum of numbers in the packet and a constant, which cannot reach 2^32.
    Sum(Vec<Term>, u32),
    /// Bits of the length on the wire.
    Length(u32),
    /// Zero exactly if the value is this constant: their difference, which is how libpcap compares expressions.
    Difference(Box<Value>, u32),
    /// Something else. A path that depends on it cannot be lifted.
    Other,
}

impl Value {
    const CONSTANT_ZERO: Value = Value::Sum(Vec::new(), 0);

    fn constant(&self) -> Option<u32> {
        match self {
            Value::Sum(terms, constant) if terms.is_empty() => Some(*constant),
            Value::Sum(..) | Value::Length(_) | Value::Difference(..) | Value::Other => None,
        }
    }

    /// The difference of the value and a constant.
    fn difference(self, constant: u32) -> Value {
        match self {
            Value::Sum(..) | Value::Length(_) if constant != 0 => Value::Difference(Box::new(self), constant),
            Value::Sum(..) | Value::Length(_) => self,
            Value::Difference(..) | Value::Other => Value::Other,
        }
    }

    /// The difference of a constant and the value.
    fn reversed_difference(self, constant: u32) -> Value {
        match self {
            Value::Sum(..) | Value::Length(_) => Value::Difference(Box::new(self), constant),
            Value::Difference(..) | Value::Other => Value::Other,
        }
    }

    /// A sum, if it cannot reach 2^32.
    fn sum(terms: Vec<Term>, constant: u64) -> Value {
        let max = terms.iter().fold(constant, |sum, term| sum.saturating_add(term.max_value()));
        match u32::try_from(max) {
            Ok(_) => Value::Sum(terms, constant as u32),
            Err(_) => Value::Other,
        }
    }

    /// The result; `None` if the packet is rejected.
    fn apply(self, arithmetic: Arithmetic, other: Value) -> Option<Value> {
        if let (Some(a), Some(b)) = (self.constant(), other.constant()) {
            return arithmetic.apply(a, b).map(|result| Value::Sum(Vec::new(), result));
        }
        let Some(b) = other.constant() else {
            return Some(match (arithmetic, self, other) {
                (Arithmetic::Add | Arithmetic::And | Arithmetic::Mul, one, two) if one.constant().is_some() => {
                    return two.apply(arithmetic, one);
                }
                (Arithmetic::Sub, one, two) => match one.constant() {
                    Some(constant) => two.reversed_difference(constant),
                    None => Value::Other,
                },
                (Arithmetic::Add, Value::Sum(mut terms, one), Value::Sum(more, two)) => {
                    terms.extend(more);
                    Value::sum(terms, u64::from(one) + u64::from(two))
                }
                _ => Value::Other,
            });
        };
        Some(match (arithmetic, self) {
            (Arithmetic::Div | Arithmetic::Mod, _) if b == 0 => return None,
            (Arithmetic::Add, Value::Sum(terms, constant)) => Value::sum(terms, u64::from(constant) + u64::from(b)),
            (Arithmetic::Sub, value @ Value::Difference(..)) if b == 0 => value,
            (Arithmetic::Sub, value) => value.difference(b),
            (Arithmetic::And, Value::Length(mask)) => Value::Length(mask & b),
            (Arithmetic::And, Value::Sum(terms, 0)) => match only_term(terms) {
                Some(term) => trimmed(term.clone(), unshift(b, term.shift), term.shift),
                None => Value::Other,
            },
            (Arithmetic::Lsh, Value::Sum(terms, 0)) if b < 32 => shifted(terms, b as i8),
            (Arithmetic::Rsh, Value::Sum(terms, 0)) if b < 32 => shifted(terms, -(b as i8)),
            (Arithmetic::Mul, Value::Sum(terms, 0)) if b.is_power_of_two() => shifted(terms, b.trailing_zeros() as i8),
            (Arithmetic::Div, Value::Sum(terms, 0)) if b.is_power_of_two() => {
                shifted(terms, -(b.trailing_zeros() as i8))
            }
            _ => Value::Other,
        })
    }
}

/// The only term.
fn only_term(mut terms: Vec<Term>) -> Option<Term> {
    if terms.len() == 1 { terms.pop() } else { None }
}

/// Bits of a shifted number, as bits of the number.
fn unshift(bits: u32, shift: i8) -> u32 {
    let by = u32::from(shift.unsigned_abs());
    if shift < 0 { bits.checked_shl(by).unwrap_or(0) } else { bits.checked_shr(by).unwrap_or(0) }
}

fn shifted(terms: Vec<Term>, by: i8) -> Value {
    match only_term(terms) {
        Some(term) => {
            let shift = i32::from(term.shift) + i32::from(by);
            // A right shift loses low bits and a left shift loses high bits; the mask keeps the bits that survive both.
            if (-31..=31).contains(&shift) { trimmed(term, u32::MAX, shift as i8) } else { Value::CONSTANT_ZERO }
        }
        None => Value::Other,
    }
}

/// The term with another shift, and a mask without the bits that the shift moves out.
fn trimmed(term: Term, mask: u32, shift: i8) -> Value {
    let by = u32::from(shift.unsigned_abs());
    let stays = if shift < 0 { u32::MAX << by } else { u32::MAX >> by };
    let mask = term.mask & mask & stays & term.field.full();
    Value::Sum(vec![Term { mask, shift, ..term }], 0)
}

#[derive(Clone, Debug)]
struct Path {
    at: usize,
    a: Value,
    x: Value,
    memory: [Value; MEMORY_WORDS],
    tests: Tests,
    /// What holds of the packets on this path that no other path accepts.
    assumed: HashSet<Test>,
}

/// Tests that hold on a path, in order.
#[derive(Clone, Debug, Default)]
struct Tests {
    all: Vec<Test>,
    set: HashSet<Test>,
    /// The numbers that bits of a subject do not have. All other tests, which are few, are in `ranges`.
    excluded: HashMap<(Subject, u32), HashSet<u32>>,
    ranges: HashMap<Subject, Vec<Test>>,
    /// The masks of a subject in `excluded`.
    masks: HashMap<Subject, Vec<u32>>,
}

impl Tests {
    fn push(&mut self, test: Test) {
        if !self.set.insert(test.clone()) {
            return;
        }
        if test.sense == Sense::Outside && test.low == test.high {
            let numbers = self.excluded.entry((test.subject.clone(), test.mask)).or_default();
            if numbers.is_empty() {
                self.masks.entry(test.subject.clone()).or_default().push(test.mask);
            }
            numbers.insert(test.low);
        } else {
            self.ranges.entry(test.subject.clone()).or_default().push(test.clone());
        }
        self.all.push(test);
    }

    /// The number of comparisons of [`Tests::imply`].
    fn comparisons(&self, subject: &Subject) -> usize {
        1 + self.ranges.get(subject).map_or(0, Vec::len) + self.masks.get(subject).map_or(0, Vec::len)
    }

    /// Whether the tests imply another test or its negation.
    fn imply(&self, test: &Test) -> Option<bool> {
        if self.set.contains(test) {
            return Some(true);
        }
        for known in self.ranges.get(&test.subject).into_iter().flatten() {
            if known.is_equality() && test.mask & !known.mask == 0 && known.mask != 0 {
                return Some(test.accepts(known.low));
            }
            if test.is_equality() && known.is_equality() && (known.low ^ test.low) & known.mask & test.mask != 0 {
                return Some(false);
            }
            if test.is_equality() && known.mask & !test.mask == 0 && known.mask != 0 && !known.accepts(test.low) {
                return Some(false);
            }
        }
        let excluded = |mask: &u32| {
            let numbers = self.excluded.get(&(test.subject.clone(), *mask));
            mask & !test.mask == 0 && *mask != 0 && numbers.is_some_and(|own| own.contains(&(test.low & mask)))
        };
        let masks = self.masks.get(&test.subject);
        (test.is_equality() && masks.is_some_and(|masks| masks.iter().any(excluded))).then_some(false)
    }
}

/// The outcome of a branch: known, or that of a test of the packet.
enum BranchOutcome {
    Known(bool),
    Test(Test),
}

/// The effect of an operation on a path.
enum Outcome {
    Continue,
    Rejected,
    Accepted,
}

struct Lifter<'p> {
    program: &'p Program,
    flow: Flow,
    paths: Vec<Path>,
    accepted: Vec<Conjunction>,
    steps: usize,
    comparisons: usize,
}

impl Lifter<'_> {
    /// Executes a path to its end; the other successors of its branches are queued. `None` if the program cannot be
    /// lifted.
    fn execute(&mut self, mut path: Path) -> Option<()> {
        loop {
            self.steps += 1;
            if self.steps > MAX_STEPS + STEPS_PER_OPERATION * self.program.operations().len() {
                return None;
            }
            let operation = self.program.operations()[path.at];
            path.at += 1;
            match self.step(&mut path, operation)? {
                Outcome::Continue => {}
                Outcome::Rejected => return Some(()),
                Outcome::Accepted => return self.accept(path.tests.all),
            }
        }
    }

    /// Executes one operation on symbolic values.
    fn step(&mut self, path: &mut Path, operation: Operation) -> Option<Outcome> {
        match operation {
            Operation::LoadConstant(k) => path.a = Value::Sum(Vec::new(), k),
            Operation::LoadAbsolute(size, k) => {
                let Some(field) = field(&Value::CONSTANT_ZERO, k, size.bytes())? else {
                    return Some(Outcome::Rejected);
                };
                path.a = load(&mut path.tests, field, u32::MAX, 0);
            }
            Operation::LoadIndirect(size, k) => {
                let Some(field) = field(&path.x, k, size.bytes())? else { return Some(Outcome::Rejected) };
                path.a = load(&mut path.tests, field, u32::MAX, 0);
            }
            Operation::IndexHeader(k) => {
                let Some(field) = field(&Value::CONSTANT_ZERO, k, 1)? else { return Some(Outcome::Rejected) };
                path.x = load(&mut path.tests, field, 0x0f, 2);
            }
            Operation::LoadLength => path.a = Value::Length(u32::MAX),
            Operation::LoadMemory(k) => path.a = path.memory[k as usize].clone(),
            Operation::IndexConstant(k) => path.x = Value::Sum(Vec::new(), k),
            Operation::IndexLength => path.x = Value::Length(u32::MAX),
            Operation::IndexMemory(k) => path.x = path.memory[k as usize].clone(),
            Operation::Store(k) => path.memory[k as usize] = path.a.clone(),
            Operation::StoreIndex(k) => path.memory[k as usize] = path.x.clone(),
            Operation::Arithmetic(arithmetic, operand) => {
                // The outcome depends on a divisor that may be zero.
                let other = value(operand, &path.x);
                let divides = matches!(arithmetic, Arithmetic::Div | Arithmetic::Mod);
                if divides && other.constant().is_none() {
                    return None;
                }
                let a = std::mem::replace(&mut path.a, Value::Other);
                let Some(result) = a.apply(arithmetic, other) else { return Some(Outcome::Rejected) };
                path.a = result;
            }
            Operation::Negate => {
                path.a = match path.a.constant() {
                    Some(constant) => Value::Sum(Vec::new(), constant.wrapping_neg()),
                    None => Value::Other,
                };
            }
            Operation::Jump(by) => path.at += by as usize,
            Operation::Branch(condition, operand, jt, jf) => self.branch(path, condition, operand, [jt, jf])?,
            Operation::Return(0) => return Some(Outcome::Rejected),
            Operation::Return(_) => return Some(Outcome::Accepted),
            Operation::ReturnAccumulator => {
                match symbolic_condition(Condition::Equal, &path.a, &Value::CONSTANT_ZERO)? {
                    BranchOutcome::Known(true) => return Some(Outcome::Rejected),
                    BranchOutcome::Known(false) => {}
                    BranchOutcome::Test(test) => path.tests.push(test.negated()),
                }
                return Some(Outcome::Accepted);
            }
            Operation::Tax => path.x = path.a.clone(),
            Operation::Txa => path.a = path.x.clone(),
        }
        Some(Outcome::Continue)
    }

    /// Continues at a successor of a branch; if both are possible, the path forks.
    fn branch(&mut self, path: &mut Path, condition: Condition, operand: Operand, successors: [u8; 2]) -> Option<()> {
        let [jt, jf] = successors.map(usize::from);
        if jt == jf {
            path.at += jt;
            return Some(());
        }
        let decided = match symbolic_condition(condition, &path.a, &value(operand, &path.x))? {
            BranchOutcome::Known(yes) => yes,
            BranchOutcome::Test(test) => match self.implied(path, &test)? {
                Some(yes) => yes,
                None => self.fork(path, test, [jt, jf])?,
            },
        };
        path.at += if decided { jt } else { jf };
        Some(())
    }

    /// Whether a path implies a test or its negation. `None` if that takes too long.
    fn implied(&mut self, path: &Path, test: &Test) -> Option<Option<bool>> {
        self.comparisons += path.tests.comparisons(&test.subject);
        if self.comparisons > MAX_COMPARISONS {
            return None;
        }
        if path.assumed.contains(test) {
            return Some(Some(true));
        }
        if path.assumed.contains(&test.clone().negated()) {
            return Some(Some(false));
        }
        Some(path.tests.imply(test))
    }

    /// Continues with one outcome of a test, which is returned; the other one is decided here or queued.
    fn fork(&mut self, path: &mut Path, test: Test, [jt, jf]: [usize; 2]) -> Option<bool> {
        if self.flow.target[path.at + jt] == self.flow.target[path.at + jf] {
            return Some(true);
        }
        let negated = test.clone().negated();
        match (self.verdict(path.at + jt), self.verdict(path.at + jf)) {
            (Some(true), _) => {
                self.accept(path.tests.all.iter().cloned().chain([test]).collect())?;
                path.assumed.insert(negated);
                Some(false)
            }
            (_, Some(true)) => {
                self.accept(path.tests.all.iter().cloned().chain([negated]).collect())?;
                // An equality is kept: it makes a lookup of the test.
                if test.is_equality() {
                    path.tests.push(test)
                } else {
                    _ = path.assumed.insert(test)
                }
                Some(true)
            }
            (Some(false), _) => {
                path.tests.push(negated);
                Some(false)
            }
            (None, Some(false)) => {
                path.tests.push(test);
                Some(true)
            }
            (None, None) => {
                let mut other = path.clone();
                let [yes, no] = [path.at + jt, path.at + jf];
                other.at = no;
                // No assumption takes the place of the test: it may be asked again where the paths meet.
                if !self.flow.comes_to(no, yes) {
                    other.tests.push(negated);
                }
                self.paths.push(other);
                // An equality is kept, as above.
                if test.is_equality() || !self.flow.comes_to(yes, no) {
                    path.tests.push(test);
                }
                Some(true)
            }
        }
    }

    /// The verdict of a position that returns at once, perhaps after jumps.
    fn verdict(&self, mut at: usize) -> Option<bool> {
        loop {
            match self.program.operations().get(at)? {
                // Lifted programs have no jumps backwards.
                Operation::Jump(by) => at += 1 + *by as usize,
                Operation::Return(verdict) => return Some(*verdict != 0),
                _ => return None,
            }
        }
    }

    fn accept(&mut self, tests: Vec<Test>) -> Option<()> {
        self.accepted.extend(Conjunction::new(tests));
        let max_paths = MAX_PATHS.max(PATHS_PER_OPERATION * self.program.operations().len());
        (self.accepted.len() <= max_paths).then_some(())
    }
}

/// Where the paths of a program without loops lead: the tree of post-dominators of its accepting paths (Cooper, Harvey,
/// Kennedy, "A Simple, Fast Dominance Algorithm", 2001; without loops, one pass), and the registers in use.
struct Flow {
    /// The position behind jumps.
    target: Vec<usize>,
    /// The next position that all accepting paths share, the end of the program if there is none before it; none where
    /// nothing is accepted.
    joins: Vec<Option<usize>>,
    /// Bits of the registers and words of memory that are read before they are written.
    live: Vec<u32>,
}

/// Bits of [`Flow::live`] behind those of the memory.
const A: u32 = 1 << 16;
const X: u32 = 1 << 17;

impl Flow {
    fn of(operations: &[Operation]) -> Flow {
        let end = operations.len();
        let mut flow = Flow { target: (0..=end).collect(), joins: vec![None; end + 1], live: vec![0; end + 1] };
        flow.joins[end] = Some(end);
        for at in (0..end).rev() {
            let next = at + 1;
            let (successors, accepts) = match operations[at] {
                Operation::Jump(by) => {
                    let to = flow.target[next + by as usize];
                    flow.target[at] = to;
                    flow.joins[at] = flow.joins[to];
                    flow.live[at] = flow.live[to];
                    continue;
                }
                Operation::Branch(_, _, jt, jf) => (vec![next + usize::from(jt), next + usize::from(jf)], false),
                Operation::Return(verdict) => (Vec::new(), verdict != 0),
                Operation::ReturnAccumulator => (Vec::new(), true),
                _ => (vec![next], false),
            };
            let successors = successors.into_iter().map(|to| flow.target[to]);
            let mut live = 0;
            let mut join = accepts.then_some(end);
            for to in successors.filter(|to| flow.joins[*to].is_some()) {
                live |= flow.live[to];
                join = Some(join.map_or(to, |other| flow.common(other, to)));
            }
            let (reads, writes) = effects(operations[at]);
            flow.joins[at] = join;
            flow.live[at] = live & !writes | reads;
        }
        flow
    }

    /// The first position that all accepting paths from two positions share.
    fn common(&self, mut one: usize, mut two: usize) -> usize {
        while one != two {
            let earlier = if one < two { &mut one } else { &mut two };
            *earlier = self.joins[*earlier].expect("positions that accept nothing are left out");
        }
        one
    }

    /// Whether every accepting path from a position comes to another one, from which on nothing is used that was
    /// computed before.
    fn comes_to(&self, from: usize, to: usize) -> bool {
        let (mut at, to) = (self.target[from], self.target[to]);
        while at < to {
            match self.joins[at] {
                Some(next) => at = next,
                None => return false,
            }
        }
        at == to && self.live[to] == 0
    }
}

/// What an operation reads and writes, as bits of [`Flow::live`].
fn effects(operation: Operation) -> (u32, u32) {
    let index = |operand: Operand| if operand == Operand::Index { X } else { 0 };
    match operation {
        Operation::LoadConstant(_) | Operation::LoadAbsolute(..) | Operation::LoadLength => (0, A),
        Operation::LoadIndirect(..) | Operation::Txa => (X, A),
        Operation::LoadMemory(word) => (1 << word, A),
        Operation::IndexConstant(_) | Operation::IndexHeader(_) | Operation::IndexLength => (0, X),
        Operation::IndexMemory(word) => (1 << word, X),
        Operation::Store(word) => (A, 1 << word),
        Operation::StoreIndex(word) => (X, 1 << word),
        Operation::Arithmetic(_, operand) => (A | index(operand), A),
        Operation::Negate => (A, A),
        Operation::Branch(_, operand, ..) => (A | index(operand), 0),
        Operation::ReturnAccumulator => (A, 0),
        Operation::Tax => (A, X),
        Operation::Jump(_) | Operation::Return(_) => (0, 0),
    }
}

fn value(operand: Operand, x: &Value) -> Value {
    match operand {
        Operand::Constant(k) => Value::Sum(Vec::new(), k),
        Operand::Index => x.clone(),
    }
}

/// The field at `index + k`; inner `None` if it is beyond every packet.
fn field(index: &Value, k: u32, width: u32) -> Option<Option<Field>> {
    let Value::Sum(terms, constant) = index else { return None };
    let offset = u64::from(*constant) + u64::from(k);
    let inside = offset + u64::from(width) <= u64::from(u32::MAX);
    let field = || Field { base: Base::sum(terms.clone()), offset: offset as u32, width: width as u8 };
    Some(inside.then(field))
}

/// Loads a field: from here on it is known to be there.
fn load(tests: &mut Tests, field: Field, mask: u32, shift: i8) -> Value {
    tests.push(Test::there(field.clone()));
    let mask = mask & field.full();
    Value::Sum(vec![Term { field, mask, shift }], 0)
}

/// The outcome of a condition on symbolic values; `None` if it is neither known nor one test.
fn symbolic_condition(condition: Condition, a: &Value, b: &Value) -> Option<BranchOutcome> {
    let k = b.constant()?;
    let (subject, mask, shift, plus) = match a {
        Value::Difference(value, constant) if condition == Condition::Equal && k == 0 => {
            return symbolic_condition(Condition::Equal, value, &Value::Sum(Vec::new(), *constant));
        }
        Value::Difference(..) | Value::Other => return None,
        Value::Length(mask) => (Subject::Length, *mask, 0, 0),
        Value::Sum(terms, plus) => match &terms[..] {
            [] => return Some(BranchOutcome::Known(condition.holds(*plus, k))),
            [term] => (Subject::Field(term.field.clone()), term.mask, term.shift, *plus),
            [..] => return None,
        },
    };
    let test =
        |mask, low, high, sense| Some(BranchOutcome::Test(Test { subject: subject.clone(), mask, low, high, sense }));
    if condition == Condition::Set {
        if plus != 0 {
            return None;
        }
        return match mask & unshift(k, shift) {
            0 => Some(BranchOutcome::Known(false)),
            bits => test(bits, 0, 0, Sense::Outside),
        };
    }
    // A sum is at least its constant.
    let Some(k) = k.checked_sub(plus) else { return Some(BranchOutcome::Known(condition != Condition::Equal)) };
    // The smallest number under the mask that makes the shifted one at least `k`.
    let at_least = |k: u64| {
        let by = u32::from(shift.unsigned_abs());
        if shift < 0 { k << by } else { k.div_ceil(1 << by) }
    };
    let (low, next) = (at_least(u64::from(k)), at_least(u64::from(k) + 1));
    // Numbers that are shifted right have no bits below, so from `low` to before `next` there is only `low` itself.
    match condition {
        Condition::Equal => {
            let exists = low < next && low <= u64::from(mask) && low as u32 & !mask == 0;
            if exists { test(mask, low as u32, low as u32, Sense::Inside) } else { Some(BranchOutcome::Known(false)) }
        }
        Condition::Greater | Condition::GreaterEqual => {
            let least = if condition == Condition::Greater { next } else { low };
            match (least, u32::try_from(least)) {
                (0, _) => Some(BranchOutcome::Known(true)),
                (_, Ok(least)) if least <= mask => test(mask, least, mask, Sense::Inside),
                (_, Ok(_) | Err(_)) => Some(BranchOutcome::Known(false)),
            }
        }
        Condition::Set => None,
    }
}
