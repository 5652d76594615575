/* Prints the packets of a SLIP stream. The decoder is the ESP program slip.esp in the sans-IO style: it runs only in
 * slip_step, and its whole state is a slip_t, of which several may exist. */
#include <stdio.h>

#include "slip.h"

enum { BYTES = 64, PACKETS = 4 };

static slip_t decoder;

static void print(const slip_packetC_message *packet)
{
    size_t i;
    printf("%u:", (unsigned)packet->v0.length);
    for (i = 0; i < packet->v0.length; i++) printf(" %02x", packet->v0.data[i]);
    putchar('\n');
}

int main(void)
{
    slip_byteC_message bytes[BYTES];
    slip_packetC_message packets[PACKETS];
    size_t first = 0, last = 0;
    bool closed = false;

    slip_init(&decoder);
    for (;;) {
        slip_input in = {0};
        slip_output out = {0};
        size_t taken = 0, i;
        esp_status status;

        if (first == last && !closed) {
            int c = EOF;
            for (first = last = 0; last < BYTES && (c = getchar()) != EOF; last++) bytes[last].v0 = (uint8_t)c;
            closed = c == EOF;
        }
        in.byteC.messages = bytes + first;
        in.byteC.count = last - first;
        in.byteC.closed = closed;
        out.head.taken = &taken;
        out.packetC.messages = packets;
        out.packetC.capacity = PACKETS;

        status = slip_step(&decoder, &in, &out, 0);
        first += taken;
        for (i = 0; i < out.packetC.count; i++) print(&packets[i]);
        if (status == ESP_DONE) return out.head.exit_status;
        if (status == ESP_FAULT) {
            esp_fault_report fault = slip_fault(&decoder);
            fprintf(stderr, "slip.esp:%u: fault %u\n", (unsigned)fault.place.line, (unsigned)fault.code);
            return 3;
        }
    }
}
