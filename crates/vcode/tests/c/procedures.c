/* Functions that call themselves, and local procedures. */
#include <quaject/vcode.h>
#include <stdio.h>
#include <stdlib.h>

static v_reg p[10];
static int wrong;

/* Memory of its own for each function: emulators do not see that code is replaced through another mapping. */
static struct v_code *storage(void) {
    struct v_code *code = v_code_new(4096);
    if (!code) exit(2);
    return code;
}

static void check(const char *what, long got, long wanted) {
    if (got == wanted) return;
    printf("%s: %ld instead of %ld\n", what, got, wanted);
    wrong = 1;
}

static void *end(const char *what) {
    void *function = v_end();
    if (function) return function;
    printf("%s: error %d\n", what, v_error());
    exit(1);
}

static v_reg persistent(void) {
    v_reg reg;
    if (!v_getreg(&reg, V_VAR)) exit(3);
    return reg;
}

/* fib(n) = n < 2 ? n : fib(n - 1) + fib(n - 2) */
static void recursion(const qjv_convention *convention) {
    struct v_code *code = storage();
    qjv_argument argument[1];
    if (convention) v_lambda_with("%l", p, V_NLEAF, code, convention);
    else v_lambda("%l", p, V_NLEAF, code);
    v_label more = v_genlabel();
    v_reg first = persistent();
    v_bgeli(p[0], 2, more);
    v_retl(p[0]);
    v_label(more);
    v_subli(first, p[0], 1);
    argument[0] = qjv_in(first);
    v_call("%l", qjv_itself(), argument, 1);
    v_movl(first, V_RESULT);
    v_subli(p[0], p[0], 2);
    argument[0] = qjv_in(p[0]);
    v_call("%l", qjv_itself(), argument, 1);
    v_addl(first, first, V_RESULT);
    v_retl(first);
    check("fib", ((long (*)(long))end("fib"))(15), 610);
}

/* Ten parameters, some on the stack, and a float: f(n, ...) = n == 0 ? the sum of all : f(n - 1, b + 1, a, ...) */
static void recursion_with_many_arguments(void) {
    qjv_argument list[11];
    v_reg x[11];
    v_label more;
    v_lambda("%i%d%l%l%l%l%l%l%l%l%i", x, V_NLEAF, storage());
    more = v_genlabel();
    v_bneii(x[0], 0, more);
    for (int at = 3; at < 10; at++) v_addl(x[2], x[2], x[at]);
    v_cvi2l(x[10], x[10]);
    v_addl(x[2], x[2], x[10]);
    v_cvd2l(x[10], x[1]);
    v_addl(x[2], x[2], x[10]);
    v_retl(x[2]);
    v_label(more);
    v_subii(x[0], x[0], 1);
    v_addl(x[9], x[9], x[2]);
    for (int at = 0; at < 11; at++) list[at] = qjv_in(x[at]);
    list[2] = qjv_in(x[3]);
    list[3] = qjv_in(x[2]);
    v_call("%i%d%l%l%l%l%l%l%l%l%i", qjv_itself(), list, 11);
    v_retl(V_RESULT);
    long (*function)(int, double, long, long, long, long, long, long, long, long, int) =
        (long (*)(int, double, long, long, long, long, long, long, long, long, int))end("many arguments");
    check("many arguments", function(0, 100.5, 1, 2, 3, 4, 5, 6, 7, 8, -9), 127);
    check("many arguments, once", function(1, 100.5, 1, 2, 3, 4, 5, 6, 7, 8, -9), 128);
    check("many arguments, often", function(1000, 100.5, 1, 2, 3, 4, 5, 6, 7, 8, -9), 127 + 500 * 1 + 500 * 2);
}

/* A procedure before its calls, or behind them; the value comes in and goes out in a register of the function. */
static void local_procedure(int is_ahead) {
    v_label procedure, body;
    v_reg link;
    v_lambda("%l", p, V_NLEAF, storage());
    procedure = v_genlabel();
    body = v_genlabel();
    link = persistent();
    if (!is_ahead) {
        v_j(body);
        v_procedure(procedure, link);
        v_addli(p[0], p[0], 10);
        v_jr(link);
        v_label(body);
    }
    v_jal(procedure);
    v_mulli(p[0], p[0], 2);
    v_jal(procedure);
    v_retl(p[0]);
    if (is_ahead) {
        v_procedure(procedure, link);
        v_addli(p[0], p[0], 10);
        v_jr(link);
    }
    check("local procedure", ((long (*)(long))end("local procedure"))(1), 32);
}

static long times_three(long value) { return 3 * value; }

/* A procedure that calls another and a C function, has a variable on the stack, and is called in a loop, with an
   instruction in the delay slot of the call where there is one. */
static void nested_procedures(void) {
    v_label outer, inner, again;
    v_reg outer_link, inner_link, count;
    v_variable kept;
    qjv_argument argument[1];
    v_lambda("%l", p, V_NLEAF, storage());
    outer = v_genlabel(), inner = v_genlabel(), again = v_genlabel();
    outer_link = persistent(), inner_link = persistent(), count = persistent();
    kept = v_local('l');
    v_setl(count, 0);
    v_stl_local(count, kept);
    v_label(again);
    v_schedule_delay(v_jal(outer), v_addli(count, count, 1));
    v_bltli(count, 3, again);
    v_ldl_local(count, kept);
    v_addl(p[0], p[0], count);
    v_retl(p[0]);
    v_procedure(outer, outer_link);
    argument[0] = qjv_in(p[0]);
    v_call("%l", qjv_at_address((uintptr_t)times_three), argument, 1);
    v_movl(p[0], V_RESULT);
    v_jal(inner);
    v_jal(inner);
    v_jr(outer_link);
    v_procedure(inner, inner_link);
    v_addli(p[0], p[0], 1);
    v_ldl_local(V_RESULT, kept);
    v_addli(V_RESULT, V_RESULT, 1000);
    v_stl_local(V_RESULT, kept);
    v_jr(inner_link);
    /* ((x * 3 + 2) * 3 + 2) * 3 + 2, and 6000 */
    check("nested procedures", ((long (*)(long))end("nested procedures"))(1), 6053);
}

