//! What a host is about: one connection or some packets, by another's TCP, UDP and ICMP (smoltcp's), and what has
//! become of it. Whatever arrives is compared at once.

use super::packets::{self, Packets};
use super::stream::{self, Stream};
use crate::SECOND_NS;
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp;
use smoltcp::wire::Ipv4Address;

/// How long a connection may take to end once all has been said.
const LINGER_NS: i64 = 300 * SECOND_NS;

/// What shall be done.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// By which name it is counted.
    pub(crate) kind: &'static str,
    /// The host's own address.
    pub(crate) source: Ipv4Address,
    pub(crate) target: Ipv4Address,
    pub(crate) port: u16,
    pub(crate) what: What,
    pub(crate) fate: Fate,
}

#[derive(Clone, Debug)]
pub(crate) enum What {
    Stream(Stream),
    Packets(Packets),
}

/// What becomes of it if the network lets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fate {
    Served,
    /// The other side says that nobody is there.
    Refused,
    /// Nothing ever comes.
    Ignored,
    /// Nothing comes any more once it has rested.
    Forgotten,
}

/// What has become of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// All bytes, or the fate that was to be expected.
    Done,
    /// The other side was out of patience before it heard anything.
    Dismissed,
    /// The other side has broken the connection.
    Reset,
    /// Nothing has come for too long.
    TimedOut,
    /// We have broken it, on purpose.
    Broken,
}

enum Course {
    Stream(stream::Course),
    Packets(packets::Course),
}

pub(crate) struct Talk {
    pub(crate) kind: &'static str,
    pub(crate) local: u16,
    pub(crate) begun_ns: i64,
    handle: SocketHandle,
    course: Course,
    pub(crate) verdict: Option<Verdict>,
    ended_ns: i64,
    /// The verdict is known, and the socket is no longer needed.
    pub(crate) over: bool,
}

impl Talk {
    /// Begins, from this port.
    pub(crate) fn begin(
        plan: Plan,
        local: u16,
        interface: &mut Interface,
        sockets: &mut SocketSet<'static>,
        now_ns: i64,
    ) -> Talk {
        let kind = plan.kind;
        let (handle, course) = match &plan.what {
            What::Stream(stream) => {
                let socket = stream::connect(&plan, stream, local, interface);
                (sockets.add(socket), Course::Stream(stream::Course::new(stream.clone(), plan.fate, now_ns)))
            }
            What::Packets(packets) => {
                let own = [&local.to_be_bytes()[..], &now_ns.to_be_bytes()].concat();
                let (handle, course) = packets::Course::begin(&plan, packets.clone(), local, own, sockets);
                (handle, Course::Packets(course))
            }
        };
        Talk { kind, local, begun_ns: now_ns, handle, course, verdict: None, ended_ns: 0, over: false }
    }

    pub(crate) fn end(&self, sockets: &mut SocketSet<'static>) {
        sockets.remove(self.handle);
        if let Course::Packets(course) = &self.course {
            course.end(sockets);
        }
    }

    /// How many bytes have come.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.course {
            Course::Stream(course) => course.heard as u64,
            Course::Packets(course) => course.heard as u64,
        }
    }

    /// When it goes on by itself, after now.
    pub(crate) fn due_ns(&self, now_ns: i64) -> Option<i64> {
        match (&self.course, self.verdict) {
            _ if self.over => None,
            (Course::Stream(course), None) => Some(course.due_ns(now_ns)),
            (Course::Packets(course), None) => Some(course.next_ns),
            (_, Some(_)) => Some(self.ended_ns + LINGER_NS),
        }
    }

    /// Goes on; whether anything has changed.
    pub(crate) fn step(&mut self, sockets: &mut SocketSet<'static>, now_ns: i64) -> bool {
        if self.over {
            return false;
        }
        if self.verdict.is_some() {
            return self.linger(sockets, now_ns);
        }
        let (moved, verdict) = match &mut self.course {
            Course::Stream(course) => course.step(sockets.get_mut(self.handle), now_ns),
            Course::Packets(course) => course.step(sockets, self.handle, now_ns),
        };
        match verdict {
            Ok(None) => moved,
            Ok(verdict) => {
                self.verdict = verdict;
                self.ended_ns = now_ns;
                self.over = matches!(self.course, Course::Packets(_));
                true
            }
            Err(wrong) => panic!(
                "{} from port {}, {} s after the beginning, {} s after its own: {wrong}",
                self.kind,
                self.local,
                now_ns / SECOND_NS,
                (now_ns - self.begun_ns) / SECOND_NS
            ),
        }
    }

    /// A connection is over when the other side knows, too.
    fn linger(&mut self, sockets: &mut SocketSet<'static>, now_ns: i64) -> bool {
        let socket: &mut tcp::Socket<'_> = sockets.get_mut(self.handle);
        let late = now_ns >= self.ended_ns + LINGER_NS;
        if socket.state() == tcp::State::Closed {
            self.over = socket.remote_endpoint().is_none();
            return false;
        }
        if late {
            socket.abort();
        }
        late
    }
}
