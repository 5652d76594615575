//! Rules of prefixes and ranges, by the thousand: the classifier agrees with the filters evaluated one by one.

use quaject_filter::fuzz::Random;
use quaject_filter::{Classifier, Engine, Expression, Filter, Id, Match, Packet, Scope};
use quaject_test_support::Effort;

/// Addresses are in few networks, so that rules overlap and packets match them.
fn address(random: &mut Random) -> u32 {
    let network = *random.pick(&[0x0a00_0000, 0x0a01_0000, 0xc0a8_0000, 0xac10_0000]);
    network | random.next() as u32 & *random.pick(&[0, 0xff, 0xff00, 0xffff])
}

fn rule(random: &mut Random) -> Filter {
    let ethernet = Scope::packet();
    let ip = ethernet.skip(14);
    let tcp = ip.after_ipv4();
    let mut tests = vec![ethernet.equals(12, 2, 0x0800)];
    for offset in [12, 16] {
        let bits = *random.pick(&[0, 8, 16, 20, 24, 26, 28, 30, 31, 32, 32, 32]);
        if bits > 0 {
            tests.push(Expression::prefix(ip.field(offset, 4), address(random), bits));
        }
    }
    if random.chance(4, 5) {
        tests.push(ip.equals(9, 1, *random.pick(&[6, 6, 17])));
    }
    for offset in [0, 2] {
        let low = random.below(1200) as u32;
        match random.below(4) {
            0 => {}
            1 => tests.push(tcp.within(offset, 2, low..=low + random.below(500) as u32)),
            2 => tests.push(tcp.within(offset, 2, 1024..=65_535)),
            _ => tests.push(tcp.equals(offset, 2, low)),
        }
    }
    Expression::All(tests).filter().expect("the fields have widths")
}

fn packet(random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; 60];
    bytes[12] = 8;
    bytes[14] = 0x40 | *random.pick(&[5, 5, 5, 6, 15]);
    bytes[23] = *random.pick(&[6, 6, 17, 1]);
    for at in [26, 30] {
        bytes[at..at + 4].copy_from_slice(&address(random).to_be_bytes());
    }
    let ports = 14 + 4 * usize::from(bytes[14] & 15);
    for at in [ports, ports + 2] {
        if let Some(place) = bytes.get_mut(at..at + 2) {
            place.copy_from_slice(&(random.below(1700) as u16).to_be_bytes());
        }
    }
    let length = if random.chance(1, 8) { random.below(60) } else { 60 };
    bytes.truncate(length);
    bytes
}

/// All that match, the best first, by the definition.
fn expected(rules: &[(Filter, u32)], ids: &[Option<Id>], packet: Packet<'_>) -> Vec<Id> {
    let matching = rules.iter().zip(ids).filter_map(|((filter, priority), id)| {
        let id = (*id)?;
        filter.matches(packet).then_some((std::cmp::Reverse(*priority), id))
    });
    let mut all: Vec<_> = matching.collect();
    all.sort();
    all.into_iter().map(|(_, id)| id).collect()
}

fn check(count: usize, packets: usize, priorities: u32) {
    let mut random = Random::new(count as u64);
    let rules: Vec<(Filter, u32)> =
        (0..count).map(|_| (rule(&mut random), random.below(priorities as usize) as u32)).collect();
    let classifiers = [Engine::Code, Engine::Interpreter].map(Classifier::with_engine);
    let mut ids: Vec<Option<Id>> = Vec::new();
    for classifier in &classifiers {
        let all = classifier.insert_all(rules.iter().map(|(filter, priority)| (filter, *priority)));
        ids = all.expect("there is room").into_iter().map(Some).collect();
        let stats = classifier.stats();
        // Hundreds of shapes in few stages, and in code where it is wanted.
        assert!(count < 100 || stats.groups <= 4, "{stats:?}");
        assert_eq!(stats.filters, count, "{stats:?}");
    }
    if cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        assert_eq!(classifiers[0].stats().interpreted, 0);
    }
    let mut matched = 0;
    for round in 0..3 {
        for _ in 0..packets {
            let bytes = packet(&mut random);
            let packet = Packet::new(&bytes);
            let expected = expected(&rules, &ids, packet);
            matched += expected.len();
            for classifier in &classifiers {
                let mut reader = classifier.reader();
                let mut view = reader.pin();
                assert_eq!(
                    view.classify(packet).id(),
                    expected.first().copied(),
                    "round {round} of {count}: {bytes:x?}"
                );
                let mut batch = [Match::NONE; 2];
                view.classify_batch(&[packet; 2], &mut batch);
                assert_eq!(
                    batch.map(Match::id),
                    [expected.first().copied(); 2],
                    "round {round} of {count}: {bytes:x?}"
                );
                let mut all = Vec::new();
                view.matches(packet, &mut all);
                let all: Vec<Id> = all.into_iter().filter_map(Match::id).collect();
                assert_eq!(all, expected, "round {round} of {count}: {bytes:x?}");
            }
        }
        // Some are removed; some are inserted one by one, next to those that were inserted together.
        for (at, (filter, priority)) in rules.iter().enumerate().filter(|(at, _)| at % 3 == round) {
            match ids[at].take() {
                Some(id) if at % 2 == 0 => {
                    classifiers.iter().for_each(|classifier| classifier.remove(id).expect("it is there"));
                }
                Some(id) if at < 60 => {
                    for classifier in &classifiers {
                        classifier.remove(id).expect("it is there");
                        ids[at] = Some(classifier.insert(filter, *priority).expect("there is room"));
                    }
                }
                other => ids[at] = other,
            }
        }
    }
    assert!(count < 1000 || matched > packets, "{matched} of {packets} packets");
}

