//! TCP connections between peers and one program, on an impaired network: it segments the stream arbitrarily, delays
//! segments, breaks connections between any two bytes, and silences others. The bytes that arrive are a prefix of those
//! that were sent, as TCP guarantees. Acts towards the program as the driver `tcp:` does; knows no protocol.

use crate::MILLISECOND_NS;
use crate::node::Node;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::ChannelId;
use quaject_test_support::random::Random;
use std::collections::{BTreeMap, VecDeque};

/// Bytes of a program that the socket accepts before they have arrived: few, so that programs have to wait.
const SOCKET_BUFFER: usize = 16 * 1024;
/// Bytes that the driver accepts beyond that. A program that sends more ignores back pressure.
const DRIVER_BUFFER: usize = 256 * 1024;

/// Events that are queued for the program.
const MAX_PENDING_EVENTS: usize = 4;
/// The resolution of the clock: arrivals within it are simultaneous.
const RESOLUTION_NS: i64 = MILLISECOND_NS;

/// What the network does to connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Impairments {
    /// The minimal and the maximal delay of a segment.
    pub(crate) delay_ns: (i64, i64),
    /// One segment in this many is delayed as by a retransmission; 0: none.
    pub(crate) stalls: u64,
    pub(crate) stall_ns: i64,
    /// The maximal lifetime of a connection; 0: unlimited.
    pub(crate) max_lifetime_ns: i64,
    /// Of the connections that end so, one in this many becomes silent instead of being reset; 0: none.
    pub(crate) silent: u64,
    /// The period of outages, in which nothing arrives, and the length of one.
    pub(crate) outages_ns: Option<(i64, i64)>,
}

/// A network that only delays.
pub(crate) const GOOD: Impairments = Impairments {
    delay_ns: (MILLISECOND_NS / 10, 3 * MILLISECOND_NS),
    stalls: 0,
    stall_ns: 0,
    max_lifetime_ns: 0,
    silent: 0,
    outages_ns: None,
};

/// A connection, by its number; none is ever used again.
pub(crate) type LinkId = u64;

/// What arrives at a peer.
pub(crate) enum Delivery {
    Bytes(Vec<u8>),
    Closed,
}

/// How often each impairment has occurred.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct ImpairmentCounts {
    pub(crate) broken: u64,
    pub(crate) silenced: u64,
    pub(crate) stalled: u64,
    pub(crate) pieces: u64,
    /// Connections that were broken while bytes were under direction.
    pub(crate) cut_short: u64,
}

/// One direction of a connection.
#[derive(Default)]
struct Direction {
    /// Segments with their times of arrival, in ascending order.
    pieces: VecDeque<(i64, Vec<u8>)>,
    last_ns: i64,
    /// When the end of the stream arrives, after all segments.
    ends_ns: Option<i64>,
    /// Whether the end has arrived, or neither side uses the direction any more.
    closed: bool,
}

impl Direction {
    fn bytes(&self) -> usize {
        self.pieces.iter().map(|(_, piece)| piece.len()).sum()
    }

    fn due_ns(&self) -> Option<i64> {
        if self.closed { None } else { self.pieces.front().map(|(due_ns, _)| *due_ns).or(self.ends_ns) }
    }

    fn end(&mut self, now_ns: i64) {
        self.ends_ns.get_or_insert(now_ns.max(self.last_ns));
    }

    /// Discards all but the first bytes under direction.
    fn cut(&mut self, mut bytes: usize) {
        for (_, piece) in &mut self.pieces {
            piece.truncate(bytes);
            bytes -= piece.len();
        }
        self.pieces.retain(|(_, piece)| !piece.is_empty());
    }
}

struct Link {
    /// The instance of the program that serves it.
    instance: Option<u32>,
    /// When the connection request arrives; the program accepts it as soon as an instance is free.
    connects_ns: i64,
    /// To the program, and from it.
    up: Direction,
    down: Direction,
    /// When the network breaks it.
    fails_ns: Option<i64>,
    silent: bool,
    /// Whether a `sent` event is due.
    owes_sent_event: bool,
    /// Bytes delivered to the program, and the time of the last delivery or of the connection.
    delivered: u64,
    delivered_ns: i64,
}

impl Link {
    /// The peer has closed. The program is notified unless the connection is silent.
    fn close_by_peer(&mut self, arrival_ns: i64) {
        if !self.silent {
            self.up.end(arrival_ns);
        }
        self.down.closed = true;
    }

