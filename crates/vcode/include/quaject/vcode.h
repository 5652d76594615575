/* vcode: in-place generation of machine code, for C11 and C++17. Header only; nothing to link.

   Two interfaces. The explicit cursor is fast: keep a qjv_asm in a local variable and pass its address; every emitter
   is inlined, so the cursor stays in a register.

       qjv_function f; qjv_asm a; v_reg x;
       qjv_begin(&a, &f, storage, "%i", &x, QJV_LEAF);
       qjv_addii(&a, x, x, 1);
       qjv_reti(&a, x);
       int (*plus1)(int) = (int (*)(int))qjv_end(&a);

   The names of the paper (v_lambda, v_addii, v_reti, v_end ...) work on one cursor per thread and including file. The
   emitters are generated from the specification of the machine that is compiled for. */
#ifndef QUAJECT_VCODE_H
#define QUAJECT_VCODE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Deprecated names of the three limits below, for one version. */
#if defined(QJV_MOST_LABELS) && !defined(QJV_MAX_LABELS)
#define QJV_MAX_LABELS QJV_MOST_LABELS
#endif
#if defined(QJV_MOST_FIXUPS) && !defined(QJV_MAX_FIXUPS)
#define QJV_MAX_FIXUPS QJV_MOST_FIXUPS
#endif
#if defined(QJV_MOST_CONSTANTS) && !defined(QJV_MAX_CONSTANTS)
#define QJV_MAX_CONSTANTS QJV_MOST_CONSTANTS
#endif

/* How many labels, unresolved references and floating constants one function may have. Define before including. */
#ifndef QJV_MAX_LABELS
#define QJV_MAX_LABELS 128
#endif
#ifndef QJV_MOST_LABELS
#define QJV_MOST_LABELS QJV_MAX_LABELS
#endif
#ifndef QJV_MAX_FIXUPS
#define QJV_MAX_FIXUPS 512
#endif
#ifndef QJV_MOST_FIXUPS
#define QJV_MOST_FIXUPS QJV_MAX_FIXUPS
#endif
#ifndef QJV_MAX_CONSTANTS
#define QJV_MAX_CONSTANTS 32
#endif
#ifndef QJV_MOST_CONSTANTS
#define QJV_MOST_CONSTANTS QJV_MAX_CONSTANTS
#endif

#define QJV_INLINE static inline __attribute__((always_inline, unused))
/* Inline, so that compilers omit uncalled ones even without optimisation. */
#define QJV_COLD static inline __attribute__((noinline, cold, unused))
#define QJV_OUTLINE static inline __attribute__((noinline, unused))
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"

typedef enum {
    QJV_OK,
    QJV_ERROR_OVERFLOW,
    QJV_ERROR_LABELS,
    QJV_ERROR_FIXUPS,
    QJV_ERROR_CONSTANTS,
    QJV_ERROR_UNBOUND_LABEL,
    QJV_ERROR_BOUND_TWICE,
    QJV_ERROR_BRANCH_RANGE,
    QJV_ERROR_IMMEDIATE,
    QJV_ERROR_CALL_IN_LEAF,
    QJV_ERROR_REGISTERS,
    QJV_ERROR_SIGNATURE,
    QJV_ERROR_FRAME,
    QJV_ERROR_FEATURE,
    QJV_ERROR_ARGUMENTS,
    /* A convention has a register twice, or one that is not allocatable; or a handler makes a tail call. */
    QJV_ERROR_REGISTER_TAKEN,
    /* A convention preserves the result register, so that callers would not get the result: classify it V_TEMP. */
    QJV_ERROR_RESULT_PRESERVED,
    /* A convention assigns an argument an invalid location: a register that is not in args, is of the wrong file or
       size or carries another argument, or stack that it has not counted. */
    QJV_ERROR_PLACE,
    /* A label that v_jal calls is not bound by v_procedure. */
    QJV_ERROR_PROCEDURE,
    /* A v_ name was used before v_lambda, after v_end, or in another file than v_lambda. */
    QJV_ERROR_NOT_BEGUN,
    /* v_lambda began a function while another of the same file and thread was not ended. */
    QJV_ERROR_NESTED
} qjv_error;

