/* Runs every program of a file of generated C: gives each its input, prints its choices and its output.
 *
 *   P number     r 0 | c 0 0 1 0 | ...    x sink hex    y function number    z (all held channels are released)
 *   E done status | E fault code instance line column channel
 *
 * A held channel offers or accepts one more message at each call of `more`; at quiescence, all are released. The clock
 * advances with every message of the program.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __AVR__
/* The simulator takes what is written to GPIOR0 as output, and ends when the machine sleeps without interrupts. */
#include <avr/interrupt.h>
#include <avr/io.h>
#include <avr/sleep.h>

static int driver_put(char c, FILE *to)
{
    (void)to;
    GPIOR0 = (uint8_t)c;
    return 0;
}

static void driver_start(void)
{
    stdout = fdevopen(driver_put, NULL);
}

static void driver_end(void)
{
    cli();
    sleep_enable();
    sleep_cpu();
}
#else
static void driver_start(void) {}
static void driver_end(void) {}
#endif

static void driver_trace(void *user, char kind, uint32_t i, uint32_t b, uint32_t j, uint32_t b2)
{
    (void)user;
    switch (kind) {
    case 'c':
        printf("c %lu %lu %lu %lu\n", (unsigned long)i, (unsigned long)b, (unsigned long)j, (unsigned long)b2);
        break;
    case 'r':
    case 'e':
        printf("%c %lu\n", kind, (unsigned long)i);
        break;
    default:
        printf("%c %lu %lu\n", kind, (unsigned long)i, (unsigned long)b);
        break;
    }
}

/* Not every compiler links a program with an undefined function: instead, a function is missing if its name begins with
 * `ab`. */
#undef ESP_MISSING
#define ESP_MISSING(function) (#function[0] == 'a' && #function[1] == 'b')

#define DRIVER_PORTS 64
#define DRIVER_STEPS 100000ul
/* The deadlines that a run waits for: programs with a periodic timer do not end. */
#define DRIVER_DEADLINES 200
#define DRIVER_PUT_NS 300000

static struct {
    esp_output_head head;
    esp_sink sinks[DRIVER_PORTS];
} driver_out;
static const esp_library *driver_program;
static esp_source *driver_sources;
/* Per source, the messages that are not yet offered; per sink, the remaining messages it accepts, -1: unlimited. */
static size_t driver_held[DRIVER_PORTS];
static long driver_room[DRIVER_PORTS];

ESP_UNUSED static uint64_t driver_mix(uint64_t state, uint64_t value)
{
    return (state ^ value) * UINT64_C(0x100000001b3);
}

ESP_UNUSED static void driver_call(unsigned function, uint64_t number)
{
    printf("y %u %08lx%08lx\n", function, (unsigned long)(number >> 32), (unsigned long)(number & 0xffffffffu));
}

/* Called within the program's step: a copy of bytes, because a typed store could be assumed not to alias. */
static void driver_count(size_t *to, size_t value)
{
    memcpy(to, &value, sizeof value);
}

ESP_UNUSED static void driver_more(void)
{
    uint32_t i;
    for (i = 0; i < driver_program->sources; i++) {
        if (driver_held[i] == 0) continue;
        driver_held[i]--;
        driver_count(&driver_sources[i].count, driver_sources[i].count + 1);
        if (driver_held[i] == 0) memset(&driver_sources[i].closed, 1, 1);
    }
    for (i = 0; i < driver_program->sinks; i++) {
        if (driver_room[i] < 0) continue;
        driver_room[i]++;
        if (driver_out.sinks[i].capacity < 4) {
            driver_count(&driver_out.sinks[i].capacity, driver_out.sinks[i].capacity + 1);
        }
    }
}

static int driver_release(void)
{
    int held = 0;
    uint32_t i;
    for (i = 0; i < driver_program->sources; i++) {
        held |= driver_held[i] != 0;
        driver_sources[i].count += driver_held[i];
        driver_sources[i].closed = true;
        driver_held[i] = 0;
    }
    for (i = 0; i < driver_program->sinks; i++) {
        held |= driver_room[i] >= 0;
        driver_room[i] = -1;
    }
    return held;
}

static void driver_run(unsigned long number, const esp_library *p, esp_source *sources, const size_t *source_sizes,
                       const size_t *sink_sizes, const unsigned char *held_sources, const unsigned char *held_sinks,
                       size_t limit)
{
    size_t taken[DRIVER_PORTS];
    esp_time now = 0;
    unsigned char *state = malloc(p->state_size + 1);
    unsigned char *room[DRIVER_PORTS];
    unsigned long steps;
    unsigned deadlines = 0;
    uint32_t i;
    size_t n, k;

    printf("P %lu\n", number);
    fflush(stdout);
    /* A read of uninitialised state has a visible effect. */
    memset(state, 0xa5, p->state_size + 1);
    driver_program = p;
    driver_sources = sources;
    for (i = 0; i < p->sources; i++) {
        driver_held[i] = held_sources[i] ? sources[i].count : 0;
        sources[i].count -= driver_held[i];
        sources[i].closed = driver_held[i] == 0;
    }
    for (i = 0; i < p->sinks; i++) driver_room[i] = held_sinks[i] ? 0 : -1;
    for (i = 0; i < p->sinks; i++) room[i] = malloc(4 * sink_sizes[i] + 1);
    p->init(state);
    p->trace(state, driver_trace, NULL);
    for (steps = 0; steps < DRIVER_STEPS; steps++) {
        esp_status status;
        memset(&driver_out, 0, sizeof driver_out);
        memset(taken, 0, sizeof taken);
        driver_out.head.taken = taken;
        driver_out.head.limit = limit;
        for (i = 0; i < p->sinks; i++) {
            driver_out.sinks[i].messages = room[i];
            driver_out.sinks[i].capacity = driver_room[i] < 0 || driver_room[i] > 4 ? 4 : (size_t)driver_room[i];
        }
        status = p->step(state, sources, &driver_out.head, now);
        for (i = 0; i < p->sources; i++) {
            sources[i].messages = (const unsigned char *)sources[i].messages + taken[i] * source_sizes[i];
            sources[i].count -= taken[i];
        }
        for (i = 0; i < p->sinks; i++) {
            for (n = 0; n < driver_out.sinks[i].count; n++) {
                printf("x %u ", (unsigned)i);
                for (k = 0; k < sink_sizes[i]; k++) printf("%02x", room[i][n * sink_sizes[i] + k]);
                printf("\n");
                now += DRIVER_PUT_NS;
                if (driver_room[i] > 0) driver_room[i]--;
            }
        }
        if (status == ESP_DONE) {
            printf("E done %d\n", (int)driver_out.head.exit_status);
            break;
        }
        if (status == ESP_FAULT) {
            esp_fault_report f = p->fault(state);
            printf("E fault %u %lu %lu %u %d\n", (unsigned)f.code, (unsigned long)f.instance, (unsigned long)f.place.line,
                   (unsigned)f.place.column, (int)f.place.channel);
            break;
        }
        if (status == ESP_SLEEP) {
            if (driver_out.head.wake == ESP_NEVER) {
                if (driver_release()) {
                    printf("z\n");
                    continue;
                }
                printf("E rest\n");
                break;
            }
            if (++deadlines > DRIVER_DEADLINES) {
                printf("E rest\n");
                break;
            }
            now = driver_out.head.wake;
        }
    }
    if (state[p->state_size] != 0xa5) printf("E overrun\n");
    for (i = 0; i < p->sinks; i++) free(room[i]);
    free(state);
}
