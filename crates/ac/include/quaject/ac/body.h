/* DO_FINISH and ASYNC, the two constructs of Asynchronous C, as macros; for each compiler a way to run a statement on
 * another stack, without an executable stack.
 *
 *     DO_FINISH({ ... })            a block; `return` and `break` out of it wait for its tasks too
 *     DO_FINISH_(name, { ... })     the same with a name, for CANCEL(name) and qj_ac_deadline(name, ns)
 *     DO_FINISH_NX({ ... })         a shield: cancellations from outside do not reach into it
 *     ASYNC_CALL(function, a, b) calls function(a, b) as a task; at most six arguments, integers and pointers
 *     ASYNC({ ... }) the text as a task; the local variables that it uses are copied
 *
 * ASYNC({ ... }) is a lambda in C++, a block with clang -fblocks, and with gcc a nested function, which may not use
 * local variables of the enclosing function: that is a compile error, and ASYNC_CALL is the alternative. With
 * QJ_AC_EAGER defined before the first inclusion all of them own their stacks eagerly. */
#ifndef QUAJECT_AC_BODY_H
#define QUAJECT_AC_BODY_H

#include <quaject/ac/finish.h>

#ifdef QJ_AC_EAGER
#define QJ_AC__ASYNC qj_ac_async_eager
#else
#define QJ_AC__ASYNC qj_ac_async
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
#define QJ_AC__OPEN ordinary
#define QJ_AC__SHIELDED shielded

#define ASYNC(...) ::qj::ac::async([=]() mutable { __VA_ARGS__; })
#define ASYNC_CALL(...) ::qj::ac::async_call(__VA_ARGS__)

#else

QJ_AC_INLINE void qj_ac__close(struct qj_ac_finish *block) { qj_ac_finish_end(block); }

#define QJ_AC__DO_FINISH(name, kind, ...)                                                                              \
    do {                                                                                                               \
        __attribute__((cleanup(qj_ac__close))) struct qj_ac_finish QJ_AC__PASTE(name, __storage);                      \
        kind(&QJ_AC__PASTE(name, __storage));                                                                          \
        struct qj_ac_finish *const name = &QJ_AC__PASTE(name, __storage);                                              \
        (void)name;                                                                                                    \
        { __VA_ARGS__; }                                                                                               \
    } while (0)
#define QJ_AC__OPEN qj_ac_finish_begin
#define QJ_AC__SHIELDED qj_ac_finish_begin_shielded

/* A function with its arguments as machine words. The words are read before the function starts, so they may lie in
 * the caller's frame. */
struct qj_ac__words {
    void (*function)(void);
    uintptr_t words[6];
};
void qj_ac__call_spread(void *words);

/* `sizeof` type-checks the call without evaluating it; floating-point arguments are rejected. */
#define QJ_AC__IS_WORD(x)                                                                                              \
    (sizeof(__typeof__(((void)0, (x)))) <= sizeof(uintptr_t) && _Generic((x), float: 0, double: 0, default: 1))
#define QJ_AC__CHECKED_WORD(x)                                                                                         \
    (0 * sizeof(struct {                                                                                               \
        _Static_assert(QJ_AC__IS_WORD(x), "ASYNC_CALL passes integers and pointers: pass a pointer to anything else"); \
        char unused;                                                                                                   \
    }))
#if defined(__riscv)
/* On RISC-V registers hold 32-bit values sign-extended, unsigned ones too. That is right for a 32-bit parameter and
 * wrong for a 64-bit one, so a caller with unsigned values must pass exactly the types of the parameters. */
#define QJ_AC__W(x)                                                                                                    \
    ((uintptr_t)_Generic((x), unsigned: (intptr_t)(int32_t)(uintptr_t)(x), default: (x)) + QJ_AC__CHECKED_WORD(x))
#define QJ_AC__U(x) _Generic((x), unsigned: 1, default: 0)
#define QJ_AC__T(x) __typeof__(((void)0, (x)))
#define QJ_AC__EXACT_0(f) 1
#define QJ_AC__EXACT(f, unsigned_, call, ...)                                                                          \
    (!(unsigned_) || __builtin_types_compatible_p(__typeof__(*(f)), __typeof__(call)(__VA_ARGS__)))
#define QJ_AC__EXACT_1(f, a) QJ_AC__EXACT(f, QJ_AC__U(a), f(a), QJ_AC__T(a))
#define QJ_AC__EXACT_2(f, a, b) QJ_AC__EXACT(f, QJ_AC__U(a) + QJ_AC__U(b), f(a, b), QJ_AC__T(a), QJ_AC__T(b))
#define QJ_AC__EXACT_3(f, a, b, c)                                                                                     \
    QJ_AC__EXACT(f, QJ_AC__U(a) + QJ_AC__U(b) + QJ_AC__U(c), f(a, b, c), QJ_AC__T(a), QJ_AC__T(b), QJ_AC__T(c))
#define QJ_AC__EXACT_4(f, a, b, c, d)                                                                                  \
    QJ_AC__EXACT(f, QJ_AC__U(a) + QJ_AC__U(b) + QJ_AC__U(c) + QJ_AC__U(d), f(a, b, c, d), QJ_AC__T(a), QJ_AC__T(b),    \
                 QJ_AC__T(c), QJ_AC__T(d))
#define QJ_AC__EXACT_5(f, a, b, c, d, e)                                                                               \
    QJ_AC__EXACT(f, QJ_AC__U(a) + QJ_AC__U(b) + QJ_AC__U(c) + QJ_AC__U(d) + QJ_AC__U(e), f(a, b, c, d, e),             \
                 QJ_AC__T(a), QJ_AC__T(b), QJ_AC__T(c), QJ_AC__T(d), QJ_AC__T(e))
