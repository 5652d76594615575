/* Our C header: rings of 64-byte messages in shared memory. */
#include "loops.h"
#include <quaject/ring.h>
#include <string.h>

#define LOG2 10

struct end {
    _Alignas(128) struct qj_ring_end end;
};
struct ring {
    struct end producer, consumer;
    void *memory;
};

static void *make(uint32_t kind) {
    struct ring *q = aligned_alloc(128, sizeof(struct ring));
    size_t bytes = qj_ring_bytes(LOG2);
    q->memory = aligned_alloc(128, bytes);
    memset(q->memory, 0, bytes);
    if (qj_ring_create(q->memory, bytes, LOG2, kind) || qj_ring_attach(&q->producer.end, q->memory, bytes, LOG2, kind, 1) ||
        qj_ring_attach(&q->consumer.end, q->memory, bytes, LOG2, kind, 2))
        abort();
    return q;
}
static void qj_free(void *v) {
    struct ring *q = v;
    free(q->memory);
    free(q);
}
static void *qjsp_make(void) { return make(QJ_RING_SP_SC); }
static void *qjmp_make(void) { return make(QJ_RING_MP_MC); }
#define qjsp_free qj_free
#define qjmp_free qj_free

#define OPERATIONS(N, PUSH, PUSH_MANY, POP, POP8)                                                                          \
    static inline int N##_push(void *v, uint64_t item) {                                                              \
        struct qj_ring_message m = {{item}};                                                                          \
        return PUSH(&((struct ring *)v)->producer.end, &m) == QJ_RING_OK;                                             \
    }                                                                                                                 \
    static inline int N##_pop(void *v, uint64_t *item) {                                                              \
        struct qj_ring_message m;                                                                                     \
        if (POP(&((struct ring *)v)->consumer.end, &m) != QJ_RING_OK) return 0;                                       \
        *item = m.words[0];                                                                                           \
        return 1;                                                                                                     \
    }                                                                                                                 \
    static inline int N##_push8(void *v, uint64_t *items) {                                                           \
        struct qj_ring_message m[8];                                                                                  \
        for (int k = 0; k < 8; k++) m[k] = (struct qj_ring_message){{items[k]}};                                      \
        return PUSH_MANY(&((struct ring *)v)->producer.end, m, 8) == QJ_RING_OK;                                      \
    }                                                                                                                 \
    static inline uint32_t N##_pop8(void *v, uint64_t *items) { return POP8(v, items); }                              \
    LOOPS(N)                                                                                                          \
    LOOPS8(N)
static inline uint32_t many(void *v, uint64_t *items) {
    struct qj_ring_message m[8];
    uint32_t taken;
    qj_ring_sc_pop_many(&((struct ring *)v)->consumer.end, m, 8, &taken);
    for (uint32_t k = 0; k < taken; k++) items[k] = m[k].words[0];
    return taken;
}
static inline uint32_t single(void *v, uint64_t *item) {
    struct qj_ring_message m;
    if (qj_ring_mc_pop(&((struct ring *)v)->consumer.end, &m) != QJ_RING_OK) return 0;
    *item = m.words[0];
    return 1;
}
OPERATIONS(qjsp, qj_ring_sp_push, qj_ring_sp_push_many, qj_ring_sc_pop, many)
OPERATIONS(qjmp, qj_ring_mp_push, qj_ring_mp_push_many, qj_ring_mc_pop, single)

const struct contender bench_qj_sp = CONTENDER8(qjsp, "ours shared, C, 56-byte messages");
const struct contender bench_qj_mp = CONTENDER8(qjmp, "ours shared MP-MC, C, 56-byte messages");