/* What an error is and what to do about it. */
QJV_COLD const char *qjv_error_text(qjv_error error) {
    switch (error) {
    case QJV_OK: return "no error";
    case QJV_ERROR_OVERFLOW: return "the memory is too small for the code: give a larger one";
    case QJV_ERROR_LABELS: return "too many labels: define QJV_MAX_LABELS before the header is included";
    case QJV_ERROR_FIXUPS: return "too many unresolved references: define QJV_MAX_FIXUPS before the header is included";
    case QJV_ERROR_CONSTANTS: return "too many constants: define QJV_MAX_CONSTANTS before the header is included";
    case QJV_ERROR_UNBOUND_LABEL: return "a label was used and never bound: bind it with v_label";
    case QJV_ERROR_BOUND_TWICE: return "a label was bound twice: use one label for each place";
    case QJV_ERROR_BRANCH_RANGE: return "a label is further away than a branch of this machine reaches: divide the function";
    case QJV_ERROR_IMMEDIATE: return "a constant does not fit its type: load a wider one with v_setl";
    case QJV_ERROR_CALL_IN_LEAF: return "a leaf function contains a call: begin it with V_NLEAF";
    case QJV_ERROR_REGISTERS: return "there are more parameters than registers: pass fewer, or a pointer to them";
    case QJV_ERROR_SIGNATURE: return "the type string is malformed: it consists of % and a type, and `...` in calls";
    case QJV_ERROR_FRAME: return "the frame is too large: its variables take at most a megabyte";
    case QJV_ERROR_FEATURE: return "the processor lacks the instruction: allow its features with v_use_features";
    case QJV_ERROR_ARGUMENTS: return "the arguments of a call differ from its type string, or do not fit a tail call";
    case QJV_ERROR_REGISTER_TAKEN:
        return "a convention has a register twice, or one that is not allocatable; or a handler makes a tail call";
    case QJV_ERROR_RESULT_PRESERVED: return "a convention preserves the result register: classify it V_TEMP";
    case QJV_ERROR_PLACE: return "a convention assigns an argument a location that it cannot have";
    case QJV_ERROR_PROCEDURE: return "v_jal calls a label that is no procedure: bind it with v_procedure";
    case QJV_ERROR_NOT_BEGUN:
        return "a v_ name was used before v_lambda, after v_end, or in another file: pass a qjv_asm to other files";
    case QJV_ERROR_NESTED:
        return "v_lambda was used before v_end of another function: end it, v_abandon() it, or write one with a qjv_asm";
    }
    return "an unknown error";
}

typedef struct { uint32_t index; } v_label;
typedef struct { int32_t offset; } v_variable;
/* A reference in one word: the site in the low half, then 24 bits of label, then the kind. */
typedef uint64_t qjv_fixup;
/* Eight bytes at most, or sixteen that are repeated over size. */
typedef struct { uint64_t bits, high; uint32_t label, size; } qjv_constant;

/* Register classes, for v_getreg. */
enum { V_TEMP, V_VAR };
/* Kinds of function, for v_lambda. */
enum { V_NLEAF, V_LEAF };
#define QJV_LEAF V_LEAF
#define QJV_CALLS V_NLEAF

#define QJV_UNBOUND UINT32_MAX
#define QJV_EPILOGUE 0xffffffu
/* The label of the tail epilogue, which ends with a jump instead of a return. */
#define QJV_TAIL 0xfffffeu
/* The label of the function itself, which calls of V_ITSELF have. */
#define QJV_ENTRY 0xfffffdu
/* Kinds of entries of the table of references that are no references: a label that v_jal calls, and one that
   v_procedure bound. */
enum { QJV_CALLED_PROCEDURE = 254, QJV_PROCEDURE = 255 };
#define QJV_NO_RETURN UINT64_MAX
#define QJV_SLACK 16
/* Without optimisation the compiler folds nothing. */
#ifdef __OPTIMIZE__
#define QJV_FOLDS 1
#else
#define QJV_FOLDS 0
#endif
#define QJV_NO_LIMIT ((size_t)1 << (8 * sizeof(size_t) - 2))

/* Memory for a function: writable at one address, executable at the same or another. */
typedef struct { uint8_t *write; uintptr_t execute; size_t length; } qjv_region;

