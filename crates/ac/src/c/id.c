/* Tasks by number: the AWE mapper of "Extensions to Barrelfish Asynchronous C" (5.1), with a generation in every
 * number. The first number reserves the table for all 65,536 indices; untouched pages take no memory. */
#include "internal.h"

#include <sys/mman.h>

/* The table of a thread before its first number. Even numbers map to the first slot and odd ones to the second, whose
 * ids differ from all of them. */
struct qj_ac_slot qj_ac__no_slots[QJ_AC_NO_SLOTS] = {{NULL, 1, 0}, {NULL, 0, 0}};

void qj_ac__ids_init(struct qj_ac_runtime *runtime) {
    runtime->slots = qj_ac__no_slots;
    runtime->slot_mask = QJ_AC_NO_SLOTS - 1;
}

/* Free slots form a queue, not a stack: an index is reused as late as possible, so that a stale number has an old
 * generation. Index 0 is never allocated, so that 0 is no number. */
static bool make_table(struct qj_ac_runtime *runtime) {
    size_t bytes = QJ_AC_SLOTS * sizeof(struct qj_ac_slot);
    void *table = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (table == MAP_FAILED) return false;
    runtime->slots = table;
    runtime->slots[0].id = UINT32_MAX;
    runtime->slot_mask = QJ_AC_SLOTS - 1;
    runtime->slots_used = 1;
    runtime->free_first = runtime->free_last = 0;
    return true;
}

void qj_ac__ids_stop(struct qj_ac_runtime *runtime) {
    if (runtime->slot_mask != QJ_AC_SLOTS - 1) return;
    munmap(runtime->slots, QJ_AC_SLOTS * sizeof(struct qj_ac_slot));
    qj_ac__ids_init(runtime);
}

uint32_t qj_ac_try_id_create(void) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    if (runtime->current == &qj_ac__no_task) qj_ac_start();
    if (runtime->slot_mask != QJ_AC_SLOTS - 1 && !make_table(runtime)) return 0;
    uint32_t index = runtime->free_first;
    /* 1,023 fresh slots first; then the slot that has been free for the longest time. */
    if (runtime->slots_used < QJ_AC_SLOTS && (index == 0 || runtime->slots_used < QJ_AC_SLOTS / 64)) {
        index = runtime->slots_used++;
        runtime->slots[index].id = index;
    } else if (index != 0) {
        runtime->free_first = runtime->slots[index].next_free;
        if (runtime->free_first == 0) runtime->free_last = 0;
    } else {
        return 0;
    }
    struct qj_ac_slot *slot = &runtime->slots[index];
    /* The generation of a free slot is the last one used. Generation 0 is skipped after a wrap, because 0 is no number,
     * and the last one always, because -1 is an error. */
    uint32_t generation = (slot->id >> 16) + 1;
    if (generation >= 0xffff) generation = 1;
    slot->id = generation << 16 | index;
    slot->task = NULL;
    return slot->id;
}

/* In the frame of a task that waits for a number. */
struct id_wait {
    struct id_wait *next;
    struct qj_ac_task *task;
    bool woken;
};
static __thread struct id_wait *id_waits, **id_waits_end;

bool qj_ac__id_waits(void) { return id_waits != NULL; }

void qj_ac__fatal_no_id(void) {
    qj_ac__fatal("out of task numbers: all %u of this thread are in use; give back with qj_ac_id_remove() what no task waits "
               "under",
               QJ_AC_SLOTS - 1);
}

static void wait_for_id(struct qj_ac_runtime *runtime) {
    if (runtime->slot_mask != QJ_AC_SLOTS - 1) {
        /* There is no table yet. The end of other tasks may free memory for it. */
        if (runtime->queue.next == &runtime->queue) qj_ac__fatal("out of memory for the table of task numbers");
        qj_ac_yield();
        return;
    }
    struct id_wait wait = {NULL, runtime->current, false};
    if (id_waits == NULL) id_waits_end = &id_waits;
    *id_waits_end = &wait;
    id_waits_end = &wait.next;
    while (!wait.woken) qj_ac_suspend();
}

static void wake_for_id(void) {
    struct id_wait *wait = id_waits;
    id_waits = wait->next;
    wait->woken = true;
    qj_ac__make_runnable(wait->task);
}

uint32_t qj_ac_id_create(void) {
    uint32_t id;
    while ((id = qj_ac_try_id_create()) == 0) wait_for_id(&qj_ac__thread);
    return id;
}

static struct qj_ac_slot *slot_of(uint32_t id) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_slot *slot = &runtime->slots[id & runtime->slot_mask];
    return slot->id == id ? slot : NULL;
}

int qj_ac_id_remove(uint32_t id) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_slot *slot = slot_of(id);
    if (slot == NULL) return -EINVAL;
    uint32_t index = id & 0xffff;
    slot->task = NULL;
    /* No number refers to it while it is free: index 0 marks it, and `id` keeps the generation. */
    slot->id = id & 0xffff0000u;
    slot->next_free = 0;
    if (runtime->free_last != 0) {
        runtime->slots[runtime->free_last].next_free = index;
    } else {
        runtime->free_first = index;
    }
    runtime->free_last = index;
    if (QJ_AC_UNLIKELY(id_waits != NULL)) wake_for_id();
    return 0;
}

int qj_ac_id_set(uint32_t id, struct qj_ac_task *task) {
    struct qj_ac_slot *slot = slot_of(id);
    if (slot == NULL) return -EINVAL;
    /* Without a thread: it has ended, and its stack was given back. */
    if (task != NULL && task->runtime != NULL && task->runtime != &qj_ac__thread) qj_ac__fatal_other_thread("qj_ac_id_set()", task);
    slot->task = task;
    return 0;
}

/* After a wait that may have ended by the dispatch queue: a number refers to no task while its task runs. */
static int release_own_id(struct qj_ac_slot *slot, uint32_t own, struct qj_ac_task *task, int result) {
    if (slot->id == own && slot->task == task) slot->task = NULL;
    return result;
}

int qj_ac_yield_and_save(uint32_t own) {
    struct qj_ac_slot *slot = slot_of(own);
    if (slot == NULL) return -EINVAL;
    struct qj_ac_task *task = qj_ac__thread.current;
    slot->task = task;
    return release_own_id(slot, own, task, qj_ac_yield());
}

int qj_ac_yield_to_id(uint32_t to) {
    struct qj_ac_slot *target = slot_of(to);
    if (target == NULL || target->task == NULL) return -ESRCH;
    struct qj_ac_task *task = target->task;
    target->task = NULL;
    return qj_ac_yield_to(task);
}

int qj_ac_yield_to_id_and_save(uint32_t to, uint32_t own) {
    struct qj_ac_slot *slot = slot_of(own), *target = slot_of(to);
    if (slot == NULL) return -EINVAL;
    if (target == NULL || target->task == NULL) return -ESRCH;
    struct qj_ac_task *task = qj_ac__thread.current, *other = target->task;
    target->task = NULL;
    slot->task = task;
    return release_own_id(slot, own, task, qj_ac_yield_to(other));
}
