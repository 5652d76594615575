/* With QJ_AC_FLOAT=own, or the option of that name, a task's rounding mode is its own: not changed by tasks that run
 * while it waits, and begun with its parent's. */
#include <quaject/ac.h>
#include <fenv.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static volatile double one = 1, three = 3;
/* What the unit does, not what the C library remembers. */
static int rounds_up(void) { return one / three > 0x1.5555555555555p-2; }

static struct qj_ac_task *other;
static void upward(void *a) {
    (void)a;
    CHECK(fegetround() == FE_TONEAREST);
    fesetround(FE_UPWARD);
    for (int i = 0; i < 10; i++) {
        qj_ac_yield();
        CHECK(fegetround() == FE_UPWARD && rounds_up());
    }
}
static void nearest(void *a) {
    (void)a;
    for (int i = 0; i < 10; i++) {
        CHECK(fegetround() == FE_TONEAREST && !rounds_up());
        if (i % 2 == 0) {
            qj_ac_yield();
        } else if (qj_ac_yield_to(other) == -ESRCH) {
            qj_ac_sleep(1000);
        }
    }
}
static void inherits(void *a) {
    (void)a;
    CHECK(fegetround() == FE_DOWNWARD);
    qj_ac_yield();
    CHECK(fegetround() == FE_DOWNWARD);
    fesetround(FE_TOWARDZERO);
}
static void never_waits(void *a) { (void)a, fesetround(FE_UPWARD); }
static void stays(void *a) { (void)a, other = qj_ac_current(), upward(a); }

int main(int count, char **arguments) {
    (void)arguments;
    struct qj_ac_options options = {.own_float_control = count > 1};
    if (count > 1) qj_ac_configure(&options);
    DO_FINISH({
        qj_ac_async(stays, NULL);
        qj_ac_async(nearest, NULL);
        qj_ac_async(upward, NULL);
        qj_ac_async(nearest, NULL);
    });
    CHECK(fegetround() == FE_TONEAREST);
    fesetround(FE_DOWNWARD);
    DO_FINISH({
        qj_ac_async(inherits, NULL);
        qj_ac_async(never_waits, NULL);
        CHECK(fegetround() == FE_DOWNWARD && !rounds_up());
    });
    CHECK(fegetround() == FE_DOWNWARD);
    printf("rounding modes are tasks' own\n");
    return 0;
}
