/* Tables 1, 2, 3 and 5 of "Extensions to Barrelfish Asynchronous C" (section 6). Compiled twice: PREFIX is the paper's
 * name of the configuration. A function that times every event alone writes what it measured into `each`; what the
 * clock itself takes is subtracted by the caller, as in the paper. */
#include "tsc.h"
#include <quaject/ac.h>

#define NAME2(p, n) p##_##n
#define NAME1(p, n) NAME2(p, n)
#define F(n) NAME1(PREFIX, n)

/* ---- Tables 1 and 2: one task yields to another's number, and back ---- */

enum form { DISPATCH, NO_DISPATCH };

struct pair {
    uint32_t numbers[2];
    long turns; /* of each */
    enum form form;
    uint64_t start, end;
    uint64_t *each; /* null: only the whole is timed */
    long done;
};

static __attribute__((always_inline)) inline void yield_to(enum form form, uint32_t to, uint32_t own) {
    if (form == DISPATCH) {
        qj_ac_yield_to_id_and_save(to, own);
    } else {
        qj_ac_yield_to_id_and_save_nodispatch(to, own);
    }
}

static __attribute__((always_inline)) inline void turns(struct pair *pair, enum form form, uint32_t to, uint32_t own) {
    if (pair->each == NULL) {
        for (long i = 0; i < pair->turns; i++) yield_to(form, to, own);
        return;
    }
    for (long i = 0; i < pair->turns; i++) {
        /* A measurement ends in the other task: it begins where the time of the last one was taken. */
        pair->start = tsc();
        yield_to(form, to, own);
        pair->each[pair->done++] = tsc() - pair->start;
    }
}

static void one(void *argument) {
    struct pair *pair = argument;
    int me = pair->numbers[0] != 0;
    uint32_t own = pair->numbers[me] = qj_ac_id_create();
    if (me == 0) {
        qj_ac_yield_and_save_nodispatch(own);
    } else {
        qj_ac_yield();
        if (pair->each == NULL) pair->start = tsc();
    }
    uint32_t to = pair->numbers[!me];
    if (pair->form == DISPATCH) {
        turns(pair, DISPATCH, to, own);
    } else {
        turns(pair, NO_DISPATCH, to, own);
    }
    if (pair->end == 0) pair->end = tsc();
    struct qj_ac_task *other = qj_ac_id_task(to);
    if (other != NULL && other->prev == NULL) qj_ac_schedule(other);
    qj_ac_id_remove(own);
}

static uint64_t switches(long n, enum form form, uint64_t *each) {
    struct pair pair = {.turns = n / 2, .form = form, .each = each};
    DO_FINISH({
        QJ_AC__ASYNC(one, &pair);
        QJ_AC__ASYNC(one, &pair);
    });
    return each != NULL ? (uint64_t)pair.done : pair.end - pair.start;
}

uint64_t F(switch_dispatch)(long n) { return switches(n, DISPATCH, NULL); }
uint64_t F(switch_no_dispatch)(long n) { return switches(n, NO_DISPATCH, NULL); }
/* These return how many they have timed. */
uint64_t F(each_switch_dispatch)(long n, uint64_t *each) { return switches(n, DISPATCH, each); }
uint64_t F(each_switch_no_dispatch)(long n, uint64_t *each) { return switches(n, NO_DISPATCH, each); }

/* ---- Table 3: from before ASYNC until its body runs ---- */

static uint64_t before;
static void note(void *each) { *(uint64_t *)each = tsc() - before; }
uint64_t F(each_creation)(long n, uint64_t *each) {
    DO_FINISH({
        for (long i = 0; i < n; i++) {
            before = tsc();
            QJ_AC__ASYNC(note, &each[i]);
        }
    });
    return (uint64_t)n;
}

/* ---- Table 5: creation and tear down ---- */

static volatile long count;
static __attribute__((noinline)) void empty(void *a) { (void)a, count++; }
static void yields(void *a) { (void)a, qj_ac_yield(), count++; }

static struct qj_ac_task *parent;
static void yields_to(void *a) { (void)a, qj_ac_yield_to(parent), count++; }

uint64_t F(empty_call)(long n) {
    uint64_t start = tsc();
    for (long i = 0; i < n; i++) empty(NULL);
    return tsc() - start;
}
uint64_t F(empty_async)(long n) {
    uint64_t start = tsc();
    DO_FINISH({ for (long i = 0; i < n; i++) QJ_AC__ASYNC(empty, NULL); });
    return tsc() - start;
}
/* "... that yields and immediately gets yielded back to" */
uint64_t F(blocking_yield)(long n) {
    uint64_t start = tsc();
    DO_FINISH({
        for (long i = 0; i < n; i++) {
            QJ_AC__ASYNC(yields, NULL);
            qj_ac_yield();
        }
    });
    return tsc() - start;
}
static void yields_to_children(void *argument) {
    long n = *(long *)argument;
    parent = qj_ac_current();
    DO_FINISH({
        for (long i = 0; i < n; i++) {
            QJ_AC__ASYNC(yields_to, NULL);
            qj_ac_yield();
        }
    });
}
uint64_t F(blocking_yield_to)(long n) {
    uint64_t start = tsc();
    DO_FINISH({ qj_ac_async(yields_to_children, &n); });
    return tsc() - start;
}
