//! What the standard asks of brokers and mosquitto's clients do not show, and what happens at the broker's limits.

use super::wire::{self, CLEAN, Message, PUBACK, PUBCOMP, PUBREC, PUBREL, confirm, packet, publish, text};
use super::{Broker, engines};
use quaject_test_support::Effort;
use quaject_test_support::random::Random;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

#[test]
fn a_message_of_qos_2_is_forwarded_once() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut client = broker.client("one");
        assert_eq!(client.subscribe("t", 2), 2);
        client.send(&publish("t", b"1", 2, 7, 0));
        client.expect(&confirm(PUBREC, 7));
        client.send(&publish("t", b"1", 2, 7, 8));
        client.expect(&confirm(PUBREC, 7));
        client.send(&confirm(PUBREL, 7));
        client.expect(&confirm(PUBCOMP, 7));
        // What has been released already is confirmed again, and the identifier is free again.
        client.send(&confirm(PUBREL, 7));
        client.expect(&confirm(PUBCOMP, 7));
        client.publish("t", b"2", 2, 7, 0);
        assert_eq!([client.message().content, client.message().content], [b"1", b"2"], "engine {engine}");
        client.publish("t", b"end", 0, 0, 0);
        assert_eq!(client.message().content, b"end", "engine {engine}");
        client.disconnect();
        broker.stop();
    }
}

#[test]
fn unacknowledged_messages_are_sent_again_after_a_reconnect() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut client = broker.caller();
        assert_eq!(client.connect("back", 0, 0), (0, false));
        assert_eq!(client.subscribe("t/#", 2), 2);
        let mut publisher = broker.client("publisher");
        for (topic, qos) in [("t/1", 1), ("t/2", 2), ("t/3", 2), ("t/4", 1)] {
            publisher.publish(topic, topic.as_bytes(), qos, 1, 0);
        }
        let sent: Vec<Message> = (0..4).map(|_| client.raw_message()).collect();
        assert!(sent.iter().all(|message| !message.again));
        // The second has arrived, the third will have been released, the fourth is confirmed.
        client.send(&confirm(PUBREC, sent[1].id));
        client.expect(&confirm(PUBREL, sent[1].id));
        client.send(&confirm(PUBREC, sent[2].id));
        client.expect(&confirm(PUBREL, sent[2].id));
        client.send(&confirm(PUBCOMP, sent[2].id));
        client.send(&confirm(PUBACK, sent[3].id));
        client.ping();
        drop(client);

        let mut client = broker.caller();
        assert_eq!(client.connect("back", 0, 0), (0, true), "engine {engine}");
        let first = client.message();
        assert_eq!((first.topic.as_str(), first.again, first.id), ("t/1", true, sent[0].id), "engine {engine}");
        client.expect(&confirm(PUBREL, sent[1].id));
        client.send(&confirm(PUBCOMP, sent[1].id));
        publisher.publish("t/5", b"", 1, 1, 0);
        assert_eq!(client.message().topic, "t/5", "engine {engine}");
        client.disconnect();
        broker.stop();
    }
}

#[test]
fn a_silent_client_is_disconnected() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut watcher = broker.client("watcher");
        watcher.subscribe("will", 0);
        let mut silent = broker.caller();
        let will = [text("will"), text("silent")].concat();
        assert_eq!(silent.connect_with("silent", CLEAN | 4, 1, &will), (0, false));
        let started = Instant::now();
        assert!(silent.is_dropped());
        // One and a half times what it promised; a timer may be late on a busy machine, never early.
        assert!(started.elapsed() >= Duration::from_millis(1_450), "engine {engine}: {:?}", started.elapsed());
        assert_eq!(watcher.message().content, b"silent", "engine {engine}");
        watcher.ping();
        broker.stop();
    }
}

#[test]
fn a_second_connection_with_an_identifier_takes_over_the_session() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut watcher = broker.client("watcher");
        watcher.subscribe("will", 0);
        let mut first = broker.caller();
        first.connect_with("same", 4, 0, &[text("will"), text("replaced")].concat());
        first.subscribe("t", 1);
        let mut second = broker.caller();
        assert_eq!(second.connect("same", 0, 0), (0, true), "engine {engine}");
        assert!(first.is_dropped(), "engine {engine}");
        assert_eq!(watcher.message().content, b"replaced", "engine {engine}");
        watcher.publish("t", b"for the second", 1, 1, 0);
        assert_eq!(second.message().content, b"for the second", "engine {engine}");
        // A clean one gets nothing of it.
        let mut third = broker.client("same");
        assert!(second.is_dropped(), "engine {engine}");
        watcher.publish("t", b"unseen", 1, 1, 0);
        third.subscribe("end", 0);
        watcher.publish("end", b"", 0, 0, 0);
        assert_eq!(third.messages_before("end"), [], "engine {engine}");
        broker.stop();
    }
}

