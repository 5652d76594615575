/* Synchronisation of the tasks of one thread: semaphores, locks, condition variables, event counts and sequencers
 * (Reed, Kanodia 1979). Waiters are served first come, first served. Each wait has a form ending in `_x` that returns
 * QJ_AC_CANCELED when the enclosing block is cancelled. */
#ifndef QUAJECT_AC_SYNC_H
#define QUAJECT_AC_SYNC_H

#include <quaject/ac/finish.h>

#ifdef __cplusplus
extern "C" {
#endif

struct qj_ac_waiter;

/* A FIFO queue; waiters are on the stacks of the waiting tasks. All zeros is an empty queue. */
struct qj_ac_wait_queue {
    struct qj_ac_waiter *first, *last;
};

struct qj_ac_semaphore {
    long value;
    struct qj_ac_wait_queue queue;
};
void qj_ac_semaphore_init(struct qj_ac_semaphore *semaphore, long value);
void qj_ac_semaphore_p(struct qj_ac_semaphore *semaphore);
int qj_ac_semaphore_p_x(struct qj_ac_semaphore *semaphore);
void qj_ac_semaphore_v(struct qj_ac_semaphore *semaphore);

struct qj_ac_lock {
    struct qj_ac_task *owner;
    struct qj_ac_wait_queue queue;
};
void qj_ac_lock_init(struct qj_ac_lock *lock);
void qj_ac_lock_acquire(struct qj_ac_lock *lock);
int qj_ac_lock_acquire_x(struct qj_ac_lock *lock);
void qj_ac_lock_release(struct qj_ac_lock *lock);

struct qj_ac_condition {
    struct qj_ac_wait_queue queue;
};
void qj_ac_condition_init(struct qj_ac_condition *condition);
/* Releases the lock, waits for a signal, and holds the lock again when it returns, cancelled or not. */
void qj_ac_condition_wait(struct qj_ac_condition *condition, struct qj_ac_lock *lock);
int qj_ac_condition_wait_x(struct qj_ac_condition *condition, struct qj_ac_lock *lock);
void qj_ac_condition_signal(struct qj_ac_condition *condition);
void qj_ac_condition_broadcast(struct qj_ac_condition *condition);

/* A number that only grows (Reed and Kanodia, 1979). */
struct qj_ac_eventcount {
    uint64_t value;
    struct qj_ac_wait_queue queue;
};
void qj_ac_eventcount_init(struct qj_ac_eventcount *count);
static inline uint64_t qj_ac_eventcount_read(const struct qj_ac_eventcount *count) { return count->value; }
/* Waits until the count has reached `value`. */
void qj_ac_eventcount_await(struct qj_ac_eventcount *count, uint64_t value);
int qj_ac_eventcount_await_x(struct qj_ac_eventcount *count, uint64_t value);
void qj_ac_eventcount_advance(struct qj_ac_eventcount *count, uint64_t by);

/* Gives every caller the next number. */
struct qj_ac_sequencer {
    uint64_t next;
};
static inline void qj_ac_sequencer_init(struct qj_ac_sequencer *sequencer) { sequencer->next = 0; }
static inline uint64_t qj_ac_sequencer_ticket(struct qj_ac_sequencer *sequencer) { return sequencer->next++; }

/* Waits `ns` nanoseconds. Returns 0, or QJ_AC_CANCELED as soon as the block is cancelled. */
int qj_ac_sleep(uint64_t ns);

#ifdef __cplusplus
}
#endif

#endif
