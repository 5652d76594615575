//! COLLAPSE compression (Holzmann, "State Compression in SPIN", 1997): each component state (one instance, or what all
//! instances share) is stored once and has a number. A state is a vector of such numbers, one per slot. The tables are
//! shared by the threads of a search.

use quaject_esp_ir::ir::ProcessId;
use rustc_hash::FxHasher;
use std::hash::Hasher;
use std::sync::RwLock;

/// The number of a component state within its table.
pub(crate) type ComponentId = u32;

/// All component states so far, one table per kind of slot.
#[derive(Debug)]
pub(crate) struct ComponentTables {
    tables: Vec<RwLock<ComponentTable>>,
}

#[derive(Debug, Default)]
struct ComponentTable {
    bytes: Vec<u8>,
    /// Where each component ends in `bytes`.
    ends: Vec<u32>,
    /// Open-addressing hash table of numbers plus one; 0 is empty. Its length is a power of two.
    slots: Vec<u32>,
}

impl ComponentTable {
    fn get(&self, id: ComponentId) -> &[u8] {
        let id = id as usize;
        let start = if id == 0 { 0 } else { self.ends[id - 1] };
        &self.bytes[start as usize..self.ends[id] as usize]
    }

    fn find(&self, component: &[u8]) -> Result<ComponentId, usize> {
        let mask = self.slots.len().wrapping_sub(1);
        let mut at = hash(component) as usize & mask;
        while let Some(slot) = self.slots.get(at).copied().filter(|slot| *slot != 0) {
            if self.get(slot - 1) == component {
                return Ok(slot - 1);
            }
            at = (at + 1) & mask;
        }
        Err(at)
    }

    fn add(&mut self, component: &[u8]) -> ComponentId {
        if self.ends.len() * 4 >= self.slots.len() * 3 {
            self.slots = vec![0; (self.slots.len() * 2).max(16)];
            for id in 0..self.ends.len() as u32 {
                let mask = self.slots.len() - 1;
                let mut at = hash(self.get(id)) as usize & mask;
                while self.slots[at] != 0 {
                    at = (at + 1) & mask;
                }
                self.slots[at] = id + 1;
            }
        }
        match self.find(component) {
            Ok(id) => id,
            Err(at) => {
                self.bytes.extend_from_slice(component);
                self.ends.push(self.bytes.len() as u32);
                self.slots[at] = self.ends.len() as u32;
                self.ends.len() as u32 - 1
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
        ComponentTables { tables: (0..tables).map(|_| RwLock::default()).collect() }
    }

    /// The number of a component; adds it if it is new.
    pub(crate) fn number(&self, table: usize, component: &[u8]) -> ComponentId {
        let table = &self.tables[table];
        let known = table.read().expect("no thread panics with a table").find(component);
        match known {
            Ok(id) => id,
            Err(_) => table.write().expect("no thread panics with a table").add(component),
        }
    }

    /// Appends the component of this number.
    pub(crate) fn read(&self, table: usize, id: ComponentId, out: &mut Vec<u8>) {
        out.extend_from_slice(self.tables[table].read().expect("no thread panics with a table").get(id));
    }

    /// Memory of all tables.
    pub(crate) fn bytes(&self) -> usize {
        let sizes = self.tables.iter().map(|table| {
            let table = table.read().expect("no thread panics with a table");
            table.bytes.capacity() + 4 * (table.ends.capacity() + table.slots.capacity())
        });
        sizes.sum()
    }
}

/// The table of each instance's components: replicas share one.
pub(crate) fn table_of_instances(processes: impl Iterator<Item = ProcessId>) -> Vec<usize> {
    processes.map(|process| process.0 as usize).collect()
}
