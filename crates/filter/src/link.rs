//! Link layers of packets: how they are numbered in captures (`LINKTYPE_`) and by libpcap (`DLT_`), and the byte order
//! in which a capture stores headers of the capturing machine. Knows neither captures nor filters.

/// The order of the bytes of a number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ByteOrder {
    /// Least significant byte first.
    Little,
    /// Most significant byte first.
    Big,
}

impl ByteOrder {
    /// That of this machine.
    pub const NATIVE: ByteOrder = if cfg!(target_endian = "big") { ByteOrder::Big } else { ByteOrder::Little };

    /// The bytes of a number in this order.
    pub fn bytes(self, number: u32) -> [u8; 4] {
        match self {
            ByteOrder::Little => number.to_le_bytes(),
            ByteOrder::Big => number.to_be_bytes(),
        }
    }
}

/// What a filter has to know of packets: the meaning of an expression depends on it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LinkLayer {
    /// The link type, in the numbering of captures (`LINKTYPE_`).
    pub link_type: i32,
    /// The byte order of the machine that captured the packets. Some link layers have numbers in it: the address
    /// family in front of packets of a BSD loopback interface (`LINKTYPE_NULL`).
    pub byte_order: ByteOrder,
}

impl LinkLayer {
    /// Packets that are captured on this machine.
    pub const fn native(link_type: i32) -> LinkLayer {
        LinkLayer { link_type, byte_order: ByteOrder::NATIVE }
    }
}

/// The numbers that differ, as libpcap has them on this system: `DLT_`, `LINKTYPE_`.
const DIFFERENT: &[(i32, i32)] = &[
    // ATM according to RFC 1483; raw IP.
    (11, 100),
    (12, 101),
    // SLIP and PPP of BSD/OS.
    (if BSD { 13 } else { 15 }, 102),
    (if BSD { 14 } else { 16 }, 103),
    // Classical IP over ATM, of Linux.
    (19, 106),
    // States of OpenBSD's packet filter; packets of macOS with their process.
    (if cfg!(target_vendor = "apple") { 18 } else { 246 }, 246),
    (if cfg!(target_vendor = "apple") { 149 } else { 258 }, 258),
];
const BSD: bool = cfg!(any(target_os = "freebsd", target_os = "netbsd"));

/// The number by which libpcap knows a link type of captures.
pub fn data_link(link_type: i32) -> i32 {
    DIFFERENT.iter().find(|(_, own)| *own == link_type).map_or(link_type, |(number, _)| *number)
}

/// The link type of captures for a number of libpcap's: the inverse of [`data_link`].
pub fn link_type(data_link: i32) -> i32 {
    DIFFERENT.iter().find(|(number, _)| *number == data_link).map_or(data_link, |(_, own)| *own)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_translated_in_both_directions() {
        for own in [0, 1, 50, 100, 101, 102, 103, 106, 108, 113, 276] {
            assert_eq!(link_type(data_link(own)), own);
        }
    }
}
