//! The USB device (examples/usb) behind USB/IP, with two hosts: one enumerates it, writes to its port and reads the
//! echo, written from the kernel's documentation of the protocol; the other sends random commands.

use super::{engines, repository};
use quaject_test_support::qj::qj_binary;
use quaject_test_support::random::Random;
use quaject_test_support::{Effort, HANG_TIMEOUT, free_ports, quick_compiler};
use std::fs::File;
use std::io::{ErrorKind, Read, Seek, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const STALL: i32 = -32;
const CALLED_OFF: i32 = -104;

/// A device that can be attached.
pub(super) struct Device {
    pub(super) port: u16,
    pub(super) process: Child,
    complaints: File,
}

impl Device {
    pub(super) fn start(engine: &str) -> Device {
        let port = free_ports(1);
        let complaints = tempfile::tempfile().expect("a temporary file");
        let mut command = Command::new(qj_binary());
        command.env("CC", quick_compiler()).args(["run", "--engine", engine]);
        command.arg(repository("examples/usb/server.esp"));
        for channel in ["eventC", "requestC"] {
            command.arg("--bind").arg(format!("{channel}=tcp:{port}"));
        }
        let stderr = complaints.try_clone().expect("it is open");
        let process = command.stdin(Stdio::null()).stderr(stderr).spawn().expect("cargo built qj");
        Device { port, process, complaints }
    }

    /// A connection to it.
    fn connect(&mut self) -> TcpStream {
        let begun = Instant::now();
        loop {
            if let Ok(stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)) {
                stream.set_read_timeout(Some(HANG_TIMEOUT)).expect("the time is not zero");
                stream.set_nodelay(true).expect("it is TCP");
                return stream;
            }
            let ended = self.process.try_wait().expect("it is ours");
            assert!(ended.is_none() && begun.elapsed() < HANG_TIMEOUT, "{ended:?}: {}", self.said());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn said(&mut self) -> String {
        let mut text = String::new();
        self.complaints.rewind().and_then(|()| self.complaints.read_to_string(&mut text)).expect("it is readable");
        text
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // If the program has ended, the test reports it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn take<const N: usize>(stream: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes).expect("the device answers");
    bytes
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

/// A host that has attached the device.
pub(super) struct Host {
    stream: TcpStream,
    number: u32,
}

impl Host {
    pub(super) fn attach(device: &mut Device) -> Host {
        // The host before it may not have been seen to leave: then the device is busy.
        let begun = Instant::now();
        let mut stream = loop {
            let mut stream = device.connect();
            stream.write_all(&import(b"1-1")).expect("the device listens");
            match take::<8>(&mut stream) {
                [1, 17, 0, 3, 0, 0, 0, 0] => break stream,
                [1, 17, 0, 3, 0, 0, 0, 2] => assert!(begun.elapsed() < HANG_TIMEOUT, "the device stays busy"),
                answer => panic!("{answer:?}"),
            }
        };
        let description = take::<312>(&mut stream);
        assert_eq!(description[256..260], *b"1-1\0");
        assert_eq!(description[296..312], *b"\0\0\0\x03\x12\x09\0\x01\x01\0\x02\0\0\0\x01\x02");
        Host { stream, number: 0 }
    }

    fn command(&mut self, kind: u32, inward: bool, endpoint: u32, more: [u8; 28], data: &[u8]) -> u32 {
        self.number += 1;
        let words = [kind, self.number, 0x0001_0002, u32::from(inward), endpoint];
        let head: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        self.stream.write_all(&[&head[..], &more, data].concat()).expect("the device listens");
        self.number
    }

    /// Submits a transfer of at most `length` bytes from the device.
    fn submit(&mut self, inward: bool, endpoint: u32, setup: [u8; 8], data: &[u8], length: usize) -> u32 {
        let mut more = [0; 28];
        more[4..8].copy_from_slice(&(length.max(data.len()) as u32).to_be_bytes());
        more[20..].copy_from_slice(&setup);
        self.command(1, inward, endpoint, more, data)
    }

    fn call_off(&mut self, number: u32) -> u32 {
        let mut more = [0; 28];
        more[..4].copy_from_slice(&number.to_be_bytes());
        self.command(2, false, 0, more, &[])
    }

    /// The next answer: whether to a submission or to an unlink request, its number, status and length.
    fn answer(&mut self) -> (u32, u32, i32, usize) {
        let head = take::<48>(&mut self.stream);
        (word(&head, 0), word(&head, 4), word(&head, 20) as i32, word(&head, 24) as usize)
    }

    /// Executes a transfer at endpoint 0.
    fn control(&mut self, kind: [u8; 2], value: u16, index: u16, data: &[u8], length: usize) -> Result<Vec<u8>, i32> {
        let (inward, wanted) = (kind[0] & 0x80 != 0, length.max(data.len()) as u16);
        let mut setup = [kind[0], kind[1], 0, 0, 0, 0, 0, 0];
        setup[2..4].copy_from_slice(&value.to_le_bytes());
        setup[4..6].copy_from_slice(&index.to_le_bytes());
        setup[6..].copy_from_slice(&wanted.to_le_bytes());
        let number = self.submit(inward, 0, setup, data, length);
        let (kind, answered, status, length) = self.answer();
        assert_eq!((kind, answered), (3, number));
        let mut said = vec![0; if inward { length } else { 0 }];
        self.stream.read_exact(&mut said).expect("the device answers");
        if status == 0 { Ok(said) } else { Err(status) }
    }

    /// Enumerates the device as a host does, and uses the port.
    pub(super) fn use_it(&mut self) {
        let device = self.control([0x80, 6], 0x0100, 0, &[], 64).expect("every device has one");
        assert_eq!((device.len(), device[0], device[1]), (18, 18, 1));
        assert_eq!(self.control([0x80, 6], 0x0100, 0, &[], 8).as_deref(), Ok(&device[..8]));
        let short = self.control([0x80, 6], 0x0200, 0, &[], 9).expect("it has a configuration");
        let length = usize::from(u16::from_le_bytes([short[2], short[3]]));
        let all = self.control([0x80, 6], 0x0200, 0, &[], 255).expect("it has a configuration");
        assert_eq!((all.len(), &all[..9]), (length, &short[..]));
        // The descriptors: each contains its length.
        let (mut at, mut parts, mut endpoints) = (0, Vec::new(), Vec::new());
        while at < all.len() {
            parts.push(all[at + 1]);
            if all[at + 1] == 5 {
                endpoints.push((all[at + 2], all[at + 3]));
            }
            at += usize::from(all[at]);
        }
        assert_eq!((at, all[4]), (all.len(), 2));
        assert_eq!(parts, [2, 4, 0x24, 0x24, 0x24, 0x24, 5, 4, 5, 5]);
        assert_eq!(endpoints, [(0x83, 3), (0x02, 2), (0x81, 2)]);
        for (number, text) in [(1, "Quaject"), (2, "Echo"), (3, "42")] {
            let string = self.control([0x80, 6], 0x0300 + number, 0x0409, &[], 255).expect("it has three");
            let units: Vec<u16> = string[2..].chunks(2).map(|unit| u16::from_le_bytes([unit[0], unit[1]])).collect();
            assert_eq!((String::from_utf16_lossy(&units), usize::from(string[0])), (text.to_owned(), string.len()));
        }
        assert_eq!(self.control([0x80, 6], 0x0304, 0x0409, &[], 255), Err(STALL));
        assert_eq!(self.control([0x80, 6], 0x0700, 0, &[], 255), Err(STALL));

        assert_eq!(self.control([0, 9], 2, 0, &[], 0), Err(STALL));
        assert_eq!(self.control([0, 9], 1, 0, &[], 0), Ok(vec![]));
        assert_eq!(self.control([0x80, 8], 0, 0, &[], 1), Ok(vec![1]));
        assert_eq!(self.control([0x21, 0x20], 0, 0, b"\0\xc2\x01\0\0\0\x08", 0), Ok(vec![]));
        assert_eq!(self.control([0xa1, 0x21], 0, 0, &[], 7), Ok(b"\0\xc2\x01\0\0\0\x08".to_vec()));
        assert_eq!(self.control([0x21, 0x22], 3, 0, &[], 0), Ok(vec![]));
        assert_eq!(self.control([0xc0, 0xff], 0, 0, &[], 7), Err(STALL));
        self.echo();
        self.halt();
    }

    /// Writes more than the port stores before anything is read.
    fn echo(&mut self) {
        let mut random = Random(5);
        let written: Vec<Vec<u8>> =
            (0..12).map(|_| (0..1 + random.below(512)).map(|_| random.byte()).collect()).collect();
        let mut open: Vec<u32> = written.iter().map(|data| self.submit(false, 2, [0; 8], data, 0)).collect();
        let (all, mut said, mut asked) = (written.concat(), Vec::new(), Vec::new());
        while said.len() < all.len() || !open.is_empty() {
            while asked.len() < 4 && said.len() < all.len() {
                asked.push(self.submit(true, 1, [0; 8], &[], 100 + asked.len()));
            }
            let (kind, number, status, length) = self.answer();
            assert_eq!((kind, status), (3, 0));
            if let Some(at) = open.iter().position(|open| *open == number) {
                assert_eq!(at, 0, "transfers end in order");
                open.remove(0);
            } else {
                assert_eq!(asked.remove(0), number, "transfers end in order");
                let mut data = vec![0; length];
                self.stream.read_exact(&mut data).expect("the device answers");
                said.extend(data);
            }
        }
        assert_eq!(said, all);
        // No more bytes arrive, so that pending reads can be unlinked, once each.
        for number in asked.into_iter().rev() {
            let question = self.call_off(number);
            assert_eq!(self.answer(), (4, question, CALLED_OFF, 0));
            let question = self.call_off(number);
            assert_eq!(self.answer(), (4, question, 0, 0));
        }
        let notification = self.submit(true, 3, [0; 8], &[], 8);
        let question = self.call_off(notification);
        assert_eq!(self.answer(), (4, question, CALLED_OFF, 0));
    }

    fn halt(&mut self) {
        assert_eq!(self.control([2, 3], 0, 0x81, &[], 0), Ok(vec![]));
        assert_eq!(self.control([0x82, 0], 0, 0x81, &[], 2), Ok(vec![1, 0]));
        let number = self.submit(true, 1, [0; 8], &[], 64);
        assert_eq!(self.answer(), (3, number, STALL, 0));
        assert_eq!(self.control([2, 1], 0, 0x81, &[], 0), Ok(vec![]));
        let number = self.submit(true, 1, [0; 8], &[], 64);
        let question = self.call_off(number);
        assert_eq!(self.answer(), (4, question, CALLED_OFF, 0));
    }
}

pub(super) fn import(name: &[u8]) -> Vec<u8> {
    let mut request = b"\x01\x11\x80\x03\0\0\0\0".to_vec();
    request.extend(name);
    request.resize(40, 0);
    request
}

#[test]
fn a_host_enumerates_and_uses_the_port() {
    for engine in engines() {
        let mut device = Device::start(engine);
        let mut list = device.connect();
        list.write_all(b"\x01\x11\x80\x05\0\0\0\0").expect("the device listens");
        assert_eq!(take::<12>(&mut list), *b"\x01\x11\0\x05\0\0\0\0\0\0\0\x01");
        assert_eq!(take::<320>(&mut list)[312..], *b"\x02\x02\x01\0\x0a\0\0\0");
        drop(list);
        let mut wrong = device.connect();
        wrong.write_all(&import(b"1-2")).expect("the device listens");
        assert_eq!(take::<8>(&mut wrong), *b"\x01\x11\0\x03\0\0\0\x01");
        drop(wrong);
        for _ in 0..2 {
            let mut host = Host::attach(&mut device);
            // The second host is not kept waiting, and the first one is not disturbed.
            let mut second = device.connect();
            second.write_all(&import(b"1-1")).expect("the device listens");
            assert_eq!(take::<8>(&mut second), *b"\x01\x11\0\x03\0\0\0\x02", "device busy");
            second.write_all(b"\x01\x11\x80\x05\0\0\0\0").expect("the device listens");
            assert_eq!(take::<12>(&mut second), *b"\x01\x11\0\x05\0\0\0\0\0\0\0\x01");
            host.use_it();
        }
        assert_eq!(device.said(), "");
    }
}

/// A command as a host may send it, with its data.
pub(super) fn any_command(random: &mut Random) -> Vec<u8> {
    let mut bytes = vec![0; 48];
    let size = [0, 1, 8, 64, 512, 513, u32::MAX][random.below(7) as usize];
    let words =
        [1 + random.below(2) as u32, random.below(40) as u32, 0, random.below(2) as u32, random.below(5) as u32];
    for (at, word) in words.iter().chain(&[random.below(40) as u32, size]).enumerate() {
        bytes[4 * at..4 * at + 4].copy_from_slice(&word.to_be_bytes());
    }
    let known =
        [b"\0\x09\x01\0\0\0\0\0", b"\x80\x06\0\x02\0\0\xff\0", b"\x02\x03\0\0\x81\0\0\0", b"\xa1\x21\0\0\0\0\x07\0"];
    bytes[40..].copy_from_slice(known[random.below(4) as usize]);
    if words[3] == 0 && words[0] == 1 && size <= 512 {
        bytes.extend(vec![b'x'; size as usize]);
    }
    bytes
}

#[test]
fn a_host_is_served_after_random_commands_of_another() {
    for engine in engines() {
        let mut device = Device::start(engine);
        let hosts = Effort::wanted().pick(10, 60, 100_000);
        for seed in 1..=hosts {
            let mut random = Random(seed);
            let mut host = Host::attach(&mut device);
            host.stream.set_read_timeout(Some(Duration::from_millis(1))).expect("the time is not zero");
            for _ in 0..random.below(60) {
                let mut bytes = any_command(&mut random);
                for _ in 0..u64::from(random.below(4) == 0) * random.below(4) {
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] = random.byte();
                }
                // It may have closed the connection.
                if host.stream.write_all(&bytes).is_err() {
                    break;
                }
                match host.stream.read(&mut [0; 4096]) {
                    Ok(0) => break,
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => break,
                }
            }
        }
        Host::attach(&mut device).use_it();
        assert_eq!(device.said(), "");
    }
}
