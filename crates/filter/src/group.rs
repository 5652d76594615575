//! The filters of one shape, as the writer sees them: the key of each filter, and the updates of the table that readers
//! use. The table is a perfect hash by hash and displace (`perfect.rs`); retired memory is reclaimed by epochs
//! (`epoch.rs`).
//!
//! ```text
//! insert(values, rank)
//!   a byte or range differs from what is constant so far:  new layout, new table, new code
//!   the key has an entry:     add the rank to its list, publish the list's head
//!   the key's slot is free:   write the key, then publish the head
//!   the slot is in use:       search a displacement that moves the bucket to free slots;
//!                             copy the slots, publish the displacement, retire the old slots
//!   no displacement, or full: new table, new code
//! remove(entry, rank)
//!   take the rank from the list, publish the head; retire the slot of an empty entry
//! ```

use crate::epoch::{Epochs, Limbo};
use crate::layout::Layout;
use crate::perfect::{self, Search};
use crate::shape::{Shape, Span, Values};
use crate::table::Table;
use crate::template::Template;
use std::sync::Arc;

/// The data that readers use, replaced as a unit when the layout or the hash changes.
#[derive(Debug)]
pub(crate) struct GroupData {
    pub(crate) layout: Layout,
    pub(crate) table: Table,
    /// The layout of the slots' templates, if they have templates.
    pub(crate) template: Option<Template>,
}

impl GroupData {
    /// With an empty table, until keys are known.
    fn empty(layout: Layout) -> Arc<GroupData> {
        let table = Table::new(layout.key.len(), perfect::nothing());
        Arc::new(GroupData { layout, table, template: None })
    }

    /// Writes the key of a slot that is empty and that no reader uses, and its template.
    fn set_key(&self, slot: usize, key: &[u64]) {
        self.table.set_key(slot, key);
        if let Some(template) = &self.template {
            self.table.set_template(slot, template.filled(&self.layout, key));
        }
    }
}

/// The effect of an update on readers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Update {
    /// Words that the present code reads were written: no new code.
    InPlace,
    /// A new table or layout: readers need new code.
    NewCode,
}

/// A filter with a certain key.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Member {
    rank: u64,
    /// Ranges of the checks in which filters differ.
    spans: Box<[Span]>,
}

/// Filters with one key.
#[derive(Debug)]
struct KeyEntry {
    slot: u32,
    /// A former slot, which readers that loaded the old displacement may still use.
    stale: Option<u32>,
    /// The next entry in the same bucket.
    next: Option<u32>,
    /// Best rank first; empty if the entry has no filter.
    members: Vec<Member>,
    /// What the head or the table's `match_list` points to.
    list: Option<Arc<[u64]>>,
}

/// The user of a slot.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum SlotOwner {
    Free,
    Entry(u32),
    /// Free, but readers may still use it; the number of the change that freed it.
    Limbo(u32),
}

/// Retired memory, not reclaimable yet.
#[derive(Debug)]
enum Retired {
    /// A slot, and the change that freed it.
    Slot(u32, u32),
    List {
        _list: Arc<[u64]>,
    },
}

/// Lists that readers of an old table may use.
#[derive(Debug, Default)]
pub(crate) struct RetiredLists {
    _lists: Vec<Arc<[u64]>>,
}

/// The filters of one shape.
#[derive(Debug)]
pub(crate) struct Group {
    data: Arc<GroupData>,
    entries: Vec<KeyEntry>,
    unused: Vec<u32>,
    owners: Vec<SlotOwner>,
    /// By bucket: its first entry.
    buckets: Vec<Option<u32>>,
    limbo: Limbo<Retired>,
    /// Counts what was put into limbo.
    changes: u32,
    retired_lists: RetiredLists,
    search: Search,
    members: usize,
    /// An upper bound of the ranks of the members.
    best: u64,
}

