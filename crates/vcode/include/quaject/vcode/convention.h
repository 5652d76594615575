/* Calling conventions: the machine's own, and those of a client, which determine per function the locations of
   arguments and the preserved registers. The same as abi.rs of the Rust crate. Knows register numbers, not encodings.

       qjv_convention mine = qjv_own_convention();
       qjv_classify(&mine.ints, V_T0, V_VAR);                        functions preserve it now
       qjv_begin_with(&a, &f, storage, "%l", &x, QJV_LEAF, &mine);    mine is there until qjv_end

       qjv_convention all = qjv_handler_convention();                an interrupt handler: it preserves every register */
#ifndef QUAJECT_VCODE_CONVENTION_H
#define QUAJECT_VCODE_CONVENTION_H

#define QJV_COUNT(list) (sizeof(list) / sizeof((list)[0]) - 1)

#if defined(__x86_64__)
enum { QJV_INCOMING = 8, QJV_BOTTOM = 0, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 8,
       QJV_SITE_BACK = 1, QJV_JUMP_BYTES = 5, QJV_DELAY_SLOTS = 0, QJV_PROLOGUE = 64, QJV_RED_ZONE = 128 };
#elif defined(__aarch64__)
enum { QJV_INCOMING = 0, QJV_BOTTOM = 0, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 0,
       QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 0, QJV_PROLOGUE = 128, QJV_RED_ZONE = 0 };
#elif defined(__riscv)
enum { QJV_INCOMING = 0, QJV_BOTTOM = 0, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 0,
       QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 0, QJV_PROLOGUE = 160, QJV_RED_ZONE = 0 };
#elif defined(__mips__)
enum { QJV_INCOMING = 0, QJV_BOTTOM = 16, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 0,
       QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 1, QJV_PROLOGUE = 160, QJV_RED_ZONE = 0 };
#elif defined(__sparc__)
enum { QJV_INCOMING = 2047 + 128, QJV_BOTTOM = 176, QJV_BIAS = 2047, QJV_SINGLE_AT = 4, QJV_SINGLE_SHIFT = 1,
       QJV_MISALIGNED = 0, QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 1, QJV_PROLOGUE = 128, QJV_RED_ZONE = 0 };
#elif defined(__powerpc64__)
enum { QJV_INCOMING = 32, QJV_BOTTOM = 32, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 0,
       QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 0, QJV_PROLOGUE = 192, QJV_RED_ZONE = 512 };
#else
enum { QJV_INCOMING = 0, QJV_BOTTOM = 0, QJV_BIAS = 0, QJV_SINGLE_AT = 0, QJV_SINGLE_SHIFT = 0, QJV_MISALIGNED = 0,
       QJV_SITE_BACK = 0, QJV_JUMP_BYTES = 4, QJV_DELAY_SLOTS = 0, QJV_PROLOGUE = 128, QJV_RED_ZONE = 0 };
#endif

/* Whether an argument is one of a variadic function, and on which side of the `...` of its prototype. */
enum { QJV_NOT_VARIADIC, QJV_VARIADIC_FIXED, QJV_VARIADIC_REST };
typedef struct { uint32_t integer, floating, stack, variadic; } qjv_counters;
/* The location of a parameter: registers by number, or bytes of stack. */
enum { QJV_IN_INT, QJV_IN_FLOAT, QJV_IN_PAIR, QJV_ON_STACK };
typedef struct { int kind; uint32_t at, second; } qjv_place;

QJV_INLINE int qjv_is_float(char type) { return type == 'f' || type == 'd'; }

QJV_INLINE qjv_place qjv_make_place(int kind, uint32_t at, uint32_t second) {
    qjv_place place = {kind, at, second};
    return place;
}

