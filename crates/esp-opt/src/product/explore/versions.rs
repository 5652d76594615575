//! How many versions of a place there are: counters that would make more are widened, and where there are too many, all
//! say what they have in common. Knows keys of nodes, not how they are found.

use super::super::state::{Detail, Key, Origin};
use super::{Explorer, Facts};
use crate::facts::Fact;

/// How many versions of one place are kept apart in full, and by flags.
const FULL_VERSIONS: usize = 8;
const FLAG_VERSIONS: usize = 32;

impl Explorer<'_, '_> {
    /// Adds a node to the versions of its place, and learns from it.
    pub(super) fn add_version(&mut self, node: usize) {
        self.widen(node);
        let place = self.nodes[node].key.place;
        let versions = &mut self.versions[place];
        versions.here.push(node);
        versions.detail = match versions.detail {
            Detail::Full if versions.here.len() > FULL_VERSIONS => Detail::Flags,
            Detail::Flags if versions.here.len() > FLAG_VERSIONS => Detail::None,
            Detail::Full | Detail::Flags | Detail::None => return,
        };
        versions.changes += 1;
        self.round.outdated = Some(place);
        self.join_versions(node, place);
    }

    /// Widens what is known as far as older versions were.
    pub(super) fn widened(&self, key: &mut Key) {
        for (origin, wide) in &self.versions[key.place].floor {
            if let Some(fact) = key.facts.get(origin)
                && fact.implies(wide)
                && !self.group.is_kept(*origin, fact)
            {
                set_fact(key, *origin, wide.clone(), &self.group.whole(*origin));
            }
        }
    }

    /// Whether all versions of a place say the same of this value.
    pub(super) fn is_joined(&self, place: usize, origin: Origin) -> bool {
        match self.versions[place].detail {
            Detail::Full => false,
            Detail::Flags => !self.group.is_flag(origin),
            Detail::None => true,
        }
    }

    /// Says of these values what all versions of the place have in common; that may become less by this one.
    pub(super) fn joined(&mut self, key: &mut Key, origins: Vec<Origin>) {
        let versions = &mut self.versions[key.place];
        let mut has_changed = false;
        for origin in origins {
            let whole = self.group.whole(origin);
            let fact = key.facts.get(&origin).unwrap_or(&whole);
            let common = versions.floor.entry(origin).or_insert_with(|| fact.clone());
            if !fact.implies(common) {
                *common = self.group.join(common, fact);
                versions.changes += 1;
                has_changed = true;
            }
            set_fact(key, origin, common.clone(), &whole);
        }
        if has_changed && !versions.here.is_empty() {
            self.round.outdated = Some(key.place);
        }
    }

    /// What the versions of a place have in common, of which this node is one, now that they are not told apart by it.
    fn join_versions(&mut self, node: usize, place: usize) {
        let origins = self.nodes[node].values.keys().copied().filter(|origin| self.is_joined(place, *origin));
        let joined: Vec<_> = origins
            .map(|origin| {
                let whole = self.group.whole(origin);
                let facts = self.versions[place].here.iter().map(|other| &self.nodes[*other].key.facts);
                let facts = facts.map(|facts| facts.get(&origin).unwrap_or(&whole));
                let common = facts.cloned().reduce(|a, b| self.group.join(&a, &b)).unwrap_or(whole);
                (origin, common)
            })
            .collect();
        self.versions[place].floor.extend(joined);
    }

    /// What a key says more widely than an older one; none if there is another difference.
    fn wider(&self, old: &Key, new: &Key) -> Option<Vec<(Origin, Fact)>> {
        let mut wider = Vec::new();
        let mut facts = new.facts.iter().peekable();
        for (origin, fact) in old.facts.iter() {
            let wide = match facts.next_if(|(other, _)| *other == origin) {
                Some((_, wide)) if wide == fact => continue,
                Some((_, wide)) => wide.clone(),
                None => self.group.whole(*origin),
            };
            if !fact.implies(&wide) || self.group.is_kept(*origin, fact) {
                return None;
            }
            wider.push((*origin, wide));
        }
        // Of something else the new key says more, and the old one nothing.
        let is_beside = facts.next().is_none() && old.tags == new.tags && old.refuted == new.refuted;
        is_beside.then_some(wider)
    }

    /// Where a new version says no more than an older one, but for wider ranges, the older one was in vain: both are
    /// widened to the new one from now on.
    fn widen(&mut self, node: usize) {
        let key = self.nodes[node].key.clone();
        let mut floor = Facts::new();
        let mut beside = Vec::new();
        for other in self.versions[key.place].here.iter().filter(|other| !self.nodes[node].beside.contains(other)) {
            let old = &self.nodes[*other].key;
            floor.extend(self.wider(old, &key).into_iter().flatten());
            beside.push(*other);
        }
        if floor.is_empty() {
            self.nodes[node].beside.extend(beside);
            return;
        }
        self.round.outdated = Some(key.place);
        let versions = &mut self.versions[key.place];
        versions.changes += 1;
        for (origin, fact) in floor {
            let widest = versions.floor.entry(origin).or_insert_with(|| fact.clone());
            widen_to(widest, &fact);
            // A counter that has climbed in one place, constant by constant, would climb as far in the next one.
            let anywhere = self.widest.entry(origin).or_insert_with(|| widest.clone());
            if widest.implies(anywhere) {
                widest.clone_from(anywhere);
            } else {
                widen_to(anywhere, widest);
            }
        }
    }
}

/// Widens what is known by what else may be.
fn widen_to(widest: &mut Fact, fact: &Fact) {
    if widest.implies(fact) {
        widest.clone_from(fact);
    } else if !fact.implies(widest) {
        // Without a common bound both would have the search go back for ever.
        *widest = Fact::between(widest.low.min(fact.low), widest.high.max(fact.high));
    }
}

/// Sets what a key says of a value; nothing, if its type says as much.
fn set_fact(key: &mut Key, origin: Origin, fact: Fact, whole: &Fact) {
    if fact == *whole {
        key.facts.remove(&origin);
    } else {
        key.facts.insert(origin, fact);
    }
}
