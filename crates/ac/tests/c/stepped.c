/* A debugger steps through the body of FINISH_BEGIN line by line; the test knows the lines by their marks. */
#include <quaject/ac.h>

static volatile int sum;
__attribute__((noinline)) void adds(int number) {
    qj_ac_yield();
    sum += number;
}

__attribute__((noinline)) int body(void) {
    int first = 1;               /* step 1 */
    FINISH_BEGIN(block)          /* step 2 */
        int second = first + 1;  /* step 3 */
        ASYNC_CALL(adds, first); /* step 4 */
        second += first;         /* step 5 */
        sum += second;           /* step 6 */
        ASYNC_CALL(adds, second);/* step 7 */
        if (sum == 0) return 1;  /* step 8 */
        sum += 2;                /* step 9 */
    FINISH_END(block)            /* step 10 */
    return sum;                  /* step 11 */
}

int main(void) { return body() == 9 ? 0 : 1; }
