/* Channels: see include/quaject/ac/ipc.h. Knows rings and tasks, nothing of what messages mean.
 *
 *   the shared memory     [ head: magic, epoch of side 0, epoch of side 1 ][ ring 0 -> 1 ][ ring 1 -> 0 ]
 *   the first word of a message     cookie: 32 bits | 0: 30 bits | type: 2 bits
 *
 * Whether a side lives is a lock: each holds one on the byte of its number, through an open file description of its own,
 * and the kernel drops it when the last descriptor is gone, however the process ended. No process number is kept, so
 * none can be reused. */
#include "internal.h"

#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <quaject/ac/ipc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define MAGIC 0x314c4e4843434151u /* "QACCHNL1" */
#define CAPACITY_LOG2_MAX 16
#define OWNER 1
/* How often a waiting side looks whether its peer lives. */
#define LOOK_EVERY_NS 20000000u

enum { REQUEST = 1, RESPONSE = 2 };
enum record_state { RECORD_FREE, RECORD_OUT, RECORD_ARRIVED, RECORD_BROKEN, RECORD_ABANDONED };

struct qj_ac_shared_channel {
    _Alignas(64) uint64_t magic;
    uint32_t epoch[2];
};

/* One request that is out. */
struct qj_ac_call_record {
    uint32_t cookie; /* generation << 16 | index */
    enum record_state state;
    struct qj_ac_task *task;
    uint32_t next_free;
    struct qj_ac_message response;
};

static size_t channel_bytes(unsigned capacity_log2) {
    return 4096 + 2 * qj_ring_bytes(capacity_log2);
}
static char *ring_memory(struct qj_ac_shared_channel *shared, unsigned capacity_log2, uint32_t from_side) {
    return (char *)shared + 4096 + from_side * qj_ring_bytes(capacity_log2);
}

int qj_ac_channel_memory(unsigned capacity_log2) {
    if (capacity_log2 > CAPACITY_LOG2_MAX) return -EINVAL;
    size_t bytes = channel_bytes(capacity_log2);
    int memory = memfd_create("quaject-channel", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (memory < 0) return -errno;
    /* Sealed in size: a peer that truncates it would make our reads faults. */
    if (ftruncate(memory, (off_t)bytes) != 0 || fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        int error = errno;
        close(memory);
        return -error;
    }
    struct qj_ac_shared_channel *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (shared == MAP_FAILED) {
        int error = errno;
        close(memory);
        return -error;
    }
    for (uint32_t side = 0; side < 2; side++) {
        qj_ring_create(ring_memory(shared, capacity_log2, side), qj_ring_bytes(capacity_log2), capacity_log2,
                       QJ_RING_SP_SC);
    }
    /* Pairs with the acquire in `qj_ac_channel_open`. */
    __atomic_store_n(&shared->magic, MAGIC, __ATOMIC_RELEASE);
    munmap(shared, bytes);
    return memory;
}

/* ---- a fork shares descriptors, and with them our locks: the child drops its copies, or nobody would see us die ---- */

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct qj_ac_channel *open_channels;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void before_fork(void) { pthread_mutex_lock(&open_lock); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&open_lock); }
static void after_fork_in_child(void) {
    for (struct qj_ac_channel *channel = open_channels; channel != NULL; channel = channel->all_next) {
        close(channel->lock);
        channel->lock = -1;
        channel->dead = 1;
    }
    open_channels = NULL;
    pthread_mutex_unlock(&open_lock);
}
static void watch_forks(void) { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

static void enter_open_channels(struct qj_ac_channel *channel) {
    pthread_once(&fork_once, watch_forks);
    pthread_mutex_lock(&open_lock);
    channel->all_next = open_channels;
    if (open_channels != NULL) open_channels->all_prev = channel;
    open_channels = channel;
    pthread_mutex_unlock(&open_lock);
}

static void leave_open_channels(struct qj_ac_channel *channel) {
    pthread_mutex_lock(&open_lock);
    if (channel->all_next != NULL) channel->all_next->all_prev = channel->all_prev;
    if (channel->all_prev != NULL) {
        channel->all_prev->all_next = channel->all_next;
    } else if (open_channels == channel) {
        open_channels = channel->all_next;
    }
    pthread_mutex_unlock(&open_lock);
}

/* An open file description of our own, with the lock of our side; or -errno. */
static int take_side(int memory, uint32_t side) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    int own = open(path, O_RDWR | O_CLOEXEC);
    if (own < 0) return -errno;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = side, .l_len = 1};
    if (fcntl(own, F_OFD_SETLK, &lock) != 0) {
        int error = errno;
        close(own);
        return error == EAGAIN || error == EACCES ? -EBUSY : -error;
    }
    return own;
}

