//! The limit: C written for exactly these filters, compiled by the system's compiler at -O2 for this processor. It
//! knows that filters are exact five-tuples of TCP over IPv4 without options, compares all else in two loads and one
//! branch, and finds the filter in a perfect hash table of 16-byte slots whose constants are in the code.

use libloading::Library;
use std::fmt::Write as _;
use std::process::Command;

/// The addresses and ports of a filter, in host order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tuple {
    pub source: u32,
    pub destination: u32,
    pub source_port: u16,
    pub destination_port: u16,
}

impl Tuple {
    /// The bytes as they are in a packet, as two numbers.
    fn key(self) -> (u64, u32) {
        let mut bytes = [0; 12];
        bytes[..4].copy_from_slice(&self.source.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.destination.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[10..].copy_from_slice(&self.destination_port.to_be_bytes());
        let (first, second) = bytes.split_at(8);
        let first = u64::from_le_bytes(first.try_into().expect("eight bytes"));
        (first, u32::from_le_bytes(second.try_into().expect("four bytes")))
    }
}

/// The function: data, length; the number of the filter from one on, or zero.
pub type Classify = unsafe extern "C" fn(*const u8, u64) -> u32;

/// The compiled limit.
pub struct Limit {
    pub classify: Classify,
    _library: Library,
    _folder: tempfile::TempDir,
}

/// Up to so many filters one multiplication separates them.
const MAX_DIRECT_KEYS: usize = 64;

impl Limit {
    /// Writes and compiles it.
    pub fn new(tuples: &[Tuple]) -> Limit {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (source, library) = (folder.path().join("limit.c"), folder.path().join("limit.so"));
        std::fs::write(&source, text(tuples)).expect("a file can be written");
        let status = Command::new("cc")
            .args(["-O2", "-march=native", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .status()
            .expect("there is a C compiler");
        assert!(status.success(), "the limit compiles");
        // SAFETY: the library has no code that runs when it is loaded; the function has this type.
        unsafe {
            let library = Library::new(&library).expect("what was compiled can be loaded");
            let classify = *library.get::<Classify>(b"classify\0").expect("it has the function");
            Limit { classify, _library: library, _folder: folder }
        }
    }
}

fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}

fn text(tuples: &[Tuple]) -> String {
    let mut state = 1;
    let keys: Vec<(u64, u32)> = tuples.iter().map(|tuple| tuple.key()).collect();
    let bits = if keys.len() <= MAX_DIRECT_KEYS { 4 } else { 2 } * keys.len();
    let bits = bits.next_power_of_two().trailing_zeros().max(2);
    let (fold, last, slots, displacements) = loop {
        let (fold, last) = (random(&mut state) | 1, random(&mut state) | 1);
        let hash = |key: (u64, u32)| key.0.wrapping_mul(fold).wrapping_add(key.1.into()).wrapping_mul(last);
        if let Some((slots, displacements)) = place(&keys, hash, bits, &mut state) {
            break (fold, last, slots, displacements);
        }
    };
    let mut text = String::from(
        "#include <stdint.h>\n#include <string.h>\n\
         static inline uint64_t load8(const uint8_t *p) { uint64_t v; memcpy(&v, p, 8); return v; }\n\
         static inline uint32_t load4(const uint8_t *p) { uint32_t v; memcpy(&v, p, 4); return v; }\n\
         static const struct { uint64_t k0; uint32_t k1, id; } slots[] __attribute__((aligned(64))) = {\n",
    );
    for slot in &slots {
        let (key, id) = slot.map_or(((0, 0), 0), |at| (keys[at], at + 1));
        let _ = writeln!(text, "{{{:#x}, {:#x}, {id}}},", key.0, key.1);
    }
    text.push_str("};\n");
    if !displacements.is_empty() {
        text.push_str("static const uint32_t displacements[] = {");
        for displacement in &displacements {
            let _ = write!(text, "{displacement},");
        }
        text.push_str("};\n");
    }
    let _ = write!(
        text,
        "uint32_t classify(const uint8_t *p, uint64_t length) {{\n\
           if (length < 38) return 0;\n\
           uint32_t a = (load4(p + 12) & 0x00ffffff) ^ 0x00450008;\n\
           uint32_t b = (load4(p + 20) & 0xff00ff1f) ^ 0x06000000;\n\
           if (a | b) return 0;\n\
           uint64_t k0 = load8(p + 26); uint32_t k1 = load4(p + 34);\n\
           uint64_t h = (k0 * {fold:#x}u + k1) * {last:#x}u;\n"
    );
    if !displacements.is_empty() {
        let _ = writeln!(text, "h *= displacements[h >> {}];", 64 - displacements.len().trailing_zeros());
    }
    let _ = write!(
        text,
        "uint64_t at = h >> {};\n\
         if ((slots[at].k0 ^ k0) | (slots[at].k1 ^ k1)) return 0;\n\
         return slots[at].id;\n}}\n",
        64 - bits
    );
    text
}

type Placed = (Vec<Option<usize>>, Vec<u32>);

/// A slot for each key, and displacements if there are too many keys to do without.
fn place(keys: &[(u64, u32)], hash: impl Fn((u64, u32)) -> u64, bits: u32, state: &mut u64) -> Option<Placed> {
    let mut slots = vec![None; 1 << bits];
    if keys.len() <= MAX_DIRECT_KEYS {
        for (at, key) in keys.iter().enumerate() {
            let slot = &mut slots[(hash(*key) >> (64 - bits)) as usize];
            if slot.replace(at).is_some() {
                return None;
            }
        }
        return Some((slots, Vec::new()));
    }
    let bucket_bits = bits - 2;
    let mut buckets = vec![Vec::new(); 1 << bucket_bits];
    for (at, key) in keys.iter().enumerate() {
        buckets[(hash(*key) >> (64 - bucket_bits)) as usize].push(at);
    }
    let mut displacements = vec![1; buckets.len()];
    let mut order: Vec<usize> = (0..buckets.len()).collect();
    order.sort_by_key(|bucket| std::cmp::Reverse(buckets[*bucket].len()));
    for bucket in order {
        let mut tries = 0;
        loop {
            let displacement = random(state) as u32 | 1;
            let of = |at: &usize| (hash(keys[*at]).wrapping_mul(displacement.into()) >> (64 - bits)) as usize;
            let wanted: Vec<usize> = buckets[bucket].iter().map(of).collect();
            let fits =
                wanted.iter().enumerate().all(|(at, slot)| slots[*slot].is_none() && !wanted[..at].contains(slot));
            if fits {
                for (key, slot) in buckets[bucket].iter().zip(wanted) {
                    slots[slot] = Some(*key);
                }
                displacements[bucket] = displacement;
                break;
            }
            tries += 1;
            if tries > 10_000 {
                return None;
            }
        }
    }
    Some((slots, displacements))
}
