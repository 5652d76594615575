/* The four programs as one loop each, by hand, with an end of stream that is a byte. What hand.c does, but that the
 * loops end where a filter would take a byte for the end: as it is read, where it counts a run, or as the cipher has
 * made it. Nothing is tested twice. Both ciphers are at the same place of the same key, too, so that the second one
 * undoes the first. Arguments: program, times. Prints nanoseconds per input byte, then the result. */
#define _POSIX_C_SOURCE 199309L
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { LENGTH = 10000, SIZE = 65536, END = 192 };
/* How many values the bytes of the input have, from 1 on: with more than 15 the end is among them. */
#ifndef VALUES
#define VALUES 15
#endif
static const uint8_t KEY[8] = {0x1f, 0x2e, 0x3d, 0x4c, 0x5b, 0x6a, 0x79, 0x88};
static uint32_t table[256];
static uint8_t input[LENGTH], written[SIZE];

static void make_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t rest = i;
        for (int bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >> 1) ^ 0xedb88320u : rest >> 1;
        table[i] = rest;
    }
}

#define CRC(byte) (crc = table[(crc ^ (byte)) & 0xff] ^ (crc >> 8))
#define PUT(byte) (written[count++ & (SIZE - 1)] = (uint8_t)(byte))

/* read -> evener -> swap -> crc32 -> write */
static uint32_t program1(const uint8_t *data, uint32_t length, uint32_t times)
{
    uint32_t crc = 0xffffffffu, count = 0, carry = 0;
    uint8_t first = 0;
    make_table();
    for (uint32_t round = 0; round < times; round++) {
        uint32_t i = 0;
        if (carry && length) {
            if (data[0] == END) goto end;
            CRC(data[0]), PUT(data[0]), CRC(first), PUT(first);
            i = 1, carry = 0;
        }
        for (; i + 1 < length; i += 2) {
            const uint8_t a = data[i], b = data[i + 1];
            if (a == END) goto end;
            if (b == END) {
                first = a, carry = 1;
                goto end;
            }
            CRC(b), PUT(b), CRC(a), PUT(a);
        }
        if (i < length) {
            if (data[i] == END) goto end;
            first = data[i], carry = 1;
        }
    }
end:
    if (carry) CRC(0), PUT(0), CRC(first), PUT(first);
    crc = ~crc;
    for (int i = 0; i < 4; i++) {
        const uint8_t byte = (uint8_t)(crc >> 8 * i);
        if (byte == END) break;
        PUT(byte);
    }
    return count;
}

/* read -> rle -> swap -> pes -> write */
static uint32_t program2(const uint8_t *data, uint32_t length, uint32_t times)
{
    uint32_t count = 0, at = 0;
    int run = 0, last = 0;
    for (uint32_t round = 0; round <= times; round++) {
        const uint32_t end = round < times ? length : 1;
        for (uint32_t i = 0; i < end; i++) {
            const int byte = round < times ? data[i] : END;
            if (run > 0 && (byte != last || run == 255)) {
                const int value = last ^ KEY[at], length_of_run = run ^ KEY[at + 1];
                if (run == END || value == END) return count;
                PUT(value);
                if (length_of_run == END) return count;
                PUT(length_of_run);
                at = (at + 2) & 7;
                run = 0;
            }
            if (byte == END) return count;
            last = byte;
            run++;
        }
    }
    return count;
}

/* read -> rle -> swap -> pes -> pes -> swap -> rld -> write */
static uint32_t program3(const uint8_t *data, uint32_t length, uint32_t times)
{
    uint32_t count = 0, at = 0;
    int run = 0, last = 0;
    for (uint32_t round = 0; round <= times; round++) {
        const uint32_t end = round < times ? length : 1;
        for (uint32_t i = 0; i < end; i++) {
            const int byte = round < times ? data[i] : END;
            if (run > 0 && (byte != last || run == 255)) {
                if (run == END || (last ^ KEY[at]) == END || (run ^ KEY[at + 1]) == END) return count;
                at = (at + 2) & 7;
                for (int copy = 0; copy < run; copy++) PUT(last);
                run = 0;
            }
            if (byte == END) return count;
            last = byte;
            run++;
        }
    }
    return count;
}

/* read -> crc32 -> swap -> pes -> pes -> swap -> rld -> write */
static uint32_t program4(const uint8_t *data, uint32_t length, uint32_t times)
{
    uint32_t crc = 0xffffffffu, count = 0, at = 0, carry = 0;
    uint8_t first = 0, trailer[4];
    make_table();
    for (uint32_t round = 0; round <= times; round++) {
        uint32_t i = 0;
        if (round == times) {
        end:
            round = times, i = 0;
            crc = ~crc;
            for (int k = 0; k < 4; k++) trailer[k] = (uint8_t)(crc >> 8 * k);
            data = trailer, length = 4;
        }
        for (; i < length; i++) {
            const uint8_t byte = data[i];
            if (byte == END) {
                if (round < times) goto end;
                return count;
            }
            if (round < times) CRC(byte);
            if (!carry) {
                first = byte, carry = 1;
                continue;
            }
            if ((byte ^ KEY[at]) == END || (first ^ KEY[at + 1]) == END) return count;
            at = (at + 2) & 7, carry = 0;
            for (int copy = 0; copy < first; copy++) PUT(byte);
        }
    }
    return count;
}

int main(int argc, char **argv)
{
    uint32_t (*const programs[4])(const uint8_t *, uint32_t, uint32_t) = {program1, program2, program3, program4};
    const int program = argc > 1 ? atoi(argv[1]) : 1, times = argc > 2 ? atoi(argv[2]) : 1;
    uint32_t random = 1, hash = 2166136261u, length = 0, count;
    uint8_t last = 0;
    struct timespec start, end;
    if (program < 1 || program > 4) return 2;
    while (length < LENGTH) {
        random = random * 1664525u + 1013904223u;
        const uint8_t byte = (uint8_t)(1 + (random >> 24) % VALUES);
        if (byte != last) input[length++] = last = byte;
    }
    clock_gettime(CLOCK_MONOTONIC, &start);
    count = programs[program - 1](input, length, (uint32_t)times);
    clock_gettime(CLOCK_MONOTONIC, &end);
    for (uint32_t i = 0; i < SIZE; i++) hash = (hash ^ written[i]) * 16777619u;
    printf("%.3f\n%u %08x\n",
           ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / ((double)times * LENGTH),
           (unsigned)count, (unsigned)hash);
    return 0;
}
