/* Input and output that lets other tasks run: io_uring, or epoll where the kernel has none (QJ_AC_IO=epoll asks for it).
 *
 * Buffers may lie on the task's stack: a call returns only when the kernel is done with them, cancelled or not. What a
 * cancelled call has moved is not lost: it returns the bytes, and the next call returns QJ_AC_CANCELED. Each returns what
 * the system call of its name would, with -errno for an error; QJ_AC_CANCELED when the block around is cancelled.
 *
 * With epoll qj_ac_accept() leaves the listener O_NONBLOCK, as it must when others accept from it too.
 *
 * A forked child may use all of them. What was under way when it was forked is its parent's, and never comes in the child. */
#ifndef QUAJECT_AC_IO_H
#define QUAJECT_AC_IO_H

#include <quaject/ac.h>
#include <sys/socket.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

ssize_t qj_ac_read(int descriptor, void *buffer, size_t bytes);
ssize_t qj_ac_write(int descriptor, const void *buffer, size_t bytes);
/* All of it: 0, or an error after which an unknown part is written. */
int qj_ac_write_all(int descriptor, const void *buffer, size_t bytes);
int qj_ac_accept(int listener, struct sockaddr *address, socklen_t *length);
int qj_ac_connect(int socket, const struct sockaddr *address, socklen_t length);
/* The name of what serves this thread: "io_uring" or "epoll". */
const char *qj_ac_io_backend(void);

#ifdef __cplusplus
}
#endif

#endif
