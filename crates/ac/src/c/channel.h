/* Shared by channel.c and ipc.c: the records of outstanding requests, and the liveness of the peer. */
#ifndef QUAJECT_AC_SRC_CHANNEL_H
#define QUAJECT_AC_SRC_CHANNEL_H

#include "internal.h"

#include <quaject/ac/ipc.h>

/* RECORD_OUT equals the type of the message that the record waits for, so that record and message are compared in one
 * word. */
enum record_state { RECORD_FREE, RECORD_ARRIVED, RECORD_OUT, RECORD_BROKEN, RECORD_ABANDONED };

/* An outstanding request: a cache line, and a second one for a response that arrives before a task waits for it. */
struct qj_ac_call_record {
    union {
        uint64_t head; /* both, as in the first word of a message */
        struct {
            enum record_state state;
            uint32_t cookie; /* generation << 16 | index */
        };
    };
    struct qj_ac_task *task;        /* the task that waits, or has waited, for the response */
    struct qj_ac_message *response; /* its destination: the waiting task's message, or `early` */
    struct qj_ac_channel *channel;
    uint32_t next_free;
    _Alignas(64) struct qj_ac_message early;
};

/* Wakes the first task that waits for a free record. */
void qj_ac__wake_for_room(struct qj_ac_channel *channel);

/* Its cookie is kept: the next request in this record has the next generation. */
QJ_AC_INLINE void free_record(struct qj_ac_channel *channel, struct qj_ac_call_record *record) {
    record->state = RECORD_FREE;
    record->next_free = channel->free_call;
    channel->free_call = record->cookie & 0xffff;
    if (QJ_AC_UNLIKELY(channel->room_first != NULL)) qj_ac__wake_for_room(channel);
}

/* ---- channel.c ---- */
/* Ends the waits for responses that will never arrive. */
void qj_ac__break_calls(struct qj_ac_channel *channel);
/* Removes the channel from those that the thread's poller polls. */
void qj_ac__poll_remove(struct qj_ac_channel *channel);
/* Makes the task that waits for requests check again. */
void qj_ac__wake_receiver(struct qj_ac_channel *channel);
/* Determines whether the peer is alive, and whether it is still the same process. */
void qj_ac__check_peer(struct qj_ac_channel *channel);
/* A barrier on every processor that runs a process with channels; false where the kernel refuses. */
bool qj_ac__global_barrier(void);

/* ---- waiting for a channel ---- */
/* Makes the thread's poller poll it. */
QJ_AC_INLINE void qj_ac__register_receiver(struct qj_ac_channel *channel) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    channel->waiting++;
    if (QJ_AC_LIKELY(channel->polled)) return;
    channel->polled = 1;
    channel->next = runtime->channels;
    runtime->channels = channel;
    qj_ac__poller_wanted(runtime);
}

/* The channel stays in the thread's list until the poller runs: most are waited for again before that. */
QJ_AC_INLINE void qj_ac__unregister_receiver(struct qj_ac_channel *channel) { channel->waiting--; }

/* A second receiver would never be woken by a request or a cancellation. */
QJ_AC_INLINE void qj_ac__check_no_receiver(const struct qj_ac_channel *channel) {
    if (channel->receiver != NULL) qj_ac__fatal("two tasks wait for requests of one channel");
}

/* ---- what ThreadSanitizer is shown of the messages between threads of a process ---- */
/* The two sides map the ring at different addresses, and the library is not instrumented. So both refer to one object
 * of the process, with a word for each slot of either ring. */
void qj_ac__show_message(struct qj_ac_edges *edges, uint32_t from_side, uint64_t position);
/* At `position` a message is about to be published, or was received: what was done before the one is seen after the
 * other, and what was done before a slot is released is seen when it is written again. */
QJ_AC_INLINE void show_sent(struct qj_ac_channel *channel, uint64_t position) {
    if (QJ_AC_UNLIKELY(channel->edges != NULL)) qj_ac__show_message(channel->edges, channel->side, position);
}
QJ_AC_INLINE void show_received(struct qj_ac_channel *channel, uint64_t position) {
    if (QJ_AC_UNLIKELY(channel->edges != NULL)) qj_ac__show_message(channel->edges, !channel->side, position);
}

/* ---- ipc.c ---- */
/* Receives a request, or runs the tasks whose responses have arrived: 0, -EWOULDBLOCK, -EPIPE. Runs no other task. */
int qj_ac__poll_once(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie);
/* A loop that only polls, as that of the paper, must not starve the tasks that its messages have woken. */
void qj_ac__yield_to_others(void);
/* Receives all messages: requests into the inbox, responses to their tasks, which run later. */
void qj_ac__receive_all(struct qj_ac_channel *channel);

#endif
