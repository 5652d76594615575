/* The order of everything: Figure 1 of the paper, eager and lazy, yields by name and by number, cancellation. */
#include <quaject/ac.h>
#include <stdio.h>

static void say(const char *text) { printf("%s ", text); }
static void line(const char *title) { printf("\n%s: ", title); }

static void something(void *a) { (void)a, say("[1"), qj_ac_yield(), say("1]"); }
static void something_else(void *a) { (void)a, say("2"); }

static struct qj_ac_task *saved;
static void waits(void *a) { (void)a, say("[w"), saved = qj_ac_current(), qj_ac_suspend(), say("w]"); }
static void yields_to_saved(void *a) { (void)a, say("[y"), qj_ac_yield_to(saved), say("y]"); }
static void yields_to_root(void *root) {
    say("[r");
    printf("%d ", qj_ac_yield_to(root));
    say("r]");
}
static void spawns_yielder_to_root(void *root) {
    say("[s");
    qj_ac_async(yields_to_root, root);
    say("s]");
}

static uint32_t number_a, number_b;
static void by_number_a(void *a) {
    (void)a, number_a = qj_ac_id_create();
    qj_ac_yield_and_save_nodispatch(number_a);
    for (int i = 0; i < 2; i++) say("a"), qj_ac_yield_to_id_and_save_nodispatch(number_b, number_a);
    say("a."), qj_ac_schedule(qj_ac_id_task(number_b)), qj_ac_id_remove(number_a);
}
static void by_number_b(void *a) {
    (void)a, number_b = qj_ac_id_create();
    qj_ac_yield();
    for (int i = 0; i < 2; i++) say("b"), qj_ac_yield_to_id_and_save_nodispatch(number_a, number_b);
    qj_ac_yield_to_id_and_save_nodispatch(number_a, number_b);
    say("b."), qj_ac_id_remove(number_b);
}
/* The running task yields to the one that the script names: back to the one it was resumed by, or on to another. */
static uint32_t numbers[3];
static const char *script;
static void follows_the_script(void *a) {
    uintptr_t me = (uintptr_t)a;
    uint32_t own = numbers[me] = qj_ac_id_create();
    qj_ac_yield_and_save_nodispatch(own);
    while (*script != '\0') {
        printf("%d", (int)me);
        uint32_t to = numbers[*script++ - '0'];
        if (qj_ac_yield_to_id_and_save_nodispatch(to, own) != 0) say("lost");
    }
    printf("%d. ", (int)me);
    for (int i = 0; i < 3; i++) {
        struct qj_ac_task *other = qj_ac_id_task(numbers[i]);
        if (other == NULL || other == qj_ac_current()) continue;
        qj_ac_id_set(numbers[i], NULL);
        qj_ac_schedule_back(other);
    }
    qj_ac_id_remove(own);
}
/* One whose first wait is a yield by number: it is still the first of the pool then. */
static void waits_under_number(void *a) {
    (void)a, number_a = qj_ac_id_create();
    say("[n"), qj_ac_yield_and_save_nodispatch(number_a);
    say("n"), qj_ac_schedule(qj_ac_id_task(number_b)), qj_ac_id_remove(number_a);
    qj_ac_yield(), say("n]");
}
static void first_by_number(void *a) {
    (void)a, number_b = qj_ac_id_create();
    say("[f"), printf("%d ", qj_ac_yield_to_id_and_save_nodispatch(number_a, number_b));
    say("f]"), qj_ac_id_remove(number_b);
}
static void saves(void *id) { say("[v"), qj_ac_yield_and_save((uint32_t)(uintptr_t)id), say("v]"); }

/* What it waits for has not happened: a yield to it, or its scheduling, does not end the wait. */
static struct qj_ac_semaphore later;
static void waits_for(const char *what) {
    saved = qj_ac_current();
    if (*what == 's') printf("slept:%d ", qj_ac_sleep(300000000));
    if (*what == 'p') qj_ac_semaphore_p(&later), say("passed");
}

static struct qj_ac_semaphore never;
static void waits_for_ever(const char *name) {
    int result = qj_ac_semaphore_p_x(&never);
    printf("%s%s ", name, result == QJ_AC_CANCELED ? "!" : "?");
}
static void inner_block(const char *first, const char *second) {
    DO_FINISH({
        ASYNC_CALL(waits_for_ever, first);
        ASYNC_CALL(waits_for_ever, second);
    });
    say("inner");
}
static void shielded(void) {
    DO_FINISH_NX({
        printf("%d ", qj_ac_yield());
        printf("%d ", qj_ac_is_canceled());
    });
    printf("%d ", qj_ac_is_canceled() != 0);
}
static void canceled_item(void *name) { printf("%s ", (const char *)name); }

