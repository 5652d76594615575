/* Functions: parameters, registers, locals, prologue and epilogue. The same as frame.rs and abi.rs of the Rust crate,
   which explain it; knows register numbers and the layout of frames, not encodings. */
#ifndef QUAJECT_VCODE_FUNCTION_H
#define QUAJECT_VCODE_FUNCTION_H

#define QJV_COUNT(list) (sizeof(list) / sizeof((list)[0]) - 1)

#if defined(__x86_64__)
enum { QJV_INCOMING = 8, QJV_BOTTOM = 0, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 8,
       QJV_SITE_BACK = 1, QJV_JUMP_BYTES = 5, QJV_DELAY_SLOTS = 0, QJV_PROLOGUE = 64 };
#elif defined(__aarch64__)
enum { QJV_INCOMING = 0, QJV_BOTTOM = 0, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 0,
       QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 0, QJV_PROLOGUE = 128 };
#elif defined(__riscv)
enum { QJV_INCOMING = 0, QJV_BOTTOM = 0, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 0,
       QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 0, QJV_PROLOGUE = 160 };
#elif defined(__mips__)
enum { QJV_INCOMING = 0, QJV_BOTTOM = 16, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 0,
       QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 1, QJV_PROLOGUE = 160 };
#elif defined(__sparc__)
enum { QJV_INCOMING = 2047 + 128, QJV_BOTTOM = 176, QJV_BIAS = 2047, QJV_SINGLE_AT = 4, QJV_SINGLE_SHIFT = 1,
       QJV_MISALIGNED = 0, QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 1, QJV_PROLOGUE = 128 };
#elif defined(__powerpc64__)
enum { QJV_INCOMING = 32, QJV_BOTTOM = 32, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 0,
       QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 0, QJV_PROLOGUE = 192 };
#else
enum { QJV_INCOMING = 0, QJV_BOTTOM = 0, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 0,
       QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 0, QJV_PROLOGUE = 128 };
#endif

typedef struct { uint32_t integer, floating, stack; } qjv_counters;
/* Where a parameter travels: registers by number, or bytes of stack. */
enum { QJV_IN_INT, QJV_IN_FLOAT, QJV_IN_PAIR, QJV_ON_STACK };
typedef struct { int kind; uint32_t at, second; } qjv_place;

QJV_INLINE int qjv_is_float(char type) { return type == 'f' || type == 'd'; }

QJV_INLINE qjv_place qjv_make_place(int kind, uint32_t at, uint32_t second) {
    qjv_place place = {kind, at, second};
    return place;
}

QJV_INLINE qjv_place qjv_next_place(qjv_counters *counters, char type) {
    const uint32_t ints = QJV_COUNT(qjv_int_args), floats = QJV_COUNT(qjv_float_args);
    uint32_t at;
#if defined(__mips__)
    uint32_t size = type == 'd' ? 8 : 4;
    (void)floats;
    at = (counters->stack + size - 1) & ~(size - 1);
    counters->stack = at + size;
    if (qjv_is_float(type) && !counters->integer && counters->floating < floats)
        return qjv_make_place(QJV_IN_FLOAT, qjv_float_args[counters->floating++], 0);
    counters->integer = 1;
    if (at / 4 >= ints) return qjv_make_place(QJV_ON_STACK, at, 0);
    if (type == 'd') return qjv_make_place(QJV_IN_PAIR, qjv_int_args[at / 4], qjv_int_args[at / 4 + 1]);
    return qjv_make_place(QJV_IN_INT, qjv_int_args[at / 4], 0);
#elif defined(__sparc__) || defined(__powerpc64__)
    at = counters->stack;
    counters->stack += 8;
    if (qjv_is_float(type)) {
#if defined(__sparc__)
        uint32_t which = at / 8;
#else
        uint32_t which = counters->floating++;
#endif
        if (which < floats) return qjv_make_place(QJV_IN_FLOAT, qjv_float_args[which], 0);
    } else if (at / 8 < ints) {
        return qjv_make_place(QJV_IN_INT, qjv_int_args[at / 8], 0);
    }
    return qjv_make_place(QJV_ON_STACK, at, 0);
#else
#if defined(__alpha__)
    at = counters->integer++;
    if (qjv_is_float(type)) {
        if (at < floats) return qjv_make_place(QJV_IN_FLOAT, qjv_float_args[at], 0);
    } else if (at < ints) {
        return qjv_make_place(QJV_IN_INT, qjv_int_args[at], 0);
    }
#else
    if (qjv_is_float(type)) {
        at = counters->floating++;
        if (at < floats) return qjv_make_place(QJV_IN_FLOAT, qjv_float_args[at], 0);
    }
#if !defined(__riscv)
    else
#endif
    {
        at = counters->integer++;
        if (at < ints) return qjv_make_place(QJV_IN_INT, qjv_int_args[at], 0);
    }
#endif
    at = counters->stack;
    counters->stack += 8;
    return qjv_make_place(QJV_ON_STACK, at, 0);
#endif
}

