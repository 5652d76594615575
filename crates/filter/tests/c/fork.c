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

/* A reader that another thread has pinned at the fork is not pinned in the child: numbers of removed filters are given
 * again there, as they are not in the parent. The forking thread's own reader stays pinned. */
static struct qj_classifier *pinned_classifier;
static atomic_int stage;
static void *pins(void *reader) {
    qj_reader_pin(reader);
    CHECK(classified(reader, 6, 80, LENGTH) == 0);
    atomic_store(&stage, 1);
    while (atomic_load(&stage) == 1) usleep(1000);
    qj_reader_unpin(reader);
    return NULL;
}
/* How many numbers are given for a filter that is inserted and removed again and again. */
static uint32_t numbers_given(void) {
    uint32_t largest = 0;
    for (int i = 0; i < 10; i++) {
        uint32_t number = inserted(pinned_classifier, to_port(4001), 0);
        if (number > largest) largest = number;
        CHECK(qj_classifier_remove(pinned_classifier, number) == QJ_FILTER_OK);
    }
    return largest;
}
static void child_reclaims(void) {
    pinned_classifier = qj_classifier_new();
    CHECK(inserted(pinned_classifier, to_port(80), 0) == 0);
    struct qj_reader *others = qj_reader_new(pinned_classifier), *own = qj_reader_new(pinned_classifier);
    pthread_t thread;
    int status;
    CHECK(pthread_create(&thread, NULL, pins, others) == 0);
    while (atomic_load(&stage) == 0) usleep(1000);
    pid_t child = fork();
    if (child == 0) {
        CHECK(numbers_given() <= 2);
        /* The child may take the reader over. */
        CHECK(classified(others, 6, 80, LENGTH) == 0);
        qj_reader_unpin(others);
        qj_reader_pin(own);
        child = fork();
        if (child == 0) {
            CHECK(numbers_given() > 5);
            _exit(0);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    CHECK(numbers_given() > 5);
    atomic_store(&stage, 2);
    CHECK(pthread_join(thread, NULL) == 0);
    qj_reader_free(others);
    qj_reader_free(own);
    qj_classifier_free(pinned_classifier);
}

/* Workers that are forked by a program with threads change their copies of a classifier independently. */
int main(void) {
    child_reclaims();
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
