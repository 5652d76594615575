//! PPP framing against an encoder and decoder written after RFC 1662 with the `crc` crate's check sequence.

use super::{engines, literal, run_well};
use crc::{CRC_16_IBM_SDLC, Crc};
use quaject_test_support::random::Random;

const FCS: Crc<u16> = Crc::<u16>::new(&CRC_16_IBM_SDLC);

/// The encoding of these frames by RFC 1662, with one flag between two of them.
pub(super) fn encode(frames: &[Vec<u8>]) -> Vec<u8> {
    let mut line = Vec::new();
    for frame in frames {
        let mut octets = frame.clone();
        octets.extend(FCS.checksum(frame).to_le_bytes());
        if line.is_empty() {
            line.push(0x7e);
        }
        for octet in octets {
            match octet {
                0..0x20 | 0x7d | 0x7e => line.extend([0x7d, octet ^ 0x20]),
                _ => line.push(octet),
            }
        }
        line.push(0x7e);
    }
    line
}

/// The bytes of a literal as `text:` prints it.
fn decode_literal(line: &str) -> Vec<u8> {
    let inner = line.strip_prefix('"').and_then(|line| line.strip_suffix('"')).expect("a byte string");
    let mut bytes = Vec::new();
    let mut rest = inner.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        let escape = rest.next().expect("a backslash escapes something");
        bytes.push(match escape {
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'0' => 0,
            b'x' => {
                let digits = [rest.next().expect("two digits"), rest.next().expect("two digits")];
                u8::from_str_radix(std::str::from_utf8(&digits).expect("ASCII"), 16).expect("hexadecimal digits")
            }
            other => other,
        });
    }
    bytes
}

fn frames(random: &mut Random) -> Vec<Vec<u8>> {
    let sizes = [1, 2, 3, 4, 5, 64, 1503, 1504];
    let mut frames: Vec<Vec<u8>> = sizes.iter().map(|size| (0..*size).map(|_| random.byte()).collect()).collect();
    frames.push((0..=255).collect());
    frames.push(b"\x7e\x7d\x7e\x7d\xff\x03\x00\x21".to_vec());
    frames
}

#[test]
fn frames_are_encoded_as_the_rfc_requires() {
    let frames = frames(&mut Random(1));
    let text: String = frames.iter().map(|frame| literal(frame)).collect();
    for engine in engines() {
        let line = run_well(engine, "examples/hdlc/frame.esp", &[], text.as_bytes());
        assert_eq!(line, encode(&frames), "engine {engine}");
    }
}

#[test]
fn valid_frames_are_decoded_and_invalid_ones_dropped() {
    let mut random = Random(2);
    // Frames of one octet have three between their flags, which RFC 1662 calls too short.
    let frames: Vec<Vec<u8>> = frames(&mut random).into_iter().filter(|frame| frame.len() >= 2).collect();
    let mut damaged = encode(&frames[2..3]);
    damaged[2] ^= 0x40;
    let mut line = b"noise before the first flag\x7e\x7e\x7e".to_vec();
    line.extend(encode(&frames));
    line.extend(&damaged);
    line.extend(b"\x7eaborted\x7d\x7e");
    line.extend(encode(&[vec![0x55; 1505]]));
    line.extend(encode(&[vec![9]]));
    line.extend(encode(&frames[..1]));
    for engine in engines() {
        let text = String::from_utf8(run_well(engine, "examples/hdlc/deframe.esp", &[], &line)).expect("text output");
        let (good, bad): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.starts_with('"'));
        let mut expected = frames.clone();
        expected.push(frames[0].clone());
        assert_eq!(good.iter().map(|line| decode_literal(line)).collect::<Vec<_>>(), expected, "engine {engine}");
        // The noise, the damaged one, the one too long, the one too short; an aborted frame is no bad frame.
        assert_eq!(bad, ["1", "2", "3", "4"], "engine {engine}");
    }
}

#[test]
fn an_empty_line_has_no_frame() {
    for engine in engines() {
        assert_eq!(run_well(engine, "examples/hdlc/frame.esp", &[], b""), b"");
        assert_eq!(run_well(engine, "examples/hdlc/deframe.esp", &[], b""), b"");
    }
}
