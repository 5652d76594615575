/* Runs an ELF file on a simulated ATmega2560 with external memory in all of its data space. What the program writes to
 * GPIOR0 is the output. It ends when it sleeps with interrupts disabled. */
#include <sim_avr.h>
#include <sim_elf.h>
#include <sim_io.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GPIOR0 0x3e
#define MAX_CYCLES UINT64_C(20000000000)

static void put(struct avr_t *avr, avr_io_addr_t address, uint8_t value, void *user)
{
    (void)avr, (void)address, (void)user;
    putchar(value);
}

static void complain(avr_t *avr, const int level, const char *format, va_list arguments)
{
    (void)avr;
    if (level <= LOG_ERROR) vfprintf(stderr, format, arguments);
}

int main(int count, char **arguments)
{
    elf_firmware_t firmware;
    avr_t *avr = avr_make_mcu_by_name("atmega2560");
    int state = cpu_Running;
    if (count != 2 || !avr) return 2;
    avr_global_logger_set(complain);
    memset(&firmware, 0, sizeof firmware);
    if (elf_read_firmware(arguments[1], &firmware) != 0) return 2;
    avr->ramend = 0xffff;
    avr_init(avr);
    avr->frequency = 16000000;
    avr_load_firmware(avr, &firmware);
    avr_register_io_write(avr, GPIOR0, put, NULL);
    while (state != cpu_Done && state != cpu_Crashed && avr->cycle < MAX_CYCLES) state = avr_run(avr);
    fflush(stdout);
    return state == cpu_Done ? 0 : 1;
}
