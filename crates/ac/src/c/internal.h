/* Internal declarations, shared by the files of the library. */
#ifndef QUAJECT_AC_INTERNAL_H
#define QUAJECT_AC_INTERNAL_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdbool.h>
#include <quaject/ac.h>

#define QJ_AC_SLOTS 65536u
/* Value of a runtime's doorbell while its thread sleeps or is about to. */
#define QJ_AC_SLEEPING 1u

/* For functions in which most tasks wait for the first time. When such a task resumes, the processor's return stack
 * holds one correct address: the end of the task's function, which `qj_ac__task_base` has pushed. A `ret` would pop it;
 * a jump leaves it to the task's function. */
#if defined(__x86_64__) && __has_attribute(function_return)
#define QJ_AC__RETURNS_BY_JUMP __attribute__((function_return("thunk-extern")))
#else
#define QJ_AC__RETURNS_BY_JUMP
#endif

/* ---- stack.c ---- */
/* A stack with a new task at its top; null if there is none, for the reason that is stored. */
struct qj_ac_task *qj_ac__stack_allocate(struct qj_ac_runtime *runtime);
/* Whether the poller is being started, which needs a stack whatever `max_stacks` says. */
extern __thread bool qj_ac__poller_starts;
/* Stops the process for the reason why there is no stack. */
__attribute__((noreturn, cold)) void qj_ac__fatal_no_stack(const struct qj_ac_runtime *runtime);
/* That reason: -EAGAIN, because of `max_stacks`, or -ENOMEM. */
int qj_ac__no_stack_error(const struct qj_ac_runtime *runtime);
/* Waits until a task has ended, when there is no stack. */
void qj_ac__wait_for_stack(struct qj_ac_runtime *runtime);
void qj_ac__stack_free(struct qj_ac_runtime *runtime, struct qj_ac_task *task);
void qj_ac__pool_free(struct qj_ac_runtime *runtime);
/* Whether free stacks are to be given back later. */
bool qj_ac__stacks_to_release(const struct qj_ac_runtime *runtime);
/* Gives back some of the stacks that no task has used for a while; `ticks` is the processor's counter. Returns the
 * nanoseconds until it should be called again, UINT64_MAX if there is nothing to give back. */
uint64_t qj_ac__trim_step(struct qj_ac_runtime *runtime, uint64_t ticks);
/* Installs the report of stack overflows of this thread's tasks; to be removed before the pool is freed. */
void qj_ac__overflow_handler_install(struct qj_ac_runtime *runtime);
void qj_ac__overflow_handler_remove(struct qj_ac_runtime *runtime);
/* Whether the floating-point control state is to be a task's own. */
bool qj_ac__own_float_control(void);
/* Whether an address is in the stack of some task of the thread. */
bool qj_ac__on_task_stack(const struct qj_ac_runtime *runtime, const void *address);
/* Stops the process when the calling thread has a shadow stack. */
void qj_ac__refuse_shadow_stack(void);

/* ---- the machine's .S ---- */
/* Converts the caller-continuation record of a task that has never waited into a context of its parent. */
void *qj_ac__detach_context(void *record);
/* Makes the function of a task that was detached from its parent return to `qj_ac__task_end`. */
void qj_ac__set_task_base(struct qj_ac_task *task);

/* ---- core.c ---- */
void qj_ac__check_other_stack(void);
/* The stack pointer. Not `__builtin_frame_address`: a function that asks for that gets a frame pointer. */
QJ_AC_INLINE uintptr_t qj_ac__stack_pointer(void) {
    uintptr_t here;
#if defined(__x86_64__)
    __asm__ volatile("mov %%rsp, %0" : "=r"(here));
#elif defined(__aarch64__)
    __asm__ volatile("mov %0, sp" : "=r"(here));
#else
    __asm__ volatile("mv %0, sp" : "=r"(here));
#endif
    return here;
}
/* Stops the process when the running task is not the owner of this stack: it was left by longjmp. */
QJ_AC_INLINE void qj_ac__check_stack(const struct qj_ac_runtime *runtime) {
    const struct qj_ac_task *task = runtime->current;
    uintptr_t depth = (uintptr_t)task - qj_ac__stack_pointer();
    if (QJ_AC_UNLIKELY(depth > (uintptr_t)task - (uintptr_t)task->stack_low)) qj_ac__check_other_stack();
}
/* Switches from the running task to `to`, which is suspended and in no queue any more. */
void qj_ac__switch_to(struct qj_ac_runtime *runtime, struct qj_ac_task *to);
/* Whether the task has a context to resume: it is not running, not below a child that runs on top of it, and not
 * ended. */
