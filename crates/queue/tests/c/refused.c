/* A caller's errors are refused as such, and change nothing: the ring is not broken. */
#include <quaject/ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG2 2
#define CHECK(condition) ((condition) ? (void)0 : (fprintf(stderr, "%d: %s\n", __LINE__, #condition), exit(1)))

int main(void) {
    size_t bytes = qj_ring_bytes(LOG2);
    char *memory = (char *)aligned_alloc(128, bytes);
    struct qj_ring_end producer, consumer;
    struct qj_ring_message messages[QJ_RING_SPAN_MAX + 1], message;
    uint32_t taken;
    memset(memory, 0, bytes);
    memset(messages, 0, sizeof messages);
    CHECK(qj_ring_create(memory, bytes - 1, LOG2, QJ_RING_SP_SC) == QJ_RING_REFUSED);
    CHECK(qj_ring_create(memory + 8, bytes, LOG2, QJ_RING_SP_SC) == QJ_RING_REFUSED);
    CHECK(qj_ring_create(memory, bytes, LOG2, 77) == QJ_RING_REFUSED);
    CHECK(qj_ring_create(memory, bytes, QJ_RING_CAPACITY_LOG2_MAX + 1, QJ_RING_SP_SC) == QJ_RING_REFUSED);
    CHECK(qj_ring_attach(&producer, memory, bytes, LOG2, QJ_RING_SP_SC, 1) == QJ_RING_BROKEN);
    CHECK(qj_ring_create(memory, bytes, LOG2, QJ_RING_SP_SC) == QJ_RING_OK);
    CHECK(qj_ring_attach(&producer, memory, bytes, LOG2, QJ_RING_SP_SC, 0) == QJ_RING_REFUSED);
    CHECK(qj_ring_attach(&producer, memory, bytes - 1, LOG2, QJ_RING_SP_SC, 1) == QJ_RING_REFUSED);
    CHECK(qj_ring_attach(&producer, memory, bytes, LOG2, QJ_RING_MP_SC, 1) == QJ_RING_BROKEN);
    CHECK(qj_ring_attach(&producer, memory, bytes, LOG2, QJ_RING_SP_SC, 1) == QJ_RING_OK);
    CHECK(qj_ring_attach(&consumer, memory, bytes, LOG2, QJ_RING_SP_SC, 2) == QJ_RING_OK);
    CHECK(qj_ring_sp_push_many(&producer, messages, 0) == QJ_RING_REFUSED);
    CHECK(qj_ring_sp_push_many(&producer, messages, 5) == QJ_RING_REFUSED);
    CHECK(qj_ring_sp_push_many(&producer, messages, QJ_RING_SPAN_MAX + 1) == QJ_RING_REFUSED);
    CHECK(qj_ring_mp_push(&producer, messages) == QJ_RING_REFUSED);
    CHECK(qj_ring_mp_push_many(&producer, messages, 2) == QJ_RING_REFUSED);
    CHECK(qj_ring_mc_pop(&consumer, &message) == QJ_RING_REFUSED);
    CHECK(qj_ring_sc_pop_many(&consumer, messages, 4, &taken) == QJ_RING_NOT_READY && taken == 0);
    messages[0].words[0] = 7;
    CHECK(qj_ring_sp_push(&producer, messages) == QJ_RING_OK);
    CHECK(qj_ring_sc_pop(&consumer, &message) == QJ_RING_OK && message.words[0] == 7);
    free(memory);
    return 0;
}
