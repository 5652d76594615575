/* Boost's queues, and the reference every dedicated queue must stand: indices with a cached copy of the other's, on lines
 * of their own, as in rigtorp's SPSCQueue. */
#include "loops.h"
#include <atomic>
#include <boost/lockfree/queue.hpp>
#include <boost/lockfree/spsc_queue.hpp>
#include <new>

using spsc = boost::lockfree::spsc_queue<uint64_t, boost::lockfree::capacity<CAPACITY>>;
using mpmc = boost::lockfree::queue<uint64_t, boost::lockfree::capacity<CAPACITY>>;

template <class T> static void *make() { return new (aligned_alloc(128, (sizeof(T) + 127) / 128 * 128)) T(); }
template <class T> static void destroy(void *q) {
    static_cast<T *>(q)->~T();
    free(q);
}

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

struct reference {
    alignas(64) std::atomic<uint64_t> tail{0};
    alignas(64) uint64_t head_seen = 0;
    alignas(64) std::atomic<uint64_t> head{0};
    alignas(64) uint64_t tail_seen = 0;
    alignas(64) uint64_t items[CAPACITY];
};
#define cached_make make<reference>
#define cached_free destroy<reference>
static inline bool cached_push(void *v, uint64_t item) {
    reference *q = static_cast<reference *>(v);
    uint64_t tail = q->tail.load(std::memory_order_relaxed);
    if (tail - q->head_seen == CAPACITY) {
        q->head_seen = q->head.load(std::memory_order_acquire);
        if (tail - q->head_seen == CAPACITY) return false;
    }
    q->items[tail & (CAPACITY - 1)] = item;
    q->tail.store(tail + 1, std::memory_order_release);
    return true;
}
static inline bool cached_pop(void *v, uint64_t *item) {
    reference *q = static_cast<reference *>(v);
    uint64_t head = q->head.load(std::memory_order_relaxed);
    if (head == q->tail_seen) {
        q->tail_seen = q->tail.load(std::memory_order_acquire);
        if (head == q->tail_seen) return false;
    }
    *item = q->items[head & (CAPACITY - 1)];
    q->head.store(head + 1, std::memory_order_release);
    return true;
}
LOOPS(cached)

extern "C" {
extern const contender bench_boost_sp, bench_boost_mp, bench_cached;
const contender bench_boost_sp = CONTENDER8(boostsp, "boost spsc_queue");
const contender bench_boost_mp = CONTENDER(boostmp, "boost lockfree::queue");
const contender bench_cached = CONTENDER(cached, "cached-index reference");
}
