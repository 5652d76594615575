/* Addresses that a program must not use, in calls that read and that write memory: the same errors and counts as on
 * Linux, and objects that keep their contents. */
#include "report.h"
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#define PAGE 4096

static unsigned char *hole, *readable, *edge;

/* Raw calls: libraries look at some addresses themselves. */
static long raw(long number, long a, long b, long c, long d)
{
    return syscall(number, a, b, c, d);
}

static void each(const char *name, long number, long first, long size, long fourth)
{
    const struct {
        const char *name;
        uintptr_t address;
    } places[] = {
        {"null", 0},
        {"hole", (uintptr_t)hole},
        {"read-only", (uintptr_t)readable},
        {"kernel", 0xffff800000000000},
        {"end of memory", UINTPTR_MAX - 3},
        {"not canonical", 0x0000900000000000},
    };
    for (unsigned index = 0; index < sizeof places / sizeof *places; index++) {
        char what[64];
        snprintf(what, sizeof what, "%s, %s", name, places[index].name);
        report(what, raw(number, first, (long)places[index].address, size, fourth));
    }
}

static void files(void)
{
    int file = open("pointers", O_RDWR | O_CREAT, 0600);
    char contents[PAGE];
    memset(contents, 'c', sizeof contents);
    write(file, contents, 100);
    each("pread", SYS_pread64, file, 50, 0);
    each("pwrite", SYS_pwrite64, file, 50, 0);
    struct stat status;
    fstat(file, &status);
    printf("size %ld\n", (long)status.st_size);
    /* 60 bytes are in the page, the rest is in the hole. */
    report("pwrite across the end of memory", pwrite(file, edge - 60, 100, 0));
    report("pread across the end of memory", pread(file, edge - 60, 100, 0));
    report("write nothing from nowhere", write(file, NULL, 0));
    report("read nothing to nowhere", read(file, hole, 0));
    report("length below zero", raw(SYS_read, file, (long)contents, -1, 0));
    report("length beyond everything", raw(SYS_write, file, (long)contents, (long)(SIZE_MAX / 2 + 2), 0));
    report("open with a bad path", raw(SYS_open, (long)hole, O_RDONLY, 0, 0));
    report("open with a path that ends at the hole", raw(SYS_open, (long)edge - 1, O_RDONLY, 0, 0));
    report("stat to a hole", raw(SYS_stat, (long)"pointers", (long)hole, 0, 0));
    report("stat to a constant", raw(SYS_stat, (long)"pointers", (long)readable, 0, 0));
}

static void pipes(void)
{
    int ends[2];
    char buffer[64] = {0};
    pipe(ends);
    each("write to a pipe", SYS_write, ends[1], 8, 0);
    write(ends[1], "0123456789", 10);
    each("read from a pipe", SYS_read, ends[0], 8, 0);
    report("what is left", read(ends[0], buffer, sizeof buffer));
    printf("[%s]\n", buffer);
    report("pipe to a hole", raw(SYS_pipe, (long)hole, 0, 0, 0));
    report("the next descriptor", dup(0));
    report("write to a pipe across the end of memory", write(ends[1], edge - 4, 8));
    write(ends[1], "0123456789", 10);
    report("read from a pipe across the end of memory", read(ends[0], edge - 4, 8));
    report("what is left", read(ends[0], buffer, sizeof buffer));
    struct iovec parts[2] = {{hole, 4}, {buffer, 4}};
    report("writev with a hole", writev(ends[1], parts, 2));
    report("readv of a bad list", raw(SYS_readv, ends[0], (long)hole, 1, 0));
}

static void others(void)
{
    report("clock to a hole", raw(SYS_clock_gettime, CLOCK_MONOTONIC, (long)hole, 0, 0));
    report("sleep from a hole", raw(SYS_nanosleep, (long)hole, 0, 0, 0));
    report("uname to a hole", raw(SYS_uname, (long)hole, 0, 0, 0));
    report("uname across the end", raw(SYS_uname, (long)edge - 20, 0, 0, 0));
    report("random to a hole", raw(SYS_getrandom, (long)hole, 8, 0, 0));
    report("random across the end", raw(SYS_getrandom, (long)edge - 5, 8, 0, 0));
    report("working directory to a hole", raw(SYS_getcwd, (long)hole, 100, 0, 0));
    report("futex at a hole", raw(SYS_futex, (long)hole, 0, 0, 0));
    report("futex that is not aligned", raw(SYS_futex, (long)&hole + 1, 0, 0, 0));
    report("action from a hole", raw(SYS_rt_sigaction, 10, (long)hole, 0, 8));
    report("mask from a hole", raw(SYS_rt_sigprocmask, 0, (long)hole, 0, 8));
}

int main(void)
{
    unsigned char *pages = mmap(NULL, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    edge = pages + PAGE;
    hole = pages + PAGE;
    readable = pages + 2 * PAGE;
    memset(pages, 'p', 3 * PAGE);
    munmap(hole, PAGE);
    mprotect(readable, PAGE, PROT_READ);
    files();
    pipes();
    others();
    return 0;
}
