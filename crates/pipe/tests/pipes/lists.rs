//! Gather and scatter: however data are cut on both sides, what comes out is what comes out of data that lie together.

use crate::support::{Guarded, Place, alphabet, composers, engines, fill};
use quaject_pipe::{Error, Key, Options, RunReport, Step, Store, cross, reference};
use quaject_test_support::{Effort, Random};

/// Cuts `length` bytes at random places, some of them next to each other, some pieces empty.
fn cut(random: &mut Random, length: usize) -> Vec<usize> {
    let max = [1, 3, 9, 40, 200][random.index(5)];
    let (mut pieces, mut left) = (Vec::new(), length);
    while left > 0 {
        let piece = random.index(max + 1).min(left);
        pieces.push(piece);
        left -= piece;
    }
    pieces
}

#[test]
fn however_data_are_cut_the_result_is_the_same() {
    let mut random = Random(0x2545_f491_4f6c_dd1d);
    let composers = engines();
    let steps = alphabet();
    for round in 0..Effort::wanted().pick(1_000, 6_000, 2_000_000) {
        let mut list: Vec<Step> = (0..random.index(5)).map(|_| steps[random.index(steps.len())].clone()).collect();
        if random.index(3) == 0 {
            list.push(Step::Copy);
        }
        let (name, composer) = &composers[round % composers.len()];
        let pipe = composer.compose(&list).expect("the steps are a pipe");
        let length = random.index(700);
        let mut data = vec![0; length];
        fill(&mut random, &mut data);
        let mut key = vec![0; length];
        fill(&mut random, &mut key);
        let streams = vec![&key[..]; pipe.streams()];
        let mut sources = Vec::new();
        let mut rest = &data[..];
        for piece in cut(&mut random, length) {
            let (now, later) = rest.split_at(piece);
            sources.push(now);
            rest = later;
        }
        let cuts = if pipe.writes() { cut(&mut random, length) } else { Vec::new() };
        let mut targets: Vec<Vec<u8>> = cuts.iter().map(|piece| vec![0; *piece]).collect();
        let options = Options { streams: &streams, store: Some(Store::ALL[round % 3]), ..Options::default() };
        let mut runner = pipe.runner();
        let found = *runner.run_lists(&sources, &mut targets, options).expect("the lengths are right");
        let mut expected = data.clone();
        let report = reference::run(pipe.steps(), &mut expected, &streams);
        let case = format!("{name} {list:?} {:?} to {cuts:?}", sources.iter().map(|one| one.len()).collect::<Vec<_>>());
        assert!(report == found, "{case}: {found:x?} and not {report:x?}");
        assert!(!pipe.writes() || targets.concat() == expected, "{case}");
    }
}

