/* Functions whose frames are of variable size and of an alignment of their own, for which compilers keep a pointer in a
 * register that others do not have. */
#include <quaject/ac.h>

#include <stdio.h>
#include <string.h>

static long total;
static void works(void *count) { (*(long *)count)++; }
static void yields(void *count) { qj_ac_yield(), (*(long *)count)++; }

static __attribute__((noinline)) void waits(long n) {
    _Alignas(64) char aligned[64];
    int sized[n];
    memset(aligned, (int)n, sizeof aligned);
    for (long i = 0; i < n; i++) sized[i] = (int)i;
    for (long i = 0; i < n; i++) qj_ac_yield(), sized[i]++, aligned[i % 64]++;
    for (long i = 0; i < n; i++) total += sized[i] + aligned[i % 64];
}

static __attribute__((noinline)) void starts(long n) {
    _Alignas(64) char aligned[64];
    int sized[n];
    long count = 0;
    memset(aligned, 7, sizeof aligned);
    for (long i = 0; i < n; i++) sized[i] = (int)i;
    DO_FINISH({
        for (long i = 0; i < n; i++) qj_ac_async(works, &count), qj_ac_async(yields, &count), sized[i]++;
    });
    total += count;
    for (long i = 0; i < n; i++) total += sized[i] + aligned[i % 64];
}

int main(void) {
    DO_FINISH({
        for (long i = 1; i < 20; i++) ASYNC_CALL(waits, i);
    });
    printf("%ld\n", total);
    DO_FINISH({
        for (long i = 1; i < 20; i++) ASYNC_CALL(starts, i);
    });
    printf("%ld\n", total);
    return 0;
}
