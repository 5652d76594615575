/* The devices null, zero, full and urandom. */
#include "report.h"
#include <fcntl.h>
#include <sys/stat.h>

static void use(const char *path)
{
    unsigned char buffer[64];
    struct stat status;
    memset(buffer, 0x55, sizeof buffer);
    printf("%s\n", path);
    int file = report("open", open(path, O_RDWR)) >= 0 ? 3 : -1;
    report("write", write(file, buffer, sizeof buffer));
    report("write nothing", write(file, buffer, 0));
    long length = report("read", read(file, buffer, sizeof buffer));
    int zeros = 0;
    for (long index = 0; index < length; index++)
        zeros += buffer[index] == 0;
    printf("%s\n", zeros == 64 ? "all zeros" : zeros > 32 ? "many zeros" : "few zeros");
    report("read with no address", read(file, NULL, 8));
    report("seek", lseek(file, 10, SEEK_SET));
    report("status", fstat(file, &status));
    printf("mode %o, device %lx\n", status.st_mode & S_IFMT, (long)status.st_rdev);
    report("is a terminal", isatty(file) ? 1 : 0);
    report("truncate", ftruncate(file, 0));
    close(file);
}

int main(void)
{
    use("/dev/null");
    use("/dev/zero");
    use("/dev/full");
    report("open", open("/dev/null/x", O_RDONLY));
    unsigned char first[32], second[32];
    int random = open("/dev/urandom", O_RDONLY);
    report("random", read(random, first, sizeof first));
    report("random", read(random, second, sizeof second));
    printf("%s\n", memcmp(first, second, sizeof first) ? "they differ" : "they are the same");
    return 0;
}
