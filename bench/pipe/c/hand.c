/* What a programmer writes by hand for a processor with AVX-512, and no compiler makes of the loops beside this: the limit
   for one pass over memory. Bytes are a multiple of 256. Without `restrict`, which would let the compiler move loads behind stores:
   those wait for each other, if their addresses differ by about a page. */
#include <stddef.h>
#include <stdint.h>

#ifdef __AVX512BW__
#include <immintrin.h>

int hand_is_there(void) { return 1; }

/* The sum of the words, and the sum of their higher halves, which tells what the first has lost. */
#define ADD(x) words = _mm512_add_epi64(words, x), high = _mm512_add_epi64(high, _mm512_srli_epi64(x, 32))
#define LOOP(CHANGE)                                                                                       \
    __m512i words = _mm512_setzero_si512(), high = words;                                                  \
    for (size_t at = 0; at < bytes; at += 256) {                                                           \
        __m512i a = _mm512_loadu_si512(from + at), b = _mm512_loadu_si512(from + at + 64);                 \
        __m512i c = _mm512_loadu_si512(from + at + 128), d = _mm512_loadu_si512(from + at + 192);          \
        ADD(a), ADD(b), ADD(c), ADD(d);                                                                    \
        _mm512_storeu_si512(to + at, CHANGE(a)), _mm512_storeu_si512(to + at + 64, CHANGE(b));             \
        _mm512_storeu_si512(to + at + 128, CHANGE(c)), _mm512_storeu_si512(to + at + 192, CHANGE(d));      \
    }                                                                                                      \
    return fold(words, high)

static uint16_t fold(__m512i words, __m512i high) {
    words = _mm512_sub_epi64(_mm512_add_epi64(words, high), _mm512_slli_epi64(high, 32));
    uint64_t sum = (uint64_t)_mm512_reduce_add_epi64(words);
    uint32_t half = (uint32_t)((sum + (sum >> 32 | sum << 32)) >> 32);
    return (uint16_t)((half + (half >> 16 | half << 16)) >> 16);
}

#define SAME(x) x
uint16_t hand_copy_sum(char *to, const char *from, size_t bytes) { LOOP(SAME); }

#define SWAPPED(x) _mm512_shuffle_epi8(x, order)
uint16_t hand_copy_sum_swap(char *to, const char *from, size_t bytes) {
    __m512i order = _mm512_broadcast_i32x4(_mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3));
    LOOP(SWAPPED);
}
#else
int hand_is_there(void) { return 0; }
uint16_t hand_copy_sum(char *to, const char *from, size_t bytes) { return (void)to, (void)from, (void)bytes, 0; }
uint16_t hand_copy_sum_swap(char *to, const char *from, size_t bytes) { return (void)to, (void)from, (void)bytes, 0; }
#endif
