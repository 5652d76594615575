/* Stops at `stop_here` with a task in every state, for the debugger's script. */
#include <quaject/ac.h>

__attribute__((noinline)) void stop_here(void) { __asm__ volatile(""); }

static struct qj_ac_semaphore never;

__attribute__((noinline)) void waits_for_semaphore(void) {
    qj_ac_name("patient");
    qj_ac_semaphore_p_x(&never);
    __asm__ volatile("");
}
__attribute__((noinline)) void yields_inline(void) {
    qj_ac_yield();
    qj_ac_yield();
    __asm__ volatile("");
}
__attribute__((noinline)) void yields_once(void) {
    qj_ac_yield();
    __asm__ volatile("");
}
__attribute__((noinline)) void waits_for_its_block(void) {
    DO_FINISH({ ASYNC_CALL(waits_for_semaphore); });
}
__attribute__((noinline)) void runs(void) {
    stop_here();
    __asm__ volatile("");
}
__attribute__((noinline)) void starts_one_that_runs(void) {
    DO_FINISH({ ASYNC_CALL(runs); });
}

int main(void) {
    DO_FINISH_(block, {
        ASYNC_CALL(waits_for_semaphore);
        ASYNC_CALL(yields_inline);
        qj_ac_yield();
        ASYNC_CALL(yields_once);
        ASYNC_CALL(waits_for_its_block);
        ASYNC_CALL(starts_one_that_runs);
        CANCEL(block);
    });
    return 0;
}
