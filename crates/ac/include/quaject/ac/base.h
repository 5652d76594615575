/* The data structures of tasks, finish blocks and threads. The functions are in task.h and finish.h. */
#ifndef QUAJECT_AC_BASE_H
#define QUAJECT_AC_BASE_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define QJ_AC_INLINE static inline __attribute__((always_inline, unused))
#define QJ_AC_LIKELY(x) __builtin_expect(!!(x), 1)
#define QJ_AC_UNLIKELY(x) __builtin_expect(!!(x), 0)
/* Separates two stores that gcc would otherwise combine into one vector store: a load of one of the words soon after
 * could not be forwarded from it. */
#define QJ_AC__APART() __asm__ volatile("" ::: "memory")

/* The result of a wait whose enclosing block is cancelled. */
#define QJ_AC_CANCELED (-ECANCELED)

struct qj_ac_finish;
struct qj_ac_runtime;

/* The exception state of the C++ run time, by its ABI (__cxa_eh_globals): the caught exceptions, newest first, and the
 * number of uncaught ones. */
struct qj_ac_exceptions {
    void *caught;
    unsigned uncaught;
};

struct qj_ac_callee {
    void (*function)(void);
    uintptr_t eager; /* not 0: with an eagerly owned stack */
};

/* A task. It lies at the top of its own stack, so that a task which waits costs one page:
 *
 *     high [ padding: cache colouring ]
 *            [ struct qj_ac_task, 192 bytes     ]  <- stack pointer when the task's function is called
 *            [ frames ...                       ]
 *     low    [ guard, 64 KiB                    ]
 *
 * `parent_sp` is the caller-continuation record. While it is set, the task has never waited: its function runs as an
 * ordinary call by the parent, on another stack, and may return. The first wait takes the record, resumes the parent
 * there, and makes the task independent (a lazily owned stack).
 *
 * `sp` alone determines whether a task may be yielded to directly, so that a yield makes one test and few stores: its
 * cost is its memory accesses, of which a processor starts three per cycle, and its stores, of which it completes one
 * per cycle.
 *
 *     sp waits outside of the dispatch queue, while no instrumentation is enabled; or is the running task, whose `sp`
 *     is stale. Null for all others: tasks that are in the queue, have ended, have never waited, run a child on top of
 *     them, or wait for the end of a block
 *     queued_sp   is in the queue (`prev` is set), or waits for the end of a block; while instrumentation is enabled,
 *                 waits for whatever, and null otherwise */
struct qj_ac_task {
    void *parent_sp;             /* the parent's continuation; null once the parent has resumed */
    void *sp;                    /* its context when it can be yielded to directly */
    void *queued_sp;             /* its context if the dispatch queue or the library resumes it */
    union {
        struct qj_ac_task *next; /* in the dispatch queue, or in the pool */
        /* While it runs and has waited: the task it last yielded to by number, predicted for the next yield. */
        struct qj_ac_task *predicted_target;
    };
    struct qj_ac_task *prev;     /* in the dispatch queue; null outside of it */
    struct qj_ac_finish *finish; /* innermost open block */
    struct qj_ac_finish *home;   /* block the task was started in */
    struct qj_ac_task *parent;   /* the task that started it; valid while `parent_sp` is set */
    /* Second cache line: not touched by a switch. */
    struct qj_ac_runtime *runtime;
    struct qj_ac_task *all_next; /* every stack of the thread, for debuggers and messages */
    const char *name;            /* set by `qj_ac_name`, for messages */
    char *stack_low;             /* lowest usable byte */
    uint32_t remote_pending;     /* another thread has woken it, and it has not run since: QJ_AC_WAKE_... */
    uint32_t reserved;
    void *sanitizer;             /* ThreadSanitizer's fiber, or AddressSanitizer's fake stack while the task waits */
    struct qj_ac_task *remote_next; /* in the list by which other threads wake this one */
    uint32_t number;             /* of the stack, from 1 */
    uint32_t flags;              /* QJ_AC_TASK_... */
    /* Third cache line: of C++ programs, and only of tasks that throw or open a block. */
    struct qj_ac_exceptions exceptions;
    uint64_t float_control; /* of a task that waits, with `own_float_control` */
    struct qj_ac_callee callee; /* what ASYNC_CALL is about to start in this task */
    struct qj_ac_task *all_prev;
    uint64_t unused[2];
};

