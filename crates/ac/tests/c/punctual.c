/* Events are late by a bound that does not depend on the number of tasks, however the others switch. Every interval in
 * which another task computes takes a millisecond at least; what is counted is how many of them begin after a timer was
 * due and before its task runs. The speed and the load of the machine do not matter. */
#include <quaject/ac/io.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define TASKS 30
#define MS 1000000u

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t due_ns;
static int over, late;

static void compute(void) {
    uint64_t begin = now_ns();
    if (!over && begin > due_ns) late++;
    while (now_ns() - begin < MS) continue;
}
static void begin(uint64_t due) { due_ns = due, over = late = 0; }
static void report(const char *what) {
    if (late > 4) fprintf(stderr, "%s: %d intervals late\n", what, late);
    printf("%s: %s\n", what, !over ? "never" : late <= 4 ? "in time" : "late");
}

static void sleeps(void *after_ms) {
    qj_ac_sleep((uintptr_t)after_ms * MS);
    over = 1;
}

/* Yields: a round takes thirty intervals. */
static void yields(void *a) {
    (void)a;
    for (int i = 0; i < 200 && !over; i++) {
        compute();
        if (qj_ac_yield() != 0) over = 1;
    }
}
/* Yields to its neighbour, ahead of the queue. */
static struct qj_ac_task *pair[2];
static void yields_to(void *a) {
    uintptr_t me = (uintptr_t)a;
    pair[me] = qj_ac_current();
    qj_ac_yield();
    for (int i = 0; i < 200 && !over; i++) compute(), qj_ac_yield_to(pair[!me]);
}
/* The same without the queue. */
static void yields_directly(void *a) {
    uintptr_t me = (uintptr_t)a;
    static int one_has_ended;
    pair[me] = qj_ac_current();
    if (me == 0) qj_ac_suspend();
    for (int i = 0; i < 200 && !over; i++) compute(), qj_ac_yield_to_nodispatch(pair[!me]);
    if (!one_has_ended) one_has_ended = 1, qj_ac_schedule(pair[!me]);
}
/* Waits once and then computes to its end. */
static void ends(void *a) {
    (void)a;
    qj_ac_yield();
    compute();
}
/* Computes before it first waits: its parent goes on. */
static void starts(void *a) {
    (void)a;
    compute();
    qj_ac_yield();
}
/* A chain of semaphores. */
static struct qj_ac_semaphore links[TASKS];
static void passes(void *a) {
    uintptr_t me = (uintptr_t)a;
    for (int i = 0; i < 10; i++) {
        qj_ac_semaphore_p(&links[me]);
        if (!over) compute();
        qj_ac_semaphore_v(&links[(me + 1) % TASKS]);
    }
}
/* I/O: a byte lies in the pipe from the beginning. */
static void reads(int end) {
    char byte;
    CHECK(qj_ac_read(end, &byte, 1) == 1);
    over = 1;
}

static void with_timer(const char *what, void (*function)(void *), uintptr_t tasks) {
    begin(now_ns() + 5 * MS);
    DO_FINISH({
        qj_ac_async(sleeps, (void *)5);
        for (uintptr_t i = 0; i < tasks; i++) qj_ac_async(function, (void *)i);
    });
    report(what);
}

int main(void) {
    qj_ac_start();
    with_timer("yields", yields, TASKS);
    with_timer("directed yields", yields_to, 2);
    with_timer("direct yields", yields_directly, 2);
    with_timer("ends", ends, TASKS);
    with_timer("starts", starts, TASKS);
    for (int i = 0; i < TASKS; i++) qj_ac_semaphore_init(&links[i], i == 0);
    with_timer("semaphores", passes, TASKS);
    begin(now_ns() + 5 * MS);
    DO_FINISH_(block, {
        qj_ac_deadline(block, 5 * MS);
        for (int i = 0; i < TASKS; i++) qj_ac_async(yields, NULL);
    });
    report("deadline");
    int ends_of_pipe[2];
    CHECK(pipe(ends_of_pipe) == 0);
    begin(now_ns());
    DO_FINISH({
        ASYNC_CALL(reads, ends_of_pipe[0]);
        CHECK(write(ends_of_pipe[1], "x", 1) == 1);
        for (int i = 0; i < TASKS; i++) qj_ac_async(yields, NULL);
    });
    report("input");
    qj_ac_stop();
    return 0;
}
