//! Cycles of a body that a batch may be made of: the ways once round a loop, shortest first. Knows edges only, not what
//! instructions do.

use super::fill::{Fill, fill};
use crate::loops::{Loop, loops};
use quaject_esp_ir::cfg::{Regions, region_entries, successors};
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::ir::{Body, Edge, Op, Terminator, TypeTable};
use std::collections::BTreeSet;

/// Blocks on one way round.
const MOST_BLOCKS: usize = 48;
/// Ways round one loop that are looked at.
const MOST_CYCLES: usize = 16;
/// Steps of the search for them, for each loop.
const MOST_STEPS: usize = 2000;

/// One way round a loop: the blocks, from its header on, and which way each is left.
#[derive(Clone, Debug)]
pub(super) struct Cycle {
    /// The blocks in order, the header first.
    pub(super) blocks: Vec<(usize, Way)>,
    /// Those of them that are loops.
    pub(super) fills: Vec<Fill>,
}

/// By which edge a block is left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// The only one.
    Only,
    /// If its condition is so.
    If(bool),
}

/// The edge by which a block is left, and its condition if it has one.
pub(super) fn edge(terminator: &Terminator, way: Way) -> Option<&Edge> {
    match (terminator, way) {
        (Terminator::Jump(edge), Way::Only) => Some(edge),
        (Terminator::Branch { condition: _, then, otherwise: _ }, Way::If(true)) => Some(then),
        (Terminator::Branch { condition: _, then: _, otherwise }, Way::If(false)) => Some(otherwise),
        _ => None,
    }
}

/// The loops of a body.
pub(super) struct Loops {
    /// Per loop: its header, and which blocks are in it.
    pub(super) loops: Vec<(usize, Vec<bool>)>,
    /// Those that a cycle may go round, as they only fill.
    pub(super) fills: Vec<Fill>,
}

impl Loops {
    /// Those whose header dominates them, outside of regions, in order of text.
    pub(super) fn new(body: &Body, types: &TypeTable, dominators: &Dominators) -> Loops {
        let inner = in_regions(body);
        let natural = loops(body, dominators).into_iter().filter(|natural| !inner[natural.header]);
        let loops: Vec<_> = natural.map(|Loop { header, inside, .. }| (header, inside)).collect();
        let fills = loops.iter().filter_map(|(header, _)| fill(body, types, *header)).collect();
        Loops { loops, fills }
    }

    /// Whether this way out of a block leads off the cycle to stores that are done again and again.
    pub(super) fn lead_to_inner(&self, body: &Body, cycle: &Cycle, block: usize, way: Way) -> bool {
        let header = cycle.blocks[0].0;
        let Some((_, inside)) = self.loops.iter().find(|(other, _)| *other == header) else { return false };
        let Some(edge) = edge(&body.blocks[block].terminator, way) else { return false };
        let is_off = |block: usize| inside[block] && cycle.blocks.iter().all(|(other, _)| *other != block);
        let reached = |from: Vec<usize>| {
            let mut seen = BTreeSet::new();
            let mut work: Vec<usize> = from.into_iter().filter(|block| is_off(*block)).collect();
            while let Some(block) = work.pop() {
                if seen.insert(block) {
                    let next = successors(&body.blocks[block].terminator, Regions::Include)
                        .into_iter()
                        .map(|next| next.0 as usize);
                    work.extend(next.filter(|block| is_off(*block)));
                }
            }
            seen
        };
        let after = |block: usize| {
            successors(&body.blocks[block].terminator, Regions::Include).iter().map(|next| next.0 as usize).collect()
        };
        let off = reached(vec![edge.to.0 as usize]);
        off.iter().any(|block| stores(body, *block) && reached(after(*block)).contains(block))
    }

    /// The ways once round a loop that go round no other that stores, but to fill; those that fill first, and then the shortest.
    pub(super) fn cycles(&self, body: &Body, number: usize) -> Vec<Cycle> {
        let (header, inside) = &self.loops[number];
        let fill = |block: usize| self.fills.iter().find(|fill| fill.block == block && fill.block != *header);
        let is_inner = |block: usize| {
            let inner = self.loops.iter().find(|(other, _)| *other == block && *other != *header);
            inner.is_some_and(|(_, inside)| (0..inside.len()).any(|block| inside[block] && stores(body, block)))
        };
        let is_open = |block: usize| inside[block] && (fill(block).is_some() || !is_inner(block));
        let ways = |block: usize| -> Vec<(Way, usize)> {
            let ways = match (&body.blocks[block].terminator, fill(block)) {
                (_, Some(fill)) => vec![fill.exit],
                (Terminator::Jump(_), None) => vec![Way::Only],
                (Terminator::Branch { .. }, None) => vec![Way::If(false), Way::If(true)],
                (_, None) => Vec::new(),
            };
            let to = |way: Way| Some((way, edge(&body.blocks[block].terminator, way)?.to.0 as usize));
            ways.into_iter().filter_map(to).collect()
        };
        let mut found = Vec::new();
        let mut way: Vec<(usize, Way)> = Vec::new();
        let mut stack = vec![(*header, ways(*header))];
        for _ in 0..MOST_STEPS {
            let Some((block, rest)) = stack.last_mut() else { break };
            let block = *block;
            let Some((by, next)) = rest.pop() else {
                stack.pop();
                way.pop();
                continue;
            };
            if next == *header {
                let mut blocks = way.clone();
                blocks.push((block, by));
                let fills = blocks.iter().filter_map(|(block, _)| fill(*block).cloned()).collect();
                found.push(Cycle { blocks, fills });
                if found.len() == MOST_CYCLES {
                    break;
                }
            } else if is_open(next) && stack.len() < MOST_BLOCKS && stack.iter().all(|(other, _)| *other != next) {
                way.push((block, by));
                stack.push((next, ways(next)));
            }
        }
        found.sort_by_key(|cycle| (cycle.fills.is_empty(), cycle.blocks.len()));
        found
    }
}

/// Whether a block stores elements.
fn stores(body: &Body, block: usize) -> bool {
    body.blocks[block].instructions.iter().any(|instruction| matches!(instruction.op, Op::Store(..)))
}

/// Which blocks are part of regions.
fn in_regions(body: &Body) -> Vec<bool> {
    let mut inner = vec![false; body.blocks.len()];
    let mut work = Vec::new();
    for block in &body.blocks {
        if let Terminator::Wait(wait) = &block.terminator {
            work.extend(region_entries(wait));
        }
    }
    while let Some(block) = work.pop() {
        if !std::mem::replace(&mut inner[block.0 as usize], true) {
            work.extend(successors(&body.blocks[block.0 as usize].terminator, Regions::Include));
        }
    }
    inner
}
