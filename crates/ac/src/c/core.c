/* Tasks: the slow paths of starting, yielding and ending, and the thread's state ("Extensions to Barrelfish
 * Asynchronous C", Quigley 2016, section 4). The fast paths are in include/quaject/ac/task.h; each is equivalent to the
 * function of the same name here. Knows no cancellation, timers or I/O. */
#include "internal.h"

#include <quaject/thc.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The current task of a thread that has not started. Its `parent_sp` is set, as of a task that has never waited, so
 * that every wait takes the slow path, which starts the thread. */
struct qj_ac_task qj_ac__no_task = {.parent_sp = &qj_ac__no_task};
__thread struct qj_ac_runtime qj_ac__thread = {
    .current = &qj_ac__no_task, .slow = QJ_AC_SLOW_UNSTARTED, .slots = qj_ac__no_slots, .slot_mask = QJ_AC_NO_SLOTS - 1};

void qj_ac__fatal(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = snprintf(text, sizeof text, "quaject-ac: ");
    length += vsnprintf(text + length, sizeof text - (size_t)length - 1, format, arguments);
    va_end(arguments);
    if (length > (int)sizeof text - 2) length = (int)sizeof text - 2;
    text[length++] = '\n';
    ssize_t written = write(STDERR_FILENO, text, (size_t)length);
    (void)written;
    abort();
}

static const char *name_of(const struct qj_ac_task *task) {
    return task->name != NULL ? task->name : "without a name";
}

void qj_ac__fatal_outside_block(const char *what) {
    qj_ac__fatal("%s outside of a DO_FINISH block: no block would wait for the task", what);
}

void qj_ac__fatal_other_thread(const char *what, const struct qj_ac_task *task) {
    qj_ac__fatal("%s: task %u (%s) belongs to another thread; other threads may only schedule it", what, task->number,
               name_of(task));
}

__attribute__((noreturn, cold)) static void fatal_left_by_jump(const struct qj_ac_task *task) {
    qj_ac__fatal("task %u (%s) was left by longjmp, or by a context of the program's: jump inside of a task only, and have its "
               "function return",
               task->number, name_of(task));
}

/* The root task does not record the bounds of the thread's own stack; and a program may run on a stack of its own. */
void qj_ac__check_other_stack(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *task = runtime->current;
    if (task == &qj_ac__no_task || task == &runtime->root) return;
    uintptr_t here = qj_ac__stack_pointer();
    void *low;
    size_t bytes;
    qj_ac__stack_bounds(runtime, &runtime->root, &low, &bytes);
    if (here - (uintptr_t)low >= bytes && !qj_ac__on_task_stack(runtime, (void *)here)) return;
    fatal_left_by_jump(task);
}

void qj_ac__fatal_open_block(struct qj_ac_task *task) {
    /* The stack belongs to the task that returns. */
    if (task != qj_ac__thread.current) fatal_left_by_jump(qj_ac__thread.current);
    qj_ac__fatal("task %u (%s) ended inside a DO_FINISH block that it opened and did not close", task->number,
               name_of(task));
}

void qj_ac__fatal_block_order(struct qj_ac_finish *block) {
    struct qj_ac_task *task = qj_ac__thread.current;
    qj_ac__check_stack(&qj_ac__thread);
    for (struct qj_ac_finish *open = task->finish; open != NULL; open = open->up) {
        if (open == block) qj_ac__fatal("a DO_FINISH block ended while a block inside of it is still open");
    }
    qj_ac__fatal("a DO_FINISH block ended twice, or in a task that did not open it");
}

/* ---- the thread ---- */

unsigned qj_ac__threads;

static pthread_key_t ends;
static pthread_once_t ends_once = PTHREAD_ONCE_INIT;

/* Frees the stacks of a thread that ends. */
static void on_thread_end(void *runtime) {
    (void)runtime;
    struct qj_ac_task *task = qj_ac__thread.current;
    if (task == &qj_ac__no_task) return;
    if (task != &qj_ac__thread.root) {
        qj_ac__fatal("a thread ended in task %u (%s): it and the others would never end", task->number, name_of(task));
    }
    if (task->finish != NULL) qj_ac__fatal("a thread ended inside a DO_FINISH block: its tasks would never end");
    qj_ac_stop();
}

