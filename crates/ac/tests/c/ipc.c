/* Channels between threads and processes: calls that find their task, requests both ways, groups, forged messages, a
 * full ring, cancellation; a key-value store whose server dies at every store and is replaced. */
#define _GNU_SOURCE
#include <quaject/ac/ipc.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define LOG2 4

static void add_one(struct qj_ac_group_item *item, const struct qj_ac_message *request, uint32_t cookie) {
    struct qj_ac_message response = *request;
    /* Every third answer comes late, after others that were asked for later. */
    if (request->words[0] % 3 == 0) {
        for (int i = 0; i < 5; i++) qj_ac_yield();
    }
    response.words[0]++;
    qj_ac_reply(item->channel, cookie, &response);
}

static void *server_thread(void *memory) {
    struct qj_ac_channel channels[2];
    struct qj_ac_group group = {0};
    struct qj_ac_group_item items[2];
    for (int i = 0; i < 2; i++) {
        CHECK(qj_ac_channel_open(&channels[i], ((int *)memory)[i], LOG2, 1) == 0);
        items[i] = (struct qj_ac_group_item){.channel = &channels[i], .dispatch = add_one};
        qj_ac_group_add(&group, &items[i]);
    }
    CHECK(qj_ac_dispatch(&group) == -EPIPE);
    for (int i = 0; i < 2; i++) qj_ac_channel_close(&channels[i]);
    return NULL;
}

static long answered, max_out, out;
static void ask(struct qj_ac_channel *channel, uint64_t value) {
    struct qj_ac_message message = {.words = {value, 1, 2, 3, 4, 5}};
    CHECK(qj_ac_call(channel, &message, &message) == 0 && message.words[0] == value + 1 && message.words[5] == 5);
    answered++;
    out--;
}

static void between_threads(void) {
    int memory[2] = {qj_ac_channel_memory(LOG2), qj_ac_channel_memory(LOG2)};
    pthread_t thread;
    struct qj_ac_channel channels[2];
    for (int i = 0; i < 2; i++) CHECK(qj_ac_channel_open(&channels[i], memory[i], LOG2, 0) == 0);
    struct qj_ac_channel third;
    CHECK(qj_ac_channel_open(&third, memory[0], LOG2, 0) == -EBUSY);
    CHECK(qj_ac_channel_open(&third, memory[0], LOG2 + 1, 1) == -EPROTO);
    CHECK(pthread_create(&thread, NULL, server_thread, memory) == 0);
    DO_FINISH({
        for (uint64_t i = 0; i < 3000; i++) {
            if (++out > max_out) max_out = out;
            ASYNC_CALL(ask, &channels[i % 2], i);
            while (out > 40) qj_ac_yield();
        }
    });
    printf("%ld answers, several out at once: %d\n", answered, max_out > 8);
    CHECK(channels[0].refused == 0 && channels[1].refused == 0);
    for (int i = 0; i < 2; i++) qj_ac_channel_close(&channels[i]);
    pthread_join(thread, NULL);
    close(memory[0]), close(memory[1]);
}

/* A client that only polls, and never yields by itself: tasks woken by one another's polls run all the same. */
static void polling(void) {
    int memory[2] = {qj_ac_channel_memory(LOG2), qj_ac_channel_memory(LOG2)};
    pthread_t thread;
    struct qj_ac_channel channels[2];
    for (int i = 0; i < 2; i++) CHECK(qj_ac_channel_open(&channels[i], memory[i], LOG2, 0) == 0);
    CHECK(pthread_create(&thread, NULL, server_thread, memory) == 0);
    answered = out = 0;
    struct qj_ac_message message;
    uint32_t cookie;
    DO_FINISH({
        for (uint64_t i = 0; i < 500; i++) {
            out++;
            ASYNC_CALL(ask, &channels[0], i);
            while (out >= 8) CHECK(qj_ac_poll_recv(&channels[0], &message, &cookie) == -EWOULDBLOCK);
        }
    });
    printf("%ld answers to one that polls\n", answered);
    for (int i = 0; i < 2; i++) qj_ac_channel_close(&channels[i]);
    pthread_join(thread, NULL);
    close(memory[0]), close(memory[1]);
}