static int attach(struct qj_ac_channel *channel, unsigned capacity_log2) {
    size_t bytes = qj_ring_bytes(capacity_log2);
    char *out = ring_memory(channel->shared, capacity_log2, channel->side);
    char *in = ring_memory(channel->shared, capacity_log2, !channel->side);
    /* Pairs with the release in `qj_ac_channel_memory`. */
    if (__atomic_load_n(&channel->shared->magic, __ATOMIC_ACQUIRE) != MAGIC) return -EPROTO;
    if (qj_ring_attach(&channel->out, out, bytes, capacity_log2, QJ_RING_SP_SC, OWNER) != QJ_RING_OK ||
        qj_ring_attach(&channel->in, in, bytes, capacity_log2, QJ_RING_SP_SC, OWNER) != QJ_RING_OK ||
        qj_ring_resume_producer(&channel->out) != QJ_RING_OK || qj_ring_resume_consumer(&channel->in) != QJ_RING_OK) {
        return -EPROTO;
    }
    return 0;
}

int qj_ac_channel_open(struct qj_ac_channel *channel, int memory, unsigned capacity_log2, uint32_t side) {
    memset(channel, 0, sizeof *channel);
    channel->lock = -1;
    if (capacity_log2 > CAPACITY_LOG2_MAX || side > 1) return -EINVAL;
    struct stat status;
    size_t bytes = channel_bytes(capacity_log2);
    if (fstat(memory, &status) != 0) return -errno;
    int seals = fcntl(memory, F_GET_SEALS);
    if (status.st_size < (off_t)bytes || seals < 0 || !(seals & F_SEAL_SHRINK)) return -EPROTO;
    int lock = take_side(memory, side);
    if (lock < 0) return lock;
    void *shared = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    if (shared == MAP_FAILED) {
        int error = errno;
        close(lock);
        return -error;
    }
    channel->shared = shared;
    channel->mapped_bytes = bytes;
    channel->side = side;
    channel->lock = lock;
    enter_open_channels(channel);
    uint32_t count = 1u << capacity_log2;
    channel->calls = calloc(count, sizeof *channel->calls);
    channel->inbox = calloc(count, sizeof *channel->inbox);
    int result = channel->calls == NULL || channel->inbox == NULL ? -ENOMEM : attach(channel, capacity_log2);
    if (result != 0) {
        qj_ac_channel_close(channel);
        return result;
    }
    channel->inbox_mask = count - 1;
    /* Generations start where no earlier incarnation's are likely to have been: its responses may still come. No partner:
     * only the holder of the side's lock writes the epoch, and the kernel orders locks. */
    uint32_t epoch = __atomic_load_n(&channel->shared->epoch[side], __ATOMIC_RELAXED) + 1;
    for (uint32_t index = 0; index < count; index++) {
        channel->calls[index].cookie = (epoch * 0x2545u & 0x7fff) << 16 | index;
        channel->calls[index].next_free = index + 1 < count ? index + 1 : UINT32_MAX;
    }
    QJ_RING_STEP("epoch");
    /* Pairs with the acquire in `look_at_peer`: our ends are where they belong before the peer hears of us. */
    __atomic_store_n(&channel->shared->epoch[side], epoch == 0 ? 1 : epoch, __ATOMIC_RELEASE);
    return 0;
}

