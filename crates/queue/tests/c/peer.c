/* One end of a ring in another process: `peer FD CAPACITY_LOG2 KIND OWNER push|pop COUNT`. Messages carry their owner
 * and number; inserts are of 1, 2, 3 messages in turn. `pop` checks the order per owner and prints how many it took. */
#include <quaject/ring.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static void fail(const char *what, unsigned long detail) {
    fprintf(stderr, "peer: %s (%lu)\n", what, detail);
    exit(1);
}

static struct qj_ring_message message(uint64_t owner, uint64_t number) {
    struct qj_ring_message m = {{owner, number, number * 3, ~number, owner ^ number, 7, owner + number}};
    return m;
}

static void push(struct qj_ring_end *end, uint64_t count) {
    uint64_t number = 0, together = 1;
    while (number < count) {
        struct qj_ring_message batch[3];
        uint64_t n = together < count - number ? together : count - number;
        for (uint64_t i = 0; i < n; i++) batch[i] = message(end->owner, number + i);
        enum qj_ring_result result = end->kind & QJ_RING_MP_SC ? qj_ring_mp_push_many(end, batch, (uint32_t)n)
                                                               : qj_ring_sp_push_many(end, batch, (uint32_t)n);
        if (result == QJ_RING_BROKEN) fail("the ring is broken at", number);
        if (result != QJ_RING_OK) {
            sched_yield();
            continue;
        }
        number += n;
        together = together % 3 + 1;
    }
}

static void pop(struct qj_ring_end *end, uint64_t count) {
    uint64_t next[256] = {0}, taken = 0;
    while (taken < count) {
        struct qj_ring_message batch[4], expected;
        uint32_t ready = 1, max = count - taken < 4 ? (uint32_t)(count - taken) : 4;
        enum qj_ring_result result = end->kind & QJ_RING_SP_MC ? qj_ring_mc_pop(end, batch)
                                                               : qj_ring_sc_pop_many(end, batch, max, &ready);
        if (result == QJ_RING_BROKEN) fail("the ring is broken at", taken);
        if (result != QJ_RING_OK) {
            sched_yield();
            continue;
        }
        for (uint32_t i = 0; i < ready; i++) {
            uint64_t owner = batch[i].words[0] & 255, number = batch[i].words[1];
            /* One consumer sees every message, several see some of each producer, in order all the same. */
            if (end->kind & QJ_RING_SP_MC ? number < next[owner] : number != next[owner]) fail("out of order", number);
            expected = message(owner, number);
            if (memcmp(&batch[i], &expected, sizeof expected) != 0) fail("torn message", number);
            next[owner] = number + 1;
        }
        taken += ready;
    }
    printf("%lu\n", (unsigned long)taken);
}

int main(int argc, char **argv) {
    if (argc != 7) fail("wants 6 arguments", (unsigned long)argc);
    unsigned log2 = (unsigned)atoi(argv[2]);
    size_t bytes = qj_ring_bytes(log2);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
    if (memory == MAP_FAILED) fail("cannot map", bytes);
    struct qj_ring_end end;
    if (qj_ring_attach(&end, memory, bytes, log2, (uint32_t)atoi(argv[3]), (uint8_t)atoi(argv[4])) != QJ_RING_OK)
        fail("cannot attach", bytes);
    uint64_t count = strtoull(argv[6], NULL, 10);
    if (strcmp(argv[5], "push") == 0) {
        if (!(end.kind & QJ_RING_MP_SC) && qj_ring_resume_producer(&end) != QJ_RING_OK) fail("cannot resume", 0);
        push(&end, count);
    } else {
        if (!(end.kind & QJ_RING_SP_MC) && qj_ring_resume_consumer(&end) != QJ_RING_OK) fail("cannot resume", 0);
        pop(&end, count);
    }
    return 0;
}
