/* Registers and variables of a function: allocation by class, and the layout of the stack. The same as registers.rs and
   frame.rs of the Rust crate, which explain it. Sets of registers are by position in the order of allocation. Knows no
   encodings. */
#ifndef QUAJECT_VCODE_REGISTERS_H
#define QUAJECT_VCODE_REGISTERS_H

/* Whether instructions on integers use the floating scratch register. */
#if defined(__alpha__)
enum { QJV_DIVIDES_IN_FLOATS = 1 };
#else
enum { QJV_DIVIDES_IN_FLOATS = 0 };
#endif
enum { QJV_SPECIAL_REGISTER_BYTES = 32, QJV_MAX_LOCALS = 1 << 20 };

/* The client's convention, or null for the machine's own. */
QJV_INLINE const qjv_convention *qjv_client(const qjv_function *f) { return f->client ? f->convention : 0; }

QJV_INLINE int qjv_is_handler(const qjv_function *f) {
    return f->client && f->convention->scratch == QJV_SCRATCH_PRESERVED;
}

QJV_INLINE const qjv_registers *qjv_client_registers(const qjv_function *f, int is_float) {
    return is_float ? &f->convention->floats : &f->convention->ints;
}

/* The set of one register of either file. */
QJV_OUTLINE uint64_t qjv_register_bit(const qjv_function *f, unsigned number, int is_float) {
    if (f->client) return qjv_set_of(qjv_client_registers(f, is_float), number);
    return is_float ? qjv_float_bit[number] : qjv_int_bit[number];
}

/* The registers of one file that functions preserve, the first of which has this position. */
typedef struct { const uint8_t *list; uint32_t count, position; } qjv_preserved;

QJV_INLINE qjv_preserved qjv_preserved_of(const qjv_function *f, int is_float) {
    qjv_preserved preserved = {is_float ? qjv_float_saved : qjv_int_saved,
                               is_float ? (uint32_t)sizeof qjv_float_saved - 1 : (uint32_t)sizeof qjv_int_saved - 1,
                               is_float ? (uint32_t)sizeof qjv_float_temp - 1 : (uint32_t)sizeof qjv_int_temp - 1};
    if (f->client) {
        const qjv_registers *registers = qjv_client_registers(f, is_float);
        preserved.list = registers->order + QJV_MAX_REGISTERS;
        preserved.count = registers->count[V_VAR];
        preserved.position = QJV_MAX_REGISTERS;
    }
    return preserved;
}

/* Bytes of the save area: return address, preserved registers, the additional state of handlers, a transfer slot. */
QJV_OUTLINE uint32_t qjv_save_area(const qjv_function *f) {
    uint32_t registers = qjv_preserved_of(f, 0).count + qjv_preserved_of(f, 1).count;
    return 8 * (2 + registers) + (qjv_is_handler(f) ? 24u + (QJV_CLOBBERS_SPECIAL_REGISTERS ? (uint32_t)QJV_SPECIAL_REGISTER_BYTES : 0u) : 0u);
}

/* Allocates bytes of stack, aligned to a power of two up to sixteen. */
QJV_OUTLINE v_variable qjv_local_bytes(qjv_function *f, size_t bytes, uint32_t align) {
    const uint32_t base = QJV_BOTTOM + qjv_save_area(f);
    uint32_t at = (base + f->locals + align - 1) & ~(align - 1);
    v_variable local = {(int32_t)(QJV_BIAS + base)};
    if (bytes > QJV_MAX_LOCALS || at + bytes > QJV_MAX_LOCALS) {
        qjv_failed(f, QJV_ERROR_FRAME);
        return local;
    }
    f->locals = at + (uint32_t)bytes - base;
    f->needs_general_path = 1;
    local.offset = (int32_t)(QJV_BIAS + at);
    return local;
}

/* The stack slot in which a call parks a value, or moves it between register files: the last of the save area. */
QJV_OUTLINE v_variable qjv_transfer(qjv_function *f) {
    v_variable transfer = {QJV_BIAS + QJV_BOTTOM + (int32_t)qjv_save_area(f) - 8};
    if (f->locals < 8) f->locals = 8;
    f->needs_general_path = 1;
    return transfer;
}

