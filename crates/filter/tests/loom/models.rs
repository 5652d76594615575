//! The small programs, once for each version of the library's files.

/// Makes the module `$name` of models over the files in `$version`.
macro_rules! models {
    ($version:ident, $name:ident) => {
        #[allow(unused, reason = "not every version runs every model")]
        mod $name {
            use crate::$version::epoch::{Epochs, Limbo};
            use crate::$version::sync::{AtomicU64, Ordering};
            use crate::$version::table::{Hash, Table};
            use loom::cell::UnsafeCell;
            use loom::sync::Arc;
            use loom::thread;

            pub(crate) fn kept_while_pinned() {
                loom::model(|| {
                    let epochs = Epochs::new();
                    let (early, late) = (epochs.register(), epochs.register());
                    let mut limbo = Limbo::default();
                    early.enter(&epochs);
                    limbo.push(&epochs, "first");
                    late.enter(&epochs);
                    assert_eq!(limbo.pop(epochs.oldest()), None);
                    early.leave();
                    limbo.push(&epochs, "second");
                    let why = "the late reader began after it was unlinked";
                    assert_eq!(limbo.pop(epochs.oldest()), Some("first"), "{why}");
                    assert_eq!(limbo.pop(epochs.oldest()), None);
                    late.leave();
                    assert_eq!(limbo.pop(epochs.oldest()), Some("second"));
                    assert!(limbo.is_empty());
                });
            }

            struct Snapshots {
                epochs: Epochs,
                current: AtomicU64,
                places: [UnsafeCell<u64>; 2],
            }

            // SAFETY: loom checks that no place is written that a reader reads.
            unsafe impl Sync for Snapshots {}
            // SAFETY: as above.
            unsafe impl Send for Snapshots {}

            /// A writer replaces what readers read, and writes to the old place once it may; twice, so that a pin of an
            /// epoch that is over is seen, too.
            pub(crate) fn reused() {
                loom::model(|| {
                    let shared = Arc::new(Snapshots {
                        epochs: Epochs::new(),
                        current: AtomicU64::new(0),
                        places: [UnsafeCell::new(0), UnsafeCell::new(1)],
                    });
                    let pin = shared.epochs.register();
                    let reader = {
                        let shared = Arc::clone(&shared);
                        thread::spawn(move || {
                            for _ in 0..2 {
                                pin.enter(&shared.epochs);
                                let at = shared.current.load(Ordering::Acquire) as usize;
                                // SAFETY: what is current while this is pinned is not written to; loom checks it.
                                shared.places[at].with(|place| unsafe { *place });
                                pin.leave();
                            }
                        })
                    };
                    let mut limbo = Limbo::default();
                    let mut own = 0;
                    for _ in 0..2 {
                        let old = own;
                        own = 1 - own;
                        shared.current.swap(own as u64, Ordering::AcqRel);
                        limbo.push(&shared.epochs, old);
                        let Some(free) = limbo.pop(shared.epochs.oldest()) else { break };
                        // SAFETY: no reader uses it any more; loom checks it.
                        shared.places[free].with_mut(|place| unsafe { *place = 7 });
                    }
                    reader.join().expect("the reader returns");
                });
            }

            const KEYS: [u64; 2] = [1 << 32, 1 << 33];
            const RANKS: [u64; 2] = [10, 20];

            struct Shared {
                epochs: Epochs,
                table: Table,
            }

            fn shared(bucket_bits: Option<u32>) -> Arc<Shared> {
                let slot_bits = if bucket_bits.is_some() { 1 } else { 0 };
                let hash = Hash { fold: 1, first: 1, slot_bits, bucket_bits, part: None };
                let table = Table::new(1, hash);
                table.set_key(0, &KEYS[..1]);
                table.set_head(0, RANKS[0]);
                Arc::new(Shared { epochs: Epochs::new(), table })
            }

            /// The filter of one key goes, and its slot is for another.
            pub(crate) fn slot_changes_key() {
                loom::model(|| {
                    let shared = shared(None);
                    let pin = shared.epochs.register();
                    let reader = {
                        let shared = Arc::clone(&shared);
                        thread::spawn(move || {
                            pin.enter(&shared.epochs);
                            for (key, rank) in KEYS.iter().zip(RANKS) {
                                if let Some((_, found)) = shared.table.find(&[*key]) {
                                    assert_eq!(found, rank, "a key has another's rank");
                                }
                            }
                            pin.leave();
                        })
                    };
                    let mut limbo = Limbo::default();
                    shared.table.set_head(0, 0);
                    limbo.push(&shared.epochs, ());
                    if limbo.pop(shared.epochs.oldest()).is_some() {
                        shared.table.set_key(0, &KEYS[1..]);
                        shared.table.set_head(0, RANKS[1]);
                    }
                    reader.join().expect("a key has another's rank");
                });
            }

            /// A key's bucket is moved to other slots.
            pub(crate) fn key_moves() {
                loom::model(|| {
                    let shared = shared(Some(0));
                    // One bucket, two slots: the top bit of key * displacement.
                    assert_eq!(shared.table.slot(&KEYS[..1]), 0);
                    let pin = shared.epochs.register();
                    let reader = {
                        let shared = Arc::clone(&shared);
                        thread::spawn(move || {
                            pin.enter(&shared.epochs);
                            let found = shared.table.find(&KEYS[..1]).map(|(_, rank)| rank);
                            assert_eq!(found, Some(RANKS[0]), "a key was not found");
                            pin.leave();
                        })
                    };
                    let mut limbo = Limbo::default();
                    shared.table.set_key(1, &KEYS[..1]);
                    shared.table.set_head(1, RANKS[0]);
                    shared.table.displace(0, 1 << 31 | 1);
                    assert_eq!(shared.table.slot(&KEYS[..1]), 1);
                    limbo.push(&shared.epochs, ());
                    if limbo.pop(shared.epochs.oldest()).is_some() {
                        shared.table.set_head(0, 0);
                    }
                    reader.join().expect("a key was not found");
                });
            }
        }
    };
}

pub(crate) use models;
