/* hosted.c: the main function of an ESP program that is built as an executable. Serves its channels by the drivers
 * `text`, `bytes` and `timer` as `qj run` does: the same text, the same end of each stream, the same exit status.
 *
 *   drivers -> batches of messages --> step(state) --> batches of messages -> drivers;   sleep in poll(2)
 *
 * Knows a program only through hosted.h. SPDX-License-Identifier: MIT OR Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "guard.h"
#include "hosted.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { EXIT_INPUT = 1, EXIT_USAGE = 2, EXIT_FAULT = 3, CHUNK = 1 << 16, ATOMIC_WRITE = 4096, MAX_LINE_BYTES = 16 << 20, MAX_BATCH_MESSAGES = 4096 };

/* -- memory and messages ------------------------------------------------------------------------------------- */

typedef struct {
    char *data;
    size_t start, end, room; /* the bytes in use are those from start to end */
} buffer;

static void *reallocate(void *memory, size_t bytes)
{
    memory = realloc(memory, bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "error: out of memory\n");
        exit(EXIT_FAULT);
    }
    return memory;
}

static char *reserve(buffer *b, size_t bytes)
{
    if (b->start == b->end) b->start = b->end = 0;
    if (b->end + bytes > b->room && b->start > 0) {
        memmove(b->data, b->data + b->start, b->end - b->start);
        b->end -= b->start;
        b->start = 0;
    }
    if (b->end + bytes > b->room) {
        b->room = (b->end + bytes) * 2;
        b->data = reallocate(b->data, b->room);
    }
    return b->data + b->end;
}

static void append(buffer *b, const char *text, size_t length)
{
    memcpy(reserve(b, length), text, length);
    b->end += length;
}

static void append_text(buffer *b, const char *text) { append(b, text, strlen(text)); }

static size_t pending_bytes(const buffer *b) { return b->end - b->start; }

/* -- drivers ----------------------------------------------------------------------------------------------------- */

typedef enum { TEXT, BYTES, TIMER } driver_kind;
typedef enum { OFFERED, PENDING, CLOSED } offer;

/* The bytes of a message of driver `bytes`; `tag` and `end_tag` are those of a union, else -1. */
typedef struct {
    bool chunk;
    uint32_t bound;
    int32_t type, tag, end_tag;
    uint32_t offset;
} byte_shape;

typedef struct {
    int fd;
    bool regular;
    const char *path;
    buffer out;
} writer;

typedef struct {
    const qj_channel *channel;
    const char *driver;
    driver_kind kind;
    const char *path; /* null: standard input or output */
    byte_shape shape;
    bool ended; /* input: read to its end */
    bool end_passed;
    /* input */
    int fd;
    bool regular, wanted, closed;
    buffer in;
    size_t scanned;
    uint64_t line;
    int64_t period_ns, tick, limit;
    /* output */
    writer *writer;
    /* messages */
    unsigned char *batch;
    size_t count, capacity;
} port;

static port *ports;
static writer *writers;
static size_t writer_count;
static int signal_pipe[2];
static volatile sig_atomic_t received_signal;
static bool virtual_clock;
static int64_t virtual_now;
static struct timespec started;

/* The first error of a driver, kept until the step is over. */
static buffer error_text;
static int error_status;
/* Whether it is an error of an input, which takes effect only when the program has received the messages before it. */
static bool input_error;

static void set_error(int status, const char *format, ...)
{
    char text[1024];
    va_list list;
    if (error_status) return;
    error_status = status;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    append_text(&error_text, text);
}

static void add_help(const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    append_text(&error_text, "\nhelp: ");
    append_text(&error_text, text);
}

static void print_error(void)
{
    append(&error_text, "", 1);
    fprintf(stderr, "error: %s\n", error_text.data + error_text.start);
}

static void exit_with_error(void)
{
    print_error();
    exit(error_status);
}

static const char *system_error(void) { return strerror(errno); }

static int64_t now_ns(void)
{
    struct timespec now;
    if (virtual_clock) return virtual_now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)(now.tv_sec - started.tv_sec) * 1000000000 + (now.tv_nsec - started.tv_nsec);
}

static bool is_ready(int fd, short events)
{
    struct pollfd polled = {.fd = fd, .events = events, .revents = 0};
    return poll(&polled, 1, 0) > 0;
}

/* -- values as text ---------------------------------------------------------------------------------------------- */

static uint64_t load(const unsigned char *at, uint32_t width)
{
    uint8_t a;
    uint16_t b;
    uint32_t c;
    uint64_t d;
    switch (width) {
    case 1: memcpy(&a, at, 1); return a;
    case 2: memcpy(&b, at, 2); return b;
    case 4: memcpy(&c, at, 4); return c;
    default: memcpy(&d, at, 8); return d;
    }
}

static void store(unsigned char *at, uint32_t width, uint64_t value)
{
    uint8_t a = (uint8_t)value;
    uint16_t b = (uint16_t)value;
    uint32_t c = (uint32_t)value;
    switch (width) {
    case 1: memcpy(at, &a, 1); break;
    case 2: memcpy(at, &b, 2); break;
    case 4: memcpy(at, &c, 4); break;
    default: memcpy(at, &value, 8); break;
    }
}

static int64_t load_signed(const unsigned char *at, uint32_t width)
{
    uint64_t value = load(at, width);
    if (width < 8 && value >> (width * 8 - 1)) value |= ~(uint64_t)0 << (width * 8);
    return (int64_t)value;
}

/* Bytes of the UTF-8 character that begins here, or 0. */
static size_t utf8_length(const unsigned char *at, size_t left)
{
    uint32_t code;
    size_t length, i;
    if (at[0] < 0x80) return 1;
    if (at[0] >= 0xc2 && at[0] <= 0xdf) length = 2, code = at[0] & 0x1f;
    else if (at[0] >= 0xe0 && at[0] <= 0xef) length = 3, code = at[0] & 0x0f;
    else if (at[0] >= 0xf0 && at[0] <= 0xf4) length = 4, code = at[0] & 0x07;
    else return 0;
    if (length > left) return 0;
    for (i = 1; i < length; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
        code = code << 6 | (at[i] & 0x3f);
    }
    if ((length == 3 && code < 0x800) || (length == 4 && code < 0x10000) || code > 0x10ffff) return 0;
    if (code >= 0xd800 && code <= 0xdfff) return 0;
    return length;
}

static void print_bytes(buffer *out, const unsigned char *at, size_t length)
{
    size_t i = 0;
    char escape[8];
    append(out, "\"", 1);
    while (i < length) {
        size_t size = utf8_length(at + i, length - i);
        bool control = size == 0 || at[i] < 0x20 || at[i] == 0x7f || (size == 2 && at[i] == 0xc2 && at[i + 1] < 0xa0);
        switch (at[i]) {
        case '\n': append_text(out, "\\n"); i++; continue;
        case '\r': append_text(out, "\\r"); i++; continue;
        case '\t': append_text(out, "\\t"); i++; continue;
        case '\0': append_text(out, "\\0"); i++; continue;
        case '\\': append_text(out, "\\\\"); i++; continue;
        case '"': append_text(out, "\\\""); i++; continue;
        default: break;
        }
        if (!control) {
            append(out, (const char *)at + i, size);
            i += size;
            continue;
        }
        for (size = size ? size : 1; size > 0; size--, i++) {
            snprintf(escape, sizeof escape, "\\x%02x", at[i]);
            append_text(out, escape);
        }
    }
    append(out, "\"", 1);
}

