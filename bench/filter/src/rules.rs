//! Rules with prefixes and ranges, as ClassBench makes them (Taylor and Turner, "ClassBench: A Packet Classification
//! Benchmark", ToN 2007): pairs of prefixes that nest, five classes of ports (any, high, low, a range, exact),
//! protocols. The shares are ours, near those of its seeds for access lists and for firewalls. Packets fall into rules
//! at random.

#[cfg(rte_acl)]
use crate::peers;
use crate::{LENGTH, PACKETS, Pass, STRIDE, number, report, thread_seconds};
use quaject_filter::{Classifier, Expression, Filter, Match, Packet, Scope};

/// Whose rules are imitated.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Seed {
    /// Long prefixes, ports of servers.
    Access,
    /// Any address on one side, ranges of ports.
    Firewall,
}

/// A rule, in host order; bounds are inside.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    pub addresses: [(u32, u32); 2],
    pub ports: [(u16, u16); 2],
    pub protocol: Option<u8>,
}

const ANY: (u16, u16) = (0, u16::MAX);

struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }

    /// One of some, each with its share of a hundred.
    fn share<T: Copy>(&mut self, some: &[(u32, T)]) -> T {
        let mut left = self.below(100);
        for (share, one) in some {
            if left < *share {
                return *one;
            }
            left -= share;
        }
        some[some.len() - 1].1
    }
}

/// The rules of a seed, none twice.
pub fn rules(seed: Seed, count: usize) -> Vec<Rule> {
    let mut random = Random(7);
    // Networks, so that prefixes nest.
    let networks: Vec<u32> = (0..count / 8 + 4).map(|_| random.next() & 0xffff_0000 | random.below(8) << 8).collect();
    let mut seen = std::collections::HashSet::new();
    let mut rules = Vec::new();
    while rules.len() < count {
        let mut prefix = |lengths: &[(u32, u32)]| {
            let bits = random.share(lengths);
            let network = networks[random.below(networks.len() as u32) as usize];
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            ((network | random.below(256)) & mask, bits)
        };
        let addresses = match seed {
            Seed::Access => [
                prefix(&[(4, 0), (6, 16), (10, 21), (30, 24), (10, 27), (40, 32)]),
                prefix(&[(2, 0), (8, 16), (10, 20), (35, 24), (10, 28), (35, 32)]),
            ],
            Seed::Firewall => [
                prefix(&[(35, 0), (5, 8), (10, 16), (20, 24), (5, 29), (25, 32)]),
                prefix(&[(25, 0), (5, 14), (15, 16), (20, 24), (5, 30), (30, 32)]),
            ],
        };
        let low = random.below(40_000) as u16;
        let range = (low, low + random.below(2000) as u16);
        let exact = [20, 21, 22, 25, 53, 80, 110, 123, 143, 161, 443, 993, 1433, 1521, 3306, 5060, 5432, 8080];
        let exact = exact[random.below(18) as usize];
        let classes = [ANY, (1024, u16::MAX), (0, 1023), range, (exact, exact)];
        let mut port = |shares: [u32; 5]| {
            let shares: Vec<(u32, (u16, u16))> = shares.into_iter().zip(classes).collect();
            random.share(&shares)
        };
        let ports = match seed {
            Seed::Access => [port([95, 2, 0, 1, 2]), port([30, 5, 1, 14, 50])],
            Seed::Firewall => [port([75, 12, 1, 2, 10]), port([40, 10, 2, 8, 40])],
        };
        let protocol = random.share(&[(65, Some(6)), (20, Some(17)), (3, Some(1)), (12, None)]);
        if seen.insert((addresses, ports, protocol)) {
            rules.push(Rule { addresses, ports, protocol });
        }
    }
    rules
}

/// The filter of a rule.
pub fn filter(rule: &Rule) -> Filter {
    let ethernet = Scope::packet();
    let ip = ethernet.skip(14);
    let transport = ip.after_ipv4();
    let mut tests = vec![ethernet.equals(12, 2, 0x0800)];
    for ((address, bits), offset) in rule.addresses.into_iter().zip([12, 16]) {
        if bits > 0 {
            tests.push(Expression::prefix(ip.field(offset, 4), address, bits));
        }
    }
    for (port, offset) in rule.ports.into_iter().zip([0, 2]) {
        if port != ANY {
            tests.push(transport.within(offset, 2, port.0.into()..=port.1.into()));
        }
    }
    if let Some(protocol) = rule.protocol {
        tests.push(ip.equals(9, 1, protocol.into()));
    }
    Expression::All(tests).filter().expect("the fields have widths")
}

