/* Makes the trees that ticks are evaluated to, and folds constants in them. */
#include "node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- Memory -- */

struct chunk {
    struct chunk *before;
    size_t length;
    _Alignas(16) char bytes[];
};

/* The memory of trees: the rest of the current chunk is from `at` to `end`. */
static _Thread_local struct { char *at, *end; struct chunk *chunk; } memory;
/* Released chunks of the usual length, which are used again: the system takes long to give and to clear memory. */
static _Thread_local struct chunk *spare;
static _Thread_local int spare_count;
static _Thread_local qjt_frame *frame;
_Thread_local struct pending qjt__pending = {1, {0}, 0};
_Thread_local qjt_statistics qjt__statistics;
static qjt_error_handler *handler;

void qjt_on_error(qjt_error_handler *own) { __atomic_store_n(&handler, own, __ATOMIC_RELEASE); }

static _Thread_local struct { const char *file; int line; } place;

void qjt_note_place(const char *file, int line) {
    place.file = file;
    place.line = line;
}

void qjt__fail(const char *error) {
    /* Pairs with the release in qjt_on_error(). */
    qjt_error_handler *own = __atomic_load_n(&handler, __ATOMIC_ACQUIRE);
    char message[512];
    snprintf(message, sizeof message, "%s:%d: %s", place.file ? place.file : "?", place.line, error);
    if (own) {
        own(message);
        return;
    }
    fprintf(stderr, "%s\n", message);
    abort();
}

enum { CHUNK = 1 << 16, MAX_SPARE = 32 };

static __attribute__((noinline, cold)) void *allocate_in_new_chunk(size_t bytes) {
    size_t length = bytes > CHUNK ? bytes : CHUNK;
    struct chunk *fresh = length == CHUNK ? spare : 0;
    if (fresh) spare = fresh->before, spare_count--;
    else fresh = malloc(sizeof *fresh + length);
    if (!fresh) {
        fputs("tickc: no memory for a tree\n", stderr);
        abort();
    }
    fresh->before = memory.chunk;
    fresh->length = length;
    memory.chunk = fresh;
    memory.at = fresh->bytes + bytes;
    memory.end = fresh->bytes + length;
    return fresh->bytes;
}

/* Bytes must be a multiple of 16. */
static inline void *allocate(size_t bytes) {
    char *found = memory.at;
    if (__builtin_expect((size_t)(memory.end - found) < bytes, 0)) return allocate_in_new_chunk(bytes);
    memory.at = found + bytes;
    return found;
}

#define NEW(type) ((type *)allocate((sizeof(type) + 15) & ~(size_t)15))

static void *allocate_bytes(size_t bytes) { return allocate((bytes + 15) & ~(size_t)15); }

void *qjt__allocate(size_t bytes) { return allocate_bytes(bytes); }

qjt_mark qjt_set_mark(void) {
    qjt_mark mark = {memory.chunk, memory.chunk ? (unsigned long)(memory.at - memory.chunk->bytes) : 0};
    return mark;
}

void qjt_release(qjt_mark mark) {
    while (memory.chunk && memory.chunk != mark.chunk) {
        struct chunk *before = memory.chunk->before;
        if (memory.chunk->length == CHUNK && spare_count < MAX_SPARE) {
            memory.chunk->before = spare;
            spare = memory.chunk;
            spare_count++;
        } else {
            free(memory.chunk);
        }
        memory.chunk = before;
    }
    memory.at = memory.chunk ? memory.chunk->bytes + mark.used : 0;
    memory.end = memory.chunk ? memory.chunk->bytes + memory.chunk->length : 0;
    memset(&qjt__pending.parameters, 0, sizeof qjt__pending.parameters);
    qjt__pending.locals = 0;
    qjt__pending.number++;
}

qjt_statistics qjt_last(void) { return qjt__statistics; }

/* -- Nodes -- */

