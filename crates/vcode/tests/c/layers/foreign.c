/* foreign MACHINE ADDRESS LOCAL_BYTES CODE FRAMES: writes the function for a machine to the file CODE, to be executed
   at an address, and its unwind information to FRAMES. Prints where the function begins in the file. */
#include "function.h"
#include <stdio.h>
#include <stdlib.h>

static void save(const char *path, const void *bytes, size_t length) {
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(bytes, 1, length, file) != length || fclose(file)) {
        perror(path);
        exit(1);
    }
}

int main(int argc, char **argv) {
    qjl_function *f;
    struct qjl_code code;
    const unsigned char *frames;
    size_t length;
    if (argc != 6) return 2;
    if (write_function(atoi(argv[1]), (size_t)atol(argv[3]), &f, &code)) {
        fprintf(stderr, "%s\n", qjl_message(f));
        return 1;
    }
    save(argv[4], code.bytes, code.length);
    if (qjl_call_frames(f, strtoull(argv[2], NULL, 0) + code.entry, &frames, &length)) return 1;
    save(argv[5], frames, length);
    printf("%zu\n", code.entry);
    qjl_free(f);
    return 0;
}
