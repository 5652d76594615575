/* Runs a filter program through the sans-IO entry. Argument: times. Prints nanoseconds per input byte, then the
 * result. */
#define _POSIX_C_SOURCE 199309L
#include "program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LENGTH = 10000 };
static esp_t state;
static inputC_message input;
static outputC_message output;

int main(int argc, char **argv)
{
    const int times = argc > 1 ? atoi(argv[1]) : 1;
    uint32_t random = 1, hash = 2166136261u, i;
    uint8_t last = 0;
    size_t taken[1] = {0};
    esp_input in = {{&input, 1, true}};
    esp_output out;
    esp_status status;
    struct timespec start, end;
    while (input.v0.length < LENGTH) {
        uint8_t byte;
        random = random * 1664525u + 1013904223u;
        byte = (uint8_t)(1 + (random >> 24) % 15);
        if (byte != last) input.v0.data[input.v0.length++] = last = byte;
    }
    input.v1 = times;
    memset(&out, 0, sizeof out);
    out.head.taken = taken;
    out.outputC.messages = &output;
    out.outputC.capacity = 1;
    clock_gettime(CLOCK_MONOTONIC, &start);
    esp_init(&state);
    do {
        taken[0] = 0;
        status = esp_step(&state, &in, &out, 0);
        in.inputC.count -= taken[0];
    } while (status == ESP_AGAIN);
    clock_gettime(CLOCK_MONOTONIC, &end);
    if (status != ESP_DONE || out.outputC.count != 1) return 1;
    for (i = 0; i < sizeof output.v0.at; i++) hash = (hash ^ output.v0.at[i]) * 16777619u;
    printf("%.3f\n%u %08x\n",
           ((double)(end.tv_sec - start.tv_sec) * 1e9 + (double)(end.tv_nsec - start.tv_nsec)) / ((double)times * LENGTH),
           (unsigned)output.v1, (unsigned)hash);
    return 0;
}
