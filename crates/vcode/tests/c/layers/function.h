/* The function of the tests of unwinding and of other machines: its parameters are the address of another function, a
   number x and a double, x + 1.5. It keeps more values than any machine has registers over a call with ten arguments, and
   returns x + 1 and the result of the call if all of them are what they were. */
#ifndef FUNCTION_H
#define FUNCTION_H

#include <quaject/vcode-layers.h>

static inline int write_function(int machine, size_t local_bytes, qjl_function **f, struct qjl_code *code) {
    enum { COUNT = 60, ARGUMENTS = 10 };
    struct qjl_options options;
    qjl_reg parameters[3], kept, other, many[COUNT], floats[COUNT], t;
    qjl_operand arguments[ARGUMENTS];
    long sum = 0;
    memset(&options, 0, sizeof options);
    options.machine = machine;
    options.bytes = 32768;
    options.labels = 256;
    options.constants = 128;
    const int status = qjl_begin(&options, "%p%l%d", parameters, 3, f);
    if (status) return status;
    if (local_bytes) qjl_local_bytes(*f, local_bytes, 8);
    const qjl_reg callback = parameters[0], x = parameters[1], y = parameters[2];
    qjl_getreg(*f, &kept, QJL_VAR);
    qjl_getreg(*f, &other, QJL_VAR);
    qjl_addli(*f, kept, x, 1);
    qjl_setl(*f, other, 100);
    for (int at = 0; at < COUNT; at++) {
        qjl_getreg(*f, &many[at], QJL_VAR);
        qjl_mulkl(*f, many[at], x, at);
        sum += at;
        qjl_getfloat(*f, &floats[at], QJL_VAR);
        qjl_setd(*f, floats[at], at);
        qjl_addd(*f, floats[at], floats[at], y);
    }
    for (int at = 0; at < ARGUMENTS; at++) arguments[at] = qjl_value(0);
    arguments[0] = qjl_in(x);
    arguments[1] = qjl_in(kept);
    arguments[9] = qjl_in(other);
    qjl_call(*f, "%l%l%l%l%l%l%l%l%l%l", qjl_in(callback), arguments, ARGUMENTS);
    qjl_getreg(*f, &t, QJL_TEMP);
    qjl_take_result(*f, t);
    qjl_addl(*f, kept, kept, t);
    for (int at = 0; at < COUNT; at++) {
        /* Adds at * x + at + x + 1, the last two from the double. */
        qjl_addl(*f, kept, kept, many[at]);
        qjl_cvd2l(*f, t, floats[at]);
        qjl_addl(*f, kept, kept, t);
    }
    qjl_mulkl(*f, t, x, sum + COUNT);
    qjl_addli(*f, t, t, sum + COUNT);
    qjl_subl(*f, kept, kept, t);
    qjl_retl(*f, kept);
    return qjl_end(*f, code);
}

#endif
