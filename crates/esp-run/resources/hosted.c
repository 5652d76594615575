/* hosted.c: the main of an ESP program that is an executable of its own. Serves its channels by the drivers `text`,
 * `bytes` and `timer`, as `qj run` does: the same text, the same ends, the same exit status.
 *
 *   drivers -> batches of messages --> step(state) --> batches of messages -> drivers;   sleep in poll(2)
 *
 * Knows programs only through hosted.h. SPDX-License-Identifier: MIT OR Apache-2.0 */
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

enum { WRONG = 1, USAGE = 2, FAULT = 3, CHUNK = 1 << 16, PIECE = 4096, LONGEST_LINE = 16 << 20, BATCH = 4096 };

/* -- memory and messages ------------------------------------------------------------------------------------- */

typedef struct {
    char *data;
    size_t start, end, room; /* what is in use lies between start and end */
} buffer;

static void *grow(void *memory, size_t bytes)
{
    memory = realloc(memory, bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "error: out of memory\n");
        exit(FAULT);
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
        b->data = grow(b->data, b->room);
    }
    return b->data + b->end;
}

static void put(buffer *b, const char *text, size_t length)
{
    memcpy(reserve(b, length), text, length);
    b->end += length;
}

static void puts_to(buffer *b, const char *text) { put(b, text, strlen(text)); }

static size_t used(const buffer *b) { return b->end - b->start; }

/* -- drivers ----------------------------------------------------------------------------------------------------- */

typedef enum { TEXT, BYTES, TIMER } driver_kind;
typedef enum { OFFERED, PENDING, CLOSED } offer;

/* How `bytes` sees a type; `tag` and `end_tag` are those of a union, -1 without. */
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
    bool ended; /* input: read to its end; bytes: the end has been told */
    bool end_told;
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
static int bell[2];
static volatile sig_atomic_t received;
static bool virtual_clock;
static int64_t virtual_now;
static struct timespec started;

/* What goes wrong in a driver, kept until the step is over. */
static buffer trouble;
static int trouble_status;
/* In an input: it counts only when the program has taken the messages before. */
static bool input_trouble;

static void fail(int status, const char *format, ...)
{
    char text[1024];
    va_list list;
    if (trouble_status) return;
    trouble_status = status;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    puts_to(&trouble, text);
}

static void help(const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    puts_to(&trouble, "\nhelp: ");
    puts_to(&trouble, text);
}

static void tell_trouble(void)
{
    put(&trouble, "", 1);
    fprintf(stderr, "error: %s\n", trouble.data + trouble.start);
}

static void die(void)
{
    tell_trouble();
    exit(trouble_status);
}

static const char *reason(void) { return strerror(errno); }

static int64_t now_ns(void)
{
    struct timespec now;
    if (virtual_clock) return virtual_now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)(now.tv_sec - started.tv_sec) * 1000000000 + (now.tv_nsec - started.tv_nsec);
}

static bool is_ready(int fd, short events)
{
    struct pollfd asked = {.fd = fd, .events = events, .revents = 0};
    return poll(&asked, 1, 0) > 0;
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
static size_t character(const unsigned char *at, size_t left)
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
    put(out, "\"", 1);
    while (i < length) {
        size_t size = character(at + i, length - i);
        bool control = size == 0 || at[i] < 0x20 || at[i] == 0x7f || (size == 2 && at[i] == 0xc2 && at[i + 1] < 0xa0);
        switch (at[i]) {
        case '\n': puts_to(out, "\\n"); i++; continue;
        case '\r': puts_to(out, "\\r"); i++; continue;
        case '\t': puts_to(out, "\\t"); i++; continue;
        case '\0': puts_to(out, "\\0"); i++; continue;
        case '\\': puts_to(out, "\\\\"); i++; continue;
        case '"': puts_to(out, "\\\""); i++; continue;
        default: break;
        }
        if (!control) {
            put(out, (const char *)at + i, size);
            i += size;
            continue;
        }
        for (size = size ? size : 1; size > 0; size--, i++) {
            snprintf(escape, sizeof escape, "\\x%02x", at[i]);
            puts_to(out, escape);
        }
    }
    put(out, "\"", 1);
}

