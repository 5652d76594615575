/* The names of the paper, on one cursor per thread: a layer of macros over the explicit cursor. Storage is any writable
   and executable memory, whose size is not known here; or memory from v_code_new, which is never writable and
   executable through one mapping, and in which overflow is detected. */
#ifndef QUAJECT_VCODE_PAPER_H
#define QUAJECT_VCODE_PAPER_H

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__STRICT_ANSI__) && !defined(__cplusplus)
/* In strict C the system's headers declare them only under feature-test macros, which would have to precede any
 * header. */
long syscall(long number, ...);
int ftruncate(int file, off_t length);
#endif

struct v_code {
    uint64_t magic;
    struct v_code *self;
    uintptr_t execute;
    size_t length;
};

#define QJV_MAGIC UINT64_C(0x71756a5f636f6465)
enum { QJV_PAGE = 4096 };

/* Memory for one function of so many bytes; null if the system refuses. */
static inline __attribute__((unused)) struct v_code *v_code_new(size_t bytes) {
    size_t length = (bytes + sizeof(struct v_code) + QJV_PROLOGUE + QJV_SLACK + QJV_PAGE - 1) & ~(size_t)(QJV_PAGE - 1);
    int file = (int)syscall(SYS_memfd_create, "quaject-code", 1u);
    void *write = MAP_FAILED, *execute = MAP_FAILED;
    struct v_code *code;
    if (file < 0) return 0;
    if (ftruncate(file, (off_t)length) == 0) {
        write = mmap(0, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        execute = mmap(0, length, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    }
    close(file);
    if (write == MAP_FAILED || execute == MAP_FAILED) {
        if (write != MAP_FAILED) munmap(write, length);
        if (execute != MAP_FAILED) munmap(execute, length);
        return 0;
    }
    code = (struct v_code *)write;
    code->magic = QJV_MAGIC;
    code->self = code;
    code->execute = (uintptr_t)execute;
    code->length = length;
    return code;
}

/* Frees memory from v_code_new; its function must not be called any more. */
static inline __attribute__((unused)) void v_code_free(struct v_code *code) {
    munmap((void *)code->execute, code->length);
    munmap(code, code->length);
}

#ifdef __cplusplus
#define QJV_THREAD thread_local
#else
#define QJV_THREAD _Thread_local
#endif
static QJV_THREAD __attribute__((unused)) qjv_asm v_self;
static QJV_THREAD __attribute__((unused)) qjv_function v_function;

/* Limit and address of execution of memory that may be from v_code_new. */
QJV_COLD void v_open_code(qjv_function *f, const struct v_code *ip) {
    if (ip->magic != QJV_MAGIC) return;
    f->limit = (uint8_t *)ip + ip->length - QJV_SLACK;
    f->execute = ip->execute + sizeof *ip;
}

QJV_INLINE void v_begin(const char *types, v_reg *args, int leaf, struct v_code *ip) {
    /* The header at ip is read before anything is written, and preserved, because memory from v_code_new can be
     * reused. */
    qjv_region region = {(uint8_t *)(ip + 1), (uintptr_t)(ip + 1), QJV_NO_LIMIT};
    qjv_open(&v_self, &v_function, region, leaf);
    /* This much is free in any storage (v_code_new allocates whole pages), so that compilers eliminate the first
     * checks. */
    v_self.left = QJV_PAGE - sizeof *ip - QJV_PROLOGUE - QJV_SLACK;
    if (__builtin_expect(ip->self == ip, 0)) v_open_code(&v_function, ip);
    qjv_arrive(&v_self, types, args);
}

/* The same with a client's convention. */
QJV_COLD void v_begin_with(const char *types, v_reg *args, int leaf, struct v_code *ip, const qjv_convention *convention) {
    qjv_region region = {(uint8_t *)(ip + 1), (uintptr_t)(ip + 1), QJV_NO_LIMIT};
    qjv_open(&v_self, &v_function, region, leaf);
    if (ip->self == ip) v_open_code(&v_function, ip);
    qjv_arrive_with(&v_self, QJV_NO_LIMIT, types, args, convention);
}

/* Begins a function: the registers of its parameters are written to args. */
#define v_lambda(types, args, leaf, ip) v_begin(types, args, leaf, (struct v_code *)(ip))
/* The same with a calling convention of the client, by pointer; it must live until v_end. */
#define v_lambda_with(types, args, leaf, ip, convention) v_begin_with(types, args, leaf, (struct v_code *)(ip), convention)
/* Ends it; its address, or null after an error: v_error(). */
#define v_end() qjv_end(&v_self)
#define v_error() (v_function.error)
#define v_genlabel() qjv_label(&v_self)
#define v_label(label) qjv_bind(&v_self, label)
#define v_getreg(reg, class_) qjv_getreg(&v_self, reg, class_)
#define v_putreg(reg) qjv_putreg(&v_self, reg)
#define v_getfreg(reg, class_) qjv_getfloat(&v_self, reg, class_)
#define v_claim(reg) qjv_claim(&v_self, reg)
#define v_claimf(reg) qjv_claim_float(&v_self, reg)
#define v_putfreg(reg) qjv_putfloat(&v_self, reg)
#define v_call(types, target, arguments, count) qjv_call(&v_self, types, target, arguments, count)
#define v_tail_call(types, target, arguments, count) qjv_tail_call(&v_self, types, target, arguments, count)
#define v_jump_table(index, labels, count, outside) qjv_jump_table(&v_self, index, labels, count, outside)
#define v_use_features(features) qjv_use_features(&v_self, features)
#define v_schedule_delay(branch, instruction) qjv_schedule_delay(&v_self, branch, instruction)
#define v_raw_load(load, count) qjv_raw_load(&v_self, load, count)
#define v_local(type) qjv_local(&v_self, type)

#endif
