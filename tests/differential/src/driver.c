/* Runs every program of a file of generated C: gives each its input, prints what it chose and what it sent.
 *
 *   P number     r 0 | c 0 0 1 0 | ...    x sink hex    E done status | E fault code instance line column channel
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void driver_trace(void *user, char kind, uint32_t i, uint32_t b, uint32_t j, uint32_t b2)
{
    (void)user;
    switch (kind) {
    case 'c':
        printf("c %u %u %u %u\n", (unsigned)i, (unsigned)b, (unsigned)j, (unsigned)b2);
        break;
    case 'r':
    case 'e':
        printf("%c %u\n", kind, (unsigned)i);
        break;
    default:
        printf("%c %u %u\n", kind, (unsigned)i, (unsigned)b);
        break;
    }
}

#define DRIVER_PORTS 64
#define DRIVER_STEPS 100000

static void driver_run(unsigned long number, const esp_library *p, esp_source *sources, const size_t *source_sizes,
                       const size_t *sink_sizes)
{
    static struct {
        esp_output_head head;
        esp_sink sinks[DRIVER_PORTS];
    } out;
    size_t taken[DRIVER_PORTS];
    esp_time now = 0;
    unsigned char *state = malloc(p->state_size + 1);
    unsigned char *room[DRIVER_PORTS];
    unsigned long steps;
    uint32_t i;
    size_t n, k;

    printf("P %lu\n", number);
    fflush(stdout);
    /* Whatever the program reads before it has written it shows as nonsense. */
    memset(state, 0xa5, p->state_size + 1);
    for (i = 0; i < p->sinks; i++) room[i] = malloc(4 * sink_sizes[i] + 1);
    p->init(state);
    p->trace(state, driver_trace, NULL);
    for (steps = 0; steps < DRIVER_STEPS; steps++) {
        esp_status status;
        memset(&out, 0, sizeof out);
        memset(taken, 0, sizeof taken);
        out.head.taken = taken;
        out.head.limit = 1;
        for (i = 0; i < p->sinks; i++) {
            out.sinks[i].messages = room[i];
            out.sinks[i].capacity = 4;
        }
        status = p->step(state, sources, &out.head, now);
        for (i = 0; i < p->sources; i++) {
            sources[i].messages = (const unsigned char *)sources[i].messages + taken[i] * source_sizes[i];
            sources[i].count -= taken[i];
        }
        for (i = 0; i < p->sinks; i++) {
            for (n = 0; n < out.sinks[i].count; n++) {
                printf("x %u ", (unsigned)i);
                for (k = 0; k < sink_sizes[i]; k++) printf("%02x", room[i][n * sink_sizes[i] + k]);
                printf("\n");
            }
        }
        if (status == ESP_DONE) {
            printf("E done %d\n", (int)out.head.exit_status);
            break;
        }
        if (status == ESP_FAULT) {
            esp_fault_report f = p->fault(state);
            printf("E fault %u %u %u %u %d\n", (unsigned)f.code, (unsigned)f.instance, (unsigned)f.place.line,
                   (unsigned)f.place.column, (int)f.place.channel);
            break;
        }
        if (status == ESP_SLEEP) {
            if (out.head.wake == ESP_NEVER) {
                printf("E rest\n");
                break;
            }
            now = out.head.wake;
        }
    }
    if (state[p->state_size] != 0xa5) printf("E overrun\n");
    for (i = 0; i < p->sinks; i++) free(room[i]);
    free(state);
}
