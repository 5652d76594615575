/* The loop written by hand for a processor with AVX-512, which no compiler generates from the other loops: the limit
   for one pass over memory through the caches. Bytes are a multiple of 512, and at most 128 KiB are added up at a time.
   Without `restrict`, which would let the compiler move loads after stores: those wait for each other, if their
   addresses differ by about a page. */
#include <stddef.h>
#include <stdint.h>

#ifdef __AVX512BW__
#include <immintrin.h>

int hand_is_there(void) { return 1; }

#define EIGHT(DO) DO(0) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define LOAD(i) x[i] = _mm512_loadu_si512(from + 64 * i), words[i % 2] = _mm512_add_epi64(words[i % 2], x[i]);
#define STORE(i) _mm512_storeu_si512(to + 64 * i, CHANGE(x[i]));
#define STORE_LOAD(i) STORE(i) LOAD(i)
#define MEAN(a, b) _mm512_avg_epu16(a, b)

/* The sum of the words modulo 2^64, in `words`, and, in `high`, the sum of the highest sixteen bits of the mean of
   eight, which counts how often the words have wrapped. A mean may be too high by one and a half: that is undone at the
   end. */
#define HIGH                                                                                               \
    high = _mm512_add_epi64(high, _mm512_srli_epi64(MEAN(MEAN(MEAN(x[0], x[1]), MEAN(x[2], x[3])),         \
                                                         MEAN(MEAN(x[4], x[5]), MEAN(x[6], x[7]))), 45));

static uint64_t gather(const __m512i words[2], __m512i high) {
    high = _mm512_sub_epi64(high, _mm512_min_epu32(high, _mm512_set1_epi64(13 * 256)));
    __m512i sum = _mm512_add_epi64(_mm512_add_epi64(words[0], words[1]), high);
    return (uint64_t)_mm512_reduce_add_epi64(_mm512_sub_epi64(sum, _mm512_slli_epi64(high, 48)));
}

static uint16_t fold(uint64_t sum) {
    uint32_t half = (uint32_t)((sum + (sum >> 32 | sum << 32)) >> 32);
    return (uint16_t)((half + (half >> 16 | half << 16)) >> 16);
}

/* A block is stored after the next was loaded and added up, so that the sum is known before the last is stored. */
#define PIECE                                                                                              \
    __m512i x[8], words[2] = {_mm512_setzero_si512(), _mm512_setzero_si512()}, high = words[0];            \
    EIGHT(LOAD) HIGH                                                                                       \
    for (const char *end = from + bytes - 512; from < end; to += 512) {                                    \
        from += 512;                                                                                       \
        EIGHT(STORE_LOAD) HIGH                                                                             \
    }                                                                                                      \
    EIGHT(STORE)                                                                                           \
    return gather(words, high)

static inline uint64_t piece_sum(char *to, const char *from, size_t bytes) {
#define CHANGE(x) x
    PIECE;
#undef CHANGE
}

static inline uint64_t piece_sum_swap(char *to, const char *from, size_t bytes) {
    __m512i order = _mm512_broadcast_i32x4(_mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
#define CHANGE(x) _mm512_shuffle_epi8(x, order)
    PIECE;
#undef CHANGE
}

enum { MAX_BYTES = 1 << 17 };
#define ALL(PIECE_OF)                                                                                      \
    uint64_t sum = 0;                                                                                      \
    for (; bytes > MAX_BYTES; bytes -= MAX_BYTES, to += MAX_BYTES, from += MAX_BYTES) sum += fold(PIECE_OF(to, from, MAX_BYTES));   \
    return fold(sum + PIECE_OF(to, from, bytes))

uint16_t hand_copy_sum(char *to, const char *from, size_t bytes) { ALL(piece_sum); }
uint16_t hand_copy_sum_swap(char *to, const char *from, size_t bytes) { ALL(piece_sum_swap); }
#else
int hand_is_there(void) { return 0; }
uint16_t hand_copy_sum(char *to, const char *from, size_t bytes) { return (void)to, (void)from, (void)bytes, 0; }
uint16_t hand_copy_sum_swap(char *to, const char *from, size_t bytes) { return (void)to, (void)from, (void)bytes, 0; }
#endif
