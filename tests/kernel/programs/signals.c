/* Signals: handlers, masks, stacks of their own, and calls that they interrupt. */
#include "report.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>

static volatile sig_atomic_t count, last;
static volatile int on_own_stack;
static char own_stack[65536];

static void note(int signal)
{
    char here;
    count++;
    last = signal;
    on_own_stack = &here >= own_stack && &here < own_stack + sizeof own_stack;
}

static void set(int signal, void (*handler)(int), int flags)
{
    struct sigaction action = {.sa_handler = handler, .sa_flags = flags};
    report("sigaction", sigaction(signal, &action, NULL));
}

static void handle(void)
{
    set(SIGUSR1, note, 0);
    double value = 1.5;
    raise(SIGUSR1);
    value *= 2;
    printf("handled %d, signal %d, value %g\n", count, last, value);
    sigset_t mask, old, pending;
    sigemptyset(&mask);
    sigaddset(&mask, SIGUSR1);
    sigprocmask(SIG_BLOCK, &mask, &old);
    raise(SIGUSR1);
    raise(SIGUSR1);
    sigpending(&pending);
    printf("blocked: handled %d, pending %d\n", count, sigismember(&pending, SIGUSR1));
    sigprocmask(SIG_SETMASK, &old, NULL);
    printf("unblocked: handled %d\n", count);
    report("handle SIGKILL", sigaction(SIGKILL, &(struct sigaction){.sa_handler = note}, NULL));
    report("signal 65", syscall(SYS_rt_sigaction, 65, NULL, NULL, 8));
    report("kill oneself with nothing", kill(getpid(), 0));
    report("signal to a thread that is not", syscall(SYS_tgkill, getpid(), 99999, SIGUSR1));
    report("unknown signal", kill(getpid(), 1000));
    set(SIGUSR2, SIG_IGN, 0);
    raise(SIGUSR2);
    raise(SIGCHLD);
    printf("ignored: handled %d\n", count);
    set(SIGUSR1, note, SA_RESETHAND);
    raise(SIGUSR1);
    struct sigaction now;
    sigaction(SIGUSR1, NULL, &now);
    printf("reset: handled %d, default again %d\n", count, now.sa_handler == SIG_DFL);
}

static void use_own_stack(void)
{
    stack_t stack = {.ss_sp = own_stack, .ss_size = sizeof own_stack}, old;
    report("sigaltstack", sigaltstack(&stack, NULL));
    set(SIGUSR1, note, SA_ONSTACK);
    raise(SIGUSR1);
    printf("on its own stack: %d\n", on_own_stack);
    sigaltstack(NULL, &old);
    printf("stack is reported: %d\n", old.ss_sp == own_stack && old.ss_size == sizeof own_stack);
    report("a stack that is too small", sigaltstack(&(stack_t){.ss_sp = own_stack, .ss_size = 100}, NULL));
    set(SIGUSR1, note, 0);
    raise(SIGUSR1);
    printf("on its own stack: %d\n", on_own_stack);
}

static pthread_t main_thread;
static volatile int is_interrupted;

static void *interrupt(void *argument)
{
    int *ends = argument;
    struct timespec pause = {0, 20000000};
    /* The call may begin late: again, until it has been interrupted. */
    do {
        nanosleep(&pause, NULL);
        pthread_kill(main_thread, SIGUSR1);
    } while (!ends && !is_interrupted);
    nanosleep(&pause, NULL);
    if (ends)
        write(ends[1], "late", 4);
    return NULL;
}

static void interrupt_calls(void)
{
    int ends[2];
    char buffer[8] = {0};
    pthread_t thread;
    main_thread = pthread_self();
    pipe(ends);
    set(SIGUSR1, note, SA_RESTART);
    pthread_create(&thread, NULL, interrupt, ends);
    report("read that begins again", read(ends[0], buffer, sizeof buffer));
    printf("[%s]\n", buffer);
    pthread_join(thread, NULL);
    set(SIGUSR1, note, 0);
    pthread_create(&thread, NULL, interrupt, NULL);
    report("read that is interrupted", read(ends[0], buffer, sizeof buffer));
    is_interrupted = 1;
    pthread_join(thread, NULL);
    is_interrupted = 0;
    pthread_create(&thread, NULL, interrupt, NULL);
    struct timespec pause = {100000, 0}, rest = {0, 0};
    report("sleep that is interrupted", nanosleep(&pause, &rest));
    is_interrupted = 1;
    printf("a rest is left: %d\n", rest.tv_sec >= 1 && rest.tv_sec < 100000);
    pthread_join(thread, NULL);
}

static sigjmp_buf recovery;

static void recover(int signal)
{
    siglongjmp(recovery, signal);
}

static void survive_faults(void)
{
    volatile int zero = 0;
    set(SIGFPE, recover, 0);
    set(SIGILL, recover, 0);
    set(SIGSEGV, recover, 0);
    set(SIGTRAP, recover, 0);
    int signal;
    if (!(signal = sigsetjmp(recovery, 1)))
        zero = 1 / zero;
    printf("division: %d\n", signal);
    if (!(signal = sigsetjmp(recovery, 1)))
        __asm__ volatile("ud2");
    printf("no instruction: %d\n", signal);
    if (!(signal = sigsetjmp(recovery, 1)))
        __asm__ volatile("hlt");
    printf("halt: %d\n", signal);
    if (!(signal = sigsetjmp(recovery, 1)))
        __asm__ volatile("cli");
    printf("interrupts off: %d\n", signal);
    if (!(signal = sigsetjmp(recovery, 1)))
        __asm__ volatile("outb %%al, $0xf4" : : "a"(0));
    printf("output to a port: %d\n", signal);
    if (!(signal = sigsetjmp(recovery, 1)))
        __asm__ volatile("rdmsr" : : "c"(0xc0000080) : "eax", "edx");
    printf("machine register: %d\n", signal);
    if (!(signal = sigsetjmp(recovery, 1)))
        __asm__ volatile("mov %%cr0, %%rax" : : : "rax");
    printf("control register: %d\n", signal);
    if (!(signal = sigsetjmp(recovery, 1)))
        __asm__ volatile("int $0x20");
    printf("interrupt of the timer: %d\n", signal);
    if (!(signal = sigsetjmp(recovery, 1)))
        __asm__ volatile("int3");
    printf("breakpoint: %d\n", signal);
    if (!(signal = sigsetjmp(recovery, 1)))
        *(volatile long *)0x0000900000000000 = 1;
    printf("not canonical: %d\n", signal);
    if (!(signal = sigsetjmp(recovery, 1)))
        ((void (*)(void))0xffffffff80201000)();
    printf("the kernel's code: %d\n", signal);
}

int main(void)
{
    handle();
    use_own_stack();
    interrupt_calls();
    survive_faults();
    return 0;
}