/* A task that was scheduled for something else when its response comes: it runs once, and has the response. */
static struct qj_ac_task *caller;
static int called;
static void calls(struct qj_ac_channel *channel) {
    struct qj_ac_message message = {.words = {5}};
    caller = qj_ac_current();
    CHECK(qj_ac_call(channel, &message, &message) == 0 && message.words[0] == 6);
    called++;
}

static void scheduled_for_something_else(void) {
    int memory = qj_ac_channel_memory(LOG2);
    struct qj_ac_channel client, server;
    struct qj_ac_message message;
    uint32_t cookie;
    CHECK(qj_ac_channel_open(&client, memory, LOG2, 0) == 0 && qj_ac_channel_open(&server, memory, LOG2, 1) == 0);
    for (int round = 0; round < 2; round++) {
        DO_FINISH({
            ASYNC_CALL(calls, &client);
            CHECK(qj_ac_poll_recv(&server, &message, &cookie) == 0);
            message.words[0]++;
            CHECK(qj_ac_reply(&server, cookie, &message) == 0);
            qj_ac_schedule(caller);
            if (round == 0) CHECK(qj_ac_poll_recv(&client, &message, &cookie) == -EWOULDBLOCK);
        });
        CHECK(called == round + 1);
    }
    qj_ac_channel_close(&client), qj_ac_channel_close(&server);
    close(memory);
}

/* A thread whose first act is a call, outside of any block. */
static void *calls_at_once(void *memory) {
    struct qj_ac_channel channel;
    struct qj_ac_message message = {.words = {41}};
    CHECK(qj_ac_channel_open(&channel, *(int *)memory, LOG2, 0) == 0);
    CHECK(qj_ac_call(&channel, &message, &message) == 0 && message.words[0] == 42);
    qj_ac_channel_close(&channel);
    return NULL;
}

static void outside_of_blocks(void) {
    int memory = qj_ac_channel_memory(LOG2);
    pthread_t thread;
    struct qj_ac_channel server;
    CHECK(pthread_create(&thread, NULL, calls_at_once, &memory) == 0);
    CHECK(qj_ac_channel_open(&server, memory, LOG2, 1) == 0);
    struct qj_ac_message message;
    uint32_t cookie;
    CHECK(qj_ac_recv(&server, &message, &cookie) == 0);
    message.words[0]++;
    CHECK(qj_ac_reply(&server, cookie, &message) == 0);
    pthread_join(thread, NULL);
    CHECK(qj_ac_channel_alive(&server) == 0 && qj_ac_reply(&server, cookie, &message) == -EPIPE);
    qj_ac_channel_close(&server);
    close(memory);
}

/* What a forked child does to its parent's channel is nothing to the parent. */
static int child_tries(struct qj_ac_channel *channel, int what) {
    struct qj_ac_message message = {.words = {13}};
    uint32_t cookie = 0;
    switch (what) {
    case 0:
        return qj_ac_poll_recv(channel, &message, &cookie);
    case 1:
        return qj_ac_recv(channel, &message, &cookie);
    case 2:
        return qj_ac_reply(channel, cookie, &message);
    case 3:
        return qj_ac_call(channel, &message, &message);
    case 4:
        return qj_ac_channel_alive(channel) == 0 ? -EPIPE : 0;
    default:
        qj_ac_channel_close(channel);
        return -EPIPE;
    }
}

