/* Classifiers across fork, in a program with threads. Without sanitizers, whose allocators do not survive that. */
#include <pthread.h>
#include <quaject/filter.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition) \
    ((condition) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n%s\n", __FILE__, __LINE__, #condition, qj_filter_message()), exit(1)))

enum { LENGTH = 60 };

/* An Ethernet packet with IPv4 from the heap, so that a byte read beyond it is seen. */
static uint8_t *packet(uint8_t protocol, uint16_t port, uint32_t length) {
    uint8_t all[LENGTH] = {0};
    all[12] = 8;
    all[14] = 0x45;
    all[23] = protocol;
    all[36] = (uint8_t)(port >> 8);
    all[37] = (uint8_t)port;
    uint8_t *own = (uint8_t *)malloc(length);
    memcpy(own, all, length);
    return own;
}

/* TCP to a port. */
static struct qj_filter *to_port(uint32_t port) {
    struct qj_filter *filter = qj_filter_new();
    qj_filter_equal(filter, 12, 2, 0x0800);
    qj_filter_skip(filter, 14);
    qj_filter_equal(filter, 9, 1, 6);
    qj_filter_shift(filter, 0, 1, 0x0f, 2);
    qj_filter_equal(filter, 2, 2, port);
    return filter;
}

/* The number of the filter that has a packet of a port, or -1. */
static int64_t classified(struct qj_reader *reader, uint8_t protocol, uint16_t port, uint32_t length) {
    uint8_t *own = packet(protocol, port, length);
    qj_match match = qj_classify(reader, own, length);
    free(own);
    uint32_t number;
    return qj_match_number(match, &number) ? (int64_t)number : -1;
}

static uint32_t inserted(struct qj_classifier *classifier, struct qj_filter *filter, uint32_t priority) {
    uint32_t number;
    CHECK(qj_classifier_insert(classifier, filter, priority, &number) == QJ_FILTER_OK);
    qj_filter_free(filter);
    return number;
}

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
