/* The pool of stacks: allocated in chunks, with guard pages and cache colouring, reused last in, first out, given back
 * when they have been free for some time; the report of stack overflows; the check for shadow stacks.
 *
 * A chunk is one mapping of many stacks. Guards are installed in the page tables (MADV_GUARD_INSTALL, Linux 6.13),
 * without a mapping of their own. On older kernels each guard is a mapping, and vm.max_map_count limits the number of
 * tasks. */
#include "internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

/* The largest frame whose overflow is detected, such as one with a buffer of 64 KiB. Guards take address space, not
 * memory. */
#define GUARD_BYTES ((size_t)65536)
#define PAGE_BYTES ((size_t)4096)
#define STACK_BYTES_MAX ((size_t)1 << 40)
#define STACKS_FIRST 16
#define STACKS_LAST 1024
#define SIGNAL_STACK_BYTES ((size_t)65536)

struct chunk {
    struct chunk *next;
    char *low;
    size_t bytes;
};

/* Why there is no stack. */
enum no_stack_cause { NO_STACK_LIMIT, NO_STACK_MEMORY, NO_STACK_MAPPINGS, NO_STACK_GUARD };

/* One per thread. The address space grows by chunks and is freed when the thread stops; the memory of stacks that are
 * not used is given back earlier.
 *
 *     runtime->spare   free, in the order of use: the fast path knows only these
 *     cold             free, and not among the first `keep_stacks`, since the current interval began; with
 *                      instrumentation enabled, all free stacks
 *     old              free during a whole interval: their memory is given back in steps
 *     released         given back: without memory and without a task
 *     fresh            never used
 *
 * As stacks are reused last in, first out, what is still in `cold` at the end of an interval is below the low watermark
 * of free stacks in it (the working set of Bonwick and Adams, "Magazines and Vmem", 2001, 3.6, without a counter in the
 * fast path). */
struct qj_ac_pool {
    struct chunk *chunks;
    char *fresh, *fresh_end;   /* stacks of the newest chunk that were never used */
    size_t stack_bytes;        /* of one slot, guard included */
    size_t stacks_next;        /* in the next chunk */
    size_t count;              /* of stacks with a task, free or not */
    bool guard_by_mapping;     /* the kernel has no page-table guards, or QJ_AC_GUARD selects mappings */
    struct qj_ac_task *cold, *old;
    size_t cold_count, old_count;
    char **released;           /* lowest bytes of the slots, guard included */
    size_t released_count, released_room;
    uint64_t step_ticks;       /* of the last step, by the processor's counter */
    unsigned steps;
    void *signal_stack;
    enum no_stack_cause no_stack_cause;
    int no_stack_errno;
};
static __thread struct qj_ac_pool pool_of_thread;

/* Of the free stacks that are kept, what lies below their first bytes is given back too: most tasks use no more. */
#define KEPT_BYTES ((size_t)16384)
#define KEEP_STACKS_DEFAULT 64
/* An interval has so many steps, of some milliseconds each; a step gives back so many stacks at most, so that it takes
 * less than the poller may be late. */
#define STEPS_PER_INTERVAL 100
#define STACKS_PER_STEP 64
#define TICKS_PER_STEP (100 * (uint64_t)QJ_AC__TICKS_PER_POLL)
#define STEP_NS 10000000u

static struct qj_ac_options settings;

void qj_ac_configure(const struct qj_ac_options *options) { settings = *options; }

bool qj_ac__own_float_control(void) {
    const char *text = getenv("QJ_AC_FLOAT");
    if (text == NULL) return settings.own_float_control != 0;
    if (strcmp(text, "own") != 0) qj_ac__fatal("QJ_AC_FLOAT is `%s`; it may be `own`", text);
    return true;
}