static void forked(void) {
    int memory = qj_ac_channel_memory(LOG2);
    struct qj_ac_channel client, server;
    CHECK(qj_ac_channel_open(&client, memory, LOG2, 0) == 0 && qj_ac_channel_open(&server, memory, LOG2, 1) == 0);
    for (uint64_t what = 0; what < 6; what++) {
        struct qj_ac_message message = {.words = {what}};
        uint32_t cookies[2], seen;
        for (int i = 0; i < 2; i++) CHECK(qj_ac_send_request(&client, &message, &cookies[i]) == 0);
        /* One of them has been taken in. */
        CHECK(qj_ac_channel_alive(&server) == 1 && qj_ac_poll_recv(&server, &message, &seen) == 0 && seen == cookies[0]);
        pid_t child = fork();
        if (child == 0) _exit(child_tries(&server, (int)what) == -EPIPE ? 0 : 1);
        int status;
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(qj_ac_reply(&server, seen, &message) == 0);
        CHECK(qj_ac_poll_recv(&server, &message, &seen) == 0 && seen == cookies[1] && message.words[0] == what);
        CHECK(qj_ac_reply(&server, seen, &message) == 0);
        for (int i = 0; i < 2; i++) CHECK(qj_ac_recv_response(&client, cookies[i], &message) == 0 && message.words[0] == what);
    }
    CHECK(client.refused == 0 && server.refused == 0);
    qj_ac_channel_close(&client), qj_ac_channel_close(&server);
    close(memory);
}

/* A malicious peer: responses without a request, cookies of other generations, types that do not exist. */
static void forged(void) {
    int memory = qj_ac_channel_memory(LOG2);
    struct qj_ac_channel client, attacker;
    CHECK(qj_ac_channel_open(&client, memory, LOG2, 0) == 0 && qj_ac_channel_open(&attacker, memory, LOG2, 1) == 0);
    struct qj_ac_message message = {.words = {7}}, response;
    uint32_t cookie, seen;
    DO_FINISH({
        CHECK(qj_ac_send_request(&client, &message, &cookie) == 0);
        CHECK(qj_ac_poll_recv(&attacker, &message, &seen) == 0 && seen == cookie);
        CHECK(qj_ac_reply(&attacker, cookie + 0x10000, &message) == 0);
        CHECK(qj_ac_reply(&attacker, cookie ^ 1, &message) == 0);
        CHECK(qj_ac_reply(&attacker, 0xffffffff, &message) == 0);
        struct qj_ring_message wild = {{(uint64_t)cookie << 32 | 3}};
        CHECK(qj_ring_sp_push(&attacker.out, &wild) == QJ_RING_OK);
        CHECK(qj_ac_reply(&attacker, cookie, &message) == 0);
        CHECK(qj_ac_reply(&attacker, cookie, &message) == 0);
        CHECK(qj_ac_recv_response(&client, cookie, &response) == 0 && response.words[0] == 7);
        CHECK(qj_ac_recv_response(&client, cookie, &response) == -EINVAL);
        /* Of no type, as a record that is free. */
        wild.words[0] = (uint64_t)cookie << 32;
        CHECK(qj_ring_sp_push(&attacker.out, &wild) == QJ_RING_OK);
        while (attacker.out.position != client.in.position) {
            CHECK(qj_ac_poll_recv(&client, &message, &seen) == -EWOULDBLOCK);
        }
        CHECK(qj_ac_poll_recv(&client, &message, &seen) == -EWOULDBLOCK);
        printf("refused %u, and the true answer taken\n", client.refused);
        /* A state that no honest peer writes. */
        memset(client.in.slots, 0xff, sizeof *client.in.slots * (1 << LOG2));
        CHECK(qj_ac_call(&client, &message, &response) == -EPIPE);
    });
    qj_ac_channel_close(&attacker);
    qj_ac_channel_close(&client);
    close(memory);
    static char nonsense[1 << 16];
    int other = memfd_create("nonsense", MFD_ALLOW_SEALING);
    CHECK(write(other, nonsense, sizeof nonsense) == sizeof nonsense);
    CHECK(qj_ac_channel_open(&client, other, LOG2, 0) == -EPROTO);
    close(other);
}

