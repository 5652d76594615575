/* Copies a file to standard output. */
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    char buffer[4096];
    int file = argc > 1 ? open(argv[1], O_RDONLY) : -1;
    if (file < 0)
        return 2;
    for (long count; (count = read(file, buffer, sizeof buffer)) > 0;)
        write(1, buffer, count);
    return 0;
}
