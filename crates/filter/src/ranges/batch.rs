//! Many packets through a tree of cuts, in vectors of 512 bits: the numbers of sixteen packets in a vector each, a gather
//! for a level of the tree, groups of sixteen in turns so that they do not wait for each other. Then lists: a packet is
//! compared with a box in one instruction, and who needs another comparison has a bit in the next round.
//! Knows no filter that was removed.

use super::cuts::{FIRST_BITS, LAST, LEAF, NUMBERS, UNIT};
use super::tree::{MOST_WINDOWS, Record, Tree, UNKNOWN};
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
struct Places([u32; MOST]);

/// Sixteen bytes each of packets `FIRST`, and the fourth, eighth and twelfth after it.
///
/// # Safety
/// 1. The processor has the vectors. 2. The packets have the bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
unsafe fn quarter<const FIRST: usize>(pointers: &[*const u8; LANES], offset: usize) -> __m512i {
    // SAFETY: the packets have the bytes.
    unsafe {
        let first = _mm512_castsi128_si512(_mm_loadu_si128(pointers[FIRST].add(offset).cast()));
        let second = _mm512_inserti32x4::<1>(first, _mm_loadu_si128(pointers[FIRST + 4].add(offset).cast()));
        let third = _mm512_inserti32x4::<2>(second, _mm_loadu_si128(pointers[FIRST + 8].add(offset).cast()));
        _mm512_inserti32x4::<3>(third, _mm_loadu_si128(pointers[FIRST + 12].add(offset).cast()))
    }
}

