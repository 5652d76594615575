/* More calls than a channel has records: they wait for room, in order, are cancelled there and see the peer die there;
 * the forms that do not wait say that there is none. */
#include <quaject/ac/ipc.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define LOG2 3
#define ROOM (1 << LOG2)

static struct qj_ac_channel client, server;
static int answered, cancelled, broken;
static void open_both(void) {
    int memory = qj_ac_channel_memory(LOG2);
    CHECK(qj_ac_channel_open(&client, memory, LOG2, 0) == 0 && qj_ac_channel_open(&server, memory, LOG2, 1) == 0);
    answered = cancelled = broken = 0;
}
static void ask(uint64_t value) {
    struct qj_ac_message message = {.words = {value}};
    int result = qj_ac_call(&client, &message, &message);
    if (result == 0) CHECK(message.words[0] == value + 1), answered++;
    if (result == QJ_AC_CANCELED) cancelled++;
    if (result == -EPIPE) broken++;
}
static void sends(uint64_t value) {
    struct qj_ac_message message = {.words = {value}};
    uint32_t cookie;
    CHECK(qj_ac_send_request(&client, &message, &cookie) == 0);
    CHECK(qj_ac_recv_response(&client, cookie, &message) == 0 && message.words[0] == value + 1);
    answered++;
}
static int serve(int count) {
    int served = 0;
    struct qj_ac_message message;
    uint32_t cookie;
    while (served < count) {
        int result = qj_ac_poll_recv(&server, &message, &cookie);
        if (result == -EWOULDBLOCK) {
            qj_ac_yield();
            continue;
        }
        CHECK(result == 0);
        message.words[0]++;
        CHECK(qj_ac_reply(&server, cookie, &message) == 0);
        served++;
    }
    return served;
}
static void no_room_now(void) {
    struct qj_ac_message message = {{0}};
    uint32_t cookie;
    CHECK(qj_ac_try_send_request(&client, &message, &cookie) == -EAGAIN);
    CHECK(qj_ac_try_call(&client, &message, &message) == -EAGAIN);
}
static void unread_reply(void) {
    struct qj_ac_message message = {{0}};
    uint32_t cookie = 0;
    for (int i = 0; i < ROOM; i++) CHECK(qj_ac_try_reply(&server, cookie, &message) == 0);
    CHECK(qj_ac_try_reply(&server, cookie, &message) == -EAGAIN);
}

int main(void) {
    open_both();
    DO_FINISH({
        for (uint64_t i = 0; i < 5 * ROOM; i++) {
            if (i % 2 == 0) ASYNC_CALL(ask, i);
            else ASYNC_CALL(sends, i);
        }
        no_room_now();
        serve(5 * ROOM);
    });
    CHECK(answered == 5 * ROOM && cancelled == 0);
    printf("all calls found room\n");
    answered = 0;
    DO_FINISH({
        for (uint64_t i = 0; i < ROOM; i++) ASYNC_CALL(ask, i);
        DO_FINISH_(block, {
            for (uint64_t i = 0; i < 3; i++) ASYNC_CALL(ask, i);
            CANCEL(block);
        });
        CHECK(cancelled == 3 && answered == 0);
        ASYNC_CALL(ask, 77ul);
        serve(ROOM + 1);
    });
    CHECK(answered == ROOM + 1);
    printf("waits for room are cancelled\n");
    answered = 0;
    DO_FINISH({
        for (uint64_t i = 0; i < ROOM + 3; i++) ASYNC_CALL(ask, i);
        qj_ac_channel_close(&server);
    });
    CHECK(broken == ROOM + 3 && answered == 0);
    printf("and end when the peer dies\n");
    qj_ac_channel_close(&client);
    open_both();
    unread_reply();
    qj_ac_channel_close(&server);
    qj_ac_channel_close(&client);
    return 0;
}
