//! A map of few entries, in the order of their keys, in one piece: what is known in a place is copied for every way that
//! leads on, which a tree of the same entries makes several times as dear.

/// Keys and what they are mapped to, by key.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Map<K, V>(Vec<(K, V)>);

impl<K: Ord, V> Map<K, V> {
    pub(crate) const fn new() -> Map<K, V> {
        Map(Vec::new())
    }

    pub(crate) fn with_capacity(entries: usize) -> Map<K, V> {
        Map(Vec::with_capacity(entries))
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    fn position(&self, key: &K) -> Result<usize, usize> {
        // Most keys are younger than all others.
        match self.0.last() {
            Some((last, _)) if last < key => Err(self.0.len()),
            Some(_) | None => self.0.binary_search_by(|(other, _)| other.cmp(key)),
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.position(key).ok().map(|position| &self.0[position].1)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        match self.position(&key) {
            Ok(position) => self.0[position].1 = value,
            Err(position) => self.0.insert(position, (key, value)),
        }
    }

    pub(crate) fn remove(&mut self, key: &K) {
        if let Ok(position) = self.position(key) {
            self.0.remove(position);
        }
    }

    pub(crate) fn retain(&mut self, mut is_kept: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| is_kept(key, value));
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    pub(crate) fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    pub(crate) fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }
}

impl<K: Ord, V> Default for Map<K, V> {
    fn default() -> Map<K, V> {
        Map::new()
    }
}

impl<K: Ord, V> Extend<(K, V)> for Map<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| self.insert(key, value));
    }
}

/// Of entries in the order of their keys.
impl<K: Ord, V> FromIterator<(K, V)> for Map<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Map<K, V> {
        let entries = entries.into_iter();
        let (least, most) = entries.size_hint();
        let mut map = Vec::with_capacity(most.unwrap_or(least));
        map.extend(entries);
        debug_assert!(map.is_sorted_by(|(a, _), (b, _)| a < b), "entries come in order");
        Map(map)
    }
}
