/* A thread that wakes another's task touches nothing of it once that thread may have ended. The waker runs an
 * instruction at a time, with a pause after each, and the other has ended and its memory is freed as early as can
 * be. */
#define _GNU_SOURCE
#include <quaject/ac.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define STACK_BYTES (1 << 20)
#define PAUSE_US 300

static struct qj_ac_task *_Atomic sleeper;
static atomic_int woken, ended;
static long steps;

static void sleeps(void *argument) {
    (void)argument;
    atomic_store(&sleeper, qj_ac_current());
    qj_ac_suspend_remote();
    atomic_store(&woken, 1);
}
/* Makes the thread look for wakes all the time. */
static void poll_flag(void *argument) {
    (void)argument;
    while (!atomic_load(&woken)) qj_ac_yield();
}
static void *owns(void *argument) {
    DO_FINISH({
        qj_ac_async(sleeps, NULL);
        qj_ac_async(poll_flag, NULL);
    });
    return argument;
}

static void step(int signal) {
    (void)signal;
    steps++;
    if (!atomic_load(&ended)) usleep(PAUSE_US);
}
static void *wakes(void *argument) {
    while (atomic_load(&sleeper) == NULL) usleep(100);
    struct qj_ac_task *task = atomic_load(&sleeper);
    __asm__ volatile("sub $128, %%rsp\n\tpushf\n\torq $0x100, (%%rsp)\n\tpopf\n\tadd $128, %%rsp" ::: "cc", "memory");
    qj_ac_schedule(task);
    __asm__ volatile("sub $128, %%rsp\n\tpushf\n\tandq $~0x100, (%%rsp)\n\tpopf\n\tadd $128, %%rsp" ::: "cc", "memory");
    return argument;
}

int main(void) {
    struct sigaction action = {.sa_handler = step};
    pthread_t owner, waker;
    pthread_attr_t attributes;
    sigaction(SIGTRAP, &action, NULL);
    /* glibc keeps what a thread owns on the stack it is given: both are ended at once. */
    void *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(stack != MAP_FAILED && pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstack(&attributes, stack, STACK_BYTES) == 0);
    CHECK(pthread_create(&owner, &attributes, owns, NULL) == 0);
    CHECK(pthread_create(&waker, NULL, wakes, NULL) == 0);
    pthread_join(owner, NULL);
    CHECK(mprotect(stack, STACK_BYTES, PROT_NONE) == 0);
    atomic_store(&ended, 1);
    pthread_join(waker, NULL);
    CHECK(steps > 20);
    printf("woken, and left alone\n");
    return 0;
}
