/* A connection that another takes between its event and accept: the late task goes on waiting, and lets the other tasks
 * of the thread run. Linked with --wrap=accept4, for epoll. */
#define _GNU_SOURCE
#include <quaject/ac/io.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static int stolen, turns;

int __real_accept4(int listener, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int listener, struct sockaddr *address, socklen_t *length, int flags);
int __wrap_accept4(int listener, struct sockaddr *address, socklen_t *length, int flags) {
    if (stolen++ == 0) close(__real_accept4(listener, address, length, flags));
    return __real_accept4(listener, address, length, flags);
}

static void accepts(int listener) {
    int connection = qj_ac_accept(listener, NULL, NULL);
    CHECK(connection >= 0);
    close(connection);
}
static void connects(const struct sockaddr_in *address) {
    int client = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(qj_ac_connect(client, (const struct sockaddr *)address, sizeof *address) == 0);
    close(client);
}

int main(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 4) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    alarm(1200);
    DO_FINISH({
        ASYNC_CALL(accepts, listener);
        ASYNC_CALL(connects, &address);
        while (stolen == 0) qj_ac_sleep(1000000);
        for (; turns < 10; turns++) qj_ac_sleep(1000000);
        CHECK(stolen >= 1);
        ASYNC_CALL(connects, &address);
    });
    printf("%d turns\n", turns);
    return 0;
}
