/* Threads on one ring, for ThreadSanitizer: `threads KIND COUNT`. Every message arrives once and whole. */
#include <pthread.h>
#include <quaject/ring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG2 3

static void *memory;
static uint32_t kind;
static uint64_t each, taken, sum;
static unsigned producers, consumers;

static struct qj_ring_end attached(uint8_t owner) {
    struct qj_ring_end end;
    if (qj_ring_attach(&end, memory, qj_ring_bytes(LOG2), LOG2, kind, owner) != QJ_RING_OK) abort();
    return end;
}

static void *produce(void *argument) {
    struct qj_ring_end end = attached((uint8_t)(uintptr_t)argument);
    for (uint64_t i = 0; i < each;) {
        struct qj_ring_message messages[2] = {{{i, ~i, i}}, {{i + 1, ~(i + 1), i + 1}}};
        uint32_t n = each - i > 1 ? 2 : 1;
        enum qj_ring_result result =
            kind & QJ_RING_MP_SC ? qj_ring_mp_push_many(&end, messages, n) : qj_ring_sp_push_many(&end, messages, n);
        if (result == QJ_RING_BROKEN) abort();
        if (result == QJ_RING_OK)
            i += n;
        else
            sched_yield();
    }
    return NULL;
}

static void *consume(void *argument) {
    struct qj_ring_end end = attached((uint8_t)(uintptr_t)argument);
    while (__atomic_load_n(&taken, __ATOMIC_RELAXED) < producers * each) {
        struct qj_ring_message m;
        enum qj_ring_result result = kind & QJ_RING_SP_MC ? qj_ring_mc_pop(&end, &m) : qj_ring_sc_pop(&end, &m);
        if (result == QJ_RING_BROKEN || (result == QJ_RING_OK && (m.words[1] != ~m.words[0] || m.words[2] != m.words[0])))
            abort();
        if (result == QJ_RING_OK) {
            __atomic_fetch_add(&sum, m.words[0], __ATOMIC_RELAXED);
            __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
        } else {
            sched_yield();
        }
    }
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    kind = (uint32_t)atoi(argv[1]);
    each = strtoull(argv[2], NULL, 10);
    producers = kind & QJ_RING_MP_SC ? 3 : 1;
    consumers = kind & QJ_RING_SP_MC ? 3 : 1;
    memory = aligned_alloc(128, qj_ring_bytes(LOG2));
    memset(memory, 0, qj_ring_bytes(LOG2));
    if (qj_ring_create(memory, qj_ring_bytes(LOG2), LOG2, kind) != QJ_RING_OK) return 3;
    pthread_t threads[6];
    unsigned n = 0;
    for (unsigned i = 0; i < producers; i++, n++) pthread_create(&threads[n], NULL, produce, (void *)(uintptr_t)(n + 1));
    for (unsigned i = 0; i < consumers; i++, n++) pthread_create(&threads[n], NULL, consume, (void *)(uintptr_t)(n + 1));
    while (n > 0) pthread_join(threads[--n], NULL);
    if (taken != producers * each || sum != producers * (each * (each - 1) / 2)) {
        fprintf(stderr, "took %lu, sum %lu\n", (unsigned long)taken, (unsigned long)sum);
        return 1;
    }
    return 0;
}
