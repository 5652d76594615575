/* The pool of stacks: allocated in chunks, with guard pages and cache colouring, reused last in, first out; the report
 * of stack overflows; the check for shadow stacks.
 *
 * A chunk is one mapping of many stacks. Guards are installed in the page tables (MADV_GUARD_INSTALL, Linux 6.13),
 * without a mapping of their own. On older kernels each guard is a mapping, and vm.max_map_count limits the number of
 * tasks. */
#include "internal.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
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

/* One per thread; grows by chunks and shrinks only when the thread stops. */
struct qj_ac_pool {
    struct chunk *chunks;
    char *fresh, *fresh_end;   /* stacks of the newest chunk that were never used */
    size_t stack_bytes;        /* of one slot, guard included */
    size_t stacks_next;        /* in the next chunk */
    bool guard_by_mapping;     /* the kernel has no page-table guards, or QJ_AC_GUARD selects mappings */
    struct qj_ac_task *cold;   /* free stacks while instrumentation is enabled: the fast path must not see them */
    void *signal_stack;
    int no_stack_error;
    char no_stack_reason[256];
};

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
        struct qj_ac_pool *pool = calloc(1, sizeof *pool);
        if (pool == NULL) qj_ac__fatal("out of memory for the pool of stacks");
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

/* Stores why there is no stack. */
__attribute__((format(printf, 3, 4))) static void no_stack(struct qj_ac_pool *pool, int error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(pool->no_stack_reason, sizeof pool->no_stack_reason, format, arguments);
    va_end(arguments);
    pool->no_stack_error = error;
}

void qj_ac__fatal_no_stack(const struct qj_ac_runtime *runtime) { qj_ac__fatal("%s", runtime->pool->no_stack_reason); }

int qj_ac__no_stack_error(const struct qj_ac_runtime *runtime) { return runtime->pool->no_stack_error; }

/* Returns whether it could. */
static bool guard(struct qj_ac_runtime *runtime, char *page) {
    unsigned long long number = runtime->statistics.stacks + 1;
    if (!runtime->pool->guard_by_mapping) {
        if (madvise(page, GUARD_BYTES, MADV_GUARD_INSTALL) == 0) return true;
        if (errno == EINVAL) {
            runtime->pool->guard_by_mapping = true;
        } else {
            no_stack(runtime->pool, -ENOMEM, "cannot guard stack %llu: %s", number, strerror(errno));
            return false;
        }
    }
    if (mprotect(page, GUARD_BYTES, PROT_NONE) == 0) return true;
    if (errno == ENOMEM) {
        no_stack(runtime->pool, -ENOMEM,
                 "cannot guard stack %llu: this kernel allows %lu mappings, and a guarded stack takes two; raise it: "
                 "sysctl -w vm.max_map_count=%llu",
                 number, limit_of_mappings(), 4 * number + 65536);
    } else {
        no_stack(runtime->pool, -ENOMEM, "cannot guard stack %llu: %s", number, strerror(errno));
    }
    return false;
}

/* Returns whether there is memory for it. */
static bool new_chunk(struct qj_ac_runtime *runtime, struct qj_ac_pool *pool) {
    size_t bytes = pool->stacks_next * pool->stack_bytes;
    char *low = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct chunk *chunk = malloc(sizeof *chunk);
    if (low == MAP_FAILED || chunk == NULL) {
        no_stack(pool, -ENOMEM, "out of memory: no stack for another task, %llu are in use: %s",
                 (unsigned long long)runtime->statistics.stacks, strerror(errno));
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

struct qj_ac_task *qj_ac__stack_allocate(struct qj_ac_runtime *runtime) {
    struct qj_ac_pool *pool = pool_of(runtime);
    struct qj_ac_task *task = pool->cold;
    if (task != NULL) {
        pool->cold = task->next;
        return task;
    }
    size_t limit = settings.max_stacks + (runtime->poller != NULL);
    if (settings.max_stacks != 0 && !qj_ac__poller_starts && runtime->statistics.stacks >= limit) {
        no_stack(pool, -EAGAIN, "out of stacks: %zu tasks wait, and `max_stacks` allows no more", settings.max_stacks);
        return NULL;
    }
    if (pool->fresh == pool->fresh_end && !new_chunk(runtime, pool)) return NULL;
    char *low = pool->fresh;
    if (!guard(runtime, low)) return NULL;
    pool->fresh += pool->stack_bytes;
    uint64_t number = ++runtime->statistics.stacks;
    /* Cache colouring: if all tops had the same offset, all tasks would compete for the same few cache sets. */
    char *high = low + pool->stack_bytes - 64 * (number % 16);
    task = (struct qj_ac_task *)(high - sizeof *task);
    task->runtime = runtime;
    task->stack_low = low + GUARD_BYTES;
    task->number = (uint32_t)number;
    task->all_next = runtime->all;
    runtime->all = task;
    qj_ac__instrument_stack(runtime, task);
    return task;
}

void qj_ac__stack_free(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    if (qj_ac__is_instrumented(runtime)) {
        task->flags |= QJ_AC_TASK_POOLED;
        task->next = runtime->pool->cold;
        runtime->pool->cold = task;
    } else {
        qj_ac__to_pool(runtime, task);
    }
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
    free(pool);
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
        if (memory == MAP_FAILED) qj_ac__fatal("out of memory for the stack that reports overflows");
        stack_t stack = {.ss_sp = memory, .ss_flags = 0, .ss_size = SIGNAL_STACK_BYTES};
        sigaltstack(&stack, NULL);
        pool->signal_stack = memory;
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
