/* A peer that writes anything anywhere into a channel's memory, before and while our side calls, receives, replies,
 * polls, dispatches, closes and opens: every call ends with an answer that its header names. `malicious ROUNDS`. */
#include <quaject/ac/ipc.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define LOG2 2

static uint64_t *words;
static size_t count;
static atomic_int over;

static uint64_t next(uint64_t *state) {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}
/* Now and then what an honest peer might write: a state of a near lap, a head of a message. */
static uint64_t word(uint64_t *state) {
    uint64_t random = next(state);
    switch (random % 5) {
    case 0: return next(state);
    case 1: return (next(state) % 4) << 16 | (next(state) & 0xffff);
    case 2: return (next(state) % 8) << 16 | (next(state) % 2);
    case 3: return (next(state) % 0x10000) << 48 | (next(state) % 4) << 32 | next(state) % 4;
    default: return next(state) % 3;
    }
}
static void lie(uint64_t *state) { __atomic_store_n(&words[next(state) % count], word(state), __ATOMIC_RELAXED); }
static void *attack(void *argument) {
    uint64_t state = 7;
    while (!atomic_load(&over)) {
        for (int i = 0; i < 50; i++) lie(&state);
        usleep(next(&state) % 50);
    }
    return argument;
}

static struct qj_ac_channel channel;
static long answers, refusals;

static void account(int result) {
    CHECK(result == 0 || result == QJ_AC_CANCELED || result == -EPIPE || result == -EAGAIN || result == -EWOULDBLOCK ||
          result == -EINVAL);
    if (result == 0) answers++;
    else refusals++;
}
static void calls(void) {
    struct qj_ac_message message = {{1}};
    account(qj_ac_call(&channel, &message, &message));
}
static void receives(void) {
    struct qj_ac_message message;
    uint32_t cookie;
    int result = qj_ac_recv(&channel, &message, &cookie);
    account(result);
    if (result == 0) account(qj_ac_reply(&channel, cookie, &message));
}
static void dispatched(struct qj_ac_group_item *item, const struct qj_ac_message *request, uint32_t cookie) {
    account(qj_ac_reply(item->channel, cookie, request));
}
static void dispatches(void) {
    struct qj_ac_group group = {NULL, NULL};
    struct qj_ac_group_item item = {.channel = &channel, .dispatch = dispatched};
    qj_ac_group_add(&group, &item);
    account(qj_ac_dispatch(&group));
}

static void round_of(uint64_t *state) {
    DO_FINISH_(block, {
        qj_ac_deadline(block, next(state) % 200000);
        for (uint64_t i = next(state) % 6; i > 0; i--) ASYNC_CALL(calls);
        if (next(state) % 2 == 0) ASYNC_CALL(receives);
        else ASYNC_CALL(dispatches);
        for (uint64_t i = next(state) % 8; i > 0; i--) {
            struct qj_ac_message message = {{i}};
            uint32_t cookie = (uint32_t)word(state);
            switch (next(state) % 5) {
            case 0: account(qj_ac_poll_recv(&channel, &message, &cookie)); break;
            case 1: account(qj_ac_reply(&channel, cookie, &message)); break;
            case 2: account(qj_ac_recv_response(&channel, cookie, &message)); break;
            case 3:
                if (qj_ac_send_request(&channel, &message, &cookie) == 0) {
                    account(qj_ac_recv_response(&channel, cookie, &message));
                }
                break;
            default: qj_ac_channel_alive(&channel);
            }
            lie(state);
        }
    });
}

int main(int argc, char **argv) {
    long rounds = argc > 1 ? atol(argv[1]) : 100;
    uint64_t state = 88172645463325252u;
    struct stat status;
    pthread_t attacker;
    int memory = qj_ac_channel_memory(LOG2);
    CHECK(memory >= 0 && fstat(memory, &status) == 0);
    void *honest = malloc((size_t)status.st_size);
    words = mmap(NULL, (size_t)status.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
    CHECK(words != MAP_FAILED && honest != NULL);
    count = (size_t)status.st_size / sizeof *words;
    memcpy(honest, words, (size_t)status.st_size);
    alarm(300);
    CHECK(pthread_create(&attacker, NULL, attack, NULL) == 0);
    long opened = 0;
    for (long round = 0; round < rounds; round++) {
        /* Mostly garbage is no channel. */
        memcpy(words, honest, (size_t)status.st_size);
        int result = qj_ac_channel_open(&channel, memory, LOG2, (uint32_t)(next(&state) % 2));
        CHECK(result == 0 || result == -EPROTO);
        if (result != 0) continue;
        opened++;
        for (int i = 0; i < 3; i++) round_of(&state);
        qj_ac_channel_close(&channel);
    }
    atomic_store(&over, 1);
    pthread_join(attacker, NULL);
    free(honest);
    CHECK(opened > 0 && refusals > 0);
    printf("every call has ended\n");
    return 0;
}