    fn request(&self, id: LinkId, bytes: Option<Vec<u8>>) -> ProgramRequest {
        ProgramRequest { id, bytes, delivered: self.delivered, delivered_ns: self.delivered_ns }
    }
}

/// A request of the program to the driver.
pub(crate) struct ProgramRequest {
    pub(crate) id: LinkId,
    /// The bytes to send; none to close the connection.
    pub(crate) bytes: Option<Vec<u8>>,
    /// Bytes of this peer delivered to the program, and the time of the last delivery.
    pub(crate) delivered: u64,
    pub(crate) delivered_ns: i64,
}

/// All connections of a program.
pub(crate) struct Network {
    pub(crate) impairments: Impairments,
    pub(crate) impairment_counts: ImpairmentCounts,
    events: ChannelId,
    /// The cases of the driver's union.
    opened: Datum,
    closed: Datum,
    sent: Option<Datum>,
    data: u32,
    data_request: u32,
    /// The maximal number of bytes of an event.
    chunk: usize,
    /// The number of the first instance that has connections.
    first: u32,
    /// By instance.
    link_of_instance: Vec<Option<LinkId>>,
    links: BTreeMap<LinkId, Link>,
    next: LinkId,
    random: Random,
}

/// A program's channels for connections, and its capacity.
pub(crate) struct Channels {
    pub(crate) events: &'static str,
    pub(crate) requests: &'static str,
    pub(crate) chunk: usize,
    /// The number of simultaneous connections.
    pub(crate) instances: usize,
    /// Whether it uses `sent` events.
    pub(crate) hears_sent: bool,
}

impl Network {
    pub(crate) fn new(node: &Node<'_>, channels: &Channels, impairments: Impairments, seed: u64) -> Network {
        let (events, requests) = (node.channel(channels.events), node.channel(channels.requests));
        let event = |name: &str| Datum::Union(node.case(events, 1, name), None);
        Network {
            impairments,
            impairment_counts: ImpairmentCounts::default(),
            events,
            opened: event("opened"),
            closed: event("closed"),
            sent: channels.hears_sent.then(|| event("sent")),
            data: node.case(events, 1, "data"),
            data_request: node.case(requests, 1, "data"),
            chunk: channels.chunk,
            first: node.first_instance(events),
            link_of_instance: vec![None; channels.instances],
            links: BTreeMap::new(),
            next: 1,
            random: Random(seed),
        }
    }

    /// A peer requests a connection; it may send at once.
    pub(crate) fn connect(&mut self, now_ns: i64) -> LinkId {
        let connects_ns = self.arrival_ns(now_ns);
        let fails_ns = (self.impairments.max_lifetime_ns > 0)
            .then(|| connects_ns + self.random.below(self.impairments.max_lifetime_ns as u64) as i64);
        let link = Link {
            instance: None,
            connects_ns,
            up: Direction::default(),
            down: Direction::default(),
            fails_ns,
            silent: false,
            owes_sent_event: false,
            delivered: 0,
            delivered_ns: now_ns,
        };
        self.links.insert(self.next, link);
        self.next += 1;
        self.next - 1
    }

    /// A peer sends bytes.
    pub(crate) fn send(&mut self, id: LinkId, bytes: &[u8], now_ns: i64) {
        self.transmit(id, bytes, now_ns, |link| &mut link.up);
    }

    /// A peer closes its connection.
    pub(crate) fn close(&mut self, id: LinkId, now_ns: i64) {
        let arrival_ns = self.arrival_ns(now_ns);
        let Some(link) = self.links.get_mut(&id) else { return };
        link.close_by_peer(arrival_ns);
        self.remove_if_closed(id);
    }

    /// A peer aborts: a part of its bytes under direction is lost.
    pub(crate) fn abort(&mut self, id: LinkId, now_ns: i64) {
        let arrival_ns = self.arrival_ns(now_ns);
        let Some(link) = self.links.get_mut(&id) else { return };
        let bytes = link.up.bytes();
        link.up.cut(self.random.below(bytes as u64 + 1) as usize);
        link.close_by_peer(arrival_ns);
        self.remove_if_closed(id);
    }

