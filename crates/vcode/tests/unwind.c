/* As unwind.cpp, for machines whose tests have no compiler of C++: generated code calls back, what it calls looks at
   the stack and unwinds it, and cleanups above the generated code run. What the registers that survive calls held has
   to be there again. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unwind.h>

extern void __register_frame(void *);

static uintptr_t code_begin, code_end;
static int generated_frames, frames_above;

static _Unwind_Reason_Code look(struct _Unwind_Context *context, void *unused) {
    (void)unused;
    const uintptr_t at = _Unwind_GetIP(context);
    if (at >= code_begin && at < code_end) generated_frames++;
    else if (generated_frames) frames_above++;
    return _URC_NO_REASON;
}

static struct _Unwind_Exception thrown;
static long thrown_value;
static jmp_buf caught;
/* The number of the call that is under way, of values that its registers kept, and of those that they lost. */
static volatile long argument;
static int kept, lost;
static uint64_t kept_float;

/* Ends the unwinding above the frame that has cleaned up. */
static _Unwind_Reason_Code stop(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
                                struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *unused) {
    (void)version, (void)class, (void)exception, (void)context, (void)unused;
    if (kept + lost || actions & _UA_END_OF_STACK) longjmp(caught, 1);
    return _URC_NO_REASON;
}

static long throws(long a, long b, long c, long d, long e, long f, long g, long h, long i, long last) {
    (void)c, (void)d, (void)e, (void)f, (void)g, (void)h, (void)i;
    _Unwind_Backtrace(look, NULL);
    if (a % 2 == 0) return a + b + last;
    thrown_value = a + b + last;
    _Unwind_ForcedUnwind(&thrown, stop, NULL);
    abort();
}

/* The first floating register that survives calls: the generated function keeps a double in it. The compiler has no use
   for it here. */
static inline uint64_t first_saved_float(void) {
    uint64_t bits = 0;
#if defined(__alpha__)
    __asm__ volatile("stt $f2,0(%0)" ::"r"(&bits) : "memory");
#elif defined(__mips__)
    __asm__ volatile("sdc1 $f20,0(%0)" ::"r"(&bits) : "memory");
#elif defined(__powerpc64__)
    __asm__ volatile("stfd 14,0(%0)" ::"b"(&bits) : "memory");
#endif
    return bits;
}

static inline __attribute__((always_inline)) void check(int is_kept) {
    if (is_kept) kept++;
    else lost++;
}

/* What is done at the end of a variable's scope, by return and by unwinding: its value has to be this multiple.
   Inlined, so that the variable stays in a register. */
#define MULTIPLE(factor)                                                                 \
    static inline __attribute__((always_inline)) void is_multiple_##factor(long *value) { \
        __asm__ volatile("" : "+r"(*value));                                             \
        check(*value == argument * factor);                                              \
    }
MULTIPLE(3) MULTIPLE(5) MULTIPLE(7) MULTIPLE(11) MULTIPLE(13)

static inline __attribute__((always_inline)) void is_last_multiple(long *value) {
    check(first_saved_float() == kept_float);
    check(*value == argument * 17);
}

typedef long (*function_type)(void *, long, double);

/* Values in registers while the call is under way; the compiler cannot make them again afterwards. */
static __attribute__((noinline)) long call(function_type function, long x) {
#define KEPT(cleaning) __attribute__((cleanup(cleaning)))
    KEPT(is_multiple_3) long a = x * 3;
    KEPT(is_multiple_5) long b = x * 5;
    KEPT(is_multiple_7) long c = x * 7;
    KEPT(is_multiple_11) long d = x * 11;
    KEPT(is_multiple_13) long e = x * 13;
    KEPT(is_last_multiple) long f = x * 17;
    __asm__ volatile("" : "+r"(a), "+r"(b), "+r"(c), "+r"(d), "+r"(e), "+r"(f));
    kept_float = first_saved_float();
    return function((void *)throws, x, (double)x + 1.5);
}

static __attribute__((noinline)) long result_of(function_type function, long x) {
    if (setjmp(caught)) return -thrown_value;
    return call(function, x);
}

static void *read_all(const char *path, size_t *length, void *at) {
    FILE *file = fopen(path, "rb");
    if (!file) { perror(path); exit(2); }
    void *bytes = mmap(at, 1 << 16, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *length = fread(bytes, 1, 1 << 16, file);
    fclose(file);
    __builtin___clear_cache((char *)bytes, (char *)bytes + *length);
    return bytes;
}

/* unwind CODE FRAMES ENTRY ADDRESS */
int main(int argc, char **argv) {
    if (argc != 5) return 2;
    size_t length, frames_length;
    const uintptr_t at = strtoul(argv[4], NULL, 0);
    void *code = read_all(argv[1], &length, (void *)at);
    if ((uintptr_t)code != at) { fprintf(stderr, "no memory at %#lx\n", (long)at); return 2; }
    __register_frame(read_all(argv[2], &frames_length, NULL));
    code_begin = at;
    code_end = at + length;
    const function_type function = (function_type)(at + strtoul(argv[3], NULL, 0));
    for (long x = 0; x < 20; x++) {
        generated_frames = frames_above = kept = lost = 0;
        argument = x;
        const long called = x + (x + 1) + 100, expected = x % 2 ? -called : called + x + 1;
        const long found = result_of(function, x);
        if (found != expected) { printf("%ld: %ld instead of %ld\n", x, found, expected); return 1; }
        if (kept != 7 || lost) { printf("%ld: %d values are kept, %d lost\n", x, kept, lost); return 1; }
        if (generated_frames != 1 || frames_above < 2) {
            printf("%ld: %d generated frames, %d above\n", x, generated_frames, frames_above);
            return 1;
        }
    }
    puts("unwound");
    return 0;
}
