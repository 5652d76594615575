/* What another thread wrote before it woke a task is seen by the task; ThreadSanitizer knows that. */
#include <quaject/ac.h>
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static struct qj_ac_task *sleeper;
static int wanted[2];
static long value;

static void *other_thread(void *a) {
    char byte;
    for (long i = 1; i <= 20; i++) {
        if (read(wanted[0], &byte, 1) != 1) return NULL;
        value = i;
        qj_ac_schedule(sleeper);
    }
    return a;
}
static void waits(void *a) {
    long sum = 0;
    (void)a;
    sleeper = qj_ac_current();
    for (long i = 1; i <= 20; i++) {
        if (write(wanted[1], "x", 1) != 1) return;
        qj_ac_suspend_remote();
        sum += value;
    }
    printf("sum %ld\n", sum);
}

int main(void) {
    pthread_t thread;
    if (pipe(wanted) != 0 || pthread_create(&thread, NULL, other_thread, NULL) != 0) return 1;
    DO_FINISH({ qj_ac_async(waits, NULL); });
    pthread_join(thread, NULL);
    return 0;
}
