//! mosquitto_pub and mosquitto_sub.

use super::{Broker, engines};
use quaject_test_support::{HANG_TIMEOUT, tool};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Contents of these sizes are published; the last is the largest that fits with the topics used here.
const SIZES: &[usize] = &[0, 1, 200, 8_183];

fn mosquitto() -> bool {
    tool(&["mosquitto_pub"]).is_some() && tool(&["mosquitto_sub"]).is_some()
}

/// One of the two clients, in a version that the broker speaks.
fn command(name: &str, broker: &Broker, arguments: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.arg(HANG_TIMEOUT.as_secs().to_string()).arg(name);
    command.args(["-V", "mqttv311", "-p", &broker.port.to_string()]).args(arguments);
    command
}

/// Publishes what is on standard input.
fn publish(broker: &Broker, arguments: &[&str], content: &[u8]) {
    let mut client =
        command("mosquitto_pub", broker, arguments).stdin(Stdio::piped()).spawn().expect("`timeout` is everywhere");
    client.stdin.take().expect("it is a pipe").write_all(content).expect("it listens");
    let status = client.wait().expect("it is our child");
    assert!(status.success(), "engine {}, {arguments:?}: {status}", broker.engine);
}

/// A mosquitto_sub that runs.
struct Subscriber {
    process: Child,
    lines: Lines<BufReader<ChildStdout>>,
    /// What came before it knew that it had subscribed.
    early: VecDeque<String>,
}

impl Subscriber {
    /// Starts one and waits until it has subscribed.
    fn start(broker: &Broker, arguments: &[&str]) -> Subscriber {
        // It would keep what it says to itself until there is a page of it.
        let mut command = Command::new("stdbuf");
        command
            .args([
                "-oL",
                "mosquitto_sub",
                "-V",
                "mqttv311",
                "-p",
                &broker.port.to_string(),
                "-d",
                "-F",
                ">%t %q %r %x",
            ])
            .args(arguments);
        let mut process = command.stdout(Stdio::piped()).spawn().expect("mosquitto_sub is there");
        let lines = BufReader::new(process.stdout.take().expect("it is a pipe")).lines();
        let mut subscriber = Subscriber { process, lines, early: VecDeque::new() };
        loop {
            let line = subscriber.line();
            if line.starts_with("Subscribed") {
                return subscriber;
            }
            subscriber.early.extend(line.strip_prefix('>').map(str::to_owned));
        }
    }

    fn line(&mut self) -> String {
        self.lines.next().expect("it goes on").expect("it writes text")
    }

    /// The next message: topic, QoS, whether retained, and the content in hexadecimal digits.
    fn message(&mut self) -> String {
        if let Some(message) = self.early.pop_front() {
            return message;
        }
        loop {
            if let Some(message) = self.line().strip_prefix('>') {
                return message.to_owned();
            }
        }
    }

    /// Ends without a word.
    fn die(mut self) {
        self.process.kill().and_then(|()| self.process.wait()).expect("it is our child");
    }

    /// Ends with DISCONNECT.
    fn leave(mut self) {
        let signalled = Command::new("kill").args(["-TERM", &self.process.id().to_string()]).status();
        assert!(signalled.is_ok_and(|status| status.success()));
        self.process.wait().expect("it is our child");
    }
}

