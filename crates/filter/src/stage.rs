//! Stages and chunks: the sequence that a classification tries, as readers see it, and the interpreter that is used
//! where there is no generated code.

use crate::bpf::Program;
use crate::chunk_code::ChunkCode;
use crate::group::{GroupData, members_at};
use crate::packet::Packet;
use crate::ranges::Ranges;
use crate::types::Match;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A program that could not be lifted.
#[derive(Debug)]
pub(crate) struct ProgramFilter {
    pub(crate) program: Program,
    /// The rank of its filter; zero once that is removed.
    pub(crate) rank: AtomicU64,
}

/// A set of filters that is searched as a unit for the best rank of a packet.
#[derive(Clone, Debug)]
pub(crate) enum Stage {
    /// Filters of one shape.
    Group(Arc<GroupData>),
    /// One filter.
    Program(Arc<ProgramFilter>),
    /// Filters that differ in ranges and prefixes.
    Ranges(Arc<Ranges>),
}

/// Memory for the interpreter.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    bases: Vec<u64>,
    key: Vec<u64>,
}

impl Stage {
    /// Visits the ranks of its filters that match: those of a list in order, or only the best one if `wanted` says so;
    /// those of ranges in any order.
    ///
    /// # Safety
    /// The caller is pinned, so that lists are not reclaimed.
    pub(crate) unsafe fn ranks(
        &self,
        packet: Packet<'_>,
        scratch: &mut Scratch,
        wanted: Wanted,
        found: &mut impl FnMut(u64),
    ) {
        let data = match self {
            Stage::Program(filter) => {
                // Pairs with the release of the writer that removes the filter.
                let rank = filter.rank.load(Ordering::Acquire);
                if rank != 0 && filter.program.run(packet) != 0 {
                    found(rank);
                }
                return;
            }
            Stage::Ranges(ranges) => {
                ranges.ranks(packet, found);
                return;
            }
            Stage::Group(data) => data,
        };
        let Scratch { bases, key } = scratch;
        if data.layout.key_in(packet, bases, key).is_none() {
            return;
        }
        let Some((slot, head)) = data.table.find(key) else { return };
        let lists = data.layout.has_lists();
        let list = if lists { head } else { data.table.match_list(slot) };
        if list == 0 || !lists && wanted == Wanted::Best {
            found(head);
            return;
        }
        let checks = data.layout.listed.iter().filter(|listed| **listed).count();
        // SAFETY: the list was published for this table, and the caller is pinned.
        for (rank, spans) in unsafe { members_at(list, checks) } {
            if data.layout.passes(packet, bases, &spans) {
                found(rank);
                if wanted == Wanted::Best {
                    return;
                }
            }
        }
    }
}

/// Which ranks are wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wanted {
    Best,
    All,
}

/// Stages whose code is written together.
#[derive(Debug)]
pub(crate) struct Chunk {
    pub(crate) stages: Vec<Stage>,
    /// By stage: an upper bound of the ranks of all later stages and chunks.
    pub(crate) later: Box<[AtomicU64]>,
    /// An upper bound of the ranks of all later chunks.
    pub(crate) after: AtomicU64,
    pub(crate) code: Option<ChunkCode>,
}

impl Chunk {
    /// The best rank, given the best so far.
    ///
    /// # Safety
    /// The caller is pinned.
    #[inline]
    pub(crate) unsafe fn classify(&self, packet: Packet<'_>, best: u64) -> u64 {
        if let Some(rank) = self.tree().and_then(|ranges| ranges.best(packet)) {
            return best.max(rank);
        }
        // SAFETY: the caller is pinned.
        unsafe { self.classify_by_stages(packet, best) }
    }

    /// The stage of ranges, if it is the only stage of the chunk and has a tree.
    #[inline]
    pub(crate) fn tree(&self) -> Option<&Ranges> {
        match &self.stages[..] {
            [Stage::Ranges(ranges)] if ranges.tree.is_some() => Some(ranges),
            _ => None,
        }
    }

    /// Raises the best rank of each packet; packets whose rank has reached `enough` are skipped.
    ///
    /// # Safety
    /// The caller is pinned.
    pub(crate) unsafe fn classify_batch(&self, packets: &[Packet<'_>], best: &mut [Match], enough: u64) {
        let Some(ranges) = self.tree() else {
            for (packet, best) in packets.iter().zip(best).filter(|(_, best)| best.0 < enough) {
                // SAFETY: the caller is pinned.
                best.0 = unsafe { self.classify_by_stages(*packet, best.0) };
            }
            return;
        };
        ranges.best_of(packets, best, |at, best| {
            if best.0 < enough {
                // SAFETY: the caller is pinned.
                best.0 = unsafe { self.classify_by_stages(packets[at], best.0) };
            }
        });
    }

    /// The best rank without a tree.
    ///
    /// # Safety
    /// The caller is pinned.
    #[inline]
    unsafe fn classify_by_stages(&self, packet: Packet<'_>, best: u64) -> u64 {
        if let Some(code) = &self.code {
            // SAFETY: the caller is pinned.
            return unsafe { code.classify(packet, best) };
        }
        // SAFETY: the caller is pinned.
        unsafe { self.interpret(packet, best) }
    }

    /// The best rank by the interpreter.
    ///
    /// # Safety
    /// The caller is pinned.
    #[cold]
    unsafe fn interpret(&self, packet: Packet<'_>, mut best: u64) -> u64 {
        let mut scratch = Scratch::default();
        for (stage, later) in self.stages.iter().zip(&self.later) {
            // SAFETY: the caller is pinned.
            unsafe { stage.ranks(packet, &mut scratch, Wanted::Best, &mut |rank| best = best.max(rank)) };
            // Raised before better ranks are published.
            if best != 0 && best >= later.load(Ordering::Acquire) {
                break;
            }
        }
        best
    }
}

/// A version of a classifier, as readers see it; replaced as a unit.
#[derive(Debug, Default)]
pub(crate) struct Snapshot {
    pub(crate) chunks: Vec<Arc<Chunk>>,
}

impl Snapshot {
    /// The code of the complete classification, or null.
    pub(crate) fn entry(&self) -> *mut () {
        if let [chunk] = &self.chunks[..]
            && let Some(code) = &chunk.code
            && chunk.tree().is_none()
        {
            return code.entry();
        }
        std::ptr::null_mut()
    }
}