/* A forked child has one thread: no other thread is waking one of its tasks. */
static void after_fork_in_child(void) {
    qj_ac__thread.wakers = 0;
    qj_ac__threads = 1;
    qj_ac__instrument_forked();
}

static void make_key(void) {
    pthread_atfork(NULL, NULL, after_fork_in_child);
    if (pthread_key_create(&ends, on_thread_end) != 0) qj_ac__fatal("the process has no thread-specific key left");
}

void qj_ac_start(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (runtime->current != &qj_ac__no_task) return;
    qj_ac__refuse_shadow_stack();
    memset(runtime, 0, sizeof *runtime);
    qj_ac__ids_init(runtime);
    runtime->queue.next = runtime->queue.prev = &runtime->queue;
    runtime->root.runtime = runtime;
    runtime->root.name = "root";
    runtime->current = &runtime->root;
    runtime->slow = qj_ac__instrumentation();
    if (qj_ac__is_instrumented(runtime)) qj_ac__instrument_root(runtime);
    qj_ac__overflow_handler_install(runtime);
    /* Relaxed, without a partner: a thread that is counted itself reads it, to find out whether it is the only one. */
    __atomic_fetch_add(&qj_ac__threads, 1, __ATOMIC_RELAXED);
    pthread_once(&ends_once, make_key);
    pthread_setspecific(ends, runtime);
}

void qj_ac_stop(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (runtime->current == &qj_ac__no_task) return;
    qj_ac__check_stack(runtime);
    if (runtime->current != &runtime->root) qj_ac__fatal("the thread's tasks are stopped from inside a task");
    if (runtime->root.finish != NULL) qj_ac__fatal("the thread's tasks are stopped inside a DO_FINISH block");
    qj_ac__wait_for_wakers(runtime);
    qj_ac__io_stop(runtime);
    qj_ac__poller_stop(runtime);
    qj_ac__instrument_stop(runtime);
    qj_ac__overflow_handler_remove(runtime);
    qj_ac__pool_free(runtime);
    qj_ac__ids_stop(runtime);
    __atomic_fetch_sub(&qj_ac__threads, 1, __ATOMIC_RELAXED);
    runtime->current = &qj_ac__no_task;
    runtime->slow = QJ_AC_SLOW_UNSTARTED;
    runtime->spare = NULL;
}

void qj_ac_read_statistics(struct qj_ac_statistics *statistics) { *statistics = qj_ac__thread.statistics; }

/* ---- switching ---- */

/* Whether the task waits at the end of a block, where only the last task of the block may wake it. */
static bool waits_for_block_end(const struct qj_ac_task *task) { return task->finish != NULL && task->finish->waiter == task; }

bool qj_ac__is_suspended(const struct qj_ac_task *task) {
    const struct qj_ac_runtime *runtime = task->runtime;
    if (task == runtime->current) return false;
    if (qj_ac__is_instrumented(runtime)) return task->queued_sp != NULL && !waits_for_block_end(task);
    return task->sp != NULL || task->prev != NULL;
}

/* The field that receives the context of a task that is about to wait; see `struct qj_ac_task`. */
static void **context_field(const struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    return task->prev != NULL || waits_for_block_end(task) || qj_ac__is_instrumented(runtime) ? &task->queued_sp : &task->sp;
}