typedef struct qjv_function {
    uint8_t *start, *limit, *end;
    uintptr_t execute;
    uint64_t int_free, int_touched, float_free, float_touched;
    uint32_t labels, fixups, constants, locals, last_bound, tail_at;
    /* Whether qjv_end must take the general path. */
    uint8_t needs_general_path;
    uint8_t leaf, calls, incoming, tail, has_caller_saves, client;
    qjv_error error;
    uint64_t features;
    uint32_t label[QJV_MAX_LABELS];
    qjv_fixup fixup[QJV_MAX_FIXUPS];
    qjv_constant constant[QJV_MAX_CONSTANTS];
    /* Temporaries that are used as callee-saved registers and saved around calls, and their save area; valid only if
     * has_caller_saves is set. */
    uint64_t int_saved_around_calls, float_saved_around_calls;
    int32_t caller_save_area;
    /* A client's convention, and its free registers of each file; valid only if client is set. The machine's own sets
       are empty then, so that the slow path of allocation uses these. */
    const struct qjv_convention *convention;
    uint64_t client_free[2];
} qjv_function;

/* last_return is the last jump to the epilogue, which is removed if nothing follows it; forward is the last reference
   to an unbound label, which is usually the label that is bound next. */
typedef struct qjv_asm { uint8_t *ip; size_t left; qjv_function *f; qjv_fixup last_return, forward; } qjv_asm;

QJV_COLD void qjv_failed(qjv_function *f, qjv_error error) {
    /* The next space for code finds out that no function was begun. */
    if (!f) return;
    if (!f->error) f->error = error;
    f->needs_general_path = 1;
}

QJV_INLINE void qjv_fail(qjv_asm *c, qjv_error error) { qjv_failed(c->f, error); }

/* Opens a function that only has an error, for each v_ name where no function was begun. */
static qjv_function *qjv_unbegun(void);

typedef struct { uint8_t *ip; size_t left; qjv_function *f; } qjv_room;

/* Reserves more space at ip. If the region is full, the error is recorded and the cursor returns to the start, which is
   safe because qjv_end does not return that code. */
QJV_COLD qjv_room qjv_refill(qjv_function *f, uint8_t *ip, size_t bytes) {
    qjv_room room = {ip, 0, f};
    if (!f || f->error == QJV_ERROR_NOT_BEGUN) {
        room.f = qjv_unbegun();
        room.ip = room.f->start;
        room.left = bytes;
        return room;
    }
    room.left = f->limit > ip ? (size_t)(f->limit - ip) : 0;
    if (room.left >= bytes) return room;
    qjv_failed(f, QJV_ERROR_OVERFLOW);
    room.ip = f->start;
    room.left = (size_t)(f->limit - f->start);
    return room;
}

QJV_INLINE void qjv_space(qjv_asm *c, size_t bytes) {
    if (__builtin_expect(c->left < bytes, 0)) {
        qjv_room room = qjv_refill(c->f, c->ip, bytes);
        c->ip = room.ip;
        c->left = room.left;
        c->f = room.f;
    }
    c->left -= bytes;
}

/* Checks once that this number of bytes is free, so that the compiler eliminates the checks of the following
 * straight-line instructions. */
QJV_INLINE int qjv_reserve(qjv_asm *c, size_t bytes) {
    if ((size_t)(c->f->limit - c->ip) < bytes) {
        qjv_failed(c->f, QJV_ERROR_OVERFLOW);
        return 0;
    }
    c->left = bytes;
    return 1;
}

QJV_INLINE int qjv_fits_signed(int64_t value, unsigned bits, unsigned scale) {
    uint64_t half = (uint64_t)1 << (bits - 1);
    /* No constant of 33 bits fits an instruction. */
    if (bits == 32) return value == (int32_t)value && (value & ((1 << scale) - 1)) == 0;
    return (uint64_t)value + half < 2 * half && (value & ((1 << scale) - 1)) == 0;
}

QJV_INLINE int qjv_fits_unsigned(int64_t value, unsigned bits, unsigned scale) {
    return (uint64_t)value >> bits == 0 && (value & ((1 << scale) - 1)) == 0;
}

/* Code is stored as words of a distinct type, not as bytes: a store of bytes may alias the cursor, so that compilers
   would reload it after each. One type, because stores overlap. */
