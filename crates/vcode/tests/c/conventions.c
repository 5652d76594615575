/* Conventions of a client's that the header writes for, run on the machine it is compiled for: interrupt handlers,
   registers of other classes, arguments that cross; and conventions that are refused. */
#ifndef _DEFAULT_SOURCE
#define _DEFAULT_SOURCE
#endif
#include <quaject/vcode.h>
#include <stdio.h>
#include <sys/mman.h>
#include "outlives.c"

enum { BYTES = 1 << 16, EACH = 1 << 13 };
static qjv_function f;
static uint8_t *memory;
static int functions;

static qjv_region next_region(void) {
    qjv_region region = {memory + EACH * functions, (uintptr_t)(memory + EACH * functions), EACH};
    functions++;
    return region;
}

static void call(qjv_asm *a, void *function) { qjv_call(a, "", qjv_at_address((uintptr_t)function), 0, 0); }

/* The first parameter is in the second register, the second in the first, the third on the stack. */
static qjv_place crossed(const qjv_convention *convention, qjv_counters *counters, char type) {
    uint32_t count = counters->integer++;
    (void)type;
    if (count < 2) return qjv_make_place(QJV_IN_INT, convention->ints.args[1 - count], 0);
    counters->stack += 8;
    return qjv_make_place(QJV_ON_STACK, counters->stack - 8, 0);
}

/* A private convention: arguments cross, and the last temporary but those of arguments is preserved by what is
 * called. */
static long a_private_convention(void) {
    qjv_convention mine = qjv_own_convention();
    const v_reg args[2] = {qjv_reg(qjv_int_args[0]), qjv_reg(qjv_int_args[1])}, kept = qjv_reg(qjv_int_temp[0]);
    qjv_argument list[3];
    qjv_asm a;
    v_reg p[3], reg;
    void *callee, *caller;
    long (*function)(void);
    qjv_classify(&mine.ints, kept, V_VAR);
    qjv_carry_arguments(&mine.ints, args, 2);
    mine.place = crossed;
    qjv_begin_with(&a, &f, next_region(), "%l%l%l", p, QJV_LEAF, &mine);
    if (qjv_number(p[0]) != qjv_int_args[1] || qjv_number(p[1]) != qjv_int_args[0]) return 1;
    while (qjv_getreg(&a, &reg, V_TEMP)) qjv_setl(&a, reg, -1);
    qjv_mulli(&a, p[1], p[1], 10);
    qjv_mulli(&a, p[2], p[2], 100);
    qjv_addl(&a, p[0], p[0], p[1]);
    qjv_addl(&a, p[0], p[0], p[2]);
    qjv_retl(&a, p[0]);
    callee = qjv_end(&a);
    qjv_begin_with(&a, &f, next_region(), "", p, QJV_CALLS, &mine);
    if (!qjv_claim(&a, kept)) return 2;
    qjv_setl(&a, kept, 4000);
    for (int index = 0; index < 3; index++) list[index] = qjv_value(index + 1);
    qjv_call(&a, "%l%l%l", qjv_at_address((uintptr_t)callee), list, 3);
    qjv_addl(&a, V_RESULT, V_RESULT, kept);
    qjv_retl(&a, V_RESULT);
    caller = qjv_end(&a);
    qjv_begin(&a, &f, next_region(), "", p, QJV_CALLS);
    call(&a, caller);
    qjv_retl(&a, V_RESULT);
    *(void **)&function = qjv_end(&a);
    return callee && caller && function ? function() : (long)f.error;
}

static long destroy(long value) {
    volatile double product = (double)value;
    for (int turn = 0; turn < 20; turn++) product = product * 1.5 + turn;
    return (long)product * value;
}

/* A function that gives all temporaries values, calls a handler, and says what they add up to. */
static long called_by_all(void *handler) {
    qjv_asm a;
    v_reg p[1], first = qjv_reg(qjv_int_temp[0]), second = qjv_reg(qjv_int_temp[1]);
    const int ints = (int)QJV_COUNT(qjv_int_temp), floats = (int)QJV_COUNT(qjv_float_temp);
    long (*function)(void), expected = 0;
    qjv_begin(&a, &f, next_region(), "", p, QJV_CALLS);
    for (int index = 0; index < floats; index++) {
        qjv_setl(&a, first, 100 + index);
        qjv_cvl2d(&a, qjv_reg(qjv_float_temp[index]), first);
        expected += 100 + index;
    }
    for (int index = 0; index < ints; index++) {
        qjv_setl(&a, qjv_reg(qjv_int_temp[index]), index + 1);
        expected += index + 1;
    }
    call(&a, handler);
    for (int index = 1; index < ints; index++) qjv_addl(&a, first, first, qjv_reg(qjv_int_temp[index]));
    for (int index = 0; index < floats; index++) {
        qjv_cvd2l(&a, second, qjv_reg(qjv_float_temp[index]));
        qjv_addl(&a, first, first, second);
    }
    qjv_retl(&a, first);
    *(void **)&function = qjv_end(&a);
    return handler && function ? function() - expected : (long)f.error + 1000;
}

