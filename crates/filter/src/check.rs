//! Compares every engine on packets: `bpf_filter`, the interpreter of programs, the tests that a program was taken
//! apart into, the merged classifier in generated code and interpreted. Knows neither files nor terminals.

use crate::classifier::Classifier;
use crate::error::Error;
use crate::packet::Packet;
use crate::pcap::{Pcap, Prepared};
use crate::rules::Compiled;
use crate::types::{Engine, Id};
use std::fmt;

/// Rules whose engines are compared.
#[derive(Debug)]
pub struct RuleCheck<'p> {
    rules: Vec<Compiled>,
    /// None for programs that `bpf_filter` cannot run: see [`Pcap::prepare`].
    references: Vec<Option<Prepared<'p>>>,
    /// The same filters in the same order: they have the same numbers.
    classifiers: [(&'static str, Classifier); 2],
    ids: Vec<Id>,
}

/// What the engines say of one packet.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PacketCheck {
    /// How many rules match it.
    pub matches: u64,
    /// Where the engines disagree.
    pub differences: Vec<Difference>,
}

/// A disagreement: a defect of this library, or of libpcap.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Difference {
    /// Of the engines for one rule.
    Rule {
        /// Its name.
        name: String,
        /// Whether `bpf_filter` accepts the packet, if it can run the program.
        reference: Option<bool>,
        /// Whether the interpreter of programs does.
        program: bool,
        /// Whether the tests do.
        tests: bool,
    },
    /// Of a classifier and the separate rules.
    Classifier {
        /// Which engine.
        engine: &'static str,
        /// The filter with the best priority, and all that match.
        found: (Option<Id>, Vec<Id>),
        /// What the separate rules say.
        expected: Vec<Id>,
    },
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Difference::Rule { name, reference, program, tests } => {
                write!(f, "`{name}`: bpf_filter {reference:?}, program {program}, tests {tests}")
            }
            Difference::Classifier { engine, found: (first, all), expected } => {
                write!(f, "{engine} finds {first:?} and {all:?}, separate filters find {expected:?}")
            }
        }
    }
}

impl<'p> RuleCheck<'p> {
    /// Prepares every engine. The first rule has the highest priority.
    ///
    /// # Errors
    /// What a classifier refuses.
    pub fn new(pcap: &'p Pcap, rules: &[Compiled]) -> Result<RuleCheck<'p>, Error> {
        let filters = || rules.iter().zip((0..=u32::MAX).rev()).map(|(own, priority)| (&own.filter, priority));
        let classifiers = [("generated code", Engine::Code), ("interpreter", Engine::Interpreter)]
            .map(|(name, engine)| (name, Classifier::with_engine(engine)));
        let mut ids = Vec::new();
        for (_, classifier) in &classifiers {
            ids = classifier.insert_all(filters())?;
        }
        Ok(RuleCheck {
            references: rules.iter().map(|own| pcap.prepare(&own.program)).collect(),
            rules: rules.to_vec(),
            classifiers,
            ids,
        })
    }

    /// Compares the engines on a packet.
    pub fn packet(&self, packet: Packet<'_>) -> PacketCheck {
        let mut check = PacketCheck::default();
        let mut expected = Vec::new();
        for ((compiled, reference), id) in self.rules.iter().zip(&self.references).zip(&self.ids) {
            let program = compiled.program.run(packet) != 0;
            let reference = reference.as_ref().map(|reference| reference.run(packet) != 0);
            let tests = compiled.filter.matches(packet);
            if program != tests || reference.is_some_and(|reference| reference != program) {
                let name = compiled.rule.name.clone();
                check.differences.push(Difference::Rule { name, reference, program, tests });
            }
            if program {
                check.matches += 1;
                expected.push(*id);
            }
        }
        let mut found = Vec::new();
        for (engine, classifier) in &self.classifiers {
            let mut reader = classifier.reader();
            let mut view = reader.pin();
            let first = view.classify(packet).id();
            view.matches(packet, &mut found);
            let all: Vec<Id> = found.iter().filter_map(|found| found.id()).collect();
            if first != expected.first().copied() || all != expected {
                let expected = expected.clone();
                check.differences.push(Difference::Classifier { engine, found: (first, all), expected });
            }
        }
        check
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::LinkLayer;
    use crate::rules::{compile, read};

    #[test]
    fn a_wrong_filter_is_a_difference_of_every_engine() {
        let Ok(pcap) = Pcap::load() else { return };
        let (rules, _) = read("web: tcp port 80\nip\n");
        let (mut compiled, _) = compile(&pcap, &rules, &LinkLayer::native(1).into());
        let mut data = [0; 60];
        data[12] = 8;
        let packet = Packet::new(&data);
        let right = RuleCheck::new(&pcap, &compiled).expect("there is room").packet(packet);
        assert_eq!(right, PacketCheck { matches: 1, differences: Vec::new() });
        compiled[0].filter = compiled[1].filter.clone();
        let wrong = RuleCheck::new(&pcap, &compiled).expect("there is room").packet(packet);
        let text: Vec<String> = wrong.differences.iter().map(Difference::to_string).collect();
        assert_eq!(text.len(), 3, "{text:?}");
        assert_eq!(text[0], "`web`: bpf_filter Some(false), program false, tests true");
        assert!(text[1].starts_with("generated code finds Some(Id(0)) and [Id(0), Id(1)], separate"), "{text:?}");
    }
}
