/* Every mistake the library names; the argument picks one. None of them may end otherwise. */
#define _GNU_SOURCE
#include <quaject/ac/ipc.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

static struct qj_ac_task *task;
static struct qj_ac_lock lock;
static struct qj_ac_semaphore semaphore;
static struct qj_ac_finish block, other;

static void nothing(void *a) { (void)a; }
static void waits_as_another(void *a) { (void)a, qj_ac_suspend(); }
static void waits(void *a) { (void)a, task = qj_ac_current(), qj_ac_suspend(); }
static void waits_at_the_end(void *a) {
    (void)a, task = qj_ac_current();
    DO_FINISH({ qj_ac_async(waits_as_another, NULL); });
}
static void ends_what_it_did_not_open(void *a) { qj_ac_finish_end(a); }
static void leaves_open(void *a) { qj_ac_finish_begin(a); }
static void waits_and_leaves_open(void *a) { qj_ac_yield(), qj_ac_finish_begin(a); }
static int deep(int n) {
    volatile char frame[512];
    frame[n % 512] = (char)n;
    return deep(n + 1) + frame[(n + 1) % 512];
}
static void overflows(void *a) { qj_ac_name("digger"), printf("%d", deep(a != NULL)); }
static void overflows_after_a_wait(void *a) { qj_ac_yield(), overflows(a); }
/* A program that lives with faults. */
static volatile char *closed_page;
static void opens_the_page(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info, (void)context;
    mprotect((void *)closed_page, 4096, PROT_READ | PROT_WRITE);
}
/* The frame ends far below the stack. What it touches is where the next stack would be if a page were the whole
 * guard. */
static void fills_a_buffer(void *a) {
    volatile char buffer[65536 + 1024];
    for (int i = 0; i < 512; i++) buffer[i] = (char)i;
    printf("%d", buffer[a != NULL]);
}
static struct qj_ac_channel channel;
static struct qj_ac_group group;
static void receives(void *a) {
    struct qj_ac_message request;
    uint32_t cookie;
    (void)a, qj_ac_recv(&channel, &request, &cookie);
}
static void dispatches(void *a) { (void)a, qj_ac_dispatch(&group); }
static void yields(void *a) { (void)a, qj_ac_yield(); }
static void locks_twice(void *a) { (void)a, qj_ac_lock_acquire(&lock), qj_ac_lock_acquire(&lock); }
static void releases(void *a) { (void)a, qj_ac_lock_release(&lock); }

/* A task that jumps into its parent, and what the parent does then. */
static jmp_buf parent_was_here;
static void jumps(void *a) {
    if (a != NULL) qj_ac_yield();
    longjmp(parent_was_here, 1);
}
static void child_jumps(void *a) {
    struct qj_ac_finish inner;
    qj_ac_finish_begin(&inner);
    if (setjmp(parent_was_here) == 0) qj_ac_async(jumps, NULL);
    (void)a;
}
static void leave_by_jump(const char *how, void *after_a_wait) {
    if (setjmp(parent_was_here) == 0) {
        qj_ac_async(jumps, after_a_wait);
        qj_ac_suspend();
    }
    if (strcmp(how, "jump-sleep") == 0) qj_ac_sleep(1000);
    if (strcmp(how, "jump-semaphore") == 0) qj_ac_semaphore_p(&semaphore);
    if (strcmp(how, "jump-async") == 0) qj_ac_async(waits, NULL), qj_ac_async(waits, NULL);
    if (strcmp(how, "jump-yield-to") == 0) qj_ac_yield_to(task);
}

/* A thread that ends where it must not. */
static void ends_the_thread(void *a) {
    if (a != NULL) qj_ac_yield();
    pthread_exit(NULL);
}
static void *ends_inside(void *in_a_task) {
    qj_ac_finish_begin(&block);
    if (in_a_task == NULL) pthread_exit(NULL);
    qj_ac_async(ends_the_thread, &block);
    qj_ac_finish_end(&block);
    return NULL;
}

/* What another thread does with a task or a block of the first one's. */
static void *elsewhere(void *what) {
    DO_FINISH({
        qj_ac_yield();
        if (what == (void *)qj_ac_yield_to_nodispatch) qj_ac_yield_to_nodispatch(task);
        if (what == (void *)qj_ac_yield_to) qj_ac_yield_to(task);
        if (what == (void *)qj_ac_id_set) qj_ac_id_set(qj_ac_id_create(), task);
        if (what == (void *)qj_ac_cancel) CANCEL(&block);
        if (what == (void *)qj_ac_deadline) qj_ac_deadline(&block, 1);
        if (what == (void *)qj_ac_semaphore_v) qj_ac_semaphore_v(&semaphore);
    });
    return NULL;
}
static void waits_for_the_semaphore(void *a) { (void)a, qj_ac_semaphore_p(&semaphore); }
static void do_elsewhere(void *what) {
    pthread_t thread;
    qj_ac_finish_begin(&block);
    qj_ac_async(waits, NULL);
    qj_ac_async(waits_for_the_semaphore, NULL);
    pthread_create(&thread, NULL, elsewhere, what);
    pthread_join(thread, NULL);
}

