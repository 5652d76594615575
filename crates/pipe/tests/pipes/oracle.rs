//! Generated pipes against the reference, byte for byte, between guard pages.

use crate::support::{Bench, Place, alphabet, composers, engines, mixed_steps};
use quaject_pipe::{Composer, Options, Pipe, Step, Store, reference};
use quaject_test_support::{Effort, Random};

/// Every list of `length` steps; none is a step of the user's.
pub fn compositions(length: usize) -> impl Iterator<Item = Vec<Option<Step>>> {
    let steps: Vec<Option<Step>> = alphabet().into_iter().map(Some).chain([None]).collect();
    let count = steps.len().pow(length as u32);
    (0..count).map(move |number| {
        let mut rest = number;
        let next = |_| {
            let step = steps[rest % steps.len()].clone();
            rest /= steps.len();
            step
        };
        (0..length).map(next).collect()
    })
}

fn pipe(composer: &Composer, steps: &[Step]) -> Pipe {
    composer.compose(steps).unwrap_or_else(|error| panic!("{steps:?}: {error}"))
}

/// Lengths that end loops everywhere: mostly small, all below 300 again and again, some beyond.
fn some_length(random: &mut Random) -> usize {
    match random.index(8) {
        0 => random.index(20),
        1 => 64 * random.index(20) + random.index(3),
        2 => 4096 - 20 + random.index(40),
        _ => random.index(301),
    }
}

fn some_place(random: &mut Random) -> Place {
    if random.index(2) == 0 { Place::End } else { Place::Start(random.index(64)) }
}

/// Lists of steps that use every part of the composer at least once, and more accumulators and streams than registers.
fn samples() -> Vec<Vec<Step>> {
    let [copy, checksum, crc32c, swap16, swap32, swap64, xor, stream, count] =
        <[Step; 9]>::try_from(alphabet()).expect("there are nine kinds of steps");
    vec![
        vec![copy.clone()],
        vec![checksum.clone()],
        vec![copy.clone(), checksum.clone(), swap32.clone()],
        vec![crc32c.clone(), swap16.clone(), checksum.clone()],
        vec![swap64.clone(), xor.clone(), crc32c.clone(), count.clone()],
        vec![stream.clone(), checksum.clone(), swap16.clone(), stream.clone()],
        vec![crc32c.clone(), checksum.clone()],
        vec![checksum.clone(), swap16.clone(), crc32c.clone(), xor, checksum.clone(), stream.clone(), crc32c, count],
        vec![
            stream.clone(),
            stream.clone(),
            checksum.clone(),
            stream.clone(),
            checksum.clone(),
            stream,
            swap32,
            swap64,
        ],
    ]
}

#[test]
fn every_length_and_alignment_ends_where_it_should() {
    let mut bench = Bench::new();
    let step = Effort::wanted().pick(7, 1, 1);
    let alignments = Effort::wanted().pick(3, 5, 64);
    for (name, composer) in &engines() {
        for steps in samples() {
            let pipe = pipe(composer, &steps);
            for length in (0..=300).step_by(step).chain([511, 512, 777, 4095, 4096, 4097, 8192]) {
                for round in 0..alignments {
                    let (from, to) = match round {
                        0 => (Place::End, Place::End),
                        _ if alignments == 64 => (Place::Start(round), Place::Start((length + round) % 64)),
                        _ => (Place::Start(bench.random.index(64)), Place::Start(8 * bench.random.index(8))),
                    };
                    let store = Store::ALL[(length + round) % 3];
                    bench.check(name, &pipe, store, length, from, to);
                }
                bench.check_in_place(name, &pipe, Store::ALL[length % 3], length, Place::Start(length % 64));
            }
        }
    }
}

#[test]
fn users_steps_do_what_their_interpreter_does() {
    let mut bench = Bench::new();
    let composers = engines();
    for round in 0..Effort::wanted().pick(1_000, 8_000, 3_000_000) {
        let steps = mixed_steps(&mut bench.random);
        let (name, composer) = &composers[round % composers.len()];
        let pipe = pipe(composer, &steps);
        for run in 0..2 {
            let bytes = some_length(&mut bench.random);
            let (from, to) = (some_place(&mut bench.random), some_place(&mut bench.random));
            bench.check(name, &pipe, Store::ALL[(round + run) % 3], bytes, from, to);
        }
    }
}

