/* Every operation of quaject/ring.h on memory that holds anything: `hostile ROUNDS`. The ring ends where a page ends
 * that that must not be accessed; the sanitizers watch the rest. */
#include <quaject/ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define LOG2 3
#define PAGE 4096

static uint64_t state = 88172645463325252u;
static uint64_t next(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}
static uint64_t word(void) {
    switch (next() % 4) {
    case 0: return next();
    case 1: return next() % 4 << 16 | (next() & 0xffff);
    case 2: return next() % 4 << 16 | next() % 8;
    default: return next() % 40 - next() % 3;
    }
}
static void each(void *context, const struct qj_ring_message *message) {
    *(uint64_t *)context += message->words[0];
}

static unsigned long answers[QJ_RING_REFUSED + 1];

static void torture(uint32_t kind, uint64_t rounds) {
    char *walls = (char *)mmap(NULL, 3 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t bytes = qj_ring_bytes(LOG2), words = bytes / 8;
    if (walls == MAP_FAILED || mprotect(walls + PAGE, PAGE, PROT_READ | PROT_WRITE) != 0) exit(2);
    uint64_t *memory = (uint64_t *)(walls + 2 * PAGE - bytes);
    struct qj_ring_end producer, consumer;
    if (qj_ring_create(memory, bytes, LOG2, kind) || qj_ring_attach(&producer, memory, bytes, LOG2, kind, 1) ||
        qj_ring_attach(&consumer, memory, bytes, LOG2, kind, 2))
        exit(3);
    struct qj_ring_message messages[3] = {{{1}}, {{2}}, {{3}}};
    uint64_t sum = 0;
    uint32_t taken;
    for (uint64_t round = 0; round < rounds; round++) {
        for (uint64_t n = next() % 4; n > 0; n--)
            __atomic_store_n(&memory[16 + next() % (words - 16)], word(), __ATOMIC_RELAXED);
        enum qj_ring_result result = QJ_RING_OK;
        switch (next() % 8) {
        case 0: result = qj_ring_sp_push_many(&producer, messages, 1 + (uint32_t)(next() % 3)); break;
        case 1: result = qj_ring_mp_push_many(&producer, messages, 1 + (uint32_t)(next() % 3)); break;
        case 2: result = qj_ring_sc_pop_many(&consumer, messages, (uint32_t)(next() % 4), &taken); break;
        case 3: result = qj_ring_mc_pop(&consumer, messages); break;
        case 4: qj_ring_recover(&producer, (uint8_t)next(), each, &sum); break;
        case 5: result = qj_ring_resume_producer(&producer); break;
        case 6: result = qj_ring_resume_consumer(&consumer); break;
        default:
            memset(memory + 16, 0, bytes - 128);
            producer.position = consumer.position = 0;
        }
        answers[result]++;
    }
    munmap(walls, 3 * PAGE);
}

int main(int argc, char **argv) {
    uint64_t rounds = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    for (uint32_t kind = QJ_RING_SP_SC; kind <= QJ_RING_MP_MC; kind++) torture(kind, rounds);
    for (int result = 0; result < 4; result++) {
        if (answers[result] == 0) {
            fprintf(stderr, "no operation answered %d\n", result);
            return 1;
        }
    }
    return 0;
}
