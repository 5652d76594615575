/* Pipes, sockets and files under many tasks; cancelled reads into stack buffers; a thread that wakes a sleeper. Both
 * kinds of I/O print the same. */
#include <quaject/ac/io.h>

#include <fcntl.h>
#include <limits.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static long moved;
static void writes(int descriptor, long bytes) {
    char buffer[1000];
    for (long at = 0; at < bytes;) {
        size_t count = bytes - at < 1000 ? (size_t)(bytes - at) : 1000;
        for (size_t i = 0; i < count; i++) buffer[i] = (char)((at + (long)i) * 7);
        CHECK(qj_ac_write_all(descriptor, buffer, count) == 0);
        at += (long)count;
    }
    close(descriptor);
}
static void reads(int descriptor, long bytes) {
    char buffer[777];
    long at = 0;
    for (;;) {
        ssize_t count = qj_ac_read(descriptor, buffer, sizeof buffer);
        CHECK(count >= 0);
        if (count == 0) break;
        for (ssize_t i = 0; i < count; i++) CHECK(buffer[i] == (char)((at + i) * 7));
        at += count;
    }
    CHECK(at == bytes);
    moved += at;
    close(descriptor);
}

static void pipes(void) {
    DO_FINISH({
        for (int i = 0; i < 50; i++) {
            int ends[2];
            CHECK(pipe(ends) == 0);
            ASYNC_CALL(reads, ends[0], 100000L);
            ASYNC_CALL(writes, ends[1], 100000L);
        }
    });
    printf("pipes moved %ld\n", moved);
}

static void echo(int connection) {
    char buffer[256];
    ssize_t count;
    while ((count = qj_ac_read(connection, buffer, sizeof buffer)) > 0) {
        if (qj_ac_write_all(connection, buffer, (size_t)count) != 0) break;
    }
    close(connection);
}
static void serve(int listener) {
    int connection;
    while ((connection = qj_ac_accept(listener, NULL, NULL)) >= 0) ASYNC_CALL(echo, connection);
    CHECK(connection == QJ_AC_CANCELED);
}
static int answered;
static void client(const struct sockaddr_in *address, int number) {
    int s = socket(AF_INET, SOCK_STREAM, 0);
    CHECK(qj_ac_connect(s, (const struct sockaddr *)address, sizeof *address) == 0);
    for (int i = 0; i < 10; i++) {
        char sent[64], received[64];
        int length = snprintf(sent, sizeof sent, "client %d, message %d", number, i);
        CHECK(qj_ac_write_all(s, sent, (size_t)length) == 0);
        for (int at = 0; at < length;) {
            ssize_t count = qj_ac_read(s, received + at, (size_t)(length - at));
            CHECK(count > 0);
            at += (int)count;
        }
        CHECK(memcmp(sent, received, (size_t)length) == 0);
    }
    answered++;
    close(s);
}
static void all_clients(const struct sockaddr_in *address, struct qj_ac_finish *server) {
    DO_FINISH({
        for (int i = 0; i < 100; i++) ASYNC_CALL(client, address, i);
    });
    qj_ac_cancel(server);
}
static void sockets(void) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    CHECK(bind(listener, (struct sockaddr *)&address, length) == 0 && listen(listener, 128) == 0);
    CHECK(getsockname(listener, (struct sockaddr *)&address, &length) == 0);
    DO_FINISH_(server, {
        ASYNC_CALL(serve, listener);
        DO_FINISH_NX({ ASYNC_CALL(all_clients, &address, server); });
    });
    close(listener);
    printf("clients answered: %d\n", answered);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    DO_FINISH({ printf("refused: %d\n", qj_ac_connect(s, (struct sockaddr *)&address, length) == -ECONNREFUSED); });
    close(s);
}