/* A response has come and its task is about to run: any other task that asks for it is too late. */
static void asked_first(struct qj_ac_channel *channel, uint32_t cookie) {
    struct qj_ac_message response;
    CHECK(qj_ac_recv_response(channel, cookie, &response) == 0 && response.words[0] == 7);
}
static void asked_twice(void) {
    int memory = qj_ac_channel_memory(LOG2);
    struct qj_ac_channel client, server;
    CHECK(qj_ac_channel_open(&client, memory, LOG2, 0) == 0 && qj_ac_channel_open(&server, memory, LOG2, 1) == 0);
    struct qj_ac_message message = {.words = {7}}, response;
    uint32_t cookie, seen;
    DO_FINISH({
        CHECK(qj_ac_send_request(&client, &message, &cookie) == 0);
        ASYNC_CALL(asked_first, &client, cookie);
        CHECK(qj_ac_recv_response(&client, cookie, &response) == -EINVAL);
        CHECK(qj_ac_poll_recv(&server, &message, &seen) == 0 && qj_ac_reply(&server, seen, &message) == 0);
        qj_ac_yield(); /* to the poller, which takes the response in and has its task run after us */
        CHECK(qj_ac_recv_response(&client, cookie, &response) == -EINVAL);
    });
    qj_ac_channel_close(&server);
    qj_ac_channel_close(&client);
    close(memory);
}

static void never_answered(struct qj_ac_channel *channel) {
    struct qj_ac_message message = {.words = {1}};
    printf("%d ", qj_ac_call(channel, &message, &message) == QJ_AC_CANCELED);
}
static void never_asked(struct qj_ac_channel *channel) {
    struct qj_ac_message message;
    uint32_t cookie;
    printf("%d ", qj_ac_recv(channel, &message, &cookie) == QJ_AC_CANCELED);
}
static void cancelled(void) {
    int memory = qj_ac_channel_memory(LOG2);
    struct qj_ac_channel client, silent;
    CHECK(qj_ac_channel_open(&client, memory, LOG2, 0) == 0 && qj_ac_channel_open(&silent, memory, LOG2, 1) == 0);
    printf("cancelled: ");
    DO_FINISH_(block, {
        for (int i = 0; i < 3; i++) ASYNC_CALL(never_answered, &client);
        ASYNC_CALL(never_asked, &client);
        qj_ac_deadline(block, 1000000);
    });
    struct qj_ac_message message;
    uint32_t cookie;
    while (qj_ac_poll_recv(&silent, &message, &cookie) == 0) qj_ac_reply(&silent, cookie, &message);
    DO_FINISH({ CHECK(qj_ac_poll_recv(&client, &message, &cookie) == -EWOULDBLOCK); });
    printf("late answers refused: %u\n", client.refused);
    qj_ac_channel_close(&silent);
    qj_ac_channel_close(&client);
    close(memory);
}

static int answered_call, broken_call;
static void call_one(struct qj_ac_channel *channel, int *result) {
    struct qj_ac_message message = {.words = {1}};
    *result = qj_ac_call(channel, &message, &message);
    out--;
}
static bool is_late(const struct timespec *start) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec - start->tv_sec > 10;
}
/* A task that never sleeps notices as well that its peer is dead, after it has received what the peer sent before. */
static void peer_dies_while_this_side_computes(void) {
    int memory[2] = {qj_ac_channel_memory(LOG2), qj_ac_channel_memory(LOG2)};
    struct qj_ac_channel ours[2], theirs[2];
    for (int i = 0; i < 2; i++) {
        CHECK(qj_ac_channel_open(&ours[i], memory[i], LOG2, 0) == 0);
        CHECK(qj_ac_channel_open(&theirs[i], memory[i], LOG2, 1) == 0);
    }
    struct qj_ac_message message;
    uint32_t cookie;
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    out = 2;
    DO_FINISH({
        ASYNC_CALL(call_one, &ours[0], &answered_call);
        ASYNC_CALL(call_one, &ours[0], &broken_call);
        CHECK(qj_ac_poll_recv(&theirs[0], &message, &cookie) == 0);
        CHECK(qj_ac_reply(&theirs[0], cookie, &message) == 0);
        qj_ac_channel_close(&theirs[0]);
        while (out > 0 && !is_late(&start)) qj_ac_yield();
        CHECK(out == 0);
    });
    qj_ac_channel_close(&theirs[1]);
    int result;
    while ((result = qj_ac_poll_recv(&ours[1], &message, &cookie)) == -EWOULDBLOCK && !is_late(&start)) continue;
    printf("dead: %d %d %d\n", answered_call == 0, broken_call == -EPIPE, result == -EPIPE);
    for (int i = 0; i < 2; i++) qj_ac_channel_close(&ours[i]), close(memory[i]);
}

