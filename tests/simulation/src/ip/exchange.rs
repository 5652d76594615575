//! An exchange of a host with another: one TCP connection, or some datagrams, by smoltcp. Compares all bytes that
//! arrive with the expected ones.

use super::goal::{Goal, Verdict};
use super::packets::{self, Packets};
use super::stream::{self, Stream};
use crate::SECOND_NS;
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::socket::tcp;

/// How long a connection may take to close.
const LINGER_NS: i64 = 300 * SECOND_NS;

/// An exchange to start.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// The name under which it is counted.
    pub(crate) kind: &'static str,
    pub(crate) goal: Goal,
    pub(crate) traffic: Traffic,
}

#[derive(Clone, Debug)]
pub(crate) enum Traffic {
    Stream(Stream),
    Packets(Packets),
}

enum Progress {
    Stream(stream::Transfer),
    Packets(packets::Requests),
}

pub(crate) struct Exchange {
    pub(crate) kind: &'static str,
    pub(crate) local: u16,
    pub(crate) begun_ns: i64,
    handle: SocketHandle,
    progress: Progress,
    pub(crate) verdict: Option<Verdict>,
    ended_ns: i64,
    /// Whether the verdict is known and the socket is no longer needed.
    pub(crate) over: bool,
}

impl Exchange {
    /// Starts from this port.
    pub(crate) fn begin(
        plan: Plan,
        local: u16,
        interface: &mut Interface,
        sockets: &mut SocketSet<'static>,
        now_ns: i64,
    ) -> Exchange {
        let kind = plan.kind;
        let (handle, progress) = match &plan.traffic {
            Traffic::Stream(stream) => {
                let socket = stream::connect(&plan.goal, stream, local, interface);
                (
                    sockets.add(socket),
                    Progress::Stream(stream::Transfer::new(stream.clone(), plan.goal.expected, now_ns)),
                )
            }
            Traffic::Packets(packets) => {
                let own = [&local.to_be_bytes()[..], &now_ns.to_be_bytes()].concat();
                let (handle, progress) = packets::Requests::begin(&plan.goal, packets.clone(), local, own, sockets);
                (handle, Progress::Packets(progress))
            }
        };
        Exchange { kind, local, begun_ns: now_ns, handle, progress, verdict: None, ended_ns: 0, over: false }
    }

    pub(crate) fn end(&self, sockets: &mut SocketSet<'static>) {
        sockets.remove(self.handle);
        if let Progress::Packets(progress) = &self.progress {
            progress.end(sockets);
        }
    }

    /// The number of bytes received.
    pub(crate) fn bytes(&self) -> u64 {
        match &self.progress {
            Progress::Stream(progress) => progress.received as u64,
            Progress::Packets(progress) => progress.received as u64,
        }
    }

    /// The time of its next action after now.
    pub(crate) fn due_ns(&self, now_ns: i64) -> Option<i64> {
        match (&self.progress, self.verdict) {
            _ if self.over => None,
            (Progress::Stream(progress), None) => Some(progress.due_ns(now_ns)),
            (Progress::Packets(progress), None) => Some(progress.next_ns),
            (_, Some(_)) => Some(self.ended_ns + LINGER_NS),
        }
    }

    /// Continues; whether anything has changed.
    pub(crate) fn step(&mut self, sockets: &mut SocketSet<'static>, now_ns: i64) -> bool {
        if self.over {
            return false;
        }
        if self.verdict.is_some() {
            return self.linger(sockets, now_ns);
        }
        let (moved, verdict) = match &mut self.progress {
            Progress::Stream(progress) => progress.step(sockets.get_mut(self.handle), now_ns),
            Progress::Packets(progress) => progress.step(sockets, self.handle, now_ns),
        };
        match verdict {
            Ok(None) => moved,
            Ok(verdict) => {
                self.verdict = verdict;
                self.ended_ns = now_ns;
                self.over = matches!(self.progress, Progress::Packets(_));
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

    /// A connection is over when both sides are closed.
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
