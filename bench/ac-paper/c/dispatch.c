/* The dispatch-loop experiment (section 6.1) on two processors. Of the paper's core 3 only one property matters: that
 * it sleeps 10 ms before it answers. A thread that sleeps needs no processor; it shares the first. */
#define _GNU_SOURCE
#include "tsc.h"
#include <quaject/ac/ipc.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define LOG2 10
#define SLEEP_NS 10000000u
/* How many messages of the second type are out at most, so that the ring has room for the first. */
#define MAX_FROM_SECOND 256

void messages_pin(int processor);

static int first_memory, second_memory;

/* Core 3: adds ten, ten milliseconds later. */
static void sleep_and_add(struct qj_ac_group_item *item, const struct qj_ac_message *request, uint32_t cookie) {
    struct qj_ac_message response = *request;
    response.words[1] += 10;
    CHECK(qj_ac_sleep(SLEEP_NS) == 0);
    CHECK(qj_ac_reply(item->channel, cookie, &response) == 0);
}
static void *core3(void *argument) {
    (void)argument;
    struct qj_ac_channel channel;
    struct qj_ac_group group = {0};
    messages_pin(0);
    CHECK(qj_ac_channel_open(&channel, second_memory, LOG2, 1) == 0);
    struct qj_ac_group_item item = {.channel = &channel, .dispatch = sleep_and_add};
    qj_ac_group_add(&group, &item);
    CHECK(qj_ac_dispatch(&group) == -EPIPE);
    qj_ac_channel_close(&channel);
    return NULL;
}

/* Core 2: adds one to what is of the first type, and passes on what is of the second. */
static void add_or_pass_on(struct qj_ac_group_item *item, const struct qj_ac_message *request, uint32_t cookie) {
    struct qj_ac_message response = *request;
    if (request->words[0] == 1) {
        response.words[1]++;
    } else {
        CHECK(qj_ac_call(item->context, request, &response) == 0);
    }
    CHECK(qj_ac_reply(item->channel, cookie, &response) == 0);
}
static void *core2(void *argument) {
    (void)argument;
    struct qj_ac_channel to_first, to_third;
    struct qj_ac_group group = {0};
    messages_pin(1);
    CHECK(qj_ac_channel_open(&to_first, first_memory, LOG2, 1) == 0);
    CHECK(qj_ac_channel_open(&to_third, second_memory, LOG2, 0) == 0);
    struct qj_ac_group_item first = {.channel = &to_first, .dispatch = add_or_pass_on, .context = &to_third};
    qj_ac_group_add(&group, &first);
    CHECK(qj_ac_dispatch(&group) == -EPIPE);
    qj_ac_channel_close(&to_third);
    qj_ac_channel_close(&to_first);
    return NULL;
}

struct dispatch_result {
    uint64_t cycles;
    uint64_t first_replies;         /* of type 1 */
    uint64_t second_replies;        /* of type 2 */
    uint64_t first_before_second;   /* replies of type 1 before the first of type 2 */
};
static struct dispatch_result result;
static struct qj_ac_channel channel;
static long first_out, second_out;

static void transaction(uint64_t type, uint64_t number) {
    struct qj_ac_message message = {{type, number}};
    CHECK(qj_ac_call(&channel, &message, &message) == 0);
    if (type == 1) {
        CHECK(message.words[1] == number + 1);
        result.first_replies++;
        if (result.second_replies == 0) result.first_before_second++;
        first_out--;
    } else {
        CHECK(message.words[1] == number + 10);
        result.second_replies++;
        second_out--;
    }
}
static void poll_while_more(const long *out, long bound) {
    struct qj_ac_message message;
    uint32_t cookie;
    while (*out >= bound) CHECK(qj_ac_poll_recv(&channel, &message, &cookie) == -EWOULDBLOCK);
}

void dispatch_run(long iterations, struct dispatch_result *to) {
    pthread_t second, third;
    first_memory = qj_ac_channel_memory(LOG2);
    second_memory = qj_ac_channel_memory(LOG2);
    result = (struct dispatch_result){0};
    messages_pin(0);
    CHECK(qj_ac_channel_open(&channel, first_memory, LOG2, 0) == 0);
    CHECK(pthread_create(&third, NULL, core3, NULL) == 0 && pthread_create(&second, NULL, core2, NULL) == 0);
    while (qj_ac_channel_alive(&channel) != 1) usleep(1000);
    uint64_t start = tsc();
    DO_FINISH({
        for (long i = 0; i < iterations; i++) {
            for (int two = 0; two < 2; two++) {
                poll_while_more(&first_out, 64);
                first_out++;
                ASYNC_CALL(transaction, 1, (uint64_t)(2 * i + two));
            }
            if (i % 10 != 0) continue;
            poll_while_more(&second_out, MAX_FROM_SECOND);
            second_out++;
            ASYNC_CALL(transaction, 2, (uint64_t)i);
        }
    });
    result.cycles = tsc() - start;
    qj_ac_channel_close(&channel);
    pthread_join(second, NULL);
    pthread_join(third, NULL);
    close(first_memory), close(second_memory);
    *to = result;
}
