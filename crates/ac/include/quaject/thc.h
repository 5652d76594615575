/* The names of "Extensions to Barrelfish Asynchronous C" (Quigley, 2016) and of Barrelfish's thc.h and thcsync.h, so
 * that programs written for them compile: gcc as they are, clang with -fblocks. New programs use <quaject/ac.h>.
 *
 * Visible differences: a number refers to its task only while that task waits under it; `awe_t` is a task, not a record
 * on the stack; no code walks stacks or edits return addresses, so LCD_MAIN has no effect. With clang the body of an
 * ASYNC has copies of the enclosing variables; with gcc it accesses the variables themselves, as the originals do.
 *
 * What differs from Barrelfish: semaphores, locks, condition variables, queues and event counts are for tasks of one
 * thread, and waiters are served first come, first served; only latches, and THCSchedule() of a suspended task, may be
 * used by several threads. A cancelled wait returns THC_CANCELED, which is -ECANCELED, as an int. A task is scheduled
 * once: a second THCSchedule() before it runs stops the process. Timers and I/O are those of <quaject/ac/io.h>;
 * there are no flounder stubs. */
#ifndef QUAJECT_THC_H
#define QUAJECT_THC_H

#include <quaject/ac.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qj_ac_task awe_t;
typedef struct qj_ac_cancel_item cancel_item_t;
typedef struct qj_ac_semaphore thc_sem_t;
typedef struct qj_ac_lock thc_lock_t;
typedef struct qj_ac_condition thc_condvar_t;
typedef struct qj_ac_eventcount thc_ec_t;
typedef struct qj_ac_sequencer thc_seq_t;

#define THC_CANCELED QJ_AC_CANCELED

/* For a few instructions, among threads: it spins, so no task may wait while it holds one. */
struct thc_latch {
    int c;
};
static inline void thc_latch_init(struct thc_latch *latch) { latch->c = 0; }
static inline void thc_latch_acquire(struct thc_latch *latch) {
    /* Pairs with the release below. */
    while (__atomic_exchange_n(&latch->c, 1, __ATOMIC_ACQUIRE) != 0) continue;
}
static inline void thc_latch_release(struct thc_latch *latch) {
    /* Pairs with the acquire above. */
    __atomic_store_n(&latch->c, 0, __ATOMIC_RELEASE);
}

/* A FIFO queue whose waiters may leave at any time. An entry is in the frame of the task that waits. */
typedef struct thc_queue_entry {
    int bailed; /* newer entries, up to the next that is still there, that have left without being served */
    int served;
    struct thc_queue_entry *prev, *next; /* older, newer */
} thc_queue_entry_t;
typedef struct {
    thc_lock_t l;
    thc_condvar_t cv;
    thc_queue_entry_t start, end;
} thc_queue_t;

/* Calls `then` once the task counts as suspended; it may schedule the task immediately. */
void qj_ac_suspend_then(struct qj_ac_task **self, void (*then)(void *), void *argument);
/* For ASYNC with gcc, below. */
struct qj_ac_task *qj_ac__fork_begin(void);
int qj_ac__fork_frame(struct qj_ac_task *task, void *frame_end);
void qj_ac__fork_started(void);
void qj_ac__fork_detached(void);
void qj_ac__fork_detach(void);
__attribute__((noreturn)) void qj_ac__fork_end(void);

static inline void thc_init(void) { qj_ac_start(); }
static inline void thc_done(void) { qj_ac_stop(); }
/* The original sets its caller's return address to null, where stack walks end. Here there are no stack walks. */
#define LCD_MAIN(...)                                                                                                  \
    do {                                                                                                               \
        __VA_ARGS__;                                                                                                   \
    } while (0)

static inline void THCSuspend(awe_t **awe) {
    *awe = qj_ac_current();
    qj_ac_suspend();
}
static inline void THCSuspendThen(awe_t **awe, void (*then)(void *), void *argument) {
    qj_ac_suspend_then(awe, then, argument);
}
static inline void THCSchedule(awe_t *awe) { qj_ac_schedule(awe); }
static inline void THCScheduleBack(awe_t *awe) { qj_ac_schedule_back(awe); }
/* Ends the running task, as the end of its body would. Destructors of a C++ task do not run. */
__attribute__((noreturn)) static inline void THCFinish(void) {
#ifdef __cplusplus
    qj_ac__exceptions_forget();
#endif
    qj_ac__fork_end();
}

static inline void THCYield(void) { qj_ac_yield(); }
static inline int THCYieldTo(awe_t *awe) { return qj_ac_yield_to(awe); }
static inline int THCYieldAndSave(uint32_t id) { return qj_ac_yield_and_save(id); }
static inline int THCYieldToId(uint32_t to) { return qj_ac_yield_to_id(to); }
static inline int THCYieldToIdAndSave(uint32_t to, uint32_t id) { return qj_ac_yield_to_id_and_save(to, id); }
static inline int THCYieldAndSave_NoDispatch(uint32_t id) { return qj_ac_yield_and_save_nodispatch(id); }
static inline int THCYieldToId_NoDispatch(uint32_t to) { return qj_ac_yield_to_id_nodispatch(to); }
static inline int THCYieldToIdAndSave_NoDispatch(uint32_t to, uint32_t id) {
    return qj_ac_yield_to_id_and_save_nodispatch(to, id);
}

