/* Emitters by operation and type. Integers of 8 and 16 bits are extended to int in registers, so that operations
 * have six
 * types; pointers are unsigned longs. */
#ifndef QUAJECT_TICKC_EMIT_H
#define QUAJECT_TICKC_EMIT_H

#define QJV_MAX_LABELS 65536
#define QJV_MAX_FIXUPS 131072
#define QJV_MAX_CONSTANTS 4096
#include "quaject/vcode.h"

#include "node.h"

enum slot { SLOT_INT, SLOT_UNSIGNED, SLOT_LONG, SLOT_UNSIGNED_LONG, SLOT_FLOAT, SLOT_DOUBLE };

static inline enum slot slot_of(unsigned type) {
    switch (type) {
    case QJT_UNSIGNED: return SLOT_UNSIGNED;
    case QJT_LONG: return SLOT_LONG;
    case QJT_UNSIGNED_LONG:
    case QJT_POINTER: return SLOT_UNSIGNED_LONG;
    case QJT_FLOAT: return SLOT_FLOAT;
    case QJT_DOUBLE: return SLOT_DOUBLE;
    default: return SLOT_INT;
    }
}

#define CASE(operation, slot) case (operation)*8 + (slot)
#define INTEGERS(operation, name)                                                      \
    CASE(operation, SLOT_INT) : qjv_##name##i(c, d, a, b);                             \
    break;                                                                             \
    CASE(operation, SLOT_UNSIGNED) : qjv_##name##u(c, d, a, b);                        \
    break;                                                                             \
    CASE(operation, SLOT_LONG) : qjv_##name##l(c, d, a, b);                            \
    break;                                                                             \
    CASE(operation, SLOT_UNSIGNED_LONG) : qjv_##name##ul(c, d, a, b);                  \
    break;
#define FLOATS(operation, name)                                                        \
    CASE(operation, SLOT_FLOAT) : qjv_##name##f(c, d, a, b);                           \
    break;                                                                             \
    CASE(operation, SLOT_DOUBLE) : qjv_##name##d(c, d, a, b);                          \
    break;

static void emit_binary(qjv_asm *c, int operation, enum slot slot, v_reg d, v_reg a, v_reg b) {
    switch (operation * 8 + (int)slot) {
        INTEGERS(QJT_ADD, add)
        INTEGERS(QJT_SUBTRACT, sub)
        INTEGERS(QJT_MULTIPLY, mul)
        INTEGERS(QJT_DIVIDE, div)
        INTEGERS(QJT_REMAINDER, mod)
        INTEGERS(QJT_AND, and)
        INTEGERS(QJT_OR, or)
        INTEGERS(QJT_XOR, xor)
        INTEGERS(QJT_LEFT, lsh)
        INTEGERS(QJT_RIGHT, rsh)
        FLOATS(QJT_ADD, add)
        FLOATS(QJT_SUBTRACT, sub)
        FLOATS(QJT_MULTIPLY, mul)
        FLOATS(QJT_DIVIDE, div)
    }
}

#define IMMEDIATES(operation, name)                                                    \
    CASE(operation, SLOT_INT) : qjv_##name##ii(c, d, a, (int)b);                       \
    break;                                                                             \
    CASE(operation, SLOT_UNSIGNED) : qjv_##name##ui(c, d, a, (unsigned)b);             \
    break;                                                                             \
    CASE(operation, SLOT_LONG) : qjv_##name##li(c, d, a, (long)b);                     \
    break;                                                                             \
    CASE(operation, SLOT_UNSIGNED_LONG) : qjv_##name##uli(c, d, a, (unsigned long)b);  \
    break;

static void emit_immediate(qjv_asm *c, int operation, enum slot slot, v_reg d, v_reg a, long long b) {
    switch (operation * 8 + (int)slot) {
        IMMEDIATES(QJT_ADD, add)
        IMMEDIATES(QJT_SUBTRACT, sub)
        IMMEDIATES(QJT_MULTIPLY, mul)
        IMMEDIATES(QJT_DIVIDE, div)
        IMMEDIATES(QJT_REMAINDER, mod)
        IMMEDIATES(QJT_AND, and)
        IMMEDIATES(QJT_OR, or)
        IMMEDIATES(QJT_XOR, xor)
        IMMEDIATES(QJT_LEFT, lsh)
        IMMEDIATES(QJT_RIGHT, rsh)
    }
}

