/* Starting tasks, and all forms of yielding. The fast paths are here. If the thread has not started, the pool is empty,
 * instrumentation is enabled, an event is awaited or a precondition is violated, the function of the same name with
 * `_slow` in the library is called. */
#ifndef QUAJECT_AC_TASK_H
#define QUAJECT_AC_TASK_H

#include <quaject/ac/switch.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the dispatch queue: circular, the sentinel is `runtime->queue`; `prev` is null outside of it ---- */

QJ_AC_INLINE void qj_ac__push_back(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    struct qj_ac_task *end = &runtime->queue, *last = end->prev;
    task->next = end;
    task->prev = last;
    last->next = task;
    end->prev = task;
}

QJ_AC_INLINE void qj_ac__push_front(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    struct qj_ac_task *end = &runtime->queue, *first = end->next;
    task->next = first;
    task->prev = end;
    first->prev = task;
    end->next = task;
}

/* For a task that waits: moves its context to `queued_sp`, from which the queue resumes it. */
QJ_AC_INLINE void qj_ac__to_queue(struct qj_ac_task *task) {
    if (task->sp == NULL) return;
    task->queued_sp = task->sp;
    task->sp = NULL;
}

QJ_AC_INLINE void qj_ac__unlink(struct qj_ac_task *task) {
    task->prev->next = task->next;
    task->next->prev = task->prev;
    task->prev = NULL;
}

/* ---- starting ---- */

void qj_ac__async_slow(void (*function)(void *), void *argument);
void qj_ac__finished_call(struct qj_ac_runtime *runtime, struct qj_ac_task *task);
/* The running task ends while it handles exceptions: clears them for the next task on its stack. */
void qj_ac__exceptions_forget(void);
/* Moves the exception that leaves `task` to its parent. */
__attribute__((cold)) void qj_ac__exceptions_leave(struct qj_ac_task *task, struct qj_ac_task *parent);
__attribute__((noreturn, cold)) void qj_ac__fatal_outside_block(const char *what);
__attribute__((noreturn, cold)) void qj_ac__fatal_open_block(struct qj_ac_task *task);

/* The pool of stacks. A task leaves it when it first waits or starts a task itself. Most tasks end before that, and
 * then neither allocation nor release stores anything. So the running task may still be the first of the pool. In a
 * pooled task `finish` is `home`. */
QJ_AC_INLINE void qj_ac__to_pool(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    task->next = runtime->spare;
    runtime->spare = task;
}
QJ_AC_INLINE struct qj_ac_task *qj_ac__leave_pool(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    return runtime->spare = task->next;
}

/* When an exception passes through: the stack returns to the pool, and the parent continues. */
QJ_AC_INLINE void qj_ac__release_stack(struct qj_ac_task **returned) {
    struct qj_ac_task *task = *returned;
    if (QJ_AC_LIKELY(task != NULL)) {
        struct qj_ac_runtime *runtime = &qj_ac__thread;
        task->finish = task->home;
        if (runtime->spare != task) qj_ac__to_pool(runtime, task);
        runtime->current = task->parent;
        qj_ac__exceptions_leave(task, task->parent);
    }
}

/* Calls `function(argument)` as a task of the innermost open block: it runs at once, and this returns when it has ended
 * or when it waits for the first time. What `argument` points to must live until the block ends, or be copied before
 * the function waits. */
