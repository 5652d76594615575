// Tasks that wait while they handle exceptions, and while exceptions are in flight: each has its own, whichever function it
// waits in.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include <quaject/ac.h>
#include <quaject/thc.h>

#define CHECK(x) ((x) ? (void)0 : (std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), std::abort()))

struct numbered : std::runtime_error {
    explicit numbered(int n) : std::runtime_error("numbered"), number(n) {}
    int number;
};

static int number_of(const std::exception_ptr &exception) {
    if (exception == nullptr) return -1;
    try {
        std::rethrow_exception(exception);
    } catch (const numbered &error) {
        return error.number;
    }
}
static int handled() { return number_of(std::current_exception()); }

static struct qj_ac_semaphore semaphore;
static uint64_t state = 88172645463325252u;
static uint64_t random_number() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

// Waits somehow, in C and in C++, as a program does.
static void waits() {
    switch (random_number() % 4) {
    case 0: qj_ac_yield(); break;
    case 1: qj_ac_sleep(random_number() % 20000); break;
    case 2:
        qj_ac_semaphore_p(&semaphore);
        qj_ac_yield();
        qj_ac_semaphore_v(&semaphore);
        break;
    default: DO_FINISH({ ASYNC({ qj_ac_yield(); }); });
    }
}

// A destructor that waits, also when it runs because of an exception.
struct waits_at_its_end {
    int in_flight;
    ~waits_at_its_end() {
        CHECK(std::uncaught_exceptions() == in_flight);
        waits();
        CHECK(std::uncaught_exceptions() == in_flight);
        try {
            throw numbered(1000);
        } catch (const numbered &) {
            waits();
            CHECK(handled() == 1000);
        }
        CHECK(std::uncaught_exceptions() == in_flight);
    }
};

// Throws, handles, waits, handles others meanwhile, and throws the first on again.
static void nest(int me, int depth) {
    try {
        waits_at_its_end object{1};
        if (depth % 2 == 0) waits();
        throw numbered(me + depth);
    } catch (const numbered &error) {
        CHECK(std::uncaught_exceptions() == 0 && handled() == me + depth && error.number == me + depth);
        waits();
        CHECK(std::uncaught_exceptions() == 0 && handled() == me + depth && error.number == me + depth);
        std::exception_ptr kept = std::current_exception();
        if (depth > 0) {
            try {
                nest(me, depth - 1);
                CHECK(false);
            } catch (const numbered &inner) {
                waits();
                CHECK(inner.number == me && handled() == me);
            }
        }
        waits();
        CHECK(handled() == me + depth && number_of(kept) == me + depth);
        // The innermost's goes up through all.
        if (depth == 0) throw;
    }
    throw numbered(me);
}

static void many_tasks() {
    qj_ac_semaphore_init(&semaphore, 1);
    int ended = 0;
    DO_FINISH({
        for (int i = 0; i < 40; i++) {
            ::qj::ac::async([i, &ended] {
                try {
                    nest(i * 10, i % 5);
                    CHECK(false);
                } catch (const numbered &error) {
                    CHECK(error.number == i * 10);
                }
                CHECK(handled() == -1 && std::uncaught_exceptions() == 0);
                ended++;
            });
        }
    });
    CHECK(ended == 40 && handled() == -1 && std::uncaught_exceptions() == 0);
}

// Tasks that are started inside a handler, and end before and after they wait.
static void started_in_a_handler() {
    try {
        throw numbered(1);
    } catch (const numbered &) {
        DO_FINISH({
            ASYNC({
                CHECK(handled() == -1);
                try {
                    throw numbered(2);
                } catch (const numbered &) {
                    qj_ac_yield();
                    CHECK(handled() == 2);
                }
                CHECK(handled() == -1);
            });
            CHECK(handled() == 1);
            ASYNC({
                try {
                    throw numbered(3);
                } catch (const numbered &) {
                    CHECK(handled() == 3);
                }
            });
            CHECK(handled() == 1);
        });
        CHECK(handled() == 1);
        // One that never waits throws through the switch of stacks, here while another is handled.
        try {
            DO_FINISH({ ASYNC({ throw numbered(4); }); });
            CHECK(false);
        } catch (const numbered &error) {
            CHECK(error.number == 4 && handled() == 4 && std::uncaught_exceptions() == 0);
            qj_ac_yield();
        }
        CHECK(handled() == 1 && std::uncaught_exceptions() == 0);
        // The same stack again.
        DO_FINISH({
            ASYNC({
                CHECK(std::uncaught_exceptions() == 0 && handled() == -1);
                qj_ac_yield();
                CHECK(std::uncaught_exceptions() == 0 && handled() == -1);
            });
        });
        // One that has waited has it carried to the end.
        try {
            DO_FINISH({
                ASYNC({
                    qj_ac_yield();
                    throw numbered(5);
                });
            });
            CHECK(false);
        } catch (const numbered &) {
            CHECK(handled() == 5);
        }
        CHECK(handled() == 1);
    }
    CHECK(handled() == -1);
}

// A task that ends without leaving its handler.
static void ends_in_a_handler() {
    for (int round = 0; round < 3; round++) {
        DO_FINISH({
            ASYNC({
                CHECK(handled() == -1);
                try {
                    throw numbered(8);
                } catch (const numbered &) {
                    if (round == 1) qj_ac_yield();
                    THCFinish();
                }
            });
        });
        CHECK(handled() == -1);
    }
}

// Two that yield to each other directly, each in a handler.
static struct qj_ac_task *two[2];
static void in_turns() {
    DO_FINISH({
        for (int i = 0; i < 2; i++) {
            ASYNC({
                two[i] = qj_ac_current();
                try {
                    throw numbered(i);
                } catch (const numbered &error) {
                    if (i == 0) qj_ac_suspend();
                    for (int turn = 0; turn < 10; turn++) {
                        CHECK(handled() == i && error.number == i);
                        if (turn < 9 || i == 1) qj_ac_yield_to_nodispatch(two[1 - i]);
                    }
                    if (i == 0) qj_ac_schedule(two[1]);
                }
            });
        }
    });
}

// The thread's own code, before, between and after all tasks.
static void outside_of_tasks() {
    try {
        throw numbered(7);
    } catch (const numbered &) {
        qj_ac_stop();
        CHECK(handled() == 7);
        qj_ac_start();
        CHECK(handled() == 7);
        qj_ac_sleep(1000);
        CHECK(handled() == 7);
        DO_FINISH({ ASYNC({ qj_ac_sleep(1000); }); });
        CHECK(handled() == 7);
        qj_ac_stop();
        CHECK(handled() == 7);
    }
    CHECK(handled() == -1);
}

int main() {
    outside_of_tasks();
    started_in_a_handler();
    ends_in_a_handler();
    in_turns();
    many_tasks();
    outside_of_tasks();
    std::printf("every task has handled its own\n");
}
