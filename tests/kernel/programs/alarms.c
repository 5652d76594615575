/* Timers that send a signal: once, again and again, and while nothing else happens. */
#include "report.h"
#include <signal.h>
#include <sys/time.h>

static volatile sig_atomic_t rung;

static void ring(int signal)
{
    (void)signal;
    rung++;
}

int main(void)
{
    struct itimerval timer = {{0, 10000}, {0, 20000}}, old, none = {{0, 0}, {0, 0}};
    struct sigaction action = {.sa_handler = ring};
    sigaction(SIGALRM, &action, NULL);
    report("no alarm yet", alarm(100000));
    printf("replaced: %d\n", alarm(0) > 0);
    report("set", setitimer(ITIMER_REAL, &timer, NULL));
    getitimer(ITIMER_REAL, &old);
    printf("interval %ld, left: %d\n", (long)old.it_interval.tv_usec, old.it_value.tv_usec > 0);
    /* Nothing is ready to run meanwhile. */
    report("pause", pause());
    printf("rung: %d\n", rung >= 1);
    /* The program does not give the processor up. */
    while (rung < 5)
        ;
    report("stop", setitimer(ITIMER_REAL, &none, &old));
    printf("interval %ld\n", (long)old.it_interval.tv_usec);
    timer.it_value.tv_usec = 1000000;
    report("a second of microseconds", setitimer(ITIMER_REAL, &timer, NULL));
    report("unknown timer", setitimer(99, &none, NULL));
    alarm(1);
    int before = rung;
    while (rung == before)
        pause();
    printf("rung after a second\n");
    action.sa_handler = SIG_DFL;
    sigaction(SIGALRM, &action, NULL);
    timer = (struct itimerval){{0, 0}, {0, 1000}};
    setitimer(ITIMER_REAL, &timer, NULL);
    fflush(stdout);
    for (;;)
        pause();
}
