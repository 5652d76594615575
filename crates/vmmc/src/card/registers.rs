//! The addresses of the registers, as in `include/quaject/vmmc-card.h`, which a test compares with this file.

/// The bytes of the card's memory, and the address of the first register.
pub(super) const MEMORY_BYTES: u32 = 0x10_0000;
/// The longest packet.
pub(super) const MAX_PACKET_BYTES: u32 = 0x1_0000;

pub(super) const CLOCK: u32 = 0x00;
pub(super) const CLOCK_HIGH: u32 = 0x04;
pub(super) const EVENTS: u32 = 0x08;
pub(super) const WAIT: u32 = 0x0c;
pub(super) const NODE: u32 = 0x10;
pub(super) const NODES: u32 = 0x14;
pub(super) const DOORBELL: u32 = 0x18;
pub(super) const INTERRUPT: u32 = 0x1c;
pub(super) const HOST_ADDRESS: u32 = 0x20;
pub(super) const HOST_BUFFER: u32 = 0x24;
pub(super) const HOST_LENGTH: u32 = 0x28;
pub(super) const HOST_COMMAND: u32 = 0x2c;
pub(super) const SEND_BUFFER: u32 = 0x30;
pub(super) const SEND_LENGTH: u32 = 0x34;
pub(super) const SEND_NODE: u32 = 0x38;
pub(super) const SEND_COMMAND: u32 = 0x3c;
pub(super) const RECEIVE_BUFFER: u32 = 0x40;
pub(super) const RECEIVE_LIMIT: u32 = 0x44;
pub(super) const RECEIVE_COMMAND: u32 = 0x48;
pub(super) const RECEIVE_LENGTH: u32 = 0x4c;

pub(super) const HOST_DONE: u32 = 1;
pub(super) const SEND_DONE: u32 = 2;
pub(super) const RECEIVE_DONE: u32 = 4;
pub(super) const DOORBELL_RUNG: u32 = 8;
pub(super) const HOST_TO_CARD: u32 = 1;
pub(super) const CARD_TO_HOST: u32 = 2;
pub(super) const SEND_PIECE: u32 = 1;
pub(super) const SEND_LAST: u32 = 2;
pub(super) const RECEIVE_START: u32 = 1;

#[cfg(test)]
mod tests {
    /// The value of each name in the header that firmware includes.
    fn header() -> Vec<(String, u32)> {
        let text = include_str!("../../include/quaject/vmmc-card.h");
        let definitions = text.lines().filter_map(|line| line.strip_prefix("#define QJ_CARD_"));
        let values = definitions.filter_map(|line| {
            let (name, rest) = line.split_once(' ')?;
            let number = rest.strip_prefix("QJ_CARD_REGISTER(").unwrap_or(rest).split(['u', ' ']).next()?;
            let value = match number.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            Some((name.to_owned(), value.ok()?))
        });
        values.collect()
    }

    #[test]
    fn the_header_has_the_same_values() {
        let constants = include_str!("registers.rs").lines().filter_map(|line| {
            let (name, value) = line.strip_prefix("pub(super) const ")?.strip_suffix(';')?.split_once(": u32 = ")?;
            let value = value.replace('_', "");
            let value = match value.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).expect("a number"),
                None => value.parse().expect("a number"),
            };
            Some((name.to_owned(), value))
        });
        let mut constants: Vec<_> = constants.collect();
        let mut header = header();
        constants.sort();
        header.sort();
        assert_eq!(constants, header);
    }
}
