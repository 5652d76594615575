/* backtrace() inside tasks: through to main while the parent is below, and a clean end when it has resumed. */
#include <execinfo.h>
#include <quaject/ac.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int frames_named(const char *when) {
    void *frames[64];
    int count = backtrace(frames, 64);
    char **names = backtrace_symbols(frames, count);
    int task = 0, caller = 0;
    for (int i = 0; i < count; i++) {
        if (strstr(names[i], "the_task") != NULL) task++;
        if (strstr(names[i], "the_caller") != NULL) caller++;
    }
    printf("%s: the task %d, its caller %d\n", when, task, caller);
    free(names);
    return count;
}

__attribute__((noinline)) void the_task(void *argument) {
    (void)argument;
    frames_named("before it waits");
    qj_ac_yield();
    frames_named("after it has waited");
    qj_ac_yield();
    frames_named("after it has waited twice");
}

__attribute__((noinline)) void the_eager_task(void *argument) {
    (void)argument;
    frames_named("eager");
}

__attribute__((noinline)) void the_caller(void) {
    DO_FINISH({
        qj_ac_async(the_task, NULL);
        qj_ac_async_eager(the_eager_task, NULL);
    });
}

int main(void) {
    the_caller();
    return 0;
}
