/* Tasks that end by THCFinish: in the middle of a function, before and after their first wait, in a body and in a call.
 * Each stack goes back to the pool once: the tasks that follow have one each. */
#include <quaject/thc.h>
#include <stdio.h>

static void ends_at_once(void) { THCFinish(); }
static void ends_after_a_wait(void) {
    THCYield();
    THCFinish();
}
static __attribute__((noinline)) void ends_if(int wanted) {
    if (wanted) THCFinish();
}
static void ends_below(int wanted) {
    ends_if(wanted);
    printf("never\n");
}

static void keeps(int number) {
    int mine[100];
    for (int i = 0; i < 100; i++) mine[i] = number;
    THCYield();
    for (int i = 0; i < 100; i++) {
        if (mine[i] != number) printf("task %d has %d\n", number, mine[i]);
    }
    printf("%d ", number);
}

int main(void) {
    thc_init();
    for (int round = 0; round < 3; round++) {
        DO_FINISH({
            ASYNC_CALL(ends_at_once);
            ASYNC_CALL(ends_after_a_wait);
            ASYNC_CALL(ends_below, 1);
            ASYNC({ THCFinish(); });
            ASYNC({
                THCYield();
                THCFinish();
            });
        });
        DO_FINISH({
            for (int i = 0; i < 8; i++) ASYNC_CALL(keeps, i);
        });
        printf("\n");
    }
    thc_done();
    return 0;
}
