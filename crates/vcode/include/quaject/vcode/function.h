/* Functions: parameters, prologue and epilogue. The same as frame.rs and epilogue.rs of the Rust crate, which explain
   it; knows register numbers and the layout of frames, not encodings. */
#ifndef QUAJECT_VCODE_FUNCTION_H
#define QUAJECT_VCODE_FUNCTION_H

/* Delay slots, as layers/schedule.rs explains: a checkpoint of the assembler, which can be restored. */
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

/* Reads the instruction written since, if it is one word without a reference. */
QJV_OUTLINE int qjv_lone_word(qjv_asm *c, const qjv_moment *since, uint8_t *word) {
    if (c->ip != since->ip + 4 || c->last_return != since->last_return || c->forward != since->forward ||
        c->f->fixups != since->fixups || c->f->constants != since->constants)
        return 0;
    memcpy(word, since->ip, 4);
    return 1;
}

/* Replaces the last instruction, if it is a nop and not the only one written since. */
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

/* Begins a local procedure, which qjv_jal(c, label) calls: binds the label and copies the return address to a
   register. qjv_jr(c, link) returns. A procedure has the registers, variables and stack of its function; control must
   not reach its beginning otherwise. */
QJV_INLINE void qjv_procedure(qjv_asm *c, v_label label, v_reg link) {
    qjv_note_label(c->f, QJV_PROCEDURE, label);
    c->f->needs_general_path = 1;
    qjv_bind(c, label);
    {
        qjv_asm copy = *c;
        qjv_link(&copy, link);
        *c = copy;
    }
}

/* A load whose result is first used by the instruction after the count next ones. All present machines have interlocks,
   so that no nops are inserted. */
enum { QJV_LOAD_DELAY = 0 };
#define qjv_raw_load(c, load, count)                                              \
    do {                                                                          \
        load;                                                                     \
        for (int qjv_done = (int)(count); qjv_done < QJV_LOAD_DELAY; qjv_done++) qjv_nop(c); \
    } while (0)

/* The bytes by which the stack pointer is lowered while count registers are borrowed. */
QJV_OUTLINE int64_t qjv_borrowed_bytes(size_t count) { return (int64_t)((QJV_BOTTOM + 8 * count + 15) & ~(size_t)15); }

/* Spills registers other than those taken, for the length of a row, and returns them. */
QJV_OUTLINE void qjv_borrow_registers(qjv_asm *c, const v_reg *taken, size_t count, v_reg *borrowed, size_t wanted) {
    v_variable at = {QJV_BIAS + QJV_BOTTOM};
    size_t found = 0;
    qjv_enter(c, qjv_borrowed_bytes(wanted));
    for (size_t index = 0; found < wanted && index < QJV_COUNT(qjv_int_temp); index++) {
        int is_taken = 0;
        for (size_t operand = 0; operand < count; operand++)
            is_taken |= qjv_number(taken[operand]) == qjv_int_temp[index];
        if (is_taken) continue;
        borrowed[found++] = qjv_reg(qjv_int_temp[index]);
        qjv_stl_local(c, qjv_reg(qjv_int_temp[index]), at);
        at.offset += 8;
    }
}

QJV_OUTLINE void qjv_return_registers(qjv_asm *c, const v_reg *borrowed, size_t count) {
    v_variable at = {QJV_BIAS + QJV_BOTTOM};
    for (size_t index = 0; index < count; index++, at.offset += 8) qjv_ldl_local(c, borrowed[index], at);
    qjv_leave(c, qjv_borrowed_bytes(count));
}

/* Jumps to the label that the unsigned long in index counts from zero: a row of jumps in the code. An index without a
   label goes to outside, if that is not null; otherwise the client guarantees that there is none. */
QJV_OUTLINE void qjv_jump_table(qjv_asm *c, v_reg index, const v_label *labels, size_t count, const v_label *outside) {
    if (outside) qjv_bgeuli(c, index, (unsigned long)count, *outside);
    qjv_jtab(c, index);
    for (size_t at = 0; at < count; at++) qjv_j(c, labels[at]);
}

static void qjv_move_parameters(qjv_asm *outer, const char *types, v_reg *params);