/* The next type of a type string, by its last letter, 'u' standing for itself; 0 at the end, '?' if malformed. */
QJV_INLINE char qjv_next_type(const char **text) {
    const char *at = *text;
    char letter;
    while (*at == ' ') at++;
    if (!*at) return 0;
    if (*at != '%') return '?';
    letter = at[1];
    at += 2;
    switch (letter) {
    case 'u':
        if (*at == 'c' || *at == 's') at++;
        else if (*at == 'l') at++, letter = 'l';
        break;
    case 'c': case 's': case 'i': case 'l': case 'p': case 'f': case 'd': break;
    default: return '?';
    }
    *text = at;
    return letter;
}

/* Takes the first register of a set, which is kept by position in the order of allocation. */
QJV_INLINE int qjv_take(uint64_t *free, uint64_t *touched, uint64_t from, uint64_t saved, const uint8_t *order, v_reg *reg) {
    uint64_t wanted = *free & from, bit = wanted & (0 - wanted);
    if (!wanted) return 0;
    *free ^= bit;
    *touched |= bit & saved;
    *reg = qjv_reg(order[__builtin_ctzll(wanted)]);
    return 1;
}

static int qjv_stand_in(qjv_function *f, v_reg *reg, int is_float);

/* Takes a register; 0 when all are taken, which is not an error that sticks. In functions with calls a persistent
   register is a callee-saved one, or, when those are taken, a temporary that calls save: not that of results. */
QJV_INLINE int qjv_getreg(qjv_asm *c, v_reg *reg, int class_) {
    qjv_function *f = c->f;
    uint64_t from = class_ == V_TEMP || f->leaf ? QJV_INT_ALL : QJV_INT_SAVED;
    if (qjv_take(&f->int_free, &f->int_touched, from, QJV_INT_SAVED, qjv_int_order, reg)) return 1;
    return from != QJV_INT_ALL && qjv_stand_in(f, reg, 0);
}

QJV_INLINE int qjv_getfloat(qjv_asm *c, v_reg *reg, int class_) {
    qjv_function *f = c->f;
    uint64_t from = class_ == V_TEMP || f->leaf ? QJV_FLOAT_ALL : QJV_FLOAT_SAVED;
    if (qjv_take(&f->float_free, &f->float_touched, from, QJV_FLOAT_SAVED, qjv_float_order, reg)) return 1;
    return from != QJV_FLOAT_ALL && qjv_stand_in(f, reg, 1);
}

QJV_INLINE void qjv_putreg(qjv_asm *c, v_reg reg) {
    c->f->int_free |= qjv_int_bit[qjv_number(reg)];
    if (c->f->stands) c->f->int_standing &= ~qjv_int_bit[qjv_number(reg)];
}

QJV_INLINE void qjv_putfloat(qjv_asm *c, v_reg reg) {
    c->f->float_free |= qjv_float_bit[qjv_number(reg)];
    if (c->f->stands) c->f->float_standing &= ~qjv_float_bit[qjv_number(reg)];
}

/* Takes a particular register, such as a hard-coded one, so that it is preserved if it has to be. */
QJV_INLINE int qjv_claim(qjv_asm *c, v_reg reg) {
    uint64_t bit = qjv_int_bit[qjv_number(reg)];
    if (!(c->f->int_free & bit)) return 0;
    c->f->int_free ^= bit;
    c->f->int_touched |= bit & QJV_INT_SAVED;
    return 1;
}

