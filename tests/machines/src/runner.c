/* Runs a batch of generated functions: runner CODE TESTS OUT. The code is mapped where the batch says. Each test is
   32 words of 64 bits: word 0 the address of the function, word 1 how it returns (0 long, 1 float, 2 double), words 8
   up the memory it works on. What it returns goes to word 2; the words are written back. A test that takes too long, or
   that a signal ends, is reported by its number. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_SECONDS = 20 };
static volatile long current;

/* Only what may be done at any time, with any stack pointer. */
static void report_signal(int number) {
    char text[64], *at = text + sizeof text;
    const char *what = number == SIGALRM ? "takes too long" : number == SIGILL ? "is no instruction" : "touches memory that it must not";
    long rest = current;
    int written = write(2, "test ", 5);
    do *--at = (char)('0' + rest % 10); while (rest /= 10);
    written = write(2, at, text + sizeof text - at);
    written = write(2, ": it ", 5);
    written = write(2, what, strlen(what));
    written = write(2, "\n", 1);
    (void)written;
    _exit(3);
}

static void watch(void) {
    static const int signals[] = {SIGALRM, SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP};
    static char stack[1 << 16];
    stack_t there = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_handler = report_signal, .sa_flags = SA_ONSTACK};
    sigaltstack(&there, 0);
    for (unsigned index = 0; index < sizeof signals / sizeof *signals; index++) sigaction(signals[index], &action, 0);
}

static void *read_all(const char *path, long *length) {
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(2); }
    fseek(file, 0, SEEK_END);
    *length = ftell(file);
    rewind(file);
    /* Aligned to the widest vector. */
    void *bytes = aligned_alloc(64, (*length + 64) & ~63L);
    if (fread(bytes, 1, *length, file) != (size_t)*length) { perror(path); exit(2); }
    fclose(file);
    return bytes;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    long code_length, test_length;
    void *code = read_all(argv[1], &code_length);
    uint64_t *tests = read_all(argv[2], &test_length);
    /* Above the heap, which Linux begins anywhere in the GiB after the program. */
    void *at = (void *)0x60000000;
    void *map = mmap(at, code_length + 1, PROT_READ | PROT_WRITE | PROT_EXEC,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (map != at) { perror("mmap"); return 2; }
    memcpy(map, code, code_length);
    __builtin___clear_cache((char *)map, (char *)map + code_length);
    watch();
    for (long test = 0; test < test_length / 256; test++) {
        uint64_t *words = tests + 32 * test;
        current = test;
        alarm(MAX_SECONDS);
        void *function = (void *)(uintptr_t)words[0];
        if (words[1] == 1) {
            float value = ((float (*)(void *))function)(words + 8);
            memcpy(words + 2, &value, sizeof value);
        } else if (words[1] == 2) {
            double value = ((double (*)(void *))function)(words + 8);
            memcpy(words + 2, &value, sizeof value);
        } else {
            long value = ((long (*)(void *))function)(words + 8);
            memcpy(words + 2, &value, sizeof value);
        }
    }
    FILE *out = fopen(argv[3], "wb");
    if (!out || fwrite(tests, 1, test_length, out) != (size_t)test_length || fclose(out)) { perror(argv[3]); return 2; }
    return 0;
}
