//! The Modbus RTU slave against the client and server of the `rmodbus` crate: same requests, same answers.

use super::{engines, run_well};
use crc::{CRC_16_MODBUS, Crc};
use quaject_test_support::Effort;
use quaject_test_support::random::Random;
use rmodbus::ModbusProto;
use rmodbus::client::ModbusRequest;
use rmodbus::server::ModbusFrame;
use rmodbus::server::storage::ModbusStorage;

pub(super) const ADDRESS: u8 = 17;

/// The same tables as examples/modbus/slave.esp.
type Storage = ModbusStorage<256, 256, 128, 128>;

fn storage() -> Storage {
    let mut storage = Storage::new();
    for (i, input) in storage.discretes.iter_mut().enumerate() {
        *input = i % 3 == 0;
    }
    for (i, register) in storage.inputs.iter_mut().enumerate() {
        *register = (i * 257) as u16;
    }
    storage
}

/// The answer of rmodbus's server.
fn answer(storage: &mut Storage, request: &[u8]) -> Vec<u8> {
    let mut response = Vec::new();
    let mut frame = ModbusFrame::new(ADDRESS, request, ModbusProto::Rtu, &mut response);
    if frame.parse().is_err() {
        return Vec::new();
    }
    if frame.processing_required {
        // An exception is part of the answer.
        let _ = if frame.readonly { frame.process_read(storage) } else { frame.process_write(storage) };
    }
    if !frame.response_required {
        return Vec::new();
    }
    frame.finalize_response().expect("the response has room");
    response
}

/// A request of a random function over a range that often ends beyond the tables.
pub(super) fn request(random: &mut Random) -> Vec<u8> {
    let unit = match random.below(10) {
        0 => 18,
        1 => 0,
        _ => ADDRESS,
    };
    let mut client = ModbusRequest::new(unit, ModbusProto::Rtu);
    let first = random.below(260) as u16;
    let mut bytes = Vec::new();
    match random.below(8) {
        0 => client.generate_get_coils(first, 1 + random.below(2010) as u16, &mut bytes),
        1 => client.generate_get_discretes(first, 1 + random.below(100) as u16, &mut bytes),
        2 => client.generate_get_holdings(first, 1 + random.below(130) as u16, &mut bytes),
        3 => client.generate_get_inputs(first, 1 + random.below(60) as u16, &mut bytes),
        4 => client.generate_set_coil(first, random.below(2) as u8, &mut bytes),
        5 => client.generate_set_holding(first, random.next() as u16, &mut bytes),
        6 => {
            let values: Vec<bool> = (0..1 + random.below(200)).map(|_| random.below(2) == 1).collect();
            client.generate_set_coils_bulk(first, &values, &mut bytes)
        }
        _ => {
            let values: Vec<u16> = (0..1 + random.below(122)).map(|_| random.next() as u16).collect();
            client.generate_set_holdings_bulk(first, &values, &mut bytes)
        }
    }
    .expect("the request has room");
    if random.below(12) == 0 {
        let at = random.below(2) as usize + bytes.len() - 2;
        bytes[at] ^= 1 + random.byte() % 255;
    }
    bytes
}

pub(super) fn with_crc(mut frame: Vec<u8>) -> Vec<u8> {
    let crc = Crc::<u16>::new(&CRC_16_MODBUS).checksum(&frame);
    frame.extend(crc.to_le_bytes());
    frame
}

#[test]
fn answers_are_those_of_rmodbus() {
    for engine in engines() {
        for seed in 1..=Effort::wanted().pick(1, 4, 200) {
            let mut random = Random(seed);
            let mut storage = storage();
            let requests: Vec<Vec<u8>> = (0..300).map(|_| request(&mut random)).collect();
            let mut replies: &[u8] = &run_well(engine, "examples/modbus/slave.esp", &[], &requests.concat());
            for (number, request) in requests.iter().enumerate() {
                let expected = answer(&mut storage, request);
                let (reply, rest) = replies.split_at(expected.len().min(replies.len()));
                assert_eq!(
                    reply, expected,
                    "seed {seed} on engine {engine}: answer to request {number}, {request:02x?}"
                );
                replies = rest;
            }
            assert_eq!(replies, b"", "seed {seed} on engine {engine}: answers without a request");
        }
    }
}

#[test]
fn exceptions_are_those_of_the_specification() {
    let cases: &[(&[u8], &[u8])] = &[
        (&[ADDRESS, 1, 0, 0, 0, 0], &[ADDRESS, 0x81, 3]),
        (&[ADDRESS, 3, 0, 0, 0, 126], &[ADDRESS, 0x83, 3]),
        (&[ADDRESS, 3, 0, 127, 0, 2], &[ADDRESS, 0x83, 2]),
        (&[ADDRESS, 5, 0, 0, 0x12, 0x34], &[ADDRESS, 0x85, 3]),
        (&[ADDRESS, 16, 0, 0, 0, 2, 3, 1, 2, 3], &[ADDRESS, 0x90, 3]),
        // A gap has ended the requests before their values arrived.
        (&[ADDRESS, 15, 0, 0, 0, 100, 13], &[ADDRESS, 0x8f, 3]),
        (&[ADDRESS, 15, 0, 0, 0, 100, 13, 1, 2], &[ADDRESS, 0x8f, 3]),
        (&[ADDRESS, 16, 0, 0, 0, 2, 4], &[ADDRESS, 0x90, 3]),
        (&[ADDRESS, 16, 0, 0, 0, 2, 4, 1, 2, 3], &[ADDRESS, 0x90, 3]),
        (&[ADDRESS, 99, 0, 0, 0, 0], &[ADDRESS, 0x80 | 99, 1]),
    ];
    for engine in engines() {
        for (request, expected) in cases {
            let reply = run_well(engine, "examples/modbus/slave.esp", &[], &with_crc(request.to_vec()));
            assert_eq!(reply, with_crc(expected.to_vec()), "{request:?} on engine {engine}");
        }
    }
}

#[test]
fn answers_of_other_slaves_may_come_directly_before_a_request() {
    let request = with_crc(vec![ADDRESS, 3, 0, 0, 0, 2]);
    let expected = with_crc(vec![ADDRESS, 3, 4, 0, 0, 0, 0]);
    for engine in engines() {
        for before in [
            &[18, 3, 4, 1, 2, 3, 4][..],
            &[18, 3, 2, 1, 2],
            &[18, 4, 250].iter().copied().chain([7; 250]).collect::<Vec<u8>>(),
            &[18, 1, 1, 5],
            &[18, 0x83, 2],
            &[18, 16, 0, 0, 0, 2],
            &[18, 6, 0, 0, 0, 2],
            &[18, 3, 0, 0, 0, 2],
        ] {
            let answer = with_crc(before.to_vec());
            let line = [&answer[..], &request, &answer, &answer, &request].concat();
            let replies = run_well(engine, "examples/modbus/slave.esp", &[], &line);
            assert_eq!(replies, [&expected[..], &expected].concat(), "{before:?} on engine {engine}");
        }
    }
}
