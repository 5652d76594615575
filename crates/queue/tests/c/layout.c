/* Prints the layout of quaject/ring.h in the order of `quaject_queue::shared::layout::OFFSETS`. */
#include <quaject/ring.h>
#include <stdio.h>

#ifdef __cplusplus
#define ALIGNMENT(type) alignof(type)
#else
#define ALIGNMENT(type) _Alignof(type)
#endif

#define HEADER(field) printf(#field " %zu\n", offsetof(struct qj_ring, field))
#define SLOT(field) printf(#field " %zu\n", offsetof(struct qj_ring_slot, field))

int main(void) {
    printf("header %zu\n", sizeof(struct qj_ring));
    printf("header alignment %zu\n", (size_t)ALIGNMENT(struct qj_ring));
    HEADER(magic);
    HEADER(layout);
    HEADER(capacity_log2);
    HEADER(kind);
    HEADER(claim);
    HEADER(take);
    HEADER(consumer_bell);
    HEADER(producer_bell);
    printf("slot %zu\n", sizeof(struct qj_ring_slot));
    printf("slot alignment %zu\n", (size_t)ALIGNMENT(struct qj_ring_slot));
    SLOT(state);
    SLOT(words);
    return 0;
}
