/* Runs composed pipes: runner CODE TABLES TESTS OUT. Everything is mapped where the tests say; source, target and keys
   lie between pages that cannot be accessed. A test is a record of 2176 bytes:
     0  entry, source, target, keys: addresses; length; in place of the last two: 1 if bytes outside of the target were
        written, and what the pipe returned
    64  the frame (832)   896  data in, written bytes out (640)   1536  keys (640) */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 65536, FRAME = 64, FRAME_BYTES = 832, DATA = FRAME + FRAME_BYTES, KEYS = DATA + 640, RECORD = KEYS + 640 };

static void *map(uintptr_t at, size_t length, int guarded) {
    void *where = (void *)(at - (guarded ? PAGE : 0));
    int protection = guarded ? PROT_NONE : PROT_READ | PROT_WRITE | PROT_EXEC;
    size_t all = length + (guarded ? 2 * PAGE : 0);
    if (mmap(where, all, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) != where) exit(3);
    if (guarded && mprotect((void *)at, length, PROT_READ | PROT_WRITE)) exit(4);
    return (void *)at;
}

static unsigned char *read_all(const char *path, long *length) {
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(2); }
    fseek(file, 0, SEEK_END);
    *length = ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*length + 1);
    if (fread(bytes, 1, *length, file) != (size_t)*length) { perror(path); exit(2); }
    fclose(file);
    return bytes;
}

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    long length, tables_length, tests_length;
    unsigned char *code = read_all(argv[1], &length), *tables = read_all(argv[2], &tables_length);
    unsigned char *tests = read_all(argv[3], &tests_length);
    /* Above the heap, which Linux begins anywhere in the GiB after the program. */
    void *code_at = map(0x48000000, length, 0);
    memcpy(code_at, code, length);
    __builtin___clear_cache((char *)code_at, (char *)code_at + length);
    memcpy(map(0x4c000000, tables_length, 0), tables, tables_length);
    unsigned char *frame = map(0x50000000, PAGE, 1);
    map(0x58000000, PAGE, 1);
    unsigned char *target_page = map(0x60000000, PAGE, 1);
    map(0x68000000, PAGE, 1);
    for (long test = 0; test < tests_length / RECORD; test++) {
        unsigned char *record = tests + RECORD * test;
        uint64_t words[7];
        memcpy(words, record, sizeof words);
        unsigned char *source = (void *)(uintptr_t)words[1], *target = (void *)(uintptr_t)words[2];
        unsigned char *keys = (void *)(uintptr_t)words[3];
        size_t bytes = (size_t)words[4];
        memset(target_page, 0x5c, PAGE);
        memcpy(frame, record + FRAME, FRAME_BYTES);
        memcpy(source, record + DATA, bytes);
        memcpy(keys, record + KEYS, bytes);
        if (getenv("TRACE")) fprintf(stderr, "test %ld\n", test);
        size_t (*pipe)(void *, void *, void *, size_t, uint32_t) = (size_t (*)(void *, void *, void *, size_t, uint32_t))(uintptr_t)words[0];
        uint64_t returned = pipe(frame, source, target, bytes, UINT32_MAX);
        memcpy(record + FRAME, frame, FRAME_BYTES);
        memcpy(record + DATA, target, bytes);
        memset(target, 0x5c, bytes);
        words[5] = 0, words[6] = returned;
        for (long at = 0; at < PAGE; at++) words[5] |= target_page[at] != 0x5c;
        memcpy(record, words, sizeof words);
    }
    FILE *out = fopen(argv[4], "wb");
    if (!out || fwrite(tests, 1, tests_length, out) != (size_t)tests_length || fclose(out)) return 5;
    return 0;
}
