/* More tasks than stacks: a parent waits until one has ended; qj_ac_try_async() says that there is none. */
#include <quaject/ac.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define STACKS 10

static long ran, peak, now;
static void yields(void *a) {
    if (++now > peak) peak = now;
    for (long i = 0; i < (long)a % 5; i++) qj_ac_yield();
    now--, ran++;
}
static void sleeps(void *a) {
    if (++now > peak) peak = now;
    qj_ac_sleep((uint64_t)(uintptr_t)a % 3 * 100000);
    now--, ran++;
}
static void starts(void *a) {
    DO_FINISH({
        for (int i = 0; i < 2; i++) {
            if (qj_ac_try_async(yields, a) == 0) continue;
            yields(a);
        }
    });
}
static struct qj_ac_semaphore gate;
static void waits(void *a) { (void)a, qj_ac_semaphore_p(&gate), ran++; }

int main(void) {
    struct qj_ac_options options = {.max_stacks = STACKS};
    qj_ac_configure(&options);
    DO_FINISH({ for (long i = 0; i < 1000; i++) qj_ac_async(yields, (void *)i); });
    CHECK(ran == 1000 && peak <= STACKS);
    DO_FINISH({ for (long i = 0; i < 300; i++) qj_ac_async(sleeps, (void *)i); });
    CHECK(ran == 1300 && peak <= STACKS);
    DO_FINISH({ for (long i = 0; i < 300; i++) qj_ac_async(starts, (void *)i); });
    CHECK(ran == 1900);
    ran = 0;
    DO_FINISH({
        for (int i = 0; i < STACKS; i++) CHECK(qj_ac_try_async(waits, NULL) == 0);
        CHECK(qj_ac_try_async(waits, NULL) == -EAGAIN);
        CHECK(qj_ac_try_async(waits, NULL) == -EAGAIN);
        for (int i = 0; i < STACKS; i++) qj_ac_semaphore_v(&gate);
        qj_ac_yield();
        CHECK(qj_ac_try_async(waits, NULL) == 0);
        qj_ac_semaphore_v(&gate);
    });
    CHECK(ran == STACKS + 1);
    printf("few stacks are enough\n");
    return 0;
}
