//! The portable implementation, tested on this system.

use super::*;
use std::time::Instant;

#[test]
fn an_input_that_blocks_is_copied_to_its_end() {
    let (reader, mut writer) = std::io::pipe().expect("pipes exist");
    let mut input = copied(reader).expect("the loopback interface is up");
    assert!(!input.is_ready() && input.descriptor().is_some());
    writer.write_all(b"one message").expect("the pipe has room");
    drop(writer);
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).expect("a copy can be read");
    assert_eq!(bytes, b"one message");
    assert!(input.is_ready(), "its end is an event");
}

#[test]
fn a_signal_rings_the_bell() {
    let received = Arc::new(AtomicUsize::new(0));
    let bell = SignalBell::register(&[2], &received).expect("the loopback interface is up");
    assert!(!is_ready(bell.descriptor(), PollFlags::IN));
    received.store(2, Ordering::Relaxed);
    let started = Instant::now();
    while !is_ready(bell.descriptor(), PollFlags::IN) {
        assert!(started.elapsed() < Duration::from_secs(10));
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn names_of_one_file_have_one_identity() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let (one, other) = (folder.path().join("one"), folder.path().join("other"));
    std::fs::write(&one, "").expect("the folder is ours");
    std::fs::write(&other, "").expect("the folder is ours");
    let identity = file_identity(&one).expect("it is a regular file");
    assert_eq!(file_identity(&folder.path().join(".").join("one")), Some(identity.clone()));
    assert_ne!(file_identity(&other), Some(identity));
    assert_eq!(file_identity(folder.path()), None);
    assert!(permissions(FileMode::Program, None).is_none());
}

#[test]
fn a_connection_is_established_when_its_socket_can_be_written() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback interface is up");
    let port = listener.local_addr().expect("it is bound").port();
    let stream = start_connection((Ipv4Addr::LOCALHOST, port).into()).expect("it starts");
    listener.accept().expect("it has arrived");
    assert!(is_ready(stream.as_fd(), PollFlags::OUT));
}

#[test]
fn a_multicast_receiver_shares_its_port() {
    let group = Ipv4Addr::new(239, 74, 163, 9);
    let first = multicast_receiver(group, 0).expect("the loopback interface is up");
    let port = first.local_addr().expect("it is bound").port();
    let second = multicast_receiver(group, port).expect("the port is shared");
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("the loopback interface is up");
    sender.send_to(&[7], (group, port)).expect("the group has members");
    for receiver in [first, second] {
        let mut byte = [0];
        let started = Instant::now();
        while receiver.recv(&mut byte).is_err() {
            assert!(started.elapsed() < Duration::from_secs(10));
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(byte, [7]);
    }
}

#[test]
fn an_output_is_written_at_once() {
    let folder = tempfile::tempdir().expect("a folder for the test");
    let path = folder.path().join("output");
    let mut output = ByteOutput::of(File::create(&path).expect("the folder is ours")).expect("a file is an output");
    assert!(output.room() > 1 << 20 && output.descriptor().is_none());
    output.write_all(b"bytes").and_then(|()| output.flush()).expect("the file takes them");
    assert_eq!(std::fs::read(&path).expect("it was written"), b"bytes");
    let mut input = ByteInput::of(File::open(&path).expect("it was written")).expect("a file is an input");
    assert!(input.is_ready() && !input.is_directory());
    let mut bytes = Vec::new();
    input.read_to_end(&mut bytes).expect("it can be read");
    assert_eq!(bytes, b"bytes");
}