QJ_AC_INLINE void qj_ac_async(void (*function)(void *), void *argument) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *task = runtime->spare, *parent = runtime->current;
    if (QJ_AC_UNLIKELY(task == parent)) task = qj_ac__leave_pool(runtime, parent);
    if (QJ_AC_UNLIKELY(task == NULL)) {
        qj_ac__async_slow(function, argument);
        return;
    }
    struct qj_ac_finish *home = parent->finish;
    if (QJ_AC_UNLIKELY(home == NULL)) qj_ac__fatal_outside_block("ASYNC");
    /* A child runs on top of it now, so that it cannot be yielded to. */
    if (parent->sp != NULL) parent->sp = NULL;
    /* Usually unchanged: a block starts its tasks on the same stack. A load is cheaper than a store. */
    if (task->parent != parent) task->parent = parent;
    if (task->home != home) task->home = task->finish = home;
    runtime->current = task;
    __attribute__((cleanup(qj_ac__release_stack))) struct qj_ac_task *returned = task;
    returned = qj_ac__call_inline(task, function, argument);
    /* As `qj_ac__release_stack`, without loading values that were just stored and are known. */
    struct qj_ac_task *ended = returned;
    returned = NULL;
    if (QJ_AC_LIKELY(ended != NULL)) {
        if (QJ_AC_UNLIKELY(ended->finish != ended->home)) qj_ac__fatal_open_block(ended);
        if (QJ_AC_UNLIKELY(runtime->spare != ended)) qj_ac__to_pool(runtime, ended);
        runtime->current = ended->parent;
    }
}

/* The same, but if there is no stack, because `max_stacks` tasks or all memory are in use, it starts nothing and
 * returns -EAGAIN or -ENOMEM; otherwise 0. The other forms wait until a task has ended. If none can end any more, that
 * is a deadlock, which stops the process with the reason. */
int qj_ac_try_async(void (*function)(void *), void *argument);

/* The same with an eagerly owned stack: the parent goes to the front of the dispatch queue before the function starts,
 * as in the eager configuration of the paper, so that the task can yield to it by name from its first instruction. */
void qj_ac_async_eager(void (*function)(void *), void *argument);

/* ---- waiting ---- */

/* Whether the innermost open block, or one around it up to the next shield, is cancelled. */
int qj_ac__is_canceled_slow(void);
QJ_AC_INLINE int qj_ac_is_canceled(void) {
    return QJ_AC_UNLIKELY(qj_ac__thread.canceled_blocks != 0) && qj_ac__is_canceled_slow();
}
QJ_AC_INLINE int qj_ac__wait_result(struct qj_ac_runtime *runtime) {
    if (QJ_AC_LIKELY(runtime->canceled_blocks == 0)) return 0;
    return qj_ac__is_canceled_slow() ? QJ_AC_CANCELED : 0;
}

/* Detaches a task from its parent at its first wait. Returns the record from which the parent resumes. */
QJ_AC_INLINE void *qj_ac__first_wait(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    void *to = task->parent_sp;
    if (runtime->spare == task) qj_ac__leave_pool(runtime, task);
    task->parent_sp = NULL;
    task->home->count++;
    runtime->statistics.started++;
    runtime->current = task->parent;
    return to;
}

int qj_ac__yield_slow(void);
void qj_ac__suspend_slow(void);
int qj_ac__yield_to_slow(struct qj_ac_task *to);
int qj_ac__yield_to_nodispatch_slow(struct qj_ac_task *to);

/* Lets every other runnable task go first. Returns 0, or QJ_AC_CANCELED. */
QJ_AC_INLINE int qj_ac_yield(void) {
    struct qj_ac_runtime *runtime = qj_ac__this_thread();
    struct qj_ac_task *task = runtime->current, *next = runtime->queue.next;
    if (QJ_AC_UNLIKELY(runtime->slow != 0)) return qj_ac__yield_slow();
    if (task->parent_sp != NULL) {
        void *to = qj_ac__first_wait(runtime, task);
        qj_ac__push_back(runtime, task);
        qj_ac__switch_first_queued(task, to);
    } else if (QJ_AC_LIKELY(next != &runtime->queue)) {
        /* `next` leaves at the front and `task` comes at the end. Two tasks that alternate are a separate case: the
         * next yield then loads values that are known here, not values behind another pointer. */
        struct qj_ac_task *end = &runtime->queue, *last = end->prev;
        runtime->statistics.switches++;
        task->next = end;
        if (last == next) {
            task->prev = end;
            end->next = task;
        } else {
            struct qj_ac_task *second = next->next;
            task->prev = last;
            last->next = task;
            end->next = second;
            second->prev = end;
        }
        end->prev = task;
        next->prev = NULL;
        runtime->current = next;
        if (task->sp != NULL) task->sp = NULL;
        qj_ac__switch_queued(task, next->queued_sp, next);
    }
    return qj_ac__wait_result(qj_ac__this_thread());
}

