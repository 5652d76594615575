/* One operation, argument 2 times; callgrind counts. */
#include <quaject/ac/ipc.h>
#include <stdlib.h>
#include <string.h>

static volatile long count;
static __attribute__((noinline)) void empty(void *a) { (void)a, count++; }
static void waits(void *a) { (void)a, qj_ac_yield(), count++; }

static long turns;
static struct qj_ac_task *other[2];
static uint32_t number[2];

static void yields(void *a) {
    (void)a;
    for (long i = 0; i < turns; i++) qj_ac_yield();
}
static void direct(void *a) {
    long me = (long)a;
    other[me] = qj_ac_current();
    if (me == 0) qj_ac_suspend();
    else qj_ac_yield();
    struct qj_ac_task *to = other[!me];
    for (long i = 0; i < turns; i++) qj_ac_yield_to_nodispatch(to);
    if (me == 1) qj_ac_schedule(to), qj_ac_suspend();
    else qj_ac_schedule(to);
}
static void by_number(void *a) {
    long me = (long)a;
    number[me] = qj_ac_id_create();
    if (me == 0) qj_ac_yield_and_save_nodispatch(number[0]);
    else qj_ac_yield();
    uint32_t to = number[!me], own = number[me];
    for (long i = 0; i < turns; i++) qj_ac_yield_to_id_and_save_nodispatch(to, own);
    qj_ac_schedule(qj_ac_id_task(to));
    if (me == 1) qj_ac_yield_and_save_nodispatch(own);
}

/* A call over a channel whose other side this thread serves too: all that both sides spend on it. */
static struct qj_ac_channel caller, callee;
static void calls(void *a) {
    struct qj_ac_message message = {{(uint64_t)(uintptr_t)a}};
    if (qj_ac_call(&caller, &message, &message) != 0 || message.words[0] != (uint64_t)(uintptr_t)a + 1) abort();
}
static void call_and_serve(long n) {
    struct qj_ac_message message;
    uint32_t cookie;
    int memory = qj_ac_channel_memory(4);
    if (qj_ac_channel_open(&caller, memory, 4, 0) != 0 || qj_ac_channel_open(&callee, memory, 4, 1) != 0) abort();
    DO_FINISH({
        for (long i = 0; i < n; i++) {
            qj_ac_async(calls, (void *)i);
            if (qj_ac_poll_recv(&callee, &message, &cookie) != 0) abort();
            message.words[0]++;
            qj_ac_reply(&callee, cookie, &message);
            if (qj_ac_poll_recv(&caller, &message, &cookie) != -EWOULDBLOCK) abort();
        }
    });
}

int main(int arguments, char **argument) {
    long n = arguments > 2 ? atol(argument[2]) : 1;
    const char *operation = arguments > 1 ? argument[1] : "";
    turns = n / 2;
    if (strcmp(operation, "async") == 0) {
        DO_FINISH({ for (long i = 0; i < n; i++) qj_ac_async(empty, NULL); });
    } else if (strcmp(operation, "finish-yield") == 0) {
        for (long i = 0; i < n; i++) DO_FINISH({ qj_ac_async(waits, NULL); });
    } else if (strcmp(operation, "yield") == 0) {
        DO_FINISH({
            qj_ac_async(yields, NULL);
            qj_ac_async(yields, NULL);
        });
    } else if (strcmp(operation, "yield-direct") == 0) {
        DO_FINISH({
            qj_ac_async(direct, (void *)0);
            qj_ac_async(direct, (void *)1);
        });
    } else if (strcmp(operation, "yield-id") == 0) {
        DO_FINISH({
            qj_ac_async(by_number, (void *)0);
            qj_ac_async(by_number, (void *)1);
        });
    } else if (strcmp(operation, "call") == 0) {
        call_and_serve(n);
    } else {
        return 2;
    }
    return 0;
}
