/* Whatever a thread calls first works, and starts its tasks if it must. */
#include <quaject/ac/io.h>
#include <quaject/thc.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))

static int ends[2];
static void schedules(struct qj_ac_task *task) {
    qj_ac_yield();
    qj_ac_schedule(task);
}
static void now(void *argument) { qj_ac_schedule(*(struct qj_ac_task **)argument); }
static void ignore(void *argument) { (void)argument; }

static void current(void) {
    struct qj_ac_task *me = qj_ac_current();
    DO_FINISH({
        ASYNC_CALL(schedules, me);
        qj_ac_suspend();
    });
    CHECK(qj_ac_current() == me);
}
static void suspend_then(void) {
    struct qj_ac_task *me;
    qj_ac_suspend_then(&me, now, &me);
    CHECK(me == qj_ac_current());
}
static void yield(void) { CHECK(qj_ac_yield() == 0); }
static void yield_to_itself(void) { CHECK(qj_ac_yield_to(qj_ac_current()) == -ESRCH); }
static void finish(void) { DO_FINISH(); }
static void number(void) { CHECK(qj_ac_id_remove(qj_ac_id_create()) == 0); }
static void canceled(void) { CHECK(qj_ac_is_canceled() == 0); }
static void item(void) {
    struct qj_ac_cancel_item item;
    CHECK(qj_ac_cancel_item_add(&item, ignore, NULL) == 0);
    qj_ac_cancel_item_remove(&item);
}
static void semaphore(void) {
    struct qj_ac_semaphore one;
    qj_ac_semaphore_init(&one, 1);
    CHECK(qj_ac_semaphore_p_x(&one) == 0);
    qj_ac_semaphore_v(&one);
}
static void lock(void) {
    struct qj_ac_lock one;
    qj_ac_lock_init(&one);
    qj_ac_lock_acquire(&one);
    qj_ac_lock_release(&one);
}
static void sleeps(void) { CHECK(qj_ac_sleep(1000) == 0); }
static void writes(void) { CHECK(qj_ac_write_all(ends[1], "x", 1) == 0); }
static void reads(void) {
    char text;
    CHECK(qj_ac_read(ends[0], &text, 1) == 1 && text == 'x');
}
static void backend(void) { CHECK(qj_ac_io_backend() != NULL); }
static void statistics(void) {
    struct qj_ac_statistics all;
    qj_ac_read_statistics(&all);
    CHECK(all.stacks == 0);
}
static void names(void) { qj_ac_name("first"); }
static void stop(void) { qj_ac_stop(); }

static void *run(void *function) {
    (*(void (**)(void))function)();
    return NULL;
}

int main(void) {
    static void (*const functions[])(void) = {current,  suspend_then, yield, yield_to_itself, finish, number,
                                              canceled, item,         semaphore, lock,        sleeps, writes,
                                              reads,    backend,      statistics, names,      stop};
    CHECK(pipe(ends) == 0);
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, NULL, run, (void *)(uintptr_t)&functions[i]) == 0);
        pthread_join(thread, NULL);
    }
    printf("%zu first calls\n", sizeof functions / sizeof *functions);
    return 0;
}
