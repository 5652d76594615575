//! A packet as filters see it: the captured bytes and the length on the wire. Knows no filter.

use std::marker::PhantomData;

/// A packet.
///
/// ```text
/// |<---- data ---->|.........|      loads stay inside data
/// |<----- wire_length ------>|      what `length` and `greater` ask about
/// ```
// Generated code reads arrays of these: the layout is in `emit::batch`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Packet<'a> {
    pub(crate) data: *const u8,
    pub(crate) length: u32,
    pub(crate) wire_length: u32,
    borrow: PhantomData<&'a [u8]>,
}

// SAFETY: it is a shared slice and a number.
unsafe impl Send for Packet<'_> {}
// SAFETY: it is a shared slice and a number.
unsafe impl Sync for Packet<'_> {}

impl<'a> Packet<'a> {
    /// A completely captured packet. Bytes beyond 4 GiB are ignored.
    #[inline]
    pub fn new(data: &'a [u8]) -> Packet<'a> {
        let length = u32::try_from(data.len()).unwrap_or(u32::MAX);
        Packet { data: data.as_ptr(), length, wire_length: length, borrow: PhantomData }
    }

    /// A packet that had `wire_length` bytes, of which `data` were captured.
    #[inline]
    pub fn captured(data: &'a [u8], wire_length: u32) -> Packet<'a> {
        Packet { wire_length, ..Packet::new(data) }
    }

    /// What was captured.
    #[inline]
    pub fn data(self) -> &'a [u8] {
        // Of packets of C that have no bytes the pointer may be null.
        if self.length == 0 {
            return &[];
        }
        // SAFETY: pointer and length are those of the slice that is borrowed for `'a`, or of its beginning.
        unsafe { std::slice::from_raw_parts(self.data, self.length as usize) }
    }

    /// How many bytes it had on the wire.
    #[inline]
    pub fn wire_length(self) -> u32 {
        self.wire_length
    }

    /// The number of `width` bytes (1 to 4) at an offset, most significant byte first; `None` if one of the bytes is
    /// not there.
    #[inline]
    pub fn load(self, offset: u64, width: u32) -> Option<u32> {
        let start = usize::try_from(offset).ok()?;
        let bytes = self.data().get(start..start.checked_add(width as usize)?)?;
        Some(bytes.iter().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }
}

impl<'a> From<&'a [u8]> for Packet<'a> {
    #[inline]
    fn from(data: &'a [u8]) -> Packet<'a> {
        Packet::new(data)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_without_bytes_needs_no_pointer() {
        let packet = Packet { data: std::ptr::null(), length: 0, wire_length: 60, borrow: PhantomData };
        assert!(packet.data().is_empty());
        assert_eq!(packet.load(0, 1), None);
    }
}
