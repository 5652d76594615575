/* The environment of the Modbus slave on a microcontroller: its bytes are those of the serial line. */
#include "board.h"
#include "modbus.h"

static esp_t program;

void board_received(uint8_t byte)
{
    const lineInC_message octet = {byte};
    esp_post_lineInC(&octet);
}

bool lineOutC_ready(void) { return true; }

void lineOutC_put(const lineOutC_message *octet) { board_write(octet->v0); }

int main(void)
{
    esp_input input = {0};
    esp_output output = {{0}};
    esp_init(&program);
    board_start();
    for (;;) {
        const esp_status status = esp_step(&program, &input, &output, board_now());
        if (status == ESP_FAULT || status == ESP_DONE) {
            /* The program has ended: wait for a reset by the watchdog. */
            for (;;) board_sleep();
        }
        if (status == ESP_SLEEP) board_sleep();
    }
}
