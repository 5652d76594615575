//! Algorithms on directed graphs that are given as successor lists. Knows no programs.

use std::collections::BTreeSet;

/// Strongly connected components of a graph, by Tarjan's algorithm without recursion. `next` holds per node those that
/// it leads to.
pub fn components(next: &[Vec<usize>]) -> Vec<BTreeSet<usize>> {
    #[derive(Clone, Copy)]
    struct Mark {
        index: usize,
        low: usize,
        on_stack: bool,
    }
    let mut marks: Vec<Option<Mark>> = vec![None; next.len()];
    let (mut stack, mut found, mut count) = (Vec::new(), Vec::new(), 0);
    for root in 0..next.len() {
        if marks[root].is_some() {
            continue;
        }
        let mut calls: Vec<(usize, usize)> = vec![(root, 0)];
        while let Some((node, edge)) = calls.pop() {
            if edge == 0 {
                marks[node] = Some(Mark { index: count, low: count, on_stack: true });
                count += 1;
                stack.push(node);
            }
            let low = |marks: &[Option<Mark>], node: usize| marks[node].expect("visited").low;
            if let Some(child) = edge.checked_sub(1).map(|edge| next[node][edge]) {
                let least = low(&marks, node).min(low(&marks, child));
                if marks[child].expect("visited").on_stack {
                    marks[node].as_mut().expect("visited").low = least;
                }
            }
            if let Some(child) = next[node].get(edge) {
                calls.push((node, edge + 1));
                if marks[*child].is_none() {
                    calls.push((*child, 0));
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
