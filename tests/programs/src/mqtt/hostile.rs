//! Packets that no client should send: damaged, cut short, out of order, or noise.

use super::wire::{self, CLEAN, confirm, connect, packet, publish, subscribe, text};
use super::{Broker, engines};
use quaject_test_support::Effort;
use quaject_test_support::random::Random;

/// One packet for each rule of the standard that a connected client can break by itself.
pub(crate) fn offences() -> Vec<(&'static str, Vec<u8>)> {
    let publish_of = |head: u8, topic: &[u8], rest: &[u8]| packet(head, &[&text(topic)[..], rest].concat());
    vec![
        ("a second CONNECT", connect("again", CLEAN, 0, &[])),
        ("kind 0", packet(0x00, &[])),
        ("kind 15", packet(0xf0, &[])),
        ("CONNACK", packet(0x20, &[0, 0])),
        ("SUBACK", packet(0x90, &[0, 1, 0])),
        ("a length of five bytes", vec![0x30, 0x80, 0x80, 0x80, 0x80, 0x01]),
        ("a length beyond the limit", vec![0x30, 0xff, 0xff, 0xff, 0x7f]),
        ("QoS 3", publish_of(0x36, b"t", &[0, 1])),
        ("again with QoS 0", publish_of(0x38, b"t", &[])),
        ("no identifier", publish_of(0x32, b"t", &[])),
        ("half an identifier", publish_of(0x32, b"t", &[1])),
        ("identifier 0", publish_of(0x32, b"t", &[0, 0])),
        ("no topic", publish_of(0x30, b"", b"x")),
        ("a topic that is cut short", packet(0x30, &[0, 5, b't'])),
        ("half a topic length", packet(0x30, &[0])),
        ("an empty PUBLISH", packet(0x30, &[])),
        ("a filter as topic", publish_of(0x30, b"a/+", &[])),
        ("another filter as topic", publish_of(0x30, b"a/#", &[])),
        ("NUL in a topic", publish_of(0x30, b"a\0b", &[])),
        ("a lone continuation byte", publish_of(0x30, b"a\x80", &[])),
        ("two bytes for one", publish_of(0x30, b"\xc0\xaf", &[])),
        ("three bytes for two", publish_of(0x30, b"\xe0\x9f\xbf", &[])),
        ("half of a pair", publish_of(0x30, b"\xed\xa0\x80", &[])),
        ("four bytes for three", publish_of(0x30, b"\xf0\x8f\xbf\xbf", &[])),
        ("beyond all characters", publish_of(0x30, b"\xf4\x90\x80\x80", &[])),
        ("a character cut short", publish_of(0x30, b"a\xe2\x82", &[])),
        ("PUBACK of another length", packet(0x40, &[0, 1, 0])),
        ("PUBACK 0", packet(0x40, &[0, 0])),
        ("flags of PUBREL", packet(0x60, &[0, 1])),
        ("flags of PUBACK", packet(0x42, &[0, 1])),
        ("flags of SUBSCRIBE", packet(0x80, &[0, 1, 0, 1, b't', 0])),
        ("SUBSCRIBE to nothing", packet(0x82, &[0, 1])),
        ("SUBSCRIBE 0", packet(0x82, &[0, 0, 0, 1, b't', 0])),
        ("SUBSCRIBE without QoS", packet(0x82, &[0, 1, 0, 1, b't'])),
        ("SUBSCRIBE with QoS 3", subscribe(&[("t", 3)])),
        ("SUBSCRIBE with reserved bits", subscribe(&[("t", 4)])),
        ("an empty filter", subscribe(&[("", 0)])),
        ("# in the middle", subscribe(&[("a/#/b", 0)])),
        ("# within a level", subscribe(&[("a#", 0)])),
        ("+ within a level", subscribe(&[("a/b+", 0)])),
        ("+ before something", subscribe(&[("+b/a", 0)])),
        ("the second filter wrong", subscribe(&[("a", 0), ("#a", 0)])),
        ("flags of UNSUBSCRIBE", packet(0xa0, &[0, 1, 0, 1, b't'])),
        ("UNSUBSCRIBE from nothing", packet(0xa2, &[0, 1])),
        ("UNSUBSCRIBE and more", packet(0xa2, &[0, 1, 0, 1, b't', 0])),
        ("PINGREQ with content", packet(0xc0, &[0])),
        ("flags of PINGREQ", packet(0xc1, &[])),
        ("DISCONNECT with content", packet(0xe0, &[0])),
        ("flags of DISCONNECT", packet(0xe1, &[])),
    ]
}

