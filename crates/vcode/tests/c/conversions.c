/* Conversions of floating point: from and to unsigned longs generated code computes what the C compiler computes; among
   floats and doubles, and to longs, what IEEE 754 says, of denormal numbers too. */
#include <quaject/vcode.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>

static v_reg p[1];
static int wrong;

/* Memory of its own for each function: emulators do not see that code is replaced through another mapping. */
static struct v_code *storage(void) {
    struct v_code *code = v_code_new(2048);
    if (!code) exit(2);
    return code;
}

static unsigned long next(uint64_t *state) {
    *state ^= *state << 13, *state ^= *state >> 7, *state ^= *state << 17;
    return (unsigned long)(*state * UINT64_C(0x2545f4914f6cdd1d) >> (64 - 8 * sizeof(long)));
}

enum { BITS = 8 * sizeof(long), ROUNDS = 2000 };

static float (*to_float)(unsigned long);
static double (*to_double)(unsigned long);
static unsigned long (*from_float)(float);
static unsigned long (*from_double)(double);

/* The nearest float, the even one of two. On Power compilers use `xscvuxdsp`, which qemu 7.2 rounds twice. */
static float c_float(unsigned long value) {
#if defined(__powerpc64__)
    int shift = 0;
    while (value >> shift >> FLT_MANT_DIG) shift++;
    unsigned long top = value >> shift, rest = value - (top << shift), half = shift ? 1ul << (shift - 1) : 0;
    if (shift && (rest > half || (rest == half && top % 2))) top++;
    return (float)(int)top * (float)(1 << shift / 2) * (float)(1 << (shift - shift / 2));
#else
    return (float)value;
#endif
}

static void check_integer(unsigned long value) {
    if (to_float(value) != c_float(value)) wrong = 1, printf("%#lx is the float %a\n", value, to_float(value));
    if (to_double(value) != (double)value) wrong = 1, printf("%#lx is the double %a\n", value, to_double(value));
}

/* `value` is at least zero after truncation, and fits. */
static void check_double(double value) {
    if (from_double(value) != (unsigned long)value)
        wrong = 1, printf("%a is %#lx instead of %#lx\n", value, from_double(value), (unsigned long)value);
}

static void check_float(float value) {
    if (from_float(value) != (unsigned long)value)
        wrong = 1, printf("float %a is %#lx instead of %#lx\n", value, from_float(value), (unsigned long)value);
}

/* Floats and the doubles that they are. Bits, because a compiler may take denormal numbers for zero. */
static const struct same {
    uint32_t narrow;
    uint64_t wide;
} SAME[] = {
    {0x00000000, UINT64_C(0x0000000000000000)}, {0x80000000, UINT64_C(0x8000000000000000)},
    {0x00000001, UINT64_C(0x36a0000000000000)}, {0x80000001, UINT64_C(0xb6a0000000000000)},
    {0x00000002, UINT64_C(0x36b0000000000000)}, {0x00012345, UINT64_C(0x37a2345000000000)},
    {0x007fffff, UINT64_C(0x380fffffc0000000)}, {0x807fffff, UINT64_C(0xb80fffffc0000000)},
    {0x00800000, UINT64_C(0x3810000000000000)}, {0x3f800000, UINT64_C(0x3ff0000000000000)},
    {0x7f7fffff, UINT64_C(0x47efffffe0000000)}, {0x7f800000, UINT64_C(0x7ff0000000000000)},
    {0xff800000, UINT64_C(0xfff0000000000000)},
};

