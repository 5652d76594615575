/* Queues, latches and counters under Barrelfish's names. */
#include <quaject/thc.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static thc_queue_t queue;
static int order;
static void waits(int number, int left) {
    thc_queue_entry_t entry;
    thc_queue_enter(&queue, &entry);
    thc_queue_await_turn(&queue, &entry);
    CHECK(order++ == number);
    qj_ac_yield();
    CHECK(thc_queue_leave(&queue, &entry) == left);
}
static void is_cancelled(void) {
    thc_queue_entry_t entry;
    thc_queue_enter(&queue, &entry);
    CHECK(thc_queue_await_turn_x(&queue, &entry) == THC_CANCELED);
    int is_oldest = entry.prev == &queue.start;
    CHECK(thc_queue_leave(&queue, &entry) == is_oldest);
}

int main(void) {
    thc_queue_entry_t first, second;
    struct thc_latch latch;
    thc_seq_t sequencer;
    thc_init();
    thc_queue_init(&queue);
    thc_queue_enter(&queue, &first);
    thc_queue_enter(&queue, &second);
    CHECK(thc_queue_leave(&queue, &second) == 0);
    CHECK(thc_queue_leave(&queue, &first) == 2);
    DO_FINISH({
        ASYNC_CALL(waits, 0, 0);
        DO_FINISH_(block, {
            ASYNC_CALL(is_cancelled);
            CANCEL(block);
        });
        ASYNC_CALL(waits, 1, 0);
        ASYNC_CALL(waits, 2, 0);
    });
    CHECK(order == 3);
    thc_latch_init(&latch);
    thc_latch_acquire(&latch);
    thc_latch_release(&latch);
    thc_latch_acquire(&latch);
    thc_seq_init(&sequencer);
    CHECK(thc_seq_ticket(&sequencer) == 0 && thc_seq_read(&sequencer) == 1 && thc_seq_read(&sequencer) == 1);
    THCDumpStats(1);
    THCDumpStats(0);
    return 0;
}