/// Whether a filter matches a topic, level by level (4.7).
fn matches(filter: &str, topic: &str) -> bool {
    let (mut filter, mut topic) = (filter.split('/'), topic.split('/').peekable());
    if topic.peek().is_some_and(|level| level.starts_with('$')) {
        let mut rest = filter.clone();
        if matches!(rest.next(), Some("#" | "+")) {
            return false;
        }
    }
    loop {
        match (filter.next(), topic.next()) {
            (Some("#"), _) | (None, None) => return true,
            (Some("+"), Some(_)) => {}
            (Some(wanted), Some(found)) if wanted == found => {}
            _ => return false,
        }
    }
}

fn topic(random: &mut Random, levels: &[&'static str]) -> String {
    loop {
        let count = random.below(4) as usize + 1;
        let topic: Vec<&str> = (0..count).map(|_| levels[random.below(levels.len() as u64) as usize]).collect();
        let topic = topic.join("/");
        if !topic.is_empty() {
            return topic;
        }
    }
}

#[test]
fn random_filters_match_level_by_level() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut random = Random(11);
        for round in 0..Effort::wanted().pick(10, 30, 10_000) {
            let mut client = broker.client("random");
            let mut filters = BTreeMap::new();
            for _ in 0..8 {
                let mut filter = topic(&mut random, &["", "a", "b", "+", "$x"]);
                match random.below(4) {
                    0 => filter += "/#",
                    1 if round % 8 == 0 => filter = "#".to_owned(),
                    _ => {}
                }
                let qos = random.below(3) as u8;
                assert_eq!(client.subscribe(&filter, qos), qos);
                filters.insert(filter, qos);
            }
            if let Some(removed) = filters.keys().next().cloned() {
                client.send(&packet(0xa2, &[&[0, 5][..], &text(&removed)].concat()));
                client.expect(&confirm(11, 5));
                filters.remove(&removed);
            }
            client.subscribe("end", 2);
            let mut expected = Vec::new();
            for number in 0..16_u8 {
                let topic = topic(&mut random, &["", "a", "b", "c", "$x"]);
                client.publish(&topic, &[number], 2, u16::from(number) + 1, 0);
                let best = filters.iter().filter(|(filter, _)| matches(filter, &topic)).map(|(_, qos)| *qos).max();
                expected.extend(best.map(|qos| (topic, vec![number], qos)));
            }
            client.publish("end", b"", 2, 99, 0);
            let found = client.messages_before("end").into_iter().map(|m| (m.topic, m.content, m.qos));
            assert_eq!(found.collect::<Vec<_>>(), expected, "engine {engine}: {filters:?}");
            client.disconnect();
        }
        broker.stop();
    }
}

#[test]
fn clients_beyond_the_limit_are_refused_until_one_disconnects() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut clients: Vec<_> = (0..32).map(|number| broker.client(&format!("client{number}"))).collect();
        for client in &mut clients {
            assert_eq!(client.subscribe("all", 1), 1);
        }
        let mut refused = broker.caller();
        assert_eq!(refused.connect("one more", CLEAN, 0), (3, false), "engine {engine}");
        assert!(refused.is_dropped());
        clients[0].publish("all", b"hello", 1, 1, 0);
        for client in &mut clients {
            assert_eq!(client.message().content, b"hello", "engine {engine}");
        }
        clients.pop().expect("there are 32").disconnect();
        broker.client("one more").disconnect();
        broker.stop();
    }
}