impl Group {
    /// A group of these filters, of one shape: their values and ranks. Also the entry of each.
    pub(crate) fn new(shape: &Shape, filters: &[(Values, u64)]) -> (Group, Vec<u32>) {
        let common = filters.first().map(|(values, _)| values.clone()).unwrap_or_else(|| Values {
            bytes: Vec::new(),
            spans: Vec::new(),
            fields: Vec::new(),
            impossible: true,
        });
        let (mut varying, mut listed) = (vec![false; common.bytes.len()], vec![false; common.spans.len()]);
        for (values, _) in filters {
            widen(&common, values, &mut varying, &mut listed);
        }
        let layout = Layout::new(shape, common, varying, listed);
        let mut group = Group {
            data: GroupData::empty(layout),
            entries: Vec::new(),
            unused: Vec::new(),
            owners: Vec::new(),
            buckets: Vec::new(),
            limbo: Limbo::default(),
            changes: 0,
            retired_lists: RetiredLists::default(),
            search: Search::new(),
            members: 0,
            best: 0,
        };
        let entries = group.fill(filters);
        (group, entries)
    }

    /// Makes entries of many filters at once; the table is built when all keys are known.
    fn fill(&mut self, filters: &[(Values, u64)]) -> Vec<u32> {
        let layout = &self.data.layout;
        let words = layout.key.len();
        let mut keys = Vec::with_capacity(filters.len() * words);
        for (values, _) in filters {
            keys.extend(layout.key_of(&values.bytes));
        }
        let key = |at: usize| &keys[at * words..(at + 1) * words];
        let mut order: Vec<u32> = (0..filters.len() as u32).collect();
        order.sort_unstable_by(|one, other| key(*one as usize).cmp(key(*other as usize)));
        let mut entries = vec![0; filters.len()];
        let mut distinct: Vec<u64> = Vec::with_capacity(keys.len());
        for (position, at) in order.iter().map(|at| *at as usize).enumerate() {
            if position == 0 || key(order[position - 1] as usize) != key(at) {
                distinct.extend(key(at));
                self.entries.push(KeyEntry { slot: 0, stale: None, next: None, members: Vec::new(), list: None });
            }
            let entry = self.entries.len() - 1;
            let (values, rank) = &filters[at];
            let spans = layout.spans_of(&values.spans).into();
            self.entries[entry].members.push(Member { rank: *rank, spans });
            self.best = self.best.max(*rank);
            entries[at] = entry as u32;
        }
        self.members = filters.len();
        for entry in &mut self.entries {
            entry.members.sort_unstable_by_key(|member| std::cmp::Reverse(member.rank));
        }
        let live: Vec<u32> = (0..self.entries.len() as u32).collect();
        self.build(&live, &distinct);
        entries
    }

    /// A new table for these entries with these keys. Readers of the old one keep it.
    fn build(&mut self, live: &[u32], keys: &[u64]) {
        let layout = self.data.layout.clone();
        let template = Template::of(&layout);
        let mask = template.as_ref().map(Template::mask);
        let (table, slots) = self.search.table(&layout.key, live.len(), keys, mask);
        let template = template.filter(|_| table.has_templates());
        self.owners = vec![SlotOwner::Free; table.slot_count()];
        self.buckets = vec![None; table.displacements.len().max(1)];
        for retired in std::mem::take(&mut self.limbo).into_all() {
            match retired {
                Retired::List { _list } => self.retired_lists._lists.push(_list),
                // The slot was one of the old table.
                Retired::Slot(..) => {}
            }
        }
        let words = layout.key.len();
        if let Some(template) = &template {
            (0..table.slot_count()).for_each(|slot| table.set_template(slot, template.empty()));
        }
        self.data = Arc::new(GroupData { layout, table, template });
        for (at, entry) in live.iter().enumerate() {
            let key = &keys[at * words..(at + 1) * words];
            let bucket = self.data.table.bucket(key);
            self.owners[slots[at] as usize] = SlotOwner::Entry(*entry);
            self.data.set_key(slots[at] as usize, key);
            let next = self.buckets[bucket].replace(*entry);
            let own = &mut self.entries[*entry as usize];
            (own.slot, own.stale, own.next) = (slots[at], None, next);
            self.publish(*entry, None);
        }
    }