#[test]
fn an_element_that_is_not_complete_stays_and_a_key_goes_on() {
    let composer = Composer::new().expect("the system gives code memory");
    let mut target = [0; 7];
    let source = [1, 2, 3, 4, 5, 6, 7];
    for (step, expected) in [
        (Step::Swap16, [2, 1, 4, 3, 6, 5, 7]),
        (Step::Swap32, [4, 3, 2, 1, 5, 6, 7]),
        (Step::Swap64, source),
        (Step::Xor(quaject_pipe::Key::repeat(&[1, 2]).expect("two bytes are a key")), [0, 0, 2, 6, 4, 4, 6]),
    ] {
        pipe(&composer, &[step]).run(&source, &mut target).expect("the lengths are right");
        assert_eq!(target, expected);
    }
}

#[test]
fn known_sums_come_out() {
    let composer = Composer::new().expect("the system gives code memory");
    let pipe = pipe(&composer, &[Step::Checksum, Step::Crc32c, Step::Count]);
    // RFC 1071, 3: the sum of these is ddf2.
    let report = pipe.run(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7], &mut []).expect("it has no target");
    assert_eq!(report.checksum(), Some(!0xddf2));
    assert_eq!(report.count(), Some(8));
    let ascending: Vec<u8> = (0..32).collect();
    let descending: Vec<u8> = (0..32).rev().collect();
    // RFC 3720, B.4, and the check value of the catalogues.
    for (data, crc) in [
        (&[0; 32][..], 0x8a91_36aa),
        (&[0xff; 32], 0x62a8_ab43),
        (&ascending, 0x46dd_794e),
        (&descending, 0x113f_db5c),
        (b"123456789", 0xe306_9283),
        (b"", 0),
    ] {
        assert_eq!(pipe.run(data, &mut []).expect("it has no target").crc32c(), Some(crc));
    }
}

/// More than code is given at once, and all ones, which is where sums overflow if they can.
#[test]
fn sums_of_many_bytes_do_not_overflow() {
    let data = vec![0xff_u8; (65 << 20) + 3];
    for (name, composer) in &composers() {
        let pipe = pipe(composer, &[Step::Checksum, Step::Count]);
        let report = pipe.run(&data, &mut []).expect("it has no target");
        // An even number of 0xffff, and 0xff00.
        assert_eq!((report.checksum(), report.count()), (Some(!0xff00), Some(data.len() as u64)), "{name}");
    }
}

/// Code adds up averages, which are rounded: what is rounded most, and least, in one vector of every eight and in all,
/// at sizes for which that counts most often.
#[test]
fn sums_of_averages_are_exact() {
    const PIECE: usize = 1 << 17;
    let lists =
        [vec![Step::Checksum], vec![Step::Copy, Step::Checksum], vec![Step::Checksum, Step::Swap32, Step::Checksum]];
    let words = [(0, 0), (1, 0), (0xffff, 0), (0xffff, 0xfffe), (0xffff, 0xffff), (0, 1)];
    let lengths = [512, 4096, PIECE - 8, PIECE, PIECE + 72, 2 * PIECE + 4096];
    let composers = composers();
    for (width, which) in [16, 32, 64].into_iter().flat_map(|width| [0, 5, 7].map(|which| (width, which))) {
        for (one, others) in words {
            let word = |at: usize| if at / (width / 2) % 8 == which { one } else { others };
            let data: Vec<u8> = (0..lengths[5] / 2).flat_map(|at| u16::to_le_bytes(word(at))).collect();
            for steps in &lists {
                for length in lengths {
                    let mut expected = data[..length].to_vec();
                    let report = reference::run(steps, &mut expected, &[]);
                    for (name, composer) in &composers {
                        let pipe = pipe(composer, steps);
                        let mut target = vec![0; if pipe.writes() { length } else { 0 }];
                        let options = Options { store: Some(Store::Cached), ..Options::default() };
                        let found =
                            pipe.run_with(&data[..length], &mut target, options).expect("the lengths are right");
                        assert_eq!(found, report, "{name} {steps:?} {length} bytes, {one:x} and {others:x}");
                    }
                }
            }
        }
    }
}
