/* quaject/esp.h: the run-time header of generated ESP programs. C99, freestanding: no library, no allocation.
 *
 *   esp_init(&t);  for (;;) { esp_status s = esp_step(&t, in, out, now); ... }
 *
 * Each generated header declares its own `esp_t`, `esp_init` and `esp_step` (with the program's prefix); what all
 * programs share is here. SPDX-License-Identifier: MIT OR Apache-2.0
 */
#ifndef QUAJECT_ESP_H
#define QUAJECT_ESP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Version of this interface; a generated program names the one it was made for. */
#define ESP_ABI 2

/* Monotonic time in nanoseconds since some fixed moment. */
typedef int64_t esp_time;
#define ESP_NEVER INT64_MAX

/* An instance: processes in order of text, replicas in order of number. */
typedef uint32_t esp_pid;

/* The state of the program after a step. */
typedef enum esp_status {
    ESP_SLEEP = 0, /* nothing can happen before an external event or the time `wake` */
    ESP_AGAIN = 1, /* more can happen now: step again (after taking the output, if it is full). Also returned at
                      intervals during a long computation, so that the caller stays in control */
    ESP_DONE = 2,  /* the program has ended; `exit_status` is its status */
    ESP_FAULT = 3  /* the program has stopped at a fault */
} esp_status;

typedef enum esp_fault_code {
    ESP_FAULT_NONE = 0,
    ESP_FAULT_ASSERT = 1,
    ESP_FAULT_BOUNDS = 2,
    ESP_FAULT_DIV = 3,
    ESP_FAULT_OVERFLOW = 4,
    ESP_FAULT_POOL = 5,
    ESP_FAULT_RANGE = 6,
    ESP_FAULT_MEMORY = 7,
    ESP_FAULT_ALT = 8,
    ESP_FAULT_DEADLOCK = 9,
    ESP_FAULT_EXTERN = 10
} esp_fault_code;

/* A location in the source: `file` indexes the program's file names, `line` and `column` count from 1. */
typedef struct esp_location {
    uint16_t file;
    uint16_t column;
    uint32_t line;
    int32_t channel; /* -1: none */
} esp_location;

/* A fault: which instance, where, what. For a deadlock it is the first instance that is blocked forever. */
typedef struct esp_fault_report {
    uint32_t code; /* esp_fault_code */
    esp_pid instance;
    esp_location place;
} esp_fault_report;

/* Messages that the environment offers on one channel, oldest first, and whether it closes the channel after them. */
typedef struct esp_source {
    const void *messages;
    size_t count;
    bool closed;
} esp_source;

/* Room for messages that the environment reads from one channel. `closed`: it will never read again. */
typedef struct esp_sink {
    void *messages;
    size_t capacity;
    size_t count;
    bool closed;
} esp_sink;

/* The head of every program's `esp_output`; the program's sinks follow. */
typedef struct esp_output_head {
    size_t *taken;       /* per source, how many messages were taken; the step adds to it. May be null if no source */
    size_t limit;        /* at least this many messages put: return ESP_AGAIN. 0: no limit */
    esp_time wake;       /* ESP_SLEEP: the earliest deadline, or ESP_NEVER */
    int32_t exit_status; /* ESP_DONE: 0 to 255 */
} esp_output_head;

/* One line of a trace: what was chosen. `r I`, `c S b R b2`, `i I b`, `o I b`, `a I b`, `e I`. */
typedef void esp_trace_function(void *user, char kind, uint32_t i, uint32_t b, uint32_t j, uint32_t b2);

/* What a shared library made of a program in the sans-IO style exports. */
typedef struct esp_library {
    uint32_t abi; /* ESP_ABI */
    uint32_t instances;
    uint32_t sources;
    uint32_t sinks;
    size_t state_size;
    void (*init)(void *state);
    esp_status (*step)(void *state, const esp_source *sources, esp_output_head *output, esp_time now);
    esp_fault_report (*fault)(const void *state);
    /* Where an instance waits; line 0 if it does not wait. */
    esp_location (*place)(const void *state, esp_pid instance);
    /* After a deadlock: whether the instance is blocked forever. */
    bool (*stuck)(const void *state, esp_pid instance);
    /* Whether the instance waits at this branch and the branch is open. All branches of its process are counted from
       0, in the order of the IR's blocks. */
    bool (*open)(const void *state, esp_pid instance, uint32_t branch);
    /* Null unless generated with traces. */
    void (*trace)(void *state, esp_trace_function *function, void *user);
} esp_library;