enum { QJV_SAVE_AREA = 8 * (2 + QJV_COUNT(qjv_int_saved) + QJV_COUNT(qjv_float_saved)), QJV_MOST_LOCALS = 1 << 20 };

/* So many bytes of stack, aligned to a power of two up to sixteen. */
QJV_OUTLINE v_variable qjv_local_bytes(qjv_function *f, uint32_t bytes, uint32_t align) {
    const uint32_t base = QJV_BOTTOM + QJV_SAVE_AREA;
    uint32_t at = (base + f->locals + align - 1) & ~(align - 1);
    v_variable local = {(int32_t)(QJV_BIAS + base)};
    if (bytes > QJV_MOST_LOCALS || at + bytes > QJV_MOST_LOCALS) {
        qjv_failed(f, QJV_ERROR_FRAME);
        return local;
    }
    f->locals = at + bytes - base;
    f->special = 1;
    local.offset = (int32_t)(QJV_BIAS + at);
    return local;
}

/* A temporary that is saved around calls, because no callee-saved register is left; 0 if no temporary is left either. */
static inline __attribute__((noinline, cold, unused)) int qjv_stand_in(qjv_function *f, v_reg *reg, int is_float) {
    uint64_t *free = is_float ? &f->float_free : &f->int_free, before = *free, touched = 0;
    uint64_t from = is_float ? QJV_FLOAT_ALL & ~qjv_float_bit[qjv_number(V_FRESULT)]
                             : QJV_INT_ALL & ~qjv_int_bit[qjv_number(V_RESULT)];
    if (!qjv_take(free, &touched, from, 0, is_float ? qjv_float_order : qjv_int_order, reg)) return 0;
    if (!f->stands) {
        f->stands = 1;
        f->int_standing = f->float_standing = 0;
        /* Eight bytes per register of each file, by number. */
        f->stand_in_area = qjv_local_bytes(f, 2 * 32 * 8, 8).offset;
    }
    *(is_float ? &f->float_standing : &f->int_standing) |= before ^ *free;
    return 1;
}

/* Makes a variable on the stack of the type that is the last of a type string, such as "%d". */
QJV_INLINE v_variable qjv_local(qjv_asm *c, char type) {
    uint32_t size = type == 'c' ? 1 : type == 's' ? 2 : type == 'd' ? 8 : type == 'l' || type == 'p' ? sizeof(long) : 4;
    return qjv_local_bytes(c->f, size, size);
}

/* Delay slots, as layers/schedule.rs explains: a point in the writing of a function to which it can go back. */
typedef struct { uint8_t *ip; size_t left; qjv_fixup last_return, forward; uint32_t fixups, constants; } qjv_moment;

QJV_INLINE qjv_moment qjv_now(const qjv_asm *c) {
    qjv_moment now = {c->ip, c->left, c->last_return, c->forward, c->f->fixups, c->f->constants};
    return now;
}

QJV_INLINE void qjv_go_back(qjv_asm *c, const qjv_moment *to) {
    c->ip = to->ip;
    c->left = to->left;
    c->last_return = to->last_return;
    c->forward = to->forward;
    c->f->fixups = to->fixups;
    c->f->constants = to->constants;
}

/* Reads what was written since, if that is one word that refers to nothing. */
QJV_OUTLINE int qjv_lone_word(qjv_asm *c, const qjv_moment *since, uint8_t *word) {
    if (c->ip != since->ip + 4 || c->last_return != since->last_return || c->forward != since->forward ||
        c->f->fixups != since->fixups || c->f->constants != since->constants)
        return 0;
    memcpy(word, since->ip, 4);
    return 1;
}

/* Puts an instruction in the place of the last one, if more than that was written since and it does nothing. */
QJV_OUTLINE int qjv_fill_slot(qjv_asm *c, const qjv_moment *since, const uint8_t *word) {
    qjv_moment after = qjv_now(c);
    qjv_nop(c);
    if (c->ip != after.ip + 4 || after.ip - 4 <= since->ip) return 0;
    qjv_go_back(c, &after);
    if (memcmp(after.ip - 4, after.ip, 4) != 0) return 0;
    memcpy(after.ip - 4, word, 4);
    return 1;
}

