/* Messages over channels: see include/quaject/ac/ipc.h. The contents of messages are not interpreted.
 *
 *   the first word of a message     cookie: 32 bits | 0: 30 bits | type: 2 bits */
#include "channel.h"

#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* The interval at which a waiting side checks whether its peer is alive. */
#define PEER_CHECK_INTERVAL_NS 20000000u

enum { REQUEST = 1, RESPONSE = RECORD_OUT };

/* ---- doorbells without a fence ----
 *
 * qj_bell_ring() has a fence between a message and the load of the bell, which makes every sender wait until its store
 * buffer is drained. Here the fence is asymmetric (membarrier(2)): between arming its bells and its last poll of the
 * rings, the sleeper has the kernel execute a barrier on every processor that runs a process with channels. So a sender
 * either loads the bell after the barrier, and sees it armed, or has stored its message before it, and the sleeper's
 * poll sees that. */

static __attribute__((noinline)) void wake_sleeper(uint32_t *bell) {
    QJ_RING_STEP("bell ring");
    if (__atomic_exchange_n(bell, 0, __ATOMIC_ACQ_REL) == 0) return;
    QJ_RING_STEP("wake");
    syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
}

QJ_AC_INLINE void ring_bell(uint32_t *bell) {
    /* Pairs with the barrier in `qj_ac__channels_sleep`; the compiler too must keep the message before the load. */
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (QJ_AC_UNLIKELY(__atomic_load_n(bell, __ATOMIC_RELAXED) != 0)) wake_sleeper(bell);
}

/* The prefetch distance, in slots, when many messages are received. The line of a slot that the peer has not written
 * yet belongs to this processor anyway. Slots to be written are not prefetched: a peer that waits for a message polls
 * its slot continuously and would take the line back. */
#define SLOTS_AHEAD 8

/* ---- receiving messages ---- */

static __attribute__((noinline)) void enqueue_request(struct qj_ac_channel *channel, const struct qj_ring_slot *slot) {
    struct qj_ring_message *to = &channel->inbox[(channel->inbox_head + channel->inbox_count++) & channel->inbox_mask];
    for (unsigned i = 0; i < QJ_RING_WORDS; i++) to->words[i] = qj_ring_word(slot, i);
}

/* Counts a response that belongs to no request: late or forged. */
static __attribute__((noinline)) void refuse(struct qj_ac_channel *channel, uint64_t head,
                                             struct qj_ac_call_record *record) {
    if ((uint32_t)head == RESPONSE && record->cookie == head >> 32 && record->state == RECORD_ABANDONED) {
        free_record(channel, record);
    } else {
        channel->refused++;
    }
}

/* Copies the words after the first; each is read once. */
QJ_AC_INLINE void read_words(struct qj_ac_message *to, const struct qj_ring_slot *slot) {
#ifdef __SSE2__
    /* Two at a time: a processor completes one store per cycle, and a load of one word is forwarded from the store of
     * both. */
    const volatile __m128i *from = (const volatile __m128i *)&slot->words[1];
    for (unsigned i = 0; i < QJ_AC_MESSAGE_WORDS / 2; i++) _mm_storeu_si128((__m128i *)&to->words[2 * i], from[i]);
#else
#pragma GCC unroll 6
    for (unsigned i = 0; i < QJ_AC_MESSAGE_WORDS; i++) to->words[i] = qj_ring_word(slot, i + 1);
#endif
}

/* Dispatches a message. It is read in place, each word once, into its destination. Returns the task that waits for it,
 * or null. */
QJ_AC_INLINE struct qj_ac_task *deliver(struct qj_ac_channel *channel, const struct qj_ring_slot *slot) {
    uint64_t head = qj_ring_word(slot, 0);
    uint32_t cookie = (uint32_t)(head >> 32);
    struct qj_ac_call_record *record = &channel->calls[cookie & channel->inbox_mask];
    if (QJ_AC_UNLIKELY((uint32_t)head != RESPONSE || record->head != head)) {
        if ((uint32_t)head == REQUEST) {
            enqueue_request(channel, slot);
        } else {
            refuse(channel, head, record);
        }
        return NULL;
    }
    record->state = RECORD_ARRIVED;
    read_words(record->response, slot);
    return record->task;
}

