/* A main loop that misses no interrupt and needs no tick: it masks interrupts between the step that finds nothing to do
 * and the instruction that sleeps. The handler of the serial line posts bytes to the program. */
#include "board.h"
#include "echo.h"

#define SYSTICK_CONTROL (*(volatile uint32_t *)0xe000e010)

static esp_t program;

void board_received(uint8_t byte)
{
    const lineInC_message message = {byte};
    esp_post_lineInC(&message);
}

bool lineOutC_ready(void) { return true; }

void lineOutC_put(const lineOutC_message *message) { board_write(message->v0); }

int main(void)
{
    const esp_input input = {0};
    esp_output output = {{0}};
    esp_init(&program);
    board_start();
    SYSTICK_CONTROL = 0;
    for (;;) {
        esp_status status = esp_step(&program, &input, &output, 0);
        if (status != ESP_SLEEP) continue;
        __asm__ volatile("cpsid i" ::: "memory");
        /* A message that was posted before the mask is found here; wfi returns at one that is posted after it. */
        status = esp_step(&program, &input, &output, 0);
        if (status == ESP_SLEEP) __asm__ volatile("wfi" ::: "memory");
        __asm__ volatile("cpsie i\n\tisb" ::: "memory");
    }
}
