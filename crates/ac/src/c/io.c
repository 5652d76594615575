/* Input and output: the calls, their cancellation, and the choice between io_uring and epoll.
 *
 * Fault injection for tests: QJ_AC_IO_FAULTS=SEED shortens reads and writes at random, as networks do, and
 * QJ_AC_IO_CANCELS=SEED cancels the enclosing block of random calls. */
#include "io.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define CONNECT_AGAIN_NS 1000000u
/* Beyond any possible descriptor. */
#define DESCRIPTORS_MAX (1 << 24)

/* States of the random number generators; 0: no fault injection. */
static __thread uint64_t faults, cancels;

static uint64_t seed_of(const char *variable) {
    const char *text = getenv(variable);
    return text != NULL ? strtoull(text, NULL, 10) * 2 + 1 : 0;
}

/* A forked child shares ring, epoll set and eventfd with its parent, and must not use them: it forgets them, and opens
 * new ones when needed. Operations that its tasks wait for belong to the parent and never complete here; they can be
 * cancelled. The memory of `io` is leaked, so that its address is not reused. */
static void after_fork_in_child(void) {
    struct qj_ac_io *io = qj_ac__thread.io;
    if (io == NULL) return;
    qj_ac__thread.io = NULL;
    if (io->uring != NULL) qj_ac__uring_close(io->uring);
    if (io->epoll != NULL) qj_ac__epoll_close(io->epoll);
    close(io->wake);
}
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static void install_fork_handlers(void) { pthread_atfork(NULL, NULL, after_fork_in_child); }

/* Opens a back end; false, with `errno`, if there is no descriptor or no memory for it. */
static bool open_backend(struct qj_ac_io *io) {
    const char *wanted = getenv("QJ_AC_IO");
    if (wanted != NULL && strcmp(wanted, "epoll") != 0 && strcmp(wanted, "io_uring") != 0) {
        qj_ac__fatal("QJ_AC_IO is `%s`; it may be `io_uring` or `epoll`", wanted);
    }
    if (wanted == NULL || strcmp(wanted, "io_uring") == 0) io->uring = qj_ac__uring_open(io->wake);
    if (io->uring != NULL) return true;
    if (wanted != NULL && strcmp(wanted, "io_uring") == 0 && errno != ENOMEM && errno != EMFILE && errno != ENFILE) {
        qj_ac__fatal("QJ_AC_IO: no io_uring: %s", strerror(errno));
    }
    if (wanted == NULL || strcmp(wanted, "epoll") == 0) io->epoll = qj_ac__epoll_open(io->wake);
    return io->epoll != NULL;
}

/* The thread's I/O; null, with `errno`, if there is no descriptor or no memory for it. */
static struct qj_ac_io *io_of(struct qj_ac_runtime *runtime) {
    if (runtime->io != NULL) return runtime->io;
    pthread_once(&fork_once, install_fork_handlers);
    struct qj_ac_io *io = calloc(1, sizeof *io);
    if (io == NULL) return NULL;
    io->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (io->wake < 0 || !open_backend(io)) {
        int error = errno;
        if (io->wake >= 0) close(io->wake);
        free(io);
        errno = error;
        return NULL;
    }
    faults = seed_of("QJ_AC_IO_FAULTS");
    cancels = seed_of("QJ_AC_IO_CANCELS");
    /* Pairs with the acquire in `qj_ac__io_wake`. */
    __atomic_store_n(&runtime->io, io, __ATOMIC_RELEASE);
    return io;
}

const char *qj_ac_io_backend(void) {
    if (qj_ac__thread.current == &qj_ac__no_task) qj_ac_start();
    const struct qj_ac_io *io = io_of(&qj_ac__thread);
    return io == NULL ? NULL : io->uring != NULL ? "io_uring" : "epoll";
}

bool qj_ac__io_pending(const struct qj_ac_runtime *runtime) { return runtime->io != NULL && runtime->io->pending != 0; }

void qj_ac__io_poll(struct qj_ac_runtime *runtime, uint64_t timeout_ns) {
    if (runtime->io->uring != NULL) {
        qj_ac__uring_poll(runtime->io, timeout_ns);
    } else {
        qj_ac__epoll_poll(runtime->io, timeout_ns);
    }
}

