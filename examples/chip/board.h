/* What a board gives the programs that run on it: a line of bytes, a clock, sleep. One file per board implements it. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* Makes the line ready; from then on `board_received` is called. */
void board_start(void);

/* Writes a byte to the line, waiting until there is room. */
void board_write(uint8_t byte);

/* Nanoseconds since the start, at least a millisecond fine. */
int64_t board_now(void);

/* Waits for an interrupt; a millisecond at most. */
void board_sleep(void);


/* The board calls it from the line's interrupt for each byte. Written by the program. */
void board_received(uint8_t byte);

#endif
