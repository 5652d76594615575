/* The epoll back end, for kernels and sandboxes without io_uring. Several tasks may wait for one descriptor and
 * direction.
 *
 * Reads and writes of sockets are tried first. If one would block, the descriptor is registered edge-triggered, once,
 * for both directions, and the registration stays. Other descriptors and operations (pipes, files, accept, connect)
 * could block in the kernel when they are tried, so they are registered level-triggered while a task waits, and tried
 * when they are ready.
 *
 * The kernel drops a registration when the last descriptor of the open file description is closed; the library is not
 * notified, and the same number may later be a socket that is not registered. So a wait that relies on an old
 * registration is marked doubtful, and is registered again after some time. */
#include "io.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

enum direction { IN, OUT };

/* The operations that wait for a descriptor. */
struct descriptor_state {
    struct io_operation *first[2];
    uint32_t events; /* the registered events, if the descriptor is still the same file */
    bool doubted;    /* is in `doubts` */
};

/* A socket's registration. */
#define EDGES (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET)
/* How long a registration stays doubtful. */
#define DOUBT_NS 1000000u
/* The maximum of consecutive operations without a wait before other tasks run. */
#define AT_ONCE_IN_A_ROW 32

struct epoll {
    int set;
    struct descriptor_state *table; /* by descriptor */
    size_t table_count;
    int *doubts; /* descriptors; room for `table_count` */
    size_t doubt_count;
    uint64_t doubt_ends_ns; /* while `doubt_count` is not 0: when the oldest doubt is resolved */
    unsigned at_once;
    bool coarse;            /* the kernel, or a sandbox, has no epoll_pwait2 */
    int wake;
};

struct epoll *qj_ac__epoll_open(int wake) {
    struct epoll *epoll = calloc(1, sizeof *epoll);
    if (epoll == NULL) return NULL;
    epoll->set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = wake};
    if (epoll->set < 0 || epoll_ctl(epoll->set, EPOLL_CTL_ADD, wake, &event) != 0) {
        int error = errno;
        if (epoll->set >= 0) close(epoll->set);
        free(epoll);
        errno = error;
        return NULL;
    }
    epoll->wake = wake;
    return epoll;
}

void qj_ac__epoll_close(struct epoll *epoll) {
    close(epoll->set);
    free(epoll->table);
    free(epoll->doubts);
    free(epoll);
}

static enum direction direction_of(const struct io_operation *operation) {
    switch (operation->kind) {
    case IO_READ:
    case IO_ACCEPT:
        return IN;
    case IO_WRITE:
    case IO_CONNECT:
        return OUT;
    }
    return IN;
}

/* Makes room for the state of a descriptor for which an operation is about to wait; false if there is no memory. */
static bool reserve(struct epoll *epoll, int descriptor) {
    if ((size_t)descriptor < epoll->table_count) return true;
    size_t count = 2 * (size_t)descriptor + 64;
    int *doubts = realloc(epoll->doubts, count * sizeof *doubts);
    if (doubts == NULL) return false;
    epoll->doubts = doubts;
    struct descriptor_state *table = realloc(epoll->table, count * sizeof *table);
    if (table == NULL) return false;
    memset(table + epoll->table_count, 0, (count - epoll->table_count) * sizeof *table);
    epoll->table = table;
    epoll->table_count = count;
    return true;
}

static struct descriptor_state *descriptor_state_of(struct epoll *epoll, int descriptor) { return &epoll->table[descriptor]; }

static bool register_edges(struct epoll *epoll, int descriptor) {
    struct epoll_event event = {.events = EDGES, .data.fd = descriptor};
    int result = epoll_ctl(epoll->set, EPOLL_CTL_ADD, descriptor, &event);
    /* It is registered already: a modification makes the kernel check its state again. */
    if (result != 0 && errno == EEXIST) result = epoll_ctl(epoll->set, EPOLL_CTL_MOD, descriptor, &event);
    descriptor_state_of(epoll, descriptor)->events = result == 0 ? EDGES : 0;
    return result == 0;
}

static void mark_doubtful(struct epoll *epoll, int descriptor) {
    struct descriptor_state *state = descriptor_state_of(epoll, descriptor);
    if (state->doubted) return;
    state->doubted = true;
    if (epoll->doubt_count == 0) epoll->doubt_ends_ns = qj_ac__now_ns() + DOUBT_NS;
    epoll->doubts[epoll->doubt_count++] = descriptor;
}

static void renew_doubtful(struct epoll *epoll) {
    while (epoll->doubt_count > 0) {
        int descriptor = epoll->doubts[--epoll->doubt_count];
        struct descriptor_state *state = descriptor_state_of(epoll, descriptor);
        state->doubted = false;
        if (state->events == EDGES && (state->first[IN] != NULL || state->first[OUT] != NULL)) {
            register_edges(epoll, descriptor);
        }
    }
}

/* Registers the descriptor level-triggered for what is waited for. False if that is impossible: regular files are
 * always ready. */
