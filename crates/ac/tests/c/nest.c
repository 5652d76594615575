/* Nested blocks: 50 trees of depth 5, three tasks per block, every leaf waiting three times. Every register that a
 * function may keep holds a pattern across each wait. */
#include <quaject/ac.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static int live, max_live;
static long leaves;

/* Keeps twelve integers and six doubles alive across a yield, in registers or spilled, as the compiler likes. */
static __attribute__((noinline)) uint64_t pattern(uint64_t seed) {
    uint64_t a[12];
    double d[6];
    for (int i = 0; i < 12; i++) a[i] = seed * (2 * (uint64_t)i + 3);
    for (int i = 0; i < 6; i++) d[i] = (double)(seed & 0xffff) * (i + 0.5);
    uint64_t a0 = a[0], a1 = a[1], a2 = a[2], a3 = a[3], a4 = a[4], a5 = a[5], a6 = a[6], a7 = a[7];
    double d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
    for (int i = 0; i < 3; i++) {
        qj_ac_yield();
        a0 += a1, a1 ^= a2, a2 += a3, a3 ^= a4, a4 += a5, a5 ^= a6, a6 += a7, a7 ^= a0;
        d0 += d1, d1 += d2, d2 += d3, d3 += d0;
    }
    return a0 ^ a1 ^ a2 ^ a3 ^ a4 ^ a5 ^ a6 ^ a7 ^ (uint64_t)(d0 + d1 + d2 + d3) ^ a[8] ^ a[11] ^ (uint64_t)d[5];
}

static uint64_t expected(uint64_t seed) {
    uint64_t a[12];
    double d[6];
    for (int i = 0; i < 12; i++) a[i] = seed * (2 * (uint64_t)i + 3);
    for (int i = 0; i < 6; i++) d[i] = (double)(seed & 0xffff) * (i + 0.5);
    uint64_t e8 = a[8], e11 = a[11];
    double f5 = d[5];
    for (int i = 0; i < 3; i++) {
        a[0] += a[1], a[1] ^= a[2], a[2] += a[3], a[3] ^= a[4], a[4] += a[5], a[5] ^= a[6], a[6] += a[7], a[7] ^= a[0];
        d[0] += d[1], d[1] += d[2], d[2] += d[3], d[3] += d[0];
    }
    uint64_t all = a[0] ^ a[1] ^ a[2] ^ a[3] ^ a[4] ^ a[5] ^ a[6] ^ a[7];
    return all ^ (uint64_t)(d[0] + d[1] + d[2] + d[3]) ^ e8 ^ e11 ^ (uint64_t)f5;
}

static void leaf(long seed) {
    CHECK(pattern((uint64_t)seed * 0x9e3779b97f4a7c15u) == expected((uint64_t)seed * 0x9e3779b97f4a7c15u));
    leaves++;
}

static void middle(long depth, long seed) {
    double x = (double)depth * 1.5;
    if (++live > max_live) max_live = live;
    DO_FINISH({
        for (long i = 0; i < 3; i++) {
            if (depth > 0) {
                ASYNC_CALL(middle, depth - 1, seed * 3 + i);
            } else {
                ASYNC_CALL(leaf, seed * 3 + i);
            }
        }
        qj_ac_yield();
    });
    CHECK(x == (double)depth * 1.5);
    live--;
}

int main(int count, char **arguments) {
    long trees = count > 1 ? atol(arguments[1]) : 50;
    DO_FINISH({
        for (long i = 0; i < trees; i++) {
            ASYNC_CALL(middle, 4L, i);
        }
    });
    CHECK(live == 0);
    printf("%ld leaves, %d blocks open at once\n", leaves, max_live);
    struct qj_ac_statistics statistics;
    qj_ac_read_statistics(&statistics);
    CHECK(statistics.started == statistics.ended);
    CHECK(leaves == trees * 243);
    qj_ac_stop();
    return 0;
}
