//! A client of MQTT 3.1.1: keeps what a client must over its connections, and says what it hears to the ledger.

use super::ledger::{Arrival, Granted, Ledger};
use super::packets::{self, Message, Packet, Will};
use crate::SECOND_NS;
use crate::stream::{LinkId, Network};
use std::collections::{BTreeMap, VecDeque};

/// Messages that a client has not seen confirmed, after which it publishes no more.
pub(super) const UNCONFIRMED: usize = 30;

/// What has become of a subscription.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// It ended before the publication of this number was made, or never began.
    None(usize),
    Asked,
    Granted,
    Leaving,
}

pub(super) struct Subscription {
    pub(super) filter: String,
    pub(super) qos: u8,
    pub(super) standing: Standing,
    /// Whether it stays as long as the session.
    pub(super) stays: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Waiting,
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
    Away,
    Greeting,
    Online,
}

pub(super) struct Client {
    pub(super) number: usize,
    pub(super) name: String,
    pub(super) clean: bool,
    pub(super) keep_alive_s: u16,
    pub(super) subscriptions: Vec<Subscription>,
    pub(super) state: State,
    pub(super) link: LinkId,
    /// When it does something by itself.
    pub(super) next_ns: i64,
    /// What topics have kept for it, by the number of the message.
    pub(super) replayed: BTreeMap<String, usize>,
    inbox: Vec<u8>,
    outbound: VecDeque<Outbound>,
    /// Messages of QoS 2 that it has and the broker has not released.
    held: BTreeMap<u16, usize>,
    /// Subscriptions that are asked for or ended, by the identifier of the question.
    questions: BTreeMap<u16, Vec<usize>>,
    id: u16,
    heard_ns: i64,
    said_ns: i64,
    /// Bytes said on this connection.
    said: u64,
}

/// Where a client acts.
pub(super) struct Surroundings<'s> {
    pub(super) network: &'s mut Network,
    pub(super) ledger: &'s mut Ledger,
    pub(super) now_ns: i64,
}

impl Client {
    pub(super) fn new(number: usize, clean: bool, keep_alive_s: u16, filters: &[(&str, u8, bool)]) -> Client {
        let subscription = |(filter, qos, stays): &(&str, u8, bool)| Subscription {
            filter: (*filter).to_owned(),
            qos: *qos,
            standing: Standing::None(0),
            stays: *stays,
        };
        Client {
            number,
            name: format!("c{number}"),
            clean,
            keep_alive_s,
            subscriptions: filters.iter().map(subscription).collect(),
            state: State::Away,
            link: 0,
            next_ns: 0,
            replayed: BTreeMap::new(),
            inbox: Vec::new(),
            outbound: VecDeque::new(),
            held: BTreeMap::new(),
            questions: BTreeMap::new(),
            id: 0,
            heard_ns: 0,
            said_ns: 0,
            said: 0,
        }
    }

    fn say(&mut self, to: &mut Surroundings<'_>, bytes: &[u8]) {
        to.network.say(self.link, bytes, to.now_ns);
        self.said += bytes.len() as u64;
        self.said_ns = to.now_ns;
    }

    /// An identifier that nothing else has.
    fn next_id(&mut self) -> u16 {
        loop {
            self.id = self.id % 65_535 + 1;
            let taken = self.outbound.iter().any(|outbound| outbound.id == self.id);
            if !taken && !self.questions.contains_key(&self.id) {
                return self.id;
            }
        }
    }

    /// Begins a connection.
    pub(super) fn connect(&mut self, to: &mut Surroundings<'_>, will: Option<&Will>) {
        if self.clean {
            // The broker forgets it, and so does the client: what it has not confirmed may not have arrived.
            for outbound in self.outbound.drain(..).filter(|outbound| outbound.stage != Stage::Released) {
                to.ledger.forgive(outbound.number);
            }
            self.held.clear();
            for subscription in &mut self.subscriptions {
                subscription.standing = Standing::None(0);
            }
        }
        self.link = to.network.call(to.now_ns);
        self.said = 0;
        self.inbox.clear();
        self.questions.clear();
        self.state = State::Greeting;
        self.heard_ns = to.now_ns;
        self.say(to, &packets::connect(&self.name, self.clean, self.keep_alive_s, will));
    }

    /// Says good-bye; how many bytes it has said on this connection then.
    pub(super) fn disconnect(&mut self, to: &mut Surroundings<'_>) -> u64 {
        self.say(to, &packets::DISCONNECT);
        to.network.hang_up(self.link, to.now_ns);
        self.state = State::Away;
        self.said
    }

    /// Is gone without a word.
    pub(super) fn abandon(&mut self, to: &mut Surroundings<'_>) {
        to.network.abandon(self.link, to.now_ns);
        self.state = State::Away;
    }