static inline qjt_node *make(enum kind kind, int type) {
    qjt_node *node = NEW(qjt_node);
    node->kind = (unsigned char)kind;
    node->type = (unsigned char)type;
    node->operation = node->calls = 0;
    node->from = 0;
    node->next = 0;
    if (frame) frame->nodes++;
    return node;
}

static inline qjt_node *make1(enum kind kind, int type, qjt_node *a) {
    qjt_node *node = make(kind, type);
    node->a = a;
    node->b = node->c = 0;
    node->calls = a->calls;
    return node;
}

static inline qjt_node *make2(enum kind kind, int type, int operation, qjt_node *a, qjt_node *b) {
    qjt_node *node = make1(kind, type, a);
    node->operation = (unsigned char)operation;
    node->b = b;
    node->calls |= b->calls;
    return node;
}

/* -- Constants -- */

/* The value of an integer of a type, of which the low bits are given. */
static long long truncated(int type, long long value) {
    switch (type) {
    case QJT_BOOL: return value != 0;
    case QJT_SIGNED_CHAR: return (signed char)value;
    case QJT_UNSIGNED_CHAR: return (unsigned char)value;
    case QJT_SHORT: return (short)value;
    case QJT_UNSIGNED_SHORT: return (unsigned short)value;
    case QJT_INT: return (int)value;
    case QJT_UNSIGNED: return (unsigned)value;
    case QJT_LONG: return (long)value;
    default: return (long long)(unsigned long)value;
    }
}

qjt_node *qjt_integer(int type, long long value) {
    qjt_node *node = make(NODE_INTEGER, type);
    node->integer = type == QJT_INT ? (int)value : type == QJT_LONG ? (long)value : truncated(type, value);
    return node;
}

qjt_node *qjt_floating(int type, double value) {
    qjt_node *node = make(NODE_FLOATING, type);
    node->real = type == QJT_FLOAT ? (double)(float)value : value;
    if (frame) frame->calls |= HAS_FLOATING;
    return node;
}

qjt_node *qjt_captured(int type, const void *value) {
    if (type == QJT_INT) return qjt_integer(type, *(const int *)value);
    switch (type) {
    case QJT_BOOL: return qjt_integer(type, *(const _Bool *)value);
    case QJT_SIGNED_CHAR: return qjt_integer(type, *(const signed char *)value);
    case QJT_UNSIGNED_CHAR: return qjt_integer(type, *(const unsigned char *)value);
    case QJT_SHORT: return qjt_integer(type, *(const short *)value);
    case QJT_UNSIGNED_SHORT: return qjt_integer(type, *(const unsigned short *)value);
    case QJT_UNSIGNED: return qjt_integer(type, *(const unsigned *)value);
    case QJT_FLOAT: return qjt_floating(type, (double)*(const float *)value);
    case QJT_DOUBLE: return qjt_floating(type, *(const double *)value);
    default: return qjt_integer(type, (long long)*(const unsigned long *)value);
    }
}

static int is_unsigned(int type) { return type == QJT_UNSIGNED || type == QJT_UNSIGNED_LONG || type == QJT_POINTER; }

/* Folds an operation on integers of at least the rank of int; 0 if it has no value. Overflow wraps, as that of
 * machine
 * instructions does. */
static int fold_integers(int operation, int type, long long a, long long b, long long *result) {
    const unsigned bits = type == QJT_INT || type == QJT_UNSIGNED ? 32 : 8 * sizeof(long);
    unsigned long long x = (unsigned long long)a, y = (unsigned long long)b;
    switch (operation) {
    case QJT_ADD: x += y; break;
    case QJT_SUBTRACT: x -= y; break;
    case QJT_MULTIPLY: x *= y; break;
    case QJT_DIVIDE:
    case QJT_REMAINDER:
        if (b == 0 || (!is_unsigned(type) && b == -1)) return 0;
        if (is_unsigned(type)) x = operation == QJT_DIVIDE ? x / y : x % y;
        else x = (unsigned long long)(operation == QJT_DIVIDE ? a / b : a % b);
        break;
    case QJT_AND: x &= y; break;
    case QJT_OR: x |= y; break;
    case QJT_XOR: x ^= y; break;
    case QJT_LEFT:
        if (y >= bits) return 0;
        x <<= y;
        break;
    case QJT_RIGHT:
        if (y >= bits) return 0;
        x = is_unsigned(type) ? x >> y : (unsigned long long)(a >> y);
        break;
    default: return 0;
    }
    *result = truncated(type, (long long)x);
    return 1;
}