static size_t stack_bytes(void) {
    size_t usable = settings.stack_bytes;
    if (usable > STACK_BYTES_MAX) qj_ac__fatal("`stack_bytes` is %zu; it may be at most %zu", usable, STACK_BYTES_MAX);
    const char *text = getenv("QJ_AC_STACK_KIB");
    if (text != NULL) {
        char *end;
        unsigned long kib = strtoul(text, &end, 10);
        if (*end != '\0' || kib == 0 || kib > STACK_BYTES_MAX / 1024) {
            qj_ac__fatal("QJ_AC_STACK_KIB is `%s`; it must be a number of KiB", text);
        }
        usable = kib * 1024;
    }
    if (usable == 0) usable = 60 * 1024;
    usable = (usable + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
    if (usable < 2 * PAGE_BYTES) usable = 2 * PAGE_BYTES;
    return usable + GUARD_BYTES;
}

static struct qj_ac_pool *pool_of(struct qj_ac_runtime *runtime) {
    if (runtime->pool == NULL) {
        struct qj_ac_pool *pool = &pool_of_thread;
        memset(pool, 0, sizeof *pool);
        pool->stack_bytes = stack_bytes();
        pool->stacks_next = STACKS_FIRST;
        const char *text = getenv("QJ_AC_GUARD");
        if (text != NULL && strcmp(text, "mapping") == 0) pool->guard_by_mapping = true;
        runtime->pool = pool;
    }
    return runtime->pool;
}

static unsigned long limit_of_mappings(void) {
    unsigned long limit = 0;
    FILE *file = fopen("/proc/sys/vm/max_map_count", "r");
    if (file != NULL) {
        if (fscanf(file, "%lu", &limit) != 1) limit = 0;
        fclose(file);
    }
    return limit;
}

static void no_stack(struct qj_ac_pool *pool, enum no_stack_cause cause) {
    pool->no_stack_cause = cause;
    pool->no_stack_errno = errno;
}

void qj_ac__fatal_no_stack(const struct qj_ac_runtime *runtime) {
    const struct qj_ac_pool *pool = runtime->pool;
    unsigned long long number = pool->count + 1;
    const char *reason = strerror(pool->no_stack_errno);
    switch (pool->no_stack_cause) {
    case NO_STACK_LIMIT:
        qj_ac__fatal("out of stacks: %zu tasks wait, and `max_stacks` allows no more", settings.max_stacks);
    case NO_STACK_MEMORY:
        qj_ac__fatal("out of memory: no stack for another task, %zu are in use: %s", pool->count, reason);
    case NO_STACK_MAPPINGS:
        qj_ac__fatal("cannot guard stack %llu: this kernel allows %lu mappings, and a guarded stack takes two; raise it: "
                     "sysctl -w vm.max_map_count=%llu",
                     number, limit_of_mappings(), 4 * number + 65536);
    case NO_STACK_GUARD:
        break;
    }
    qj_ac__fatal("cannot guard stack %llu: %s", number, reason);
}

int qj_ac__no_stack_error(const struct qj_ac_runtime *runtime) {
    return runtime->pool->no_stack_cause == NO_STACK_LIMIT ? -EAGAIN : -ENOMEM;
}

/* Returns whether it could. */
static bool guard(struct qj_ac_pool *pool, char *page) {
    if (!pool->guard_by_mapping) {
        if (madvise(page, GUARD_BYTES, MADV_GUARD_INSTALL) == 0) return true;
        if (errno != EINVAL) {
            no_stack(pool, NO_STACK_GUARD);
            return false;
        }
        pool->guard_by_mapping = true;
    }
    if (mprotect(page, GUARD_BYTES, PROT_NONE) == 0) return true;
    no_stack(pool, errno == ENOMEM ? NO_STACK_MAPPINGS : NO_STACK_GUARD);
    return false;
}

/* Returns whether there is memory for it. */
static bool new_chunk(struct qj_ac_pool *pool) {
    size_t bytes = pool->stacks_next * pool->stack_bytes;
    char *low = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct chunk *chunk = malloc(sizeof *chunk);
    if (low == MAP_FAILED || chunk == NULL) {
        no_stack(pool, NO_STACK_MEMORY);
        if (low != MAP_FAILED) munmap(low, bytes);
        free(chunk);
        return false;
    }
    /* A task touches one or two pages; a huge page per stack would exhaust memory. */
    madvise(low, bytes, MADV_NOHUGEPAGE);
    *chunk = (struct chunk){pool->chunks, low, bytes};
    pool->chunks = chunk;
    pool->fresh = low;
    pool->fresh_end = low + bytes;
    if (pool->stacks_next < STACKS_LAST) pool->stacks_next *= 2;
    return true;
}

/* Takes the first of a list of free stacks that the fast path does not see; and, so that the next tasks need not come
 * here, moves some of the others to those that it does see. */
#define STACKS_AT_ONCE 16
static struct qj_ac_task *take_free(struct qj_ac_runtime *runtime, struct qj_ac_task **list, size_t *count) {
    struct qj_ac_task *task = *list;
    *list = task->next;
    task->flags &= ~QJ_AC_TASK_POOLED;
    --*count;
    if (qj_ac__is_instrumented(runtime)) return task;
    for (int i = 1; i < STACKS_AT_ONCE && *list != NULL; i++) {
        struct qj_ac_task *next = *list;
        *list = next->next;
        next->flags &= ~QJ_AC_TASK_POOLED;
        --*count;
        qj_ac__to_pool(runtime, next);
    }
    return task;
}

struct qj_ac_task *qj_ac__stack_allocate(struct qj_ac_runtime *runtime) {
    struct qj_ac_pool *pool = pool_of(runtime);
    if (pool->cold != NULL) return take_free(runtime, &pool->cold, &pool->cold_count);
    if (pool->old != NULL) return take_free(runtime, &pool->old, &pool->old_count);
    size_t limit = settings.max_stacks + (runtime->poller != NULL);
    if (settings.max_stacks != 0 && !qj_ac__poller_starts && pool->count >= limit) {
        no_stack(pool, NO_STACK_LIMIT);
        return NULL;
    }
    char *low;
    if (pool->released_count > 0) {
        low = pool->released[--pool->released_count];
    } else {
        if (pool->fresh == pool->fresh_end && !new_chunk(pool)) return NULL;
        low = pool->fresh;
        if (!guard(pool, low)) return NULL;
        pool->fresh += pool->stack_bytes;
    }
    pool->count++;
    uint64_t number = ++runtime->statistics.stacks;
    /* Cache colouring: if all tops had the same offset, all tasks would compete for the same few cache sets. */
    char *high = low + pool->stack_bytes - 64 * (number % 16);
    struct qj_ac_task *task = (struct qj_ac_task *)(high - sizeof *task);
    task->runtime = runtime;
    task->stack_low = low + GUARD_BYTES;
    task->number = (uint32_t)number;
    task->all_prev = NULL;
    task->all_next = runtime->all;
    if (runtime->all != NULL) runtime->all->all_prev = task;
    runtime->all = task;
    qj_ac__instrument_stack(runtime, task);
    return task;
}

void qj_ac__stack_free(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    if (qj_ac__is_instrumented(runtime)) {
        task->flags |= QJ_AC_TASK_POOLED;
        task->next = runtime->pool->cold;
        runtime->pool->cold = task;
        runtime->pool->cold_count++;
    } else {
        qj_ac__to_pool(runtime, task);
    }
}

/* ---- giving back ---- */

/* Whether the memory of a free stack was given back. Its address space is kept: a pointer to its task, which has ended,
 * may still be used, and reads zeros. */
static bool release(struct qj_ac_runtime *runtime, struct qj_ac_pool *pool, struct qj_ac_task *task) {
    if (pool->released_count == pool->released_room) {
        size_t room = 2 * pool->released_room + 64;
        char **released = realloc(pool->released, room * sizeof *released);
        if (released == NULL) return false;
        pool->released = released;
        pool->released_room = room;
    }
    if (task->all_next != NULL) task->all_next->all_prev = task->all_prev;
    if (task->all_prev != NULL) {
        task->all_prev->all_next = task->all_next;
    } else {
        runtime->all = task->all_next;
    }
    qj_ac__instrument_unstack(runtime, task);
    char *low = task->stack_low - GUARD_BYTES;
    madvise(task->stack_low, pool->stack_bytes - GUARD_BYTES, MADV_DONTNEED);
    pool->released[pool->released_count++] = low;
    pool->count--;
    return true;
}

/* Gives back at most `max_count` stacks of a list; returns how many. */
static size_t release_some(struct qj_ac_runtime *runtime, struct qj_ac_task **list, size_t *count, size_t max_count) {
    struct qj_ac_pool *pool = runtime->pool;
    size_t done = 0;
    while (*list != NULL && done < max_count) {
        struct qj_ac_task *task = *list, *next = task->next;
        if (!release(runtime, pool, task)) break;
        *list = next;
        --*count;
        done++;
    }
    return done;
}

static size_t keep_stacks(void) { return settings.keep_stacks != 0 ? settings.keep_stacks : KEEP_STACKS_DEFAULT; }

/* The free stacks behind the first `keep`, cut off; and how many. */
static struct qj_ac_task *cut_free(struct qj_ac_runtime *runtime, struct qj_ac_pool *pool, size_t keep, size_t *count) {
    bool instrumented = qj_ac__is_instrumented(runtime);
    struct qj_ac_task **link = instrumented ? &pool->cold : &runtime->spare;
    /* The running task may still be the first of the pool. */
    if (*link == runtime->current) link = &runtime->current->next;
    size_t kept = 0;
    for (; *link != NULL && kept < keep; kept++) {
        struct qj_ac_task *task = *link;
        char *rest = (char *)task + sizeof *task - KEPT_BYTES;
        rest -= (uintptr_t)rest % PAGE_BYTES;
        if (rest > task->stack_low) madvise(task->stack_low, (size_t)(rest - task->stack_low), MADV_DONTNEED);
        link = &task->next;
    }
    struct qj_ac_task *others = *link;
    *link = NULL;
    *count = 0;
    for (struct qj_ac_task *task = others; task != NULL; task = task->next) {
        task->flags |= QJ_AC_TASK_POOLED;
        ++*count;
    }
    if (instrumented) pool->cold_count = kept;
    return others;
}

/* Another thread that is about to wake a task may touch one that has ended meanwhile; and a task that waits for a stack
 * needs those that are free. */
static bool may_release(const struct qj_ac_runtime *runtime) {
    /* Both pair with the releases in `qj_ac__schedule_remote`: of the list, and of the count behind it. */
    return !(runtime->slow & QJ_AC_SLOW_ROOM) && __atomic_load_n(&runtime->wakers, __ATOMIC_ACQUIRE) == 0 &&
           __atomic_load_n(&runtime->remote, __ATOMIC_ACQUIRE) == NULL;
}

size_t qj_ac_trim(size_t keep) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    struct qj_ac_pool *pool = runtime->pool;
    if (runtime->current == &qj_ac__no_task || pool == NULL) return 0;
    qj_ac__remote_drain(runtime);
    if (!may_release(runtime)) return 0;
    size_t count, given_back;
    struct qj_ac_task *others = cut_free(runtime, pool, keep, &count);
    given_back = release_some(runtime, &others, &count, SIZE_MAX);
    given_back += release_some(runtime, &pool->old, &pool->old_count, SIZE_MAX);
    if (!qj_ac__is_instrumented(runtime)) {
        given_back += release_some(runtime, &pool->cold, &pool->cold_count, SIZE_MAX);
    }
    /* Left over only if there was no memory to record them. */
    while (others != NULL) {
        struct qj_ac_task *next = others->next;
        others->flags &= ~QJ_AC_TASK_POOLED;
        qj_ac__stack_free(runtime, others);
        others = next;
    }
    return given_back;
}