#define BRANCHES(operation, name)                                                      \
    CASE(operation, SLOT_INT) : qjv_##name##i(c, a, b, to);                            \
    break;                                                                             \
    CASE(operation, SLOT_UNSIGNED) : qjv_##name##u(c, a, b, to);                       \
    break;                                                                             \
    CASE(operation, SLOT_LONG) : qjv_##name##l(c, a, b, to);                           \
    break;                                                                             \
    CASE(operation, SLOT_UNSIGNED_LONG) : qjv_##name##ul(c, a, b, to);                 \
    break;                                                                             \
    CASE(operation, SLOT_FLOAT) : qjv_##name##f(c, a, b, to);                          \
    break;                                                                             \
    CASE(operation, SLOT_DOUBLE) : qjv_##name##d(c, a, b, to);                         \
    break;

static void emit_branch(qjv_asm *c, int operation, enum slot slot, v_reg a, v_reg b, v_label to) {
    switch (operation * 8 + (int)slot) {
        BRANCHES(QJT_EQUAL, beq)
        BRANCHES(QJT_UNEQUAL, bne)
        BRANCHES(QJT_LESS, blt)
        BRANCHES(QJT_GREATER_EQUAL, bge)
        BRANCHES(QJT_GREATER, bgt)
        BRANCHES(QJT_LESS_EQUAL, ble)
    }
}

#define BRANCHES_IMMEDIATE(operation, name)                                            \
    CASE(operation, SLOT_INT) : qjv_##name##ii(c, a, (int)b, to);                      \
    break;                                                                             \
    CASE(operation, SLOT_UNSIGNED) : qjv_##name##ui(c, a, (unsigned)b, to);            \
    break;                                                                             \
    CASE(operation, SLOT_LONG) : qjv_##name##li(c, a, (long)b, to);                    \
    break;                                                                             \
    CASE(operation, SLOT_UNSIGNED_LONG) : qjv_##name##uli(c, a, (unsigned long)b, to); \
    break;

static void emit_branch_immediate(qjv_asm *c, int operation, enum slot slot, v_reg a, long long b, v_label to) {
    switch (operation * 8 + (int)slot) {
        BRANCHES_IMMEDIATE(QJT_EQUAL, beq)
        BRANCHES_IMMEDIATE(QJT_UNEQUAL, bne)
        BRANCHES_IMMEDIATE(QJT_LESS, blt)
        BRANCHES_IMMEDIATE(QJT_GREATER_EQUAL, bge)
        BRANCHES_IMMEDIATE(QJT_GREATER, bgt)
        BRANCHES_IMMEDIATE(QJT_LESS_EQUAL, ble)
    }
}

#define EACH_MEMORY_TYPE(each)                                                         \
    each(QJT_BOOL, uc) each(QJT_SIGNED_CHAR, c) each(QJT_UNSIGNED_CHAR, uc)            \
    each(QJT_SHORT, s) each(QJT_UNSIGNED_SHORT, us) each(QJT_INT, i)                   \
    each(QJT_UNSIGNED, u) each(QJT_LONG, l) each(QJT_UNSIGNED_LONG, ul)                \
    each(QJT_POINTER, ul) each(QJT_FLOAT, f) each(QJT_DOUBLE, d)

#define LOAD(type, name) case type: qjv_ld##name##i(c, d, base, offset); break;
#define STORE(type, name) case type: qjv_st##name##i(c, s, base, offset); break;
#define LOAD_LOCAL(type, name) case type: qjv_ld##name##_local(c, d, at); break;
#define STORE_LOCAL(type, name) case type: qjv_st##name##_local(c, s, at); break;

static void emit_load(qjv_asm *c, unsigned type, v_reg d, v_reg base, long offset) {
    switch (type) { EACH_MEMORY_TYPE(LOAD) }
}
static void emit_store(qjv_asm *c, unsigned type, v_reg s, v_reg base, long offset) {
    switch (type) { EACH_MEMORY_TYPE(STORE) }
}
/* Types of which a load or store takes an index that counts elements. */
#define EACH_INDEXED_TYPE(each)                                                        \
    each(QJT_BOOL, uc) each(QJT_SIGNED_CHAR, c) each(QJT_UNSIGNED_CHAR, uc)            \
    each(QJT_SHORT, s) each(QJT_UNSIGNED_SHORT, us) each(QJT_INT, i)                   \
    each(QJT_UNSIGNED, u) each(QJT_LONG, l) each(QJT_UNSIGNED_LONG, ul)                \
    each(QJT_POINTER, ul)
