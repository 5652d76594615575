/* Calls built at run time: any number and kind of arguments, moved to the locations of the convention; and tail calls.
   The same as call.rs of the Rust crate, which explains it. Knows locations, not encodings.

       qjv_argument arguments[] = {qjv_in(x), qjv_value(7)};
       qjv_call(&a, "%l%l", qjv_at_address((uintptr_t)labs_of_sum), arguments, 2);      result in V_RESULT or V_FRESULT
       qjv_tail_call(&a, "%l%l", ...);                                                  in place of a return
       qjv_call(&a, "%p...%d", qjv_at_address((uintptr_t)printf), arguments, 2);         `...` as in the prototype

   Arguments of 8 and 16 bits are extended from the low bits of their registers. A function that returns a type of 8 or
   16 bits may leave the bits above it undefined: convert V_RESULT with qjv_cvi2c, qjv_cvi2uc, qjv_cvi2s or
   qjv_cvi2us. */
#ifndef QUAJECT_VCODE_CALL_H
#define QUAJECT_VCODE_CALL_H

#if defined(__x86_64__)
enum { QJV_OUTGOING = 0, QJV_HOME = 0, QJV_EXTENDS = 0, QJV_COUNTS_FLOATS = 1 };
#elif defined(__mips__)
enum { QJV_OUTGOING = 0, QJV_HOME = 16, QJV_EXTENDS = 0, QJV_COUNTS_FLOATS = 0 };
#elif defined(__sparc__)
enum { QJV_OUTGOING = 128, QJV_HOME = 48, QJV_EXTENDS = 1, QJV_COUNTS_FLOATS = 0 };
#elif defined(__powerpc64__)
enum { QJV_OUTGOING = 32, QJV_HOME = 64, QJV_EXTENDS = 1, QJV_COUNTS_FLOATS = 0 };
#else
enum { QJV_OUTGOING = 0, QJV_HOME = 0, QJV_EXTENDS = 0, QJV_COUNTS_FLOATS = 0 };
#endif

/* A register, of the file that the type says, or an integer or pointer constant, which is an error if it does not fit
   its type as a number with or without sign. */
typedef enum { QJV_REGISTER, QJV_CONSTANT, QJV_ITSELF } qjv_operand;
typedef struct { qjv_operand kind; v_reg reg; int64_t value; } qjv_argument;
/* The callee: the function at an address, or whose address is in a register, or the function that is being written. */
typedef qjv_argument qjv_target;

QJV_INLINE qjv_argument qjv_in(v_reg reg) {
    qjv_argument argument = {QJV_REGISTER, reg, 0};
    return argument;
}

QJV_INLINE qjv_argument qjv_value(int64_t value) {
    qjv_argument argument = {QJV_CONSTANT, qjv_reg(0), value};
    return argument;
}

/* The function that is being written calls itself: recursion. */
QJV_INLINE qjv_target qjv_itself(void) {
    qjv_target target = {QJV_ITSELF, qjv_reg(0), 0};
    return target;
}

QJV_INLINE qjv_target qjv_at_address(uintptr_t address) { return qjv_value((int64_t)address); }

enum { QJV_MAX_MOVES = 40, QJV_PARKED = 255 };
/* A parallel move: moves between registers of one file that happen at once. */
typedef struct { uint8_t source[QJV_MAX_MOVES], destination[QJV_MAX_MOVES]; unsigned count; } qjv_moves;

QJV_INLINE void qjv_move(qjv_asm *c, qjv_moves *moves, uint32_t source, uint32_t destination) {
    if (source == destination) return;
    if (moves->count == QJV_MAX_MOVES) {
        qjv_fail(c, QJV_ERROR_ARGUMENTS);
        return;
    }
    moves->source[moves->count] = (uint8_t)source;
    moves->destination[moves->count++] = (uint8_t)destination;
}

QJV_INLINE int qjv_is_source(const qjv_moves *moves, unsigned number) {
    for (unsigned index = 0; index < moves->count; index++)
        if (moves->source[index] == number) return 1;
    return 0;
}

/* Emits a parallel copy: repeatedly a move whose destination is the source of no other; a cycle is broken by saving one
   source in the transfer slot. */
