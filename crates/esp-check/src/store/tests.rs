//! Stored states are found again, with any number of shards and threads.

use super::*;

fn add(store: &Store, parent: Option<StateRef>, state_vector: &[u32]) -> Insertion {
    store.insert(&mut PackedStates::default(), parent, state_vector, signature(hash(state_vector)))
}

/// Numbers of every length at every position of a word, adjacent to each other.
#[test]
fn packed_numbers_are_read_again() {
    let state_vector: Vec<u32> =
        (0..32).flat_map(|bits| [1u32 << bits, (1u32 << bits) - 1, 0, u32::MAX >> bits]).collect();
    for start in 0..state_vector.len() {
        for end in start..=state_vector.len() {
            let mut words = vec![7];
            pack(&state_vector[start..end], &mut words);
            let mut read = vec![0; end - start];
            unpack(words[1..].iter().copied(), &mut read);
            assert_eq!(read, state_vector[start..end]);
            let bytes: u32 = read.iter().map(|number| (32 - (number | 1).leading_zeros()).div_ceil(7)).sum();
            assert_eq!(words.len() - 1, bytes.div_ceil(4) as usize);
        }
    }
}

fn states_and_parents(compaction: Compaction, shards: usize) {
    let store = Store::new(3, compaction, shards);
    let mut added = Vec::new();
    let numbers_of = |number: u32| [number, number % 7 * 1000, u32::MAX - number];
    for number in 0..100_000u32 {
        let parent = added.last().copied();
        match add(&store, parent, &numbers_of(number)) {
            Insertion::New(state) => added.push(state),
            other => panic!("{number} {other:?}"),
        }
    }
    let mut read = [0; 3];
    let signatures = store.signatures(&added);
    for (number, state) in added.iter().enumerate() {
        let state_vector = numbers_of(number as u32);
        if store.keeps_full_states() {
            store.read(*state, &mut read);
            assert_eq!(read, state_vector);
        }
        assert_eq!(signatures[number], signature(hash(&state_vector)));
        assert_eq!(add(&store, None, &state_vector), Insertion::Known(*state));
        assert_eq!(store.parent(*state), added[number.saturating_sub(1)]);
    }
    assert_eq!(store.count(), 100_000);
    let shares: Vec<usize> = store.shards.iter().map(|shard| shard.states.load(Ordering::Relaxed)).collect();
    assert!(shares.iter().all(|share| share * shards > 90_000), "{shares:?}");
}

#[test]
fn states_are_found_again_with_their_numbers_and_parents() {
    states_and_parents(Compaction::Off, 1);
    states_and_parents(Compaction::Off, 3);
}

#[test]
fn states_are_found_again_by_their_signatures() {
    states_and_parents(Compaction::On, 1);
    states_and_parents(Compaction::On, 3);
}

#[test]
fn a_state_that_is_twice_in_a_batch_is_inserted_once() {
    let store = Store::new(1, Compaction::Off, 1);
    let (mut batch, mut found) = (PackedStates::default(), Vec::new());
    for number in [5, 6, 5] {
        batch.push(None, &[number], signature(hash(&[number])));
    }
    store.insert_all(0, &batch, &mut |_, added| found.push(added));
    let [Insertion::New(five), Insertion::New(_), Insertion::Known(known)] = found[..] else { panic!("{found:?}") };
    assert_eq!(five, known);
}

#[test]
fn of_concurrent_insertions_of_a_state_one_is_new() {
    let store = Store::new(2, Compaction::Off, 2);
    let new = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for number in 0..20_000u32 {
                    if let Insertion::New(_) = add(&store, None, &[number / 3, number * 5]) {
                        new.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!((store.count(), new.into_inner()), (20_000, 20_000));
}

/// A first table of 2^15 slots is rebuilt once it is three quarters full, unless both would take more than the limit.
#[test]
fn tables_do_not_grow_beyond_the_limit() {
    for (max_bytes, states) in [(None, 100_000), (Some(900_000), 24_576), (Some(0), 0)] {
        let store = Store::new(1, Compaction::Off, 1).limited(max_bytes);
        let new = (0..100_000).filter(|number| matches!(add(&store, None, &[*number]), Insertion::New(_))).count();
        // A table grows before the window that could exceed it.
        assert!(new <= states && new + WINDOW > states, "{new} states in {max_bytes:?} bytes");
        assert_eq!(store.count(), new);
    }
}
