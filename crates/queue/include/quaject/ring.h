/* Rings of 64-byte slots in memory that threads or processes share: one or many producers, one or many consumers.
 * C11 and C++17, gcc and clang; no library, no allocation, nothing blocks. The content of messages is not interpreted.
 * The layout is the one of the Rust crate `quaject-queue` (`quaject_queue::shared`); a test compares the two.
 *
 *   offset 0     magic, layout, capacity, kind    written once by qj_ring_create(), checked by qj_ring_attach()
 *          128   claim   the next position of many producers   (a hint: a wrong value costs time, never safety)
 *          256   take    the next position of many consumers   (likewise)
 *          384   consumer_bell, 448 producer_bell              see "Bells"
 *          512   slot 0 | slot 1 | ... | slot capacity-1
 *
 *   slot   state: 64 bits | 7 words of 64 bits
 *   state  lap: 48 bits | owner: 8 bits | span-1: 5 bits | phase: 3 bits        all zero is a free slot of lap 0
 *
 * A position counts messages from 0; it lives in slot `position % capacity` and in lap `position / capacity`.
 * The slot itself holds its state, free or full, so one line moves per message and direction, and every index is masked
 * with the end's own mask, so that no index of a peer leads outside of the ring:
 *
 *       FREE(lap) ----------- one producer ------------> FULL(lap) ------ one consumer -----> FREE(lap + 1)
 *       FREE(lap) -> BUSY(lap, owner, span) -----------> FULL(lap) -> TAKEN(lap, owner) ----> FREE(lap + 1)
 *                    `-- owner died: qj_ring_recover --> VOID(lap) ------ skipped ----------> FREE(lap + 1)
 *
 * Several messages are inserted at once by claiming the first slot with their number (span) and publishing the last
 * slot first: consumers, which start at the first, see all or none, also when the producer is killed half-way.
 *
 * A malicious peer can lose or forge messages, as any writer of a ring can. It cannot make these functions access
 * memory outside of the ring or loop forever. A consumer whose producers do not trust each other uses one ring for each
 * producer. The lap in the state of a slot is the sequence number of Vyukov's bounded MPMC queue (2010). */
#ifndef QUAJECT_RING_H
#define QUAJECT_RING_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#define QJ_RING_ALIGN(n) alignas(n)
#else
#define QJ_RING_ALIGN(n) _Alignas(n)
#endif

#define QJ_RING_MAGIC 0x0031474e49524a51u /* "QJRING1" */
#define QJ_RING_LAYOUT 1u
#define QJ_RING_WORDS 7u
#define QJ_RING_SPAN_MAX 32u
#define QJ_RING_CAPACITY_LOG2_MAX 24u

/* Kinds of rings: a single producer (SP) or many (MP), a single consumer (SC) or many (MC). */
#define QJ_RING_SP_SC 0u
#define QJ_RING_MP_SC 1u
#define QJ_RING_SP_MC 2u
#define QJ_RING_MP_MC 3u

/* One message. Its words are not interpreted; the receiver must validate them. */
struct qj_ring_message {
    uint64_t words[QJ_RING_WORDS];
};

struct qj_ring_slot {
    QJ_RING_ALIGN(64) uint64_t state;
    uint64_t words[QJ_RING_WORDS];
};

/* The header in shared memory; the slots follow. */
struct qj_ring {
    QJ_RING_ALIGN(128) uint64_t magic;
    uint32_t layout;
    uint32_t capacity_log2;
    uint32_t kind;
    QJ_RING_ALIGN(128) uint64_t claim;
    QJ_RING_ALIGN(128) uint64_t take;
    QJ_RING_ALIGN(128) uint32_t consumer_bell;
    QJ_RING_ALIGN(64) uint32_t producer_bell;
};

/* One end, in private memory that no peer can change. */
struct qj_ring_end {
    struct qj_ring *ring;
    struct qj_ring_slot *slots;
    uint64_t position; /* the next position, on a single side; unused on a side that ends share */
    uint32_t mask;
    uint32_t shift;
    uint32_t kind;
    uint8_t owner;   /* 1..255: the number of this process, or of another unit that fails as a whole */
    uint8_t held_by; /* after QJ_RING_HELD: the owner that holds the slot we wait for */
};

