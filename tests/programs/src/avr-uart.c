/* Runs an ELF file on a simulated ATmega328P whose serial line is standard input and output. Input begins after a tenth
 * of a second, a byte each millisecond. The run ends a second after the last byte. */
#include <avr_uart.h>
#include <sim_avr.h>
#include <sim_elf.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define FREQUENCY 16000000u
#define MILLISECOND (FREQUENCY / 1000u)

static void put(struct avr_irq_t *irq, uint32_t value, void *user)
{
    (void)irq, (void)user;
    putchar((int)value);
}

static void complain(avr_t *avr, const int level, const char *format, va_list arguments)
{
    (void)avr;
    if (level <= LOG_ERROR) vfprintf(stderr, format, arguments);
}

int main(int count, char **arguments)
{
    elf_firmware_t firmware;
    avr_t *avr = avr_make_mcu_by_name("atmega328p");
    avr_irq_t *line;
    avr_cycle_count_t next = 100 * MILLISECOND, end = 0;
    uint32_t flags = 0;
    int state = cpu_Running;
    if (count != 2 || !avr) return 2;
    avr_global_logger_set(complain);
    memset(&firmware, 0, sizeof firmware);
    if (elf_read_firmware(arguments[1], &firmware) != 0) return 2;
    avr_init(avr);
    avr->frequency = FREQUENCY;
    avr_load_firmware(avr, &firmware);
    avr_ioctl(avr, AVR_IOCTL_UART_GET_FLAGS('0'), &flags);
    flags &= ~(uint32_t)AVR_UART_FLAG_STDIO;
    avr_ioctl(avr, AVR_IOCTL_UART_SET_FLAGS('0'), &flags);
    line = avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_INPUT);
    avr_irq_register_notify(avr_io_getirq(avr, AVR_IOCTL_UART_GETIRQ('0'), UART_IRQ_OUTPUT), put, NULL);
    while (state != cpu_Done && state != cpu_Crashed && (end == 0 || avr->cycle < end)) {
        if (end == 0 && avr->cycle >= next) {
            const int byte = getchar();
            if (byte == EOF) {
                end = avr->cycle + FREQUENCY;
            } else {
                avr_raise_irq(line, (uint32_t)byte);
                next += MILLISECOND;
            }
        }
        state = avr_run(avr);
    }
    fflush(stdout);
    return state == cpu_Crashed ? 1 : 0;
}