static bool update(struct epoll *epoll, int descriptor) {
    struct descriptor_state *state = descriptor_state_of(epoll, descriptor);
    uint32_t events = (state->first[IN] != NULL ? EPOLLIN : 0) | (state->first[OUT] != NULL ? EPOLLOUT : 0);
    if (events == state->events) return true;
    struct epoll_event event = {.events = events, .data.fd = descriptor};
    int how = events == 0 ? EPOLL_CTL_DEL : state->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    int result = epoll_ctl(epoll->set, how, descriptor, &event);
    /* The descriptor was closed and reused: the kernel has dropped the registration, or still has it. */
    if (result != 0 && errno == ENOENT) result = events == 0 ? 0 : epoll_ctl(epoll->set, EPOLL_CTL_ADD, descriptor, &event);
    if (result != 0 && errno == EEXIST) result = epoll_ctl(epoll->set, EPOLL_CTL_MOD, descriptor, &event);
    if (result != 0 && events != 0) return false;
    state->events = events;
    return true;
}

/* 0, an error, or -EINPROGRESS if the connection is being established. */
static ssize_t start_connect(struct io_operation *operation) {
    int flags = fcntl(operation->descriptor, F_GETFL);
    if (flags < 0) return -errno;
    fcntl(operation->descriptor, F_SETFL, flags | O_NONBLOCK);
    int result = connect(operation->descriptor, operation->buffer, (socklen_t)operation->bytes);
    int error = errno;
    fcntl(operation->descriptor, F_SETFL, flags);
    return result == 0 ? 0 : -error;
}

/* Of several tasks that wait for a listener, in other threads or processes, one gets the connection; the others must
 * not block in the kernel for the next one. accept has no non-blocking form, so O_NONBLOCK is set on the listener and
 * stays set. */
static ssize_t start_accept(struct io_operation *operation) {
    int flags = fcntl(operation->descriptor, F_GETFL);
    if (flags < 0) return -errno;
    if (!(flags & O_NONBLOCK)) fcntl(operation->descriptor, F_SETFL, flags | O_NONBLOCK);
    return -EAGAIN;
}

