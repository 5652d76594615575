/* What `quaject/filter.h` offers, once each, right and wrong; under sanitizers, which see leaks and reads beyond. */
#include "support.h"
#include <pthread.h>
#include <stdatomic.h>

static void filters_come_and_go(void) {
    struct qj_classifier *classifier = qj_classifier_new();
    struct qj_reader *reader = qj_reader_new(classifier);
    CHECK(classified(reader, 6, 80, LENGTH) == -1);
    uint32_t web = inserted(classifier, to_port(80), 0), mail = inserted(classifier, to_port(25), 0);
    CHECK(classified(reader, 6, 80, LENGTH) == web && classified(reader, 6, 25, LENGTH) == mail);
    CHECK(classified(reader, 17, 80, LENGTH) == -1);
    CHECK(classified(reader, 6, 80, 38) == web && classified(reader, 6, 80, 37) == -1);
    CHECK(qj_classify(reader, NULL, 0) == 0);
    uint32_t any = inserted(classifier, qj_filter_new(), 7);
    CHECK(classified(reader, 6, 80, LENGTH) == any);

    qj_reader_pin(reader);
    qj_reader_pin(reader);
    uint8_t *one = packet(6, 80, LENGTH), *two = packet(6, 1, LENGTH);
    struct qj_packet packets[] = {{one, LENGTH, LENGTH}, {two, LENGTH, 1500}, {NULL, 0, 9}};
    qj_match matches[3];
    CHECK(qj_classify_all(reader, &packets[0], matches, 1) == 2);
    CHECK(qj_match_priority(matches[0]) == 7);
    CHECK(qj_classify_all(reader, &packets[0], matches, 3) == 2);
    uint32_t number;
    CHECK(qj_match_number(matches[1], &number) && number == web && qj_match_priority(matches[1]) == 0);
    CHECK(qj_classifier_remove(classifier, any) == QJ_FILTER_OK);
    CHECK(qj_classifier_remove(classifier, any) == QJ_FILTER_UNKNOWN);
    CHECK(strncmp(qj_filter_message(), "F0005: ", 7) == 0 && strstr(qj_filter_message(), "\nhelp: ") != NULL);
    qj_classify_batch(reader, packets, 3, matches);
    CHECK(qj_match_number(matches[0], &number) && number == web && matches[1] == 0 && matches[2] == 0);
    qj_classify_batch(reader, NULL, 0, NULL);
    CHECK(qj_classify_packet(reader, &packets[0]) == matches[0]);
    qj_reader_unpin(reader);
    qj_reader_unpin(reader);
    free(one), free(two);

    struct qj_classifier_stats stats;
    qj_classifier_stats(classifier, &stats);
    CHECK(stats.filters == 2 && stats.groups == 1 && stats.programs == 0);
    char *text = qj_classifier_explain(classifier);
    CHECK(strstr(text, "2 filters of one shape") != NULL);
    qj_filter_text_free(text);
    /* Freed while pinned. */
    qj_reader_pin(reader);
    qj_reader_free(reader);
    qj_classifier_free(classifier);
}

/* One filter, and which of three packets it matches: TCP to port 80, UDP to port 53, three bytes. */
static void check(struct qj_filter *filter, const char *expected) {
    struct qj_classifier *classifier = qj_classifier_new();
    inserted(classifier, filter, 0);
    struct qj_reader *reader = qj_reader_new(classifier);
    char found[4] = "---";
    if (classified(reader, 6, 80, LENGTH) == 0) found[0] = 't';
    if (classified(reader, 17, 53, LENGTH) == 0) found[1] = 'u';
    if (classified(reader, 0, 0, 3) == 0) found[2] = 's';
    if (strcmp(found, expected) != 0) {
        fprintf(stderr, "found %s, expected %s\n", found, expected);
        exit(1);
    }
    qj_reader_free(reader);
    qj_classifier_free(classifier);
}

static struct qj_filter *filter_of(const char *text) {
    struct qj_filter *filter;
    CHECK(qj_filter_of_text(text, &filter) == QJ_FILTER_OK);
    return filter;
}

static void every_test(void) {
    struct qj_filter *filter;
    const uint32_t ports[] = {53, 80};
    check(filter = qj_filter_new(), "tus");
    filter = qj_filter_new(), qj_filter_masked(filter, 14, 1, 0xf0, 0x40), check(filter, "tu-");
    filter = qj_filter_new(), qj_filter_range(filter, 36, 2, 54, 80), check(filter, "t--");
    filter = qj_filter_new(), qj_filter_any_of(filter, 36, 2, ports, 2), check(filter, "tu-");
    filter = qj_filter_new(), qj_filter_any_of(filter, 36, 2, NULL, 0), check(filter, "---");
    filter = qj_filter_new(), qj_filter_prefix(filter, 26, 0, 31), check(filter, "tu-");
    filter = qj_filter_new(), qj_filter_length(filter, 0, 10), check(filter, "--s");
    filter = qj_filter_new(), qj_filter_not(filter), qj_filter_equal(filter, 23, 1, 6), check(filter, "-u-");
    filter = qj_filter_new(), qj_filter_skip(filter, 20), qj_filter_equal(filter, 3, 1, 6);
    qj_filter_or(filter), qj_filter_equal(filter, 36, 2, 53), check(filter, "tu-");
    check(filter_of("[23] == 6"), "t--");
    /* Load the byte at 23; accept 17. */
    const struct qj_filter_instruction program[] = {{0x30, 0, 0, 23}, {0x15, 0, 1, 17}, {6, 0, 0, 1}, {6, 0, 0, 0}};
    CHECK(qj_filter_of_program(program, 4, &filter) == QJ_FILTER_OK);
    check(filter, "-u-");
    int status = qj_filter_of_expression("udp port 53", 1, &filter);
    CHECK(status == QJ_FILTER_OK || status == QJ_FILTER_ABSENT);
    if (status == QJ_FILTER_OK) check(filter, "-u-");
}

