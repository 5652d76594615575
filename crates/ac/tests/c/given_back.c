/* The memory of stacks that no task uses is given back: when asked for, and by the library itself while something is
 * waited for. What was given back is used again, and pointers to its tasks, which have ended, are recognised. */
#include <quaject/ac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define TASKS 4000
#define KEPT 100

static long resident(void) {
    long pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2) abort();
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}

static long ran;
static struct qj_ac_task *last_started;
static void waits(void *a) { (void)a, last_started = qj_ac_current(), qj_ac_yield(), ran++; }
static void uses_much(void *a) {
    volatile char frame[40000];
    memset((void *)frame, 1, sizeof frame);
    (void)a, qj_ac_yield(), ran += frame[100];
}
static long burst(void (*function)(void *), long tasks) {
    long peak;
    ran = 0;
    DO_FINISH({
        for (long i = 0; i < tasks; i++) qj_ac_async(function, NULL);
        peak = resident();
    });
    CHECK(ran == tasks);
    return peak;
}

/* From a task that has not waited, and whose own stack is still the first of the pool. */
static size_t trimmed;
static void trims(void *keep) {
    volatile char frame[20000];
    frame[0] = frame[19999] = 7;
    trimmed = qj_ac_trim((size_t)(uintptr_t)keep);
    CHECK(frame[0] == 7 && frame[19999] == 7);
}

static void when_asked_for(void) {
    CHECK(qj_ac_trim(0) == 0);
    burst(waits, 1);
    long before = resident();
    CHECK(burst(waits, TASKS) - before > TASKS * 4000);
    CHECK(resident() - before > TASKS * 4000);
    CHECK(qj_ac_trim(KEPT) >= TASKS - KEPT - 1 && qj_ac_trim(KEPT) == 0);
    CHECK(resident() - before < (KEPT + 500) * 4096);
    struct qj_ac_task *ended = last_started;
    DO_FINISH({ qj_ac_async(trims, (void *)0); });
    CHECK(trimmed >= KEPT - 1 && trimmed <= KEPT);
    DO_FINISH({ CHECK(qj_ac_yield_to(ended) == -ESRCH && qj_ac_yield_to_nodispatch(ended) == -ESRCH); });
    for (int i = 0; i < 3; i++) {
        burst(waits, TASKS);
        DO_FINISH({ qj_ac_async(trims, (void *)(uintptr_t)i); });
        CHECK(trimmed >= TASKS - 3);
    }
    /* What is kept is small. */
    before = resident();
    CHECK(burst(uses_much, KEPT) - before > KEPT * 40000);
    CHECK(qj_ac_trim(KEPT) == 0 && resident() - before < KEPT * 25000);
    burst(uses_much, KEPT);
}

/* The task that waits keeps its stack and its frame. */
static void waits_for_memory(void *a) {
    volatile char frame[3000];
    memset((void *)frame, 5, sizeof frame);
    long limit = *(long *)a;
    while (resident() > limit) qj_ac_sleep(5000000);
    for (size_t i = 0; i < sizeof frame; i++) CHECK(frame[i] == 5);
}
static void while_something_is_waited_for(void) {
    qj_ac_trim(0);
    long limit = resident() + (KEPT + 500) * 4096;
    for (int i = 0; i < 2; i++) {
        CHECK(burst(waits, TASKS) > limit && resident() > limit);
        DO_FINISH({
            qj_ac_async(waits_for_memory, &limit);
            qj_ac_async(waits_for_memory, &limit);
        });
    }
}

int main(void) {
    struct qj_ac_options options = {.keep_stacks = KEPT};
    qj_ac_configure(&options);
    when_asked_for();
    while_something_is_waited_for();
    qj_ac_stop();
    CHECK(qj_ac_trim(0) == 0);
    printf("memory was given back\n");
    return 0;
}
