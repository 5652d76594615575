//! A client of MQTT 3.1.1 for these tests, written from the standard: sends given packets and returns received ones.

use quaject_test_support::HANG_TIMEOUT;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};

pub(crate) const CLEAN: u8 = 0x02;

pub(super) const PUBLISH: u8 = 3;
pub(super) const PUBACK: u8 = 4;
pub(super) const PUBREC: u8 = 5;
pub(super) const PUBREL: u8 = 6;
pub(super) const PUBCOMP: u8 = 7;

/// A connection.
pub(super) struct Client {
    stream: TcpStream,
    /// PUBLISH packets that came while something else was waited for.
    early: Vec<Packet>,
}

/// A packet from the broker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) head: u8,
    pub(super) body: Vec<u8>,
}

/// A message from the broker.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) topic: String,
    pub(super) content: Vec<u8>,
    pub(super) qos: u8,
    pub(super) again: bool,
    pub(super) retain: bool,
    pub(super) id: u16,
}

/// A packet as it is sent.
pub(super) fn packet(head: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![head];
    let mut rest = body.len();
    loop {
        let more = if rest > 127 { 0x80 } else { 0 };
        bytes.push((rest & 127) as u8 | more);
        rest >>= 7;
        if rest == 0 {
            break;
        }
    }
    bytes.extend(body);
    bytes
}

/// A text with its length before it.
pub(super) fn text(text: impl AsRef<[u8]>) -> Vec<u8> {
    let text = text.as_ref();
    [&(text.len() as u16).to_be_bytes()[..], text].concat()
}

/// A CONNECT packet; `rest` is will, user and password.
pub(crate) fn connect(identifier: &str, flags: u8, keep_alive_s: u16, rest: &[u8]) -> Vec<u8> {
    let head = [&text("MQTT")[..], &[4, flags], &keep_alive_s.to_be_bytes()].concat();
    packet(0x10, &[&head[..], &text(identifier), rest].concat())
}

/// A PUBLISH packet; `flags` are DUP (8) and RETAIN (1).
pub(super) fn publish(topic: &str, content: &[u8], qos: u8, id: u16, flags: u8) -> Vec<u8> {
    let id = id.to_be_bytes();
    let id = if qos > 0 { &id[..] } else { &[] };
    packet(PUBLISH << 4 | qos << 1 | flags, &[&text(topic)[..], id, content].concat())
}

/// A packet that is an identifier alone.
pub(super) fn confirm(kind: u8, id: u16) -> Vec<u8> {
    packet(kind << 4 | if kind == PUBREL { 2 } else { 0 }, &id.to_be_bytes())
}

/// A SUBSCRIBE packet with identifier 9.
pub(super) fn subscribe(filters: &[(&str, u8)]) -> Vec<u8> {
    let filters = filters.iter().flat_map(|(filter, qos)| [&text(filter)[..], &[*qos]].concat());
    packet(0x82, &[&[0, 9][..], &filters.collect::<Vec<u8>>()].concat())
}

impl Client {
    pub(super) fn call(port: u16) -> Client {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the broker listens");
        stream.set_read_timeout(Some(HANG_TIMEOUT)).and_then(|()| stream.set_nodelay(true)).expect("sockets can be");
        Client { stream, early: Vec::new() }
    }

