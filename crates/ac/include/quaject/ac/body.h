/* DO_FINISH and ASYNC, the two constructs of Asynchronous C, as macros; for each compiler a way to run a statement on
 * another stack, without an executable stack.
 *
 *     FINISH_BEGIN(name)            a block up to FINISH_END(name), which waits for its tasks: variables declared
 *         ...                       between the two exist until then. `return`, `break`, `continue` and `goto` out of
 *     FINISH_END(name)              it wait too, and in C before the variables end. FINISH_BEGIN_NX(name) is a shield
 *     FINISH_GUARD(name)            in C++, below the variables of the block: an early exit or an exception waits
 *                                   before they are destroyed. Without it destructors run first, as the language has
 *                                   it. In C it does nothing
 *     DO_FINISH({ ... })            the paper's form. Variables declared in its braces end BEFORE it waits for the
 *                                   tasks, so a task must not have a pointer to one: declare them before DO_FINISH.
 *                                   gcc warns; clang keeps them. `return` out of it waits, and so do `break` and
 *                                   `continue`, which leave the block only, not a loop around it
 *     DO_FINISH_(name, { ... })     the same with a name, for CANCEL(name) and qj_ac_deadline(name, ns)
 *     DO_FINISH_NX({ ... })         a shield: cancellations from outside do not reach into it
 *     ASYNC_CALL(function, a, b)    calls function(a, b) as a task: arguments are converted as in the call itself; at
 *                                   most six, of at most 16 bytes each
 *     ASYNC({ ... })                the text as a task; the local variables that it uses are copied
 *
 * ASYNC({ ... }) is a lambda in C++, a block with clang -fblocks, and with gcc a nested function, which may not use
 * local variables of the enclosing function: that is a compile error, and ASYNC_CALL is the alternative. With
 * QJ_AC_EAGER defined before the first inclusion all of them own their stacks eagerly. */
#ifndef QUAJECT_AC_BODY_H
#define QUAJECT_AC_BODY_H

#include <quaject/ac/finish.h>

#ifdef QJ_AC_EAGER
#define QJ_AC__ASYNC qj_ac_async_eager
#define QJ_AC__IS_EAGER 1
#else
#define QJ_AC__ASYNC qj_ac_async
#define QJ_AC__IS_EAGER 0
#endif

#define QJ_AC__PASTE2(a, b) a##b
#define QJ_AC__PASTE(a, b) QJ_AC__PASTE2(a, b)

#ifdef __cplusplus
#include <quaject/ac/body.hpp>

#define QJ_AC__DO_FINISH(name, kind, ...)                                                                              \
    do {                                                                                                               \
        ::qj::ac::block QJ_AC__PASTE(name, __guard)(::qj::ac::block::kind);                                            \
        struct qj_ac_finish *const name = QJ_AC__PASTE(name, __guard).get();                                           \
        (void)name;                                                                                                    \
        { __VA_ARGS__; }                                                                                               \
        QJ_AC__PASTE(name, __guard).join();                                                                            \
    } while (0)
#define QJ_AC__FINISH_BEGIN(name, kind)                                                                                \
    {                                                                                                                  \
        ::qj::ac::block QJ_AC__PASTE(name, __guard)(::qj::ac::block::kind);                                            \
        struct qj_ac_finish *const name = QJ_AC__PASTE(name, __guard).get();                                           \
        (void)name;
#define QJ_AC__FINISH_END(name)                                                                                        \
        QJ_AC__PASTE(name, __guard).join();                                                                            \
    }
#define QJ_AC__FINISH_GUARD(name)                                                                                      \
    ::qj::ac::guard QJ_AC__PASTE(QJ_AC__PASTE(name, __early), __COUNTER__)(QJ_AC__PASTE(name, __guard))
#define QJ_AC__OPEN ordinary
#define QJ_AC__SHIELDED shielded

#define ASYNC(...) ::qj::ac::async([=]() mutable { __VA_ARGS__; })
#define ASYNC_CALL(...) ::qj::ac::async_call(__VA_ARGS__)

#else

QJ_AC_INLINE void qj_ac__close(struct qj_ac_finish *block) { qj_ac_finish_end(block); }

/* clang ends a variable with the braces around it, so that another may take its memory, unless the function has a
 * computed goto. This one is never executed and leaves no code. */