static void print_value(buffer *out, int32_t type, const unsigned char *at)
{
    const qj_type *t = &qj_types[type];
    char number[32];
    uint32_t i;
    switch (t->kind) {
    case QJ_UNSIGNED:
        snprintf(number, sizeof number, "%" PRIu64, load(at, t->width));
        puts_to(out, number);
        break;
    case QJ_SIGNED:
        snprintf(number, sizeof number, "%" PRId64, load_signed(at, t->width));
        puts_to(out, number);
        break;
    case QJ_BOOL: puts_to(out, *at ? "true" : "false"); break;
    case QJ_PID:
        put(out, "@", 1);
        puts_to(out, qj_instance_names[load(at, 4)]);
        break;
    case QJ_BYTES: print_bytes(out, at + t->width, load(at, t->width)); break;
    case QJ_ARRAY:
        put(out, "[", 1);
        for (i = 0; i < t->count; i++) {
            if (i) puts_to(out, ", ");
            print_value(out, t->element, at + i * qj_types[t->element].size);
        }
        put(out, "]", 1);
        break;
    case QJ_RECORD:
        put(out, "{", 1);
        for (i = 0; i < t->count; i++) {
            if (i) puts_to(out, ", ");
            print_value(out, t->parts[i].type, at + t->parts[i].offset);
        }
        put(out, "}", 1);
        break;
    case QJ_UNION:
        i = (uint32_t)load(at, t->width);
        puts_to(out, t->parts[i].name);
        if (t->parts[i].type >= 0) {
            puts_to(out, " |> ");
            print_value(out, t->parts[i].type, at + t->parts[i].offset);
        }
        break;
    }
}

typedef struct {
    const char *text, *at, *end;
    const char *wrong; /* where the error is, once there is one */
    buffer expected, found; /* what is said of it; without a `found`, the word there */
} parser;

/* Appends what is formatted, at most 200 characters. */
static void format_to(buffer *to, const char *format, va_list list)
{
    char text[200];
    vsnprintf(text, sizeof text, format, list);
    puts_to(to, text);
}

static bool expect(parser *p, const char *format, ...)
{
    va_list list;
    p->wrong = p->at;
    va_start(list, format);
    format_to(&p->expected, format, list);
    va_end(list);
    return false;
}

/* One of the names that are expected, `first` if none was told before. */
static bool expect_name(parser *p, bool first, const char *before, const char *name, const char *after)
{
    p->wrong = p->at;
    puts_to(&p->expected, first ? "`" : " or `");
    puts_to(&p->expected, before);
    puts_to(&p->expected, name);
    puts_to(&p->expected, after);
    puts_to(&p->expected, "`");
    return false;
}

/* Something else than a word was found, from `start` on. */
static bool found_instead(parser *p, const char *start, const char *format, ...)
{
    va_list list;
    p->wrong = start;
    va_start(list, format);
    format_to(&p->found, format, list);
    va_end(list);
    return false;
}

static void blanks(parser *p)
{
    while (p->at < p->end && (*p->at == ' ' || *p->at == '\t' || *p->at == '\r')) p->at++;
}

static bool eat(parser *p, const char *sign)
{
    size_t length = strlen(sign);
    const char *before = p->at;
    blanks(p);
    if ((size_t)(p->end - p->at) >= length && !memcmp(p->at, sign, length)) {
        p->at += length;
        return true;
    }
    p->at = before;
    return false;
}

