//! Cycles of the product: which nodes reach each other. Knows nodes and passages, not what they mean.

use super::{Node, Passage};
use std::collections::BTreeSet;

/// Strongly connected components of the graph of these passages, by Tarjan's algorithm without recursion.
pub(super) fn components(nodes: &[Node], counts: &dyn Fn(&Passage) -> bool) -> Vec<BTreeSet<usize>> {
    #[derive(Clone, Copy)]
    struct Mark {
        index: usize,
        low: usize,
        on_stack: bool,
    }
    let mut marks: Vec<Option<Mark>> = vec![None; nodes.len()];
    let (mut stack, mut found, mut next) = (Vec::new(), Vec::new(), 0);
    for root in 0..nodes.len() {
        if marks[root].is_some() {
            continue;
        }
        let mut calls: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some((node, edge)) = calls.pop() {
            if edge == 0 {
                marks[node] = Some(Mark { index: next, low: next, on_stack: true });
                next += 1;
                stack.push(node);
            }
            let low = |marks: &[Option<Mark>], node: usize| marks[node].expect("visited").low;
            if let Some(passage) = edge.checked_sub(1).map(|edge| &nodes[node].edges[edge])
                && counts(passage)
            {
                let child = passage.to;
                let least = low(&marks, node).min(low(&marks, child));
                if marks[child].expect("visited").on_stack {
                    marks[node].as_mut().expect("visited").low = least;
                }
            }
            if let Some(passage) = nodes[node].edges.get(edge) {
                calls.push((node, edge + 1));
                if marks[passage.to].is_none() && counts(passage) {
                    calls.push((passage.to, 0));
                }
                continue;
            }
            let mark = marks[node].expect("visited");
            if mark.low == mark.index {
                let mut component = BTreeSet::new();
                while let Some(member) = stack.pop() {
                    marks[member].as_mut().expect("visited").on_stack = false;
                    component.insert(member);
                    if member == node {
                        break;
                    }
                }
                found.push(component);
            }
        }
    }
    found
}