/* Doubles that are no floats, and the nearest float, the even one of two. */
static const struct same NEAREST[] = {
    {0x00000000, UINT64_C(0x0000000000000001)}, {0x00000000, UINT64_C(0x3690000000000000)},
    {0x00000001, UINT64_C(0x3690000000000001)}, {0x80000001, UINT64_C(0xb690000000000001)},
    {0x007fffff, UINT64_C(0x380fffffdfffffff)}, {0x00800000, UINT64_C(0x380fffffe0000000)},
    {0x7f7fffff, UINT64_C(0x47efffffefffffff)}, {0x7f800000, UINT64_C(0x47effffff0000000)},
};

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double double_of(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Among floats and doubles, and truncated to a long: numbers below one are 0. */
static void check_signed(void) {
    v_reg d;
    v_lambda("%f", p, V_LEAF, storage());
    v_cvf2d(p[0], p[0]);
    v_retd(p[0]);
    double (*widened)(float) = (double (*)(float))v_end();
    v_lambda("%d", p, V_LEAF, storage());
    v_cvd2f(p[0], p[0]);
    v_retf(p[0]);
    float (*narrowed)(double) = (float (*)(double))v_end();
    v_lambda("%f", p, V_LEAF, storage());
    if (!v_getreg(&d, V_TEMP)) exit(2);
    v_cvf2l(d, p[0]);
    v_retl(d);
    long (*float_truncated)(float) = (long (*)(float))v_end();
    v_lambda("%d", p, V_LEAF, storage());
    if (!v_getreg(&d, V_TEMP)) exit(2);
    v_cvd2l(d, p[0]);
    v_retl(d);
    long (*truncated)(double) = (long (*)(double))v_end();
    if (!widened || !narrowed || !float_truncated || !truncated) exit(2);

    for (size_t at = 0; at < sizeof SAME / sizeof *SAME; at++) {
        const double wide = widened(float_of(SAME[at].narrow)), same = double_of(SAME[at].wide);
        const float narrow = narrowed(same), expected = float_of(SAME[at].narrow);
        if (memcmp(&wide, &same, sizeof wide)) wrong = 1, printf("%#x is the double %a\n", SAME[at].narrow, wide);
        if (memcmp(&narrow, &expected, sizeof narrow)) wrong = 1, printf("%a is the float %a\n", same, narrow);
        if ((SAME[at].narrow & 0x7fffffff) > 0x00800000) continue;
        if (float_truncated(expected) || truncated(same)) wrong = 1, printf("%#x is not 0\n", SAME[at].narrow);
    }
    for (size_t at = 0; at < sizeof NEAREST / sizeof *NEAREST; at++) {
        const float narrow = narrowed(double_of(NEAREST[at].wide)), expected = float_of(NEAREST[at].narrow);
        if (memcmp(&narrow, &expected, sizeof narrow))
            wrong = 1, printf("%a is the float %a\n", double_of(NEAREST[at].wide), narrow);
    }
    const double fractions[] = {-2147483647.5, -1e9, -1.5, -0.99, 0.5, 1.99, 123456.789, 2147483647.5};
    for (size_t at = 0; at < sizeof fractions / sizeof *fractions; at++) {
        const float narrow = (float)fractions[at];
        const long expected = (long)fractions[at];
        if (truncated(fractions[at]) != expected)
            wrong = 1, printf("%a is %ld\n", fractions[at], truncated(fractions[at]));
        if ((double)narrow < 2147483648.0 && float_truncated(narrow) != (long)narrow)
            wrong = 1, printf("float %a is %ld\n", narrow, float_truncated(narrow));
    }
}

int main(void) {
    v_reg d;
    v_lambda("%ul", p, V_LEAF, storage());
    if (!v_getfreg(&d, V_TEMP)) return 2;
    v_cvul2f(d, p[0]);
    v_retf(d);
    to_float = (float (*)(unsigned long))v_end();
    v_lambda("%ul", p, V_LEAF, storage());
    if (!v_getfreg(&d, V_TEMP)) return 2;
    v_cvul2d(d, p[0]);
    v_retd(d);
    to_double = (double (*)(unsigned long))v_end();
    v_lambda("%f", p, V_LEAF, storage());
    if (!v_getreg(&d, V_TEMP)) return 2;
    v_cvf2ul(d, p[0]);
    v_retul(d);
    from_float = (unsigned long (*)(float))v_end();
    v_lambda("%d", p, V_LEAF, storage());
    if (!v_getreg(&d, V_TEMP)) return 2;
    v_cvd2ul(d, p[0]);
    v_retul(d);
    from_double = (unsigned long (*)(double))v_end();
    if (!to_float || !to_double || !from_float || !from_double) return 2;

    check_signed();
    /* Around each power of two, and around half of the last place of a float and of a double. */
    for (int bit = 0; bit < BITS; bit++) {
        unsigned long power = 1ul << bit;
        for (int delta = -2; delta <= 2; delta++) {
            check_integer(power + (unsigned long)delta);
            if (bit >= FLT_MANT_DIG) check_integer(power + (power >> FLT_MANT_DIG) + (unsigned long)delta);
            if (bit >= DBL_MANT_DIG)
                check_integer(power + (unsigned long)((uint64_t)power >> DBL_MANT_DIG) + (unsigned long)delta);
        }
        float f = (float)power;
        double r = (double)power;
        check_float(f), check_float(f * 0.75f), check_float(f * (1 - FLT_EPSILON)), check_float(f * (1 + FLT_EPSILON));
        check_double(r), check_double(r * 0.75);
        check_double(r * (1 - DBL_EPSILON)), check_double(r * (1 + DBL_EPSILON));
    }
    check_float(0.0f), check_float(-0.0f), check_float(-0.75f), check_float(FLT_MIN), check_float(1.0f - FLT_EPSILON);
    check_double(0.0), check_double(-0.0), check_double(-0.75), check_double(DBL_MIN), check_double(1.0 - DBL_EPSILON);
    uint64_t state = 0x9e3779b97f4a7c15;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned long value = next(&state) >> (round % BITS);
        check_integer(value);
        /* Halved first: the nearest float of the largest values does not fit. */
        check_float((float)(value / 2) * 1.5f);
        check_double((double)(value / 2) * 1.75);
    }
    return wrong;
}
