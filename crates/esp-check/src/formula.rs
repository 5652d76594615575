//! LTL formulas in negation normal form, hash-consed and simplified on construction (Somenzi, Bloem: Efficient Büchi
//! automata from LTL formulae, 2000; Etessami, Holzmann: Optimizing Büchi automata, 2000). Independent of programs and
//! automata.

use rustc_hash::FxHashMap;

/// A formula by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct FormulaId(u32);

/// A formula in negation normal form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Formula {
    True,
    False,
    /// An atomic proposition by number, plain or negated.
    Literal(usize, Sign),
    /// At least two members, sorted, none a conjunction itself.
    And(Vec<FormulaId>),
    /// At least two members, sorted, none a disjunction itself.
    Or(Vec<FormulaId>),
    Until(FormulaId, FormulaId),
    Release(FormulaId, FormulaId),
}

/// Whether a literal is plain or negated.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Sign {
    Holds,
    Fails,
}

/// The operator of a conjunction or disjunction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Join {
    And,
    Or,
}

/// A formula with derived facts.
#[derive(Clone, Debug)]
struct FormulaNode {
    formula: Formula,
    height: u32,
    /// Purely eventual: it holds of a run if it holds of a suffix.
    eventual: bool,
    /// Purely universal: if it holds of a run, it holds of every suffix.
    universal: bool,
    complement: Option<FormulaId>,
    /// For a release: its conjuncts that are `Until`s or `Release`s and hold wherever it does.
    implied: Vec<FormulaId>,
}

/// All formulas of a property, subformulas first.
#[derive(Clone, Debug)]
pub(crate) struct Formulas {
    nodes: Vec<FormulaNode>,
    ids: FxHashMap<Formula, FormulaId>,
}

/// Members of longer conjunctions and disjunctions are not compared pairwise.
const MAX_COMPARED: usize = 32;
/// Steps after which an implication counts as unknown.
const MAX_IMPLICATION_STEPS: u32 = 100;

impl Formulas {
    pub(crate) const TRUE: FormulaId = FormulaId(0);
    pub(crate) const FALSE: FormulaId = FormulaId(1);

    /// The constants only.
    pub(crate) fn new() -> Formulas {
        let mut formulas = Formulas { nodes: Vec::new(), ids: FxHashMap::default() };
        formulas.intern(Formula::True);
        formulas.intern(Formula::False);
        formulas
    }

    pub(crate) fn get(&self, id: FormulaId) -> &Formula {
        &self.nodes[id.0 as usize].formula
    }

    /// The height of its tree.
    pub(crate) fn height(&self, id: FormulaId) -> u32 {
        self.node(id).height
    }

    /// What holds wherever this release does: its conjuncts that are `Until`s or `Release`s.
    pub(crate) fn implied(&self, id: FormulaId) -> &[FormulaId] {
        &self.node(id).implied
    }

    fn node(&self, id: FormulaId) -> &FormulaNode {
        &self.nodes[id.0 as usize]
    }

    fn intern(&mut self, formula: Formula) -> FormulaId {
        if let Some(known) = self.ids.get(&formula) {
            return *known;
        }
        let eventual = |parts: &[FormulaId]| parts.iter().all(|part| self.node(*part).eventual);
        let universal = |parts: &[FormulaId]| parts.iter().all(|part| self.node(*part).universal);
        let above = |parts: &[FormulaId]| 1 + parts.iter().map(|part| self.height(*part)).max().unwrap_or(0);
        let (height, eventual, universal) = match &formula {
            Formula::True | Formula::False => (0, true, true),
            Formula::Literal(..) => (0, false, false),
            Formula::And(parts) | Formula::Or(parts) => (above(parts), eventual(parts), universal(parts)),
            Formula::Until(a, b) => (above(&[*a, *b]), *a == Self::TRUE, universal(&[*a, *b])),
            Formula::Release(a, b) => (above(&[*a, *b]), eventual(&[*a, *b]), *a == Self::FALSE),
        };
        let mut implied = Vec::new();
        if let Formula::Release(_, b) = &formula {
            let conjuncts = match self.get(*b) {
                Formula::And(parts) => &parts[..],
                _ => std::slice::from_ref(b),
            };
            for part in conjuncts {
                if matches!(self.get(*part), Formula::Until(..) | Formula::Release(..)) {
                    implied.push(*part);
                    implied.extend_from_slice(self.implied(*part));
                }
            }
            implied.sort_unstable();
            implied.dedup();
        }
        let id = FormulaId(self.nodes.len() as u32);
        self.ids.insert(formula.clone(), id);
        self.nodes.push(FormulaNode { formula, height, eventual, universal, complement: None, implied });
        id
    }