    /// The time of the last delivery from a peer, if the program has accepted its connection.
    pub(crate) fn delivered_ns(&self, id: LinkId) -> Option<i64> {
        self.links.get(&id).filter(|link| link.instance.is_some()).map(|link| link.delivered_ns)
    }

    /// From now on the network breaks none of the existing connections.
    pub(crate) fn cancel_failures(&mut self) {
        for link in self.links.values_mut() {
            link.fails_ns = None;
        }
    }

    /// Executes a request of the program. Returns it unless the instance has no connection.
    pub(crate) fn execute(&mut self, node: &mut Node<'_>, message: &[Datum], now_ns: i64) -> Option<ProgramRequest> {
        let [Datum::Pid(instance), Datum::Union(case, content)] = message else { panic!("{message:?}") };
        let place = (*instance - self.first) as usize;
        let id = self.link_of_instance[place]?;
        if *case == self.data_request {
            let Some(Datum::Bytes(bytes)) = content.as_deref() else { panic!("{message:?}") };
            self.transmit(id, bytes, now_ns, |link| &mut link.down);
            let link = self.links.get_mut(&id).expect("the program has it");
            link.owes_sent_event = true;
            assert!(
                link.down.bytes() < SOCKET_BUFFER + DRIVER_BUFFER,
                "the program sends without limit to a peer that does not read"
            );
            return Some(link.request(id, Some(bytes.clone())));
        }
        // Undelivered events of this connection must not reach the instance's next connection.
        node.withdraw(self.events, |event| event[0] == Datum::Pid(*instance));
        self.link_of_instance[place] = None;
        let arrival_ns = self.arrival_ns(now_ns);
        let link = self.links.get_mut(&id).expect("the program has it");
        link.instance = None;
        link.up.closed = true;
        link.up.pieces.clear();
        link.down.end(arrival_ns);
        link.connects_ns = i64::MAX;
        let request = link.request(id, None);
        self.remove_if_closed(id);
        Some(request)
    }

    /// Delivers the next event to the program; false if there is none.
    pub(crate) fn deliver_event(&mut self, node: &mut Node<'_>, now_ns: i64) -> bool {
        self.fail_due_links(now_ns);
        // The driver queues few events.
        if node.pending(self.events) >= MAX_PENDING_EVENTS {
            return false;
        }
        let Some((id, instance, event)) = self.next_event(now_ns) else { return false };
        node.offer(self.events, vec![Datum::Pid(instance), event]);
        self.remove_if_closed(id);
        true
    }

    fn next_event(&mut self, now_ns: i64) -> Option<(LinkId, u32, Datum)> {
        if let Some(place) = self.link_of_instance.iter().position(Option::is_none) {
            let instance = self.first + place as u32;
            let connecting =
                self.links.iter_mut().filter(|(_, link)| link.instance.is_none() && link.connects_ns <= now_ns);
            if let Some((id, link)) = connecting.min_by_key(|(_, link)| link.connects_ns) {
                link.instance = Some(instance);
                link.delivered_ns = now_ns;
                self.link_of_instance[place] = Some(*id);
                return Some((*id, instance, self.opened.clone()));
            }
        }
        for (id, link) in &mut self.links {
            let Some(instance) = link.instance else { continue };
            if let (true, Some(sent)) = (link.owes_sent_event && link.down.bytes() <= SOCKET_BUFFER, &self.sent) {
                link.owes_sent_event = false;
                return Some((*id, instance, sent.clone()));
            }
            if link.up.due_ns().is_none_or(|due_ns| due_ns > now_ns) {
                continue;
            }
            let bytes = pieces_of(&mut link.up, now_ns, self.chunk, &mut self.random);
            if bytes.is_empty() {
                link.up.closed = true;
                return Some((*id, instance, self.closed.clone()));
            }
            link.delivered += bytes.len() as u64;
            link.delivered_ns = now_ns;
            return Some((*id, instance, Datum::Union(self.data, Some(Box::new(Datum::Bytes(bytes))))));
        }
        None
    }

    /// The next arrival at a peer.
    pub(crate) fn next_delivery(&mut self, now_ns: i64) -> Option<(LinkId, Delivery)> {
        let (id, link) =
            self.links.iter_mut().find(|(_, link)| link.down.due_ns().is_some_and(|due_ns| due_ns <= now_ns))?;
        let (id, bytes) = (*id, pieces_of(&mut link.down, now_ns, usize::MAX, &mut self.random));
        if !bytes.is_empty() {
            return Some((id, Delivery::Bytes(bytes)));
        }
        link.down.closed = true;
        self.remove_if_closed(id);
        Some((id, Delivery::Closed))
    }

