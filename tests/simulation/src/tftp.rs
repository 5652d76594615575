//! The TFTP server and three TFTP clients (examples/tftp): uploads and downloads, sequential for each client, three at
//! a time for the server.

use crate::node::{Node, compile};
use crate::{SECOND_NS, wanted_ns};
use quaject_esp_exec::datum::Datum;
use quaject_esp_ir::ir::ChannelId;
use quaject_esp_run::{FaultInjector, FaultPlan};
use quaject_test_support::random::Random;
use std::collections::{BTreeMap, HashMap};

const CLIENTS: usize = 3;
const SERVER: usize = 0; // the number of its node; a node's address is its number
const SERVER_PORT: i128 = 69;
/// The port of the first instance; each instance has its own.
const FIRST_PORT: i128 = 10_000;
const BLOCK: usize = 1428;
/// The maximal time of a transfer for each of its packets: all retransmissions of both sides, with exponential backoff.
const PACKET_TIMEOUT_NS: i64 = 130 * SECOND_NS;

/// A file that is open for writing or reading.
enum Open {
    Read(String),
    New(String, Vec<u8>),
}

/// A program with its files.
struct Machine<'p> {
    node: Node<'p>,
    files: BTreeMap<String, Vec<u8>>,
    /// By instance.
    open: HashMap<u32, Open>,
}

/// A transfer of a client.
struct Transfer {
    name: String,
    content: Vec<u8>,
    puts: bool,
    begun_ns: i64,
}

#[derive(Default, Debug)]
struct Counts {
    got: u64,
    put: u64,
    failed: u64,
    bytes: u64,
    longest_ns: i64,
}

fn datagram(message: &[Datum]) -> (i128, i128, Vec<u8>) {
    let [Datum::Record(peer), Datum::Bytes(content)] = message else { panic!("{message:?}") };
    let [Datum::Int(host), Datum::Int(port)] = peer[..] else { panic!("{message:?}") };
    (host, port, content.clone())
}

fn text(datum: &Datum) -> String {
    let Datum::Bytes(bytes) = datum else { panic!("{datum:?}") };
    String::from_utf8_lossy(bytes).into_owned()
}