/* A branch or jump with an instruction that is executed whether it is taken or not, and must not change what the branch
   reads: in the delay slot where there is one and it fits, in front of the branch elsewhere. */
#define qjv_schedule_delay(c, branch, instruction)                                \
    do {                                                                          \
        if (QJV_DELAY_SLOTS) {                                                    \
            qjv_moment qjv_before = qjv_now(c);                                   \
            uint8_t qjv_in_slot[4];                                               \
            instruction;                                                          \
            if (qjv_lone_word(c, &qjv_before, qjv_in_slot)) {                     \
                qjv_go_back(c, &qjv_before);                                      \
                branch;                                                           \
                if (qjv_fill_slot(c, &qjv_before, qjv_in_slot)) break;            \
            }                                                                     \
            qjv_go_back(c, &qjv_before);                                          \
        }                                                                         \
        instruction;                                                              \
        branch;                                                                   \
    } while (0)

/* A load whose result is first used by the instruction after the count next ones. The machines there are wait for loads
   by themselves, so nothing is inserted. */
enum { QJV_LOAD_DELAY = 0 };
#define qjv_raw_load(c, load, count)                                              \
    do {                                                                          \
        load;                                                                     \
        for (int qjv_done = (int)(count); qjv_done < QJV_LOAD_DELAY; qjv_done++) qjv_nop(c); \
    } while (0)

/* How far the stack pointer is lowered while so many registers are borrowed. */
QJV_OUTLINE int64_t qjv_lowered(size_t count) { return (int64_t)((QJV_BOTTOM + 8 * count + 15) & ~(size_t)15); }

/* Borrows registers other than those taken, for the length of a row; their values are kept on the stack. */
QJV_OUTLINE void qjv_borrow(qjv_asm *c, const v_reg *taken, size_t count, v_reg *lent, size_t wanted) {
    v_variable at = {QJV_BIAS + QJV_BOTTOM};
    size_t found = 0;
    qjv_enter(c, qjv_lowered(wanted));
    for (size_t index = 0; found < wanted && index < QJV_COUNT(qjv_int_temp); index++) {
        int is_taken = 0;
        for (size_t operand = 0; operand < count; operand++)
            is_taken |= qjv_number(taken[operand]) == qjv_int_temp[index];
        if (is_taken) continue;
        lent[found++] = qjv_reg(qjv_int_temp[index]);
        qjv_stl_local(c, qjv_reg(qjv_int_temp[index]), at);
        at.offset += 8;
    }
}

QJV_OUTLINE void qjv_give_back(qjv_asm *c, const v_reg *lent, size_t count) {
    v_variable at = {QJV_BIAS + QJV_BOTTOM};
    for (size_t index = 0; index < count; index++, at.offset += 8) qjv_ldl_local(c, lent[index], at);
    qjv_leave(c, qjv_lowered(count));
}

/* Jumps to the label that the unsigned long in index counts from zero: a row of jumps in the code. An index without a
   label goes to outside, if that is not null; otherwise the client knows that there is none. */
QJV_OUTLINE void qjv_jump_table(qjv_asm *c, v_reg index, const v_label *labels, size_t count, const v_label *outside) {
    if (outside) qjv_bgeuli(c, index, (unsigned long)count, *outside);
    qjv_jtab(c, index);
    for (size_t at = 0; at < count; at++) qjv_j(c, labels[at]);
}

static void qjv_move_parameters(qjv_asm *outer, const char *types, v_reg *params);

/* What is known of the parameters while a function begins. */
typedef struct { qjv_counters counters; const char *text; int elsewhere; } qjv_arrivals;