/// The packets of a batch: all, all but one, or some are eligible for the tree.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mix {
    Plain,
    OneOdd,
    Any,
}

/// Batches of every length say what filters one by one say, of packets of all lengths and headers side by side; and the
/// best rules are removed from time to time.
fn check_batches(rules: &[(Filter, u32)], mut packet: impl FnMut(&mut Random) -> Vec<u8>, need: usize) {
    let mut random = Random::new(77);
    let classifier = Classifier::new();
    let all = classifier.insert_all(rules.iter().map(|(filter, priority)| (filter, *priority)));
    let mut ids: Vec<Option<Id>> = all.expect("there is room").into_iter().map(Some).collect();
    let text = classifier.explain();
    assert!(text.contains(" boxes, "), "these rules make no tree: {text}");
    let is_plain = |bytes: &[u8]| bytes.len() >= need && bytes[14] & 15 == 5;
    let mut matched = 0;
    for (length, mix) in
        (0..=130).chain([1000]).flat_map(|length| [Mix::Plain, Mix::OneOdd, Mix::Any].map(|mix| (length, mix)))
    {
        let odd = random.below(length.max(1));
        let bytes: Vec<Vec<u8>> = (0..length)
            .map(|at| {
                let mut wanted = || match mix {
                    Mix::Any => Some(packet(&mut random)),
                    Mix::Plain => Some(packet(&mut random)).filter(|own| is_plain(own)),
                    Mix::OneOdd => Some(packet(&mut random)).filter(|own| is_plain(own) == (at != odd)),
                };
                (0..100_000).find_map(|_| wanted()).expect("there are such packets")
            })
            .collect();
        let packets: Vec<Packet<'_>> = bytes.iter().map(|bytes| Packet::new(bytes)).collect();
        let mut matches = vec![Match::NONE; length];
        classifier.reader().pin().classify_batch(&packets, &mut matches);
        for (packet, own) in packets.iter().zip(&matches) {
            let expected = expected(rules, &ids, *packet).first().copied();
            assert_eq!(own.id(), expected, "in a batch of {length}, {mix:?}: {:x?}", packet.data());
            assert_eq!(classifier.reader().classify(*packet).id(), expected, "alone: {:x?}", packet.data());
            matched += usize::from(expected.is_some());
        }
        let best = matches.iter().filter_map(|own| own.id()).next();
        if let Some(id) = best.filter(|_| length % 8 == 7) {
            classifier.remove(id).expect("it is there");
            ids.iter_mut().filter(|own| **own == Some(id)).for_each(|own| *own = None);
        }
    }
    assert!(matched > 100, "{matched}");
}

fn rules(count: usize, rule: impl Fn(&mut Random) -> Filter) -> Vec<(Filter, u32)> {
    let mut random = Random::new(count as u64);
    (0..count).map(|_| (rule(&mut random), random.below(3) as u32)).collect()
}

#[test]
fn batches_of_any_length() {
    for count in [130, 300] {
        check_batches(&rules(count, rule), packet, 38);
    }
}

/// Ranges of addresses that no prefix is: their words are compared one by one, so each is several boxes.
#[test]
fn batches_of_rules_with_ranges_of_addresses() {
    let between = |random: &mut Random| {
        let ethernet = Scope::packet();
        let ip = ethernet.skip(14);
        let offset = *random.pick(&[12, 16]);
        let low = address(random);
        let high = low.saturating_add(*random.pick(&[0, 1, 0xffff, 0x1_0000, 0x1_0001, 0x2_1234, 0xff_0000]));
        let ports = ip.after_ipv4().within(2, 2, 0..=random.below(3000) as u32);
        let expression = ethernet.equals(12, 2, 0x0800) & ip.within(offset, 4, low..=high);
        let expression = if random.chance(1, 2) { expression & ports } else { expression };
        expression.filter().expect("the fields have widths")
    };
    check_batches(&rules(200, between), packet, 38);
}

