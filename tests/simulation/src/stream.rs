//! Connections of TCP between peers and one program, on a network that cuts what is said into any pieces, holds them back, breaks
//! connections between any two bytes and lets others fall silent. Bytes that arrive are those that were sent, in their
//! order: TCP sees to that. Does to the program what the driver `tcp:` does, and knows no protocol.

use crate::MILLISECOND_NS;
use crate::node::Node;
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::ChannelId;
use quaject_test_support::random::Random;
use std::collections::{BTreeMap, VecDeque};

/// What the system takes of a program's bytes before they have arrived: little, so that programs have to wait.
const SYSTEM_HOLDS: usize = 16 * 1024;
/// What the driver takes beyond that; a program that goes on is one that does not mind its peers.
const DRIVER_HOLDS: usize = 256 * 1024;

/// Events that wait for the program.
const TOLD: usize = 4;
/// What happens within it happens at once.
const MOMENT_NS: i64 = MILLISECOND_NS;

/// What the network does to connections.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weather {
    /// The least and the greatest delay of a piece.
    pub(crate) delay_ns: (i64, i64),
    /// One piece in so many is held back as if it had been lost and said again; 0: none.
    pub(crate) stalls: u64,
    pub(crate) stall_ns: i64,
    /// For how long a connection lasts at most; 0: for ever.
    pub(crate) lasts_ns: i64,
    /// Of those that end so, one in so many falls silent instead of being broken; 0: none.
    pub(crate) silent: u64,
    /// The time from one cut to the next, and how long one lasts, in which nothing arrives.
    pub(crate) cut_ns: Option<(i64, i64)>,
}

/// A network that only takes its time.
pub(crate) const GOOD: Weather = Weather {
    delay_ns: (MILLISECOND_NS / 10, 3 * MILLISECOND_NS),
    stalls: 0,
    stall_ns: 0,
    lasts_ns: 0,
    silent: 0,
    cut_ns: None,
};

/// A connection, by its number; none is ever used again.
pub(crate) type LinkId = u64;

/// What a peer hears.
pub(crate) enum Heard {
    Bytes(Vec<u8>),
    Ended,
}

/// What has happened to the connections.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sufferings {
    pub(crate) broken: u64,
    pub(crate) silenced: u64,
    pub(crate) stalled: u64,
    pub(crate) pieces: u64,
    /// Connections that ended in the middle of what was said.
    pub(crate) cut_short: u64,
}

/// One direction of a connection.
#[derive(Default)]
struct Way {
    /// With the times at which they arrive, which never fall.
    pieces: VecDeque<(i64, Vec<u8>)>,
    last_ns: i64,
    /// When the other side learns of the end, which comes after all pieces.
    ends_ns: Option<i64>,
    /// Whether it has learnt, or nobody sends or reads any more.
    over: bool,
}

impl Way {
    fn bytes(&self) -> usize {
        self.pieces.iter().map(|(_, piece)| piece.len()).sum()
    }

    fn due_ns(&self) -> Option<i64> {
        if self.over { None } else { self.pieces.front().map(|(due_ns, _)| *due_ns).or(self.ends_ns) }
    }

    fn end(&mut self, now_ns: i64) {
        self.ends_ns.get_or_insert(now_ns.max(self.last_ns));
    }

    /// Only so many of the bytes under way arrive.
    fn cut(&mut self, mut bytes: usize) {
        for (_, piece) in &mut self.pieces {
            piece.truncate(bytes);
            bytes -= piece.len();
        }
        self.pieces.retain(|(_, piece)| !piece.is_empty());
    }
}

struct Link {
    /// The instance of the program that has it.
    instance: Option<u32>,
    /// When it reaches the program, which takes it as soon as an instance is free.
    calls_ns: i64,
    /// To the program, and from it.
    up: Way,
    down: Way,
    /// When the network ends it.
    fails_ns: Option<i64>,
    silent: bool,
    /// Whether the program is owed a `sent`.
    owes_sent: bool,
    /// Bytes that have reached the program, and when the last of them, or the connection, did.
    reached: u64,
    reached_ns: i64,
}

