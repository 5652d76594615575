/* Channels: their memory, opening and closing, and the detection of a dead peer. Messages are in ipc.c.
 *
 *   the shared memory     [ head: magic, epoch of side 0, epoch of side 1 ][ ring 0 -> 1 ][ ring 1 -> 0 ]
 *
 * Liveness is a file lock: each side holds a lock on the byte of its number, through an open file description of its
 * own. The kernel drops it when the last descriptor is closed, however the process ends. No process number is stored,
 * so its reuse is harmless. */
#include "channel.h"

#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAGIC 0x314c4e4843434151u /* "QACCHNL1" */
#define CAPACITY_LOG2_MAX 16
#define OWNER 1
struct qj_ac_shared_channel {
    _Alignas(64) uint64_t magic;
    uint32_t epoch[2];
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
    /* Its size is sealed: if a peer could truncate it, our accesses would raise SIGBUS. */
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

/* ---- the barrier of doorbells: see ipc.c ---- */

static pthread_once_t barrier_once = PTHREAD_ONCE_INIT;
static bool have_barrier;
static void register_barrier(void) {
    have_barrier = syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}
bool qj_ac__global_barrier(void) {
    return have_barrier && syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/* ---- a fork shares descriptors, and with them our locks: the child closes its copies, or our death would not be
 * detected. It shares the memory too: the child maps blank pages in its place, or it would receive its parent's
 * messages ---- */

static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static struct qj_ac_channel *open_channels;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;

static void before_fork(void) { pthread_mutex_lock(&open_lock); }
static void after_fork_in_parent(void) { pthread_mutex_unlock(&open_lock); }
static void after_fork_in_child(void) {
    while (open_channels != NULL) {
        struct qj_ac_channel *channel = open_channels;
        open_channels = channel->all_next;
        channel->all_next = channel->all_prev = NULL;
        close(channel->lock);
        channel->lock = -1;
        channel->dead = 1;
        channel->peer_epoch = 1; /* in the blank pages it is 0: no peer will ever attach */
        channel->inbox_count = channel->passed = 0;
        if (mmap(channel->shared, channel->mapped_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                 0) == MAP_FAILED) {
            qj_ac__fatal("out of memory to part a forked child from its parent's channels");
        }
    }
    pthread_mutex_unlock(&open_lock);
}
static void install_fork_handlers(void) { pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child); }

/* Both under `open_lock`, together with the descriptor and the mapping: a fork happens before all of it or after. */
static void enter_open_channels(struct qj_ac_channel *channel) {
    channel->all_next = open_channels;
    if (open_channels != NULL) open_channels->all_prev = channel;
    open_channels = channel;
}

static void leave_open_channels(struct qj_ac_channel *channel) {
    if (channel->all_next != NULL) channel->all_next->all_prev = channel->all_prev;
    if (channel->all_prev != NULL) {
        channel->all_prev->all_next = channel->all_next;
    } else if (open_channels == channel) {
        open_channels = channel->all_next;
    }
}

/* ---- what ThreadSanitizer is shown ---- */

__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

/* Of the memory of a channel; under `open_lock`. */
struct qj_ac_edges {
    struct qj_ac_edges *next;
    dev_t device;
    ino_t inode;
    unsigned users;
    unsigned capacity_log2;
    uint64_t slots[];
};
static struct qj_ac_edges *all_edges;

/* Null without ThreadSanitizer, or without memory. */
static struct qj_ac_edges *open_edges(const struct stat *status, unsigned capacity_log2) {
    if (__tsan_acquire == NULL) return NULL;
    struct qj_ac_edges *edges = all_edges;
    while (edges != NULL && (edges->device != status->st_dev || edges->inode != status->st_ino)) edges = edges->next;
    if (edges == NULL) {
        edges = calloc(1, sizeof *edges + (sizeof *edges->slots << (capacity_log2 + 1)));
        if (edges == NULL) return NULL;
        *edges = (struct qj_ac_edges){all_edges, status->st_dev, status->st_ino, 0, capacity_log2};
        all_edges = edges;
    }
    edges->users++;
    return edges;
}

static void close_edges(struct qj_ac_edges *edges) {
    if (edges == NULL || --edges->users != 0) return;
    struct qj_ac_edges **link = &all_edges;
    while (*link != edges) link = &(*link)->next;
    *link = edges->next;
    free(edges);
}

void qj_ac__show_message(struct qj_ac_edges *edges, uint32_t from_side, uint64_t position) {
    uint64_t count = (uint64_t)1 << edges->capacity_log2;
    uint64_t *slot = &edges->slots[from_side * count + (position & (count - 1))];
    __tsan_acquire(slot);
    __tsan_release(slot);
}

/* A new open file description that holds the lock of our side; or -errno. */
static int lock_side(int memory, uint32_t side) {
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

static int map_and_lock(struct qj_ac_channel *channel, int memory, size_t bytes, unsigned capacity_log2,
                        const struct stat *status, uint32_t side) {
    int lock = lock_side(memory, side);
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
    channel->edges = open_edges(status, capacity_log2);
    enter_open_channels(channel);
    return 0;
}

int qj_ac_channel_open(struct qj_ac_channel *channel, int memory, unsigned capacity_log2, uint32_t side) {
    if (qj_ac__thread.current == &qj_ac__no_task) qj_ac_start();
    memset(channel, 0, sizeof *channel);
    channel->lock = -1;
    if (capacity_log2 > CAPACITY_LOG2_MAX || side > 1) return -EINVAL;
    struct stat status;
    size_t bytes = channel_bytes(capacity_log2);
    if (fstat(memory, &status) != 0) return -errno;
    int seals = fcntl(memory, F_GET_SEALS);
    if (status.st_size < (off_t)bytes || seals < 0 || !(seals & F_SEAL_SHRINK)) return -EPROTO;
    pthread_once(&fork_once, install_fork_handlers);
    pthread_mutex_lock(&open_lock);
    int result = map_and_lock(channel, memory, bytes, capacity_log2, &status, side);
    pthread_mutex_unlock(&open_lock);
    if (result != 0) return result;
    pthread_once(&barrier_once, register_barrier);
    uint32_t count = 1u << capacity_log2;
    channel->calls = aligned_alloc(64, count * sizeof *channel->calls);
    if (channel->calls != NULL) memset(channel->calls, 0, count * sizeof *channel->calls);
    channel->inbox = calloc(count, sizeof *channel->inbox);
    result = channel->calls == NULL || channel->inbox == NULL ? -ENOMEM : attach(channel, capacity_log2);
    if (result != 0) {
        qj_ac_channel_close(channel);
        return result;
    }
    channel->inbox_mask = count - 1;
    /* Generations start at a value that no earlier incarnation is likely to have used: responses to it may still
     * arrive. No partner: only the holder of the side's lock writes the epoch, and the kernel orders locks. */
    uint32_t epoch = __atomic_load_n(&channel->shared->epoch[side], __ATOMIC_RELAXED) + 1;
    for (uint32_t index = 0; index < count; index++) {
        channel->calls[index].cookie = (epoch * 0x2545u & 0x7fff) << 16 | index;
        channel->calls[index].channel = channel;
        channel->calls[index].next_free = index + 1 < count ? index + 1 : UINT32_MAX;
    }
    QJ_RING_STEP("epoch");
    /* Pairs with the acquire in `qj_ac__check_peer`: our ends are at their positions before the peer sees our epoch. */
    __atomic_store_n(&channel->shared->epoch[side], epoch == 0 ? 1 : epoch, __ATOMIC_RELEASE);
    return 0;
}

void qj_ac_channel_close(struct qj_ac_channel *channel) {
    if (channel->waiting != 0) qj_ac__fatal("a channel is closed while %u tasks wait for it", channel->waiting);
    qj_ac__poll_remove(channel);
    /* A channel that was never opened has no descriptor, although a zeroed one names descriptor 0. */
    if (channel->shared != NULL) {
        pthread_mutex_lock(&open_lock);
        leave_open_channels(channel);
        close_edges(channel->edges);
        munmap(channel->shared, channel->mapped_bytes);
        if (channel->lock >= 0) close(channel->lock);
        pthread_mutex_unlock(&open_lock);
    }
    free(channel->calls);
    free(channel->inbox);
    memset(channel, 0, sizeof *channel);
    channel->lock = -1;
}

/* ---- liveness of the peer ---- */

void qj_ac__break_calls(struct qj_ac_channel *channel) {
    for (uint32_t index = 0; index <= channel->inbox_mask; index++) {
        struct qj_ac_call_record *record = &channel->calls[index];
        if (record->state == RECORD_ABANDONED) free_record(channel, record);
        if (record->state != RECORD_OUT) continue;
        record->state = RECORD_BROKEN;
        if (record->task != NULL) qj_ac__make_runnable(record->task);
        record->task = NULL;
    }
    while (channel->room_first != NULL) qj_ac__wake_for_room(channel);
}

void qj_ac__wake_receiver(struct qj_ac_channel *channel) {
    struct qj_ac_task *task = channel->receiver;
    channel->receiver = NULL;
    /* A task that waits for a group may have been woken by another channel. */
    if (task != NULL && task->prev == NULL && qj_ac__is_suspended(task)) qj_ac_schedule_back(task);
}

void qj_ac__check_peer(struct qj_ac_channel *channel) {
    uint32_t peer = !channel->side;
    /* Pairs with the release in `qj_ac_channel_open`. */
    uint32_t epoch = __atomic_load_n(&channel->shared->epoch[peer], __ATOMIC_ACQUIRE);
    if (epoch == 0) return;
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = peer, .l_len = 1};
    int dead = fcntl(channel->lock, F_OFD_GETLK, &lock) != 0 || lock.l_type == F_UNLCK;
    if (epoch != channel->peer_epoch) {
        /* Another process has taken its place; requests to its predecessor are lost. */
        if (channel->peer_epoch != 0) qj_ac__break_calls(channel);
        channel->peer_epoch = epoch;
        channel->dead = 0;
    }
    /* A successor takes the lock before it increments the epoch: until then the peer counts as dead. */
    channel->dead |= dead;
    dead = channel->dead;
    if (dead) {
        /* Messages that it sent before it died are received. */
        qj_ac__receive_all(channel);
        qj_ac__break_calls(channel);
        qj_ac__wake_receiver(channel);
    }
}

int qj_ac_channel_alive(struct qj_ac_channel *channel) {
    qj_ac__check_peer(channel);
    return channel->peer_epoch == 0 ? -EAGAIN : !channel->dead;
}
