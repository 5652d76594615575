//! Divergence: a cycle of invisible steps of the implementation that stutters at a specification state which has no
//! cycle of invisible steps (the check is divergence-preserving).

use super::{LocatedMismatch, Mismatch, Search};
use crate::options::Limit;

impl Search<'_> {
    /// A cycle of invisible steps that corresponds to one specification state, if no cycle of invisible steps exists
    /// there.
    pub(super) fn find_divergence(&mut self) -> Result<Option<LocatedMismatch>, Limit> {
        let mut next: Vec<Vec<u32>> = vec![Vec::new(); self.nodes.len()];
        for (from, to) in std::mem::take(&mut self.invisible_edges) {
            next[from as usize].push(to);
        }
        #[derive(Clone, Copy, PartialEq, Eq)]
        enum Mark {
            New,
            Open,
            Done,
        }
        let mut marks = vec![Mark::New; next.len()];
        for root in 0..next.len() as u32 {
            if marks[root as usize] != Mark::New {
                continue;
            }
            marks[root as usize] = Mark::Open;
            let mut stack = vec![(root, 0)];
            while let Some((node, edge)) = stack.pop() {
                let Some(to) = next[node as usize].get(edge).copied() else {
                    marks[node as usize] = Mark::Done;
                    continue;
                };
                stack.push((node, edge + 1));
                match marks[to as usize] {
                    Mark::New => {
                        marks[to as usize] = Mark::Open;
                        stack.push((to, 0));
                    }
                    Mark::Open => {
                        let base_spec_state = self.nodes[to as usize].base_spec_state;
                        if !self.can_diverge(base_spec_state)? {
                            return Ok(Some((node, None, Mismatch::Divergence)));
                        }
                    }
                    Mark::Done => {}
                }
            }
        }
        Ok(None)
    }

    fn can_diverge(&mut self, base_spec_state: u32) -> Result<bool, Limit> {
        let (limits, started, nodes, node_bytes) = (&self.limits, self.started, self.nodes.len(), self.node_bytes);
        let mut check_budget = |spec: &super::SpecLts<'_>| {
            super::within(limits, started, nodes + spec.count(), node_bytes + spec.memory_bytes())
        };
        self.spec.can_diverge(base_spec_state, &mut self.alphabet, &mut check_budget)
    }
}
