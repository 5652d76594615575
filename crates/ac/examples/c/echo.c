/* An echo server, written straight-line: one task per connection, which may live for a day.
 *
 *     cc -O2 echo.c $(pkg-config --cflags --libs quaject-ac) -o echo && ./echo 7000
 */
#include <quaject/ac/io.h>

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DAY_NS (24u * 3600u * (uint64_t)1000000000u)

static void serve(int connection) {
    DO_FINISH_(life, {
        qj_ac_deadline(life, DAY_NS);
        char buffer[4096];
        ssize_t count;
        while ((count = qj_ac_read(connection, buffer, sizeof buffer)) > 0) {
            if (qj_ac_write_all(connection, buffer, (size_t)count) != 0) break;
        }
    });
    close(connection);
}

/* Whether an error of accept is ours. All others come and go: a client has left already, the network is down,
 * descriptors or memory are used up. */
static bool is_final(int error) {
    return error == -EBADF || error == -EINVAL || error == -ENOTSOCK || error == -EOPNOTSUPP || error == -EFAULT ||
           error == QJ_AC_CANCELED;
}

int main(int count, char **arguments) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    address.sin_port = htons((uint16_t)(count > 1 ? atoi(arguments[1]) : 7000));
    socklen_t length = sizeof address;
    signal(SIGPIPE, SIG_IGN);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, length) != 0 || listen(listener, 4096) != 0) {
        perror("echo: cannot listen");
        return 1;
    }
    getsockname(listener, (struct sockaddr *)&address, &length);
    printf("listening on port %d with %s\n", ntohs(address.sin_port), qj_ac_io_backend());
    fflush(stdout);
    DO_FINISH({
        int connection;
        while ((connection = qj_ac_accept(listener, NULL, NULL)) >= 0 || !is_final(connection)) {
            if (connection < 0) {
                qj_ac_sleep(10000000);
                continue;
            }
            setsockopt(connection, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
            ASYNC_CALL(serve, connection);
        }
        fprintf(stderr, "echo: accept: %s\n", strerror(-connection));
    });
    return 1;
}
