//! Packets of MQTT 3.1.1, as far as a client sends and receives them; written from the standard for these tests.

pub(super) const CONNACK: u8 = 2;
pub(super) const PUBLISH: u8 = 3;
pub(super) const PUBACK: u8 = 4;
pub(super) const PUBREC: u8 = 5;
pub(super) const PUBREL: u8 = 6;
pub(super) const PUBCOMP: u8 = 7;
pub(super) const SUBACK: u8 = 9;
pub(super) const UNSUBACK: u8 = 11;
pub(super) const PINGRESP: u8 = 13;

/// A packet without its length.
#[derive(Debug)]
pub(super) struct Packet {
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) body: Vec<u8>,
}

/// A published message.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) topic: String,
    pub(super) content: Vec<u8>,
    pub(super) qos: u8,
    pub(super) duplicate: bool,
    pub(super) retain: bool,
    pub(super) id: u16,
}

pub(super) fn packet(head: u8, body: &[u8]) -> Vec<u8> {
    let (mut bytes, mut rest) = (vec![head], body.len());
    loop {
        let more = if rest > 127 { 0x80 } else { 0 };
        bytes.push((rest & 127) as u8 | more);
        rest >>= 7;
        if rest == 0 {
            bytes.extend(body);
            return bytes;
        }
    }
}

fn text(text: &[u8]) -> Vec<u8> {
    [&(text.len() as u16).to_be_bytes()[..], text].concat()
}

/// The will: topic, content, QoS.
pub(super) type Will = (String, Vec<u8>, u8);

pub(super) fn connect(name: &str, clean: bool, keep_alive_s: u16, will: Option<&Will>) -> Vec<u8> {
    let mut flags = if clean { 2 } else { 0 };
    let mut rest = text(name.as_bytes());
    if let Some((topic, content, qos)) = will {
        flags |= 4 | qos << 3;
        rest.extend(text(topic.as_bytes()));
        rest.extend(text(content));
    }
    let head = [&text(b"MQTT")[..], &[4, flags], &keep_alive_s.to_be_bytes()].concat();
    packet(0x10, &[head, rest].concat())
}

pub(super) fn publish(message: &Message) -> Vec<u8> {
    let flags = u8::from(message.duplicate) << 3 | message.qos << 1 | u8::from(message.retain);
    let id = message.id.to_be_bytes();
    let id = if message.qos > 0 { &id[..] } else { &[] };
    packet(PUBLISH << 4 | flags, &[&text(message.topic.as_bytes())[..], id, &message.content].concat())
}

pub(super) fn confirm(kind: u8, id: u16) -> Vec<u8> {
    packet(kind << 4 | if kind == PUBREL { 2 } else { 0 }, &id.to_be_bytes())
}

pub(super) fn subscribe(id: u16, filters: &[(String, u8)]) -> Vec<u8> {
    let filters = filters.iter().flat_map(|(filter, qos)| [text(filter.as_bytes()), vec![*qos]].concat());
    packet(0x82, &[&id.to_be_bytes()[..], &filters.collect::<Vec<u8>>()].concat())
}

pub(super) fn unsubscribe(id: u16, filter: &str) -> Vec<u8> {
    packet(0xa2, &[&id.to_be_bytes()[..], &text(filter.as_bytes())].concat())
}

pub(super) const PINGREQ: [u8; 2] = [0xc0, 0];
pub(super) const DISCONNECT: [u8; 2] = [0xe0, 0];

/// Removes the first packet, if it is complete.
pub(super) fn next(bytes: &mut Vec<u8>) -> Option<Packet> {
    let (mut length, mut at) = (0, 1);
    loop {
        let byte = *bytes.get(at)?;
        length |= usize::from(byte & 127) << (7 * (at - 1));
        at += 1;
        if byte < 128 {
            break;
        }
        assert!(at < 5, "not a length: {bytes:?}");
    }
    if bytes.len() < at + length {
        return None;
    }
    let packet: Vec<u8> = bytes.drain(..at + length).collect();
    Some(Packet { kind: packet[0] >> 4, flags: packet[0] & 15, body: packet[at..].to_vec() })
}

impl Packet {
    pub(super) fn number(&self) -> u16 {
        u16::from_be_bytes([self.body[0], self.body[1]])
    }

    /// The message of a PUBLISH.
    pub(super) fn message(&self) -> Message {
        let (qos, end) = (self.flags >> 1 & 3, 2 + usize::from(self.number()));
        let start = if qos > 0 { end + 2 } else { end };
        let id = if qos > 0 { u16::from_be_bytes([self.body[end], self.body[end + 1]]) } else { 0 };
        assert!(qos < 3 && (qos == 0) == (id == 0), "{self:?}");
        Message {
            topic: String::from_utf8(self.body[2..end].to_vec()).expect("topics are text"),
            content: self.body[start..].to_vec(),
            qos,
            duplicate: self.flags & 8 != 0,
            retain: self.flags & 1 != 0,
            id,
        }
    }
}

/// Whether a topic is among those of a filter (4.7), level by level.
pub(super) fn matches(filter: &str, topic: &str) -> bool {
    let (mut filters, mut topics) = (filter.split('/'), topic.split('/'));
    loop {
        match (filters.next(), topics.next()) {
            (Some("#"), _) => return true,
            (Some("+"), Some(_)) => {}
            (Some(filter), Some(topic)) if filter == topic => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}
