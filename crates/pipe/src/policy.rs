//! Store policies: through the caches, with prefetch, or by non-temporal stores. Knows sizes, not machines.
//!
//! Measured on what integration gains (bench/pipe): as long as source or target are in a cache, non-temporal stores are
//! up to fourteen times slower; otherwise they save reading the target and gain a third and more. So the size decides,
//! or a hint of the caller.

use quaject_vcode::fork::ForkLock;
use std::sync::OnceLock;

use crate::plan::MAX_MEAN_SUM_BYTES;

/// What the caller knows of the location of the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Temperature {
    /// Nothing: the size decides.
    #[default]
    Unknown,
    /// The data are in a cache, or the target will be read soon.
    Hot,
    /// The data are in memory, and the target is not read soon.
    Cold,
}

/// How vectors are loaded and stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Store {
    /// Plainly.
    Cached,
    /// Plainly, with source and target prefetched some lines ahead.
    Prefetching,
    /// By non-temporal stores, with the source prefetched some lines ahead.
    Streaming,
}

impl std::fmt::Display for Store {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Store::Cached => "cached",
            Store::Prefetching => "prefetching",
            Store::Streaming => "streaming",
        })
    }
}

/// Below this number of bytes, data that are not cold are stored through the caches, regardless of the sizes of these.
const SMALL_BYTES: usize = 1 << 16;
const _: () = assert!(SMALL_BYTES <= MAX_MEAN_SUM_BYTES, "small data are a single piece");
/// The minimum number of bytes for which cold data are stored by non-temporal stores.
const STREAMING_COLD_BYTES: usize = 4096;

impl Store {
    /// A fast test for plain stores: few data, not cold, and no explicit policy.
    #[inline(always)]
    pub(crate) fn is_plain(bytes: usize, temperature: Temperature, wish: Option<Store>) -> bool {
        bytes < SMALL_BYTES && temperature != Temperature::Cold && wish.is_none()
    }

    /// All, in order of size.
    pub const ALL: [Store; 3] = [Store::Cached, Store::Prefetching, Store::Streaming];

    /// The policy for `bytes` bytes that go to `target`. Non-temporal stores write complete lines, so the target must
    /// allow vectors to be aligned: it is a multiple of 8.
    pub(crate) fn choose(bytes: usize, temperature: Temperature, target: usize) -> Store {
        let from = match temperature {
            Temperature::Cold => STREAMING_COLD_BYTES,
            _ if Store::is_plain(bytes, temperature, None) => return Store::Cached,
            Temperature::Unknown => last_cache_bytes() / 2,
            Temperature::Hot => last_cache_bytes(),
        };
        if bytes >= from && target.is_multiple_of(8) {
            Store::Streaming
        } else if temperature == Temperature::Cold || bytes >= from {
            Store::Prefetching
        } else {
            Store::Cached
        }
    }
}

/// Bytes of the largest cache, as the system reports; 8 MiB if it does not.
fn last_cache_bytes() -> usize {
    static BYTES: OnceLock<usize> = OnceLock::new();
    if let Some(bytes) = BYTES.get() {
        return *bytes;
    }
    // A forked child finds the cell free.
    let _fork = ForkLock::hold();
    *BYTES.get_or_init(|| {
        let read = |index: usize| {
            let text = std::fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok()?;
            let (number, unit) = text.trim().split_at_checked(text.trim().len().checked_sub(1)?)?;
            let unit = match unit {
                "K" => 1 << 10,
                "M" => 1 << 20,
                _ => return None,
            };
            number.parse::<usize>().ok()?.checked_mul(unit)
        };
        (0..8).filter_map(read).max().unwrap_or(8 << 20)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_data_are_cached_and_large_ones_stream() {
        for (bytes, temperature, target, store) in [
            (0, Temperature::Unknown, 0, Store::Cached),
            (4096, Temperature::Unknown, 0, Store::Cached),
            (1 << 40, Temperature::Unknown, 64, Store::Streaming),
            (1 << 40, Temperature::Hot, 64, Store::Streaming),
            (1 << 40, Temperature::Unknown, 3, Store::Prefetching),
            (4095, Temperature::Cold, 0, Store::Prefetching),
            (4096, Temperature::Cold, 0, Store::Streaming),
            (4096, Temperature::Cold, 1, Store::Prefetching),
            (4096, Temperature::Hot, 0, Store::Cached),
        ] {
            assert_eq!(Store::choose(bytes, temperature, target), store, "{bytes} {temperature:?} {target}");
        }
    }
}
