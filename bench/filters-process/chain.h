/* What every push-style chain has: the data, the table, the measurement. A program that includes it defines `run`. */
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LENGTH = 10000, SIZE = 65536 };
static const uint8_t KEY[8] = {0x1f, 0x2e, 0x3d, 0x4c, 0x5b, 0x6a, 0x79, 0x88};
static uint32_t table[256];
static uint8_t input[LENGTH], written[SIZE];
static uint32_t run(uint32_t times);

static inline void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t rest = i;
        for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >> 1) ^ 0xedb88320u : rest >> 1;
        table[i] = rest;
    }
}

int main(int argc, char **argv)
{
    const int times = argc > 1 ? atoi(argv[1]) : 1;
    uint32_t random = 1, hash = 2166136261u, length = 0, count;
    uint8_t last = 0;
    struct timespec start, end;
    while (length < LENGTH) {
        random = random * 1664525u + 1013904223u;
        const uint8_t byte = (uint8_t)(1 + (random >> 24) % 15);
        if (byte != last) input[length++] = last = byte;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    count = run((uint32_t)times);
    clock_gettime(CLOCK_MONOTONIC, &end);
    for (uint32_t i = 0; i < SIZE; i++) hash = (hash ^ written[i]) * 16777619u;
    printf("%.3f\n%u %08x\n",
           ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / ((double)times * LENGTH),
           (unsigned)count, (unsigned)hash);
    return 0;
}
