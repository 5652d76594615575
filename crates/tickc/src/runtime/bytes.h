/* Finds expressions that put a number together from its bytes, such as `p[0] << 8 | p[1]`: one load, or an exchange of
 * the order of bytes. Knows trees, no registers. */
#ifndef QUAJECT_TICKC_BYTES_H
#define QUAJECT_TICKC_BYTES_H

#include "node.h"

#include <string.h>

/* Where each byte of a number comes from, lowest first: byte `at` of a load of a variable, or the byte in memory at
 * this offset from a place. Without origin it is 0. */
struct origin { const qjt_node *node; long at; };
struct bytes { struct origin byte[8]; int count; };

enum { MAX_BYTE_NODES = 40 };

static int size_of(unsigned type) {
    switch (type) {
    case QJT_BOOL:
    case QJT_SIGNED_CHAR:
    case QJT_UNSIGNED_CHAR: return 1;
    case QJT_SHORT:
    case QJT_UNSIGNED_SHORT: return 2;
    case QJT_INT:
    case QJT_UNSIGNED:
    case QJT_FLOAT: return 4;
    case QJT_DOUBLE: return 8;
    default: return sizeof(long);
    }
}

static int is_unsigned_type(unsigned type) {
    return type == QJT_BOOL || type == QJT_UNSIGNED_CHAR || type == QJT_UNSIGNED_SHORT || type == QJT_UNSIGNED ||
           type == QJT_UNSIGNED_LONG || type == QJT_POINTER;
}

/* Whether two nodes are the same place or value, whose evaluation has no effect. */
static int is_same(const qjt_node *a, const qjt_node *b) {
    if (a == b) return !a->calls;
    if (a->kind != b->kind || a->type != b->type || a->operation != b->operation || a->calls || b->calls) return 0;
    switch (a->kind) {
    case NODE_INTEGER:
    case NODE_FLOATING: return a->integer == b->integer;
    case NODE_AT: return a->address == b->address;
    case NODE_MEMBER: return a->offset == b->offset && is_same(a->base, b->base);
    case NODE_LOAD:
    case NODE_DEREFERENCE:
    case NODE_UNARY: return is_same(a->a, b->a);
    case NODE_CONVERT: return a->from == b->from && is_same(a->a, b->a);
    case NODE_ARITHMETIC: return is_same(a->a, b->a) && is_same(a->b, b->b);
    default: return 0;
    }
}

static int bytes_of_load(const qjt_node *node, struct bytes *own) {
    const qjt_node *place = node->a;
    const int size = size_of(node->type);
    long offset = 0;
    if (node->calls) return 0;
    if (place->kind != NODE_VARIABLE) {
        if (place->kind == NODE_MEMBER) offset = place->offset, place = place->base;
        if (place->kind != NODE_DEREFERENCE && place->kind != NODE_AT) return 0;
    }
    for (int index = 0; index < size; index++) {
        const int is_reversed = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ && place->kind != NODE_VARIABLE;
        own->byte[index].node = place->kind == NODE_VARIABLE ? node : place;
        own->byte[index].at = offset + (is_reversed ? size - 1 - index : index);
    }
    return is_unsigned_type(node->type) || size == 8;
}

