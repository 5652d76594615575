//! COLLAPSE compression (Holzmann, "State Compression in SPIN", 1997): each component state (one instance, or what all
//! instances share) is stored once and has a number. A state is a vector of such numbers. The tables are
//! shared by the threads of a search.

use quaject_esp_ir::ir::ProcessId;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::sync::RwLock;

/// The number of a component state within its table.
pub(crate) type ComponentId = u32;

/// The maximum size of the component states of one table: their ends are numbers of 32 bits. It bounds their number
/// too, since all of them but one have at least a byte, and only 256 have just one.
const MAX_TABLE_BYTES: usize = u32::MAX as usize;

/// All component states so far, one table per kind of component.
#[derive(Debug)]
pub(crate) struct ComponentTables {
    tables: Vec<RwLock<ComponentTable>>,
    max_table_bytes: usize,
}

#[derive(Debug, Default)]
struct ComponentTable {
    bytes: Vec<u8>,
    /// Where each component ends in `bytes`.
    ends: Vec<u32>,
    /// Open-addressing hash table of numbers plus one; 0 is empty. Its length is a power of two.
    buckets: Vec<u32>,
}

impl ComponentTable {
    fn get(&self, id: ComponentId) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start as usize..self.ends[id] as usize]
    }

    fn find(&self, component: &[u8]) -> Result<ComponentId, usize> {
        let mask = self.buckets.len().wrapping_sub(1);
        let mut at = hash(component) as usize & mask;
        while let Some(entry) = self.buckets.get(at).copied().filter(|entry| *entry != 0) {
            if self.get(entry - 1) == component {
                return Ok(entry - 1);
            }
            at = (at + 1) & mask;
        }
        Err(at)
    }

    /// The number of a component; adds it if it is new. None if the table would exceed `max_bytes`.
    fn add(&mut self, component: &[u8], max_bytes: usize) -> Option<ComponentId> {
        if self.ends.len() * 4 >= self.buckets.len() * 3 {
            self.buckets = vec![0; (self.buckets.len() * 2).max(16)];
            for id in 0..self.ends.len() as u32 {
                let mask = self.buckets.len() - 1;
                let mut at = hash(self.get(id)) as usize & mask;
                while self.buckets[at] != 0 {
                    at = (at + 1) & mask;
                }
                self.buckets[at] = id + 1;
            }
        }
        match self.find(component) {
            Ok(id) => Some(id),
            Err(_) if component.len() > max_bytes - self.bytes.len() => None,
            Err(at) => {
                self.bytes.extend_from_slice(component);
                self.ends.push(self.bytes.len() as u32);
                self.buckets[at] = self.ends.len() as u32;
                Some(self.ends.len() as u32 - 1)
            }
        }
    }
}

fn hash(component: &[u8]) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(component);
    hasher.finish().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20
}

impl ComponentTables {
    /// Empty tables.
    pub(crate) fn new(tables: usize) -> ComponentTables {
        ComponentTables::with_max_table_bytes(tables, MAX_TABLE_BYTES)
    }

    fn with_max_table_bytes(tables: usize, max_table_bytes: usize) -> ComponentTables {
        ComponentTables { tables: (0..tables).map(|_| RwLock::default()).collect(), max_table_bytes }
    }

    /// The number of a component; adds it if it is new. None if its table is full.
    pub(crate) fn number(&self, table: usize, component: &[u8]) -> Option<ComponentId> {
        let table = &self.tables[table];
        let known = table.read().expect("no thread panics with a table").find(component);
        match known {
            Ok(id) => Some(id),
            Err(_) => table.write().expect("no thread panics with a table").add(component, self.max_table_bytes),
        }
    }

    /// Appends the component of this number.
    pub(crate) fn read(&self, table: usize, id: ComponentId, out: &mut Vec<u8>) {
        out.extend_from_slice(self.tables[table].read().expect("no thread panics with a table").get(id));
    }

    /// Memory of all tables.
    pub(crate) fn memory_bytes(&self) -> usize {
        let sizes = self.tables.iter().map(|table| {
            let table = table.read().expect("no thread panics with a table");
            table.bytes.capacity() + 4 * (table.ends.capacity() + table.buckets.capacity())
        });
        sizes.sum()
    }
}

/// The table of each instance's components: replicas share one.
pub(crate) fn table_of_instances(processes: impl Iterator<Item = ProcessId>) -> Vec<usize> {
    processes.map(|process| process.0 as usize).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_table_refuses_new_components_and_keeps_the_others() {
        let tables = ComponentTables::with_max_table_bytes(2, 6);
        assert_eq!(tables.number(0, b"one"), Some(0));
        assert_eq!(tables.number(0, b"four"), None, "seven bytes");
        assert_eq!(tables.number(0, b"two"), Some(1), "exactly six bytes");
        assert_eq!(tables.number(0, b"x"), None);
        assert_eq!(tables.number(0, b""), Some(2));
        for (id, component) in [b"one".as_slice(), b"two", b""].into_iter().enumerate() {
            let mut read = Vec::new();
            tables.read(0, id as ComponentId, &mut read);
            assert_eq!(read, component);
            assert_eq!(tables.number(0, component), Some(id as ComponentId));
        }
        assert_eq!(tables.number(1, b"four"), Some(0), "each table has its own bound");
    }
}