    /// Publishes the filters of an entry in its slots.
    fn publish(&mut self, entry: u32, epochs: Option<&Epochs>) {
        let lists = self.data.layout.has_lists();
        let own = &mut self.entries[entry as usize];
        let list =
            if lists && !own.members.is_empty() || own.members.len() > 1 { Some(list_of(&own.members)) } else { None };
        let address = list.as_ref().map_or(0, |list| list.as_ptr() as u64);
        let best = own.members.first().map_or(0, |member| member.rank);
        let (head, match_list) = if lists { (address, 0) } else { (best, address) };
        let old = std::mem::replace(&mut own.list, list);
        for slot in [Some(own.slot), own.stale].into_iter().flatten() {
            if match_list != 0 || old.is_some() {
                self.data.table.set_match_list(slot as usize, match_list);
            }
            self.data.table.set_head(slot as usize, head);
        }
        match (old, epochs) {
            (Some(list), Some(epochs)) => self.limbo.push(epochs, Retired::List { _list: list }),
            (Some(list), None) => self.retired_lists._lists.push(list),
            (None, _) => {}
        }
    }

    /// Reclaims slots that no reader uses any more.
    pub(crate) fn reclaim(&mut self, epochs: &Epochs) {
        if self.limbo.is_empty() {
            return;
        }
        let oldest = epochs.oldest();
        while let Some(retired) = self.limbo.pop(oldest) {
            if let Retired::Slot(slot, since) = retired {
                // It may have been reused for its old key.
                if self.owners[slot as usize] != SlotOwner::Limbo(since) {
                    continue;
                }
                self.data.table.set_head(slot as usize, 0);
                self.data.table.set_match_list(slot as usize, 0);
                self.owners[slot as usize] = SlotOwner::Free;
                // At most one entry has it as its old slot: the one whose key is still there.
                let key: Vec<u64> = self.data.table.key(slot as usize).collect();
                if let Some(entry) = self.entry_of(&key)
                    && self.entries[entry as usize].stale == Some(slot)
                {
                    self.entries[entry as usize].stale = None;
                }
            }
        }
    }

    /// The entry with a key.
    fn entry_of(&self, key: &[u64]) -> Option<u32> {
        let slot = self.data.table.slot(key);
        match self.owners[slot] {
            SlotOwner::Entry(entry) if self.data.table.has_key(slot, key) => Some(entry),
            SlotOwner::Entry(_) | SlotOwner::Free | SlotOwner::Limbo(_) => None,
        }
    }

    /// Adds a filter: its entry, and what readers need.
    pub(crate) fn insert(&mut self, values: &Values, rank: u64, epochs: &Epochs) -> (u32, Update) {
        self.reclaim(epochs);
        let mut change = Update::InPlace;
        let layout = &self.data.layout;
        if layout.differs(values) {
            let (mut varying, mut listed) = (layout.varying.clone(), layout.listed.clone());
            widen(&layout.common, values, &mut varying, &mut listed);
            self.relayout(varying, listed);
            change = Update::NewCode;
        }
        let layout = &self.data.layout;
        let key = layout.key_of(&values.bytes);
        let member = Member { rank, spans: layout.spans_of(&values.spans).into() };
        self.members += 1;
        self.best = self.best.max(rank);
        if let Some(entry) = self.entry_of(&key) {
            let members = &mut self.entries[entry as usize].members;
            let at = members.partition_point(|other| other.rank > rank);
            members.insert(at, member);
            self.publish(entry, Some(epochs));
            return (entry, change);
        }
        let fresh = KeyEntry { slot: 0, stale: None, next: None, members: vec![member], list: None };
        let entry = match self.unused.pop() {
            Some(entry) => {
                self.entries[entry as usize] = fresh;
                entry
            }
            None => {
                self.entries.push(fresh);
                self.entries.len() as u32 - 1
            }
        };
        if !self.place(entry, &key, epochs) {
            self.rehash(Some((entry, &key)));
            change = Update::NewCode;
        }
        (entry, change)
    }