void qj_ac__switch_to(struct qj_ac_runtime *runtime, struct qj_ac_task *to) {
    struct qj_ac_task *task = runtime->current;
    void *context = to->sp != NULL ? to->sp : to->queued_sp;
    runtime->current = to;
    runtime->statistics.switches++;
    if (QJ_AC_UNLIKELY(qj_ac__is_instrumented(runtime))) {
        to->queued_sp = NULL;
        qj_ac__instrument_before(runtime, task, to, false);
        qj_ac__switch(&task->queued_sp, context, to);
        qj_ac__instrument_after(runtime, task);
        return;
    }
    /* The inline switch, not the function: a call would push a return address to the processor's return stack that no
     * `ret` pops, and all later returns would be mispredicted. */
    if (context_field(runtime, task) == &task->sp) {
        runtime->current = qj_ac__switch_waiting(task, context, to);
    } else {
        task->sp = NULL;
        qj_ac__switch_queued(task, context, to);
    }
}

struct qj_ac_task *qj_ac__dequeue(struct qj_ac_runtime *runtime) {
    struct qj_ac_task *next = runtime->queue.next;
    if (QJ_AC_UNLIKELY(next == &runtime->queue)) {
        if (runtime->slow & QJ_AC_SLOW_ROOM) qj_ac__fatal_no_stack(runtime);
        if (qj_ac__id_waits()) qj_ac__fatal_no_id();
        uint64_t waiting = runtime->statistics.started - runtime->statistics.ended - (runtime->poller != NULL);
        if (waiting == 0) {
            qj_ac__fatal("deadlock: the thread waits outside of all tasks, it has no task, and no timer, I/O or other thread can "
                       "wake it");
        }
        qj_ac__fatal("deadlock: every task waits (%llu of them), and no timer, I/O or other thread can wake one",
                   (unsigned long long)waiting);
    }
    qj_ac__unlink(next);
    return next;
}

/* The first wait while instrumentation is enabled: as `qj_ac__first_wait` and the switch after it, but without care for
 * return prediction. */
static void first_wait_instrumented(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    struct qj_ac_task *parent = task->parent;
    qj_ac__instrument_before(runtime, task, parent, false);
    qj_ac__detach(runtime, task);
    qj_ac__unlink(parent);
    void *context = parent->queued_sp;
    parent->queued_sp = NULL;
    runtime->current = parent;
    qj_ac__switch(context_field(runtime, task), context, parent);
    runtime->current = task;
    qj_ac__instrument_after(runtime, task);
}

/* In the frame of a task that waits for a stack. */
struct stack_wait {
    struct stack_wait *next;
    struct qj_ac_task *task;
    bool woken;
};
static __thread struct stack_wait *stack_waits, **stack_waits_end;

void qj_ac__wait_for_stack(struct qj_ac_runtime *runtime) {
    struct stack_wait wait = {NULL, runtime->current, false};
    if (stack_waits == NULL) stack_waits_end = &stack_waits;
    *stack_waits_end = &wait;
    stack_waits_end = &wait.next;
    runtime->slow |= QJ_AC_SLOW_ROOM;
    while (!wait.woken) qj_ac_suspend();
}

/* A stack is free, or will be before the next task runs. */
static __attribute__((noinline)) void wake_for_stack(struct qj_ac_runtime *runtime) {
    struct stack_wait *wait = stack_waits;
    stack_waits = wait->next;
    if (stack_waits == NULL) runtime->slow &= ~(uintptr_t)QJ_AC_SLOW_ROOM;
    wait->woken = true;
    qj_ac__make_runnable(wait->task);
}

/* As the inline functions of the same purpose, for a task that is in the queue or not. */
static void first_wait(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    if (qj_ac__is_instrumented(runtime)) {
        first_wait_instrumented(runtime, task);
        return;
    }
    void *to = qj_ac__first_wait(runtime, task);
    if (context_field(runtime, task) == &task->sp) {
        runtime->current = qj_ac__switch_first_waiting(task, to);
    } else {
        qj_ac__switch_first_queued(task, to);
    }
}

