/* Writes without a reader: to a socket, local or TCP, -EPIPE and no signal; to a pipe -EPIPE and SIGPIPE, as write(2)
 * does. Other threads of a program with the default action of the signal would be ended by it. */
#include <quaject/ac/io.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static volatile sig_atomic_t signals;
static void on_signal(int signal) { (void)signal, signals++; }

static char big[1 << 20];
/* How the writes end, of which the first ones may still find room, or a peer that has not refused yet. */
static ssize_t write_until_error(int end) {
    ssize_t result;
    do {
        result = qj_ac_write(end, big, sizeof big);
    } while (result > 0);
    return result;
}

static void local(void) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    close(ends[1]);
    CHECK(write_until_error(ends[0]) == -EPIPE && write_until_error(ends[0]) == -EPIPE && signals == 0);
    close(ends[0]);
}

static void tcp(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0), end = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 1) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    CHECK(qj_ac_connect(end, (struct sockaddr *)&address, length) == 0);
    close(qj_ac_accept(listener, NULL, NULL));
    close(listener);
    ssize_t result = write_until_error(end);
    CHECK(result == -EPIPE || result == -ECONNRESET);
    CHECK(write_until_error(end) == -EPIPE && signals == 0);
    close(end);
}

static void of_a_pipe(void) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    close(ends[0]);
    CHECK(write_until_error(ends[1]) == -EPIPE && signals == 1);
    signal(SIGPIPE, SIG_IGN);
    CHECK(write_until_error(ends[1]) == -EPIPE && signals == 1);
    close(ends[1]);
}

int main(void) {
    signal(SIGPIPE, on_signal);
    DO_FINISH({ ASYNC_CALL(local); });
    DO_FINISH({ ASYNC_CALL(tcp); });
    DO_FINISH({ ASYNC_CALL(of_a_pipe); });
    printf("only a pipe raises the signal\n");
    return 0;
}