static inline void awe_mapper_init(void) { qj_ac_start(); }
static inline void awe_mapper_uninit(void) {}
static inline uint32_t awe_mapper_create_id(void) { return qj_ac_id_create(); }
static inline int awe_mapper_remove_id(uint32_t id) { return qj_ac_id_remove(id); }
static inline int awe_mapper_set_id(uint32_t id, awe_t *awe) { return qj_ac_id_set(id, awe); }
static inline awe_t *awe_mapper_get_awe_ptr(uint32_t id) { return qj_ac_id_task(id); }

static inline int THCIsCancelRequested(void) { return qj_ac_is_canceled(); }
static inline int THCAddCancelItem(cancel_item_t *item, void (*run)(void *), void *argument) {
    return qj_ac_cancel_item_add(item, run, argument);
}
static inline void THCRemoveCancelItem(cancel_item_t *item) { qj_ac_cancel_item_remove(item); }
static inline int THCCancelItemRan(const cancel_item_t *item) { return item->ran; }

static inline void thc_sem_init(thc_sem_t *sem, int value) { qj_ac_semaphore_init(sem, value); }
static inline void thc_sem_p(thc_sem_t *sem) { qj_ac_semaphore_p(sem); }
static inline int thc_sem_p_x(thc_sem_t *sem) { return qj_ac_semaphore_p_x(sem); }
static inline void thc_sem_v(thc_sem_t *sem) { qj_ac_semaphore_v(sem); }
static inline void thc_lock_init(thc_lock_t *lock) { qj_ac_lock_init(lock); }
static inline void thc_lock_acquire(thc_lock_t *lock) { qj_ac_lock_acquire(lock); }
static inline void thc_lock_release(thc_lock_t *lock) { qj_ac_lock_release(lock); }
static inline void thc_condvar_init(thc_condvar_t *condition) { qj_ac_condition_init(condition); }
static inline void thc_condvar_wait(thc_condvar_t *condition, thc_lock_t *lock) { qj_ac_condition_wait(condition, lock); }
static inline int thc_condvar_wait_x(thc_condvar_t *condition, thc_lock_t *lock) {
    return qj_ac_condition_wait_x(condition, lock);
}
static inline void thc_condvar_signal(thc_condvar_t *condition) { qj_ac_condition_signal(condition); }
static inline void thc_condvar_broadcast(thc_condvar_t *condition) { qj_ac_condition_broadcast(condition); }
static inline void thc_ec_init(thc_ec_t *count) { qj_ac_eventcount_init(count); }
static inline uint64_t thc_ec_read(const thc_ec_t *count) { return qj_ac_eventcount_read(count); }
static inline void thc_ec_await(thc_ec_t *count, uint64_t value) { qj_ac_eventcount_await(count, value); }
static inline int thc_ec_await_x(thc_ec_t *count, uint64_t value) { return qj_ac_eventcount_await_x(count, value); }
static inline void thc_ec_advance(thc_ec_t *count, uint64_t by) { qj_ac_eventcount_advance(count, by); }
static inline void thc_seq_init(thc_seq_t *sequencer) { qj_ac_sequencer_init(sequencer); }
static inline void thc_queue_init(thc_queue_t *queue) {
    qj_ac_lock_init(&queue->l);
    qj_ac_condition_init(&queue->cv);
    queue->start.prev = queue->end.next = NULL;
    queue->start.next = &queue->end;
    queue->end.prev = &queue->start;
}
static inline void thc_queue_enter(thc_queue_t *queue, thc_queue_entry_t *entry) {
    entry->bailed = entry->served = 0;
    entry->prev = queue->end.prev;
    entry->next = &queue->end;
    entry->prev->next = entry->next->prev = entry;
}
/* Waits until the entry is the oldest. May be called again after it was cancelled. */
static inline int thc_queue_await_turn_x(thc_queue_t *queue, thc_queue_entry_t *entry) {
    int result = 0;
    qj_ac_lock_acquire(&queue->l);
    while (result == 0 && entry->prev != &queue->start) result = qj_ac_condition_wait_x(&queue->cv, &queue->l);
    entry->served |= result == 0;
    qj_ac_lock_release(&queue->l);
    return result;
}
static inline void thc_queue_await_turn(thc_queue_t *queue, thc_queue_entry_t *entry) {
    qj_ac_lock_acquire(&queue->l);
    while (entry->prev != &queue->start) qj_ac_condition_wait(&queue->cv, &queue->l);
    entry->served = 1;
    qj_ac_lock_release(&queue->l);
}
/* Removes the entry. If it was the oldest, returns how many entries before the next one have left without being served,
 * this one included; otherwise 0. */