QJV_OUTLINE void qjv_make_moves(qjv_asm *c, qjv_moves *moves, int is_float, v_variable transfer) {
    while (moves->count) {
        unsigned index = 0, first = moves->source[0];
        while (index < moves->count && qjv_is_source(moves, moves->destination[index])) index++;
        if (index == moves->count) {
            if (is_float) qjv_std_local(c, qjv_reg(first), transfer);
            else qjv_stl_local(c, qjv_reg(first), transfer);
            for (index = 0; index < moves->count; index++)
                if (moves->source[index] == first) moves->source[index] = QJV_PARKED;
            continue;
        }
        unsigned source = moves->source[index], destination = moves->destination[index];
        moves->count--;
        moves->source[index] = moves->source[moves->count];
        moves->destination[index] = moves->destination[moves->count];
        if (source != QJV_PARKED && is_float) qjv_movd(c, qjv_reg(destination), qjv_reg(source));
        else if (source != QJV_PARKED) qjv_movl(c, qjv_reg(destination), qjv_reg(source));
        else if (is_float) qjv_ldd_local(c, qjv_reg(destination), transfer);
        else qjv_ldl_local(c, qjv_reg(destination), transfer);
    }
}

/* Extends a shorter value as the convention requires: one of 8 or 16 bits to an int, an int to a long on some
   machines. */
QJV_INLINE void qjv_extend(qjv_asm *c, char type, v_reg reg) {
    if (QJV_EXTENDS && type == 'i') qjv_cvi2l(c, reg, reg);
    else if (QJV_EXTENDS && type == 'u') qjv_cvu2l(c, reg, reg);
    else qjv_extend_narrow(c, type, reg, reg);
}

QJV_INLINE unsigned qjv_bits_of(char type) {
    return type == 'c' || type == 'b' ? 8 : type == 's' || type == 'h' ? 16 : type == 'i' || type == 'u' ? 32
                                                                           : 8 * (unsigned)sizeof(long);
}

/* Whether a constant fits a type, as a number with or without sign: none of its bits is lost. */
QJV_INLINE int qjv_fits_type(char type, int64_t value) {
    unsigned bits = qjv_bits_of(type);
    return bits == 64 || (value >= -((int64_t)1 << (bits - 1)) && value < (int64_t)1 << bits);
}

/* What a register must hold to pass a constant as this type. */
QJV_OUTLINE long qjv_register_value(char type, int64_t value) {
    switch (type) {
    case 'c': return (int8_t)value;
    case 'b': return (uint8_t)value;
    case 's': return (int16_t)value;
    case 'h': return (uint16_t)value;
    /* Registers of machines that do not extend such values to a long hold them sign-extended, or in any way. */
    case 'u': return QJV_EXTENDS ? (long)(uint32_t)value : (long)(int32_t)value;
    case 'i': return (int32_t)value;
    default: return (long)value;
    }
}

QJV_OUTLINE void qjv_push_argument(qjv_asm *c, char type, v_variable at, qjv_argument argument) {
    if (qjv_is_float(type) && argument.kind == QJV_CONSTANT) {
        qjv_fail(c, QJV_ERROR_ARGUMENTS);
    } else if (type == 'f') {
        at.offset += QJV_SINGLE_AT;
        qjv_stf_local(c, argument.reg, at);
    } else if (type == 'd') {
        qjv_std_local(c, argument.reg, at);
    } else if (argument.kind == QJV_CONSTANT) {
        qjv_setl(c, QJV_SECOND_SCRATCH, qjv_register_value(type, argument.value));
        qjv_stl_local(c, QJV_SECOND_SCRATCH, at);
    } else if (QJV_EXTENDS || qjv_is_narrow(type)) {
        qjv_movl(c, QJV_SECOND_SCRATCH, argument.reg);
        qjv_extend(c, type, QJV_SECOND_SCRATCH);
        qjv_stl_local(c, QJV_SECOND_SCRATCH, at);
    } else {
        qjv_stl_local(c, argument.reg, at);
    }
}

/* Bytes of stack that arguments take; -1 if they are not as many as the types, the types are malformed, or a client's
   convention assigns an invalid location. */
QJV_OUTLINE int64_t qjv_argument_bytes(qjv_asm *c, const char *types, const qjv_argument *arguments, size_t count) {
    const qjv_convention *client = qjv_client(c->f);
    qjv_places places = {qjv_first_argument(types), 0, 0, 0};
    qjv_error error = client ? qjv_check_places(client, types, &places) : QJV_OK;
    const char *text = types;
    qjv_counters counters = places.counters;
    char type;
    while (!client && (type = qjv_next_argument(&places.counters, &types)) != 0) {
        if (type == '?') {
            error = QJV_ERROR_SIGNATURE;
            break;
        }
        qjv_next_place(&places.counters, type);
        places.count++;
    }
    if (!error && places.count != count) error = QJV_ERROR_ARGUMENTS;
    for (size_t index = 0; !error && index < count; index++) {
        type = qjv_next_argument(&counters, &text);
        if (arguments[index].kind != QJV_CONSTANT) continue;
        if (qjv_is_float(type)) error = QJV_ERROR_ARGUMENTS;
        else if (!qjv_fits_type(type, arguments[index].value)) error = QJV_ERROR_IMMEDIATE;
    }
    if (error) {
        qjv_fail(c, error);
        return -1;
    }
    if (client) {
        qjv_touch(c->f, places.ints, 0);
        qjv_touch(c->f, places.floats, 1);
    }
    return places.counters.stack;
}

