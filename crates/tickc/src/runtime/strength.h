/* Operations with a constant operand: shifts, masks and multiplications instead of multiplication, division and
 * remainder. Knows registers, no trees. */
#ifndef QUAJECT_TICKC_STRENGTH_H
#define QUAJECT_TICKC_STRENGTH_H

#include "emit.h"

static int is_power_of_two(unsigned long long number) { return number && !(number & (number - 1)); }

static int is_signed_slot(enum slot slot) { return slot == SLOT_INT || slot == SLOT_LONG; }

/* A divisor as multiplication, "Division by invariant integers using multiplication" (Granlund and Montgomery, PLDI
 * 1994): the quotient is the high half of the product, shifted. */
struct reciprocal {
    unsigned long long multiplier;
    int shift;
    /* Whether the multiplier is rounded down, so that the operand needs to be one more: "Faster unsigned division by
     * constants" (Robison, ARITH 2005). One of the two roundings is exact with 32 bits. */
    int is_rounded_down;
};

/* For operands of 32 bits that are extended to 64, and divisors of less that are no power of two. */
static struct reciprocal reciprocal_unsigned(uint32_t divisor) {
    struct reciprocal own = {0, 32 + 31 - __builtin_clz(divisor), 1};
    const unsigned long long power = 1ull << own.shift, error = divisor - power % divisor;
    own.multiplier = power / divisor;
    /* Rounded up, the product exceeds the exact one by less than a unit of the quotient. */
    if (error <= 1ull << (own.shift - 32)) {
        own.multiplier++;
        own.is_rounded_down = 0;
    }
    return own;
}

static struct reciprocal reciprocal_signed(uint32_t divisor) {
    struct reciprocal own = {0, 31 + 32 - __builtin_clz(divisor - 1), 0};
    own.multiplier = (1ull << own.shift) / divisor + 1;
    return own;
}

/* The quotient of an int or unsigned in `result`, which may be a; d and t are registers of their own. Machines with
 * registers of 64 bits only. */
static void divide_word(qjv_asm *c, enum slot slot, v_reg result, v_reg a, v_reg d, v_reg t, uint32_t divisor) {
    if (slot == SLOT_INT) {
        struct reciprocal own = reciprocal_signed(divisor);
        qjv_cvi2l(c, d, a);
        qjv_mulli(c, t, d, (long)own.multiplier);
        qjv_rshli(c, t, t, own.shift);
        qjv_rshli(c, d, d, 8 * (int)sizeof(long) - 1);
        qjv_subl(c, t, t, d);
        qjv_cvl2i(c, result, t);
        return;
    }
    struct reciprocal own = reciprocal_unsigned(divisor);
    qjv_cvu2ul(c, d, a);
    if (own.is_rounded_down) qjv_adduli(c, d, d, 1);
    qjv_mululi(c, t, d, (unsigned long)own.multiplier);
    if (CLEARS_UPPER_HALF) {
        qjv_rshuli(c, result, t, own.shift);
        return;
    }
    qjv_rshuli(c, d, t, own.shift);
    qjv_cvul2u(c, result, d);
}

/* The quotient by a power of two, of a signed number; d is not a. */
static void divide_by_power(qjv_asm *c, enum slot slot, v_reg d, v_reg a, int shift) {
    const int bits = slot == SLOT_INT ? 32 : 8 * (int)sizeof(long);
    if (slot == SLOT_INT) {
        qjv_rshii(c, d, a, bits - 1);
        emit_immediate(c, QJT_RIGHT, SLOT_UNSIGNED, d, d, bits - shift);
        qjv_addi(c, d, d, a);
        qjv_rshii(c, d, d, shift);
    } else {
        qjv_rshli(c, d, a, bits - 1);
        qjv_rshuli(c, d, d, bits - shift);
        qjv_addl(c, d, d, a);
        qjv_rshli(c, d, d, shift);
    }
}

/* Whether reduced() needs two registers in addition to those of its operands. */
static int needs_division(int operation, enum slot slot, long long b) {
    const unsigned long long bits = slot == SLOT_INT || slot == SLOT_UNSIGNED ? (unsigned)b : (unsigned long)b;
    if (operation != QJT_DIVIDE && operation != QJT_REMAINDER) return 0;
    if (!is_signed_slot(slot)) return !is_power_of_two(bits) && slot == SLOT_UNSIGNED && sizeof(long) == 8 && bits < 1u << 31;
    if (b <= 1) return 0;
    return is_power_of_two(bits) || (slot == SLOT_INT && sizeof(long) == 8);
}

/* d = a / b or a % b for what needs_division() accepts; quotient and t are registers of their own. */
static void emit_division(qjv_asm *c, int operation, enum slot slot, v_reg d, v_reg a, long long b, v_reg quotient, v_reg t) {
    if (is_signed_slot(slot) && is_power_of_two((unsigned long long)b)) {
        divide_by_power(c, slot, quotient, a, __builtin_ctzll((unsigned long long)b));
        if (operation == QJT_DIVIDE) emit_move(c, slot == SLOT_INT ? QJT_INT : QJT_LONG, d, quotient);
    } else {
        divide_word(c, slot, operation == QJT_DIVIDE ? d : quotient, a, quotient, t, (uint32_t)b);
    }
    if (operation == QJT_DIVIDE) return;
    if (is_power_of_two((unsigned long long)b)) emit_immediate(c, QJT_LEFT, slot, t, quotient, __builtin_ctzll((unsigned long long)b));
    else emit_immediate(c, QJT_MULTIPLY, slot, t, quotient, b);
    emit_binary(c, QJT_SUBTRACT, slot, d, a, t);
}

/* Other operations with a constant: multiplication, and unsigned division, by powers of two are shifts and masks. */
static void emit_with_constant(qjv_asm *c, int operation, enum slot slot, v_reg d, v_reg a, long long b) {
    const unsigned long long bits = slot == SLOT_INT || slot == SLOT_UNSIGNED ? (unsigned)b : (unsigned long)b;
    if (is_power_of_two(bits) && operation == QJT_MULTIPLY)
        emit_immediate(c, QJT_LEFT, slot, d, a, __builtin_ctzll(bits));
    else if (is_power_of_two(bits) && !is_signed_slot(slot) && operation == QJT_DIVIDE)
        emit_immediate(c, QJT_RIGHT, slot, d, a, __builtin_ctzll(bits));
    else if (is_power_of_two(bits) && !is_signed_slot(slot) && operation == QJT_REMAINDER)
        emit_immediate(c, QJT_AND, slot, d, a, (long long)(bits - 1));
    else
        emit_immediate(c, operation, slot, d, a, b);
}

#endif
