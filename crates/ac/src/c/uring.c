/* The io_uring back end: one ring per thread, submitted once per round of the dispatch queue for all tasks. Completions
 * run when they are requested (IORING_SETUP_DEFER_TASKRUN), where the kernel supports it. */
#include "io.h"

#include <linux/io_uring.h>
#include <linux/time_types.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ENTRIES 1024
#define COMPLETIONS 16384
#define DESCRIPTORS_MAX (1 << 24)
/* `user_data` of entries that are no operation: a cancellation, and the read of the event descriptor. */
#define NO_REQUEST 0
#define WAKE_REQUEST 1

#ifndef IORING_SETUP_SINGLE_ISSUER
#define IORING_SETUP_SINGLE_ISSUER (1U << 12)
#endif
#ifndef IORING_RECVSEND_POLL_FIRST
#define IORING_RECVSEND_POLL_FIRST (1U << 0)
#endif
#ifndef IORING_CQE_F_SOCK_NONEMPTY
#define IORING_CQE_F_SOCK_NONEMPTY (1U << 2)
#endif
#ifndef IORING_SETUP_DEFER_TASKRUN
#define IORING_SETUP_DEFER_TASKRUN (1U << 13)
#endif

/* The known kind of a descriptor. It may be outdated: it only decides which of two operations is tried first. */
enum found { UNKNOWN, SOCKET, DRAINED_SOCKET, NO_SOCKET };

struct uring {
    int ring;
    bool recent;    /* Linux 6.1 or later */
    uint8_t *found; /* by descriptor */
    size_t found_count;
    void *memory;
    size_t memory_bytes;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *completions;
    unsigned *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
    unsigned sq_mask, cq_mask, sq_entries;
    unsigned prepared; /* private tail; published to the kernel by io_uring_enter */
    unsigned unsubmitted;
    int wake;
    uint64_t wake_count; /* the destination of the read of the eventfd */
};

static int setup(struct io_uring_params *parameters, bool *recent) {
    unsigned best = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | IORING_SETUP_TASKRUN_FLAG;
    unsigned tries[] = {best | IORING_SETUP_CQSIZE, IORING_SETUP_CQSIZE};
    for (int i = 0; i < 2; i++) {
        memset(parameters, 0, sizeof *parameters);
        parameters->flags = tries[i];
        parameters->cq_entries = COMPLETIONS;
        int ring = (int)syscall(SYS_io_uring_setup, ENTRIES, parameters);
        if (ring < 0 && errno == EINVAL) continue;
        *recent = i == 0;
        return ring;
    }
    return -1;
}

static void prepare_wake(struct uring *uring);

struct uring *qj_ac__uring_open(int wake) {
    struct io_uring_params parameters;
    bool recent;
    int ring = setup(&parameters, &recent);
    if (ring < 0) return NULL;
    struct uring *uring = calloc(1, sizeof *uring);
    if (uring == NULL) {
        close(ring);
        errno = ENOMEM;
        return NULL;
    }
    size_t sq_bytes = parameters.sq_off.array + parameters.sq_entries * sizeof(unsigned);
    size_t cq_bytes = parameters.cq_off.cqes + parameters.cq_entries * sizeof(struct io_uring_cqe);
    uring->memory_bytes = sq_bytes > cq_bytes ? sq_bytes : cq_bytes;
    char *memory = mmap(NULL, uring->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring,
                        IORING_OFF_SQ_RING);
    size_t entries_bytes = parameters.sq_entries * sizeof(struct io_uring_sqe);
    void *entries = mmap(NULL, entries_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring, IORING_OFF_SQES);
    bool whole = (parameters.features & IORING_FEAT_SINGLE_MMAP) && (parameters.features & IORING_FEAT_EXT_ARG) &&
                 (parameters.features & IORING_FEAT_NODROP);
    if (memory == MAP_FAILED || entries == MAP_FAILED || !whole) {
        int error = memory != MAP_FAILED && entries != MAP_FAILED ? ENOSYS : errno;
        if (memory != MAP_FAILED) munmap(memory, uring->memory_bytes);
        if (entries != MAP_FAILED) munmap(entries, entries_bytes);
        close(ring);
        free(uring);
        errno = error;
        return NULL;
    }
    uring->ring = ring;
    uring->recent = recent;
    uring->memory = memory;
    uring->entries = entries;
    uring->sq_head = (unsigned *)(memory + parameters.sq_off.head);
    uring->sq_tail = (unsigned *)(memory + parameters.sq_off.tail);
    uring->sq_flags = (unsigned *)(memory + parameters.sq_off.flags);
    uring->sq_mask = *(unsigned *)(memory + parameters.sq_off.ring_mask);
    uring->sq_entries = parameters.sq_entries;
    uring->cq_head = (unsigned *)(memory + parameters.cq_off.head);
    uring->cq_tail = (unsigned *)(memory + parameters.cq_off.tail);
    uring->cq_mask = *(unsigned *)(memory + parameters.cq_off.ring_mask);
    uring->completions = (struct io_uring_cqe *)(memory + parameters.cq_off.cqes);
    unsigned *array = (unsigned *)(memory + parameters.sq_off.array);
    for (unsigned i = 0; i < parameters.sq_entries; i++) array[i] = i;
    uring->wake = wake;
    prepare_wake(uring);
    return uring;
}

