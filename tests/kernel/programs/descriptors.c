/* Reads, writes and seeks on /dev/null, files and pipes, of every size and at every address: what the kernel has
 * routines for. The same results as on Linux, and nothing lost. */
#include "report.h"
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define PAGE 4096

static unsigned char *pages, *hole, *readable, *edge;

static long raw(long number, long a, long b, long c)
{
    return syscall(number, a, b, c);
}

static const long lengths[] = {0, 1, 2, 7, 8, 9, 100, PAGE, 0x7ffff000, 0x7ffff001, INT64_MAX, INT64_MIN, -1};

static void refill(int file);

/* Every address with every length; `reset` makes the state the same again. */
static void each(const char *name, long number, int file, void (*reset)(int))
{
    const struct {
        const char *name;
        uintptr_t address;
    } places[] = {
        {"null", 0},
        {"page", (uintptr_t)pages},
        {"hole", (uintptr_t)hole},
        {"read-only", (uintptr_t)readable},
        {"edge - 1", (uintptr_t)edge - 1},
        {"edge - 60", (uintptr_t)edge - 60},
        {"end of programs", 0x7ffffffff000},
        {"last page", 0x7ffffffff800},
        {"not canonical", 0x800000000000},
        {"kernel", 0xffff800000000000},
        {"end of memory", UINTPTR_MAX - 3},
    };
    for (unsigned place = 0; place < sizeof places / sizeof *places; place++) {
        for (unsigned at = 0; at < sizeof lengths / sizeof *lengths; at++) {
            /* Where Linux divides a write of several pages that faults depends on what is in the pipe. */
            if (reset == refill && number == SYS_write && lengths[at] > PAGE)
                continue;
            char what[96];
            reset(file);
            snprintf(what, sizeof what, "%s %s %ld", name, places[place].name, lengths[at]);
            report(what, raw(number, file, (long)places[place].address, lengths[at]));
            report("position", lseek(file, 0, SEEK_CUR));
        }
    }
}

static void keep(int file)
{
    (void)file;
}

static void rewind_file(int file)
{
    lseek(file, 10, SEEK_SET);
}

static int ends[2];

/* Empties the pipe, and puts some bytes into it. */
static void refill(int file)
{
    char bytes[PAGE];
    long count;
    (void)file;
    while ((count = read(ends[0], bytes, sizeof bytes)) > 0) {
        unsigned sum = 0;
        for (long at = 0; at < count; at++)
            sum = sum * 31 + (unsigned char)bytes[at];
        printf("had %ld bytes, sum %u\n", count, sum);
    }
    write(ends[1], "0123456789", 10);
}

static void null_device(void)
{
    int null = open("/dev/null", O_RDWR);
    each("read null", SYS_read, null, keep);
    each("write null", SYS_write, null, keep);
    for (int whence = -1; whence < 7; whence++)
        report("seek null", lseek(null, 100, whence));
    close(null);
    report("read closed", read(null, pages, 1));
    report("write closed", write(null, pages, 1));
    report("seek closed", lseek(null, 0, SEEK_SET));
    null = open("/dev/null", O_RDONLY);
    report("write to what is read", write(null, pages, 1));
    close(null);
    null = open("/dev/null", O_WRONLY);
    report("read from what is written", read(null, pages, 1));
    close(null);
    for (int number = 1023; number < 1030; number += 3)
        report("no descriptor", read(number, pages, 1));
    report("no descriptor", read(-1, pages, 1));
    report("upper half", raw(SYS_read, (1L << 32) + 900, (long)pages, 1));
}

static void files(void)
{
    struct stat status;
    int file = open("descriptors", O_RDWR | O_CREAT | O_TRUNC, 0600);
    memset(pages, 'x', PAGE);
    write(file, pages, 200);
    each("read file", SYS_read, file, rewind_file);
    for (unsigned at = 0; at < 8; at++) {
        rewind_file(file);
        report("write", write(file, pages, (size_t)lengths[at]));
        report("position", lseek(file, 0, SEEK_CUR));
    }
    report("write from the hole", raw(SYS_write, file, (long)hole, 10));
    report("write from a kernel address", raw(SYS_write, file, -4096, 10));
    report("size", (fstat(file, &status), (long)status.st_size));
    report("seek far", lseek(file, 10000, SEEK_SET));
    report("read after the end", read(file, pages, 10));
    report("write after the end", write(file, "end", 3));
    report("size", (fstat(file, &status), (long)status.st_size));
    report("seek to the gap", lseek(file, 9999, SEEK_SET));
    report("read the gap", read(file, pages, 10));
    printf("[%d %.3s]\n", pages[0], pages + 1);
    const long offsets[] = {0, 1, -1, 20000, INT64_MAX, INT64_MIN};
    for (int whence = -1; whence < 3; whence++)
        for (unsigned at = 0; at < 4; at++)
            report("seek", lseek(file, offsets[at], whence));
    report("seek below", lseek(file, offsets[5], SEEK_SET));
    int copy = dup(file);
    lseek(file, 5, SEEK_SET);
    report("position of the copy", lseek(copy, 0, SEEK_CUR));
    report("read by the copy", read(copy, pages, 3));
    report("position of the first", lseek(file, 0, SEEK_CUR));
    close(file);
    report("read by the copy", read(copy, pages, 3));
    report("append from now on", fcntl(copy, F_SETFL, O_APPEND));
    lseek(copy, 0, SEEK_SET);
    report("write", write(copy, "appended", 8));
    report("position", lseek(copy, 0, SEEK_CUR));
    report("as before", fcntl(copy, F_SETFL, 0));
    lseek(copy, 0, SEEK_SET);
    report("write", write(copy, "begin", 5));
    report("position", lseek(copy, 0, SEEK_CUR));
    report("cut", ftruncate(copy, 3));
    report("read", read(copy, pages, 3));
    lseek(copy, 0, SEEK_SET);
    report("read", read(copy, pages, 10));
    unlink("descriptors");
    report("read what has no name", pread(copy, pages, 10, 0));
    close(copy);
}

static void pipes(void)
{
    pipe2(ends, O_NONBLOCK);
    each("read pipe", SYS_read, ends[0], refill);
    refill(0);
    each("write pipe", SYS_write, ends[1], refill);
    int copy = dup(ends[1]);
    close(ends[1]);
    report("write by the copy", write(copy, "ab", 2));
    close(copy);
    refill(0);
    report("read after the last writer", read(ends[0], pages, 1));
    close(ends[0]);
}

int main(void)
{
    /* At the same place everywhere, far from the end of what programs may have. */
    pages = mmap((void *)0x100000000000, 3 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    edge = hole = pages + PAGE;
    readable = pages + 2 * PAGE;
    memset(pages, 'p', 3 * PAGE);
    munmap(hole, PAGE);
    mprotect(readable, PAGE, PROT_READ);
    null_device();
    files();
    pipes();
    printf("one thread: %d\n", getpid() == syscall(SYS_gettid));
    return 0;
}
