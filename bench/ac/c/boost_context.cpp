// Boost.Context at the same questions. Each function does `n` operations and returns the cycles they took.
#include "tsc.h"
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <memory>

namespace bc = boost::context;

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
