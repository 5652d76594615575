//! The filters as async functions over channels of any library.

use crate::{KEY, WINDOW};

/// What follows the last byte.
const END: i32 = -1;

/// Where a filter's bytes come from.
#[expect(async_fn_in_trait, reason = "every contender runs all of them on one thread")]
pub trait Source {
    /// Waits for the next byte.
    async fn receive(&mut self) -> i32;
}

/// Where a filter's bytes go.
#[expect(async_fn_in_trait, reason = "every contender runs all of them on one thread")]
pub trait Sink {
    /// Waits until there is room.
    async fn send(&mut self, byte: i32);
}

/// Sends an array, so many times.
pub async fn read(data: &[u8], times: u32, mut to: impl Sink) {
    for _ in 0..times {
        for byte in data {
            to.send(i32::from(*byte)).await;
        }
    }
    to.send(END).await;
}

/// Makes the number of bytes even.
pub async fn evener(mut from: impl Source, mut to: impl Sink) {
    let mut odd = false;
    loop {
        let byte = from.receive().await;
        if byte == END {
            break;
        }
        to.send(byte).await;
        odd = !odd;
    }
    if odd {
        to.send(0).await;
    }
    to.send(END).await;
}

/// Swaps every two bytes.
pub async fn swap(mut from: impl Source, mut to: impl Sink) {
    loop {
        let first = from.receive().await;
        if first == END {
            break;
        }
        let second = from.receive().await;
        if second == END {
            to.send(first).await;
            break;
        }
        to.send(second).await;
        to.send(first).await;
    }
    to.send(END).await;
}

/// Appends a checksum.
pub async fn crc32(mut from: impl Source, mut to: impl Sink) {
    let mut table = [0u32; 256];
    for (index, entry) in table.iter_mut().enumerate() {
        *entry = (0..8).fold(index as u32, |rest, _| if rest & 1 != 0 { (rest >> 1) ^ 0xedb8_8320 } else { rest >> 1 });
    }
    let mut crc = 0xffff_ffffu32;
    loop {
        let byte = from.receive().await;
        if byte == END {
            break;
        }
        crc = table[((crc ^ byte as u32) & 0xff) as usize] ^ (crc >> 8);
        to.send(byte).await;
    }
    for byte in (!crc).to_le_bytes() {
        to.send(i32::from(byte)).await;
    }
    to.send(END).await;
}

/// Pairs of how many and which.
pub async fn rle(mut from: impl Source, mut to: impl Sink) {
    let (mut count, mut last) = (0, 0);
    loop {
        let byte = from.receive().await;
        if count > 0 && (byte != last || count == 255) {
            to.send(count).await;
            to.send(last).await;
            count = 0;
        }
        if byte == END {
            break;
        }
        last = byte;
        count += 1;
    }
    to.send(END).await;
}

/// Adds the key.
pub async fn pes(mut from: impl Source, mut to: impl Sink) {
    let mut at = 0;
    loop {
        let byte = from.receive().await;
        if byte == END {
            break;
        }
        to.send(byte ^ i32::from(KEY[at])).await;
        at = (at + 1) % 8;
    }
    to.send(END).await;
}

/// What `rle` made the pairs of.
pub async fn rld(mut from: impl Source, mut to: impl Sink) {
    loop {
        let count = from.receive().await;
        if count == END {
            break;
        }
        let value = from.receive().await;
        if value == END {
            break;
        }
        for _ in 0..count {
            to.send(value).await;
        }
    }
    to.send(END).await;
}

/// Writes to an array, over and over.
pub async fn write(mut from: impl Source, written: &mut [u8], count: &mut u32) {
    loop {
        let byte = from.receive().await;
        if byte == END {
            break;
        }
        written[*count as usize % WINDOW] = byte as u8;
        *count += 1;
    }
}
