/* What a loop changes, and which values in it are the same in every iteration. Knows trees, no registers. */
#ifndef QUAJECT_TICKC_LOOPS_H
#define QUAJECT_TICKC_LOOPS_H

#include "bytes.h"

enum { MAX_INVARIANTS = 12, MAX_SURVEY_DEPTH = 10000 };

/* A walk over a loop, or over a function. */
struct survey {
    /* Stored in the variables that are assigned. */
    unsigned long stamp;
    /* Variables are weighted by uses, eight times as much in each loop; 0: they are not. */
    unsigned weight;
    /* Whether control may enter in the middle, or there are nodes of which the walk knows nothing. */
    int has_labels;
    int nested_switches, variables, depth;
};

static void survey_node(struct survey *s, const qjt_node *node);

static void survey_list(struct survey *s, const qjt_node *list) {
    for (; list; list = list->next) survey_node(s, list);
}

static void survey_assigned(struct survey *s, const qjt_node *place) {
    if (place->kind == NODE_VARIABLE) ((struct variable *)place)->changed = s->stamp;
}

static void survey_kind(struct survey *s, const qjt_node *node) {
    switch (node->kind) {
    case NODE_INTEGER:
    case NODE_FLOATING:
    case NODE_AT:
    case NODE_BREAK:
    case NODE_CONTINUE:
    case NODE_JUMP: return;
    case NODE_LABEL: s->has_labels = 1; return;
    case NODE_CASE:
    case NODE_DEFAULT: s->has_labels |= !s->nested_switches; return;
    case NODE_VARIABLE: ((struct variable *)node)->weight += s->weight; return;
    case NODE_MEMBER: survey_node(s, node->base); return;
    case NODE_DECLARE:
        if (s->weight) ((struct variable *)node->a)->weight = 0;
        s->variables++;
        survey_assigned(s, node->a);
        return;
    case NODE_LOAD:
    case NODE_ADDRESS:
    case NODE_CONVERT:
    case NODE_UNARY:
    case NODE_NOT:
    case NODE_DEREFERENCE:
    case NODE_CALL_INTO:
    case NODE_DO: survey_node(s, node->a); return;
    case NODE_ASSIGN:
    case NODE_COPY:
    case NODE_UPDATE:
        survey_assigned(s, node->a);
        survey_node(s, node->a);
        survey_node(s, node->b);
        return;
    case NODE_ARITHMETIC:
    case NODE_COMPARE:
    case NODE_LOGICAL:
    case NODE_COMMA:
        survey_node(s, node->a);
        survey_node(s, node->b);
        return;
    case NODE_CHOOSE:
        survey_node(s, node->a);
        survey_node(s, node->b);
        survey_node(s, node->c);
        return;
    case NODE_CALL: {
        const struct call *call = (const struct call *)node;
        if (call->callee) survey_node(s, call->callee);
        for (int index = 0; index < call->count; index++) survey_node(s, call->arguments[index]);
        return;
    }
    case NODE_BLOCK:
    case NODE_REGION: survey_list(s, node->c); return;
    case NODE_IF:
        survey_node(s, node->a);
        survey_list(s, node->b);
        survey_list(s, node->c);
        return;
    case NODE_LOOP: {
        const unsigned weight = s->weight;
        if (weight < 1u << 12) s->weight *= 8;
        if (node->a) survey_node(s, node->a);
        if (node->b) survey_node(s, node->b);
        survey_list(s, node->c);
        s->weight = weight;
        return;
    }
    case NODE_SWITCH:
        survey_node(s, node->a);
        s->nested_switches++;
        survey_list(s, node->c);
        s->nested_switches--;
        return;
    case NODE_RETURN:
        if (node->a) survey_node(s, node->a);
        return;
    default: s->has_labels = 1; return;
    }
}

static void survey_node(struct survey *s, const qjt_node *node) {
    if (s->depth == MAX_SURVEY_DEPTH) {
        s->has_labels = 1;
        return;
    }
    s->depth++;
    survey_kind(s, node);
    s->depth--;
}

/* Values that are computed in front of a loop. */
struct invariants {
    unsigned long stamp;
    const qjt_node *node[MAX_INVARIANTS];
    int count;
};

