//! `qj filter fuzz`: compares every engine on random filters and packets, and with `bpf_filter` and the kernel.

use super::guard;
use crate::arguments::FilterFuzz;
use crate::terminal::{CliError, Status, Terminal, print_verdict};
use quaject_diagnostic::{Message, Severity};
use quaject_esp_run::{HostCode, HostError};
use quaject_filter::Packet;
use quaject_filter::bpf::Program;
use quaject_filter::fuzz::{Counts, Kernel, Oracle, fingerprints, one_program, round};
use quaject_filter::pcap::Pcap;
use std::collections::HashSet;
use std::time::{Duration, Instant};

pub(crate) fn fuzz(terminal: &Terminal, arguments: &FilterFuzz) -> Result<Status, CliError> {
    let pcap = Pcap::load()
        .map_err(|absent| {
            let warning = Message::new(Severity::Warning, absent.to_string());
            terminal.print(&warning.help(absent.help()));
        })
        .ok();
    let disagrees = |program: &Program, packet: Packet<'_>, verdict: u32| {
        Some(pcap.as_ref()?.prepare(program)?.run(packet)).filter(|other| *other != verdict)
    };
    let oracles = [Oracle { name: "bpf_filter", disagrees: &disagrees }];
    let kernel =
        Kernel::new().map_err(|error| terminal.print_warning(format!("the kernel is not compared: {error}"))).ok();
    let kernel_disagrees =
        |program: &Program, packet: Packet<'_>, verdict: u32| kernel.as_ref()?.disagrees(program, packet, verdict);
    let kernels = [Oracle { name: "the kernel", disagrees: &kernel_disagrees }];
    let mut guard = guard()?;
    let started = Instant::now();
    let last = arguments.rounds.map(|rounds| arguments.seed.saturating_add(rounds));
    let mut counts = Counts::default();
    let mut distinct = HashSet::new();
    for seed in arguments.seed.. {
        let is_over = match last {
            Some(last) => seed >= last,
            None => started.elapsed() >= Duration::from_secs(arguments.seconds),
        };
        if is_over {
            break;
        }
        // One program per round: loading a program into the kernel takes longer than running it.
        let outcome = round(seed, &mut guard, &oracles);
        match outcome.and_then(|more| one_program(seed, &mut guard, &kernels).map(|_| more)) {
            Ok(more) => {
                counts += more;
                distinct.extend(fingerprints(seed));
            }
            Err(disagreement) => {
                print_verdict(disagreement.to_string().as_bytes())?;
                let error = HostError::new(HostCode::Defect, format!("engines disagree in round {seed}"));
                terminal.print_error(
                    &error.help(format!("`qj filter fuzz --seed {seed} --rounds 1` reproduces it; report it")),
                );
                return Ok(Status::Fault);
            }
        }
    }
    let Counts { rounds, filters, packets, evaluations, matches } = counts;
    let text = format!(
        "{rounds} rounds, {filters} filters ({} distinct), {packets} packets, {evaluations} evaluations, {matches} matches, \
         0 differences\n",
        distinct.len()
    );
    print_verdict(text.as_bytes())?;
    terminal.print_status(format!("{} verdicts of the kernel", kernel.as_ref().map_or(0, Kernel::verdicts)));
    Ok(Status::Done)
}