    /// Sends bytes; the broker may have hung up.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Says that nothing more will be sent.
    pub(super) fn hang_up(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
    }

    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        match self.stream.read_exact(&mut byte) {
            Ok(()) => Some(byte[0]),
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => None,
            Err(error) => panic!("nothing comes from the broker: {error}"),
        }
    }

    /// The next packet; none when the broker has hung up.
    fn next(&mut self) -> Option<Packet> {
        let head = self.byte()?;
        let (mut length, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            length |= usize::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                break;
            }
        }
        let mut body = vec![0; length];
        self.stream.read_exact(&mut body).expect("packets come whole");
        Some(Packet { head, body })
    }

    /// The next packet that is no PUBLISH.
    pub(super) fn answer(&mut self) -> Option<Packet> {
        loop {
            let packet = self.next()?;
            if packet.head >> 4 != PUBLISH {
                return Some(packet);
            }
            self.early.push(packet);
        }
    }

    /// Whether the broker hangs up without a further word.
    pub(super) fn is_dropped(&mut self) -> bool {
        self.answer().is_none()
    }

    /// Connects: the broker's answer, and whether it knows the session.
    pub(super) fn connect(&mut self, identifier: &str, flags: u8, keep_alive_s: u16) -> (u8, bool) {
        self.connect_with(identifier, flags, keep_alive_s, &[])
    }

    /// Likewise, with will, user and password.
    pub(super) fn connect_with(&mut self, identifier: &str, flags: u8, keep_alive_s: u16, rest: &[u8]) -> (u8, bool) {
        self.send(&connect(identifier, flags, keep_alive_s, rest));
        let answer = self.next().expect("an answer to CONNECT");
        assert_eq!((answer.head, answer.body.len()), (0x20, 2));
        assert!(answer.body[0] < 2);
        (answer.body[1], answer.body[0] == 1)
    }

    /// Subscribes to one filter: what the broker grants.
    pub(super) fn subscribe(&mut self, filter: &str, qos: u8) -> u8 {
        self.send(&subscribe(&[(filter, qos)]));
        let answer = self.answer().expect("an answer to SUBSCRIBE");
        assert_eq!((answer.head, &answer.body[..2], answer.body.len()), (0x90, &[0, 9][..], 3));
        answer.body[2]
    }

    /// Publishes and does what the QoS asks for; `flags` are DUP (8) and RETAIN (1).
    pub(super) fn publish(&mut self, topic: &str, content: &[u8], qos: u8, id: u16, flags: u8) {
        self.send(&publish(topic, content, qos, id, flags));
        match qos {
            0 => {}
            1 => self.expect(&confirm(PUBACK, id)),
            _ => {
                self.expect(&confirm(PUBREC, id));
                self.send(&confirm(PUBREL, id));
                self.expect(&confirm(PUBCOMP, id));
            }
        }
    }

    /// Waits for an answer that must be this one.
    pub(super) fn expect(&mut self, bytes: &[u8]) {
        let answer = self.answer().map(|answer| packet(answer.head, &answer.body));
        assert_eq!(answer.as_deref(), Some(bytes));
    }

    /// Waits for the answer to a PINGREQ: all that was sent before has been dealt with.
    pub(super) fn ping(&mut self) {
        self.send(&[0xc0, 0]);
        self.expect(&[0xd0, 0]);
    }

    /// The next message, whose arrival is not confirmed.
    pub(super) fn raw_message(&mut self) -> Message {
        let packet = if self.early.is_empty() { self.next().expect("a message") } else { self.early.remove(0) };
        assert_eq!(packet.head >> 4, PUBLISH, "{packet:?}");
        let qos = packet.head >> 1 & 3;
        let end = 2 + usize::from(u16::from_be_bytes([packet.body[0], packet.body[1]]));
        let start = if qos > 0 { end + 2 } else { end };
        let id = if qos > 0 { u16::from_be_bytes([packet.body[end], packet.body[end + 1]]) } else { 0 };
        assert!(qos < 3 && (qos == 0) == (id == 0));
        Message {
            topic: String::from_utf8(packet.body[2..end].to_vec()).expect("topics are text"),
            content: packet.body[start..].to_vec(),
            qos,
            again: packet.head & 8 != 0,
            retain: packet.head & 1 != 0,
            id,
        }
    }

    /// The next message, with all that its QoS asks for.
    pub(super) fn message(&mut self) -> Message {
        let message = self.raw_message();
        match message.qos {
            0 => {}
            1 => self.send(&confirm(PUBACK, message.id)),
            _ => {
                self.send(&confirm(PUBREC, message.id));
                self.expect(&confirm(PUBREL, message.id));
                self.send(&confirm(PUBCOMP, message.id));
            }
        }
        message
    }

    /// The messages that come before one of this topic.
    pub(super) fn messages_before(&mut self, topic: &str) -> Vec<Message> {
        let mut messages = Vec::new();
        loop {
            let message = self.message();
            if message.topic == topic {
                return messages;
            }
            messages.push(message);
        }
    }

    pub(super) fn disconnect(mut self) {
        self.send(&[0xe0, 0]);
        assert!(self.is_dropped());
    }
}
