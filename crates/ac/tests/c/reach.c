/* The tasks that can be reached by a direct yield, against a model: tasks of random depth start others, wait in every
 * way, wake and yield to any other, the running, ended and never-waited ones among them. What they keep in their frames
 * must stay. */
#include <quaject/ac.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "seed %u, %s:%d: %s\n", seed, __FILE__, __LINE__, #x), abort()))
#define TASKS 24

enum state { NONE, RUNS, WAITS, QUEUED, BELOW, AT_END, ENDED };
static struct {
    struct qj_ac_task *task;
    enum state state;
} known[TASKS];
static int started, ended;
static unsigned seed, number;
static long reached, refused, scheduled;

static unsigned pick(unsigned below) {
    number = number * 1664525 + 1013904223;
    return (number >> 8) % below;
}

/* A stack may be another task's by now: its last user is meant. */
static int last_user(const struct qj_ac_task *task) {
    int index = -1;
    for (int i = 0; i < started; i++) {
        if (known[i].task == task && (index < 0 || known[i].state != ENDED)) index = i;
    }
    return index;
}

static void worker(void *argument);

static void start(int self, int eager) {
    if (started == TASKS) return;
    int child = started++;
    known[child].state = NONE;
    known[self].state = BELOW;
    (eager ? qj_ac_async_eager : qj_ac_async)(worker, (void *)(intptr_t)child);
    known[self].state = RUNS;
}

static void count(int result, int can, int may) {
    CHECK(result == 0 || result == -ESRCH);
    CHECK(may || (result == 0) == can);
    reached += result == 0, refused += result != 0;
}

static void step(int self) {
    int other = (int)pick((unsigned)started);
    struct qj_ac_task *to = known[other].task;
    int same = to == NULL ? -1 : last_user(to);
    enum state state = same < 0 ? NONE : known[same].state;
    /* One below a child can be reached from that child, and from those on top of it, before it has waited. */
    int may = state == BELOW, can = state == WAITS || state == QUEUED;
    switch (pick(8)) {
    case 0:
        known[self].state = QUEUED;
        CHECK(qj_ac_yield() == 0);
        break;
    case 1:
        if (self == 0) break; /* one task must go on forever */
        known[self].state = WAITS;
        qj_ac_suspend();
        break;
    case 2:
        if (to == NULL) break;
        if (can || may) known[self].state = QUEUED;
        count(qj_ac_yield_to(to), can, may);
        break;
    case 3:
    case 4:
        if (to == NULL || (self == 0 && (can || may))) break;
        if (can || may) known[self].state = WAITS;
        count(qj_ac_yield_to_nodispatch(to), can, may);
        break;
    case 5:
        if (state != WAITS) break;
        known[same].state = QUEUED;
        pick(2) ? qj_ac_schedule(to) : qj_ac_schedule_back(to);
        scheduled++;
        break;
    case 6:
        start(self, (int)pick(2));
        break;
    case 7:
        if (self == 0) break; /* its children may all wait for it */
        DO_FINISH({
            for (unsigned i = pick(3); i > 0; i--) start(self, (int)pick(2));
            known[self].state = AT_END;
        });
        break;
    }
    known[self].state = RUNS;
}

static __attribute__((noinline)) void steps(int self, int depth) {
    volatile unsigned char frame[48];
    memset((void *)frame, self * 8 + depth, sizeof frame);
    for (unsigned i = 2 + pick(6); i > 0; i--) {
        if (depth < 3 && pick(3) == 0) {
            steps(self, depth + 1);
        } else {
            step(self);
        }
        CHECK(qj_ac_current() == known[self].task);
        for (size_t j = 0; j < sizeof frame; j++) CHECK(frame[j] == (unsigned char)(self * 8 + depth));
    }
}

static void worker(void *argument) {
    int self = (int)(intptr_t)argument;
    known[self].task = qj_ac_current();
    known[self].state = RUNS;
    steps(self, 0);
    known[self].state = ENDED;
    ended++;
}

static void once(void) {
    memset(known, 0, sizeof known);
    number = seed;
    started = 1, ended = 0;
    known[0].task = qj_ac_current();
    DO_FINISH({
        known[0].state = RUNS;
        for (int i = 0; i < 4; i++) start(0, (int)pick(2));
        steps(0, 0);
        while (ended < started - 1) {
            for (int i = 1; i < started; i++) {
                if (known[i].state != WAITS) continue;
                known[i].state = QUEUED;
                qj_ac_schedule_back(known[i].task);
            }
            known[0].state = QUEUED;
            CHECK(qj_ac_yield() == 0);
            known[0].state = RUNS;
        }
    });
}

int main(void) {
    qj_ac_start();
    for (seed = 1; seed <= 3000; seed++) once();
    CHECK(reached > 1000 && refused > 1000 && scheduled > 1000);
    puts("every task found those it could reach");
    qj_ac_stop();
    return 0;
}
