//! `qj filter --bench`: the time per packet, compared with applying the filters in order by `bpf_filter`.

use super::{PacketSource, RuleSets};
use crate::terminal::{CliError, Status, print};
use quaject_esp_run::{HostCode, HostError};
use quaject_filter::capture::CapturedPacket;
use quaject_filter::{Match, Packet};
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Instant;

/// The number of passes over the packets; the result is the median.
const PASSES: usize = 11;
/// The limit on packets in memory.
const MAX_PACKETS: usize = 1 << 20;
/// The minimal number of verdicts in a pass.
const MIN_VERDICTS: usize = 1 << 16;

pub(super) fn measure(rule_sets: &mut RuleSets<'_>, source: PacketSource<'_>) -> Result<Status, CliError> {
    let mut kept: Vec<(Vec<u8>, u32)> = Vec::new();
    let mut link = None;
    rule_sets.packets(source, |_, packet: &CapturedPacket<'_>| {
        if *link.get_or_insert(packet.link) == packet.link && kept.len() < MAX_PACKETS {
            kept.push((packet.data.to_vec(), packet.wire_length));
        }
        Ok(())
    })?;
    let Some(link) = link else {
        return Err(CliError::from(HostError::new(HostCode::Empty, "the source has no packets")));
    };
    let packets: Vec<Packet<'_>> = kept.iter().map(|(data, wire)| Packet::captured(data, *wire)).collect();
    let pcap = rule_sets.pcap;
    let set = rule_sets.set(link)?;
    // As other users of libpcap run them: optimized. libpcap has no program for what no packet matches.
    let target = link.into();
    let programs: Vec<_> =
        set.compiled.iter().filter_map(|own| pcap.compile_optimized(&own.rule.expression, &target).ok()).collect();
    let oracles: Vec<_> = programs.iter().filter_map(|own| pcap.prepare(own)).collect();
    let mut reader = set.classifier.reader();
    let view = reader.pin();
    let mut matches = vec![Match::NONE; 64];
    let single = || {
        for packet in &packets {
            black_box(view.classify(*packet));
        }
    };
    let mut batched = || {
        for batch in packets.chunks(64) {
            view.classify_batch(batch, &mut matches);
            black_box(&matches);
        }
    };
    let reference = || {
        for packet in &packets {
            let first = oracles.iter().position(|oracle| oracle.run(*packet) != 0);
            black_box(first);
        }
    };
    let repeats = MIN_VERDICTS.div_ceil(packets.len());
    let reference_repeats = repeats.div_ceil(oracles.len().max(1));
    let mut times = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..PASSES {
        times[0].push(nanoseconds(single, repeats) / packets.len() as f64);
        times[1].push(nanoseconds(&mut batched, repeats) / packets.len() as f64);
        times[2].push(nanoseconds(reference, reference_repeats) / packets.len() as f64);
    }
    let [single, batched, reference] = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times[PASSES / 2]
    });
    let mut text = String::new();
    let _ = writeln!(text, "{} packets, {} filters; median of {PASSES} passes", packets.len(), set.compiled.len());
    let _ = writeln!(text, "one at a time        {single:8.2} ns per packet");
    let _ = writeln!(text, "batches of 64        {batched:8.2} ns per packet   {:.2}x", single / batched);
    let _ = writeln!(text, "bpf_filter, in order {reference:8.2} ns per packet   {:.2}x as long", reference / single);
    print(text.as_bytes())?;
    Ok(Status::Done)
}

fn nanoseconds(mut work: impl FnMut(), repeats: usize) -> f64 {
    let started = Instant::now();
    for _ in 0..repeats {
        work();
    }
    started.elapsed().as_nanos() as f64 / repeats as f64
}