static int compares(int operation, int is_less, int is_equal) {
    switch (operation) {
    case QJT_EQUAL: return is_equal;
    case QJT_UNEQUAL: return !is_equal;
    case QJT_LESS: return is_less;
    case QJT_GREATER_EQUAL: return !is_less;
    case QJT_LESS_EQUAL: return is_less || is_equal;
    default: return !is_less && !is_equal;
    }
}

/* -- Values -- */

qjt_node *qjt_load(int type, int decays, qjt_node *place) {
    qjt_node *node;
    if (place->kind == NODE_FIELD) return qjt__load_field(type, place);
    if (decays) return qjt_address(place);
    if (type == QJT_AGGREGATE) return place;
    node = make1(NODE_LOAD, type, place);
    return node;
}

qjt_node *qjt_address(qjt_node *place) {
    if (place->kind == NODE_AT) return qjt_integer(QJT_POINTER, (long long)(uintptr_t)place->address);
    if (place->kind == NODE_DEREFERENCE) return place->a;
    if (place->kind == NODE_VARIABLE) ((struct variable *)place)->in_memory = 1;
    return make1(NODE_ADDRESS, QJT_POINTER, place);
}

qjt_node *qjt_convert(int to, int from, qjt_node *node) {
    qjt_node *result;
    if (to == from || to == QJT_AGGREGATE) return node;
    if (node->kind == NODE_INTEGER && is_integer((unsigned)to)) {
        return qjt_integer(to, node->integer);
    }
    if (node->kind == NODE_INTEGER && is_floating((unsigned)to)) {
        long long value = node->integer;
        int is_positive = is_unsigned(from);
        if (to == QJT_FLOAT) return qjt_floating(to, (double)(is_positive ? (float)(unsigned long)value : (float)value));
        return qjt_floating(to, is_positive ? (double)(unsigned long)value : (double)value);
    }
    if (node->kind == NODE_FLOATING && is_floating((unsigned)to)) return qjt_floating(to, node->real);
    if (node->kind == NODE_FLOATING && to == QJT_BOOL) return qjt_integer(to, node->real != 0);
    if (node->kind == NODE_FLOATING && is_integer((unsigned)to)) {
        /* Other values have no conversion in C; the machine's own is made when the code runs. */
        if (node->real > -2147483648.0 && node->real < 2147483647.0 && (to == QJT_INT || to == QJT_LONG))
            return qjt_integer(to, (long long)node->real);
    }
    result = make1(NODE_CONVERT, to, node);
    result->from = (uint32_t)from;
    return result;
}

qjt_node *qjt_unary(int operation, int type, int from, qjt_node *node) {
    node = qjt_convert(type, from, node);
    if (operation == QJT_CONVERT) return node;
    if (node->kind == NODE_INTEGER) return qjt_integer(type, operation == QJT_NEGATE ? (long long)(0 - (unsigned long long)node->integer) : ~node->integer);
    if (node->kind == NODE_FLOATING) return qjt_floating(type, -node->real);
    node = make1(NODE_UNARY, type, node);
    node->operation = (unsigned char)operation;
    return node;
}

qjt_node *qjt_not(int from, qjt_node *node) {
    qjt_node *result;
    if (node->kind == NODE_INTEGER) return qjt_integer(QJT_INT, !node->integer);
    if (node->kind == NODE_FLOATING) return qjt_integer(QJT_INT, !node->real);
    result = make1(NODE_NOT, QJT_INT, node);
    result->from = (uint32_t)from;
    return result;
}

