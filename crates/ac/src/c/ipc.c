/* Messages over channels: see include/quaject/ac/ipc.h. Knows rings and tasks, nothing of what messages mean.
 *
 *   the first word of a message     cookie: 32 bits | 0: 30 bits | type: 2 bits */
#include "channel.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* How often a waiting side looks whether its peer lives. */
#define LOOK_EVERY_NS 20000000u

enum { REQUEST = 1, RESPONSE = 2 };

/* ---- doorbells without a fence ----
 *
 * qj_bell_ring() has a fence between a message and the look at the bell, which makes every sender wait until its message
 * has left the processor. Here the sleeper pays for both: between arming its bells and its last look at the rings it has
 * the kernel run a barrier on every processor that runs a process with channels. So a sender either looks after the
 * barrier, and sees the bell armed, or has stored its message before it, and the sleeper's look sees that. */

static void ring_bell(uint32_t *bell) {
    /* Pairs with the barrier in `qj_ac__channels_sleep`; the compiler too must leave the message before the look. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (QJ_AC_LIKELY(__atomic_load_n(bell, __ATOMIC_RELAXED) == 0)) return;
    QJ_RING_STEP("bell ring");
    if (__atomic_exchange_n(bell, 0, __ATOMIC_ACQ_REL) == 0) return;
    QJ_RING_STEP("wake");
    syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

/* ---- taking messages in ---- */

/* What a message is for. Returns the task whose response it is, or null. */
static struct qj_ac_task *deliver(struct qj_ac_channel *channel, const struct qj_ring_message *message) {
    uint64_t head = message->words[0];
    uint32_t cookie = (uint32_t)(head >> 32);
    if ((uint32_t)head == REQUEST) {
        channel->inbox[(channel->inbox_head + channel->inbox_count++) & channel->inbox_mask] = *message;
        return NULL;
    }
    struct qj_ac_call_record *record = &channel->calls[cookie & channel->inbox_mask];
    if ((uint32_t)head != RESPONSE || record->cookie != cookie ||
        (record->state != RECORD_OUT && record->state != RECORD_ABANDONED)) {
        channel->refused++;
        return NULL;
    }
    if (record->state == RECORD_ABANDONED) {
        free_record(channel, record);
        return NULL;
    }
    record->state = RECORD_ARRIVED;
    struct qj_ac_task *task = record->task;
    memcpy(task != NULL ? record->response : &record->early, &message->words[1], sizeof record->early);
    record->task = NULL;
    return task;
}

/* One message; false when there is none, or no room for another request. */
static bool take_in(struct qj_ac_channel *channel, struct qj_ac_task **task) {
    struct qj_ring_message message;
    *task = NULL;
    if (channel->inbox_count > channel->inbox_mask) return false;
    switch (qj_ring_sc_pop(&channel->in, &message)) {
    case QJ_RING_OK:
        *task = deliver(channel, &message);
        return true;
    case QJ_RING_NOT_READY:
        return false;
    case QJ_RING_HELD:
    case QJ_RING_BROKEN:
        break;
    }
    /* No honest peer writes this; it is as good as dead. */
    channel->refused++;
    channel->dead = 1;
    qj_ac__break_calls(channel);
    qj_ac__wake_receiver(channel);
    return false;
}

void qj_ac__take_all_in(struct qj_ac_channel *channel) {
    struct qj_ac_task *task;
    while (take_in(channel, &task)) {
        if (task != NULL) qj_ac_schedule_back(task);
    }
    if (channel->inbox_count != 0) qj_ac__wake_receiver(channel);
}

static int next_request(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie) {
    if (channel->inbox_count == 0) return -EWOULDBLOCK;
    struct qj_ring_message *message = &channel->inbox[channel->inbox_head++ & channel->inbox_mask];
    channel->inbox_count--;
    memcpy(request, &message->words[1], sizeof *request);
    *cookie = (uint32_t)(message->words[0] >> 32);
    return 0;
}

/* Who never sleeps notices the death of a peer as well: of so many looks into an empty channel one asks for the time. */
#define LOOKS_PER_CLOCK 256

static void look_now_and_then(struct qj_ac_channel *channel) {
    if (++channel->looks % LOOKS_PER_CLOCK != 0) return;
    uint64_t now = qj_ac__now_ns();
    if (now - channel->checked_ns < LOOK_EVERY_NS) return;
    channel->checked_ns = now;
    qj_ac__look_at_peer(channel);
}

static int poll_once(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie) {
    struct qj_ac_task *task;
    while (channel->inbox_count == 0 && take_in(channel, &task)) {
        if (task == NULL) continue;
        /* Straight to the task the response is for; we go on as soon as it waits. */
        struct qj_ac_runtime *runtime = &qj_ac__thread;
        if (runtime->current->parent_sp == NULL) {
            qj_ac__push_front(runtime, runtime->current);
            qj_ac__go(runtime, task, task->sp);
        } else {
            qj_ac_schedule_back(task);
        }
    }
    int result = next_request(channel, request, cookie);
    if (result != -EWOULDBLOCK) return result;
    if (channel->dead) return -EPIPE;
    look_now_and_then(channel);
    return -EWOULDBLOCK;
}

/* How many empty polls pass before one lets the poller look at timers, I/O and other channels. */
#define POLLS_PER_ROUND 16

/* A loop that only polls, as the paper's does, must not starve the tasks that its messages have woken. */
static void let_others_run(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    static __thread unsigned polls;
    struct qj_ac_task *next = runtime->queue.next;
    if (runtime->current == &qj_ac__nowhere || next == &runtime->queue) return;
    bool poller_alone = next == runtime->poller && next->next == &runtime->queue;
    if (!poller_alone || ++polls % POLLS_PER_ROUND == 0) qj_ac_yield();
}

int qj_ac_poll_recv(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie) {
    int result = poll_once(channel, request, cookie);
    if (result == -EWOULDBLOCK) let_others_run();
    return result;
}

/* ---- waiting ---- */

static void watch(struct qj_ac_channel *channel) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (channel->waiting++ != 0) return;
    channel->prev = NULL;
    channel->next = runtime->channels;
    if (runtime->channels != NULL) runtime->channels->prev = channel;
    runtime->channels = channel;
    qj_ac__poller_wanted(runtime);
}

