/* Semaphores (Dijkstra), locks and condition variables (Mesa semantics), event counts (Reed, Kanodia 1979): each is a
 * FIFO queue of waiters. Ownership passes directly to the first waiter before it runs, so that no other task can
 * overtake it. */
#include "internal.h"

/* On the stack of the task that waits. */
struct qj_ac_waiter {
    struct qj_ac_waiter *next, *prev;
    struct qj_ac_wait_queue *queue; /* null if it is in no queue */
    struct qj_ac_task *task;
    uint64_t value;          /* the value that an event count must reach */
    int result;
};

static void enqueue_waiter(struct qj_ac_wait_queue *queue, struct qj_ac_waiter *waiter) {
    waiter->queue = queue;
    waiter->task = qj_ac__thread.current;
    waiter->result = 0;
    waiter->next = NULL;
    waiter->prev = queue->last;
    if (queue->last != NULL) {
        queue->last->next = waiter;
    } else {
        queue->first = waiter;
    }
    queue->last = waiter;
}

static void dequeue_waiter(struct qj_ac_waiter *waiter) {
    struct qj_ac_wait_queue *queue = waiter->queue;
    if (waiter->prev != NULL) {
        waiter->prev->next = waiter->next;
    } else {
        queue->first = waiter->next;
    }
    if (waiter->next != NULL) {
        waiter->next->prev = waiter->prev;
    } else {
        queue->last = waiter->prev;
    }
    waiter->queue = NULL;
}

/* Makes the waiter runnable with `result`. */
QJ_AC_INLINE struct qj_ac_task *wake(struct qj_ac_waiter *waiter, int result) {
    if (QJ_AC_UNLIKELY(waiter->task->runtime != &qj_ac__thread)) {
        qj_ac__fatal_other_thread("what a task waits for was used by a thread that is not its own", waiter->task);
    }
    waiter->result = result;
    dequeue_waiter(waiter);
    qj_ac__make_runnable(waiter->task);
    return waiter->task;
}

/* Cancels a wait, unless the waiter has been woken already: its result stays. */
static void cancel_wait(void *argument) {
    struct qj_ac_waiter *waiter = argument;
    if (waiter->queue != NULL) wake(waiter, QJ_AC_CANCELED);
}

enum wait_kind { UNTIL_WOKEN, UNTIL_CANCELED };

/* Waits in the queue; returns the argument of `wake`. A directed yield may resume the task early: it waits again,
 * because its waiter, which is in this frame, is still in the queue. */
static int wait_in_queue(struct qj_ac_wait_queue *queue, uint64_t value, enum wait_kind kind) {
    struct qj_ac_waiter waiter;
    qj_ac__check_stack(&qj_ac__thread);
    waiter.value = value;
    if (kind == UNTIL_WOKEN) {
        enqueue_waiter(queue, &waiter);
        do {
            qj_ac_suspend();
        } while (waiter.queue != NULL);
        return waiter.result;
    }
    struct qj_ac_cancel_item item;
    if (qj_ac_cancel_item_add(&item, cancel_wait, &waiter) != 0) return QJ_AC_CANCELED;
    enqueue_waiter(queue, &waiter);
    do {
        qj_ac_suspend();
    } while (waiter.queue != NULL);
    qj_ac_cancel_item_remove(&item);
    return waiter.result;
}

static void started(void) {
    if (qj_ac__thread.current == &qj_ac__no_task) qj_ac_start();
}

/* ---- semaphores ---- */

void qj_ac_semaphore_init(struct qj_ac_semaphore *semaphore, long value) {
    *semaphore = (struct qj_ac_semaphore){value, {NULL, NULL}};
}

static int semaphore_p(struct qj_ac_semaphore *semaphore, enum wait_kind kind) {
    if (kind == UNTIL_CANCELED && qj_ac_is_canceled()) return QJ_AC_CANCELED;
    if (semaphore->value > 0) {
        semaphore->value--;
        return 0;
    }
    started();
    return wait_in_queue(&semaphore->queue, 0, kind);
}

void qj_ac_semaphore_p(struct qj_ac_semaphore *semaphore) { semaphore_p(semaphore, UNTIL_WOKEN); }
int qj_ac_semaphore_p_x(struct qj_ac_semaphore *semaphore) { return semaphore_p(semaphore, UNTIL_CANCELED); }

void qj_ac_semaphore_v(struct qj_ac_semaphore *semaphore) {
    if (semaphore->queue.first != NULL) {
        wake(semaphore->queue.first, 0);
    } else {
        semaphore->value++;
    }
}

/* ---- locks ---- */

void qj_ac_lock_init(struct qj_ac_lock *lock) { *lock = (struct qj_ac_lock){NULL, {NULL, NULL}}; }

