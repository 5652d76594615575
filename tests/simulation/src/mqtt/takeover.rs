//! A client of the MQTT broker (examples/mqtt) disconnects and reconnects before the broker has processed either: a
//! session takeover (MQTT 3.1.1, 3.1.4-2).

use super::packets::{self, Message, Packet};
use crate::node::{Engine, Node, compile_for};
use quaject_esp_exec::datum::Datum;
use std::collections::BTreeMap;

const BROKER: &str = "examples/mqtt/broker.esp";
/// Connections: a subscriber, the old connection of a client and its new one.
const SUBSCRIBER: u32 = 0;
const OLD: u32 = 1;
const NEW: u32 = 2;

/// Queues an event of a connection for the broker.
fn queue_event(node: &mut Node<'_>, place: u32, case: &str, content: Option<Vec<u8>>) {
    let events = node.channel("eventC");
    let event = Datum::Union(node.case(events, 1, case), content.map(|bytes| Box::new(Datum::Bytes(bytes))));
    node.offer(events, vec![Datum::Pid(node.first_instance(events) + place), event]);
}

/// Runs the broker until it is quiescent. Returns the packets that it has sent, by connection, and the connections that
/// it has closed.
fn run_to_quiescence(node: &mut Node<'_>) -> (BTreeMap<u32, Vec<Packet>>, Vec<u32>) {
    node.run(0);
    let (requests, first) = (node.channel("sendC"), node.first_instance(node.channel("eventC")));
    let data = node.case(requests, 1, "data");
    let (mut sent, mut closed) = (BTreeMap::<u32, Vec<Packet>>::new(), vec![]);
    while let Some((_, message)) = node.next_output() {
        let [Datum::Pid(instance), Datum::Union(case, content)] = &message[..] else { panic!("{message:?}") };
        let Some(Datum::Bytes(bytes)) = content.as_deref() else {
            closed.push(*instance - first);
            continue;
        };
        assert_eq!(*case, data);
        let mut bytes = bytes.clone();
        sent.entry(*instance - first).or_default().extend(packets::next(&mut bytes));
        assert!(bytes.is_empty(), "each event has whole packets");
    }
    (sent, closed)
}

fn message(content: u8) -> Vec<u8> {
    let topic = "t".to_owned();
    packets::publish(&Message { topic, content: vec![content], qos: 0, duplicate: false, retain: false, id: 0 })
}

/// The messages that the subscriber receives of a client that publishes this many, sends `last`, and reconnects before
/// the broker has processed any of it.
fn received_messages(engine: Engine, messages: u8, last: &[u8]) -> Vec<(String, Vec<u8>)> {
    let program = compile_for(engine, BROKER);
    let mut node = Node::on(engine, &program);
    for place in [SUBSCRIBER, OLD, NEW] {
        queue_event(&mut node, place, "opened", None);
    }
    let will = ("w".to_owned(), b"lost".to_vec(), 0);
    let filters = [("t".to_owned(), 0), ("w".to_owned(), 0)];
    let subscribe = [packets::connect("subscriber", true, 0, None), packets::subscribe(1, &filters)].concat();
    queue_event(&mut node, SUBSCRIBER, "data", Some(subscribe));
    queue_event(&mut node, OLD, "data", Some(packets::connect("same", true, 0, Some(&will))));
    run_to_quiescence(&mut node);
    let mut bytes_of_old: Vec<u8> = (0..messages).flat_map(message).collect();
    bytes_of_old.extend(last);
    queue_event(&mut node, OLD, "data", Some(bytes_of_old));
    queue_event(&mut node, NEW, "data", Some(packets::connect("same", true, 0, None)));
    // Whether this message is delivered is left open; it must not block another connection.
    queue_event(&mut node, OLD, "data", Some(message(u8::MAX)));
    let (sent, closed) = run_to_quiescence(&mut node);
    assert_eq!(closed, [OLD]);
    assert_eq!(sent[&NEW][0].kind, packets::CONNACK);
    let received = sent.get(&SUBSCRIBER).into_iter().flatten().map(Packet::message);
    received.map(|message| (message.topic, message.content)).collect()
}

#[test]
fn a_client_that_disconnects_and_reconnects_at_once_leaves_no_will() {
    for engine in [Engine::Interpreter, Engine::Best] {
        for messages in [0, 1, 2, 3, 10, 100] {
            let sent: Vec<_> = (0..messages).map(|content| ("t".to_owned(), vec![content])).collect();
            let received = received_messages(engine, messages, &packets::DISCONNECT);
            assert_eq!(received, sent, "{engine:?}, {messages} messages and DISCONNECT");
        }
    }
}

#[test]
fn a_takeover_without_disconnect_publishes_the_will() {
    for engine in [Engine::Interpreter, Engine::Best] {
        for messages in [0, 1, 100] {
            // The beginning of a packet that is never completed.
            for last in [&[][..], &packets::DISCONNECT[..1]] {
                let received = received_messages(engine, messages, last);
                let wills = received.iter().filter(|(topic, content)| topic == "w" && content == b"lost").count();
                assert_eq!(wills, 1, "{engine:?}, {messages} messages and {last:?}: {received:?}");
                assert_eq!(received.last().map(|(topic, _)| topic.as_str()), Some("w"), "the will comes last");
            }
        }
    }
}