/* Records that a temporary is used as a persistent register and saved around calls. */
QJV_COLD void qjv_save_around_calls(qjv_function *f, uint64_t bit, int is_float) {
    if (!f->has_caller_saves) {
        f->has_caller_saves = 1;
        f->int_saved_around_calls = f->float_saved_around_calls = 0;
        /* Eight bytes per register of each file, by number. */
        f->caller_save_area = qjv_local_bytes(f, 2 * 32 * 8, 8).offset;
    }
    *(is_float ? &f->float_saved_around_calls : &f->int_saved_around_calls) |= bit;
}

/* The registers of a client's convention that survive calls. Those that carry arguments do not; handlers call C
   functions, by the C convention. */
QJV_COLD uint64_t qjv_lasting(const qjv_function *f, int is_float) {
    const qjv_registers *registers = qjv_client_registers(f, is_float);
    uint64_t lasting = qjv_class(registers, V_VAR);
    for (unsigned index = 0; index < registers->arguments; index++) lasting &= ~qjv_set_of(registers, registers->args[index]);
    for (unsigned index = 0; qjv_is_handler(f) && index < registers->count[V_VAR]; index++) {
        unsigned number = registers->order[QJV_MAX_REGISTERS + index];
        if (!(is_float ? qjv_float_bit[number] & QJV_FLOAT_SAVED : qjv_int_bit[number] & QJV_INT_SAVED))
            lasting &= ~qjv_set_of(registers, number);
    }
    return lasting;
}

/* Allocates a register of a client's convention; its number, or -1. */
QJV_COLD int qjv_find_classified(qjv_function *f, int class_, int is_float) {
    const qjv_registers *registers = qjv_client_registers(f, is_float);
    uint64_t *free = &f->client_free[is_float], bit;
    int temporary_first = class_ == V_TEMP || f->leaf;
    uint64_t lasting = temporary_first ? 0 : *free & qjv_lasting(f, is_float);
    uint64_t result = qjv_set_of(registers, qjv_number(is_float ? V_FRESULT : V_RESULT));
    uint64_t wanted = lasting ? lasting : temporary_first ? *free : *free & ~result;
    if (!wanted) return -1;
    bit = wanted & (0 - wanted);
    *free ^= bit;
    *(is_float ? &f->float_touched : &f->int_touched) |= bit & qjv_class(registers, V_VAR);
    if (!temporary_first && !lasting) qjv_save_around_calls(f, bit, is_float);
    return registers->order[__builtin_ctzll(bit)];
}

/* The slow path of allocation: a client's convention has sets of its own, and in functions with calls a temporary that
   is saved around calls, other than the result register, is used as a callee-saved one. */
QJV_COLD int qjv_find(qjv_function *f, int class_, int is_float) {
    uint64_t *free = is_float ? &f->float_free : &f->int_free;
    uint64_t result = is_float ? qjv_float_bit[qjv_number(V_FRESULT)] : qjv_int_bit[qjv_number(V_RESULT)];
    uint64_t wanted = *free & ~result, bit = wanted & (0 - wanted);
    if (f->client) return qjv_find_classified(f, class_, is_float);
    if (class_ == V_TEMP || f->leaf || !wanted) return -1;
    *free ^= bit;
    qjv_save_around_calls(f, bit, is_float);
    return (is_float ? qjv_float_order : qjv_int_order)[__builtin_ctzll(bit)];
}

/* Marks argument registers of a client's convention as used, so that they are preserved if necessary. Converts a set by
   number to one by position. */
QJV_COLD uint64_t qjv_touch(qjv_function *f, uint64_t numbers, int is_float) {
    const qjv_registers *registers = qjv_client_registers(f, is_float);
    uint64_t set = 0;
    for (unsigned number = 0; number < QJV_MAX_REGISTERS; number++)
        if (numbers >> number & 1) set |= qjv_set_of(registers, number);
    *(is_float ? &f->float_touched : &f->int_touched) |= set & qjv_class(registers, V_VAR);
    return set;
}

/* Allocates the first register of a set. */
QJV_INLINE int qjv_take(uint64_t *free, uint64_t *touched, uint64_t from, uint64_t saved, const uint8_t *order, v_reg *reg) {
    uint64_t wanted = *free & from, bit = wanted & (0 - wanted);
    if (!wanted) return 0;
    *free ^= bit;
    *touched |= bit & saved;
    *reg = qjv_reg(order[__builtin_ctzll(wanted)]);
    return 1;
}

/* Allocates a register; 0 if all are in use, which is not recorded as an error. In functions with calls a persistent
   register is a callee-saved one, or, if those are in use, a temporary that is saved around calls. */