#ifdef __cplusplus
}
#endif

/* -- What generated code uses -------------------------------------------------------------------------------- */

#define ESP_CONCAT_(a, b) a##b
#define ESP_CONCAT(a, b) ESP_CONCAT_(a, b)
#if defined(__cplusplus) && __cplusplus >= 201103L
#define ESP_ASSERT(name, condition) static_assert(condition, #name)
#else
#define ESP_ASSERT(name, condition) typedef char ESP_CONCAT(esp_assert_, name)[(condition) ? 1 : -1]
#endif

/* With ESP_OPTIONAL_EXTERNS, extern functions may be left undefined; calling one is then the fault `extern`. */
#ifdef ESP_OPTIONAL_EXTERNS
#define ESP_MISSING(function) (!(function))
#else
#define ESP_MISSING(function) 0
#endif

/* With ESP_INTERRUPTIBLE, a host may leave a step in the middle, from a signal handler, and continue with what was sent
 * until then: a message is in its sink before it is counted, and counted before anything else is done. `esp_outside` is
 * set while an extern function runs, which must not be left. */
#ifdef ESP_INTERRUPTIBLE
extern volatile int esp_outside;
void esp_inside(void);
#define ESP_OUTSIDE(call) do { esp_outside = 1; call; esp_inside(); } while (0)
#else
#define ESP_OUTSIDE(call) call
#endif
#if defined(ESP_INTERRUPTIBLE) && defined(__OPTIMIZE__) && (defined(__GNUC__) || defined(__clang__))
#define ESP_STORED(x) __asm__ volatile("" : : "m"(x))
#else
#define ESP_STORED(x) ((void)0)
#endif
#define ESP_PUT(sink) \
    do { ESP_STORED((sink).messages[(sink).count]); (sink).count++; ESP_STORED((sink).count); } while (0)

/* Bit `number`, 0 to 31, of a word of 32 bits; `int` may have 16. */
#define ESP_BIT(number) ((uint32_t)1 << (number))

/* Index of a ring between an interrupt and the program: the machine reads and writes it in one access. */
#if SIG_ATOMIC_MAX >= 0x7fffffff
typedef uint32_t esp_index;
#elif SIG_ATOMIC_MAX >= 0x7fff
typedef uint16_t esp_index;
#else
typedef uint8_t esp_index;
#endif
/* The longest ring: the number of its messages is a difference of indices. */
#define ESP_MAX_RING (((esp_index)-1 >> 1) + 1u)

/* Result of a function that preempts a waiting `pri alt`: it has sent a message to the environment. */
#define ESP_SENT 0x80000000u

/* Sizes and offsets are asserted where integers are aligned to their sizes: not on i386 (64-bit integers to 4 bytes),
 * m68k (all to 2 bytes) and AVR (1 byte). */
struct esp_aligned { uint8_t head; uint64_t word; };
#define ESP_LAYOUT(name, condition) ESP_ASSERT(name, offsetof(struct esp_aligned, word) != 8 || (condition))

#if defined(__GNUC__) || defined(__clang__)
#define ESP_LIKELY(x) (__builtin_expect(!!(x), 1) != 0)
#define ESP_UNLIKELY(x) (__builtin_expect(!!(x), 0) != 0)
#define ESP_UNREACHABLE __builtin_unreachable()
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define ESP_LITTLE_ENDIAN 1
#endif
#define ESP_INLINE static inline __attribute__((unused))
#define ESP_OUTLINE static __attribute__((noinline, cold, unused))
#define ESP_NOINLINE static __attribute__((noinline))
/* A function whose basic blocks stay in the order of the text, and whose values are stored one by one. GCC's static
 * profile takes nested loops for the hottest code and moves the code that handles most bytes behind them; its SLP
 * vectoriser keeps pairs of values in a vector register through all iterations, to store them together on exit. */
#if __GNUC__ >= 6 && defined(__OPTIMIZE__) && !defined(__clang__) && !defined(__TINYC__)
#define ESP_IN_ORDER \
    static __attribute__((noinline, optimize("no-tree-slp-vectorize", "reorder-blocks-algorithm=simple")))
#else
#define ESP_IN_ORDER ESP_NOINLINE
#endif
/* A variable that takes no register from the loops in its scope; where the C is compiled for size, it may. */
#ifdef __OPTIMIZE_SIZE__
#define ESP_IN_MEMORY
#else
#define ESP_IN_MEMORY volatile
#endif
#define ESP_UNUSED __attribute__((unused))
#define ESP_WEAK __attribute__((weak))
#define ESP_EXPORT __attribute__((visibility("default")))
/* Orders the ring's slots and its indices between an interrupt and the program on one core, or two on a machine
 * with caches: a full barrier is enough for both. */
