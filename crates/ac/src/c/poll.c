/* The poller: a task of the library that polls timers, I/O, channels and wakes of other threads, and sleeps when no
 * other task is runnable. It runs once per round of the dispatch queue; and if a timer, I/O or another thread is
 * waited for, at the first switch of whatever kind after some 100 microseconds: an event is late by that time and by
 * what the running task computes before it switches, however many tasks there are. It is created by the first timer,
 * I/O or remote wait, and is in the queue exactly while an event is pending; so an empty queue is a deadlock. */
#include "internal.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* Rounds of a busy queue, and growth of the processor's counter, between two reads of the clock at most. */
#define ROUNDS_PER_CLOCK 16
#define TICKS_PER_CLOCK (QJ_AC__TICKS_PER_POLL / 8)
/* The interval at which a thread that sleeps on I/O polls its channels. */
#define CHANNELS_EVERY_NS 200000u

/* The block of the poller, which is no block of the program: the poller may be started at any time and never ends. */
static __thread struct qj_ac_finish home;
static __thread bool parked;
__thread bool qj_ac__poller_starts;

/* Whether an event is waited for that must not be late. Messages may be late by a round: their senders and receivers
 * switch so often that a look at the clock at each switch would cost more than it gains. */
static bool clocked(const struct qj_ac_runtime *runtime) {
    return runtime->timers != NULL || runtime->remote_waits != 0 || qj_ac__io_pending(runtime);
}

static bool pending(const struct qj_ac_runtime *runtime) { return clocked(runtime) || runtime->channels != NULL; }

/* Sleeps until another thread rings, at most `timeout_ns`. */
static void sleep_on_doorbell(struct qj_ac_runtime *runtime, uint64_t timeout_ns) {
    struct timespec timeout = {(time_t)(timeout_ns / 1000000000u), (long)(timeout_ns % 1000000000u)};
    syscall(SYS_futex, &runtime->doorbell, FUTEX_WAIT_PRIVATE, QJ_AC_SLEEPING, timeout_ns == UINT64_MAX ? NULL : &timeout,
            NULL, 0);
}

static void sleep_until_something(struct qj_ac_runtime *runtime) {
    uint64_t timeout_ns = UINT64_MAX;
    if (runtime->timers != NULL) {
        uint64_t now = qj_ac__now_ns();
        if (runtime->timers->when_ns <= now) return;
        timeout_ns = runtime->timers->when_ns - now;
    }
    uint64_t trim_ns = qj_ac__trim_step(runtime, runtime->polled_ticks);
    if (timeout_ns > trim_ns) timeout_ns = trim_ns;
    /* Pairs with the exchange in `qj_ac__schedule_remote`: either the waker sees that we sleep, or we see its task. */
    __atomic_store_n(&runtime->doorbell, QJ_AC_SLEEPING, __ATOMIC_SEQ_CST);
    if (qj_ac__remote_drain(runtime)) {
        /* a task runs now */
    } else if (qj_ac__io_pending(runtime)) {
        /* epoll cannot wait for a futex, and io_uring only since Linux 6.7 (IORING_OP_FUTEX_WAITV), which is not used:
         * channels are polled at an interval. */
        if (runtime->channels != NULL && timeout_ns > CHANNELS_EVERY_NS) timeout_ns = CHANNELS_EVERY_NS;
        qj_ac__io_poll(runtime, timeout_ns);
    } else if (runtime->channels != NULL) {
        qj_ac__channels_sleep(runtime, timeout_ns);
    } else {
        sleep_on_doorbell(runtime, timeout_ns);
    }
    /* Pairs with the exchange in `qj_ac__schedule_remote`: a later waker finds no sleeper. */
    __atomic_store_n(&runtime->doorbell, 0, __ATOMIC_SEQ_CST);
}

/* The tasks behind `last`, which were woken since it was the last of the queue, go behind `first`: they run early, and
 * the others are not starved by a stream of events. Returns whether there are any. */
static bool advance_woken(struct qj_ac_runtime *runtime, struct qj_ac_task *first, struct qj_ac_task *last) {
    struct qj_ac_task *end = &runtime->queue, *woken = last->next, *last_woken = end->prev;
    if (woken == end) return false;
    if (first == last) return true;
    last->next = end;
    end->prev = last;
    last_woken->next = first->next;
    first->next->prev = last_woken;
    first->next = woken;
    woken->prev = first;
    return true;
}

