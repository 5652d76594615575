/* A peer that dies: `victim FD CAPACITY_LOG2 KIND OWNER push|pop`. Stops before the operation, so that the test can let
 * it run instruction by instruction and kill it after any of them. */
#include <quaject/ring.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 6) return 2;
    unsigned log2 = (unsigned)atoi(argv[2]);
    size_t bytes = qj_ring_bytes(log2);
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, atoi(argv[1]), 0);
    struct qj_ring_end end;
    if (memory == MAP_FAILED ||
        qj_ring_attach(&end, memory, bytes, log2, (uint32_t)atoi(argv[3]), (uint8_t)atoi(argv[4])) != QJ_RING_OK)
        return 3;
    struct qj_ring_message messages[3] = {{{71}}, {{72}}, {{73}}};
    int pushes = strcmp(argv[5], "push") == 0;
    if (pushes && !(end.kind & QJ_RING_MP_SC) && qj_ring_resume_producer(&end) != QJ_RING_OK) return 4;
    if (!pushes && !(end.kind & QJ_RING_SP_MC) && qj_ring_resume_consumer(&end) != QJ_RING_OK) return 4;
    if (ptrace(PTRACE_TRACEME, 0, 0, 0) != 0) return 5;
    raise(SIGSTOP);
    if (pushes && end.kind & QJ_RING_MP_SC)
        qj_ring_mp_push_many(&end, messages, 3);
    else if (pushes)
        qj_ring_sp_push_many(&end, messages, 3);
    else if (end.kind & QJ_RING_SP_MC)
        qj_ring_mc_pop(&end, messages);
    else
        qj_ring_sc_pop(&end, messages);
    _exit(0);
}
