/* Walks the tree of a cspec once and writes machine code through vcode: the compile() of 'C.
 *
 * An operand is a register: one of a variable, or a temporary that its only reader gives back. A temporary that must
 * survive a call, or that would leave too few registers, waits in a stack slot; where is known when code is written,
 * because both paths of a branch begin and end with the same registers. Variables stay where their declaration puts
 * them. */
#define _GNU_SOURCE
#include "emit.h"
#include "loops.h"
#include "strength.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* Registers that variables leave to temporaries, and below which temporaries are spilled. */
    RESERVED_INTS = 5,
    RESERVED_FLOATS = 4,
    MIN_INTS = 4,
    MIN_FLOATS = 3,
    /* Registers that values which are computed in front of a loop leave. */
    RESERVED_IN_LOOPS = 5,
    MAX_KNOWN = 24,
    MAX_SLOTS = 256,
    /* The stack that recursion leaves; the limit on nested nodes where the end of the stack is not known. */
    MIN_STACK = 1 << 16,
    MAX_NESTING = 500
};

struct operand {
    v_reg reg;
    unsigned char type, is_owned, is_spilled;
    v_variable slot;
};

struct place {
    enum { IN_REGISTER, ON_STACK, IN_MEMORY } kind;
    v_reg reg; /* the variable, or the base of an address */
    int is_owned;
    long offset;
    v_variable slot;
    /* In memory: a register that counts elements of so many bytes; 0: there is none. */
    int step;
    struct operand index;
};

/* A value that is in a register, and need not be computed. */
struct known {
    const qjt_node *node;
    struct operand operand;
};

/* Addresses. */
struct range { uintptr_t start, length; };

enum register_pressure { PRESSURE_NORMAL, PRESSURE_HIGH, PRESSURE_EXTREME };

struct generator {
    qjv_asm c;
    qjv_function *f;
    int is_leaf, has_floating, type;
    /* The function, and the attempt to generate it. */
    unsigned long function, attempt;
    v_label breaks, continues;
    /* Whether the next instruction is never reached. */
    int is_dead;
    /* Where variables of functions that have returned were. */
    struct range dead;
    /* After an attempt that has run out of registers, variables get fewer, or none. */
    enum register_pressure pressure;
    /* The least weight of a variable that gets a register while registers are rare, of integers and of floats; and how
     * many such variables have none yet. */
    unsigned least_weight[2], heavy_left[2];
    int known_count;
    v_variable slots[MAX_SLOTS];
    struct known known[MAX_KNOWN];
    int free_slots, nesting;
    const char *error;
};

static struct operand value(struct generator *g, const qjt_node *node, const v_reg *hint);
static void effect(struct generator *g, const qjt_node *node);
static void jump(struct generator *g, const qjt_node *node, int sense, v_label to);
static struct place place_of(struct generator *g, const qjt_node *node);
static void statements(struct generator *g, const qjt_node *list, const v_label *follow);

static void refuse(struct generator *g, const char *message) {
    if (!g->error) g->error = message;
}

static void bind(struct generator *g, v_label label) {
    qjv_bind(&g->c, label);
    g->is_dead = 0;
}

static void jump_to(struct generator *g, v_label label) {
    if (!g->is_dead) qjv_j(&g->c, label);
    g->is_dead = 1;
}

/* -- Registers -- */

static struct operand unowned(v_reg reg, unsigned type) {
    struct operand operand = {reg, (unsigned char)type, 0, 0, {0}};
    return operand;
}

/* Counts walks over loops and functions, and with them the marks that they leave in variables. */
static _Thread_local unsigned long stamps;

static const char OUT_OF_REGISTERS[] = "T0111: a call has more arguments than there are registers: pass a pointer to them";

static struct operand temporary(struct generator *g, unsigned type) {
    struct operand operand = {qjv_reg(0), (unsigned char)type, 1, 0, {0}};
    const int found = is_floating(type) ? qjv_getfloat(&g->c, &operand.reg, V_TEMP) : qjv_getreg(&g->c, &operand.reg, V_TEMP);
    if (!found) {
        operand.is_owned = 0;
        refuse(g, OUT_OF_REGISTERS);
    }
    return operand;
}

static void release(struct generator *g, struct operand operand) {
    if (!operand.is_owned) return;
    if (is_floating(operand.type)) qjv_putfloat(&g->c, operand.reg);
    else qjv_putreg(&g->c, operand.reg);
}

static v_variable take_slot(struct generator *g) {
    if (g->free_slots) return g->slots[--g->free_slots];
    return qjv_local_bytes(g->f, 8, 8);
}

static void give_slot(struct generator *g, v_variable slot) {
    if (g->free_slots < MAX_SLOTS) g->slots[g->free_slots++] = slot;
}

/* Whether more than so many bits are set. */
static inline int has_more(uint64_t set, int count) {
    while (count-- > 0) set &= set - 1;
    return set != 0;
}

static int is_short_of_registers(const struct generator *g) {
    return !has_more(g->f->int_free, MIN_INTS - 1) || !has_more(g->f->float_free, MIN_FLOATS - 1);
}

/* The register type of an operand as memory has it. */
static unsigned memory_type(unsigned type) { return is_floating(type) ? type : QJT_LONG; }

/* Moves a temporary to the stack if the evaluation of `next` could need its register. */
static void protect(struct generator *g, struct operand *operand, const qjt_node *next) {
    if (!operand->is_owned || !((next->calls & HAS_CALL) || is_short_of_registers(g))) return;
    operand->slot = take_slot(g);
    emit_store_local(&g->c, memory_type(operand->type), operand->reg, operand->slot);
    release(g, *operand);
    operand->is_spilled = 1;
}

static void restore(struct generator *g, struct operand *operand) {
    v_variable slot = operand->slot;
    if (!operand->is_spilled) return;
    *operand = temporary(g, operand->type);
    emit_load_local(&g->c, memory_type(operand->type), operand->reg, slot);
    give_slot(g, slot);
}

/* The register for a result: the hint, or that of an operand that is not used any more, or a fresh one. */
static struct operand result(struct generator *g, unsigned type, const v_reg *hint, struct operand *a, struct operand *b) {
    struct operand *candidates[] = {a, b};
    if (hint) return unowned(*hint, type);
    for (int index = 0; index < 2; index++) {
        struct operand *own = candidates[index];
        if (own && own->is_owned && is_floating(own->type) == is_floating(type)) {
            struct operand reused = *own;
            own->is_owned = 0;
            reused.type = (unsigned char)type;
            return reused;
        }
    }
    return temporary(g, type);
}

/* -- Places -- */

static struct place in_memory(struct operand base) {
    struct place place = {.kind = IN_MEMORY, .reg = base.reg, .is_owned = base.is_owned};
    return place;
}

static struct place variable_place(struct generator *g, const qjt_node *node) {
    struct variable *variable = (struct variable *)(uintptr_t)node;
    if (variable->is_temporary && variable->attempt != g->attempt) {
        variable->attempt = g->attempt;
        variable->slot = qjv_local_bytes(g->f, variable->size ? variable->size : 1, (uint32_t)variable->align).offset;
    }
    struct place place = {.kind = ON_STACK, .reg = qjv_reg(variable->reg), .slot = {variable->slot}};
    if (variable->function && variable->function != g->function)
        refuse(g, "T0106: a vspec of another function: it belongs to the next compile() after local() or param()");
    if (variable->in_register) place.kind = IN_REGISTER;
    return place;
}

/* A sum of a pointer and an integer times a size, `base[index]`. */
struct element { const qjt_node *base, *index; int step; };

/* The integer that a pointer's difference is made of; null if a node is none. */
static const qjt_node *scaled_index(const qjt_node *node, int *step) {
    if (node->kind != NODE_CONVERT || node->type != QJT_POINTER || node->from != QJT_LONG) return 0;
    node = node->a;
    *step = 1;
    if (node->kind == NODE_ARITHMETIC && node->operation == QJT_MULTIPLY && node->type == QJT_LONG && node->b->kind == NODE_INTEGER) {
        const long long size = node->b->integer;
        if (size == 2 || size == 4 || size == 8) *step = (int)size, node = node->a;
    }
    return node;
}

