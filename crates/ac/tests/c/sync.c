/* Semaphores, locks, condition variables, event counts and sequencers, each with and without cancellation. */
#include <quaject/ac.h>
#include <stdio.h>

static struct qj_ac_semaphore semaphore;
static struct qj_ac_lock lock;
static struct qj_ac_condition condition;
static struct qj_ac_eventcount count;
static struct qj_ac_sequencer sequencer;

static void p(const char *name) { qj_ac_semaphore_p(&semaphore), printf("%s ", name); }
static void p_x(const char *name) { printf("%s:%d ", name, qj_ac_semaphore_p_x(&semaphore) == QJ_AC_CANCELED); }

static void locked(const char *name) {
    qj_ac_lock_acquire(&lock);
    printf("[%s ", name);
    qj_ac_yield();
    printf("%s] ", name);
    qj_ac_lock_release(&lock);
}
static void locked_x(const char *name) {
    if (qj_ac_lock_acquire_x(&lock) == 0) {
        printf("%s? ", name);
        qj_ac_lock_release(&lock);
    } else {
        printf("%s! ", name);
    }
}

static int ready;
static void waits_for_ready(const char *name) {
    qj_ac_lock_acquire(&lock);
    while (!ready) qj_ac_condition_wait(&condition, &lock);
    printf("%s ", name);
    qj_ac_lock_release(&lock);
}
static void waits_x(const char *name) {
    qj_ac_lock_acquire(&lock);
    printf("%s:%d ", name, qj_ac_condition_wait_x(&condition, &lock) == QJ_AC_CANCELED);
    qj_ac_lock_release(&lock);
}

/* The producer and consumer of Reed and Kanodia, with two consumers in ticket order. */
static int ring[4];
static struct qj_ac_eventcount in, out;
static void producer(long n) {
    for (long i = 0; i < n; i++) {
        if (i >= 4) qj_ac_eventcount_await(&out, (uint64_t)(i - 3));
        ring[i % 4] = (int)(i * i);
        qj_ac_eventcount_advance(&in, 1);
    }
}
static long sum;
static void consumer(long n) {
    for (;;) {
        uint64_t ticket = qj_ac_sequencer_ticket(&sequencer);
        if (ticket >= (uint64_t)n) return;
        qj_ac_eventcount_await(&in, ticket + 1);
        qj_ac_eventcount_await(&out, ticket);
        sum = sum * 3 % 1000003 + ring[ticket % 4];
        qj_ac_eventcount_advance(&out, 1);
    }
}
static void await_x(long value) {
    printf("%ld:%d ", value, qj_ac_eventcount_await_x(&count, (uint64_t)value) == QJ_AC_CANCELED);
}

int main(void) {
    printf("semaphore: ");
    qj_ac_semaphore_init(&semaphore, 1);
    DO_FINISH({
        ASYNC_CALL(p, "a");
        ASYNC_CALL(p, "b");
        ASYNC_CALL(p, "c");
        printf("- ");
        qj_ac_semaphore_v(&semaphore);
        qj_ac_yield();
        qj_ac_semaphore_v(&semaphore);
        qj_ac_semaphore_v(&semaphore);
    });
    printf("%ld\nsemaphore_x: ", semaphore.value);
    qj_ac_semaphore_init(&semaphore, 0);
    DO_FINISH_(block, {
        ASYNC_CALL(p_x, "a");
        ASYNC_CALL(p_x, "b");
        qj_ac_semaphore_v(&semaphore);
        CANCEL(block);
        qj_ac_semaphore_v(&semaphore);
    });
    printf("%ld\nlock: ", semaphore.value);
    qj_ac_lock_init(&lock);
    DO_FINISH({
        ASYNC_CALL(locked, "a");
        ASYNC_CALL(locked, "b");
        ASYNC_CALL(locked, "c");
    });
    printf("\nlock_x: ");
    DO_FINISH_(block, {
        qj_ac_lock_acquire(&lock);
        ASYNC_CALL(locked_x, "a");
        ASYNC_CALL(locked_x, "b");
        CANCEL(block);
        qj_ac_lock_release(&lock);
    });
    printf("\ncondition: ");
    qj_ac_condition_init(&condition);
    DO_FINISH({
        ASYNC_CALL(waits_for_ready, "a");
        ASYNC_CALL(waits_for_ready, "b");
        ASYNC_CALL(waits_for_ready, "c");
        qj_ac_condition_signal(&condition);
        qj_ac_yield();
        printf("- ");
        ready = 1;
        qj_ac_condition_broadcast(&condition);
    });
    printf("\ncondition_x: ");
    DO_FINISH_(block, {
        ASYNC_CALL(waits_x, "a");
        ASYNC_CALL(waits_x, "b");
        qj_ac_condition_signal(&condition);
        CANCEL(block);
    });
    printf("%d\nevent count: ", lock.owner == NULL);
    DO_FINISH({
        ASYNC_CALL(producer, 1000L);
        ASYNC_CALL(consumer, 1000L);
        ASYNC_CALL(consumer, 1000L);
    });
    printf("%ld ", sum);
    sum = 0;
    for (long i = 0; i < 1000; i++) sum = sum * 3 % 1000003 + i * i;
    printf("%ld\nevent count_x: ", sum);
    qj_ac_eventcount_init(&count);
    DO_FINISH_(block, {
        ASYNC_CALL(await_x, 5L);
        ASYNC_CALL(await_x, 2L);
        qj_ac_eventcount_advance(&count, 3);
        CANCEL(block);
    });
    printf("%d\n", (int)qj_ac_eventcount_read(&count));
    qj_ac_stop();
    return 0;
}
