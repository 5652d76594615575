/* The loops every C and C++ contender runs, so that its operations are inlined: a contender defines NAME_make,
 * NAME_free, NAME_push, NAME_pop, and, where it can, NAME_push8, NAME_pop8, and then says LOOPS(NAME) and perhaps
 * LOOPS8(NAME). */
#ifndef LOOPS_H
#define LOOPS_H
#include <immintrin.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#ifdef __cplusplus
extern "C" {
#endif

#define CAPACITY 1024
extern uint32_t bench_spins; /* turns before a waiter gives up the processor */

static inline void bench_pause(uint32_t *turn) {
    if ((*turn)++ < bench_spins)
        _mm_pause();
    else
        sched_yield();
}

struct contender {
    const char *name;
    void *(*make)(void);
    void (*free)(void *);
    void (*produce)(void *, uint64_t count);
    uint64_t (*consume)(void *, uint64_t count); /* gives the sum of what was taken */
    void (*produce8)(void *, uint64_t count);    /* count is a multiple of 8 */
    uint64_t (*consume8)(void *, uint64_t count);
    void (*ping)(void *there, void *back, uint64_t trips);
    void (*pong)(void *there, void *back, uint64_t trips);
};

#define LOOPS(N)                                                                                                      \
    static void N##_produce(void *q, uint64_t count) {                                                                \
        for (uint64_t i = 0; i < count; i++) {                                                                        \
            uint32_t turn = 0;                                                                                        \
            while (!N##_push(q, i)) bench_pause(&turn);                                                               \
        }                                                                                                             \
    }                                                                                                                 \
    static uint64_t N##_consume(void *q, uint64_t count) {                                                            \
        uint64_t sum = 0, item;                                                                                       \
        for (uint64_t i = 0; i < count; i++) {                                                                        \
            uint32_t turn = 0;                                                                                        \
            while (!N##_pop(q, &item)) bench_pause(&turn);                                                            \
            sum += item;                                                                                              \
        }                                                                                                             \
        return sum;                                                                                                   \
    }                                                                                                                 \
    static void N##_ping(void *there, void *back, uint64_t trips) {                                                   \
        for (uint64_t i = 0; i < trips; i++) {                                                                        \
            uint64_t item;                                                                                            \
            uint32_t turn = 0;                                                                                        \
            while (!N##_push(there, i)) bench_pause(&turn);                                                           \
            while (!N##_pop(back, &item)) bench_pause(&turn);                                                         \
        }                                                                                                             \
    }                                                                                                                 \
    static void N##_pong(void *there, void *back, uint64_t trips) {                                                   \
        for (uint64_t i = 0; i < trips; i++) {                                                                        \
            uint64_t item;                                                                                            \
            uint32_t turn = 0;                                                                                        \
            while (!N##_pop(there, &item)) bench_pause(&turn);                                                        \
            while (!N##_push(back, item)) bench_pause(&turn);                                                         \
        }                                                                                                             \
    }

#define LOOPS8(N)                                                                                                     \
    static void N##_produce8(void *q, uint64_t count) {                                                               \
        uint64_t items[8];                                                                                            \
        for (uint64_t i = 0; i < count; i += 8) {                                                                     \
            uint32_t turn = 0;                                                                                        \
            for (uint64_t k = 0; k < 8; k++) items[k] = i + k;                                                        \
            while (!N##_push8(q, items)) bench_pause(&turn);                                                          \
        }                                                                                                             \
    }                                                                                                                 \
    static uint64_t N##_consume8(void *q, uint64_t count) {                                                           \
        uint64_t sum = 0, items[8];                                                                                   \
        for (uint64_t i = 0; i < count;) {                                                                            \
            uint32_t turn = 0, n;                                                                                     \
            while (!(n = N##_pop8(q, items))) bench_pause(&turn);                                                     \
            for (uint32_t k = 0; k < n; k++) sum += items[k];                                                         \
            i += n;                                                                                                   \
        }                                                                                                             \
        return sum;                                                                                                   \
    }

#define CONTENDER(N, TITLE) {TITLE, N##_make, N##_free, N##_produce, N##_consume, 0, 0, N##_ping, N##_pong}
#define CONTENDER8(N, TITLE)                                                                                          \
    {TITLE, N##_make, N##_free, N##_produce, N##_consume, N##_produce8, N##_consume8, N##_ping, N##_pong}

#ifdef __cplusplus
}
#endif
#endif
