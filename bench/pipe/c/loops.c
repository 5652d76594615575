/* The loops a programmer writes: one pass for each step, or one pass for all ("integrated"). The checksum is in two
   forms, of which the compiler makes different code; a comparison takes the quicker one. Bytes are a multiple of 4. */
#include <stddef.h>
#include <stdint.h>

static uint16_t fold(uint64_t sum) {
    while (sum >> 16) sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

uint16_t NAME(copy_sum_words)(uint32_t *restrict to, const uint32_t *restrict from, size_t bytes) {
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes / 4; i++) {
        uint32_t word = from[i];
        sum += word;
        to[i] = word;
    }
    return fold(sum);
}

uint16_t NAME(copy_sum_halves)(uint16_t *restrict to, const uint16_t *restrict from, size_t bytes) {
    /* 32 bits hold the sum of 65,536 halves. */
    uint64_t sum = 0;
    for (size_t start = 0; start < bytes / 2; start += 65536) {
        size_t end = bytes / 2 - start < 65536 ? bytes / 2 : start + 65536;
        uint32_t part = 0;
        for (size_t i = start; i < end; i++) {
            uint16_t half = from[i];
            part += half;
            to[i] = half;
        }
        sum += part;
    }
    return fold(sum);
}

uint16_t NAME(copy_sum_swap_words)(uint32_t *restrict to, const uint32_t *restrict from, size_t bytes) {
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes / 4; i++) {
        uint32_t word = from[i];
        sum += word;
        to[i] = __builtin_bswap32(word);
    }
    return fold(sum);
}

uint16_t NAME(copy_sum_swap_halves)(uint32_t *restrict to, const uint32_t *restrict from, size_t bytes) {
    uint64_t sum = 0;
    for (size_t start = 0; start < bytes / 4; start += 32768) {
        size_t end = bytes / 4 - start < 32768 ? bytes / 4 : start + 32768;
        uint32_t part = 0;
        for (size_t i = start; i < end; i++) {
            uint32_t word = from[i];
            part += (word & 0xffff) + (word >> 16);
            to[i] = __builtin_bswap32(word);
        }
        sum += part;
    }
    return fold(sum);
}

uint16_t NAME(sum_words)(const uint32_t *from, size_t bytes) {
    uint64_t sum = 0;
    for (size_t i = 0; i < bytes / 4; i++) sum += from[i];
    return fold(sum);
}

void NAME(swap)(uint32_t *data, size_t bytes) {
    for (size_t i = 0; i < bytes / 4; i++) data[i] = __builtin_bswap32(data[i]);
}

void NAME(copy)(uint32_t *restrict to, const uint32_t *restrict from, size_t bytes) {
    for (size_t i = 0; i < bytes / 4; i++) to[i] = from[i];
}