static bool need(parser *p, const char *sign)
{
    if (eat(p, sign)) return true;
    blanks(p);
    return expect(p, "`%s`", sign);
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static size_t word(const parser *p)
{
    size_t length = 0;
    if (p->at < p->end && *p->at >= '0' && *p->at <= '9') return 0;
    while (p->at + length < p->end && is_word(p->at[length])) length++;
    return length;
}

static bool same(const char *name, const char *text, size_t length)
{
    return strlen(name) == length && !memcmp(name, text, length);
}

/* Bytes of a character of valid UTF-8 that begins so. */
static size_t byte_count(char first)
{
    unsigned char byte = (unsigned char)first;
    return byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* Bytes of the word, number or single character that stands here. */
static size_t token(const parser *p)
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
    const char *start = p->at, *end = p->at + token(p), *at = p->at, *body;
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
        return need(p, "'");
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
    length = word(p);
    for (i = 0; named && i < t->count && !same(t->parts[i].name, p->at, length); i++) {}
    if (!named || i == t->count) {
        for (i = 0; i < t->count; i++) expect_name(p, i == 0, named ? "" : "@", t->parts[i].name, "");
        return false;
    }
    p->at += length;
    if (p->at < p->end && *p->at == '[') {
        p->at++;
        if (!parse_integer(p, "int", &replica) || !need(p, "]")) return false;
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
    if (!need(p, "\"")) return false;
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
    if (!need(p, "[")) return false;
    while (!eat(p, "]")) {
        if (count == t->count) return blanks(p), expect(p, "`]` after %" PRIu32 " elements", count);
        if (!parse_value(p, t->element, at + count * size)) return false;
        count++;
        if (count == 1 && eat(p, ";")) {
            const char *number;
            blanks(p);
            number = p->at;
            if (!parse_integer(p, "int", &copies)) return false;
            if (copies.huge || copies.negative || copies.magnitude != t->count) {
                p->at = number;
                return expect(p, "`%" PRIu32 "` elements", t->count);
            }
            for (i = 1; i < t->count; i++) memcpy(at + i * size, at, size);
            return need(p, "]");
        }
        if (!eat(p, ",")) {
            if (!need(p, "]")) return false;
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
    bool *seen = grow(NULL, t->count);
    uint32_t count = 0, i;
    size_t length;
    bool good = need(p, "{");
    memset(seen, 0, t->count);
    while (good && !eat(p, "}")) {
        blanks(p);
        if (count == t->count) {
            good = expect(p, "`}` after %" PRIu32 " fields", count);
            break;
        }
        i = count;
        length = word(p);
        after = p->at + length;
        while (after < p->end && (*after == ' ' || *after == '\t')) after++;
        if (length && after < p->end && *after == ':') {
            for (i = 0; i < t->count && !(same(t->parts[i].name, p->at, length) && !seen[i]); i++) {}
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
        if (good && !eat(p, ",")) {
            good = need(p, "}");
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
    size_t length = word(p);
    uint32_t i;
    for (i = 0; i < t->count && !same(t->parts[i].name, p->at, length); i++) {}
    if (i == t->count) {
        for (i = 0; i < t->count; i++) expect_name(p, i == 0, "", t->parts[i].name, "");
        return false;
    }
    p->at += length;
    store(at, t->width, i);
    if (t->parts[i].type >= 0) return need(p, "|>") && parse_value(p, t->parts[i].type, at + t->parts[i].offset);
    return !eat(p, "|>") || (need(p, "{") && need(p, "}"));
}

static bool parse_value(parser *p, int32_t type, unsigned char *at)
{
    const qj_type *t = &qj_types[type];
    size_t length;
    blanks(p);
    switch (t->kind) {
    case QJ_UNSIGNED:
    case QJ_SIGNED: return parse_number(p, t, at);
    case QJ_BOOL:
        length = word(p);
        if (!same("true", p->at, length) && !same("false", p->at, length)) return expect(p, "`true` or `false`");
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

typedef enum { MORE, NOTHING_NOW, AT_END } filled;

static filled fill(port *q)
{
    ssize_t count;
    if (q->ended) return AT_END;
    if (!q->regular && !is_ready(q->fd, POLLIN)) return NOTHING_NOW;
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
        fail(FAULT, "cannot read `%s`: %s", q->path ? q->path : "standard input", reason());
    return NOTHING_NOW;
}

/* What is wrong with a line, where, and what it should be. */
static void tell_wrong(port *q, parser *p, const char *name)
{
    uint32_t value;
    size_t size, letters, shown;
    if (trouble_status) return;
    p->at = p->wrong;
    size = token(p);
    put(&p->expected, "", 1);
    fail(FAULT, "%s:%" PRIu64 ":%zu: expected ", name, q->line, columns(p->text, p->wrong));
    puts_to(&trouble, p->expected.data);
    puts_to(&trouble, ", found ");
    letters = columns(p->at, p->at + size) - 1;
    if (used(&p->found)) {
        put(&trouble, p->found.data, used(&p->found));
    } else if (size == 0) {
        puts_to(&trouble, "the end of the line");
    } else {
        for (shown = 0; letters > 24 && columns(p->at, p->at + shown) <= 20; shown += byte_count(p->at[shown])) {}
        puts_to(&trouble, "`");
        put(&trouble, p->at, letters > 24 ? shown : size);
        puts_to(&trouble, letters > 24 ? "...`" : "`");
    }
    help("a line is one message of channel `%s`: ", q->channel->name);
    for (value = 0; value < q->channel->count; value++) {
        puts_to(&trouble, value ? " `" : "`");
        puts_to(&trouble, qj_types[q->channel->values[value].type].name);
        puts_to(&trouble, "`");
    }
    if (q->channel->count == 0) puts_to(&trouble, "nothing");
    puts_to(&trouble, "; values are written as in ESP, separated by blanks");
    free(p->expected.data);
    free(p->found.data);
}

/* Parses a line; 1: a message, 0: nothing, -1: wrong. */
static int parse_line(port *q, const char *line, size_t length, unsigned char *at)
{
    parser p = {.text = line, .at = line, .end = line + length};
    const char *name = q->path ? q->path : "standard input", *before;
    size_t size, i;
    uint32_t value;
    for (i = 0; i < length; i += size) {
        size = character((const unsigned char *)line + i, length - i);
        if (size == 0) {
            fail(FAULT, "%s:%" PRIu64 ":%zu: the text is not UTF-8", name, q->line, columns(line, line + i));
            return -1;
        }
    }
    blanks(&p);
    if ((p.at == p.end && q->channel->count > 0) || (p.end - p.at >= 2 && p.at[0] == '/' && p.at[1] == '/')) return 0;
    memset(at, 0, q->channel->size);
    p.at = line;
    for (value = 0; value < q->channel->count; value++) {
        before = p.at;
        blanks(&p);
        if (value > 0 && p.at == before && p.at < p.end) {
            expect(&p, "a blank between values");
            break;
        }
        if (!parse_value(&p, q->channel->values[value].type, at + q->channel->values[value].offset)) break;
    }
    if (!p.wrong) {
        blanks(&p);
        if (p.at == p.end) return 1;
        expect(&p, "the end of the line");
    }
    tell_wrong(q, &p, name);
    return -1;
}

static offer next_text(port *q, unsigned char *at)
{
    for (;;) {
        char *begin = q->in.data ? q->in.data + q->in.start : NULL;
        size_t pending = used(&q->in), taken;
        char *end = pending > q->scanned ? memchr(begin + q->scanned, '\n', pending - q->scanned) : NULL;
        int outcome;
        if (!end) {
            q->scanned = pending;
            if (pending > LONGEST_LINE) {
                fail(FAULT, "%s:%" PRIu64 ":1: the line is longer than %d bytes", q->path ? q->path : "standard input",
                     q->line + 1, LONGEST_LINE);
                return PENDING;
            }
            switch (fill(q)) {
            case MORE: continue;
            case NOTHING_NOW: return PENDING;
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
    while (used(&q->in) < wanted && (state = fill(q)) == MORE) {}
    memset(at, 0, q->channel->size);
    if (used(&q->in) == 0) {
        if (state == NOTHING_NOW) return PENDING;
        if (q->end_told) return CLOSED;
        q->end_told = true;
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
    length = used(&q->in) < s->bound ? (uint32_t)used(&q->in) : s->bound;
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
    /* A tick waits at the clock, not here: a program that is late gets the latest. */
    size_t capacity = q->kind == TIMER ? 1 : q->capacity;
    if (q->kind == TIMER && q->count != 0 && due_ns(q) <= now) next_tick(q, q->batch, now);
    while (!input_trouble && !q->closed && q->count < capacity) {
        unsigned char *at = q->batch + q->count * q->channel->size;
        offer found = q->kind == TEXT ? next_text(q, at) : q->kind == BYTES ? next_bytes(q, at) : next_tick(q, at, now);
        switch (found) {
        case OFFERED: q->count++; break;
        case CLOSED: q->closed = true; break;
        case PENDING:
            q->wanted = true;
            input_trouble = trouble_status != 0;
            return;
        }
    }
}

/* -- output ------------------------------------------------------------------------------------------------------ */

/* Writes what can be written without waiting. */
static void flush(writer *w)
{
    while (used(&w->out)) {
        size_t size = used(&w->out);
        ssize_t count;
        if (!w->regular) {
            if (!is_ready(w->fd, POLLOUT)) return;
            if (size > PIECE) size = PIECE;
        }
        count = write(w->fd, w->out.data + w->out.start, size);
        if (count >= 0) {
            w->out.start += (size_t)count;
        } else if (errno == EPIPE) {
            exit(0); /* nobody reads any more */
        } else if (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK) {
            return;
        } else {
            fail(FAULT, "cannot write `%s`: %s", w->path ? w->path : "standard output", reason());
            w->out.start = w->out.end;
        }
    }
}

static void flush_all(void)
{
    size_t i;
    for (i = 0; i < writer_count; i++) flush(&writers[i]);
}

/* Writes everything, waiting for whoever reads; after a signal a second at most. */
static void finish(void)
{
    size_t i;
    int patience = 1000;
    for (i = 0; i < writer_count; i++) {
        struct pollfd asked = {.fd = writers[i].fd, .events = POLLOUT, .revents = 0};
        while (flush(&writers[i]), used(&writers[i].out)) {
            if (received && patience <= 0) return;
            poll(&asked, 1, received ? 100 : -1);
            patience -= 100;
        }
    }
}

static void put_bytes(port *q, const unsigned char *at)
{
    const byte_shape *s = &q->shape;
    const qj_type *t = &qj_types[s->type];
    const qj_type *whole = &qj_types[q->channel->values[0].type];
    const char *cause = q->end_told ? "comes after the end of its bytes" : "is not a byte";
    bool wrong = q->end_told;
    const unsigned char *value = at + s->offset;
    if (!wrong && s->tag >= 0) {
        int64_t tag = (int64_t)load(at, whole->width);
        if (tag == s->end_tag) {
            q->end_told = true;
            return;
        }
        wrong = tag != s->tag;
    }
    if (!wrong && s->chunk) {
        put(&q->writer->out, (const char *)value + t->width, load(value, t->width));
        return;
    }
    if (!wrong) {
        int64_t number = t->kind == QJ_SIGNED ? load_signed(value, t->width) : (int64_t)load(value, t->width);
        if (s->tag < 0 && t->kind == QJ_SIGNED && number == -1) {
            q->end_told = true;
            return;
        }
        if (number >= 0 && number <= 255) {
            char byte = (char)number;
            put(&q->writer->out, &byte, 1);
            return;
        }
    }
    {
        buffer text = {NULL, 0, 0, 0};
        print_value(&text, q->channel->values[0].type, at);
        put(&text, "", 1);
        fail(FAULT, "`%s` on channel `%s` %s", text.data, q->channel->name, cause);
        help("the `bytes` driver writes 0 to 255, then once -1 or `eos`, as it reads them; `text:` writes any message");
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
            if (value) put(&q->writer->out, " ", 1);
            print_value(&q->writer->out, q->channel->values[value].type, at + q->channel->values[value].offset);
        }
        put(&q->writer->out, "\n", 1);
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
    /* The last type that was looked at is not the one that was found. */
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

/* What a driver's text says; false after a message. */
static void choose(port *q, const char *driver)
{
    const char *argument = strchr(driver, ':');
    size_t name = argument ? (size_t)(argument - driver) : strlen(driver);
    argument = argument ? argument + 1 : "";
    if (same("data", driver, name)) {
        if (q->kind == TIMER) q->kind = TEXT;
    } else if (same("text", driver, name)) {
        q->kind = TEXT;
    } else if (same("bytes", driver, name)) {
        q->kind = BYTES;
    } else if (same("timer", driver, name)) {
        q->kind = TIMER;
        if (!q->channel->from_world) {
            fail(USAGE, "channel `%s`: a timer cannot take messages", q->channel->name);
            die();
        }
        if (!parse_timer(q, argument)) {
            fail(USAGE, "`%s` is no timer", driver);
            help("write a period and, if the channel shall close, a number of ticks: `timer:10ms` or `timer:2s,5`");
            die();
        }
        return;
    } else {
        fail(USAGE, "channel `%s`: there is no driver `%.*s`", q->channel->name, (int)name, driver);
        help("choose another with `--bind %s=text:PATH`; an executable has `text:PATH`, `bytes:PATH` and `timer:10ms`",
             q->channel->name);
        die();
    }
    if (!*argument) {
        fail(USAGE, "driver `%s` names no file", driver);
        die();
    }
    q->path = strcmp(argument, "-") ? argument : NULL;
}

static int open_path(const char *path, int flags, const char *doing, bool *regular)
{
    struct stat info;
    int fd = path ? open(path, flags | O_CLOEXEC, 0666) : flags == O_RDONLY ? 0 : 1;
    if (fd < 0 || fstat(fd, &info) < 0 || S_ISDIR(info.st_mode)) {
        if (fd >= 0) errno = EISDIR;
        fail(WRONG, "cannot %s `%s`: %s", doing, path ? path : "standard input or output", reason());
        die();
    }
    *regular = S_ISREG(info.st_mode);
    return fd;
}

static void open_ports(void)
{
    const char *standard = NULL;
    uint32_t i;
    size_t w;
    /* Ports point into it. */
    writers = grow(NULL, sizeof *writers * qj_sinks);
    for (i = 0; i < qj_sources + qj_sinks; i++) {
        port *q = &ports[i];
        q->capacity = (1 << 18) / q->channel->size;
        if (q->capacity < 1) q->capacity = 1;
        if (q->capacity > BATCH) q->capacity = BATCH;
        q->batch = grow(NULL, q->capacity * q->channel->size);
        if (q->kind == BYTES && !find_shape(q)) {
            fail(USAGE, "driver `bytes` cannot serve channel `%s`: its messages are not bytes", q->channel->name);
            help("use `--bind %s=text:PATH`", q->channel->name);
            die();
        }
        if (q->kind == TIMER) {
            const qj_type *t = q->channel->count ? &qj_types[q->channel->values[0].type] : NULL;
            if (q->channel->count > 1 || (t && t->kind != QJ_UNSIGNED && t->kind != QJ_SIGNED)) {
                fail(USAGE, "driver `timer` cannot serve channel `%s`", q->channel->name);
                help("a timer's channel carries nothing, `()`, or one integer, the number of the tick");
                die();
            }
        } else if (q->channel->from_world) {
            if (!q->path && standard) {
                fail(USAGE, "channels `%s` and `%s` would both read standard input", standard, q->channel->name);
                help("bind one of them elsewhere, as in `--bind %s=text:PATH`", q->channel->name);
                die();
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
        fprintf(to, "  %s, %s, %s\n", ports[i].channel->name, ports[i].channel->from_world ? "input" : "output",
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
            exit(USAGE);
        }
        if (!binding) {
            if (strcmp(value, "real") && strcmp(value, "virtual")) {
                fprintf(stderr, "error: `--clock` is `real` or `virtual`\n");
                exit(USAGE);
            }
            virtual_clock = !strcmp(value, "virtual");
            continue;
        }
        value = strchr(binding, '=');
        for (c = 0; c < all && !(value && same(ports[c].channel->name, binding, (size_t)(value - binding))); c++) {}
        if (c == all) {
            fprintf(stderr, "error: `%s` binds no external channel\n", binding);
            usage(stderr);
            exit(USAGE);
        }
        /* The default says whether `data:` is text or bytes. */
        ports[c].kind = !strncmp(ports[c].channel->driver, "bytes:", 6) ? BYTES : TEXT;
        ports[c].driver = value + 1;
        choose(&ports[c], value + 1);
    }
    for (c = 0; c < all; c++) {
        if (!ports[c].driver) choose(&ports[c], ports[c].channel->driver);
    }
}

/* -- running ----------------------------------------------------------------------------------------------------- */

static void on_signal(int number)
{
    int kept = errno;
    if (received) {
        signal(number, SIG_DFL);
        raise(number);
    }
    received = number;
    if (write(bell[1], "!", 1) < 0) {
        /* The flag is seen all the same. */
    }
    /* A program may compute on and on, and look at no flag. */
    qj_leave_step();
    errno = kept;
}

static void listen_to_signals(void)
{
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = on_signal;
    if (pipe(bell) < 0) bell[0] = -1;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

static void stop_by_signal(void)
{
    finish();
    signal(received, SIG_DFL);
    raise(received);
}

static void wait_for_news(int64_t wake)
{
    struct pollfd *asked = grow(NULL, sizeof *asked * (qj_sources + qj_sinks + 1));
    struct timespec left;
    nfds_t count = 0;
    uint32_t i;
    size_t w, held = 0;
    int64_t pause;
    int news, timeout;
    for (w = 0; w < writer_count; w++) held += used(&writers[w].out) > 0;
    flush_all();
    for (w = 0; w < writer_count; w++) held -= used(&writers[w].out) > 0;
    if (held) {
        /* There is room again: a channel that was busy may be ready. */
        free(asked);
        return;
    }
    asked[count++] = (struct pollfd){.fd = bell[0], .events = POLLIN, .revents = 0};
    for (i = 0; i < qj_sources; i++) {
        if (!ports[i].wanted) continue;
        if (ports[i].kind != TIMER) asked[count++] = (struct pollfd){.fd = ports[i].fd, .events = POLLIN, .revents = 0};
        else if (due_ns(&ports[i]) < wake) wake = due_ns(&ports[i]);
    }
    for (w = 0; w < writer_count; w++) {
        if (used(&writers[w].out)) asked[count++] = (struct pollfd){.fd = writers[w].fd, .events = POLLOUT, .revents = 0};
    }
    if (trouble_status || received) {
        free(asked);
        return;
    }
    if (wake == ESP_NEVER) {
        timeout = -1;
    } else if (virtual_clock) {
        timeout = 0;
    } else {
        /* poll counts milliseconds: the rest of the last one is slept through when nothing else is waited for. */
        pause = wake - now_ns();
        timeout = pause <= 0 ? 0 : pause / 1000000 > 1000000000 ? 1000000000 : (int)(pause / 1000000);
    }
    news = poll(asked, count, timeout);
    if (news == 0 && wake != ESP_NEVER) {
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
    free(asked);
}

/* The most names of one kind in a message. */
#define NAMES 6

/* Whom an instance waits for, of those that have not ended. */
static void tell_partners(void *state, esp_pid instance, const qj_wait *wait)
{
    esp_pid found[NAMES];
    uint32_t k, all = 0, shown;
    if (!wait->channel) {
        fprintf(stderr, "      for a guard that stays false\n");
        return;
    }
    if (wait->world) {
        fprintf(stderr, "      for %s\n", wait->world);
        return;
    }
    for (k = 0; k < wait->partners; k++) {
        const qj_instances_of *range = &qj_partners[wait->partner + k];
        esp_pid i;
        for (i = range->first; i < range->first + range->count; i++) {
            const esp_location place = qj_program->place(state, i);
            if (i == instance || (place.line == 0 && wait->member == NOBODY)) continue;
            if (all < NAMES) found[all] = i;
            all++;
        }
    }
    shown = all < NAMES ? all : NAMES;
    fprintf(stderr, "      for ");
    for (k = 0; k < shown; k++) {
        if (k != 0) fputs(all > shown ? ", " : " or ", stderr);
        fprintf(stderr, "`%s`", qj_instance_names[found[k]]);
    }
    if (all == 0) fprintf(stderr, "nobody who is left");
    if (all > shown) fprintf(stderr, " or one of %" PRIu32 " more", all - shown);
    fprintf(stderr, " to %s `%s`\n", wait->verb, wait->channel);
}

static void tell_place(esp_pid instance, uint32_t file, uint32_t line, uint32_t column)
{
    fprintf(stderr, "  `%s` waits at %s:%" PRIu32 ":%" PRIu32 "\n", qj_instance_names[instance], qj_file_names[file], line,
            column);
}

/* Whether an instance is stuck at a wait: itself, or the fused process that does what it does. */
static bool is_stuck_at(void *state, esp_pid instance, const qj_wait *wait)
{
    const esp_pid owner = wait->member == NOBODY ? instance : wait->first;
    if (wait->member == NOBODY ? instance - wait->first >= wait->count : wait->member != instance) return false;
    return qj_program->stuck(state, owner) && qj_program->open(state, owner, wait->branch);
}

/* Whether a stuck instance is a fused process, whose members are told of instead. */
static bool is_fused(void *state, esp_pid instance)
{
    const qj_wait *wait;
    for (wait = qj_waits; wait->count != 0; wait++) {
        if (wait->member != NOBODY && wait->first == instance && qj_program->open(state, instance, wait->branch)) {
            return true;
        }
    }
    return false;
}

/* Whether an instance is to be told of as one that waits for ever. */
static bool is_told(void *state, esp_pid instance)
{
    const qj_wait *wait;
    if (qj_program->stuck(state, instance)) return !is_fused(state, instance);
    for (wait = qj_waits; wait->count != 0; wait++) {
        if (wait->member == instance && is_stuck_at(state, instance, wait)) return true;
    }
    return false;
}

/* What the first of those who wait waits for; NULL if that is a guard. */
static const qj_wait *first_wait(void *state)
{
    const qj_wait *wait;
    esp_pid i;
    for (i = 0; i < qj_instances && !is_told(state, i); i++) { }
    for (wait = qj_waits; wait->count != 0; wait++) {
        if (is_stuck_at(state, i, wait)) return wait;
    }
    return NULL;
}

static void tell_waits(void *state)
{
    esp_pid i;
    for (i = 0; i < qj_instances; i++) {
        const qj_wait *wait, *last = NULL;
        if (!is_told(state, i)) continue;
        for (wait = qj_waits; wait->count != 0; wait++) {
            if (!is_stuck_at(state, i, wait)) continue;
            if (!last || last->file != wait->file || last->line != wait->line || last->column != wait->column) {
                tell_place(i, wait->file, wait->line, wait->column);
            }
            last = wait;
            tell_partners(state, i, wait);
        }
        if (!last) {
            esp_location place = qj_program->place(state, i);
            tell_place(i, place.file, place.line, place.column);
            fprintf(stderr, "      for a guard that stays false\n");
        }
    }
}

/* In the words of `qj run`. */
static void tell_fault(void *state)
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
            if (!is_told(state, i)) continue;
            if (all < NAMES) fprintf(stderr, "%s`%s`", all == 0 ? "" : ", ", qj_instance_names[i]);
            all++;
        }
        if (all > NAMES) fprintf(stderr, " and %" PRIu32 " more", all - NAMES);
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
    if (report.code == ESP_FAULT_DEADLOCK) tell_waits(state);
    if (fault->help) fprintf(stderr, "help: %s\n", fault->help);
}

/* Standard streams that are closed are empty and take everything, as for `qj run`; nor may a file get their numbers. */
static void open_standard_streams(void)
{
    int fd;
    for (fd = 0; fd < 3; fd++) {
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) exit(WRONG);
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
    ports = grow(NULL, sizeof *ports * all);
    memset(ports, 0, sizeof *ports * all);
    for (i = 0; i < all; i++) ports[i].channel = &qj_channels[i];
    read_arguments(count, words);
    open_ports();
    listen_to_signals();
    /* malloc aligns for every type. */
    state = grow(NULL, qj_program->state_size);
    sources = grow(NULL, sizeof *sources * qj_sources);
    taken = grow(NULL, sizeof *taken * qj_sources);
    output = grow(NULL, sizeof *output + sizeof output->sinks[0] * qj_sinks);
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
            if (used(&q->writer->out) >= CHUNK) flush(q->writer);
            output->sinks[i] = (esp_sink){q->batch, used(&q->writer->out) >= CHUNK ? 0 : q->capacity, 0, false};
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
            finish();
            if (!trouble_status || input_trouble) return output->head.exit_status;
        }
        if (status == ESP_FAULT) {
            finish();
            tell_fault(state);
            return FAULT;
        }
        /* With room for more messages, which may be there already, it is too early to sleep. */
        if (trouble_status && (!input_trouble || (status == ESP_SLEEP && !refill))) {
            finish();
            die();
        }
        /* A program that only computes may do so for ever. */
        if (status == ESP_AGAIN && !refill) flush_all();
        if (status == ESP_SLEEP && !refill) wait_for_news(output->head.wake);
        if (received) stop_by_signal();
    }
}
