//! From a formula to an automaton on infinite runs that accepts those which fulfil it (Gerth, Peled, Vardi, Wolper:
//! Simple on-the-fly automatic verification of linear temporal logic, 1995). A state says what must hold where it is
//! entered; a run is accepted if it is in each of the accepting sets again and again.

use crate::ltl::{Formula, Sign};
use std::collections::BTreeSet;

/// The automaton. State 0 is before the first state of a run.
#[derive(Debug)]
pub(crate) struct Automaton {
    pub(crate) states: Vec<AutomatonState>,
    /// How many accepting sets there are.
    pub(crate) sets: usize,
}

/// One state.
#[derive(Debug, Default)]
pub(crate) struct AutomatonState {
    /// Atoms that must hold, atoms that must not.
    holds: u64,
    fails: u64,
    /// The accepting sets it belongs to.
    pub(crate) accepts: u64,
    pub(crate) next: Vec<u32>,
}

impl AutomatonState {
    /// Whether it can be entered where these atoms hold.
    pub(crate) fn allows(&self, atoms: u64) -> bool {
        self.holds & !atoms == 0 && self.fails & atoms == 0
    }
}

#[derive(Clone, PartialEq, Eq)]
struct Node {
    incoming: BTreeSet<usize>,
    now: BTreeSet<Formula>,
    old: BTreeSet<Formula>,
    next: BTreeSet<Formula>,
}

impl Automaton {
    /// The automaton of a formula over at most 64 atoms.
    pub(crate) fn new(formula: &Formula) -> Automaton {
        let first =
            Node { incoming: [0].into(), now: [formula.clone()].into(), old: BTreeSet::new(), next: BTreeSet::new() };
        let mut nodes: Vec<Node> = Vec::new();
        let mut open = vec![first];
        while let Some(node) = open.pop() {
            expand(node, &mut nodes, &mut open);
        }
        let mut untils = Vec::new();
        collect_untils(formula, &mut untils);
        let mut states = vec![AutomatonState::default()];
        states.extend(nodes.iter().map(|node| state(node, &untils)));
        for (index, node) in nodes.iter().enumerate() {
            for from in &node.incoming {
                states[*from].next.push(index as u32 + 1);
            }
        }
        Automaton { states, sets: untils.len() }
    }
}

fn state(node: &Node, untils: &[Formula]) -> AutomatonState {
    let mut state = AutomatonState::default();
    for formula in &node.old {
        if let Formula::Literal(atom, sign) = formula {
            match sign {
                Sign::Holds => state.holds |= 1 << atom,
                Sign::Fails => state.fails |= 1 << atom,
            }
        }
    }
    for (number, until) in untils.iter().enumerate() {
        if let Formula::Until(_, goal) = until
            && (node.old.contains(&**goal) || **goal == Formula::True || !node.old.contains(until))
        {
            state.accepts |= 1 << number;
        }
    }
    state
}

fn collect_untils(formula: &Formula, untils: &mut Vec<Formula>) {
    match formula {
        Formula::True | Formula::False | Formula::Literal(..) => {}
        Formula::And(a, b) | Formula::Or(a, b) | Formula::Release(a, b) | Formula::Until(a, b) => {
            if matches!(formula, Formula::Until(..)) && !untils.contains(formula) {
                untils.push(formula.clone());
            }
            collect_untils(a, untils);
            collect_untils(b, untils);
        }
    }
}

fn expand(mut node: Node, nodes: &mut Vec<Node>, open: &mut Vec<Node>) {
    let Some(formula) = node.now.pop_first() else {
        if let Some(known) = nodes.iter_mut().find(|known| known.old == node.old && known.next == node.next) {
            known.incoming.append(&mut node.incoming);
            return;
        }
        nodes.push(node.clone());
        let incoming = [nodes.len()].into();
        open.push(Node { incoming, now: node.next, old: BTreeSet::new(), next: BTreeSet::new() });
        return;
    };
    let want = |node: &mut Node, wanted: &Formula| {
        if !node.old.contains(wanted) {
            node.now.insert(wanted.clone());
        }
    };
    match &formula {
        Formula::False => {}
        Formula::True => open.push(node),
        Formula::Literal(atom, sign) => {
            let opposite = match sign {
                Sign::Holds => Sign::Fails,
                Sign::Fails => Sign::Holds,
            };
            if !node.old.contains(&Formula::Literal(*atom, opposite)) {
                node.old.insert(formula.clone());
                open.push(node);
            }
        }
        Formula::And(a, b) => {
            node.old.insert(formula.clone());
            want(&mut node, a);
            want(&mut node, b);
            open.push(node);
        }
        Formula::Or(a, b) => {
            node.old.insert(formula.clone());
            let mut other = node.clone();
            want(&mut node, a);
            want(&mut other, b);
            open.extend([node, other]);
        }
        Formula::Until(a, b) => {
            node.old.insert(formula.clone());
            let mut now = node.clone();
            want(&mut now, b);
            want(&mut node, a);
            node.next.insert(formula.clone());
            open.extend([node, now]);
        }
        Formula::Release(a, b) => {
            node.old.insert(formula.clone());
            let mut both = node.clone();
            want(&mut both, a);
            want(&mut both, b);
            want(&mut node, b);
            node.next.insert(formula.clone());
            open.extend([node, both]);
        }
    }
}
