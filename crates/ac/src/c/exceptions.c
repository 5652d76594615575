/* Exception state per task: a C++ task handles exceptions as a thread does, even if it waits inside a handler.
 *
 * The C++ run time keeps its exception state per thread, and obtains its address by two functions of its ABI
 * (__cxa_get_globals). They are replaced here and return the state in the running task. So a switch has nothing to
 * save, and a program without C++ is not affected. The definitions are weak, because a program with a static C++ run
 * time may define them first. Where the run time does not call them by these names (linked with -Bsymbolic, a program
 * linked with --exclude-libs, tasks in a library opened by dlopen), tasks share the state of their thread. */
#include "internal.h"

/* The state of threads without tasks, and of code outside of tasks. It outlives `qj_ac_start` and `qj_ac_stop`. */
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
