/* The names of the paper, on one cursor per thread and file: a layer of macros over the explicit cursor. A function is
   begun and ended in one file; another file is passed a qjv_asm. Storage is any writable and executable memory, whose
   size is not known here; or memory from v_code_new, which is never writable and executable through one mapping, and
   in which overflow is detected. */
#ifndef QUAJECT_VCODE_PAPER_H
#define QUAJECT_VCODE_PAPER_H

#include "code_memory.h"

#ifdef __cplusplus
#define QJV_THREAD thread_local
#else
#define QJV_THREAD _Thread_local
#endif
static QJV_THREAD __attribute__((unused)) qjv_asm v_self;
static QJV_THREAD __attribute__((unused)) qjv_function v_function;

/* Whether a v_ name was used in this thread where no function was begun. One for all files, so that the function that
   lacks the instruction learns of it: each file has a cursor of its own. */
#ifdef __cplusplus
inline QJV_THREAD int qjv_strayed;
#else
__attribute__((weak)) QJV_THREAD int qjv_strayed;
#endif

QJV_COLD qjv_function *qjv_unbegun(void) {
    static QJV_THREAD uint8_t nowhere[1024];
    qjv_region region = {nowhere, 0, sizeof nowhere};
    qjv_open(&v_self, &v_function, region, V_NLEAF);
    /* The next name comes here, too. */
    v_self.left = 0;
    v_function.error = QJV_ERROR_NOT_BEGUN;
    v_function.needs_general_path = 1;
    qjv_strayed = 1;
    return &v_function;
}

/* The cursor of the function that was begun in this file. */
QJV_INLINE qjv_asm *v_cursor(void) {
    if (__builtin_expect(!v_self.f || v_function.error == QJV_ERROR_NOT_BEGUN, 0)) (void)qjv_unbegun();
    return &v_self;
}

/* Abandons the function that was begun, if there is one, instead of ending it. */
QJV_INLINE void v_abandon(void) {
    v_self.f = 0;
    v_self.left = 0;
    qjv_strayed = 0;
}

QJV_INLINE void *v_finish(void) {
    qjv_asm *c = v_cursor();
    void *code;
    if (__builtin_expect(qjv_strayed, 0)) qjv_failed(c->f, QJV_ERROR_NOT_BEGUN);
    code = qjv_end(c);
    v_abandon();
    return code;
}

/* Limit and address of execution of memory that may be from v_code_new. */
QJV_COLD void v_open_code(qjv_function *f, const struct v_code *ip) {
    if (ip->magic != QJV_MAGIC) return;
    f->limit = (uint8_t *)ip + ip->length - QJV_SLACK;
    f->execute = (uintptr_t)ip->chunk->execute + (uintptr_t)((const uint8_t *)(ip + 1) - ip->chunk->write);
}

QJV_INLINE void v_begin(const char *types, v_reg *args, int leaf, struct v_code *ip) {
    /* The header at ip is read before anything is written, and preserved, because memory from v_code_new can be
     * reused. */
    qjv_region region = {(uint8_t *)(ip + 1), (uintptr_t)(ip + 1), QJV_NO_LIMIT};
    const int is_nested = v_self.f && v_function.error != QJV_ERROR_NOT_BEGUN;
    qjv_open(&v_self, &v_function, region, leaf);
    if (__builtin_expect(is_nested, 0)) qjv_failed(&v_function, QJV_ERROR_NESTED);
    /* This much is free in any storage, so that compilers eliminate the first checks. */
    v_self.left = QJV_WINDOW - sizeof *ip - QJV_PROLOGUE - QJV_SLACK;
    if (__builtin_expect(ip->self == ip, 0)) v_open_code(&v_function, ip);
    qjv_arrive(&v_self, types, args);
}

/* The same with a client's convention. */
QJV_COLD void v_begin_with(const char *types, v_reg *args, int leaf, struct v_code *ip, const qjv_convention *convention) {
    qjv_region region = {(uint8_t *)(ip + 1), (uintptr_t)(ip + 1), QJV_NO_LIMIT};
    const int is_nested = v_self.f && v_function.error != QJV_ERROR_NOT_BEGUN;
    qjv_open(&v_self, &v_function, region, leaf);
    if (is_nested) qjv_failed(&v_function, QJV_ERROR_NESTED);
    if (ip->self == ip) v_open_code(&v_function, ip);
    qjv_arrive_with(&v_self, QJV_NO_LIMIT, types, args, convention);
}

/* Begins a function: the registers of its parameters are written to args. */
#define v_lambda(types, args, leaf, ip) v_begin(types, args, leaf, (struct v_code *)(ip))
/* The same with a calling convention of the client, by pointer; it must live until v_end. */
#define v_lambda_with(types, args, leaf, ip, convention) v_begin_with(types, args, leaf, (struct v_code *)(ip), convention)
/* Ends it; its address, or null after an error: v_error() and v_error_text(). Begin no other function in the same file
   and thread before; v_abandon() forgets one. */
#define v_end() v_finish()
/* The error of the function that was ended last in this file, and a text about it. */
#define v_error() (v_function.error)
#define v_error_text() qjv_error_text(v_function.error)
#define v_genlabel() qjv_label(v_cursor())
#define v_label(label) qjv_bind(v_cursor(), label)
#define v_getreg(reg, class_) qjv_getreg(v_cursor(), reg, class_)
#define v_putreg(reg) qjv_putreg(v_cursor(), reg)
#define v_getfreg(reg, class_) qjv_getfloat(v_cursor(), reg, class_)
#define v_claim(reg) qjv_claim(v_cursor(), reg)
#define v_claimf(reg) qjv_claim_float(v_cursor(), reg)
#define v_putfreg(reg) qjv_putfloat(v_cursor(), reg)
#define v_call(types, target, arguments, count) qjv_call(v_cursor(), types, target, arguments, count)
#define v_tail_call(types, target, arguments, count) qjv_tail_call(v_cursor(), types, target, arguments, count)
#define v_jump_table(index, labels, count, outside) qjv_jump_table(v_cursor(), index, labels, count, outside)
#define v_use_features(features) qjv_use_features(v_cursor(), features)
#define v_schedule_delay(branch, instruction) qjv_schedule_delay(v_cursor(), branch, instruction)
#define v_raw_load(load, count) qjv_raw_load(v_cursor(), load, count)
#define v_procedure(label, link) qjv_procedure(v_cursor(), label, link)
#define v_local(type) qjv_local(v_cursor(), type)
/* A block of the stack, aligned to a power of two up to sixteen. */
#define v_local_bytes(bytes, align) qjv_local_bytes(v_cursor()->f, bytes, align)
#define v_local_address(reg, local) qjv_local_address(v_cursor(), reg, local)

#endif