#ifdef __clang__
#define QJ_AC__KEEP_VARIABLES                                                                                          \
    __extension__({                                                                                                    \
        __label__ qj_ac__here;                                                                                         \
        if (0) goto *&&qj_ac__here;                                                                                    \
    qj_ac__here:;                                                                                                      \
    });
#else
#define QJ_AC__KEEP_VARIABLES
#endif

#define QJ_AC__BLOCK(name, kind)                                                                                       \
    __attribute__((cleanup(qj_ac__close))) struct qj_ac_finish QJ_AC__PASTE(name, __storage);                          \
    kind(&QJ_AC__PASTE(name, __storage));                                                                              \
    struct qj_ac_finish *const name = &QJ_AC__PASTE(name, __storage);                                                  \
    (void)name;                                                                                                        \
    QJ_AC__KEEP_VARIABLES
#define QJ_AC__DO_FINISH(name, kind, ...)                                                                              \
    do {                                                                                                               \
        QJ_AC__BLOCK(name, kind)                                                                                       \
        QJ_AC__POINTERS_BEGIN                                                                                          \
        { __VA_ARGS__; }                                                                                               \
        QJ_AC__POINTERS_END                                                                                            \
    } while (0)
/* The join is inside of the scope; the clean-up, which then finds no task, is for the other exits. */
#define QJ_AC__FINISH_BEGIN(name, kind)                                                                                \
    {                                                                                                                  \
        QJ_AC__BLOCK(name, kind)
#define QJ_AC__FINISH_END(name)                                                                                        \
        qj_ac_join(name);                                                                                              \
    }
#define QJ_AC__FINISH_GUARD(name) (void)name
#define QJ_AC__OPEN qj_ac_finish_begin
#define QJ_AC__SHIELDED qj_ac_finish_begin_shielded

/* A function with its arguments as machine words. The words are read before the function starts, so they may lie in
 * the caller's frame. */
struct qj_ac__words {
    void (*function)(void);
    uintptr_t words[6];
};
void qj_ac__call_spread(void *words);

/* Whether an argument is an integer or a pointer (classes 1 to 5 of the compilers) of at most a word. */
#define QJ_AC__IS_WORD(x)                                                                                              \
    (__builtin_classify_type((x)) >= 1 && __builtin_classify_type((x)) <= 5 && sizeof(QJ_AC__T(x)) <= sizeof(uintptr_t))
#define QJ_AC__ONLY_WORD(x) __builtin_choose_expr(QJ_AC__IS_WORD(x), (x), 0)
#if defined(__riscv)
/* On RISC-V registers hold 32-bit values sign-extended, unsigned ones too. */
#define QJ_AC__W(x)                                                                                                    \
    ((uintptr_t)_Generic(QJ_AC__ONLY_WORD(x), unsigned: (intptr_t)(int32_t)(uintptr_t)QJ_AC__ONLY_WORD(x),             \
                         default: QJ_AC__ONLY_WORD(x)))
#else
#define QJ_AC__W(x) ((uintptr_t)QJ_AC__ONLY_WORD(x))
#endif
#define QJ_AC__T(x) __typeof__(((void)0, (x)))

/* Whether the arguments are words and their types exactly those of the parameters: then nothing is to be converted, and
 * the words are passed, which is faster. */
#define QJ_AC__SAME_TYPES(f, call, ...)                                                                                \
    __builtin_types_compatible_p(__typeof__(*(f)), __typeof__(call)(__VA_ARGS__))
#define QJ_AC__EXACT_0(f) __builtin_types_compatible_p(__typeof__(*(f)), __typeof__((f)())(void))
#define QJ_AC__EXACT_1(f, a) (QJ_AC__IS_WORD(a) && QJ_AC__SAME_TYPES(f, (f)(a), QJ_AC__T(a)))
#define QJ_AC__EXACT_2(f, a, b)                                                                                        \
    (QJ_AC__IS_WORD(a) && QJ_AC__IS_WORD(b) && QJ_AC__SAME_TYPES(f, (f)(a, b), QJ_AC__T(a), QJ_AC__T(b)))
#define QJ_AC__EXACT_3(f, a, b, c)                                                                                     \
    (QJ_AC__IS_WORD(a) && QJ_AC__IS_WORD(b) && QJ_AC__IS_WORD(c) &&                                                    \
     QJ_AC__SAME_TYPES(f, (f)(a, b, c), QJ_AC__T(a), QJ_AC__T(b), QJ_AC__T(c)))
