//! A client of the MQTT broker (examples/mqtt) says good-bye and comes again before the broker has looked at either.

use super::packets::{self, Message, Packet};
use crate::node::{Engine, Node, compile_for};
use quaject_esp_exec::datum::Datum;
use std::collections::BTreeMap;

const BROKER: &str = "examples/mqtt/broker.esp";
/// Places of connections: who listens, who goes, and the same client again.
const LISTENER: u32 = 0;
const OLD: u32 = 1;
const NEW: u32 = 2;

/// Lets the broker hear an event of a connection, and others before it rests.
fn tell(node: &mut Node<'_>, place: u32, case: &str, content: Option<Vec<u8>>) {
    let events = node.channel("eventC");
    let event = Datum::Union(node.case(events, 1, case), content.map(|bytes| Box::new(Datum::Bytes(bytes))));
    node.tell(events, vec![Datum::Pid(node.first_instance(events) + place), event]);
}

/// Lets the broker rest: the packets that it has said since, by place, and the places of connections that it has closed.
fn rest(node: &mut Node<'_>) -> (BTreeMap<u32, Vec<Packet>>, Vec<u32>) {
    node.run(0);
    let (requests, first) = (node.channel("sendC"), node.first_instance(node.channel("eventC")));
    let data = node.case(requests, 1, "data");
    let (mut said, mut closed) = (BTreeMap::<u32, Vec<Packet>>::new(), vec![]);
    while let Some((_, message)) = node.heard() {
        let [Datum::Pid(instance), Datum::Union(case, content)] = &message[..] else { panic!("{message:?}") };
        let Some(Datum::Bytes(bytes)) = content.as_deref() else {
            closed.push(*instance - first);
            continue;
        };
        assert_eq!(*case, data);
        let mut bytes = bytes.clone();
        said.entry(*instance - first).or_default().extend(packets::next(&mut bytes));
        assert!(bytes.is_empty(), "a packet is said whole");
    }
    (said, closed)
}

fn message(content: u8) -> Vec<u8> {
    let topic = "t".to_owned();
    packets::publish(&Message { topic, content: vec![content], qos: 0, again: false, retain: false, id: 0 })
}

/// What the listener hears of a client that says so many messages and this, and comes again before the broker has rested.
fn heard_of(engine: Engine, messages: u8, last: &[u8]) -> Vec<(String, Vec<u8>)> {
    let program = compile_for(engine, BROKER);
    let mut node = Node::on(engine, &program);
    for place in [LISTENER, OLD, NEW] {
        tell(&mut node, place, "opened", None);
    }
    let will = ("w".to_owned(), b"gone".to_vec(), 0);
    let filters = [("t".to_owned(), 0), ("w".to_owned(), 0)];
    let listens = [packets::connect("listener", true, 0, None), packets::subscribe(1, &filters)].concat();
    tell(&mut node, LISTENER, "data", Some(listens));
    tell(&mut node, OLD, "data", Some(packets::connect("same", true, 0, Some(&will))));
    rest(&mut node);
    let mut says: Vec<u8> = (0..messages).flat_map(message).collect();
    says.extend(last);
    tell(&mut node, OLD, "data", Some(says));
    tell(&mut node, NEW, "data", Some(packets::connect("same", true, 0, None)));
    // What comes so late may be heard or not, and keeps nobody from going on.
    tell(&mut node, OLD, "data", Some(message(u8::MAX)));
    let (said, closed) = rest(&mut node);
    assert_eq!(closed, [OLD]);
    assert_eq!(said[&NEW][0].kind, packets::CONNACK);
    let heard = said.get(&LISTENER).into_iter().flatten().map(Packet::message);
    heard.map(|message| (message.topic, message.content)).collect()
}

#[test]
fn who_takes_leave_and_comes_again_at_once_has_taken_leave() {
    for engine in [Engine::Interpreter, Engine::Best] {
        for messages in [0, 1, 2, 3, 10, 100] {
            let said: Vec<_> = (0..messages).map(|content| ("t".to_owned(), vec![content])).collect();
            let heard = heard_of(engine, messages, &packets::DISCONNECT);
            assert_eq!(heard, said, "{engine:?}, {messages} messages and DISCONNECT");
        }
    }
}

#[test]
fn who_comes_again_without_leave_has_a_will() {
    for engine in [Engine::Interpreter, Engine::Best] {
        for messages in [0, 1, 100] {
            // The beginning of a packet that will never be whole.
            for last in [&[][..], &packets::DISCONNECT[..1]] {
                let heard = heard_of(engine, messages, last);
                let wills = heard.iter().filter(|(topic, content)| topic == "w" && content == b"gone").count();
                assert_eq!(wills, 1, "{engine:?}, {messages} messages and {last:?}: {heard:?}");
                assert_eq!(heard.last().map(|(topic, _)| topic.as_str()), Some("w"), "the will comes last");
            }
        }
    }
}