impl<'p> Machine<'p> {
    fn new(node: Node<'p>) -> Machine<'p> {
        Machine { node, files: BTreeMap::new(), open: HashMap::new() }
    }

    /// The driver `file:`.
    fn file(&mut self, channel: ChannelId, message: &[Datum]) {
        let [Datum::Pid(instance), Datum::Union(call, content)] = message else { panic!("{message:?}") };
        let reply = self.node.channel("fileReplyC");
        let done = Datum::Union(self.node.case(reply, 1, "done"), None);
        let failed = |code: i128, reason: &str| {
            let failure = Datum::Record(vec![Datum::Int(code), Datum::Bytes(reason.as_bytes().to_vec())]);
            Datum::Union(self.node.case(reply, 1, "failed"), Some(Box::new(failure)))
        };
        let is = |name: &str| self.node.case(channel, 1, name) == *call;
        let fields = || match content.as_deref() {
            Some(Datum::Record(fields)) => fields.as_slice(),
            _ => panic!("{message:?}"),
        };
        let at = || match fields()[0] {
            Datum::Int(at) => usize::try_from(at).expect("files are small"),
            _ => panic!("{message:?}"),
        };
        let answer = if is("open") {
            let name = text(content.as_ref().expect("a name"));
            if self.files.contains_key(&name) {
                self.open.insert(*instance, Open::Read(name));
                done
            } else {
                failed(1, "there is no such file")
            }
        } else if is("create") {
            let name = text(content.as_ref().expect("a name"));
            if self.files.contains_key(&name) {
                failed(6, "there is one")
            } else {
                self.open.insert(*instance, Open::New(name, Vec::new()));
                done
            }
        } else if is("read") {
            let (Some(Open::Read(name)), Datum::Int(count)) = (self.open.get(instance), &fields()[1]) else {
                panic!("{message:?}")
            };
            // It may be removed meanwhile, which is an end, too.
            let rest = self.files.get(name).and_then(|file| file.get(at()..)).unwrap_or(&[]);
            let data = rest[..rest.len().min(*count as usize)].to_vec();
            Datum::Union(self.node.case(reply, 1, "data"), Some(Box::new(Datum::Bytes(data))))
        } else if is("write") {
            let (at, Datum::Bytes(data)) = (at(), &fields()[1]) else { panic!("{message:?}") };
            let Some(Open::New(_, file)) = self.open.get_mut(instance) else { panic!("{message:?}") };
            file.resize(file.len().max(at + data.len()), 0);
            file[at..at + data.len()].copy_from_slice(data);
            done
        } else {
            if let (Some(Open::New(name, file)), true) = (self.open.remove(instance), is("close")) {
                self.files.insert(name, file);
            }
            done
        };
        self.node.offer(reply, vec![Datum::Pid(*instance), answer]);
    }

    /// A datagram arrives.
    fn receive(&mut self, from: (i128, i128), port: i128, content: Vec<u8>) {
        // The driver drops datagrams that are no messages.
        if content.len() > BLOCK + 4 {
            return;
        }
        let message = [Datum::Record(vec![Datum::Int(from.0), Datum::Int(from.1)]), Datum::Bytes(content)];
        if port == SERVER_PORT {
            self.node.offer(self.node.channel("requestC"), message.to_vec());
        } else {
            let instance = Datum::Pid((port - FIRST_PORT) as u32);
            self.node.offer(self.node.channel("rxC"), [&[instance][..], &message].concat());
        }
    }
}

struct Simulation<'p> {
    now_ns: i64,
    machines: Vec<Machine<'p>>,
    /// The links from and to a client, by its number: source port, target port, content.
    up: Vec<FaultInjector>,
    down: Vec<FaultInjector>,
    transfers: Vec<Option<Transfer>>,
    /// When a client starts its next transfer.
    next_ns: Vec<i64>,
    random: Random,
    number: u64,
    counts: Counts,
}