void qj_ac__uring_close(struct uring *uring) {
    munmap(uring->memory, uring->memory_bytes);
    munmap(uring->entries, uring->sq_entries * sizeof(struct io_uring_sqe));
    close(uring->ring);
    free(uring->found);
    free(uring);
}

/* Submits what is prepared; with `wanted` completions sleeps at most `timeout_ns` for them. */
static void enter(struct uring *uring, unsigned wanted, uint64_t timeout_ns) {
    struct __kernel_timespec timeout = {(long long)(timeout_ns / 1000000000u), (long long)(timeout_ns % 1000000000u)};
    struct io_uring_getevents_arg argument = {.ts = timeout_ns == UINT64_MAX ? 0 : (uintptr_t)&timeout};
    /* Pairs with the kernel's acquire: the entries are written before it sees the tail. */
    __atomic_store_n(uring->sq_tail, uring->prepared, __ATOMIC_RELEASE);
    long submitted = syscall(SYS_io_uring_enter, uring->ring, uring->unsubmitted, wanted,
                             IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG, &argument, sizeof argument);
    if (submitted >= 0) {
        uring->unsubmitted -= (unsigned)submitted;
        return;
    }
    switch (errno) {
    case ETIME:
    case EINTR:
        /* What was prepared was submitted before the wait. Pairs with the kernel's release, as in `next_entry`. */
        uring->unsubmitted = uring->prepared - __atomic_load_n(uring->sq_head, __ATOMIC_ACQUIRE);
        return;
    case EBUSY:
    case EAGAIN:
        return; /* completions first */
    default:
        qj_ac__fatal("io_uring_enter: %s", strerror(errno));
    }
}

static struct io_uring_sqe *next_entry(struct uring *uring) {
    /* Pairs with the kernel's release: an entry it has consumed is ours again. */
    while (uring->prepared - __atomic_load_n(uring->sq_head, __ATOMIC_ACQUIRE) == uring->sq_entries) enter(uring, 0, 0);
    struct io_uring_sqe *entry = &uring->entries[uring->prepared++ & uring->sq_mask];
    uring->unsubmitted++;
    memset(entry, 0, sizeof *entry);
    return entry;
}

static void prepare_wake(struct uring *uring) {
    struct io_uring_sqe *entry = next_entry(uring);
    entry->opcode = IORING_OP_READ;
    entry->fd = uring->wake;
    entry->addr = (uintptr_t)&uring->wake_count;
    entry->len = sizeof uring->wake_count;
    entry->user_data = WAKE_REQUEST;
}

static uint8_t *socket_state_of(struct uring *uring, int descriptor) {
    /* Numbers beyond any possible descriptor share one entry, so that the table stays small. */
    size_t index = descriptor < 0 || descriptor > DESCRIPTORS_MAX ? 0 : (size_t)descriptor;
    if (index >= uring->found_count) {
        size_t count = 2 * index + 64;
        uint8_t *found = realloc(uring->found, count);
        if (found == NULL) {
            static __thread uint8_t not_recorded;
            not_recorded = UNKNOWN;
            return &not_recorded;
        }
        memset(found + uring->found_count, UNKNOWN, count - uring->found_count);
        uring->found = found;
        uring->found_count = count;
    }
    return &uring->found[index];
}

/* Sockets have operations of their own, which are faster and can poll before the first attempt
 * (IORING_RECVSEND_POLL_FIRST): a socket that was just drained is seldom readable again immediately. */
static void prepare_transfer(struct uring *uring, struct io_uring_sqe *entry, struct io_operation *operation) {
    bool reads = operation->kind == IO_READ;
    operation->tried = *socket_state_of(uring, operation->descriptor);
    entry->len = operation->bytes < 0x7ffff000 ? (unsigned)operation->bytes : 0x7ffff000;
    switch ((enum found)operation->tried) {
    case DRAINED_SOCKET:
        if (reads) entry->ioprio = IORING_RECVSEND_POLL_FIRST;
        /* fall through */
    case UNKNOWN:
    case SOCKET:
        entry->opcode = reads ? IORING_OP_RECV : IORING_OP_SEND;
        entry->msg_flags = reads ? 0 : MSG_NOSIGNAL;
        break;
    case NO_SOCKET:
        entry->opcode = reads ? IORING_OP_READ : IORING_OP_WRITE;
        entry->off = UINT64_MAX; /* the file's position */
        break;
    }
}

