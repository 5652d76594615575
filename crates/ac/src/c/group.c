/* Groups of channels and the dispatch loop over them ("Extensions to Barrelfish Asynchronous C", 5.3): see
 * include/quaject/ac/ipc.h. */
#include "channel.h"

void qj_ac_group_add(struct qj_ac_group *group, struct qj_ac_group_item *item) {
    for (const struct qj_ac_group_item *other = group->first; other != NULL; other = other->next) {
        if (other == item) qj_ac__fatal("an item is added to a group that it is in already");
    }
    item->next = group->first;
    group->first = item;
}

int qj_ac_poll_recv_group(struct qj_ac_group *group, struct qj_ac_group_item **found, struct qj_ac_message *request,
                          uint32_t *cookie) {
    bool any_alive = false;
    struct qj_ac_group_item *start = group->turn != NULL ? group->turn : group->first;
    for (struct qj_ac_group_item *item = start; item != NULL;) {
        int result = qj_ac__poll_once(item->channel, request, cookie);
        struct qj_ac_group_item *next = item->next != NULL ? item->next : group->first;
        if (result == 0) {
            *found = item;
            group->turn = next;
            return 0;
        }
        any_alive |= result == -EWOULDBLOCK;
        item = next == start ? NULL : next;
    }
    if (any_alive) qj_ac__yield_to_others();
    return any_alive ? -EWOULDBLOCK : -EPIPE;
}

struct group_wait {
    struct qj_ac_group *group;
    struct qj_ac_task *task;
};

static void no_receiver(struct qj_ac_group *group) {
    for (struct qj_ac_group_item *item = group->first; item != NULL; item = item->next) item->channel->receiver = NULL;
}

static void stop_group(void *argument) {
    struct group_wait *wait = argument;
    if (wait->task->prev != NULL) return; /* a channel has woken it */
    no_receiver(wait->group);
    qj_ac_schedule_back(wait->task);
}

/* The last poll of the channels may have found a dead peer, or requests that it sent before: then no further wake-up
 * comes. */
static bool group_is_idle(const struct qj_ac_group *group) {
    bool any_alive = false;
    for (const struct qj_ac_group_item *item = group->first; item != NULL; item = item->next) {
        if (item->channel->inbox_count != 0) return false;
        any_alive |= !item->channel->dead;
    }
    return any_alive;
}

static int wait_for_group(struct qj_ac_group *group) {
    if (!group_is_idle(group)) return 0;
    struct group_wait wait = {group, qj_ac_current()};
    struct qj_ac_cancel_item item;
    if (qj_ac_cancel_item_add(&item, stop_group, &wait) != 0) return QJ_AC_CANCELED;
    for (struct qj_ac_group_item *member = group->first; member != NULL; member = member->next) {
        member->registered = !member->channel->dead;
        if (!member->registered) continue;
        qj_ac__check_no_receiver(member->channel);
        qj_ac__register_receiver(member->channel);
        member->channel->receiver = wait.task;
    }
    qj_ac_suspend();
    no_receiver(group);
    for (struct qj_ac_group_item *member = group->first; member != NULL; member = member->next) {
        if (member->registered) qj_ac__unregister_receiver(member->channel);
    }
    qj_ac_cancel_item_remove(&item);
    return item.ran ? QJ_AC_CANCELED : 0;
}

struct dispatched {
    struct qj_ac_group_item *item;
    struct qj_ac_message request;
    uint32_t cookie;
};

static void run_dispatched(void *argument) {
    struct dispatched call = *(struct dispatched *)argument;
    call.item->dispatch(call.item, &call.request, call.cookie);
}

int qj_ac_dispatch(struct qj_ac_group *group) {
    int result = 0;
    DO_FINISH({
        do {
            struct dispatched call;
            result = qj_ac_poll_recv_group(group, &call.item, &call.request, &call.cookie);
            if (result == 0) {
                if (call.item->dispatch != NULL) qj_ac_async(run_dispatched, &call);
                /* A peer that always has a request, and handlers that never wait, leave no other switch. */
                if (qj_ac__poll_is_due(&qj_ac__thread)) qj_ac_yield();
                result = qj_ac_is_canceled() ? QJ_AC_CANCELED : 0;
            } else if (result == -EWOULDBLOCK) {
                result = wait_for_group(group);
            }
        } while (result == 0);
    });
    return result;
}