enum qj_ring_result {
    QJ_RING_OK = 0,
    QJ_RING_NOT_READY = 1, /* a push found the ring full, a pop found it empty */
    QJ_RING_HELD = 2,      /* not ready, and `held_by` holds the slot: when it is dead, qj_ring_recover() */
    QJ_RING_BROKEN = 3,    /* the shared memory holds what no correct peer writes */
    QJ_RING_REFUSED = 4    /* the caller's error, nothing was done: a number of messages or a capacity that is not
                            * possible, memory that is too small or not aligned, owner 0, an operation of many producers
                            * or consumers on a ring with one */
};

/* Always inlined, so that a constant argument specialises the code. */
#define QJ_RING__SPECIALISED static inline __attribute__((always_inline))

/* ---- states ---- */

enum { QJ_RING_FREE = 0, QJ_RING_FULL = 1, QJ_RING_BUSY = 2, QJ_RING_TAKEN = 3, QJ_RING_VOID = 4 };

static inline uint64_t qj_ring__state(uint64_t lap, unsigned owner, unsigned span, unsigned phase) {
    return (lap << 16) | ((uint64_t)owner << 8) | ((uint64_t)(span - 1) << 3) | phase;
}
/* The state of a slot that no end holds. */
static inline uint64_t qj_ring__idle(const struct qj_ring_end *end, uint64_t position, unsigned phase) {
    return ((position >> end->shift) << 16) | phase;
}
static inline unsigned qj_ring__phase(uint64_t state) { return (unsigned)(state & 7); }
static inline unsigned qj_ring__span(uint64_t state) { return (unsigned)((state >> 3) & 31) + 1; }
static inline unsigned qj_ring__owner(uint64_t state) { return (unsigned)((state >> 8) & 255); }
/* How many laps `state` is ahead of the one of `position`; negative when it is behind. */
static inline int64_t qj_ring__ahead(const struct qj_ring_end *end, uint64_t state, uint64_t position) {
    return (int64_t)((state & ~(uint64_t)0xffff) - ((position >> end->shift) << 16)) / 65536;
}
static inline struct qj_ring_slot *qj_ring__slot(const struct qj_ring_end *end, uint64_t position) {
    return &end->slots[position & end->mask]; /* the mask is our own: inside the ring, whatever `position` is */
}
/* Pairs with qj_ring__set_state() and qj_ring__compare_exchange(): the words that were written before them are visible
 * after this load. */
static inline uint64_t qj_ring__get_state(const struct qj_ring_end *end, uint64_t position) {
    return __atomic_load_n(&qj_ring__slot(end, position)->state, __ATOMIC_ACQUIRE);
}
/* Pairs with qj_ring__get_state() of the other side: our words are written before FULL is seen, its words are read
 * before FREE is seen. */
