//! Walks page tables and counts what must not be: a leaf that is writable and executable, and a leaf that programs
//! reach over the kernel's half.

use super::tables::{ENTRIES, LARGE, NO_EXECUTE, PRESENT, USER, WRITABLE, address_of, bytes_of_level, table_at};

/// What a walk has found.
#[derive(Default, Debug)]
pub(crate) struct Audit {
    pub(crate) leaves: u64,
    /// Leaves of the kernel's half that may be executed.
    pub(crate) executable: u64,
    pub(crate) writable_and_executable: u64,
    /// Leaves over the kernel's half that programs may use.
    pub(crate) user_over_kernel: u64,
    /// The address of the first leaf that must not be.
    pub(crate) first: Option<u64>,
}

impl Audit {
    /// Whether there is no leaf that must not be.
    pub(crate) fn is_clean(&self) -> bool {
        self.writable_and_executable == 0 && self.user_over_kernel == 0
    }

    fn add_leaf(&mut self, address: u64, rights: u64) {
        let is_kernel = address >> 63 != 0;
        let is_executable = rights & NO_EXECUTE == 0;
        let is_dangerous = rights & WRITABLE != 0 && is_executable;
        let is_exposed = is_kernel && rights & USER != 0;
        self.leaves += 1;
        self.executable += u64::from(is_kernel && is_executable);
        self.writable_and_executable += u64::from(is_dangerous);
        self.user_over_kernel += u64::from(is_exposed);
        if is_dangerous || is_exposed {
            self.first = self.first.or(Some(address));
        }
    }
}

/// Walks the tables whose root is at the physical address `root`.
pub(crate) fn audit(root: u64) -> Audit {
    let mut found = Audit::default();
    walk(root, 4, 0, PRESENT | WRITABLE | USER, &mut found);
    found
}

/// Walks a table. `rights` are those that the entries above leave: writing and use by programs have to be allowed on
/// all levels, execution has to be forbidden on none.
fn walk(table: u64, level: u32, start: u64, rights: u64, found: &mut Audit) {
    for index in 0..ENTRIES {
        // SAFETY: `table` is a table of the tree.
        let entry = unsafe { (*table_at(table))[index] };
        if entry & PRESENT == 0 {
            continue;
        }
        let rights = rights & entry & (WRITABLE | USER) | (rights | entry) & NO_EXECUTE;
        let address = start + index as u64 * bytes_of_level(level);
        // The upper half of the addresses begins with ones.
        let address = if level == 4 && index >= ENTRIES / 2 { address | 0xffff << 48 } else { address };
        if level == 1 || entry & LARGE != 0 {
            found.add_leaf(address, rights);
        } else {
            walk(address_of(entry), level - 1, address, rights, found);
        }
    }
}