    /// Finds a slot in the present table; false if a new table is needed.
    fn place(&mut self, entry: u32, key: &[u64], epochs: &Epochs) -> bool {
        let bucket = self.data.table.bucket(key);
        let slot = self.data.table.slot(key);
        // A slot that readers may still use can be reused immediately for its old key.
        let had = matches!(self.owners[slot], SlotOwner::Limbo(_)) && self.data.table.has_key(slot, key);
        if self.owners[slot] != SlotOwner::Free && !had {
            let displaced = self.data.table.hash.bucket_bits.is_some();
            if !displaced
                || !self.search.has_room(self.members, self.owners.len())
                || !self.displace(bucket, key, epochs)
            {
                return false;
            }
        }
        let slot = self.data.table.slot(key);
        self.data.set_key(slot, key);
        self.owners[slot] = SlotOwner::Entry(entry);
        let next = self.buckets[bucket].replace(entry);
        let own = &mut self.entries[entry as usize];
        (own.slot, own.next) = (slot as u32, next);
        self.publish(entry, Some(epochs));
        true
    }

    /// Searches a displacement under which every key of a bucket, and the new one, has a free slot, and moves the
    /// bucket.
    fn displace(&mut self, bucket: usize, key: &[u64], epochs: &Epochs) -> bool {
        let mut moving = Vec::new();
        let mut keys: Vec<u64> = Vec::new();
        let mut at = self.buckets[bucket];
        while let Some(entry) = at {
            let own = &self.entries[entry as usize];
            if own.stale.is_some() {
                return false;
            }
            moving.push(entry);
            keys.extend(self.data.table.key(own.slot as usize));
            at = own.next;
        }
        keys.extend(key);
        let (table, owners) = (&self.data.table, &self.owners);
        let free = |slot: usize| owners[slot] == SlotOwner::Free;
        let Some((displacement, slots)) = self.search.displacement(table, &keys, free) else { return false };
        for (index, entry) in moving.iter().enumerate() {
            let slot = slots[index];
            let key = &keys[index * self.data.table.words..][..self.data.table.words];
            self.data.set_key(slot, key);
            self.owners[slot] = SlotOwner::Entry(*entry);
            let own = &mut self.entries[*entry as usize];
            let old = std::mem::replace(&mut own.slot, slot as u32);
            own.stale = Some(old);
            self.changes = self.changes.wrapping_add(1);
            self.owners[old as usize] = SlotOwner::Limbo(self.changes);
            let (head, list) = (self.data.table.head(old as usize), self.data.table.match_list(old as usize));
            self.data.table.set_match_list(slot, list);
            self.data.table.set_head(slot, head);
        }
        self.data.table.displace(bucket, displacement);
        for entry in moving {
            let old = self.entries[entry as usize].stale;
            if let Some(slot) = old
                && let SlotOwner::Limbo(since) = self.owners[slot as usize]
            {
                self.limbo.push(epochs, Retired::Slot(slot, since));
            }
        }
        true
    }

    /// Removes a filter.
    pub(crate) fn remove(&mut self, entry: u32, rank: u64, epochs: &Epochs) {
        self.reclaim(epochs);
        let own = &mut self.entries[entry as usize];
        let before = own.members.len();
        if before == 0 {
            // Two alternatives of the filter had this key, and were removed together.
            return;
        }
        own.members.retain(|member| member.rank != rank);
        self.members -= before - own.members.len();
        let empty = own.members.is_empty();
        self.publish(entry, Some(epochs));
        if !empty {
            return;
        }
        let slot = self.entries[entry as usize].slot;
        let key: Vec<u64> = self.data.table.key(slot as usize).collect();
        let bucket = self.data.table.bucket(&key);
        let next = self.entries[entry as usize].next;
        if self.buckets[bucket] == Some(entry) {
            self.buckets[bucket] = next;
        } else {
            let mut at = self.buckets[bucket];
            while let Some(before) = at {
                let before = &mut self.entries[before as usize];
                at = before.next;
                if at == Some(entry) {
                    before.next = next;
                    break;
                }
            }
        }
        self.changes = self.changes.wrapping_add(1);
        self.owners[slot as usize] = SlotOwner::Limbo(self.changes);
        self.limbo.push(epochs, Retired::Slot(slot, self.changes));
        self.unused.push(entry);
    }