bool qj_ac__stacks_to_release(const struct qj_ac_runtime *runtime) {
    const struct qj_ac_pool *pool = runtime->pool;
    if (pool == NULL || qj_ac__is_instrumented(runtime) || settings.keep_stacks == SIZE_MAX) return false;
    if (pool->cold != NULL || pool->old != NULL) return true;
    size_t used = (size_t)(runtime->statistics.started - runtime->statistics.ended);
    return pool->count > used && pool->count - used > keep_stacks() + 1;
}

uint64_t qj_ac__trim_step(struct qj_ac_runtime *runtime, uint64_t ticks) {
    struct qj_ac_pool *pool = runtime->pool;
    if (!qj_ac__stacks_to_release(runtime)) return UINT64_MAX;
    if (ticks - pool->step_ticks < TICKS_PER_STEP || !may_release(runtime)) return STEP_NS;
    pool->step_ticks = ticks;
    release_some(runtime, &pool->old, &pool->old_count, STACKS_PER_STEP);
    if (++pool->steps % STEPS_PER_INTERVAL == 0 && pool->old == NULL) {
        pool->old = pool->cold;
        pool->old_count = pool->cold_count;
        pool->cold = cut_free(runtime, pool, keep_stacks(), &pool->cold_count);
    }
    return STEP_NS;
}

