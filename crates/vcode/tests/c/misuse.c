/* The v_ names where no function was begun, in another file, and in the middle of another function: errors by name.
   This file is compiled twice, the second time with SECOND. */
#include <quaject/vcode.h>
#include <stdio.h>
#include <stdlib.h>

#ifdef __cplusplus
extern "C"
#endif
void second_file(v_reg reg, int whole);

#if defined(SECOND)
void second_file(v_reg reg, int whole) {
    v_reg x;
    if (!whole) {
        v_addii(reg, reg, 1);
        return;
    }
    v_lambda("%i", &x, V_LEAF, v_code_new(1024));
    v_addii(x, x, 1);
    v_reti(x);
    int (*function)(int) = (int (*)(int))v_end();
    if (!function || function(41) != 42) printf("a function of the second file: %s\n", v_error_text());
}
#else
static v_reg x;
static int wrong;

static struct v_code *storage(void) {
    struct v_code *code = v_code_new(1024);
    if (!code) exit(2);
    return code;
}

static void refused(const char *what, qjv_error error) {
    int is_written = v_end() != 0;
    if (!is_written && v_error() == error && strlen(v_error_text()) > 10) return;
    printf("%s: %s, error %d\n", what, is_written ? "written" : v_error_text(), v_error());
    wrong = 1;
}

static void right(const char *what) {
    v_lambda("%i", &x, V_LEAF, storage());
    v_addii(x, x, 1);
    v_reti(x);
    int (*function)(int) = (int (*)(int))v_end();
    if (function && function(41) == 42 && v_error() == QJV_OK) return;
    printf("%s: %s\n", what, v_error_text());
    wrong = 1;
}

/* Whatever comes first. */
static void first(int which) {
    v_label label = {0};
    v_reg reg = V_T0;
    qjv_argument none[1];
    none[0] = qjv_value(0);
    switch (which) {
    case 0: v_addii(reg, reg, 1); break;
    case 1: v_setd(V_FRESULT, 1.5); break;
    case 2: v_jal(label); break;
    case 3: v_label(label); break;
    case 4: v_beqii(reg, 1, label); break;
    case 5: v_retv(); break;
    case 6: v_call("%i", qjv_at_address(1), none, 1); break;
    case 7: (void)v_getreg(&reg, V_VAR); break;
    case 8: (void)v_local('l'); break;
    case 9: v_bswapu(reg, reg); break;
    case 10: v_lshii(reg, reg, 99); break;
    case 11: v_addii(reg, reg, 0x100000000); break;
    case 12: (void)v_genlabel(); break;
    case 13: v_procedure(label, reg); break;
    case 14: v_tail_call("", qjv_in(reg), none, 0); break;
    default: break;
    }
}

int main(void) {
    for (int which = 0; which < 16; which++) {
        first(which);
        refused("before v_lambda", QJV_ERROR_NOT_BEGUN);
        right("after an error");
        /* A function that is begun later has the error, too: something was not written. */
        if (which < 15) {
            first(which);
            first(which);
            v_lambda("", &x, V_LEAF, storage());
            v_retv();
            refused("before v_lambda of another function", QJV_ERROR_NOT_BEGUN);
            first(which);
            v_abandon();
            right("after abandoned instructions");
        }
    }
    right("after all");
    v_lambda("%i", &x, V_LEAF, storage());
    second_file(x, 0);
    v_reti(x);
    refused("an instruction in another file", QJV_ERROR_NOT_BEGUN);
    v_lambda("%i", &x, V_LEAF, storage());
    for (int count = 0; count < 100; count++) second_file(x, 0);
    v_reti(x);
    refused("instructions in another file", QJV_ERROR_NOT_BEGUN);
    right("after instructions in another file");
    v_lambda("%i", &x, V_LEAF, storage());
    second_file(x, 1);
    v_addii(x, x, 2);
    v_reti(x);
    int (*function)(int) = (int (*)(int))v_end();
    if (!function || function(40) != 42) wrong = 1;
    v_lambda("%i", &x, V_LEAF, storage());
    v_lambda("%i", &x, V_LEAF, storage());
    v_reti(x);
    refused("a function in another", QJV_ERROR_NESTED);
    v_reti(x);
    refused("the rest of the outer one", QJV_ERROR_NOT_BEGUN);
    v_lambda("%i", &x, V_LEAF, storage());
    v_abandon();
    right("after an abandoned function");
    for (int error = 0; error <= (int)QJV_ERROR_NESTED; error++)
        for (int other = 0; other < error; other++)
            if (strcmp(qjv_error_text((qjv_error)error), qjv_error_text((qjv_error)other)) == 0) wrong = 1;
    return wrong;
}
#endif