/* The location of the next argument by the convention of the function. */
QJV_INLINE qjv_place qjv_place_of(const qjv_function *f, qjv_counters *counters, char type) {
    return f->client ? qjv_client_place(f->convention, counters, type) : qjv_next_place(counters, type);
}

/* Whether callers may leave the bits above a parameter of 8 or 16 bits undefined. */
#if defined(__x86_64__) || defined(__aarch64__)
enum { QJV_EXTENDS_PARAMETERS = 1 };
#else
enum { QJV_EXTENDS_PARAMETERS = 0 };
#endif

/* Extends the low 8 or 16 bits of a register to an int, if the type is that narrow. */
QJV_INLINE void qjv_extend_narrow(qjv_asm *c, char type, v_reg d, v_reg s) {
    switch (type) {
    case 'c': qjv_cvi2c(c, d, s); break;
    case 'b': qjv_cvi2uc(c, d, s); break;
    case 's': qjv_cvi2s(c, d, s); break;
    case 'h': qjv_cvi2us(c, d, s); break;
    default: break;
    }
}

/* The state of parameters while a function begins. */
typedef struct { qjv_counters counters; const char *text; int elsewhere; } qjv_arrivals;

enum { QJV_NATIVE, QJV_ANY };

/* The location of the next parameter, by the machine's own convention or any; 0 after the last. */
QJV_INLINE int qjv_parameter(qjv_asm *c, qjv_arrivals *arrivals, v_reg *param, int convention) {
    qjv_function *f = c->f;
    char type = qjv_next_type(&arrivals->text);
    qjv_place place;
    if (!type) return 0;
    if (type == '?' || type == '.') {
        qjv_fail(c, QJV_ERROR_SIGNATURE);
        arrivals->elsewhere = 0;
        return 0;
    }
    if (convention == QJV_NATIVE) place = qjv_next_place(&arrivals->counters, type);
    else place = qjv_place_of(f, &arrivals->counters, type);
    if (place.kind == QJV_IN_INT) {
        f->int_free &= ~qjv_int_bit[place.at];
        *param = qjv_reg(place.at);
        if (QJV_EXTENDS_PARAMETERS) qjv_extend_narrow(c, type, *param, *param);
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

/* Parameters of a type string that is not constant. */
QJV_OUTLINE int qjv_parameters(qjv_asm *c, const char *types, v_reg *params) {
    qjv_arrivals arrivals = {{0, 0, 0, 0}, types, !c->f->leaf};
    while (qjv_parameter(c, &arrivals, params, QJV_ANY)) params++;
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
    f->calls = f->incoming = f->needs_general_path = f->tail = f->has_caller_saves = f->client = 0;
    f->error = QJV_OK;
    f->features = 0;
    c->f = f;
    c->ip = f->start + QJV_PROLOGUE;
    c->left = 64;
    c->last_return = c->forward = QJV_NO_RETURN;
    /* A length past the end of the address space is no length. */
    if (__builtin_expect(region.length < QJV_PROLOGUE + 64 + QJV_SLACK || region.length > QJV_NO_LIMIT, 0)) {
        /* The region has no room for code: qjv_end reports the error, and the code goes to a buffer that is never
         * executed. */
        static uint8_t nowhere[QJV_PROLOGUE + 64 + QJV_SLACK];
        qjv_failed(f, QJV_ERROR_OVERFLOW);
        f->start = nowhere;
        c->ip = nowhere + QJV_PROLOGUE;
        f->limit = nowhere + sizeof nowhere - QJV_SLACK;
    }
}

QJV_INLINE void qjv_arrive(qjv_asm *c, const char *types, v_reg *params) {
    qjv_arrivals arrivals = {{0, 0, 0, 0}, types, !c->f->leaf};
    /* Unrolled, so that the compiler folds it for a literal. */
    if (__builtin_constant_p(types[0]) && QJV_FOLDS) {
        if (qjv_parameter(c, &arrivals, params, QJV_NATIVE) && qjv_parameter(c, &arrivals, params + 1, QJV_NATIVE) &&
            qjv_parameter(c, &arrivals, params + 2, QJV_NATIVE) && qjv_parameter(c, &arrivals, params + 3, QJV_NATIVE) &&
            qjv_parameter(c, &arrivals, params + 4, QJV_NATIVE) && qjv_parameter(c, &arrivals, params + 5, QJV_NATIVE)) {
            v_reg *param = params + 6;
            while (qjv_parameter(c, &arrivals, param, QJV_NATIVE)) param++;
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

/* Bytes reserved in front of the body for the prologue: ten bytes is the longest store of a register. */
QJV_OUTLINE uint32_t qjv_prologue_room(const qjv_function *f) {
    uint32_t ints = qjv_preserved_of(f, 0).count, floats = qjv_preserved_of(f, 1).count;
    if (!f->client || (!qjv_is_handler(f) && ints <= QJV_COUNT(qjv_int_saved) && floats + 1 <= sizeof qjv_float_saved))
        return QJV_PROLOGUE;
    return (QJV_PROLOGUE + 80 + 10 * (ints + floats) + 15) & ~15u;
}

/* Sets the convention of an open function; parameter registers are preserved if necessary, because the client may
   change them. */
QJV_COLD void qjv_adopt(qjv_asm *c, size_t length, const char *types, const qjv_convention *convention) {
    qjv_function *f = c->f;
    qjv_places places;
    qjv_error error = qjv_check_convention(convention);
    if (!error) error = qjv_check_places(convention, types, &places);
    if (!error && places.counters.variadic) error = QJV_ERROR_SIGNATURE;
    if (error) {
        qjv_failed(f, error);
        return;
    }
    f->client = 1;
    f->convention = convention;
    if (length < qjv_prologue_room(f) + 64 + QJV_SLACK) {
        f->client = 0;
        qjv_failed(f, QJV_ERROR_OVERFLOW);
        return;
    }
    c->ip = f->start + qjv_prologue_room(f);
    f->needs_general_path |= qjv_is_handler(f) || qjv_prologue_room(f) != QJV_PROLOGUE;
    f->int_free = f->float_free = 0;
    for (int is_float = 0; is_float < 2; is_float++) {
        const qjv_registers *registers = qjv_client_registers(f, is_float);
        uint64_t all = qjv_class(registers, V_TEMP) | qjv_class(registers, V_VAR);
        f->client_free[is_float] = all & ~qjv_touch(f, is_float ? places.floats : places.ints, is_float);
    }
}

/* Parameters of a client's convention; the machine's own takes them after an error. */
QJV_COLD void qjv_arrive_with(qjv_asm *c, size_t length, const char *types, v_reg *params, const qjv_convention *convention) {
    qjv_adopt(c, length, types, convention);
    if (qjv_parameters(c, types, params) && !c->f->error) qjv_move_parameters(c, types, params);
}

/* Begins a function with a client's convention, which is there until qjv_end. It calls others by the same one, an
   interrupt handler functions of C; registers that it must preserve and C functions may destroy are then always
   saved. */
QJV_INLINE void qjv_begin_with(qjv_asm *c, qjv_function *f, qjv_region region, const char *types, v_reg *params, int kind,
                               const qjv_convention *convention) {
    qjv_asm copy;
    qjv_open(c, f, region, kind);
    copy = *c;
    qjv_arrive_with(&copy, region.length, types, params, convention);
    *c = copy;
}

QJV_INLINE void qjv_new_register(qjv_asm *c, v_reg *reg, int is_float) {
    int class_ = c->f->leaf ? V_TEMP : V_VAR;
    int taken = is_float ? qjv_getfloat(c, reg, class_) : qjv_getreg(c, reg, class_);
    /* Floating registers that survive calls are rare; a parameter that finds none is an error, not a lost value. */
    if (!taken) qjv_fail(c, QJV_ERROR_REGISTERS), *reg = qjv_reg(0);
}

QJV_OUTLINE void qjv_move_parameters(qjv_asm *c, const char *types, v_reg *params) {
    qjv_function *f = c->f;
    for (int stack = 0; stack < 2; stack++) {
        qjv_counters counters = {0, 0, 0, 0};
        const char *text = types;
        char type;
        for (uint32_t index = 0; (type = qjv_next_type(&text)) != 0; index++) {
            qjv_place place = qjv_place_of(f, &counters, type);
            int32_t at = (int32_t)(QJV_INCOMING + place.at);
            v_reg from = params[index], to = qjv_reg(0);
            if ((place.kind == QJV_ON_STACK) != stack) continue;
            if (place.kind == QJV_IN_PAIR || (place.kind == QJV_IN_INT && qjv_is_float(type))) {
                v_variable transfer, second;
                qjv_new_register(c, &to, 1);
                transfer = second = qjv_transfer(f);
                second.offset += 4;
                qjv_stl_local(c, qjv_reg(place.at), transfer);
                if (place.kind == QJV_IN_PAIR) qjv_stl_local(c, qjv_reg(place.second), second);
                if (type == 'f') qjv_ldf_local(c, to, transfer);
                else qjv_ldd_local(c, to, transfer);
                qjv_putreg(c, qjv_reg(place.at));
                if (place.kind == QJV_IN_PAIR) qjv_putreg(c, qjv_reg(place.second));
            } else if (stack) {
                f->incoming = 1;
                f->needs_general_path = 1;
                qjv_new_register(c, &to, qjv_is_float(type));
                if (type == 'f') qjv_ldfi(c, to, QJV_SCRATCH, at + QJV_SINGLE_AT);
                else if (type == 'd') qjv_lddi(c, to, QJV_SCRATCH, at);
                else qjv_ldli(c, to, QJV_SCRATCH, at);
                if (QJV_EXTENDS_PARAMETERS) qjv_extend_narrow(c, type, to, to);
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

/* Slots up to the last one that is used. */
QJV_OUTLINE uint32_t qjv_used_slots(const qjv_function *f) {
    qjv_preserved ints = qjv_preserved_of(f, 0), floats;
    if (f->float_touched) {
        floats = qjv_preserved_of(f, 1);
        return 65 - (uint32_t)__builtin_clzll(f->float_touched) - floats.position + ints.count;
    }
    if (f->int_touched) return 65 - (uint32_t)__builtin_clzll(f->int_touched) - ints.position;
    return QJV_HAS_LINK_REGISTER && f->calls;
}

typedef enum { QJV_SAVE, QJV_RESTORE } qjv_way;

/* The additional state that handlers preserve. */
QJV_COLD void qjv_scratch_slots(qjv_asm *c, qjv_way way, int32_t at) {
    v_variable first = {at}, second = {at + 8}, real = {at + 16};
    int has_second = qjv_number(QJV_SCRATCH) != qjv_number(QJV_SECOND_SCRATCH);
    /* A load of eight bytes clears the rest of a vector register, so a function without floats does not reload it. */
    int has_floats = QJV_DIVIDES_IN_FLOATS || c->f->float_touched;
    if (way == QJV_SAVE) {
        qjv_stl_local(c, QJV_SCRATCH, first);
        if (has_second) qjv_stl_local(c, QJV_SECOND_SCRATCH, second);
        if (has_floats) qjv_std_local(c, QJV_FLOAT_SCRATCH, real);
    } else {
        qjv_ldl_local(c, QJV_SCRATCH, first);
        if (has_second) qjv_ldl_local(c, QJV_SECOND_SCRATCH, second);
        if (has_floats) qjv_ldd_local(c, QJV_FLOAT_SCRATCH, real);
    }
}

/* Stores or loads the link register, if the frame preserves it. */
QJV_OUTLINE void qjv_link_slot(qjv_asm *c, qjv_way way) {
    if (!QJV_HAS_LINK_REGISTER || !c->f->calls) return;
    if (way == QJV_SAVE) qjv_save_link(c, QJV_BIAS + QJV_BOTTOM);
    else qjv_restore_link(c, QJV_BIAS + QJV_BOTTOM);
}

/* Stores or loads every other register that the frame preserves. */
QJV_OUTLINE void qjv_each_saved(qjv_asm *c, qjv_way way) {
    qjv_function *f = c->f;
    qjv_preserved preserved = qjv_preserved_of(f, 0);
    int32_t first = QJV_BIAS + QJV_BOTTOM + 8;
    /* Sets are by position: the preserved registers are consecutive. */
    for (uint64_t touched = f->int_touched >> preserved.position; touched; touched &= touched - 1) {
        int index = __builtin_ctzll(touched);
        v_variable at = {first + 8 * index};
        if (way == QJV_SAVE) qjv_stl_local(c, qjv_reg(preserved.list[index]), at);
        else qjv_ldl_local(c, qjv_reg(preserved.list[index]), at);
    }
    if (!f->float_touched && !f->client) return;
    first += 8 * (int32_t)preserved.count;
    preserved = qjv_preserved_of(f, 1);
    for (uint64_t touched = f->float_touched >> preserved.position; touched; touched &= touched - 1) {
        int index = __builtin_ctzll(touched);
        v_variable at = {first + 8 * index};
        if (way == QJV_SAVE) qjv_std_local(c, qjv_reg(preserved.list[index]), at);
        else qjv_ldd_local(c, qjv_reg(preserved.list[index]), at);
    }
    if (qjv_is_handler(f)) qjv_scratch_slots(c, way, first + 8 * (int32_t)preserved.count);
}

/* The epilogue of tail calls, whose target is in the second scratch register, which no epilogue uses. It arrives in the
   first, as the target of every call. */
QJV_COLD void qjv_tail_epilogue(qjv_asm *c, uint32_t size) {
    if (!c->f->tail) return;
    c->f->tail_at = qjv_at(c->f, c->ip);
    if (size) {
        qjv_link_slot(c, QJV_RESTORE);
        qjv_each_saved(c, QJV_RESTORE);
        qjv_leave(c, (int64_t)size);
    }
    if (qjv_number(QJV_SCRATCH) != qjv_number(QJV_SECOND_SCRATCH)) qjv_movl(c, QJV_SCRATCH, QJV_SECOND_SCRATCH);
    qjv_jr(c, QJV_SCRATCH);
}

/* Writes the epilogue here and the prologue in front of the body; returns where the function starts. */
QJV_COLD uint32_t qjv_frame(qjv_asm *c) {
    qjv_function *f = c->f;
    uint32_t used = qjv_used_slots(f);
    int is_handler = qjv_is_handler(f);
    uint32_t own = f->locals || is_handler ? qjv_save_area(f) + f->locals : 8 * used;
    /* Interrupted code may have no frame and use its red zone. */
    uint32_t above = QJV_BOTTOM + own + QJV_MISALIGNED + (is_handler ? (uint32_t)QJV_RED_ZONE : 0);
    uint32_t size = own || f->calls ? ((above + 15) & ~15u) - QJV_MISALIGNED : 0, room = qjv_prologue_room(f);
    uint8_t buffer[2048];
    qjv_asm saved;
    size_t length;
    qjv_link_slot(c, QJV_RESTORE);
#if QJV_CLOBBERS_SPECIAL_REGISTERS
    const int64_t special_area = (int64_t)(QJV_BIAS + QJV_BOTTOM) + qjv_save_area(f) - 8 - QJV_SPECIAL_REGISTER_BYTES;
    if (is_handler) qjv_restore_special(c, special_area);
#endif
    qjv_each_saved(c, QJV_RESTORE);
    if (size) qjv_leave(c, (int64_t)size);
    qjv_return(c);
    if (QJV_DELAY_SLOTS) qjv_nop(c);
    qjv_tail_epilogue(c, size);
    saved = *c;
    c->ip = buffer;
    c->left = sizeof buffer - QJV_SLACK;
    if (size) qjv_enter(c, (int64_t)size);
    if (!is_handler) qjv_link_slot(c, QJV_SAVE);
    qjv_each_saved(c, QJV_SAVE);
#if QJV_CLOBBERS_SPECIAL_REGISTERS
    if (is_handler) qjv_save_special(c, special_area);
#endif
    /* On Power it goes through a special register, which has to be saved before. */
    if (is_handler) qjv_link_slot(c, QJV_SAVE);
    /* Last: entering a large frame uses the scratch register. */
    if (f->incoming) qjv_frame_address(c, QJV_SCRATCH, (int64_t)size);
    length = (size_t)(c->ip - buffer);
    *c = saved;
    if (length > room) {
        qjv_fail(c, QJV_ERROR_FRAME);
        return 0;
    }
    memcpy(f->start + room - length, buffer, length);
    return room - (uint32_t)length;
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

/* Replaces a jump to the epilogue by a return, in a function without a frame. */
QJV_COLD void qjv_return_at(qjv_asm *c, uint32_t at) {
    uint8_t buffer[32 + QJV_SLACK];
    qjv_asm there = {buffer, 32, c->f, QJV_NO_RETURN, QJV_NO_RETURN};
    qjv_return(&there);
    while (there.ip - buffer < QJV_JUMP_BYTES) qjv_nop(&there);
    memcpy(c->f->start + at, buffer, QJV_JUMP_BYTES);
}

/* Resolves all references on the fast path; 0 if a label is unbound or out of reach. */
QJV_INLINE int qjv_resolve_plain(qjv_function *f) {
    for (uint32_t index = 0; index < f->fixups; index++) {
        uint32_t site = (uint32_t)f->fixup[index], label = qjv_label_of(f->fixup[index]);
        if (label >= f->labels || f->label[label] == QJV_UNBOUND) return 0;
        if (!qjv_patch((unsigned)(f->fixup[index] >> 56), f->start + site, (int64_t)f->label[label] - (int64_t)site))
            return 0;
    }
    return 1;
}

/* Removes the jump that is the last word but one, and the word in its delay slot if that is a nop; otherwise the slot's
   instruction moves before the epilogue. */
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

/* Marks the registers that a function must preserve by a client's convention and C functions may destroy as saved. */
QJV_COLD void qjv_preserve_from_calls(qjv_function *f) {
    for (unsigned index = 0; index < QJV_COUNT(qjv_int_temp); index++)
        f->int_touched |= qjv_register_bit(f, qjv_int_temp[index], 0) & qjv_class(&f->convention->ints, V_VAR);
    for (unsigned index = 0; index < QJV_COUNT(qjv_float_temp); index++)
        f->float_touched |= qjv_register_bit(f, qjv_float_temp[index], 1) & qjv_class(&f->convention->floats, V_VAR);
}

/* Whether qjv_procedure bound a label. */
QJV_COLD int qjv_is_procedure(const qjv_function *f, uint32_t label) {
    for (uint32_t index = 0; index < f->fixups; index++)
        if (f->fixup[index] == qjv_make_fixup(0, QJV_PROCEDURE, label)) return 1;
    return 0;
}

QJV_OUTLINE void *qjv_end_at(qjv_function *f, uint8_t *cursor, size_t left) {
    qjv_asm at = {cursor, left, f, QJV_NO_RETURN, QJV_NO_RETURN};
    qjv_asm *c = &at;
    uint32_t ip = qjv_at(f, c->ip), epilogue, entry;
    int ends_in_return = 0, framed;
    if (f->client && f->calls) qjv_preserve_from_calls(f);
    framed = (f->int_touched | f->float_touched) != 0 || f->calls || f->incoming || f->locals || qjv_is_handler(f);
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
        entry = qjv_prologue_room(f);
    }
    if (f->constants) qjv_place_constants(c);
    for (uint32_t index = 0; index < f->fixups; index++) {
        uint32_t site = (uint32_t)f->fixup[index], label = qjv_label_of(f->fixup[index]);
        unsigned kind_ = (unsigned)(f->fixup[index] >> 56);
        if (kind_ == QJV_PROCEDURE) {
            continue;
        } else if (kind_ == QJV_CALLED_PROCEDURE) {
            if (!qjv_is_procedure(f, label)) qjv_failed(f, QJV_ERROR_PROCEDURE);
        } else if (label == QJV_ENTRY) {
            qjv_patch_at(f, site, kind_, entry);
        } else if (label == QJV_EPILOGUE) {
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
    /* On machines with delay slots, the instruction in the slot stays in its place. */
    const uint32_t ip = qjv_at(f, c->ip), slot = QJV_DELAY_SLOTS ? 4 : 0;
    if (c->forward != QJV_NO_RETURN) qjv_wait(f, c->forward);
    /* The common small function: no frame, no constants, its last return at the end. If a reference cannot be resolved
       here, the general path resolves all of them again. */
    if (__builtin_expect(!f->needs_general_path && !(f->int_touched | f->float_touched) && c->last_return != QJV_NO_RETURN &&
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
