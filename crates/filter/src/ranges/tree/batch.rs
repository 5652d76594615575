//! Batch classification by a tree of cuts: vectors of 512 bits where several packets or boxes are compared, scalar code
//! for table look-ups. Each phase processes all packets before the next phase, and the first three have no
//! data-dependent branch, so that the processor overlaps the packets. One instruction compares a packet with two boxes;
//! a packet that needs more than two boxes takes part in the next round. Knows no filter that was removed.
//!
//! ```text
//! load     sixteen packets ──> numbers, and the indices of the root    transposed in vectors
//! enter    root's tables ──> word of a cell; a leaf's first two boxes
//! compare  packet | first two boxes ──> box or none
//! walk     packets whose word is a node, level by level, to leaves
//! rounds   those packets, and others whose list continues, two boxes per round
//! ```

use super::super::cuts::{FIRST_BITS, LAST, LEAF, UNIT};
use super::super::region::NUMBERS;
use super::super::root::{Factor, MAX_FACTORS};
use super::{BoxRecord, MAX_WINDOWS, RECORD, Tree, VectorWindow};
use crate::packet::Packet;
use std::arch::x86_64::*;
use std::mem::MaybeUninit;

/// Packets of a vector.
const LANES: usize = 16;
/// Vectors per batch.
const GROUPS: usize = 4;
/// Packets that are processed together.
pub(in crate::ranges) const MAX_PACKETS: usize = LANES * GROUPS;

/// What a tree has for vectors.
#[derive(Debug)]
pub(super) struct Vectors {
    windows: Vec<VectorWindow>,
    /// By word of a record: its mask.
    masks: [u16; RECORD],
    /// Whether the processor has the vectors.
    wide: bool,
}

impl Vectors {
    pub(super) fn new(windows: Vec<VectorWindow>, masks: [u16; RECORD]) -> Vectors {
        let wide = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        Vectors { windows, masks, wide }
    }

    /// The tree that has these vectors, if the processor has them too.
    #[inline]
    pub(super) fn batch<'t>(&self, tree: &'t Tree) -> Option<Batch<'t>> {
        self.wide.then_some(Batch(tree))
    }
}

/// A tree on a processor that has the vectors.
pub(in crate::ranges) struct Batch<'t>(&'t Tree);

impl Batch<'_> {
    /// Finds the boxes of up to [`MAX_PACKETS`] packets, or the number behind all boxes. Returns the bit mask of the
    /// eligible packets: those with the lengths and headers that the tree assumes.
    #[inline]
    pub(in crate::ranges) fn find_many(&self, packets: &[Packet<'_>], found: &mut [u32; MAX_PACKETS]) -> u64 {
        // SAFETY: `Vectors::batch` has checked that the processor has the vectors.
        unsafe { self.0.find_many(packets, found) }
    }

    /// The entry of a box, or [`NO_FILTER`](super::NO_FILTER).
    #[inline]
    pub(in crate::ranges) fn entry(&self, number: u32) -> u32 {
        self.0.entries[number as usize]
    }
}

/// The state of the packets, structure of arrays. Groups without an eligible packet are uninitialised.
#[repr(C, align(64))]
struct Lanes {
    /// Pointers to packets that have all the bytes that the tree reads; for a packet that is too short, the pointer of
    /// another one of its group.
    pointers: [MaybeUninit<*const u8>; MAX_PACKETS],
    /// By number.
    numbers: [[MaybeUninit<u32>; MAX_PACKETS]; NUMBERS],
    /// By factor of the root: the bits that it reads.
    tops: [[MaybeUninit<u32>; MAX_PACKETS]; MAX_FACTORS],
    /// Words of cells, nodes and leaves.
    words: [MaybeUninit<u32>; MAX_PACKETS],
    /// The first two items of the list, if the word of the cell was a leaf.
    pairs: [MaybeUninit<u64>; MAX_PACKETS],
    /// Bit masks of the eligible packets, by group.
    known: [u16; GROUPS],
}

/// Sixteen bytes each of packets `FIRST`, and the fourth, eighth and twelfth after it. Pointers are `STRIDE` words
/// apart.
///
/// # Safety
/// 1. The processor has the vectors. 2. The packets have the bytes.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
unsafe fn quarter<const FIRST: usize, const STRIDE: usize>(pointers: *const *const u8, offset: usize) -> __m512i {
    // SAFETY: the packets have the bytes.
    unsafe {
        let bytes = |at: usize| (*pointers.add(STRIDE * at)).add(offset).cast();
        let first = _mm512_castsi128_si512(_mm_loadu_si128(bytes(FIRST)));
        let second = _mm512_inserti32x4::<1>(first, _mm_loadu_si128(bytes(FIRST + 4)));
        let third = _mm512_inserti32x4::<2>(second, _mm_loadu_si128(bytes(FIRST + 8)));
        _mm512_inserti32x4::<3>(third, _mm_loadu_si128(bytes(FIRST + 12)))
    }
}

