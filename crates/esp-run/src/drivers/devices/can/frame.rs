//! A frame of classic CAN and its two encodings: `struct can_frame` of the kernel, and the MessagePack map of
//! python-can's interface `udp_multicast`.

use rmpv::Value as Packed;
use std::time::SystemTime;

/// The most data of a classic frame.
pub(super) const MAX_DATA_BYTES: usize = 8;
/// Bytes of `struct can_frame`: identifier, length, three unused bytes, data.
const KERNEL_FRAME_BYTES: usize = 16;
const KERNEL_DATA_AT: usize = 8;

// Flags and masks of `can_id` (linux/can.h).
/// The identifier has 29 bits instead of 11.
pub(super) const CAN_EFF_FLAG: u32 = 0x8000_0000;
/// The frame asks for a frame of data.
pub(super) const CAN_RTR_FLAG: u32 = 0x4000_0000;
/// The kernel reports an error of the bus.
pub(super) const CAN_ERR_FLAG: u32 = 0x2000_0000;
/// The identifier, if it has 29 bits.
pub(super) const CAN_EFF_MASK: u32 = 0x1fff_ffff;
/// The identifier, if it has 11 bits.
pub(super) const CAN_SFF_MASK: u32 = 0x0000_07ff;

/// An identifier, in the form of SocketCAN, and data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct CanFrame {
    pub(super) id: u32,
    pub(super) data: Vec<u8>,
}

impl CanFrame {
    /// The kernel's encoding.
    pub(super) fn to_kernel(&self) -> [u8; KERNEL_FRAME_BYTES] {
        let mut bytes = [0; KERNEL_FRAME_BYTES];
        bytes[..4].copy_from_slice(&self.id.to_ne_bytes());
        bytes[4] = self.data.len() as u8;
        bytes[KERNEL_DATA_AT..KERNEL_DATA_AT + self.data.len()].copy_from_slice(&self.data);
        bytes
    }

    /// The encoding in captures: the kernel's, with the identifier in network byte order (LINKTYPE_CAN_SOCKETCAN).
    pub(super) fn to_capture(&self) -> [u8; KERNEL_FRAME_BYTES] {
        let mut bytes = self.to_kernel();
        bytes[..4].copy_from_slice(&self.id.to_be_bytes());
        bytes
    }

    /// Decodes the kernel's encoding; `None` if it is not a data or remote frame.
    pub(super) fn from_kernel(bytes: &[u8]) -> Option<CanFrame> {
        let frame: &[u8; KERNEL_FRAME_BYTES] = bytes.try_into().ok()?;
        let id = u32::from_ne_bytes([frame[0], frame[1], frame[2], frame[3]]);
        let data = frame[KERNEL_DATA_AT..].get(..usize::from(frame[4]))?;
        (id & CAN_ERR_FLAG == 0).then(|| CanFrame { id, data: data.to_vec() })
    }

    /// The encoding of python-can: a map from names to values (MessagePack).
    pub(super) fn to_message_pack(&self) -> Vec<u8> {
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0.0, |time| time.as_secs_f64());
        let (extended, remote) = (self.id & CAN_EFF_FLAG != 0, self.id & CAN_RTR_FLAG != 0);
        let data = if remote { Vec::new() } else { self.data.clone() };
        let fields = [
            ("timestamp", Packed::from(time)),
            ("arbitration_id", Packed::from(self.id & CAN_EFF_MASK)),
            ("is_extended_id", Packed::from(extended)),
            ("is_remote_frame", Packed::from(remote)),
            ("is_error_frame", Packed::from(false)),
            ("channel", Packed::Nil),
            ("dlc", Packed::from(self.data.len())),
            ("data", Packed::Binary(data)),
            ("is_fd", Packed::from(false)),
            ("bitrate_switch", Packed::from(false)),
            ("error_state_indicator", Packed::from(false)),
        ];
        let map = fields.into_iter().map(|(name, value)| (Packed::from(name), value)).collect();
        let mut bytes = Vec::with_capacity(192);
        rmpv::encode::write_value(&mut bytes, &Packed::Map(map)).expect("a vector takes what is written");
        bytes
    }

    /// Decodes the encoding of python-can; `None` if the bytes are no frame of classic CAN.
    pub(super) fn from_message_pack(mut bytes: &[u8]) -> Option<CanFrame> {
        let map = rmpv::decode::read_value(&mut bytes).ok()?;
        let fields = map.as_map()?;
        let field = |name: &str| fields.iter().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value);
        let is = |name: &str| field(name).and_then(Packed::as_bool).unwrap_or(false);
        let id = u32::try_from(field("arbitration_id")?.as_u64()?).ok()?;
        let largest = if is("is_extended_id") { CAN_EFF_MASK } else { CAN_SFF_MASK };
        if id > largest || is("is_error_frame") || is("is_fd") {
            return None;
        }
        let length = field("dlc").and_then(Packed::as_u64).unwrap_or(0) as usize;
        let (data, remote) = match is("is_remote_frame") {
            true => (vec![0; length.min(MAX_DATA_BYTES)], CAN_RTR_FLAG),
            false => (field("data")?.as_slice()?.to_vec(), 0),
        };
        let extended = if is("is_extended_id") { CAN_EFF_FLAG } else { 0 };
        (data.len() <= MAX_DATA_BYTES).then_some(CanFrame { id: id | extended | remote, data })
    }
}

#[cfg(test)]
mod tests {
    use super::CanFrame;

    #[test]
    fn a_frame_survives_both_forms() {
        for id in [0, 0x7ff, 0x8000_0000, 0x9fff_ffff, 0x4000_0123, 0xc000_0123] {
            for length in 0..=8 {
                let data = if id & 0x4000_0000 != 0 { vec![0; length] } else { (1..=length as u8).collect() };
                let frame = CanFrame { id, data };
                assert_eq!(CanFrame::from_kernel(&frame.to_kernel()), Some(frame.clone()));
                assert_eq!(CanFrame::from_message_pack(&frame.to_message_pack()), Some(frame));
            }
        }
    }

    #[test]
    fn what_is_no_frame_is_none() {
        let whole = CanFrame { id: 0x123, data: vec![1, 2, 3] }.to_message_pack();
        for length in 0..whole.len() {
            assert_eq!(CanFrame::from_message_pack(&whole[..length]), None, "the first {length} bytes");
        }
        for at in 0..whole.len() {
            for byte in 0..=255 {
                let mut damaged = whole.clone();
                damaged[at] = byte;
                if let Some(frame) = CanFrame::from_message_pack(&damaged) {
                    assert!(frame.data.len() <= 8);
                }
            }
        }
        // Lists within lists, and one that says to be endless.
        assert_eq!(CanFrame::from_message_pack(&[0x91; 4096]), None);
        assert_eq!(CanFrame::from_message_pack(&[0xdf, 0xff, 0xff, 0xff, 0xff, 0xc0]), None);
        assert_eq!(CanFrame::from_kernel(&[0; 15]), None);
        assert_eq!(CanFrame::from_kernel(&[9; 16]), None);
    }
}
