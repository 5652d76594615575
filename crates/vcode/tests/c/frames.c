/* Functions that the header writes, run on the machine it is compiled for: more parameters than registers carry, of
   both files, in frames of every size, and calls with as many arguments. */
#include <quaject/vcode.h>
#include <stdio.h>
#include <sys/mman.h>

enum { COUNT = 12, BYTES = 1 << 16 };
static const char longs[] = "%l%l%l%l%l%l%l%l%l%l%l%l", doubles[] = "%d%d%d%d%d%d%d%d%d%d%d%d";
static qjv_function f;
static qjv_region region;

/* Gives the function a frame of so many bytes, and stores a register at the end of it. */
static void occupy(qjv_asm *a, v_reg reg, uint32_t bytes) {
    v_variable local;
    if (!bytes) return;
    local = qjv_local_bytes(a->f, bytes, 8);
    local.offset += (int32_t)bytes - 8;
    qjv_stl_local(a, reg, local);
    qjv_setl(a, reg, 0);
    qjv_ldl_local(a, reg, local);
}

static int sums_longs(uint32_t bytes) {
    qjv_asm a;
    v_reg p[COUNT];
    long (*function)(long, long, long, long, long, long, long, long, long, long, long, long);
    qjv_begin(&a, &f, region, longs, p, QJV_LEAF);
    occupy(&a, p[COUNT - 1], bytes);
    for (int index = 1; index < COUNT; index++) {
        qjv_mulli(&a, p[index], p[index], index + 1);
        qjv_addl(&a, p[0], p[0], p[index]);
    }
    qjv_retl(&a, p[0]);
    *(void **)&function = qjv_end(&a);
    return function && function(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12) == 506 - 144;
}

static int sums_doubles(uint32_t bytes) {
    qjv_asm a;
    v_reg p[COUNT], scratch;
    double (*function)(double, double, double, double, double, double, double, double, double, double, double, double);
    qjv_begin(&a, &f, region, doubles, p, QJV_LEAF);
    if (!qjv_getreg(&a, &scratch, V_TEMP)) return 0;
    qjv_setl(&a, scratch, 7);
    occupy(&a, scratch, bytes);
    for (int index = 1; index < COUNT; index++) {
        qjv_addd(&a, p[0], p[0], p[0]);
        qjv_addd(&a, p[0], p[0], p[index]);
    }
    qjv_retd(&a, p[0]);
    *(void **)&function = qjv_end(&a);
    return function && function(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, -12) == 8178 - 24;
}

static long weigh(long a, long b, long c, long d, double e, long g, long h, long i, long j, long k, long l, long m) {
    return a + 2 * b + 3 * c + 4 * d + 5 * (long)e + 6 * g + 7 * h + 8 * i + 9 * j + 10 * k + 11 * l + 12 * m;
}

/* Calls weigh(x, 2, ..., x) twice and adds x, which outlives the calls. */
static int calls(uint32_t bytes) {
    qjv_asm a;
    v_reg x, e, sum;
    qjv_argument list[COUNT];
    long (*function)(long);
    qjv_begin(&a, &f, region, "%l", &x, QJV_CALLS);
    if (!qjv_getreg(&a, &sum, V_VAR) || !qjv_getfloat(&a, &e, V_TEMP)) return 0;
    occupy(&a, x, bytes);
    qjv_movl(&a, sum, x);
    for (int turn = 0; turn < 2; turn++) {
        qjv_setd(&a, e, 5.0);
        for (int index = 0; index < COUNT; index++) list[index] = qjv_value(index + 1);
        list[0] = list[COUNT - 1] = qjv_in(x);
        list[4] = qjv_in(e);
        qjv_call(&a, "%l%l%l%l%d%l%l%l%l%l%l%l", qjv_at_address((uintptr_t)weigh), list, COUNT);
        qjv_addl(&a, sum, sum, V_RESULT);
    }
    qjv_retl(&a, sum);
    *(void **)&function = qjv_end(&a);
    return function && function(3) == 3 + 2 * (3 + 505 + 36);
}

int main(void) {
    static const uint32_t frames[] = {0, 8, 4000, 100000};
    void *memory = mmap(0, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 99;
    region.write = (uint8_t *)memory;
    region.execute = (uintptr_t)memory;
    region.length = BYTES;
    for (int index = 0; index < 4; index++) {
        int right = sums_longs(frames[index]) + 2 * sums_doubles(frames[index]) + 4 * calls(frames[index]);
        if (right == 7) continue;
        fprintf(stderr, "frame of %u bytes: right are %d of 7, error %d\n", (unsigned)frames[index], right, (int)f.error);
        return 1;
    }
    return 0;
}