#define QJ_AC__EXACT_4(f, a, b, c, d)                                                                                  \
    (QJ_AC__IS_WORD(a) && QJ_AC__IS_WORD(b) && QJ_AC__IS_WORD(c) && QJ_AC__IS_WORD(d) &&                               \
     QJ_AC__SAME_TYPES(f, (f)(a, b, c, d), QJ_AC__T(a), QJ_AC__T(b), QJ_AC__T(c), QJ_AC__T(d)))
#define QJ_AC__EXACT_5(f, a, b, c, d, e)                                                                               \
    (QJ_AC__IS_WORD(a) && QJ_AC__IS_WORD(b) && QJ_AC__IS_WORD(c) && QJ_AC__IS_WORD(d) && QJ_AC__IS_WORD(e) &&          \
     QJ_AC__SAME_TYPES(f, (f)(a, b, c, d, e), QJ_AC__T(a), QJ_AC__T(b), QJ_AC__T(c), QJ_AC__T(d), QJ_AC__T(e)))
#define QJ_AC__EXACT_6(f, a, b, c, d, e, g)                                                                            \
    (QJ_AC__IS_WORD(a) && QJ_AC__IS_WORD(b) && QJ_AC__IS_WORD(c) && QJ_AC__IS_WORD(d) && QJ_AC__IS_WORD(e) &&          \
     QJ_AC__IS_WORD(g) &&                                                                                              \
     QJ_AC__SAME_TYPES(f, (f)(a, b, c, d, e, g), QJ_AC__T(a), QJ_AC__T(b), QJ_AC__T(c), QJ_AC__T(d), QJ_AC__T(e),      \
                       QJ_AC__T(g)))
#define QJ_AC__EXACT_7(...) 1

/* A variable declared in the braces of DO_FINISH does not exist any more when its tasks end. gcc reports pointers that
 * outlive what they point to: so the pointers among the arguments of a call are stored in variables of the block, which
 * are used, as far as the compiler is to know, behind the braces. That it cannot know for certain, because a task may
 * copy before it waits, so it is a warning; and only the last call of a body is remembered. None of this leaves code
 * behind. clang is made to keep such variables: see QJ_AC__KEEP_VARIABLES. */
#define QJ_AC__POINTER(n) QJ_AC__PASTE(QJ_AC__PASTE(qj_ac__argument_, n), _of_a_task__declare_its_target_before_DO_FINISH)
#if defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
static const void *QJ_AC__POINTER(1) __attribute__((unused)), *QJ_AC__POINTER(2) __attribute__((unused)),
    *QJ_AC__POINTER(3) __attribute__((unused)), *QJ_AC__POINTER(4) __attribute__((unused)),
    *QJ_AC__POINTER(5) __attribute__((unused)), *QJ_AC__POINTER(6) __attribute__((unused));
static int qj_ac__never __attribute__((unused));
#define QJ_AC__P(n, x)                                                                                                 \
    __builtin_choose_expr(__builtin_classify_type((x)) == 5, __extension__({                                           \
                              QJ_AC__T(x) qj_ac__argument = (x);                                                       \
                              QJ_AC__POINTER(n) = (const void *)(uintptr_t)QJ_AC__ONLY_WORD(qj_ac__argument);          \
                              qj_ac__argument;                                                                         \
                          }),                                                                                          \
                          (x))
#define QJ_AC__POINTERS_BEGIN                                                                                          \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wshadow\"")                                      \
    const void *QJ_AC__POINTER(1) = NULL, *QJ_AC__POINTER(2) = NULL, *QJ_AC__POINTER(3) = NULL,                        \
               *QJ_AC__POINTER(4) = NULL, *QJ_AC__POINTER(5) = NULL, *QJ_AC__POINTER(6) = NULL;                        \
    _Pragma("GCC diagnostic pop")
#define QJ_AC__POINTERS_END                                                                                            \
    _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic warning \"-Wdangling-pointer=2\"")                          \
    if (qj_ac__never) {                                                                                                \
        __asm__ volatile("" : : "r"(QJ_AC__POINTER(1)), "r"(QJ_AC__POINTER(2)), "r"(QJ_AC__POINTER(3)),                \
                         "r"(QJ_AC__POINTER(4)), "r"(QJ_AC__POINTER(5)), "r"(QJ_AC__POINTER(6)));                      \
    }                                                                                                                  \
    _Pragma("GCC diagnostic pop")