void qj_ac_channel_close(struct qj_ac_channel *channel) {
    if (channel->waiting != 0) qj_ac__die("a channel is closed while %u tasks wait for it", channel->waiting);
    if (channel->shared != NULL) munmap(channel->shared, channel->mapped_bytes);
    leave_open_channels(channel);
    if (channel->lock >= 0) close(channel->lock);
    free(channel->calls);
    free(channel->inbox);
    memset(channel, 0, sizeof *channel);
    channel->lock = -1;
}

/* ---- the peer's life ---- */

static void free_record(struct qj_ac_channel *channel, struct qj_ac_call_record *record) {
    record->state = RECORD_FREE;
    record->next_free = channel->free_call;
    channel->free_call = record->cookie & channel->inbox_mask;
}

static void break_calls(struct qj_ac_channel *channel) {
    for (uint32_t index = 0; index <= channel->inbox_mask; index++) {
        struct qj_ac_call_record *record = &channel->calls[index];
        if (record->state == RECORD_ABANDONED) free_record(channel, record);
        if (record->state != RECORD_OUT) continue;
        record->state = RECORD_BROKEN;
        if (record->task != NULL) qj_ac_schedule_back(record->task);
        record->task = NULL;
    }
}

static void wake_receiver(struct qj_ac_channel *channel) {
    struct qj_ac_task *task = channel->receiver;
    channel->receiver = NULL;
    /* One that waits for a group may have been woken by another channel. */
    if (task != NULL && task->prev == NULL && task->sp != NULL) qj_ac_schedule_back(task);
}

static void look_at_peer(struct qj_ac_channel *channel) {
    uint32_t peer = !channel->side;
    /* Pairs with the release in `qj_ac_channel_open`. */
    uint32_t epoch = __atomic_load_n(&channel->shared->epoch[peer], __ATOMIC_ACQUIRE);
    if (epoch == 0) return;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = peer, .l_len = 1};
    int dead = fcntl(channel->lock, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK;
    if (epoch != channel->peer_epoch) {
        /* Another has taken its place; what the one before was asked is lost. */
        if (channel->peer_epoch != 0) break_calls(channel);
        channel->peer_epoch = epoch;
        channel->dead = 0;
    }
    /* The next one takes the lock before it counts itself: until then the dead stay dead. */
    channel->dead |= dead;
    dead = channel->dead;
    if (dead) {
        break_calls(channel);
        wake_receiver(channel);
    }
}

int qj_ac_channel_alive(struct qj_ac_channel *channel) {
    look_at_peer(channel);
    return channel->peer_epoch == 0 ? -EAGAIN : !channel->dead;
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
    memcpy(&record->response, &message->words[1], sizeof record->response);
    record->state = RECORD_ARRIVED;
    struct qj_ac_task *task = record->task;
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
    break_calls(channel);
    wake_receiver(channel);
    return false;
}

static void take_all_in(struct qj_ac_channel *channel) {
    struct qj_ac_task *task;
    while (take_in(channel, &task)) {
        if (task != NULL) qj_ac_schedule_back(task);
    }
    if (channel->inbox_count != 0) wake_receiver(channel);
}

static int next_request(struct qj_ac_channel *channel, struct qj_ac_message *request, uint32_t *cookie) {
    if (channel->inbox_count == 0) return -EWOULDBLOCK;
    struct qj_ring_message *message = &channel->inbox[channel->inbox_head++ & channel->inbox_mask];
    channel->inbox_count--;
    memcpy(request, &message->words[1], sizeof *request);
    *cookie = (uint32_t)(message->words[0] >> 32);
    return 0;
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
    return result == -EWOULDBLOCK && channel->dead ? -EPIPE : result;
}

