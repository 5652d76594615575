/* The client of all servers: a connection for each request, several at once, from one thread. Prints requests per
 * second. Arguments: address, port, connections at once, seconds. Fails when an answer has not 200 bytes. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char request[] = "GET /200 HTTP/1.0\r\n\r\n";
static struct sockaddr_in server = {.sin_family = AF_INET};
static int set;
static struct { int socket, asked; size_t got; } calls[64];

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void call(unsigned number)
{
    const int socket_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct epoll_event event = {.events = EPOLLOUT, .data.u32 = number};
    if (socket_ < 0) fail("client: socket");
    calls[number].socket = socket_;
    calls[number].asked = 0;
    calls[number].got = 0;
    if (connect(socket_, (struct sockaddr *)&server, sizeof server) != 0 && errno != EINPROGRESS) fail("client: connect");
    if (epoll_ctl(set, EPOLL_CTL_ADD, socket_, &event) != 0) fail("client: epoll_ctl");
}

int main(int count, char **arguments)
{
    if (count != 5) return 2;
    const unsigned connections = (unsigned)atoi(arguments[3]);
    server.sin_port = htons((uint16_t)atoi(arguments[2]));
    if (connections > 64 || inet_pton(AF_INET, arguments[1], &server.sin_addr) != 1) return 2;
    set = epoll_create1(0);
    for (unsigned i = 0; i < connections; i++) call(i);
    const double start = now(), seconds = atof(arguments[4]);
    unsigned long answers = 0;
    while (now() - start < seconds) {
        struct epoll_event events[64];
        const int ready = epoll_wait(set, events, 64, 10000);
        if (ready <= 0) fail("client: no answer for ten seconds");
        for (int i = 0; i < ready; i++) {
            const unsigned number = events[i].data.u32;
            const int socket_ = calls[number].socket;
            if (!calls[number].asked) {
                struct epoll_event event = {.events = EPOLLIN, .data.u32 = number};
                if (send(socket_, request, sizeof request - 1, MSG_NOSIGNAL) < 0) fail("client: send");
                epoll_ctl(set, EPOLL_CTL_MOD, socket_, &event);
                calls[number].asked = 1;
                continue;
            }
            char answer[4096];
            const ssize_t got = recv(socket_, answer, sizeof answer, 0);
            if (got < 0 && errno == EAGAIN) continue;
            if (got < 0) fail("client: recv");
            calls[number].got += (size_t)got;
            if (got > 0) continue;
            if (calls[number].got != 200) {
                fprintf(stderr, "client: an answer of %zu bytes\n", calls[number].got);
                return 1;
            }
            close(socket_);
            answers++;
            call(number);
        }
    }
    printf("%.1f\n", (double)answers / (now() - start));
    return 0;
}