void qj_ac__suspend_slow(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (runtime->current == &qj_ac__no_task) qj_ac_start();
    qj_ac__check_stack(runtime);
    struct qj_ac_task *task = runtime->current;
    /* A child that never waited has left its stack without a notice. */
    if (QJ_AC_UNLIKELY(runtime->slow & QJ_AC_SLOW_ROOM) && runtime->spare != NULL && runtime->spare != task) {
        wake_for_stack(runtime);
    }
    bool due = qj_ac__poll_is_due(runtime);
    if (task->parent_sp != NULL && !due) {
        first_wait(runtime, task);
        return;
    }
    struct qj_ac_task *parent = NULL;
    if (task->parent_sp != NULL) {
        parent = task->parent;
        qj_ac__detach(runtime, task);
        qj_ac__unlink(parent);
    }
    if (due) qj_ac__poller_to_front(runtime, parent);
    qj_ac__switch_to(runtime, qj_ac__dequeue(runtime));
}

int qj_ac__yield_slow(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (runtime->current == &qj_ac__no_task) qj_ac_start();
    qj_ac__check_stack(runtime);
    struct qj_ac_task *task = runtime->current;
    if (task->parent_sp != NULL || runtime->queue.next != &runtime->queue) {
        if (runtime->spare == task) qj_ac__leave_pool(runtime, task);
        qj_ac__push_back(runtime, task);
        qj_ac__suspend_slow();
    }
    return qj_ac__wait_result(runtime);
}

/* Separates a task from its parent: the caller-continuation record of the child becomes the parent's context, and the
 * parent is queued. */
void qj_ac__detach(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    struct qj_ac_task *parent = task->parent;
    if (runtime->spare == task) qj_ac__leave_pool(runtime, task);
    parent->queued_sp = qj_ac__detach_context(task->parent_sp);
    task->parent_sp = NULL;
    task->home->count++;
    runtime->statistics.started++;
    qj_ac__set_task_base(task);
    qj_ac__push_front(runtime, parent);
}

/* Separates `to` from the children that run on top of it, so that it has a context of its own. */
static void detach_down_to(struct qj_ac_runtime *runtime, struct qj_ac_task *to) {
    for (struct qj_ac_task *task = runtime->current; task->parent_sp != NULL; task = task->parent) {
        bool enough = qj_ac__is_suspended(to);
        if (enough && task != runtime->current) break;
        qj_ac__detach(runtime, task);
    }
}

/* The task to run in a direct yield to `to`, which is in no queue: the poller if it is due. */
static struct qj_ac_task *target_or_poller(struct qj_ac_runtime *runtime, struct qj_ac_task *to) {
    if (!qj_ac__poll_is_due(runtime) || to == runtime->poller) return to;
    qj_ac__to_queue(to);
    qj_ac__poller_to_front(runtime, to);
    return qj_ac__dequeue(runtime);
}

/* Whether the stack of the task is known to be free. What was given back reads as zeros. */
static bool has_ended(const struct qj_ac_task *task) { return task->runtime == NULL || (task->flags & QJ_AC_TASK_POOLED) != 0; }

int qj_ac__yield_to_nodispatch_slow(struct qj_ac_task *to) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (runtime->current == &qj_ac__no_task) qj_ac_start();
    qj_ac__check_stack(runtime);
    if (has_ended(to)) return -ESRCH;
    if (to->runtime != runtime) qj_ac__fatal_other_thread("a direct yield", to);
    if (to == runtime->current) return -ESRCH;
    detach_down_to(runtime, to);
    if (!qj_ac__is_suspended(to)) return -ESRCH;
    if (to->prev != NULL) qj_ac__unlink(to);
    qj_ac__switch_to(runtime, target_or_poller(runtime, to));
    return 0;
}

int qj_ac__yield_to_slow(struct qj_ac_task *to) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (runtime->current == &qj_ac__no_task) qj_ac_start();
    qj_ac__check_stack(runtime);
    struct qj_ac_task *task = runtime->current;
    if (has_ended(to)) return -ESRCH;
    if (to->runtime != runtime) qj_ac__fatal_other_thread("a yield", to);
    if (to == task) return -ESRCH;
    detach_down_to(runtime, to);
    if (!qj_ac__is_suspended(to)) return -ESRCH;
    /* The original implementation leaves the target in the queue, so that it is dispatched again after its end
     * (4.1.2). */
    if (to->prev != NULL) qj_ac__unlink(to);
    to = target_or_poller(runtime, to);
    qj_ac__push_back(runtime, task);
    qj_ac__switch_to(runtime, to);
    return qj_ac__wait_result(runtime);
}

