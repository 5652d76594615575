/* The channels of "Extensions to Barrelfish Asynchronous C" (Quigley, 2016), sections 5.3 and 5.4, under their names,
 * for programs written for them. New programs use <quaject/ac/ipc.h>, on which these are built.
 *
 * Visible differences: a message has six registers, not seven; it is a copy, and not the slot of the ring, so a slow
 * handler delays no other task; a response that no task waits for is counted (`refused`) and never returned; a peer
 * that has died ends calls with -EPIPE, and -EWOULDBLOCK of a poll means that every other runnable task has run.
 *
 * A message that a function returns (null if it fails) must be released: by thc_ipc_send_request(), thc_ipc_call() or
 * thc_ipc_reply(), which release it whatever they return, or by fipc_recv_msg_end(). The messages of a channel are for
 * the thread that opened it. */
#ifndef QUAJECT_THC_IPC_H
#define QUAJECT_THC_IPC_H

#include <quaject/ac/ipc.h>
#include <quaject/thc.h>

#include <errno.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C" {
#endif

struct fipc_message {
    struct qj_ac_message regs;
    uint32_t cookie; /* of a received request */
    struct fipc_message *next;
};

struct thc_channel {
    struct qj_ac_channel own;
    struct fipc_message *spare; /* released messages */
};

struct thc_channel_group_item {
    struct thc_channel *channel;
    int (*dispatch_fn)(struct thc_channel *, struct fipc_message *);
    struct qj_ac_group_item own;
};

struct thc_channel_group {
    struct qj_ac_group own;
};

/* Takes side 0 or 1 of a channel in memory made by qj_ac_channel_memory(capacity_log2), and returns what
 * qj_ac_channel_open() does. */
static inline int thc_channel_open(struct thc_channel *chnl, int memory, unsigned capacity_log2, uint32_t side) {
    chnl->spare = NULL;
    return qj_ac_channel_open(&chnl->own, memory, capacity_log2, side);
}
/* Closes the channel. Messages that were not released before are leaked. */
static inline void thc_channel_close(struct thc_channel *chnl) {
    while (chnl->spare != NULL) {
        struct fipc_message *message = chnl->spare;
        chnl->spare = message->next;
        free(message);
    }
    qj_ac_channel_close(&chnl->own);
}
static inline struct thc_channel *thc_channel_to_fipc(struct thc_channel *chnl) { return chnl; }

#define QJ_THC__REGISTER(n)                                                                                            \
    static inline void fipc_set_reg##n(struct fipc_message *message, uint64_t value) {                                 \
        message->regs.words[n] = value;                                                                                \
    }                                                                                                                  \
    static inline uint64_t fipc_get_reg##n(const struct fipc_message *message) { return message->regs.words[n]; }
QJ_THC__REGISTER(0)
QJ_THC__REGISTER(1)
QJ_THC__REGISTER(2)
QJ_THC__REGISTER(3)
QJ_THC__REGISTER(4)
QJ_THC__REGISTER(5)
#undef QJ_THC__REGISTER

/* Allocates a message, whose registers are not initialised. 0 or -ENOMEM. */
static inline int fipc_send_msg_start(struct thc_channel *chnl, struct fipc_message **message) {
    if (chnl->spare == NULL) {
        *message = (struct fipc_message *)calloc(1, sizeof **message);
        return *message == NULL ? -ENOMEM : 0;
    }
    *message = chnl->spare;
    chnl->spare = (*message)->next;
    return 0;
}
/* Releases a message. */
static inline int fipc_recv_msg_end(struct thc_channel *chnl, struct fipc_message *message) {
    message->next = chnl->spare;
    chnl->spare = message;
    return 0;
}
/* The cookie of a received request, for thc_ipc_reply(). */
static inline uint32_t thc_get_request_cookie(const struct fipc_message *request) { return request->cookie; }

