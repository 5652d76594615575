/* Numbers of tasks at their ends: what is no number finds nothing, also before the first was made; one index is used
 * for all its generations, and gives neither 0 nor -1. */
#include <quaject/ac.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define ALL 65535

static const uint32_t none[] = {0, 1, 2, 3, 0xffff, 0x10000, 0x10001, 0xffff0000, 0xfffffffe, UINT32_MAX};

static void find_nothing(void) {
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        CHECK(qj_ac_id_task(none[i]) == NULL);
        CHECK(qj_ac_id_set(none[i], NULL) == -EINVAL);
        CHECK(qj_ac_id_remove(none[i]) == -EINVAL);
        CHECK(qj_ac_yield_and_save(none[i]) == -EINVAL);
        CHECK(qj_ac_yield_and_save_nodispatch(none[i]) == -EINVAL);
        CHECK(qj_ac_yield_to_id(none[i]) == -ESRCH);
        CHECK(qj_ac_yield_to_id_nodispatch(none[i]) == -ESRCH);
        CHECK(qj_ac_yield_to_id_and_save(none[i], none[i]) == -EINVAL);
        CHECK(qj_ac_yield_to_id_and_save_nodispatch(none[i], none[i]) == -ESRCH);
    }
}

/* Tasks that want a number get one, in their order, as soon as others are removed. */
static uint32_t got[3];
static int waiting;
static void wants(void *index) {
    waiting++;
    got[(uintptr_t)index] = qj_ac_id_create();
    waiting--;
}
static void wait_for_room(const uint32_t *all) {
    CHECK(qj_ac_try_id_create() == 0);
    DO_FINISH({
        for (uintptr_t i = 0; i < 3; i++) qj_ac_async(wants, (void *)i);
        qj_ac_yield();
        CHECK(waiting == 3);
        for (int i = 0; i < 3; i++) {
            CHECK(qj_ac_id_remove(all[i]) == 0);
            qj_ac_yield();
            CHECK(waiting == 2 - i && got[i] != 0 && got[i] != all[i]);
        }
    });
    CHECK(qj_ac_try_id_create() == 0);
}

int main(void) {
    static uint32_t all[ALL];
    find_nothing();
    qj_ac_start();
    find_nothing();
    CHECK(qj_ac_id_remove(qj_ac_id_create()) == 0);
    find_nothing();
    for (int i = 0; i < ALL; i++) all[i] = qj_ac_id_create();
    /* The last index of the table is the only free one. */
    uint32_t number = 0;
    for (int i = 0; i < ALL; i++) {
        if ((all[i] & 0xffff) == 0xffff) number = all[i];
    }
    CHECK(number != 0);
    for (int i = 0; i < 200000; i++) {
        CHECK(qj_ac_id_remove(number) == 0);
        uint32_t next = qj_ac_id_create();
        CHECK((next & 0xffff) == 0xffff && next != number && next != 0 && next != UINT32_MAX);
        CHECK(qj_ac_id_task(number) == NULL && qj_ac_id_remove(number) == -EINVAL);
        number = next;
    }
    wait_for_room(all);
    qj_ac_stop();
    find_nothing();
    printf("all numbers are numbers\n");
    return 0;
}