impl Simulation<'_> {
    /// Executes all events of the current time.
    fn run_to_quiescence(&mut self) {
        loop {
            let mut moved = false;
            for number in 0..self.machines.len() {
                self.machines[number].node.run(self.now_ns);
                while let Some((channel, message)) = self.machines[number].node.next_output() {
                    moved = true;
                    self.deliver(number, channel, &message);
                }
            }
            for client in 1..=CLIENTS {
                while let Some(message) = self.up[client].leave(self.now_ns) {
                    moved = true;
                    self.arrive(client, SERVER, message);
                }
                while let Some(message) = self.down[client].leave(self.now_ns) {
                    moved = true;
                    self.arrive(SERVER, client, message);
                }
                moved |= self.begin(client);
            }
            if !moved {
                return;
            }
        }
    }

    fn arrive(&mut self, from: usize, to: usize, message: Vec<Datum>) {
        let [Datum::Int(source), Datum::Int(target), Datum::Bytes(content)] = &message[..] else {
            panic!("{message:?}")
        };
        self.machines[to].receive((from as i128, *source), *target, content.clone());
    }

    /// Delivers an output of a program.
    fn deliver(&mut self, number: usize, channel: ChannelId, message: &[Datum]) {
        let name = self.machines[number].node.program.channels[channel.0 as usize].name.clone();
        match (name.as_str(), message) {
            ("fileC", message) => self.machines[number].file(channel, message),
            ("refusalC", message) => self.send(number, SERVER_PORT, message),
            ("txC", [Datum::Pid(instance), rest @ ..]) => self.send(number, FIRST_PORT + i128::from(*instance), rest),
            ("reportC", message) => self.end(number, channel, message),
            (name, _) => panic!("unexpected output at {name}"),
        }
    }

    fn send(&mut self, from: usize, source: i128, message: &[Datum]) {
        let (host, port, content) = datagram(message);
        let to = usize::try_from(host).expect("addresses are numbers of nodes");
        let medium = if from == SERVER { &mut self.down[to] } else { &mut self.up[from] };
        medium.enter(vec![Datum::Int(source), Datum::Int(port), Datum::Bytes(content)], self.now_ns);
    }

    /// Starts the next transfer of a client when its time has come.
    fn begin(&mut self, client: usize) -> bool {
        if self.transfers[client].is_some() || self.now_ns < self.next_ns[client] {
            return false;
        }
        self.number += 1;
        let any = [4_000, 100_000].map(|max| self.random.below(max) as usize);
        let sizes = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, any[0], any[1]];
        let size = sizes[self.random.below(8) as usize];
        let content: Vec<u8> = (0..size).map(|_| self.random.next() as u8).collect();
        let (name, puts) = (format!("file{}", self.number), self.random.below(2) == 0);
        // A missing file is reported, too.
        let is_there = puts || self.random.below(50) > 0;
        if is_there {
            let owner = if puts { client } else { SERVER };
            self.machines[owner].files.insert(name.clone(), content.clone());
        }
        let node = &mut self.machines[client].node;
        let commands = node.channel("commandC");
        let server = Datum::Record(vec![Datum::Int(SERVER as i128), Datum::Int(SERVER_PORT)]);
        let file = Datum::Record(vec![server, Datum::Bytes(name.clone().into_bytes())]);
        let case = node.case(commands, 0, if puts { "put" } else { "get" });
        node.offer(commands, vec![Datum::Union(case, Some(Box::new(file)))]);
        self.transfers[client] = Some(Transfer { name, content, puts, begun_ns: self.now_ns });
        true
    }

    /// A client reports the result of its transfer.
    fn end(&mut self, client: usize, channel: ChannelId, message: &[Datum]) {
        let transfer = self.transfers[client].take().expect("a report follows a command");
        let words = self.machines[client].node.message_text(channel, message);
        let [Datum::Bytes(name), Datum::Union(case, _)] = message else { panic!("{message:?}") };
        assert_eq!(*name, transfer.name.as_bytes());
        let done = *case == self.machines[client].node.case(channel, 1, "done");
        let here = self.machines[client].files.remove(&transfer.name);
        let there = self.machines[SERVER].files.remove(&transfer.name);
        let new = if transfer.puts { there } else { here };
        let what = format!("after {} s: {words}", self.now_ns / SECOND_NS);
        // In each case a file is complete or absent.
        assert!(new.as_ref().is_none_or(|new| *new == transfer.content), "{what}: other bytes have arrived");
        if done {
            let taken_for = || {
                let mut files = self.machines[SERVER].files.iter();
                files.find(|(_, content)| **content == transfer.content).map(|(name, _)| name.clone())
            };
            assert!(new.is_some(), "{what}: nothing has arrived, but perhaps under another name: {:?}", taken_for());
            self.counts.bytes += transfer.content.len() as u64;
            *(if transfer.puts { &mut self.counts.put } else { &mut self.counts.got }) += 1;
        } else {
            assert!(transfer.puts || new.is_none(), "{what}: the file has arrived");
            self.counts.failed += 1;
        }
        self.counts.longest_ns = self.counts.longest_ns.max(self.now_ns - transfer.begun_ns);
        let pauses = [0, 0, 1, SECOND_NS, 20 * SECOND_NS];
        self.next_ns[client] = self.now_ns + pauses[self.random.below(5) as usize];
    }

    /// The time of the next event.
    fn next_ns(&self) -> i64 {
        let deadlines = self.machines.iter().filter_map(|machine| machine.node.deadline_ns);
        let arrivals = self.up.iter().chain(&self.down).filter_map(FaultInjector::due_ns);
        let begins =
            (1..=CLIENTS).filter(|client| self.transfers[*client].is_none()).map(|client| self.next_ns[client]);
        deadlines.chain(arrivals).chain(begins).min().expect("there is always something to do")
    }

    fn assert_timeouts(&self) {
        for transfer in self.transfers.iter().flatten() {
            let packets = 4 + (transfer.content.len() / BLOCK) as i64;
            let waits_ns = self.now_ns - transfer.begun_ns;
            assert!(
                waits_ns < packets * PACKET_TIMEOUT_NS,
                "{}: no report for {} s",
                transfer.name,
                waits_ns / SECOND_NS
            );
        }
    }
}