impl Link {
    /// The peer is gone, which the program hears of if it hears of anything.
    fn leave(&mut self, arrival_ns: i64) {
        if !self.silent {
            self.up.end(arrival_ns);
        }
        self.down.over = true;
    }

    fn said(&self, id: LinkId, bytes: Option<Vec<u8>>) -> Said {
        Said { id, bytes, reached: self.reached, reached_ns: self.reached_ns }
    }
}

/// What the program asks for.
pub(crate) struct Said {
    pub(crate) id: LinkId,
    /// What it says; none when it closes the connection.
    pub(crate) bytes: Option<Vec<u8>>,
    /// How many bytes of this peer have reached it, and when the last did.
    pub(crate) reached: u64,
    pub(crate) reached_ns: i64,
}

/// All connections of a program.
pub(crate) struct Network {
    pub(crate) weather: Weather,
    pub(crate) sufferings: Sufferings,
    events: ChannelId,
    /// By the names of the driver's cases.
    opened: Datum,
    closed: Datum,
    sent: Option<Datum>,
    data: u32,
    data_said: u32,
    /// The bytes of an event.
    chunk: usize,
    /// The number of the first instance that has connections.
    first: u32,
    /// By instance.
    taken: Vec<Option<LinkId>>,
    links: BTreeMap<LinkId, Link>,
    next: LinkId,
    random: Random,
}

/// The names of a program's channels of connections, and what it takes at once.
pub(crate) struct Channels {
    pub(crate) events: &'static str,
    pub(crate) requests: &'static str,
    pub(crate) chunk: usize,
    /// How many connections it takes at once.
    pub(crate) instances: usize,
    /// Whether it wants to hear when all has gone out.
    pub(crate) hears_sent: bool,
}

impl Network {
    pub(crate) fn new(node: &Node<'_>, channels: &Channels, weather: Weather, seed: u64) -> Network {
        let (events, requests) = (node.channel(channels.events), node.channel(channels.requests));
        let event = |name: &str| Datum::Union(node.case(events, 1, name), None);
        Network {
            weather,
            sufferings: Sufferings::default(),
            events,
            opened: event("opened"),
            closed: event("closed"),
            sent: channels.hears_sent.then(|| event("sent")),
            data: node.case(events, 1, "data"),
            data_said: node.case(requests, 1, "data"),
            chunk: channels.chunk,
            first: node.first_instance(events),
            taken: vec![None; channels.instances],
            links: BTreeMap::new(),
            next: 1,
            random: Random(seed),
        }
    }

    /// A peer begins a connection, and may speak at once.
    pub(crate) fn call(&mut self, now_ns: i64) -> LinkId {
        let calls_ns = self.arrival_ns(now_ns);
        let fails_ns =
            (self.weather.lasts_ns > 0).then(|| calls_ns + self.random.below(self.weather.lasts_ns as u64) as i64);
        let link = Link {
            instance: None,
            calls_ns,
            up: Way::default(),
            down: Way::default(),
            fails_ns,
            silent: false,
            owes_sent: false,
            reached: 0,
            reached_ns: now_ns,
        };
        self.links.insert(self.next, link);
        self.next += 1;
        self.next - 1
    }

    /// A peer says something.
    pub(crate) fn say(&mut self, id: LinkId, bytes: &[u8], now_ns: i64) {
        self.send(id, bytes, now_ns, |link| &mut link.up);
    }

    /// A peer sends no more, and reads no more.
    pub(crate) fn hang_up(&mut self, id: LinkId, now_ns: i64) {
        let arrival_ns = self.arrival_ns(now_ns);
        let Some(link) = self.links.get_mut(&id) else { return };
        link.leave(arrival_ns);
        self.tidy(id);
    }

    /// A peer is gone in the middle of whatever it says.
    pub(crate) fn abandon(&mut self, id: LinkId, now_ns: i64) {
        let arrival_ns = self.arrival_ns(now_ns);
        let Some(link) = self.links.get_mut(&id) else { return };
        let bytes = link.up.bytes();
        link.up.cut(self.random.below(bytes as u64 + 1) as usize);
        link.leave(arrival_ns);
        self.tidy(id);
    }

    /// When something of a peer has reached the program last, if that has the connection.
    pub(crate) fn reached_ns(&self, id: LinkId) -> Option<i64> {
        self.links.get(&id).filter(|link| link.instance.is_some()).map(|link| link.reached_ns)
    }

