// Boost.Context, Boost.Fiber and C++20 coroutines at the same questions. Each function does `n` operations and returns
// the cycles they took.
#include "tsc.h"
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <boost/fiber/all.hpp>
#include <coroutine>
#include <memory>

namespace bc = boost::context;
namespace bf = boost::fibers;

static volatile long count;

extern "C" uint64_t boost_context_switch(long n) {
    bc::fiber other([](bc::fiber &&back) {
        for (;;) back = std::move(back).resume();
        return std::move(back);
    });
    other = std::move(other).resume();
    uint64_t start = tsc();
    for (long i = 0; i < n; i += 2) other = std::move(other).resume();
    return tsc() - start;
}

extern "C" uint64_t boost_context_create(long n) {
    static bc::pooled_fixedsize_stack stacks;
    uint64_t start = tsc();
    for (long i = 0; i < n; i++) {
        bc::fiber task(std::allocator_arg, stacks, [](bc::fiber &&back) {
            back = std::move(back).resume();
            count = count + 1;
            return std::move(back);
        });
        task = std::move(task).resume();
        task = std::move(task).resume();
    }
    return tsc() - start;
}

extern "C" uint64_t boost_fiber_yield(long n) {
    uint64_t cycles = 0;
    bf::fiber a(bf::launch::post, [&] {
        boost::this_fiber::yield();
        uint64_t start = tsc();
        for (long i = 0; i < n / 2; i++) boost::this_fiber::yield();
        cycles = tsc() - start;
    });
    bf::fiber b(bf::launch::post, [&] {
        for (long i = 0; i < n / 2 + 1; i++) boost::this_fiber::yield();
    });
    a.join();
    b.join();
    return cycles;
}

extern "C" uint64_t boost_fiber_create(long n) {
    static bf::pooled_fixedsize_stack stacks;
    uint64_t start = tsc();
    for (long i = 0; i < n; i++) {
        bf::fiber task(bf::launch::dispatch, std::allocator_arg, stacks, [] {
            boost::this_fiber::yield();
            count = count + 1;
        });
        task.join();
    }
    return tsc() - start;
}

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