static int lock_acquire(struct qj_ac_lock *lock, enum wait_kind kind) {
    started();
    struct qj_ac_task *task = qj_ac__thread.current;
    if (lock->owner == task) qj_ac__fatal("a task acquires a lock that it holds already");
    if (kind == UNTIL_CANCELED && qj_ac_is_canceled()) return QJ_AC_CANCELED;
    if (lock->owner == NULL) {
        lock->owner = task;
        return 0;
    }
    return wait_in_queue(&lock->queue, 0, kind);
}

void qj_ac_lock_acquire(struct qj_ac_lock *lock) { lock_acquire(lock, UNTIL_WOKEN); }
int qj_ac_lock_acquire_x(struct qj_ac_lock *lock) { return lock_acquire(lock, UNTIL_CANCELED); }

void qj_ac_lock_release(struct qj_ac_lock *lock) {
    if (lock->owner != qj_ac__thread.current) qj_ac__fatal("a task releases a lock that it does not hold");
    lock->owner = lock->queue.first != NULL ? wake(lock->queue.first, 0) : NULL;
}

/* ---- condition variables ---- */

void qj_ac_condition_init(struct qj_ac_condition *condition) { condition->queue = (struct qj_ac_wait_queue){NULL, NULL}; }

static int condition_wait(struct qj_ac_condition *condition, struct qj_ac_lock *lock, enum wait_kind kind) {
    if (lock->owner != qj_ac__thread.current) qj_ac__fatal("a task waits for a condition without holding its lock");
    qj_ac_lock_release(lock);
    int result = wait_in_queue(&condition->queue, 0, kind);
    qj_ac_lock_acquire(lock);
    return result;
}

void qj_ac_condition_wait(struct qj_ac_condition *condition, struct qj_ac_lock *lock) {
    condition_wait(condition, lock, UNTIL_WOKEN);
}
int qj_ac_condition_wait_x(struct qj_ac_condition *condition, struct qj_ac_lock *lock) {
    return condition_wait(condition, lock, UNTIL_CANCELED);
}

void qj_ac_condition_signal(struct qj_ac_condition *condition) {
    if (condition->queue.first != NULL) wake(condition->queue.first, 0);
}

void qj_ac_condition_broadcast(struct qj_ac_condition *condition) {
    while (condition->queue.first != NULL) wake(condition->queue.first, 0);
}

/* ---- event counts ---- */

void qj_ac_eventcount_init(struct qj_ac_eventcount *count) {
    *count = (struct qj_ac_eventcount){0, {NULL, NULL}};
}

static int eventcount_await(struct qj_ac_eventcount *count, uint64_t value, enum wait_kind kind) {
    if (kind == UNTIL_CANCELED && qj_ac_is_canceled()) return QJ_AC_CANCELED;
    if (count->value >= value) return 0;
    started();
    return wait_in_queue(&count->queue, value, kind);
}

void qj_ac_eventcount_await(struct qj_ac_eventcount *count, uint64_t value) {
    eventcount_await(count, value, UNTIL_WOKEN);
}
int qj_ac_eventcount_await_x(struct qj_ac_eventcount *count, uint64_t value) {
    return eventcount_await(count, value, UNTIL_CANCELED);
}

void qj_ac_eventcount_advance(struct qj_ac_eventcount *count, uint64_t by) {
    if (by > UINT64_MAX - count->value) qj_ac__fatal("an event count ran over its last value");
    count->value += by;
    for (struct qj_ac_waiter *waiter = count->queue.first, *next; waiter != NULL; waiter = next) {
        next = waiter->next;
        if (waiter->value <= count->value) wake(waiter, 0);
    }
}

/* ---- sleep ---- */

struct sleeper {
    struct qj_ac_timer timer;
    struct qj_ac_task *task;
    int result;
};

static void sleeper_fire(struct qj_ac_timer *timer) {
    struct sleeper *sleeper = (struct sleeper *)((char *)timer - offsetof(struct sleeper, timer));
    qj_ac__make_runnable(sleeper->task);
}

static void cancel_sleep(void *argument) {
    struct sleeper *sleeper = argument;
    if (sleeper->timer.prev == NULL) return; /* it has fired */
    qj_ac__timer_unset(&qj_ac__thread, &sleeper->timer);
    sleeper->result = QJ_AC_CANCELED;
    qj_ac__make_runnable(sleeper->task);
}

int qj_ac_sleep(uint64_t ns) {
    started();
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    qj_ac__check_stack(runtime);
    struct sleeper sleeper;
    sleeper.task = runtime->current;
    sleeper.result = 0;
    struct qj_ac_cancel_item item;
    if (qj_ac_cancel_item_add(&item, cancel_sleep, &sleeper) != 0) return QJ_AC_CANCELED;
    uint64_t now = qj_ac__now_ns();
    qj_ac__timer_set(runtime, &sleeper.timer, ns > UINT64_MAX - now ? UINT64_MAX : now + ns, sleeper_fire);
    do {
        qj_ac_suspend();
    } while (sleeper.timer.prev != NULL);
    qj_ac_cancel_item_remove(&item);
    return sleeper.result;
}