#define LOAD_INDEXED(type, name) case type: qjv_ldx##name(c, d, base, index, offset); break;
#define STORE_INDEXED(type, name) case type: qjv_stx##name(c, s, base, index, offset); break;

static void emit_load_indexed(qjv_asm *c, unsigned type, v_reg d, v_reg base, v_reg index, long offset) {
    switch (type) { EACH_INDEXED_TYPE(LOAD_INDEXED) }
}
static void emit_store_indexed(qjv_asm *c, unsigned type, v_reg s, v_reg base, v_reg index, long offset) {
    switch (type) { EACH_INDEXED_TYPE(STORE_INDEXED) }
}
static void emit_load_local(qjv_asm *c, unsigned type, v_reg d, v_variable at) {
    switch (type) { EACH_MEMORY_TYPE(LOAD_LOCAL) }
}
static void emit_store_local(qjv_asm *c, unsigned type, v_reg s, v_variable at) {
    switch (type) { EACH_MEMORY_TYPE(STORE_LOCAL) }
}

static void emit_move(qjv_asm *c, unsigned type, v_reg d, v_reg s) {
    if (qjv_number(d) == qjv_number(s)) return;
    switch (slot_of(type)) {
    case SLOT_INT: qjv_movi(c, d, s); break;
    case SLOT_UNSIGNED: qjv_movu(c, d, s); break;
    case SLOT_LONG:
    case SLOT_UNSIGNED_LONG: qjv_movl(c, d, s); break;
    case SLOT_FLOAT: qjv_movf(c, d, s); break;
    case SLOT_DOUBLE: qjv_movd(c, d, s); break;
    }
}

static void emit_integer(qjv_asm *c, unsigned type, v_reg d, long long value) {
    switch (slot_of(type)) {
    case SLOT_UNSIGNED: qjv_setu(c, d, (unsigned)value); break;
    case SLOT_LONG: qjv_setl(c, d, (long)value); break;
    case SLOT_UNSIGNED_LONG: qjv_setul(c, d, (unsigned long)value); break;
    default: qjv_seti(c, d, (int)value); break;
    }
}

static void emit_return(qjv_asm *c, unsigned type, v_reg s) {
    switch (type) {
    case QJT_BOOL:
    case QJT_UNSIGNED_CHAR: qjv_retuc(c, s); break;
    case QJT_SIGNED_CHAR: qjv_retc(c, s); break;
    case QJT_SHORT: qjv_rets(c, s); break;
    case QJT_UNSIGNED_SHORT: qjv_retus(c, s); break;
    case QJT_INT: qjv_reti(c, s); break;
    case QJT_UNSIGNED: qjv_retu(c, s); break;
    case QJT_LONG: qjv_retl(c, s); break;
    case QJT_UNSIGNED_LONG: qjv_retul(c, s); break;
    case QJT_POINTER: qjv_retp(c, s); break;
    case QJT_FLOAT: qjv_retf(c, s); break;
    case QJT_DOUBLE: qjv_retd(c, s); break;
    default: qjv_retv(c); break;
    }
}

/* Extends the low bits of an int to a narrow type. */
static void emit_extend(qjv_asm *c, unsigned type, v_reg d, v_reg s) {
    switch (type) {
    case QJT_SIGNED_CHAR: qjv_cvi2c(c, d, s); break;
    case QJT_BOOL:
    case QJT_UNSIGNED_CHAR: qjv_cvi2uc(c, d, s); break;
    case QJT_SHORT: qjv_cvi2s(c, d, s); break;
    case QJT_UNSIGNED_SHORT: qjv_cvi2us(c, d, s); break;
    default: emit_move(c, QJT_INT, d, s); break;
    }
}

/* Whether ints and unsigneds with the same bits are the same in a register. */
#if defined(__x86_64__) || defined(__aarch64__) || defined(__mips__)
enum { SHARES_SIGNS = 1 };
#else
enum { SHARES_SIGNS = 0 };
#endif

