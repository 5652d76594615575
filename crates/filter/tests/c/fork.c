/* Classifiers across fork, in a program with threads. Without sanitizers, whose allocators do not survive that. */
#include "support.h"
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_bool are_forked;

static void *inserts(void *classifier) {
    while (!atomic_load(&are_forked)) {
        uint32_t number = inserted(classifier, to_port(4000), 0);
        CHECK(qj_classifier_remove(classifier, number) == QJ_FILTER_OK);
    }
    return NULL;
}

/* Workers that are forked by a program with threads change their copies of a classifier independently. */
int main(void) {
    enum { WORKERS = 4, ROUNDS = 20, OWN = 30 };
    struct qj_classifier *classifier = qj_classifier_new();
    struct qj_reader *reader = qj_reader_new(classifier);
    uint32_t web = inserted(classifier, to_port(80), 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, inserts, classifier) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        pid_t workers[WORKERS];
        for (int worker = 0; worker < WORKERS; worker++) {
            workers[worker] = fork();
            if (workers[worker] != 0) continue;
            if (worker % 2 == 1 && geteuid() == 0) CHECK(setuid(65534) == 0);
            uint32_t numbers[OWN];
            for (uint32_t own = 0; own < OWN; own++) {
                uint16_t port = (uint16_t)(1000 * (worker + 1) + own);
                struct qj_filter *filter = to_port(port);
                qj_filter_range(filter, 20 + own % 3, 1, 0, 255);
                numbers[own] = inserted(classifier, filter, 1);
                CHECK(classified(reader, 6, port, LENGTH) == numbers[own]);
                CHECK(classified(reader, 6, 80, LENGTH) == web);
                if (own % 2 == 1) CHECK(qj_classifier_remove(classifier, numbers[own - 1]) == QJ_FILTER_OK);
            }
            _exit(0);
        }
        for (uint32_t port = 1000; port < 5000; port += 7) {
            if (port != 4000) CHECK(classified(reader, 6, (uint16_t)port, LENGTH) == -1);
        }
        for (int worker = 0; worker < WORKERS; worker++) {
            int status;
            CHECK(workers[worker] > 0 && waitpid(workers[worker], &status, 0) > 0 && status == 0);
        }
        CHECK(classified(reader, 6, 80, LENGTH) == web);
    }
    atomic_store(&are_forked, true);
    CHECK(pthread_join(thread, NULL) == 0);
    qj_reader_free(reader);
    qj_classifier_free(classifier);
    puts("ok");
    return 0;
}
