/* The run-time interface of 'C. Translated programs include it; programs in 'C need no header.
 *
 * A `T cspec` is a pointer to a function of a qjt_c that returns T, a `T vspec` one of a qjt_v that returns T *.
 * They are
 * never called: the C compiler checks their types, and infers the types of tick expressions from dummies, which are
 * expressions of the right type that are never evaluated. What they point to are trees, in memory of the thread.
 *
 * Names with qjt_ and QJT_ are for translated programs, except those of the section "For programs". */
#ifndef QUAJECT_TICKC_H
#define QUAJECT_TICKC_H

#pragma GCC system_header

#if !defined(__GNUC__)
#error "translated 'C needs GCC 4.9, or Clang: statement expressions, __typeof__ and _Generic"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct qjt_c { char unused; } qjt_c;
typedef struct qjt_v { char unused; } qjt_v;
typedef struct qjt_node qjt_node;

/* -- For programs -- */

/* Called instead of the default when code cannot be generated: with a message, which is valid until it returns, and
 * begins with the file and line of the special function that has failed, and a code that `qj explain` knows.
 * compile()
 * then returns a null pointer. The default prints the message and aborts. Null restores it. One for all threads. */
typedef void qjt_error_handler(const char *message);
void qjt_on_error(qjt_error_handler *);

/* Trees take memory of their thread until it is released: cspecs and vspecs made since a mark must not be used after
 * qjt_release(). Compiled functions stay. */
typedef struct qjt_mark { void *chunk; unsigned long used; } qjt_mark;
qjt_mark qjt_set_mark(void);
void qjt_release(qjt_mark);

/* Bytes and portable instructions of the last function that this thread has compiled: machine code without
 * constants, and
 * calls of emitters. */
typedef struct qjt_statistics { unsigned long bytes, instructions, nodes; } qjt_statistics;
qjt_statistics qjt_last(void);

/* -- Types -- */

enum {
    QJT_VOID,
    QJT_BOOL,
    QJT_SIGNED_CHAR,
    QJT_UNSIGNED_CHAR,
    QJT_SHORT,
    QJT_UNSIGNED_SHORT,
    QJT_INT,
    QJT_UNSIGNED,
    QJT_LONG,
    QJT_UNSIGNED_LONG,
    QJT_POINTER,
    QJT_FLOAT,
    QJT_DOUBLE,
    QJT_AGGREGATE,
    QJT_UNSUPPORTED
};

#define QJT_CLASS(k) ((k) == 5 ? QJT_POINTER : (k) == 12 || (k) == 13 ? QJT_AGGREGATE : QJT_UNSUPPORTED)
#define QJT_LONG_LONG(t) (sizeof(long long) == sizeof(long) ? (t) : QJT_UNSUPPORTED)
/* The type of the value of an expression. */
#define QJT_TYPE(x)                                                                                                    \
    _Generic((x), _Bool: QJT_BOOL, char: (char)-1 < 0 ? QJT_SIGNED_CHAR : QJT_UNSIGNED_CHAR,                           \
        signed char: QJT_SIGNED_CHAR, unsigned char: QJT_UNSIGNED_CHAR, short: QJT_SHORT,                              \
        unsigned short: QJT_UNSIGNED_SHORT, int: QJT_INT, unsigned: QJT_UNSIGNED, long: QJT_LONG,                      \
        unsigned long: QJT_UNSIGNED_LONG, long long: QJT_LONG_LONG(QJT_LONG),                                          \
        unsigned long long: QJT_LONG_LONG(QJT_UNSIGNED_LONG), float: QJT_FLOAT, double: QJT_DOUBLE,                    \
        long double: QJT_UNSUPPORTED, default: QJT_CLASS(__builtin_classify_type(x)))
#define QJT_IS_VOID(q) __builtin_types_compatible_p(q, void)
/* The same of a type name, which may be void. */
#define QJT_RESULT(...) QJT_VALUE_TYPE(__typeof__(__VA_ARGS__))
#define QJT_VALUE_TYPE(q)                                                                                              \
    (QJT_IS_VOID(q) ? (int)QJT_VOID : (int)QJT_TYPE(__builtin_choose_expr(QJT_IS_VOID(q), 0, (*(q (*)(void))0)())))
#define QJT_OBJECT(...) QJT_TYPE(*(__typeof__(__VA_ARGS__) *)0), sizeof(__VA_ARGS__), _Alignof(__typeof__(__VA_ARGS__))

