//! Construction of a lasso from a strongly connected component (SCC): a path to it, and a cycle in it that is fair and
//! accepting.

use super::Lasso;
use super::deadline_events::DeadlineEvents;
use super::product::{Edge, Graph, PRODUCT_EXTRA_WORDS, ProductLocation};
use super::scc::CycleFairness;
use crate::formula::FormulaId;
use crate::reconstruct::{Continuation, append_eager_steps, try_step_to};
use crate::store::Store;
use crate::successors::SuccessorGenerator;
use rustc_hash::FxHashMap;

impl Graph {
    /// A run into an SCC and a cycle in it that visits everything that makes it fair and accepting, and excuses each
    /// deadline that it passes over.
    pub(super) fn lasso<'a>(
        &self,
        generator: &mut SuccessorGenerator<'_>,
        store: &Store,
        scc: &[u32],
        keep: &dyn Fn(&Edge) -> bool,
        postponed: &dyn Fn(&Edge) -> &'a [FormulaId],
        (fairness, all_instances): (&CycleFairness, u128),
    ) -> Lasso {
        let entry = scc.iter().min().copied().expect("an SCC has a node");
        let mut run = self.path_to(entry);
        let cycle = run.len() - 1;
        // The eventualities that every edge of the cycle so far has postponed.
        let mut open: Vec<FormulaId> = self.inner(scc, keep).flat_map(postponed).copied().collect();
        open.sort_unstable();
        open.dedup();
        let mut unserved = all_instances;
        let mut events = DeadlineEvents::default();
        loop {
            let at = run[run.len() - 1];
            unserved &= fairness.unserved_in(self, at);
            let first = run.len() == cycle + 1;
            let ignored = events.passed_over & !events.excused;
            if open.is_empty() && unserved == 0 && ignored == 0 && at == entry && !first {
                break;
            }
            let wanted = |edge: &Edge| {
                if open.is_empty() && unserved == 0 && ignored == 0 {
                    return edge.to == entry;
                }
                edge.participants & unserved != 0
                    || !fairness.unserved_in(self, edge.to) & unserved != 0
                    || self.events_of(edge).excused & ignored != 0
                    || open.iter().any(|eventuality| !postponed(edge).contains(eventuality))
            };
            for edge in self.shortest_path(at, scc, keep, &wanted) {
                unserved &= !edge.participants & fairness.unserved_in(self, edge.to);
                open.retain(|eventuality| postponed(edge).contains(eventuality));
                events.passed_over |= self.events_of(edge).passed_over;
                events.excused |= self.events_of(edge).excused;
                run.push(edge.to);
            }
        }
        self.steps(generator, store, &run, cycle)
    }

    /// The run to a node at which every continuation is accepted.
    pub(super) fn prefix(&self, generator: &mut SuccessorGenerator<'_>, store: &Store, node: u32) -> Lasso {
        let run = self.path_to(node);
        let lasso = self.steps(generator, store, &run, run.len());
        let width = generator.plan.width;
        let mut state_vector = vec![0; width + PRODUCT_EXTRA_WORDS];
        store.read(self.nodes[node as usize].state, &mut state_vector);
        Lasso { cycle: None, values: generator.proposition_values(&state_vector[..width]), ..lasso }
    }

    /// The nodes from the initial one to this one, along parents.
    fn path_to(&self, node: u32) -> Vec<u32> {
        let mut path = vec![node];
        while let Some(last) = path.last().copied().filter(|last| self.parents[*last as usize] != *last) {
            path.push(self.parents[last as usize]);
        }
        path.reverse();
        path
    }

    /// The shortest path within an SCC that ends with a wanted edge.
    fn shortest_path(
        &self,
        from: u32,
        scc: &[u32],
        keep: &dyn Fn(&Edge) -> bool,
        wanted: &dyn Fn(&Edge) -> bool,
    ) -> Vec<&Edge> {
        let members: rustc_hash::FxHashSet<u32> = scc.iter().copied().collect();
        let mut reached: FxHashMap<u32, (u32, &Edge)> = FxHashMap::default();
        let mut queue = std::collections::VecDeque::from([from]);
        while let Some(node) = queue.pop_front() {
            for edge in self.edges_of(node).iter().filter(|edge| keep(edge) && members.contains(&edge.to)) {
                if wanted(edge) {
                    let mut back = vec![edge];
                    let mut at = node;
                    while at != from {
                        let (before, edge) = reached[&at];
                        back.push(edge);
                        at = before;
                    }
                    back.reverse();
                    return back;
                }
                if edge.to != from && !reached.contains_key(&edge.to) {
                    reached.insert(edge.to, (node, edge));
                    queue.push_back(edge.to);
                }
            }
        }
        unreachable!("an SCC is strongly connected and holds what makes it fair")
    }

    /// The program's steps along a sequence of nodes.
    fn steps(&self, generator: &mut SuccessorGenerator<'_>, store: &Store, run: &[u32], cycle: usize) -> Lasso {
        let width = generator.plan.width;
        let mut state_vector = vec![0; width + PRODUCT_EXTRA_WORDS];
        let mut wanted = vec![0; width + PRODUCT_EXTRA_WORDS];
        let mut steps = Vec::new();
        let mut initial = self.start.clone();
        let instances = 0..generator.plan.instances as u32;
        append_eager_steps(generator, &mut initial, instances, &mut steps);
        let mut start = 0;
        for (position, pair) in run.windows(2).enumerate() {
            if position == cycle {
                start = steps.len();
            }
            store.read(self.nodes[pair[0] as usize].state, &mut state_vector);
            store.read(self.nodes[pair[1] as usize].state, &mut wanted);
            let mut from = state_vector[..width].to_vec();
            if ProductLocation::of(&state_vector[width..]).has_ended {
                // A stuttering step.
                continue;
            }
            let continuation = if ProductLocation::of(&wanted[width..]).has_ended {
                Continuation::Ends
            } else {
                Continuation::Continues
            };
            try_step_to(generator, &mut from, &mut steps, continuation, &|reached| reached == &wanted[..width]);
        }
        Lasso { cycle: Some(start.min(steps.len())), steps, starved: None, values: Vec::new() }
    }
}
