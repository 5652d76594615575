/* Memory of a task that waits: argument 1 tasks, which wait until all of them do. Prints bytes for each. */
#include <quaject/ac.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static long resident(void) {
    long pages = 0, all;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file == NULL || fscanf(file, "%ld %ld", &all, &pages) != 2) abort();
    fclose(file);
    return pages * sysconf(_SC_PAGESIZE);
}
static long ended;
static void waits(void *argument) { (void)argument, qj_ac_yield(), ended++; }

int main(int count, char **arguments) {
    long tasks = count > 1 ? atol(arguments[1]) : 20000;
    DO_FINISH({ qj_ac_async(waits, NULL); });
    long before = resident();
    long after = 0;
    DO_FINISH({
        for (long i = 0; i < tasks; i++) qj_ac_async(waits, NULL);
        after = resident();
    });
    printf("%ld tasks, %ld bytes each\n", ended - 1, (after - before) / tasks);
    qj_ac_stop();
    return 0;
}
