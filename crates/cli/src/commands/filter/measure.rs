//! `qj filter --bench`: how long a packet of a capture takes, beside `bpf_filter` one filter after the other.

use super::{Source, Wanted};
use crate::terminal::{CliError, Status, print};
use quaject_esp_run::HostError;
use quaject_filter::capture::CapturedPacket;
use quaject_filter::{Match, Packet};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

/// Passes over the packets; the median of them counts.
const PASSES: usize = 11;
/// Packets that are kept in memory.
const MAX_PACKETS: usize = 1 << 20;
/// The least verdicts in a pass.
const LEAST: usize = 1 << 16;

pub(super) fn measure(wanted: &mut Wanted<'_>, source: Source<'_>) -> Result<Status, CliError> {
    let mut kept: Vec<(Vec<u8>, u32)> = Vec::new();
    let mut link_type = None;
    wanted.packets(source, |_, packet: &CapturedPacket<'_>| {
        if *link_type.get_or_insert(packet.link_type) == packet.link_type && kept.len() < MAX_PACKETS {
            kept.push((packet.data.to_vec(), packet.wire_length));
        }
        Ok(())
    })?;
    let Some(link_type) = link_type else {
        return Err(CliError::from(HostError::new("there is no packet")));
    };
    let packets: Vec<Packet<'_>> = kept.iter().map(|(data, wire)| Packet::captured(data, *wire)).collect();
    let pcap = wanted.pcap;
    let set = wanted.set(link_type)?;
    let oracles: Vec<_> =
        set.compiled.iter().filter_map(|own| own.program.as_ref()).filter_map(|own| pcap.prepare(own)).collect();
    let mut reader = set.classifier.reader();
    let view = reader.pin();
    let mut matches = vec![Match::NONE; 64];
    let one = || {
        for packet in &packets {
            black_box(view.classify(*packet));
        }
    };
    let mut many = || {
        for some in packets.chunks(64) {
            view.classify_batch(some, &mut matches);
            black_box(&matches);
        }
    };
    let theirs = || {
        for packet in &packets {
            let first = oracles.iter().position(|oracle| oracle.run(*packet) != 0);
            black_box(first);
        }
    };
    let repeats = LEAST.div_ceil(packets.len());
    let fewer = repeats.div_ceil(oracles.len().max(1));
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..PASSES {
        times[0].push(nanoseconds(one, repeats) / packets.len() as f64);
        times[1].push(nanoseconds(&mut many, repeats) / packets.len() as f64);
        times[2].push(nanoseconds(theirs, fewer) / packets.len() as f64);
    }
    let [one, many, theirs] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[PASSES / 2]
    });
    let mut text = String::new();
    let _ = writeln!(text, "{} packets, {} filters; median of {PASSES} passes", packets.len(), set.compiled.len());
    let _ = writeln!(text, "one at a time        {one:8.2} ns per packet");
    let _ = writeln!(text, "batches of 64        {many:8.2} ns per packet   {:.2}x", one / many);
    let _ = writeln!(text, "bpf_filter, in order {theirs:8.2} ns per packet   {:.2}x as long", theirs / one);
    print(text.as_bytes())?;
    Ok(Status::Done)
}

fn nanoseconds(mut work: impl FnMut(), repeats: usize) -> f64 {
    let begun = Instant::now();
    for _ in 0..repeats {
        work();
    }
    begun.elapsed().as_nanos() as f64 / repeats as f64
}
