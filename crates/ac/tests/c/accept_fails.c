/* Linked to a server: its first calls of accept fail, each in another way that passes. Linked with --wrap=accept4, for
 * epoll. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/socket.h>

int __real_accept4(int listener, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int listener, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int listener, struct sockaddr *address, socklen_t *length, int flags) {
    static const int errors[] = {ECONNABORTED, EPROTO, EPERM, ENETDOWN, EHOSTUNREACH, EMFILE, ENFILE, ENOBUFS, ENOMEM, EINTR};
    static unsigned calls;
    if (calls == sizeof errors / sizeof *errors) return __real_accept4(listener, address, length, flags);
    errno = errors[calls++];
    return -1;
}
