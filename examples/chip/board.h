/* The interface of a board: a serial line, a clock, sleep. One file per board implements it. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

/* Initializes the line; `board_received` is called from then on. */
void board_start(void);

/* Writes a byte to the line; waits until there is room. */
void board_write(uint8_t byte);

/* Nanoseconds since the start, with a resolution of a millisecond or better. */
int64_t board_now(void);

/* Waits for an interrupt, for at most a millisecond. */
void board_sleep(void);


/* Defined by the program: the board calls it in the interrupt of the line for each received byte. */
void board_received(uint8_t byte);

#endif
