/* Messages between tasks of different threads or processes, over a pair of rings in shared memory (quaject/ring.h):
 * requests, responses that resume the task which waits for them, groups of channels and the dispatch loop of the paper
 * (section 5.3). Six words of 64 bits per message, which are not interpreted.
 *
 *     client                                             server
 *       int memory = qj_ac_channel_memory(8);    ----->    (the descriptor: inherited, or sent over a socket)
 *       qj_ac_channel_open(&c, memory, 8, 0);              qj_ac_channel_open(&c, memory, 8, 1);
 *       qj_ac_call(&c, &request, &response);               qj_ac_group_add(&group, &item); qj_ac_dispatch(&group);
 *
 * A channel belongs to the thread that opened it. A forked child does not inherit it: there its state is that of a dead
 * peer. The peer is not trusted: a response is accepted only if its cookie is that of an outstanding request,
 * generation included; other messages are counted in `refused`. The death of a peer is detected in any case;
 * outstanding calls return -EPIPE, and another process can take its place by opening the same side of the same
 * memory. */
#ifndef QUAJECT_AC_IPC_H
#define QUAJECT_AC_IPC_H

#include <quaject/ac.h>
#include <quaject/ring.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QJ_AC_MESSAGE_WORDS 6

struct qj_ac_message {
    uint64_t words[QJ_AC_MESSAGE_WORDS];
};

struct qj_ac_call_record;
struct qj_ac_room_wait;
struct qj_ac_shared_channel;
struct qj_ac_edges;

struct qj_ac_channel {
    struct qj_ring_end out, in;
    struct qj_ac_shared_channel *shared;
    size_t mapped_bytes;
    int lock;                /* descriptor whose file lock shows that this side is alive */
    uint32_t side;           /* 0 or 1 */
    uint32_t peer_epoch;     /* the incarnation of the peer; 0: no peer has attached yet */
    int dead;                /* the peer has died */
    uint32_t refused;        /* messages that belong to no request */
    struct qj_ac_edges *edges; /* for ThreadSanitizer; null without it */
    struct qj_ac_call_record *calls;
    uint32_t free_call;      /* first free record, or UINT32_MAX */
    struct qj_ac_room_wait *room_first, *room_last; /* tasks that wait for a free record */
    struct qj_ring_message *inbox; /* requests that arrived while a task waited for a response */
    uint32_t inbox_head, inbox_count, inbox_mask;
    struct qj_ac_task *receiver;   /* waits for a request */
    uint32_t waiting;              /* tasks that wait for this channel */
    uint32_t polled;               /* is in the thread's list; the poller removes it when no task waits */
    uint32_t passed;               /* messages that were read and whose slots are not released yet */
    uint64_t checked_ns;           /* when the peer was last checked */
    uint32_t polls;                /* how often the channel was polled */
    uint32_t polls_at_clock;       /* and how often when the clock was last read */
    struct qj_ac_channel *next;    /* of the thread's that are polled */
    struct qj_ac_channel *all_next, *all_prev; /* all open channels of the process */
};

/* Shared memory for a channel of 2^capacity_log2 messages each way; at most 2^16. A descriptor, or -errno. */
int qj_ac_channel_memory(unsigned capacity_log2);
/* Takes one side of the channel; -EBUSY when the side is in use, -EPROTO if the memory is no channel of this capacity,
 * -ENOMEM. After an error the side is free and can be opened again. */
int qj_ac_channel_open(struct qj_ac_channel *channel, int memory, unsigned capacity_log2, uint32_t side);
/* Closes this side; the peer notices. No task may be waiting on the channel. */
void qj_ac_channel_close(struct qj_ac_channel *channel);
/* Whether the peer is alive: 1, 0, or -EAGAIN when it has not opened the channel yet. */
int qj_ac_channel_alive(struct qj_ac_channel *channel);

/* Each of these waits while other tasks run, and returns 0, QJ_AC_CANCELED, or -EPIPE if the peer has died. */

/* Sends a request; `*cookie` is for qj_ac_recv_response(). If as many requests are outstanding as the ring has slots,
 * waits until another task has received its response: a task that sends more requests than that before it receives a
 * response waits for ever, and should use the form that does not wait. */
int qj_ac_send_request(struct qj_ac_channel *channel, const struct qj_ac_message *request, uint32_t *cookie);
/* -EINVAL: the cookie is of no outstanding request. */
int qj_ac_recv_response(struct qj_ac_channel *channel, uint32_t cookie, struct qj_ac_message *response);
int qj_ac_call(struct qj_ac_channel *channel, const struct qj_ac_message *request, struct qj_ac_message *response);
/* The next request; its cookie is for qj_ac_reply(). */
int qj_ac_recv(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie);
int qj_ac_reply(struct qj_ac_channel *channel, uint32_t cookie, const struct qj_ac_message *response);

/* The same without waiting for room: -EAGAIN if as many requests are outstanding as the ring has slots, or the peer has
 * not read earlier messages. qj_ac_try_call() does wait for the response. */
int qj_ac_try_send_request(struct qj_ac_channel *channel, const struct qj_ac_message *request, uint32_t *cookie);
int qj_ac_try_call(struct qj_ac_channel *channel, const struct qj_ac_message *request, struct qj_ac_message *response);
int qj_ac_try_reply(struct qj_ac_channel *channel, uint32_t cookie, const struct qj_ac_message *response);

/* Receives a request without waiting for one: returns -EWOULDBLOCK after every other runnable task has run. Immediately
 * runs each task whose response has arrived. The slots of those responses are released at the next poll of the
 * channel. */
int qj_ac_poll_recv(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie);

/* Several channels as one. */
struct qj_ac_group_item {
    struct qj_ac_channel *channel;
    /* Runs as a task of its own for every request. */
    void (*dispatch)(struct qj_ac_group_item *item, const struct qj_ac_message *request, uint32_t cookie);
    void *context;
    struct qj_ac_group_item *next; /* the group's, as is the rest */
    int registered;
};
struct qj_ac_group {
    struct qj_ac_group_item *first;
    struct qj_ac_group_item *turn; /* the member that is polled first */
};
void qj_ac_group_add(struct qj_ac_group *group, struct qj_ac_group_item *item);
int qj_ac_poll_recv_group(struct qj_ac_group *group, struct qj_ac_group_item **item, struct qj_ac_message *request,
                          uint32_t *cookie);
/* Dispatches requests until the enclosing block is cancelled or every peer has died, then waits for the tasks. */
int qj_ac_dispatch(struct qj_ac_group *group);

#ifdef __cplusplus
}
#endif

#endif