/* One poll in so many asks whether the peer lives: also the last one before a group waits may find that it does not. */
static void peer_dies_at_every_poll(void) {
    int ended = 0;
    for (int polls = 0; polls < 600; polls++) {
        int memory = qj_ac_channel_memory(LOG2);
        struct qj_ac_channel ours, theirs;
        CHECK(qj_ac_channel_open(&ours, memory, LOG2, 0) == 0 && qj_ac_channel_open(&theirs, memory, LOG2, 1) == 0);
        struct qj_ac_message message;
        uint32_t cookie;
        for (int i = 0; i < polls; i++) CHECK(qj_ac_poll_recv(&ours, &message, &cookie) == -EWOULDBLOCK);
        ours.checked_ns = 0; /* as if the last look were long ago */
        qj_ac_channel_close(&theirs);
        struct qj_ac_group group = {0};
        struct qj_ac_group_item item = {.channel = &ours};
        qj_ac_group_add(&group, &item);
        ended += qj_ac_dispatch(&group) == -EPIPE;
        qj_ac_channel_close(&ours);
        close(memory);
    }
    printf("a group whose peer is dead ends: %d\n", ended);
}

/* ---- a key-value store whose server dies ---- */

#ifdef QJ_TEST_STEPS
static long steps_left = -1, steps_done;
/* A peer that answers every slot it is given back with one more response without a request. */
static struct qj_ring_end *flooder;
static long flood;
void qj_test_step(const char *name) {
    if (flooder != NULL && strcmp(name, "sc release") == 0 && flood < 1000000) {
        struct qj_ring_end *end = flooder;
        struct qj_ring_message nonsense = {{(uint64_t)99 << 32 | 2}};
        flooder = NULL; /* its own steps are none of ours */
        flood += qj_ring_sp_push(end, &nonsense) == QJ_RING_OK;
        flooder = end;
    }
    steps_done++;
    if (steps_left > 0 && --steps_left == 0) kill(getpid(), SIGKILL);
}
#endif

#ifdef QJ_TEST_STEPS
static void flooded(void) {
    int memory = qj_ac_channel_memory(LOG2);
    struct qj_ac_channel client, attacker;
    CHECK(qj_ac_channel_open(&client, memory, LOG2, 0) == 0 && qj_ac_channel_open(&attacker, memory, LOG2, 1) == 0);
    struct qj_ring_message nonsense = {{(uint64_t)99 << 32 | 2}};
    for (int i = 0; i < 1 << LOG2; i++) CHECK(qj_ring_sp_push(&attacker.out, &nonsense) == QJ_RING_OK);
    flooder = &attacker.out;
    DO_FINISH_(block, {
        qj_ac_deadline(block, 5000000);
        ASYNC_CALL(never_asked, &client);
    });
    flooder = NULL;
    CHECK(flood > 0 && flood < 1000000);
    printf("cancelled in a flood\n");
    qj_ac_channel_close(&client), qj_ac_channel_close(&attacker);
    close(memory);
}
#else
static void flooded(void) { printf("1 cancelled in a flood\n"); }
#endif

enum { GET = 1, PUT = 2 };
struct table {
    uint64_t values[64];
    uint64_t acknowledged[8], tried[8]; /* the clients' */
};

static void serve(struct qj_ac_group_item *item, const struct qj_ac_message *request, uint32_t cookie) {
    struct table *table = item->context;
    struct qj_ac_message response = {.words = {0}};
    uint64_t key = request->words[1];
    if (key >= 64) {
        response.words[0] = 1; /* no such key */
    } else if (request->words[0] == PUT) {
        table->values[key] = request->words[2];
    } else {
        response.words[1] = table->values[key];
    }
    qj_ac_reply(item->channel, cookie, &response);
}