/// Runs the simulation with these faults.
fn simulate(faults: &str, seed: u64) -> Counts {
    let programs = [compile("examples/tftp/server.esp"), compile("examples/tftp/client.esp")];
    let faults: FaultPlan = faults.parse().expect("they are faults");
    let media = |direction: &str| {
        (0..=CLIENTS).map(|client| FaultInjector::new(&faults, &format!("{direction}{client}"))).collect()
    };
    let machines = (0..=CLIENTS).map(|number| Machine::new(Node::new(&programs[usize::from(number != SERVER)])));
    let mut simulation = Simulation {
        now_ns: 0,
        machines: machines.collect(),
        up: media("up"),
        down: media("down"),
        transfers: (0..=CLIENTS).map(|_| None).collect(),
        next_ns: vec![0; CLIENTS + 1],
        random: Random(seed),
        number: 0,
        counts: Counts::default(),
    };
    while simulation.now_ns < wanted_ns() {
        simulation.run_to_quiescence();
        simulation.assert_timeouts();
        let next_ns = simulation.next_ns();
        assert!(next_ns > simulation.now_ns, "the clock does not advance");
        simulation.now_ns = next_ns;
    }
    for (number, medium) in simulation.up.iter().enumerate().skip(1) {
        println!("  {}", medium.note(&format!("from client {number}")).unwrap_or_default());
    }
    simulation.counts
}

/// Runs a simulation and prints its result.
fn run(name: &str, faults: &str, seed: u64) -> Counts {
    let begun = std::time::Instant::now();
    let counts = simulate(faults, seed);
    println!(
        "tftp, {name}: {:.2} h of the programs' clock in {:.1} s: {} got, {} put, {} failed, {} bytes, longest {} s",
        wanted_ns() as f64 / 3_600e9,
        begun.elapsed().as_secs_f64(),
        counts.got,
        counts.put,
        counts.failed,
        counts.bytes,
        counts.longest_ns / SECOND_NS
    );
    assert!(counts.got > 0 && counts.put > 0, "{name}: {counts:?}");
    counts
}

#[test]
fn a_good_network() {
    let counts = run("a good network", "udp:delay=1ms..5ms", 1);
    // Only downloads of missing files fail.
    assert!(counts.failed * 10 < counts.got, "{counts:?}");
}

#[test]
fn a_bad_network() {
    let counts = run("a bad network", "udp:loss=3%,dup=3%,reorder=3%,delay=1ms..30ms,seed=7", 2);
    assert!(counts.failed * 10 < counts.got, "{counts:?}");
}

#[test]
fn a_network_that_is_cut() {
    // Longer than any timeout: transfers in progress fail, and later ones are not disturbed.
    let counts = run("a network that is cut", "udp:loss=2%,dup=2%,reorder=2%,delay=1ms..200ms,cut=140s/300s,seed=9", 3);
    assert!(counts.failed > 0, "{counts:?}");
}

/// A server whose client is this test.
struct IsolatedServer<'p> {
    server: Machine<'p>,
    now_ns: i64,
    /// The port from which it has answered.
    port: i128,
}

const CLIENT: (i128, i128) = (1, 4_000);

impl IsolatedServer<'_> {
    /// The packets that it sends now.
    fn sent_packets(&mut self) -> Vec<Vec<u8>> {
        let mut packets = Vec::new();
        loop {
            self.server.node.run(self.now_ns);
            let Some((channel, message)) = self.server.node.next_output() else { return packets };
            match self.server.node.program.channels[channel.0 as usize].name.as_str() {
                "fileC" => self.server.file(channel, &message),
                "txC" => {
                    let [Datum::Pid(instance), rest @ ..] = &message[..] else { panic!("{message:?}") };
                    self.port = FIRST_PORT + i128::from(*instance);
                    packets.push(datagram(rest).2);
                }
                name => panic!("unexpected output at {name}"),
            }
        }
    }

    fn answers(&mut self, port: i128, packet: &[u8]) -> Vec<Vec<u8>> {
        self.server.receive(CLIENT, port, packet.to_vec());
        self.sent_packets()
    }

    /// The seconds of silence before each packet that it retransmits until this time, without an answer.
    fn retransmissions(&mut self, until_ns: i64, expected: &[u8]) -> Vec<i64> {
        let began_ns = self.now_ns;
        let mut seconds = Vec::new();
        while let Some(next_ns) = self.server.node.deadline_ns.filter(|next_ns| *next_ns <= until_ns) {
            self.now_ns = next_ns;
            for packet in self.sent_packets() {
                assert_eq!(packet, expected);
                seconds.push((self.now_ns - began_ns) / SECOND_NS);
            }
        }
        seconds
    }
}