static int is_element(const qjt_node *pointer, struct element *own) {
    if (pointer->kind != NODE_ARITHMETIC || pointer->operation != QJT_ADD || pointer->type != QJT_POINTER) return 0;
    own->base = pointer->a;
    own->index = scaled_index(pointer->b, &own->step);
    if (own->index) return 1;
    /* Constants are on the right. */
    own->base = pointer->b;
    own->index = pointer->b->kind == NODE_INTEGER ? scaled_index(pointer->a, &own->step) : 0;
    return own->index != 0;
}

static struct place element_place(struct generator *g, const struct element *own) {
    struct operand base = value(g, own->base, 0), index;
    struct place place;
    protect(g, &base, own->index);
    index = value(g, own->index, 0);
    restore(g, &base);
    place = in_memory(base);
    place.index = index;
    place.step = own->step;
    return place;
}

/* Refuses an address that the code could only misuse. */
static void check_address(struct generator *g, uintptr_t address) {
    if (address - g->dead.start < g->dead.length)
        refuse(g, "T0103: a tick uses a variable of a function that has returned: take its value with `$`, or make it static");
}

/* An address, as it may be known. */
static struct operand constant_address(struct generator *g, const qjt_node *node) {
    const qjt_node integer = {.kind = NODE_INTEGER, .type = QJT_POINTER, .integer = (long long)(uintptr_t)node->address};
    check_address(g, (uintptr_t)node->address);
    for (int index = 0; index < g->known_count; index++)
        if (is_same(g->known[index].node, node)) return g->known[index].operand;
    return value(g, &integer, 0);
}

static struct place place_of(struct generator *g, const qjt_node *node) {
    struct element element;
    switch (node->kind) {
    case NODE_AT: return in_memory(constant_address(g, node));
    case NODE_DEREFERENCE:
        if (is_element(node->a, &element)) return element_place(g, &element);
        return in_memory(value(g, node->a, 0));
    case NODE_MEMBER: {
        struct place place = place_of(g, node->base);
        place.offset += node->offset;
        place.slot.offset += (int32_t)node->offset;
        return place;
    }
    case NODE_VARIABLE: return variable_place(g, node);
    case NODE_CALL_INTO: {
        /* Each call has a result of its own, because a cspec may be spliced twice. */
        struct variable *own = qjt__make_variable(QJT_AGGREGATE, ((const struct call_into *)node)->size, 16, 1);
        own->is_temporary = 1;
        ((struct call *)node->a)->arguments[0] = qjt_address(&own->node);
        effect(g, node->a);
        return variable_place(g, &own->node);
    }
    case NODE_COPY: effect(g, node); return place_of(g, node->a);
    case NODE_COMMA: effect(g, node->a); return place_of(g, node->b);
    default: {
        /* A value that is no lvalue: the C compiler has refused it. */
        struct operand own = value(g, node, 0);
        return in_memory(own);
    }
    }
}

/* Computes the base of an address with an index that no instruction takes, and one whose offset none holds. */
static void shorten(struct generator *g, struct place *place, int step) {
    struct operand base = {place->reg, QJT_POINTER, (unsigned char)place->is_owned, 0, {0}};
    struct operand sum;
    if (place->kind != IN_MEMORY) return;
    if (place->step && (place->step != step || place->offset != (int32_t)place->offset)) {
        struct operand scaled = place->index;
        if (place->step > 1) {
            scaled = result(g, QJT_POINTER, 0, &place->index, 0);
            qjv_lshuli(&g->c, scaled.reg, place->index.reg, __builtin_ctz((unsigned)place->step));
            release(g, place->index);
        }
        sum = result(g, QJT_POINTER, 0, &base, &scaled);
        qjv_addul(&g->c, sum.reg, base.reg, scaled.reg);
        release(g, base);
        release(g, scaled);
        place->reg = sum.reg;
        place->is_owned = sum.is_owned;
        place->step = 0;
        base = sum;
    }
    if (place->offset == (int32_t)place->offset) return;
    sum = result(g, QJT_POINTER, 0, &base, 0);
    qjv_addpi(&g->c, sum.reg, place->reg, (unsigned long)place->offset);
    release(g, base);
    place->reg = sum.reg;
    place->is_owned = sum.is_owned;
    place->offset = 0;
}

static void release_place(struct generator *g, struct place place) {
    if (place.kind != IN_MEMORY) return;
    if (place.is_owned) qjv_putreg(&g->c, place.reg);
    if (place.step) release(g, place.index);
}

/* The elements that an indexed access of this type counts. */
static int step_of(unsigned type) { return is_floating(type) ? 0 : size_of(type); }

static void load(struct generator *g, unsigned type, v_reg d, struct place *place) {
    shorten(g, place, step_of(type));
    if (place->kind == IN_REGISTER) emit_move(&g->c, type, d, place->reg);
    else if (place->kind == ON_STACK) emit_load_local(&g->c, type, d, place->slot);
    else if (place->step) emit_load_indexed(&g->c, type, d, place->reg, place->index.reg, place->offset);
    else emit_load(&g->c, type, d, place->reg, place->offset);
}

static void store(struct generator *g, unsigned type, v_reg s, struct place *place) {
    shorten(g, place, step_of(type));
    if (place->kind == IN_REGISTER) emit_move(&g->c, type, place->reg, s);
    else if (place->kind == ON_STACK) emit_store_local(&g->c, type, s, place->slot);
    else if (place->step) emit_store_indexed(&g->c, type, s, place->reg, place->index.reg, place->offset);
    else emit_store(&g->c, type, s, place->reg, place->offset);
}

static struct operand address(struct generator *g, const qjt_node *node, const v_reg *hint) {
    struct place place = place_of(g, node);
    struct operand base, made;
    shorten(g, &place, 0);
    base = unowned(place.reg, QJT_POINTER);
    base.is_owned = (unsigned char)place.is_owned;
    if (place.kind == IN_REGISTER) {
        refuse(g, "T0106: the address of a vspec: declare the variable in a tick");
        return unowned(place.reg, QJT_POINTER);
    }
    if (place.kind == IN_MEMORY && !place.offset && !hint) return base;
    made = result(g, QJT_POINTER, hint, place.kind == IN_MEMORY ? &base : 0, 0);
    if (place.kind == ON_STACK) qjv_local_address(&g->c, made.reg, place.slot);
    else if (place.offset) qjv_addpi(&g->c, made.reg, place.reg, (unsigned long)place.offset);
    else emit_move(&g->c, QJT_POINTER, made.reg, place.reg);
    release(g, base);
    return made;
}

/* -- Values -- */

/* A value in a register of its own or in the hint. */
static struct operand value_in(struct generator *g, const qjt_node *node, const v_reg *hint) {
    struct operand own = value(g, node, hint);
    struct operand made;
    if (!hint || qjv_number(own.reg) == qjv_number(*hint)) return own;
    made = unowned(*hint, own.type);
    emit_move(&g->c, own.type, *hint, own.reg);
    release(g, own);
    return made;
}

static int takes_constant(int operation, enum slot slot, const qjt_node *b) {
    if (b->kind != NODE_INTEGER || slot >= SLOT_FLOAT) return 0;
    if ((operation == QJT_DIVIDE || operation == QJT_REMAINDER) && !b->integer) return 0;
    if (operation == QJT_LEFT || operation == QJT_RIGHT)
        return b->integer >= 0 && b->integer < (slot == SLOT_INT || slot == SLOT_UNSIGNED ? 32 : 8 * (int)sizeof(long));
    return 1;
}

/* An operation with a constant in any registers; d may be a. */
static void with_constant(struct generator *g, int operation, enum slot slot, v_reg d, v_reg a, long long b) {
    const unsigned type = slot == SLOT_INT ? QJT_INT : slot == SLOT_UNSIGNED ? QJT_UNSIGNED : QJT_LONG;
    if (needs_division(operation, slot, b)) {
        struct operand quotient = temporary(g, type), t = temporary(g, type);
        emit_division(&g->c, operation, slot, d, a, b, quotient.reg, t.reg);
        release(g, quotient);
        release(g, t);
    } else {
        emit_with_constant(&g->c, operation, slot, d, a, b);
    }
}