impl Tree {
    /// See [`Batch::find_many`].
    ///
    /// # Safety
    /// The processor has the vectors: `self.vectors.wide`.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    unsafe fn find_many(&self, packets: &[Packet<'_>], found: &mut [u32; MAX_PACKETS]) -> u64 {
        let packets = &packets[..packets.len().min(MAX_PACKETS)];
        let mut all = MaybeUninit::<Lanes>::uninit();
        // SAFETY: 1. The processor has the vectors. 2. All that has to be initialized is `known`. 3. There are as many
        // windows, factors and halves as is said.
        unsafe {
            (&raw mut (*all.as_mut_ptr()).known).write([0; GROUPS]);
            let all = all.assume_init_mut();
            match self.vectors.windows.len() {
                0 | 1 => self.load_all::<1>(packets, all),
                _ => self.load_all::<MAX_WINDOWS>(packets, all),
            }
            let known = all.known.iter().rev().fold(0_u64, |all, own| all << LANES | u64::from(*own));
            match self.cuts.root.factors.len() {
                0 => self.enter::<0>(all),
                1 => self.enter::<1>(all),
                2 => self.enter::<2>(all),
                3 => self.enter::<3>(all),
                _ => self.enter::<MAX_FACTORS>(all),
            }
            match (self.vectors.windows.len(), self.halves) {
                (0 | 1, 1) => self.compare_all::<1, 1>(all, known, found),
                (0 | 1, _) => self.compare_all::<1, 2>(all, known, found),
                (_, 1) => self.compare_all::<MAX_WINDOWS, 1>(all, known, found),
                (_, _) => self.compare_all::<MAX_WINDOWS, 2>(all, known, found),
            }
            known
        }
    }

    /// Fills in pointers, numbers and indices of the root, for eligible packets.
    ///
    /// # Safety
    /// 1. The processor has the vectors. 2. There are not more windows. 3. There are at most [`MAX_PACKETS`] packets.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    unsafe fn load_all<const WINDOWS: usize>(&self, packets: &[Packet<'_>], all: &mut Lanes) {
        for (group, packets) in packets.chunks(LANES).enumerate() {
            let first = LANES * group;
            let pointers: *mut *const u8 = all.pointers[first..].as_mut_ptr().cast();
            // SAFETY: 1. The processor has the vectors. 2. All pointers are to packets that are long enough.
            unsafe {
                if let Some(packets) = packets.first_chunk::<LANES>()
                    && self.all_known(packets)
                {
                    all.known[group] = u16::MAX;
                    store_pointers(packets, pointers);
                    self.load::<WINDOWS, 2>(packets.as_ptr().cast(), first, all);
                    continue;
                }
                // The last may be fewer.
                let mut filled = [Packet::new(&[]); LANES];
                filled[..packets.len()].copy_from_slice(packets);
                all.known[group] = self.known(&filled, pointers);
                if all.known[group] != 0 {
                    self.load::<WINDOWS, 1>(pointers, first, all);
                }
            }
        }
    }

    /// Whether all of sixteen packets are eligible.
    ///
    /// # Safety
    /// The processor has the vectors.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    #[inline]
    unsafe fn all_known(&self, packets: &[Packet<'_>; LANES]) -> bool {
        let need = _mm512_set1_epi32(self.need as i32);
        let mut short = 0;
        for four in packets.chunks_exact(4) {
            // SAFETY: four packets are as many bytes as a vector has.
            let four = unsafe { _mm512_loadu_si512(four.as_ptr().cast()) };
            // The third word of each is the length.
            short |= _mm512_mask_cmplt_epu32_mask(0x4444, four, need);
        }
        if short != 0 {
            return false;
        }
        let mut differ = 0;
        for constant in &self.constants {
            let mut own = 0;
            for packet in packets {
                // SAFETY: the packet has `need` bytes, in which all constants are.
                let word = unsafe { packet.data.add(constant.offset as usize).cast::<u64>().read_unaligned() };
                own |= word ^ constant.value;
            }
            differ |= own & constant.mask;
        }
        differ == 0
    }

    /// The bit mask of the eligible packets of a group, and their pointers; an ineligible packet gets the pointer of an
    /// eligible one.
    ///
    /// # Safety
    /// 1. The processor has the vectors. 2. There is room for sixteen pointers.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    unsafe fn known(&self, packets: &[Packet<'_>; LANES], pointers: *mut *const u8) -> u16 {
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
        // SAFETY: there is room for sixteen pointers.
        unsafe {
            _mm512_storeu_epi64(pointers.cast(), _mm512_mask_mov_epi64(stand_in, in_low, low));
            _mm512_storeu_epi64(pointers.add(8).cast(), _mm512_mask_mov_epi64(stand_in, in_high, high));
        }
        known
    }

    /// The numbers of sixteen packets, and the indices of the root. Pointers are `STRIDE` words apart.
    ///
    /// # Safety
    /// 1. The processor has the vectors. 2. The pointers are to packets that are long enough. 3. There are not more
    ///    windows.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    #[inline]
    unsafe fn load<const WINDOWS: usize, const STRIDE: usize>(
        &self,
        pointers: *const *const u8,
        first: usize,
        all: &mut Lanes,
    ) {
        let mut words = [[_mm512_setzero_si512(); 4]; WINDOWS];
        for (window, words) in self.vectors.windows.iter().zip(&mut words) {
            let offset = window.offset as usize;
            // SAFETY: 1. The processor has the vectors. 2. Windows are in the packets. 3. The array has sixteen bytes.
            let (pack, a, b, c, d) = unsafe {
                let pack = _mm512_broadcast_i32x4(_mm_loadu_si128(window.pack.as_ptr().cast()));
                let (a, b) = (quarter::<0, STRIDE>(pointers, offset), quarter::<1, STRIDE>(pointers, offset));
                (pack, a, b, quarter::<2, STRIDE>(pointers, offset), quarter::<3, STRIDE>(pointers, offset))
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
        let words = words.as_flattened();
        for (location, place) in self.locations.iter().zip(&mut all.numbers) {
            let shifted = _mm512_srl_epi32(words[location.word as usize], _mm_cvtsi32_si128(location.shift as i32));
            let number = _mm512_and_si512(shifted, _mm512_set1_epi32(location.mask as i32));
            // SAFETY: there are sixteen words from the first.
            unsafe { _mm512_store_si512(place.as_mut_ptr().add(first).cast(), number) };
        }
        for (factor, place) in self.cuts.root.factors.iter().zip(&mut all.tops) {
            // SAFETY: the number has been stored.
            unsafe {
                let number = _mm512_load_si512(all.numbers[factor.number].as_ptr().add(first).cast());
                let top = _mm512_srl_epi32(number, _mm_cvtsi32_si128(factor.shift as i32));
                _mm512_store_si512(place.as_mut_ptr().add(first).cast(), top);
            }
        }
    }

    /// The words of the root's cells, and the first two boxes of leaves.
    ///
    /// # Safety
    /// 1. Groups with known packets have been loaded. 2. There are as many factors, or more.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    unsafe fn enter<const FACTORS: usize>(&self, all: &mut Lanes) {
        let root = &self.cuts.root;
        let Some(factors): Option<&[Factor; FACTORS]> = root.factors.first_chunk() else { return };
        let mut sums = [std::ptr::null(); FACTORS];
        for (sums, factor) in sums.iter_mut().zip(factors) {
            *sums = factor.sums.as_ptr();
        }
        let (cells, lists) = (root.cells.as_ptr(), self.cuts.lists.as_ptr());
        for group in 0..GROUPS {
            if all.known[group] == 0 {
                continue;
            }
            for lane in LANES * group..LANES * (group + 1) {
                // SAFETY: 1. Numbers are not larger than their masks, so their tops are in the tables, and sums are
                // places of cells. 2. Lists are of pairs. Where the word is a node the first pair of all is taken.
                unsafe {
                    let mut place = 0;
                    for (sums, tops) in sums.iter().zip(&all.tops) {
                        place += usize::from(*sums.add(tops.get_unchecked(lane).assume_init() as usize));
                    }
                    let word = *cells.add(place);
                    let list = word & (word as i32 >> 31) as u32 & !LEAF;
                    all.words.get_unchecked_mut(lane).write(word);
                    all.pairs.get_unchecked_mut(lane).write(lists.add(list as usize).cast::<u64>().read_unaligned());
                }
            }
        }
    }

    /// Compares packets with boxes until each has a match or its list ends.
    ///
    /// # Safety
    /// 1. The processor has the vectors. 2. `known` says which packets are known, and their groups have been loaded and
    ///    entered. 3. There are as many halves, and not more windows.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    unsafe fn compare_all<const WINDOWS: usize, const HALVES: usize>(
        &self,
        all: &mut Lanes,
        known: u64,
        found: &mut [u32; MAX_PACKETS],
    ) {
        let compare = Comparison::<WINDOWS, HALVES>::new(self);
        let (mut missed, mut last, mut inner) = (0_u64, 0_u64, 0_u64);
        for group in (0..GROUPS).rev().filter(|group| all.known[*group] != 0) {
            let first = LANES * group;
            for lane in first..first + LANES {
                // SAFETY: 1. The group has been loaded and entered. 2. Lists are of boxes.
                unsafe {
                    let pointer = all.pointers.get_unchecked(lane).assume_init();
                    let pair = all.pairs.get_unchecked(lane).assume_init();
                    *found.get_unchecked_mut(lane) = compare.pair(pointer, pair);
                }
            }
            // SAFETY: the group has sixteen pairs and words.
            let (low, high, words) = unsafe {
                let pairs = all.pairs.as_ptr().add(first);
                let words = all.words.as_ptr().add(first);
                (
                    _mm512_load_si512(pairs.cast()),
                    _mm512_load_si512(pairs.add(8).cast()),
                    _mm512_load_si512(words.cast()),
                )
            };
            let ends = u16::from(_mm512_movepi64_mask(low)) | u16::from(_mm512_movepi64_mask(high)) << 8;
            last |= u64::from(ends) << first;
            inner |= u64::from(!_mm512_movepi32_mask(words)) << first;
        }
        for group in 0..GROUPS {
            // SAFETY: there are sixteen words for each group.
            let own = unsafe { _mm512_loadu_si512(found.as_ptr().add(LANES * group).cast()) };
            let no_box = _mm512_set1_epi32(compare.no_box as i32);
            missed |= u64::from(_mm512_cmpeq_epi32_mask(own, no_box)) << (LANES * group);
        }
        inner &= known;
        // SAFETY: 1. The processor has the vectors. 2. These are known, and their words are nodes.
        unsafe { self.walk(all, inner) };
        let again = missed & !last & known & !inner;
        let mut rest = again;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            // SAFETY: the packet's group was entered.
            unsafe { *all.words.get_unchecked_mut(lane).assume_init_mut() += 2 };
        }
        let lists = self.cuts.lists.as_ptr();
        let mut waiting = inner | again;
        // All groups in one loop, so that its exit branch is mispredicted once per round.
        while waiting != 0 {
            let mut rest = waiting;
            while rest != 0 {
                let lane = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                // SAFETY: 1. The packet's group was loaded and entered, and its word is a leaf. 2. A list goes on until
                // its last pair, of boxes.
                unsafe {
                    let word = all.words.get_unchecked_mut(lane).assume_init_mut();
                    let pair = lists.add((*word & !LEAF) as usize).cast::<u64>().read_unaligned();
                    *word += 2;
                    let own = compare.pair(all.pointers.get_unchecked(lane).assume_init(), pair);
                    *found.get_unchecked_mut(lane) = own;
                    let done = u64::from(own as usize != compare.no_box) | pair >> 63;
                    waiting &= !(done << lane);
                }
            }
        }
    }

    /// Walks packets from nodes to leaves.
    ///
    /// # Safety
    /// 1. The processor has the vectors. 2. The groups of these packets have been loaded and entered. 3. Their words
    ///    are nodes.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    #[inline]
    unsafe fn walk(&self, all: &mut Lanes, mut waiting: u64) {
        let numbers: *const u32 = all.numbers.as_ptr().cast();
        let nodes = self.cuts.nodes.as_ptr();
        while waiting != 0 {
            let mut rest = waiting;
            while rest != 0 {
                let lane = rest.trailing_zeros() as usize;
                rest &= rest - 1;
                // SAFETY: a node is of a number that there is, and has a child for each value of its bits.
                unsafe {
                    let word = all.words.get_unchecked_mut(lane).assume_init_mut();
                    let number = *numbers.add(MAX_PACKETS * (*word >> 28) as usize + lane);
                    let bits = (*word >> FIRST_BITS & 0xf) + 1;
                    let child = _bzhi_u32(number >> (*word >> 23 & 31), bits);
                    let first = (*word & ((1 << FIRST_BITS) - 1)) as usize * UNIT;
                    *word = *nodes.add(first + child as usize);
                    waiting &= !(u64::from(*word >> 31) << lane);
                }
            }
        }
    }
}