/* Moves the arguments to the locations of the convention, and a target in a register to the scratch register; returns
   the number of floats in registers. First the stack, which may need the scratch register; then the registers of each
   file as one parallel move; then moves between the files, and constants, whose destinations are no longer the source
   of a move. */
QJV_OUTLINE long qjv_place_arguments(qjv_asm *c, const char *types, qjv_target target, const qjv_argument *arguments,
                                     v_variable transfer) {
    qjv_moves ints = {{0}, {0}, 0}, floats = {{0}, {0}, 0};
    qjv_counters counters = qjv_first_argument(types);
    const char *text = types;
    long in_registers = 0;
    char type;
    if (target.kind == QJV_REGISTER) qjv_move(c, &ints, qjv_number(target.reg), qjv_number(QJV_SCRATCH));
    for (size_t index = 0; (type = qjv_next_argument(&counters, &text)) != 0; index++) {
        qjv_place place = qjv_place_of(c->f, &counters, type);
        qjv_argument argument = arguments[index];
        v_variable at = {(int32_t)(QJV_BIAS + QJV_OUTGOING + place.at)};
        if (place.kind == QJV_ON_STACK) {
            qjv_push_argument(c, type, at, argument);
        } else if (qjv_is_float(type) && argument.kind == QJV_CONSTANT) {
            qjv_fail(c, QJV_ERROR_ARGUMENTS);
        } else if (place.kind == QJV_IN_FLOAT) {
            qjv_move(c, &floats, qjv_number(argument.reg), place.at);
            in_registers++;
        } else if (!qjv_is_float(type) && argument.kind == QJV_REGISTER) {
            qjv_move(c, &ints, qjv_number(argument.reg), place.at);
        }
    }
    qjv_make_moves(c, &ints, 0, transfer);
    counters = qjv_first_argument(types);
    text = types;
    for (size_t index = 0; (type = qjv_next_argument(&counters, &text)) != 0; index++) {
        qjv_place place = qjv_place_of(c->f, &counters, type);
        qjv_argument argument = arguments[index];
        v_variable second = {transfer.offset + 4};
        if (place.kind == QJV_IN_INT && argument.kind == QJV_CONSTANT) {
            qjv_setl(c, qjv_reg(place.at), qjv_register_value(type, argument.value));
        } else if (place.kind == QJV_IN_INT && qjv_is_float(type)) {
            if (type == 'f') qjv_stf_local(c, argument.reg, transfer);
            else qjv_std_local(c, argument.reg, transfer);
            qjv_ldl_local(c, qjv_reg(place.at), transfer);
        } else if (place.kind == QJV_IN_PAIR) {
            qjv_std_local(c, argument.reg, transfer);
            qjv_ldl_local(c, qjv_reg(place.at), transfer);
            qjv_ldl_local(c, qjv_reg(place.second), second);
        }
    }
    qjv_make_moves(c, &floats, 1, transfer);
    counters = qjv_first_argument(types);
    text = types;
    while ((type = qjv_next_argument(&counters, &text)) != 0) {
        qjv_place place = qjv_place_of(c->f, &counters, type);
        if (place.kind == QJV_IN_INT) qjv_extend(c, type, qjv_reg(place.at));
        else if (QJV_SINGLE_SHIFT && place.kind == QJV_IN_FLOAT && type == 'f')
            qjv_movf(c, qjv_reg(place.at + QJV_SINGLE_SHIFT), qjv_reg(place.at));
    }
    return in_registers;
}

/* Stores ('s') or loads the temporaries that are used as callee-saved registers and saved around calls. */
QJV_OUTLINE void qjv_save_around_call(qjv_asm *c, int what) {
    for (unsigned number = 0; c->f->has_caller_saves && number < 64; number++) {
        v_variable at = {c->f->caller_save_area + 8 * (int32_t)number};
        v_reg reg = qjv_reg(number % 32);
        int is_float = number >= 32;
        uint64_t saved = is_float ? c->f->float_saved_around_calls : c->f->int_saved_around_calls;
        if (!(saved & qjv_register_bit(c->f, number % 32, is_float))) continue;
        if (what == 's' && is_float) qjv_std_local(c, reg, at);
        else if (what == 's') qjv_stl_local(c, reg, at);
        else if (is_float) qjv_ldd_local(c, reg, at);
        else qjv_ldl_local(c, reg, at);
    }
}