typedef union __attribute__((packed, aligned(1))) { uint32_t narrow; unsigned long long wide; } qjv_code_word;

QJV_INLINE uint8_t *qjv_word(uint8_t *ip, uint32_t word) {
    ((qjv_code_word *)ip)->narrow = word;
    return ip + 4;
}
#define qjv_word_big qjv_word

QJV_INLINE uint8_t *qjv_bytes(uint8_t *ip, uint64_t value, unsigned length) {
    if (length <= 4) {
        ((qjv_code_word *)ip)->narrow = (uint32_t)value;
    } else {
        ((qjv_code_word *)ip)->wide = value;
    }
    return ip + length;
}

QJV_INLINE uint64_t qjv_spread(uint32_t bits, unsigned rex, unsigned modrm) {
    if (rex == 0 && modrm == 2) return bits;
    return (uint64_t)(bits & 0xff) << (8 * rex) | (uint64_t)(bits >> 16) << (8 * modrm);
}

QJV_INLINE uint8_t *qjv_displaced(uint8_t *ip, uint64_t value, unsigned modrm, unsigned after, int64_t offset) {
    int is_short = qjv_fits_signed(offset, 8, 0);
    unsigned size = is_short ? 1 : 4;
    value |= (uint64_t)(is_short ? 0x40 : 0x80) << (8 * modrm);
    if (after <= 4) return qjv_bytes(ip, value | (uint64_t)(uint32_t)offset << (8 * after), after + size);
    return qjv_bytes(qjv_bytes(ip, value, after), (uint32_t)offset, size);
}

QJV_INLINE uint8_t *qjv_offset(uint8_t *ip, uint64_t constant, unsigned rex, unsigned length, uint32_t reg,
                               uint32_t base, int64_t offset) {
    return qjv_displaced(ip, constant | qjv_spread(reg | base, rex, length), length, length + 1, offset);
}

QJV_INLINE uint8_t *qjv_stack_offset(uint8_t *ip, uint64_t constant, unsigned rex, unsigned length, uint32_t reg,
                                     uint32_t base, int64_t offset) {
    uint64_t value = constant | qjv_spread(reg | base, rex, length) | (uint64_t)0x24 << (8 * length + 8);
    return qjv_displaced(ip, value, length, length + 2, offset);
}

QJV_INLINE uint8_t *qjv_index(uint8_t *ip, uint64_t constant, unsigned rex, unsigned length, uint32_t reg,
                              uint32_t base, uint32_t index, uint32_t scale) {
    uint64_t value = constant | qjv_spread(reg | (index & 4) >> 1 | (base & 1), rex, length);
    uint32_t sib = (base >> 16 & 7) | (index >> 16 & 0x38) | scale << 6;
    value = (value & ~((uint64_t)7 << (8 * length))) | (uint64_t)0x44 << (8 * length) | (uint64_t)sib << (8 * length + 8);
    return qjv_bytes(ip, value, length + 3);
}

QJV_INLINE uint8_t *qjv_index_offset(uint8_t *ip, uint64_t constant, unsigned rex, unsigned length, uint32_t reg,
                                     uint32_t base, uint32_t index, uint32_t scale, int64_t offset) {
    uint64_t value = constant | qjv_spread(reg | (index & 4) >> 1 | (base & 1), rex, length);
    uint32_t sib = (base >> 16 & 7) | (index >> 16 & 0x38) | scale << 6;
    value = (value & ~((uint64_t)7 << (8 * length))) | (uint64_t)4 << (8 * length) | (uint64_t)sib << (8 * length + 8);
    return qjv_displaced(ip, value, length, length + 2, offset);
}

QJV_INLINE int qjv_patch(unsigned kind, uint8_t *site, int64_t distance);

QJV_INLINE uint32_t qjv_at(const qjv_function *f, const uint8_t *ip) { return (uint32_t)(ip - f->start); }

QJV_OUTLINE void qjv_patch_at(qjv_function *f, uint32_t site, unsigned kind, uint32_t target) {
    if (!qjv_patch(kind, f->start + site, (int64_t)target - (int64_t)site)) qjv_failed(f, QJV_ERROR_BRANCH_RANGE);
}

