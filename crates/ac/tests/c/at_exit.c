/* A traced program whose tasks go on after the trace has ended: in what runs at its exit, in another thread, in a
 * child. */
#include <quaject/ac.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static __thread int yielded;
static void yields(void) {
    for (int i = 0; i < 20; i++) qj_ac_yield();
    yielded++;
}
static void two(void) {
    DO_FINISH({
        ASYNC_CALL(yields);
        ASYNC_CALL(yields);
    });
}
static void late(void) {
    two();
    CHECK(yielded == 4 || yielded == 6);
    printf("late\n");
}
static void *for_ever(void *argument) {
    for (;;) two();
    return argument;
}

int main(void) {
    pthread_t thread;
    int status;
    atexit(late);
    two();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        two();
        fclose(stdout);
        exit(0);
    }
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    CHECK(pthread_create(&thread, NULL, for_ever, NULL) == 0);
    usleep(20000);
    return 0;
}
