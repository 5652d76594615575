/* longjmp inside of tasks: over frames, over waits, over a child that has ended and one that runs; and on the thread's
 * own stack. */
#include <quaject/ac.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define TASKS 8

static long jumped, ended, children;

static __attribute__((noinline)) void jump_from(jmp_buf *to, int depth, int value) {
    volatile char frame[200];
    if (value == 0) return;
    frame[depth] = (char)depth;
    if (depth > 0) jump_from(to, depth - 1, value);
    if (frame[depth] % 2 == 0) qj_ac_yield();
    longjmp(*to, value);
}

static void child(void) {
    qj_ac_yield();
    children++;
}

static void goes_round(int me) {
    jmp_buf back;
    volatile int rounds = 0;
    volatile long mine = me;
    int value = setjmp(back);
    CHECK(mine == me && value == rounds);
    jumped++;
    if (rounds < 10) {
        rounds++;
        if (rounds % 3 == 0) qj_ac_sleep(1000);
        DO_FINISH({
            ASYNC_CALL(child);
            ASYNC_CALL(child);
        });
        jump_from(&back, rounds, rounds);
    }
    ended++;
}

int main(void) {
    DO_FINISH({
        for (int i = 0; i < TASKS; i++) ASYNC_CALL(goes_round, i);
        goes_round(TASKS);
    });
    goes_round(TASKS + 1);
    printf("%ld jumps, %ld tasks, %ld children\n", jumped, ended, children);
    qj_ac_stop();
    return 0;
}