static inline int thc_queue_leave(thc_queue_t *queue, thc_queue_entry_t *entry) {
    int unserved = entry->bailed + !entry->served, oldest = entry->prev == &queue->start;
    entry->prev->next = entry->next;
    entry->next->prev = entry->prev;
    if (!oldest) entry->prev->bailed += unserved;
    qj_ac_condition_broadcast(&queue->cv);
    return oldest ? unserved : 0;
}

/* Prints the counters of the thread to the standard output; if `clear` is not 0, the next call begins at 0. */
static inline void THCDumpStats(int clear) {
    static __thread struct qj_ac_statistics before;
    struct qj_ac_statistics now;
    qj_ac_read_statistics(&now);
    printf("stacks %llu, tasks that waited %llu, ended %llu, switches %llu, cancellations %llu\n",
           (unsigned long long)(now.stacks - before.stacks), (unsigned long long)(now.started - before.started),
           (unsigned long long)(now.ended - before.ended), (unsigned long long)(now.switches - before.switches),
           (unsigned long long)(now.cancels - before.cancels));
    if (clear) before = now;
}

static inline uint64_t thc_seq_read(const thc_seq_t *sequencer) { return sequencer->next; }
static inline uint64_t thc_seq_ticket(thc_seq_t *sequencer) { return qj_ac_sequencer_ticket(sequencer); }

#ifdef __cplusplus
}
#endif

/* ASYNC(body) and, as in section 5.3, ASYNC(body, name of the block). A body with a comma outside of parentheses is
 * written ASYNC_(body). */
#define QJ_THC__PICK(a, b, c, d, e, f, g, h, macro, ...) macro
#define QJ_THC__NAMED(body, block)                                                                                     \
    do {                                                                                                               \
        (void)(block);                                                                                                 \
        ASYNC_(body);                                                                                                  \
    } while (0)
#define QJ_THC__WHOLE(...) ASYNC_(__VA_ARGS__)

#if defined(__GNUC__) && !defined(__clang__) && !defined(__cplusplus)
/* The body is a nested function that is only called directly, so that it accesses the enclosing frame without a
 * trampoline. The function that calls it, `enter`, returns twice from `qj_ac__fork_frame`: its frame is copied to the
 * task's stack, and only the copy continues into the body. */
#undef ASYNC
#define ASYNC_(...)                                                                                                    \
    QJ_THC__BODY(QJ_AC__PASTE(qj_thc_body_, __COUNTER__), QJ_AC__PASTE(qj_thc_enter_, __COUNTER__), __VA_ARGS__)
#ifdef QJ_AC_EAGER
#define QJ_THC__STARTED() (qj_ac__fork_started(), qj_ac__fork_detach())
#else
#define QJ_THC__STARTED() qj_ac__fork_started()
#endif
#define QJ_THC__BODY(body, enter, ...)                                                                                 \
    do {                                                                                                               \
        __extension__ auto void body(void) __attribute__((noinline, noclone));                                         \
        __extension__ auto void enter(void) __attribute__((noinline, noclone, optimize("no-stack-protector")));        \
        void body(void) {                                                                                              \
            { __VA_ARGS__; }                                                                                           \
        }                                                                                                              \
        void enter(void) {                                                                                             \
            if (qj_ac__fork_frame(qj_ac__fork_begin(), __builtin_dwarf_cfa()) != 0) {                                  \
                QJ_THC__STARTED();                                                                                     \
                body();                                                                                                \
                qj_ac__fork_end();                                                                                     \
            }                                                                                                          \
            qj_ac__fork_detached();                                                                                      \
        }                                                                                                              \
        enter();                                                                                                       \
    } while (0)
#define ASYNC(...)                                                                                                     \
    QJ_THC__PICK(__VA_ARGS__, QJ_THC__WHOLE, QJ_THC__WHOLE, QJ_THC__WHOLE, QJ_THC__WHOLE, QJ_THC__WHOLE,               \
                 QJ_THC__WHOLE, QJ_THC__NAMED, QJ_THC__WHOLE, )(__VA_ARGS__)

#else
#if defined(__cplusplus)
#define ASYNC_(...) ::qj::ac::async([=]() mutable { __VA_ARGS__; })
#elif defined(__BLOCKS__)
#define ASYNC_(...) QJ_AC__ASYNC(qj_ac__run_block, (void *)^{ __VA_ARGS__; })
#else
#define ASYNC_(...)                                                                                                    \
    _Static_assert(0, "ASYNC({ body }) needs clang -fblocks; otherwise write ASYNC_CALL(function, arguments...)")
#endif
#undef ASYNC
#define ASYNC(...)                                                                                                     \
    QJ_THC__PICK(__VA_ARGS__, QJ_THC__WHOLE, QJ_THC__WHOLE, QJ_THC__WHOLE, QJ_THC__WHOLE, QJ_THC__WHOLE,               \
                 QJ_THC__WHOLE, QJ_THC__NAMED, QJ_THC__WHOLE, )(__VA_ARGS__)
#endif

#endif