    /// Lets the connections that there are last.
    pub(crate) fn spare(&mut self) {
        for link in self.links.values_mut() {
            link.fails_ns = None;
        }
    }

    /// Does what the program asks for; nothing if it has no such connection.
    pub(crate) fn carry(&mut self, node: &mut Node<'_>, message: &[Datum], now_ns: i64) -> Option<Said> {
        let [Datum::Pid(instance), Datum::Union(case, content)] = message else { panic!("{message:?}") };
        let place = (*instance - self.first) as usize;
        let id = self.taken[place]?;
        if *case == self.data_said {
            let Some(Datum::Bytes(bytes)) = content.as_deref() else { panic!("{message:?}") };
            self.send(id, bytes, now_ns, |link| &mut link.down);
            let link = self.links.get_mut(&id).expect("the program has it");
            link.owes_sent = true;
            assert!(
                link.down.bytes() < SYSTEM_HOLDS + DRIVER_HOLDS,
                "it says more and more to a peer that takes nothing"
            );
            return Some(link.said(id, Some(bytes.clone())));
        }
        // What has been told and not heard is not for the next connection of this instance.
        node.forget(self.events, |event| event[0] == Datum::Pid(*instance));
        self.taken[place] = None;
        let arrival_ns = self.arrival_ns(now_ns);
        let link = self.links.get_mut(&id).expect("the program has it");
        link.instance = None;
        link.up.over = true;
        link.up.pieces.clear();
        link.down.end(arrival_ns);
        link.calls_ns = i64::MAX;
        let said = link.said(id, None);
        self.tidy(id);
        Some(said)
    }

    /// Lets one event reach the program, if there is one; whether there was.
    pub(crate) fn reach(&mut self, node: &mut Node<'_>, now_ns: i64) -> bool {
        self.fail(now_ns);
        // The driver tells one after the other, and a program may not have come to look.
        if node.waiting(self.events) >= TOLD {
            return false;
        }
        let Some((id, instance, event)) = self.event(now_ns) else { return false };
        node.tell(self.events, vec![Datum::Pid(instance), event]);
        self.tidy(id);
        true
    }

    fn event(&mut self, now_ns: i64) -> Option<(LinkId, u32, Datum)> {
        if let Some(place) = self.taken.iter().position(Option::is_none) {
            let instance = self.first + place as u32;
            let calls = self.links.iter_mut().filter(|(_, link)| link.instance.is_none() && link.calls_ns <= now_ns);
            if let Some((id, link)) = calls.min_by_key(|(_, link)| link.calls_ns) {
                link.instance = Some(instance);
                link.reached_ns = now_ns;
                self.taken[place] = Some(*id);
                return Some((*id, instance, self.opened.clone()));
            }
        }
        for (id, link) in &mut self.links {
            let Some(instance) = link.instance else { continue };
            if let (true, Some(sent)) = (link.owes_sent && link.down.bytes() <= SYSTEM_HOLDS, &self.sent) {
                link.owes_sent = false;
                return Some((*id, instance, sent.clone()));
            }
            if link.up.due_ns().is_none_or(|due_ns| due_ns > now_ns) {
                continue;
            }
            let bytes = pieces_of(&mut link.up, now_ns, self.chunk, &mut self.random);
            if bytes.is_empty() {
                link.up.over = true;
                return Some((*id, instance, self.closed.clone()));
            }
            link.reached += bytes.len() as u64;
            link.reached_ns = now_ns;
            return Some((*id, instance, Datum::Union(self.data, Some(Box::new(Datum::Bytes(bytes))))));
        }
        None
    }

    /// The next thing that a peer hears.
    pub(crate) fn hear(&mut self, now_ns: i64) -> Option<(LinkId, Heard)> {
        let (id, link) =
            self.links.iter_mut().find(|(_, link)| link.down.due_ns().is_some_and(|due_ns| due_ns <= now_ns))?;
        let (id, bytes) = (*id, pieces_of(&mut link.down, now_ns, usize::MAX, &mut self.random));
        if !bytes.is_empty() {
            return Some((id, Heard::Bytes(bytes)));
        }
        link.down.over = true;
        self.tidy(id);
        Some((id, Heard::Ended))
    }

