/* quaject/vcode-layers.h as a client uses it: functions with more values than the machine has registers, calls, floats,
   arithmetic with constants, the window, code memory; and every error that a client can cause. */
#include <quaject/vcode-layers.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

static qjl_memory *memory;

#define CHECK(condition) check((condition), #condition, __LINE__)
static void check(bool condition, const char *text, int line) {
    if (condition) return;
    fprintf(stderr, "line %d: %s\n", line, text);
    exit(1);
}

/* An object pointer as a pointer to a function, which ISO C does not convert. */
typedef void (*function)(void);
static function as_function(void *address) {
    function result;
    memcpy(&result, &address, sizeof result);
    return result;
}

static uint64_t address_of(function own) {
    uintptr_t address;
    memcpy(&address, &own, sizeof address);
    return address;
}

static qjl_function *begin(struct qjl_options options, const char *types, qjl_reg *parameters, size_t count) {
    qjl_function *f;
    const int status = qjl_begin(&options, types, parameters, count, &f);
    if (status) fprintf(stderr, "%s\n", qjl_error_text(status));
    CHECK(status == QJL_OK && f);
    return f;
}

/* Ends, installs and frees a function. */
static function finish(qjl_function *f) {
    void *made = NULL;
    struct qjl_code code;
    if (qjl_end(f, &code) || qjl_install(f, memory, &made)) fprintf(stderr, "%s\n", qjl_message(f));
    CHECK(made != NULL && code.bytes && code.entry < 16 && code.instructions <= code.length);
    qjl_free(f);
    return as_function(made);
}

static long sum_of_four(long a, double b, long c, double d) { return a + (long)b + c + (long)d; }
static unsigned char low(unsigned value) { return (unsigned char)value; }

/* A hundred integers and a hundred doubles live at once, across calls and branches. */
static void many_registers(int register_class) {
    enum { COUNT = 100 };
    qjl_reg parameters[2], ints[COUNT], floats[COUNT], t;
    qjl_function *f = begin((struct qjl_options){.bytes = 1 << 16, .labels = 256, .constants = 128}, "%l%d", parameters, 2);
    int spilled = 0;
    for (int at = 0; at < COUNT; at++) {
        CHECK(!qjl_getreg(f, &ints[at], register_class) && !qjl_getfloat(f, &floats[at], register_class));
        qjl_addli(f, ints[at], parameters[0], at);
        qjl_setd(f, floats[at], at);
        qjl_addd(f, floats[at], floats[at], parameters[1]);
        spilled += qjl_register_number(f, ints[at]) < 0;
    }
    CHECK(register_class == QJL_COLD ? spilled == COUNT : spilled > 50 && spilled < COUNT);
    qjl_getreg(f, &t, QJL_VAR);
    qjl_setl(f, t, 0);
    for (int at = 0; at < COUNT && register_class != QJL_TEMP; at += 10) {
        const qjl_operand arguments[] = {qjl_in(ints[at]), qjl_in(floats[at]), qjl_value(3), qjl_in(floats[at + 1])};
        CHECK(!qjl_call(f, "%l%d%l%d", qjl_at_address(address_of((function)sum_of_four)), arguments, 4));
        CHECK(!qjl_take_result(f, ints[at]));
    }
    const qjl_label again = qjl_genlabel(f), done = qjl_genlabel(f);
    qjl_bind(f, again);
    qjl_bgtli(f, t, 1000, done);
    for (int at = 0; at < COUNT; at++) {
        qjl_reg x;
        qjl_addl(f, t, t, ints[at]);
        qjl_getreg(f, &x, QJL_TEMP);
        qjl_cvd2l(f, x, floats[at]);
        qjl_addl(f, t, t, x);
        qjl_putreg(f, x);
    }
    qjl_j(f, again);
    qjl_bind(f, done);
    qjl_retl(f, t);
    long (*made)(long, double) = (long (*)(long, double))finish(f);
    for (long x = 0; x < 3; x++) {
        long once = 0, expected = 0;
        for (long at = 0; at < COUNT; at++) {
            const bool called = register_class != QJL_TEMP && at % 10 == 0;
            once += at + 2;
            once += called ? (at + x) + (at + 2) + 3 + (at + 1 + 2) : at + x;
        }
        while (expected <= 1000) expected += once;
        CHECK(made(x, 2.5) == expected);
    }
}

