/* Finish blocks: open and close, cancel, shield, deadline. */
#ifndef QUAJECT_AC_FINISH_H
#define QUAJECT_AC_FINISH_H

#include <quaject/ac/task.h>

#ifdef __cplusplus
extern "C" {
#endif

void qj_ac__finish_wait_slow(struct qj_ac_finish *block);
void qj_ac__finish_rollback(struct qj_ac_finish *block);
__attribute__((noreturn, cold)) void qj_ac__fatal_block_order(struct qj_ac_finish *block);

/* Opens a block in the running task. */
QJ_AC_INLINE void qj_ac_finish_begin(struct qj_ac_finish *block) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (QJ_AC_UNLIKELY(runtime->current == &qj_ac__no_task)) qj_ac_start();
    struct qj_ac_task *task = runtime->current;
    block->count = 0;
    block->waiter = NULL;
    block->up = task->finish;
    block->state = 0;
    block->error = 0;
    block->failure = NULL;
    block->children = NULL;
    block->items = NULL;
    task->finish = block;
}

/* Opens a shield: cancellations of enclosing blocks do not reach into it. For work that must be completed. */
QJ_AC_INLINE void qj_ac_finish_begin_shielded(struct qj_ac_finish *block) {
    qj_ac_finish_begin(block);
    block->state = QJ_AC_BLOCK_SHIELD;
}

/* Waits until every task started in the block has ended, and closes it. */
QJ_AC_INLINE void qj_ac_finish_end(struct qj_ac_finish *block) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *task = runtime->current, *next = runtime->queue.next;
    if (QJ_AC_UNLIKELY(task->finish != block)) qj_ac__fatal_block_order(block);
    if (block->count != 0) {
        if (QJ_AC_UNLIKELY(((uintptr_t)task->parent_sp | runtime->slow) != 0 || next == &runtime->queue)) {
            qj_ac__finish_wait_slow(block);
        } else {
            block->waiter = task;
            if (task->sp != NULL) task->sp = NULL;
            qj_ac__unlink(next);
            runtime->current = next;
            qj_ac__switch_queued(task, next->queued_sp, next);
        }
    }
    task->finish = block->up;
    if (QJ_AC_UNLIKELY(block->state & ~QJ_AC_BLOCK_SHIELD)) qj_ac__finish_rollback(block);
}

/* Waits until every task started in the block so far has ended; the block, which is the innermost one of the running
 * task, stays open. */
QJ_AC_INLINE void qj_ac_join(struct qj_ac_finish *block) {
    if (QJ_AC_UNLIKELY(qj_ac__thread.current->finish != block)) qj_ac__fatal_block_order(block);
    if (block->count != 0) qj_ac__finish_wait_slow(block);
}

/* Cancels the block and the blocks below it up to shields. Cancellation is cooperative: cancellable waits return
 * QJ_AC_CANCELED, present and future ones; no task is killed. Blocks further down are cancelled first, in each the
 * newest wait first. The block must belong to this thread. */
void qj_ac_cancel(struct qj_ac_finish *block);

/* Cancels the block `after_ns` nanoseconds from now unless it has ended. A second call replaces the first. */
void qj_ac_deadline(struct qj_ac_finish *block, uint64_t after_ns);
/* Whether the deadline cancelled the block; may also be called after the block. */
QJ_AC_INLINE int qj_ac_expired(const struct qj_ac_finish *block) {
    return (block->state & QJ_AC_BLOCK_EXPIRED) != 0;
}

/* The running task has failed: cancels the block in which it was started, so that its siblings end early, and stores
 * `error`, not 0, unless another task has failed before. The task goes on, and should return. An exception that leaves
 * a task in C++, and a panic in Rust, do the same. */
void qj_ac_fail(int error);
/* The error of the first task that failed; 0 if none has. May also be called after the block. */
QJ_AC_INLINE int qj_ac_failure(const struct qj_ac_finish *block) { return block->error; }

/* Registers `item->run(item->argument)` to be called when the innermost open block is cancelled. If it is cancelled
 * already, returns QJ_AC_CANCELED and registers nothing. */
int qj_ac_cancel_item_add(struct qj_ac_cancel_item *item, void (*run)(void *argument), void *argument);
void qj_ac_cancel_item_remove(struct qj_ac_cancel_item *item);

#ifdef __cplusplus
}
#endif

#endif
