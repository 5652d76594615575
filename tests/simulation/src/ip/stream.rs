//! A TCP connection of a host: sends one stream of bytes and expects another, at a given pace; it close first, last or
//! aborts. Knows no protocol above TCP.

use super::goal::{Expected, Goal, Verdict};
use crate::SECOND_NS;
use smoltcp::iface::Interface;
use smoltcp::socket::tcp;
use smoltcp::wire::{IpAddress, IpEndpoint, IpListenEndpoint};
use std::rc::Rc;

/// The time after which a server may close a connection without data.
const DISMISSED_NS: i64 = 29 * SECOND_NS;

#[derive(Clone, Debug)]
pub(crate) struct Stream {
    pub(crate) sends: Rc<[u8]>,
    pub(crate) expects: Rc<[u8]>,
    pub(crate) close: Close,
    pub(crate) pace: Pace,
    /// The size of its buffers.
    pub(crate) buffer: usize,
    /// The number of bytes after which it pauses, and for how long.
    pub(crate) pause: Option<(usize, i64)>,
    /// How long it waits without progress.
    pub(crate) timeout_ns: i64,
}

/// When a host ends its side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Close {
    /// After its last byte.
    First,
    /// After the other side.
    Last,
    /// It aborts the connection when it has received this many bytes.
    Broken(usize),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Pace {
    Unlimited,
    /// At max this many bytes every half second.
    Slow(usize),
}

/// A connection in progress.
pub(crate) struct Transfer {
    stream: Stream,
    expected: Expected,
    begun_ns: i64,
    sent: usize,
    pub(crate) received: usize,
    /// The state at the last change, and its time.
    progress: (usize, usize, usize, tcp::State),
    progress_ns: i64,
    /// When it reads again.
    reads_at_ns: i64,
    /// The end of its pause.
    pause_ends_ns: Option<i64>,
}

/// Starts to connect.
pub(crate) fn connect(goal: &Goal, stream: &Stream, local: u16, interface: &mut Interface) -> tcp::Socket<'static> {
    let buffer = || tcp::SocketBuffer::new(vec![0; stream.buffer]);
    let mut socket = tcp::Socket::new(buffer(), buffer());
    // All that smoltcp has, in turn.
    let controls = [tcp::CongestionControl::None, tcp::CongestionControl::Reno, tcp::CongestionControl::Cubic];
    socket.set_congestion_control(controls[usize::from(local) % 3]);
    socket.set_nagle_enabled(local.is_multiple_of(2));
    let from = IpListenEndpoint { addr: Some(IpAddress::Ipv4(goal.source)), port: local };
    let target = IpEndpoint::new(IpAddress::Ipv4(goal.target), goal.port);
    socket.connect(interface.context(), target, from).expect("both ends are addresses");
    socket
}

impl Transfer {
    pub(crate) fn new(stream: Stream, expected: Expected, now_ns: i64) -> Transfer {
        let progress = (0, 0, 0, tcp::State::SynSent);
        let (begun_ns, progress_ns) = (now_ns, now_ns);
        Transfer {
            stream,
            expected,
            begun_ns,
            sent: 0,
            received: 0,
            progress,
            progress_ns,
            reads_at_ns: 0,
            pause_ends_ns: None,
        }
    }

    /// The time of its next action after now.
    pub(crate) fn due_ns(&self, now_ns: i64) -> i64 {
        let timeout_ns = self.progress_ns + self.stream.timeout_ns;
        [Some(self.reads_at_ns), self.pause_ends_ns]
            .into_iter()
            .flatten()
            .filter(|due_ns| *due_ns > now_ns)
            .fold(timeout_ns, i64::min)
    }

