//! What has been published and who has heard it: finds every message that comes too often, to the wrong one, out of order, or never.
//! Knows no packets.

use std::collections::{BTreeMap, BTreeSet};

/// Something that was published, by its number, which its content tells.
pub(super) struct Publication {
    pub(super) topic: String,
    pub(super) content: Vec<u8>,
    pub(super) qos: u8,
    pub(super) retain: bool,
    /// How often its publisher has sent it.
    pub(super) sent: u64,
    /// Its place among all, which wills have when their connection ends: a later one may reach the broker before them.
    place: usize,
    /// Whether it is the will of a connection that has not ended.
    waits: bool,
    /// The subscribers that must hear it.
    owed: BTreeSet<usize>,
    heard: BTreeMap<usize, Hearing>,
}

/// What a subscriber has heard of a publication.
#[derive(Default, Clone, Copy)]
struct Hearing {
    /// As new ones, and as those that were sent before.
    fresh: u64,
    again: u64,
}

/// How a message has come.
pub(super) struct Arrival {
    pub(super) qos: u8,
    pub(super) again: bool,
    pub(super) retain: bool,
}

#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Heard {
    pub(super) by_qos: [u64; 3],
    pub(super) again: u64,
    pub(super) replayed: u64,
    pub(super) wills: u64,
}

/// What may be wanted of a subscriber with a message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    /// The largest QoS of subscriptions that surely are there, and of those that may be.
    pub(super) least: Option<u8>,
    pub(super) most: Option<u8>,
}

#[derive(Default)]
pub(super) struct Ledger {
    /// By number.
    all: BTreeMap<usize, Publication>,
    next: usize,
    places: usize,
    /// The last that came for the first time: by subscriber, topic, QoS of the publication.
    last: BTreeMap<(usize, String, u8), usize>,
    pub(super) heard: Heard,
}

impl Ledger {
    /// A new publication; `owed` are the subscribers that must hear it.
    pub(super) fn publish(&mut self, topic: &str, qos: u8, retain: bool, size: usize, owed: BTreeSet<usize>) -> usize {
        let number = self.next;
        self.next += 1;
        self.places += 1;
        let place = self.places;
        let mut content = number.to_string().into_bytes();
        content.push(b' ');
        let filling = size.saturating_sub(content.len());
        content.extend((b'a'..=b'z').cycle().skip(number % 26).take(filling));
        let topic = topic.to_owned();
        let publication =
            Publication { topic, content, qos, retain, sent: 0, place, waits: false, owed, heard: BTreeMap::new() };
        self.all.insert(number, publication);
        number
    }

    /// The number of the next publication.
    pub(super) fn next(&self) -> usize {
        self.next
    }

    pub(super) fn get(&mut self, number: usize) -> &mut Publication {
        self.all.get_mut(&number).expect("it is not settled")
    }

    /// A will, which may never be published.
    pub(super) fn will(&mut self, topic: &str, qos: u8, size: usize) -> usize {
        let number = self.publish(topic, qos, false, size, BTreeSet::new());
        self.get(number).waits = true;
        number
    }

    /// A connection has ended, and its will is published for these subscribers; or never, for none.
    pub(super) fn execute(&mut self, number: usize, subscribers: Option<BTreeSet<usize>>) {
        self.places += 1;
        let place = self.places;
        let publication = self.get(number);
        publication.waits = false;
        publication.place = place;
        if let Some(subscribers) = subscribers {
            publication.sent = 1;
            publication.owed = subscribers;
        }
    }

    /// Nobody has to hear it any more: its publisher has forgotten it.
    pub(super) fn forgive(&mut self, number: usize) {
        self.get(number).owed.clear();
    }

    /// The number of what has come; none if nothing such can come any more.
    pub(super) fn number(&self, topic: &str, content: &[u8]) -> Option<usize> {
        let digits = content.split(|byte| *byte == b' ').next().unwrap_or_default();
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<usize>().ok());
        let number = number.unwrap_or_else(|| panic!("nobody has published {content:?}"));
        let publication = self.all.get(&number)?;
        assert_eq!(publication.topic, topic, "{number} has another topic");
        assert!(publication.content == content, "{number} has other bytes");
        Some(number)
    }

    /// A subscriber has heard it; of QoS 2 only what it does not hold.
    pub(super) fn hear(&mut self, who: usize, number: usize, arrival: &Arrival, granted: Granted) {
        let publication = self.all.get_mut(&number).expect("it was looked for");
        let what = format!("{number} at {} of QoS {} to {who}", publication.topic, publication.qos);
        let most = granted.most.unwrap_or_else(|| panic!("{what}, who has not subscribed to it"));
        let (least, most) = (publication.qos.min(granted.least.unwrap_or(0)), publication.qos.min(most));
        // What a topic has kept comes with the QoS of the one subscription that asks for it.
        let least = if arrival.retain { 0 } else { least };
        assert!((least..=most).contains(&arrival.qos), "{what} with {}, {granted:?}", arrival.qos);
        assert!(publication.sent > 0, "{what} before it was published");
        let hearing = publication.heard.entry(who).or_default();
        let first = hearing.fresh + hearing.again == 0;
        self.heard.by_qos[usize::from(arrival.qos)] += 1;
        if arrival.retain {
            assert!(publication.retain, "{what} was not to be retained");
            self.heard.replayed += 1;
            return;
        }
        self.heard.wills += u64::from(publication.topic.starts_with("will/"));
        if arrival.again {
            assert!(arrival.qos > 0, "{what}, again");
            hearing.again += 1;
            self.heard.again += 1;
        } else {
            hearing.fresh += 1;
        }
        // A publisher that has not heard of it may send QoS 1 again, and then it is new to the broker.
        let times = if publication.qos == 2 { 1 } else { publication.sent };
        assert!(hearing.fresh <= times, "{what} comes {} times, and was sent {times} times", hearing.fresh);
        let once = publication.qos == 2 && arrival.qos == 2;
        assert!(!once || hearing.fresh + hearing.again == 1, "{what} comes more than once");
        if first {
            // Who has missed the first sending may hear the second after what came between them.
            let missed = publication.sent > 1 && !publication.owed.contains(&who);
            let last = self.last.entry((who, publication.topic.clone(), publication.qos)).or_insert(0);
            assert!(missed || *last < publication.place, "{what} comes after a later one");
            *last = publication.place.max(*last);
        }
    }

    /// All is quiet: what had to arrive has arrived. Forgets all but wills that wait and what topics keep.
    pub(super) fn settle(&mut self) {
        for (number, publication) in &self.all {
            for who in &publication.owed {
                let heard = publication.heard.get(who).is_some_and(|hearing| hearing.fresh + hearing.again > 0);
                assert!(heard, "{number} at {} of QoS {} never came to {who}", publication.topic, publication.qos);
            }
        }
        let kept: BTreeSet<usize> = self.kept().into_values().collect();
        self.all.retain(|number, publication| publication.waits || kept.contains(number));
        self.last.clear();
    }

    /// The number of the message that each topic keeps, once all is settled.
    pub(super) fn kept(&self) -> BTreeMap<String, usize> {
        let kept = self.all.iter().filter(|(_, publication)| publication.retain && publication.sent > 0);
        kept.map(|(number, publication)| (publication.topic.clone(), *number)).collect()
    }
}
