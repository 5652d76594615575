/* Asynchronous C under the clock: each function does `n` operations and returns the cycles they took. Compiled once per
 * compiler; PREFIX distinguishes them. */
#include "tsc.h"
#include <quaject/ac.h>

#define NAME2(p, n) p##_##n
#define NAME1(p, n) NAME2(p, n)
#define F(n) NAME1(PREFIX, n)

static volatile long count;
static __attribute__((noinline)) void empty(void *a) { (void)a, count++; }
static __attribute__((noinline)) void yields(void *a) { (void)a, qj_ac_yield(), count++; }

uint64_t F(call)(long n) {
    uint64_t start = tsc();
    for (long i = 0; i < n; i++) empty(0);
    return tsc() - start;
}

uint64_t F(empty_async)(long n) {
    uint64_t start = tsc();
    DO_FINISH({ for (long i = 0; i < n; i++) qj_ac_async(empty, 0); });
    return tsc() - start;
}

uint64_t F(finish_empty)(long n) {
    uint64_t start = tsc();
    for (long i = 0; i < n; i++) DO_FINISH({ qj_ac_async(empty, 0); });
    return tsc() - start;
}

uint64_t F(finish_yield)(long n) {
    uint64_t start = tsc();
    for (long i = 0; i < n; i++) DO_FINISH({ qj_ac_async(yields, 0); });
    return tsc() - start;
}

uint64_t F(thousand)(long n) {
    uint64_t start = tsc();
    for (long i = 0; i < n; i += 1000) DO_FINISH({ for (int j = 0; j < 1000; j++) qj_ac_async(yields, 0); });
    return tsc() - start;
}

struct pair {
    struct qj_ac_task *a, *b;
    uint32_t ia, ib;
    long n;
    uint64_t start, end;
};

static void queue_a(void *p) {
    struct pair *pair = p;
    qj_ac_yield();
    pair->start = tsc();
    for (long i = 0; i < pair->n; i++) qj_ac_yield();
    pair->end = tsc();
}
static void queue_b(void *p) {
    struct pair *pair = p;
    qj_ac_yield();
    for (long i = 0; i < pair->n; i++) qj_ac_yield();
}
uint64_t F(yield)(long n) {
    struct pair pair = {.n = n / 2};
    DO_FINISH({
        qj_ac_async(queue_a, &pair);
        qj_ac_async(queue_b, &pair);
    });
    return pair.end - pair.start;
}

static void direct_a(void *p) {
    struct pair *pair = p;
    pair->a = qj_ac_current();
    qj_ac_suspend();
    struct qj_ac_task *other = pair->b;
    for (long i = 0; i < pair->n; i++) qj_ac_yield_to_nodispatch(other);
    pair->end = tsc();
    qj_ac_schedule(other);
}
static void direct_b(void *p) {
    struct pair *pair = p;
    pair->b = qj_ac_current();
    qj_ac_yield();
    struct qj_ac_task *other = pair->a;
    pair->start = tsc();
    for (long i = 0; i < pair->n; i++) qj_ac_yield_to_nodispatch(other);
    qj_ac_schedule(other);
    qj_ac_suspend();
}
uint64_t F(yield_direct)(long n) {
    struct pair pair = {.n = n / 2};
    DO_FINISH({
        qj_ac_async(direct_a, &pair);
        qj_ac_async(direct_b, &pair);
    });
    return pair.end - pair.start;
}

static void id_a(void *p) {
    struct pair *pair = p;
    pair->ia = qj_ac_id_create();
    qj_ac_yield_and_save_nodispatch(pair->ia);
    uint32_t own = pair->ia, other = pair->ib;
    for (long i = 0; i < pair->n; i++) qj_ac_yield_to_id_and_save_nodispatch(other, own);
    pair->end = tsc();
    qj_ac_schedule(qj_ac_id_task(other));
    qj_ac_id_remove(own);
}
static void id_b(void *p) {
    struct pair *pair = p;
    pair->ib = qj_ac_id_create();
    qj_ac_yield();
    uint32_t own = pair->ib, other = pair->ia;
    pair->start = tsc();
    for (long i = 0; i < pair->n; i++) qj_ac_yield_to_id_and_save_nodispatch(other, own);
    qj_ac_schedule(qj_ac_id_task(other));
    qj_ac_yield_and_save_nodispatch(own);
    qj_ac_id_remove(own);
}
uint64_t F(yield_id)(long n) {
    struct pair pair = {.n = n / 2};
    DO_FINISH({
        qj_ac_async(id_a, &pair);
        qj_ac_async(id_b, &pair);
    });
    return pair.end - pair.start;
}

struct ring {
    uint32_t numbers[3];
    long n;
    uint64_t start, end;
};
struct place {
    struct ring *ring;
    int number;
};

/* The last of the three starts the clock, yields first, stops it, and lets the others end one after the other. */
static void ring_task(void *p) {
    struct place *place = p;
    struct ring *ring = place->ring;
    int last = place->number == 2;
    uint32_t own = ring->numbers[place->number] = qj_ac_id_create();
    if (last) {
        qj_ac_yield();
        ring->start = tsc();
    } else {
        qj_ac_yield_and_save_nodispatch(own);
    }
    uint32_t next = ring->numbers[(place->number + 1) % 3];
    for (long i = 0; i < ring->n; i++) qj_ac_yield_to_id_and_save_nodispatch(next, own);
    if (last) ring->end = tsc();
    if (place->number != 1) qj_ac_schedule(qj_ac_id_task(next));
    qj_ac_id_remove(own);
}
uint64_t F(yield_ring)(long n) {
    struct ring ring = {.n = n / 3};
    struct place places[] = {{&ring, 0}, {&ring, 1}, {&ring, 2}};
    DO_FINISH({ for (int i = 0; i < 3; i++) qj_ac_async(ring_task, &places[i]); });
    return ring.end - ring.start;
}
