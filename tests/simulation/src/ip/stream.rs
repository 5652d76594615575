//! A connection of a host: says something and hears something, at some pace, and ends first, last or in the middle.
//! Knows nothing of what is said.

use super::talk::{Fate, Plan, Verdict};
use crate::SECOND_NS;
use smoltcp::iface::Interface;
use smoltcp::socket::tcp;
use smoltcp::wire::{IpAddress, IpEndpoint, IpListenEndpoint};
use std::rc::Rc;

/// After how long a server may end without having heard anything.
const DISMISSED_NS: i64 = 29 * SECOND_NS;

#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) says: Rc<[u8]>,
    pub(crate) hears: Rc<[u8]>,
    pub(crate) closes: Closes,
    pub(crate) pace: Pace,
    /// The size of its buffers.
    pub(crate) buffer: usize,
    /// After how many bytes it rests, and for how long.
    pub(crate) rests: Option<(usize, i64)>,
    /// How long it waits while nothing goes on.
    pub(crate) patience_ns: i64,
}

/// When a host ends its side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Closes {
    /// Once all is said.
    First,
    /// Once the other side has ended.
    Last,
    /// It breaks the connection when it has heard so many bytes.
    Broken(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    AsItComes,
    /// At most so many bytes every half second.
    Slow(usize),
}

/// How far it has come.
pub(crate) struct Course {
    stream: Stream,
    fate: Fate,
    begun_ns: i64,
    said: usize,
    pub(crate) heard: usize,
    /// What things looked like when they last changed, and when that was.
    progress: (usize, usize, usize, tcp::State),
    progress_ns: i64,
    /// When it hears more.
    hears_ns: i64,
    /// Until when it rests.
    rests_ns: Option<i64>,
}

/// Begins to connect.
pub(crate) fn connect(plan: &Plan, stream: &Stream, local: u16, interface: &mut Interface) -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; stream.buffer]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    // All that smoltcp has, in turn.
    let controls = [tcp::CongestionControl::None, tcp::CongestionControl::Reno, tcp::CongestionControl::Cubic];
    socket.set_congestion_control(controls[usize::from(local) % 3]);
    socket.set_nagle_enabled(local.is_multiple_of(2));
    let from = IpListenEndpoint { addr: Some(IpAddress::Ipv4(plan.source)), port: local };
    let target = IpEndpoint::new(IpAddress::Ipv4(plan.target), plan.port);
    socket.connect(interface.context(), target, from).expect("both ends are addresses");
    socket
}

impl Course {
    pub(crate) fn new(stream: Stream, fate: Fate, now_ns: i64) -> Course {
        let progress = (0, 0, 0, tcp::State::SynSent);
        let (begun_ns, progress_ns) = (now_ns, now_ns);
        Course { stream, fate, begun_ns, said: 0, heard: 0, progress, progress_ns, hears_ns: 0, rests_ns: None }
    }

    /// When it goes on by itself, after now.
    pub(crate) fn due_ns(&self, now_ns: i64) -> i64 {
        let patience_ns = self.progress_ns + self.stream.patience_ns;
        [Some(self.hears_ns), self.rests_ns]
            .into_iter()
            .flatten()
            .filter(|due_ns| *due_ns > now_ns)
            .fold(patience_ns, i64::min)
    }

    /// Goes on: whether anything has changed, and what has become of it, if it is over; or what is wrong.
    pub(crate) fn step(
        &mut self,
        socket: &mut tcp::Socket<'static>,
        now_ns: i64,
    ) -> (bool, Result<Option<Verdict>, String>) {
        let before = (self.said, self.heard);
        match self.hear(socket, now_ns) {
            Ok(None) => {}
            verdict => return (true, verdict),
        }
        if socket.may_send() && matches!(self.fate, Fate::Refused | Fate::Ignored) {
            return (true, Err("somebody has answered".to_string()));
        }
        if socket.may_send()
            && let Closes::Broken(at) = self.stream.closes
            && self.heard >= at
        {
            socket.abort();
            return (true, Ok(Some(Verdict::Broken)));
        }
        let resting = self.say(socket, now_ns);
        let progress = (self.said, self.heard, socket.send_queue(), socket.state());
        if progress != self.progress || resting {
            self.progress = progress;
            self.progress_ns = now_ns;
        } else if now_ns >= self.progress_ns + self.stream.patience_ns {
            socket.abort();
            let ignored = matches!(self.fate, Fate::Ignored | Fate::Forgotten);
            return (true, Ok(Some(if ignored { Verdict::Done } else { Verdict::TimedOut })));
        }
        (before != (self.said, self.heard), Ok(None))
    }

    /// Says what there is room for; whether it rests.
    fn say(&mut self, socket: &mut tcp::Socket<'static>, now_ns: i64) -> bool {
        if !socket.may_send() {
            return false;
        }
        if let Some(rests_ns) = self.rests_ns {
            if now_ns < rests_ns {
                return true;
            }
            self.rests_ns = None;
        }
        let all = self.stream.says.len();
        let limit = self.stream.rests.map_or(all, |(at, _)| at.min(all));
        self.said += socket.send_slice(&self.stream.says[self.said..limit]).unwrap_or(0);
        if let Some((at, rest_ns)) = self.stream.rests
            && self.said == at.min(all)
            && socket.send_queue() == 0
        {
            self.stream.rests = None;
            self.rests_ns = Some(now_ns + rest_ns);
            return true;
        }
        if self.said == all && self.stream.rests.is_none() && self.stream.closes == Closes::First {
            socket.close();
        }
        false
    }

    /// Takes what has come.
    fn hear(&mut self, socket: &mut tcp::Socket<'static>, now_ns: i64) -> Result<Option<Verdict>, String> {
        let mut buffer = [0; 4096];
        // smoltcp forgets at the end of TIME-WAIT what nobody has taken.
        let pace = if socket.state() == tcp::State::TimeWait { Pace::AsItComes } else { self.stream.pace };
        while self.hears_ns <= now_ns || pace == Pace::AsItComes {
            let most = match pace {
                Pace::AsItComes => buffer.len(),
                Pace::Slow(most) => most,
            };
            match socket.recv_slice(&mut buffer[..most]) {
                Ok(0) => break,
                Ok(count) => {
                    let heard = &buffer[..count];
                    if self.stream.hears.get(self.heard..self.heard + count) != Some(heard) {
                        let all = self.stream.hears.len();
                        let heard = String::from_utf8_lossy(&heard[..count.min(100)]);
                        return Err(format!("after {} of {all} bytes come others: {heard:?}", self.heard));
                    }
                    self.heard += count;
                    if let Pace::Slow(_) = pace {
                        self.hears_ns = now_ns + SECOND_NS / 2;
                    }
                }
                Err(tcp::RecvError::Finished) => {
                    socket.close();
                    return match (self.heard, self.stream.hears.len()) {
                        _ if self.fate == Fate::Forgotten => Err("it should have been forgotten".to_string()),
                        (heard, all) if heard == all => Ok(Some(Verdict::Done)),
                        (0, _) if now_ns - self.begun_ns > DISMISSED_NS => Ok(Some(Verdict::Dismissed)),
                        (heard, all) => Err(format!("it ends as if {heard} of {all} bytes were all")),
                    };
                }
                Err(tcp::RecvError::InvalidState) => {
                    let refused = self.fate == Fate::Refused;
                    let reset = if refused { Verdict::Done } else { Verdict::Reset };
                    return Ok((socket.state() == tcp::State::Closed).then_some(reset));
                }
            }
        }
        Ok(None)
    }
}
