/* Streams of quaject/ring_stream.h between two processes: every length around the edges of slots, both orders of
 * coming, rings from one slot on, ends by word, by closing and by death. Argument: a name that is not in use. */
#include <quaject/ring_stream.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>

#define CHECK(condition)                                                                  \
    do {                                                                                  \
        if (!(condition)) {                                                               \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);               \
            exit(1);                                                                      \
        }                                                                                 \
    } while (0)

static const size_t lengths[] = {0, 1, 2, 47, 48, 49, 103, 104, 105, 1784, 1785, 5000};
enum { LENGTHS = sizeof lengths / sizeof *lengths, ROUNDS = 20 };
enum how { BY_WORD, BY_CLOSING, BY_DEATH };

static unsigned char byte_of(size_t length, size_t at) { return (unsigned char)(length * 7 + at); }

static void writer(const char *path, unsigned capacity_log2, enum how how) {
    struct qj_stream stream;
    unsigned char bytes[5000];
    CHECK(qj_stream_open(&stream, path, QJ_STREAM_WRITER, capacity_log2) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LENGTHS; i++) {
            for (size_t at = 0; at < lengths[i]; at++) bytes[at] = byte_of(lengths[i], at);
            CHECK(qj_stream_write(&stream, bytes, lengths[i]) == 0);
        }
    }
    if (how == BY_DEATH) kill(getpid(), SIGKILL);
    if (how == BY_WORD) CHECK(qj_stream_end(&stream) == 0);
    qj_stream_close(&stream);
}

static void reader(const char *path, unsigned capacity_log2) {
    struct qj_stream stream;
    unsigned char bytes[5000];
    CHECK(qj_stream_open(&stream, path, QJ_STREAM_READER, capacity_log2) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LENGTHS; i++) {
            ssize_t length = -EAGAIN;
            /* One half by waiting in it, one half by poll() outside. */
            while (round % 2 == 0 && (length = qj_stream_try_read(&stream, bytes, sizeof bytes)) == -EAGAIN) {
                struct pollfd asked;
                asked.fd = stream.line;
                asked.events = POLLIN;
                CHECK(poll(&asked, 1, 20000) == 1);
            }
            if (round % 2 == 1) length = qj_stream_read(&stream, bytes, sizeof bytes);
            CHECK(length == (ssize_t)lengths[i]);
            for (size_t at = 0; at < lengths[i]; at++) CHECK(bytes[at] == byte_of(lengths[i], at));
        }
    }
    CHECK(qj_stream_read(&stream, bytes, sizeof bytes) == -EPIPE);
    CHECK(qj_stream_read(&stream, bytes, sizeof bytes) == -EPIPE);
    qj_stream_close(&stream);
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    const char *path = arguments[1];
    struct qj_stream stream;
    for (unsigned capacity_log2 = 0; capacity_log2 <= 6; capacity_log2 += 3) {
        for (int how = BY_WORD; how <= BY_DEATH; how++) {
            for (int reader_first = 0; reader_first <= 1; reader_first++) {
                pid_t child = fork();
                CHECK(child >= 0);
                if (child == 0) {
                    if (reader_first) usleep(20000);
                    writer(path, capacity_log2, (enum how)how);
                    return 0;
                }
                if (!reader_first) usleep(20000);
                reader(path, capacity_log2);
                int status;
                CHECK(waitpid(child, &status, 0) == child);
                CHECK(how == BY_DEATH ? WIFSIGNALED(status) : WIFEXITED(status) && WEXITSTATUS(status) == 0);
                CHECK(access(path, F_OK) != 0);
            }
        }
    }
    /* A reader that has closed. */
    pid_t child = fork();
    if (child == 0) {
        if (qj_stream_open(&stream, path, QJ_STREAM_READER, 4) == 0) kill(getpid(), SIGKILL);
        return 1;
    }
    CHECK(qj_stream_open(&stream, path, QJ_STREAM_WRITER, 4) == 0);
    int result;
    while ((result = qj_stream_write(&stream, "x", 1)) == 0) {}
    CHECK(result == -EPIPE);
    qj_stream_close(&stream);
    waitpid(child, NULL, 0);
    /* What cannot be. */
    CHECK(qj_stream_open(&stream, "/no/such/folder", QJ_STREAM_WRITER, 4) == -ENOENT);
    CHECK(qj_stream_open(&stream, path, 3, 4) == -EINVAL);
    CHECK(qj_stream_open(&stream, path, QJ_STREAM_WRITER, 19) == -EINVAL);
    int file = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    CHECK(file >= 0 && write(file, "no ring", 7) == 7 && close(file) == 0);
    CHECK(qj_stream_open(&stream, path, QJ_STREAM_WRITER, 4) == -EPROTO);
    CHECK(unlink(path) == 0);
    return 0;
}
