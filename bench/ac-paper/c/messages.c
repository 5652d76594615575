/* Table 4: messages between two processors, one at a time and many in flight, through tasks and through rings alone.
 * The callee adds one to a number: a loop over the rings, or one over the channel's calls. It is a thread, or a
 * process. */
#define _GNU_SOURCE
#include "tsc.h"
#include <quaject/ac/ipc.h>

#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define LOG2 8
#define RESPONSE 2u

enum callee { STOPPED, OVER_RINGS, OVER_CALLS, LEAVES };
#define CALLEES 4
/* In memory that the callee's process shares: what it is to be, with the number of the order. */
struct control {
    _Alignas(128) int wanted;
    _Alignas(128) int obeyed;
};

static struct control *control;
static int memory = -1;
static struct qj_ac_channel channel;
static pthread_t thread;
static pid_t process;

void messages_pin(int processor) {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(processor, &set);
    CHECK(sched_setaffinity(0, sizeof set, &set) == 0);
}

static void over_rings(struct qj_ac_channel *c) {
    struct qj_ring_message message;
    if (qj_ring_sc_pop(&c->in, &message) != QJ_RING_OK) return;
    message.words[0] = (message.words[0] & 0xffffffff00000000) | RESPONSE;
    message.words[1]++;
    while (qj_ring_sp_push(&c->out, &message) != QJ_RING_OK) __builtin_ia32_pause();
}

static void over_calls(struct qj_ac_channel *c) {
    struct qj_ac_message message;
    uint32_t cookie;
    if (qj_ac_poll_recv(c, &message, &cookie) != 0) return;
    message.words[0]++;
    CHECK(qj_ac_reply(c, cookie, &message) == 0);
}

static void *answer(void *argument) {
    (void)argument;
    struct qj_ac_channel c;
    /* On a line that the caller does not write. */
    struct control *const orders = control;
    messages_pin(1);
    CHECK(qj_ac_channel_open(&c, memory, LOG2, 1) == 0);
    for (;;) {
        int wanted = __atomic_load_n(&orders->wanted, __ATOMIC_RELAXED);
        if (wanted != orders->obeyed) __atomic_store_n(&orders->obeyed, wanted, __ATOMIC_RELEASE);
        switch ((enum callee)(wanted % CALLEES)) {
        case OVER_RINGS:
            over_rings(&c);
            break;
        case OVER_CALLS:
            over_calls(&c);
            break;
        case STOPPED:
            usleep(1000);
            break;
        case LEAVES:
            qj_ac_channel_close(&c);
            return NULL;
        }
    }
}

/* Returns when the callee has obeyed: it runs at this moment. */
static void want(enum callee callee) {
    static int orders;
    int wanted = ++orders * CALLEES + (int)callee;
    __atomic_store_n(&control->wanted, wanted, __ATOMIC_RELAXED);
    while (__atomic_load_n(&control->obeyed, __ATOMIC_ACQUIRE) != wanted) sched_yield();
}

void messages_start(int another_process) {
    messages_pin(0);
    control = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    memory = qj_ac_channel_memory(LOG2);
    CHECK(control != MAP_FAILED && memory >= 0);
    process = 0;
    if (another_process) {
        process = fork();
        CHECK(process >= 0);
        if (process == 0) {
            answer(NULL);
            _exit(0);
        }
    } else {
        CHECK(pthread_create(&thread, NULL, answer, NULL) == 0);
    }
    CHECK(qj_ac_channel_open(&channel, memory, LOG2, 0) == 0);
}

void messages_stop(void) {
    want(LEAVES);
    if (process != 0) {
        CHECK(waitpid(process, NULL, 0) == process);
    } else {
        pthread_join(thread, NULL);
    }
    qj_ac_channel_close(&channel);
    close(memory);
    munmap(control, 4096);
}

/* ---- callers; each sends `n` messages and returns the cycles ---- */

static void push(uint64_t value) {
    struct qj_ring_message message = {{0, value}};
    while (qj_ring_sp_push(&channel.out, &message) != QJ_RING_OK) {}
}
static bool pop(uint64_t *value) {
    struct qj_ring_message message;
    if (qj_ring_sc_pop(&channel.in, &message) != QJ_RING_OK) return false;
    *value = message.words[1];
    return true;
}

uint64_t messages_rings(long n, long window) {
    want(OVER_RINGS);
    uint64_t start = tsc(), sum = 0, value;
    long in = 0;
    for (long sent = 0; in < n;) {
        if (sent < n && sent - in < window) {
            push((uint64_t)sent++);
        } else if (pop(&value)) {
            sum += value;
            in++;
        }
    }
    uint64_t cycles = tsc() - start;
    CHECK(sum == (uint64_t)n * (uint64_t)(n + 1) / 2);
    return cycles;
}

static long out;
static uint64_t total;
static void ask(uint64_t value) {
    struct qj_ac_message message = {{value}};
    CHECK(qj_ac_call(&channel, &message, &message) == 0);
    total += message.words[0];
    out--;
}
static __attribute__((always_inline)) inline void poll(void) {
    struct qj_ac_message message;
    uint32_t cookie;
    CHECK(qj_ac_poll_recv(&channel, &message, &cookie) == -EWOULDBLOCK);
}

static uint64_t calls(long n, long window) {
    uint64_t start = tsc();
    total = 0;
    DO_FINISH({
        for (uint64_t i = 0; i < (uint64_t)n; i++) {
            while (out >= window) poll();
            out++;
            ASYNC_CALL(ask, i);
        }
        while (out > 0) poll();
        /* Gives the last slots back, which the rings alone would wait for. */
        poll();
    });
    uint64_t cycles = tsc() - start;
    CHECK(total == (uint64_t)n * (uint64_t)(n + 1) / 2);
    return cycles;
}
/* Tasks here, the rings alone there: the caller's cost. */
uint64_t messages_calls(long n, long window) {
    want(OVER_RINGS);
    return calls(n, window);
}
/* The channel's calls on both sides. */
uint64_t messages_calls_both(long n, long window) {
    want(OVER_CALLS);
    return calls(n, window);
}

/* A pair of sockets, for comparison; the callee is a thread of its own. */
static void *answer_socket(void *argument) {
    int socket = *(int *)argument;
    messages_pin(1);
    uint64_t value;
    while (read(socket, &value, sizeof value) == sizeof value) {
        value++;
        if (write(socket, &value, sizeof value) != sizeof value) break;
    }
    return NULL;
}
uint64_t messages_sockets(long n, long window) {
    int ends[2];
    pthread_t callee;
    want(STOPPED);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends) == 0);
    CHECK(pthread_create(&callee, NULL, answer_socket, &ends[1]) == 0);
    uint64_t start = tsc(), sum = 0;
    long in = 0;
    for (long sent = 0; in < n;) {
        uint64_t value = (uint64_t)sent;
        if (sent < n && sent - in < window) {
            CHECK(write(ends[0], &value, sizeof value) == sizeof value);
            sent++;
        } else {
            CHECK(read(ends[0], &value, sizeof value) == sizeof value);
            sum += value;
            in++;
        }
    }
    uint64_t cycles = tsc() - start;
    CHECK(sum == (uint64_t)n * (uint64_t)(n + 1) / 2);
    close(ends[0]);
    pthread_join(callee, NULL);
    close(ends[1]);
    return cycles;
}