/* Recursion, a narrow result, a variadic call, a tail call and a jump table, in both layers. */
static void calls(int layer) {
    qjl_reg n, t;
    qjl_function *f = begin((struct qjl_options){.layer = layer}, "%l", &n, 1);
    qjl_label more = qjl_genlabel(f);
    qjl_getreg(f, &t, QJL_TEMP);
    qjl_bgeli(f, n, 2, more);
    qjl_setl(f, n, 1);
    qjl_retl(f, n);
    qjl_bind(f, more);
    qjl_subli(f, t, n, 1);
    const qjl_operand less[] = {qjl_in(t)};
    qjl_call(f, "%l", qjl_itself(), less, 1);
    qjl_take_result(f, t);
    qjl_mull(f, n, n, t);
    qjl_retl(f, n);
    CHECK(((long (*)(long))finish(f))(10) == 3628800);

    f = begin((struct qjl_options){.layer = layer}, "%u", &n, 1);
    const qjl_operand list[] = {qjl_in(n)};
    qjl_call(f, "%u", qjl_at_address(address_of((function)low)), list, 1);
    qjl_take_result(f, n);
    qjl_cvi2uc(f, n, n);
    qjl_retu(f, n);
    CHECK(((unsigned (*)(unsigned))finish(f))(0x12345678) == 0x78);

    qjl_reg print[3];
    f = begin((struct qjl_options){.layer = layer}, "%p%l%d", print, 3);
    const qjl_operand printed[] = {
        qjl_in(print[0]), qjl_value(64), qjl_value((int64_t)(intptr_t) "%ld %.1f"), qjl_in(print[1]), qjl_in(print[2])};
    qjl_call(f, "%p%ul%p...%l%d", qjl_at_address(address_of((function)snprintf)), printed, 5);
    qjl_retv(f);
    char text[64];
    ((void (*)(char *, long, double))finish(f))(text, -5, 2.5);
    CHECK(strcmp(text, "-5 2.5") == 0);

    qjl_reg both[2];
    f = begin((struct qjl_options){.layer = layer, .kind = QJL_LEAF}, "%l%d", both, 2);
    const qjl_operand changed[] = {qjl_in(both[0]), qjl_in(both[1]), qjl_value(3), qjl_in(both[1])};
    qjl_tail_call(f, "%l%d%l%d", qjl_at_address(address_of((function)sum_of_four)), changed, 4);
    CHECK(((long (*)(long, double))finish(f))(1, 2) == 8);

    f = begin((struct qjl_options){.layer = layer}, "%ul", &n, 1);
    const qjl_label seven = qjl_genlabel(f), eight = qjl_genlabel(f), nine = qjl_genlabel(f);
    const qjl_label labels[] = {seven, eight, seven};
    qjl_jump_table(f, n, labels, 3, &nine);
    for (int at = 0; at < 3; at++) {
        qjl_bind(f, at == 0 ? seven : at == 1 ? eight : nine);
        qjl_setl(f, n, 7 + at);
        qjl_retl(f, n);
    }
    long (*table)(unsigned long) = (long (*)(unsigned long))finish(f);
    CHECK(table(0) == 7 && table(1) == 8 && table(2) == 7 && table(3) == 9 && table(99) == 9);

    qjl_reg link;
    f = begin((struct qjl_options){.layer = layer}, "%l", &n, 1);
    qjl_getreg(f, &link, QJL_VAR);
    const qjl_label ten_more = qjl_genlabel(f);
    qjl_jal(f, ten_more);
    qjl_jal(f, ten_more);
    qjl_retl(f, n);
    qjl_procedure(f, ten_more, link);
    qjl_addli(f, n, n, 10);
    qjl_jr(f, link);
    CHECK(((long (*)(long))finish(f))(1) == 21);
}