/* A procedure that calls itself keeps its return addresses in memory: here the bits of a number in reverse order. */
static void recursive_procedure(void) {
    static uintptr_t stack[64];
    v_label procedure, done;
    v_reg link, top, value;
    v_lambda("%l", p, V_NLEAF, storage());
    procedure = v_genlabel(), done = v_genlabel();
    link = persistent(), top = persistent(), value = persistent();
    v_setp(top, (uintptr_t)stack);
    v_setl(value, 0);
    v_jal(procedure);
    v_retl(value);
    v_procedure(procedure, link);
    v_bleli(p[0], 0, done);
    v_stpi(link, top, 0);
    v_addpi(top, top, sizeof(uintptr_t));
    v_lshli(value, value, 1);
    v_andli(link, p[0], 1);
    v_addl(value, value, link);
    v_rshli(p[0], p[0], 1);
    v_jal(procedure);
    v_subpi(top, top, sizeof(uintptr_t));
    v_ldpi(link, top, 0);
    v_label(done);
    v_jr(link);
    check("recursive procedure", ((long (*)(long))end("recursive procedure"))(0x5a3), 0x62d);
}

static void fill(long *numbers, double *number) {
    for (int at = 0; at < 100; at++) numbers[at] = at;
    *number = 0.5;
}

/* A C function writes to variables of generated code. */
static void addresses_of_variables(void) {
    qjv_argument list[2];
    v_reg first, second, index, sum;
    v_variable numbers, number, far;
    v_label again;
    v_lambda("", p, V_NLEAF, storage());
    far = v_local_bytes(100000, 16);
    numbers = v_local_bytes(100 * sizeof(long), sizeof(long));
    number = v_local('d');
    again = v_genlabel();
    first = persistent(), second = persistent(), index = persistent(), sum = persistent();
    v_setl(sum, 0);
    v_local_address(first, numbers);
    v_local_address(second, number);
    list[0] = qjv_in(first);
    list[1] = qjv_in(second);
    v_call("%p%p", qjv_at_address((uintptr_t)fill), list, 2);
    v_setl(index, 0);
    v_label(again);
    v_ldl(second, first, index);
    v_addl(sum, sum, second);
    v_addli(index, index, sizeof(long));
    v_bltli(index, 100 * sizeof(long), again);
    v_stl_local(sum, far);
    v_local_address(first, far);
    v_ldli(sum, first, 0);
    v_ldd_local(V_FRESULT, number);
    v_addd(V_FRESULT, V_FRESULT, V_FRESULT);
    v_cvd2l(second, V_FRESULT);
    v_addl(sum, sum, second);
    v_retl(sum);
    check("addresses of variables", ((long (*)(void))end("addresses of variables"))(), 4951);
}

static void refused(const char *what, qjv_error error) {
    if (!v_end() && v_error() == error) return;
    printf("%s: error %d instead of %d\n", what, v_error(), error);
    wrong = 1;
}

static void errors(void) {
    v_label label;
    v_reg link;
    /* A label that is no procedure, in both directions. */
    v_lambda("", p, V_NLEAF, storage());
    label = v_genlabel();
    v_label(label);
    v_jal(label);
    v_retv();
    refused("a call of a bound label", QJV_ERROR_PROCEDURE);
    v_lambda("", p, V_NLEAF, storage());
    label = v_genlabel();
    v_jal(label);
    v_retv();
    v_label(label);
    v_retv();
    refused("a call of a label ahead", QJV_ERROR_PROCEDURE);
    v_lambda("", p, V_NLEAF, storage());
    label = v_genlabel();
    v_jal(label);
    v_retv();
    refused("a call of a procedure that is not there", QJV_ERROR_PROCEDURE);
    v_lambda("", p, V_LEAF, storage());
    label = v_genlabel();
    link = persistent();
    v_jal(label);
    v_retv();
    v_procedure(label, link);
    v_jr(link);
    refused("a call in a leaf", QJV_ERROR_CALL_IN_LEAF);
    v_lambda("", p, V_LEAF, storage());
    v_call("", qjv_itself(), 0, 0);
    v_retv();
    refused("recursion of a leaf", QJV_ERROR_CALL_IN_LEAF);
    v_lambda("", p, V_NLEAF, storage());
    v_tail_call("", qjv_itself(), 0, 0);
    refused("a tail call of itself", QJV_ERROR_ARGUMENTS);
}

int main(void) {
    qjv_convention convention = qjv_own_convention();
    recursion(0);
    qjv_classify(&convention.ints, V_T2, V_VAR);
    recursion(&convention);
    recursion_with_many_arguments();
    local_procedure(0);
    local_procedure(1);
    nested_procedures();
    recursive_procedure();
    addresses_of_variables();
    errors();
    return wrong;
}