QJV_INLINE qjv_fixup qjv_make_fixup(uint32_t site, unsigned kind, uint32_t label) {
    return (uint64_t)(label | kind << 24) << 32 | site;
}

/* Records a reference that qjv_end resolves. */
QJV_INLINE void qjv_wait(qjv_function *f, qjv_fixup fixup) {
    if (f->fixups == QJV_MAX_FIXUPS) qjv_failed(f, QJV_ERROR_FIXUPS);
    else f->fixup[f->fixups++] = fixup;
}

/* Records something about a label, once. */
QJV_COLD void qjv_note_label(qjv_function *f, unsigned kind, v_label label) {
    qjv_fixup note = qjv_make_fixup(0, kind, label.index);
    for (uint32_t index = 0; index < f->fixups; index++)
        if (f->fixup[index] == note) return;
    qjv_wait(f, note);
}

/* Records that v_jal calls a label; a call of the function itself is none of a procedure. */
QJV_INLINE void qjv_note_procedure_call(qjv_function *f, v_label label) {
    if (label.index != QJV_ENTRY) qjv_note_label(f, QJV_CALLED_PROCEDURE, label);
}

QJV_INLINE uint32_t qjv_label_of(qjv_fixup fixup) { return (uint32_t)(fixup >> 32) & QJV_EPILOGUE; }

/* The offset of a label; QJV_UNBOUND if it is not bound yet. */
QJV_INLINE uint32_t qjv_label_at(qjv_asm *c, v_label label) {
    /* Suppresses a warning about the index of such a label. */
    if (__builtin_constant_p(label.index) && label.index >= QJV_ENTRY) return QJV_UNBOUND;
    return label.index < c->f->labels ? c->f->label[label.index] : QJV_UNBOUND;
}

/* Records that the instruction at ip refers to a label, whose offset is target. */
QJV_INLINE void qjv_refer(qjv_asm *c, uint8_t *ip, unsigned kind, v_label label, uint32_t target) {
    qjv_function *f = c->f;
    uint32_t site = qjv_at(f, ip);
    qjv_fixup fixup = qjv_make_fixup(site, kind, label.index);
    if (label.index == QJV_EPILOGUE) {
        if (c->last_return != QJV_NO_RETURN) qjv_wait(f, c->last_return);
        c->last_return = fixup;
    } else if (__builtin_constant_p(label.index) && label.index >= QJV_ENTRY) {
        qjv_wait(f, fixup);
    } else if (target != QJV_UNBOUND) {
        if (!qjv_patch(kind, ip, (int64_t)target - (int64_t)site)) qjv_failed(f, QJV_ERROR_BRANCH_RANGE);
    } else {
        if (c->forward != QJV_NO_RETURN) qjv_wait(f, c->forward);
        c->forward = fixup;
    }
}

/* Whether a short branch of this range certainly reaches a label at target. */
QJV_INLINE int qjv_within(qjv_asm *c, uint32_t target, uint32_t reach) {
    const qjv_function *f = c->f;
    if (target != QJV_UNBOUND) return qjv_at(f, c->ip) - target < reach;
    return (size_t)(f->limit - f->start) < reach;
}
/* The range of short branches is in the header of the machine, included below. */
#define qjv_near(c, target) qjv_within(c, target, QJV_SHORT_BRANCH_RANGE)

QJV_INLINE v_label qjv_new_label(qjv_function *f) {
    v_label label = {0};
    if (f->labels == QJV_MAX_LABELS) {
        qjv_failed(f, QJV_ERROR_LABELS);
        return label;
    }
    label.index = f->labels++;
    f->label[label.index] = QJV_UNBOUND;
    return label;
}

/* A label for data after the code; equal constants share an entry. */
QJV_OUTLINE v_label qjv_new_data(qjv_function *f, uint64_t high, uint64_t bits, uint32_t size) {
    for (uint32_t index = 0; index < f->constants; index++) {
        const qjv_constant *known = &f->constant[index];
        v_label shared = {known->label};
        if (known->bits == bits && known->high == high && known->size == size) return shared;
    }
    v_label label = qjv_new_label(f);
    f->needs_general_path = 1;
    if (f->constants == QJV_MAX_CONSTANTS) {
        qjv_failed(f, QJV_ERROR_CONSTANTS);
        return label;
    }
    qjv_constant *constant = &f->constant[f->constants++];
    constant->bits = bits;
    constant->high = high;
    constant->label = label.index;
    constant->size = size;
    return label;
}

