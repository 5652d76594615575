/* Pipes within one process: order, capacity, ends, errors, and the signal of a pipe without readers. */
#include "report.h"
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>

static void transfer(void)
{
    int ends[2];
    char buffer[64] = {0};
    struct stat status;
    report("pipe", pipe(ends));
    report("write", write(ends[1], "first", 5));
    report("write", write(ends[1], " second", 7));
    report("read a part", read(ends[0], buffer, 3));
    report("read the rest", read(ends[0], buffer + 3, 60));
    printf("[%s]\n", buffer);
    report("read nothing", read(ends[0], buffer, 0));
    report("read from the wrong end", read(ends[1], buffer, 1));
    report("write to the wrong end", write(ends[0], buffer, 1));
    report("seek", lseek(ends[0], 0, SEEK_CUR));
    report("pread", pread(ends[0], buffer, 1, 0));
    report("status", fstat(ends[0], &status));
    printf("is a pipe: %d\n", S_ISFIFO(status.st_mode));
    write(ends[1], "abcdef", 6);
    char left[4] = {0}, right[9] = {0};
    struct iovec parts[2] = {{left, 3}, {right, 8}};
    report("readv", readv(ends[0], parts, 2));
    printf("[%s][%s]\n", left, right);
    close(ends[1]);
    report("read after the end", read(ends[0], buffer, 1));
    close(ends[0]);
}

static void fill(void)
{
    int ends[2];
    static char block[4096], back[4096];
    report("pipe2", pipe2(ends, O_NONBLOCK | O_CLOEXEC));
    report("pipe2 with an unknown flag", pipe2(ends + 0, 1 << 30));
    report("read from an empty one", read(ends[0], block, 1));
    long total = 0, count;
    for (int round = 0; (count = write(ends[1], block, sizeof block)) > 0; round++) {
        total += count;
        memset(block, round + 1, sizeof block);
    }
    report("write to a full one", count);
    printf("capacity %ld\n", total);
    int wrong = 0;
    for (int round = 0; round < 16; round++) {
        read(ends[0], back, sizeof back);
        for (unsigned index = 0; index < sizeof back; index++)
            wrong += back[index] != (char)round;
    }
    printf("wrong bytes: %d\n", wrong);
    report("read from the empty one", read(ends[0], block, 1));
    close(ends[0]);
    close(ends[1]);
}

static volatile sig_atomic_t caught;

static void note(int signal)
{
    caught = signal;
}

static void break_it(void)
{
    int ends[2];
    pipe(ends);
    close(ends[0]);
    signal(SIGPIPE, note);
    report("write without readers", write(ends[1], "x", 1));
    printf("signal %d\n", caught);
    signal(SIGPIPE, SIG_IGN);
    report("write without readers", write(ends[1], "x", 1));
    close(ends[1]);
}

static void wrap_around(void)
{
    int ends[2];
    static unsigned char out[10007], in[10007];
    unsigned next_out = 0, next_in = 0, wrong = 0;
    pipe(ends);
    for (int round = 0; round < 200; round++) {
        unsigned length = 1 + (unsigned)round * 7919 % sizeof out;
        for (unsigned index = 0; index < length; index++)
            out[index] = (unsigned char)(next_out++ * 31);
        write(ends[1], out, length);
        for (unsigned got = 0; got < length;) {
            long count = read(ends[0], in, sizeof in);
            for (long index = 0; index < count; index++)
                wrong += in[index] != (unsigned char)(next_in++ * 31);
            got += count;
        }
    }
    printf("%u bytes, wrong: %u\n", next_in, wrong);
}

int main(void)
{
    transfer();
    fill();
    break_it();
    wrap_around();
    return 0;
}