/* Variables and blocks on the stack, and their addresses. */
static void variables(int layer) {
    qjl_reg n, at;
    qjl_function *f = begin((struct qjl_options){.layer = layer, .kind = QJL_LEAF}, "%l", &n, 1);
    const qjl_variable one = qjl_local(f, QJL_L), block = qjl_local_bytes(f, 24, 8);
    qjl_stl_local(f, n, one);
    qjl_stl_local(f, n, qjl_plus(block, 16));
    qjl_getreg(f, &at, QJL_TEMP);
    qjl_local_address(f, at, block);
    qjl_ldli(f, n, at, 16);
    qjl_ldl_local(f, at, one);
    qjl_addl(f, n, n, at);
    qjl_retl(f, n);
    CHECK(((long (*)(long))finish(f))(21) == 42);
}

static const int64_t constants[] = {1, -1, 2, -2, 3, -3, 5, 7, 10, -10, 12, 25, 60, 100, 641, 1000, 4096, 65535, -65536,
                                    1000003, INT32_MAX, INT32_MIN};
static const int64_t numbers[] = {0, 1, -1, 2, 7, 9, 10, -10, 99, 100, 12345, -12345, 4096, INT32_MAX, INT32_MIN};
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* Every constant with every number, in all four types. */
static void strength(int layer) {
    for (size_t which = 0; which < LENGTH(constants); which++) {
        const int64_t c = constants[which];
        for (int operation = 0; operation < 12; operation++) {
            qjl_reg n;
            static const char *const types[] = {"%i", "%u", "%l", "%ul"};
            qjl_function *f = begin(
                (struct qjl_options){.layer = layer, .kind = QJL_LEAF}, types[operation / 3], &n, 1);
            switch (operation) {
            case 0: qjl_mulki(f, n, n, c); break;
            case 1: qjl_divki(f, n, n, c); break;
            case 2: qjl_modki(f, n, n, c); break;
            case 3: qjl_mulku(f, n, n, (uint32_t)c); break;
            case 4: qjl_divku(f, n, n, (uint32_t)c); break;
            case 5: qjl_modku(f, n, n, (uint32_t)c); break;
            case 6: qjl_mulkl(f, n, n, c); break;
            case 7: qjl_divkl(f, n, n, c); break;
            case 8: qjl_modkl(f, n, n, c); break;
            case 9: qjl_mulkul(f, n, n, (uint64_t)c); break;
            case 10: qjl_divkul(f, n, n, (uint64_t)c); break;
            case 11: qjl_modkul(f, n, n, (uint64_t)c); break;
            }
            static int (*const returns[])(qjl_function *, qjl_reg) = {qjl_reti, qjl_retu, qjl_retl, qjl_retul};
            returns[operation / 3](f, n);
            const function made = finish(f);
            for (size_t index = 0; index < LENGTH(numbers); index++) {
                const int64_t x = numbers[index];
                /* Overflows in C; the machine's result is that of 64 bits, cut. */
                if (c == -1 && x == INT32_MIN && operation < 3) continue;
                const uint32_t u = (uint32_t)x, v = (uint32_t)c;
                const uint64_t ul = (uint64_t)x, vl = (uint64_t)c;
                switch (operation) {
                case 0: CHECK(((int (*)(int))made)((int)x) == (int)(u * v)); break;
                case 1: CHECK(((int (*)(int))made)((int)x) == (int)x / (int)c); break;
                case 2: CHECK(((int (*)(int))made)((int)x) == (int)x % (int)c); break;
                case 3: CHECK(((unsigned (*)(unsigned))made)(u) == u * v); break;
                case 4: CHECK(((unsigned (*)(unsigned))made)(u) == u / v); break;
                case 5: CHECK(((unsigned (*)(unsigned))made)(u) == u % v); break;
                case 6: CHECK(((int64_t(*)(int64_t))made)(x) == x * c); break;
                case 7: CHECK(((int64_t(*)(int64_t))made)(x) == x / c); break;
                case 8: CHECK(((int64_t(*)(int64_t))made)(x) == x % c); break;
                case 9: CHECK(((uint64_t(*)(uint64_t))made)(ul) == ul * vl); break;
                case 10: CHECK(((uint64_t(*)(uint64_t))made)(ul) == ul / vl); break;
                case 11: CHECK(((uint64_t(*)(uint64_t))made)(ul) == ul % vl); break;
                }
            }
            void *address;
            memcpy(&address, &made, sizeof address);
            CHECK(qjl_uninstall(memory, address) == QJL_OK);
            CHECK(qjl_uninstall(memory, address) == QJL_ERROR_NOT_INSTALLED);
        }
    }
}