static qjt_node *operate(int operation, int type, qjt_node *a, qjt_node *b) {
    long long value;
    if (a->kind == NODE_INTEGER && b->kind == NODE_INTEGER &&
        fold_integers(operation, type, a->integer, b->integer, &value))
        return qjt_integer(type, value);
    if (a->kind == NODE_FLOATING && b->kind == NODE_FLOATING && type == QJT_DOUBLE) {
        switch (operation) {
        case QJT_ADD: return qjt_floating(type, a->real + b->real);
        case QJT_SUBTRACT: return qjt_floating(type, a->real - b->real);
        case QJT_MULTIPLY: return qjt_floating(type, a->real * b->real);
        default: break;
        }
    }
    if (a->kind == NODE_INTEGER && b->kind != NODE_INTEGER &&
        (operation == QJT_ADD || operation == QJT_MULTIPLY || operation == QJT_AND || operation == QJT_OR ||
         operation == QJT_XOR)) {
        qjt_node *other = a;
        a = b;
        b = other;
    }
    if (b->kind == NODE_INTEGER) {
        long long y = b->integer;
        if (y == 0 && (operation == QJT_ADD || operation == QJT_SUBTRACT || operation == QJT_OR || operation == QJT_XOR ||
                       operation == QJT_LEFT || operation == QJT_RIGHT))
            return a;
        if (y == 1 && (operation == QJT_MULTIPLY || operation == QJT_DIVIDE)) return a;
        /* Sums of constants: p + 8 + 16. */
        if (operation == QJT_ADD && a->kind == NODE_ARITHMETIC && a->operation == QJT_ADD && a->type == type &&
            a->b->kind == NODE_INTEGER && fold_integers(QJT_ADD, type, a->b->integer, y, &value))
            return make2(NODE_ARITHMETIC, type, QJT_ADD, a->a, qjt_integer(type, value));
    }
    return make2(NODE_ARITHMETIC, type, operation, a, b);
}

qjt_node *qjt_arithmetic(int operation, int type, int left, qjt_node *a, int right, qjt_node *b) {
    int is_shift = operation == QJT_LEFT || operation == QJT_RIGHT;
    a = qjt_convert(type, left, a);
    /* The count of a shift has a type of its own; only its low bits matter. */
    b = qjt_convert(is_shift ? (type == QJT_LONG || type == QJT_UNSIGNED_LONG ? QJT_UNSIGNED_LONG : QJT_UNSIGNED) : type,
                    right, b);
    return operate(operation, type, a, b);
}

/* An integer in units of a step, as bytes. */
static qjt_node *scaled(int type, qjt_node *node, long step) {
    if (node->kind == NODE_INTEGER) return qjt_integer(QJT_POINTER, node->integer * step);
    node = qjt_convert(QJT_LONG, type, node);
    node = operate(QJT_MULTIPLY, QJT_LONG, node, qjt_integer(QJT_LONG, step));
    return qjt_convert(QJT_POINTER, QJT_LONG, node);
}

qjt_node *qjt_add(int operation, int type, int left, long left_step, qjt_node *a, int right, long right_step,
                  qjt_node *b) {
    if (left_step && right_step) {
        qjt_node *bytes = operate(QJT_SUBTRACT, QJT_POINTER, a, b);
        return operate(QJT_DIVIDE, QJT_LONG, qjt_convert(QJT_LONG, QJT_POINTER, bytes), qjt_integer(QJT_LONG, left_step));
    }
    if (left_step) return operate(operation, QJT_POINTER, a, scaled(right, b, left_step));
    if (right_step) return operate(operation, QJT_POINTER, b, scaled(left, a, right_step));
    return operate(operation, type, qjt_convert(type, left, a), qjt_convert(type, right, b));
}