/* Handlers that use all registers, and that keep values across a call of a function of C. */
static long handlers(void) {
    static long kept[2];
    const qjv_convention all = qjv_handler_convention();
    qjv_asm a;
    qjv_argument seven = qjv_value(7);
    v_reg p[1], reg, real, sum;
    void *handler;
    long wrong;
    qjv_begin_with(&a, &f, next_region(), "", p, QJV_LEAF, &all);
    while (qjv_getreg(&a, &reg, V_TEMP)) qjv_setl(&a, reg, -7);
    while (qjv_getfloat(&a, &real, V_VAR)) qjv_cvl2d(&a, real, qjv_reg(qjv_int_temp[0]));
    qjv_retv(&a);
    handler = qjv_end(&a);
    wrong = called_by_all(handler);
    if (wrong) return wrong;
    qjv_begin_with(&a, &f, next_region(), "", p, QJV_CALLS, &all);
    if (!qjv_getreg(&a, &sum, V_VAR) || !qjv_getfloat(&a, &real, V_VAR) || !qjv_getreg(&a, &reg, V_TEMP)) return 1;
    qjv_setl(&a, sum, 30);
    qjv_setd(&a, real, 12.0);
    qjv_call(&a, "%l", qjv_at_address((uintptr_t)destroy), &seven, 1);
    qjv_cvd2l(&a, reg, real);
    qjv_addl(&a, sum, sum, reg);
    qjv_setp(&a, reg, (uintptr_t)kept);
    qjv_stli(&a, sum, reg, 0);
    qjv_retv(&a);
    handler = qjv_end(&a);
    wrong = called_by_all(handler);
    if (wrong || kept[0] != 42) return wrong ? wrong : kept[0] + 1;
    uint64_t address = (uintptr_t)handler;
    return outlives(&address);
}

static qjv_place nowhere(const qjv_convention *convention, qjv_counters *counters, char type) {
    (void)convention, (void)counters, (void)type;
    return qjv_make_place(QJV_IN_INT, 200, 0);
}

/* What ending a function with this convention and a parameter gives. */
static qjv_error refused(const qjv_convention *convention, const char *types) {
    qjv_asm a;
    v_reg p[40];
    qjv_region region = next_region();
    functions--;
    qjv_begin_with(&a, &f, region, types, p, QJV_CALLS, convention);
    qjv_retv(&a);
    return qjv_end(&a) ? QJV_OK : f.error;
}

static long errors(void) {
    qjv_convention wrong = qjv_own_convention();
    v_reg twice[2] = {qjv_reg(qjv_int_args[0]), qjv_reg(qjv_int_args[0])};
    qjv_asm a;
    v_reg p[1];
    if (refused(&wrong, "%l%d") != QJV_OK) return 1;
    if (refused(&wrong, "%x") != QJV_ERROR_SIGNATURE) return 2;
    qjv_classify(&wrong.ints, V_RESULT, V_VAR);
    if (refused(&wrong, "") != QJV_ERROR_RESULT_PRESERVED) return 3;
    wrong.scratch = QJV_SCRATCH_PRESERVED;
    if (refused(&wrong, "") != QJV_OK) return 4;
    qjv_begin_with(&a, &f, next_region(), "", p, QJV_LEAF, &wrong);
    qjv_tail_call(&a, "", qjv_at_address(0), 0, 0);
    if (qjv_end(&a) || f.error != QJV_ERROR_REGISTER_TAKEN) return 5;
    wrong = qjv_own_convention();
    qjv_classify(&wrong.ints, QJV_SCRATCH, V_TEMP);
    if (refused(&wrong, "") != QJV_ERROR_REGISTER_TAKEN) return 6;
    qjv_classify(&wrong.ints, QJV_SCRATCH, V_UNAVAILABLE);
    if (refused(&wrong, "") != QJV_OK) return 7;
    qjv_carry_arguments(&wrong.ints, twice, 2);
    if (refused(&wrong, "") != QJV_ERROR_REGISTER_TAKEN) return 8;
    wrong = qjv_own_convention();
    wrong.place = nowhere;
    if (refused(&wrong, "%l") != QJV_ERROR_PLACE) return 9;
    qjv_begin_with(&a, &f, next_region(), "", p, QJV_CALLS, &wrong);
    {
        qjv_argument one = qjv_value(1);
        qjv_call(&a, "%l", qjv_at_address(0), &one, 1);
    }
    if (qjv_end(&a) || f.error != QJV_ERROR_PLACE) return 10;
    memset(&wrong, 0, sizeof wrong);
    if (refused(&wrong, "") != QJV_OK) return 11;
    if (refused(&wrong, "%l%l") != QJV_ERROR_REGISTERS) return 12;
    functions -= 2;
    return 0;
}

int main(void) {
    void *map = mmap(0, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    long result;
    if (map == MAP_FAILED) return 99;
    memory = (uint8_t *)map;
    result = a_private_convention();
    if (result != 4321) return fprintf(stderr, "a private convention: %ld, not 4321\n", result), 1;
    functions = 0;
    result = handlers();
    if (result) return fprintf(stderr, "handlers: %ld\n", result), 1;
    functions = 0;
    result = errors();
    if (result) return fprintf(stderr, "errors: %ld, %d\n", result, (int)f.error), 1;
    return 0;
}
