//! Malformed input on serial lines, which are pipes here: the Modbus slave and the PPP deframer. The slave runs in
//! virtual time, so that the silence which ends a frame of wrong length takes no real time.

use super::{Run, Watch, damaged, maybe_damaged};
use crate::hdlc::encode;
use crate::modbus::{ADDRESS, request, with_crc};
use quaject_test_support::random::Random;
use std::io::{PipeWriter, Read, Write};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

/// The number of bytes kept of the end of an output.
const TAIL: usize = 65_536;

/// A program between two pipes.
struct Line {
    run: Run,
    input: PipeWriter,
    reader: JoinHandle<(u64, Vec<u8>)>,
    /// Receives the number of bytes after each read.
    news: Receiver<u64>,
}

impl Line {
    fn start(program: &str) -> Line {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (stdin, input) = std::io::pipe().expect("there are pipes");
        let (mut output, stdout) = std::io::pipe().expect("there are pipes");
        let run = Run::start(folder.path(), program, &["--clock", "virtual"], stdin.into(), stdout.into());
        let (sender, news) = channel();
        let reader = std::thread::spawn(move || {
            let (mut count, mut tail, mut buffer) = (0, Vec::new(), vec![0; TAIL]);
            while let Ok(length @ 1..) = output.read(&mut buffer) {
                count += length as u64;
                tail.extend(&buffer[..length]);
                let excess = tail.len().saturating_sub(TAIL);
                tail.drain(..excess);
                // The receiver may be dropped.
                let _ = sender.send(count);
            }
            (count, tail)
        });
        Line { run, input, reader, news }
    }

    /// Whether the program has read all input and waits for more.
    fn rests(&self, watch: &Watch) -> bool {
        rustix::io::ioctl_fionread(&self.input).expect("a pipe can tell") == 0 && watch.sleeps()
    }

    /// Closes the line. Returns the length and the end of the output.
    fn close(mut self) -> (u64, Vec<u8>) {
        drop(self.input);
        let said = self.reader.join().expect("it only reads");
        let status = self.run.process.wait().expect("it is our child");
        assert!(status.success(), "{status}: {}", self.run.said());
        assert_eq!(self.run.said(), "");
        said
    }
}

#[test]
fn modbus() {
    let mut line = Line::start("examples/modbus/slave.esp");
    let mut watch = Watch::over("modbus", &line.run.process);
    let mut random = Random(31);
    loop {
        let (mut bytes, mut packets) = (Vec::new(), 0);
        loop {
            packets += 1;
            let frame = request(&mut random);
            if random.below(5) > 0 {
                bytes.extend(frame);
                continue;
            }
            let frame = damaged(&mut random, frame);
            // Half of them with a valid checksum.
            let cut = frame.len().saturating_sub(2);
            bytes.extend(if random.below(2) == 0 { with_crc(frame[..cut].to_vec()) } else { frame });
            break;
        }
        line.input.write_all(&bytes).expect("the slave listens");
        watch.wait_until("taking them", || line.rests(&watch));
        while line.news.try_recv().is_ok() {}
        if !watch.goes_on(packets) {
            break;
        }
    }
    line.input.write_all(&with_crc(vec![ADDRESS, 4, 0, 1, 0, 2])).expect("the slave listens");
    watch.wait_until("the last answer", || line.rests(&watch));
    watch.end("the line rested after each damaged frame");
    let (said, tail) = line.close();
    assert!(tail.ends_with(&with_crc(vec![ADDRESS, 4, 4, 1, 1, 2, 2])), "modbus: no answer any more: {tail:?}");
    assert!(said > watch.sent, "modbus: {said} bytes of answers only");
}

#[test]
fn hdlc() {
    let mut line = Line::start("examples/hdlc/deframe.esp");
    let mut watch = Watch::over("hdlc", &line.run.process);
    let mut random = Random(37);
    loop {
        let mut bytes = Vec::new();
        for _ in 0..100 {
            let size = [2, 3, 20, 40, 60, random.below(200)][random.below(6) as usize];
            let size = if random.below(200) == 0 { 1_500 + random.below(8) } else { size };
            let frame: Vec<u8> = (0..size).map(|_| random.byte()).collect();
            bytes.extend(maybe_damaged(&mut random, encode(&[frame]), 5));
        }
        line.input.write_all(&bytes).expect("the program listens");
        // A pipe buffers much before the program has started; its memory is measured afterwards.
        if watch.sent == 0 {
            line.news.recv().expect("the program answers");
        }
        while line.news.try_recv().is_ok() {}
        if !watch.goes_on(100) {
            break;
        }
    }
    watch.wait_until("taking them", || line.rests(&watch));
    watch.end("");
    line.input.write_all(&encode(&[b"still there?".to_vec()])).expect("the program listens");
    let (said, tail) = line.close();
    assert!(tail.ends_with(b"\"still there?\"\n"), "hdlc: {}", String::from_utf8_lossy(&tail));
    assert!(said > 10 * watch.sent, "hdlc: {said} bytes of frames only");
}
