//! A corpus: captured packets by link type, and filters in the syntax of tcpdump. Compares every engine with the
//! others, with `bpf_filter` and with the kernel. Opens no files.

use super::{Captured, Counts, Disagreement, Guard, Kernel, Oracle, Random, Written, corpus};
use crate::bpf::Program;
use crate::candidates::candidates;
use crate::link::LinkLayer;
use crate::packet::Packet;
use crate::pcap::Pcap;
use crate::rules;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// The approximate limit on packets per filter for the kernel, which takes twenty times as long as the other engines.
const MAX_KERNEL_PACKETS: usize = 500;

/// Packets and filters.
#[derive(Clone, Debug, Default)]
pub struct Corpus {
    packets: BTreeMap<LinkLayer, Vec<Captured>>,
    expressions: BTreeSet<String>,
}

/// How the engines are compared on a corpus.
#[derive(Clone, Copy, Debug)]
pub struct CorpusComparison<'c> {
    /// The compiler of expressions, and the reference.
    pub pcap: &'c Pcap,
    /// The kernel, which is compared on a sample of the packets; none if it attaches no filters.
    pub kernel: Option<&'c Kernel>,
    /// The number of merged sets of filters per link type.
    pub sets: usize,
    /// The seed of the choice of merged sets.
    pub seed: u64,
}

/// A disagreement, and the link layer of its packet.
#[derive(Clone, Debug)]
pub struct CorpusDisagreement {
    /// The link layer.
    pub link: LinkLayer,
    /// The disagreement.
    pub disagreement: Box<Disagreement>,
}

impl fmt::Display for CorpusDisagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "engines disagree on packets of link type {}", self.link.link_type)
    }
}

impl std::error::Error for CorpusDisagreement {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.disagreement)
    }
}

impl Corpus {
    /// Adds a packet.
    pub fn add_packet(&mut self, link: LinkLayer, packet: Captured) {
        self.packets.entry(link).or_default().push(packet);
    }

    /// Adds the expressions of a file of rules.
    pub fn add_rules(&mut self, text: &str) {
        self.expressions.extend(rules::read(text).0.into_iter().map(|rule| rule.expression));
    }

    /// Adds what may be expressions in any other text: see [`candidates`].
    pub fn add_text(&mut self, text: &str) {
        self.expressions.extend(candidates(text));
    }

    /// Whether it has a packet.
    pub fn has_packets(&self) -> bool {
        !self.packets.is_empty()
    }

    /// The number of distinct expressions; libpcap may reject some.
    pub fn expressions(&self) -> usize {
        self.expressions.len()
    }

    /// The expressions that libpcap can compile, without those of equal programs.
    fn compile(&self, pcap: &Pcap, link: LinkLayer) -> Vec<Written> {
        let target = link.into();
        let mut seen = BTreeSet::new();
        let compiled = |text| pcap.compile_for(text, &target).ok();
        let programs = self.expressions.iter().filter_map(|text| Some((text, compiled(text)?)));
        let new = programs.filter(|(_, program)| {
            let words = program.instructions().into_iter().map(|own| (own.code, own.jt, own.jf, own.k));
            seen.insert(words.collect::<Vec<_>>())
        });
        new.map(|(text, program)| Written { name: text.clone(), program }).collect()
    }
}

impl CorpusComparison<'_> {
    /// Compares the engines on the packets of each link type. Calls `progress` with each link type and its counts.
    ///
    /// # Errors
    /// The first disagreement.
    pub fn run(
        &self,
        collected: &Corpus,
        guard: &mut Guard,
        mut progress: impl FnMut(LinkLayer, Counts),
    ) -> Result<Counts, CorpusDisagreement> {
        let disagrees = |program: &Program, packet: Packet<'_>, verdict: u32| {
            Some(self.pcap.prepare(program)?.run(packet)).filter(|other| *other != verdict)
        };
        let (turn, interval) = (Cell::new(0_usize), Cell::new(1_usize));
        let kernel_disagrees = |program: &Program, packet: Packet<'_>, verdict: u32| {
            turn.set(turn.get().wrapping_add(1));
            let is_sampled = turn.get().is_multiple_of(interval.get());
            self.kernel.filter(|_| is_sampled)?.disagrees(program, packet, verdict)
        };
        let oracles = [
            Oracle { name: "bpf_filter", disagrees: &disagrees },
            Oracle { name: "the kernel", disagrees: &kernel_disagrees },
        ];
        let mut random = Random::new(self.seed);
        let mut total = Counts::default();
        for (&link, packets) in &collected.packets {
            let filters = collected.compile(self.pcap, link);
            interval.set(packets.len().div_ceil(MAX_KERNEL_PACKETS));
            let counts = corpus(&filters, packets, self.sets, guard, &mut random, &oracles)
                .map_err(|disagreement| CorpusDisagreement { link, disagreement })?;
            progress(link, counts);
            total += counts;
        }
        Ok(total)
    }
}
