/* Timers: an intrusive pairing heap (Fredman, Sedgewick, Sleator, Tarjan 1986), so that setting a timer allocates
 * nothing. */
#include "internal.h"

#include <time.h>

uint64_t qj_ac__now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Melds two heaps: the later root becomes the first child of the other. */
static struct qj_ac_timer *meld(struct qj_ac_timer *a, struct qj_ac_timer *b) {
    if (a == NULL) return b;
    if (b == NULL) return a;
    if (b->when_ns < a->when_ns) {
        struct qj_ac_timer *swap = a;
        a = b;
        b = swap;
    }
    b->next = a->child;
    if (a->child != NULL) a->child->prev = b;
    b->prev = a;
    a->child = b;
    a->next = NULL;
    return a;
}

/* Melds a list of siblings in pairs from left to right, then all of them from right to left. */
static struct qj_ac_timer *meld_siblings(struct qj_ac_timer *first) {
    struct qj_ac_timer *pairs = NULL;
    while (first != NULL) {
        struct qj_ac_timer *a = first, *b = a->next;
        first = b != NULL ? b->next : NULL;
        a->next = NULL;
        if (b != NULL) b->next = NULL;
        struct qj_ac_timer *pair = meld(a, b);
        pair->next = pairs;
        pairs = pair;
    }
    struct qj_ac_timer *root = NULL;
    while (pairs != NULL) {
        struct qj_ac_timer *pair = pairs;
        pairs = pair->next;
        pair->next = NULL;
        root = meld(root, pair);
    }
    return root;
}

static void set_root(struct qj_ac_runtime *runtime, struct qj_ac_timer *root) {
    runtime->timers = root;
    if (root != NULL) {
        root->prev = root;
        root->next = NULL;
    }
}

void qj_ac__timer_set(struct qj_ac_runtime *runtime, struct qj_ac_timer *timer, uint64_t when_ns,
                      void (*fire)(struct qj_ac_timer *timer)) {
    timer->when_ns = when_ns;
    timer->fire = fire;
    timer->child = timer->next = NULL;
    timer->prev = timer;
    set_root(runtime, meld(runtime->timers, timer));
    qj_ac__poller_wanted(runtime);
}

void qj_ac__timer_unset(struct qj_ac_runtime *runtime, struct qj_ac_timer *timer) {
    if (timer->prev == NULL) return;
    struct qj_ac_timer *children = meld_siblings(timer->child);
    if (runtime->timers == timer) {
        set_root(runtime, children);
    } else {
        if (timer->prev->child == timer) {
            timer->prev->child = timer->next;
        } else {
            timer->prev->next = timer->next;
        }
        if (timer->next != NULL) timer->next->prev = timer->prev;
        set_root(runtime, meld(runtime->timers, children));
    }
    timer->prev = NULL;
}

bool qj_ac__timers_fire(struct qj_ac_runtime *runtime) {
    if (runtime->timers == NULL) return false;
    uint64_t now = qj_ac__now_ns();
    bool fired = false;
    while (runtime->timers != NULL && runtime->timers->when_ns <= now) {
        struct qj_ac_timer *timer = runtime->timers;
        qj_ac__timer_unset(runtime, timer);
        timer->fire(timer);
        fired = true;
    }
    return fired;
}