/// Packets, each inside a rule picked at random, on lines of their own.
pub fn traffic(rules: &[Rule]) -> Vec<u8> {
    let mut random = Random(11);
    let mut bytes = vec![0; (PACKETS + 1) * STRIDE];
    let start = bytes.as_ptr().align_offset(STRIDE);
    bytes.drain(..start.min(STRIDE));
    for place in bytes.chunks_exact_mut(STRIDE).take(PACKETS) {
        let rule = &rules[random.below(rules.len() as u32) as usize];
        place[12] = 8;
        place[14] = 0x45;
        place[23] = rule.protocol.unwrap_or([6, 17][random.below(2) as usize]);
        for ((address, bits), at) in rule.addresses.into_iter().zip([26, 30]) {
            let rest = if bits == 32 { 0 } else { random.next() >> bits };
            place[at..at + 4].copy_from_slice(&(address | rest).to_be_bytes());
        }
        for ((low, high), at) in rule.ports.into_iter().zip([34, 36]) {
            let port = low + random.below(u32::from(high - low) + 1) as u16;
            place[at..at + 2].copy_from_slice(&port.to_be_bytes());
        }
    }
    bytes
}

/// One seed and number of rules, beside rte_acl.
pub fn ranges(seed: Seed, count: usize) {
    let rules = rules(seed, count);
    let bytes = traffic(&rules);
    let slices: Vec<&[u8]> = bytes.chunks_exact(STRIDE).take(PACKETS).map(|chunk| &chunk[..LENGTH]).collect();
    let views: Vec<Packet<'_>> = slices.iter().map(|slice| Packet::new(slice)).collect();
    #[cfg(rte_acl)]
    let pointers: Vec<*const u8> = slices.iter().map(|slice| slice.as_ptr()).collect();
    let filters: Vec<Filter> = rules.iter().map(filter).collect();
    let first = |packet: &Packet<'_>| filters.iter().position(|filter| filter.matches(*packet));
    let expected: Vec<u32> = views.iter().map(|packet| first(packet).map_or(0, |at| at as u32 + 1)).collect();

    let begun = thread_seconds();
    let classifier = Classifier::new();
    classifier.insert_all(filters.iter().map(|filter| (filter, 0))).expect("there is room");
    let own_build = (thread_seconds() - begun) * 1e3;
    let stats = classifier.stats();
    println!("\n{seed:?}, {count} rules: nanoseconds per packet, median (best), ratio to the first");
    println!("  built in {own_build:.1} ms, {} groups, {} KiB of tables", stats.groups, stats.table_bytes / 1024);
    #[cfg(rte_acl)]
    let [acl, wide] = ["rte_acl", "rte_acl for AVX-512"].map(|name| {
        let begun = thread_seconds();
        let acl = peers::Acl::new(&rules.iter().map(peers::Rule::of).collect::<Vec<_>>());
        println!("  {name} built in {:.1} ms", (thread_seconds() - begun) * 1e3);
        acl
    });
    let (mut single, mut several) = (classifier.reader(), classifier.reader());
    let (one, many) = (single.pin(), several.pin());
    let mut matches = [Match::NONE; 64];
    #[cfg_attr(not(rte_acl), expect(unused_mut, reason = "only peers are added"))]
    let mut contenders: Vec<(String, Pass<'_>)> = vec![
        (
            "filter, batches of 64".to_owned(),
            Box::new(|found| {
                for (packets, found) in views.chunks(64).zip(found.chunks_mut(64)) {
                    many.classify_batch(packets, &mut matches);
                    for (own, found) in matches.iter().zip(found) {
                        *found = number(*own);
                    }
                }
            }),
        ),
        (
            "filter, one".to_owned(),
            Box::new(|found| {
                for (packet, found) in views.iter().zip(found) {
                    *found = number(one.classify(*packet));
                }
            }),
        ),
    ];
    #[cfg(rte_acl)]
    peers::add_acl(&mut contenders, &pointers, &acl);
    #[cfg(rte_acl)]
    if wide.choose(peers::Vectors::Wide) {
        contenders.push((
            "rte_acl, batches of 128, AVX-512".to_owned(),
            Box::new(|found| wide.classify(&pointers, found, 128)),
        ));
    }
    report(contenders, Vec::new(), &expected);
}

/// Nothing but passes of the classifier, one packet at a time or in batches of 64.
pub fn count(seed: Seed, count: usize, one: bool, passes: usize) {
    let rules = rules(seed, count);
    let bytes = traffic(&rules);
    let views: Vec<Packet<'_>> =
        bytes.chunks_exact(STRIDE).take(PACKETS).map(|chunk| Packet::new(&chunk[..LENGTH])).collect();
    let filters: Vec<Filter> = rules.iter().map(filter).collect();
    let classifier = Classifier::new();
    classifier.insert_all(filters.iter().map(|filter| (filter, 0))).expect("there is room");
    let mut reader = classifier.reader();
    let view = reader.pin();
    let mut matches = [Match::NONE; 64];
    for _ in 0..passes {
        if one {
            for packet in &views {
                std::hint::black_box(view.classify(*packet));
            }
            continue;
        }
        for packets in views.chunks(64) {
            view.classify_batch(packets, &mut matches);
            std::hint::black_box(&matches);
        }
    }
}
