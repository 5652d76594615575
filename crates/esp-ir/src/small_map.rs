//! A map of few entries as one sorted vector. Abstract states are copied for each successor, which costs several times
//! as much with a tree of the same entries.

/// Keys and what they are mapped to, by key.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct SmallMap<K, V>(Vec<(K, V)>);

impl<K: Ord, V> SmallMap<K, V> {
    /// An empty map.
    pub const fn new() -> SmallMap<K, V> {
        SmallMap(Vec::new())
    }

    /// An empty map with room for this many entries.
    pub fn with_capacity(entries: usize) -> SmallMap<K, V> {
        SmallMap(Vec::with_capacity(entries))
    }

    /// Whether the map is empty.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    fn position(&self, key: &K) -> Result<usize, usize> {
        // Most keys are larger than all others.
        match self.0.last() {
            Some((last, _)) if last < key => Err(self.0.len()),
            Some(_) | None => self.0.binary_search_by(|(other, _)| other.cmp(key)),
        }
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.position(key).ok().map(|position| &self.0[position].1)
    }

    /// Sets the value of a key.
    pub fn insert(&mut self, key: K, value: V) {
        match self.position(&key) {
            Ok(position) => self.0[position].1 = value,
            Err(position) => self.0.insert(position, (key, value)),
        }
    }

    /// Removes a key if it is there.
    pub fn remove(&mut self, key: &K) {
        if let Ok(position) = self.position(key) {
            self.0.remove(position);
        }
    }

    /// Removes the entries that the predicate rejects.
    pub fn retain(&mut self, mut is_kept: impl FnMut(&K, &mut V) -> bool) {
        self.0.retain_mut(|(key, value)| is_kept(key, value));
    }

    /// Removes all entries.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// The entries in the order of their keys.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&K, &V)> {
        self.0.iter().map(|(key, value)| (key, value))
    }

    /// The keys in order.
    pub fn keys(&self) -> impl DoubleEndedIterator<Item = &K> {
        self.0.iter().map(|(key, _)| key)
    }
}

impl<K: Ord, V> Default for SmallMap<K, V> {
    fn default() -> SmallMap<K, V> {
        SmallMap::new()
    }
}

impl<K: Ord, V> Extend<(K, V)> for SmallMap<K, V> {
    fn extend<I: IntoIterator<Item = (K, V)>>(&mut self, entries: I) {
        entries.into_iter().for_each(|(key, value)| self.insert(key, value));
    }
}

/// Of entries in the order of their keys.
impl<K: Ord, V> FromIterator<(K, V)> for SmallMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> SmallMap<K, V> {
        let entries = entries.into_iter();
        let (lower, upper) = entries.size_hint();
        let mut map = Vec::with_capacity(upper.unwrap_or(lower));
        map.extend(entries);
        debug_assert!(map.is_sorted_by(|(a, _), (b, _)| a < b), "entries come in order");
        SmallMap(map)
    }
}