impl Tree {
    /// What the tree says of up to [`MOST`] packets: entries, `NOBODY` or [`UNKNOWN`].
    ///
    /// # Safety
    /// The processor has the vectors: `self.wide`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    pub(super) unsafe fn find_many(&self, packets: &[Packet<'_>], found: &mut [u32; MOST]) {
        let packets = &packets[..packets.len().min(MOST)];
        let mut numbers = Numbers([[[0; LANES]; NUMBERS]; GROUPS]);
        let mut pointers = [[std::ptr::null::<u8>(); LANES]; GROUPS];
        let mut known = [0_u16; GROUPS];
        for (group, packets) in packets.chunks(LANES).enumerate() {
            // The last may be fewer.
            let some = packets.first_chunk::<LANES>();
            let filled = some.is_none().then(|| {
                let mut filled = [Packet::new(&[]); LANES];
                filled[..packets.len()].copy_from_slice(packets);
                filled
            });
            let Some(packets) = some.or(filled.as_ref()) else { break };
            // SAFETY: the processor has the vectors.
            known[group] = unsafe { self.known(packets, &mut pointers[group]) };
            if known[group] != 0 {
                // SAFETY: 1. The processor has the vectors. 2. All pointers are to packets that are long enough.
                unsafe { self.load(&pointers[group], &mut numbers.0[group]) };
            }
        }
        // SAFETY: 1. The processor has the vectors. 2. Pointers of groups with a known packet are to packets that are long
        // enough, and known packets have lists.
        unsafe {
            let lists = self.walk(&numbers, known);
            let compare = match self.windows.len() {
                0 | 1 => Tree::compare::<1>,
                _ => Tree::compare::<MOST_WINDOWS>,
            };
            compare(self, &pointers, lists, known, found);
        }
    }

    /// Which packets of a group the tree is for, by bits; and their pointers, in the places of others that of one of them.
    ///
    /// # Safety
    /// The processor has the vectors.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    unsafe fn known(&self, packets: &[Packet<'_>; LANES], pointers: &mut [*const u8; LANES]) -> u16 {
        // SAFETY: a packet is two words, pointer and lengths; four are loaded at a time.
        let (a, b, c, d) = unsafe {
            let at = |first: usize| packets.as_ptr().add(first).cast();
            (
                _mm512_loadu_si512(at(0)),
                _mm512_loadu_si512(at(4)),
                _mm512_loadu_si512(at(8)),
                _mm512_loadu_si512(at(12)),
            )
        };
        let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        let (low, high) = (_mm512_permutex2var_epi64(a, even, b), _mm512_permutex2var_epi64(c, even, d));
        let (low_length, high_length) = (_mm512_permutex2var_epi64(a, odd, b), _mm512_permutex2var_epi64(c, odd, d));
        let (lengths, need) = (_mm512_set1_epi64(u32::MAX.into()), _mm512_set1_epi64(self.need.into()));
        let mut in_low = _mm512_cmpge_epu64_mask(_mm512_and_si512(low_length, lengths), need);
        let mut in_high = _mm512_cmpge_epu64_mask(_mm512_and_si512(high_length, lengths), need);
        let nothing = _mm512_setzero_si512();
        for constant in &self.constants {
            let (mask, value) = (_mm512_set1_epi64(constant.mask as i64), _mm512_set1_epi64(constant.value as i64));
            let offset = std::ptr::without_provenance(constant.offset as usize);
            // SAFETY: words are gathered of packets only that have `need` bytes, in which all constants are.
            let (words, more) = unsafe {
                let words = _mm512_mask_i64gather_epi64::<1>(nothing, in_low, low, offset);
                (words, _mm512_mask_i64gather_epi64::<1>(nothing, in_high, high, offset))
            };
            in_low = _mm512_mask_cmpeq_epi64_mask(in_low, _mm512_and_si512(words, mask), value);
            in_high = _mm512_mask_cmpeq_epi64_mask(in_high, _mm512_and_si512(more, mask), value);
        }
        let known = u16::from(in_low) | u16::from(in_high) << 8;
        let stand_in = _mm512_set1_epi64(packets[known.trailing_zeros() as usize % LANES].data as i64);
        // SAFETY: there are sixteen pointers.
        unsafe {
            let place: *mut i64 = pointers.as_mut_ptr().cast();
            _mm512_storeu_epi64(place, _mm512_mask_mov_epi64(stand_in, in_low, low));
            _mm512_storeu_epi64(place.add(8), _mm512_mask_mov_epi64(stand_in, in_high, high));
        }
        known
    }

    /// The numbers of sixteen packets.
    ///
    /// # Safety
    /// 1. The processor has the vectors. 2. The pointers are to packets that are long enough.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn load(&self, pointers: &[*const u8; LANES], numbers: &mut [[u32; LANES]; NUMBERS]) {
        let mut words = [_mm512_setzero_si512(); 12];
        for (window, words) in self.windows.iter().zip(words.chunks_exact_mut(4)) {
            let offset = window.offset as usize;
            // SAFETY: 1. The processor has the vectors. 2. Windows are in the packets. 3. The array has sixteen bytes.
            let (pack, a, b, c, d) = unsafe {
                let pack = _mm512_broadcast_i32x4(_mm_loadu_si128(window.pack.as_ptr().cast()));
                let (a, b) = (quarter::<0>(pointers, offset), quarter::<1>(pointers, offset));
                (pack, a, b, quarter::<2>(pointers, offset), quarter::<3>(pointers, offset))
            };
            let (a, b) = (_mm512_shuffle_epi8(a, pack), _mm512_shuffle_epi8(b, pack));
            let (c, d) = (_mm512_shuffle_epi8(c, pack), _mm512_shuffle_epi8(d, pack));
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

    /// Where the lists of packets with these numbers begin.
    ///
    /// # Safety
    /// The processor has the vectors.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    unsafe fn walk(&self, numbers: &Numbers, known: [u16; GROUPS]) -> [__m512i; GROUPS] {
        let root = _mm512_set1_epi32(self.cuts.root as i32);
        let [mut a, mut b, mut c, mut d] = [root; GROUPS];
        let leaf = _mm512_set1_epi32(LEAF as i32);
        let (mut in_a, mut in_b) = (inner(a, known[0]), inner(b, known[1]));
        let (mut in_c, mut in_d) = (inner(c, known[2]), inner(d, known[3]));
        // SAFETY: lanes that are followed are at nodes.
        unsafe {
            while in_a | in_b | in_c | in_d != 0 {
                if in_a != 0 {
                    a = self.step(a, in_a, &numbers.0[0]);
                }
                if in_b != 0 {
                    b = self.step(b, in_b, &numbers.0[1]);
                }
                if in_c != 0 {
                    c = self.step(c, in_c, &numbers.0[2]);
                }
                if in_d != 0 {
                    d = self.step(d, in_d, &numbers.0[3]);
                }
                (in_a, in_b) = (inner(a, in_a), inner(b, in_b));
                (in_c, in_d) = (inner(c, in_c), inner(d, in_d));
            }
        }
        let list = |word| _mm512_andnot_si512(leaf, word);
        [list(a), list(b), list(c), list(d)]
    }

    /// The words of the children that packets of a group go to.
    ///
    /// # Safety
    /// 1. The processor has the vectors. 2. The words of active lanes are nodes.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    #[inline]
    unsafe fn step(&self, word: __m512i, active: u16, numbers: &[[u32; LANES]; NUMBERS]) -> __m512i {
        let which = _mm512_srli_epi32::<28>(word);
        // SAFETY: sixteen words are loaded.
        let mut number = unsafe { _mm512_load_si512(numbers[0].as_ptr().cast()) };
        let mut at = 1;
        // A loop of iterators is not inlined here.
        while at < self.slots.len() {
            let own = _mm512_cmpeq_epi32_mask(which, _mm512_set1_epi32(at as i32));
            // SAFETY: sixteen words are loaded; there are not more slots than numbers.
            number = unsafe { _mm512_mask_load_epi32(number, own, numbers.get_unchecked(at).as_ptr().cast()) };
            at += 1;
        }
        let shift = _mm512_and_si512(_mm512_srli_epi32::<23>(word), _mm512_set1_epi32(31));
        let bits = _mm512_and_si512(_mm512_srli_epi32::<FIRST_BITS>(word), _mm512_set1_epi32(15));
        // One more bit than these.
        let rest = _mm512_sllv_epi32(_mm512_set1_epi32(-2), bits);
        let child = _mm512_andnot_si512(rest, _mm512_srlv_epi32(number, shift));
        let first = _mm512_and_si512(word, _mm512_set1_epi32((1 << FIRST_BITS) - 1));
        let at = _mm512_add_epi32(_mm512_slli_epi32::<{ UNIT.trailing_zeros() }>(first), child);
        // SAFETY: a node has a child for each value of its bits.
        unsafe { _mm512_mask_i32gather_epi32::<4>(word, active, at, self.cuts.nodes.as_ptr().cast()) }
    }

    /// Compares packets with the boxes of their lists, one box of each in a round, until each has one or is at the end.
    ///
    /// # Safety
    /// 1. The processor has the vectors. 2. Known packets have lists, and groups with some have pointers.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl")]
    unsafe fn compare<const WINDOWS: usize>(
        &self,
        pointers: &[[*const u8; LANES]; GROUPS],
        lists: [__m512i; GROUPS],
        known: [u16; GROUPS],
        found: &mut [u32; MOST],
    ) {
        // Words of numbers under their masks; the second of each is complemented.
        let (mut masks, mut turned) = (Record([0; 2 * NUMBERS]), Record([0; 2 * NUMBERS]));
        for (at, slot) in self.slots.iter().enumerate() {
            (masks.0[2 * at], masks.0[2 * at + 1], turned.0[2 * at + 1]) = (slot.mask, slot.mask, u32::MAX);
        }
        let mut spreads = [_mm512_set1_epi8(-128); WINDOWS];
        let mut offsets = [0; WINDOWS];
        for ((window, spread), offset) in self.windows.iter().zip(&mut spreads).zip(&mut offsets) {
            *offset = window.offset as usize;
            // SAFETY: there are as many bytes as are loaded.
            *spread = unsafe { _mm512_loadu_si512(window.spread.as_ptr().cast()) };
        }
        // SAFETY: records have sixteen words.
        let (masks, turned) =
            unsafe { (_mm512_load_si512(masks.0.as_ptr().cast()), _mm512_load_si512(turned.0.as_ptr().cast())) };
        let (items, records, entries) = (self.cuts.lists.as_ptr(), self.records.as_ptr(), self.entries.as_ptr());
        let nobody = self.records.len() - 1;
        let pointers = pointers.as_flattened();
        let mut places = Places([0; MOST]);
        for (group, list) in lists.into_iter().enumerate() {
            // SAFETY: there are sixteen words for each group.
            unsafe { _mm512_store_si512(places.0.as_mut_ptr().add(LANES * group).cast(), list) };
        }
        found.fill(UNKNOWN);
        let mut waiting = known.iter().rev().fold(0_u64, |all, own| all << LANES | u64::from(*own));
        let mut round = 0;
        // All groups in one loop, so that the processor guesses its end once a round.
        while waiting != 0 {
            let mut again = 0_u64;
            let mut rest = waiting;
            while rest != 0 {
                let lane = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                // SAFETY: 1. A lane is below 64. 2. A list goes on until its last box; boxes have records of sixteen words and
                // entries, and so has nobody. 3. Windows are inside of packets that are long enough; where there are fewer,
                // the first bytes are loaded and nothing is picked.
                unsafe {
                    let own = *items.add(*places.0.get_unchecked(lane) as usize + round);
                    let number = (own & !LAST) as usize;
                    let pointer = *pointers.get_unchecked(lane);
                    let mut words = _mm512_setzero_si512();
                    for at in 0..WINDOWS {
                        let bytes = _mm_loadu_si128(pointer.add(*offsets.get_unchecked(at)).cast());
                        let own = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), *spreads.get_unchecked(at));
                        words = _mm512_or_si512(words, own);
                    }
                    let words = _mm512_xor_si512(_mm512_and_si512(words, masks), turned);
                    let below = _mm512_cmplt_epu32_mask(words, _mm512_load_si512(records.add(number).cast()));
                    // A load in any case, so that there is no branch to guess.
                    *found.get_unchecked_mut(lane) = *entries.add(if below == 0 { number } else { nobody });
                    again |= u64::from((below != 0) & (own & LAST == 0)) << lane;
                }
            }
            waiting = again;
            round += 1;
        }
    }
}

/// The lanes of some that are at nodes.
#[target_feature(enable = "avx512f,avx512bw,avx512vl")]
#[inline]
fn inner(word: __m512i, lanes: u16) -> u16 {
    _mm512_mask_testn_epi32_mask(lanes, word, _mm512_set1_epi32(LEAF as i32))
}