/* Where the next parameter arrives; 0 after the last. */
QJV_INLINE int qjv_parameter(qjv_asm *c, qjv_arrivals *arrivals, v_reg *param) {
    qjv_function *f = c->f;
    char type = qjv_next_type(&arrivals->text);
    qjv_place place;
    if (!type) return 0;
    if (type == '?') {
        qjv_fail(c, QJV_ERROR_SIGNATURE);
        arrivals->elsewhere = 0;
        return 0;
    }
    place = qjv_next_place(&arrivals->counters, type);
    if (place.kind == QJV_IN_INT) {
        f->int_free &= ~qjv_int_bit[place.at];
        *param = qjv_reg(place.at);
        arrivals->elsewhere |= qjv_is_float(type);
    } else if (place.kind == QJV_IN_FLOAT) {
        f->float_free &= ~qjv_float_bit[place.at];
        *param = qjv_reg(place.at);
        if (QJV_SINGLE_SHIFT && type == 'f') qjv_movf(c, qjv_reg(place.at), qjv_reg(place.at + QJV_SINGLE_SHIFT));
    } else {
        if (place.kind == QJV_IN_PAIR) f->int_free &= ~(qjv_int_bit[place.at] | qjv_int_bit[place.second]);
        arrivals->elsewhere = 1;
    }
    return 1;
}

/* Parameters of a type string that the compiler does not know. */
QJV_OUTLINE int qjv_parameters(qjv_asm *c, const char *types, v_reg *params) {
    qjv_arrivals arrivals = {{0, 0, 0}, types, !c->f->leaf};
    while (qjv_parameter(c, &arrivals, params)) params++;
    return arrivals.elsewhere;
}

QJV_INLINE void qjv_open(qjv_asm *c, qjv_function *f, qjv_region region, int kind) {
    f->start = region.write;
    f->limit = region.write + region.length - QJV_SLACK;
    f->execute = region.execute;
    f->int_free = QJV_INT_ALL;
    f->float_free = QJV_FLOAT_ALL;
    f->int_touched = f->float_touched = 0;
    f->labels = f->fixups = f->constants = f->locals = 0;
    f->last_bound = QJV_UNBOUND;
    f->leaf = kind == V_LEAF;
    f->calls = f->incoming = f->special = f->tail = f->stands = 0;
    f->error = QJV_OK;
    f->features = 0;
    c->f = f;
    c->ip = f->start + QJV_PROLOGUE;
    c->left = 64;
    c->last_return = c->forward = QJV_NO_RETURN;
    if (__builtin_expect(region.length < QJV_PROLOGUE + 64 + QJV_SLACK, 0)) {
        /* No room for anything: the error is reported by qjv_end, and the code goes to a place nobody calls. */
        static uint8_t nowhere[QJV_PROLOGUE + 64 + QJV_SLACK];
        qjv_failed(f, QJV_ERROR_OVERFLOW);
        f->start = nowhere;
        c->ip = nowhere + QJV_PROLOGUE;
        f->limit = nowhere + sizeof nowhere - QJV_SLACK;
    }
}

QJV_INLINE void qjv_arrive(qjv_asm *c, const char *types, v_reg *params) {
    qjv_arrivals arrivals = {{0, 0, 0}, types, !c->f->leaf};
    /* A literal is read when the program is compiled: hence steps, not a loop. */
    if (__builtin_constant_p(types[0]) && QJV_FOLDS) {
        if (qjv_parameter(c, &arrivals, params) && qjv_parameter(c, &arrivals, params + 1) &&
            qjv_parameter(c, &arrivals, params + 2) && qjv_parameter(c, &arrivals, params + 3) &&
            qjv_parameter(c, &arrivals, params + 4) && qjv_parameter(c, &arrivals, params + 5)) {
            v_reg *param = params + 6;
            while (qjv_parameter(c, &arrivals, param)) param++;
        }
    } else {
        qjv_asm copy = *c;
        arrivals.elsewhere = qjv_parameters(&copy, types, params);
        *c = copy;
    }
    if (__builtin_expect(arrivals.elsewhere && !c->f->error, 0)) {
        qjv_asm copy = *c;
        qjv_move_parameters(&copy, types, params);
        *c = copy;
    }
}

QJV_INLINE void qjv_begin(qjv_asm *c, qjv_function *f, qjv_region region, const char *types, v_reg *params, int kind) {
    qjv_open(c, f, region, kind);
    qjv_arrive(c, types, params);
}

QJV_INLINE void qjv_new_register(qjv_asm *c, v_reg *reg, int is_float) {
    int class_ = c->f->leaf ? V_TEMP : V_VAR;
    int taken = is_float ? qjv_getfloat(c, reg, class_) : qjv_getreg(c, reg, class_);
    /* Floating registers that survive calls are rare; a parameter that finds none is an error, not a lost value. */
    if (!taken) qjv_fail(c, QJV_ERROR_REGISTERS), *reg = qjv_reg(0);
}