/* ---- scheduling ---- */

/* The task inside `qj_ac_suspend_then`: it counts as suspended although it still runs. */
static __thread struct qj_ac_task *suspending;

static void check_suspended(const struct qj_ac_task *task) {
    if (has_ended(task)) qj_ac__fatal("a task was scheduled that has ended");
    if (task->prev != NULL) qj_ac__fatal("task %u (%s) was scheduled twice", task->number, name_of(task));
    if (waits_for_block_end(task)) {
        qj_ac__fatal("task %u (%s) was scheduled, but it waits for the end of a DO_FINISH block", task->number,
                   name_of(task));
    }
    if (!qj_ac__is_suspended(task) && task != suspending) {
        qj_ac__fatal("task %u (%s) was scheduled, but it is not suspended", task->number, name_of(task));
    }
}

void qj_ac_schedule(struct qj_ac_task *task) {
    if (task->runtime != &qj_ac__thread && task->runtime != NULL) {
        qj_ac__schedule_remote(task, QJ_AC_WAKE_SUSPENDED);
        return;
    }
    check_suspended(task);
    qj_ac__to_queue(task);
    qj_ac__push_front(&qj_ac__thread, task);
}

void qj_ac_schedule_back(struct qj_ac_task *task) {
    if (task->runtime != &qj_ac__thread && task->runtime != NULL) {
        qj_ac__schedule_remote(task, QJ_AC_WAKE_SUSPENDED);
        return;
    }
    check_suspended(task);
    qj_ac__to_queue(task);
    qj_ac__push_back(&qj_ac__thread, task);
}

void qj_ac_suspend_then(struct qj_ac_task **self, void (*then)(void *), void *argument) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *task = *self = qj_ac_current();
    if (runtime->spare == task) qj_ac__leave_pool(runtime, task);
    suspending = task;
    then(argument);
    suspending = NULL;
    if (runtime->queue.next == task && task->parent_sp == NULL) {
        qj_ac__unlink(task);
    } else if (task->prev != NULL) {
        qj_ac__suspend_slow();
    } else {
        qj_ac_suspend();
    }
}

/* ---- starting and ending ---- */

struct start {
    void (*function)(void *);
    void *argument;
};

/* A free stack, or null. The parent is not in the pool afterwards. */
static struct qj_ac_task *free_stack(struct qj_ac_runtime *runtime, struct qj_ac_task *parent) {
    struct qj_ac_task *task = runtime->spare;
    if (task == parent) task = qj_ac__leave_pool(runtime, parent);
    if (task == NULL) return qj_ac__stack_allocate(runtime);
    qj_ac__leave_pool(runtime, task);
    return task;
}

static struct qj_ac_task *new_task(struct qj_ac_runtime *runtime) {
    struct qj_ac_task *parent = runtime->current;
    qj_ac__check_stack(runtime);
    if (parent == &qj_ac__no_task || parent->finish == NULL) qj_ac__fatal_outside_block("ASYNC");
    struct qj_ac_task *task;
    while ((task = free_stack(runtime, parent)) == NULL) qj_ac__wait_for_stack(runtime);
    parent->sp = NULL;
    task->parent = parent;
    task->home = task->finish = parent->finish;
    task->flags = 0;
    qj_ac__instrument_inherit(runtime, task);
    return task;
}

/* The base of a task while instrumentation is enabled; runs on the task's stack. */
static void run_instrumented(void *argument) {
    struct start start = *(struct start *)argument;
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *task = runtime->current;
    qj_ac__instrument_after(runtime, task);
    start.function(start.argument);
    if (task->parent_sp != NULL) qj_ac__instrument_before(runtime, task, task->parent, true);
}

