/* Vectors of 128, 256 and 512 bits, on the machines that have them: x86-64 and AArch64. A header of its own, so that
   programs without vectors need not read it.

       qjv_use_features(&a, qjv_detect_features());            of quaject/vcode/features.h
       if (!qjv_vector_width(&a, 512)) qjv_vector_width(&a, 128);
       v_reg x; qjv_getvector(&a, &x);
       qjv_vld(&a, x, from, 0); qjv_vbswapu(&a, x, x); qjv_vst(&a, x, to, 0); */
#ifndef QUAJECT_VCODE_VECTORS_H
#define QUAJECT_VCODE_VECTORS_H

#include "../vcode.h"

/* As in quaject/vcode.h: inline, so that what is not called is dropped. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"

#ifndef QJV_WIDTHS
#error "the machine compiled for has no vectors"
#endif

/* A width, the feature bit that represents it, and the features that it requires. */
typedef struct { unsigned bits; uint64_t own, needs; } qjv_width;

static const qjv_width qjv_widths[] = QJV_WIDTHS;

/* Selects the width of vectors from here on, in bits; 0 if the features in use have no such vectors. */
QJV_INLINE int qjv_vector_width(qjv_asm *c, unsigned bits) {
    uint64_t all = 0;
    for (size_t index = 0; index < sizeof qjv_widths / sizeof *qjv_widths; index++) all |= qjv_widths[index].own;
    for (size_t index = 0; index < sizeof qjv_widths / sizeof *qjv_widths; index++) {
        const qjv_width *width = &qjv_widths[index];
        if (width->bits != bits || (c->f->features & width->needs) != width->needs) continue;
        c->f->features = (c->f->features & ~all) | width->own;
        return 1;
    }
    return 0;
}

/* The width of vectors in bytes; 0 before a width was selected. */
QJV_INLINE unsigned qjv_vector_bytes(const qjv_asm *c) {
    for (size_t index = 0; index < sizeof qjv_widths / sizeof *qjv_widths; index++)
        if (c->f->features & qjv_widths[index].own) return qjv_widths[index].bits / 8;
    return 0;
}

QJV_INLINE int qjv_has_width(qjv_asm *c) {
    if (qjv_vector_bytes(c)) return 1;
    qjv_fail(c, QJV_ERROR_FEATURE);
    return 0;
}

/* Allocates a vector register; 0 if all are in use. A call destroys it. */
QJV_INLINE int qjv_getvector(qjv_asm *c, v_reg *reg) { return qjv_getfloat(c, reg, V_TEMP); }
QJV_INLINE void qjv_putvector(qjv_asm *c, v_reg reg) { qjv_putfloat(c, reg); }

/* A label for sixteen bytes that are repeated over the width of a vector, after the code. */
QJV_INLINE v_label qjv_vector_constant(qjv_asm *c, uint64_t high, uint64_t low) {
    return qjv_new_data(c->f, high, low, qjv_vector_bytes(c));
}

/* Registers and second source in a VEX or EVEX prefix at byte 0, inverted, and the ModRM byte. */
QJV_INLINE uint64_t qjv_vex(uint32_t bits, uint32_t second, unsigned modrm) {
    uint32_t number = (second & 1) << 3 | second >> 16;
    return (uint64_t)(~bits & 7) << 13 | (uint64_t)(~number & 15) << 19 | (uint64_t)(bits >> 16) << (8 * modrm);
}

/* An instruction with such a prefix, base and displacement. Short displacements count in units of two to the scale. */
QJV_INLINE uint8_t *qjv_vex_offset(uint8_t *ip, uint64_t constant, unsigned length, uint32_t bits, uint32_t second,
                                   int64_t offset, unsigned scale) {
    int is_short = qjv_fits_signed(offset, 8 + scale, scale);
    ip = qjv_bytes(ip, constant | qjv_vex(bits, second, length) | (uint64_t)(is_short ? 0x40 : 0x80) << (8 * length), length + 1);
    return qjv_bytes(ip, (uint32_t)(is_short ? offset >> scale : offset), is_short ? 1 : 4);
}

#if defined(__x86_64__)
#include "vectors/x86_64.h"
#else
#include "vectors/aarch64.h"
#endif

#define v_vector_width(bits) qjv_vector_width(&v_self, bits)
#define v_vector_bytes() qjv_vector_bytes(&v_self)
#define v_getvector(reg) qjv_getvector(&v_self, reg)
#define v_putvector(reg) qjv_putvector(&v_self, reg)

#pragma GCC diagnostic pop

#endif