    pub(crate) fn literal(&mut self, atom: usize, sign: Sign) -> FormulaId {
        self.intern(Formula::Literal(atom, sign))
    }

    pub(crate) fn and(&mut self, parts: Vec<FormulaId>) -> FormulaId {
        self.join(Join::And, parts)
    }

    pub(crate) fn or(&mut self, parts: Vec<FormulaId>) -> FormulaId {
        self.join(Join::Or, parts)
    }

    /// The negation.
    pub(crate) fn complement(&mut self, id: FormulaId) -> FormulaId {
        if let Some(known) = self.node(id).complement {
            return known;
        }
        let formula = self.get(id).clone();
        let mut all = |parts: Vec<FormulaId>| parts.into_iter().map(|part| self.complement(part)).collect();
        let complement = match formula {
            Formula::True => Self::FALSE,
            Formula::False => Self::TRUE,
            Formula::Literal(atom, Sign::Holds) => self.literal(atom, Sign::Fails),
            Formula::Literal(atom, Sign::Fails) => self.literal(atom, Sign::Holds),
            Formula::And(parts) => {
                let parts = all(parts);
                self.or(parts)
            }
            Formula::Or(parts) => {
                let parts = all(parts);
                self.and(parts)
            }
            Formula::Until(a, b) => {
                let (a, b) = (self.complement(a), self.complement(b));
                self.release(a, b)
            }
            Formula::Release(a, b) => {
                let (a, b) = (self.complement(a), self.complement(b));
                self.until(a, b)
            }
        };
        self.nodes[id.0 as usize].complement = Some(complement);
        self.nodes[complement.0 as usize].complement.get_or_insert(id);
        complement
    }

    /// `a U b`
    pub(crate) fn until(&mut self, a: FormulaId, b: FormulaId) -> FormulaId {
        if a == Self::FALSE || self.node(b).eventual || self.implies(a, b) {
            return b;
        }
        if let Formula::Until(c, _) = *self.get(b)
            && self.implies(a, c)
        {
            return b;
        }
        let not_b = self.complement(b);
        let a = if self.implies(not_b, a) { Self::TRUE } else { a };
        self.intern(Formula::Until(a, b))
    }

    /// `a V b`: b holds up to and including the moment where a holds, or forever.
    pub(crate) fn release(&mut self, a: FormulaId, b: FormulaId) -> FormulaId {
        if a == Self::TRUE || self.node(b).universal || self.implies(b, a) {
            return b;
        }
        if let Formula::Release(c, _) = *self.get(b)
            && self.implies(c, a)
        {
            return b;
        }
        let not_a = self.complement(a);
        let a = if self.implies(b, not_a) { Self::FALSE } else { a };
        self.intern(Formula::Release(a, b))
    }

    fn join(&mut self, join: Join, mut parts: Vec<FormulaId>) -> FormulaId {
        let (neutral, absorbing) = match join {
            Join::And => (Self::TRUE, Self::FALSE),
            Join::Or => (Self::FALSE, Self::TRUE),
        };
        // A merged member can be simpler than its parts, and merge again.
        loop {
            let mut flat = Vec::with_capacity(parts.len());
            for part in parts {
                match (self.get(part), join) {
                    (Formula::And(inner), Join::And) | (Formula::Or(inner), Join::Or) => flat.extend_from_slice(inner),
                    _ => flat.push(part),
                }
            }
            flat.sort_unstable();
            flat.dedup();
            flat.retain(|part| *part != neutral);
            if flat.contains(&absorbing) {
                return absorbing;
            }
            let count = flat.len();
            parts = self.merged(join, flat);
            if parts.len() == count {
                break;
            }
        }
        if parts.len() <= MAX_COMPARED {
            let mut kept: Vec<FormulaId> = Vec::new();
            for part in parts {
                let not_part = self.complement(part);
                for other in &kept {
                    let clash = match join {
                        Join::And => self.implies(*other, not_part),
                        Join::Or => self.implies(not_part, *other),
                    };
                    if clash {
                        return absorbing;
                    }
                }
                // A conjunction keeps the stronger formula, a disjunction the weaker one.
                let covers = |one: FormulaId, other: FormulaId| match join {
                    Join::And => self.implies(one, other),
                    Join::Or => self.implies(other, one),
                };
                if kept.iter().any(|other| covers(*other, part)) {
                    continue;
                }
                kept.retain(|other| !covers(part, *other));
                kept.push(part);
            }
            parts = kept;
        }
        match (&parts[..], join) {
            ([], _) => neutral,
            ([one], _) => *one,
            (_, Join::And) => self.intern(Formula::And(parts)),
            (_, Join::Or) => self.intern(Formula::Or(parts)),
        }
    }

