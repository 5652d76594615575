/* The workload on quaject/vcode.h: whole functions through the explicit cursor and through the names of the paper, and
   the thousand operations with constant registers and with registers read from memory. Each returns the
   address of what it wrote. And `dot` as the compiler writes it, to compare what is written with. */
#include <quaject/vcode.h>

size_t c_plus1(uint8_t *bytes, size_t length, qjv_function *f) {
    qjv_asm a;
    v_reg x;
    qjv_region region = {bytes, (uintptr_t)bytes, length};
    qjv_begin(&a, f, region, "%i", &x, QJV_LEAF);
    qjv_addii(&a, x, x, 1);
    qjv_reti(&a, x);
    return (size_t)qjv_end(&a);
}

size_t c_paper_plus1(uint8_t *bytes) {
    v_reg arg[1];
    v_lambda("%i", arg, V_LEAF, bytes);
    v_addii(arg[0], arg[0], 1);
    v_reti(arg[0]);
    return (size_t)v_end();
}

size_t c_dot(uint8_t *bytes, size_t length, qjv_function *f) {
    qjv_asm a;
    v_reg p[3], sum, left, right, at;
    v_label again, done;
    qjv_region region = {bytes, (uintptr_t)bytes, length};
    qjv_begin(&a, f, region, "%p%p%l", p, QJV_LEAF);
    if (!qjv_reserve(&a, 600)) return 0;
    qjv_getreg(&a, &sum, V_TEMP);
    qjv_getreg(&a, &left, V_TEMP);
    qjv_getreg(&a, &right, V_TEMP);
    qjv_getreg(&a, &at, V_TEMP);
    again = qjv_label(&a);
    done = qjv_label(&a);
    qjv_seti(&a, sum, 0);
    qjv_bleli(&a, p[2], 0, done);
    qjv_lshli(&a, p[2], p[2], 2);
    qjv_setl(&a, at, 0);
    qjv_bind(&a, again);
    qjv_ldi(&a, left, p[0], at);
    qjv_ldi(&a, right, p[1], at);
    qjv_muli(&a, left, left, right);
    qjv_addi(&a, sum, sum, left);
    qjv_addli(&a, at, at, 4);
    qjv_bltl(&a, at, p[2], again);
    qjv_bind(&a, done);
    qjv_reti(&a, sum);
    return (size_t)qjv_end(&a);
}

size_t c_paper_dot(uint8_t *bytes) {
    v_reg p[3], sum, left, right, at;
    v_label again, done;
    v_lambda("%p%p%l", p, V_LEAF, bytes);
    v_getreg(&sum, V_TEMP);
    v_getreg(&left, V_TEMP);
    v_getreg(&right, V_TEMP);
    v_getreg(&at, V_TEMP);
    again = v_genlabel();
    done = v_genlabel();
    v_seti(sum, 0);
    v_bleli(p[2], 0, done);
    v_lshli(p[2], p[2], 2);
    v_setl(at, 0);
    v_label(again);
    v_ldi(left, p[0], at);
    v_ldi(right, p[1], at);
    v_muli(left, left, right);
    v_addi(sum, sum, left);
    v_addli(at, at, 4);
    v_bltl(at, p[2], again);
    v_label(done);
    v_reti(sum);
    return (size_t)v_end();
}

#include "sites.h"

/* Begins the straight line: the base arrives and moves to a register that is preserved. */
static v_reg begin_line(qjv_asm *a, qjv_function *f, uint8_t *bytes, size_t length) {
    v_reg memory;
    qjv_region region = {bytes, (uintptr_t)bytes, length};
    qjv_begin(a, f, region, "%p", &memory, QJV_LEAF);
    qjv_claim(a, V_S0);
    return memory;
}

size_t c_constant(uint8_t *bytes, size_t length, qjv_function *f) {
    qjv_asm a;
    v_reg memory = begin_line(&a, f, bytes, length);
    if (!qjv_reserve(&a, 20000)) return 0;
    qjv_movp(&a, V_S0, memory);
#define REGISTER(n) V_T##n
    SITES(REGISTER, V_S0)
    qjv_retv(&a);
    return (size_t)qjv_end(&a);
}

size_t c_run_time(uint8_t *bytes, size_t length, qjv_function *f, const v_reg *registers) {
    qjv_asm a;
    v_reg memory = begin_line(&a, f, bytes, length);
    if (!qjv_reserve(&a, 20000)) return 0;
    qjv_movp(&a, registers[8], memory);
#define READ(n) registers[n]
    SITES(READ, registers[8])
    qjv_retv(&a);
    return (size_t)qjv_end(&a);
}

/* What gcc makes of dot at -O2, one element at a time. */
int c_gcc_dot(const int *a, const int *b, long n) {
    int sum = 0;
    for (long index = 0; index < n; index++) sum += a[index] * b[index];
    return sum;
}

/* What the Rust side hands over. */
size_t c_function_bytes(void) { return sizeof(qjv_function); }

const v_reg *c_registers(void) {
    static v_reg registers[9];
    const v_reg all[9] = {V_T0, V_T1, V_T2, V_T3, V_T4, V_T5, V_T6, V_T7, V_S0};
    memcpy(registers, all, sizeof all);
    return registers;
}
