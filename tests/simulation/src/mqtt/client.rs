//! A client of MQTT 3.1.1: keeps its session state over connections, and records in the ledger what it receives.

use super::ledger::{Arrival, Granted, Ledger};
use super::packets::{self, Message, Packet, Will};
use crate::SECOND_NS;
use crate::stream::{LinkId, Network};
use std::collections::{BTreeMap, VecDeque};

/// The number of unacknowledged messages at which a client publishes no more.
pub(super) const MAX_UNACKNOWLEDGED: usize = 30;

/// The state of a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SubscriptionState {
    /// It ended before the publication of this number, or never began.
    None(usize),
    Requested,
    Granted,
    Unsubscribing,
}

pub(super) struct Subscription {
    pub(super) filter: String,
    pub(super) qos: u8,
    pub(super) state: SubscriptionState,
    /// Whether it lasts as long as the session.
    pub(super) stays: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Queued,
    Sent,
    Released,
}

/// A message of QoS 1 or 2 on its way to the broker.
struct Outbound {
    id: u16,
    number: usize,
    stage: Stage,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Disconnected,
    Connecting,
    Connected,
}

pub(super) struct Client {
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) clean: bool,
    pub(super) keep_alive_s: u16,
    pub(super) subscriptions: Vec<Subscription>,
    pub(super) state: State,
    pub(super) link: LinkId,
    /// The time of its next action.
    pub(super) next_ns: i64,
    /// The retained messages that it has received: by topic, the number of the message.
    pub(super) retained: BTreeMap<String, usize>,
    inbox: Vec<u8>,
    outbound: VecDeque<Outbound>,
    /// Messages of QoS 2 that it has received and the broker has not released.
    received_qos2: BTreeMap<u16, usize>,
    /// The subscriptions of pending SUBSCRIBE and UNSUBSCRIBE packets, by packet identifier.
    pending_requests: BTreeMap<u16, Vec<usize>>,
    id: u16,
    last_received_ns: i64,
    last_sent_ns: i64,
    /// Bytes sent on this connection.
    sent_bytes: u64,
}

/// What a client acts on.
pub(super) struct Context<'s> {
    pub(super) network: &'s mut Network,
    pub(super) ledger: &'s mut Ledger,
    pub(super) now_ns: i64,
}

impl Client {
    pub(super) fn new(number: usize, clean: bool, keep_alive_s: u16, filters: &[(&str, u8, bool)]) -> Client {
        let subscription = |(filter, qos, stays): &(&str, u8, bool)| Subscription {
            filter: (*filter).to_owned(),
            qos: *qos,
            state: SubscriptionState::None(0),
            stays: *stays,
        };
        Client {
            number,
            name: format!("c{number}"),
            clean,
            keep_alive_s,
            subscriptions: filters.iter().map(subscription).collect(),
            state: State::Disconnected,
            link: 0,
            next_ns: 0,
            retained: BTreeMap::new(),
            inbox: Vec::new(),
            outbound: VecDeque::new(),
            received_qos2: BTreeMap::new(),
            pending_requests: BTreeMap::new(),
            id: 0,
            last_received_ns: 0,
            last_sent_ns: 0,
            sent_bytes: 0,
        }
    }

    fn send(&mut self, context: &mut Context<'_>, bytes: &[u8]) {
        context.network.send(self.link, bytes, context.now_ns);
        self.sent_bytes += bytes.len() as u64;
        self.last_sent_ns = context.now_ns;
    }

    /// An unused packet identifier.
    fn next_id(&mut self) -> u16 {
        loop {
            self.id = self.id % 65_535 + 1;
            let taken = self.outbound.iter().any(|outbound| outbound.id == self.id);
            if !taken && !self.pending_requests.contains_key(&self.id) {
                return self.id;
            }
        }
    }

