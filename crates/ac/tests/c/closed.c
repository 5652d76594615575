/* Descriptors that are closed while tasks wait for them: each wait ends with -EBADF, and the next file of the same
 * number is not touched. */
#include <quaject/ac/io.h>

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static int ended;
static void reads(int descriptor) {
    char byte;
    CHECK(qj_ac_read(descriptor, &byte, 1) == -EBADF);
    ended++;
}
static void writes_too_much(int descriptor) {
    static const char block[1 << 16];
    int result;
    while ((result = qj_ac_write_all(descriptor, block, sizeof block)) == 0) continue;
    CHECK(result == -EBADF);
    ended++;
}
static void accepts(int listener) {
    CHECK(qj_ac_accept(listener, NULL, NULL) == -EBADF);
    ended++;
}
static void reads_a_byte(int descriptor) {
    char byte = 0;
    CHECK(qj_ac_read(descriptor, &byte, 1) == 1 && byte == 'n');
    ended++;
}
static int listener_on(struct sockaddr_in *address) {
    socklen_t length = sizeof *address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(bind(listener, (struct sockaddr *)address, length) == 0 && listen(listener, 5) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)address, &length) == 0);
    return listener;
}

/* `after_ms`: the waits are in progress; or some of them are not yet handed to the kernel. */
static void close_all(uint64_t after_ms) {
    int ends[2], full[2], pair[2], next[2];
    struct sockaddr_in address = {.sin_family = AF_INET};
    CHECK(pipe(ends) == 0 && pipe(full) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    int listener = listener_on(&address);
    ended = 0;
    DO_FINISH({
        ASYNC_CALL(reads, ends[0]);
        ASYNC_CALL(reads, ends[0]);
        ASYNC_CALL(writes_too_much, full[1]);
        ASYNC_CALL(reads, pair[0]);
        ASYNC_CALL(writes_too_much, pair[0]);
        ASYNC_CALL(accepts, listener);
        ASYNC_CALL(accepts, listener);
        if (after_ms != 0) qj_ac_sleep(after_ms * 1000000);
        CHECK(qj_ac_close(ends[0]) == 0);
        CHECK(qj_ac_close(full[1]) == 0);
        CHECK(qj_ac_close(pair[0]) == 0);
        CHECK(qj_ac_close(listener) == 0);
        /* The port is free at once. */
        listener = listener_on(&address);
        CHECK(pipe(next) == 0);
        ASYNC_CALL(reads_a_byte, next[0]);
        CHECK(qj_ac_write_all(next[1], "n", 1) == 0);
    });
    CHECK(ended == 8);
    CHECK(qj_ac_close(ends[1]) == 0 && qj_ac_close(full[0]) == 0 && qj_ac_close(pair[1]) == 0);
    CHECK(qj_ac_close(next[0]) == 0 && qj_ac_close(next[1]) == 0 && qj_ac_close(listener) == 0);
    CHECK(qj_ac_close(listener) == -EBADF && qj_ac_close(-1) == -EBADF && qj_ac_close(1 << 30) == -EBADF);
}

static void canceled_first(void) {
    int ends[2];
    char byte;
    CHECK(pipe(ends) == 0);
    DO_FINISH_(block, {
        CANCEL(block);
        CHECK(qj_ac_read(ends[0], &byte, 1) == QJ_AC_CANCELED);
    });
    CHECK(qj_ac_close(ends[0]) == 0 && qj_ac_close(ends[1]) == 0);
}

int main(void) {
    for (int i = 0; i < 20; i++) close_all((uint64_t)i % 3);
    canceled_first();
    printf("every wait has ended\n");
    qj_ac_stop();
    return 0;
}