QJV_INLINE int qjv_getreg(qjv_asm *c, v_reg *reg, int class_) {
    qjv_function *f = c->f;
    uint64_t from = class_ == V_TEMP || f->leaf ? QJV_INT_ALL : QJV_INT_SAVED;
    int found;
    if (qjv_take(&f->int_free, &f->int_touched, from, QJV_INT_SAVED, qjv_int_order, reg)) return 1;
    found = qjv_find(f, class_, 0);
    if (found >= 0) *reg = qjv_reg((uint32_t)found);
    return found >= 0;
}

QJV_INLINE int qjv_getfloat(qjv_asm *c, v_reg *reg, int class_) {
    qjv_function *f = c->f;
    uint64_t from = class_ == V_TEMP || f->leaf ? QJV_FLOAT_ALL : QJV_FLOAT_SAVED;
    int found;
    if (qjv_take(&f->float_free, &f->float_touched, from, QJV_FLOAT_SAVED, qjv_float_order, reg)) return 1;
    found = qjv_find(f, class_, 1);
    if (found >= 0) *reg = qjv_reg((uint32_t)found);
    return found >= 0;
}

/* The slow path of freeing a register: with temporaries that are saved around calls, or with a client's convention. */
QJV_COLD void qjv_put_back(qjv_function *f, unsigned number, int is_float) {
    uint64_t bit = qjv_register_bit(f, number, is_float);
    if (f->client) f->client_free[is_float] |= bit;
    else *(is_float ? &f->float_free : &f->int_free) |= bit;
    if (f->has_caller_saves) *(is_float ? &f->float_saved_around_calls : &f->int_saved_around_calls) &= ~bit;
}

QJV_INLINE void qjv_putreg(qjv_asm *c, v_reg reg) {
    if (c->f->has_caller_saves | c->f->client) qjv_put_back(c->f, qjv_number(reg), 0);
    else c->f->int_free |= qjv_int_bit[qjv_number(reg)];
}

QJV_INLINE void qjv_putfloat(qjv_asm *c, v_reg reg) {
    if (c->f->has_caller_saves | c->f->client) qjv_put_back(c->f, qjv_number(reg), 1);
    else c->f->float_free |= qjv_float_bit[qjv_number(reg)];
}

QJV_COLD int qjv_claim_classified(qjv_function *f, unsigned number, int is_float) {
    uint64_t bit = f->client ? qjv_register_bit(f, number, is_float) : 0;
    if (!bit || !(f->client_free[is_float] & bit)) return 0;
    f->client_free[is_float] ^= bit;
    *(is_float ? &f->float_touched : &f->int_touched) |= bit & qjv_class(qjv_client_registers(f, is_float), V_VAR);
    return 1;
}

/* Allocates a particular register, such as a hard-coded one, so that it is preserved if necessary; 0 if it is in use or
   not allocatable. */
QJV_INLINE int qjv_claim(qjv_asm *c, v_reg reg) {
    uint64_t bit = qjv_int_bit[qjv_number(reg)];
    if (!(c->f->int_free & bit)) return qjv_claim_classified(c->f, qjv_number(reg), 0);
    c->f->int_free ^= bit;
    c->f->int_touched |= bit & QJV_INT_SAVED;
    return 1;
}

QJV_INLINE int qjv_claim_float(qjv_asm *c, v_reg reg) {
    uint64_t bit = qjv_float_bit[qjv_number(reg)];
    if (!(c->f->float_free & bit)) return qjv_claim_classified(c->f, qjv_number(reg), 1);
    c->f->float_free ^= bit;
    c->f->float_touched |= bit & QJV_FLOAT_SAVED;
    return 1;
}

/* Allocates a variable on the stack, of the last type of a type string such as "%d". */
QJV_INLINE v_variable qjv_local(qjv_asm *c, char type) {
    uint32_t size = type == 'c' ? 1 : type == 's' ? 2 : type == 'd' ? 8 : type == 'l' || type == 'p' ? sizeof(long) : 4;
    return qjv_local_bytes(c->f, size, size);
}

/* Puts the address of a variable on the stack into a register, such as for a call that writes to it. */
QJV_INLINE void qjv_local_address(qjv_asm *c, v_reg d, v_variable local) {
    qjv_asm copy = *c;
    qjv_frame_address(&copy, d, local.offset);
    *c = copy;
}

#endif