qjt_node *qjt_compare(int operation, int common, int left, qjt_node *a, int right, qjt_node *b) {
    qjt_node *node;
    a = qjt_convert(common, left, a);
    b = qjt_convert(common, right, b);
    if (a->kind == NODE_INTEGER && b->kind == NODE_INTEGER) {
        int is_less = is_unsigned(common) ? (unsigned long)a->integer < (unsigned long)b->integer : a->integer < b->integer;
        return qjt_integer(QJT_INT, compares(operation, is_less, a->integer == b->integer));
    }
    if (a->kind == NODE_INTEGER) {
        /* Constants are on the right. */
        static const unsigned char swapped[] = {QJT_EQUAL, QJT_UNEQUAL, QJT_GREATER, QJT_LESS_EQUAL, QJT_LESS, QJT_GREATER_EQUAL};
        node = make2(NODE_COMPARE, QJT_INT, swapped[operation - QJT_EQUAL], b, a);
    } else {
        node = make2(NODE_COMPARE, QJT_INT, operation, a, b);
    }
    node->from = (uint32_t)common;
    return node;
}

/* A value as a condition: 0 or 1. */
static qjt_node *truth(int type, qjt_node *node) {
    if (node->kind == NODE_COMPARE || node->kind == NODE_LOGICAL || node->kind == NODE_NOT) return node;
    return qjt_convert(QJT_BOOL, type, node);
}

qjt_node *qjt_logical(int operation, int left, qjt_node *a, int right, qjt_node *b) {
    a = truth(left, a);
    b = truth(right, b);
    if (a->kind == NODE_INTEGER) {
        int decides = operation == QJT_BOTH ? !a->integer : a->integer != 0;
        return decides ? qjt_integer(QJT_INT, operation == QJT_EITHER) : qjt_convert(QJT_INT, b->type, b);
    }
    return make2(NODE_LOGICAL, QJT_INT, operation, a, b);
}

qjt_node *qjt_choose(int type, int condition_type, qjt_node *condition, int left, qjt_node *a, int right, qjt_node *b) {
    qjt_node *node;
    condition = truth(condition_type, condition);
    a = qjt_convert(type, left, a);
    b = qjt_convert(type, right, b);
    if (condition->kind == NODE_INTEGER) return condition->integer ? a : b;
    node = make2(NODE_CHOOSE, type, 0, a, b);
    node->c = condition;
    node->calls |= condition->calls;
    return node;
}

qjt_node *qjt_comma(int left, qjt_node *a, int right, qjt_node *b) {
    (void)left;
    return make2(NODE_COMMA, right, 0, a, b);
}

qjt_node *qjt_assign(int type, unsigned long size, qjt_node *place, int from, qjt_node *value) {
    qjt_node *node;
    if (place->kind == NODE_FIELD) return qjt__assign_field(type, place, from, value);
    if (type == QJT_AGGREGATE) {
        node = make2(NODE_COPY, type, 0, place, value);
        node->from = (uint32_t)size;
    } else {
        node = make2(NODE_ASSIGN, type, 0, place, qjt_convert(type, from, value));
    }
    node->calls |= HAS_EFFECT;
    return node;
}

qjt_node *qjt_update(int operation, int type, int operation_type, long step, qjt_node *place, int from, qjt_node *value,
                     int when) {
    qjt_node *node;
    if (place->kind == NODE_FIELD)
        return qjt__update_field(operation, type, operation_type, place, from, value, when);
    if (step) {
        value = scaled(from, value, step);
        operation_type = QJT_POINTER;
    } else if (operation == QJT_LEFT || operation == QJT_RIGHT) {
        int is_long = operation_type == QJT_LONG || operation_type == QJT_UNSIGNED_LONG;
        value = qjt_convert(is_long ? QJT_UNSIGNED_LONG : QJT_UNSIGNED, from, value);
    } else {
        value = qjt_convert(operation_type, from, value);
    }
    node = make2(NODE_UPDATE, type, operation, place, value);
    node->from = (uint32_t)operation_type;
    node->calls |= HAS_EFFECT;
    /* Which value it has. */
    node->c = when == QJT_BEFORE ? node : 0;
    return node;
}

