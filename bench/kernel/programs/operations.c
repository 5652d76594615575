/* The programs of the Synthesis paper (Massalin, Pu 1989, appendix A of the thesis), and system calls one by one: ticks
 * of the time stamp counter per operation, which are instructions where the machine counts them. A row each:
 * `row NAME TENTHS`, the median of the repetitions in tenths of a tick. As the first
 * process of a machine with Linux it mounts what it needs, and ends the machine. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define REPETITIONS 5

static char out[65536], in[65536];
static long wrong;

#define EXPECT(call, result)     \
    do {                         \
        if ((call) != (result))  \
            wrong++;             \
    } while (0)

static uint64_t ticks(void)
{
    unsigned low, high;
    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high) : : "memory");
    return (uint64_t)high << 32 | low;
}

static int compare(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

static void print_row(const char *name, uint64_t *sums, long count)
{
    qsort(sums, REPETITIONS, sizeof *sums, compare);
    uint64_t tenths = (sums[REPETITIONS / 2] * 10 + (uint64_t)count / 2) / (uint64_t)count;
    printf("row %s %llu\n", name, (unsigned long long)tenths);
    fflush(stdout);
}

#define MEASURE(name, count, ...)                          \
    do {                                                   \
        uint64_t sums[REPETITIONS];                        \
        for (int turn = 0; turn < REPETITIONS; turn++) {   \
            uint64_t start = ticks();                      \
            for (long at = 0; at < (count); at++) {        \
                __VA_ARGS__;                               \
            }                                              \
            sums[turn] = ticks() - start;                  \
        }                                                  \
        print_row(name, sums, count);                      \
    } while (0)

/* Hofstadter's sequence Q: the paper's program 1. */
static int sequence[50000];
static void compute(void)
{
    sequence[0] = sequence[1] = 1;
    for (int at = 2; at < 50000; at++)
        sequence[at] = sequence[at - sequence[at - 1]] + sequence[at - sequence[at - 2]];
}

static void streams(void)
{
    int ends[2];
    MEASURE("compute", 10, compute());
    EXPECT(pipe(ends), 0);
    MEASURE("pipe-1", 5000, EXPECT(write(ends[1], out, 1), 1); EXPECT(read(ends[0], in, 1), 1));
    MEASURE("pipe-1024", 2000, EXPECT(write(ends[1], out, 1024), 1024); EXPECT(read(ends[0], in, 1024), 1024));
    MEASURE("pipe-4096", 1000, EXPECT(write(ends[1], out, 4096), 4096); EXPECT(read(ends[0], in, 4096), 4096));
    close(ends[0]);
    close(ends[1]);
    int file = open(P_tmpdir "/operations", O_RDWR | O_CREAT | O_TRUNC, 0666);
    MEASURE("file-10x1024", 200, {
        lseek(file, 0, SEEK_SET);
        for (int part = 10; part--;)
            EXPECT(write(file, out, 1024), 1024);
        lseek(file, 0, SEEK_SET);
        for (int part = 10; part--;)
            EXPECT(read(file, in, 1024), 1024);
    });
    lseek(file, 0, SEEK_SET);
    MEASURE("file-read-1", 2000, EXPECT(read(file, in, 1), 1));
    MEASURE("lseek", 5000, lseek(file, 0, SEEK_SET));
    MEASURE("pread-1", 2000, EXPECT(pread(file, in, 1, 0), 1));
    close(file);
    wrong += memcmp(out, in, 1024) != 0;
}