    /// The time of the next event.
    pub(crate) fn next_ns(&self, now_ns: i64) -> Option<i64> {
        let of_link = |link: &Link| {
            let connects_ns = (link.instance.is_none() && !link.up.closed).then_some(link.connects_ns);
            let up_ns = link.instance.and(link.up.due_ns());
            [connects_ns, up_ns, link.down.due_ns(), link.fails_ns]
                .into_iter()
                .flatten()
                .filter(|time| *time > now_ns)
                .min()
        };
        self.links.values().filter_map(of_link).min()
    }

    /// Breaks or silences the connections whose time has come.
    fn fail_due_links(&mut self, now_ns: i64) {
        let Network { links, impairments, impairment_counts, random, .. } = self;
        for link in links.values_mut().filter(|link| link.fails_ns.is_some_and(|fails_ns| fails_ns <= now_ns)) {
            link.fails_ns = None;
            for direction in [&mut link.up, &mut link.down] {
                let bytes = direction.bytes();
                let arrive = random.below(bytes as u64 + 1) as usize;
                impairment_counts.cut_short += u64::from(arrive < bytes);
                direction.cut(arrive);
            }
            link.silent = impairments.silent > 0 && random.below(impairments.silent) == 0;
            if link.silent {
                impairment_counts.silenced += 1;
            } else {
                impairment_counts.broken += 1;
                link.up.end(now_ns);
                link.down.end(now_ns);
            }
        }
    }

    fn transmit(&mut self, id: LinkId, bytes: &[u8], now_ns: i64, direction: impl Fn(&mut Link) -> &mut Direction) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let max = [1, 3, 60, 1_460, 1_460, 1_460][self.random.below(6) as usize];
            let (piece, later) = rest.split_at(rest.len().min(1 + self.random.below(max) as usize));
            rest = later;
            let arrival_ns = self.arrival_ns(now_ns);
            let Some(link) = self.links.get_mut(&id) else { return };
            let silent = link.silent;
            let direction = direction(link);
            if direction.closed || direction.ends_ns.is_some() {
                return;
            }
            // A silent connection delivers nothing.
            let due_ns = if silent { i64::MAX } else { arrival_ns.max(direction.last_ns) };
            direction.last_ns = due_ns;
            direction.pieces.push_back((due_ns, piece.to_vec()));
            self.impairment_counts.pieces += 1;
        }
    }

    /// When bytes that are sent now arrive, unless they wait for earlier ones.
    fn arrival_ns(&mut self, now_ns: i64) -> i64 {
        let (min, max) = self.impairments.delay_ns;
        let mut due_ns = now_ns + min + self.random.below((max - min + 1) as u64) as i64;
        if self.impairments.stalls > 0 && self.random.below(self.impairments.stalls) == 0 {
            self.impairment_counts.stalled += 1;
            due_ns += self.random.below(self.impairments.stall_ns as u64) as i64;
        }
        // Rounds up to the resolution: arrivals at the same time are simultaneous, and the program chooses their order.
        due_ns += RESOLUTION_NS - due_ns % RESOLUTION_NS;
        if let Some((period, length)) = self.impairments.outages_ns {
            let phase = due_ns % period;
            if phase >= period - length {
                due_ns += period - phase + self.random.below(20) as i64 * RESOLUTION_NS;
            }
        }
        due_ns
    }

    /// Removes a connection that is closed on both sides.
    fn remove_if_closed(&mut self, id: LinkId) {
        if self.links.get(&id).is_some_and(|link| link.instance.is_none() && link.up.closed && link.down.closed) {
            self.links.remove(&id);
        }
    }
}

/// The bytes that have arrived, of one segment or several; empty at the end of the stream.
fn pieces_of(direction: &mut Direction, now_ns: i64, max: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((due_ns, piece)) = direction.pieces.front_mut() {
        if *due_ns > now_ns || bytes.len() == max {
            break;
        }
        let count = piece.len().min(max - bytes.len());
        bytes.extend(piece.drain(..count));
        if piece.is_empty() {
            direction.pieces.pop_front();
        }
        if random.below(2) == 0 {
            break;
        }
    }
    bytes
}