/* Waits until this task is scheduled or yielded to. */
QJ_AC_INLINE void qj_ac_suspend(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *task = runtime->current, *next = runtime->queue.next;
    if (QJ_AC_UNLIKELY(runtime->slow != 0)) {
        qj_ac__suspend_slow();
    } else if (task->parent_sp != NULL) {
        qj_ac__thread.current = qj_ac__switch_first_waiting(task, qj_ac__first_wait(runtime, task));
    } else if (QJ_AC_LIKELY(next != &runtime->queue)) {
        runtime->statistics.switches++;
        qj_ac__unlink(next);
        runtime->current = next;
        qj_ac__thread.current = qj_ac__switch_waiting(task, next->queued_sp, next);
    } else {
        qj_ac__suspend_slow();
    }
}

/* Waits until another thread schedules this task; it may do so before this call, as soon as it has the task. A task
 * that suspends without this call is assumed to be woken by a task of its own thread: if all tasks wait, that is a
 * deadlock. */
void qj_ac_suspend_remote(void);

/* The running task, to be scheduled later. */
QJ_AC_INLINE struct qj_ac_task *qj_ac_current(void) {
    if (QJ_AC_UNLIKELY(qj_ac__thread.current == &qj_ac__no_task)) qj_ac_start();
    return qj_ac__thread.current;
}

/* Makes a suspended task runnable: next, or last. From another thread than its own: last, and a sleeper is woken. A
 * task that sleeps, or waits for a semaphore, I/O or a message, checks its condition and continues to wait; likewise if
 * it is yielded to. */
void qj_ac_schedule(struct qj_ac_task *task);
void qj_ac_schedule_back(struct qj_ac_task *task);

/* Runs `to`, a task of this thread, now and goes to the end of the dispatch queue. Returns 0, QJ_AC_CANCELED, or -ESRCH
 * when `to` does not wait. */
QJ_AC_INLINE int qj_ac_yield_to(struct qj_ac_task *to) { return qj_ac__yield_to_slow(to); }

/* Checks in debug builds that a task belongs to this thread; an optimised direct yield does not check. Under a tool it
 * is always checked. */
#ifdef __OPTIMIZE__
#define QJ_AC__OTHER_THREAD(task) 0
#else
#define QJ_AC__OTHER_THREAD(task) ((task)->runtime != &qj_ac__thread)
#endif

/* The direct form: neither task is in the dispatch queue, nor enters it. The yielding task must be woken explicitly. */
QJ_AC_INLINE int qj_ac_yield_to_nodispatch(struct qj_ac_task *to) {
    struct qj_ac_task *task = qj_ac__thread.current, *now;
    void *context = to->sp;
    int result = 0;
    if (QJ_AC_UNLIKELY(context == NULL || to == task || ((uintptr_t)task->parent_sp | qj_ac__thread.slow) != 0 ||
                       QJ_AC__OTHER_THREAD(to))) {
        result = qj_ac__yield_to_nodispatch_slow(to);
        now = qj_ac__thread.current;
    } else {
        now = qj_ac__switch_waiting(task, context, to);
    }
    qj_ac__thread.current = now;
    return result;
}

/* ---- tasks by number (the paper's AWE mapper) ----
 * A number is an index and a generation: a released or forged number refers to no task. */

/* A new number, never 0 nor -1, for tasks of this thread. A thread has 65535 of them; if all are in use, waits until
 * one is removed. If none can be any more, that is a deadlock, which stops the process with the reason. */
