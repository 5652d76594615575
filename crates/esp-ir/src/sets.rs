//! Sets of small numbers. A [`Set`] is a persistent radix trie (cf. Okasaki, Gill, "Fast Mergeable Integer Maps",
//! 1998): copies share subtrees, so that thousands of sets, one for each block of a body, take the memory of their
//! differences. A [`DenseSet`] is a bit vector, for sets that are short-lived or dense. Knows nothing of what the
//! numbers mean.
//!
//! ```text
//!   height 2          inner [8]                 a node without numbers is absent, so that
//!                    /    |                     equal sets have equal trees
//!   height 1    inner   inner
//!                 |      |  \
//!   height 0    leaf   leaf leaf                64 numbers each, a bit per number
//! ```

use std::rc::Rc;

const CHILDREN_LOG: u32 = 3;
const CHILDREN: usize = 1 << CHILDREN_LOG;
const LEAF_LOG: u32 = 6;

/// A set of numbers. A copy costs nothing.
#[derive(Clone, Default)]
pub struct Set {
    root: Tree,
    height: u32,
}

type Tree = Option<Rc<Node>>;

#[derive(Clone, PartialEq, Eq)]
enum Node {
    Leaf(u64),
    Inner([Tree; CHILDREN]),
}

/// The index of the child of an inner node at this height that holds the number.
fn child_index(number: u32, height: u32) -> usize {
    (number >> (LEAF_LOG + (height - 1) * CHILDREN_LOG)) as usize % CHILDREN
}

/// The bit of a number in its leaf.
fn bit(number: u32) -> u64 {
    1 << (number % (1 << LEAF_LOG))
}

/// Whether a tree of this height can hold the number.
fn is_in_range(number: u32, height: u32) -> bool {
    let bits = LEAF_LOG + height * CHILDREN_LOG;
    bits >= u32::BITS || number >> bits == 0
}

impl Set {
    /// Whether a number is in the set.
    pub fn contains(&self, number: u32) -> bool {
        if !is_in_range(number, self.height) {
            return false;
        }
        let mut tree = &self.root;
        let mut height = self.height;
        loop {
            match tree.as_deref() {
                None => return false,
                Some(Node::Leaf(bits)) => return bits & bit(number) != 0,
                Some(Node::Inner(children)) => {
                    tree = &children[child_index(number, height)];
                    height -= 1;
                }
            }
        }
    }

    /// Adds a number.
    pub fn insert(&mut self, number: u32) {
        while !is_in_range(number, self.height) {
            self.raise();
        }
        // What is there already must not be copied.
        if !self.contains(number) {
            insert(&mut self.root, number, self.height);
        }
    }

    /// Removes a number if it is there.
    pub fn remove(&mut self, number: u32) {
        if self.contains(number) {
            remove(&mut self.root, number, self.height);
        }
    }

    /// Adds every number of another set.
    pub fn add_all(&mut self, other: &Set) {
        if self.root.is_none() {
            *self = other.clone();
            return;
        }
        let mut other = other.clone();
        self.level_with(&mut other);
        self.root = union(&self.root, &other.root);
    }

    /// The numbers that are not in another set.
    pub fn without(&self, other: &Set) -> Set {
        let (mut set, mut other) = (self.clone(), other.clone());
        set.level_with(&mut other);
        Set { root: difference(&set.root, &other.root), height: set.height }
    }

    /// The numbers in order.
    pub fn numbers(&self) -> Vec<u32> {
        let mut numbers = Vec::new();
        collect(&self.root, self.height, 0, &mut numbers);
        numbers
    }

    fn raise(&mut self) {
        if let Some(root) = self.root.take() {
            let mut children: [Tree; CHILDREN] = Default::default();
            children[0] = Some(root);
            self.root = Some(Rc::new(Node::Inner(children)));
        }
        self.height += 1;
    }

    fn level_with(&mut self, other: &mut Set) {
        while self.height < other.height {
            self.raise();
        }
        while other.height < self.height {
            other.raise();
        }
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Set) -> bool {
        let (mut one, mut other) = (self.clone(), other.clone());
        one.level_with(&mut other);
        // The standard library compares addresses first where the content is `Eq`.
        one.root == other.root
    }
}