/* The table is shared memory too, so that what was acknowledged outlives the server. */
static pid_t start_server(int memory, struct table *table, long steps) {
    (void)steps;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) return child;
#ifdef QJ_TEST_STEPS
    steps_left = steps;
#endif
    struct qj_ac_channel channel;
    int result;
    while ((result = qj_ac_channel_open(&channel, memory, LOG2, 1)) == -EBUSY) usleep(100);
    CHECK(result == 0);
    struct qj_ac_group group = {0};
    struct qj_ac_group_item item = {.channel = &channel, .dispatch = serve, .context = table};
    qj_ac_group_add(&group, &item);
    qj_ac_dispatch(&group);
    _exit(0);
}

static long deaths;
static void put_and_get(struct qj_ac_channel *channel, uint64_t *acknowledged, uint64_t round) {
    uint64_t key = round % 8;
    struct qj_ac_message put = {.words = {PUT, key, round}}, response;
    if (qj_ac_call(channel, &put, &response) == 0) {
        CHECK(response.words[0] == 0);
        acknowledged[key] = round;
    }
}
static void check_all(struct qj_ac_channel *channel, const uint64_t *acknowledged, const uint64_t *tried) {
    for (uint64_t key = 0; key < 8; key++) {
        struct qj_ac_message get = {.words = {GET, key}}, response;
        CHECK(qj_ac_call(channel, &get, &response) == 0);
        /* What was acknowledged is there, or something newer whose acknowledgement died with the server. */
        CHECK(response.words[1] >= acknowledged[key] && response.words[1] <= tried[key]);
    }
}

/* Kills at the first store, the second, ... until servers survive all that they are asked. */
static void store(void) {
    struct table *table =
        mmap(NULL, sizeof *table, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t acknowledged[8] = {0}, tried[8] = {0}, round = 0;
    for (long kill_at = 1, survived = 0; survived < 3; kill_at++) {
        int memory = qj_ac_channel_memory(LOG2), status;
        struct qj_ac_channel channel;
        pid_t server = start_server(memory, table, kill_at);
        CHECK(qj_ac_channel_open(&channel, memory, LOG2, 0) == 0);
        bool ended = false;
        while (qj_ac_channel_alive(&channel) == -EAGAIN && !ended) ended = waitpid(server, &status, WNOHANG) == server;
        if (qj_ac_channel_alive(&channel) == -EAGAIN) {
            /* No peer has ever attached: a call waits for the first one. */
            deaths++;
            server = start_server(memory, table, -1);
            ended = false;
        }
        DO_FINISH({
            for (int i = 0; i < 12; i++) {
                round++;
                tried[round % 8] = round;
                ASYNC_CALL(put_and_get, &channel, acknowledged, round);
            }
        });
        if (ended || waitpid(server, &status, WNOHANG) == server) {
            CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
            deaths++;
        } else {
            survived++;
            kill(server, SIGKILL);
            waitpid(server, &status, 0);
        }
        while (qj_ac_channel_alive(&channel) != 0) usleep(100);
        server = start_server(memory, table, -1);
        while (qj_ac_channel_alive(&channel) != 1) usleep(100);
        DO_FINISH({ check_all(&channel, acknowledged, tried); });
        qj_ac_channel_close(&channel);
        waitpid(server, &status, 0); /* it notices, and ends */
        CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
        close(memory);
    }
}

/* The other way round: the client dies at every store, the server notices and serves the next one. */
static pid_t start_client(int memory, uint64_t *acknowledged, uint64_t *tried, long steps) {
    (void)steps;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child != 0) return child;
#ifdef QJ_TEST_STEPS
    steps_left = steps;
#endif
    struct qj_ac_channel channel;
    int result;
    while ((result = qj_ac_channel_open(&channel, memory, LOG2, 0)) == -EBUSY) usleep(100);
    CHECK(result == 0);
    DO_FINISH({ check_all(&channel, acknowledged, tried); });
    uint64_t round = tried[0];
    DO_FINISH({
        for (int i = 0; i < 12; i++) {
            round++;
            for (int key = 0; key < 8; key++) tried[key] = round;
            ASYNC_CALL(put_and_get, &channel, acknowledged, round);
        }
    });
    _exit(0);
}

