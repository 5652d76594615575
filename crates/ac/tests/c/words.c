/* Arguments of ASYNC_CALL arrive as a call would pass them: a number of 32 bits, signed or not, also with its highest
 * bit set, next to those of 64 bits, narrower ones and pointers. The callees are separated from their callers by
 * `noinline` and compare in 64 bits, so that wrong upper bits of a register show. */
#include <quaject/ac.h>
#include <stdio.h>

#define ALONE __attribute__((noinline))

/* A count that wraps, which compilers compare in whole registers. */
static ALONE void one(uint32_t a) { printf("%d %llu\n", a >= 0x80000000u, (unsigned long long)a); }
static ALONE void two(uint32_t a, uint32_t b) { printf("%d %d %d\n", a == b, a < b, a > b); }
static ALONE void mixed(int32_t a, uint64_t b, uint32_t c, const char *d, uint8_t e, int64_t f) {
    printf("%lld %llu %llu %s %u %lld\n", (long long)a, (unsigned long long)b, (unsigned long long)c, d, e, (long long)f);
}
static ALONE void wide(uint64_t a, int64_t b) { printf("%llu %lld\n", (unsigned long long)a, (long long)b); }
static volatile uint32_t zero;

/* Compared with what this very function computes: here the compiler has made both operands. */
static ALONE void same(uint32_t a) { printf("%d\n", a == zero - 2u); }
static ALONE void threshold(uint32_t a, uint32_t limit) { printf("%s\n", a + 1 > limit ? "above" : "below"); }

int main(void) {
    uint32_t high = zero - 2u;
    DO_FINISH({
        ASYNC_CALL(one, high);
        ASYNC_CALL(one, 7u);
        ASYNC_CALL(same, high);
        ASYNC_CALL(two, high, high - 1u);
        ASYNC_CALL(threshold, high, 0x80000001u);
        ASYNC_CALL(mixed, -5, (uint64_t)high, high, (const char *)"text", (uint8_t)200, (int64_t)-6);
        ASYNC_CALL(wide, (uint64_t)high << 8, (int64_t)-9);
        ASYNC_CALL(wide, (uint64_t)3, -4);
    });
    return 0;
}