fn insert(tree: &mut Tree, number: u32, height: u32) {
    let empty = || Rc::new(if height == 0 { Node::Leaf(0) } else { Node::Inner(Default::default()) });
    match Rc::make_mut(tree.get_or_insert_with(empty)) {
        Node::Leaf(bits) => *bits |= bit(number),
        Node::Inner(children) => insert(&mut children[child_index(number, height)], number, height - 1),
    }
}

fn remove(tree: &mut Tree, number: u32, height: u32) {
    let Some(node) = tree else { return };
    let is_empty = match Rc::make_mut(node) {
        Node::Leaf(bits) => {
            *bits &= !bit(number);
            *bits == 0
        }
        Node::Inner(children) => {
            remove(&mut children[child_index(number, height)], number, height - 1);
            children.iter().all(Option::is_none)
        }
    };
    if is_empty {
        *tree = None;
    }
}

fn is_same(one: &Tree, other: &Tree) -> bool {
    match (one, other) {
        (None, None) => true,
        (Some(one), Some(other)) => Rc::ptr_eq(one, other),
        (Some(_), None) | (None, Some(_)) => false,
    }
}

fn union(one: &Tree, other: &Tree) -> Tree {
    if is_same(one, other) {
        return one.clone();
    }
    let (Some(a), Some(b)) = (one, other) else { return one.clone().or_else(|| other.clone()) };
    match (&**a, &**b) {
        (Node::Leaf(left), Node::Leaf(right)) => match left | right {
            both if both == *left => one.clone(),
            both if both == *right => other.clone(),
            both => Some(Rc::new(Node::Leaf(both))),
        },
        (Node::Inner(left), Node::Inner(right)) => {
            let children: [Tree; CHILDREN] = std::array::from_fn(|child| union(&left[child], &right[child]));
            if children.iter().zip(left).all(|(new, old)| is_same(new, old)) {
                one.clone()
            } else if children.iter().zip(right).all(|(new, old)| is_same(new, old)) {
                other.clone()
            } else {
                Some(Rc::new(Node::Inner(children)))
            }
        }
        (Node::Leaf(_), Node::Inner(_)) | (Node::Inner(_), Node::Leaf(_)) => {
            unreachable!("the trees are of one height")
        }
    }
}

fn difference(one: &Tree, other: &Tree) -> Tree {
    if is_same(one, other) {
        return None;
    }
    let (Some(a), Some(b)) = (one, other) else { return one.clone() };
    match (&**a, &**b) {
        (Node::Leaf(left), Node::Leaf(right)) => match left & !right {
            0 => None,
            rest if rest == *left => one.clone(),
            rest => Some(Rc::new(Node::Leaf(rest))),
        },
        (Node::Inner(left), Node::Inner(right)) => {
            let children: [Tree; CHILDREN] = std::array::from_fn(|child| difference(&left[child], &right[child]));
            if children.iter().all(Option::is_none) {
                None
            } else if children.iter().zip(left).all(|(new, old)| is_same(new, old)) {
                one.clone()
            } else {
                Some(Rc::new(Node::Inner(children)))
            }
        }
        (Node::Leaf(_), Node::Inner(_)) | (Node::Inner(_), Node::Leaf(_)) => {
            unreachable!("the trees are of one height")
        }
    }
}

fn collect(tree: &Tree, height: u32, first: u32, numbers: &mut Vec<u32>) {
    match tree.as_deref() {
        None => {}
        Some(Node::Leaf(bits)) => {
            let mut rest = *bits;
            while rest != 0 {
                numbers.push(first + rest.trailing_zeros());
                rest &= rest - 1;
            }
        }
        Some(Node::Inner(children)) => {
            for (index, child) in (0..).zip(children) {
                let step = index << (LEAF_LOG + (height - 1) * CHILDREN_LOG);
                collect(child, height - 1, first + step, numbers);
            }
        }
    }
}

/// A set of numbers below a bound that is fixed when the set is made. A copy costs a bit per number.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub struct DenseSet(Vec<u64>);