/* The location of the next argument by the machine's own convention, given the argument registers. */
QJV_INLINE qjv_place qjv_place_among(qjv_counters *counters, char type, const uint8_t *int_args, uint32_t ints,
                                     const uint8_t *float_args, uint32_t floats) {
    uint32_t at;
#if defined(__mips__)
    uint32_t size = type == 'd' ? 8 : 4;
    at = (counters->stack + size - 1) & ~(size - 1);
    counters->stack = at + size;
    if (qjv_is_float(type) && !counters->integer && !counters->variadic && counters->floating < floats)
        return qjv_make_place(QJV_IN_FLOAT, float_args[counters->floating++], 0);
    counters->integer = 1;
    if (at / 4 >= ints) return qjv_make_place(QJV_ON_STACK, at, 0);
    if (type == 'd' && at / 4 + 1 < ints)
        return qjv_make_place(QJV_IN_PAIR, int_args[at / 4], int_args[at / 4 + 1]);
    return qjv_make_place(QJV_IN_INT, int_args[at / 4], 0);
#elif defined(__sparc__) || defined(__powerpc64__)
    at = counters->stack;
    counters->stack += 8;
    if (qjv_is_float(type) && counters->variadic != QJV_VARIADIC_REST) {
#if defined(__sparc__)
        uint32_t which = at / 8;
#else
        uint32_t which = counters->floating++;
#endif
        if (which < floats) return qjv_make_place(QJV_IN_FLOAT, float_args[which], 0);
    } else if (at / 8 < ints) {
        return qjv_make_place(QJV_IN_INT, int_args[at / 8], 0);
    }
    return qjv_make_place(QJV_ON_STACK, at, 0);
#else
#if defined(__alpha__)
    at = counters->integer++;
    if (qjv_is_float(type)) {
        if (at < floats) return qjv_make_place(QJV_IN_FLOAT, float_args[at], 0);
    } else if (at < ints) {
        return qjv_make_place(QJV_IN_INT, int_args[at], 0);
    }
#else
#if defined(__riscv)
    if (qjv_is_float(type) && counters->variadic != QJV_VARIADIC_REST) {
#else
    if (qjv_is_float(type)) {
#endif
        at = counters->floating++;
        if (at < floats) return qjv_make_place(QJV_IN_FLOAT, float_args[at], 0);
    }
#if !defined(__riscv)
    else
#endif
    {
        at = counters->integer++;
        if (at < ints) return qjv_make_place(QJV_IN_INT, int_args[at], 0);
    }
#endif
    at = counters->stack;
    counters->stack += 8;
    return qjv_make_place(QJV_ON_STACK, at, 0);
#endif
}

QJV_INLINE qjv_place qjv_next_place(qjv_counters *counters, char type) {
    return qjv_place_among(counters, type, qjv_int_args, QJV_COUNT(qjv_int_args), qjv_float_args, QJV_COUNT(qjv_float_args));
}

/* The next type of a type string, by its last letter, 'u' standing for itself, 'b' and 'h' for uc and us; 0 at the
   end, '.' for `...`, '?' if malformed. */
QJV_INLINE char qjv_next_type(const char **text) {
    const char *at = *text;
    char letter;
    while (*at == ' ') at++;
    if (!*at) return 0;
    if (*at != '%') {
        if (strncmp(at, "...", 3) != 0) return '?';
        *text = at + 3;
        return '.';
    }
    letter = at[1];
    at += 2;
    switch (letter) {
    case 'u':
        if (*at == 'c' || *at == 's') letter = *at++ == 'c' ? 'b' : 'h';
        else if (*at == 'l') at++, letter = 'l';
        break;
    case 'c': case 's': case 'i': case 'l': case 'p': case 'f': case 'd': break;
    default: return '?';
    }
    *text = at;
    return letter;
}

/* Whether a type has 8 or 16 bits. */
QJV_INLINE int qjv_is_narrow(char type) { return type == 'c' || type == 'b' || type == 's' || type == 'h'; }

/* The locations of the arguments of a type string, in order. */
QJV_INLINE qjv_counters qjv_first_argument(const char *types) {
    qjv_counters counters = {0, 0, 0, QJV_NOT_VARIADIC};
    if (strchr(types, '.')) counters.variadic = QJV_VARIADIC_FIXED;
    return counters;
}

/* The next type of a call: after `...` the rest begins, in which C passes a double for a float. */
QJV_INLINE char qjv_next_argument(qjv_counters *counters, const char **text) {
    char type = qjv_next_type(text);
    if (type == '.') {
        if (counters->variadic == QJV_VARIADIC_REST) return '?';
        counters->variadic = QJV_VARIADIC_REST;
        type = qjv_next_type(text);
    }
    return type == '.' || (type == 'f' && counters->variadic == QJV_VARIADIC_REST) ? '?' : type;
}

/* Neither class, for qjv_classify: functions do not use the register. */
enum { V_UNAVAILABLE = -1 };
/* Positions of registers by class: first those that calls may destroy, then those that functions preserve. */
enum { QJV_MAX_REGISTERS = 32 };

/* The registers of one file by class, in order of allocation, and those of arguments. Empty if zero. */
typedef struct {
    uint8_t order[2 * QJV_MAX_REGISTERS], args[QJV_MAX_REGISTERS];
    /* Counts by class, and of args. */
    uint8_t count[2];
    uint8_t arguments;
} qjv_registers;

/* Whether a function preserves the scratch registers and the other state that instructions change and the processor
 * does not save for a handler. */
typedef enum { QJV_SCRATCH_FREE, QJV_SCRATCH_PRESERVED } qjv_scratch;

/* A calling convention. Functions whose scratch registers are preserved are interrupt handlers: they return nothing,
   may be entered on the stack of what they interrupt, and call functions of C. Of floating registers they preserve the
   eight bytes of a double: code that uses vectors must save these before it enters a handler that uses floats. On
   x86-64 the return address would overlap the red zone of the interrupted code: the code that enters a handler must
   lower the stack pointer before. */
typedef struct qjv_convention {
    qjv_registers ints, floats;
    /* The location of the next argument, of a type by the last letter of its name: a register of args, or the bytes
       that it adds to the stack. Null selects the rule of the machine, which uses args in order. */
    qjv_place (*place)(const struct qjv_convention *convention, qjv_counters *counters, char type);
    qjv_scratch scratch;
} qjv_convention;

/* The position of a register; -1 if it is in no class. */
QJV_OUTLINE int qjv_position(const qjv_registers *registers, unsigned number) {
    for (int class_ = V_TEMP; class_ <= V_VAR; class_++)
        for (int index = 0; index < registers->count[class_]; index++)
            if (registers->order[QJV_MAX_REGISTERS * class_ + index] == number) return QJV_MAX_REGISTERS * class_ + index;
    return -1;
}

QJV_OUTLINE uint64_t qjv_set_of(const qjv_registers *registers, unsigned number) {
    int position = qjv_position(registers, number);
    return position < 0 ? 0 : (uint64_t)1 << position;
}

/* All registers of a class. */
QJV_OUTLINE uint64_t qjv_class(const qjv_registers *registers, int class_) {
    return (((uint64_t)1 << registers->count[class_]) - 1) << (QJV_MAX_REGISTERS * class_);
}

/* Moves a register to the end of a class: V_TEMP, calls may destroy it; V_VAR, functions preserve it; V_UNAVAILABLE. */
QJV_COLD void qjv_classify(qjv_registers *registers, v_reg reg, int class_) {
    int number = (int)qjv_number(reg) & (QJV_MAX_REGISTERS - 1), at = qjv_position(registers, (unsigned)number);
    if (at >= 0) {
        int old = at / QJV_MAX_REGISTERS, end = QJV_MAX_REGISTERS * old + --registers->count[old];
        for (; at < end; at++) registers->order[at] = registers->order[at + 1];
    }
    if (class_ == V_TEMP || class_ == V_VAR)
        registers->order[QJV_MAX_REGISTERS * class_ + registers->count[class_]++] = (uint8_t)number;
}

/* Sets the argument registers, in order. */
QJV_COLD void qjv_carry_arguments(qjv_registers *registers, const v_reg *args, size_t count) {
    registers->arguments = (uint8_t)(count < QJV_MAX_REGISTERS ? count : (size_t)QJV_MAX_REGISTERS);
    for (size_t index = 0; index < registers->arguments; index++) registers->args[index] = (uint8_t)qjv_number(args[index]);
}

/* Fills one file with the machine's registers. */
QJV_COLD void qjv_own_registers(qjv_registers *registers, const uint8_t *temp, size_t temps, const uint8_t *saved,
                                size_t saveds, const uint8_t *args, size_t arguments) {
    memcpy(registers->order, temp, temps);
    memcpy(registers->order + QJV_MAX_REGISTERS, saved, saveds);
    memcpy(registers->args, args, arguments);
    registers->count[V_TEMP] = (uint8_t)temps;
    registers->count[V_VAR] = (uint8_t)saveds;
    registers->arguments = (uint8_t)arguments;
}

/* The convention of C, as a starting point. */
QJV_COLD qjv_convention qjv_own_convention(void) {
    qjv_convention own;
    memset(&own, 0, sizeof own);
    qjv_own_registers(&own.ints, qjv_int_temp, QJV_COUNT(qjv_int_temp), qjv_int_saved, QJV_COUNT(qjv_int_saved),
                      qjv_int_args, QJV_COUNT(qjv_int_args));
    qjv_own_registers(&own.floats, qjv_float_temp, QJV_COUNT(qjv_float_temp), qjv_float_saved, QJV_COUNT(qjv_float_saved),
                      qjv_float_args, QJV_COUNT(qjv_float_args));
    own.scratch = QJV_SCRATCH_FREE;
    return own;
}

/* The convention of interrupt handlers: every allocatable register is preserved. */
QJV_COLD qjv_convention qjv_handler_convention(void) {
    qjv_convention handler = qjv_own_convention();
    while (handler.ints.count[V_TEMP]) qjv_classify(&handler.ints, qjv_reg(handler.ints.order[0]), V_VAR);
    while (handler.floats.count[V_TEMP]) qjv_classify(&handler.floats, qjv_reg(handler.floats.order[0]), V_VAR);
    handler.scratch = QJV_SCRATCH_PRESERVED;
    return handler;
}

/* Whether every register is allocatable in the machine's own convention, and none is listed twice. */
QJV_COLD int qjv_registers_are_own(const qjv_registers *registers, const uint64_t *own) {
    uint64_t seen[2] = {0, 0};
    for (unsigned at = 0; at < 3 * QJV_MAX_REGISTERS; at++) {
        int is_argument = at >= 2 * QJV_MAX_REGISTERS;
        unsigned index = at % QJV_MAX_REGISTERS;
        unsigned count = is_argument ? registers->arguments : registers->count[at / QJV_MAX_REGISTERS];
        unsigned number = is_argument ? registers->args[index] : registers->order[at];
        if (count > QJV_MAX_REGISTERS) return 0;
        if (index >= count) continue;
        if (number >= QJV_MAX_REGISTERS || !own[number] || seen[is_argument] >> number & 1) return 0;
        seen[is_argument] |= (uint64_t)1 << number;
    }
    return 1;
}

/* Whether functions can be written with a convention. */
QJV_COLD qjv_error qjv_check_convention(const qjv_convention *convention) {
    uint64_t of_results;
    if (!qjv_registers_are_own(&convention->ints, qjv_int_bit) || !qjv_registers_are_own(&convention->floats, qjv_float_bit))
        return QJV_ERROR_REGISTER_TAKEN;
    of_results = qjv_set_of(&convention->ints, qjv_number(V_RESULT)) & qjv_class(&convention->ints, V_VAR);
    of_results |= qjv_set_of(&convention->floats, qjv_number(V_FRESULT)) & qjv_class(&convention->floats, V_VAR);
    if (of_results && convention->scratch == QJV_SCRATCH_FREE) return QJV_ERROR_RESULT_PRESERVED;
    return QJV_OK;
}

QJV_COLD qjv_place qjv_client_place(const qjv_convention *convention, qjv_counters *counters, char type) {
    const qjv_registers *ints = &convention->ints, *floats = &convention->floats;
    if (convention->place) return convention->place(convention, counters, type == 'b' || type == 'h' ? 'u' : type);
    return qjv_place_among(counters, type, ints->args, ints->arguments, floats->args, floats->arguments);
}

/* Assigns an argument to a register; 0 if the register may not carry one or carries another. */
QJV_COLD int qjv_carries(const qjv_registers *registers, uint64_t *taken, uint32_t number) {
    for (unsigned index = 0; index < registers->arguments; index++) {
        if (registers->args[index] != number) continue;
        if (*taken >> number & 1) return 0;
        *taken |= (uint64_t)1 << number;
        return 1;
    }
    return 0;
}

/* The locations of all arguments of a signature; registers by number. */
typedef struct { qjv_counters counters; uint64_t ints, floats; size_t count; } qjv_places;

/* Checks the locations that a client's convention assigns. */
QJV_COLD qjv_error qjv_check_places(const qjv_convention *convention, const char *types, qjv_places *places) {
    char type;
    memset(places, 0, sizeof *places);
    places->counters = qjv_first_argument(types);
    while ((type = qjv_next_argument(&places->counters, &types)) != 0) {
        uint32_t before = places->counters.stack, size = type == 'd' ? 8 : sizeof(long);
        int is_pair = type == 'd' && sizeof(long) == 4, possible = 0;
        qjv_place place;
        if (type == '?') return QJV_ERROR_SIGNATURE;
        place = qjv_client_place(convention, &places->counters, type);
        if (place.kind == QJV_IN_INT) {
            possible = !is_pair && qjv_carries(&convention->ints, &places->ints, place.at);
        } else if (place.kind == QJV_IN_FLOAT) {
            possible = qjv_is_float(type) && qjv_carries(&convention->floats, &places->floats, place.at);
        } else if (place.kind == QJV_IN_PAIR) {
            possible = is_pair && qjv_carries(&convention->ints, &places->ints, place.at) &&
                       qjv_carries(&convention->ints, &places->ints, place.second);
        } else if (place.kind == QJV_ON_STACK) {
            possible = place.at % size == 0 && place.at >= before && (uint64_t)place.at + size <= places->counters.stack;
        }
        if (!possible || places->counters.stack > 1u << 20) return QJV_ERROR_PLACE;
        places->count++;
    }
    return QJV_OK;
}

#endif
