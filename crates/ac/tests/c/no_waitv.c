/* Channels where the kernel refuses futex_waitv with the error of argument 1: idle threads sleep, and requests
 * arrive. */
#define _GNU_SOURCE
#include <quaject/ac/ipc.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x), abort()))
#define IDLE_US 300000

static void refuse(unsigned error) {
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex_waitv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static int memory[2];
static struct qj_ac_group group;

static void answers(struct qj_ac_group_item *item, const struct qj_ac_message *request, uint32_t cookie) {
    struct qj_ac_message response = {{request->words[0] + 1}};
    CHECK(qj_ac_reply(item->channel, cookie, &response) == 0);
}

static void *serves(void *argument) {
    static struct qj_ac_channel channels[2];
    static struct qj_ac_group_item items[2];
    for (int i = 0; i < 2; i++) {
        CHECK(qj_ac_channel_open(&channels[i], memory[i], 3, 1) == 0);
        items[i] = (struct qj_ac_group_item){.channel = &channels[i], .dispatch = answers};
        qj_ac_group_add(&group, &items[i]);
    }
    CHECK(qj_ac_dispatch(&group) == -EPIPE);
    for (int i = 0; i < 2; i++) qj_ac_channel_close(&channels[i]);
    return argument;
}

static long processor_us(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000 + usage.ru_utime.tv_usec + usage.ru_stime.tv_usec;
}

int main(int count, char **arguments) {
    struct qj_ac_channel channels[2];
    pthread_t server;
    CHECK(count == 2);
    refuse((unsigned)atoi(arguments[1]));
    for (int i = 0; i < 2; i++) {
        memory[i] = qj_ac_channel_memory(3);
        CHECK(memory[i] >= 0 && qj_ac_channel_open(&channels[i], memory[i], 3, 0) == 0);
    }
    CHECK(pthread_create(&server, NULL, serves, NULL) == 0);
    for (uint64_t i = 0; i < 40; i++) {
        struct qj_ac_message message = {{i}};
        CHECK(qj_ac_call(&channels[i % 2], &message, &message) == 0 && message.words[0] == i + 1);
        if (i == 20) {
            long before = processor_us();
            usleep(IDLE_US);
            CHECK(processor_us() - before < IDLE_US / 4);
        }
    }
    for (int i = 0; i < 2; i++) qj_ac_channel_close(&channels[i]);
    pthread_join(server, NULL);
    printf("idle threads sleep, requests arrive\n");
    return 0;
}
