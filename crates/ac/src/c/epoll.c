/* epoll, for kernels and sandboxes without io_uring: waits until a descriptor is ready and makes the system call then.
 * Several tasks may wait for one descriptor and direction; each tries when it is ready. */
#include "io.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

enum direction { IN, OUT };

/* Who waits for a descriptor. */
struct watched {
    struct io_operation *first[2];
    uint32_t events; /* what the kernel watches for us */
};

struct epoll {
    int set;
    struct watched *table; /* by descriptor */
    size_t table_count;
    int wake;
};

struct epoll *qj_ac__epoll_open(int wake) {
    struct epoll *epoll = calloc(1, sizeof *epoll);
    if (epoll == NULL) qj_ac__die("out of memory for epoll");
    epoll->set = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = wake};
    if (epoll->set < 0 || epoll_ctl(epoll->set, EPOLL_CTL_ADD, wake, &event) != 0) {
        qj_ac__die("no epoll: %s", strerror(errno));
    }
    epoll->wake = wake;
    return epoll;
}

void qj_ac__epoll_close(struct epoll *epoll) {
    close(epoll->set);
    free(epoll->table);
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

static struct watched *watched_of(struct epoll *epoll, int descriptor) {
    if ((size_t)descriptor >= epoll->table_count) {
        size_t count = 2 * (size_t)descriptor + 64;
        struct watched *table = realloc(epoll->table, count * sizeof *table);
        if (table == NULL) qj_ac__die("out of memory for epoll");
        memset(table + epoll->table_count, 0, (count - epoll->table_count) * sizeof *table);
        epoll->table = table;
        epoll->table_count = count;
    }
    return &epoll->table[descriptor];
}

/* Makes the kernel watch for what is waited for. False where it cannot: regular files are always ready. */
static bool update(struct epoll *epoll, int descriptor) {
    struct watched *watched = watched_of(epoll, descriptor);
    uint32_t events = (watched->first[IN] != NULL ? EPOLLIN : 0) | (watched->first[OUT] != NULL ? EPOLLOUT : 0);
    if (events == watched->events) return true;
    struct epoll_event event = {.events = events, .data.fd = descriptor};
    int how = events == 0 ? EPOLL_CTL_DEL : watched->events == 0 ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    int result = epoll_ctl(epoll->set, how, descriptor, &event);
    /* The descriptor was closed and reused behind our back: the kernel has forgotten it, or has it still. */
    if (result != 0 && errno == ENOENT) result = events == 0 ? 0 : epoll_ctl(epoll->set, EPOLL_CTL_ADD, descriptor, &event);
    if (result != 0 && errno == EEXIST) result = epoll_ctl(epoll->set, EPOLL_CTL_MOD, descriptor, &event);
    if (result != 0 && events != 0) return false;
    watched->events = events;
    return true;
}

static ssize_t start_connect(struct io_operation *operation) {
    int flags = fcntl(operation->descriptor, F_GETFL);
    if (flags < 0) return -errno;
    fcntl(operation->descriptor, F_SETFL, flags | O_NONBLOCK);
    int result = connect(operation->descriptor, operation->buffer, (socklen_t)operation->bytes);
    int error = errno;
    fcntl(operation->descriptor, F_SETFL, flags);
    return result == 0 ? 0 : error == EINPROGRESS ? -EAGAIN : -error;
}

/* The system call itself, on a descriptor that is ready, or may be. */
static ssize_t attempt(struct io_operation *operation) {
    ssize_t result = -1;
    switch (operation->kind) {
    case IO_READ:
        result = recv(operation->descriptor, operation->buffer, operation->bytes, MSG_DONTWAIT);
        if (result < 0 && errno == ENOTSOCK) result = read(operation->descriptor, operation->buffer, operation->bytes);
        break;
    case IO_WRITE:
        result = send(operation->descriptor, operation->buffer, operation->bytes, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (result < 0 && errno == ENOTSOCK) result = write(operation->descriptor, operation->buffer, operation->bytes);
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

void qj_ac__epoll_start(struct qj_ac_io *io, struct io_operation *operation) {
    ssize_t result = operation->descriptor < 0 ? -EBADF : -EAGAIN;
    if (operation->kind == IO_CONNECT && result == -EAGAIN) result = start_connect(operation);
    if (result == -EAGAIN) {
        struct io_operation **first = &watched_of(io->epoll, operation->descriptor)->first[direction_of(operation)];
        operation->next = *first;
        *first = operation;
        if (update(io->epoll, operation->descriptor)) return;
        *first = operation->next;
        result = attempt(operation);
    }
    /* Done without a wait. */
    operation->result = result;
    operation->done = true;
    io->pending--;
}

static void take_out(struct epoll *epoll, struct io_operation *operation) {
    struct io_operation **link = &watched_of(epoll, operation->descriptor)->first[direction_of(operation)];
    while (*link != operation) link = &(*link)->next;
    *link = operation->next;
    update(epoll, operation->descriptor);
}

void qj_ac__epoll_cancel(struct qj_ac_io *io, struct io_operation *operation) {
    take_out(io->epoll, operation);
    qj_ac__io_complete(io, operation, QJ_AC_CANCELED);
}

static void ready(struct qj_ac_io *io, int descriptor, enum direction direction) {
    struct io_operation *operation = watched_of(io->epoll, descriptor)->first[direction];
    if (operation == NULL) return;
    ssize_t result = attempt(operation);
    if (result == -EAGAIN || result == -EINTR) return;
    take_out(io->epoll, operation);
    qj_ac__io_complete(io, operation, result);
    /* Ready for one; for the next the kernel is asked again. */
}

void qj_ac__epoll_poll(struct qj_ac_io *io, uint64_t timeout_ns) {
    struct epoll *epoll = io->epoll;
    struct epoll_event events[256];
    uint64_t timeout_ms = timeout_ns / 1000000 + (timeout_ns % 1000000 != 0);
    int timeout = timeout_ns == UINT64_MAX ? -1 : timeout_ms > 1u << 30 ? 1 << 30 : (int)timeout_ms;
    int count = epoll_wait(epoll->set, events, 256, timeout);
    for (int i = 0; i < count; i++) {
        int descriptor = events[i].data.fd;
        if (descriptor == epoll->wake) {
            uint64_t rung;
            ssize_t bytes = read(descriptor, &rung, sizeof rung);
            (void)bytes;
            continue;
        }
        uint32_t end = EPOLLERR | EPOLLHUP;
        if (events[i].events & (EPOLLIN | end)) ready(io, descriptor, IN);
        if (events[i].events & (EPOLLOUT | end)) ready(io, descriptor, OUT);
    }
}