/* Whether evaluating a node may read a register; looks at so many nodes. */
static int may_read(const qjt_node *node, v_reg reg, int *left) {
    if (--*left < 0) return 1;
    switch (node->kind) {
    case NODE_INTEGER:
    case NODE_FLOATING:
    case NODE_AT: return 0;
    case NODE_VARIABLE: {
        const struct variable *variable = (const struct variable *)node;
        return variable->in_register && variable->reg == qjv_number(reg);
    }
    case NODE_MEMBER: return may_read(node->base, reg, left);
    case NODE_LOAD:
    case NODE_CONVERT:
    case NODE_UNARY:
    case NODE_DEREFERENCE: return may_read(node->a, reg, left);
    case NODE_ARITHMETIC: return may_read(node->a, reg, left) || may_read(node->b, reg, left);
    default: return 1;
    }
}

/* The hint for the left operand, which is written before the right one is evaluated. */
static const v_reg *left_hint(const v_reg *hint, unsigned type, const qjt_node *a, const qjt_node *b) {
    int left = 12;
    if (!hint || (b->calls & (HAS_CALL | HAS_EFFECT)) || is_floating(a->type) != is_floating(type)) return 0;
    return may_read(b, *hint, &left) ? 0 : hint;
}

/* A number that an expression puts together from its bytes. */
static struct operand whole(struct generator *g, const qjt_node *node, const struct whole *own, const v_reg *hint) {
    struct operand a, d;
    if (own->node->kind == NODE_LOAD) {
        a = value(g, own->node, 0);
        d = result(g, node->type, hint, &a, 0);
        if (own->size == 4) qjv_bswapu(&g->c, d.reg, a.reg);
        else qjv_bswapul(&g->c, d.reg, a.reg);
    } else {
        struct place place = place_of(g, own->node);
        place.offset += own->offset;
        shorten(g, &place, 0);
        a = unowned(place.reg, QJT_POINTER);
        a.is_owned = (unsigned char)place.is_owned;
        d = result(g, node->type, hint, &a, 0);
        emit_load_whole(&g->c, own->size, own->is_reversed, d.reg, a.reg, place.offset);
    }
    release(g, a);
    if (own->size == 4 && !is_free_conversion(node->type, QJT_UNSIGNED))
        emit_convert(&g->c, node->type, QJT_UNSIGNED, d.reg, d.reg);
    return d;
}

static __attribute__((noinline)) struct operand arithmetic(struct generator *g, const qjt_node *node, const v_reg *hint) {
    const enum slot slot = slot_of(node->type);
    struct operand a, b, d;
    struct whole own;
    if (may_be_whole(node) && is_whole(node, &own)) return whole(g, node, &own, hint);
    if (takes_constant(node->operation, slot, node->b) && !is_long_constant(node->b->integer)) {
        /* Nothing is read between the left operand and the operation. */
        a = value(g, node->a, hint);
        d = result(g, node->type, hint, &a, 0);
        with_constant(g, node->operation, slot, d.reg, a.reg, node->b->integer);
        release(g, a);
        return d;
    }
    a = value(g, node->a, left_hint(hint, node->type, node->a, node->b));
    protect(g, &a, node->b);
    b = value(g, node->b, 0);
    restore(g, &a);
    d = result(g, node->type, hint, &a, &b);
    emit_binary(&g->c, node->operation, slot, d.reg, a.reg, b.reg);
    release(g, a);
    release(g, b);
    return d;
}

/* A condition as 0 or 1. */
static struct operand truth_value(struct generator *g, const qjt_node *node, const v_reg *hint) {
    v_label is_true = qjv_label(&g->c), end = qjv_label(&g->c);
    struct operand d;
    jump(g, node, 1, is_true);
    d = result(g, QJT_INT, hint, 0, 0);
    qjv_seti(&g->c, d.reg, 0);
    jump_to(g, end);
    bind(g, is_true);
    qjv_seti(&g->c, d.reg, 1);
    bind(g, end);
    return d;
}

/* Whether the upper half of the register of an unsigned value is clear. */
static int source_is_extended(const qjt_node *node, unsigned type) {
    if (!CLEARS_UPPER_HALF || type != QJT_UNSIGNED) return 0;
    while (node->kind == NODE_CONVERT && is_integer(node->from) && is_free_conversion(node->type, node->from)) node = node->a;
    if (node->kind == NODE_LOAD) return node->a->kind != NODE_VARIABLE || ((const struct variable *)node->a)->number < 0;
    return node->kind == NODE_ARITHMETIC;
}

static __attribute__((noinline)) struct operand convert(struct generator *g, const qjt_node *node, const v_reg *hint) {
    const unsigned to = node->type, from = node->from;
    struct operand own, d;
    if (to == QJT_VOID) {
        effect(g, node->a);
        return unowned(qjv_reg(0), QJT_VOID);
    }
    if (to == QJT_BOOL) {
        d = truth_value(g, node, hint);
        d.type = QJT_BOOL;
        return d;
    }
    own = value(g, node->a, is_floating(from) == is_floating(to) ? hint : 0);
    if (is_free_conversion(to, from) || (source_is_extended(node->a, from) && slot_of(to) >= SLOT_LONG && !is_floating(to))) {
        own.type = (unsigned char)to;
        return own;
    }
    d = result(g, to, hint, &own, 0);
    emit_convert(&g->c, to, from, d.reg, own.reg);
    release(g, own);
    return d;
}

/* Both arms of `?:` in one register; the condition has been tested. */
static struct operand choose_in(struct generator *g, const qjt_node *node, v_reg d, v_label otherwise) {
    v_label end = qjv_label(&g->c);
    value_in(g, node->a, &d);
    jump_to(g, end);
    bind(g, otherwise);
    value_in(g, node->b, &d);
    bind(g, end);
    return unowned(d, node->type);
}

static __attribute__((noinline)) struct operand choose(struct generator *g, const qjt_node *node, const v_reg *hint) {
    v_label otherwise = qjv_label(&g->c), end = qjv_label(&g->c);
    struct operand d;
    v_variable slot;
    jump(g, node->c, 0, otherwise);
    if (node->type == QJT_VOID) {
        effect(g, node->a);
        jump_to(g, end);
        bind(g, otherwise);
        effect(g, node->b);
        bind(g, end);
        return unowned(qjv_reg(0), QJT_VOID);
    }
    if (hint) return choose_in(g, node, *hint, otherwise);
    if (!((node->a->calls | node->b->calls) & HAS_CALL) && !is_short_of_registers(g)) {
        d = temporary(g, node->type);
        choose_in(g, node, d.reg, otherwise);
        return d;
    }
    /* A temporary must not be taken in front of an arm with a call. */
    slot = take_slot(g);
    d = value(g, node->a, 0);
    emit_store_local(&g->c, memory_type(node->type), d.reg, slot);
    release(g, d);
    jump_to(g, end);
    bind(g, otherwise);
    d = value(g, node->b, 0);
    emit_store_local(&g->c, memory_type(node->type), d.reg, slot);
    release(g, d);
    bind(g, end);
    d = temporary(g, node->type);
    emit_load_local(&g->c, memory_type(node->type), d.reg, slot);
    give_slot(g, slot);
    return d;
}

/* Whether a value contains another one. */
static int contains(const qjt_node *node, const qjt_node *part, int *left) {
    if (--*left < 0) return 0;
    if (is_same(node, part)) return 1;
    switch (node->kind) {
    case NODE_MEMBER: return contains(node->base, part, left);
    case NODE_LOAD:
    case NODE_CONVERT:
    case NODE_UNARY:
    case NODE_DEREFERENCE: return contains(node->a, part, left);
    case NODE_ARITHMETIC: return contains(node->a, part, left) || contains(node->b, part, left);
    default: return 0;
    }
}