/* Whether instructions with results of 32 bits clear the rest of a register, so that an unsigned is extended already,
 * unless it is a parameter. */
#if defined(__x86_64__)
enum { CLEARS_UPPER_HALF = 1 };
#else
enum { CLEARS_UPPER_HALF = 0 };
#endif

/* Whether a conversion changes no bit of a register. */
static int is_free_conversion(unsigned to, unsigned from) {
    const enum slot target = slot_of(to), source = slot_of(from);
    if (to == QJT_INT || (SHARES_SIGNS && to == QJT_UNSIGNED)) return source == SLOT_INT || (SHARES_SIGNS && source == SLOT_UNSIGNED);
    return (target == SLOT_LONG || target == SLOT_UNSIGNED_LONG) && (source == SLOT_LONG || source == SLOT_UNSIGNED_LONG);
}

/* Loads and stores of whole numbers that need not be aligned, and whose bytes may be in the other order. */
static void emit_load_whole(qjv_asm *c, int size, int is_reversed, v_reg d, v_reg base, long offset) {
    switch (size) {
    case 2: is_reversed ? qjv_bldusi(c, d, base, offset) : qjv_uldusi(c, d, base, offset); break;
    case 4: is_reversed ? qjv_bldui(c, d, base, offset) : qjv_uldui(c, d, base, offset); break;
    default: is_reversed ? qjv_blduli(c, d, base, (unsigned long)offset) : qjv_ulduli(c, d, base, (unsigned long)offset); break;
    }
}

/* Converts between types other than bool; the registers may be the same. */
static void emit_convert(qjv_asm *c, unsigned to, unsigned from, v_reg d, v_reg s) {
    const enum slot target = slot_of(to), source = slot_of(from);
    if (to == QJT_FLOAT || to == QJT_DOUBLE) {
        const int is_double = to == QJT_DOUBLE;
        switch (source) {
        case SLOT_INT: is_double ? qjv_cvi2d(c, d, s) : qjv_cvi2f(c, d, s); break;
        case SLOT_UNSIGNED: is_double ? qjv_cvu2d(c, d, s) : qjv_cvu2f(c, d, s); break;
        case SLOT_LONG: is_double ? qjv_cvl2d(c, d, s) : qjv_cvl2f(c, d, s); break;
        case SLOT_UNSIGNED_LONG: is_double ? qjv_cvul2d(c, d, s) : qjv_cvul2f(c, d, s); break;
        case SLOT_FLOAT: is_double ? qjv_cvf2d(c, d, s) : qjv_movf(c, d, s); break;
        case SLOT_DOUBLE: is_double ? qjv_movd(c, d, s) : qjv_cvd2f(c, d, s); break;
        }
        return;
    }
    if (source == SLOT_FLOAT || source == SLOT_DOUBLE) {
        const int is_double = source == SLOT_DOUBLE;
        if (target == SLOT_UNSIGNED_LONG || (target == SLOT_UNSIGNED && sizeof(long) == 4))
            is_double ? qjv_cvd2ul(c, d, s) : qjv_cvf2ul(c, d, s);
        else
            is_double ? qjv_cvd2l(c, d, s) : qjv_cvf2l(c, d, s);
        if (target == SLOT_UNSIGNED) qjv_cvl2u(c, d, d);
        if (target == SLOT_INT) qjv_cvl2i(c, d, d), emit_extend(c, to, d, d);
        return;
    }
    switch (target) {
    case SLOT_LONG:
    case SLOT_UNSIGNED_LONG:
        if (source == SLOT_INT) qjv_cvi2l(c, d, s);
        else if (source == SLOT_UNSIGNED) qjv_cvu2l(c, d, s);
        else emit_move(c, QJT_LONG, d, s);
        break;
    case SLOT_UNSIGNED:
        if (source == SLOT_INT) qjv_cvi2u(c, d, s);
        else qjv_cvl2u(c, d, s);
        break;
    default:
        if (source == SLOT_UNSIGNED) qjv_cvu2i(c, d, s), s = d;
        else if (source != SLOT_INT) qjv_cvl2i(c, d, s), s = d;
        if (to != QJT_INT) emit_extend(c, to, d, s);
        else if (source == SLOT_INT) emit_move(c, QJT_INT, d, s);
        break;
    }
}

#endif