    /// A new table with the present layout.
    fn rehash(&mut self, new: Option<(u32, &[u64])>) {
        let mut live = Vec::new();
        let mut keys = Vec::new();
        for (entry, own) in self.entries.iter().enumerate() {
            match new {
                Some((fresh, key)) if fresh == entry as u32 => keys.extend(key),
                Some(_) | None if own.members.is_empty() => continue,
                Some(_) | None => keys.extend(self.data.table.key(own.slot as usize)),
            }
            live.push(entry as u32);
        }
        self.build(&live, &keys);
    }

    /// A new layout in which more bytes and checks vary, with a new table. Keys stay distinct.
    fn relayout(&mut self, varying: Vec<bool>, listed: Vec<bool>) {
        let old = Arc::clone(&self.data);
        let layout = Layout::new(&old.layout.shape, old.layout.common.clone(), varying, listed);
        let (mut live, mut keys) = (Vec::new(), Vec::new());
        for (entry, own) in self.entries.iter_mut().enumerate() {
            if own.members.is_empty() {
                continue;
            }
            let key: Vec<u64> = old.table.key(own.slot as usize).collect();
            for member in &mut own.members {
                let values = old.layout.values_of(&key, &member.spans);
                member.spans = layout.spans_of(&values.spans).into();
            }
            keys.extend(layout.key_of(&old.layout.values_of(&key, &[]).bytes));
            live.push(entry as u32);
        }
        self.data = GroupData::empty(layout);
        self.build(&live, &keys);
    }

    /// The lists that readers of the old table may still use.
    pub(crate) fn take_retired_lists(&mut self) -> RetiredLists {
        std::mem::take(&mut self.retired_lists)
    }

    pub(crate) fn data(&self) -> &Arc<GroupData> {
        &self.data
    }

    /// The number of its filters.
    pub(crate) fn members(&self) -> usize {
        self.members
    }

    /// An upper bound of the ranks of its filters.
    pub(crate) fn best(&self) -> u64 {
        self.best
    }

    /// The number of retired objects.
    pub(crate) fn waiting(&self) -> usize {
        self.limbo.len()
    }
}

/// Marks where values differ from the common ones.
fn widen(common: &Values, values: &Values, varying: &mut [bool], listed: &mut [bool]) {
    for at in 0..common.bytes.len() {
        if !varying[at] && common.bytes[at] != values.bytes[at] {
            for (other, field) in common.fields.iter().enumerate() {
                varying[other] |= *field == common.fields[at];
            }
        }
    }
    for ((listed, own), other) in listed.iter_mut().zip(&common.spans).zip(&values.spans) {
        *listed |= own != other;
    }
}

/// A list as readers see it: the number of members, then of each its rank and, for each varying check, the low end of
/// the range in the low half of a word and its length in the high half.
fn list_of(members: &[Member]) -> Arc<[u64]> {
    let mut words = vec![members.len() as u64];
    for member in members {
        words.push(member.rank);
        let span = |span: &Span| u64::from(span.low) | u64::from(span.high.wrapping_sub(span.low)) << 32;
        words.extend(member.spans.iter().map(span));
    }
    words.into()
}

/// The members of a list at an address: ranks, each with its ranges.
///
/// # Safety
/// The list must be one that `list_of` made for checks of this number and that has not been dropped.
pub(crate) unsafe fn members_at<'l>(list: u64, checks: usize) -> impl Iterator<Item = (u64, Vec<Span>)> + 'l {
    let words = list as *const u64;
    // SAFETY: a list begins with the number of its members, of `1 + checks` words each.
    let all = unsafe { std::slice::from_raw_parts(words.add(1), *words as usize * (1 + checks)) };
    all.chunks_exact(1 + checks).map(|member| {
        let span = |word: &u64| Span { low: *word as u32, high: (*word as u32).wrapping_add((*word >> 32) as u32) };
        (member[0], member[1..].iter().map(span).collect())
    })
}
