/* What stands above the core, in C: calls and tail calls, jump tables, features of the processor, vectors. Prints the
   features it found, for the Rust test to compare. */
#define _DEFAULT_SOURCE /* for MAP_ANONYMOUS */
#include <quaject/vcode/features.h>
#include <quaject/vcode/vectors.h>
#include <stdio.h>
#include <stdlib.h>

static uint8_t *memory;
static uint8_t *execute;

static qjv_region region(void) {
    qjv_region all = {memory, (uintptr_t)execute, 4096};
    return all;
}

static void expect(long found, long wanted, const char *what) {
    if (found == wanted) return;
    fprintf(stderr, "%s: %ld, expected %ld\n", what, found, wanted);
    exit(1);
}

static double mix(long a, double b, long c, double d) { return (double)a * 1000 + b * 100 + (double)c * 10 + d; }

/* Parameters change places on their way to a function, one becomes two doubles. */
static void calls(void) {
    for (int tail = 0; tail < 2; tail++) {
        qjv_function f;
        qjv_asm a;
        v_reg params[2], x;
        double (*function)(long, long);
        qjv_begin(&a, &f, region(), "%l%l", params, tail ? QJV_LEAF : QJV_CALLS);
        qjv_getfloat(&a, &x, V_TEMP);
        qjv_cvl2d(&a, x, params[0]);
        const qjv_argument arguments[] = {qjv_in(params[1]), qjv_in(x), qjv_value(3), qjv_in(x)};
        const qjv_target target = qjv_at_address((uintptr_t)&mix);
        if (tail) {
            qjv_tail_call(&a, "%l%d%l%d", target, arguments, 4);
        } else {
            qjv_call(&a, "%l%d%l%d", target, arguments, 4);
            qjv_retd(&a, V_FRESULT);
        }
        function = (double (*)(long, long))qjv_end(&a);
        if (!function) expect(f.error, QJV_OK, "a call");
        expect((long)function(2, 1), 1232, tail ? "a tail call" : "a call");
    }
    /* What cannot be done is an error. */
    qjv_function f;
    qjv_asm a;
    v_reg params[1];
    const qjv_argument arguments[] = {qjv_value(1), qjv_value(2)};
    qjv_begin(&a, &f, region(), "%l", params, QJV_LEAF);
    qjv_tail_call(&a, "%l", qjv_in(params[0]), arguments, 2);
    if (qjv_end(&a)) expect(1, 0, "a tail call with too many arguments");
    expect(f.error, QJV_ERROR_ARGUMENTS, "its error");
}

static long forget(long a, double b) { return a + (long)b; }

/* More persistent registers than the convention has: temporaries are used, and calls save them. */
static void caller_saves(void) {
    enum { MAX_REGISTERS = 64 };
    qjv_function f;
    qjv_asm a;
    v_reg x, ints[MAX_REGISTERS], floats[MAX_REGISTERS], back;
    long (*function)(long), wanted = 0;
    int count = 0, doubles = 0;
    qjv_begin(&a, &f, region(), "%l", &x, QJV_CALLS);
    while (qjv_getreg(&a, &ints[count], V_VAR)) qjv_setl(&a, ints[count], count * 3), wanted += count++ * 3;
    while (qjv_getfloat(&a, &floats[doubles], V_VAR)) qjv_setd(&a, floats[doubles], doubles), wanted += doubles++;
    expect(count > 10 && doubles > 10, 1, "registers that survive calls");
    /* One that is given back is taken again, and is no less saved. */
    qjv_putreg(&a, ints[count - 1]);
    qjv_getreg(&a, &back, V_VAR);
    expect((long)qjv_number(back), (long)qjv_number(ints[count - 1]), "a register that was given back");
    for (int turn = 0; turn < 2; turn++) {
        const qjv_argument arguments[] = {qjv_in(x), qjv_in(floats[0])};
        qjv_call(&a, "%l%d", qjv_at_address((uintptr_t)&forget), arguments, 2);
    }
    for (int index = 0; index < count; index++) qjv_addl(&a, x, x, ints[index]);
    for (int index = 0; index < doubles; index++) {
        qjv_cvd2l(&a, ints[0], floats[index]);
        qjv_addl(&a, x, x, ints[0]);
    }
    qjv_retl(&a, x);
    function = (long (*)(long))qjv_end(&a);
    if (!function) expect(f.error, QJV_OK, "many registers that survive calls");
    expect(function(5), wanted + 5, "registers that survive calls");
}

static void table(void) {
    static const long wanted[] = {7, 8, 7, 9};
    qjv_function f;
    qjv_asm a;
    v_reg x;
    long (*function)(unsigned long);
    qjv_begin(&a, &f, region(), "%ul", &x, QJV_LEAF);
    v_label seven = qjv_label(&a), eight = qjv_label(&a), nine = qjv_label(&a);
    const v_label labels[] = {seven, eight, seven};
    qjv_jump_table(&a, x, labels, 3, &nine);
    qjv_bind(&a, seven);
    qjv_setl(&a, x, 7);
    qjv_retl(&a, x);
    qjv_bind(&a, eight);
    qjv_setl(&a, x, 8);
    qjv_retl(&a, x);
    qjv_bind(&a, nine);
    qjv_setl(&a, x, 9);
    qjv_retl(&a, x);
    function = (long (*)(unsigned long))qjv_end(&a);
    for (unsigned long index = 0; index < 4; index++) expect(function(index), wanted[index], "a jump table");
}

/* The last bytes of a page are loaded and stored under a mask; the page behind it is not there. */
static void masked(uint64_t features, unsigned bits) {
    qjv_function f;
    qjv_asm a;
    v_reg params[3], mask, x;
    void (*function)(uint8_t *, const uint8_t *, const uint8_t *);
    uint8_t *pages = (uint8_t *)mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t select[64] = {0}, to[64] = {0};
    munmap(pages + 4096, 4096);
    qjv_begin(&a, &f, region(), "%p%p%p", params, QJV_LEAF);
    qjv_use_features(&a, features);
    if (!qjv_vector_width(&a, bits)) return;
    qjv_getvector(&a, &mask);
    qjv_getvector(&a, &x);
    qjv_vld(&a, mask, params[2], 0);
    qjv_vldmu(&a, x, params[1], mask);
    qjv_vbswapu(&a, x, x);
    qjv_vst(&a, x, params[0], 0);
    qjv_vstmu(&a, x, params[1], mask);
    qjv_vend(&a);
    qjv_retv(&a);
    function = (void (*)(uint8_t *, const uint8_t *, const uint8_t *))qjv_end(&a);
    memset(select, 0xff, 8);
    for (int at = 0; at < 8; at++) pages[4088 + at] = (uint8_t)(at + 1);
    function(to, pages + 4088, select);
    static const uint8_t swapped[8] = {4, 3, 2, 1, 8, 7, 6, 5};
    expect(memcmp(to, swapped, 8), 0, "a masked load");
    expect(to[8], 0, "what the mask leaves out");
    expect(memcmp(pages + 4088, swapped, 8), 0, "a masked store");
    munmap(pages, 4096);
}

int main(void) {
    const uint64_t features = qjv_detect_features();
    int file = (int)syscall(SYS_memfd_create, "layers", 1u);
    if (file < 0 || ftruncate(file, 4096)) return 2;
    memory = (uint8_t *)mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    execute = (uint8_t *)mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
    calls();
    caller_saves();
    table();
#if defined(__x86_64__)
    masked(features, 256);
    masked(features, 512);
#endif
    printf("%llu\n", (unsigned long long)features);
    return 0;
}
