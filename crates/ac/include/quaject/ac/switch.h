/* Context switches between stacks. Knows no tasks, blocks or queues.
 *
 * A context is a stack pointer. On x86-64 its top word is the address to jump to, with that stack pointer and with the
 * task in rdx, so that a context saved by the inline switch and one saved by the function look the same to the code
 * that resumes them:
 *
 *     inline                          function
 *     sp -> [ address behind the asm ]  sp -> [ qj_ac__resume  ]
 *           [ rbp                    ]        [ r15 .. rbx rbp ]
 *           [ rbx, clang only        ]        [ return address ]
 *           [ padding to 16 bytes    ]
 *           [ 128 bytes: red zone    ]
 *
 * At a task's first wait two words more are on top, [ qj_ac__task_base ][ padding ]: the base of a detached task.
 *
 * The inline form declares every register as clobbered; the compiler then saves only live ones. Both end in `jmp`, not
 * `ret`: a `ret` without its matching call is mispredicted, which costs more than the rest of the switch (measured 26
 * cycles against 5). The control words of the floating-point unit are not saved: see `own_float_control` in base.h. */
#ifndef QUAJECT_AC_SWITCH_H
#define QUAJECT_AC_SWITCH_H

#include <quaject/ac/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls `function(argument)` on the stack below `task`. Returns the task if the function returns without having waited,
 * and null when it waits for the first time. May propagate an exception. */
struct qj_ac_task *qj_ac__call(struct qj_ac_task *task, void (*function)(void *), void *argument);
/* Saves the context in `*save` and resumes `to`, the context of `next`. */
void qj_ac__switch(void **save, void *to, struct qj_ac_task *next);
/* The same for a task's first wait: `to` is the record of its parent. Also arranges that the later return of
 * the task's function is predicted. */
void qj_ac__switch_first(struct qj_ac_task *task, void *to, void **save);
/* Resumes `to`, the context of `next`, and saves nothing. */
__attribute__((noreturn)) void qj_ac__jump(void *to, struct qj_ac_task *next);
/* A context and its task: returned in the two registers that x86_64.S expects. */
struct qj_ac__destination {
    void *context;
    struct qj_ac_task *next;
};
/* Called by a task whose function has returned after it had waited: frees its stack, returns the context to resume. */
struct qj_ac__destination qj_ac__task_end(struct qj_ac_task *task);

#if defined(__x86_64__) && !defined(QJ_AC_NO_INLINE_SWITCH)
#ifdef __AVX512F__
#define QJ_AC__WIDE_REGISTERS                                                                                          \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",      \
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define QJ_AC__WIDE_REGISTERS
#endif
/* clang keeps a pointer to a frame of variable size and alignment in rbx, and then ignores a clobber of rbx by an asm.
 * The orders of the stores are the fastest of all on a Zen 4, which completes two adjacent stores to one line per
 * cycle; the pair at the top is aligned for it. */
#ifdef __clang__
#define QJ_AC__KEEP_RBX "mov %%rbx, 16(%%rsp)\n\t"
#define QJ_AC__KEEP(word) "mov %%rsp, " #word "(%%rdi)\n\tmov %%rbp, 8(%%rsp)\n\tmov %%rax, (%%rsp)\n\t" QJ_AC__KEEP_RBX
#define QJ_AC__KEEP_RBX_FIRST "mov %%rbx, 32(%%rsp)\n\t"
#define QJ_AC__TAKE_RBX "mov 16(%%rsp), %%rbx\n\t"
#define QJ_AC__LOSE_RBX
#else
#define QJ_AC__KEEP_RBX ""
#define QJ_AC__KEEP(word) "mov %%rbp, 8(%%rsp)\n\tmov %%rax, (%%rsp)\n\tmov %%rsp, " #word "(%%rdi)\n\t"
#define QJ_AC__KEEP_RBX_FIRST ""
#define QJ_AC__TAKE_RBX ""
#define QJ_AC__LOSE_RBX , "rbx"
#endif
#ifdef __CET__
#define QJ_AC__LANDING "endbr64\n\t"
#else
#define QJ_AC__LANDING ""
#endif
#define QJ_AC__REGISTERS_BUT_AX_DX                                                                                     \
    "rcx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1", "xmm2",        \
        "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",           \
        "xmm15" QJ_AC__WIDE_REGISTERS QJ_AC__LOSE_RBX
#define QJ_AC__REGISTERS_BUT_DX "rax", QJ_AC__REGISTERS_BUT_AX_DX
#define QJ_AC__SWITCH(name, word)                                                                                      \
    QJ_AC_INLINE struct qj_ac_task *name(struct qj_ac_task *task, void *to, struct qj_ac_task *next) {                 \
        __asm__ volatile("lea 1f(%%rip), %%rax\n\t"                                                                    \
                         "lea -160(%%rsp), %%rsp\n\t" QJ_AC__KEEP(word)                                                \
                         "mov %%rsi, %%rsp\n\t"                                                                        \
                         "jmp *(%%rsi)\n"                                                                              \
                         "1:\t" QJ_AC__LANDING "mov 8(%%rsp), %%rbp\n\t" QJ_AC__TAKE_RBX                               \
                         "lea 160(%%rsp), %%rsp"                                                                       \
                         : "+D"(task), "+S"(to), "+d"(next)                                                            \
                         :                                                                                             \
                         : QJ_AC__REGISTERS_BUT_DX);                                                                   \
        return next;                                                                                                   \
    }