impl Drop for Subscriber {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn hexadecimal(content: &[u8]) -> String {
    content.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn messages_arrive_with_the_smaller_of_both_qualities_of_service() {
    if !mosquitto() {
        return;
    }
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut subscribers = ["0", "1", "2"].map(|qos| Subscriber::start(&broker, &["-q", qos, "-t", "q/#"]));
        for qos in 0..3 {
            for size in SIZES {
                let content: Vec<u8> = (0..*size).map(|at| (at * 7 + size) as u8).collect();
                let topic = format!("q/{qos}/t");
                // Nothing on standard input is no message for it.
                let how = if *size == 0 { "-n" } else { "-s" };
                publish(&broker, &["-q", &qos.to_string(), "-t", &topic, how], &content);
                for (limit, subscriber) in subscribers.iter_mut().enumerate() {
                    let expected = format!("{topic} {} 0 {}", qos.min(limit), hexadecimal(&content));
                    assert_eq!(subscriber.message(), expected, "engine {engine}, {size} bytes");
                }
            }
        }
        drop(subscribers);
        broker.stop();
    }
}

#[test]
fn a_hundred_messages_arrive_in_order() {
    if !mosquitto() {
        return;
    }
    for engine in engines() {
        let broker = Broker::start(engine);
        for qos in ["0", "1", "2"] {
            let mut subscriber = Subscriber::start(&broker, &["-q", qos, "-t", "burst"]);
            let numbers: String = (0..100).map(|number| format!("{number}\n")).collect();
            publish(&broker, &["-q", qos, "-t", "burst", "-l"], numbers.as_bytes());
            for number in 0..100 {
                let expected = format!("burst {qos} 0 {}", hexadecimal(number.to_string().as_bytes()));
                assert_eq!(subscriber.message(), expected, "engine {engine}");
            }
            subscriber.leave();
        }
        broker.stop();
    }
}

#[test]
fn later_subscribers_receive_the_retained_message() {
    if !mosquitto() {
        return;
    }
    for engine in engines() {
        let broker = Broker::start(engine);
        for (topic, content) in [("a/b", "1"), ("a/b", "2"), ("a/c", "3"), ("a/b/c", "4")] {
            publish(&broker, &["-q", "1", "-r", "-t", topic, "-s"], content.as_bytes());
        }
        publish(&broker, &["-t", "a/d", "-m", "not kept"], b"");
        publish(&broker, &["-r", "-t", "a/c", "-n"], b"");
        let mut subscriber = Subscriber::start(&broker, &["-q", "2", "-t", "a/+", "-t", "+/b/#"]);
        // a/b matches both: each subscription brings it (3.8.4).
        let mut kept = [subscriber.message(), subscriber.message(), subscriber.message()];
        kept.sort();
        assert_eq!(kept, ["a/b 1 1 32", "a/b 1 1 32", "a/b/c 1 1 34"], "engine {engine}");
        publish(&broker, &["-r", "-t", "a/b", "-m", "5"], b"");
        assert_eq!(
            subscriber.message(),
            "a/b 0 0 35",
            "engine {engine}: to who is there it is a message like any other"
        );
        subscriber.leave();
        broker.stop();
    }
}

#[test]
fn a_will_is_published_if_its_client_does_not_disconnect() {
    if !mosquitto() {
        return;
    }
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut subscriber = Subscriber::start(&broker, &["-q", "2", "-t", "will/#"]);
        let will = |topic, retain: &'static [&'static str]| {
            let will = ["-t", "x", "--will-qos", "1", "--will-payload", "lost", "--will-topic", topic];
            Subscriber::start(&broker, &[&will[..], retain].concat())
        };
        will("will/leaves", &[]).leave();
        will("will/dies", &["--will-retain"]).die();
        assert_eq!(subscriber.message(), "will/dies 1 0 6c6f7374", "engine {engine}");
        let mut later = Subscriber::start(&broker, &["-t", "will/#"]);
        assert_eq!(later.message(), "will/dies 0 1 6c6f7374", "engine {engine}");
        broker.stop();
    }
}

#[test]
fn a_session_outlives_its_connection_unless_it_is_clean() {
    if !mosquitto() {
        return;
    }
    for engine in engines() {
        let broker = Broker::start(engine);
        let keeps = ["-i", "keeper", "-c", "-q", "2", "-t", "kept"];
        Subscriber::start(&broker, &keeps).leave();
        for qos in ["0", "1", "2"] {
            publish(&broker, &["-q", qos, "-t", "kept", "-s"], qos.as_bytes());
        }
        let mut subscriber = Subscriber::start(&broker, &keeps);
        assert_eq!([subscriber.message(), subscriber.message()], ["kept 1 0 31", "kept 2 0 32"], "engine {engine}");
        subscriber.die();
        publish(&broker, &["-q", "1", "-t", "kept", "-m", "more"], b"");
        // A clean session forgets it.
        Subscriber::start(&broker, &["-i", "keeper", "-t", "other"]).leave();
        let mut subscriber = Subscriber::start(&broker, &keeps);
        publish(&broker, &["-q", "1", "-t", "kept", "-m", "new"], b"");
        assert_eq!(subscriber.message(), "kept 1 0 6e6577", "engine {engine}");
        broker.stop();
    }
}

#[test]
fn a_client_with_the_identifier_of_another_takes_over_its_session() {
    if !mosquitto() {
        return;
    }
    for engine in engines() {
        let broker = Broker::start(engine);
        let mut first = Subscriber::start(&broker, &["-i", "same", "-t", "a"]);
        let mut second = broker.client("same");
        // It comes back, as it has not asked for this, and takes the place in its turn.
        while !first.line().contains("Subscribed") {}
        assert!(second.is_dropped(), "engine {engine}");
        publish(&broker, &["-t", "a", "-m", "x"], b"");
        assert_eq!(first.message(), "a 0 0 78", "engine {engine}");
        broker.stop();
    }
}

#[test]
fn clients_that_ping_stay_connected() {
    if !mosquitto() {
        return;
    }
    let broker = Broker::start("interp");
    let started = Instant::now();
    // The shortest that mosquitto allows is five seconds.
    let mut subscriber = Subscriber::start(&broker, &["-k", "5", "-t", "a"]);
    while !subscriber.line().contains("PINGRESP") {}
    assert!(started.elapsed() > Duration::from_secs(3));
    std::thread::sleep(Duration::from_secs(4));
    publish(&broker, &["-t", "a", "-m", "x"], b"");
    assert_eq!(subscriber.message(), "a 0 0 78");
    broker.stop();
}