static qjt_node *make_call(int type, qjt_node *callee, int fixed, int count, const unsigned char *types,
                           qjt_node **arguments) {
    struct call *call = NEW(struct call);
    unsigned char *own_types = allocate_bytes((size_t)count + 1);
    qjt_node **own = allocate_bytes(((size_t)count + 1) * sizeof *own);
    memset(&call->node, 0, sizeof call->node);
    call->node.kind = NODE_CALL;
    call->node.type = (unsigned char)type;
    call->node.calls = HAS_CALL | HAS_EFFECT;
    call->callee = callee;
    call->count = count;
    call->fixed = fixed;
    memcpy(own_types, types, (size_t)count);
    if (count) memcpy(own, arguments, (size_t)count * sizeof *own);
    call->types = own_types;
    call->arguments = own;
    if (frame) {
        frame->nodes += 3 + (unsigned long)count;
        frame->calls |= HAS_CALL | HAS_EFFECT;
    }
    return &call->node;
}

qjt_node *qjt_call(int type, qjt_node *callee, int fixed, int count, const unsigned char *types, qjt_node **arguments) {
    return make_call(type, callee, fixed, count, types, arguments);
}

qjt_node *qjt_self(int type, int count, const unsigned char *types, qjt_node **arguments) {
    return make_call(type, 0, -1, count, types, arguments);
}

qjt_node *qjt_apply(int type, qjt_node *callee, const void *list) {
    const struct closure *own = list;
    unsigned char types[32];
    qjt_node *arguments[32];
    for (int index = 0; index < own->count; index++) {
        const struct closure *argument = own->arguments[index];
        types[index] = (unsigned char)QJT_PROMOTED(argument->type);
        arguments[index] = qjt_convert(types[index], argument->type, qjt_splice(argument->type, argument));
    }
    return make_call(type, callee, -1, own->count, types, arguments);
}

/* -- Places -- */

qjt_node *qjt_at(const void *address) {
    qjt_node *node = make(NODE_AT, QJT_POINTER);
    node->address = address;
    return node;
}

qjt_node *qjt_dereference(qjt_node *pointer) {
    if (pointer->kind == NODE_ADDRESS) return pointer->a;
    if (pointer->kind == NODE_ARITHMETIC && pointer->operation == QJT_ADD && pointer->b->kind == NODE_INTEGER &&
        pointer->b->integer == (int)pointer->b->integer)
        return qjt_member(qjt_dereference(pointer->a), (long)pointer->b->integer);
    if (pointer->kind == NODE_INTEGER) return qjt_at((const void *)(uintptr_t)pointer->integer);
    return make1(NODE_DEREFERENCE, QJT_POINTER, pointer);
}

qjt_node *qjt_member(qjt_node *place, long offset) {
    qjt_node *node;
    if (!offset) return place;
    if (place->kind == NODE_AT) return qjt_at((const char *)place->address + offset);
    if (place->kind == NODE_MEMBER) return qjt_member(place->base, place->offset + offset);
    node = make(NODE_MEMBER, QJT_POINTER);
    node->base = place;
    node->offset = offset;
    node->calls = place->calls;
    return node;
}

qjt_node *qjt_index(int left, long left_step, qjt_node *a, int right, long right_step, qjt_node *b) {
    return qjt_dereference(qjt_add(QJT_ADD, QJT_POINTER, left, left_step, a, right, right_step, b));
}

struct variable *qjt__make_variable(int type, unsigned long size, unsigned long align, int in_memory) {
    struct variable *variable = NEW(struct variable);
    memset(variable, 0, sizeof *variable);
    variable->node.kind = NODE_VARIABLE;
    variable->node.type = (unsigned char)type;
    variable->size = size;
    variable->align = align > 16 ? 16 : align;
    variable->in_memory = in_memory;
    variable->number = -1;
    return variable;
}