/* Whether a value is that of unchanged variables in registers and of constants. */
static int is_invariant(const struct invariants *own, const qjt_node *node) {
    switch (node->kind) {
    case NODE_INTEGER: return 1;
    case NODE_LOAD: {
        const struct variable *variable = (const struct variable *)node->a;
        return node->a->kind == NODE_VARIABLE && variable->in_register && variable->changed != own->stamp;
    }
    case NODE_CONVERT:
        return is_integer(node->type) && node->type != QJT_BOOL && is_integer(node->from) && is_invariant(own, node->a);
    case NODE_ARITHMETIC:
        if (!is_integer(node->type) || node->calls) return 0;
        if ((node->operation == QJT_DIVIDE || node->operation == QJT_REMAINDER) && node->b->kind != NODE_INTEGER) return 0;
        return is_invariant(own, node->a) && is_invariant(own, node->b);
    default: return 0;
    }
}

static void add_invariant(struct invariants *own, const qjt_node *node) {
    for (int index = 0; index < own->count; index++)
        if (is_same(own->node[index], node)) return;
    if (own->count < MAX_INVARIANTS) own->node[own->count++] = node;
}

/* Whether a constant takes more than an instruction's own bits. */
static int is_long_constant(long long value) { return value != (int)value; }

static void find_invariants(struct invariants *own, const qjt_node *node);

static void find_in_list(struct invariants *own, const qjt_node *list) {
    for (; list; list = list->next) find_invariants(own, list);
}

static void find_invariants(struct invariants *own, const qjt_node *node) {
    switch (node->kind) {
    case NODE_INTEGER:
        if (is_integer(node->type) && is_long_constant(node->integer) && slot_of(node->type) >= SLOT_LONG) add_invariant(own, node);
        return;
    case NODE_FLOATING: add_invariant(own, node); return;
    case NODE_ARITHMETIC:
    case NODE_CONVERT:
        if (is_invariant(own, node)) {
            if (node->kind == NODE_ARITHMETIC || !is_free_conversion(node->type, node->from)) add_invariant(own, node);
            return;
        }
        find_invariants(own, node->a);
        if (node->kind == NODE_ARITHMETIC) find_invariants(own, node->b);
        return;
    case NODE_AT:
        if (is_long_constant((long long)(uintptr_t)node->address)) add_invariant(own, node);
        return;
    case NODE_VARIABLE:
    case NODE_BREAK:
    case NODE_CONTINUE:
    case NODE_JUMP:
    case NODE_LABEL:
    case NODE_CASE:
    case NODE_DEFAULT:
    case NODE_DECLARE: return;
    case NODE_MEMBER: find_invariants(own, node->base); return;
    case NODE_LOAD:
    case NODE_ADDRESS:
    case NODE_UNARY:
    case NODE_NOT:
    case NODE_DEREFERENCE:
    case NODE_DO: find_invariants(own, node->a); return;
    case NODE_ASSIGN:
    case NODE_COPY:
    case NODE_UPDATE:
    case NODE_COMPARE:
    case NODE_LOGICAL:
    case NODE_COMMA:
        find_invariants(own, node->a);
        find_invariants(own, node->b);
        return;
    case NODE_CHOOSE:
        find_invariants(own, node->a);
        find_invariants(own, node->b);
        find_invariants(own, node->c);
        return;
    case NODE_CALL: {
        const struct call *call = (const struct call *)node;
        for (int index = 0; index < call->count; index++) find_invariants(own, call->arguments[index]);
        return;
    }
    case NODE_BLOCK:
    case NODE_REGION: find_in_list(own, node->c); return;
    case NODE_IF:
        find_invariants(own, node->a);
        find_in_list(own, node->b);
        find_in_list(own, node->c);
        return;
    case NODE_LOOP:
        if (node->a) find_invariants(own, node->a);
        if (node->b) find_invariants(own, node->b);
        find_in_list(own, node->c);
        return;
    case NODE_SWITCH:
        find_invariants(own, node->a);
        find_in_list(own, node->c);
        return;
    case NODE_RETURN:
        if (node->a) find_invariants(own, node->a);
        return;
    default: return;
    }
}

#endif
