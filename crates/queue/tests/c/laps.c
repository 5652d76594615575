/* Laps wrap around after 2^48: ends continue across the wrap, and their successors resume at the right position. */
#include <quaject/ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition) ((condition) ? (void)0 : (fprintf(stderr, "%d: %s\n", __LINE__, #condition), exit(1)))
#define LAST_LAP (((uint64_t)1 << 48) - 1)

/* `pushed` messages go through the ring around the wrap, with up to `held` of them in it; before each, both ends die
 * and others take their places. */
static void around(unsigned log2, uint64_t pushed, uint64_t held) {
    size_t bytes = qj_ring_bytes(log2);
    char *memory = (char *)aligned_alloc(128, bytes);
    struct qj_ring_message message;
    struct qj_ring_end producer, consumer;
    uint64_t taken = 0;
    memset(memory, 0, bytes);
    memset(&message, 0, sizeof message);
    CHECK(qj_ring_create(memory, bytes, log2, QJ_RING_SP_SC) == QJ_RING_OK);
    CHECK(qj_ring_attach(&producer, memory, bytes, log2, QJ_RING_SP_SC, 1) == QJ_RING_OK);
    for (uint64_t i = 0; i <= producer.mask; i++) producer.slots[i].state = LAST_LAP << 16;
    for (uint64_t i = 0; i < pushed; i++) {
        CHECK(qj_ring_attach(&producer, memory, bytes, log2, QJ_RING_SP_SC, 1) == QJ_RING_OK);
        CHECK(qj_ring_attach(&consumer, memory, bytes, log2, QJ_RING_SP_SC, 1) == QJ_RING_OK);
        CHECK(qj_ring_resume_producer(&producer) == QJ_RING_OK);
        CHECK(qj_ring_resume_consumer(&consumer) == QJ_RING_OK);
        if (i - taken == held) {
            CHECK(qj_ring_sc_pop(&consumer, &message) == QJ_RING_OK && message.words[0] == taken);
            taken++;
        }
        message.words[0] = i;
        CHECK(qj_ring_sp_push(&producer, &message) == QJ_RING_OK);
        if (held > 1 || i % 2 != 0) continue;
        CHECK(qj_ring_sc_pop(&consumer, &message) == QJ_RING_OK && message.words[0] == taken);
        taken++;
    }
    for (; taken < pushed; taken++) {
        CHECK(qj_ring_sc_pop(&consumer, &message) == QJ_RING_OK && message.words[0] == taken);
    }
    CHECK(qj_ring_sc_pop(&consumer, &message) == QJ_RING_NOT_READY);
    free(memory);
}

int main(void) {
    for (unsigned log2 = 0; log2 < 4; log2++) {
        for (uint64_t held = 1; held <= (uint64_t)1 << log2; held++) around(log2, (uint64_t)4 << log2, held);
    }
    return 0;
}
