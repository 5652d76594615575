/* Ways in which a program ends, one for each argument. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void *run_on(void *argument)
{
    usleep(30000);
    printf("the other thread ends\n");
    fflush(stdout);
    return argument;
}

static void *end_all(void *argument)
{
    (void)argument;
    exit(23);
}

int main(int argc, char **argv)
{
    const char *way = argc > 1 ? argv[1] : "";
    pthread_t thread;
    printf("%s\n", way);
    fflush(stdout);
    if (!strcmp(way, "return"))
        return 200;
    if (!strcmp(way, "large"))
        exit(256 + 5);
    if (!strcmp(way, "abort"))
        abort();
    if (!strcmp(way, "null"))
        *(volatile int *)8 = 1;
    if (!strcmp(way, "stack"))
        return (int)(long)alloca(64 << 20) + main(argc, argv);
    if (!strcmp(way, "divide"))
        return 1 / (argc - 2);
    if (!strcmp(way, "instruction"))
        __asm__ volatile("ud2");
    if (!strcmp(way, "pipe")) {
        int ends[2];
        pipe(ends);
        close(ends[0]);
        write(ends[1], "x", 1);
    }
    if (!strcmp(way, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(way, "blocked fault")) {
        sigset_t all;
        sigfillset(&all);
        sigprocmask(SIG_BLOCK, &all, NULL);
        *(volatile int *)8 = 1;
    }
    if (!strcmp(way, "first thread")) {
        pthread_create(&thread, NULL, run_on, NULL);
        syscall(SYS_exit, 3);
    }
    if (!strcmp(way, "other thread")) {
        pthread_create(&thread, NULL, end_all, NULL);
        for (;;)
            pause();
    }
    return 1;
}
