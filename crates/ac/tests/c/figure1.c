/* Figure 1 of the paper, and LCD_MAIN from a thread whose stack has no null at its bottom. */
#include <pthread.h>
#include <quaject/thc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define print(text) fputs(text, stdout)

static void do_something() {
    THCYield();
    print("Got here too.\n");
}
static void do_something_else() { print("Got here.\n"); }

static void *figure(void *argument) {
    (void)argument;
    thc_init();
    LCD_MAIN(
    DO_FINISH(
        {
            ASYNC(do_something(););
            ASYNC(do_something_else(););
        });
    );
    thc_done();
    return NULL;
}

int main(void) {
    figure(NULL);
    enum { STACK = 1 << 20 };
    static _Alignas(4096) unsigned char stack[STACK];
    memset(stack, 0x5a, sizeof stack);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstack(&attributes, stack, STACK);
    pthread_t thread;
    if (pthread_create(&thread, &attributes, figure, NULL) != 0) abort();
    pthread_join(thread, NULL);
    return 0;
}