/* A read or write that does not block; -ENOTSOCK for a descriptor that is no socket. */
static ssize_t try_socket(const struct io_operation *operation) {
    for (;;) {
        ssize_t result = operation->kind == IO_READ
                             ? recv(operation->descriptor, operation->buffer, operation->bytes, MSG_DONTWAIT)
                             : send(operation->descriptor, operation->buffer, operation->bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (result >= 0) return result;
        if (errno != EINTR) return -errno;
    }
}

/* Makes the system call on a descriptor that is ready, or may be. */
static ssize_t attempt(struct io_operation *operation) {
    ssize_t result = -1;
    switch (operation->kind) {
    case IO_READ:
        result = try_socket(operation);
        if (result != -ENOTSOCK) return result;
        result = read(operation->descriptor, operation->buffer, operation->bytes);
        break;
    case IO_WRITE:
        result = try_socket(operation);
        if (result != -ENOTSOCK) return result;
        result = write(operation->descriptor, operation->buffer, operation->bytes);
        break;
    case IO_ACCEPT:
        result = accept4(operation->descriptor, operation->buffer, operation->length, SOCK_CLOEXEC);
        break;
    case IO_CONNECT: {
        int error = 0;
        socklen_t length = sizeof error;
        if (getsockopt(operation->descriptor, SOL_SOCKET, SO_ERROR, &error, &length) != 0) return -errno;
        return -error;
    }
    }
    return result >= 0 ? result : -errno;
}

static void add_waiter(struct epoll *epoll, struct io_operation *operation) {
    struct io_operation **first = &descriptor_state_of(epoll, operation->descriptor)->first[direction_of(operation)];
    operation->next = *first;
    *first = operation;
}

static void remove_waiter(struct epoll *epoll, struct io_operation *operation) {
    struct io_operation **link = &descriptor_state_of(epoll, operation->descriptor)->first[direction_of(operation)];
    while (*link != operation) link = &(*link)->next;
    *link = operation->next;
}

/* Tries the operation, or registers the descriptor edge-triggered: -EAGAIN if the operation has to wait. */
static ssize_t start_on_socket(struct epoll *epoll, struct io_operation *operation) {
    ssize_t result = try_socket(operation);
    if (result != -EAGAIN) return result;
    if (!reserve(epoll, operation->descriptor)) return -ENOMEM;
    if (descriptor_state_of(epoll, operation->descriptor)->events == EDGES) {
        mark_doubtful(epoll, operation->descriptor);
    } else if (!register_edges(epoll, operation->descriptor)) {
        return -errno;
    }
    add_waiter(epoll, operation);
    return -EAGAIN;
}

/* Registers the descriptor level-triggered: -EAGAIN if the operation has to wait. */
static ssize_t start_on_level(struct epoll *epoll, struct io_operation *operation) {
    if (!reserve(epoll, operation->descriptor)) return -ENOMEM;
    add_waiter(epoll, operation);
    if (update(epoll, operation->descriptor)) return -EAGAIN;
    remove_waiter(epoll, operation);
    return attempt(operation);
}

void qj_ac__epoll_start(struct qj_ac_io *io, struct io_operation *operation) {
    struct epoll *epoll = io->epoll;
    ssize_t result = -EBADF;
    bool waits = false;
    if (operation->descriptor >= 0) {
        switch (operation->kind) {
        case IO_READ:
        case IO_WRITE:
            result = start_on_socket(epoll, operation);
            if (result == -ENOTSOCK) result = start_on_level(epoll, operation);
            waits = result == -EAGAIN;
            break;
        case IO_CONNECT:
            result = start_connect(operation);
            /* A local socket whose backlog is full: see `qj_ac_connect`. */
            if (result == -EAGAIN) break;
            if (result == -EINPROGRESS) result = start_on_level(epoll, operation);
            waits = result == -EAGAIN;
            break;
        case IO_ACCEPT:
            result = start_accept(operation);
            if (result == -EAGAIN) result = start_on_level(epoll, operation);
            waits = result == -EAGAIN;
            break;
        }
        if (waits) {
            epoll->at_once = 0;
            return;
        }
    }
    operation->result = result;
    operation->done = true;
    io->pending--;
    /* Completed without a wait; a peer that always has data must not starve the other tasks. */
    if (++epoll->at_once % AT_ONCE_IN_A_ROW == 0 || qj_ac__poll_is_due(&qj_ac__thread)) qj_ac_yield();
}

/* Ends a wait. Edge-triggered registrations stay. */
static void end_wait(struct epoll *epoll, struct io_operation *operation) {
    remove_waiter(epoll, operation);
    if (descriptor_state_of(epoll, operation->descriptor)->events != EDGES) update(epoll, operation->descriptor);
}

void qj_ac__epoll_cancel(struct qj_ac_io *io, struct io_operation *operation) {
    end_wait(io->epoll, operation);
    qj_ac__io_complete(io, operation, QJ_AC_CANCELED);
}

void qj_ac__epoll_forget(struct epoll *epoll, int descriptor) {
    if (descriptor < 0 || (size_t)descriptor >= epoll->table_count) return;
    struct descriptor_state *state = &epoll->table[descriptor];
    /* Another descriptor may keep the file open, and its registration. */
    if (state->events != 0) epoll_ctl(epoll->set, EPOLL_CTL_DEL, descriptor, NULL);
    state->events = 0;
}

static void complete_ready(struct qj_ac_io *io, int descriptor, enum direction direction) {
    struct descriptor_state *state = descriptor_state_of(io->epoll, descriptor);
    struct io_operation *operation;
    while ((operation = state->first[direction]) != NULL) {
        ssize_t result = attempt(operation);
        if (result == -EAGAIN || result == -EINTR) return;
        end_wait(io->epoll, operation);
        qj_ac__io_complete(io, operation, result);
        /* An edge is reported once, so every waiter tries. A level is reported again while it lasts. */
        if (state->events != EDGES) return;
    }
}

/* Waits in nanoseconds where the kernel can (Linux 5.11), otherwise in milliseconds, rounded up. */
static int wait_for_events(struct epoll *epoll, struct epoll_event *events, int room, uint64_t timeout_ns) {
#ifdef SYS_epoll_pwait2
    if (!epoll->coarse && timeout_ns != 0 && timeout_ns != UINT64_MAX) {
        struct {
            int64_t seconds, nanoseconds;
        } timeout = {(int64_t)(timeout_ns / 1000000000u), (int64_t)(timeout_ns % 1000000000u)};
        long count = syscall(SYS_epoll_pwait2, epoll->set, events, room, &timeout, NULL, (size_t)0);
        if (count >= 0 || errno == EINTR) return (int)count;
        epoll->coarse = true;
    }
#endif
    uint64_t timeout_ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
    int timeout = timeout_ns == UINT64_MAX ? -1 : timeout_ms > 1u << 30 ? 1 << 30 : (int)timeout_ms;
    return epoll_wait(epoll->set, events, room, timeout);
}

void qj_ac__epoll_poll(struct qj_ac_io *io, uint64_t timeout_ns) {
    struct epoll *epoll = io->epoll;
    struct epoll_event events[256];
    if (epoll->doubt_count > 0 && timeout_ns > DOUBT_NS) timeout_ns = DOUBT_NS;
    int count = wait_for_events(epoll, events, 256, timeout_ns);
    if (epoll->doubt_count > 0 && qj_ac__now_ns() >= epoll->doubt_ends_ns) renew_doubtful(epoll);
    for (int i = 0; i < count; i++) {
        int descriptor = events[i].data.fd;
        if (descriptor == epoll->wake) {
            uint64_t rung;
            ssize_t bytes = read(descriptor, &rung, sizeof rung);
            (void)bytes;
            continue;
        }
        uint32_t end = EPOLLERR | EPOLLHUP;
        if (events[i].events & (EPOLLIN | EPOLLRDHUP | end)) complete_ready(io, descriptor, IN);
        if (events[i].events & (EPOLLOUT | end)) complete_ready(io, descriptor, OUT);
    }
}
