// C++20 coroutines at the same questions. Each function does `n` operations and returns the cycles they took.
#include "tsc.h"
#include <coroutine>

static volatile long count;

struct task {
    struct promise_type {
        task get_return_object() { return {std::coroutine_handle<promise_type>::from_promise(*this)}; }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        void return_void() {}
        void unhandled_exception() {}
    };
    std::coroutine_handle<promise_type> handle;
};

struct transfer {
    std::coroutine_handle<> *to;
    bool await_ready() const noexcept { return false; }
    std::coroutine_handle<> await_suspend(std::coroutine_handle<>) const noexcept { return *to; }
    void await_resume() const noexcept {}
};

static task ping(std::coroutine_handle<> *other, long n, std::coroutine_handle<> *last) {
    for (long i = 0; i < n; i++) co_await transfer{other};
    co_await transfer{last};
}

extern "C" uint64_t cpp20_symmetric(long n) {
    std::coroutine_handle<> a, b, none = std::noop_coroutine();
    task first = ping(&b, n / 2, &none), second = ping(&a, n, &none);
    a = first.handle;
    b = second.handle;
    uint64_t start = tsc();
    a.resume();
    uint64_t cycles = tsc() - start;
    first.handle.destroy();
    second.handle.destroy();
    return cycles;
}

static task one_wait() {
    co_await std::suspend_always{};
    count = count + 1;
}

extern "C" uint64_t cpp20_create(long n) {
    uint64_t start = tsc();
    for (long i = 0; i < n; i++) {
        task t = one_wait();
        t.handle.resume();
        t.handle.resume();
        t.handle.destroy();
    }
    return tsc() - start;
}
