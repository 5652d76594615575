//! The MQTT broker (examples/mqtt) against mosquitto's clients, and against a client of our own that also does what no
//! client should.

mod clients;
pub(crate) mod hostile;
mod protocol;
pub(crate) mod wire;

use super::{engines, repository};
use quaject_test_support::qj::qj_binary;
use quaject_test_support::{HANG_TIMEOUT, free_ports, tool};
use std::fs::File;
use std::net::{Ipv4Addr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use wire::Client;

/// A broker.
pub(crate) struct Broker {
    pub(crate) port: u16,
    engine: &'static str,
    pub(crate) process: Child,
    complaints: File,
}

impl Broker {
    /// Starts one and waits until it answers.
    pub(crate) fn start(engine: &'static str) -> Broker {
        let port = free_ports(1);
        let complaints = tempfile::tempfile().expect("a temporary file");
        let mut command = Command::new(qj_binary());
        // Each test has brokers of its own, and others need seconds for one.
        command.env("CC", tool(&["tcc"]).unwrap_or("cc")).args(["run", "--engine", engine]);
        command.arg(repository("examples/mqtt/broker.esp"));
        for channel in ["eventC", "sendC"] {
            command.arg("--bind").arg(format!("{channel}=tcp:{port}"));
        }
        let stderr = complaints.try_clone().expect("it is open");
        let process = command.stdin(Stdio::null()).stderr(stderr).spawn().expect("cargo built qj");
        let broker = Broker { port, engine, process, complaints };
        let started = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(started.elapsed() < HANG_TIMEOUT, "engine {engine}: the broker does not begin: {}", broker.said());
            std::thread::sleep(Duration::from_millis(10));
        }
        broker
    }

    /// What it has complained about.
    fn said(&self) -> String {
        use std::io::{Read, Seek};
        let mut text = String::new();
        let mut file = &self.complaints;
        file.rewind().and_then(|()| file.read_to_string(&mut text)).expect("the temporary file is readable");
        text
    }

    /// A client that has sent nothing yet.
    fn caller(&self) -> Client {
        Client::call(self.port)
    }

    /// A client with a session that ends with its connection.
    fn client(&self, identifier: &str) -> Client {
        let mut client = self.caller();
        assert_eq!(client.connect(identifier, wire::CLEAN, 0), (0, false), "engine {}", self.engine);
        client
    }

    /// Whether messages still arrive.
    pub(crate) fn assert_serves(&self) {
        let mut client = self.client("still there?");
        assert_eq!(client.subscribe("still/+", 2), 2, "engine {}: {}", self.engine, self.said());
        for qos in 0..3 {
            client.publish("still/there", b"yes", qos, 1, 0);
            let message = client.message();
            assert_eq!((message.topic.as_str(), &message.content[..], message.qos), ("still/there", &b"yes"[..], qos));
        }
        client.disconnect();
    }

    /// Stops it; it must not have complained.
    pub(crate) fn stop(mut self) {
        let ended = self.process.try_wait().expect("it is our child");
        assert!(ended.is_none(), "engine {}: the broker has ended: {}", self.engine, self.said());
        let signalled = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        assert!(signalled.is_ok_and(|status| status.success()));
        self.process.wait().expect("it is our child");
        assert_eq!(self.said(), "", "engine {}", self.engine);
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// How long the sessions of absent clients are kept, on the virtual clock.
#[test]
fn sessions_of_absent_clients_expire() {
    super::assert_stories("tests/programs/src/mqtt");
}