/* Few machines have shadow stacks. Here the kernel's answer to the question for them is replaced: the system call traps
 * into `answers_yes`. */
#if defined(__x86_64__)
static void answers_yes(int signal, siginfo_t *info, void *context) {
    (void)signal, (void)info;
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    *(unsigned long *)registers[REG_RSI] = 1;
    registers[REG_RAX] = 0;
}
static void claim_a_shadow_stack(void) {
    struct sigaction action = {.sa_sigaction = answers_yes, .sa_flags = SA_SIGINFO};
    sigaction(SIGSYS, &action, NULL);
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_arch_prctl, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[0])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x5005, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) _exit(1);
}
#else
static void claim_a_shadow_stack(void) {}
#endif

static void make(const char *mistake) {
    if (strcmp(mistake, "outside") == 0) {
        qj_ac_async(nothing, NULL);
    } else if (strcmp(mistake, "outside-after") == 0) {
        DO_FINISH({ qj_ac_async(nothing, NULL); });
        qj_ac_async(nothing, NULL);
    } else if (strcmp(mistake, "end-twice") == 0) {
        qj_ac_finish_begin(&block);
        qj_ac_finish_end(&block);
        qj_ac_finish_end(&block);
    } else if (strcmp(mistake, "end-in-wrong-order") == 0) {
        qj_ac_finish_begin(&block);
        qj_ac_finish_begin(&other);
        qj_ac_finish_end(&block);
    } else if (strcmp(mistake, "end-in-wrong-task") == 0) {
        qj_ac_finish_begin(&block);
        qj_ac_finish_begin(&other);
        qj_ac_async(ends_what_it_did_not_open, &block);
    } else if (strcmp(mistake, "left-open") == 0) {
        DO_FINISH({ qj_ac_async(leaves_open, &block); });
    } else if (strcmp(mistake, "left-open-after-a-wait") == 0) {
        DO_FINISH({ qj_ac_async(waits_and_leaves_open, &block); });
    } else if (strcmp(mistake, "overflow") == 0) {
        DO_FINISH({ qj_ac_async(overflows, NULL); });
    } else if (strcmp(mistake, "overflow-after-a-wait") == 0) {
        DO_FINISH({ qj_ac_async(overflows_after_a_wait, NULL); });
    } else if (strcmp(mistake, "overflow-after-a-fault") == 0) {
        struct sigaction action = {.sa_sigaction = opens_the_page, .sa_flags = SA_SIGINFO};
        closed_page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        sigaction(SIGSEGV, &action, NULL);
        qj_ac_start();
        *closed_page = 1;
        DO_FINISH({ qj_ac_async(overflows, NULL); });
    } else if (strcmp(mistake, "overflow-by-a-buffer") == 0) {
        DO_FINISH({
            qj_ac_async(yields, NULL);
            qj_ac_async(fills_a_buffer, NULL);
        });
    } else if (strcmp(mistake, "deadlock") == 0) {
        DO_FINISH({
            qj_ac_async(waits, NULL);
            qj_ac_async(waits, NULL);
        });
    } else if (strcmp(mistake, "deadlock-semaphore") == 0) {
        DO_FINISH({ ASYNC_CALL(qj_ac_semaphore_p, &semaphore); });
    } else if (strcmp(mistake, "schedule-twice") == 0) {
        DO_FINISH({
            qj_ac_async(waits, NULL);
            qj_ac_schedule(task);
            qj_ac_schedule(task);
        });
    } else if (strcmp(mistake, "schedule-running") == 0) {
        qj_ac_name("chief");
        DO_FINISH({ qj_ac_schedule(qj_ac_current()); });
    } else if (strcmp(mistake, "schedule-at-the-end") == 0) {
        DO_FINISH({
            qj_ac_async(waits_at_the_end, NULL);
            qj_ac_schedule(task);
        });
    } else if (strcmp(mistake, "schedule-ended") == 0) {
        DO_FINISH({
            qj_ac_async(waits, NULL);
            qj_ac_schedule(task);
        });
        qj_ac_schedule(task);
    } else if (strcmp(mistake, "lock-twice") == 0) {
        DO_FINISH({ qj_ac_async(locks_twice, NULL); });
    } else if (strcmp(mistake, "release-what-is-not-held") == 0) {
        DO_FINISH({ qj_ac_async(releases, NULL); });
    } else if (strcmp(mistake, "stop-inside") == 0) {
        DO_FINISH({ qj_ac_stop(); });
    } else if (strcmp(mistake, "stacks-at-most") == 0) {
        struct qj_ac_options options = {.max_stacks = 100};
        qj_ac_configure(&options);
        DO_FINISH({
            for (int i = 0; i < 200; i++) qj_ac_async(waits_as_another, NULL);
        });
    } else if (strcmp(mistake, "memory") == 0) {
        struct rlimit limit = {64 << 20, 64 << 20};
        setrlimit(RLIMIT_AS, &limit);
        DO_FINISH({
            for (int i = 0; i < 10000; i++) qj_ac_async(waits_as_another, NULL);
        });
    } else if (strcmp(mistake, "mappings") == 0) {
        DO_FINISH({
            for (int i = 0; i < 2000000; i++) qj_ac_async(waits_as_another, NULL);
        });
    } else if (strcmp(mistake, "stack-bytes") == 0) {
        struct qj_ac_options options = {.stack_bytes = (size_t)1 << 62};
        qj_ac_configure(&options);
        DO_FINISH({ qj_ac_async(yields, NULL); });
    } else if (strcmp(mistake, "stack-size") == 0) {
        DO_FINISH({ qj_ac_async(yields, NULL); });
    } else if (strcmp(mistake, "receive-twice") == 0 || strcmp(mistake, "receive-next-to-a-group") == 0) {
        int memory = qj_ac_channel_memory(0);
        struct qj_ac_group_item item = {.channel = &channel};
        if (qj_ac_channel_open(&channel, memory, 0, 0) != 0) _exit(1);
        qj_ac_group_add(&group, &item);
        DO_FINISH({
            qj_ac_async(receives, NULL);
            qj_ac_async(mistake[8] == 't' ? receives : dispatches, NULL);
        });
    } else if (strcmp(mistake, "group-twice") == 0) {
        static struct qj_ac_group_item items[2];
        qj_ac_group_add(&group, &items[0]);
        qj_ac_group_add(&group, &items[1]);
        qj_ac_group_add(&group, &items[0]);
    } else if (strcmp(mistake, "ids") == 0) {
        for (int i = 0; i < 65535; i++) {
            if (qj_ac_id_create() == 0) _exit(1);
        }
        fprintf(stderr, "all 65535 given\n");
        qj_ac_id_create();
    } else if (strcmp(mistake, "yield-direct-elsewhere") == 0) {
        do_elsewhere((void *)qj_ac_yield_to_nodispatch);
    } else if (strcmp(mistake, "yield-to-elsewhere") == 0) {
        do_elsewhere((void *)qj_ac_yield_to);
    } else if (strcmp(mistake, "id-elsewhere") == 0) {
        do_elsewhere((void *)qj_ac_id_set);
    } else if (strcmp(mistake, "cancel-elsewhere") == 0) {
        do_elsewhere((void *)qj_ac_cancel);
    } else if (strcmp(mistake, "deadline-elsewhere") == 0) {
        do_elsewhere((void *)qj_ac_deadline);
    } else if (strcmp(mistake, "semaphore-elsewhere") == 0) {
        do_elsewhere((void *)qj_ac_semaphore_v);
    } else if (strcmp(mistake, "deadlock-alone") == 0) {
        qj_ac_suspend();
    } else if (strncmp(mistake, "thread-ends-", 12) == 0) {
        pthread_t thread;
        pthread_create(&thread, NULL, ends_inside, strcmp(mistake, "thread-ends-in-a-task") == 0 ? &block : NULL);
        pthread_join(thread, NULL);
    } else if (strncmp(mistake, "jump-", 5) == 0) {
        DO_FINISH({
            qj_ac_async(waits, NULL);
            if (strcmp(mistake, "jump-return") == 0) qj_ac_async(child_jumps, NULL);
            leave_by_jump(mistake, mistake[5] == 'e' ? &block : NULL);
        });
        qj_ac_stop();
    } else if (strcmp(mistake, "shadow-stack") == 0) {
        claim_a_shadow_stack();
        DO_FINISH({ qj_ac_async(yields, NULL); });
    } else {
        fprintf(stderr, "no such mistake\n");
    }
}

int main(int count, char **arguments) {
    struct rlimit no_core = {0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    make(count > 1 ? arguments[1] : "");
    return 0;
}