bool qj_ac__on_task_stack(const struct qj_ac_runtime *runtime, const void *address) {
    if (runtime->pool == NULL) return false;
    for (const struct chunk *chunk = runtime->pool->chunks; chunk != NULL; chunk = chunk->next) {
        if ((uintptr_t)address - (uintptr_t)chunk->low < chunk->bytes) return true;
    }
    return false;
}

void qj_ac__pool_free(struct qj_ac_runtime *runtime) {
    struct qj_ac_pool *pool = runtime->pool;
    if (pool == NULL) return;
    for (struct qj_ac_task *task = runtime->all; task != NULL; task = task->all_next) {
        qj_ac__instrument_unstack(runtime, task);
    }
    for (struct chunk *chunk = pool->chunks, *next; chunk != NULL; chunk = next) {
        next = chunk->next;
        munmap(chunk->low, chunk->bytes);
        free(chunk);
    }
    if (pool->signal_stack != NULL) munmap(pool->signal_stack, SIGNAL_STACK_BYTES);
    free(pool->released);
    runtime->pool = NULL;
    runtime->all = NULL;
    runtime->spare = NULL;
}

/* ---- overflow ---- */

static struct sigaction before_us;
static pthread_once_t handler_once = PTHREAD_ONCE_INIT;

static void report_overflow(const struct qj_ac_task *task, const struct qj_ac_pool *pool, const void *where) {
    Dl_info symbol;
    const char *function = where != NULL && dladdr(where, &symbol) != 0 && symbol.dli_sname != NULL ? symbol.dli_sname
                                                                                                    : "a function";
    qj_ac__fatal("stack overflow in task %u (%s), in %s at %p: its stack has %zu KiB; raise `stack_bytes` or "
               "QJ_AC_STACK_KIB",
               task->number, task->name != NULL ? task->name : "without a name", function, where,
               (pool->stack_bytes - GUARD_BYTES) / 1024);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    struct qj_ac_runtime *runtime = &qj_ac__thread;
    const char *address = info->si_addr;
    const void *where = NULL;
#if defined(__x86_64__)
    where = (const void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    where = (const void *)((ucontext_t *)context)->uc_mcontext.pc;
#else
    (void)context;
#endif
    for (const struct qj_ac_task *task = runtime->all; task != NULL; task = task->all_next) {
        if (address >= task->stack_low - GUARD_BYTES && address < task->stack_low) {
            report_overflow(task, runtime->pool, where);
        }
    }
    /* Not a stack overflow: the previous handler gets the signal. The program may handle its own faults and
     * continue. */
    if (before_us.sa_flags & SA_SIGINFO) {
        before_us.sa_sigaction(signal, info, context);
    } else if (before_us.sa_handler != SIG_DFL && before_us.sa_handler != SIG_IGN) {
        before_us.sa_handler(signal);
    } else {
        /* The fault recurs when this handler returns. */
        sigaction(signal, &before_us, NULL);
    }
}

static void install_handler(void) {
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &before_us);
}

