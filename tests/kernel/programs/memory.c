/* Mappings: protections, holes, the break, and what a fault reports. */
#include "report.h"
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096

static sigjmp_buf recovery;
static volatile int fault_code;
static volatile uintptr_t fault_address;

static void on_fault(int signal, siginfo_t *information, void *context)
{
    (void)context;
    fault_code = information->si_code;
    fault_address = (uintptr_t)information->si_addr;
    siglongjmp(recovery, signal);
}

static void touch(const char *what, volatile char *address, int writes)
{
    int signal = sigsetjmp(recovery, 1);
    if (signal) {
        printf("%s: signal %d, code %d, address %s\n", what, signal, fault_code,
               fault_address == (uintptr_t)address ? "as used" : "another");
        return;
    }
    if (writes)
        *address = 'w';
    else
        (void)*address;
    printf("%s: no fault\n", what);
}

static void *map(void *address, size_t length, int protection, int flags)
{
    return mmap(address, length, protection, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
}

static void protect(void)
{
    char *pages = map(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, 0);
    touch("fresh memory", pages, 0);
    printf("zero: %d\n", pages[100]);
    pages[2 * PAGE] = 'k';
    report("mprotect to nothing", mprotect(pages + PAGE, 2 * PAGE, PROT_NONE));
    touch("read what is forbidden", pages + 2 * PAGE, 0);
    report("write from what is forbidden", write(1, pages + 2 * PAGE, 1));
    report("mprotect to reading", mprotect(pages + PAGE, 2 * PAGE, PROT_READ));
    printf("kept: %c\n", pages[2 * PAGE]);
    touch("write what is constant", pages + 2 * PAGE, 1);
    report("mprotect back", mprotect(pages + PAGE, 2 * PAGE, PROT_READ | PROT_WRITE));
    touch("write", pages + 2 * PAGE, 1);
    report("unmap the middle", munmap(pages + PAGE, PAGE));
    touch("read the hole", pages + PAGE, 0);
    report("mprotect over the hole", mprotect(pages, 4 * PAGE, PROT_READ));
    report("mprotect of an odd address", mprotect(pages + 1, PAGE, PROT_READ));
    report("unmap the hole again", munmap(pages + PAGE, PAGE));
    report("unmap an odd address", munmap(pages + 1, PAGE));
    report("unmap nothing", munmap(pages, 0));
    report("advice: not needed", madvise(pages + 2 * PAGE, PAGE, MADV_DONTNEED));
    printf("zero again: %d\n", pages[2 * PAGE]);
    report("advice over the hole", madvise(pages, 4 * PAGE, MADV_DONTNEED));
    report("unknown advice", madvise(pages, PAGE, 12345));
}

static void place(void)
{
    char *first = map(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, 0);
    first[3 * PAGE] = 'x';
    char *second = map(first + 2 * PAGE, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_FIXED);
    printf("fixed at its place: %d, new: %d\n", second == first + 2 * PAGE, first[3 * PAGE]);
    report("fixed over what is there", map(first, PAGE, PROT_READ, MAP_FIXED_NOREPLACE) == MAP_FAILED ? -1 : 0);
    report("fixed at an odd address", map(first + 1, PAGE, PROT_READ, MAP_FIXED) == MAP_FAILED ? -1 : 0);
    report("no bytes", map(NULL, 0, PROT_READ, 0) == MAP_FAILED ? -1 : 0);
    report("too many bytes", map(NULL, SIZE_MAX / 2, PROT_READ, 0) == MAP_FAILED ? -1 : 0);
    report("neither shared nor private", mmap(NULL, PAGE, PROT_READ, MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? -1 : 0);
    report("a closed descriptor", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, 99, 0) == MAP_FAILED ? -1 : 0);
    int file = open("mapped", O_RDWR | O_CREAT, 0600);
    write(file, "contents of a file", 18);
    char *mapped = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0);
    printf("[%.18s] %d\n", mapped, mapped[18]);
    mapped[0] = 'C';
    char byte;
    pread(file, &byte, 1, 0);
    printf("the file keeps its [%c]\n", byte);
    report("an odd offset", mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, file, 1) == MAP_FAILED ? -1 : 0);
}

static void grow(void)
{
    /* Raw calls: musl does not move the break. */
    char *start = (char *)syscall(SYS_brk, 0);
    char *end = (char *)syscall(SYS_brk, start + 10 * PAGE);
    printf("grown by %ld\n", (long)(end - start));
    end[-10] = 'b';
    printf("zero below: %d\n", end[-PAGE]);
    printf("not below the start: %d\n", (char *)syscall(SYS_brk, PAGE) == end);
    printf("shrunk: %d\n", (char *)syscall(SYS_brk, start) == start);
    unsigned wrong = 0;
    for (int round = 0; round < 200; round++) {
        size_t size = (size_t)(round * 9973 % 300000 + 1);
        unsigned char *block = malloc(size);
        memset(block, round, size);
        for (size_t index = 0; index < size; index += 997)
            wrong += block[index] != (unsigned char)round;
        if (round % 3)
            free(block);
    }
    printf("wrong bytes: %u\n", wrong);
}

int main(void)
{
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    touch("null", NULL, 0);
    touch("the kernel's memory", (char *)0xffff800000000000, 0);
    protect();
    place();
    grow();
    return 0;
}