QJV_OUTLINE v_label qjv_new_constant(qjv_function *f, uint64_t bits, uint32_t size) {
    return qjv_new_data(f, 0, bits, size);
}

QJV_INLINE void qjv_bind_at(qjv_function *f, uint32_t at, v_label label) {
    f->last_bound = at;
    if (label.index >= f->labels) qjv_failed(f, QJV_ERROR_LABELS);
    else if (f->label[label.index] != QJV_UNBOUND) qjv_failed(f, QJV_ERROR_BOUND_TWICE);
    else f->label[label.index] = at;
}

QJV_INLINE v_label qjv_label(qjv_asm *c) { return qjv_new_label(c->f); }
QJV_INLINE void qjv_bind(qjv_asm *c, v_label label) {
    uint32_t at = qjv_at(c->f, c->ip), site = (uint32_t)c->forward;
    qjv_bind_at(c->f, at, label);
    if (qjv_label_of(c->forward) == label.index) {
        if (!qjv_patch((unsigned)(c->forward >> 56), c->f->start + site, (int64_t)at - (int64_t)site))
            qjv_failed(c->f, QJV_ERROR_BRANCH_RANGE);
        c->forward = QJV_NO_RETURN;
    }
}

QJV_INLINE int64_t qjv_count(qjv_asm *c, int64_t count, int64_t width) {
    if ((uint64_t)count < (uint64_t)width) return count;
    qjv_fail(c, QJV_ERROR_IMMEDIATE);
    return 0;
}

/* A constant or offset that must be an int. */
QJV_INLINE int64_t qjv_int(qjv_asm *c, int64_t value) {
    if (value != (int32_t)value) qjv_fail(c, QJV_ERROR_IMMEDIATE);
    return (int32_t)value;
}

/* A constant of 32 bits of which an operation uses only the bits: an int or an unsigned. */
QJV_INLINE int64_t qjv_int_bits(qjv_asm *c, int64_t value) {
    if ((uint64_t)value + 0x80000000u > UINT64_C(0x17fffffff)) qjv_fail(c, QJV_ERROR_IMMEDIATE);
    return (int32_t)value;
}

/* Allows instructions of these features (V_HAS_...) from here on; a function starts with none. */
QJV_INLINE void qjv_use_features(qjv_asm *c, uint64_t features) { c->f->features = features; }
QJV_INLINE int qjv_has(const qjv_asm *c, unsigned bit) { return (int)(c->f->features >> bit & 1); }

QJV_INLINE void qjv_note_call(qjv_asm *c) {
    if (c->f->leaf) qjv_fail(c, QJV_ERROR_CALL_IN_LEAF);
    c->f->calls = 1;
    c->f->needs_general_path = 1;
}

QJV_INLINE uint32_t qjv_float_bits(float value) {
    uint32_t bits;
    memcpy(&bits, &value, 4);
    return bits;
}

QJV_INLINE uint64_t qjv_double_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, 8);
    return bits;
}

#if defined(__x86_64__) && defined(__LP64__)
#include "vcode/x86_64.h"
#elif defined(__aarch64__)
#include "vcode/aarch64.h"
#elif defined(__riscv) && __riscv_xlen == 64
#include "vcode/riscv64.h"
#elif defined(__mips__) && defined(_ABIO32) && _MIPS_SIM == _ABIO32
#include "vcode/mips.h"
#elif defined(__sparc__) && defined(__arch64__)
#include "vcode/sparc64.h"
#elif defined(__alpha__)
#include "vcode/alpha.h"
#elif defined(__powerpc64__) && defined(__LITTLE_ENDIAN__) && _CALL_ELF == 2
#include "vcode/ppc64le.h"
#else
#error "quaject/vcode.h knows no machine like the one compiled for"
#endif

#include "vcode/convention.h"
#include "vcode/registers.h"
#include "vcode/function.h"
#include "vcode/call.h"
#include "vcode/paper.h"
#pragma GCC diagnostic pop

#endif