void qj_ac__uring_start(struct uring *uring, struct io_operation *operation) {
    struct io_uring_sqe *entry = next_entry(uring);
    entry->fd = operation->descriptor;
    entry->addr = (uintptr_t)operation->buffer;
    entry->user_data = (uintptr_t)operation;
    switch (operation->kind) {
    case IO_READ:
    case IO_WRITE:
        prepare_transfer(uring, entry, operation);
        break;
    case IO_ACCEPT:
        entry->opcode = IORING_OP_ACCEPT;
        entry->addr2 = (uintptr_t)operation->length;
        entry->accept_flags = SOCK_CLOEXEC;
        break;
    case IO_CONNECT:
        entry->opcode = IORING_OP_CONNECT;
        entry->off = operation->bytes;
        break;
    }
}

/* The operation still completes in `qj_ac__uring_poll`, with its result or -ECANCELED: the kernel may write to its
 * buffer until then. */
void qj_ac__uring_cancel(struct uring *uring, struct io_operation *operation) {
    struct io_uring_sqe *entry = next_entry(uring);
    operation->canceled = true;
    entry->opcode = IORING_OP_ASYNC_CANCEL;
    entry->fd = -1;
    entry->addr = (uintptr_t)operation;
    entry->user_data = NO_REQUEST;
}

/* Handles a completion: the operation has ended, or is retried as the other kind. */
static void finish(struct qj_ac_io *io, struct io_operation *operation, int result, unsigned flags) {
    struct uring *uring = io->uring;
    if (operation->kind == IO_READ || operation->kind == IO_WRITE) {
        uint8_t *found = socket_state_of(uring, operation->descriptor);
        /* Errors for a descriptor that is no socket: ENOTSOCK if it is tried first, EAGAIN if it polls first. */
        bool no_socket = operation->tried != NO_SOCKET && result == -ENOTSOCK;
        bool no_wait = operation->tried == DRAINED_SOCKET && result == -EAGAIN;
        if (no_socket || no_wait) {
            *found = no_socket ? NO_SOCKET : UNKNOWN;
            if (!operation->canceled) {
                qj_ac__uring_start(uring, operation);
                return;
            }
            result = QJ_AC_CANCELED;
        } else if (result <= 0) {
            *found = UNKNOWN; /* it will be closed soon, and its number reused */
        } else if (operation->tried != NO_SOCKET && operation->kind == IO_READ) {
            *found = uring->recent && !(flags & IORING_CQE_F_SOCK_NONEMPTY) ? DRAINED_SOCKET : SOCKET;
        }
    }
    qj_ac__io_complete(io, operation, result);
}

static bool reap(struct qj_ac_io *io) {
    struct uring *uring = io->uring;
    unsigned head = *uring->cq_head;
    /* Pairs with the kernel's release: completions are written before the tail. */
    unsigned tail = __atomic_load_n(uring->cq_tail, __ATOMIC_ACQUIRE);
    if (head == tail) return false;
    bool wake = false;
    for (; head != tail; head++) {
        struct io_uring_cqe *completion = &uring->completions[head & uring->cq_mask];
        switch (completion->user_data) {
        case NO_REQUEST:
            break;
        case WAKE_REQUEST:
            wake = true;
            break;
        default:
            finish(io, (struct io_operation *)(uintptr_t)completion->user_data, completion->res, completion->flags);
        }
    }
    /* Pairs with the kernel's acquire: the completions are read before they are released. */
    __atomic_store_n(uring->cq_head, head, __ATOMIC_RELEASE);
    if (wake) prepare_wake(uring);
    return true;
}

void qj_ac__uring_submit(struct qj_ac_io *io) {
    while (io->uring->unsubmitted != 0) {
        enter(io->uring, 0, 0);
        if (io->uring->unsubmitted != 0) reap(io);
    }
}

void qj_ac__uring_poll(struct qj_ac_io *io, uint64_t timeout_ns) {
    struct uring *uring = io->uring;
    if (reap(io)) timeout_ns = 0;
    /* No partner: a flag that is seen late is seen in the next round; no other data depends on it. */
    unsigned flags = __atomic_load_n(uring->sq_flags, __ATOMIC_RELAXED);
    bool work = uring->unsubmitted != 0 || (flags & (IORING_SQ_TASKRUN | IORING_SQ_CQ_OVERFLOW)) != 0;
    if (timeout_ns == 0 && !work) return;
    enter(uring, timeout_ns != 0, timeout_ns);
    reap(io);
}
