/* Conversions between unsigned longs and floating point: generated code computes what the C compiler computes. */
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
