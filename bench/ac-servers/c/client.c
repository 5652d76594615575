/* Many connections to one server on the loopback, each with one request out at a time, from one thread. Measures how
 * long each answer takes. Knows of the answers only how many bytes they have. */
#define _GNU_SOURCE
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

struct connection {
    int socket;
    size_t missing; /* bytes of the answer that have not come */
    uint64_t sent_ns;
};

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

void client_pin(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0) fail("sched_setaffinity");
}

/* As many descriptors as the system lets one process have. */
void client_raise_limit(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) fail("getrlimit");
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) fail("setrlimit");
}

static void ask(struct connection *c, const char *request, size_t bytes, size_t answer) {
    c->sent_ns = now_ns();
    c->missing = answer;
    if (send(c->socket, request, bytes, MSG_NOSIGNAL) != (ssize_t)bytes) fail("client: send");
}

static void connect_to(struct connection *c, int port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int on = 1;
    /* Closed by a reset, so that no port waits for its end. */
    struct linger reset = {1, 0};
    c->socket = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->socket < 0) fail("client: socket");
    setsockopt(c->socket, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
    if (connect(c->socket, (struct sockaddr *)&address, sizeof address) != 0) fail("client: connect");
    setsockopt(c->socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* Asks for `seconds` after every client is connected and has had an answer. Writes the nanoseconds of at most `room`
 * answers, and returns how many came; `*elapsed_ns` is how long it took. */
uint64_t client_run(int port, int connections, const char *request, size_t bytes, size_t answer, double seconds,
                    uint64_t *latencies, uint64_t room, uint64_t *elapsed_ns, void (*started)(void)) {
    struct connection *all = calloc((size_t)connections, sizeof *all);
    int set = epoll_create1(EPOLL_CLOEXEC);
    if (all == NULL || set < 0) fail("client");
    for (int i = 0; i < connections; i++) {
        connect_to(&all[i], port);
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &all[i]};
        if (epoll_ctl(set, EPOLL_CTL_ADD, all[i].socket, &event) != 0) fail("client: epoll_ctl");
    }
    uint64_t answers = 0, counted = 0, start = 0, end = UINT64_MAX;
    for (int i = 0; i < connections; i++) ask(&all[i], request, bytes, answer);
    static char buffer[65536];
    for (;;) {
        struct epoll_event events[256];
        int count = epoll_wait(set, events, 256, 10000);
        if (count <= 0) fail("client: no answer for ten seconds");
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            ssize_t got = recv(c->socket, buffer, sizeof buffer, MSG_DONTWAIT);
            if (got < 0 && errno == EAGAIN) continue;
            if (got <= 0 || (size_t)got > c->missing) fail("client: the answer is another");
            c->missing -= (size_t)got;
            if (c->missing != 0) continue;
            uint64_t now = now_ns();
            answers++;
            /* The first answers are those of a server that still accepts. */
            if (start == 0 && answers >= 2 * (uint64_t)connections) {
                start = now;
                end = start + (uint64_t)(seconds * 1e9);
                started();
            } else if (start != 0 && now < end) {
                if (counted < room) latencies[counted] = now - c->sent_ns;
                counted++;
            } else if (start != 0) {
                *elapsed_ns = now - start;
                for (int j = 0; j < connections; j++) close(all[j].socket);
                close(set);
                free(all);
                return counted;
            }
            ask(c, request, bytes, answer);
        }
    }
}
