//! The writer of a classifier: the location of each filter, and the publication of changes to readers. Behind a lock
//! that no reader takes.

use crate::bpf::Program;
use crate::chunk_code::ChunkCode;
use crate::epoch::Limbo;
use crate::error::Error;
use crate::generate::Generator;
use crate::group::{Group, RetiredLists, Update};
use crate::ir::{Conjunction, Filter, Subject};
use crate::published::Published;
use crate::ranges::{self, MaskedSubject, Ranges, masked_subjects};
use crate::section::{Kind, MAX_STAGES, RangeSet, Section};
use crate::shape::{Shape, Values};
use crate::stage::{Chunk, ProgramFilter, Snapshot, Stage};
use crate::types::{Engine, Id, Match, Stats};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The minimum number of new shapes that are merged into a stage of ranges and prefixes, if they read the same numbers.
const LEAST_MERGED: usize = 8;
/// The maximum number of filters of a shape that is merged; a larger shape is a group of its own.
const MAX_FILTERS_OF_SHAPE: usize = 4096;
/// The maximum number of sets of shapes that one insertion forms.
const MAX_SETS: usize = 4;

/// The location of a part of a filter.
#[derive(Clone, Copy, Debug)]
struct Location {
    section: u32,
    entry: u32,
}

#[derive(Debug)]
struct FilterRecord {
    rank: u64,
    locations: Box<[Location]>,
}

/// Retired objects, which readers may still use.
#[derive(Debug)]
enum Garbage {
    Snapshot {
        _snapshot: Box<Snapshot>,
        _graveyards: Vec<RetiredLists>,
    },
    /// A filter number: a classification may still return it.
    Id(u32),
}

/// A chunk: its sections, and the version that readers see.
#[derive(Debug, Default)]
struct ChunkPlan {
    sections: Vec<u32>,
    /// Whether no other section may join, see [`Section::closes`].
    closed: bool,
    published_chunk: Option<Arc<Chunk>>,
}

/// The filters, or parts of filters, of a new shape.
#[derive(Debug, Default)]
struct NewShape<'f> {
    /// Values and ranks.
    values: Vec<(Values, u64)>,
    /// Their conjunctions.
    conjunctions: Vec<&'f Conjunction>,
    /// The filter of each part.
    of: Vec<usize>,
}

/// Shapes that read the same few numbers.
struct ShapeSet<'f> {
    masked_subjects: BTreeSet<MaskedSubject>,
    shapes: Vec<(Shape, NewShape<'f>)>,
}

/// The filters.
#[derive(Debug)]
pub(crate) struct Writer {
    sections: Vec<Option<Section>>,
    vacant: Vec<u32>,
    by_shape: HashMap<Shape, u32>,
    /// The section that was added to last: filters of one shape usually follow each other.
    last: u32,
    records: Vec<Option<FilterRecord>>,
    ids: Vec<u32>,
    filters: usize,
    /// The number of sections that became empty since chunks were laid out.
    emptied: usize,
    plans: Vec<ChunkPlan>,
    dirty: BTreeSet<usize>,
    limbo: Limbo<Garbage>,
    generator: Generator,
}

impl Writer {
    pub(crate) fn new(engine: Engine) -> Writer {
        Writer {
            sections: Vec::new(),
            vacant: Vec::new(),
            by_shape: HashMap::new(),
            last: 0,
            records: Vec::new(),
            ids: Vec::new(),
            filters: 0,
            emptied: 0,
            plans: Vec::new(),
            dirty: BTreeSet::new(),
            limbo: Limbo::default(),
            generator: Generator::new(engine),
        }
    }

    pub(crate) fn insert(&mut self, published: &Published, filter: &Filter, priority: u32) -> Result<Id, Error> {
        check(filter)?;
        self.reclaim(published);
        let id = self.number()?;
        let rank = Match::rank(priority, id);
        let mut locations = Vec::new();
        match filter {
            Filter::Any(conjunctions) => {
                for conjunction in conjunctions {
                    let (shape, values) = Shape::of(conjunction);
                    if !values.impossible {
                        locations.push(self.add(published, shape, values, rank));
                    }
                }
            }
            Filter::Program(program) => locations.push(self.add_program(program, rank)),
        }
        self.record(id, rank, locations);
        self.publish(published);
        Ok(Id(id))
    }

