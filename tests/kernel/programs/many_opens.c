/* Descriptors that are opened and closed so often that whatever is not freed again would use up the kernel's memory,
 * and its area of synthesised code above all. */
#include "report.h"
#include <fcntl.h>
#include <stdlib.h>

int main(int count, char **arguments)
{
    long turns = count > 1 ? atol(arguments[1]) : 1000;
    long wrong = 0;
    int file = open("many", O_RDWR | O_CREAT, 0600);
    wrong += write(file, "x", 1) != 1;
    for (long turn = 0; turn < turns; turn++) {
        int ends[2];
        char byte = 0;
        int null = open("/dev/null", O_RDWR), other = open("many", O_RDONLY);
        wrong += pipe(ends) != 0;
        wrong += write(ends[1], "y", 1) != 1 || read(ends[0], &byte, 1) != 1 || byte != 'y';
        wrong += read(other, &byte, 1) != 1 || byte != 'x' || write(null, &byte, 1) != 1;
        wrong += close(ends[turn % 2]) | close(ends[1 - turn % 2]) | close(other) | close(null);
    }
    printf("wrong: %ld\n", wrong);
    /* All numbers at once. */
    long opened = 0;
    while (open("many", O_RDWR) >= 0 && opened < 200)
        opened++;
    report("opened", opened);
    return 0;
}
