//! The arguments of `qj filter` and its subcommands.

use clap::{Args, Subcommand, ValueHint};
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// Classify packets by many filters at once
///
/// RULES holds one filter a line in the syntax of tcpdump (man pcap-filter),
/// optionally with a name before it; `#` begins a comment:
///
///   web:  tcp port 80 or tcp port 443
///   dns:  udp port 53
///   net 10.0.0.0/8
///
/// libpcap compiles the expressions; it is loaded at run time. Captures are pcap and
/// pcapng files.
#[derive(Args, Debug)]
#[command(
    verbatim_doc_comment,
    args_conflicts_with_subcommands = true,
    disable_help_subcommand = true,
    subcommand_negates_reqs = true,
    after_help = "Examples:\n  \
    qj filter -f rules.txt -r day.pcap --count\n  \
    qj filter -f rules.txt -r day.pcapng --split by-rule/\n  \
    qj filter -f rules.txt --explain              groups, tables and the generated code\n  \
    qj filter -f rules.txt -r day.pcap --check    compare with bpf_filter, packet by packet\n  \
    qj filter -f rules.txt -i eth0 --count        until Ctrl-C\n  \
    qj filter -f rules.txt --emit xdp -o rules.o  for `ip link set eth0 xdp obj rules.o sec xdp`\n  \
    qj filter fuzz --seconds 60                   random filters and packets, every engine"
)]
pub(crate) struct Filter {
    #[command(subcommand)]
    pub(crate) command: Option<FilterCommand>,
    /// The filters; `-` is standard input
    #[arg(short = 'f', long, value_name = "RULES", value_hint = ValueHint::FilePath, required = true)]
    pub(crate) rules: Option<PathBuf>,
    /// The packets; `-` is standard input
    #[arg(short, long, group = "source", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) read: Option<PathBuf>,
    /// Packets of this interface instead of a file, until SIGINT or SIGTERM; `any` is every interface
    #[arg(short, long, group = "source", value_name = "IFACE")]
    pub(crate) interface: Option<String>,
    /// Receive the packets of the interface by AF_XDP; the kernel's network stack does not receive them
    #[arg(long, requires = "interface")]
    pub(crate) xdp: bool,
    /// End after this number of packets of the interface
    #[arg(long, value_name = "N", requires = "interface")]
    pub(crate) packets: Option<u64>,
    /// Print the number of packets that each filter matches
    #[arg(long, group = "work", requires = "source")]
    pub(crate) count: bool,
    /// Write each packet to DIR/NAME.pcap, where NAME is the first filter that matches it
    #[arg(long, value_name = "DIR", group = "work", requires = "source", value_hint = ValueHint::DirPath)]
    pub(crate) split: Option<PathBuf>,
    /// Print the tests, groups, tables and machine code of the filters
    #[arg(long, group = "work")]
    pub(crate) explain: bool,
    /// Compare generated code, interpreter and bpf_filter on every packet
    #[arg(long, group = "work", requires = "source")]
    pub(crate) check: bool,
    /// Measure the time per packet, compared with bpf_filter
    #[arg(long, group = "work", requires = "source")]
    pub(crate) bench: bool,
    /// Write the filters as an XDP program: C, or an object file compiled by clang if FILE ends in .o
    #[arg(long, value_name = "FORM", group = "work", conflicts_with = "source")]
    pub(crate) emit: Option<Emit>,
    /// The output file [default: standard output]
    #[arg(short, long, value_name = "FILE", requires = "emit", value_hint = ValueHint::FilePath)]
    pub(crate) output: Option<PathBuf>,
    /// The link type of packets where no capture or interface determines it, as with --explain; 1 is Ethernet
    #[arg(long, value_name = "N", default_value = "1")]
    pub(crate) link_type: i32,
    /// The netmask of the packets' network, for `ip broadcast` [default: the one of the interface]
    #[arg(long, value_name = "MASK")]
    pub(crate) netmask: Option<Ipv4Addr>,
}

/// The form in which filters are written.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub(crate) enum Emit {
    /// A program that counts packets by rule and applies the action that a map holds for the rule
    Xdp,
}

#[derive(Subcommand, Debug)]
pub(crate) enum FilterCommand {
    Fuzz(FilterFuzz),
    Corpus(FilterCorpus),
}

/// Compare every engine with the others on random filters and packets
#[derive(Args, Debug)]
pub(crate) struct FilterFuzz {
    /// The number of the first round; it reproduces a round that failed
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) seed: u64,
    /// The number of rounds
    #[arg(long, value_name = "N", conflicts_with = "seconds")]
    pub(crate) rounds: Option<u64>,
    /// The duration in seconds
    #[arg(long, value_name = "N", default_value = "10")]
    pub(crate) seconds: u64,
}

/// Compare every engine with bpf_filter on the captures and expressions of a folder
///
/// Every pcap and pcapng file below DIR is a capture. In a file that ends in .rules
/// each line is a filter. In other text files every line and every quoted string is a
/// filter if libpcap compiles it without resolving names. Each filter is compared on
/// every packet of each link type that it can be compiled for: separately, and merged
/// with hundreds of others.
#[derive(Args, Debug)]
#[command(after_help = "Examples:\n  \
    qj filter corpus tests/packets\n  \
    qj filter corpus libpcap-1.10.5 --sets 20")]
pub(crate) struct FilterCorpus {
    /// The folder
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) folder: PathBuf,
    /// The number of merged sets of filters for each link type; the first set has all filters
    #[arg(long, value_name = "N", default_value = "5")]
    pub(crate) sets: usize,
    /// The seed of the random sets
    #[arg(long, value_name = "N", default_value = "0")]
    pub(crate) seed: u64,
}