/// Eight numbers of four bytes, far from each other: more words than half a record has, and three windows.
#[test]
fn batches_of_rules_with_many_numbers() {
    const OFFSETS: [u32; 8] = [0, 4, 8, 16, 20, 34, 38, 46];
    let many = |random: &mut Random| {
        let packet = Scope::packet();
        let mut tests = Vec::new();
        for offset in OFFSETS {
            let value = random.below(4) as u32 * 0x0101_0101;
            match random.below(4) {
                0 => tests.push(Expression::prefix(packet.field(offset, 4), value, 1 + random.below(32) as u32)),
                1 if offset == 20 => tests.push(packet.within(offset, 4, value.min(0x0202_0202)..=0x0202_0202)),
                _ => {}
            }
        }
        tests.push(packet.within(46, 4, 0..=0x0300_0000 | random.next() as u32 >> 8));
        Expression::All(tests).filter().expect("the fields have widths")
    };
    let packet = |random: &mut Random| {
        let mut bytes = vec![0; 50 - if random.chance(1, 8) { 1 + random.below(49) } else { 0 }];
        for place in bytes.chunks_mut(2) {
            let value = random.below(4) as u8;
            place.fill(value);
        }
        if let Some(place) = bytes.get_mut(14) {
            *place = 5;
        }
        bytes
    };
    for count in [60, 400] {
        check_batches(&rules(count, many), packet, 50);
    }
}

#[test]
fn few_rules() {
    for count in [1, 2, 7, 8, 9, 63, 64, 65, 130] {
        check(count, Effort::wanted().pick(20, 200, 20_000), 3);
    }
}

#[test]
fn a_thousand_rules() {
    check(1000, Effort::wanted().pick(20, 500, 50_000), 1);
}

#[test]
fn ten_thousand_rules() {
    if !quaject_test_support::quick_run("ten thousand rules") {
        check(10_000, Effort::wanted().pick(100, 100, 10_000), u32::MAX >> 8);
    }
}

#[test]
fn more_rules_than_a_stage_has() {
    if !quaject_test_support::quick_run("forty thousand rules") {
        check(40_000, 30, 5);
    }
}

#[test]
fn rules_of_both_versions_of_ip() {
    let ethernet = Scope::packet();
    let net = |version: u32, at: u32| {
        let header = ethernet.skip(14);
        let (kind, field) = if version == 4 { (0x0800, header.field(12, 4)) } else { (0x86dd, header.field(8, 4)) };
        (ethernet.equals(12, 2, kind) & Expression::prefix(field, at << 20, 4 + at % 28)).filter().expect("a width")
    };
    let filters: Vec<Filter> = (0..40).map(|at| net(if at % 2 == 0 { 4 } else { 6 }, at)).collect();
    let classifier = Classifier::new();
    let ids = classifier.insert_all(filters.iter().map(|filter| (filter, 0))).expect("there is room");
    let mut reader = classifier.reader();
    for at in 0..400_u32 {
        let mut packet = [0_u8; 40];
        packet[12..14].copy_from_slice(if at % 2 == 0 { &[8, 0] } else { &[0x86, 0xdd] });
        let place = if at % 2 == 0 { 26 } else { 22 };
        packet[place..place + 4].copy_from_slice(&(at << 20 | at).to_be_bytes());
        let packet = Packet::new(&packet);
        let expected = filters.iter().position(|filter| filter.matches(packet)).map(|at| ids[at]);
        assert_eq!(reader.classify(packet).id(), expected, "{at}");
    }
}

#[test]
fn a_length_that_lies_behind_what_it_moves() {
    // Shapes differ in their masks; each asks for the byte at 59, and for nothing else that far.
    let rules: Vec<(Filter, u32)> = (1..=24)
        .map(|bits| {
            let mask = u32::MAX << (32 - bits);
            let value = 0x4501_0203 & mask;
            let text = format!("[(([59:1] & 0xf) << 2) + 15:4] & {mask:#x} == {value:#x}");
            (quaject_filter::ir::parse(&text).expect("a filter"), bits)
        })
        .collect();
    for engine in [Engine::Code, Engine::Interpreter] {
        let classifier = Classifier::with_engine(engine);
        let ids = classifier.insert_all(rules.iter().map(|(filter, priority)| (filter, *priority)));
        let ids: Vec<Option<Id>> = ids.expect("there is room").into_iter().map(Some).collect();
        let mut reader = classifier.reader();
        let view = reader.pin();
        let mut matched = 0;
        for words in [0, 4, 5, 6, 15] {
            for (length, last) in (0..=64).flat_map(|length| [(length, 3), (length, 0x83)]) {
                let mut bytes = [0x55; 64];
                bytes[59] = 0x50 | words;
                let at = 15 + 4 * usize::from(words);
                if let Some(place) = bytes.get_mut(at..at + 4).filter(|_| at < 56) {
                    place.copy_from_slice(&[0x45, 1, last, 3]);
                }
                let packet = Packet::new(&bytes[..length]);
                let best = expected(&rules, &ids, packet).first().copied();
                let mut batch = [Match::NONE; 20];
                view.classify_batch(&[packet; 20], &mut batch);
                assert_eq!(view.classify(packet).id(), best, "{engine:?}, {words} words, {length} bytes");
                assert!(batch.iter().all(|own| own.id() == best), "{engine:?}, {words} words, {length} bytes, a batch");
                matched += usize::from(best.is_some());
            }
        }
        assert!(matched > 20, "{matched}");
    }
}
