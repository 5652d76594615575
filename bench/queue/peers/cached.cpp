/* The reference every dedicated queue must stand: indices with a cached copy of the other's, on lines of their own, as in
 * rigtorp's SPSCQueue. */
#include "loops.h"
#include "memory.hpp"
#include <atomic>

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
extern const contender bench_cached;
const contender bench_cached = CONTENDER(cached, "cached-index reference");
}
