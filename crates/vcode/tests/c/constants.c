/* A constant or offset that does not fit its type is an error, whatever the type of the argument; none is cut. */
#include <quaject/vcode.h>
#include <stdio.h>
#include <stdlib.h>

static v_reg p[2];
static int wrong;

static void check(const char *what, int64_t value, int is_written, int should) {
    if (is_written == should && (is_written || v_error() == QJV_ERROR_IMMEDIATE)) return;
    printf("%s of %lld: %s, error %d\n", what, (long long)value, is_written ? "written" : "refused", v_error());
    wrong = 1;
}

/* Emitters as functions, so that each is compiled once. */
static void ADDI(int64_t value, v_label label) { (void)label; v_addii(p[0], p[1], value); }
static void SUBI(int64_t value, v_label label) { (void)label; v_subii(p[0], p[1], value); }
static void MULI(int64_t value, v_label label) { (void)label; v_mulii(p[0], p[1], value); }
static void DIVI(int64_t value, v_label label) { (void)label; v_divii(p[0], p[1], value); }
static void MODI(int64_t value, v_label label) { (void)label; v_modii(p[0], p[1], value); }
static void ANDI(int64_t value, v_label label) { (void)label; v_andii(p[0], p[1], value); }
static void SETI(int64_t value, v_label label) { (void)label; v_seti(p[0], value); }
static void BLTI(int64_t value, v_label label) { (void)label; v_bltii(p[0], value, label); }
static void BEQI(int64_t value, v_label label) { (void)label; v_beqii(p[0], value, label); }
static void ADDU(int64_t value, v_label label) { (void)label; v_addui(p[0], p[1], value); }
static void DIVU(int64_t value, v_label label) { (void)label; v_divui(p[0], p[1], value); }
static void SETU(int64_t value, v_label label) { (void)label; v_setu(p[0], value); }
static void BLTU(int64_t value, v_label label) { (void)label; v_bltui(p[0], value, label); }
static void LDC(int64_t value, v_label label) { (void)label; v_ldci(p[0], p[1], value); }
static void LDP(int64_t value, v_label label) { (void)label; v_ldpi(p[0], p[1], value); }
static void STI(int64_t value, v_label label) { (void)label; v_stii(p[0], p[1], value); }
static void LDXI(int64_t value, v_label label) { (void)label; v_ldxi(p[0], p[1], p[1], value); }
static void LDF(int64_t value, v_label label) { (void)label; v_ldfi(V_FRESULT, p[1], value); }
static void LSHI(int64_t value, v_label label) { (void)label; v_lshii(p[0], p[1], value); }
static void ROTLU(int64_t value, v_label label) { (void)label; v_rotlui(p[0], p[1], value); }
static void ADDO(int64_t value, v_label label) { (void)label; v_addoii(p[0], p[1], value, label); }
static void SETL(int64_t value, v_label label) { (void)label; v_setl(p[0], value); }
static void DIVL(int64_t value, v_label label) { (void)label; v_divli(p[0], p[1], value); }
static void SETUL(int64_t value, v_label label) { (void)label; v_setul(p[0], (unsigned long long)value); }
static void SETP(int64_t value, v_label label) { (void)label; v_setp(p[0], (unsigned long long)value); }

static void try_one(const char *name, void (*emit)(int64_t, v_label), int64_t value, int should) {
    struct v_code *code = v_code_new(1024);
    if (!code) exit(2);
    v_lambda("%p%p", p, V_LEAF, code);
    v_label label = v_genlabel();
    emit(value, label);
    v_label(label);
    v_retv();
    check(name, value, v_end() != 0, should);
    v_code_free(code);
}

#define TRY(instruction, value, should) try_one(#instruction, instruction, value, should)

/* An int; with bits, also what an unsigned holds, where the result depends on the low bits only. */
static void try_int(const char *name, void (*emit)(int64_t, v_label), int bits) {
    static const int64_t never[] = {INT64_C(0x100000000), INT64_C(0x100000005), INT64_C(-0x80000001), INT64_MIN, INT64_MAX};
    try_one(name, emit, INT64_C(-0x80000000), 1);
    try_one(name, emit, INT64_C(0x7fffffff), 1);
    try_one(name, emit, INT64_C(0x80000000), bits);
    try_one(name, emit, INT64_C(0xffffffff), bits);
    for (int at = 0; at < 5; at++) try_one(name, emit, never[at], 0);
}

#define INT(instruction, bits) try_int(#instruction, instruction, bits)

/* Constants that the compiler knows. */
static void known(void) {
    struct v_code *code = v_code_new(1024);
    if (!code) exit(2);
    v_lambda("%p%p", p, V_LEAF, code);
    v_addii(p[0], p[1], 0x100000005);
    v_retv();
    check("known addii", 0x100000005, v_end() != 0, 0);
    v_lambda("%p%p", p, V_LEAF, code);
    v_ldci(p[0], p[1], 0x100000005);
    v_retv();
    check("known ldci", 0x100000005, v_end() != 0, 0);
    v_lambda("%p%p", p, V_LEAF, code);
    v_setu(p[0], 0xffffffff);
    v_retv();
    check("known setu", 0xffffffff, v_end() != 0, 1);
    v_code_free(code);
}

int main(void) {
    known();
    INT(ADDI, 1);
    INT(SUBI, 1);
    INT(MULI, 1);
    INT(DIVI, 0);
    INT(MODI, 0);
    INT(ANDI, 1);
    INT(SETI, 1);
    INT(BLTI, 0);
    INT(BEQI, 0);
    INT(ADDU, 1);
    INT(DIVU, 1);
    INT(SETU, 1);
    INT(BLTU, 1);
    INT(LDC, 0);
    INT(LDP, 0);
    INT(STI, 0);
    INT(LDXI, 0);
    INT(LDF, 0);
    INT(ADDO, 0);
    TRY(LSHI, 31, 1);
    TRY(LSHI, 32, 0);
    TRY(LSHI, INT64_C(0x100000001), 0);
    TRY(ROTLU, INT64_C(0x100000001), 0);
    TRY(LSHI, -1, 0);
#if __SIZEOF_LONG__ == 4
    INT(SETL, 1);
    INT(DIVL, 0);
    TRY(SETUL, INT64_C(0xffffffff), 1);
    TRY(SETUL, INT64_C(0x100000005), 0);
    TRY(SETP, INT64_C(0x100000005), 0);
#else
    TRY(SETL, INT64_C(0x100000005), 1);
    TRY(DIVL, INT64_C(0x100000005), 1);
    TRY(SETUL, INT64_C(-1), 1);
    TRY(SETP, INT64_C(0x100000005), 1);
    {
        /* A size of more than 32 bits is no small size. */
        struct v_code *code = v_code_new(1024);
        v_lambda("", p, V_LEAF, code);
        (void)qjv_local_bytes(&v_function, (size_t)INT64_C(0x100000008), 8);
        v_retv();
        if (v_end() || v_error() != QJV_ERROR_FRAME) wrong = 1;
        v_code_free(code);
    }
#endif
    {
        /* Nor is a region that would end past the end of memory. */
        static uint8_t bytes[4096];
        static qjv_function f;
        qjv_region region = {bytes, (uintptr_t)bytes, SIZE_MAX};
        qjv_asm a;
        qjv_begin(&a, &f, region, "", p, QJV_LEAF);
        qjv_retv(&a);
        if (qjv_end(&a) || f.error != QJV_ERROR_OVERFLOW) wrong = 1;
    }
    return wrong;
}
