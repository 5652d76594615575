/* Threads with and without floating point that take turns: each keeps its own registers, the ones that it has before
 * its first use included. */
#include "report.h"
#include <pthread.h>
#include <sched.h>
#include <stdint.h>

static void *add(void *start)
{
    volatile double step = 0.5;
    double sum = *(double *)start;
    for (int turn = 0; turn < 1000; turn++) {
        sum += step;
        if (turn % 10 == 0)
            sched_yield();
    }
    *(double *)start = sum;
    return NULL;
}

/* Keeps words in registers that only the switch of threads could change. */
static void *keep_words(void *result)
{
    uint64_t found[2] = {0, 0};
    const uint64_t words[2] = {0x0123456789abcdef, (uint64_t)result};
    long wrong = 0;
    for (int turn = 0; turn < 200; turn++) {
        __asm__ volatile("movdqu (%0), %%xmm9" : : "r"(words) : "xmm9", "memory");
        __asm__ volatile("mov $24, %%eax\n syscall" : : : "rax", "rcx", "r11", "memory");
        __asm__ volatile("movdqu %%xmm9, (%0)" : : "r"(found) : "memory");
        wrong += found[0] != words[0] || found[1] != words[1];
    }
    *(long *)result = wrong;
    return NULL;
}

static void *only_integers(void *count)
{
    for (int turn = 0; turn < 200; turn++) {
        ++*(volatile long *)count;
        __asm__ volatile("mov $24, %%eax\n syscall" : : : "rax", "rcx", "r11", "memory");
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[6];
    double sums[2] = {1, 1000};
    long words[2] = {-1, -1}, counts[2] = {0, 0};
    for (int at = 0; at < 2; at++) {
        pthread_create(&threads[at], NULL, add, &sums[at]);
        pthread_create(&threads[2 + at], NULL, keep_words, &words[at]);
        pthread_create(&threads[4 + at], NULL, only_integers, &counts[at]);
    }
    for (int at = 0; at < 6; at++)
        pthread_join(threads[at], NULL);
    printf("%.1f %.1f, %ld %ld, %ld %ld\n", sums[0], sums[1], words[0], words[1], counts[0], counts[1]);
    return 0;
}