#else
#define QJ_AC__P(n, x) x
#define QJ_AC__POINTERS_BEGIN
#define QJ_AC__POINTERS_END
#endif

/* All other calls. The compiler calls, with the type of the function, so that it converts the arguments and passes them
 * as the function expects them; but what it calls is `qj_ac__call_converted`, which starts a task, copies registers and
 * stack arguments to it, and there calls the function, `callee` of the running task. The arguments may start tasks and
 * wait themselves, so the former callee is put back. */
void qj_ac__call_converted(void);
QJ_AC_INLINE struct qj_ac_callee qj_ac__set_callee(void (*function)(void), uintptr_t eager) {
    struct qj_ac_callee outer = qj_ac__thread.current->callee;
    qj_ac__thread.current->callee = (struct qj_ac_callee){function, eager};
    return outer;
}
QJ_AC_INLINE void qj_ac__restore_callee(struct qj_ac_callee outer) { qj_ac__thread.current->callee = outer; }

#define QJ_AC__CONVERT(f, call)                                                                                        \
    do {                                                                                                               \
        struct qj_ac_callee qj_ac__outer = qj_ac__set_callee((void (*)(void))(f), QJ_AC__IS_EAGER);                    \
        __typeof__(*(f)) *qj_ac__entry;                                                                                \
        __asm__ volatile("" : "=r"(qj_ac__entry) : "0"(&qj_ac__call_converted));                                       \
        _Pragma("GCC diagnostic push") _Pragma("GCC diagnostic ignored \"-Wunused-result\"") (void)call;               \
        _Pragma("GCC diagnostic pop") qj_ac__restore_callee(qj_ac__outer);                                             \
    } while (0)

/* gcc takes what follows a call of a function that never returns for unreachable. Its type is volatile. */
#ifdef __clang__
#define QJ_AC__RETURNS(f) 1
#else
#define QJ_AC__RETURNS(f) __extension__(_Generic(1 ? (void *)1 : &*(f), volatile void *: 0, default: 1))
#endif
#define QJ_AC__FITS(x) (sizeof(QJ_AC__T(x)) <= 16)
#define QJ_AC__FIT_0(f) 1
#define QJ_AC__FIT_1(f, a) QJ_AC__FITS(a)
#define QJ_AC__FIT_2(f, a, b) (QJ_AC__FITS(a) && QJ_AC__FITS(b))
#define QJ_AC__FIT_3(f, a, b, c) (QJ_AC__FIT_2(f, a, b) && QJ_AC__FITS(c))
#define QJ_AC__FIT_4(f, a, b, c, d) (QJ_AC__FIT_3(f, a, b, c) && QJ_AC__FITS(d))
#define QJ_AC__FIT_5(f, a, b, c, d, e) (QJ_AC__FIT_4(f, a, b, c, d) && QJ_AC__FITS(e))
#define QJ_AC__FIT_6(f, a, b, c, d, e, g) (QJ_AC__FIT_5(f, a, b, c, d, e) && QJ_AC__FITS(g))
#define QJ_AC__FIT_7(...) 1