QJV_OUTLINE void qjv_move_parameters(qjv_asm *c, const char *types, v_reg *params) {
    const v_variable transfer = {QJV_BIAS + QJV_BOTTOM + (int32_t)QJV_SAVE_AREA - 8};
    qjv_function *f = c->f;
    for (int stack = 0; stack < 2; stack++) {
        qjv_counters counters = {0, 0, 0};
        const char *text = types;
        char type;
        for (uint32_t index = 0; (type = qjv_next_type(&text)) != 0; index++) {
            qjv_place place = qjv_next_place(&counters, type);
            int32_t at = (int32_t)(QJV_INCOMING + place.at);
            v_reg from = params[index], to;
            if ((place.kind == QJV_ON_STACK) != stack) continue;
            if (place.kind == QJV_IN_PAIR || (place.kind == QJV_IN_INT && qjv_is_float(type))) {
                v_variable second = {transfer.offset + 4};
                qjv_new_register(c, &to, 1);
                if (f->locals < 8) f->locals = 8;
                f->special = 1;
                qjv_stl_local(c, qjv_reg(place.at), transfer);
                if (place.kind == QJV_IN_PAIR) qjv_stl_local(c, qjv_reg(place.second), second);
                if (type == 'f') qjv_ldf_local(c, to, transfer);
                else qjv_ldd_local(c, to, transfer);
                qjv_putreg(c, qjv_reg(place.at));
                if (place.kind == QJV_IN_PAIR) qjv_putreg(c, qjv_reg(place.second));
            } else if (stack) {
                f->incoming = 1;
                f->special = 1;
                qjv_new_register(c, &to, qjv_is_float(type));
                if (type == 'f') qjv_ldfi(c, to, QJV_SCRATCH, at + QJV_SINGLE_AT);
                else if (type == 'd') qjv_lddi(c, to, QJV_SCRATCH, at);
                else qjv_ldli(c, to, QJV_SCRATCH, at);
            } else if (f->leaf) {
                continue;
            } else if (qjv_is_float(type)) {
                qjv_new_register(c, &to, 1);
                qjv_movd(c, to, from);
                qjv_putfloat(c, from);
            } else {
                qjv_new_register(c, &to, 0);
                qjv_movl(c, to, from);
                qjv_putreg(c, from);
            }
            params[index] = to;
        }
    }
}

/* Stores or loads every register the frame preserves; returns the number of slots up to the last one used. */
QJV_OUTLINE uint32_t qjv_each_saved(qjv_asm *c, int what) {
    qjv_function *f = c->f;
    v_variable at = {QJV_BIAS + QJV_BOTTOM};
    uint32_t used = 0, slot = 1;
    if (QJV_LINKS && f->calls) {
        used = slot;
        if (what == 's') qjv_link(c, at.offset);
        if (what == 'l') qjv_unlink(c, at.offset);
    }
    for (size_t index = 0; index < QJV_COUNT(qjv_int_saved); index++) {
        at.offset += 8;
        slot++;
        if (!(f->int_touched & qjv_int_bit[qjv_int_saved[index]])) continue;
        used = slot;
        if (what == 's') qjv_stl_local(c, qjv_reg(qjv_int_saved[index]), at);
        if (what == 'l') qjv_ldl_local(c, qjv_reg(qjv_int_saved[index]), at);
    }
    for (size_t index = 0; index + 1 < sizeof qjv_float_saved; index++) {
        at.offset += 8;
        slot++;
        if (!(f->float_touched & qjv_float_bit[qjv_float_saved[index]])) continue;
        used = slot;
        if (what == 's') qjv_std_local(c, qjv_reg(qjv_float_saved[index]), at);
        if (what == 'l') qjv_ldd_local(c, qjv_reg(qjv_float_saved[index]), at);
    }
    return used;
}

/* The epilogue of tail calls, whose target is in the second scratch register, which no epilogue uses. It arrives in the
   first, as the target of every call. */
