/* The board MPS2 with a Cortex-M3 (Arm AN385): UART 0, SysTick. */
#include "board.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))

/* CMSDK UART 0 */
#define UART_DATA REGISTER(0x40004000)
#define UART_STATE REGISTER(0x40004004) /* bit 0: no room to write, bit 1: something to read */
#define UART_CONTROL REGISTER(0x40004008)
#define UART_INTERRUPT REGISTER(0x4000400c)
#define UART_DIVIDER REGISTER(0x40004010)
/* System control space */
#define SYSTICK_CONTROL REGISTER(0xe000e010)
#define SYSTICK_RELOAD REGISTER(0xe000e014)
#define INTERRUPT_ENABLE REGISTER(0xe000e100)

enum { CLOCK_HZ = 25000000, RECEIVED = 0 };

extern uint32_t data_image[], data_start[], data_end[], bss_start[], bss_end[], stack_top[];
int main(void);

static volatile uint32_t milliseconds;

static void on_tick(void) { milliseconds++; }

static void on_received(void)
{
    UART_INTERRUPT = 2;
    while (UART_STATE & 2) board_received((uint8_t)UART_DATA);
}

void board_start(void)
{
    UART_DIVIDER = 16;
    UART_CONTROL = 1 | 2 | 8; /* transmit, receive, receive interrupt */
    INTERRUPT_ENABLE = 1u << RECEIVED;
    SYSTICK_RELOAD = CLOCK_HZ / 1000 - 1;
    SYSTICK_CONTROL = 7;
}

void board_write(uint8_t byte)
{
    while (UART_STATE & 1) {}
    UART_DATA = byte;
}

int64_t board_now(void) { return (int64_t)milliseconds * 1000000; }

void board_sleep(void) { __asm__ volatile("wfi" ::: "memory"); }

static void reset(void)
{
    for (uint32_t *from = data_image, *to = data_start; to < data_end;) *to++ = *from++;
    for (uint32_t *to = bss_start; to < bss_end;) *to++ = 0;
    main();
}

static void stop(void)
{
    for (;;) {}
}

/* The vector table: the stack, the exceptions of the core, the interrupts of the board. */
__attribute__((section(".vectors"), used)) static const void *const vectors[16 + 1] = {
    [0] = stack_top, [1] = (void *)reset, [2] = (void *)stop,     [3] = (void *)stop,
    [4] = (void *)stop, [5] = (void *)stop,  [6] = (void *)stop,     [15] = (void *)on_tick,
    [16 + RECEIVED] = (void *)on_received,
};
