//! Strongly connected components (SCCs) of the product (Tarjan, "Depth-First Search and Linear Graph Algorithms",
//! 1972), and whether they are fair and accepting.

use super::product::{Edge, Graph, ProductBuilder};
use crate::formula::FormulaId;
use rustc_hash::FxHashMap;

impl Graph {
    /// Strongly connected components with at least one edge, in the graph of the edges to keep.
    pub(super) fn strongly_connected_components(&self, keep: &dyn Fn(&Edge) -> bool) -> Vec<Vec<u32>> {
        self.components_among(0..self.nodes.len() as u32, |node| Some(node as usize), keep)
    }

    /// As [`Self::strongly_connected_components`], in a part of the graph.
    pub(super) fn components_within(&self, part: &[u32], keep: &dyn Fn(&Edge) -> bool) -> Vec<Vec<u32>> {
        let positions: FxHashMap<u32, usize> =
            part.iter().enumerate().map(|(position, node)| (*node, position)).collect();
        self.components_among(part.iter().copied(), |node| positions.get(&node).copied(), keep)
    }

    /// As [`Self::strongly_connected_components`], in the graph of these nodes, each of which has a position.
    /// `call_stack` replaces recursion: each node with the position of its next edge.
    fn components_among(
        &self,
        nodes: impl ExactSizeIterator<Item = u32>,
        position_of: impl Fn(u32) -> Option<usize>,
        keep: &dyn Fn(&Edge) -> bool,
    ) -> Vec<Vec<u32>> {
        let count = nodes.len();
        let known = |node: u32| position_of(node).expect("the stacks hold nodes of the graph");
        let mut index = vec![u32::MAX; count];
        let mut low = vec![0u32; count];
        let mut on_stack = vec![false; count];
        let (mut stack, mut call_stack, mut found) = (Vec::new(), Vec::<(u32, usize)>::new(), Vec::new());
        let mut next = 0;
        for root in nodes {
            if index[known(root)] != u32::MAX {
                continue;
            }
            call_stack.push((root, 0));
            while let Some((node, position)) = call_stack.last_mut() {
                let at = known(*node);
                if *position == 0 {
                    index[at] = next;
                    low[at] = next;
                    next += 1;
                    stack.push(*node);
                    on_stack[at] = true;
                }
                let edge = self.edges_of(*node).get(*position);
                *position += 1;
                match edge {
                    Some(edge) if !keep(edge) => {}
                    Some(edge) => {
                        let Some(to) = position_of(edge.to) else { continue };
                        if index[to] == u32::MAX {
                            call_stack.push((edge.to, 0));
                        } else if on_stack[to] {
                            low[at] = low[at].min(index[to]);
                        }
                    }
                    None => {
                        call_stack.pop();
                        if let Some((above, _)) = call_stack.last() {
                            let above = known(*above);
                            low[above] = low[above].min(low[at]);
                        }
                        if low[at] == index[at] {
                            let start = stack.iter().rposition(|other| known(*other) == at);
                            let scc = stack.split_off(start.expect("a root is on the stack"));
                            scc.iter().for_each(|member| on_stack[known(*member)] = false);
                            let loops = |node: &u32| self.edges_of(*node).iter().any(|e| e.to == *node && keep(e));
                            if scc.len() > 1 || scc.iter().any(loops) {
                                found.push(scc);
                            }
                        }
                    }
                }
            }
        }
        // Nearest to the initial state first.
        found.sort_by_key(|scc| scc.iter().min().copied());
        found
    }

    /// The edges to keep within an SCC.
    pub(super) fn inner<'g>(
        &'g self,
        scc: &'g [u32],
        keep: &'g dyn Fn(&Edge) -> bool,
    ) -> impl Iterator<Item = &'g Edge> + 'g {
        let members: rustc_hash::FxHashSet<u32> = scc.iter().copied().collect();
        let edges = scc.iter().flat_map(|node| self.edges_of(*node));
        edges.filter(move |edge| members.contains(&edge.to) && keep(edge))
    }

    /// The instances that take a step in the SCC.
    fn acting(&self, scc: &[u32], keep: &dyn Fn(&Edge) -> bool) -> u128 {
        self.inner(scc, keep).fold(0, |all, edge| all | edge.participants)
    }

    /// Whether no eventuality of the automaton is postponed by every edge of the SCC.
    pub(super) fn is_accepted<'a>(
        &self,
        scc: &[u32],
        keep: &dyn Fn(&Edge) -> bool,
        postponed: &dyn Fn(&Edge) -> &'a [FormulaId],
    ) -> bool {
        let mut edges = self.inner(scc, keep);
        let Some(first) = edges.next() else { return false };
        let mut open = postponed(first).to_vec();
        edges.all(|edge| {
            open.retain(|eventuality| postponed(edge).contains(eventuality));
            !open.is_empty()
        });
        open.is_empty()
    }
}

/// What makes the runs of an SCC fair.
#[derive(Default)]
pub(super) struct CycleFairness {
    /// The instances that have to act in a cycle; the others may be disabled in one of its nodes.
    pub(super) must_act: u128,
    /// By node: the instances that stay enabled there although those that have to act run their local code. None: what
    /// the node records.
    enabled: Option<FxHashMap<u32, u128>>,
}

impl CycleFairness {
    /// The instances that are not served by a visit of a node.
    pub(super) fn unserved_in(&self, graph: &Graph, node: u32) -> u128 {
        let enabled = match &self.enabled {
            Some(enabled) => enabled[&node],
            None => graph.nodes[node as usize].fair_enabled,
        };
        enabled | self.must_act
    }
}

impl ProductBuilder<'_, '_> {
    /// Whether the runs that visit all of an SCC are fair: each instance takes a step in it or is disabled in one of
    /// its states.
    ///
    /// An eager local step is part of the communication before it. In the run of single steps that it stands for, it
    /// may come as late as the next communication of its instance, since it commutes with the steps of others. So there
    /// are states in which all eager instances that act in the SCC run their local code, and none of them communicates:
    /// an instance is disabled in such a state of a node if each of its enabled transitions has one of them as a
    /// partner.
    pub(super) fn cycle_fairness(
        &mut self,
        scc: &[u32],
        keep: &dyn Fn(&Edge) -> bool,
        all_instances: u128,
    ) -> Option<CycleFairness> {
        let acting = self.graph.acting(scc, keep);
        let disabled = scc.iter().fold(0, |all, node| all | !self.graph.nodes[*node as usize].fair_enabled);
        if (acting | disabled) & all_instances == all_instances {
            return Some(CycleFairness::default());
        }
        let running = acting & self.eager;
        if running == 0 {
            return None;
        }
        let mut always_enabled = all_instances & !acting;
        let mut enabled = FxHashMap::default();
        for node in scc {
            let own = self.fair_enabled_in(*node, running);
            always_enabled &= own;
            enabled.insert(*node, own);
        }
        let fairness = CycleFairness { must_act: acting & all_instances, enabled: Some(enabled) };
        (always_enabled == 0).then_some(fairness)
    }
}
