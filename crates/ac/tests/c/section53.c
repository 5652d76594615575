/* The loop of the paper's section 5.3, with its two slips of the pen mended (`cmsg`, a missing brace) and an end, so
 * that the test has one; and the functions of section 5.4 on both sides of two channels. */
#include <quaject/thc_ipc.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define LOG2 4

static int handled;

/* Answers with twice what it is asked; odd numbers take longer, so that answers overtake each other. */
static int twice(struct thc_channel *channel, struct fipc_message *request) {
    uint32_t cookie = thc_get_request_cookie(request);
    uint64_t value = fipc_get_reg0(request);
    CHECK(fipc_recv_msg_end(thc_channel_to_fipc(channel), request) == 0);
    for (uint64_t i = 0; value % 2 == 1 && i < 5; i++) THCYield();
    struct fipc_message *response;
    CHECK(fipc_send_msg_start(thc_channel_to_fipc(channel), &response) == 0);
    fipc_set_reg0(response, 2 * value);
    fipc_set_reg5(response, value);
    handled++;
    return thc_ipc_reply(channel, cookie, response);
}

static void dispatch(struct thc_channel_group* rx_group)
{
  int result;
  DO_FINISH_(ipc_dispatch,{
    struct thc_channel_group_item* item;
    struct fipc_message* msg;
    while(true)
    {
      if(!(result = thc_poll_recv_group(rx_group, &item, &msg)))
      {
         if(item->dispatch_fn)
         {
           ASYNC ({
             item->dispatch_fn(item->channel, msg);
           },ipc_dispatch);
         }
      }
      else if(result != -EWOULDBLOCK) break;
    }
  });
}

static void *server(void *memory) {
    thc_init();
    struct thc_channel channels[2];
    struct thc_channel_group group;
    struct thc_channel_group_item items[2];
    CHECK(thc_channel_group_init(&group) == 0);
    for (int i = 0; i < 2; i++) {
        CHECK(thc_channel_open(&channels[i], ((int *)memory)[i], LOG2, 1) == 0);
        CHECK(thc_channel_group_item_init(&items[i], &channels[i], twice) == 0);
        thc_channel_group_item_add(&group, &items[i]);
    }
    dispatch(&group);
    for (int i = 0; i < 2; i++) thc_channel_close(&channels[i]);
    thc_done();
    return NULL;
}

static long answers, sum;

static void ask(struct thc_channel *channel, uint64_t value) {
    struct fipc_message *request, *response;
    int result;
    do {
        CHECK(fipc_send_msg_start(thc_channel_to_fipc(channel), &request) == 0);
        fipc_set_reg0(request, value);
        result = thc_ipc_call(channel, request, &response);
        if (result == -EAGAIN) THCYield();
    } while (result == -EAGAIN);
    CHECK(result == 0 && fipc_get_reg0(response) == 2 * value && fipc_get_reg5(response) == value);
    answers++;
    sum += (long)fipc_get_reg0(response);
    fipc_recv_msg_end(thc_channel_to_fipc(channel), response);
}

static void calls(void) {
    int memory[2] = {qj_ac_channel_memory(LOG2), qj_ac_channel_memory(LOG2)};
    struct thc_channel channels[2];
    for (int i = 0; i < 2; i++) CHECK(thc_channel_open(&channels[i], memory[i], LOG2, 0) == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, server, memory) == 0);
    DO_FINISH({
        for (uint64_t i = 1; i <= 300; i++) ASYNC_CALL(ask, &channels[i % 2], i);
    });
    /* Sent and received apart: the answers are asked for in the other order. */
    uint32_t cookies[2];
    DO_FINISH({
        for (uint64_t i = 0; i < 2; i++) {
            struct fipc_message *request;
            CHECK(fipc_send_msg_start(&channels[0], &request) == 0);
            fipc_set_reg0(request, 1000 + i);
            CHECK(thc_ipc_send_request(&channels[0], request, &cookies[i]) == 0);
        }
        for (int i = 1; i >= 0; i--) {
            struct fipc_message *response, *again;
            CHECK(thc_ipc_recv_response(&channels[0], cookies[i], &response) == 0);
            printf("%d ", (int)fipc_get_reg0(response));
            CHECK(thc_ipc_recv_response(&channels[0], cookies[i], &again) == -EINVAL && again == NULL);
            fipc_recv_msg_end(&channels[0], response);
        }
        struct fipc_message *none;
        CHECK(thc_ipc_poll_recv(&channels[0], &none) == -EWOULDBLOCK);
    });
    for (int i = 0; i < 2; i++) thc_channel_close(&channels[i]);
    CHECK(pthread_join(thread, NULL) == 0);
    for (int i = 0; i < 2; i++) close(memory[i]);
    struct thc_channel_group empty_group;
    CHECK(thc_channel_group_init(&empty_group) == 0);
    struct thc_channel_group_item *item;
    struct fipc_message *message;
    CHECK(thc_ipc_poll_recv_group(&empty_group, &item, &message) == -EPIPE);
    printf("%ld answers, %ld; %d handled\n", answers, sum, handled);
}

int main(void) {
    thc_init();
    calls();
    int total = 0;
#ifndef __clang__
    DO_FINISH({
        for (int i = 0; i < 10; i++) ASYNC(total += i; THCYield(); total += 100;);
    });
    printf("%d", total);
#else
    int *sum_of_bodies = &total;
    DO_FINISH({
        for (int i = 0; i < 10; i++) ASYNC(*sum_of_bodies += i; THCYield(); *sum_of_bodies += 100;);
    });
    printf("%d", total);
#endif
    printf("\n");
    thc_done();
    return 0;
}
