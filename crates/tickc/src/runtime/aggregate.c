/* Parts of objects in trees: bit-fields, results of calls that are structs, variables without a declaration. */
#include "node.h"

#include <string.h>

qjt_node *qjt_temporary(int type, unsigned long size, unsigned long align) {
    struct variable *variable = qjt__make_variable(type, size, align, 1);
    variable->is_temporary = 1;
    return &variable->node;
}

qjt_node *qjt_zero(qjt_node *place, unsigned long size) {
    static const char zeros[128];
    const unsigned char types[] = {QJT_POINTER, QJT_INT, QJT_UNSIGNED_LONG};
    qjt_node *arguments[3], *function;
    if (place->kind == NODE_VARIABLE && !((const struct variable *)place)->in_memory)
        return qjt_assign(place->type, size, place, QJT_INT, qjt_integer(QJT_INT, 0));
    if (size <= sizeof zeros) return qjt_assign(QJT_AGGREGATE, size, place, QJT_AGGREGATE, qjt_at(zeros));
    arguments[0] = qjt_address(place);
    arguments[1] = qjt_integer(QJT_INT, 0);
    arguments[2] = qjt_integer(QJT_UNSIGNED_LONG, (long long)size);
    function = qjt_integer(QJT_POINTER, (long long)(uintptr_t)&memset);
    return qjt_call(QJT_VOID, function, -1, 3, types, arguments);
}

qjt_node *qjt_call_into(unsigned long size, const void *function, int count, const unsigned char *types,
                        qjt_node **arguments) {
    struct call_into *result = qjt__allocate(sizeof *result);
    unsigned char own_types[32];
    qjt_node *own[32], *callee = qjt_integer(QJT_POINTER, (long long)(uintptr_t)function);
    if (count > 31) {
        qjt__fail("a call with more than 31 arguments and a struct as result");
        count = 0;
    }
    own_types[0] = QJT_POINTER;
    /* Replaced by the address of the result, which generate.c allocates. */
    own[0] = callee;
    memcpy(own_types + 1, types, (size_t)count);
    if (count) memcpy(own + 1, arguments, (size_t)count * sizeof *own);
    memset(result, 0, sizeof *result);
    result->node.kind = NODE_CALL_INTO;
    result->node.type = QJT_AGGREGATE;
    result->node.a = qjt_call(QJT_VOID, callee, -1, count + 1, own_types, own);
    result->node.calls = result->node.a->calls;
    result->size = size;
    return &result->node;
}

/* -- Bit-fields -- */

/* The integer of a number of bytes, which has a type of the host; its type, or QJT_VOID. */
static unsigned char read_unit(const unsigned char *bytes, unsigned size, unsigned long long *value) {
    unsigned short two;
    unsigned four;
    unsigned long word;
    switch (size) {
    case 1: *value = *bytes; return QJT_UNSIGNED_CHAR;
    case 2: memcpy(&two, bytes, 2); *value = two; return QJT_UNSIGNED_SHORT;
    case 4: memcpy(&four, bytes, 4); *value = four; return QJT_UNSIGNED;
    default:
        memcpy(&word, bytes, sizeof word);
        *value = word;
        return QJT_UNSIGNED_LONG;
    }
}

qjt_node *qjt_field(int type, qjt_node *place, const unsigned char *bits, unsigned long size, int is_signed, int is_bool) {
    struct field *field = qjt__allocate(sizeof *field);
    unsigned long first = 0, last = size;
    memset(field, 0, sizeof *field);
    while (first < size && !bits[first]) first++;
    while (last > first && !bits[last - 1]) last--;
    field->node.kind = NODE_FIELD;
    field->node.type = (unsigned char)(is_bool ? QJT_BOOL : type);
    field->is_signed = (unsigned char)is_signed;
    /* The smallest aligned unit that contains the field. */
    for (unsigned unit = 1; unit <= sizeof(long); unit *= 2) {
        unsigned long at = first / unit * unit;
        unsigned long long value = 0;
        if (last > at + unit || at + unit > size) continue;
        field->unit = read_unit(bits + at, unit, &value);
        field->shift = (unsigned char)__builtin_ctzll(value);
        field->width = (unsigned char)__builtin_popcountll(value);
        field->node.a = qjt_member(place, (long)at);
        field->node.calls = place->calls;
        return &field->node;
    }
    qjt__fail("a bit-field that is in no aligned integer of its struct");
    field->unit = QJT_UNSIGNED_CHAR;
    field->width = 1;
    field->node.a = place;
    return &field->node;
}

