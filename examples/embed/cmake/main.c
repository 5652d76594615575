/* Prints the lengths of the packets of a SLIP stream. The decoder is the ESP program slip.esp in the poll style: it
 * calls the functions below to read a byte or to deliver a packet, as it would call a device driver. */
#include <stdio.h>

#include "slip.h"

static slip_t decoder;
static int next = EOF;

/* Whether a byte is available: reads one ahead. */
bool slip_byteC_ready(void)
{
    if (next == EOF) next = getchar();
    if (next == EOF) slip_close_byteC(&decoder);
    return next != EOF;
}

void slip_byteC_take(slip_byteC_message *message)
{
    message->v0 = (uint8_t)next;
    next = EOF;
}

/* The terminal is always ready. */
bool slip_packetC_ready(void)
{
    return true;
}

void slip_packetC_put(const slip_packetC_message *message)
{
    printf("%u\n", (unsigned)message->v0.length);
}

int main(void)
{
    slip_input in = {0};
    slip_output out = {0};
    esp_status status;

    slip_init(&decoder);
    do {
        status = slip_step(&decoder, &in, &out, 0);
    } while (status == ESP_AGAIN || status == ESP_SLEEP);
    return status == ESP_DONE ? out.head.exit_status : 3;
}