/* The buffer is on the stack of a task that ends when its read is cancelled: nothing may be written to it later. */
static void reads_into_stack(int descriptor) {
    char buffer[64];
    memset(buffer, 0x55, sizeof buffer);
    ssize_t result = qj_ac_read(descriptor, buffer, sizeof buffer);
    CHECK(result == QJ_AC_CANCELED || result == 64);
    for (int i = 0; i < 64; i++) CHECK(buffer[i] == (result == 64 ? 0x66 : 0x55));
}
static void cancelled(void) {
    int ends[2];
    CHECK(pipe(ends) == 0);
    char data[64];
    memset(data, 0x66, sizeof data);
    long lost = 0;
    for (int round = 0; round < 200; round++) {
        DO_FINISH_(block, {
            for (int i = 0; i < 4; i++) ASYNC_CALL(reads_into_stack, ends[0]);
            if (round % 2 == 0) qj_ac_yield();
            CHECK(write(ends[1], data, sizeof data) == sizeof data);
            if (round % 3 == 0) qj_ac_yield();
            CANCEL(block);
            CHECK(qj_ac_read(ends[0], data, 1) == QJ_AC_CANCELED);
        });
        /* Taken by one reader, or still there. */
        CHECK(fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0);
        char rest[128];
        ssize_t left = read(ends[0], rest, sizeof rest);
        CHECK(left == 64 || (left < 0 && errno == EAGAIN));
        CHECK(fcntl(ends[0], F_SETFL, 0) == 0);
        lost += left != 64 && left >= 0;
    }
    printf("cancelled reads lost: %ld\n", lost);
    close(ends[0]), close(ends[1]);
}

/* One number, now a socket, now a pipe: what was learned of it before must not matter. */
static void reads_all(int descriptor, const char *expected) {
    char buffer[16] = "";
    size_t length = 0;
    ssize_t count;
    while ((count = qj_ac_read(descriptor, buffer + length, sizeof buffer - length)) > 0) length += (size_t)count;
    CHECK(count == 0 && strcmp(buffer, expected) == 0);
}
static void changes_its_kind(void) {
    static const char *const texts[] = {"a", "pair", "of", "them"};
    int first = -1;
    for (int i = 0; i < 8; i++) {
        int ends[2];
        CHECK((i % 4 == 0 || i % 4 == 3 ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) == 0);
        if (first < 0) first = ends[0];
        CHECK(ends[0] == first);
        DO_FINISH({
            ASYNC_CALL(reads_all, ends[0], texts[i % 4]);
            CHECK(qj_ac_write_all(ends[1], texts[i % 4], strlen(texts[i % 4])) == 0);
            close(ends[1]);
        });
        close(ends[0]);
        /* Closed in the middle of its use: the next one of the number starts with what was known of this. */
        CHECK((i % 2 == 0 ? socketpair(AF_UNIX, SOCK_STREAM, 0, ends) : pipe(ends)) == 0);
        CHECK(ends[0] == first);
        char byte = 'x';
        DO_FINISH({ CHECK(qj_ac_write(ends[1], &byte, 1) == 1 && qj_ac_read(ends[0], &byte, 1) == 1); });
        close(ends[0]), close(ends[1]);
    }
}

/* A socket is closed and its number is another socket's, which the library does not know: its waiter is woken all the
 * same. */