bool qj_ac__is_suspended(const struct qj_ac_task *task);
/* Makes a task runnable whose wait has ended. It may be in the queue already, scheduled for another reason. */
QJ_AC_INLINE void qj_ac__make_runnable(struct qj_ac_task *task) {
    if (QJ_AC_LIKELY(task->prev == NULL)) qj_ac_schedule_back(task);
}
/* Removes the next task from the queue; if it is empty, reports the deadlock. */
struct qj_ac_task *qj_ac__dequeue(struct qj_ac_runtime *runtime);
/* Reports that another thread did `what`, which only the task's own thread may do. */
__attribute__((noreturn, cold)) void qj_ac__fatal_other_thread(const char *what, const struct qj_ac_task *task);
/* Separates a task that has never waited from its parent, which is put to the front of the queue. */
void qj_ac__detach(struct qj_ac_runtime *runtime, struct qj_ac_task *task);
/* How many threads have tasks. */
extern unsigned qj_ac__threads;
/* Is the block, or one around it up to the next shield, cancelled? */
bool qj_ac__block_canceled(const struct qj_ac_finish *block);

/* ---- id.c ---- */
#define QJ_AC_NO_SLOTS 2u
extern struct qj_ac_slot qj_ac__no_slots[QJ_AC_NO_SLOTS];
/* Whether a task waits for a number; and the report that no number can be released any more. */
bool qj_ac__id_waits(void);
__attribute__((noreturn, cold)) void qj_ac__fatal_no_id(void);
/* Gives the thread an empty table of numbers. */
void qj_ac__ids_init(struct qj_ac_runtime *runtime);
/* Frees the table of numbers, when the thread stops. */
void qj_ac__ids_stop(struct qj_ac_runtime *runtime);

/* ---- finish.c ---- */
/* Links the block into the list of children of its parent, and so on up. */
void qj_ac__link_blocks(struct qj_ac_finish *block);
/* qj_ac_cancel_item_add() for a caller that knows that `block`, the innermost one if any, is not cancelled, and does
 * not use `ran`. */
QJ_AC_INLINE void qj_ac__item_add(struct qj_ac_finish *block, struct qj_ac_cancel_item *item, void (*run)(void *argument),
                                  void *argument) {
    item->run = run;
    item->argument = argument;
    if (QJ_AC_UNLIKELY(block == NULL)) {
        item->link = NULL;
        return;
    }
    struct qj_ac_cancel_item *next = block->items;
    item->next = next;
    item->link = &block->items;
    if (next != NULL) next->link = &item->next;
    block->items = item;
    if (!(block->state & QJ_AC_BLOCK_LINKED) && block->up != NULL) qj_ac__link_blocks(block);
}
/* The item may never have been added, or may have run. */
QJ_AC_INLINE void qj_ac__item_remove(const struct qj_ac_cancel_item *item) {
    if (item->link == NULL) return;
    *item->link = item->next;
    if (item->next != NULL) item->next->link = item->link;
}

/* ---- instrumentation.c ---- */
#define QJ_AC_SLOW_TRACE 2u
#define QJ_AC_SLOW_ASAN 4u
#define QJ_AC_SLOW_TSAN 8u
#define QJ_AC_SLOW_MEMCHECK 16u
#define QJ_AC_SLOW_FLOAT 32u /* the control state of the floating-point unit is a task's own */
/* Not instrumentation: a timer, I/O or another thread is waited for, so that every switch compares the processor's
 * counter with the poller's last run. */
#define QJ_AC_SLOW_CLOCK 64u
/* A task waits for a stack. */
#define QJ_AC_SLOW_ROOM 128u
#define QJ_AC_SLOW_INSTRUMENTED                                                                                        \
    (QJ_AC_SLOW_TRACE | QJ_AC_SLOW_ASAN | QJ_AC_SLOW_TSAN | QJ_AC_SLOW_MEMCHECK | QJ_AC_SLOW_FLOAT)
/* Whether every switch is reported to `qj_ac__instrument_before` and `_after`. Constant after the start. */
QJ_AC_INLINE bool qj_ac__is_instrumented(const struct qj_ac_runtime *runtime) {
    return (runtime->slow & QJ_AC_SLOW_INSTRUMENTED) != 0;
}
uintptr_t qj_ac__instrumentation(void);
/* A new task begins with the state of the calling one. */
void qj_ac__instrument_inherit(struct qj_ac_runtime *runtime, struct qj_ac_task *task);
void qj_ac__instrument_stack(struct qj_ac_runtime *runtime, struct qj_ac_task *task);
void qj_ac__instrument_unstack(struct qj_ac_runtime *runtime, struct qj_ac_task *task);
/* Around every switch while instrumentation is enabled. `before` on the old stack, `after` on the new one. */
void qj_ac__instrument_before(struct qj_ac_runtime *runtime, struct qj_ac_task *from, struct qj_ac_task *to, bool ends);
void qj_ac__instrument_after(struct qj_ac_runtime *runtime, struct qj_ac_task *now);
/* The memory of a task's stack, or of the thread's own. */
void qj_ac__stack_bounds(struct qj_ac_runtime *runtime, struct qj_ac_task *task, void **low, size_t *size);
void qj_ac__instrument_root(struct qj_ac_runtime *runtime);
/* In a forked child: stops tracing, because the trace belongs to the parent. */
void qj_ac__instrument_forked(void);
void qj_ac__instrument_stop(struct qj_ac_runtime *runtime);