void qj_ac__io_wake(struct qj_ac_runtime *runtime) {
    /* Pairs with the release in `io_of`. */
    struct qj_ac_io *io = __atomic_load_n(&runtime->io, __ATOMIC_ACQUIRE);
    if (io == NULL) return;
    uint64_t one = 1;
    ssize_t written = write(io->wake, &one, sizeof one);
    (void)written;
}

void qj_ac__io_stop(struct qj_ac_runtime *runtime) {
    struct qj_ac_io *io = runtime->io;
    if (io == NULL) return;
    runtime->io = NULL;
    if (io->uring != NULL) qj_ac__uring_close(io->uring);
    if (io->epoll != NULL) qj_ac__epoll_close(io->epoll);
    close(io->wake);
    free(io->calls);
    free(io);
}

void qj_ac__io_complete(struct qj_ac_io *io, struct io_operation *operation, ssize_t result) {
    operation->result = result;
    operation->done = true;
    io->pending--;
    qj_ac__make_runnable(operation->task);
}

static void cancel(void *argument) {
    struct io_operation *operation = argument;
    if (operation->done) return;
    struct qj_ac_io *io = qj_ac__thread.io;
    if (operation->io != io) {
        operation->result = QJ_AC_CANCELED;
        operation->done = true;
        qj_ac__make_runnable(operation->task);
    } else if (io->uring != NULL) {
        qj_ac__uring_cancel(io->uring, operation);
    } else {
        qj_ac__epoll_cancel(io, operation);
    }
}

/* Marsaglia's xorshift. */
static uint64_t random_number(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static size_t shorten(size_t bytes) {
    if (faults == 0 || bytes < 2) return bytes;
    uint64_t number = random_number(&faults);
    return number % 3 == 0 ? bytes : 1 + (number >> 8) % bytes;
}

/* One operation in 64 is cancelled: immediately, as soon as the kernel processes it, or up to a millisecond later.
 * Connections are made and closed by other calls, whose blocks last as long as the server: those are not cancelled. */
static void cancel_at_random(const struct io_operation *operation) {
    struct qj_ac_finish *block = operation->task->finish;
    if (block == NULL || operation->kind == IO_ACCEPT || operation->kind == IO_CONNECT) return;
    uint64_t number = random_number(&cancels);
    switch (number % 192) {
    case 0:
        qj_ac_cancel(block);
        break;
    case 1:
        qj_ac_deadline(block, 0);
        break;
    case 2:
        qj_ac_deadline(block, (number >> 8) % 1000000);
        break;
    default:
        break;
    }
}

/* Calls on numbers that are no descriptors fail at once, and are not recorded. */
static bool is_recorded(const struct io_operation *operation) {
    return operation->descriptor >= 0 && operation->descriptor <= DESCRIPTORS_MAX;
}

/* False if there is no memory for it. */
static bool record_call(struct qj_ac_io *io, struct io_operation *operation) {
    if (!is_recorded(operation)) return true;
    size_t index = (size_t)operation->descriptor;
    if (index >= io->calls_count) {
        size_t count = 2 * index + 64;
        struct io_operation **calls = realloc(io->calls, count * sizeof *calls);
        if (calls == NULL) return false;
        memset(calls + io->calls_count, 0, (count - io->calls_count) * sizeof *calls);
        io->calls = calls;
        io->calls_count = count;
    }
    struct io_operation *next = io->calls[index];
    operation->same_prev = NULL;
    operation->same_next = next;
    if (next != NULL) next->same_prev = operation;
    io->calls[index] = operation;
    return true;
}

static void remove_call(const struct io_operation *operation) {
    if (!is_recorded(operation)) return;
    if (operation->same_next != NULL) operation->same_next->same_prev = operation->same_prev;
    if (operation->same_prev != NULL) {
        operation->same_prev->same_next = operation->same_next;
    } else {
        operation->io->calls[operation->descriptor] = operation->same_next;
    }
}

/* The descriptor was closed during the call, and its number may be another file's by now: the caller gets an error even
 * if data was transferred, so that it does not go on with the number. */
static ssize_t result_of_closed(const struct io_operation *operation, const struct qj_ac_cancel_item *item) {
    if (operation->kind == IO_ACCEPT && operation->result >= 0) close((int)operation->result);
    return item->ran ? QJ_AC_CANCELED : -EBADF;
}

/* Starts the operation and waits until the kernel has completed it, even if it is cancelled. */
static ssize_t perform(struct io_operation *operation) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (runtime->current == &qj_ac__no_task) qj_ac_start();
    qj_ac__check_stack(runtime);
    struct qj_ac_io *io = io_of(runtime);
    if (QJ_AC_UNLIKELY(io == NULL)) return -errno;
    struct qj_ac_cancel_item item;
    operation->task = runtime->current;
    operation->io = io;
    operation->done = operation->canceled = operation->closed = false;
    if (QJ_AC_UNLIKELY(cancels != 0)) cancel_at_random(operation);
    if (qj_ac_cancel_item_add(&item, cancel, operation) != 0) return QJ_AC_CANCELED;
    if (QJ_AC_UNLIKELY(!record_call(io, operation))) {
        qj_ac_cancel_item_remove(&item);
        return -ENOMEM;
    }
    io->pending++;
    if (io->uring != NULL) {
        qj_ac__uring_start(io->uring, operation);
    } else {
        qj_ac__epoll_start(io, operation);
    }
    if (!operation->done) {
        qj_ac__poller_wanted(runtime);
        /* A directed yield may resume this task early, while the operation is still in progress. */
        while (!operation->done) qj_ac_suspend();
    }
    qj_ac_cancel_item_remove(&item);
    remove_call(operation);
    return QJ_AC_LIKELY(!operation->closed) ? operation->result : result_of_closed(operation, &item);
}