#define QJ_AC__SWITCH_FIRST(name, word)                                                                                \
    QJ_AC_INLINE struct qj_ac_task *name(struct qj_ac_task *task, void *to) {                                          \
        struct qj_ac_task *next;                                                                                       \
        __asm__ volatile("lea 1f(%%rip), %%rax\n\t"                                                                    \
                         "lea -176(%%rsp), %%rsp\n\t" QJ_AC__KEEP_RBX_FIRST                                            \
                         "mov %%rbp, 24(%%rsp)\n\t"                                                                    \
                         "mov %%rax, 16(%%rsp)\n\t"                                                                    \
                         "lea qj_ac__task_base(%%rip), %%rax\n\t"                                                           \
                         "mov %%rax, (%%rsp)\n\t"                                                                      \
                         "lea qj_ac__task_ended(%%rip), %%rax\n\t"                                                          \
                         "mov %%rax, -8(%%rdi)\n\t"                                                                    \
                         "mov %%rsp, " #word "(%%rdi)\n\t"                                                             \
                         "mov %%rsi, %%rsp\n\t"                                                                        \
                         "jmp qj_ac__resume_parent\n"                                                                      \
                         "1:\t" QJ_AC__LANDING "mov 8(%%rsp), %%rbp\n\t" QJ_AC__TAKE_RBX                               \
                         "lea 160(%%rsp), %%rsp"                                                                       \
                         : "=d"(next), "+D"(task), "+S"(to)                                                            \
                         :                                                                                             \
                         : QJ_AC__REGISTERS_BUT_DX);                                                                   \
        return next;                                                                                                   \
    }
#else
#define QJ_AC__SWITCH(name, word)                                                                                      \
    QJ_AC_INLINE struct qj_ac_task *name(struct qj_ac_task *task, void *to, struct qj_ac_task *next) {                 \
        qj_ac__switch((void **)task + word / 8, to, next);                                                             \
        return task;                                                                                                   \
    }
#define QJ_AC__SWITCH_FIRST(name, word)                                                                                \
    QJ_AC_INLINE struct qj_ac_task *name(struct qj_ac_task *task, void *to) {                                          \
        qj_ac__switch_first(task, to, (void **)task + word / 8);                                                       \
        return task;                                                                                                   \
    }
#endif

/* One for each field that receives the context, `sp` or `queued_sp`, by its offset. They return the task that was
 * passed as `next` by the switch that resumed this one, which is the task that waited. After a direct yield the target
 * records itself as running: the compiler then has the running task in a register at the next yield, and does not load
 * what has just been stored. */
QJ_AC__SWITCH(qj_ac__switch_waiting, 8)
QJ_AC__SWITCH(qj_ac__switch_queued, 16)
QJ_AC__SWITCH_FIRST(qj_ac__switch_first_waiting, 8)
QJ_AC__SWITCH_FIRST(qj_ac__switch_first_queued, 16)

/* `qj_ac__call` inlined: the compiler saves live registers only. While the task runs, the frame pointer is unchanged,
 * so that debuggers and `backtrace()` find the caller's frame; `__builtin_frame_address` makes the compiler keep one.
 * Only where no exception can pass, because compilers emit no clean-ups for an asm. */
#if defined(__x86_64__) && !defined(QJ_AC_NO_INLINE_SWITCH) && !defined(__EXCEPTIONS) && !defined(__cplusplus)
QJ_AC_INLINE struct qj_ac_task *qj_ac__call_inline(struct qj_ac_task *task, void (*function)(void *), void *argument) {
    struct qj_ac_task *returned;
    __asm__ volatile("" : : "X"(__builtin_frame_address(0)));
    __asm__ volatile("lea 1f(%%rip), %%rax\n\t"
                     "lea -160(%%rsp), %%rsp\n\t"
                     "mov %%rbp, 8(%%rsp)\n\t" QJ_AC__KEEP_RBX
                     "mov %%rax, (%%rsp)\n\t"
                     "mov %%rsp, (%%rdi)\n\t"
                     "mov %%rsp, %%r12\n\t"
                     "mov %%rdi, %%rsp\n\t"
                     "mov %%rdx, %%rdi\n\t"
                     "call *%%rsi\n\t"
                     "mov %%rsp, %%rax\n\t"
                     "mov %%r12, %%rsp\n"
                     "1:\t" QJ_AC__LANDING "lea 160(%%rsp), %%rsp"
                     : "=a"(returned), "+D"(task), "+S"(function), "+d"(argument)
                     :
                     : QJ_AC__REGISTERS_BUT_AX_DX);
    return returned;
}
#else
QJ_AC_INLINE struct qj_ac_task *qj_ac__call_inline(struct qj_ac_task *task, void (*function)(void *), void *argument) {
    return qj_ac__call(task, function, argument);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
