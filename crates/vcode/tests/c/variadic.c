/* Calls of variadic functions: `...` in the type string says where the arguments begin that the prototype does not
   name. */
#include <quaject/vcode.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static v_reg p[12];
static int wrong;

/* Memory of its own for each function: emulators do not see that code is replaced through another mapping. */
static struct v_code *storage(void) {
    struct v_code *code = v_code_new(2048);
    if (!code) exit(2);
    return code;
}

/* The weighted sum of what the letters say. */
static double sum(const char *letters, va_list list) {
    double sum = 0, weight = 1;
    for (; *letters; letters++, weight *= 2) {
        switch (*letters) {
        case 'i': sum += weight * va_arg(list, int); break;
        case 'u': sum += weight * va_arg(list, unsigned); break;
        case 'l': sum += weight * (double)va_arg(list, long); break;
        case 'd': sum += weight * va_arg(list, double); break;
        case 'p': sum += weight * (double)*va_arg(list, char *); break;
        default: return -1;
        }
    }
    return sum;
}

__attribute__((noinline)) static double after_pointer(const char *letters, ...) {
    va_list list;
    va_start(list, letters);
    double result = sum(letters, list);
    va_end(list);
    return result;
}

/* Fixed floats: the convention of MIPS passes them elsewhere if the function is variadic. */
__attribute__((noinline)) static double after_floats(float a, double b, const char *letters, ...) {
    va_list list;
    va_start(list, letters);
    double result = sum(letters, list) + 1000 * a + 100000 * b;
    va_end(list);
    return result;
}

static const char *const signatures[] = {
    "", "i", "d", "id", "di", "ddd", "iiiiiii", "ddddddddd", "idididididid", "ldpuildp", "dddddddddddddddd", "lllllllllllld",
};

int main(void) {
    for (unsigned which = 0; which < sizeof signatures / sizeof signatures[0]; which++) {
        for (int has_floats = 0; has_floats < 2; has_floats++) {
            static const char letter = 3;
            const char *letters = signatures[which];
            char types[64] = "%p...";
            qjv_argument list[24];
            unsigned count = 0;
            double wanted = has_floats ? 1000 * 0.5 + 100000 * 0.25 : 0, weight = 1, found;
            v_reg one, half, quarter;
            v_lambda("", p, V_NLEAF, storage());
            if (!v_getreg(&one, V_TEMP) || !v_getfreg(&half, V_TEMP) || !v_getfreg(&quarter, V_TEMP)) return 1;
            v_setf(half, 0.5f);
            v_setd(quarter, 0.25);
            if (has_floats) {
                strcpy(types, "%f%d%p...");
                list[count++] = qjv_in(half);
                list[count++] = qjv_in(quarter);
            }
            list[count++] = qjv_value((int64_t)(uintptr_t)letters);
            for (const char *at = letters; *at; at++, weight *= 2) {
                size_t end = strlen(types);
                types[end] = '%', types[end + 1] = *at, types[end + 2] = 0;
                list[count++] = *at == 'd' ? qjv_in(quarter) : *at == 'p' ? qjv_value((int64_t)(uintptr_t)&letter) : qjv_value(-7);
                wanted += weight * (*at == 'd' ? 0.25 : *at == 'p' ? 3 : *at == 'u' ? 4294967289.0 : -7);
            }
            v_call(types, qjv_at_address(has_floats ? (uintptr_t)after_floats : (uintptr_t)after_pointer), list, count);
            v_retd(V_FRESULT);
            double (*function)(void) = (double (*)(void))v_end();
            if (!function) {
                printf("%s: error %d\n", types, v_error());
                return 1;
            }
            found = function();
            if (found == wanted) continue;
            printf("%s: %f instead of %f\n", types, found, wanted);
            wrong = 1;
        }
    }
    {
        static const char *const malformed[] = {"%p...%f", "%p......%d", "%p..%d", "..."};
        qjv_argument list[2] = {qjv_value(0), qjv_in(V_FRESULT)};
        for (unsigned which = 0; which < 3; which++) {
            v_lambda("", p, V_NLEAF, storage());
            v_call(malformed[which], qjv_at_address(1), list, 2);
            if (v_end() || v_error() != QJV_ERROR_SIGNATURE) printf("%s: %d\n", malformed[which], v_error()), wrong = 1;
        }
        /* The definition of a variadic function would have no registers for the rest. */
        for (unsigned which = 3; which < 4; which++) {
            v_lambda(malformed[which], p, V_NLEAF, storage());
            v_retv();
            if (v_end() || v_error() != QJV_ERROR_SIGNATURE) printf("%s: %d\n", malformed[which], v_error()), wrong = 1;
        }
    }
    return wrong;
}