/* -- Statements -- */

static void append(qjt_node *node) {
    *frame->tail = node;
    frame->tail = &node->next;
}

qjt_node *qjt_variable(int type, int decays, int has_address, unsigned long size, unsigned long align) {
    struct variable *variable = qjt__make_variable(type, size, align, decays || has_address || type == QJT_AGGREGATE);
    frame->variables++;
    append(make1(NODE_DECLARE, QJT_VOID, &variable->node));
    return &variable->node;
}

qjt_node *qjt_vspec(const void *vspec) { return &((struct variable *)(uintptr_t)vspec)->node; }

void qjt_do(int type, qjt_node *node) {
    (void)type;
    append(make1(NODE_DO, QJT_VOID, node));
}

/* The statement that is open has its outer one in `next` until qjt_end() closes it. */
static void open_statement(qjt_node *node, qjt_node **list) {
    append(node);
    node->next = frame->open;
    frame->open = node;
    *list = 0;
    frame->tail = list;
}

static qjt_node *make_statement(enum kind kind, int operation) {
    qjt_node *node = make(kind, QJT_VOID);
    node->operation = (unsigned char)operation;
    node->a = node->b = node->c = 0;
    return node;
}

void qjt_block(void) {
    qjt_node *node = make_statement(NODE_BLOCK, 0);
    open_statement(node, &node->c);
}

void qjt_region(int jumps) {
    qjt_node *node = make_statement(NODE_REGION, jumps);
    open_statement(node, &node->c);
}

void qjt_if(int type, qjt_node *condition) {
    qjt_node *node = make_statement(NODE_IF, 0);
    node->a = truth(type, condition);
    open_statement(node, &node->b);
}

void qjt_else(void) { frame->tail = &frame->open->c; }

void qjt_loop(int test) {
    qjt_node *node = make_statement(NODE_LOOP, test);
    open_statement(node, &node->c);
}

void qjt_condition(int type, qjt_node *condition) { frame->open->a = truth(type, condition); }

void qjt_step(int type, qjt_node *node) {
    (void)type;
    frame->open->b = node;
}

void qjt_switch(int promoted, int type, qjt_node *value) {
    qjt_node *node = make_statement(NODE_SWITCH, 0);
    node->type = (unsigned char)promoted;
    node->a = qjt_convert(promoted, type, value);
    open_statement(node, &node->c);
}

void qjt_case(long long value) {
    qjt_node *node = make(NODE_CASE, QJT_VOID);
    node->integer = value;
    append(node);
}

void qjt_default(void) { append(make_statement(NODE_DEFAULT, 0)); }

void qjt_end(void) {
    qjt_node *node = frame->open;
    frame->open = node->next;
    node->next = 0;
    frame->tail = &node->next;
}

void qjt_break(void) { append(make_statement(NODE_BREAK, 0)); }
void qjt_continue(void) { append(make_statement(NODE_CONTINUE, 0)); }

void qjt_return(int type, qjt_node *value) {
    qjt_node *node = make_statement(NODE_RETURN, 0);
    node->from = (uint32_t)type;
    node->a = value;
    append(node);
}

/* -- Unrolling -- */

/* The nodes of about 16 KB of code. */
enum { MAX_UNROLLED_NODES = 4096 };

void qjt_begin_unrolling(qjt_unrolling *own, unsigned limit) {
    own->tail = frame->tail;
    own->nodes = frame->nodes;
    own->limit = limit;
    own->iterations = 0;
    own->is_exceeded = 0;
}

/* Called in front of each iteration. */
int qjt_exceeds(qjt_unrolling *own) {
    own->iterations++;
    own->is_exceeded = own->iterations > own->limit || frame->nodes - own->nodes > MAX_UNROLLED_NODES;
    return own->is_exceeded;
}