#define QJ_AC__EXACT_6(f, a, b, c, d, e, g)                                                                            \
    QJ_AC__EXACT(f, QJ_AC__U(a) + QJ_AC__U(b) + QJ_AC__U(c) + QJ_AC__U(d) + QJ_AC__U(e) + QJ_AC__U(g),                 \
                 f(a, b, c, d, e, g), QJ_AC__T(a), QJ_AC__T(b), QJ_AC__T(c), QJ_AC__T(d), QJ_AC__T(e), QJ_AC__T(g))
#define QJ_AC__CHECK_WORDS(...)                                                                                        \
    _Static_assert(QJ_AC__PASTE(QJ_AC__EXACT_, QJ_AC__COUNT(__VA_ARGS__))(__VA_ARGS__),                                \
                   "ASYNC_CALL with an unsigned argument: cast every argument to the type of its parameter")
#else
#define QJ_AC__W(x) ((uintptr_t)(x) + QJ_AC__CHECKED_WORD(x))
#define QJ_AC__CHECK_WORDS(...) (void)0
#endif
#define QJ_AC__WORDS_0() 0
#define QJ_AC__WORDS_1(a) QJ_AC__W(a)
#define QJ_AC__WORDS_2(a, b) QJ_AC__W(a), QJ_AC__W(b)
#define QJ_AC__WORDS_3(a, b, c) QJ_AC__W(a), QJ_AC__W(b), QJ_AC__W(c)
#define QJ_AC__WORDS_4(a, b, c, d) QJ_AC__W(a), QJ_AC__W(b), QJ_AC__W(c), QJ_AC__W(d)
#define QJ_AC__WORDS_5(a, b, c, d, e) QJ_AC__W(a), QJ_AC__W(b), QJ_AC__W(c), QJ_AC__W(d), QJ_AC__W(e)
#define QJ_AC__WORDS_6(a, b, c, d, e, f)                                                                               \
    QJ_AC__W(a), QJ_AC__W(b), QJ_AC__W(c), QJ_AC__W(d), QJ_AC__W(e), QJ_AC__W(f)
#define QJ_AC__COUNT(...) QJ_AC__COUNT2(__VA_ARGS__, 7, 7, 7, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define QJ_AC__COUNT2(f, a, b, c, d, e, g, h, i, j, k, n, ...) n
#define QJ_AC__CALL_7(...) ASYNC_CALL_takes_no_more_than_six_arguments__pass_a_pointer_to_a_structure
#define QJ_AC__TAIL_7(...) 0
#define QJ_AC__CALL_0(f) f()
#define QJ_AC__CALL_1(f, ...) f(__VA_ARGS__)
#define QJ_AC__CALL_2 QJ_AC__CALL_1
#define QJ_AC__CALL_3 QJ_AC__CALL_1
#define QJ_AC__CALL_4 QJ_AC__CALL_1
#define QJ_AC__CALL_5 QJ_AC__CALL_1
#define QJ_AC__CALL_6 QJ_AC__CALL_1
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
 * caller would have to provide. */
#define QJ_AC__RESULT(call)                                                                                            \
    sizeof(__builtin_choose_expr(__builtin_types_compatible_p(__typeof__(call), void), 0, (call)))

/* One word, or none, needs no array of words: it is the argument of the task itself. */
#define QJ_AC__START(count, function_, ...)                                                                            \
    do {                                                                                                               \
        struct qj_ac__words qj_ac__call_words = {(void (*)(void))function_, {__VA_ARGS__}};                            \
        if (count <= 1) {                                                                                              \
            QJ_AC__ASYNC((void (*)(void *))qj_ac__call_words.function, (void *)qj_ac__call_words.words[0]);            \
        } else {                                                                                                       \
            QJ_AC__ASYNC(qj_ac__call_spread, &qj_ac__call_words);                                                           \
        }                                                                                                              \
    } while (0)

#define ASYNC_CALL(...)                                                                                                \
    do {                                                                                                               \
        _Static_assert(QJ_AC__RESULT(QJ_AC__PASTE(QJ_AC__CALL_, QJ_AC__COUNT(__VA_ARGS__))(__VA_ARGS__)) <=            \
                           2 * sizeof(void *),                                                                         \
                       "ASYNC_CALL of a function that returns a large structure: let it write to a pointer");          \
        QJ_AC__CHECK_WORDS(__VA_ARGS__);                                                                               \
        QJ_AC__START(QJ_AC__COUNT(__VA_ARGS__), QJ_AC__FIRST(__VA_ARGS__),                                             \
                     QJ_AC__PASTE(QJ_AC__TAIL_, QJ_AC__COUNT(__VA_ARGS__))(__VA_ARGS__));                              \
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

#define DO_FINISH(...) QJ_AC__DO_FINISH(QJ_AC__PASTE(qj_ac__block_, __COUNTER__), QJ_AC__OPEN, __VA_ARGS__)
#define DO_FINISH_(name, ...) QJ_AC__DO_FINISH(name, QJ_AC__OPEN, __VA_ARGS__)
#define DO_FINISH_NX(...) QJ_AC__DO_FINISH(QJ_AC__PASTE(qj_ac__block_, __COUNTER__), QJ_AC__SHIELDED, __VA_ARGS__)
#define CANCEL(name) qj_ac_cancel(name)

#endif
