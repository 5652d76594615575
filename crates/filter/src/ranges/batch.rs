//! Many packets through a tree of cuts, in vectors of 512 bits: the numbers of sixteen packets in a vector each, a gather
//! for a level of the tree, groups of sixteen in turns so that they do not wait for each other. Then lists: a packet is
//! compared with a box in one instruction, and who needs another comparison goes back into the queue without a branch.
//! Knows no filter that was removed.

use super::cuts::{FIRST_BITS, LAST, LEAF, NOBODY, NUMBERS, UNIT};
use super::tree::{Found, Record, Tree, WINDOW};
use crate::packet::Packet;
use std::arch::x86_64::*;

/// Packets of a vector.
const LANES: usize = 16;
/// Vectors in turns.
const GROUPS: usize = 4;
/// Packets that are looked at together.
pub(super) const MOST: usize = LANES * GROUPS;

/// The numbers of packets: by group, by number.
#[repr(C, align(64))]
struct Numbers([[[u32; LANES]; NUMBERS]; GROUPS]);

#[repr(C, align(64))]
struct Words([[u32; LANES]; GROUPS]);

impl Tree {
    /// What the tree says of up to [`MOST`] packets.
    ///
    /// # Safety
    /// The processor has the vectors: `self.wide`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) unsafe fn find_many(&self, packets: &[Packet<'_>], found: &mut [Found; MOST]) {
        let packets = &packets[..packets.len().min(MOST)];
        let mut numbers = Numbers([[[0; LANES]; NUMBERS]; GROUPS]);
        let mut pointers = [[std::ptr::null::<u8>(); LANES]; GROUPS];
        let mut known = [0_u16; GROUPS];
        for (group, packets) in packets.chunks(LANES).enumerate() {
            // SAFETY: the processor has the vectors.
            known[group] = unsafe { self.known(packets, &mut pointers[group]) };
            if known[group] != 0 {
                // SAFETY: 1. The processor has the vectors. 2. All pointers are to packets that are long enough.
                unsafe { self.load(&pointers[group], &mut numbers.0[group]) };
            }
        }
        let mut leaves = Words([[0; LANES]; GROUPS]);
        // SAFETY: the processor has the vectors.
        unsafe { self.walk(&numbers, known, &mut leaves) };
        let mut queue = [(0_u8, 0_u32); MOST];
        let mut waiting = 0;
        for (at, place) in found.iter_mut().enumerate().take(packets.len()) {
            let is_known = known[at / LANES] >> (at % LANES) & 1 != 0;
            *place = if is_known { Found::Nobody } else { Found::Unknown };
            queue[waiting] = (at as u8, leaves.0[at / LANES][at % LANES] & !LEAF);
            waiting += usize::from(is_known);
        }
        // SAFETY: 1. The processor has the vectors. 2. Packets of the queue are known, so their pointers are valid.
        unsafe { self.compare(&pointers, &mut queue, waiting, found) };
    }

    /// Which packets of a group the tree is for, by bits; and their pointers, in the places of others that of one of them.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn known(&self, packets: &[Packet<'_>], pointers: &mut [*const u8; LANES]) -> u16 {
        let mut known = 0_u16;
        for (at, (packet, pointer)) in packets.iter().zip(pointers.iter_mut()).enumerate() {
            *pointer = packet.data;
            known |= u16::from(packet.length >= self.need) << at;
        }
        for constant in &self.constants {
            let (mask, value) = (_mm512_set1_epi64(constant.mask as i64), _mm512_set1_epi64(constant.value as i64));
            let offset = constant.offset as usize as *const u8;
            // SAFETY: 1. The array has as many words as are loaded. 2. Words are gathered of packets that have `need` bytes
            // only, in which all constants are.
            let (low, high) = unsafe {
                let half = |at: usize| _mm512_loadu_si512(pointers.as_ptr().add(at).cast());
                let nothing = _mm512_setzero_si512();
                let word = |lanes: u8, half| _mm512_mask_i64gather_epi64::<1>(nothing, lanes, half, offset.cast());
                (word(known as u8, half(0)), word((known >> 8) as u8, half(LANES / 2)))
            };
            let equal = |words| _mm512_cmpeq_epi64_mask(_mm512_and_si512(words, mask), value);
            known &= u16::from(equal(low)) | u16::from(equal(high)) << 8;
        }
        if known != 0 && known != u16::MAX {
            let stand_in = pointers[known.trailing_zeros() as usize];
            for (at, pointer) in pointers.iter_mut().enumerate() {
                *pointer = if known >> at & 1 != 0 { *pointer } else { stand_in };
            }
        }
        known
    }

    /// The numbers of sixteen packets.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(&self, pointers: &[*const u8; LANES], numbers: &mut [[u32; LANES]; NUMBERS]) {
        let mut words = [_mm512_setzero_si512(); 12];
        for (window, words) in self.windows.iter().zip(words.chunks_exact_mut(4)) {
            // SAFETY: sixteen bytes are loaded, of an array and of a window, which is in the packet.
            let (pack, quarter) = unsafe {
                let pack = _mm512_broadcast_i32x4(_mm_loadu_si128(window.pack.as_ptr().cast()));
                let one = |at: usize| _mm_loadu_si128(pointers[at].add(window.offset as usize).cast());
                // Packets at, at + 4, at + 8, at + 12.
                let quarter = [0, 1, 2, 3].map(|at| {
                    let first = _mm512_castsi128_si512(one(at));
                    let second = _mm512_inserti32x4::<1>(first, one(at + 4));
                    let third = _mm512_inserti32x4::<2>(second, one(at + 8));
                    _mm512_inserti32x4::<3>(third, one(at + 12))
                });
                (pack, quarter)
            };
            let [a, b, c, d] = quarter.map(|own| _mm512_shuffle_epi8(own, pack));
            let (ab, cd) = (_mm512_unpacklo_epi32(a, b), _mm512_unpacklo_epi32(c, d));
            words[0] = _mm512_unpacklo_epi64(ab, cd);
            words[1] = _mm512_unpackhi_epi64(ab, cd);
            let (ab, cd) = (_mm512_unpackhi_epi32(a, b), _mm512_unpackhi_epi32(c, d));
            words[2] = _mm512_unpacklo_epi64(ab, cd);
            words[3] = _mm512_unpackhi_epi64(ab, cd);
        }
        for (slot, place) in self.slots.iter().zip(numbers) {
            let shifted = _mm512_srl_epi32(words[slot.word as usize], _mm_cvtsi32_si128(slot.shift as i32));
            let number = _mm512_and_si512(shifted, _mm512_set1_epi32(slot.mask as i32));
            // SAFETY: the place has sixteen words.
            unsafe { _mm512_storeu_si512(place.as_mut_ptr().cast(), number) };
        }
    }

    /// The leaves of packets with these numbers.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn walk(&self, numbers: &Numbers, known: [u16; GROUPS], leaves: &mut Words) {
        let set = |word: u32| _mm512_set1_epi32(word as i32);
        let mut words = [set(self.cuts.root); GROUPS];
        let nodes = self.cuts.nodes.as_ptr().cast();
        let inner = |word, lanes| _mm512_mask_testn_epi32_mask(lanes, word, set(LEAF));
        loop {
            let mut left = 0;
            for ((word, known), numbers) in words.iter_mut().zip(known).zip(&numbers.0) {
                let active = inner(*word, known);
                if active == 0 {
                    continue;
                }
                let which = _mm512_srli_epi32::<28>(*word);
                // SAFETY: sixteen words are loaded.
                let load = |at: usize| unsafe { _mm512_load_si512(numbers[at].as_ptr().cast()) };
                let mut number = load(0);
                for at in 1..self.slots.len() {
                    let own = _mm512_cmpeq_epi32_mask(which, set(at as u32));
                    number = _mm512_mask_mov_epi32(number, own, load(at));
                }
                let shift = _mm512_and_si512(_mm512_srli_epi32::<23>(*word), set(31));
                let bits = _mm512_and_si512(_mm512_srli_epi32::<FIRST_BITS>(*word), set(15));
                // One more bit than these.
                let rest = _mm512_sllv_epi32(set(u32::MAX - 1), bits);
                let child = _mm512_andnot_si512(rest, _mm512_srlv_epi32(number, shift));
                let first = _mm512_and_si512(*word, set((1 << FIRST_BITS) - 1));
                let first = _mm512_slli_epi32::<{ UNIT.trailing_zeros() }>(first);
                // SAFETY: a node that is no leaf has a child for each value of its bits.
                *word = unsafe { _mm512_mask_i32gather_epi32::<4>(*word, active, _mm512_add_epi32(first, child), nodes) };
                left |= inner(*word, active);
            }
            if left == 0 {
                break;
            }
        }
        for (word, place) in words.into_iter().zip(&mut leaves.0) {
            // SAFETY: the place has sixteen words.
            unsafe { _mm512_storeu_si512(place.as_mut_ptr().cast(), word) };
        }
    }

    /// Compares packets with the boxes of their lists, one box at a time, until each has one or is at the end.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn compare(
        &self,
        pointers: &[[*const u8; LANES]; GROUPS],
        queue: &mut [(u8, u32); MOST],
        mut waiting: usize,
        found: &mut [Found; MOST],
    ) {
        // Words of numbers under their masks; the second of each is complemented.
        let mut masks = Record([0; 2 * NUMBERS]);
        let mut turned = Record([0; 2 * NUMBERS]);
        for (at, slot) in self.slots.iter().enumerate() {
            (masks.0[2 * at], masks.0[2 * at + 1], turned.0[2 * at + 1]) = (slot.mask, slot.mask, u32::MAX);
        }
        // SAFETY: records have sixteen words.
        let (masks, turned) = unsafe {
            (_mm512_load_si512(masks.0.as_ptr().cast()), _mm512_load_si512(turned.0.as_ptr().cast()))
        };
        while waiting > 0 {
            let mut again = 0;
            for at in 0..waiting {
                let (lane, place) = queue[at];
                let lane = usize::from(lane);
                let own = self.cuts.lists[place as usize];
                let number = own & !LAST;
                if number == NOBODY {
                    continue;
                }
                let pointer = pointers[lane / LANES][lane % LANES];
                let mut words = _mm512_setzero_si512();
                for window in &self.windows {
                    debug_assert!(window.offset + WINDOW <= self.need);
                    // SAFETY: windows are inside of packets that are long enough; arrays have as many bytes as are loaded.
                    let (bytes, spread) = unsafe {
                        let bytes = _mm_loadu_si128(pointer.add(window.offset as usize).cast());
                        (_mm512_broadcast_i32x4(bytes), _mm512_loadu_si512(window.spread.as_ptr().cast()))
                    };
                    words = _mm512_or_si512(words, _mm512_shuffle_epi8(bytes, spread));
                }
                let words = _mm512_xor_si512(_mm512_and_si512(words, masks), turned);
                // SAFETY: a record has sixteen words.
                let bounds = unsafe { _mm512_load_si512(self.records[number as usize].0.as_ptr().cast()) };
                let has = _mm512_cmpge_epu32_mask(words, bounds) == u16::MAX;
                let entry = Found::Entry(self.entries[number as usize]);
                found[lane] = if has { entry } else { found[lane] };
                queue[again] = (lane as u8, place + 1);
                again += usize::from(!has && own & LAST == 0);
            }
            waiting = again;
        }
    }
}
