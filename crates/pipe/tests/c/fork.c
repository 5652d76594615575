/* Pipes across fork, in a program with threads. Without sanitizers, whose allocators do not survive that. */
#include <pthread.h>
#include <quaject/pipe.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition, qj_pipe_message());                     \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

static struct qj_pipe *pipe_of(const char *text) {
    struct qj_pipe *pipe = NULL;
    CHECK(qj_pipe_of_text(text, NULL, &pipe) == QJ_PIPE_OK);
    return pipe;
}

/* Runs a pipe many times; every run has the results of the first. */
static void same_results(struct qj_pipe *pipe) {
    struct qj_runner *runner = qj_runner_new(pipe);
    unsigned char source[500], target[500], first[500];
    for (size_t at = 0; at < sizeof source; at++) source[at] = (unsigned char)(at * 7);
    for (int round = 0; round < 200; round++) {
        CHECK(qj_runner_run(runner, source, target, sizeof source, NULL, NULL) == QJ_PIPE_OK);
        if (round == 0) memcpy(first, target, sizeof first);
        CHECK(memcmp(target, first, sizeof first) == 0);
    }
    qj_runner_free(runner);
}

static atomic_bool are_forked;

static void *composes(void *nothing) {
    while (!atomic_load(&are_forked)) qj_pipe_free(pipe_of("copy | swap32 | xor 0x1234"));
    return nothing;
}

/* Workers that are forked by a program with threads compose, run and free pipes of their own, with fewer rights, and
 * run one that was composed before. */
int main(void) {
    static const char *const texts[] = {"copy | checksum", "copy | crc32c", "copy | swap32 | count", "copy | xor 0x55"};
    enum { WORKERS = 4, ROUNDS = 20 };
    struct qj_pipe *inherited = pipe_of("copy | swap32");
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, composes, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        pid_t workers[WORKERS];
        for (int worker = 0; worker < WORKERS; worker++) {
            workers[worker] = fork();
            if (workers[worker] != 0) continue;
            if (worker % 2 == 1 && geteuid() == 0) CHECK(setuid(65534) == 0);
            for (int text = 0; text < 4; text++) {
                struct qj_pipe *own = pipe_of(texts[(text + worker) % 4]);
                same_results(own);
                same_results(inherited);
                if (text % 2 == 0) qj_pipe_free(own);
            }
            _exit(0);
        }
        same_results(inherited);
        for (int worker = 0; worker < WORKERS; worker++) {
            int status;
            CHECK(workers[worker] > 0 && waitpid(workers[worker], &status, 0) > 0 && status == 0);
        }
    }
    atomic_store(&are_forked, true);
    CHECK(pthread_join(thread, NULL) == 0);
    qj_pipe_free(inherited);
    puts("ok");
    return 0;
}
