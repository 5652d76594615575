/* A task that fails cancels its siblings; the block knows the first error. */
#include <quaject/ac.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static int cancelled;
static void sleeps(void) { cancelled += qj_ac_sleep(3600000000000u) == QJ_AC_CANCELED; }
static void fails(int error, int after) {
    for (int i = 0; i < after; i++) qj_ac_yield();
    qj_ac_fail(error);
}

int main(void) {
    FINISH_BEGIN(outer)
        FINISH_BEGIN(block)
            ASYNC_CALL(sleeps);
            ASYNC_CALL(fails, -5, 2);
            ASYNC_CALL(fails, -7, 3);
            ASYNC_CALL(sleeps);
            CHECK(qj_ac_failure(block) == 0);
            qj_ac_join(block);
            CHECK(qj_ac_failure(block) == -5 && cancelled == 2);
        FINISH_END(block)
        CHECK(qj_ac_failure(outer) == 0 && !qj_ac_is_canceled());
        ASYNC_CALL(fails, -9, 0);
        CHECK(qj_ac_failure(outer) == -9 && qj_ac_is_canceled());
    FINISH_END(outer)
    printf("siblings end with the one that fails\n");
    return 0;
}
