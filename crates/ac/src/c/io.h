/* An I/O operation, and the interfaces of the two back ends, io_uring and epoll. */
#ifndef QUAJECT_AC_SRC_IO_H
#define QUAJECT_AC_SRC_IO_H

#include "internal.h"

#include <quaject/ac/io.h>

enum io_kind { IO_READ, IO_WRITE, IO_ACCEPT, IO_CONNECT };

/* On the stack of the task that waits. */
struct io_operation {
    enum io_kind kind;
    int descriptor;
    void *buffer; /* or the address of a peer */
    size_t bytes;
    socklen_t *length;
    ssize_t result;
    bool done;
    bool canceled;  /* io_uring: a cancellation was submitted */
    uint8_t tried;  /* io_uring: the kind of descriptor that was assumed */
    struct qj_ac_task *task;
    struct qj_ac_io *io; /* the I/O that performs it; in a forked child not that of the thread */
    struct io_operation *next; /* epoll: the next operation that waits for the same descriptor and direction */
};

/* A thread's I/O. One of the two back ends is open. */
struct qj_ac_io {
    struct uring *uring;
    struct epoll *epoll;
    unsigned pending;
    int wake; /* eventfd by which other threads end a sleep */
};

/* ---- uring.c ---- */
struct uring *qj_ac__uring_open(int wake);
void qj_ac__uring_close(struct uring *uring);
/* Hands the operation to the kernel; it completes in `qj_ac__uring_poll`. */
void qj_ac__uring_start(struct uring *uring, struct io_operation *operation);
void qj_ac__uring_cancel(struct uring *uring, struct io_operation *operation);
void qj_ac__uring_poll(struct qj_ac_io *io, uint64_t timeout_ns);

/* ---- epoll.c ---- */
struct epoll *qj_ac__epoll_open(int wake);
void qj_ac__epoll_close(struct epoll *epoll);
void qj_ac__epoll_start(struct qj_ac_io *io, struct io_operation *operation);
void qj_ac__epoll_cancel(struct qj_ac_io *io, struct io_operation *operation);
void qj_ac__epoll_poll(struct qj_ac_io *io, uint64_t timeout_ns);

/* ---- io.c ---- */
/* The operation has ended: its task may run. */
void qj_ac__io_complete(struct qj_ac_io *io, struct io_operation *operation, ssize_t result);

#endif