static void print_value(buffer *out, int32_t type, const unsigned char *at)
{
    const qj_type *t = &qj_types[type];
    char number[32];
    uint32_t i;
    switch (t->kind) {
    case QJ_UNSIGNED:
        snprintf(number, sizeof number, "%" PRIu64, load(at, t->width));
        append_text(out, number);
        break;
    case QJ_SIGNED:
        snprintf(number, sizeof number, "%" PRId64, load_signed(at, t->width));
        append_text(out, number);
        break;
    case QJ_BOOL: append_text(out, *at ? "true" : "false"); break;
    case QJ_PID:
        append(out, "@", 1);
        append_text(out, qj_instance_names[load(at, 4)]);
        break;
    case QJ_BYTES: print_bytes(out, at + t->width, load(at, t->width)); break;
    case QJ_ARRAY:
        append(out, "[", 1);
        for (i = 0; i < t->count; i++) {
            if (i) append_text(out, ", ");
            print_value(out, t->element, at + i * qj_types[t->element].size);
        }
        append(out, "]", 1);
        break;
    case QJ_RECORD:
        append(out, "{", 1);
        for (i = 0; i < t->count; i++) {
            if (i) append_text(out, ", ");
            print_value(out, t->parts[i].type, at + t->parts[i].offset);
        }
        append(out, "}", 1);
        break;
    case QJ_UNION:
        i = (uint32_t)load(at, t->width);
        append_text(out, t->parts[i].name);
        if (t->parts[i].type >= 0) {
            append_text(out, " |> ");
            print_value(out, t->parts[i].type, at + t->parts[i].offset);
        }
        break;
    }
}

typedef struct {
    const char *text, *at, *end;
    const char *error_at; /* the position of the error, once there is one */
    buffer expected, found; /* its text; without a `found`, the word at the position is shown */
} parser;

/* Appends what is formatted, at most 200 characters. */
static void format_to(buffer *to, const char *format, va_list list)
{
    char text[200];
    vsnprintf(text, sizeof text, format, list);
    append_text(to, text);
}

static bool expect(parser *p, const char *format, ...)
{
    va_list list;
    p->error_at = p->at;
    va_start(list, format);
    format_to(&p->expected, format, list);
    va_end(list);
    return false;
}

/* Adds one of the names that are expected; `first` if it is the first one. */
static bool expect_name(parser *p, bool first, const char *before, const char *name, const char *after)
{
    p->error_at = p->at;
    append_text(&p->expected, first ? "`" : " or `");
    append_text(&p->expected, before);
    append_text(&p->expected, name);
    append_text(&p->expected, after);
    append_text(&p->expected, "`");
    return false;
}

/* Describes the input at `start` that is not a word. */
static bool found_instead(parser *p, const char *start, const char *format, ...)
{
    va_list list;
    p->error_at = start;
    va_start(list, format);
    format_to(&p->found, format, list);
    va_end(list);
    return false;
}