#define QJ_AC__WORDS_0() 0
#define QJ_AC__WORDS_1(a) QJ_AC__W(QJ_AC__P(1, a))
#define QJ_AC__WORDS_2(a, b) QJ_AC__W(QJ_AC__P(1, a)), QJ_AC__W(QJ_AC__P(2, b))
#define QJ_AC__WORDS_3(a, b, c) QJ_AC__W(QJ_AC__P(1, a)), QJ_AC__W(QJ_AC__P(2, b)), QJ_AC__W(QJ_AC__P(3, c))
#define QJ_AC__WORDS_4(a, b, c, d) QJ_AC__W(QJ_AC__P(1, a)), QJ_AC__W(QJ_AC__P(2, b)), QJ_AC__W(QJ_AC__P(3, c)), QJ_AC__W(QJ_AC__P(4, d))
#define QJ_AC__WORDS_5(a, b, c, d, e) QJ_AC__W(QJ_AC__P(1, a)), QJ_AC__W(QJ_AC__P(2, b)), QJ_AC__W(QJ_AC__P(3, c)), QJ_AC__W(QJ_AC__P(4, d)), QJ_AC__W(QJ_AC__P(5, e))
#define QJ_AC__WORDS_6(a, b, c, d, e, g) QJ_AC__W(QJ_AC__P(1, a)), QJ_AC__W(QJ_AC__P(2, b)), QJ_AC__W(QJ_AC__P(3, c)), QJ_AC__W(QJ_AC__P(4, d)), QJ_AC__W(QJ_AC__P(5, e)), QJ_AC__W(QJ_AC__P(6, g))
#define QJ_AC__COUNT(...) QJ_AC__COUNT2(__VA_ARGS__, 7, 7, 7, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define QJ_AC__COUNT2(f, a, b, c, d, e, g, h, i, j, k, n, ...) n
#define QJ_AC__CALL_7(...) ASYNC_CALL_takes_no_more_than_six_arguments__pass_a_pointer_to_a_structure
#define QJ_AC__TAIL_7(...) 0
#define QJ_AC__CALL_0(f) (f)()
#define QJ_AC__CALL_1(f, ...) (f)(__VA_ARGS__)
#define QJ_AC__CALL_2 QJ_AC__CALL_1
#define QJ_AC__CALL_3 QJ_AC__CALL_1
#define QJ_AC__CALL_4 QJ_AC__CALL_1
#define QJ_AC__CALL_5 QJ_AC__CALL_1
#define QJ_AC__CALL_6 QJ_AC__CALL_1
#define QJ_AC__ENTER_0(f) qj_ac__entry()
#define QJ_AC__ENTER_1(f, a) qj_ac__entry(QJ_AC__P(1, a))
#define QJ_AC__ENTER_2(f, a, b) qj_ac__entry(QJ_AC__P(1, a), QJ_AC__P(2, b))
#define QJ_AC__ENTER_3(f, a, b, c) qj_ac__entry(QJ_AC__P(1, a), QJ_AC__P(2, b), QJ_AC__P(3, c))
#define QJ_AC__ENTER_4(f, a, b, c, d) qj_ac__entry(QJ_AC__P(1, a), QJ_AC__P(2, b), QJ_AC__P(3, c), QJ_AC__P(4, d))
#define QJ_AC__ENTER_5(f, a, b, c, d, e) qj_ac__entry(QJ_AC__P(1, a), QJ_AC__P(2, b), QJ_AC__P(3, c), QJ_AC__P(4, d), QJ_AC__P(5, e))
#define QJ_AC__ENTER_6(f, a, b, c, d, e, g) qj_ac__entry(QJ_AC__P(1, a), QJ_AC__P(2, b), QJ_AC__P(3, c), QJ_AC__P(4, d), QJ_AC__P(5, e), QJ_AC__P(6, g))
#define QJ_AC__ENTER_7(...) 0
#define QJ_AC__TAIL_0(f) QJ_AC__WORDS_0()
#define QJ_AC__TAIL_1(f, a) QJ_AC__WORDS_1(a)
#define QJ_AC__TAIL_2(f, a, b) QJ_AC__WORDS_2(a, b)
#define QJ_AC__TAIL_3(f, a, b, c) QJ_AC__WORDS_3(a, b, c)
#define QJ_AC__TAIL_4(f, a, b, c, d) QJ_AC__WORDS_4(a, b, c, d)
#define QJ_AC__TAIL_5(f, a, b, c, d, e) QJ_AC__WORDS_5(a, b, c, d, e)
#define QJ_AC__TAIL_6(f, a, b, c, d, e, g) QJ_AC__WORDS_6(a, b, c, d, e, g)
#define QJ_AC__FIRST(...) QJ_AC__FIRST2(__VA_ARGS__, 0)
#define QJ_AC__FIRST2(f, ...) f

/* The size of the result of a call, which is discarded. A result of more than two words is returned in memory that the
 * caller would have to provide, and a `long double` of x86-64 on a stack of its own. */
#define QJ_AC__RESULT(call)                                                                                            \
    (__builtin_types_compatible_p(__typeof__(call), long double)                                                       \
         ? 32                                                                                                          \
         : sizeof(__builtin_choose_expr(__builtin_types_compatible_p(__typeof__(call), void), 0, (call))))