#[test]
fn requests_beyond_each_limit_are_refused() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut client = broker.caller();
        assert_eq!(client.connect(&"i".repeat(65), CLEAN, 0), (2, false), "identifiers of 64 bytes");
        assert!(client.is_dropped());
        let mut client = broker.caller();
        assert_eq!(client.connect("", 0, 0), (2, false), "none, for a session that stays");
        assert!(client.is_dropped());
        for version in ["\0\x04MQTT\x05\x02\0\0\0\0\0", "\0\x06MQIsdp\x03\x02\0\0\0\x01a"] {
            let mut client = broker.caller();
            client.send(&packet(0x10, version.as_bytes()));
            client.expect(&[0x20, 2, 0, 1]);
            assert!(client.is_dropped());
        }

        let mut client = broker.client(&"i".repeat(64));
        assert_eq!(client.subscribe(&"f".repeat(129), 0), 0x80, "filters of 128 bytes");
        assert_eq!(client.subscribe(&"f".repeat(128), 0), 0);
        for number in 1..64 {
            assert_eq!(client.subscribe(&format!("s/{number}"), 1), 1, "engine {engine}: 64 subscriptions");
        }
        client.send(&wire::subscribe(&[("s/64", 1), ("s/63", 2)]));
        client.expect(&packet(0x90, &[0, 9, 0x80, 2]));
        let mut other = broker.client("other");
        assert_eq!(other.subscribe("s/64", 1), 1, "engine {engine}: another client has subscriptions of its own");
        other.disconnect();

        // 64 topics keep a message, 32 of one client.
        for number in 0..33 {
            client.publish(&format!("r/{number}"), b"kept", 1, 1, 1);
        }
        for (name, topics) in [("other", 32..64), ("third", 64..65)] {
            let mut other = broker.client(name);
            for number in topics {
                other.publish(&format!("r/{number}"), b"kept", 1, 1, 1);
            }
            other.disconnect();
        }
        client.publish("r/0", b"", 1, 1, 1);
        client.publish("r/65", b"kept", 1, 1, 1);
        client.disconnect();
        let mut client = broker.client("later");
        client.subscribe("r/+", 0);
        client.subscribe("end", 0);
        client.publish("end", b"", 0, 0, 0);
        let mut kept: Vec<String> = client.messages_before("end").into_iter().map(|message| message.topic).collect();
        kept.sort();
        let mut expected: Vec<String> =
            (1..66).filter(|number| *number != 64).map(|number| format!("r/{number}")).collect();
        expected.sort();
        assert_eq!(kept, expected, "engine {engine}");

        // A packet of 8,192 bytes is one, a longer one is not.
        client.subscribe("large", 1);
        client.publish("large", &vec![b'x'; 8_192 - 9], 1, 1, 0);
        assert_eq!(client.message().content.len(), 8_192 - 9);
        client.send(&publish("large", &vec![b'x'; 8_192 - 8], 1, 1, 0));
        assert!(client.is_dropped(), "engine {engine}");
        broker.stop();
    }
}

#[test]
fn messages_behind_an_unconfirmed_one_are_forwarded() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut client = broker.caller();
        assert_eq!(client.connect("slow", 0, 0), (0, false));
        client.subscribe("t", 1);
        let mut publisher = broker.client("publisher");
        publisher.publish("t", b"first", 1, 1, 0);
        let first = client.raw_message();
        for number in 0..600_u16 {
            publisher.publish("t", &number.to_be_bytes(), (number % 3) as u8, 1, 0);
            let message = client.message();
            assert_eq!(message.content, number.to_be_bytes(), "engine {engine}");
            assert_ne!(message.id, first.id, "engine {engine}");
        }
        drop(client);
        let mut client = broker.caller();
        assert_eq!(client.connect("slow", 0, 0), (0, true));
        let again = client.message();
        assert_eq!((again.content.as_slice(), again.again, again.id), (&b"first"[..], true, first.id), "{engine}");
        client.ping();
        client.disconnect();
        broker.stop();
    }
}

#[test]
fn each_absent_session_has_room_for_messages() {
    for engine in engines() {
        let broker = Broker::start(engine);
        for number in 0..31 {
            let mut client = broker.caller();
            assert_eq!(client.connect(&format!("away{number}"), 0, 0), (0, false));
            client.subscribe(&format!("t/{number}"), 1);
            client.disconnect();
        }
        let mut publisher = broker.client("publisher");
        for number in 0..30 {
            for _ in 0..100 {
                publisher.publish(&format!("t/{number}"), b"x", 1, 1, 0);
            }
        }
        for number in 0..20 {
            publisher.publish("t/30", &[number], 1, 1, 0);
        }
        let mut client = broker.caller();
        assert_eq!(client.connect("away30", 0, 0), (0, true));
        let received: Vec<u8> = (0..20).map(|_| client.message().content[0]).collect();
        assert_eq!(received, (0..20).collect::<Vec<u8>>(), "engine {engine}");
        broker.stop();
    }
}

#[test]
fn a_new_session_replaces_that_of_the_client_absent_longest() {
    for engine in engines() {
        let broker = Broker::start(engine);
        for number in 0..64 {
            let mut client = broker.caller();
            assert_eq!(client.connect(&format!("away{number}"), 0, 0), (0, false), "engine {engine}");
            client.subscribe("t", 1);
            client.disconnect();
        }
        let mut back = broker.caller();
        assert_eq!(back.connect("away0", 0, 0), (0, true), "engine {engine}");
        back.disconnect();
        let mut publisher = broker.client("publisher"); // in the place of away1
        publisher.publish("t", b"x", 1, 1, 0);
        publisher.disconnect();
        for (number, is_known) in [(2, true), (0, true), (1, false)] {
            let mut client = broker.caller();
            assert_eq!(client.connect(&format!("away{number}"), 0, 0), (0, is_known), "engine {engine}, {number}");
            if is_known {
                assert_eq!(client.message().content, b"x", "engine {engine}");
            }
            client.ping();
            client.disconnect();
        }
        broker.stop();
    }
}

