/* The nodes of trees, which tree.c makes and generate.c walks, and the errors of both. Knows no machine. */
#ifndef QUAJECT_TICKC_NODE_H
#define QUAJECT_TICKC_NODE_H

#include <stddef.h>
#include <stdint.h>

#define QJT_WITHOUT_PLACES
#include "quaject/tickc.h"

enum kind {
    /* values */
    NODE_INTEGER,
    NODE_FLOATING,
    NODE_LOAD,
    NODE_ADDRESS,
    NODE_CONVERT,
    NODE_UNARY,
    NODE_NOT,
    NODE_ARITHMETIC,
    NODE_COMPARE,
    NODE_LOGICAL,
    NODE_CHOOSE,
    NODE_COMMA,
    NODE_ASSIGN,
    NODE_COPY,
    NODE_UPDATE,
    NODE_CALL,
    /* places */
    NODE_AT,
    NODE_DEREFERENCE,
    NODE_MEMBER,
    NODE_VARIABLE,
    NODE_CALL_INTO,
    /* A bit-field: aggregate.c makes other nodes of its uses. */
    NODE_FIELD,
    /* statements */
    NODE_DO,
    NODE_DECLARE,
    NODE_BLOCK,
    NODE_REGION,
    NODE_IF,
    NODE_LOOP,
    NODE_SWITCH,
    NODE_CASE,
    NODE_DEFAULT,
    NODE_BREAK,
    NODE_CONTINUE,
    NODE_RETURN,
    NODE_LABEL,
    NODE_JUMP
};

/* What a node or its operands do: call functions; change variables or memory; and whether a tick has floating
 * constants. */
enum contents { HAS_CALL = 1, HAS_EFFECT = 2, HAS_FLOATING = 4 };

struct qjt_node {
    /* enum kind; the type of the value; an operation or variant; what is in it, as bits of `enum contents`. */
    unsigned char kind, type, operation, calls;
    /* The type of the operand, where it may differ; the size of a copy. */
    uint32_t from;
    union {
        struct { qjt_node *a, *b, *c; };
        struct { qjt_node *base; long offset; };
        long long integer;
        double real;
        const void *address;
    };
    qjt_node *next;
};

struct call {
    qjt_node node;
    qjt_node *callee; /* null: the function that is generated */
    int count, fixed; /* fixed: parameters in front of `...`; -1 without */
    const unsigned char *types;
    qjt_node **arguments;
};

/* A variable of generated code. The last members are those of the function that is being generated. */
struct variable {
    qjt_node node;
    unsigned long size, align;
    /* Whether it must be in memory; the number of a parameter, or -1; how much its uses weigh. */
    int in_memory, number;
    unsigned weight;
    /* The walk that has last found it assigned. */
    unsigned long changed;
    /* The function that a vspec belongs to; 0 for a local variable of a tick. */
    unsigned long function;
    struct variable *next;
    /* A variable without a declaration is allocated where an attempt to generate a function meets it first. */
    int is_temporary;
    unsigned long attempt;
    int in_register;
    uint32_t reg;
    int32_t slot;
};

/* A bit-field: its unit of memory, which is `node.a`, as an unsigned integer has its bits from `shift` on. */
struct field {
    qjt_node node;
    unsigned char unit, shift, width, is_signed;
};

/* A call of a function that writes its result to where its first argument points. */
struct call_into {
    qjt_node node; /* a: the call */
    unsigned long size;
};

/* A label that label() has made. The last members are those of one attempt to generate a function. */
struct label {
    qjt_node node;
    unsigned long attempt;
    uint32_t index;
};

/* What a cspec points to. */
struct closure {
    qjt_node *body; /* a value; or a NODE_BLOCK */
    unsigned char type, calls, is_list;
    /* How many nodes, and variables of its own, it has. */
    unsigned long nodes, variables;
    struct label *label; /* of label() */
    /* Of push_init(). */
    int count;
    struct closure *arguments[32];
};

enum { MAX_PARAMETERS = 32 };

/* The function whose parameters and variables are being made: up to the next compile(). */
struct pending {
    unsigned long number;
    struct variable *parameters[MAX_PARAMETERS];
    struct variable *locals;
};

extern _Thread_local struct pending qjt__pending;
extern _Thread_local qjt_statistics qjt__statistics;

void *qjt__allocate(size_t bytes);
struct variable *qjt__make_variable(int type, unsigned long size, unsigned long align, int in_memory);
qjt_node *qjt__load_field(int type, qjt_node *place);
qjt_node *qjt__assign_field(int type, qjt_node *place, int from, qjt_node *value);
qjt_node *qjt__update_field(int operation, int type, int operation_type, qjt_node *place, int from, qjt_node *value,
                            int when);
void qjt__fail(const char *error);

static inline int is_floating(unsigned type) { return type == QJT_FLOAT || type == QJT_DOUBLE; }
static inline int is_integer(unsigned type) { return type >= QJT_BOOL && type <= QJT_POINTER; }

#endif