    /// Whether nothing is on its way to or from it.
    pub(super) fn is_settled(&self) -> bool {
        self.state == State::Online && self.outbound.is_empty() && self.held.is_empty() && self.questions.is_empty()
    }

    pub(super) fn state_in_words(&self) -> String {
        let stages: Vec<(u16, usize, Stage)> =
            self.outbound.iter().map(|outbound| (outbound.id, outbound.number, outbound.stage)).collect();
        format!("{}: {:?}, outbound {stages:?}, held {:?}", self.name, self.state, self.held)
    }

    pub(super) fn may_publish(&self) -> bool {
        self.outbound.len() < UNCONFIRMED
    }

    /// Sends a message, as soon as it can; one of QoS 0 now or never.
    pub(super) fn publish(&mut self, to: &mut Surroundings<'_>, number: usize) {
        let qos = to.ledger.get(number).qos;
        if qos == 0 {
            if self.state == State::Online {
                self.send(to, number, 0, false);
            }
            return;
        }
        let id = self.next_id();
        let stage = if self.state == State::Online { Stage::Sent } else { Stage::Waiting };
        self.outbound.push_back(Outbound { id, number, stage });
        if stage == Stage::Sent {
            self.send(to, number, id, false);
        }
    }

    fn send(&mut self, to: &mut Surroundings<'_>, number: usize, id: u16, again: bool) {
        let publication = to.ledger.get(number);
        publication.sent += 1;
        let (topic, content) = (publication.topic.clone(), publication.content.clone());
        let message = Message { topic, content, qos: publication.qos, again, retain: publication.retain, id };
        self.say(to, &packets::publish(&message));
    }

    /// Lets a topic keep nothing any more.
    pub(super) fn clear(&mut self, to: &mut Surroundings<'_>, topic: &str) {
        let topic = topic.to_owned();
        let message = Message { topic, content: vec![], qos: 0, again: false, retain: true, id: 0 };
        self.say(to, &packets::publish(&message));
    }

    /// Asks for all that it does not have and wants.
    fn subscribe(&mut self, to: &mut Surroundings<'_>) {
        let wanted = |subscription: &Subscription| match subscription.standing {
            Standing::None(_) => subscription.stays,
            Standing::Asked => true,
            Standing::Granted | Standing::Leaving => false,
        };
        let asked: Vec<usize> = (0..self.subscriptions.len()).filter(|at| wanted(&self.subscriptions[*at])).collect();
        self.ask(to, &asked);
        for at in 0..self.subscriptions.len() {
            if self.subscriptions[at].standing == Standing::Leaving {
                self.leave(to, at);
            }
        }
    }

    fn ask(&mut self, to: &mut Surroundings<'_>, asked: &[usize]) {
        if asked.is_empty() {
            return;
        }
        let id = self.next_id();
        let mut filters = Vec::new();
        for at in asked {
            self.subscriptions[*at].standing = Standing::Asked;
            filters.push((self.subscriptions[*at].filter.clone(), self.subscriptions[*at].qos));
        }
        self.questions.insert(id, asked.to_vec());
        self.say(to, &packets::subscribe(id, &filters));
    }

    fn leave(&mut self, to: &mut Surroundings<'_>, at: usize) {
        let id = self.next_id();
        self.subscriptions[at].standing = Standing::Leaving;
        self.questions.insert(id, vec![at]);
        self.say(to, &packets::unsubscribe(id, &self.subscriptions[at].filter.clone()));
    }

    /// Begins or ends a subscription that does not stay.
    pub(super) fn change(&mut self, to: &mut Surroundings<'_>) {
        let Some(at) = self.subscriptions.iter().position(|subscription| !subscription.stays) else { return };
        match self.subscriptions[at].standing {
            Standing::None(_) => self.ask(to, &[at]),
            Standing::Granted => self.leave(to, at),
            Standing::Asked | Standing::Leaving => {}
        }
    }

    /// Says that it is there, or gives up when nothing has come for long: whether it has.
    pub(super) fn watch(&mut self, to: &mut Surroundings<'_>) -> bool {
        let patience_ns = i64::from(self.keep_alive_s.max(6)) * SECOND_NS;
        if to.now_ns - self.heard_ns > patience_ns {
            self.abandon(to);
            return true;
        }
        if self.state == State::Online && to.now_ns - self.said_ns > patience_ns / 3 {
            self.say(to, &packets::PINGREQ);
        }
        false
    }

    /// The QoS that it is granted for a topic, as far as it can know.
    fn granted(&self, topic: &str, number: usize) -> Granted {
        let matching = || self.subscriptions.iter().filter(|mine| packets::matches(&mine.filter, topic));
        let least = matching().filter(|mine| mine.stays && mine.standing == Standing::Granted);
        let most = matching().filter(|mine| match mine.standing {
            Standing::None(since) => number < since,
            Standing::Asked | Standing::Granted | Standing::Leaving => true,
        });
        Granted { least: least.map(|mine| mine.qos).max(), most: most.map(|mine| mine.qos).max() }
    }

