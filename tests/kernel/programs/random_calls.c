/* Makes random calls with random arguments, many of them bad, in two threads. The seed is the argument. What they
 * return does not matter: the kernel has to survive. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#define CALLS 20000

static uint64_t state;
static unsigned char *memory;

/* Steele, Lea, Flood 2014 (SplitMix64). */
static uint64_t next(void)
{
    uint64_t word = state += 0x9e3779b97f4a7c15;
    word = (word ^ word >> 30) * 0xbf58476d1ce4e5b9;
    word = (word ^ word >> 27) * 0x94d049bb133111eb;
    return word ^ word >> 31;
}

/* Those that only end the program or wait. */
static int is_excluded(long number)
{
    switch (number) {
    case SYS_exit:
    case SYS_exit_group:
    case SYS_pause:
    case SYS_rt_sigreturn:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_alarm:
    case SYS_setitimer:
    case SYS_kill:
    case SYS_tkill:
    case SYS_tgkill:
    case SYS_clone:
    case SYS_arch_prctl:
    case SYS_set_tid_address:
    case SYS_pipe:
        return 1;
    default:
        return 0;
    }
}

static uint64_t argument(void)
{
    static const char *paths[] = {"/dev/null", "file", "..", "folder/../file", "/dev/zero", "folder", "", "/dev"};
    switch (next() % 12) {
    case 0:
        return next() % 16;
    case 1:
        return next() % 5000;
    case 2:
        return 0;
    case 3:
        return (uint64_t)-(int64_t)(next() % 200);
    case 4:
        return (uint64_t)1 << next() % 64;
    case 5:
        return next();
    case 6:
        return (uint64_t)memory + 3 * 4096 - next() % 64;
    case 7:
        return (uint64_t)paths[next() % 8];
    case 8:
        return 0x7fffffffefff + next() % 5000;
    case 9:
        return ((uint64_t)memory & ~0xfffull) + next() % 8 * 4096;
    default:
        return (uint64_t)memory + next() % 8192;
    }
}

static void *make_calls(void *unused)
{
    (void)unused;
    for (int round = 0; round < CALLS; round++) {
        long number = (long)(next() % 340);
        if (is_excluded(number))
            continue;
        uint64_t a = argument(), b = argument(), c = argument(), d = argument(), e = argument(), f = argument();
        /* What the program itself lives in stays. */
        int is_of_memory = number == SYS_mmap || number == SYS_munmap || number == SYS_mprotect || number == SYS_madvise;
        if (is_of_memory && number == SYS_mmap)
            d &= ~(uint64_t)(MAP_FIXED);
        else if (is_of_memory)
            a = (uint64_t)memory + next() % 4 * 4096 + (next() % 8 == 0), b %= 3 * 4096;
        if (number == SYS_brk)
            a = 0;
        /* A wait that no other thread ends would be a deadlock. */
        if (number == SYS_futex && ((b & 0x7f) == 0 || (b & 0x7f) == 9))
            b = 1;
        if (number == SYS_pipe2)
            b = O_NONBLOCK;
        if (number == SYS_fcntl && b == F_SETFL)
            continue;
        if (next() % 2)
            a %= 10;
        if (number == SYS_rt_sigaction || number == SYS_rt_sigprocmask)
            continue;
        syscall(number, a, b, c, d, e, f);
        if (round % 500 == 0) {
            mprotect(memory, 3 * 4096, PROT_READ | PROT_WRITE);
            mmap(memory, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
        }
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t thread;
    struct utsname system;
    /* Never on a system that matters. */
    if (uname(&system) != 0 || strcmp(system.nodename, "quaject") != 0)
        return 1;
    signal(SIGPIPE, SIG_IGN);
    int nothing = open("/dev/null", O_RDWR);
    dup2(nothing, 1);
    dup2(nothing, 2);
    state = argc > 1 ? strtoull(argv[1], NULL, 10) : 1;
    memory = mmap(NULL, 4 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(memory + 3 * 4096, 4096);
    pthread_create(&thread, NULL, make_calls, NULL);
    make_calls(NULL);
    pthread_join(thread, NULL);
    return 77;
}