/* ---- timer.c ---- */
uint64_t qj_ac__now_ns(void);
void qj_ac__timer_set(struct qj_ac_runtime *runtime, struct qj_ac_timer *timer, uint64_t when_ns,
                      void (*fire)(struct qj_ac_timer *timer));
void qj_ac__timer_unset(struct qj_ac_runtime *runtime, struct qj_ac_timer *timer);
/* Fires the timers that are due; returns whether there were any. */
bool qj_ac__timers_fire(struct qj_ac_runtime *runtime);

/* ---- poll.c ---- */
/* A counter of the processor that costs little to read; and how much it grows between two runs of the poller at most,
 * if tasks switch: some 20 to 100 microseconds. Only differences are used, and one that is wrong makes the poller run
 * early. */
#if defined(__x86_64__)
#define QJ_AC__TICKS_PER_POLL 100000u
QJ_AC_INLINE uint64_t qj_ac__ticks(void) { return __builtin_ia32_rdtsc(); }
#elif defined(__aarch64__)
QJ_AC_INLINE uint64_t qj_ac__frequency(void) {
    uint64_t frequency;
    __asm__("mrs %0, cntfrq_el0" : "=r"(frequency));
    return frequency;
}
#define QJ_AC__TICKS_PER_POLL (qj_ac__frequency() / 10000)
QJ_AC_INLINE uint64_t qj_ac__ticks(void) {
    uint64_t ticks;
    __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
    return ticks;
}
#else
#define QJ_AC__TICKS_PER_POLL 100000u
QJ_AC_INLINE uint64_t qj_ac__ticks(void) { return qj_ac__now_ns(); }
#endif
/* Whether the poller is in the queue and should run before any other task. */
QJ_AC_INLINE bool qj_ac__poll_is_due(const struct qj_ac_runtime *runtime) {
    return QJ_AC_UNLIKELY(runtime->slow & QJ_AC_SLOW_CLOCK) &&
           qj_ac__ticks() - runtime->polled_ticks >= QJ_AC__TICKS_PER_POLL && runtime->poller->prev != NULL &&
           runtime->poller != runtime->current;
}
/* Moves the poller, which is due, to the front of the queue. `next`, if not null, is a task in no queue that would have
 * run now: it is put behind the first other task, which could otherwise never run, if `next` is resumed ahead of the
 * queue again and again. */
void qj_ac__poller_to_front(struct qj_ac_runtime *runtime, struct qj_ac_task *next);
/* Makes sure that timers, I/O and other threads are polled while tasks run. */
void qj_ac__poller_wanted(struct qj_ac_runtime *runtime);
void qj_ac__poller_stop(struct qj_ac_runtime *runtime);
/* Moves tasks that other threads have woken into the queue; returns whether there were any. */
bool qj_ac__remote_drain(struct qj_ac_runtime *runtime);
/* The kinds of wakes by another thread: of a suspended task, or of a task that waits for other threads and checks its
 * condition again. */
#define QJ_AC_WAKE_SUSPENDED 1u
#define QJ_AC_WAKE_RECHECK 2u
void qj_ac__schedule_remote(struct qj_ac_task *task, uint32_t wake);
/* Waits until no other thread is in the middle of waking one of this thread's tasks. */
void qj_ac__wait_for_wakers(struct qj_ac_runtime *runtime);

/* ---- io.c ---- */
/* Processes completions. May sleep for up to `timeout_ns`; UINT64_MAX: without limit. */
void qj_ac__io_poll(struct qj_ac_runtime *runtime, uint64_t timeout_ns);
bool qj_ac__io_pending(const struct qj_ac_runtime *runtime);
void qj_ac__io_stop(struct qj_ac_runtime *runtime);
/* Ends the sleep of another thread in `qj_ac__io_poll`. */
void qj_ac__io_wake(struct qj_ac_runtime *runtime);

/* ---- ipc.c ---- */
/* Receives the messages of channels on which a task waits. */
void qj_ac__channels_poll(struct qj_ac_runtime *runtime);
/* Stops polling the channels, when the thread stops. */
void qj_ac__channels_stop(struct qj_ac_runtime *runtime);
/* Sleeps until a message arrives, another thread rings the doorbell, or the timeout has passed. */
void qj_ac__channels_sleep(struct qj_ac_runtime *runtime, uint64_t timeout_ns);

#endif