/* Dummies: an lvalue, and a value, of the type with this number. */
#define QJT_L(n) (*(qjt_q##n *)0)
#define QJT_R(n) ((*(qjt_q##n (*)(void))0)())
#define QJT_CHECK_TYPE(n) \
    _Static_assert((int)qjt_t##n != (int)QJT_UNSUPPORTED, "generated code has no values of this type")
/* Defines a type by a dummy: that of an lvalue with its qualifiers, or that of a value. */
#define QJT_PLACE(n, ...)                                                                                              \
    typedef __typeof__(__VA_ARGS__) qjt_q##n;                                                                          \
    enum { qjt_t##n = QJT_TYPE(QJT_L(n)) };                                                                            \
    QJT_CHECK_TYPE(n)
#define QJT_VALUE(n, ...)                                                                                              \
    typedef __typeof__(((void)0, (__VA_ARGS__))) qjt_q##n;                                                             \
    enum { qjt_t##n = QJT_VALUE_TYPE(qjt_q##n) };                                                                      \
    QJT_CHECK_TYPE(n)

/* Whether the value of an lvalue is its address: arrays and functions. */
#define QJT_DECAYS(n) (!__builtin_types_compatible_p(qjt_q##n, __typeof__(((void)0, QJT_L(n)))))
/* The bytes by which adding 1 to a pointer advances it; 0 for what is no pointer. */
#define QJT_STEP(t, x) \
    ((t) == QJT_POINTER ? (long)sizeof(*__builtin_choose_expr((t) == QJT_POINTER, (x), (char *)0)) : 0L)
#define QJT_SIZE(n) sizeof(__typeof__(__builtin_choose_expr(QJT_IS_VOID(qjt_q##n), 0, QJT_R(n))))
#define QJT_REQUIRE(t, condition, message) \
    ((t) + 0 * (int)sizeof(struct { int unused; _Static_assert(condition, message); }))
#define QJT_SCALAR(t) QJT_REQUIRE(t, (t) != QJT_AGGREGATE, "`$` of a struct or union: take its address, or its members")
#define QJT_NO_AGGREGATE(t) QJT_REQUIRE(t, (t) != QJT_AGGREGATE, "a struct or union as a value: use a pointer to it")
#define QJT_ARGUMENT(t) QJT_REQUIRE(t, (t) != QJT_AGGREGATE, "a struct or union as an argument: pass a pointer to it")
/* A bit-field as a place. The library finds it by the bytes of an object in which its bits, and no others, are 1. */
#define QJT_FIELD(n, type, place, member)                                                                              \
    __extension__({                                                                                                    \
        union { qjt_q##n whole; unsigned char bytes[sizeof(qjt_q##n)]; } qjt_bits = {.bytes = {0}}, qjt_two = qjt_bits; \
        int qjt_is_signed, qjt_is_bool;                                                                                \
        qjt_bits.whole.member = qjt_bits.whole.member - 1;                                                             \
        qjt_is_signed = !(qjt_bits.whole.member > 0);                                                                  \
        qjt_two.whole.member = qjt_two.whole.member + 2;                                                               \
        qjt_is_bool = qjt_two.whole.member == 1;                                                                       \
        qjt_field(type, place, qjt_bits.bytes, sizeof(qjt_q##n), qjt_is_signed, qjt_is_bool);                          \
    })
#define QJT_PROMOTED(t) ((t) == QJT_FLOAT ? (int)QJT_DOUBLE : (t) > QJT_VOID && (t) < QJT_INT ? (int)QJT_INT : (int)(t))
#define QJT_PROMOTE(x)                                                                                                 \
    __builtin_choose_expr(QJT_TYPE(x) == QJT_FLOAT, 0.0,                                                               \
                          __builtin_choose_expr(QJT_TYPE(x) < QJT_INT, 0, ((void)0, (x))))
/* A call through an expression of which the translator has seen no declaration. */
#define QJT_CHECK_CALL(f, n, list)                                                                                     \
    _Static_assert(__builtin_types_compatible_p(__typeof__(*(f)), qjt_q##n list),                                      \
                   "the parameters of this call are not known: cast the arguments to their types, or call a function " \
                   "by the name that declares them")

/* -- Trees -- */

enum { /* operations */
    QJT_ADD,
    QJT_SUBTRACT,
    QJT_MULTIPLY,
    QJT_DIVIDE,
    QJT_REMAINDER,
    QJT_AND,
    QJT_OR,
    QJT_XOR,
    QJT_LEFT,
    QJT_RIGHT,
    QJT_EQUAL,
    QJT_UNEQUAL,
    QJT_LESS,
    QJT_GREATER_EQUAL,
    QJT_GREATER,
    QJT_LESS_EQUAL,
    QJT_BOTH,
    QJT_EITHER,
    QJT_NEGATE,
    QJT_COMPLEMENT,
    QJT_CONVERT
};
enum { QJT_AFTER, QJT_BEFORE };
enum { QJT_TEST_FIRST, QJT_TEST_LAST };
enum { QJT_BREAKS, QJT_CONTINUES };

/* The tick that is being evaluated; ticks are evaluated within others when operands of `$` call functions. */
typedef struct qjt_frame {
    struct qjt_frame *outer;
    qjt_node *open, *first, **tail;
    unsigned long nodes, variables;
    int calls;
} qjt_frame;

void qjt_open(qjt_frame *);
void *qjt_close(qjt_frame *, int type, qjt_node *value);

/* Values. Operands are pairs of a type and a node, or triples with a step. */
qjt_node *qjt_integer(int type, long long value);
qjt_node *qjt_floating(int type, double value);
qjt_node *qjt_captured(int type, const void *value);
qjt_node *qjt_load(int type, int decays, qjt_node *place);
qjt_node *qjt_address(qjt_node *place);
qjt_node *qjt_convert(int to, int from, qjt_node *);
qjt_node *qjt_unary(int operation, int type, int from, qjt_node *);
qjt_node *qjt_not(int from, qjt_node *);
qjt_node *qjt_add(int operation, int type, int, long, qjt_node *, int, long, qjt_node *);
qjt_node *qjt_arithmetic(int operation, int type, int, qjt_node *, int, qjt_node *);
qjt_node *qjt_compare(int operation, int common, int, qjt_node *, int, qjt_node *);
qjt_node *qjt_logical(int operation, int, qjt_node *, int, qjt_node *);
qjt_node *qjt_choose(int type, int, qjt_node *, int, qjt_node *, int, qjt_node *);
qjt_node *qjt_comma(int, qjt_node *, int, qjt_node *);
qjt_node *qjt_assign(int type, unsigned long size, qjt_node *place, int, qjt_node *);
qjt_node *qjt_update(int operation, int type, int operation_type, long step, qjt_node *place, int, qjt_node *, int when);
qjt_node *qjt_call(int type, qjt_node *callee, int fixed, int count, const unsigned char *types, qjt_node **arguments);
qjt_node *qjt_self(int type, int count, const unsigned char *types, qjt_node **arguments);
qjt_node *qjt_apply(int type, qjt_node *callee, const void *list);
qjt_node *qjt_splice(int type, const void *cspec);

/* Places. */
qjt_node *qjt_at(const void *address);
qjt_node *qjt_dereference(qjt_node *pointer);
qjt_node *qjt_member(qjt_node *place, long offset);
qjt_node *qjt_index(int, long, qjt_node *, int, long, qjt_node *);
qjt_node *qjt_variable(int type, int decays, int has_address, unsigned long size, unsigned long align);
qjt_node *qjt_vspec(const void *vspec);
/* A variable of the function that is generated, without a declaration. */
qjt_node *qjt_temporary(int type, unsigned long size, unsigned long align);
qjt_node *qjt_field(int type, qjt_node *place, const unsigned char *bits, unsigned long size, int is_signed, int is_bool);
/* The result of a function of the host that has its address as first parameter. */
qjt_node *qjt_call_into(unsigned long size, const void *function, int count, const unsigned char *types,
                        qjt_node **arguments);
/* Fills a variable with zeros; has no value. */
qjt_node *qjt_zero(qjt_node *place, unsigned long size);

/* Statements, which are added to the tick that is being evaluated. */
void qjt_do(int type, qjt_node *);
void qjt_block(void);
void qjt_region(int jumps);
void qjt_if(int type, qjt_node *condition);
void qjt_else(void);
void qjt_loop(int test);
void qjt_condition(int type, qjt_node *);
void qjt_step(int type, qjt_node *);
void qjt_switch(int promoted, int type, qjt_node *);
void qjt_case(long long value);
void qjt_default(void);
void qjt_end(void);
void qjt_break(void);
void qjt_continue(void);
void qjt_return(int type, qjt_node *);

/* A loop that is being unrolled. What it has generated is dropped if it exceeds the limit. */
typedef struct qjt_unrolling {
    qjt_node **tail;
    unsigned long nodes;
    unsigned limit, iterations;
    int is_exceeded;
} qjt_unrolling;
void qjt_begin_unrolling(qjt_unrolling *, unsigned limit);
int qjt_exceeds(qjt_unrolling *);
int qjt_end_unrolling(qjt_unrolling *);

/* Special functions. */
void *qjt_compile(const void *cspec, int type);
void qjt_free_code(const void *function);
void *qjt_local(int type, unsigned long size, unsigned long align);
void *qjt_param(int type, int number);
void *qjt_label(void);
void *qjt_jump(const void *label);
void *qjt_push_init(void);
void qjt_push(const void *list, const void *cspec);

/* Notes where a special function is called, for messages. */
void qjt_note_place(const char *file, int line);
#ifndef QJT_WITHOUT_PLACES
#define QJT_HERE(call) (qjt_note_place(__FILE__, __LINE__), call)
#define qjt_compile(...) QJT_HERE(qjt_compile(__VA_ARGS__))
#define qjt_free_code(...) QJT_HERE(qjt_free_code(__VA_ARGS__))
#define qjt_param(...) QJT_HERE(qjt_param(__VA_ARGS__))
#define qjt_jump(...) QJT_HERE(qjt_jump(__VA_ARGS__))
#define qjt_push(...) QJT_HERE(qjt_push(__VA_ARGS__))
#endif

#ifdef __cplusplus
}
#endif

#endif
