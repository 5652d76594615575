/* Filters and packets of the tests in C. */
#ifndef QUAJECT_FILTER_TESTS_SUPPORT_H
#define QUAJECT_FILTER_TESTS_SUPPORT_H

#include <quaject/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

#endif
