/* Threads that block in a read or a write of a pipe while others use, close and duplicate its ends. */
#include "report.h"
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>

static int ends[2];
static char bytes[200000];

static void *read_one(void *result)
{
    char byte = 0;
    *(long *)result = read(ends[0], &byte, 1) * 1000 + byte;
    return NULL;
}

static void *write_all(void *result)
{
    *(long *)result = write(ends[1], bytes, sizeof bytes);
    return NULL;
}

/* Lets the other threads come to where they block. */
static void let_block(void)
{
    for (int turn = 0; turn < 50; turn++)
        sched_yield();
}

int main(void)
{
    pthread_t threads[4];
    long results[4];
    pipe(ends);
    pthread_create(&threads[0], NULL, read_one, &results[0]);
    let_block();
    report("write to a waiting reader", write(ends[1], "a", 1));
    pthread_join(threads[0], NULL);
    report("read", results[0]);
    for (int at = 0; at < 4; at++)
        pthread_create(&threads[at], NULL, read_one, &results[at]);
    let_block();
    report("write to four", write(ends[1], "bbbb", 4));
    for (int at = 0; at < 4; at++) {
        pthread_join(threads[at], NULL);
        report("read", results[at]);
    }
    report("write again, with no reader that waits", write(ends[1], "c", 1));
    report("read", (read_one(&results[0]), results[0]));

    /* The end of the pipe that is read loses its number while a thread waits there. */
    pthread_create(&threads[0], NULL, read_one, &results[0]);
    let_block();
    report("close", close(ends[0]));
    report("write", write(ends[1], "d", 1));
    pthread_join(threads[0], NULL);
    report("read", results[0]);
    close(ends[1]);

    /* The last writer ends while a thread waits for it. */
    pipe(ends);
    pthread_create(&threads[0], NULL, read_one, &results[0]);
    let_block();
    report("close", close(ends[1]));
    pthread_join(threads[0], NULL);
    report("read", results[0]);
    close(ends[0]);

    /* More than the pipe holds. */
    pipe(ends);
    pthread_create(&threads[0], NULL, write_all, &results[0]);
    let_block();
    static char back[sizeof bytes];
    long total = 0, count;
    while (total < (long)sizeof bytes && (count = read(ends[0], back + total, 777)) > 0)
        total += count;
    pthread_join(threads[0], NULL);
    report("written", results[0]);
    report("read", total);
    report("differences", memcmp(bytes, back, sizeof bytes));
    return 0;
}