int main(void) {
    line("lazy");
    DO_FINISH({
        qj_ac_async(something, NULL);
        say("parent");
        qj_ac_async(something_else, NULL);
        say("end");
    });
    line("eager");
    DO_FINISH({
        qj_ac_async_eager(something, NULL);
        say("parent");
        qj_ac_async_eager(something_else, NULL);
        say("end");
    });
    line("yield to a task that waits");
    DO_FINISH({
        qj_ac_async(waits, NULL);
        qj_ac_async(yields_to_saved, NULL);
        say("end");
    });
    line("yield to one in the queue");
    DO_FINISH({
        qj_ac_async(something, NULL);
        qj_ac_async(something, NULL);
        struct qj_ac_task *second = qj_ac__thread.queue.prev;
        qj_ac_yield_to(second);
        say("end");
    });
    line("yield to the parent's parent");
    DO_FINISH({
        qj_ac_async(spawns_yielder_to_root, qj_ac_current());
        say("end");
    });
    line("yield to one that waits for something else");
    DO_FINISH({
        ASYNC_CALL(waits_for, "sleep");
        printf("%d ", qj_ac_yield_to(saved));
        say("yielded");
    });
    DO_FINISH({
        ASYNC_CALL(waits_for, "p");
        printf("%d ", qj_ac_yield_to(saved));
        qj_ac_schedule(saved), qj_ac_yield();
        say("yielded"), qj_ac_semaphore_v(&later);
    });
    DO_FINISH({
        ASYNC_CALL(waits_for, "p");
        qj_ac_schedule(saved), qj_ac_semaphore_v(&later);
    });
    line("yield to no task");
    DO_FINISH({
        printf("%d %d %d ", qj_ac_yield_to(qj_ac_current()), qj_ac_yield_to_id(77), qj_ac_yield_and_save(77));
    });
    line("numbers");
    DO_FINISH({
        qj_ac_async(by_number_a, NULL);
        qj_ac_async(by_number_b, NULL);
    });
    line("back to the predecessor, and on to another");
    DO_FINISH({
        for (uintptr_t i = 0; i < 3; i++) qj_ac_async(follows_the_script, (void *)i);
        script = "12012012101010212120";
        qj_ac_yield_to_id(numbers[0]);
    });
    line("a first wait by number, and more tasks");
    DO_FINISH({
        qj_ac_async(waits_under_number, NULL);
        qj_ac_async(first_by_number, NULL);
        qj_ac_async(something, NULL);
        qj_ac_async(something, NULL);
        say("end");
    });
    line("numbers in the queue");
    uint32_t v = qj_ac_id_create();
    DO_FINISH({
        qj_ac_async(saves, (void *)(uintptr_t)v);
        printf("%d ", qj_ac_id_task(v) != NULL);
        printf("%d ", qj_ac_yield_to_id(v));
        printf("%d %d ", qj_ac_id_task(v) != NULL, qj_ac_yield_to_id(v));
    });
    qj_ac_id_remove(v);
    printf("%d ", qj_ac_id_remove(v));

    line("cancel, innermost blocks first, newest first");
    DO_FINISH_(all, {
        ASYNC_CALL(waits_for_ever, "a");
        ASYNC_CALL(waits_for_ever, "b");
        ASYNC_CALL(inner_block, "c", "d");
        CANCEL(all);
        printf("now:%d late:", qj_ac_is_canceled());
        ASYNC_CALL(waits_for_ever, "e");
    });
    printf("after:%d ", qj_ac_is_canceled());
    line("items, newest first; a removed item is not run");
    DO_FINISH_(all, {
        struct qj_ac_cancel_item one, two, three;
        qj_ac_cancel_item_add(&one, canceled_item, "one");
        qj_ac_cancel_item_add(&two, canceled_item, "two");
        qj_ac_cancel_item_add(&three, canceled_item, "three");
        qj_ac_cancel_item_remove(&two);
        CANCEL(all);
        printf("%d%d%d ", one.ran, two.ran, three.ran);
    });
    line("only the named block");
    DO_FINISH_(outer, {
        DO_FINISH_(inner, {
            ASYNC_CALL(waits_for_ever, "x");
            CANCEL(inner);
        });
        printf("outer:%d ", qj_ac_is_canceled());
        CANCEL(outer);
        printf("outer:%d ", qj_ac_is_canceled());
    });
    line("a shield");
    DO_FINISH_(outer, {
        CANCEL(outer);
        ASYNC_CALL(shielded);
    });
    line("deadline");
    struct qj_ac_finish block;
    qj_ac_finish_begin(&block);
    qj_ac_deadline(&block, 1000000);
    ASYNC_CALL(waits_for_ever, "z");
    qj_ac_finish_end(&block);
    printf("%d ", qj_ac_expired(&block));
    DO_FINISH_(quick, { qj_ac_deadline(quick, 3600000000000u); });
    line("sleep");
    DO_FINISH_(quick, {
        printf("%d ", qj_ac_sleep(1000));
        qj_ac_deadline(quick, 1000000);
        printf("%d ", qj_ac_sleep(3600000000000u) == QJ_AC_CANCELED);
    });
    printf("\n");
    qj_ac_stop();
    return 0;
}
