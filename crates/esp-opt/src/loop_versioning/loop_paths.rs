//! The paths once through a loop body, as candidates for unrolling, shortest first. Knows edges, not instructions.

use super::memset_idiom::{MemsetLoop, memset_loop};
use quaject_esp_ir::cfg::{Regions, region_entries, successors};
use quaject_esp_ir::dominators::Dominators;
use quaject_esp_ir::ir::{Body, Edge, Op, Terminator, TypeTable};
use quaject_esp_ir::loops::{Loop, loops};
use std::collections::BTreeSet;

/// The maximal number of blocks on one path.
const MAX_BLOCKS: usize = 48;
/// The maximal number of paths of one loop that are considered.
const MAX_PATHS: usize = 16;
/// The maximal number of steps of the search for the paths of one loop.
const MAX_STEPS: usize = 2000;

/// A path once through a loop: its blocks from the header on, and the edge by which each is left.
#[derive(Clone, Debug)]
pub(super) struct LoopPath {
    /// The blocks in order, the header first.
    pub(super) blocks: Vec<(usize, EdgeChoice)>,
    /// Those of them that are memset loops.
    pub(super) memset_loops: Vec<MemsetLoop>,
}

/// The edge by which a path leaves a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum EdgeChoice {
    /// Its only edge.
    Only,
    /// The edge taken if its condition has this value.
    If(bool),
}

/// The chosen edge of a terminator.
pub(super) fn chosen_edge(terminator: &Terminator, choice: EdgeChoice) -> Option<&Edge> {
    match (terminator, choice) {
        (Terminator::Jump(edge), EdgeChoice::Only) => Some(edge),
        (Terminator::Branch { condition: _, then, otherwise: _ }, EdgeChoice::If(true)) => Some(then),
        (Terminator::Branch { condition: _, then: _, otherwise }, EdgeChoice::If(false)) => Some(otherwise),
        _ => None,
    }
}

/// The loops of a body.
pub(super) struct Loops {
    /// Per loop: its header, and per block whether it is inside.
    pub(super) loops: Vec<(usize, Vec<bool>)>,
    /// The memset loops, which a path may contain.
    pub(super) memset_loops: Vec<MemsetLoop>,
}

impl Loops {
    /// The natural loops outside of regions, in source order.
    pub(super) fn new(body: &Body, types: &TypeTable, dominators: &Dominators) -> Loops {
        let inner = in_regions(body);
        let natural = loops(body, dominators).into_iter().filter(|natural| !inner[natural.header]);
        let loops: Vec<_> = natural.map(|Loop { header, inside, .. }| (header, inside)).collect();
        let memset_loops = loops.iter().filter_map(|(header, _)| memset_loop(body, types, *header)).collect();
        Loops { loops, memset_loops }
    }

    /// Whether this edge out of a block leads off the path to an inner loop with stores.
    pub(super) fn leads_to_inner_loop(&self, body: &Body, path: &LoopPath, block: usize, choice: EdgeChoice) -> bool {
        let header = path.blocks[0].0;
        let Some((_, inside)) = self.loops.iter().find(|(other, _)| *other == header) else { return false };
        let Some(edge) = chosen_edge(&body.blocks[block].terminator, choice) else { return false };
        let is_off = |block: usize| inside[block] && path.blocks.iter().all(|(other, _)| *other != block);
        let reached = |from: Vec<usize>| {
            let mut visited = BTreeSet::new();
            let mut worklist: Vec<usize> = from.into_iter().filter(|block| is_off(*block)).collect();
            while let Some(block) = worklist.pop() {
                if visited.insert(block) {
                    let next = successors(&body.blocks[block].terminator, Regions::Include)
                        .into_iter()
                        .map(|next| next.0 as usize);
                    worklist.extend(next.filter(|block| is_off(*block)));
                }
            }
            visited
        };
        let after = |block: usize| {
            successors(&body.blocks[block].terminator, Regions::Include).iter().map(|next| next.0 as usize).collect()
        };
        let off = reached(vec![edge.to.0 as usize]);
        off.iter().any(|block| has_store(body, *block) && reached(after(*block)).contains(block))
    }

    /// The paths once through a loop that contain no other loop with stores but memset loops; those with memset loops
    /// first, then the shortest.
    pub(super) fn paths(&self, body: &Body, number: usize) -> Vec<LoopPath> {
        let (header, inside) = &self.loops[number];
        let memset =
            |block: usize| self.memset_loops.iter().find(|memset| memset.block == block && memset.block != *header);
        let is_inner = |block: usize| {
            let inner = self.loops.iter().find(|(other, _)| *other == block && *other != *header);
            inner.is_some_and(|(_, inside)| (0..inside.len()).any(|block| inside[block] && has_store(body, block)))
        };
        let is_open = |block: usize| inside[block] && (memset(block).is_some() || !is_inner(block));
        let choices = |block: usize| -> Vec<(EdgeChoice, usize)> {
            let choices = match (&body.blocks[block].terminator, memset(block)) {
                // A memset loop is left where its condition is false.
                (_, Some(_)) => vec![EdgeChoice::If(false)],
                (Terminator::Jump(_), None) => vec![EdgeChoice::Only],
                (Terminator::Branch { .. }, None) => vec![EdgeChoice::If(false), EdgeChoice::If(true)],
                (_, None) => Vec::new(),
            };
            let to =
                |choice: EdgeChoice| Some((choice, chosen_edge(&body.blocks[block].terminator, choice)?.to.0 as usize));
            choices.into_iter().filter_map(to).collect()
        };
        let mut found = Vec::new();
        let mut prefix: Vec<(usize, EdgeChoice)> = Vec::new();
        let mut stack = vec![(*header, choices(*header))];
        for _ in 0..MAX_STEPS {
            let Some((block, untried)) = stack.last_mut() else { break };
            let block = *block;
            let Some((choice, next)) = untried.pop() else {
                stack.pop();
                prefix.pop();
                continue;
            };
            if next == *header {
                let mut blocks = prefix.clone();
                blocks.push((block, choice));
                let memset_loops = blocks.iter().filter_map(|(block, _)| memset(*block).cloned()).collect();
                found.push(LoopPath { blocks, memset_loops });
                if found.len() == MAX_PATHS {
                    break;
                }
            } else if is_open(next) && stack.len() < MAX_BLOCKS && stack.iter().all(|(other, _)| *other != next) {
                prefix.push((block, choice));
                stack.push((next, choices(next)));
            }
        }
        found.sort_by_key(|path| (path.memset_loops.is_empty(), path.blocks.len()));
        found
    }
}

/// Whether a block stores elements.
fn has_store(body: &Body, block: usize) -> bool {
    body.blocks[block].instructions.iter().any(|instruction| matches!(instruction.op, Op::Store(..)))
}

/// Per block: whether it is part of a region.
fn in_regions(body: &Body) -> Vec<bool> {
    let mut inner = vec![false; body.blocks.len()];
    let mut worklist = Vec::new();
    for block in &body.blocks {
        if let Terminator::Wait(wait) = &block.terminator {
            worklist.extend(region_entries(wait));
        }
    }
    while let Some(block) = worklist.pop() {
        if !std::mem::replace(&mut inner[block.0 as usize], true) {
            worklist.extend(successors(&body.blocks[block.0 as usize].terminator, Regions::Include));
        }
    }
    inner
}