QJV_COLD void qjv_tail_epilogue(qjv_asm *c, uint32_t size) {
    if (!c->f->tail) return;
    c->f->tail_at = qjv_at(c->f, c->ip);
    if (size) {
        qjv_each_saved(c, 'l');
        qjv_leave(c, (int64_t)size);
    }
    if (qjv_number(QJV_SCRATCH) != qjv_number(QJV_SECOND_SCRATCH)) qjv_movl(c, QJV_SCRATCH, QJV_SECOND_SCRATCH);
    qjv_jr(c, QJV_SCRATCH);
}

/* Writes the epilogue here and the prologue in front of the body; returns where the function starts. */
QJV_COLD uint32_t qjv_frame(qjv_asm *c) {
    qjv_function *f = c->f;
    uint32_t used = qjv_each_saved(c, 'n');
    uint32_t own = f->locals ? QJV_SAVE_AREA + f->locals : 8 * used;
    uint32_t size = own || f->calls ? ((QJV_BOTTOM + own + QJV_MISALIGNED + 15) & ~15u) - QJV_MISALIGNED : 0;
    uint8_t buffer[2048];
    qjv_asm saved;
    size_t length;
    qjv_each_saved(c, 'l');
    if (size) qjv_leave(c, (int64_t)size);
    qjv_return(c);
    if (QJV_DELAY_SLOTS) qjv_nop(c);
    qjv_tail_epilogue(c, size);
    saved = *c;
    c->ip = buffer;
    c->left = sizeof buffer - QJV_SLACK;
    if (size) qjv_enter(c, (int64_t)size);
    qjv_each_saved(c, 's');
    /* Last: a large frame is entered by way of the scratch register. */
    if (f->incoming) qjv_frame_address(c, QJV_SCRATCH, (int64_t)size);
    length = (size_t)(c->ip - buffer);
    *c = saved;
    if (length > QJV_PROLOGUE) {
        qjv_fail(c, QJV_ERROR_FRAME);
        return 0;
    }
    memcpy(f->start + QJV_PROLOGUE - length, buffer, length);
    return QJV_PROLOGUE - (uint32_t)length;
}

QJV_COLD void qjv_place_constants(qjv_asm *c) {
    qjv_function *f = c->f;
    for (uint32_t index = 0; index < f->constants; index++) {
        qjv_constant constant = f->constant[index];
        uint32_t low = (uint32_t)constant.bits;
        qjv_space(c, 2 * (size_t)constant.size);
        while ((f->execute + qjv_at(f, c->ip)) % constant.size) *c->ip++ = 0;
        f->label[constant.label] = qjv_at(f, c->ip);
        if (constant.size > 8) {
            for (uint32_t at = 0; at < constant.size; at += 8) memcpy(c->ip + at, at % 16 ? &constant.high : &constant.bits, 8);
        } else if (constant.size == 8) memcpy(c->ip, &constant.bits, 8);
        else memcpy(c->ip, &low, 4);
        c->ip += constant.size;
    }
}

/* Without a frame, returning is one instruction: it replaces the jump to the epilogue. */
QJV_COLD void qjv_return_at(qjv_asm *c, uint32_t at) {
    uint8_t buffer[32 + QJV_SLACK];
    qjv_asm there = {buffer, 32, c->f, QJV_NO_RETURN, QJV_NO_RETURN};
    qjv_return(&there);
    while (there.ip - buffer < QJV_JUMP_BYTES) qjv_nop(&there);
    memcpy(c->f->start + at, buffer, QJV_JUMP_BYTES);
}

/* Resolves all references; 0 if one is not plainly to a label that is bound and in reach. */
QJV_INLINE int qjv_resolve_plain(qjv_function *f) {
    for (uint32_t index = 0; index < f->fixups; index++) {
        uint32_t site = (uint32_t)f->fixup[index], label = qjv_label_of(f->fixup[index]);
        if (label >= f->labels || f->label[label] == QJV_UNBOUND) return 0;
        if (!qjv_patch((unsigned)(f->fixup[index] >> 56), f->start + site, (int64_t)f->label[label] - (int64_t)site))
            return 0;
    }
    return 1;
}

/* Takes back the last word but one, a jump, and the last too if it does nothing: what it does comes in front of the
   epilogue, as it did. */
