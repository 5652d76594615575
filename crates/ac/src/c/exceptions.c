/* The exceptions that a C++ task handles are its own, as a thread's are, however often it waits while it does. Knows nothing of
 * how they are thrown.
 *
 * The C++ run time keeps what it knows about exceptions per thread, and asks for the place by two functions of its ABI, each
 * time. They are replaced here, and name a place in the running task. So no switch of tasks has anything to do, whichever
 * language it is written in, and a program without C++ never comes here. The definitions are weak: in a program that is linked
 * with a static run time of C++ that one may be there before. Where the run time does not ask by these names (one that
 * was linked -Bsymbolic, a program linked --exclude-libs, tasks that live in a library opened by dlopen), tasks share what their
 * thread has. */
#include "internal.h"

/* Of threads without tasks, and of what runs outside of them. It outlives `qj_ac_start` and `qj_ac_stop`. */
static __thread struct qj_ac_exceptions of_thread;

static struct qj_ac_exceptions *exceptions_of(struct qj_ac_task *task) {
    return task == &qj_ac__no_task || task == &qj_ac__thread.root ? &of_thread : &task->exceptions;
}

struct qj_ac_exceptions *__cxa_get_globals(void);
struct qj_ac_exceptions *__cxa_get_globals_fast(void);

__attribute__((weak)) struct qj_ac_exceptions *__cxa_get_globals(void) { return exceptions_of(qj_ac__thread.current); }
__attribute__((weak)) struct qj_ac_exceptions *__cxa_get_globals_fast(void) { return exceptions_of(qj_ac__thread.current); }

__attribute__((weak)) void __cxa_end_catch(void);

void qj_ac__exceptions_forget(void) {
    struct qj_ac_exceptions *mine = exceptions_of(qj_ac__thread.current);
    while (mine->caught != NULL && __cxa_end_catch != NULL) __cxa_end_catch();
    mine->uncaught = 0;
}

void qj_ac__exceptions_leave(struct qj_ac_task *task, struct qj_ac_task *parent) {
    struct qj_ac_exceptions *from = exceptions_of(task);
    exceptions_of(parent)->uncaught += from->uncaught;
    *from = (struct qj_ac_exceptions){NULL, 0};
}