#define ESP_BARRIER() __sync_synchronize()
#else
#define ESP_LIKELY(x) (x)
#define ESP_UNLIKELY(x) (x)
#define ESP_UNREACHABLE break
#define ESP_INLINE static inline
#define ESP_OUTLINE static
#define ESP_NOINLINE static
#define ESP_IN_ORDER static
#define ESP_IN_MEMORY
#define ESP_UNUSED
#define ESP_WEAK
#define ESP_EXPORT
#ifndef ESP_BARRIER
/* Volatile accesses alone: enough for an interrupt on the same core. Define ESP_BARRIER for more. */
#define ESP_BARRIER() ((void)0)
#endif
#endif

/* Inline, but out of line where the C is compiled for size. */
#if defined(__OPTIMIZE_SIZE__)
#define ESP_SHARED static __attribute__((noinline, unused))
#else
#define ESP_SHARED ESP_INLINE
#endif

/* `>>` copies the sign and conversions keep the low bits, as every compiler in use does. */
ESP_ASSERT(shift_copies_sign, (-1 >> 1) == -1);
ESP_ASSERT(conversion_keeps_low_bits, (int8_t)0x1ff == -1);

ESP_INLINE void esp_copy(void *to, const void *from, size_t bytes)
{
#if defined(__GNUC__) || defined(__clang__)
    __builtin_memmove(to, from, bytes);
#else
    unsigned char *t = (unsigned char *)to;
    const unsigned char *f = (const unsigned char *)from;
    if ((uintptr_t)t <= (uintptr_t)f) {
        while (bytes-- > 0u) { *t++ = *f++; }
    } else {
        while (bytes-- > 0u) { t[bytes] = f[bytes]; }
    }
#endif
}

/* Copies a value of `bytes`; both lengths are `uint16_t`, and there is room. */
#if defined(__OPTIMIZE_SIZE__)
ESP_SHARED void esp_copy_bytes(void *to, const void *from)
{
    esp_copy(to, from, sizeof(uint16_t) + *(const uint16_t *)from);
}
#define ESP_COPY_BYTES(to, from) esp_copy_bytes(&(to), &(from))
#else
#define ESP_COPY_BYTES(to, from) ((to).length = (from).length, esp_copy((to).data, (from).data, (to).length))
#endif

ESP_INLINE void esp_zero(void *to, size_t bytes)
{
#if defined(__GNUC__) || defined(__clang__)
    __builtin_memset(to, 0, bytes);
#else
    unsigned char *t = (unsigned char *)to;
    while (bytes-- > 0u) { *t++ = 0; }
#endif
}

ESP_INLINE bool esp_same(const void *a, const void *b, size_t bytes)
{
    const unsigned char *x = (const unsigned char *)a;
    const unsigned char *y = (const unsigned char *)b;
    while (bytes-- > 0u) {
        if (*x++ != *y++) { return false; }
    }
    return true;
}

/* Index of the lowest set bit; the word is not 0. */
ESP_INLINE uint32_t esp_lowest(uint32_t word)
{
#if defined(__GNUC__) || defined(__clang__)
    return (uint32_t)(sizeof(unsigned) < sizeof word ? __builtin_ctzl(word) : __builtin_ctz((unsigned)word));
#else
    uint32_t index = 0;
    while ((word & 1u) == 0u) {
        word >>= 1;
        index++;
    }
    return index;
#endif
}

ESP_INLINE uint64_t esp_load_be(const uint8_t *p, uint32_t bytes)
{
    uint64_t value = 0;
    uint32_t i;
    for (i = 0; i < bytes; i++) { value = value << 8 | p[i]; }
    return value;
}

ESP_INLINE uint64_t esp_load_le(const uint8_t *p, uint32_t bytes)
{
    uint64_t value = 0;
    uint32_t i;
#ifdef ESP_LITTLE_ENDIAN
    /* Compilers do not always merge byte loads into one. */
    if (bytes == 8u) {
        __builtin_memcpy(&value, p, 8);
        return value;
    }
    if (bytes == 4u) {
        uint32_t half;
        __builtin_memcpy(&half, p, 4);
        return half;
    }
#endif
    for (i = 0; i < bytes; i++) {
        const uint32_t shift = 8u * i;
        value |= (uint64_t)p[i] << shift;
    }
    return value;
}