QJV_COLD void qjv_drop_jump_before_slot(qjv_asm *c) {
    qjv_moment after = qjv_now(c);
    qjv_nop(c);
    if (c->f->error) return;
    qjv_go_back(c, &after);
    c->ip -= 8;
    if (memcmp(after.ip - 4, after.ip, 4) == 0) return;
    memcpy(c->ip, after.ip - 4, 4);
    c->ip += 4;
}

QJV_OUTLINE void *qjv_end_at(qjv_function *f, uint8_t *cursor, size_t left) {
    qjv_asm at = {cursor, left, f, QJV_NO_RETURN, QJV_NO_RETURN};
    qjv_asm *c = &at;
    uint32_t ip = qjv_at(f, c->ip), epilogue, entry;
    int framed = (f->int_touched | f->float_touched) != 0 || f->calls || f->incoming || f->locals;
    int ends_in_return = 0;
    if (f->fixups && f->last_bound != ip && qjv_label_of(f->fixup[f->fixups - 1]) == QJV_EPILOGUE) {
        uint32_t site = (uint32_t)f->fixup[f->fixups - 1];
        if (site + 4 == ip) {
            f->fixups--;
            c->ip -= QJV_JUMP_BYTES;
        }
        ends_in_return = QJV_DELAY_SLOTS && site + 8 == ip;
        if (framed && ends_in_return) {
            f->fixups--;
            qjv_drop_jump_before_slot(c);
        }
    }
    epilogue = qjv_at(f, c->ip);
    if (framed) {
        entry = qjv_frame(c);
    } else {
        if (!ends_in_return) {
            qjv_return(c);
            if (QJV_DELAY_SLOTS) qjv_nop(c);
        }
        qjv_tail_epilogue(c, 0);
        entry = QJV_PROLOGUE;
    }
    if (f->constants) qjv_place_constants(c);
    for (uint32_t index = 0; index < f->fixups; index++) {
        uint32_t site = (uint32_t)f->fixup[index], label = qjv_label_of(f->fixup[index]);
        unsigned kind_ = (unsigned)(f->fixup[index] >> 56);
        if (label == QJV_EPILOGUE) {
            if (framed) qjv_patch_at(f, site, kind_, epilogue);
            else qjv_return_at(c, site - QJV_SITE_BACK);
        } else if (label == QJV_TAIL && f->tail) {
            qjv_patch_at(f, site, kind_, f->tail_at);
        } else if (label >= f->labels || f->label[label] == QJV_UNBOUND) {
            qjv_failed(f, QJV_ERROR_UNBOUND_LABEL);
        } else {
            qjv_patch_at(f, site, kind_, f->label[label]);
        }
    }
    if (f->error) return 0;
#if !defined(__x86_64__)
    __builtin___clear_cache((char *)(f->execute + entry), (char *)(f->execute + qjv_at(f, c->ip)));
#endif
    f->end = c->ip;
    return (void *)(f->execute + entry);
}

/* Ends the function; its address, or null after an error, which is in f.error. */
QJV_INLINE void *qjv_end(qjv_asm *c) {
    qjv_function *f = c->f;
    /* Where a jump executes the instruction after it, that stays where it is. */
    const uint32_t ip = qjv_at(f, c->ip), slot = QJV_DELAY_SLOTS ? 4 : 0;
    if (c->forward != QJV_NO_RETURN) qjv_wait(f, c->forward);
    /* The common small function: no frame, no constants, its last return at the end. Should a reference not be resolved
       here, the general path resolves all of them again. */
    if (__builtin_expect(!f->special && !(f->int_touched | f->float_touched) && c->last_return != QJV_NO_RETURN &&
                             (uint32_t)c->last_return + 4 + slot == ip && f->last_bound != ip && qjv_resolve_plain(f), 1)) {
        c->ip -= QJV_JUMP_BYTES + slot;
        qjv_return(c);
        c->ip += slot;
        f->end = c->ip;
#if !defined(__x86_64__)
        __builtin___clear_cache((char *)(f->execute + QJV_PROLOGUE), (char *)(f->execute + qjv_at(f, c->ip)));
#endif
        return (void *)(f->execute + QJV_PROLOGUE);
    }
    if (c->last_return != QJV_NO_RETURN) qjv_wait(f, c->last_return);
    return qjv_end_at(f, c->ip, c->left);
}

#endif