    /// Connects.
    pub(super) fn connect(&mut self, context: &mut Context<'_>, will: Option<&Will>) {
        if self.clean {
            // A clean session: broker and client discard its state. Unacknowledged messages may not have arrived.
            for outbound in self.outbound.drain(..).filter(|outbound| outbound.stage != Stage::Released) {
                context.ledger.release(outbound.number);
            }
            self.received_qos2.clear();
            for subscription in &mut self.subscriptions {
                subscription.state = SubscriptionState::None(0);
            }
        }
        self.link = context.network.connect(context.now_ns);
        self.sent_bytes = 0;
        self.inbox.clear();
        self.pending_requests.clear();
        self.state = State::Connecting;
        self.last_received_ns = context.now_ns;
        self.send(context, &packets::connect(&self.name, self.clean, self.keep_alive_s, will));
    }

    /// Disconnects. Returns the number of bytes sent on this connection.
    pub(super) fn disconnect(&mut self, context: &mut Context<'_>) -> u64 {
        self.send(context, &packets::DISCONNECT);
        context.network.close(self.link, context.now_ns);
        self.state = State::Disconnected;
        self.sent_bytes
    }

    /// Breaks the connection without DISCONNECT.
    pub(super) fn abort(&mut self, context: &mut Context<'_>) {
        context.network.abort(self.link, context.now_ns);
        self.state = State::Disconnected;
    }

    /// Whether no message or request is pending.
    pub(super) fn is_idle(&self) -> bool {
        self.state == State::Connected
            && self.outbound.is_empty()
            && self.received_qos2.is_empty()
            && self.pending_requests.is_empty()
    }

    pub(super) fn state_text(&self) -> String {
        let stages: Vec<(u16, usize, Stage)> =
            self.outbound.iter().map(|outbound| (outbound.id, outbound.number, outbound.stage)).collect();
        format!("{}: {:?}, outbound {stages:?}, received_qos2 {:?}", self.name, self.state, self.received_qos2)
    }

    pub(super) fn may_publish(&self) -> bool {
        self.outbound.len() < MAX_UNACKNOWLEDGED
    }

    /// Sends a message now or when it is connected; one of QoS 0 only now.
    pub(super) fn publish(&mut self, context: &mut Context<'_>, number: usize) {
        let qos = context.ledger.get(number).qos;
        if qos == 0 {
            if self.state == State::Connected {
                self.send_publication(context, number, 0, false);
            }
            return;
        }
        let id = self.next_id();
        let stage = if self.state == State::Connected { Stage::Sent } else { Stage::Queued };
        self.outbound.push_back(Outbound { id, number, stage });
        if stage == Stage::Sent {
            self.send_publication(context, number, id, false);
        }
    }

    fn send_publication(&mut self, context: &mut Context<'_>, number: usize, id: u16, duplicate: bool) {
        let publication = context.ledger.get(number);
        publication.sent += 1;
        let (topic, content) = (publication.topic.clone(), publication.content.clone());
        let message = Message { topic, content, qos: publication.qos, duplicate, retain: publication.retain, id };
        self.send(context, &packets::publish(&message));
    }

    /// Removes the retained message of a topic.
    pub(super) fn clear(&mut self, context: &mut Context<'_>, topic: &str) {
        let topic = topic.to_owned();
        let message = Message { topic, content: vec![], qos: 0, duplicate: false, retain: true, id: 0 };
        self.send(context, &packets::publish(&message));
    }

    /// Requests the subscriptions that are missing.
    fn subscribe(&mut self, context: &mut Context<'_>) {
        let wanted = |subscription: &Subscription| match subscription.state {
            SubscriptionState::None(_) => subscription.stays,
            SubscriptionState::Requested => true,
            SubscriptionState::Granted | SubscriptionState::Unsubscribing => false,
        };
        let requested: Vec<usize> =
            (0..self.subscriptions.len()).filter(|at| wanted(&self.subscriptions[*at])).collect();
        self.request_subscriptions(context, &requested);
        for at in 0..self.subscriptions.len() {
            if self.subscriptions[at].state == SubscriptionState::Unsubscribing {
                self.unsubscribe(context, at);
            }
        }
    }