/* The index of the place of an assignment, if its value reads an element with the same index: it is computed once. */
static const qjt_node *shared_index(struct generator *g, const qjt_node *node) {
    const qjt_node *place = node->a;
    struct element element;
    int left = 40;
    if ((node->b->calls | place->calls) || is_short_of_registers(g) || g->known_count == MAX_KNOWN) return 0;
    if (place->kind == NODE_MEMBER) place = place->base;
    if (place->kind != NODE_DEREFERENCE || !is_element(place->a, &element)) return 0;
    if (element.index->kind != NODE_CONVERT && element.index->kind != NODE_ARITHMETIC) return 0;
    return contains(node->b, element.index, &left) ? element.index : 0;
}

static struct operand assign_to(struct generator *g, const qjt_node *node);

static __attribute__((noinline)) struct operand assign(struct generator *g, const qjt_node *node) {
    const qjt_node *index = shared_index(g, node);
    struct operand own, shared;
    if (!index) return assign_to(g, node);
    shared = value(g, index, 0);
    g->known[g->known_count].node = index;
    g->known[g->known_count].operand = unowned(shared.reg, shared.type);
    g->known_count++;
    own = assign_to(g, node);
    g->known_count--;
    release(g, shared);
    return own;
}

static struct operand assign_to(struct generator *g, const qjt_node *node) {
    struct place place;
    struct operand own;
    if (node->a->kind == NODE_VARIABLE) {
        place = variable_place(g, node->a);
        own = value_in(g, node->b, place.kind == IN_REGISTER ? &place.reg : 0);
        if (place.kind != IN_REGISTER) store(g, node->type, own.reg, &place);
        return own;
    }
    own = value(g, node->b, 0);
    protect(g, &own, node->a);
    place = place_of(g, node->a);
    restore(g, &own);
    store(g, node->type, own.reg, &place);
    release_place(g, place);
    own.type = node->type;
    return own;
}

/* The value of a type that an operation of another type has yielded. */
static struct operand narrowed(struct generator *g, unsigned to, unsigned from, struct operand own, const v_reg *hint) {
    struct operand d;
    if (to == QJT_BOOL) {
        v_label is_true = qjv_label(&g->c);
        struct operand one = temporary(g, QJT_INT);
        qjv_seti(&g->c, one.reg, 1);
        if (is_floating(from)) {
            struct operand zero = temporary(g, from);
            from == QJT_FLOAT ? qjv_setf(&g->c, zero.reg, 0) : qjv_setd(&g->c, zero.reg, 0);
            emit_branch(&g->c, QJT_UNEQUAL, slot_of(from), own.reg, zero.reg, is_true);
            release(g, zero);
        } else {
            emit_branch_immediate(&g->c, QJT_UNEQUAL, slot_of(from), own.reg, 0, is_true);
        }
        qjv_seti(&g->c, one.reg, 0);
        bind(g, is_true);
        release(g, own);
        return one;
    }
    if (to == from) return own;
    d = result(g, to, hint, &own, 0);
    emit_convert(&g->c, to, from, d.reg, own.reg);
    release(g, own);
    return d;
}

/* `place op= value`. The result is the new value, or with `keeps_old` the one before. */
static __attribute__((noinline)) struct operand update(struct generator *g, const qjt_node *node, int keeps_old) {
    const unsigned type = node->type, operation_type = node->from;
    const enum slot slot = slot_of(operation_type);
    const int is_constant = takes_constant(node->operation, slot, node->b);
    struct operand amount = unowned(qjv_reg(0), operation_type), current, old, next;
    struct place place;
    if (!is_constant) {
        amount = value(g, node->b, 0);
        protect(g, &amount, node->a);
    }
    place = place_of(g, node->a);
    restore(g, &amount);
    if (place.kind == IN_REGISTER) {
        current = unowned(place.reg, type);
    } else {
        current = temporary(g, type);
        load(g, type, current.reg, &place);
    }
    old = current;
    if (keeps_old) {
        old = temporary(g, type);
        emit_move(&g->c, type, old.reg, current.reg);
    }
    if ((type == operation_type || (type >= QJT_INT && is_free_conversion(type, operation_type))) && type >= QJT_INT &&
        place.kind == IN_REGISTER) {
        if (is_constant) with_constant(g, node->operation, slot, place.reg, place.reg, node->b->integer);
        else emit_binary(&g->c, node->operation, slot, place.reg, place.reg, amount.reg);
        release(g, amount);
        return keeps_old ? old : current;
    }
    next = temporary(g, operation_type);
    emit_convert(&g->c, operation_type, type, next.reg, current.reg);
    if (is_constant) with_constant(g, node->operation, slot, next.reg, next.reg, node->b->integer);
    else emit_binary(&g->c, node->operation, slot, next.reg, next.reg, amount.reg);
    release(g, amount);
    release(g, current);
    next = narrowed(g, type, operation_type, next, 0);
    store(g, type, next.reg, &place);
    release_place(g, place);
    if (!keeps_old) return next;
    release(g, next);
    return old;
}

/* Copies bytes between places that may be aligned to nothing. */
static __attribute__((noinline)) void copy(struct generator *g, const qjt_node *node) {
    struct operand from = address(g, node->b, 0), to;
    unsigned long size = node->from, at = 0;
    struct operand word;
    protect(g, &from, node->a);
    to = address(g, node->a, 0);
    restore(g, &from);
    word = temporary(g, QJT_LONG);
    for (; size - at >= sizeof(long); at += sizeof(long)) {
        qjv_uldli(&g->c, word.reg, from.reg, (long)at);
        qjv_ustli(&g->c, word.reg, to.reg, (long)at);
    }
    for (; at < size; at++) {
        qjv_lduci(&g->c, word.reg, from.reg, (long)at);
        qjv_stuci(&g->c, word.reg, to.reg, (long)at);
    }
    release(g, word);
    release(g, from);
    release(g, to);
}

/* -- Calls -- */

static const char *const type_names[] = {"%i", "%uc", "%c", "%uc", "%s", "%us", "%i", "%u", "%l", "%ul", "%p", "%f", "%d"};

enum { MAX_ARGUMENTS = 32 };

/* Evaluates arguments: first those with calls, which wait on the stack. */
static int evaluate_arguments(struct generator *g, const struct call *call, struct operand *values) {
    for (int pass = 0; pass < 2; pass++) {
        for (int index = 0; index < call->count; index++) {
            const qjt_node *argument = call->arguments[index];
            if ((argument->calls & HAS_CALL) != (pass == 0)) continue;
            if (argument->kind == NODE_INTEGER) continue;
            values[index] = value(g, argument, 0);
            if (pass == 0 && values[index].is_owned) {
                values[index].slot = take_slot(g);
                emit_store_local(&g->c, memory_type(values[index].type), values[index].reg, values[index].slot);
                release(g, values[index]);
                values[index].is_spilled = 1;
            }
        }
    }
    for (int index = 0; index < call->count; index++) restore(g, &values[index]);
    return !g->error;
}

static __attribute__((noinline)) struct operand call_function(struct generator *g, const qjt_node *node, const v_reg *hint) {
    const struct call *call = (const struct call *)node;
    struct operand values[MAX_ARGUMENTS], callee = unowned(qjv_reg(0), QJT_POINTER), d;
    qjv_argument arguments[MAX_ARGUMENTS];
    qjv_target target = qjv_itself();
    char types[4 * MAX_ARGUMENTS + 8] = "";
    const int has_address = call->callee && call->callee->kind != NODE_INTEGER;
    if (call->count > MAX_ARGUMENTS) {
        refuse(g, "T0111: a call with more than 32 arguments: pass a pointer to them");
        return unowned(qjv_reg(0), node->type);
    }
    memset(values, 0, sizeof values);
    if (has_address && (call->callee->calls & HAS_CALL)) {
        callee = value(g, call->callee, 0);
        protect(g, &callee, node);
    }
    if (!evaluate_arguments(g, call, values)) return unowned(qjv_reg(0), node->type);
    if (has_address && !(call->callee->calls & HAS_CALL)) callee = value(g, call->callee, 0);
    restore(g, &callee);
    for (int index = 0; index < call->count; index++) {
        const qjt_node *argument = call->arguments[index];
        if (index == call->fixed) strcat(types, "...");
        strcat(types, type_names[call->types[index]]);
        arguments[index] = argument->kind == NODE_INTEGER ? qjv_value(argument->integer) : qjv_in(values[index].reg);
    }
    if (call->fixed >= 0 && call->fixed == call->count) strcat(types, "...");
    if (has_address) target = qjv_in(callee.reg);
    else if (call->callee) target = qjv_at_address((uintptr_t)call->callee->integer);
    qjv_call(&g->c, types, target, arguments, (size_t)call->count);
    for (int index = 0; index < call->count; index++) release(g, values[index]);
    release(g, callee);
    if (node->type == QJT_VOID) return unowned(qjv_reg(0), QJT_VOID);
    d = result(g, node->type, hint, 0, 0);
    if (node->type >= QJT_INT) emit_move(&g->c, node->type, d.reg, is_floating(node->type) ? V_FRESULT : V_RESULT);
    else emit_extend(&g->c, node->type, d.reg, V_RESULT);
    return d;
}

