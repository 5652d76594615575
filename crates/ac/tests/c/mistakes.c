/* Every mistake the library names; the argument picks one. None of them may end otherwise. */
#include <quaject/ac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static struct qj_ac_task *task;
static struct qj_ac_lock lock;
static struct qj_ac_semaphore semaphore;
static struct qj_ac_finish block, other;

static void nothing(void *a) { (void)a; }
static void waits(void *a) { (void)a, task = qj_ac_current(), qj_ac_suspend(); }
static void ends_what_it_did_not_open(void *a) { qj_ac_finish_end(a); }
static void leaves_open(void *a) { qj_ac_finish_begin(a); }
static void waits_and_leaves_open(void *a) { qj_ac_yield(), qj_ac_finish_begin(a); }
static int deep(int n) {
    volatile char frame[512];
    frame[n % 512] = (char)n;
    return deep(n + 1) + frame[(n + 1) % 512];
}
static void overflows(void *a) { qj_ac_name("digger"), printf("%d", deep(a != NULL)); }
static void overflows_after_a_wait(void *a) { qj_ac_yield(), overflows(a); }
static void yields(void *a) { (void)a, qj_ac_yield(); }
static void locks_twice(void *a) { (void)a, qj_ac_lock_acquire(&lock), qj_ac_lock_acquire(&lock); }
static void releases(void *a) { (void)a, qj_ac_lock_release(&lock); }

static void make(const char *mistake) {
    if (strcmp(mistake, "outside") == 0) {
        qj_ac_async(nothing, NULL);
    } else if (strcmp(mistake, "outside-after") == 0) {
        DO_FINISH({ qj_ac_async(nothing, NULL); });
        qj_ac_async(nothing, NULL);
    } else if (strcmp(mistake, "end-twice") == 0) {
        qj_ac_finish_begin(&block);
        qj_ac_finish_end(&block);
        qj_ac_finish_end(&block);
    } else if (strcmp(mistake, "end-in-wrong-order") == 0) {
        qj_ac_finish_begin(&block);
        qj_ac_finish_begin(&other);
        qj_ac_finish_end(&block);
    } else if (strcmp(mistake, "end-in-wrong-task") == 0) {
        qj_ac_finish_begin(&block);
        qj_ac_finish_begin(&other);
        qj_ac_async(ends_what_it_did_not_open, &block);
    } else if (strcmp(mistake, "left-open") == 0) {
        DO_FINISH({ qj_ac_async(leaves_open, &block); });
    } else if (strcmp(mistake, "left-open-after-a-wait") == 0) {
        DO_FINISH({ qj_ac_async(waits_and_leaves_open, &block); });
    } else if (strcmp(mistake, "overflow") == 0) {
        DO_FINISH({ qj_ac_async(overflows, NULL); });
    } else if (strcmp(mistake, "overflow-after-a-wait") == 0) {
        DO_FINISH({ qj_ac_async(overflows_after_a_wait, NULL); });
    } else if (strcmp(mistake, "deadlock") == 0) {
        DO_FINISH({
            qj_ac_async(waits, NULL);
            qj_ac_async(waits, NULL);
        });
    } else if (strcmp(mistake, "deadlock-semaphore") == 0) {
        DO_FINISH({ ASYNC_CALL(qj_ac_semaphore_p, &semaphore); });
    } else if (strcmp(mistake, "schedule-twice") == 0) {
        DO_FINISH({
            qj_ac_async(waits, NULL);
            qj_ac_schedule(task);
            qj_ac_schedule(task);
        });
    } else if (strcmp(mistake, "schedule-running") == 0) {
        DO_FINISH({ qj_ac_schedule(qj_ac_current()); });
    } else if (strcmp(mistake, "schedule-ended") == 0) {
        DO_FINISH({
            qj_ac_async(waits, NULL);
            qj_ac_schedule(task);
        });
        qj_ac_schedule(task);
    } else if (strcmp(mistake, "lock-twice") == 0) {
        DO_FINISH({ qj_ac_async(locks_twice, NULL); });
    } else if (strcmp(mistake, "release-what-is-not-held") == 0) {
        DO_FINISH({ qj_ac_async(releases, NULL); });
    } else if (strcmp(mistake, "stop-inside") == 0) {
        DO_FINISH({ qj_ac_stop(); });
    } else if (strcmp(mistake, "stacks-at-most") == 0) {
        struct qj_ac_options options = {.stacks_at_most = 100};
        qj_ac_configure(&options);
        DO_FINISH({
            for (int i = 0; i < 200; i++) qj_ac_async(yields, NULL);
        });
    } else if (strcmp(mistake, "memory") == 0) {
        struct rlimit limit = {64 << 20, 64 << 20};
        setrlimit(RLIMIT_AS, &limit);
        DO_FINISH({
            for (int i = 0; i < 10000; i++) qj_ac_async(yields, NULL);
        });
    } else if (strcmp(mistake, "mappings") == 0) {
        DO_FINISH({
            for (int i = 0; i < 2000000; i++) qj_ac_async(yields, NULL);
        });
    } else if (strcmp(mistake, "stack-size") == 0) {
        DO_FINISH({ qj_ac_async(yields, NULL); });
    } else if (strcmp(mistake, "ids") == 0) {
        /* Not a mistake that stops: the number 0 says that there is none. */
        for (int i = 0; i < 65535; i++) {
            if (qj_ac_id_create() == 0) abort();
        }
        uint32_t none = qj_ac_id_create();
        fprintf(stderr, "the 65536th number: %u\n", none);
    } else {
        fprintf(stderr, "no such mistake\n");
    }
}

int main(int count, char **arguments) {
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    make(count > 1 ? arguments[1] : "");
    return 0;
}
