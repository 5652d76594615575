// Boost.Fiber at the same questions. Each function does `n` operations and returns the cycles they took.
#include "tsc.h"
#include <boost/fiber/all.hpp>
#include <memory>

namespace bf = boost::fibers;

static volatile long count;

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