fn block(number: u16, content: &[u8]) -> Vec<u8> {
    [&[0, 3][..], &number.to_be_bytes(), content].concat()
}

/// Some clients treat a second option acknowledgement as the first (curl 7.88 then omits a block). It is therefore
/// retransmitted only at the timeout, and never after the first block.
#[test]
fn an_option_acknowledgement_is_retransmitted_only_at_the_timeout_and_before_the_first_block() {
    let program = compile("examples/tftp/server.esp");
    let mut isolated = IsolatedServer { server: Machine::new(Node::new(&program)), now_ns: 0, port: 0 };
    let request = b"\0\x02file\0octet\0blksize\x008\0";
    let agreement = b"\0\x06blksize\x008\0".to_vec();
    let nothing: Vec<Vec<u8>> = Vec::new();
    assert_eq!(isolated.answers(SERVER_PORT, request), [&agreement[..]]);
    let port = isolated.port;
    for stray in [request.to_vec(), block(0, b"12345678"), block(2, b"12345678"), b"\0\x04\0\0".to_vec()] {
        assert_eq!(isolated.answers(SERVER_PORT, &stray), nothing, "{stray:?} to the server");
        assert_eq!(isolated.answers(port, &stray), nothing, "{stray:?} to the transfer");
    }
    assert_eq!(isolated.retransmissions(4 * SECOND_NS, &agreement), [1, 3]);

    let acknowledgement = [0, 4, 0, 1];
    for _ in 0..2 {
        assert_eq!(isolated.answers(port, &block(1, b"12345678")), [&acknowledgement]);
    }
    for stray in [request.to_vec(), block(0, b"12345678"), block(7, b"12345678"), agreement.clone()] {
        assert_eq!(isolated.answers(SERVER_PORT, &stray), nothing, "{stray:?} to the server");
        assert_eq!(isolated.answers(port, &stray), nothing, "{stray:?} to the transfer");
    }
    let abandoned_ns = isolated.now_ns + 100 * SECOND_NS;
    assert_eq!(isolated.retransmissions(abandoned_ns, &acknowledgement), [1, 3, 7, 15, 31]);

    // An unanswered transfer has ended.
    assert_eq!(isolated.answers(SERVER_PORT, request), [&agreement[..]]);
    let (port, abandoned_ns) = (isolated.port, isolated.now_ns + 100 * SECOND_NS);
    assert_eq!(isolated.retransmissions(abandoned_ns, &agreement), [1, 3, 7, 15, 31]);
    assert_eq!(isolated.answers(port, &block(1, b"12345678")), [b"\0\x05\0\x05unknown transfer\0"]);
}

