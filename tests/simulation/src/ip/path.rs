//! A router on the path to a host that forwards smaller packets only (RFC 1191). It discards larger ones that may not
//! be fragmented, and reports them. Others pass: fragments and their reassembly are not simulated.

const ETHERNET: usize = 14;
const IP: usize = 20;
const MAY_NOT_BE_FRAGMENTED: u8 = 0x40;

/// The report of a frame's packet that is too large, as a frame to its sender.
pub(crate) fn report_of_discarded(frame: &[u8], mtu: u16) -> Option<Vec<u8>> {
    let packet = frame.get(ETHERNET..).filter(|packet| packet.len() > usize::from(mtu))?;
    if frame[12..14] != [8, 0] || packet[6] & MAY_NOT_BE_FRAGMENTED == 0 {
        return None;
    }
    let header = 4 * usize::from(packet[0] & 15);
    let mut message = [&[3, 4, 0, 0, 0, 0][..], &mtu.to_be_bytes(), &packet[..header + 8]].concat();
    let sum = checksum(&message);
    message[2..4].copy_from_slice(&sum);
    let length = (IP + message.len()) as u16;
    let mut report = [&[0x45, 0][..], &length.to_be_bytes(), &[0, 0, 0, 0, 64, 1, 0, 0]].concat();
    report.extend([&packet[16..20], &packet[12..16]].concat());
    let sum = checksum(&report);
    report[10..12].copy_from_slice(&sum);
    Some([&frame[6..12], &frame[..6], &[8, 0], &report, &message].concat())
}

/// The Internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u64::from(pair[0]) << 8 | u64::from(pair.get(1).copied().unwrap_or(0)));
    let sum: u64 = words.sum();
    let folded = (0..4).fold(sum, |sum, _| (sum >> 16) + (sum & 0xffff));
    (!(folded as u16)).to_be_bytes()
}