/* The window removes what is not needed: the function of both layers is the same, and shorter. */
static void window(void) {
    size_t lengths[2];
    for (int layer = 0; layer < 2; layer++) {
        qjl_reg x, t;
        qjl_function *f = begin((struct qjl_options){.layer = layer, .kind = QJL_LEAF}, "%l", &x, 1);
        struct qjl_code code;
        void *made = NULL;
        qjl_getreg(f, &t, QJL_TEMP);
        qjl_setl(f, t, 5);
        qjl_addl(f, t, x, t);
        qjl_movl(f, x, t);
        qjl_putreg(f, t);
        qjl_retl(f, x);
        CHECK(!qjl_end(f, &code) && !qjl_install(f, memory, &made));
        lengths[layer] = code.instructions;
        CHECK(((long (*)(long))as_function(made))(37) == 42);
        qjl_free(f);
    }
    CHECK(lengths[QJL_PEEPHOLE] < lengths[QJL_VIRTUAL]);

    /* Loads from the same place: the second is needed only if other code may store in between. */
    size_t loads[2];
    for (int flushed = 0; flushed < 2; flushed++) {
        qjl_reg both[2];
        struct qjl_code code;
        qjl_function *f = begin((struct qjl_options){.layer = QJL_PEEPHOLE, .kind = QJL_LEAF}, "%p%l", both, 2);
        qjl_stli(f, both[1], both[0], 0);
        qjl_ldli(f, both[1], both[0], 0);
        if (flushed) qjl_flush(f);
        qjl_ldli(f, both[1], both[0], 0);
        qjl_retl(f, both[1]);
        CHECK(!qjl_end(f, &code));
        loads[flushed] = code.instructions;
        qjl_free(f);
    }
    CHECK(loads[0] < loads[1]);
}

/* Instructions by name, as a reader of text uses them. */
static void by_name(void) {
    qjl_reg x;
    qjl_function *f = begin((struct qjl_options){.kind = QJL_LEAF, .features = qjl_detect_features()}, "%i", &x, 1);
    const qjl_operand add[] = {qjl_in(x), qjl_in(x), qjl_value(1)};
    CHECK(qjl_find_instruction("no such") == -1 && qjl_find_instruction(NULL) == -1);
    CHECK(!qjl_emit(f, qjl_find_instruction("addii"), add, 3));
    CHECK(!qjl_emit(f, qjl_find_instruction("reti"), add, 1));
    CHECK(((int (*)(int))finish(f))(41) == 42);
}

/* The error of a function, which sticks, and is reported at the end. */
static void fails(qjl_function *f, int expected, int line) {
    struct qjl_code code;
    void *made = NULL;
    const int found = qjl_error(f) ? qjl_error(f) : qjl_end(f, &code);
    if (found != expected) fprintf(stderr, "line %d: error %d: %s\n", line, found, qjl_message(f));
    CHECK(found == expected && qjl_error(f) == expected && *qjl_message(f));
    CHECK(strstr(qjl_message(f), qjl_error_text(expected)) != NULL);
    qjl_reg x;
    CHECK(qjl_getreg(f, &x, QJL_TEMP) == expected && qjl_fence(f) == expected && qjl_end(f, &code) == expected);
    CHECK(code.bytes == NULL && qjl_install(f, memory, &made) == expected && made == NULL);
    qjl_free(f);
}
#define FAILS(expected) fails(f, expected, __LINE__)