static struct operand value_of(struct generator *g, const qjt_node *node, const v_reg *hint) {
    struct operand own, d;
    switch (node->kind) {
    case NODE_INTEGER:
        if (node->type == QJT_POINTER) check_address(g, (uintptr_t)node->integer);
        d = result(g, node->type, hint, 0, 0);
        emit_integer(&g->c, node->type, d.reg, node->integer);
        return d;
    case NODE_FLOATING:
        d = result(g, node->type, hint, 0, 0);
        if (node->type == QJT_FLOAT) qjv_setf(&g->c, d.reg, (float)node->real);
        else qjv_setd(&g->c, d.reg, node->real);
        return d;
    case NODE_LOAD: {
        struct place place = place_of(g, node->a);
        struct operand base;
        if (place.kind == IN_REGISTER) return unowned(place.reg, node->type);
        shorten(g, &place, step_of(node->type));
        base = unowned(place.reg, QJT_POINTER);
        base.is_owned = (unsigned char)place.is_owned;
        d = result(g, node->type, hint, place.kind == IN_MEMORY ? &base : 0, place.step ? &place.index : 0);
        load(g, node->type, d.reg, &place);
        release(g, base);
        if (place.step) release(g, place.index);
        return d;
    }
    case NODE_ADDRESS: return address(g, node->a, hint);
    case NODE_CONVERT: return convert(g, node, hint);
    case NODE_UNARY:
        own = value(g, node->a, hint);
        d = result(g, node->type, hint, &own, 0);
        switch (slot_of(node->type) + (node->operation == QJT_NEGATE ? 0 : 8)) {
        case SLOT_INT: qjv_negi(&g->c, d.reg, own.reg); break;
        case SLOT_UNSIGNED: qjv_negu(&g->c, d.reg, own.reg); break;
        case SLOT_LONG: qjv_negl(&g->c, d.reg, own.reg); break;
        case SLOT_UNSIGNED_LONG: qjv_negul(&g->c, d.reg, own.reg); break;
        case SLOT_FLOAT: qjv_negf(&g->c, d.reg, own.reg); break;
        case SLOT_DOUBLE: qjv_negd(&g->c, d.reg, own.reg); break;
        case SLOT_INT + 8: qjv_comi(&g->c, d.reg, own.reg); break;
        case SLOT_UNSIGNED + 8: qjv_comu(&g->c, d.reg, own.reg); break;
        case SLOT_LONG + 8: qjv_coml(&g->c, d.reg, own.reg); break;
        default: qjv_comul(&g->c, d.reg, own.reg); break;
        }
        release(g, own);
        return d;
    case NODE_NOT:
    case NODE_COMPARE:
    case NODE_LOGICAL: return truth_value(g, node, hint);
    case NODE_ARITHMETIC: return arithmetic(g, node, hint);
    case NODE_CHOOSE: return choose(g, node, hint);
    case NODE_COMMA: effect(g, node->a); return value(g, node->b, hint);
    case NODE_ASSIGN: return assign(g, node);
    case NODE_COPY: copy(g, node); return unowned(qjv_reg(0), QJT_AGGREGATE);
    case NODE_CALL_INTO: effect(g, node); return unowned(qjv_reg(0), QJT_AGGREGATE);
    case NODE_UPDATE: return update(g, node, node->c != 0);
    case NODE_CALL: return call_function(g, node, hint);
    default:
        statements(g, node, 0);
        return unowned(qjv_reg(0), QJT_VOID);
    }
}

/* Whether a value is in a register since the beginning of a loop. */
static const struct operand *find_known(const struct generator *g, const qjt_node *node) {
    if (node->kind == NODE_INTEGER ? !is_long_constant(node->integer)
                                   : node->kind != NODE_FLOATING && node->kind != NODE_ARITHMETIC && node->kind != NODE_CONVERT)
        return 0;
    for (int index = 0; index < g->known_count; index++)
        if (is_same(g->known[index].node, node)) return &g->known[index].operand;
    return 0;
}

static struct operand value(struct generator *g, const qjt_node *node, const v_reg *hint) {
    struct operand own = unowned(qjv_reg(0), node->type);
    const struct operand *known = g->known_count ? find_known(g, node) : 0;
    if (known) return *known;
    if (node->kind == NODE_LOAD && node->a->kind == NODE_VARIABLE) {
        /* The most frequent case. */
        const struct variable *variable = (const struct variable *)node->a;
        if (variable->in_register && (!variable->function || variable->function == g->function))
            return unowned(qjv_reg(variable->reg), node->type);
    }
    if (g->dead.length ? (uintptr_t)&own - g->dead.start < MIN_STACK : g->nesting == MAX_NESTING) {
        refuse(g, "T0111: cspecs are composed to a tree that is too deep for the stack: assign parts to variables");
        return own;
    }
    g->nesting++;
    own = value_of(g, node, hint);
    g->nesting--;
    return own;
}

/* Generates a node for its effects. */
static void effect(struct generator *g, const qjt_node *node) {
    switch (node->kind) {
    case NODE_INTEGER:
    case NODE_FLOATING: return;
    case NODE_UPDATE: release(g, update(g, node, 0)); return;
    case NODE_ASSIGN: {
        qjt_node own = *node;
        /* A store takes the low bits of a register. */
        if (own.b->kind == NODE_CONVERT && own.type > QJT_BOOL && own.type < QJT_INT && is_integer(own.b->from) &&
            slot_of(own.b->from) == SLOT_INT && own.b->a->kind != NODE_INTEGER &&
            !(own.a->kind == NODE_VARIABLE && ((const struct variable *)own.a)->in_register))
            own.b = own.b->a;
        release(g, assign(g, &own));
        return;
    }
    case NODE_AT:
    case NODE_DEREFERENCE:
    case NODE_MEMBER:
    case NODE_VARIABLE:
    case NODE_CALL_INTO: release_place(g, place_of(g, node)); return;
    default: release(g, value(g, node, 0)); return;
    }
}

/* -- Conditions -- */

static void compare(struct generator *g, const qjt_node *node, int sense, v_label to) {
    const enum slot slot = slot_of(node->from);
    /* Each operation is next to its inverse. */
    const int operation = sense || slot >= SLOT_FLOAT ? node->operation : QJT_EQUAL + ((node->operation - QJT_EQUAL) ^ 1);
    struct operand a = value(g, node->a, 0), b;
    if (node->b->kind == NODE_INTEGER && slot < SLOT_FLOAT && !is_long_constant(node->b->integer)) {
        emit_branch_immediate(&g->c, operation, slot, a.reg, node->b->integer, to);
        release(g, a);
        return;
    }
    protect(g, &a, node->b);
    b = value(g, node->b, 0);
    restore(g, &a);
    if (slot >= SLOT_FLOAT && !sense) {
        /* The inverse of `<` is not `>=`: with a NaN both are false. */
        v_label holds = qjv_label(&g->c);
        emit_branch(&g->c, operation, slot, a.reg, b.reg, holds);
        jump_to(g, to);
        bind(g, holds);
    } else {
        emit_branch(&g->c, operation, slot, a.reg, b.reg, to);
    }
    release(g, a);
    release(g, b);
}

