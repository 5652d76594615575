/* Notifications of every stack and every switch, for valgrind, AddressSanitizer, ThreadSanitizer, the trace of
 * QJ_AC_TRACE, and tasks with a floating-point control state of their own. The sanitizers are detected by weak
 * symbols, so that one library serves programs built with and without them. */
#include "internal.h"

#include <pthread.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((weak)) void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
__attribute__((weak)) void __sanitizer_finish_switch_fiber(void *saved, const void **bottom, size_t *size);
__attribute__((weak)) void *__tsan_get_current_fiber(void);
__attribute__((weak)) void *__tsan_create_fiber(unsigned flags);
__attribute__((weak)) void __tsan_destroy_fiber(void *fiber);
__attribute__((weak)) void __tsan_switch_to_fiber(void *fiber, unsigned flags);

/* ---- valgrind: its client requests are instruction sequences that do nothing elsewhere ---- */

#if defined(__x86_64__)
static uintptr_t valgrind_request(uintptr_t request, uintptr_t a, uintptr_t b, uintptr_t c) {
    volatile uintptr_t arguments[6] = {request, a, b, c, 0, 0};
    uintptr_t result = 0;
    __asm__ volatile("rolq $3, %%rdi\n\trolq $13, %%rdi\n\trolq $61, %%rdi\n\trolq $51, %%rdi\n\txchgq %%rbx, %%rbx"
                     : "+d"(result)
                     : "a"(arguments)
                     : "cc", "memory");
    return result;
}
#else
static uintptr_t valgrind_request(uintptr_t request, uintptr_t a, uintptr_t b, uintptr_t c) {
    (void)request, (void)a, (void)b, (void)c;
    return 0;
}
#endif
#define VALGRIND_RUNNING 0x1001
#define VALGRIND_STACK_REGISTER 0x1501
#define MEMCHECK_GET_VBITS (0x4d430000u + 8) /* answers only under memcheck */

static bool under_valgrind(void) { return valgrind_request(VALGRIND_RUNNING, 0, 0, 0) != 0; }

/* memcheck marks the bytes below a raised stack pointer as undefined, so that `qj_ac__task_base`, which raises and
 * lowers it, must be avoided there; the other tools count instructions and must see the usual path. */
static bool under_memcheck(void) {
    char byte = 0, bits = 0;
    return valgrind_request(MEMCHECK_GET_VBITS, (uintptr_t)&byte, (uintptr_t)&bits, 1) == 1;
}

static char *stack_high(const struct qj_ac_task *task) { return (char *)task + sizeof *task; }

void qj_ac__instrument_stack(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    if (under_valgrind()) {
        valgrind_request(VALGRIND_STACK_REGISTER, (uintptr_t)task->stack_low, (uintptr_t)stack_high(task) - 1,
                         0);
    }
    if (runtime->slow & QJ_AC_SLOW_TSAN) task->sanitizer = __tsan_create_fiber(0);
}

void qj_ac__instrument_unstack(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    if (runtime->slow & QJ_AC_SLOW_TSAN) __tsan_destroy_fiber(task->sanitizer);
}

/* ---- the trace: Chrome's JSON array of events, which Perfetto reads ---- */

static FILE *trace;
static bool trace_ended; /* under the file's lock */
static pthread_once_t trace_once = PTHREAD_ONCE_INIT;

/* At the exit of the process. Other threads continue, and exit handlers that were registered earlier run later: so the
 * file stays open. */
static void trace_end(void) {
    flockfile(trace);
    if (!trace_ended) fputs("\n]\n", trace);
    trace_ended = true;
    fflush(trace);
    funlockfile(trace);
}

void qj_ac__instrument_forked(void) {
    if (trace == NULL) return;
    __fpurge(trace);
    trace_ended = true;
}

static void trace_open(void) {
    const char *path = getenv("QJ_AC_TRACE");
    if (path == NULL || *path == '\0') return;
    trace = fopen(path, "we");
    if (trace == NULL) qj_ac__fatal("QJ_AC_TRACE: cannot write `%s`: %s", path, strerror(errno));
    fprintf(trace, "[\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"quaject-ac\"}}", getpid());
    atexit(trace_end);
}

/* Task numbers are per thread: in the trace each thread is a process, with its kernel thread id, which for the first
 * thread is the process id. */
static __thread int traced_as;
static void trace_thread(void) {
    traced_as = (int)syscall(SYS_gettid);
    if (traced_as == getpid()) return;
    flockfile(trace);
    if (!trace_ended) {
        fprintf(trace, ",\n{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"quaject-ac, thread %d\"}}",
                traced_as, traced_as);
    }
    funlockfile(trace);
}