/* Calls a function. Its result is then in V_RESULT or V_FRESULT; temporaries do not survive, except those that
   are used as persistent registers and saved around calls. */
QJV_OUTLINE void qjv_call_outlined(qjv_asm *c, const char *types, qjv_target target, const qjv_argument *arguments, size_t count) {
    int64_t bytes = qjv_argument_bytes(c, types, arguments, count), pushed;
    const v_label itself = {QJV_ENTRY};
    long floats;
    v_variable transfer;
    qjv_note_call(c);
    if (bytes < 0) return;
    pushed = bytes && bytes < QJV_HOME ? (int64_t)QJV_HOME : bytes;
    if (pushed) pushed = (pushed + QJV_OUTGOING + 15) & ~(int64_t)15;
    transfer = qjv_transfer(c->f);
    transfer.offset += (int32_t)pushed;
    qjv_save_around_call(c, 's');
    if (pushed) qjv_enter(c, pushed);
    floats = qjv_place_arguments(c, types, target, arguments, transfer);
    if (target.kind == QJV_CONSTANT) qjv_setl(c, QJV_SCRATCH, (long)target.value);
    if (QJV_COUNTS_FLOATS && (floats || strchr(types, '.'))) qjv_setl(c, V_RESULT, floats);
    if (target.kind == QJV_ITSELF) qjv_call_label(c, itself);
    else qjv_jalr(c, QJV_SCRATCH);
    if (pushed) qjv_leave(c, pushed);
    qjv_save_around_call(c, 'l');
}

/* Whether an argument survives the epilogue: it is in a register that the function need not preserve. */
QJV_OUTLINE int qjv_is_carried_out(const qjv_function *f, qjv_place place) {
    uint64_t bits = qjv_register_bit(f, place.at & 31, place.kind == QJV_IN_FLOAT);
    if (place.kind == QJV_ON_STACK) return 0;
    if (place.kind == QJV_IN_PAIR) bits |= qjv_register_bit(f, place.second & 31, 0);
    return !f->client || !(bits & qjv_class(qjv_client_registers(f, place.kind == QJV_IN_FLOAT), V_VAR));
}

/* A tail call: the frame is released before the jump, and the callee returns to the caller of this function. It may
   end a leaf. It is an error in an interrupt handler, of the function itself (jump to a label instead), or if an
   argument is passed on the stack or in a register that this function preserves. */
QJV_OUTLINE void qjv_tail_call_outlined(qjv_asm *c, const char *types, qjv_target target, const qjv_argument *arguments, size_t count) {
    const v_label tail = {QJV_TAIL};
    qjv_counters counters = qjv_first_argument(types);
    const char *text = types;
    long floats;
    char type;
    if (qjv_is_handler(c->f)) {
        /* The target needs a scratch register. */
        qjv_fail(c, QJV_ERROR_REGISTER_TAKEN);
        return;
    }
    if (target.kind == QJV_ITSELF) {
        qjv_fail(c, QJV_ERROR_ARGUMENTS);
        return;
    }
    if (qjv_argument_bytes(c, types, arguments, count) < 0) return;
    while ((type = qjv_next_argument(&counters, &text)) != 0) {
        if (qjv_is_carried_out(c->f, qjv_place_of(c->f, &counters, type))) continue;
        qjv_fail(c, QJV_ERROR_ARGUMENTS);
        return;
    }
    floats = qjv_place_arguments(c, types, target, arguments, qjv_transfer(c->f));
    if (target.kind == QJV_CONSTANT) qjv_setl(c, QJV_SECOND_SCRATCH, (long)target.value);
    else if (qjv_number(QJV_SCRATCH) != qjv_number(QJV_SECOND_SCRATCH)) qjv_movl(c, QJV_SECOND_SCRATCH, QJV_SCRATCH);
    if (QJV_COUNTS_FLOATS && (floats || strchr(types, '.'))) qjv_setl(c, V_RESULT, floats);
    c->f->tail = 1;
    qjv_j(c, tail);
}

QJV_INLINE void qjv_call(qjv_asm *c, const char *types, qjv_target target, const qjv_argument *arguments, size_t count) {
    qjv_asm copy = *c;
    qjv_call_outlined(&copy, types, target, arguments, count);
    *c = copy;
}

QJV_INLINE void qjv_tail_call(qjv_asm *c, const char *types, qjv_target target, const qjv_argument *arguments, size_t count) {
    qjv_asm copy = *c;
    qjv_tail_call_outlined(&copy, types, target, arguments, count);
    *c = copy;
}

#endif
