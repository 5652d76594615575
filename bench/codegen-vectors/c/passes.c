/* The passes as a C programmer integrates them by hand: one loop, every step in it. The Internet checksum adds up
   16-bit words; the caller folds. */
#include <stdint.h>
#include <string.h>
#include <immintrin.h>

struct sums { uint64_t checksum, crc; };

void copy_checksum(void *restrict to, const void *restrict from, uint64_t bytes, struct sums *sums) {
    const uint32_t *s = from;
    uint32_t *d = to;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes / 4; i++) {
        sum += s[i];
        d[i] = s[i];
    }
    sums->checksum = sum;
}

void copy_checksum_swap(void *restrict to, const void *restrict from, uint64_t bytes, struct sums *sums) {
    const uint32_t *s = from;
    uint32_t *d = to;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes / 4; i++) {
        sum += s[i];
        d[i] = __builtin_bswap32(s[i]);
    }
    sums->checksum = sum;
}

void copy_checksum_swap_xor(void *restrict to, const void *restrict from, uint64_t bytes, struct sums *sums) {
    const uint32_t *s = from;
    uint32_t *d = to;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < bytes / 4; i++) {
        sum += s[i];
        d[i] = __builtin_bswap32(s[i]) ^ 0x5a17c3e9u;
    }
    sums->checksum = sum;
}

/* With the CRC no compiler vectorises the loop: the instruction has no vector form. */
void copy_checksum_swap_xor_crc(void *restrict to, const void *restrict from, uint64_t bytes, struct sums *sums) {
    uint64_t sum = 0, crc = 0xffffffff;
    for (uint64_t i = 0; i < bytes / 64; i++) {
        const uint32_t *s = (const uint32_t *)((const char *)from + 64 * i);
        uint32_t *d = (uint32_t *)((char *)to + 64 * i);
        for (int k = 0; k < 8; k++) {
            uint64_t word;
            memcpy(&word, s + 2 * k, 8);
            crc = _mm_crc32_u64(crc, word);
        }
        for (int k = 0; k < 16; k++) {
            sum += s[k];
            d[k] = __builtin_bswap32(s[k]) ^ 0x5a17c3e9u;
        }
    }
    sums->checksum = sum;
    sums->crc = crc;
}
