/* Threads: creation, mutexes, conditions, thread-local data, preemption, and a pipe between two of them. */
#include "report.h"
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdlib.h>
#include <time.h>

#define THREADS 8

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
static long counter;
static int turn;
static __thread long own;

static void *count(void *argument)
{
    for (int round = 0; round < 1000; round++) {
        pthread_mutex_lock(&mutex);
        long seen = counter;
        if (round % 100 == 0)
            sched_yield();
        counter = seen + 1;
        pthread_mutex_unlock(&mutex);
        own++;
    }
    return (void *)(own + (long)argument);
}

static void *take_turns(void *argument)
{
    int number = (int)(long)argument;
    for (int round = 0; round < 20; round++) {
        pthread_mutex_lock(&mutex);
        while (turn % THREADS != number)
            pthread_cond_wait(&condition, &mutex);
        turn++;
        pthread_cond_broadcast(&condition);
        pthread_mutex_unlock(&mutex);
    }
    return NULL;
}

/* Neither gives the processor up: only the end of a quantum lets the other run. */
static volatile int ping, pong;

static void *spin(void *argument)
{
    double product = 1.0;
    for (int round = 1; round <= 3; round++) {
        while (ping < round)
            product *= 1.0000001;
        pong = round;
    }
    return product > 0 ? argument : NULL;
}

static void *echo(void *argument)
{
    int *ends = argument;
    char byte;
    while (read(ends[0], &byte, 1) == 1) {
        byte++;
        write(ends[3], &byte, 1);
    }
    return NULL;
}

static void use_pipe(void)
{
    int ends[4];
    pthread_t thread;
    char byte = 'a';
    pipe(ends);
    pipe(ends + 2);
    pthread_create(&thread, NULL, echo, ends);
    for (int round = 0; round < 20; round++) {
        write(ends[1], &byte, 1);
        read(ends[2], &byte, 1);
    }
    close(ends[1]);
    pthread_join(thread, NULL);
    printf("after 20 rounds: %c\n", byte);
}

static void *fill_pipe(void *argument)
{
    static char block[100000];
    return (void *)write(*(int *)argument, block, sizeof block);
}

static void block_on_room(void)
{
    int ends[2];
    pthread_t thread;
    static char block[3000];
    long total = 0, count;
    void *written;
    pipe(ends);
    pthread_create(&thread, NULL, fill_pipe, ends + 1);
    while (total < 100000 && (count = read(ends[0], block, sizeof block)) > 0)
        total += count;
    pthread_join(thread, &written);
    printf("read %ld, written %ld\n", total, (long)written);
}

static void time_out(void)
{
    struct timespec until;
    sem_t semaphore;
    sem_init(&semaphore, 0, 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += 30000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    report("wait until a moment", sem_timedwait(&semaphore, &until));
    pthread_mutex_lock(&mutex);
    int error = pthread_cond_timedwait(&condition, &mutex, &until);
    pthread_mutex_unlock(&mutex);
    printf("condition: %s\n", strerror(error));
}

static void *end_quickly(void *argument)
{
    return argument;
}

int main(void)
{
    pthread_t threads[THREADS];
    long sum = 0;
    void *result;
    for (long number = 0; number < THREADS; number++)
        pthread_create(&threads[number], NULL, count, (void *)number);
    for (int number = 0; number < THREADS; number++) {
        pthread_join(threads[number], &result);
        sum += (long)result;
    }
    printf("counter %ld, sum %ld, own %ld\n", counter, sum, own);

    for (long number = 0; number < THREADS; number++)
        pthread_create(&threads[number], NULL, take_turns, (void *)number);
    for (int number = 0; number < THREADS; number++)
        pthread_join(threads[number], NULL);
    printf("turns %d\n", turn);

    double quotient = 1.0;
    pthread_create(&threads[0], NULL, spin, NULL);
    for (int round = 1; round <= 3; round++) {
        ping = round;
        while (pong < round)
            quotient /= 1.0000001;
    }
    pthread_join(threads[0], NULL);
    printf("spun: %d\n", quotient < 1.0);

    use_pipe();
    block_on_room();
    time_out();
    for (int round = 0; round < 300; round++) {
        pthread_create(&threads[0], NULL, end_quickly, (void *)(long)round);
        pthread_join(threads[0], &result);
        if ((long)result != round)
            printf("thread %d returned %ld\n", round, (long)result);
    }
    printf("done\n");
    return 0;
}