    /// When anything happens next.
    pub(crate) fn next_ns(&self, now_ns: i64) -> Option<i64> {
        let of_link = |link: &Link| {
            let calls_ns = (link.instance.is_none() && !link.up.over).then_some(link.calls_ns);
            let up_ns = link.instance.and(link.up.due_ns());
            [calls_ns, up_ns, link.down.due_ns(), link.fails_ns]
                .into_iter()
                .flatten()
                .filter(|time| *time > now_ns)
                .min()
        };
        self.links.values().filter_map(of_link).min()
    }

    /// Ends what has lasted long enough.
    fn fail(&mut self, now_ns: i64) {
        let Network { links, weather, sufferings, random, .. } = self;
        for link in links.values_mut().filter(|link| link.fails_ns.is_some_and(|fails_ns| fails_ns <= now_ns)) {
            link.fails_ns = None;
            for way in [&mut link.up, &mut link.down] {
                let bytes = way.bytes();
                let arrive = random.below(bytes as u64 + 1) as usize;
                sufferings.cut_short += u64::from(arrive < bytes);
                way.cut(arrive);
            }
            link.silent = weather.silent > 0 && random.below(weather.silent) == 0;
            if link.silent {
                sufferings.silenced += 1;
            } else {
                sufferings.broken += 1;
                link.up.end(now_ns);
                link.down.end(now_ns);
            }
        }
    }

    fn send(&mut self, id: LinkId, bytes: &[u8], now_ns: i64, way: impl Fn(&mut Link) -> &mut Way) {
        let mut rest = bytes;
        while !rest.is_empty() {
            let most = [1, 3, 60, 1_460, 1_460, 1_460][self.random.below(6) as usize];
            let (piece, later) = rest.split_at(rest.len().min(1 + self.random.below(most) as usize));
            rest = later;
            let arrival_ns = self.arrival_ns(now_ns);
            let Some(link) = self.links.get_mut(&id) else { return };
            let silent = link.silent;
            let way = way(link);
            if way.over || way.ends_ns.is_some() {
                return;
            }
            // What is said into silence waits for ever.
            let due_ns = if silent { i64::MAX } else { arrival_ns.max(way.last_ns) };
            way.last_ns = due_ns;
            way.pieces.push_back((due_ns, piece.to_vec()));
            self.sufferings.pieces += 1;
        }
    }

    /// When what is sent now arrives, if nothing is before it.
    fn arrival_ns(&mut self, now_ns: i64) -> i64 {
        let (least, most) = self.weather.delay_ns;
        let mut due_ns = now_ns + least + self.random.below((most - least + 1) as u64) as i64;
        if self.weather.stalls > 0 && self.random.below(self.weather.stalls) == 0 {
            self.sufferings.stalled += 1;
            due_ns += self.random.below(self.weather.stall_ns as u64) as i64;
        }
        // What arrives at about the same time does so at once: that much is for the program to put in order.
        due_ns += MOMENT_NS - due_ns % MOMENT_NS;
        if let Some((period, length)) = self.weather.cut_ns {
            let phase = due_ns % period;
            if phase >= period - length {
                due_ns += period - phase + self.random.below(20) as i64 * MOMENT_NS;
            }
        }
        due_ns
    }

    /// Forgets a connection that is over on both sides.
    fn tidy(&mut self, id: LinkId) {
        if self.links.get(&id).is_some_and(|link| link.instance.is_none() && link.up.over && link.down.over) {
            self.links.remove(&id);
        }
    }
}

/// What has arrived, in one piece or several; nothing: the end.
fn pieces_of(way: &mut Way, now_ns: i64, most: usize, random: &mut Random) -> Vec<u8> {
    let mut bytes = Vec::new();
    while let Some((due_ns, piece)) = way.pieces.front_mut() {
        if *due_ns > now_ns || bytes.len() == most {
            break;
        }
        let room = piece.len().min(most - bytes.len());
        bytes.extend(piece.drain(..room));
        if piece.is_empty() {
            way.pieces.pop_front();
        }
        if random.below(2) == 0 {
            break;
        }
    }
    bytes
}