/* Runs on every exit of the call, exceptions included. */
static void release_stack_instrumented(struct qj_ac_task **returned) {
    struct qj_ac_task *task = *returned;
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (task == NULL) {
        qj_ac__instrument_after(runtime, runtime->current);
        return;
    }
    if (runtime->current == task) {
        /* An exception has left the task before its last line, which does the same. */
        if (task->finish == task->home) qj_ac__instrument_before(runtime, task, task->parent, true);
        runtime->current = task->parent;
        qj_ac__exceptions_leave(task, task->parent);
    }
    qj_ac__instrument_after(runtime, task->parent);
    qj_ac__stack_free(runtime, task);
}

static void call_instrumented(struct qj_ac_runtime *runtime, struct qj_ac_task *task, struct start *start) {
    struct qj_ac_task *parent = runtime->current;
    qj_ac__instrument_before(runtime, parent, task, false);
    runtime->current = task;
    __attribute__((cleanup(release_stack_instrumented))) struct qj_ac_task *returned = task;
    returned = qj_ac__call(task, run_instrumented, start);
    if (returned != NULL) {
        if (task->finish != task->home) qj_ac__fatal_open_block(task);
        runtime->current = parent;
    }
}

void qj_ac__async_slow(void (*function)(void *), void *argument) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *task = new_task(runtime);
    if (!qj_ac__is_instrumented(runtime)) {
        qj_ac__to_pool(runtime, task);
        qj_ac_async(function, argument);
    } else {
        struct start start = {function, argument};
        call_instrumented(runtime, task, &start);
    }
}

int qj_ac_try_async(void (*function)(void *), void *argument) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *parent = runtime->current;
    if (parent == &qj_ac__no_task || parent->finish == NULL) qj_ac__fatal_outside_block("qj_ac_try_async()");
    struct qj_ac_task *task = free_stack(runtime, parent);
    if (task == NULL) return qj_ac__no_stack_error(runtime);
    qj_ac__stack_free(runtime, task);
    qj_ac_async(function, argument);
    return 0;
}

static void run_eager(void *argument) {
    struct start start = *(struct start *)argument;
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    qj_ac__detach(runtime, runtime->current);
    start.function(start.argument);
}

void qj_ac_async_eager(void (*function)(void *), void *argument) {
    struct start start = {function, argument};
    qj_ac_async(run_eager, &start);
}

/* The end of a task when instrumentation is enabled, an event is awaited, no other task is runnable, or a block was
 * left open. */
static __attribute__((noinline)) struct qj_ac__destination end_slow(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    struct qj_ac_finish *home = task->home;
    if (task->finish != home) qj_ac__fatal_open_block(task);
    runtime->statistics.ended++;
    struct qj_ac_task *next = home->waiter;
    bool joins = --home->count == 0 && next != NULL;
    if (runtime->slow & QJ_AC_SLOW_ROOM) wake_for_stack(runtime);
    if (joins) home->waiter = NULL;
    if (qj_ac__poll_is_due(runtime)) {
        qj_ac__poller_to_front(runtime, joins ? next : NULL);
        joins = false;
    }
    if (!joins) next = qj_ac__dequeue(runtime);
    runtime->current = next;
    void *context = next->queued_sp;
    task->sp = NULL;
    if (!qj_ac__is_instrumented(runtime)) {
        qj_ac__to_pool(runtime, task);
    } else {
        next->queued_sp = NULL;
        qj_ac__instrument_before(runtime, task, next, true);
        qj_ac__stack_free(runtime, task);
    }
    return (struct qj_ac__destination){context, next};
}

/* Equivalent to `end_slow`. The code still runs on the stack that it frees; the stack is not reused before the jump
 * that follows. */