static void poller(void *argument) {
    struct qj_ac_runtime *runtime = argument;
    unsigned rounds = 0;
    uint64_t clock_ticks = 0;
    runtime->poller = runtime->current;
    runtime->poller->name = "poller";
    /* The task that started the poller is about to wait; until it does, it cannot be scheduled. */
    qj_ac_yield();
    for (;;) {
        bool idle = runtime->queue.next == &runtime->queue, woke = false;
        uint64_t ticks = runtime->polled_ticks = qj_ac__ticks();
        if (runtime->channels != NULL) qj_ac__channels_poll(runtime);
        /* Nothing below runs other tasks. */
        struct qj_ac_task *first = runtime->queue.next, *last = runtime->queue.prev;
        qj_ac__remote_drain(runtime);
        /* Switches to the next task and waits in one call. */
        if (!idle && qj_ac__io_pending(runtime)) qj_ac__io_poll(runtime, 0);
        if (idle || ticks - clock_ticks >= TICKS_PER_CLOCK || ++rounds % ROUNDS_PER_CLOCK == 0) {
            clock_ticks = ticks;
            woke = qj_ac__timers_fire(runtime);
        }
        /* The tasks that it has woken, or whose block it has cancelled, run only if the others let them, which may hand
         * the processor to each other: so it looks once more before it rests. */
        woke |= advance_woken(runtime, first, last);
        qj_ac__trim_step(runtime, ticks);
        if (!woke && !clocked(runtime)) runtime->slow &= ~(uintptr_t)QJ_AC_SLOW_CLOCK;
        if (!woke && !pending(runtime)) {
            parked = true;
            qj_ac_suspend();
            parked = false;
        } else if (runtime->queue.next != &runtime->queue) {
            qj_ac_yield();
        } else {
            sleep_until_something(runtime);
        }
    }
}

void qj_ac__poller_to_front(struct qj_ac_runtime *runtime, struct qj_ac_task *next) {
    struct qj_ac_task *poller = runtime->poller;
    qj_ac__unlink(poller);
    if (next != NULL) {
        struct qj_ac_task *first = runtime->queue.next, *second = first->next;
        /* In an empty queue `first` is the sentinel, and so is `second`. */
        next->prev = first;
        next->next = second;
        first->next = next;
        second->prev = next;
    }
    qj_ac__push_front(runtime, poller);
}

/* If there is no memory for its stack, the task waits until another one has ended, which may have started it. */
static void start_poller(struct qj_ac_runtime *runtime) {
    struct qj_ac_task *task = runtime->current;
    while (runtime->poller == NULL) {
        struct qj_ac_finish *around = task->finish;
        task->finish = &home;
        qj_ac__poller_starts = true;
        int result = qj_ac_try_async(poller, runtime);
        qj_ac__poller_starts = false;
        task->finish = around;
        if (result != 0) qj_ac__wait_for_stack(runtime);
    }
}

void qj_ac__poller_wanted(struct qj_ac_runtime *runtime) {
    if (runtime->poller == NULL) {
        start_poller(runtime);
    } else if (parked && runtime->poller->prev == NULL) {
        qj_ac_schedule_back(runtime->poller);
    }
    /* A program that has just begun to wait has not been computing: no poll is due. */
    if (!(runtime->slow & QJ_AC_SLOW_CLOCK) && clocked(runtime)) {
        runtime->slow |= QJ_AC_SLOW_CLOCK;
        runtime->polled_ticks = qj_ac__ticks();
    }
}

void qj_ac__poller_stop(struct qj_ac_runtime *runtime) {
    if (runtime->poller != NULL && runtime->poller->prev != NULL) qj_ac__unlink(runtime->poller);
    qj_ac__channels_stop(runtime);
    runtime->poller = NULL;
    runtime->slow &= ~(uintptr_t)QJ_AC_SLOW_CLOCK;
    parked = false;
    home.count = 0;
}

/* ---- other threads ---- */

/* The library is not instrumented: these show ThreadSanitizer, where it is linked, that what a waker did before is seen
 * by the task that it wakes. The poller's fiber acquires it, and passes it on with its switch. */
