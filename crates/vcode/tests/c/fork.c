/* Memory from v_code_new across fork, in a program with threads; and its reuse. Prints nothing; 0 if all is right. */
#include <quaject/vcode.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>

typedef long (*adder)(long);

#define CHECK(condition)                                                                                               \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);                                            \
            _exit(1);                                                                                                  \
        }                                                                                                              \
    } while (0)

static adder make(struct v_code *storage, long term, int instructions) {
    v_reg x[1];
    int at;
    CHECK(storage);
    v_lambda("%l", x, V_LEAF, storage);
    for (at = 0; at < instructions; at++) v_addli(x[0], x[0], 1);
    v_addli(x[0], x[0], term - instructions);
    v_retl(x[0]);
    return (adder)v_end();
}

/* Runs a check in a child with fewer rights. */
#define IN_CHILD(...)                                                                                                  \
    do {                                                                                                               \
        int status_;                                                                                                   \
        pid_t child_ = fork();                                                                                         \
        if (child_ == 0) {                                                                                             \
            if (geteuid() == 0) CHECK(setuid(65534) == 0);                                                             \
            __VA_ARGS__;                                                                                               \
            _exit(0);                                                                                                  \
        }                                                                                                              \
        CHECK(child_ > 0 && waitpid(child_, &status_, 0) == child_ && status_ == 0);                                   \
    } while (0)

/* Allocates, runs and frees blocks of many lengths. */
static void churn(long seed) {
    struct v_code *kept[16] = {0};
    adder functions[16];
    long turn;
    for (turn = 0; turn < 500; turn++) {
        int at = (int)((seed + turn * 7) % 16), length = (int)((seed * 31 + turn * 13) % 300), other;
        v_code_free(kept[at]);
        kept[at] = v_code_new(16 * (size_t)(length + 4));
        functions[at] = make(kept[at], 100 * seed + at, length);
        for (other = 0; other < 16; other++) {
            if (kept[other]) CHECK(functions[other](1) == 100 * seed + other + 1);
        }
    }
    for (turn = 0; turn < 16; turn++) v_code_free(kept[turn]);
}

static char are_forked;

static void *churns(void *seed) {
    while (!__atomic_load_n(&are_forked, __ATOMIC_RELAXED)) churn(*(long *)seed);
    return 0;
}

int main(void) {
    struct v_code *small = v_code_new(64), *large = v_code_new(1 << 21);
    adder add_one = make(small, 1, 0), add_two = make(large, 2, 90000);
    long seed = 77, round;
    pthread_t thread;
    struct rlimit limit = {16, 16};
    CHECK(add_one && add_two && add_one(41) == 42 && add_two(40) == 42);
    CHECK(!v_code_new(SIZE_MAX) && !v_code_new(SIZE_MAX - 100));

    /* A freed block is the next of its length. */
    v_code_free(small);
    CHECK(v_code_new(64) == small);
    add_one = make(small, 1, 0);

    CHECK(pthread_create(&thread, 0, churns, &seed) == 0);
    for (round = 0; round < 20; round++) {
        IN_CHILD({
            adder own = make(small, 1000, 0);
            CHECK(own(1) == 1001 && add_two(40) == 42);
            v_code_free(large);
            churn(round);
            IN_CHILD(CHECK(own(1) == 1001); churn(3));
        });
        CHECK(add_one(41) == 42 && add_two(40) == 42);
    }
    __atomic_store_n(&are_forked, 1, __ATOMIC_RELAXED);
    CHECK(pthread_join(thread, 0) == 0);

    /* Without files a child has no code memory, and says so. */
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    while (dup(0) >= 0) {
    }
    IN_CHILD(CHECK(!v_code_new(64)); v_code_free(small));
    CHECK(add_one(41) == 42);
    return 0;
}