/* Jumps if a value of a type is not 0, or is, as `sense` says. */
static void jump_if(struct generator *g, const qjt_node *node, unsigned type, int sense, v_label to) {
    struct operand own = value(g, node, 0);
    if (is_floating(type)) {
        struct operand zero = temporary(g, type);
        if (type == QJT_FLOAT) qjv_setf(&g->c, zero.reg, 0);
        else qjv_setd(&g->c, zero.reg, 0);
        emit_branch(&g->c, sense ? QJT_UNEQUAL : QJT_EQUAL, slot_of(type), own.reg, zero.reg, to);
        release(g, zero);
    } else {
        emit_branch_immediate(&g->c, sense ? QJT_UNEQUAL : QJT_EQUAL, slot_of(type), own.reg, 0, to);
    }
    release(g, own);
}

/* Jumps if a condition is true, or false, as `sense` says. */
static void jump(struct generator *g, const qjt_node *node, int sense, v_label to) {
    switch (node->kind) {
    case NODE_INTEGER:
        if ((node->integer != 0) == sense) jump_to(g, to);
        return;
    case NODE_COMPARE: compare(g, node, sense, to); return;
    case NODE_NOT:
        if (is_floating(node->from)) jump_if(g, node->a, node->from, !sense, to);
        else jump(g, node->a, !sense, to);
        return;
    case NODE_LOGICAL:
        if ((node->operation == QJT_EITHER) == sense) {
            jump(g, node->a, sense, to);
            jump(g, node->b, sense, to);
        } else {
            v_label past = qjv_label(&g->c);
            jump(g, node->a, !sense, past);
            jump(g, node->b, sense, to);
            bind(g, past);
        }
        return;
    case NODE_CONVERT:
        if (node->type == QJT_BOOL || (node->type == QJT_INT && slot_of(node->from) == SLOT_INT)) {
            if (is_floating(node->from)) jump_if(g, node->a, node->from, sense, to);
            else jump(g, node->a, sense, to);
            return;
        }
        jump_if(g, node, node->type, sense, to);
        return;
    default: jump_if(g, node, node->type, sense, to); return;
    }
}

/* -- Variables -- */

static int takes_register(struct generator *g, const struct variable *variable) {
    const int is_float = is_floating(variable->node.type);
    const int is_heavy = variable->weight >= g->least_weight[is_float];
    const uint64_t free = is_float ? g->f->float_free : g->f->int_free;
    int reserved = is_float ? RESERVED_FLOATS : RESERVED_INTS;
    if (variable->in_memory || g->pressure == PRESSURE_EXTREME) return 0;
    if (is_heavy && g->heavy_left[is_float]) g->heavy_left[is_float]--;
    if (!is_heavy) reserved += (int)g->heavy_left[is_float];
    if (g->pressure == PRESSURE_HIGH) reserved += 3;
    if (!has_more(free, reserved)) return 0;
    return is_float || g->is_leaf || (free & QJV_INT_SAVED) != 0;
}

static void allocate(struct generator *g, struct variable *variable) {
    v_reg reg = qjv_reg(0);
    variable->in_register = 0;
    if (takes_register(g, variable)) {
        int found = is_floating(variable->node.type) ? qjv_getfloat(&g->c, &reg, V_VAR) : qjv_getreg(&g->c, &reg, V_VAR);
        variable->in_register = found;
        variable->reg = qjv_number(reg);
    }
    if (!variable->in_register)
        variable->slot = qjv_local_bytes(g->f, variable->size ? variable->size : 1, (uint32_t)variable->align).offset;
}

static void deallocate(struct generator *g, struct variable *variable) {
    if (!variable->in_register) return;
    if (is_floating(variable->node.type)) qjv_putfloat(&g->c, qjv_reg(variable->reg));
    else qjv_putreg(&g->c, qjv_reg(variable->reg));
}

/* -- Statements -- */

/* A block; `follow`, if it is not null, is the label that control goes to behind it. */
static void block(struct generator *g, const qjt_node *list, const v_label *follow) {
    statements(g, list, follow);
    for (; list; list = list->next)
        if (list->kind == NODE_DECLARE) deallocate(g, (struct variable *)list->a);
}

/* Registers that values in front of a loop can take. */
static int may_hoist(const struct generator *g, const qjt_node *node, const struct survey *s) {
    if (g->known_count == MAX_KNOWN) return 0;
    if (is_floating(node->type)) {
        if (!g->is_leaf && !(g->f->float_free & QJV_FLOAT_SAVED)) return 0;
        return has_more(g->f->float_free, RESERVED_IN_LOOPS + s->variables);
    }
    if (!g->is_leaf && !(g->f->int_free & QJV_INT_SAVED)) return 0;
    return has_more(g->f->int_free, RESERVED_IN_LOOPS + s->variables);
}

/* Computes what is the same in every iteration of a loop in front of it; how many values were known before. */
static int hoist(struct generator *g, const qjt_node *node) {
    struct invariants found = {.stamp = ++stamps};
    struct survey s = {.stamp = found.stamp};
    const int before = g->known_count;
    if (g->pressure != PRESSURE_NORMAL) return before;
    if (!g->has_floating && !has_more(g->f->int_free, RESERVED_IN_LOOPS)) return before;
    if (node->a) survey_node(&s, node->a);
    if (node->b) survey_node(&s, node->b);
    survey_list(&s, node->c);
    if (s.has_labels) return before;
    find_invariants(&found, node);
    for (int index = 0; index < found.count; index++) {
        const qjt_node *own = found.node[index];
        struct known *known = &g->known[g->known_count];
        v_reg reg;
        int taken;
        if (find_known(g, own) || !may_hoist(g, own, &s)) continue;
        taken = is_floating(own->type) ? qjv_getfloat(&g->c, &reg, V_VAR) : qjv_getreg(&g->c, &reg, V_VAR);
        if (!taken) continue;
        if (own->kind == NODE_AT) qjv_setul(&g->c, reg, (unsigned long)(uintptr_t)own->address);
        else value_in(g, own, &reg);
        known->node = own;
        known->operand = unowned(reg, own->type);
        g->known_count++;
    }
    return before;
}

static void forget_known(struct generator *g, int before) {
    while (g->known_count > before) {
        struct operand own = g->known[--g->known_count].operand;
        own.is_owned = 1;
        release(g, own);
    }
}

static void loop(struct generator *g, const qjt_node *node) {
    v_label breaks = g->breaks, continues = g->continues, top = qjv_label(&g->c);
    const int before = hoist(g, node);
    g->breaks = qjv_label(&g->c);
    g->continues = qjv_label(&g->c);
    /* The condition is in front of the loop and at its end, so that each turn has one jump. */
    if (node->operation == QJT_TEST_FIRST && node->a) jump(g, node->a, 0, g->breaks);
    bind(g, top);
    block(g, node->c, 0);
    bind(g, g->continues);
    if (node->b) effect(g, node->b);
    if (node->a) jump(g, node->a, 1, top);
    else jump_to(g, top);
    bind(g, g->breaks);
    g->breaks = breaks;
    g->continues = continues;
    forget_known(g, before);
}

/* The label of a case, while its `switch` is generated. */
static v_label case_label(const qjt_node *node) {
    v_label label = {node->from};
    return label;
}

/* Compares with the cases of a `switch`; the label of `default`, or the one given. */
static v_label dispatch(struct generator *g, const qjt_node *list, unsigned type, v_reg reg, v_label otherwise) {
    for (; list; list = list->next) {
        switch (list->kind) {
        case NODE_CASE:
        case NODE_DEFAULT: {
            v_label label = qjv_label(&g->c);
            ((qjt_node *)list)->from = label.index;
            if (list->kind == NODE_DEFAULT) otherwise = label;
            else emit_branch_immediate(&g->c, QJT_EQUAL, slot_of(type), reg, list->integer, label);
            break;
        }
        case NODE_IF:
            otherwise = dispatch(g, list->b, type, reg, otherwise);
            otherwise = dispatch(g, list->c, type, reg, otherwise);
            break;
        case NODE_BLOCK:
        case NODE_REGION:
        case NODE_LOOP: otherwise = dispatch(g, list->c, type, reg, otherwise); break;
        default: break;
        }
    }
    return otherwise;
}

