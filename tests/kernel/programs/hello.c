/* Arguments, environment, standard output and the exit status. */
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    /* The console is a terminal in the kernel, and a file on Linux: neither buffers now. */
    setvbuf(stdout, NULL, _IONBF, 0);
    for (int index = 1; index < argc; index++)
        printf("argument %d: [%s]\n", index, argv[index]);
    const char *variable = getenv("GREETING");
    printf("environment: %s\n", variable ? variable : "no greeting");
    fputs("to standard error\n", stderr);
    return 7;
}