void qj_ac__overflow_handler_install(struct qj_ac_runtime *runtime) {
    struct qj_ac_pool *pool = pool_of(runtime);
    stack_t old;
    if (sigaltstack(NULL, &old) == 0 && (old.ss_flags & SS_DISABLE)) {
        void *memory =
            mmap(NULL, SIGNAL_STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        /* Without it an overflow ends the process by the signal, without the report. */
        if (memory != MAP_FAILED) {
            stack_t stack = {.ss_sp = memory, .ss_flags = 0, .ss_size = SIGNAL_STACK_BYTES};
            sigaltstack(&stack, NULL);
            pool->signal_stack = memory;
        }
    }
    pthread_once(&handler_once, install_handler);
}

void qj_ac__overflow_handler_remove(struct qj_ac_runtime *runtime) {
    if (runtime->pool != NULL && runtime->pool->signal_stack != NULL) {
        stack_t off = {.ss_sp = NULL, .ss_flags = SS_DISABLE, .ss_size = 0};
        sigaltstack(&off, NULL);
    }
}

/* ---- shadow stacks ----
 *
 * SHSTK of x86-64 and GCS of AArch64 store return addresses a second time and fault when a return does not match. Once
 * a task has waited, its frames and its parent's return in another order than they were called. The objects of this
 * library are not marked as compatible, so linkers do not enable shadow stacks; where they are forced on, the fault
 * would occur at an unrelated return. */

#if defined(__x86_64__)
#define STATUS_OF_SHADOW_STACKS 0x5005 /* ARCH_SHSTK_STATUS */
static bool shadow_stack_is_on(void) {
    unsigned long features = 0;
    return syscall(SYS_arch_prctl, STATUS_OF_SHADOW_STACKS, &features) == 0 && (features & 1) != 0;
}
#else
#define STATUS_OF_SHADOW_STACKS 74 /* PR_GET_SHADOW_STACK_STATUS */
static bool shadow_stack_is_on(void) {
    unsigned long status = 0;
    return prctl(STATUS_OF_SHADOW_STACKS, &status, 0, 0, 0) == 0 && (status & 1) != 0;
}
#endif

void qj_ac__refuse_shadow_stack(void) {
    if (!shadow_stack_is_on()) return;
    qj_ac__fatal("this thread has a shadow stack, and tasks return in another order than they were called; start the program "
               "with GLIBC_TUNABLES=glibc.cpu.hwcaps=-SHSTK (on AArch64 glibc.cpu.aarch64_gcs=0), or link it without "
               "-z shstk");
}