/* The bytes of a value; 0 if it is not put together from bytes. */
static int bytes_of(const qjt_node *node, struct bytes *own, int *left) {
    const int size = size_of(node->type);
    struct bytes other;
    if (--*left < 0) return 0;
    memset(own, 0, sizeof *own);
    own->count = size;
    switch (node->kind) {
    case NODE_INTEGER: return node->integer == 0;
    case NODE_LOAD: return bytes_of_load(node, own);
    case NODE_CONVERT:
        if (!is_integer(node->type) || !is_integer(node->from) || node->type == QJT_BOOL) return 0;
        if (!bytes_of(node->a, own, left)) return 0;
        if (size > own->count && !is_unsigned_type(node->from) && own->byte[own->count - 1].node) return 0;
        for (int index = size; index < 8; index++) own->byte[index].node = 0;
        own->count = size;
        return 1;
    case NODE_ARITHMETIC: break;
    default: return 0;
    }
    if (!is_integer(node->type)) return 0;
    if (node->operation == QJT_OR || node->operation == QJT_ADD) {
        if (!bytes_of(node->a, own, left) || !bytes_of(node->b, &other, left)) return 0;
        for (int index = 0; index < size; index++) {
            if (own->byte[index].node && other.byte[index].node) return 0;
            if (other.byte[index].node) own->byte[index] = other.byte[index];
        }
        own->count = size;
        return 1;
    }
    if (node->b->kind != NODE_INTEGER || !bytes_of(node->a, own, left)) return 0;
    if (node->operation == QJT_AND) {
        for (int index = 0; index < size; index++) {
            const int mask = (int)((unsigned long long)node->b->integer >> (8 * index) & 0xff);
            if (mask != 0 && mask != 0xff) return 0;
            if (!mask) own->byte[index].node = 0;
        }
        return 1;
    }
    if (node->b->integer < 0 || node->b->integer >= 8 * size || node->b->integer % 8) return 0;
    const int by = (int)node->b->integer / 8;
    if (node->operation == QJT_LEFT) {
        for (int index = size - 1; index >= 0; index--)
            if (index >= by) own->byte[index] = own->byte[index - by];
            else own->byte[index].node = 0;
        return 1;
    }
    /* A number with a sign bit is extended by it. */
    if (node->operation != QJT_RIGHT || (!is_unsigned_type(node->type) && own->byte[size - 1].node)) return 0;
    for (int index = 0; index < size; index++)
        if (index + by < size) own->byte[index] = own->byte[index + by];
        else own->byte[index].node = 0;
    return 1;
}

/* A number of `size` bytes in one load or register; is_reversed: its bytes are in the other order than there. */
struct whole { const qjt_node *node; long offset; int size, is_reversed; };

/* Whether a value is a whole number whose bytes it puts together. */
static int is_whole(const qjt_node *node, struct whole *found) {
    struct bytes own;
    int left = MAX_BYTE_NODES, size = 0, step;
    long first, last;
    if (!bytes_of(node, &own, &left)) return 0;
    while (size < own.count && own.byte[size].node) size++;
    for (int index = size; index < own.count; index++)
        if (own.byte[index].node) return 0;
    if ((size != 2 && size != 4 && size != 8) || size > (int)sizeof(long)) return 0;
    first = own.byte[0].at;
    last = own.byte[size - 1].at;
    step = last > first ? 1 : -1;
    for (int index = 0; index < size; index++)
        if (own.byte[index].at != first + index * step || !is_same(own.byte[index].node, own.byte[0].node)) return 0;
    found->node = own.byte[0].node;
    found->size = size;
    found->offset = step > 0 ? first : last;
    if (found->node->kind == NODE_LOAD) {
        /* The whole of a variable, in the other order. */
        found->is_reversed = 1;
        return step < 0 && last == 0 && size >= 4 && size_of(found->node->type) == size;
    }
    found->is_reversed = (step < 0) == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);
    return 1;
}

/* Whether it is worth looking: the operation and a shift by whole bytes. */
static int may_be_whole(const qjt_node *node) {
    const qjt_node *shift = node->b->kind == NODE_ARITHMETIC ? node->b : node->a;
    if (node->calls || (node->operation != QJT_OR && node->operation != QJT_ADD) || !is_integer(node->type)) return 0;
    for (int depth = 0; depth < 8; depth++) {
        if (shift->kind == NODE_CONVERT) shift = shift->a;
        else if (shift->kind != NODE_ARITHMETIC) return 0;
        else if (shift->operation == QJT_LEFT || shift->operation == QJT_RIGHT)
            return shift->b->kind == NODE_INTEGER && shift->b->integer % 8 == 0;
        else if (shift->operation != QJT_OR && shift->operation != QJT_ADD && shift->operation != QJT_AND) return 0;
        else shift = shift->a;
    }
    return 0;
}

#endif