/// The buffer for a unit that a border divides must not make a reader go beyond the border.
#[test]
fn pieces_end_at_guard_pages() {
    let composer = &composers()[0].1;
    let pipe = composer.compose(&[Step::Copy, Step::Checksum, Step::Crc32c, Step::Swap64]).expect("steps are a pipe");
    let mut random = Random(7);
    let (mut one, mut two, mut out) = (Guarded::new(1), Guarded::new(1), Guarded::new(1));
    for first in 0..80 {
        for second in [0, 1, 7, 8, 63, 64, 65] {
            fill(&mut random, one.at(Place::End, first));
            fill(&mut random, two.at(Place::End, second));
            let mut expected = [&*one.at(Place::End, first), &*two.at(Place::End, second)].concat();
            let report = reference::run(pipe.steps(), &mut expected, &[]);
            let sources = [&*one.at(Place::End, first), &*two.at(Place::End, second)];
            let mut targets = [out.at(Place::End, first + second)];
            let mut runner = pipe.runner();
            assert_eq!(runner.run_lists(&sources, &mut targets, Options::default()), Ok(RunReport::from(&report)));
            assert_eq!(targets[0], expected);
        }
    }
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_written() {
    let composer = &composers()[0].1;
    let pipe = composer.compose(&[Step::Copy, Step::Xor(Key::Stream)]).expect("steps are a pipe");
    let mut runner = pipe.runner();
    let sources = [&[1_u8, 2, 3][..]];
    let mut target = [9_u8; 2];
    let short = [&[0_u8][..]];
    let options = Options { streams: &short, ..Options::default() };
    assert_eq!(
        runner.run_lists(&sources, &mut [&mut target[..]], options),
        Err(Error::Target { source: 3, target: 2 })
    );
    let mut target = [9_u8; 3];
    let refused = runner.run_lists(&sources, &mut [&mut target[..]], options);
    assert_eq!(refused, Err(Error::StreamLength { stream: 0, length: 1, data: 3 }));
    let refused = runner.run_lists(&sources, &mut [&mut target[..]], Options::default());
    assert_eq!(refused, Err(Error::Streams { wanted: 1, given: 0 }));
    assert_eq!(target, [9; 3]);
    let observer = composer.compose(&[Step::Count]).expect("steps are a pipe");
    assert_eq!(observer.run(&[1, 2, 3], &mut target), Err(Error::Target { source: 0, target: 3 }));
    let nine = vec![Step::Copy; 9];
    assert_eq!(composer.compose(&nine).err(), Some(Error::TooManySteps(9)));
    assert_eq!(composer.compose(&vec![Step::Xor(Key::Stream); 5]).err(), Some(Error::TooManyStreams(5)));
    assert_eq!(Key::repeat(&[1, 2, 3]), Err(Error::KeyLength(3)));
}

#[test]
fn pieces_are_one_run() {
    for (name, composer) in engines() {
        let pipe =
            composer.compose(&[Step::Crc32c, Step::Swap32, Step::Checksum, Step::Count]).expect("steps are a pipe");
        let mut data = vec![0; 1003];
        fill(&mut Random(5), &mut data);
        let mut target = vec![0; data.len()];
        let whole = pipe.run(&data, &mut target).expect("the lengths are equal");
        let mut runner = pipe.runner();
        for size in [8, 64, 304, 1000, 1003] {
            let mut out = vec![0; data.len()];
            let mut pass = runner.start();
            for (from, to) in data.chunks(size).zip(out.chunks_mut(size)) {
                pass.piece(from, to, Options::default()).expect("pieces are multiples of eight");
            }
            if !data.len().is_multiple_of(8) {
                assert_eq!(pass.piece(&[1], &mut [0], Options::default()), Err(Error::Piece { before: 1003 }));
            }
            assert_eq!((pass.end(), &out), (&whole, &target), "{name}");
        }
    }
}

/// More bytes than code is given at once.
#[test]
fn long_data_are_one_run() {
    let composer = &composers()[0].1;
    let pipe = composer.compose(&[Step::Checksum, Step::Crc32c, Step::Count]).expect("steps are a pipe");
    let mut data = vec![0; (64 << 20) + 1003];
    fill(&mut Random(7), &mut data);
    let mut runner = pipe.runner();
    let mut pass = runner.start();
    for piece in data.chunks(1 << 20) {
        pass.piece(piece, &mut [], Options::default()).expect("pieces are multiples of eight");
    }
    assert_eq!(pass.end(), &pipe.run(&data, &mut []).expect("the pipe writes nothing"));
}

/// What a run at once has left in the runner is not part of a run in pieces after it, nor the other way round.
#[test]
fn runs_do_not_see_each_other() {
    let lists = [vec![Step::Checksum], vec![Step::Copy, Step::Checksum, Step::Checksum, Step::Count, Step::Crc32c]];
    for (composer, steps) in engines().iter().flat_map(|(_, composer)| lists.iter().map(move |steps| (composer, steps)))
    {
        let pipe = composer.compose(steps).expect("steps are a pipe");
        let mut data = vec![0; 777];
        fill(&mut Random(9), &mut data);
        let mut target = vec![0; if pipe.writes() { data.len() } else { 0 }];
        let (nothing, whole) = (pipe.run(&[], &mut []), pipe.run(&data, &mut target));
        let (nothing, whole) = (nothing.expect("nothing is as long"), whole.expect("the lengths are equal"));
        let mut runner = pipe.runner();
        for _ in 0..2 {
            assert_eq!(runner.run(&data, &mut target), Ok(RunReport::from(&whole)));
            assert_eq!(runner.start().end(), &nothing);
            let mut pass = runner.start();
            pass.piece(&data, &mut target, Options::default()).expect("the lengths are equal");
            assert_eq!(pass.end(), &whole);
            assert_eq!(runner.run(&[], &mut []), Ok(RunReport::from(&nothing)));
        }
    }
}

#[test]
fn code_is_explained() {
    let composer = &composers()[0].1;
    let pipe = composer.compose(&[Step::Copy, Step::Checksum]).expect("steps are a pipe");
    for store in Store::ALL {
        let text = pipe.explain(store).expect("there is room for the code");
        assert!(text.starts_with("copy | checksum\n") && text.contains(&format!(", {store}; ")), "{text}");
        assert!(text.lines().count() > 30 && !text.contains("  ?"), "{text}");
    }
}

#[test]
fn without_code_memory_pipes_are_not_explained() {
    let pipe = cross::reference_composer().compose(&[Step::Checksum]).expect("steps are a pipe");
    let error = pipe.explain(Store::Cached).expect_err("there is no code");
    assert_eq!((error.code(), error.to_string().as_str()), ("P0301", "generated code: no code memory on this system"));
}

/// Functions for other stores are composed when they are first wanted, by several threads at once here.
#[test]
fn threads_share_a_pipe() {
    let composer = &composers()[0].1;
    let mut data = vec![0; 5000];
    fill(&mut Random(11), &mut data);
    for _ in 0..Effort::wanted().pick(20, 100, 10_000) {
        let pipe = composer.compose(&[Step::Swap16, Step::Crc32c, Step::Checksum]).expect("steps are a pipe");
        let run = |store: Store| {
            let mut target = vec![0; data.len()];
            let options = Options { store: Some(store), ..Options::default() };
            (pipe.run_with(&data, &mut target, options).expect("the lengths are equal"), target)
        };
        let outcomes: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..6)
                .map(|number| {
                    scope.spawn({
                        let run = &run;
                        move || run(Store::ALL[number % 3])
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("no run panics")).collect()
        });
        assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
    }
}