ssize_t qj_ac_read(int descriptor, void *buffer, size_t bytes) {
    struct io_operation operation = {
        .kind = IO_READ, .descriptor = descriptor, .buffer = buffer, .bytes = shorten(bytes)};
    return perform(&operation);
}

ssize_t qj_ac_write(int descriptor, const void *buffer, size_t bytes) {
    struct io_operation operation = {
        .kind = IO_WRITE, .descriptor = descriptor, .buffer = (void *)(uintptr_t)buffer, .bytes = shorten(bytes)};
    return perform(&operation);
}

int qj_ac_write_all(int descriptor, const void *buffer, size_t bytes) {
    const char *rest = buffer;
    while (bytes > 0) {
        ssize_t written = qj_ac_write(descriptor, rest, bytes);
        if (written < 0) return (int)written;
        rest += written;
        bytes -= (size_t)written;
    }
    return 0;
}

int qj_ac_accept(int listener, struct sockaddr *address, socklen_t *length) {
    struct io_operation operation = {.kind = IO_ACCEPT, .descriptor = listener, .buffer = address, .length = length};
    return (int)perform(&operation);
}

int qj_ac_connect(int socket, const struct sockaddr *address, socklen_t length) {
    for (;;) {
        struct io_operation operation = {
            .kind = IO_CONNECT, .descriptor = socket, .buffer = (void *)(uintptr_t)address, .bytes = length};
        int result = (int)perform(&operation);
        /* The backlog of a local socket is full. The kernel does not report when it has room again. */
        if (result != -EAGAIN) return result;
        if (qj_ac_sleep(CONNECT_AGAIN_NS) != 0) return QJ_AC_CANCELED;
    }
}

int qj_ac_close(int descriptor) {
    struct qj_ac_io *io = qj_ac__thread.io;
    if (io == NULL) return close(descriptor) == 0 ? 0 : -errno;
    /* What is not submitted would be performed on the next file of this number. */
    if (io->uring != NULL) qj_ac__uring_submit(io);
    struct io_operation *operation =
        descriptor >= 0 && (size_t)descriptor < io->calls_count ? io->calls[descriptor] : NULL;
    for (; operation != NULL; operation = operation->same_next) {
        if (!operation->closed && !operation->canceled) cancel(operation);
        operation->closed = true;
    }
    /* Operations hold the file: once they are cancelled, the port of a listener is free. */
    if (io->uring != NULL) {
        qj_ac__uring_submit(io);
    } else {
        qj_ac__epoll_forget(io->epoll, descriptor);
    }
    return close(descriptor) == 0 ? 0 : -errno;
}