    fn request_subscriptions(&mut self, context: &mut Context<'_>, requested: &[usize]) {
        if requested.is_empty() {
            return;
        }
        let id = self.next_id();
        let mut filters = Vec::new();
        for at in requested {
            self.subscriptions[*at].state = SubscriptionState::Requested;
            filters.push((self.subscriptions[*at].filter.clone(), self.subscriptions[*at].qos));
        }
        self.pending_requests.insert(id, requested.to_vec());
        self.send(context, &packets::subscribe(id, &filters));
    }

    fn unsubscribe(&mut self, context: &mut Context<'_>, at: usize) {
        let id = self.next_id();
        self.subscriptions[at].state = SubscriptionState::Unsubscribing;
        self.pending_requests.insert(id, vec![at]);
        self.send(context, &packets::unsubscribe(id, &self.subscriptions[at].filter.clone()));
    }

    /// Begins or ends a subscription that does not last as long as the session.
    pub(super) fn toggle_subscription(&mut self, context: &mut Context<'_>) {
        let Some(at) = self.subscriptions.iter().position(|subscription| !subscription.stays) else { return };
        match self.subscriptions[at].state {
            SubscriptionState::None(_) => self.request_subscriptions(context, &[at]),
            SubscriptionState::Granted => self.unsubscribe(context, at),
            SubscriptionState::Requested | SubscriptionState::Unsubscribing => {}
        }
    }

    /// Sends PINGREQ in time. Returns true if it has aborted the connection, at the timeout of the other side.
    pub(super) fn check_keep_alive(&mut self, context: &mut Context<'_>) -> bool {
        let timeout_ns = i64::from(self.keep_alive_s.max(6)) * SECOND_NS;
        if context.now_ns - self.last_received_ns > timeout_ns {
            self.abort(context);
            return true;
        }
        if self.state == State::Connected && context.now_ns - self.last_sent_ns > timeout_ns / 3 {
            self.send(context, &packets::PINGREQ);
        }
        false
    }

    /// The QoS that it is granted for a topic, as far as acknowledgements determine it.
    fn granted(&self, topic: &str, number: usize) -> Granted {
        let matching = || self.subscriptions.iter().filter(|mine| packets::matches(&mine.filter, topic));
        let min = matching().filter(|mine| mine.stays && mine.state == SubscriptionState::Granted);
        let max = matching().filter(|mine| match mine.state {
            SubscriptionState::None(since) => number < since,
            SubscriptionState::Requested | SubscriptionState::Granted | SubscriptionState::Unsubscribing => true,
        });
        Granted { min: min.map(|mine| mine.qos).max(), max: max.map(|mine| mine.qos).max() }
    }

    /// Whether it must receive a message of this topic and QoS that is published now.
    pub(super) fn must_receive(&self, topic: &str, qos: u8) -> bool {
        !self.clean && qos > 0 && self.granted(topic, usize::MAX).min.is_some_and(|granted| granted > 0)
    }

    pub(super) fn receive(&mut self, context: &mut Context<'_>, bytes: &[u8]) {
        self.last_received_ns = context.now_ns;
        self.inbox.extend(bytes);
        let mut inbox = std::mem::take(&mut self.inbox);
        while let Some(packet) = packets::next(&mut inbox) {
            self.handle_packet(context, &packet);
        }
        self.inbox = inbox;
    }