/* A filter that is refused when it is inserted. */
static void refused(struct qj_filter *filter, int expected) {
    struct qj_classifier *classifier = qj_classifier_new();
    uint32_t number = 99;
    CHECK(qj_classifier_insert(classifier, filter, 0, &number) == expected && number == 99);
    const struct qj_filter *both[] = {filter, filter};
    CHECK(qj_classifier_insert_all(classifier, both, NULL, 2, &number) == expected && number == 99);
    CHECK(qj_filter_message()[0] != 0);
    qj_filter_free(filter);
    qj_classifier_free(classifier);
}

static void every_error(void) {
    struct qj_filter *filter = NULL;
    filter = qj_filter_new(), qj_filter_equal(filter, 0, 5, 0), refused(filter, QJ_FILTER_WIDTH);
    filter = qj_filter_new(), qj_filter_equal(filter, 0, 0, 0), refused(filter, QJ_FILTER_WIDTH);
    filter = qj_filter_new(), qj_filter_shift(filter, 0, 1, 1, 32), refused(filter, QJ_FILTER_SHIFT);
    filter = qj_filter_new(), qj_filter_shift(filter, 0, 1, 1, -1000), refused(filter, QJ_FILTER_SHIFT);
    filter = filter_of("[0] == 1"), qj_filter_equal(filter, 0, 1, 1), refused(filter, QJ_FILTER_UNFIT);
    filter = qj_filter_new();
    uint32_t values[300];
    for (uint32_t at = 0; at < 300; at++) values[at] = at;
    qj_filter_any_of(filter, 0, 2, values, 300), qj_filter_any_of(filter, 2, 2, values, 300);
    refused(filter, QJ_FILTER_ALTERNATIVES);
    const struct qj_filter_instruction program[] = {{0x15, 0, 9, 17}};
    filter = NULL;
    CHECK(qj_filter_of_program(program, 1, &filter) == QJ_FILTER_BYTECODE);
    CHECK(qj_filter_of_program(NULL, 0, &filter) == QJ_FILTER_BYTECODE);
    CHECK(qj_filter_of_text("[12:2] = ", &filter) == QJ_FILTER_TEXT);
    CHECK(qj_filter_of_text("\xff", &filter) == QJ_FILTER_ENCODING);
    int status = qj_filter_of_expression("tcp prot 80", 1, &filter);
    CHECK(status == QJ_FILTER_REFUSED || status == QJ_FILTER_ABSENT);
    CHECK(filter == NULL);
    qj_filter_free(NULL), qj_reader_free(NULL), qj_classifier_free(NULL), qj_filter_text_free(NULL);
}

static atomic_bool over;

static void *reads(void *argument) {
    struct qj_reader *reader = qj_reader_new((const struct qj_classifier *)argument);
    uint8_t *always = packet(6, 9999, LENGTH);
    while (!atomic_load(&over)) {
        qj_reader_pin(reader);
        for (int at = 0; at < 32; at++) {
            uint32_t number;
            CHECK(qj_match_number(qj_classify(reader, always, LENGTH), &number) && number == 0);
        }
        qj_reader_unpin(reader);
    }
    free(always);
    qj_reader_free(reader);
    return NULL;
}

/* Many at once, then changes while another thread reads. */
static void threads(void) {
    struct qj_classifier *classifier = qj_classifier_new();
    enum { COUNT = 1000 };
    struct qj_filter *filters[COUNT];
    uint32_t priorities[COUNT], numbers[COUNT];
    filters[0] = to_port(9999), priorities[0] = 5;
    for (uint32_t at = 1; at < COUNT; at++) filters[at] = to_port(at), priorities[at] = at % 3;
    const struct qj_filter *const *all = (const struct qj_filter *const *)filters;
    CHECK(qj_classifier_insert_all(classifier, all, priorities, COUNT, numbers) == QJ_FILTER_OK);
    CHECK(numbers[0] == 0);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, reads, classifier) == 0);
    for (int round = 0; round < 3; round++) {
        for (uint32_t at = 1; at < COUNT; at++) {
            CHECK(qj_classifier_remove(classifier, numbers[at]) == QJ_FILTER_OK);
            if (at % 16 == 0) qj_filter_range(filters[at], 20 + (uint32_t)round, 1, 0, at);
            CHECK(qj_classifier_insert(classifier, filters[at], 0, &numbers[at]) == QJ_FILTER_OK);
        }
    }
    atomic_store(&over, true);
    CHECK(pthread_join(thread, NULL) == 0);
    for (uint32_t at = 0; at < COUNT; at++) qj_filter_free(filters[at]);
    qj_classifier_free(classifier);
}

int main(void) {
    CHECK(qj_filter_message()[0] == 0);
    filters_come_and_go();
    every_test();
    every_error();
    threads();
    printf("ok\n");
    return 0;
}
