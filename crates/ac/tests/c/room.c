/* Both ends of a channel in one thread: which task waits for room in a full ring, and which runs after a poll. */
#include <quaject/ac/ipc.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define LOG2 4

/* A ring filled by requests and replies alike: all that wait for room are sent, each in a slot of its own. */
static void reply_when_there_is_room(struct qj_ac_channel *channel, uint32_t cookie, uint64_t value) {
    struct qj_ac_message message = {.words = {value}};
    CHECK(qj_ac_reply(channel, cookie, &message) == 0);
}
static void ask_when_there_is_room(struct qj_ac_channel *channel, uint64_t value) {
    struct qj_ac_message message = {.words = {value}};
    uint32_t cookie;
    CHECK(qj_ac_send_request(channel, &message, &cookie) == 0);
}
static void full_of_both(void) {
    enum { SLOTS = 1 << LOG2 };
    int memory = qj_ac_channel_memory(LOG2);
    struct qj_ac_channel one, other;
    CHECK(qj_ac_channel_open(&one, memory, LOG2, 0) == 0 && qj_ac_channel_open(&other, memory, LOG2, 1) == 0);
    struct qj_ac_message message = {{0}};
    uint32_t asked[4], seen;
    uint64_t sum = 0;
    DO_FINISH({
        for (uint64_t i = 0; i < 4; i++) CHECK(qj_ac_send_request(&other, &message, &asked[i]) == 0);
        for (uint64_t i = 0; i < 4; i++) CHECK(qj_ac_poll_recv(&one, &message, &seen) == 0 && seen == asked[i]);
        for (uint64_t i = 2; i < SLOTS; i++) ask_when_there_is_room(&one, i);
        for (uint64_t i = 0; i < 2; i++) reply_when_there_is_room(&one, asked[i], 100 + i);
        for (uint64_t i = 2; i < 4; i++) ASYNC_CALL(reply_when_there_is_room, &one, asked[i], 100 + i);
        for (uint64_t i = 0; i < 2; i++) ASYNC_CALL(ask_when_there_is_room, &one, i);
        for (int requests = 0; requests < SLOTS;) {
            int result = qj_ac_poll_recv(&other, &message, &seen);
            CHECK(result == 0 || result == -EWOULDBLOCK);
            if (result == 0) sum += message.words[0], requests++;
        }
        CHECK(sum == SLOTS * (SLOTS - 1) / 2);
        for (uint64_t i = 0; i < 4; i++) {
            CHECK(qj_ac_recv_response(&other, asked[i], &message) == 0 && message.words[0] == 100 + i);
        }
    });
    CHECK(one.refused == 0 && other.refused == 0);
    qj_ac_channel_close(&one), qj_ac_channel_close(&other);
    close(memory);
}

/* A task that is woken by a task whose response has arrived runs before the poll is over. */
static struct qj_ac_task *sleeper;
static int sleeper_woken;
static void sleeps(void) {
    sleeper = qj_ac_current();
    qj_ac_suspend();
    sleeper_woken = 1;
}
static void asks_and_wakes(struct qj_ac_channel *channel) {
    struct qj_ac_message message = {{0}};
    CHECK(qj_ac_call(channel, &message, &message) == 0);
    qj_ac_schedule_back(sleeper);
}
static void woken_in_turn(void) {
    int memory = qj_ac_channel_memory(LOG2);
    struct qj_ac_channel client, server;
    CHECK(qj_ac_channel_open(&client, memory, LOG2, 0) == 0 && qj_ac_channel_open(&server, memory, LOG2, 1) == 0);
    struct qj_ac_message message;
    uint32_t cookie;
    DO_FINISH({
        ASYNC_CALL(sleeps);
        ASYNC_CALL(asks_and_wakes, &client);
        CHECK(qj_ac_poll_recv(&server, &message, &cookie) == 0 && qj_ac_reply(&server, cookie, &message) == 0);
        CHECK(qj_ac_poll_recv(&client, &message, &cookie) == -EWOULDBLOCK && sleeper_woken);
    });
    qj_ac_channel_close(&client), qj_ac_channel_close(&server);
    close(memory);
}

int main(void) {
    full_of_both();
    woken_in_turn();
    puts("all sent, all answered, all in turn");
    return 0;
}