    fn handle_packet(&mut self, context: &mut Context<'_>, packet: &Packet) {
        assert_eq!(packet.kind == packets::CONNACK, self.state == State::Connecting, "{}: {packet:?}", self.name);
        match packet.kind {
            packets::CONNACK => self.connected(context, packet.body[0] == 1),
            packets::PUBLISH => {
                let message = packet.message();
                // A message without content only removes the retained one.
                if !message.content.is_empty() {
                    self.receive_message(context, &message);
                }
            }
            packets::PUBACK => self.acknowledged(packet.number(), 1),
            packets::PUBREC => {
                let id = packet.number();
                for outbound in self.outbound.iter_mut().filter(|outbound| outbound.id == id) {
                    outbound.stage = Stage::Released;
                }
                self.send(context, &packets::confirm(packets::PUBREL, id));
            }
            packets::PUBREL => {
                self.received_qos2.remove(&packet.number());
                self.send(context, &packets::confirm(packets::PUBCOMP, packet.number()));
            }
            packets::PUBCOMP => self.acknowledged(packet.number(), 2),
            packets::SUBACK => {
                let requested = self
                    .pending_requests
                    .remove(&packet.number())
                    .expect("an acknowledgement answers a pending request");
                assert_eq!(packet.body.len(), 2 + requested.len());
                for (at, granted) in requested.into_iter().zip(&packet.body[2..]) {
                    assert_eq!(*granted, self.subscriptions[at].qos);
                    self.subscriptions[at].state = SubscriptionState::Granted;
                }
            }
            packets::UNSUBACK => {
                let requested = self
                    .pending_requests
                    .remove(&packet.number())
                    .expect("an acknowledgement answers a pending request");
                self.subscriptions[requested[0]].state = SubscriptionState::None(context.ledger.next());
            }
            packets::PINGRESP => {}
            _ => panic!("{}: {packet:?}", self.name),
        }
    }

    /// CONNACK has arrived: continues the session.
    fn connected(&mut self, context: &mut Context<'_>, session_present: bool) {
        self.state = State::Connected;
        if !session_present {
            self.received_qos2.clear();
        }
        self.subscribe(context);
        let resent: Vec<(u16, usize, Stage)> =
            self.outbound.iter().map(|outbound| (outbound.id, outbound.number, outbound.stage)).collect();
        for (id, number, stage) in resent {
            match stage {
                Stage::Queued | Stage::Sent => self.send_publication(context, number, id, stage == Stage::Sent),
                Stage::Released => self.send(context, &packets::confirm(packets::PUBREL, id)),
            }
        }
        for outbound in &mut self.outbound {
            if outbound.stage == Stage::Queued {
                outbound.stage = Stage::Sent;
            }
        }
    }

    fn acknowledged(&mut self, id: u16, kind: u8) {
        let stage = if kind == 1 { Stage::Sent } else { Stage::Released };
        self.outbound.retain(|outbound| outbound.id != id || outbound.stage != stage);
    }

    fn receive_message(&mut self, context: &mut Context<'_>, message: &Message) {
        let number = context.ledger.number(&message.topic, &message.content).unwrap_or_else(|| {
            let seconds = context.now_ns / SECOND_NS;
            panic!("{}: after {seconds} s a message arrives that was complete: {message:?}", self.name)
        });
        let arrival = Arrival { qos: message.qos, duplicate: message.duplicate, retain: message.retain };
        let mut is_duplicate = false;
        if message.qos == 2
            && let Some(received_qos2) = self.received_qos2.insert(message.id, number)
        {
            assert_eq!(received_qos2, number, "{}: identifier {} has another message already", self.name, message.id);
            assert!(message.duplicate, "{}: {number} comes again as if it were new", self.name);
            is_duplicate = true;
        }
        if !is_duplicate {
            context.ledger.receive(self.number, number, &arrival, self.granted(&message.topic, number));
            if message.retain {
                self.retained.insert(message.topic.clone(), number);
            }
        }
        match message.qos {
            0 => {}
            1 => self.send(context, &packets::confirm(packets::PUBACK, message.id)),
            _ => self.send(context, &packets::confirm(packets::PUBREC, message.id)),
        }
    }
}