#define QJ_AC_TASK_POOLED 1u      /* the stack is free */
#define QJ_AC_TASK_REMOTE_WAIT 2u  /* waits for another thread, and checks again whenever it is woken */

/* Called when the block it is registered with is cancelled; newest first, never twice. Must not wait. */
struct qj_ac_cancel_item {
    void (*run)(void *argument);
    void *argument;
    struct qj_ac_cancel_item *next;
    struct qj_ac_cancel_item **link; /* what points to this item; null while it is not registered */
    int ran;
};

/* A timer. The caller owns the node; a pairing heap links it. */
struct qj_ac_timer {
    uint64_t when_ns; /* CLOCK_MONOTONIC */
    void (*fire)(struct qj_ac_timer *timer);
    struct qj_ac_timer *child, *next, *prev; /* `prev`: elder sibling or parent; null while not set, itself at the root */
};

/* A block. It is in the frame that opens it. Blocks form a tree by `up`; the links to children, which only cancellation
 * follows, are made at the first cancellable wait below, so that opening a block costs a few stores. */
struct qj_ac_finish {
    long count;                  /* tasks that have waited and not yet ended */
    struct qj_ac_task *waiter;   /* the owner, at the end of the block */
    struct qj_ac_finish *up;
    uint32_t state;              /* QJ_AC_BLOCK_... */
    int32_t error;               /* of qj_ac_fail(), by the first task that failed */
    void *failure;               /* first exception (C++) or panic (Rust) of a task that had waited */
    struct qj_ac_finish *children, *sibling_next, *sibling_prev;
    struct qj_ac_cancel_item *items;
    struct qj_ac_timer deadline;
};

#define QJ_AC_BLOCK_CANCELED 1u /* this very block was cancelled */
#define QJ_AC_BLOCK_SHIELD 2u   /* a cancellation further up stops here */
#define QJ_AC_BLOCK_LINKED 4u   /* is in the list of its parent */
#define QJ_AC_BLOCK_DEADLINE 8u /* the timer is set, or has fired */
#define QJ_AC_BLOCK_EXPIRED 16u /* the deadline cancelled it */

/* A number under which a suspended task can be found: index in the low half, generation in the high one. */
struct qj_ac_slot {
    struct qj_ac_task *task;
    uint32_t id; /* the only valid number of this slot; its generation changes when the number is released */
    uint32_t next_free;
};

struct qj_ac_statistics {
    uint64_t stacks;   /* ever allocated; one that was given back and is used again counts again */
    uint64_t started;  /* tasks that waited at least once */
    uint64_t ended;    /* of those */
    uint64_t switches; /* through the dispatch queue */
    uint64_t cancels;  /* blocks cancelled */
};

struct qj_ac_channel;
struct qj_ac_io;
struct qj_ac_pool;

#define QJ_AC_SLOW_UNSTARTED 1u

