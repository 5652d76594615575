//! The record of publications and receptions: detects every message that arrives too often, at a client without
//! subscription, out of order, or never. Knows no packets.

use std::collections::{BTreeMap, BTreeSet};

/// A publication. Its content begins with its number.
pub(super) struct Publication {
    pub(super) topic: String,
    pub(super) content: Vec<u8>,
    pub(super) qos: u8,
    pub(super) retain: bool,
    /// How often its publisher has sent it.
    pub(super) sent: u64,
    /// Its position in the order of publications; that of a will is determined when its connection ends.
    order: usize,
    /// Whether it is the will of a connection that has not ended.
    is_pending_will: bool,
    /// The subscribers that must receive it.
    required: BTreeSet<usize>,
    received: BTreeMap<usize, ReceiveCounts>,
}

/// How often a subscriber has received a publication.
#[derive(Default, Clone, Copy)]
struct ReceiveCounts {
    /// Without and with the DUP flag.
    fresh: u64,
    duplicate: u64,
}

/// The flags of a received message.
pub(super) struct Arrival {
    pub(super) qos: u8,
    pub(super) duplicate: bool,
    pub(super) retain: bool,
}

#[derive(Default, Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) by_qos: [u64; 3],
    pub(super) duplicate: u64,
    pub(super) retained: u64,
    pub(super) wills: u64,
}

/// The QoS that a subscriber is granted for a topic.
#[derive(Clone, Copy, Debug)]
pub(super) struct Granted {
    /// The maximal QoS of acknowledged subscriptions, and of all that may be active.
    pub(super) min: Option<u8>,
    pub(super) max: Option<u8>,
}

#[derive(Default)]
pub(super) struct Ledger {
    /// By number.
    all: BTreeMap<usize, Publication>,
    next: usize,
    orders: usize,
    /// The last publication that was received for the first time: by subscriber, topic, QoS of the publication.
    last: BTreeMap<(usize, String, u8), usize>,
    pub(super) received: Received,
}

impl Ledger {
    /// A new publication; `required` are the subscribers that must receive it.
    pub(super) fn publish(
        &mut self,
        topic: &str,
        qos: u8,
        retain: bool,
        size: usize,
        required: BTreeSet<usize>,
    ) -> usize {
        let number = self.next;
        self.next += 1;
        self.orders += 1;
        let order = self.orders;
        let mut content = number.to_string().into_bytes();
        content.push(b' ');
        let filling = size.saturating_sub(content.len());
        content.extend((b'a'..=b'z').cycle().skip(number % 26).take(filling));
        let topic = topic.to_owned();
        let publication = Publication {
            topic,
            content,
            qos,
            retain,
            sent: 0,
            order,
            is_pending_will: false,
            required,
            received: BTreeMap::new(),
        };
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
        self.get(number).is_pending_will = true;
        number
    }

    /// A connection has ended: its will is published for these subscribers, or discarded if there are none.
    pub(super) fn publish_will(&mut self, number: usize, subscribers: Option<BTreeSet<usize>>) {
        self.orders += 1;
        let order = self.orders;
        let publication = self.get(number);
        publication.is_pending_will = false;
        publication.order = order;
        if let Some(subscribers) = subscribers {
            publication.sent = 1;
            publication.required = subscribers;
        }
    }

    /// No subscriber has to receive it any more: its publisher has discarded it.
    pub(super) fn release(&mut self, number: usize) {
        self.get(number).required.clear();
    }

    /// The number of a received message; none if the message was complete and removed.
    pub(super) fn number(&self, topic: &str, content: &[u8]) -> Option<usize> {
        let digits = content.split(|byte| *byte == b' ').next().unwrap_or_default();
        let number = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<usize>().ok());
        let number = number.unwrap_or_else(|| panic!("not a publication: {content:?}"));
        let publication = self.all.get(&number)?;
        assert_eq!(publication.topic, topic, "{number} has another topic");
        assert!(publication.content == content, "{number} has other bytes");
        Some(number)
    }

    /// A subscriber has received it, with QoS 2 for the first time.
    pub(super) fn receive(&mut self, subscriber: usize, number: usize, arrival: &Arrival, granted: Granted) {
        let publication = self.all.get_mut(&number).expect("it was looked for");
        let what = format!("{number} at {} of QoS {} to {subscriber}", publication.topic, publication.qos);
        let max = granted.max.unwrap_or_else(|| panic!("{what}, subscriber has not subscribed to it"));
        let (min, max) = (publication.qos.min(granted.min.unwrap_or(0)), publication.qos.min(max));
        // A retained message has the QoS of the one subscription that requests it.
        let min = if arrival.retain { 0 } else { min };
        assert!((min..=max).contains(&arrival.qos), "{what} with {}, {granted:?}", arrival.qos);
        assert!(publication.sent > 0, "{what} before it was published");
        let counts = publication.received.entry(subscriber).or_default();
        let first = counts.fresh + counts.duplicate == 0;
        self.received.by_qos[usize::from(arrival.qos)] += 1;
        if arrival.retain {
            assert!(publication.retain, "{what} was not to be retained");
            self.received.retained += 1;
            return;
        }
        self.received.wills += u64::from(publication.topic.starts_with("will/"));
        if arrival.duplicate {
            assert!(arrival.qos > 0, "{what}, duplicate");
            counts.duplicate += 1;
            self.received.duplicate += 1;
        } else {
            counts.fresh += 1;
        }
        // Without acknowledgement the publisher may send QoS 1 again, which is a new message to the broker.
        let times = if publication.qos == 2 { 1 } else { publication.sent };
        assert!(counts.fresh <= times, "{what} comes {} times, and was sent {times} times", counts.fresh);
        let once = publication.qos == 2 && arrival.qos == 2;
        assert!(!once || counts.fresh + counts.duplicate == 1, "{what} comes more than once");
        if first {
            // A subscriber that missed the first sending may receive the second after later publications.
            let missed = publication.sent > 1 && !publication.required.contains(&subscriber);
            let last = self.last.entry((subscriber, publication.topic.clone(), publication.qos)).or_insert(0);
            assert!(missed || *last < publication.order, "{what} comes after a later one");
            *last = publication.order.max(*last);
        }
    }

    /// Checks that every required message has arrived. Removes all but pending wills and retained messages.
    pub(super) fn check_complete(&mut self) {
        for (number, publication) in &self.all {
            for subscriber in &publication.required {
                let received =
                    publication.received.get(subscriber).is_some_and(|counts| counts.fresh + counts.duplicate > 0);
                assert!(
                    received,
                    "{number} at {} of QoS {} never came to {subscriber}",
                    publication.topic, publication.qos
                );
            }
        }
        let retained: BTreeSet<usize> = self.retained().into_values().collect();
        self.all.retain(|number, publication| publication.is_pending_will || retained.contains(number));
        self.last.clear();
    }

    /// The number of the retained message of each topic, when no message is under way.
    pub(super) fn retained(&self) -> BTreeMap<String, usize> {
        let retained = self.all.iter().filter(|(_, publication)| publication.retain && publication.sent > 0);
        retained.map(|(number, publication)| (publication.topic.clone(), *number)).collect()
    }
}