/* One word, or none, needs no array of words: it is the argument of the task itself. */
#define QJ_AC__START(count, function_, ...)                                                                            \
    do {                                                                                                               \
        struct qj_ac__words qj_ac__call_words = {(void (*)(void))(function_), {__VA_ARGS__}};                          \
        if (count <= 1) {                                                                                              \
            QJ_AC__ASYNC((void (*)(void *))qj_ac__call_words.function, (void *)qj_ac__call_words.words[0]);            \
        } else {                                                                                                       \
            QJ_AC__ASYNC(qj_ac__call_spread, &qj_ac__call_words);                                                           \
        }                                                                                                              \
    } while (0)

#define ASYNC_CALL(...) QJ_AC__ASYNC_CALL(QJ_AC__COUNT(__VA_ARGS__), QJ_AC__FIRST(__VA_ARGS__), __VA_ARGS__)
#define QJ_AC__ASYNC_CALL(count, f, ...)                                                                               \
    do {                                                                                                               \
        _Static_assert(QJ_AC__RESULT(QJ_AC__PASTE(QJ_AC__CALL_, count)(__VA_ARGS__)) <= 2 * sizeof(void *),            \
                       "ASYNC_CALL of a function that returns a large structure: let it write to a pointer");          \
        _Static_assert(QJ_AC__PASTE(QJ_AC__FIT_, count)(__VA_ARGS__),                                                  \
                       "ASYNC_CALL passes arguments of at most 16 bytes: pass a pointer to anything larger");          \
        _Static_assert(QJ_AC__PASTE(QJ_AC__EXACT_, count)(__VA_ARGS__) || QJ_AC__RETURNS(f),                           \
                       "ASYNC_CALL of a noreturn function: cast every argument to the type of its parameter");         \
        if (QJ_AC__PASTE(QJ_AC__EXACT_, count)(__VA_ARGS__)) {                                                         \
            QJ_AC__START(count, f, QJ_AC__PASTE(QJ_AC__TAIL_, count)(__VA_ARGS__));                                    \
        } else {                                                                                                       \
            QJ_AC__CONVERT(f, QJ_AC__PASTE(QJ_AC__ENTER_, count)(__VA_ARGS__));                                        \
        }                                                                                                              \
    } while (0)

#if defined(__BLOCKS__)
/* A block is copied to the task's stack by the size it carries; no run-time library of blocks is needed. */
void qj_ac__run_block(void *block);
#define ASYNC(...) QJ_AC__ASYNC(qj_ac__run_block, (void *)^{ __VA_ARGS__; })

#elif defined(__clang__)
#define ASYNC(...)                                                                                                     \
    _Static_assert(0, "ASYNC({ body }) needs clang -fblocks; otherwise write ASYNC_CALL(function, arguments...)")

#else
/* A nested function that uses locals would need a trampoline on an executable stack. */
#pragma GCC diagnostic error "-Wtrampolines"
#define ASYNC(...)                                                                                                     \
    QJ_AC__NESTED(QJ_AC__PASTE(ASYNC_body_uses_local_variables__write_ASYNC_CALL_function_arguments__, __COUNTER__),  \
                  __VA_ARGS__)
#define QJ_AC__NESTED(function, ...)                                                                                   \
    do {                                                                                                               \
        __extension__ auto void function(void *);                                                                      \
        void function(void *qj_ac__unused) {                                                                           \
            (void)qj_ac__unused;                                                                                       \
            { __VA_ARGS__; }                                                                                           \
        }                                                                                                              \
        QJ_AC__ASYNC(function, NULL);                                                                                  \
    } while (0)
#endif

#endif /* C */

#define FINISH_BEGIN(name) QJ_AC__FINISH_BEGIN(name, QJ_AC__OPEN)
#define FINISH_BEGIN_NX(name) QJ_AC__FINISH_BEGIN(name, QJ_AC__SHIELDED)
#define FINISH_END(name) QJ_AC__FINISH_END(name)
#define FINISH_GUARD(name) QJ_AC__FINISH_GUARD(name)
#define DO_FINISH(...) QJ_AC__DO_FINISH(QJ_AC__PASTE(qj_ac__block_, __COUNTER__), QJ_AC__OPEN, __VA_ARGS__)
#define DO_FINISH_(name, ...) QJ_AC__DO_FINISH(name, QJ_AC__OPEN, __VA_ARGS__)
#define DO_FINISH_NX(...) QJ_AC__DO_FINISH(QJ_AC__PASTE(qj_ac__block_, __COUNTER__), QJ_AC__SHIELDED, __VA_ARGS__)
#define CANCEL(name) qj_ac_cancel(name)

#endif
