/* Figure 2's send path by hand: one function that goes on where it stopped. Same arguments as fig2.c. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int32_t translationUnavailable(int32_t);
int32_t translate(int32_t);
int32_t preparePacket(int32_t, int32_t);

enum { ROOM = 16, PAGE = 4096 };
struct send { int32_t address, size; };

__attribute__((noinline)) int step(struct send *s, const int32_t *request, int32_t *packets, int room)
{
    int count = 0;
    if (request) {
        if (request[0] % PAGE != 0 || request[1] % PAGE != 0) return -1;
        s->address = request[0];
        s->size = request[1];
    }
    while (s->size > 0 && count < room) {
        if (translationUnavailable(s->address)) { /* fetching is left out */ }
        packets[count++] = preparePacket(translate(s->address), PAGE);
        s->size -= PAGE;
    }
    return count;
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1, sent = 0;
    const int32_t pages = argc > 2 ? atoi(argv[2]) : 1;
    uint32_t hash = 2166136261u;
    struct send s = {0, 0};
    for (; count > 0; count--) {
        int32_t request[2] = {(int32_t)(count % 64) * 4096, pages * 4096}, packets[ROOM];
        const int32_t *given = request;
        do {
            int made = step(&s, given, packets, ROOM), i;
            if (made < 0) return 1;
            given = NULL;
            for (i = 0; i < made; i++) hash = (hash ^ (uint32_t)packets[i]) * 16777619u;
            sent += made;
        } while (s.size > 0);
    }
    printf("%ld %08x\n", sent, (unsigned)hash);
    return 0;
}
