/* Variables of the braces of DO_FINISH, which clang keeps: the next block has variables of the same size. */
#include <quaject/ac.h>
#include <stdio.h>

static void looks(const int *values) {
    int same = 1;
    qj_ac_yield();
    for (int i = 0; i < 50; i++) same &= values[i] == 2;
    printf("%s\n", same ? "kept" : "lost");
}
static __attribute__((noinline)) void fill(int *values, int with) {
    for (int i = 0; i < 50; i++) values[i] = with;
}

int main(void) {
    for (int i = 0; i < 2; i++) {
        DO_FINISH({
            {
                int values[50];
                ASYNC_CALL(looks, values);
                fill(values, 2);
            }
            {
                int others[50];
                fill(others, -1);
                __asm__ volatile("" : : "r"(others) : "memory");
            }
        });
    }
    return 0;
}