/* Every code has a text of its own, which says what to do after a colon; other numbers have a common one. */
static void texts(void) {
    int known = 0;
    for (int code = QJL_OK; code < 64; code++) {
        const char *text = qjl_error_text(code);
        if (strcmp(text, qjl_error_text(-1)) == 0) continue;
        known++;
        for (int other = 0; other < code; other++) CHECK(strcmp(text, qjl_error_text(other)) != 0);
    }
    CHECK(known == 35 && *qjl_error_text(QJL_ERROR_INTERNAL) && *qjl_error_text(QJL_ERROR_PROCEDURE));
}

static void errors(int layer) {
    const struct qjl_options plain = {.layer = layer};
    qjl_function *f, *other = NULL;
    qjl_reg x, d, t;
    qjl_label label;

    /* What is refused before a function is there. */
    struct qjl_options wrong = plain;
    CHECK(qjl_begin(&plain, "%l", NULL, 1, &f) == QJL_ERROR_NULL && !f);
    CHECK(qjl_begin(&plain, "%l", &x, 0, &f) == QJL_ERROR_ARGUMENTS && !f);
    CHECK(strstr(qjl_message(NULL), "`begin`: 0 parameters for `%l`"));
    CHECK(qjl_begin(&plain, "%q", &x, 1, &f) == QJL_ERROR_SIGNATURE && !f);
    CHECK(qjl_begin(&plain, "\xff", &x, 1, &f) == QJL_ERROR_SIGNATURE && !f);
    CHECK(qjl_begin(&plain, NULL, &x, 1, &f) == QJL_ERROR_NULL && !f);
    CHECK(qjl_begin(&plain, "", NULL, 0, NULL) == QJL_ERROR_NULL);
    wrong.machine = 8;
    CHECK(qjl_begin(&wrong, "%l", &x, 1, &f) == QJL_ERROR_OPTION && !f);
    CHECK(strstr(qjl_message(NULL), "`machine` is 8"));
    wrong = plain, wrong.layer = -1;
    CHECK(qjl_begin(&wrong, "%l", &x, 1, &f) == QJL_ERROR_OPTION && !f);
    wrong = plain, wrong.kind = 2;
    CHECK(qjl_begin(&wrong, "%l", &x, 1, &f) == QJL_ERROR_OPTION && !f);
    wrong = plain, wrong.bytes = SIZE_MAX;
    CHECK(qjl_begin(&wrong, "%l", &x, 1, &f) == QJL_ERROR_OPTION && !f);
    wrong = plain, wrong.labels = SIZE_MAX / 2;
    CHECK(qjl_begin(&wrong, "%l", &x, 1, &f) == QJL_ERROR_OPTION && !f);
    wrong = plain, wrong.bytes = 16;
    CHECK(qjl_begin(&wrong, "%l", &x, 1, &f) == QJL_ERROR_OVERFLOW && !f);
    /* The null function that is left is refused by everything. */
    CHECK(qjl_addii(NULL, x, x, 1) == QJL_ERROR_NULL && qjl_end(NULL, NULL) == QJL_ERROR_NULL);
    CHECK(qjl_getreg(NULL, &x, QJL_TEMP) == QJL_ERROR_NULL && qjl_error(NULL) == QJL_ERROR_NULL);
    CHECK(qjl_genlabel(NULL).function == 0 && qjl_local(NULL, QJL_I).function == 0 && *qjl_message(NULL));
    qjl_free(NULL);
    CHECK(qjl_uninstall(memory, NULL) == QJL_OK && qjl_uninstall(memory, &x) == QJL_ERROR_NOT_INSTALLED);
    CHECK(*qjl_error_text(12345));

    /* Registers. */
    f = begin(plain, "%l%d", (qjl_reg[2]){{0, 0}}, 2);
    qjl_addl(f, (qjl_reg){0, 0}, (qjl_reg){0, 0}, (qjl_reg){0, 0});
    FAILS(QJL_ERROR_REGISTER);
    f = begin(plain, "%l", &x, 1);
    x.index = 77;
    qjl_retl(f, x);
    FAILS(QJL_ERROR_REGISTER);
    f = begin(plain, "%l", &x, 1);
    qjl_getreg(f, &t, QJL_TEMP);
    qjl_setl(f, t, 1);
    qjl_putreg(f, t);
    qjl_addl(f, x, x, t);
    CHECK(strstr(qjl_message(f), "`addl`") && strstr(qjl_message(f), "call 4"));
    FAILS(QJL_ERROR_REGISTER);
    f = begin(plain, "%l", &x, 1);
    qjl_getreg(f, &t, QJL_TEMP);
    qjl_putreg(f, t);
    qjl_putreg(f, t);
    FAILS(QJL_ERROR_REGISTER);
    other = begin(plain, "%l", &t, 1);
    f = begin(plain, "%l", &x, 1);
    qjl_addl(f, x, x, t);
    FAILS(QJL_ERROR_REGISTER);
    label = qjl_genlabel(other);
    f = begin(plain, "%l", &x, 1);
    qjl_j(f, label);
    FAILS(QJL_ERROR_LABEL);
    f = begin(plain, "%l", &x, 1);
    qjl_bind(f, (qjl_label){3, 0});
    FAILS(QJL_ERROR_LABEL);
    const qjl_variable variable = qjl_local(other, QJL_L);
    f = begin(plain, "%l", &x, 1);
    qjl_ldl_local(f, x, variable);
    FAILS(QJL_ERROR_VARIABLE);
    qjl_free(other);
    f = begin(plain, "%l", &x, 1);
    qjl_getfloat(f, &d, QJL_TEMP);
    qjl_addl(f, x, x, d);
    FAILS(QJL_ERROR_REGISTER_CLASS);
    f = begin(plain, "%l", &x, 1);
    qjl_retd(f, x);
    FAILS(QJL_ERROR_REGISTER_CLASS);
    f = begin(plain, "%l", &x, 1);
    qjl_getreg(f, &t, 3);
    FAILS(QJL_ERROR_OPTION);
    if (layer == QJL_PEEPHOLE) {
        int made = 0;
        f = begin(plain, "%l", &x, 1);
        while (!qjl_getreg(f, &t, QJL_TEMP)) made++;
        CHECK(made > 3 && qjl_getreg(f, &t, QJL_TEMP) == QJL_ERROR_REGISTERS && !qjl_error(f));
        CHECK(qjl_getreg(f, &t, QJL_COLD) == QJL_ERROR_REGISTERS && t.function == 0);
        qjl_retl(f, x);
        finish(f);
    }

    /* Labels. */
    f = begin(plain, "%l", &x, 1);
    qjl_genlabel(f);
    label = qjl_genlabel(f);
    qjl_beqli(f, x, 0, label);
    qjl_retl(f, x);
    CHECK(qjl_end(f, NULL) == QJL_ERROR_UNBOUND_LABEL && strstr(qjl_message(f), "label 1"));
    FAILS(QJL_ERROR_UNBOUND_LABEL);
    f = begin(plain, "%l", &x, 1);
    label = qjl_genlabel(f);
    qjl_bind(f, label);
    qjl_bind(f, label);
    FAILS(QJL_ERROR_BOUND_TWICE);
    f = begin((struct qjl_options){.layer = layer, .labels = 4}, "%l", &x, 1);
    for (int at = 0; at < 5; at++) qjl_genlabel(f);
    FAILS(QJL_ERROR_LABELS);
    f = begin((struct qjl_options){.layer = layer, .references = 4}, "%l", &x, 1);
    label = qjl_genlabel(f);
    for (int at = 0; at < 8; at++) qjl_beqli(f, x, at, label);
    qjl_flush(f);
    FAILS(QJL_ERROR_FIXUPS);
    f = begin(plain, "%l", &x, 1);
    label = qjl_genlabel(f);
    qjl_jal(f, label);
    qjl_bind(f, label);
    qjl_retl(f, x);
    FAILS(QJL_ERROR_PROCEDURE);

    /* Operands. */
    f = begin(plain, "%l", &x, 1);
    qjl_addii(f, x, x, INT64_C(1) << 40);
    FAILS(QJL_ERROR_IMMEDIATE);
    f = begin(plain, "%l", &x, 1);
    qjl_divii(f, x, x, UINT32_MAX);
    FAILS(QJL_ERROR_IMMEDIATE);
    f = begin(plain, "%l", &x, 1);
    qjl_lshli(f, x, x, 64);
    qjl_flush(f);
    FAILS(QJL_ERROR_IMMEDIATE);
    f = begin(plain, "%l", &x, 1);
    qjl_ldli(f, x, x, INT64_C(1) << 31);
    FAILS(QJL_ERROR_IMMEDIATE);
    f = begin(plain, "%l", &x, 1);
    qjl_mulki(f, x, x, INT64_C(1) << 40);
    FAILS(QJL_ERROR_IMMEDIATE);
    f = begin(plain, "%l", &x, 1);
    qjl_multiply(f, QJL_D, x, x, 3);
    FAILS(QJL_ERROR_OPTION);
    const qjl_operand two[] = {qjl_in(x), qjl_value(1)};
    f = begin(plain, "%l", &x, 1);
    qjl_emit(f, qjl_find_instruction("addl"), two, 2);
    FAILS(QJL_ERROR_OPERANDS);
    f = begin(plain, "%l", &x, 1);
    const qjl_operand mixed[] = {qjl_in(x), qjl_in(x), qjl_value(1), qjl_value(2), qjl_value(3)};
    qjl_emit(f, qjl_find_instruction("addl"), mixed, 3);
    FAILS(QJL_ERROR_OPERANDS);
    f = begin(plain, "%l", &x, 1);
    qjl_emit(f, 0, mixed, 5);
    FAILS(QJL_ERROR_OPERANDS);
    f = begin(plain, "%l", &x, 1);
    qjl_emit(f, 0, NULL, 3);
    FAILS(QJL_ERROR_NULL);
    f = begin(plain, "%l", &x, 1);
    qjl_emit(f, 100000, mixed, 3);
    FAILS(QJL_ERROR_INSTRUCTION);
    f = begin(plain, "%l", &x, 1);
    qjl_operand unknown = qjl_value(1);
    unknown.kind = 9;
    qjl_emit(f, 0, &unknown, 1);
    FAILS(QJL_ERROR_OPERANDS);

    /* Variables. */
    f = begin(plain, "%l", &x, 1);
    qjl_stl_local(f, x, qjl_plus(qjl_local_bytes(f, 16, 8), 12));
    FAILS(QJL_ERROR_VARIABLE);
    f = begin(plain, "%l", &x, 1);
    qjl_stl_local(f, x, qjl_plus(qjl_local(f, QJL_L), -8));
    FAILS(QJL_ERROR_VARIABLE);
    f = begin(plain, "%l", &x, 1);
    qjl_local_bytes(f, 16, 3);
    FAILS(QJL_ERROR_OPTION);
    f = begin(plain, "%l", &x, 1);
    qjl_local_bytes(f, SIZE_MAX, 8);
    FAILS(QJL_ERROR_FRAME);
    f = begin(plain, "%l", &x, 1);
    qjl_local(f, 11);
    FAILS(QJL_ERROR_OPTION);

    /* Calls. */
    qjl_operand arguments[40];
    f = begin(plain, "%l", &x, 1);
    for (int at = 0; at < 40; at++) arguments[at] = qjl_in(x);
    qjl_call(f, "%l", qjl_at_address(1), arguments, 2);
    FAILS(QJL_ERROR_ARGUMENTS);
    f = begin(plain, "%l", &x, 1);
    qjl_call(f, "%l", qjl_at_address(1), arguments, 40);
    FAILS(QJL_ERROR_ARGUMENTS);
    f = begin(plain, "%l", &x, 1);
    arguments[0] = qjl_in(x);
    qjl_call(f, "%d", qjl_at_address(1), arguments, 1);
    FAILS(QJL_ERROR_ARGUMENTS);
    f = begin(plain, "%l", &x, 1);
    arguments[0] = qjl_in(x);
    qjl_call(f, "%", qjl_at_address(1), arguments, 1);
    FAILS(QJL_ERROR_SIGNATURE);
    f = begin(plain, "%l", &x, 1);
    arguments[0] = qjl_value(256);
    qjl_call(f, "%uc", qjl_at_address(1), arguments, 1);
    FAILS(QJL_ERROR_IMMEDIATE);
    f = begin(plain, "%l", &x, 1);
    qjl_call(f, "", qjl_at_label(qjl_genlabel(f)), NULL, 0);
    FAILS(QJL_ERROR_OPERANDS);
    f = begin(plain, "%l", &x, 1);
    qjl_tail_call(f, "", qjl_itself(), NULL, 0);
    FAILS(QJL_ERROR_ARGUMENTS);
    f = begin((struct qjl_options){.layer = layer, .kind = QJL_LEAF}, "%l", &x, 1);
    qjl_call(f, "", qjl_at_address(1), NULL, 0);
    FAILS(QJL_ERROR_CALL_IN_LEAF);

    /* Room. */
    f = begin((struct qjl_options){.layer = layer, .bytes = 1024}, "%l", &x, 1);
    for (int at = 0; at < 2000; at++) qjl_xorli(f, x, x, INT64_C(0x123456789abcdef) + at), qjl_mull(f, x, x, x);
    qjl_retl(f, x);
    FAILS(QJL_ERROR_OVERFLOW);

    /* After the end, and before it. */
    void *made = NULL;
    f = begin(plain, "%l", &x, 1);
    CHECK(qjl_install(f, memory, &made) == QJL_ERROR_NOT_ENDED && !made);
    qjl_retl(f, x);
    CHECK(qjl_end(f, NULL) == QJL_OK && qjl_end(f, NULL) == QJL_ERROR_ENDED);
    CHECK(qjl_addl(f, x, x, x) == QJL_ERROR_ENDED && qjl_getreg(f, &t, QJL_TEMP) == QJL_ERROR_ENDED);
    CHECK(qjl_genlabel(f).function == 0 && strstr(qjl_message(f), "`genlabel`") != NULL);
    CHECK(qjl_install(f, NULL, &made) == QJL_ERROR_NULL && qjl_install(f, memory, NULL) == QJL_ERROR_NULL);
    CHECK(qjl_install(f, memory, &made) == QJL_OK && ((long (*)(long))as_function(made))(5) == 5);
    qjl_memory *small;
    CHECK(qjl_memory_new(4096, &small) == QJL_OK);
    int count = 0;
    while (qjl_install(f, small, &made) == QJL_OK) count++;
    CHECK(count > 10 && qjl_install(f, small, &made) == QJL_ERROR_MEMORY && !made);
    qjl_memory_free(small);
    CHECK(qjl_memory_new(SIZE_MAX, &small) == QJL_ERROR_MEMORY && !small);
    CHECK(strstr(qjl_message(NULL), "`memory_new`"));
    CHECK(qjl_memory_new(1, NULL) == QJL_ERROR_NULL);
    qjl_memory_free(NULL);
    qjl_free(f);

    /* Another machine. */
#if defined(__x86_64__)
    const int foreign = QJL_MIPS;
#else
    const int foreign = QJL_X86_64;
#endif
    f = begin((struct qjl_options){.layer = layer, .machine = foreign}, "%l", &x, 1);
    qjl_retl(f, x);
    struct qjl_code code;
    qjl_frames *frames;
    CHECK(!qjl_end(f, &code) && code.length && qjl_install(f, memory, &made) == QJL_ERROR_OTHER_MACHINE);
    CHECK(qjl_frames_register(f, &x, &frames) == QJL_ERROR_OTHER_MACHINE && !frames);
    const unsigned char *section;
    size_t length;
    const int status = qjl_call_frames(f, 0x1000, &section, &length);
    CHECK(status == QJL_OK && length > 0);
    qjl_free(f);
}

int main(void) {
    CHECK(qjl_memory_new(1 << 20, &memory) == QJL_OK);
    for (int register_class = QJL_TEMP; register_class <= QJL_COLD; register_class++) many_registers(register_class);
    for (int layer = QJL_VIRTUAL; layer <= QJL_PEEPHOLE; layer++) {
        calls(layer);
        variables(layer);
        strength(layer);
        errors(layer);
    }
    window();
    by_name();
    texts();
    qjl_memory_free(memory);
    puts("ok");
    return 0;
}
