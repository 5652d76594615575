//! The translation against the semantics of LTL: the automaton of a negated property accepts exactly those lassos on
//! which an evaluation of the property's text, position by position, is false.

use super::*;
use crate::ltl::negated;
use fastrand::Rng;
use quaject_esp_ir::ir::Program;
use quaject_esp_ir::ltl::Proposition;
use quaject_esp_lower::lower_model;
use quaject_esp_syntax::check::{Loader, analyze};
use quaject_esp_syntax::span::{FileId, SourceFile, SourceMap};

struct NoImports;

impl Loader for NoImports {
    fn load(&mut self, _path: &str, _importer: FileId) -> Result<(String, Vec<u8>), String> {
        Err("these programs import nothing".into())
    }
}

/// A program whose process `p` has three labels.
fn program() -> Program {
    let text = "channel c(); process p { while { #0 out(c); #1 out(c); #2 out(c); } } process q { while { in(c); } }";
    let mut sources = SourceMap::default();
    let root = sources.add(SourceFile::new("p.esp", text));
    let program = analyze(&mut sources, root, &mut NoImports).program.expect("the program is correct");
    lower_model(&program, None, None, &sources).program
}

/// The syntax tree of a random property.
enum Written {
    Constant(bool),
    Atom(u32),
    Unary(&'static str, Box<Written>),
    Binary(&'static str, Box<Written>, Box<Written>),
}

impl Written {
    fn random(rng: &mut Rng, size: u32) -> Written {
        let inner = |rng: &mut Rng, size| Box::new(Written::random(rng, size));
        match size {
            0 if rng.u32(0..12) == 0 => Written::Constant(rng.bool()),
            0 => Written::Atom(rng.u32(0..3)),
            _ if size == 1 || rng.u32(0..5) < 2 => {
                let sign = ["!", "[]", "<>", "[]", "<>"][rng.usize(0..5)];
                Written::Unary(sign, inner(rng, size - 1))
            }
            _ => {
                let sign = ["&&", "||", "->", "<->", "U", "V", "W", "U", "V"][rng.usize(0..9)];
                let left = rng.u32(0..size);
                Written::Binary(sign, inner(rng, left), inner(rng, size - 1 - left))
            }
        }
    }

    fn text(&self) -> String {
        match self {
            Written::Constant(value) => value.to_string(),
            Written::Atom(label) => format!("p@L{label}"),
            Written::Unary(sign, inner) => format!("{sign} ({})", inner.text()),
            Written::Binary(sign, left, right) => format!("({}) {sign} ({})", left.text(), right.text()),
        }
    }

    /// The positions of a lasso at which it holds.
    fn holds(&self, run: &Run) -> Vec<bool> {
        let pairs = |left: &Written, right: &Written, holds: fn(bool, bool) -> bool| {
            left.holds(run).into_iter().zip(right.holds(run)).map(|(a, b)| holds(a, b)).collect()
        };
        match self {
            Written::Constant(value) => vec![*value; run.moments.len()],
            Written::Atom(label) => run.moments.iter().map(|labels| labels >> label & 1 == 1).collect(),
            Written::Unary("!", inner) => inner.holds(run).into_iter().map(|holds| !holds).collect(),
            Written::Unary("<>", inner) => run.until(&vec![true; run.moments.len()], &inner.holds(run)),
            Written::Unary(_, inner) => run.weak_until(&inner.holds(run), &vec![false; run.moments.len()]),
            Written::Binary("&&", left, right) => pairs(left, right, |a, b| a && b),
            Written::Binary("||", left, right) => pairs(left, right, |a, b| a || b),
            Written::Binary("->", left, right) => pairs(left, right, |a, b| !a || b),
            Written::Binary("<->", left, right) => pairs(left, right, |a, b| a == b),
            Written::Binary("U", left, right) => run.until(&left.holds(run), &right.holds(run)),
            Written::Binary("W", left, right) => run.weak_until(&left.holds(run), &right.holds(run)),
            // p V q is q W (p && q)
            Written::Binary(_, left, right) => run.weak_until(&right.holds(run), &pairs(left, right, |a, b| a && b)),
        }
    }
}

/// A lasso: the labels that hold at each position, as bits, and the position that follows the last one.
#[derive(Debug)]
struct Run {
    moments: Vec<u64>,
    back: usize,
}

impl Run {
    fn random(rng: &mut Rng, size: usize) -> Run {
        Run { moments: (0..size).map(|_| rng.u64(0..8)).collect(), back: rng.usize(0..size) }
    }

    fn next(&self, at: usize) -> usize {
        if at + 1 < self.moments.len() { at + 1 } else { self.back }
    }

    /// For each position: whether `goal` holds at the first position from there on where `goal` holds or `run` fails;
    /// `never` if there is no such position.
    fn first(&self, run: &[bool], goal: &[bool], never: bool) -> Vec<bool> {
        let from = |start: usize| {
            let mut at = start;
            for _ in 0..=self.moments.len() {
                if goal[at] || !run[at] {
                    return goal[at];
                }
                at = self.next(at);
            }
            never
        };
        (0..self.moments.len()).map(from).collect()
    }

    fn until(&self, run: &[bool], goal: &[bool]) -> Vec<bool> {
        self.first(run, goal, false)
    }

    fn weak_until(&self, run: &[bool], goal: &[bool]) -> Vec<bool> {
        self.first(run, goal, true)
    }
}

/// Whether an automaton accepts a run. `labels` holds the label of each of its atoms.
fn accepts(automaton: &mut Automaton, labels: &[u32], run: &Run) -> bool {
    // Pairs of a state of the automaton and a position of the run; edges with the goals that they postpone.
    let mut nodes = vec![(0, 0)];
    let mut edges: Vec<Vec<(usize, Vec<FormulaId>)>> = Vec::new();
    while let Some((state, at)) = nodes.get(edges.len()).copied() {
        let atoms =
            labels.iter().enumerate().fold(0, |all, (atom, label)| all | (run.moments[at] >> label & 1) << atom);
        let steps = automaton.steps(state, atoms, &mut |_| Ok(())).expect("there is no limit");
        let mut own = Vec::new();
        for step in steps.iter() {
            let to = (step.to, run.next(at));
            let number = nodes.iter().position(|node| *node == to).unwrap_or(nodes.len());
            if number == nodes.len() {
                nodes.push(to);
            }
            own.push((number, automaton.postponed(step.postponed_set).to_vec()));
        }
        edges.push(own);
    }
    let count = nodes.len();
    let mut reaches = vec![vec![false; count]; count];
    for (from, own) in edges.iter().enumerate() {
        own.iter().for_each(|(to, _)| reaches[from][*to] = true);
    }
    for by in 0..count {
        for from in 0..count {
            if reaches[from][by] {
                let further = reaches[by].clone();
                reaches[from].iter_mut().zip(further).for_each(|(reaches, further)| *reaches |= further);
            }
        }
    }
    // All edges of a strongly connected component can be taken infinitely often.
    (0..count).filter(|node| reaches[*node][*node]).any(|node| {
        let around = |other: usize| reaches[node][other] && reaches[other][node];
        let inside = (0..count).filter(|from| around(*from)).flat_map(|from| &edges[from]);
        let postponed_sets: Vec<_> = inside.filter(|(to, _)| around(*to)).map(|(_, postponed)| postponed).collect();
        postponed_sets[0].iter().all(|goal| postponed_sets.iter().any(|postponed| !postponed.contains(goal)))
    })
}

fn labels(atoms: &[Proposition]) -> Vec<u32> {
    let label = |atom: &Proposition| match atom {
        Proposition::Passed { label, .. } => label.0,
        Proposition::Compares(..) => unreachable!("the properties refer to labels only"),
    };
    atoms.iter().map(label).collect()
}

#[test]
fn automata_agree_with_the_semantics_of_properties() {
    let program = program();
    let mut rng = Rng::with_seed(1977);
    let (mut pairs, mut hold, mut max_states) = (0, 0, 0);
    for number in 0..3000 {
        // Small properties first, so that a failure shows a small one.
        let written = Written::random(&mut rng, number / 300);
        let text = written.text();
        let (mut automaton, atoms) = negated(&program, &[], 0, &text).expect("the property is correct");
        let labels = labels(&atoms);
        for _ in 0..10 {
            let size = rng.usize(1..6);
            let run = Run::random(&mut rng, size);
            let holds = written.holds(&run)[0];
            assert_eq!(accepts(&mut automaton, &labels, &run), !holds, "{text}\n{run:?}");
            pairs += 1;
            hold += u32::from(holds);
        }
        max_states = max_states.max(automaton.states.sets.len());
    }
    println!("{pairs} pairs of a property and a run, {hold} hold; at most {max_states} states");
    assert!(hold > pairs / 4 && hold < pairs * 3 / 4, "{hold} of {pairs} hold");
}

/// The number of states and steps of the automaton of a property's negation, over all valuations.
fn size(property: &str) -> (usize, usize) {
    let (mut automaton, atoms) = negated(&program(), &[], 0, property).expect("the property is correct");
    let (mut at, mut steps) = (0, 0);
    while at < automaton.states.sets.len() {
        for valuation in 0..1 << atoms.len() {
            steps += automaton.steps(at as u32, valuation, &mut |_| Ok(())).expect("there is no limit").len();
        }
        at += 1;
    }
    (automaton.states.sets.len(), steps)
}

#[test]
fn automata_are_small() {
    for (property, max_states) in [
        ("true", 1),
        ("[] p@L0", 2),
        ("p@L0 <-> p@L0 <-> p@L1 <-> p@L1 <-> p@L2 <-> p@L2", 1),
        ("[] p@L0 && [] p@L0 && [] p@L0", 2),
        ("!([] <> p@L0 && [] <> p@L1 && [] <> p@L2)", 1),
        ("[] <> p@L0 && [] <> p@L1 && [] <> p@L2", 4),
        ("[] (p@L0 -> <> p@L1)", 2),
        ("([] <> p@L0 && [] <> p@L1) -> [] (p@L2 -> <> p@L0)", 3),
        ("!(<> [] p@L0 && <> [] p@L1 && <> [] p@L2)", 2),
        ("p@L0 U p@L1 U p@L2", 3),
        ("!p@L0 U p@L0", 1),
    ] {
        let (states, _) = size(property);
        assert!(states <= max_states, "{property}: {states} states, not {max_states}");
    }
}

#[test]
fn a_limit_ends_the_work_on_a_step() {
    // Each pair has two expansions, so the conjunction has 2 to the 20.
    let pairs: Vec<String> = (0..20).map(|number| format!("(<> {number} == 0 || [] {number} == 1)")).collect();
    let (mut automaton, _) = negated(&program(), &[], 0, &format!("!({})", pairs.join(" && "))).expect("it is right");
    let mut checks = 0;
    let mut limit_check = |bytes: u64| {
        checks += 1;
        if bytes > 1 << 18 { Err(Limit::Memory) } else { Ok(()) }
    };
    let atoms = (0..20).fold(0, |all, number| all | 2 << (2 * number));
    assert_eq!(automaton.steps(0, atoms, &mut limit_check), Err(Limit::Memory));
    assert!(checks > 10);
}

#[test]
fn a_negated_comparison_needs_parentheses() {
    let program = program();
    let errors = |text: &str| negated(&program, &[], 0, text).err().map(|bad| bad.message);
    let wanted = Some("`!` before `==` can negate the number or the comparison".to_string());
    for text in ["! 1 == 2", "[] !1==2", "!! 1 == 2", "p@L0 -> ! 1 == 2"] {
        assert_eq!(errors(text), wanted, "{text}");
    }
    for text in ["! (1 == 2)", "!(!(1 == 2))", "! p@L0", "! [] 1 == 2", "! 1"] {
        assert_eq!(errors(text), None, "{text}");
    }
}

#[test]
fn properties_may_be_long_but_not_deep() {
    let program = program();
    let chain = |sign: &str, count: usize| vec!["[] p@L0"; count].join(sign);
    for sign in [" && ", " || "] {
        let (automaton, _) = negated(&program, &[], 0, &chain(sign, 200_000)).expect("it is right");
        assert!(automaton.formulas.height(automaton.states.sets[0][0]) <= 1);
    }
    let numbers: Vec<String> = (0..100_000).map(|number| format!("p@L{} U p@L{}", number % 3, number % 2)).collect();
    negated(&program, &[], 0, &numbers.join(" && ")).expect("it is right");
    for text in [
        chain(" U ", 100_000),
        chain(" W ", 100_000),
        chain(" V ", 100_000),
        chain(" -> ", 100_000),
        numbers.join(" <-> "),
        format!("{}p@L0", "!".repeat(100_000)),
        format!("{}p@L0", "[]".repeat(100_000)),
        format!("{}p@L0", "(".repeat(100_000)),
    ] {
        let bad = negated(&program, &[], 0, &text).err().unwrap_or_else(|| panic!("accepted: {}", &text[..40]));
        assert_eq!(bad.message, "the property is nested too deeply");
    }
    let many: Vec<String> = (0..100_000).map(|number| format!("{number} == {}", number + 1)).collect();
    assert!(negated(&program, &[], 0, &many.join(" || ")).is_err());
}