static void clients(void) {
    struct table *table = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t *acknowledged = table->acknowledged, *tried = table->tried;
    int memory = qj_ac_channel_memory(LOG2);
    struct qj_ac_channel channel;
    CHECK(qj_ac_channel_open(&channel, memory, LOG2, 1) == 0);
    struct qj_ac_group group = {0};
    struct qj_ac_group_item item = {.channel = &channel, .dispatch = serve, .context = table};
    qj_ac_group_add(&group, &item);
    for (long kill_at = 1;; kill_at++) {
        pid_t client = start_client(memory, acknowledged, tried, kill_at);
        int status;
        bool ended = false;
        while (qj_ac_channel_alive(&channel) != 1 && !ended) ended = waitpid(client, &status, WNOHANG) == client;
        if (!ended) {
            CHECK(qj_ac_dispatch(&group) == -EPIPE);
            CHECK(waitpid(client, &status, 0) == client);
        }
        if (!WIFSIGNALED(status)) {
            CHECK(WEXITSTATUS(status) == 0);
            break;
        }
        deaths++;
    }
    qj_ac_channel_close(&channel);
    close(memory);
}

/* Zeros are no channel, and closing twice is closing once: no other descriptor is closed. */
static void never_opened(void) {
    static struct qj_ac_channel zeros;
    struct qj_ac_channel once;
    int memory = qj_ac_channel_memory(LOG2);
    CHECK(fcntl(0, F_GETFD) >= 0 || open("/dev/null", O_RDONLY) == 0);
    qj_ac_channel_close(&zeros);
    CHECK(qj_ac_channel_open(&once, memory, LOG2, 2) == -EINVAL);
    qj_ac_channel_close(&once);
    CHECK(qj_ac_channel_open(&once, memory, LOG2, 0) == 0);
    qj_ac_channel_close(&once);
    qj_ac_channel_close(&once);
    CHECK(fcntl(0, F_GETFD) >= 0 && fcntl(memory, F_GETFD) >= 0);
    close(memory);
}

int main(int count, char **arguments) {
    setvbuf(stdout, NULL, _IONBF, 0);
    never_opened();
    between_threads();
    polling();
    forged();
    asked_twice();
    scheduled_for_something_else();
    outside_of_blocks();
    cancelled();
    peer_dies_while_this_side_computes();
    peer_dies_at_every_poll();
    /* ThreadSanitizer cannot follow forks. */
    if (count > 1 && strcmp(arguments[1], "threads") == 0) return 0;
    forked();
    flooded();
    store();
    long servers = deaths;
    clients();
    printf("the store lost nothing\n");
#ifdef QJ_TEST_STEPS
    /* Twelve requests: three stores each take one in and answer it, as many send it and take the answer in. */
    CHECK(servers >= 36 && deaths - servers >= 36);
    fprintf(stderr, "%ld servers and %ld clients died\n", servers, deaths - servers);
#else
    CHECK(servers == 0 && deaths == 0);
#endif
    /* An idle receiver sleeps. */
    int memory = qj_ac_channel_memory(LOG2);
    struct qj_ac_channel client, idle;
    CHECK(qj_ac_channel_open(&client, memory, LOG2, 0) == 0 && qj_ac_channel_open(&idle, memory, LOG2, 1) == 0);
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    DO_FINISH_(block, {
        ASYNC_CALL(never_asked, &idle);
        qj_ac_deadline(block, 200000000);
    });
    getrusage(RUSAGE_SELF, &after);
    long used = (after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 + after.ru_utime.tv_usec - before.ru_utime.tv_usec;
    printf("an idle receiver sleeps: %d\n", used < 50000);
    qj_ac_channel_close(&idle);
    qj_ac_channel_close(&client);
    qj_ac_stop();
    return 0;
}
