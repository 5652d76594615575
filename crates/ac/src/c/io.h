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
    bool closed;    /* its descriptor was closed by `qj_ac_close` */
    struct qj_ac_task *task;
    struct qj_ac_io *io; /* the I/O that performs it; in a forked child not that of the thread */
    struct io_operation *next; /* epoll: the next operation that waits for the same descriptor and direction */
    struct io_operation *same_next, *same_prev; /* all operations on the descriptor whose calls have not returned */
};

/* A thread's I/O. One of the two back ends is open. */
struct qj_ac_io {
    struct uring *uring;
    struct epoll *epoll;
    unsigned pending;
    struct io_operation **calls; /* by descriptor: the newest of its operations whose calls have not returned */
    size_t calls_count;
    int wake; /* eventfd by which other threads end a sleep */
};

/* ---- uring.c ---- */
/* Null, with `errno`, if it cannot be opened. */
struct uring *qj_ac__uring_open(int wake);
void qj_ac__uring_close(struct uring *uring);
/* Hands the operation to the kernel; it completes in `qj_ac__uring_poll`. */
void qj_ac__uring_start(struct uring *uring, struct io_operation *operation);
void qj_ac__uring_cancel(struct uring *uring, struct io_operation *operation);
/* Hands everything that is prepared to the kernel. */
void qj_ac__uring_submit(struct qj_ac_io *io);
void qj_ac__uring_poll(struct qj_ac_io *io, uint64_t timeout_ns);

/* ---- epoll.c ---- */
/* Null, with `errno`, if it cannot be opened. */
struct epoll *qj_ac__epoll_open(int wake);
void qj_ac__epoll_close(struct epoll *epoll);
void qj_ac__epoll_start(struct qj_ac_io *io, struct io_operation *operation);
void qj_ac__epoll_cancel(struct qj_ac_io *io, struct io_operation *operation);
/* Drops the registration of a descriptor that is about to be closed, and for which no operation waits. */
void qj_ac__epoll_forget(struct epoll *epoll, int descriptor);
void qj_ac__epoll_poll(struct qj_ac_io *io, uint64_t timeout_ns);

/* ---- io.c ---- */
/* The operation has ended: its task may run. */
void qj_ac__io_complete(struct qj_ac_io *io, struct io_operation *operation, ssize_t result);

#endif
