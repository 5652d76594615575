/* Packet filters by the thousand, merged into one classifier whose code is generated for exactly these filters.
 *
 *     struct qj_filter *filter = qj_filter_new();
 *     qj_filter_equal(filter, 12, 2, 0x0800);            IPv4
 *     qj_filter_skip(filter, 14);                        offsets count from its header now
 *     qj_filter_equal(filter, 9, 1, 6);                  TCP
 *     qj_filter_shift(filter, 0, 1, 0x0f, 2);            ... and from the end of its header
 *     qj_filter_equal(filter, 2, 2, 80);
 *     uint32_t web;
 *     int status = qj_classifier_insert(classifier, filter, 0, &web);
 *     qj_filter_free(filter);
 *
 * Functions that return an int return QJ_FILTER_OK or the code of an error; qj_filter_message() then says more.
 * Pointers must be valid, and may be null only where that is said. A classifier may be used by many threads at once; a
 * filter and a reader by one at a time. Link with -lquaject-filter; pkg-config knows the rest. */
#ifndef QUAJECT_FILTER_H
#define QUAJECT_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    QJ_FILTER_OK = 0,
    QJ_FILTER_BYTECODE = 1,     /* F0001: an instruction of a program is wrong */
    QJ_FILTER_TEXT = 2,         /* F0002: a filter in text is wrong */
    QJ_FILTER_WIDTH = 3,        /* F0003: a field is not 1, 2, 3 or 4 bytes wide */
    QJ_FILTER_ALTERNATIVES = 4, /* F0004: too many alternatives */
    QJ_FILTER_UNKNOWN = 5,      /* F0005: there is no filter of this number */
    QJ_FILTER_FULL = 6,         /* F0006: there are as many filters as there are numbers */
    QJ_FILTER_REFUSED = 7,      /* libpcap refuses the expression */
    QJ_FILTER_ABSENT = 8,       /* the system has no libpcap */
    QJ_FILTER_UNFIT = 9,        /* a test is added to a filter that was not made by qj_filter_new() */
    QJ_FILTER_ENCODING = 10,    /* a text is not UTF-8 */
    QJ_FILTER_SHIFT = 11        /* F0007: a shift by more than 31 bits */
};

/* The message and help text of the last failure of a function in this thread: valid until the next failure. Empty if
 * none has failed. */
const char *qj_filter_message(void);

/* -- Filters -- */

/* A filter: tests that must all hold, or what qj_filter_or() separates. A test of a field that is not inside the packet
 * does not hold, and neither does its negation. */
struct qj_filter;

/* A filter without tests, which matches every packet. */
struct qj_filter *qj_filter_new(void);

/* Tests of the number in `width` bytes (1 to 4) at `offset`, most significant byte first. An error in a filter is
 * reported when it is inserted. */
void qj_filter_equal(struct qj_filter *, uint32_t offset, uint32_t width, uint32_t value);
void qj_filter_masked(struct qj_filter *, uint32_t offset, uint32_t width, uint32_t mask, uint32_t value);
void qj_filter_range(struct qj_filter *, uint32_t offset, uint32_t width, uint32_t low, uint32_t high);
void qj_filter_any_of(struct qj_filter *, uint32_t offset, uint32_t width, const uint32_t *values, size_t count);
/* The first `bits` of four bytes. */
void qj_filter_prefix(struct qj_filter *, uint32_t offset, uint32_t value, uint32_t bits);
/* Tests the length of the packet on the wire. */
void qj_filter_length(struct qj_filter *, uint32_t low, uint32_t high);

/* Negates the next test. */
void qj_filter_not(struct qj_filter *);
/* The tests that follow are an alternative to those before; offsets count from the start of the packet again. */
void qj_filter_or(struct qj_filter *);

/* Offsets of tests that follow count from `bytes` further on. */
void qj_filter_skip(struct qj_filter *, uint32_t bytes);
/* They count from `(number & mask) << shift` further on, the number being a field of at most 4 bytes; `>> -shift` if
 * that is negative. `qj_filter_shift(filter, 0, 1, 0x0f, 2)` passes over an IPv4 header. From -31 to 31. */
void qj_filter_shift(struct qj_filter *, uint32_t offset, uint32_t width, uint32_t mask, int shift);