static void switch_statement(struct generator *g, const qjt_node *node) {
    v_label breaks = g->breaks, otherwise;
    struct operand own = value(g, node->a, 0);
    g->breaks = qjv_label(&g->c);
    otherwise = dispatch(g, node->c, node->type, own.reg, g->breaks);
    jump_to(g, otherwise);
    release(g, own);
    block(g, node->c, 0);
    bind(g, g->breaks);
    g->breaks = breaks;
}

static void return_statement(struct generator *g, const qjt_node *node) {
    const v_reg result = is_floating((unsigned)g->type) ? V_FRESULT : V_RESULT;
    const qjt_node *returned;
    int is_claimed;
    struct operand own;
    if (g->type == QJT_VOID) {
        if (node->a) effect(g, node->a);
        qjv_retv(&g->c);
        g->is_dead = 1;
        return;
    }
    if (!node->a || node->from == QJT_AGGREGATE || node->from == QJT_VOID) {
        refuse(g, "T0110: `return` of a struct, or without a value, in a function with a result");
        return;
    }
    returned = qjt_convert(g->type, (int)node->from, node->a);
    is_claimed = is_floating((unsigned)g->type) ? qjv_claim_float(&g->c, result) : qjv_claim(&g->c, result);
    own = value(g, returned, is_claimed && is_floating((unsigned)g->type) == is_floating(returned->type) ? &result : 0);
    emit_return(&g->c, (unsigned)g->type, own.reg);
    release(g, own);
    if (is_claimed && is_floating((unsigned)g->type)) qjv_putfloat(&g->c, result);
    else if (is_claimed) qjv_putreg(&g->c, result);
    g->is_dead = 1;
}

static v_label label_of(struct generator *g, const qjt_node *node) {
    struct label *label = (struct label *)node;
    v_label found;
    if (label->attempt != g->attempt) {
        found = qjv_label(&g->c);
        label->attempt = g->attempt;
        label->index = found.index;
    }
    found.index = label->index;
    return found;
}

/* Whether statements are a jump and nothing else; to where. */
static int is_jump(struct generator *g, const qjt_node *list, v_label *to) {
    if (!list || list->next) return 0;
    switch (list->kind) {
    case NODE_BLOCK: return is_jump(g, list->c, to);
    case NODE_DO: return list->a->kind == NODE_JUMP && is_jump(g, list->a, to);
    case NODE_BREAK: *to = g->breaks; return 1;
    case NODE_CONTINUE: *to = g->continues; return 1;
    case NODE_JUMP: *to = label_of(g, list->a); return 1;
    default: return 0;
    }
}

static void if_statement(struct generator *g, const qjt_node *node, const v_label *follow) {
    v_label otherwise, end;
    if (is_jump(g, node->b, &otherwise)) {
        jump(g, node->a, 1, otherwise);
        block(g, node->c, follow);
        return;
    }
    if (!node->c) {
        otherwise = follow ? *follow : qjv_label(&g->c);
        jump(g, node->a, 0, otherwise);
        block(g, node->b, &otherwise);
        if (!follow) bind(g, otherwise);
        return;
    }
    if (is_jump(g, node->c, &otherwise)) {
        jump(g, node->a, 0, otherwise);
        block(g, node->b, follow);
        return;
    }
    otherwise = qjv_label(&g->c);
    end = follow ? *follow : qjv_label(&g->c);
    jump(g, node->a, 0, otherwise);
    block(g, node->b, &end);
    jump_to(g, end);
    bind(g, otherwise);
    block(g, node->c, &end);
    if (!follow) bind(g, end);
}

static void region(struct generator *g, const qjt_node *node) {
    v_label *jumps = node->operation == QJT_BREAKS ? &g->breaks : &g->continues, outer = *jumps, end = qjv_label(&g->c);
    *jumps = end;
    block(g, node->c, &end);
    bind(g, end);
    *jumps = outer;
}

/* Generates statements. Behind the last one control goes to `follow`, if that is not null: it may jump there, or go on
 * to the code that follows, which jumps there. */
static void statements(struct generator *g, const qjt_node *list, const v_label *follow) {
    for (; list && !g->error; list = list->next) {
        const v_label *after = list->next ? 0 : follow;
        switch (list->kind) {
        case NODE_DO:
            if (!g->is_dead || !(list->a->kind == NODE_ASSIGN || list->a->kind == NODE_UPDATE)) effect(g, list->a);
            break;
        case NODE_DECLARE: allocate(g, (struct variable *)list->a); break;
        case NODE_BLOCK: block(g, list->c, after); break;
        case NODE_REGION: region(g, list); break;
        case NODE_IF: if_statement(g, list, after); break;
        case NODE_LOOP: loop(g, list); break;
        case NODE_SWITCH: switch_statement(g, list); break;
        case NODE_CASE:
        case NODE_DEFAULT: bind(g, case_label(list)); break;
        case NODE_BREAK: jump_to(g, g->breaks); break;
        case NODE_CONTINUE: jump_to(g, g->continues); break;
        case NODE_RETURN:
            if (!g->is_dead) return_statement(g, list);
            break;
        case NODE_LABEL: bind(g, label_of(g, list)); break;
        case NODE_JUMP: jump_to(g, label_of(g, list->a)); break;
        default: effect(g, list); break;
        }
    }
}

/* -- Functions -- */

/* Compiled functions by address, for qjt_free_code(). */
struct compiled {
    const void *function;
    struct v_code *code;
    struct compiled *next;
};

enum { BUCKETS = 256 };
static struct compiled *compiled[BUCKETS];
static pthread_mutex_t compiled_lock = PTHREAD_MUTEX_INITIALIZER;

static struct compiled **bucket(const void *function) { return &compiled[(uintptr_t)function >> 6 & (BUCKETS - 1)]; }

static int remember(const void *function, struct v_code *code) {
    struct compiled *entry = malloc(sizeof *entry);
    if (!entry) return 0;
    entry->function = function;
    entry->code = code;
    pthread_mutex_lock(&compiled_lock);
    entry->next = *bucket(function);
    *bucket(function) = entry;
    pthread_mutex_unlock(&compiled_lock);
    return 1;
}

void qjt_free_code(const void *function) {
    struct compiled **link, *entry;
    if (!function) return;
    pthread_mutex_lock(&compiled_lock);
    for (link = bucket(function); *link && (*link)->function != function; link = &(*link)->next) continue;
    entry = *link;
    if (entry) *link = entry->next;
    pthread_mutex_unlock(&compiled_lock);
    if (!entry) {
        qjt__fail("T0109: free_code() of an address that compile() has not returned, or twice");
        return;
    }
    v_code_free(entry->code);
    free(entry);
}

/* The type string of the parameters; the number of them, or -1. */
static int signature(char *types) {
    int count = MAX_PARAMETERS;
    while (count && !qjt__pending.parameters[count - 1]) count--;
    for (int index = 0; index < count; index++) {
        if (!qjt__pending.parameters[index]) return -1;
        strcat(types, type_names[qjt__pending.parameters[index]->node.type]);
    }
    return count;
}

static void place_parameters(struct generator *g, const v_reg *registers, int count) {
    for (int index = 0; index < count; index++) {
        struct variable *own = qjt__pending.parameters[index];
        own->in_register = !own->in_memory && g->pressure != PRESSURE_EXTREME &&
                           own->weight >= g->least_weight[is_floating(own->node.type)];
        own->reg = qjv_number(registers[index]);
        if (own->in_register) continue;
        own->slot = qjv_local_bytes(g->f, 8, 8).offset;
        emit_store_local(&g->c, own->node.type, registers[index], (v_variable){own->slot});
        own->in_register = 1;
        deallocate(g, own);
        own->in_register = 0;
    }
}

enum { MAX_WEIGHED = 256 };

/* The variables of a function. */
struct weighed { unsigned weight[2][MAX_WEIGHED]; int count[2]; };