static void skip_blanks(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

static bool accept(parser *p, const char *sign)
{
    size_t length = strlen(sign);
    const char *before = p->at;
    skip_blanks(p);
    if ((size_t)(p->end - p->at) >= length && !memcmp(p->at, sign, length)) {
        p->at += length;
        return true;
    }
    p->at = before;
    return false;
}

static bool require(parser *p, const char *sign)
{
    if (accept(p, sign)) return true;
    skip_blanks(p);
    return expect(p, "`%s`", sign);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t word_length(const parser *p)
{
    size_t length = 0;
    if (p->at < p->end && *p->at >= '0' && *p->at <= '9') return 0;
    while (p->at + length < p->end && is_word(p->at[length])) length++;
    return length;
}

static bool equals(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && !memcmp(name, text, length);
}

/* Bytes of a character of valid UTF-8 that begins so. */
static size_t byte_count(char first)
{
    unsigned char byte = (unsigned char)first;
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* Length of the word, number or single character at the position. */
static size_t token_length(const parser *p)
{
    size_t left = (size_t)(p->end - p->at), sign = left && *p->at == '-', length = sign;
    while (length < left && (is_word(p->at[length]) || (unsigned char)p->at[length] >= 0x80)) length++;
    if (length > sign) return length;
    return left ? byte_count(*p->at) : 0;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

/* One byte of a literal that has not ended, its escapes resolved. */
static bool literal_byte(parser *p, char *byte)
{
    int high, low;
    if (*p->at != '\\') {
        *byte = *p->at++;
        return true;
    }
    switch (p->at + 1 < p->end ? p->at[1] : '?') {
    case 'n': *byte = '\n'; break;
    case 'r': *byte = '\r'; break;
    case 't': *byte = '\t'; break;
    case '0': *byte = '\0'; break;
    case '\\': *byte = '\\'; break;
    case '\'': *byte = '\''; break;
    case '"': *byte = '"'; break;
    case 'x':
        high = p->end - p->at >= 4 ? digit(p->at[2]) : 99;
        low = high < 16 ? digit(p->at[3]) : 99;
        if (low > 15) return expect(p, "two hexadecimal digits after `\\x`");
        *byte = (char)(high * 16 + low);
        p->at += 2;
        break;
    default: return expect(p, "an escape: one of `\\n \\r \\t \\0 \\\\ \\' \\\" \\xHH`");
    }
    p->at += 2;
    return true;
}

typedef struct {
    bool negative, huge; /* huge: beyond 64 bits */
    uint64_t magnitude;
} integer;

static bool parse_integer(parser *p, const char *name, integer *value)
{
    const char *start = p->at, *end = p->at + token_length(p), *at = p->at, *body;
    int radix = 10;
    bool digits = true;
    char byte = 0;
    memset(value, 0, sizeof *value);
    if (at < p->end && *at == '\'') {
        p->at++;
        if (p->at >= p->end) return expect(p, "`'`");
        if (*p->at != '\'' && !literal_byte(p, &byte)) return false;
        if (p->at == start + 1 || byte_count(start[1]) != 1) {
            p->at = start;
            return expect(p, "one byte between `'`");
        }
        value->magnitude = (unsigned char)byte;
        return require(p, "'");
    }
    if (at < end && *at == '-') {
        value->negative = true;
        at++;
    }
    if (end - at >= 2 && at[0] == '0') {
        if (at[1] == 'x' || at[1] == 'X') radix = 16;
        if (at[1] == 'b' || at[1] == 'B') radix = 2;
        if (at[1] == 'o' || at[1] == 'O') radix = 8;
        if (radix != 10) at += 2;
    }
    for (body = at; at < end; at++) {
        uint64_t digit_value = (uint64_t)digit(*at);
        if (*at == '_' && at > body) continue;
        if (digit_value >= (uint64_t)radix) {
            digits = false;
            break;
        }
        value->huge |= value->magnitude > (UINT64_MAX - digit_value) / (uint64_t)radix;
        value->magnitude = value->magnitude * (uint64_t)radix + digit_value;
    }
    if (radix == 10 && digits && end - body > 1 && *body == '0' && !memchr(body, '_', (size_t)(end - body)))
        return expect(p, "`%s` (a decimal number does not start with 0)", name);
    if (body == end || !digits) return expect(p, "`%s`", name);
    p->at = end;
    return true;
}

static bool parse_value(parser *p, int32_t type, unsigned char *at);

static bool parse_number(parser *p, const qj_type *t, unsigned char *at)
{
    const char *start = p->at;
    integer value;
    bool fits;
    uint64_t top = t->width == 8 ? UINT64_MAX : ((uint64_t)1 << (t->width * 8)) - 1;
    if (!parse_integer(p, t->name, &value)) return false;
    if (t->kind == QJ_SIGNED) fits = value.magnitude <= top / 2 + (value.negative ? 1 : 0);
    else fits = value.negative ? value.magnitude == 0 : value.magnitude <= top;
    if (value.huge || !fits) {
        p->at = start;
        if (t->kind == QJ_SIGNED)
            return expect(p, "`%s`, %" PRId64 " to %" PRId64, t->name, (int64_t)(-(int64_t)(top / 2) - 1), (int64_t)(top / 2));
        return expect(p, "`%s`, 0 to %" PRIu64, t->name, top);
    }
    store(at, t->width, value.negative ? 0 - value.magnitude : value.magnitude);
    return true;
}

static bool parse_pid(parser *p, const qj_type *t, unsigned char *at)
{
    const char *start = p->at;
    uint32_t i;
    size_t length;
    bool named = p->at < p->end && *p->at == '@';
    integer replica = {false, false, 0};
    if (named) p->at++;
    length = word_length(p);
    for (i = 0; named && i < t->count && !equals(t->parts[i].name, p->at, length); i++) {}
    if (!named || i == t->count) {
        for (i = 0; i < t->count; i++) expect_name(p, i == 0, named ? "" : "@", t->parts[i].name, "");
        return false;
    }
    p->at += length;
    if (p->at < p->end && *p->at == '[') {
        p->at++;
        if (!parse_integer(p, "int", &replica) || !require(p, "]")) return false;
    }
    if (replica.huge || (replica.negative && replica.magnitude) || replica.magnitude >= (uint64_t)t->parts[i].type) {
        expect(p, "a replica number below %" PRId32, t->parts[i].type);
        return found_instead(p, start, "number %s%" PRIu64, replica.negative ? "-" : "", replica.magnitude);
    }
    store(at, 4, t->parts[i].offset + replica.magnitude);
    return true;
}

static bool parse_bytes(parser *p, const qj_type *t, unsigned char *at)
{
    const char *start = p->at;
    size_t length = 0;
    char byte;
    if (p->at >= p->end || *p->at != '"') return expect(p, "`bytes` in double quotes");
    p->at++;
    while (p->at < p->end && *p->at != '"') {
        if (!literal_byte(p, &byte)) return false;
        if (length < t->count) at[t->width + length] = (unsigned char)byte;
        length++;
    }
    if (!require(p, "\"")) return false;
    if (length > t->count) {
        expect(p, "at most %" PRIu32 " bytes", t->count);
        return found_instead(p, start, "%zu bytes", length);
    }
    store(at, t->width, length);
    return true;
}

static bool parse_array(parser *p, const qj_type *t, unsigned char *at)
{
    const char *start = p->at;
    size_t size = qj_types[t->element].size;
    uint32_t count = 0, i;
    integer copies;
    if (!require(p, "[")) return false;
    while (!accept(p, "]")) {
        if (count == t->count) return skip_blanks(p), expect(p, "`]` after %" PRIu32 " elements", count);
        if (!parse_value(p, t->element, at + count * size)) return false;
        count++;
        if (count == 1 && accept(p, ";")) {
            const char *number;
            skip_blanks(p);
            number = p->at;
            if (!parse_integer(p, "int", &copies)) return false;
            if (copies.huge || copies.negative || copies.magnitude != t->count) {
                p->at = number;
                return expect(p, "`%" PRIu32 "` elements", t->count);
            }
            for (i = 1; i < t->count; i++) memcpy(at + i * size, at, size);
            return require(p, "]");
        }
        if (!accept(p, ",")) {
            if (!require(p, "]")) return false;
            break;
        }
    }
    if (count < t->count) {
        expect(p, "%" PRIu32 " elements", t->count);
        return found_instead(p, start, "%" PRIu32, count);
    }
    return true;
}

static bool parse_record(parser *p, const qj_type *t, unsigned char *at)
{
    const char *start = p->at, *after;
    bool *seen = reallocate(NULL, t->count);
    uint32_t count = 0, i;
    size_t length;
    bool good = require(p, "{");
    memset(seen, 0, t->count);
    while (good && !accept(p, "}")) {
        skip_blanks(p);
        if (count == t->count) {
            good = expect(p, "`}` after %" PRIu32 " fields", count);
            break;
        }
        i = count;
        length = word_length(p);
        after = p->at + length;
        while (after < p->end && (*after == ' ' || *after == '\t')) after++;
        if (length && after < p->end && *after == ':') {
            for (i = 0; i < t->count && !(equals(t->parts[i].name, p->at, length) && !seen[i]); i++) {}
            if (i == t->count) {
                bool first = true;
                for (i = 0; i < t->count; i++) {
                    if (seen[i]) continue;
                    good = expect_name(p, first, "", t->parts[i].name, ":");
                    first = false;
                }
                break;
            }
            p->at = after + 1;
        } else if (seen[i]) {
            good = expect(p, "a field name, as before");
            break;
        }
        seen[i] = true;
        count++;
        good = parse_value(p, t->parts[i].type, at + t->parts[i].offset);
        if (good && !accept(p, ",")) {
            good = require(p, "}");
            break;
        }
    }
    free(seen);
    if (good && count < t->count) {
        expect(p, "%" PRIu32 " fields", t->count);
        return found_instead(p, start, "%" PRIu32, count);
    }
    return good;
}

static bool parse_union(parser *p, const qj_type *t, unsigned char *at)
{
    size_t length = word_length(p);
    uint32_t i;
    for (i = 0; i < t->count && !equals(t->parts[i].name, p->at, length); i++) {}
    if (i == t->count) {
        for (i = 0; i < t->count; i++) expect_name(p, i == 0, "", t->parts[i].name, "");
        return false;
    }
    p->at += length;
    store(at, t->width, i);
    if (t->parts[i].type >= 0) return require(p, "|>") && parse_value(p, t->parts[i].type, at + t->parts[i].offset);
    return !accept(p, "|>") || (require(p, "{") && require(p, "}"));
}

static bool parse_value(parser *p, int32_t type, unsigned char *at)
{
    const qj_type *t = &qj_types[type];
    size_t length;
    skip_blanks(p);
    switch (t->kind) {
    case QJ_UNSIGNED:
    case QJ_SIGNED: return parse_number(p, t, at);
    case QJ_BOOL:
        length = word_length(p);
        if (!equals("true", p->at, length) && !equals("false", p->at, length)) return expect(p, "`true` or `false`");
        *at = length == 4;
        p->at += length;
        return true;
    case QJ_PID: return parse_pid(p, t, at);
    case QJ_BYTES: return parse_bytes(p, t, at);
    case QJ_ARRAY: return parse_array(p, t, at);
    case QJ_RECORD: return parse_record(p, t, at);
    default: return parse_union(p, t, at);
    }
}

static size_t columns(const char *from, const char *to)
{
    size_t count = 1;
    for (; from < to; from++) count += (*from & 0xc0) != 0x80;
    return count;
}

/* -- input ------------------------------------------------------------------------------------------------------- */

typedef enum { MORE, NONE_NOW, AT_END } filled;

static filled fill(port *q)
{
    ssize_t count;
    if (q->ended) return AT_END;
    if (!q->regular && !is_ready(q->fd, POLLIN)) return NONE_NOW;
    count = read(q->fd, reserve(&q->in, CHUNK), CHUNK);
    if (count > 0) {
        q->in.end += (size_t)count;
        return MORE;
    }
    if (count == 0) {
        q->ended = true;
        return AT_END;
    }
    if (errno != EINTR && errno != EAGAIN && errno != EWOULDBLOCK)
        set_error(EXIT_FAULT, "cannot read `%s`: %s", q->path ? q->path : "standard input", system_error());
    return NONE_NOW;
}

/* Reports the error of a line: its position, what is expected and what was found. */
static void report_parse_error(port *q, parser *p, const char *name)
{
    uint32_t value;
    size_t size, letters, shown;
    if (error_status) return;
    p->at = p->error_at;
    size = token_length(p);
    append(&p->expected, "", 1);
    set_error(EXIT_FAULT, "%s:%" PRIu64 ":%zu: expected ", name, q->line, columns(p->text, p->error_at));
    append_text(&error_text, p->expected.data);
    append_text(&error_text, ", found ");
    letters = columns(p->at, p->at + size) - 1;
    if (pending_bytes(&p->found)) {
        append(&error_text, p->found.data, pending_bytes(&p->found));
    } else if (size == 0) {
        append_text(&error_text, "the end of the line");
    } else {
        for (shown = 0; letters > 24 && columns(p->at, p->at + shown) <= 20; shown += byte_count(p->at[shown])) {}
        append_text(&error_text, "`");
        append(&error_text, p->at, letters > 24 ? shown : size);
        append_text(&error_text, letters > 24 ? "...`" : "`");
    }
    add_help("a line is one message of channel `%s`: ", q->channel->name);
    for (value = 0; value < q->channel->count; value++) {
        append_text(&error_text, value ? " `" : "`");
        append_text(&error_text, qj_types[q->channel->values[value].type].name);
        append_text(&error_text, "`");
    }
    if (q->channel->count == 0) append_text(&error_text, "nothing");
    append_text(&error_text, "; values are written as in ESP, separated by blanks");
    free(p->expected.data);
    free(p->found.data);
}

/* Parses a line; 1: a message, 0: a comment or a blank line, -1: an error. */
static int parse_line(port *q, const char *line, size_t length, unsigned char *at)
{
    parser p = {.text = line, .at = line, .end = line + length};
    const char *name = q->path ? q->path : "standard input", *before;
    size_t size, i;
    uint32_t value;
    for (i = 0; i < length; i += size) {
        size = utf8_length((const unsigned char *)line + i, length - i);
        if (size == 0) {
            set_error(EXIT_FAULT, "%s:%" PRIu64 ":%zu: the text is not UTF-8", name, q->line, columns(line, line + i));
            return -1;
        }
    }
    skip_blanks(&p);
    if ((p.at == p.end && q->channel->count > 0) || (p.end - p.at >= 2 && p.at[0] == '/' && p.at[1] == '/')) return 0;
    memset(at, 0, q->channel->size);
    p.at = line;
    for (value = 0; value < q->channel->count; value++) {
        before = p.at;
        skip_blanks(&p);
        if (value > 0 && p.at == before && p.at < p.end) {
            expect(&p, "a blank between values");
            break;
        }
        if (!parse_value(&p, q->channel->values[value].type, at + q->channel->values[value].offset)) break;
    }
    if (!p.error_at) {
        skip_blanks(&p);
        if (p.at == p.end) return 1;
        expect(&p, "the end of the line");
    }
    report_parse_error(q, &p, name);
    return -1;
}

static offer next_text(port *q, unsigned char *at)
{
    for (;;) {
        char *begin = q->in.data ? q->in.data + q->in.start : NULL;
        size_t pending = pending_bytes(&q->in), taken;
        char *end = pending > q->scanned ? memchr(begin + q->scanned, '\n', pending - q->scanned) : NULL;
        int outcome;
        if (!end) {
            q->scanned = pending;
            if (pending > MAX_LINE_BYTES) {
                set_error(EXIT_FAULT, "%s:%" PRIu64 ":1: the line is longer than %d bytes", q->path ? q->path : "standard input",
                     q->line + 1, MAX_LINE_BYTES);
                return PENDING;
            }
            switch (fill(q)) {
            case MORE: continue;
            case NONE_NOW: return PENDING;
            case AT_END: break;
            }
            if (pending == 0) return CLOSED;
            begin = q->in.data + q->in.start;
            end = begin + pending;
            taken = pending;
        } else {
            taken = (size_t)(end - begin) + 1;
        }
        q->line++;
        outcome = parse_line(q, begin, (size_t)(end - begin), at);
        if (outcome < 0) return PENDING;
        q->in.start += taken;
        q->scanned = 0;
        if (outcome > 0) return OFFERED;
    }
}

static offer next_bytes(port *q, unsigned char *at)
{
    const byte_shape *s = &q->shape;
    uint32_t wanted = s->chunk ? s->bound : 1, length;
    const qj_type *t = &qj_types[s->type];
    filled state = MORE;
    while (pending_bytes(&q->in) < wanted && (state = fill(q)) == MORE) {}
    memset(at, 0, q->channel->size);
    if (pending_bytes(&q->in) == 0) {
        if (state == NONE_NOW) return PENDING;
        if (q->end_passed) return CLOSED;
        q->end_passed = true;
        if (s->tag >= 0 && s->end_tag >= 0) {
            store(at, qj_types[q->channel->values[0].type].width, (uint64_t)s->end_tag);
            return OFFERED;
        }
        if (s->tag < 0 && !s->chunk && t->kind == QJ_SIGNED) {
            store(at, t->width, UINT64_MAX);
            return OFFERED;
        }
        return CLOSED;
    }
    if (s->tag >= 0) store(at, qj_types[q->channel->values[0].type].width, (uint64_t)s->tag);
    at += s->offset;
    if (!s->chunk) {
        store(at, t->width, (unsigned char)q->in.data[q->in.start]);
        q->in.start++;
        return OFFERED;
    }
    length = pending_bytes(&q->in) < s->bound ? (uint32_t)pending_bytes(&q->in) : s->bound;
    store(at, t->width, length);
    memcpy(at + t->width, q->in.data + q->in.start, length);
    q->in.start += length;
    return OFFERED;
}

static int64_t due_ns(const port *q)
{
    if (q->tick >= q->limit) return ESP_NEVER;
    return q->tick + 1 > ESP_NEVER / q->period_ns ? ESP_NEVER : (q->tick + 1) * q->period_ns;
}

static offer next_tick(port *q, unsigned char *at, int64_t now)
{
    int64_t due = due_ns(q);
    if (due == ESP_NEVER) return CLOSED;
    if (now < due) return PENDING;
    q->tick = now / q->period_ns < q->limit ? now / q->period_ns : q->limit;
    memset(at, 0, q->channel->size);
    if (q->channel->count) store(at, qj_types[q->channel->values[0].type].width, (uint64_t)q->tick);
    return OFFERED;
}

static void fill_batch(port *q, int64_t now)
{
    /* Ticks are not queued: a program that is late receives the latest one. */
    size_t capacity = q->kind == TIMER ? 1 : q->capacity;
    if (q->kind == TIMER && q->count != 0 && due_ns(q) <= now) next_tick(q, q->batch, now);
    while (!input_error && !q->closed && q->count < capacity) {
        unsigned char *at = q->batch + q->count * q->channel->size;
        offer found = q->kind == TEXT ? next_text(q, at) : q->kind == BYTES ? next_bytes(q, at) : next_tick(q, at, now);
        switch (found) {
        case OFFERED: q->count++; break;
        case CLOSED: q->closed = true; break;
        case PENDING:
            q->wanted = true;
            input_error = error_status != 0;
            return;
        }
    }
}

/* -- output ------------------------------------------------------------------------------------------------------ */

/* Writes as much as is possible without blocking. */
static void flush(writer *w)
{
    while (pending_bytes(&w->out)) {
        size_t size = pending_bytes(&w->out);
        ssize_t count;
        if (!w->regular) {
            if (!is_ready(w->fd, POLLOUT)) return;
            if (size > ATOMIC_WRITE) size = ATOMIC_WRITE;
        }
        count = write(w->fd, w->out.data + w->out.start, size);
        if (count >= 0) {
            w->out.start += (size_t)count;
        } else if (errno == EPIPE) {
            exit(0); /* the reader has closed it */
        } else if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else {
            set_error(EXIT_FAULT, "cannot write `%s`: %s", w->path ? w->path : "standard output", system_error());
            w->out.start = w->out.end;
        }
    }
}

static void flush_all(void)
{
    size_t i;
    for (i = 0; i < writer_count; i++) flush(&writers[i]);
}

/* Writes everything, waiting for the readers; after a signal for at most a second. */
static void drain_outputs(void)
{
    size_t i;
    int remaining_ms = 1000;
    for (i = 0; i < writer_count; i++) {
        struct pollfd polled = {.fd = writers[i].fd, .events = POLLOUT, .revents = 0};
        while (flush(&writers[i]), pending_bytes(&writers[i].out)) {
            if (received_signal && remaining_ms <= 0) return;
            poll(&polled, 1, received_signal ? 100 : -1);
            remaining_ms -= 100;
        }
    }
}

static void put_bytes(port *q, const unsigned char *at)
{
    const byte_shape *s = &q->shape;
    const qj_type *t = &qj_types[s->type];
    const qj_type *whole = &qj_types[q->channel->values[0].type];
    const char *cause = q->end_passed ? "comes after the end of its bytes" : "is not a byte";
    bool wrong = q->end_passed;
    const unsigned char *value = at + s->offset;
    if (!wrong && s->tag >= 0) {
        int64_t tag = (int64_t)load(at, whole->width);
        if (tag == s->end_tag) {
            q->end_passed = true;
            return;
        }
        wrong = tag != s->tag;
    }
    if (!wrong && s->chunk) {
        append(&q->writer->out, (const char *)value + t->width, load(value, t->width));
        return;
    }
    if (!wrong) {
        int64_t number = t->kind == QJ_SIGNED ? load_signed(value, t->width) : (int64_t)load(value, t->width);
        if (s->tag < 0 && t->kind == QJ_SIGNED && number == -1) {
            q->end_passed = true;
            return;
        }
        if (number >= 0 && number <= 255) {
            char byte = (char)number;
            append(&q->writer->out, &byte, 1);
            return;
        }
    }
    {
        buffer text = {NULL, 0, 0, 0};
        print_value(&text, q->channel->values[0].type, at);
        append(&text, "", 1);
        set_error(EXIT_FAULT, "`%s` on channel `%s` %s", text.data, q->channel->name, cause);
        add_help("the `bytes` driver writes 0 to 255, then once -1 or `eos`, as it reads them; `text:` writes any message");
        free(text.data);
    }
}

static void drain(port *q, size_t count)
{
    size_t i;
    uint32_t value;
    for (i = 0; i < count; i++) {
        const unsigned char *at = q->batch + i * q->channel->size;
        if (q->kind == BYTES) {
            put_bytes(q, at);
            continue;
        }
        for (value = 0; value < q->channel->count; value++) {
            if (value) append(&q->writer->out, " ", 1);
            print_value(&q->writer->out, q->channel->values[value].type, at + q->channel->values[value].offset);
        }
        append(&q->writer->out, "\n", 1);
    }
}

/* -- binding ----------------------------------------------------------------------------------------------------- */

static bool is_byte_type(int32_t type, byte_shape *s)
{
    const qj_type *t = &qj_types[type];
    s->type = type;
    s->chunk = t->kind == QJ_BYTES;
    s->bound = t->count;
    if (t->kind == QJ_UNSIGNED) return true;
    if (t->kind == QJ_SIGNED) return t->width > 1;
    return t->kind == QJ_BYTES && t->count > 0;
}

static bool find_shape(port *q)
{
    byte_shape *s = &q->shape;
    const qj_type *t;
    uint32_t i;
    s->tag = s->end_tag = -1;
    s->offset = 0;
    if (q->channel->count != 1) return false;
    t = &qj_types[q->channel->values[0].type];
    if (t->kind != QJ_UNION) return is_byte_type(q->channel->values[0].type, s);
    for (i = 0; i < t->count; i++) {
        if (t->parts[i].type < 0) {
            if (!strcmp(t->parts[i].name, "eos")) s->end_tag = (int32_t)i;
        } else if (s->tag < 0 && is_byte_type(t->parts[i].type, s)) {
            s->tag = (int32_t)i;
            s->offset = t->parts[i].offset;
        }
    }
    /* `is_byte_type` has overwritten the shape since the tag was found. */
    return s->tag >= 0 && is_byte_type(t->parts[s->tag].type, s);
}

static bool parse_timer(port *q, const char *text)
{
    char *end;
    int64_t unit;
    errno = 0;
    q->period_ns = strtoll(text, &end, 10);
    if (end == text || errno || q->period_ns <= 0 || text[0] < '0' || text[0] > '9') return false;
    if (!strncmp(end, "ns", 2)) unit = 1, end += 2;
    else if (!strncmp(end, "us", 2)) unit = 1000, end += 2;
    else if (!strncmp(end, "ms", 2)) unit = 1000000, end += 2;
    else if (!strncmp(end, "s", 1)) unit = 1000000000, end += 1;
    else return false;
    if (q->period_ns > INT64_MAX / unit) return false;
    q->period_ns *= unit;
    q->limit = INT64_MAX;
    if (*end == ',') {
        text = end + 1;
        q->limit = strtoll(text, &end, 10);
        if (end == text || q->limit < 0) return false;
    }
    return *end == '\0';
}

/* Parses a driver. */
static void choose_driver(port *q, const char *driver)
{
    const char *argument = strchr(driver, ':');
    size_t name = argument ? (size_t)(argument - driver) : strlen(driver);
    argument = argument ? argument + 1 : "";
    if (equals("data", driver, name)) {
        if (q->kind == TIMER) q->kind = TEXT;
    } else if (equals("text", driver, name)) {
        q->kind = TEXT;
    } else if (equals("bytes", driver, name)) {
        q->kind = BYTES;
    } else if (equals("timer", driver, name)) {
        q->kind = TIMER;
        if (!q->channel->from_environment) {
            set_error(EXIT_USAGE, "channel `%s`: a timer cannot take messages", q->channel->name);
            exit_with_error();
        }
        if (!parse_timer(q, argument)) {
            set_error(EXIT_USAGE, "`%s` is no timer", driver);
            add_help("write a period and, if the channel shall close, a number of ticks: `timer:10ms` or `timer:2s,5`");
            exit_with_error();
        }
        return;
    } else {
        set_error(EXIT_USAGE, "channel `%s`: there is no driver `%.*s`", q->channel->name, (int)name, driver);
        add_help("choose another with `--bind %s=text:PATH`; an executable has `text:PATH`, `bytes:PATH` and `timer:10ms`",
             q->channel->name);
        exit_with_error();
    }
    if (!*argument) {
        set_error(EXIT_USAGE, "driver `%s` names no file", driver);
        exit_with_error();
    }
    q->path = strcmp(argument, "-") ? argument : NULL;
}

static int open_path(const char *path, int flags, const char *doing, bool *regular)
{
    struct stat info;
    int fd = path ? open(path, flags | O_CLOEXEC, 0666) : flags == O_RDONLY ? 0 : 1;
    if (fd < 0 || fstat(fd, &info) < 0 || S_ISDIR(info.st_mode)) {
        if (fd >= 0) errno = EISDIR;
        set_error(EXIT_INPUT, "cannot %s `%s`: %s", doing, path ? path : "standard input or output", system_error());
        exit_with_error();
    }
    *regular = S_ISREG(info.st_mode);
    return fd;
}

static void open_ports(void)
{
    const char *standard = NULL;
    uint32_t i;
    size_t w;
    /* Ports point into this array, so that it does not move. */
    writers = reallocate(NULL, sizeof *writers * qj_sinks);
    for (i = 0; i < qj_sources + qj_sinks; i++) {
        port *q = &ports[i];
        q->capacity = (1 << 18) / q->channel->size;
        if (q->capacity < 1) q->capacity = 1;
        if (q->capacity > MAX_BATCH_MESSAGES) q->capacity = MAX_BATCH_MESSAGES;
        q->batch = reallocate(NULL, q->capacity * q->channel->size);
        if (q->kind == BYTES && !find_shape(q)) {
            set_error(EXIT_USAGE, "driver `bytes` cannot serve channel `%s`: its messages are not bytes", q->channel->name);
            add_help("use `--bind %s=text:PATH`", q->channel->name);
            exit_with_error();
        }
        if (q->kind == TIMER) {
            const qj_type *t = q->channel->count ? &qj_types[q->channel->values[0].type] : NULL;
            if (q->channel->count > 1 || (t && t->kind != QJ_UNSIGNED && t->kind != QJ_SIGNED)) {
                set_error(EXIT_USAGE, "driver `timer` cannot serve channel `%s`", q->channel->name);
                add_help("a timer's channel carries nothing, `()`, or one integer, the number of the tick");
                exit_with_error();
            }
        } else if (q->channel->from_environment) {
            if (!q->path && standard) {
                set_error(EXIT_USAGE, "channels `%s` and `%s` would both read standard input", standard, q->channel->name);
                add_help("bind one of them elsewhere, as in `--bind %s=text:PATH`", q->channel->name);
                exit_with_error();
            }
            if (!q->path) standard = q->channel->name;
            q->fd = open_path(q->path, O_RDONLY, "read", &q->regular);
        } else {
            for (w = 0; w < writer_count; w++) {
                const char *path = writers[w].path;
                if (path == q->path || (path && q->path && !strcmp(path, q->path))) break;
            }
            if (w == writer_count) {
                writer *fresh = &writers[writer_count++];
                memset(fresh, 0, sizeof *fresh);
                fresh->path = q->path;
                fresh->fd = open_path(q->path, O_WRONLY | O_CREAT | O_TRUNC, "write", &fresh->regular);
            }
            q->writer = &writers[w];
        }
    }
}

static void usage(FILE *to)
{
    uint32_t i;
    fprintf(to, "%s: an ESP program, compiled by qj\n\nusage: %s [--bind CHANNEL=DRIVER:ARG]... [--clock real|virtual]\n",
            qj_program_name, qj_program_name);
    fprintf(to, "\nDrivers are text:PATH, bytes:PATH (`-` is standard input or output) and timer:10ms. Channels:\n");
    for (i = 0; i < qj_sources + qj_sinks; i++)
        fprintf(to, "  %s, %s, %s\n", ports[i].channel->name, ports[i].channel->from_environment ? "input" : "output",
                ports[i].channel->driver);
    fprintf(to, "\nExit status: 0 done, 1 a file cannot be opened, 2 wrong usage, 3 a fault; `exit(e)` in the program ends it with status e.\n");
}

static void read_arguments(int count, char **words)
{
    uint32_t c, all = qj_sources + qj_sinks;
    int i;
    for (i = 1; i < count; i++) {
        const char *value = NULL, *binding;
        if (!strcmp(words[i], "--help") || !strcmp(words[i], "-h")) {
            usage(stdout);
            exit(0);
        }
        if (!strncmp(words[i], "--bind=", 7)) value = words[i] + 7, binding = value;
        else if (!strncmp(words[i], "--clock=", 8)) value = words[i] + 8, binding = NULL;
        else if (!strcmp(words[i], "--bind") && i + 1 < count) value = words[++i], binding = value;
        else if (!strcmp(words[i], "--clock") && i + 1 < count) value = words[++i], binding = NULL;
        else {
            fprintf(stderr, "error: unexpected argument `%s`\n", words[i]);
            usage(stderr);
            exit(EXIT_USAGE);
        }
        if (!binding) {
            if (strcmp(value, "real") && strcmp(value, "virtual")) {
                fprintf(stderr, "error: `--clock` is `real` or `virtual`\n");
                exit(EXIT_USAGE);
            }
            virtual_clock = !strcmp(value, "virtual");
            continue;
        }
        value = strchr(binding, '=');
        for (c = 0; c < all && !(value && equals(ports[c].channel->name, binding, (size_t)(value - binding))); c++) {}
        if (c == all) {
            fprintf(stderr, "error: `%s` binds no external channel\n", binding);
            usage(stderr);
            exit(EXIT_USAGE);
        }
        /* The declared driver decides whether `data:` is text or bytes. */
        ports[c].kind = !strncmp(ports[c].channel->driver, "bytes:", 6) ? BYTES : TEXT;
        ports[c].driver = value + 1;
        choose_driver(&ports[c], value + 1);
    }
    for (c = 0; c < all; c++) {
        if (!ports[c].driver) choose_driver(&ports[c], ports[c].channel->driver);
    }
}

/* -- running ----------------------------------------------------------------------------------------------------- */

static void on_signal(int number)
{
    int kept = errno;
    if (received_signal) {
        signal(number, SIG_DFL);
        raise(number);
    }
    received_signal = number;
    if (write(signal_pipe[1], "!", 1) < 0) {
        /* The flag is polled, too. */
    }
    /* A step that computes endlessly does not poll the flag. */
    qj_leave_step();
    errno = kept;
}

static void install_signal_handlers(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    if (pipe(signal_pipe) < 0) signal_pipe[0] = -1;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void end_by_signal(void)
{
    drain_outputs();
    signal(received_signal, SIG_DFL);
    raise(received_signal);
}

static void wait_for_events(int64_t wake)
{
    struct pollfd *polled = reallocate(NULL, sizeof *polled * (qj_sources + qj_sinks + 1));
    struct timespec left;
    nfds_t count = 0;
    uint32_t i;
    size_t w, held = 0;
    int64_t pause;
    int event_count, timeout;
    for (w = 0; w < writer_count; w++) held += pending_bytes(&writers[w].out) > 0;
    flush_all();
    for (w = 0; w < writer_count; w++) held -= pending_bytes(&writers[w].out) > 0;
    if (held) {
        /* A channel that was busy may be ready now. */
        free(polled);
        return;
    }
    polled[count++] = (struct pollfd){.fd = signal_pipe[0], .events = POLLIN, .revents = 0};
    for (i = 0; i < qj_sources; i++) {
        if (!ports[i].wanted) continue;
        if (ports[i].kind != TIMER) polled[count++] = (struct pollfd){.fd = ports[i].fd, .events = POLLIN, .revents = 0};
        else if (due_ns(&ports[i]) < wake) wake = due_ns(&ports[i]);
    }
    for (w = 0; w < writer_count; w++) {
        if (pending_bytes(&writers[w].out)) polled[count++] = (struct pollfd){.fd = writers[w].fd, .events = POLLOUT, .revents = 0};
    }
    if (error_status || received_signal) {
        free(polled);
        return;
    }
    if (wake == ESP_NEVER) {
        timeout = -1;
    } else if (virtual_clock) {
        timeout = 0;
    } else {
        /* poll counts milliseconds: the fraction that remains is slept after it has returned. */
        pause = wake - now_ns();
        timeout = pause <= 0 ? 0 : pause / 1000000 > 1000000000 ? 1000000000 : (int)(pause / 1000000);
    }
    event_count = poll(polled, count, timeout);
    if (event_count == 0 && wake != ESP_NEVER) {
        if (virtual_clock) {
            if (wake > virtual_now) virtual_now = wake;
        } else {
            pause = wake - now_ns();
            if (pause > 0 && pause < 1000000) {
                left.tv_sec = 0;
                left.tv_nsec = (long)pause;
                nanosleep(&left, NULL);
            }
        }
    }
    for (i = 0; i < qj_sources; i++) ports[i].wanted = false;
    free(polled);
}

/* The maximum number of names in a list. */
#define MAX_NAMES 6

/* Prints the instances that an instance waits for, except those that have ended. */
static void print_partners(void *state, esp_pid instance, const qj_wait *wait)
{
    esp_pid found[MAX_NAMES];
    uint32_t k, all = 0, shown;
    if (!wait->channel) {
        fprintf(stderr, "      for a guard that stays false\n");
        return;
    }
    if (wait->environment) {
        fprintf(stderr, "      for %s\n", wait->environment);
        return;
    }
    for (k = 0; k < wait->partners; k++) {
        const qj_instances_of *range = &qj_partners[wait->partner + k];
        esp_pid i;
        for (i = range->first; i < range->first + range->count; i++) {
            const esp_location place = qj_program->place(state, i);
            if (i == instance || (place.line == 0 && wait->member == QJ_NO_INSTANCE)) continue;
            if (all < MAX_NAMES) found[all] = i;
            all++;
        }
    }
    shown = all < MAX_NAMES ? all : MAX_NAMES;
    fprintf(stderr, "      for ");
    for (k = 0; k < shown; k++) {
        if (k != 0) fputs(all > shown ? ", " : " or ", stderr);
        fprintf(stderr, "`%s`", qj_instance_names[found[k]]);
    }
    if (all == 0) {
        fprintf(stderr, "a process to %s `%s`, and none can\n", wait->verb, wait->channel);
        return;
    }
    if (all > shown) fprintf(stderr, " or one of %" PRIu32 " more", all - shown);
    fprintf(stderr, " to %s `%s`\n", wait->verb, wait->channel);
}

static void print_location(esp_pid instance, uint32_t file, uint32_t line, uint32_t column)
{
    fprintf(stderr, "  `%s` waits at %s:%" PRIu32 ":%" PRIu32 "\n", qj_instance_names[instance], qj_file_names[file], line,
            column);
}

/* Whether an instance is blocked at a wait: by itself, or as a member of a fused process that is. */
static bool is_blocked_at(void *state, esp_pid instance, const qj_wait *wait)
{
    const esp_pid owner = wait->member == QJ_NO_INSTANCE ? instance : wait->first;
    if (wait->member == QJ_NO_INSTANCE ? instance - wait->first >= wait->count : wait->member != instance) return false;
    return qj_program->stuck(state, owner) && qj_program->open(state, owner, wait->branch);
}

/* Whether a blocked instance is a fused process, whose members are reported instead of it. */
static bool is_fused(void *state, esp_pid instance)
{
    const qj_wait *wait;
    for (wait = qj_waits; wait->count != 0; wait++) {
        if (wait->member != QJ_NO_INSTANCE && wait->first == instance && qj_program->open(state, instance, wait->branch)) {
            return true;
        }
    }
    return false;
}

/* Whether an instance is reported as blocked forever. */
static bool is_reported(void *state, esp_pid instance)
{
    const qj_wait *wait;
    if (qj_program->stuck(state, instance)) return !is_fused(state, instance);
    for (wait = qj_waits; wait->count != 0; wait++) {
        if (wait->member == instance && is_blocked_at(state, instance, wait)) return true;
    }
    return false;
}

/* The wait of the first blocked instance; NULL if it is a guard. */
static const qj_wait *first_wait(void *state)
{
    const qj_wait *wait;
    esp_pid i;
    for (i = 0; i < qj_instances && !is_reported(state, i); i++) { }
    for (wait = qj_waits; wait->count != 0; wait++) {
        if (is_blocked_at(state, i, wait)) return wait;
    }
    return NULL;
}

static void print_waits(void *state)
{
    esp_pid i;
    for (i = 0; i < qj_instances; i++) {
        const qj_wait *wait, *last = NULL;
        if (!is_reported(state, i)) continue;
        for (wait = qj_waits; wait->count != 0; wait++) {
            if (!is_blocked_at(state, i, wait)) continue;
            if (!last || last->file != wait->file || last->line != wait->line || last->column != wait->column) {
                print_location(i, wait->file, wait->line, wait->column);
            }
            last = wait;
            print_partners(state, i, wait);
        }
        if (!last) {
            esp_location place = qj_program->place(state, i);
            print_location(i, place.file, place.line, place.column);
            fprintf(stderr, "      for a guard that stays false\n");
        }
    }
}

/* Prints the fault as `qj run` does. */
static void print_fault(void *state)
{
    esp_fault_report report = qj_program->fault(state);
    const qj_fault *fault = &qj_faults[report.code - 1];
    const char *cause = fault->cause;
    const qj_cause *better;
    esp_location place = report.place;
    const char *channel = place.channel >= 0 ? qj_channel_names[place.channel] : NULL;
    for (better = qj_causes; better->code != 0; better++) {
        if (better->code == report.code && better->file == place.file && better->line == place.line &&
            better->column == place.column) {
            cause = better->cause;
            break;
        }
    }
    fprintf(stderr, "fault[%s]: %s", fault->name, cause);
    if (report.code == ESP_FAULT_DEADLOCK) {
        uint32_t all = 0;
        const qj_wait *first = first_wait(state);
        esp_pid i;
        if (first) {
            place.file = (uint16_t)first->file;
            place.line = first->line;
            place.column = (uint16_t)first->column;
            channel = first->channel;
        }
        for (i = 0; i < qj_instances; i++) {
            if (!is_reported(state, i)) continue;
            if (all < MAX_NAMES) fprintf(stderr, "%s`%s`", all == 0 ? "" : ", ", qj_instance_names[i]);
            all++;
        }
        if (all > MAX_NAMES) fprintf(stderr, " and %" PRIu32 " more", all - MAX_NAMES);
        fputs(all == 1 ? " is blocked forever" : " are blocked forever", stderr);
    } else {
        fprintf(stderr, ", in process `%s`", qj_instance_names[report.instance]);
    }
    if (channel) fprintf(stderr, ", channel `%s`", channel);
    fprintf(stderr, "\n");
    if (place.line != 0) {
        int margin = snprintf(NULL, 0, "%" PRIu32, place.line);
        fprintf(stderr, "%*s--> %s:%" PRIu32 ":%u\n", margin, "", qj_file_names[place.file], place.line,
                (unsigned)place.column);
    }
    if (report.code == ESP_FAULT_DEADLOCK) print_waits(state);
    if (fault->help) fprintf(stderr, "help: %s\n", fault->help);
}

/* A closed standard stream is opened as /dev/null, as `qj run` does, so that no file gets its descriptor. */
static void open_standard_streams(void)
{
    int fd;
    for (fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) exit(EXIT_INPUT);
    }
}

int main(int count, char **words)
{
    uint32_t i, all = qj_sources + qj_sinks;
    esp_source *sources;
    size_t *taken;
    struct output {
        esp_output_head head;
        esp_sink sinks[];
    } *output;
    void *state;
    bool refill;
    open_standard_streams();
    clock_gettime(CLOCK_MONOTONIC, &started);
    ports = reallocate(NULL, sizeof *ports * all);
    memset(ports, 0, sizeof *ports * all);
    for (i = 0; i < all; i++) ports[i].channel = &qj_channels[i];
    read_arguments(count, words);
    open_ports();
    install_signal_handlers();
    /* malloc aligns for every type. */
    state = reallocate(NULL, qj_program->state_size);
    sources = reallocate(NULL, sizeof *sources * qj_sources);
    taken = reallocate(NULL, sizeof *taken * qj_sources);
    output = reallocate(NULL, sizeof *output + sizeof output->sinks[0] * qj_sinks);
    qj_program->init(state);
    for (;;) {
        int64_t now = now_ns();
        int status;
        for (i = 0; i < qj_sources; i++) {
            fill_batch(&ports[i], now);
            sources[i] = (esp_source){ports[i].batch, ports[i].count, ports[i].closed};
            taken[i] = 0;
        }
        memset(&output->head, 0, sizeof output->head);
        output->head.taken = taken;
        output->head.limit = qj_has_effects || writer_count < qj_sinks;
        for (i = 0; i < qj_sinks; i++) {
            port *q = &ports[qj_sources + i];
            if (pending_bytes(&q->writer->out) >= CHUNK) flush(q->writer);
            output->sinks[i] = (esp_sink){q->batch, pending_bytes(&q->writer->out) >= CHUNK ? 0 : q->capacity, 0, false};
        }
        status = qj_take_step(qj_program, state, sources, &output->head, now);
        refill = false;
        for (i = 0; i < qj_sources; i++) {
            port *q = &ports[i];
            refill = refill || taken[i];
            memmove(q->batch, q->batch + taken[i] * q->channel->size, (q->count - taken[i]) * q->channel->size);
            q->count -= taken[i];
        }
        if (qj_has_effects) fflush(stdout);
        for (i = 0; i < qj_sinks; i++) drain(&ports[qj_sources + i], output->sinks[i].count);
        if (qj_has_effects) flush_all();
        if (status == ESP_DONE) {
            drain_outputs();
            if (!error_status || input_error) return output->head.exit_status;
        }
        if (status == ESP_FAULT) {
            drain_outputs();
            print_fault(state);
            return EXIT_FAULT;
        }
        /* There is room for more messages, which may have arrived already: no sleep yet. */
        if (error_status && (!input_error || (status == ESP_SLEEP && !refill))) {
            drain_outputs();
            exit_with_error();
        }
        /* The next step may compute for long. */
        if (status == ESP_AGAIN && !refill) flush_all();
        if (status == ESP_SLEEP && !refill) wait_for_events(output->head.wake);
        if (received_signal) end_by_signal();
    }
}