/// The pointers of sixteen packets.
///
/// # Safety
/// 1. The processor has the vectors. 2. There is room for them, in whole vectors.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
#[inline]
unsafe fn store_pointers(packets: &[Packet<'_>; LANES], pointers: *mut *const u8) {
    let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    for half in [0, 8] {
        // SAFETY: four packets are as many bytes as a vector has, and there is room for eight pointers.
        unsafe {
            let four = packets.as_ptr().add(half);
            let (low, high) = (_mm512_loadu_si512(four.cast()), _mm512_loadu_si512(four.add(4).cast()));
            let own = _mm512_permutex2var_epi64(low, even, high);
            _mm512_store_si512(pointers.add(half).cast(), own);
        }
    }
}

/// The comparison of packets with boxes.
///
/// ```text
/// HALVES 1   | lows of a | complements of highs of a | lows of b | complements of highs of b |     words 8, 8, 8, 8
/// HALVES 2   | lows of a                 | complements of highs of a                         |     words 16, 16
/// ```
struct Comparison<const WINDOWS: usize, const HALVES: usize> {
    /// Words of numbers under their masks; some are complemented.
    masks: __m512i,
    turned: __m512i,
    spreads: [__m512i; WINDOWS],
    offsets: [usize; WINDOWS],
    records: *const BoxRecord,
    no_box: usize,
}

impl<const WINDOWS: usize, const HALVES: usize> Comparison<WINDOWS, HALVES> {
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    #[inline]
    fn new(tree: &Tree) -> Comparison<WINDOWS, HALVES> {
        let behind = RECORD / 2 * HALVES;
        let (mut masks, mut turned) = ([0_u16; 2 * RECORD], [0_u16; 2 * RECORD]);
        for (at, (mask, turned)) in masks.iter_mut().zip(&mut turned).enumerate() {
            *mask = tree.vectors.masks[at % behind];
            *turned = if at / behind % 2 == 1 { u16::MAX } else { 0 };
        }
        let mut spreads = [_mm512_set1_epi8(-128); WINDOWS];
        let mut offsets = [0; WINDOWS];
        for ((window, spread), offset) in tree.vectors.windows.iter().zip(&mut spreads).zip(&mut offsets) {
            *offset = window.offset as usize;
            // SAFETY: there are as many bytes as are loaded.
            *spread = unsafe {
                match HALVES {
                    1 => _mm512_broadcast_i32x4(_mm_loadu_si128(window.spread.as_ptr().cast())),
                    _ => _mm512_broadcast_i64x4(_mm256_loadu_si256(window.spread.as_ptr().cast())),
                }
            };
        }
        // SAFETY: there are 32 words of each.
        let (masks, turned) =
            unsafe { (_mm512_loadu_si512(masks.as_ptr().cast()), _mm512_loadu_si512(turned.as_ptr().cast())) };
        let no_box = tree.records.len() / HALVES - 1;
        Comparison { masks, turned, spreads, offsets, records: tree.records.as_ptr(), no_box }
    }

    /// The first of two boxes of a list that contains a packet, or `no_box`.
    ///
    /// # Safety
    /// 1. The processor has the vectors. 2. The packet is as long as the tree needs, and the items are of a list of it.
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,bmi1,bmi2")]
    #[inline]
    unsafe fn pair(&self, pointer: *const u8, pair: u64) -> u32 {
        let (a, b) = (pair as u32, (pair >> 32) as u32 & !LAST);
        // SAFETY: 1. Windows are inside of packets that are long enough; where there are fewer, the first bytes are
        // loaded and nothing is picked. 2. Boxes have records, and so has `no_box`.
        unsafe {
            let mut words = _mm512_setzero_si512();
            for at in 0..WINDOWS {
                let bytes = _mm_loadu_si128(pointer.add(self.offsets[at]).cast());
                let own = _mm512_shuffle_epi8(_mm512_broadcast_i32x4(bytes), self.spreads[at]);
                words = if at == 0 { own } else { _mm512_or_si512(words, own) };
            }
            let words = _mm512_xor_si512(_mm512_and_si512(words, self.masks), self.turned);
            let no_box = self.no_box as u32;
            if HALVES == 1 {
                let low = _mm512_castsi256_si512(_mm256_load_si256(self.records.add(a as usize).cast()));
                let high = _mm256_load_si256(self.records.add(b as usize).cast());
                let below = _mm512_cmplt_epu16_mask(words, _mm512_inserti64x4::<1>(low, high));
                let later = if below >> RECORD == 0 { b } else { no_box };
                return if below as u16 == 0 { a } else { later };
            }
            let below = |at: u32| {
                let record = _mm512_loadu_si512(self.records.add(HALVES * at as usize).cast());
                _mm512_cmplt_epu16_mask(words, record)
            };
            let later = if below(b) == 0 { b } else { no_box };
            if below(a) == 0 { a } else { later }
        }
    }
}