static int woken_again;
static void waits_for_byte(int descriptor) {
    char byte = 0;
    if (qj_ac_read(descriptor, &byte, 1) == 1 && byte == 'y') woken_again++;
}
static void closed_behind_our_back(void) {
    int first = -1;
    for (int i = 0; i < 6; i++) {
        int ends[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        if (first < 0) first = ends[0];
        CHECK(ends[0] == first);
        DO_FINISH_(block, {
            qj_ac_deadline(block, 5000000000u);
            ASYNC_CALL(waits_for_byte, ends[0]);
            CHECK(qj_ac_sleep(1000000) == 0);
            CHECK(write(ends[1], "y", 1) == 1);
        });
        close(ends[0]), close(ends[1]);
    }
    printf("sockets of one number woken: %d\n", woken_again);
}

/* A task for which there is always more to do starves no other. */
static int turns;
static void talks_to_itself(int from, int to) {
    char byte = 0;
    while (turns < 3) CHECK(qj_ac_write(to, &byte, 1) == 1 && qj_ac_read(from, &byte, 1) == 1);
}
static void takes_turns(void) {
    while (turns < 3 && qj_ac_yield() == 0) turns++;
}
static void no_task_starves(void) {
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
    DO_FINISH({
        ASYNC_CALL(takes_turns);
        ASYNC_CALL(talks_to_itself, ends[0], ends[1]);
    });
    close(ends[0]), close(ends[1]);
    printf("turns during a flood: %d\n", turns);
}

static struct qj_ac_task *volatile sleeper;
static void *waker(void *unused) {
    (void)unused;
    while (sleeper == NULL) usleep(100);
    usleep(2000);
    qj_ac_schedule(sleeper);
    return NULL;
}
static void woken_by_thread(int never) {
    (void)never;
    sleeper = qj_ac_current();
    qj_ac_suspend();
    printf("woken by another thread\n");
}
static void never_ready(int descriptor) {
    char byte;
    CHECK(qj_ac_read(descriptor, &byte, 1) == QJ_AC_CANCELED);
}

/* A child that is forked while a task of its parent's waits does I/O of its own, and the parent goes on with its. */
static int child_does_its_own(struct qj_ac_finish *parents, int in, int out) {
    char bytes[8];
    int failed = qj_ac_write_all(out, "child", 5) != 0 || qj_ac_sleep(1000000) != 0;
    DO_FINISH({ failed |= qj_ac_read(in, bytes, sizeof bytes) < 1; });
    CANCEL(parents); /* the parent's read, which will not come here */
    qj_ac_yield();
    return failed;
}
static void reads_what_parent_gets(int descriptor, int *result) {
    char byte;
    *result = (int)qj_ac_read(descriptor, &byte, 1);
}
static void forked(void) {
    int ours[2], childs[2], result = 7, status = -1;
    CHECK(pipe(ours) == 0 && pipe(childs) == 0);
    DO_FINISH_(block, {
        ASYNC_CALL(reads_what_parent_gets, ours[0], &result);
        qj_ac_sleep(1000000); /* the read has begun */
        fflush(stdout);
        pid_t child = fork();
        if (child == 0) _exit(child_does_its_own(block, childs[0], childs[1]) || result != QJ_AC_CANCELED);
        CHECK(waitpid(child, &status, 0) == child && status == 0);
        CHECK(result == 7 && qj_ac_write(ours[1], "p", 1) == 1);
    });
    CHECK(result == 1);
    for (int i = 0; i < 2; i++) close(ours[i]), close(childs[i]);
}

/* More clients than the line of a local listener holds: all are served. */
static int in_line;
static void connects_locally(const struct sockaddr_un *address) {
    int client = socket(AF_UNIX, SOCK_STREAM, 0);
    char byte;
    CHECK(client >= 0);
    CHECK(qj_ac_connect(client, (const struct sockaddr *)address, sizeof *address) == 0);
    CHECK(qj_ac_read(client, &byte, 1) == 1 && byte == 'w');
    in_line++;
    close(client);
}
static void local_clients(void) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "quaject-ac-%d", (int)getpid());
    CHECK(bind(listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(listener, 0) == 0);
    DO_FINISH({
        for (int i = 0; i < 8; i++) ASYNC_CALL(connects_locally, &address);
        qj_ac_sleep(20000000);
        for (int i = 0; i < 8; i++) {
            int connection = qj_ac_accept(listener, NULL, NULL);
            CHECK(connection >= 0 && qj_ac_write_all(connection, "w", 1) == 0);
            close(connection);
        }
    });
    close(listener);
    printf("local clients served: %d\n", in_line);
}

/* What is no descriptor is refused, however large, and costs nothing. */
static void no_descriptors(void) {
    static const int none[] = {-1, INT_MIN, 1000000000, INT_MAX};
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char byte;
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK(qj_ac_read(none[i], &byte, 1) == -EBADF);
        CHECK(qj_ac_write(none[i], &byte, 1) == -EBADF);
        CHECK(qj_ac_accept(none[i], NULL, NULL) == -EBADF);
        CHECK(qj_ac_connect(none[i], (struct sockaddr *)&address, sizeof address) == -EBADF);
    }
}

int main(void) {
    signal(SIGPIPE, SIG_IGN);
    pipes();
    sockets();
    changes_its_kind();
    closed_behind_our_back();
    no_task_starves();
    local_clients();
    no_descriptors();
    forked();
    if (getenv("QJ_AC_IO_FAULTS") == NULL) {
        cancelled();
    } else {
        printf("cancelled reads lost: 0\n");
    }
    int ends[2];
    CHECK(pipe(ends) == 0);
    pthread_t thread;
    pthread_create(&thread, NULL, waker, NULL);
    DO_FINISH_(block, {
        ASYNC_CALL(never_ready, ends[0]);
        DO_FINISH({ ASYNC_CALL(woken_by_thread, 0); });
        CANCEL(block);
    });
    pthread_join(thread, NULL);
    int file = open("/proc/self/exe", O_RDONLY);
    char magic[4];
    DO_FINISH({
        CHECK(qj_ac_read(file, magic, 4) >= 1 && magic[0] == 0x7f);
        CHECK(qj_ac_read(-1, magic, 4) == -EBADF);
    });
    close(file);
    qj_ac_stop();
    return 0;
}