static void unwatch(struct qj_ac_channel *channel) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (--channel->waiting != 0) return;
    if (channel->next != NULL) channel->next->prev = channel->prev;
    if (channel->prev != NULL) {
        channel->prev->next = channel->next;
    } else {
        runtime->channels = channel->next;
    }
}

void qj_ac__channels_poll(struct qj_ac_runtime *runtime) {
    for (struct qj_ac_channel *channel = runtime->channels; channel != NULL; channel = channel->next) {
        qj_ac__take_all_in(channel);
        look_now_and_then(channel);
    }
}

void qj_ac__channels_sleep(struct qj_ac_runtime *runtime, uint64_t timeout_ns) {
    struct futex_waitv bells[FUTEX_WAITV_MAX];
    unsigned count = 0;
    uint64_t now = qj_ac__now_ns();
    bells[count++] = (struct futex_waitv){.val = QJ_AC_SLEEPING,
                                          .uaddr = (uintptr_t)&runtime->doorbell,
                                          .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
    for (struct qj_ac_channel *channel = runtime->channels; channel != NULL; channel = channel->next) {
        if (now - channel->checked_ns >= LOOK_EVERY_NS) {
            channel->checked_ns = now;
            qj_ac__look_at_peer(channel);
        }
        uint32_t *bell = &channel->in.ring->consumer_bell;
        qj_bell_arm(bell);
        if (count < FUTEX_WAITV_MAX) {
            bells[count++] = (struct futex_waitv){.val = 1, .uaddr = (uintptr_t)bell, .flags = FUTEX_32};
        } else {
            timeout_ns = timeout_ns < 1000000 ? timeout_ns : 1000000;
        }
    }
    /* Pairs with `ring_bell`. Where the kernel refuses it, a message may come unheard: then no sleep is long. */
    if (!qj_ac__barrier_everywhere() && timeout_ns > 1000000) timeout_ns = 1000000;
    for (struct qj_ac_channel *channel = runtime->channels; channel != NULL; channel = channel->next) {
        qj_ac__take_all_in(channel);
    }
    if (runtime->queue.next != &runtime->queue) return;
    if (timeout_ns > LOOK_EVERY_NS) timeout_ns = LOOK_EVERY_NS;
    uint64_t until = now + timeout_ns;
    struct timespec limit = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    if (syscall(SYS_futex_waitv, bells, count, 0, &limit, CLOCK_MONOTONIC) < 0 && errno == ENOSYS) {
        usleep(100); /* Linux before 5.16 */
    }
    /* Awake: producers need not ring. */
    for (struct qj_ac_channel *channel = runtime->channels; channel != NULL; channel = channel->next) {
        QJ_RING_STEP("bell clear");
        /* No partner: a producer that still sees it armed rings for nothing. */
        __atomic_store_n(&channel->in.ring->consumer_bell, 0, __ATOMIC_RELAXED);
    }
}

struct receiver_wait {
    struct qj_ac_channel *channel;
    struct qj_ac_task *task;
};

static void stop_receiving(void *argument) {
    struct receiver_wait *wait = argument;
    if (wait->channel->receiver != wait->task) return; /* it was woken already */
    wait->channel->receiver = NULL;
    qj_ac_schedule_back(wait->task);
}

/* Until a request has come, or the peer has gone. */
static int wait_for_request(struct qj_ac_channel *channel) {
    struct receiver_wait wait = {channel, qj_ac_current()};
    struct qj_ac_cancel_item item;
    if (channel->receiver != NULL) qj_ac__die("two tasks wait for requests of one channel");
    if (qj_ac_cancel_item_add(&item, stop_receiving, &wait) != 0) return QJ_AC_CANCELED;
    watch(channel);
    channel->receiver = wait.task;
    qj_ac_suspend();
    unwatch(channel);
    qj_ac_cancel_item_remove(&item);
    return item.ran ? QJ_AC_CANCELED : 0;
}

int qj_ac_recv(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie) {
    if (qj_ac__thread.current == &qj_ac__nowhere) qj_ac_start();
    for (;;) {
        int result = poll_once(channel, request, cookie);
        if (result != -EWOULDBLOCK) return result;
        result = wait_for_request(channel);
        if (result != 0) return result;
    }
}

/* ---- sending ---- */

/* The ring is full, or worse. */
static __attribute__((noinline)) int push_in_full(struct qj_ac_channel *channel, uint64_t head,
                                                  const struct qj_ac_message *message) {
    struct qj_ring_message whole;
    whole.words[0] = head;
    memcpy(&whole.words[1], message, sizeof *message);
    for (uint64_t pause_ns = 1000;;) {
        switch (qj_ring_sp_push(&channel->out, &whole)) {
        case QJ_RING_OK:
            ring_bell(&channel->out.ring->consumer_bell);
            return 0;
        case QJ_RING_NOT_READY: {
            /* The peer is behind: let others run, take in what has come, look after it now and then. */
            qj_ac__take_all_in(channel);
            int result = qj_ac_sleep(pause_ns);
            if (result != 0) return result;
            if (pause_ns < 1000000) pause_ns *= 2;
            qj_ac__look_at_peer(channel);
            if (channel->dead) return -EPIPE;
            break;
        }
        case QJ_RING_HELD:
        case QJ_RING_BROKEN:
            channel->refused++;
            channel->dead = 1;
            return -EPIPE;
        }
    }
}

/* The copy lies in registers: it is not used beyond the push. */
QJ_AC_INLINE int push(struct qj_ac_channel *channel, uint64_t head, const struct qj_ac_message *message) {
    struct qj_ring_message whole;
    whole.words[0] = head;
    memcpy(&whole.words[1], message, sizeof *message);
    if (QJ_AC_UNLIKELY(qj_ring_sp_push(&channel->out, &whole) != QJ_RING_OK)) return push_in_full(channel, head, message);
    ring_bell(&channel->out.ring->consumer_bell);
    return 0;
}

QJ_AC_INLINE int send_request(struct qj_ac_channel *channel, const struct qj_ac_message *request, uint32_t *cookie) {
    if (QJ_AC_UNLIKELY(channel->dead) && qj_ac_channel_alive(channel) != 1) return -EPIPE;
    if (qj_ac_is_canceled()) return QJ_AC_CANCELED;
    uint32_t index = channel->free_call;
    if (QJ_AC_UNLIKELY(index == UINT32_MAX)) return -EAGAIN;
    struct qj_ac_call_record *record = &channel->calls[index];
    channel->free_call = record->next_free;
    record->cookie += 1u << 16;
    record->state = RECORD_OUT;
    record->task = NULL;
    *cookie = record->cookie;
    int result = push(channel, (uint64_t)record->cookie << 32 | REQUEST, request);
    if (QJ_AC_UNLIKELY(result != 0)) free_record(channel, record);
    return result;
}

int qj_ac_send_request(struct qj_ac_channel *channel, const struct qj_ac_message *request, uint32_t *cookie) {
    return send_request(channel, request, cookie);
}

static void stop_waiting(void *argument) {
    struct qj_ac_call_record *record = argument;
    if (record->state != RECORD_OUT) return; /* its response has come */
    struct qj_ac_task *task = record->task;
    record->state = RECORD_ABANDONED;
    record->task = NULL;
    qj_ac_schedule_back(task);
}

QJ_AC_INLINE int recv_response(struct qj_ac_channel *channel, uint32_t cookie, struct qj_ac_message *response) {
    struct qj_ac_call_record *record = &channel->calls[cookie & channel->inbox_mask];
    if (record->cookie != cookie || record->state == RECORD_FREE || record->state == RECORD_ABANDONED ||
        record->task != NULL) {
        return -EINVAL;
    }
    if (QJ_AC_UNLIKELY(qj_ac_is_canceled())) qj_ac__take_all_in(channel); /* what has come is not lost */
    bool early = record->state == RECORD_ARRIVED;
    if (!early && record->state == RECORD_OUT) {
        struct qj_ac_cancel_item item;
        if (qj_ac_cancel_item_add(&item, stop_waiting, record) != 0) {
            record->state = RECORD_ABANDONED;
            return QJ_AC_CANCELED;
        }
        record->task = qj_ac_current();
        record->response = response;
        watch(channel);
        qj_ac_suspend();
        unwatch(channel);
        qj_ac_cancel_item_remove(&item);
    }
    switch (record->state) {
    case RECORD_ARRIVED:
        if (early) *response = record->early;
        free_record(channel, record);
        return 0;
    case RECORD_BROKEN:
        free_record(channel, record);
        return -EPIPE;
    case RECORD_ABANDONED:
    case RECORD_FREE:
    case RECORD_OUT:
        break;
    }
    return QJ_AC_CANCELED;
}

QJ_AC__RETURNS_BY_JUMP
int qj_ac_recv_response(struct qj_ac_channel *channel, uint32_t cookie, struct qj_ac_message *response) {
    return recv_response(channel, cookie, response);
}

QJ_AC__RETURNS_BY_JUMP
int qj_ac_call(struct qj_ac_channel *channel, const struct qj_ac_message *request, struct qj_ac_message *response) {
    uint32_t cookie;
    int result = send_request(channel, request, &cookie);
    return result != 0 ? result : recv_response(channel, cookie, response);
}

int qj_ac_reply(struct qj_ac_channel *channel, uint32_t cookie, const struct qj_ac_message *response) {
    return push(channel, (uint64_t)cookie << 32 | RESPONSE, response);
}

/* ---- groups ---- */

void qj_ac_group_add(struct qj_ac_group *group, struct qj_ac_group_item *item) {
    item->next = group->first;
    group->first = item;
}

int qj_ac_poll_recv_group(struct qj_ac_group *group, struct qj_ac_group_item **found, struct qj_ac_message *request,
                          uint32_t *cookie) {
    bool any_alive = false;
    struct qj_ac_group_item *start = group->turn != NULL ? group->turn : group->first;
    for (struct qj_ac_group_item *item = start; item != NULL;) {
        int result = poll_once(item->channel, request, cookie);
        struct qj_ac_group_item *next = item->next != NULL ? item->next : group->first;
        if (result == 0) {
            *found = item;
            group->turn = next;
            return 0;
        }
        any_alive |= result == -EWOULDBLOCK;
        item = next == start ? NULL : next;
    }
    if (any_alive) let_others_run();
    return any_alive ? -EWOULDBLOCK : -EPIPE;
}

struct group_wait {
    struct qj_ac_group *group;
    struct qj_ac_task *task;
};

static void no_receiver(struct qj_ac_group *group) {
    for (struct qj_ac_group_item *item = group->first; item != NULL; item = item->next) item->channel->receiver = NULL;
}

static void stop_group(void *argument) {
    struct group_wait *wait = argument;
    if (wait->task->prev != NULL) return; /* a channel has woken it */
    no_receiver(wait->group);
    qj_ac_schedule_back(wait->task);
}

/* The last look at the channels may have found a peer dead, or requests that it sent before: then nobody rings again. */
static bool group_is_quiet(const struct qj_ac_group *group) {
    bool any_alive = false;
    for (const struct qj_ac_group_item *item = group->first; item != NULL; item = item->next) {
        if (item->channel->inbox_count != 0) return false;
        any_alive |= !item->channel->dead;
    }
    return any_alive;
}

static int wait_for_group(struct qj_ac_group *group) {
    if (!group_is_quiet(group)) return 0;
    struct group_wait wait = {group, qj_ac_current()};
    struct qj_ac_cancel_item item;
    if (qj_ac_cancel_item_add(&item, stop_group, &wait) != 0) return QJ_AC_CANCELED;
    for (struct qj_ac_group_item *member = group->first; member != NULL; member = member->next) {
        member->watched = !member->channel->dead;
        if (!member->watched) continue;
        watch(member->channel);
        member->channel->receiver = wait.task;
    }
    qj_ac_suspend();
    no_receiver(group);
    for (struct qj_ac_group_item *member = group->first; member != NULL; member = member->next) {
        if (member->watched) unwatch(member->channel);
    }
    qj_ac_cancel_item_remove(&item);
    return item.ran ? QJ_AC_CANCELED : 0;
}

struct dispatched {
    struct qj_ac_group_item *item;
    struct qj_ac_message request;
    uint32_t cookie;
};

static void run_dispatched(void *argument) {
    struct dispatched call = *(struct dispatched *)argument;
    call.item->dispatch(call.item, &call.request, call.cookie);
}

int qj_ac_dispatch(struct qj_ac_group *group) {
    int result = 0;
    DO_FINISH({
        do {
            struct dispatched call;
            result = qj_ac_poll_recv_group(group, &call.item, &call.request, &call.cookie);
            if (result == 0) {
                if (call.item->dispatch != NULL) qj_ac_async(run_dispatched, &call);
                result = qj_ac_is_canceled() ? QJ_AC_CANCELED : 0;
            } else if (result == -EWOULDBLOCK) {
                result = wait_for_group(group);
            }
        } while (result == 0);
    });
    return result;
}