    /// Whether it must hear a message of this topic and QoS that is published now.
    pub(super) fn is_owed(&self, topic: &str, qos: u8) -> bool {
        !self.clean && qos > 0 && self.granted(topic, usize::MAX).least.is_some_and(|granted| granted > 0)
    }

    pub(super) fn hear(&mut self, to: &mut Surroundings<'_>, bytes: &[u8]) {
        self.heard_ns = to.now_ns;
        self.inbox.extend(bytes);
        let mut inbox = std::mem::take(&mut self.inbox);
        while let Some(packet) = packets::next(&mut inbox) {
            self.take(to, &packet);
        }
        self.inbox = inbox;
    }

    fn take(&mut self, to: &mut Surroundings<'_>, packet: &Packet) {
        assert_eq!(packet.kind == packets::CONNACK, self.state == State::Greeting, "{}: {packet:?}", self.name);
        match packet.kind {
            packets::CONNACK => self.greeted(to, packet.body[0] == 1),
            packets::PUBLISH => {
                let message = packet.message();
                // Without content a topic is told to keep nothing.
                if !message.content.is_empty() {
                    self.message(to, &message);
                }
            }
            packets::PUBACK => self.confirmed(packet.number(), 1),
            packets::PUBREC => {
                let id = packet.number();
                for outbound in self.outbound.iter_mut().filter(|outbound| outbound.id == id) {
                    outbound.stage = Stage::Released;
                }
                self.say(to, &packets::confirm(packets::PUBREL, id));
            }
            packets::PUBREL => {
                self.held.remove(&packet.number());
                self.say(to, &packets::confirm(packets::PUBCOMP, packet.number()));
            }
            packets::PUBCOMP => self.confirmed(packet.number(), 2),
            packets::SUBACK => {
                let asked = self.questions.remove(&packet.number()).expect("it has asked");
                assert_eq!(packet.body.len(), 2 + asked.len());
                for (at, granted) in asked.into_iter().zip(&packet.body[2..]) {
                    assert_eq!(*granted, self.subscriptions[at].qos);
                    self.subscriptions[at].standing = Standing::Granted;
                }
            }
            packets::UNSUBACK => {
                let asked = self.questions.remove(&packet.number()).expect("it has asked");
                self.subscriptions[asked[0]].standing = Standing::None(to.ledger.next());
            }
            packets::PINGRESP => {}
            _ => panic!("{}: {packet:?}", self.name),
        }
    }

    /// It is let in: goes on where it was.
    fn greeted(&mut self, to: &mut Surroundings<'_>, present: bool) {
        self.state = State::Online;
        if !present {
            self.held.clear();
        }
        self.subscribe(to);
        let resent: Vec<(u16, usize, Stage)> =
            self.outbound.iter().map(|outbound| (outbound.id, outbound.number, outbound.stage)).collect();
        for (id, number, stage) in resent {
            match stage {
                Stage::Waiting | Stage::Sent => self.send(to, number, id, stage == Stage::Sent),
                Stage::Released => self.say(to, &packets::confirm(packets::PUBREL, id)),
            }
        }
        for outbound in &mut self.outbound {
            if outbound.stage == Stage::Waiting {
                outbound.stage = Stage::Sent;
            }
        }
    }

    fn confirmed(&mut self, id: u16, kind: u8) {
        let stage = if kind == 1 { Stage::Sent } else { Stage::Released };
        self.outbound.retain(|outbound| outbound.id != id || outbound.stage != stage);
    }

    fn message(&mut self, to: &mut Surroundings<'_>, message: &Message) {
        let number = to.ledger.number(&message.topic, &message.content).unwrap_or_else(|| {
            let seconds = to.now_ns / SECOND_NS;
            panic!("{}: after {seconds} s something comes that all have had: {message:?}", self.name)
        });
        let arrival = Arrival { qos: message.qos, again: message.again, retain: message.retain };
        let mut is_held = false;
        if message.qos == 2
            && let Some(held) = self.held.insert(message.id, number)
        {
            assert_eq!(held, number, "{}: identifier {} has another message already", self.name, message.id);
            assert!(message.again, "{}: {number} comes again as if it were new", self.name);
            is_held = true;
        }
        if !is_held {
            to.ledger.hear(self.number, number, &arrival, self.granted(&message.topic, number));
            if message.retain {
                self.replayed.insert(message.topic.clone(), number);
            }
        }
        match message.qos {
            0 => {}
            1 => self.say(to, &packets::confirm(packets::PUBACK, message.id)),
            _ => self.say(to, &packets::confirm(packets::PUBREC, message.id)),
        }
    }
}