static void descriptors(int is_init)
{
    const char *terminal = is_init ? "/dev/ttyS0" : "/dev/tty";
    MEASURE("open-close-null", 1000, { int opened = open("/dev/null", O_RDONLY); EXPECT(close(opened), 0); });
    MEASURE("open-close-tty", 1000, { int opened = open(terminal, O_RDONLY | O_NOCTTY); EXPECT(close(opened), 0); });
    MEASURE("open-close-file", 1000, { int opened = open(P_tmpdir "/operations", O_RDONLY); EXPECT(close(opened), 0); });
    int null = open("/dev/null", O_RDWR);
    MEASURE("read-null", 5000, EXPECT(read(null, in, 1), 0));
    MEASURE("write-null", 5000, EXPECT(write(null, in, 1), 1));
    MEASURE("dup-close", 1000, { int copy = dup(null); EXPECT(close(copy), 0); });
    MEASURE("pipe-close-close", 500, { int ends[2]; EXPECT(pipe(ends), 0); close(ends[0]); close(ends[1]); });
    MEASURE("bad-pointer", 1000, EXPECT(syscall(SYS_read, null, -8L, 8L), -1));
    close(null);
    int file = open(P_tmpdir "/operations", O_RDWR);
    MEASURE("bad-pointer-file", 1000, EXPECT(syscall(SYS_read, file, 16L, 8L), -1));
    close(file);
    MEASURE("bad-descriptor", 5000, EXPECT(read(file, in, 1), -1));
    MEASURE("getpid", 5000, syscall(SYS_getpid));
    MEASURE("clock-gettime", 2000, { struct timespec now; syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now); });
    MEASURE("yield-alone", 2000, sched_yield());
}

static int forth[2], back[2];
static void *answer(void *unused)
{
    char letter;
    while (read(forth[0], &letter, 1) == 1 && letter != 'q')
        write(back[1], &letter, 1);
    return unused;
}

static int word;
static volatile int ends_soon;
static void *answer_by_futex(void *unused)
{
    while (!ends_soon) {
        while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) != 1 && !ends_soon)
            syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, 0, 0, 0);
        __atomic_store_n(&word, 0, __ATOMIC_RELEASE);
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    }
    return unused;
}

static void *yield_always(void *unused)
{
    while (!ends_soon)
        sched_yield();
    return unused;
}

static void *nothing(void *argument)
{
    return argument;
}

static void threads(void)
{
    pthread_t thread;
    char letter = 'a';
    EXPECT(pipe(forth) | pipe(back), 0);
    pthread_create(&thread, 0, answer, 0);
    MEASURE("pipe-ping-pong", 1000, { EXPECT(write(forth[1], &letter, 1), 1); EXPECT(read(back[0], &letter, 1), 1); });
    write(forth[1], "q", 1);
    pthread_join(thread, 0);
    pthread_create(&thread, 0, yield_always, 0);
    MEASURE("yield-two", 1000, sched_yield());
    ends_soon = 1;
    pthread_join(thread, 0);
    ends_soon = 0;
    pthread_create(&thread, 0, answer_by_futex, 0);
    MEASURE("futex-ping-pong", 1000, {
        __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
        syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
        while (__atomic_load_n(&word, __ATOMIC_ACQUIRE) != 0)
            syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 1, 0, 0, 0);
    });
    ends_soon = 1;
    __atomic_store_n(&word, 1, __ATOMIC_RELEASE);
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, 0, 0, 0);
    pthread_join(thread, 0);
    MEASURE("pthread-create-join", 200, { pthread_t other; pthread_create(&other, 0, nothing, 0); pthread_join(other, 0); });
    struct itimerval later = {{0, 0}, {1000, 0}}, never = {{0, 0}, {0, 0}};
    MEASURE("set-alarm", 500, setitimer(ITIMER_REAL, &later, 0));
    setitimer(ITIMER_REAL, &never, 0);
}

static void mount_all(void)
{
    mkdir("/dev", 0755);
    mkdir("/tmp", 0755);
    mount("devtmpfs", "/dev", "devtmpfs", 0, 0);
    mount("tmpfs", "/tmp", "tmpfs", 0, 0);
    int console = open("/dev/console", O_RDWR);
    for (int number = 0; console >= 0 && number < 3; number++)
        dup2(console, number);
}

int main(void)
{
    int is_init = getpid() == 1;
    if (is_init)
        mount_all();
    for (unsigned at = 0; at < sizeof out; at++)
        out[at] = (char)(at * 7 + (at >> 8));
    streams();
    descriptors(is_init);
    threads();
    printf("wrong %ld\n", wrong);
    fflush(stdout);
    if (is_init) {
        sync();
        reboot(RB_POWER_OFF);
    }
    return wrong != 0;
}