/* Section 5.4.4: sends a request; `*cookie` is for thc_ipc_recv_response(). Errors as qj_ac_send_request(). */
static inline int thc_ipc_send_request(struct thc_channel *chnl, struct fipc_message *request, uint32_t *cookie) {
    int result = qj_ac_send_request(&chnl->own, &request->regs, cookie);
    fipc_recv_msg_end(chnl, request);
    return result;
}
/* Section 5.4.1: waits for a response; others run meanwhile. Errors as qj_ac_recv_response(). */
static inline int thc_ipc_recv_response(struct thc_channel *chnl, uint32_t cookie, struct fipc_message **response) {
    struct fipc_message *message;
    *response = NULL;
    int result = fipc_send_msg_start(chnl, &message);
    if (result != 0) return result;
    result = qj_ac_recv_response(&chnl->own, cookie, &message->regs);
    if (result != 0) {
        fipc_recv_msg_end(chnl, message);
        return result;
    }
    *response = message;
    return 0;
}
/* Section 5.4.6: both. */
static inline int thc_ipc_call(struct thc_channel *chnl, struct fipc_message *request, struct fipc_message **response) {
    uint32_t cookie;
    *response = NULL;
    int result = thc_ipc_send_request(chnl, request, &cookie);
    return result != 0 ? result : thc_ipc_recv_response(chnl, cookie, response);
}
/* Section 5.4.5: answers a request. Errors as qj_ac_reply(). */
static inline int thc_ipc_reply(struct thc_channel *chnl, uint32_t cookie, struct fipc_message *response) {
    int result = qj_ac_reply(&chnl->own, cookie, &response->regs);
    fipc_recv_msg_end(chnl, response);
    return result;
}
/* Section 5.4.2: the next request, or -EWOULDBLOCK. Tasks whose responses have arrived run. */
static inline int thc_ipc_poll_recv(struct thc_channel *chnl, struct fipc_message **request) {
    struct fipc_message *message;
    *request = NULL;
    int result = fipc_send_msg_start(chnl, &message);
    if (result != 0) return result;
    result = qj_ac_poll_recv(&chnl->own, &message->regs, &message->cookie);
    if (result != 0) {
        fipc_recv_msg_end(chnl, message);
        return result;
    }
    *request = message;
    return 0;
}
static inline int thc_poll_recv(struct thc_channel *chnl, struct fipc_message **request) {
    return thc_ipc_poll_recv(chnl, request);
}

static inline int thc_channel_group_init(struct thc_channel_group *group) {
    group->own.first = group->own.turn = NULL;
    return 0;
}
static inline int thc_channel_group_item_init(struct thc_channel_group_item *item, struct thc_channel *chnl,
                                              int (*dispatch_fn)(struct thc_channel *, struct fipc_message *)) {
    item->channel = chnl;
    item->dispatch_fn = dispatch_fn;
    item->own.channel = &chnl->own;
    item->own.dispatch = NULL;
    item->own.context = item;
    return 0;
}
static inline void thc_channel_group_item_add(struct thc_channel_group *group, struct thc_channel_group_item *item) {
    qj_ac_group_add(&group->own, &item->own);
}
/* Section 5.4.3: the next request of any channel, each asked first in turn; -EWOULDBLOCK, or -EPIPE when all peers have
 * died. */
static inline int thc_poll_recv_group(struct thc_channel_group *group, struct thc_channel_group_item **item,
                                      struct fipc_message **request) {
    struct fipc_message *message;
    struct qj_ac_group_item *found = group->own.first;
    *item = NULL;
    *request = NULL;
    if (found == NULL) return -EPIPE;
    /* Whose it was does not matter: they are all this thread's. Before the request is taken, so that none is lost. */
    struct thc_channel *chnl = ((struct thc_channel_group_item *)found->context)->channel;
    int result = fipc_send_msg_start(chnl, &message);
    if (result != 0) return result;
    result = qj_ac_poll_recv_group(&group->own, &found, &message->regs, &message->cookie);
    if (result != 0) {
        fipc_recv_msg_end(chnl, message);
        return result;
    }
    *item = (struct thc_channel_group_item *)found->context;
    *request = message;
    return 0;
}
static inline int thc_ipc_poll_recv_group(struct thc_channel_group *group, struct thc_channel_group_item **item,
                                          struct fipc_message **request) {
    return thc_poll_recv_group(group, item, request);
}

#ifdef __cplusplus
}
#endif

#endif