    pub(crate) fn insert_all<'f>(
        &mut self,
        published: &Published,
        filters: impl Iterator<Item = (&'f Filter, u32)>,
    ) -> Result<Vec<Id>, Error> {
        let filters: Vec<(&Filter, u32)> = filters.collect();
        filters.iter().try_for_each(|(filter, _)| check(filter))?;
        if self.records.len() + filters.len() >= u32::MAX as usize {
            return Err(Error::Full);
        }
        self.reclaim(published);
        let mut ids = Vec::with_capacity(filters.len());
        let mut all_locations: Vec<Vec<Location>> = Vec::with_capacity(filters.len());
        let mut fresh: HashMap<Shape, usize> = HashMap::new();
        let mut parts: Vec<(Shape, NewShape<'f>)> = Vec::new();
        let mut last = 0;
        for (at, (filter, priority)) in filters.iter().enumerate() {
            let id = self.number()?;
            let rank = Match::rank(*priority, id);
            let mut locations = Vec::new();
            match filter {
                Filter::Any(conjunctions) => {
                    for conjunction in conjunctions {
                        let (shape, values) = Shape::of(conjunction);
                        if values.impossible {
                            continue;
                        }
                        if !self.by_shape.is_empty() && self.of_shape(&shape).is_some() {
                            locations.push(self.add(published, shape, values, rank));
                            continue;
                        }
                        // Filters of one shape usually follow each other.
                        if parts.get(last).is_none_or(|(own, _)| *own != shape) {
                            last = *fresh.entry(shape).or_insert_with_key(|shape| {
                                parts.push((shape.clone(), NewShape::default()));
                                parts.len() - 1
                            });
                        }
                        parts[last].1.values.push((values, rank));
                        parts[last].1.conjunctions.push(conjunction);
                        parts[last].1.of.push(at);
                    }
                }
                Filter::Program(program) => locations.push(self.add_program(program, rank)),
            }
            all_locations.push(locations);
            ids.push(id);
        }
        let parts = self.merge(parts, &mut all_locations);
        for (shape, NewShape { values, of, .. }) in parts {
            let (group, entries) = Group::new(&shape, &values);
            let section = self.section(Kind::Group(Box::new(group)));
            self.by_shape.insert(shape, section);
            for (at, entry) in of.into_iter().zip(entries) {
                all_locations[at].push(Location { section, entry });
            }
        }
        for ((id, (_, priority)), locations) in ids.iter().zip(&filters).zip(all_locations) {
            self.record(*id, Match::rank(*priority, *id), locations);
        }
        self.publish(published);
        Ok(ids.into_iter().map(Id).collect())
    }

    /// Forms stages of ranges from many shapes with few filters each; returns the remaining shapes.
    fn merge<'f>(
        &mut self,
        parts: Vec<(Shape, NewShape<'f>)>,
        all_locations: &mut [Vec<Location>],
    ) -> Vec<(Shape, NewShape<'f>)> {
        if parts.len() < LEAST_MERGED {
            return parts;
        }
        // Sets of shapes that read the same numbers.
        let mut sets: Vec<ShapeSet<'f>> = Vec::new();
        let mut left = Vec::new();
        for (shape, fresh) in parts {
            let own: BTreeSet<MaskedSubject> =
                fresh.conjunctions.first().map_or_else(BTreeSet::new, |own| masked_subjects(own).collect());
            let has_room = |set: &ShapeSet<'_>| set.masked_subjects.union(&own).count() <= ranges::MAX_DIMENSIONS;
            if fresh.values.len() > MAX_FILTERS_OF_SHAPE || own.len() > ranges::MAX_DIMENSIONS {
                left.push((shape, fresh));
            } else if let Some(at) = sets.iter().position(has_room) {
                sets[at].masked_subjects.extend(own);
                sets[at].shapes.push((shape, fresh));
            } else if sets.len() < MAX_SETS {
                sets.push(ShapeSet { masked_subjects: own, shapes: vec![(shape, fresh)] });
            } else {
                left.push((shape, fresh));
            }
        }
        for ShapeSet { shapes: members, .. } in sets {
            if members.len() < LEAST_MERGED {
                left.extend(members);
                continue;
            }
            let each = members.iter().flat_map(|(_, fresh)| {
                fresh
                    .conjunctions
                    .iter()
                    .zip(&fresh.values)
                    .zip(&fresh.of)
                    .map(|((own, (_, rank)), of)| (*own, *rank, *of))
            });
            let mut all: Vec<(&Conjunction, u64, usize)> = each.collect();
            // The best first, so that a classification can stop early.
            all.sort_by_key(|(_, rank, _)| std::cmp::Reverse(*rank));
            let built: Option<Vec<_>> = all
                .chunks(ranges::MAX_FILTERS)
                .map(|some| Ranges::build(&some.iter().map(|(own, rank, _)| (*own, *rank)).collect::<Vec<_>>()))
                .collect();
            let Some(built) = built else {
                left.extend(members);
                continue;
            };
            for ((ranges, entries), some) in built.into_iter().zip(all.chunks(ranges::MAX_FILTERS)) {
                let best = some.first().map_or(0, |(_, rank, _)| *rank);
                let set = RangeSet { ranges: Arc::new(ranges), members: some.len(), best };
                let section = self.section(Kind::Ranges(set));
                for (entry, (_, _, of)) in entries.into_iter().zip(some) {
                    all_locations[*of].push(Location { section, entry });
                }
            }
        }
        left
    }

    pub(crate) fn remove(&mut self, published: &Published, id: Id) -> Result<(), Error> {
        let record = self.records.get_mut(id.0 as usize).and_then(Option::take).ok_or(Error::Unknown(id.0))?;
        self.reclaim(published);
        for place in &record.locations {
            let Some(section) = &mut self.sections[place.section as usize] else { continue };
            let was_empty = section.is_empty();
            match &mut section.kind {
                Kind::Group(group) => group.remove(place.entry, record.rank, &published.epochs),
                Kind::Program(filter) => {
                    // Pairs with the acquire of readers.
                    filter.rank.store(0, Ordering::Release);
                    // The code belongs to this filter only.
                    self.dirty.insert(section.chunk);
                }
                Kind::Ranges(set) => {
                    set.ranges.remove(place.entry);
                    set.members -= 1;
                    if set.members == 0 {
                        self.dirty.insert(section.chunk);
                    }
                }
            }
            self.emptied += usize::from(section.is_empty() && !was_empty);
        }
        self.filters -= 1;
        self.limbo.push(&published.epochs, Garbage::Id(id.0));
        self.publish(published);
        Ok(())
    }

    /// Allocates a number that no reader can confuse with another filter.
    fn number(&mut self) -> Result<u32, Error> {
        if let Some(id) = self.ids.pop() {
            return Ok(id);
        }
        let id = u32::try_from(self.records.len()).ok().filter(|id| *id < u32::MAX).ok_or(Error::Full)?;
        self.records.push(None);
        Ok(id)
    }

    fn record(&mut self, id: u32, rank: u64, locations: Vec<Location>) {
        self.records[id as usize] = Some(FilterRecord { rank, locations: locations.into() });
        self.filters += 1;
    }

    /// Reclaims objects that no reader uses any more.
    fn reclaim(&mut self, published: &Published) {
        if self.limbo.is_empty() {
            return;
        }
        let oldest = published.epochs.oldest();
        while let Some(garbage) = self.limbo.pop(oldest) {
            if let Garbage::Id(id) = garbage {
                self.ids.push(id);
            }
        }
    }

    fn add(&mut self, published: &Published, shape: Shape, values: Values, rank: u64) -> Location {
        if let Some(section) = self.of_shape(&shape) {
            self.last = section;
            self.raise_bounds(section, rank);
            if let Some(Section { kind: Kind::Group(group), chunk }) = &mut self.sections[section as usize] {
                self.emptied = self.emptied.saturating_sub(usize::from(group.members() == 0));
                let (entry, change) = group.insert(&values, rank, &published.epochs);
                if change == Update::NewCode {
                    self.dirty.insert(*chunk);
                }
                return Location { section, entry };
            }
        }
        let (group, _) = Group::new(&shape, &[(values, rank)]);
        let section = self.section(Kind::Group(Box::new(group)));
        self.by_shape.insert(shape, section);
        Location { section, entry: 0 }
    }

    /// The section of a shape.
    fn of_shape(&self, shape: &Shape) -> Option<u32> {
        match self.sections.get(self.last as usize) {
            Some(Some(Section { kind: Kind::Group(group), .. })) if group.data().layout.shape == *shape => {
                Some(self.last)
            }
            Some(_) | None => self.by_shape.get(shape).copied(),
        }
    }

    fn add_program(&mut self, program: &Program, rank: u64) -> Location {
        let filter = Arc::new(ProgramFilter { program: program.clone(), rank: AtomicU64::new(rank) });
        Location { section: self.section(Kind::Program(filter)), entry: 0 }
    }

    /// A new section.
    fn section(&mut self, kind: Kind) -> u32 {
        let section = Some(Section { kind, chunk: 0 });
        let at = match self.vacant.pop() {
            Some(at) => {
                self.sections[at as usize] = section;
                at
            }
            None => {
                self.sections.push(section);
                self.sections.len() as u32 - 1
            }
        };
        self.join(at);
        at
    }

    /// Adds a section to the last chunk, or to a new one.
    fn join(&mut self, at: u32) {
        let Some(section) = &mut self.sections[at as usize] else { return };
        let has_room = |plan: &ChunkPlan| plan.sections.len() < section.max_stages() && !plan.closed;
        if !self.plans.last().is_some_and(|plan| plan.sections.is_empty() || has_room(plan)) {
            self.plans.push(ChunkPlan::default());
        }
        section.chunk = self.plans.len() - 1;
        let plan = &mut self.plans[section.chunk];
        plan.sections.push(at);
        plan.closed = section.closes();
        self.dirty.insert(section.chunk);
    }

    /// Lays chunks out anew: their sections were removed one by one, and each may have one left. Done when as many were
    /// removed as there are, so that the cost, amortised over the removals, is the code of one section each.
    fn lay_out_chunks(&mut self, retired_lists: &mut Vec<RetiredLists>) {
        let left = self.sections.len() - self.vacant.len();
        if self.emptied <= left.saturating_sub(self.emptied) + MAX_STAGES {
            return;
        }
        (0..self.plans.len()).for_each(|at| self.remove_empty_sections(at, retired_lists));
        let mut live: Vec<u32> = self.plans.iter().flat_map(|plan| plan.sections.iter().copied()).collect();
        live.sort_by_key(|at| std::cmp::Reverse(self.sections[*at as usize].as_ref().map_or(0, Section::best)));
        self.plans.clear();
        self.dirty.clear();
        self.emptied = 0;
        live.into_iter().for_each(|at| self.join(at));
    }

    /// Raises the bounds of chunks, so that no reader stops before a section to which a filter of this rank will be
    /// added.
    fn raise_bounds(&mut self, section: u32, rank: u64) {
        let Some(own) = &self.sections[section as usize] else { return };
        if rank <= own.best() {
            return;
        }
        for (at, plan) in self.plans.iter().enumerate().take(own.chunk + 1) {
            let Some(published_chunk) = &plan.published_chunk else { continue };
            // Pairs with the loads of readers: before the filter is published.
            for later in &published_chunk.later {
                later.fetch_max(rank, Ordering::AcqRel);
            }
            if at < own.chunk {
                published_chunk.after.fetch_max(rank, Ordering::AcqRel);
            }
        }
    }

    /// Publishes a new snapshot, unless stores to tables were sufficient.
    fn publish(&mut self, published: &Published) {
        let mut retired_lists = Vec::new();
        let before = self.plans.len();
        self.lay_out_chunks(&mut retired_lists);
        if self.dirty.is_empty() && self.plans.len() == before {
            return;
        }
        while let Some(at) = self.dirty.pop_first() {
            self.remove_empty_sections(at, &mut retired_lists);
            self.regenerate(at);
        }
        // Bounds of chunks that stay may only be raised: readers of the old snapshot use them too.
        let mut after = 0;
        for plan in self.plans.iter().rev() {
            let Some(published_chunk) = &plan.published_chunk else { continue };
            published_chunk.after.fetch_max(after, Ordering::AcqRel);
            for later in &published_chunk.later {
                later.fetch_max(after, Ordering::AcqRel);
            }
            let best = plan.sections.iter().filter_map(|at| self.sections[*at as usize].as_ref().map(Section::best));
            after = best.fold(after, u64::max);
        }
        let chunks = self.plans.iter().filter_map(|plan| plan.published_chunk.clone()).collect();
        let old = published.replace(Snapshot { chunks });
        self.limbo.push(&published.epochs, Garbage::Snapshot { _snapshot: old, _graveyards: retired_lists });
        self.reclaim(published);
    }

    /// Removes empty sections from a chunk, and collects retired lists of the others.
    fn remove_empty_sections(&mut self, at: usize, retired_lists: &mut Vec<RetiredLists>) {
        let sections = &mut self.sections;
        let mut emptied_sections = Vec::new();
        self.plans[at].sections.retain(|index| {
            let Some(section) = &mut sections[*index as usize] else { return false };
            if let Kind::Group(group) = &mut section.kind {
                retired_lists.push(group.take_retired_lists());
            }
            let empty = section.is_empty();
            if empty {
                emptied_sections.push(*index);
            }
            !empty
        });
        for index in emptied_sections {
            if let Some(Section { kind: Kind::Group(group), .. }) = &self.sections[index as usize] {
                self.by_shape.remove(&group.data().layout.shape);
            }
            self.sections[index as usize] = None;
            self.vacant.push(index);
        }
        let sections = &self.sections;
        let best = |index: &u32| sections[*index as usize].as_ref().map_or(0, Section::best);
        self.plans[at].sections.sort_by_key(|index| std::cmp::Reverse(best(index)));
    }

    /// A new chunk for readers. If its code cannot be written as a whole, its last stage gets a chunk of its own.
    fn regenerate(&mut self, at: usize) {
        let plan = &self.plans[at];
        if plan.sections.is_empty() {
            self.plans[at].published_chunk = None;
            return;
        }
        let live = || plan.sections.iter().filter_map(|index| self.sections[*index as usize].as_ref());
        let stages: Vec<Stage> = live().map(Section::stage).collect();
        let mut bests: Vec<u64> = live().map(Section::best).collect();
        // By stage: the best rank of the later ones.
        let mut best = 0;
        for own in bests.iter_mut().rev() {
            (*own, best) = (best, best.max(*own));
        }
        let later = bests.into_iter().map(AtomicU64::new).collect();
        // The first chunk starts without a best rank.
        match self.generator.chunk(stages, later, at == 0) {
            Ok(chunk) => self.plans[at].published_chunk = Some(Arc::new(chunk)),
            Err(chunk) if self.plans[at].sections.len() == 1 => self.plans[at].published_chunk = Some(Arc::new(chunk)),
            Err(_) => {
                let Some(last) = self.plans[at].sections.pop() else { return };
                self.plans.push(ChunkPlan { sections: vec![last], ..ChunkPlan::default() });
                let own = self.plans.len() - 1;
                if let Some(section) = &mut self.sections[last as usize] {
                    section.chunk = own;
                }
                self.dirty.insert(own);
                self.regenerate(at);
            }
        }
    }

    pub(crate) fn stats(&mut self, published: &Published) -> Stats {
        self.reclaim(published);
        let mut stats = Stats { filters: self.filters, waiting: self.limbo.len(), ..Stats::default() };
        for section in self.sections.iter_mut().flatten() {
            match &mut section.kind {
                Kind::Group(group) => {
                    group.reclaim(&published.epochs);
                    stats.groups += usize::from(group.members() > 0);
                    stats.table_bytes += group.data().table.bytes();
                    stats.waiting += group.waiting();
                }
                Kind::Program(_) => stats.programs += 1,
                Kind::Ranges(set) => {
                    stats.groups += usize::from(set.members > 0);
                    stats.table_bytes += set.ranges.bytes();
                }
            }
        }
        let chunks = self.plans.iter().filter_map(|plan| plan.published_chunk.as_deref());
        for chunk in chunks {
            stats.chunks += 1;
            match chunk.code.as_ref().map(ChunkCode::length) {
                Some(bytes) => stats.code_bytes += bytes,
                None => stats.interpreted += 1,
            }
        }
        stats.generations = self.generator.generations();
        stats
    }

    pub(crate) fn explain(&self) -> String {
        let chunks: Vec<&Chunk> = self.plans.iter().filter_map(|plan| plan.published_chunk.as_deref()).collect();
        let counts = |stage: &Stage| {
            let is = |section: &&Section| match (&section.kind, stage) {
                (Kind::Group(group), Stage::Group(data)) => Arc::ptr_eq(group.data(), data),
                (Kind::Program(own), Stage::Program(filter)) => Arc::ptr_eq(own, filter),
                (Kind::Ranges(set), Stage::Ranges(ranges)) => Arc::ptr_eq(&set.ranges, ranges),
                (Kind::Group(_) | Kind::Program(_) | Kind::Ranges(_), _) => false,
            };
            self.sections.iter().flatten().find(is).map_or(0, |section| match &section.kind {
                Kind::Group(group) => group.members(),
                Kind::Program(_) => 1,
                Kind::Ranges(set) => set.members,
            })
        };
        crate::explain::explain(&chunks, counts)
    }
}

/// Checks that the fields can be loaded.
fn check(filter: &Filter) -> Result<(), Error> {
    let Filter::Any(conjunctions) = filter else { return Ok(()) };
    let of = |conjunction: &Conjunction| {
        conjunction.tests().iter().try_for_each(|test| match &test.subject {
            Subject::Field(field) => field.check(),
            Subject::Length => Ok(()),
        })
    };
    conjunctions.iter().try_for_each(of)
}
