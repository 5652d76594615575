/* ck_ring of Concurrency Kit. */
#include "loops.h"
#include <ck_ring.h>

struct ck {
    ck_ring_t ring __attribute__((aligned(64)));
    ck_ring_buffer_t buffer[CAPACITY] __attribute__((aligned(64)));
};

static void *ck_make(void) {
    struct ck *q = aligned_alloc(64, sizeof(struct ck));
    ck_ring_init(&q->ring, CAPACITY);
    return q;
}
#define cksp_make ck_make
#define ckmp_make ck_make
#define cksp_free free
#define ckmp_free free

static inline int cksp_push(void *v, uint64_t item) {
    struct ck *q = v;
    return ck_ring_enqueue_spsc(&q->ring, q->buffer, (void *)item);
}
static inline int cksp_pop(void *v, uint64_t *item) {
    struct ck *q = v;
    return ck_ring_dequeue_spsc(&q->ring, q->buffer, item);
}
static inline int ckmp_push(void *v, uint64_t item) {
    struct ck *q = v;
    return ck_ring_enqueue_mpmc(&q->ring, q->buffer, (void *)item);
}
static inline int ckmp_pop(void *v, uint64_t *item) {
    struct ck *q = v;
    return ck_ring_dequeue_mpmc(&q->ring, q->buffer, item);
}
LOOPS(cksp)
LOOPS(ckmp)

const struct contender bench_ck_sp = CONTENDER(cksp, "ck_ring SP-SC");
const struct contender bench_ck_mp = CONTENDER(ckmp, "ck_ring MP-MC");
