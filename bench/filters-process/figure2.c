/* Runs Figure 2's send path through the sans-IO entry. Arguments: how many requests, pages of each. */
#include "program.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROOM = 16 };
static esp_t state;
static hostSendRequestC_message requests[1];
static networkSendC_message packets[ROOM];

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 1, sent = 0;
    const int32_t pages = argc > 2 ? atoi(argv[2]) : 1;
    uint32_t hash = 2166136261u;
    size_t taken[2] = {0};
    esp_input in;
    esp_output out;
    esp_status status;
    memset(&in, 0, sizeof in);
    memset(&out, 0, sizeof out);
    out.head.taken = taken;
    out.networkSendC.messages = packets;
    out.networkSendC.capacity = ROOM;
    esp_init(&state);
    for (; count > 0; count--) {
        requests[0].v0 = (int32_t)(count % 64) * 4096;
        requests[0].v1 = pages * 4096;
        in.hostSendRequestC.messages = requests;
        in.hostSendRequestC.count = 1;
        do {
            size_t i;
            memset(taken, 0, sizeof taken);
            status = esp_step(&state, &in, &out, 0);
            if (taken[0]) in.hostSendRequestC.count = 0;
            for (i = 0; i < out.networkSendC.count; i++) hash = (hash ^ (uint32_t)packets[i].v0) * 16777619u;
            sent += (long)out.networkSendC.count;
            out.networkSendC.count = 0;
        } while (status == ESP_AGAIN);
    }
    printf("%ld %08x %d\n", sent, (unsigned)hash, (int)status);
    return 0;
}