/* The type in which a unit is computed with, unsigned or signed. */
static int working_type(const struct field *field, int is_signed) {
    if (field->unit == QJT_UNSIGNED_LONG) return is_signed ? QJT_LONG : QJT_UNSIGNED_LONG;
    return is_signed ? QJT_INT : QJT_UNSIGNED;
}

static qjt_node *shifted(int operation, int type, qjt_node *node, int bits) {
    return qjt_arithmetic(operation, type, type, node, QJT_UNSIGNED, qjt_integer(QJT_UNSIGNED, bits));
}

qjt_node *qjt__load_field(int type, qjt_node *place) {
    const struct field *field = (const struct field *)place;
    const int working = working_type(field, 0), extended = working_type(field, field->is_signed);
    const int bits = working == QJT_UNSIGNED_LONG ? 8 * (int)sizeof(long) : 32;
    qjt_node *node = qjt_convert(working, field->unit, qjt_load(field->unit, 0, place->a));
    node = shifted(QJT_LEFT, working, node, bits - field->shift - field->width);
    node = shifted(QJT_RIGHT, extended, qjt_convert(extended, working, node), bits - field->width);
    return qjt_convert(type, extended, node);
}

/* Whether a place can be evaluated twice. */
static int is_pure(const qjt_node *node) {
    switch (node->kind) {
    case NODE_INTEGER:
    case NODE_AT:
    case NODE_VARIABLE: return 1;
    case NODE_MEMBER: return is_pure(node->base);
    case NODE_LOAD:
    case NODE_ADDRESS:
    case NODE_CONVERT:
    case NODE_DEREFERENCE: return is_pure(node->a);
    case NODE_ARITHMETIC: return is_pure(node->a) && is_pure(node->b);
    default: return 0;
    }
}

/* The field with a place that can be evaluated twice; `*before` is evaluated in front of it, or null. */
static qjt_node *stable(qjt_node *place, qjt_node **before) {
    struct field *copy;
    qjt_node *pointer;
    *before = 0;
    if (is_pure(place->a)) return place;
    pointer = qjt_temporary(QJT_POINTER, sizeof(void *), _Alignof(void *));
    *before = qjt_assign(QJT_POINTER, sizeof(void *), pointer, QJT_POINTER, qjt_address(place->a));
    copy = qjt__allocate(sizeof *copy);
    *copy = *(const struct field *)place;
    copy->node.a = qjt_dereference(qjt_load(QJT_POINTER, 0, pointer));
    copy->node.calls = 0;
    return &copy->node;
}

/* Writes a value to a stable field. */
static qjt_node *store_field(int type, qjt_node *place, int from, qjt_node *value) {
    const struct field *field = (const struct field *)place;
    const int working = working_type(field, 0);
    const unsigned long long ones = field->width == 64 ? ~0ull : (1ull << field->width) - 1, mask = ones << field->shift;
    qjt_node *old = qjt_convert(working, field->unit, qjt_load(field->unit, 0, place->a));
    if (place->type == QJT_BOOL) type = QJT_BOOL;
    /* The value is first, because its evaluation may change the unit. */
    value = qjt_convert(working, type, qjt_convert(type, from, value));
    value = shifted(QJT_LEFT, working, value, field->shift);
    value = qjt_arithmetic(QJT_AND, working, working, value, working, qjt_integer(working, (long long)mask));
    old = qjt_arithmetic(QJT_AND, working, working, old, working, qjt_integer(working, (long long)~mask));
    value = qjt_arithmetic(QJT_OR, working, working, value, working, old);
    return qjt_assign(field->unit, 0, place->a, working, value);
}

static qjt_node *after(qjt_node *before, qjt_node *node, int type) {
    return before ? qjt_comma(QJT_VOID, before, type, node) : node;
}

qjt_node *qjt__assign_field(int type, qjt_node *place, int from, qjt_node *value) {
    qjt_node *before, *own = stable(place, &before), *node = store_field(type, own, from, value);
    return after(before, qjt_comma(QJT_VOID, node, type, qjt__load_field(type, own)), type);
}

qjt_node *qjt__update_field(int operation, int type, int operation_type, qjt_node *place, int from, qjt_node *value,
                            int when) {
    qjt_node *before, *own = stable(place, &before), *old = qjt__load_field(type, own), *node, *kept = 0;
    if (when == QJT_BEFORE) {
        kept = qjt_temporary(type, 8, 8);
        before = after(before, qjt_assign(type, 8, kept, type, old), QJT_VOID);
        old = qjt_load(type, 0, kept);
    }
    node = qjt_arithmetic(operation, operation_type, type, old, from, value);
    node = store_field(type, own, operation_type, node);
    node = qjt_comma(QJT_VOID, node, type, kept ? qjt_load(type, 0, kept) : qjt__load_field(type, own));
    return after(before, node, type);
}