/* An instruction of a classic BPF program: laid out as `struct bpf_insn` and `struct sock_filter`. */
struct qj_filter_instruction {
    uint16_t code;
    uint8_t jt, jf;
    uint32_t k;
};

/* The filter that matches the packets that a program does not reject. */
int qj_filter_of_program(const struct qj_filter_instruction *, size_t count, struct qj_filter **);
/* A filter in text, such as "[12:2] == 0x800 && [23] == 6". */
int qj_filter_of_text(const char *text, struct qj_filter **);
/* A filter in tcpdump's syntax for packets of a link type (DLT_; 1 is Ethernet), through the system's libpcap. What
   only the kernel knows of a packet, such as its direction on Ethernet, is refused. */
int qj_filter_of_expression(const char *expression, int link_type, struct qj_filter **);

/* May be null. */
void qj_filter_free(struct qj_filter *);

/* -- Classifiers -- */

struct qj_classifier;

/* A classifier without filters. */
struct qj_classifier *qj_classifier_new(void);
/* May be null. Its readers are freed before. */
void qj_classifier_free(struct qj_classifier *);

/* Adds a filter, which the caller still owns, and returns its number. Of several filters that match a packet, the one
 * with the highest priority is the result; among equal ones the one with the smallest number. */
int qj_classifier_insert(struct qj_classifier *, const struct qj_filter *, uint32_t priority, uint32_t *number);
/* Adds many, whose tables are built once, or none. Priorities may be null: all zero then. */
int qj_classifier_insert_all(
    struct qj_classifier *, const struct qj_filter *const *, const uint32_t *priorities, size_t count, uint32_t *numbers);
/* Removes one. */
int qj_classifier_remove(struct qj_classifier *, uint32_t number);

/* A description of the classification: groups, comparisons, hash functions, code. Free it with
 * qj_filter_text_free(). */
char *qj_classifier_explain(const struct qj_classifier *);
/* May be null. */
void qj_filter_text_free(char *);

struct qj_classifier_stats {
    uint64_t filters;
    uint64_t groups;      /* of filters, or parts of filters, of one shape */
    uint64_t programs;    /* filters that are programs, run one by one */
    uint64_t chunks;      /* units of code generation */
    uint64_t interpreted; /* chunks without code */
    uint64_t code_bytes;
    uint64_t table_bytes;
    uint64_t generations; /* how often code has been generated */
    uint64_t waiting;     /* retired objects kept for readers that may still use them */
};

void qj_classifier_stats(const struct qj_classifier *, struct qj_classifier_stats *);

/* -- Readers -- */

/* Classifies packets on one thread, while other threads change the filters. */
struct qj_reader;

struct qj_reader *qj_reader_new(const struct qj_classifier *);
/* May be null. */
void qj_reader_free(struct qj_reader *);

/* Between pin and unpin, replaced objects are kept: pin for a burst of packets, and not across a wait. Otherwise each
 * call pins the reader. */
void qj_reader_pin(struct qj_reader *);
void qj_reader_unpin(struct qj_reader *);

/* The bytes of a packet that were captured, and how many there were on the wire. Without bytes `data` may be null. */
struct qj_packet {
    const void *data;
    uint32_t length, wire_length;
};

/* The result of a classification. Zero: no filter matches. */
typedef uint64_t qj_match;

/* Whether a filter matches, and its number; `number` may be null. */
static inline bool qj_match_number(qj_match match, uint32_t *number) {
    if (number != NULL) *number = ~(uint32_t)match;
    return match != 0;
}

/* The priority of the filter that matches. */
static inline uint32_t qj_match_priority(qj_match match) { return (uint32_t)(match >> 32); }

/* The best filter that matches a packet. */
qj_match qj_classify(struct qj_reader *, const void *data, uint32_t length);
/* The same for a packet that was captured in part. */
qj_match qj_classify_packet(struct qj_reader *, const struct qj_packet *);
/* The best filter of each of these packets. */
void qj_classify_batch(struct qj_reader *, const struct qj_packet *, size_t count, qj_match *);
/* Writes all filters that match a packet, the best first, as far as there is room; returns their number. */
size_t qj_classify_all(struct qj_reader *, const struct qj_packet *, qj_match *, size_t room);

#ifdef __cplusplus
}
#endif

#endif