/* A loop that only polls, as the paper's does, must not starve the tasks that its messages have woken. */
static void let_others_run(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (runtime->current != &qj_ac__nowhere && runtime->queue.next != &runtime->queue) qj_ac_yield();
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
        take_all_in(channel);
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
            look_at_peer(channel);
        }
        uint32_t *bell = &channel->in.ring->consumer_bell;
        qj_bell_arm(bell);
        take_all_in(channel);
        if (count < FUTEX_WAITV_MAX) {
            bells[count++] = (struct futex_waitv){.val = 1, .uaddr = (uintptr_t)bell, .flags = FUTEX_32};
        } else {
            timeout_ns = timeout_ns < 1000000 ? timeout_ns : 1000000;
        }
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

static int push(struct qj_ac_channel *channel, uint64_t head, const struct qj_ac_message *message) {
    struct qj_ring_message whole;
    whole.words[0] = head;
    memcpy(&whole.words[1], message, sizeof *message);
    for (uint64_t pause_ns = 1000;;) {
        switch (qj_ring_sp_push(&channel->out, &whole)) {
        case QJ_RING_OK: {
            uint32_t *bell = &channel->out.ring->consumer_bell;
            if (qj_bell_ring(bell)) {
                QJ_RING_STEP("wake");
                syscall(SYS_futex, bell, FUTEX_WAKE, 1, NULL, NULL, 0);
            }
            return 0;
        }
        case QJ_RING_NOT_READY: {
            /* The peer is behind: let others run, take in what has come, look after it now and then. */
            take_all_in(channel);
            int result = qj_ac_sleep(pause_ns);
            if (result != 0) return result;
            if (pause_ns < 1000000) pause_ns *= 2;
            look_at_peer(channel);
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

int qj_ac_send_request(struct qj_ac_channel *channel, const struct qj_ac_message *request, uint32_t *cookie) {
    if (channel->dead && qj_ac_channel_alive(channel) != 1) return -EPIPE;
    if (qj_ac_is_canceled()) return QJ_AC_CANCELED;
    uint32_t index = channel->free_call;
    if (index == UINT32_MAX) return -EAGAIN;
    struct qj_ac_call_record *record = &channel->calls[index];
    channel->free_call = record->next_free;
    record->cookie += 1u << 16;
    record->state = RECORD_OUT;
    record->task = NULL;
    *cookie = record->cookie;
    int result = push(channel, (uint64_t)record->cookie << 32 | REQUEST, request);
    if (result != 0) free_record(channel, record);
    return result;
}

static void stop_waiting(void *argument) {
    struct qj_ac_call_record *record = argument;
    if (record->state != RECORD_OUT) return; /* its response has come */
    struct qj_ac_task *task = record->task;
    record->state = RECORD_ABANDONED;
    record->task = NULL;
    qj_ac_schedule_back(task);
}

int qj_ac_recv_response(struct qj_ac_channel *channel, uint32_t cookie, struct qj_ac_message *response) {
    struct qj_ac_call_record *record = &channel->calls[cookie & channel->inbox_mask];
    if (record->cookie != cookie || record->state == RECORD_FREE || record->state == RECORD_ABANDONED ||
        record->task != NULL) {
        return -EINVAL;
    }
    if (record->state == RECORD_OUT) take_all_in(channel);
    if (record->state == RECORD_OUT) {
        struct qj_ac_cancel_item item;
        record->task = qj_ac_current();
        if (qj_ac_cancel_item_add(&item, stop_waiting, record) != 0) {
            record->task = NULL;
            record->state = RECORD_ABANDONED;
            return QJ_AC_CANCELED;
        }
        watch(channel);
        qj_ac_suspend();
        unwatch(channel);
        qj_ac_cancel_item_remove(&item);
    }
    switch (record->state) {
    case RECORD_ARRIVED:
        *response = record->response;
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

int qj_ac_call(struct qj_ac_channel *channel, const struct qj_ac_message *request, struct qj_ac_message *response) {
    uint32_t cookie;
    int result = qj_ac_send_request(channel, request, &cookie);
    return result != 0 ? result : qj_ac_recv_response(channel, cookie, response);
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

static int wait_for_group(struct qj_ac_group *group) {
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
