/* Out-of-line definitions of the inline functions, for languages that cannot include a C header; and three operations
 * for the scopes of Rust: a task in a block that is not the innermost one, a wake by any thread, and a wait that
 * another thread may end. */
#include "internal.h"

void qj_ac_ffi_async_in(struct qj_ac_finish *block, void (*function)(void *), void *argument);
void qj_ac_ffi_finish_begin(struct qj_ac_finish *block);
void qj_ac_ffi_finish_begin_shielded(struct qj_ac_finish *block);
void qj_ac_ffi_finish_end(struct qj_ac_finish *block);
int qj_ac_ffi_yield(void);
void qj_ac_ffi_suspend(void);
int qj_ac_ffi_is_canceled(void);
struct qj_ac_task *qj_ac_ffi_current(void);
void qj_ac_ffi_name(const char *name);
size_t qj_ac_ffi_finish_bytes(void);
int qj_ac_ffi_expired(const struct qj_ac_finish *block);
int qj_ac_ffi_is_idle(void);
void qj_ac_ffi_wake(struct qj_ac_task *task);
void qj_ac_ffi_wait_remote(void);
int qj_ac_ffi_wait_remote_x(void);

void qj_ac_ffi_async_in(struct qj_ac_finish *block, void (*function)(void *), void *argument) {
    struct qj_ac_task *task = qj_ac__thread.current;
    struct qj_ac_finish *innermost = task->finish;
    task->finish = block;
    qj_ac_async(function, argument);
    task->finish = innermost;
}
void qj_ac_ffi_finish_begin(struct qj_ac_finish *block) { qj_ac_finish_begin(block); }
void qj_ac_ffi_finish_begin_shielded(struct qj_ac_finish *block) { qj_ac_finish_begin_shielded(block); }
void qj_ac_ffi_finish_end(struct qj_ac_finish *block) { qj_ac_finish_end(block); }
int qj_ac_ffi_yield(void) { return qj_ac_yield(); }
void qj_ac_ffi_suspend(void) { qj_ac_suspend(); }
int qj_ac_ffi_is_canceled(void) { return qj_ac_is_canceled(); }
struct qj_ac_task *qj_ac_ffi_current(void) { return qj_ac_current(); }
void qj_ac_ffi_name(const char *name) { qj_ac_name(name); }
size_t qj_ac_ffi_finish_bytes(void) { return sizeof(struct qj_ac_finish); }
int qj_ac_ffi_expired(const struct qj_ac_finish *block) { return qj_ac_expired(block); }

/* Whether the thread has no task, and no open block. */
int qj_ac_ffi_is_idle(void) {
    const struct qj_ac_runtime *runtime = &qj_ac__thread;
    return runtime->current == &qj_ac__no_task || (runtime->current == &runtime->root && runtime->root.finish == NULL);
}

void qj_ac_ffi_wake(struct qj_ac_task *task) { qj_ac__schedule_remote(task, QJ_AC_WAKE_RECHECK); }

void qj_ac_ffi_wait_remote(void) {
    struct qj_ac_task *task = qj_ac__thread.current;
    /* A waker may be late: it must not end a later wait of this task, whose frame is referenced until then. */
    task->flags |= QJ_AC_TASK_REMOTE_WAIT;
    qj_ac_suspend_remote();
    task->flags &= ~QJ_AC_TASK_REMOTE_WAIT;
}

static void stop_waiting(void *argument) {
    struct qj_ac_task *task = argument;
    /* Another thread may have woken it already. */
    if (task->prev == NULL && qj_ac__is_suspended(task)) qj_ac_schedule_back(task);
}

int qj_ac_ffi_wait_remote_x(void) {
    struct qj_ac_cancel_item item;
    if (qj_ac_cancel_item_add(&item, stop_waiting, qj_ac__thread.current) != 0) return QJ_AC_CANCELED;
    qj_ac_ffi_wait_remote();
    qj_ac_cancel_item_remove(&item);
    return qj_ac_is_canceled() ? QJ_AC_CANCELED : 0;
}
