/* Finish blocks ("Extensions to Barrelfish Asynchronous C", section 3): the slow path of the wait at their end,
 * cancellation, deadlines. Does not know what tasks inside a block wait for. */
#include "internal.h"

void qj_ac__finish_wait_slow(struct qj_ac_finish *block) {
    block->waiter = qj_ac__thread.current;
    qj_ac__suspend_slow();
}

/* ---- the tree of blocks, from parents to children ---- */

/* Links the block and its ancestors into the tree, up to one that is linked already. */
void qj_ac__link_blocks(struct qj_ac_finish *block) {
    for (; block->up != NULL && !(block->state & QJ_AC_BLOCK_LINKED); block = block->up) {
        struct qj_ac_finish *up = block->up;
        block->sibling_prev = NULL;
        block->sibling_next = up->children;
        if (up->children != NULL) up->children->sibling_prev = block;
        up->children = block;
        block->state |= QJ_AC_BLOCK_LINKED;
    }
}

static void unlink_child(struct qj_ac_finish *block) {
    if (block->sibling_next != NULL) block->sibling_next->sibling_prev = block->sibling_prev;
    if (block->sibling_prev != NULL) {
        block->sibling_prev->sibling_next = block->sibling_next;
    } else {
        block->up->children = block->sibling_next;
    }
}

/* The end of a block that was cancelled, linked or timed. */
void qj_ac__finish_rollback(struct qj_ac_finish *block) {
    if (block->state & QJ_AC_BLOCK_LINKED) unlink_child(block);
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

/* Runs the cancel items of the block and of the blocks below it, up to shields. Iterative, because the tree may be as
 * deep as the recursion of the program: down to the newest innermost block, then its elder sibling, then its parent. */
static void run_cancel_items_below(struct qj_ac_finish *top) {
    struct qj_ac_finish *block = top;
    bool descend = true;
    for (;;) {
        while (descend && block->children != NULL && (block == top || !(block->state & QJ_AC_BLOCK_SHIELD))) {
            block = block->children;
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
        if (block->sibling_next != NULL) {
            block = block->sibling_next;
            descend = true;
        } else {
            block = block->up;
            descend = false;
        }
    }
}

/* Whether the task is inside of the block. */
static bool encloses_task(const struct qj_ac_finish *block, const struct qj_ac_task *task) {
    const struct qj_ac_finish *open = task->finish;
    while (open != NULL && open != block) open = open->up;
    return open != NULL;
}

/* Blocks do not record their thread. Most enclose the caller, or are on a stack of the thread; any other open block of
 * the thread encloses a suspended task. */
static bool is_of_this_thread(const struct qj_ac_finish *block) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    /* Relaxed, without a partner: see `qj_ac_start`. */
    if (encloses_task(block, runtime->current) || __atomic_load_n(&qj_ac__threads, __ATOMIC_RELAXED) == 1) return true;
    if (runtime->current == &qj_ac__no_task) return false;
    void *low;
    size_t bytes;
    qj_ac__stack_bounds(runtime, &runtime->root, &low, &bytes);
    if ((uintptr_t)block - (uintptr_t)low < bytes || qj_ac__on_task_stack(runtime, block)) return true;
    for (const struct qj_ac_task *task = runtime->all; task != NULL; task = task->all_next) {
        if (qj_ac__is_suspended(task) && encloses_task(block, task)) return true;
    }
    return encloses_task(block, &runtime->root);
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
    run_cancel_items_below(block);
}

void qj_ac_cancel(struct qj_ac_finish *block) {
    check_thread(block, "CANCEL");
    cancel(block);
}

void qj_ac_fail(int error) {
    struct qj_ac_finish *home = qj_ac__thread.current->home;
    if (home == NULL) qj_ac__fatal("qj_ac_fail() outside of all tasks: no block would be cancelled");
    if (home->error == 0) home->error = error;
    cancel(home);
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