#[test]
fn topics_of_the_broker_are_not_for_clients() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut client = broker.client("reader");
        client.subscribe("$SYS/#", 1);
        client.subscribe("$SYSTEM/#", 1);
        let mut publisher = broker.caller();
        let will = [text("$SYS/will"), text("x")].concat();
        assert_eq!(publisher.connect_with("writer", CLEAN | 4, 0, &will), (0, false));
        for qos in 0..3 {
            publisher.publish("$SYS/broker/uptime", b"x", qos, 1, 1);
            publisher.publish("$SYS", b"x", qos, 1, 1);
        }
        publisher.publish("$SYSTEM/x", b"x", 1, 1, 0);
        drop(publisher);
        broker.client("writer").disconnect();
        assert_eq!(client.message().topic, "$SYSTEM/x", "engine {engine}");
        client.subscribe("end", 1);
        client.publish("end", b"", 1, 1, 0);
        assert_eq!(client.message().topic, "end", "engine {engine}");
        client.disconnect();
        broker.stop();
    }
}

#[test]
fn what_a_client_sent_before_it_connects_again_counts() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut helper = broker.client("helper");
        helper.subscribe("t/#", 1);
        let will = [text("t/will"), text("x")].concat();
        // The first numbers of connections are free: a newer connection has a lower one.
        let first: Vec<_> = (0..4).map(|number| broker.client(&format!("first{number}"))).collect();
        let mut client = broker.caller();
        client.connect_with("back", 4, 0, &will);
        first.into_iter().for_each(super::wire::Client::disconnect);
        for number in 0..100_u8 {
            let large = vec![number; 6_000];
            client.send(&[publish("t/1", &large, 0, 0, 0), publish("t/2", b"last", 0, 0, 0), vec![0xe0, 0]].concat());
            let mut next = broker.caller();
            assert_eq!(next.connect_with("back", 4, 0, &will), (0, true), "engine {engine}");
            client = next;
            assert_eq!(helper.message().content, large, "engine {engine}, {number}");
            assert_eq!(helper.message().content, b"last", "engine {engine}, {number}");
        }
        helper.publish("t/end", b"", 1, 1, 0);
        assert_eq!(helper.message().topic, "t/end", "engine {engine}: a will in spite of DISCONNECT");
        broker.stop();
    }
}

#[test]
fn hundreds_of_publishers_follow_each_other() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut client = broker.client("reader");
        client.subscribe("t", 1);
        for number in 0..300_u16 {
            let mut publisher = broker.caller();
            publisher.send(&wire::connect(&format!("p{number}"), CLEAN, 0, &[]));
            publisher.send(&[publish("t", &number.to_be_bytes(), 0, 0, 0), vec![0xe0, 0]].concat());
        }
        for number in 0..300_u16 {
            assert_eq!(client.message().content, number.to_be_bytes(), "engine {engine}");
        }
        client.disconnect();
        broker.stop();
    }
}

#[test]
fn a_client_that_does_not_read_blocks_no_other() {
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut deaf = broker.client("deaf");
        deaf.subscribe("flood", 0);
        let mut also_deaf = broker.client("also deaf");
        also_deaf.subscribe("flood", 1);
        let mut publisher = broker.client("publisher");
        for number in 0..1_000 {
            publisher.publish("flood", &[b'x'; 8_000], 1, 1 + number % 100, 0);
        }
        broker.assert_serves();
        publisher.disconnect();
        broker.stop();
    }
}

#[test]
fn queues_of_absent_clients_leave_room_for_others() {
    for engine in engines() {
        let broker = Broker::start(engine);
        for number in 0..30 {
            let mut client = broker.caller();
            assert_eq!(client.connect(&format!("away{number}"), 0, 0), (0, false));
            client.subscribe("all", 1);
            client.disconnect();
        }
        let mut publisher = broker.client("publisher");
        for number in 0..1_500_u16 {
            publisher.publish("all", &number.to_be_bytes(), 1, 1, 0);
        }
        broker.assert_serves();
        // Those that were kept are the first ones.
        let mut client = broker.caller();
        assert_eq!(client.connect("away0", 0, 0), (0, true));
        let mut kept: Vec<Message> = (0..100).map(|_| client.message()).collect();
        client.subscribe("end", 0);
        client.publish("end", b"", 0, 0, 0);
        kept.extend(client.messages_before("end"));
        for (number, message) in kept.iter().enumerate() {
            assert_eq!(message.content, (number as u16).to_be_bytes(), "engine {engine}");
        }
        broker.stop();
    }
}
