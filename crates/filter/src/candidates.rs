//! Finds candidates for filters in the syntax of tcpdump in any text: lines and quoted strings whose words all belong
//! to the language. A candidate names no host or network that libpcap would have to resolve. libpcap decides whether it
//! is a filter.

/// The words of the language, as in `man pcap-filter`, and names of services and protocols that every system resolves
/// locally. Sorted.
const WORDS: &[&str] = &[
    "aarp",
    "action",
    "addr1",
    "addr2",
    "addr3",
    "addr4",
    "address1",
    "address2",
    "address3",
    "address4",
    "ah",
    "amdframe",
    "and",
    "arp",
    "atalk",
    "bcc",
    "bootpc",
    "bootps",
    "broadcast",
    "byte",
    "carp",
    "clnp",
    "connectmsg",
    "csnp",
    "ctl",
    "data",
    "decnet",
    "dir",
    "direction",
    "domain",
    "dpc",
    "dst",
    "es-is",
    "esis",
    "esp",
    "ether",
    "fddi",
    "fisu",
    "fromds",
    "ftp",
    "gateway",
    "geneve",
    "greater",
    "hdpc",
    "hfisu",
    "hlssu",
    "hmsu",
    "hopc",
    "host",
    "hsio",
    "hsls",
    "http",
    "https",
    "icmp",
    "icmp6",
    "icmp6code",
    "icmp6type",
    "icmpcode",
    "icmptype",
    "igmp",
    "igrp",
    "iih",
    "ilmic",
    "inbound",
    "ip",
    "ip6",
    "ipx",
    "is-is",
    "isis",
    "iso",
    "l1",
    "l2",
    "lane",
    "lat",
    "len",
    "length",
    "less",
    "link",
    "llc",
    "lsp",
    "lssu",
    "lsu",
    "mask",
    "metac",
    "metaconnect",
    "mgt",
    "mopdl",
    "moprc",
    "mpls",
    "msu",
    "multicast",
    "net",
    "netbeui",
    "nods",
    "not",
    "ntp",
    "oam",
    "oamf4",
    "oamf4ec",
    "oamf4sc",
    "opc",
    "or",
    "outbound",
    "pim",
    "port",
    "portrange",
    "ppp",
    "pppoed",
    "pppoes",
    "proto",
    "protochain",
    "psnp",
    "ra",
    "radio",
    "rarp",
    "sc",
    "sca",
    "sctp",
    "sio",
    "slip",
    "sls",
    "smtp",
    "snap",
    "snmp",
    "snp",
    "src",
    "ssh",
    "stp",
    "subtype",
    "ta",
    "tcp",
    "tcpflags",
    "telnet",
    "tftp",
    "tods",
    "tr",
    "type",
    "udp",
    "vci",
    "vlan",
    "vpi",
    "vrrp",
    "vxlan",
    "wlan",
];

/// Prefixes of words that name values of fields.
const FAMILIES: &[&str] = &["icmp-", "icmp6-", "tcp-", "assoc-", "reassoc-", "probe-", "cf-", "qos-", "data-", "ps-"];

/// Other values of the `type` and `subtype` of wireless frames, and of LLC frames.
const FRAMES: &[&str] = &[
    "ack", "atim", "auth", "beacon", "cts", "deauth", "disassoc", "disc", "dm", "frmr", "i", "null", "qos", "rej",
    "rnr", "rr", "rts", "s", "sabme", "test", "u", "ua", "ui", "xid",
];

/// Whether a word belongs to the language, or names a well-known service.
pub(crate) fn is_keyword(word: &str) -> bool {
    WORDS.binary_search(&word).is_ok()
}

/// Whether a word belongs to the language, as a keyword or a value of a field.
pub(crate) fn is_of_language(word: &str) -> bool {
    is_keyword(word) || FRAMES.contains(&word) || FAMILIES.iter().any(|family| word.starts_with(family))
}

/// Whether all words of a text belong to the language, at least one of them not a number.
fn may_be_filter(text: &str) -> bool {
    let part = |character: char| character.is_ascii_alphanumeric() || ":.-_".contains(character);
    let mut known = false;
    for word in text.split(|character: char| !part(character)).filter(|word| !word.is_empty()) {
        // Numbers and addresses; the hexadecimal ones begin with a letter at times.
        let number = word.starts_with(|first: char| first.is_ascii_digit() || first == '-')
            || word.contains(|digit: char| digit.is_ascii_digit() || digit == ':')
                && word.chars().all(|digit| digit.is_ascii_hexdigit() || ".:-".contains(digit));
        let of_language =
            is_keyword(word) || FRAMES.contains(&word) || FAMILIES.iter().any(|family| word.starts_with(family));
        if !number && !of_language {
            return false;
        }
        known |= of_language;
    }
    known
}

/// The candidates in a text: its lines and their quoted strings.
pub fn candidates(text: &str) -> impl Iterator<Item = String> + '_ {
    text.lines().flat_map(|line| {
        let whole = [line.trim().to_owned()].into_iter();
        let quoted = ['"', '\''].into_iter().flat_map(move |quote| {
            // Between the first and the second quote, and between the second and the third: quotes come unpaired, too.
            line.split(quote).skip(1).map(|inner| inner.trim().replace("\\\\", "\\"))
        });
        whole.chain(quoted).filter(|text| may_be_filter(text)).collect::<Vec<_>>()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted() {
        assert!(WORDS.is_sorted());
    }

    #[test]
    fn a_text_with_other_words_is_none() {
        for text in [
            "tcp port 80",
            "ip[6:2] & 0x1fff = 0",
            "host fe80::1",
            "ether host 0:1:2:3:4:ff",
            "ip proto \\tcp",
            "llc u",
        ] {
            assert!(may_be_filter(text), "{text}");
        }
        for text in ["", "1", "10.0.0.1", "host example", "eth0", "use strict;", "tcp porn 80", "deadbeef"] {
            assert!(!may_be_filter(text), "{text}");
        }
    }

    #[test]
    fn quotes_and_lines_give_candidates() {
        let text = "expr => 'tcp port 80', aliases => [\"ip proto \\\\tcp\", 'it'],\n  udp port 53 \nnothing here\n";
        let found: Vec<String> = candidates(text).collect();
        assert_eq!(found, ["ip proto \\tcp", "tcp port 80", "udp port 53"]);
    }
}
