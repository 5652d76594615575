/* Fills and empties half a ring over and over, for counting instructions: `budget sp|mp|eight COUNT`. */
#include <quaject/ring.h>
#include <stdlib.h>
#include <string.h>

#define LOG2 8
#define CHUNK 128

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    int many = strcmp(argv[1], "mp") == 0, eight = strcmp(argv[1], "eight") == 0;
    uint32_t kind = many ? QJ_RING_MP_MC : QJ_RING_SP_SC, taken;
    size_t bytes = qj_ring_bytes(LOG2);
    void *memory = aligned_alloc(128, bytes);
    memset(memory, 0, bytes);
    struct qj_ring_end producer, consumer;
    if (qj_ring_create(memory, bytes, LOG2, kind) || qj_ring_attach(&producer, memory, bytes, LOG2, kind, 1) ||
        qj_ring_attach(&consumer, memory, bytes, LOG2, kind, 2))
        return 3;
    struct qj_ring_message messages[8] = {{{0}}};
    uint64_t sum = 0;
    for (long done = 0; done < atol(argv[2]); done += CHUNK) {
        if (eight) {
            for (int i = 0; i < CHUNK; i += 8) sum += qj_ring_sp_push_many(&producer, messages, 8);
            for (int i = 0; i < CHUNK; i += 8) sum += qj_ring_sc_pop_many(&consumer, messages, 8, &taken);
        } else if (many) {
            for (int i = 0; i < CHUNK; i++) sum += qj_ring_mp_push(&producer, messages);
            for (int i = 0; i < CHUNK; i++) sum += qj_ring_mc_pop(&consumer, messages);
        } else {
            for (int i = 0; i < CHUNK; i++) sum += qj_ring_sp_push(&producer, messages);
            for (int i = 0; i < CHUNK; i++) sum += qj_ring_sc_pop(&consumer, messages);
        }
    }
    return sum != 0; /* every operation has answered QJ_RING_OK */
}