/// Some clients send a block beyond the last one and repeat it as long as answers arrive (atftp 0.8, if packets are
/// lost).
#[test]
fn of_an_ended_transfer_the_last_block_alone_is_answered() {
    let program = compile("examples/tftp/server.esp");
    let mut isolated = IsolatedServer { server: Machine::new(Node::new(&program)), now_ns: 0, port: 0 };
    let agreement = b"\0\x06blksize\x008\0".to_vec();
    let nothing: Vec<Vec<u8>> = Vec::new();
    assert_eq!(isolated.answers(SERVER_PORT, b"\0\x02file\0octet\0blksize\x008\0"), [&agreement[..]]);
    let port = isolated.port;
    assert_eq!(isolated.answers(port, &block(1, b"12345678")), [[0, 4, 0, 1]]);
    for _ in 0..3 {
        assert_eq!(isolated.answers(port, &block(2, b"123")), [[0, 4, 0, 2]]);
    }
    assert_eq!(isolated.server.files["file"], b"12345678123");
    for number in [0, 1, 3, 3, 258] {
        assert_eq!(isolated.answers(port, &block(number, b"")), nothing, "block {number}");
    }
    assert_eq!(isolated.answers(port, &[0, 4, 0, 2]), nothing);

    // An error is repeated, too, and a peer whose transfer was given up is as an unknown one.
    isolated.server.files.insert("other".into(), b"1234".to_vec());
    assert_eq!(isolated.answers(SERVER_PORT, b"\0\x01other\0octet\0"), [block(1, b"1234")]);
    let port = isolated.port;
    assert_eq!(isolated.answers(port, b"\0\x05\0\0enough\0"), nothing);
    for packet in [block(1, b""), vec![0, 4, 0, 1]] {
        assert_eq!(isolated.answers(port, &packet), [b"\0\x05\0\x05unknown transfer\0"], "{packet:?}");
    }
    assert_eq!(isolated.answers(port, b"\0\x05\0\0enough\0"), nothing);
}

/// The numbers of blocks or of acknowledgements.
fn numbers(packets: &[Vec<u8>], kind: u8) -> Vec<u16> {
    let number = |packet: &Vec<u8>| {
        assert_eq!(packet[..2], [0, kind], "{packet:?}");
        u16::from_be_bytes([packet[2], packet[3]])
    };
    packets.iter().map(number).collect()
}

/// RFC 7440: only the last block of a window is acknowledged, or the one before a block that is missing, after which
/// the window begins anew. Duplicates do not multiply.
#[test]
fn a_window_begins_anew_after_the_blocks_that_have_arrived() {
    let program = compile("examples/tftp/server.esp");
    let mut isolated = IsolatedServer { server: Machine::new(Node::new(&program)), now_ns: 0, port: 0 };
    let agreement = b"\0\x06blksize\x008\0windowsize\x004\0".to_vec();
    let content: Vec<u8> = (0..40).collect();
    isolated.server.files.insert("file".into(), content.clone());
    assert_eq!(isolated.answers(SERVER_PORT, b"\0\x01file\0octet\0blksize\x008\0windowsize\x004\0"), [&agreement[..]]);
    let port = isolated.port;
    let acknowledgement = |number: u16| [&[0, 4][..], &number.to_be_bytes()].concat();
    let mut sent = |number, expected: &[u16]| {
        let packets = isolated.answers(port, &acknowledgement(number));
        assert_eq!(numbers(&packets, 3), expected, "after acknowledgement {number}");
        for packet in packets {
            let first = 8 * (usize::from(u16::from_be_bytes([packet[2], packet[3]])) - 1);
            assert_eq!(packet[4..], content[first..(first + 8).min(40)]);
        }
    };
    sent(0, &[1, 2, 3, 4]);
    sent(2, &[3, 4, 5, 6]); // the sixth block is empty: the last one
    sent(1, &[]);
    sent(2, &[3, 4, 5, 6]);
    sent(2, &[]);
    sent(5, &[6]);
    sent(6, &[]);
    sent(6, &[]);

    let request = b"\0\x02other\0octet\0blksize\x008\0windowsize\x004\0";
    assert_eq!(isolated.answers(SERVER_PORT, request), [&agreement[..]]);
    let port = isolated.port;
    let mut received = |number: u16, expected: &[u16]| {
        let part = &content[8 * (usize::from(number) - 1)..][..if number == 5 { 3 } else { 8 }];
        let packets = isolated.answers(port, &block(number, part));
        assert_eq!(numbers(&packets, 4), expected, "after block {number}");
    };
    received(2, &[0]);
    for number in [3, 4, 2] {
        received(number, &[]);
    }
    received(1, &[]);
    received(1, &[]);
    received(3, &[1]);
    for number in [4, 2, 3, 4] {
        received(number, &[]);
    }
    received(5, &[5]);
    assert_eq!(isolated.server.files["other"], content[..35]);
}
