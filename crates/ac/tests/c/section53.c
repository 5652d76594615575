/* The loop of the paper's section 5.3, with its two slips of the pen mended (`cmsg`, a missing brace) and an end, so
 * that the test has one. The messages come from an array. */
#include <quaject/thc.h>
#include <stdbool.h>
#include <stdio.h>

struct fipc_message {
    int value;
};
struct thc_channel {
    const char *name;
};
struct thc_channel_group_item {
    struct thc_channel *channel;
    int (*dispatch_fn)(struct thc_channel *, struct fipc_message *);
};
struct thc_channel_group {
    struct thc_channel_group_item *item;
    int next;
};

static struct fipc_message messages[5] = {{1}, {2}, {3}, {4}, {5}};

static int thc_poll_recv_group(struct thc_channel_group *group, struct thc_channel_group_item **item,
                               struct fipc_message **message) {
    if (group->next == 5) return 1;
    *item = group->item;
    *message = &messages[group->next++];
    return 0;
}

static int handle(struct thc_channel *channel, struct fipc_message *message) {
    int value = message->value;
    printf("%s%d ", channel->name, value);
    for (int i = value; i < 5; i++) THCYield();
    printf("/%d ", value);
    return 0;
}

static void dispatch(struct thc_channel_group* rx_group)
{
  DO_FINISH_(ipc_dispatch,{
    struct thc_channel_group_item* item;
    struct fipc_message* msg;
    while(true)
    {
      if(!thc_poll_recv_group(rx_group, &item, &msg))
      {
         if(item->dispatch_fn)
         {
           ASYNC ({
             item->dispatch_fn(item->channel, msg);
           },ipc_dispatch);
         }
      }
      else break;
    }
  });
}

int main(void) {
    thc_init();
    struct thc_channel channel = {"m"};
    struct thc_channel_group_item item = {&channel, handle};
    struct thc_channel_group group = {&item, 0};
    dispatch(&group);
    int total = 0;
#ifndef __clang__
    DO_FINISH({
        for (int i = 0; i < 10; i++) ASYNC(total += i; THCYield(); total += 100;);
    });
    printf("%d", total);
#else
    int *sum = &total;
    DO_FINISH({
        for (int i = 0; i < 10; i++) ASYNC(*sum += i; THCYield(); *sum += 100;);
    });
    printf("%d", total);
#endif
    printf("\n");
    thc_done();
    return 0;
}
