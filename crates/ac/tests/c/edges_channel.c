/* What a thread did before it sent a message is seen by the thread that receives it, and ThreadSanitizer knows that:
 * requests, responses, and a ring in which slots are used again. With an argument the server writes once more after its
 * reply, which is a race that must be reported. */
#include <quaject/ac/ipc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define LOG2 3
#define CALLS 200

static int memory;
static int races;
/* Plain memory: only messages order the accesses. */
static long asked[CALLS], answered[CALLS], served, rounds;

static void *server(void *a) {
    struct qj_ac_channel channel;
    struct qj_ac_message request;
    uint32_t cookie;
    CHECK(qj_ac_channel_open(&channel, memory, LOG2, 1) == 0);
    for (int i = 0; i < CALLS; i++) {
        int result;
        if (i % 3 == 0) {
            while ((result = qj_ac_poll_recv(&channel, &request, &cookie)) == -EWOULDBLOCK) {}
        } else {
            result = qj_ac_recv(&channel, &request, &cookie);
        }
        CHECK(result == 0);
        uint64_t which = request.words[0];
        answered[which] = asked[which] + 1;
        served++;
        CHECK(qj_ac_reply(&channel, cookie, &request) == 0);
        if (races) served++;
    }
    CHECK(qj_ac_recv(&channel, &request, &cookie) == -EPIPE);
    qj_ac_channel_close(&channel);
    return a;
}

static void calls(struct qj_ac_channel *channel, uint64_t which) {
    struct qj_ac_message message = {{which}};
    asked[which] = (long)which;
    CHECK(qj_ac_call(channel, &message, &message) == 0);
    CHECK(answered[which] == (long)which + 1);
    rounds++;
}

int main(int count, char **arguments) {
    (void)arguments;
    races = count > 1;
    pthread_t thread;
    struct qj_ac_channel channel;
    memory = qj_ac_channel_memory(LOG2);
    CHECK(qj_ac_channel_open(&channel, memory, LOG2, 0) == 0);
    CHECK(pthread_create(&thread, NULL, server, NULL) == 0);
    for (uint64_t i = 0; i < CALLS; i += 10) {
        DO_FINISH({
            for (uint64_t j = i; j < i + 10; j++) ASYNC_CALL(calls, &channel, j);
        });
        CHECK(served >= (long)i + 10);
    }
    qj_ac_channel_close(&channel);
    pthread_join(thread, NULL);
    close(memory);
    printf("%ld calls\n", rounds);
    return 0;
}