/// Invalid first packets.
fn false_starts() -> Vec<(&'static str, Vec<u8>)> {
    let body =
        |flags: u8, rest: &[u8]| packet(0x10, &[&text("MQTT")[..], &[4, flags, 0, 0], &text("id"), rest].concat());
    vec![
        ("PINGREQ", packet(0xc0, &[])),
        ("PUBLISH", publish("t", b"x", 0, 0, 0)),
        ("flags of CONNECT", packet(0x11, &connect("id", CLEAN, 0, &[])[2..])),
        ("another protocol", packet(0x10, &[&text("HTTP")[..], &[4, 2, 0, 0], &text("id")].concat())),
        ("the reserved flag", body(0x03, &[])),
        ("a will that is not there", body(0x06, &[])),
        ("will flags without a will", body(0x12, &[])),
        ("a will of QoS 3", body(0x1e, &[text("t"), text("m")].concat())),
        ("a will for a filter", body(0x06, &[text("t/#"), text("m")].concat())),
        ("a will cut short", body(0x06, &[text("t"), vec![0, 5, b'm']].concat())),
        ("a password without a user", body(0x42, &text("p"))),
        ("a user that is no text", body(0x82, &text(b"\xff"))),
        ("more than there should be", body(0x02, b"x")),
        ("an identifier cut short", packet(0x10, &[&text("MQTT")[..], &[4, 2, 0, 0, 0, 9, b'i']].concat())),
        ("an identifier with NUL", connect("\0\0\x01", CLEAN, 0, &[])),
        ("nothing", packet(0x10, &[])),
        ("HTTP", b"GET / HTTP/1.1\r\nHost: localhost\r\nAccept: text/html, text/plain, */*\r\n\r\n".repeat(2)),
    ]
}

#[test]
fn every_protocol_error_closes_the_connection() {
    for engine in engines() {
        let broker = Broker::start(engine);
        for (what, offence) in offences() {
            let mut client = broker.client("offender");
            client.send(&offence);
            client.hang_up_unless_dropped(engine, what);
        }
        for (what, start) in false_starts() {
            let mut client = broker.caller();
            client.send(&start);
            client.hang_up_unless_dropped(engine, what);
        }
        broker.assert_serves();
        broker.stop();
    }
}

impl wire::Client {
    /// The connection must end although this side goes on: a PINGREQ after the offence is never answered.
    fn hang_up_unless_dropped(&mut self, engine: &str, what: &str) {
        self.send(&[0xc0, 0]);
        let answer = self.answer();
        assert_eq!(answer, None, "engine {engine}: {what}");
    }
}

#[test]
fn packets_may_be_segmented_arbitrarily() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut client = broker.caller();
        let rest = [text("will"), text("message"), text("user"), text("password")].concat();
        let all = [
            connect("pieces", CLEAN | 0xc4, 60, &rest),
            subscribe(&[("piece/+", 1)]),
            publish("piece/1", &[b'x'; 300], 1, 3, 0),
            packet(0xc0, &[]),
        ]
        .concat();
        for byte in &all {
            client.send(&[*byte]);
        }
        client.expect(&[0x20, 2, 0, 0]);
        client.expect(&[0x90, 3, 0, 9, 1]);
        client.expect(&confirm(wire::PUBACK, 3));
        client.expect(&[0xd0, 0]);
        assert_eq!(client.message().content, [b'x'; 300]);
        broker.stop();
    }
}

/// A packet as a client may send it.
pub(crate) fn packet_of(random: &mut Random) -> Vec<u8> {
    let topics = ["a", "a/b", "a/b/c", "$x", "\u{20ac}/\u{1f600}"];
    let topic = topics[random.below(5) as usize];
    let filter = ["#", "a/+", "a/#", "+/b/+", "$x/#"][random.below(5) as usize];
    let id = random.below(3) as u16 + 1;
    match random.below(12) {
        0 => connect(["", "a", "b"][random.below(3) as usize], random.byte(), 5, &[text("a"), text("will")].concat()),
        1..=4 => {
            let content: Vec<u8> = (0..random.below(400)).map(|_| random.byte()).collect();
            publish(topic, &content, random.below(3) as u8, id, random.below(2) as u8)
        }
        5 => subscribe(&[(filter, random.below(3) as u8), (topic, 1)]),
        6 => packet(0xa2, &[&[0, 1][..], &text(filter)].concat()),
        7 => packet(0xc0, &[]),
        8 => (0..random.below(20)).map(|_| random.byte()).collect(),
        kind => confirm(kind as u8 - 5, id),
    }
}

#[test]
fn the_broker_survives_random_packets() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut random = Random(5);
        let (mut packets, mut damaged) = (0, 0);
        let wanted = Effort::wanted().pick(1_000, 10_000, 10_000_000);
        while packets < wanted {
            let mut client = broker.caller();
            let clean = if random.below(2) == 0 { CLEAN } else { 0 };
            let mut bytes = connect(["a", "b", "c"][random.below(3) as usize], clean, 0, &[]);
            for _ in 0..random.below(20) + 1 {
                let mut packet = packet_of(&mut random);
                if !packet.is_empty() && random.below(3) == 0 {
                    let at = random.below(packet.len() as u64) as usize;
                    match random.below(3) {
                        0 => packet[at] = random.byte(),
                        1 => packet.truncate(at),
                        _ => packet.insert(at, random.byte()),
                    }
                    damaged += 1;
                }
                bytes.extend(packet);
                packets += 1;
            }
            client.send(&bytes);
            match random.below(3) {
                0 => drop(client),
                1 => {
                    client.hang_up();
                    while client.answer().is_some() {}
                }
                // The broker hears of the end in the middle of the answers.
                _ => drop(client.answer()),
            }
        }
        assert!(damaged > packets / 10);
        broker.assert_serves();
        broker.stop();
    }
}
