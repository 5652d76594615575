/* Threads that wake one another's tasks: schedules before, while and after a task waits, many for one wait, none of
 * them lost. */
#include <quaject/ac.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define ROUNDS 2000
#define SLEEPERS 4

void qj_ac_ffi_wait_remote(void);
void qj_ac_ffi_wake(struct qj_ac_task *task);

struct sleeper {
    _Atomic(struct qj_ac_task *) task; /* null once it has ended */
    atomic_long wanted;                /* how often the others want it to run */
    long ran;
    atomic_long confirmed;
};
static struct sleeper sleepers[SLEEPERS];

/* Runs once more whenever another thread has asked. The order with which `wanted` is read says that what was written
 * before the wake is seen after it. */
static void sleeps(struct sleeper *sleeper) {
    atomic_store(&sleeper->task, qj_ac_current());
    while (sleeper->ran < ROUNDS) {
        while (atomic_load(&sleeper->wanted) == sleeper->ran) qj_ac_ffi_wait_remote();
        sleeper->ran++;
        atomic_store(&sleeper->confirmed, sleeper->ran);
    }
}

static void *wakes(void *argument) {
    (void)argument;
    for (int i = 0; i < SLEEPERS; i++) {
        while (atomic_load(&sleepers[i].task) == NULL) sched_yield();
    }
    for (long round = 1; round <= ROUNDS; round++) {
        for (int i = 0; i < SLEEPERS; i++) {
            struct sleeper *sleeper = &sleepers[i];
            atomic_store(&sleeper->wanted, round);
            struct qj_ac_task *task = atomic_load(&sleeper->task);
            qj_ac_ffi_wake(task);
            if (round % 3 == 0 && round < ROUNDS) qj_ac_ffi_wake(task);
        }
        if (round % 7 == 0) {
            for (int i = 0; i < SLEEPERS; i++) {
                while (atomic_load(&sleepers[i].confirmed) < round) sched_yield();
            }
        }
    }
    return NULL;
}

/* ---- wakes that come while their task waits for the end of a block, where they mean nothing ---- */

static struct qj_ac_task *owner;
static struct qj_ac_task *_Atomic child;
static atomic_int may_end;
static int child_ended;

static void *wakes_the_owner(void *argument) {
    while (atomic_load(&child) == NULL) sched_yield();
    for (int i = 0; i < 1000; i++) qj_ac_ffi_wake(owner), sched_yield();
    atomic_store(&may_end, 1);
    qj_ac_ffi_wake(atomic_load(&child));
    return argument;
}

static void waits_for_leave(void) {
    atomic_store(&child, qj_ac_current());
    while (!atomic_load(&may_end)) qj_ac_ffi_wait_remote();
    child_ended = 1;
}

static void wakes_at_the_end_of_a_block(void) {
    pthread_t thread;
    owner = qj_ac_current();
    CHECK(pthread_create(&thread, NULL, wakes_the_owner, NULL) == 0);
    DO_FINISH({ ASYNC_CALL(waits_for_leave); });
    CHECK(child_ended);
    pthread_join(thread, NULL);
}

/* ---- with two threads, a block is this thread's wherever it is and whichever thread cancels it ---- */

static struct qj_ac_finish in_data, of_the_root;
static int canceled;
static void sleep_until_canceled(void) { canceled += qj_ac_sleep(3600000000000u) == QJ_AC_CANCELED; }
static void opens(struct qj_ac_finish *block) {
    qj_ac_finish_begin(block);
    ASYNC_CALL(sleep_until_canceled);
    qj_ac_finish_end(block);
}
static void opens_on_its_stack(struct qj_ac_finish **where) {
    struct qj_ac_finish block;
    *where = &block;
    opens(&block);
}
static void opens_and_waits(struct qj_ac_finish *block) {
    qj_ac_finish_begin(block);
    sleep_until_canceled();
    qj_ac_finish_end(block);
}
static void cancels(struct qj_ac_finish *block) { CANCEL(block); }

static void cancels_later(struct qj_ac_finish *block) {
    qj_ac_yield();
    CANCEL(block);
}

static void *lets_cancel(void *argument) {
    struct qj_ac_finish *on_stack, *on_heap = malloc(sizeof *on_heap), around;
    qj_ac_finish_begin(&around);
    ASYNC_CALL(opens, &in_data);
    ASYNC_CALL(opens_on_its_stack, &on_stack);
    ASYNC_CALL(opens_and_waits, on_heap);
    ASYNC_CALL(sleep_until_canceled);
    ASYNC_CALL(cancels, &in_data);
    ASYNC_CALL(cancels, on_stack);
    ASYNC_CALL(cancels, on_heap);
    ASYNC_CALL(cancels_later, &of_the_root);
    opens_and_waits(&of_the_root);
    ASYNC_CALL(cancels, &around);
    qj_ac_finish_end(&around);
    free(on_heap);
    CHECK(canceled == 5);
    return argument;
}

int main(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, wakes, NULL) == 0);
    DO_FINISH({
        for (int i = 0; i < SLEEPERS; i++) ASYNC_CALL(sleeps, &sleepers[i]);
    });
    pthread_join(thread, NULL);
    for (int i = 0; i < SLEEPERS; i++) CHECK(sleepers[i].ran == ROUNDS);
    wakes_at_the_end_of_a_block();
    canceled = 0;
    lets_cancel(NULL);
    canceled = 0;
    CHECK(pthread_create(&thread, NULL, lets_cancel, NULL) == 0);
    pthread_join(thread, NULL);
    printf("%d tasks of %d rounds, all woken\n", SLEEPERS, ROUNDS);
    qj_ac_stop();
    return 0;
}