    /// Merges members of a conjunction or disjunction:
    ///
    /// ```text
    ///   (a V b) && (a V c)  is  a V (b && c)      (a U b) || (a U c)  is  a U (b || c)
    ///   (a U c) && (b U c)  is  (a && b) U c      (a V c) || (b V c)  is  (a || b) V c
    ///   <> a && <> b  is  <> (a && b)             [] a || [] b  is  [] (a || b)
    ///     if they are purely universal              if they are purely eventual
    /// ```
    fn merged(&mut self, join: Join, parts: Vec<FormulaId>) -> Vec<FormulaId> {
        #[derive(PartialEq, Eq, Hash)]
        enum Group {
            Left(FormulaId),
            Right(FormulaId),
            Lasting,
        }
        let mut groups: FxHashMap<Group, usize> = FxHashMap::default();
        let mut members: Vec<Vec<FormulaId>> = Vec::new();
        for part in parts {
            let group = match (self.get(part), join) {
                (Formula::Until(Self::TRUE, b), Join::And) if self.node(*b).universal => Group::Lasting,
                (Formula::Release(Self::FALSE, b), Join::Or) if self.node(*b).eventual => Group::Lasting,
                (Formula::Release(a, _), Join::And) | (Formula::Until(a, _), Join::Or) => Group::Left(*a),
                (Formula::Until(_, b), Join::And) | (Formula::Release(_, b), Join::Or) => Group::Right(*b),
                _ => {
                    members.push(vec![part]);
                    continue;
                }
            };
            let count = members.len();
            match *groups.entry(group).or_insert(count) {
                new if new == count => members.push(vec![part]),
                known => members[known].push(part),
            }
        }
        let together = |formulas: &mut Formulas, parts: Vec<FormulaId>| {
            if let [one] = parts[..] {
                return one;
            }
            let sides = parts.iter().map(|part| match formulas.get(*part) {
                Formula::Until(a, b) | Formula::Release(a, b) => (*a, *b),
                _ => unreachable!("only these are put into groups"),
            });
            let (mut left, mut right): (Vec<_>, Vec<_>) = sides.unzip();
            left.dedup();
            right.dedup();
            let (left, right) = (formulas.join(join, left), formulas.join(join, right));
            match formulas.get(parts[0]) {
                Formula::Until(..) => formulas.until(left, right),
                _ => formulas.release(left, right),
            }
        };
        members.into_iter().map(|parts| together(self, parts)).collect()
    }

    /// Whether one formula syntactically implies another.
    fn implies(&self, one: FormulaId, other: FormulaId) -> bool {
        self.implies_within(one, other, &mut { MAX_IMPLICATION_STEPS })
    }

    fn implies_within(&self, one: FormulaId, other: FormulaId, steps: &mut u32) -> bool {
        if one == other || one == Self::FALSE || other == Self::TRUE {
            return true;
        }
        if *steps == 0 {
            return false;
        }
        *steps -= 1;
        let (from, to) = (self.get(one), self.get(other));
        let mut implies = |one: &FormulaId, other: &FormulaId| self.implies_within(*one, *other, steps);
        match (from, to) {
            (Formula::Or(parts), _) => return parts.iter().all(|part| implies(part, &other)),
            (_, Formula::And(parts)) => return parts.iter().all(|part| implies(&one, part)),
            (Formula::Until(a, b), Formula::Until(c, d)) | (Formula::Release(a, b), Formula::Release(c, d))
                if implies(a, c) && implies(b, d) =>
            {
                return true;
            }
            _ => {}
        }
        let weaker = match from {
            Formula::And(parts) => parts.iter().any(|part| implies(part, &other)),
            Formula::Release(_, b) => implies(b, &other),
            // b implies `other` at a later moment, and an eventual formula then holds now.
            Formula::Until(_, b) => self.node(other).eventual && implies(b, &other),
            Formula::True | Formula::False | Formula::Literal(..) | Formula::Or(_) => false,
        };
        weaker
            || match to {
                Formula::Or(parts) => parts.iter().any(|part| implies(&one, part)),
                Formula::Until(_, b) => implies(&one, b),
                // A universal formula implies b at every moment.
                Formula::Release(_, b) => self.node(one).universal && implies(&one, b),
                Formula::True | Formula::False | Formula::Literal(..) | Formula::And(_) => false,
            }
    }
}
