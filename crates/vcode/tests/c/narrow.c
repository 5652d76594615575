/* Values of 8 and 16 bits between generated code and C: parameters in registers and on the stack, results, arguments
   and constants of calls. Conventions differ in which side extends them; each side must see the value that C has. */
#include <quaject/vcode.h>
#include <stdio.h>
#include <stdlib.h>

static v_reg p[12];
static int wrong;

/* Memory of its own for each function: emulators do not see that code is replaced through another mapping. */
static struct v_code *storage(void) {
    struct v_code *code = v_code_new(2048);
    if (!code) exit(2);
    return code;
}

static void check(const char *what, long got, long wanted) {
    if (got == wanted) return;
    printf("%s: %ld instead of %ld\n", what, got, wanted);
    wrong = 1;
}

static const int values[] = {0, 1, -1, 5, 127, 128, -128, -129, 250, 255, 256, 300, 32767, 32768, -32768, 65000, 65535, 65536,
                             0x12345678, -0x12345678, INT32_MAX, INT32_MIN};
enum { VALUES = sizeof values / sizeof values[0] };

/* What C functions got, widened by a compiler that may rely on their callers. */
static volatile long got[12];
__attribute__((noinline)) static void take(signed char a, unsigned char b, short c, unsigned short d, unsigned e, int f) {
    got[0] = a, got[1] = b, got[2] = c, got[3] = d, got[4] = (long)(e % 1000), got[5] = f;
}
__attribute__((noinline)) static void take_more(long a, long b, long c, long d, long e, long f, long g, long h,
                                                signed char i, unsigned char j, short k, unsigned short l) {
    got[0] = i, got[1] = j, got[2] = k, got[3] = l;
    (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h;
}
__attribute__((noinline)) static signed char give_char(int value) { return (signed char)value; }
__attribute__((noinline)) static unsigned char give_uchar(int value) { return (unsigned char)value; }
__attribute__((noinline)) static short give_short(int value) { return (short)value; }
__attribute__((noinline)) static unsigned short give_ushort(int value) { return (unsigned short)value; }

#define PARAMETER(types, type)                                                                                       \
    for (int kind = V_NLEAF; kind <= V_LEAF; kind++) {                                                               \
        v_lambda(types, p, kind, storage());                                                                         \
        v_cvi2l(p[0], p[0]);                                                                                         \
        v_retl(p[0]);                                                                                                \
        long (*function)(type) = (long (*)(type))v_end();                                                            \
        for (int at = 0; at < VALUES; at++) check("parameter " types, function((type)values[at]), (type)values[at]); \
    }

#define ON_STACK(types, type)                                                                                        \
    for (int kind = V_NLEAF; kind <= V_LEAF; kind++) {                                                               \
        v_lambda("%i%i%i%i%i%i%i%i" types, p, kind, storage());                                                      \
        v_cvi2l(p[8], p[8]);                                                                                         \
        v_retl(p[8]);                                                                                                \
        long (*function)(int, int, int, int, int, int, int, int, type) =                                             \
            (long (*)(int, int, int, int, int, int, int, int, type))v_end();                                         \
        for (int at = 0; at < VALUES; at++)                                                                          \
            check("stack " types, function(1, 2, 3, 4, 5, 6, 7, 8, (type)values[at]), (type)values[at]);             \
    }

#define RESULT(name, type)                                                                                           \
    v_lambda("%i", p, V_LEAF, storage());                                                                            \
    v_##name(p[0]);                                                                                                  \
    type (*name##_function)(int) = (type (*)(int))v_end();                                                           \
    for (int at = 0; at < VALUES; at++) check(#name, name##_function(values[at]), (type)values[at]);

#define CALLED(give, convert, type)                                                                                  \
    v_lambda("%i", p, V_NLEAF, storage());                                                                           \
    argument[0] = qjv_in(p[0]);                                                                                      \
    v_call("%i", qjv_at_address((uintptr_t)give), argument, 1);                                                      \
    v_##convert(p[0], V_RESULT);                                                                                     \
    v_reti(p[0]);                                                                                                    \
    int (*give##_function)(int) = (int (*)(int))v_end();                                                             \
    for (int at = 0; at < VALUES; at++) check(#give, give##_function(values[at]), (type)values[at]);

static void check_taken(const char *what, int value) {
    check(what, got[0], (signed char)value);
    check(what, got[1], (unsigned char)value);
    check(what, got[2], (short)value);
    check(what, got[3], (unsigned short)value);
}

static void arguments(void) {
    qjv_argument list[12];
    v_lambda("%i", p, V_NLEAF, storage());
    for (int at = 0; at < 12; at++) list[at] = qjv_in(p[0]);
    v_call("%c%uc%s%us%u%i", qjv_at_address((uintptr_t)take), list, 6);
    v_retv();
    void (*function)(int) = (void (*)(int))v_end();
    for (int at = 0; at < VALUES; at++) {
        function(values[at]);
        check_taken("argument", values[at]);
        check("unsigned argument", got[4], (long)((unsigned)values[at] % 1000));
        check("int argument", got[5], values[at]);
    }
    v_lambda("%i", p, V_NLEAF, storage());
    v_call("%l%l%l%l%l%l%l%l%c%uc%s%us", qjv_at_address((uintptr_t)take_more), list, 12);
    v_retv();
    function = (void (*)(int))v_end();
    for (int at = 0; at < VALUES; at++) {
        function(values[at]);
        check_taken("argument on the stack", values[at]);
    }
}

/* A constant is converted to the type if none of its bits is lost, and an error otherwise. */
static void constants(void) {
    static const struct { const char *types; int64_t minimum, maximum; } of[] = {
        {"%c", -128, 255}, {"%uc", -128, 255}, {"%s", -32768, 65535}, {"%us", -32768, 65535},
        {"%i", INT32_MIN, UINT32_MAX}, {"%u", INT32_MIN, UINT32_MAX},
    };
    qjv_argument list[6];
    for (int at = 0; at < 6; at++) {
        for (int out = 0; out < 4; out++) {
            list[0] = qjv_value(out == 0 ? of[at].minimum : out == 1 ? of[at].maximum : out == 2 ? of[at].minimum - 1 : of[at].maximum + 1);
            v_lambda("", p, V_NLEAF, storage());
            v_call(of[at].types, qjv_at_address((uintptr_t)take), list, 1);
            v_retv();
            check(of[at].types, v_end() != 0, out < 2);
            check(of[at].types, v_error(), out < 2 ? QJV_OK : QJV_ERROR_IMMEDIATE);
        }
    }
    for (int at = 0; at < 6; at++) list[at] = qjv_value(at < 2 ? 250 : at < 4 ? 65000 : 0xfffffff0);
    v_lambda("", p, V_NLEAF, storage());
    v_call("%c%uc%s%us%u%i", qjv_at_address((uintptr_t)take), list, 6);
    v_retv();
    ((void (*)(void))v_end())();
    check("constant c", got[0], -6);
    check("constant uc", got[1], 250);
    check("constant s", got[2], -536);
    check("constant us", got[3], 65000);
    check("constant u", got[4], (long)(0xfffffff0u % 1000));
    check("constant i", got[5], -16);
}

/* Callers may leave the bits above a parameter undefined on some machines. */
static void undefined_bits(void) {
#if defined(__x86_64__) || defined(__aarch64__)
    static const char *const types[] = {"%c", "%uc", "%s", "%us"};
    static const long wanted[] = {-6, 250, -1286, 64250};
    for (int at = 0; at < 4; at++) {
        v_lambda(types[at], p, V_LEAF, storage());
        v_reti(p[0]);
        check(types[at], ((int (*)(long))v_end())(0x123456789abcfafa), wanted[at]);
    }
#endif
}

int main(void) {
    qjv_argument argument[1];
    PARAMETER("%c", signed char)
    PARAMETER("%uc", unsigned char)
    PARAMETER("%s", short)
    PARAMETER("%us", unsigned short)
    ON_STACK("%c", signed char)
    ON_STACK("%uc", unsigned char)
    ON_STACK("%s", short)
    ON_STACK("%us", unsigned short)
    RESULT(retc, signed char)
    RESULT(retuc, unsigned char)
    RESULT(rets, short)
    RESULT(retus, unsigned short)
    CALLED(give_char, cvi2c, signed char)
    CALLED(give_uchar, cvi2uc, unsigned char)
    CALLED(give_short, cvi2s, short)
    CALLED(give_ushort, cvi2us, unsigned short)
    arguments();
    constants();
    undefined_bits();
    return wrong;
}
