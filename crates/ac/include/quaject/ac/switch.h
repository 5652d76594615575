/* From one stack to another. Knows nothing of tasks, blocks and queues.
 *
 * A context is a stack pointer. On x86-64 its top word is the address to jump to, with that stack pointer, so that a context saved by the inline
 * switch and one saved by the function look the same to whoever resumes them:
 *
 *     inline                          function
 *     sp -> [ address behind the asm ]  sp -> [ qj_ac__resume  ]
 *           [ rbp                    ]        [ r15 .. rbx rbp ]
 *           [ 128 bytes: red zone    ]        [ return address ]
 *
 * At a task's first wait two words more lie on top, [ qj_ac__base ][ task ]: that is where its own life begins.
 *
 * The inline form tells the compiler that every register is lost; it then saves only what lives. Both end in `jmp`, not
 * `ret`: a return that does not match its call costs more than all the rest (measured 26 cycles against 5). The control
 * words of the floating-point unit are not saved; tasks that change them restore them before they wait. */
#ifndef QUAJECT_AC_SWITCH_H
#define QUAJECT_AC_SWITCH_H

#include <quaject/ac/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Calls `function(argument)` on the stack below `task`. Returns the task when the function has returned without ever
 * waiting, and null when it waits. May pass an exception on. */
struct qj_ac_task *qj_ac__call(struct qj_ac_task *task, void (*function)(void *), void *argument);
/* Saves the context in `*save` and goes to `to`. */
void qj_ac__switch(void **save, void *to);
/* The same for a task's first wait: also arranges that the task's function, when it returns one day, is predicted. */
void qj_ac__switch_first(struct qj_ac_task *task, void *to);
/* Goes to `to`, saving nothing. */
__attribute__((noreturn)) void qj_ac__jump(void *to);
/* Called by a task whose function has returned after it had waited: frees its stack, says where to go. */
void *qj_ac__end(struct qj_ac_task *task);

#if defined(__x86_64__) && !defined(QJ_AC_NO_INLINE_SWITCH)
#ifdef __AVX512F__
#define QJ_AC__WIDE_REGISTERS                                                                                          \
    , "xmm16", "xmm17", "xmm18", "xmm19", "xmm20", "xmm21", "xmm22", "xmm23", "xmm24", "xmm25", "xmm26", "xmm27",      \
        "xmm28", "xmm29", "xmm30", "xmm31", "k1", "k2", "k3", "k4", "k5", "k6", "k7"
#else
#define QJ_AC__WIDE_REGISTERS
#endif
#ifdef __CET__
#define QJ_AC__LANDING "endbr64\n\t"
#else
#define QJ_AC__LANDING ""
#endif
#define QJ_AC__EVERY_REGISTER                                                                                          \
    "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory", "cc", "xmm0", "xmm1",  \
        "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",   \
        "xmm15" QJ_AC__WIDE_REGISTERS
QJ_AC_INLINE void qj_ac__switch_inline(struct qj_ac_task *task, void *to) {
    __asm__ volatile("lea 1f(%%rip), %%rax\n\t"
                     "lea -144(%%rsp), %%rsp\n\t"
                     "mov %%rbp, 8(%%rsp)\n\t"
                     "mov %%rax, (%%rsp)\n\t"
                     "mov %%rsp, 8(%%rdi)\n\t"
                     "mov %%rsi, %%rsp\n\t"
                     "jmp *(%%rsi)\n"
                     "1:\t" QJ_AC__LANDING "mov 8(%%rsp), %%rbp\n\t"
                     "lea 144(%%rsp), %%rsp"
                     : "+D"(task), "+S"(to)
                     :
                     : QJ_AC__EVERY_REGISTER);
}
QJ_AC_INLINE void qj_ac__switch_first_inline(struct qj_ac_task *task, void *to) {
    __asm__ volatile("lea 1f(%%rip), %%rax\n\t"
                     "lea -160(%%rsp), %%rsp\n\t"
                     "mov %%rbp, 24(%%rsp)\n\t"
                     "mov %%rax, 16(%%rsp)\n\t"
                     "mov %%rdi, 8(%%rsp)\n\t"
                     "lea qj_ac__base(%%rip), %%rax\n\t"
                     "mov %%rax, (%%rsp)\n\t"
                     "lea qj_ac__ended(%%rip), %%rax\n\t"
                     "mov %%rax, -8(%%rdi)\n\t"
                     "mov %%rsp, 8(%%rdi)\n\t"
                     "mov %%rsi, %%rsp\n\t"
                     "jmp *(%%rsi)\n"
                     "1:\t" QJ_AC__LANDING "mov 8(%%rsp), %%rbp\n\t"
                     "lea 144(%%rsp), %%rsp"
                     : "+D"(task), "+S"(to)
                     :
                     : QJ_AC__EVERY_REGISTER);
}
#else
QJ_AC_INLINE void qj_ac__switch_inline(struct qj_ac_task *task, void *to) { qj_ac__switch(&task->sp, to); }
QJ_AC_INLINE void qj_ac__switch_first_inline(struct qj_ac_task *task, void *to) { qj_ac__switch_first(task, to); }
#endif

#ifdef __cplusplus
}
#endif

#endif
