/* Input and output that lets other tasks run: io_uring, or epoll where the kernel has no io_uring (QJ_AC_IO=epoll
 * selects epoll).
 *
 * Buffers may lie on the task's stack: a call returns only when the kernel no longer uses them, cancelled or not. A
 * cancelled call that has transferred bytes returns their number, and the next call returns QJ_AC_CANCELED. Each
 * returns the result of the system call of its name, -errno for an error, or QJ_AC_CANCELED if the enclosing block is
 * cancelled. Without a descriptor or memory of the library's own for the call the error is -EMFILE, -ENFILE or -ENOMEM.
 *
 * A write to a socket whose peer has closed returns -EPIPE and raises no signal. To a pipe without a reader it raises
 * SIGPIPE as write() does: a program that ignores the signal gets -EPIPE.
 *
 * With epoll qj_ac_accept() leaves the listener O_NONBLOCK, because other processes may accept from it too.
 *
 * A forked child may use all of them. Operations that were in progress at the fork belong to the parent and never
 * complete in the child. */
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
/* Writes all bytes: 0, or an error after which an unknown part is written. */
int qj_ac_write_all(int descriptor, const void *buffer, size_t bytes);
int qj_ac_accept(int listener, struct sockaddr *address, socklen_t *length);
int qj_ac_connect(int socket, const struct sockaddr *address, socklen_t length);
/* Closes the descriptor; calls of this thread's tasks that wait for it return -EBADF. Returns 0, or -errno.
 *
 * Plain close() does not end them: with io_uring they hold the file, with epoll nothing reports that it was closed, and
 * they wait until they are cancelled. Then a call that is made, but not yet handed to the kernel, may also be performed
 * on the next file of the same number. So close with close() only what no task of the thread waits for. What tasks of
 * other threads wait for ends with shutdown(). */
int qj_ac_close(int descriptor);
/* The back end of this thread: "io_uring" or "epoll"; null if there is no descriptor or no memory for either. */
const char *qj_ac_io_backend(void);

#ifdef __cplusplus
}
#endif

#endif
