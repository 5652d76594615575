/* One of the library's requests for memory or a descriptor fails: the argument 2-th, or none. What argument 1 names
 * must then wait, return the documented error and work when it is asked again, or do without; in the end everything has
 * been given back. Linked with --wrap for each of the functions below. */
#include <quaject/ac.h>
#include <quaject/ac/io.h>
#include <quaject/ac/ipc.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static long requests, failing = -1, blocks, mapped;
static int fails(void) {
    if (requests++ != failing) return 0;
    errno = ENOMEM;
    return 1;
}

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_aligned_alloc(size_t alignment, size_t bytes);
void __real_free(void *block);
void *__real_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset);
int __real_munmap(void *at, size_t bytes);
int __real_memfd_create(const char *name, unsigned flags);
int __real_eventfd(unsigned first, int flags);
int __real_epoll_create1(int flags);

static void *counted(void *block) { return blocks += block != NULL, block; }
void *__wrap_malloc(size_t bytes) { return fails() ? NULL : counted(__real_malloc(bytes)); }
void *__wrap_calloc(size_t count, size_t bytes) { return fails() ? NULL : counted(__real_calloc(count, bytes)); }
void *__wrap_aligned_alloc(size_t a, size_t bytes) { return fails() ? NULL : counted(__real_aligned_alloc(a, bytes)); }
/* Always another address, and rubbish in the old one: a pointer that is kept is found out. */
void *__wrap_realloc(void *old, size_t bytes) {
    if (fails()) return NULL;
    void *block = __real_malloc(bytes);
    if (old == NULL) return counted(block);
    size_t before = malloc_usable_size(old);
    memcpy(block, old, before < bytes ? before : bytes);
    memset(old, 0xdb, before);
    __real_free(old);
    return block;
}
void __wrap_free(void *block) { blocks -= block != NULL, __real_free(block); }
void *__wrap_mmap(void *at, size_t bytes, int protection, int flags, int file, off_t offset) {
    if (fails()) return MAP_FAILED;
    void *memory = __real_mmap(at, bytes, protection, flags, file, offset);
    if (memory != MAP_FAILED) mapped += (long)bytes;
    return memory;
}
int __wrap_munmap(void *at, size_t bytes) { return mapped -= (long)bytes, __real_munmap(at, bytes); }
int __wrap_memfd_create(const char *name, unsigned flags) { return fails() ? -1 : __real_memfd_create(name, flags); }
int __wrap_eventfd(unsigned first, int flags) { return fails() ? -1 : __real_eventfd(first, flags); }
int __wrap_epoll_create1(int flags) { return fails() ? -1 : __real_epoll_create1(flags); }

static void wrong(const char *what) {
    fprintf(stderr, "wrong: %s\n", what);
    exit(1);
}
static int refused;
/* The error is the documented one, and the second time it works. */
#define AGAIN(call)                                                                                                    \
    ({                                                                                                                 \
        int result_ = (call);                                                                                          \
        if (result_ < 0) {                                                                                             \
            if (result_ != -ENOMEM || refused++ != 0) wrong(#call);                                                    \
            result_ = (call);                                                                                          \
            if (result_ < 0) wrong(#call " again");                                                                    \
        }                                                                                                              \
        result_;                                                                                                       \
    })

/* ---- channels: a caller and its server, both here ---- */

static struct qj_ac_channel caller, server;
static int answered;
static void calls(void *a) {
    uint64_t sent = (uint64_t)(uintptr_t)a;
    struct qj_ac_message message = {{sent}};
    if (qj_ac_call(&caller, &message, &message) != 0 || message.words[0] != sent + 1) wrong("a call");
    answered++;
}
static void channel(void) {
    int memory = AGAIN(qj_ac_channel_memory(4));
    AGAIN(qj_ac_channel_open(&caller, memory, 4, 0));
    AGAIN(qj_ac_channel_open(&server, memory, 4, 1));
    DO_FINISH({
        for (uintptr_t i = 0; i < 40; i++) {
            struct qj_ac_message message;
            uint32_t cookie;
            AGAIN(qj_ac_try_async(calls, (void *)i));
            if (qj_ac_poll_recv(&server, &message, &cookie) != 0) wrong("a request");
            message.words[0]++;
            if (qj_ac_reply(&server, cookie, &message) != 0) wrong("a reply");
            if (qj_ac_poll_recv(&caller, &message, &cookie) != -EWOULDBLOCK) wrong("a response");
        }
    });
    if (answered != 40) wrong("a call without an answer");
    qj_ac_channel_close(&caller);
    qj_ac_channel_close(&server);
    close(memory);
}

/* ---- input and output: descriptors so far apart that the tables by descriptor grow while tasks wait ---- */

static int ends[4][2], heard;
static void reads(void *a) {
    int *pair = a;
    char text[8] = "";
    if (AGAIN(qj_ac_read(pair[0], text, sizeof text)) != 3 || memcmp(text, "abc", 3) != 0) wrong("a read");
    heard++;
}
static void io(void) {
    for (int i = 0; i < 4; i++) {
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends[i]) != 0) wrong("no sockets");
        int far = dup2(ends[i][0], 20 + 190 * i);
        if (far < 0) wrong("no far descriptor");
        close(ends[i][0]);
        ends[i][0] = far;
    }
    DO_FINISH({
        for (int i = 0; i < 4; i++) AGAIN(qj_ac_try_async(reads, ends[i]));
        qj_ac_yield();
        for (int i = 0; i < 4; i++) AGAIN(qj_ac_write_all(ends[i][1], "abc", 3));
    });
    if (heard != 4) wrong("a read that did not end");
    for (int i = 0; i < 4; i++) close(ends[i][0]), close(ends[i][1]);
}

/* ---- tasks and their numbers ---- */

static int woken;
static void saves(void *a) {
    qj_ac_yield_and_save_nodispatch(*(uint32_t *)a);
    woken++;
}
static void numbers(void) {
    uint32_t all[40];
    DO_FINISH({
        for (int i = 0; i < 40; i++) {
            all[i] = qj_ac_try_id_create();
            if (all[i] == 0 && (refused++ != 0 || (all[i] = qj_ac_try_id_create()) == 0)) wrong("no number");
            AGAIN(qj_ac_try_async(saves, &all[i]));
        }
        for (int i = 40; i-- > 0;) {
            if (qj_ac_yield_to_id(all[i]) != 0 || qj_ac_id_remove(all[i]) != 0) wrong("a number");
        }
    });
    if (woken != 40) wrong("a task that was not woken");
}

int main(int count, char **arguments) {
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    if (count != 3) return 2;
    failing = atol(arguments[2]);
    if (strcmp(arguments[1], "channel") == 0) channel();
    if (strcmp(arguments[1], "io") == 0) io();
    if (strcmp(arguments[1], "numbers") == 0) numbers();
    qj_ac_stop();
    if (blocks != 0) wrong("a block was not given back");
    if (mapped != 0) wrong("a mapping was not given back");
    printf("%ld requests, %d refused\n", requests, refused);
    return 0;
}