int qjt_end_unrolling(qjt_unrolling *own) {
    if (!own->is_exceeded) return 0;
    *own->tail = 0;
    frame->tail = own->tail;
    frame->nodes = own->nodes;
    return 1;
}

/* -- Ticks -- */

void qjt_open(qjt_frame *own) {
    own->outer = frame;
    own->open = own->first = 0;
    own->tail = &own->first;
    own->nodes = own->variables = 0;
    own->calls = 0;
    frame = own;
}

static struct closure *make_closure(int type) {
    struct closure *closure = allocate_bytes(offsetof(struct closure, arguments));
    memset(closure, 0, offsetof(struct closure, arguments));
    closure->type = (unsigned char)type;
    return closure;
}

void *qjt_close(qjt_frame *own, int type, qjt_node *value) {
    struct closure *closure = make_closure(type);
    if (!value) {
        value = make_statement(NODE_BLOCK, 0);
        value->c = own->first;
        value->calls = (unsigned char)own->calls;
    }
    closure->body = value;
    closure->calls = (unsigned char)own->calls;
    closure->nodes = own->nodes;
    closure->variables = own->variables;
    frame = own->outer;
    return closure;
}

qjt_node *qjt_splice(int type, const void *cspec) {
    const struct closure *closure = cspec;
    (void)type;
    if (closure->is_list) {
        qjt__fail("T0108: an argument list of push_init() is used as code: pass it to apply()");
        return qjt_integer(QJT_INT, 0);
    }
    if (frame) {
        frame->nodes += closure->nodes;
        frame->variables += closure->variables;
        frame->calls |= closure->calls;
    }
    return closure->body;
}

/* -- Special functions -- */

void *qjt_local(int type, unsigned long size, unsigned long align) {
    struct variable *variable = qjt__make_variable(type, size, align, type == QJT_AGGREGATE);
    variable->function = qjt__pending.number;
    variable->next = qjt__pending.locals;
    qjt__pending.locals = variable;
    return variable;
}

void *qjt_param(int type, int number) {
    struct variable *variable = qjt__make_variable(type, 8, 8, 0);
    variable->function = qjt__pending.number;
    if (number < 0 || number >= MAX_PARAMETERS || type == QJT_AGGREGATE || type == QJT_VOID) {
        qjt__fail("T0107: param() with a number that is not from 0 to 31, or with the type of a struct: pass a pointer to it");
        return variable;
    }
    if (qjt__pending.parameters[number]) {
        if (qjt__pending.parameters[number]->node.type == type) return qjt__pending.parameters[number];
        qjt__fail("T0107: param() has given a parameter two types");
        return variable;
    }
    variable->number = number;
    qjt__pending.parameters[number] = variable;
    return variable;
}

void *qjt_label(void) {
    struct closure *closure = make_closure(QJT_VOID);
    struct label *label = NEW(struct label);
    memset(label, 0, sizeof *label);
    label->node.kind = NODE_LABEL;
    closure->label = label;
    closure->body = &label->node;
    closure->nodes = 1;
    return closure;
}

void *qjt_jump(const void *label) {
    const struct closure *target = label;
    struct closure *closure = make_closure(QJT_VOID);
    if (!target->label) {
        qjt__fail("T0108: jump() to a cspec that label() has not made");
        closure->body = make_statement(NODE_BLOCK, 0);
        return closure;
    }
    closure->body = make1(NODE_JUMP, QJT_VOID, target->body);
    closure->nodes = 1;
    return closure;
}

void *qjt_push_init(void) {
    struct closure *closure = NEW(struct closure);
    memset(closure, 0, sizeof *closure);
    closure->is_list = 1;
    return closure;
}

void qjt_push(const void *list, const void *cspec) {
    struct closure *own = (struct closure *)(uintptr_t)list;
    if (!own->is_list || own->count == 32) {
        qjt__fail("T0108: push() to what push_init() has not made, or of more than 32 arguments");
        return;
    }
    own->arguments[own->count++] = (struct closure *)(uintptr_t)cspec;
}
