/* Variables of a FINISH_BEGIN block exist until its tasks have ended, on every way out of it. Between the exit and the
 * tasks the stack is overwritten as much as the compiler permits. */
#include <quaject/ac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static int ran;
static void looks(const int *values, int want) {
    qj_ac_yield();
    for (int i = 0; i < 50; i++) CHECK(values[i] == want);
    ran++;
}
static __attribute__((noinline)) void fill(int *values, int with) {
    for (int i = 0; i < 50; i++) values[i] = with;
}

static void ends(void) {
    FINISH_BEGIN(block)
        int values[50];
        ASYNC_CALL(looks, values, 2);
        fill(values, 2);
    FINISH_END(block)
    int others[50];
    fill(others, -1);
}

static int returns(int early) {
    FINISH_BEGIN(outer)
        int values[50];
        ASYNC_CALL(looks, values, 3);
        fill(values, 3);
        FINISH_BEGIN_NX(inner)
            int more[50];
            ASYNC_CALL(looks, more, 4);
            fill(more, 4);
            if (early) return 1;
        FINISH_END(inner)
    FINISH_END(outer)
    int others[50];
    fill(others, -1);
    return 0;
}

static int loops(void) {
    int turns = 0;
    for (int i = 0; i < 10; i++) {
        FINISH_BEGIN(block)
            int values[50];
            ASYNC_CALL(looks, values, i);
            fill(values, i);
            if (i % 2 == 0) continue;
            if (i == 7) break;
        FINISH_END(block)
        turns++;
        int others[50];
        fill(others, -1);
    }
    return turns;
}

static void jumps(void) {
    FINISH_BEGIN(block)
        int values[50];
        ASYNC_CALL(looks, values, 5);
        fill(values, 5);
        if (ran >= 0) goto out;
        CHECK(0);
    FINISH_END(block)
out:;
    int others[50];
    fill(others, -1);
}

static void waits(void *a) { (void)a, CHECK(qj_ac_yield() == QJ_AC_CANCELED), ran++; }

static void named(void) {
    FINISH_BEGIN(block)
        qj_ac_async(waits, NULL);
        qj_ac_join(block);
    FINISH_END(block)
}
static void named_and_cancelled(void) {
    FINISH_BEGIN(block)
        CANCEL(block);
        qj_ac_async(waits, NULL);
        qj_ac_join(block);
        CHECK(ran == 1);
        qj_ac_async(waits, NULL);
    FINISH_END(block)
    CHECK(ran == 2);
}

int main(void) {
    ends();
    CHECK(returns(1) == 1 && returns(0) == 0);
    CHECK(ran == 5);
    CHECK(loops() == 3);
    CHECK(ran == 13);
    jumps();
    CHECK(ran == 14);
    ran = 0;
    named_and_cancelled();
    DO_FINISH_(around, { CANCEL(around); named(); });
    CHECK(ran == 3);
    printf("variables outlive tasks\n");
    return 0;
}