uint32_t qj_ac_id_create(void);
/* The same without waiting: 0 if all numbers are in use, or there is no memory for them. */
uint32_t qj_ac_try_id_create(void);
/* Returns 0, or -EINVAL when the number is not in use. */
int qj_ac_id_remove(uint32_t id);
int qj_ac_id_set(uint32_t id, struct qj_ac_task *task);
/* The task that waits under this number, or null. */
QJ_AC_INLINE struct qj_ac_task *qj_ac_id_task(uint32_t id) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_slot *slot = &runtime->slots[id & runtime->slot_mask];
    return slot->id == id ? slot->task : NULL;
}

/* Each returns 0, QJ_AC_CANCELED, -EINVAL when `own` is not in use, or -ESRCH when no task waits under `to`. `own`
 * refers to the task while it waits, and to no task when it runs again. */
int qj_ac_yield_and_save(uint32_t own);
int qj_ac_yield_to_id(uint32_t to);
int qj_ac_yield_to_id_and_save(uint32_t to, uint32_t own);

/* Without the dispatch queue: waits until a task yields to the number. */
QJ_AC_INLINE int qj_ac_yield_and_save_nodispatch(uint32_t own) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_slot *slot = &runtime->slots[own & runtime->slot_mask];
    if (QJ_AC_UNLIKELY(slot->id != own)) return -EINVAL;
    slot->task = runtime->current;
    qj_ac_suspend();
    return 0;
}

QJ_AC_INLINE int qj_ac_yield_to_id_nodispatch(uint32_t to) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_slot *slot = &runtime->slots[to & runtime->slot_mask];
    struct qj_ac_task *task = slot->task;
    if (QJ_AC_UNLIKELY(slot->id != to || task == NULL)) return -ESRCH;
    slot->task = NULL;
    return qj_ac_yield_to_nodispatch(task);
}

/* Target prediction: most tasks yield to the same task as the last time, which the task caches. The look-up, whose
 * latency begins with a load from the resumed task's frame, then only confirms the prediction, and the processor
 * speculates past it. `me` has waited: it is in no queue and no pool. The predicted task may have ended; its pointer is
 * only compared. */
QJ_AC_INLINE struct qj_ac_task *qj_ac__predict_target(struct qj_ac_task *me, struct qj_ac_task *found) {
    struct qj_ac_task *predicted = me->predicted_target, *same = predicted;
    __asm__("" : "+r"(same)); /* hides from the compiler that they are equal, or it would use the other one */
    if (QJ_AC_UNLIKELY(same != found)) return me->predicted_target = found;
    __asm__ volatile("" : "+r"(predicted)); /* prevents a conditional move instead of the branch */
    return predicted;
}

QJ_AC_INLINE int qj_ac_yield_to_id_and_save_nodispatch(uint32_t to, uint32_t own) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_slot *slots = runtime->slots, *target = &slots[to & runtime->slot_mask];
    struct qj_ac_slot *slot = &slots[own & runtime->slot_mask];
    struct qj_ac_task *task = target->task, *me = runtime->current;
    if (QJ_AC_UNLIKELY(target->id != to)) return -ESRCH;
    if (QJ_AC_UNLIKELY(task == NULL)) return -ESRCH;
    if (QJ_AC_UNLIKELY(slot->id != own)) return -EINVAL;
    target->task = NULL;
    slot->task = me;
    if (QJ_AC_LIKELY(me->parent_sp == NULL)) task = qj_ac__predict_target(me, task);
    return qj_ac_yield_to_nodispatch(task);
}

/* ---- diagnostics ---- */

/* Sets the name of the running task for messages, traces and the debugger. The text is not copied. */
QJ_AC_INLINE void qj_ac_name(const char *name) {
    if (QJ_AC_UNLIKELY(qj_ac__thread.current == &qj_ac__no_task)) qj_ac_start();
    qj_ac__thread.current->name = name;
}
/* The calling thread's counters. */
void qj_ac_read_statistics(struct qj_ac_statistics *statistics);

#ifdef __cplusplus
}
#endif

#endif