ESP_INLINE void esp_store_be(uint8_t *p, uint32_t bytes, uint64_t value)
{
    uint32_t i;
    for (i = bytes; i-- > 0u; value >>= 8) { p[i] = (uint8_t)value; }
}

ESP_INLINE void esp_store_le(uint8_t *p, uint32_t bytes, uint64_t value)
{
    uint32_t i;
#ifdef ESP_LITTLE_ENDIAN
    if (bytes == 8u) {
        __builtin_memcpy(p, &value, 8);
        return;
    }
#endif
    for (i = 0; i < bytes; i++, value >>= 8) { p[i] = (uint8_t)value; }
}

/* `width` bits from bit `offset` on, most significant first; a field of 64 bits may touch 9 bytes. */
ESP_INLINE uint64_t esp_load_bits(const uint8_t *p, uint32_t offset, uint32_t width)
{
    uint64_t value = 0;
    while (width > 0u) {
        uint32_t room = 8u - offset % 8u;
        uint32_t take = width < room ? width : room;
        uint32_t part = ((uint32_t)p[offset / 8u] >> (room - take)) & ((1u << take) - 1u);
        value = value << take | part;
        offset += take;
        width -= take;
    }
    return value;
}

ESP_INLINE void esp_store_bits(uint8_t *p, uint32_t offset, uint32_t width, uint64_t value)
{
    while (width > 0u) {
        uint32_t room = 8u - offset % 8u;
        uint32_t take = width < room ? width : room;
        uint32_t mask = ((1u << take) - 1u) << (room - take);
        uint32_t part;
        width -= take;
        part = (uint32_t)(value >> width) << (room - take);
        p[offset / 8u] = (uint8_t)((p[offset / 8u] & ~mask) | (part & mask));
        offset += take;
    }
}

/* For `--checked`: whether the exact result lies outside min..max. */
ESP_INLINE bool esp_add_overflows(int64_t a, int64_t b, int64_t min, int64_t max)
{
    return b >= 0 ? a > max - b : a < min - b;
}

ESP_INLINE bool esp_subtract_overflows(int64_t a, int64_t b, int64_t min, int64_t max)
{
    return b >= 0 ? a < min + b : a > max + b;
}

ESP_INLINE bool esp_multiply_overflows(int64_t a, int64_t b, int64_t min, int64_t max)
{
    if (a == 0 || b == 0) { return false; }
    if (a == -1) { return b < -max; }
    if (b == -1) { return a < -max; }
    if (a > 0) { return b > 0 ? a > max / b : b < min / a; }
    return b > 0 ? a < min / b : a < max / b;
}

/* INT64_MIN, without a macro that some tools define by a constant outside of every type. */
#define ESP_MIN_INT64 (-INT64_MAX - 1)

/* Sums, differences and products of durations and times: a result outside 64 bits is the nearest number inside. */
ESP_INLINE int64_t esp_saturating_add(int64_t a, int64_t b)
{
    /* The sum overflows if both operands have the other sign. */
    int64_t sum = (int64_t)((uint64_t)a + (uint64_t)b);
    if (((a ^ sum) & (b ^ sum)) < 0) { return a < 0 ? ESP_MIN_INT64 : INT64_MAX; }
    return sum;
}

ESP_INLINE int64_t esp_saturating_subtract(int64_t a, int64_t b)
{
    /* The difference overflows if it and `b` have the other sign than `a`. */
    int64_t difference = (int64_t)((uint64_t)a - (uint64_t)b);
    if (((a ^ b) & (a ^ difference)) < 0) { return a < 0 ? ESP_MIN_INT64 : INT64_MAX; }
    return difference;
}

ESP_INLINE int64_t esp_saturating_multiply(int64_t a, int64_t b)
{
    if (esp_multiply_overflows(a, b, ESP_MIN_INT64, INT64_MAX)) {
        return (a < 0) == (b < 0) ? INT64_MAX : ESP_MIN_INT64;
    }
    return a * b;
}

/* now + amount * unit, kept within the range of esp_time. */
ESP_INLINE esp_time esp_deadline(esp_time now, int64_t amount, int64_t unit)
{
    if (amount <= 0) { return now; }
    if (amount > INT64_MAX / unit) { return ESP_NEVER; }
    amount *= unit;
    return now > INT64_MAX - amount ? ESP_NEVER : now + amount;
}

#endif