static void weigh(struct weighed *all, const struct variable *variable) {
    const int is_float = is_floating(variable->node.type);
    if (!variable->in_memory && all->count[is_float] < MAX_WEIGHED) all->weight[is_float][all->count[is_float]++] = variable->weight;
}

static void weigh_list(struct weighed *all, const qjt_node *list) {
    for (; list; list = list->next) {
        switch (list->kind) {
        case NODE_DECLARE: weigh(all, (const struct variable *)list->a); break;
        case NODE_BLOCK:
        case NODE_REGION:
        case NODE_LOOP:
        case NODE_SWITCH: weigh_list(all, list->c); break;
        case NODE_IF:
            weigh_list(all, list->b);
            weigh_list(all, list->c);
            break;
        case NODE_DO: weigh_list(all, list->a->kind == NODE_BLOCK ? list->a : 0); break;
        default: break;
        }
    }
}

static int compare_weights(const void *a, const void *b) {
    const unsigned left = *(const unsigned *)a, right = *(const unsigned *)b;
    return (left < right) - (left > right);
}

/* Decides which variables get registers, if there are more than registers: those with most uses in loops. */
static void choose_variables(struct generator *g, const struct closure *closure, int count) {
    const int available[2] = {__builtin_popcountll(g->is_leaf ? QJV_INT_ALL : QJV_INT_SAVED) - (g->is_leaf ? RESERVED_INTS : 0),
                              __builtin_popcountll(QJV_FLOAT_ALL) - RESERVED_FLOATS};
    struct survey s = {.stamp = ++stamps, .weight = 1};
    unsigned long variables = closure->variables + (unsigned long)count;
    for (struct variable *own = qjt__pending.locals; own; own = own->next) variables++;
    if (variables <= (unsigned long)(available[0] < available[1] ? available[0] : available[1])) return;
    for (int index = 0; index < count; index++) qjt__pending.parameters[index]->weight = 0;
    for (struct variable *own = qjt__pending.locals; own; own = own->next) own->weight = 0;
    survey_node(&s, closure->body);
    struct weighed all;
    all.count[0] = all.count[1] = 0;
    for (int index = 0; index < count; index++) weigh(&all, qjt__pending.parameters[index]);
    for (struct variable *own = qjt__pending.locals; own; own = own->next) weigh(&all, own);
    weigh_list(&all, closure->body);
    for (int file = 0; file < 2; file++) {
        if (all.count[file] <= available[file]) continue;
        qsort(all.weight[file], (size_t)all.count[file], sizeof all.weight[file][0], compare_weights);
        g->least_weight[file] = all.weight[file][available[file] - 1];
        g->heavy_left[file] = (unsigned)available[file];
    }
}

/* Generates a function into memory; null and an error in the generator if that fails. */
static void *generate(struct generator *g, const struct closure *closure, qjv_region region, qjv_function *f) {
    v_reg registers[MAX_PARAMETERS];
    char types[4 * MAX_PARAMETERS + 1] = "";
    const int count = signature(types);
    if (count < 0) {
        refuse(g, "T0107: a parameter is missing: param() was called for a higher number, and not for it");
        return 0;
    }
    g->f = f;
    choose_variables(g, closure, count);
    qjv_begin(&g->c, f, region, types, registers, g->is_leaf ? QJV_LEAF : QJV_CALLS);
    place_parameters(g, registers, count);
    for (struct variable *own = qjt__pending.locals; own; own = own->next) allocate(g, own);
    if (closure->type != QJT_VOID && closure->type != QJT_AGGREGATE) {
        qjt_node node = {.kind = NODE_RETURN, .from = closure->type, .a = closure->body};
        return_statement(g, &node);
        return g->error ? 0 : qjv_end(&g->c);
    }
    statements(g, closure->body, 0);
    if (!g->is_dead) qjv_retv(&g->c);
    return g->error ? 0 : qjv_end(&g->c);
}

static void forget_pending(void) {
    memset(qjt__pending.parameters, 0, sizeof qjt__pending.parameters);
    qjt__pending.locals = 0;
    qjt__pending.number++;
}

enum { MAX_CODE = 1 << 26 };

static const char NO_CODE_MEMORY[] = "T0104: the system gives no memory for code";
static const char TOO_LONG[] = "T0105: a function is too long: divide it, or unroll fewer loops";

/* What an error of vcode means to programs. */
static const char *error_of(qjv_error error) {
    switch (error) {
    case QJV_ERROR_UNBOUND_LABEL: return "T0101: jump() to a label that is spliced nowhere in the function";
    case QJV_ERROR_BOUND_TWICE: return "T0102: a label is spliced twice: make one for each place";
    case QJV_ERROR_REGISTERS: return "T0111: a function has more parameters than there are registers: pass a pointer to them";
    case QJV_ERROR_OVERFLOW:
    case QJV_ERROR_LABELS:
    case QJV_ERROR_FIXUPS:
    case QJV_ERROR_CONSTANTS:
    case QJV_ERROR_BRANCH_RANGE:
    case QJV_ERROR_FRAME: return TOO_LONG;
    default: return qjv_error_text(error);
    }
}

/* The stack of this thread below the frame of the caller of compile(): frames of functions that have returned. Empty if
 * it is another stack. */
static struct range dead_frames(const void *here) {
    static _Thread_local uintptr_t low, high;
    struct range none = {0, 0}, own;
    if (!high) {
        pthread_attr_t attributes;
        void *base;
        size_t length;
        high = 1;
        if (pthread_getattr_np(pthread_self(), &attributes)) return none;
        if (!pthread_attr_getstack(&attributes, &base, &length)) low = (uintptr_t)base, high = low + length;
        pthread_attr_destroy(&attributes);
    }
    if ((uintptr_t)here < low || (uintptr_t)here >= high) return none;
    own.start = low;
    own.length = (uintptr_t)here - low;
    return own;
}

static __attribute__((noinline)) void *compile(const void *cspec, int type, const void *frame) {
    static _Thread_local qjv_function *f;
    static _Thread_local unsigned long attempts;
    const struct closure *closure = cspec;
    size_t bytes = 12 * closure->nodes + 512;
    const char *message = NO_CODE_MEMORY;
    enum register_pressure pressure = PRESSURE_NORMAL;
    if (!f) f = malloc(sizeof *f);
    while (f && bytes <= MAX_CODE) {
        struct v_code *code = v_code_new(bytes);
        struct generator g;
        void *function;
        if (!code) break;
        memset(&g, 0, offsetof(struct generator, slots));
        g.free_slots = g.nesting = 0;
        g.error = 0;
        g.is_leaf = !(closure->calls & HAS_CALL);
        g.has_floating = (closure->calls & HAS_FLOATING) != 0;
        g.type = type;
        g.pressure = pressure;
        g.dead = dead_frames(frame);
        g.function = qjt__pending.number;
        g.attempt = ++attempts;
        qjv_region region = {(uint8_t *)(code + 1),
                             (uintptr_t)code->chunk->execute + (uintptr_t)((uint8_t *)(code + 1) - code->chunk->write),
                             code->length - sizeof *code};
        function = generate(&g, closure, region, f);
        if (function && remember(function, code)) {
            qjt__statistics.bytes = (unsigned long)(f->execute + (uintptr_t)(f->end - f->start) - (uintptr_t)function);
            qjt__statistics.nodes = closure->nodes;
            forget_pending();
            return function;
        }
        v_code_free(code);
        message = g.error ? g.error : error_of(f->error);
        if (g.error == OUT_OF_REGISTERS && pressure != PRESSURE_EXTREME) {
            pressure++;
            continue;
        }
        if (g.error || f->error != QJV_ERROR_OVERFLOW) break;
        bytes *= 4;
        message = TOO_LONG;
    }
    forget_pending();
    qjt__fail(message);
    return 0;
}

/* The address of the caller's frame is exact in a function that is called and has no frame of its own. */
__attribute__((noinline)) void *qjt_compile(const void *cspec, int type) {
    return compile(cspec, type, __builtin_dwarf_cfa());
}
