/* Clocks and sleeping: relations that hold at any speed. */
#include "report.h"
#include <stdint.h>
#include <sys/time.h>
#include <time.h>

static int64_t now(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

int main(void)
{
    struct timespec pause = {0, 30000000}, bad = {0, 1000000000}, until;
    struct timeval time;
    int64_t start = now(CLOCK_MONOTONIC);
    report("sleep", nanosleep(&pause, NULL));
    printf("at least 30 ms: %d\n", now(CLOCK_MONOTONIC) - start >= 30000000);
    report("sleep for a bad time", nanosleep(&bad, NULL));
    int64_t before = now(CLOCK_MONOTONIC);
    int backwards = 0;
    for (int round = 0; round < 1000; round++) {
        int64_t after = now(CLOCK_MONOTONIC);
        backwards += after < before;
        before = after;
    }
    printf("backwards: %d\n", backwards);
    until = (struct timespec){0, 1};
    errno = clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    report("sleep until a moment that has passed", errno ? -1 : 0);
    errno = clock_nanosleep(12345, 0, &until, NULL);
    report("sleep by an unknown clock", errno ? -1 : 0);
    report("unknown clock", clock_gettime(12345, &until));
    gettimeofday(&time, NULL);
    int64_t difference = now(CLOCK_REALTIME) / 1000000000 - time.tv_sec;
    printf("two ways to ask for the date agree: %d\n", difference == 0 || difference == 1);
    printf("the date is after 2020: %d\n", now(CLOCK_REALTIME) / 1000000000 > 1577836800);
    return 0;
}