    /// Continues: whether anything has changed, and the verdict, if there is one, or a description of the error.
    pub(crate) fn step(
        &mut self,
        socket: &mut tcp::Socket<'static>,
        now_ns: i64,
    ) -> (bool, Result<Option<Verdict>, String>) {
        let before = (self.sent, self.received);
        match self.receive(socket, now_ns) {
            Ok(None) => {}
            verdict => return (true, verdict),
        }
        if socket.may_send() && matches!(self.expected, Expected::Refused | Expected::Ignored) {
            return (true, Err("a peer has answered".to_string()));
        }
        if socket.may_send()
            && let Close::Broken(at) = self.stream.close
            && self.received >= at
        {
            socket.abort();
            return (true, Ok(Some(Verdict::Broken)));
        }
        let is_pausing = self.send(socket, now_ns);
        let progress = (self.sent, self.received, socket.send_queue(), socket.state());
        if progress != self.progress || is_pausing {
            self.progress = progress;
            self.progress_ns = now_ns;
        } else if now_ns >= self.progress_ns + self.stream.timeout_ns {
            socket.abort();
            let ignored = matches!(self.expected, Expected::Ignored | Expected::Forgotten);
            return (true, Ok(Some(if ignored { Verdict::Done } else { Verdict::TimedOut })));
        }
        (before != (self.sent, self.received), Ok(None))
    }

    /// Sends what the socket accepts; whether it pauses.
    fn send(&mut self, socket: &mut tcp::Socket<'static>, now_ns: i64) -> bool {
        if !socket.may_send() {
            return false;
        }
        if let Some(pause_ends_ns) = self.pause_ends_ns {
            if now_ns < pause_ends_ns {
                return true;
            }
            self.pause_ends_ns = None;
        }
        let all = self.stream.sends.len();
        let limit = self.stream.pause.map_or(all, |(at, _)| at.min(all));
        self.sent += socket.send_slice(&self.stream.sends[self.sent..limit]).unwrap_or(0);
        if let Some((at, pause_ns)) = self.stream.pause
            && self.sent == at.min(all)
            && socket.send_queue() == 0
        {
            self.stream.pause = None;
            self.pause_ends_ns = Some(now_ns + pause_ns);
            return true;
        }
        if self.sent == all && self.stream.pause.is_none() && self.stream.close == Close::First {
            socket.close();
        }
        false
    }

    /// Reads what has arrived.
    fn receive(&mut self, socket: &mut tcp::Socket<'static>, now_ns: i64) -> Result<Option<Verdict>, String> {
        let mut buffer = [0; 4096];
        // smoltcp discards unread data at the end of TIME-WAIT.
        let pace = if socket.state() == tcp::State::TimeWait { Pace::Unlimited } else { self.stream.pace };
        while self.reads_at_ns <= now_ns || pace == Pace::Unlimited {
            let max = match pace {
                Pace::Unlimited => buffer.len(),
                Pace::Slow(max) => max,
            };
            match socket.recv_slice(&mut buffer[..max]) {
                Ok(0) => break,
                Ok(count) => {
                    let received = &buffer[..count];
                    if self.stream.expects.get(self.received..self.received + count) != Some(received) {
                        let all = self.stream.expects.len();
                        let received = String::from_utf8_lossy(&received[..count.min(100)]);
                        return Err(format!(
                            "after {} of {all} bytes unexpected ones arrive: {received:?}",
                            self.received
                        ));
                    }
                    self.received += count;
                    if let Pace::Slow(_) = pace {
                        self.reads_at_ns = now_ns + SECOND_NS / 2;
                    }
                }
                Err(tcp::RecvError::Finished) => {
                    socket.close();
                    return match (self.received, self.stream.expects.len()) {
                        _ if self.expected == Expected::Forgotten => Err("it should have been forgotten".to_string()),
                        (received, all) if received == all => Ok(Some(Verdict::Done)),
                        (0, _) if now_ns - self.begun_ns > DISMISSED_NS => Ok(Some(Verdict::Dismissed)),
                        (received, all) => Err(format!("it close after {received} of {all} bytes")),
                    };
                }
                Err(tcp::RecvError::InvalidState) => {
                    let refused = self.expected == Expected::Refused;
                    let reset = if refused { Verdict::Done } else { Verdict::Reset };
                    return Ok((socket.state() == tcp::State::Closed).then_some(reset));
                }
            }
        }
        Ok(None)
    }
}
