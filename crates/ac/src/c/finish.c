/* Finish blocks: waiting at their end when the short way is not open, cancellation, deadlines. Knows how blocks nest,
 * nothing of what is waited for inside them. */
#include "internal.h"

void qj_ac__finish_wait_slow(struct qj_ac_finish *block) {
    block->waiter = qj_ac__thread.current;
    qj_ac__suspend_slow();
}

/* ---- the tree downwards ---- */

/* Links the block and all around it, up to one that is linked already or has nothing above. */
void qj_ac__link_blocks(struct qj_ac_finish *block) {
    for (; block->up != NULL && !(block->state & QJ_AC_BLOCK_LINKED); block = block->up) {
        struct qj_ac_finish *up = block->up;
        block->kid_prev = NULL;
        block->kid_next = up->kids;
        if (up->kids != NULL) up->kids->kid_prev = block;
        up->kids = block;
        block->state |= QJ_AC_BLOCK_LINKED;
    }
}

static void unlink_kid(struct qj_ac_finish *block) {
    if (block->kid_next != NULL) block->kid_next->kid_prev = block->kid_prev;
    if (block->kid_prev != NULL) {
        block->kid_prev->kid_next = block->kid_next;
    } else {
        block->up->kids = block->kid_next;
    }
}

/* The end of a block that was cancelled, linked or timed. */
void qj_ac__finish_rollback(struct qj_ac_finish *block) {
    if (block->state & QJ_AC_BLOCK_LINKED) unlink_kid(block);
    if (block->state & QJ_AC_BLOCK_CANCELED) qj_ac__thread.canceled_blocks--;
    if (block->state & QJ_AC_BLOCK_DEADLINE) qj_ac__timer_unset(&qj_ac__thread, &block->deadline);
}

/* ---- cancellation ---- */

bool qj_ac__block_canceled(const struct qj_ac_finish *block) {
    for (; block != NULL; block = block->up) {
        if (block->state & QJ_AC_BLOCK_CANCELED) return true;
        if (block->state & QJ_AC_BLOCK_SHIELD) return false;
    }
    return false;
}

int qj_ac__is_canceled_slow(void) { return qj_ac__block_canceled(qj_ac__thread.current->finish); }

int qj_ac_cancel_item_add(struct qj_ac_cancel_item *item, void (*run)(void *argument), void *argument) {
    item->ran = 0;
    item->link = NULL;
    if (qj_ac_is_canceled()) return QJ_AC_CANCELED;
    qj_ac__item_add(qj_ac__thread.current->finish, item, run, argument);
    return 0;
}

void qj_ac_cancel_item_remove(struct qj_ac_cancel_item *item) {
    qj_ac__item_remove(item);
    item->link = NULL;
}

/* Tells everything at and below the block. The tree may be as deep as recursion in the program is, so no recursion
 * here: down to the newest innermost block, its items, then over to its elder sibling or up. */
static void tell_below(struct qj_ac_finish *top) {
    struct qj_ac_finish *block = top;
    bool descend = true;
    for (;;) {
        while (descend && block->kids != NULL && (block == top || !(block->state & QJ_AC_BLOCK_SHIELD))) {
            block = block->kids;
        }
        bool protected_from_above = block != top && (block->state & QJ_AC_BLOCK_SHIELD) != 0;
        while (!protected_from_above && block->items != NULL) {
            struct qj_ac_cancel_item *item = block->items;
            qj_ac__item_remove(item);
            item->link = NULL;
            item->ran = 1;
            item->run(item->argument);
        }
        if (block == top) return;
        if (block->kid_next != NULL) {
            block = block->kid_next;
            descend = true;
        } else {
            block = block->up;
            descend = false;
        }
    }
}

/* Whether the block is one that the task is in. */
static bool is_around(const struct qj_ac_finish *block, const struct qj_ac_task *task) {
    const struct qj_ac_finish *open = task->finish;
    while (open != NULL && open != block) open = open->up;
    return open != NULL;
}

/* Blocks do not name their thread. Most enclose the caller, or lie on a stack of the thread's; around every other one that
 * is open there is some task that waits. */
static bool is_of_this_thread(const struct qj_ac_finish *block) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    /* No partner: see `qj_ac_start`. */
    if (is_around(block, runtime->current) || __atomic_load_n(&qj_ac__threads, __ATOMIC_RELAXED) == 1) return true;
    if (runtime->current == &qj_ac__no_task) return false;
    void *low;
    size_t bytes;
    qj_ac__stack_bounds(runtime, &runtime->root, &low, &bytes);
    if ((uintptr_t)block - (uintptr_t)low < bytes || qj_ac__on_task_stack(runtime, block)) return true;
    for (const struct qj_ac_task *task = runtime->all; task != NULL; task = task->all_next) {
        if (qj_ac__is_suspended(task) && is_around(block, task)) return true;
    }
    return is_around(block, &runtime->root);
}

static void check_thread(const struct qj_ac_finish *block, const char *what) {
    if (QJ_AC_LIKELY(block == qj_ac__thread.current->finish) || is_of_this_thread(block)) return;
    qj_ac__fatal("%s of a DO_FINISH block that is another thread's: wake a task of that thread, and have it do so", what);
}

static void cancel(struct qj_ac_finish *block) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (block->state & QJ_AC_BLOCK_CANCELED) return;
    block->state |= QJ_AC_BLOCK_CANCELED;
    runtime->canceled_blocks++;
    runtime->statistics.cancels++;
    tell_below(block);
}

void qj_ac_cancel(struct qj_ac_finish *block) {
    check_thread(block, "CANCEL");
    cancel(block);
}

/* ---- deadlines ---- */

static void on_deadline(struct qj_ac_timer *timer) {
    struct qj_ac_finish *block = (struct qj_ac_finish *)((char *)timer - offsetof(struct qj_ac_finish, deadline));
    if (!(block->state & QJ_AC_BLOCK_CANCELED)) block->state |= QJ_AC_BLOCK_EXPIRED;
    cancel(block);
}

void qj_ac_deadline(struct qj_ac_finish *block, uint64_t after_ns) {
    check_thread(block, "a deadline");
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (block->state & QJ_AC_BLOCK_DEADLINE) qj_ac__timer_unset(runtime, &block->deadline);
    block->state |= QJ_AC_BLOCK_DEADLINE;
    uint64_t now = qj_ac__now_ns();
    qj_ac__timer_set(runtime, &block->deadline, after_ns > UINT64_MAX - now ? UINT64_MAX : now + after_ns, on_deadline);
}
