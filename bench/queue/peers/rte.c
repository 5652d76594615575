/* rte_ring of DPDK: single, multi, and relaxed tail synchronisation, the form for more threads than processors. */
#include "loops.h"
#include <rte_ring.h>

static void *make(unsigned flags) {
    struct rte_ring *q = aligned_alloc(128, (size_t)rte_ring_get_memsize(CAPACITY));
    if (rte_ring_init(q, "bench", CAPACITY, flags) != 0)
        abort();
    return q;
}
static void *rtesp_make(void) { return make(RING_F_SP_ENQ | RING_F_SC_DEQ); }
static void *rtemp_make(void) { return make(RING_F_SC_DEQ); }
static void *rtemm_make(void) { return make(0); }
static void *rterts_make(void) { return make(RING_F_MP_RTS_ENQ | RING_F_MC_RTS_DEQ); }
#define rtesp_free free
#define rtemp_free free
#define rtemm_free free
#define rterts_free free

#define OPERATIONS(N, ENQ, DEQ)                                                                                       \
    static inline int N##_push(void *q, uint64_t item) {                                                              \
        return rte_ring_##ENQ##_enqueue_bulk(q, (void *const *)&item, 1, NULL) == 1;                                  \
    }                                                                                                                 \
    static inline int N##_pop(void *q, uint64_t *item) {                                                              \
        return rte_ring_##DEQ##_dequeue_bulk(q, (void **)item, 1, NULL) == 1;                                         \
    }                                                                                                                 \
    static inline int N##_push8(void *q, uint64_t *items) {                                                           \
        return rte_ring_##ENQ##_enqueue_bulk(q, (void *const *)items, 8, NULL) == 8;                                  \
    }                                                                                                                 \
    static inline uint32_t N##_pop8(void *q, uint64_t *items) {                                                       \
        return rte_ring_##DEQ##_dequeue_burst(q, (void **)items, 8, NULL);                                            \
    }                                                                                                                 \
    LOOPS(N)                                                                                                          \
    LOOPS8(N)
OPERATIONS(rtesp, sp, sc)
OPERATIONS(rtemp, mp, sc)
OPERATIONS(rtemm, mp, mc)
OPERATIONS(rterts, mp_rts, mc_rts)

const struct contender bench_rte_sp = CONTENDER8(rtesp, "rte_ring SP-SC");
const struct contender bench_rte_mp = CONTENDER8(rtemp, "rte_ring MP-SC");
const struct contender bench_rte_mm = CONTENDER8(rtemm, "rte_ring MP-MC");
const struct contender bench_rte_rts = CONTENDER8(rterts, "rte_ring RTS");
