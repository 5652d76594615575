/* Prints results of system calls: the value, or the name-independent number of the error. Shared by the programs. */
#ifndef REPORT_H
#define REPORT_H

#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static inline long report(const char *what, long result)
{
    int error = errno;
    if (result < 0)
        printf("%s: error %d (%s)\n", what, error, strerror(error));
    else
        printf("%s: %ld\n", what, result);
    return result;
}

#endif