/* One row per task, with a slice for each interval in which it runs. */
static void trace_event(const struct qj_ac_task *task, char phase) {
    uint64_t now = qj_ac__now_ns();
    char name[64];
    if (task->name != NULL) {
        /* Quotes and backslashes in the program's names are not valid in JSON strings. */
        size_t length = 0;
        for (const char *c = task->name; *c != '\0' && length < sizeof name - 1; c++) {
            if (*c != '"' && *c != '\\' && (unsigned char)*c >= ' ') name[length++] = *c;
        }
        name[length] = '\0';
    } else {
        snprintf(name, sizeof name, "task %u", task->number);
    }
    flockfile(trace);
    if (!trace_ended) {
        fprintf(trace, ",\n{\"name\":\"%s\",\"ph\":\"%c\",\"pid\":%d,\"tid\":%u,\"ts\":%llu.%03u}", name, phase, traced_as,
                task->number, (unsigned long long)(now / 1000), (unsigned)(now % 1000));
    }
    funlockfile(trace);
}

/* ---- the control state of the floating-point unit ---- */

#if defined(__x86_64__)
static uint64_t float_control(void) {
    uint32_t sse;
    uint16_t x87;
    __asm__ volatile("stmxcsr %0\n\tfnstcw %1" : "=m"(sse), "=m"(x87));
    return sse | (uint64_t)x87 << 32;
}
static void set_float_control(uint64_t control) {
    uint32_t sse = (uint32_t)control;
    uint16_t x87 = (uint16_t)(control >> 32);
    __asm__ volatile("ldmxcsr %0\n\tfldcw %1" : : "m"(sse), "m"(x87));
}
#elif defined(__aarch64__)
static uint64_t float_control(void) {
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    return control;
}
static void set_float_control(uint64_t control) { __asm__ volatile("msr fpcr, %0" : : "r"(control)); }
#else
static uint64_t float_control(void) {
    uint64_t control;
    __asm__ volatile("frcsr %0" : "=r"(control));
    return control;
}
static void set_float_control(uint64_t control) { __asm__ volatile("fscsr %0" : : "r"(control)); }
#endif

void qj_ac__instrument_inherit(struct qj_ac_runtime *runtime, struct qj_ac_task *task) {
    if (runtime->slow & QJ_AC_SLOW_FLOAT) task->float_control = float_control();
}

/* ---- all tools ---- */

uintptr_t qj_ac__instrumentation(void) {
    pthread_once(&trace_once, trace_open);
    uintptr_t enabled = 0;
    if (trace != NULL) enabled |= QJ_AC_SLOW_TRACE;
    if (__sanitizer_start_switch_fiber != NULL) enabled |= QJ_AC_SLOW_ASAN;
    if (__tsan_create_fiber != NULL) enabled |= QJ_AC_SLOW_TSAN;
    if (under_memcheck()) enabled |= QJ_AC_SLOW_MEMCHECK;
    if (qj_ac__own_float_control()) enabled |= QJ_AC_SLOW_FLOAT;
    return enabled;
}

void qj_ac__instrument_root(struct qj_ac_runtime *runtime) {
    if (runtime->slow & QJ_AC_SLOW_TSAN) runtime->root.sanitizer = __tsan_get_current_fiber();
    if (runtime->slow & QJ_AC_SLOW_TRACE) {
        trace_thread();
        trace_event(&runtime->root, 'B');
    }
}

void qj_ac__instrument_stop(struct qj_ac_runtime *runtime) {
    if (runtime->slow & QJ_AC_SLOW_TRACE) trace_event(&runtime->root, 'E');
}

void qj_ac__stack_bounds(struct qj_ac_runtime *runtime, struct qj_ac_task *task, void **low, size_t *size) {
    if (task != &runtime->root) {
        *low = task->stack_low;
        *size = (size_t)(stack_high(task) - task->stack_low);
        return;
    }
    static __thread void *root_low;
    static __thread size_t root_size;
    if (root_low == NULL) {
        pthread_attr_t attributes;
        if (pthread_getattr_np(pthread_self(), &attributes) != 0) qj_ac__fatal("cannot ask for the thread's stack");
        pthread_attr_getstack(&attributes, &root_low, &root_size);
        pthread_attr_destroy(&attributes);
    }
    *low = root_low;
    *size = root_size;
}

void qj_ac__instrument_before(struct qj_ac_runtime *runtime, struct qj_ac_task *from, struct qj_ac_task *to, bool ends) {
    if (runtime->slow & QJ_AC_SLOW_FLOAT) from->float_control = float_control();
    if (runtime->slow & QJ_AC_SLOW_TRACE) {
        trace_event(from, 'E');
        trace_event(to, 'B');
    }
    if (runtime->slow & QJ_AC_SLOW_ASAN) {
        void *low;
        size_t size;
        qj_ac__stack_bounds(runtime, to, &low, &size);
        from->sanitizer = NULL;
        __sanitizer_start_switch_fiber(ends ? NULL : &from->sanitizer, low, size);
    }
    if (runtime->slow & QJ_AC_SLOW_TSAN) __tsan_switch_to_fiber(to->sanitizer, 0);
}

void qj_ac__instrument_after(struct qj_ac_runtime *runtime, struct qj_ac_task *now) {
    if (runtime->slow & QJ_AC_SLOW_FLOAT) set_float_control(now->float_control);
    if (runtime->slow & QJ_AC_SLOW_ASAN) {
        __sanitizer_finish_switch_fiber(now->sanitizer, NULL, NULL);
        now->sanitizer = NULL;
    }
}