static inline void qj_ring__set_state(const struct qj_ring_end *end, uint64_t position, uint64_t state) {
    __atomic_store_n(&qj_ring__slot(end, position)->state, state, __ATOMIC_RELEASE);
}
/* Pairs as the two above, on both sides. */
static inline int qj_ring__compare_exchange(const struct qj_ring_end *end, uint64_t position, uint64_t from, uint64_t to) {
    return __atomic_compare_exchange_n(&qj_ring__slot(end, position)->state, &from, to, 0, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

/* Word by word and atomic, because a peer that violates the protocol may write at the same time. */
static inline void qj_ring__write(const struct qj_ring_end *end, uint64_t position, const struct qj_ring_message *m) {
    uint64_t *to = qj_ring__slot(end, position)->words;
    __atomic_store_n(&to[0], m->words[0], __ATOMIC_RELAXED);
    __atomic_store_n(&to[1], m->words[1], __ATOMIC_RELAXED);
    __atomic_store_n(&to[2], m->words[2], __ATOMIC_RELAXED);
    __atomic_store_n(&to[3], m->words[3], __ATOMIC_RELAXED);
    __atomic_store_n(&to[4], m->words[4], __ATOMIC_RELAXED);
    __atomic_store_n(&to[5], m->words[5], __ATOMIC_RELAXED);
    __atomic_store_n(&to[6], m->words[6], __ATOMIC_RELAXED);
}
static inline void qj_ring__read(const struct qj_ring_end *end, uint64_t position, struct qj_ring_message *m) {
    const uint64_t *from = qj_ring__slot(end, position)->words;
    m->words[0] = __atomic_load_n(&from[0], __ATOMIC_RELAXED);
    m->words[1] = __atomic_load_n(&from[1], __ATOMIC_RELAXED);
    m->words[2] = __atomic_load_n(&from[2], __ATOMIC_RELAXED);
    m->words[3] = __atomic_load_n(&from[3], __ATOMIC_RELAXED);
    m->words[4] = __atomic_load_n(&from[4], __ATOMIC_RELAXED);
    m->words[5] = __atomic_load_n(&from[5], __ATOMIC_RELAXED);
    m->words[6] = __atomic_load_n(&from[6], __ATOMIC_RELAXED);
}

/* The stepping tests stop a process here: before every store to shared memory. */
#ifndef QJ_RING_STEP
#define QJ_RING_STEP(name) ((void)0)
#endif

/* ---- making and joining ---- */

/* A multiple of 128, so that rings can follow each other. */
static inline size_t qj_ring_bytes(unsigned capacity_log2) {
    return (sizeof(struct qj_ring) + (sizeof(struct qj_ring_slot) << capacity_log2) + 127) & ~(size_t)127;
}

/* Writes the header into zeroed memory, aligned to 128 bytes, of at least qj_ring_bytes(). Done once, by the process
 * that created the memory, before any end attaches. Fails when the memory is too small or the capacity too large. */
static inline enum qj_ring_result qj_ring_create(void *memory, size_t bytes, unsigned capacity_log2, uint32_t kind) {
    struct qj_ring *ring = (struct qj_ring *)memory;
    if (capacity_log2 > QJ_RING_CAPACITY_LOG2_MAX || kind > QJ_RING_MP_MC || bytes < qj_ring_bytes(capacity_log2) ||
        ((uintptr_t)memory & 127) != 0)
        return QJ_RING_REFUSED;
    ring->layout = QJ_RING_LAYOUT;
    ring->capacity_log2 = capacity_log2;
    ring->kind = kind;
    /* Pairs with the acquire in qj_ring_attach(). */
    __atomic_store_n(&ring->magic, QJ_RING_MAGIC, __ATOMIC_RELEASE);
    return QJ_RING_OK;
}

/* Makes an end. Capacity and kind are what *we* expect; a different header is an error. A single side starts at
 * position 0: on a ring that has been used, call qj_ring_resume_producer() or qj_ring_resume_consumer(). */
static inline enum qj_ring_result qj_ring_attach(struct qj_ring_end *end, void *memory, size_t bytes,
                                                 unsigned capacity_log2, uint32_t kind, uint8_t owner) {
    struct qj_ring *ring = (struct qj_ring *)memory;
    if (capacity_log2 > QJ_RING_CAPACITY_LOG2_MAX || bytes < qj_ring_bytes(capacity_log2) || owner == 0 ||
        ((uintptr_t)memory & 127) != 0)
        return QJ_RING_REFUSED;
    /* Pairs with the release in qj_ring_create(). */
    if (__atomic_load_n(&ring->magic, __ATOMIC_ACQUIRE) != QJ_RING_MAGIC ||
        __atomic_load_n(&ring->layout, __ATOMIC_RELAXED) != QJ_RING_LAYOUT ||
        __atomic_load_n(&ring->capacity_log2, __ATOMIC_RELAXED) != capacity_log2 ||
        __atomic_load_n(&ring->kind, __ATOMIC_RELAXED) != kind)
        return QJ_RING_BROKEN;
    end->ring = ring;
    end->slots = (struct qj_ring_slot *)(ring + 1);
    end->position = 0;
    end->mask = ((uint32_t)1 << capacity_log2) - 1;
    end->shift = capacity_log2;
    end->kind = kind;
    end->owner = owner;
    end->held_by = 0;
    return QJ_RING_OK;
}

/* HELD with the owner of the slot, or BROKEN: only ends of a shared side write an owner into a state. Not on the fast
 * path. */
static inline enum qj_ring_result qj_ring__held(struct qj_ring_end *end, uint64_t found, uint32_t shared_side) {
    if (!(end->kind & shared_side) || qj_ring__owner(found) == 0) return QJ_RING_BROKEN;
    end->held_by = (uint8_t)qj_ring__owner(found);
    return QJ_RING_HELD;
}
/* Why `position` is still free although the next lap has begun: it is an inner slot of an insert of several messages,
 * whose first slot names the owner and is published last. */
static inline enum qj_ring_result qj_ring__unpublished(struct qj_ring_end *end, uint64_t position) {
    for (uint64_t back = 1; back < QJ_RING_SPAN_MAX && back <= end->mask; back++) {
        uint64_t state = qj_ring__get_state(end, position - back);
        int covers = qj_ring__ahead(end, state, position - back) == 0 && qj_ring__span(state) > back;
        if (covers && qj_ring__phase(state) == QJ_RING_BUSY) return qj_ring__held(end, state, QJ_RING_MP_SC);
    }
    return qj_ring__get_state(end, position) == qj_ring__idle(end, position, QJ_RING_FREE) ? QJ_RING_BROKEN
                                                                                           : QJ_RING_NOT_READY;
}
/* Why a push finds no room at `position`: the message of the lap before is still there. */
static inline enum qj_ring_result qj_ring__full(struct qj_ring_end *end, uint64_t found, uint64_t position) {
    uint64_t before = position - end->mask - 1;
    if (found == qj_ring__idle(end, before, QJ_RING_FULL) || found == qj_ring__idle(end, before, QJ_RING_VOID))
        return QJ_RING_NOT_READY;
    if (qj_ring__ahead(end, found, before) == 0 && qj_ring__phase(found) == QJ_RING_BUSY)
        return qj_ring__held(end, found, QJ_RING_MP_SC);
    if (qj_ring__ahead(end, found, before) == 0 && qj_ring__phase(found) == QJ_RING_TAKEN)
        return qj_ring__held(end, found, QJ_RING_SP_MC);
    if (found == qj_ring__idle(end, before, QJ_RING_FREE)) return qj_ring__unpublished(end, before);
    return QJ_RING_BROKEN;
}
/* Why a pop finds no message at `position`: nothing was published there yet, or the message of the lap before is still
 * being read. */
static inline enum qj_ring_result qj_ring__empty(struct qj_ring_end *end, uint64_t found, uint64_t position) {
    if (found == qj_ring__idle(end, position, QJ_RING_FREE)) return QJ_RING_NOT_READY;
    if (qj_ring__ahead(end, found, position) == 0 && qj_ring__phase(found) == QJ_RING_BUSY)
        return qj_ring__held(end, found, QJ_RING_MP_SC);
    if (qj_ring__ahead(end, found, position) == -1 && qj_ring__phase(found) == QJ_RING_TAKEN)
        return qj_ring__held(end, found, QJ_RING_SP_MC);
    return QJ_RING_BROKEN;
}

/* ---- a single side: no compare-and-swap, nothing to claim ---- */

QJ_RING__SPECIALISED enum qj_ring_result qj_ring__sp_push(struct qj_ring_end *end,
                                                          const struct qj_ring_message *messages, uint32_t count) {
    uint64_t first = end->position;
    if (count == 0 || count > QJ_RING_SPAN_MAX || count > end->mask + 1) return QJ_RING_REFUSED;
    for (uint32_t i = count; i-- > 0;) {
        uint64_t found = qj_ring__get_state(end, first + i);
        if (found != qj_ring__idle(end, first + i, QJ_RING_FREE)) return qj_ring__full(end, found, first + i);
    }
    for (uint32_t i = 0; i < count; i++) {
        QJ_RING_STEP("sp write");
        qj_ring__write(end, first + i, &messages[i]);
    }
    for (uint32_t i = count; i-- > 0;) {
        QJ_RING_STEP("sp publish");
        qj_ring__set_state(end, first + i, qj_ring__idle(end, first + i, QJ_RING_FULL));
    }
    end->position = first + count;
    return QJ_RING_OK;
}
/* Inserts `count` messages, all or none. The caller is the only producer. */
static inline enum qj_ring_result qj_ring_sp_push_many(struct qj_ring_end *end, const struct qj_ring_message *messages,
                                                       uint32_t count) {
    return qj_ring__sp_push(end, messages, count);
}
QJ_RING__SPECIALISED enum qj_ring_result qj_ring_sp_push(struct qj_ring_end *end, const struct qj_ring_message *message) {
    return qj_ring__sp_push(end, message, 1);
}

QJ_RING__SPECIALISED enum qj_ring_result qj_ring__sc_pop(struct qj_ring_end *end, struct qj_ring_message *messages,
                                                         uint32_t max, uint32_t *taken) {
    uint64_t first = end->position;
    uint32_t count = 0;
    *taken = 0;
    for (uint64_t skipped = 0; skipped <= end->mask; skipped++) {
        while (count < max && qj_ring__get_state(end, first + count) == qj_ring__idle(end, first + count, QJ_RING_FULL)) {
            qj_ring__read(end, first + count, &messages[count]);
            count++;
        }
        if (count > 0 || max == 0) break;
        uint64_t found = qj_ring__get_state(end, first);
        if (found == qj_ring__idle(end, first, QJ_RING_FULL)) continue;
        if (found != qj_ring__idle(end, first, QJ_RING_VOID)) return qj_ring__empty(end, found, first);
        QJ_RING_STEP("sc skip");
        qj_ring__set_state(end, first, qj_ring__idle(end, first, QJ_RING_FREE) + 65536);
        end->position = ++first;
    }
    /* In order, so that a successor finds the first that was not given back. */
    for (uint32_t i = 0; i < count; i++) {
        QJ_RING_STEP("sc release");
        qj_ring__set_state(end, first + i, qj_ring__idle(end, first + i, QJ_RING_FREE) + 65536);
    }
    end->position = first + count;
    *taken = count;
    return count > 0 || max == 0 ? QJ_RING_OK : QJ_RING_NOT_READY;
}
/* Takes up to `max` messages that are ready and says in `taken` how many. The caller is the only consumer. */
static inline enum qj_ring_result qj_ring_sc_pop_many(struct qj_ring_end *end, struct qj_ring_message *messages,
                                                      uint32_t max, uint32_t *taken) {
    return qj_ring__sc_pop(end, messages, max, taken);
}
/* Takes a message. The caller is the only consumer. */
QJ_RING__SPECIALISED enum qj_ring_result qj_ring_sc_pop(struct qj_ring_end *end, struct qj_ring_message *message) {
    uint32_t taken;
    return qj_ring__sc_pop(end, message, 1, &taken);
}

/* ---- one producer, one consumer, without a copy: each works on the slot itself ----
 *
 *   if (qj_ring_sp_reserve(&end, &slot) == QJ_RING_OK) {       while (qj_ring_sc_peek(&end, &slot) == QJ_RING_OK) {
 *       qj_ring_set_word(slot, 0, ...);                            ... qj_ring_word(slot, 0) ...
 *       qj_ring_sp_publish(&end, slot);                            qj_ring_sc_pass(&end);
 *   }                                                              passed++;
 *                                                              }
 *                                                              ... whatever is more urgent ...
 *                                                              qj_ring_sc_give_back(&end, passed);
 *
 * Until they are given back the producer finds the slots full, and a successor would find the messages again. Other
 * calls of the consumer's may follow only when every slot has been given back. */

/* The slot of the next message: write all words, then publish it. */
QJ_RING__SPECIALISED enum qj_ring_result qj_ring_sp_reserve(struct qj_ring_end *end, struct qj_ring_slot **slot) {
    uint64_t position = end->position, free = qj_ring__idle(end, position, QJ_RING_FREE);
    *slot = qj_ring__slot(end, position);
    uint64_t found = qj_ring__get_state(end, position);
    if (__builtin_expect(found == free, 1)) return QJ_RING_OK;
    return qj_ring__full(end, found, position);
}
QJ_RING__SPECIALISED void qj_ring_set_word(struct qj_ring_slot *slot, unsigned index, uint64_t word) {
    __atomic_store_n(&slot->words[index], word, __ATOMIC_RELAXED);
}
QJ_RING__SPECIALISED void qj_ring_sp_publish(struct qj_ring_end *end, struct qj_ring_slot *slot) {
    uint64_t state = qj_ring__idle(end, end->position, QJ_RING_FULL);
    QJ_RING_STEP("sp publish");
    end->position++;
    /* Pairs with the acquire in qj_ring__get_state() of the consumer. */
    __atomic_store_n(&slot->state, state, __ATOMIC_RELEASE);
}

/* The next message, in its slot. */
QJ_RING__SPECIALISED enum qj_ring_result qj_ring_sc_peek(struct qj_ring_end *end, const struct qj_ring_slot **slot) {
    uint64_t position = end->position, full = qj_ring__idle(end, position, QJ_RING_FULL);
    *slot = qj_ring__slot(end, position);
    uint64_t found = qj_ring__get_state(end, position);
    if (found == full) return QJ_RING_OK;
    return qj_ring__empty(end, found, position);
}
/* Whether the slot at `position` (end->position or later) is full: reads several messages before the first is
 * passed. */
QJ_RING__SPECIALISED int qj_ring_sc_ready(const struct qj_ring_end *end, uint64_t position, const struct qj_ring_slot **slot) {
    *slot = qj_ring__slot(end, position);
    return qj_ring__get_state(end, position) == qj_ring__idle(end, position, QJ_RING_FULL);
}
/* A word of it. A malicious peer may change it at any time: read a word once, then check and use the copy. */
QJ_RING__SPECIALISED uint64_t qj_ring_word(const struct qj_ring_slot *slot, unsigned index) {
    return __atomic_load_n(&slot->words[index], __ATOMIC_RELAXED);
}
/* Advances to the next message. */
QJ_RING__SPECIALISED void qj_ring_sc_pass(struct qj_ring_end *end) { end->position++; }
/* Frees the slots of the last `count` messages that were passed. */
QJ_RING__SPECIALISED void qj_ring_sc_give_back(const struct qj_ring_end *end, uint32_t count) {
    /* In order, so that a successor finds the first that was not given back. */
    for (uint64_t position = end->position - count; position != end->position; position++) {
        QJ_RING_STEP("sc release");
        qj_ring__set_state(end, position, qj_ring__idle(end, position, QJ_RING_FREE) + 65536);
    }
}

/* ---- a shared side: the compare-and-swap on the slot is the claim, the index is a hint ---- */

/* Pairs with qj_ring__hint(): an end that follows the hint sees the states that moved it, and does not mistake an old
 * state for a protocol violation. */
static inline void qj_ring__help(uint64_t *hint, uint64_t from, uint64_t to) {
    __atomic_compare_exchange_n(hint, &from, to, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}
/* Pairs with qj_ring__help(). */
static inline uint64_t qj_ring__hint(const uint64_t *hint) { return __atomic_load_n(hint, __ATOMIC_ACQUIRE); }
/* Attempts after which a call gives up: correct peers cause one per concurrent call, a malicious one could move the
 * hints forever. */
static inline uint64_t qj_ring__attempts(const struct qj_ring_end *end) { return 2 * (uint64_t)end->mask + 64; }

QJ_RING__SPECIALISED enum qj_ring_result qj_ring__mp_push(struct qj_ring_end *end,
                                                          const struct qj_ring_message *messages, uint32_t count) {
    uint64_t *hint = &end->ring->claim;
    if (count == 0 || count > QJ_RING_SPAN_MAX || count > end->mask + 1) return QJ_RING_REFUSED;
    if (!(end->kind & QJ_RING_MP_SC)) return QJ_RING_REFUSED;
    for (uint64_t attempt = 0; attempt < qj_ring__attempts(end); attempt++) {
        uint64_t first = qj_ring__hint(hint);
        uint64_t found = 0;
        uint32_t i = count;
        while (i > 0) {
            found = qj_ring__get_state(end, first + i - 1);
            if (found != qj_ring__idle(end, first + i - 1, QJ_RING_FREE)) break;
            i--;
        }
        if (i > 0) {
            /* Claimed since, or the hint lags behind: its first slot holds the length of the claim. */
            if (qj_ring__ahead(end, found, first + i - 1) >= 0) {
                uint64_t state = qj_ring__get_state(end, first);
                int64_t ahead = qj_ring__ahead(end, state, first);
                int is_span = ahead == 0 && qj_ring__phase(state) == QJ_RING_BUSY;
                if (ahead >= 0 && state != qj_ring__idle(end, first, QJ_RING_FREE)) {
                    QJ_RING_STEP("mp help");
                    qj_ring__help(hint, first, first + (is_span ? qj_ring__span(state) : 1));
                }
                continue;
            }
            if (qj_ring__hint(hint) != first) continue;
            return qj_ring__full(end, found, first + i - 1);
        }
        QJ_RING_STEP("mp claim");
        if (!qj_ring__compare_exchange(end, first, qj_ring__idle(end, first, QJ_RING_FREE),
                               qj_ring__state(first >> end->shift, end->owner, count, QJ_RING_BUSY)))
            continue;
        QJ_RING_STEP("mp advance");
        qj_ring__help(hint, first, first + count);
        for (i = 0; i < count; i++) {
            QJ_RING_STEP("mp write");
            qj_ring__write(end, first + i, &messages[i]);
        }
        for (i = count; i-- > 0;) {
            QJ_RING_STEP("mp publish");
            qj_ring__set_state(end, first + i, qj_ring__idle(end, first + i, QJ_RING_FULL));
        }
        return QJ_RING_OK;
    }
    return QJ_RING_NOT_READY;
}
/* Inserts `count` messages, all or none, in neighbouring positions. Other producers may do the same. */
static inline enum qj_ring_result qj_ring_mp_push_many(struct qj_ring_end *end, const struct qj_ring_message *messages,
                                                       uint32_t count) {
    return qj_ring__mp_push(end, messages, count);
}
static inline enum qj_ring_result qj_ring_mp_push(struct qj_ring_end *end, const struct qj_ring_message *message) {
    return qj_ring__mp_push(end, message, 1);
}

/* Takes a message. Other consumers may do the same. */
static inline enum qj_ring_result qj_ring_mc_pop(struct qj_ring_end *end, struct qj_ring_message *message) {
    if (!(end->kind & QJ_RING_SP_MC)) return QJ_RING_REFUSED;
    uint64_t *hint = &end->ring->take;
    for (uint64_t attempt = 0; attempt < qj_ring__attempts(end); attempt++) {
        uint64_t position = qj_ring__hint(hint);
        uint64_t found = qj_ring__get_state(end, position);
        uint64_t lap = position >> end->shift;
        int64_t ahead = qj_ring__ahead(end, found, position);
        if (found == qj_ring__idle(end, position, QJ_RING_FULL)) {
            QJ_RING_STEP("mc claim");
            if (!qj_ring__compare_exchange(end, position, found, qj_ring__state(lap, end->owner, 1, QJ_RING_TAKEN))) continue;
            QJ_RING_STEP("mc advance");
            qj_ring__help(hint, position, position + 1);
            qj_ring__read(end, position, message);
            QJ_RING_STEP("mc release");
            qj_ring__set_state(end, position, qj_ring__state(lap + 1, 0, 1, QJ_RING_FREE));
            return QJ_RING_OK;
        }
        if (found == qj_ring__idle(end, position, QJ_RING_VOID)) {
            QJ_RING_STEP("mc skip");
            if (qj_ring__compare_exchange(end, position, found, qj_ring__state(lap + 1, 0, 1, QJ_RING_FREE)))
                qj_ring__help(hint, position, position + 1);
            continue;
        }
        /* Taken already: the hint lags behind, or a consumer died between its claim and its advance. */
        if (ahead > 0 || (ahead == 0 && qj_ring__phase(found) == QJ_RING_TAKEN)) {
            QJ_RING_STEP("mc help");
            qj_ring__help(hint, position, position + 1);
            continue;
        }
        if (qj_ring__hint(hint) != position) continue;
        return qj_ring__empty(end, found, position);
    }
    return QJ_RING_NOT_READY;
}

/* ---- after a peer's death ---- */

/* Recovers the slots that the dead `owner` of a shared side has held. Its unfinished inserts are skipped by the
 * consumers; calls `each` (which may be null) with every message it had taken and not released, which the caller
 * thereby takes over. Any end may call this, several at once too. The owner must be dead, and its number not assigned
 * again before. */
static inline void qj_ring_recover(struct qj_ring_end *end, uint8_t owner,
                                  void (*each)(void *context, const struct qj_ring_message *message), void *context) {
    for (uint64_t index = 0; index <= end->mask; index++) {
        uint64_t found = qj_ring__get_state(end, index);
        uint64_t lap = found >> 16, first = (lap << end->shift) + index;
        if (qj_ring__owner(found) != owner) continue;
        if (qj_ring__phase(found) == QJ_RING_BUSY) {
            /* The last first, as when publishing: no consumer passes the first before all are void. */
            for (uint64_t i = qj_ring__span(found); i-- > 1;) {
                uint64_t inner = qj_ring__get_state(end, first + i);
                if (inner == qj_ring__idle(end, first + i, QJ_RING_FREE) ||
                    inner == qj_ring__idle(end, first + i, QJ_RING_FULL)) {
                    QJ_RING_STEP("recover inner");
                    qj_ring__compare_exchange(end, first + i, inner, qj_ring__idle(end, first + i, QJ_RING_VOID));
                }
            }
            QJ_RING_STEP("recover busy");
            qj_ring__compare_exchange(end, first, found, qj_ring__idle(end, first, QJ_RING_VOID));
        } else if (qj_ring__phase(found) == QJ_RING_TAKEN) {
            struct qj_ring_message message;
            QJ_RING_STEP("recover taken");
            if (!qj_ring__compare_exchange(end, first, found, qj_ring__state(lap, end->owner, 1, QJ_RING_TAKEN))) continue;
            qj_ring__read(end, first, &message);
            /* The message is safe with the caller before the slot is free. */
            if (each) each(context, &message);
            QJ_RING_STEP("recover release");
            qj_ring__set_state(end, first, qj_ring__state(lap + 1, 0, 1, QJ_RING_FREE));
        }
    }
}

/* Deprecated name, for one version. */
#define qj_ring_disown qj_ring_recover

/* The slots hold the positions `first` .. `first + capacity - 1`; `first` is the next to be consumed. Laps are counted
 * from the one of slot 0, because they wrap around. */
static inline enum qj_ring_result qj_ring__first(const struct qj_ring_end *end, uint64_t *first) {
    uint64_t start = qj_ring__get_state(end, 0) >> 16 << end->shift;
    int64_t least = INT64_MAX, max = INT64_MIN;
    for (uint64_t index = 0; index <= end->mask; index++) {
        uint64_t state = qj_ring__get_state(end, index);
        int64_t ahead = qj_ring__ahead(end, state, start);
        if (qj_ring__phase(state) > QJ_RING_VOID || ahead < -2 || ahead > 2) return QJ_RING_BROKEN;
        int64_t position = ahead * ((int64_t)end->mask + 1) + (int64_t)index;
        if (position < least) least = position;
        if (position > max) max = position;
    }
    *first = start + (uint64_t)least;
    /* The live side advances during this scan, by less than two rings. */
    return max - least > 2 * (int64_t)end->mask + 1 ? QJ_RING_BROKEN : QJ_RING_OK;
}

/* Takes the place of the only consumer, which is dead: continues with the first message it has not released. */
static inline enum qj_ring_result qj_ring_resume_consumer(struct qj_ring_end *end) {
    return qj_ring__first(end, &end->position);
}

/* Takes the place of the only producer, which is dead: continues after its last complete insert. */
static inline enum qj_ring_result qj_ring_resume_producer(struct qj_ring_end *end) {
    uint64_t next;
    enum qj_ring_result result = qj_ring__first(end, &next);
    if (result != QJ_RING_OK) return result;
    /* The first position whose slot is free. The consumer frees slots meanwhile, but only behind that one, or that
     * one when the ring was full; so going up from a position that was not free finds it. */
    for (uint64_t scanned = 0; scanned <= 2 * (uint64_t)end->mask + 1; scanned++, next++) {
        if (qj_ring__get_state(end, next) == qj_ring__idle(end, next, QJ_RING_FREE)) break;
        if (qj_ring__ahead(end, qj_ring__get_state(end, next), next) < 0) break;
    }
    end->position = next;
    /* What it published of an insert whose first slot it did not reach. */
    for (uint64_t i = 1; i <= end->mask; i++) {
        if (qj_ring__get_state(end, next + i) == qj_ring__idle(end, next + i, QJ_RING_FULL)) {
            QJ_RING_STEP("resume withdraw");
            qj_ring__set_state(end, next + i, qj_ring__idle(end, next + i, QJ_RING_FREE));
        }
    }
    return QJ_RING_OK;
}

/* ---- bells (doorbells): how one side sleeps until the other has acted ----
 *
 *   waiter                                        other side
 *   qj_bell_arm(&bell)                            push or pop
 *   try once more; ready? then go on              if (qj_bell_ring(&bell)) wake it: futex, eventfd, signal, task ...
 *   sleep while bell == 1
 *
 * Consumers wait on `consumer_bell` and producers ring it; producers wait on `producer_bell`. A bell that a dead or
 * malicious peer leaves wrong costs a sleep: sleep with a time limit and check the peer. */

static inline void qj_bell_arm(uint32_t *bell) {
    QJ_RING_STEP("bell arm");
    __atomic_store_n(bell, 1, __ATOMIC_RELAXED);
    /* Pairs with the fence in qj_bell_ring(): either it sees the bell armed, or our next try sees what it did. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
/* True when a waiter sleeps, or is about to, and must be woken by the caller. */
static inline int qj_bell_ring(uint32_t *bell) {
    /* Pairs with the fence in qj_bell_arm(). */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(bell, __ATOMIC_RELAXED) == 0) return 0;
    QJ_RING_STEP("bell ring");
    return __atomic_exchange_n(bell, 0, __ATOMIC_ACQ_REL) != 0;
}

#ifdef __cplusplus
}
#endif
#endif
