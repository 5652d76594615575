/* ASYNC_CALL converts its arguments to the types of the parameters, as the call itself would, and takes any expression
 * for the function. Each call is made twice: the task waits before it looks, so that its arguments are its own. */
#include <quaject/ac.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdarg.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define ALONE __attribute__((noinline))

struct pair {
    long first;
    double second;
};
struct small {
    char letters[3];
};
static int ran;

static ALONE void real(double a) { qj_ac_yield(), CHECK(a == 3), ran++; }
static ALONE void single(float a, int b) { qj_ac_yield(), CHECK(a == 0.5f && b == -2), ran++; }
static ALONE void mixed(int a, double b, char c, float d, long e, double f) {
    qj_ac_yield(), CHECK(a == 7 && b == 3 && c == 'x' && d == 2 && e == -1 && f == 1.5), ran++;
}
static ALONE void truth(bool a) { qj_ac_yield(), CHECK(a == true), ran++; }
static ALONE void byte(unsigned char a) { qj_ac_yield(), CHECK(a + 0 == 44), ran++; }
static ALONE void narrow(signed char a, unsigned short b) { qj_ac_yield(), CHECK(a + 0 == -56 && b + 0 == 4464), ran++; }
static ALONE void wide(long long a, unsigned long b) { qj_ac_yield(), CHECK(a == -1 && b == ~0ul), ran++; }
static ALONE void very_wide(__int128 a) { qj_ac_yield(), CHECK(a == -5), ran++; }
static ALONE void longest(long double a, long double b, __int128 c, long double d, struct pair e, long double f) {
    qj_ac_yield(), CHECK(a == 1 && b == 2 && c == 3 && d == 4 && e.first == 5 && e.second == 6 && f == 7), ran++;
}
static ALONE void structures(struct pair a, struct small b) {
    qj_ac_yield(), CHECK(a.first == 1 && a.second == 2.5 && b.letters[2] == 'c'), ran++;
}
static ALONE int text(const char *a, const void *b) { qj_ac_yield(), CHECK(a[1] == 'e' && b == &ran); return ran++; }
static ALONE void variable(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    CHECK(va_arg(arguments, int) == 4);
    CHECK(va_arg(arguments, double) == 2.5);
    CHECK(*va_arg(arguments, const char *) == 'z');
    qj_ac_yield();
    CHECK(va_arg(arguments, long) == -7);
    va_end(arguments);
    ran++;
}
static ALONE __attribute__((warn_unused_result)) double result(float a) { return qj_ac_yield(), ran++, (double)a; }
static ALONE void counted(long a) { qj_ac_yield(), CHECK(a == 5), ran++; }
static void (*pointer)(double) = real;
static void (**const to_pointer)(double) = &pointer;

/* An argument that starts a task of its own, and waits. */
static int argument(void) {
    DO_FINISH({
        ASYNC_CALL(real, 3);
        qj_ac_yield();
    });
    return 3;
}

static void all(void) {
    int three = 3, n = 5, *address = &three;
    struct pair one = {1, 2.5}, five = {5, 6};
    struct small letters = {{'a', 'b', 'c'}};
    ran = 0;
    DO_FINISH({
        ASYNC_CALL(real, three);
        ASYNC_CALL(real, 3.0f);
        ASYNC_CALL(single, 0.5, -2L);
        ASYNC_CALL(mixed, 7, three, 'x', 2, -1, 1.5f);
        ASYNC_CALL(truth, 256);
        ASYNC_CALL(truth, address);
        ASYNC_CALL(byte, three * 100);
        ASYNC_CALL(narrow, three + 197, three + 69997);
        ASYNC_CALL(wide, -1, -1);
        ASYNC_CALL(very_wide, -5);
        ASYNC_CALL(longest, 1, 2, 3, 4, five, 7);
        ASYNC_CALL(structures, one, letters);
        ASYNC_CALL(text, "yes", &ran);
        ASYNC_CALL(variable, "%d", 4, 2.5, "z", -7L);
        ASYNC_CALL(result, 1);
        ASYNC_CALL(counted, n++);
        ASYNC_CALL(pointer, 3);
        ASYNC_CALL(*to_pointer, 3);
        ASYNC_CALL(**to_pointer, 3);
        ASYNC_CALL(three == 3 ? real : NULL, 3);
        ASYNC_CALL(three == 3 ? counted : NULL, 5L);
        ASYNC_CALL(real, argument());
    });
    CHECK(n == 6);
    CHECK(ran == 23);
}

static void in_a_task(void *a) { (void)a, all(); }

int main(void) {
    all();
    DO_FINISH({ qj_ac_async(in_a_task, NULL); });
    printf("arguments arrive converted\n");
    return 0;
}