/* Releases the slots of messages that were read. Deferred to the next poll: the store needs the cache line exclusively,
 * and later stores, such as the next request, would wait for it. */
QJ_AC_INLINE void release_slots(struct qj_ac_channel *channel) {
    if (channel->passed == 0) return;
    qj_ring_sc_give_back(&channel->in, channel->passed);
    channel->passed = 0;
}

/* The peer has violated the protocol: it is treated as dead. */
static __attribute__((noinline)) void mark_broken(struct qj_ac_channel *channel) {
    channel->refused++;
    channel->dead = 1;
    qj_ac__break_calls(channel);
    qj_ac__wake_receiver(channel);
}

void qj_ac__receive_all(struct qj_ac_channel *channel) {
    const struct qj_ring_slot *slot;
    release_slots(channel);
    /* At most as many messages as the ring has slots, so that a peer that refills it cannot starve the other tasks. */
    for (uint32_t budget = channel->inbox_mask + 1; budget > 0 && channel->inbox_count <= channel->inbox_mask; budget--) {
        enum qj_ring_result result = qj_ring_sc_peek(&channel->in, &slot);
        if (result != QJ_RING_OK) {
            if (result != QJ_RING_NOT_READY) mark_broken(channel);
            break;
        }
        show_received(channel, channel->in.position);
        struct qj_ac_task *task = deliver(channel, slot);
        qj_ring_sc_pass(&channel->in);
        qj_ring_sc_give_back(&channel->in, 1);
        if (task != NULL) qj_ac__make_runnable(task);
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

/* The number of polls of an empty channel between two reads of the clock, so that a task that never sleeps detects a
 * dead peer too. */
#define POLLS_PER_CLOCK 256

static void check_peer_periodically(struct qj_ac_channel *channel) {
    if (++channel->polls - channel->polls_at_clock < POLLS_PER_CLOCK) return;
    channel->polls_at_clock = channel->polls;
    uint64_t now = qj_ac__now_ns();
    if (now - channel->checked_ns < PEER_CHECK_INTERVAL_NS) return;
    channel->checked_ns = now;
    qj_ac__check_peer(channel);
}

/* The maximum number of responses received before the first of their tasks runs. */
#define MAX_BATCH 32

/* Receives responses, at least one of which is there, up to the first request, and runs the tasks that wait for them,
 * one after the other; the caller continues as soon as the last has ended or waits. */
QJ_AC_INLINE void receive_and_run(struct qj_ac_channel *channel) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *self = runtime->current, *first = NULL;
    /* The tasks after `first` are at the front of the queue, then the caller, then the others. */
    struct qj_ac_task *end = &runtime->queue, *rest = end->next, *last = end;
    /* A copy in a local variable, which the compiler need not reload after stores to shared memory. */
    const struct qj_ring_end in = channel->in;
    uint64_t position = in.position;
    /* Reads no slot beyond the responses that are waited for: fetching its line from the peer would stall the store
     * buffer. */
    const uint64_t end_position = position + (channel->waiting < MAX_BATCH ? channel->waiting : MAX_BATCH);
    const struct qj_ring_slot *slot = qj_ring__slot(&in, position);
    do {
        __builtin_prefetch(qj_ring__slot(&in, position + SLOTS_AHEAD));
        struct qj_ac_task *task = deliver(channel, slot);
        position++;
        if (task == NULL) {
            if (channel->inbox_count != 0) break;
        } else if (QJ_AC_UNLIKELY(task->prev != NULL)) {
            /* In the queue already: it was scheduled for another reason. */
        } else if (QJ_AC_UNLIKELY(self->parent_sp != NULL)) {
            qj_ac__to_queue(task);
            qj_ac__push_back(runtime, task);
        } else if (first == NULL) {
            first = task;
        } else {
            qj_ac__to_queue(task);
            task->prev = last;
            last->next = task;
            last = task;
        }
    } while ((int64_t)(end_position - position) > 0 && qj_ring_sc_ready(&in, position, &slot));
    channel->passed = (uint32_t)(position - in.position);
    channel->in.position = position;
    /* If its slot were released only after the reply, a successor of this process would receive the request again. */
    if (channel->inbox_count != 0) release_slots(channel);
    bool instrumented = qj_ac__is_instrumented(runtime);
    if (QJ_AC_UNLIKELY(instrumented)) {
        for (uint64_t shown = in.position; shown != position; shown++) show_received(channel, shown);
    }
    if (first == NULL) return;
    last->next = self;
    self->prev = last;
    self->next = rest;
    rest->prev = self;
    if (QJ_AC_UNLIKELY(instrumented)) {
        qj_ac__switch_to(runtime, first);
        return;
    }
    /* As `qj_ac__switch_to` of a task that is in the queue. */
    void *context = first->sp != NULL ? first->sp : first->queued_sp;
    runtime->current = first;
    runtime->statistics.switches++;
    if (self->sp != NULL) self->sp = NULL;
    qj_ac__switch_queued(self, context, first);
}

int qj_ac__poll_once(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie) {
    if (channel->inbox_count == 0) {
        const struct qj_ring_slot *slot;
        release_slots(channel);
        enum qj_ring_result result = qj_ring_sc_peek(&channel->in, &slot);
        if (QJ_AC_LIKELY(result == QJ_RING_OK)) {
            uint64_t head = qj_ring_word(slot, 0);
            if ((uint32_t)head == REQUEST) {
                /* Directly to the receiver: the inbox holds requests that arrive while no task receives. */
                read_words(request, slot);
                *cookie = (uint32_t)(head >> 32);
                qj_ring_sc_pass(&channel->in);
                qj_ring_sc_give_back(&channel->in, 1);
                show_received(channel, channel->in.position - 1);
                return 0;
            }
            receive_and_run(channel);
        } else if (QJ_AC_UNLIKELY(result != QJ_RING_NOT_READY)) {
            mark_broken(channel);
        }
    }
    int result = next_request(channel, request, cookie);
    if (result != -EWOULDBLOCK) return result;
    if (channel->dead) return -EPIPE;
    check_peer_periodically(channel);
    return -EWOULDBLOCK;
}

/* The number of slow polls after which the poller checks timers, I/O and other channels, even if no other task is
 * runnable. */
#define POLLS_PER_ROUND 16

void qj_ac__yield_to_others(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    static __thread unsigned polls;
    struct qj_ac_task *next = runtime->queue.next;
    if (runtime->current == &qj_ac__no_task || next == &runtime->queue) return;
    bool poller_alone = next == runtime->poller && next->next == &runtime->queue;
    if (!poller_alone || ++polls % POLLS_PER_ROUND == 0 || qj_ac__poll_is_due(runtime)) qj_ac_yield();
}

static __attribute__((noinline)) int poll_slow(struct qj_ac_channel *channel, struct qj_ac_message *request,
                                                  uint32_t *cookie) {
    int result = qj_ac__poll_once(channel, request, cookie);
    if (result == -EWOULDBLOCK) qj_ac__yield_to_others();
    return result;
}

/* The number of polls of an empty channel between two slow polls. */
#define QUICK_POLLS 64

/* Whether no task but the poller is runnable. */
QJ_AC_INLINE bool no_other_task_runnable(const struct qj_ac_runtime *runtime) {
    const struct qj_ac_task *next = runtime->queue.next;
    return next == runtime->poller ? next == NULL || next->next == &runtime->queue : next == &runtime->queue;
}
/* Whether polling the next slot is the only work of the thread. */
QJ_AC_INLINE bool has_no_other_work(const struct qj_ac_channel *channel) {
    const struct qj_ac_runtime *runtime = &qj_ac__thread;
    return (channel->inbox_count | (uint32_t)channel->dead) == 0 && no_other_task_runnable(runtime) &&
           !qj_ac__poll_is_due(runtime);
}

static __attribute__((noinline)) int run_responses(struct qj_ac_channel *channel, struct qj_ac_message *request,
                                                   uint32_t *cookie) {
    receive_and_run(channel);
    return QJ_AC_LIKELY(has_no_other_work(channel)) ? -EWOULDBLOCK : poll_slow(channel, request, cookie);
}

/* As `poll_slow` for the common cases, without its frame: no message has arrived, or only responses. */
int qj_ac_poll_recv(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie) {
    const struct qj_ring_slot *slot;
    if (QJ_AC_LIKELY(channel->passed == 0 && has_no_other_work(channel))) {
        enum qj_ring_result result = qj_ring_sc_peek(&channel->in, &slot);
        if (result == QJ_RING_NOT_READY && ++channel->polls % QUICK_POLLS != 0) return -EWOULDBLOCK;
        if (QJ_AC_LIKELY(result == QJ_RING_OK && (uint32_t)qj_ring_word(slot, 0) != REQUEST)) {
            return run_responses(channel, request, cookie);
        }
    }
    return poll_slow(channel, request, cookie);
}

/* ---- waiting ---- */

void qj_ac__poll_remove(struct qj_ac_channel *channel) {
    struct qj_ac_channel **link = &qj_ac__thread.channels;
    if (!channel->polled) return;
    while (*link != channel) link = &(*link)->next;
    *link = channel->next;
    channel->polled = 0;
}

void qj_ac__channels_poll(struct qj_ac_runtime *runtime) {
    for (struct qj_ac_channel **link = &runtime->channels; *link != NULL;) {
        struct qj_ac_channel *channel = *link;
        if (channel->waiting == 0) {
            *link = channel->next;
            channel->polled = 0;
            release_slots(channel);
            continue;
        }
        qj_ac__receive_all(channel);
        check_peer_periodically(channel);
        link = &channel->next;
    }
}

void qj_ac__channels_stop(struct qj_ac_runtime *runtime) {
    while (runtime->channels != NULL) qj_ac__poll_remove(runtime->channels);
}

static struct timespec timespec_of(uint64_t ns) {
    return (struct timespec){(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
}

/* The sleep of a thread that cannot wait for all of its bells at once. */
#define NAP_NS 1000000u

/* Sleeps until one of the bells is rung. Linux before 5.16 cannot wait for several futexes, and some sandboxes forbid
 * it: then it waits for the bell of the first channel only, in short naps, so that the others and the thread's own bell
 * are checked too. */
static void sleep_on_bells(struct futex_waitv *bells, unsigned count, uint64_t now_ns, uint64_t until_ns) {
    /* No partner: a hint that avoids a system call which fails. */
    static bool refused;
    if (!__atomic_load_n(&refused, __ATOMIC_RELAXED)) {
        struct timespec limit = timespec_of(until_ns);
        if (syscall(SYS_futex_waitv, bells, count, 0, &limit, CLOCK_MONOTONIC) >= 0) return;
        if (errno == EAGAIN || errno == ETIMEDOUT || errno == EINTR) return;
        __atomic_store_n(&refused, true, __ATOMIC_RELAXED);
    }
    struct timespec nap = timespec_of(until_ns - now_ns < NAP_NS ? until_ns - now_ns : NAP_NS);
    const struct futex_waitv *bell = &bells[count > 1 ? 1 : 0];
    syscall(SYS_futex, (uint32_t *)(uintptr_t)bell->uaddr, FUTEX_WAIT, (uint32_t)bell->val, &nap, NULL, 0);
}

void qj_ac__channels_sleep(struct qj_ac_runtime *runtime, uint64_t timeout_ns) {
    struct futex_waitv bells[FUTEX_WAITV_MAX];
    unsigned count = 0;
    uint64_t now = qj_ac__now_ns();
    bells[count++] = (struct futex_waitv){.val = QJ_AC_SLEEPING,
                                          .uaddr = (uintptr_t)&runtime->doorbell,
                                          .flags = FUTEX_32 | FUTEX_PRIVATE_FLAG};
    for (struct qj_ac_channel *channel = runtime->channels; channel != NULL; channel = channel->next) {
        if (now - channel->checked_ns >= PEER_CHECK_INTERVAL_NS) {
            channel->checked_ns = now;
            qj_ac__check_peer(channel);
        }
        uint32_t *bell = &channel->in.ring->consumer_bell;
        qj_bell_arm(bell);
        if (count < FUTEX_WAITV_MAX) {
            bells[count++] = (struct futex_waitv){.val = 1, .uaddr = (uintptr_t)bell, .flags = FUTEX_32};
        } else {
            timeout_ns = timeout_ns < 1000000 ? timeout_ns : 1000000;
        }
    }
    /* Pairs with `ring_bell`. Where the kernel refuses the barrier, a message may be missed: then no sleep is long. */
    if (!qj_ac__global_barrier() && timeout_ns > 1000000) timeout_ns = 1000000;
    for (struct qj_ac_channel *channel = runtime->channels; channel != NULL; channel = channel->next) {
        qj_ac__receive_all(channel);
    }
    if (runtime->queue.next != &runtime->queue) return;
    if (timeout_ns > PEER_CHECK_INTERVAL_NS) timeout_ns = PEER_CHECK_INTERVAL_NS;
    sleep_on_bells(bells, count, now, now + timeout_ns);
    /* Awake: producers need not ring. */
    for (struct qj_ac_channel *channel = runtime->channels; channel != NULL; channel = channel->next) {
        QJ_RING_STEP("bell clear");
        /* No partner: a producer that still sees it armed rings without effect. */
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
    qj_ac__make_runnable(wait->task);
}

/* Waits until a request has arrived or the peer has died. */
static int wait_for_request(struct qj_ac_channel *channel) {
    struct receiver_wait wait = {channel, qj_ac_current()};
    struct qj_ac_cancel_item item;
    qj_ac__check_no_receiver(channel);
    if (qj_ac_cancel_item_add(&item, stop_receiving, &wait) != 0) return QJ_AC_CANCELED;
    qj_ac__register_receiver(channel);
    channel->receiver = wait.task;
    while (channel->receiver == wait.task) qj_ac_suspend();
    qj_ac__unregister_receiver(channel);
    qj_ac_cancel_item_remove(&item);
    return item.ran ? QJ_AC_CANCELED : 0;
}

int qj_ac_recv(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie) {
    if (qj_ac__thread.current == &qj_ac__no_task) qj_ac_start();
    /* Before a request is taken, because the block may be cancelled then. */
    if (qj_ac__poll_is_due(&qj_ac__thread) && qj_ac_yield() != 0) return QJ_AC_CANCELED;
    for (;;) {
        int result = qj_ac__poll_once(channel, request, cookie);
        if (result != -EWOULDBLOCK) return result;
        result = wait_for_request(channel);
        if (result != 0) return result;
    }
}

/* ---- sending ---- */

/* The ring is full or broken: returns 0 when there is room again, else an error. */
static __attribute__((noinline)) int wait_for_room(struct qj_ac_channel *channel) {
    struct qj_ring_slot *slot;
    for (uint64_t pause_ns = 1000;;) {
        switch (qj_ring_sp_reserve(&channel->out, &slot)) {
        case QJ_RING_OK:
            return 0;
        case QJ_RING_NOT_READY: {
            /* The peer is slower: run other tasks, receive messages, check the peer periodically. */
            qj_ac__receive_all(channel);
            int result = qj_ac_sleep(pause_ns);
            if (result != 0) return result;
            if (pause_ns < 1000000) pause_ns *= 2;
            qj_ac__check_peer(channel);
            if (channel->dead) return -EPIPE;
            break;
        }
        case QJ_RING_HELD:
        case QJ_RING_BROKEN:
        case QJ_RING_REFUSED:
            mark_broken(channel);
            return -EPIPE;
        }
    }
}

/* Whether the slot of the next message is free. `out` is a copy of channel->out, which no store to shared memory makes
 * the compiler read again. */
QJ_AC_INLINE bool has_free_slot(const struct qj_ring_end *out) {
    return qj_ring__get_state(out, out->position) == qj_ring__idle(out, out->position, QJ_RING_FREE);
}

/* Writes the message in place, in the slot. */
QJ_AC_INLINE void write_message(struct qj_ac_channel *channel, const struct qj_ring_end *out, uint64_t head,
                                const struct qj_ac_message *message) {
    struct qj_ring_slot *slot = qj_ring__slot(out, out->position);
    QJ_RING_STEP("sp write");
    qj_ring_set_word(slot, 0, head);
#pragma GCC unroll 6
    for (unsigned i = 0; i < QJ_AC_MESSAGE_WORDS; i++) qj_ring_set_word(slot, i + 1, message->words[i]);
    QJ_RING_STEP("sp publish");
    qj_ring__set_state(out, out->position, qj_ring__idle(out, out->position, QJ_RING_FULL));
    channel->out.position = out->position + 1;
    ring_bell(&out->ring->consumer_bell);
}

/* In the frame of a task that waits for a free record. */
struct qj_ac_room_wait {
    struct qj_ac_room_wait *next;
    struct qj_ac_channel *channel;
    struct qj_ac_task *task;
    bool queued;
};

static void remove_room_wait(struct qj_ac_room_wait *wait) {
    struct qj_ac_channel *channel = wait->channel;
    struct qj_ac_room_wait *before = NULL;
    for (struct qj_ac_room_wait *other = channel->room_first; other != wait; other = other->next) before = other;
    if (before != NULL) {
        before->next = wait->next;
    } else {
        channel->room_first = wait->next;
    }
    if (channel->room_last == wait) channel->room_last = before;
    wait->queued = false;
    qj_ac__make_runnable(wait->task);
}

void qj_ac__wake_for_room(struct qj_ac_channel *channel) { remove_room_wait(channel->room_first); }

static void stop_waiting_for_room(void *argument) {
    struct qj_ac_room_wait *wait = argument;
    if (wait->queued) remove_room_wait(wait);
}

enum place { FIRST, LAST };

/* Waits until a record has become free; another task may take it before this one runs. */
static int wait_for_record(struct qj_ac_channel *channel, enum place place) {
    struct qj_ac_room_wait wait = {NULL, channel, qj_ac_current(), true};
    struct qj_ac_cancel_item item;
    if (qj_ac_cancel_item_add(&item, stop_waiting_for_room, &wait) != 0) return QJ_AC_CANCELED;
    if (channel->room_first == NULL) {
        channel->room_first = channel->room_last = &wait;
    } else if (place == FIRST) {
        wait.next = channel->room_first;
        channel->room_first = &wait;
    } else {
        channel->room_last->next = &wait;
        channel->room_last = &wait;
    }
    qj_ac__register_receiver(channel);
    while (wait.queued) qj_ac_suspend();
    qj_ac__unregister_receiver(channel);
    qj_ac_cancel_item_remove(&item);
    return item.ran ? QJ_AC_CANCELED : 0;
}

/* Waits for a free record and a free slot; returns 0 if a request may then be sent, or an error. */
static __attribute__((noinline)) int prepare_send_slow(struct qj_ac_channel *channel) {
    if (channel->dead && qj_ac_channel_alive(channel) != 1) return -EPIPE;
    if (qj_ac_is_canceled()) return QJ_AC_CANCELED;
    enum place place = LAST;
    for (;;) {
        while (channel->free_call == UINT32_MAX) {
            int result = wait_for_record(channel, place);
            if (result != 0) return result;
            if (channel->dead) return -EPIPE;
            place = FIRST;
        }
        int result = wait_for_room(channel);
        if (result != 0) return result;
        /* Other tasks may have run meanwhile, and taken the last record. */
        if (channel->free_call != UINT32_MAX) {
            show_sent(channel, channel->out.position);
            return 0;
        }
    }
}

/* Sends a request and makes its record, whose response goes to `response`, or is kept when that is null. `task` will
 * wait for it; null: no task yet. */
QJ_AC_INLINE int send(struct qj_ac_channel *channel, const struct qj_ac_message *request, struct qj_ac_message *response,
                      struct qj_ac_task *task, struct qj_ac_call_record **sent) {
    struct qj_ring_end out = channel->out;
    if (QJ_AC_UNLIKELY(!has_free_slot(&out) || channel->dead || channel->free_call == UINT32_MAX ||
                       channel->edges != NULL || qj_ac__thread.canceled_blocks != 0)) {
        int result = prepare_send_slow(channel);
        if (result != 0) return result;
        out = channel->out;
    }
    struct qj_ac_call_record *record = *sent = &channel->calls[channel->free_call];
    uint64_t cookie = (uint64_t)(record->cookie + (1u << 16)) << 32;
    write_message(channel, &out, cookie | REQUEST, request);
    /* After the message, which a task of the peer may wait for; this thread polls for its response later. */
    channel->free_call = record->next_free;
    record->head = cookie | RECORD_OUT;
    record->task = task;
    record->response = response != NULL ? response : &record->early;
    return 0;
}

int qj_ac_send_request(struct qj_ac_channel *channel, const struct qj_ac_message *request, uint32_t *cookie) {
    struct qj_ac_call_record *record;
    int result = send(channel, request, NULL, NULL, &record);
    if (result == 0) *cookie = record->cookie;
    return result;
}

static void stop_waiting(void *argument) {
    struct qj_ac_call_record *record = argument;
    if (record->state != RECORD_OUT) return; /* its response has come */
    record->state = RECORD_ABANDONED;
    qj_ac__make_runnable(record->task);
}

/* Waits until the response has arrived or cannot arrive any more. The block is not cancelled yet. Afterwards all values
 * are read from the item and from the record, its argument: gcc keeps values that are live across a switch in
 * memory. */
QJ_AC_INLINE void wait_for_response(struct qj_ac_cancel_item *item, struct qj_ac_channel *channel,
                                    struct qj_ac_call_record *record) {
    qj_ac__item_add(record->task->finish, item, stop_waiting, record);
    qj_ac__register_receiver(channel);
    do {
        qj_ac_suspend();
        record = item->argument;
    } while (QJ_AC_UNLIKELY(record->state == RECORD_OUT));
    qj_ac__unregister_receiver(record->channel);
    qj_ac__item_remove(item);
}

/* The result of a call that has ended. */
QJ_AC_INLINE int call_result(struct qj_ac_call_record *record) {
    struct qj_ac_channel *channel = record->channel;
    enum record_state state = record->state;
    if (QJ_AC_LIKELY(state == RECORD_ARRIVED)) {
        free_record(channel, record);
        return 0;
    }
    if (state != RECORD_BROKEN) return QJ_AC_CANCELED;
    free_record(channel, record);
    return -EPIPE;
}

QJ_AC__RETURNS_BY_JUMP
int qj_ac_recv_response(struct qj_ac_channel *channel, uint32_t cookie, struct qj_ac_message *response) {
    struct qj_ac_call_record *record = &channel->calls[cookie & channel->inbox_mask];
    if (record->cookie != cookie || record->state == RECORD_FREE || record->state == RECORD_ABANDONED ||
        record->task != NULL) {
        return -EINVAL;
    }
    if (QJ_AC_UNLIKELY(qj_ac_is_canceled())) {
        qj_ac__receive_all(channel); /* messages that have arrived are not lost */
        if (record->state == RECORD_OUT) {
            record->state = RECORD_ABANDONED;
            return QJ_AC_CANCELED;
        }
    }
    if (record->state == RECORD_OUT) {
        struct qj_ac_cancel_item item;
        record->response = response;
        record->task = qj_ac__thread.current;
        wait_for_response(&item, channel, record);
    } else if (record->state == RECORD_ARRIVED) {
        *response = record->early;
    }
    return call_result(record);
}

QJ_AC__RETURNS_BY_JUMP
int qj_ac_call(struct qj_ac_channel *channel, const struct qj_ac_message *request, struct qj_ac_message *response) {
    struct qj_ac_call_record *record;
    struct qj_ac_cancel_item item;
    int result = send(channel, request, response, qj_ac_current(), &record);
    if (QJ_AC_UNLIKELY(result != 0)) return result;
    wait_for_response(&item, channel, record);
    return call_result(item.argument);
}

int qj_ac_reply(struct qj_ac_channel *channel, uint32_t cookie, const struct qj_ac_message *response) {
    struct qj_ring_end out = channel->out;
    if (QJ_AC_UNLIKELY(!has_free_slot(&out) || channel->dead || channel->edges != NULL)) {
        if (channel->dead && qj_ac_channel_alive(channel) != 1) return -EPIPE;
        int result = wait_for_room(channel);
        if (result != 0) return result;
        show_sent(channel, channel->out.position);
        out = channel->out;
    }
    write_message(channel, &out, (uint64_t)cookie << 32 | RESPONSE, response);
    return 0;
}

/* ---- without waiting for room ---- */

/* 0 if there is a free slot, -EAGAIN or -EPIPE. */
static int slot_without_wait(struct qj_ac_channel *channel) {
    struct qj_ring_slot *slot;
    if (channel->dead && qj_ac_channel_alive(channel) != 1) return -EPIPE;
    switch (qj_ring_sp_reserve(&channel->out, &slot)) {
    case QJ_RING_OK:
        return 0;
    case QJ_RING_NOT_READY:
        check_peer_periodically(channel);
        return channel->dead ? -EPIPE : -EAGAIN;
    case QJ_RING_HELD:
    case QJ_RING_BROKEN:
    case QJ_RING_REFUSED:
        break;
    }
    mark_broken(channel);
    return -EPIPE;
}

static int room_without_wait(struct qj_ac_channel *channel) {
    int result = slot_without_wait(channel);
    if (result != 0 || channel->free_call != UINT32_MAX) return result;
    /* The record of a call that was cancelled is free when its response has come. */
    qj_ac__receive_all(channel);
    if (channel->dead) return -EPIPE;
    return channel->free_call != UINT32_MAX ? 0 : -EAGAIN;
}

int qj_ac_try_send_request(struct qj_ac_channel *channel, const struct qj_ac_message *request, uint32_t *cookie) {
    int result = room_without_wait(channel);
    return result == 0 ? qj_ac_send_request(channel, request, cookie) : result;
}

int qj_ac_try_call(struct qj_ac_channel *channel, const struct qj_ac_message *request, struct qj_ac_message *response) {
    int result = room_without_wait(channel);
    return result == 0 ? qj_ac_call(channel, request, response) : result;
}

int qj_ac_try_reply(struct qj_ac_channel *channel, uint32_t cookie, const struct qj_ac_message *response) {
    int result = slot_without_wait(channel);
    return result == 0 ? qj_ac_reply(channel, cookie, response) : result;
}
