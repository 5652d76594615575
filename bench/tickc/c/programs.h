/* What the driver of the benchmark knows of its programs. */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include <stddef.h>

struct program {
    const char *name, *use;
    /* How many uses are timed at once. */
    long uses;
    long (*general)(long uses);
    long (*with)(void *function, long uses);
    void *(*make)(void);
    /* The function with the constants written in. */
    void *constant;
};

enum { ENTRIES = 64 };
extern int dp_row[ENTRIES], dp_column[ENTRIES];

#endif
