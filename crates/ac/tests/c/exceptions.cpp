// C++: lambdas as tasks, exceptions through a task that has not waited, carried to the join by one that has, and waits
// while an exception is in flight.
#include <cstdio>
#include <quaject/ac.h>
#include <memory>
#include <stdexcept>
#include <string>

static void add(std::string *to, const std::string &what, int times) {
    for (int i = 0; i < times; i++) {
        qj_ac_yield();
        *to += what;
    }
}

struct noisy {
    const char *name;
    ~noisy() { std::printf("~%s ", name); }
};

static void inner() {
    DO_FINISH({
        ASYNC({
            noisy child{"child"};
            throw std::runtime_error("thrown before a wait");
        });
        std::printf("never printed ");
    });
}

int main() {
    int sum = 0, *to = &sum;
    DO_FINISH({
        for (int i = 0; i < 5; i++) {
            ASYNC({
                qj_ac_yield();
                *to += i;
            });
        }
    });
    std::printf("sum %d\n", sum);

    std::string text;
    DO_FINISH({
        ASYNC_CALL(add, &text, "a", 3);
        ASYNC_CALL(add, &text, std::string("b"), 2);
        auto owned = std::make_unique<int>(7);
        ::qj::ac::async([owned = std::move(owned), to] {
            qj_ac_yield();
            *to += *owned;
        });
    });
    std::printf("%s %d\n", text.c_str(), sum);

    for (int i = 0; i < 2; i++) {
        try {
            inner();
        } catch (const std::exception &error) {
            std::printf("caught: %s\n", error.what());
        }
    }
    try {
        DO_FINISH({
            ASYNC({
                noisy child{"child"};
                qj_ac_yield();
                throw std::runtime_error("thrown after a wait");
            });
            ASYNC({
                qj_ac_yield();
                throw std::runtime_error("second");
            });
            std::printf("parent goes on ");
        });
    } catch (const std::exception &error) {
        std::printf("caught: %s\n", error.what());
    }
    // The block is left by an exception while a task of it sleeps; another task throws and catches meanwhile.
    try {
        DO_FINISH({
            ASYNC({
                int result = qj_ac_sleep(3600000000000u);
                std::printf("sleeper %d ", result == QJ_AC_CANCELED);
                try {
                    throw 1;
                } catch (int) {
                    qj_ac_yield();
                    std::printf("uncaught %d ", std::uncaught_exceptions());
                }
            });
            throw std::runtime_error("from the body");
        });
    } catch (const std::exception &error) {
        std::printf("caught: %s, uncaught %d\n", error.what(), std::uncaught_exceptions());
    }
    qj_ac_stop();
}
