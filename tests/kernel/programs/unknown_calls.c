/* A call that the kernel does not implement, and one that Linux does not have either. */
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(void)
{
    int first = syscall(SYS_io_uring_setup, 0, NULL) == -1 && errno == ENOSYS;
    int second = syscall(100000) == -1 && errno == ENOSYS;
    printf("%s\n", first && second ? "both are ENOSYS" : "one exists");
    return 0;
}