struct qj_ac__destination qj_ac__task_end(struct qj_ac_task *task) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_finish *home = task->home;
    struct qj_ac_task *next = home->waiter;
    long left = home->count - 1;
    if (QJ_AC_UNLIKELY(task->finish != home || runtime->slow != 0)) return end_slow(runtime, task);
    if (left == 0 && next != NULL) {
        home->waiter = NULL;
    } else {
        next = runtime->queue.next;
        if (QJ_AC_UNLIKELY(next == &runtime->queue)) return end_slow(runtime, task);
        struct qj_ac_task *second = next->next;
        runtime->queue.next = second;
        second->prev = &runtime->queue;
        next->prev = NULL;
    }
    home->count = left;
    runtime->statistics.ended++;
    if (task->sp != NULL) task->sp = NULL;
    qj_ac__to_pool(runtime, task);
    runtime->current = next;
    return (struct qj_ac__destination){next->queued_sp, next};
}

/* ---- bodies ---- */

void qj_ac__call_spread(void *argument) {
    struct qj_ac__words *call = argument;
    void (*function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t) =
        (void (*)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t))call->function;
    uintptr_t *w = call->words;
    function(w[0], w[1], w[2], w[3], w[4], w[5]);
}

/* What `qj_ac__call_converted` has saved of a call: the function, the caller's stack arguments, and the registers of
 * the arguments, which only the assembly knows. It is in the parent's frame; `qj_ac__call_saved` reads it before the
 * function can wait. */
struct saved_call {
    void (*function)(void);
    void *stack_arguments;
};
void qj_ac__call_saved(void *call);
void qj_ac__start_saved(struct saved_call *call);

void qj_ac__start_saved(struct saved_call *call) {
    struct qj_ac_callee callee = qj_ac__thread.current->callee;
    call->function = callee.function;
    if (callee.eager) {
        qj_ac_async_eager(qj_ac__call_saved, call);
    } else {
        qj_ac_async(qj_ac__call_saved, call);
    }
}

/* The layout of a block literal (Block ABI Apple, 2008). */
struct block_literal {
    void *isa;
    int flags, reserved;
    void (*invoke)(void *literal);
    struct {
        unsigned long reserved, size;
    } *descriptor;
};
#define BLOCK_HAS_COPY_DISPOSE (1 << 25)
/* The classes that clang's literals refer to; weak, because a run-time library of blocks defines them too. */
__attribute__((weak)) void *_NSConcreteStackBlock[32];
__attribute__((weak)) void *_NSConcreteGlobalBlock[32];

void qj_ac__run_block(void *argument) {
    struct block_literal *literal = argument;
    if (literal->flags & BLOCK_HAS_COPY_DISPOSE) {
        qj_ac__fatal("an ASYNC body uses a `__block` variable or another block; pass a pointer instead");
    }
    size_t size = literal->descriptor->size;
    struct block_literal *copy = __builtin_alloca(size);
    memcpy(copy, literal, size);
    copy->invoke(copy);
}

/* ---- bodies that access the enclosing frame: quaject/thc.h with gcc ---- */

struct qj_ac_task *qj_ac__fork_begin(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *task = new_task(runtime);
    if (qj_ac__is_instrumented(runtime)) qj_ac__instrument_before(runtime, runtime->current, task, false);
    runtime->current = task;
    return task;
}

void qj_ac__fork_started(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (qj_ac__is_instrumented(runtime)) qj_ac__instrument_after(runtime, runtime->current);
}

void qj_ac__fork_detached(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (qj_ac__is_instrumented(runtime)) qj_ac__instrument_after(runtime, runtime->current);
}

void qj_ac__fork_detach(void) { qj_ac__detach(&qj_ac__thread, qj_ac__thread.current); }

void qj_ac__fork_end(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_task *task = runtime->current;
    void *context = task->parent_sp;
    if (context == NULL) {
        struct qj_ac__destination destination = qj_ac__task_end(task);
        qj_ac__jump(destination.context, destination.next);
    }
    if (task->finish != task->home) qj_ac__fatal_open_block(task);
    runtime->current = task->parent;
    if (qj_ac__is_instrumented(runtime)) qj_ac__instrument_before(runtime, task, task->parent, true);
    /* A task that was started by a call may still be the hot stack of the pool. */
    if (runtime->spare != task) qj_ac__stack_free(runtime, task);
    qj_ac__jump(qj_ac__detach_context(context), task->parent);
}
