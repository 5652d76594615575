/* A producer comes round to the inner slot of another's insert of several that is not published yet: the ring is in
 * order, and the slot is held by that producer. */
#include <stdint.h>

static void step(void);
#define QJ_RING_STEP(name) (*(name) == 'm' && (name)[3] == 'w' ? step() : (void)0)
#include <quaject/ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOG2 3
#define CHECK(condition) ((condition) ? (void)0 : (fprintf(stderr, "%d: %s\n", __LINE__, #condition), exit(1)))

static struct qj_ring_end other;
static int is_met;

/* Before the first word of the insert is written. */
static void step(void) {
    struct qj_ring_message messages[2];
    if (is_met) return;
    is_met = 1;
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < 6; i++) CHECK(qj_ring_mp_push(&other, messages) == QJ_RING_OK);
    CHECK(qj_ring_mp_push_many(&other, messages, 2) == QJ_RING_HELD && other.held_by == 1);
    CHECK(qj_ring_mp_push(&other, messages) == QJ_RING_HELD && other.held_by == 1);
}

int main(void) {
    void *memory = aligned_alloc(128, qj_ring_bytes(LOG2));
    struct qj_ring_message messages[2];
    struct qj_ring_end first;
    memset(memory, 0, qj_ring_bytes(LOG2));
    memset(messages, 0, sizeof messages);
    CHECK(qj_ring_create(memory, qj_ring_bytes(LOG2), LOG2, QJ_RING_MP_SC) == QJ_RING_OK);
    CHECK(qj_ring_attach(&first, memory, qj_ring_bytes(LOG2), LOG2, QJ_RING_MP_SC, 1) == QJ_RING_OK);
    CHECK(qj_ring_attach(&other, memory, qj_ring_bytes(LOG2), LOG2, QJ_RING_MP_SC, 2) == QJ_RING_OK);
    CHECK(qj_ring_mp_push_many(&first, messages, 2) == QJ_RING_OK);
    CHECK(is_met);
    CHECK(qj_ring_mp_push(&other, messages) == QJ_RING_NOT_READY);
    return 0;
}