impl DenseSet {
    /// The empty set of numbers below `bound`.
    pub fn new(bound: usize) -> DenseSet {
        DenseSet(vec![0; bound.div_ceil(64)])
    }

    /// Whether a number is in the set.
    pub fn contains(&self, number: usize) -> bool {
        self.0[number / 64] >> (number % 64) & 1 == 1
    }

    /// Adds a number.
    pub fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    /// Removes a number if it is there.
    pub fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    /// Adds every number of another set with the same bound.
    pub fn add_all(&mut self, other: &DenseSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(own, other)| *own |= other);
    }

    /// Whether it shares a number with another set with the same bound.
    pub fn intersects(&self, other: &DenseSet) -> bool {
        self.0.iter().zip(&other.0).any(|(own, other)| own & other != 0)
    }

    /// The numbers in order.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(index, word)| {
            let mut rest = *word;
            std::iter::from_fn(move || {
                let bit = rest.trailing_zeros();
                (bit < 64).then(|| {
                    rest &= rest - 1;
                    index * 64 + bit as usize
                })
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{DenseSet, Set};
    use quaject_test_support::Random;
    use std::collections::BTreeSet;

    fn set(numbers: &[u32]) -> Set {
        let mut set = Set::default();
        numbers.iter().for_each(|number| set.insert(*number));
        set
    }

    /// Small numbers, and some on either side of what a tree of each height holds.
    fn numbers(seed: u64) -> Vec<u32> {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        (0..random.index(40))
            .map(|_| {
                let bound = random.pick(&[3, 64, 66, 512, 600, 5000, u32::MAX]);
                random.below(u64::from(bound)) as u32
            })
            .collect()
    }

    #[test]
    fn sets_do_what_the_standard_ones_do() {
        for seed in 0..2000 {
            let (one, other) = (numbers(seed), numbers(seed + 10_000));
            let (a, b) = (set(&one), set(&other));
            let model = |numbers: &[u32]| numbers.iter().copied().collect::<BTreeSet<u32>>();
            let (x, y) = (model(&one), model(&other));
            assert_eq!(a.numbers(), x.iter().copied().collect::<Vec<_>>());
            let mut both = a.clone();
            both.add_all(&b);
            assert_eq!(both.numbers(), x.union(&y).copied().collect::<Vec<_>>());
            assert_eq!(a.without(&b).numbers(), x.difference(&y).copied().collect::<Vec<_>>());
            assert_eq!(a == b, x == y);
            assert!(a == set(&one.iter().rev().copied().collect::<Vec<_>>()), "equal whatever the order");
            let mut less = both.clone();
            other.iter().for_each(|number| less.remove(*number));
            assert!(less == a.without(&b), "what was added can be removed");
            assert!(other.iter().all(|number| both.contains(*number) && !less.contains(*number)));
        }
    }

    #[test]
    fn dense_sets_do_what_the_standard_ones_do() {
        for seed in 0..2000 {
            let below = |numbers: Vec<u32>| numbers.into_iter().map(|number| number as usize % 200).collect::<Vec<_>>();
            let (one, other) = (below(numbers(seed)), below(numbers(seed + 10_000)));
            let set = |numbers: &[usize]| {
                let mut set = DenseSet::new(200);
                numbers.iter().for_each(|number| set.insert(*number));
                set
            };
            let (a, b) = (set(&one), set(&other));
            let model = |numbers: &[usize]| numbers.iter().copied().collect::<BTreeSet<usize>>();
            let (x, y) = (model(&one), model(&other));
            assert!(a.numbers().eq(x.iter().copied()));
            assert_eq!(a.intersects(&b), !x.is_disjoint(&y));
            let mut both = a.clone();
            both.add_all(&b);
            assert!(both.numbers().eq(x.union(&y).copied()));
            other.iter().for_each(|number| both.remove(*number));
            assert!(both.numbers().eq(x.difference(&y).copied()));
            assert!(other.iter().all(|number| !both.contains(*number)));
        }
    }

    #[test]
    fn the_largest_number_is_in_range() {
        let mut set = set(&[u32::MAX]);
        assert_eq!(set.numbers(), [u32::MAX]);
        set.remove(u32::MAX);
        assert!(set == Set::default());
    }
}
