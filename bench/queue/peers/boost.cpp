/* Boost's queues. */
#include "loops.h"
#include "memory.hpp"
#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>

using spsc = boost::lockfree::spsc_queue<uint64_t, boost::lockfree::capacity<CAPACITY>>;
using mpmc = boost::lockfree::queue<uint64_t, boost::lockfree::capacity<CAPACITY>>;

#define boostsp_make make<spsc>
#define boostsp_free destroy<spsc>
static inline bool boostsp_push(void *q, uint64_t item) { return static_cast<spsc *>(q)->push(item); }
static inline bool boostsp_pop(void *q, uint64_t *item) { return static_cast<spsc *>(q)->pop(*item); }
static inline bool boostsp_push8(void *q, uint64_t *items) {
    spsc *queue = static_cast<spsc *>(q);
    return queue->write_available() >= 8 && queue->push(items, 8) == 8;
}
static inline uint32_t boostsp_pop8(void *q, uint64_t *items) { return static_cast<spsc *>(q)->pop(items, 8); }
LOOPS(boostsp)
LOOPS8(boostsp)

#define boostmp_make make<mpmc>
#define boostmp_free destroy<mpmc>
static inline bool boostmp_push(void *q, uint64_t item) { return static_cast<mpmc *>(q)->bounded_push(item); }
static inline bool boostmp_pop(void *q, uint64_t *item) { return static_cast<mpmc *>(q)->pop(*item); }
LOOPS(boostmp)

extern "C" {
extern const contender bench_boost_sp, bench_boost_mp;
const contender bench_boost_sp = CONTENDER8(boostsp, "boost spsc_queue");
const contender bench_boost_mp = CONTENDER(boostmp, "boost lockfree::queue");
}
