//! Malformed streams over TCP on loopback: at the MQTT broker and the USB device. Data after a packet that closes the
//! connection is never read, so that none is sent, and only sent packets are counted.

use super::{Watch, damaged, in_own_network};
use crate::mqtt::hostile::{offences, packet_of};
use crate::mqtt::{Broker, wire};
use crate::usb::{Device, Host, any_command, import};
use nix::sys::socket::{setsockopt, sockopt};
use quaject_test_support::HANG_TIMEOUT;
use quaject_test_support::random::Random;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpStream};
use std::time::Duration;

/// How a client closes its connection.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Leave {
    /// It closes its direction and reads until the end.
    HangUp,
    /// It closes at the first received byte, or after some milliseconds of silence.
    Break,
}

/// Sends all of this over a new connection, reads, and closes it. Returns the number of bytes received.
fn converse(port: u16, bytes: &[u8], leave: Leave, name: &str) -> u64 {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("the program listens");
    stream.set_nonblocking(true).and_then(|()| stream.set_nodelay(true)).expect("sockets can be");
    let (mut rest, mut heard, mut buffer) = (bytes, 0, vec![0; 65_536]);
    if bytes.is_empty() {
        return 0;
    }
    loop {
        // A client that closes does not wait: a partial packet is not answered.
        let goes = rest.is_empty() && leave == Leave::Break;
        let patience = if goes { Duration::from_millis(5) } else { HANG_TIMEOUT };
        let patience = Timespec::try_from(patience).expect("it is short");
        let flags = if rest.is_empty() { PollFlags::IN } else { PollFlags::IN | PollFlags::OUT };
        let mut asked = [PollFd::new(&stream, flags)];
        let count = poll(&mut asked, Some(&patience)).expect("sockets can be waited for");
        assert!(count > 0 || goes, "{name}: nothing comes from the program, nor is the connection ended");
        // The program stops reading from a client that does not read.
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => heard += length as u64,
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
        if goes && (heard > 0 || count == 0) {
            // The other side sees a reset.
            let at_once = nix::libc::linger { l_onoff: 1, l_linger: 0 };
            setsockopt(&stream, sockopt::Linger, &at_once).expect("sockets can be");
            break;
        }
        if !rest.is_empty() {
            match stream.write(rest) {
                Ok(length) => rest = &rest[length..],
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                // The program has closed the connection.
                Err(_) => break,
            }
            if rest.is_empty() && leave == Leave::HangUp && stream.shutdown(Shutdown::Write).is_err() {
                break;
            }
        }
    }
    heard
}

#[test]
fn mqtt() {
    in_own_network();
    let broker = Broker::start("jit");
    let mut watch = Watch::over("mqtt", &broker.process);
    let mut random = Random(23);
    let offences = offences();
    let (mut connections, mut heard) = (0_u64, 0);
    loop {
        let clean = if random.below(4) > 0 { wire::CLEAN } else { 0 };
        let mut bytes = wire::connect(["a", "b", "c"][random.below(3) as usize], clean, 0, &[]);
        let mut packets = 1;
        if random.below(20) == 0 {
            bytes = damaged(&mut random, bytes);
        } else {
            for _ in 0..random.below(30) {
                packets += 1;
                bytes.extend(packet_of(&mut random));
            }
            packets += 1;
            bytes.extend(match random.below(3) {
                0 => offences[random.below(offences.len() as u64) as usize].1.clone(),
                _ => {
                    let packet = packet_of(&mut random);
                    damaged(&mut random, packet)
                }
            });
        }
        let leave = if random.below(4) == 0 { Leave::Break } else { Leave::HangUp };
        heard += converse(broker.port, &bytes, leave, "mqtt");
        connections += 1;
        if !watch.goes_on(packets) {
            break;
        }
    }
    broker.assert_serves();
    watch.end(&format!("{connections} connections, {heard} bytes heard"));
    broker.stop();
}

#[test]
fn usb() {
    in_own_network();
    let mut device = Device::start("jit");
    // The device exists after its first use.
    Host::attach(&mut device).use_it();
    let mut watch = Watch::over("usb", &device.process);
    let mut random = Random(29);
    let (mut connections, mut heard) = (0_u64, 0);
    loop {
        let mut bytes = import(b"1-1");
        let mut packets = 1;
        if random.below(20) == 0 {
            bytes = damaged(&mut random, bytes);
        } else {
            for _ in 0..random.below(60) {
                packets += 1;
                bytes.extend(any_command(&mut random));
            }
            packets += 1;
            let command = any_command(&mut random);
            bytes.extend(damaged(&mut random, command));
        }
        let leave = if random.below(4) == 0 { Leave::Break } else { Leave::HangUp };
        heard += converse(device.port, &bytes, leave, "usb");
        connections += 1;
        if !watch.goes_on(packets) {
            break;
        }
    }
    Host::attach(&mut device).use_it();
    watch.end(&format!("{connections} connections, {heard} bytes heard"));
    assert_eq!(device.said(), "");
}