/* A thread's state. `queue` is the sentinel of the circular dispatch queue. */
struct qj_ac_runtime {
    struct qj_ac_task *current;
    /* Hot stack, perhaps the running task's; null when the pool is empty or instrumentation is enabled. */
    struct qj_ac_task *spare;
    uintptr_t slow;            /* QJ_AC_SLOW_...; not 0: every switch goes through the library */
    struct qj_ac_slot *slots;
    uint32_t slot_mask;
    uint32_t canceled_blocks;  /* open blocks with QJ_AC_BLOCK_CANCELED; 0 makes every check short */
    struct qj_ac_statistics statistics;
    struct qj_ac_task queue;
    struct qj_ac_task root;    /* the thread's own stack */
    /* Not accessed by inline code. */
    struct qj_ac_task *all;    /* every stack of the thread */
    struct qj_ac_pool *pool;
    struct qj_ac_io *io;
    struct qj_ac_timer *timers;
    struct qj_ac_channel *channels; /* channels on which tasks wait */
    uint32_t free_first, free_last, slots_used;
    struct qj_ac_task *poller;
    struct qj_ac_task *remote; /* woken by other threads; they push with compare-and-swap */
    uint32_t doorbell;         /* futex: other threads ring it; QJ_AC_SLEEPING while this one sleeps */
    uint32_t remote_waits;     /* tasks that only another thread can wake */
    uint32_t wakers;           /* other threads that are about to touch this structure */
    uint64_t polled_ticks;     /* when the poller last ran, by the processor's counter */
};

/* Initial-exec: the library is linked into the program that uses it, and an access is one instruction. */
extern __thread struct qj_ac_runtime qj_ac__thread __attribute__((tls_model("initial-exec")));
/* The same address, recomputed. A compiler would keep the address, or a part of it, across a switch in the frame of the
 * resumed task; loading it from there depends on the new stack pointer, and all that follows would wait for it. */
QJ_AC_INLINE struct qj_ac_runtime *qj_ac__this_thread(void) {
#if defined(__x86_64__)
    struct qj_ac_runtime *runtime;
    __asm__ volatile("mov %%fs:0, %0\n\tadd qj_ac__thread@gottpoff(%%rip), %0" : "=r"(runtime) : : "cc");
    return runtime;
#else
    return &qj_ac__thread;
#endif
}
extern struct qj_ac_task qj_ac__no_task; /* `current` of a thread that has not started */

/* Initialises the calling thread's state. Optional: DO_FINISH does so if necessary. */
void qj_ac_start(void);
/* Frees the thread's stacks. Every block must be closed. */
void qj_ac_stop(void);
/* Gives the memory of the thread's free stacks back to the system, except for the first 16 KiB of `keep` of them; their
 * address space is kept. Returns the number of stacks given back, 0 while a task waits for a stack. While timers, I/O
 * or other threads are waited for, the library itself gives back what was free for a second or so: `keep_stacks`. */
size_t qj_ac_trim(size_t keep);

/* Settings of the process, for threads that start later: every thread's stacks are of one size. Environment:
 * QJ_AC_STACK_KIB, QJ_AC_TRACE=FILE, QJ_AC_FLOAT=own. */
struct qj_ac_options {
    size_t stack_bytes; /* usable bytes of a task's stack; 0: 60 KiB */
    union {
        size_t max_stacks;     /* per thread, and one for the library; 0: as many as memory holds */
        size_t stacks_at_most; /* the name in version 0.1 */
    };
    /* Not 0: the control state of the floating-point unit (rounding mode, masked exceptions, flushing of denormals:
     * what fesetround() and feenableexcept() set) is a task's own. A task begins with its parent's. Every switch then
     * goes through the library and costs several times as much. 0: it is the thread's, and what a task sets is in
     * effect in the others, so a task that changes it restores it before it waits. `errno` is the thread's in any
     * case. */
    int own_float_control;
    /* Per thread: as many free stacks keep their memory; 0: 64; SIZE_MAX: all. The others give it back when no task has
     * used them for one to two seconds or so (the low watermark of free stacks), some thousand stacks a second. */
    size_t keep_stacks;
};
void qj_ac_configure(const struct qj_ac_options *options);

/* Prints the error and aborts the process. */
__attribute__((noreturn, cold, format(printf, 1, 2))) void qj_ac__fatal(const char *format, ...);

#ifdef __cplusplus
}
#endif

#endif
