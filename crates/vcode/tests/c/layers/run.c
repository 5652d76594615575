/* run CODE ENTRY ADDRESS: executes the function in the file CODE on this machine, at an address. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

static long add(long a, long b, long c, long d, long e, long f, long g, long h, long i, long last) {
    return a + b + c + d + e + f + g + h + i + last;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    const uintptr_t at = strtoul(argv[3], NULL, 0);
    char *code = mmap((void *)at, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FILE *file = fopen(argv[1], "rb");
    if ((uintptr_t)code != at || !file) return 2;
    const size_t length = fread(code, 1, 1 << 16, file);
    fclose(file);
    __builtin___clear_cache(code, code + length);
    long (*function)(void *, long, double) =
        (long (*)(void *, long, double))(uintptr_t)(at + strtoul(argv[2], NULL, 0));
    for (long x = 0; x < 20; x++) {
        const long found = function((void *)(uintptr_t)add, x, (double)x + 1.5), expected = x + (x + 1) + 100 + x + 1;
        if (found == expected) continue;
        printf("%ld: %ld instead of %ld\n", x, found, expected);
        return 1;
    }
    puts("ok");
    return 0;
}
