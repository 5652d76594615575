/* The board `virt` of QEMU with an RV32IMAC core: UART 0, core-local timer, interrupt controller. */
#include "board.h"

#define REGISTER(address) (*(volatile uint32_t *)(address))
#define BYTE(address) (*(volatile uint8_t *)(address))

/* 16550 UART */
#define UART_DATA BYTE(0x10000000)
#define UART_INTERRUPT BYTE(0x10000001)
#define UART_FIFO BYTE(0x10000002)
#define UART_STATE BYTE(0x10000005) /* bit 0: something to read, bit 5: room to write */
/* Platform-level interrupt controller, context 0 */
#define PLIC_PRIORITY(source) REGISTER(0x0c000000 + 4 * (source))
#define PLIC_ENABLE REGISTER(0x0c002000)
#define PLIC_THRESHOLD REGISTER(0x0c200000)
#define PLIC_CLAIM REGISTER(0x0c200004)
/* Core-local interruptor: time and compare registers, low and high word */
#define CLINT_COMPARE 0x02004000
#define CLINT_TIME 0x0200bff8

enum { UART_SOURCE = 10, CLOCK_NS = 100, TICK = 10000 };

int main(void);

static uint64_t time_now(void)
{
    uint32_t high, low;
    do {
        high = REGISTER(CLINT_TIME + 4);
        low = REGISTER(CLINT_TIME);
    } while (high != REGISTER(CLINT_TIME + 4));
    return (uint64_t)high << 32 | low;
}

static void set_alarm(uint64_t time)
{
    REGISTER(CLINT_COMPARE + 4) = UINT32_MAX; /* no interrupt between the two writes */
    REGISTER(CLINT_COMPARE) = (uint32_t)time;
    REGISTER(CLINT_COMPARE + 4) = (uint32_t)(time >> 32);
}

__attribute__((interrupt("machine"), aligned(4), used)) static void on_trap(void)
{
    uint32_t cause;
    __asm__ volatile("csrr %0, mcause" : "=r"(cause));
    if (cause == (0x80000000u | 7)) {
        set_alarm(time_now() + TICK);
    } else if (cause == (0x80000000u | 11)) {
        const uint32_t source = PLIC_CLAIM;
        while (UART_STATE & 1) board_received(UART_DATA);
        PLIC_CLAIM = source;
    } else {
        for (;;) {}
    }
}

void board_start(void)
{
    UART_FIFO = 1;
    UART_INTERRUPT = 1;
    PLIC_PRIORITY(UART_SOURCE) = 1;
    PLIC_ENABLE = 1u << UART_SOURCE;
    PLIC_THRESHOLD = 0;
    set_alarm(time_now() + TICK);
    __asm__ volatile("csrw mtvec, %0" ::"r"(on_trap));
    __asm__ volatile("csrs mie, %0" ::"r"(1u << 7 | 1u << 11));
    __asm__ volatile("csrsi mstatus, 8");
}

void board_write(uint8_t byte)
{
    while (!(UART_STATE & 0x20)) {}
    UART_DATA = byte;
}

int64_t board_now(void) { return (int64_t)(time_now() * CLOCK_NS); }

void board_sleep(void) { __asm__ volatile("wfi" ::: "memory"); }

__attribute__((naked, section(".start"), used)) void start(void)
{
    __asm__ volatile(".option push\n.option norelax\nla gp, __global_pointer$\n.option pop\n"
                     "la sp, stack_top\n"
                     "la t0, bss_start\nla t1, bss_end\n"
                     "1: bgeu t0, t1, 2f\nsw zero, 0(t0)\naddi t0, t0, 4\nj 1b\n"
                     "2: j main\n");
}