__attribute__((weak)) void __tsan_acquire(void *address);
__attribute__((weak)) void __tsan_release(void *address);

bool qj_ac__remote_drain(struct qj_ac_runtime *runtime) {
    /* No partner: the exchange below orders the list; a push that is missed here is found in the next round. */
    if (QJ_AC_LIKELY(__atomic_load_n(&runtime->remote, __ATOMIC_RELAXED) == NULL)) return false;
    /* Pairs with the release in `qj_ac__schedule_remote`: the links are written before the head is seen. */
    struct qj_ac_task *newest = __atomic_exchange_n(&runtime->remote, NULL, __ATOMIC_ACQUIRE);
    struct qj_ac_task *oldest = NULL;
    while (newest != NULL) {
        struct qj_ac_task *next = newest->remote_next;
        newest->remote_next = oldest;
        oldest = newest;
        newest = next;
    }
    bool any = oldest != NULL;
    while (oldest != NULL) {
        struct qj_ac_task *next = oldest->remote_next;
        /* Pairs with `fetch_or` in `qj_ac__schedule_remote`: a wake after this point is a new one. */
        uint32_t wake = __atomic_exchange_n(&oldest->remote_pending, 0, __ATOMIC_SEQ_CST);
        if (__tsan_acquire != NULL) __tsan_acquire(oldest);
        /* A wake may come twice, before the task waits, or while it waits for something else: the task is made runnable
         * only if it waits for this kind of wake. */
        bool meant = (wake & QJ_AC_WAKE_SUSPENDED) != 0 || (oldest->flags & QJ_AC_TASK_REMOTE_WAIT) != 0;
        if (meant && oldest->prev == NULL && qj_ac__is_suspended(oldest)) {
            qj_ac__to_queue(oldest);
            qj_ac__push_back(runtime, oldest);
        }
        oldest = next;
    }
    return any;
}

static void push_and_ring(struct qj_ac_runtime *runtime, struct qj_ac_task *task, uint32_t wake) {
    if (__tsan_release != NULL) __tsan_release(task);
    /* Pairs with the exchange in `qj_ac__remote_drain`: a task is in the list once. */
    if (__atomic_fetch_or(&task->remote_pending, wake, __ATOMIC_SEQ_CST) != 0) return;
    /* No partner: a guess, which the exchange checks. */
    struct qj_ac_task *head = __atomic_load_n(&runtime->remote, __ATOMIC_RELAXED);
    do {
        task->remote_next = head;
        /* Pairs with the acquire in `qj_ac__remote_drain`. */
    } while (!__atomic_compare_exchange_n(&runtime->remote, &head, task, true, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
    /* Pairs with the store in `sleep_until_something`. */
    if (__atomic_exchange_n(&runtime->doorbell, 0, __ATOMIC_SEQ_CST) == QJ_AC_SLEEPING) {
        qj_ac__io_wake(runtime);
        syscall(SYS_futex, &runtime->doorbell, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    }
}

void qj_ac__schedule_remote(struct qj_ac_task *task, uint32_t wake) {
    struct qj_ac_runtime *runtime = task->runtime;
    /* As soon as the task is in the list, it and its thread may end. No partner: the exchange of the list makes the
     * increment visible together with the task. */
    __atomic_fetch_add(&runtime->wakers, 1, __ATOMIC_RELAXED);
    push_and_ring(runtime, task, wake);
    /* Pairs with the acquire in `qj_ac__wait_for_wakers`: the last access. */
    __atomic_fetch_sub(&runtime->wakers, 1, __ATOMIC_RELEASE);
}

void qj_ac__wait_for_wakers(struct qj_ac_runtime *runtime) {
    /* Pairs with the release in `qj_ac__schedule_remote`. */
    while (__atomic_load_n(&runtime->wakers, __ATOMIC_ACQUIRE) != 0) sched_yield();
}

void qj_ac_suspend_remote(void) {
    if (qj_ac__thread.current == &qj_ac__no_task) qj_ac_start();
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    qj_ac__check_stack(runtime);
    runtime->remote_waits++;
    qj_ac__poller_wanted(runtime);
    qj_ac_suspend();
    runtime->remote_waits--;
}
